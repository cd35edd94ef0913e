#include "upload/directory.h"

#include <inttypes.h>
#include <stdio.h>

#include "commit/publish.h"

enum { TEXTS_SIZE = 8 * 1024 };

static struct tn_directory *of(struct tn_target *target)
{
    return (struct tn_directory *)target;
}

/* Says whose error it is. ABSENT would be taken for a file that the source has lost. */
static tn_rc fail(const struct tn_target *target, struct tn_err *err)
{
    if (err->code == TN_ABSENT) {
        err->code = TN_IO;
    }
    return tn_err_in(err, "%s", target->name);
}

static tn_rc checked(const struct tn_target *target, tn_rc rc, struct tn_err *err)
{
    return rc == TN_OK ? rc : fail(target, err);
}

static tn_rc stopped(const struct tn_target *target, struct tn_err *err)
{
    return target->stop && atomic_load(target->stop) ? tn_err_set(err, TN_CANCELED, 0, "stopped")
                                                     : TN_OK;
}

/* ---- paths ---- */

static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The folder of a path, with its final '/'. */
static void folder_of(const char *path, char folder[TN_DIRECTORY_PATH_MAX])
{
    size_t size = folder_size(path);
    memcpy(folder, path, size);
    folder[size] = 0;
}

/* "a/b/.c.tmp" for "a/b/c". */
static tn_rc name_draft(struct tn_directory *d, const char *path, struct tn_err *err)
{
    size_t size = folder_size(path);
    int length =
        snprintf(d->draft, sizeof d->draft, "%.*s.%s%s.tmp", (int)size, path, path + size, d->mark);
    return length > 0 && length < TN_DIRECTORY_PATH_MAX
               ? TN_OK
               : tn_err_set(err, TN_UNSUPPORTED, 0, "%s: a path of more than %d bytes", path,
                            TN_DIRECTORY_PATH_MAX - TN_UUID_SIZE - 8);
}

static bool add_path(struct tn_path_list *list, const char *path)
{
    size_t size = strlen(path) + 1;
    if (list->count == TN_DIRECTORY_BATCH || list->texts.capacity - list->texts.size < size) {
        return false;
    }
    list->items[list->count++] = (const char *)list->texts.data + list->texts.size;
    tn_buf_append(&list->texts, path, size);
    return true;
}

static void clear(struct tn_path_list *list)
{
    list->count = 0;
    list->texts.size = 0;
}

/* ---- barriers ---- */

static tn_rc sync_folders(struct tn_directory *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (d->folders.count > 0) {
        rc = d->io->vtable->sync(d->io, d->folders.items, d->folders.count, err);
        clear(&d->folders);
    }
    return rc;
}

