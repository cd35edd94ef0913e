#include <inttypes.h>
#include <stddef.h>

#include "base/check.h"
#include "merge/engine.h"

/* How a version stands to the row that is there, by the ordering columns of a sequence group. */
enum standing {
    STANDING_EMPTY, /* all NULL: the group takes no part */
    STANDING_OLDER,
    STANDING_NEWER, /* or equal */
};

struct tn_reducer {
    const struct tn_engine *engine;
    uint32_t row_size_max;
    struct tn_value *values; /* the row that is being made; bytes are in a text or in the version */
    bool *begun;             /* per column: see tn_aggregation */
    unsigned char *standings; /* per group: enum standing, of the version */
    struct tn_buf texts[2];   /* bytes of values, and where the next ones are made */
    uint32_t text;            /* the one that holds the values' */
    bool bytes_changed;       /* by the version that is being added */
    bool counted;             /* a version was not passed over */
    bool deleted;             /* the row is removed, for now */
    bool inserted;            /* partial-update: an add was there */
    bool initialized;         /* partial-update: NOT NULL columns have values */
    struct tn_row whole;      /* deduplicate, first-row: one of the versions */
    struct tn_kv last;        /* the newest that counted, without its row */
    struct tn_err *err;       /* of the call */
};

/* ---- memory ---- */

static size_t aligned(size_t size)
{
    size_t unit = _Alignof(max_align_t);
    return (size + unit - 1) / unit * unit;
}

size_t tn_reducer_size(const struct tn_engine *engine, uint32_t row_size_max)
{
    size_t n = (size_t)engine->layout->column_count + 1;
    size_t unit = _Alignof(max_align_t); /* of the arena, that may begin anywhere */
    return unit + aligned(sizeof(struct tn_reducer)) + aligned(n * sizeof(struct tn_value)) +
           aligned(n) + aligned((size_t)engine->group_count + 1) + 2 * aligned(row_size_max);
}

tn_rc tn_reducer_make(const struct tn_engine *engine, uint32_t row_size_max, struct tn_arena *arena,
                      struct tn_reducer **reducer, struct tn_err *err)
{
    size_t n = (size_t)engine->layout->column_count + 1;
    void *memory = NULL;
    if (row_size_max < engine->layout->fixed_size) {
        return tn_err_set(err, TN_INVALID, 0, "a row takes %" PRIu32 " bytes, at most %" PRIu32,
                          engine->layout->fixed_size, row_size_max);
    }
    size_t size = tn_reducer_size(engine, row_size_max) - _Alignof(max_align_t);
    tn_rc rc = tn_arena_need(arena, size, "a reducer", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    unsigned char *at = memory;
    struct tn_reducer *r = memory;
    at += aligned(sizeof(struct tn_reducer));
    *r = (struct tn_reducer){.engine = engine, .row_size_max = row_size_max};
    r->values = (struct tn_value *)(void *)at;
    at += aligned(n * sizeof(struct tn_value));
    r->begun = (bool *)at;
    at += aligned(n);
    r->standings = at;
    at += aligned((size_t)engine->group_count + 1);
    tn_buf_init(&r->texts[0], at, row_size_max);
    tn_buf_init(&r->texts[1], at + aligned(row_size_max), row_size_max);
    *reducer = r;
    return TN_OK;
}

/* ---- errors ---- */

static const char *name_of(const struct tn_reducer *r, uint32_t column)
{
    return r->engine->layout->columns[column].name;
}

static tn_rc null_refused(const struct tn_reducer *r, uint32_t column)
{
    return tn_err_set(r->err, TN_INVALID, 0, "column '%s': NULL, and the column is NOT NULL",
                      name_of(r, column));
}

static tn_rc too_large(const struct tn_reducer *r, uint64_t size)
{
    const struct tn_row_layout *layout = r->engine->layout;
    uint32_t largest = 0;
    size_t most = 0;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct tn_value *value = &r->values[i];
        if (layout->columns[i].slot == TN_SLOT_BYTES && !value->null &&
            value->as.bytes.size > most) {
            most = value->as.bytes.size;
            largest = i;
        }
    }
    return tn_err_set(r->err, TN_INVALID, 0,
                      "column '%s': a merged row takes %" PRIu64 " bytes, %zu of them here, at "
                      "most %" PRIu32 "; what helps is more memory (--memory)",
                      name_of(r, largest), size, most, r->row_size_max);
}

/* ---- one column ---- */

