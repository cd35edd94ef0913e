/* tarn compact: what is due in each bucket, done to the end and committed.
 *
 *     census -> a group of buckets is opened -> picked, merged -> COMPACT snapshot -> next group
 *
 * A group is as many buckets as may be open at once with all their files, so a table may have any
 * number of them. It is a dedicated job: it compacts tables whose writers don't (write-only), and
 * it expires snapshots for them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/reader.h"
#include "app/suggest.h"
#include "file/names.h"
#include "table/census.h"
#include "table/table.h"

static struct {
    bool full;
    bool explain;
} o;

static const struct tn_flag flags[] = {
    {"full", 0, TN_FLAG_SET, &o.full, NULL, "everything into the highest level"},
    {"explain", 0, TN_FLAG_SET, &o.explain, NULL, "say what would be merged and why; do nothing"},
};

enum {
    GROUP_BUCKETS = 64,       /* half of what a table can have open */
    FILE_SIZE_GUESS = 400,    /* bytes of the levels heap a file takes, in two versions */
    WINDOW_SIZE = 128 * 1024, /* of the census: some 800 buckets a pass */
    RUNS_SHOWN = 64,
};

/* ---- doing it ---- */

struct compact {
    struct tn_app *app;
    const char *name;
    struct tn_table *table;
    struct tn_census census;
    struct tn_snapshot snapshot;
    size_t snapshot_mark;
    uint32_t group_buckets;
    int64_t group_files;
    int64_t bucket_count; /* looked at */
    int64_t snapshot_id;  /* of the last commit; 0: none */
};

static void note_commit(void *user, const struct tn_committed *committed)
{
    struct compact *c = user;
    if (committed->compact_id == 0) {
        return;
    }
    c->snapshot_id = committed->compact_id;
    if (!tn_common.quiet) {
        (void)fprintf(stderr, "committed snapshot=%" PRId64 " table=%s\n", committed->compact_id,
                      c->name);
    }
}

static void note_failure(void *user, const struct tn_compaction_failed *failed)
{
    (void)user;
    (void)fprintf(stderr, "tarn: %s\n", failed->text);
}

/* Later passes of the census need a snapshot that is still there: the newest. */
static tn_rc take_snapshot(struct compact *c, struct tn_err *err)
{
    struct tn_io *io = &c->app->posix.io;
    const char *root = tn_table_root(c->table);
    int64_t id;
    tn_arena_reset(&c->app->input, c->snapshot_mark);
    tn_rc rc = tn_snapshot_latest(io, root, &c->app->input, &id, err);
    return rc == TN_OK ? tn_snapshot_read(io, root, id, &c->app->input, &c->snapshot, err) : rc;
}

static tn_rc end_group(struct compact *c, struct tn_err *err)
{
    tn_rc rc = tn_table_finish(c->table, 0, err);
    tn_table_release(c->table);
    c->group_buckets = 0;
    c->group_files = 0;
    return rc == TN_OK ? take_snapshot(c, err) : rc;
}

/* Every run has a file, so a bucket with few files has few runs; options that make even two runs
 * due are not looked at more closely. */
static bool may_be_due(const struct compact *c, const struct tn_census_bucket *bucket)
{
    const struct tn_options *options = tn_table_options(c->table);
    bool small_matters = options->optimization_interval_ms >= 0 || options->force_up_level0 ||
                         tn_options_need_lookup(options) || options->total_size_threshold >= 0 ||
                         options->incremental_size_threshold >= 0;
    if (o.full || small_matters) {
        return bucket->file_count > 1 || bucket->min_level < options->num_levels - 1;
    }
    return bucket->file_count >= options->compaction_trigger;
}

