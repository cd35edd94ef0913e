#include "table/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "table/state.h"

enum {
    POSITIONS_MAX = 32, /* sources that snapshots carry: 160 bytes each */
    AGAIN_MAX = 8,      /* rounds of a finish for what others before them did not tell */
    MEMTABLE_PAGES = 3, /* of the smallest: index, hash, rows */
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

/* ---- rows ---- */

static tn_rc kind_of_row(const struct tn_table *t, struct tn_row row, enum tn_row_kind *kind,
                         struct tn_err *err)
{
    if (t->options.rowkind_field < 0) {
        return TN_OK;
    }
    uint32_t column = (uint32_t)t->options.rowkind_field;
    const char *name = t->layout.columns[column].name;
    if (tn_row_null(row, column)) {
        return tn_err_set(err, TN_INVALID, 0, "column '%s' (rowkind.field) is NULL", name);
    }
    struct tn_bytes text = tn_row_bytes(&t->layout, row, column);
    if (!tn_row_kind_parse(text, kind)) {
        return tn_err_set(err, TN_INVALID, 0, "column '%s' (rowkind.field): '%.*s' is no row kind",
                          name, (int)(text.size < 32 ? text.size : 32), (const char *)text.data);
    }
    return TN_OK;
}

/* Paimon before 2.0 compares keys by < and >: NaN equals each of them, -0.0 equals 0.0, and rows
 * are lost where it merges. */
static tn_rc check_float_keys(const struct tn_table *t, struct tn_row row, struct tn_err *err)
{
    for (uint32_t i = 0; i < t->order.keys.count; i++) {
        struct tn_value value;
        const struct tn_column *c = &t->layout.columns[t->order.keys.index[i]];
        if (c->slot != TN_SLOT_F32 && c->slot != TN_SLOT_F64) {
            continue;
        }
        tn_row_get(&t->layout, row, t->order.keys.index[i], &value);
        bool sure = value.as.f64 > 0 || value.as.f64 < 0;
        if (!sure && !value.null && tn_row_double_bits(value.as.f64) != 0) {
            return tn_err_set(err, TN_INVALID, 0,
                              "column '%s': %s is no key: Paimon before 2.0 takes %s", c->name,
                              value.as.f64 == 0 ? "-0.0" : "NaN",
                              value.as.f64 == 0 ? "it for 0.0" : "it for every key");
        }
    }
    return TN_OK;
}

static bool filtered(const struct tn_table *t, enum tn_row_kind kind)
{
    return (t->options.ignore_delete && tn_row_kind_retracts(kind)) ||
           (t->options.ignore_update_before && kind == TN_ROW_UPDATE_BEFORE);
}

static tn_rc take_active(struct tn_table *t, struct tn_bucket *bucket, struct tn_err *err)
{
    struct tn_frozen *active = tn_pool_take(&t->frozen_slots);
    if (!active) {
        t->pages_short = true;
        return tn_err_set(err, TN_AGAIN, 0, "%u memtables wait to be flushed",
                          t->frozen_slots.block_count);
    }
    *active = (struct tn_frozen){0};
    tn_memtable_init(&active->memtable, &t->pages, &t->buffer_order, t->keeps);
    active->memtable.reducer = t->changes.reducer;
    bucket->active = active;
    t->active_count++;
    return TN_OK;
}

/* A place in the open round's list is taken before the first row of a bucket is. When there is none
 * left, it is time to cut. AGAIN: memory for it will come free. */
static tn_rc reserve(struct tn_table *t, struct tn_err *err)
{
    const struct tn_round *round = t->open;
    uint32_t more = tn_table_pending(t) + 2;
    uint32_t known = round->added_count + round->compacted_count + round->changelog_count +
                     round->compact_changelog_count;
    if (t->round_full || known + more > t->files_max) {
        t->round_full = true;
        return TN_OK;
    }
    if (tn_round_reserve(t->open, more)) {
        return TN_OK;
    }
    if (tn_round_may_grow(round) && (t->active_count > 0 || tn_buckets_wait(t))) {
        t->pages_short = true;
        return tn_err_set(err, TN_AGAIN, 0, "no page for a round's list of files");
    }
    t->round_full = true;
    return TN_OK;
}

/* Runs would pile up without end. The bucket is stuck, so it has a setback. */
static tn_rc refuse(const struct tn_table *t, const struct tn_bucket *bucket, struct tn_err *err)
{
    static const struct tn_err said_before = {.text = "as was said of it"};
    const struct tn_setback *setback =
        tn_setback_of(&t->setbacks, bucket->partition, bucket->number);
    const struct tn_err *reason =
        t->setbacks.stop_bucket == setback->bucket ? &t->setbacks.stop_reason : &said_before;
    return tn_err_set(err, setback->rc == TN_CORRUPT ? TN_CORRUPT : TN_FULL, reason->os,
                      "%s has more runs than num-sorted-run.stop-trigger allows, and compaction "
                      "fails: %s",
                      bucket->dir, reason->text);
}

tn_rc tn_work_put(struct tn_table *t, struct tn_bucket *bucket, struct tn_row row,
                  enum tn_row_kind kind, struct tn_err *err)
{
    if (!bucket->active) {
        tn_rc rc = take_active(t, bucket, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    tn_rc rc = tn_memtable_put(&bucket->active->memtable, row, kind, bucket->next_sequence, err);
    if (rc == TN_OK) {
        bucket->next_sequence++;
        bucket->last_use = t->uses++;
    }
    t->pages_short = t->pages_short || rc == TN_AGAIN;
    return rc;
}

static tn_rc put_into(struct tn_table *t, struct tn_bucket *bucket, struct tn_row row,
                      enum tn_row_kind kind, struct tn_err *err)
{
    if (bucket->state != TN_BUCKET_READY) {
        return tn_err_set(err, TN_AGAIN, 0, "the bucket's files are being read");
    }
    bucket->unproven = bucket->unproven && (t->compact_due || t->slice.active);
    if (bucket->unproven && !t->result_waits) { /* that waits for a cut, which is the caller's */
        return tn_err_set(err, TN_AGAIN, 0, "the bucket's compaction is waited for");
    }
    tn_rc rc = bucket->active ? TN_OK : reserve(t, err);
    return rc == TN_OK ? tn_work_put(t, bucket, row, kind, err) : rc;
}

/* Whether a memtable for another bucket leaves pages enough to those that have one, and to rows
 * that wait. */
static bool may_have_memtable(const struct tn_table *t)
{
    uint32_t others = t->parking.pages + t->rounds[0].run_pages + t->rounds[1].run_pages;
    return t->active_count < TN_TABLE_FEW ||
           (t->frozen_slots.used < t->frozen_slots.block_count &&
            t->pages.used - others + MEMTABLE_PAGES <= t->pages.block_count / 2);
}

/* Waiting is over when there is no more room for it, unless memtables can give some. */
static tn_rc park(struct tn_table *t, const struct tn_route *route, struct tn_row row,
                  enum tn_row_kind kind, struct tn_err *err)
{
    tn_rc rc =
        tn_parking_has(&t->parking, route->partition, route->bucket) ? TN_OK : reserve(t, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_parking_put(&t->parking, route->partition, route->bucket, row, kind, err);
    if (rc == TN_AGAIN) {
        if (t->active_count > 0 && t->parking.pages < t->parking.pages_max / 2 &&
            tn_pool_free(&t->pages) == 0) {
            t->pages_short = true;
        } else {
            tn_work_begin_drain(t);
        }
    }
    return rc;
}

/* A row that takes more than a page does not wait with others: they go first. */
static tn_rc put_large(struct tn_table *t, const struct tn_route *route, struct tn_row row,
                       enum tn_row_kind kind, struct tn_err *err)
{
    if (t->parking.bucket_count > 0) {
        tn_work_begin_drain(t);
        return tn_err_set(err, TN_AGAIN, 0, "rows that wait go first");
    }
    struct tn_bucket *bucket;
    tn_rc rc = tn_buckets_find(t, route->partition, route->bucket, &bucket, err);
    if (rc == TN_AGAIN) {
        tn_work_make_places(t);
    }
    return rc == TN_OK ? put_into(t, bucket, row, kind, err) : rc;
}

/* Into its bucket, when that is open or may well be; else the row waits with others. */
static tn_rc put_routed(struct tn_table *t, const struct tn_route *route, struct tn_row row,
                        enum tn_row_kind kind, struct tn_err *err)
{
    if (t->draining) {
        return tn_err_set(err, TN_AGAIN, 0, "rows that waited go to their buckets");
    }
    struct tn_bucket *bucket = tn_buckets_open(t, route->partition, route->bucket);
    if (bucket && tn_work_stuck(t, bucket)) {
        return refuse(t, bucket, err);
    }
    if (row.size > t->pages.block_size / 2) {
        return put_large(t, route, row, kind, err);
    }
    if (tn_parking_has(&t->parking, route->partition, route->bucket)) {
        return park(t, route, row, kind, err);
    }
    tn_rc rc = TN_OK;
    if (!bucket && t->open_count < TN_TABLE_FEW) {
        rc = tn_buckets_find(t, route->partition, route->bucket, &bucket, err);
    }
    bool waits = bucket && bucket->state != TN_BUCKET_READY && t->open_count > TN_TABLE_FEW;
    if (rc == TN_OK && bucket && !waits && (bucket->active || may_have_memtable(t))) {
        t->last_bucket = bucket;
        return put_into(t, bucket, row, kind, err);
    }
    return rc == TN_OK ? park(t, route, row, kind, err) : rc;
}

/* With a resolver a row's origin lies behind it from here on. */
static struct tn_row with_origin(struct tn_table *t, struct tn_row row,
                                 const struct tn_origin *origin)
{
    static const struct tn_origin nobody = {.source = TN_ORIGIN_NONE};
    if (!t->row_scratch) {
        return row;
    }
    memcpy(t->row_scratch, row.data, row.size);
    uint32_t size = tn_origin_put(t->row_scratch + row.size, origin ? origin : &nobody);
    return (struct tn_row){t->row_scratch, row.size + size};
}

/* Whether the table takes such a row at all; `*kind` becomes what it is taken as. */
static tn_rc admit(const struct tn_table *t, struct tn_row row, enum tn_row_kind *kind,
                   struct tn_err *err)
{
    if (t->options.script && !t->spec.resolver) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "rows of %s are resolved by its script ('tarn.script' = '%s'), and none "
                          "is loaded here",
                          t->spec.name, t->options.script);
    }
    if (row.size > t->row_size_max) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %u bytes, at most %u fit the memory",
                          row.size, t->row_size_max);
    }
    if (row.size > TN_DATA_KEY_MAX && t->keyed) {
        uint32_t size = tn_data_key_size(&t->layout, t->order.keys, row);
        if (size > TN_DATA_KEY_MAX) {
            return tn_err_set(err, TN_INVALID, 0, "a key of %u bytes, at most %d", size,
                              TN_DATA_KEY_MAX);
        }
    }
    tn_rc rc = kind_of_row(t, row, kind, err);
    if (rc != TN_OK || filtered(t, *kind)) {
        return rc;
    }
    if (!t->keyed && tn_row_kind_retracts(*kind)) {
        return tn_err_set(err, TN_INVALID, 0, "an append table can't take a row of kind %s",
                          tn_row_kind_text(*kind));
    }
    if (t->keyed) {
        rc = tn_engine_check_kind(t->engine, *kind, err);
        rc = rc == TN_OK && t->float_keys ? check_float_keys(t, row, err) : rc;
    }
    return rc;
}

