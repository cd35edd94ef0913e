#include "schema/schema.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

#include "format/json.h"
#include "schema/decoder.h"

enum {
    VERSION_NOW = 3,
    FIRST_SYSTEM_ID = 1073741823, /* Paimon: SpecialFields.SYSTEM_FIELD_ID_START */
};

/* ---- the members of a schema file, in the order that Java writes ---- */

static tn_rc read_version(struct tn_schema_decoder *d, const cJSON *node)
{
    int64_t version = 1;
    tn_rc rc = node ? tn_schema_decoder_number(d, node, 0, INT32_MAX, &version) : TN_OK;
    if (rc == TN_OK && version > VERSION_NOW) {
        return tn_err_set(d->err, TN_UNSUPPORTED, 0, "schema version %" PRId64 ", known up to %d",
                          version, VERSION_NOW);
    }
    d->schema->version = (int32_t)version;
    return rc;
}

static tn_rc read_id(struct tn_schema_decoder *d, const cJSON *node)
{
    return tn_schema_decoder_number(d, node, 0, INT64_MAX, &d->schema->id);
}

static tn_rc read_field_id(struct tn_schema_decoder *d, const cJSON *object, struct tn_field *field)
{
    int64_t id = 0;
    d->spot.part = "id";
    tn_rc rc =
        tn_schema_decoder_number(d, tn_json_member(object, "id"), 0, FIRST_SYSTEM_ID - 1, &id);
    field->id = (int32_t)id;
    return rc;
}

static tn_rc read_fields(struct tn_schema_decoder *d, const cJSON *node)
{
    tn_rc rc = tn_schema_decoder_begin_fields(d, node);
    struct tn_schema *schema = d->schema;
    for (const cJSON *item = node ? node->child : NULL; item && rc == TN_OK; item = item->next) {
        struct tn_field *field = &schema->fields[schema->field_count];
        tn_schema_decoder_look(d, "fields", schema->field_count, NULL);
        rc = tn_schema_decoder_field(d, item, field);
        rc = rc != TN_OK ? rc : read_field_id(d, item, field);
        for (uint32_t i = 0; i < schema->field_count && rc == TN_OK; i++) {
            if (schema->fields[i].id == field->id ||
                strcmp(schema->fields[i].name, field->name) == 0) {
                d->spot.part = NULL;
                rc = tn_err_set(d->err, d->bad, 0, "id or name are those of column '%s'",
                                schema->fields[i].name);
            }
        }
        schema->field_count++;
    }
    return rc;
}

static tn_rc read_highest_id(struct tn_schema_decoder *d, const cJSON *node)
{
    int64_t highest = 0;
    tn_rc rc = tn_schema_decoder_number(d, node, -1, INT32_MAX, &highest);
    for (uint32_t i = 0; i < d->schema->field_count; i++) {
        highest = highest < d->schema->fields[i].id ? d->schema->fields[i].id : highest;
    }
    d->schema->highest_field_id = (int32_t)highest;
    return rc;
}

static tn_rc read_partition_keys(struct tn_schema_decoder *d, const cJSON *node)
{
    struct tn_names names = {0};
    tn_rc rc = node ? tn_schema_decoder_names(d, node, "partitionKeys", &names)
                    : tn_schema_decoder_wrong(d, "missing");
    return rc != TN_OK
               ? rc
               : tn_schema_decoder_keys(d, "partitionKeys", names, &d->schema->partition_keys);
}

static tn_rc read_primary_keys(struct tn_schema_decoder *d, const cJSON *node)
{
    struct tn_names names = {0};
    tn_rc rc = node ? tn_schema_decoder_names(d, node, "primaryKeys", &names)
                    : tn_schema_decoder_wrong(d, "missing");
    rc = rc != TN_OK ? rc
                     : tn_schema_decoder_keys(d, "primaryKeys", names, &d->schema->primary_keys);
    return rc != TN_OK ? rc : tn_schema_decoder_trim_keys(d);
}

/* What old versions imply becomes explicit, as in Java. Source: Paimon, TableSchema.fromJson. */
static tn_rc read_stored_options(struct tn_schema_decoder *d, const cJSON *node)
{
    struct tn_schema *schema = d->schema;
    tn_rc rc = node ? tn_schema_decoder_options(d, node) : tn_schema_decoder_wrong(d, "missing");
    if (rc == TN_OK && schema->version <= 1 && !tn_schema_option(schema, "bucket")) {
        schema->options[schema->option_count++] = (struct tn_option){"bucket", "1"};
    }
    if (rc == TN_OK && schema->version <= 2 && !tn_schema_option(schema, "file.format")) {
        schema->options[schema->option_count++] = (struct tn_option){"file.format", "orc"};
    }
    return rc;
}

