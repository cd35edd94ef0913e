#include "format/binrow.h"

#include <inttypes.h>

#include "base/check.h"

enum {
    SLOT_SIZE = 8,
    ARITY_SIZE = 4,
    HEADER_BITS = 8, /* the row kind stands before the null bits */
    INLINE_MAX = 7,  /* bytes that fit a slot beside their length */
    INLINE_MARK = 0x80,
    TIME_SIZE = 8,
    DECIMAL_SIZE = 16,
    NANOS_PER_MILLI = 1000000,
};

static const unsigned char zeroes[DECIMAL_SIZE];
static const unsigned char empty_row[ARITY_SIZE + SLOT_SIZE];
const struct tn_bytes tn_binrow_empty = {empty_row, sizeof empty_row};

/* Header and null bits, in bytes. */
static uint64_t bits_size(uint32_t arity)
{
    return ((uint64_t)arity + 63 + HEADER_BITS) / 64 * 8;
}

static uint64_t slot_offset(uint32_t arity, uint32_t field)
{
    return bits_size(arity) + (uint64_t)field * SLOT_SIZE;
}

/* ---- writing ---- */

static void append_zeroes(struct tn_buf *buf, uint64_t count)
{
    while (count > 0 && !buf->overflow) {
        size_t part = count < sizeof zeroes ? (size_t)count : sizeof zeroes;
        tn_buf_append(buf, zeroes, part);
        count -= part;
    }
}

void tn_binrow_begin(struct tn_binrow_writer *writer, struct tn_buf *buf, uint32_t arity,
                     bool prefix)
{
    if (prefix) {
        unsigned char head[ARITY_SIZE];
        tn_store_u32_be(head, arity);
        tn_buf_append(buf, head, sizeof head);
    }
    *writer = (struct tn_binrow_writer){.buf = buf, .start = buf->size, .arity = arity};
    append_zeroes(buf, slot_offset(arity, arity));
}

/* The slot of a field, or NULL when the buffer was too small for the row. */
static unsigned char *slot_of(const struct tn_binrow_writer *writer, uint32_t field)
{
    TN_CHECK(field < writer->arity);
    if (writer->buf->overflow) {
        return NULL;
    }
    return writer->buf->data + writer->start + (size_t)slot_offset(writer->arity, field);
}

void tn_binrow_null(struct tn_binrow_writer *writer, uint32_t field)
{
    if (slot_of(writer, field)) {
        uint32_t bit = field + HEADER_BITS;
        writer->buf->data[writer->start + bit / 8] |= (unsigned char)(1u << bit % 8);
    }
}

void tn_binrow_fixed(struct tn_binrow_writer *writer, uint32_t field, uint64_t bits, uint32_t width)
{
    TN_CHECK(width == 1 || width == 2 || width == 4 || width == 8);
    unsigned char *slot = slot_of(writer, field);
    if (slot) {
        /* No sign extension: what is left of the slot must be zero, for the hash is taken of it. */
        tn_store_u64(slot, width == 8 ? bits : bits & ((1ull << 8 * width) - 1));
    }
}

/* Appends `bytes`, zeroes up to `size`, and points the slot at them. `low` is the slot's other
 * half. */
static void append_variable(struct tn_binrow_writer *writer, uint32_t field, uint32_t low,
                            struct tn_bytes bytes, uint64_t size)
{
    struct tn_buf *buf = writer->buf;
    size_t offset = buf->size - writer->start;
    tn_buf_append(buf, bytes.data, bytes.size);
    append_zeroes(buf, size - bytes.size);
    unsigned char *slot = slot_of(writer, field);
    if (!slot) {
        return;
    }
    if (offset > UINT32_MAX) {
        buf->overflow = true;
        return;
    }
    tn_store_u32(slot, low);
    tn_store_u32(slot + 4, (uint32_t)offset);
}

void tn_binrow_bytes(struct tn_binrow_writer *writer, uint32_t field, struct tn_bytes bytes)
{
    if (bytes.size > INLINE_MAX) {
        if (bytes.size > INT32_MAX) {
            writer->buf->overflow = true;
            return;
        }
        append_variable(writer, field, (uint32_t)bytes.size, bytes,
                        ((uint64_t)bytes.size + 7) & ~7ull);
        return;
    }
    unsigned char *slot = slot_of(writer, field);
    if (slot) {
        memset(slot, 0, SLOT_SIZE);
        if (bytes.size > 0) {
            memcpy(slot, bytes.data, bytes.size);
        }
        slot[INLINE_MAX] = (unsigned char)(INLINE_MARK | bytes.size);
    }
}

