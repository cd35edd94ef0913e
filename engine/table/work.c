#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "file/names.h"
#include "table/state.h"

enum {
    MERGE_MAX =
        24, /* runs merged at once; of more, the oldest go first: 170 KB each on the host board */
    SLICE_SIZE = 16 * 1024 * 1024, /* bytes of rows a slice: about 100 ms of work: a guess */
    SMALL_PERCENT = 70, /* Paimon: compaction.small-file-ratio 0.7 */
    UNAWARE_FILES_MAX = 256,
    ENTRY_SIZE_GUESS = 1024,       /* of a round's memory a file takes at the least */
};

/* ---- load: the live files of one bucket ---- */

struct gather {
    struct tn_load_task *load;
    const struct tn_bucket *bucket;
    int32_t total_buckets;
    uint32_t gathered;
};

/* Of a table without buckets only small files are kept in mind, and not more than a few compactions' worth. */
static bool worth_compacting(struct gather *g, const struct tn_entry *entry)
{
    int64_t small = g->load->table->options.target_file_size / 100 * SMALL_PERCENT;
    return entry->file.file_size < small && g->gathered++ < UNAWARE_FILES_MAX;
}

/* All of a partition's files are looked at: a file with another number of buckets would make rows
 * of one key lie in two places (behaviour spec, 8.3). */
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

static tn_rc edit_levels(struct tn_table *t, struct tn_bucket *bucket,
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
            rc = edit_levels(t, bucket, NULL, 0, &e->file, 1, err);
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
        rc = edit_levels(t, bucket, NULL, 0, &file, 1, err);
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

/* ---- flush ---- */

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

static tn_rc add_file(struct tn_table *t, struct tn_round *round, struct tn_bucket *bucket,
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
        rc = edit_levels(t, bucket, NULL, 0, &file, 1, err);
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
        rc = add_file(t, round, bucket, &file->meta, false, err);
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
                 .dir = bucket->dir,
                 .uuid = bucket->uuid,
                 .counter = &bucket->counter,
                 .block_size = table->env->block_size},
        .under_way = true};
    bucket->flushing = true;
    tn_exec_submit(table->env->exec, &flush->task);
}

/* ---- compaction ---- */

struct tn_pick_rules tn_table_pick_rules(const struct tn_options *options)
{
    return (struct tn_pick_rules){.max_size_amplification = options->max_size_amplification,
                                  .size_ratio = options->size_ratio,
                                  .trigger = options->compaction_trigger,
                                  .num_levels = options->num_levels,
                                  .force_level0 = options->force_up_level0,
                                  .optimization_interval_ms = options->optimization_interval_ms,
                                  .since_full_ms = -1,
                                  .total_size_threshold = options->total_size_threshold,
                                  .incremental_size_threshold =
                                      options->incremental_size_threshold};
}

static void set_busy(const struct tn_slice_task *slice, bool busy)
{
    for (uint32_t i = 0; i < slice->compaction.file_count; i++) {
        slice->compaction.files[i]->busy = busy;
    }
}

/* Which files of the levels version a unit is, and where it goes. */
struct unit {
    struct tn_level_file *const *files;
    uint32_t count;
    int32_t output_level;
    int32_t level_max;
    int32_t behind; /* the highest level with files outside the unit, -1: none */
};

static tn_rc plan_compaction(struct tn_table *t, struct tn_bucket *bucket, struct unit unit,
                             struct tn_err *err)
{
    struct tn_slice_task *slice = &t->slice;
    struct tn_compact_spec spec = {.order = &t->order,
                                   .read = &t->read,
                                   .schemas = &t->schemas,
                                   .schema = t->schema,
                                   .options = &t->options,
                                   .keys = &t->key_types,
                                   .dir = bucket->dir,
                                   .uuid = bucket->uuid,
                                   .counter = &bucket->counter,
                                   .output_level = unit.output_level,
                                   .drop_deletes =
                                       unit.output_level != 0 && unit.output_level >= unit.behind,
                                   .to_last_level = unit.output_level == unit.level_max,
                                   .block_size = t->env->block_size,
                                   .row_size_max = t->env->row_size_max};
    tn_arena_reset(&slice->arena, 0);
    tn_rc rc = tn_compaction_begin(&slice->compaction, &spec, unit.files, unit.count, &slice->arena,
                                   err);
    if (rc == TN_OK) {
        slice->bucket = bucket;
        slice->held = bucket->levels;
        slice->held->refs++;
        slice->active = true;
        bucket->compacting = true;
        set_busy(slice, true);
    }
    return rc;
}

