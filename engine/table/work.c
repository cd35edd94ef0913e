/* What a table does next: which task is started, and when. */
#include "file/names.h"
#include "table/state.h"

enum {
    FLUSHES_A_SLICE = 2, /* one slice may run after at most two flushes */
    UNMERGED_MAX = 10, /* times compaction.min.file-num files without keys, at the most: a guess */
};

/* Pages are short: the bucket that has most of them is to give them back. */
static void freeze_largest(struct tn_table *t)
{
    struct tn_bucket *largest = NULL;
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket->active && (!largest || tn_bucket_pages(bucket) > tn_bucket_pages(largest))) {
            largest = bucket;
        }
    }
    if (largest) {
        tn_buckets_freeze(t, largest);
    }
}

tn_rc tn_work_check_there(const struct tn_table *t, struct tn_err *err)
{
    uint64_t size;
    struct tn_err ignored;
    struct tn_io *io = t->env->io;
    return io->vtable->stat(io, t->schema_path, &size, &ignored) != TN_ABSENT
               ? TN_OK
               : tn_err_set(err, TN_ABSENT, 0, "%s is gone: there is no %s any more", t->spec.name,
                            t->schema_path);
}

tn_rc tn_work_dir(void *user, const struct tn_entry *entry, const char **dir, struct tn_err *err)
{
    struct tn_table *t = user;
    return tn_name_bucket(t->env->arena, t->root, t->schema, &t->options, entry->partition,
                          entry->bucket, dir, err);
}

static uint32_t run_count(const struct tn_bucket *bucket)
{
    return tn_levels_runs(bucket->levels, NULL, 0);
}

bool tn_work_at_stop(const struct tn_table *t, const struct tn_bucket *bucket)
{
    int32_t stop = t->options.stop_trigger > t->options.compaction_trigger
                       ? t->options.stop_trigger
                       : t->options.compaction_trigger;
    return t->keyed && tn_table_may_compact(t) && run_count(bucket) > (uint32_t)stop;
}

static const struct tn_setback *setback_of(const struct tn_table *t, const struct tn_bucket *bucket)
{
    return tn_setback_of(&t->setbacks, bucket->partition, bucket->number);
}

bool tn_work_stuck(const struct tn_table *t, const struct tn_bucket *bucket)
{
    const struct tn_setback *setback = setback_of(t, bucket);
    return setback && setback->at_stop && tn_work_at_stop(t, bucket);
}

/* A flush lacks memory for the bucket's runs, and a compaction may leave fewer. */
static bool lacks_room(const struct tn_bucket *bucket)
{
    return bucket->crowded && bucket->crowded != TN_CROWD_HOPELESS;
}

/* Its compaction failed, and it is not time to try again: that comes with more rounds, or when a
 * flush has to wait for it. */
static bool rests(const struct tn_table *t, const struct tn_bucket *bucket)
{
    const struct tn_setback *setback = setback_of(t, bucket);
    return setback && t->open->number < setback->retry_round &&
           (setback->at_stop || !(tn_work_at_stop(t, bucket) || lacks_room(bucket)));
}

/* Nothing but a compaction helps its oldest flush, and it may come. */
static bool urgent(const struct tn_table *t, const struct tn_bucket *bucket)
{
    return lacks_room(bucket) && bucket->frozen && bucket->state == TN_BUCKET_READY &&
           !rests(t, bucket);
}

/* At the stop trigger, or where memory is too small for a lookup in so many runs, a flush waits for
 * the bucket's compaction, as with num-sorted-run.stop-trigger. When none can be done, rows that
 * are in memory are flushed and committed, and no more are taken. Nor does it wait for a result
 * that waits for the next cut: the cut may need the pages that this flush gives back. A lookup is
 * tried with the bucket's own; another bucket's is given up for it (make_way). */
static bool stalled(const struct tn_table *t, const struct tn_bucket *bucket)
{
    if (t->result_waits) {
        return t->slice.bucket != bucket && urgent(t, bucket);
    }
    bool crowded = lacks_room(bucket) && (t->compact_due || t->slice.active);
    bool full =
        tn_work_at_stop(t, bucket) && (bucket->compacting || (t->compact_due && !t->slice.active));
    return (crowded || full) && !tn_work_stuck(t, bucket);
}

static bool waits_for_compaction(const struct tn_table *t)
{
    return t->options.force_compact ||
           (tn_options_need_lookup(&t->options) && t->options.lookup_wait);
}

bool tn_work_owes(const struct tn_table *t, const struct tn_bucket *bucket)
{
    if (!tn_table_may_compact(t) || t->result_waits || rests(t, bucket)) {
        return false;
    }
    return (bucket->owes && (t->gather.active || waits_for_compaction(t))) ||
           tn_work_full_is_due(t, bucket);
}

