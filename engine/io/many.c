#include "io/many.h"

#include <stdio.h>

enum { PATH_MAX_SIZE = 1024 };

/* ---- questions ---- */

static tn_rc read_one(struct tn_io *io, struct tn_io_ask *ask, struct tn_err *err)
{
    struct tn_arena room;
    struct tn_bytes bytes = {NULL, 0};
    tn_arena_init(&room, ask->room, ask->room_size);
    tn_rc rc = tn_io_read_all(io, ask->path, ask->room_size - 1, &room, &bytes, err);
    ask->size = bytes.size;
    return rc;
}

/* What it answers to this one question is no error. */
static bool is_answer(enum tn_io_ask_verb verb, tn_rc rc)
{
    return rc == TN_OK || rc == TN_ABSENT || (rc == TN_INVALID && verb == TN_IO_ASK_READ);
}

static tn_rc ask_one(struct tn_io *io, struct tn_io_ask *ask, struct tn_err *err)
{
    tn_rc rc = ask->verb == TN_IO_ASK_STAT   ? io->vtable->stat(io, ask->path, &ask->size, err)
               : ask->verb == TN_IO_ASK_READ ? read_one(io, ask, err)
                                             : io->vtable->unlink(io, ask->path, err);
    ask->rc = rc == TN_ABSENT && ask->verb == TN_IO_ASK_UNLINK ? TN_OK : rc;
    return is_answer(ask->verb, rc) ? TN_OK : rc;
}

tn_rc tn_io_ask_each(struct tn_io *io, struct tn_io_ask *asks, uint32_t count, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = ask_one(io, &asks[i], err);
    }
    return rc;
}

tn_rc tn_io_ask_all(struct tn_io *io, struct tn_io_ask *asks, uint32_t count, struct tn_err *err)
{
    return io->vtable->ask ? io->vtable->ask(io, asks, count, err)
                           : tn_io_ask_each(io, asks, count, err);
}

/* ---- names ---- */

struct folders {
    struct tn_io *io;
    struct tn_io_walk *walk;
    const char *folder; /* that is being listed */
};

static tn_rc join(const char *path, const char *name, const char *end, char whole[PATH_MAX_SIZE],
                  struct tn_err *err)
{
    int size = snprintf(whole, PATH_MAX_SIZE, "%s%s%s", path, name, end);
    return size > 0 && size < PATH_MAX_SIZE
               ? TN_OK
               : tn_err_set(err, TN_UNSUPPORTED, 0, "%.60s%.60s...: a path of more than %d bytes",
                            path, name, PATH_MAX_SIZE - 1);
}

static tn_rc tell_file(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct folders *f = user;
    char whole[PATH_MAX_SIZE];
    tn_rc rc = is_dir ? TN_OK : join(f->folder, "/", name, whole, err);
    return rc == TN_OK && !is_dir ? f->walk->each(f->walk->user, whole, false, err) : rc;
}

static tn_rc list_folder(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct folders *f = user;
    char path[PATH_MAX_SIZE];
    if (!is_dir || f->walk->enough) {
        return TN_OK;
    }
    f->folder = name;
    tn_rc rc = join(f->walk->path, name, "/", path, err);
    if (rc == TN_OK) {
        rc = f->io->vtable->list(f->io, path, tell_file, f, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc; /* it has gone meanwhile */
}

tn_rc tn_io_walk_folders(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err)
{
    struct folders f = {.io = io, .walk = walk};
    return io->vtable->list(io, walk->path, list_folder, &f, err);
}

tn_rc tn_io_walk(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err)
{
    return io->vtable->walk ? io->vtable->walk(io, walk, err) : tn_io_walk_folders(io, walk, err);
}
