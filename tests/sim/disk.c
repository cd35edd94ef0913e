#include "sim/disk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "given.h"
#include "sim/medium.h"

enum { NAME_SIZE = 256, TRACE_LINES = 12 };

uint64_t sim_disk_used(const struct sim_disk *disk)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        const struct sim_inode *inode = &disk->inodes[i];
        used += inode->links > 0 || inode->opens > 0 ? inode->size : 0;
    }
    return used;
}

static bool is_full(const struct sim_disk *disk)
{
    return sim_disk_used(disk) >= disk->capacity;
}

static int new_handle(struct sim_disk *disk, uint32_t inode, bool writes, const char *path)
{
    uint32_t at = 0;
    while (at < disk->handle_count && disk->handles[at].open) {
        at++;
    }
    if (at == disk->handle_count) {
        disk->handles = sim_grown(disk->handles, disk->handle_count, sizeof *disk->handles);
        disk->handle_count++;
    }
    disk->handles[at] = (struct sim_handle){.open = true, .writes = writes, .inode = inode};
    sim_copy_end(disk->handles[at].path, path);
    disk->inodes[inode].opens++;
    return (int)(disk->boot * 10000 + at + 3);
}

/* NULL for a number of an earlier boot; the test is over for one that never was, or was closed. */
static struct sim_handle *handle_of(struct sim_disk *disk, int file)
{
    CHECK(file >= 3);
    uint32_t boot = (uint32_t)(file - 3) / 10000;
    uint32_t at = (uint32_t)(file - 3) % 10000;
    if (boot != disk->boot) {
        return NULL;
    }
    CHECK(at < disk->handle_count);
    CHECK(disk->handles[at].open);
    return &disk->handles[at];
}

/* ---- calls: counted, cut, failed ---- */

static tn_rc fail(struct tn_err *err, tn_rc rc, const char *verb, const char *path, const char *why)
{
    return tn_err_set(err, rc, 0, "%s %s: %s", verb, path, why);
}

static tn_rc begin(struct sim_disk *disk, const char *verb, const char *path, bool changes,
                   struct tn_err *err)
{
    if (changes && disk->watch && !disk->off) {
        disk->watch(disk->watch_user, disk);
    }
    disk->calls++;
    sim_trace(disk, disk->calls, verb, path, changes);
    disk->off = disk->off || disk->calls == disk->cut_call;
    tn_rc rc = TN_OK;
    if (disk->off) {
        rc = fail(err, TN_IO, verb, path, "the power is off");
    } else if (disk->calls == disk->fail_call && !disk->fail_late) {
        rc = fail(err, disk->fail_rc, verb, path, "a failure was asked for");
    }
    disk->trace[disk->trace_count - 1].rc = rc;
    return rc;
}

/* What the call `begin` began gives: `rc`, unless it is to fail late. */
static tn_rc end(struct sim_disk *disk, tn_rc rc, const char *verb, const char *path,
                 struct tn_err *err)
{
    if (rc == TN_OK && disk->calls == disk->fail_call && disk->fail_late) {
        rc = fail(err, disk->fail_rc, verb, path, "a failure was asked for, late");
    }
    disk->trace[disk->trace_count - 1].rc = rc;
    return rc;
}

/* ---- paths ---- */

/* Where a path leads: `inode` is SIM_NONE when the last name isn't there (but its folder is). */
struct place {
    uint32_t dir;
    uint32_t inode;
    char name[NAME_SIZE];
};

/* The next name of a path into `name`; false behind the last one. */
static bool next_name(const char **path, char name[NAME_SIZE])
{
    *path += strspn(*path, "/");
    size_t length = strcspn(*path, "/");
    CHECK(length < NAME_SIZE);
    memcpy(name, *path, length);
    name[length] = 0;
    *path += length;
    return length > 0;
}

