#include "changelog/diff.h"

enum { ALIGN = 64 }; /* what rounding may take off half an arena or window */

/* ---- files of both sides ---- */

static tn_rc count_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)entry;
    (void)err;
    ++*(uint64_t *)user;
    return TN_OK;
}

static tn_rc note_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    if (!tn_set_add(user, tn_entry_identity(entry, NULL))) {
        return tn_err_set(err, TN_CORRUPT, 0, "a snapshot whose files change");
    }
    return TN_OK;
}

static tn_rc gather_files(const struct tn_scan_spec *scan, const struct tn_snapshot *snapshot,
                          struct tn_worker *worker, struct tn_set *files, struct tn_err *err)
{
    uint64_t count = 0;
    tn_rc rc =
        tn_live_each(scan->root, snapshot, scan->schema, NULL, worker, count_file, &count, err);
    if (rc == TN_OK) {
        rc = tn_set_init(files, count, &worker->arena, err);
    }
    return rc == TN_OK && count > 0 ? tn_live_each(scan->root, snapshot, scan->schema, NULL, worker,
                                                   note_file, files, err)
                                    : rc;
}

static bool not_shared(const void *user, const struct tn_entry *entry)
{
    return !tn_set_has(user, tn_entry_identity(entry, NULL));
}

/* ---- opening ---- */

/* What one side works in. */
struct half {
    unsigned char *memory;
    size_t size;
    unsigned char *window;
    size_t window_size;
};

static tn_rc open_side(struct tn_diff *diff, struct tn_diff_side *side,
                       const struct tn_snapshot *snapshot, const struct half *half,
                       struct tn_arena *arena, struct tn_err *err)
{
    struct tn_scan_spec scan = diff->spec;
    scan.snapshot = snapshot;
    scan.fields = NULL; /* rows are compared as a whole */
    scan.field_count = 0;
    scan.predicate = NULL;
    scan.keep_deletes = diff->with_deletes;
    scan.filter = &side->filter;
    side->filter = (struct tn_plan_filter){not_shared, &side->others, false};
    side->worker = *diff->worker;
    tn_arena_init(&side->worker.arena, half->memory, half->size);
    side->used = true; /* the first call takes the first row */
    return tn_scan_open(&side->scan, &scan, half->window, half->window_size, arena, &side->worker,
                        err);
}

static tn_rc open_sides(struct tn_diff *diff, const struct tn_diff_spec *spec, void *window,
                        size_t window_size, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_arena *whole = &diff->worker->arena;
    size_t size = tn_arena_free(whole) / 2 / ALIGN * ALIGN;
    size_t window_half = window_size / 2 / ALIGN * ALIGN;
    unsigned char *memory = size > ALIGN ? tn_arena_take_raw(whole, 2 * (size - ALIGN)) : NULL;
    if (!memory) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to compare two snapshots");
    }
    struct half first = {memory, size - ALIGN, window, window_half};
    struct half second = {memory + size - ALIGN, size - ALIGN, first.window + window_half,
                          window_half};
    tn_rc rc = open_side(diff, &diff->before, spec->before, &first, arena, err);
    return rc == TN_OK ? open_side(diff, &diff->after, spec->after, &second, arena, err) : rc;
}

