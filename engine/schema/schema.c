#include "schema/schema.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/json.h"

enum {
    VERSION_NOW = 3,
    OPTIONS_MAX = 1024,           /* ours: Paimon has some 230, a column may have a few */
    NESTING_MAX = 64,             /* ours: levels of a nested type's JSON */
    TYPE_DEPTH = 2,               /* a type stands in a field, and a field in the schema */
    FIRST_SYSTEM_ID = 1073741823, /* Paimon: SpecialFields.SYSTEM_FIELD_ID_START */
};

/* Where in a document something is wrong: member[index].part. */
struct spot {
    const char *member;
    int64_t index;    /* -1: not in an array */
    const char *part; /* or NULL */
};

struct decoder {
    struct tn_arena *arena;
    struct tn_schema *schema;
    struct tn_err *err;
    tn_rc bad; /* CORRUPT for a stored file, INVALID for a person's */
    struct spot spot;
};

struct names {
    const char **items;
    uint32_t count;
};

static void look_at(struct decoder *d, const char *member, int64_t index, const char *part)
{
    d->spot = (struct spot){member, index, part};
}

static tn_rc wrong(struct decoder *d, const char *why)
{
    return tn_err_set(d->err, d->bad, 0, "%s", why);
}

static tn_rc need(struct decoder *d, size_t size, void **out)
{
    return tn_arena_need(d->arena, size, "schema", out, d->err);
}

static tn_rc copy_text(struct decoder *d, const char *text, const char **out)
{
    size_t size = strlen(text) + 1;
    void *copy = NULL;
    tn_rc rc = need(d, size, &copy);
    if (rc == TN_OK) {
        memcpy(copy, text, size);
        *out = copy;
    }
    return rc;
}

/* ---- nested types: JSON as Java lays it out, printed without recursion ---- */

struct printer {
    struct tn_buf *buf;
    const cJSON *open[NESTING_MAX]; /* the containers that the node is in */
    uint32_t count;
    uint32_t indent; /* objects that are open, those around the node included */
};

/* Jackson's DefaultPrettyPrinter: members on lines of their own, array elements in one line. */
static void new_line(struct printer *p)
{
    tn_buf_byte(p->buf, '\n');
    for (uint32_t i = 0; i < p->indent; i++) {
        tn_buf_text(p->buf, "  ");
    }
}

static void print_open(struct printer *p, const cJSON *node)
{
    p->open[p->count++] = node;
    tn_buf_text(p->buf, cJSON_IsObject(node) ? "{" : "[ ");
    if (cJSON_IsObject(node)) {
        p->indent++;
        new_line(p);
    }
}

static void print_close(struct printer *p)
{
    if (cJSON_IsObject(p->open[--p->count])) {
        p->indent--;
        new_line(p);
        tn_buf_byte(p->buf, '}');
    } else {
        tn_buf_text(p->buf, " ]");
    }
}

static void print_number(struct tn_buf *buf, const cJSON *node)
{
    int64_t whole = 0;
    if (tn_json_i64(node, &whole)) {
        tn_buf_format(buf, "%" PRId64, whole);
        return;
    }
    char text[32];
    (void)snprintf(text, sizeof(text), "%.15g", node->valuedouble);
    bool exact = strtod(text, NULL) == node->valuedouble;
    tn_buf_format(buf, exact ? "%.15g" : "%.17g", node->valuedouble);
}

static void print_leaf(struct tn_buf *buf, const cJSON *node)
{
    if (cJSON_IsString(node)) {
        tn_json_quote(buf, node->valuestring);
    } else if (cJSON_IsNumber(node)) {
        print_number(buf, node);
    } else if (cJSON_IsBool(node)) {
        tn_buf_text(buf, cJSON_IsTrue(node) ? "true" : "false");
    } else if (cJSON_IsArray(node)) {
        tn_buf_text(buf, "[ ]");
    } else {
        tn_buf_text(buf, cJSON_IsObject(node) ? "{ }" : "null");
    }
}

static void print_key(struct printer *p, const cJSON *node)
{
    if (p->count > 0 && cJSON_IsObject(p->open[p->count - 1])) {
        tn_json_quote(p->buf, node->string);
        tn_buf_text(p->buf, " : ");
    }
}

/* Leaves the containers that end here; the next node to print, or NULL at the end. */
static const cJSON *print_next(struct printer *p, const cJSON *node)
{
    while (p->count > 0 && node->next == NULL) {
        node = p->open[p->count - 1];
        print_close(p);
    }
    if (p->count == 0) {
        return NULL;
    }
    tn_buf_text(p->buf, ",");
    if (cJSON_IsObject(p->open[p->count - 1])) {
        new_line(p);
    } else {
        tn_buf_byte(p->buf, ' ');
    }
    return node->next;
}

