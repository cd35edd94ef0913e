#include "sim/disk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"

enum { NAME_SIZE = 256, TRACE_PATH_SIZE = 120, BLOCK_SIZE = 512, ROOT = 0, NONE = UINT32_MAX };

struct sim_inode {
    bool used;
    bool is_dir;
    bool locked;
    bool spoiled;   /* a sync of it failed: its later bytes never reach the medium */
    uint32_t links; /* visible entries */
    uint32_t opens;
    unsigned char *data;
    size_t size;
    size_t synced_size; /* the first bytes of `data` that are on the medium */
    unsigned char *old; /* what is on the medium, when `data` was cut below it since; or NULL */
    size_t old_size;
};

struct sim_entry {
    uint32_t dir;
    uint32_t inode;
    uint32_t hash; /* of dir and name: finds and scrambles */
    char *name;
};

enum change_kind { CHANGE_CREATE, CHANGE_RENAME, CHANGE_UNLINK };

struct sim_change {
    enum change_kind kind;
    uint32_t dir;
    uint32_t inode;
    char *name;     /* that comes (create, rename) or goes (unlink) */
    char *name_old; /* that goes (rename), or NULL */
};

struct sim_handle {
    bool open;
    bool writes;
    bool locks;
    uint32_t inode;
    char path[TRACE_PATH_SIZE];
};

struct sim_call {
    uint64_t number; /* 0: the power was cut here */
    const char *verb;
    bool changes;
    tn_rc rc;
    char path[TRACE_PATH_SIZE]; /* its end, when it is longer */
};

/* ---- memory: a test that has none left is over ---- */

static void *grown(void *array, size_t count, size_t item_size)
{
    if ((count & (count - 1)) == 0) { /* full at each power of two, and at 0 */
        array = realloc(array, (count > 0 ? 2 * count : 1) * item_size);
        CHECK(array != NULL);
    }
    return array;
}

static void *copied(const void *data, size_t size)
{
    unsigned char *copy = malloc(size > 0 ? size : 1);
    CHECK(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

static char *copied_text(const char *text)
{
    return text ? copied(text, strlen(text) + 1) : NULL;
}

/* A copy of an array that `grown` can go on with. */
static void *copied_array(const void *array, size_t count, size_t item_size)
{
    size_t capacity = 1;
    while (capacity < count) {
        capacity *= 2;
    }
    void *copy = malloc(capacity * item_size);
    CHECK(copy != NULL);
    if (count > 0) {
        memcpy(copy, array, count * item_size);
    }
    return copy;
}

static void set_size(struct sim_disk *disk, struct sim_inode *inode, size_t size)
{
    if (size > inode->size) {
        unsigned char *data = realloc(inode->data, size);
        CHECK(data != NULL);
        inode->data = data;
    }
    disk->memory += size - inode->size;
    inode->size = size;
    CHECK(disk->memory <= disk->memory_max);
}

static void drop_old(struct sim_disk *disk, struct sim_inode *inode)
{
    disk->memory -= inode->old ? inode->old_size : 0;
    free(inode->old);
    inode->old = NULL;
}

/* ---- names: a set of entries, and changes to it ---- */

static uint32_t hash_name(uint32_t dir, const char *name)
{
    uint32_t hash = 2166136261U ^ dir; /* FNV-1a */
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    }
    return hash;
}

static uint32_t find(const struct sim_entry *entries, uint32_t count, uint32_t dir,
                     const char *name)
{
    uint32_t hash = hash_name(dir, name);
    for (uint32_t i = 0; i < count; i++) {
        const struct sim_entry *entry = &entries[i];
        if (entry->hash == hash && entry->dir == dir && strcmp(entry->name, name) == 0) {
            return i;
        }
    }
    return NONE;
}

static void put_name(struct sim_entry **entries, uint32_t *count, uint32_t dir, const char *name,
                     uint32_t inode)
{
    uint32_t at = find(*entries, *count, dir, name);
    if (at != NONE) {
        (*entries)[at].inode = inode;
        return;
    }
    *entries = grown(*entries, *count, sizeof **entries);
    (*entries)[(*count)++] = (struct sim_entry){
        .dir = dir, .inode = inode, .hash = hash_name(dir, name), .name = copied_text(name)};
}

static void drop_at(struct sim_entry *entries, uint32_t *count, uint32_t at)
{
    free(entries[at].name);
    entries[at] = entries[--*count];
}

/* Only while it leads to `inode`: an older change says nothing of a newer file's name. */
static void drop_name(struct sim_entry *entries, uint32_t *count, uint32_t dir, const char *name,
                      uint32_t inode)
{
    uint32_t at = find(entries, *count, dir, name);
    if (at != NONE && entries[at].inode == inode) {
        drop_at(entries, count, at);
    }
}

static void apply(struct sim_entry **entries, uint32_t *count, const struct sim_change *change)
{
    if (change->kind == CHANGE_UNLINK) {
        drop_name(*entries, count, change->dir, change->name, change->inode);
        return;
    }
    if (change->name_old) {
        drop_name(*entries, count, change->dir, change->name_old, change->inode);
    }
    put_name(entries, count, change->dir, change->name, change->inode);
}

static void free_change(struct sim_change *change)
{
    free(change->name);
    free(change->name_old);
}

static void count_links(struct sim_disk *disk)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        disk->inodes[i].links = 0;
    }
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        disk->inodes[disk->entries[i].inode].links++;
    }
    disk->inodes[ROOT].links = 1;
}

