/* golden: cases of tests/golden/merge, which say what Paimon made of tables: how a case is found,
 * its table as `create` gets it, and its values. */
#pragma once

#include <math.h>

#include <cjson/cJSON.h>

#include "check.h"
#include "format/json.h"
#include "schema/value.h"

enum { GOLDEN_LINE_SIZE = 256 << 10, GOLDEN_SCRATCH_SIZE = 1 << 20 };

/* Each case of a file; returns how many there are. */
static inline int golden_each(const char *path, void (*each)(const struct cJSON *item))
{
    static char line[GOLDEN_LINE_SIZE];
    static unsigned char scratch_memory[GOLDEN_SCRATCH_SIZE];
    FILE *file = fopen(path, "r");
    int count = 0;
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        struct tn_arena scratch;
        struct cJSON *item = NULL;
        struct tn_err err;
        tn_arena_init(&scratch, scratch_memory, sizeof scratch_memory);
        CHECK(strchr(line, '\n') != NULL);
        tn_rc rc = tn_json_open(tn_bytes_of(line), &scratch, &item, &err);
        CHECK_OK(rc, err);
        each(item);
        tn_json_close(item);
        count++;
    }
    CHECK(fclose(file) == 0);
    return count;
}

static inline const char *golden_text(const struct cJSON *item, const char *name)
{
    const struct cJSON *member = tn_json_member(item, name);
    return member ? member->valuestring : NULL;
}

static inline const char *golden_option(const struct cJSON *item, const char *name)
{
    return golden_text(tn_json_member(item, "options"), name);
}

static inline void golden_set_option(struct cJSON *options, const char *name, const char *value)
{
    if (!tn_json_member(options, name)) {
        (void)cJSON_AddStringToObject(options, name, value);
    }
}

/* The table as `create` gets it, with `more` options where the case hasn't set them: pairs of key
 * and value, then NULL. For cJSON_free. */
static inline char *golden_schema(const struct cJSON *item, const char *const *more)
{
    static const char *const members[][2] = {{"fields", "schema"},
                                             {"primaryKeys", "primary_key"},
                                             {"partitionKeys", "partition_keys"},
                                             {"options", "options"}};
    struct cJSON *schema = cJSON_CreateObject();
    for (size_t i = 0; i < COUNT(members); i++) {
        const struct cJSON *member = tn_json_member(item, members[i][1]);
        if (member) {
            (void)cJSON_AddItemToObject(schema, members[i][0], cJSON_Duplicate(member, true));
        }
    }
    struct cJSON *options = cJSON_GetObjectItemCaseSensitive(schema, "options");
    golden_set_option(options, "bucket", "1");
    for (; more && *more; more += 2) {
        golden_set_option(options, more[0], more[1]);
    }
    char *text = cJSON_PrintUnformatted(schema);
    CHECK(text != NULL);
    cJSON_Delete(schema);
    return text;
}

/* ---- values ---- */

static inline uint32_t golden_base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    CHECK(at != NULL && c != 0);
    return (uint32_t)(at - digits);
}

static inline struct tn_bytes golden_base64(const char *text, struct tn_arena *arena)
{
    unsigned char *data = tn_arena_take(arena, strlen(text) + 1);
    size_t size = 0;
    uint32_t bits = 0;
    CHECK(data != NULL);
    for (size_t i = 0; text[i] != 0 && text[i] != '='; i++) {
        bits = bits << 6 | golden_base64_digit(text[i]);
        if (i % 4 > 0) {
            data[size++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
        }
    }
    return (struct tn_bytes){data, size};
}

/* `node` NULL is NULL. Texts are the case's own. */
static inline struct tn_value golden_value(const struct cJSON *node, const struct tn_type *type,
                                           struct tn_arena *arena)
{
    struct tn_value value = {.null = node == NULL};
    if (node == NULL) {
        return value;
    }
    if (tn_type_binary(type->kind)) {
        value.as.bytes = golden_base64(node->valuestring, arena);
    } else if (tn_type_textual(type->kind)) {
        value.as.bytes = tn_bytes_of(node->valuestring);
    } else if (type->kind == TN_TYPE_BOOLEAN) {
        value.as.i64 = cJSON_IsTrue(node);
    } else if (type->kind == TN_TYPE_DECIMAL) {
        struct tn_err ignored;
        tn_rc rc = tn_value_parse(type, TN_EPOCH_NONE, tn_bytes_of(node->valuestring), NULL, &value,
                                  &ignored);
        value.null = rc != TN_OK; /* a sum with too many digits: NULL once it is in a file */
    } else if (type->kind == TN_TYPE_FLOAT) {
        value.as.f64 = (double)(float)node->valuedouble;
    } else if (type->kind == TN_TYPE_DOUBLE) {
        value.as.f64 = node->valuedouble;
        if (cJSON_IsString(node)) {
            CHECK(strcmp(node->valuestring, "NaN") == 0);
            value.as.f64 = (double)NAN;
        }
    } else {
        CHECK(tn_json_i64(node, &value.as.i64));
    }
    return value;
}
