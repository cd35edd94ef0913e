#include <inttypes.h>

#include "base/poison.h"
#include "file/names.h"
#include "file/schemas.h"
#include "read/scan.h"
#include "table/fsck_private.h"

enum {
    WINDOW_MIN = 4096,
    ROW_ROOM = 1024 /* of a row that is kept, to begin with */
};

/* One snapshot, read as readers do. */
struct merge {
    struct tn_fsck *f;
    struct tn_scan scan;
    struct tn_schemas schemas;
    struct tn_options options;
    void *window; /* of the heap, for the plan */
    size_t window_size;
    unsigned char *last; /* of the heap: the row before, in its bucket */
    uint32_t last_room;
    uint32_t last_size;
    const struct tn_plan_bucket *bucket; /* that it is of */
    int32_t number;
    struct tn_hash_128 partition;
    uint64_t rows;
    bool unsorted;
};

/* ---- a row ---- */

static bool same_bucket(struct merge *m)
{
    const struct tn_plan_bucket *now = m->scan.bucket;
    struct tn_hash_128 partition = tn_hash_128(now->partition);
    bool same = m->bucket && m->number == now->number && m->partition.high == partition.high &&
                m->partition.low == partition.low;
    m->bucket = now;
    m->number = now->number;
    m->partition = partition;
    return same;
}

static tn_rc keep_row(struct merge *m, struct tn_row row, struct tn_err *err)
{
    if (row.size > m->last_room) {
        size_t room = (size_t)row.size + row.size / 2 + ROW_ROOM;
        void *made = tn_heap_resize(m->f->spec->heap, m->last, room);
        if (!made) {
            return tn_fsck_stop(m->f, tn_err_set(err, TN_AGAIN, 0,
                                                 "fsck: no room for a row of %u bytes", row.size));
        }
        m->last = made;
        m->last_room = (uint32_t)room;
    }
    memcpy(m->last, row.data, row.size);
    m->last_size = row.size;
    return TN_OK;
}

static tn_rc check_row(struct merge *m, const struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_order *order = &m->scan.projection.order;
    m->rows++;
    if (!m->f->keyed) {
        return TN_OK;
    }
    if (same_bucket(m)) {
        struct tn_row last = {m->last, m->last_size};
        m->unsorted = m->unsorted || tn_row_compare(order->layout, order->keys, last, kv->row) >= 0;
    }
    return keep_row(m, kv->row, err);
}

/* ---- a snapshot ---- */