/* False when it is nested too deeply. */
static bool print_json(const cJSON *root, uint32_t indent, struct tn_buf *buf)
{
    struct printer p = {.buf = buf, .indent = indent};
    const cJSON *node = root;
    while (node != NULL) {
        print_key(&p, node);
        if (node->child == NULL) {
            print_leaf(buf, node);
            node = print_next(&p, node);
        } else if (p.count == NESTING_MAX) {
            return false;
        } else {
            print_open(&p, node);
            node = node->child;
        }
    }
    return true;
}

/* Prints where the arena is free, and takes as much as that was. */
static tn_rc keep_json(struct decoder *d, const cJSON *node, const char **out)
{
    void *start = tn_arena_take_raw(d->arena, 0);
    struct tn_buf buf;
    tn_buf_init(&buf, start, start ? tn_arena_free(d->arena) : 0);
    if (!print_json(node, TYPE_DEPTH, &buf)) {
        return wrong(d, "the type is nested too deeply");
    }
    tn_buf_byte(&buf, 0);
    if (buf.overflow) {
        return tn_err_set(d->err, TN_AGAIN, 0, "schema: a nested type needs more than %zu bytes",
                          buf.capacity);
    }
    *out = tn_arena_take_raw(d->arena, buf.size);
    return TN_OK;
}

/* ---- reading values ---- */

static tn_rc read_number(struct decoder *d, const cJSON *node, int64_t low, int64_t high,
                         int64_t *out)
{
    int64_t value = 0;
    if (!tn_json_i64(node, &value) || value < low || value > high) {
        return tn_err_set(d->err, d->bad, 0, "not an integer of %" PRId64 "..%" PRId64, low, high);
    }
    *out = value;
    return TN_OK;
}

/* NULL when the member is absent. */
static tn_rc read_text(struct decoder *d, const cJSON *node, const char **out)
{
    if (node == NULL) {
        *out = NULL;
        return TN_OK;
    }
    return cJSON_IsString(node) ? copy_text(d, node->valuestring, out) : wrong(d, "not a text");
}

static tn_rc read_scalar(struct decoder *d, const cJSON *node, const char **out)
{
    char text[40];
    struct tn_buf buf;
    if (cJSON_IsString(node)) {
        return copy_text(d, node->valuestring, out);
    }
    if (!cJSON_IsNumber(node) && !cJSON_IsBool(node)) {
        return wrong(d, "not a text");
    }
    tn_buf_init(&buf, text, sizeof(text));
    print_leaf(&buf, node);
    tn_buf_byte(&buf, 0);
    return copy_text(d, text, out);
}

static uint32_t child_count(const cJSON *node)
{
    return (uint32_t)cJSON_GetArraySize(node);
}

static tn_rc read_names(struct decoder *d, const cJSON *node, const char *member,
                        struct names *names)
{
    void *items = NULL;
    look_at(d, member, -1, NULL);
    if (node == NULL) {
        return TN_OK;
    }
    if (!cJSON_IsArray(node) || child_count(node) > TN_SCHEMA_FIELDS_MAX) {
        return wrong(d, "not an array of names");
    }
    tn_rc rc = need(d, child_count(node) * sizeof(char *) + 1, &items);
    names->items = items;
    for (const cJSON *item = node->child; item && rc == TN_OK; item = item->next) {
        look_at(d, member, names->count, NULL);
        rc = cJSON_IsString(item) ? copy_text(d, item->valuestring, &names->items[names->count++])
                                  : wrong(d, "not a name");
    }
    return rc;
}

/* The place of an option: the one of that name, or a new one. */
static struct tn_option *option_at(struct tn_schema *schema, const char *key)
{
    for (uint32_t i = 0; i < schema->option_count; i++) {
        if (strcmp(schema->options[i].key, key) == 0) {
            return &schema->options[i];
        }
    }
    return &schema->options[schema->option_count++];
}

/* Two places more than there are options: what old versions imply is added. */
static tn_rc read_options(struct decoder *d, const cJSON *node)
{
    void *options = NULL;
    uint32_t count = node ? child_count(node) : 0;
    look_at(d, "options", -1, NULL);
    if (node && !cJSON_IsObject(node)) {
        return wrong(d, "not an object");
    }
    if (count > OPTIONS_MAX) {
        return tn_err_set(d->err, d->bad, 0, "%u options, at most %d", count, OPTIONS_MAX);
    }
    tn_rc rc = need(d, (count + 2) * sizeof(struct tn_option), &options);
    d->schema->options = options;
    for (const cJSON *item = node ? node->child : NULL; item && rc == TN_OK; item = item->next) {
        look_at(d, "options", -1, item->string);
        if (cJSON_IsNull(item)) {
            continue;
        }
        struct tn_option *option = option_at(d->schema, item->string);
        rc = copy_text(d, item->string, &option->key);
        rc = rc != TN_OK ? rc : read_scalar(d, item, &option->value);
    }
    return rc;
}

