#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "upload/lake_io_private.h"

enum { LISTS_SIZE = 64 * 1024 }; /* lists in lists: beside a small file */

static const char LOCK[] = "lake.lock";

/* ---- whose a path is ---- */

/* Beside the tables: this machine's own, but for what lies in a table's folder, ".tarn/db.t/": that
 * is for all who work on the table (owner, inbox, pause). Other folders there have no dot. */
static bool is_own(const char *path)
{
    static const char begin[] = ".tarn";
    if (strncmp(path, begin, strlen(begin)) != 0 ||
        (path[strlen(begin)] != 0 && path[strlen(begin)] != '/')) {
        return false;
    }
    const char *name = path + strlen(begin) + (path[strlen(begin)] == '/');
    const char *slash = strchr(name, '/');
    return !slash || !memchr(name, '.', (size_t)(slash - name));
}

static bool is_draft(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (slash ? slash[1] : path[0]) == '.';
}

static bool is_folder(const char *path)
{
    size_t size = strlen(path);
    return size == 0 || path[size - 1] == '/';
}

static tn_rc absent(const char *verb, const char *path, struct tn_err *err)
{
    return tn_err_set(err, TN_ABSENT, 0, "%s %s: there is no such file", verb, path);
}

/* The scratch folder's name of a file says nothing. */
static tn_rc about(tn_rc rc, const char *path, struct tn_err *err)
{
    return rc == TN_OK ? rc : tn_err_in(err, "%s", path);
}

/* What only a sender may hear. */
static tn_rc sent(tn_rc rc, struct tn_err *err)
{
    if (rc == TN_ABSENT || rc == TN_CONFLICT) {
        err->code = TN_IO;
        return TN_IO;
    }
    return rc;
}

/* ---- handles ---- */

static tn_rc free_handle(struct tn_lake_io *lake, const char *path, int *number, struct tn_err *err)
{
    for (int i = 0; i < TN_LAKE_IO_HANDLES; i++) {
        if (!lake->handles[i].used) {
            *number = i;
            return TN_OK;
        }
    }
    return tn_err_set(err, TN_AGAIN, 0, "open %s: more than %d files at once", path,
                      (int)TN_LAKE_IO_HANDLES);
}

static struct tn_lake_handle *handle_of(struct tn_lake_io *lake, int file)
{
    TN_CHECK(file >= 0 && file < TN_LAKE_IO_HANDLES);
    TN_CHECK(lake->handles[file].used);
    return &lake->handles[file];
}

static void take_handle(struct tn_lake_io *lake, int number, struct tn_lake_file *file, int below)
{
    lake->handles[number] = (struct tn_lake_handle){.used = true, .file = file, .below = below};
    if (file) {
        tn_lake_opened(lake, file);
    }
}

/* ---- reading ---- */

static tn_rc open_here(struct tn_lake_io *lake, struct tn_lake_file *file, int number,
                       struct tn_err *err)
{
    char name[TN_LAKE_NUMBER_SIZE];
    uint64_t size = 0;
    int below = -1;
    tn_lake_number(file->number, name);
    tn_rc rc = lake->scratch->vtable->open(lake->scratch, name, &below, &size, err);
    if (rc == TN_OK) {
        take_handle(lake, number, file, below);
    }
    return about(sent(rc, err), file->path, err);
}

static tn_rc find_or_fetch(struct tn_lake_io *lake, const char *path, struct tn_lake_file **file,
                           struct tn_err *err)
{
    *file = tn_lake_find(lake, path);
    if (*file) {
        return TN_OK;
    }
    return is_draft(path) ? absent("open", path, err) : tn_lake_fetch(lake, path, file, err);
}

static tn_rc open_own(struct tn_lake_io *lake, const char *path, int number, uint64_t *size,
                      struct tn_err *err)
{
    int below = -1;
    tn_rc rc = lake->scratch->vtable->open(lake->scratch, path, &below, size, err);
    if (rc == TN_OK) {
        take_handle(lake, number, NULL, below);
    }
    return rc;
}

