/* The open buckets of a table: found by partition and number, opened, closed when they are idle. */
#include <inttypes.h>

#include "file/names.h"
#include "table/state.h"

enum { HEAP_SHARE = 4 }; /* of the levels heap, that is left free for files to come */

static uint32_t slot_of(const struct tn_table *t, struct tn_bytes partition, int32_t number)
{
    uint64_t hash = tn_bucket_name(partition, number);
    for (uint32_t i = (uint32_t)hash % t->places.slots;; i = (i + 1) % t->places.slots) {
        const struct tn_bucket *bucket = t->slots[i];
        if (!bucket || (bucket->number == number && tn_bytes_equal(bucket->partition, partition))) {
            return i;
        }
    }
}

static void rebuild_slots(struct tn_table *t)
{
    memset(t->slots, 0, t->places.slots * sizeof *t->slots);
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket->state != TN_BUCKET_FREE) {
            t->slots[slot_of(t, bucket->partition, bucket->number)] = bucket;
        }
    }
}

/* All of its rows are in files, and nothing is under way. What is not committed yet the rounds
 * know, so that it can be opened again. */
static bool bucket_idle(const struct tn_table *t, const struct tn_bucket *b)
{
    return b->state == TN_BUCKET_READY && !b->active && !b->frozen && !b->flushing &&
           !b->compacting && !b->awaited && b->swept == TN_SWEEP_NOTHING && !tn_work_owes(t, b);
}

void tn_buckets_close(struct tn_table *t, struct tn_bucket *bucket)
{
    struct tn_heap *heap = t->env->levels;
    tn_levels_drop(heap, bucket->levels);
    tn_heap_give(heap, (void *)bucket->partition.data);
    tn_heap_give(heap, (void *)bucket->dir);
    *bucket = (struct tn_bucket){.state = TN_BUCKET_FREE};
    t->open_count--;
    if (t->last_bucket == bucket) {
        t->last_bucket = NULL;
    }
}

bool tn_buckets_close_one(struct tn_table *t)
{
    struct tn_bucket *oldest = NULL;
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket_idle(t, bucket) && (!oldest || bucket->last_use < oldest->last_use)) {
            oldest = bucket;
        }
    }
    if (oldest) {
        bool due = oldest->unfolded && tn_changes_due(&t->changes, t->open->number);
        t->closed_untold = t->closed_untold || due || oldest->owes;
        tn_buckets_close(t, oldest);
        rebuild_slots(t);
    }
    return oldest;
}

void tn_buckets_spare_heap(struct tn_table *t)
{
    struct tn_heap *heap = t->env->levels;
    if (tn_heap_used(heap) > heap->size / HEAP_SHARE * (HEAP_SHARE - 1)) {
        (void)tn_buckets_close_one(t);
    }
}

static struct tn_bucket *free_bucket(struct tn_table *t)
{
    if (t->open_count == t->places.buckets && !tn_buckets_close_one(t)) {
        return NULL;
    }
    uint32_t i = 0;
    while (t->buckets[i].state != TN_BUCKET_FREE) {
        i++;
    }
    return &t->buckets[i];
}

static tn_rc name_bucket(struct tn_table *t, struct tn_bytes partition, int32_t number,
                         struct tn_bucket *bucket, struct tn_err *err)
{
    struct tn_arena *scratch = t->env->arena;
    struct tn_heap *heap = t->env->levels;
    size_t mark = tn_arena_mark(scratch);
    const char *dir;
    tn_rc rc =
        tn_name_bucket(scratch, t->root, t->schema, &t->options, partition, number, &dir, err);
    if (rc == TN_OK) {
        size_t size = strlen(dir) + 1;
        char *kept = tn_heap_take(heap, size);
        unsigned char *bytes = kept ? tn_heap_take(heap, partition.size) : NULL;
        if (bytes) {
            memcpy(kept, dir, size);
            memcpy(bytes, partition.data, partition.size);
            bucket->dir = kept;
            bucket->partition = (struct tn_bytes){bytes, partition.size};
        } else {
            tn_heap_give(heap, kept);
            rc = tn_err_set(err, TN_AGAIN, 0, "no memory to open another bucket");
        }
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc open_bucket(struct tn_table *t, struct tn_bytes partition, int32_t number,
                         struct tn_bucket **out, struct tn_err *err)
{
    struct tn_bucket *bucket = free_bucket(t);
    if (!bucket) {
        return tn_err_set(err, TN_AGAIN, 0, "%u buckets are open and none is idle",
                          t->places.buckets);
    }
    tn_rc rc = name_bucket(t, partition, number, bucket, err);
    if (rc != TN_OK) {
        return rc;
    }
    bucket->state = TN_BUCKET_LOADING;
    bucket->number = number;
    bucket->frozen_end = &bucket->frozen;
    bucket->last_use = t->uses++;
    t->open_count++;
    bucket->last_full_ms = -1;
    tn_clock_uuid(t->env->clock, bucket->uuid);
    t->slots[slot_of(t, bucket->partition, number)] = bucket;
    *out = bucket;
    return TN_OK;
}

struct tn_bucket *tn_buckets_open(const struct tn_table *t, struct tn_bytes partition,
                                  int32_t number)
{
    struct tn_bucket *last = t->last_bucket;
    if (last && last->number == number && tn_bytes_equal(last->partition, partition)) {
        return last;
    }
    return t->slots[slot_of(t, partition, number)];
}

tn_rc tn_buckets_find(struct tn_table *t, struct tn_bytes partition, int32_t number,
                      struct tn_bucket **out, struct tn_err *err)
{
    struct tn_bucket *bucket = tn_buckets_open(t, partition, number);
    if (!bucket) {
        tn_rc rc = open_bucket(t, partition, number, &bucket, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    t->last_bucket = bucket;
    *out = bucket;
    return TN_OK;
}

void tn_buckets_release(struct tn_table *table)
{
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        if (bucket_idle(table, &table->buckets[i])) {
            tn_buckets_close(table, &table->buckets[i]);
        }
    }
    rebuild_slots(table);
}

/* ---- rows that wait in them ---- */

void tn_buckets_freeze(struct tn_table *t, struct tn_bucket *bucket)
{
    struct tn_frozen *active = bucket->active;
    bucket->active = NULL;
    t->active_count--;
    if (active->memtable.count == 0) {
        tn_memtable_drop(&active->memtable);
        tn_pool_give(&t->frozen_slots, active);
        return;
    }
    tn_memtable_freeze(&active->memtable);
    active->round = t->open->number;
    *bucket->frozen_end = active;
    bucket->frozen_end = &active->next;
}

struct tn_bucket *tn_buckets_oldest_active(struct tn_table *t)
{
    struct tn_bucket *oldest = NULL;
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        struct tn_bucket *bucket = &t->buckets[i];
        if (bucket->active && (!oldest || bucket->last_use < oldest->last_use)) {
            oldest = bucket;
        }
    }
    return oldest;
}

bool tn_buckets_wait(const struct tn_table *t)
{
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        if (t->buckets[i].frozen) {
            return true;
        }
    }
    return false;
}
