#include "schema/evolve.h"

#include <math.h>

#include "schema/cast.h"
#include "schema/default.h"

enum source {
    SOURCE_DEFAULT, /* the column came since */
    SOURCE_SAME,
    SOURCE_CAST,
    SOURCE_NONE, /* there is no cast: only NULL is one of both types */
};

struct tn_evolve_column {
    enum source source;
    uint32_t from; /* column of the older layout */
    struct tn_value value;
    struct tn_cast cast;
    struct tn_cast_out out;
};

/* Ids mostly come in the same order in both. */
static bool find_id(const struct tn_schema *schema, int32_t id, uint32_t *guess)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        uint32_t at = (*guess + i) % schema->field_count;
        if (schema->fields[at].id == id) {
            *guess = at;
            return true;
        }
    }
    return false;
}

static tn_rc find_source(struct tn_evolve_column *column, const struct tn_schema *older,
                         const int32_t *column_of, const struct tn_field *field, uint32_t *guess,
                         struct tn_arena *arena, struct tn_err *err)
{
    if (!find_id(older, field->id, guess)) {
        column->source = SOURCE_DEFAULT;
        return tn_default_read(field, arena, &column->value, err);
    }
    const struct tn_type *was = &older->fields[*guess].type;
    int32_t from = column_of[*guess];
    if (from < 0) { /* nested, which no row has */
        column->source = SOURCE_NONE;
        return tn_err_set(err, TN_UNSUPPORTED, 0, "column '%.60s' was a nested one", field->name);
    }
    column->from = (uint32_t)from;
    column->source = !tn_cast_needed(was, &field->type)               ? SOURCE_SAME
                     : tn_cast_find(was, &field->type, &column->cast) ? SOURCE_CAST
                                                                      : SOURCE_NONE;
    return TN_OK;
}

static tn_rc take_memory(struct tn_evolve *evolve, uint32_t count, struct tn_row_layout **from,
                         struct tn_arena *arena, struct tn_err *err)
{
    void *columns = NULL;
    void *values = NULL;
    void *layout = NULL;
    tn_rc rc = tn_arena_need(arena, count * sizeof evolve->columns[0], "an older schema's columns",
                             &columns, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, count * sizeof evolve->values[0], "an older schema's values",
                           &values, err);
    }
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, sizeof **from, "an older schema's layout", &layout, err);
    }
    evolve->columns = columns;
    evolve->values = values;
    *from = layout;
    return rc;
}

tn_rc tn_evolve_open(struct tn_evolve *evolve, const struct tn_schema *older,
                     const struct tn_schema *newer, const struct tn_row_layout *to,
                     struct tn_arena *arena, struct tn_err *err)
{
    int32_t *column_of = NULL;
    struct tn_row_layout *from = NULL;
    uint32_t guess = 0;
    *evolve = (struct tn_evolve){.to = to};
    tn_rc rc = take_memory(evolve, newer->field_count, &from, arena, err);
    if (rc == TN_OK) {
        rc = tn_schema_layout(older, from, NULL, &column_of, arena, err);
        evolve->from = rc == TN_OK ? from : NULL;
    }
    for (uint32_t i = 0; rc == TN_OK && i < newer->field_count; i++) {
        rc = find_source(&evolve->columns[i], older, column_of, &newer->fields[i], &guess, arena,
                         err);
        guess++;
    }
    return rc;
}

/* ---- rows ---- */

static bool is_of_bytes(enum tn_type_kind kind)
{
    return tn_type_textual(kind) || tn_type_binary(kind);
}

/* The one of its sort that holds most. */
static struct tn_type widest(struct tn_type type)
{
    if (is_of_bytes(type.kind)) {
        type.length = TN_LENGTH_MAX;
    } else if (tn_type_integer(type.kind)) {
        type.kind = TN_TYPE_BIGINT;
    } else if (type.kind == TN_TYPE_FLOAT) {
        type.kind = TN_TYPE_DOUBLE;
    }
    return type;
}

/* A BIGINT wraps and saturates as well. */
static bool fits_bigint(const struct tn_type *type, const struct tn_value *value)
{
    if (type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE) {
        return value->as.f64 < 0x1p63 && -value->as.f64 <= 0x1p63;
    }
    if (type->kind != TN_TYPE_DECIMAL) {
        return true;
    }
    static const struct tn_type string = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX};
    static const struct tn_type bigint = {.kind = TN_TYPE_BIGINT};
    struct tn_cast cast[2];
    struct tn_cast_out text;
    struct tn_cast_out number;
    return tn_cast_find(type, &string, &cast[0]) && tn_cast_apply(&cast[0], value, &text) &&
           tn_cast_find(&string, &bigint, &cast[1]) &&
           tn_cast_apply(&cast[1], &text.value, &number);
}

