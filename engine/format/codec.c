#define ZSTD_STATIC_LINKING_ONLY /* static contexts, and their sizes */
#define ZLIB_CONST               /* input is const */
#include "format/codec.h"

#include <bzlib.h>
#include <inttypes.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/check.h"
#include "base/hash.h"

enum {
    DEFLATE_BITS = -15, /* raw: no zlib header, no checksum */
    DEFLATE_LEVEL = 6,  /* Java: Deflater.DEFAULT_COMPRESSION */
    DEFLATE_MEMORY = 8,
    GROW_MIN = 4096,         /* the least to try when a result's size is unknown */
    CRC_SIZE = 4,            /* behind a snappy block */
    BZIP2_FIXED = 72 * 1024, /* its state beside the block, bytes; measured 64160 + 64 */
    BZIP2_PER_LEVEL =
        400000, /* bzip2's manual: 100k + 4 * 100k * level; half of it in small mode */
};

static const char *const names[] = {
    [TN_CODEC_ID_NULL] = "null",     [TN_CODEC_ID_DEFLATE] = "deflate",
    [TN_CODEC_ID_SNAPPY] = "snappy", [TN_CODEC_ID_ZSTANDARD] = "zstandard",
    [TN_CODEC_ID_BZIP2] = "bzip2",
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

tn_rc tn_codec_parse(struct tn_bytes name, enum tn_codec_id *id, struct tn_err *err)
{
    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        if (tn_bytes_equal(name, tn_bytes_of(names[i]))) {
            *id = (enum tn_codec_id)i;
            return TN_OK;
        }
    }
    int shown = name.size < 32 ? (int)name.size : 32;
    return tn_err_set(err, TN_UNSUPPORTED, 0, "codec \"%.*s\"", shown, (const char *)name.data);
}

const char *tn_codec_name(enum tn_codec_id id)
{
    TN_CHECK((uint32_t)id < NAME_COUNT);
    return names[id];
}

/* ---- contexts ---- */

/* The level's parameters with a window no larger than the largest block. */
static ZSTD_compressionParameters fitted(int level, size_t block_max)
{
    return ZSTD_getCParams(level, block_max, 0);
}

static size_t rounded(size_t size)
{
    size_t align = _Alignof(max_align_t);
    return (size + align - 1) & ~(align - 1);
}

static size_t compress_size(int level, size_t block_max)
{
    return block_max == 0 ? 0 : ZSTD_estimateCCtxSize_usingCParams(fitted(level, block_max));
}

size_t tn_codec_size(int level, size_t block_max)
{
    return rounded(ZSTD_estimateDCtxSize()) + rounded(compress_size(level, block_max));
}

static tn_rc init_compress(struct tn_codec *codec, struct tn_arena *arena, struct tn_err *err)
{
    size_t size = compress_size(codec->level, codec->block_max);
    void *memory = tn_arena_take_raw(arena, size);
    ZSTD_CCtx *context = memory ? ZSTD_initStaticCCtx(memory, size) : NULL;
    if (!context) {
        return tn_err_set(err, TN_INVALID, 0, "zstd level %d does not fit %zu bytes", codec->level,
                          size);
    }
    size_t code = ZSTD_CCtx_setCParams(context, fitted(codec->level, codec->block_max));
    if (!ZSTD_isError(code)) {
        code = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, codec->level);
    }
    if (!ZSTD_isError(code)) {
        code = ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1);
    }
    if (!ZSTD_isError(code)) {
        code = ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0);
    }
    if (ZSTD_isError(code)) {
        return tn_err_set(err, TN_INVALID, 0, "zstd level %d: %s", codec->level,
                          ZSTD_getErrorName(code));
    }
    codec->compress = context;
    return TN_OK;
}

