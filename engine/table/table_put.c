/* Rows in: which are taken, and where they wait. */
#include "table/state.h"

enum { MEMTABLE_PAGES = 3 /* of the smallest: index, hash, rows */ };

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
