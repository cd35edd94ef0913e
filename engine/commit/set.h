/* set: a fixed set of 128-bit hashes, 16 bytes a slot, with one mark bit each.
 *
 * Open addressing over a power of two of slots, at most half of them used. A file's identity or
 * path stands for itself by its hash: two different files of one table meet with a chance of 2^-127
 * each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"

struct tn_set {
    struct tn_hash_128 *slots; /* {0, 0} is free; bit 0 of `low` is the mark */
    size_t slot_count;         /* 0, or a power of two */
    size_t count;
    size_t count_max;
};

/* What tn_set_init will take, bytes; SIZE_MAX when no memory could hold it. */
size_t tn_set_size(uint64_t count_max);

/* Owned by the arena. AGAIN says what it needs. */
TN_MUST_USE tn_rc tn_set_init(struct tn_set *set, uint64_t count_max, struct tn_arena *arena,
                              struct tn_err *err);

/* Empty again, with room for as many. */
void tn_set_clear(struct tn_set *set);

/* False when it is full and the hash isn't in it. The mark of one that is there stays as it is. */
bool tn_set_add(struct tn_set *set, struct tn_hash_128 hash);
bool tn_set_has(const struct tn_set *set, struct tn_hash_128 hash);

/* For a hash that is in the set; false when it isn't. */
bool tn_set_mark(struct tn_set *set, struct tn_hash_128 hash, bool mark);
bool tn_set_marked(const struct tn_set *set, struct tn_hash_128 hash);