/* The text of a type: it stands alone, or as the member `type` of a nested one. */
static tn_rc read_type(struct decoder *d, const cJSON *node, struct tn_field *field)
{
    const cJSON *text = cJSON_IsObject(node) ? tn_json_member(node, "type") : node;
    if (!cJSON_IsString(text)) {
        return wrong(d, text ? "the type is neither a text nor an object" : "the type is missing");
    }
    tn_rc rc = tn_type_parse(tn_bytes_of(text->valuestring), &field->type, d->err);
    if (rc != TN_OK) {
        d->err->code = d->bad;
        return d->bad;
    }
    if (cJSON_IsObject(node) && !tn_type_nested(field->type.kind)) {
        return wrong(d, "an object, but the type is not a nested one");
    }
    /* `ARRAY<INT>` as one text is written back as it stands, too. */
    return tn_type_nested(field->type.kind) ? keep_json(d, node, &field->type_json) : TN_OK;
}

static tn_rc read_member_text(struct decoder *d, const cJSON *object, const char *key,
                              const char **out)
{
    d->spot.part = key;
    return read_text(d, tn_json_member(object, key), out);
}

static tn_rc read_field_name(struct decoder *d, const cJSON *object, struct tn_field *field)
{
    if (!cJSON_IsObject(object)) {
        return wrong(d, "not an object");
    }
    tn_rc rc = read_member_text(d, object, "name", &field->name);
    return rc == TN_OK && field->name == NULL ? wrong(d, "missing") : rc;
}

/* All of a field but its id. */
static tn_rc read_field(struct decoder *d, const cJSON *object, struct tn_field *field)
{
    tn_rc rc = read_field_name(d, object, field);
    if (rc == TN_OK) {
        d->spot.part = "type";
        rc = read_type(d, tn_json_member(object, "type"), field);
    }
    if (rc == TN_OK) {
        rc = read_member_text(d, object, "description", &field->description);
    }
    if (rc == TN_OK) {
        rc = read_member_text(d, object, "defaultValue", &field->default_value);
    }
    return rc;
}

static tn_rc read_field_id(struct decoder *d, const cJSON *object, struct tn_field *field)
{
    int64_t id = 0;
    d->spot.part = "id";
    tn_rc rc = read_number(d, tn_json_member(object, "id"), 0, FIRST_SYSTEM_ID - 1, &id);
    field->id = (int32_t)id;
    return rc;
}

static tn_rc begin_fields(struct decoder *d, const cJSON *node)
{
    void *fields = NULL;
    look_at(d, "fields", -1, NULL);
    if (!cJSON_IsArray(node)) {
        return wrong(d, node ? "not an array" : "missing");
    }
    if (child_count(node) > TN_SCHEMA_FIELDS_MAX) {
        return tn_err_set(d->err, TN_UNSUPPORTED, 0, "%u columns, at most %d", child_count(node),
                          TN_SCHEMA_FIELDS_MAX);
    }
    tn_rc rc = need(d, child_count(node) * sizeof(struct tn_field) + 1, &fields);
    d->schema->fields = fields;
    return rc;
}

/* ---- keys ---- */

static int32_t find_field(const struct tn_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        if (strcmp(schema->fields[i].name, name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool among(struct tn_columns columns, uint32_t field)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        if (columns.index[i] == field) {
            return true;
        }
    }
    return false;
}

static tn_rc no_such_column(struct decoder *d, const char *name)
{
    const char *names[64]; /* a table with more columns gets no hint for the rest */
    uint32_t count = 0;
    for (; count < d->schema->field_count && count < 64; count++) {
        names[count] = d->schema->fields[count].name;
    }
    const char *meant = tn_nearest_name(tn_bytes_of(name), names, count);
    return meant ? tn_err_set(d->err, d->bad, 0, "no column '%s'; did you mean '%s'?", name, meant)
                 : tn_err_set(d->err, d->bad, 0, "no column '%s'", name);
}

static tn_rc resolve_one(struct decoder *d, const char *name, struct tn_columns so_far,
                         uint32_t *field)
{
    int32_t found = find_field(d->schema, name);
    if (found < 0) {
        return no_such_column(d, name);
    }
    if (among(so_far, (uint32_t)found)) {
        return tn_err_set(d->err, d->bad, 0, "column '%s' stands there twice", name);
    }
    enum tn_type_kind kind = d->schema->fields[found].type.kind;
    if (tn_type_nested(kind)) {
        return tn_err_set(d->err, d->bad, 0, "column '%s' can't be a key: it is of type %s", name,
                          tn_type_name(kind));
    }
    *field = (uint32_t)found;
    return TN_OK;
}

static tn_rc resolve(struct decoder *d, const char *member, struct names names,
                     struct tn_columns *columns)
{
    void *block = NULL;
    tn_rc rc = need(d, names.count * sizeof(uint32_t) + 1, &block);
    uint32_t *index = block;
    for (uint32_t i = 0; i < names.count && rc == TN_OK; i++) {
        look_at(d, member, i, NULL);
        rc = resolve_one(d, names.items[i], (struct tn_columns){index, i}, &index[i]);
    }
    if (rc == TN_OK) {
        *columns = (struct tn_columns){index, names.count};
    }
    return rc;
}

/* The key of a file is what the primary key adds to the partition. */
static tn_rc trim_keys(struct decoder *d)
{
    struct tn_schema *schema = d->schema;
    void *block = NULL;
    tn_rc rc = need(d, schema->primary_keys.count * sizeof(uint32_t) + 1, &block);
    uint32_t *index = block;
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->primary_keys.count && rc == TN_OK; i++) {
        if (!among(schema->partition_keys, schema->primary_keys.index[i])) {
            index[count++] = schema->primary_keys.index[i];
        }
    }
    look_at(d, "primaryKeys", -1, NULL);
    if (rc == TN_OK && count == 0 && schema->primary_keys.count > 0) {
        return wrong(d, "all of the primary key is in the partition keys: a partition would "
                        "hold one row");
    }
    schema->trimmed_keys = (struct tn_columns){index, count};
    return rc;
}

