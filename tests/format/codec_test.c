/* codec: round trips over sizes and levels, other writers' blocks, and answers when memory or bytes
 * are short. */
#include "format/codec.h"

#include <bzlib.h>
#include <stdbool.h>
#include <zstd.h>

#include "base/hash.h"
#include "check.h"

enum { RAW_MAX = 300 * 1024, OUT_MAX = 512 * 1024, ARENA_SIZE = 48 * 1024 * 1024 };

static unsigned char raw[RAW_MAX];
static unsigned char packed[OUT_MAX];
static unsigned char unpacked[OUT_MAX];
static struct tn_arena arena;
static struct tn_err err;

static const enum tn_codec_id written[] = {TN_CODEC_ID_NULL, TN_CODEC_ID_DEFLATE,
                                           TN_CODEC_ID_ZSTANDARD};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Runs and repeats among noise: something to find for every codec. */
static void fill_raw(uint64_t seed)
{
    for (size_t i = 0; i < RAW_MAX; i++) {
        uint64_t value = next_random(&seed);
        bool repeat = i > 1000 && value % 8 < 6;
        raw[i] = repeat ? raw[i - 700] : (unsigned char)(value >> 8 & 31);
    }
}

static struct tn_codec codec_of(int level, size_t block_max)
{
    struct tn_codec codec;
    tn_arena_reset(&arena, 0);
    tn_rc rc = tn_codec_init(&codec, level, block_max, &arena, &err);
    CHECK_OK(rc, err);
    return codec;
}

static struct tn_bytes compressed(struct tn_codec *codec, enum tn_codec_id id, size_t size)
{
    struct tn_buf out;
    tn_buf_init(&out, packed, tn_codec_bound(id, size));
    CHECK(out.capacity <= sizeof packed);
    tn_rc rc = tn_codec_compress(codec, id, (struct tn_bytes){raw, size}, &arena, &out, &err);
    CHECK_OK(rc, err);
    return tn_buf_bytes(&out);
}

static tn_rc decompressed(struct tn_codec *codec, enum tn_codec_id id, struct tn_bytes block,
                          size_t capacity, struct tn_buf *out, size_t *needed)
{
    CHECK(capacity <= sizeof unpacked);
    tn_buf_init(out, unpacked, capacity);
    return tn_codec_decompress(codec, id, block, &arena, out, needed, &err);
}

static void blocks_come_back_as_they_were(void)
{
    static const int levels[] = {-5, 1, 3, 5, 9};
    static const size_t block_sizes[] = {1024, 64 * 1024, 256 * 1024};
    static const size_t sizes[] = {0,         1,     100,       1000,   10000,
                                   16 * 1024, 60000, 64 * 1024, 130000, 256 * 1024};
    fill_raw(1);
    for (size_t l = 0; l < COUNT(levels) * COUNT(block_sizes); l++) {
        size_t block_max = block_sizes[l % COUNT(block_sizes)];
        struct tn_codec codec = codec_of(levels[l / COUNT(block_sizes)], block_max);
        for (size_t i = 0; i < COUNT(sizes) * COUNT(written); i++) {
            size_t size = sizes[i / COUNT(written)];
            enum tn_codec_id id = written[i % COUNT(written)];
            size_t needed = 0;
            struct tn_buf out;
            struct tn_bytes block = compressed(&codec, id, size);
            tn_rc rc = decompressed(&codec, id, block, size, &out, &needed);
            CHECK_OK(rc, err);
            CHECK(out.size == size && memcmp(unpacked, raw, size) == 0);
        }
    }
}

/* measured: 304 to 337 KB for level 1 and blocks of 64 KiB, 96 KB to read. */
static void contexts_take_what_size_says(void)
{
    size_t read_only = tn_codec_size(1, 0);
    size_t both = tn_codec_size(1, 64 * 1024);
    CHECK(read_only > 80 * 1000 && read_only < 110 * 1000);
    CHECK(both - read_only > 250 * 1000 && both - read_only < 340 * 1000);
    (void)codec_of(1, 64 * 1024);
    CHECK(arena.used <= both);
    struct tn_arena small;
    struct tn_codec codec = {.level = 77};
    tn_arena_init(&small, arena.base, both - 1);
    tn_rc rc = tn_codec_init(&codec, 1, 64 * 1024, &small, &err);
    CHECK(rc == TN_INVALID && codec.level == 77 && small.used == 0);
    char expected[32];
    (void)snprintf(expected, sizeof expected, "needs %zu bytes", both);
    CHECK(strstr(err.text, expected));
    rc = tn_codec_init(&codec, 99, 64 * 1024, &small, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "99"));
}

