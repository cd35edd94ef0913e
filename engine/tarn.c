#include "tarn.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "commit/snapshot.h"
#include "file/names.h"
#include "ingest/decode.h"
#include "read/scan.h"
#include "table/make.h"
#include "table/table.h"
#include "tarn_private.h"

#define SAME(name) _Static_assert((int)TARN_##name == (int)TN_##name, "the codes are the engine's");
SAME(OK)
SAME(AGAIN)
SAME(ABSENT)
SAME(EXISTS)
SAME(INVALID)
SAME(CORRUPT)
SAME(IO)
SAME(FULL)
SAME(CONFLICT)
SAME(CANCELED)
SAME(UNSUPPORTED)
_Static_assert(sizeof((tarn_error){0}.text) == TN_ERR_TEXT_SIZE, "a text fits whole");
_Static_assert((int)TARN_DELETE == (int)TN_ROW_DELETE, "the kinds are the engine's");

enum { RECORD_SHARE = 8 /* of a table's memory a line of JSON may take */ };

struct tarn_engine {
    struct tn_budget budget;
    struct tn_heap json;
    struct tn_heap avro;
    struct tn_heap levels;
    struct tn_arena arena;
    struct tn_worker workers[TN_LANE_COUNT];
    struct tn_exec_inline exec;
    struct tn_io_posix posix;
    bool posix_open;
    struct tn_env env;
    struct tn_arena for_table; /* halves of the part "input" */
    struct tn_arena for_scan;
    tarn_table *table;  /* that is open, or NULL */
    tarn_scan *scan;    /* likewise */
    size_t worker_mark; /* of the arena that a scan reads with, before it */
};

struct tarn_table {
    tarn_engine *engine;
    struct tn_table *table;
    char *name;
    char *who;
    struct tn_decoder *decoder;
    struct tn_value *values; /* of the row that was begun */
    enum tn_row_kind kind;
    struct tn_buf parsed; /* what texts became */
    unsigned char *packed;
    uint64_t row_count;
    int64_t latest;
};

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
};

static tarn_rc tell(tn_rc rc, const struct tn_err *err, tarn_error *error)
{
    if (rc != TN_OK && error) {
        error->code = (tarn_rc)rc;
        memcpy(error->text, err->text, sizeof error->text);
    }
    return (tarn_rc)rc;
}

/* ---- engine ---- */

uint32_t tarn_version(void)
{
    return TARN_API_VERSION;
}

/* The engine itself lies in front of the part "input"; the rest is for a table and a scan. */
static tn_rc place_engine(struct tn_budget *budget, tarn_engine **out, struct tn_err *err)
{
    struct tn_part *input = tn_budget_part(budget, "input");
    struct tn_arena whole;
    void *place;
    tn_arena_init(&whole, input->base, input->size);
    tn_rc rc = tn_arena_need(&whole, sizeof(tarn_engine), "an engine", &place, err);
    if (rc != TN_OK) {
        return rc;
    }
    tarn_engine *engine = place;
    engine->budget = *budget;
    size_t half = (tn_arena_free(&whole) / 2) & ~(size_t)63;
    tn_arena_init(&engine->for_table, tn_arena_take_raw(&whole, half), half);
    half = tn_arena_free(&whole) & ~(size_t)63;
    tn_arena_init(&engine->for_scan, tn_arena_take_raw(&whole, half), half);
    *out = engine;
    return TN_OK;
}

static tn_rc open_budget(const tarn_engine_options *options, struct tn_budget *budget,
                         struct tn_err *err)
{
    if (!options || options->size != sizeof *options) {
        return tn_err_set(err, TN_INVALID, 0, "tarn_open: options.size is not that of version %d",
                          TARN_API_VERSION);
    }
    if (!options->memory) {
        return tn_budget_open(budget, &tn_board, options->memory_size, err);
    }
    if (options->memory_size > SIZE_MAX || (uintptr_t)options->memory % _Alignof(max_align_t) > 0) {
        return tn_err_set(err, TN_INVALID, 0, "tarn_open: memory that is no block");
    }
    return tn_budget_open_on(budget, &tn_board, options->memory, (size_t)options->memory_size, err);
}

