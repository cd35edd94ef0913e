/* pool: equal blocks of one part of the boot memory.
 *
 * A pool never grows. `take` gives one block or NULL; `take_run` gives neighbours, for what must
 * lie in one piece (a row larger than a page). Both are given back by address, runs whole. Blocks
 * given back are filled with 0xDD in debug builds and poisoned under ASan.
 *
 *     base -> | block 0 | block 1 | ... | block n-1 | run_size[n] | taken[n] |
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

/* Carves `size` bytes at `base` (bookkeeping included) into blocks of `block_size`, a multiple of
 * 16. The memory is the pool's until nobody uses the pool any more; not on a stack (ASan). */
void tn_pool_init(struct tn_pool *pool, void *base, size_t size, uint32_t block_size);

/* Blocks are aligned to 16 and not zeroed. NULL when there is none. */
void *tn_pool_take(struct tn_pool *pool);
void *tn_pool_take_run(struct tn_pool *pool, uint32_t count); /* count neighbours, or NULL */
void tn_pool_give(struct tn_pool *pool, void *block);
uint32_t tn_pool_free(const struct tn_pool *pool); /* blocks left, neighbours or not */