tn_rc tn_codec_init(struct tn_codec *codec, int level, size_t block_max, struct tn_arena *arena,
                    struct tn_err *err)
{
    if (block_max > 0 && (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel())) {
        return tn_err_set(err, TN_INVALID, 0, "zstd level %d is outside %d..%d", level,
                          ZSTD_minCLevel(), ZSTD_maxCLevel());
    }
    size_t mark = tn_arena_mark(arena);
    struct tn_codec made = {.level = level, .block_max = block_max};
    size_t size = ZSTD_estimateDCtxSize();
    void *memory = NULL;
    if (tn_codec_size(level, block_max) + _Alignof(max_align_t) <= tn_arena_free(arena)) {
        memory = tn_arena_take_raw(arena, size);
    }
    made.decompress = memory ? ZSTD_initStaticDCtx(memory, size) : NULL;
    if (!made.decompress) {
        tn_arena_reset(arena, mark);
        return tn_err_set(err, TN_INVALID, 0,
                          "zstd level %d for blocks of %zu bytes needs %zu bytes, %zu are free",
                          level, block_max, tn_codec_size(level, block_max), tn_arena_free(arena));
    }
    if (block_max > 0) {
        tn_rc rc = init_compress(&made, arena, err);
        if (rc) {
            tn_arena_reset(arena, mark);
            return rc;
        }
    }
    *codec = made;
    return TN_OK;
}

/* ---- compressing ---- */

size_t tn_codec_bound(enum tn_codec_id id, size_t size)
{
    switch (id) {
    case TN_CODEC_ID_NULL:
        return size;
    case TN_CODEC_ID_DEFLATE:
        return compressBound(size);
    case TN_CODEC_ID_ZSTANDARD:
        return ZSTD_compressBound(size);
    case TN_CODEC_ID_SNAPPY:
    case TN_CODEC_ID_BZIP2:
        break;
    }
    return 0; /* not written */
}

static void *zlib_take(void *opaque, uInt count, uInt size)
{
    return tn_arena_take(opaque, (size_t)count * size);
}

static void zlib_give(void *opaque, void *block)
{
    (void)opaque; /* the arena is reset as a whole */
    (void)block;
}

static uInt clamped(size_t size)
{
    return size < UINT_MAX ? (uInt)size : UINT_MAX;
}

static z_stream zlib_stream(struct tn_bytes input, unsigned char *output, size_t room,
                            struct tn_arena *scratch)
{
    z_stream stream = {.zalloc = zlib_take, .zfree = zlib_give, .opaque = scratch};
    stream.next_in = input.data;
    stream.avail_in = clamped(input.size);
    stream.next_out = output;
    stream.avail_out = clamped(room);
    return stream;
}

static tn_rc scratch_short(const char *name, const struct tn_arena *scratch, struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "%s: %zu bytes of scratch are too few", name,
                      tn_arena_free(scratch));
}

static tn_rc out_short(const char *name, const struct tn_buf *out, struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "%s: result is larger than %zu bytes", name, out->capacity);
}

static tn_rc compress_deflate(struct tn_bytes raw, struct tn_arena *scratch, struct tn_buf *out,
                              struct tn_err *err)
{
    z_stream stream = zlib_stream(raw, out->data + out->size, out->capacity - out->size, scratch);
    size_t mark = tn_arena_mark(scratch);
    int code = deflateInit2(&stream, DEFLATE_LEVEL, Z_DEFLATED, DEFLATE_BITS, DEFLATE_MEMORY,
                            Z_DEFAULT_STRATEGY);
    tn_rc rc = TN_OK;
    if (code != Z_OK) {
        rc = scratch_short("deflate", scratch, err);
    } else if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
        rc = out_short("deflate", out, err);
    } else {
        out->size += stream.total_out;
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc compress_zstandard(struct tn_codec *codec, struct tn_bytes raw, struct tn_buf *out,
                                struct tn_err *err)
{
    if (!codec->compress) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "zstd: this worker only reads");
    }
    size_t size = ZSTD_compress2(codec->compress, out->data + out->size, out->capacity - out->size,
                                 raw.data, raw.size);
    if (ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall) {
        return out_short("zstd", out, err);
    }
    if (ZSTD_isError(size)) {
        return tn_err_set(err, TN_INVALID, 0, "zstd: %s", ZSTD_getErrorName(size));
    }
    out->size += size;
    return TN_OK;
}

