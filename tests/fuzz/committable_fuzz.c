/* committable: any bytes as a committable. Also those whose sizes and checksum are made right, or
 * hardly any would get further. What decodes is encoded, decoded again, and must not differ; the
 * check of it against a table must come to an end. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "fuzz/fuzz.h"
#include "fuzz/heaps.h"
#include "upload/committable.h"

enum { ARENA_SIZE = 8 << 20, LINE_SIZE = 46, TEXT_SIZE = 512 << 10, INPUT_MAX = 64 << 10 };

static struct tn_arena arena;
static struct tn_meta_plan plan;
static struct tn_schema schema;
static struct tn_options options;
static struct tn_err err;
static unsigned char texts[2][TEXT_SIZE];
static size_t start;

static void set_up(void)
{
    static const char json[] =
        "{\"fields\": [{\"name\": \"dt\", \"type\": \"STRING\"}, {\"name\": \"k\", \"type\": "
        "\"BIGINT\"}, {\"name\": \"v\", \"type\": \"DOUBLE\"}], \"primaryKeys\": [\"dt\", \"k\"], "
        "\"partitionKeys\": [\"dt\"]}";
    static _Alignas(16) unsigned char memory[ARENA_SIZE];
    heaps_init();
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), &arena, &plan, &err);
    TN_CHECK(rc == TN_OK);
    rc = tn_schema_from_user(tn_bytes_of(json), &arena, &schema, &err);
    TN_CHECK(rc == TN_OK);
    options = (struct tn_options){.bucket = 2,
                                  .path_directory = "",
                                  .partition_default_name = "none",
                                  .partition_legacy_name = true,
                                  .changelog_producer = TN_CHANGELOG_INPUT};
    start = tn_arena_mark(&arena);
}

static void one(struct tn_bytes bytes)
{
    struct tn_committable read;
    struct tn_committable again;
    struct tn_committable_table table = {"db.t", "db.db/t", &schema, &options};
    struct tn_buf text[2];
    tn_arena_reset(&arena, start);
    if (tn_committable_decode(bytes, &plan, &arena, &read, &err) != TN_OK) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        tn_buf_init(&text[i], texts[i], TEXT_SIZE);
    }
    tn_committable_encode(&read, &text[0]);
    tn_rc rc = tn_committable_decode(tn_buf_bytes(&text[0]), &plan, &arena, &again, &err);
    if (rc != TN_AGAIN) {
        TN_CHECK(rc == TN_OK);
        tn_committable_encode(&again, &text[1]);
        TN_CHECK(tn_bytes_equal(tn_buf_bytes(&text[0]), tn_buf_bytes(&text[1])));
    }
    rc = tn_committable_check(&read, &table, &arena, &err);
    TN_CHECK(rc == TN_OK || rc == TN_INVALID || rc == TN_AGAIN);
}

/* The first two bytes say where the header ends. */
static void with_a_line(struct tn_bytes bytes)
{
    static unsigned char memory[LINE_SIZE + 1 + INPUT_MAX];
    struct tn_bytes body = {bytes.data + 2, bytes.size - 2};
    size_t header = (size_t)(bytes.data[0] | bytes.data[1] << 8);
    header = header > body.size ? body.size : header;
    (void)snprintf((char *)memory, LINE_SIZE + 1, "tarn-committable 1 %08zx %08zx %08x\n", header,
                   body.size - header, (unsigned)tn_hash_crc32(body));
    memcpy(memory + LINE_SIZE, body.data, body.size);
    one((struct tn_bytes){memory, LINE_SIZE + body.size});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!arena.base) {
        set_up();
    }
    if (size <= INPUT_MAX) {
        one((struct tn_bytes){data, size});
        if (size > 2) {
            with_a_line((struct tn_bytes){data, size});
        }
    }
    return 0;
}