static tn_rc read_comment(struct tn_schema_decoder *d, const cJSON *node)
{
    return tn_schema_decoder_text(d, node, &d->schema->comment);
}

static tn_rc read_time(struct tn_schema_decoder *d, const cJSON *node)
{
    d->schema->time_ms = 0;
    return node ? tn_schema_decoder_number(d, node, INT64_MIN, INT64_MAX, &d->schema->time_ms)
                : TN_OK;
}

static void write_version(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_buf_format(buf, "%" PRId32, schema->version);
}

static void write_id(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_buf_format(buf, "%" PRId64, schema->id);
}

static void write_pair(struct tn_buf *buf, const char *key, const char *value)
{
    tn_buf_text(buf, "\n    ");
    tn_json_quote(buf, key);
    tn_buf_text(buf, " : ");
    tn_json_quote(buf, value);
}

static void write_type(const struct tn_field *field, struct tn_buf *buf)
{
    char text[TN_TYPE_TEXT_SIZE];
    if (field->type_json) {
        tn_buf_text(buf, field->type_json);
    } else {
        tn_json_quote(buf, tn_type_format(&field->type, text));
    }
}

static void write_field(const struct tn_field *field, struct tn_buf *buf)
{
    tn_buf_format(buf, "{\n    \"id\" : %" PRId32 ",", field->id);
    write_pair(buf, "name", field->name);
    tn_buf_text(buf, ",\n    \"type\" : ");
    write_type(field, buf);
    if (field->description) {
        tn_buf_byte(buf, ',');
        write_pair(buf, "description", field->description);
    }
    if (field->default_value) {
        tn_buf_byte(buf, ',');
        write_pair(buf, "defaultValue", field->default_value);
    }
    tn_buf_text(buf, "\n  }");
}

static void write_fields(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_buf_text(buf, "[ ");
    for (uint32_t i = 0; i < schema->field_count; i++) {
        tn_buf_text(buf, i > 0 ? ", " : "");
        write_field(&schema->fields[i], buf);
    }
    tn_buf_text(buf, schema->field_count > 0 ? " ]" : "]");
}

static void write_highest_id(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_buf_format(buf, "%" PRId32, schema->highest_field_id);
}

static void write_names(const struct tn_schema *schema, struct tn_columns columns,
                        struct tn_buf *buf)
{
    tn_buf_text(buf, "[ ");
    for (uint32_t i = 0; i < columns.count; i++) {
        tn_buf_text(buf, i > 0 ? ", " : "");
        tn_json_quote(buf, schema->fields[columns.index[i]].name);
    }
    tn_buf_text(buf, columns.count > 0 ? " ]" : "]");
}

static void write_partition_keys(const struct tn_schema *schema, struct tn_buf *buf)
{
    write_names(schema, schema->partition_keys, buf);
}

static void write_primary_keys(const struct tn_schema *schema, struct tn_buf *buf)
{
    write_names(schema, schema->primary_keys, buf);
}

static void write_options(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_buf_byte(buf, '{');
    for (uint32_t i = 0; i < schema->option_count; i++) {
        tn_buf_text(buf, i > 0 ? "," : "");
        write_pair(buf, schema->options[i].key, schema->options[i].value);
    }
    tn_buf_text(buf, schema->option_count > 0 ? "\n  }" : " }");
}

static void write_comment(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_json_quote(buf, schema->comment);
}

static void write_time(const struct tn_schema *schema, struct tn_buf *buf)
{
    tn_buf_format(buf, "%" PRId64, schema->time_ms);
}

static bool has_comment(const struct tn_schema *schema)
{
    return schema->comment != NULL;
}

/* Reading goes down the list, too: keys need the fields. */
static const struct member {
    const char *key;
    tn_rc (*read)(struct tn_schema_decoder *d, const cJSON *node); /* node NULL: absent */
    void (*write)(const struct tn_schema *schema, struct tn_buf *buf);
    bool (*present)(const struct tn_schema *schema); /* NULL: always */
} members[] = {
    {"version", read_version, write_version, NULL},
    {"id", read_id, write_id, NULL},
    {"fields", read_fields, write_fields, NULL},
    {"highestFieldId", read_highest_id, write_highest_id, NULL},
    {"partitionKeys", read_partition_keys, write_partition_keys, NULL},
    {"primaryKeys", read_primary_keys, write_primary_keys, NULL},
    {"options", read_stored_options, write_options, NULL},
    {"comment", read_comment, write_comment, has_comment},
    {"timeMillis", read_time, write_time, NULL},
};

enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

