/* avro: containers of Java and Python writers are walked to their last byte; schemas, good and bad;
 * values cut anywhere. */
#include "format/avro.h"

#include <inttypes.h>
#include <pthread.h>

#include "check.h"
#include "format/json.h"

enum { FILE_MAX = 64 * 1024, ARENA_SIZE = 8 * 1024 * 1024, HEAP_SIZE = 1024 * 1024 };

static struct tn_heap json_heap;
static struct tn_heap avro_heap;
static struct tn_arena arena;
static struct tn_codec codec;
static struct tn_err err;
static void *json_memory;
static void *avro_memory;
static size_t arena_start; /* behind the codec's contexts */

static const char *const java_files[] = {
    "java-null.avro",  "java-deflate.avro", "java-snappy.avro", "java-zstandard.avro",
    "java-bzip2.avro", "java-types.avro",   "java-manifest",    "java-manifest-list",
};
static const char *const python_files[] = {
    "pypaimon-data.avro",
    "pypaimon-manifest",
    "pypaimon-manifest-list",
};

static void set_up(void)
{
    tn_json_use_heap(&json_heap);
    tn_avro_use_heap(&avro_heap);
    json_memory = malloc(HEAP_SIZE);
    avro_memory = malloc(HEAP_SIZE);
    tn_heap_init(&json_heap, json_memory, HEAP_SIZE, true);
    tn_heap_init(&avro_heap, avro_memory, HEAP_SIZE, true);
    tn_arena_init(&arena, malloc(ARENA_SIZE), ARENA_SIZE);
    tn_rc rc = tn_codec_init(&codec, 1, 64 * 1024, &arena, &err);
    CHECK_OK(rc, err);
    arena_start = tn_arena_mark(&arena);
}

static void tear_down(void)
{
    tn_heap_deinit(&json_heap);
    tn_heap_deinit(&avro_heap);
    free(json_memory);
    free(avro_memory);
    free(arena.base);
}

static struct tn_bytes golden(const char *name)
{
    static unsigned char content[FILE_MAX];
    char path[128];
    (void)snprintf(path, sizeof path, "tests/golden/avro/%s", name);
    FILE *file = fopen(path, "rb");
    CHECK(file);
    size_t size = fread(content, 1, sizeof content, file);
    (void)fclose(file);
    CHECK(size > 0 && size < sizeof content);
    return (struct tn_bytes){content, size};
}

static struct tn_avro_type parse(struct tn_bytes text)
{
    struct tn_avro_type root = {0};
    tn_rc rc = tn_avro_schema_parse(text, &arena, &root, &err);
    CHECK_OK(rc, err);
    return root;
}

static struct tn_bytes after(struct tn_bytes bytes, size_t size)
{
    CHECK(size <= bytes.size);
    return (struct tn_bytes){bytes.data + size, bytes.size - size};
}

/* One block: its rows are passed one by one, and they end where the block ends. Returns the rows.
 */
static int64_t walk_block(const struct tn_avro_header *header, const struct tn_avro_type *root,
                          struct tn_bytes *rest)
{
    int64_t rows = 0;
    int64_t size = 0;
    uint32_t head = 0;
    size_t needed = 0;
    struct tn_buf raw;
    tn_rc rc = tn_avro_block_decode(*rest, &rows, &size, &head, &err);
    CHECK_OK(rc, err);
    *rest = after(*rest, head);
    tn_buf_init(&raw, tn_arena_take(&arena, FILE_MAX), FILE_MAX);
    rc = tn_codec_decompress(&codec, header->codec, (struct tn_bytes){rest->data, (size_t)size},
                             &arena, &raw, &needed, &err);
    CHECK_OK(rc, err);
    struct tn_avro_cursor c = {raw.data, raw.data + raw.size, false};
    for (int64_t i = 0; i < rows; i++) {
        CHECK(c.at < c.end);
        tn_avro_skip(&c, root);
        CHECK(!c.failed);
    }
    CHECK(c.at == c.end);
    *rest = after(*rest, (size_t)size);
    CHECK(memcmp(rest->data, header->sync, sizeof header->sync) == 0);
    *rest = after(*rest, sizeof header->sync);
    return rows;
}

