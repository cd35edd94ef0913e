#include "table/table.h"

#include <stdio.h>

#include "table/state.h"

enum {
    POSITIONS_MAX = 32, /* sources that snapshots carry: 160 bytes each */
    AGAIN_MAX = 8,      /* rounds of a finish for what others before them did not tell */
};

tn_rc tn_table_open(struct tn_env *env, const struct tn_table_spec *spec, struct tn_table **table,
                    struct tn_err *err)
{
    size_t mark = tn_arena_mark(env->arena);
    struct tn_table *t = tn_arena_take(env->arena, sizeof *t);
    if (!t) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to open %s", spec->name);
    }
    t->env = env;
    t->spec = *spec;
    t->arena_mark = mark;
    t->lock = -1;
    tn_rc rc = tn_table_make_state(t, err);
    if (rc != TN_OK) {
        if (t->lock >= 0) {
            env->io->vtable->close(env->io, t->lock);
        }
        tn_changes_close(&t->changes);
        tn_arena_reset(env->arena, mark);
        return tn_err_in(err, "%s", spec->name);
    }
    (void)snprintf(t->user, sizeof t->user, "tarn-%s", t->recovered.writer);
    t->last_seen = t->recovered.latest_id;
    *table = t;
    return TN_OK;
}

/* ---- rounds ---- */

tn_rc tn_table_position(struct tn_table *table, const char *source, const char *text,
                        struct tn_err *err)
{
    if (!tn_is_utf8(tn_bytes_of(source)) || !tn_is_utf8(tn_bytes_of(text))) {
        return tn_err_set(err, TN_INVALID, 0,
                          "a position is no UTF-8, which snapshots are written in");
    }
    return tn_round_position(table->open, source, text, err);
}

bool tn_table_wants_cut(const struct tn_table *table)
{
    return tn_round_nearly_full(table->open) || table->result_waits || table->round_full;
}

/* Positions are carried on, so that each snapshot of ours has those of all sources; those that were
 * noted longest ago go. */
static tn_rc carry_positions(const struct tn_round *from, struct tn_round *to, struct tn_err *err)
{
    uint32_t count = 0;
    tn_rc rc = TN_OK;
    for (const struct tn_round_position *p = from->positions; p; p = p->next) {
        count++;
    }
    for (const struct tn_round_position *p = from->positions; rc == TN_OK && p; p = p->next) {
        if (count-- <= POSITIONS_MAX) {
            rc = tn_round_position(to, p->source, p->text, err);
        }
    }
    /* An empty round has no room for them: no turn will make any. */
    return rc == TN_AGAIN ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", err->text) : rc;
}

tn_rc tn_table_cut(struct tn_table *table, uint64_t row_count, struct tn_err *err)
{
    tn_work_begin_drain(table);
    if (table->draining) {
        return tn_err_set(err, TN_AGAIN, 0, "rows that waited go to their buckets");
    }
    if (table->closing) {
        return tn_err_set(err, TN_AGAIN, 0, "a round is closing");
    }
    if (tn_work_gathers(table)) {
        return tn_err_set(err, TN_AGAIN, 0, "buckets are opened whose changes are to be told");
    }
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        if (table->buckets[i].active) {
            tn_buckets_freeze(table, &table->buckets[i]);
        }
    }
    struct tn_round *next =
        table->open == &table->rounds[0] ? &table->rounds[1] : &table->rounds[0];
    tn_round_open(next, table->open->number + 1);
    tn_rc rc = carry_positions(table->open, next, err);
    if (rc != TN_OK) {
        return rc;
    }
    next->positions_moved = false; /* carried on is not moved */
    table->closing = table->open;
    table->closing->state = TN_ROUND_DRAINING;
    tn_changes_cut(&table->changes, table->closing->number);
    table->compact_due = table->compact_due || table->changes.full_round != 0;
    table->closing->row_count = row_count;
    table->open = next;
    table->cut_rows = row_count;
    table->round_full = false;
    tn_work_gather_on(table);
    return TN_OK;
}

/* ---- turns ---- */

/* Letters stand where others see them before the rows of their round are committed: else a cut
 * between the two would lose them. */