static tn_rc open_bucket(struct compact *c, const struct tn_census_bucket *bucket,
                         struct tn_err *err)
{
    for (;;) {
        tn_rc rc = tn_table_touch(c->table, bucket->partition, bucket->number, err);
        if (rc != TN_AGAIN) {
            return rc;
        }
        if (tn_table_idle(c->table)) { /* none to come free by itself */
            return c->group_buckets > 0 ? rc : tn_err_set(err, TN_FULL, 0, "%s", err->text);
        }
        rc = tn_table_turn(c->table, true, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static tn_rc take_bucket(struct compact *c, const struct tn_census_bucket *bucket,
                         struct tn_err *err)
{
    c->bucket_count++;
    if (!may_be_due(c, bucket)) {
        return TN_OK;
    }
    int64_t files_max = (int64_t)(c->app->levels.size / FILE_SIZE_GUESS);
    tn_rc rc = TN_OK;
    if (c->group_buckets == GROUP_BUCKETS ||
        (c->group_buckets > 0 && c->group_files + bucket->file_count > files_max)) {
        rc = end_group(c, err);
    }
    if (rc == TN_OK) {
        rc = open_bucket(c, bucket, err);
    }
    if (rc == TN_AGAIN) { /* the guess was too good */
        rc = end_group(c, err);
        rc = rc == TN_OK ? open_bucket(c, bucket, err) : rc;
    }
    c->group_buckets++;
    c->group_files += bucket->file_count;
    return rc;
}

static tn_rc take_buckets(struct compact *c, struct tn_err *err)
{
    void *window;
    tn_rc rc = tn_arena_need(&c->app->input, WINDOW_SIZE, "a table's buckets", &window, err);
    if (rc != TN_OK) {
        return rc;
    }
    c->snapshot_mark = tn_arena_mark(&c->app->input);
    rc = take_snapshot(c, err);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    tn_census_open(&c->census, tn_table_root(c->table), &c->snapshot, tn_table_schema(c->table),
                   window, WINDOW_SIZE, &c->app->workers[TN_LANE_SHORT]);
    while (rc == TN_OK) {
        const struct tn_census_bucket *bucket;
        rc = tn_census_next(&c->census, &bucket, err);
        if (rc == TN_OK) {
            rc = take_bucket(c, bucket, err);
        }
    }
    return rc == TN_ABSENT ? end_group(c, err) : rc;
}

static tn_rc report(struct compact *c, struct tn_err *err)
{
    static const char *const columns[] = {"buckets", "compactions", "bytes_written", "snapshot"};
    static struct tn_cells cells;
    const struct tn_table_counts *counts = tn_table_counts(c->table);
    tn_arena_reset(&c->app->input, 0);
    tn_rc rc = tn_cells_open(&cells, columns, 4, &c->app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_number(&cells, c->bucket_count);
    tn_cells_number(&cells, (int64_t)counts->compactions);
    tn_cells_number(&cells, (int64_t)counts->compacted_bytes);
    if (c->snapshot_id > 0) {
        tn_cells_number(&cells, c->snapshot_id);
    } else {
        tn_cells_text(&cells, NULL);
    }
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

/* Buckets that could be compacted were; `*code` says what is left. */
static tn_rc compact(struct tn_app *app, const char *name, int *code, struct tn_err *err)
{
    static struct compact c;
    char who[96];
    (void)snprintf(who, sizeof who, "tarn compact, process %ld", (long)getpid());
    c = (struct compact){.app = app, .name = name};
    struct tn_table_spec spec = {.name = name,
                                 .who = who,
                                 .identifier = -1,
                                 .compact = true,
                                 .full = o.full,
                                 .dedicated = true,
                                 .committed = note_commit,
                                 .compaction_failed = note_failure,
                                 .user_data = &c};
    tn_rc rc = tn_table_open(&app->env, &spec, &c.table, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? tn_suggest_table(app, name, err) : rc;
    }
    rc = take_buckets(&c, err);
    if (rc == TN_OK) {
        rc = report(&c, err);
    }
    uint32_t behind;
    tn_rc behind_rc = tn_table_behind(c.table, &behind);
    if (behind > 0) {
        *code = behind_rc == TN_CORRUPT ? tn_exit_code(behind_rc) : 1;
    }
    tn_table_close(c.table);
    return rc;
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
    struct tn_pick_rules rules = tn_table_pick_rules(&e->reader.options);
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
