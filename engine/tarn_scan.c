#include <string.h>

#include "commit/snapshot.h"
#include "file/names.h"
#include "read/scan.h"
#include "tarn_parts.h"

struct tarn_scan {
    tarn_engine *engine;
    struct tn_scan scan;
    const char *root;
    struct tn_schemas schemas;
    const struct tn_schema *schema;
    struct tn_options options;
    struct tn_snapshot snapshot;
    struct tn_scan_spec spec;
    struct tn_kv row;
    struct tn_buf text;
    bool empty; /* no snapshot */
    bool has_row;
    bool owns_texts; /* the table's memory */
};

static tn_rc find_snapshot(tarn_scan *scan, int64_t id, struct tn_err *err)
{
    struct tn_io *io = scan->engine->env.io;
    struct tn_arena *arena = &scan->engine->for_scan;
    tn_rc rc = id > 0 ? TN_OK : tn_snapshot_latest(io, scan->root, arena, &id, err);
    if (rc == TN_ABSENT) {
        scan->empty = true;
        return TN_OK;
    }
    return rc == TN_OK ? tn_snapshot_read(io, scan->root, id, arena, &scan->snapshot, err) : rc;
}

/* "a,b" as fields of the schema. */
static tn_rc find_fields(tarn_scan *scan, const char *names, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(&scan->engine->for_scan, (strlen(names) / 2 + 2) * sizeof(uint32_t),
                             "columns", &memory, err);
    uint32_t *fields = memory;
    while (rc == TN_OK && *names) {
        struct tn_bytes name = {(const unsigned char *)names, strcspn(names, ",")};
        int32_t field = tn_schema_find(scan->schema, name);
        if (field < 0) {
            return tn_err_set(err, TN_INVALID, 0, "column '%.*s' is unknown", (int)name.size,
                              names);
        }
        fields[scan->spec.field_count++] = (uint32_t)field;
        names += name.size;
        names += *names == ',';
    }
    scan->spec.fields = fields;
    return rc;
}

static tn_rc find_table(tarn_scan *scan, const tarn_scan_options *options, struct tn_err *err)
{
    struct tn_arena *arena = &scan->engine->for_scan;
    const struct tn_schema *newest;
    tn_rc rc = tn_name_table_root(arena, options->table, &scan->root, err);
    if (rc == TN_OK) {
        tn_schemas_init(&scan->schemas, scan->engine->env.io, scan->root, arena);
        rc = tn_schemas_newest(&scan->schemas, &newest, err);
    }
    if (rc == TN_OK) {
        scan->schema = newest;
        rc = tn_options_read(newest, TN_OPTIONS_READ, arena, &scan->options, err);
    }
    if (rc == TN_OK) {
        rc = find_snapshot(scan, options->snapshot, err);
    }
    if (rc == TN_OK && options->snapshot > 0) {
        rc = tn_schemas_load(&scan->schemas, scan->snapshot.schema_id, &scan->schema, err);
    }
    return rc;
}

static tn_rc find_rows(tarn_scan *scan, const tarn_scan_options *options, struct tn_err *err)
{
    struct tn_predicate *predicate = NULL;
    tn_rc rc = TN_OK;
    if (options->columns) {
        rc = find_fields(scan, options->columns, err);
    }
    if (rc == TN_OK && options->where) {
        rc = tn_predicate_parse(options->where, scan->schema, &scan->engine->for_scan, &predicate,
                                err);
    }
    scan->spec.root = scan->root;
    scan->spec.snapshot = &scan->snapshot;
    scan->spec.schema = scan->schema;
    scan->spec.options = &scan->options;
    scan->spec.schemas = &scan->schemas;
    scan->spec.predicate = predicate;
    return rc;
}

/* A row's text has the table's memory. While a table is open it has a quarter of what is left of
 * the scan's, and half of the rest is the plan's window, which else is the memtable's part. */