/* ---- the members of a schema file, in the order that Java writes ---- */

static tn_rc read_version(struct decoder *d, const cJSON *node)
{
    int64_t version = 1;
    tn_rc rc = node ? read_number(d, node, 0, INT32_MAX, &version) : TN_OK;
    if (rc == TN_OK && version > VERSION_NOW) {
        return tn_err_set(d->err, TN_UNSUPPORTED, 0, "schema version %" PRId64 ", known up to %d",
                          version, VERSION_NOW);
    }
    d->schema->version = (int32_t)version;
    return rc;
}

static tn_rc read_id(struct decoder *d, const cJSON *node)
{
    return read_number(d, node, 0, INT64_MAX, &d->schema->id);
}

static tn_rc read_fields(struct decoder *d, const cJSON *node)
{
    tn_rc rc = begin_fields(d, node);
    struct tn_schema *schema = d->schema;
    for (const cJSON *item = node ? node->child : NULL; item && rc == TN_OK; item = item->next) {
        struct tn_field *field = &schema->fields[schema->field_count];
        look_at(d, "fields", schema->field_count, NULL);
        rc = read_field(d, item, field);
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

static tn_rc read_highest_id(struct decoder *d, const cJSON *node)
{
    int64_t highest = 0;
    tn_rc rc = read_number(d, node, -1, INT32_MAX, &highest);
    for (uint32_t i = 0; i < d->schema->field_count; i++) {
        highest = highest < d->schema->fields[i].id ? d->schema->fields[i].id : highest;
    }
    d->schema->highest_field_id = (int32_t)highest;
    return rc;
}

static tn_rc read_partition_keys(struct decoder *d, const cJSON *node)
{
    struct names names = {0};
    tn_rc rc = node ? read_names(d, node, "partitionKeys", &names) : wrong(d, "missing");
    return rc != TN_OK ? rc : resolve(d, "partitionKeys", names, &d->schema->partition_keys);
}

static tn_rc read_primary_keys(struct decoder *d, const cJSON *node)
{
    struct names names = {0};
    tn_rc rc = node ? read_names(d, node, "primaryKeys", &names) : wrong(d, "missing");
    rc = rc != TN_OK ? rc : resolve(d, "primaryKeys", names, &d->schema->primary_keys);
    return rc != TN_OK ? rc : trim_keys(d);
}

/* What old versions imply becomes explicit, as in Java. Source: Paimon, TableSchema.fromJson. */
static tn_rc read_stored_options(struct decoder *d, const cJSON *node)
{
    struct tn_schema *schema = d->schema;
    tn_rc rc = node ? read_options(d, node) : wrong(d, "missing");
    if (rc == TN_OK && schema->version <= 1 && !tn_schema_option(schema, "bucket")) {
        schema->options[schema->option_count++] = (struct tn_option){"bucket", "1"};
    }
    if (rc == TN_OK && schema->version <= 2 && !tn_schema_option(schema, "file.format")) {
        schema->options[schema->option_count++] = (struct tn_option){"file.format", "orc"};
    }
    return rc;
}

static tn_rc read_comment(struct decoder *d, const cJSON *node)
{
    return read_text(d, node, &d->schema->comment);
}

static tn_rc read_time(struct decoder *d, const cJSON *node)
{
    d->schema->time_ms = 0;
    return node ? read_number(d, node, INT64_MIN, INT64_MAX, &d->schema->time_ms) : TN_OK;
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
    tn_rc (*read)(struct decoder *d, const cJSON *node); /* node NULL: absent */
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

static tn_rc at_path(const struct decoder *d)
{
    const struct spot *s = &d->spot;
    const char *dot = s->part ? "." : "";
    const char *part = s->part ? s->part : "";
    if (d->err->code == TN_AGAIN) {
        return TN_AGAIN; /* it isn't the place's fault */
    }
    return s->index < 0
               ? tn_err_in(d->err, "$.%s%s%s", s->member, dot, part)
               : tn_err_in(d->err, "$.%s[%" PRId64 "]%s%s", s->member, s->index, dot, part);
}

static tn_rc read_members(struct decoder *d, const cJSON *root)
{
    if (!cJSON_IsObject(root)) {
        return tn_err_set(d->err, d->bad, 0, "$: not an object");
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        look_at(d, members[i].key, -1, NULL);
        tn_rc rc = members[i].read(d, tn_json_member(root, members[i].key));
        if (rc != TN_OK) {
            return at_path(d);
        }
    }
    return TN_OK;
}

/* The quoted copy that the parser makes is gone once there is a tree. */
static tn_rc open_document(struct tn_bytes json, struct tn_arena *arena, struct cJSON **root,
                           struct tn_err *err)
{
    if (json.size > TN_SCHEMA_SIZE_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "a schema of %zu bytes, at most %d", json.size,
                          TN_SCHEMA_SIZE_MAX);
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_json_open(json, arena, root, err);
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_schema_decode(struct tn_bytes json, struct tn_arena *arena, struct tn_schema *schema,
                       struct tn_err *err)
{
    struct tn_schema decoded = {0};
    struct decoder d = {.arena = arena, .schema = &decoded, .err = err, .bad = TN_CORRUPT};
    struct cJSON *root = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = open_document(json, arena, &root, err);
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

/* ---- build ---- */

/* Source: Paimon, SpecialFields. */
static const char *const system_names[] = {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind",
                                           "_ROW_ID"};
static const char key_prefix[] = "_KEY_";

static bool reserved(const char *name)
{
    for (size_t i = 0; i < sizeof(system_names) / sizeof(system_names[0]); i++) {
        if (strcmp(name, system_names[i]) == 0) {
            return true;
        }
    }
    return strncmp(name, key_prefix, sizeof(key_prefix) - 1) == 0;
}

static tn_rc check_name(struct decoder *d, uint32_t field)
{
    const char *name = d->schema->fields[field].name;
    look_at(d, "fields", field, "name");
    if (name[strspn(name, " \t\r\n\v\f")] == 0) {
        return wrong(d, "a column needs a name");
    }
    if (reserved(name)) {
        return tn_err_set(d->err, d->bad, 0, "the name '%s' is reserved for Paimon's own columns",
                          name);
    }
    int32_t first = find_field(d->schema, name);
    if (first != (int32_t)field) {
        return tn_err_set(d->err, d->bad, 0, "there are two columns '%s'", name);
    }
    return TN_OK;
}

static tn_rc check_names(struct decoder *d)
{
    look_at(d, "fields", -1, NULL);
    if (d->schema->field_count == 0) {
        return wrong(d, "a table needs a column");
    }
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < d->schema->field_count && rc == TN_OK; i++) {
        rc = check_name(d, i);
    }
    return rc;
}

static void drop_option(struct tn_schema *schema, const char *key)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < schema->option_count; i++) {
        if (strcmp(schema->options[i].key, key) != 0) {
            schema->options[kept++] = schema->options[i];
        }
    }
    schema->option_count = kept;
}

static tn_rc split_names(struct decoder *d, const char *text, struct names *names)
{
    void *items = NULL;
    size_t count = 1;
    for (const char *c = text; *c; c++) {
        count += *c == ',';
    }
    tn_rc rc = need(d, count * sizeof(char *), &items);
    names->items = items;
    for (const char *start = text; rc == TN_OK && names->count < count;) {
        size_t size = strcspn(start, ",");
        struct tn_bytes name = {(const unsigned char *)start, size};
        names->items[names->count] = tn_arena_text(d->arena, name);
        rc = names->items[names->count++] ? TN_OK
                                          : tn_err_set(d->err, TN_AGAIN, 0, "schema: no room");
        start += size + (start[size] == ',');
    }
    return rc;
}

/* `primary-key` and `partition` are ways to say it at creation, and never stored. Source: Paimon,
 * Schema.normalizePrimaryKeys. */
static tn_rc keys_from_option(struct decoder *d, const char *option, struct names *names)
{
    const char *text = tn_schema_option(d->schema, option);
    tn_rc rc = TN_OK;
    look_at(d, "options", -1, option);
    if (text && names->count > 0) {
        return wrong(d, "the keys are given by name and by option");
    }
    if (text) {
        rc = split_names(d, text, names);
        drop_option(d->schema, option);
    }
    return rc;
}

static void number_fields(struct tn_schema *schema)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        schema->fields[i].id = (int32_t)i;
    }
    for (uint32_t i = 0; i < schema->primary_keys.count; i++) {
        schema->fields[schema->primary_keys.index[i]].type.nullable = false;
    }
    schema->highest_field_id = (int32_t)schema->field_count - 1;
    schema->version = VERSION_NOW;
    schema->id = 0;
}

