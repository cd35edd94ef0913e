#include "file/data_encode.h"

#include <string.h>

#include "format/avro.h"

enum encode_kind {
    ENCODE_BOOLEAN,
    ENCODE_I8,
    ENCODE_I16,
    ENCODE_I32,
    ENCODE_I64,
    ENCODE_F32,
    ENCODE_F64,
    ENCODE_DECIMAL64,
    ENCODE_DECIMAL128,
    ENCODE_MICROS,
    ENCODE_BYTES,
};

/* By slot: what to do, and the most bytes that takes with the branch number (of byte columns:
 * without the bytes). */
static const struct {
    uint8_t kind;
    uint8_t size_max;
} encodings[] = {
    [TN_SLOT_I8] = {ENCODE_I8, 1 + 2},
    [TN_SLOT_I16] = {ENCODE_I16, 1 + 3},
    [TN_SLOT_I32] = {ENCODE_I32, 1 + 5},
    [TN_SLOT_I64] = {ENCODE_I64, 1 + 10},
    [TN_SLOT_F32] = {ENCODE_F32, 1 + 4},
    [TN_SLOT_F64] = {ENCODE_F64, 1 + 8},
    [TN_SLOT_DECIMAL64] = {ENCODE_DECIMAL64, 1 + 9},
    [TN_SLOT_DECIMAL128] = {ENCODE_DECIMAL128, 1 + 17},
    [TN_SLOT_TIME96] = {ENCODE_MICROS, 1 + 10},
    [TN_SLOT_BYTES] = {ENCODE_BYTES, 1 + 5},
};

struct encode_op {
    uint8_t kind; /* enum encode_kind */
    bool nullable;
    uint32_t column;
    uint32_t offset;
    uint32_t start_offset;
};

struct tn_encode_plan {
    const struct tn_row_layout *layout;
    struct encode_op *ops; /* of the `_KEY_` fields, then of the columns */
    uint32_t key_count;
    uint32_t count;
    bool keyed;
    unsigned char *required; /* like the null bits of a row: 1 where NULL may not stand */
};

size_t tn_encode_max(const struct tn_row_layout *layout, size_t bytes)
{
    size_t size = 10 + 1 + bytes; /* sequence number and kind */
    for (uint32_t i = 0; i < layout->column_count; i++) {
        size += 2 * (size_t)encodings[layout->columns[i].slot].size_max;
    }
    return size;
}

static size_t rounded(size_t size)
{
    size_t align = _Alignof(max_align_t);
    return (size + align - 1) & ~(align - 1);
}

size_t tn_encode_plan_size(const struct tn_row_layout *layout)
{
    size_t count = layout->column_count;
    return rounded(sizeof(struct tn_encode_plan)) + rounded(2 * count * sizeof(struct encode_op)) +
           rounded(count / 8 + 1) + _Alignof(max_align_t);
}

static void plan_op(struct tn_encode_plan *plan, const struct tn_row_layout *layout,
                    uint32_t column, bool nullable)
{
    const struct tn_column *c = &layout->columns[column];
    bool boolean = c->type.kind == TN_TYPE_BOOLEAN;
    plan->ops[plan->count++] = (struct encode_op){
        .kind = boolean ? ENCODE_BOOLEAN : encodings[c->slot].kind,
        .nullable = nullable,
        .column = column,
        .offset = c->offset,
        .start_offset = c->start_offset,
    };
    if (!nullable) {
        unsigned char *bits = &plan->required[column / 8];
        *bits = (unsigned char)(*bits | 1U << (column % 8));
    }
}

tn_rc tn_encode_plan_make(const struct tn_row_layout *layout, struct tn_columns keys, bool thin,
                          struct tn_arena *arena, const struct tn_encode_plan **out,
                          struct tn_err *err)
{
    struct tn_encode_plan *plan = tn_arena_take(arena, sizeof *plan);
    size_t count = keys.count + (size_t)layout->column_count;
    struct encode_op *ops = tn_arena_take(arena, count * sizeof *ops);
    unsigned char *required = tn_arena_take(arena, layout->column_count / 8 + 1);
    if (!plan || !ops || !required) {
        return tn_err_set(err, TN_AGAIN, 0, "encode plan: the arena is full");
    }
    *plan = (struct tn_encode_plan){
        .layout = layout, .ops = ops, .required = required, .keyed = keys.count > 0};
    for (uint32_t i = 0; i < keys.count && !thin; i++) {
        plan_op(plan, layout, keys.index[i], false);
    }
    plan->key_count = plan->count;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        plan_op(plan, layout, i, layout->columns[i].type.nullable);
    }
    *out = plan;
    return TN_OK;
}

/* Big-endian, as few bytes as hold the sign. */
static inline unsigned char *put_decimal64(unsigned char *at, uint64_t value)
{
    uint64_t magnitude = value ^ (0 - (value >> 63));
    unsigned bits = magnitude == 0 ? 0 : 64 - (unsigned)__builtin_clzll(magnitude);
    unsigned size = bits / 8 + 1;
    *at++ = (unsigned char)(2 * size);
    for (unsigned i = size; i > 0; i--) {
        *at++ = (unsigned char)(value >> (8 * (i - 1)));
    }
    return at;
}