static tn_rc open_files(tarn_engine *engine, const char *warehouse, struct tn_err *err)
{
    if (!warehouse || !*warehouse) {
        return tn_err_set(err, TN_INVALID, 0, "tarn_open: no warehouse");
    }
    if (mkdir(warehouse, 0777) != 0 && errno != EEXIST) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "make folder %s: %s", warehouse, strerror(os));
    }
    tn_rc rc = tn_io_posix_open(&engine->posix, warehouse, err);
    engine->posix_open = rc == TN_OK;
    return rc;
}

static tn_rc open_env(tarn_engine *engine, struct tn_io *io, struct tn_clock *clock,
                      struct tn_err *err)
{
    struct tn_env_spec spec = {.budget = &engine->budget,
                               .json = &engine->json,
                               .avro = &engine->avro,
                               .levels = &engine->levels,
                               .table = &engine->arena,
                               .workers = engine->workers,
                               .exec = &engine->exec,
                               .io = io,
                               .clock = clock};
    return tn_env_open(&engine->env, &spec, err);
}

/* Not inline: a stack holds one copy of a budget. */
static __attribute__((noinline)) void shut(tarn_engine *engine)
{
    if (engine->posix_open) {
        tn_io_posix_close(&engine->posix);
    }
    struct tn_budget budget = engine->budget; /* the engine lies in what it closes */
    tn_budget_close(&budget);
}

tarn_rc tarn_open_on(const tarn_engine_options *options, struct tn_io *io, struct tn_clock *clock,
                     tarn_engine **engine, tarn_error *error)
{
    struct tn_budget budget = {0};
    struct tn_err err = {0};
    tarn_engine *opened;
    tn_rc rc = open_budget(options, &budget, &err);
    if (rc != TN_OK) {
        return tell(rc, &err, error);
    }
    rc = place_engine(&budget, &opened, &err);
    if (rc != TN_OK) {
        tn_budget_close(&budget);
        return tell(rc, &err, error);
    }
    if (!io) {
        rc = open_files(opened, options->warehouse, &err);
        io = &opened->posix.io;
    }
    if (rc == TN_OK) {
        rc = open_env(opened, io, clock, &err);
    }
    if (rc != TN_OK) {
        shut(opened);
        return tell(rc, &err, error);
    }
    *engine = opened;
    return TARN_OK;
}

tarn_rc tarn_open(const tarn_engine_options *options, tarn_engine **engine, tarn_error *error)
{
    return tarn_open_on(options, NULL, &tn_clock_system, engine, error);
}

void tarn_close(tarn_engine *engine)
{
    if (engine) {
        tarn_scan_close(engine->scan);
        tarn_table_close(engine->table);
        shut(engine);
    }
}

/* ---- tables ---- */

static tn_rc create(tarn_engine *engine, const char *table, const char *text, struct tn_err *err)
{
    struct tn_schema schema;
    struct tn_options options;
    tn_rc rc = tn_schema_from_user(tn_bytes_of(text), &engine->arena, &schema, err);
    return rc == TN_OK ? tn_make_table(&engine->env, table, &schema, &options, err) : rc;
}

tarn_rc tarn_create(tarn_engine *engine, const char *table, const char *schema, tarn_error *error)
{
    struct tn_err err = {0};
    struct tn_io *io = engine->env.io;
    size_t mark = tn_arena_mark(&engine->arena);
    int lock;
    tn_rc rc = tn_table_lock(io, table, "tarn_create", &engine->arena, &lock, &err);
    if (rc == TN_OK) {
        rc = create(engine, table, schema, &err);
        io->vtable->close(io, lock);
    }
    tn_arena_reset(&engine->arena, mark);
    if (rc != TN_OK) {
        (void)tn_err_in(&err, "%s", table);
    }
    return tell(rc, &err, error);
}

static void note_commit(void *user, const struct tn_committed *committed)
{
    tarn_table *table = user;
    table->latest = committed->latest_id;
}