/* More runs than can be merged at once: the oldest of them go to the highest level, where nothing
 * older is, and newer ones stay for the next time. */
static struct unit oldest_runs(const struct tn_levels *levels, uint32_t run_count,
                               int32_t level_max)
{
    uint32_t first = tn_levels_files_of(levels, run_count - MERGE_MAX);
    return (struct unit){levels->files + first, levels->count - first, level_max, level_max, -1};
}

static struct unit pick_unit(const struct tn_table *t, const struct tn_bucket *bucket,
                             const struct tn_run *runs, uint32_t count)
{
    struct tn_pick_rules rules = tn_table_pick_rules(&t->options);
    if (bucket->last_full_ms >= 0) {
        rules.since_full_ms = t->env->clock->vtable->now_ms(t->env->clock) - bucket->last_full_ms;
    }
    struct tn_pick pick =
        t->spec.full ? tn_pick_full(runs, count, &rules) : tn_pick(runs, count, &rules);
    int32_t level_max = tn_pick_level_max(runs, count, &rules);
    if (pick.take > MERGE_MAX) {
        return oldest_runs(bucket->levels, count, level_max);
    }
    uint32_t files = tn_levels_files_of(bucket->levels, pick.take);
    return (struct unit){bucket->levels->files, files, pick.output_level, level_max,
                         tn_levels_highest_behind(bucket->levels, files)};
}

/* By the numbers of their rows; without buckets all begin with 0, and time decides. */
static void put_oldest_first(struct tn_level_file **files, uint32_t count,
                             struct tn_level_file *file)
{
    uint32_t at = count;
    for (; at > 0; at--) {
        const struct tn_level_file *before = files[at - 1];
        if (before->min_sequence != file->min_sequence
                ? before->min_sequence < file->min_sequence
                : before->creation_time_ms <= file->creation_time_ms) {
            break;
        }
        files[at] = files[at - 1];
    }
    files[at] = file;
}

