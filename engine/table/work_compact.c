/* What a bucket merges next, the task that does a slice of it, and how its result joins a round. */
#include "base/check.h"
#include "table/state.h"

enum {
    MERGE_MAX = 24, /* runs at once; of more, the oldest go first: 120 KB each on the host board */
    HALVED_MAX = 4, /* of them for want of memory: then 2 at once, for which there always is */
    SLICE_SIZE = 16 * 1024 * 1024, /* bytes of rows a slice: about 100 ms of work: a guess */
    SOURCES_GONE_MAX = 8,          /* compactions in a row; then the table is damaged: a guess */
    ENTRY_SIZE_GUESS = 1024,       /* of a round's memory a file takes at the least */
};

static bool off_peak(const struct tn_options *options, const struct tn_env *env)
{
    return tn_options_has_off_peak(options) &&
           tn_options_off_peak(options, env->clock->vtable->local_ms(env->clock));
}

static int64_t unit_size_max(const struct tn_options *options, const struct tn_env *env)
{
    if (off_peak(options, env)) {
        return 0;
    }
    return options->unit_size_max > 0 ? options->unit_size_max : env->unit_size_max;
}

static int32_t size_ratio(const struct tn_options *options, const struct tn_env *env)
{
    int32_t more = off_peak(options, env) ? options->off_peak_ratio : 0;
    return more < INT32_MAX - options->size_ratio ? options->size_ratio + more : INT32_MAX;
}

/* Runs at which none is held back any more: writing would wait for it, or, where it never does,
 * there are as many as levels and level 0 usually have; with a script, whose flushes look at all of
 * them and share memory among them, as soon as they are due. More than the trigger, in any case:
 * else nothing may be due. */
static uint32_t crowd(const struct tn_options *options)
{
    int64_t trigger = options->compaction_trigger;
    int64_t most = trigger + options->num_levels;
    most = options->stop_trigger < most ? options->stop_trigger : most;
    most = options->script ? trigger : most;
    return (uint32_t)(most > trigger ? most : trigger + 1);
}

struct tn_pick_rules tn_table_pick_rules(const struct tn_options *options, const struct tn_env *env)
{
    return (struct tn_pick_rules){.max_size_amplification = options->max_size_amplification,
                                  .size_ratio = size_ratio(options, env),
                                  .trigger = options->compaction_trigger,
                                  .num_levels = options->num_levels,
                                  .force_level0 =
                                      options->force_up_level0 || tn_options_need_lookup(options),
                                  .optimization_interval_ms = options->optimization_interval_ms,
                                  .since_full_ms = -1,
                                  .total_size_threshold = options->total_size_threshold,
                                  .incremental_size_threshold = options->incremental_size_threshold,
                                  .unit_size_max = unit_size_max(options, env),
                                  .crowd = crowd(options)};
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
                                   .engine = t->engine,
                                   .fold = tn_fold_reading(&t->options),
                                   .dir = bucket->dir,
                                   .uuid = bucket->uuid,
                                   .counter = &bucket->counter,
                                   .output_level = unit.output_level,
                                   .drop_deletes =
                                       unit.output_level != 0 && unit.output_level >= unit.behind,
                                   .to_last_level = unit.output_level == unit.level_max,
                                   .block_size = t->env->block_size,
                                   .row_size_max = t->row_size_max};
    tn_changes_spec(&t->changes, &spec);
    tn_arena_reset(&slice->arena, 0);
    tn_rc rc =
        tn_compaction_begin(&slice->compaction, &spec, unit.files, unit.count, &slice->arena, err);
    if (rc == TN_OK) {
        slice->bucket = bucket;
        slice->held = bucket->levels;
        slice->held->refs++;
        slice->active = true;
        t->counts.compactions_begun++;
        slice->whole = unit.count == bucket->levels->count;
        bucket->compacting = true;
        set_busy(slice, true);
    }
    return rc;
}

/* Of more runs than can be merged at once the oldest go where all were to go, and newer ones, which
 * lie in levels above that one, stay for the next time. */
static struct unit oldest_runs(const struct tn_levels *levels, struct tn_pick pick,
                               int32_t level_max, uint32_t merge_max)
{
    uint32_t first = pick.take > merge_max ? tn_levels_files_of(levels, pick.take - merge_max) : 0;
    uint32_t end = tn_levels_files_of(levels, pick.take);
    return (struct unit){levels->files + first, end - first, pick.output_level, level_max,
                         tn_levels_highest_behind(levels, end)};
}

/* With lookup-compact = gentle level 0 is forced up only every so many times that nothing else was
 * picked. Source: Paimon, ForceUpLevel0Compaction. */
