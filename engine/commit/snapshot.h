/* snapshot: a `snapshot-N` file (a tag and a long-lived changelog have the same text), and the
 * hints.
 *
 * All members are one array (snapshot.c), walked by reader and writer. Source: Paimon, Snapshot.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/json.h"
#include "io/io.h"

struct tn_snapshot {
    struct tn_json_i64 version;
    int64_t id;
    int64_t schema_id;
    const char *base_manifest_list;
    struct tn_json_i64 base_manifest_list_size;
    const char *delta_manifest_list;
    struct tn_json_i64 delta_manifest_list_size;
    const char *changelog_manifest_list; /* or NULL */
    struct tn_json_i64 changelog_manifest_list_size;
    const char *index_manifest; /* or NULL */
    const char *commit_user;
    struct tn_json_i64 commit_identifier;
    const char *commit_kind; /* APPEND COMPACT OVERWRITE ANALYZE */
    struct tn_json_i64 time_ms;
    struct tn_json_i64 total_record_count;
    struct tn_json_i64 delta_record_count;
    struct tn_json_i64 changelog_record_count;
    struct tn_json_i64 watermark;
    const char *statistics; /* or NULL */
    struct tn_json_map properties;
    struct tn_json_i64 next_row_id;
};

/* Makes `next` the one behind `previous` (NULL: the first), of which it has what a commit hands on:
 * counts, watermark, index, and statistics while the schema is the same; properties are not. The
 * rest of it, with the delta's count, is there already. Source: Paimon,
 * FileStoreCommitImpl.tryCommitOnce. */
void tn_snapshot_follow(struct tn_snapshot *next, const struct tn_snapshot *previous,
                        int64_t now_ms);

enum { TN_SNAPSHOT_SIZE_MAX = 256 * 1024 };

/* CORRUPT names the member; `json` is the whole file. */
TN_MUST_USE tn_rc tn_snapshot_decode(struct tn_bytes json, struct tn_arena *arena,
                                     struct tn_snapshot *snapshot, struct tn_err *err);
void tn_snapshot_encode(const struct tn_snapshot *snapshot, struct tn_buf *buf);
/* The same into the arena. INVALID: more than TN_SNAPSHOT_SIZE_MAX. */
TN_MUST_USE tn_rc tn_snapshot_text(const struct tn_snapshot *snapshot, struct tn_arena *arena,
                                   struct tn_bytes *text, struct tn_err *err);

/* Reads snapshot/snapshot-<id>; ABSENT when there is none. */
TN_MUST_USE tn_rc tn_snapshot_read(struct tn_io *io, const char *root, int64_t id,
                                   struct tn_arena *arena, struct tn_snapshot *snapshot,
                                   struct tn_err *err);

/* Any file of a snapshot's shape, by path: tags, changelogs. */
TN_MUST_USE tn_rc tn_snapshot_read_path(struct tn_io *io, const char *path, struct tn_arena *arena,
                                        struct tn_snapshot *snapshot, struct tn_err *err);

/* The newest id: the hint when it names a snapshot that exists, has no successor and is not being
 * expired, else the largest in the folder. ABSENT for a table without snapshots. Never trusts a
 * hint that is too high. */
TN_MUST_USE tn_rc tn_snapshot_latest(struct tn_io *io, const char *root, struct tn_arena *scratch,
                                     int64_t *id, struct tn_err *err);
/* The oldest id, likewise. A snapshot below the hint is being expired (expire.h): it doesn't count.
 * So where the hint can't be read for now, that is the error, and the folder isn't asked. */
TN_MUST_USE tn_rc tn_snapshot_earliest(struct tn_io *io, const char *root, struct tn_arena *scratch,
                                       int64_t *id, struct tn_err *err);
/* The smallest id in the folder, whatever EARLIEST says. */
TN_MUST_USE tn_rc tn_snapshot_oldest_name(struct tn_io *io, const char *root,
                                          struct tn_arena *scratch, int64_t *id,
                                          struct tn_err *err);

/* Writes snapshot/LATEST or snapshot/EARLIEST (`name`): a draft that replaces, not synced. */
TN_MUST_USE tn_rc tn_snapshot_hint(struct tn_io *io, const char *root, const char *name, int64_t id,
                                   struct tn_arena *scratch, struct tn_err *err);

/* Long-lived changelogs: `changelog/changelog-N`, copies of snapshots that expired. As with
 * snapshots, one below EARLIEST is being expired. ABSENT when there is none. */
struct tn_changelog_range {
    int64_t oldest; /* smallest id in the folder */
    int64_t first;
    int64_t last;
};
TN_MUST_USE tn_rc tn_changelog_range(struct tn_io *io, const char *root, struct tn_arena *scratch,
                                     struct tn_changelog_range *range, struct tn_err *err);

/* Writes changelog/LATEST or changelog/EARLIEST. */
TN_MUST_USE tn_rc tn_changelog_hint(struct tn_io *io, const char *root, const char *name,
                                    int64_t id, struct tn_arena *scratch, struct tn_err *err);

/* The newest that has a name, whatever the hint says: of "12" a cut may leave "1", and of snapshots
 * that had expired the first, but not the second; LATEST seems to be right, then. For starts. */
TN_MUST_USE tn_rc tn_snapshot_newest_name(struct tn_io *io, const char *root,
                                          struct tn_arena *scratch, int64_t *id,
                                          struct tn_err *err);

/* Hints are not synced, so a cut may leave one that is torn, lags, or names a snapshot that never
 * was: official readers believe it. At a start each is made to say what the folder says; without a
 * snapshot there is none. What fails is left for the next start. */
void tn_snapshot_heal_hints(struct tn_io *io, const char *root, struct tn_arena *scratch);
