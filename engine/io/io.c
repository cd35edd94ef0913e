#include "io/io.h"

#include <inttypes.h>

static tn_rc read_whole(struct tn_io *io, const char *path, int file, uint64_t size,
                        struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    size_t mark = tn_arena_mark(arena);
    unsigned char *data = tn_arena_take_raw(arena, (size_t)size + 1);
    if (!data) {
        return tn_err_set(err, TN_AGAIN, 0, "read %s: needs %" PRIu64 " bytes, %zu are free", path,
                          size + 1, tn_arena_free(arena));
    }
    size_t got;
    tn_rc rc = io->vtable->read(io, file, 0, data, (size_t)size, &got, err);
    if (rc == TN_OK && got != size) {
        rc = tn_err_set(err, TN_IO, 0, "read %s: %zu of %" PRIu64 " bytes", path, got, size);
    }
    if (rc != TN_OK) {
        tn_arena_reset(arena, mark);
        return rc;
    }
    data[size] = 0;
    *bytes = (struct tn_bytes){data, (size_t)size};
    return TN_OK;
}

tn_rc tn_io_read_all(struct tn_io *io, const char *path, size_t size_max, struct tn_arena *arena,
                     struct tn_bytes *bytes, struct tn_err *err)
{
    int file;
    uint64_t size;
    tn_rc rc = io->vtable->open(io, path, &file, &size, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (size > size_max || size >= SIZE_MAX) {
        rc = tn_err_set(err, TN_INVALID, 0, "read %s: %" PRIu64 " bytes, at most %zu", path, size,
                        size_max);
    } else {
        rc = read_whole(io, path, file, size, arena, bytes, err);
    }
    io->vtable->close(io, file);
    return rc;
}

tn_rc tn_io_write_new(struct tn_io *io, const char *path, struct tn_bytes bytes, struct tn_err *err)
{
    int file;
    tn_rc rc = io->vtable->create(io, path, &file, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = io->vtable->append(io, file, bytes, err);
    io->vtable->close(io, file);
    if (rc != TN_OK) {
        struct tn_err second; /* the first one is the cause */
        (void)io->vtable->unlink(io, path, &second);
    }
    return rc;
}
