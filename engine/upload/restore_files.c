#include <inttypes.h>

#include "file/names.h"
#include "upload/restore_private.h"

/* ---- one file ---- */

static void note(const struct tn_restore *r)
{
    if (r->spec->note) {
        r->spec->note(r->spec->user, r->result);
    }
}

static bool counted_before(struct tn_restore *r, const char *path)
{
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(path));
    if (tn_set_has(&r->counted, hash)) {
        return true;
    }
    bool noted = tn_set_add(&r->counted, hash);
    (void)noted; /* beyond that many, some count twice */
    return false;
}

/* Files of an unknown size are few, and small. */
static tn_rc count(struct tn_restore *r, const char *path, int64_t size, struct tn_err *err)
{
    uint64_t there;
    if (counted_before(r, path)) {
        return TN_OK;
    }
    tn_rc rc = r->home->vtable->stat(r->home, path, &there, err);
    if (rc == TN_ABSENT) {
        r->result->files++;
        r->result->bytes += size > 0 ? (uint64_t)size : 0;
        rc = TN_OK;
    }
    return rc;
}

static tn_rc bring(struct tn_restore *r, const char *path, int64_t size, struct tn_err *err)
{
    uint64_t brought = 0;
    tn_rc rc = tn_directory_bring(&r->directory, r->spec->target, path, size, &brought, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: %s is missing", r->spec->target->name, path);
    }
    if (rc == TN_OK && brought > 0) {
        r->result->files_done++;
        r->result->bytes_done += brought;
        note(r);
    }
    return rc;
}

/* `size` -1: unknown. */
static tn_rc visit(struct tn_restore *r, const char *path, int64_t size, struct tn_err *err)
{
    if (!path) {
        return tn_restore_no_room(err);
    }
    return r->counting ? count(r, path, size, err) : bring(r, path, size, err);
}

static tn_rc visit_in(struct tn_restore *r, const char *dir, const char *name, int64_t size,
                      struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = name ? visit(r, tn_name_in(arena, r->spec->root, dir, name), size, err) : TN_OK;
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- of a snapshot: metadata ---- */

static tn_rc visit_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    return visit_in(user, TN_DIR_MANIFEST, meta->file_name, meta->file_size, err);
}

static tn_rc settle(struct tn_restore *r, struct tn_err *err)
{
    struct tn_target *home = &r->directory.target;
    return r->counting ? TN_OK : home->vtable->settle(home, err);
}

/* The lists first: they say which manifests there are. */
static tn_rc visit_metadata(struct tn_restore *r, const struct tn_snapshot *snapshot,
                            struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        rc = visit_in(r, TN_DIR_MANIFEST, lists[i].name, lists[i].size, err);
    }
    if (rc == TN_OK) {
        rc = visit_in(r, TN_DIR_MANIFEST, snapshot->index_manifest, -1, err);
    }
    if (rc == TN_OK) {
        rc = visit_in(r, TN_DIR_STATISTICS, snapshot->statistics, -1, err);
    }
    if (rc == TN_OK) {
        rc = settle(r, err);
    }
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        rc = lists[i].name ? tn_list_each_meta(r->spec->root, lists[i].name, lists[i].size,
                                               r->worker, visit_manifest, r, err)
                           : TN_OK;
    }
    return rc == TN_OK ? settle(r, err) : rc;
}

/* ---- of a snapshot: data, changelog and index files ---- */

struct data {
    struct tn_restore *r;
    const struct tn_schema *schema;
};

static tn_rc lies_outside(const char *name, const char *where, struct tn_err *err)
{
    return tn_err_set(err, TN_UNSUPPORTED, 0, "%s lies outside the table, at %s", name, where);
}