/* Whether nothing was cut, wrapped or saturated: whether the widest type has the same. */
static bool is_kept(const struct tn_cast *cast, const struct tn_value *was,
                    const struct tn_value *now)
{
    struct tn_cast wide;
    struct tn_cast_out whole;
    struct tn_type type = widest(cast->to);
    if (now->null || !tn_cast_find(&cast->from, &type, &wide) ||
        !tn_cast_apply(&wide, was, &whole)) {
        return false;
    }
    if (is_of_bytes(type.kind)) {
        return now->as.bytes.size == whole.value.as.bytes.size;
    }
    if (tn_type_integer(type.kind)) {
        return now->as.i64 == whole.value.as.i64 && fits_bigint(&cast->from, was);
    }
    return type.kind != TN_TYPE_DOUBLE || !isinf(now->as.f64) == !isinf(whole.value.as.f64);
}

static tn_rc refuse_cast(const struct tn_evolve *evolve, uint32_t i, const struct tn_value *was,
                         struct tn_err *err)
{
    char types[2][TN_TYPE_TEXT_SIZE];
    unsigned char text[TN_CAST_TEXT_SIZE];
    struct tn_buf shown;
    const struct tn_evolve_column *column = &evolve->columns[i];
    const struct tn_type *type = &evolve->from->columns[column->from].type;
    struct tn_value cut = *was;
    if (is_of_bytes(type->kind) && cut.as.bytes.size > sizeof text / 4) {
        cut.as.bytes.size = sizeof text / 4;
    }
    tn_buf_init(&shown, text, sizeof text);
    tn_value_format_json(type, &cut, &shown);
    return tn_err_set(err, TN_INVALID, 0,
                      "column '%.60s': %.*s was taken as %s, and is no value of %s, which it is "
                      "by now",
                      evolve->to->columns[i].name, (int)shown.size, (const char *)shown.data,
                      tn_type_format(type, types[0]),
                      tn_type_format(&evolve->to->columns[i].type, types[1]));
}

/* CHAR and BINARY are filled up. */
static tn_rc pad(const struct tn_type *type, const struct tn_cast_out *out, uint32_t size_max,
                 struct tn_arena *arena, struct tn_value *value, struct tn_err *err)
{
    size_t size = value->as.bytes.size;
    if (out->pad_size > size_max || size > size_max - out->pad_size) {
        return tn_err_set(err, TN_INVALID, 0, "a text is filled up to %zu bytes, at most %u fit",
                          size + out->pad_size, size_max);
    }
    void *bytes = NULL;
    tn_rc rc = tn_arena_need(arena, size + out->pad_size, "a text", &bytes, err);
    if (rc == TN_OK) {
        memcpy(bytes, value->as.bytes.data, size);
        memset((unsigned char *)bytes + size, tn_type_textual(type->kind) ? ' ' : 0, out->pad_size);
        value->as.bytes = (struct tn_bytes){bytes, size + out->pad_size};
    }
    return rc;
}

static tn_rc cast(const struct tn_evolve *evolve, uint32_t i, uint32_t size_max,
                  struct tn_arena *arena, struct tn_err *err)
{
    struct tn_value *value = &evolve->values[i];
    struct tn_evolve_column *column = &evolve->columns[i];
    struct tn_value was = *value;
    bool fits = column->source == SOURCE_CAST && tn_cast_apply(&column->cast, &was, &column->out) &&
                is_kept(&column->cast, &was, &column->out.value);
    if (!fits) {
        return refuse_cast(evolve, i, &was, err);
    }
    *value = column->out.value;
    return column->out.pad_size == 0
               ? TN_OK
               : pad(&column->cast.to, &column->out, size_max, arena, value, err);
}

static tn_rc give_value(const struct tn_evolve *evolve, struct tn_row row, uint32_t i,
                        uint32_t size_max, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_value *value = &evolve->values[i];
    const struct tn_evolve_column *column = &evolve->columns[i];
    *value = column->value;
    if (column->source != SOURCE_DEFAULT) {
        tn_row_get(evolve->from, row, column->from, value);
    }
    if (value->null && !evolve->to->columns[i].type.nullable) {
        return tn_err_set(err, TN_INVALID, 0, "column '%.60s' is NOT NULL by now, and has no value",
                          evolve->to->columns[i].name);
    }
    bool same = column->source == SOURCE_DEFAULT || column->source == SOURCE_SAME;
    return same || value->null ? TN_OK : cast(evolve, i, size_max, arena, err);
}

tn_rc tn_evolve_row(const struct tn_evolve *evolve, struct tn_row row, uint32_t size_max,
                    struct tn_arena *arena, struct tn_row *evolved, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    void *data = NULL;
    for (uint32_t i = 0; rc == TN_OK && i < evolve->to->column_count; i++) {
        rc = give_value(evolve, row, i, size_max, arena, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t size = tn_row_packed_size(evolve->to, evolve->values);
    if (size > size_max) {
        return tn_err_set(err, TN_INVALID, 0, "a row of %u bytes by now, at most %u fit", size,
                          size_max);
    }
    rc = tn_arena_need(arena, size, "a row", &data, err);
    if (rc == TN_OK) {
        *evolved = (struct tn_row){data, tn_row_pack(evolve->to, evolve->values, data)};
    }
    return rc;
}