static tn_rc pick_append_unit(struct tn_table *t, struct tn_bucket *bucket, bool *picked,
                              struct tn_err *err)
{
    const struct tn_levels *levels = bucket->levels;
    uint32_t count = levels ? levels->count : 0;
    struct tn_arena *scratch = t->env->arena;
    size_t mark = tn_arena_mark(scratch);
    void *memory;
    tn_rc rc = tn_arena_need(scratch,
                             (count + 1) * (sizeof(int64_t) + sizeof(struct tn_level_file *)),
                             "an append bucket's files", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    int64_t *sizes = memory;
    struct tn_level_file **files = (struct tn_level_file **)(void *)(sizes + count + 1);
    for (uint32_t i = 0; i < count; i++) {
        put_oldest_first(files, i, levels->files[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = files[i]->size;
    }
    struct tn_append_pick pick =
        tn_pick_append(sizes, count, t->options.target_file_size,
                       (uint32_t)t->options.min_file_num, t->spec.full);
    *picked = pick.count > 0;
    if (*picked) {
        struct unit unit = {files + pick.first, pick.count, 0, -1, -1};
        rc = plan_compaction(t, bucket, unit, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

bool tn_work_pick(struct tn_table *table, struct tn_bucket *bucket)
{
    if (!table->keyed) {
        struct tn_err append_err = {0};
        bool picked = false;
        tn_rc append_rc = pick_append_unit(table, bucket, &picked, &append_err);
        if (append_rc != TN_OK) {
            tn_table_fail(table, append_rc, &append_err);
        }
        return append_rc == TN_OK && picked;
    }
    struct tn_arena *scratch = table->env->arena;
    size_t mark = tn_arena_mark(scratch);
    uint32_t count = tn_levels_runs(bucket->levels, NULL, 0);
    struct tn_err err = {0};
    void *runs;
    tn_rc rc = tn_arena_need(scratch, (count + 1) * sizeof(struct tn_run), "runs", &runs, &err);
    struct unit unit = {0};
    if (rc == TN_OK) {
        (void)tn_levels_runs(bucket->levels, runs, count);
        unit = pick_unit(table, bucket, runs, count);
    }
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK && unit.count > 0) {
        rc = plan_compaction(table, bucket, unit, &err);
    }
    if (rc != TN_OK) {
        tn_table_fail(table, rc, &err);
    }
    return rc == TN_OK && unit.count > 0;
}

static tn_rc slice_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_slice_task *slice = (struct tn_slice_task *)task;
    if (slice->compaction.finished) {
        return TN_OK;
    }
    return tn_compaction_slice(&slice->compaction, context, SLICE_SIZE, err);
}

static void slice_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_slice_task *slice = (struct tn_slice_task *)task;
    slice->under_way = false;
    slice->table->counts.slices++;
    if (rc != TN_OK) {
        tn_work_abort_compaction(slice->table);
        slice->table->compact_due = true;
        tn_table_fail(slice->table, rc, &task->err);
    }
}

void tn_work_slice(struct tn_table *table)
{
    struct tn_slice_task *slice = &table->slice;
    slice->task = (struct tn_task){
        .execute = slice_execute, .complete = slice_complete, .lane = TN_LANE_LONG};
    slice->table = table;
    slice->under_way = true;
    tn_exec_submit(table->env->exec, &slice->task);
}

static void end_compaction(struct tn_table *t)
{
    struct tn_slice_task *slice = &t->slice;
    set_busy(slice, false);
    slice->bucket->compacting = false;
    tn_levels_drop(t->env->levels, slice->held);
    slice->held = NULL;
    slice->active = false;
}

void tn_work_abort_compaction(struct tn_table *table)
{
    if (table->slice.active) {
        tn_compaction_abort(&table->slice.compaction, table->env->io);
        end_compaction(table);
    }
}

/* A result belongs to the closing round if each of its sources is committed or in that round;
 * nothing may be removed before it was added. */
static struct tn_round *round_for_result(struct tn_table *t)
{
    const struct tn_slice_task *slice = &t->slice;
    if (!t->closing || t->closing->state != TN_ROUND_DRAINING) {
        return t->open;
    }
    for (uint32_t i = 0; i < slice->compaction.file_count; i++) {
        int64_t round = slice->compaction.files[i]->round;
        if (round != 0 && round != t->closing->number) {
            return t->open;
        }
    }
    return t->closing;
}

static bool has_room(const struct tn_slice_task *slice, const struct tn_round *round)
{
    size_t need = slice->compaction.file_count * (size_t)512;
    for (const struct tn_compact_output *o = slice->compaction.outputs; o; o = o->next) {
        const struct tn_file_meta *m = &o->meta;
        need += ENTRY_SIZE_GUESS + m->min_key.size + m->max_key.size +
                2 * (m->key_stats.min.size + m->value_stats.min.size + m->value_stats.max.size) +
                16 * (size_t)m->value_stats.null_count_count;
    }
    return need < tn_arena_free(&round->arena);
}

/* One source leaves: out of the round where this very round made it, else as a removal. */
static tn_rc remove_source(struct tn_table *t, struct tn_round *round,
                           const struct tn_level_file *file, int32_t upgrade_level,
                           struct tn_err *err)
{
    const struct tn_bucket *bucket = t->slice.bucket;
    if (file->compacted && file->round == round->number) {
        if (tn_round_upgrade_again(round, file, upgrade_level)) {
            return TN_OK;
        }
        if (upgrade_level < 0 && tn_round_forget(round, file)) {
            return tn_round_discard(round, bucket->dir, file->name, err);
        }
    }
    return tn_round_remove(round, bucket->partition, bucket->number, file, upgrade_level, err);
}

/* An output of this round that is moved up within it: its entry just gets the other level. */
static bool relevel_entry(struct tn_round *round, const struct tn_level_file *file,
                          struct tn_level_file *moved, struct tn_heap *heap)
{
    for (struct tn_round_entry *e = round->compacted; e; e = e->next) {
        if (e->file == file && !e->gone) {
            e->entry.file.level = moved->level;
            e->file = moved;
            tn_level_file_hold(moved);
            tn_level_file_drop(heap, (struct tn_level_file *)(uintptr_t)file);
            return true;
        }
    }
    return false;
}

static tn_rc move_up(struct tn_table *t, struct tn_round *round, struct tn_level_file *file,
                     struct tn_err *err)
{
    int32_t level = t->slice.compaction.spec.output_level;
    if (file->level == level) {
        return TN_OK; /* it stays as it is */
    }
    struct tn_level_file *moved;
    tn_rc rc = tn_level_file_move(t->env->levels, file, level, &moved, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = edit_levels(t, t->slice.bucket, &file, 1, &moved, 1, err);
    bool own = file->compacted && file->round == round->number;
    if (rc == TN_OK && !(own && relevel_entry(round, file, moved, t->env->levels))) {
        rc = remove_source(t, round, file, level, err);
    }
    moved->round = round->number;
    moved->compacted = true;
    tn_level_file_drop(t->env->levels, moved);
    return rc;
}

static tn_rc apply(struct tn_table *t, struct tn_round *round, struct tn_err *err)
{
    struct tn_slice_task *slice = &t->slice;
    struct tn_compaction *c = &slice->compaction;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < c->file_count; i++) {
        if (c->upgraded[i]) {
            rc = move_up(t, round, c->files[i], err);
        } else {
            rc = edit_levels(t, slice->bucket, &c->files[i], 1, NULL, 0, err);
            if (rc == TN_OK) {
                rc = remove_source(t, round, c->files[i], -1, err);
            }
        }
    }
    for (struct tn_compact_output *o = c->outputs; rc == TN_OK && o; o = o->next) {
        rc = add_file(t, round, slice->bucket, &o->meta, true, err);
        t->counts.compacted_bytes += (uint64_t)o->meta.file_size;
    }
    return rc;
}

bool tn_work_apply(struct tn_table *table)
{
    struct tn_round *round = round_for_result(table);
    struct tn_err err = {0};
    if (!has_room(&table->slice, round)) {
        if (round == table->open && tn_round_empty(round)) {
            tn_rc rc = tn_err_set(&err, TN_UNSUPPORTED, 0,
                                  "%s: a compaction's result does not fit the memory of a round",
                                  table->slice.compaction.spec.dir);
            tn_work_abort_compaction(table);
            tn_table_fail(table, rc, &err);
        }
        return false;
    }
    tn_rc rc = apply(table, round, &err);
    if (rc != TN_OK) { /* half a result in the lists must never be committed */
        (void)fprintf(stderr, "tarn: %s\n", err.text);
    }
    TN_CHECK(rc == TN_OK);
    if (table->slice.compaction.spec.to_last_level) {
        table->slice.bucket->last_full_ms = table->env->clock->vtable->now_ms(table->env->clock);
    }
    table->counts.compactions++;
    end_compaction(table);
    table->compact_due = true;
    return true;
}

/* ---- commit ---- */

enum { PROPERTIES_FIXED = 2 };

static tn_rc properties_of(const struct tn_table *t, const struct tn_round *round,
                           struct tn_arena *arena, struct tn_json_map *map, struct tn_err *err)
{
    uint32_t count = PROPERTIES_FIXED;
    for (const struct tn_round_position *p = round->positions; p; p = p->next) {
        count++;
    }
    struct tn_json_pair *pairs = tn_arena_take(arena, count * sizeof *pairs);
    const char *number = tn_arena_format(arena, "%" PRId64, round->number);
    if (!pairs || !number) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a snapshot's properties");
    }
    pairs[0] = (struct tn_json_pair){TN_WRITER_PROPERTY, t->recovered.writer};
    pairs[1] = (struct tn_json_pair){TN_ROUND_PROPERTY, number};
    uint32_t at = PROPERTIES_FIXED;
    for (const struct tn_round_position *p = round->positions; p; p = p->next) {
        const char *key = tn_arena_format(arena, "%s%s", TN_POSITION_PROPERTY, p->source);
        if (!key) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory for a snapshot's properties");
        }
        pairs[at++] = (struct tn_json_pair){key, p->text};
    }
    *map = (struct tn_json_map){pairs, count};
    return TN_OK;
}

static tn_rc list_entries(const struct tn_round_entry *list, uint32_t count, struct tn_arena *arena,
                          const struct tn_entry **out, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, (count + 1) * sizeof(struct tn_entry), "a commit's files",
                             &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_entry *entries = memory;
    uint32_t at = count; /* the lists are newest first */
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        if (!e->gone) {
            TN_CHECK(at > 0);
            entries[--at] = e->entry;
        }
    }
    TN_CHECK(at == 0);
    *out = entries;
    return TN_OK;
}

