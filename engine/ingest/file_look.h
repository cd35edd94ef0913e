/* file_look: one look at a file that is followed: the part that may wait for a disk, on a worker.
 *
 *     find --------> [a file is open] --- next? --- read whole records behind the place --> batch
 *       ^  lost: 0 of the path   ^  |                              |
 *       |                        |  +- all read, and there is a next one: open that, at 0
 *       +--- it is not what it was -+- all read: the end, for now
 *
 * What is followed is a file, not its path: once something else that has bytes is under the path,
 * nothing is written to the old file any more, so that it is read to its end, a last line without
 * line end too, and then the next one. That is the oldest of those changed after it among its
 * siblings (`NAME.1`, `NAME-20240101`), or the one under the path.
 *
 * A place is an identity, as io/source.h has it, and an offset. It is of as many first bytes as lie
 * before the place, up to TN_SOURCE_HASHED: those change no more. So a file is found again after it
 * was renamed, and by its first bytes where it was copied and then cut short. Where it is gone, the
 * oldest is read of those that were changed after it was.
 *
 * A look begins with the place that the hub has, and keeps nothing that was read before.
 */
#pragma once

#include "ingest/decode.h"
#include "ingest/file_place.h"

enum {
    TN_FILE_HEADER_MAX = 4096, /* of csv: a longer one is refused */
    TN_FILE_PATH_MAX = 1024,
};

enum tn_file_loss {
    TN_FILE_LOSS_NONE,
    TN_FILE_LOSS_GONE,   /* the file with the place is nowhere: the oldest is read that is newer */
    TN_FILE_LOSS_CUT,    /* it is there, shorter or with other bytes */
    TN_FILE_LOSS_PACKED, /* it, or one that came behind it, was compressed before it was read */
};

/* What is known of a record whose end wasn't found. */
struct tn_file_scan {
    uint64_t end; /* of what was looked at: an offset in the file */
    struct tn_record_place place;
    uint64_t line_ends; /* before it */
};

struct tn_file_look {
    /* Set once. */
    const char *path;
    enum tn_input input;
    unsigned char *data; /* `size` bytes, with TN_FILE_HEADER_MAX before them for the header */
    size_t size;
    bool once; /* the end of the last file is the end */
    char folder[TN_FILE_PATH_MAX];

    /* Between two looks the loop's: what to read. */
    struct tn_file_place place;
    size_t limit; /* bytes of a batch, where that is more than one record */

    /* The worker's. */
    struct tn_source file;
    bool open;
    char name[TN_FILE_PATH_MAX]; /* of it, when it was opened */
    char sibling[TN_FILE_PATH_MAX];
    char coming[TN_FILE_PATH_MAX];
    struct tn_file_scan scanned; /* of a record that is too long */
    struct tn_source_about idle; /* as it was when there was nothing to take */
    bool idle_ending;
    uint32_t missed; /* looks in a row that didn't find the place's file */

    /* What it gives. */
    size_t header_size; /* bytes right before data that the batch needs; csv */
    size_t batch;       /* bytes; 0: the end, for now */
    bool one;           /* record */
    uint64_t too_long;  /* bytes of a record of which the batch is the beginning; 0: it is whole */
    uint64_t too_long_lines;
    bool given_up;             /* it may go on */
    struct tn_file_place next; /* behind the batch */
    enum tn_file_loss loss;
};

/* INVALID: the path is too long. */
TN_MUST_USE tn_rc tn_file_look_init(struct tn_file_look *look, struct tn_err *err);
/* ABSENT: there is no file yet. AGAIN: files moved meanwhile; look again soon. Others: what is
 * wrong; a later look may do better. */
TN_MUST_USE tn_rc tn_file_look(struct tn_file_look *look, struct tn_err *err);
void tn_file_look_close(struct tn_file_look *look);

/* ---- file_find.c ---- */

/* Opens the place's file, or the oldest that came behind it. AGAIN, ABSENT as above. */
TN_MUST_USE tn_rc tn_file_find(struct tn_file_look *look, struct tn_err *err);

struct tn_file_next {
    bool found; /* its path is `coming` */
    struct tn_source_about about;
    bool packed;
};
/* What comes behind the open file, which nobody writes to any more when there is something. */
TN_MUST_USE tn_rc tn_file_find_next(struct tn_file_look *look, struct tn_file_next *next,
                                    struct tn_err *err);
/* Goes on with it. AGAIN: it is no longer there. */
TN_MUST_USE tn_rc tn_file_begin_next(struct tn_file_look *look, const struct tn_file_next *next,
                                     struct tn_err *err);
