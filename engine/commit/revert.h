/* revert: a table gets an older state back by a new snapshot, where ids may not be taken back since
 * others have seen them (a lake).
 *
 *     base list -> delta list: DELETE what the old one hasn't, ADD what it has, as copies
 *     -> barrier -> snapshot, an OVERWRITE -> hint
 *
 * What the old one has and the newest hasn't is copied, under new names: a file that comes back
 * under its name would be gone for official readers, who collect all DELETEs first, and official
 * expiry would remove it with the snapshot that deleted it, whoever has it now (run and seen).
 * User, identifier and properties are the old snapshot's: writers go on from there, inputs are read
 * again. The schema is the newest. Streaming readers pass it over, as any OVERWRITE, unless they
 * asked for such.
 *
 * Cut the power anywhere: the new snapshot is there, or not, and then copies may be left over, for
 * orphan.h; the same call again makes it, or finds that the table is there already. Source of the
 * idea: Paimon 2, rollbackToAsLatest.
 */
#pragma once

#include "commit/rollback.h"

/* Of the snapshot that is made: whose state it has. */
#define TN_REVERT_PROPERTY "tarn.rollback"

struct tn_revert_spec {
    struct tn_rollback_spec target;
    const struct tn_schema *schema; /* the newest */
    const struct tn_options *options;
};

struct tn_revert_result {
    int64_t from_id;     /* whose state it has now */
    int64_t snapshot_id; /* that was made, or would be; the newest when nothing was to be done */
    uint64_t removed;    /* files */
    uint64_t added;
};

/* INVALID: no such snapshot or tag, or positions of inputs aren't known there; CONFLICT: somebody
 * else commits; UNSUPPORTED: index files, files with others beside them, files outside the table.
 * The caller has the table's lock. 32 bytes a live file, from the worker's arena. */
TN_MUST_USE tn_rc tn_revert(const struct tn_revert_spec *spec, struct tn_worker *worker,
                            struct tn_revert_result *result, struct tn_err *err);