static tn_rc open_rows(tarn_table *table, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_row_layout *layout = tn_table_layout(table->table);
    uint32_t record_size_max = (uint32_t)(arena->size / RECORD_SHARE);
    uint32_t row_size_max = table->engine->env.row_size_max;
    uint32_t packed_size = row_size_max < record_size_max ? row_size_max : record_size_max;
    struct tn_decode_spec spec = {.input = TN_INPUT_JSON,
                                  .schema = tn_table_schema(table->table),
                                  .layout = layout,
                                  .record_size_max = record_size_max};
    void *memory;
    tn_rc rc = tn_decoder_open(&table->decoder, &spec, arena, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, layout->column_count * sizeof(struct tn_value), "a row", &memory,
                           err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    table->values = memory;
    rc = tn_arena_need(arena, 2 * (size_t)packed_size, "a row", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    table->packed = memory;
    tn_buf_init(&table->parsed, table->packed + packed_size, packed_size);
    return TN_OK;
}

static tn_rc open_table(tarn_engine *engine, const tarn_table_options *options, tarn_table **out,
                        struct tn_err *err)
{
    struct tn_arena *arena = &engine->for_table;
    tarn_table *table = tn_arena_take(arena, sizeof *table);
    if (table) {
        table->name = tn_arena_text(arena, tn_bytes_of(options->name));
        table->who = tn_arena_text(arena, tn_bytes_of(options->who ? options->who : "a program"));
    }
    if (!table || !table->name || !table->who) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory to open %s", options->name);
    }
    table->engine = engine;
    struct tn_table_spec spec = {.name = table->name,
                                 .who = table->who,
                                 .identifier = -1,
                                 .compact = true,
                                 .committed = note_commit,
                                 .user_data = table};
    tn_rc rc = tn_table_open(&engine->env, &spec, &table->table, err);
    if (rc != TN_OK) {
        return rc;
    }
    table->latest = tn_table_recovered(table->table)->latest_id;
    rc = open_rows(table, arena, err);
    if (rc != TN_OK) {
        tn_table_close(table->table);
        return rc;
    }
    *out = table;
    return TN_OK;
}

static tn_rc no_scan(const tarn_engine *engine, struct tn_err *err)
{
    return engine->scan ? tn_err_set(err, TN_AGAIN, 0, "a scan is open: close it first") : TN_OK;
}

tarn_rc tarn_table_open(tarn_engine *engine, const tarn_table_options *options, tarn_table **table,
                        tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = no_scan(engine, &err);
    if (!options || options->size != sizeof *options || !options->name) {
        rc = tn_err_set(&err, TN_INVALID, 0, "tarn_table_open: size or name of the options");
    } else if (engine->table) {
        rc = tn_err_set(&err, TN_EXISTS, 0, "%s is open: an engine writes one table at a time",
                        engine->table->name);
    }
    if (rc == TN_OK) {
        rc = open_table(engine, options, &engine->table, &err);
        if (rc == TN_OK) {
            *table = engine->table;
            tarn_row_begin(*table, TARN_INSERT);
        } else {
            tn_arena_reset(&engine->for_table, 0);
        }
    }
    return tell(rc, &err, error);
}

void tarn_table_close(tarn_table *table)
{
    if (table) {
        tarn_engine *engine = table->engine;
        tn_table_close(table->table);
        engine->table = NULL;
        tn_arena_reset(&engine->for_table, 0);
    }
}

int32_t tarn_table_column(const tarn_table *table, const char *name)
{
    return tn_row_layout_find(tn_table_layout(table->table), tn_bytes_of(name));
}

/* ---- rows in ---- */

/* Puts, and works until there is room. */
static tn_rc put(tarn_table *table, struct tn_row row, enum tn_row_kind kind, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (tn_table_wants_cut(table->table)) {
        return tn_err_set(err, TN_AGAIN, 0, "no more rows fit into this commit");
    }
    while ((rc = tn_table_put(table->table, row, kind, err)) == TN_AGAIN) {
        rc = no_scan(table->engine, err);
        if (rc == TN_OK && tn_table_wants_cut(table->table)) {
            rc = tn_err_set(err, TN_AGAIN, 0, "no more rows fit into this commit");
        }
        if (rc == TN_OK) {
            rc = tn_table_turn(table->table, true, err);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    table->row_count += rc == TN_OK;
    return rc;
}

static tn_rc put_json(tarn_table *table, enum tn_row_kind kind, struct tn_bytes json,
                      struct tn_err *err)
{
    struct tn_decoded decoded;
    size_t eaten;
    tn_rc rc = tn_decoder_next(table->decoder, json, true, &decoded, &eaten, err);
    if (rc == TN_OK && decoded.dead) {
        return tn_err_set(err, TN_INVALID, 0, "%s", decoded.reason);
    }
    if (rc == TN_AGAIN || (rc == TN_OK && (decoded.count != 1 || eaten != json.size))) {
        return tn_err_set(err, TN_INVALID, 0, "one JSON object on one line is one row");
    }
    return rc == TN_OK ? put(table, decoded.rows[0], kind, err) : rc;
}

tarn_rc tarn_put_json(tarn_table *table, tarn_row_kind kind, const char *json, size_t size,
                      tarn_error *error)
{
    struct tn_err err = {0};
    struct tn_bytes text = {(const unsigned char *)json, size};
    return tell(put_json(table, (enum tn_row_kind)kind, text, &err), &err, error);
}

void tarn_row_begin(tarn_table *table, tarn_row_kind kind)
{
    uint32_t count = tn_table_layout(table->table)->column_count;
    table->kind = (enum tn_row_kind)kind;
    table->parsed.size = 0;
    for (uint32_t i = 0; i < count; i++) {
        table->values[i] = (struct tn_value){.null = true};
    }
}

/* The column's type; NULL with `err` set when there is no such column. */
static const struct tn_type *type_of(const tarn_table *table, int32_t column, struct tn_err *err)
{
    const struct tn_row_layout *layout = tn_table_layout(table->table);
    if (column < 0 || (uint32_t)column >= layout->column_count) {
        (void)tn_err_set(err, TN_INVALID, 0, "there is no column %d", (int)column);
        return NULL;
    }
    return &layout->columns[column].type;
}

static tn_rc wrong_value(const tarn_table *table, int32_t column, const char *what,
                         struct tn_err *err)
{
    const struct tn_column *c = &tn_table_layout(table->table)->columns[column];
    return tn_err_set(err, TN_INVALID, 0, "column '%s' (%s) can't take %s", c->name,
                      tn_type_name(c->type.kind), what);
}

/* The largest value of a type that i64 sets; -1 for others. */
static int64_t i64_max(enum tn_type_kind kind)
{
    static const struct {
        enum tn_type_kind kind;
        int64_t max;
    } RANGES[] = {
        {TN_TYPE_BOOLEAN, 1},     {TN_TYPE_TINYINT, INT8_MAX}, {TN_TYPE_SMALLINT, INT16_MAX},
        {TN_TYPE_INT, INT32_MAX}, {TN_TYPE_BIGINT, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof RANGES / sizeof RANGES[0]; i++) {
        if (RANGES[i].kind == kind) {
            return RANGES[i].max;
        }
    }
    return -1;
}

tarn_rc tarn_row_set_i64(tarn_table *table, int32_t column, int64_t value, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tell(TN_INVALID, &err, error);
    }
    int64_t max = i64_max(type->kind);
    int64_t min = type->kind == TN_TYPE_BOOLEAN ? 0 : -max - 1;
    if (max < 0) {
        rc = wrong_value(table, column, "an integer", &err);
    } else if (value < min || value > max) {
        rc = wrong_value(table, column, "an integer that large", &err);
    } else {
        table->values[column] = (struct tn_value){.as.i64 = value};
    }
    return tell(rc, &err, error);
}

tarn_rc tarn_row_set_double(tarn_table *table, int32_t column, double value, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tell(TN_INVALID, &err, error);
    }
    if (type->kind == TN_TYPE_DOUBLE) {
        table->values[column] = (struct tn_value){.as.f64 = value};
    } else if (type->kind == TN_TYPE_FLOAT) {
        table->values[column] = (struct tn_value){.as.f64 = (double)(float)value};
    } else {
        rc = wrong_value(table, column, "a double", &err);
    }
    return tell(rc, &err, error);
}

tarn_rc tarn_row_set_text(tarn_table *table, int32_t column, const char *value, size_t size,
                          tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tell(TN_INVALID, &err, error);
    }
    struct tn_value parsed = {0};
    struct tn_bytes text = {(const unsigned char *)value, size};
    tn_rc rc = tn_value_parse(type, TN_EPOCH_NONE, text, &table->parsed, &parsed, &err);
    if (rc == TN_OK) {
        table->values[column] = parsed;
    } else {
        (void)tn_err_in(&err, "column '%s'", tn_table_layout(table->table)->columns[column].name);
    }
    return tell(rc, &err, error);
}

tarn_rc tarn_row_set_bytes(tarn_table *table, int32_t column, const void *value, size_t size,
                           tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tell(TN_INVALID, &err, error);
    }
    bool exact = type->kind == TN_TYPE_BINARY;
    if (!exact && type->kind != TN_TYPE_VARBINARY) {
        rc = wrong_value(table, column, "bytes", &err);
    } else if (size > (size_t)type->length || (exact && size != (size_t)type->length)) {
        rc = wrong_value(table, column, "so many bytes", &err);
    } else {
        table->values[column] = (struct tn_value){.as.bytes = {value, size}};
    }
    return tell(rc, &err, error);
}

