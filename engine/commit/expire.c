#include "commit/expire_private.h"

#include <inttypes.h>

#include "commit/tag.h"
#include "file/names.h"

/* ---- what the parts share ---- */

static tn_rc with_file(struct tn_expire_run *e, const char *path, const char *kind,
                       tn_expire_snapshot_fn *each, struct tn_err *err)
{
    struct tn_snapshot snapshot;
    struct tn_worker *worker = e->worker;
    tn_rc rc = path ? tn_snapshot_read_path(worker->io, path, &worker->arena, &snapshot, err)
                    : tn_expire_no_room(err);
    if (rc == TN_OK && (!kind || strcmp(snapshot.commit_kind, kind) == 0)) {
        return each(e, &snapshot, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc with_numbered(struct tn_expire_run *e, const char *folder, const char *prefix,
                           int64_t id, const char *kind, tn_expire_snapshot_fn *each,
                           struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_numbered(arena, e->spec->root, folder, prefix, id);
    tn_rc rc = with_file(e, path, kind, each, err);
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_expire_with_snapshot(struct tn_expire_run *e, int64_t id, tn_expire_snapshot_fn *each,
                              struct tn_err *err)
{
    return with_numbered(e, TN_DIR_SNAPSHOT, "snapshot-", id, NULL, each, err);
}

tn_rc tn_expire_with_overwrite(struct tn_expire_run *e, int64_t id, tn_expire_snapshot_fn *each,
                               struct tn_err *err)
{
    return with_numbered(e, TN_DIR_SNAPSHOT, "snapshot-", id, "OVERWRITE", each, err);
}

tn_rc tn_expire_with_record(struct tn_expire_run *e, int64_t id, tn_expire_snapshot_fn *each,
                            struct tn_err *err)
{
    return with_numbered(e, TN_DIR_CHANGELOG, "changelog-", id, NULL, each, err);
}

tn_rc tn_expire_forgive(tn_rc rc)
{
    return rc == TN_ABSENT || rc == TN_CORRUPT ? TN_OK : rc;
}

tn_rc tn_expire_list_folder(struct tn_expire_run *e, const char *folder, tn_io_name_fn *each,
                            void *user, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, folder, "");
    tn_rc rc = path ? io->vtable->list(io, path, each, user, err) : tn_expire_no_room(err);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc; /* no such folder */
}

bool tn_expire_remove_path(struct tn_expire_run *e, const char *path)
{
    struct tn_io *io = e->worker->io;
    struct tn_err ignored;
    uint64_t size;
    if (!path) {
        return false;
    }
    if (e->spec->dry_run) {
        return io->vtable->stat(io, path, &size, &ignored) == TN_OK;
    }
    return io->vtable->unlink(io, path, &ignored) == TN_OK;
}

/* A cut may tear the hint, and then the smallest name in the folder counts. */
static tn_rc settle_names(struct tn_expire_run *e, const char *folder, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    const char *dir = tn_name_in(&e->worker->arena, e->spec->root, folder, "");
    if (e->settled) {
        return TN_OK;
    }
    e->settled = true;
    return dir ? io->vtable->sync(io, &dir, 1, err) : tn_expire_no_room(err);
}

/* `*path` is none where there is no such file. */
static tn_rc find_place(struct tn_expire_run *e, const char *folder, const char *name,
                        const char **path, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    uint64_t size;
    *path = tn_name_in(&e->worker->arena, e->spec->root, folder, name);
    tn_rc rc = *path ? io->vtable->stat(io, *path, &size, err) : tn_expire_no_room(err);
    if (rc == TN_ABSENT) {
        *path = NULL;
        return TN_OK;
    }
    return rc;
}

tn_rc tn_expire_settle(struct tn_expire_run *e, const char *folder, struct tn_err *err)
{
    const char *const places[][2] = {
        {folder, "EARLIEST"}, {folder, ""}, {TN_DIR_TAG, ""}, {TN_DIR_BRANCH, ""}};
    enum { PLACES = sizeof places / sizeof places[0] };
    struct tn_io *io = e->worker->io;
    size_t mark = tn_arena_mark(&e->worker->arena);
    const char *paths[PLACES];
    uint32_t count = 0;
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < PLACES; i++) {
        rc = find_place(e, places[i][0], places[i][1], &paths[count], err);
        count += rc == TN_OK && paths[count];
    }
    rc = rc == TN_OK ? io->vtable->sync(io, paths, count, err) : rc;
    tn_arena_reset(&e->worker->arena, mark);
    return rc;
}

tn_rc tn_expire_hint(struct tn_expire_run *e, const char *folder, int64_t id, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    const char *root = e->spec->root;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = settle_names(e, folder, err);
    if (rc == TN_OK) {
        rc = strcmp(folder, TN_DIR_SNAPSHOT) == 0
                 ? tn_snapshot_hint(io, root, "EARLIEST", id, arena, err)
                 : tn_changelog_hint(io, root, "EARLIEST", id, arena, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? tn_expire_settle(e, folder, err) : rc;
}

/* ---- all of it ---- */

/* EARLIEST is durable before the first file goes. */
static tn_rc move_earliest(struct tn_expire_run *e, struct tn_err *err)
{
    if (e->spec->dry_run) {
        return TN_OK;
    }
    tn_rc rc = e->decoupled ? tn_expire_make_records(e, err) : TN_OK;
    rc = rc == TN_OK ? tn_expire_hint(e, TN_DIR_SNAPSHOT, e->kept, err) : rc;
    return rc == TN_OK ? tn_expire_check_tags(e, err) : rc;
}

/* Long-lived changelogs keep their lists: those of changelogs, or, where the deltas tell what
 * changed, all of them. */
static tn_rc remove_metadata(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                             struct tn_err *err)
{
    unsigned parts = TN_EXPIRE_BESIDE;
    parts |= !e->decoupled || !e->told_by_deltas ? TN_EXPIRE_STATE : 0;
    parts |= !e->decoupled ? TN_EXPIRE_CHANGELOG : 0;
    return tn_expire_remove_lists(e, snapshot, parts, err);
}

static tn_rc remove_all(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = move_earliest(e, err);
    if (rc == TN_OK) {
        e->result->earliest_id = e->kept;
        rc = tn_expire_remove_data(e, err);
    }
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = tn_expire_with_snapshot(e, id, remove_metadata, err);
    }
    return rc == TN_OK ? tn_expire_remove_numbered(e, TN_DIR_SNAPSHOT, "snapshot-",
                                                   &e->result->snapshots, err)
                       : rc;
}

/* All that can fail for good reason comes before the first removal. */
static tn_rc look(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = tn_expire_fit_files(e, err);
    e->kept = e->end > e->first ? e->end : e->first;
    if (rc == TN_OK) {
        rc = tn_expire_find_keepers(e, err);
    }
    if (rc == TN_OK) {
        rc = tn_expire_collect_files(e, err);
    }
    return rc == TN_OK ? tn_expire_collect_names(e, NULL, err) : rc;
}

static tn_rc expire_snapshots(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = tn_expire_choose_range(e, err);
    if (rc == TN_ABSENT) {
        return TN_OK; /* no snapshot */
    }
    if (rc != TN_OK) {
        return rc;
    }
    e->result->earliest_id = e->first;
    if (e->end <= e->oldest) {
        return TN_OK;
    }
    rc = look(e, err);
    return rc == TN_OK ? remove_all(e, err) : rc;
}

/* Each name is given once, whether its tag goes or not. */
static tn_rc expire_tags(const struct tn_expire_spec *spec, struct tn_worker *worker,
                         struct tn_expire_result *result, struct tn_err *err)
{
    struct tn_tag_over before = {{0}};
    struct tn_tag_over over;
    tn_rc rc = tn_tag_find_over(spec->root, worker, &before, &over, err);
    while (rc == TN_OK && over.name[0]) {
        rc = tn_tag_remove(spec, over.name, worker, result, err);
        result->tags += rc == TN_OK;
        before = over;
        if (rc == TN_OK || rc == TN_ABSENT) {
            rc = tn_tag_find_over(spec->root, worker, &before, &over, err);
        }
    }
    return rc;
}

static struct tn_expire_run run_of(const struct tn_expire_spec *spec, struct tn_worker *worker,
                                   struct tn_expire_result *result)
{
    return (struct tn_expire_run){.spec = spec,
                                  .worker = worker,
                                  .result = result,
                                  .decoupled = tn_options_changelogs_outlive(spec->options),
                                  .told_by_deltas =
                                      spec->options->changelog_producer == TN_CHANGELOG_NONE};
}

/* In the order of Paimon's TableCommitImpl. */
static tn_rc expire(const struct tn_expire_spec *spec, struct tn_worker *worker,
                    struct tn_expire_result *result, struct tn_err *err)
{
    struct tn_expire_run snapshots = run_of(spec, worker, result);
    struct tn_expire_run records = run_of(spec, worker, result);
    snapshots.settled = spec->settled;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = expire_tags(spec, worker, result, err);
    rc = rc == TN_OK ? expire_snapshots(&snapshots, err) : rc;
    tn_arena_reset(&worker->arena, mark);
    records.settled = snapshots.end > snapshots.oldest; /* when it made records */
    rc = rc == TN_OK && records.decoupled ? tn_expire_records(&records, err) : rc;
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

tn_rc tn_expire(const struct tn_expire_spec *spec, struct tn_worker *worker,
                struct tn_expire_result *result, struct tn_err *err)
{
    *result = (struct tn_expire_result){0};
    tn_rc rc = expire(spec, worker, result, err);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "expire %s", spec->root);
}
