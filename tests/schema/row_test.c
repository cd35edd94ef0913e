/* row: Paimon's bucket vectors, and packed rows of random layouts against the values they were
 * made of. */
#include "schema/row.h"

#include "base/hash.h"
#include "check.h"
#include "format/binrow.h"
#include "random.h"

enum { COLUMNS_MAX = 20, ROW_SIZE_MAX = 512, ARENA_SIZE = 1 << 16 };

/* ---- one layout and the rows of it ---- */

static _Alignas(16) unsigned char arena_memory[ARENA_SIZE];
static const uint32_t in_order[COLUMNS_MAX] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                               10, 11, 12, 13, 14, 15, 16, 17, 18, 19};

static struct tn_row_layout make_layout(const struct tn_type *types, uint32_t count)
{
    static const char *const names[COLUMNS_MAX] = {"a", "b", "c", "d", "e", "f", "g",
                                                   "h", "i", "j", "k", "l", "m", "n",
                                                   "o", "p", "q", "r", "s", "t"};
    struct tn_arena arena;
    struct tn_err err = {0};
    struct tn_row_layout layout;
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    tn_rc rc = tn_row_layout_init(&layout, names, types, count, &arena, &err);
    CHECK_OK(rc, err);
    return layout;
}

static struct tn_row pack(const struct tn_row_layout *layout, const struct tn_value *values,
                          unsigned char *data)
{
    uint32_t size = tn_row_packed_size(layout, values);
    CHECK(size <= ROW_SIZE_MAX);
    CHECK(tn_row_pack(layout, values, data) == size);
    struct tn_row row = {data, size};
    CHECK(tn_row_valid(layout, row));
    return row;
}

/* ---- vectors ---- */

#define T(KIND, PRECISION, SCALE)                             \
    {                                                         \
        TN_TYPE_##KIND, true, PRECISION, SCALE, TN_LENGTH_MAX \
    }
#define NIL          \
    {                \
        .null = true \
    }
#define I(VALUE)          \
    {                     \
        .as.i64 = (VALUE) \
    }
#define F(VALUE)          \
    {                     \
        .as.f64 = (VALUE) \
    }
#define S(TEXT, SIZE)                                        \
    {                                                        \
        .as.bytes = {(const unsigned char *)(TEXT), (SIZE) } \
    }
#define M(MILLIS, NANOS)                     \
    {                                        \
        .nanos = (NANOS), .as.i64 = (MILLIS) \
    }
#define D(HIGH, LOW)                \
    {                               \
        .as.i128 = {(LOW), (HIGH) } \
    }

struct vector {
    uint32_t count;
    struct tn_type types[3];
    struct tn_value values[3];
    const char *binary; /* hex, without arity */
    int32_t hash;
    int32_t bucket_of_4;
    int32_t bucket_of_7;
    int32_t bucket_of_128;
};

