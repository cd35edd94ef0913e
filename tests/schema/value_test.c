/* value: texts in and out. Floats against Python's repr and Java's toString (golden/values), the
 * others by tables of texts, by round trips of random values, and by random junk. */
#include "schema/value.h"

#include <inttypes.h>
#include <math.h>

#include "check.h"
#include "random.h"

enum { TEXT_SIZE_MAX = 256 };

#define T(KIND, PRECISION, SCALE, LENGTH)              \
    {                                                  \
        TN_TYPE_##KIND, true, PRECISION, SCALE, LENGTH \
    }

static uint64_t state;

/* ---- texts and their values ---- */

struct reading {
    struct tn_type type;
    enum tn_epoch epoch;
    const char *text;
    const char *json; /* of the value; or what the error says, after a '!' */
};

static const struct reading readings[] = {
    {T(BOOLEAN, 0, 0, 0), 0, "true", "true"},
    {T(BOOLEAN, 0, 0, 0), 0, "FALSE", "false"},
    {T(BOOLEAN, 0, 0, 0), 0, "1", "!'1' is no BOOLEAN"},
    {T(BOOLEAN, 0, 0, 0), 0, "tru", "!is no"},

    {T(TINYINT, 0, 0, 0), 0, "-128", "-128"},
    {T(TINYINT, 0, 0, 0), 0, "+127", "127"},
    {T(TINYINT, 0, 0, 0), 0, "300", "!300 does not fit TINYINT"},
    {T(SMALLINT, 0, 0, 0), 0, "-32769", "!-32769 does not fit SMALLINT"},
    {T(INT, 0, 0, 0), 0, "2147483647", "2147483647"},
    {T(INT, 0, 0, 0), 0, "2147483648", "!2147483648 does not fit INT"},
    {T(INT, 0, 0, 0), 0, "000000000000000000000000000000007", "7"},
    {T(INT, 0, 0, 0), 0, "1.0", "1"},
    {T(INT, 0, 0, 0), 0, "12e2", "1200"},
    {T(INT, 0, 0, 0), 0, "1.5", "!'1.5' is no INT"},
    {T(INT, 0, 0, 0), 0, "", "!'' is no INT"},
    {T(INT, 0, 0, 0), 0, "-", "!is no INT"},
    {T(INT, 0, 0, 0), 0, " 1", "!is no INT"},
    {T(INT, 0, 0, 0), 0, "0x10", "!is no INT"},
    {T(BIGINT, 0, 0, 0), 0, "9223372036854775807", "9223372036854775807"},
    {T(BIGINT, 0, 0, 0), 0, "-9223372036854775808", "-9223372036854775808"},
    {T(BIGINT, 0, 0, 0), 0, "9223372036854775808", "!does not fit BIGINT"},
    {T(BIGINT, 0, 0, 0), 0, "-9223372036854775809", "!does not fit BIGINT"},
    {T(BIGINT, 0, 0, 0), 0, "18446744073709551616", "!does not fit BIGINT"},
    {T(BIGINT, 0, 0, 0), 0, "9007199254740993.0", "9007199254740993"},

    {T(DOUBLE, 0, 0, 0), 0, "21.5", "21.5"},
    {T(DOUBLE, 0, 0, 0), 0, "-0", "-0.0"},
    {T(DOUBLE, 0, 0, 0), 0, "1e22", "1e+22"},
    {T(DOUBLE, 0, 0, 0), 0, "1E23", "1e+23"},
    {T(DOUBLE, 0, 0, 0), 0, "0.0001", "0.0001"},
    {T(DOUBLE, 0, 0, 0), 0, "0.00001", "1e-05"},
    {T(DOUBLE, 0, 0, 0), 0, "1e16", "1e+16"},
    {T(DOUBLE, 0, 0, 0), 0, "9999999999999998", "9999999999999998.0"},
    {T(DOUBLE, 0, 0, 0), 0, "1e-400", "0.0"},
    {T(DOUBLE, 0, 0, 0), 0, "5e-324", "5e-324"},
    {T(DOUBLE, 0, 0, 0), 0, "1.7976931348623157e308", "1.7976931348623157e+308"},
    {T(DOUBLE, 0, 0, 0), 0, "1e309", "!1e309 does not fit DOUBLE"},
    {T(DOUBLE, 0, 0, 0), 0, "0e99999999999999999999", "0.0"},
    {T(DOUBLE, 0, 0, 0), 0, "NaN", "\"NaN\""},
    {T(DOUBLE, 0, 0, 0), 0, "-infinity", "\"-Infinity\""},
    {T(DOUBLE, 0, 0, 0), 0, "+Infinity", "\"Infinity\""},
    {T(DOUBLE, 0, 0, 0), 0, "1e", "!'1e' is no DOUBLE"},
    {T(DOUBLE, 0, 0, 0), 0, ".", "!is no DOUBLE"},
    {T(DOUBLE, 0, 0, 0), 0, "0x1p3", "!is no DOUBLE"},
    {T(DOUBLE, 0, 0, 0), 0, "1,5", "!is no DOUBLE"},
    {T(FLOAT, 0, 0, 0), 0, "0.1", "0.1"},
    {T(FLOAT, 0, 0, 0), 0, "3.4028235e38", "3.4028235e+38"},
    {T(FLOAT, 0, 0, 0), 0, "3.4028236e38", "!does not fit FLOAT"},
    /* Half-way between two floats as a double; above it as a text. */
    {T(FLOAT, 0, 0, 0), 0, "1.00000005960464477539062500000000000001", "1.0000001"},
    {T(FLOAT, 0, 0, 0), 0, "1.000000059604644775390625", "1.0"},

    {T(DECIMAL, 4, 2, 0), 0, "12.3", "\"12.30\""},
    {T(DECIMAL, 4, 2, 0), 0, "-.5", "\"-0.50\""},
    {T(DECIMAL, 4, 2, 0), 0, "12.34000", "\"12.34\""},
    {T(DECIMAL, 4, 2, 0), 0, "1234e-2", "\"12.34\""},
    {T(DECIMAL, 4, 2, 0), 0, "0.1234e2", "\"12.34\""},
    {T(DECIMAL, 4, 2, 0), 0, "0e999999999999", "\"0.00\""},
    {T(DECIMAL, 4, 2, 0), 0, "-0", "\"0.00\""},
    {T(DECIMAL, 4, 2, 0), 0, "12.345", "!12.345 has more than 2 digits behind the point"},
    {T(DECIMAL, 4, 2, 0), 0, "1e-3", "!more than 2 digits"},
    {T(DECIMAL, 4, 2, 0), 0, "100", "!100 does not fit DECIMAL(4, 2)"},
    {T(DECIMAL, 4, 2, 0), 0, "1e99999999999", "!does not fit DECIMAL(4, 2)"},
    {T(DECIMAL, 4, 2, 0), 0, "1.", "\"1.00\""},
    {T(DECIMAL, 4, 2, 0), 0, "", "!'' is no DECIMAL"},
    {T(DECIMAL, 4, 2, 0), 0, "1.2.3", "!is no DECIMAL"},
    {T(DECIMAL, 5, 0, 0), 0, "12345", "\"12345\""},
    {T(DECIMAL, 38, 10, 0), 0, "-1234567890123456789012345678.0123456789",
     "\"-1234567890123456789012345678.0123456789\""},
    {T(DECIMAL, 38, 0, 0), 0, "99999999999999999999999999999999999999",
     "\"99999999999999999999999999999999999999\""},
    {T(DECIMAL, 38, 0, 0), 0, "100000000000000000000000000000000000000", "!does not fit"},
    {T(DECIMAL, 38, 38, 0), 0, "1e-38", "\"0.00000000000000000000000000000000000001\""},

    {T(VARCHAR, 0, 0, 3), 0, "\xe4\xb8\xad\xe6\x96\x87x", "\"\xe4\xb8\xad\xe6\x96\x87x\""},
    {T(VARCHAR, 0, 0, 3), 0, "abcd", "!'abcd' does not fit VARCHAR(3)"},
    {T(CHAR, 0, 0, 3), 0, "ab", "\"ab\""},
    {T(CHAR, 0, 0, 8), 0, "abcdefgh\xc3\xa9", "!does not fit CHAR(8)"},
    {T(VARCHAR, 0, 0, 99), 0, "\"\\\n\r\t\b\f\x01\x1f\x7f/",
     "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001f\x7f/\""},
    {T(VARCHAR, 0, 0, 99), 0, "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
    {T(VARCHAR, 0, 0, 99), 0, "\xc0\x80", "!no UTF-8"},
    {T(VARCHAR, 0, 0, 99), 0, "\xed\xa0\x80", "!no UTF-8"},
    {T(VARCHAR, 0, 0, 99), 0, "\xf4\x90\x80\x80", "!no UTF-8"},
    {T(VARCHAR, 0, 0, 99), 0, "abcdefg\xe4\xb8", "!no UTF-8"},

    {T(VARBINARY, 0, 0, 3), 0, "00fFa1", "\"00ffa1\""},
    {T(VARBINARY, 0, 0, 3), 0, "", "\"\""},
    {T(VARBINARY, 0, 0, 3), 0, "00000000", "!does not fit VARBINARY(3)"},
    {T(VARBINARY, 0, 0, 3), 0, "0g", "!is no hex"},
    {T(VARBINARY, 0, 0, 3), 0, "000", "!odd number"},
    {T(BINARY, 0, 0, 2), 0, "abcd", "\"abcd\""},
    {T(BINARY, 0, 0, 2), 0, "ab", "\"ab\""},
    {T(BINARY, 0, 0, 2), 0, "abcdef", "!does not fit BINARY(2)"},

    {T(DATE, 0, 0, 0), 0, "2022-01-08", "\"2022-01-08\""},
    {T(DATE, 0, 0, 0), 0, "2024-02-29", "\"2024-02-29\""},
    {T(DATE, 0, 0, 0), 0, "1900-02-29", "!'1900-02-29' is no DATE"},
    {T(DATE, 0, 0, 0), 0, "+10000-01-01", "\"+10000-01-01\""},
    {T(DATE, 0, 0, 0), 0, "-0001-12-31", "\"-0001-12-31\""},
    {T(DATE, 0, 0, 0), 0, "0000-01-01", "\"0000-01-01\""},
    {T(DATE, 0, 0, 0), 0, "+5881580-07-11", "\"+5881580-07-11\""},
    {T(DATE, 0, 0, 0), 0, "+5881580-07-12", "!does not fit DATE"},
    {T(DATE, 0, 0, 0), 0, "-5877641-06-23", "\"-5877641-06-23\""},
    {T(DATE, 0, 0, 0), 0, "+999999999-01-01", "!is no DATE"},
    {T(DATE, 0, 0, 0), 0, "10000-01-01", "!is no DATE"},
    {T(DATE, 0, 0, 0), 0, "2022-1-8", "!is no DATE"},
    {T(DATE, 0, 0, 0), 0, "2022-00-08", "!is no DATE"},
    {T(DATE, 0, 0, 0), 0, "19000", "!is a number"},
    {T(DATE, 0, 0, 0), TN_EPOCH_S, "1641600000", "\"2022-01-08\""},
    {T(DATE, 0, 0, 0), TN_EPOCH_S, "1641600001", "!is not midnight"},

    {T(TIME, 3, 0, 0), 0, "12:34:56.789", "\"12:34:56.789\""},
    {T(TIME, 0, 0, 0), 0, "12:34", "\"12:34:00.000\""},
    {T(TIME, 3, 0, 0), 0, "23:59:59.9", "\"23:59:59.900\""},
    {T(TIME, 9, 0, 0), 0, "12:34:56.1234", "!more digits of a second"},
    {T(TIME, 3, 0, 0), 0, "24:00:00", "!is no TIME"},
    {T(TIME, 3, 0, 0), TN_EPOCH_MS, "45296789", "\"12:34:56.789\""},
    {T(TIME, 3, 0, 0), TN_EPOCH_S, "86400", "!does not fit TIME"},

    {T(TIMESTAMP, 3, 0, 0), 0, "2023-11-14T22:13:20.123", "\"2023-11-14T22:13:20.123000000\""},
    {T(TIMESTAMP, 3, 0, 0), 0, "2023-11-14 22:13:20", "\"2023-11-14T22:13:20.000000000\""},
    {T(TIMESTAMP, 3, 0, 0), 0, "2023-11-14T22:13:20.1230000000000",
     "\"2023-11-14T22:13:20.123000000\""},
    {T(TIMESTAMP, 3, 0, 0), 0, "2023-11-14T22:13:20.1234", "!more digits of a second"},
    {T(TIMESTAMP, 9, 0, 0), 0, "1969-12-31T23:59:59.999999999",
     "\"1969-12-31T23:59:59.999999999\""},
    {T(TIMESTAMP, 9, 0, 0), 0, "2023-11-14T22:13:20.1234567891", "!is no TIMESTAMP"},
    {T(TIMESTAMP, 6, 0, 0), 0, "2023-11-14T22:13:20Z", "!is no TIMESTAMP"},
    {T(TIMESTAMP, 6, 0, 0), 0, "2023-11-14", "!is no TIMESTAMP"},
    {T(TIMESTAMP, 6, 0, 0), 0, "2023-11-14T22:13:20.", "!is no TIMESTAMP"},
    {T(TIMESTAMP, 3, 0, 0), 0, "+292000000-01-01T00:00:00",
     "\"+292000000-01-01T00:00:00.000000000\""},
    {T(TIMESTAMP, 3, 0, 0), 0, "+300000000-01-01T00:00:00", "!is no TIMESTAMP"},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-14T22:13:20.123456Z",
     "\"2023-11-14T22:13:20.123456000Z\""},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-15 00:13:20+02:00",
     "\"2023-11-14T22:13:20.000000000Z\""},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-14T16:43:20-0530",
     "\"2023-11-14T22:13:20.000000000Z\""},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-14T22:13:20+00", "\"2023-11-14T22:13:20.000000000Z\""},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-14T22:13:20", "\"2023-11-14T22:13:20.000000000Z\""},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-14T22:13:20+19:00", "!is no TIMESTAMP"},
    {T(TIMESTAMP_LTZ, 6, 0, 0), 0, "2023-11-14T22:13:20+18:01", "!is no TIMESTAMP"},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_MS, "1700000000123", "\"2023-11-14T22:13:20.123000000\""},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_S, "1700000000", "\"2023-11-14T22:13:20.000000000\""},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_S, "1700000000.123", "\"2023-11-14T22:13:20.123000000\""},
    {T(TIMESTAMP, 6, 0, 0), TN_EPOCH_US, "-1", "\"1969-12-31T23:59:59.999999000\""},
    {T(TIMESTAMP, 9, 0, 0), TN_EPOCH_NS, "-1", "\"1969-12-31T23:59:59.999999999\""},
    {T(TIMESTAMP, 9, 0, 0), TN_EPOCH_S, "-0.000000001", "\"1969-12-31T23:59:59.999999999\""},
    {T(TIMESTAMP, 9, 0, 0), TN_EPOCH_MS, "-1.5", "\"1969-12-31T23:59:59.998500000\""},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_US, "1", "!more digits of a second"},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_S, "9223372036854775807", "!is no TIMESTAMP"},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_MS, "9223372036854775807",
     "\"+292278994-08-17T07:12:55.807000000\""},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_MS, "-9223372036854775808",
     "\"-292275055-05-16T16:47:04.192000000\""},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_MS, "2023-11-14T22:13:20",
     "\"2023-11-14T22:13:20.000000000\""},
    {T(TIMESTAMP, 3, 0, 0), TN_EPOCH_NONE, "1700000000123", "!no unit is known"},

    {T(ARRAY, 0, 0, 0), 0, "[]", "!ARRAY values are not read"},
};

