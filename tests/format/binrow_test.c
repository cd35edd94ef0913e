/* binrow against rows made by Paimon 1.3.1, random rows, and bad bytes. */
#include "format/binrow.h"

#include <inttypes.h>

#include "base/hash.h"
#include "check.h"

enum { ROW_MAX = 4096, FIELDS_MAX = 64 };

/* A row's fields, one word each: n NULL, i<width>:<number>, s:<hex of bytes>, t:<millis>,<nanos>,
 * d:<hex>; t:null and d:null are the NULLs that keep their place. */
struct vector {
    const char *name;
    const char *fields;
    const char *hex;
    int32_t hash;
};

static const struct vector vectors[] = {
    {"INT 1", "i4:1", "00000000000000000100000000000000", 1465514398},
    {"INT 42", "i4:42", "00000000000000002a00000000000000", 907821237},
    {"INT -1", "i4:-1", "0000000000000000ffffffff00000000", 1133687267},
    {"INT -2147483648", "i4:-2147483648", "00000000000000000000008000000000", 916225219},
    {"BIGINT 1", "i8:1", "00000000000000000100000000000000", 1465514398},
    {"BIGINT 1234567890123", "i8:1234567890123", "0000000000000000cb04fb711f010000", -1873221036},
    {"BIGINT -1", "i8:-1", "0000000000000000ffffffffffffffff", -821098432},
    {"BIGINT -9223372036854775808", "i8:-9223372036854775808", "00000000000000000000000000000080",
     302122119},
    {"TINYINT -5", "i1:-5", "0000000000000000fb00000000000000", -866908712},
    {"SMALLINT -300", "i2:-300", "0000000000000000d4fe000000000000", -887757019},
    {"STRING ''", "s:", "00000000000000000000000000000080", 302122119},
    {"STRING 'abcdefg' (7)", "s:61626364656667", "00000000000000006162636465666787", -1431907323},
    {"STRING 'abcdefgh' (8)", "s:6162636465666768",
     "000000000000000008000000100000006162636465666768", -843760178},
    {"STRING 'hello world, paimon'", "s:68656c6c6f20776f726c642c207061696d6f6e",
     "0000000000000000130000001000000068656c6c6f20776f726c642c207061696d6f6e0000000000",
     -2034202288},
    {"STRING 'é' (2 bytes)", "s:c3a9", "0000000000000000c3a9000000000082", -1531579217},
    {"STRING '中文' (6 bytes)", "s:e4b8ade69687", "0000000000000000e4b8ade696870086", 1956728004},
    {"STRING '中文文' (9 bytes)", "s:e4b8ade69687e69687",
     "00000000000000000900000010000000e4b8ade69687e6968700000000000000", 1109873794},
    {"CHAR(5) 'ab'", "s:6162", "00000000000000006162000000000082", -425866811},
    {"BYTES 00ff", "s:00ff", "000000000000000000ff000000000082", 979549812},
    {"BYTES 0102030405060708090a", "s:0102030405060708090a",
     "00000000000000000a000000100000000102030405060708090a000000000000", 835277419},
    {"BOOLEAN true", "i1:1", "00000000000000000100000000000000", 1465514398},
    {"FLOAT 1.5", "i4:1069547520", "00000000000000000000c03f00000000", -173842779},
    {"DOUBLE 1.5", "i8:4609434218613702656", "0000000000000000000000000000f83f", 1860889473},
    {"DOUBLE -0.0", "i8:-9223372036854775808", "00000000000000000000000000000080", 302122119},
    {"DECIMAL(10,2) 12345.67", "i8:1234567", "000000000000000087d6120000000000", 754928256},
    {"DECIMAL(10,2) -0.01", "i8:-1", "0000000000000000ffffffffffffffff", -821098432},
    {"DECIMAL(20,2) 12345.67", "d:12d687",
     "0000000000000000030000001000000012d68700000000000000000000000000", -1505263393},
    {"DECIMAL(20,2) -0.01", "d:ff",
     "00000000000000000100000010000000ff000000000000000000000000000000", 907730780},
    {"DECIMAL(38,10) 1234567890123456789012345678.0123456789", "d:0949b0f6f0023313c449904ecc674515",
     "000000000000000010000000100000000949b0f6f0023313c449904ecc674515", -1782561879},
    {"DECIMAL(20,2) NULL", "d:null",
     "0001000000000000000000001000000000000000000000000000000000000000", -1380280760},
    {"DATE 19000 (2022-01-08)", "i4:19000", "0000000000000000384a000000000000", -1241043695},
    {"DATE -1", "i4:-1", "0000000000000000ffffffff00000000", 1133687267},
    {"TIME 45296789 (12:34:56.789)", "i4:45296789", "0000000000000000952cb30200000000", 1815782997},
    {"TIMESTAMP(3) 1700000000123ms", "i8:1700000000123", "00000000000000007b68e5cf8b010000",
     -1285420957},
    {"TIMESTAMP(0) 1700000000000ms", "i8:1700000000000", "00000000000000000068e5cf8b010000",
     -234226969},
    {"TIMESTAMP(6) 1700000000123ms+456000ns", "t:1700000000123,456000",
     "000000000000000040f50600100000007b68e5cf8b010000", 1196670069},
    {"TIMESTAMP(9) 1700000000123ms+456789ns", "t:1700000000123,456789",
     "000000000000000055f80600100000007b68e5cf8b010000", -71831406},
    {"TIMESTAMP(6) -1ms+999000ns", "t:-1,999000",
     "0000000000000000583e0f0010000000ffffffffffffffff", 1236894319},
    {"TIMESTAMP(6) NULL", "t:null", "000100000000000000000000100000000000000000000000", -340882661},
    {"LTZ(6) 1700000000123ms+456000ns", "t:1700000000123,456000",
     "000000000000000040f50600100000007b68e5cf8b010000", 1196670069},
    {"INT NULL", "n", "00010000000000000000000000000000", -1748325344},
    {"(INT 1, STRING 'a')", "i4:1 s:61", "000000000000000001000000000000006100000000000081",
     -948407462},
    {"(STRING 'abcdefgh', BIGINT 7)", "s:6162636465666768 i8:7",
     "0000000000000000080000001800000007000000000000006162636465666768", 1367131410},
    {"(STRING 'abcdefgh', STRING '0123456789')", "s:6162636465666768 s:30313233343536373839",
     "000000000000000008000000180000000a00000020000000616263646566676830313233343536373839000000000"
     "000",
     -917426955},
    {"(INT NULL, INT 1)", "n i4:1", "000100000000000000000000000000000100000000000000",
     -2146858737},
    {"(INT 1, INT NULL)", "i4:1 n", "000200000000000001000000000000000000000000000000", -74682006},
    {"(TS(9) 1700000000123ms+456789ns, STRING 'abcdefgh', DECIMAL(20,2) 1.00)",
     "t:1700000000123,456789 s:6162636465666768 d:64",
     "000000000000000055f8060020000000080000002800000001000000300000007b68e5cf8b0100006162636465666"
     "76864000000000000000000000000000000",
     2117140498},
    {"STRING 'abcdefghijklmnop' (16)", "s:6162636465666768696a6b6c6d6e6f70",
     "000000000000000010000000100000006162636465666768696a6b6c6d6e6f70", -712211938},
    {"STRING '2024-01-01'", "s:323032342d30312d3031",
     "00000000000000000a00000010000000323032342d30312d3031000000000000", 306517490},
    {"DECIMAL(19,0) 999999999999999999", "d:0de0b6b3a763ffff",
     "000000000000000008000000100000000de0b6b3a763ffff0000000000000000", 1564988342},
    {"(TIMESTAMP(6) NULL, INT 1)", "t:null i4:1",
     "0001000000000000000000001800000001000000000000000000000000000000", -1665853308},
    {"(BIGINT 7, STRING 'abcdefgh')", "i8:7 s:6162636465666768",
     "0000000000000000070000000000000008000000180000006162636465666768", -231975178},
    {"(BIGINT 1, STRING 'a')", "i8:1 s:61", "000000000000000001000000000000006100000000000081",
     -948407462},
    {"(STRING NULL, INT NULL)", "n n", "000300000000000000000000000000000000000000000000",
     -1130415291},
    {"(STRING 'x', INT 1)", "s:78 i4:1", "000000000000000078000000000000810100000000000000",
     1430518205},
    {"(STRING 'x', INT NULL)", "s:78 n", "000200000000000078000000000000810000000000000000",
     1595324702},
    {"empty row (no columns)", "", "0000000000000000", -1670924195},
    {"STRING 'abcdefghi'", "s:616263646566676869",
     "0000000000000000090000001000000061626364656667686900000000000000", 890550442},
    {"(INT 1, STRING 'one', BIGINT 10)", "i4:1 s:6f6e65 i8:10",
     "000000000000000001000000000000006f6e6500000000830a00000000000000", 1785199350},
    {"TIMESTAMP(6) 2023-11-14T22:13:20.123456", "t:1700000000123,456000",
     "000000000000000040f50600100000007b68e5cf8b010000", 1196670069},
    {"(STRING '', DATE -1)", "s: i4:-1", "00000000000000000000000000000080ffffffff00000000",
     -1124636850},
    {"(STRING U+4E2D, DATE 19001)", "s:e4b8ad i4:19001",
     "0000000000000000e4b8ad0000000083394a000000000000", -2113618930},
};

