/* memtable: rows of one bucket in pool pages, until they are flushed.
 *
 *     index pages   16 bytes a row: key prefix, where the row is, hash      (sorted when frozen)
 *     hash pages    4 bytes a slot: the row's number in the index    (given back when frozen)
 *     row pages     sequence number, kind, packed row
 *
 * TN_MEMTABLE_NEWEST holds a key once: a newer version takes the older one's place (in place where
 * it fits, and a place never shrinks), so hot keys cost no more pages. TN_MEMTABLE_ALL holds every
 * version, for engines that need them all and for changelogs; there are no hash pages, and sorted
 * it yields a key's versions oldest first: by sequence fields, then sequence number.
 * TN_MEMTABLE_FOLDED holds a key once and merges what comes into it at once, whatever the engine
 * (local-merge-buffer-size): hot keys cost no more pages, and versions are not told apart any more.
 * Without keys (append tables) rows stay in arrival order, whatever it keeps. One memtable is
 * written by one thread, then frozen; a frozen one is only read. Pages belong to it until
 * tn_memtable_drop.
 *
 * Costs about 60 ns for a new key, 30 ns for one that is there, 20 ns where every version is kept.
 */
#pragma once

#include "base/pool.h"
#include "merge/reduce.h"

enum { TN_MEMTABLE_PAGES_MAX = 64 }; /* index and hash pages; 64 KiB pages: 262,144 rows */

enum tn_memtable_keeps { TN_MEMTABLE_NEWEST, TN_MEMTABLE_ALL, TN_MEMTABLE_FOLDED };

struct tn_memtable_entry {
    uint64_t prefix;
    uint32_t where; /* of the row, in 8-byte steps from the pool's base */
    uint32_t hash;
};

struct tn_memtable {
    struct tn_pool *pool;
    const struct tn_order *order;
    enum tn_memtable_keeps keeps;
    struct tn_reducer *reducer; /* TN_MEMTABLE_FOLDED: the caller's, set after init */
    struct tn_memtable_entry *index_pages[TN_MEMTABLE_PAGES_MAX];
    uint32_t *hash_pages[TN_MEMTABLE_PAGES_MAX];
    unsigned char *row_pages; /* the newest; each begins with a pointer to the one before */
    uint32_t row_page_used;   /* bytes */
    uint32_t row_page_size;   /* bytes; a run of pages for a large row */
    uint32_t index_page_count;
    uint32_t hash_page_count; /* a power of two, or 0 */
    uint32_t index_shift;     /* log2(entries a page) */
    uint32_t hash_shift;      /* log2(slots a page) */
    uint32_t count;           /* rows */
    uint32_t pages;           /* taken, all kinds */
    uint32_t row_size_max;
    int64_t min_sequence; /* of all rows that were put, also of those that lost */
    int64_t max_sequence;
    bool frozen;
};

void tn_memtable_init(struct tn_memtable *memtable, struct tn_pool *pool,
                      const struct tn_order *order, enum tn_memtable_keeps keeps);

/* Adds a row, which is copied. AGAIN when the pool (or this memtable) is full: nothing was changed.
 * INVALID, and nothing was changed, when the row can never fit (more than an eighth of the pool) or
 * can't be merged into the one that is there. */
TN_MUST_USE tn_rc tn_memtable_put(struct tn_memtable *memtable, struct tn_row row,
                                  enum tn_row_kind kind, int64_t sequence, struct tn_err *err);

/* Gives the hash pages back. From now on nobody writes. */
void tn_memtable_freeze(struct tn_memtable *memtable);

/* Sorts a frozen memtable; heavy, so a task does it. About 60 ns a row, whatever their order; 200
 * ns where each key has hundreds of versions that sequence fields order. */
void tn_memtable_sort(struct tn_memtable *memtable);

/* How many keys a sorted memtable has, by their prefixes: never more than there are. */
uint32_t tn_memtable_keys(const struct tn_memtable *memtable);

/* Gives all pages back. */
void tn_memtable_drop(struct tn_memtable *memtable);

struct tn_memtable_iter {
    struct tn_iter iter; /* first */
    const struct tn_memtable *memtable;
    uint32_t at;
};

/* A sorted memtable (or one without keys) as a cursor. */
void tn_memtable_iter_init(struct tn_memtable_iter *iter, const struct tn_memtable *memtable);
