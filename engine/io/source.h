/* source: a stream of bytes from outside the warehouse: a file by its path, or standard input.
 *
 * A file can be read from any offset, and has an identity: device, inode, and the hash of its first
 * bytes. An offset under another identity means nothing. A pipe has neither.
 *
 *     identity: "<device>-<inode>-<bytes hashed>-<hash>"
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { TN_SOURCE_IDENTITY_SIZE = 96, TN_SOURCE_HASHED = 64 * 1024 };

struct tn_source {
    int file;
    const char *name; /* for messages */
    bool seekable;
    char identity[TN_SOURCE_IDENTITY_SIZE]; /* "" for pipes */
};

/* Opens `path`, "-" for standard input. With `known` (an identity from before, or NULL) as many
 * first bytes are hashed as then, so that a file that has grown is still the same. */
TN_MUST_USE tn_rc tn_source_open(struct tn_source *source, const char *path, const char *known,
                                 struct tn_err *err);
/* Up to `size` bytes; 0 at the end. */
TN_MUST_USE tn_rc tn_source_read(struct tn_source *source, void *data, size_t size, size_t *got,
                                 struct tn_err *err);
/* Waits until a read would not, at most `wait_ms_max` (0: only asks). True when bytes, or the end,
 * are there. */
bool tn_source_ready(const struct tn_source *source, int wait_ms_max);
TN_MUST_USE tn_rc tn_source_seek(struct tn_source *source, uint64_t offset, struct tn_err *err);
void tn_source_close(struct tn_source *source);

/* ---- for who follows a file under its path ---- */

struct tn_source_about {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t modified_ns;
    bool regular; /* a file, and no folder, pipe or device */
};

/* ABSENT: there is nothing under the path. */
TN_MUST_USE tn_rc tn_source_stat(const char *path, struct tn_source_about *about,
                                 struct tn_err *err);
TN_MUST_USE tn_rc tn_source_about(const struct tn_source *source, struct tn_source_about *about,
                                  struct tn_err *err);
/* A file's identity by its first `size` bytes: as many as it has, and at most TN_SOURCE_HASHED. */
TN_MUST_USE tn_rc tn_source_identify(struct tn_source *source, uint64_t size, struct tn_err *err);

/* Calls `each` for names in a folder that begin with `name` and "." or "-"; ends at its first
 * error. */
typedef tn_rc tn_source_sibling_fn(void *user, const char *name, struct tn_err *err);
TN_MUST_USE tn_rc tn_source_siblings(const char *folder, const char *name,
                                     tn_source_sibling_fn *each, void *user, struct tn_err *err);