static tn_rc build(struct decoder *d, struct names primary, struct names partition)
{
    tn_rc rc = check_names(d);
    rc = rc != TN_OK ? rc : keys_from_option(d, "primary-key", &primary);
    rc = rc != TN_OK ? rc : keys_from_option(d, "partition", &partition);
    rc = rc != TN_OK ? rc : resolve(d, "primaryKeys", primary, &d->schema->primary_keys);
    rc = rc != TN_OK ? rc : resolve(d, "partitionKeys", partition, &d->schema->partition_keys);
    rc = rc != TN_OK ? rc : trim_keys(d);
    if (rc == TN_OK) {
        number_fields(d->schema);
    }
    return rc;
}

tn_rc tn_schema_build(struct tn_schema *schema, const char *const *primary_keys,
                      uint32_t primary_key_count, const char *const *partition_keys,
                      uint32_t partition_key_count, struct tn_arena *arena, struct tn_err *err)
{
    struct decoder d = {.arena = arena, .schema = schema, .err = err, .bad = TN_INVALID};
    struct names primary = {0};
    struct names partition = {0};
    void *items = NULL;
    tn_rc rc = need(&d, (primary_key_count + partition_key_count) * sizeof(char *) + 1, &items);
    if (rc != TN_OK) {
        return rc;
    }
    primary = (struct names){items, primary_key_count};
    partition = (struct names){primary.items + primary_key_count, partition_key_count};
    for (uint32_t i = 0; i < primary_key_count; i++) {
        primary.items[i] = primary_keys[i];
    }
    for (uint32_t i = 0; i < partition_key_count; i++) {
        partition.items[i] = partition_keys[i];
    }
    rc = build(&d, primary, partition);
    if (rc != TN_OK && rc != TN_AGAIN) {
        return strcmp(d.spot.member, "primaryKeys") == 0     ? tn_err_in(err, "primary key")
               : strcmp(d.spot.member, "partitionKeys") == 0 ? tn_err_in(err, "partition key")
                                                             : rc;
    }
    return rc;
}

