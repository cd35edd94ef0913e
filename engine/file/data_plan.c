#include <string.h>

#include "file/data_plan_private.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { VALUE_SHOWN_MAX = 120 }; /* bytes of a value that an error shows */

const unsigned char tn_data_nothing[TN_DATA_SLACK];

/* ---- values ---- */

static const int64_t powers_of_ten[] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
};

static inline int64_t number(struct tn_avro_cursor *c, int64_t min, int64_t max)
{
    int64_t value = tn_avro_long(c);
    if (value < min || value > max) {
        c->failed = true;
    }
    return value;
}

static bool decode_decimal64(struct tn_bytes bytes, const struct tn_decode_op *op,
                             unsigned char *slot)
{
    struct tn_i128 wide;
    if (bytes.size == 0 || !tn_i128_from_be(bytes, &wide)) {
        return false;
    }
    int64_t value = (int64_t)wide.low;
    int64_t bound = powers_of_ten[op->precision];
    tn_store_u64(slot, (uint64_t)value);
    return wide.high == value >> 63 && value < bound && value > -bound;
}

static bool decode_decimal128(struct tn_bytes bytes, const struct tn_decode_op *op,
                              unsigned char *slot)
{
    struct tn_i128 value;
    if (bytes.size == 0 || !tn_i128_from_be(bytes, &value) || !tn_i128_fits(value, op->precision)) {
        return false;
    }
    tn_store_u64(slot, value.low);
    tn_store_u64(slot + 8, (uint64_t)value.high);
    return true;
}

static inline uint64_t take_u64(struct tn_avro_cursor *c)
{
    if (c->end - c->at < 8) {
        c->failed = true;
        return 0;
    }
    c->at += 8;
    return tn_load_u64(c->at - 8);
}

static inline uint32_t take_u32(struct tn_avro_cursor *c)
{
    if (c->end - c->at < 4) {
        c->failed = true;
        return 0;
    }
    c->at += 4;
    return tn_load_u32(c->at - 4);
}

static inline void decode_f64(struct tn_avro_cursor *c, unsigned char *slot)
{
    tn_store_u64(slot, tn_row_double_bits(tn_row_double_of_bits(take_u64(c))));
}

static inline void decode_f32(struct tn_avro_cursor *c, unsigned char *slot)
{
    tn_store_u32(slot, tn_row_float_bits(tn_row_float_of_bits(take_u32(c))));
}

static inline void split_micros(int64_t micros, int64_t *millis, uint32_t *nanos)
{
    int64_t rest = micros % 1000;
    rest += rest < 0 ? 1000 : 0;
    *millis = (micros - rest) / 1000;
    *nanos = (uint32_t)rest * 1000;
}

static inline void decode_micros(struct tn_avro_cursor *c, unsigned char *slot, bool wide)
{
    int64_t micros = number(c, INT64_MIN + 1000, INT64_MAX);
    int64_t millis = 0;
    uint32_t nanos = 0;
    split_micros(c->failed ? 0 : micros, &millis, &nanos);
    tn_store_u64(slot, (uint64_t)millis);
    if (wide) {
        tn_store_u32(slot + 8, nanos);
    }
}

static inline void skip(struct tn_avro_cursor *c, uint32_t size)
{
    if (size > (size_t)(c->end - c->at)) {
        c->failed = true;
    } else {
        c->at += size;
    }
}

/* On a copy, so that the cursor itself needs no place in memory. */
static inline void pass_other(struct tn_avro_cursor *c, const struct tn_avro_type *type)
{
    struct tn_avro_cursor own = *c;
    tn_avro_skip(&own, type);
    *c = own;
}