static int64_t walk_file(const char *name)
{
    tn_arena_reset(&arena, arena_start);
    struct tn_bytes file = golden(name);
    struct tn_avro_header header;
    tn_rc rc = tn_avro_header_decode(file, &header, &err);
    CHECK_OK(rc, err);
    struct tn_avro_type root = parse(header.schema);
    CHECK(root.kind == TN_AVRO_RECORD && !root.nullable);
    int64_t rows = 0;
    for (struct tn_bytes rest = after(file, header.size); rest.size > 0;) {
        rows += walk_block(&header, &root, &rest);
    }
    return rows;
}

static void golden_files_are_walked_to_their_last_byte(void)
{
    for (size_t i = 0; i < COUNT(java_files); i++) {
        int64_t rows = walk_file(java_files[i]);
        CHECK(i < 5 ? rows == 60 : rows > 0);
    }
    for (size_t i = 0; i < COUNT(python_files); i++) {
        CHECK(walk_file(python_files[i]) > 0);
    }
}

static void headers_are_written_as_java_writes_them(void)
{
    static unsigned char memory[FILE_MAX];
    for (size_t i = 0; i < COUNT(java_files); i++) {
        struct tn_bytes file = golden(java_files[i]);
        struct tn_avro_header header;
        struct tn_buf buf;
        tn_rc rc = tn_avro_header_decode(file, &header, &err);
        CHECK_OK(rc, err);
        tn_buf_init(&buf, memory, sizeof memory);
        tn_avro_header_encode(header.schema, header.codec, header.sync, &buf);
        CHECK(buf.size == header.size && memcmp(memory, file.data, buf.size) == 0);
    }
}

static void a_header_cut_anywhere_asks_for_more(void)
{
    struct tn_bytes file = golden("java-manifest-list");
    struct tn_avro_header header;
    tn_rc rc = tn_avro_header_decode(file, &header, &err);
    CHECK_OK(rc, err);
    for (size_t size = 0; size < header.size; size++) {
        unsigned char *copy = malloc(size + 1); /* exact, so that ASan sees the end */
        memcpy(copy, file.data, size);
        struct tn_avro_header cut;
        rc = tn_avro_header_decode((struct tn_bytes){copy, size}, &cut, &err);
        CHECK(rc == TN_AGAIN);
        free(copy);
    }
}

static void bad_headers_are_corrupt(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        tn_rc rc;
        const char *text;
    } cases[] = {
        {"PAR1", 4, TN_CORRUPT, "byte 0"},
        {"Ob", 2, TN_AGAIN, "more than 2 bytes"},
        {"Obj\2", 4, TN_CORRUPT, "byte 0"},
        {"Obj\1\0"
         "0123456789abcdef",
         21, TN_CORRUPT, "no avro.schema"},
        {"Obj\1\2\1", 6, TN_AGAIN, ""},
        {"Obj\1\2\1xyz", 9, TN_CORRUPT, "byte 6"},
        {"Obj\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, TN_CORRUPT, "byte 14"},
        {"Obj\1\2\x14"
         "avro.codec\6lzo\0",
         22, TN_UNSUPPORTED, "\"lzo\""},
        /* A block with its size in bytes (-1, 9), no codec. */
        {"Obj\1\1\x12\x16"
         "avro.schema\6int\0"
         "0123456789abcdef",
         39, TN_OK, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_avro_header header = {.codec = TN_CODEC_ID_BZIP2};
        struct tn_bytes bytes = {(const unsigned char *)cases[i].bytes, cases[i].size};
        tn_rc rc = tn_avro_header_decode(bytes, &header, &err);
        CHECK(rc == cases[i].rc);
        if (rc != TN_OK && !strstr(err.text, cases[i].text)) {
            (void)fprintf(stderr, "case %zu: %s\n", i, err.text);
            CHECK(false);
        }
        CHECK(rc != TN_OK || (header.codec == TN_CODEC_ID_NULL && header.size == 39));
    }
}

static void block_heads_are_bounded(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        tn_rc rc;
    } cases[] = {
        {"", 0, TN_AGAIN},
        {"\2\x80", 2, TN_AGAIN},
        {"\2\xb4\1", 3, TN_OK},
        {"\1\2", 2, TN_CORRUPT},
        {"\2\1", 2, TN_CORRUPT},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20,
         TN_CORRUPT},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t rows = 0;
        int64_t size = 0;
        uint32_t head = 0;
        struct tn_bytes bytes = {(const unsigned char *)cases[i].bytes, cases[i].size};
        tn_rc rc = tn_avro_block_decode(bytes, &rows, &size, &head, &err);
        CHECK(rc == cases[i].rc);
        CHECK(rc != TN_OK || (rows == 1 && size == 90 && head == 3)); /* spec 4.3 */
    }
}