static unsigned char *put_decimal128(unsigned char *at, const unsigned char *slot)
{
    struct tn_i128 value = {tn_load_u64(slot), (int64_t)tn_load_u64(slot + 8)};
    uint32_t size = tn_i128_to_be(value, at + 1);
    *at = (unsigned char)(2 * size);
    return at + 1 + size;
}

static inline unsigned char *put_bytes(unsigned char *at, const struct encode_op *op,
                                       const unsigned char *row, uint32_t fixed_size)
{
    uint32_t start = op->start_offset ? tn_load_u32(row + op->start_offset) : fixed_size;
    uint32_t size = tn_load_u32(row + op->offset) - start;
    at = tn_avro_put_long(at, size);
    memcpy(at, row + start, size);
    return at + size;
}

/* False when the milliseconds have no microseconds of 64 bits. */
static inline bool micros_fit(int64_t millis)
{
    return millis <= INT64_MAX / 1000 - 1 && millis >= INT64_MIN / 1000 + 1;
}

static inline unsigned char *put_micros(unsigned char *at, const unsigned char *slot)
{
    int64_t millis = (int64_t)tn_load_u64(slot);
    uint32_t nanos = tn_load_u32(slot + 8);
    return micros_fit(millis) ? tn_avro_put_long(at, millis * 1000 + nanos / 1000) : NULL;
}

/* Writes the values of some ops; NULL when a timestamp can't be written. */
static unsigned char *encode(const struct tn_encode_plan *plan, uint32_t from, uint32_t to,
                             const unsigned char *row, unsigned char *at)
{
    for (uint32_t i = from; i < to && at; i++) {
        const struct encode_op *op = &plan->ops[i];
        const unsigned char *slot = row + op->offset;
        if (op->nullable) {
            bool null = (row[op->column / 8] >> (op->column % 8)) & 1;
            *at++ = null ? 0 : 2;
            if (null) {
                continue;
            }
        }
        switch ((enum encode_kind)op->kind) {
        case ENCODE_BOOLEAN:
            *at++ = slot[0];
            break;
        case ENCODE_I8:
            at = tn_avro_put_long(at, (int8_t)slot[0]);
            break;
        case ENCODE_I16:
            at = tn_avro_put_long(at, (int16_t)tn_load_u16(slot));
            break;
        case ENCODE_I32:
            at = tn_avro_put_long(at, (int32_t)tn_load_u32(slot));
            break;
        case ENCODE_I64:
            at = tn_avro_put_long(at, (int64_t)tn_load_u64(slot));
            break;
        case ENCODE_F32:
            memcpy(at, slot, 4);
            at += 4;
            break;
        case ENCODE_F64:
            memcpy(at, slot, 8);
            at += 8;
            break;
        case ENCODE_DECIMAL64:
            at = put_decimal64(at, tn_load_u64(slot));
            break;
        case ENCODE_DECIMAL128:
            at = put_decimal128(at, slot);
            break;
        case ENCODE_MICROS:
            at = put_micros(at, slot);
            break;
        case ENCODE_BYTES:
            at = put_bytes(at, op, row, plan->layout->fixed_size);
            break;
        }
    }
    return at;
}

static bool has_required(const struct tn_encode_plan *plan, const unsigned char *row)
{
    uint32_t size = (plan->layout->column_count + 7) / 8;
    unsigned bad = 0;
    for (uint32_t i = 0; i < size; i++) {
        bad |= row[i] & plan->required[i];
    }
    return bad == 0;
}

unsigned char *tn_encode_row(const struct tn_encode_plan *plan, const struct tn_kv *kv,
                             unsigned char *at)
{
    const unsigned char *row = kv->row.data;
    if (!has_required(plan, row)) {
        return NULL;
    }
    at = encode(plan, 0, plan->key_count, row, at);
    if (at && plan->keyed) {
        at = tn_avro_put_long(at, kv->sequence);
        *at++ = (unsigned char)(2 * (unsigned)kv->kind);
    }
    return at ? encode(plan, plan->key_count, plan->count, row, at) : NULL;
}

tn_rc tn_encode_refuse(const struct tn_encode_plan *plan, struct tn_row row, struct tn_err *err)
{
    const struct tn_row_layout *layout = plan->layout;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct tn_column *c = &layout->columns[i];
        bool null = tn_row_null(row, i);
        if (null && (plan->required[i / 8] >> (i % 8)) & 1) {
            return tn_err_set(err, TN_INVALID, 0, "column '%s' is NOT NULL, and a row has none",
                              c->name);
        }
        if (!null && c->slot == TN_SLOT_TIME96 &&
            !micros_fit((int64_t)tn_load_u64(row.data + c->offset))) {
            return tn_err_set(err, TN_INVALID, 0,
                              "column '%s': a timestamp is out of the range of microseconds",
                              c->name);
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "a row can't be written");
}
