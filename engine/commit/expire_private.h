/* expire, from inside: one run, and what its parts share.
 *
 * expire_range.c which snapshots go: retention, consumers
 * expire_keep.c  the snapshots whose files must stay: kept ones, tags, branches
 * expire_files.c data files: candidates, less what is kept; removing them
 * expire_names.c the same for lists, manifests, statistics
 * expire.c       the order of it all
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
    bool overwritten;  /* a kept snapshot may have brought back what one before it deleted */
    int64_t consumer_min;
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

/* The names in a folder of the table; none where there is no such folder. */
TN_MUST_USE tn_rc tn_expire_list_folder(struct tn_expire_run *e, const char *folder,
                                        tn_io_name_fn *each, void *user, struct tn_err *err);

/* True when there was such a file. One that can't be removed leaks. NULL: none. */
bool tn_expire_remove_path(struct tn_expire_run *e, const char *path);

/* ---- expire_range.c ---- */

/* Sets oldest, first, last and end. ABSENT: no snapshot. */
TN_MUST_USE tn_rc tn_expire_choose_range(struct tn_expire_run *e, struct tn_err *err);

/* ---- expire_keep.c ---- */

/* Sets tag_floor and overwritten; `kept` is known. */
TN_MUST_USE tn_rc tn_expire_find_keepers(struct tn_expire_run *e, struct tn_err *err);

/* Each snapshot that stays and may reach what those before it do: the first one kept, tags, those
 * of branches; and of the later ones each OVERWRITE. */
TN_MUST_USE tn_rc tn_expire_each_keeper(struct tn_expire_run *e, tn_expire_snapshot_fn *each,
                                        struct tn_err *err);

/* ---- expire_files.c, expire_names.c ---- */

/* Sizes the set of files, and lets the run end earlier where it doesn't fit. */
TN_MUST_USE tn_rc tn_expire_fit_files(struct tn_expire_run *e, struct tn_err *err);
TN_MUST_USE tn_rc tn_expire_collect_files(struct tn_expire_run *e, struct tn_err *err);
TN_MUST_USE tn_rc tn_expire_remove_data(struct tn_expire_run *e, struct tn_err *err);

TN_MUST_USE tn_rc tn_expire_collect_names(struct tn_expire_run *e, struct tn_err *err);
/* The lists of a snapshot that goes, and their manifests. */
TN_MUST_USE tn_rc tn_expire_remove_lists(struct tn_expire_run *e,
                                         const struct tn_snapshot *snapshot, struct tn_err *err);
/* The snapshot files themselves, oldest first. */
TN_MUST_USE tn_rc tn_expire_remove_snapshots(struct tn_expire_run *e, struct tn_err *err);