/* ---- what a person wrote ---- */

static const char *const user_keys[] = {"fields",  "primaryKeys", "partitionKeys",
                                        "options", "comment",     "version",
                                        "id",      "timeMillis",  "highestFieldId"};
static const char *const user_field_keys[] = {"name", "type", "description", "defaultValue", "id"};

/* Finds a spot in a document that has been parsed: walks the tokens, knowing only depth. */
struct finder {
    struct tn_bytes text;
    const struct spot *spot;
    size_t at;
    size_t found; /* the nearest place so far */
    uint32_t depth;
    int64_t element; /* index in the array at depth 2 */
    bool in_member;
    bool in_element;
};

static size_t string_end(struct tn_bytes text, size_t at)
{
    for (at++; at < text.size && text.data[at] != '"'; at++) {
        at += text.data[at] == '\\';
    }
    return at < text.size ? at + 1 : text.size;
}

static bool is_key(struct tn_bytes text, size_t at)
{
    while (at < text.size && memchr(" \t\r\n", text.data[at], 4)) {
        at++;
    }
    return at < text.size && text.data[at] == ':';
}

/* A key that stands at `start`: true when it is the spot. */
static bool find_key(struct finder *f, size_t start, size_t end)
{
    const struct spot *spot = f->spot;
    struct tn_bytes key = {f->text.data + start + 1, end > start + 1 ? end - start - 2 : 0};
    if (f->depth == 1) {
        f->in_member = tn_bytes_equal(key, tn_bytes_of(spot->member));
        f->in_element = false;
        f->found = f->in_member ? start : f->found;
        return f->in_member && spot->index < 0 && spot->part == NULL;
    }
    bool inside =
        f->in_member && (spot->index < 0 ? f->depth == 2 : f->depth == 3 && f->in_element);
    if (!inside || spot->part == NULL || !tn_bytes_equal(key, tn_bytes_of(spot->part))) {
        return false;
    }
    f->found = start;
    return true;
}

static void find_element(struct finder *f)
{
    if (f->in_member && f->depth == 2 && f->spot->index >= 0) {
        bool here = f->element == f->spot->index;
        f->found = here && !f->in_element ? f->at : f->found;
        f->in_element = here;
    }
}

static void find_structure(struct finder *f, unsigned char c)
{
    if (c == '{' || c == '[') {
        find_element(f);
        f->depth++;
        f->element = f->depth == 2 ? 0 : f->element;
    } else if (c == '}' || c == ']') {
        f->depth -= f->depth > 0;
    } else if (c == ',' && f->depth == 2) {
        f->element++;
        f->in_element = false;
    } else if (!memchr(" \t\r\n:,", c, 6)) {
        find_element(f); /* a number, true, false, null */
    }
}