/* A copy of its own size, so that a byte too many is seen. */
static tn_rc parse(const struct tn_type *type, enum tn_epoch epoch, struct tn_bytes text,
                   struct tn_buf *scratch, struct tn_value *value, struct tn_err *err)
{
    unsigned char *copy = malloc(text.size + 1);
    memcpy(copy, text.data, text.size);
    *err = (struct tn_err){0};
    tn_rc rc = tn_value_parse(type, epoch, (struct tn_bytes){copy, text.size}, scratch, value, err);
    if (rc == TN_OK && tn_type_textual(type->kind)) {
        tn_buf_append(scratch, value->as.bytes.data, value->as.bytes.size);
        value->as.bytes.data = scratch->data + scratch->size - value->as.bytes.size;
    }
    free(copy);
    return rc;
}

static void check_reading(const struct reading *r)
{
    unsigned char memory[2][TEXT_SIZE_MAX];
    struct tn_buf scratch;
    struct tn_buf json;
    struct tn_value value = {.as.i64 = 0x5a5a};
    struct tn_err err;
    tn_buf_init(&scratch, memory[0], sizeof memory[0]);
    tn_buf_init(&json, memory[1], sizeof memory[1]);
    tn_rc rc = parse(&r->type, r->epoch, tn_bytes_of(r->text), &scratch, &value, &err);
    if (r->json[0] == '!') {
        if (rc == TN_OK || !strstr(err.text, r->json + 1)) {
            (void)fprintf(stderr, "%s: %d, %s\n", r->text, rc, err.text);
        }
        CHECK(rc == TN_INVALID || rc == TN_UNSUPPORTED);
        CHECK(strstr(err.text, r->json + 1));
        CHECK(value.as.i64 == 0x5a5a); /* untouched */
        return;
    }
    if (rc != TN_OK) {
        (void)fprintf(stderr, "%s: ", r->text);
    }
    CHECK_OK(rc, err);
    tn_value_format_json(&r->type, &value, &json);
    CHECK(!json.overflow);
    if (!tn_bytes_equal(tn_buf_bytes(&json), tn_bytes_of(r->json))) {
        (void)fprintf(stderr, "%s: %.*s\n", r->text, (int)json.size, (const char *)json.data);
    }
    CHECK(tn_bytes_equal(tn_buf_bytes(&json), tn_bytes_of(r->json)));
}