static tn_rc list_removals(const struct tn_round *round, struct tn_arena *arena,
                           const struct tn_commit_removal **out, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, (round->removed_count + 1) * sizeof(struct tn_commit_removal),
                             "a commit's removals", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_commit_removal *removals = memory;
    uint32_t at = 0;
    for (const struct tn_round_removal *r = round->removed; r; r = r->next) {
        removals[at++] = r->removal;
    }
    *out = removals;
    return TN_OK;
}

struct sync_list {
    const char **paths;
    uint32_t count;
    uint32_t max;
};

static bool add_path(struct sync_list *list, const char *path)
{
    for (uint32_t i = list->count; i > 0; i--) { /* a folder comes again and again */
        if (strcmp(list->paths[i - 1], path) == 0) {
            return true;
        }
        if (path[strlen(path) - 1] != '/') {
            break;
        }
    }
    if (list->count == list->max) {
        return false;
    }
    list->paths[list->count++] = path;
    return true;
}

static tn_rc sync_entries(const struct tn_table *t, const struct tn_round_entry *list,
                          struct tn_arena *arena, struct sync_list *sync, struct tn_err *err)
{
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        if (e->gone) {
            continue;
        }
        const char *dir;
        tn_rc rc = tn_name_bucket(arena, t->root, t->schema, &t->options, e->entry.partition,
                                  e->entry.bucket, &dir, err);
        if (rc != TN_OK) {
            return rc;
        }
        const char *path = tn_arena_format(arena, "%s%s", dir, e->entry.file.file_name);
        if (!path || !add_path(sync, dir) || !add_path(sync, path)) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory for a commit's file names");
        }
    }
    return TN_OK;
}

