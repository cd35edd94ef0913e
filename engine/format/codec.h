/* codec: the compressions that avro containers name, each over memory that the caller gives.
 *
 * One-shot only: a block is decoded in one call, so one context serves any number of readers in
 * turn. zstd contexts are static (ZSTD_initStaticCCtx), zlib and bzip2 allocate from the arena by
 * their own hooks, snappy's raw form is decoded by hand (its library is C++). Source: the
 * Avro specification's codecs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

enum tn_codec_id {
    TN_CODEC_ID_NULL,
    TN_CODEC_ID_DEFLATE,
    TN_CODEC_ID_SNAPPY,
    TN_CODEC_ID_ZSTANDARD,
    TN_CODEC_ID_BZIP2,
};

/* "null", "deflate", "snappy", "zstandard", "bzip2"; UNSUPPORTED names what it found. */
TN_MUST_USE tn_rc tn_codec_parse(struct tn_bytes name, enum tn_codec_id *id, struct tn_err *err);
const char *tn_codec_name(enum tn_codec_id id);

/* Contexts of one worker; owned by the arena they were made in. */
struct tn_codec {
    void *compress;   /* ZSTD_CCtx, or NULL when this worker only reads */
    void *decompress; /* ZSTD_DCtx */
    int level;        /* zstd level of `compress` */
    size_t block_max; /* bytes of the blocks that the window fits; a larger one compresses a little
                         worse */
};

/* What tn_codec_init will take, bytes. block_max 0: for reading only. */
size_t tn_codec_size(int level, size_t block_max);

/* Makes the contexts. INVALID when level and block_max don't fit the arena, with the bytes needed.
 */
TN_MUST_USE tn_rc tn_codec_init(struct tn_codec *codec, int level, size_t block_max,
                                struct tn_arena *arena, struct tn_err *err);

/* The most bytes that compressing `size` bytes may give. */
size_t tn_codec_bound(enum tn_codec_id id, size_t size);

/* Compresses (null, deflate, zstandard) one block and appends it; AGAIN when `out` has less room
 * than tn_codec_bound says or deflate's `scratch` less than 270 KB. */
TN_MUST_USE tn_rc tn_codec_compress(struct tn_codec *codec, enum tn_codec_id id,
                                    struct tn_bytes raw, struct tn_arena *scratch,
                                    struct tn_buf *out, struct tn_err *err);

/* Decompresses one block into `out` (from out->data, capacity counts). AGAIN when the result is
 * larger than `out` (nothing is promised of its contents; *needed is a size to try: twice the
 * capacity when unknown; 0 when it is `scratch` that is too small), CORRUPT with the reason.
 * `scratch` serves zlib (10 KB, or 43) and bzip2 (up to 3.7 MB, 2.4 MB when that is not there) and
 * is reset on the way out. */
TN_MUST_USE tn_rc tn_codec_decompress(struct tn_codec *codec, enum tn_codec_id id,
                                      struct tn_bytes block, struct tn_arena *scratch,
                                      struct tn_buf *out, size_t *needed, struct tn_err *err);
