#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "file/names.h"
#include "upload/lake_io_private.h"

static const char PREFIX[] = "lake-";

void tn_lake_number(uint32_t number, char name[TN_LAKE_NUMBER_SIZE])
{
    (void)snprintf(name, TN_LAKE_NUMBER_SIZE, "%s%" PRIu32, PREFIX, number);
}

static uint64_t hash_of(const char *path)
{
    return tn_hash_64(tn_bytes_of(path), 0);
}

/* Whether a name has a UUID in it, by the folder that it is in. */
static bool never_changes(const char *path)
{
    static const char *const folders[] = {TN_DIR_MANIFEST, TN_DIR_INDEX, TN_DIR_STATISTICS};
    const char *name = strrchr(path, '/');
    if (!name) {
        return false;
    }
    size_t size = (size_t)(name - path) + 1;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t own = strlen(folders[i]);
        if (size > own && path[size - own - 1] == '/' &&
            memcmp(path + size - own, folders[i], own) == 0) {
            return true;
        }
    }
    size_t begin = size - 1;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    return strncmp(path + begin, "bucket-", sizeof "bucket-" - 1) == 0;
}

struct tn_lake_file *tn_lake_find(struct tn_lake_io *lake, const char *path)
{
    uint64_t hash = hash_of(path);
    for (uint32_t i = 0; i < lake->file_count; i++) {
        struct tn_lake_file *file = &lake->files[i];
        if (file->state != TN_LAKE_FREE && !file->nameless && file->hash == hash &&
            strcmp(file->path, path) == 0) {
            return file;
        }
    }
    return NULL;
}

/* ---- who goes ---- */

static bool can_go(const struct tn_lake_file *file)
{
    return file->state == TN_LAKE_KEPT && file->opens == 0;
}

static void remove_file(struct tn_lake_io *lake, struct tn_lake_file *file)
{
    char name[TN_LAKE_NUMBER_SIZE];
    struct tn_err ignored;
    if (can_go(file)) {
        lake->kept_size -= file->size;
    }
    tn_lake_number(file->number, name);
    (void)lake->scratch->vtable->unlink(lake->scratch, name, &ignored);
    file->state = TN_LAKE_FREE;
}

static struct tn_lake_file *find_oldest(struct tn_lake_io *lake)
{
    struct tn_lake_file *oldest = NULL;
    for (uint32_t i = 0; i < lake->file_count; i++) {
        struct tn_lake_file *file = &lake->files[i];
        if (can_go(file) && (!oldest || file->used < oldest->used)) {
            oldest = file;
        }
    }
    return oldest;
}

static void shrink(struct tn_lake_io *lake, uint64_t size_max)
{
    struct tn_lake_file *oldest = lake->kept_size > size_max ? find_oldest(lake) : NULL;
    while (oldest) {
        remove_file(lake, oldest);
        oldest = lake->kept_size > size_max ? find_oldest(lake) : NULL;
    }
}

void tn_lake_drop(struct tn_lake_io *lake, struct tn_lake_file *file)
{
    if (file->opens > 0) {
        file->nameless = true;
    } else {
        remove_file(lake, file);
    }
}

/* ---- who comes ---- */

static struct tn_lake_file *find_free(struct tn_lake_io *lake)
{
    for (uint32_t i = 0; i < lake->file_count; i++) {
        if (lake->files[i].state == TN_LAKE_FREE) {
            return &lake->files[i];
        }
    }
    struct tn_lake_file *oldest = find_oldest(lake);
    if (oldest) {
        remove_file(lake, oldest);
    }
    return oldest;
}

tn_rc tn_lake_rename(struct tn_lake_file *file, const char *path, struct tn_err *err)
{
    size_t size = strlen(path);
    if (size >= TN_LAKE_IO_PATH_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%.60s...: a path of more than %d bytes", path,
                          TN_LAKE_IO_PATH_MAX - 1);
    }
    memcpy(file->path, path, size + 1);
    file->hash = hash_of(path);
    return TN_OK;
}

