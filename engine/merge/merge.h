/* merge: several cursors in key order become one: key by key, or version by version.
 *
 * Where each source holds a key at most once (a file, a run, a folded memtable), all versions of
 * the smallest key are the heads of their sources at the same moment: a group is yielded without
 * copying a row, and its sources are moved on by the next call. A binary heap of the heads gives
 * the order; sources that hold equal keys lie together at its top.
 *
 *     heads:   [k1 s3] [k1 s9] [k4 s1] [k2 s5]      group: k1 = {s3, s9}
 *
 * Which version of a group is the newest is a second order, tn_kv_newer: sequence fields, then
 * sequence number, then an add behind a retract, then the smaller level. With TN_MERGE_VERSIONS
 * both orders are one: versions come one by one, key after key, oldest first, and a source may hold
 * any number of versions of a key, itself in that order. Source: Paimon, SortMergeReader.
 */
#pragma once

#include "base/arena.h"
#include "merge/iter.h"

/* How rows of a table are ordered; made once a table and layout, shared by all. */
struct tn_order {
    const struct tn_row_layout *layout;
    struct tn_columns keys;
    struct tn_columns sequence_fields; /* may be empty */
    bool sequence_descending;
    bool prefix_decides; /* equal prefixes are equal keys */
};

/* Key order of two key-values: <0, 0, >0. */
static inline int tn_kv_compare(const struct tn_order *order, const struct tn_kv *a,
                                const struct tn_kv *b)
{
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    return order->prefix_decides ? 0 : tn_row_compare(order->layout, order->keys, a->row, b->row);
}

/* Compares the sequence fields alone; NULL is older in both directions. */
int tn_kv_compare_sequence_fields(const struct tn_order *order, struct tn_row a, struct tn_row b);

/* True when `a` is to win over `b`, both of one key. */
bool tn_kv_newer(const struct tn_order *order, const struct tn_kv *a, const struct tn_kv *b);

enum tn_merge_mode { TN_MERGE_GROUPS, TN_MERGE_VERSIONS };

struct tn_merge_source {
    struct tn_iter *iter;
    struct tn_kv kv; /* the head */
};

struct tn_merge {
    const struct tn_order *order;
    enum tn_merge_mode mode;
    struct tn_merge_source *sources;
    uint32_t *heap;   /* indices of sources that have a head */
    uint32_t *places; /* of the group's members in the heap, ascending */
    const struct tn_kv **group;
    uint32_t heap_count;
    uint32_t group_count;
};

/* Bytes of arena that a merge of `count` sources takes. */
size_t tn_merge_size(uint32_t count);

/* `iters` are the caller's, and closed by it. */
TN_MUST_USE tn_rc tn_merge_init(struct tn_merge *merge, const struct tn_order *order,
                                enum tn_merge_mode mode, struct tn_iter *const *iters,
                                uint32_t count, struct tn_arena *arena, struct tn_err *err);

/* The next key's versions, in no order. ABSENT at the end. They live until the next call. CORRUPT
 * when a source went back in key order (seen by its prefix: to merge on would lose rows). For
 * TN_MERGE_GROUPS. */
TN_MUST_USE tn_rc tn_merge_next(struct tn_merge *merge, const struct tn_kv *const **group,
                                uint32_t *count, struct tn_err *err);

/* The version at hand, or NULL at the end; it lives until the next tn_merge_step. For
 * TN_MERGE_VERSIONS. */
static inline const struct tn_kv *tn_merge_head(const struct tn_merge *merge)
{
    return merge->heap_count > 0 ? &merge->sources[merge->heap[0]].kv : NULL;
}

/* Goes on behind the version at hand, which is there. CORRUPT as with tn_merge_next. */
TN_MUST_USE tn_rc tn_merge_step(struct tn_merge *merge, struct tn_err *err);

/* The smallest level above 0 among the versions of the key at hand, INT32_MAX without one. Asked
 * before its first version is passed; sources of such levels hold a key once. */
int32_t tn_merge_level(struct tn_merge *merge);

/* Moves the last group's sources on now: afterwards each source's head is its first unread row, and
 * the next group is what it would have been. For whoever wants to stop here and go on later. */
TN_MUST_USE tn_rc tn_merge_settle(struct tn_merge *merge, struct tn_err *err);