/* Written by Paimon 1.3.1. */
static const struct vector vectors[] = {
    {1, {T(INT, 0, 0)}, {I(1)}, "00000000000000000100000000000000", 1465514398, 2, 5, 30},
    {1, {T(INT, 0, 0)}, {I(42)}, "00000000000000002a00000000000000", 907821237, 1, 1, 53},
    {1, {T(INT, 0, 0)}, {I(-1)}, "0000000000000000ffffffff00000000", 1133687267, 3, 6, 99},
    {1, {T(INT, 0, 0)}, {I(-2147483648)}, "00000000000000000000008000000000", 916225219, 3, 0, 67},
    {1, {T(BIGINT, 0, 0)}, {I(1)}, "00000000000000000100000000000000", 1465514398, 2, 5, 30},
    {1,
     {T(BIGINT, 0, 0)},
     {I(1234567890123)},
     "0000000000000000cb04fb711f010000",
     -1873221036,
     0,
     1,
     44},
    {1, {T(BIGINT, 0, 0)}, {I(-1)}, "0000000000000000ffffffffffffffff", -821098432, 0, 0, 64},
    {1, {T(BIGINT, 0, 0)}, {I(INT64_MIN)}, "00000000000000000000000000000080", 302122119, 3, 5, 7},
    {1, {T(TINYINT, 0, 0)}, {I(-5)}, "0000000000000000fb00000000000000", -866908712, 0, 5, 40},
    {1, {T(SMALLINT, 0, 0)}, {I(-300)}, "0000000000000000d4fe000000000000", -887757019, 3, 2, 91},
    {1, {T(VARCHAR, 0, 0)}, {S("", 0)}, "00000000000000000000000000000080", 302122119, 3, 5, 7},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("abcdefg", 7)},
     "00000000000000006162636465666787",
     -1431907323,
     3,
     0,
     123},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("abcdefgh", 8)},
     "000000000000000008000000100000006162636465666768",
     -843760178,
     2,
     2,
     50},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("hello world, paimon", 19)},
     "0000000000000000130000001000000068656c6c6f20776f726c642c207061696d6f6e0000000000",
     -2034202288,
     0,
     6,
     48},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("\303\251", 2)},
     "0000000000000000c3a9000000000082",
     -1531579217,
     1,
     0,
     81},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("\344\270\255\346\226\207", 6)},
     "0000000000000000e4b8ade696870086",
     1956728004,
     0,
     0,
     68},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("\344\270\255\346\226\207\346\226\207", 9)},
     "00000000000000000900000010000000e4b8ade69687e6968700000000000000",
     1109873794,
     2,
     1,
     2},
    {1, {T(CHAR, 0, 0)}, {S("ab", 2)}, "00000000000000006162000000000082", -425866811, 3, 6, 59},
    {1,
     {T(VARBINARY, 0, 0)},
     {S("\000\377", 2)},
     "000000000000000000ff000000000082",
     979549812,
     0,
     3,
     116},
    {1,
     {T(VARBINARY, 0, 0)},
     {S("\001\002\003\004\005\006\007\010\011\012", 10)},
     "00000000000000000a000000100000000102030405060708090a000000000000",
     835277419,
     3,
     4,
     107},
    {1, {T(BOOLEAN, 0, 0)}, {I(1)}, "00000000000000000100000000000000", 1465514398, 2, 5, 30},
    {1, {T(FLOAT, 0, 0)}, {F(1.5)}, "00000000000000000000c03f00000000", -173842779, 3, 5, 91},
    {1, {T(DOUBLE, 0, 0)}, {F(1.5)}, "0000000000000000000000000000f83f", 1860889473, 1, 2, 1},
    {1, {T(DOUBLE, 0, 0)}, {F(-0.0)}, "00000000000000000000000000000080", 302122119, 3, 5, 7},
    {1,
     {T(DECIMAL, 10, 2)},
     {D(INT64_C(0), UINT64_C(0x12d687))},
     "000000000000000087d6120000000000",
     754928256,
     0,
     5,
     0},
    {1,
     {T(DECIMAL, 10, 2)},
     {D(INT64_C(-1), UINT64_C(0xffffffffffffffff))},
     "0000000000000000ffffffffffffffff",
     -821098432,
     0,
     0,
     64},
    {1,
     {T(DECIMAL, 20, 2)},
     {D(INT64_C(0), UINT64_C(0x12d687))},
     "0000000000000000030000001000000012d68700000000000000000000000000",
     -1505263393,
     1,
     4,
     33},
    {1,
     {T(DECIMAL, 20, 2)},
     {D(INT64_C(-1), UINT64_C(0xffffffffffffffff))},
     "00000000000000000100000010000000ff000000000000000000000000000000",
     907730780,
     0,
     5,
     92},
    {1,
     {T(DECIMAL, 38, 10)},
     {D(INT64_C(669260594276348691), UINT64_C(0xc449904ecc674515))},
     "000000000000000010000000100000000949b0f6f0023313c449904ecc674515",
     -1782561879,
     3,
     0,
     87},
    {1,
     {T(DECIMAL, 20, 2)},
     {NIL},
     "0001000000000000000000001000000000000000000000000000000000000000",
     -1380280760,
     0,
     5,
     56},
    {1, {T(DATE, 0, 0)}, {I(19000)}, "0000000000000000384a000000000000", -1241043695, 3, 3, 111},
    {1, {T(DATE, 0, 0)}, {I(-1)}, "0000000000000000ffffffff00000000", 1133687267, 3, 6, 99},
    {1, {T(TIME, 0, 0)}, {I(45296789)}, "0000000000000000952cb30200000000", 1815782997, 1, 0, 85},
    {1,
     {T(TIMESTAMP, 3, 0)},
     {M(1700000000123, 0)},
     "00000000000000007b68e5cf8b010000",
     -1285420957,
     1,
     2,
     29},
    {1,
     {T(TIMESTAMP, 0, 0)},
     {M(1700000000000, 0)},
     "00000000000000000068e5cf8b010000",
     -234226969,
     1,
     4,
     25},
    {1,
     {T(TIMESTAMP, 6, 0)},
     {M(1700000000123, 456000)},
     "000000000000000040f50600100000007b68e5cf8b010000",
     1196670069,
     1,
     0,
     117},
    {1,
     {T(TIMESTAMP, 9, 0)},
     {M(1700000000123, 456789)},
     "000000000000000055f80600100000007b68e5cf8b010000",
     -71831406,
     2,
     3,
     110},
    {1,
     {T(TIMESTAMP, 6, 0)},
     {M(-1, 999000)},
     "0000000000000000583e0f0010000000ffffffffffffffff",
     1236894319,
     3,
     3,
     111},
    {1,
     {T(TIMESTAMP, 6, 0)},
     {NIL},
     "000100000000000000000000100000000000000000000000",
     -340882661,
     1,
     0,
     101},
    {1,
     {T(TIMESTAMP_LTZ, 6, 0)},
     {M(1700000000123, 456000)},
     "000000000000000040f50600100000007b68e5cf8b010000",
     1196670069,
     1,
     0,
     117},
    {1, {T(INT, 0, 0)}, {NIL}, "00010000000000000000000000000000", -1748325344, 0, 3, 96},
    {2,
     {T(INT, 0, 0), T(VARCHAR, 0, 0)},
     {I(1), S("a", 1)},
     "000000000000000001000000000000006100000000000081",
     -948407462,
     2,
     2,
     38},
    {2,
     {T(VARCHAR, 0, 0), T(BIGINT, 0, 0)},
     {S("abcdefgh", 8), I(7)},
     "0000000000000000080000001800000007000000000000006162636465666768",
     1367131410,
     2,
     1,
     18},
    {2,
     {T(VARCHAR, 0, 0), T(VARCHAR, 0, 0)},
     {S("abcdefgh", 8), S("0123456789", 10)},
     "000000000000000008000000180000000a00000020000000616263646566676830313233343536373839000000000"
     "000",
     -917426955,
     3,
     4,
     11},
    {2,
     {T(INT, 0, 0), T(INT, 0, 0)},
     {NIL, I(1)},
     "000100000000000000000000000000000100000000000000",
     -2146858737,
     1,
     2,
     113},
    {2,
     {T(INT, 0, 0), T(INT, 0, 0)},
     {I(1), NIL},
     "000200000000000001000000000000000000000000000000",
     -74682006,
     2,
     0,
     22},
    {3,
     {T(TIMESTAMP, 9, 0), T(VARCHAR, 0, 0), T(DECIMAL, 20, 2)},
     {M(1700000000123, 456789), S("abcdefgh", 8), D(INT64_C(0), UINT64_C(0x64))},
     "000000000000000055f8060020000000080000002800000001000000300000007b68e5cf8b0100006162636465666"
     "76864000000000000000000000000000000",
     2117140498,
     2,
     4,
     18},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("abcdefghijklmnop", 16)},
     "000000000000000010000000100000006162636465666768696a6b6c6d6e6f70",
     -712211938,
     2,
     4,
     98},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("2024-01-01", 10)},
     "00000000000000000a00000010000000323032342d30312d3031000000000000",
     306517490,
     2,
     6,
     114},
    {1,
     {T(DECIMAL, 19, 0)},
     {D(INT64_C(0), UINT64_C(0xde0b6b3a763ffff))},
     "000000000000000008000000100000000de0b6b3a763ffff0000000000000000",
     1564988342,
     2,
     1,
     54},
    {2,
     {T(TIMESTAMP, 6, 0), T(INT, 0, 0)},
     {NIL, I(1)},
     "0001000000000000000000001800000001000000000000000000000000000000",
     -1665853308,
     0,
     0,
     124},
    {2,
     {T(BIGINT, 0, 0), T(VARCHAR, 0, 0)},
     {I(7), S("abcdefgh", 8)},
     "0000000000000000070000000000000008000000180000006162636465666768",
     -231975178,
     2,
     1,
     10},
    {2,
     {T(BIGINT, 0, 0), T(VARCHAR, 0, 0)},
     {I(1), S("a", 1)},
     "000000000000000001000000000000006100000000000081",
     -948407462,
     2,
     2,
     38},
    {2,
     {T(VARCHAR, 0, 0), T(INT, 0, 0)},
     {NIL, NIL},
     "000300000000000000000000000000000000000000000000",
     -1130415291,
     3,
     5,
     59},
    {2,
     {T(VARCHAR, 0, 0), T(INT, 0, 0)},
     {S("x", 1), I(1)},
     "000000000000000078000000000000810100000000000000",
     1430518205,
     1,
     4,
     61},
    {2,
     {T(VARCHAR, 0, 0), T(INT, 0, 0)},
     {S("x", 1), NIL},
     "000200000000000078000000000000810000000000000000",
     1595324702,
     2,
     6,
     30},
    {0, {{0}}, {{0}}, "0000000000000000", -1670924195, 3, 3, 35},
};

