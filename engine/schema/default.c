#include "schema/default.h"

#include <string.h>

#include "base/check.h"

static tn_rc unquoted(struct tn_bytes *text, struct tn_err *err)
{
    bool opens = text->size > 0 && text->data[0] == '\'';
    bool closes = text->size > 0 && text->data[text->size - 1] == '\'';
    if (opens && closes && text->size == 1) {
        return tn_err_set(err, TN_INVALID, 0, "a quote alone");
    }
    if (opens && closes) {
        *text = (struct tn_bytes){text->data + 1, text->size - 2};
    }
    return TN_OK;
}

/* The bytes of at most `length` characters, which are counted. */
static size_t characters(struct tn_bytes text, size_t length, size_t *count)
{
    size_t at = 0;
    for (*count = 0; at < text.size && *count < length; (*count)++) {
        at++;
        while (at < text.size && (text.data[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at;
}

/* Cut or filled up to the type's length. */
static tn_rc fit(const struct tn_type *type, struct tn_bytes text, struct tn_arena *arena,
                 struct tn_value *value, struct tn_err *err)
{
    size_t length = (size_t)type->length;
    bool binary = tn_type_binary(type->kind);
    size_t count = text.size < length ? text.size : length;
    size_t size = binary ? count : characters(text, length, &count);
    bool fixed = type->kind == TN_TYPE_CHAR || type->kind == TN_TYPE_BINARY;
    size_t fill = fixed ? length - count : 0;
    void *memory;
    tn_rc rc = tn_arena_need(arena, size + fill + 1, "a default value", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    unsigned char *bytes = memory;
    memcpy(bytes, text.data, size);
    memset(bytes + size, binary ? 0 : ' ', fill);
    *value = (struct tn_value){.as.bytes = {bytes, size + fill}};
    return TN_OK;
}

static tn_rc parse(const struct tn_type *type, struct tn_bytes text, struct tn_value *value,
                   struct tn_err *err)
{
    struct tn_buf none;
    tn_buf_init(&none, NULL, 0);
    *value = (struct tn_value){0};
    return tn_value_parse(type, TN_EPOCH_NONE, text, &none, value, err);
}

tn_rc tn_default_read(const struct tn_field *field, struct tn_arena *arena, struct tn_value *value,
                      struct tn_err *err)
{
    *value = (struct tn_value){.null = true};
    if (!field->default_value) {
        return TN_OK;
    }
    struct tn_bytes text = tn_bytes_of(field->default_value);
    static const struct tn_type any_text = {.kind = TN_TYPE_VARCHAR, .length = TN_LENGTH_MAX};
    const struct tn_type *type = &field->type;
    bool textual = tn_type_textual(type->kind);
    bool binary = tn_type_binary(type->kind);
    tn_rc rc = unquoted(&text, err);
    if (rc == TN_OK && !binary) {
        rc = parse(textual ? &any_text : type, text, value, err);
    }
    if (rc == TN_OK && (textual || binary)) {
        rc = fit(type, text, arena, value, err);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "field '%.60s': default value", field->name);
}

static uint32_t count_defaults(const struct tn_schema *schema)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        count += schema->fields[i].default_value != NULL;
    }
    return count;
}

static tn_rc read_all(const struct tn_schema *schema, struct tn_arena *arena,
                      struct tn_value *values, uint32_t *index, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < schema->field_count; i++) {
        rc = tn_default_read(&schema->fields[i], arena, &values[i], err);
        if (schema->fields[i].default_value) {
            *index++ = i;
        }
    }
    return rc;
}

tn_rc tn_default_row_make(const struct tn_schema *schema, const struct tn_row_layout *layout,
                          struct tn_arena *arena, struct tn_default_row *made, struct tn_err *err)
{
    TN_CHECK(layout->column_count == schema->field_count);
    uint32_t count = count_defaults(schema);
    void *index = NULL;
    void *values = NULL;
    void *row = NULL;
    *made = (struct tn_default_row){0};
    if (count == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_arena_need(arena, count * sizeof(uint32_t), "defaults", &index, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, schema->field_count * sizeof(struct tn_value), "defaults",
                           &values, err);
    }
    if (rc == TN_OK) {
        rc = read_all(schema, arena, values, index, err);
    }
    if (rc == TN_OK) {
        rc = tn_arena_need(arena, tn_row_packed_size(layout, values), "defaults", &row, err);
    }
    if (rc == TN_OK) {
        made->columns = (struct tn_columns){index, count};
        made->row = (struct tn_row){row, tn_row_pack(layout, values, row)};
    }
    return rc;
}