static void set(struct tn_reducer *r, uint32_t column, const struct tn_value *value)
{
    r->values[column] = *value;
    r->bytes_changed |= r->engine->layout->columns[column].slot == TN_SLOT_BYTES;
}

/* Texts are made behind what the version has made before; the old value stays where it is. */
static tn_rc step(struct tn_reducer *r, uint32_t column, tn_aggregate_step *step_of,
                  const struct tn_value *old, const struct tn_value *in)
{
    const struct tn_engine_column *c = &r->engine->columns[column];
    struct tn_aggregation a = {.column = &r->engine->layout->columns[column],
                               .delimiter = c->delimiter,
                               .begun = &r->begun[column],
                               .text = &r->texts[1 - r->text],
                               .err = r->err};
    struct tn_bytes before = r->values[column].as.bytes;
    bool was_null = r->values[column].null;
    tn_rc rc = step_of(&a, old, in, &r->values[column]);
    if (rc != TN_OK) {
        return tn_err_in(r->err, "column '%s': %s", a.column->name, c->function_name);
    }
    if (a.column->slot == TN_SLOT_BYTES && !r->values[column].null) {
        struct tn_bytes now = r->values[column].as.bytes;
        r->bytes_changed |= was_null || now.data != before.data || now.size != before.size;
    }
    return TN_OK;
}

static tn_rc add_value(struct tn_reducer *r, uint32_t column, const struct tn_value *in)
{
    return step(r, column, r->engine->columns[column].function->add, &r->values[column], in);
}

static tn_rc add_late_value(struct tn_reducer *r, uint32_t column, const struct tn_value *in)
{
    return step(r, column, r->engine->columns[column].function->add, in, &r->values[column]);
}

static tn_rc no_retract(const struct tn_engine *engine, uint32_t column, enum tn_row_kind kind,
                        struct tn_err *err)
{
    const char *name = engine->layout->columns[column].name;
    return tn_err_set(err, TN_INVALID, 0,
                      "column '%s': %s can't take back a %s; 'fields.%s.ignore-retract' = 'true' "
                      "passes it over",
                      name, engine->columns[column].function_name, tn_row_kind_text(kind), name);
}

static tn_rc retract_value(struct tn_reducer *r, uint32_t column, const struct tn_kv *kv,
                           const struct tn_value *in)
{
    const struct tn_engine_column *c = &r->engine->columns[column];
    if (c->ignore_retract) {
        return TN_OK;
    }
    if (c->function->retract == NULL) {
        return no_retract(r->engine, column, kv->kind, r->err);
    }
    return step(r, column, c->function->retract, &r->values[column], in);
}

/* ---- the row ---- */

static void clear(struct tn_reducer *r)
{
    for (uint32_t i = 0; i < r->engine->layout->column_count; i++) {
        r->values[i] = (struct tn_value){.null = true};
    }
}

/* Of a row that is removed the NOT NULL columns stay, so that it is one. Since 1.4 Paimon keeps
 * all, and what was deleted shows through a later partial row until a compaction. Source:
 * Paimon 1.3, PartialUpdateMergeFunction.initRow. */
static tn_rc init_row(struct tn_reducer *r, const struct tn_kv *kv)
{
    const struct tn_row_layout *layout = r->engine->layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (layout->columns[i].type.nullable) {
            continue;
        }
        struct tn_value value;
        tn_row_get(layout, kv->row, i, &value);
        if (value.null) {
            return null_refused(r, i);
        }
        set(r, i, &value);
    }
    return TN_OK;
}

static tn_rc remove_row(struct tn_reducer *r, const struct tn_kv *kv)
{
    r->deleted = true;
    clear(r);
    return init_row(r, kv);
}

static bool in_buf(const struct tn_buf *buf, struct tn_bytes bytes)
{
    uintptr_t start = (uintptr_t)buf->data;
    uintptr_t at = (uintptr_t)bytes.data;
    return bytes.size > 0 && at >= start && at < start + buf->capacity;
}

/* Moves all bytes of the row to the text where the version has made some: afterwards nothing points
 * into the version. */