static tn_rc begin_scan(tarn_scan *scan, struct tn_err *err)
{
    tarn_engine *engine = scan->engine;
    struct tn_arena *arena = &engine->for_scan;
    struct tn_arena *texts = engine->table ? arena : &engine->for_table;
    size_t size = engine->table ? tn_arena_free(arena) / 4 : tn_arena_free(texts);
    void *window = engine->env.memtable;
    size_t window_size = engine->env.memtable_size;
    scan->owns_texts = !engine->table;
    tn_buf_init(&scan->text, tn_arena_take_raw(texts, size), size);
    if (engine->table) {
        window_size = tn_arena_free(arena) / 2;
        window = tn_arena_take_raw(arena, window_size);
    }
    if (scan->empty) {
        return tn_projection_init(&scan->scan.projection, &scan->spec, arena, err);
    }
    return tn_scan_open(&scan->scan, &scan->spec, window, window_size, arena,
                        engine->env.workers[TN_LANE_LONG], err);
}

static tn_rc open_scan(tarn_engine *engine, const tarn_scan_options *options, tarn_scan **out,
                       struct tn_err *err)
{
    tarn_scan *scan = tn_arena_take(&engine->for_scan, sizeof *scan);
    if (!scan) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a scan");
    }
    scan->engine = engine;
    tn_rc rc = find_table(scan, options, err);
    if (rc == TN_OK) {
        rc = find_rows(scan, options, err);
    }
    if (rc == TN_OK) {
        rc = begin_scan(scan, err);
    }
    *out = scan;
    return rc == TN_OK ? rc : tn_err_in(err, "%s", options->table);
}

