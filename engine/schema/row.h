/* row: the packed row, the one shape of a row in memory.
 *
 *     null bits          ceil(n / 8) bytes, column i is bit i % 8 of byte i / 8, 1 = NULL
 *     fixed part         one slot a column, in column order, natural width, no padding:
 *                        BOOLEAN TINYINT 1, SMALLINT 2, INT FLOAT DATE TIME 4, BIGINT DOUBLE 8,
 *                        DECIMAL 8 (precision <= 18) or 16, TIMESTAMP 8 (ms) or 12 (ms, nanos; > 3
 *                        digits), bytes 4 = where its bytes end in the row
 *     variable part      the bytes of all byte columns, in column order
 *
 * A byte column starts where the one before it ends, so any field is found in one step and nothing
 * is padded: the sensor row of the bench takes 89 bytes. All numbers are little-endian. A NULL slot
 * is zero (a byte column's end repeats the one before), so equal rows have equal bytes.
 *
 * Columns of a layout are those of a table's schema, or the part of them that a reader asked for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "schema/types.h"
#include "schema/value.h"

enum tn_row_kind {
    TN_ROW_INSERT = 0,        /* +I */
    TN_ROW_UPDATE_BEFORE = 1, /* -U */
    TN_ROW_UPDATE_AFTER = 2,  /* +U */
    TN_ROW_DELETE = 3,        /* -D */
};

static inline bool tn_row_kind_retracts(enum tn_row_kind kind)
{
    return kind == TN_ROW_UPDATE_BEFORE || kind == TN_ROW_DELETE;
}

const char *tn_row_kind_text(enum tn_row_kind kind); /* "+I" */
/* False when the text is none of the four. */
bool tn_row_kind_parse(struct tn_bytes text, enum tn_row_kind *kind);

/* What a slot holds: what the loops over columns switch on. */
enum tn_slot {
    TN_SLOT_I8,
    TN_SLOT_I16,
    TN_SLOT_I32,
    TN_SLOT_I64, /* also a TIMESTAMP of at most 3 digits: ms */
    TN_SLOT_F32,
    TN_SLOT_F64,
    TN_SLOT_DECIMAL64,  /* unscaled, 8 bytes */
    TN_SLOT_DECIMAL128, /* unscaled, 16 bytes: low word, high word */
    TN_SLOT_TIME96,     /* ms (8 bytes), then nanos in that ms (4) */
    TN_SLOT_BYTES,
};

enum { TN_ROW_COLUMNS_MAX = 32767 }; /* guess: far above any table, and offsets stay 32 bits */

struct tn_column {
    struct tn_type type;
    const char *name;
    uint32_t offset;       /* of the slot, from the start of the row */
    uint32_t start_offset; /* byte columns: of the slot that says where the bytes start, or 0 when
                              they start at the end of the fixed part */
    uint8_t width;         /* of the slot, bytes */
    uint8_t slot;          /* enum tn_slot */
};

/* Owned by the arena it was made in; constant afterwards, so threads share it. */
struct tn_row_layout {
    struct tn_column *columns;
    uint32_t column_count;
    uint32_t fixed_size; /* null bits and slots: where the variable part starts */
};

/* `names[i]` and `types[i]` for `count` columns; the names are kept by pointer. UNSUPPORTED for a
 * nested type, INVALID for too many columns. */
TN_MUST_USE tn_rc tn_row_layout_init(struct tn_row_layout *layout, const char *const *names,
                                     const struct tn_type *types, uint32_t count,
                                     struct tn_arena *arena, struct tn_err *err);

/* The index of a column, or -1. */
int32_t tn_row_layout_find(const struct tn_row_layout *layout, struct tn_bytes name);

struct tn_row {
    const unsigned char *data;
    uint32_t size; /* bytes */
};

static inline bool tn_row_null(struct tn_row row, uint32_t column)
{
    return (row.data[column / 8] >> (column % 8)) & 1;
}

/* For a column that holds bytes and is not NULL (empty when it is). */
static inline struct tn_bytes tn_row_bytes(const struct tn_row_layout *layout, struct tn_row row,
                                           uint32_t column)
{
    const struct tn_column *c = &layout->columns[column];
    uint32_t start = c->start_offset ? tn_load_u32(row.data + c->start_offset) : layout->fixed_size;
    uint32_t end = tn_load_u32(row.data + c->offset);
    return (struct tn_bytes){row.data + start, end - start};
}

void tn_row_get(const struct tn_row_layout *layout, struct tn_row row, uint32_t column,
                struct tn_value *value);

/* The bits that a row has for a number: one NaN only, so that equal rows have equal bytes. Java:
 * Double.doubleToLongBits, Float.floatToIntBits. */
static inline uint64_t tn_row_double_bits(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return value == value ? bits : UINT64_C(0x7ff8000000000000);
}

static inline uint32_t tn_row_float_bits(double value)
{
    float narrow = (float)value;
    uint32_t bits = 0;
    memcpy(&bits, &narrow, sizeof bits);
    return value == value ? bits : UINT32_C(0x7fc00000);
}