static tn_rc keep_bytes(struct tn_reducer *r)
{
    const struct tn_row_layout *layout = r->engine->layout;
    struct tn_buf *to = &r->texts[1 - r->text];
    uint64_t size = layout->fixed_size;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        bool bytes = layout->columns[i].slot == TN_SLOT_BYTES && !r->values[i].null;
        size += bytes ? r->values[i].as.bytes.size : 0;
    }
    if (size > r->row_size_max) {
        return too_large(r, size);
    }
    for (uint32_t i = 0; i < layout->column_count; i++) {
        struct tn_value *value = &r->values[i];
        if (layout->columns[i].slot != TN_SLOT_BYTES || value->null ||
            in_buf(to, value->as.bytes)) {
            continue;
        }
        const unsigned char *at = to->data + to->size;
        tn_buf_append(to, value->as.bytes.data, value->as.bytes.size);
        value->as.bytes.data = at;
    }
    TN_CHECK(!to->overflow);
    r->text = 1 - r->text;
    return TN_OK;
}

/* ---- partial-update ---- */

static tn_rc update(struct tn_reducer *r, const struct tn_kv *kv)
{
    const struct tn_row_layout *layout = r->engine->layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        struct tn_value value;
        if (tn_row_null(kv->row, i)) {
            if (!layout->columns[i].type.nullable) {
                return null_refused(r, i);
            }
            continue;
        }
        if (!r->engine->columns[i].key || r->values[i].null) {
            tn_row_get(layout, kv->row, i, &value);
            set(r, i, &value);
        }
    }
    return TN_OK;
}

static enum standing stand(const struct tn_reducer *r, const struct tn_engine_group *group,
                           const struct tn_kv *kv)
{
    const struct tn_row_layout *layout = r->engine->layout;
    bool empty = true;
    int order = 0;
    for (uint32_t i = 0; i < group->order.count; i++) {
        uint32_t column = group->order.index[i];
        struct tn_value value;
        tn_row_get(layout, kv->row, column, &value);
        empty = empty && value.null;
        if (order == 0) {
            order = tn_value_compare(&layout->columns[column].type, &value, &r->values[column]);
        }
    }
    return empty ? STANDING_EMPTY : order >= 0 ? STANDING_NEWER : STANDING_OLDER;
}

/* Where a version stands is asked before any column is touched. Paimon asks again at each column:
 * the answer is the same, since a group's ordering columns change all at once, and then are equal
 * to the version's. */
static void stand_all(struct tn_reducer *r, const struct tn_kv *kv)
{
    for (uint32_t i = 0; i < r->engine->group_count; i++) {
        r->standings[i] = (unsigned char)stand(r, &r->engine->groups[i], kv);
    }
}

/* A column of a sequence group. */
static tn_rc update_protected(struct tn_reducer *r, uint32_t column, const struct tn_value *in)
{
    const struct tn_engine_column *c = &r->engine->columns[column];
    switch ((enum standing)r->standings[c->group]) {
    case STANDING_EMPTY:
        return TN_OK;
    case STANDING_OLDER:
        return c->function ? add_late_value(r, column, in) : TN_OK;
    case STANDING_NEWER:
        break;
    }
    if (c->function) {
        return add_value(r, column, in);
    }
    set(r, column, in);
    return TN_OK;
}

static tn_rc update_groups(struct tn_reducer *r, const struct tn_kv *kv)
{
    const struct tn_row_layout *layout = r->engine->layout;
    tn_rc rc = TN_OK;
    stand_all(r, kv);
    for (uint32_t i = 0; i < layout->column_count && rc == TN_OK; i++) {
        const struct tn_engine_column *c = &r->engine->columns[i];
        struct tn_value value;
        tn_row_get(layout, kv->row, i, &value);
        if (c->group >= 0 && !c->key) {
            rc = update_protected(r, i, &value);
        } else if (c->function) {
            rc = add_value(r, i, &value);
        } else if (!value.null) {
            set(r, i, &value);
        }
    }
    return rc;
}

static tn_rc retract_protected(struct tn_reducer *r, uint32_t column, const struct tn_kv *kv)
{
    const struct tn_engine_column *c = &r->engine->columns[column];
    struct tn_value value;
    tn_row_get(r->engine->layout, kv->row, column, &value);
    if (c->function) {
        return retract_value(r, column, kv, &value);
    }
    if (r->standings[c->group] == STANDING_NEWER) {
        value = c->orders ? value : (struct tn_value){.null = true};
        set(r, column, &value);
    }
    return TN_OK;
}

/* Columns of no group stay as they are. */
static tn_rc retract_groups(struct tn_reducer *r, const struct tn_kv *kv)
{
    tn_rc rc = TN_OK;
    stand_all(r, kv);
    for (uint32_t i = 0; i < r->engine->layout->column_count && rc == TN_OK; i++) {
        const struct tn_engine_column *c = &r->engine->columns[i];
        if (c->group < 0 || c->key || r->standings[c->group] == STANDING_EMPTY) {
            continue;
        }
        if (c->orders && kv->kind == TN_ROW_DELETE && r->engine->groups[c->group].removes &&
            r->standings[c->group] == STANDING_NEWER) {
            return remove_row(r, kv);
        }
        rc = retract_protected(r, i, kv);
    }
    return rc;
}