static bool has_path(const struct tn_path_list *list, const char *path)
{
    for (uint32_t i = list->count; i-- > 0;) {
        if (strcmp(list->items[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* The folder of `path` has a name in it that isn't known to be durable. */
static tn_rc note_folder(struct tn_directory *d, const char *path, struct tn_err *err)
{
    char folder[TN_DIRECTORY_PATH_MAX];
    folder_of(path, folder);
    if (has_path(&d->folders, folder) || add_path(&d->folders, folder)) {
        return TN_OK;
    }
    tn_rc rc = sync_folders(d, err);
    bool added = rc == TN_OK && add_path(&d->folders, folder);
    (void)added; /* one path fits an empty list */
    return rc;
}

/* Synced drafts become files. */
static tn_rc name_drafts(struct tn_directory *d, struct tn_err *err)
{
    if (d->drafts.count == 0) {
        return TN_OK;
    }
    tn_rc rc = d->io->vtable->sync(d->io, d->drafts.items, d->drafts.count, err);
    for (uint32_t i = 0; rc == TN_OK && i < d->drafts.count; i++) {
        rc = d->io->vtable->replace(d->io, d->drafts.items[i], d->finals.items[i], err);
        if (rc == TN_OK) {
            rc = note_folder(d, d->finals.items[i], err);
        }
    }
    clear(&d->drafts);
    clear(&d->finals);
    return rc;
}

static tn_rc settle(struct tn_target *target, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = name_drafts(d, err);
    }
    if (rc == TN_OK) {
        rc = sync_folders(d, err);
    }
    return checked(target, rc, err);
}

/* ---- questions ---- */

/* What is found may have got its name just before a kill, so it counts for the next barrier. */
static tn_rc note_found(struct tn_directory *d, const char *path, struct tn_err *err)
{
    return strlen(path) < TN_DIRECTORY_PATH_MAX ? note_folder(d, path, err) : TN_OK;
}

static tn_rc find(struct tn_target *target, const char *path, uint64_t *size, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = d->io->vtable->stat(d->io, path, size, err);
    }
    if (rc == TN_OK) {
        rc = note_found(d, path, err);
    }
    return rc == TN_ABSENT ? rc : checked(target, rc, err);
}

static tn_rc modified(struct tn_target *target, const char *path, int64_t *ms, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = d->io->vtable->modified(d->io, path, ms, err);
    }
    if (rc == TN_OK) {
        rc = note_found(d, path, err);
    }
    return rc == TN_ABSENT ? rc : checked(target, rc, err);
}

static tn_rc read_small(struct tn_target *target, const char *path, size_t size_max,
                        struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = tn_io_read_all(of(target)->io, path, size_max, arena, bytes, err);
    }
    if (rc == TN_OK) {
        target->counts.bytes_received += bytes->size;
        rc = note_found(of(target), path, err);
    }
    return rc == TN_ABSENT ? rc : checked(target, rc, err);
}

/* One piece from `at` on; *size is less than a piece at the end. */
static tn_rc fetch_piece(struct tn_directory *d, int from, uint64_t at, struct tn_io *to, int file,
                         size_t *size, struct tn_err *err)
{
    tn_rc rc = stopped(&d->target, err);
    if (rc == TN_OK) {
        rc = d->io->vtable->read(d->io, from, at, d->copy, TN_DIRECTORY_COPY_SIZE, size, err);
    }
    if (rc != TN_OK) {
        return checked(&d->target, rc, err);
    }
    d->target.counts.bytes_received += *size;
    return *size > 0 ? to->vtable->append(to, file, (struct tn_bytes){d->copy, *size}, err) : TN_OK;
}

static tn_rc fetch(struct tn_target *target, const char *path, uint64_t first, struct tn_io *to,
                   int file, uint64_t *got, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    int from;
    uint64_t whole;
    size_t size = TN_DIRECTORY_COPY_SIZE;
    *got = 0;
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = d->io->vtable->open(d->io, path, &from, &whole, err);
    }
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? rc : checked(target, rc, err);
    }
    rc = note_found(d, path, err);
    rc = checked(target, rc, err);
    while (rc == TN_OK && size == TN_DIRECTORY_COPY_SIZE) {
        rc = fetch_piece(d, from, first + *got, to, file, &size, err);
        *got += rc == TN_OK ? size : 0;
    }
    d->io->vtable->close(d->io, from);
    return rc;
}

static tn_rc list(struct tn_target *target, const char *path, tn_io_name_fn *each, void *user,
                  struct tn_err *err)
{
    struct tn_io *io = of(target)->io;
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = io->vtable->list(io, path, each, user, err);
    }
    return rc == TN_ABSENT ? rc : checked(target, rc, err);
}

/* ---- files ---- */

static void close_draft(struct tn_directory *d)
{
    d->io->vtable->close(d->io, d->file);
    d->file = -1;
}

static void drop(struct tn_target *target)
{
    struct tn_directory *d = of(target);
    struct tn_err ignored;
    for (uint32_t i = 0; i < d->drafts.count; i++) {
        (void)d->io->vtable->unlink(d->io, d->drafts.items[i], &ignored);
    }
    clear(&d->drafts);
    clear(&d->finals);
}

/* The draft of a try before is in the way, or the folder is missing: each is put right once. */
static tn_rc create_draft(struct tn_directory *d, struct tn_err *err)
{
    tn_rc rc = d->io->vtable->create(d->io, d->draft, &d->file, err);
    if (rc == TN_ABSENT) {
        char folder[TN_DIRECTORY_PATH_MAX];
        folder_of(d->draft, folder);
        rc = d->io->vtable->make_dir(d->io, folder, err);
    } else if (rc == TN_EXISTS) {
        rc = d->io->vtable->unlink(d->io, d->draft, err);
    } else {
        return rc;
    }
    return rc == TN_OK ? d->io->vtable->create(d->io, d->draft, &d->file, err) : rc;
}