static tn_rc lake_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                       struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_lake_file *found = NULL;
    int number = -1;
    tn_rc rc = free_handle(lake, path, &number, err);
    if (rc == TN_OK && is_own(path)) {
        rc = open_own(lake, path, number, size, err);
    } else if (rc == TN_OK) {
        rc = find_or_fetch(lake, path, &found, err);
        rc = rc == TN_OK ? open_here(lake, found, number, err) : rc;
    }
    if (rc == TN_OK && found) {
        *size = found->size;
    }
    if (rc == TN_OK) {
        *file = number;
    }
    return rc;
}

static tn_rc lake_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                       size_t *got, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    const struct tn_lake_handle *handle = handle_of(lake, file);
    tn_rc rc =
        lake->scratch->vtable->read(lake->scratch, handle->below, offset, data, size, got, err);
    return handle->file ? about(rc, handle->file->path, err) : rc;
}

static void lake_close(struct tn_io *io, int file)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_lake_handle *handle = handle_of(lake, file);
    lake->scratch->vtable->close(lake->scratch, handle->below);
    handle->used = false;
    if (handle->file) {
        handle->file->writing = handle->file->writing && !handle->writes;
        tn_lake_closed(lake, handle->file);
    }
}

/* ---- writing ---- */

static tn_rc create_own(struct tn_lake_io *lake, const char *path, int number, struct tn_err *err)
{
    int below = -1;
    tn_rc rc = lake->scratch->vtable->create(lake->scratch, path, &below, err);
    if (rc == TN_OK) {
        take_handle(lake, number, NULL, below);
    }
    return rc;
}

static tn_rc create_here(struct tn_lake_io *lake, const char *path, int number, struct tn_err *err)
{
    struct tn_lake_file *file = NULL;
    char name[TN_LAKE_NUMBER_SIZE];
    int below = -1;
    if (tn_lake_find(lake, path)) {
        return tn_err_set(err, TN_EXISTS, 0, "create %s: it is there", path);
    }
    tn_rc rc = tn_lake_new(lake, path, &file, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_lake_number(file->number, name);
    rc = lake->scratch->vtable->create(lake->scratch, name, &below, err);
    if (rc != TN_OK) {
        tn_lake_drop(lake, file);
        return about(rc, path, err);
    }
    take_handle(lake, number, file, below);
    lake->handles[number].writes = true;
    file->writing = true;
    lake->io.counts.files_created++;
    return TN_OK;
}

static tn_rc lake_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    int number = -1;
    tn_rc rc = free_handle(lake, path, &number, err);
    if (rc == TN_OK) {
        rc = is_own(path) ? create_own(lake, path, number, err)
                          : create_here(lake, path, number, err);
    }
    if (rc == TN_OK) {
        *file = number;
    }
    return rc;
}

static tn_rc lake_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    const struct tn_lake_handle *handle = handle_of(lake, file);
    tn_rc rc = lake->scratch->vtable->append(lake->scratch, handle->below, bytes, err);
    if (rc == TN_OK) {
        lake->io.counts.bytes_written += bytes.size;
    }
    if (rc == TN_OK && handle->file) {
        handle->file->size += bytes.size;
    }
    return handle->file ? about(rc, handle->file->path, err) : rc;
}

static tn_rc reopen_here(struct tn_lake_io *lake, const char *path, uint64_t size, int number,
                         struct tn_err *err)
{
    struct tn_lake_file *file = tn_lake_find(lake, path);
    char name[TN_LAKE_NUMBER_SIZE];
    int below = -1;
    if (!file || file->state != TN_LAKE_WRITTEN) {
        return absent("reopen", path, err);
    }
    tn_lake_number(file->number, name);
    tn_rc rc = lake->scratch->vtable->reopen(lake->scratch, name, size, &below, err);
    if (rc == TN_OK) {
        take_handle(lake, number, file, below);
        lake->handles[number].writes = true;
        file->writing = true;
        file->size = size;
    }
    return about(rc, path, err);
}

static tn_rc lake_reopen(struct tn_io *io, const char *path, uint64_t size, int *file,
                         struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    int number = -1;
    int below = -1;
    tn_rc rc = free_handle(lake, path, &number, err);
    if (rc == TN_OK && is_own(path)) {
        rc = lake->scratch->vtable->reopen(lake->scratch, path, size, &below, err);
        if (rc == TN_OK) {
            take_handle(lake, number, NULL, below);
        }
    } else if (rc == TN_OK) {
        rc = reopen_here(lake, path, size, number, err);
    }
    if (rc == TN_OK) {
        *file = number;
    }
    return rc;
}