/* The frame says its size, so a reader needs one try, and has no checksum: avro readers have the
 * sync. */
static void zstd_frames_say_their_size(void)
{
    struct tn_codec codec = codec_of(1, 64 * 1024);
    fill_raw(2);
    struct tn_bytes block = compressed(&codec, TN_CODEC_ID_ZSTANDARD, 5000);
    CHECK(ZSTD_getFrameContentSize(block.data, block.size) == 5000);
    CHECK((block.data[4] & 0x04) == 0);
    size_t needed = 0;
    struct tn_buf out;
    tn_rc rc = decompressed(&codec, TN_CODEC_ID_ZSTANDARD, block, 4999, &out, &needed);
    CHECK(rc == TN_AGAIN && needed == 5000);
}

static void other_codecs_and_readers_do_not_write(void)
{
    struct tn_codec codec = codec_of(1, 1000);
    struct tn_codec reader = codec_of(1, 0);
    struct tn_buf out;
    struct tn_bytes block = {raw, 1001};
    tn_buf_init(&out, packed, sizeof packed);
    CHECK(tn_codec_compress(&reader, TN_CODEC_ID_ZSTANDARD, block, &arena, &out, &err) ==
          TN_UNSUPPORTED);
    CHECK(tn_codec_compress(&codec, TN_CODEC_ID_SNAPPY, block, &arena, &out, &err) ==
          TN_UNSUPPORTED);
    CHECK(tn_codec_compress(&codec, TN_CODEC_ID_BZIP2, block, &arena, &out, &err) ==
          TN_UNSUPPORTED);
}

static void compressing_appends_and_says_when_there_is_no_room(void)
{
    struct tn_codec codec = codec_of(1, 64 * 1024);
    fill_raw(3);
    for (size_t i = 0; i < COUNT(written); i++) {
        struct tn_buf out;
        struct tn_bytes block = {raw, 3000};
        tn_buf_init(&out, packed, sizeof packed);
        tn_buf_text(&out, "head");
        tn_rc rc = tn_codec_compress(&codec, written[i], block, &arena, &out, &err);
        CHECK_OK(rc, err);
        CHECK(memcmp(packed, "head", 4) == 0);
        size_t size = out.size - 4;
        tn_buf_init(&out, unpacked, sizeof unpacked);
        size_t needed = 0;
        rc = tn_codec_decompress(&codec, written[i], (struct tn_bytes){packed + 4, size}, &arena,
                                 &out, &needed, &err);
        CHECK_OK(rc, err);
        CHECK(out.size == 3000 && memcmp(unpacked, raw, 3000) == 0);
        tn_buf_init(&out, packed, size / 2);
        rc = tn_codec_compress(&codec, written[i], block, &arena, &out, &err);
        CHECK(rc == TN_AGAIN && out.size == 0);
    }
}

/* Blocks of writers that tarn isn't one of. */
struct foreign {
    enum tn_codec_id id;
    struct tn_bytes block;
    size_t size; /* of `raw` in it */
};

/* By hand: literals of both kinds, and the three copies, near and far, one over itself. */
static struct foreign snappy_block(unsigned char *memory)
{
    static const unsigned char elements[] = {
        0x92, 0x02,                        /* 274 bytes */
        0x0c, 'a',  'b',  'c',  'd',       /* literal of 4 */
        0x05, 0x04,                        /* copy 1: 5 bytes from 4 back */
        0xf0, 0x03, 'w',  'x',  'y',  'z', /* literal of 4, its length in a byte of its own */
        0xfe, 0x01, 0x00,                  /* copy 2: 64 bytes from 1 back */
        0xff, 0x40, 0x00, 0x00, 0x00,      /* copy 4: 64 bytes from 64 back */
        0xfe, 0x01, 0x00, 0xfe, 0x01, 0x00, 0x25, 0x0d, /* copy 1: 5 bytes from 269 back */
    };
    size_t size = 274;
    memcpy(raw, "abcdabcdawxyz", 13);
    memset(raw + 13, 'z', 256);
    memcpy(raw + 269, "abcda", 5);
    memcpy(memory, elements, sizeof elements);
    uint32_t crc = tn_hash_crc32((struct tn_bytes){raw, size});
    tn_store_u32_be(memory + sizeof elements, crc);
    return (struct foreign){TN_CODEC_ID_SNAPPY, {memory, sizeof elements + 4}, size};
}