static tn_rc resolve(const struct sim_disk *disk, const char *verb, const char *path,
                     struct place *place, struct tn_err *err)
{
    *place = (struct place){.dir = SIM_ROOT, .inode = SIM_ROOT};
    if (path[0] == '/' && path[1] != 0) {
        return fail(err, TN_INVALID, verb, path, "not below the root");
    }
    const char *rest = path;
    char name[NAME_SIZE];
    while (next_name(&rest, name)) {
        if (strcmp(name, "..") == 0) {
            return fail(err, TN_INVALID, verb, path, "leads out of the root");
        }
        if (place->inode == SIM_NONE) {
            return fail(err, TN_ABSENT, verb, path, "no such folder");
        }
        if (!disk->inodes[place->inode].is_dir) {
            return fail(err, TN_IO, verb, path, "not a folder");
        }
        place->dir = place->inode;
        memcpy(place->name, name, sizeof name);
        uint32_t at = sim_find(disk->entries, disk->entry_count, place->dir, name);
        place->inode = at == SIM_NONE ? SIM_NONE : disk->entries[at].inode;
    }
    return TN_OK;
}

/* A path that must lead to something. */
static tn_rc resolve_there(const struct sim_disk *disk, const char *verb, const char *path,
                           struct place *place, struct tn_err *err)
{
    tn_rc rc = resolve(disk, verb, path, place, err);
    if (rc == TN_OK && place->inode == SIM_NONE) {
        rc = fail(err, TN_ABSENT, verb, path, "no such file");
    }
    return rc;
}

static tn_rc resolve_kind(const struct sim_disk *disk, const char *verb, const char *path,
                          bool is_dir, struct place *place, struct tn_err *err)
{
    tn_rc rc = resolve_there(disk, verb, path, place, err);
    if (rc == TN_OK && disk->inodes[place->inode].is_dir != is_dir) {
        rc = fail(err, TN_IO, verb, path, is_dir ? "not a folder" : "a folder");
    }
    return rc;
}

static tn_rc resolve_new(const struct sim_disk *disk, const char *verb, const char *path,
                         struct place *place, struct tn_err *err)
{
    tn_rc rc = resolve(disk, verb, path, place, err);
    if (rc == TN_OK && place->inode != SIM_NONE) {
        rc = fail(err, TN_EXISTS, verb, path, "already there");
    }
    return rc;
}

/* ---- the functions of io.h, by their names ---- */

static struct sim_disk *disk_of(struct tn_io *io)
{
    return (struct sim_disk *)io;
}

static tn_rc sim_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                      struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "open", path, false, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = end(disk, resolve_kind(disk, "open", path, false, &place, err), "open", path, err);
    if (rc == TN_OK) {
        *file = new_handle(disk, place.inode, false, path);
        *size = disk->inodes[place.inode].size;
    }
    return rc;
}