static inline double tn_row_double_of_bits(uint64_t bits)
{
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double tn_row_float_of_bits(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Writes a value that is not NULL into its slot, at `at`. A byte column's slot is an end, which
 * only its row knows: there nothing is written. */
static inline void tn_row_store(unsigned char *at, enum tn_slot slot, const struct tn_value *value)
{
    switch (slot) {
    case TN_SLOT_I8:
        at[0] = (unsigned char)value->as.i64;
        break;
    case TN_SLOT_I16:
        tn_store_u16(at, (uint16_t)value->as.i64);
        break;
    case TN_SLOT_I32:
        tn_store_u32(at, (uint32_t)value->as.i64);
        break;
    case TN_SLOT_I64:
        tn_store_u64(at, (uint64_t)value->as.i64);
        break;
    case TN_SLOT_F32:
        tn_store_u32(at, tn_row_float_bits(value->as.f64));
        break;
    case TN_SLOT_F64:
        tn_store_u64(at, tn_row_double_bits(value->as.f64));
        break;
    case TN_SLOT_DECIMAL64:
        tn_store_u64(at, value->as.i128.low);
        break;
    case TN_SLOT_DECIMAL128:
        tn_store_u64(at, value->as.i128.low);
        tn_store_u64(at + 8, (uint64_t)value->as.i128.high);
        break;
    case TN_SLOT_TIME96:
        tn_store_u64(at, (uint64_t)value->as.i64);
        tn_store_u32(at + 8, value->nanos);
        break;
    case TN_SLOT_BYTES:
        break;
    }
}

/* The size that tn_row_pack will write. */
uint32_t tn_row_packed_size(const struct tn_row_layout *layout, const struct tn_value *values);

/* Packs one value a column; returns the size. `data` holds tn_row_packed_size bytes. */
uint32_t tn_row_pack(const struct tn_row_layout *layout, const struct tn_value *values,
                     unsigned char *data);

/* False where the bytes are no row of this layout, as tn_row_pack makes it (debug and fuzz). */
bool tn_row_valid(const struct tn_row_layout *layout, struct tn_row row);

/* Some columns, in an order: a key, a partition, a bucket key, sequence fields. */
struct tn_columns {
    const uint32_t *index; /* into the layout */
    uint32_t count;
};

static inline bool tn_columns_have(struct tn_columns columns, uint32_t column)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        if (columns.index[i] == column) {
            return true;
        }
    }
    return false;
}

/* Column by column, NULL first: <0, 0, >0. Both rows have the same layout. */
int tn_row_compare(const struct tn_row_layout *layout, struct tn_columns columns, struct tn_row a,
                   struct tn_row b);

/* The same against values in the columns' order. */
int tn_row_compare_values(const struct tn_row_layout *layout, struct tn_columns columns,
                          struct tn_row row, const struct tn_value *values);

/* The first 8 bytes of an order-preserving encoding of the columns: a < b by prefix means a < b by
 * tn_row_compare; equal prefixes decide nothing. */
uint64_t tn_row_prefix(const struct tn_row_layout *layout, struct tn_columns columns,
                       struct tn_row row);

/* The same encoding's bytes from 8 * `word` on: word 0 is the prefix. Where all words before are
 * equal, a < b by this one means a < b. For sorting by a few words before whole rows are compared.
 */
uint64_t tn_row_key_word(const struct tn_row_layout *layout, struct tn_columns columns,
                         struct tn_row row, uint32_t word);

/* True when, for these columns, equal prefixes mean equal keys: no byte column among them, and the
 * slots, with one byte more for each nullable one, are 8 bytes at most. */
bool tn_row_prefix_decides(const struct tn_row_layout *layout, struct tn_columns columns);

uint64_t tn_row_hash(const struct tn_row_layout *layout, struct tn_columns columns,
                     struct tn_row row); /* for tables in memory: equal keys, equal hash */

/* The BinaryRow of some columns. With `arity` the 4-byte prefix of manifests stands before it,
 * without it these are the bytes that the bucket hash takes. `buf` overflows when it is full. */
void tn_row_to_binary(const struct tn_row_layout *layout, struct tn_columns columns,
                      struct tn_row row, bool arity, struct tn_buf *buf);

/* One value a column from a BinaryRow with arity prefix, of `count` columns with these types. Bytes
 * point into `binary`. CORRUPT when it is no such row. */
TN_MUST_USE tn_rc tn_binary_to_values(struct tn_bytes binary, const struct tn_type *types,
                                      uint32_t count, struct tn_value *values, struct tn_err *err);

/* The BinaryRow (with arity prefix) of values. */
void tn_values_to_binary(const struct tn_type *types, const struct tn_value *values, uint32_t count,
                         struct tn_buf *buf);

/* Appends the whole row as canonical JSON, an object in column order. `columns` NULL = all. */
void tn_row_format_json(const struct tn_row_layout *layout, const struct tn_columns *columns,
                        struct tn_row row, struct tn_buf *buf);

/* |murmur(BinaryRow(columns)) % bucket_count|. Source: Paimon, DefaultBucketFunction. `scratch`
 * takes the BinaryRow. */
TN_MUST_USE tn_rc tn_row_bucket(const struct tn_row_layout *layout, struct tn_columns columns,
                                struct tn_row row, int32_t bucket_count, struct tn_buf *scratch,
                                int32_t *bucket, struct tn_err *err);
