/* Two bytes choose codec and room, the others are a block: decompressed in bounds. Then they are
 * raw bytes, which come back from each codec that tarn writes. */
#include "check.h"
#include "format/codec.h"
#include "fuzz/fuzz.h"

enum { ARENA_SIZE = 8 * 1024 * 1024, RAW_MAX = 64 * 1024, GUARD = 0x5A };

static struct tn_arena arena;
static struct tn_codec codec;
static unsigned char raw[RAW_MAX + 64];
static unsigned char packed[2 * RAW_MAX];

static void set_up(void)
{
    static unsigned char memory[ARENA_SIZE];
    struct tn_err err;
    if (!arena.base) {
        tn_arena_init(&arena, memory, sizeof memory);
        tn_rc rc = tn_codec_init(&codec, 1, RAW_MAX, &arena, &err);
        CHECK_OK(rc, err);
    }
}

static void decompress(enum tn_codec_id id, struct tn_bytes block, size_t capacity)
{
    struct tn_buf out;
    struct tn_err err;
    size_t needed = 0;
    size_t used = arena.used;
    tn_buf_init(&out, raw, capacity);
    memset(raw + capacity, GUARD, 64);
    tn_rc rc = tn_codec_decompress(&codec, id, block, &arena, &out, &needed, &err);
    CHECK(rc == TN_OK || rc == TN_CORRUPT || rc == TN_AGAIN);
    CHECK(rc != TN_AGAIN || needed == 0 || needed > capacity);
    CHECK(out.size <= capacity && arena.used == used);
    for (size_t i = 0; i < 64; i++) {
        CHECK(raw[capacity + i] == GUARD);
    }
}

static void round_trip(enum tn_codec_id id, struct tn_bytes bytes)
{
    struct tn_buf out;
    struct tn_err err;
    size_t needed = 0;
    tn_buf_init(&out, packed, tn_codec_bound(id, bytes.size));
    tn_rc rc = tn_codec_compress(&codec, id, bytes, &arena, &out, &err);
    CHECK_OK(rc, err);
    struct tn_buf back;
    tn_buf_init(&back, raw, bytes.size);
    rc = tn_codec_decompress(&codec, id, tn_buf_bytes(&out), &arena, &back, &needed, &err);
    CHECK_OK(rc, err);
    CHECK(tn_bytes_equal(tn_buf_bytes(&back), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    if (size < 2 || size > RAW_MAX) {
        return 0;
    }
    struct tn_bytes bytes = {data + 2, size - 2};
    size_t room = (size_t)data[1] * data[1]; /* 0 .. 65025 */
    decompress((enum tn_codec_id)(data[0] % 5), bytes, room);
    round_trip(TN_CODEC_ID_NULL, bytes);
    round_trip(TN_CODEC_ID_ZSTANDARD, bytes);
    round_trip(TN_CODEC_ID_DEFLATE, bytes);
    return 0;
}