static tn_rc sim_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                      size_t *got, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct sim_handle *handle = handle_of(disk, file);
    const char *path = handle ? handle->path : "a file of before the reboot";
    tn_rc rc = begin(disk, "read", path, false, err);
    if (rc == TN_OK) {
        rc =
            end(disk, handle ? TN_OK : fail(err, TN_IO, "read", path, "closed"), "read", path, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    const struct sim_inode *inode = &disk->inodes[handle->inode];
    size_t left = offset < inode->size ? inode->size - (size_t)offset : 0;
    *got = size < left ? size : left;
    if (*got > 0) {
        memcpy(data, inode->data + offset, *got);
    }
    io->counts.bytes_read += *got;
    return TN_OK;
}

static tn_rc make_file(struct sim_disk *disk, const char *verb, const char *path, uint32_t *inode,
                       struct tn_err *err)
{
    struct place place;
    tn_rc rc = resolve_new(disk, verb, path, &place, err);
    if (rc == TN_OK && is_full(disk)) {
        rc = fail(err, TN_FULL, verb, path, "no space left");
    }
    if (rc == TN_OK) {
        *inode = sim_new_inode(disk, false);
        sim_change_names(disk, SIM_CHANGE_CREATE, place.dir, *inode, place.name, NULL);
    }
    return rc;
}

static tn_rc sim_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    tn_rc rc = begin(disk, "create", path, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t inode;
    rc = end(disk, make_file(disk, "create", path, &inode, err), "create", path, err);
    if (rc == TN_OK) {
        *file = new_handle(disk, inode, true, path);
        io->counts.files_created++;
    }
    return rc;
}

static void put_bytes(struct sim_disk *disk, struct sim_inode *inode, struct tn_bytes bytes,
                      size_t size)
{
    size_t at = inode->size;
    sim_set_size(disk, inode, at + size);
    inode->modified_ms = disk->now_ms;
    if (size > 0) {
        memcpy(inode->data + at, bytes.data, size);
    }
    disk->io.counts.bytes_written += size;
}

static tn_rc append_to(struct sim_disk *disk, struct sim_inode *inode, struct tn_bytes bytes,
                       const char *path, struct tn_err *err)
{
    uint64_t used = sim_disk_used(disk);
    uint64_t room = used < disk->capacity ? disk->capacity - used : 0;
    if (bytes.size > room) {
        put_bytes(disk, inode, bytes, (size_t)room);
        return fail(err, TN_FULL, "append", path, "no space left");
    }
    put_bytes(disk, inode, bytes, bytes.size);
    return TN_OK;
}

static tn_rc sim_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    char path[SIM_PATH_SIZE] = "a file of before the reboot";
    struct sim_handle *handle = handle_of(disk, file);
    if (handle) {
        memcpy(path, handle->path, sizeof path);
    }
    tn_rc rc = begin(disk, "append", path, true, err);
    handle = handle_of(disk, file); /* who watches may have opened files */
    if (!handle) {
        return rc != TN_OK ? rc : fail(err, TN_IO, "append", path, "closed");
    }
    CHECK(handle->writes);
    struct sim_inode *inode = &disk->inodes[handle->inode];
    if (rc != TN_OK) {
        if (!disk->off) {
            put_bytes(disk, inode, bytes, bytes.size / 2);
        }
        return rc;
    }
    return end(disk, append_to(disk, inode, bytes, path, err), "append", path, err);
}

static void sim_close(struct tn_io *io, int file)
{
    struct sim_disk *disk = disk_of(io);
    struct sim_handle *handle = handle_of(disk, file);
    if (!handle) {
        return;
    }
    struct sim_inode *inode = &disk->inodes[handle->inode];
    inode->opens--;
    inode->locked = inode->locked && !handle->locks;
    handle->open = false;
}

/* The bytes on the medium are set aside before the first of them is cut off. */
static void cut_file(struct sim_disk *disk, struct sim_inode *inode, size_t size)
{
    if (size <= inode->synced_size && !inode->old) { /* nothing is left that a sync failed for */
        inode->spoiled = false;
    }
    if (size < inode->synced_size) {
        if (!inode->old) {
            inode->old = sim_copied(inode->data, inode->synced_size);
            inode->old_size = inode->synced_size;
            disk->memory += inode->old_size;
        }
        inode->synced_size = size;
    }
    sim_set_size(disk, inode, size);
}

static tn_rc sim_reopen(struct tn_io *io, const char *path, uint64_t size, int *file,
                        struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "reopen", path, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = resolve_kind(disk, "reopen", path, false, &place, err);
    if (rc == TN_OK && size > disk->inodes[place.inode].size) {
        rc = fail(err, TN_CORRUPT, "reopen", path, "shorter than it was");
    }
    if (rc == TN_OK) {
        cut_file(disk, &disk->inodes[place.inode], (size_t)size);
    }
    rc = end(disk, rc, "reopen", path, err);
    if (rc == TN_OK) {
        *file = new_handle(disk, place.inode, true, path);
    }
    return rc;
}

/* The path of a folder ends in '/', that of a file doesn't; the root may be "". */
static tn_rc resolve_sync(const struct sim_disk *disk, const char *path, struct place *place,
                          struct tn_err *err)
{
    tn_rc rc = resolve_there(disk, "sync", path, place, err);
    if (rc != TN_OK || path[0] == 0) {
        return rc;
    }
    bool as_dir = path[strlen(path) - 1] == '/';
    if (as_dir != disk->inodes[place->inode].is_dir) {
        return fail(err, TN_IO, "sync", path,
                    as_dir ? "not a folder" : "the path of a folder ends in '/'");
    }
    return TN_OK;
}

