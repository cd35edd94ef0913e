/* avro: object container files, and values by a plan.
 *
 *     "Obj" 1, metadata { avro.schema, avro.codec }, sync
 *     { count, size, block, sync }*
 *
 * avro-c parses and checks the schema text of a foreign file, inside a heap that is dropped whole
 * afterwards (it leaks on bad input); from what it found tarn makes a tree of its own, which
 * readers walk or compile further. avro-c itself never sees a value. Nothing here does I/O: callers
 * give bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/heap.h"
#include "format/codec.h"

/* First call of all: avro-c's and jansson's allocators are process-wide. The heap is only theirs.
 */
void tn_avro_use_heap(struct tn_heap *heap);

enum tn_avro_kind {
    TN_AVRO_NULL,
    TN_AVRO_BOOLEAN,
    TN_AVRO_INT,
    TN_AVRO_LONG,
    TN_AVRO_FLOAT,
    TN_AVRO_DOUBLE,
    TN_AVRO_BYTES,
    TN_AVRO_STRING,
    TN_AVRO_FIXED,
    TN_AVRO_ENUM,
    TN_AVRO_ARRAY,
    TN_AVRO_MAP,
    TN_AVRO_RECORD,
    TN_AVRO_UNION, /* of another shape than ["null", T]: can be skipped, not read */
};

enum tn_avro_logical {
    TN_AVRO_LOGICAL_NONE,
    TN_AVRO_LOGICAL_MILLIS, /* timestamp-millis, local-timestamp-millis, time-millis */
    TN_AVRO_LOGICAL_MICROS, /* ...-micros */
};

struct tn_avro_type {
    enum tn_avro_kind kind;
    bool nullable; /* ["null", T]: this describes T; the union's branch number stands before a value
                    */
    bool null_last; /* [T, "null"]: pypaimon accepts it, Java does not; branch 0 is the value */
    enum tn_avro_logical logical;
    uint32_t fixed_size;  /* FIXED, bytes */
    uint32_t child_count; /* RECORD: fields; UNION: branches; ARRAY, MAP: 1 */
    struct tn_avro_type *children;
    const char **names; /* RECORD: of the fields */
};

struct tn_avro_header {
    struct tn_bytes schema; /* the text, a view into the bytes that were parsed */
    enum tn_codec_id codec;
    unsigned char sync[16];
    uint32_t size; /* bytes: where the first block begins */
};

enum { TN_AVRO_HEADER_MAX = 256 * 1024, TN_AVRO_DEPTH_MAX = 16 };

/* Parses the head of a container. AGAIN when `bytes` ends too early (read more, up to
 * TN_AVRO_HEADER_MAX), CORRUPT with the byte. */
TN_MUST_USE tn_rc tn_avro_header_decode(struct tn_bytes bytes, struct tn_avro_header *header,
                                        struct tn_err *err);
void tn_avro_header_encode(struct tn_bytes schema, enum tn_codec_id codec,
                           const unsigned char sync[16], struct tn_buf *buf);

/* Parses a schema text into a tree in `arena`. CORRUPT: not a schema; UNSUPPORTED: too deep,
 * recursive. A schema that the heap is too small for is parsed in what `arena` has free. */
TN_MUST_USE tn_rc tn_avro_schema_parse(struct tn_bytes text, struct tn_arena *arena,
                                       struct tn_avro_type *root, struct tn_err *err);

/* A block's head: row count and byte size, both bounded by the caller. Returns its size in bytes in
 * *size, or AGAIN when more bytes are needed (at most 20). */
TN_MUST_USE tn_rc tn_avro_block_decode(struct tn_bytes bytes, int64_t *row_count,
                                       int64_t *block_size, uint32_t *size, struct tn_err *err);

/* ---- values ---- */

/* Reads forward over one decoded block; `failed` sticks, so a row is checked once, at its end. */
struct tn_avro_cursor {
    const unsigned char *at;
    const unsigned char *end;
    bool failed;
};

static inline uint64_t tn_avro_varint(struct tn_avro_cursor *c)
{
    if (c->at < c->end && *c->at < 0x80) {
        return *c->at++;
    }
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end) {
            c->failed = true;
            return 0;
        }
        unsigned char byte = *c->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    c->failed = true;
    return 0;
}

static inline int64_t tn_avro_long(struct tn_avro_cursor *c)
{
    uint64_t raw = tn_avro_varint(c);
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

/* Length and bytes; an empty view on failure. */
static inline struct tn_bytes tn_avro_bytes(struct tn_avro_cursor *c)
{
    int64_t size = tn_avro_long(c);
    if (c->failed || size < 0 || size > c->end - c->at) {
        c->failed = true;
        return (struct tn_bytes){c->end, 0};
    }
    struct tn_bytes bytes = {c->at, (size_t)size};
    c->at += size;
    return bytes;
}

/* The branch of a nullable value: true when a value follows. For other types true. */
static inline bool tn_avro_present(struct tn_avro_cursor *c, const struct tn_avro_type *type)
{
    if (!type->nullable) {
        return true;
    }
    uint64_t branch = tn_avro_varint(c);
    if (branch != 0 && branch != 2) {
        c->failed = true;
        return false;
    }
    return (branch == 2) != type->null_last;
}

/* Passes over one value. */
void tn_avro_skip(struct tn_avro_cursor *c, const struct tn_avro_type *type);

static inline unsigned char *tn_avro_put_varint(unsigned char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (unsigned char)value;
    return at;
}

static inline unsigned char *tn_avro_put_long(unsigned char *at, int64_t value)
{
    return tn_avro_put_varint(at, ((uint64_t)value << 1) ^ (0 - (uint64_t)(value < 0)));
}

void tn_avro_write_long(struct tn_buf *buf, int64_t value);
void tn_avro_write_bytes(struct tn_buf *buf, struct tn_bytes bytes); /* bytes and string alike */
