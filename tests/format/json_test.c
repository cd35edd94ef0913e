/* json: exact integers, byte positions of errors, Java's form, and every heap size from too small
 * to enough. */
#include "format/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

#include "check.h"

enum { HEAP_SIZE = 1024 * 1024, ARENA_SIZE = 1024 * 1024 };

static struct tn_heap heap;
static void *heap_memory;
static struct tn_arena arena;
static struct tn_err err;

static struct cJSON *opened(const char *text)
{
    struct cJSON *root = NULL;
    tn_rc rc = tn_json_open(tn_bytes_of(text), &arena, &root, &err);
    CHECK_OK(rc, err);
    return root;
}

static void integers_are_exact(void)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-1", true, -1},
        {"2.0", true, 2},
        {"1e3", true, 1000},
        {"999999999999999", true, 999999999999999},
        {"1000000000000000", true, 1000000000000000},
        {"9007199254740993", true, 9007199254740993},
        {"-9007199254740993", true, -9007199254740993},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"\"9223372036854775807\"", true, INT64_MAX},
        {"\"7\"", true, 7},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999999999999999", false, 0},
        {"1.5", false, 0},
        {"1e300", false, 0},
        {"1e18", false, 0}, /* whether a double kept it, nobody can say */
        {"\"\"", false, 0},
        {"\"-\"", false, 0},
        {"\"7x\"", false, 0},
        {"true", false, 0},
        {"[]", false, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cJSON *root = opened(cases[i].text);
        int64_t value = 0;
        bool ok = tn_json_i64(root, &value);
        CHECK(ok == cases[i].ok && value == cases[i].value);
        tn_json_close(root);
    }
    CHECK(!tn_json_i64(NULL, &(int64_t){0}));
}

/* Digits in strings and keys are no integers: they stay as they are. */
static void strings_are_left_alone(void)
{
    struct cJSON *root =
        opened("{\"1234567890123456789\": \"say \\\"1234567890123456789\\\" \\\\\", \"a\\\\\": "
               "[1234567890123456789,-1234567890123456789,12345678901234567.5], \"n\": null}");
    const struct cJSON *text = tn_json_member(root, "1234567890123456789");
    CHECK(cJSON_IsString(text) && strcmp(text->valuestring, "say \"1234567890123456789\" \\") == 0);
    const struct cJSON *list = tn_json_member(root, "a\\");
    int64_t value = 0;
    CHECK(cJSON_GetArraySize(list) == 3);
    CHECK(tn_json_i64(list->child, &value) && value == 1234567890123456789);
    CHECK(tn_json_i64(list->child->next, &value) && value == -1234567890123456789);
    CHECK(cJSON_IsNumber(list->child->next->next));
    CHECK(!tn_json_member(root, "n") && !tn_json_member(root, "N") && !tn_json_member(list, "n"));
    tn_json_close(root);
}

static void the_last_of_equal_keys_counts(void)
{
    struct cJSON *root = opened("{\"a\":1,\"A\":2,\"a\":3}");
    int64_t value = 0;
    CHECK(tn_json_i64(tn_json_member(root, "a"), &value) && value == 3);
    tn_json_close(root);
}

