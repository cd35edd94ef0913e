/* budget: the one block of memory, and what it is carved into.
 *
 * The block is mapped and touched at boot; after that nobody asks the system for more. A board's
 * table (boards/NAME/board.lua, compiled in as `tn_board`) names the parts. Whoever uses a part
 * puts one allocator on it, of the part's kind, which the budget then watches: `tarn pools` prints
 * what each part has, uses and has used at most.
 *
 *     block -> | memtable: pool | long: arena | short: arena | levels: heap | ... |
 *
 * A part may lie in another one: it's carved out of its end only when it is wanted, before anybody
 * uses that one, and given back when it no longer is. Most runs need it as a whole.
 *
 * The block is owned by the budget until tn_budget_close; the allocators are owned by their users
 * and stay where they are while the budget watches them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/pool.h"

enum tn_part_kind { TN_PART_POOL, TN_PART_ARENA, TN_PART_HEAP };

struct tn_part_spec {
    const char *name;
    enum tn_part_kind kind;
    uint32_t kib;     /* at the board's own size; other sizes scale it ... */
    uint32_t kib_min; /* ... but not below this */
    const char *of; /* the part that it is carved out of when wanted; NULL: it has its own place */
};

enum { TN_PARTS_MAX = 16 };

struct tn_board {
    const char *name;
    uint32_t other_kib; /* of the process, outside the block: libc, stacks, code */
    uint32_t unit_kib;  /* what compactions take at once in the ordinary course (table/env.h) */
    uint32_t part_count;
    const struct tn_part_spec *parts;
};

extern const struct tn_board tn_board; /* the one that this program was built for */

struct tn_part {
    const struct tn_part_spec *spec;
    unsigned char *base; /* NULL: one of another part, not carved out now */
    size_t size;
    struct tn_pool *pool; /* at most one of the three, once the part is used */
    struct tn_arena *arena;
    struct tn_heap *heap;
};

struct tn_budget {
    unsigned char *block;
    bool mapped; /* by us */
    size_t size;
    uint32_t part_count;
    struct tn_part parts[TN_PARTS_MAX]; /* in the board's order, for walking */
};

/* Maps and splits. `memory_size` bounds the whole process, in bytes; 0 takes the board's own size.
 * INVALID when the parts' minimums don't fit, with the size that would do; IO when the system has
 * no such block. */
TN_MUST_USE tn_rc tn_budget_open(struct tn_budget *budget, const struct tn_board *board,
                                 uint64_t memory_size, struct tn_err *err);
/* The sizes alone: what tn_budget_open would give each part. There is no block, and no part can be
 * used. */
TN_MUST_USE tn_rc tn_budget_plan(struct tn_budget *budget, const struct tn_board *board,
                                 uint64_t memory_size, struct tn_err *err);
/* As tn_budget_open, on a block of the caller's, aligned as max_align_t; all of it is for the
 * parts. INVALID when it is too small. */
TN_MUST_USE tn_rc tn_budget_open_on(struct tn_budget *budget, const struct tn_board *board,
                                    void *block, size_t size, struct tn_err *err);
void tn_budget_close(struct tn_budget *budget); /* nobody may use a part any more */

/* Each sets up the caller's allocator on a part. The part must be there, of that kind, and unused.
 */
void tn_budget_pool(struct tn_budget *budget, const char *name, struct tn_pool *pool,
                    uint32_t block_size);
void tn_budget_arena(struct tn_budget *budget, const char *name, struct tn_arena *arena);
void tn_budget_heap(struct tn_budget *budget, const char *name, struct tn_heap *heap, bool lock);

/* Carves a part out of its own, which nobody may have put an allocator on: that one's size is less
 * from then on. The part must not be there already. */
struct tn_part *tn_budget_carve(struct tn_budget *budget, const char *name);
/* As yet not carved out, it gets so many bytes at the least; whether its own part has them the
 * caller looks. */
void tn_budget_grow(struct tn_budget *budget, const char *name, size_t size);
/* Gives it back, the last that was carved first; nobody may use it any more. */
void tn_budget_join(struct tn_budget *budget, const char *name);

/* The part, or NULL: for sizes that others depend on. */
struct tn_part *tn_budget_part(struct tn_budget *budget, const char *name);

/* Bytes. Close to the truth while a worker uses the part, exact when none does. */
void tn_part_usage(const struct tn_part *part, size_t *used, size_t *peak);

const char *tn_part_kind_text(enum tn_part_kind kind);
