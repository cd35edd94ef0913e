/* lake: the target of a sync, from a word of the command line to something that delta.h can send
 * to: a folder, or a bucket of an object store.
 *
 * One sync of a table to a lake at a time: in a folder a lock says so, which lies there; for a
 * bucket one in our own warehouse, so two machines are told apart by the bucket alone.
 */
#pragma once

#include "app/lake_store.h"
#include "upload/delta.h"
#include "upload/directory.h"

enum { TN_LAKE_NAME_SIZE = 40 };

struct tn_lake {
    struct tn_io_posix posix; /* a folder; or where a store's credentials are */
    struct tn_directory directory;
    struct tn_target *target;         /* NULL: a folder that a dry run doesn't make */
    char consumer[TN_LAKE_NAME_SIZE]; /* "tarn-lake-" and a hash of the place */
    struct tn_io *lock_io;
    int lock;
    bool is_store;
    bool has_posix;
};

struct tn_lake_spec {
    const char *where;
    const char *table;
    const char *who; /* for the lock */
    int warehouse;   /* the descriptor of its folder */
    bool make;
    bool shared; /* others write the table there, too: it is locked in our warehouse alone */
    struct tn_arena *arena; /* what it takes there is its own until it is closed */
    struct tn_io *io;       /* the warehouse's; for a folder that isn't shared it may be NULL */

    /* Of a store; NULL: it is UNSUPPORTED. */
    const struct tn_lake_options *options; /* their texts live until it is closed */
    const struct tn_lake_doors *doors;
    uint32_t rate;        /* bytes a second; 0: as fast as it goes */
    uint32_t patience_ms; /* with a store that doesn't answer; 0: what is usual */
};

/* The name by which a lake is known, whoever sends to it: "tarn-lake-" and a hash of where it lies,
 * however that is written. Of a folder that isn't there yet: where it would be. `options` are a
 * store's, with those of the environment. INVALID: no place. */
TN_MUST_USE tn_rc tn_lake_name(const char *where, const struct tn_lake_options *options,
                               char name[TN_LAKE_NAME_SIZE], struct tn_err *err);

/* As below, for who has memory of its own: a thread beside others. One at a time. A store's target
 * takes tn_s3_target_size(TN_LAKE_LINKS) of it, or less with fewer connections. */
TN_MUST_USE tn_rc tn_lake_open_by(struct tn_lake *lake, const struct tn_lake_spec *spec,
                                  struct tn_err *err);
/* Opens a folder (made when `make` and missing) and locks the table in it. EXISTS: somebody else
 * syncs to it or writes there; UNSUPPORTED: s3:// and the like; INVALID: the warehouse itself. */
TN_MUST_USE tn_rc tn_lake_open(struct tn_lake *lake, struct tn_app *app, const char *where,
                               const char *table, bool make, struct tn_err *err);
void tn_lake_close(struct tn_lake *lake);
/* A lake's place by one text, in the arena: a folder from "/" and without links. */
TN_MUST_USE tn_rc tn_lake_place(const char *where, struct tn_arena *arena, const char **place,
                                struct tn_err *err);
/* NULL: of a dry run, where there is none. */
struct tn_target *tn_lake_target(struct tn_lake *lake);

/* Brings the lake up to the table; memory from the long worker. */
TN_MUST_USE tn_rc tn_lake_sync(struct tn_lake *lake, struct tn_app *app,
                               const struct tn_delta_spec *spec, struct tn_delta_result *result,
                               struct tn_err *err);
