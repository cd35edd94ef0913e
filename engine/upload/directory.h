/* directory: a target that is a folder, on whatever `io` is rooted there. `send` copies before it
 * returns, only names and barriers wait. Whoever opens it locks the table in it: a `swap` is what
 * this one writer does.
 *
 *     drafts, some at a time -> one barrier -> their names -> (settle) one barrier over the folders
 *
 * A draft lies beside its name with a dot in front, and is overwritten by the next try. It gets the
 * name only after its bytes are synced, so a name is never a promise that a power cut can break.
 * Where several write, each has drafts of its own, and a name that must not be there is given by
 * one of them.
 * A draft that is left when its file isn't needed any more is litter that any cleaning of orphans
 * takes away.
 */
#pragma once

#include "io/clock.h"
#include "upload/target.h"

enum {
    TN_DIRECTORY_BATCH = 32,      /* drafts a barrier, and folders a barrier */
    TN_DIRECTORY_PATH_MAX = 1024, /* bytes of a path with its final zero */
    TN_DIRECTORY_COPY_SIZE = 32 * 1024,
};

/* Texts one behind the other. */
struct tn_path_list {
    const char *items[TN_DIRECTORY_BATCH];
    uint32_t count;
    struct tn_buf texts;
};

struct tn_directory {
    struct tn_target target; /* first */
    struct tn_io *io;
    unsigned char *copy;         /* TN_DIRECTORY_COPY_SIZE */
    int file;                    /* of the draft that is open, or -1 */
    struct tn_path_list drafts;  /* finished */
    struct tn_path_list finals;  /* what each will be called */
    struct tn_path_list folders; /* whose names are not synced */
    char draft[TN_DIRECTORY_PATH_MAX];
    char mark[TN_UUID_SIZE + 1]; /* part of a draft's name: "", or ".<uuid>" */
};

/* As `send`, of a file that lies in another target: what comes goes into the draft. `size` -1: it
 * isn't known, and one that is there is the file. ABSENT: `from` lacks it; CORRUPT: it has another
 * size there. `brought`: bytes that came; 0: it was there. */
TN_MUST_USE tn_rc tn_directory_bring(struct tn_directory *directory, struct tn_target *from,
                                     const char *path, int64_t size, uint64_t *brought,
                                     struct tn_err *err);

/* Takes 56 KiB from the arena. There is nothing to close. */
TN_MUST_USE tn_rc tn_directory_init(struct tn_directory *directory, struct tn_io *io,
                                    const char *name, struct tn_arena *arena, struct tn_err *err);
/* Others write there, too, at the same time: see above. */
void tn_directory_share(struct tn_directory *directory, struct tn_clock *clock);