static bool spares_level0(const struct tn_table *t, struct tn_bucket *bucket,
                          const struct tn_run *runs, uint32_t count, struct tn_pick_rules rules)
{
    if (!t->options.lookup_gentle || t->options.force_up_level0 ||
        !tn_options_need_lookup(&t->options)) {
        return false;
    }
    rules.force_level0 = false;
    if (tn_pick(runs, count, &rules).take > 0) {
        return true; /* forced or not, it is the same pick */
    }
    if (!bucket->fresh) {
        return true;
    }
    bucket->fresh = false;
    bucket->spared++;
    if (bucket->spared < t->options.lookup_interval_max) {
        return true;
    }
    bucket->spared = 0;
    return false;
}

static struct tn_pick pick_runs(const struct tn_table *t, struct tn_bucket *bucket,
                                const struct tn_run *runs, uint32_t count,
                                struct tn_pick_rules rules)
{
    bool asked = t->spec.full || bucket->swept == TN_SWEEP_FULL;
    if (asked || bucket->crowded || tn_work_full_is_due(t, bucket)) {
        return tn_pick_full(runs, count, &rules);
    }
    rules.force_level0 = rules.force_level0 && !spares_level0(t, bucket, runs, count, rules);
    return tn_pick(runs, count, &rules);
}

static void note_held(struct tn_table *t, bool held)
{
    t->held = t->held || (held && tn_options_has_off_peak(&t->options));
}

