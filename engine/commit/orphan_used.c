#include "commit/orphan_private.h"
#include "file/names.h"

/* What a file like a snapshot is, and what it may lack. */
enum kind {
    SNAPSHOT,
    BRANCH_SNAPSHOT, /* its changelog may have gone with the table's snapshot that it began with */
    TAG,             /* its changelog goes with the snapshot */
    CHANGELOG        /* outlives its snapshot: what isn't there is not needed */
};

struct folder {
    struct tn_orphan_run *o;
    const char *name;
    const char *prefix;
    enum kind kind;
};

static void use(struct tn_orphan_run *o, const char *name)
{
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(name ? name : ""));
    if (name && tn_set_has(&o->names, hash) && !tn_set_marked(&o->names, hash)) {
        bool there = tn_set_mark(&o->names, hash, true);
        (void)there;
        o->unmarked--;
    }
}

static tn_rc use_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    use(user, entry->file.file_name);
    for (uint32_t i = 0; i < entry->file.extra_files.count; i++) {
        use(user, entry->file.extra_files.items[i]);
    }
    return TN_OK;
}

/* Whether the snapshot is gone, or on its way: then its files may be, too. */
static tn_rc look_again(struct tn_orphan_run *o, bool *gone, struct tn_err *err)
{
    struct tn_io *io = o->worker->io;
    uint64_t size;
    int64_t earliest = 0;
    tn_rc rc = io->vtable->stat(io, o->path, &size, err);
    if (rc == TN_OK && o->snapshot_id > 0) {
        size_t mark = tn_arena_mark(&o->worker->arena);
        rc = tn_snapshot_earliest(io, o->home, &o->worker->arena, &earliest, err);
        tn_arena_reset(&o->worker->arena, mark);
    }
    *gone = rc == TN_ABSENT || (rc == TN_OK && o->snapshot_id > 0 && o->snapshot_id < earliest);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc check_missing(struct tn_orphan_run *o, const char *name, tn_rc rc, struct tn_err *err)
{
    bool gone = o->may_lack;
    if (rc != TN_ABSENT || gone) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    rc = look_again(o, &gone, err);
    return rc != TN_OK || gone
               ? rc
               : tn_err_set(err, TN_CORRUPT, 0,
                            "%s: %s is missing, so what it reaches isn't known; fsck says more",
                            o->path, name);
}

static tn_rc use_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct tn_orphan_run *o = user;
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(meta->file_name));
    use(o, meta->file_name);
    if (o->unmarked == 0 || tn_set_has(&o->read, hash)) {
        return TN_OK;
    }
    tn_rc rc = tn_manifest_each(o->spec->root, meta, o->worker, use_entry, o, err);
    if (rc == TN_OK) {
        bool noted = tn_set_add(&o->read, hash);
        (void)noted;
    }
    return check_missing(o, meta->file_name, rc, err);
}

static tn_rc use_lists(struct tn_orphan_run *o, const struct tn_snapshot *snapshot, enum kind kind,
                       struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        if (!lists[i].name) {
            continue;
        }
        bool changelog = i == TN_LIST_COUNT - 1;
        o->may_lack = kind == CHANGELOG || (changelog && kind != SNAPSHOT);
        use(o, lists[i].name);
        rc = tn_list_each_meta(o->spec->root, lists[i].name, lists[i].size, o->worker, use_manifest,
                               o, err);
        rc = check_missing(o, lists[i].name, rc, err);
    }
    return rc;
}

static tn_rc use_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)err;
    use(user, entry->file_name);
    return TN_OK;
}

static tn_rc use_indexes(struct tn_orphan_run *o, const struct tn_snapshot *snapshot,
                         enum kind kind, struct tn_err *err)
{
    const char *name = snapshot->index_manifest;
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(name ? name : ""));
    use(o, name);
    if (!name || o->unmarked == 0 || tn_set_has(&o->read, hash)) {
        return TN_OK;
    }
    o->may_lack = kind == CHANGELOG;
    tn_rc rc = tn_index_each(o->spec->root, name, o->worker, use_index, o, err);
    if (rc == TN_OK) {
        bool noted = tn_set_add(&o->read, hash);
        (void)noted;
    }
    return check_missing(o, name, rc, err);
}

static tn_rc use_snapshot(struct tn_orphan_run *o, const char *path, enum kind kind,
                          struct tn_err *err)
{
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_read_path(o->worker->io, path, &o->worker->arena, &snapshot, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    o->path = path;
    o->snapshot_id = kind == SNAPSHOT || kind == BRANCH_SNAPSHOT ? snapshot.id : 0;
    use(o, snapshot.statistics);
    rc = use_indexes(o, &snapshot, kind, err);
    return rc == TN_OK ? use_lists(o, &snapshot, kind, err) : rc;
}

static tn_rc use_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct folder *folder = user;
    struct tn_orphan_run *o = folder->o;
    struct tn_arena *arena = &o->worker->arena;
    if (is_dir || !tn_name_begins(name, folder->prefix)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, o->home, folder->name, name);
    tn_rc rc = path ? use_snapshot(o, path, folder->kind, err) : tn_orphan_no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_orphan_mark_used(struct tn_orphan_run *o, const char *home, struct tn_err *err)
{
    struct folder folders[] = {
        {o, TN_DIR_SNAPSHOT, "snapshot-", home == o->spec->root ? SNAPSHOT : BRANCH_SNAPSHOT},
        {o, TN_DIR_TAG, "tag-", TAG},
        {o, TN_DIR_CHANGELOG, "changelog-", CHANGELOG},
    };
    tn_rc rc = TN_OK;
    o->home = home;
    for (size_t i = 0; rc == TN_OK && i < sizeof folders / sizeof folders[0]; i++) {
        rc = tn_orphan_list(o, home, folders[i].name, use_name, &folders[i], err);
    }
    return rc;
}
