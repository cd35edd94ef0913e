#include "schema/row.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/hash.h"
#include "format/binrow.h"

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

static const uint8_t slot_widths[] = {
    [TN_SLOT_I8] = 1,      [TN_SLOT_I16] = 2,   [TN_SLOT_I32] = 4,       [TN_SLOT_I64] = 8,
    [TN_SLOT_F32] = 4,     [TN_SLOT_F64] = 8,   [TN_SLOT_DECIMAL64] = 8, [TN_SLOT_DECIMAL128] = 16,
    [TN_SLOT_TIME96] = 12, [TN_SLOT_BYTES] = 4,
};

/* Of a type that is not nested. */
static enum tn_slot slot_of(const struct tn_type *type)
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
        enum tn_slot slot = slot_of(&types[i]);
        layout->columns[i] = (struct tn_column){
            .type = types[i],
            .name = names[i],
            .offset = layout->fixed_size,
            .width = slot_widths[slot],
            .slot = (uint8_t)slot,
        };
        if (slot == TN_SLOT_BYTES) {
            layout->columns[i].start_offset = bytes_before;
            bytes_before = layout->fixed_size;
        }
        layout->fixed_size += slot_widths[slot];
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

/* A double's bits with one NaN only, so that equal rows have equal bytes. Java:
 * Double.doubleToLongBits. */
static inline uint64_t double_bits(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return value == value ? bits : UINT64_C(0x7ff8000000000000);
}

static inline uint32_t float_bits(double value)
{
    float narrow = (float)value;
    uint32_t bits = 0;
    memcpy(&bits, &narrow, sizeof bits);
    return value == value ? bits : UINT32_C(0x7fc00000);
}

