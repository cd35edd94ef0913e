/* The buckets that nobody writes to now and whose changes are still to be told: they are looked for
 * in the newest snapshot and opened, and what opens them has them compacted.
 *
 *     gather task -> found -> opened -> loaded -> compacted into the open round
 *          ^                    |
 *          '------- more -------'
 *
 * Before the cut of a round that ends with full compactions these are buckets that were written to
 * in rounds before it, by this process or another; at a start those that a process left that was
 * killed. Source: Paimon, GlobalFullCompactionSinkWrite.writtenBuckets, LookupSinkWrite.
 */
#include "table/state.h"

/* ---- looking ---- */

static void look_from_start(struct tn_gather_task *g)
{
    const struct tn_table *t = g->table;
    tn_census_open(&g->census, t->root, NULL, t->schema, g->window, g->window_size, NULL);
    g->count = 0;
    g->at = 0;
    g->listed = false;
}

/* Up to the end of a pass: with the next one these buckets are forgotten. */
static tn_rc list_some(struct tn_gather_task *g, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && g->count < TN_LOAD_MAX &&
           (g->count == 0 || g->census.at < g->census.count)) {
        const struct tn_census_bucket *bucket;
        rc = tn_census_next(&g->census, &bucket, err);
        if (rc == TN_OK && bucket->min_level < g->level_end) {
            g->found[g->count++] = bucket;
        }
    }
    g->listed = rc == TN_ABSENT;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc gather_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_gather_task *g = (struct tn_gather_task *)(void *)task;
    struct tn_worker *worker = context;
    struct tn_snapshot snapshot;
    int64_t id;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_snapshot_latest(worker->io, g->table->root, &worker->arena, &id, err);
    g->listed = rc == TN_ABSENT;
    if (rc == TN_OK) {
        rc = tn_snapshot_read(worker->io, g->table->root, id, &worker->arena, &snapshot, err);
    }
    if (rc == TN_OK) {
        g->census.snapshot = &snapshot;
        g->census.worker = worker;
        rc = list_some(g, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return g->listed ? TN_OK : rc;
}

static void gather_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_gather_task *g = (struct tn_gather_task *)(void *)task;
    g->under_way = false;
    if (rc != TN_OK) { /* the next turn tries again */
        look_from_start(g);
        tn_table_fail(g->table, rc, &task->err);
    }
}

static void look_on(struct tn_gather_task *g)
{
    g->task = (struct tn_task){
        .execute = gather_execute, .complete = gather_complete, .lane = TN_LANE_SHORT};
    g->count = 0;
    g->at = 0;
    g->under_way = true;
    tn_exec_submit(g->table->env->exec, &g->task);
}

/* ---- opening ---- */

/* AGAIN: no place for another bucket now. */
static tn_rc open_found(struct tn_gather_task *g, struct tn_err *err)
{
    struct tn_table *t = g->table;
    for (; g->at < g->count; g->at++) {
        struct tn_bucket *bucket;
        tn_buckets_spare_heap(t);
        tn_rc rc =
            tn_buckets_find(t, g->found[g->at]->partition, g->found[g->at]->number, &bucket, err);
        if (rc != TN_OK) {
            return rc;
        }
        bucket->owes = true;
        t->compact_due = true;
        g->opened++;
    }
    return TN_OK;
}

static bool loading(const struct tn_table *t)
{
    bool some = t->load.under_way;
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        some = some || t->buckets[i].state == TN_BUCKET_LOADING;
    }
    return some;
}

/* Something will end that lets a bucket be closed. */
static bool place_comes(const struct tn_table *t)
{
    return loading(t) || t->active_count > 0 || tn_buckets_wait(t) || t->slice.active ||
           t->compact_due || t->closing;
}

void tn_work_gather(struct tn_table *table)
{
    struct tn_gather_task *g = &table->gather;
    struct tn_err err = {0};
    if (!g->active || g->under_way || table->reload) {
        return;
    }
    tn_rc rc = open_found(g, &err);
    if (rc == TN_AGAIN && place_comes(table)) {
        tn_work_make_places(table);
    } else if (rc != TN_OK) {
        tn_table_fail(table, rc, &err);
    } else if (!g->listed) {
        look_on(g);
    } else {
        g->active = loading(table);
    }
}

/* ---- when ---- */

void tn_work_begin_gather(struct tn_table *table, int32_t level_end)
{
    struct tn_gather_task *g = &table->gather;
    g->table = table;
    g->level_end = level_end;
    g->round = table->open->number;
    g->opened = 0;
    g->active = true;
    g->again = false;
    look_from_start(g);
}

/* The levels whose files the open round should tell of; 0: none. */
static int32_t levels_to_tell(const struct tn_table *t)
{
    const struct tn_gather_task *g = &t->gather;
    bool rows = t->active_count > 0 || tn_buckets_wait(t) || !tn_round_empty(t->open);
    if (!g->window) {
        return 0;
    }
    if (tn_changes_due(&t->changes, t->open->number) &&
        (g->again || (rows && t->changes.full_every > 1))) {
        return t->options.num_levels - 1;
    }
    return g->again && tn_options_need_lookup(&t->options) ? 1 : 0;
}

bool tn_work_gathers(struct tn_table *table)
{
    struct tn_gather_task *g = &table->gather;
    int32_t levels = levels_to_tell(table);
    if (!g->active && g->round != table->open->number && levels > 0) {
        tn_work_begin_gather(table, levels);
    }
    return g->active && !table->result_waits;
}

void tn_work_gather_again(struct tn_table *table, int64_t number)
{
    table->gather.again = table->gather.window != NULL;
    if (table->changes.full_round == number) {
        tn_changes_again(&table->changes, table->open->number);
    }
}

void tn_work_gather_on(struct tn_table *table)
{
    if (table->gather.active) {
        table->gather.round = table->open->number;
        tn_changes_again(&table->changes, table->open->number);
    }
}