/* ---- the barrier ---- */

/* A file that was synced before is there; and one that isn't known is the target's. */
static tn_rc send_one(struct tn_lake_io *lake, const char *path, struct tn_err *err)
{
    struct tn_target *target = lake->target;
    struct tn_lake_file *file = tn_lake_find(lake, path);
    if (is_draft(path)) {
        return file ? TN_OK : absent("sync", path, err);
    }
    if (!file || file->state == TN_LAKE_KEPT) {
        return TN_OK;
    }
    if (file->writing) {
        return tn_err_set(err, TN_INVALID, 0, "sync %s: it is still written", path);
    }
    file->state = TN_LAKE_SENT;
    return sent(target->vtable->send(target, &lake->io, path, file->size, err), err);
}

static void keep_sent(struct tn_lake_io *lake, const char *const *paths, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct tn_lake_file *file = tn_lake_find(lake, paths[i]);
        if (file && file->state == TN_LAKE_SENT) {
            tn_lake_keep(lake, file);
        }
    }
}

static tn_rc sync_there(struct tn_lake_io *lake, const char *const *paths, uint32_t count,
                        struct tn_err *err)
{
    struct tn_target *target = lake->target;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = is_folder(paths[i]) || is_own(paths[i]) ? TN_OK : send_one(lake, paths[i], err);
    }
    if (rc == TN_OK) {
        rc = sent(target->vtable->settle(target, err), err);
    }
    if (rc == TN_OK) {
        keep_sent(lake, paths, count);
    } else {
        target->vtable->drop(target);
    }
    return rc;
}

static tn_rc lake_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                       struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_io *scratch = lake->scratch;
    uint32_t own = 0;
    tn_rc rc = TN_OK;
    lake->io.counts.syncs++;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        if (is_own(paths[i])) {
            rc = scratch->vtable->sync(scratch, &paths[i], 1, err);
            own++;
        }
    }
    return rc == TN_OK && own < count ? sync_there(lake, paths, count, err) : rc;
}

/* ---- names ---- */

static tn_rc rename_here(struct tn_lake_io *lake, struct tn_lake_file *file, const char *path_new,
                         bool over, struct tn_err *err)
{
    struct tn_lake_file *there = tn_lake_find(lake, path_new);
    if (there && !over) {
        return tn_err_set(err, TN_EXISTS, 0, "rename %s: %s is there", file->path, path_new);
    }
    tn_rc rc = tn_lake_rename(file, path_new, err);
    if (rc == TN_OK && there) {
        tn_lake_drop(lake, there);
    }
    return rc;
}

/* A small file gets its name at the target; what is here was its draft. */
static tn_rc put(struct tn_lake_io *lake, struct tn_lake_file *file, const char *path_new,
                 bool over, struct tn_err *err)
{
    struct tn_target *target = lake->target;
    struct tn_bytes bytes;
    char name[TN_LAKE_NUMBER_SIZE];
    size_t mark = tn_arena_mark(&lake->arena);
    tn_lake_number(file->number, name);
    tn_rc rc = tn_io_read_all(lake->scratch, name, lake->small_size, &lake->arena, &bytes, err);
    if (rc != TN_OK) {
        return about(sent(rc, err), path_new, err);
    }
    if (!over && lake->ready) {
        rc = lake->ready(lake->user, path_new, err);
    }
    if (rc == TN_OK) {
        rc = over ? target->vtable->replace(target, path_new, bytes, err)
                  : target->vtable->publish(target, path_new, bytes, err);
    }
    tn_arena_reset(&lake->arena, mark);
    if (rc == TN_CONFLICT) {
        err->code = rc = TN_EXISTS;
    }
    if (rc == TN_OK) {
        tn_lake_drop(lake, file);
    }
    return rc;
}

static tn_rc rename_to(struct tn_lake_io *lake, const char *path, const char *path_new, bool over,
                       struct tn_err *err)
{
    struct tn_lake_file *file = tn_lake_find(lake, path);
    if (!file) {
        return is_draft(path)
                   ? absent("rename", path, err)
                   : tn_err_set(err, TN_UNSUPPORTED, 0, "rename %s: what is at %s keeps its name",
                                path, lake->target->name);
    }
    if (file->state != TN_LAKE_WRITTEN) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "rename %s: what is at %s keeps its name", path,
                          lake->target->name);
    }
    return is_draft(path_new) ? rename_here(lake, file, path_new, over, err)
                              : put(lake, file, path_new, over, err);
}

