/* Any text: refused without leaving anything in the heap, or read; strings that were read are
 * written so that they are read again, and a record that was read is written to the same record. */
#include <cjson/cJSON.h>

#include "check.h"
#include "format/json.h"
#include "fuzz/fuzz.h"

enum { HEAP_SIZE = 512 * 1024, ARENA_SIZE = 256 * 1024, TEXT_MAX = 512 * 1024 };

struct record {
    int32_t version;
    struct tn_json_i64 id;
    const char *user;
    struct tn_json_map options;
};

static const struct tn_json_field fields[] = {
    {"version", TN_JSON_I32, TN_JSON_OPTIONAL, offsetof(struct record, version)},
    {"id", TN_JSON_I64, TN_JSON_OPTIONAL, offsetof(struct record, id)},
    {"commitUser", TN_JSON_TEXT, TN_JSON_OPTIONAL, offsetof(struct record, user)},
    {"options", TN_JSON_MAP, TN_JSON_OPTIONAL, offsetof(struct record, options)},
};

static struct tn_heap heap;
static struct tn_arena arena;
static char text[TEXT_MAX];

static void set_up(void)
{
    static unsigned char heap_memory[HEAP_SIZE];
    static unsigned char arena_memory[ARENA_SIZE];
    if (!heap.base) {
        tn_heap_init(&heap, heap_memory, sizeof heap_memory, false);
        tn_arena_init(&arena, arena_memory, sizeof arena_memory);
        tn_json_use_heap(&heap);
    }
    tn_arena_reset(&arena, 0);
}

static void read_string(const char *value)
{
    struct tn_buf buf;
    struct cJSON *root = NULL;
    struct tn_err err;
    size_t mark = tn_arena_mark(&arena);
    tn_buf_init(&buf, text, sizeof text);
    tn_json_quote(&buf, value);
    CHECK(!buf.overflow);
    tn_rc rc = tn_json_open(tn_buf_bytes(&buf), &arena, &root, &err);
    CHECK(rc == TN_AGAIN || (rc == TN_OK && strcmp(root->valuestring, value) == 0));
    tn_json_close(root);
    tn_arena_reset(&arena, mark);
}

static void read_record(const struct cJSON *root)
{
    struct record record = {0};
    struct record again = {0};
    struct tn_err err;
    struct tn_buf buf;
    if (tn_json_read(root, fields, COUNT(fields), &record, &arena, &err)) {
        return;
    }
    tn_buf_init(&buf, text, sizeof text);
    tn_json_write(&record, fields, COUNT(fields), &buf);
    CHECK(!buf.overflow);
    struct cJSON *copy = NULL;
    tn_rc rc = tn_json_open(tn_buf_bytes(&buf), &arena, &copy, &err);
    if (rc == TN_OK) {
        rc = tn_json_read(copy, fields, COUNT(fields), &again, &arena, &err);
    }
    tn_json_close(copy);
    CHECK(rc == TN_OK || rc == TN_AGAIN);
    if (rc == TN_OK) {
        CHECK(record.version == again.version && record.id.present == again.id.present);
        CHECK(record.id.value == again.id.value && record.options.count == again.options.count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    struct cJSON *root = NULL;
    struct tn_err err;
    tn_rc rc = tn_json_open((struct tn_bytes){data, size}, &arena, &root, &err);
    if (rc) {
        CHECK(!root && heap.used == 0 && arena.used == 0);
        return 0;
    }
    for (const struct cJSON *node = root->child; node; node = node->next) {
        int64_t value = 0;
        (void)tn_json_i64(node, &value);
        if (cJSON_IsString(node)) {
            read_string(node->valuestring);
        }
        if (node->string) {
            CHECK(tn_json_member(root, node->string) || cJSON_IsNull(node) || node->next);
        }
    }
    read_record(root);
    tn_json_close(root);
    CHECK(heap.used == 0);
    return 0;
}