static void sync_one(struct sim_disk *disk, uint32_t number, bool fails)
{
    struct sim_inode *inode = &disk->inodes[number];
    if (inode->is_dir) {
        if (!fails) {
            sim_settle(disk, number);
        }
    } else if (fails) {
        inode->spoiled = inode->spoiled || inode->synced_size < inode->size || inode->old;
    } else if (!inode->spoiled) {
        inode->synced_size = inode->size;
        sim_drop_old(disk, inode);
    }
}

static tn_rc sync_all(struct sim_disk *disk, const char *const *paths, uint32_t count, bool fails,
                      struct tn_err *err)
{
    struct place place;
    for (uint32_t i = 0; i < count; i++) {
        tn_rc rc = resolve_sync(disk, paths[i], &place, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        tn_rc rc = resolve_sync(disk, paths[i], &place, err);
        CHECK(rc == TN_OK);
        if (disk->ignored_path && strstr(paths[i], disk->ignored_path)) {
            disk->paths_ignored++;
        } else {
            sync_one(disk, place.inode, fails);
        }
    }
    if (disk->model == SIM_ORDERED && count > 0 && !fails) {
        sim_settle(disk, SIM_NONE);
    }
    sim_free_unreachable(disk);
    return TN_OK;
}

static tn_rc sim_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                      struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    const char *first = count > 0 ? paths[0] : "";
    disk->syncs++;
    io->counts.syncs++;
    tn_rc rc = begin(disk, "sync", first, true, err);
    if (rc != TN_OK) {
        struct tn_err second;
        (void)(disk->off ? TN_OK : sync_all(disk, paths, count, true, &second));
        return rc;
    }
    if (disk->syncs != disk->ignored_sync) {
        rc = sync_all(disk, paths, count, false, err);
    }
    return end(disk, rc, "sync", first, err);
}

static tn_rc rename_file(struct sim_disk *disk, const char *verb, const char *path,
                         const char *path_new, bool replaces, struct tn_err *err)
{
    struct place from;
    struct place to;
    tn_rc rc = resolve_kind(disk, verb, path, false, &from, err);
    if (rc == TN_OK) {
        rc = resolve(disk, verb, path_new, &to, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    CHECK(from.dir == to.dir); /* io.h: in the same folder */
    if (to.inode != SIM_NONE && !replaces) {
        return fail(err, TN_EXISTS, verb, path_new, "already there");
    }
    if (to.inode != SIM_NONE && disk->inodes[to.inode].is_dir) {
        return fail(err, TN_IO, verb, path_new, "a folder");
    }
    if (to.inode != from.inode) {
        sim_change_names(disk, SIM_CHANGE_RENAME, from.dir, from.inode, to.name, from.name);
    }
    return TN_OK;
}

static tn_rc sim_rename_new(struct tn_io *io, const char *path, const char *path_new,
                            struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    tn_rc rc = begin(disk, "rename_new", path_new, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = rename_file(disk, "rename_new", path, path_new, false, err);
    return end(disk, rc, "rename_new", path_new, err);
}

static tn_rc sim_replace(struct tn_io *io, const char *path, const char *path_new,
                         struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    tn_rc rc = begin(disk, "replace", path_new, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = rename_file(disk, "replace", path, path_new, true, err);
    return end(disk, rc, "replace", path_new, err);
}

static tn_rc sim_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "unlink", path, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = resolve_kind(disk, "unlink", path, false, &place, err);
    if (rc == TN_OK) {
        sim_change_names(disk, SIM_CHANGE_UNLINK, place.dir, place.inode, place.name, NULL);
    }
    return end(disk, rc, "unlink", path, err);
}

static bool is_empty(const struct sim_disk *disk, uint32_t dir)
{
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        if (disk->entries[i].dir == dir) {
            return false;
        }
    }
    return true;
}

static tn_rc sim_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "remove_dir", path, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = resolve_kind(disk, "remove_dir", path, true, &place, err);
    if (rc == TN_OK && place.inode == SIM_ROOT) {
        rc = fail(err, TN_IO, "remove_dir", path, "the root");
    } else if (rc == TN_OK && !is_empty(disk, place.inode)) {
        rc = fail(err, TN_EXISTS, "remove_dir", path, "something is in it");
    } else if (rc == TN_OK) {
        sim_change_names(disk, SIM_CHANGE_UNLINK, place.dir, place.inode, place.name, NULL);
    }
    return end(disk, rc, "remove_dir", path, err);
}

/* Forgets changes of one name: a newer one is on the medium already. */
static void forget_changes(struct sim_disk *disk, uint32_t dir, const char *name)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->change_count; i++) {
        struct sim_change *change = &disk->changes[i];
        if (change->dir == dir && strcmp(change->name, name) == 0) {
            sim_free_change(change);
        } else {
            disk->changes[kept++] = *change;
        }
    }
    disk->change_count = kept;
}