static tn_rc put_values(tarn_table *table, struct tn_err *err)
{
    const struct tn_row_layout *layout = tn_table_layout(table->table);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (table->values[i].null && !layout->columns[i].type.nullable) {
            return wrong_value(table, (int32_t)i, "NULL", err);
        }
        bool bytes = layout->columns[i].slot == TN_SLOT_BYTES && !table->values[i].null;
        if (bytes && table->values[i].as.bytes.size > table->parsed.capacity) {
            return wrong_value(table, (int32_t)i, "so many bytes: no row is that large", err);
        }
    }
    uint32_t size = tn_row_packed_size(layout, table->values);
    if (size > table->parsed.capacity) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %u bytes, at most %zu fit the memory", size,
                          table->parsed.capacity);
    }
    struct tn_row row = {table->packed, tn_row_pack(layout, table->values, table->packed)};
    return put(table, row, table->kind, err);
}

tarn_rc tarn_put(tarn_table *table, tarn_error *error)
{
    struct tn_err err = {0};
    return tell(put_values(table, &err), &err, error);
}

tarn_rc tarn_set_position(tarn_table *table, const char *source, const char *position,
                          tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = strlen(source) > 100
                   ? tn_err_set(&err, TN_INVALID, 0, "a source's name of more than 100 bytes")
                   : tn_table_position(table->table, source, position, &err);
    return tell(rc, &err, error);
}