tarn_rc tarn_scan_open(tarn_engine *engine, const tarn_scan_options *options, tarn_scan **scan,
                       tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    if (!options || options->size != sizeof *options || !options->table) {
        rc = tn_err_set(&err, TN_INVALID, 0, "tarn_scan_open: size or table of the options");
    } else if (engine->scan) {
        rc = tn_err_set(&err, TN_EXISTS, 0, "a scan is open: close it first");
    }
    if (rc != TN_OK) {
        return tn_api_tell(rc, &err, error);
    }
    tarn_scan *opened = NULL;
    struct tn_arena *worker = &engine->env.workers[TN_LANE_LONG]->arena;
    engine->worker_mark = tn_arena_mark(worker);
    rc = open_scan(engine, options, &opened, &err);
    if (rc == TN_OK) {
        engine->scan = opened;
        *scan = opened;
    } else {
        tn_arena_reset(worker, engine->worker_mark);
        if (!engine->table) {
            tn_arena_reset(&engine->for_table, 0);
        }
        tn_arena_reset(&engine->for_scan, 0);
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_scan_next(tarn_scan *scan, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = scan->empty ? tn_err_set(&err, TN_ABSENT, 0, "the table has no snapshot")
                           : tn_scan_next(&scan->scan, &scan->row, &err);
    scan->has_row = rc == TN_OK;
    return tn_api_tell(rc, &err, error);
}

uint32_t tarn_scan_column_count(const tarn_scan *scan)
{
    return scan->scan.projection.columns.count;
}

const char *tarn_scan_column_name(const tarn_scan *scan, uint32_t column)
{
    const struct tn_projection *p = &scan->scan.projection;
    return column < p->columns.count ? p->layout.columns[p->columns.index[column]].name : NULL;
}

/* A value of the row at hand that is not NULL. */
static tn_rc value_of(const tarn_scan *scan, uint32_t column, const struct tn_type **type,
                      struct tn_value *value, struct tn_err *err)
{
    const struct tn_projection *p = &scan->scan.projection;
    if (!scan->has_row || column >= p->columns.count) {
        return tn_err_set(err, TN_INVALID, 0, "there is no row at hand, or no column %u", column);
    }
    uint32_t index = p->columns.index[column];
    tn_row_get(&p->layout, scan->row.row, index, value);
    *type = &p->layout.columns[index].type;
    return value->null ? tn_err_set(err, TN_ABSENT, 0, "NULL") : TN_OK;
}

static tn_rc other_type(const struct tn_type *type, const char *what, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0, "%s is no %s", tn_type_name(type->kind), what);
}

tarn_rc tarn_scan_i64(tarn_scan *scan, uint32_t column, int64_t *value, tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type;
    struct tn_value found;
    tn_rc rc = value_of(scan, column, &type, &found, &err);
    if (rc == TN_OK && type->kind != TN_TYPE_DATE && type->kind != TN_TYPE_TIME &&
        tn_api_i64_max(type->kind) < 0) {
        rc = other_type(type, "integer", &err);
    }
    if (rc == TN_OK) {
        *value = found.as.i64;
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_scan_double(tarn_scan *scan, uint32_t column, double *value, tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type;
    struct tn_value found;
    tn_rc rc = value_of(scan, column, &type, &found, &err);
    if (rc == TN_OK && type->kind != TN_TYPE_FLOAT && type->kind != TN_TYPE_DOUBLE) {
        rc = other_type(type, "double", &err);
    }
    if (rc == TN_OK) {
        *value = found.as.f64;
    }
    return tn_api_tell(rc, &err, error);
}

/* What was formatted, with a zero byte behind it. */
static tn_rc take_text(tarn_scan *scan, const char **text, size_t *size, struct tn_err *err)
{
    tn_buf_byte(&scan->text, 0);
    if (scan->text.overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "a text of more than %zu bytes", scan->text.capacity);
    }
    *text = (const char *)scan->text.data;
    *size = scan->text.size - 1;
    return TN_OK;
}

static void begin_text(tarn_scan *scan)
{
    scan->text.size = 0;
    scan->text.overflow = false;
}

static tn_rc text_of(tarn_scan *scan, const struct tn_type *type, const struct tn_value *found,
                     const char **value, size_t *size, struct tn_err *err)
{
    bool textual = tn_type_textual(type->kind);
    if (textual && found->as.bytes.size >= scan->text.capacity) { /* as it stands in the row */
        *value = (const char *)found->as.bytes.data;
        *size = found->as.bytes.size;
        return TN_OK;
    }
    begin_text(scan);
    tn_value_format_text(type, found, &scan->text);
    return take_text(scan, value, size, err);
}

tarn_rc tarn_scan_text(tarn_scan *scan, uint32_t column, const char **value, size_t *size,
                       tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type;
    struct tn_value found;
    tn_rc rc = value_of(scan, column, &type, &found, &err);
    if (rc == TN_OK) {
        rc = text_of(scan, type, &found, value, size, &err);
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_scan_bytes(tarn_scan *scan, uint32_t column, const void **value, size_t *size,
                        tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type;
    struct tn_value found;
    tn_rc rc = value_of(scan, column, &type, &found, &err);
    if (rc == TN_OK && (type->kind < TN_TYPE_CHAR || type->kind > TN_TYPE_VARBINARY)) {
        rc = other_type(type, "bytes", &err);
    }
    if (rc == TN_OK) {
        *value = found.as.bytes.data;
        *size = found.as.bytes.size;
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_scan_json(tarn_scan *scan, const char **json, size_t *size, tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_projection *p = &scan->scan.projection;
    tn_rc rc = TN_OK;
    if (!scan->has_row) {
        rc = tn_err_set(&err, TN_INVALID, 0, "there is no row at hand");
    } else {
        begin_text(scan);
        tn_row_format_json(&p->layout, &p->columns, scan->row.row, &scan->text);
        rc = take_text(scan, json, size, &err);
    }
    return tn_api_tell(rc, &err, error);
}

void tarn_scan_close(tarn_scan *scan)
{
    if (!scan) {
        return;
    }
    tarn_engine *engine = scan->engine;
    if (!scan->empty) {
        tn_scan_close(&scan->scan);
        tn_arena_reset(&engine->env.workers[TN_LANE_LONG]->arena, engine->worker_mark);
    }
    engine->scan = NULL;
    if (scan->owns_texts) {
        tn_arena_reset(&engine->for_table, 0);
    }
    tn_arena_reset(&engine->for_scan, 0);
}
