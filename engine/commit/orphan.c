#include "commit/orphan_private.h"

#include "file/names.h"

enum {
    READ_RESERVE =
        640 * 1024, /* what streaming manifests and walking folders takes beside the sets */
    BITS_MAX = 40
};

/* ---- folders ---- */

tn_rc tn_orphan_list(struct tn_orphan_run *o, const char *home, const char *folder,
                     tn_io_name_fn *each, void *user, struct tn_err *err)
{
    struct tn_io *io = o->worker->io;
    struct tn_arena *arena = &o->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, home, folder, "");
    tn_rc rc = path ? io->vtable->list(io, path, each, user, err) : tn_orphan_no_room(err);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

struct branches {
    struct tn_orphan_run *o;
    tn_orphan_home_fn *each;
};

static tn_rc visit_branch(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct branches *b = user;
    struct tn_arena *arena = &b->o->worker->arena;
    if (!is_dir || !tn_name_begins(name, "branch-")) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *home = tn_name_in(arena, b->o->spec->root, TN_DIR_BRANCH, name);
    tn_rc rc = home ? b->each(b->o, home, err) : tn_orphan_no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_orphan_each_home(struct tn_orphan_run *o, tn_orphan_home_fn *each, struct tn_err *err)
{
    struct branches branches = {o, each};
    tn_rc rc = each(o, o->spec->root, err);
    return rc == TN_OK
               ? tn_orphan_list(o, o->spec->root, TN_DIR_BRANCH, visit_branch, &branches, err)
               : rc;
}

static tn_rc note_schema(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    bool *found = user;
    *found = *found || (!is_dir && tn_name_number(name, "schema-") >= 0);
    return TN_OK;
}

/* A branch that is half made or half dropped may be about to need files. */
static tn_rc check_home(struct tn_orphan_run *o, const char *home, struct tn_err *err)
{
    bool found = false;
    tn_rc rc = tn_orphan_list(o, home, TN_DIR_SCHEMA, note_schema, &found, err);
    return rc != TN_OK || found
               ? rc
               : tn_err_set(err, TN_CORRUPT, 0, "%s has no schema: nothing is removed", home);
}

/* ---- files ---- */

static tn_rc is_old(struct tn_orphan_run *o, const char *path, bool *old, struct tn_err *err)
{
    struct tn_io *io = o->worker->io;
    int64_t ms = INT64_MAX;
    tn_rc rc = io->vtable->modified(io, path, &ms, err);
    *old = rc == TN_OK && ms < o->spec->older_than_ms;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static void remove_file(struct tn_orphan_run *o, const char *path)
{
    struct tn_io *io = o->worker->io;
    struct tn_err ignored;
    uint64_t size = 0;
    if (io->vtable->stat(io, path, &size, &ignored) != TN_OK ||
        (!o->spec->dry_run && io->vtable->unlink(io, path, &ignored) != TN_OK)) {
        return;
    }
    o->removed++;
    o->result->files++;
    o->result->bytes += size;
    if (o->spec->each) {
        o->spec->each(o->spec->user, path, size);
    }
}

/* ---- drafts ---- */

struct drafts {
    struct tn_orphan_run *o;
    const char *home;
    const char *folder;
    const char *prefix;
    bool hidden; /* only those that begin with a dot: others keep files of their own there */
};

static tn_rc remove_draft(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct drafts *d = user;
    struct tn_arena *arena = &d->o->worker->arena;
    if (is_dir || tn_name_begins(name, d->prefix) || strcmp(name, "EARLIEST") == 0 ||
        strcmp(name, "LATEST") == 0 || (d->hidden && name[0] != '.')) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    bool old = false;
    const char *path = tn_name_in(arena, d->home, d->folder, name);
    tn_rc rc = path ? is_old(d->o, path, &old, err) : tn_orphan_no_room(err);
    if (rc == TN_OK && old) {
        remove_file(d->o, path);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc remove_drafts(struct tn_orphan_run *o, const char *home, struct tn_err *err)
{
    struct drafts drafts[] = {{o, home, TN_DIR_SNAPSHOT, "snapshot-", false},
                              {o, home, TN_DIR_CHANGELOG, "changelog-", false},
                              {o, home, TN_DIR_TAG, "tag-", true}};
    tn_rc rc = TN_OK;
    for (int i = 0; rc == TN_OK && i < 3; i++) {
        rc = tn_orphan_list(o, home, drafts[i].folder, remove_draft, &drafts[i], err);
    }
    return rc;
}

/* ---- a pass ---- */

static bool in_part(const struct tn_orphan_run *o, struct tn_hash_128 hash)
{
    return o->bits == 0 || hash.high >> (64 - o->bits) == o->part;
}

static tn_rc add_candidate(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_orphan_run *o = user;
    struct tn_arena *arena = &o->worker->arena;
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(name));
    if (is_dir || o->full || !in_part(o, hash)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    bool old = false;
    const char *path = tn_arena_format(arena, "%s%s", o->dir, name);
    tn_rc rc = path ? is_old(o, path, &old, err) : tn_orphan_no_room(err);
    tn_arena_reset(arena, mark);
    o->full = old && !tn_set_add(&o->names, hash);
    return rc;
}

static tn_rc list_dir(struct tn_orphan_run *o, const char *dir, tn_io_name_fn *each,
                      struct tn_err *err)
{
    struct tn_io *io = o->worker->io;
    o->dir = dir;
    o->removed = 0;
    tn_rc rc = io->vtable->list(io, dir, each, o, err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc collect(struct tn_orphan_run *o, const char *dir, bool *emptied, struct tn_err *err)
{
    *emptied = false;
    return o->full ? TN_OK : list_dir(o, dir, add_candidate, err);
}

static tn_rc remove_orphan(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_orphan_run *o = user;
    struct tn_arena *arena = &o->worker->arena;
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(name));
    if (is_dir || !tn_set_has(&o->names, hash) || tn_set_marked(&o->names, hash)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    bool old = false; /* two files may have one name */
    const char *path = tn_arena_format(arena, "%s%s", o->dir, name);
    tn_rc rc = path ? is_old(o, path, &old, err) : tn_orphan_no_room(err);
    if (rc == TN_OK && old) {
        remove_file(o, path);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc sweep(struct tn_orphan_run *o, const char *dir, bool *emptied, struct tn_err *err)
{
    tn_rc rc = list_dir(o, dir, remove_orphan, err);
    *emptied = o->removed > 0 && !o->spec->dry_run;
    return rc;
}

/* A snapshot or tag that somebody removed comes back when the power goes before that was synced: it
 * must not find its files gone. */
static tn_rc settle_home(struct tn_orphan_run *o, const char *home, struct tn_err *err)
{
    static const char *const folders[] = {TN_DIR_SNAPSHOT, TN_DIR_TAG, TN_DIR_CHANGELOG,
                                          TN_DIR_BRANCH};
    struct tn_io *io = o->worker->io;
    struct tn_arena *arena = &o->worker->arena;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof folders / sizeof folders[0]; i++) {
        uint64_t size;
        const char *path = tn_name_in(arena, home, folders[i], "");
        rc = path ? io->vtable->stat(io, path, &size, err) : tn_orphan_no_room(err);
        if (rc == TN_OK) {
            rc = io->vtable->sync(io, &path, 1, err);
        } else if (rc == TN_ABSENT) {
            rc = TN_OK;
        }
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc settle(struct tn_orphan_run *o, struct tn_err *err)
{
    if (o->settled || o->spec->dry_run) {
        return TN_OK;
    }
    o->settled = true;
    return tn_orphan_each_home(o, settle_home, err);
}

/* Candidates first: what is committed after they were listed is seen as reached. */
static tn_rc pass(struct tn_orphan_run *o, struct tn_err *err)
{
    tn_set_clear(&o->names);
    tn_set_clear(&o->read);
    o->full = false;
    tn_rc rc = tn_orphan_walk(o, collect, err);
    if (rc != TN_OK || o->full || o->names.count == 0) {
        return rc;
    }
    o->unmarked = o->names.count;
    rc = tn_orphan_each_home(o, tn_orphan_mark_used, err);
    if (rc == TN_OK && o->unmarked > 0) {
        rc = settle(o, err);
        rc = rc == TN_OK ? tn_orphan_walk(o, sweep, err) : rc;
    }
    return rc;
}

static tn_rc all_passes(struct tn_orphan_run *o, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && o->part < UINT64_C(1) << o->bits) {
        rc = pass(o, err);
        if (rc == TN_OK && o->full && o->bits == BITS_MAX) {
            rc = tn_err_set(err, TN_AGAIN, 0, "no room for names");
        }
        if (o->full) { /* the same again, in halves */
            o->bits++;
            o->part *= 2;
        } else {
            o->result->passes++;
            o->part++;
        }
    }
    return rc;
}

static tn_rc make_sets(struct tn_orphan_run *o, struct tn_err *err)
{
    struct tn_arena *arena = &o->worker->arena;
    size_t room = tn_arena_free(arena);
    uint64_t count = 1;
    room = room > 2 * (size_t)READ_RESERVE ? room - READ_RESERVE : room / 4;
    while (tn_set_size(count * 2) <= room / 2) {
        count *= 2;
    }
    tn_rc rc = tn_set_init(&o->names, count, arena, err);
    return rc == TN_OK ? tn_set_init(&o->read, count / 8 + 1, arena, err) : rc;
}

tn_rc tn_orphan_clean(const struct tn_orphan_spec *spec, struct tn_worker *worker,
                      struct tn_orphan_result *result, struct tn_err *err)
{
    struct tn_orphan_run orphan = {.spec = spec, .worker = worker, .result = result};
    size_t mark = tn_arena_mark(&worker->arena);
    *result = (struct tn_orphan_result){0};
    tn_rc rc = tn_orphan_each_home(&orphan, check_home, err);
    rc = rc == TN_OK ? make_sets(&orphan, err) : rc;
    rc = rc == TN_OK ? tn_orphan_each_home(&orphan, remove_drafts, err) : rc;
    rc = rc == TN_OK ? all_passes(&orphan, err) : rc;
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "clean %s", spec->root);
}
