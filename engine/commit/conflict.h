/* conflict: may a compaction be committed on top of a snapshot, and the records that it takes from
 * there.
 *
 * One pass over the live entries of the buckets that the compaction touches: each source must be
 * among them (its record is copied whole, as DELETE; behind all of these again as ADD where it only
 * goes to another level), no result may be there already, the number of buckets must agree, and in
 * each level from 1 up no result may overlap what stays. Source: Paimon 1.3,
 * FileStoreCommitImpl.noConflictsOrFail.
 */
#pragma once

#include "commit/attempt.h"
#include "commit/commit.h"

/* CONFLICT says which file and why; INVALID when the compaction contradicts itself. Memory: 48
 * bytes × (removed + compacted), and what tn_live_each takes. */
TN_MUST_USE tn_rc tn_conflict_check(const struct tn_commit_spec *spec,
                                    const struct tn_snapshot *previous, struct tn_worker *worker,
                                    struct tn_entry_writer *entries, struct tn_err *err);