tn_rc tn_table_admits(const struct tn_table *table, struct tn_row row, enum tn_row_kind kind,
                      struct tn_err *err)
{
    return admit(table, row, &kind, err);
}

tn_rc tn_table_put_from(struct tn_table *table, struct tn_row row, enum tn_row_kind kind,
                        const struct tn_origin *origin, struct tn_err *err)
{
    tn_rc rc = admit(table, row, &kind, err);
    if (rc == TN_OK && filtered(table, kind)) {
        table->counts.rows_filtered++;
        return TN_OK;
    }
    struct tn_route route;
    rc = rc != TN_OK ? rc : tn_route(&table->route, row, &table->route_scratch, &route, err);
    if (rc == TN_OK) {
        rc = put_routed(table, &route, with_origin(table, row, origin), kind, err);
    }
    table->counts.rows += rc == TN_OK;
    return rc;
}

tn_rc tn_table_put(struct tn_table *table, struct tn_row row, enum tn_row_kind kind,
                   struct tn_err *err)
{
    return tn_table_put_from(table, row, kind, NULL, err);
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

/* Positions are carried on, so that each snapshot of ours has those of all sources; of finished
 * files the oldest go. */
static tn_rc carry_positions(const struct tn_round *from, struct tn_round *to, struct tn_err *err)
{
    uint32_t count = 0;
    tn_rc rc = TN_OK;
    for (const struct tn_round_position *p = from->positions; rc == TN_OK && p; p = p->next) {
        if (count++ < POSITIONS_MAX) {
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

/* ---- close, and what others ask ---- */

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

const struct tn_schema *tn_table_schema(const struct tn_table *table)
{
    return table->schema;
}

const struct tn_schema *tn_table_schema_of(const struct tn_table *table, int64_t id)
{
    return tn_schemas_find(&table->schemas, id);
}

const struct tn_options *tn_table_options(const struct tn_table *table)
{
    return &table->options;
}

const struct tn_row_layout *tn_table_layout(const struct tn_table *table)
{
    return &table->layout;
}

const struct tn_recovered *tn_table_recovered(const struct tn_table *table)
{
    return &table->recovered;
}

const char *tn_table_root(const struct tn_table *table)
{
    return table->root;
}

const struct tn_table_counts *tn_table_counts(const struct tn_table *table)
{
    return &table->counts;
}

const struct tn_commit_figures *tn_table_last_commit(const struct tn_table *table)
{
    return &table->last_commit;
}

tn_rc tn_table_behind(const struct tn_table *table, uint32_t *count)
{
    const struct tn_setbacks *setbacks = &table->setbacks;
    bool damage = setbacks->damage;
    for (uint32_t i = 0; i < setbacks->count; i++) {
        damage = damage || setbacks->items[i].rc == TN_CORRUPT;
    }
    *count = setbacks->count + setbacks->forgotten;
    if (*count == 0) {
        return TN_OK;
    }
    return damage ? TN_CORRUPT : TN_UNSUPPORTED;
}

static uint32_t runs_over(const struct tn_table *t, uint32_t runs)
{
    uint32_t trigger = (uint32_t)t->options.compaction_trigger;
    return tn_table_may_compact(t) && runs > trigger ? runs - trigger : 0;
}

static void add_size(uint64_t *most, uint64_t *sum, uint64_t size)
{
    *most = size > *most ? size : *most;
    *sum += size;
}

static void add_backlog(const struct tn_table *t, const struct tn_bucket *bucket,
                        struct tn_backlog *sum)
{
    const struct tn_levels *levels = bucket->levels;
    uint32_t count = levels ? levels->count : 0;
    uint32_t runs = t->keyed ? tn_levels_runs(levels, NULL, 0) : 0;
    uint32_t fresh = 0;
    uint32_t over = runs_over(t, runs);
    uint64_t size = 0;
    while (fresh < count && levels->files[fresh]->level == 0) {
        sum->level0_bytes += (uint64_t)levels->files[fresh]->size;
        fresh++;
    }
    for (uint32_t i = 0; i < count; i++) {
        size += (uint64_t)levels->files[i]->size;
    }
    sum->buckets++;
    sum->level0_files += fresh;
    sum->runs_over += over;
    sum->queued += over > 0 || bucket->compacting;
    sum->compacted += bucket->input_bytes > 0;
    add_size(&sum->size_max, &sum->size_sum, size);
    add_size(&sum->input_max, &sum->input_sum, bucket->input_bytes);
    add_size(&sum->output_max, &sum->output_sum, bucket->output_bytes);
    sum->runs_max = runs > sum->runs_max ? runs : sum->runs_max;
    sum->files_max = count > sum->files_max ? count : sum->files_max;
    sum->level0_max = fresh > sum->level0_max ? fresh : sum->level0_max;
    sum->stopped += tn_work_at_stop(t, bucket);
}

void tn_table_backlog(const struct tn_table *table, struct tn_backlog *backlog)
{
    const struct tn_options *o = &table->options;
    int32_t stop =
        o->stop_trigger > o->compaction_trigger ? o->stop_trigger : o->compaction_trigger;
    bool waits = table->keyed && tn_table_may_compact(table);
    *backlog = (struct tn_backlog){
        .stop = waits ? (uint32_t)stop : 0,
        .pages_size = (size_t)table->pages.block_count * table->pages.block_size,
        .pages_used = (size_t)table->pages.used * table->pages.block_size,
        .pages_peak = (size_t)table->pages.peak * table->pages.block_size};
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        if (table->buckets[i].state != TN_BUCKET_FREE) {
            add_backlog(table, &table->buckets[i], backlog);
        }
    }
}

bool tn_table_spared(const struct tn_table *table)
{
    return table->spared;
}

const char *tn_table_position_of(const struct tn_table *table, const char *source)
{
    const struct tn_json_map *map = &table->recovered.properties;
    size_t prefix = sizeof TN_POSITION_PROPERTY - 1;
    for (uint32_t i = 0; i < map->count; i++) {
        const char *key = map->pairs[i].key;
        if (strncmp(key, TN_POSITION_PROPERTY, prefix) == 0 && strcmp(key + prefix, source) == 0) {
            return map->pairs[i].value;
        }
    }
    return NULL;
}
