/* tarn clean: files that nothing reaches go, when they are old. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/reader.h"
#include "commit/orphan.h"
#include "table/recover.h"

static struct {
    const char *older_than;
    bool dry_run;
} o = {.older_than = "1 d"};

static const struct tn_flag flags[] = {
    {"older-than", 0, TN_FLAG_TEXT, &o.older_than, "TIME|DURATION",
     "only files last changed before a time (UTC), or so long ago (1 d); what somebody else than "
     "tarn is writing right now is protected by nothing else"},
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL, "only say what would go"},
};

static tn_rc older_than(struct tn_app *app, int64_t *ms, struct tn_err *err)
{
    int64_t now = app->env.clock->vtable->now_ms(app->env.clock);
    if (!tn_parse_duration(tn_bytes_of(o.older_than), ms)) {
        tn_rc rc = tn_reader_time("--older-than", o.older_than, ms, err);
        return rc != TN_OK || *ms <= now
                   ? rc
                   : tn_err_set(err, TN_INVALID, 0, "--older-than %s: not yet", o.older_than);
    }
    *ms = *ms < now ? now - *ms : 0;
    return TN_OK;
}

static void say(void *user, const char *path, uint64_t size)
{
    (void)user;
    (void)fprintf(stderr, "%s: %" PRIu64 " bytes\n", path, size);
}

static tn_rc report(struct tn_app *app, const struct tn_orphan_result *result, struct tn_err *err)
{
    static const char *const columns[] = {"files", "bytes", "folders"};
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, 3, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_number(&cells, (int64_t)result->files);
    tn_cells_number(&cells, (int64_t)result->bytes);
    tn_cells_number(&cells, (int64_t)result->folders);
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

static tn_rc clean_locked(struct tn_reader *reader, int64_t older_than_ms, struct tn_err *err)
{
    struct tn_app *app = reader->app;
    struct tn_orphan_result result;
    struct tn_orphan_spec spec = {.root = reader->root,
                                  .schema = reader->newest,
                                  .options = &reader->options,
                                  .older_than_ms = older_than_ms,
                                  .dry_run = o.dry_run,
                                  .each = tn_common.verbose ? say : NULL};
    tn_rc rc = tn_orphan_clean(&spec, &app->workers[TN_LANE_LONG], &result, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", reader->name);
    }
    return report(app, &result, err);
}

static tn_rc clean(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_reader reader;
    const char *name = words->items[0];
    struct tn_io *io = &app->posix.io;
    char who[96];
    int64_t ms;
    int lock;
    (void)snprintf(who, sizeof who, "tarn clean, process %ld", (long)getpid());
    tn_rc rc = older_than(app, &ms, err);
    rc = rc == TN_OK ? tn_reader_open(&reader, app, name, err) : rc;
    if (rc == TN_OK) {
        rc = tn_table_lock(io, name, who, &app->table, &lock, err);
        rc = rc == TN_OK ? rc : tn_err_in(err, "%s", name);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = clean_locked(&reader, ms, err);
    io->vtable->close(io, lock);
    return rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_clean);
    }
    return tn_run_verb(clean, words);
}

const struct tn_command tn_cmd_clean = {
    "clean",
    "clean D.T",
    "removes old files that no snapshot, tag or branch reaches",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
