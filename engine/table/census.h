/* census: what each bucket of a snapshot holds, bucket by bucket, in bounded memory.
 *
 * As read/plan.h does with files: a pass over the manifests sums up the smallest buckets (partition
 * bytes, number) behind the last one that was given; what the window can't hold is left for a later
 * pass. About 150 bytes a bucket, however many files it has.
 */
#pragma once

#include "base/heap.h"
#include "commit/live.h"

struct tn_census_bucket {
    struct tn_bytes partition;
    int32_t number;
    int32_t total_buckets;
    int64_t row_count; /* stored records, deletes included */
    int64_t file_size; /* of all files, bytes */
    int64_t file_count;
    int64_t newest_ms; /* creation time, local wall clock as if UTC; INT64_MIN: unknown */
    int32_t min_level;
};

struct tn_census {
    const char *root;
    const struct tn_snapshot *snapshot;
    const struct tn_schema *schema;
    struct tn_worker *worker;
    struct tn_heap heap;
    struct tn_census_bucket **buckets; /* ascending */
    uint32_t count;
    uint32_t room;
    uint32_t at;
    struct tn_census_bucket *floor; /* the last one of the passes before, or NULL */
    struct tn_census_bucket *limit; /* the smallest that this pass gave up, or NULL */
    bool started;
    bool done;
};

/* The snapshot may be replaced by a newer one between two calls of next: it is looked at when a
 * pass begins. */
void tn_census_open(struct tn_census *census, const char *root, const struct tn_snapshot *snapshot,
                    const struct tn_schema *schema, void *window, size_t window_size,
                    struct tn_worker *worker);

/* Before the first next: only buckets behind this one are given. AGAIN: the window is too small. */
TN_MUST_USE tn_rc tn_census_skip(struct tn_census *census, struct tn_bytes partition,
                                 int32_t number, struct tn_err *err);

/* The next bucket; it lives until the next call. ABSENT at the end. */
TN_MUST_USE tn_rc tn_census_next(struct tn_census *census, const struct tn_census_bucket **bucket,
                                 struct tn_err *err);

/* Adds what `bucket` holds to `sum`. */
void tn_census_join(struct tn_census_bucket *sum, const struct tn_census_bucket *bucket);