/* The cursor is in registers where this is inlined, and it is in the loop over a record. */
static ALWAYS_INLINE void decode_value(const struct tn_data_plan *plan,
                                       const struct tn_decode_op *op, struct tn_avro_cursor *c,
                                       unsigned char *row, struct tn_data_record *record)
{
    unsigned char *slot = row + op->offset;
    switch ((enum tn_decode_kind)op->kind) {
    case DECODE_BOOLEAN:
        if (c->at == c->end || *c->at > 1) {
            c->failed = true;
        } else {
            *slot = *c->at++;
        }
        break;
    case DECODE_I8:
        *slot = (unsigned char)number(c, INT8_MIN, INT8_MAX);
        break;
    case DECODE_I16:
        tn_store_u16(slot, (uint16_t)number(c, INT16_MIN, INT16_MAX));
        break;
    case DECODE_I32:
        tn_store_u32(slot, (uint32_t)number(c, INT32_MIN, INT32_MAX));
        break;
    case DECODE_I64:
        tn_store_u64(slot, (uint64_t)tn_avro_long(c));
        break;
    case DECODE_F32:
        decode_f32(c, slot);
        break;
    case DECODE_F64:
        decode_f64(c, slot);
        break;
    case DECODE_DECIMAL64:
        c->failed = !decode_decimal64(tn_avro_bytes(c), op, slot) || c->failed;
        break;
    case DECODE_DECIMAL128:
        c->failed = !decode_decimal128(tn_avro_bytes(c), op, slot) || c->failed;
        break;
    case DECODE_MILLIS_TO_96:
        tn_store_u64(slot, (uint64_t)tn_avro_long(c));
        break;
    case DECODE_MICROS_TO_64:
        decode_micros(c, slot, false);
        break;
    case DECODE_MICROS_TO_96:
        decode_micros(c, slot, true);
        break;
    case DECODE_BYTES:
        plan->views[op->offset] = tn_avro_bytes(c);
        break;
    case DECODE_SEQUENCE:
        record->sequence = tn_avro_long(c);
        break;
    case DECODE_KIND:
        record->kind = number(c, TN_ROW_INSERT, TN_ROW_DELETE);
        break;
    case SKIP_NUMBER:
        (void)tn_avro_varint(c);
        break;
    case SKIP_BYTES:
        (void)tn_avro_bytes(c);
        break;
    case SKIP_FIXED:
        skip(c, op->offset);
        break;
    case SKIP_OTHER:
        pass_other(c, op->type);
        break;
    case DECODE_CAST: /* decode_cast */
    case DECODE_NONE:
        break;
    }
}

static void place_view(const struct tn_data_plan *plan, const struct tn_cast_op *op,
                       struct tn_bytes bytes, uint32_t pad_size)
{
    if (op->to->slot == TN_SLOT_BYTES) {
        plan->views[op->view] = bytes;
        if (plan->pads) {
            plan->pads[op->view].size = pad_size;
        }
    }
}

static void decode_cast(const struct tn_data_plan *plan, struct tn_cast_op *op,
                        struct tn_avro_cursor *c, unsigned char *row, struct tn_data_record *record)
{
    decode_value(plan, &op->source, c, op->row, record);
    if (c->failed) {
        return;
    }
    tn_row_get(&op->from, (struct tn_row){op->row, op->from.fixed_size}, 0, &op->value);
    if (op->source.kind == DECODE_BYTES) {
        op->value.as.bytes = plan->views[plan->view_count];
    }
    if (!tn_cast_apply(&op->cast, &op->value, &op->result)) {
        record->bad_cast = record->bad_cast ? record->bad_cast : op;
        op->result.value.null = true;
    }
    if (op->result.value.null) { /* or a DECIMAL that doesn't fit */
        row[op->null_byte] = (unsigned char)(row[op->null_byte] | op->null_bit);
        place_view(plan, op, (struct tn_bytes){tn_data_nothing, 0}, 0);
    } else {
        tn_row_store(row + op->to->offset, (enum tn_slot)op->to->slot, &op->result.value);
        place_view(plan, op, op->result.value.as.bytes, op->result.pad_size);
    }
}

/* The branch number before a value: true when it is null. */
static inline bool decode_null(const struct tn_decode_op *op, struct tn_avro_cursor *c)
{
    if (c->at == c->end || (*c->at & ~2U) != 0) {
        c->failed = true;
        return true;
    }
    return *c->at++ == op->branch;
}

