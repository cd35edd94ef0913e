/* A container ("Obj" 1 ...): header, schema, blocks, each value passed. Other input: a schema, a
 * zero byte, and values of it. What is decoded is encoded to the same header; a failure leaves
 * nothing behind. */
#include "check.h"
#include "fuzz/fuzz.h"
#include "fuzz/heaps.h"

enum {
    ARENA_SIZE = 8 * 1024 * 1024,
    RAW_MAX = 64 * 1024,
    HEADER_MAX = 128 * 1024,
    ROWS_MAX = 1000,
};

static struct tn_arena arena;
static struct tn_codec codec;
static size_t arena_start;
static struct tn_err err;

static void set_up(void)
{
    static unsigned char arena_memory[ARENA_SIZE];
    if (!arena.base) {
        heaps_init();
        tn_arena_init(&arena, arena_memory, sizeof arena_memory);
        tn_rc rc = tn_codec_init(&codec, 1, 0, &arena, &err);
        CHECK_OK(rc, err);
        arena_start = tn_arena_mark(&arena);
    }
    tn_arena_reset(&arena, arena_start);
}

static bool parse(struct tn_bytes text, struct tn_avro_type *root)
{
    tn_rc rc = tn_avro_schema_parse(text, &arena, root, &err);
    CHECK(rc == TN_OK || tn_arena_mark(&arena) == arena_start);
    CHECK(avro_heap.used == 0 && json_heap.used == 0);
    return rc == TN_OK;
}

static void skip_rows(struct tn_bytes bytes, const struct tn_avro_type *root, int64_t count)
{
    struct tn_avro_cursor c = {bytes.data, bytes.data + bytes.size, false};
    for (int64_t i = 0; i < count && i < ROWS_MAX && !c.failed; i++) {
        const unsigned char *start = c.at;
        tn_avro_skip(&c, root);
        CHECK(c.at >= start && c.at <= c.end);
    }
}

static void check_header(const struct tn_avro_header *header)
{
    static unsigned char memory[HEADER_MAX];
    struct tn_avro_header again;
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_avro_header_encode(header->schema, header->codec, header->sync, &buf);
    tn_rc rc = tn_avro_header_decode(tn_buf_bytes(&buf), &again, &err);
    CHECK_OK(rc, err);
    CHECK(again.codec == header->codec && tn_bytes_equal(again.schema, header->schema));
    CHECK(memcmp(again.sync, header->sync, sizeof again.sync) == 0 && again.size == buf.size);
}

static void read_blocks(struct tn_bytes rest, const struct tn_avro_header *header,
                        const struct tn_avro_type *root)
{
    static unsigned char memory[RAW_MAX];
    int64_t rows = 0;
    int64_t size = 0;
    uint32_t head = 0;
    size_t needed = 0;
    while (tn_avro_block_decode(rest, &rows, &size, &head, &err) == TN_OK) {
        CHECK(head <= 20 && head <= rest.size);
        rest = (struct tn_bytes){rest.data + head, rest.size - head};
        if (size > (int64_t)rest.size || rest.size - (size_t)size < sizeof header->sync) {
            return;
        }
        struct tn_buf raw;
        struct tn_bytes block = {rest.data, (size_t)size};
        tn_buf_init(&raw, memory, sizeof memory);
        tn_rc rc = tn_codec_decompress(&codec, header->codec, block, &arena, &raw, &needed, &err);
        if (rc == TN_OK) {
            skip_rows(tn_buf_bytes(&raw), root, rows);
        }
        size_t passed = (size_t)size + sizeof header->sync;
        rest = (struct tn_bytes){rest.data + passed, rest.size - passed};
    }
}

static void read_container(struct tn_bytes bytes)
{
    struct tn_avro_header header;
    struct tn_avro_type root;
    if (tn_avro_header_decode(bytes, &header, &err)) {
        return;
    }
    CHECK(header.size <= bytes.size);
    check_header(&header);
    if (parse(header.schema, &root)) {
        read_blocks((struct tn_bytes){bytes.data + header.size, bytes.size - header.size}, &header,
                    &root);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    if (size >= 4 && memcmp(data, "Obj\1", 4) == 0) {
        read_container((struct tn_bytes){data, size});
    } else if (zero) {
        struct tn_avro_type root;
        if (parse((struct tn_bytes){data, (size_t)(zero - data)}, &root)) {
            skip_rows((struct tn_bytes){zero + 1, (size_t)(data + size - zero - 1)}, &root,
                      ROWS_MAX);
        }
    }
    return 0;
}
