/* live: the files that are live in a snapshot, as a stream, in bounded memory.
 *
 * Two passes over the manifests of base and delta list. The first reads only manifests that hold
 * DELETE entries, and keeps 16 bytes for each (the identity's hash); the second yields ADD entries
 * that no DELETE names. A filter skips manifests by their statistics (partition, bucket range) and
 * entries by value, in both passes.
 *
 * Memory, from the worker's arena (a callback may use it, too, but what it takes is gone when the
 * stream ends): 16 bytes × DELETE entries that pass the filter × 2, two blocks a manifest, the
 * list. What doesn't fit is AGAIN with the size.
 */
#pragma once

#include "commit/manifest.h"
#include "commit/snapshot.h"

/* What the stream is limited to; zero means everything. */
struct tn_live_filter {
    bool has_bucket;
    struct tn_bytes partition; /* with has_bucket: exactly this partition and bucket */
    int32_t bucket;
    /* Manifests that can't hold one of these are skipped; entries are not looked at for it. */
    const struct tn_bytes *partitions;
    uint32_t partition_count; /* 0: no limit */
    /* Called with a manifest's record; false skips the whole manifest. May be NULL. */
    bool (*manifest)(void *user, const struct tn_manifest_meta *meta);
    /* Called with each entry; false leaves it out. May be NULL. Must decide alike for the ADD and
     * the DELETE of one file. */
    bool (*entry)(void *user, const struct tn_entry *entry);
    void *user;
};

/* ADD entries come in manifest order. `entry` and all it points to live until the callback returns.
 * An error stops the stream and is returned; tn_live_each says CORRUPT for a list or manifest that
 * is missing. */
typedef tn_rc tn_live_fn(void *user, const struct tn_entry *entry, struct tn_err *err);

TN_MUST_USE tn_rc tn_live_each(const char *root, const struct tn_snapshot *snapshot,
                               const struct tn_schema *schema, const struct tn_live_filter *filter,
                               struct tn_worker *worker, tn_live_fn *each, void *user,
                               struct tn_err *err);

/* Every entry of one manifest list (base, delta or changelog), ADD and DELETE, in order. */
TN_MUST_USE tn_rc tn_list_each(const char *root, const char *list, int64_t list_size,
                               const struct tn_live_filter *filter, struct tn_worker *worker,
                               tn_live_fn *each, void *user, struct tn_err *err);

/* Every entry of one manifest. */
TN_MUST_USE tn_rc tn_manifest_each(const char *root, const struct tn_manifest_meta *meta,
                                   struct tn_worker *worker, tn_live_fn *each, void *user,
                                   struct tn_err *err);

/* The lists of a snapshot: base, delta, changelog. */
enum { TN_LIST_COUNT = 3 };
struct tn_list {
    const char *name; /* or NULL */
    int64_t size;     /* or -1 */
};
void tn_lists_of(const struct tn_snapshot *snapshot, struct tn_list lists[TN_LIST_COUNT]);

/* Every record of one manifest list. */
typedef tn_rc tn_list_meta_fn(void *user, const struct tn_manifest_meta *meta, struct tn_err *err);
TN_MUST_USE tn_rc tn_list_each_meta(const char *root, const char *list, int64_t list_size,
                                    struct tn_worker *worker, tn_list_meta_fn *each, void *user,
                                    struct tn_err *err);

/* Every record of one index manifest: all index files of a snapshot. */
typedef tn_rc tn_index_fn(void *user, const struct tn_index_entry *entry, struct tn_err *err);
TN_MUST_USE tn_rc tn_index_each(const char *root, const char *index_manifest,
                                struct tn_worker *worker, tn_index_fn *each, void *user,
                                struct tn_err *err);

/* The records of a snapshot's base list, then of its delta list. */
TN_MUST_USE tn_rc tn_live_each_meta(const char *root, const struct tn_snapshot *snapshot,
                                    struct tn_worker *worker, tn_list_meta_fn *each, void *user,
                                    struct tn_err *err);