static struct unit pick_unit(struct tn_table *t, struct tn_bucket *bucket,
                             const struct tn_run *runs, uint32_t count)
{
    struct tn_pick_rules rules = tn_table_pick_rules(&t->options, t->env);
    if (bucket->last_full_ms >= 0) {
        rules.since_full_ms = t->env->clock->vtable->now_ms(t->env->clock) - bucket->last_full_ms;
    }
    struct tn_pick pick = pick_runs(t, bucket, runs, count, rules);
    int32_t level_max = tn_pick_level_max(runs, count, &rules);
    uint32_t merge_max = bucket->halved < HALVED_MAX ? (uint32_t)MERGE_MAX >> bucket->halved : 2;
    note_held(t, pick.reason == TN_PICK_HELD);
    return oldest_runs(bucket->levels, pick, level_max, merge_max);
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

void tn_work_compaction_failed(struct tn_table *t, struct tn_bucket *bucket, tn_rc rc,
                               const struct tn_err *err)
{
    if (rc == TN_IO || rc == TN_FULL) {
        tn_table_fail(t, rc, err);
        return;
    }
    bucket->crowded = bucket->crowded ? TN_CROWD_HOPELESS : TN_CROWD_NONE;
    t->counts.compactions_failed++;
    bool news = tn_setback_note(&t->setbacks, bucket->partition, bucket->number, t->open->number,
                                tn_work_at_stop(t, bucket), rc, err);
    if (news && t->spec.compaction_failed) {
        struct tn_err told = *err;
        if (!strstr(told.text, bucket->dir)) {
            (void)tn_err_in(&told, "compact %s", bucket->dir);
        }
        struct tn_compaction_failed failed = {bucket->dir, rc, told.text};
        t->spec.compaction_failed(t->spec.user_data, &failed);
    }
}

static tn_rc pick_append_unit(struct tn_table *t, struct tn_bucket *bucket, bool *picked,
                              struct tn_err *err)
{
    const struct tn_levels *levels = bucket->levels;
    uint32_t count = levels ? levels->count : 0;
    struct tn_arena *scratch = t->env->arena;
    size_t mark = tn_arena_mark(scratch);
    void *memory;
    tn_rc rc =
        tn_arena_need(scratch, (count + 1) * (sizeof(int64_t) + sizeof(struct tn_level_file *)),
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
    bool full = t->spec.full || bucket->swept == TN_SWEEP_FULL;
    struct tn_append_pick pick =
        tn_pick_append(sizes, count, t->options.target_file_size,
                       unit_size_max(&t->options, t->env), (uint32_t)t->options.min_file_num, full);
    *picked = pick.count > 0;
    note_held(t, pick.held);
    if (*picked) {
        struct unit unit = {files + pick.first, pick.count, 0, -1, -1};
        rc = plan_compaction(t, bucket, unit, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc pick_keyed_unit(struct tn_table *table, struct tn_bucket *bucket, bool *picked,
                             struct tn_err *err)
{
    struct tn_arena *scratch = table->env->arena;
    size_t mark = tn_arena_mark(scratch);
    uint32_t count = tn_levels_runs(bucket->levels, NULL, 0);
    void *runs;
    tn_rc rc = tn_arena_need(scratch, (count + 1) * sizeof(struct tn_run), "runs", &runs, err);
    struct unit unit = {0};
    if (rc == TN_OK) {
        (void)tn_levels_runs(bucket->levels, runs, count);
        unit = pick_unit(table, bucket, runs, count);
    }
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK && unit.count > 0) {
        rc = plan_compaction(table, bucket, unit, err);
    }
    *picked = rc == TN_OK && unit.count > 0;
    return rc;
}

bool tn_work_take_fewer(struct tn_bucket *bucket)
{
    bool can = bucket->halved < HALVED_MAX;
    bucket->halved += can;
    return can;
}

bool tn_work_pick(struct tn_table *table, struct tn_bucket *bucket)
{
    struct tn_err err = {0};
    bool picked = false;
    tn_rc rc;
    if (table->keyed) {
        do {
            rc = pick_keyed_unit(table, bucket, &picked, &err);
        } while (rc == TN_AGAIN && tn_work_take_fewer(bucket));
    } else {
        rc = pick_append_unit(table, bucket, &picked, &err);
    }
    if (rc != TN_OK) {
        tn_work_compaction_failed(table, bucket, rc, &err);
    }
    return picked;
}

static tn_rc slice_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_slice_task *slice = (struct tn_slice_task *)(void *)task;
    struct tn_clock *clock = slice->table->env->clock;
    if (slice->compaction.finished) {
        return TN_OK;
    }
    int64_t begin = clock->vtable->monotonic_ns(clock);
    tn_rc rc = tn_compaction_slice(&slice->compaction, context, SLICE_SIZE, err);
    slice->ns += clock->vtable->monotonic_ns(clock) - begin;
    return rc;
}

static void slice_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_slice_task *slice = (struct tn_slice_task *)(void *)task;
    slice->under_way = false;
    slice->table->counts.slices++;
    slice->table->counts.compaction_ns = slice->ns;
    slice->table->counts.keys_looked_up = slice->table->changes.keys_asked;
    slice->table->counts.lookup_rows_read = slice->table->changes.rows_read;
    if (rc == TN_OK) {
        return;
    }
    struct tn_table *table = slice->table;
    struct tn_bucket *bucket = slice->bucket;
    tn_work_abort_compaction(table);
    table->compact_due = true;
    if (rc == TN_AGAIN && tn_work_take_fewer(bucket)) {
        return;
    }
    /* A source may be gone: another writer dropped it, or its round was refused. Levels that are
     * read again don't have it, unless it is the table that is damaged: that is known then. */
    bool known = tn_setback_of(&table->setbacks, bucket->partition, bucket->number);
    if (rc == TN_CORRUPT && table->sources_gone++ < (known ? 1 : SOURCES_GONE_MAX)) {
        table->reload = true;
    } else {
        table->sources_gone = 0;
        tn_work_compaction_failed(table, bucket, rc, &task->err);
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
    if (t->env->benches) {
        tn_bench_give(t->env->benches, t);
    }
}

void tn_work_abort_compaction(struct tn_table *table)
{
    if (table->slice.active) {
        tn_compaction_abort(&table->slice.compaction, table->env->io);
        end_compaction(table);
    }
}

static size_t entry_size(const struct tn_file_meta *m)
{
    return ENTRY_SIZE_GUESS + m->min_key.size + m->max_key.size +
           2 * (m->key_stats.min.size + m->value_stats.min.size + m->value_stats.max.size) +
           16 * (size_t)m->value_stats.null_count_count;
}

/* Whether the commit may have memory for it. When it has none, the rows are committed without what
 * compactions made: better than a flush that comes to nothing. */
static bool may_remove(const struct tn_table *t, const struct tn_round *round)
{
    uint32_t count = round->removed_count + t->slice.compaction.file_count;
    return round->removed_count == 0 || count <= t->removals_max ||
           t->slice.bucket->crowded == TN_CROWD_PRESSES;
}

/* Beside the files of the rows that are in memory, whose places are taken already. An entry lies in
 * one run: the end of the run before it is lost. */
static bool has_room(const struct tn_table *t, const struct tn_round *round)
{
    const struct tn_compaction *c = &t->slice.compaction;
    const struct tn_compact_output *lists[] = {c->rows.first, c->changes.first};
    size_t need = tn_round_need(round, tn_table_pending(t)) + c->file_count * (size_t)512;
    size_t largest = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (const struct tn_compact_output *o = lists[i]; o; o = o->next) {
            size_t size = entry_size(&o->meta);
            need += size;
            largest = size > largest ? size : largest;
        }
    }
    need += (round->run_count - round->runs_begun) * largest;
    return may_remove(t, round) && need < tn_round_free(round);
}

/* In a round that may grow by pages. */
static bool make_room(const struct tn_table *t, struct tn_round *round)
{
    while (!has_room(t, round)) {
        if (!may_remove(t, round) || !tn_round_grow(round)) {
            return false;
        }
    }
    return true;
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
    return has_room(t, t->closing) ? t->closing : t->open;
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
            struct tn_level_file *old = e->file;
            e->entry.file.level = moved->level;
            e->file = moved;
            tn_level_file_hold(moved);
            tn_level_file_drop(heap, old);
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
    rc = tn_work_edit_levels(t, t->slice.bucket, &file, 1, &moved, 1, err);
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
            rc = tn_work_edit_levels(t, slice->bucket, &c->files[i], 1, NULL, 0, err);
            if (rc == TN_OK) {
                rc = remove_source(t, round, c->files[i], -1, err);
            }
        }
    }
    for (struct tn_compact_output *o = c->rows.first; rc == TN_OK && o; o = o->next) {
        rc = tn_work_add_file(t, round, slice->bucket, &o->meta, true, err);
        t->counts.compacted_bytes += (uint64_t)o->meta.file_size;
    }
    for (struct tn_compact_output *o = c->changes.first; rc == TN_OK && o; o = o->next) {
        rc = tn_round_tell(round, slice->bucket->partition, slice->bucket->number,
                           t->options.bucket, &o->meta, true, err);
        t->counts.compacted_bytes += (uint64_t)o->meta.file_size;
    }
    return rc;
}

