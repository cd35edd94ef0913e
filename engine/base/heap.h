/* heap: a bounded, coalescing allocator for libraries that want malloc.
 *
 * Over boundary tags in one block; neighbours that are free become one. A block takes the smallest
 * piece that fits: one below 1 KiB is found at once, of larger ones all are looked at, so that
 * small blocks leave the holes of large ones. `used` and `peak` count what was handed out with its
 * tags. With `lock` set the heap may be used by several threads (cJSON's and avro-c's hooks are
 * process-wide).
 *
 *     base -> | tag | taken ... | tag | free: list links ... | tag | taken ... | tag of the end |
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_heap_tag;

enum { TN_HEAP_LISTS = 64 };

struct tn_heap {
    unsigned char *base;
    size_t size;
    size_t used;
    size_t peak;
    size_t failed; /* requests that found no room */
    bool lock;
    pthread_mutex_t mutex;
    uint64_t lists;                          /* those that have pieces, a bit each */
    struct tn_heap_tag *free[TN_HEAP_LISTS]; /* large pieces, then by size; last freed first */
};

/* The memory is the heap's until tn_heap_deinit. At least 64 bytes; not on a stack (ASan). */
void tn_heap_init(struct tn_heap *heap, void *base, size_t size, bool lock);
void tn_heap_deinit(struct tn_heap *heap);

/* 16-byte aligned, or NULL when there is no piece that large. */
void *tn_heap_take(struct tn_heap *heap, size_t size);
void *tn_heap_resize(struct tn_heap *heap, void *block, size_t size); /* realloc's rules */
void tn_heap_give(struct tn_heap *heap, void *block);                 /* NULL is fine */

/* `used`, while other threads may take and give. */
size_t tn_heap_used(struct tn_heap *heap);

/* Forgets every block at once: for a library that leaks on bad input. */
void tn_heap_drop(struct tn_heap *heap);

void tn_heap_check(struct tn_heap *heap); /* walks it; stops the process where it is broken */
