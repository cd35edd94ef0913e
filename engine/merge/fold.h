/* fold: the versions of one key become one row: the merge engines.
 *
 * `deduplicate`: the newest version, with its own kind. A key with a single version is passed
 * through untouched, whatever the engine (the reducer bypass). With `ignore_delete` retracts among
 * several versions are passed over, the defence for files that were written before the option was
 * set. A fold is a cursor; with `drop_deletes` rows whose result is a retract are left out:
 * reading, and compaction into the last level. Source: Paimon, DeduplicateMergeFunction,
 * ReducerMergeFunctionWrapper, DropDeleteReader.
 */
#pragma once

#include "merge/merge.h"

struct tn_fold {
    struct tn_iter iter; /* first */
    struct tn_merge *merge;
    bool ignore_delete;
    bool drop_deletes;
};

void tn_fold_init(struct tn_fold *fold, struct tn_merge *merge, bool ignore_delete,
                  bool drop_deletes);
