/* The task that reads the live files of buckets: one pass over the manifests for all that wait. */
#include "base/hash.h"
#include "table/state.h"

enum {
    SMALL_PERCENT = 70,      /* Paimon: compaction.small-file-ratio 0.7 */
    UNAWARE_FILES_MAX = 256, /* of a table without buckets that are kept in mind */
};

/* Of a table without buckets only small files are kept in mind, and not more than a few
 * compactions' worth. */
static bool worth_compacting(struct tn_load *load, const struct tn_table *t,
                             const struct tn_entry *entry)
{
    int64_t small = t->options.target_file_size / 100 * SMALL_PERCENT;
    return entry->file.file_size < small && load->file_count < UNAWARE_FILES_MAX;
}

/* ---- the buckets that wait, by partition ---- */

static uint32_t slot_after(const struct tn_load_task *task, uint32_t slot)
{
    return (slot + 1) % task->slot_count;
}

static uint32_t first_slot(const struct tn_load_task *task, struct tn_bytes partition)
{
    return (uint32_t)tn_hash_64(partition, 0) % task->slot_count;
}

static void add_bucket(struct tn_load_task *task, struct tn_bucket *bucket)
{
    uint32_t slot = first_slot(task, bucket->partition);
    while (task->slots[slot]) {
        slot = slot_after(task, slot);
    }
    task->slots[slot] = (uint8_t)(task->count + 1);
    task->partitions[task->count] = bucket->partition;
    task->loads[task->count++] = (struct tn_load){.bucket = bucket};
}

/* The next one of this partition from `*slot` on, which moves behind it; NULL: no more. */
static struct tn_load *next_of(struct tn_load_task *task, struct tn_bytes partition, uint32_t *slot)
{
    while (task->slots[*slot]) {
        struct tn_load *load = &task->loads[task->slots[*slot] - 1];
        *slot = slot_after(task, *slot);
        if (tn_bytes_equal(load->bucket->partition, partition)) {
            return load;
        }
    }
    return NULL;
}

static bool wanted_partition(void *user, const struct tn_entry *entry)
{
    struct tn_load_task *task = user;
    uint32_t slot = first_slot(task, entry->partition);
    return next_of(task, entry->partition, &slot) != NULL;
}

/* ---- files ---- */

static tn_rc keep_file(struct tn_load_task *task, struct tn_load *load,
                       const struct tn_entry *entry, struct tn_err *err)
{
    const struct tn_table *t = task->table;
    if (t->options.bucket < 0 && !worth_compacting(load, t, entry)) {
        return TN_OK;
    }
    if (!tn_schemas_find(&t->schemas, entry->file.schema_id)) {
        return tn_err_set(err, TN_CONFLICT, 0, "%s names schema %lld, which came after this start",
                          entry->file.file_name, (long long)entry->file.schema_id);
    }
    struct tn_level_file *file;
    tn_rc rc = tn_level_file_make(t->env->levels, &entry->file, entry->file.level, &file, err);
    if (rc == TN_OK) {
        file->next = load->files;
        load->files = file;
        load->file_count++;
    }
    return rc;
}

/* All of a partition's files are looked at: a file with another number of buckets would make rows
 * of one key lie in two places. */
static tn_rc gather_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_load_task *task = user;
    int32_t total = task->table->options.bucket;
    uint32_t slot = first_slot(task, entry->partition);
    struct tn_load *load;
    while ((load = next_of(task, entry->partition, &slot))) {
        if (entry->total_buckets != total) {
            return tn_err_set(
                err, TN_INVALID, 0,
                "%s has files of %d buckets, the table's option says %d; rescale it first",
                load->bucket->dir, entry->total_buckets, total);
        }
        if (entry->bucket == load->bucket->number) {
            return keep_file(task, load, entry, err);
        }
    }
    return TN_OK;
}