/* Rows of the closing round that are no file yet. */
static bool closing_has_rows(const struct tn_table *t)
{
    if (t->flush.under_way && t->flush.bucket->frozen->round == t->closing->number) {
        return true;
    }
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        const struct tn_frozen *frozen = t->buckets[i].frozen;
        if (frozen && frozen->round == t->closing->number) {
            return true;
        }
    }
    return false;
}

/* All letters of the closing round are put: no flush disturbs those who publish them. */
static bool letters_wait(const struct tn_table *t)
{
    return t->closing && t->closing->letters > 0 && t->closing->state == TN_ROUND_DRAINING &&
           !closing_has_rows(t);
}

bool tn_work_letters_due(const struct tn_table *t)
{
    return letters_wait(t) && !t->flush.under_way;
}

/* The oldest frozen memtable of a bucket, those of the closing round before others. */
static struct tn_bucket *pick_flush(struct tn_table *t)
{
    struct tn_bucket *best = NULL;
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (!bucket->frozen || bucket->flushing || bucket->state != TN_BUCKET_READY) {
            continue;
        }
        bool waits = stalled(t, bucket);
        t->counts.stalls += waits && !bucket->stalled;
        bucket->stalled = waits;
        if (waits) {
            continue;
        }
        if (!best || bucket->frozen->round < best->frozen->round) {
            best = bucket;
        }
    }
    return best;
}

/* All that are open were tried: what is left of a sweep has no files, or rests. */
static void end_sweeps(struct tn_table *t)
{
    for (uint32_t i = 0; t->sweeps && i < t->places.buckets; i++) {
        if (t->buckets[i].state == TN_BUCKET_READY) {
            t->buckets[i].swept = TN_SWEEP_NOTHING;
        }
    }
}

static bool due(const struct tn_table *t, uint32_t runs)
{
    int32_t trigger = t->keyed ? t->options.compaction_trigger : t->options.min_file_num;
    return (int64_t)runs >= trigger;
}

/* Rows wait without it, changes are not told, or a person asked: it is done whatever it costs. A
 * bucket without keys has no stop trigger, and a limit of its own for its files. */
static bool needed(const struct tn_table *t, const struct tn_bucket *bucket, uint32_t runs)
{
    bool many = !t->keyed && runs >= (int64_t)UNMERGED_MAX * t->options.min_file_num;
    return t->spec.full || t->spec.dedicated || waits_for_compaction(t) ||
           tn_options_need_lookup(&t->options) || many || bucket->crowded || bucket->unproven ||
           tn_work_at_stop(t, bucket) || tn_work_owes(t, bucket) ||
           bucket->swept != TN_SWEEP_NOTHING;
}

/* Whether it is for want of the wear budget that the bucket is not compacted now. */
static bool spares(struct tn_table *t, const struct tn_bucket *bucket, uint32_t runs)
{
    if (!t->env->wear || !tn_wear_spent(t->env->wear) || needed(t, bucket, runs)) {
        return false;
    }
    t->spared = t->spared || due(t, runs);
    return true;
}

static bool find_urgent(const struct tn_table *t, uint32_t *index)
{
    uint32_t i = 0;
    while (i < t->places.buckets && !urgent(t, &t->buckets[i])) {
        i++;
    }
    *index = i;
    return i < t->places.buckets;
}

/* A bucket whose flush waits for it, else the one with most runs for which there is something to
 * pick. */
static bool pick_compaction(struct tn_table *t)
{
    uint32_t first;
    bool found = find_urgent(t, &first);
    if (found && tn_work_pick(t, &t->buckets[first])) {
        return true;
    }
    if (found) {
        t->buckets[first].crowded = TN_CROWD_HOPELESS;
    }
    uint32_t limit = UINT32_MAX; /* runs of the last one tried: each bucket is tried once */
    uint32_t limit_index = 0;
    for (;;) {
        struct tn_bucket *best = NULL;
        uint32_t best_runs = 0;
        uint32_t best_index = 0;
        for (uint32_t i = 0; i < t->places.buckets; i++) {
            struct tn_bucket *bucket = &t->buckets[i];
            uint32_t runs = bucket->state == TN_BUCKET_READY ? run_count(bucket) : 0;
            bool tried = runs > limit || (runs == limit && i <= limit_index);
            if (runs > best_runs && !tried && !rests(t, bucket) && !spares(t, bucket, runs)) {
                best = bucket;
                best_runs = runs;
                best_index = i;
            }
        }
        if (!best) {
            t->compact_due = false;
            end_sweeps(t);
            return false;
        }
        if (tn_work_pick(t, best)) {
            return true;
        }
        best->owes = false;
        best->swept = TN_SWEEP_NOTHING;
        limit = best_runs;
        limit_index = best_index;
    }
}

/* With some of the budget there again, what waited for it is due. */
static void look_at_wear(struct tn_table *t)
{
    struct tn_wear *wear = t->env->wear;
    struct tn_clock *clock = t->env->clock;
    if (wear) {
        tn_wear_look(wear, tn_clock_monotonic_ms(clock));
        t->compact_due = t->compact_due || (t->spared && !tn_wear_spent(wear));
        t->spared = t->spared && !t->compact_due; /* else a pick says it again */
    }
}

