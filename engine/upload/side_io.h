/* side_io: a folder of an io, `.tarn/<name>/`, as an io of its own: where one who works on the
 * table has files of a lake for a while (lake_io.h). Made with its first use, and gone behind it;
 * who is killed leaves it for the next, who empties it. */
#pragma once

#include "io/io.h"

enum { TN_SIDE_IO_PATH_MAX = 512 };

struct tn_side_io {
    struct tn_io io; /* first */
    struct tn_io *below;
    const char *folder; /* in an arena; with its final '/' */
};

/* The arena is for as long as it is open. */
TN_MUST_USE tn_rc tn_side_io_open(struct tn_side_io *side, struct tn_io *below, const char *name,
                                  struct tn_arena *arena, struct tn_err *err);
/* What a lake_io leaves in it, a lock, goes; a folder that has other files stays. */
void tn_side_io_close(struct tn_side_io *side);