static tn_rc list_syncs(const struct tn_table *t, const struct tn_round *round,
                        struct tn_arena *arena, struct sync_list *sync, struct tn_err *err)
{
    sync->max = 2 * (round->added_count + round->compacted_count);
    void *memory;
    tn_rc rc = tn_arena_need(arena, (sync->max + 1) * sizeof(char *), "a commit's file names",
                             &memory, err);
    sync->paths = memory;
    if (rc == TN_OK) {
        rc = sync_entries(t, round->added, arena, sync, err);
    }
    return rc == TN_OK ? sync_entries(t, round->compacted, arena, sync, err) : rc;
}

/* consumer-tarn-<writer> stands at our newest snapshot, so that no expiry of others takes our
 * positions away. */
static void move_consumer(const struct tn_table *t, int64_t id, struct tn_worker *worker)
{
    struct tn_err ignored = {0};
    struct tn_io *io = worker->io;
    char name[80];
    (void)snprintf(name, sizeof name, "consumer-tarn-%s", t->recovered.writer);
    const char *dir = tn_name_in(&worker->arena, t->root, TN_DIR_CONSUMER, "");
    const char *path = tn_name_in(&worker->arena, t->root, TN_DIR_CONSUMER, name);
    const char *draft = path ? tn_arena_format(&worker->arena, "%s.%s.tmp", dir, name) : NULL;
    char *text = tn_arena_format(&worker->arena, "{\n  \"nextSnapshot\" : %" PRId64 "\n}", id);
    if (!draft || !text || io->vtable->make_dir(io, dir, &ignored) != TN_OK) {
        return; /* it stands where it stood: older snapshots are kept a little longer */
    }
    (void)io->vtable->unlink(io, draft, &ignored);
    if (tn_io_write_new(io, draft, tn_bytes_of(text), &ignored) == TN_OK) {
        (void)io->vtable->replace(io, draft, path, &ignored);
    }
}

