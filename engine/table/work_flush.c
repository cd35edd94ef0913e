/* The task that flushes a bucket's oldest frozen memtable. */
#include "base/check.h"
#include "table/state.h"

static tn_rc flush_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_flush_task *flush = (struct tn_flush_task *)task;
    struct tn_worker *worker = context;
    flush->mark = tn_arena_mark(&worker->arena);
    return tn_flush(&flush->spec, worker, &flush->files, err);
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
    t->broken = t->broken || rc != TN_OK; /* some of the memtable's files may be in the round */
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

static void flush_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_flush_task *flush = (struct tn_flush_task *)task;
    struct tn_table *t = flush->table;
    flush->under_way = false;
    flush->bucket->flushing = false;
    if (rc == TN_OK) {
        rc = take_flushed(flush, &task->err);
    }
    tn_arena_reset(&t->env->workers[TN_LANE_LONG]->arena, flush->mark);
    if (rc != TN_OK) {
        tn_table_fail(t, rc, &task->err);
        return;
    }
    t->pages_short = false;
    t->compact_due = true;
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
    bucket->flushing = true;
    tn_exec_submit(table->env->exec, &flush->task);
}
