/* tarn sync: a mirror in a folder is brought up to the newest snapshot. */
#include <inttypes.h>
#include <stdio.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/lake.h"
#include "app/suggest.h"
#include "file/names.h"

static struct {
    bool dry_run;
    bool no_consumer;
} o;

static const struct tn_flag flags[] = {
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL,
     "only say which snapshots, how many files, bytes"},
    {"no-consumer", 0, TN_FLAG_SET, &o.no_consumer, NULL,
     "let expiry pass what TARGET lacks (ids may then be missing there)"},
};

static void say_synced(const struct tn_delta_result *result, const char *where)
{
    if (tn_common.quiet) {
        return;
    }
    if (result->first_id == 0) {
        (void)fprintf(stderr, "synced nothing: %s is at snapshot %" PRId64 "\n", where,
                      result->last_id);
        return;
    }
    (void)fprintf(stderr,
                  "synced snapshots %" PRId64 "..%" PRId64 " files=%" PRIu64 " bytes=%" PRIu64 "\n",
                  result->first_id, result->last_id, result->files, result->bytes);
}

static tn_rc print_plan(struct tn_app *app, const struct tn_delta_result *result,
                        struct tn_err *err)
{
    static const char *const columns[] = {"first_snapshot", "last_snapshot", "files", "bytes"};
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, 4, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (result->first_id == 0) {
        tn_cells_text(&cells, NULL);
    } else {
        tn_cells_number(&cells, result->first_id);
    }
    tn_cells_number(&cells, result->last_id);
    tn_cells_number(&cells, (int64_t)result->files);
    tn_cells_number(&cells, (int64_t)result->bytes);
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

/* Before a folder is made for nothing. */
static tn_rc find_table(struct tn_app *app, const char *table, const char **root,
                        struct tn_err *err)
{
    uint64_t size;
    tn_rc rc = tn_name_table_root(&app->table, table, root, err);
    if (rc == TN_OK) {
        rc = app->posix.io.vtable->stat(&app->posix.io, *root, &size, err);
    }
    return rc == TN_ABSENT ? tn_suggest_table(app, table, err) : rc;
}

static tn_rc sync_to(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_lake lake;
    const char *table = words->items[0];
    const char *where = words->items[1];
    struct tn_delta_result result = {0};
    struct tn_delta_spec spec = {.dry_run = o.dry_run};
    tn_rc rc = find_table(app, table, &spec.root, err);
    if (rc == TN_OK) {
        rc = tn_lake_open(&lake, app, where, table, !o.dry_run, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    spec.consumer = o.no_consumer ? NULL : lake.consumer;
    rc = tn_lake_sync(&lake, app, &spec, &result, err);
    tn_lake_close(&lake);
    if (rc != TN_OK) {
        return rc;
    }
    if (o.dry_run) {
        return print_plan(app, &result, err);
    }
    say_synced(&result, where);
    return TN_OK;
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 2) {
        return tn_say_usage(&tn_cmd_sync);
    }
    return tn_run_verb(sync_to, words);
}

const struct tn_command tn_cmd_sync = {
    "sync",
    "sync D.T TARGET",
    "brings a mirror in a folder up to the newest snapshot; it keeps what the table expires",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
