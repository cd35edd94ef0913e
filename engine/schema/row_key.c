#include "base/hash.h"
#include "schema/row_private.h"

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

static inline bool has_zero_byte(uint64_t word)
{
    return ((word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080)) != 0;
}

/* Bytes that further columns follow: a zero ends them. A zero among them can't be told from the
 * end, so there the prefix says 1 (above the end, not above other content) and stops. */
static ALWAYS_INLINE void prefix_add_bytes(struct prefix *prefix, struct tn_bytes bytes)
{
    size_t i = 0;
    for (; bytes.size - i >= 8 && !prefix_full(prefix); i += 8) {
        uint64_t top = tn_load_u64_be(bytes.data + i);
        if (has_zero_byte(top)) {
            break;
        }
        prefix_add(prefix, top, 8);
    }
    for (; i < bytes.size && !prefix_full(prefix); i++) {
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

static inline uint64_t hash_column(const struct tn_row_layout *layout, struct tn_row row,
                                   uint32_t column, uint64_t hash)
{
    const struct tn_column *c = &layout->columns[column];
    const unsigned char *at = row.data + c->offset;
    if (c->slot == TN_SLOT_BYTES) {
        return mix(hash, tn_hash_64(tn_row_bytes(layout, row, column), column));
    }
    if (c->width > 8) {
        hash = mix(hash, tn_row_load_fixed(at + 8, c->width - 8U));
    }
    return mix(hash, tn_row_load_fixed(at, c->width));
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
