/* lake_io, from inside:
 *
 * lake_files.c   which files are in the scratch folder, and why
 * lake_list.c    names of a folder, of both sides
 * lake_io.c      the calls of io.h
 *
 *     create -> WRITTEN -> (sync) SENT -> (settled) KEPT -> dropped
 *     open, not here -> (fetched) KEPT -> dropped
 */
#pragma once

#include "upload/lake_io.h"

enum tn_lake_state {
    TN_LAKE_FREE,
    TN_LAKE_WRITTEN, /* it is here only */
    TN_LAKE_SENT,    /* it may be there, too */
    TN_LAKE_KEPT,    /* it is there, and this is a copy */
};

struct tn_lake_file {
    enum tn_lake_state state;
    uint32_t number; /* its name in the scratch folder */
    uint32_t opens;
    bool writing;  /* one of them */
    bool nameless; /* goes with its last `close`: it was unlinked, or is asked for each time */
    bool told;     /* by the target, in the list that is being made */
    uint64_t size;
    uint64_t used; /* when it was, by lake->uses */
    uint64_t hash; /* of its path */
    char path[TN_LAKE_IO_PATH_MAX];
};

struct tn_lake_handle {
    bool used;
    bool writes;
    struct tn_lake_file *file; /* NULL: of ".tarn/" */
    int below;                 /* of the scratch io */
};

enum { TN_LAKE_NUMBER_SIZE = 24 };
void tn_lake_number(uint32_t number, char name[TN_LAKE_NUMBER_SIZE]);

static inline struct tn_lake_io *tn_lake_of(struct tn_io *io)
{
    return (struct tn_lake_io *)(void *)io;
}

/* One that has its name; NULL: the target may have it. */
struct tn_lake_file *tn_lake_find(struct tn_lake_io *lake, const char *path);
/* A new one, without a file yet. AGAIN: too many are in use. */
TN_MUST_USE tn_rc tn_lake_new(struct tn_lake_io *lake, const char *path, struct tn_lake_file **file,
                              struct tn_err *err);
TN_MUST_USE tn_rc tn_lake_rename(struct tn_lake_file *file, const char *path, struct tn_err *err);
/* Its bytes go, now or with the last `close`. */
void tn_lake_drop(struct tn_lake_io *lake, struct tn_lake_file *file);
/* It is the target's now. */
void tn_lake_keep(struct tn_lake_io *lake, struct tn_lake_file *file);
void tn_lake_opened(struct tn_lake_io *lake, struct tn_lake_file *file);
void tn_lake_closed(struct tn_lake_io *lake, struct tn_lake_file *file);
/* Brings it here. ABSENT: it isn't there. */
TN_MUST_USE tn_rc tn_lake_fetch(struct tn_lake_io *lake, const char *path,
                                struct tn_lake_file **file, struct tn_err *err);
/* Removes what an earlier process has left. */
TN_MUST_USE tn_rc tn_lake_clear(struct tn_lake_io *lake, struct tn_err *err);

TN_MUST_USE tn_rc tn_lake_list(struct tn_lake_io *lake, const char *path, tn_io_name_fn *each,
                               void *user, struct tn_err *err);
