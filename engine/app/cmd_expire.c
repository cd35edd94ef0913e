/* tarn expire: old snapshots go, and the files that only they reach. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/handing.h"
#include "app/reader.h"
#include "commit/expire.h"
#include "table/recover.h"

static struct {
    int64_t retain_max;
    int64_t retain_min;
    const char *older_than;
    bool dry_run;
} o = {.retain_max = -1, .retain_min = -1};

static const struct tn_flag flags[] = {
    {"retain-max", 0, TN_FLAG_I64, &o.retain_max, "N",
     "keep at most N snapshots (snapshot.num-retained.max)"},
    {"retain-min", 0, TN_FLAG_I64, &o.retain_min, "M",
     "keep at least M snapshots (snapshot.num-retained.min)"},
    {"older-than", 0, TN_FLAG_TEXT, &o.older_than, "TIME|DURATION",
     "keep what is younger than a time (UTC), or than 2 d (snapshot.time-retained)"},
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL, "only say what would go"},
};

static tn_rc read_expiry(struct tn_app *app, struct tn_expiry *expiry, struct tn_err *err)
{
    int64_t ms;
    *expiry = (struct tn_expiry){o.retain_max, o.retain_min, -1};
    if (!o.older_than) {
        return TN_OK;
    }
    if (!tn_parse_duration(tn_bytes_of(o.older_than), &ms)) {
        tn_rc rc = tn_reader_time("--older-than", o.older_than, &ms, err);
        if (rc != TN_OK) {
            return rc;
        }
        int64_t now = app->env.clock->vtable->now_ms(app->env.clock);
        ms = ms < now ? now - ms : 0;
    }
    expiry->older_ms = ms;
    return TN_OK;
}

/* As often as there is something: one call expires what fits its memory. */
static tn_rc expire_all(struct tn_app *app, const struct tn_expire_spec *spec,
                        struct tn_expire_result *sum, struct tn_err *err)
{
    for (;;) {
        struct tn_expire_result result = {0};
        tn_rc rc = tn_expire(spec, &app->workers[TN_LANE_LONG], &result, err);
        if (rc != TN_OK) {
            return rc;
        }
        sum->snapshots += result.snapshots;
        sum->tags += result.tags;
        sum->changelogs += result.changelogs;
        sum->data_files += result.data_files;
        sum->metadata_files += result.metadata_files;
        sum->earliest_id = result.earliest_id;
        if ((result.snapshots == 0 && result.changelogs == 0) || spec->dry_run) {
            return TN_OK;
        }
    }
}

static tn_rc report(struct tn_app *app, const struct tn_expire_result *sum, struct tn_err *err)
{
    static const char *const columns[] = {"snapshots", "data_files", "metadata_files",
                                          "earliest",  "tags",       "changelogs"};
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, 6, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_number(&cells, sum->snapshots);
    tn_cells_number(&cells, sum->data_files);
    tn_cells_number(&cells, sum->metadata_files);
    tn_cells_number(&cells, sum->earliest_id);
    tn_cells_number(&cells, sum->tags);
    tn_cells_number(&cells, sum->changelogs);
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

static tn_rc expire_locked(struct tn_reader *reader, const struct tn_expiry *expiry,
                           struct tn_err *err)
{
    struct tn_app *app = reader->app;
    struct tn_options options;
    struct tn_expire_result sum = {0};
    tn_rc rc = tn_options_read(reader->newest, TN_OPTIONS_WRITE, &app->table, &options, err);
    if (rc == TN_OK) {
        options.snapshot_expire_limit = INT32_MAX;
        rc = tn_expiry_apply(expiry, &options, err);
    }
    struct tn_expire_spec spec = {
        .root = reader->root, .schema = reader->newest, .options = &options, .dry_run = o.dry_run};
    if (rc == TN_OK && !reader->empty) {
        rc = expire_all(app, &spec, &sum, err);
    }
    return rc == TN_OK ? report(app, &sum, err) : tn_err_in(err, "%s", reader->name);
}

/* Where the daemon holds the table, it does it. */
static tn_rc hand(struct tn_reader *reader, const struct tn_expiry *expiry, struct tn_err *err)
{
    struct tn_handed handed;
    struct tn_job_wish wish = {.verb = TN_JOB_EXPIRE, .dry_run = o.dry_run, .expiry = *expiry};
    if (strlen(reader->name) >= sizeof wish.table) {
        return TN_EXISTS;
    }
    (void)snprintf(wish.table, sizeof wish.table, "%s", reader->name);
    tn_rc rc = tn_hand(reader->app, &wish, NULL, &handed, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_EXISTS : rc;
    }
    const int64_t *values = handed.values;
    struct tn_expire_result sum = {.snapshots = (uint32_t)values[TN_JOB_SNAPSHOTS],
                                   .tags = (uint32_t)values[TN_JOB_TAGS],
                                   .changelogs = (uint32_t)values[TN_JOB_CHANGELOGS],
                                   .data_files = (uint32_t)values[TN_JOB_DATA_FILES],
                                   .metadata_files = (uint32_t)values[TN_JOB_METADATA_FILES],
                                   .earliest_id = values[TN_JOB_EARLIEST]};
    return report(reader->app, &sum, err);
}

static tn_rc expire(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_reader reader;
    const char *name = words->items[0];
    struct tn_io *io = &app->posix.io;
    char who[96];
    int lock;
    struct tn_expiry expiry;
    (void)snprintf(who, sizeof who, "tarn expire, process %ld", (long)getpid());
    tn_rc rc = tn_reader_open(&reader, app, name, err);
    if (rc == TN_OK) {
        rc = read_expiry(app, &expiry, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_table_lock(io, name, who, &app->table, &lock, err);
    if (rc != TN_OK) {
        (void)tn_err_in(err, "%s", name);
        return rc == TN_EXISTS ? hand(&reader, &expiry, err) : rc;
    }
    rc = expire_locked(&reader, &expiry, err);
    io->vtable->close(io, lock);
    return rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_expire);
    }
    return tn_run_verb(expire, words);
}

const struct tn_command tn_cmd_expire = {
    "expire",
    "expire D.T",
    "removes old snapshots and their files",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
