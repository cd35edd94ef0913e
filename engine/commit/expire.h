/* expire: old snapshots go, and the files that only they reach.
 *
 * Paimon's own rules: `snapshot.num-retained.min/max`, `snapshot.time-retained`, `snapshot.expire.limit`, consumers,
 * tags. Order: data files, manifests and lists, snapshot files (oldest first), EARLIEST; a cut anywhere leaves at most
 * snapshots that the next run finishes. Nothing is removed that a snapshot, a tag or `pinned` reaches. Source: behaviour spec, 7.1.
 */
#pragma once

#include "commit/live.h"
#include "schema/options.h"

struct tn_expire_spec {
    const char *root;
    const struct tn_schema *schema;
    const struct tn_options *options; /* retained_min, _max, time, limit as to be applied */
    bool dry_run;
};

struct tn_expire_result {
    uint32_t snapshots; /* expired */
    uint32_t data_files;
    uint32_t metadata_files;
    int64_t earliest_id;
};

/* Bounded memory: what must be kept is held as 16-byte hashes of names; where they do not fit, fewer snapshots are
 * expired in one call, never more. A file that can't be removed is left (a leak, never a loss). */
TN_MUST_USE tn_rc tn_expire(const struct tn_expire_spec *spec, struct tn_worker *worker,
                            struct tn_expire_result *result, struct tn_err *err);
