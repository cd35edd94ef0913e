/* expire, from inside: one run, and what its parts share.
 *
 * expire_range.c which snapshots go: retention, consumers
 * expire_keep.c  the snapshots whose files must stay: kept ones, tags, branches
 * expire_files.c data files: candidates, less what is kept; removing them
 * expire_names.c the same for lists, manifests, index files, statistics
 * expire_records.c changelogs that outlive their snapshots: made, and in their turn expired
 * expire.c       the order of it all
 * tag_remove.c   the same for a tag that goes
 */
#pragma once

#include "commit/expire.h"
#include "commit/set.h"

struct tn_expire_run {
    const struct tn_expire_spec *spec;
    struct tn_worker *worker;
    struct tn_expire_result *result;
    int64_t oldest; /* smallest id in the folder; below `first` only after a cut */
    int64_t first;  /* what EARLIEST says */
    int64_t last;
    int64_t end;       /* oldest .. end-1 go */
    int64_t kept;      /* the first snapshot that stays */
    int64_t tag_floor; /* the newest tag below `oldest`; older ones reach nothing that it doesn't */
    const char *without; /* "tag-x": no keeper; or NULL */
    uint64_t tags_seen;  /* stands for the names of all tags that were looked at */
    bool overwritten;    /* a kept snapshot may have brought back what one before it deleted */
    bool settled;        /* names that went before are known to be gone */
    bool decoupled;      /* changelogs outlive their snapshots... */
    bool told_by_deltas; /* ...and are what the deltas add: there is no changelog producer */
    bool keeps_copy;     /* the keeper at hand is a tag, or of a branch */
    bool keeps_record;   /* or a long-lived changelog */
    bool met;            /* the snapshot that was looked for */
    int64_t consumer_min;
    int64_t time_ms;     /* of the snapshot that was looked at last */
    struct tn_set files; /* paths with a DELETE entry; marked: reached, or gone by now */
    int32_t bucket_min;  /* of these */
    int32_t bucket_max;
    struct tn_set names; /* of metadata files that are reached, or gone by now */
    uint64_t name_count;
};

typedef tn_rc tn_expire_snapshot_fn(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                                    struct tn_err *err);

/* ---- expire.c ---- */

static inline tn_rc tn_expire_no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "expire: no room for a path");
}

/* Calls `each` for one snapshot, if it is there. */
TN_MUST_USE tn_rc tn_expire_with_snapshot(struct tn_expire_run *e, int64_t id,
                                          tn_expire_snapshot_fn *each, struct tn_err *err);

/* The same, if it is an OVERWRITE. */
TN_MUST_USE tn_rc tn_expire_with_overwrite(struct tn_expire_run *e, int64_t id,
                                           tn_expire_snapshot_fn *each, struct tn_err *err);

/* What can't be read any more (a cut, a damaged file) names nothing: its files leak. */
tn_rc tn_expire_forgive(tn_rc rc);

/* The same for a long-lived changelog. */
TN_MUST_USE tn_rc tn_expire_with_record(struct tn_expire_run *e, int64_t id,
                                        tn_expire_snapshot_fn *each, struct tn_err *err);

/* One barrier, before the first file goes: a tag, a branch or a snapshot that is gone by what was
 * read here, and comes back when the power goes, must not find its files gone. */
TN_MUST_USE tn_rc tn_expire_settle(struct tn_expire_run *e, const char *folder, struct tn_err *err);

/* Writes EARLIEST of a folder, durably, with what decides beside it. */
TN_MUST_USE tn_rc tn_expire_hint(struct tn_expire_run *e, const char *folder, int64_t id,
                                 struct tn_err *err);

/* The names in a folder of the table; none where there is no such folder. */
TN_MUST_USE tn_rc tn_expire_list_folder(struct tn_expire_run *e, const char *folder,
                                        tn_io_name_fn *each, void *user, struct tn_err *err);

/* True when there was such a file. One that can't be removed leaks. NULL: none. */
bool tn_expire_remove_path(struct tn_expire_run *e, const char *path);

/* ---- expire_range.c ---- */

/* Sets oldest, first, last and end. ABSENT: no snapshot. */
TN_MUST_USE tn_rc tn_expire_choose_range(struct tn_expire_run *e, struct tn_err *err);

/* The same of long-lived changelogs; the newest of them stays. ABSENT: there are none. */
TN_MUST_USE tn_rc tn_expire_choose_records(struct tn_expire_run *e, struct tn_err *err);

