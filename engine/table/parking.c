#include "table/parking.h"

#include "base/check.h"
#include "base/hash.h"

enum { PAGE_HEAD_SIZE = 16 }; /* a pointer, and rows aligned */
_Static_assert(sizeof(struct tn_parked_row) % 8 == 0, "rows follow their head without a gap");

static void forget(struct tn_parking *p)
{
    memset(p->slots, 0, p->slot_count * sizeof(struct tn_parked_bucket *));
    p->first = NULL;
    p->end = &p->first;
    p->named_count = 0;
}

void tn_parking_init(struct tn_parking *parking, struct tn_pool *pool,
                     struct tn_parked_bucket **slots, uint32_t slot_count)
{
    *parking = (struct tn_parking){
        .pool = pool, .pages_max = pool->block_count / 2, .slots = slots, .slot_count = slot_count};
    forget(parking);
}

static uint32_t slot_of(const struct tn_parking *p, struct tn_bytes partition, int32_t number)
{
    uint64_t hash = tn_hash_64(partition, (uint64_t)(uint32_t)number);
    for (uint32_t i = (uint32_t)hash % p->slot_count;; i = (i + 1) % p->slot_count) {
        const struct tn_parked_bucket *bucket = p->slots[i];
        if (!bucket || (bucket->number == number && tn_bytes_equal(bucket->partition, partition))) {
            return i;
        }
    }
}

bool tn_parking_has(const struct tn_parking *parking, struct tn_bytes partition, int32_t number)
{
    if (parking->bucket_count == 0) {
        return false;
    }
    const struct tn_parked_bucket *bucket = parking->slots[slot_of(parking, partition, number)];
    return bucket && bucket->first;
}

static bool open_page(struct tn_parking *p, size_t size)
{
    uint32_t block = p->pool->block_size;
    uint32_t count = (uint32_t)((size + PAGE_HEAD_SIZE + block - 1) / block);
    if (count > p->pages_max - p->pages) {
        return false;
    }
    unsigned char *page = count == 1 ? tn_pool_take(p->pool) : tn_pool_take_run(p->pool, count);
    if (!page) {
        return false;
    }
    memcpy(page, &p->page, sizeof p->page);
    p->page = page;
    p->page_used = PAGE_HEAD_SIZE;
    p->page_size = count * block;
    p->pages += count;
    return true;
}

/* NULL: no page. */
static void *take(struct tn_parking *p, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (p->page_size - p->page_used < size && !open_page(p, size)) {
        return NULL;
    }
    void *taken = p->page + p->page_used;
    p->page_used += (uint32_t)size;
    return taken;
}

static struct tn_parked_bucket *name_bucket(struct tn_parking *p, struct tn_bytes partition,
                                            int32_t number)
{
    struct tn_parked_bucket **slot = &p->slots[slot_of(p, partition, number)];
    struct tn_parked_bucket *bucket = *slot;
    if (bucket) {
        return bucket;
    }
    bucket = p->named_count < p->slot_count - p->slot_count / 4
                 ? take(p, sizeof *bucket + partition.size)
                 : NULL;
    if (bucket) {
        unsigned char *bytes = (unsigned char *)(bucket + 1);
        memcpy(bytes, partition.data, partition.size);
        *bucket = (struct tn_parked_bucket){.partition = {bytes, partition.size}, .number = number};
        bucket->end = &bucket->first;
        *slot = bucket;
        p->named_count++;
    }
    return bucket;
}

tn_rc tn_parking_put(struct tn_parking *parking, struct tn_bytes partition, int32_t number,
                     struct tn_row row, enum tn_row_kind kind, struct tn_err *err)
{
    struct tn_parked_bucket *bucket = name_bucket(parking, partition, number);
    struct tn_parked_row *parked = bucket ? take(parking, sizeof *parked + row.size) : NULL;
    if (!parked) {
        return tn_err_set(err, TN_AGAIN, 0, "rows of %u buckets wait, and there is no more room",
                          parking->bucket_count);
    }
    *parked = (struct tn_parked_row){NULL, row.size, kind};
    memcpy(parked + 1, row.data, row.size);
    if (!bucket->first) {
        bucket->next = NULL;
        *parking->end = bucket;
        parking->end = &bucket->next;
        parking->bucket_count++;
    }
    *bucket->end = parked;
    bucket->end = &parked->next;
    return TN_OK;
}

static void give_pages(struct tn_parking *p)
{
    while (p->page) {
        unsigned char *page = p->page;
        memcpy(&p->page, page, sizeof p->page);
        tn_pool_give(p->pool, page);
    }
    p->pages = 0;
    p->page_used = 0;
    p->page_size = 0;
}

void tn_parking_pop(struct tn_parking *parking)
{
    TN_CHECK(parking->first && parking->first->first);
    struct tn_parked_bucket *bucket = parking->first;
    bucket->first = bucket->first->next;
    if (bucket->first) {
        return;
    }
    bucket->end = &bucket->first;
    parking->bucket_count--;
    parking->first = bucket->next;
    if (!parking->first) {
        forget(parking);
        give_pages(parking);
    }
}
