#include "schema/schema.h"

#include <stdint.h>

#include "schema/json_heap.h"

enum { HEAP_SIZE = 8 << 20, ARENA_SIZE = 4 << 20 };

static unsigned char arena_memory[ARENA_SIZE];
static unsigned char out_memory[TN_SCHEMA_SIZE_MAX];
static struct tn_arena arena;
static struct tn_err err;

static void reset(void)
{
    tn_arena_init(&arena, arena_memory, sizeof(arena_memory));
    memset(&err, 0, sizeof(err));
}

static struct tn_schema decode(const char *json)
{
    struct tn_schema schema = {0};
    reset();
    tn_rc rc = tn_schema_decode(tn_bytes_of(json), &arena, &schema, &err);
    CHECK_OK(rc, err);
    return schema;
}

/* Terminated; lives until the next call. */
static const char *encode(const struct tn_schema *schema)
{
    struct tn_buf buf;
    tn_buf_init(&buf, out_memory, sizeof(out_memory));
    tn_schema_encode(schema, &buf);
    tn_buf_byte(&buf, 0);
    CHECK(!buf.overflow);
    return (const char *)out_memory;
}

static char *read_golden(const char *name)
{
    char path[200];
    (void)snprintf(path, sizeof(path), "tests/golden/schema/%s", name);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    char *text = calloc(1, 1 << 16);
    CHECK(fread(text, 1, (1 << 16) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static const char *const java_files[] = {"all-keys",       "all-types",       "defaults",
                                         "empty",          "evolved",         "layout-options",
                                         "nested-evolved", "partitioned",     "per-level",
                                         "row-tracking",   "sequence-groups", "variant"};

static void java_files_come_back_byte_for_byte(void)
{
    for (size_t i = 0; i < COUNT(java_files); i++) {
        char *text = read_golden(java_files[i]);
        struct tn_schema schema = decode(text);
        CHECK_TEXT(encode(&schema), text);
        free(text);
    }
}

static void pypaimon_files_are_read_and_written_in_javas_form(void)
{
    char *text = read_golden("py-append");
    struct tn_schema schema = decode(text);
    CHECK(schema.field_count == 16 && schema.comment == NULL);
    CHECK_TEXT(schema.fields[13].type_json, "{\n      \"type\" : \"ARRAY\",\n      \"element\" : "
                                            "\"INT\",\n      \"nullable\" : true\n    }");
    char *again = strdup(encode(&schema));
    schema = decode(again);
    CHECK_TEXT(encode(&schema), again);
    free(again);
    free(text);
}

static void fields_and_keys_are_found(void)
{
    char *text = read_golden("py-partitioned");
    struct tn_schema schema = decode(text);
    CHECK(schema.version == 3 && schema.id == 0 && schema.field_count == 3);
    CHECK(schema.partition_keys.count == 1 && schema.partition_keys.index[0] == 0);
    CHECK(schema.primary_keys.count == 2 && schema.primary_keys.index[1] == 1);
    CHECK(schema.trimmed_keys.count == 1 && schema.trimmed_keys.index[0] == 1);
    CHECK(tn_schema_find(&schema, tn_bytes_of("a")) == 2);
    CHECK(tn_schema_find(&schema, tn_bytes_of("aa")) == -1);
    CHECK_TEXT(tn_schema_option(&schema, "bucket"), "1");
    CHECK(tn_schema_option(&schema, "bucke") == NULL);
    free(text);
}

static void layout_leaves_nested_columns_out(void)
{
    char *text = read_golden("nested-evolved");
    struct tn_schema schema = decode(text);
    struct tn_row_layout layout;
    uint32_t *field_of = NULL;
    int32_t *column_of = NULL;
    tn_rc rc = tn_schema_layout(&schema, &layout, &field_of, &column_of, &arena, &err);
    CHECK_OK(rc, err);
    CHECK(schema.field_count == 3 && layout.column_count == 1);
    CHECK(field_of[0] == 0 && column_of[0] == 0 && column_of[1] == -1 && column_of[2] == -1);
    free(text);
}

/* What the first versions left out. Paimon: TableSchema.fromJson, SchemaSerializer. */
static void old_versions_get_their_defaults(void)
{
    struct tn_schema schema = decode("{\"id\":4,\"fields\":[{\"id\":0,\"name\":\"k\",\"type\":"
                                     "\"INT\"}],\"highestFieldId\":0,\"partitionKeys\":[],"
                                     "\"primaryKeys\":[],\"options\":{\"a\":1,\"b\":true,"
                                     "\"c\":0.2,\"d\":null,\"a\":2}}");
    CHECK(schema.version == 1 && schema.time_ms == 0 && schema.id == 4);
    CHECK(schema.option_count == 5);
    CHECK_TEXT(tn_schema_option(&schema, "a"), "2");
    CHECK_TEXT(tn_schema_option(&schema, "b"), "true");
    CHECK_TEXT(tn_schema_option(&schema, "c"), "0.2");
    CHECK_TEXT(tn_schema_option(&schema, "bucket"), "1");
    CHECK_TEXT(tn_schema_option(&schema, "file.format"), "orc");
    schema = decode("{\"version\":2,\"id\":4,\"fields\":[],\"highestFieldId\":-1,\"partitionKeys\":"
                    "[],\"primaryKeys\":[],\"options\":{}}");
    CHECK(schema.option_count == 1);
    CHECK_TEXT(tn_schema_option(&schema, "file.format"), "orc");
}

#define FIELD_K "{\"id\":0,\"name\":\"k\",\"type\":\"INT\"}"
#define STORED(fields, rest) \
    "{\"version\":3,\"id\":0,\"fields\":[" fields "],\"highestFieldId\":0," rest "}"
#define KEYS(partition, primary) \
    "\"partitionKeys\":[" partition "],\"primaryKeys\":[" primary "],\"options\":{}"

static void bad_files_are_refused_by_path(void)
{
    static const struct {
        const char *json;
        tn_rc rc;
        const char *text;
    } cases[] = {
        {"[]", TN_CORRUPT, "$: not an object"},
        {"{}", TN_CORRUPT, "$.id: not an integer of 0..9223372036854775807"},
        {"{\"version\":4,\"id\":0}", TN_UNSUPPORTED, "$.version: schema version 4, known up to 3"},
        {"{\"id\":1}", TN_CORRUPT, "$.fields: missing"},
        {STORED("7", KEYS("", "")), TN_CORRUPT, "$.fields[0]: not an object"},
        {STORED("{}", KEYS("", "")), TN_CORRUPT, "$.fields[0].name: missing"},
        {STORED("{\"name\":\"k\"}", KEYS("", "")), TN_CORRUPT,
         "$.fields[0].type: the type is missing"},
        {STORED("{\"name\":\"k\",\"type\":\"INT\"}", KEYS("", "")), TN_CORRUPT,
         "$.fields[0].id: not an integer of 0..1073741822"},
        {STORED(FIELD_K ",{\"id\":1,\"name\":\"l\",\"type\":\"DUOBLE\"}", KEYS("", "")), TN_CORRUPT,
         "$.fields[1].type: type 'DUOBLE' is unknown; did you mean 'DOUBLE'?"},
        {STORED("{\"id\":0,\"name\":\"k\",\"type\":{\"type\":\"INT\"}}", KEYS("", "")), TN_CORRUPT,
         "$.fields[0].type: an object, but the type is not a nested one"},
        {STORED(FIELD_K "," FIELD_K, KEYS("", "")), TN_CORRUPT,
         "$.fields[1]: id or name are those of column 'k'"},
        {STORED(FIELD_K, KEYS("\"p\"", "")), TN_CORRUPT, "$.partitionKeys[0]: no column 'p'"},
        {STORED(FIELD_K, KEYS("", "\"k\",\"k\"")), TN_CORRUPT,
         "$.primaryKeys[1]: column 'k' stands there twice"},
        {STORED(FIELD_K, KEYS("\"k\"", "\"k\"")), TN_CORRUPT,
         "$.primaryKeys: all of the primary key is in the partition keys: a partition would hold "
         "one row"},
        {STORED(FIELD_K, "\"partitionKeys\":[],\"primaryKeys\":[]"), TN_CORRUPT,
         "$.options: missing"},
        {STORED(FIELD_K, "\"partitionKeys\":[],\"primaryKeys\":[],\"options\":{\"a\":[]}"),
         TN_CORRUPT, "$.options.a: not a text"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_schema schema = {.id = -7};
        reset();
        tn_rc rc = tn_schema_decode(tn_bytes_of(cases[i].json), &arena, &schema, &err);
        CHECK(rc == err.code);
        CHECK_TEXT(err.text, cases[i].text);
        CHECK(rc == cases[i].rc && schema.id == -7);
    }
}

/* Deeper than the printer's stack: refused, not crashed. */
static void deep_types_are_refused(void)
{
    struct tn_buf buf;
    static char text[20000];
    tn_buf_init(&buf, text, sizeof(text));
    tn_buf_text(&buf, "{\"id\":0,\"fields\":[{\"id\":0,\"name\":\"k\",\"type\":");
    for (int i = 0; i < 200; i++) {
        tn_buf_text(&buf, "{\"type\":\"ARRAY\",\"element\":");
    }
    tn_buf_text(&buf, "\"INT\"");
    for (int i = 0; i < 200; i++) {
        tn_buf_byte(&buf, '}');
    }
    tn_buf_text(&buf, "}],\"highestFieldId\":0," KEYS("", "") "}");
    tn_buf_byte(&buf, 0);
    struct tn_schema schema;
    reset();
    tn_rc rc = tn_schema_decode(tn_bytes_of(text), &arena, &schema, &err);
    CHECK(rc == TN_CORRUPT);
}

static void a_small_arena_is_again_at_every_size(void)
{
    char *text = read_golden("all-types");
    struct tn_schema schema = {0};
    tn_rc rc = TN_AGAIN;
    for (size_t size = 0; rc == TN_AGAIN && size < sizeof(arena_memory); size += 64) {
        unsigned char *memory = malloc(size + 1);
        tn_arena_init(&arena, memory, size);
        rc = tn_schema_decode(tn_bytes_of(text), &arena, &schema, &err);
        CHECK(rc == TN_AGAIN || rc == TN_OK);
        free(memory);
    }
    CHECK(rc == TN_OK);
    free(text);
}

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*seed >> 33);
}

/* Golden files with some bytes changed or cut off. */
static void damaged_files_are_refused_or_are_schemas(void)
{
    uint64_t seed = 5;
    for (int i = 0; i < 3000; i++) {
        char *text = read_golden(java_files[next_random(&seed) % COUNT(java_files)]);
        size_t size = strlen(text);
        size = next_random(&seed) % 4 == 0 ? next_random(&seed) % size : size;
        for (uint32_t n = 1 + next_random(&seed) % 4; n > 0 && size > 0; n--) {
            uint32_t byte = next_random(&seed) % 400;
            byte = byte < 256 ? byte : (unsigned char)"{}[],:\"0"[byte % 8];
            text[next_random(&seed) % size] = (char)byte;
        }
        unsigned char *exact = malloc(size + 1);
        memcpy(exact, text, size);
        struct tn_schema schema;
        struct tn_bytes json = {exact, size};
        reset();
        tn_rc rc = tn_schema_decode(json, &arena, &schema, &err);
        CHECK(rc == TN_OK || rc == TN_CORRUPT || rc == TN_UNSUPPORTED);
        reset();
        rc = tn_schema_from_user(json, &arena, &schema, &err);
        CHECK(rc == TN_OK || rc == TN_INVALID);
        free(exact);
        free(text);
    }
}

static const char *random_text(uint64_t *seed)
{
    static const char *const parts[] = {"a",    "\"", "\\", "\n", "\x01",
                                        "\x1f", "é",  "☃",  "/",  "\x7f"};
    char *text = tn_arena_take(&arena, 64);
    for (uint32_t n = next_random(seed) % 8; n > 0; n--) {
        strcat(text, parts[next_random(seed) % COUNT(parts)]);
    }
    return text;
}

static struct tn_type random_type(uint64_t *seed)
{
    struct tn_type type = {.kind = next_random(seed) % TN_TYPE_ARRAY,
                           .nullable = next_random(seed) % 2};
    type.precision = type.kind == TN_TYPE_DECIMAL ? 9 : 0;
    type.length = tn_type_textual(type.kind) || tn_type_binary(type.kind) ? 20 : 0;
    return type;
}

static void random_schema(uint64_t *seed, struct tn_schema *schema)
{
    memset(schema, 0, sizeof(*schema));
    schema->field_count = 1 + next_random(seed) % 20;
    schema->fields = tn_arena_take(&arena, schema->field_count * sizeof(struct tn_field));
    for (uint32_t i = 0; i < schema->field_count; i++) {
        struct tn_field *f = &schema->fields[i];
        f->name = tn_arena_format(&arena, "c%u%s", i, random_text(seed));
        f->type = random_type(seed);
        f->description = next_random(seed) % 2 ? random_text(seed) : NULL;
        f->default_value = next_random(seed) % 3 ? NULL : random_text(seed);
    }
    schema->option_count = next_random(seed) % 4;
    schema->options = tn_arena_take(&arena, 8 * sizeof(struct tn_option));
    for (uint32_t i = 0; i < schema->option_count; i++) {
        schema->options[i].key = tn_arena_format(&arena, "o%u", i);
        schema->options[i].value = random_text(seed);
    }
    schema->comment = next_random(seed) % 2 ? random_text(seed) : NULL;
    schema->time_ms = (int64_t)next_random(seed) << (next_random(seed) % 32);
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void expect_same(const struct tn_schema *a, const struct tn_schema *b)
{
    CHECK(a->version == b->version && a->id == b->id && a->time_ms == b->time_ms);
    CHECK(a->field_count == b->field_count && a->highest_field_id == b->highest_field_id);
    CHECK(same_text(a->comment, b->comment) && a->option_count == b->option_count);
    for (uint32_t i = 0; i < a->field_count; i++) {
        CHECK(a->fields[i].id == b->fields[i].id);
        CHECK(same_text(a->fields[i].name, b->fields[i].name));
        CHECK(a->fields[i].type.kind == b->fields[i].type.kind);
        CHECK(a->fields[i].type.nullable == b->fields[i].type.nullable);
        CHECK(same_text(a->fields[i].description, b->fields[i].description));
        CHECK(same_text(a->fields[i].default_value, b->fields[i].default_value));
    }
    CHECK(a->primary_keys.count == b->primary_keys.count);
    CHECK(a->trimmed_keys.count == b->trimmed_keys.count);
    CHECK(a->partition_keys.count == b->partition_keys.count);
}

static void what_is_built_and_written_reads_back(void)
{
    uint64_t seed = 11;
    for (int i = 0; i < 500; i++) {
        struct tn_schema built;
        struct tn_schema back;
        reset();
        random_schema(&seed, &built);
        const char *keys[] = {built.fields[0].name, built.fields[built.field_count - 1].name};
        uint32_t count = built.field_count > 1 ? 2 : 1;
        tn_rc rc = tn_schema_build(&built, keys, count, keys, count - 1, &arena, &err);
        CHECK_OK(rc, err);
        CHECK(!built.fields[0].type.nullable);
        rc = tn_schema_decode(tn_bytes_of(encode(&built)), &arena, &back, &err);
        CHECK_OK(rc, err);
        expect_same(&built, &back);
    }
}

/* A person's schema: line numbers, ids, NOT NULL keys. */
static void a_users_schema_becomes_schema_zero(void)
{
    struct tn_schema schema;
    reset();
    tn_rc rc = tn_schema_from_user(
        tn_bytes_of("{\"fields\": [\n {\"name\": \"dev\", \"type\": \"string\"},\n"
                    " {\"name\": \"p\", \"type\": \"INT\", \"description\": \"plant\"},\n"
                    " {\"name\": \"temp\", \"type\": \"DOUBLE\", \"defaultValue\": \"0\"}],\n"
                    " \"primaryKeys\": [\"p\", \"dev\"], \"partitionKeys\": [\"p\"],\n"
                    " \"options\": {\"bucket\": 4}, \"comment\": \"c\"}"),
        &arena, &schema, &err);
    CHECK_OK(rc, err);
    CHECK_TEXT(encode(&schema),
               "{\n  \"version\" : 3,\n  \"id\" : 0,\n  \"fields\" : [ {\n    \"id\" : 0,\n    "
               "\"name\" : \"dev\",\n    \"type\" : \"STRING NOT NULL\"\n  }, {\n    \"id\" : 1,\n"
               "    \"name\" : \"p\",\n    \"type\" : \"INT NOT NULL\",\n    \"description\" : "
               "\"plant\"\n  }, {\n    \"id\" : 2,\n    \"name\" : \"temp\",\n    \"type\" : "
               "\"DOUBLE\",\n    \"defaultValue\" : \"0\"\n  } ],\n  \"highestFieldId\" : 2,\n  "
               "\"partitionKeys\" : [ \"p\" ],\n  \"primaryKeys\" : [ \"p\", \"dev\" ],\n  "
               "\"options\" : {\n    \"bucket\" : \"4\"\n  },\n  \"comment\" : \"c\",\n  "
               "\"timeMillis\" : 0\n}");
    CHECK(schema.trimmed_keys.count == 1 && schema.trimmed_keys.index[0] == 0);
    rc = tn_schema_check_create(&schema, &arena, &err);
    CHECK_OK(rc, err);
}

static void keys_may_be_given_as_options(void)
{
    struct tn_schema schema;
    reset();
    tn_rc rc = tn_schema_from_user(
        tn_bytes_of("{\"fields\":[{\"name\":\"a\",\"type\":\"INT\"},{\"name\":\"b\",\"type\":"
                    "\"INT\"}],\"options\":{\"primary-key\":\"a,b\",\"bucket\":\"1\","
                    "\"partition\":\"b\"}}"),
        &arena, &schema, &err);
    CHECK_OK(rc, err);
    CHECK(schema.primary_keys.count == 2 && schema.partition_keys.count == 1);
    CHECK(schema.option_count == 1);
}

static void a_users_mistakes_are_named_by_line(void)
{
    static const char *const cases[][2] = {
        {"{\n\n\"fields\": [\n {\"name\":\"a\", \"type\":\"INT\"},\n {\"name\":\"temp\",\n  "
         "\"type\":\"DUOBLE\"}]}",
         "6: field 'temp': type 'DUOBLE' is unknown; did you mean 'DOUBLE'?"},
        {"{\"fields\": [\n {\"name\":\"a\"}]}", "2: field 'a': the type is missing"},
        {"{\"fields\": [\n {\"type\":\"INT\"}]}", "2: field 1: name: missing"},
        {"{\"fields\": [{\"name\":\"a\", \"type\":\"INT\"},\n 5]}",
         "2: field 2: its JSON: not an object"},
        {"{\"fields\": [{\"name\":\"a\", \"type\":\"INT\",\n \"descripton\":\"x\"}]}",
         "2: field 'a': 'descripton' is unknown; did you mean 'description'?"},
        {"{\"fields\": [{\"name\":\"a\", \"type\":\"INT\",\n \"description\":7}]}",
         "2: field 'a': description: not a text"},
        {"{\n\"primarykeys\": []}",
         "2: primarykeys: 'primarykeys' is unknown; did you mean 'primaryKeys'?"},
        {"{}", "1: fields: missing"},
        {"{\n\"fields\":[]}", "2: fields: a table needs a column"},
        {"{\"fields\":[{\"name\":\"a\",\"type\":\"INT\"},\n{\"name\":\"a\",\"type\":\"INT\"}]}",
         "2: field 'a': there are two columns 'a'"},
        {"{\"fields\":[\n{\"name\":\"_KEY_a\",\"type\":\"INT\"}]}",
         "2: field '_KEY_a': the name '_KEY_a' is reserved for Paimon's own columns"},
        {"{\"fields\":[\n{\"name\":\"rowkind\",\"type\":\"INT\"}]}",
         "2: field 'rowkind': the name 'rowkind' is reserved for Paimon's own columns"},
        {"{\"fields\":[\n{\"name\":\" \",\"type\":\"INT\"}]}",
         "2: field ' ': a column needs a name"},
        {"{\"fields\":[{\"name\":\"device\",\"type\":\"INT\"}],\n\"primaryKeys\":\n[\"devcie\"]}",
         "3: primaryKeys: no column 'devcie'; did you mean 'device'?"},
        {"{\"fields\":[{\"name\":\"a\",\"type\":\"INT\"}],\n\"partitionKeys\":[\"a\",\n\"a\"]}",
         "3: partitionKeys: column 'a' stands there twice"},
        {"{\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"ROW\",\"fields\":[]}}],\n"
         "\"primaryKeys\":[\"a\"]}",
         "2: primaryKeys: column 'a' can't be a key: it is of type ROW"},
        {"{\"fields\":[{\"name\":\"a\",\"type\":\"INT\"}],\n\"options\":{\"x\":1,\n\"y\":{}}}",
         "3: option 'y': not a text"},
        {"{\"fields\":[{\"name\":\"a\",\"type\":\"INT\"}],\n\"primaryKeys\":[\"a\"],\n"
         "\"options\":{\n\"primary-key\":\"a\"}}",
         "4: option 'primary-key': the keys are given by name and by option"},
        {"[]", "1: the schema: not an object"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_schema schema = {0};
        reset();
        tn_rc rc = tn_schema_from_user(tn_bytes_of(cases[i][0]), &arena, &schema, &err);
        CHECK(rc == TN_INVALID);
        CHECK_TEXT(err.text, cases[i][1]);
    }
}

static void broken_json_is_named_by_line(void)
{
    struct tn_schema schema;
    reset();
    tn_rc rc = tn_schema_from_user(tn_bytes_of("{\n\"fields\": [,]}"), &arena, &schema, &err);
    CHECK(rc == TN_INVALID && strncmp(err.text, "2: ", 3) == 0);
}

static void what_is_not_created_is_refused_by_column(void)
{
    static const struct {
        const char *fields;
        const char *rest;
        tn_rc rc;
        const char *text;
    } cases[] = {
        {"{\"name\":\"k\",\"type\":\"INT\"}", "", TN_OK, ""},
        {"{\"name\":\"k\",\"type\":\"ARRAY<INT>\"}", "", TN_UNSUPPORTED,
         "field 'k': type ARRAY is not written by this build"},
        {"{\"name\":\"k\",\"type\":\"TIMESTAMP(7)\"}", "", TN_UNSUPPORTED,
         "field 'k': TIMESTAMP(7): avro files hold at most 6 digits of a second"},
        {"{\"name\":\"k\",\"type\":\"TIME(4)\"}", "", TN_UNSUPPORTED,
         "field 'k': TIME(4): avro files hold at most 3 digits of a second"},
        {"{\"name\":\"k\",\"type\":\"DECIMAL(38, 9)\"}", "", TN_OK, ""},
        {"{\"name\":\"a-b\",\"type\":\"INT\"}", "", TN_UNSUPPORTED,
         "field 'a-b': a name in avro files has only letters a-z, digits and '_'"},
        {"{\"name\":\"k\",\"type\":\"FLOAT\"}", ",\"primaryKeys\":[\"k\"]", TN_UNSUPPORTED,
         "field 'k': FLOAT can't be a primary key: NaN and -0.0 have no sure place"},
        {"{\"name\":\"k\",\"type\":\"DOUBLE\"}", ",\"partitionKeys\":[\"k\"]", TN_UNSUPPORTED,
         "field 'k': DOUBLE can't be a partition key: NaN and -0.0 have no sure place"},
        {"{\"name\":\"a\",\"type\":\"INT\"},{\"name\":\"k\",\"type\":\"DOUBLE\"}",
         ",\"options\":{\"bucket-key\":\"a,k\"}", TN_UNSUPPORTED,
         "field 'k': DOUBLE can't be a bucket key: NaN and -0.0 have no sure place"},
        {"{\"name\":\"p\",\"type\":\"BINARY(2)\"}", ",\"partitionKeys\":[\"p\"]", TN_UNSUPPORTED,
         "field 'p': BINARY(2) as a partition key names no folder that can be known"},
        {"{\"name\":\"p\",\"type\":\"TIMESTAMP_LTZ(3)\"}", ",\"partitionKeys\":[\"p\"]", TN_OK, ""},
        {"{\"name\":\"p\",\"type\":\"TIMESTAMP_LTZ(3)\"}",
         ",\"partitionKeys\":[\"p\"],\"options\":{\"partition.legacy-name\":\"false\"}",
         TN_UNSUPPORTED,
         "field 'p': TIMESTAMP(3) WITH LOCAL TIME ZONE as a partition key names no folder that can "
         "be known"},
        {"{\"name\":\"k\",\"type\":\"INT\",\"defaultValue\":\"7\"}", ",\"primaryKeys\":[\"k\"]",
         TN_INVALID, "field 'k': a primary key has no default"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char json[400];
        struct tn_schema schema;
        reset();
        (void)snprintf(json, sizeof(json), "{\"fields\":[%s]%s}", cases[i].fields, cases[i].rest);
        tn_rc rc = tn_schema_from_user(tn_bytes_of(json), &arena, &schema, &err);
        CHECK_OK(rc, err);
        rc = tn_schema_check_create(&schema, &arena, &err);
        CHECK_TEXT(err.text, cases[i].text);
        CHECK(rc == cases[i].rc);
    }
}

static void defaults_must_parse(void)
{
    struct tn_schema schema;
    reset();
    tn_rc rc = tn_schema_from_user(
        tn_bytes_of("{\"fields\":[{\"name\":\"k\",\"type\":\"INT\",\"defaultValue\":\"x\"}]}"),
        &arena, &schema, &err);
    CHECK_OK(rc, err);
    rc = tn_schema_check_create(&schema, &arena, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "field 'k': default value: ") == err.text);
}

static const struct test tests[] = {
    TEST(java_files_come_back_byte_for_byte),
    TEST(pypaimon_files_are_read_and_written_in_javas_form),
    TEST(fields_and_keys_are_found),
    TEST(layout_leaves_nested_columns_out),
    TEST(old_versions_get_their_defaults),
    TEST(bad_files_are_refused_by_path),
    TEST(deep_types_are_refused),
    TEST(a_small_arena_is_again_at_every_size),
    TEST(damaged_files_are_refused_or_are_schemas),
    TEST(what_is_built_and_written_reads_back),
    TEST(a_users_schema_becomes_schema_zero),
    TEST(keys_may_be_given_as_options),
    TEST(a_users_mistakes_are_named_by_line),
    TEST(broken_json_is_named_by_line),
    TEST(what_is_not_created_is_refused_by_column),
    TEST(defaults_must_parse),
};

int main(int argc, char **argv)
{
    return run_tests_on_heap(argc, argv, tests, COUNT(tests), HEAP_SIZE);
}
