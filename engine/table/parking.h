/* parking: rows whose bucket is not open, bucket by bucket in their order of arrival.
 *
 * Rows of more partitions than can be open at once wait here, packed into pages of the table's
 * pool, until there are enough of them: then each bucket is opened once and gets all of its rows
 * (work_drain.c). Pages are given back when the last row has left.
 *
 *     slots -> | bucket | -> row -> row -> row
 *              | bucket | -> row
 *     buckets and rows lie in pages (a large row in a run of them), in order of arrival
 */
#pragma once

#include "base/bytes.h"
#include "base/pool.h"
#include "merge/merge.h"

enum {
    TN_PARKING_SLOTS = 1024, /* of the hash table, a fourth of which stays free */
    TN_PARKING_SLOTS_MIN = 4,
};

struct tn_parked_row {
    _Alignas(8) struct tn_parked_row *next;
    uint32_t size; /* bytes of the row, which follows */
    enum tn_row_kind kind;
};

struct tn_parked_bucket {
    struct tn_bytes partition; /* follows */
    int32_t number;
    struct tn_parked_row *first;
    struct tn_parked_row **end;
    struct tn_parked_bucket *next; /* that came later */
};

struct tn_parking {
    struct tn_pool *pool;
    uint32_t pages_max;
    uint32_t pages;      /* taken */
    unsigned char *page; /* the newest; each begins with a pointer to the one before */
    uint32_t page_used;  /* bytes */
    uint32_t page_size;  /* bytes; a run of pages for a large row */
    struct tn_parked_bucket **slots;
    uint32_t slot_count; /* at least TN_PARKING_SLOTS_MIN */
    struct tn_parked_bucket *first;
    struct tn_parked_bucket **end;
    uint32_t bucket_count; /* with rows */
    uint32_t named_count;  /* in the slots, those that have left included */
};

void tn_parking_init(struct tn_parking *parking, struct tn_pool *pool,
                     struct tn_parked_bucket **slots, uint32_t slot_count);

bool tn_parking_has(const struct tn_parking *parking, struct tn_bytes partition, int32_t number);

/* The row is copied. AGAIN: no page, or too many buckets. */
TN_MUST_USE tn_rc tn_parking_put(struct tn_parking *parking, struct tn_bytes partition,
                                 int32_t number, struct tn_row row, enum tn_row_kind kind,
                                 struct tn_err *err);

static inline struct tn_row tn_parked_row(const struct tn_parked_row *parked)
{
    return (struct tn_row){(const unsigned char *)(parked + 1), parked->size};
}

/* The first row of the first bucket leaves. */
void tn_parking_pop(struct tn_parking *parking);
