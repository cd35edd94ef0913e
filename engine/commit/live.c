#include "commit/live.h"

#include <inttypes.h>

#include "base/check.h"
#include "commit/set.h"
#include "file/names.h"
#include "schema/row.h"

struct scan {
    const char *root;
    const struct tn_schema *schema; /* NULL: manifests are not skipped by partition */
    const struct tn_live_filter *filter;
    struct tn_worker *worker;
    bool deletes_only; /* manifests without DELETE entries are passed over */
    tn_live_fn *each;
    void *user;
};

/* ---- lists ---- */

tn_rc tn_list_each_meta(const char *root, const char *list, int64_t list_size,
                        struct tn_worker *worker, tn_list_meta_fn *each, void *user,
                        struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    struct tn_manifest_reader reader;
    const char *path = tn_name_in(&worker->arena, root, TN_DIR_MANIFEST, list);
    tn_rc rc = path ? tn_manifest_open(&reader, path, list_size, true, worker, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    if (rc != TN_OK) {
        tn_arena_reset(&worker->arena, mark);
        return rc;
    }
    while (rc == TN_OK) {
        struct tn_manifest_meta meta;
        size_t record = tn_arena_mark(&worker->arena);
        rc = tn_manifest_next_meta(&reader, &worker->arena, &meta, err);
        if (rc == TN_ABSENT) {
            rc = TN_OK;
            break;
        }
        if (rc == TN_OK) {
            rc = each(user, &meta, err);
        }
        tn_arena_reset(&worker->arena, record);
    }
    tn_manifest_close(&reader);
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

tn_rc tn_index_each(const char *root, const char *index_manifest, struct tn_worker *worker,
                    tn_index_fn *each, void *user, struct tn_err *err)
{
    struct tn_arena *arena = &worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_manifest_reader reader;
    const char *path = tn_name_in(arena, root, TN_DIR_MANIFEST, index_manifest);
    tn_rc rc = path ? tn_manifest_open_index(&reader, path, worker, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    if (rc != TN_OK) {
        tn_arena_reset(arena, mark);
        return rc;
    }
    while (rc == TN_OK) {
        struct tn_index_entry entry;
        size_t record = tn_arena_mark(arena);
        rc = tn_manifest_next_index(&reader, arena, &entry, err);
        if (rc == TN_ABSENT) {
            rc = TN_OK;
            break;
        }
        if (rc == TN_OK) {
            rc = each(user, &entry, err);
        }
        tn_arena_reset(arena, record);
    }
    tn_manifest_close(&reader);
    tn_arena_reset(arena, mark);
    return rc;
}

void tn_lists_of(const struct tn_snapshot *snapshot, struct tn_list lists[TN_LIST_COUNT])
{
    lists[0] = (struct tn_list){snapshot->base_manifest_list,
                                tn_manifest_size(snapshot->base_manifest_list_size)};
    lists[1] = (struct tn_list){snapshot->delta_manifest_list,
                                tn_manifest_size(snapshot->delta_manifest_list_size)};
    lists[2] = (struct tn_list){snapshot->changelog_manifest_list,
                                tn_manifest_size(snapshot->changelog_manifest_list_size)};
}

tn_rc tn_live_each_meta(const char *root, const struct tn_snapshot *snapshot,
                        struct tn_worker *worker, tn_list_meta_fn *each, void *user,
                        struct tn_err *err)
{
    tn_rc rc = tn_list_each_meta(root, snapshot->base_manifest_list,
                                 tn_manifest_size(snapshot->base_manifest_list_size), worker, each,
                                 user, err);
    if (rc == TN_OK) {
        rc = tn_list_each_meta(root, snapshot->delta_manifest_list,
                               tn_manifest_size(snapshot->delta_manifest_list_size), worker, each,
                               user, err);
    }
    return rc;
}

/* ---- filters ---- */

/* False only when the statistics exclude the value; statistics that can't be read exclude nothing.
 */
static bool column_may_hold(const struct tn_type *type, const struct tn_value *value,
                            const struct tn_value *min, const struct tn_value *max)
{
    if (value->null || min->null || max->null) {
        return true;
    }
    return tn_value_compare(type, value, min) >= 0 && tn_value_compare(type, value, max) <= 0;
}

static bool partition_may_be_in(const struct scan *scan, struct tn_bytes partition,
                                const struct tn_stats *stats)
{
    const struct tn_columns *keys = &scan->schema->partition_keys;
    struct tn_arena *arena = &scan->worker->arena;
    struct tn_err ignored;
    size_t mark = tn_arena_mark(arena);
    struct tn_type *types = tn_arena_take(arena, keys->count * sizeof *types);
    struct tn_value *values = tn_arena_take(arena, 3 * keys->count * sizeof *values);
    bool may = true;
    if (types && values) {
        for (uint32_t i = 0; i < keys->count; i++) {
            types[i] = scan->schema->fields[keys->index[i]].type;
        }
        struct tn_value *min = values + keys->count;
        struct tn_value *max = min + keys->count;
        bool known =
            tn_binary_to_values(partition, types, keys->count, values, &ignored) == TN_OK &&
            tn_binary_to_values(stats->min, types, keys->count, min, &ignored) == TN_OK &&
            tn_binary_to_values(stats->max, types, keys->count, max, &ignored) == TN_OK;
        for (uint32_t i = 0; known && may && i < keys->count; i++) {
            may = column_may_hold(&types[i], &values[i], &min[i], &max[i]);
        }
    }
    tn_arena_reset(arena, mark);
    return may;
}

static bool some_partition_may_be_in(const struct scan *scan, const struct tn_stats *stats)
{
    const struct tn_live_filter *filter = scan->filter;
    for (uint32_t i = 0; i < filter->partition_count; i++) {
        if (partition_may_be_in(scan, filter->partitions[i], stats)) {
            return true;
        }
    }
    return false;
}

static bool wants_manifest(const struct scan *scan, const struct tn_manifest_meta *meta)
{
    const struct tn_live_filter *filter = scan->filter;
    if (scan->deletes_only && meta->deleted_count == 0) {
        return false;
    }
    if (filter && filter->has_bucket) {
        if ((meta->min_bucket.present && filter->bucket < meta->min_bucket.value) ||
            (meta->max_bucket.present && filter->bucket > meta->max_bucket.value)) {
            return false;
        }
        if (scan->schema && scan->schema->partition_keys.count > 0 &&
            !partition_may_be_in(scan, filter->partition, &meta->partition_stats)) {
            return false;
        }
    }
    if (filter && filter->partition_count > 0 && scan->schema &&
        scan->schema->partition_keys.count > 0 &&
        !some_partition_may_be_in(scan, &meta->partition_stats)) {
        return false;
    }
    return !filter || !filter->manifest || filter->manifest(filter->user, meta);
}

static bool wants_entry(const struct scan *scan, const struct tn_entry *entry)
{
    const struct tn_live_filter *filter = scan->filter;
    if (!filter) {
        return true;
    }
    if (filter->has_bucket &&
        (entry->bucket != filter->bucket || !tn_bytes_equal(entry->partition, filter->partition))) {
        return false;
    }
    return !filter->entry || filter->entry(filter->user, entry);
}

/* ---- manifests ---- */

static tn_rc each_entry_of(const struct scan *scan, struct tn_manifest_reader *reader,
                           struct tn_err *err)
{
    struct tn_arena *arena = &scan->worker->arena;
    for (;;) {
        struct tn_entry entry;
        size_t mark = tn_arena_mark(arena);
        tn_rc rc = tn_manifest_next_entry(reader, arena, &entry, err);
        if (rc == TN_ABSENT) {
            return TN_OK;
        }
        if (rc == TN_OK && wants_entry(scan, &entry)) {
            rc = scan->each(scan->user, &entry, err);
        }
        tn_arena_reset(arena, mark);
        if (rc != TN_OK) {
            return rc;
        }
    }
}

static tn_rc scan_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    const struct scan *scan = user;
    struct tn_arena *arena = &scan->worker->arena;
    if (!wants_manifest(scan, meta)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    struct tn_manifest_reader reader;
    const char *path = tn_name_in(arena, scan->root, TN_DIR_MANIFEST, meta->file_name);
    tn_rc rc = path ? tn_manifest_open(&reader, path, meta->file_size, false, scan->worker, err)
                    : tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    if (rc == TN_OK) {
        rc = each_entry_of(scan, &reader, err);
        tn_manifest_close(&reader);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_list_each(const char *root, const char *list, int64_t list_size,
                   const struct tn_live_filter *filter, struct tn_worker *worker, tn_live_fn *each,
                   void *user, struct tn_err *err)
{
    struct scan scan = {root, NULL, filter, worker, false, each, user};
    return tn_list_each_meta(root, list, list_size, worker, scan_manifest, &scan, err);
}

tn_rc tn_manifest_each(const char *root, const struct tn_manifest_meta *meta,
                       struct tn_worker *worker, tn_live_fn *each, void *user, struct tn_err *err)
{
    struct scan scan = {root, NULL, NULL, worker, false, each, user};
    return scan_manifest(&scan, meta, err);
}

/* ---- what is live ---- */

struct live {
    struct scan scan; /* what the caller gets is decided here, too */
    struct tn_set deleted;
    uint64_t delete_count;
    tn_live_fn *each;
    void *user;
};

static tn_rc sum_deletes(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct live *live = user;
    if (wants_manifest(&live->scan, meta)) {
        uint64_t count = meta->deleted_count > 0 ? (uint64_t)meta->deleted_count : 0;
        live->delete_count += count;
        if (live->delete_count < count) {
            live->delete_count = UINT64_MAX;
        }
    }
    return TN_OK;
}

static tn_rc count_delete(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct live *live = user;
    live->delete_count += entry->kind == TN_ENTRY_DELETE ? 1 : 0;
    return TN_OK;
}

static tn_rc add_delete(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct live *live = user;
    if (entry->kind == TN_ENTRY_DELETE &&
        !tn_set_add(&live->deleted, tn_entry_identity(entry, &live->scan.worker->arena))) {
        return tn_err_set(err, TN_CORRUPT, 0, "more DELETE entries than the manifest lists say");
    }
    return TN_OK;
}

static tn_rc give_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct live *live = user;
    if (entry->kind != TN_ENTRY_ADD ||
        (live->deleted.count > 0 &&
         tn_set_has(&live->deleted, tn_entry_identity(entry, &live->scan.worker->arena)))) {
        return TN_OK;
    }
    return live->each(live->user, entry, err);
}

/* The lists say how many DELETE entries there are, not how many pass the filter; those are counted
 * only when room for all of them is too much to ask. */
static tn_rc make_set(struct live *live, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_arena *arena = &live->scan.worker->arena;
    live->scan.deletes_only = true;
    tn_rc rc =
        tn_live_each_meta(live->scan.root, snapshot, live->scan.worker, sum_deletes, live, err);
    if (rc == TN_OK && tn_set_size(live->delete_count) > tn_arena_free(arena) / 2) {
        live->delete_count = 0;
        live->scan.each = count_delete;
        rc = tn_live_each_meta(live->scan.root, snapshot, live->scan.worker, scan_manifest,
                               &live->scan, err);
    }
    if (rc == TN_OK) {
        rc = tn_set_init(&live->deleted, live->delete_count, arena, err);
    }
    return rc;
}

tn_rc tn_live_each(const char *root, const struct tn_snapshot *snapshot,
                   const struct tn_schema *schema, const struct tn_live_filter *filter,
                   struct tn_worker *worker, tn_live_fn *each, void *user, struct tn_err *err)
{
    struct live live = {
        .scan = {root, schema, filter, worker, false, NULL, NULL}, .each = each, .user = user};
    size_t mark = tn_arena_mark(&worker->arena);
    live.scan.user = &live;
    tn_rc rc = make_set(&live, snapshot, err);
    if (rc == TN_OK && live.delete_count > 0) {
        live.scan.each = add_delete;
        rc = tn_live_each_meta(root, snapshot, worker, scan_manifest, &live.scan, err);
    }
    if (rc == TN_OK) {
        live.scan.deletes_only = false;
        live.scan.each = give_live;
        rc = tn_live_each_meta(root, snapshot, worker, scan_manifest, &live.scan, err);
    }
    tn_arena_reset(&worker->arena, mark);
    rc = tn_err_named(err, rc);
    return rc == TN_CORRUPT ? tn_err_in(err, "snapshot-%" PRId64, snapshot->id) : rc;
}
