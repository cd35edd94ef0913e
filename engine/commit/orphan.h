/* orphan: removes files that nothing reaches: what a process that was killed, a rollback or a
 * failed removal left behind.
 *
 *     candidates: old files in manifest/, index/, statistics/ and all bucket folders
 *     less what any snapshot, tag or changelog of the table and its branches reaches
 *     and: old drafts in snapshot/, changelog/ and tag/; folders that this leaves empty
 *
 * Files are told apart by their names alone, as Paimon's OrphanFilesClean does. A file that is
 * being written is reached by nothing yet: only its age protects it, and, from tarn's own writers,
 * the table's lock, which the caller holds. So a writer can't do this at its start for what its
 * last process left: names hold random ids that stand nowhere else, an official writer beside it
 * has such files, too, and to know that nothing reaches a file all manifests must be read.
 *
 * Nothing goes before all that is reached was read: what can't be read ends it. Where official
 * cleaning takes a list or manifest that is missing for empty, here only the reasons count that
 * expiry has. Bounded memory: 32 bytes a candidate; what doesn't fit is left for another pass, each
 * with a part of all hashes. A pass reads each manifest once, twice where many have no room.
 */
#pragma once

#include "commit/live.h"
#include "schema/options.h"

/* A file that goes, or would; its path from the warehouse. */
typedef void tn_orphan_fn(void *user, const char *path, uint64_t size);

struct tn_orphan_spec {
    const char *root;
    const struct tn_schema *schema; /* the newest */
    const struct tn_options *options;
    int64_t older_than_ms; /* files last changed before this moment */
    bool dry_run;
    tn_orphan_fn *each; /* or NULL */
    void *user;
};

struct tn_orphan_result {
    uint64_t files;
    uint64_t bytes;
    uint64_t folders; /* that were empty then; none with dry_run */
    uint32_t passes;
};

/* CORRUPT: something that tells what is reached can't be read, or a branch has no schema. A file
 * that can't be removed stays. The worker's arena is left as it was. */
TN_MUST_USE tn_rc tn_orphan_clean(const struct tn_orphan_spec *spec, struct tn_worker *worker,
                                  struct tn_orphan_result *result, struct tn_err *err);
