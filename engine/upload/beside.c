#include "upload/beside.h"

#include "commit/publish.h"

static const char DIR[] = ".tarn/";

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
}

tn_rc tn_beside_read(struct tn_io *io, const char *table, const char *kind, struct tn_arena *arena,
                     struct tn_bytes *text, struct tn_err *err)
{
    const char *path = tn_arena_format(arena, "%s%s.%s", DIR, table, kind);
    return path ? tn_io_read_all(io, path, TN_BESIDE_SIZE_MAX, arena, text, err) : no_room(err);
}

tn_rc tn_beside_write(struct tn_io *io, const char *table, const char *kind, struct tn_bytes text,
                      struct tn_arena *scratch, struct tn_err *err)
{
    static const char *const dirs[] = {DIR};
    size_t mark = tn_arena_mark(scratch);
    const char *final = tn_arena_format(scratch, "%s%s.%s", DIR, table, kind);
    const char *draft = tn_arena_format(scratch, "%s.%s.%s.tmp", DIR, table, kind);
    tn_rc rc = final && draft ? io->vtable->make_dir(io, DIR, err) : no_room(err);
    if (rc == TN_OK) {
        rc = tn_publish_over(io, draft, final, text, err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, dirs, 1, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}
