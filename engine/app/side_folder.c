#include "app/side_folder.h"

tn_rc tn_side_folder_open(struct tn_side_folder *scratch, struct tn_io *warehouse,
                          const char *where, const char *name, struct tn_arena *arena,
                          struct tn_err *err)
{
    scratch->warehouse = warehouse;
    scratch->path = tn_arena_format(arena, ".tarn/%s", name);
    scratch->lock = tn_arena_format(arena, ".tarn/%s/lake.lock", name);
    const char *whole = tn_arena_format(arena, "%s/.tarn/%s", where, name);
    if (!scratch->path || !scratch->lock || !whole) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    }
    tn_rc rc = warehouse->vtable->make_dir(warehouse, scratch->path, err);
    return rc == TN_OK ? tn_io_posix_open(&scratch->posix, whole, err) : rc;
}

void tn_side_folder_close(struct tn_side_folder *scratch)
{
    struct tn_io *io = scratch->warehouse;
    struct tn_err ignored;
    tn_io_posix_close(&scratch->posix);
    (void)io->vtable->unlink(io, scratch->lock, &ignored);
    (void)io->vtable->remove_dir(io, scratch->path, &ignored);
}
