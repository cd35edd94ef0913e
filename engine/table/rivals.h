/* rivals: other writers' snapshots, and whose rows they changed.
 *
 * Rows that were resolved beside what a bucket held are worth nothing when that is no more what it
 * held: a snapshot of somebody else's that adds or removes rows there makes the round void. While a
 * round is committed each such snapshot that lies below it is looked at: against the buckets of the
 * round itself, which is refused, and for those of the round that comes next, which may have been
 * resolved already. Of a snapshot that is gone its manifest may be left, which does not say what
 * kind it was of: it changed no row of a bucket when it is what only a compaction does there.
 */
#pragma once

#include "commit/commit.h"
#include "table/round.h"

enum { TN_RIVALS_MAX = 256 }; /* buckets that are told apart, of a table of many */

struct tn_rivals {
    const char *root;
    const struct tn_round_bucket *resolved; /* of the round that is committed */
    int64_t id;                             /* of the last snapshot that changed rows; 0: none */
    uint64_t *names;                        /* buckets in which rows changed */
    uint32_t count;
    uint32_t most; /* names that there is room for */
    bool all;      /* too many to tell, or a snapshot that can't be read */
};

/* Whether rows changed in one of these buckets. */
bool tn_rivals_have(const struct tn_rivals *rivals, const struct tn_round_bucket *buckets);
bool tn_rivals_have_one(const struct tn_rivals *rivals, uint64_t bucket);

/* CONFLICT, and what is to be done. */
tn_rc tn_rivals_refuse(const struct tn_rivals *rivals, struct tn_err *err);

/* tn_commit_spec.foreign. CONFLICT: rows of the round's own buckets, which is not published yet. */
TN_MUST_USE tn_rc tn_rivals_see(void *user, const struct tn_foreign *foreign,
                                struct tn_worker *worker, struct tn_err *err);
