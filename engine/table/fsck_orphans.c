#include "file/names.h"
#include "table/fsck_private.h"

/* A folder that still has to be listed. */
struct folder {
    struct folder *next;
    char path[]; /* below the table, "dt=1/bucket-0/"; "" is the table */
};

struct walk {
    struct tn_fsck *f;
    struct folder *todo;
    const char *at; /* the folder that is being listed */
};

static tn_rc push(struct walk *w, const char *path, const char *name, struct tn_err *err)
{
    size_t a = strlen(path);
    size_t b = strlen(name);
    size_t size = sizeof(struct folder) + a + b + 2;
    struct folder *folder = tn_heap_take(w->f->spec->heap, size);
    if (!folder) {
        return tn_fsck_stop(w->f,
                            tn_err_set(err, TN_AGAIN, 0, "fsck: no room for the name of a folder"));
    }
    memcpy(folder->path, path, a);
    memcpy(folder->path + a, name, b);
    memcpy(folder->path + a + b, b > 0 ? "/" : "", b > 0 ? 2 : 1);
    folder->next = w->todo;
    w->todo = folder;
    return TN_OK;
}

/* Consumers are nobody's; a branch has its own check, and its own orphans are not looked for. */
static bool skipped(const struct walk *w, const char *name)
{
    return w->at[0] == 0 && (strcmp(name, "consumer") == 0 || strcmp(name, "branch") == 0 ||
                             strcmp(name, "service") == 0);
}

static tn_rc check_file(struct walk *w, const char *name, struct tn_err *err)
{
    struct tn_fsck *f = w->f;
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_arena_format(arena, "%s/%s%s", f->root, w->at, name);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    tn_rc rc = tn_fsck_seen(f, TN_FSCK_PATH, tn_hash_128(tn_bytes_of(path)))
                   ? TN_OK
                   : tn_fsck_problem(f, err, path, "not referenced");
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc visit(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct walk *w = user;
    if (!is_dir) {
        return check_file(w, name, err);
    }
    return skipped(w, name) ? TN_OK : push(w, w->at, name, err);
}

static tn_rc list(struct walk *w, const struct folder *folder, struct tn_err *err)
{
    struct tn_fsck *f = w->f;
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_arena_format(arena, "%s/%s", f->root, folder->path);
    w->at = folder->path;
    tn_rc rc = path ? f->io->vtable->list(f->io, path, visit, w, err) : tn_fsck_no_path(f, err);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc; /* removed meanwhile */
}

tn_rc tn_fsck_orphans(struct tn_fsck *f, struct tn_err *err)
{
    struct walk w = {.f = f};
    tn_rc rc = push(&w, "", "", err);
    while (w.todo) {
        struct folder *folder = w.todo;
        w.todo = folder->next;
        rc = rc == TN_OK ? list(&w, folder, err) : rc;
        tn_heap_give(f->spec->heap, folder);
    }
    return tn_fsck_stop(f, rc);
}
