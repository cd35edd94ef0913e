/* orphan, from inside: one run, and what its parts share.
 *
 * orphan_walk.c  the folders of a table's files, each in turn
 * orphan_used.c  what snapshots, tags and changelogs reach
 * orphan.c       passes: candidates, less what is reached; removing them
 */
#pragma once

#include "commit/orphan.h"
#include "commit/set.h"

struct tn_orphan_run {
    const struct tn_orphan_spec *spec;
    struct tn_worker *worker;
    struct tn_orphan_result *result;
    uint64_t part; /* this pass is about hashes whose first `bits` are this */
    uint32_t bits;
    struct tn_set names; /* of candidates; marked: reached */
    struct tn_set read;  /* manifests of this pass, as many as there is room for */
    size_t unmarked;
    bool full;    /* there was no room for a candidate */
    bool settled; /* what we saw of snapshots and tags is on the medium */
    const char *dir;
    uint64_t removed; /* files, in `dir` */
    /* of the snapshot at hand */
    const char *home;
    const char *path;
    int64_t snapshot_id; /* 0: a tag */
    bool may_lack;       /* the list or manifest at hand */
};

static inline tn_rc tn_orphan_no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "clean: no room for a path");
}

/* The names in `<home>/<folder>`; none where there is no such folder. */
TN_MUST_USE tn_rc tn_orphan_list(struct tn_orphan_run *o, const char *home, const char *folder,
                                 tn_io_name_fn *each, void *user, struct tn_err *err);

/* The table, then each branch: where snapshot/, tag/ and changelog/ are. */
typedef tn_rc tn_orphan_home_fn(struct tn_orphan_run *o, const char *home, struct tn_err *err);
TN_MUST_USE tn_rc tn_orphan_each_home(struct tn_orphan_run *o, tn_orphan_home_fn *each,
                                      struct tn_err *err);

/* Marks all names that `home` reaches. */
tn_orphan_home_fn tn_orphan_mark_used;

/* Calls `each` with every folder that holds files, its path with a final '/'. Where `each` says
 * `*emptied`, the folder is removed, and those of its partition that are empty then. */
typedef tn_rc tn_orphan_folder_fn(struct tn_orphan_run *o, const char *dir, bool *emptied,
                                  struct tn_err *err);
TN_MUST_USE tn_rc tn_orphan_walk(struct tn_orphan_run *o, tn_orphan_folder_fn *each,
                                 struct tn_err *err);