tn_rc tn_codec_compress(struct tn_codec *codec, enum tn_codec_id id, struct tn_bytes raw,
                        struct tn_arena *scratch, struct tn_buf *out, struct tn_err *err)
{
    if (out->overflow || raw.size > INT32_MAX) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "block of %zu bytes", raw.size);
    }
    switch (id) {
    case TN_CODEC_ID_NULL:
        if (raw.size > out->capacity - out->size) {
            return out_short("null", out, err);
        }
        tn_buf_append(out, raw.data, raw.size);
        return TN_OK;
    case TN_CODEC_ID_DEFLATE:
        return compress_deflate(raw, scratch, out, err);
    case TN_CODEC_ID_ZSTANDARD:
        return compress_zstandard(codec, raw, out, err);
    case TN_CODEC_ID_SNAPPY:
    case TN_CODEC_ID_BZIP2:
        break;
    }
    return tn_err_set(err, TN_UNSUPPORTED, 0, "codec %s is read, not written", tn_codec_name(id));
}

/* ---- decompressing ---- */

/* AGAIN with a size to try; 0 stands for twice what there was. */
static tn_rc grow(const char *name, const struct tn_buf *out, uint64_t known, size_t *needed,
                  struct tn_err *err)
{
    size_t twice = out->capacity > SIZE_MAX / 2 ? SIZE_MAX : out->capacity * 2;
    *needed = twice < GROW_MIN ? GROW_MIN : twice;
    if (known > 0) {
        *needed = known > SIZE_MAX ? SIZE_MAX : (size_t)known;
    }
    return out_short(name, out, err);
}

static tn_rc decompress_zstandard(struct tn_codec *codec, struct tn_bytes block, struct tn_buf *out,
                                  size_t *needed, struct tn_err *err)
{
    unsigned long long known = ZSTD_getFrameContentSize(block.data, block.size);
    if (known == ZSTD_CONTENTSIZE_ERROR) {
        return tn_err_set(err, TN_CORRUPT, 0, "zstd: not a frame");
    }
    if (known != ZSTD_CONTENTSIZE_UNKNOWN && known > out->capacity) {
        return grow("zstd", out, known, needed, err);
    }
    size_t size =
        ZSTD_decompressDCtx(codec->decompress, out->data, out->capacity, block.data, block.size);
    if (ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall) {
        return grow("zstd", out, 0, needed, err);
    }
    if (ZSTD_isError(size)) {
        return tn_err_set(err, TN_CORRUPT, 0, "zstd: %s", ZSTD_getErrorName(size));
    }
    out->size = size;
    return TN_OK;
}

/* Bytes behind the end are left alone: fastavro writes three of zlib's checksum there. */
static tn_rc decompress_deflate(struct tn_bytes block, struct tn_arena *scratch, struct tn_buf *out,
                                size_t *needed, struct tn_err *err)
{
    z_stream stream = zlib_stream(block, out->data, out->capacity, scratch);
    if (inflateInit2(&stream, DEFLATE_BITS) != Z_OK) {
        return scratch_short("deflate", scratch, err);
    }
    int code = inflate(&stream, Z_FINISH);
    if (code == Z_STREAM_END) {
        out->size = stream.total_out;
        return TN_OK;
    }
    if (code == Z_MEM_ERROR) {
        return scratch_short("deflate", scratch, err);
    }
    if ((code == Z_OK || code == Z_BUF_ERROR) && stream.avail_out == 0) {
        return grow("deflate", out, 0, needed, err);
    }
    return tn_err_set(err, TN_CORRUPT, 0, "deflate: %s at byte %lu",
                      stream.msg ? stream.msg : "block ends early", stream.total_in);
}