static const struct tn_avro_type *field(const struct tn_avro_type *record, const char *name)
{
    CHECK(record->kind == TN_AVRO_RECORD);
    for (uint32_t i = 0; i < record->child_count; i++) {
        if (strcmp(record->names[i], name) == 0) {
            return &record->children[i];
        }
    }
    CHECK(!"a field of this name");
    return NULL;
}

/* Spec 9.2. `path`: fields, and # for the items of an array or the values of a map. */
static void java_types_have_their_shape(void)
{
    static const struct {
        const char *path;
        enum tn_avro_kind kind;
        enum tn_avro_logical logical;
        bool nullable;
    } cases[] = {
        {"_SEQUENCE_NUMBER", TN_AVRO_LONG, TN_AVRO_LOGICAL_NONE, false},
        {"c_bool", TN_AVRO_BOOLEAN, TN_AVRO_LOGICAL_NONE, true},
        {"c_tiny", TN_AVRO_INT, TN_AVRO_LOGICAL_NONE, true},
        {"c_float", TN_AVRO_FLOAT, TN_AVRO_LOGICAL_NONE, true},
        {"c_double", TN_AVRO_DOUBLE, TN_AVRO_LOGICAL_NONE, true},
        {"c_dec38", TN_AVRO_BYTES, TN_AVRO_LOGICAL_NONE, true},
        {"c_str", TN_AVRO_STRING, TN_AVRO_LOGICAL_NONE, true},
        {"c_date", TN_AVRO_INT, TN_AVRO_LOGICAL_NONE, true},
        {"c_time", TN_AVRO_INT, TN_AVRO_LOGICAL_MILLIS, true},
        {"c_ts3", TN_AVRO_LONG, TN_AVRO_LOGICAL_MILLIS, true},
        {"c_ts6", TN_AVRO_LONG, TN_AVRO_LOGICAL_MICROS, true},
        {"c_ltz3", TN_AVRO_LONG, TN_AVRO_LOGICAL_MILLIS, true},
        {"c_ltz6", TN_AVRO_LONG, TN_AVRO_LOGICAL_MICROS, true},
        {"c_arr", TN_AVRO_ARRAY, TN_AVRO_LOGICAL_NONE, true},
        {"c_arr2.#.#", TN_AVRO_STRING, TN_AVRO_LOGICAL_NONE, true},
        {"c_map.#", TN_AVRO_LONG, TN_AVRO_LOGICAL_NONE, true},
        {"c_map2.#.value.#", TN_AVRO_DOUBLE, TN_AVRO_LOGICAL_NONE, true},
        {"c_row.c.e", TN_AVRO_LONG, TN_AVRO_LOGICAL_MILLIS, true},
        {"c_rows.#.y", TN_AVRO_STRING, TN_AVRO_LOGICAL_NONE, true},
        {"c_maprow.#.q", TN_AVRO_BYTES, TN_AVRO_LOGICAL_NONE, true},
    };
    tn_arena_reset(&arena, arena_start);
    struct tn_avro_header header;
    tn_rc rc = tn_avro_header_decode(golden("java-types.avro"), &header, &err);
    CHECK_OK(rc, err);
    struct tn_avro_type root = parse(header.schema);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tn_avro_type *type = &root;
        char path[64];
        (void)snprintf(path, sizeof path, "%s", cases[i].path);
        for (char *word = strtok(path, "."); word; word = strtok(NULL, ".")) {
            type = word[0] == '#' ? &type->children[0] : field(type, word);
        }
        CHECK(type->kind == cases[i].kind);
        CHECK(type->logical == cases[i].logical);
        CHECK(type->nullable == cases[i].nullable && !type->null_last);
    }
}

