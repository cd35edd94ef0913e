#include "commit/expire_private.h"

#include "file/names.h"

enum { GONE = 512 };

static struct tn_hash_128 name_hash(const char *name)
{
    return tn_hash_128(tn_bytes_of(name));
}

static tn_rc each_list_meta(struct tn_expire_run *e, const struct tn_list *list,
                            tn_list_meta_fn *each, struct tn_err *err)
{
    return list->name
               ? tn_list_each_meta(e->spec->root, list->name, list->size, e->worker, each, e, err)
               : TN_OK;
}

static tn_rc count_meta(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)meta;
    (void)err;
    ((struct tn_expire_run *)user)->name_count++;
    return TN_OK;
}

static tn_rc count_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)entry;
    (void)err;
    ((struct tn_expire_run *)user)->name_count++;
    return TN_OK;
}

static tn_rc each_index(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                        tn_index_fn *each, struct tn_err *err)
{
    return snapshot->index_manifest
               ? tn_index_each(e->spec->root, snapshot->index_manifest, e->worker, each, e, err)
               : TN_OK;
}

/* The lists whose files a keeper keeps. The changelog of a tag, or of what a branch began with,
 * goes with the snapshot. */
static void kept_lists(const struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                       struct tn_list lists[TN_LIST_COUNT])
{
    tn_lists_of(snapshot, lists);
    if (e->keeps_copy) {
        lists[TN_LIST_COUNT - 1].name = NULL;
    }
}

/* A long-lived changelog may have no state any more, and has no index files. */
static tn_rc forgive_absence(const struct tn_expire_run *e, tn_rc rc)
{
    return rc == TN_ABSENT && e->keeps_record ? TN_OK : rc;
}

static tn_rc count_names(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                         struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    kept_lists(e, snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        rc = forgive_absence(e, each_list_meta(e, &lists[i], count_meta, err));
    }
    e->name_count += TN_LIST_COUNT + 2;
    return rc == TN_OK ? forgive_absence(e, each_index(e, snapshot, count_index, err)) : rc;
}

static tn_rc keep_metadata(struct tn_expire_run *e, const char *name, struct tn_err *err)
{
    if (name && !tn_set_add(&e->names, name_hash(name))) {
        return tn_err_set(err, TN_AGAIN, 0, "expire: a tag or branch was made meanwhile");
    }
    return TN_OK;
}

static tn_rc keep_meta(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    return keep_metadata(user, meta->file_name, err);
}

static tn_rc keep_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    return keep_metadata(user, entry->file_name, err);
}

static tn_rc keep_names(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                        struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = keep_metadata(e, snapshot->index_manifest, err);
    if (rc == TN_OK) {
        rc = forgive_absence(e, each_index(e, snapshot, keep_index, err));
    }
    if (rc == TN_OK) {
        rc = keep_metadata(e, snapshot->statistics, err);
    }
    kept_lists(e, snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        rc = keep_metadata(e, lists[i].name, err);
        if (rc == TN_OK) {
            rc = forgive_absence(e, each_list_meta(e, &lists[i], keep_meta, err));
        }
    }
    return rc;
}

static tn_rc each_keeper(struct tn_expire_run *e, tn_expire_more_fn *more,
                         tn_expire_snapshot_fn *each, struct tn_err *err)
{
    tn_rc rc = tn_expire_each_keeper(e, each, err);
    return rc == TN_OK && more ? more(e, each, err) : rc;
}

/* What goes joins the names, so that it is asked for once: where there is memory, there is room for
 * as many again. */
static tn_rc make_room(struct tn_expire_run *e, struct tn_err *err)
{
    uint64_t wanted = 2 * e->name_count + GONE;
    bool fits = tn_set_size(wanted) <= tn_expire_room(e) / 2;
    return tn_set_init(&e->names, fits ? wanted : e->name_count, &e->worker->arena, err);
}