/* ---- expire_keep.c ---- */

/* Sets tag_floor, tags_seen and overwritten; `kept` is known. */
TN_MUST_USE tn_rc tn_expire_find_keepers(struct tn_expire_run *e, struct tn_err *err);

/* Each snapshot that stays and may reach what those before it do: the first one kept, tags, those
 * of branches; and of the later ones each OVERWRITE. */
TN_MUST_USE tn_rc tn_expire_each_keeper(struct tn_expire_run *e, tn_expire_snapshot_fn *each,
                                        struct tn_err *err);

/* A tag that was made since then keeps something that isn't known here: AGAIN. */
TN_MUST_USE tn_rc tn_expire_check_tags(struct tn_expire_run *e, struct tn_err *err);

/* ---- expire_files.c, expire_names.c ---- */

/* Of partition, bucket and name. */
struct tn_hash_128 tn_expire_path_hash(const struct tn_entry *entry);
/* Each entry of a snapshot's delta, with the run as `user`. */
TN_MUST_USE tn_rc tn_expire_each_delta_entry(struct tn_expire_run *e,
                                             const struct tn_snapshot *snapshot, tn_live_fn *each,
                                             struct tn_err *err);
/* `bucket_min` and `bucket_max` take in the entry's. */
void tn_expire_note_bucket(struct tn_expire_run *e, const struct tn_entry *entry);
/* A candidate that isn't marked: the data file, then what lies beside it. */
TN_MUST_USE tn_rc tn_expire_remove_candidate(struct tn_expire_run *e, const struct tn_entry *entry,
                                             struct tn_err *err);
/* For a run: removes the candidate that a DELETE entry names; marks the one that an ADD names. */
tn_live_fn tn_expire_remove_deleted;
tn_live_fn tn_expire_mark_added;
/* Removes what a changelog list names. */
TN_MUST_USE tn_rc tn_expire_remove_changelog(struct tn_expire_run *e,
                                             const struct tn_snapshot *snapshot,
                                             struct tn_err *err);
/* Marks the candidates that are live in a snapshot. */
tn_expire_snapshot_fn tn_expire_keep_live;

/* Sizes the set of files, and lets the run end earlier where it doesn't fit. */
TN_MUST_USE tn_rc tn_expire_fit_files(struct tn_expire_run *e, struct tn_err *err);
TN_MUST_USE tn_rc tn_expire_fit_records(struct tn_expire_run *e, struct tn_err *err);
size_t tn_expire_room(const struct tn_expire_run *e); /* for sets */
TN_MUST_USE tn_rc tn_expire_collect_files(struct tn_expire_run *e, struct tn_err *err);
TN_MUST_USE tn_rc tn_expire_remove_data(struct tn_expire_run *e, struct tn_err *err);

/* Each keeper's names, and those of what `more` (or NULL) finds beside them. */
typedef tn_rc tn_expire_more_fn(struct tn_expire_run *e, tn_expire_snapshot_fn *each,
                                struct tn_err *err);
TN_MUST_USE tn_rc tn_expire_collect_names(struct tn_expire_run *e, tn_expire_more_fn *more,
                                          struct tn_err *err);
/* The files of a snapshot that goes: lists and their manifests; its index manifest and the index
 * files in it, statistics. */
enum {
    TN_EXPIRE_STATE = 1, /* base and delta list */
    TN_EXPIRE_CHANGELOG = 2,
    TN_EXPIRE_BESIDE = 4 /* index manifest and files, statistics */
};
TN_MUST_USE tn_rc tn_expire_remove_lists(struct tn_expire_run *e,
                                         const struct tn_snapshot *snapshot, unsigned parts,
                                         struct tn_err *err);
/* The files of snapshots or long-lived changelogs themselves, oldest first; how many there were. */
TN_MUST_USE tn_rc tn_expire_remove_numbered(struct tn_expire_run *e, const char *folder,
                                            const char *prefix, uint32_t *count,
                                            struct tn_err *err);

/* ---- expire_records.c ---- */

/* Copies the snapshots that go to the changelog folder; durable when it returns. */
TN_MUST_USE tn_rc tn_expire_make_records(struct tn_expire_run *e, struct tn_err *err);
/* Long-lived changelogs go, and what they alone reach. */
TN_MUST_USE tn_rc tn_expire_records(struct tn_expire_run *e, struct tn_err *err);