static void texts_are_read_or_refused_with_a_reason(void)
{
    for (size_t i = 0; i < COUNT(readings); i++) {
        check_reading(&readings[i]);
    }
}

/* ---- golden floats ---- */

static bool is_text(const struct tn_buf *buf, const char *text)
{
    return !buf->overflow && tn_bytes_equal(tn_buf_bytes(buf), tn_bytes_of(text));
}

static void check_double(uint64_t bits, const char *python, const char *java)
{
    unsigned char memory[64];
    struct tn_buf buf;
    double value = 0;
    double again = 0;
    memcpy(&value, &bits, sizeof value);
    tn_buf_init(&buf, memory, sizeof memory);
    tn_double_format(&buf, value);
    CHECK(is_text(&buf, python));
    if (isfinite(value)) {
        CHECK(tn_double_parse(tn_buf_bytes(&buf), &again));
        CHECK(memcmp(&again, &value, sizeof value) == 0);
    }
    tn_buf_init(&buf, memory, sizeof memory);
    tn_double_format_java(&buf, value);
    CHECK(is_text(&buf, java));
}

static void check_float(uint64_t bits, const char *python, const char *java)
{
    unsigned char memory[64];
    struct tn_buf buf;
    uint32_t narrow = (uint32_t)bits;
    float value = 0;
    float again = 0;
    memcpy(&value, &narrow, sizeof value);
    tn_buf_init(&buf, memory, sizeof memory);
    tn_float_format(&buf, value);
    CHECK(is_text(&buf, python));
    if (isfinite(value)) {
        CHECK(tn_float_parse(tn_buf_bytes(&buf), &again));
        CHECK(memcmp(&again, &value, sizeof value) == 0);
    }
    tn_buf_init(&buf, memory, sizeof memory);
    tn_float_format_java(&buf, value);
    CHECK(is_text(&buf, java));
}

