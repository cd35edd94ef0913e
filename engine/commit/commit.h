/* commit: a round's files become an APPEND snapshot and, where something was compacted, a COMPACT
 * snapshot on top.
 *
 *     read newest L -> check -> base list (merged) -> delta manifest, delta list
 *          ^                                                    |
 *          |                                                 barrier
 *          |                                                    |
 *          '---- name taken: the next L, checked again ---- publish L+1 -> hint
 *
 * A name may have been taken and have expired since the newest was read: where the one before is
 * gone it is made sure that others did not go on without ours, else its name is given back.
 *
 * Data files are never touched. Manifests and lists of an attempt that lost are removed and written
 * again. After an error of the disk whose outcome is unknown the name is looked for and its content
 * compared. Source: Paimon, FileStoreCommitImpl.
 */
#pragma once

#include "commit/live.h"
#include "commit/trail.h"
#include "schema/options.h"

/* A file that a compaction took away: its identity and where to look. The full record is copied
 * from the manifests. */
struct tn_commit_removal {
    struct tn_bytes partition;
    int32_t bucket;
    int32_t level;
    const char *file_name;
    int32_t upgrade_level; /* >= 0: the same record is added again with this level, behind all
                              DELETEs; -1: gone */
};

/* A snapshot that somebody else made. */
struct tn_foreign {
    int64_t id;
    const struct tn_snapshot *snapshot; /* NULL: it can't be read */
    /* Then its one delta manifest, where the next one's base list tells it, or NULL. */
    const struct tn_manifest_meta *manifest;
    bool published; /* our APPEND snapshot is, already */
};

struct tn_commit_spec {
    const char *root;               /* "db.db/t" */
    const struct tn_schema *schema; /* the newest */
    const struct tn_options *options;
    const char *user;
    int64_t identifier;
    struct tn_json_map properties;
    struct tn_json_i64 watermark;
    const struct tn_entry *added; /* APPEND: ADD entries */
    uint32_t added_count;
    const struct tn_entry *changelog; /* APPEND: its changelog's files */
    uint32_t changelog_count;
    bool append_even_if_empty;
    const struct tn_commit_removal *removed; /* COMPACT: written as DELETE, before the ADDs */
    uint32_t removed_count;
    const struct tn_entry *compacted; /* COMPACT: ADD entries */
    uint32_t compacted_count;
    const struct tn_entry *compact_changelog; /* COMPACT: its changelog's files; only with others */
    uint32_t compact_changelog_count;
    const char *const *sync; /* files and folders ('/') of the round that are not synced yet */
    uint32_t sync_count;
    bool skip_if_done; /* the user's newest snapshot has this identifier or a later one: nothing is
                          committed, EXISTS */
    int64_t last_seen; /* newest snapshot id that the caller's state rests on; 0 none */
    struct tn_trail trail; /* of the same snapshot, with `foreign` */
    /* Told of each snapshot of others above last_seen, before ours is published on top of it; most
     * are told once. An error ends the commit. May be NULL. */
    tn_rc (*foreign)(void *user, const struct tn_foreign *foreign, struct tn_worker *worker,
                     struct tn_err *err);
    void *user_data;
};

struct tn_commit_result {
    int64_t append_id;  /* 0: none */
    int64_t compact_id; /* 0: none, or refused */
    int64_t latest_id;
    bool compact_refused; /* a source was gone or a level would overlap: the rows stand, the
                             compaction is void */
    bool foreign;         /* snapshots of others were found above last_seen */
    uint32_t attempts;
    struct tn_trail trail; /* of our newest snapshot, or the spec's; with `foreign` */
};

/* Everything it needs comes from the worker's arena and is given back. CONFLICT: more than
 * options->commit_max_retries names were taken. FULL and IO: nothing was published, or what was is
 * in `result`, or (IO) nobody can tell. */
TN_MUST_USE tn_rc tn_commit(const struct tn_commit_spec *spec, struct tn_worker *worker,
                            struct tn_commit_result *result, struct tn_err *err);

struct tn_commit_found {
    bool done;      /* the user's newest snapshot has the identifier or a later one */
    bool any;       /* there is a snapshot of the user */
    int64_t newest; /* its identifier */
    int64_t append_id;
    int64_t compact_id; /* 0: none of that identifier */
};
/* What `skip_if_done` asks. Reads snapshots from the newest on back to the user's newest: all that
 * are there, when it has none. */
TN_MUST_USE tn_rc tn_commit_find(struct tn_worker *worker, const char *root, const char *user,
                                 int64_t identifier, struct tn_commit_found *found,
                                 struct tn_err *err);
