/* A schema's text, by two readers in step: avro-c says whether it is a schema and what a name
 * stands for, cJSON keeps what avro-c drops (logical types) or refuses (names with letters beyond
 * ASCII, which Java writes). From both comes the tree that the rest of tarn walks. */
#include <avro.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>

#include "base/check.h"
#include "format/avro.h"
#include "format/json.h"

/* ---- avro-c's memory ---- */

/* avro-c writes to what its hash tables take without looking whether they got it, so a full heap
 * can't be an answer there. It is a jump out of avro-c instead: all that it holds is in the heap,
 * which is dropped. */
static struct {
    struct tn_heap *heap;  /* set once, before any thread; another one inside of the mutex */
    pthread_mutex_t mutex; /* avro-c's errors and the heap serve one schema at a time */
    jmp_buf full;
    bool inside; /* of avro-c, with `full` set */
} avro = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *taken(void *block)
{
    if (!block && avro.inside) {
        longjmp(avro.full, 1);
    }
    return block;
}

static void *avro_hook(void *user, void *block, size_t old_size, size_t size)
{
    (void)user;
    (void)old_size;
    if (size == 0) {
        tn_heap_give(avro.heap, block);
        return NULL;
    }
    return taken(tn_heap_resize(avro.heap, block, size));
}

static void *jansson_take(size_t size)
{
    return taken(tn_heap_take(avro.heap, size));
}

static void jansson_give(void *block)
{
    tn_heap_give(avro.heap, block);
}

void tn_avro_use_heap(struct tn_heap *heap)
{
    avro.heap = heap;
    avro_set_allocator(avro_hook, NULL);
    json_set_alloc_funcs(jansson_take, jansson_give);
    json_object_seed(1); /* any: schemas are bounded, and without one jansson asks the system */
}

/* ---- walking ---- */

/* Where a record was defined: a later use of its name has no JSON of its own. In avro's heap. */
struct definition {
    avro_schema_t schema;
    const cJSON *json;
    struct definition *next;
};

/* A type whose children are being made. */
struct level {
    avro_schema_t schema;
    const cJSON *json;
    const cJSON *item; /* of a record's fields, of a union's branches: the next child's */
    struct tn_avro_type *type;
    uint32_t next; /* child */
};

struct walk {
    struct tn_arena *arena;
    struct tn_err *err;
    struct definition *definitions;
    struct level levels[TN_AVRO_DEPTH_MAX];
    uint32_t depth;
};

static const struct {
    const char *name;
    enum tn_avro_logical logical;
} logicals[] = {
    {"timestamp-millis", TN_AVRO_LOGICAL_MILLIS},
    {"local-timestamp-millis", TN_AVRO_LOGICAL_MILLIS},
    {"time-millis", TN_AVRO_LOGICAL_MILLIS},
    {"timestamp-micros", TN_AVRO_LOGICAL_MICROS},
    {"local-timestamp-micros", TN_AVRO_LOGICAL_MICROS},
    {"time-micros", TN_AVRO_LOGICAL_MICROS},
};

static enum tn_avro_logical logical_of(const cJSON *json)
{
    const cJSON *name = tn_json_member(json, "logicalType");
    for (size_t i = 0; cJSON_IsString(name) && i < sizeof logicals / sizeof logicals[0]; i++) {
        if (strcmp(name->valuestring, logicals[i].name) == 0) {
            return logicals[i].logical;
        }
    }
    return TN_AVRO_LOGICAL_NONE;
}

static tn_rc define(struct walk *walk, avro_schema_t schema, const cJSON *json)
{
    struct definition *made = tn_heap_take(avro.heap, sizeof *made);
    if (!made) {
        return tn_err_set(walk->err, TN_AGAIN, 0, "avro schema needs more than %zu KB",
                          avro.heap->size / 1024);
    }
    *made = (struct definition){schema, json, walk->definitions};
    walk->definitions = made;
    return TN_OK;
}

