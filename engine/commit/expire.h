/* expire: old snapshots go, and the files that only they reach.
 *
 * Paimon's own rules: `snapshot.num-retained.min/max`, `snapshot.time-retained`,
 * `snapshot.expire.limit`, consumers, tags. Nothing is removed that a kept snapshot, a tag or a
 * branch reaches. Tags whose time is over go first (tag.h). Source: Paimon, ExpireSnapshotsImpl,
 * SnapshotDeletion.
 *
 *     look -> EARLIEST, barrier -> data files -> manifests, lists -> snapshot files, oldest first
 *
 * Where changelogs outlive snapshots (`changelog.num-retained.min/max`, `changelog.time-retained`),
 * a snapshot that goes is copied to `changelog/changelog-N` before EARLIEST moves. Its changelog
 * files stay, or, without a changelog producer, its lists and all data files that came by a flush.
 * Then such records expire in the same way, with an EARLIEST of their own; here, too, it decides.
 * Source: Paimon, ExpireChangelogImpl, ChangelogDeletion.
 *
 * EARLIEST comes first and is synced (Java writes it last). It decides: a snapshot below it is
 * being expired, doesn't count as the earliest, and may be in pieces; each one from it on is whole.
 * A cut may tear it while it moves, and then the smallest name counts: so names that went before
 * are synced first. The barrier behind it covers tags and branches that are gone, too: one that
 * comes back must find its files. So a cut at any call, with the unlinks reaching the medium in any
 * order, leaves a table that reads right, and the next run begins at the smallest name in the
 * folder and finishes. Without an unlink of EARLIEST's own there is nothing to undo. Official
 * readers take EARLIEST when it names a snapshot that exists, which it does throughout.
 *
 * A file is a candidate when a DELETE entry of an expired delta names it, or when it was live in
 * front of ids that are missing (a mirror has such a gap), and stays when it is live in what is
 * kept. Official expiry trusts the order of entries in the delta instead; this holds for
 * either order, and after a rollback that brought files back.
 */
#pragma once

#include "commit/live.h"
#include "schema/options.h"

struct tn_expire_spec {
    const char *root;
    const struct tn_schema *schema;
    const struct tn_options *options; /* retained_min, _max, time, limit as to be applied */
    bool dry_run;
    bool settled; /* snapshot/ was synced since a run before removed names from it */

    /* Who knows the newest OVERWRITE spares reading every snapshot that stays. */
    bool overwrite_known;
    int64_t overwrite; /* its id; 0: there is none */
};

struct tn_expire_result {
    uint32_t snapshots; /* expired */
    uint32_t tags;
    uint32_t changelogs; /* long-lived ones */
    uint32_t data_files;
    uint32_t metadata_files; /* of a dry run perhaps too many, where memory is short */
    int64_t earliest_id;
};

/* Bounded memory: what must be kept is held as 16-byte hashes of names; where they do not fit,
 * fewer snapshots are expired in one call, never more. A file that can't be removed is left (a
 * leak, never a loss), as are files with an external path.
 * CORRUPT for a tag, consumer or kept manifest that can't be read: then nothing is removed. AGAIN
 * when a tag was made meanwhile: the next run goes on. */
TN_MUST_USE tn_rc tn_expire(const struct tn_expire_spec *spec, struct tn_worker *worker,
                            struct tn_expire_result *result, struct tn_err *err);
