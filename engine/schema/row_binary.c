#include <inttypes.h>

#include "base/check.h"
#include "base/hash.h"
#include "format/binrow.h"
#include "schema/row_private.h"

static void binary_add_null(struct tn_binrow_writer *writer, uint32_t field, enum tn_slot slot)
{
    if (slot == TN_SLOT_TIME96) {
        tn_binrow_time(writer, field, true, 0, 0);
    } else if (slot == TN_SLOT_DECIMAL128) {
        tn_binrow_decimal(writer, field, true, (struct tn_bytes){0});
    } else {
        tn_binrow_null(writer, field);
    }
}

static void binary_add_decimal(struct tn_binrow_writer *writer, uint32_t field,
                               struct tn_i128 value)
{
    unsigned char bytes[16];
    uint32_t size = tn_i128_to_be(value, bytes);
    tn_binrow_decimal(writer, field, false, (struct tn_bytes){bytes, size});
}

static inline void binary_add(struct tn_binrow_writer *writer, uint32_t field,
                              const struct tn_row_layout *layout, struct tn_row row,
                              uint32_t column)
{
    const struct tn_column *c = &layout->columns[column];
    const unsigned char *at = row.data + c->offset;
    if (tn_row_null(row, column)) {
        binary_add_null(writer, field, (enum tn_slot)c->slot);
    } else if (c->slot == TN_SLOT_BYTES) {
        tn_binrow_bytes(writer, field, tn_row_bytes(layout, row, column));
    } else if (c->width <= 8) {
        tn_binrow_fixed(writer, field, tn_row_load_fixed(at, c->width), c->width);
    } else if (c->slot == TN_SLOT_TIME96) {
        tn_binrow_time(writer, field, false, (int64_t)tn_load_u64(at), tn_load_u32(at + 8));
    } else {
        binary_add_decimal(writer, field,
                           (struct tn_i128){tn_load_u64(at), (int64_t)tn_load_u64(at + 8)});
    }
}

void tn_row_to_binary(const struct tn_row_layout *layout, struct tn_columns columns,
                      struct tn_row row, bool arity, struct tn_buf *buf)
{
    struct tn_binrow_writer writer;
    tn_binrow_begin(&writer, buf, columns.count, arity);
    for (uint32_t i = 0; i < columns.count; i++) {
        binary_add(&writer, i, layout, row, columns.index[i]);
    }
}

static void binary_add_value(struct tn_binrow_writer *writer, uint32_t field, enum tn_slot slot,
                             const struct tn_value *value)
{
    switch (slot) {
    case TN_SLOT_I8:
    case TN_SLOT_I16:
    case TN_SLOT_I32:
    case TN_SLOT_I64:
        tn_binrow_fixed(writer, field, (uint64_t)value->as.i64, tn_row_slot_widths[slot]);
        break;
    case TN_SLOT_F32:
        tn_binrow_fixed(writer, field, tn_row_float_bits(value->as.f64), 4);
        break;
    case TN_SLOT_F64:
        tn_binrow_fixed(writer, field, tn_row_double_bits(value->as.f64), 8);
        break;
    case TN_SLOT_DECIMAL64:
        tn_binrow_fixed(writer, field, value->as.i128.low, 8);
        break;
    case TN_SLOT_DECIMAL128:
        binary_add_decimal(writer, field, value->as.i128);
        break;
    case TN_SLOT_TIME96:
        tn_binrow_time(writer, field, false, value->as.i64, value->nanos);
        break;
    case TN_SLOT_BYTES:
        tn_binrow_bytes(writer, field, value->as.bytes);
        break;
    }
}

void tn_values_to_binary(const struct tn_type *types, const struct tn_value *values, uint32_t count,
                         struct tn_buf *buf)
{
    struct tn_binrow_writer writer;
    tn_binrow_begin(&writer, buf, count, true);
    for (uint32_t i = 0; i < count; i++) {
        if (tn_type_nested(types[i].kind)) {
            TN_CHECK(values[i].null); /* statistics have no others */
            tn_binrow_null(&writer, i);
        } else if (values[i].null) {
            binary_add_null(&writer, i, tn_row_slot_of(&types[i]));
        } else {
            binary_add_value(&writer, i, tn_row_slot_of(&types[i]), &values[i]);
        }
    }
}