/* Also by Paimon; no bucket is known of them. */
static const struct vector examples[] = {
    {1, {T(INT, 0, 0)}, {I(1)}, "00000000000000000100000000000000", 0, 0, 0, 0},
    {1,
     {T(VARCHAR, 0, 0)},
     {S("abcdefghi", 9)},
     "0000000000000000090000001000000061626364656667686900000000000000",
     0,
     0,
     0,
     0},
    {3,
     {T(INT, 0, 0), T(VARCHAR, 0, 0), T(BIGINT, 0, 0)},
     {I(1), S("one", 3), I(10)},
     "000000000000000001000000000000006f6e6500000000830a00000000000000",
     0,
     0,
     0,
     0},
    {1, {T(DATE, 0, 0)}, {I(20000)}, "0000000000000000204e000000000000", 0, 0, 0, 0},
    {1, {T(DECIMAL, 9, 2)}, {D(0, 123456789)}, "000000000000000015cd5b0700000000", 0, 0, 0, 0},
    {1,
     {T(DECIMAL, 18, 4)},
     {D(-1, (uint64_t)INT64_C(-999999999999991234))},
     "00000000000000003e229c584c491ff2",
     0,
     0,
     0,
     0},
};

static void check_hex(const char *hex, struct tn_bytes bytes)
{
    CHECK(strlen(hex) == 2 * bytes.size);
    for (size_t i = 0; i < bytes.size; i++) {
        char pair[3];
        (void)snprintf(pair, sizeof pair, "%02x", bytes.data[i]);
        CHECK(memcmp(pair, hex + 2 * i, 2) == 0);
    }
}