static size_t unhex(const char *hex, size_t length, unsigned char *bytes)
{
    for (size_t i = 0; i < length / 2; i++) {
        unsigned value = 0;
        CHECK(sscanf(hex + 2 * i, "%2x", &value) == 1);
        bytes[i] = (unsigned char)value;
    }
    return length / 2;
}

static uint32_t count_fields(const char *fields)
{
    uint32_t count = fields[0] ? 1 : 0;
    for (const char *at = fields; *at; at++) {
        count += *at == ' ';
    }
    return count;
}

static bool is_null(const char *word)
{
    size_t length = strcspn(word, " ");
    return length == 1 || (length == 6 && memcmp(word + 2, "null", 4) == 0);
}

static void write_field(struct tn_binrow_writer *writer, uint32_t field, const char *word)
{
    unsigned char bytes[64];
    size_t length = strcspn(word, " ");
    bool null = is_null(word);
    int64_t number = 0;
    unsigned width = 0;
    uint32_t nanos = 0;
    switch (word[0]) {
    case 'n':
        tn_binrow_null(writer, field);
        return;
    case 'i':
        CHECK(sscanf(word, "i%u:%" SCNd64, &width, &number) == 2);
        tn_binrow_fixed(writer, field, (uint64_t)number, width);
        return;
    case 's':
        tn_binrow_bytes(writer, field,
                        (struct tn_bytes){bytes, unhex(word + 2, length - 2, bytes)});
        return;
    case 't':
        CHECK(null || sscanf(word, "t:%" SCNd64 ",%" SCNu32, &number, &nanos) == 2);
        tn_binrow_time(writer, field, null, number, nanos);
        return;
    default:
        tn_binrow_decimal(writer, field, null,
                          (struct tn_bytes){bytes, null ? 0 : unhex(word + 2, length - 2, bytes)});
        return;
    }
}

