#include <inttypes.h>

#include "base/check.h"
#include "schema/row_private.h"

/* ---- layout ---- */

enum { COMPACT_DECIMAL_PRECISION_MAX = 18, COMPACT_TIME_PRECISION_MAX = 3 }; /* Paimon: isCompact */

static const uint8_t slot_of_kind[TN_TYPE_KIND_COUNT] = {
    [TN_TYPE_BOOLEAN] = TN_SLOT_I8,    [TN_TYPE_TINYINT] = TN_SLOT_I8,
    [TN_TYPE_SMALLINT] = TN_SLOT_I16,  [TN_TYPE_INT] = TN_SLOT_I32,
    [TN_TYPE_BIGINT] = TN_SLOT_I64,    [TN_TYPE_FLOAT] = TN_SLOT_F32,
    [TN_TYPE_DOUBLE] = TN_SLOT_F64,    [TN_TYPE_DECIMAL] = TN_SLOT_DECIMAL64,
    [TN_TYPE_CHAR] = TN_SLOT_BYTES,    [TN_TYPE_VARCHAR] = TN_SLOT_BYTES,
    [TN_TYPE_BINARY] = TN_SLOT_BYTES,  [TN_TYPE_VARBINARY] = TN_SLOT_BYTES,
    [TN_TYPE_DATE] = TN_SLOT_I32,      [TN_TYPE_TIME] = TN_SLOT_I32,
    [TN_TYPE_TIMESTAMP] = TN_SLOT_I64, [TN_TYPE_TIMESTAMP_LTZ] = TN_SLOT_I64,
};

const uint8_t tn_row_slot_widths[] = {
    [TN_SLOT_I8] = 1,      [TN_SLOT_I16] = 2,   [TN_SLOT_I32] = 4,       [TN_SLOT_I64] = 8,
    [TN_SLOT_F32] = 4,     [TN_SLOT_F64] = 8,   [TN_SLOT_DECIMAL64] = 8, [TN_SLOT_DECIMAL128] = 16,
    [TN_SLOT_TIME96] = 12, [TN_SLOT_BYTES] = 4,
};

enum tn_slot tn_row_slot_of(const struct tn_type *type)
{
    if (type->kind == TN_TYPE_DECIMAL && type->precision > COMPACT_DECIMAL_PRECISION_MAX) {
        return TN_SLOT_DECIMAL128;
    }
    bool time = type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ;
    if (time && type->precision > COMPACT_TIME_PRECISION_MAX) {
        return TN_SLOT_TIME96;
    }
    return slot_of_kind[type->kind];
}

tn_rc tn_row_layout_init(struct tn_row_layout *layout, const char *const *names,
                         const struct tn_type *types, uint32_t count, struct tn_arena *arena,
                         struct tn_err *err)
{
    if (count > TN_ROW_COLUMNS_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "%" PRIu32 " columns, at most %d", count,
                          TN_ROW_COLUMNS_MAX);
    }
    void *columns = NULL;
    tn_rc rc = tn_arena_need(arena, count * sizeof(struct tn_column), "row layout", &columns, err);
    if (rc) {
        return rc;
    }
    *layout = (struct tn_row_layout){columns, count, (count + 7) / 8};
    uint32_t bytes_before = 0; /* slot of the byte column before, 0 when there is none */
    for (uint32_t i = 0; i < count; i++) {
        if (tn_type_nested(types[i].kind)) {
            return tn_err_set(err, TN_UNSUPPORTED, 0, "column '%s': %s values are not read",
                              names[i], tn_type_name(types[i].kind));
        }
        enum tn_slot slot = tn_row_slot_of(&types[i]);
        layout->columns[i] = (struct tn_column){
            .type = types[i],
            .name = names[i],
            .offset = layout->fixed_size,
            .width = tn_row_slot_widths[slot],
            .slot = (uint8_t)slot,
        };
        if (slot == TN_SLOT_BYTES) {
            layout->columns[i].start_offset = bytes_before;
            bytes_before = layout->fixed_size;
        }
        layout->fixed_size += tn_row_slot_widths[slot];
    }
    return TN_OK;
}

int32_t tn_row_layout_find(const struct tn_row_layout *layout, struct tn_bytes name)
{
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (tn_bytes_equal(tn_bytes_of(layout->columns[i].name), name)) {
            return (int32_t)i;
        }
    }
    return -1;
}

static const char kind_texts[][3] = {"+I", "-U", "+U", "-D"}; /* by enum tn_row_kind */

const char *tn_row_kind_text(enum tn_row_kind kind)
{
    return kind_texts[kind];
}

bool tn_row_kind_parse(struct tn_bytes text, enum tn_row_kind *kind)
{
    for (int i = TN_ROW_INSERT; i <= TN_ROW_DELETE; i++) {
        if (text.size == 2 && memcmp(text.data, kind_texts[i], 2) == 0) {
            *kind = (enum tn_row_kind)i;
            return true;
        }
    }
    return false;
}

/* ---- values in and out ---- */