/* The program sees a change at once; the medium may. */
static void change_names(struct sim_disk *disk, enum change_kind kind, uint32_t dir, uint32_t inode,
                         const char *name, const char *name_old)
{
    disk->changes = grown(disk->changes, disk->change_count, sizeof *disk->changes);
    struct sim_change *change = &disk->changes[disk->change_count++];
    *change = (struct sim_change){.kind = kind,
                                  .dir = dir,
                                  .inode = inode,
                                  .name = copied_text(name),
                                  .name_old = copied_text(name_old)};
    apply(&disk->entries, &disk->entry_count, change);
    count_links(disk);
}

/* The changes in `dir` (NONE: in all) are on the medium now. */
static void settle(struct sim_disk *disk, uint32_t dir)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->change_count; i++) {
        struct sim_change *change = &disk->changes[i];
        if (dir != NONE && change->dir != dir) {
            disk->changes[kept++] = *change;
            continue;
        }
        apply(&disk->stable, &disk->stable_count, change);
        free_change(change);
    }
    disk->change_count = kept;
}

/* ---- files ---- */

static uint32_t new_inode(struct sim_disk *disk, bool is_dir)
{
    uint32_t at = 0;
    while (at < disk->inode_count && disk->inodes[at].used) {
        at++;
    }
    if (at == disk->inode_count) {
        disk->inodes = grown(disk->inodes, disk->inode_count, sizeof *disk->inodes);
        disk->inode_count++;
    }
    disk->inodes[at] = (struct sim_inode){.used = true, .is_dir = is_dir};
    return at;
}

static void free_inode(struct sim_disk *disk, struct sim_inode *inode)
{
    disk->memory -= inode->size;
    drop_old(disk, inode);
    free(inode->data);
    *inode = (struct sim_inode){0};
}

/* Frees what no name leads to: none that is seen, none that may come back after a cut. */
static void free_unreachable(struct sim_disk *disk)
{
    bool *reached = calloc(disk->inode_count, sizeof *reached);
    CHECK(reached != NULL);
    reached[ROOT] = true;
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        reached[disk->entries[i].inode] = true;
    }
    for (uint32_t i = 0; i < disk->stable_count; i++) {
        reached[disk->stable[i].inode] = true;
        reached[disk->stable[i].dir] = true; /* or its number could become another folder's */
    }
    for (uint32_t i = 0; i < disk->change_count; i++) {
        reached[disk->changes[i].inode] = true;
        reached[disk->changes[i].dir] = true;
    }
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        struct sim_inode *inode = &disk->inodes[i];
        if (inode->used && !reached[i] && inode->opens == 0) {
            free_inode(disk, inode);
        }
    }
    free(reached);
}

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

