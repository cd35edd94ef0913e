#include "app/round.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "app/suggest.h"
#include "commit/snapshot.h"
#include "table/census.h"
#include "table/table.h"

enum {
    GROUP_BUCKETS = 64,       /* half of what a table can have open */
    FILE_SIZE_GUESS = 400,    /* bytes of the levels heap a file takes, in two versions */
    WINDOW_SIZE = 128 * 1024, /* of the census: some 800 buckets a pass */
};

struct compact {
    const struct tn_compact_round_spec *spec;
    struct tn_compact_round *round;
    struct tn_app *app;
    struct tn_table *table;
    struct tn_census census;
    struct tn_snapshot snapshot;
    size_t snapshot_mark;
    uint32_t group_buckets;
    int64_t group_files;
};

static void note_commit(void *user, const struct tn_committed *committed)
{
    struct compact *c = user;
    if (committed->compact_id == 0) {
        return;
    }
    c->round->snapshot_id = committed->compact_id;
    if (!tn_common.quiet) {
        (void)fprintf(stderr, "committed snapshot=%" PRId64 " table=%s\n", committed->compact_id,
                      c->spec->table);
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
    struct tn_io *io = c->app->env.io;
    const char *root = tn_table_root(c->table);
    int64_t id;
    tn_arena_reset(&c->app->input, c->snapshot_mark);
    tn_rc rc = tn_snapshot_latest(io, root, &c->app->input, &id, err);
    if (rc == TN_OK) {
        c->round->seen_id = c->round->seen_id > 0 ? c->round->seen_id : id;
        rc = tn_snapshot_read(io, root, id, &c->app->input, &c->snapshot, err);
    }
    return rc;
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
bool tn_compact_may_be_due(const struct tn_options *options, bool full,
                           const struct tn_census_bucket *bucket)
{
    bool small_matters = options->optimization_interval_ms >= 0 || options->force_up_level0 ||
                         tn_options_need_lookup(options) || options->full_compaction_delta > 0 ||
                         options->changelog_producer == TN_CHANGELOG_FULL_COMPACTION ||
                         options->total_size_threshold >= 0 ||
                         options->incremental_size_threshold >= 0;
    if (full || small_matters) {
        return bucket->file_count > 1 || bucket->min_level < options->num_levels - 1;
    }
    return bucket->file_count >= options->compaction_trigger;
}

static bool stopped(void *user)
{
    const struct compact *c = user;
    return c->spec->stopped && c->spec->stopped();
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
        rc = stopped(c) ? tn_err_set(err, TN_CANCELED, 0, "stopped")
                        : tn_table_turn(c->table, true, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static tn_rc take_bucket(struct compact *c, const struct tn_census_bucket *bucket,
                         struct tn_err *err)
{
    c->round->bucket_count++;
    if (!tn_compact_may_be_due(tn_table_options(c->table), c->spec->full, bucket)) {
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

static tn_rc work(struct compact *c, struct tn_err *err)
{
    char who[96];
    (void)snprintf(who, sizeof who, "tarn compact, process %ld", (long)getpid());
    struct tn_table_spec spec = {.name = c->spec->table,
                                 .who = who,
                                 .identifier = -1,
                                 .compact = true,
                                 .full = c->spec->full,
                                 .dedicated = true,
                                 .dedicated_round = c->spec->number,
                                 .committed = note_commit,
                                 .compaction_failed = note_failure,
                                 .stopped = stopped,
                                 .user_data = c};
    tn_rc rc = tn_table_open(&c->app->env, &spec, &c->table, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? tn_suggest_table(c->app, c->spec->table, err) : rc;
    }
    const struct tn_options *options = tn_table_options(c->table);
    bool told = options->changelog_producer == TN_CHANGELOG_FULL_COMPACTION;
    c->round->full_every =
        options->full_compaction_delta > 0 ? options->full_compaction_delta : told;
    rc = take_buckets(c, err);
    const struct tn_table_counts *counts = tn_table_counts(c->table);
    c->round->compactions = counts->compactions;
    c->round->bytes_written = counts->compacted_bytes;
    c->round->behind_rc = tn_table_behind(c->table, &c->round->behind);
    tn_table_close(c->table);
    return rc;
}

tn_rc tn_compact_round(const struct tn_compact_round_spec *spec, struct tn_compact_round *round,
                       struct tn_err *err)
{
    static struct compact c;
    size_t mark = tn_arena_mark(&spec->app->input);
    *round = (struct tn_compact_round){0};
    c = (struct compact){.spec = spec, .round = round, .app = spec->app};
    tn_rc rc = work(&c, err);
    tn_arena_reset(&spec->app->input, mark);
    return rc;
}
