/* lake: the target of a sync, from a word of the command line to something that delta.h can send
 * to.
 */
#pragma once

#include "app/boot.h"
#include "upload/delta.h"
#include "upload/directory.h"

enum { TN_LAKE_NAME_SIZE = 40 };

struct tn_lake {
    struct tn_io_posix posix;
    struct tn_directory directory;
    char consumer[TN_LAKE_NAME_SIZE]; /* "tarn-lake-" and a hash of the folder's path */
    int lock;
    bool there; /* false: a folder that a dry run doesn't make */
};

struct tn_lake_spec {
    const char *where;
    const char *table;
    const char *who; /* for the lock */
    int warehouse;   /* the descriptor of its folder */
    bool make;
    struct tn_arena *arena; /* what it takes there is its own until it is closed */
};

/* As below, for who has memory of its own: a thread beside others. One at a time. */
TN_MUST_USE tn_rc tn_lake_open_by(struct tn_lake *lake, const struct tn_lake_spec *spec,
                                  struct tn_err *err);
/* Opens a folder (made when `make` and missing) and locks the table in it. EXISTS: somebody else
 * syncs to it or writes there; UNSUPPORTED: s3:// and the like; INVALID: the warehouse itself. */
TN_MUST_USE tn_rc tn_lake_open(struct tn_lake *lake, struct tn_app *app, const char *where,
                               const char *table, bool make, struct tn_err *err);
void tn_lake_close(struct tn_lake *lake);
/* NULL: of a dry run, where there is none. */
struct tn_target *tn_lake_target(struct tn_lake *lake);

/* Brings the lake up to the table; memory from the long worker. */
TN_MUST_USE tn_rc tn_lake_sync(struct tn_lake *lake, struct tn_app *app,
                               const struct tn_delta_spec *spec, struct tn_delta_result *result,
                               struct tn_err *err);
