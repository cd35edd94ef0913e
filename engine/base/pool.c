#include "base/pool.h"

#include <string.h>

#include "base/check.h"
#include "base/poison.h"

enum { ALIGN = 16 };

void tn_pool_init(struct tn_pool *pool, void *base, size_t size, uint32_t block_size)
{
    TN_CHECK(block_size > 0);
    TN_CHECK(block_size % ALIGN == 0);
    size_t skip = (ALIGN - (uintptr_t)base % ALIGN) % ALIGN;
    size_t usable = size > skip ? size - skip : 0;
    size_t count = usable / (block_size + sizeof *pool->run_size + sizeof *pool->taken);
    TN_CHECK(count < UINT32_MAX);

    tn_unpoison(base, size);
    unsigned char *first = (unsigned char *)base + skip;
    unsigned char *behind = first + count * block_size;
    *pool = (struct tn_pool){
        .base = first,
        .run_size = (uint32_t *)(void *)behind,
        .taken = behind + count * sizeof *pool->run_size,
        .block_size = block_size,
        .block_count = (uint32_t)count,
    };
    if (count > 0) {
        memset(behind, 0, count * (sizeof *pool->run_size + sizeof *pool->taken));
        tn_poison(first, count * block_size);
    }
}

/* The first run of `count` free blocks in [from, to), or `to`. */
static uint32_t find(const struct tn_pool *pool, uint32_t from, uint32_t to, uint32_t count)
{
    uint32_t run = 0;
    for (uint32_t i = from; i < to; i++) {
        run = pool->taken[i] ? 0 : run + 1;
        if (run == count) {
            return i + 1 - count;
        }
    }
    return to;
}

void *tn_pool_take_run(struct tn_pool *pool, uint32_t count)
{
    TN_CHECK(count > 0);
    if (count > tn_pool_free(pool)) {
        return NULL;
    }
    uint32_t start = find(pool, pool->next, pool->block_count, count);
    if (start == pool->block_count) { /* from the start, also past `next`: a run may span it */
        start = find(pool, 0, pool->block_count, count);
    }
    if (start == pool->block_count) {
        return NULL;
    }
    memset(pool->taken + start, 1, count);
    pool->run_size[start] = count;
    pool->next = start + count;
    pool->used += count;
    if (pool->used > pool->peak) {
        pool->peak = pool->used;
    }
    unsigned char *block = pool->base + (size_t)start * pool->block_size;
    tn_unpoison(block, (size_t)count * pool->block_size);
    return block;
}

void *tn_pool_take(struct tn_pool *pool)
{
    return tn_pool_take_run(pool, 1);
}

void tn_pool_give(struct tn_pool *pool, void *block)
{
    uintptr_t offset = (uintptr_t)block - (uintptr_t)pool->base;
    TN_CHECK(offset % pool->block_size == 0);
    TN_CHECK(offset / pool->block_size < pool->block_count);
    uint32_t start = (uint32_t)(offset / pool->block_size);
    uint32_t count = pool->run_size[start];
    TN_CHECK(count > 0); /* the first block of a run that is taken */

    pool->run_size[start] = 0;
    memset(pool->taken + start, 0, count);
    pool->used -= count;
    tn_poison(block, (size_t)count * pool->block_size);
}

uint32_t tn_pool_free(const struct tn_pool *pool)
{
    return pool->block_count - pool->used;
}
