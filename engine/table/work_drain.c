/* Rows that wait for their bucket get to it: buckets are opened, some at a time, each gets all of
 * its rows, and those that have no more to come are flushed, to make room for the next.
 *
 *     parked -> bucket opened (LOADING) -> rows put -> frozen -> flushed -> closed when another
 *                                                                           needs its place
 */
#include "base/check.h"
#include "table/state.h"

/* No place for another bucket: those with the oldest rows are flushed, and can be closed then. */
void tn_work_make_places(struct tn_table *t)
{
    if (t->flush.under_way || tn_buckets_wait(t)) {
        return; /* some will be free soon */
    }
    for (uint32_t i = 0; i < TN_LOAD_MAX / 2; i++) {
        struct tn_bucket *oldest = tn_buckets_oldest_active(t);
        if (!oldest) {
            return;
        }
        tn_buckets_freeze(t, oldest);
    }
}

/* The first of those that wait, as many as one load takes, are open or being opened. */
static tn_rc open_next(struct tn_table *t, struct tn_err *err)
{
    const struct tn_parked_bucket *parked = t->parking.first;
    for (uint32_t i = 0; parked && i < t->load_max; i++, parked = parked->next) {
        struct tn_bucket *bucket;
        tn_buckets_spare_heap(t);
        tn_rc rc = tn_buckets_find(t, parked->partition, parked->number, &bucket, err);
        if (rc == TN_AGAIN) {
            tn_work_make_places(t);
            return TN_OK;
        }
        if (rc != TN_OK) {
            return rc;
        }
        bucket->awaited = true;
    }
    return TN_OK;
}

/* All rows of the first bucket that waits. AGAIN: it is not open yet, or memory is short. */
static tn_rc move_rows(struct tn_table *t, struct tn_err *err)
{
    const struct tn_parked_bucket *parked = t->parking.first;
    struct tn_bucket *bucket = tn_buckets_open(t, parked->partition, parked->number);
    if (!bucket || bucket->state != TN_BUCKET_READY) {
        return TN_AGAIN;
    }
    tn_rc rc = TN_OK;
    bool last = false;
    while (rc == TN_OK && !last) {
        const struct tn_parked_row *row = parked->first;
        last = !row->next;
        rc = tn_work_put(t, bucket, tn_parked_row(row), row->kind, err);
        if (rc == TN_OK) {
            tn_parking_pop(&t->parking); /* with the last row, `parked` may be gone */
        }
    }
    bucket->awaited = bucket->awaited && rc != TN_OK;
    if (rc == TN_OK && t->drain_flushes && bucket->active) {
        tn_buckets_freeze(t, bucket);
    }
    return rc;
}

void tn_work_begin_drain(struct tn_table *table)
{
    if (!table->draining && table->parking.bucket_count > 0) {
        table->draining = true;
        /* More than can stay open: what was waiting will wait again. */
        table->drain_flushes = table->parking.bucket_count > table->places.buckets / 2;
        table->compact_due = table->compact_due || table->drain_flushes;
    }
}

void tn_work_drain(struct tn_table *table)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    while (rc == TN_OK && table->draining && !table->reload) {
        rc = open_next(table, &err);
        if (rc == TN_OK) {
            rc = move_rows(table, &err);
        }
        table->draining = table->parking.bucket_count > 0;
    }
    if (rc != TN_OK && rc != TN_AGAIN) {
        tn_table_fail(table, rc, &err);
    }
}