static void remove_garbage(const struct tn_round *round, struct tn_io *io)
{
    for (const struct tn_round_garbage *g = round->garbage; g; g = g->next) {
        struct tn_err ignored = {0};
        (void)io->vtable->unlink(io, g->path, &ignored);
    }
}

static tn_rc commit_round(struct tn_commit_task *commit, struct tn_worker *worker,
                          struct tn_err *err)
{
    struct tn_table *t = commit->table;
    const struct tn_round *round = commit->round;
    struct tn_arena *arena = &worker->arena;
    bool named = t->spec.user && !t->named_done; /* compactions that follow are our own */
    struct tn_commit_spec spec = {
        .root = t->root,
        .schema = t->schema,
        .options = &t->options,
        .user = named ? t->spec.user : t->user,
        .identifier = named ? t->spec.identifier : round->number,
        .added_count = round->added_count,
        .removed_count = round->removed_count,
        .compacted_count = round->compacted_count,
        .append_even_if_empty = round->positions_moved && round->added_count == 0,
        .skip_if_done = named,
        .last_seen = t->last_seen};
    struct sync_list sync = {0};
    tn_rc rc = properties_of(t, round, arena, &spec.properties, err);
    if (rc == TN_OK) {
        rc = list_entries(round->added, round->added_count, arena, &spec.added, err);
    }
    if (rc == TN_OK) {
        rc = list_entries(round->compacted, round->compacted_count, arena, &spec.compacted, err);
    }
    if (rc == TN_OK) {
        rc = list_removals(round, arena, &spec.removed, err);
    }
    if (rc == TN_OK) {
        rc = list_syncs(t, round, arena, &sync, err);
    }
    if (rc == TN_OK && round->positions && !t->recovered.positioned) {
        rc = tn_table_mark_positioned(worker->io, t->spec.name, arena, err);
    }
    spec.sync = sync.paths;
    spec.sync_count = sync.count;
    return rc == TN_OK ? tn_commit(&spec, worker, &commit->result, err) : rc;
}

static void after_commit(struct tn_commit_task *commit, struct tn_worker *worker)
{
    struct tn_table *t = commit->table;
    remove_garbage(commit->round, worker->io);
    if (commit->round->positions) {
        move_consumer(t, commit->result.latest_id, worker);
    }
    if (!t->options.write_only || t->spec.dedicated) {
        struct tn_expire_spec spec = {t->root, t->schema, &t->options, false};
        struct tn_err ignored = {0};
        tn_rc rc = tn_expire(&spec, worker, &commit->expired, &ignored);
        (void)rc; /* the next round tries again */
    }
}

/* This commit was made before, under the same user and identifier: its files are not needed again.
 */
static void remove_entries(const struct tn_table *t, const struct tn_round_entry *list,
                           struct tn_worker *worker)
{
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        size_t mark = tn_arena_mark(&worker->arena);
        struct tn_err ignored = {0};
        const char *dir;
        if (tn_name_bucket(&worker->arena, t->root, t->schema, &t->options, e->entry.partition,
                           e->entry.bucket, &dir, &ignored) == TN_OK) {
            const char *path =
                tn_arena_format(&worker->arena, "%s%s", dir, e->entry.file.file_name);
            if (path) {
                (void)worker->io->vtable->unlink(worker->io, path, &ignored);
            }
        }
        tn_arena_reset(&worker->arena, mark);
    }
}