/* What a name stands for, with the JSON of its definition. */
static tn_rc follow(struct walk *walk, avro_schema_t *schema, const cJSON **json)
{
    if (!is_avro_link(*schema)) {
        return is_avro_record(*schema) ? define(walk, *schema, *json) : TN_OK;
    }
    *schema = avro_schema_link_target(*schema);
    *json = NULL;
    for (const struct definition *known = walk->definitions; known; known = known->next) {
        if (known->schema == *schema) {
            *json = known->json;
        }
    }
    for (uint32_t i = 0; i < walk->depth; i++) {
        if (walk->levels[i].schema == *schema) {
            return tn_err_set(walk->err, TN_UNSUPPORTED, 0, "avro schema: %s contains itself",
                              avro_schema_name(*schema));
        }
    }
    return TN_OK;
}

static const cJSON *first_item(const cJSON *array)
{
    return cJSON_IsArray(array) ? array->child : NULL;
}

static const cJSON *next_item(const cJSON *item)
{
    return item ? item->next : NULL;
}

/* ["null", T] and [T, "null"] become T. */
static tn_rc unwrap(struct walk *walk, struct tn_avro_type *type, avro_schema_t *schema,
                    const cJSON **json)
{
    tn_rc rc = follow(walk, schema, json);
    if (rc || !is_avro_union(*schema) || avro_schema_union_size(*schema) != 2) {
        return rc;
    }
    bool first = is_avro_null(avro_schema_union_branch(*schema, 0));
    bool last = is_avro_null(avro_schema_union_branch(*schema, 1));
    if (first == last) {
        return TN_OK;
    }
    type->nullable = true;
    type->null_last = last;
    *json = first ? next_item(first_item(*json)) : first_item(*json);
    *schema = avro_schema_union_branch(*schema, first ? 1 : 0);
    return follow(walk, schema, json);
}

static tn_rc set_kind(struct walk *walk, struct tn_avro_type *type, avro_schema_t schema)
{
    static const enum tn_avro_kind kinds[] = {
        [AVRO_STRING] = TN_AVRO_STRING,   [AVRO_BYTES] = TN_AVRO_BYTES,
        [AVRO_INT32] = TN_AVRO_INT,       [AVRO_INT64] = TN_AVRO_LONG,
        [AVRO_FLOAT] = TN_AVRO_FLOAT,     [AVRO_DOUBLE] = TN_AVRO_DOUBLE,
        [AVRO_BOOLEAN] = TN_AVRO_BOOLEAN, [AVRO_NULL] = TN_AVRO_NULL,
        [AVRO_RECORD] = TN_AVRO_RECORD,   [AVRO_ENUM] = TN_AVRO_ENUM,
        [AVRO_FIXED] = TN_AVRO_FIXED,     [AVRO_MAP] = TN_AVRO_MAP,
        [AVRO_ARRAY] = TN_AVRO_ARRAY,     [AVRO_UNION] = TN_AVRO_UNION,
    };
    uint32_t found = (uint32_t)avro_typeof(schema);
    if (found >= sizeof kinds / sizeof kinds[0]) {
        return tn_err_set(walk->err, TN_CORRUPT, 0, "avro schema: type %" PRIu32, found);
    }
    type->kind = kinds[found];
    if (type->kind == TN_AVRO_FIXED) {
        int64_t size = avro_schema_fixed_size(schema);
        if (size < 0 || size > INT32_MAX) {
            return tn_err_set(walk->err, TN_CORRUPT, 0, "avro schema: fixed of %" PRId64 " bytes",
                              size);
        }
        type->fixed_size = (uint32_t)size;
    }
    return TN_OK;
}

static uint32_t count_children(const struct tn_avro_type *type, avro_schema_t schema)
{
    switch (type->kind) {
    case TN_AVRO_RECORD:
        return (uint32_t)avro_schema_record_size(schema);
    case TN_AVRO_UNION:
        return (uint32_t)avro_schema_union_size(schema);
    case TN_AVRO_ARRAY:
    case TN_AVRO_MAP:
        return 1;
    case TN_AVRO_NULL:
    case TN_AVRO_BOOLEAN:
    case TN_AVRO_INT:
    case TN_AVRO_LONG:
    case TN_AVRO_FLOAT:
    case TN_AVRO_DOUBLE:
    case TN_AVRO_BYTES:
    case TN_AVRO_STRING:
    case TN_AVRO_FIXED:
    case TN_AVRO_ENUM:
        return 0;
    }
    return 0;
}