static void errors_name_the_byte(void)
{
    static const struct {
        const char *text;
        size_t size; /* 0: up to the zero */
        const char *expected;
    } cases[] = {
        {"", 0, "byte 0"},
        {"{\"a\":1,}", 0, "byte 8"},
        {"{\"a\":1} x", 0, "byte 8"},
        {"{\"a\":1}}", 0, "byte 7"},
        {"{1234567890123456789:1}", 0, "byte 2"},
        {"[1234567890123456789,1234567890123456789,?]", 0, "byte 41"},
        {"[01]", 0, "bad number at byte 1"},
        {"[-]", 0, "bad number at byte 1"},
        {"[1.]", 0, "bad number at byte 1"},
        {"[1e]", 0, "bad number at byte 1"},
        {"[1e+]", 0, "bad number at byte 1"},
        {"[1-2]", 0, "bad number at byte 1"},
        {"[.5]", 0, "byte 1"},
        {"[+5]", 0, "byte 1"},
        {"[1,true1]", 0, "byte"},
        {"{\"a\":\"x", 0, "string without end at byte 7"},
        {"\"\\", 0, "byte"},
        {"\"a\nb\"", 0, "control character at byte 2"},
        {"\"a\\\nb\"", 0, "control character at byte 3"},
        {"\"a\\u0000b\"", 0, "control character at byte 2"},
        {"{}\0{}", 5, "control character at byte 2"},
        {"{}\0", 3, "control character at byte 2"},
        {"nul", 0, "byte 0"},
        {"[1 2]", 0, "byte 3"},
        {"\"\\ud800\"", 0, "byte"},
        {"\"\\x\"", 0, "byte"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cJSON *root = NULL;
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        unsigned char *copy = malloc(size + 1);
        memcpy(copy, cases[i].text, size);
        tn_rc rc = tn_json_open((struct tn_bytes){copy, size}, &arena, &root, &err);
        if (rc != TN_CORRUPT || root || !strstr(err.text, cases[i].expected)) {
            (void)fprintf(stderr, "case %zu: %s\n", i, err.text);
            CHECK(false);
        }
        CHECK(heap.used == 0 && arena.used == 0);
        free(copy);
    }
}

static void nesting_is_bounded(void)
{
    char text[256];
    for (size_t depth = 1; depth <= 100; depth++) {
        struct cJSON *root = NULL;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        tn_rc rc =
            tn_json_open((struct tn_bytes){(unsigned char *)text, 2 * depth}, &arena, &root, &err);
        CHECK(rc == (depth <= 64 ? TN_OK : TN_CORRUPT));
        CHECK(rc == TN_OK || strstr(err.text, "64 levels at byte 64"));
        tn_json_close(root);
    }
}

static void lines_are_counted_from_one(void)
{
    struct tn_bytes text = tn_bytes_of("a\nb\n\nc");
    CHECK(tn_json_line_of(text, 0) == 1 && tn_json_line_of(text, 1) == 1);
    CHECK(tn_json_line_of(text, 2) == 2 && tn_json_line_of(text, 5) == 4);
    CHECK(tn_json_line_of(text, 999) == 4);
}

/* ---- records ---- */

struct sample {
    int32_t version;
    int64_t id;
    struct tn_json_i64 identifier;
    struct tn_json_i64 watermark;
    const char *user;
    const char *statistics;
    struct tn_json_map offsets;
    struct tn_json_map properties;
};

#define FIELD(key, kind, need, member)                                       \
    {                                                                        \
        key, TN_JSON_##kind, TN_JSON_##need, offsetof(struct sample, member) \
    }
static const struct tn_json_field fields[] = {
    FIELD("version", I32, OPTIONAL, version),
    FIELD("id", I64, REQUIRED, id),
    FIELD("commitIdentifier", I64, OPTIONAL, identifier),
    FIELD("watermark", I64, OPTIONAL, watermark),
    FIELD("commitUser", TEXT, REQUIRED, user),
    FIELD("statistics", TEXT, OPTIONAL, statistics),
    FIELD("logOffsets", MAP, REQUIRED, offsets),
    FIELD("properties", MAP, OPTIONAL, properties),
};

static tn_rc read_sample(const char *text, struct sample *sample)
{
    struct cJSON *root = opened(text);
    tn_arena_reset(&arena, 0);
    tn_rc rc = tn_json_read(root, fields, COUNT(fields), sample, &arena, &err);
    tn_json_close(root);
    return rc;
}

/* The form is Jackson's, as in a snapshot of Paimon 1.3.1. */
static void records_are_written_as_java_writes_them(void)
{
    static const char *const texts[] = {
        "{\n  \"version\" : 3,\n  \"id\" : 2,\n  \"commitIdentifier\" : 9223372036854775807,\n"
        "  \"commitUser\" : \"wr\\\"it\\\\er \\n\\u001F \xe4\xb8\xad/\",\n  \"logOffsets\" : { "
        "}\n}",
        "{\n  \"version\" : -1,\n  \"id\" : -9223372036854775808,\n  \"watermark\" : 0,\n"
        "  \"commitUser\" : \"\",\n  \"statistics\" : \"stat-0\",\n  \"logOffsets\" : {\n"
        "    \"0\" : \"10\"\n  },\n  \"properties\" : {\n    \"a\" : \"1\",\n    \"b\" : \"2\"\n  "
        "}\n}",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct sample sample = {0};
        tn_rc rc = read_sample(texts[i], &sample);
        CHECK_OK(rc, err);
        char memory[512];
        struct tn_buf buf;
        tn_buf_init(&buf, memory, sizeof memory);
        tn_json_write(&sample, fields, COUNT(fields), &buf);
        CHECK(buf.size == strlen(texts[i]) && memcmp(memory, texts[i], buf.size) == 0);
    }
    struct tn_buf buf;
    char memory[8];
    tn_buf_init(&buf, memory, sizeof memory);
    tn_json_write(NULL, fields, 0, &buf);
    CHECK(buf.size == 3 && memcmp(memory, "{ }", 3) == 0);
}

static void absent_members_are_cleared_and_scalars_become_text(void)
{
    struct sample sample;
    memset(&sample, 0x55, sizeof sample);
    sample.version = 1;
    tn_rc rc = read_sample(
        "{\"id\":1,\"commitUser\":\"u\",\"statistics\":null,\"extra\":[1],\"logOffsets\":"
        "{\"i\":7,\"i\":8,\"f\":0.1,\"t\":true,\"n\":null,\"l\":9223372036854775807}}",
        &sample);
    CHECK_OK(rc, err);
    CHECK(sample.version == 1 && !sample.identifier.present && !sample.watermark.present);
    CHECK(!sample.statistics && sample.properties.count == 0);
    static const char *const pairs[][2] = {
        {"i", "8"}, {"f", "0.1"}, {"t", "true"}, {"l", "9223372036854775807"}};
    CHECK(sample.offsets.count == COUNT(pairs));
    for (size_t i = 0; i < COUNT(pairs); i++) {
        CHECK(strcmp(sample.offsets.pairs[i].key, pairs[i][0]) == 0);
        CHECK(strcmp(sample.offsets.pairs[i].value, pairs[i][1]) == 0);
    }
}

static void wrong_members_are_named(void)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"[]", "$: not an object"},
        {"{}", "$.id: missing"},
        {"{\"id\":null}", "$.id: missing"},
        {"{\"id\":1.5}", "$.id: not an integer"},
        {"{\"id\":9223372036854775808}", "$.id: not an integer"},
        {"{\"version\":2147483648}", "$.version: not an integer of 32 bits"},
        {"{\"id\":1,\"watermark\":[]}", "$.watermark: not an integer"},
        {"{\"id\":1,\"commitUser\":7}", "$.commitUser: not a string"},
        {"{\"id\":1,\"commitUser\":\"\",\"logOffsets\":[]}", "$.logOffsets: not an object"},
        {"{\"id\":1,\"commitUser\":\"\",\"logOffsets\":{\"a\":{}}}",
         "$.logOffsets.a: not a string"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sample sample = {0};
        CHECK(read_sample(cases[i].text, &sample) == TN_CORRUPT);
        CHECK(strstr(err.text, cases[i].expected));
    }
}

