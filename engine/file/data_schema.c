#include "file/data_schema.h"

#include <string.h>

#include "base/check.h"

enum {
    TEXT_FIXED = 256, /* the record around the fields, and the two system fields */
    TEXT_FIELD = 160, /* the longest field less its name; counted */
};

static bool name_legal(const char *name)
{
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        bool digit = *c >= '0' && *c <= '9';
        if (!letter && !(digit && c > name)) {
            return false;
        }
    }
    return name[0] != '\0';
}

/* The names of the two kinds of timestamps are swapped against Avro's own meaning; Paimon writes
 * them so. */
static const char *timestamp_type(const struct tn_type *type)
{
    bool millis = type->precision <= 3;
    if (type->kind == TN_TYPE_TIMESTAMP) {
        return millis ? "{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}"
                      : "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}";
    }
    return millis ? "{\"type\":\"long\",\"logicalType\":\"local-timestamp-millis\"}"
                  : "{\"type\":\"long\",\"logicalType\":\"local-timestamp-micros\"}";
}

/* NULL for types that avro files hold in no form that is written. Source: Paimon,
 * AvroSchemaConverter. */
static const char *plain_type(const struct tn_type *type)
{
    switch (type->kind) {
    case TN_TYPE_BOOLEAN:
        return "\"boolean\"";
    case TN_TYPE_TINYINT:
    case TN_TYPE_SMALLINT:
    case TN_TYPE_INT:
        return "\"int\"";
    case TN_TYPE_BIGINT:
        return "\"long\"";
    case TN_TYPE_FLOAT:
        return "\"float\"";
    case TN_TYPE_DOUBLE:
        return "\"double\"";
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
        return "\"string\"";
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        return "\"bytes\"";
    case TN_TYPE_DATE:
        return "{\"type\":\"int\",\"logicalType\":\"date\"}";
    case TN_TYPE_TIME:
        return type->precision <= 3 ? "{\"type\":\"int\",\"logicalType\":\"time-millis\"}" : NULL;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        return type->precision <= 6 ? timestamp_type(type) : NULL;
    case TN_TYPE_DECIMAL: /* with its parameters: append_type */
    case TN_TYPE_ARRAY:
    case TN_TYPE_MAP:
    case TN_TYPE_MULTISET:
    case TN_TYPE_ROW:
    case TN_TYPE_VARIANT:
    case TN_TYPE_BLOB:
    case TN_TYPE_KIND_COUNT:
        break;
    }
    return NULL;
}

static void append_type(struct tn_buf *buf, const struct tn_type *type)
{
    if (type->kind == TN_TYPE_DECIMAL) {
        tn_buf_format(buf,
                      "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":%d,"
                      "\"scale\":%d}",
                      type->precision, type->scale);
    } else {
        tn_buf_text(buf, plain_type(type));
    }
}

static void append_field(struct tn_buf *buf, const char *prefix, const char *name,
                         const struct tn_type *type, bool nullable)
{
    tn_buf_format(buf, "{\"name\":\"%s%s\",\"type\":%s", prefix, name,
                  nullable ? "[\"null\"," : "");
    append_type(buf, type);
    tn_buf_text(buf, nullable ? "],\"default\":null}" : "}");
}

static tn_rc check_field(const struct tn_field *field, struct tn_err *err)
{
    if (!name_legal(field->name)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "column '%s': avro's names have letters, digits and '_' only",
                          field->name);
    }
    if (field->type.kind != TN_TYPE_DECIMAL && !plain_type(&field->type)) {
        char text[TN_TYPE_TEXT_SIZE];
        return tn_err_set(err, TN_UNSUPPORTED, 0, "column '%s': avro files hold no %s", field->name,
                          tn_type_format(&field->type, text));
    }
    return TN_OK;
}

static size_t field_max(const char *name)
{
    return 2 * (TEXT_FIELD + strlen(name)); /* as key, and as value */
}

static size_t text_max(const struct tn_schema *schema)
{
    size_t size = TEXT_FIXED;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        size += field_max(schema->fields[i].name);
    }
    return size;
}

static void append_schema(const struct tn_schema *schema, const struct tn_options *options,
                          struct tn_buf *buf)
{
    tn_buf_text(buf, "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
                     "\"org.apache.paimon.avro.generated\",\"fields\":[");
    struct tn_columns keys = schema->trimmed_keys;
    for (uint32_t i = 0; i < keys.count && !options->thin_mode; i++) {
        const struct tn_field *field = &schema->fields[keys.index[i]];
        append_field(buf, "_KEY_", field->name, &field->type, false);
        tn_buf_byte(buf, ',');
    }
    if (keys.count > 0) {
        tn_buf_text(buf, "{\"name\":\"_SEQUENCE_NUMBER\",\"type\":\"long\"},"
                         "{\"name\":\"_VALUE_KIND\",\"type\":\"int\"},");
    }
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct tn_field *field = &schema->fields[i];
        append_field(buf, "", field->name, &field->type, field->type.nullable);
        tn_buf_text(buf, i + 1 < schema->field_count ? "," : "]}");
    }
}

size_t tn_data_avro_schema_max(const struct tn_row_layout *layout)
{
    size_t size = TEXT_FIXED;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        size += field_max(layout->columns[i].name);
    }
    return size;
}

tn_rc tn_data_avro_schema(const struct tn_schema *schema, const struct tn_options *options,
                          struct tn_arena *arena, struct tn_bytes *text, struct tn_err *err)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        tn_rc rc = check_field(&schema->fields[i], err);
        if (rc) {
            return rc;
        }
    }
    size_t size = text_max(schema);
    void *memory = NULL;
    tn_rc rc = tn_arena_need(arena, size, "an avro schema", &memory, err);
    if (rc) {
        return rc;
    }
    struct tn_buf buf;
    tn_buf_init(&buf, memory, size);
    append_schema(schema, options, &buf);
    TN_CHECK(!buf.overflow);
    *text = tn_buf_bytes(&buf);
    return TN_OK;
}
