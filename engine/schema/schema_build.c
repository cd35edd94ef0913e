#include "schema/schema.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "format/json.h"
#include "schema/decoder.h"
#include "schema/default.h"

enum { VERSION_NOW = 3 };

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

static tn_rc check_name(struct tn_schema_decoder *d, uint32_t field)
{
    const char *name = d->schema->fields[field].name;
    tn_schema_decoder_look(d, "fields", field, "name");
    if (name[strspn(name, " \t\r\n\v\f")] == 0) {
        return tn_schema_decoder_wrong(d, "a column needs a name");
    }
    if (reserved(name)) {
        return tn_err_set(d->err, d->bad, 0, "the name '%s' is reserved for Paimon's own columns",
                          name);
    }
    int32_t first = tn_schema_find(d->schema, tn_bytes_of(name));
    if (first != (int32_t)field) {
        return tn_err_set(d->err, d->bad, 0, "there are two columns '%s'", name);
    }
    return TN_OK;
}

static tn_rc check_names(struct tn_schema_decoder *d)
{
    tn_schema_decoder_look(d, "fields", -1, NULL);
    if (d->schema->field_count == 0) {
        return tn_schema_decoder_wrong(d, "a table needs a column");
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

static tn_rc split_names(struct tn_schema_decoder *d, const char *text, struct tn_names *names)
{
    void *items = NULL;
    size_t count = 1;
    for (const char *c = text; *c; c++) {
        count += *c == ',';
    }
    tn_rc rc = tn_schema_decoder_need(d, count * sizeof(char *), &items);
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
static tn_rc keys_from_option(struct tn_schema_decoder *d, const char *option,
                              struct tn_names *names)
{
    const char *text = tn_schema_option(d->schema, option);
    tn_rc rc = TN_OK;
    tn_schema_decoder_look(d, "options", -1, option);
    if (text && names->count > 0) {
        return tn_schema_decoder_wrong(d, "the keys are given by name and by option");
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

static tn_rc build(struct tn_schema_decoder *d, struct tn_names primary, struct tn_names partition)
{
    tn_rc rc = check_names(d);
    rc = rc != TN_OK ? rc : keys_from_option(d, "primary-key", &primary);
    rc = rc != TN_OK ? rc : keys_from_option(d, "partition", &partition);
    rc = rc != TN_OK ? rc
                     : tn_schema_decoder_keys(d, "primaryKeys", primary, &d->schema->primary_keys);
    rc = rc != TN_OK
             ? rc
             : tn_schema_decoder_keys(d, "partitionKeys", partition, &d->schema->partition_keys);
    rc = rc != TN_OK ? rc : tn_schema_decoder_trim_keys(d);
    if (rc == TN_OK) {
        number_fields(d->schema);
    }
    return rc;
}

tn_rc tn_schema_build(struct tn_schema *schema, const char *const *primary_keys,
                      uint32_t primary_key_count, const char *const *partition_keys,
                      uint32_t partition_key_count, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_schema_decoder d = {.arena = arena, .schema = schema, .err = err, .bad = TN_INVALID};
    struct tn_names primary = {0};
    struct tn_names partition = {0};
    void *items = NULL;
    tn_rc rc = tn_schema_decoder_need(
        &d, (primary_key_count + partition_key_count) * sizeof(char *) + 1, &items);
    if (rc != TN_OK) {
        return rc;
    }
    primary = (struct tn_names){items, primary_key_count};
    partition = (struct tn_names){primary.items + primary_key_count, partition_key_count};
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
    const struct tn_spot *spot;
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
    const struct tn_spot *spot = f->spot;
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

static uint32_t line_of_spot(struct tn_bytes text, const struct tn_spot *spot)
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
static tn_rc in_field(const struct tn_schema_decoder *d, uint32_t line)
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

static tn_rc at_line(const struct tn_schema_decoder *d, struct tn_bytes json)
{
    const struct tn_spot *s = &d->spot;
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
static tn_rc check_keys(struct tn_schema_decoder *d, const cJSON *object, const char *const *known,
                        uint32_t count)
{
    struct tn_spot around = d->spot;
    for (const cJSON *item = object->child; item; item = item->next) {
        bool found = false;
        for (uint32_t i = 0; i < count; i++) {
            found = found || strcmp(known[i], item->string) == 0;
        }
        if (!found) {
            const char *meant = tn_nearest_name(tn_bytes_of(item->string), known, count);
            tn_schema_decoder_look(d, around.index < 0 ? item->string : around.member, around.index,
                                   around.index < 0 ? NULL : item->string);
            return tn_err_set(d->err, d->bad, 0, "'%s' is unknown; %s%s%s", item->string,
                              meant ? "did you mean '" : "it may be left out", meant ? meant : "",
                              meant ? "'?" : "");
        }
    }
    return TN_OK;
}

static tn_rc read_user_fields(struct tn_schema_decoder *d, const cJSON *node)
{
    tn_rc rc = tn_schema_decoder_begin_fields(d, node);
    struct tn_schema *schema = d->schema;
    for (const cJSON *item = node ? node->child : NULL; item && rc == TN_OK; item = item->next) {
        tn_schema_decoder_look(d, "fields", schema->field_count, NULL);
        rc = tn_schema_decoder_field(d, item, &schema->fields[schema->field_count++]);
        if (rc == TN_OK) {
            rc = check_keys(d, item, user_field_keys,
                            sizeof(user_field_keys) / sizeof(user_field_keys[0]));
        }
    }
    return rc;
}

static tn_rc read_user_comment(struct tn_schema_decoder *d, const cJSON *node)
{
    tn_schema_decoder_look(d, "comment", -1, NULL);
    return tn_schema_decoder_text(d, node, &d->schema->comment);
}

static tn_rc read_user(struct tn_schema_decoder *d, const cJSON *root)
{
    struct tn_names primary = {0};
    struct tn_names partition = {0};
    tn_schema_decoder_look(d, "the schema", -1, NULL);
    if (!cJSON_IsObject(root)) {
        return tn_schema_decoder_wrong(d, "not an object");
    }
    tn_rc rc = check_keys(d, root, user_keys, sizeof(user_keys) / sizeof(user_keys[0]));
    rc = rc != TN_OK ? rc : read_user_fields(d, tn_json_member(root, "fields"));
    rc = rc != TN_OK ? rc : tn_schema_decoder_options(d, tn_json_member(root, "options"));
    rc = rc != TN_OK ? rc : read_user_comment(d, tn_json_member(root, "comment"));
    rc = rc != TN_OK ? rc
                     : tn_schema_decoder_names(d, tn_json_member(root, "primaryKeys"),
                                               "primaryKeys", &primary);
    rc = rc != TN_OK ? rc
                     : tn_schema_decoder_names(d, tn_json_member(root, "partitionKeys"),
                                               "partitionKeys", &partition);
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
    struct tn_schema_decoder d = {.arena = arena, .schema = &built, .err = err, .bad = TN_INVALID};
    struct cJSON *root = NULL;
    tn_rc rc = tn_schema_decoder_open(json, arena, &root, err);
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

/* NaN and -0.0 lose rows as keys, in Java as well. Tables that others made with such keys are read
 * and written, but not with these two values. */
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

/* In Java a BINARY names its folder by the address of an object, and the new name of a time with a
 * zone depends on the writer's own. */
static tn_rc check_partition_names(const struct tn_schema *schema, struct tn_err *err)
{
    const char *legacy = tn_schema_option(schema, "partition.legacy-name");
    bool zone_counts = legacy && strcasecmp(legacy, "false") == 0;
    for (uint32_t i = 0; i < schema->partition_keys.count; i++) {
        const struct tn_field *field = &schema->fields[schema->partition_keys.index[i]];
        char text[TN_TYPE_TEXT_SIZE];
        if (tn_type_binary(field->type.kind) ||
            (zone_counts && field->type.kind == TN_TYPE_TIMESTAMP_LTZ)) {
            return tn_err_set(err, TN_UNSUPPORTED, 0,
                              "field '%s': %s as a partition key names no folder that can be known",
                              field->name, tn_type_format(&field->type, text));
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
    if (field->default_value == NULL) {
        return TN_OK;
    }
    if (tn_columns_have(schema->primary_keys, index)) {
        return tn_err_set(err, TN_INVALID, 0, "field '%s': a primary key has no default",
                          field->name);
    }
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = tn_default_read(field, scratch, &value, err);
    tn_arena_reset(scratch, mark);
    return rc;
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
    rc = rc != TN_OK ? rc : check_partition_names(schema, err);
    return rc != TN_OK ? rc : check_bucket_key(schema, err);
}
