/* trail: which manifests a snapshot reaches, as a number. Snapshots that came after it and are gone
 * can still be told by what they left.
 *
 * A snapshot's base list is the base list of the one before, merged or not, and behind it that
 * one's delta manifests. As long as nothing was merged, the base list of the first snapshot that is
 * still there begins with the manifests of the trail, and behind them stand the delta manifests of
 * those that are gone, in order. A writer begins a second manifest when the first has reached
 * `manifest.target-file-size`: where all are smaller, none has more than one; and where there are
 * as many as snapshots are gone, each has its own, and none were merged, which would leave fewer.
 * Source: Paimon, FileStoreCommitImpl.tryCommitOnce, ManifestFileMerger.
 */
#pragma once

#include "commit/live.h"

struct tn_trail {
    int64_t id;     /* of the snapshot; 0: not known */
    uint64_t count; /* manifests of its base list and its delta list */
    uint64_t hash;  /* of their names, in order */
};

/* Not known, when a list can't be read. */
void tn_trail_read(struct tn_trail *trail, const char *root, const struct tn_snapshot *snapshot,
                   struct tn_worker *worker);

/* Called with the one delta manifest of a snapshot that is gone. */
typedef tn_rc tn_trail_fn(void *user, int64_t id, const struct tn_manifest_meta *manifest,
                          struct tn_err *err);

/* The snapshots between the trail's and `next`. False, and `each` was not called: what they did
 * can't be told. Else `*rc` is what `each` said last, or what came between. `target_size`: the
 * option. */
bool tn_trail_each(const struct tn_trail *trail, const char *root, const struct tn_snapshot *next,
                   int64_t target_size, struct tn_worker *worker, tn_trail_fn *each, void *user,
                   tn_rc *rc, struct tn_err *err);