static void copy_end(char to[TRACE_PATH_SIZE], const char *path)
{
    size_t length = strlen(path);
    size_t skip = length >= TRACE_PATH_SIZE ? length - TRACE_PATH_SIZE + 1 : 0;
    memcpy(to, path + skip, length - skip + 1);
}

static int new_handle(struct sim_disk *disk, uint32_t inode, bool writes, const char *path)
{
    uint32_t at = 0;
    while (at < disk->handle_count && disk->handles[at].open) {
        at++;
    }
    if (at == disk->handle_count) {
        disk->handles = grown(disk->handles, disk->handle_count, sizeof *disk->handles);
        disk->handle_count++;
    }
    disk->handles[at] = (struct sim_handle){.open = true, .writes = writes, .inode = inode};
    copy_end(disk->handles[at].path, path);
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

static void trace(struct sim_disk *disk, uint64_t number, const char *verb, const char *path,
                  bool changes)
{
    disk->trace = grown(disk->trace, disk->trace_count, sizeof *disk->trace);
    struct sim_call *call = &disk->trace[disk->trace_count++];
    *call = (struct sim_call){.number = number, .verb = verb, .changes = changes};
    copy_end(call->path, path);
}

static tn_rc begin(struct sim_disk *disk, const char *verb, const char *path, bool changes,
                   struct tn_err *err)
{
    disk->calls++;
    trace(disk, disk->calls, verb, path, changes);
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

/* Where a path leads: `inode` is NONE when the last name isn't there (but its folder is). */
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
    *place = (struct place){.dir = ROOT, .inode = ROOT};
    if (path[0] == '/' && path[1] != 0) {
        return fail(err, TN_INVALID, verb, path, "not below the root");
    }
    const char *rest = path;
    char name[NAME_SIZE];
    while (next_name(&rest, name)) {
        if (strcmp(name, "..") == 0) {
            return fail(err, TN_INVALID, verb, path, "leads out of the root");
        }
        if (place->inode == NONE) {
            return fail(err, TN_ABSENT, verb, path, "no such folder");
        }
        if (!disk->inodes[place->inode].is_dir) {
            return fail(err, TN_IO, verb, path, "not a folder");
        }
        place->dir = place->inode;
        memcpy(place->name, name, sizeof name);
        uint32_t at = find(disk->entries, disk->entry_count, place->dir, name);
        place->inode = at == NONE ? NONE : disk->entries[at].inode;
    }
    return TN_OK;
}

/* A path that must lead to something. */
static tn_rc resolve_there(const struct sim_disk *disk, const char *verb, const char *path,
                           struct place *place, struct tn_err *err)
{
    tn_rc rc = resolve(disk, verb, path, place, err);
    if (rc == TN_OK && place->inode == NONE) {
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
    if (rc == TN_OK && place->inode != NONE) {
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
        *inode = new_inode(disk, false);
        change_names(disk, CHANGE_CREATE, place.dir, *inode, place.name, NULL);
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
    set_size(disk, inode, at + size);
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
    struct sim_handle *handle = handle_of(disk, file);
    const char *path = handle ? handle->path : "a file of before the reboot";
    tn_rc rc = begin(disk, "append", path, true, err);
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
            inode->old = copied(inode->data, inode->synced_size);
            inode->old_size = inode->synced_size;
            disk->memory += inode->old_size;
        }
        inode->synced_size = size;
    }
    set_size(disk, inode, size);
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
            settle(disk, number);
        }
    } else if (fails) {
        inode->spoiled = inode->spoiled || inode->synced_size < inode->size || inode->old;
    } else if (!inode->spoiled) {
        inode->synced_size = inode->size;
        drop_old(disk, inode);
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
        sync_one(disk, place.inode, fails);
    }
    if (disk->model == SIM_ORDERED && count > 0 && !fails) {
        settle(disk, NONE);
    }
    free_unreachable(disk);
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
    if (to.inode != NONE && !replaces) {
        return fail(err, TN_EXISTS, verb, path_new, "already there");
    }
    if (to.inode != NONE && disk->inodes[to.inode].is_dir) {
        return fail(err, TN_IO, verb, path_new, "a folder");
    }
    if (to.inode != from.inode) {
        change_names(disk, CHANGE_RENAME, from.dir, from.inode, to.name, from.name);
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
        change_names(disk, CHANGE_UNLINK, place.dir, place.inode, place.name, NULL);
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
    if (rc == TN_OK && place.inode == ROOT) {
        rc = fail(err, TN_IO, "remove_dir", path, "the root");
    } else if (rc == TN_OK && !is_empty(disk, place.inode)) {
        rc = fail(err, TN_EXISTS, "remove_dir", path, "something is in it");
    } else if (rc == TN_OK) {
        change_names(disk, CHANGE_UNLINK, place.dir, place.inode, place.name, NULL);
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
            free_change(change);
        } else {
            disk->changes[kept++] = *change;
        }
    }
    disk->change_count = kept;
}