/* The same bytes from the row and from its values; and the values back. */
static void check_binary(const struct tn_row_layout *layout, const struct vector *v,
                         struct tn_row row)
{
    unsigned char memory[2][128];
    struct tn_buf buf[2];
    tn_buf_init(&buf[0], memory[0], sizeof memory[0]);
    tn_buf_init(&buf[1], memory[1], sizeof memory[1]);
    tn_row_to_binary(layout, (struct tn_columns){in_order, v->count}, row, true, &buf[0]);
    tn_values_to_binary(v->types, v->values, v->count, &buf[1]);
    CHECK(!buf[0].overflow && !buf[1].overflow);
    CHECK(tn_bytes_equal(tn_buf_bytes(&buf[0]), tn_buf_bytes(&buf[1])));
    CHECK(tn_load_u32_be(memory[0]) == v->count);
    check_hex(v->binary, (struct tn_bytes){memory[0] + 4, buf[0].size - 4});

    struct tn_value values[3];
    struct tn_err err = {0};
    tn_rc rc = tn_binary_to_values(tn_buf_bytes(&buf[0]), v->types, v->count, values, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < v->count; i++) {
        CHECK(tn_value_compare(&v->types[i], &values[i], &v->values[i]) == 0);
    }
}

static int32_t bucket_of(const struct tn_row_layout *layout, uint32_t count, struct tn_row row,
                         int32_t buckets)
{
    unsigned char memory[128];
    struct tn_buf scratch;
    struct tn_err err = {0};
    int32_t bucket = -1;
    tn_buf_init(&scratch, memory, sizeof memory);
    tn_rc rc = tn_row_bucket(layout, (struct tn_columns){in_order, count}, row, buckets, &scratch,
                             &bucket, &err);
    CHECK_OK(rc, err);
    return bucket;
}

static void buckets_are_those_of_paimon(void)
{
    for (size_t i = 0; i < COUNT(vectors); i++) {
        const struct vector *v = &vectors[i];
        unsigned char data[ROW_SIZE_MAX];
        struct tn_row_layout layout = make_layout(v->types, v->count);
        struct tn_row row = pack(&layout, v->values, data);
        CHECK(bucket_of(&layout, v->count, row, 4) == v->bucket_of_4);
        CHECK(bucket_of(&layout, v->count, row, 7) == v->bucket_of_7);
        CHECK(bucket_of(&layout, v->count, row, 128) == v->bucket_of_128);
        int32_t of_all = v->hash == INT32_MIN ? 1 : abs(v->hash % INT32_MAX);
        CHECK(bucket_of(&layout, v->count, row, INT32_MAX) == of_all);
    }
    CHECK(COUNT(vectors) == 57);
}

static void binary_rows_are_those_of_paimon(void)
{
    for (size_t i = 0; i < COUNT(vectors) + COUNT(examples); i++) {
        const struct vector *v = i < COUNT(vectors) ? &vectors[i] : &examples[i - COUNT(vectors)];
        unsigned char data[ROW_SIZE_MAX];
        struct tn_row_layout layout = make_layout(v->types, v->count);
        check_binary(&layout, v, pack(&layout, v->values, data));
    }
}

