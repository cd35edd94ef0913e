#include <inttypes.h>
#include <string.h>

#include "ingest/decode.h"
#include "table/table.h"
#include "tarn_parts.h"

enum { PARSED_SHARE = 16 /* of a table's memory the bytes of hex texts may take */ };

struct tarn_table {
    tarn_engine *engine;
    struct tn_table *table;
    char *name;
    char *who;
    struct tn_decoder *decoder;
    struct tn_value *values; /* of the row that was begun */
    enum tn_row_kind kind;
    struct tn_buf parsed; /* what texts became */
    uint64_t row_count;
    int64_t put_count;
    int64_t latest;
    struct tn_api_script script;
};

static void note_commit(void *user, const struct tn_committed *committed)
{
    tarn_table *table = user;
    table->latest = committed->latest_id;
}

static tn_rc open_rows(tarn_table *table, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_row_layout *layout = tn_table_layout(table->table);
    size_t fixed = layout->column_count * sizeof(struct tn_value) + 64;
    size_t parsed = arena->size / PARSED_SHARE;
    size_t left = tn_arena_free(arena);
    left = left > fixed + parsed ? left - fixed - parsed : 0;
    uint32_t row_size_max = table->engine->env.row_size_max;
    struct tn_decode_spec spec = {.input = TN_INPUT_JSON,
                                  .schema = tn_table_schema(table->table),
                                  .layout = layout,
                                  .row_size_max = row_size_max,
                                  .record_size_max =
                                      tn_decode_record_max(layout, row_size_max, false, left)};
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
    rc = tn_arena_need(arena, parsed, "a row", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(&table->parsed, memory, parsed);
    }
    return rc;
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
    tn_rc rc = tn_api_script_find(engine, table->name, err);
    if (rc == TN_OK) {
        rc = tn_api_script_open(&table->script, engine, options, arena, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    tn_scripted_fill(&engine->scripted, &spec);
    spec.letters = table->script.dead_letter ? &table->script.sink : NULL;
    rc = tn_table_open(&engine->env, &spec, &table->table, err);
    if (rc != TN_OK) {
        return rc;
    }
    table->latest = tn_table_recovered(table->table)->latest_id;
    tn_clock_watch_init(&table->script.watch, engine->env.clock,
                        tn_table_recovered(table->table)->latest_ms);
    rc = tn_scripted_check(&engine->scripted, table->table, err);
    if (rc == TN_OK) {
        rc = tn_table_tell(table->table, err);
    }
    if (rc == TN_OK) {
        rc = open_rows(table, arena, err);
    }
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

/* That of this version, or of one before dead letters. */
static bool size_known(const tarn_table_options *options)
{
    return options->size == sizeof *options ||
           options->size == offsetof(tarn_table_options, dead_letter);
}

tarn_rc tarn_table_open(tarn_engine *engine, const tarn_table_options *options, tarn_table **table,
                        tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = no_scan(engine, &err);
    if (!options || !size_known(options) || !options->name) {
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
            tn_scripted_close(&engine->scripted);
            tn_arena_reset(&engine->for_table, 0);
        }
    }
    return tn_api_tell(rc, &err, error);
}

void tarn_table_close(tarn_table *table)
{
    if (table) {
        tarn_engine *engine = table->engine;
        tn_table_close(table->table);
        tn_scripted_close(&engine->scripted);
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
static tn_rc put(tarn_table *table, struct tn_row row, enum tn_row_kind kind, uint32_t part,
                 struct tn_err *err)
{
    tn_rc rc = TN_OK;
    struct tn_origin origin = {
        .position = table->put_count, .part = part, .source = TN_ORIGIN_NONE};
    if (tn_table_wants_cut(table->table)) {
        return tn_err_set(err, TN_AGAIN, 0, "no more rows fit into this commit");
    }
    while ((rc = tn_table_put_from(table->table, row, kind, &origin, err)) == TN_AGAIN) {
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

/* What `map` made of a put. One that stopped for want of room goes on when it is called again. */
static tn_rc put_mapped(tarn_table *table, struct tn_bytes rows, enum tn_row_kind kind,
                        struct tn_err *err)
{
    struct tn_row row;
    uint32_t from = table->script.part;
    for (uint32_t i = 0; tn_script_next_row(&rows, &row); i++) {
        tn_rc rc = i >= from ? put(table, row, kind, i, err) : TN_OK;
        if (rc != TN_OK) {
            table->script.part = rc == TN_AGAIN ? i : 0;
            return i == 0 ? rc : tn_err_in(err, "row %u of those that map made, after others", i);
        }
    }
    table->script.part = 0;
    return TN_OK;
}

/* One put of JSON, or of a row. */
static tn_rc map_and_put(tarn_table *table, const struct tn_bytes *json, const struct tn_row *row,
                         enum tn_row_kind kind, struct tn_err *err)
{
    struct tn_bytes rows;
    tn_rc rc = tn_api_script_map(&table->script, table->put_count, json, row, &rows, err);
    if (rc != TN_OK) {
        table->script.part = 0; /* of a put that this ends, or the next one would skip as many */
        return rc;
    }
    return put_mapped(table, rows, kind, err);
}

static tn_rc put_json(tarn_table *table, enum tn_row_kind kind, struct tn_bytes json,
                      struct tn_err *err)
{
    struct tn_decoded decoded;
    size_t eaten;
    if (table->script.map) {
        return map_and_put(table, &json, NULL, kind, err);
    }
    tn_rc rc = tn_decoder_next(table->decoder, json, true, &decoded, &eaten, err);
    if (rc == TN_OK && decoded.dead) {
        return tn_err_set(err, TN_INVALID, 0, "%s", decoded.reason);
    }
    if (rc == TN_AGAIN || (rc == TN_OK && (decoded.count != 1 || eaten != json.size))) {
        return tn_err_set(err, TN_INVALID, 0, "one JSON object on one line is one row");
    }
    return rc == TN_OK ? put(table, tn_decoder_row(table->decoder, &decoded, 0), kind, 0, err) : rc;
}

tarn_rc tarn_put_json(tarn_table *table, tarn_row_kind kind, const char *json, size_t size,
                      tarn_error *error)
{
    struct tn_err err = {0};
    struct tn_bytes text = {(const unsigned char *)json, size};
    tn_rc rc = put_json(table, (enum tn_row_kind)kind, text, &err);
    table->put_count += rc != TN_AGAIN;
    return tn_api_tell(rc, &err, error);
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

tarn_rc tarn_row_set_i64(tarn_table *table, int32_t column, int64_t value, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tn_api_tell(TN_INVALID, &err, error);
    }
    int64_t max = tn_api_i64_max(type->kind);
    int64_t min = type->kind == TN_TYPE_BOOLEAN ? 0 : -max - 1;
    if (max < 0) {
        rc = wrong_value(table, column, "an integer", &err);
    } else if (value < min || value > max) {
        rc = wrong_value(table, column, "an integer that large", &err);
    } else {
        table->values[column] = (struct tn_value){.as.i64 = value};
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_row_set_double(tarn_table *table, int32_t column, double value, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tn_api_tell(TN_INVALID, &err, error);
    }
    if (type->kind == TN_TYPE_DOUBLE) {
        table->values[column] = (struct tn_value){.as.f64 = value};
    } else if (type->kind == TN_TYPE_FLOAT) {
        table->values[column] = (struct tn_value){.as.f64 = (double)(float)value};
    } else {
        rc = wrong_value(table, column, "a double", &err);
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_row_set_text(tarn_table *table, int32_t column, const char *value, size_t size,
                          tarn_error *error)
{
    struct tn_err err = {0};
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tn_api_tell(TN_INVALID, &err, error);
    }
    struct tn_value parsed = {0};
    struct tn_bytes text = {(const unsigned char *)value, size};
    tn_rc rc = tn_value_parse(type, TN_EPOCH_NONE, text, &table->parsed, &parsed, &err);
    if (rc == TN_OK) {
        table->values[column] = parsed;
    } else {
        (void)tn_err_in(&err, "column '%s'", tn_table_layout(table->table)->columns[column].name);
    }
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_row_set_bytes(tarn_table *table, int32_t column, const void *value, size_t size,
                           tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = TN_OK;
    const struct tn_type *type = type_of(table, column, &err);
    if (!type) {
        return tn_api_tell(TN_INVALID, &err, error);
    }
    if (type->kind != TN_TYPE_BINARY && type->kind != TN_TYPE_VARBINARY) {
        rc = wrong_value(table, column, "bytes", &err);
    } else if (size > (size_t)type->length) {
        rc = wrong_value(table, column, "so many bytes", &err);
    } else {
        table->values[column] = (struct tn_value){.as.bytes = {value, size}};
    }
    return tn_api_tell(rc, &err, error);
}

static tn_rc too_long(uint64_t size, uint32_t size_max, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0,
                      "a row of %" PRIu64 " bytes, at most %" PRIu32 " fit the memory", size,
                      size_max);
}

static tn_rc put_values(tarn_table *table, struct tn_err *err)
{
    const struct tn_row_layout *layout = tn_table_layout(table->table);
    uint32_t size_max;
    unsigned char *packed = tn_decoder_room(table->decoder, &size_max);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (table->values[i].null && !layout->columns[i].type.nullable) {
            return wrong_value(table, (int32_t)i, "NULL", err);
        }
        bool bytes = layout->columns[i].slot == TN_SLOT_BYTES && !table->values[i].null;
        if (bytes && table->values[i].as.bytes.size > size_max) {
            return too_long(table->values[i].as.bytes.size, size_max, err);
        }
    }
    uint32_t size = tn_row_packed_size(layout, table->values);
    if (size > size_max) {
        return too_long(size, size_max, err);
    }
    struct tn_row row = {packed, tn_row_pack(layout, table->values, packed)};
    bool maps = table->script.map && table->kind != TN_ROW_UPDATE_BEFORE;
    return maps ? map_and_put(table, NULL, &row, table->kind, err)
                : put(table, row, table->kind, 0, err);
}

tarn_rc tarn_put(tarn_table *table, tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = put_values(table, &err);
    table->put_count += rc != TN_AGAIN;
    return tn_api_tell(rc, &err, error);
}

tarn_rc tarn_set_position(tarn_table *table, const char *source, const char *position,
                          tarn_error *error)
{
    struct tn_err err = {0};
    tn_rc rc = strlen(source) > 100
                   ? tn_err_set(&err, TN_INVALID, 0, "a source's name of more than 100 bytes")
                   : tn_table_position(table->table, source, position, &err);
    return tn_api_tell(rc, &err, error);
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
    return tn_api_tell(rc, &err, error);
}