static tn_rc commit_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_commit_task *commit = (struct tn_commit_task *)task;
    struct tn_worker *worker = context;
    if (tn_round_empty(commit->round) && !commit->round->positions_moved) {
        commit->skipped = true;
        remove_garbage(commit->round, worker->io);
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = commit_round(commit, worker, err);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_EXISTS && commit->table->spec.user) { /* the named commit was made before */
        remove_entries(commit->table, commit->round->added, worker);
        remove_entries(commit->table, commit->round->compacted, worker);
        remove_garbage(commit->round, worker->io);
        commit->repeated = true;
        return TN_OK;
    }
    if (rc != TN_OK && rc != TN_IO && commit->result.append_id != 0) {
        commit->result.compact_refused = true; /* the rows stand; they must not be added twice */
        rc = TN_OK;
    }
    if (rc == TN_OK) {
        if (commit->result.compact_refused) {
            remove_entries(commit->table, commit->round->compacted, worker);
        }
        after_commit(commit, worker);
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

/* The round's files are in a snapshot now: its entries let go of them. */
static void settle_entries(struct tn_table *t, struct tn_round_entry *list, int64_t number)
{
    for (struct tn_round_entry *e = list; e; e = e->next) {
        if (e->file->round == number) {
            e->file->round = 0;
            e->file->compacted = false;
        }
        tn_level_file_drop(t->env->levels, e->file);
    }
}

/* Files that were moved up have no entry of their own. */
static void settle_moved(struct tn_table *t, int64_t number)
{
    for (uint32_t i = 0; i < TN_TABLE_BUCKETS_MAX; i++) {
        const struct tn_levels *levels = t->buckets[i].levels;
        for (uint32_t f = 0; f < (levels ? levels->count : 0); f++) {
            if (levels->files[f]->round == number) {
                levels->files[f]->round = 0;
                levels->files[f]->compacted = false;
            }
        }
    }
}

static void report(struct tn_table *t, const struct tn_commit_task *commit)
{
    struct tn_committed committed = {.append_id = commit->result.append_id,
                                     .compact_id = commit->result.compact_id,
                                     .latest_id = t->last_seen,
                                     .row_count = commit->round->row_count,
                                     .expired = commit->expired.snapshots};
    t->counts.commits += !commit->skipped && !commit->repeated;
    if (t->spec.committed) {
        t->spec.committed(t->spec.user_data, &committed);
    }
}

static void commit_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_commit_task *commit = (struct tn_commit_task *)task;
    struct tn_table *t = commit->table;
    struct tn_round *round = commit->round;
    commit->under_way = false;
    if (rc != TN_OK) {
        /* After a failed barrier a later one may say OK and have kept nothing (Linux gives up on
         * the pages), and after a failed rename nobody knows. Only a new start can tell. */
        round->state = TN_ROUND_DRAINING;
        round->unknown = rc == TN_IO;
        t->broken = t->broken || rc == TN_IO;
        tn_table_fail(t, rc, &task->err);
        return;
    }
    settle_entries(t, round->added, round->number);
    settle_entries(t, round->compacted, round->number);
    settle_moved(t, round->number);
    t->named_done = t->named_done || !commit->skipped;
    if (commit->repeated) {
        t->reload = true;
    } else if (!commit->skipped) {
        t->reload = t->reload || commit->result.compact_refused || commit->result.foreign;
        t->last_seen = commit->result.latest_id;
    }
    round->state = TN_ROUND_DONE;
    t->recovered.positioned = t->recovered.positioned || round->positions;
    t->closing = NULL;
    t->compact_due = true;
    report(t, commit);
}

void tn_work_commit(struct tn_table *table)
{
    struct tn_commit_task *commit = &table->commit;
    *commit = (struct tn_commit_task){
        .task = {.execute = commit_execute, .complete = commit_complete, .lane = TN_LANE_SHORT},
        .table = table,
        .round = table->closing,
        .under_way = true};
    table->closing->state = TN_ROUND_COMMITTING;
    tn_exec_submit(table->env->exec, &commit->task);
}