static void *bzip2_take(void *opaque, int count, int size)
{
    return tn_arena_take(opaque, (size_t)count * (size_t)size);
}

/* Small mode needs little more than half the memory, and twice the time. */
static int bzip2_small(struct tn_bytes block, const struct tn_arena *scratch)
{
    unsigned level = block.size > 3 && block.data[3] >= '1' && block.data[3] <= '9'
                         ? (unsigned)(block.data[3] - '0')
                         : 9;
    return tn_arena_free(scratch) < BZIP2_FIXED + (size_t)level * BZIP2_PER_LEVEL;
}

static tn_rc decompress_bzip2(struct tn_bytes block, struct tn_arena *scratch, struct tn_buf *out,
                              size_t *needed, struct tn_err *err)
{
    bz_stream stream = {.bzalloc = bzip2_take, .bzfree = zlib_give, .opaque = scratch};
    stream.next_in = (char *)block.data; /* bzip2 has no const, but only reads it */
    stream.avail_in = (unsigned)block.size;
    stream.next_out = (char *)out->data;
    stream.avail_out = clamped(out->capacity);
    int code = BZ2_bzDecompressInit(&stream, 0, bzip2_small(block, scratch));
    if (code == BZ_OK) {
        code = BZ2_bzDecompress(&stream);
    }
    if (code == BZ_STREAM_END) {
        out->size = (size_t)stream.total_out_hi32 << 16 << 16 | stream.total_out_lo32;
        return TN_OK;
    }
    if (code == BZ_MEM_ERROR) {
        return scratch_short("bzip2", scratch, err);
    }
    if (code == BZ_OK && stream.avail_out == 0) {
        return grow("bzip2", out, 0, needed, err);
    }
    return tn_err_set(err, TN_CORRUPT, 0, "bzip2: %s at byte %u",
                      code == BZ_OK ? "block ends early" : "bad data", stream.total_in_lo32);
}

/* ---- snappy's raw form ---- */

struct snappy {
    const unsigned char *at;
    const unsigned char *end;
    unsigned char *data;
    size_t size; /* bytes written */
    size_t full; /* what the block promises, and data holds */
};

/* Little-endian, `count` bytes; the caller has looked that they are there. */
static uint32_t snappy_number(struct snappy *s, uint32_t count)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        value |= (uint32_t)*s->at++ << 8 * i;
    }
    return value;
}

static bool snappy_has(const struct snappy *s, size_t count)
{
    return (size_t)(s->end - s->at) >= count;
}

static bool snappy_length(struct snappy *s, uint32_t *length)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        if (!snappy_has(s, 1)) {
            return false;
        }
        unsigned char byte = *s->at++;
        if (shift == 28 && byte > 0x0f) {
            return false;
        }
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *length = value;
            return true;
        }
    }
    return false;
}

static bool snappy_literal(struct snappy *s, uint32_t tag)
{
    size_t size = tag >> 2;
    if (size >= 60) {
        uint32_t count = (uint32_t)size - 59;
        if (!snappy_has(s, count)) {
            return false;
        }
        size = snappy_number(s, count);
    }
    if (size == SIZE_MAX || !snappy_has(s, size + 1) || s->full - s->size < size + 1) {
        return false;
    }
    memcpy(s->data + s->size, s->at, size + 1);
    s->at += size + 1;
    s->size += size + 1;
    return true;
}

/* Byte by byte: a copy may read what it has just written. */
static bool snappy_copy(struct snappy *s, size_t offset, uint32_t size)
{
    if (offset == 0 || offset > s->size || s->full - s->size < size) {
        return false;
    }
    for (uint32_t i = 0; i < size; i++, s->size++) {
        s->data[s->size] = s->data[s->size - offset];
    }
    return true;
}

