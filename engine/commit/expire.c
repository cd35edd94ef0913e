#include "commit/expire_private.h"

#include <inttypes.h>

#include "file/names.h"

/* ---- what the parts share ---- */

/* `kind` NULL: any. */
static tn_rc with_kind(struct tn_expire_run *e, int64_t id, const char *kind,
                       tn_expire_snapshot_fn *each, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    struct tn_snapshot snapshot;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_snapshot_read(e->worker->io, e->spec->root, id, arena, &snapshot, err);
    if (rc == TN_OK && (!kind || strcmp(snapshot.commit_kind, kind) == 0)) {
        rc = each(e, &snapshot, err);
    } else if (rc == TN_ABSENT) {
        rc = TN_OK;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_expire_with_snapshot(struct tn_expire_run *e, int64_t id, tn_expire_snapshot_fn *each,
                              struct tn_err *err)
{
    return with_kind(e, id, NULL, each, err);
}

tn_rc tn_expire_with_overwrite(struct tn_expire_run *e, int64_t id, tn_expire_snapshot_fn *each,
                               struct tn_err *err)
{
    return with_kind(e, id, "OVERWRITE", each, err);
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

/* ---- all of it ---- */

/* EARLIEST is durable before the first file goes. */
static tn_rc move_earliest(struct tn_expire_run *e, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    if (e->spec->dry_run) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_snapshot_hint(io, e->spec->root, "EARLIEST", e->kept, arena, err);
    if (rc == TN_OK) {
        const char *paths[] = {tn_name_in(arena, e->spec->root, TN_DIR_SNAPSHOT, "EARLIEST"),
                               tn_name_in(arena, e->spec->root, TN_DIR_SNAPSHOT, "")};
        rc = paths[0] && paths[1] ? io->vtable->sync(io, paths, 2, err) : tn_expire_no_room(err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc remove_all(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = move_earliest(e, err);
    if (rc == TN_OK) {
        e->result->earliest_id = e->kept;
        rc = tn_expire_remove_data(e, err);
    }
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = tn_expire_with_snapshot(e, id, tn_expire_remove_lists, err);
    }
    return rc == TN_OK ? tn_expire_remove_snapshots(e, err) : rc;
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
    return rc == TN_OK ? tn_expire_collect_names(e, err) : rc;
}

static tn_rc check_supported(const struct tn_schema *schema, struct tn_err *err)
{
    static const char *const keys[] = {"changelog.num-retained.min", "changelog.num-retained.max",
                                       "changelog.time-retained"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (tn_schema_option(schema, keys[i])) {
            return tn_err_set(err, TN_UNSUPPORTED, 0, "changelogs kept longer than snapshots: %s",
                              keys[i]);
        }
    }
    return TN_OK;
}

static tn_rc run(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = check_supported(e->spec->schema, err);
    if (rc == TN_OK) {
        rc = tn_expire_choose_range(e, err);
    }
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

tn_rc tn_expire(const struct tn_expire_spec *spec, struct tn_worker *worker,
                struct tn_expire_result *result, struct tn_err *err)
{
    struct tn_expire_run expire = {.spec = spec, .worker = worker, .result = result};
    size_t mark = tn_arena_mark(&worker->arena);
    *result = (struct tn_expire_result){0};
    tn_rc rc = run(&expire, err);
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "expire %s", spec->root);
}