static void make_one(struct sim_disk *disk, const struct place *place)
{
    uint32_t inode = new_inode(disk, true);
    put_name(&disk->entries, &disk->entry_count, place->dir, place->name, inode);
    if (disk->model == SIM_ORDERED) {
        settle(disk, NONE);
    }
    forget_changes(disk, place->dir, place->name);
    put_name(&disk->stable, &disk->stable_count, place->dir, place->name, inode);
    count_links(disk);
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
        if (place.inode == NONE && is_full(disk)) {
            return fail(err, TN_FULL, "make_dir", part, "no space left");
        }
        if (place.inode == NONE) {
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

static int by_hash(const void *a, const void *b)
{
    const struct sim_entry *left = a;
    const struct sim_entry *right = b;
    return (left->hash > right->hash) - (left->hash < right->hash);
}

/* From a copy, since `each` may change the folder. */
static tn_rc list_dir(struct sim_disk *disk, uint32_t dir, tn_io_name_fn *each, void *user,
                      struct tn_err *err)
{
    struct sim_entry *names = copied_array(disk->entries, disk->entry_count, sizeof *names);
    uint32_t count = 0;
    for (uint32_t i = 0; i < disk->entry_count; i++) {
        if (disk->entries[i].dir == dir) {
            names[count] = disk->entries[i];
            names[count++].name = copied_text(disk->entries[i].name);
        }
    }
    qsort(names, count, sizeof *names, by_hash);
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

static tn_rc lock_file(struct sim_disk *disk, const char *path, const char *who, uint32_t *number,
                       struct tn_err *err)
{
    struct place place;
    tn_rc rc = resolve(disk, "lock", path, &place, err);
    if (rc == TN_OK && place.inode == NONE) {
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
    uint32_t inode = NONE;
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
    .lock = sim_lock,
};

/* ---- reboot: what survives ---- */

/* Bytes [from, to) of what may survive: in whole blocks the new ones or the old ones, by coin. */
static void mix_blocks(const struct sim_inode *inode, unsigned char *data, size_t from, size_t to,
                       uint64_t *random)
{
    bool is_new = true;
    for (size_t i = from; i < to; i++) {
        if (i == from || i % BLOCK_SIZE == 0) {
            is_new = random_below(random, 2) == 0;
        }
        if (!is_new) {
            data[i] = inode->old && i < inode->old_size ? inode->old[i] : 0;
        }
    }
}

/* From some byte on, the rest of its block is zero. */
static void tear_block(unsigned char *data, size_t from, size_t to, uint64_t *random)
{
    size_t at = from + random_below(random, (uint32_t)(to - from));
    size_t end_of_block = (at / BLOCK_SIZE + 1) * BLOCK_SIZE;
    memset(data + at, 0, (end_of_block < to ? end_of_block : to) - at);
}

static void survive_as_on_medium(struct sim_disk *disk, struct sim_inode *inode)
{
    if (!inode->old) {
        set_size(disk, inode, inode->synced_size);
        return;
    }
    set_size(disk, inode, inode->old_size);
    memcpy(inode->data, inode->old, inode->old_size);
}

enum fate { FATE_NONE, FATE_ALL, FATE_PREFIX, FATE_ZEROES, FATE_TORN, FATE_BLOCKS, FATE_COUNT };

static void survive_in_part(struct sim_disk *disk, struct sim_inode *inode, enum fate fate,
                            uint64_t *random)
{
    size_t from = inode->synced_size;
    size_t to = inode->size;
    if (from == to) {
        return;
    }
    if (fate == FATE_PREFIX) {
        set_size(disk, inode, from + random_below(random, (uint32_t)(to - from)));
    } else if (fate == FATE_ZEROES) {
        memset(inode->data + from, 0, to - from);
    } else if (fate == FATE_TORN) {
        tear_block(inode->data, from, to, random);
    } else if (fate == FATE_BLOCKS) {
        mix_blocks(inode, inode->data, from, to, random);
    }
}

static void survive_bytes(struct sim_disk *disk, struct sim_inode *inode, uint64_t seed,
                          uint64_t *random)
{
    enum fate fate = (enum fate)random_below(random, FATE_COUNT);
    if (seed == SIM_SEED_NOTHING || (seed == SIM_SEED_ALL && inode->spoiled)) {
        fate = FATE_NONE;
    } else if (seed == SIM_SEED_ALL) {
        fate = FATE_ALL;
    }
    if (fate == FATE_NONE) {
        survive_as_on_medium(disk, inode);
    } else {
        survive_in_part(disk, inode, fate, random);
    }
    drop_old(disk, inode);
    inode->synced_size = inode->size;
    inode->spoiled = false;
}

static void survive_names(struct sim_disk *disk, uint64_t seed, uint64_t *random)
{
    uint32_t first_lost = random_below(random, disk->change_count + 1);
    for (uint32_t i = 0; i < disk->change_count; i++) {
        bool survives = disk->model == SIM_ORDERED ? i < first_lost : random_below(random, 2) == 0;
        survives = seed == SIM_SEED_ALL || (survives && seed != SIM_SEED_NOTHING);
        if (survives) {
            apply(&disk->stable, &disk->stable_count, &disk->changes[i]);
        }
        free_change(&disk->changes[i]);
    }
    disk->change_count = 0;
}

/* A folder that is gone takes with it what a lost unlink left in it; so does each folder below. */
static void drop_orphans(struct sim_disk *disk)
{
    bool *named = calloc(disk->inode_count, sizeof *named);
    CHECK(named != NULL);
    uint32_t count;
    do {
        count = disk->stable_count;
        memset(named, 0, disk->inode_count * sizeof *named);
        named[ROOT] = true;
        for (uint32_t i = 0; i < count; i++) {
            named[disk->stable[i].inode] = true;
        }
        for (uint32_t i = count; i > 0; i--) {
            if (!named[disk->stable[i - 1].dir]) {
                drop_at(disk->stable, &disk->stable_count, i - 1);
            }
        }
    } while (disk->stable_count < count);
    free(named);
}

static struct sim_entry *copied_entries(const struct sim_entry *entries, uint32_t count)
{
    struct sim_entry *copy = copied_array(entries, count, sizeof *copy);
    for (uint32_t i = 0; i < count; i++) {
        copy[i].name = copied_text(entries[i].name);
    }
    return copy;
}

static void free_entries(struct sim_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(entries[i].name);
    }
    free(entries);
}

static void forget_open_files(struct sim_disk *disk)
{
    disk->handle_count = 0;
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        disk->inodes[i].opens = 0;
        disk->inodes[i].locked = false;
    }
}

void sim_disk_reboot(struct sim_disk *disk, uint64_t seed)
{
    uint64_t random = seed;
    survive_names(disk, seed, &random);
    drop_orphans(disk);
    free_entries(disk->entries, disk->entry_count);
    disk->entries = copied_entries(disk->stable, disk->stable_count);
    disk->entry_count = disk->stable_count;
    forget_open_files(disk);
    count_links(disk);
    free_unreachable(disk);
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        if (disk->inodes[i].used && !disk->inodes[i].is_dir) {
            survive_bytes(disk, &disk->inodes[i], seed, &random);
        }
    }
    disk->boot++;
    disk->calls = 0;
    disk->syncs = 0;
    disk->cut_call = 0;
    disk->fail_call = 0;
    disk->ignored_sync = 0;
    disk->off = false;
    trace(disk, 0, "reboot", "", false);
}

/* ---- what a test sets up ---- */

void sim_disk_init(struct sim_disk *disk, size_t memory_max)
{
    *disk = (struct sim_disk){
        .io = {.vtable = &vtable},
        .capacity = UINT64_MAX,
        .memory_max = memory_max,
    };
    CHECK(new_inode(disk, true) == ROOT);
    disk->inodes[ROOT].links = 1;
}

void sim_disk_deinit(struct sim_disk *disk)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        free_inode(disk, &disk->inodes[i]);
    }
    CHECK(disk->memory == 0);
    for (uint32_t i = 0; i < disk->change_count; i++) {
        free_change(&disk->changes[i]);
    }
    free_entries(disk->entries, disk->entry_count);
    free_entries(disk->stable, disk->stable_count);
    free(disk->inodes);
    free(disk->changes);
    free(disk->handles);
    free(disk->trace);
    *disk = (struct sim_disk){0};
}

