/* restore, from inside: one try, and what its parts share.
 *
 * restore_mark.c   what an earlier try left, and that one is under way
 * restore_files.c  the files of a snapshot: counted, then brought
 * restore.c        the order of it all
 */
#pragma once

#include "commit/live.h"
#include "commit/set.h"
#include "file/schemas.h"
#include "schema/options.h"
#include "upload/directory.h"
#include "upload/lake_io.h"
#include "upload/restore.h"

struct tn_restore {
    const struct tn_restore_spec *spec;
    struct tn_worker *worker; /* its io is `home`, or in a dry run the lake's */
    struct tn_restore_result *result;
    struct tn_io *home;
    struct tn_lake_io lake;        /* what is asked of the target, but for files */
    struct tn_directory directory; /* of `home` */
    struct tn_schemas schemas;
    struct tn_options options;
    struct tn_set counted; /* names */
    bool counting;
};

/* What is written down when it begins. */
struct tn_restore_mark {
    int64_t snapshot_id;
    int64_t generation;             /* the owner's before it was raised; 0: there was none */
    char from[TN_LAKE_IO_PATH_MAX]; /* the target's name */
};

static inline tn_rc tn_restore_no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "restore: no room for a path");
}

/* ABSENT: none is under way. */
TN_MUST_USE tn_rc tn_restore_read_mark(struct tn_restore *r, struct tn_restore_mark *mark,
                                       struct tn_err *err);
TN_MUST_USE tn_rc tn_restore_write_mark(struct tn_restore *r, const struct tn_restore_mark *mark,
                                        struct tn_err *err);
TN_MUST_USE tn_rc tn_restore_remove_mark(struct tn_restore *r, struct tn_err *err);
/* EXISTS: there is a table, or something of one. */
TN_MUST_USE tn_rc tn_restore_check_empty(struct tn_restore *r, struct tn_err *err);

/* All that these snapshots reach, each file once; FULL: there is no room for it. */
TN_MUST_USE tn_rc tn_restore_bring_files(struct tn_restore *r, int64_t first_id, int64_t last_id,
                                         struct tn_err *err);