static tn_rc no_deletes(enum tn_row_kind kind, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0,
                      "partial-update can't take a %s: 'ignore-delete', "
                      "'partial-update.remove-record-on-delete' or a sequence group says what "
                      "becomes of it",
                      tn_row_kind_text(kind));
}

static tn_rc retract_partial(struct tn_reducer *r, const struct tn_kv *kv)
{
    const struct tn_engine *engine = r->engine;
    tn_rc rc = r->initialized ? TN_OK : init_row(r, kv);
    r->initialized = true;
    if (rc != TN_OK || engine->ignore_delete) {
        return rc;
    }
    r->counted = true;
    r->last = *kv;
    if (engine->group_count > 0) {
        return retract_groups(r, kv);
    }
    if (engine->removes) {
        return kv->kind == TN_ROW_DELETE ? remove_row(r, kv) : TN_OK;
    }
    return no_deletes(kv->kind, r->err);
}

static tn_rc add_partial(struct tn_reducer *r, const struct tn_kv *kv)
{
    r->deleted = false;
    if (tn_row_kind_retracts(kv->kind)) {
        return retract_partial(r, kv);
    }
    r->counted = true;
    r->inserted = true;
    r->initialized = true;
    r->last = *kv;
    return r->engine->groups_shown ? update_groups(r, kv) : update(r, kv);
}

/* ---- aggregation ---- */

static tn_rc add_aggregation(struct tn_reducer *r, const struct tn_kv *kv)
{
    const struct tn_row_layout *layout = r->engine->layout;
    bool retracts = tn_row_kind_retracts(kv->kind);
    tn_rc rc = TN_OK;
    r->counted = true;
    r->last = *kv;
    r->deleted = r->engine->removes && kv->kind == TN_ROW_DELETE;
    if (r->deleted) {
        return remove_row(r, kv);
    }
    for (uint32_t i = 0; i < layout->column_count && rc == TN_OK; i++) {
        struct tn_value value;
        tn_row_get(layout, kv->row, i, &value);
        rc = retracts ? retract_value(r, i, kv, &value) : add_value(r, i, &value);
    }
    return rc;
}

/* ---- deduplicate, first-row ---- */

static tn_rc keep_version(struct tn_reducer *r, const struct tn_kv *kv)
{
    if (kv->row.size > r->row_size_max) {
        return tn_err_set(r->err, TN_INVALID, 0,
                          "a row takes %" PRIu32 " bytes, at most %" PRIu32
                          "; what helps is more memory (--memory)",
                          kv->row.size, r->row_size_max);
    }
    memcpy(r->texts[0].data, kv->row.data, kv->row.size);
    r->whole = (struct tn_row){r->texts[0].data, kv->row.size};
    r->last = *kv;
    r->counted = true;
    return TN_OK;
}

static tn_rc not_first(enum tn_row_kind kind, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0,
                      "first-row can't take a %s; 'ignore-delete' passes it over",
                      tn_row_kind_text(kind));
}

static tn_rc add_whole(struct tn_reducer *r, const struct tn_kv *kv)
{
    bool first = r->engine->kind == TN_MERGE_FIRST_ROW;
    if (tn_row_kind_retracts(kv->kind)) {
        if (r->engine->ignore_delete) {
            return TN_OK;
        }
        if (first) {
            return not_first(kv->kind, r->err);
        }
    }
    return first && r->counted ? TN_OK : keep_version(r, kv);
}

/* ---- what is never taken ---- */

static tn_rc check_aggregates(const struct tn_engine *engine, enum tn_row_kind kind,
                              struct tn_err *err)
{
    for (uint32_t i = 0; i < engine->layout->column_count; i++) {
        const struct tn_engine_column *c = &engine->columns[i];
        if (!c->ignore_retract && c->function->retract == NULL) {
            return no_retract(engine, i, kind, err);
        }
    }
    return TN_OK;
}