static tn_rc publish_letters(struct tn_table *t, struct tn_err *err)
{
    if (!tn_work_letters_due(t)) {
        return TN_OK;
    }
    tn_rc rc = t->spec.publish_letters ? t->spec.publish_letters(t->spec.user_data, err) : TN_OK;
    if (rc == TN_OK) {
        t->closing->letters = 0;
    }
    return rc == TN_AGAIN ? TN_OK : rc;
}

static tn_rc refuse_broken(const struct tn_table *t, struct tn_err *err)
{
    tn_rc rc = t->broken_rc == TN_AGAIN ? TN_UNSUPPORTED : t->broken_rc;
    const char *first = t->broken_err.text;
    return t->voided ? tn_err_set(err, rc, 0, "%s", first)
                     : tn_err_set(err, rc, t->broken_err.os, "%s must be opened again: %s",
                                  t->spec.name, first);
}

tn_rc tn_table_turn(struct tn_table *table, bool wait, struct tn_err *err)
{
    if (table->broken) {
        return refuse_broken(table, err);
    }
    tn_rc published = publish_letters(table, err);
    if (published != TN_OK) {
        return published;
    }
    tn_work_start(table);
    (void)tn_exec_turn(table->env->exec, wait);
    if (table->rc != TN_OK) {
        tn_rc rc = table->rc;
        *err = table->err;
        table->rc = TN_OK;
        /* Memory that a task lacks will lack the next time, too: to the caller that is no "try
         * again". */
        return rc == TN_AGAIN ? tn_err_set(err, TN_UNSUPPORTED, 0, "%s", table->err.text) : rc;
    }
    return TN_OK;
}

/* Pages are short, and a flush of the open round's rows would give some back. */
static bool must_flush(const struct tn_table *t)
{
    return t->pages_short && t->active_count > 0;
}

bool tn_table_idle(const struct tn_table *table)
{
    if (must_flush(table) || table->load.under_way || table->flush.under_way ||
        table->slice.active || table->commit.under_way || table->closing || table->reload ||
        table->draining || table->gather.active || tn_buckets_wait(table) ||
        (tn_table_may_compact(table) && table->compact_due)) {
        return false;
    }
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        if (table->buckets[i].state == TN_BUCKET_LOADING) {
            return false;
        }
    }
    return true;
}

static tn_rc turn_unless_stopped(struct tn_table *t, struct tn_err *err)
{
    if (t->spec.stopped && t->spec.stopped(t->spec.user_data)) {
        return tn_err_set(err, TN_CANCELED, 0, "%s: stopped", t->spec.name);
    }
    return tn_table_turn(t, true, err);
}

static tn_rc turn_until_idle(struct tn_table *t, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && !tn_table_idle(t)) {
        if (t->result_waits && !t->closing) {
            rc = tn_table_cut(t, t->cut_rows, err); /* makes room for the result */
        }
        if (rc == TN_OK) {
            rc = turn_unless_stopped(t, err);
        }
    }
    return rc;
}

static tn_rc cut_when_possible(struct tn_table *t, uint64_t row_count, struct tn_err *err)
{
    tn_rc rc = tn_table_cut(t, row_count, err);
    while (rc == TN_AGAIN) {
        rc = turn_unless_stopped(t, err);
        if (rc == TN_OK) {
            rc = tn_table_cut(t, row_count, err);
        }
    }
    return rc;
}

tn_rc tn_table_finish(struct tn_table *table, uint64_t row_count, struct tn_err *err)
{
    tn_rc rc = cut_when_possible(table, row_count, err);
    if (rc == TN_OK) {
        rc = turn_until_idle(table, err);
    }
    uint32_t again = 0; /* what a round should have told and did not */
    while (rc == TN_OK &&
           (!tn_round_empty(table->open) || (table->gather.again && again < AGAIN_MAX))) {
        again += table->gather.again; /* else these are compactions that ended later */
        rc = cut_when_possible(table, row_count, err);
        if (rc == TN_OK) {
            rc = turn_until_idle(table, err);
        }
    }
    return rc;
}

/* The levels in which files lie that should have been told of; 0: none do. */
static int32_t untold_levels(struct tn_table *t)
{
    int32_t every = t->changes.full_every;
    bool full = every == 1 || (every > 1 && t->recovered.found && t->recovered.round % every == 0);
    if (full) {
        tn_changes_again(&t->changes, t->open->number);
        return t->options.num_levels - 1;
    }
    return tn_options_need_lookup(&t->options) ? 1 : 0;
}

