/* The task that flushes a bucket's oldest frozen memtable. */
#include "base/check.h"
#include "table/state.h"

enum { STATE_GONE_MAX = 8 }; /* flushes in a row; then the table is damaged: a guess */

/* ---- the state before, of a table with a resolver ---- */

enum { LEFT_PARTS = 8 }; /* of the worker's memory is for the names and records of files */

static tn_rc open_before(void *user, struct tn_worker *worker, uint64_t keys,
                         struct tn_state **state, struct tn_err *err)
{
    struct tn_flush_task *flush = user;
    struct tn_table *t = flush->table;
    const struct tn_levels *levels = flush->held;
    struct tn_key_state_spec spec = {.order = &t->order,
                                     .read = &t->read,
                                     .schemas = &t->schemas,
                                     .keys = &t->key_types,
                                     .dir = flush->bucket->dir,
                                     .indexes = tn_changes_indexes(&t->changes),
                                     .asks = keys};
    uint32_t count = levels ? levels->count : 0;
    size_t size = tn_arena_free(&worker->arena) / LEFT_PARTS * (LEFT_PARTS - 1);
    size_t most = count * (size_t)TN_STATE_RUN_SIZE;
    tn_rc rc = tn_key_state_open(&flush->state, &spec, levels ? levels->files : NULL, count,
                                 size < most ? size : most, worker, err);
    *state = &flush->state.state;
    return rc;
}

static void close_before(void *user)
{
    struct tn_flush_task *flush = user;
    tn_key_state_close(&flush->state);
}

/* ---- the task ---- */

static tn_rc flush_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_flush_task *flush = (struct tn_flush_task *)(void *)task;
    struct tn_worker *worker = context;
    flush->mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_work_check_there(flush->table, err);
    return rc == TN_OK ? tn_flush(&flush->spec, worker, &flush->files, err) : rc;
}

static struct tn_round *round_of(struct tn_table *t, int64_t number)
{
    struct tn_round *round = t->open->number == number ? t->open : t->closing;
    TN_CHECK(round && round->number == number);
    return round;
}

