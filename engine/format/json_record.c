#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "format/json_private.h"

/* ---- reading ---- */

static void *member_of(void *record, const struct tn_json_field *field)
{
    return (unsigned char *)record + field->offset;
}

static tn_rc bad_member(const struct tn_json_field *field, const char *what, struct tn_err *err)
{
    return tn_err_set(err, TN_CORRUPT, 0, "$.%s: %s", field->key, what);
}

static tn_rc no_room(const struct tn_json_field *field, const struct tn_arena *arena,
                     struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "$.%s: %zu bytes are too few", field->key,
                      tn_arena_free(arena));
}

static tn_rc read_integer(const struct cJSON *node, const struct tn_json_field *field, void *member,
                          struct tn_err *err)
{
    int64_t value = 0;
    if (!tn_json_i64(node, &value)) {
        return bad_member(field, "not an integer of 64 bits", err);
    }
    if (field->kind == TN_JSON_I32) {
        if (value < INT32_MIN || value > INT32_MAX) {
            return bad_member(field, "not an integer of 32 bits", err);
        }
        *(int32_t *)member = (int32_t)value;
    } else if (field->need == TN_JSON_REQUIRED) {
        *(int64_t *)member = value;
    } else {
        *(struct tn_json_i64 *)member = (struct tn_json_i64){value, true};
    }
    return TN_OK;
}

static tn_rc read_text(const struct cJSON *node, const struct tn_json_field *field, void *member,
                       struct tn_arena *arena, struct tn_err *err)
{
    if (!cJSON_IsString(node)) {
        return bad_member(field, "not a string", err);
    }
    const char *text = tn_arena_text(arena, tn_bytes_of(node->valuestring));
    if (!text) {
        return no_room(field, arena, err);
    }
    *(const char **)member = text;
    return TN_OK;
}

static bool is_last_of_its_key(const struct cJSON *pair)
{
    for (const struct cJSON *later = pair->next; later; later = later->next) {
        if (strcmp(later->string, pair->string) == 0) {
            return false;
        }
    }
    return true;
}

/* The fewest digits that give the number back. */
static const char *fraction_text(double value, struct tn_arena *arena)
{
    char text[32];
    for (int digits = TN_JSON_DIGITS_EXACT; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (back >= value && back <= value) {
            break;
        }
    }
    return tn_arena_text(arena, tn_bytes_of(text));
}

/* Scalars become text as Jackson writes them; NULL for other values, or when the arena is full. */
static const char *scalar_text(const struct cJSON *node, struct tn_arena *arena)
{
    int64_t whole = 0;
    if (cJSON_IsString(node)) {
        return tn_arena_text(arena, tn_bytes_of(node->valuestring));
    }
    if (cJSON_IsBool(node)) {
        return cJSON_IsTrue(node) ? "true" : "false";
    }
    if (tn_json_i64(node, &whole)) {
        return tn_arena_format(arena, "%" PRId64, whole);
    }
    return cJSON_IsNumber(node) ? fraction_text(node->valuedouble, arena) : NULL;
}

static tn_rc read_pair(const struct cJSON *node, const struct tn_json_field *field,
                       struct tn_json_map *map, struct tn_arena *arena, struct tn_err *err)
{
    if (cJSON_IsNull(node) || !is_last_of_its_key(node)) {
        return TN_OK;
    }
    if (cJSON_IsObject(node) || cJSON_IsArray(node)) {
        return tn_err_set(err, TN_CORRUPT, 0, "$.%s.%s: not a string", field->key, node->string);
    }
    struct tn_json_pair pair = {
        .key = tn_arena_text(arena, tn_bytes_of(node->string)),
        .value = scalar_text(node, arena),
    };
    if (!pair.key || !pair.value) {
        return no_room(field, arena, err);
    }
    map->pairs[map->count++] = pair;
    return TN_OK;
}

static tn_rc read_map(const struct cJSON *node, const struct tn_json_field *field, void *member,
                      struct tn_arena *arena, struct tn_err *err)
{
    if (!cJSON_IsObject(node)) {
        return bad_member(field, "not an object", err);
    }
    size_t most = 0;
    for (const struct cJSON *child = node->child; child; child = child->next) {
        most++;
    }
    struct tn_json_map map = {.pairs = tn_arena_take(arena, most * sizeof *map.pairs)};
    if (!map.pairs) {
        return no_room(field, arena, err);
    }
    for (const struct cJSON *child = node->child; child; child = child->next) {
        tn_rc rc = read_pair(child, field, &map, arena, err);
        if (rc) {
            return rc;
        }
    }
    *(struct tn_json_map *)member = map;
    return TN_OK;
}

static tn_rc read_member(const struct cJSON *node, const struct tn_json_field *field, void *member,
                         struct tn_arena *arena, struct tn_err *err)
{
    switch (field->kind) {
    case TN_JSON_I64:
    case TN_JSON_I32:
        return read_integer(node, field, member, err);
    case TN_JSON_TEXT:
        return read_text(node, field, member, arena, err);
    case TN_JSON_MAP:
        return read_map(node, field, member, arena, err);
    }
    return bad_member(field, "no such kind", err);
}