static inline double double_of_bits(uint64_t bits)
{
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double float_of_bits(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

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
        value->as.f64 = float_of_bits(tn_load_u32(at));
        break;
    case TN_SLOT_F64:
        value->as.f64 = double_of_bits(tn_load_u64(at));
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
        switch ((enum tn_slot)c->slot) {
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
            tn_store_u32(at, float_bits(value->as.f64));
            break;
        case TN_SLOT_F64:
            tn_store_u64(at, double_bits(value->as.f64));
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
            end = pack_bytes(data, at, end, value->as.bytes);
            break;
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

/* ---- order ---- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Signed integers in Double.compare's order: those of negative numbers run the other way. */
static inline int64_t double_order(uint64_t bits)
{
    return (int64_t)(bits ^ ((bits >> 63) * INT64_MAX));
}

static inline int32_t float_order(uint32_t bits)
{
    return (int32_t)(bits ^ ((bits >> 31) * INT32_MAX));
}

static inline int compare_i64(const unsigned char *a, const unsigned char *b)
{
    int64_t left = (int64_t)tn_load_u64(a);
    int64_t right = (int64_t)tn_load_u64(b);
    return COMPARE(left, right);
}

static inline int compare_i32(const unsigned char *a, const unsigned char *b)
{
    int32_t left = (int32_t)tn_load_u32(a);
    int32_t right = (int32_t)tn_load_u32(b);
    return COMPARE(left, right);
}

static int compare_float(const unsigned char *a, const unsigned char *b)
{
    int32_t left = float_order(tn_load_u32(a));
    int32_t right = float_order(tn_load_u32(b));
    return COMPARE(left, right);
}

static int compare_double(const unsigned char *a, const unsigned char *b)
{
    int64_t left = double_order(tn_load_u64(a));
    int64_t right = double_order(tn_load_u64(b));
    return COMPARE(left, right);
}

static int compare_decimal128(const unsigned char *a, const unsigned char *b)
{
    int order = compare_i64(a + 8, b + 8);
    uint64_t left = tn_load_u64(a);
    uint64_t right = tn_load_u64(b);
    return order ? order : COMPARE(left, right);
}

static int compare_time96(const unsigned char *a, const unsigned char *b)
{
    int order = compare_i64(a, b);
    return order ? order : compare_i32(a + 8, b + 8);
}

static inline int compare_bytes(struct tn_bytes a, struct tn_bytes b)
{
    size_t both = a.size < b.size ? a.size : b.size;
    int order = both > 0 ? memcmp(a.data, b.data, both) : 0;
    return order ? order : COMPARE(a.size, b.size);
}

/* Neither is NULL. */
static inline int compare_column(const struct tn_row_layout *layout, uint32_t column,
                                 struct tn_row a, struct tn_row b)
{
    const struct tn_column *c = &layout->columns[column];
    const unsigned char *left = a.data + c->offset;
    const unsigned char *right = b.data + c->offset;
    switch ((enum tn_slot)c->slot) {
    case TN_SLOT_I8:
        return (int8_t)left[0] - (int8_t)right[0];
    case TN_SLOT_I16:
        return (int16_t)tn_load_u16(left) - (int16_t)tn_load_u16(right);
    case TN_SLOT_I32:
        return compare_i32(left, right);
    case TN_SLOT_I64:
    case TN_SLOT_DECIMAL64:
        return compare_i64(left, right);
    case TN_SLOT_F32:
        return compare_float(left, right);
    case TN_SLOT_F64:
        return compare_double(left, right);
    case TN_SLOT_DECIMAL128:
        return compare_decimal128(left, right);
    case TN_SLOT_TIME96:
        return compare_time96(left, right);
    case TN_SLOT_BYTES:
        break;
    }
    return compare_bytes(tn_row_bytes(layout, a, column), tn_row_bytes(layout, b, column));
}

int tn_row_compare(const struct tn_row_layout *layout, struct tn_columns columns, struct tn_row a,
                   struct tn_row b)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        uint32_t column = columns.index[i];
        bool a_null = tn_row_null(a, column);
        bool b_null = tn_row_null(b, column);
        if (a_null || b_null) {
            if (a_null != b_null) {
                return a_null ? -1 : 1;
            }
            continue;
        }
        int order = compare_column(layout, column, a, b);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

int tn_row_compare_values(const struct tn_row_layout *layout, struct tn_columns columns,
                          struct tn_row row, const struct tn_value *values)
{
    for (uint32_t i = 0; i < columns.count; i++) {
        struct tn_value value;
        tn_row_get(layout, row, columns.index[i], &value);
        int order = tn_value_compare(&layout->columns[columns.index[i]].type, &value, &values[i]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

/* ---- prefix ---- */

enum { PREFIX_BITS = 64 };

/* The window is at the start for every row that is read, so that case is compiled on its own. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A window of 64 bits on the encoding. */
struct prefix {
    uint64_t bits; /* filled from the top */
    uint64_t used; /* bits of the encoding so far */
    uint64_t from; /* where the window begins; past its end nothing more counts */
};

static ALWAYS_INLINE bool prefix_full(const struct prefix *prefix)
{
    return prefix->used >= prefix->from + PREFIX_BITS;
}

/* `top` holds `size` bytes from its top on, zeros below. */
static ALWAYS_INLINE void prefix_add(struct prefix *prefix, uint64_t top, uint32_t size)
{
    if (prefix->used >= prefix->from) {
        prefix->bits |= prefix_full(prefix) ? 0 : top >> (prefix->used - prefix->from);
    } else if (prefix->from - prefix->used < 8 * size) {
        prefix->bits |= top << (prefix->from - prefix->used);
    }
    prefix->used += 8 * size;
}

/* Passes over the bytes that end before the window; bytes have no end that is nearer. */
static ALWAYS_INLINE struct tn_bytes prefix_skip(struct prefix *prefix, struct tn_bytes bytes)
{
    uint64_t skip = prefix->used < prefix->from ? (prefix->from - prefix->used) / 8 : 0;
    size_t size = skip < bytes.size ? (size_t)skip : bytes.size;
    prefix->used += 8 * size;
    return (struct tn_bytes){bytes.data + size, bytes.size - size};
}

/* The first 8 bytes, zeros behind the end. */
static inline uint64_t bytes_top(struct tn_bytes bytes)
{
    if (bytes.size >= 8) {
        return tn_load_u64_be(bytes.data);
    }
    uint64_t top = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        top |= (uint64_t)bytes.data[i] << (56 - 8 * i);
    }
    return top;
}

/* Bytes that further columns follow: a zero ends them. A zero among them can't be told from the
 * end, so there the prefix says 1 (above the end, not above other content) and stops. */
static ALWAYS_INLINE void prefix_add_bytes(struct prefix *prefix, struct tn_bytes bytes)
{
    for (size_t i = 0; i < bytes.size && !prefix_full(prefix); i++) {
        if (bytes.data[i] == 0) {
            prefix_add(prefix, UINT64_C(1) << 56, 1);
            prefix->used = UINT64_MAX - PREFIX_BITS;
            prefix->from = 0; /* full */
            return;
        }
        prefix_add(prefix, (uint64_t)bytes.data[i] << 56, 1);
    }
    prefix_add(prefix, 0, 1);
}

static const uint64_t top_bit = UINT64_C(1) << 63;

static ALWAYS_INLINE void prefix_add_column(struct prefix *prefix,
                                            const struct tn_row_layout *layout, struct tn_row row,
                                            uint32_t column, bool last)
{
    const struct tn_column *c = &layout->columns[column];
    const unsigned char *at = row.data + c->offset;
    switch ((enum tn_slot)c->slot) {
    case TN_SLOT_I8:
        prefix_add(prefix, (uint64_t)at[0] << 56 ^ top_bit, 1);
        break;
    case TN_SLOT_I16:
        prefix_add(prefix, (uint64_t)tn_load_u16(at) << 48 ^ top_bit, 2);
        break;
    case TN_SLOT_I32:
        prefix_add(prefix, (uint64_t)tn_load_u32(at) << 32 ^ top_bit, 4);
        break;
    case TN_SLOT_I64:
    case TN_SLOT_DECIMAL64:
        prefix_add(prefix, tn_load_u64(at) ^ top_bit, 8);
        break;
    case TN_SLOT_F32:
        prefix_add(prefix, (uint64_t)(uint32_t)float_order(tn_load_u32(at)) << 32 ^ top_bit, 4);
        break;
    case TN_SLOT_F64:
        prefix_add(prefix, (uint64_t)double_order(tn_load_u64(at)) ^ top_bit, 8);
        break;
    case TN_SLOT_DECIMAL128:
        prefix_add(prefix, tn_load_u64(at + 8) ^ top_bit, 8);
        prefix_add(prefix, tn_load_u64(at), 8);
        break;
    case TN_SLOT_TIME96:
        prefix_add(prefix, tn_load_u64(at) ^ top_bit, 8);
        prefix_add(prefix, (uint64_t)tn_load_u32(at + 8) << 32, 4);
        break;
    case TN_SLOT_BYTES:
        if (last) {
            struct tn_bytes bytes = prefix_skip(prefix, tn_row_bytes(layout, row, column));
            prefix_add(prefix, bytes_top(bytes), 8);
        } else {
            prefix_add_bytes(prefix, tn_row_bytes(layout, row, column));
        }
        break;
    }
}

static ALWAYS_INLINE uint64_t window(const struct tn_row_layout *layout, struct tn_columns columns,
                                     struct tn_row row, uint64_t from)
{
    struct prefix prefix = {.from = from};
    for (uint32_t i = 0; i < columns.count && !prefix_full(&prefix); i++) {
        uint32_t column = columns.index[i];
        bool null = tn_row_null(row, column);
        if (layout->columns[column].type.nullable) {
            prefix_add(&prefix, null ? 0 : UINT64_C(1) << 56, 1);
        } else if (null) {
            break; /* no marker in a NOT NULL column: zeros to the end are below or equal to all */
        }
        if (!null) {
            prefix_add_column(&prefix, layout, row, column, i + 1 == columns.count);
        }
    }
    return prefix.bits;
}

uint64_t tn_row_prefix(const struct tn_row_layout *layout, struct tn_columns columns,
                       struct tn_row row)
{
    return window(layout, columns, row, 0);
}

uint64_t tn_row_key_word(const struct tn_row_layout *layout, struct tn_columns columns,
                         struct tn_row row, uint32_t word)
{
    return window(layout, columns, row, (uint64_t)word * PREFIX_BITS);
}

bool tn_row_prefix_decides(const struct tn_row_layout *layout, struct tn_columns columns)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < columns.count && size <= 8; i++) {
        const struct tn_column *c = &layout->columns[columns.index[i]];
        if (c->slot == TN_SLOT_BYTES) {
            return false;
        }
        size += c->width + (c->type.nullable ? 1U : 0U);
    }
    return size <= 8;
}

/* ---- hash ---- */

/* The golden ratio's odd 64 bits: sequential keys spread over the high half, which comes down. */
static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static inline uint64_t load_fixed(const unsigned char *at, uint32_t width)
{
    switch (width) {
    case 1:
        return at[0];
    case 2:
        return tn_load_u16(at);
    case 4:
        return tn_load_u32(at);
    default:
        return tn_load_u64(at);
    }
}

static inline uint64_t hash_column(const struct tn_row_layout *layout, struct tn_row row,
                                   uint32_t column, uint64_t hash)
{
    const struct tn_column *c = &layout->columns[column];
    const unsigned char *at = row.data + c->offset;
    if (c->slot == TN_SLOT_BYTES) {
        return mix(hash, tn_hash_64(tn_row_bytes(layout, row, column), column));
    }
    if (c->width > 8) {
        hash = mix(hash, load_fixed(at + 8, c->width - 8U));
    }
    return mix(hash, load_fixed(at, c->width));
}

uint64_t tn_row_hash(const struct tn_row_layout *layout, struct tn_columns columns,
                     struct tn_row row)
{
    uint64_t hash = columns.count;
    for (uint32_t i = 0; i < columns.count; i++) {
        uint32_t column = columns.index[i];
        hash = tn_row_null(row, column) ? mix(hash, UINT64_C(0x6e756c6c))
                                        : hash_column(layout, row, column, hash);
    }
    return mix(hash, 0);
}

/* ---- BinaryRow ---- */

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
        tn_binrow_fixed(writer, field, load_fixed(at, c->width), c->width);
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
        tn_binrow_fixed(writer, field, (uint64_t)value->as.i64, slot_widths[slot]);
        break;
    case TN_SLOT_F32:
        tn_binrow_fixed(writer, field, float_bits(value->as.f64), 4);
        break;
    case TN_SLOT_F64:
        tn_binrow_fixed(writer, field, double_bits(value->as.f64), 8);
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
            binary_add_null(&writer, i, slot_of(&types[i]));
        } else {
            binary_add_value(&writer, i, slot_of(&types[i]), &values[i]);
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
    switch (slot_of(type)) {
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
        value->as.f64 = float_of_bits((uint32_t)bits);
        return true;
    case TN_SLOT_F64:
        value->as.f64 = double_of_bits(bits);
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