static void make_one(struct sim_disk *disk, const struct place *place)
{
    uint32_t inode = sim_new_inode(disk, true);
    sim_put_name(&disk->entries, &disk->entry_count, place->dir, place->name, inode);
    if (disk->model == SIM_ORDERED) {
        sim_settle(disk, SIM_NONE);
    }
    forget_changes(disk, place->dir, place->name);
    sim_put_name(&disk->stable, &disk->stable_count, place->dir, place->name, inode);
    sim_count_links(disk);
}

/* Makes what is missing, from the top. */
static tn_rc make_all(struct sim_disk *disk, const char *path, struct tn_err *err)
{
    for (size_t size = 1; size <= strlen(path); size++) {
        bool part_ends = (path[size] == '/' || path[size] == 0) && path[size - 1] != '/';
        if (!part_ends) {
            continue;
        }
        char part[1024];
        CHECK(size < sizeof part);
        memcpy(part, path, size);
        part[size] = 0;
        struct place place;
        tn_rc rc = resolve(disk, "make_dir", part, &place, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (place.inode == SIM_NONE && is_full(disk)) {
            return fail(err, TN_FULL, "make_dir", part, "no space left");
        }
        if (place.inode == SIM_NONE) {
            make_one(disk, &place);
        } else if (!disk->inodes[place.inode].is_dir) {
            return fail(err, TN_EXISTS, "make_dir", part, "a file");
        }
    }
    return TN_OK;
}

static tn_rc sim_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "make_dir", path, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = resolve(disk, "make_dir", path, &place, err);
    if (rc != TN_INVALID) { /* no half-made chain for a path that leaves the root */
        rc = make_all(disk, path, err);
    }
    return end(disk, rc, "make_dir", path, err);
}

/* By hash, which scrambles them. The C library's qsort takes memory for many, which a test that
 * counts would take for the program's. */
static void scramble(struct sim_entry *names, uint32_t count)
{
    for (uint32_t step = count / 2; step > 0; step /= 2) {
        for (uint32_t i = step; i < count; i++) {
            struct sim_entry name = names[i];
            uint32_t at = i;
            for (; at >= step && names[at - step].hash > name.hash; at -= step) {
                names[at] = names[at - step];
            }
            names[at] = name;
        }
    }
}

/* From a copy, since `each` may change the folder. */
static tn_rc list_dir(struct sim_disk *disk, uint32_t dir, tn_io_name_fn *each, void *user,
                      struct tn_err *err)
{
    struct sim_entry *names = sim_copied_array(disk->entries, disk->entry_count, sizeof *names);
    uint32_t count = 0;
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        if (disk->entries[i].dir == dir) {
            names[count] = disk->entries[i];
            names[count++].name = sim_copied_text(disk->entries[i].name);
        }
    }
    scramble(names, count);
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (rc == TN_OK) {
            rc = each(user, names[i].name, disk->inodes[names[i].inode].is_dir, err);
        }
        free(names[i].name);
    }
    free(names);
    return rc;
}

