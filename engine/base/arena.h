/* arena: memory that is given out in order and taken back all at once.
 *
 * An arena is a view on a block that somebody else owns. Nothing in it is freed alone: the owner
 * resets it to a mark, or drops it whole. `peak` is what the boards' budgets are set from.
 */
#pragma once

#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"

struct tn_arena {
    unsigned char *base;
    size_t size; /* bytes at base */
    size_t used; /* <= size */
    size_t peak; /* the largest `used` has been since tn_arena_init */
};

void tn_arena_init(struct tn_arena *arena, void *base, size_t size);

/* Returns `size` zeroed bytes aligned to max_align_t, or NULL when the arena is full. */
void *tn_arena_take(struct tn_arena *arena, size_t size);

/* The same without zeroes: for buffers that are written before they are read. */
void *tn_arena_take_raw(struct tn_arena *arena, size_t size);

/* Takes, and says so in `err` when there is no room: AGAIN "<what> needs N bytes, M are free". */
TN_MUST_USE tn_rc tn_arena_need(struct tn_arena *arena, size_t size, const char *what, void **out,
                                struct tn_err *err);

/* A copy with a final zero byte, or NULL when the arena is full. */
char *tn_arena_text(struct tn_arena *arena, struct tn_bytes text);

/* printf into the arena; NULL when it is full. */
char *tn_arena_format(struct tn_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A copy; {NULL, 0} with *ok = false when the arena is full. */
struct tn_bytes tn_arena_copy(struct tn_arena *arena, struct tn_bytes bytes, bool *ok);

size_t tn_arena_mark(const struct tn_arena *arena);
size_t tn_arena_free(const struct tn_arena *arena); /* bytes left */

/* Everything taken since `mark` is gone; in debug builds it's overwritten with 0xDD. */
void tn_arena_reset(struct tn_arena *arena, size_t mark);
