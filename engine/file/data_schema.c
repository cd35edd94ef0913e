#include "file/data_schema.h"

#include <stdio.h>
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

/* Where the text goes to, or what must be the same text. */
struct said {
    struct tn_buf *buf;   /* or NULL */
    struct tn_bytes rest; /* of the other text */
    bool same;            /* so far */
};

static void say(struct said *said, const char *text)
{
    size_t size = strlen(text);
    if (said->buf) {
        tn_buf_append(said->buf, text, size);
    } else if (said->same) {
        said->same = said->rest.size >= size && memcmp(said->rest.data, text, size) == 0;
        said->rest.data += said->same ? size : 0;
        said->rest.size -= said->same ? size : 0;
    }
}

static void say_type(struct said *said, const struct tn_type *type)
{
    char decimal[TEXT_FIELD];
    if (type->kind == TN_TYPE_DECIMAL) {
        (void)snprintf(decimal, sizeof decimal,
                       "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":%d,"
                       "\"scale\":%d}",
                       type->precision, type->scale);
    }
    say(said, type->kind == TN_TYPE_DECIMAL ? decimal : plain_type(type));
}

static void say_field(struct said *said, const char *prefix, const char *name,
                      const struct tn_type *type, bool nullable)
{
    say(said, "{\"name\":\"");
    say(said, prefix);
    say(said, name);
    say(said, nullable ? "\",\"type\":[\"null\"," : "\",\"type\":");
    say_type(said, type);
    say(said, nullable ? "],\"default\":null}" : "}");
}

static bool type_written(const struct tn_type *type)
{
    return type->kind == TN_TYPE_DECIMAL || plain_type(type);
}