/* Lines of "bits python java". */
static int check_file(const char *path, void (*check)(uint64_t, const char *, const char *))
{
    FILE *file = fopen(path, "r");
    CHECK(file);
    int count = 0;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        uint64_t bits = 0;
        char python[64];
        char java[64];
        if (line[0] != '#') {
            CHECK(sscanf(line, "%" SCNx64 " %63s %63s", &bits, python, java) == 3);
            check(bits, python, java);
            count++;
        }
    }
    (void)fclose(file);
    return count;
}

static void floats_are_written_as_python_and_java_do(void)
{
    CHECK(check_file("tests/golden/values/doubles.txt", check_double) > 2000);
    CHECK(check_file("tests/golden/values/floats.txt", check_float) > 2000);
}

static void any_double_reads_back(void)
{
    state = 31;
    for (int i = 0; i < 20000; i++) {
        unsigned char memory[64];
        struct tn_buf buf;
        uint64_t bits = random_next(&state);
        double value = 0;
        double again = 0;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        tn_buf_init(&buf, memory, sizeof memory);
        tn_double_format(&buf, value);
        CHECK(tn_double_parse(tn_buf_bytes(&buf), &again));
        CHECK(memcmp(&again, &value, sizeof value) == 0);
    }
}

static void check_nearest(const char *text)
{
    double value = 0;
    float narrow = 0;
    CHECK(tn_double_parse(tn_bytes_of(text), &value));
    CHECK(value == strtod(text, NULL));
    CHECK(tn_float_parse(tn_bytes_of(text), &narrow));
    CHECK(narrow == strtof(text, NULL));
}

