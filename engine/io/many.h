/* many: many files of an io at once. A store takes as long for eight answers as for one, and knows
 * what is below a folder in a thousand names an answer; a disk is asked one after the other.
 */
#pragma once

#include "io/io.h"

enum tn_io_ask_verb { TN_IO_ASK_STAT, TN_IO_ASK_READ, TN_IO_ASK_UNLINK };

struct tn_io_ask {
    enum tn_io_ask_verb verb;
    const char *path;
    void *room;       /* READ: where the file goes, with a zero byte behind it; aligned to 16 */
    size_t room_size; /* READ: with that byte; a multiple of 16 */
    tn_rc rc;         /* set: OK; STAT, READ: ABSENT; READ: INVALID, it is larger than its room */
    uint64_t size;    /* set: STAT, READ: of the file */
};

/* All of them, in no order; that what is unlinked isn't there is OK. An error is that of one of
 * them, none of `asks` is known then. */
TN_MUST_USE tn_rc tn_io_ask_all(struct tn_io *io, struct tn_io_ask *asks, uint32_t count,
                                struct tn_err *err);

/* The same, one after the other. */
TN_MUST_USE tn_rc tn_io_ask_each(struct tn_io *io, struct tn_io_ask *asks, uint32_t count,
                                 struct tn_err *err);

/* Files in the folders of a folder. */
struct tn_io_walk {
    const char *path;    /* "a/b/" */
    const char *after;   /* names up to this one, as bytes compare, need not be told; NULL: all */
    tn_io_name_fn *each; /* the name is that of a file from `path` on, "c/d"; it asks nothing of
                            the io. Names that lie deeper or higher may be told, too */
    void *user;
    bool enough; /* set by `each`: what would be told later isn't needed */
};

/* ABSENT: nothing is there. */
TN_MUST_USE tn_rc tn_io_walk(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err);

/* The same by lists of one folder after the other. */
TN_MUST_USE tn_rc tn_io_walk_folders(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err);
