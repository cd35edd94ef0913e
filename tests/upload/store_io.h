/* store_io: what a reader of the lake has: the files below a prefix of s3_model.h, which it can
 * look at and never change, and a disk of its own for what a merge of many runs puts aside. */
#pragma once

#include "s3_model.h"
#include "sim/disk.h"

struct store_io {
    struct tn_io io; /* first */
    struct model *model;
    const char *prefix;     /* "lake/" */
    struct sim_disk *aside; /* where it writes */
};

enum { STORE_IO_FILE = 1 << 20 }; /* and up: numbers of objects */

static inline struct store_io *store_io_of(struct tn_io *io)
{
    return (struct store_io *)(void *)io;
}

/* The part of an object's key below the prefix; NULL: it isn't there. */
static inline const char *store_io_path(const struct store_io *s, const struct model_object *object)
{
    size_t size = strlen(s->prefix);
    return object->key[0] && strncmp(object->key, s->prefix, size) == 0 ? object->key + size : NULL;
}

static inline struct model_object *store_io_find(struct tn_io *io, const char *path,
                                                 struct tn_err *err)
{
    struct store_io *s = store_io_of(io);
    char key[256];
    (void)snprintf(key, sizeof key, "%s%s", s->prefix, path);
    struct model_object *object = model_find(s->model, key);
    if (!object) {
        (void)tn_err_set(err, TN_ABSENT, 0, "%s is not in the lake", path);
    }
    return object;
}

static inline tn_rc store_io_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                                  struct tn_err *err)
{
    struct store_io *s = store_io_of(io);
    struct model_object *object = store_io_find(io, path, err);
    if (!object) {
        return s->aside->io.vtable->open(&s->aside->io, path, file, size, err);
    }
    *file = STORE_IO_FILE + (int)(object - s->model->objects);
    *size = object->bytes.size;
    return TN_OK;
}

static inline tn_rc store_io_read(struct tn_io *io, int file, uint64_t offset, void *data,
                                  size_t size, size_t *got, struct tn_err *err)
{
    struct store_io *s = store_io_of(io);
    if (file < STORE_IO_FILE) {
        return s->aside->io.vtable->read(&s->aside->io, file, offset, data, size, got, err);
    }
    const struct model_bytes *bytes = &s->model->objects[file - STORE_IO_FILE].bytes;
    size_t left = offset < bytes->size ? bytes->size - (size_t)offset : 0;
    *got = size < left ? size : left;
    if (*got > 0) {
        memcpy(data, bytes->data + offset, *got);
    }
    return TN_OK;
}

static inline void store_io_close(struct tn_io *io, int file)
{
    struct store_io *s = store_io_of(io);
    if (file < STORE_IO_FILE) {
        s->aside->io.vtable->close(&s->aside->io, file);
    }
}

static inline tn_rc store_io_stat(struct tn_io *io, const char *path, uint64_t *size,
                                  struct tn_err *err)
{
    const struct model_object *object = store_io_find(io, path, err);
    if (!object) {
        return TN_ABSENT;
    }
    *size = object->bytes.size;
    return TN_OK;
}

/* The name of what is in the folder on the way to this object, or the object's; false: it is
 * elsewhere. */
static inline bool store_io_child(const struct store_io *s, const struct model_object *object,
                                  const char *folder, char name[128], bool *is_dir)
{
    const char *path = store_io_path(s, object);
    size_t size = strlen(folder);
    if (!path || strncmp(path, folder, size) != 0 || strlen(path) == size) {
        return false;
    }
    size_t length = strcspn(path + size, "/");
    *is_dir = path[size + length] == '/';
    (void)snprintf(name, 128, "%.*s", (int)length, path + size);
    return true;
}

static inline tn_rc store_io_list(struct tn_io *io, const char *path, tn_io_name_fn *each,
                                  void *user, struct tn_err *err)
{
    struct store_io *s = store_io_of(io);
    char folder[256];
    tn_rc rc = TN_OK;
    bool found = false;
    size_t size = strlen(path);
    (void)snprintf(folder, sizeof folder, "%s%s", path,
                   size > 0 && path[size - 1] != '/' ? "/" : "");
    for (int i = 0; rc == TN_OK && i < s->model->slots; i++) {
        char name[128];
        char other[128];
        bool is_dir;
        bool other_is_dir;
        bool first = store_io_child(s, &s->model->objects[i], folder, name, &is_dir);
        found = found || first;
        for (int j = 0; first && is_dir && j < i; j++) {
            first = !store_io_child(s, &s->model->objects[j], folder, other, &other_is_dir) ||
                    strcmp(name, other) != 0;
        }
        rc = first ? each(user, name, is_dir, err) : TN_OK;
    }
    return rc == TN_OK && !found ? tn_err_set(err, TN_ABSENT, 0, "%s is not in the lake", path)
                                 : rc;
}

static inline tn_rc store_io_create(struct tn_io *io, const char *path, int *file,
                                    struct tn_err *err)
{
    struct tn_io *aside = &store_io_of(io)->aside->io;
    return aside->vtable->create(aside, path, file, err);
}

static inline tn_rc store_io_append(struct tn_io *io, int file, struct tn_bytes bytes,
                                    struct tn_err *err)
{
    struct tn_io *aside = &store_io_of(io)->aside->io;
    return aside->vtable->append(aside, file, bytes, err);
}

static inline tn_rc store_io_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_io *aside = &store_io_of(io)->aside->io;
    return aside->vtable->unlink(aside, path, err);
}

static inline tn_rc store_io_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_io *aside = &store_io_of(io)->aside->io;
    return aside->vtable->make_dir(aside, path, err);
}

static inline void store_io_init(struct store_io *s, struct model *model, const char *prefix,
                                 struct sim_disk *aside)
{
    static const struct tn_io_vtable vtable = {.open = store_io_open,
                                               .read = store_io_read,
                                               .close = store_io_close,
                                               .stat = store_io_stat,
                                               .list = store_io_list,
                                               .create = store_io_create,
                                               .append = store_io_append,
                                               .unlink = store_io_unlink,
                                               .make_dir = store_io_make_dir};
    *s = (struct store_io){
        .io = {.vtable = &vtable}, .model = model, .prefix = prefix, .aside = aside};
}
