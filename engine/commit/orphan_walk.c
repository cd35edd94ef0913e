#include "commit/orphan_private.h"
#include "file/names.h"
#include <stdio.h>

enum {
    NAME_SIZE = 256, /* NAME_MAX and a zero */
    BATCH = 64       /* names of one folder that are known at a time */
};

/* One folder on the way down: the next names in it, in order, and how its path ends. */
struct level {
    char names[BATCH][NAME_SIZE];
    uint32_t count;
    uint32_t at;
    char after[NAME_SIZE]; /* the last name of the batches before; "" for none */
    bool more;             /* behind this batch there are others */
    bool buckets;          /* else partitions */
    bool emptied;          /* something in it was removed */
    size_t path_size;
};

struct walk {
    struct tn_orphan_run *o;
    tn_orphan_folder_fn *each;
    struct level *levels; /* of partition columns, then of buckets */
    uint32_t depth;
    uint32_t at;
    char *path;
    size_t path_max;
};

static bool wanted(const struct level *level, const char *name)
{
    bool kind = level->buckets ? tn_name_begins(name, "bucket-") : strchr(name, '=') != NULL;
    return kind && strlen(name) < NAME_SIZE && strcmp(name, level->after) > 0;
}

/* Keeps the smallest names. */
static tn_rc keep_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct level *level = user;
    if (!is_dir || !wanted(level, name)) {
        return TN_OK;
    }
    uint32_t place = level->count;
    while (place > 0 && strcmp(level->names[place - 1], name) > 0) {
        place--;
    }
    level->more = level->more || level->count == BATCH;
    if (place == BATCH) {
        return TN_OK;
    }
    uint32_t moved = (level->count < BATCH ? level->count : BATCH - 1) - place;
    memmove(level->names[place + 1], level->names[place], (size_t)moved * NAME_SIZE);
    memcpy(level->names[place], name, strlen(name) + 1);
    level->count += level->count < BATCH;
    return TN_OK;
}

static tn_rc fill(struct walk *w, struct level *level, struct tn_err *err)
{
    struct tn_io *io = w->o->worker->io;
    level->count = 0;
    level->at = 0;
    level->more = false;
    tn_rc rc = io->vtable->list(io, w->path, keep_name, level, err);
    if (level->count > 0) {
        memcpy(level->after, level->names[level->count - 1], NAME_SIZE);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc enter(struct walk *w, uint32_t at, struct tn_err *err)
{
    struct level *level = &w->levels[at];
    w->at = at;
    level->buckets = at == w->depth;
    level->emptied = false;
    level->after[0] = 0;
    level->path_size = strlen(w->path);
    return fill(w, level, err);
}

static bool remove_empty(struct walk *w)
{
    struct tn_io *io = w->o->worker->io;
    struct tn_err ignored;
    bool gone = io->vtable->remove_dir(io, w->path, &ignored) == TN_OK;
    w->o->result->folders += gone;
    return gone;
}

static tn_rc visit(struct walk *w, struct tn_err *err)
{
    bool emptied = false;
    tn_rc rc = w->each(w->o, w->path, &emptied, err);
    if (rc == TN_OK && emptied && remove_empty(w)) {
        w->levels[w->at].emptied = true;
    }
    return rc;
}

/* Back to the folder above; false at the top. */
static bool leave(struct walk *w)
{
    bool emptied = w->levels[w->at].emptied;
    if (w->at == 0) {
        return false;
    }
    w->at--;
    if (emptied && remove_empty(w)) {
        w->levels[w->at].emptied = true;
    }
    w->path[w->levels[w->at].path_size] = 0;
    return true;
}

static tn_rc step(struct walk *w, bool *done, struct tn_err *err)
{
    struct level *level = &w->levels[w->at];
    if (level->at == level->count && level->more) {
        return fill(w, level, err);
    }
    if (level->at == level->count) {
        *done = !leave(w);
        return TN_OK;
    }
    const char *name = level->names[level->at++];
    size_t size = strlen(name);
    memcpy(w->path + level->path_size, name, size);
    memcpy(w->path + level->path_size + size, "/", 2);
    if (w->at < w->depth) {
        return enter(w, w->at + 1, err);
    }
    tn_rc rc = visit(w, err);
    w->path[level->path_size] = 0;
    return rc;
}

static tn_rc walk_buckets(struct walk *w, struct tn_err *err)
{
    struct tn_arena *arena = &w->o->worker->arena;
    const struct tn_orphan_spec *spec = w->o->spec;
    size_t head = strlen(spec->root) + strlen(spec->options->path_directory) + 2;
    bool done = false;
    void *levels;
    void *path;
    w->depth = spec->schema->partition_keys.count;
    w->path_max = head + (w->depth + 1) * NAME_SIZE;
    tn_rc rc = tn_arena_need(arena, (w->depth + 1) * sizeof *w->levels, "folders", &levels, err);
    rc = rc == TN_OK ? tn_arena_need(arena, w->path_max, "a path", &path, err) : rc;
    if (rc != TN_OK) {
        return rc;
    }
    w->levels = levels;
    w->path = path;
    (void)snprintf(w->path, head, "%s/%s", spec->root, spec->options->path_directory);
    rc = enter(w, 0, err);
    while (rc == TN_OK && !done) {
        rc = step(w, &done, err);
    }
    return rc;
}

tn_rc tn_orphan_walk(struct tn_orphan_run *o, tn_orphan_folder_fn *each, struct tn_err *err)
{
    static const char *const folders[] = {TN_DIR_MANIFEST, TN_DIR_INDEX, TN_DIR_STATISTICS};
    struct tn_arena *arena = &o->worker->arena;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof folders / sizeof folders[0]; i++) {
        bool kept;
        const char *dir = tn_name_in(arena, o->spec->root, folders[i], "");
        rc = dir ? each(o, dir, &kept, err) : tn_orphan_no_room(err);
    }
    struct walk walk = {.o = o, .each = each};
    rc = rc == TN_OK ? walk_buckets(&walk, err) : rc;
    tn_arena_reset(arena, mark);
    return rc;
}