tn_rc tn_work_add_file(struct tn_table *t, struct tn_round *round, struct tn_bucket *bucket,
                       const struct tn_file_meta *meta, bool compacted, struct tn_err *err)
{
    struct tn_level_file *file;
    tn_rc rc = tn_level_file_make(t->env->levels, meta, meta->level, &file, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_round_add(round, bucket->partition, bucket->number, t->options.bucket, meta, file,
                      compacted, err);
    if (rc == TN_OK) {
        rc = tn_work_edit_levels(t, bucket, NULL, 0, &file, 1, err);
    }
    tn_level_file_drop(t->env->levels, file);
    return rc;
}

/* Rows to come are newer than those that were. */
static void keep_ahead(struct tn_bucket *bucket, int64_t sequence)
{
    if (bucket->next_sequence <= sequence) {
        bucket->next_sequence = sequence + 1;
    }
}

static tn_rc take_flushed(struct tn_flush_task *flush, struct tn_err *err)
{
    struct tn_table *t = flush->table;
    struct tn_bucket *bucket = flush->bucket;
    struct tn_frozen *frozen = bucket->frozen;
    struct tn_round *round = round_of(t, frozen->round);
    tn_rc rc = TN_OK;
    for (struct tn_flush_file *file = flush->files; rc == TN_OK && file; file = file->next) {
        rc = file->changelog ? tn_round_tell(round, bucket->partition, bucket->number,
                                             t->options.bucket, &file->meta, false, err)
                             : tn_work_add_file(t, round, bucket, &file->meta, false, err);
        t->counts.flushed_bytes += (uint64_t)file->meta.file_size;
    }
    if (rc == TN_OK && t->spec.resolver) {
        rc = tn_round_resolved(round, tn_bucket_name(bucket->partition, bucket->number), err);
        round->letters += flush->counts.letters;
        t->counts.letters += flush->counts.letters;
        t->counts.rows_resolved += flush->counts.rows;
        t->counts.keys_looked_up = t->changes.keys_asked += flush->state.asked;
        t->counts.lookup_rows_read = t->changes.rows_read += flush->state.rows_read;
        keep_ahead(bucket, frozen->memtable.max_sequence + flush->spec.sequence_shift);
    }
    if (rc != TN_OK) { /* some of the memtable's files may be in the round */
        tn_table_break(t, rc, err);
    }
    if (rc == TN_OK) {
        bucket->frozen = frozen->next;
        if (!bucket->frozen) {
            bucket->frozen_end = &bucket->frozen;
        }
        tn_memtable_drop(&frozen->memtable);
        tn_pool_give(&t->frozen_slots, frozen);
        t->counts.flushes++;
        bucket->unfolded = true;
        bucket->fresh = true;
        bucket->owes = true;
    }
    return rc;
}

/* A compaction leaves fewer runs to look up, and another after it fewer yet; when it does not help
 * the error is said. */
static enum tn_crowd crowd_of(const struct tn_flush_task *flush)
{
    const struct tn_bucket *bucket = flush->bucket;
    if (!flush->spec.resolver || !tn_table_may_compact(flush->table) ||
        tn_levels_runs(bucket->levels, NULL, 0) <= 1) {
        return TN_CROWD_NONE;
    }
    bool presses = flush->ahead && bucket->crowded <= TN_CROWD_WAITS;
    return presses ? TN_CROWD_PRESSES : bucket->crowded ? TN_CROWD_NONE : TN_CROWD_WAITS;
}

/* What failed can be done with other levels, which come; else the error is said. */
static bool waits_for_levels(struct tn_flush_task *flush, tn_rc rc)
{
    struct tn_table *t = flush->table;
    struct tn_bucket *bucket = flush->bucket;
    bucket->crowded = (uint8_t)(rc == TN_AGAIN ? crowd_of(flush) : TN_CROWD_NONE);
    t->compact_due = t->compact_due || bucket->crowded;
    /* Another's compaction took a file away: levels that are read again say where its rows are. */
    bool gone = rc == TN_CORRUPT && flush->spec.resolver && t->state_gone++ < STATE_GONE_MAX;
    t->reload = t->reload || gone;
    return bucket->crowded || gone;
}

static void flush_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_flush_task *flush = (struct tn_flush_task *)(void *)task;
    struct tn_table *t = flush->table;
    flush->under_way = false;
    flush->bucket->flushing = false;
    tn_levels_drop(t->env->levels, flush->held);
    flush->held = NULL;
    bool waits = waits_for_levels(flush, rc);
    if (rc == TN_OK) {
        rc = take_flushed(flush, &task->err);
    }
    tn_arena_reset(&t->env->workers[TN_LANE_LONG]->arena, flush->mark);
    if (waits) {
        return;
    }
    if (rc != TN_OK) {
        tn_table_fail(t, rc, &task->err);
        return;
    }
    t->state_gone = 0;
    t->pages_short = false;
    t->compact_due = true;
}

/* Rows that came before another writer's did get larger numbers than those: finished rows win by
 * arrival, wherever they are read. */
static int64_t sequence_shift(const struct tn_bucket *bucket)
{
    int64_t first = bucket->frozen->memtable.min_sequence;
    int64_t next = tn_levels_max_sequence(bucket->levels) + 1;
    return next > first ? next - first : 0;
}

static void resolve_in(struct tn_flush_task *flush)
{
    struct tn_table *t = flush->table;
    flush->before = (struct tn_flush_before){open_before, close_before, flush};
    flush->held = tn_work_ahead(t, flush->bucket);
    flush->ahead = flush->held != flush->bucket->levels;
    flush->spec.resolver = t->spec.resolver;
    flush->spec.letters = t->spec.letters;
    flush->spec.before = &flush->before;
    flush->spec.sequence_shift = sequence_shift(flush->bucket);
    flush->spec.counts = &flush->counts;
}

void tn_work_flush(struct tn_table *table, struct tn_bucket *bucket)
{
    struct tn_flush_task *flush = &table->flush;
    *flush = (struct tn_flush_task){
        .task = {.execute = flush_execute, .complete = flush_complete, .lane = TN_LANE_LONG},
        .table = table,
        .bucket = bucket,
        .spec = {.order = &table->order,
                 .schema = table->schema,
                 .options = &table->options,
                 .memtable = &bucket->frozen->memtable,
                 .engine = table->engine,
                 .changelog = table->options.changelog_producer == TN_CHANGELOG_INPUT,
                 .dir = bucket->dir,
                 .uuid = bucket->uuid,
                 .counter = &bucket->counter,
                 .block_size = table->env->block_size,
                 .row_size_max = table->row_size_max},
        .under_way = true};
    if (table->spec.resolver) {
        resolve_in(flush);
    }
    bucket->flushing = true;
    tn_exec_submit(table->env->exec, &flush->task);
}