static uint32_t line_of_spot(struct tn_bytes text, const struct spot *spot)
{
    struct finder f = {.text = text, .spot = spot};
    while (f.at < text.size) {
        unsigned char c = text.data[f.at];
        if (c != '"') {
            find_structure(&f, c);
            f.at++;
            continue;
        }
        size_t end = string_end(text, f.at);
        if (is_key(text, end)) {
            if (find_key(&f, f.at, end)) {
                break;
            }
        } else {
            find_element(&f);
        }
        f.at = end;
    }
    return tn_json_line_of(text, f.found);
}

/* What is wrong with a type says so itself. */
static tn_rc in_field(const struct decoder *d, uint32_t line)
{
    const char *name = d->schema->fields[d->spot.index].name;
    const char *part = d->spot.part ? d->spot.part : "its JSON";
    if (name == NULL) {
        return tn_err_in(d->err, "%u: field %" PRId64 ": %s", line, d->spot.index + 1, part);
    }
    return strcmp(part, "description") == 0 || strcmp(part, "defaultValue") == 0
               ? tn_err_in(d->err, "%u: field '%s': %s", line, name, part)
               : tn_err_in(d->err, "%u: field '%s'", line, name);
}

static tn_rc at_line(const struct decoder *d, struct tn_bytes json)
{
    const struct spot *s = &d->spot;
    if (d->err->code == TN_AGAIN) {
        return TN_AGAIN;
    }
    uint32_t line = line_of_spot(json, s);
    if (strcmp(s->member, "fields") == 0 && s->index >= 0) {
        return in_field(d, line);
    }
    if (strcmp(s->member, "options") == 0 && s->part) {
        return tn_err_in(d->err, "%u: option '%s'", line, s->part);
    }
    return tn_err_in(d->err, "%u: %s", line, s->member);
}

/* A misspelt member must not vanish. */
static tn_rc check_keys(struct decoder *d, const cJSON *object, const char *const *known,
                        uint32_t count)
{
    struct spot around = d->spot;
    for (const cJSON *item = object->child; item; item = item->next) {
        bool found = false;
        for (uint32_t i = 0; i < count; i++) {
            found = found || strcmp(known[i], item->string) == 0;
        }
        if (!found) {
            const char *meant = tn_nearest_name(tn_bytes_of(item->string), known, count);
            look_at(d, around.index < 0 ? item->string : around.member, around.index,
                    around.index < 0 ? NULL : item->string);
            return tn_err_set(d->err, d->bad, 0, "'%s' is unknown; %s%s%s", item->string,
                              meant ? "did you mean '" : "it may be left out", meant ? meant : "",
                              meant ? "'?" : "");
        }
    }
    return TN_OK;
}

static tn_rc read_user_fields(struct decoder *d, const cJSON *node)
{
    tn_rc rc = begin_fields(d, node);
    struct tn_schema *schema = d->schema;
    for (const cJSON *item = node ? node->child : NULL; item && rc == TN_OK; item = item->next) {
        look_at(d, "fields", schema->field_count, NULL);
        rc = read_field(d, item, &schema->fields[schema->field_count++]);
        if (rc == TN_OK) {
            rc = check_keys(d, item, user_field_keys,
                            sizeof(user_field_keys) / sizeof(user_field_keys[0]));
        }
    }
    return rc;
}

static tn_rc read_user_comment(struct decoder *d, const cJSON *node)
{
    look_at(d, "comment", -1, NULL);
    return read_comment(d, node);
}

static tn_rc read_user(struct decoder *d, const cJSON *root)
{
    struct names primary = {0};
    struct names partition = {0};
    look_at(d, "the schema", -1, NULL);
    if (!cJSON_IsObject(root)) {
        return wrong(d, "not an object");
    }
    tn_rc rc = check_keys(d, root, user_keys, sizeof(user_keys) / sizeof(user_keys[0]));
    rc = rc != TN_OK ? rc : read_user_fields(d, tn_json_member(root, "fields"));
    rc = rc != TN_OK ? rc : read_options(d, tn_json_member(root, "options"));
    rc = rc != TN_OK ? rc : read_user_comment(d, tn_json_member(root, "comment"));
    rc = rc != TN_OK ? rc
                     : read_names(d, tn_json_member(root, "primaryKeys"), "primaryKeys", &primary);
    rc = rc != TN_OK
             ? rc
             : read_names(d, tn_json_member(root, "partitionKeys"), "partitionKeys", &partition);
    return rc != TN_OK ? rc : build(d, primary, partition);
}

/* The parser says "at byte N"; a person wants the line. */
static tn_rc not_json(struct tn_bytes json, struct tn_err *err)
{
    const char *at = strstr(err->text, "at byte ");
    size_t byte = at ? (size_t)strtoul(at + strlen("at byte "), NULL, 10) : 0;
    err->code = TN_INVALID;
    return tn_err_in(err, "%u", tn_json_line_of(json, byte < json.size ? byte : json.size));
}

