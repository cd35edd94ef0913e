/* io: the only door to files. io_posix.c opens it on the system; tests/sim/ on a simulated disk
 * that can lose power between any two calls.
 *
 * Calls block, so only a task on a worker (or a command-line verb) makes them; the loop never does.
 * Paths are relative to the root that the io was opened on, '/' between parts. A file is written
 * once, from its start to its end, and never changed after it was closed.
 *
 * Nothing here promises durability but `sync` and `make_dir`: what was written survives a power cut
 * only after the first. Each call sets `err` when it fails, with the path in the text; codes are
 * ABSENT, EXISTS, FULL (no space), IO, and INVALID for a path that would leave the root. The root
 * itself is "" or "/".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

struct tn_io;
struct tn_io_ask;
struct tn_io_walk;
typedef tn_rc tn_io_name_fn(void *user, const char *name, bool is_dir, struct tn_err *err);

struct tn_io_vtable {
    /* Opens an existing file for reading; `size` is its size in bytes. */
    tn_rc (*open)(struct tn_io *io, const char *path, int *file, uint64_t *size,
                  struct tn_err *err);
    /* Reads up to `size` bytes at `offset`; *got is less only at the end of the file. */
    tn_rc (*read)(struct tn_io *io, int file, uint64_t offset, void *data, size_t size, size_t *got,
                  struct tn_err *err);
    /* Creates a file that must not exist, for appending. ABSENT when its folder is missing. */
    tn_rc (*create)(struct tn_io *io, const char *path, int *file, struct tn_err *err);
    tn_rc (*append)(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err);
    void (*close)(struct tn_io *io, int file); /* of either kind */
    /* Opens a file that `create` made and that is not finished, to append after its first `size`
     * bytes; what stands behind them is cut off. CORRUPT when it is shorter. */
    tn_rc (*reopen)(struct tn_io *io, const char *path, uint64_t size, int *file,
                    struct tn_err *err);
    /* One barrier: the bytes of every file and the names in every folder (a path that ends in '/')
     * survive a power cut once it has returned OK. After an error nothing is known. */
    tn_rc (*sync)(struct tn_io *io, const char *const *paths, uint32_t count, struct tn_err *err);
    /* Gives the file a name in the same folder. EXISTS when it is taken; never replaces. */
    tn_rc (*rename_new)(struct tn_io *io, const char *path, const char *path_new,
                        struct tn_err *err);
    tn_rc (*replace)(struct tn_io *io, const char *path, const char *path_new, struct tn_err *err);
    tn_rc (*unlink)(struct tn_io *io, const char *path, struct tn_err *err);
    /* Removes an empty folder; EXISTS when something is in it. */
    tn_rc (*remove_dir)(struct tn_io *io, const char *path, struct tn_err *err);
    /* Creates a folder and those above it, durable when it returns. An existing one is OK. */
    tn_rc (*make_dir)(struct tn_io *io, const char *path, struct tn_err *err);
    /* Calls `each` for every name in a folder, in no order; stops at its first error. */
    tn_rc (*list)(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                  struct tn_err *err);
    tn_rc (*stat)(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err);
    /* When a file or folder was last changed: ms since 1970 by the system's clock. */
    tn_rc (*modified)(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err);
    /* How many bytes there is room for, below the root. */
    tn_rc (*room)(struct tn_io *io, uint64_t *bytes, struct tn_err *err);
    /* Takes an exclusive lock on a file (made when missing), released by `close` or the process's
     * end. EXISTS when another process has it, with what that one wrote into it in `err`. */
    tn_rc (*lock)(struct tn_io *io, const char *path, const char *who, int *file,
                  struct tn_err *err);
    /* As tn_io_ask_all and tn_io_walk (many.h); NULL: it knows no better than one by one. */
    tn_rc (*ask)(struct tn_io *io, struct tn_io_ask *asks, uint32_t count, struct tn_err *err);
    tn_rc (*walk)(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err);
};

/* Counters of what went through the door since it was opened; for `tarn write` and `demo`. */
struct tn_io_counts {
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t syncs; /* barriers, not files */
    uint64_t files_created;
};

struct tn_io {
    const struct tn_io_vtable *vtable;
    struct tn_io_counts counts; /* several threads may count: __atomic adds */
};

/* The real files below `root`, which must exist. */
struct tn_io_posix {
    struct tn_io io;
    int root;        /* file descriptor of the folder */
    bool sync_whole; /* the file system is the warehouse's own: one syncfs is a barrier */
};
TN_MUST_USE tn_rc tn_io_posix_open(struct tn_io_posix *posix, const char *root, struct tn_err *err);
void tn_io_posix_close(struct tn_io_posix *posix);
/* Where its root lies, from "/" and without links, for a message; "file 7" when the system won't
 * tell. */
void tn_io_posix_where(const struct tn_io_posix *posix, char *path, size_t size);

/* A whole file into the arena, with a zero byte behind it. INVALID when it is larger than
 * `size_max`. */
TN_MUST_USE tn_rc tn_io_read_all(struct tn_io *io, const char *path, size_t size_max,
                                 struct tn_arena *arena, struct tn_bytes *bytes,
                                 struct tn_err *err);

/* A whole new file, not synced. What was written of it is removed when it fails. */
TN_MUST_USE tn_rc tn_io_write_new(struct tn_io *io, const char *path, struct tn_bytes bytes,
                                  struct tn_err *err);