tn_rc tn_lake_new(struct tn_lake_io *lake, const char *path, struct tn_lake_file **file,
                  struct tn_err *err)
{
    struct tn_lake_file *found = find_free(lake);
    if (!found) {
        return tn_err_set(err, TN_AGAIN, 0, "%s: more than %" PRIu32 " files at once", path,
                          lake->file_count);
    }
    *found = (struct tn_lake_file){.number = lake->names++, .used = ++lake->uses};
    tn_rc rc = tn_lake_rename(found, path, err);
    if (rc == TN_OK) {
        found->state = TN_LAKE_WRITTEN;
        *file = found;
    }
    return rc;
}

void tn_lake_keep(struct tn_lake_io *lake, struct tn_lake_file *file)
{
    file->state = TN_LAKE_KEPT;
    file->nameless = file->nameless || !never_changes(file->path);
    if (file->opens > 0) {
        return;
    }
    lake->kept_size += file->size;
    if (file->nameless) {
        remove_file(lake, file);
    } else {
        shrink(lake, lake->cache_size);
    }
}

void tn_lake_opened(struct tn_lake_io *lake, struct tn_lake_file *file)
{
    if (can_go(file)) {
        lake->kept_size -= file->size;
    }
    file->opens++;
    file->used = ++lake->uses;
}

void tn_lake_closed(struct tn_lake_io *lake, struct tn_lake_file *file)
{
    TN_CHECK(file->opens > 0);
    file->opens--;
    if (file->opens > 0) {
        return;
    }
    if (file->nameless) {
        lake->kept_size += file->state == TN_LAKE_KEPT ? file->size : 0;
        remove_file(lake, file);
    } else if (file->state == TN_LAKE_KEPT) {
        lake->kept_size += file->size;
        shrink(lake, lake->cache_size);
    }
}

static tn_rc fetch_into(struct tn_lake_io *lake, struct tn_lake_file *file, int below,
                        struct tn_err *err)
{
    struct tn_target *target = lake->target;
    uint64_t got = 0;
    tn_rc rc = target->vtable->fetch(target, file->path, 0, lake->scratch, below, &got, err);
    file->size = got;
    return rc;
}

static tn_rc fetch_once(struct tn_lake_io *lake, struct tn_lake_file *file, struct tn_err *err)
{
    struct tn_io *scratch = lake->scratch;
    char name[TN_LAKE_NUMBER_SIZE];
    int below = -1;
    tn_lake_number(file->number, name);
    tn_rc rc = scratch->vtable->create(scratch, name, &below, err);
    if (rc == TN_OK) {
        rc = fetch_into(lake, file, below, err);
        scratch->vtable->close(scratch, below);
    }
    return rc;
}

/* A full disk gives up what only saves a request, and tries once more. */
tn_rc tn_lake_fetch(struct tn_lake_io *lake, const char *path, struct tn_lake_file **file,
                    struct tn_err *err)
{
    struct tn_lake_file *made = NULL;
    tn_rc rc = TN_FULL;
    for (int tries = 0; rc == TN_FULL && tries < 2; tries++) {
        shrink(lake, tries == 0 ? lake->cache_size : 0);
        rc = tn_lake_new(lake, path, &made, err);
        if (rc == TN_OK) {
            rc = fetch_once(lake, made, err);
        }
        if (rc != TN_OK && made) {
            remove_file(lake, made);
            made = NULL;
        }
    }
    if (rc == TN_OK) {
        made->state = TN_LAKE_KEPT;
        made->nameless = !never_changes(path);
        lake->kept_size += made->size;
        lake->io.counts.bytes_read += made->size;
        *file = made;
    }
    return rc;
}

/* ---- what an earlier process left ---- */

struct leftover {
    char name[TN_LAKE_NUMBER_SIZE];
};

static tn_rc find_leftover(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct leftover *leftover = user;
    if (!is_dir && strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 &&
        strlen(name) < sizeof leftover->name) {
        memcpy(leftover->name, name, strlen(name) + 1);
    }
    return TN_OK;
}

tn_rc tn_lake_clear(struct tn_lake_io *lake, struct tn_err *err)
{
    struct tn_io *scratch = lake->scratch;
    struct leftover leftover;
    tn_rc rc;
    do {
        leftover.name[0] = 0;
        rc = scratch->vtable->list(scratch, "", find_leftover, &leftover, err);
        if (rc == TN_OK && leftover.name[0]) {
            rc = scratch->vtable->unlink(scratch, leftover.name, err);
        }
    } while (rc == TN_OK && leftover.name[0]);
    return rc;
}