static struct foreign bzip2_block(unsigned char *memory, int level)
{
    unsigned size = OUT_MAX;
    int code = BZ2_bzBuffToBuffCompress((char *)memory, &size, (char *)raw, 50000, level, 0, 0);
    CHECK(code == BZ_OK);
    return (struct foreign){TN_CODEC_ID_BZIP2, {memory, size}, 50000};
}

/* As Java's stream writes them: without the size. */
static struct foreign zstd_stream_block(unsigned char *memory)
{
    ZSTD_CStream *stream = ZSTD_createCStream();
    ZSTD_inBuffer input = {raw, 50000, 0};
    ZSTD_outBuffer output = {memory, OUT_MAX, 0};
    (void)ZSTD_compressStream2(stream, &output, &input, ZSTD_e_flush);
    CHECK(ZSTD_compressStream2(stream, &output, &input, ZSTD_e_end) == 0);
    (void)ZSTD_freeCStream(stream);
    CHECK(ZSTD_getFrameContentSize(memory, output.pos) == ZSTD_CONTENTSIZE_UNKNOWN);
    return (struct foreign){TN_CODEC_ID_ZSTANDARD, {memory, output.pos}, 50000};
}

/* As fastavro writes them: three bytes of zlib's checksum are left behind the end. */
static struct foreign deflate_block(unsigned char *memory)
{
    struct tn_codec codec = codec_of(1, 0);
    struct tn_bytes block = compressed(&codec, TN_CODEC_ID_DEFLATE, 50000);
    memcpy(memory, block.data, block.size);
    memset(memory + block.size, 0xAB, 3);
    return (struct foreign){TN_CODEC_ID_DEFLATE, {memory, block.size + 3}, 50000};
}

enum { FOREIGN_COUNT = 5 };

static struct foreign foreign_block(int index, unsigned char *memory)
{
    fill_raw(4);
    switch (index) {
    case 0:
        return snappy_block(memory);
    case 1:
        return bzip2_block(memory, 1);
    case 2:
        return bzip2_block(memory, 9);
    case 3:
        return zstd_stream_block(memory);
    default:
        return deflate_block(memory);
    }
}

/* From a buffer of one byte up, each time with what the last try asked for. */
static void foreign_blocks_are_read_after_asking_for_room(void)
{
    static unsigned char memory[OUT_MAX];
    for (int i = 0; i < FOREIGN_COUNT; i++) {
        struct foreign foreign = foreign_block(i, memory);
        struct tn_codec codec = codec_of(1, 0);
        size_t capacity = 1;
        size_t needed = 0;
        struct tn_buf out;
        tn_rc rc = decompressed(&codec, foreign.id, foreign.block, capacity, &out, &needed);
        while (rc == TN_AGAIN) {
            CHECK(needed > capacity);
            capacity = needed;
            rc = decompressed(&codec, foreign.id, foreign.block, capacity, &out, &needed);
        }
        CHECK_OK(rc, err);
        CHECK(out.size == foreign.size && memcmp(unpacked, raw, out.size) == 0);
        CHECK(capacity <= 2 * foreign.size);
    }
}

/* A result that fits to the byte is no reason to ask for more. */
static void a_buffer_that_just_fits_is_enough(void)
{
    static unsigned char memory[OUT_MAX];
    for (int i = 0; i < FOREIGN_COUNT; i++) {
        struct foreign foreign = foreign_block(i, memory);
        struct tn_codec codec = codec_of(1, 0);
        size_t needed = 0;
        struct tn_buf out;
        tn_rc rc = decompressed(&codec, foreign.id, foreign.block, foreign.size, &out, &needed);
        CHECK_OK(rc, err);
    }
}

/* Every prefix, and single bytes changed: an error or (without a checksum) other bytes, in bounds.
 */