void tn_row_get(const struct tn_row_layout *layout, struct tn_row row, uint32_t column,
                struct tn_value *value)
{
    const struct tn_column *c = &layout->columns[column];
    const unsigned char *at = row.data + c->offset;
    *value = (struct tn_value){.null = tn_row_null(row, column)};
    if (value->null) {
        return;
    }
    switch ((enum tn_slot)c->slot) {
    case TN_SLOT_I8:
        value->as.i64 = (int8_t)at[0];
        break;
    case TN_SLOT_I16:
        value->as.i64 = (int16_t)tn_load_u16(at);
        break;
    case TN_SLOT_I32:
        value->as.i64 = (int32_t)tn_load_u32(at);
        break;
    case TN_SLOT_I64:
        value->as.i64 = (int64_t)tn_load_u64(at);
        break;
    case TN_SLOT_F32:
        value->as.f64 = tn_row_float_of_bits(tn_load_u32(at));
        break;
    case TN_SLOT_F64:
        value->as.f64 = tn_row_double_of_bits(tn_load_u64(at));
        break;
    case TN_SLOT_DECIMAL64:
        value->as.i128 = tn_i128_of((int64_t)tn_load_u64(at));
        break;
    case TN_SLOT_DECIMAL128:
        value->as.i128 = (struct tn_i128){tn_load_u64(at), (int64_t)tn_load_u64(at + 8)};
        break;
    case TN_SLOT_TIME96:
        value->as.i64 = (int64_t)tn_load_u64(at);
        value->nanos = tn_load_u32(at + 8);
        break;
    case TN_SLOT_BYTES:
        value->as.bytes = tn_row_bytes(layout, row, column);
        break;
    }
}

uint32_t tn_row_packed_size(const struct tn_row_layout *layout, const struct tn_value *values)
{
    uint64_t size = layout->fixed_size;
    for (uint32_t i = 0; i < layout->column_count; i++) {
        if (layout->columns[i].slot == TN_SLOT_BYTES && !values[i].null) {
            size += values[i].as.bytes.size;
        }
    }
    TN_CHECK(size <= UINT32_MAX);
    return (uint32_t)size;
}

/* Returns the new end of the variable part. */
static inline uint32_t pack_bytes(unsigned char *data, unsigned char *at, uint32_t end,
                                  struct tn_bytes bytes)
{
    if (bytes.size > 0) {
        memcpy(data + end, bytes.data, bytes.size);
    }
    end += (uint32_t)bytes.size;
    tn_store_u32(at, end);
    return end;
}

uint32_t tn_row_pack(const struct tn_row_layout *layout, const struct tn_value *values,
                     unsigned char *data)
{
    uint32_t end = layout->fixed_size;
    memset(data, 0, end);
    for (uint32_t i = 0; i < layout->column_count; i++) {
        const struct tn_column *c = &layout->columns[i];
        const struct tn_value *value = &values[i];
        unsigned char *at = data + c->offset;
        if (value->null) {
            data[i / 8] = (unsigned char)(data[i / 8] | 1U << (i % 8));
            if (c->slot == TN_SLOT_BYTES) {
                tn_store_u32(at, end);
            }
            continue;
        }
        if (c->slot == TN_SLOT_BYTES) {
            end = pack_bytes(data, at, end, value->as.bytes);
        } else {
            tn_row_store(at, (enum tn_slot)c->slot, value);
        }
    }
    return end;
}

/* ---- validity ---- */

static bool all_zero(const unsigned char *at, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (at[i] != 0) {
            return false;
        }
    }
    return true;
}

/* `end` is where the byte column before ends; moved on by a byte column. */
static bool column_valid(const struct tn_column *c, struct tn_row row, bool null, uint32_t *end)
{
    const unsigned char *at = row.data + c->offset;
    if (c->slot == TN_SLOT_BYTES) {
        uint32_t own_end = tn_load_u32(at);
        bool valid = own_end >= *end && own_end <= row.size && (!null || own_end == *end);
        *end = own_end;
        return valid;
    }
    if (null) {
        return all_zero(at, c->width);
    }
    if (c->type.kind == TN_TYPE_BOOLEAN) {
        return at[0] <= 1;
    }
    return c->slot != TN_SLOT_TIME96 || tn_load_u32(at + 8) <= 999999;
}

bool tn_row_valid(const struct tn_row_layout *layout, struct tn_row row)
{
    uint32_t count = layout->column_count;
    if (row.size < layout->fixed_size) {
        return false;
    }
    if (count % 8 != 0 && row.data[count / 8] >> (count % 8) != 0) {
        return false;
    }
    uint32_t end = layout->fixed_size;
    for (uint32_t i = 0; i < count; i++) {
        if (!column_valid(&layout->columns[i], row, tn_row_null(row, i), &end)) {
            return false;
        }
    }
    return end == row.size;
}

/* ---- text ---- */

void tn_row_format_json(const struct tn_row_layout *layout, const struct tn_columns *columns,
                        struct tn_row row, struct tn_buf *buf)
{
    uint32_t count = columns ? columns->count : layout->column_count;
    tn_buf_byte(buf, '{');
    for (uint32_t i = 0; i < count; i++) {
        uint32_t column = columns ? columns->index[i] : i;
        const struct tn_column *c = &layout->columns[column];
        struct tn_value value;
        tn_row_get(layout, row, column, &value);
        if (i > 0) {
            tn_buf_byte(buf, ',');
        }
        tn_json_string(buf, tn_bytes_of(c->name));
        tn_buf_byte(buf, ':');
        tn_value_format_json(&c->type, &value, buf);
    }
    tn_buf_byte(buf, '}');
}
