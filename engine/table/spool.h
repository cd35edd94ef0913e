/* spool: bytes that wait on disk until the same process reads them again, so that any number of
 * them takes no memory.
 *
 * A file under `.tarn/scratch/`, named by its table and kind: made at the first write, never
 * synced, counted as bytes written, removed by close. What a killed process left under the name is
 * removed by the next one; so the owner has the table's lock.
 */
#pragma once

#include <stdbool.h>

#include "io/io.h"

enum { TN_SPOOL_PATH_SIZE = 320 };

struct tn_spool {
    struct tn_io *io;
    char path[TN_SPOOL_PATH_SIZE];
    int out;       /* for appending, or -1 */
    int in;        /* for reading, or -1 */
    uint64_t size; /* bytes that count */
    bool torn;     /* a write failed: more than they may be there */
};

/* Touches no file. INVALID: the table's name is too long for a file's. */
TN_MUST_USE tn_rc tn_spool_init(struct tn_spool *spool, struct tn_io *io, const char *table,
                                const char *kind, struct tn_err *err);
/* What a killed process left goes, when nothing was written yet. */
void tn_spool_sweep(struct tn_spool *spool);
/* After a failure the spool is as it was. */
TN_MUST_USE tn_rc tn_spool_add(struct tn_spool *spool, struct tn_bytes bytes, struct tn_err *err);
/* Exactly `size` bytes from `at` on; CORRUPT when they are not there. */
TN_MUST_USE tn_rc tn_spool_read(struct tn_spool *spool, uint64_t at, void *data, size_t size,
                                struct tn_err *err);
/* Forgets what stands behind the first `size` bytes. */
TN_MUST_USE tn_rc tn_spool_cut(struct tn_spool *spool, uint64_t size, struct tn_err *err);
void tn_spool_close(struct tn_spool *spool);
