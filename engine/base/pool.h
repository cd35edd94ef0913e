/* pool: equal blocks of one part of the boot memory.
 *
 * A pool never grows. `take` gives one block or NULL; `take_run` gives neighbours, for what must lie
 * in one piece (a row larger than a page). Both are given back by address, runs whole. Blocks given
 * back are filled with 0xDD in debug builds and poisoned under ASan.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tn_pool {
    unsigned char *base;
    uint32_t *run_size;  /* per block: blocks in the run that starts here, 0 elsewhere */
    uint8_t *taken;      /* per block */
    uint32_t block_size; /* bytes */
    uint32_t block_count;
    uint32_t used; /* blocks */
    uint32_t peak;
    uint32_t next; /* where the next search starts */
};

/* Carves `size` bytes at `base` (bookkeeping included) into blocks of `block_size`. */
void tn_pool_init(struct tn_pool *pool, void *base, size_t size, uint32_t block_size);

void *tn_pool_take(struct tn_pool *pool);
void *tn_pool_take_run(struct tn_pool *pool, uint32_t count); /* count neighbours, or NULL */
void tn_pool_give(struct tn_pool *pool, void *block);
uint32_t tn_pool_free(const struct tn_pool *pool); /* blocks left, neighbours or not */