static void short_decimals_are_the_nearest(void)
{
    state = 32;
    for (int i = 0; i < 100000; i++) {
        char text[80];
        uint64_t digits = random_next(&state) >> random_below(&state, 64);
        (void)snprintf(text, sizeof text, "%s%" PRIu64 "%se%d", random_below(&state, 2) ? "-" : "",
                       digits, random_below(&state, 2) ? ".25" : "",
                       (int)random_below(&state, 80) - 40);
        check_nearest(text);
    }
}

/* The middle of two floats is a double: rounding twice would go wrong at it, and a hair above. */
static void middles_of_floats_are_not_rounded_twice(void)
{
    state = 36;
    for (int i = 0; i < 20000; i++) {
        char text[256];
        double middle =
            ldexp((double)(random_next(&state) >> 40 << 1 | 1), -(int)random_below(&state, 100));
        int length = snprintf(text, sizeof text, "%.150f", middle);
        text[length - 1] = (char)('0' + random_below(&state, 2));
        check_nearest(text);
        /* In so few digits that no library is asked: the nearest double is often the middle. */
        middle = ldexp((double)(UINT64_C(1) << 24 | random_next(&state) >> 40 | 1), 101);
        (void)snprintf(text, sizeof text, "%.0fe22", middle / 1e22);
        check_nearest(text);
    }
}