tn_rc tn_engine_check_kind(const struct tn_engine *engine, enum tn_row_kind kind,
                           struct tn_err *err)
{
    if (!tn_row_kind_retracts(kind)) {
        return TN_OK;
    }
    switch (engine->kind) {
    case TN_MERGE_FIRST_ROW:
        return engine->ignore_delete ? TN_OK : not_first(kind, err);
    case TN_MERGE_PARTIAL_UPDATE:
        return engine->ignore_delete || engine->removes || engine->group_count > 0
                   ? TN_OK
                   : no_deletes(kind, err);
    case TN_MERGE_AGGREGATION:
        return engine->removes && kind == TN_ROW_DELETE ? TN_OK
                                                        : check_aggregates(engine, kind, err);
    case TN_MERGE_DEDUPLICATE:
        break;
    }
    return TN_OK;
}

/* ---- the reducer ---- */

static bool makes_rows(const struct tn_reducer *r)
{
    return r->engine->columns != NULL;
}

void tn_reducer_begin(struct tn_reducer *reducer)
{
    reducer->counted = false;
    reducer->deleted = false;
    reducer->inserted = false;
    reducer->initialized = false;
    reducer->texts[0].size = 0;
    reducer->texts[1].size = 0;
    if (makes_rows(reducer)) {
        clear(reducer);
        memset(reducer->begun, 0, reducer->engine->layout->column_count * sizeof(bool));
    }
}

tn_rc tn_reducer_add(struct tn_reducer *reducer, const struct tn_kv *kv, struct tn_err *err)
{
    reducer->err = err;
    if (!makes_rows(reducer)) {
        return add_whole(reducer, kv);
    }
    struct tn_buf *next = &reducer->texts[1 - reducer->text];
    next->size = 0;
    next->overflow = false;
    reducer->bytes_changed = false;
    tn_rc rc = reducer->engine->kind == TN_MERGE_AGGREGATION ? add_aggregation(reducer, kv)
                                                             : add_partial(reducer, kv);
    return rc == TN_OK && reducer->bytes_changed ? keep_bytes(reducer) : rc;
}

/* A sum of up to 18 digits may have left its type on the way (see tn_decimal_add). Paimon shows it
 * as long as it is in no file, and reads NULL from an avro file that has it: so here it is NULL at
 * once, whether a compaction came or not. */
static void drop_large_decimal(const struct tn_column *c, struct tn_value *value)
{
    if (c->slot == TN_SLOT_DECIMAL64 && !value->null &&
        !tn_i128_fits(value->as.i128, c->type.precision)) {
        *value = (struct tn_value){.null = true};
    }
}

/* Functions can give NULL to a column that is NOT NULL: a retract, a product that is too large. */
static tn_rc check_row(const struct tn_reducer *r)
{
    const struct tn_row_layout *layout = r->engine->layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        drop_large_decimal(&layout->columns[i], &r->values[i]);
        if (r->values[i].null && !layout->columns[i].type.nullable) {
            return null_refused(r, i);
        }
    }
    return TN_OK;
}

static enum tn_row_kind kind_of_made(const struct tn_reducer *r)
{
    bool gone = r->deleted || (r->engine->kind == TN_MERGE_PARTIAL_UPDATE && !r->inserted);
    return gone ? TN_ROW_DELETE : TN_ROW_INSERT;
}

bool tn_reducer_look(const struct tn_reducer *reducer, struct tn_value *values,
                     enum tn_row_kind *kind, struct tn_kv *newest)
{
    const struct tn_row_layout *layout = reducer->engine->layout;
    if (!reducer->counted) {
        return false;
    }
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (makes_rows(reducer)) {
            values[i] = reducer->values[i];
            drop_large_decimal(&layout->columns[i], &values[i]);
        } else {
            tn_row_get(layout, reducer->whole, i, &values[i]);
        }
    }
    *kind = makes_rows(reducer) ? kind_of_made(reducer) : reducer->last.kind;
    *newest = reducer->last;
    newest->row = (struct tn_row){0};
    return true;
}

tn_rc tn_reducer_end(struct tn_reducer *reducer, struct tn_kv *kv, struct tn_err *err)
{
    reducer->err = err;
    if (!reducer->counted) {
        return TN_ABSENT;
    }
    struct tn_kv result = reducer->last;
    result.row = reducer->whole;
    if (makes_rows(reducer)) {
        tn_rc rc = check_row(reducer);
        if (rc != TN_OK) {
            return rc;
        }
        /* Bytes are in one text; the row fits the other, as keep_bytes saw. */
        unsigned char *data = reducer->texts[1 - reducer->text].data;
        result.row =
            (struct tn_row){data, tn_row_pack(reducer->engine->layout, reducer->values, data)};
        result.kind = kind_of_made(reducer);
    }
    *kv = result;
    return TN_OK;
}
