/* tarn compact: one round of compaction, or a job that makes one after the other.
 *
 *     round -> report -> wait -> new snapshots? -> round ...
 *
 * Between two rounds the table is nobody's, so that `tarn write` has its turns; a round that is due
 * while somebody else holds it waits till it is free. What another try may mend ends no job.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/handing.h"
#include "app/reader.h"
#include "app/round.h"
#include "app/stop.h"
#include "file/names.h"
#include "table/table.h"

static struct {
    bool full;
    const char *every;
    bool explain;
} o;

static const struct tn_flag flags[] = {
    {"full", 0, TN_FLAG_SET, &o.full, NULL, "everything into the highest level"},
    {"every", 0, TN_FLAG_TEXT, &o.every, "TIME",
     "a job: a round, and so long behind it the next, until a signal"},
    {"explain", 0, TN_FLAG_SET, &o.explain, NULL, "say what would be merged and why; do nothing"},
};

enum {
    RUNS_SHOWN = 64,
    RETRY_MS = 1000, /* to a table that somebody else held */
};

/* ---- doing it ---- */

struct job {
    struct tn_compact_round_spec spec;
    struct tn_compact_round round; /* the last */
    struct tn_cells cells;
    int64_t every_ms; /* from the end of a round to the next */
    int64_t seen_id;  /* the newest snapshot when it began; -1: look again */
    bool owes_full;   /* full-compaction.delta-commits: files wait for a full round */
    bool waits;       /* somebody else holds the table, and that was said */
};

static tn_rc report(struct job *job, struct tn_err *err)
{
    const struct tn_compact_round *round = &job->round;
    tn_cells_number(&job->cells, round->bucket_count);
    tn_cells_number(&job->cells, (int64_t)round->compactions);
    tn_cells_number(&job->cells, (int64_t)round->bytes_written);
    if (round->snapshot_id > 0) {
        tn_cells_number(&job->cells, round->snapshot_id);
    } else {
        tn_cells_text(&job->cells, NULL);
    }
    return tn_cells_end(&job->cells, err);
}

/* Without a snapshot since the last round began, be it ours, there is nothing to do: the table need
 * not be held to know that. */
static bool nothing_new(const struct job *job)
{
    struct tn_app *app = job->spec.app;
    size_t mark = tn_arena_mark(&app->input);
    struct tn_err err;
    const char *root;
    int64_t id = 0;
    tn_rc rc = tn_name_table_root(&app->input, job->spec.table, &root, &err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(&app->posix.io, root, &app->input, &id, &err);
    }
    tn_arena_reset(&app->input, mark);
    return rc == TN_OK && id == job->seen_id;
}

/* What another try may mend is said, and tried again by the next round. */
static tn_rc settle(struct job *job, tn_rc rc, struct tn_err *err)
{
    if (rc != TN_EXISTS && rc != TN_CONFLICT && rc != TN_IO && rc != TN_FULL) {
        return rc;
    }
    if (rc != TN_EXISTS || !job->waits) {
        (void)fprintf(stderr, "tarn: %s; it is tried again\n", err->text);
    }
    job->waits = rc == TN_EXISTS;
    job->seen_id = -1;
    return TN_OK;
}

static bool stop_came(void)
{
    return tn_stop_came(0);
}

/* What the daemon says of it, as if it had been done here. */
static void take_handed(struct job *job, const struct tn_handed *handed)
{
    const int64_t *values = handed->values;
    job->round = (struct tn_compact_round){.bucket_count = values[TN_JOB_BUCKETS],
                                           .compactions = (uint64_t)values[TN_JOB_COMPACTIONS],
                                           .bytes_written = (uint64_t)values[TN_JOB_BYTES],
                                           .snapshot_id = values[TN_JOB_SNAPSHOT],
                                           .seen_id = -1, /* it has rows, too */
                                           .behind = (uint32_t)values[TN_JOB_BEHIND],
                                           .behind_rc = (tn_rc)values[TN_JOB_BEHIND_RC]};
    if (job->round.snapshot_id > 0 && !tn_common.quiet) {
        (void)fprintf(stderr, "committed snapshot=%" PRId64 " table=%s\n", job->round.snapshot_id,
                      job->spec.table);
    }
}

