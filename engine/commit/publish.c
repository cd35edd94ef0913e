#include "commit/publish.h"

/* A draft that can't be dropped costs space until the table is cleaned; it undoes no commit, and
 * must not hide why the publish failed. */
static void drop_draft(struct tn_io *io, const char *draft)
{
    struct tn_err ignored = {0};
    (void)io->vtable->unlink(io, draft, &ignored);
}

/* What a failed barrier has kept isn't known, also when it was for want of space. */
static tn_rc unknown(struct tn_err *err)
{
    return tn_err_set(err, TN_IO, err->os, "%s", err->text);
}

/* The draft and all it reaches in one barrier, as long as their names fit on the stack; the names
 * of a larger round go in several calls, the draft with the last. */
static tn_rc barrier(struct tn_io *io, const struct tn_publish_spec *spec, struct tn_err *err)
{
    enum { BATCH = 96 };
    const char *paths[BATCH + 1];
    uint32_t done = 0;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && spec->before_count - done > BATCH) {
        rc = io->vtable->sync(io, spec->before + done, BATCH, err);
        done += BATCH;
    }
    if (rc == TN_OK) {
        uint32_t rest = spec->before_count - done;
        for (uint32_t i = 0; i < rest; i++) {
            paths[i] = spec->before[done + i];
        }
        paths[rest] = spec->draft;
        rc = io->vtable->sync(io, paths, rest + 1, err);
    }
    return rc == TN_OK ? TN_OK : unknown(err);
}

static tn_rc rename_draft(struct tn_io *io, const struct tn_publish_spec *spec, struct tn_err *err)
{
    tn_rc rc = io->vtable->rename_new(io, spec->draft, spec->final, err);
    return rc == TN_EXISTS ? TN_CONFLICT : rc;
}

/* From here on the name is there; whatever the disk says now, it isn't known whether it stays. */
static tn_rc settle(struct tn_io *io, const struct tn_publish_spec *spec, struct tn_err *err)
{
    const char *dir[] = {spec->dir};
    return io->vtable->sync(io, dir, 1, err) == TN_OK ? TN_OK : unknown(err);
}

tn_rc tn_publish(struct tn_io *io, const struct tn_publish_spec *spec, struct tn_err *err)
{
    tn_rc rc = tn_io_write_new(io, spec->draft, spec->bytes, err);
    if (rc == TN_OK) {
        rc = barrier(io, spec, err);
        if (rc == TN_OK) {
            rc = rename_draft(io, spec, err);
        }
        if (rc == TN_OK) {
            rc = settle(io, spec, err);
        } else {
            drop_draft(io, spec->draft);
        }
    }
    if (rc != TN_OK) {
        (void)tn_err_in(err, "publish %s", spec->final);
    }
    return rc;
}

tn_rc tn_publish_over(struct tn_io *io, const char *draft, const char *final, struct tn_bytes bytes,
                      struct tn_err *err)
{
    drop_draft(io, draft); /* one that a power cut left */
    tn_rc rc = tn_io_write_new(io, draft, bytes, err);
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &draft, 1, err);
    }
    return rc == TN_OK ? io->vtable->replace(io, draft, final, err) : rc;
}
