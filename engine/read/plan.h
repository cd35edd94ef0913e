/* plan: the buckets of a snapshot, one after the other, each with its live files, in bounded
 * memory.
 *
 * A table may have more files than memory holds. So a pass over the manifests gathers whole
 * buckets, smallest (partition bytes, bucket number) first, into a window; when the window is full,
 * its largest bucket is given up and left for a later pass. Most tables need one pass. Buckets and
 * files that the predicate rules out by partition, bucket or key are never gathered; other columns'
 * statistics prune only where no version of a key can be elsewhere. Of engine first-row level 0 is
 * not read: which of its rows are first ones shows when it is compacted. Source: Paimon,
 * KeyValueFileStoreScan, AppendOnlyFileStoreScan.
 */
#pragma once

#include "commit/live.h"
#include "levels/levels.h"
#include "read/predicate.h"
#include "schema/options.h"

/* Which files count, besides those that the predicate leaves. Must decide alike for the ADD and the
 * DELETE of one file. */
struct tn_plan_filter {
    bool (*wanted)(const void *user, const struct tn_entry *entry);
    const void *user;
    bool level0; /* of engine first-row, too */
};

struct tn_plan_spec {
    const char *root;
    const struct tn_snapshot *snapshot;
    const struct tn_schema *schema;       /* that rows are read in */
    const struct tn_options *options;     /* of the newest schema */
    const struct tn_predicate *predicate; /* or NULL */
    const struct tn_key_types *keys;
    const struct tn_plan_filter *filter; /* or NULL: all files */
};

struct tn_plan_bucket {
    struct tn_bytes partition;
    int32_t number;
    int32_t total_buckets;
    uint32_t file_count;
    uint32_t file_room;
    struct tn_level_file **files;
};

struct tn_plan {
    struct tn_plan_spec spec;
    struct tn_worker *worker;
    struct tn_heap heap;             /* the window, on memory of the caller's */
    struct tn_plan_bucket **buckets; /* ascending */
    uint32_t bucket_count;
    uint32_t bucket_room;
    uint32_t at;                  /* next to be yielded */
    struct tn_plan_bucket *floor; /* last bucket of the passes before, or NULL */
    struct tn_plan_bucket *limit; /* first bucket that this pass gave up, or NULL */
    bool closed;                  /* nothing behind the window's largest is taken in this pass */
    struct tn_bounds *bounds;     /* one a field, scratch */
    struct tn_value *values;
    struct tn_type *partition_types;
    const struct tn_predicate *key_part; /* of the predicate: what names only keys and partitions */
    bool done;                           /* the pass at hand is the last */
    uint32_t passes;
    uint64_t files_seen;
    uint64_t files_pruned;
};

/* `window` is what it may use, `arena` takes some hundred bytes a column. The worker serves the
 * passes and is free between calls. */
TN_MUST_USE tn_rc tn_plan_open(struct tn_plan *plan, const struct tn_plan_spec *spec, void *window,
                               size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                               struct tn_err *err);

/* The next bucket; it lives until the next call. ABSENT at the end; AGAIN when a single bucket's
 * files don't fit the window. */
TN_MUST_USE tn_rc tn_plan_next(struct tn_plan *plan, struct tn_plan_bucket **bucket,
                               struct tn_err *err);