static tn_rc sim_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                      struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "list", path, false, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = end(disk, resolve_kind(disk, "list", path, true, &place, err), "list", path, err);
    return rc != TN_OK ? rc : list_dir(disk, place.inode, each, user, err);
}

static tn_rc sim_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "stat", path, false, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = end(disk, resolve_there(disk, "stat", path, &place, err), "stat", path, err);
    if (rc == TN_OK) {
        *size = disk->inodes[place.inode].size;
    }
    return rc;
}

static tn_rc sim_modified(struct tn_io *io, const char *path, int64_t *ms, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    struct place place;
    tn_rc rc = begin(disk, "modified", path, false, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = end(disk, resolve_there(disk, "modified", path, &place, err), "modified", path, err);
    if (rc == TN_OK) {
        *ms = disk->inodes[place.inode].modified_ms;
    }
    return rc;
}

static tn_rc sim_room(struct tn_io *io, uint64_t *bytes, struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    tn_rc rc = begin(disk, "room", "", false, err);
    if (rc == TN_OK) {
        uint64_t used = sim_disk_used(disk);
        *bytes = used < disk->capacity ? disk->capacity - used : 0;
        rc = end(disk, rc, "room", "", err);
    }
    return rc;
}

static tn_rc lock_file(struct sim_disk *disk, const char *path, const char *who, uint32_t *number,
                       struct tn_err *err)
{
    struct place place;
    tn_rc rc = resolve(disk, "lock", path, &place, err);
    if (rc == TN_OK && place.inode == SIM_NONE) {
        rc = make_file(disk, "lock", path, &place.inode, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    struct sim_inode *inode = &disk->inodes[place.inode];
    if (inode->is_dir) {
        return fail(err, TN_IO, "lock", path, "a folder");
    }
    if (inode->locked) {
        return tn_err_set(err, TN_EXISTS, 0, "lock %s: held by %.*s", path, (int)inode->size,
                          (const char *)inode->data);
    }
    inode->locked = true;
    cut_file(disk, inode, 0);
    struct tn_err second; /* on a full disk the lock is taken without its text */
    (void)append_to(disk, inode, tn_bytes_of(who), path, &second);
    *number = place.inode;
    return TN_OK;
}

static tn_rc sim_lock(struct tn_io *io, const char *path, const char *who, int *file,
                      struct tn_err *err)
{
    struct sim_disk *disk = disk_of(io);
    tn_rc rc = begin(disk, "lock", path, true, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t inode = SIM_NONE;
    rc = lock_file(disk, path, who, &inode, err);
    tn_rc told = end(disk, rc, "lock", path, err);
    if (told == TN_OK) {
        *file = new_handle(disk, inode, true, path);
        handle_of(disk, *file)->locks = true;
    } else if (rc == TN_OK) {
        disk->inodes[inode].locked = false;
    }
    return told;
}

static const struct tn_io_vtable vtable = {
    .open = sim_open,
    .read = sim_read,
    .create = sim_create,
    .append = sim_append,
    .close = sim_close,
    .reopen = sim_reopen,
    .sync = sim_sync,
    .rename_new = sim_rename_new,
    .replace = sim_replace,
    .unlink = sim_unlink,
    .remove_dir = sim_remove_dir,
    .make_dir = sim_make_dir,
    .list = sim_list,
    .stat = sim_stat,
    .modified = sim_modified,
    .room = sim_room,
    .lock = sim_lock,
};

/* ---- what a test sets up ---- */

void sim_disk_init(struct sim_disk *disk, size_t memory_max)
{
    *disk = (struct sim_disk){
        .io = {.vtable = &vtable},
        .capacity = UINT64_MAX,
        .memory_max = memory_max,
    };
    CHECK(sim_new_inode(disk, true) == SIM_ROOT);
    disk->inodes[SIM_ROOT].links = 1;
}

void sim_disk_deinit(struct sim_disk *disk)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        sim_free_inode(disk, &disk->inodes[i]);
    }
    CHECK(disk->memory == 0);
    for (uint32_t i = 0; i < disk->change_count; i++) {
        sim_free_change(&disk->changes[i]);
    }
    sim_free_entries(disk->entries, disk->entry_count);
    sim_free_entries(disk->stable, disk->stable_count);
    free(disk->inodes);
    free(disk->changes);
    free(disk->handles);
    free(disk->trace);
    *disk = (struct sim_disk){0};
}

void sim_disk_clone(struct sim_disk *to, const struct sim_disk *from)
{
    *to = *from;
    to->entries = sim_copied_entries(from->entries, from->entry_count);
    to->stable = sim_copied_entries(from->stable, from->stable_count);
    to->inodes = sim_copied_array(from->inodes, from->inode_count, sizeof *to->inodes);
    for (uint32_t i = 0; i < to->inode_count; i++) {
        struct sim_inode *inode = &to->inodes[i];
        inode->data = inode->data ? sim_copied(inode->data, inode->size) : NULL;
        inode->old = inode->old ? sim_copied(inode->old, inode->old_size) : NULL;
    }
    to->changes = sim_copied_array(from->changes, from->change_count, sizeof *to->changes);
    for (uint32_t i = 0; i < to->change_count; i++) {
        to->changes[i].name = sim_copied_text(to->changes[i].name);
        to->changes[i].name_old = sim_copied_text(to->changes[i].name_old);
    }
    to->handles = sim_copied_array(from->handles, from->handle_count, sizeof *to->handles);
    to->watch = NULL;
    to->trace = NULL;
    to->trace_count = 0;
}

void sim_disk_cut_at(struct sim_disk *disk, uint64_t call)
{
    disk->cut_call = call;
}

void sim_disk_watch(struct sim_disk *disk, void (*watch)(void *user, struct sim_disk *disk),
                    void *user)
{
    disk->watch = watch;
    disk->watch_user = user;
}

void sim_disk_fail_call(struct sim_disk *disk, uint64_t call, tn_rc rc)
{
    disk->fail_call = call;
    disk->fail_rc = rc;
    disk->fail_late = false;
}

void sim_disk_fail_call_late(struct sim_disk *disk, uint64_t call, tn_rc rc)
{
    sim_disk_fail_call(disk, call, rc);
    disk->fail_late = true;
}

void sim_disk_capacity(struct sim_disk *disk, uint64_t bytes)
{
    disk->capacity = bytes;
}

void sim_disk_ignore_sync(struct sim_disk *disk, uint64_t sync)
{
    disk->ignored_sync = sync;
}

void sim_disk_ignore_path(struct sim_disk *disk, const char *part)
{
    disk->ignored_path = part;
    disk->paths_ignored = 0;
}

const char *sim_disk_sync_path(const struct sim_disk *disk, uint64_t sync)
{
    for (uint64_t i = 0; i < disk->trace_count; i++) {
        if (strcmp(disk->trace[i].verb, "sync") == 0 && --sync == 0) {
            return disk->trace[i].path;
        }
    }
    return NULL;
}

bool sim_disk_call_changes(const struct sim_disk *disk, uint64_t call)
{
    CHECK(call >= 1 && call <= disk->calls && disk->calls <= disk->trace_count);
    return disk->trace[disk->trace_count - disk->calls + call - 1].changes;
}

void sim_disk_print_trace(const struct sim_disk *disk)
{
    uint64_t lines = given_number("TRACE", TRACE_LINES);
    uint64_t first = disk->trace_count > lines ? disk->trace_count - lines : 0;
    for (uint64_t i = first; i < disk->trace_count; i++) {
        const struct sim_call *call = &disk->trace[i];
        (void)fprintf(stderr, "%5" PRIu64 " %s %s: %s\n", call->number, call->verb, call->path,
                      tn_rc_text(call->rc));
    }
}