void sim_disk_clone(struct sim_disk *to, const struct sim_disk *from)
{
    *to = *from;
    to->entries = copied_entries(from->entries, from->entry_count);
    to->stable = copied_entries(from->stable, from->stable_count);
    to->inodes = copied_array(from->inodes, from->inode_count, sizeof *to->inodes);
    for (uint32_t i = 0; i < to->inode_count; i++) {
        struct sim_inode *inode = &to->inodes[i];
        inode->data = inode->data ? copied(inode->data, inode->size) : NULL;
        inode->old = inode->old ? copied(inode->old, inode->old_size) : NULL;
    }
    to->changes = copied_array(from->changes, from->change_count, sizeof *to->changes);
    for (uint32_t i = 0; i < to->change_count; i++) {
        to->changes[i].name = copied_text(to->changes[i].name);
        to->changes[i].name_old = copied_text(to->changes[i].name_old);
    }
    to->handles = copied_array(from->handles, from->handle_count, sizeof *to->handles);
    to->trace = NULL;
    to->trace_count = 0;
}

void sim_disk_cut_at(struct sim_disk *disk, uint64_t call)
{
    disk->cut_call = call;
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

bool sim_disk_call_changes(const struct sim_disk *disk, uint64_t call)
{
    CHECK(call >= 1 && call <= disk->calls && disk->calls <= disk->trace_count);
    return disk->trace[disk->trace_count - disk->calls + call - 1].changes;
}

void sim_disk_print_trace(const struct sim_disk *disk, FILE *out, uint64_t lines)
{
    uint64_t first = disk->trace_count > lines ? disk->trace_count - lines : 0;
    for (uint64_t i = first; i < disk->trace_count; i++) {
        const struct sim_call *call = &disk->trace[i];
        (void)fprintf(out, "%5" PRIu64 " %s %s: %s\n", call->number, call->verb, call->path,
                      tn_rc_text(call->rc));
    }
}