static tn_rc lake_rename_new(struct tn_io *io, const char *path, const char *path_new,
                             struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    return is_own(path) ? lake->scratch->vtable->rename_new(lake->scratch, path, path_new, err)
                        : rename_to(lake, path, path_new, false, err);
}

static tn_rc lake_replace(struct tn_io *io, const char *path, const char *path_new,
                          struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    return is_own(path) ? lake->scratch->vtable->replace(lake->scratch, path, path_new, err)
                        : rename_to(lake, path, path_new, true, err);
}

static tn_rc lake_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_target *target = lake->target;
    if (is_own(path)) {
        return lake->scratch->vtable->unlink(lake->scratch, path, err);
    }
    struct tn_lake_file *file = tn_lake_find(lake, path);
    bool there = file ? file->state != TN_LAKE_WRITTEN : !is_draft(path);
    tn_rc rc = there ? target->vtable->remove(target, path, err) : TN_OK;
    if (rc == TN_OK && file) {
        tn_lake_drop(lake, file);
    }
    return rc == TN_OK && !there && !file ? absent("unlink", path, err) : rc;
}

/* ---- folders ---- */

static tn_rc lake_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    return is_own(path) ? lake->scratch->vtable->remove_dir(lake->scratch, path, err) : TN_OK;
}

static tn_rc lake_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    return is_own(path) ? lake->scratch->vtable->make_dir(lake->scratch, path, err) : TN_OK;
}

static tn_rc lake_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                       struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    return is_own(path) ? lake->scratch->vtable->list(lake->scratch, path, each, user, err)
                        : tn_lake_list(lake, path, each, user, err);
}

/* ---- questions ---- */

static tn_rc lake_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_target *target = lake->target;
    if (is_own(path)) {
        return lake->scratch->vtable->stat(lake->scratch, path, size, err);
    }
    const struct tn_lake_file *file = tn_lake_find(lake, path);
    if (file) {
        *size = file->size;
        return TN_OK;
    }
    if (is_draft(path)) {
        return absent("stat", path, err);
    }
    tn_rc rc = target->vtable->stat(target, path, size, err);
    return tn_target_if_hidden(rc, err); /* who works on a table may list it */
}

static tn_rc lake_modified(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_io *scratch = lake->scratch;
    struct tn_target *target = lake->target;
    char name[TN_LAKE_NUMBER_SIZE];
    if (is_own(path)) {
        return scratch->vtable->modified(scratch, path, ms, err);
    }
    const struct tn_lake_file *file = tn_lake_find(lake, path);
    if (file && file->state == TN_LAKE_WRITTEN) {
        tn_lake_number(file->number, name);
        return about(scratch->vtable->modified(scratch, name, ms, err), path, err);
    }
    return is_draft(path) ? absent("stat", path, err)
                          : target->vtable->modified(target, path, ms, err);
}

static tn_rc lake_room(struct tn_io *io, uint64_t *bytes, struct tn_err *err)
{
    struct tn_io *scratch = tn_lake_of(io)->scratch;
    return scratch->vtable->room(scratch, bytes, err);
}

static tn_rc lake_lock(struct tn_io *io, const char *path, const char *who, int *file,
                       struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    int number = -1;
    int below = -1;
    if (!is_own(path)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "lock %s: %s has no locks", path,
                          lake->target->name);
    }
    tn_rc rc = free_handle(lake, path, &number, err);
    if (rc == TN_OK) {
        rc = lake->scratch->vtable->lock(lake->scratch, path, who, &below, err);
    }
    if (rc == TN_OK) {
        take_handle(lake, number, NULL, below);
        *file = number;
    }
    return rc;
}

/* ---- many at once ---- */

/* Nothing of it is here. */
static bool all_there(struct tn_lake_io *lake, const struct tn_io_ask *asks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *path = asks[i].path;
        if (is_own(path) || is_draft(path) || tn_lake_find(lake, path)) {
            return false;
        }
    }
    return true;
}