static bool read_decimal128(const struct tn_binrow *binary, uint32_t field, uint32_t precision,
                            struct tn_i128 *value)
{
    struct tn_bytes bytes;
    return tn_binrow_get_decimal(binary, field, &bytes) && tn_i128_from_be(bytes, value) &&
           tn_i128_fits(*value, precision);
}

/* False when the field's bytes are no value of the type. */
static bool read_field(const struct tn_binrow *binary, uint32_t field, const struct tn_type *type,
                       struct tn_value *value)
{
    uint64_t bits = tn_binrow_slot(binary, field);
    switch (tn_row_slot_of(type)) {
    case TN_SLOT_I8:
        value->as.i64 = (int8_t)bits;
        return type->kind != TN_TYPE_BOOLEAN || (bits & 0xff) <= 1;
    case TN_SLOT_I16:
        value->as.i64 = (int16_t)bits;
        return true;
    case TN_SLOT_I32:
        value->as.i64 = (int32_t)bits;
        return true;
    case TN_SLOT_I64:
        value->as.i64 = (int64_t)bits;
        return true;
    case TN_SLOT_F32:
        value->as.f64 = tn_row_float_of_bits((uint32_t)bits);
        return true;
    case TN_SLOT_F64:
        value->as.f64 = tn_row_double_of_bits(bits);
        return true;
    case TN_SLOT_DECIMAL64:
        value->as.i128 = tn_i128_of((int64_t)bits);
        return tn_i128_fits(value->as.i128, type->precision);
    case TN_SLOT_DECIMAL128:
        return read_decimal128(binary, field, type->precision, &value->as.i128);
    case TN_SLOT_TIME96:
        return tn_binrow_get_time(binary, field, &value->as.i64, &value->nanos) &&
               value->nanos <= 999999;
    case TN_SLOT_BYTES:
        break;
    }
    return tn_binrow_get_bytes(binary, field, &value->as.bytes);
}

tn_rc tn_binary_to_values(struct tn_bytes binary, const struct tn_type *types, uint32_t count,
                          struct tn_value *values, struct tn_err *err)
{
    struct tn_binrow view;
    tn_rc rc = tn_binrow_open(binary, count, &view, err);
    if (rc) {
        return rc;
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = (struct tn_value){.null = tn_binrow_is_null(&view, i)};
        if (values[i].null) {
            continue;
        }
        if (tn_type_nested(types[i].kind)) {
            return tn_err_set(err, TN_UNSUPPORTED, 0,
                              "BinaryRow field %" PRIu32 ": %s values are not read", i,
                              tn_type_name(types[i].kind));
        }
        if (!read_field(&view, i, &types[i], &values[i])) {
            return tn_err_set(err, TN_CORRUPT, 0, "BinaryRow field %" PRIu32 " is no %s", i,
                              tn_type_name(types[i].kind));
        }
    }
    return TN_OK;
}

tn_rc tn_row_bucket(const struct tn_row_layout *layout, struct tn_columns columns,
                    struct tn_row row, int32_t bucket_count, struct tn_buf *scratch,
                    int32_t *bucket, struct tn_err *err)
{
    TN_CHECK(bucket_count > 0);
    size_t mark = scratch->size;
    tn_row_to_binary(layout, columns, row, false, scratch);
    struct tn_bytes binary = {scratch->data + mark, scratch->size - mark};
    bool overflow = scratch->overflow;
    scratch->size = mark;
    scratch->overflow = false;
    if (overflow) {
        return tn_err_set(err, TN_AGAIN, 0, "a bucket key needs more than %zu bytes",
                          scratch->capacity - mark);
    }
    int32_t hash = tn_hash_murmur(binary);
    int32_t rest = hash % bucket_count;
    *bucket = rest < 0 ? -rest : rest;
    return TN_OK;
}