tn_rc tn_table_tell(struct tn_table *table, struct tn_err *err)
{
    int32_t levels = table->gather.window ? untold_levels(table) : 0;
    if (levels == 0) {
        return TN_OK;
    }
    tn_work_begin_gather(table, levels);
    tn_rc rc = turn_until_idle(table, err);
    return rc == TN_OK && table->gather.opened > 0 ? tn_table_finish(table, 0, err) : rc;
}

tn_rc tn_table_touch(struct tn_table *table, struct tn_bytes partition, int32_t bucket,
                     struct tn_err *err)
{
    struct tn_bucket *found;
    return tn_buckets_find(table, partition, bucket, &found, err);
}

void tn_table_release(struct tn_table *table)
{
    tn_buckets_release(table);
}

tn_rc tn_table_sweep(struct tn_table *table, struct tn_bytes partition, int32_t bucket,
                     enum tn_sweep sweep, struct tn_err *err)
{
    struct tn_bucket *found;
    if (table->options.write_only && !table->spec.dedicated &&
        tn_options_need_lookup(&table->options)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "%s: a write-only table is open here without what its compactions look "
                          "up: compact it while nobody writes to it",
                          table->spec.name);
    }
    tn_buckets_spare_heap(table);
    tn_rc rc = tn_buckets_find(table, partition, bucket, &found, err);
    if (rc == TN_AGAIN) {
        tn_work_make_places(table);
    }
    if (rc == TN_OK) {
        found->swept = (uint8_t)sweep;
        if (table->slice.active && table->slice.bucket == found) {
            table->slice.whole = false; /* of less than there is by now */
        }
        table->sweeps = true;
        table->compact_due = true;
    }
    return rc;
}

uint32_t tn_table_sweeping(const struct tn_table *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        count += table->buckets[i].swept != TN_SWEEP_NOTHING;
    }
    return count;
}

void tn_table_sweep_end(struct tn_table *table)
{
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        table->buckets[i].swept = TN_SWEEP_NOTHING;
    }
    table->sweeps = false;
}

bool tn_table_uncommitted(const struct tn_table *table)
{
    return table->closing || !tn_round_empty(table->open);
}

bool tn_table_stale(const struct tn_table *table)
{
    return table->reload;
}

/* ---- close ---- */

static void drop_frozen(struct tn_table *t, struct tn_frozen *frozen)
{
    tn_memtable_drop(&frozen->memtable);
    tn_pool_give(&t->frozen_slots, frozen);
}

static void drop_rows(struct tn_table *t, struct tn_bucket *bucket)
{
    if (bucket->active) {
        drop_frozen(t, bucket->active);
    }
    while (bucket->frozen) {
        struct tn_frozen *frozen = bucket->frozen;
        bucket->frozen = frozen->next;
        drop_frozen(t, frozen);
    }
}

/* Files that no snapshot names go; where a commit's outcome is unknown they stay. */
static void drop_round(struct tn_table *t, struct tn_round *round)
{
    struct tn_round_entry *lists[] = {round->added, round->compacted, round->changelog,
                                      round->compact_changelog};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (!round->unknown) {
            tn_work_remove_entries(t, lists[i], t->env->arena);
        }
        for (struct tn_round_entry *entry = lists[i]; entry; entry = entry->next) {
            if (entry->file) {
                tn_level_file_drop(t->env->levels, entry->file);
            }
        }
    }
    tn_work_remove_garbage(t, round);
}

void tn_table_close(struct tn_table *table)
{
    struct tn_env *env = table->env;
    while (env->exec->under_way > 0) {
        (void)tn_exec_turn(env->exec, true);
    }
    tn_work_abort_compaction(table);
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        if (table->buckets[i].state != TN_BUCKET_FREE) {
            drop_rows(table, &table->buckets[i]);
            tn_buckets_close(table, &table->buckets[i]);
        }
    }
    drop_round(table, table->open);
    if (table->closing) {
        drop_round(table, table->closing);
    }
    if (table->lock >= 0) {
        env->io->vtable->close(env->io, table->lock);
    }
    tn_changes_close(&table->changes);
    tn_arena_reset(env->arena, table->arena_mark);
}