static tn_rc check_field(const struct tn_field *field, struct tn_err *err)
{
    if (!name_legal(field->name)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "column '%s': avro's names have letters, digits and '_' only",
                          field->name);
    }
    if (!type_written(&field->type)) {
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

static const char key_prefix[] = "_KEY_"; /* no column has such a name */

/* The fields that are columns: fsck shows the keys of its files behind them. */
static uint32_t column_count(const struct tn_schema *schema)
{
    uint32_t count = 0;
    while (count < schema->field_count &&
           strncmp(schema->fields[count].name, key_prefix, sizeof key_prefix - 1) != 0) {
        count++;
    }
    return count;
}

static void say_schema(struct said *said, const struct tn_schema *schema, bool thin)
{
    say(said, "{\"type\":\"record\",\"name\":\"record\",\"namespace\":"
              "\"org.apache.paimon.avro.generated\",\"fields\":[");
    struct tn_columns keys = schema->trimmed_keys;
    for (uint32_t i = 0; i < keys.count && !thin; i++) {
        const struct tn_field *field = &schema->fields[keys.index[i]];
        say_field(said, key_prefix, field->name, &field->type, false);
        say(said, ",");
    }
    if (keys.count > 0) {
        say(said, "{\"name\":\"_SEQUENCE_NUMBER\",\"type\":\"long\"},"
                  "{\"name\":\"_VALUE_KIND\",\"type\":\"int\"},");
    }
    uint32_t count = column_count(schema);
    for (uint32_t i = 0; i < count; i++) {
        const struct tn_field *field = &schema->fields[i];
        say_field(said, "", field->name, &field->type, field->type.nullable);
        say(said, i + 1 < count ? "," : "]}");
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
    say_schema(&(struct said){.buf = &buf}, schema, options->thin_mode);
    TN_CHECK(!buf.overflow);
    *text = tn_buf_bytes(&buf);
    return TN_OK;
}

/* ---- the other way round ---- */

static bool is_text(struct tn_bytes text, const struct tn_schema *schema, bool thin)
{
    struct said said = {.rest = text, .same = true};
    say_schema(&said, schema, thin);
    return said.same && said.rest.size == 0;
}

/* What the parser makes of plain_type's texts. */
static struct tn_avro_type avro_type(const struct tn_type *type, bool nullable)
{
    static const enum tn_avro_kind kinds[TN_TYPE_KIND_COUNT] = {
        [TN_TYPE_BOOLEAN] = TN_AVRO_BOOLEAN,    [TN_TYPE_TINYINT] = TN_AVRO_INT,
        [TN_TYPE_SMALLINT] = TN_AVRO_INT,       [TN_TYPE_INT] = TN_AVRO_INT,
        [TN_TYPE_BIGINT] = TN_AVRO_LONG,        [TN_TYPE_FLOAT] = TN_AVRO_FLOAT,
        [TN_TYPE_DOUBLE] = TN_AVRO_DOUBLE,      [TN_TYPE_CHAR] = TN_AVRO_STRING,
        [TN_TYPE_VARCHAR] = TN_AVRO_STRING,     [TN_TYPE_BINARY] = TN_AVRO_BYTES,
        [TN_TYPE_VARBINARY] = TN_AVRO_BYTES,    [TN_TYPE_DATE] = TN_AVRO_INT,
        [TN_TYPE_TIME] = TN_AVRO_INT,           [TN_TYPE_TIMESTAMP] = TN_AVRO_LONG,
        [TN_TYPE_TIMESTAMP_LTZ] = TN_AVRO_LONG, [TN_TYPE_DECIMAL] = TN_AVRO_BYTES,
    };
    struct tn_avro_type made = {.kind = kinds[type->kind], .nullable = nullable};
    if (type->kind == TN_TYPE_TIME) {
        made.logical = TN_AVRO_LOGICAL_MILLIS;
    } else if (type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ) {
        made.logical = type->precision <= 3 ? TN_AVRO_LOGICAL_MILLIS : TN_AVRO_LOGICAL_MICROS;
    }
    return made;
}

static void add_child(struct tn_avro_type *record, const char *name, struct tn_avro_type type)
{
    record->names[record->child_count] = name;
    record->children[record->child_count++] = type;
}

static void add_children(struct tn_avro_type *record, const struct tn_schema *schema, bool thin)
{
    struct tn_columns keys = schema->trimmed_keys;
    uint32_t count = column_count(schema);
    bool named = schema->field_count >= count + keys.count;
    for (uint32_t i = 0; i < keys.count && !thin; i++) {
        add_child(record, named ? schema->fields[count + i].name : key_prefix,
                  avro_type(&schema->fields[keys.index[i]].type, false));
    }
    if (keys.count > 0) {
        add_child(record, "_SEQUENCE_NUMBER", (struct tn_avro_type){.kind = TN_AVRO_LONG});
        add_child(record, "_VALUE_KIND", (struct tn_avro_type){.kind = TN_AVRO_INT});
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct tn_field *field = &schema->fields[i];
        add_child(record, field->name, avro_type(&field->type, field->type.nullable));
    }
}

tn_rc tn_data_avro_known(struct tn_bytes text, const struct tn_schema *schema,
                         struct tn_arena *arena, struct tn_avro_type *record, struct tn_err *err)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (!type_written(&schema->fields[i].type)) {
            return TN_ABSENT;
        }
    }
    bool thin = is_text(text, schema, true);
    if (!thin && !is_text(text, schema, false)) {
        return TN_ABSENT;
    }
    size_t count = schema->field_count + schema->trimmed_keys.count + 2;
    void *children = NULL;
    void *names = NULL;
    tn_rc rc = tn_arena_need(arena, count * sizeof *record, "avro schema", &children, err);
    rc = rc != TN_OK
             ? rc
             : tn_arena_need(arena, count * sizeof *record->names, "avro schema", &names, err);
    if (rc == TN_OK) {
        *record =
            (struct tn_avro_type){.kind = TN_AVRO_RECORD, .children = children, .names = names};
        add_children(record, schema, thin);
    }
    return rc;
}