/* In the hours for it, what was too large is due. */
static void look_at_hours(struct tn_table *t)
{
    struct tn_clock *clock = t->env->clock;
    if (t->held && tn_options_off_peak(&t->options, clock->vtable->local_ms(clock))) {
        t->held = false;
        t->compact_due = true;
    }
}

static void begin_compaction(struct tn_table *t)
{
    struct tn_benches *benches = t->env->benches;
    look_at_wear(t);
    look_at_hours(t);
    if (!tn_table_may_compact(t) || !t->compact_due || t->slice.active || t->reload ||
        (benches && !tn_bench_take(benches, t, &t->slice.arena))) {
        return;
    }
    if (!pick_compaction(t) && benches) {
        tn_bench_leave(benches, t);
    }
}

static bool round_drained(const struct tn_table *t)
{
    if (t->closing->letters > 0 || closing_has_rows(t)) {
        return false;
    }
    bool must_compact = tn_table_may_compact(t) &&
                        (waits_for_compaction(t) || t->changes.full_round == t->closing->number);
    /* A result for which no round has room comes with a later commit, not with this one. */
    return !must_compact || t->result_waits || (!t->slice.active && !t->compact_due);
}

/* The flush of a bucket with too many runs does not wait until another's result has joined a round:
 * the cut that the result waits for may wait for this flush. The result is given up, its sources
 * are compacted later; unless it serves a flush of its own bucket, which comes first. */
static void make_way(struct tn_table *t)
{
    uint32_t index;
    if (t->result_waits && !urgent(t, t->slice.bucket) && find_urgent(t, &index)) {
        tn_work_abort_compaction(t);
        t->result_waits = false;
        t->compact_due = true;
    }
}

static void start_load(struct tn_table *t)
{
    if (!t->load.under_way) {
        tn_work_load(t);
    }
}

static void start_long(struct tn_table *t)
{
    if (t->flush.under_way || t->slice.under_way) {
        return;
    }
    if (t->slice.active && t->slice.compaction.finished) {
        t->result_waits = !tn_work_apply(t) && t->slice.active;
        make_way(t);
    }
    begin_compaction(t);
    struct tn_bucket *bucket = letters_wait(t) ? NULL : pick_flush(t);
    bool slice = t->slice.active && !t->slice.compaction.finished;
    if (slice && (!bucket || t->flushes_since_slice >= FLUSHES_A_SLICE)) {
        t->flushes_since_slice = 0;
        tn_work_slice(t);
    } else if (bucket) {
        t->flushes_since_slice++;
        tn_work_flush(t, bucket);
    }
}

static tn_rc drop_compactions(struct tn_table *t, struct tn_round *round, struct tn_err *err)
{
    size_t mark = tn_arena_mark(t->env->arena);
    tn_rc rc = tn_round_drop_compactions(round, t->env->levels, tn_work_dir, t, err);
    tn_arena_reset(t->env->arena, mark);
    return rc;
}

static bool has_compactions(const struct tn_round *round)
{
    return round->removed_count > 0 || round->compacted_count > 0;
}

/* Levels are stale: once nothing works on them, compaction results that nobody has committed are
 * dropped and every bucket is read again. */
static void start_reload(struct tn_table *t)
{
    if (t->flush.under_way || t->slice.under_way || t->load.under_way || t->commit.under_way) {
        return;
    }
    struct tn_err err = {0};
    tn_work_abort_compaction(t);
    /* Buckets that were closed behind such a result are not read again by themselves. */
    t->closed_untold =
        t->closed_untold || has_compactions(t->open) || (t->closing && has_compactions(t->closing));
    tn_rc rc = drop_compactions(t, t->open, &err);
    if (rc == TN_OK && t->closing) {
        rc = drop_compactions(t, t->closing, &err);
    }
    if (rc != TN_OK) {
        tn_table_break(t, rc, &err);
        return;
    }
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        if (t->buckets[i].state == TN_BUCKET_READY) {
            t->buckets[i].state = TN_BUCKET_LOADING;
        }
    }
    t->result_waits = false;
    t->reload = false;
    t->counts.reloads++;
}

void tn_work_start(struct tn_table *t)
{
    if (t->reload) {
        start_reload(t);
    }
    if (t->pages_short && !t->flush.under_way && !tn_buckets_wait(t)) {
        freeze_largest(t);
        t->pages_short = false;
    }
    tn_work_drain(t);
    tn_work_gather(t);
    start_load(t);
    if (!t->reload) {
        start_long(t);
    }
    if (!t->broken && t->closing && t->closing->state == TN_ROUND_DRAINING &&
        !t->commit.under_way && round_drained(t)) {
        tn_work_commit(t);
    }
}
