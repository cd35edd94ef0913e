#include "schema/decoder.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/json.h"

enum {
    OPTIONS_MAX = 1024, /* ours: Paimon has some 230, a column may have a few */
    NESTING_MAX = 64,   /* ours: levels of a nested type's JSON */
    TYPE_DEPTH = 2,     /* a type stands in a field, and a field in the schema */
};

void tn_schema_decoder_look(struct tn_schema_decoder *d, const char *member, int64_t index,
                            const char *part)
{
    d->spot = (struct tn_spot){member, index, part};
}

tn_rc tn_schema_decoder_wrong(struct tn_schema_decoder *d, const char *why)
{
    return tn_err_set(d->err, d->bad, 0, "%s", why);
}

tn_rc tn_schema_decoder_need(struct tn_schema_decoder *d, size_t size, void **out)
{
    return tn_arena_need(d->arena, size, "schema", out, d->err);
}

static tn_rc copy_text(struct tn_schema_decoder *d, const char *text, const char **out)
{
    size_t size = strlen(text) + 1;
    void *copy = NULL;
    tn_rc rc = tn_schema_decoder_need(d, size, &copy);
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
static tn_rc keep_json(struct tn_schema_decoder *d, const cJSON *node, const char **out)
{
    void *start = tn_arena_take_raw(d->arena, 0);
    struct tn_buf buf;
    tn_buf_init(&buf, start, start ? tn_arena_free(d->arena) : 0);
    if (!print_json(node, TYPE_DEPTH, &buf)) {
        return tn_schema_decoder_wrong(d, "the type is nested too deeply");
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

tn_rc tn_schema_decoder_number(struct tn_schema_decoder *d, const cJSON *node, int64_t low,
                               int64_t high, int64_t *out)
{
    int64_t value = 0;
    if (!tn_json_i64(node, &value) || value < low || value > high) {
        return tn_err_set(d->err, d->bad, 0, "not an integer of %" PRId64 "..%" PRId64, low, high);
    }
    *out = value;
    return TN_OK;
}

/* NULL when the member is absent. */
tn_rc tn_schema_decoder_text(struct tn_schema_decoder *d, const cJSON *node, const char **out)
{
    if (node == NULL) {
        *out = NULL;
        return TN_OK;
    }
    return cJSON_IsString(node) ? copy_text(d, node->valuestring, out)
                                : tn_schema_decoder_wrong(d, "not a text");
}

static tn_rc read_scalar(struct tn_schema_decoder *d, const cJSON *node, const char **out)
{
    char text[40];
    struct tn_buf buf;
    if (cJSON_IsString(node)) {
        return copy_text(d, node->valuestring, out);
    }
    if (!cJSON_IsNumber(node) && !cJSON_IsBool(node)) {
        return tn_schema_decoder_wrong(d, "not a text");
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

tn_rc tn_schema_decoder_names(struct tn_schema_decoder *d, const cJSON *node, const char *member,
                              struct tn_names *names)
{
    void *items = NULL;
    tn_schema_decoder_look(d, member, -1, NULL);
    if (node == NULL) {
        return TN_OK;
    }
    if (!cJSON_IsArray(node) || child_count(node) > TN_SCHEMA_FIELDS_MAX) {
        return tn_schema_decoder_wrong(d, "not an array of names");
    }
    tn_rc rc = tn_schema_decoder_need(d, child_count(node) * sizeof(char *) + 1, &items);
    names->items = items;
    for (const cJSON *item = node->child; item && rc == TN_OK; item = item->next) {
        tn_schema_decoder_look(d, member, names->count, NULL);
        rc = cJSON_IsString(item) ? copy_text(d, item->valuestring, &names->items[names->count++])
                                  : tn_schema_decoder_wrong(d, "not a name");
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
tn_rc tn_schema_decoder_options(struct tn_schema_decoder *d, const cJSON *node)
{
    void *options = NULL;
    uint32_t count = node ? child_count(node) : 0;
    tn_schema_decoder_look(d, "options", -1, NULL);
    if (node && !cJSON_IsObject(node)) {
        return tn_schema_decoder_wrong(d, "not an object");
    }
    if (count > OPTIONS_MAX) {
        return tn_err_set(d->err, d->bad, 0, "%u options, at most %d", count, OPTIONS_MAX);
    }
    tn_rc rc = tn_schema_decoder_need(d, (count + 2) * sizeof(struct tn_option), &options);
    d->schema->options = options;
    for (const cJSON *item = node ? node->child : NULL; item && rc == TN_OK; item = item->next) {
        tn_schema_decoder_look(d, "options", -1, item->string);
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
static tn_rc read_type(struct tn_schema_decoder *d, const cJSON *node, struct tn_field *field)
{
    const cJSON *text = cJSON_IsObject(node) ? tn_json_member(node, "type") : node;
    if (!cJSON_IsString(text)) {
        return tn_schema_decoder_wrong(d, text ? "the type is neither a text nor an object"
                                               : "the type is missing");
    }
    tn_rc rc = tn_type_parse(tn_bytes_of(text->valuestring), &field->type, d->err);
    if (rc != TN_OK) {
        d->err->code = d->bad;
        return d->bad;
    }
    if (cJSON_IsObject(node) && !tn_type_nested(field->type.kind)) {
        return tn_schema_decoder_wrong(d, "an object, but the type is not a nested one");
    }
    /* `ARRAY<INT>` as one text is written back as it stands, too. */
    return tn_type_nested(field->type.kind) ? keep_json(d, node, &field->type_json) : TN_OK;
}

static tn_rc read_member_text(struct tn_schema_decoder *d, const cJSON *object, const char *key,
                              const char **out)
{
    d->spot.part = key;
    return tn_schema_decoder_text(d, tn_json_member(object, key), out);
}

static tn_rc read_field_name(struct tn_schema_decoder *d, const cJSON *object,
                             struct tn_field *field)
{
    if (!cJSON_IsObject(object)) {
        return tn_schema_decoder_wrong(d, "not an object");
    }
    tn_rc rc = read_member_text(d, object, "name", &field->name);
    return rc == TN_OK && field->name == NULL ? tn_schema_decoder_wrong(d, "missing") : rc;
}

/* All of a field but its id. */
tn_rc tn_schema_decoder_field(struct tn_schema_decoder *d, const cJSON *object,
                              struct tn_field *field)
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

tn_rc tn_schema_decoder_begin_fields(struct tn_schema_decoder *d, const cJSON *node)
{
    void *fields = NULL;
    tn_schema_decoder_look(d, "fields", -1, NULL);
    if (!cJSON_IsArray(node)) {
        return tn_schema_decoder_wrong(d, node ? "not an array" : "missing");
    }
    if (child_count(node) > TN_SCHEMA_FIELDS_MAX) {
        return tn_err_set(d->err, TN_UNSUPPORTED, 0, "%u columns, at most %d", child_count(node),
                          TN_SCHEMA_FIELDS_MAX);
    }
    tn_rc rc = tn_schema_decoder_need(d, child_count(node) * sizeof(struct tn_field) + 1, &fields);
    d->schema->fields = fields;
    return rc;
}

/* ---- keys ---- */

static tn_rc no_such_column(struct tn_schema_decoder *d, const char *name)
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

static tn_rc resolve_one(struct tn_schema_decoder *d, const char *name, struct tn_columns so_far,
                         uint32_t *field)
{
    int32_t found = tn_schema_find(d->schema, tn_bytes_of(name));
    if (found < 0) {
        return no_such_column(d, name);
    }
    if (tn_columns_have(so_far, (uint32_t)found)) {
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

tn_rc tn_schema_decoder_keys(struct tn_schema_decoder *d, const char *member, struct tn_names names,
                             struct tn_columns *columns)
{
    void *block = NULL;
    tn_rc rc = tn_schema_decoder_need(d, names.count * sizeof(uint32_t) + 1, &block);
    uint32_t *index = block;
    for (uint32_t i = 0; i < names.count && rc == TN_OK; i++) {
        tn_schema_decoder_look(d, member, i, NULL);
        rc = resolve_one(d, names.items[i], (struct tn_columns){index, i}, &index[i]);
    }
    if (rc == TN_OK) {
        *columns = (struct tn_columns){index, names.count};
    }
    return rc;
}

/* The key of a file is what the primary key adds to the partition. */
tn_rc tn_schema_decoder_trim_keys(struct tn_schema_decoder *d)
{
    struct tn_schema *schema = d->schema;
    void *block = NULL;
    tn_rc rc = tn_schema_decoder_need(d, schema->primary_keys.count * sizeof(uint32_t) + 1, &block);
    uint32_t *index = block;
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->primary_keys.count && rc == TN_OK; i++) {
        if (!tn_columns_have(schema->partition_keys, schema->primary_keys.index[i])) {
            index[count++] = schema->primary_keys.index[i];
        }
    }
    tn_schema_decoder_look(d, "primaryKeys", -1, NULL);
    if (rc == TN_OK && count == 0 && schema->primary_keys.count > 0) {
        return tn_schema_decoder_wrong(
            d, "all of the primary key is in the partition keys: a partition would "
               "hold one row");
    }
    schema->trimmed_keys = (struct tn_columns){index, count};
    return rc;
}

/* ---- the document ---- */

/* The quoted copy that the parser makes is gone once there is a tree. */
tn_rc tn_schema_decoder_open(struct tn_bytes json, struct tn_arena *arena, struct cJSON **root,
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
