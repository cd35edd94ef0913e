/* The task that reads the live files of one bucket. */
#include "table/state.h"

enum {
    SMALL_PERCENT = 70,      /* Paimon: compaction.small-file-ratio 0.7 */
    UNAWARE_FILES_MAX = 256, /* of a table without buckets that are kept in mind */
};

struct gather {
    struct tn_load_task *load;
    const struct tn_bucket *bucket;
    int32_t total_buckets;
    uint32_t gathered;
};

/* Of a table without buckets only small files are kept in mind, and not more than a few
 * compactions' worth. */
static bool worth_compacting(struct gather *g, const struct tn_entry *entry)
{
    int64_t small = g->load->table->options.target_file_size / 100 * SMALL_PERCENT;
    return entry->file.file_size < small && g->gathered++ < UNAWARE_FILES_MAX;
}

/* All of a partition's files are looked at: a file with another number of buckets would make rows
 * of one key lie in two places. */
static tn_rc gather_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct gather *g = user;
    const struct tn_table *t = g->load->table;
    if (!tn_bytes_equal(entry->partition, g->bucket->partition)) {
        return TN_OK;
    }
    if (entry->total_buckets != g->total_buckets) {
        return tn_err_set(
            err, TN_INVALID, 0,
            "%s has files of %d buckets, the table's option says %d; rescale it first",
            g->bucket->dir, entry->total_buckets, g->total_buckets);
    }
    if (entry->bucket != g->bucket->number) {
        return TN_OK;
    }
    if (t->options.bucket < 0 && !worth_compacting(g, entry)) {
        return TN_OK;
    }
    if (!tn_schemas_find(&t->schemas, entry->file.schema_id)) {
        return tn_err_set(err, TN_CONFLICT, 0, "%s names schema %lld, which came after this start",
                          entry->file.file_name, (long long)entry->file.schema_id);
    }
    struct tn_level_file *file;
    tn_rc rc = tn_level_file_make(t->env->levels, &entry->file, entry->file.level, &file, err);
    if (rc == TN_OK) {
        file->next = g->load->files;
        g->load->files = file;
    }
    return rc;
}

static bool same_partition(void *user, const struct tn_entry *entry)
{
    const struct gather *g = user;
    return tn_bytes_equal(entry->partition, g->bucket->partition);
}

static tn_rc load_files(struct tn_load_task *load, struct tn_worker *worker, struct tn_err *err)
{
    struct tn_table *t = load->table;
    struct gather g = {load, load->bucket, t->options.bucket, 0};
    struct tn_live_filter filter = {.entry = same_partition, .user = &g};
    int64_t id;
    tn_rc rc = tn_snapshot_latest(t->env->io, t->root, &worker->arena, &id, err);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    struct tn_snapshot snapshot;
    if (rc == TN_OK) {
        rc = tn_snapshot_read(t->env->io, t->root, id, &worker->arena, &snapshot, err);
    }
    if (rc == TN_OK) {
        rc = tn_live_each(t->root, &snapshot, t->schema, &filter, worker, gather_file, &g, err);
    }
    return rc;
}

/* Tables without buckets append beside whatever is there: only who compacts looks at it. */
static bool needs_files(const struct tn_table *t)
{
    return t->options.bucket > 0 || tn_table_may_compact(t);
}

static tn_rc load_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_load_task *load = (struct tn_load_task *)task;
    struct tn_worker *worker = context;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = worker->io->vtable->make_dir(worker->io, load->bucket->dir, err);
    if (rc == TN_OK && needs_files(load->table)) {
        rc = load_files(load, worker, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "open %s", load->bucket->dir);
}

static void drop_gathered(struct tn_load_task *load)
{
    while (load->files) {
        struct tn_level_file *file = load->files;
        load->files = file->next;
        tn_level_file_drop(load->table->env->levels, file);
    }
}

tn_rc tn_work_edit_levels(struct tn_table *t, struct tn_bucket *bucket,
                          struct tn_level_file *const *removed, uint32_t removed_count,
                          struct tn_level_file *const *added, uint32_t added_count,
                          struct tn_err *err)
{
    struct tn_levels *levels;
    tn_rc rc = tn_levels_edit(t->env->levels, bucket->levels, removed, removed_count, added,
                              added_count, &t->key_types, &levels, err);
    if (rc == TN_OK) {
        tn_levels_drop(t->env->levels, bucket->levels);
        bucket->levels = levels;
    }
    return rc;
}

/* After a reload: what this process has flushed and not committed belongs to the bucket, too. */
static tn_rc add_uncommitted(struct tn_table *t, const struct tn_round *round,
                             struct tn_bucket *bucket, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (struct tn_round_entry *e = round->added; rc == TN_OK && e; e = e->next) {
        if (e->entry.bucket == bucket->number &&
            tn_bytes_equal(e->entry.partition, bucket->partition)) {
            rc = tn_work_edit_levels(t, bucket, NULL, 0, &e->file, 1, err);
        }
    }
    return rc;
}

static tn_rc take_files(struct tn_load_task *load, struct tn_err *err)
{
    struct tn_table *t = load->table;
    struct tn_bucket *bucket = load->bucket;
    tn_levels_drop(t->env->levels, bucket->levels);
    bucket->levels = NULL;
    tn_rc rc = TN_OK;
    for (struct tn_level_file *file = load->files; rc == TN_OK && file; file = file->next) {
        rc = tn_work_edit_levels(t, bucket, NULL, 0, &file, 1, err);
    }
    if (rc == TN_OK) {
        rc = add_uncommitted(t, t->open, bucket, err);
    }
    return rc == TN_OK && t->closing ? add_uncommitted(t, t->closing, bucket, err) : rc;
}

static void load_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_load_task *load = (struct tn_load_task *)task;
    struct tn_table *t = load->table;
    struct tn_bucket *bucket = load->bucket;
    load->under_way = false;
    if (rc == TN_OK) {
        rc = take_files(load, &task->err);
    }
    drop_gathered(load);
    if (rc != TN_OK) {
        tn_table_fail(t, rc, &task->err);
        return;
    }
    int64_t next = t->options.bucket > 0 ? tn_levels_max_sequence(bucket->levels) + 1 : 0;
    bucket->next_sequence = next > bucket->next_sequence ? next : bucket->next_sequence;
    bucket->state = TN_BUCKET_READY;
    bucket->unproven = tn_work_at_stop(t, bucket);
    t->compact_due = true;
}

void tn_work_load(struct tn_table *table, struct tn_bucket *bucket)
{
    struct tn_load_task *load = &table->load;
    *load = (struct tn_load_task){
        .task = {.execute = load_execute, .complete = load_complete, .lane = TN_LANE_SHORT},
        .table = table,
        .bucket = bucket,
        .under_way = true};
    tn_exec_submit(table->env->exec, &load->task);
}
