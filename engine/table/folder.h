/* folder: the names in a folder, in byte order, in bounded memory.
 *
 * A pass lists the folder and keeps the smallest names behind the last one that was given; when the
 * window is full, the largest are given up and left for the next pass.
 */
#pragma once

#include "base/heap.h"
#include "io/io.h"

struct tn_folder {
    struct tn_io *io;
    const char *path;   /* ends in '/' */
    const char *prefix; /* names begin so ... */
    const char *suffix; /* ... and end so; what is between is given */
    bool folders;       /* false: files */
};

/* `name` is without prefix and suffix; it lives until the call returns. */
typedef tn_rc tn_folder_fn(void *user, const char *name, struct tn_err *err);

/* A folder that is missing has no names. `window` holds 2 KB at the least. An error of `each` ends
 * it. */
TN_MUST_USE tn_rc tn_folder_each(const struct tn_folder *folder, void *window, size_t window_size,
                                 tn_folder_fn *each, void *user, struct tn_err *err);