/* A full list makes room by a barrier. */
static tn_rc begin(struct tn_directory *d, const char *path, struct tn_err *err)
{
    tn_rc rc = name_draft(d, path, err);
    if (rc == TN_OK && (d->drafts.count == TN_DIRECTORY_BATCH ||
                        d->drafts.texts.capacity - d->drafts.texts.size < TN_DIRECTORY_PATH_MAX ||
                        has_path(&d->drafts, d->draft))) {
        rc = name_drafts(d, err);
    }
    if (rc == TN_OK) {
        rc = create_draft(d, err);
    }
    return checked(&d->target, rc, err);
}

/* The source's bytes from `at` into the copy buffer, all that were asked for. */
static tn_rc read_part(struct tn_directory *d, struct tn_io *from, int file, uint64_t at,
                       size_t want, struct tn_err *err)
{
    size_t got;
    tn_rc rc = from->vtable->read(from, file, at, d->copy, want, &got, err);
    return rc == TN_OK && got < want
               ? tn_err_set(err, TN_CORRUPT, 0, "it ends after %" PRIu64 " bytes", at + got)
               : rc;
}

static tn_rc copy_part(struct tn_directory *d, size_t size, struct tn_err *err)
{
    tn_rc rc = stopped(&d->target, err);
    if (rc == TN_OK) {
        rc = d->io->vtable->append(d->io, d->file, (struct tn_bytes){d->copy, size}, err);
    }
    d->target.counts.bytes_sent += rc == TN_OK ? size : 0;
    return checked(&d->target, rc, err);
}

static tn_rc copy(struct tn_directory *d, struct tn_io *from, int file, const char *path,
                  uint64_t size, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint64_t at = 0; rc == TN_OK && at < size;) {
        uint64_t rest = size - at;
        size_t want = rest < TN_DIRECTORY_COPY_SIZE ? (size_t)rest : TN_DIRECTORY_COPY_SIZE;
        rc = read_part(d, from, file, at, want, err);
        if (rc != TN_OK) {
            return tn_err_in(err, "%s", path);
        }
        rc = copy_part(d, want, err);
        at += want;
    }
    return rc;
}

/* What became of the draft. */
static void end_draft(struct tn_directory *d, const char *path, tn_rc rc)
{
    struct tn_err ignored;
    close_draft(d);
    if (rc == TN_OK) { /* `begin` has seen to the room, and a final is shorter than its draft */
        bool added = add_path(&d->drafts, d->draft) && add_path(&d->finals, path);
        (void)added;
    } else {
        (void)d->io->vtable->unlink(d->io, d->draft, &ignored);
    }
}

static tn_rc write_draft(struct tn_directory *d, struct tn_io *from, int file, const char *path,
                         uint64_t size, struct tn_err *err)
{
    tn_rc rc = begin(d, path, err);
    if (rc == TN_OK) {
        rc = copy(d, from, file, path, size, err);
        end_draft(d, path, rc);
    }
    return rc;
}

static tn_rc other_size(const char *path, uint64_t found, uint64_t size, struct tn_err *err)
{
    return tn_err_set(err, TN_CORRUPT, 0, "%s: %" PRIu64 " bytes, not %" PRIu64, path, found, size);
}

