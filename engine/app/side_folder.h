/* side_folder: a folder beside the tables for what a process has of a lake, `.tarn/<name>`; it is
 * gone behind it. Who is killed leaves it for the next one, who empties it (upload/lake_io.h). */
#pragma once

#include "io/io.h"

struct tn_side_folder {
    struct tn_io_posix posix;
    struct tn_io *warehouse;
    const char *path; /* in an arena */
    const char *lock; /* what a lake_io leaves in it */
};

/* `where` is the warehouse's folder. The arena is for as long as it is open. */
TN_MUST_USE tn_rc tn_side_folder_open(struct tn_side_folder *scratch, struct tn_io *warehouse,
                                      const char *where, const char *name, struct tn_arena *arena,
                                      struct tn_err *err);
void tn_side_folder_close(struct tn_side_folder *scratch);

static inline struct tn_io *tn_side_folder_io(struct tn_side_folder *scratch)
{
    return &scratch->posix.io;
}