static void damaged_blocks_stay_in_bounds(void)
{
    static unsigned char memory[OUT_MAX];
    uint64_t seed = 5;
    for (int i = 0; i < FOREIGN_COUNT; i++) {
        struct foreign foreign = foreign_block(i, memory);
        struct tn_codec codec = codec_of(1, 0);
        size_t cut = foreign.block.size - (foreign.id == TN_CODEC_ID_DEFLATE ? 3 : 0);
        for (int round = 0; round < 300; round++) {
            size_t size = (size_t)(next_random(&seed) % cut);
            unsigned char *copy = malloc(foreign.block.size);
            size_t needed = 0;
            struct tn_buf out;
            memcpy(copy, memory, foreign.block.size);
            unsigned char *part = malloc(size + 1);
            memcpy(part, memory, size);
            tn_rc rc = decompressed(&codec, foreign.id, (struct tn_bytes){part, size}, 60000, &out,
                                    &needed);
            CHECK(rc == TN_CORRUPT || (rc == TN_AGAIN && needed > 60000));
            copy[size] ^= (unsigned char)(1 + next_random(&seed) % 255);
            rc = decompressed(&codec, foreign.id, (struct tn_bytes){copy, foreign.block.size},
                              60000, &out, &needed);
            CHECK(rc == TN_CORRUPT || rc == TN_AGAIN || rc == TN_OK);
            bool same = out.size == foreign.size && memcmp(unpacked, raw, out.size) == 0;
            CHECK(rc != TN_OK || foreign.id != TN_CODEC_ID_SNAPPY || same);
            CHECK(arena.used == tn_arena_mark(&arena) && out.size <= out.capacity);
            free(copy);
            free(part);
        }
    }
}

/* From no scratch up: AGAIN with needed 0 until it is enough, and bzip2 makes do with less in small
 * mode. */
static void short_scratch_is_an_answer(void)
{
    static unsigned char memory[OUT_MAX];
    for (int i = 0; i < FOREIGN_COUNT; i++) {
        struct foreign foreign = foreign_block(i, memory);
        struct tn_codec codec = codec_of(1, 0);
        if (foreign.id != TN_CODEC_ID_BZIP2 && foreign.id != TN_CODEC_ID_DEFLATE) {
            continue;
        }
        size_t enough = 0;
        for (tn_rc rc = TN_AGAIN; rc == TN_AGAIN; enough += 8192) {
            struct tn_arena scratch;
            size_t needed = 1;
            struct tn_buf out;
            tn_arena_init(&scratch, arena.base + arena.used, enough);
            tn_buf_init(&out, unpacked, 50000);
            rc = tn_codec_decompress(&codec, foreign.id, foreign.block, &scratch, &out, &needed,
                                     &err);
            CHECK(rc == TN_OK || (rc == TN_AGAIN && needed == 0));
            CHECK(scratch.used == 0);
        }
        CHECK(enough < (i == 2 ? 2500 * 1000 : 400 * 1000));
    }
}

static void names_are_those_of_avro(void)
{
    for (int i = TN_CODEC_ID_NULL; i <= TN_CODEC_ID_BZIP2; i++) {
        enum tn_codec_id id = TN_CODEC_ID_NULL;
        tn_rc rc = tn_codec_parse(tn_bytes_of(tn_codec_name((enum tn_codec_id)i)), &id, &err);
        CHECK_OK(rc, err);
        CHECK((int)id == i);
    }
    enum tn_codec_id id = TN_CODEC_ID_SNAPPY;
    CHECK(tn_codec_parse(tn_bytes_of("xz"), &id, &err) == TN_UNSUPPORTED);
    CHECK(strstr(err.text, "\"xz\"") && id == TN_CODEC_ID_SNAPPY);
}

static const struct test tests[] = {
    TEST(blocks_come_back_as_they_were),
    TEST(contexts_take_what_size_says),
    TEST(zstd_frames_say_their_size),
    TEST(other_codecs_and_readers_do_not_write),
    TEST(compressing_appends_and_says_when_there_is_no_room),
    TEST(foreign_blocks_are_read_after_asking_for_room),
    TEST(a_buffer_that_just_fits_is_enough),
    TEST(damaged_blocks_stay_in_bounds),
    TEST(short_scratch_is_an_answer),
    TEST(names_are_those_of_avro),
};

int main(int argc, char **argv)
{
    void *memory = malloc(ARENA_SIZE);
    tn_arena_init(&arena, memory, ARENA_SIZE);
    int rc = run_tests(argc, argv, tests, COUNT(tests));
    free(memory);
    return rc;
}