static void write_row(const char *fields, bool prefix, struct tn_buf *buf)
{
    struct tn_binrow_writer writer;
    tn_binrow_begin(&writer, buf, count_fields(fields), prefix);
    const char *word = fields;
    for (uint32_t i = 0; i < writer.arity; i++) {
        write_field(&writer, i, word);
        word += strcspn(word, " ") + 1;
    }
}

static void rows_and_hashes_are_those_of_paimon(void)
{
    CHECK(COUNT(vectors) >= 57);
    for (size_t i = 0; i < COUNT(vectors); i++) {
        unsigned char memory[512];
        unsigned char expected[512];
        struct tn_buf buf;
        tn_buf_init(&buf, memory, sizeof memory);
        write_row(vectors[i].fields, false, &buf);
        size_t size = unhex(vectors[i].hex, strlen(vectors[i].hex), expected);
        if (buf.size != size || memcmp(memory, expected, size) != 0 ||
            tn_hash_murmur(tn_buf_bytes(&buf)) != vectors[i].hash) {
            (void)fprintf(stderr, "%s\n", vectors[i].name);
            CHECK(false);
        }
    }
}

static void read_field(const struct tn_binrow *row, uint32_t field, const char *word)
{
    unsigned char expected[64];
    size_t length = strcspn(word, " ");
    struct tn_bytes bytes = {expected, 0};
    int64_t number = 0;
    int64_t millis = 0;
    unsigned width = 0;
    uint32_t nanos = 0;
    uint32_t read_nanos = 0;
    bool null = is_null(word);
    CHECK(tn_binrow_is_null(row, field) == null);
    if (null) {
        return;
    }
    bool ok = true;
    switch (word[0]) {
    case 'i':
        CHECK(sscanf(word, "i%u:%" SCNd64, &width, &number) == 2);
        uint64_t mask = width == 8 ? UINT64_MAX : (1ull << 8 * width) - 1;
        CHECK(tn_binrow_slot(row, field) == ((uint64_t)number & mask));
        return;
    case 't':
        CHECK(sscanf(word, "t:%" SCNd64 ",%" SCNu32, &number, &nanos) == 2);
        ok = tn_binrow_get_time(row, field, &millis, &read_nanos);
        CHECK(ok && millis == number && read_nanos == nanos);
        return;
    case 's':
        ok = tn_binrow_get_bytes(row, field, &bytes);
        break;
    default:
        ok = tn_binrow_get_decimal(row, field, &bytes);
        break;
    }
    CHECK(ok && bytes.size == unhex(word + 2, length - 2, expected));
    CHECK(memcmp(bytes.data, expected, bytes.size) == 0);
}

