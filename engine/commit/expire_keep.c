#include "commit/expire_private.h"

#include "file/names.h"

struct keepers {
    struct tn_expire_run *e;
    tn_expire_snapshot_fn *each;
    const char *folder; /* of the names that come, as in "branch/branch-b/tag/" */
    bool all;           /* a branch: every snapshot of it counts */
};

static tn_rc keep_path(const struct keepers *k, const char *path, struct tn_err *err)
{
    struct tn_expire_run *e = k->e;
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_read_path(e->worker->io, path, &e->worker->arena, &snapshot, err);
    if (rc != TN_OK || (!k->all && (snapshot.id < e->tag_floor || snapshot.id >= e->kept))) {
        return rc;
    }
    e->keeps_copy = true;
    rc = k->each(e, &snapshot, err);
    e->keeps_copy = false;
    return rc;
}

static bool is_without(const struct tn_expire_run *e, const struct keepers *k, const char *name)
{
    return e->without && !k->all && strcmp(name, e->without) == 0;
}

static tn_rc keep_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct keepers *k = user;
    struct tn_arena *arena = &k->e->worker->arena;
    if (is_dir || (!tn_name_begins(name, "tag-") && tn_name_number(name, "snapshot-") < 0) ||
        is_without(k->e, k, name)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, k->e->spec->root, k->folder, name);
    tn_rc rc = path ? keep_path(k, path, err) : tn_expire_no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc keep_branch(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct keepers *k = user;
    struct tn_arena *arena = &k->e->worker->arena;
    static const char *const folders[] = {TN_DIR_TAG, TN_DIR_SNAPSHOT};
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = TN_OK;
    for (size_t i = 0; is_dir && rc == TN_OK && i < sizeof folders / sizeof folders[0]; i++) {
        struct keepers inner = {k->e, k->each, NULL, true};
        inner.folder = tn_arena_format(arena, TN_DIR_BRANCH "%s/%s", name, folders[i]);
        rc = inner.folder ? tn_expire_list_folder(k->e, inner.folder, keep_name, &inner, err)
                          : tn_expire_no_room(err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static int64_t last_overwrite(const struct tn_expire_run *e)
{
    const struct tn_expire_spec *spec = e->spec;
    return spec->overwrite_known && spec->overwrite < e->last ? spec->overwrite : e->last;
}

/* A rollback "as latest" is an OVERWRITE whose lists name files that a delta before it deleted. */
static tn_rc each_overwrite(struct tn_expire_run *e, tn_expire_snapshot_fn *each,
                            struct tn_err *err)
{
    int64_t last = last_overwrite(e);
    tn_rc rc = TN_OK;
    for (int64_t id = e->kept + 1; e->overwritten && rc == TN_OK && id <= last; id++) {
        rc = tn_expire_with_overwrite(e, id, each, err);
    }
    return rc;
}

static tn_rc note_overwrite(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                            struct tn_err *err)
{
    (void)snapshot;
    (void)err;
    e->overwritten = true;
    return TN_OK;
}

static tn_rc look_for_overwrite(struct tn_expire_run *e, struct tn_err *err)
{
    int64_t last = last_overwrite(e);
    tn_rc rc = TN_OK;
    for (int64_t id = e->kept + 1; rc == TN_OK && !e->overwritten && id <= last; id++) {
        rc = tn_expire_with_overwrite(e, id, note_overwrite, err);
    }
    return rc;
}

static void see_tag(struct tn_expire_run *e, const char *name)
{
    e->tags_seen += tn_hash_64(tn_bytes_of(name), 0) | 1;
}

static tn_rc note_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_expire_run *e = user;
    struct tn_arena *arena = &e->worker->arena;
    struct tn_snapshot tag;
    if (is_dir || !tn_name_begins(name, "tag-")) {
        return TN_OK;
    }
    see_tag(e, name);
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, TN_DIR_TAG, name);
    if (!path) {
        return tn_expire_no_room(err);
    }
    tn_rc rc = tn_snapshot_read_path(e->worker->io, path, arena, &tag, err);
    if (rc == TN_OK && tag.id < e->oldest && tag.id > e->tag_floor) {
        e->tag_floor = tag.id;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc note_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    if (!is_dir && tn_name_begins(name, "tag-")) {
        see_tag(user, name);
    }
    return TN_OK;
}

/* One that went meanwhile is none that must be kept, but it isn't told from one that came. */
tn_rc tn_expire_check_tags(struct tn_expire_run *e, struct tn_err *err)
{
    uint64_t seen = e->tags_seen;
    e->tags_seen = 0;
    tn_rc rc = tn_expire_list_folder(e, TN_DIR_TAG, note_name, e, err);
    return rc == TN_OK && e->tags_seen != seen
               ? tn_err_set(err, TN_AGAIN, 0, "expire: a tag was made meanwhile")
               : rc;
}

tn_rc tn_expire_find_keepers(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = tn_expire_list_folder(e, TN_DIR_TAG, note_tag, e, err);
    return rc == TN_OK ? look_for_overwrite(e, err) : rc;
}

tn_rc tn_expire_each_keeper(struct tn_expire_run *e, tn_expire_snapshot_fn *each,
                            struct tn_err *err)
{
    struct keepers keepers = {e, each, TN_DIR_TAG, false};
    tn_rc rc = tn_expire_with_snapshot(e, e->kept, each, err);
    if (rc == TN_OK) {
        rc = tn_expire_list_folder(e, TN_DIR_TAG, keep_name, &keepers, err);
    }
    if (rc == TN_OK) {
        rc = tn_expire_list_folder(e, TN_DIR_BRANCH, keep_branch, &keepers, err);
    }
    return rc == TN_OK ? each_overwrite(e, each, err) : rc;
}