/* Where the daemon holds the table, it does it. */
static tn_rc make_round(struct job *job, struct tn_err *err)
{
    tn_rc rc = tn_compact_round(&job->spec, &job->round, err);
    struct tn_job_wish wish = {.verb = TN_JOB_COMPACT, .full = job->spec.full};
    struct tn_handed handed;
    if (rc != TN_EXISTS || strlen(job->spec.table) >= sizeof wish.table) {
        return rc;
    }
    (void)snprintf(wish.table, sizeof wish.table, "%s", job->spec.table);
    wish.expiry = (struct tn_expiry){-1, -1, -1};
    rc = tn_hand(job->spec.app, &wish, job->spec.stopped, &handed, err);
    if (rc == TN_OK) {
        take_handed(job, &handed);
    }
    return rc == TN_ABSENT ? TN_EXISTS : rc;
}

static bool full_is_due(const struct job *job)
{
    return job->round.full_every > 0 && job->spec.number % job->round.full_every == 0;
}

/* A round that found nothing to do is no line of the report. */
static tn_rc job_round(struct job *job, struct tn_err *err)
{
    if (nothing_new(job) && !(job->owes_full && full_is_due(job))) {
        job->spec.number++;
        return TN_OK;
    }
    tn_rc rc = make_round(job, err);
    tn_rc said =
        job->round.compactions > 0 || job->round.snapshot_id > 0 ? report(job, err) : TN_OK;
    if (said == TN_OK) {
        said = tn_output_flush(&job->cells.output, err);
    }
    if (rc != TN_OK || said != TN_OK) {
        return said == TN_OK ? settle(job, rc, err) : said;
    }
    job->waits = false;
    job->owes_full = job->round.full_every > 0 && !full_is_due(job);
    job->seen_id = job->round.behind > 0 ? -1 : job->round.seen_id;
    job->spec.number++;
    return TN_OK;
}

static tn_rc run_job(struct job *job, struct tn_err *err)
{
    int64_t retry_ms = job->every_ms < RETRY_MS ? job->every_ms : RETRY_MS;
    tn_rc rc;
    tn_stop_hold();
    job->spec.stopped = stop_came;
    job->spec.number = 1;
    do {
        rc = job_round(job, err);
    } while (rc == TN_OK && !tn_stop_came(job->waits ? retry_ms : job->every_ms));
    return rc == TN_CANCELED ? TN_OK : rc;
}

/* Buckets that could be compacted were; `*code` says what is left. */
static tn_rc run_once(struct job *job, int *code, struct tn_err *err)
{
    tn_rc rc = make_round(job, err);
    if (job->round.behind > 0) {
        *code = job->round.behind_rc == TN_CORRUPT ? tn_exit_code(job->round.behind_rc) : 1;
    }
    return rc == TN_OK ? report(job, err) : rc;
}

static tn_rc parse_every(int64_t *every_ms, struct tn_err *err)
{
    if (!o.every || (tn_parse_duration(tn_bytes_of(o.every), every_ms) && *every_ms > 0)) {
        return TN_OK;
    }
    return tn_err_set(err, TN_INVALID, 0, "--every %s: want a time like 10m", o.every);
}