static bool snappy_element(struct snappy *s)
{
    static const uint32_t offset_size[] = {0, 1, 2, 4};
    uint32_t tag = *s->at++;
    uint32_t kind = tag & 3;
    if (kind == 0) {
        return snappy_literal(s, tag);
    }
    if (!snappy_has(s, offset_size[kind])) {
        return false;
    }
    uint32_t offset = snappy_number(s, offset_size[kind]);
    if (kind == 1) {
        return snappy_copy(s, offset | (tag & 0xe0) << 3, 4 + (tag >> 2 & 7));
    }
    return snappy_copy(s, offset, 1 + (tag >> 2));
}

static tn_rc decompress_snappy(struct tn_bytes block, struct tn_buf *out, size_t *needed,
                               struct tn_err *err)
{
    if (block.size < CRC_SIZE) {
        return tn_err_set(err, TN_CORRUPT, 0, "snappy: block of %zu bytes", block.size);
    }
    const unsigned char *end = block.data + block.size - CRC_SIZE;
    struct snappy s = {.at = block.data, .end = end, .data = out->data};
    uint32_t full = 0;
    if (!snappy_length(&s, &full)) {
        return tn_err_set(err, TN_CORRUPT, 0, "snappy: bad length");
    }
    if (full > out->capacity) {
        return grow("snappy", out, full, needed, err);
    }
    s.full = full;
    bool ok = true;
    while (ok && s.at < s.end) {
        ok = snappy_element(&s);
    }
    if (!ok || s.size != s.full) {
        return tn_err_set(err, TN_CORRUPT, 0, "snappy: bad data at byte %zu",
                          (size_t)(s.at - block.data));
    }
    if (tn_hash_crc32((struct tn_bytes){out->data, s.size}) != tn_load_u32_be(end)) {
        return tn_err_set(err, TN_CORRUPT, 0, "snappy: checksum differs");
    }
    out->size = s.size;
    return TN_OK;
}

static tn_rc decompress_null(struct tn_bytes block, struct tn_buf *out, size_t *needed,
                             struct tn_err *err)
{
    if (block.size > out->capacity) {
        return grow("null", out, block.size, needed, err);
    }
    if (block.size > 0) {
        memcpy(out->data, block.data, block.size);
    }
    out->size = block.size;
    return TN_OK;
}

static tn_rc decompress(struct tn_codec *codec, enum tn_codec_id id, struct tn_bytes block,
                        struct tn_arena *scratch, struct tn_buf *out, size_t *needed,
                        struct tn_err *err)
{
    switch (id) {
    case TN_CODEC_ID_NULL:
        return decompress_null(block, out, needed, err);
    case TN_CODEC_ID_DEFLATE:
        return decompress_deflate(block, scratch, out, needed, err);
    case TN_CODEC_ID_SNAPPY:
        return decompress_snappy(block, out, needed, err);
    case TN_CODEC_ID_ZSTANDARD:
        return decompress_zstandard(codec, block, out, needed, err);
    case TN_CODEC_ID_BZIP2:
        return decompress_bzip2(block, scratch, out, needed, err);
    }
    return tn_err_set(err, TN_UNSUPPORTED, 0, "codec %d", (int)id);
}

tn_rc tn_codec_decompress(struct tn_codec *codec, enum tn_codec_id id, struct tn_bytes block,
                          struct tn_arena *scratch, struct tn_buf *out, size_t *needed,
                          struct tn_err *err)
{
    if (block.size > INT32_MAX) {
        return tn_err_set(err, TN_CORRUPT, 0, "block of %zu bytes", block.size);
    }
    size_t mark = tn_arena_mark(scratch);
    out->size = 0;
    out->overflow = false;
    *needed = 0;
    tn_rc rc = decompress(codec, id, block, scratch, out, needed, err);
    tn_arena_reset(scratch, mark);
    return rc;
}