tn_rc tn_schema_from_user(struct tn_bytes json, struct tn_arena *arena, struct tn_schema *schema,
                          struct tn_err *err)
{
    struct tn_schema built = {0};
    struct decoder d = {.arena = arena, .schema = &built, .err = err, .bad = TN_INVALID};
    struct cJSON *root = NULL;
    tn_rc rc = open_document(json, arena, &root, err);
    if (rc == TN_CORRUPT) {
        return not_json(json, err);
    }
    if (rc == TN_OK) {
        rc = read_user(&d, root);
        rc = rc != TN_OK ? at_line(&d, json) : TN_OK;
    }
    tn_json_close(root);
    if (rc == TN_OK) {
        *schema = built;
    }
    return rc;
}

/* ---- what tarn creates ---- */

/* Avro's names, by which a file's columns are found. Source: Avro specification, Names. */
static bool avro_name(const char *name)
{
    for (const char *c = name; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!letter && (c == name || *c < '0' || *c > '9')) {
            return false;
        }
    }
    return true;
}

static tn_rc check_type(const struct tn_field *field, struct tn_err *err)
{
    const struct tn_type *type = &field->type;
    char text[TN_TYPE_TEXT_SIZE];
    int most = type->kind == TN_TYPE_TIME                                               ? 3
               : type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ ? 6
                                                                                        : INT32_MAX;
    if (!avro_name(field->name)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "field '%s': a name in avro files has only letters a-z, digits and '_'",
                          field->name);
    }
    if (tn_type_nested(type->kind)) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "field '%s': type %s is not written by this build", field->name,
                          tn_type_name(type->kind));
    }
    if (type->kind != TN_TYPE_DECIMAL && type->precision > most) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "field '%s': %s: avro files hold at most %d digits of a second",
                          field->name, tn_type_format(type, text), most);
    }
    return TN_OK;
}

/* NaN and -0.0 lose rows as keys, in Java as well (format spec, 15.24). */
static tn_rc check_key_types(const struct tn_schema *schema, struct tn_columns columns,
                             const char *what, struct tn_err *err)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        const struct tn_field *field = &schema->fields[columns.index[i]];
        if (field->type.kind == TN_TYPE_FLOAT || field->type.kind == TN_TYPE_DOUBLE) {
            return tn_err_set(err, TN_UNSUPPORTED, 0,
                              "field '%s': %s can't be a %s: NaN and -0.0 have "
                              "no sure place",
                              field->name, tn_type_name(field->type.kind), what);
        }
    }
    return TN_OK;
}

static tn_rc check_bucket_key(const struct tn_schema *schema, struct tn_err *err)
{
    const char *text = tn_schema_option(schema, "bucket-key");
    while (text && *text) {
        size_t size = strcspn(text, ",");
        int32_t found =
            tn_schema_find(schema, (struct tn_bytes){(const unsigned char *)text, size});
        uint32_t index = found < 0 ? 0 : (uint32_t)found;
        tn_rc rc = found < 0
                       ? TN_OK
                       : check_key_types(schema, (struct tn_columns){&index, 1}, "bucket key", err);
        if (rc != TN_OK) {
            return rc;
        }
        text += size + (text[size] == ',');
    }
    return TN_OK;
}

static tn_rc check_default(const struct tn_schema *schema, uint32_t index, struct tn_arena *scratch,
                           struct tn_err *err)
{
    const struct tn_field *field = &schema->fields[index];
    struct tn_value value;
    struct tn_buf buf;
    if (field->default_value == NULL) {
        return TN_OK;
    }
    if (among(schema->primary_keys, index)) {
        return tn_err_set(err, TN_INVALID, 0, "field '%s': a primary key has no default",
                          field->name);
    }
    size_t mark = tn_arena_mark(scratch);
    size_t size = strlen(field->default_value) + 1;
    void *block = tn_arena_take_raw(scratch, size);
    if (block == NULL) {
        return tn_err_set(err, TN_AGAIN, 0, "field '%s': the default needs %zu bytes", field->name,
                          size);
    }
    tn_buf_init(&buf, block, size);
    tn_rc rc = tn_value_parse(&field->type, TN_EPOCH_NONE, tn_bytes_of(field->default_value), &buf,
                              &value, err);
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "field '%s': default value", field->name);
}

tn_rc tn_schema_check_create(const struct tn_schema *schema, struct tn_arena *scratch,
                             struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < schema->field_count && rc == TN_OK; i++) {
        rc = check_type(&schema->fields[i], err);
        rc = rc != TN_OK ? rc : check_default(schema, i, scratch, err);
    }
    rc = rc != TN_OK ? rc : check_key_types(schema, schema->primary_keys, "primary key", err);
    rc = rc != TN_OK ? rc : check_key_types(schema, schema->partition_keys, "partition key", err);
    return rc != TN_OK ? rc : check_bucket_key(schema, err);
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