static void a_bucket_key_that_is_too_long_is_an_error(void)
{
    static const struct tn_type type = T(VARCHAR, 0, 0);
    static const struct tn_value value = S("a text of more than 16 bytes", 28);
    unsigned char data[ROW_SIZE_MAX];
    unsigned char memory[32];
    struct tn_row_layout layout = make_layout(&type, 1);
    struct tn_row row = pack(&layout, &value, data);
    struct tn_buf scratch;
    struct tn_err err = {0};
    int32_t bucket = -1;
    tn_buf_init(&scratch, memory, sizeof memory);
    tn_rc rc =
        tn_row_bucket(&layout, (struct tn_columns){in_order, 1}, row, 4, &scratch, &bucket, &err);
    CHECK(rc == TN_AGAIN && bucket == -1);
    CHECK(scratch.size == 0 && !scratch.overflow);
}

/* Cuts a good BinaryRow at every length, and damages each byte: no crash, and what is still taken
 * packs again. */
static void damaged_binary_rows_are_refused_or_harmless(void)
{
    const struct vector *v = NULL;
    for (size_t i = 0; i < COUNT(vectors); i++) {
        v = vectors[i].count == 3 ? &vectors[i] : v;
    }
    unsigned char memory[128];
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_values_to_binary(v->types, v->values, v->count, &buf);
    struct tn_value values[3];
    struct tn_err err = {0};
    for (size_t size = 0; size < buf.size; size++) {
        unsigned char *cut = malloc(size + 1);
        memcpy(cut, memory, size);
        tn_rc rc =
            tn_binary_to_values((struct tn_bytes){cut, size}, v->types, v->count, values, &err);
        /* The last item's padding is not looked at. */
        CHECK(rc == TN_CORRUPT || (rc == TN_OK && size + 15 >= buf.size));
        free(cut);
    }
    struct tn_row_layout layout = make_layout(v->types, v->count);
    for (size_t i = 0; i < buf.size * 8; i++) {
        unsigned char data[ROW_SIZE_MAX];
        memory[i / 8] ^= (unsigned char)(1U << i % 8);
        tn_rc rc = tn_binary_to_values(tn_buf_bytes(&buf), v->types, v->count, values, &err);
        CHECK(rc == TN_OK || rc == TN_CORRUPT);
        if (rc == TN_OK) {
            (void)pack(&layout, values, data);
        }
        memory[i / 8] ^= (unsigned char)(1U << i % 8);
    }
}

/* ---- random rows ---- */

static uint64_t state;

static struct tn_type draw_type(void)
{
    struct tn_type type = {.kind = (enum tn_type_kind)random_below(&state, TN_TYPE_ARRAY),
                           .nullable = random_below(&state, 2),
                           .length = TN_LENGTH_MAX};
    bool decimal = type.kind == TN_TYPE_DECIMAL;
    type.precision = (uint8_t)(decimal ? 1 + random_below(&state, 38) : random_below(&state, 10));
    type.scale = (uint8_t)(decimal ? random_below(&state, type.precision + 1U) : 0);
    return type;
}

/* Few different values, near each other and at the ends, so that rows meet. */
static int64_t draw_integer(unsigned bits)
{
    int64_t max = (int64_t)(UINT64_MAX >> 1 >> (64 - bits));
    const int64_t picks[] = {0, 1, -1, 2, max, -max - 1, max - 1, 100, -100};
    return random_below(&state, 4) == 0 ? (int64_t)random_next(&state) >> (64 - bits)
                                        : picks[random_below(&state, COUNT(picks))];
}

static double draw_double(bool narrow)
{
    static const double zero = 0.0;
    const double picks[] = {0.0, -0.0, 1.5, -1.5, 1 / zero, -1 / zero, zero / zero, -(zero / zero)};
    double value = random_below(&state, 2) ? (double)draw_integer(30) / 64
                                           : picks[random_below(&state, COUNT(picks))];
    return narrow ? (double)(float)value : value;
}

static struct tn_i128 draw_decimal(uint32_t precision)
{
    struct tn_i128 value = tn_i128_of(0);
    bool negative = random_below(&state, 2);
    uint32_t digits = random_below(&state, precision + 1);
    for (uint32_t i = 0; i < digits; i++) {
        CHECK(tn_i128_push_digit(&value, random_below(&state, 2) * 9, negative));
    }
    return value;
}

static struct tn_bytes draw_bytes(void)
{
    static const unsigned char texts[] = "\0\0\0\1\0\2\0aabababcdefghijklmn\0\1\377\376\377ab\0ab";
    uint32_t size = random_below(&state, 12);
    return (struct tn_bytes){texts + random_below(&state, (uint32_t)sizeof texts - size), size};
}