static tn_rc take_names(struct walk *walk, struct tn_avro_type *type, const cJSON *json)
{
    const cJSON *field = first_item(tn_json_member(json, "fields"));
    void *memory = NULL;
    size_t size = type->child_count * sizeof *type->names;
    tn_rc rc = tn_arena_need(walk->arena, size, "avro schema", &memory, walk->err);
    if (rc) {
        return rc;
    }
    type->names = memory;
    for (uint32_t i = 0; i < type->child_count; i++, field = next_item(field)) {
        const cJSON *name = tn_json_member(field, "name");
        if (!cJSON_IsString(name)) {
            return tn_err_set(walk->err, TN_CORRUPT, 0,
                              "avro schema: field %" PRIu32 " has no name", i);
        }
        type->names[i] = tn_arena_text(walk->arena, tn_bytes_of(name->valuestring));
        if (!type->names[i]) {
            return tn_err_set(walk->err, TN_AGAIN, 0, "avro schema: %zu bytes are too few",
                              tn_arena_free(walk->arena));
        }
    }
    return TN_OK;
}

/* Opens a level above: its children are made next. */
static tn_rc descend(struct walk *walk, struct tn_avro_type *type, avro_schema_t schema,
                     const cJSON *json)
{
    if (walk->depth == TN_AVRO_DEPTH_MAX) {
        return tn_err_set(walk->err, TN_UNSUPPORTED, 0, "avro schema: more than %d levels",
                          TN_AVRO_DEPTH_MAX);
    }
    void *memory = NULL;
    size_t size = type->child_count * sizeof *type->children;
    tn_rc rc = tn_arena_need(walk->arena, size, "avro schema", &memory, walk->err);
    if (rc) {
        return rc;
    }
    type->children = memory;
    bool record = type->kind == TN_AVRO_RECORD;
    const cJSON *item = first_item(record ? tn_json_member(json, "fields") : json);
    walk->levels[walk->depth++] = (struct level){schema, json, item, type, 0};
    return record ? take_names(walk, type, json) : TN_OK;
}

static tn_rc fill(struct walk *walk, struct tn_avro_type *type, avro_schema_t schema,
                  const cJSON *json)
{
    *type = (struct tn_avro_type){0};
    tn_rc rc = unwrap(walk, type, &schema, &json);
    if (rc) {
        return rc;
    }
    rc = set_kind(walk, type, schema);
    if (rc) {
        return rc;
    }
    if (type->kind == TN_AVRO_INT || type->kind == TN_AVRO_LONG) {
        type->logical = logical_of(json);
    }
    type->child_count = count_children(type, schema);
    return type->child_count > 0 ? descend(walk, type, schema, json) : TN_OK;
}

/* The next child of a level, in both trees. */
static avro_schema_t next_child(struct level *level, const cJSON **json)
{
    int index = (int)level->next++;
    const cJSON *item = level->item;
    level->item = next_item(item);
    if (level->type->kind == TN_AVRO_RECORD) {
        *json = tn_json_member(item, "type");
        return avro_schema_record_field_get_by_index(level->schema, index);
    }
    if (level->type->kind == TN_AVRO_UNION) {
        *json = item;
        return avro_schema_union_branch(level->schema, index);
    }
    if (level->type->kind == TN_AVRO_ARRAY) {
        *json = tn_json_member(level->json, "items");
        return avro_schema_array_items(level->schema);
    }
    *json = tn_json_member(level->json, "values");
    return avro_schema_map_values(level->schema);
}

/* Depth first and in order, so a definition is met before what refers to it. Uses of a name are
 * copies, and the arena bounds what a small text can grow to. */
static tn_rc make_tree(struct walk *walk, struct tn_avro_type *root, avro_schema_t schema,
                       const cJSON *json)
{
    tn_rc rc = fill(walk, root, schema, json);
    while (rc == TN_OK && walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        if (level->next == level->type->child_count) {
            walk->depth--;
            continue;
        }
        struct tn_avro_type *child = &level->type->children[level->next];
        const cJSON *child_json = NULL;
        avro_schema_t child_schema = next_child(level, &child_json);
        rc = fill(walk, child, child_schema, child_json);
    }
    return rc;
}

/* ---- the text ---- */

