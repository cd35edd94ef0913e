/* base_list: the base list of the next snapshot: all manifests of the one before, some of them
 * merged.
 *
 * Minor: neighbours are merged whenever they reach `manifest.target-file-size` together, and the
 * rest where they are at least `manifest.merge-min-count`. Full: when what is small or holds DELETE
 * entries reaches `manifest.full-compaction-threshold-size`, all DELETE entries and what they
 * delete go. Source: Paimon, ManifestFileMerger.
 *
 * Entries are streamed from the old manifests into the new ones; memory is 16 bytes × DELETE
 * entries of a group × 2 to 4, and the blocks of two readers and two writers. Where the set doesn't
 * fit, groups end earlier.
 */
#pragma once

#include "commit/attempt.h"
#include "commit/snapshot.h"

/* Merging is never needed: with `merge` false all records are copied. `name` is in the attempt's
 * `keep`. After an error the attempt is dropped by the caller; all but IO and FULL may pass without
 * merging. */
TN_MUST_USE tn_rc tn_base_list_write(struct tn_attempt *attempt, const struct tn_snapshot *previous,
                                     bool merge, const char **name, int64_t *size,
                                     struct tn_err *err);
