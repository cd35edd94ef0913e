#include "commit/expire_private.h"
#include "commit/tag.h"
#include "file/names.h"

enum { BITS_MAX = 40 };

struct removal {
    struct tn_expire_run e;
    const char *name; /* "tag-x" */
    struct tn_tag tag;
    bool shared;   /* another tag has the snapshot */
    bool removed;  /* the tag itself, durably */
    uint64_t part; /* this pass is about files whose hash's first `bits` are this */
    uint32_t bits;
};

/* ---- who else has the snapshot ---- */

static tn_rc compare(struct tn_expire_run *e, const struct tn_snapshot *other, struct tn_err *err)
{
    (void)err;
    struct removal *r = (struct removal *)(void *)e;
    r->shared = r->shared || other->id == r->tag.snapshot.id;
    return TN_OK;
}

static tn_rc compare_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct removal *r = user;
    struct tn_arena *arena = &r->e.worker->arena;
    struct tn_snapshot other;
    if (is_dir || !tn_name_begins(name, "tag-") || strcmp(name, r->name) == 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, r->e.spec->root, TN_DIR_TAG, name);
    tn_rc rc = path ? tn_snapshot_read_path(r->e.worker->io, path, arena, &other, err)
                    : tn_expire_no_room(err);
    rc = rc == TN_OK ? compare(&r->e, &other, err) : rc;
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc look_for_shared(struct removal *r, struct tn_err *err)
{
    r->shared = false;
    return tn_expire_list_folder(&r->e, TN_DIR_TAG, compare_name, r, err);
}

/* `*has`: a snapshot that has not expired. One beyond the newest was rolled back by somebody who
 * was cut off: what it reaches is for orphan.h. */
static tn_rc look_for_snapshot(struct removal *r, bool *has, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    e->kept = INT64_MAX;
    tn_rc rc = tn_snapshot_earliest(io, e->spec->root, arena, &e->kept, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(io, e->spec->root, arena, &e->last, err);
    }
    *has = rc == TN_OK && r->tag.snapshot.id >= e->kept;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* ---- long-lived changelogs that are told by the data files themselves ---- */

static tn_rc each_record(struct tn_expire_run *e, tn_expire_snapshot_fn *each, struct tn_err *err)
{
    struct tn_changelog_range range;
    tn_rc rc = tn_changelog_range(e->worker->io, e->spec->root, &e->worker->arena, &range, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    e->keeps_record = true;
    for (int64_t id = range.first; rc == TN_OK && id <= range.last; id++) {
        rc = tn_expire_with_record(e, id, each, err);
    }
    e->keeps_record = false;
    return rc;
}

static tn_rc keep_record(struct tn_expire_run *e, const struct tn_snapshot *record,
                         struct tn_err *err)
{
    return tn_expire_each_delta_entry(e, record, tn_expire_mark_added, err);
}

/* ---- files ---- */

static tn_rc each_live(struct removal *r, tn_live_fn *each, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    return tn_expire_forgive(tn_live_each(e->spec->root, &r->tag.snapshot, e->spec->schema, NULL,
                                          e->worker, each, r, err));
}

static tn_rc count_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct removal *r = user;
    r->e.name_count++;
    tn_expire_note_bucket(&r->e, entry);
    return TN_OK;
}

static bool in_part(const struct removal *r, struct tn_hash_128 hash)
{
    return r->bits == 0 || hash.high >> (64 - r->bits) == r->part;
}

static tn_rc add_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct removal *r = user;
    struct tn_hash_128 hash = tn_expire_path_hash(entry);
    bool ours = !entry->file.external_path && in_part(r, hash);
    return !ours || tn_set_add(&r->e.files, hash)
               ? TN_OK
               : tn_err_set(err, TN_AGAIN, 0, "tag: no room for its files");
}

static tn_rc remove_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct removal *r = user;
    return tn_expire_remove_candidate(&r->e, entry, err);
}