static tn_rc lake_ask(struct tn_io *io, struct tn_io_ask *asks, uint32_t count, struct tn_err *err)
{
    struct tn_lake_io *lake = tn_lake_of(io);
    struct tn_target *target = lake->target;
    return target->vtable->ask && all_there(lake, asks, count)
               ? target->vtable->ask(target, asks, count, err)
               : tn_io_ask_each(io, asks, count, err);
}

static tn_rc lake_walk(struct tn_io *io, struct tn_io_walk *walk, struct tn_err *err)
{
    struct tn_target *target = tn_lake_of(io)->target;
    return target->vtable->walk && !is_own(walk->path) ? target->vtable->walk(target, walk, err)
                                                       : tn_io_walk_folders(io, walk, err);
}

static const struct tn_io_vtable vtable = {
    .open = lake_open,
    .read = lake_read,
    .create = lake_create,
    .append = lake_append,
    .close = lake_close,
    .reopen = lake_reopen,
    .sync = lake_sync,
    .rename_new = lake_rename_new,
    .replace = lake_replace,
    .unlink = lake_unlink,
    .remove_dir = lake_remove_dir,
    .make_dir = lake_make_dir,
    .list = lake_list,
    .stat = lake_stat,
    .modified = lake_modified,
    .room = lake_room,
    .lock = lake_lock,
    .ask = lake_ask,
    .walk = lake_walk,
};

/* ---- open and close ---- */

static uint32_t files_of(uint32_t files)
{
    return files > 0 ? files : TN_LAKE_IO_FILES;
}

static size_t size_of(uint32_t files, uint32_t small_size)
{
    return files * sizeof(struct tn_lake_file) +
           TN_LAKE_IO_HANDLES * sizeof(struct tn_lake_handle) + small_size + LISTS_SIZE + 64;
}

size_t tn_lake_io_size(uint32_t files)
{
    return size_of(files_of(files), TN_LAKE_IO_SMALL_MAX);
}

static tn_rc carve(struct tn_lake_io *lake, struct tn_arena *arena, struct tn_err *err)
{
    void *memory = NULL;
    size_t mark = tn_arena_mark(arena);
    size_t size = size_of(lake->file_count, lake->small_size);
    tn_rc rc = tn_arena_need(arena, size, "a lake's files", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_arena_reset(arena, mark);
    lake->files = tn_arena_take(arena, lake->file_count * sizeof *lake->files);
    lake->handles = tn_arena_take(arena, TN_LAKE_IO_HANDLES * sizeof *lake->handles);
    size = lake->small_size + LISTS_SIZE;
    memory = tn_arena_take_raw(arena, size);
    TN_CHECK(lake->files && lake->handles && memory);
    tn_arena_init(&lake->arena, memory, size);
    return TN_OK;
}

tn_rc tn_lake_io_open(struct tn_lake_io *lake, const struct tn_lake_io_spec *spec,
                      struct tn_err *err)
{
    size_t mark = tn_arena_mark(spec->arena);
    *lake = (struct tn_lake_io){.io.vtable = &vtable,
                                .target = spec->target,
                                .scratch = spec->scratch,
                                .file_count = files_of(spec->files),
                                .small_size =
                                    spec->small_size > 0 ? spec->small_size : TN_LAKE_IO_SMALL_MAX,
                                .cache_size = spec->cache_size,
                                .ready = spec->ready,
                                .user = spec->user,
                                .lock = -1};
    tn_rc rc = carve(lake, spec->arena, err);
    if (rc == TN_OK) {
        rc = spec->scratch->vtable->lock(spec->scratch, LOCK, spec->target->name, &lake->lock, err);
    }
    if (rc == TN_OK) {
        rc = tn_lake_clear(lake, err);
    }
    if (rc != TN_OK && lake->lock >= 0) {
        spec->scratch->vtable->close(spec->scratch, lake->lock);
    }
    if (rc != TN_OK) {
        tn_arena_reset(spec->arena, mark);
    }
    return rc;
}

void tn_lake_io_close(struct tn_lake_io *lake)
{
    struct tn_err ignored;
    (void)!tn_lake_clear(lake, &ignored);
    lake->scratch->vtable->close(lake->scratch, lake->lock);
}