static void short_memory_is_an_answer(void)
{
    static const char text[] = "{\"id\":1,\"commitUser\":\"a name of some "
                               "length\",\"logOffsets\":{\"a\":\"b\",\"c\":\"d\"}}";
    struct cJSON *root = NULL;
    int refused = 0;
    tn_rc rc = TN_AGAIN;
    for (size_t size = 128; rc == TN_AGAIN; size += 16) {
        tn_heap_deinit(&heap);
        tn_heap_init(&heap, heap_memory, size, true);
        rc = tn_json_open(tn_bytes_of(text), &arena, &root, &err);
        refused += rc == TN_AGAIN;
        CHECK(rc == TN_OK || (rc == TN_AGAIN && heap.used == 0 && strstr(err.text, "KB")));
    }
    CHECK(rc == TN_OK && refused > 10);
    struct sample sample;
    rc = TN_AGAIN;
    for (size_t size = 0; rc == TN_AGAIN; size += 8) {
        struct tn_arena small;
        tn_arena_init(&small, arena.base, size);
        rc = tn_json_read(root, fields, COUNT(fields), &sample, &small, &err);
    }
    CHECK_OK(rc, err);
    tn_json_close(root);
    tn_heap_deinit(&heap);
    tn_heap_init(&heap, heap_memory, HEAP_SIZE, true);
    struct tn_arena none;
    tn_arena_init(&none, arena.base, 16);
    CHECK(tn_json_open(tn_bytes_of(text), &none, &root, &err) == TN_AGAIN);
}

/* Lists of random integers and texts, written by us: each comes back, whatever stands around it. */
static void random_lists_come_back(void)
{
    static char text[8192];
    for (uint64_t round = 0; round < 500; round++) {
        uint64_t seed = round * 2654435761u + 1;
        int64_t values[64];
        size_t size = 0;
        for (size_t i = 0; i < COUNT(values); i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            values[i] = (int64_t)(seed ^ seed >> 29) >> (seed >> 58);
            size += (size_t)snprintf(
                text + size, sizeof text - size, "%s%s%" PRId64 "%s",
                i ? (seed >> 40 & 1 ? ", \"1234567890123456789\" ,\t" : ",") : "[",
                seed >> 41 & 1 ? "" : " ", values[i], seed >> 42 & 1 ? "\r\n" : "");
        }
        (void)snprintf(text + size, sizeof text - size, "]");
        struct cJSON *root = opened(text);
        size_t found = 0;
        for (const struct cJSON *node = root->child; node; node = node->next) {
            int64_t value = 0;
            CHECK(tn_json_i64(node, &value));
            bool text_node = value == 1234567890123456789;
            CHECK(text_node || value == values[found]);
            found += !text_node;
        }
        CHECK(found == COUNT(values));
        tn_json_close(root);
    }
}

static const struct test tests[] = {
    TEST(integers_are_exact),
    TEST(strings_are_left_alone),
    TEST(the_last_of_equal_keys_counts),
    TEST(errors_name_the_byte),
    TEST(nesting_is_bounded),
    TEST(lines_are_counted_from_one),
    TEST(records_are_written_as_java_writes_them),
    TEST(absent_members_are_cleared_and_scalars_become_text),
    TEST(wrong_members_are_named),
    TEST(short_memory_is_an_answer),
    TEST(random_lists_come_back),
};

int main(int argc, char **argv)
{
    heap_memory = malloc(HEAP_SIZE);
    void *memory = malloc(ARENA_SIZE);
    tn_heap_init(&heap, heap_memory, HEAP_SIZE, true);
    tn_json_use_heap(&heap);
    tn_arena_init(&arena, memory, ARENA_SIZE);
    int rc = run_tests(argc, argv, tests, COUNT(tests));
    tn_heap_deinit(&heap);
    free(heap_memory);
    free(memory);
    return rc;
}