static void append_ascii(struct tn_buf *buf, struct tn_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = text.data[i];
        bool escape = byte == '\\' && i + 1 < text.size;
        if (byte >= 0x80) {
            tn_buf_format(buf, "x%02x", byte);
        } else if (escape && text.data[i + 1] != 'u') {
            tn_buf_append(buf, text.data + i++, 2);
        } else if (!escape) {
            tn_buf_byte(buf, byte);
        }
    }
}

/* avro-c knows only ASCII names, Java any letters. The names in the tree are cJSON's, so avro-c may
 * see others, as long as different ones stay different: hexadecimal digits for all other letters.
 */
static tn_rc ascii_copy(struct tn_bytes *text, struct tn_arena *scratch, struct tn_err *err)
{
    size_t high = 0;
    size_t escapes = 0;
    for (size_t i = 0; i < text->size; i++) {
        high += text->data[i] >= 0x80;
        escapes += text->data[i] == '\\';
    }
    if (high + escapes == 0) {
        return TN_OK;
    }
    struct tn_buf buf;
    void *memory = NULL;
    size_t capacity = text->size + 2 * high + 1; /* and the zero of the last tn_buf_format */
    tn_rc rc = tn_arena_need(scratch, capacity, "avro schema", &memory, err);
    if (rc) {
        return rc;
    }
    tn_buf_init(&buf, memory, capacity);
    append_ascii(&buf, *text);
    TN_CHECK(!buf.overflow);
    *text = tn_buf_bytes(&buf);
    return TN_OK;
}

static tn_rc avro_parse(struct tn_bytes text, avro_schema_t *schema, struct tn_err *err)
{
    if (setjmp(avro.full)) {
        avro.inside = false;
        return tn_err_set(err, TN_AGAIN, 0, "avro schema needs more than %zu KB",
                          avro.heap->size / 1024);
    }
    avro.inside = true;
    int code = avro_schema_from_json_length((const char *)text.data, text.size, schema);
    avro.inside = false;
    if (code != 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "avro schema: %s", avro_strerror());
    }
    return TN_OK;
}

static tn_rc parse_locked(struct tn_bytes text, const cJSON *json, struct tn_arena *arena,
                          struct tn_avro_type *root, struct tn_err *err)
{
    struct walk walk = {.arena = arena, .err = err};
    struct tn_avro_type made = {0};
    avro_schema_t schema = NULL;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = ascii_copy(&text, arena, err);
    if (rc == TN_OK) {
        rc = avro_parse(text, &schema, err);
    }
    tn_arena_reset(arena, mark); /* the copy */
    if (rc == TN_OK) {
        rc = make_tree(&walk, &made, schema, json);
    }
    if (rc == TN_OK) {
        *root = made;
    } else {
        tn_arena_reset(arena, mark);
    }
    return rc;
}

/* Again, in a heap that is the upper part of what the caller's arena has free: files of very many
 * columns must open, and the board's heap is for the others. avro-c needs 3 KB a column; the tree,
 * which comes below, a thirteenth of that. */
static tn_rc parse_in_arena(struct tn_bytes text, const cJSON *json, struct tn_arena *arena,
                            struct tn_avro_type *root, struct tn_err *err)
{
    struct tn_heap *own = avro.heap;
    size_t size = tn_arena_free(arena) / 8 * 7;
    if (size <= own->size) {
        return TN_AGAIN;
    }
    struct tn_heap large;
    arena->size -= size;
    tn_heap_init(&large, arena->base + arena->size, size, false);
    avro.heap = &large;
    tn_rc rc = parse_locked(text, json, arena, root, err);
    avro.heap = own;
    tn_heap_deinit(&large);
    arena->size += size;
    return rc;
}

tn_rc tn_avro_schema_parse(struct tn_bytes text, struct tn_arena *arena, struct tn_avro_type *root,
                           struct tn_err *err)
{
    TN_CHECK(avro.heap);
    cJSON *json = NULL;
    tn_rc rc = tn_json_open(text, arena, &json, err); /* bounds the depth, for avro-c recurses */
    if (rc) {
        return tn_err_in(err, "avro schema");
    }
    (void)pthread_mutex_lock(&avro.mutex);
    rc = parse_locked(text, json, arena, root, err);
    tn_heap_drop(avro.heap);
    if (rc == TN_AGAIN) {
        rc = parse_in_arena(text, json, arena, root, err);
    }
    (void)pthread_mutex_unlock(&avro.mutex);
    tn_json_close(json);
    return rc;
}