static tn_rc remove_tag(struct removal *r, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    if (r->removed || e->spec->dry_run) {
        return TN_OK;
    }
    const char *path = tn_name_in(arena, e->spec->root, TN_DIR_TAG, r->name);
    tn_rc rc = path ? io->vtable->unlink(io, path, err) : tn_expire_no_room(err);
    rc = rc == TN_OK ? tn_expire_settle(e, TN_DIR_SNAPSHOT, err) : rc;
    r->removed = rc == TN_OK;
    /* one that was made of this one meanwhile */
    return rc == TN_OK && !r->shared ? look_for_shared(r, err) : rc;
}

/* Files of one part. The first time all was read that could fail before the tag goes. */
static tn_rc pass(struct removal *r, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    tn_set_clear(&e->files);
    tn_rc rc = each_live(r, add_file, err);
    if (rc == TN_OK && e->files.count > 0) {
        rc = tn_expire_each_keeper(e, tn_expire_keep_live, err);
        rc = rc == TN_OK && e->told_by_deltas ? each_record(e, keep_record, err) : rc;
    }
    rc = rc == TN_OK ? remove_tag(r, err) : rc;
    return rc == TN_OK && !r->shared ? each_live(r, remove_file, err) : rc;
}

static tn_rc passes(struct removal *r, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    size_t room = tn_expire_room(e);
    e->name_count = 0;
    e->bucket_min = INT32_MAX;
    e->bucket_max = INT32_MIN;
    tn_rc rc = each_live(r, count_file, err);
    uint64_t count = e->name_count;
    while (r->bits < BITS_MAX && tn_set_size(count) > room) {
        r->bits++;
        count = (e->name_count >> r->bits) * 5 / 4 + 64; /* hashes are not spread quite evenly */
    }
    rc = rc == TN_OK ? tn_set_init(&e->files, count, &e->worker->arena, err) : rc;
    for (; rc == TN_OK && r->part < UINT64_C(1) << r->bits && !r->shared; r->part++) {
        rc = pass(r, err);
    }
    return rc;
}

/* Its snapshot has expired, and nobody else has it. */
static tn_rc remove_all(struct removal *r, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    tn_rc rc = tn_expire_find_keepers(e, err);
    e->tag_floor = 0; /* an OVERWRITE between two tags may have brought files back: each counts */
    if (rc == TN_OK) {
        rc = tn_expire_collect_names(e, e->told_by_deltas ? each_record : NULL, err);
    }
    if (rc == TN_OK) {
        rc = passes(r, err);
    }
    return rc == TN_OK && !r->shared
               ? tn_expire_remove_lists(e, &r->tag.snapshot, TN_EXPIRE_STATE | TN_EXPIRE_BESIDE,
                                        err)
               : rc;
}

static tn_rc run(struct removal *r, const char *name, struct tn_err *err)
{
    struct tn_expire_run *e = &r->e;
    struct tn_arena *arena = &e->worker->arena;
    bool has_snapshot = false;
    r->name = tn_arena_format(arena, "tag-%s", name);
    if (!r->name) {
        return tn_expire_no_room(err);
    }
    e->without = r->name;
    tn_rc rc = tn_tag_read(e->worker->io, e->spec->root, name, arena, &r->tag, err);
    rc = rc == TN_OK ? look_for_snapshot(r, &has_snapshot, err) : rc;
    rc = rc == TN_OK ? look_for_shared(r, err) : rc;
    if (rc != TN_OK) {
        return rc;
    }
    return has_snapshot || r->shared ? remove_tag(r, err) : remove_all(r, err);
}

tn_rc tn_tag_remove(const struct tn_expire_spec *spec, const char *name, struct tn_worker *worker,
                    struct tn_expire_result *result, struct tn_err *err)
{
    struct removal removal = {
        .e = {.spec = spec,
              .worker = worker,
              .result = result,
              .told_by_deltas = spec->options->changelog_producer == TN_CHANGELOG_NONE}};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = run(&removal, name, err);
    tn_arena_reset(&worker->arena, mark);
    return rc;
}
