#include "upload/side_io.h"

#include <stdio.h>

static const char LOCK[] = "lake.lock"; /* as lake_io has it */

struct path {
    char text[TN_SIDE_IO_PATH_MAX];
};

static struct tn_side_io *of(struct tn_io *io)
{
    return (struct tn_side_io *)(void *)io;
}

static struct tn_io *below(struct tn_io *io)
{
    return of(io)->below;
}

static tn_rc join(struct tn_io *io, const char *path, struct path *whole, struct tn_err *err)
{
    int size = snprintf(whole->text, sizeof whole->text, "%s%s", of(io)->folder, path);
    return size > 0 && size < (int)sizeof whole->text
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0, "%s%.60s: too long a path", of(io)->folder, path);
}

static tn_rc side_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->open(below(io), p.text, file, size, err) : rc;
}

static tn_rc side_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                       size_t *got, struct tn_err *err)
{
    return below(io)->vtable->read(below(io), file, offset, data, size, got, err);
}

static tn_rc side_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->create(below(io), p.text, file, err) : rc;
}

static tn_rc side_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    return below(io)->vtable->append(below(io), file, bytes, err);
}

static void side_close(struct tn_io *io, int file)
{
    below(io)->vtable->close(below(io), file);
}

static tn_rc side_reopen(struct tn_io *io, const char *path, uint64_t size, int *file,
                         struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->reopen(below(io), p.text, size, file, err) : rc;
}

static tn_rc side_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                       struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        struct path p = {""};
        const char *whole = p.text;
        rc = join(io, paths[i], &p, err);
        rc = rc == TN_OK ? below(io)->vtable->sync(below(io), &whole, 1, err) : rc;
    }
    return rc;
}

typedef tn_rc rename_fn(struct tn_io *io, const char *path, const char *path_new,
                        struct tn_err *err);

static tn_rc rename_by(struct tn_io *io, rename_fn *rename, const char *path, const char *path_new,
                       struct tn_err *err)
{
    struct path from = {""};
    struct path to = {""};
    tn_rc rc = join(io, path, &from, err);
    rc = rc == TN_OK ? join(io, path_new, &to, err) : rc;
    return rc == TN_OK ? rename(below(io), from.text, to.text, err) : rc;
}

static tn_rc side_rename_new(struct tn_io *io, const char *path, const char *path_new,
                             struct tn_err *err)
{
    return rename_by(io, below(io)->vtable->rename_new, path, path_new, err);
}

static tn_rc side_replace(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *err)
{
    return rename_by(io, below(io)->vtable->replace, path, path_new, err);
}

static tn_rc side_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->unlink(below(io), p.text, err) : rc;
}

static tn_rc side_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->remove_dir(below(io), p.text, err) : rc;
}

static tn_rc side_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->make_dir(below(io), p.text, err) : rc;
}

static tn_rc side_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                       struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->list(below(io), p.text, each, user, err) : rc;
}

static tn_rc side_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->stat(below(io), p.text, size, err) : rc;
}

static tn_rc side_modified(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->modified(below(io), p.text, ms, err) : rc;
}

static tn_rc side_room(struct tn_io *io, uint64_t *bytes, struct tn_err *err)
{
    return below(io)->vtable->room(below(io), bytes, err);
}

static tn_rc side_lock(struct tn_io *io, const char *path, const char *who, int *file,
                       struct tn_err *err)
{
    struct path p = {""};
    tn_rc rc = join(io, path, &p, err);
    return rc == TN_OK ? below(io)->vtable->lock(below(io), p.text, who, file, err) : rc;
}

static const struct tn_io_vtable vtable = {
    .open = side_open,
    .read = side_read,
    .create = side_create,
    .append = side_append,
    .close = side_close,
    .reopen = side_reopen,
    .sync = side_sync,
    .rename_new = side_rename_new,
    .replace = side_replace,
    .unlink = side_unlink,
    .remove_dir = side_remove_dir,
    .make_dir = side_make_dir,
    .list = side_list,
    .stat = side_stat,
    .modified = side_modified,
    .room = side_room,
    .lock = side_lock,
};

tn_rc tn_side_io_open(struct tn_side_io *side, struct tn_io *below_it, const char *name,
                      struct tn_arena *arena, struct tn_err *err)
{
    *side = (struct tn_side_io){.io.vtable = &vtable, .below = below_it};
    side->folder = tn_arena_format(arena, ".tarn/%s/", name);
    return side->folder ? below_it->vtable->make_dir(below_it, side->folder, err)
                        : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
}

void tn_side_io_close(struct tn_side_io *side)
{
    struct tn_err ignored;
    (void)side_unlink(&side->io, LOCK, &ignored);
    (void)side_remove_dir(&side->io, "", &ignored);
}