/* Of what it took and gave, for reports: what only moved up is in both, as Paimon has it. */
static void note_sizes(struct tn_table *t)
{
    const struct tn_compaction *c = &t->slice.compaction;
    struct tn_bucket *bucket = t->slice.bucket;
    bucket->input_bytes = 0;
    bucket->output_bytes = 0;
    for (uint32_t i = 0; i < c->file_count; i++) {
        bucket->input_bytes += (uint64_t)c->files[i]->size;
        bucket->output_bytes += c->upgraded[i] ? (uint64_t)c->files[i]->size : 0;
    }
    for (const struct tn_compact_output *o = c->rows.first; o; o = o->next) {
        bucket->output_bytes += (uint64_t)o->meta.file_size;
    }
}

bool tn_work_full_is_due(const struct tn_table *t, const struct tn_bucket *bucket)
{
    bool closing = t->closing && t->closing->number == t->changes.full_round;
    bool passing = (t->draining && t->drain_flushes) || t->gather.active;
    bool leaving = passing && !bucket->active && !bucket->awaited &&
                   tn_changes_due(&t->changes, t->open->number);
    return (closing || leaving) && bucket->unfolded && !bucket->frozen && !bucket->flushing;
}

bool tn_work_apply(struct tn_table *table)
{
    struct tn_round *round = round_for_result(table);
    struct tn_err err = {0};
    if (!make_room(table, round)) {
        if (round == table->open && tn_round_empty(round) && tn_table_pending(table) == 0) {
            tn_rc rc = tn_err_set(&err, TN_UNSUPPORTED, 0,
                                  "%s: a compaction's result does not fit the memory of a round",
                                  table->slice.compaction.spec.dir);
            struct tn_bucket *bucket = table->slice.bucket;
            tn_work_abort_compaction(table);
            tn_work_compaction_failed(table, bucket, rc, &err);
        }
        return false;
    }
    tn_rc rc = apply(table, round, &err);
    if (rc != TN_OK) { /* half a result in the lists must never be committed */
        tn_table_break(table, rc, &err);
        return false;
    }
    if (table->slice.compaction.spec.to_last_level) {
        struct tn_bucket *bucket = table->slice.bucket;
        bucket->last_full_ms = table->env->clock->vtable->now_ms(table->env->clock);
        bucket->unfolded =
            tn_levels_has_above(bucket->levels, table->slice.compaction.spec.output_level);
    }
    note_sizes(table);
    if (table->slice.whole && table->slice.bucket->swept == TN_SWEEP_FULL) {
        table->slice.bucket->swept = TN_SWEEP_NOTHING; /* what came meanwhile is not asked for */
    }
    table->counts.compactions++;
    table->slice.bucket->unproven = false;
    table->slice.bucket->crowded = TN_CROWD_NONE;
    tn_setback_forget(&table->setbacks, table->slice.bucket->partition,
                      table->slice.bucket->number);
    table->sources_gone = 0;
    end_compaction(table);
    table->compact_due = true;
    return true;
}