tn_rc tn_expire_collect_names(struct tn_expire_run *e, tn_expire_more_fn *more, struct tn_err *err)
{
    e->name_count = 0;
    tn_rc rc = each_keeper(e, more, count_names, err);
    if (rc == TN_OK) {
        rc = make_room(e, err);
    }
    if (rc == TN_OK) {
        rc = each_keeper(e, more, keep_names, err);
    }
    return rc;
}

static bool stays_or_went(const struct tn_expire_run *e, const char *name)
{
    return !name || tn_set_has(&e->names, name_hash(name));
}

/* A name that is gone joins the set while there is room, to be asked for once. */
static void note_gone(struct tn_expire_run *e, const char *name)
{
    bool noted = tn_set_add(&e->names, name_hash(name));
    (void)noted;
}

static void remove_metadata(struct tn_expire_run *e, const char *dir, const char *name)
{
    struct tn_arena *arena = &e->worker->arena;
    if (stays_or_went(e, name)) {
        return;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, dir, name);
    e->result->metadata_files += tn_expire_remove_path(e, path) ? 1 : 0;
    tn_arena_reset(arena, mark);
    note_gone(e, name);
}

static tn_rc remove_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    struct tn_expire_run *e = user;
    struct tn_arena *arena = &e->worker->arena;
    const char *dir;
    if (entry->external_path || stays_or_went(e, entry->file_name)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_index(arena, e->spec->root, e->spec->schema, e->spec->options,
                             entry->partition, entry->bucket, &dir, err);
    if (rc == TN_OK) {
        const char *path = tn_arena_format(arena, "%s%s", dir, entry->file_name);
        e->result->metadata_files += tn_expire_remove_path(e, path) ? 1 : 0;
        note_gone(e, entry->file_name);
    }
    tn_arena_reset(arena, mark);
    return tn_expire_forgive(rc);
}

/* Its files before it. Source: Paimon, FileDeletionBase.collectUnusedIndexManifests. */
static tn_rc remove_indexes(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                            struct tn_err *err)
{
    if (stays_or_went(e, snapshot->index_manifest)) {
        return TN_OK;
    }
    tn_rc rc = tn_expire_forgive(each_index(e, snapshot, remove_index, err));
    if (rc == TN_OK) {
        remove_metadata(e, TN_DIR_MANIFEST, snapshot->index_manifest);
    }
    return rc;
}

static tn_rc remove_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    remove_metadata(user, TN_DIR_MANIFEST, meta->file_name);
    return TN_OK;
}

tn_rc tn_expire_remove_lists(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                             unsigned parts, struct tn_err *err)
{
    static const unsigned part_of[TN_LIST_COUNT] = {TN_EXPIRE_STATE, TN_EXPIRE_STATE,
                                                    TN_EXPIRE_CHANGELOG};
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = 0; i < TN_LIST_COUNT; i++) {
        lists[i].name = parts & part_of[i] ? lists[i].name : NULL;
    }
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        rc = tn_expire_forgive(each_list_meta(e, &lists[i], remove_manifest, err));
    }
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        remove_metadata(e, TN_DIR_MANIFEST, lists[i].name);
    }
    if (rc == TN_OK && parts & TN_EXPIRE_BESIDE) {
        rc = remove_indexes(e, snapshot, err);
        remove_metadata(e, TN_DIR_STATISTICS, snapshot->statistics);
    }
    return rc;
}

tn_rc tn_expire_remove_numbered(struct tn_expire_run *e, const char *folder, const char *prefix,
                                uint32_t *count, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    for (int64_t id = e->oldest; id < e->end; id++) {
        size_t mark = tn_arena_mark(arena);
        const char *path = tn_name_numbered(arena, e->spec->root, folder, prefix, id);
        if (!path) {
            return tn_expire_no_room(err);
        }
        *count += tn_expire_remove_path(e, path) ? 1 : 0;
        tn_arena_reset(arena, mark);
    }
    return TN_OK;
}
