#include "table/spool.h"

#include <inttypes.h>
#include <stdio.h>

static const char DIR[] = ".tarn/scratch/";

tn_rc tn_spool_init(struct tn_spool *spool, struct tn_io *io, const char *table, const char *kind,
                    struct tn_err *err)
{
    *spool = (struct tn_spool){.io = io, .out = -1, .in = -1};
    int size = snprintf(spool->path, sizeof spool->path, "%s%s.%s", DIR, table, kind);
    return size > 0 && (size_t)size < sizeof spool->path
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0, "%s: the name is too long for a scratch file's",
                            table);
}

static void close_handle(struct tn_spool *spool, int *file)
{
    if (*file >= 0) {
        spool->io->vtable->close(spool->io, *file);
    }
    *file = -1;
}

void tn_spool_sweep(struct tn_spool *spool)
{
    struct tn_err ignored = {0};
    if (spool->out < 0 && !spool->torn) {
        (void)spool->io->vtable->unlink(spool->io, spool->path, &ignored);
    }
}

static tn_rc make(struct tn_spool *spool, struct tn_err *err)
{
    struct tn_io *io = spool->io;
    tn_rc rc = io->vtable->unlink(io, spool->path, err); /* else `create` fails */
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    rc = io->vtable->make_dir(io, DIR, err);
    return rc == TN_OK ? io->vtable->create(io, spool->path, &spool->out, err) : rc;
}

tn_rc tn_spool_add(struct tn_spool *spool, struct tn_bytes bytes, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (spool->torn) {
        rc = tn_spool_cut(spool, spool->size, err);
    } else if (spool->out < 0) {
        rc = make(spool, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = spool->io->vtable->append(spool->io, spool->out, bytes, err);
    spool->torn = rc != TN_OK;
    spool->size += rc == TN_OK ? bytes.size : 0;
    return rc;
}

tn_rc tn_spool_read(struct tn_spool *spool, uint64_t at, void *data, size_t size,
                    struct tn_err *err)
{
    struct tn_io *io = spool->io;
    uint64_t ignored;
    tn_rc rc =
        spool->in >= 0 ? TN_OK : io->vtable->open(io, spool->path, &spool->in, &ignored, err);
    size_t got = 0;
    if (rc == TN_OK && size > 0) {
        rc = io->vtable->read(io, spool->in, at, data, size, &got, err);
    }
    if (rc == TN_OK && got < size) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: %zu bytes at byte %" PRIu64 ", want %zu",
                        spool->path, got, at, size);
    }
    return rc;
}

tn_rc tn_spool_cut(struct tn_spool *spool, uint64_t size, struct tn_err *err)
{
    if (spool->out < 0 && !spool->torn) { /* there is no file */
        return TN_OK;
    }
    close_handle(spool, &spool->out);
    tn_rc rc = spool->io->vtable->reopen(spool->io, spool->path, size, &spool->out, err);
    spool->torn = rc != TN_OK;
    spool->size = size;
    return rc;
}

void tn_spool_close(struct tn_spool *spool)
{
    struct tn_err ignored = {0};
    bool made = spool->out >= 0 || spool->torn;
    close_handle(spool, &spool->out);
    close_handle(spool, &spool->in);
    if (made) {
        (void)spool->io->vtable->unlink(spool->io, spool->path, &ignored);
    }
    spool->size = 0;
    spool->torn = false;
}
