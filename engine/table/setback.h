/* setback: the buckets whose compaction failed, so that ingestion goes on without it.
 *
 * Each is said once, and again when the reason is of another kind; it is tried again after 1, 2, 4,
 * ... rounds. A success forgets it. The list is as long as the number of buckets that are ever
 * behind at once, up to a limit; what is beyond that is only counted.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"

enum { TN_SETBACKS_MAX = 64 };

struct tn_setback {
    uint64_t bucket; /* tn_bucket_name */
    tn_rc rc;
    uint32_t failures;
    int64_t retry_round; /* not tried before this round is open */
    bool at_stop;        /* it failed with more runs than the stop trigger: rows can't go on */
};

struct tn_setbacks {
    struct tn_setback items[TN_SETBACKS_MAX];
    uint32_t count;
    uint32_t forgotten;        /* pushed out by others: nobody knows whether they still fail */
    bool damage;               /* one that was forgotten had damaged files */
    struct tn_err stop_reason; /* of the last one that failed at the stop trigger */
    uint64_t stop_bucket;      /* which that was: of the others the reason is not kept */
};

/* NULL: the bucket's compaction did not fail. */
const struct tn_setback *tn_setback_of(const struct tn_setbacks *setbacks,
                                       struct tn_bytes partition, int32_t bucket);

/* Notes a failure while round `round` is open; true when it should be said. */
bool tn_setback_note(struct tn_setbacks *setbacks, struct tn_bytes partition, int32_t bucket,
                     int64_t round, bool at_stop, tn_rc rc, const struct tn_err *err);

void tn_setback_forget(struct tn_setbacks *setbacks, struct tn_bytes partition, int32_t bucket);