static unsigned integer_bits(enum tn_type_kind kind)
{
    static const unsigned char bits[TN_TYPE_KIND_COUNT] = {
        [TN_TYPE_TINYINT] = 8, [TN_TYPE_SMALLINT] = 16, [TN_TYPE_INT] = 32,
        [TN_TYPE_BIGINT] = 64, [TN_TYPE_DATE] = 32,     [TN_TYPE_TIME] = 27,
    };
    return bits[kind];
}

static struct tn_value draw_value(const struct tn_type *type)
{
    struct tn_value value = {.null = type->nullable && random_below(&state, 4) == 0};
    if (value.null) {
        return value;
    }
    if (integer_bits(type->kind)) {
        value.as.i64 = draw_integer(integer_bits(type->kind));
    } else if (type->kind == TN_TYPE_BOOLEAN) {
        value.as.i64 = random_below(&state, 2);
    } else if (type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE) {
        value.as.f64 = draw_double(type->kind == TN_TYPE_FLOAT);
    } else if (type->kind == TN_TYPE_DECIMAL) {
        value.as.i128 = draw_decimal(type->precision);
    } else if (type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ) {
        value.as.i64 = draw_integer(50);
        value.nanos = type->precision > 3 ? random_below(&state, 3) * 499999 : 0;
    } else {
        value.as.bytes = draw_bytes();
    }
    return value;
}

struct pair {
    uint32_t count;
    struct tn_type types[COLUMNS_MAX];
    struct tn_value values[2][COLUMNS_MAX]; /* alike in most columns */
    struct tn_row_layout layout;
    unsigned char data[2][ROW_SIZE_MAX];
    struct tn_row rows[2];
    uint32_t index[COLUMNS_MAX]; /* some columns, in an order */
    struct tn_columns columns;
};

static void draw_pair(struct pair *pair)
{
    pair->count = 1 + random_below(&state, COLUMNS_MAX);
    for (uint32_t i = 0; i < pair->count; i++) {
        pair->types[i] = draw_type();
        pair->values[0][i] = draw_value(&pair->types[i]);
        pair->values[1][i] =
            random_below(&state, 2) ? draw_value(&pair->types[i]) : pair->values[0][i];
    }
    pair->layout = make_layout(pair->types, pair->count);
    for (int i = 0; i < 2; i++) {
        memset(pair->data[i], 0xa5, sizeof pair->data[i]);
        pair->rows[i] = pack(&pair->layout, pair->values[i], pair->data[i]);
    }
    pair->columns = (struct tn_columns){pair->index, 1 + random_below(&state, 4)};
    for (uint32_t i = 0; i < pair->columns.count; i++) {
        pair->index[i] = random_below(&state, pair->count);
    }
}

