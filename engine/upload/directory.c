#include "upload/directory.h"

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
static tn_rc draft_of(const char *path, char draft[TN_DIRECTORY_PATH_MAX], struct tn_err *err)
{
    size_t size = folder_size(path);
    int length =
        snprintf(draft, TN_DIRECTORY_PATH_MAX, "%.*s.%s.tmp", (int)size, path, path + size);
    return length > 0 && length < TN_DIRECTORY_PATH_MAX
               ? TN_OK
               : tn_err_set(err, TN_UNSUPPORTED, 0, "%s: a path of more than %d bytes", path,
                            TN_DIRECTORY_PATH_MAX - 8);
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
    tn_rc rc = name_drafts(d, err);
    if (rc == TN_OK) {
        rc = sync_folders(d, err);
    }
    return checked(target, rc, err);
}

/* ---- questions ---- */

/* What is found may have got its name just before a kill, so it counts for the next barrier. */
static tn_rc find(struct tn_target *target, const char *path, uint64_t *size, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = d->io->vtable->stat(d->io, path, size, err);
    if (rc == TN_ABSENT) {
        return rc;
    }
    if (rc == TN_OK && strlen(path) < TN_DIRECTORY_PATH_MAX) {
        rc = note_folder(d, path, err);
    }
    return checked(target, rc, err);
}

static tn_rc read_small(struct tn_target *target, const char *path, size_t size_max,
                        struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    tn_rc rc = tn_io_read_all(of(target)->io, path, size_max, arena, bytes, err);
    return rc == TN_ABSENT ? rc : checked(target, rc, err);
}

static tn_rc list(struct tn_target *target, const char *path, tn_io_name_fn *each, void *user,
                  struct tn_err *err)
{
    struct tn_io *io = of(target)->io;
    tn_rc rc = io->vtable->list(io, path, each, user, err);
    return rc == TN_ABSENT ? rc : checked(target, rc, err);
}

/* ---- files ---- */

static void drop(struct tn_directory *d)
{
    struct tn_err ignored;
    if (d->file >= 0) {
        d->io->vtable->close(d->io, d->file);
        d->file = -1;
        (void)d->io->vtable->unlink(d->io, d->draft, &ignored);
    }
}

static void abort_file(struct tn_target *target)
{
    drop(of(target));
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

static tn_rc begin(struct tn_target *target, const char *path, uint64_t size, struct tn_err *err)
{
    (void)size;
    struct tn_directory *d = of(target);
    tn_rc rc = draft_of(path, d->draft, err);
    if (rc == TN_OK) {
        (void)snprintf(d->path, sizeof d->path, "%s", path);
        rc = has_path(&d->drafts, d->draft) ? name_drafts(d, err) : TN_OK;
    }
    if (rc == TN_OK) {
        rc = create_draft(d, err);
    }
    return checked(target, rc, err);
}

static tn_rc append(struct tn_target *target, struct tn_bytes bytes, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    tn_rc rc = d->io->vtable->append(d->io, d->file, bytes, err);
    if (rc != TN_OK) {
        drop(d);
    }
    return checked(target, rc, err);
}

static tn_rc finish(struct tn_target *target, struct tn_err *err)
{
    struct tn_directory *d = of(target);
    d->io->vtable->close(d->io, d->file);
    d->file = -1;
    tn_rc rc = TN_OK;
    bool full = d->drafts.texts.capacity - d->drafts.texts.size < TN_DIRECTORY_PATH_MAX;
    if (full || d->drafts.count == TN_DIRECTORY_BATCH) {
        rc = name_drafts(d, err);
    }
    if (rc == TN_OK) { /* a final is shorter than its draft, so it fits, too */
        bool added = add_path(&d->drafts, d->draft) && add_path(&d->finals, d->path);
        (void)added;
    }
    return checked(target, rc, err);
}

/* ---- small files ---- */

/* Nobody else writes to the mirror, so a draft that is there is one that a kill has left. */
static tn_rc clear_way(struct tn_directory *d, const char *path, char folder[TN_DIRECTORY_PATH_MAX],
                       struct tn_err *err)
{
    struct tn_err ignored;
    tn_rc rc = draft_of(path, d->draft, err);
    if (rc == TN_OK) {
        folder_of(path, folder);
        rc = d->io->vtable->make_dir(d->io, folder, err);
    }
    if (rc == TN_OK) {
        (void)d->io->vtable->unlink(d->io, d->draft, &ignored);
    }
    return rc;
}

static tn_rc publish(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    struct tn_directory *d = of(target);
    char folder[TN_DIRECTORY_PATH_MAX];
    tn_rc rc = clear_way(d, path, folder, err);
    if (rc == TN_OK) {
        struct tn_publish_spec spec = {
            .bytes = bytes, .draft = d->draft, .final = path, .dir = folder};
        rc = tn_publish(d->io, &spec, err);
    }
    if (rc != TN_OK) {
        err->code = rc; /* the text is the disk's; CONFLICT and "nobody knows" are tn_publish's */
    }
    return checked(target, rc, err);
}

static tn_rc replace(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err)
{
    struct tn_directory *d = of(target);
    char folder[TN_DIRECTORY_PATH_MAX];
    tn_rc rc = clear_way(d, path, folder, err);
    if (rc == TN_OK) {
        rc = tn_io_write_new(d->io, d->draft, bytes, err);
    }
    if (rc == TN_OK) {
        rc = d->io->vtable->replace(d->io, d->draft, path, err);
    }
    return checked(target, rc, err);
}

static const struct tn_target_vtable vtable = {
    .stat = find,
    .read = read_small,
    .list = list,
    .begin = begin,
    .append = append,
    .finish = finish,
    .abort = abort_file,
    .settle = settle,
    .publish = publish,
    .replace = replace,
};

tn_rc tn_directory_init(struct tn_directory *directory, struct tn_io *io, const char *name,
                        struct tn_arena *arena, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, 3 * TEXTS_SIZE, "the target's names", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    unsigned char *at = memory;
    *directory = (struct tn_directory){.target = {&vtable, name}, .io = io, .file = -1};
    tn_buf_init(&directory->drafts.texts, at, TEXTS_SIZE);
    tn_buf_init(&directory->finals.texts, at + TEXTS_SIZE, TEXTS_SIZE);
    tn_buf_init(&directory->folders.texts, at + TEXTS_SIZE + TEXTS_SIZE, TEXTS_SIZE);
    return TN_OK;
}
