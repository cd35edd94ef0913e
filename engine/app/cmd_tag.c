/* tarn tag: a name for a snapshot, which keeps it when it expires. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/reader.h"
#include "commit/tag.h"
#include "table/recover.h"

static struct {
    int64_t snapshot;
    const char *time_retained;
    bool drop;
    bool dry_run;
} o;

static const struct tn_flag flags[] = {
    {"snapshot", 0, TN_FLAG_I64, &o.snapshot, "N", "of snapshot N; default: the newest"},
    {"time-retained", 0, TN_FLAG_TEXT, &o.time_retained, "DURATION",
     "it goes with a commit after that time (tag.default-time-retained; else it stays)"},
    {"delete", 0, TN_FLAG_SET, &o.drop, NULL, "the tag goes, and the files that it alone kept"},
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL, "only say what would happen"},
};

static tn_rc retained(const struct tn_schema *schema, int64_t *ms, struct tn_err *err)
{
    const char *name = "tag.default-time-retained";
    const char *text = o.time_retained;
    if (!text) {
        text = tn_schema_option(schema, name);
    } else {
        name = "--time-retained";
    }
    *ms = 0;
    bool good = !text || (tn_parse_duration(tn_bytes_of(text), ms) && *ms > 0);
    return good ? TN_OK
                : tn_err_set(err, TN_INVALID, 0, "%s: '%s' is no duration like '1 h' or '30 d'",
                             name, text);
}

static tn_rc say(struct tn_app *app, const char *const *columns, const char *tag,
                 const int64_t *numbers, uint32_t count, struct tn_err *err)
{
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, count + 1, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_text(&cells, tag);
    for (uint32_t i = 0; i < count; i++) {
        tn_cells_number(&cells, numbers[i]);
    }
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

/* Beside whoever writes the table: no lock. */
static tn_rc make(struct tn_reader *reader, const char *name, struct tn_err *err)
{
    static const char *const columns[] = {"tag", "snapshot"};
    struct tn_app *app = reader->app;
    struct tn_tag_spec spec = {
        .root = reader->root, .name = name, .snapshot_id = o.snapshot, .dry_run = o.dry_run};
    int64_t id;
    tn_rc rc = retained(reader->newest, &spec.retained_ms, err);
    if (rc == TN_OK && o.snapshot < 0) {
        rc = tn_err_set(err, TN_INVALID, 0, "--snapshot %" PRId64, o.snapshot);
    }
    if (rc == TN_OK) {
        rc = tn_tag_make(&spec, &app->workers[TN_LANE_LONG], &id, err);
        rc = rc == TN_EXISTS ? (err->code = TN_INVALID) : rc; /* nobody else has the table */
    }
    return rc == TN_OK ? say(app, columns, name, &id, 1, err) : rc;
}

static tn_rc drop_locked(struct tn_reader *reader, const char *name, struct tn_err *err)
{
    static const char *const columns[] = {"tag", "data_files", "metadata_files"};
    struct tn_app *app = reader->app;
    struct tn_expire_result result = {0};
    struct tn_expire_spec spec = {.root = reader->root,
                                  .schema = reader->newest,
                                  .options = &reader->options,
                                  .dry_run = o.dry_run};
    tn_rc rc = tn_tag_remove(&spec, name, &app->workers[TN_LANE_LONG], &result, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_INVALID, 0, "there is no tag '%s'", name);
    }
    int64_t numbers[] = {result.data_files, result.metadata_files};
    return rc == TN_OK ? say(app, columns, name, numbers, 2, err) : rc;
}

static tn_rc drop(struct tn_reader *reader, const char *name, struct tn_err *err)
{
    struct tn_app *app = reader->app;
    char who[96];
    int lock;
    if (o.snapshot != 0 || o.time_retained) {
        return tn_err_set(err, TN_INVALID, 0,
                          "--delete goes with neither --snapshot nor "
                          "--time-retained");
    }
    (void)snprintf(who, sizeof who, "tarn tag, process %ld", (long)getpid());
    tn_rc rc = tn_table_lock(&app->posix.io, reader->name, who, &app->table, &lock, err);
    if (rc == TN_OK) {
        rc = drop_locked(reader, name, err);
        app->posix.io.vtable->close(&app->posix.io, lock);
    }
    return rc;
}

static tn_rc tag(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_reader reader;
    const char *table = words->items[0];
    const char *name = words->items[1];
    tn_rc rc = tn_reader_open(&reader, app, table, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = o.drop ? drop(&reader, name, err) : make(&reader, name, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s", table);
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 2) {
        return tn_say_usage(&tn_cmd_tag);
    }
    return tn_run_verb(tag, words);
}

const struct tn_command tn_cmd_tag = {
    "tag",
    "tag D.T NAME",
    "names a snapshot, which then stays readable; or removes such a name",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