static ALWAYS_INLINE void decode_field(const struct tn_data_plan *plan,
                                       const struct tn_decode_op *op, struct tn_avro_cursor *c,
                                       unsigned char *row, struct tn_data_record *record)
{
    if (op->branch != NO_BRANCH && decode_null(op, c)) {
        row[op->null_byte] = (unsigned char)(row[op->null_byte] | op->null_bit);
        const struct tn_bytes empty = {tn_data_nothing, 0};
        if (op->kind == DECODE_BYTES) {
            plan->views[op->offset] = empty;
        } else if (op->kind == DECODE_CAST) {
            place_view(plan, &plan->casts[op->offset], empty, 0);
        }
    } else if (op->kind == DECODE_CAST) {
        struct tn_avro_cursor own = *c;
        decode_cast(plan, &plan->casts[op->offset], &own, row, record);
        *c = own;
    } else {
        decode_value(plan, op, c, row, record);
    }
}

static uint64_t row_size(const struct tn_data_plan *plan)
{
    uint64_t size = plan->fixed_size;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        size += plan->views[i].size + (plan->pads ? plan->pads[i].size : 0);
    }
    return size;
}

uint64_t tn_data_plan_decode(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor,
                             unsigned char *row, struct tn_data_record *record)
{
    struct tn_avro_cursor c = *cursor;
    memcpy(row, plan->blank, plan->fixed_size);
    const struct tn_decode_op *end = plan->ops + plan->op_count;
    for (const struct tn_decode_op *op = plan->ops; op < end; op++) {
        decode_field(plan, op, &c, row, record);
    }
    *cursor = c;
    return row_size(plan);
}

/* ---- records that nobody wants but for their keys ---- */

/* By its bytes' top bits, of which the last has none. */
static inline void pass_number(struct tn_avro_cursor *c)
{
    uint64_t ends = ~tn_load_u64(c->at) & UINT64_C(0x8080808080808080);
    if (ends == 0) {
        (void)tn_avro_varint(c);
    } else {
        skip(c, (uint32_t)__builtin_ctzll(ends) / 8 + 1);
    }
}

static inline void pass_value(const struct tn_decode_op *op, struct tn_avro_cursor *c)
{
    if (op->passed >= 0) {
        skip(c, (uint32_t)op->passed);
    } else if (op->passed == PASS_NUMBER) {
        pass_number(c);
    } else if (op->passed == PASS_BYTES) {
        (void)tn_avro_bytes(c);
    } else if (op->passed == PASS_FIXED) {
        skip(c, op->offset);
    } else {
        pass_other(c, op->type);
    }
}

static inline void pass_field(const struct tn_decode_op *op, struct tn_avro_cursor *c)
{
    if (op->branch == NO_BRANCH || !decode_null(op, c)) {
        pass_value(op, c);
    }
}

static inline void pass_fields(const struct tn_data_plan *plan, uint32_t from,
                               struct tn_avro_cursor *c)
{
    for (uint32_t i = from; i < plan->op_count; i++) {
        pass_field(&plan->ops[i], c);
    }
}

uint64_t tn_data_plan_decode_key(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor,
                                 unsigned char *row, struct tn_data_record *record)
{
    struct tn_avro_cursor c = *cursor;
    memcpy(row, plan->blank, plan->fixed_size);
    for (uint32_t i = 0; i < plan->view_count; i++) {
        plan->views[i] = (struct tn_bytes){tn_data_nothing, 0};
        if (plan->pads) {
            plan->pads[i].size = 0;
        }
    }
    for (uint32_t i = 0; i < plan->key_end; i++) {
        const struct tn_decode_op *op = &plan->ops[i];
        if (op->key) {
            decode_field(plan, op, &c, row, record);
        } else {
            pass_field(op, &c);
        }
    }
    *cursor = c;
    return row_size(plan);
}

void tn_data_plan_pass(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor)
{
    struct tn_avro_cursor c = *cursor;
    pass_fields(plan, plan->key_end, &c);
    *cursor = c;
}

/* ---- keys that are compared where they lie ---- */