/* Middles of neighbouring doubles have up to 767 digits, and one digit far behind decides. */
static void a_late_digit_breaks_a_tie(void)
{
    char text[1200];
    /* 1 + 2^-53 lies between 1 and the next double. */
    int length = snprintf(text, sizeof text, "%s%0*d",
                          "1.00000000000000011102230246251565404236316680908203125", 1000, 0);
    double value = 0;
    CHECK(tn_double_parse(tn_bytes_of(text), &value) && value == 1.0);
    text[length - 1] = '1';
    CHECK(tn_double_parse(tn_bytes_of(text), &value) && value == nextafter(1.0, 2.0));
}

/* ---- random values of all types ---- */

static struct tn_type draw_type(void)
{
    struct tn_type type = {.kind = (enum tn_type_kind)random_below(&state, TN_TYPE_ARRAY),
                           .nullable = true,
                           .length = TN_LENGTH_MAX};
    bool decimal = type.kind == TN_TYPE_DECIMAL;
    type.precision = (uint8_t)(decimal ? 1 + random_below(&state, 38) : random_below(&state, 10));
    type.scale = (uint8_t)(decimal ? random_below(&state, type.precision + 1U) : 0);
    return type;
}

static struct tn_i128 draw_decimal(uint32_t precision)
{
    struct tn_i128 value = tn_i128_of(0);
    bool negative = random_below(&state, 2);
    uint32_t digits = random_below(&state, precision + 1);
    for (uint32_t i = 0; i < digits; i++) {
        CHECK(tn_i128_push_digit(&value, random_below(&state, 10), negative));
    }
    CHECK(tn_i128_fits(value, precision));
    return value;
}

static uint32_t whole_power(uint32_t exponent)
{
    return exponent == 0 ? 1 : 10 * (exponent > 1 ? (uint32_t)pow(10, exponent - 1) : 1);
}

/* Cuts an instant to the digits that the type has. */
static void cut_time(const struct tn_type *type, struct tn_value *value)
{
    uint32_t p = type->precision;
    if (p <= 3) {
        int64_t unit = whole_power(3 - p);
        value->as.i64 = value->as.i64 / unit * unit;
        value->nanos = 0;
    } else {
        uint32_t unit = whole_power(9 - p);
        value->nanos = value->nanos / unit * unit;
    }
}