/* All columns are read; those that were asked for are shown. */
static tn_rc show_columns(struct tn_diff *diff, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_scan_spec *spec = &diff->spec;
    diff->projection = diff->after.scan.projection;
    if (!spec->fields) {
        return TN_OK;
    }
    void *memory;
    tn_rc rc =
        tn_arena_need(arena, (spec->field_count + 1) * sizeof(uint32_t), "columns", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t *index = memory;
    for (uint32_t i = 0; i < spec->field_count; i++) {
        index[i] = (uint32_t)diff->projection.column_of[spec->fields[i]];
    }
    diff->projection.columns = (struct tn_columns){index, spec->field_count};
    return TN_OK;
}

tn_rc tn_diff_open(struct tn_diff *diff, const struct tn_diff_spec *spec, void *window,
                   size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                   struct tn_err *err)
{
    memset(diff, 0, sizeof *diff); /* too large for a literal on the stack */
    diff->spec = *spec->scan;
    diff->with_deletes = spec->with_deletes;
    diff->worker = worker;
    diff->mark = tn_arena_mark(&worker->arena);
    tn_rc rc = gather_files(spec->scan, spec->before, worker, &diff->after.others, err);
    if (rc == TN_OK) {
        rc = gather_files(spec->scan, spec->after, worker, &diff->before.others, err);
    }
    if (rc == TN_OK) {
        rc = open_sides(diff, spec, window, window_size, arena, err);
    }
    if (rc == TN_OK) {
        rc = show_columns(diff, arena, err);
    }
    if (rc != TN_OK) {
        tn_arena_reset(&worker->arena, diff->mark);
    }
    return rc;
}

/* ---- rows ---- */

static tn_rc advance(struct tn_diff_side *side, struct tn_err *err)
{
    if (!side->used) {
        return TN_OK;
    }
    tn_rc rc = tn_scan_next(&side->scan, &side->kv, err);
    side->has = rc == TN_OK;
    side->used = false;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static int compare_heads(const struct tn_diff *diff)
{
    const struct tn_plan_bucket *a = diff->before.scan.bucket;
    const struct tn_plan_bucket *b = diff->after.scan.bucket;
    int c = tn_bytes_compare(a->partition, b->partition);
    if (c == 0 && a->number != b->number) {
        c = a->number < b->number ? -1 : 1;
    }
    return c != 0 ? c : tn_kv_compare(&diff->projection.order, &diff->before.kv, &diff->after.kv);
}

static bool adds(const struct tn_kv *kv)
{
    return !tn_row_kind_retracts(kv->kind);
}

/* A later delete is none that was there: between the two the row may have come back, in a file that
 * both snapshots hold. */
static bool same(const struct tn_kv *a, const struct tn_kv *b)
{
    return adds(a) == adds(b) && (adds(a) || a->sequence == b->sequence) &&
           a->row.size == b->row.size && memcmp(a->row.data, b->row.data, a->row.size) == 0;
}

/* What the heads say: true with a row. Both are taken when they hold one key. */
static bool decide(struct tn_diff *diff, struct tn_kv *kv)
{
    struct tn_diff_side *before = &diff->before;
    struct tn_diff_side *after = &diff->after;
    int c = !before->has ? 1 : !after->has ? -1 : compare_heads(diff);
    before->used = before->has && c <= 0;
    after->used = after->has && c >= 0;
    if (c < 0) {
        *kv = before->kv;
        kv->kind = TN_ROW_DELETE;
        return diff->with_deletes && adds(&before->kv);
    }
    *kv = after->kv;
    return (c > 0 || !same(&before->kv, &after->kv)) && (diff->with_deletes || adds(kv));
}

static bool matches(const struct tn_diff *diff, struct tn_row row)
{
    return !diff->spec.predicate ||
           tn_predicate_match(diff->spec.predicate, &diff->projection.layout,
                              diff->projection.column_of, row);
}

tn_rc tn_diff_next(struct tn_diff *diff, struct tn_kv *kv, struct tn_err *err)
{
    bool keyed = diff->spec.schema->primary_keys.count > 0;
    for (;;) {
        tn_rc rc = keyed ? advance(&diff->before, err) : TN_OK;
        if (rc == TN_OK) {
            rc = advance(&diff->after, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
        if (!diff->before.has && !diff->after.has) {
            return TN_ABSENT;
        }
        struct tn_kv found;
        if (decide(diff, &found) && matches(diff, found.row)) {
            *kv = found;
            return TN_OK;
        }
    }
}

void tn_diff_close(struct tn_diff *diff)
{
    tn_scan_close(&diff->before.scan);
    tn_scan_close(&diff->after.scan);
    tn_arena_reset(&diff->worker->arena, diff->mark);
}