static void what_was_written_is_read_back(void)
{
    for (size_t i = 0; i < COUNT(vectors); i++) {
        unsigned char memory[512];
        struct tn_buf buf;
        struct tn_binrow row;
        struct tn_err err = {0};
        tn_buf_init(&buf, memory, sizeof memory);
        write_row(vectors[i].fields, true, &buf);
        tn_rc rc = tn_binrow_open(tn_buf_bytes(&buf), count_fields(vectors[i].fields), &row, &err);
        CHECK_OK(rc, err);
        const char *word = vectors[i].fields;
        for (uint32_t field = 0; field < row.arity; field++) {
            read_field(&row, field, word);
            word += strcspn(word, " ") + 1;
        }
    }
}

/* Spec 6.1: 56 fields still fit one word of null bits, the 57th begins another. */
static void null_bits_grow_after_56_fields(void)
{
    static const struct {
        uint32_t arity;
        size_t size;
        size_t null_byte; /* counted with the arity */
        unsigned char bits;
    } cases[] = {{56, 460, 11, 0x80}, {57, 476, 12, 0x01}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char memory[512];
        struct tn_buf buf;
        struct tn_binrow_writer writer;
        tn_buf_init(&buf, memory, sizeof memory);
        tn_binrow_begin(&writer, &buf, cases[i].arity, true);
        tn_binrow_fixed(&writer, 0, 1, 4);
        tn_binrow_null(&writer, cases[i].arity - 1);
        CHECK(buf.size == cases[i].size);
        CHECK(memory[3] == cases[i].arity);
        CHECK(memory[cases[i].null_byte] == cases[i].bits);
    }
}

static void the_row_of_no_fields_is_twelve_zeroes(void)
{
    unsigned char memory[32];
    struct tn_buf buf;
    struct tn_binrow_writer writer;
    tn_buf_init(&buf, memory, sizeof memory);
    tn_binrow_begin(&writer, &buf, 0, true);
    CHECK(buf.size == 12 && tn_bytes_equal(tn_buf_bytes(&buf), tn_binrow_empty));
}

/* Each prefix of the memory a row needs: the buffer says overflow, and nothing behind it is
 * touched. */
static void a_small_buffer_overflows_and_keeps_its_bounds(void)
{
    static const char fields[] = "i4:1 s:6162636465666768 t:1700000000123,456789 d:64 s:61 n";
    unsigned char memory[256];
    struct tn_buf buf;
    tn_buf_init(&buf, memory, sizeof memory);
    write_row(fields, true, &buf);
    size_t size = buf.size;
    CHECK(!buf.overflow);
    for (size_t capacity = 0; capacity < size; capacity++) {
        memset(memory, 0xEE, sizeof memory);
        tn_buf_init(&buf, memory, capacity);
        write_row(fields, true, &buf);
        CHECK(buf.overflow);
        CHECK(memory[capacity] == 0xEE && memory[capacity + 1] == 0xEE);
    }
}

static void bad_rows_are_refused(void)
{
    unsigned char memory[256];
    struct tn_buf buf;
    struct tn_binrow row;
    struct tn_err err = {0};
    struct tn_bytes bytes;
    int64_t millis;
    uint32_t nanos;
    tn_buf_init(&buf, memory, sizeof memory);
    write_row("s:6162636465666768 t:1,2 d:64", true, &buf);
    CHECK(tn_binrow_open(tn_buf_bytes(&buf), 2, &row, &err) == TN_CORRUPT);
    for (size_t size = 0; size < 4 + 8 + 24; size++) {
        CHECK(tn_binrow_open((struct tn_bytes){memory, size}, 3, &row, &err) == TN_CORRUPT);
    }
    tn_rc rc = tn_binrow_open((struct tn_bytes){memory, 4 + 8 + 24}, 3, &row, &err);
    CHECK_OK(rc, err);
    CHECK(!tn_binrow_get_bytes(&row, 0, &bytes));
    CHECK(!tn_binrow_get_time(&row, 1, &millis, &nanos));
    CHECK(!tn_binrow_get_decimal(&row, 2, &bytes));
    memset(memory + 12, 0xFF, 24); /* inline sizes, lengths and offsets beyond everything */
    CHECK(!tn_binrow_get_bytes(&row, 0, &bytes));
    CHECK(!tn_binrow_get_time(&row, 1, &millis, &nanos));
    CHECK(!tn_binrow_get_decimal(&row, 2, &bytes));
    struct tn_bytes huge = {memory, sizeof memory};
    memset(memory, 0xFF, 4);
    CHECK(tn_binrow_open(huge, UINT32_MAX, &row, &err) == TN_CORRUPT);
}

static const struct test tests[] = {
    TEST(rows_and_hashes_are_those_of_paimon),
    TEST(what_was_written_is_read_back),
    TEST(null_bits_grow_after_56_fields),
    TEST(the_row_of_no_fields_is_twelve_zeroes),
    TEST(a_small_buffer_overflows_and_keeps_its_bounds),
    TEST(bad_rows_are_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