static int expected_order(const struct pair *pair)
{
    for (uint32_t i = 0; i < pair->columns.count; i++) {
        uint32_t column = pair->index[i];
        int order = tn_value_compare(&pair->types[column], &pair->values[0][column],
                                     &pair->values[1][column]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static void check_order(const struct pair *pair)
{
    const struct tn_row_layout *layout = &pair->layout;
    const struct tn_row *rows = pair->rows;
    int order = sign(expected_order(pair));
    CHECK(sign(tn_row_compare(layout, pair->columns, rows[0], rows[1])) == order);
    CHECK(sign(tn_row_compare(layout, pair->columns, rows[1], rows[0])) == -order);
    CHECK(tn_row_compare(layout, pair->columns, rows[0], rows[0]) == 0);

    struct tn_value key[COLUMNS_MAX];
    for (uint32_t i = 0; i < pair->columns.count; i++) {
        key[i] = pair->values[1][pair->index[i]];
    }
    CHECK(sign(tn_row_compare_values(layout, pair->columns, rows[0], key)) == order);

    uint64_t prefix[2] = {tn_row_prefix(layout, pair->columns, rows[0]),
                          tn_row_prefix(layout, pair->columns, rows[1])};
    CHECK(prefix[0] == prefix[1] || (prefix[0] < prefix[1] ? -1 : 1) == order);
    CHECK(order != 0 || prefix[0] == prefix[1]);
    CHECK(!tn_row_prefix_decides(layout, pair->columns) ||
          (prefix[0] == prefix[1]) == (order == 0));
    CHECK(tn_row_key_word(layout, pair->columns, rows[0], 0) == prefix[0]);
    for (uint32_t word = 0; word < 10; word++) { /* the first that differs says which is less */
        uint64_t a = tn_row_key_word(layout, pair->columns, rows[0], word);
        uint64_t b = tn_row_key_word(layout, pair->columns, rows[1], word);
        if (a != b) {
            CHECK((a < b ? -1 : 1) == order);
            break;
        }
    }
    CHECK(order != 0 || tn_row_hash(layout, pair->columns, rows[0]) ==
                            tn_row_hash(layout, pair->columns, rows[1]));
    CHECK(order == 0 || tn_row_hash(layout, pair->columns, rows[0]) !=
                            tn_row_hash(layout, pair->columns, rows[1]));
}

static void rows_order_as_their_values_do(void)
{
    static struct pair pair;
    state = 20;
    for (int i = 0; i < 100000; i++) {
        draw_pair(&pair);
        check_order(&pair);
    }
}

static void packed_values_come_back(void)
{
    static struct pair pair;
    state = 21;
    for (int i = 0; i < 20000; i++) {
        draw_pair(&pair);
        for (uint32_t c = 0; c < pair.count; c++) {
            struct tn_value value;
            tn_row_get(&pair.layout, pair.rows[0], c, &value);
            CHECK(tn_row_null(pair.rows[0], c) == pair.values[0][c].null);
            CHECK(tn_value_compare(&pair.types[c], &value, &pair.values[0][c]) == 0);
        }
    }
}

/* Also NaN of either sign, and NULL over whatever stood in the buffer. */
static void equal_rows_have_equal_bytes(void)
{
    static struct pair pair;
    state = 22;
    int equal_count = 0;
    for (int i = 0; i < 50000; i++) {
        draw_pair(&pair);
        pair.columns = (struct tn_columns){in_order, pair.count};
        bool equal = pair.rows[0].size == pair.rows[1].size &&
                     memcmp(pair.data[0], pair.data[1], pair.rows[0].size) == 0;
        memcpy(pair.index, in_order, sizeof in_order);
        CHECK(equal == (expected_order(&pair) == 0));
        equal_count += equal;
    }
    CHECK(equal_count > 1000);
}

static void binary_rows_of_random_rows_come_back(void)
{
    static struct pair pair;
    static unsigned char memory[ROW_SIZE_MAX];
    state = 23;
    for (int i = 0; i < 20000; i++) {
        draw_pair(&pair);
        struct tn_buf buf;
        struct tn_err err = {0};
        struct tn_value values[COLUMNS_MAX];
        tn_buf_init(&buf, memory, sizeof memory);
        tn_row_to_binary(&pair.layout, (struct tn_columns){in_order, pair.count}, pair.rows[0],
                         true, &buf);
        tn_rc rc = tn_binary_to_values(tn_buf_bytes(&buf), pair.types, pair.count, values, &err);
        CHECK_OK(rc, err);
        unsigned char again[ROW_SIZE_MAX];
        struct tn_row row = pack(&pair.layout, values, again);
        CHECK(row.size == pair.rows[0].size && memcmp(again, pair.data[0], row.size) == 0);
    }
}

/* A NULL where the schema allows none comes first and must not disturb the order of prefixes. */
static void a_null_in_a_not_null_column_is_below_all(void)
{
    static const struct tn_type types[] = {{.kind = TN_TYPE_INT}, {.kind = TN_TYPE_INT}};
    static const struct tn_value values[][2] = {{NIL, I(7)}, {I(INT32_MIN), I(INT32_MIN)}};
    struct tn_row_layout layout = make_layout(types, 2);
    unsigned char data[2][ROW_SIZE_MAX];
    struct tn_row rows[2] = {pack(&layout, values[0], data[0]), pack(&layout, values[1], data[1])};
    struct tn_columns columns = {in_order, 2};
    CHECK(tn_row_compare(&layout, columns, rows[0], rows[1]) < 0);
    CHECK(tn_row_prefix(&layout, columns, rows[0]) <= tn_row_prefix(&layout, columns, rows[1]));
}

/* ---- validity ---- */

static void bytes_that_are_no_row_are_refused(void)
{
    static const struct tn_type types[] = {T(BOOLEAN, 0, 0), T(VARCHAR, 0, 0), T(VARCHAR, 0, 0),
                                           T(TIMESTAMP, 9, 0)};
    static const struct tn_value values[] = {I(1), S("abc", 3), NIL, M(5, 999999)};
    struct tn_row_layout layout = make_layout(types, 4);
    unsigned char data[ROW_SIZE_MAX];
    struct tn_row row = pack(&layout, values, data);
    static const struct {
        uint32_t at;
        unsigned char byte;
    } damages[] = {
        {0, 0x14},  /* null bit behind the columns */
        {0, 0x05},  /* a NULL with a value */
        {1, 2},     /* no boolean */
        {2, 200},   /* ends behind the row */
        {2, 3},     /* ends before its start */
        {6, 23},    /* a NULL text with bytes */
        {20, 0xff}, /* nanos */
    };
    for (size_t i = 0; i < COUNT(damages); i++) {
        unsigned char before = data[damages[i].at];
        data[damages[i].at] = damages[i].byte;
        CHECK(!tn_row_valid(&layout, row));
        data[damages[i].at] = before;
    }
    for (uint32_t size = 0; size < row.size; size++) {
        CHECK(!tn_row_valid(&layout, (struct tn_row){data, size}));
    }
    CHECK(tn_row_valid(&layout, row));
}

static void nested_columns_are_refused(void)
{
    static const char *const names[] = {"list"};
    static const struct tn_type type = {.kind = TN_TYPE_ARRAY};
    struct tn_arena arena;
    struct tn_err err = {0};
    struct tn_row_layout layout;
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    tn_rc rc = tn_row_layout_init(&layout, names, &type, 1, &arena, &err);
    CHECK(rc == TN_UNSUPPORTED);
    CHECK(strstr(err.text, "list") != NULL);
}

static void rows_are_written_as_json_objects(void)
{
    static const char *const names[] = {"dev", "te\"mp", "ts"};
    static const struct tn_type types[] = {T(VARCHAR, 0, 0), T(DOUBLE, 0, 0), T(TIMESTAMP, 3, 0)};
    static const struct tn_value values[] = {S("gw-01", 5), F(21.5), NIL};
    static const uint32_t reversed[] = {2, 1};
    static const struct tn_columns some = {reversed, 2};
    unsigned char data[ROW_SIZE_MAX];
    unsigned char memory[128];
    struct tn_arena arena;
    struct tn_err err = {0};
    struct tn_row_layout layout;
    struct tn_buf buf;
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    tn_rc rc = tn_row_layout_init(&layout, names, types, 3, &arena, &err);
    CHECK_OK(rc, err);
    struct tn_row row = pack(&layout, values, data);

    tn_buf_init(&buf, memory, sizeof memory);
    tn_row_format_json(&layout, NULL, row, &buf);
    CHECK(tn_bytes_equal(tn_buf_bytes(&buf),
                         tn_bytes_of("{\"dev\":\"gw-01\",\"te\\\"mp\":21.5,\"ts\":null}")));
    tn_buf_init(&buf, memory, sizeof memory);
    tn_row_format_json(&layout, &some, row, &buf);
    CHECK(tn_bytes_equal(tn_buf_bytes(&buf), tn_bytes_of("{\"ts\":null,\"te\\\"mp\":21.5}")));
    tn_buf_init(&buf, memory, 10);
    tn_row_format_json(&layout, NULL, row, &buf);
    CHECK(buf.overflow);
}

static void row_kinds_read_back(void)
{
    for (int i = TN_ROW_INSERT; i <= TN_ROW_DELETE; i++) {
        enum tn_row_kind kind = TN_ROW_INSERT;
        CHECK(tn_row_kind_parse(tn_bytes_of(tn_row_kind_text((enum tn_row_kind)i)), &kind));
        CHECK((int)kind == i);
    }
    enum tn_row_kind kind;
    CHECK(!tn_row_kind_parse(tn_bytes_of("+D"), &kind));
    CHECK(!tn_row_kind_parse(tn_bytes_of("+I "), &kind));
}

static void columns_are_found_by_name(void)
{
    static const struct tn_type types[] = {T(INT, 0, 0), T(INT, 0, 0), T(INT, 0, 0)};
    struct tn_row_layout layout = make_layout(types, 3);
    CHECK(tn_row_layout_find(&layout, tn_bytes_of("c")) == 2);
    CHECK(tn_row_layout_find(&layout, tn_bytes_of("C")) == -1);
    CHECK(tn_row_layout_find(&layout, tn_bytes_of("")) == -1);
}

static const struct test tests[] = {
    TEST(buckets_are_those_of_paimon),
    TEST(binary_rows_are_those_of_paimon),
    TEST(a_bucket_key_that_is_too_long_is_an_error),
    TEST(damaged_binary_rows_are_refused_or_harmless),
    TEST(rows_order_as_their_values_do),
    TEST(packed_values_come_back),
    TEST(equal_rows_have_equal_bytes),
    TEST(binary_rows_of_random_rows_come_back),
    TEST(a_null_in_a_not_null_column_is_below_all),
    TEST(bytes_that_are_no_row_are_refused),
    TEST(nested_columns_are_refused),
    TEST(rows_are_written_as_json_objects),
    TEST(row_kinds_read_back),
    TEST(columns_are_found_by_name),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
