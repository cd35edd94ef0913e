#include "table/fsck.h"

#include <inttypes.h>

#include "commit/consumer.h"
#include "file/names.h"
#include "table/fsck_private.h"

/* ---- folders ---- */

tn_rc tn_fsck_list(struct tn_fsck *f, const char *root, const char *dir, tn_io_name_fn *each,
                   void *user, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, root, dir, "");
    tn_rc rc = path ? f->io->vtable->list(f->io, path, each, user, err) : tn_fsck_no_path(f, err);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

struct next {
    const char *prefix;
    int64_t after;
    int64_t found;
};

static tn_rc note_next(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct next *next = user;
    int64_t number = is_dir ? -1 : tn_name_number(name, next->prefix);
    if (number > next->after && (next->found < 0 || number < next->found)) {
        next->found = number;
    }
    return TN_OK;
}

tn_rc tn_fsck_next_number(struct tn_fsck *f, const char *dir, const char *prefix, int64_t after,
                          int64_t *number, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct next next = {prefix, after, -1};
    uint64_t size;
    if (after < INT64_MAX) {
        const char *path = tn_name_numbered(arena, f->home, dir, prefix, after + 1);
        tn_rc rc = path ? f->io->vtable->stat(f->io, path, &size, err) : tn_fsck_no_path(f, err);
        tn_arena_reset(arena, mark);
        if (rc == TN_OK) {
            *number = after + 1;
        }
        if (rc != TN_ABSENT) {
            return rc;
        }
    }
    const char *path = tn_name_in(arena, f->home, dir, "");
    tn_rc rc =
        path ? f->io->vtable->list(f->io, path, note_next, &next, err) : tn_fsck_no_path(f, err);
    tn_arena_reset(arena, mark);
    *number = next.found;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* ---- consumers ---- */

/* The newest snapshot may be newer by now. */
static tn_rc check_wait(struct tn_fsck *f, const char *path, int64_t next, struct tn_err *err)
{
    int64_t latest = 0;
    tn_rc rc = tn_snapshot_latest(f->io, f->home, &f->worker->arena, &latest, err);
    rc = tn_fsck_damage(f, f->home, NULL, rc, err);
    return rc == TN_OK && next > latest + 1
               ? tn_fsck_problem(f, err, path,
                                 "waits for %" PRId64 " beyond %" PRId64
                                 ": rolled back, or another table of that name",
                                 next, latest)
               : rc;
}

static tn_rc check_consumer(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_fsck *f = user;
    const char *id = tn_consumer_id(name);
    if (is_dir || !id) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path = tn_name_in(&f->worker->arena, f->home, TN_DIR_CONSUMER, name);
    if (!path) {
        return tn_fsck_no_path(f, err);
    }
    int64_t next = 0;
    tn_rc rc = tn_consumer_read(f->io, f->home, id, &f->worker->arena, &next, err);
    if (rc != TN_OK) {
        rc = tn_fsck_damage(f, path, NULL, rc, err);
    } else if (f->latest > 0 && next > f->latest + 1) {
        rc = check_wait(f, path, next, err);
    }
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* ---- the table, then its branches ---- */

static tn_rc check_parts(struct tn_fsck *f, struct tn_err *err)
{
    tn_rc rc = tn_fsck_snapshots(f, err);
    rc = rc == TN_OK ? tn_fsck_list(f, f->home, TN_DIR_CONSUMER, check_consumer, f, err) : rc;
    rc = rc == TN_OK ? tn_fsck_tags(f, err) : rc;
    return rc == TN_OK ? tn_fsck_changelogs(f, err) : rc;
}

enum { TRIES_MAX = 3 }; /* while snapshots whose files were missed expire */

/* What was missed and went by the end may be needed by a snapshot that stays: all is checked once
 * more, but for the data files that were good. */
static tn_rc check_home(struct tn_fsck *f, struct tn_err *err)
{
    tn_rc rc = tn_fsck_newest(f, err);
    if (rc != TN_OK || !f->readable) {
        return rc;
    }
    const struct tn_fsck_result before = *f->result;
    bool again = true;
    for (int tries = 1; rc == TN_OK && again; tries++) {
        f->result->snapshots = before.snapshots;
        f->result->tags = before.tags;
        f->result->changelogs = before.changelogs;
        tn_fsck_drop_held(f);
        rc = check_parts(f, err);
        again = false;
        if (rc == TN_OK && tries < TRIES_MAX) {
            rc = tn_fsck_any_left(f, &again, err);
        }
    }
    return rc == TN_OK ? tn_fsck_tell_held(f, err) : rc;
}

static tn_rc check_branch(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_fsck *f = user;
    if (!is_dir || strncmp(name, "branch-", 7) != 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&f->worker->arena);
    f->home = tn_arena_format(&f->worker->arena, "%s/" TN_DIR_BRANCH "%s", f->root, name);
    if (!f->home) {
        return tn_fsck_no_path(f, err);
    }
    f->result->branches++;
    tn_rc rc = check_home(f, err);
    f->home = f->root;
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

static tn_rc check_table(struct tn_fsck *f, struct tn_err *err)
{
    tn_rc rc = check_home(f, err);
    rc = rc == TN_OK ? tn_fsck_list(f, f->root, TN_DIR_BRANCH, check_branch, f, err) : rc;
    return rc == TN_OK && f->spec->orphans ? tn_fsck_orphans(f, err) : rc;
}

static void init(struct tn_fsck *f, const struct tn_fsck_spec *spec, struct tn_fsck_result *result)
{
    f->spec = spec;
    f->result = result;
    f->worker = spec->worker;
    f->io = spec->worker->io;
    f->root = f->home = spec->root;
    tn_fsck_table_init(&f->seen, spec->heap, sizeof(struct tn_hash_128), "files");
    tn_fsck_manifests_init(f);
    tn_fsck_runs_init(f);
}

static void forget_files(struct tn_fsck *f)
{
    tn_fsck_drop_held(f);
    tn_fsck_runs_clear(f);
    tn_fsck_table_clear(&f->manifests);
    tn_fsck_table_clear(&f->seen);
}

tn_rc tn_fsck(const struct tn_fsck_spec *spec, struct tn_fsck_result *result, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&spec->worker->arena);
    size_t kept = tn_arena_mark(spec->arena);
    void *memory;
    *result = (struct tn_fsck_result){0};
    tn_rc rc = tn_arena_need(spec->arena, sizeof(struct tn_fsck), "fsck", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_fsck *f = memory;
    init(f, spec, result);
    f->schema_mark = tn_arena_mark(spec->arena);
    rc = check_table(f, err);
    forget_files(f);
    if (rc == TN_OK && spec->merged && result->problems == 0 && result->unchecked == 0) {
        rc = tn_fsck_merged(f, err);
    }
    if (rc == TN_OK && result->problems == 0 && result->unchecked > 0) {
        *err = f->unchecked;
        rc = err->code;
    }
    tn_fsck_drop_held(f);
    tn_fsck_table_clear(&f->seen);
    tn_arena_reset(spec->arena, kept);
    tn_arena_reset(&spec->worker->arena, mark);
    return rc;
}