static tn_rc compact(struct tn_app *app, const char *name, int *code, struct tn_err *err)
{
    static const char *const columns[] = {"buckets", "compactions", "bytes_written", "snapshot"};
    static struct job job;
    job = (struct job){.spec = {.app = app, .table = name, .full = o.full}, .seen_id = -1};
    tn_rc rc = parse_every(&job.every_ms, err);
    if (rc == TN_OK) {
        rc = tn_cells_open(&job.cells, columns, 4, &app->input, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = o.every ? run_job(&job, err) : run_once(&job, code, err);
    return rc == TN_OK ? tn_cells_close(&job.cells, err) : rc;
}

/* ---- saying it ---- */

static const char *const explain_columns[] = {"partition", "bucket", "files", "bytes",
                                              "runs",      "takes",  "to",    "why"};

struct explain {
    struct tn_reader reader;
    struct tn_plan plan;
    struct tn_key_types keys;
    struct tn_cells cells;
};

/* "0:1200 0:1100 5:40000": level and bytes of each run, newest first. */
static void put_runs(struct tn_cells *cells, const struct tn_run *runs, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < RUNS_SHOWN; i++) {
        tn_buf_format(&cells->text, "%s%" PRId32 ":%" PRId64, i ? " " : "", runs[i].level,
                      runs[i].size);
    }
    if (count > RUNS_SHOWN) {
        tn_buf_format(&cells->text, " and %u more", count - RUNS_SHOWN);
    }
    tn_cells_put(cells, false);
}

static void put_partition(struct tn_cells *cells, const char *name)
{
    size_t size = strlen(name);
    tn_buf_append(&cells->text, name, size > 0 ? size - 1 : 0); /* without its '/' */
    tn_cells_put(cells, size == 0);
}

static tn_rc explain_runs(struct explain *e, const struct tn_plan_bucket *bucket,
                          const struct tn_run *runs, uint32_t count, struct tn_err *err)
{
    struct tn_pick_rules rules = tn_table_pick_rules(&e->reader.options, &e->reader.app->env);
    struct tn_pick pick = o.full ? tn_pick_full(runs, count, &rules) : tn_pick(runs, count, &rules);
    int64_t size = 0;
    const char *partition;
    for (uint32_t i = 0; i < bucket->file_count; i++) {
        size += bucket->files[i]->size;
    }
    tn_rc rc = tn_name_partition(&e->reader.app->table, e->reader.schema, &e->reader.options,
                                 bucket->partition, &partition, err);
    if (rc != TN_OK) {
        return rc;
    }
    put_partition(&e->cells, partition);
    tn_cells_number(&e->cells, bucket->number);
    tn_cells_number(&e->cells, bucket->file_count);
    tn_cells_number(&e->cells, size);
    put_runs(&e->cells, runs, count);
    tn_cells_number(&e->cells, pick.take);
    if (pick.take > 0) {
        tn_cells_number(&e->cells, pick.output_level);
    } else {
        tn_cells_text(&e->cells, NULL);
    }
    tn_cells_text(&e->cells, tn_pick_text(pick.reason));
    return tn_cells_end(&e->cells, err);
}

static tn_rc explain_bucket(struct explain *e, const struct tn_plan_bucket *bucket,
                            struct tn_err *err)
{
    struct tn_app *app = e->reader.app;
    struct tn_levels *levels;
    void *runs;
    size_t mark = tn_arena_mark(&app->table);
    tn_rc rc = tn_levels_edit(&app->levels, NULL, NULL, 0, bucket->files, bucket->file_count,
                              &e->keys, &levels, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t count = tn_levels_runs(levels, NULL, 0);
    rc = tn_arena_need(&app->table, (count + 1) * sizeof(struct tn_run), "runs", &runs, err);
    if (rc == TN_OK) {
        (void)tn_levels_runs(levels, runs, count);
        rc = explain_runs(e, bucket, runs, count, err);
    }
    tn_levels_drop(&app->levels, levels);
    tn_arena_reset(&app->table, mark);
    return rc;
}

static tn_rc explain_buckets(struct explain *e, struct tn_err *err)
{
    tn_rc rc = tn_reader_plan(&e->reader, &e->plan, &e->keys, err);
    while (rc == TN_OK) {
        struct tn_plan_bucket *bucket;
        rc = tn_plan_next(&e->plan, &bucket, err);
        if (rc == TN_OK) {
            rc = explain_bucket(e, bucket, err);
        }
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc explain(struct tn_app *app, const char *name, struct tn_err *err)
{
    static struct explain e;
    tn_rc rc = tn_reader_open(&e.reader, app, name, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (e.reader.schema->primary_keys.count == 0) {
        return tn_err_set(err, TN_INVALID, 0,
                          "%s: an append table has no levels; its small files are put together, "
                          "compaction.min.file-num of them at a time",
                          name);
    }
    rc = tn_cells_open(&e.cells, explain_columns,
                       sizeof explain_columns / sizeof explain_columns[0], &app->input, err);
    if (rc == TN_OK && !e.reader.empty) {
        rc = explain_buckets(&e, err);
    }
    return rc == TN_OK ? tn_cells_close(&e.cells, err) : tn_err_in(err, "%s", name);
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 1) {
        return tn_say_usage(&tn_cmd_compact);
    }
    if (o.every && o.explain) {
        (void)fputs("tarn: --explain only says what would be done: no --every\n", stderr);
        return 2;
    }
    static struct tn_app app;
    struct tn_err err = {0};
    tn_rc rc = tn_boot(&app, false, &err);
    if (rc != TN_OK) {
        return tn_say_error(rc, &err);
    }
    int code = 0;
    rc = o.explain ? explain(&app, words->items[0], &err)
                   : compact(&app, words->items[0], &code, &err);
    code = rc == TN_OK ? code : tn_say_error(rc, &err);
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_compact = {
    "compact",
    "compact D.T",
    "merges what is due in each bucket",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
