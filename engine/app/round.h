/* round: one round of compaction: what is due in each bucket of a table, done to the end and
 * committed.
 *
 *     census -> a group of buckets is opened -> picked, merged -> COMPACT snapshot -> next group
 *
 * A group is as many buckets as may be open at once with all their files, so a table may have any
 * number of them. It is a dedicated job: it compacts tables whose writers don't (write-only), tells
 * their changes, and expires snapshots for them. The table is held for the round alone.
 */
#pragma once

#include "app/boot.h"
#include "table/census.h"
#include "table/table.h"

struct tn_compact_round_spec {
    struct tn_app *app; /* nothing else is open; its arenas are as before when the round is over */
    const char *table;
    bool full;      /* everything into the highest level */
    int64_t number; /* of a job's round, from 1, by which full-compaction.delta-commits counts; 0:
                       as writers count */
    bool (*stopped)(void); /* asked between pieces of work; or NULL */
};

struct tn_compact_round {
    int64_t bucket_count; /* looked at */
    uint64_t compactions;
    uint64_t bytes_written;
    int64_t snapshot_id; /* of the last commit; 0: none */
    int64_t seen_id;     /* the newest snapshot when the round began; 0: none */
    uint32_t behind;     /* buckets that couldn't be compacted */
    tn_rc behind_rc;
    int64_t full_every; /* rounds from one full compaction to the next, by the table's options */
};

/* `*round` is set on every outcome. EXISTS: somebody else holds the table. CANCELED: stopped; what
 * was committed before stays. */
TN_MUST_USE tn_rc tn_compact_round(const struct tn_compact_round_spec *spec,
                                   struct tn_compact_round *round, struct tn_err *err);

/* Whether a bucket needs a closer look; `full`: everything is to go into the highest level. */
bool tn_compact_may_be_due(const struct tn_options *options, bool full,
                           const struct tn_census_bucket *bucket);