static tn_rc send_new(struct tn_directory *d, struct tn_io *from, const char *path, uint64_t size,
                      struct tn_err *err)
{
    int file;
    uint64_t found;
    tn_rc rc = from->vtable->open(from, path, &file, &found, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = found == size ? write_draft(d, from, file, path, size, err)
                       : other_size(path, found, size, err);
    from->vtable->close(from, file);
    return rc;
}

/* One that is there must have the size that it should have. */
static tn_rc find_same(struct tn_target *target, const char *path, uint64_t size,
                       struct tn_err *err)
{
    uint64_t there = 0; /* for the analyzer, which does not see that `find` sets it */
    tn_rc rc = find(target, path, &there, err);
    return rc == TN_OK && there != size
               ? checked(target,
                         tn_err_set(err, TN_CONFLICT, 0,
                                    "%s has %" PRIu64 " bytes there and %" PRIu64 " here", path,
                                    there, size),
                         err)
               : rc;
}

static tn_rc send(struct tn_target *target, struct tn_io *from, const char *path, uint64_t size,
                  struct tn_err *err)
{
    tn_rc rc = find_same(target, path, size, err);
    return rc == TN_ABSENT ? send_new(of(target), from, path, size, err) : rc;
}

static tn_rc fetch_draft(struct tn_directory *d, struct tn_target *from, const char *path,
                         int64_t size, uint64_t *brought, struct tn_err *err)
{
    tn_rc rc = begin(d, path, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = from->vtable->fetch(from, path, 0, d->io, d->file, brought, err);
    if (rc == TN_OK && size >= 0 && *brought != (uint64_t)size) {
        (void)other_size(path, *brought, (uint64_t)size, err);
        rc = tn_err_in(err, "%s", from->name);
    }
    end_draft(d, path, rc);
    return rc;
}

tn_rc tn_directory_bring(struct tn_directory *directory, struct tn_target *from, const char *path,
                         int64_t size, uint64_t *brought, struct tn_err *err)
{
    struct tn_target *target = &directory->target;
    uint64_t there;
    *brought = 0;
    tn_rc rc =
        size < 0 ? find(target, path, &there, err) : find_same(target, path, (uint64_t)size, err);
    return rc == TN_ABSENT ? fetch_draft(directory, from, path, size, brought, err) : rc;
}

/* ---- small files ---- */

/* Drafts are nobody else's, so one that is there is what a kill has left. */
static tn_rc clear_way(struct tn_directory *d, const char *path, char folder[TN_DIRECTORY_PATH_MAX],
                       struct tn_err *err)
{
    struct tn_err ignored;
    tn_rc rc = name_draft(d, path, err);
    if (rc == TN_OK) {
        folder_of(path, folder);
        rc = d->io->vtable->make_dir(d->io, folder, err);
    }
    if (rc == TN_OK) {
        (void)d->io->vtable->unlink(d->io, d->draft, &ignored);
    }
    return rc;
}

/* CONFLICT: the file has other bytes than these; ABSENT: it isn't there. */
static tn_rc compare(struct tn_directory *d, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    int file;
    uint64_t size;
    tn_rc rc = d->io->vtable->open(d->io, path, &file, &size, err);
    if (rc != TN_OK) {
        return rc;
    }
    bool same = size == bytes.size;
    for (size_t at = 0; rc == TN_OK && same && at < bytes.size;) {
        size_t rest = bytes.size - at;
        size_t want = rest < TN_DIRECTORY_COPY_SIZE ? rest : TN_DIRECTORY_COPY_SIZE;
        size_t got;
        rc = d->io->vtable->read(d->io, file, at, d->copy, want, &got, err);
        same = rc == TN_OK && got == want && memcmp(d->copy, bytes.data + at, want) == 0;
        at += want;
    }
    d->io->vtable->close(d->io, file);
    return rc != TN_OK || same ? rc : tn_err_set(err, TN_CONFLICT, 0, "%s has other content", path);
}

/* What is there already may have got its name just before a kill. */
static tn_rc sync_folder(struct tn_directory *d, const char *path, struct tn_err *err)
{
    char folder[TN_DIRECTORY_PATH_MAX];
    const char *dir[] = {folder};
    folder_of(path, folder);
    return d->io->vtable->sync(d->io, dir, 1, err);
}

static tn_rc publish_new(struct tn_directory *d, const char *path, struct tn_bytes bytes,
                         struct tn_err *err)
{
    char folder[TN_DIRECTORY_PATH_MAX];
    tn_rc rc = clear_way(d, path, folder, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_publish_spec spec = {.bytes = bytes, .draft = d->draft, .final = path, .dir = folder};
    rc = tn_publish(d->io, &spec, err);
    if (rc != TN_OK) {
        err->code = rc; /* the text is the disk's; CONFLICT and "nobody knows" are tn_publish's */
    }
    d->target.counts.bytes_sent += rc == TN_OK ? bytes.size : 0;
    return rc;
}

static tn_rc publish(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = publish_new(d, path, bytes, err);
    }
    if (rc == TN_CONFLICT) {
        rc = compare(d, path, bytes, err);
        rc = rc == TN_OK ? sync_folder(d, path, err) : rc;
    }
    return checked(target, rc, err);
}

static tn_rc replace_file(struct tn_directory *d, const char *path, struct tn_bytes bytes,
                          struct tn_err *err)
{
    tn_rc rc = name_draft(d, path, err);
    if (rc == TN_OK) {
        rc = tn_publish_over(d->io, d->draft, path, bytes, err);
    }
    d->target.counts.bytes_sent += rc == TN_OK ? bytes.size : 0;
    return rc == TN_OK ? note_found(d, path, err) : rc;
}

static tn_rc replace(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    struct tn_directory *d = of(target);
    char folder[TN_DIRECTORY_PATH_MAX];
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        folder_of(path, folder);
        rc = d->io->vtable->make_dir(d->io, folder, err);
    }
    if (rc == TN_OK) {
        rc = replace_file(d, path, bytes, err);
    }
    return checked(target, rc, err);
}

static tn_rc swap_known(struct tn_directory *d, const char *path, struct tn_bytes was,
                        struct tn_bytes bytes, struct tn_err *err)
{
    tn_rc rc = compare(d, path, was, err);
    if (rc == TN_OK) {
        rc = replace_file(d, path, bytes, err);
    }
    return rc == TN_OK ? sync_folder(d, path, err) : rc;
}

static tn_rc swap(struct tn_target *target, const char *path, struct tn_bytes was,
                  struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    struct tn_err other;
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = was.data ? swap_known(d, path, was, bytes, err) : publish_new(d, path, bytes, err);
    }
    if (rc == TN_CONFLICT && compare(d, path, bytes, &other) == TN_OK) {
        rc = sync_folder(d, path, err);
    }
    if (rc == TN_ABSENT) {
        rc = tn_err_set(err, TN_CONFLICT, 0, "%s is gone", path);
    }
    return checked(target, rc, err);
}