static tn_rc visit_data(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    const struct data *data = user;
    struct tn_restore *r = data->r;
    struct tn_arena *arena = &r->worker->arena;
    const struct tn_file_meta *meta = &entry->file;
    const char *dir;
    if (meta->external_path) {
        return lies_outside(meta->file_name, meta->external_path, err);
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_bucket(arena, r->spec->root, data->schema, &r->options, entry->partition,
                              entry->bucket, &dir, err);
    if (rc == TN_OK) {
        rc = visit(r, tn_arena_format(arena, "%s%s", dir, meta->file_name), meta->file_size, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < meta->extra_files.count; i++) {
        rc = visit(r, tn_arena_format(arena, "%s%s", dir, meta->extra_files.items[i]), -1, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc visit_added(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    return entry->kind == TN_ENTRY_ADD ? visit_data(user, entry, err) : TN_OK;
}

static tn_rc visit_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    const struct data *data = user;
    struct tn_restore *r = data->r;
    struct tn_arena *arena = &r->worker->arena;
    const char *dir;
    if (entry->kind != TN_ENTRY_ADD) {
        return TN_OK;
    }
    if (entry->external_path) {
        return lies_outside(entry->file_name, entry->external_path, err);
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_index(arena, r->spec->root, data->schema, &r->options, entry->partition,
                             entry->bucket, &dir, err);
    if (rc == TN_OK) {
        rc = visit(r, tn_arena_format(arena, "%s%s", dir, entry->file_name), entry->file_size, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc visit_files(struct tn_restore *r, const struct tn_snapshot *snapshot,
                         struct tn_err *err)
{
    struct data data = {r, NULL};
    const char *root = r->spec->root;
    tn_rc rc = tn_schemas_load(&r->schemas, snapshot->schema_id, &data.schema, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_CORRUPT, 0, "schema-%" PRId64 " is missing", snapshot->schema_id);
    }
    if (rc == TN_OK) {
        rc = tn_options_read_places(data.schema, &r->worker->arena, &r->options, err);
    }
    if (rc == TN_OK) {
        rc = tn_live_each(root, snapshot, data.schema, NULL, r->worker, visit_data, &data, err);
    }
    if (rc == TN_OK && snapshot->changelog_manifest_list) {
        rc = tn_list_each(root, snapshot->changelog_manifest_list,
                          tn_manifest_size(snapshot->changelog_manifest_list_size), NULL, r->worker,
                          visit_added, &data, err);
    }
    if (rc == TN_OK && snapshot->index_manifest) {
        rc = tn_index_each(root, snapshot->index_manifest, r->worker, visit_index, &data, err);
    }
    return rc;
}

/* ---- of all ---- */

typedef tn_rc visit_fn(struct tn_restore *r, const struct tn_snapshot *snapshot,
                       struct tn_err *err);

static tn_rc visit_snapshot(struct tn_restore *r, int64_t id, visit_fn *each, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_snapshot snapshot;
    tn_schemas_init(&r->schemas, &r->lake.io, r->spec->root, arena);
    tn_rc rc = tn_snapshot_read(&r->lake.io, r->spec->root, id, arena, &snapshot, err);
    if (rc == TN_OK) {
        rc = each(r, &snapshot, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "snapshot %" PRId64, id);
}

static tn_rc visit_all(struct tn_restore *r, int64_t first_id, int64_t last_id, visit_fn *each,
                       struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int64_t id = first_id; rc == TN_OK && id <= last_id; id++) {
        rc = visit_snapshot(r, id, each, err);
    }
    return rc;
}

static tn_rc check_room(struct tn_restore *r, struct tn_err *err)
{
    uint64_t room = 0;
    tn_rc rc = r->home->vtable->room(r->home, &room, err);
    uint64_t need = r->result->bytes - r->result->bytes_done;
    return rc == TN_OK && need > room
               ? tn_err_set(err, TN_FULL, 0,
                            "%" PRIu64 " bytes are missing here, and there is room for %" PRIu64,
                            need, room)
               : rc;
}

tn_rc tn_restore_bring_files(struct tn_restore *r, int64_t first_id, int64_t last_id,
                             struct tn_err *err)
{
    r->counting = true;
    tn_rc rc = r->spec->dry_run ? visit_all(r, first_id, last_id, visit_metadata, err) : TN_OK;
    if (!r->spec->dry_run) { /* what is missing can be told by what is read here */
        r->counting = false;
        rc = visit_all(r, first_id, last_id, visit_metadata, err);
        r->result->files = r->result->files_done;
        r->result->bytes = r->result->bytes_done;
        r->counting = true;
    }
    if (rc == TN_OK) {
        rc = visit_all(r, first_id, last_id, visit_files, err);
    }
    if (rc == TN_OK) {
        rc = check_room(r, err);
    }
    if (rc == TN_OK && !r->spec->dry_run) {
        r->counting = false;
        rc = visit_all(r, first_id, last_id, visit_files, err);
        rc = rc == TN_OK ? settle(r, err) : rc;
    }
    return rc;
}
