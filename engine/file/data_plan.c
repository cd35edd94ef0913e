#include <string.h>

#include "file/data_plan_private.h"

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

static void decode_decimal64(struct tn_avro_cursor *c, const struct tn_decode_op *op,
                             unsigned char *slot)
{
    struct tn_bytes bytes = tn_avro_bytes(c);
    struct tn_i128 wide;
    if (bytes.size == 0 || !tn_i128_from_be(bytes, &wide)) {
        c->failed = true;
        return;
    }
    int64_t value = (int64_t)wide.low;
    int64_t bound = powers_of_ten[op->precision];
    if (wide.high != value >> 63 || value >= bound || value <= -bound) {
        c->failed = true;
        return;
    }
    tn_store_u64(slot, (uint64_t)value);
}

static void decode_decimal128(struct tn_avro_cursor *c, const struct tn_decode_op *op,
                              unsigned char *slot)
{
    struct tn_bytes bytes = tn_avro_bytes(c);
    struct tn_i128 value;
    if (bytes.size == 0 || !tn_i128_from_be(bytes, &value) || !tn_i128_fits(value, op->precision)) {
        c->failed = true;
        return;
    }
    tn_store_u64(slot, value.low);
    tn_store_u64(slot + 8, (uint64_t)value.high);
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

static inline void decode_value(const struct tn_data_plan *plan, const struct tn_decode_op *op,
                                struct tn_avro_cursor *c, unsigned char *row,
                                struct tn_data_record *record)
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
        decode_decimal64(c, op, slot);
        break;
    case DECODE_DECIMAL128:
        decode_decimal128(c, op, slot);
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
        tn_avro_skip(c, op->type);
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
    if (c->at == c->end || (*c->at != 0 && *c->at != 2)) {
        c->failed = true;
        return true;
    }
    return (*c->at++ == 0) == (op->branch == NULL_FIRST);
}

static inline void decode_field(const struct tn_data_plan *plan, const struct tn_decode_op *op,
                                struct tn_avro_cursor *c, unsigned char *row,
                                struct tn_data_record *record)
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
        decode_cast(plan, &plan->casts[op->offset], c, row, record);
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
    for (uint32_t i = 0; i < plan->op_count; i++) {
        decode_field(plan, &plan->ops[i], &c, row, record);
    }
    *cursor = c;
    return row_size(plan);
}

/* ---- records that nobody wants but for their keys ---- */

enum { PASS_CAST = -4, PASS_OTHER = -3, PASS_BYTES = -2, PASS_NUMBER = -1 }; /* else: bytes */

/* What stands in the file for a value of this kind. */
static const int8_t passes[] = {
    [DECODE_BOOLEAN] = 1,
    [DECODE_I8] = PASS_NUMBER,
    [DECODE_I16] = PASS_NUMBER,
    [DECODE_I32] = PASS_NUMBER,
    [DECODE_I64] = PASS_NUMBER,
    [DECODE_F32] = 4,
    [DECODE_F64] = 8,
    [DECODE_DECIMAL64] = PASS_BYTES,
    [DECODE_DECIMAL128] = PASS_BYTES,
    [DECODE_MILLIS_TO_96] = PASS_NUMBER,
    [DECODE_MICROS_TO_64] = PASS_NUMBER,
    [DECODE_MICROS_TO_96] = PASS_NUMBER,
    [DECODE_BYTES] = PASS_BYTES,
    [DECODE_CAST] = PASS_CAST,
    [DECODE_SEQUENCE] = PASS_NUMBER,
    [DECODE_KIND] = PASS_NUMBER,
    [SKIP_NUMBER] = PASS_NUMBER,
    [SKIP_BYTES] = PASS_BYTES,
    [SKIP_FIXED] = PASS_OTHER,
    [SKIP_OTHER] = PASS_OTHER,
    [DECODE_NONE] = 0,
};

static inline void pass_value(const struct tn_data_plan *plan, const struct tn_decode_op *op,
                              struct tn_avro_cursor *c)
{
    int passed = passes[op->kind];
    if (passed == PASS_CAST) {
        passed = passes[plan->casts[op->offset].source.kind];
    }
    if (passed >= 0) {
        skip(c, (uint32_t)passed);
    } else if (passed == PASS_NUMBER) {
        (void)tn_avro_varint(c);
    } else if (passed == PASS_BYTES) {
        (void)tn_avro_bytes(c);
    } else if (op->kind == SKIP_FIXED) {
        skip(c, op->offset);
    } else {
        tn_avro_skip(c, op->type);
    }
}

static inline void pass_field(const struct tn_data_plan *plan, const struct tn_decode_op *op,
                              struct tn_avro_cursor *c)
{
    if (op->branch == NO_BRANCH || !decode_null(op, c)) {
        pass_value(plan, op, c);
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
            pass_field(plan, op, &c);
        }
    }
    *cursor = c;
    return row_size(plan);
}

void tn_data_plan_pass(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor)
{
    struct tn_avro_cursor c = *cursor;
    for (uint32_t i = plan->key_end; i < plan->op_count; i++) {
        pass_field(plan, &plan->ops[i], &c);
    }
    *cursor = c;
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