const char *tarn_position(const tarn_table *table, const char *source)
{
    return tn_table_position_of(table->table, source);
}

tarn_rc tarn_commit(tarn_table *table, int64_t *snapshot, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = no_scan(table->engine, &err);
    if (rc == TN_OK) {
        rc = tn_table_finish(table->table, table->row_count, &err);
    }
    if (rc == TN_OK && snapshot) {
        *snapshot = table->latest;
    }
    return tell(rc, &err, error);
}

/* ---- rows out ---- */

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

/* A quarter of what is left is for a row's text. While no table is open the memtable's part is the
 * plan's window, else half of what is left. */
static tn_rc begin_scan(tarn_scan *scan, struct tn_err *err)
{
    tarn_engine *engine = scan->engine;
    struct tn_arena *arena = &engine->for_scan;
    size_t size = tn_arena_free(arena) / 4;
    void *window = engine->env.memtable;
    size_t window_size = engine->env.memtable_size;
    tn_buf_init(&scan->text, tn_arena_take_raw(arena, size), size);
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
        return tell(rc, &err, error);
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
        tn_arena_reset(&engine->for_scan, 0);
    }
    return tell(rc, &err, error);
}

tarn_rc tarn_scan_next(tarn_scan *scan, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = scan->empty ? tn_err_set(&err, TN_ABSENT, 0, "the table has no snapshot")
                           : tn_scan_next(&scan->scan, &scan->row, &err);
    scan->has_row = rc == TN_OK;
    return tell(rc, &err, error);
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
        i64_max(type->kind) < 0) {
        rc = other_type(type, "integer", &err);
    }
    if (rc == TN_OK) {
        *value = found.as.i64;
    }
    return tell(rc, &err, error);
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
    return tell(rc, &err, error);
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

tarn_rc tarn_scan_text(tarn_scan *scan, uint32_t column, const char **value, size_t *size,
                       tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type;
    struct tn_value found;
    tn_rc rc = value_of(scan, column, &type, &found, &err);
    if (rc == TN_OK) {
        begin_text(scan);
        tn_value_format_text(type, &found, &scan->text);
        rc = take_text(scan, value, size, &err);
    }
    return tell(rc, &err, error);
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
    return tell(rc, &err, error);
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
    return tell(rc, &err, error);
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
    tn_arena_reset(&engine->for_scan, 0);
}