static void clear_member(const struct tn_json_field *field, void *member)
{
    switch (field->kind) {
    case TN_JSON_I64:
        *(struct tn_json_i64 *)member = (struct tn_json_i64){0};
        return;
    case TN_JSON_I32:
        return; /* has no "absent": the record keeps its default */
    case TN_JSON_TEXT:
        *(const char **)member = NULL;
        return;
    case TN_JSON_MAP:
        *(struct tn_json_map *)member = (struct tn_json_map){0};
        return;
    }
}

tn_rc tn_json_read(const struct cJSON *object, const struct tn_json_field *fields, uint32_t count,
                   void *record, struct tn_arena *arena, struct tn_err *err)
{
    if (!cJSON_IsObject(object)) {
        return tn_err_set(err, TN_CORRUPT, 0, "$: not an object");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct cJSON *node = tn_json_member(object, fields[i].key);
        void *member = member_of(record, &fields[i]);
        tn_rc rc = TN_OK;
        if (node) {
            rc = read_member(node, &fields[i], member, arena, err);
        } else if (fields[i].need == TN_JSON_REQUIRED) {
            rc = bad_member(&fields[i], "missing", err);
        } else {
            clear_member(&fields[i], member);
        }
        if (rc) {
            return rc;
        }
    }
    return TN_OK;
}

tn_rc tn_json_read_text(struct tn_bytes text, const struct tn_json_field *fields, uint32_t count,
                        void *record, struct tn_arena *arena, struct tn_err *err)
{
    struct cJSON *root = NULL;
    tn_rc rc = tn_json_open(text, arena, &root, err);
    if (rc == TN_OK) {
        rc = tn_json_read(root, fields, count, record, arena, err);
        tn_json_close(root);
    }
    return rc;
}

/* ---- writing ---- */

/* Jackson's escapes: the two-letter ones, capitals in the others, everything above ASCII as it is.
 */
static void quote_byte(struct tn_buf *buf, unsigned char byte)
{
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (const char *pair = letters; *pair; pair += 2) {
        if ((unsigned char)pair[0] == byte) {
            tn_buf_byte(buf, '\\');
            tn_buf_byte(buf, (unsigned char)pair[1]);
            return;
        }
    }
    if (byte < ' ') {
        tn_buf_format(buf, "\\u%04X", byte);
    } else {
        tn_buf_byte(buf, byte);
    }
}

void tn_json_quote(struct tn_buf *buf, const char *text)
{
    tn_buf_byte(buf, '"');
    for (; *text; text++) {
        quote_byte(buf, (unsigned char)*text);
    }
    tn_buf_byte(buf, '"');
}

void tn_json_put_map(struct tn_buf *buf, const struct tn_json_map *map)
{
    if (map->count == 0) {
        tn_buf_text(buf, "{ }");
        return;
    }
    for (uint32_t i = 0; i < map->count; i++) {
        tn_buf_text(buf, i == 0 ? "{\n    " : ",\n    ");
        tn_json_quote(buf, map->pairs[i].key);
        tn_buf_text(buf, " : ");
        tn_json_quote(buf, map->pairs[i].value);
    }
    tn_buf_text(buf, "\n  }");
}

static bool is_absent(const void *member, const struct tn_json_field *field)
{
    switch (field->kind) {
    case TN_JSON_I64:
        return field->need == TN_JSON_OPTIONAL && !((const struct tn_json_i64 *)member)->present;
    case TN_JSON_I32:
        return false;
    case TN_JSON_TEXT:
        return !*(const char *const *)member;
    case TN_JSON_MAP:
        return field->need == TN_JSON_OPTIONAL && ((const struct tn_json_map *)member)->count == 0;
    }
    return true;
}

static void write_member(struct tn_buf *buf, const void *member, const struct tn_json_field *field)
{
    switch (field->kind) {
    case TN_JSON_I64:
        /* Present or required, the number stands first. */
        tn_buf_format(buf, "%" PRId64, *(const int64_t *)member);
        return;
    case TN_JSON_I32:
        tn_buf_format(buf, "%" PRId32, *(const int32_t *)member);
        return;
    case TN_JSON_TEXT:
        tn_json_quote(buf, *(const char *const *)member);
        return;
    case TN_JSON_MAP:
        tn_json_put_map(buf, member);
        return;
    }
}

_Static_assert(offsetof(struct tn_json_i64, value) == 0, "write_member reads it as an int64_t");

void tn_json_write(const void *record, const struct tn_json_field *fields, uint32_t count,
                   struct tn_buf *buf)
{
    bool first = true;
    for (uint32_t i = 0; i < count; i++) {
        const void *member = (const unsigned char *)record + fields[i].offset;
        if (is_absent(member, &fields[i])) {
            TN_CHECK(fields[i].need == TN_JSON_OPTIONAL);
            continue;
        }
        tn_buf_text(buf, first ? "{\n  " : ",\n  ");
        tn_json_quote(buf, fields[i].key);
        tn_buf_text(buf, " : ");
        write_member(buf, member, &fields[i]);
        first = false;
    }
    tn_buf_text(buf, first ? "{ }" : "\n}");
}