static void schemas_are_parsed_or_refused(void)
{
    static const struct {
        const char *schema;
        tn_rc rc;
        const char *text; /* of the error */
    } cases[] = {
        {"\"int\"", TN_OK, ""},
        {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":12}", TN_OK, ""},
        {"{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\",\"B\"]}", TN_OK, ""},
        {"[\"null\",\"int\",\"string\"]", TN_OK, ""},
        {"[\"null\",\"null\"]", TN_OK, ""},
        {"", TN_CORRUPT, "byte 0"},
        {"{", TN_CORRUPT, "byte 1"},
        {"[]", TN_CORRUPT, "at least one branch"},
        {"7", TN_CORRUPT, "must be a string"},
        {"\"integer\"", TN_CORRUPT, "integer"},
        {"{\"type\":\"array\"}", TN_CORRUPT, "items"},
        {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[]}", TN_OK, ""},
        {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":7,\"type\":\"int\"}]}",
         TN_CORRUPT, ""},
        {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", TN_CORRUPT, "-1 bytes"},
        {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":9999999999}", TN_CORRUPT, "9999999999 bytes"},
        {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"next\",\"type\":[\"null\","
         "\"r\"]}]}",
         TN_UNSUPPORTED, "r contains itself"},
        {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\",\"type\":{\"type\":"
         "\"array\","
         "\"items\":\"r\"}}]}",
         TN_UNSUPPORTED, "r contains itself"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_avro_type root = {0};
        tn_arena_reset(&arena, arena_start);
        tn_rc rc = tn_avro_schema_parse(tn_bytes_of(cases[i].schema), &arena, &root, &err);
        if (rc != cases[i].rc) {
            (void)fprintf(stderr, "case %zu: %d %s\n", i, (int)rc, rc ? err.text : "");
            CHECK(false);
        }
        if (rc != TN_OK && !strstr(err.text, cases[i].text)) {
            (void)fprintf(stderr, "case %zu: %s\n", i, err.text);
            CHECK(false);
        }
        CHECK(rc == TN_OK || tn_arena_mark(&arena) == arena_start);
        CHECK(avro_heap.used == 0 && json_heap.used == 0);
    }
}

static void nesting_is_bounded(void)
{
    for (int depth = 1; depth <= 80; depth++) {
        static char text[80 * 32];
        size_t size = 0;
        for (int i = 0; i < depth; i++) {
            size +=
                (size_t)snprintf(text + size, sizeof text - size, "{\"type\":\"array\",\"items\":");
        }
        size += (size_t)snprintf(text + size, sizeof text - size, "\"int\"");
        memset(text + size, '}', (size_t)depth);
        struct tn_avro_type root = {0};
        tn_arena_reset(&arena, arena_start);
        struct tn_bytes bytes = {(const unsigned char *)text, size + (size_t)depth};
        tn_rc rc = tn_avro_schema_parse(bytes, &arena, &root, &err);
        CHECK(depth <= TN_AVRO_DEPTH_MAX ? rc == TN_OK
                                         : rc == (depth <= 64 ? TN_UNSUPPORTED : TN_CORRUPT));
    }
}

/* A record used twice by its name, and names that only Java allows, as they are and as Python
 * escapes them. */
static void names_refer_and_are_kept(void)
{
    static const char schema[] =
        "{\"type\":\"record\",\"name\":\"r\",\"fields\":["
        "{\"name\":\"gr\xc3\xb6\xc3\x9f"
        "e\",\"type\":{\"type\":\"record\",\"name\":\"p\",\"fields\":["
        "{\"name\":\"\\u540d\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}}]}"
        "},"
        "{\"name\":\"again\",\"type\":[\"p\",\"null\"],\"doc\":\"a \\\"quoted\\\" one\"}]}";
    tn_arena_reset(&arena, arena_start);
    struct tn_avro_type root = parse(tn_bytes_of(schema));
    CHECK(field(&root, "gr\xc3\xb6\xc3\x9f"
                       "e")
              ->kind == TN_AVRO_RECORD);
    const struct tn_avro_type *again = field(&root, "again");
    CHECK(again->nullable && again->null_last);
    const struct tn_avro_type *name = field(again, "\xe5\x90\x8d");
    CHECK(name->kind == TN_AVRO_LONG && name->logical == TN_AVRO_LOGICAL_MICROS);
    static const unsigned char null_row[] = {0x0e, 0x02}; /* [p, null]: branch 1 is the null */
    static const unsigned char row[] = {0x0e, 0x00, 0x10};
    struct tn_avro_cursor c = {null_row, null_row + sizeof null_row, false};
    tn_avro_skip(&c, &root);
    CHECK(!c.failed && c.at == c.end);
    c = (struct tn_avro_cursor){row, row + sizeof row, false};
    tn_avro_skip(&c, &root);
    CHECK(!c.failed && c.at == c.end);
}

/* Heaps and arenas of every size from too small to enough: AGAIN, then the same tree as ever. */
static void short_memory_is_an_answer(void)
{
    struct tn_avro_header header;
    tn_rc rc = tn_avro_header_decode(golden("java-manifest-list"), &header, &err);
    CHECK_OK(rc, err);
    struct tn_heap *heaps[] = {&avro_heap, &json_heap};
    for (size_t i = 0; i < COUNT(heaps); i++) {
        void *memory = heaps[i]->base;
        int refused = 0;
        rc = TN_AGAIN;
        for (size_t size = 256; rc == TN_AGAIN; size += 256) {
            tn_heap_deinit(heaps[i]);
            tn_heap_init(heaps[i], memory, size, true);
            struct tn_arena small; /* too small to stand in for avro-c's heap */
            struct tn_avro_type root;
            tn_arena_init(&small, arena.base + arena_start, 12 * 1024);
            rc = tn_avro_schema_parse(header.schema, &small, &root, &err);
            CHECK(rc == TN_OK || rc == TN_AGAIN);
            refused += rc == TN_AGAIN;
            tn_heap_check(heaps[i]);
        }
        CHECK(refused > 10);
        tn_heap_deinit(heaps[i]);
        tn_heap_init(heaps[i], memory, HEAP_SIZE, true);
    }
    rc = TN_AGAIN;
    for (size_t size = 0; rc == TN_AGAIN; size += 64) {
        struct tn_arena small;
        struct tn_avro_type root;
        tn_arena_init(&small, arena.base + arena_start, size);
        rc = tn_avro_schema_parse(header.schema, &small, &root, &err);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
    }
}

/* The board's heap is for usual files; a wide one takes what the caller's arena has free. */
static void wide_schemas_borrow_from_the_arena(void)
{
    enum { COLUMNS = 400 };
    static char text[COLUMNS * 64];
    int length = snprintf(text, sizeof text, "{\"type\":\"record\",\"name\":\"r\",\"fields\":[");
    for (int i = 0; i < COLUMNS; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "%s{\"name\":\"c%d\",\"type\":[\"null\",\"long\"]}", i ? "," : "", i);
    }
    (void)snprintf(text + length, sizeof text - (size_t)length, "]}");
    void *memory = avro_heap.base;
    tn_heap_deinit(&avro_heap);
    tn_heap_init(&avro_heap, memory, 16 * 1024, true);
    struct tn_avro_type root;
    tn_arena_reset(&arena, arena_start);
    size_t size = arena.size;
    tn_rc rc = tn_avro_schema_parse(tn_bytes_of(text), &arena, &root, &err);
    CHECK_OK(rc, err);
    CHECK(arena.size == size && avro_heap.used == 0);
    CHECK(root.child_count == COLUMNS && strcmp(root.names[COLUMNS - 1], "c399") == 0);
    CHECK(root.children[7].kind == TN_AVRO_LONG && root.children[7].nullable);
    tn_heap_deinit(&avro_heap);
    tn_heap_init(&avro_heap, memory, HEAP_SIZE, true);
}

struct reader {
    pthread_t thread;
    struct tn_bytes schema;
    unsigned char memory[64 * 1024];
};

static void *parse_often(void *argument)
{
    struct reader *reader = argument;
    for (int round = 0; round < 40; round++) {
        struct tn_arena own;
        struct tn_avro_type root;
        struct tn_err error;
        tn_arena_init(&own, reader->memory, sizeof reader->memory);
        tn_rc rc = tn_avro_schema_parse(reader->schema, &own, &root, &error);
        CHECK_OK(rc, error);
        CHECK(root.child_count == 11 && strcmp(root.names[10], "_MAX_LEVEL") == 0);
        rc = tn_avro_schema_parse(tn_bytes_of("{\"type\":\"array\"}"), &own, &root, &error);
        CHECK(rc == TN_CORRUPT && strstr(error.text, "items"));
    }
    return NULL;
}

/* avro-c has one heap and one error text for the whole process. */
static void threads_parse_in_turn(void)
{
    static struct reader readers[4];
    struct tn_avro_header header;
    tn_rc rc = tn_avro_header_decode(golden("java-manifest-list"), &header, &err);
    CHECK_OK(rc, err);
    for (size_t i = 0; i < COUNT(readers); i++) {
        readers[i].schema = header.schema;
        int code = pthread_create(&readers[i].thread, NULL, parse_often, &readers[i]);
        CHECK(code == 0);
    }
    for (size_t i = 0; i < COUNT(readers); i++) {
        int code = pthread_join(readers[i].thread, NULL);
        CHECK(code == 0);
    }
    CHECK(avro_heap.used == 0 && json_heap.used == 0);
}

/* ---- values ---- */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void write_items(struct tn_buf *buf, const struct tn_avro_type *type, uint64_t *seed,
                        int depth);

static void write_value(struct tn_buf *buf, const struct tn_avro_type *type, uint64_t *seed,
                        int depth)
{
    static const unsigned char bytes[64];
    if (type->nullable) {
        bool null = next_random(seed) % 2;
        tn_avro_write_long(buf, null == type->null_last);
        if (null) {
            return;
        }
    }
    switch (type->kind) {
    case TN_AVRO_NULL:
        return;
    case TN_AVRO_BOOLEAN:
        tn_buf_append(buf, bytes, 1);
        return;
    case TN_AVRO_INT:
    case TN_AVRO_ENUM:
    case TN_AVRO_LONG:
        tn_avro_write_long(buf, (int64_t)(next_random(seed) << next_random(seed) % 40));
        return;
    case TN_AVRO_FLOAT:
        tn_buf_append(buf, bytes, 4);
        return;
    case TN_AVRO_DOUBLE:
        tn_buf_append(buf, bytes, 8);
        return;
    case TN_AVRO_BYTES:
    case TN_AVRO_STRING:
        tn_avro_write_bytes(buf, (struct tn_bytes){bytes, next_random(seed) % sizeof bytes});
        return;
    case TN_AVRO_FIXED:
        tn_buf_append(buf, bytes, type->fixed_size);
        return;
    case TN_AVRO_UNION: {
        uint32_t branch = (uint32_t)(next_random(seed) % type->child_count);
        tn_avro_write_long(buf, branch);
        write_value(buf, &type->children[branch], seed, depth);
        return;
    }
    case TN_AVRO_RECORD:
        for (uint32_t i = 0; i < type->child_count; i++) {
            write_value(buf, &type->children[i], seed, depth);
        }
        return;
    case TN_AVRO_ARRAY:
    case TN_AVRO_MAP:
        write_items(buf, type, seed, depth);
        return;
    }
}

/* Blocks with and without their size in bytes. */
static void write_items(struct tn_buf *buf, const struct tn_avro_type *type, uint64_t *seed,
                        int depth)
{
    unsigned char *memory = malloc(FILE_MAX);
    for (uint64_t blocks = next_random(seed) % 3; blocks > 0 && depth < 5; blocks--) {
        struct tn_buf block;
        int64_t count = 1 + (int64_t)(next_random(seed) % 3);
        tn_buf_init(&block, memory, FILE_MAX);
        for (int64_t i = 0; i < count; i++) {
            if (type->kind == TN_AVRO_MAP) {
                tn_avro_write_bytes(&block, tn_bytes_of("key"));
            }
            write_value(&block, &type->children[0], seed, depth + 1);
        }
        if (next_random(seed) % 2) {
            tn_avro_write_long(buf, count);
        } else {
            tn_avro_write_long(buf, -count);
            tn_avro_write_long(buf, (int64_t)block.size);
        }
        tn_buf_append(buf, block.data, block.size);
    }
    tn_avro_write_long(buf, 0);
    free(memory);
}

/* Random values of every shape: skip ends where they end, and fails on every shorter prefix. */
static void skip_passes_a_value_and_not_less(void)
{
    static const char schema[] =
        "{\"type\":\"record\",\"name\":\"r\",\"fields\":["
        "{\"name\":\"a\",\"type\":[\"null\",\"int\"]},{\"name\":\"b\",\"type\":[\"long\",\"null\"]}"
        ","
        "{\"name\":\"c\",\"type\":[\"null\",\"int\",\"string\",{\"type\":\"array\",\"items\":"
        "\"float\"}]},"
        "{\"name\":\"d\",\"type\":{\"type\":\"map\",\"values\":[\"null\",{\"type\":\"array\","
        "\"items\":"
        "{\"type\":\"record\",\"name\":\"s\",\"fields\":[{\"name\":\"x\",\"type\":\"double\"},"
        "{\"name\":\"y\",\"type\":{\"type\":\"map\",\"values\":\"bytes\"}}]}}]}},"
        "{\"name\":\"e\",\"type\":{\"type\":\"fixed\",\"name\":\"f\",\"size\":5}},"
        "{\"name\":\"n\",\"type\":{\"type\":\"array\",\"items\":\"null\"}},"
        "{\"name\":\"g\",\"type\":{\"type\":\"enum\",\"name\":\"h\",\"symbols\":[\"A\"]}},"
        "{\"name\":\"i\",\"type\":\"boolean\"}]}";
    static unsigned char memory[FILE_MAX];
    tn_arena_reset(&arena, arena_start);
    struct tn_avro_type root = parse(tn_bytes_of(schema));
    for (uint64_t round = 0; round < 300; round++) {
        uint64_t seed = round;
        struct tn_buf buf;
        tn_buf_init(&buf, memory, sizeof memory);
        write_value(&buf, &root, &seed, 0);
        CHECK(!buf.overflow);
        for (size_t size = buf.size;; size--) {
            struct tn_avro_cursor c = {memory, memory + size, false};
            tn_avro_skip(&c, &root);
            CHECK(c.failed == (size < buf.size));
            CHECK(size < buf.size || c.at == c.end);
            if (size == 0) {
                break;
            }
        }
    }
}

/* A count that no file could hold: of nulls it is passed at once, of other things it fails at once.
 */
static void huge_counts_cost_nothing(void)
{
    static const char *const schemas[] = {
        "{\"type\":\"array\",\"items\":\"null\"}",
        "{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":\"r\",\"fields\":["
        "{\"name\":\"a\",\"type\":\"null\"},{\"name\":\"b\",\"type\":{\"type\":\"fixed\",\"name\":"
        "\"f\","
        "\"size\":0}}]}}",
        "{\"type\":\"array\",\"items\":\"int\"}",
        "{\"type\":\"map\",\"values\":\"null\"}",
    };
    unsigned char value[16];
    unsigned char *end = tn_avro_put_long(value, INT64_MAX);
    *end++ = 0;
    for (size_t i = 0; i < COUNT(schemas); i++) {
        tn_arena_reset(&arena, arena_start);
        struct tn_avro_type root = parse(tn_bytes_of(schemas[i]));
        struct tn_avro_cursor c = {value, end, false};
        tn_avro_skip(&c, &root);
        CHECK(c.failed == (i >= 2));
    }
}

static void longs_are_zigzag_and_of_ten_bytes_at_most(void)
{
    static const int64_t values[] = {0, -1, 1, -64, 64, 8192, INT32_MIN, INT64_MAX, INT64_MIN};
    unsigned char bytes[10];
    for (size_t i = 0; i < COUNT(values); i++) {
        struct tn_avro_cursor c = {bytes, tn_avro_put_long(bytes, values[i]), false};
        CHECK(tn_avro_long(&c) == values[i]);
        CHECK(!c.failed && c.at == c.end);
    }
    memset(bytes, 0xff, sizeof bytes);
    struct tn_avro_cursor c = {bytes, bytes + sizeof bytes, false};
    (void)tn_avro_long(&c);
    CHECK(c.failed);
}

static const struct test tests[] = {
    TEST(golden_files_are_walked_to_their_last_byte),
    TEST(headers_are_written_as_java_writes_them),
    TEST(a_header_cut_anywhere_asks_for_more),
    TEST(bad_headers_are_corrupt),
    TEST(block_heads_are_bounded),
    TEST(java_types_have_their_shape),
    TEST(schemas_are_parsed_or_refused),
    TEST(nesting_is_bounded),
    TEST(names_refer_and_are_kept),
    TEST(short_memory_is_an_answer),
    TEST(wide_schemas_borrow_from_the_arena),
    TEST(threads_parse_in_turn),
    TEST(skip_passes_a_value_and_not_less),
    TEST(huge_counts_cost_nothing),
    TEST(longs_are_zigzag_and_of_ten_bytes_at_most),
};

int main(int argc, char **argv)
{
    set_up();
    int rc = run_tests(argc, argv, tests, COUNT(tests));
    tear_down();
    return rc;
}