static struct tn_value draw_value(const struct tn_type *type, unsigned char *bytes)
{
    struct tn_value value = {.as.i64 =
                                 (int64_t)(random_next(&state) >> 1 >> random_below(&state, 63))};
    uint32_t size = random_below(&state, 20);
    float narrow = 0;
    uint32_t bits = (uint32_t)random_next(&state);
    switch ((int)type->kind) {
    case TN_TYPE_BOOLEAN:
        value.as.i64 &= 1;
        break;
    case TN_TYPE_TINYINT:
        value.as.i64 = (int8_t)value.as.i64;
        break;
    case TN_TYPE_SMALLINT:
        value.as.i64 = (int16_t)value.as.i64;
        break;
    case TN_TYPE_INT:
    case TN_TYPE_DATE:
        value.as.i64 = (int32_t)value.as.i64;
        break;
    case TN_TYPE_FLOAT:
        memcpy(&narrow, &bits, sizeof narrow);
        value.as.f64 = (double)narrow;
        break;
    case TN_TYPE_DECIMAL:
        value.as.i128 = draw_decimal(type->precision);
        break;
    case TN_TYPE_TIME:
        value.as.i64 %= 86400000;
        cut_time(type, &value);
        break;
    case TN_TYPE_TIMESTAMP:
    case TN_TYPE_TIMESTAMP_LTZ:
        value.as.i64 = (random_below(&state, 2) ? value.as.i64 : -value.as.i64) / 2;
        value.nanos = random_below(&state, 1000000);
        cut_time(type, &value);
        break;
    case TN_TYPE_CHAR:
    case TN_TYPE_VARCHAR:
    case TN_TYPE_BINARY:
    case TN_TYPE_VARBINARY:
        for (uint32_t i = 0; i < size; i++) {
            bytes[i] = (unsigned char)(random_below(&state, 256) &
                                       (tn_type_textual(type->kind) ? 127 : 255));
        }
        value.as.bytes = (struct tn_bytes){bytes, size};
        break;
    }
    return value;
}

static void any_value_reads_back_from_its_text(void)
{
    state = 33;
    for (int i = 0; i < 100000; i++) {
        unsigned char bytes[20];
        unsigned char memory[2][TEXT_SIZE_MAX];
        struct tn_type type = draw_type();
        struct tn_value value = draw_value(&type, bytes);
        struct tn_value again;
        struct tn_err err;
        struct tn_buf text;
        struct tn_buf scratch;
        tn_buf_init(&text, memory[0], sizeof memory[0]);
        tn_buf_init(&scratch, memory[1], sizeof memory[1]);
        tn_value_format_text(&type, &value, &text);
        type.length = type.kind == TN_TYPE_BINARY ? (int32_t)value.as.bytes.size : type.length;
        tn_rc rc = parse(&type, TN_EPOCH_NONE, tn_buf_bytes(&text), &scratch, &again, &err);
        CHECK_OK(rc, err);
        CHECK(tn_value_compare(&type, &value, &again) == 0);
    }
}

/* Junk of the letters that texts are made of: read or refused, never worse. */
static void junk_is_read_or_refused(void)
{
    static const char letters[] = "0123456789..--++eETZ:: naNifty\xc3\xa9\xff";
    state = 34;
    for (int i = 0; i < 300000; i++) {
        unsigned char junk[30];
        unsigned char memory[TEXT_SIZE_MAX];
        struct tn_type type = draw_type();
        struct tn_bytes text = {junk, random_below(&state, sizeof junk)};
        struct tn_value value;
        struct tn_err err;
        struct tn_buf scratch;
        for (size_t at = 0; at < text.size; at++) {
            junk[at] = (unsigned char)
                letters[random_below(&state, random_below(&state, 2) ? 10 : sizeof letters - 1)];
        }
        tn_buf_init(&scratch, memory, sizeof memory);
        enum tn_epoch epoch = (enum tn_epoch)random_below(&state, TN_EPOCH_NS + 1);
        tn_rc rc = parse(&type, epoch, text, &scratch, &value, &err);
        CHECK(rc == TN_OK || (rc == TN_INVALID && err.text[0]));
    }
}