void tn_schema_encode(const struct tn_schema *schema, struct tn_buf *buf)
{
    const char *before = "{\n  ";
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (members[i].present && !members[i].present(schema)) {
            continue;
        }
        tn_buf_text(buf, before);
        tn_json_quote(buf, members[i].key);
        tn_buf_text(buf, " : ");
        members[i].write(schema, buf);
        before = ",\n  ";
    }
    tn_buf_text(buf, "\n}");
}

/* ---- decode ---- */

static tn_rc at_path(const struct tn_schema_decoder *d)
{
    const struct tn_spot *s = &d->spot;
    const char *dot = s->part ? "." : "";
    const char *part = s->part ? s->part : "";
    if (d->err->code == TN_AGAIN) {
        return TN_AGAIN; /* it isn't the place's fault */
    }
    return s->index < 0
               ? tn_err_in(d->err, "$.%s%s%s", s->member, dot, part)
               : tn_err_in(d->err, "$.%s[%" PRId64 "]%s%s", s->member, s->index, dot, part);
}

static tn_rc read_members(struct tn_schema_decoder *d, const cJSON *root)
{
    if (!cJSON_IsObject(root)) {
        return tn_err_set(d->err, d->bad, 0, "$: not an object");
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        tn_schema_decoder_look(d, members[i].key, -1, NULL);
        tn_rc rc = members[i].read(d, tn_json_member(root, members[i].key));
        if (rc != TN_OK) {
            return at_path(d);
        }
    }
    return TN_OK;
}

tn_rc tn_schema_decode(struct tn_bytes json, struct tn_arena *arena, struct tn_schema *schema,
                       struct tn_err *err)
{
    struct tn_schema decoded = {0};
    struct tn_schema_decoder d = {
        .arena = arena, .schema = &decoded, .err = err, .bad = TN_CORRUPT};
    struct cJSON *root = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_schema_decoder_open(json, arena, &root, err);
    if (rc == TN_OK) {
        rc = read_members(&d, root);
    }
    tn_json_close(root);
    if (rc == TN_OK) {
        *schema = decoded;
    } else {
        tn_arena_reset(arena, mark);
    }
    return rc;
}

/* ---- asking ---- */

int32_t tn_schema_find(const struct tn_schema *schema, struct tn_bytes name)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (tn_bytes_equal(tn_bytes_of(schema->fields[i].name), name)) {
            return (int32_t)i;
        }
    }
    return -1;
}

const char *tn_schema_option(const struct tn_schema *schema, const char *key)
{
    for (uint32_t i = 0; i < schema->option_count; i++) {
        if (strcmp(schema->options[i].key, key) == 0) {
            return schema->options[i].value;
        }
    }
    return NULL;
}

/* What the layout is made of; `names` and `field_of` live on. */
struct columns {
    const char **names;
    struct tn_type *types;
    uint32_t *field_of;
    int32_t *column_of;
    uint32_t count;
};

static tn_rc take_columns(const struct tn_schema *schema, struct columns *c, struct tn_arena *arena,
                          struct tn_err *err)
{
    uint32_t n = schema->field_count + 1;
    void *block = NULL;
    tn_rc rc =
        tn_arena_need(arena, n * (sizeof(char *) + sizeof(struct tn_type) + 2 * sizeof(uint32_t)),
                      "layout", &block, err);
    if (rc == TN_OK) {
        c->names = block;
        c->types = (struct tn_type *)(void *)(c->names + n);
        c->field_of = (uint32_t *)(void *)(c->types + n);
        c->column_of = (int32_t *)(void *)(c->field_of + n);
    }
    return rc;
}

tn_rc tn_schema_layout(const struct tn_schema *schema, struct tn_row_layout *layout,
                       uint32_t **field_of, int32_t **column_of, struct tn_arena *arena,
                       struct tn_err *err)
{
    struct columns c = {0};
    tn_rc rc = take_columns(schema, &c, arena, err);
    for (uint32_t i = 0; i < schema->field_count && rc == TN_OK; i++) {
        bool nested = tn_type_nested(schema->fields[i].type.kind);
        c.column_of[i] = nested ? -1 : (int32_t)c.count;
        if (!nested) {
            c.names[c.count] = schema->fields[i].name;
            c.types[c.count] = schema->fields[i].type;
            c.field_of[c.count++] = i;
        }
    }
    rc = rc != TN_OK ? rc : tn_row_layout_init(layout, c.names, c.types, c.count, arena, err);
    if (rc == TN_OK && field_of) {
        *field_of = c.field_of;
    }
    if (rc == TN_OK && column_of) {
        *column_of = c.column_of;
    }
    return rc;
}