static tn_rc remove_file(struct tn_target *target, const char *path, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = stopped(target, err);
    if (rc == TN_OK) {
        rc = d->io->vtable->unlink(d->io, path, err);
    }
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    return checked(target, rc == TN_OK ? note_found(d, path, err) : rc, err);
}

/* One after the other: names are given by the file system, which knows one way to do it. */
static tn_rc race(struct tn_target *target, struct tn_target_race *race, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = stopped(target, err);
    race->ran = race->won = 0;
    for (; rc == TN_OK && race->ran < race->count; race->ran++) {
        rc = publish_new(d, race->path, race->bytes[race->ran], err);
        if (rc == TN_OK) {
            race->won++;
            race->winner = race->ran;
        }
        rc = rc == TN_CONFLICT ? TN_OK : rc;
    }
    return checked(target, rc, err);
}

static const struct tn_target_vtable vtable = {
    .stat = find,
    .modified = modified,
    .read = read_small,
    .fetch = fetch,
    .list = list,
    .send = send,
    .settle = settle,
    .drop = drop,
    .publish = publish,
    .replace = replace,
    .swap = swap,
    .remove = remove_file,
    .race = race,
};

tn_rc tn_directory_init(struct tn_directory *directory, struct tn_io *io, const char *name,
                        struct tn_arena *arena, struct tn_err *err)
{
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, 3 * TEXTS_SIZE + TN_DIRECTORY_COPY_SIZE, "the target", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    unsigned char *at = memory;
    memset(directory, 0, sizeof *directory);
    directory->target.vtable = &vtable;
    directory->target.name = name;
    directory->io = io;
    directory->file = -1;
    directory->copy = at;
    at += TN_DIRECTORY_COPY_SIZE;
    tn_buf_init(&directory->drafts.texts, at, TEXTS_SIZE);
    tn_buf_init(&directory->finals.texts, at + TEXTS_SIZE, TEXTS_SIZE);
    tn_buf_init(&directory->folders.texts, at + TEXTS_SIZE + TEXTS_SIZE, TEXTS_SIZE);
    return TN_OK;
}

void tn_directory_share(struct tn_directory *directory, struct tn_clock *clock)
{
    directory->mark[0] = '.';
    tn_clock_uuid(clock, directory->mark + 1);
}