static void hex_without_room_is_put_off(void)
{
    static const struct tn_type type = T(VARBINARY, 0, 0, 99);
    unsigned char memory[2];
    struct tn_buf scratch;
    struct tn_value value;
    struct tn_err err;
    tn_buf_init(&scratch, memory, sizeof memory);
    tn_rc rc = parse(&type, TN_EPOCH_NONE, tn_bytes_of("010203"), &scratch, &value, &err);
    CHECK(rc == TN_AGAIN);
    CHECK(scratch.size == 0);
}

/* ---- 128 bits ---- */

static void wide_integers_are_minimal_and_read_back(void)
{
    static const struct {
        struct tn_i128 value;
        uint32_t size;
        unsigned char bytes[3];
    } cases[] = {
        {{0, 0}, 1, {0}},
        {{UINT64_MAX, -1}, 1, {0xff}},
        {{128, 0}, 2, {0, 0x80}},
        {{(uint64_t)-128, -1}, 1, {0x80}},
        {{(uint64_t)-129, -1}, 2, {0xff, 0x7f}},
        {{1234567, 0}, 3, {0x12, 0xd6, 0x87}},
    };
    unsigned char bytes[20];
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK(tn_i128_to_be(cases[i].value, bytes) == cases[i].size);
        CHECK(memcmp(bytes, cases[i].bytes, cases[i].size) == 0);
    }
    state = 35;
    for (int i = 0; i < 10000; i++) {
        struct tn_i128 value = {random_next(&state),
                                (int64_t)random_next(&state) >> random_below(&state, 64)};
        struct tn_i128 again;
        memset(bytes, value.high < 0 ? 0xff : 0, sizeof bytes);
        uint32_t size = tn_i128_to_be(value, bytes + 4);
        CHECK(tn_i128_from_be((struct tn_bytes){bytes, size + 4}, &again));
        CHECK(tn_i128_compare(value, again) == 0);
        bytes[0] ^= 1;
        CHECK(size < 13 || !tn_i128_from_be((struct tn_bytes){bytes, size + 4}, &again));
    }
    memset(bytes, 0, sizeof bytes); /* 2^127, with a zero for its sign */
    bytes[1] = 0x80;
    CHECK(!tn_i128_from_be((struct tn_bytes){bytes, 17}, &(struct tn_i128){0, 0}));
    CHECK(!tn_i128_from_be((struct tn_bytes){bytes, 0}, &(struct tn_i128){0, 0}));
}

static void a_null_is_first_and_nan_last(void)
{
    static const struct tn_type type = T(DOUBLE, 0, 0, 0);
    static const struct tn_value ascending[] = {
        {.null = true},     {.as.f64 = -1e300}, {.as.f64 = -0.0},       {.as.f64 = 0.0},
        {.as.f64 = 5e-324}, {.as.f64 = 1e300},  {.as.f64 = 1e308 * 10},
    };
    struct tn_value nan = {.as.f64 = (double)NAN};
    for (size_t i = 0; i < COUNT(ascending); i++) {
        for (size_t j = 0; j < COUNT(ascending); j++) {
            int order = tn_value_compare(&type, &ascending[i], &ascending[j]);
            CHECK((order > 0) - (order < 0) == (i > j) - (i < j));
        }
        CHECK(tn_value_compare(&type, &ascending[i], &nan) < 0);
    }
    struct tn_value minus_nan = {.as.f64 = -nan.as.f64};
    CHECK(tn_value_compare(&type, &nan, &minus_nan) == 0);
}

static const struct test tests[] = {
    TEST(texts_are_read_or_refused_with_a_reason),
    TEST(floats_are_written_as_python_and_java_do),
    TEST(any_double_reads_back),
    TEST(short_decimals_are_the_nearest),
    TEST(middles_of_floats_are_not_rounded_twice),
    TEST(a_late_digit_breaks_a_tie),
    TEST(any_value_reads_back_from_its_text),
    TEST(junk_is_read_or_refused),
    TEST(hex_without_room_is_put_off),
    TEST(wide_integers_are_minimal_and_read_back),
    TEST(a_null_is_first_and_nan_last),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