static tn_rc load_files(struct tn_load_task *task, struct tn_worker *worker, struct tn_err *err)
{
    struct tn_table *t = task->table;
    struct tn_live_filter filter = {.entry = wanted_partition,
                                    .user = task,
                                    .partitions = task->partitions,
                                    .partition_count = task->count};
    int64_t id;
    tn_rc rc = tn_snapshot_latest(t->env->io, t->root, &worker->arena, &id, err);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    struct tn_snapshot snapshot;
    if (rc == TN_OK) {
        rc = tn_snapshot_read(t->env->io, t->root, id, &worker->arena, &snapshot, err);
    }
    if (rc == TN_OK && id == task->trail_id) {
        tn_trail_read(&task->trail, t->root, &snapshot, worker);
    }
    if (rc == TN_OK) {
        rc = tn_live_each(t->root, &snapshot, t->schema, &filter, worker, gather_file, task, err);
    }
    return rc;
}

/* Tables without buckets append beside whatever is there: only who compacts looks at it. */
static bool needs_files(const struct tn_table *t)
{
    return t->options.bucket > 0 || tn_table_may_compact(t);
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

/* ---- what is not committed yet ---- */

static const struct tn_round_removal *removal_of(const struct tn_round *round,
                                                 const struct tn_bucket *bucket,
                                                 const struct tn_level_file *file)
{
    const struct tn_round_removal *r = round->removed;
    while (r && (r->removal.bucket != bucket->number || r->removal.level != file->level ||
                 strcmp(r->removal.file_name, file->name) != 0 ||
                 !tn_bytes_equal(r->removal.partition, bucket->partition))) {
        r = r->next;
    }
    return r;
}

/* What compactions of this round did to a file that was there before: with OK and *file NULL it is
 * gone, else it is the file or, moved up, another. The reference goes over to the result. */
static tn_rc pass_round(struct tn_table *t, const struct tn_round *round,
                        const struct tn_bucket *bucket, struct tn_level_file **file,
                        struct tn_err *err)
{
    const struct tn_round_removal *removal = *file ? removal_of(round, bucket, *file) : NULL;
    if (!removal) {
        return TN_OK;
    }
    struct tn_level_file *moved = NULL;
    tn_rc rc = TN_OK;
    if (removal->removal.upgrade_level >= 0) {
        rc = tn_level_file_move(t->env->levels, *file, removal->removal.upgrade_level, &moved, err);
    }
    if (rc == TN_OK) {
        tn_level_file_drop(t->env->levels, *file);
        *file = moved;
    }
    if (moved) {
        moved->round = round->number;
        moved->compacted = true;
    }
    return rc;
}

/* The open rounds, oldest first. */
static uint32_t rounds_of(const struct tn_table *t, const struct tn_round *rounds[2])
{
    uint32_t count = 0;
    if (t->closing) {
        rounds[count++] = t->closing;
    }
    rounds[count++] = t->open;
    return count;
}

/* A file that is there since before round number `from` of them, as it is now. */
static tn_rc put_file(struct tn_table *t, struct tn_bucket *bucket, uint32_t from,
                      struct tn_level_file *file, struct tn_err *err)
{
    const struct tn_round *rounds[2];
    uint32_t count = rounds_of(t, rounds);
    tn_rc rc = TN_OK;
    tn_level_file_hold(file);
    for (uint32_t i = from; rc == TN_OK && i < count; i++) {
        rc = pass_round(t, rounds[i], bucket, &file, err);
    }
    if (rc == TN_OK && file) {
        rc = tn_work_edit_levels(t, bucket, NULL, 0, &file, 1, err);
    }
    if (file) {
        tn_level_file_drop(t->env->levels, file);
    }
    return rc;
}

static tn_rc put_entries(struct tn_table *t, struct tn_bucket *bucket, uint32_t from,
                         const struct tn_round_entry *list, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (const struct tn_round_entry *e = list; rc == TN_OK && e; e = e->next) {
        if (!e->gone && e->entry.bucket == bucket->number &&
            tn_bytes_equal(e->entry.partition, bucket->partition)) {
            rc = put_file(t, bucket, from, e->file, err);
        }
    }
    return rc;
}

/* The files of the snapshot, and what this process made of them and has not committed: a bucket may
 * be closed and opened within a round. */
static tn_rc take_files(struct tn_table *t, struct tn_load *load, struct tn_err *err)
{
    struct tn_bucket *bucket = load->bucket;
    const struct tn_round *rounds[2];
    uint32_t count = rounds_of(t, rounds);
    tn_levels_drop(t->env->levels, bucket->levels);
    bucket->levels = NULL;
    tn_rc rc = TN_OK;
    for (struct tn_level_file *file = load->files; rc == TN_OK && file; file = file->next) {
        rc = put_file(t, bucket, 0, file, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = put_entries(t, bucket, i, rounds[i]->added, err);
        if (rc == TN_OK) { /* later removals only: those of its own round name what was before */
            rc = put_entries(t, bucket, i + 1, rounds[i]->compacted, err);
        }
    }
    return rc;
}

/* ---- the task ---- */

static tn_rc load_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_load_task *load = (struct tn_load_task *)(void *)task;
    struct tn_worker *worker = context;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_work_check_there(load->table, err);
    for (uint32_t i = 0; rc == TN_OK && i < load->count; i++) {
        rc = worker->io->vtable->make_dir(worker->io, load->loads[i].bucket->dir, err);
    }
    if (rc == TN_OK && needs_files(load->table)) {
        rc = load_files(load, worker, err);
    }
    tn_arena_reset(&worker->arena, mark);
    const char *what = load->count == 1 ? load->loads[0].bucket->dir : load->table->root;
    return rc == TN_OK ? rc : tn_err_in(err, "open %s", what);
}

static void drop_gathered(struct tn_load_task *task)
{
    for (uint32_t i = 0; i < task->count; i++) {
        while (task->loads[i].files) {
            struct tn_level_file *file = task->loads[i].files;
            task->loads[i].files = file->next;
            tn_level_file_drop(task->table->env->levels, file);
        }
    }
}

static void make_ready(struct tn_table *t, struct tn_bucket *bucket)
{
    int64_t next = t->options.bucket > 0 ? tn_levels_max_sequence(bucket->levels) + 1 : 0;
    bucket->next_sequence = next > bucket->next_sequence ? next : bucket->next_sequence;
    bucket->state = TN_BUCKET_READY;
    bucket->unproven = tn_work_at_stop(t, bucket);
    /* What a full compaction that was refused, or never came, has left: another writer's, too. */
    bucket->unfolded =
        bucket->unfolded || tn_levels_has_above(bucket->levels, t->options.num_levels - 1);
    t->compact_due = true;
}

static void load_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_load_task *load = (struct tn_load_task *)(void *)task;
    struct tn_table *t = load->table;
    load->under_way = false;
    if (load->trail.id > 0 && load->trail.id == t->last_seen) {
        t->trail = load->trail;
    }
    for (uint32_t i = 0; rc == TN_OK && i < load->count; i++) {
        rc = take_files(t, &load->loads[i], &task->err);
        if (rc == TN_OK) {
            make_ready(t, load->loads[i].bucket);
        }
    }
    drop_gathered(load);
    if (rc == TN_AGAIN && (load->count > 1 || (!t->spec.dedicated && tn_buckets_close_one(t)))) {
        t->load_max = load->count > 1 ? load->count / 2 : 1; /* less at once, or more room */
        return;
    }
    t->load_max = t->places.loads;
    if (rc != TN_OK) {
        tn_table_fail(t, rc, &task->err);
    }
}

void tn_work_load(struct tn_table *table)
{
    struct tn_load_task *load = &table->load;
    *load = (struct tn_load_task){
        .task = {.execute = load_execute, .complete = load_complete, .lane = TN_LANE_SHORT},
        .table = table,
        .loads = load->loads,
        .partitions = load->partitions,
        .slots = load->slots,
        .slot_count = load->slot_count};
    memset(load->slots, 0, load->slot_count);
    if (table->spec.resolver && table->trail.id != table->last_seen) {
        load->trail_id = table->last_seen;
    }
    for (uint32_t i = 0; i < table->places.buckets && load->count < table->load_max; i++) {
        if (table->buckets[i].state == TN_BUCKET_LOADING) {
            add_bucket(load, &table->buckets[i]);
        }
    }
    if (load->count > 0) {
        load->under_way = true;
        tn_exec_submit(table->env->exec, &load->task);
    }
}