static tn_rc scan_rows(struct merge *m, const struct tn_scan_spec *spec, struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    struct tn_kv kv;
    tn_rc rc =
        tn_scan_open(&m->scan, spec, m->window, m->window_size, f->spec->arena, f->worker, err);
    if (rc != TN_OK) {
        return rc;
    }
    while (rc == TN_OK) {
        rc = tn_scan_next(&m->scan, &kv, err);
        rc = rc == TN_OK ? check_row(m, &kv, err) : rc;
    }
    tn_scan_close(&m->scan);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* All columns that can be read. */
static tn_rc name_fields(struct merge *m, struct tn_scan_spec *spec, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(m->f->spec->arena, (spec->schema->field_count + 1) * sizeof(uint32_t),
                             "fsck: columns", &memory, err);
    if (rc != TN_OK) {
        return tn_fsck_stop(m->f, rc);
    }
    uint32_t *fields = memory;
    for (uint32_t i = 0; i < spec->schema->field_count; i++) {
        if (!tn_type_nested(spec->schema->fields[i].type.kind)) {
            fields[spec->field_count++] = i;
        }
    }
    spec->fields = fields;
    return TN_OK;
}

static tn_rc read_merged(struct merge *m, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    const struct tn_schema *newest;
    struct tn_scan_spec spec = {
        .root = f->root, .snapshot = snapshot, .options = &m->options, .schemas = &m->schemas};
    tn_schemas_init(&m->schemas, f->io, f->home, f->spec->arena);
    tn_rc rc = tn_schemas_newest(&m->schemas, &newest, err);
    rc = rc == TN_OK ? tn_options_read(newest, TN_OPTIONS_READ, f->spec->arena, &m->options, err)
                     : rc;
    rc = rc == TN_OK ? tn_schemas_load(&m->schemas, snapshot->schema_id, &spec.schema, err) : rc;
    rc = rc == TN_OK ? name_fields(m, &spec, err) : rc;
    if (rc == TN_OK) {
        f->keyed = newest->primary_keys.count > 0;
        rc = scan_rows(m, &spec, err);
    }
    return rc;
}

static tn_rc check_rows(struct merge *m, const char *path, const struct tn_snapshot *snapshot,
                        struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    struct tn_json_i64 total = snapshot->total_record_count;
    f->result->merged++;
    f->result->merged_rows += m->rows;
    tn_rc rc = TN_OK;
    if (m->unsorted) {
        rc = tn_fsck_problem(f, err, path, "merged: a key twice, or keys that are not sorted");
    }
    bool wrong = total.present &&
                 (f->keyed ? m->rows > (uint64_t)total.value : m->rows != (uint64_t)total.value);
    return rc == TN_OK && wrong
               ? tn_fsck_problem(f, err, path, "merged: %" PRIu64 " rows of %" PRId64 " records",
                                 m->rows, total.value)
               : rc;
}

static tn_rc check_merged(struct merge *m, const char *path, const struct tn_snapshot *snapshot,
                          struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    m->bucket = NULL;
    m->rows = 0;
    m->unsorted = false;
    tn_rc rc = read_merged(m, snapshot, err);
    if (rc == TN_OK) {
        return check_rows(m, path, snapshot, err);
    }
    /* All of it was good before, so a file may have gone with the snapshot. */
    rc = rc == TN_CORRUPT && !f->stopped ? tn_fsck_missing(f, err, path, "merged: %s", err->text)
                                         : tn_fsck_damage(f, path, "merged", rc, err);
    return rc == TN_OK && f->left_out ? tn_fsck_note_left_out(f, err) : rc;
}

/* One that can't be read any more went since it was checked. */
static tn_rc merge_path(struct merge *m, const char *path, int64_t id, struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    struct tn_snapshot snapshot;
    size_t mark = tn_arena_mark(&f->worker->arena);
    size_t kept = tn_arena_mark(f->spec->arena);
    tn_fsck_subject(f, path, id);
    tn_rc rc = tn_snapshot_read_path(f->io, path, &f->worker->arena, &snapshot, err);
    if (rc == TN_OK) {
        rc = check_merged(m, path, &snapshot, err);
    } else {
        rc = rc == TN_ABSENT ? TN_OK : tn_fsck_damage(f, path, NULL, rc, err);
    }
    tn_fsck_subject(f, NULL, 0);
    tn_arena_reset(f->spec->arena, kept);
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* ---- all of them ---- */

static tn_rc merge_snapshots(struct merge *m, struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    struct tn_arena *arena = &f->worker->arena;
    int64_t id = 0;
    int64_t last = 0;
    tn_rc rc = tn_snapshot_earliest(f->io, f->home, arena, &id, err);
    rc = rc == TN_OK ? tn_snapshot_latest(f->io, f->home, arena, &last, err) : rc;
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    while (rc == TN_OK && id > 0 && id <= last) {
        size_t mark = tn_arena_mark(arena);
        const char *path = tn_name_numbered(arena, f->home, TN_DIR_SNAPSHOT, "snapshot-", id);
        rc = path ? merge_path(m, path, id, err) : tn_fsck_no_path(f, err);
        tn_arena_reset(arena, mark);
        rc = rc == TN_OK ? tn_fsck_next_number(f, TN_DIR_SNAPSHOT, "snapshot-", id, &id, err) : rc;
    }
    return tn_fsck_stop(f, rc);
}

static tn_rc merge_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct merge *m = user;
    struct tn_arena *arena = &m->f->worker->arena;
    if (is_dir || strncmp(name, "tag-", 4) != 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, m->f->home, TN_DIR_TAG, name);
    tn_rc rc = path ? merge_path(m, path, 0, err) : tn_fsck_no_path(m->f, err);
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc merge_home(struct merge *m, const char *home, struct tn_err *err)
{
    struct tn_fsck *f = m->f;
    f->home = home;
    tn_rc rc = merge_snapshots(m, err);
    rc = rc == TN_OK ? tn_fsck_list(f, home, TN_DIR_TAG, merge_tag, m, err) : rc;
    rc = rc == TN_OK ? tn_fsck_tell_held(f, err) : rc;
    f->home = f->root;
    return rc;
}

static tn_rc merge_branch(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct merge *m = user;
    struct tn_arena *arena = &m->f->worker->arena;
    if (!is_dir || strncmp(name, "branch-", 7) != 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *home = tn_name_in(arena, m->f->root, TN_DIR_BRANCH, name);
    tn_rc rc = home ? merge_home(m, home, err) : tn_fsck_no_path(m->f, err);
    tn_arena_reset(arena, mark);
    return rc;
}

/* The largest piece of the heap that leaves room for findings. */
static tn_rc take_window(struct merge *m, struct tn_err *err)
{
    struct tn_heap *heap = m->f->spec->heap;
    size_t size = ((heap->size - heap->used) / 4 * 3) & ~(size_t)63;
    for (; !m->window && size >= WINDOW_MIN; size = size / 2 & ~(size_t)63) {
        m->window = tn_heap_take(heap, size);
        m->window_size = size;
    }
    return m->window ? TN_OK
                     : tn_fsck_stop(m->f, tn_err_set(err, TN_AGAIN, 0,
                                                     "fsck: no room to read a snapshot in"));
}

tn_rc tn_fsck_merged(struct tn_fsck *f, struct tn_err *err)
{
    void *memory;
    tn_arena_reset(f->spec->arena, f->schema_mark); /* the newest schema is read again */
    f->plan = (struct tn_fsck_plan){0};
    tn_rc rc = tn_arena_need(f->spec->arena, sizeof(struct merge), "fsck", &memory, err);
    if (rc != TN_OK) {
        return tn_fsck_stop(f, rc);
    }
    struct merge *m = memory;
    memset(m, 0, sizeof *m);
    m->f = f;
    rc = take_window(m, err);
    rc = rc == TN_OK ? merge_home(m, f->root, err) : rc;
    rc = rc == TN_OK ? tn_fsck_list(f, f->root, TN_DIR_BRANCH, merge_branch, m, err) : rc;
    tn_heap_give(f->spec->heap, m->last);
    if (m->window) {
        tn_unpoison(m->window, m->window_size); /* the plan's own heap was in it */
    }
    tn_heap_give(f->spec->heap, m->window);
    return rc;
}
