#include "commit/expire_private.h"

#include "commit/publish.h"
#include "file/names.h"

/* ---- a snapshot that goes becomes a record ---- */

/* What a record of that name says already comes from a run that was cut, or from a time before a
 * rollback. */
static tn_rc make_record(struct tn_expire_run *e, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    struct tn_io *io = e->worker->io;
    const char *root = e->spec->root;
    struct tn_bytes text;
    const char *from = tn_name_numbered(arena, root, TN_DIR_SNAPSHOT, "snapshot-", id);
    const char *to = tn_name_numbered(arena, root, TN_DIR_CHANGELOG, "changelog-", id);
    const char *draft = tn_name_in(arena, root, TN_DIR_CHANGELOG, ".changelog.tmp");
    if (!from || !to || !draft) {
        return tn_expire_no_room(err);
    }
    tn_rc rc = tn_io_read_all(io, from, TN_SNAPSHOT_SIZE_MAX, arena, &text, err);
    if (rc == TN_OK) {
        rc = tn_publish_over(io, draft, to, text, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_expire_make_records(struct tn_expire_run *e, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    struct tn_io *io = e->worker->io;
    size_t mark = tn_arena_mark(arena);
    const char *dir = tn_name_in(arena, e->spec->root, TN_DIR_CHANGELOG, "");
    tn_rc rc = dir ? io->vtable->make_dir(io, dir, err) : tn_expire_no_room(err);
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        size_t inner = tn_arena_mark(arena);
        rc = make_record(e, id, err);
        tn_arena_reset(arena, inner);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &dir, 1, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK && e->end > e->oldest
               ? tn_changelog_hint(io, e->spec->root, "LATEST", e->end - 1, arena, err)
               : rc;
}

/* ---- what goes with a record ---- */

static tn_rc add_deleted(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_expire_run *e = user;
    if (entry->kind != TN_ENTRY_DELETE || entry->file.external_path) {
        return TN_OK;
    }
    struct tn_hash_128 hash = tn_expire_path_hash(entry);
    if (!tn_set_add(&e->files, hash) || !tn_set_mark(&e->files, hash, false)) {
        return tn_err_set(err, TN_CORRUPT, 0, "more DELETE entries than the manifest lists say");
    }
    tn_expire_note_bucket(e, entry);
    return TN_OK;
}

/* A file that only moved to another level stays: a later record will say that it went. */
static tn_rc add_files(struct tn_expire_run *e, const struct tn_snapshot *record,
                       struct tn_err *err)
{
    tn_rc rc = tn_expire_each_delta_entry(e, record, add_deleted, err);
    return rc == TN_OK ? tn_expire_each_delta_entry(e, record, tn_expire_mark_added, err) : rc;
}

static tn_rc collect_files(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    e->bucket_min = INT32_MAX;
    e->bucket_max = INT32_MIN;
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = tn_expire_with_record(e, id, add_files, err);
    }
    if (rc == TN_OK && e->files.count > 0) {
        rc = tn_expire_each_keeper(e, tn_expire_keep_live, err);
    }
    return rc;
}

static tn_rc remove_files(struct tn_expire_run *e, const struct tn_snapshot *record,
                          struct tn_err *err)
{
    tn_rc rc = tn_expire_remove_changelog(e, record, err);
    return rc == TN_OK ? tn_expire_each_delta_entry(e, record, tn_expire_remove_deleted, err) : rc;
}

static tn_rc remove_lists(struct tn_expire_run *e, const struct tn_snapshot *record,
                          struct tn_err *err)
{
    return tn_expire_remove_lists(e, record, TN_EXPIRE_STATE | TN_EXPIRE_CHANGELOG, err);
}

/* Beside what snapshots and tags reach, the first record that stays reaches all that those behind
 * it share with those before. */
static tn_rc keep_next(struct tn_expire_run *e, tn_expire_snapshot_fn *each, struct tn_err *err)
{
    e->keeps_record = true;
    tn_rc rc = tn_expire_with_record(e, e->end, each, err);
    e->keeps_record = false;
    return rc;
}

/* ---- all of it ---- */

static tn_rc look(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = tn_snapshot_earliest(e->worker->io, e->spec->root, &e->worker->arena, &e->kept, err);
    if (rc == TN_OK) {
        rc = tn_expire_fit_records(e, err);
    }
    if (rc == TN_OK) {
        rc = tn_expire_find_keepers(e, err);
    }
    if (rc == TN_OK) {
        rc = collect_files(e, err);
    }
    return rc == TN_OK ? tn_expire_collect_names(e, keep_next, err) : rc;
}

static tn_rc remove_all(struct tn_expire_run *e, struct tn_err *err)
{
    int64_t stays = e->end > e->first ? e->end : e->first;
    tn_rc rc = TN_OK;
    if (!e->spec->dry_run) {
        rc = tn_expire_hint(e, TN_DIR_CHANGELOG, stays, err);
        rc = rc == TN_OK ? tn_expire_check_tags(e, err) : rc;
    }
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = tn_expire_with_record(e, id, remove_files, err);
    }
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = tn_expire_with_record(e, id, remove_lists, err);
    }
    return rc == TN_OK ? tn_expire_remove_numbered(e, TN_DIR_CHANGELOG, "changelog-",
                                                   &e->result->changelogs, err)
                       : rc;
}

tn_rc tn_expire_records(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = tn_expire_choose_records(e, err);
    if (rc != TN_OK || e->end <= e->oldest) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    rc = look(e, err);
    return rc == TN_OK ? remove_all(e, err) : rc;
}