void tn_binrow_time(struct tn_binrow_writer *writer, uint32_t field, bool null, int64_t millis,
                    uint32_t nanos)
{
    unsigned char value[TIME_SIZE] = {0};
    TN_CHECK(nanos < NANOS_PER_MILLI);
    if (null) {
        tn_binrow_null(writer, field);
        nanos = 0;
    } else {
        tn_store_u64(value, (uint64_t)millis);
    }
    append_variable(writer, field, nanos, (struct tn_bytes){value, sizeof value}, TIME_SIZE);
}

void tn_binrow_decimal(struct tn_binrow_writer *writer, uint32_t field, bool null,
                       struct tn_bytes big_endian)
{
    if (null) {
        tn_binrow_null(writer, field);
        append_variable(writer, field, 0, (struct tn_bytes){zeroes, 0}, DECIMAL_SIZE);
        return;
    }
    TN_CHECK(big_endian.size >= 1 && big_endian.size <= DECIMAL_SIZE);
    append_variable(writer, field, (uint32_t)big_endian.size, big_endian, DECIMAL_SIZE);
}

/* ---- reading ---- */

tn_rc tn_binrow_open(struct tn_bytes serialized, uint32_t arity, struct tn_binrow *row,
                     struct tn_err *err)
{
    if (serialized.size < ARITY_SIZE) {
        return tn_err_set(err, TN_CORRUPT, 0, "row of %zu bytes has no arity", serialized.size);
    }
    uint32_t found = tn_load_u32_be(serialized.data);
    if (found != arity) {
        return tn_err_set(err, TN_CORRUPT, 0, "row has %" PRIu32 " fields, %" PRIu32 " expected",
                          found, arity);
    }
    uint64_t least = ARITY_SIZE + slot_offset(arity, arity);
    if (serialized.size < least) {
        return tn_err_set(err, TN_CORRUPT, 0,
                          "row of %" PRIu32 " fields has %zu bytes, at least %" PRIu64 " expected",
                          arity, serialized.size, least);
    }
    *row = (struct tn_binrow){
        .bytes = {serialized.data + ARITY_SIZE, serialized.size - ARITY_SIZE},
        .arity = arity,
    };
    return TN_OK;
}

bool tn_binrow_is_null(const struct tn_binrow *row, uint32_t field)
{
    TN_CHECK(field < row->arity);
    uint32_t bit = field + HEADER_BITS;
    return (row->bytes.data[bit / 8] >> bit % 8 & 1) != 0;
}

static const unsigned char *slot_at(const struct tn_binrow *row, uint32_t field)
{
    TN_CHECK(field < row->arity);
    return row->bytes.data + (size_t)slot_offset(row->arity, field);
}

uint64_t tn_binrow_slot(const struct tn_binrow *row, uint32_t field)
{
    return tn_load_u64(slot_at(row, field));
}

static bool variable_at(const struct tn_binrow *row, uint32_t offset, uint32_t size,
                        struct tn_bytes *bytes)
{
    if (offset > row->bytes.size || size > row->bytes.size - offset) {
        return false;
    }
    *bytes = (struct tn_bytes){row->bytes.data + offset, size};
    return true;
}

bool tn_binrow_get_bytes(const struct tn_binrow *row, uint32_t field, struct tn_bytes *bytes)
{
    const unsigned char *slot = slot_at(row, field);
    if (slot[INLINE_MAX] & INLINE_MARK) {
        uint32_t size = slot[INLINE_MAX] & ~(uint32_t)INLINE_MARK;
        if (size > INLINE_MAX) {
            return false;
        }
        *bytes = (struct tn_bytes){slot, size};
        return true;
    }
    return variable_at(row, tn_load_u32(slot + 4), tn_load_u32(slot), bytes);
}

bool tn_binrow_get_time(const struct tn_binrow *row, uint32_t field, int64_t *millis,
                        uint32_t *nanos)
{
    const unsigned char *slot = slot_at(row, field);
    struct tn_bytes value;
    if (tn_load_u32(slot) >= NANOS_PER_MILLI ||
        !variable_at(row, tn_load_u32(slot + 4), TIME_SIZE, &value)) {
        return false;
    }
    *nanos = tn_load_u32(slot);
    *millis = (int64_t)tn_load_u64(value.data);
    return true;
}

bool tn_binrow_get_decimal(const struct tn_binrow *row, uint32_t field, struct tn_bytes *big_endian)
{
    const unsigned char *slot = slot_at(row, field);
    uint32_t size = tn_load_u32(slot);
    return size >= 1 && size <= DECIMAL_SIZE &&
           variable_at(row, tn_load_u32(slot + 4), size, big_endian);
}