static inline int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static inline int compare_bytes(const struct tn_data_plan *plan, struct tn_bytes bytes,
                                struct tn_row key, uint32_t view)
{
    uint32_t start =
        view > 0 ? tn_load_u32(key.data + plan->view_offsets[view - 1]) : plan->fixed_size;
    uint32_t size = tn_load_u32(key.data + plan->view_offsets[view]) - start;
    size_t both = bytes.size < size ? bytes.size : size;
    int order = memcmp(bytes.data, key.data + start, both);
    return order ? order : compare_numbers((int64_t)bytes.size, (int64_t)size);
}

/* The value under the cursor, of a kind that tn_data_plan_comparable names, with the key's. */
static inline int compare_field(const struct tn_data_plan *plan, const struct tn_decode_op *op,
                                struct tn_avro_cursor *c, struct tn_row key)
{
    const unsigned char *slot = key.data + op->offset;
    int order = 0;
    switch (op->kind) {
    case DECODE_I8:
        order = compare_numbers(number(c, INT8_MIN, INT8_MAX), (int8_t)*slot);
        break;
    case DECODE_I16:
        order = compare_numbers(number(c, INT16_MIN, INT16_MAX), (int16_t)tn_load_u16(slot));
        break;
    case DECODE_I32:
        order = compare_numbers(number(c, INT32_MIN, INT32_MAX), (int32_t)tn_load_u32(slot));
        break;
    case DECODE_I64:
        order = compare_numbers(tn_avro_long(c), (int64_t)tn_load_u64(slot));
        break;
    default:
        order = compare_bytes(plan, tn_avro_bytes(c), key, op->offset);
        break;
    }
    return key.data[op->null_byte] & op->null_bit ? 1 : order; /* NULL is before all values */
}

int tn_data_plan_pass_below(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor,
                            struct tn_row key)
{
    struct tn_avro_cursor c = *cursor;
    int order = 0;
    for (uint32_t i = 0; i < plan->key_end; i++) {
        const struct tn_decode_op *op = &plan->ops[i];
        if (op->key && order == 0) {
            order = compare_field(plan, op, &c, key);
        } else {
            pass_field(op, &c);
        }
    }
    if (order < 0) {
        pass_fields(plan, plan->key_end, &c);
        *cursor = c;
    }
    cursor->failed = c.failed;
    return order;
}

tn_rc tn_data_plan_refuse(const struct tn_data_record *record, struct tn_err *err)
{
    const struct tn_cast_op *op = record->bad_cast;
    char texts[2][TN_TYPE_TEXT_SIZE];
    char memory[VALUE_SHOWN_MAX];
    struct tn_buf value;
    tn_buf_init(&value, memory, sizeof memory);
    struct tn_value shown = op->value;
    if (op->source.kind == DECODE_BYTES && shown.as.bytes.size > VALUE_SHOWN_MAX / 2) {
        shown.as.bytes.size = VALUE_SHOWN_MAX / 2; /* its hex takes twice that */
    }
    tn_value_format_text(&op->cast.from, &shown, &value);
    return tn_err_set(err, TN_CORRUPT, 0, "column '%s': '%.*s' of an older %s is no %s",
                      op->to->name, (int)value.size, memory,
                      tn_type_format(&op->cast.from, texts[0]),
                      tn_type_format(&op->cast.to, texts[1]));
}

/* The same as below, where some column is padded. */
static void append_padded(const struct tn_data_plan *plan, unsigned char *row)
{
    uint32_t end = plan->fixed_size;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        struct tn_bytes view = plan->views[i];
        memcpy(row + end, view.data, view.size);
        end += (uint32_t)view.size;
        memset(row + end, plan->pads[i].byte, plan->pads[i].size);
        end += plan->pads[i].size;
        tn_store_u32(row + plan->view_offsets[i], end);
    }
}

void tn_data_plan_append(const struct tn_data_plan *plan, unsigned char *row)
{
    if (plan->pads) {
        append_padded(plan, row);
        return;
    }
    uint32_t end = plan->fixed_size;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        struct tn_bytes view = plan->views[i];
        if (view.size <= TN_DATA_SLACK) {
            memcpy(row + end, view.data, TN_DATA_SLACK);
        } else {
            memcpy(row + end, view.data, view.size);
        }
        end += (uint32_t)view.size;
        tn_store_u32(row + plan->view_offsets[i], end);
    }
}
