#include "schema/types.h"

#include "check.h"

static struct tn_type parse(const char *text)
{
    struct tn_err err = {0};
    struct tn_type type = {0};
    tn_rc rc = tn_type_parse(tn_bytes_of(text), &type, &err);
    CHECK_OK(rc, err);
    return type;
}

static const char *refusal(const char *text)
{
    static struct tn_err err;
    struct tn_type type = {.kind = TN_TYPE_KIND_COUNT};
    tn_rc rc = tn_type_parse(tn_bytes_of(text), &type, &err);
    if (rc != TN_INVALID || type.kind != TN_TYPE_KIND_COUNT) {
        FAIL("'%s' is taken", text);
    }
    return err.text;
}

/* Each text as people and peers write it, and as Java writes it back. */
static void types_are_written_as_java_writes_them(void)
{
    static const char *const cases[][2] = {
        {"BOOLEAN", "BOOLEAN"},
        {"tinyint not null", "TINYINT NOT NULL"},
        {"SMALLINT NULL", "SMALLINT"},
        {"INT", "INT"},
        {"INTEGER NOT NULL", "INT NOT NULL"},
        {"BIGINT", "BIGINT"},
        {"FLOAT", "FLOAT"},
        {"DOUBLE", "DOUBLE"},
        {"DOUBLE PRECISION NOT NULL", "DOUBLE NOT NULL"},
        {"DECIMAL(9, 2)", "DECIMAL(9, 2)"},
        {"dec(9,2)", "DECIMAL(9, 2)"},
        {"NUMERIC ( 38 )", "DECIMAL(38, 0)"},
        {"DECIMAL", "DECIMAL(10, 0)"},
        {"CHAR", "CHAR(1)"},
        {"CHAR(5)", "CHAR(5)"},
        {"VARCHAR", "VARCHAR(1)"},
        {"VARCHAR(20) NOT NULL", "VARCHAR(20) NOT NULL"},
        {"VARCHAR(2147483647)", "STRING"},
        {"string", "STRING"},
        {"BINARY", "BINARY(1)"},
        {"VARBINARY(24)", "VARBINARY(24)"},
        {"VARBINARY(2147483647)", "BYTES"},
        {"BYTES NOT NULL", "BYTES NOT NULL"},
        {"DATE", "DATE"},
        {"TIME", "TIME(0)"},
        {"TIME(3) WITHOUT TIME ZONE", "TIME(3)"},
        {"TIMESTAMP", "TIMESTAMP(6)"},
        {"TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"},
        {"TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
        {"TIMESTAMP_LTZ(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
        {"timestamp( 9 )with local\ttime zone not null",
         "TIMESTAMP(9) WITH LOCAL TIME ZONE NOT NULL"},
        {"ARRAY", "ARRAY"},
        {"ARRAY NOT NULL", "ARRAY NOT NULL"},
        {"MAP<INT, ARRAY<STRING NOT NULL>> NOT NULL", "MAP NOT NULL"},
        {"MULTISET", "MULTISET"},
        {"ROW", "ROW"},
        {"VARIANT", "VARIANT"},
        {"BLOB", "BLOB"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[TN_TYPE_TEXT_SIZE];
        struct tn_type type = parse(cases[i][0]);
        tn_type_format(&type, text);
        if (strcmp(text, cases[i][1]) != 0) {
            FAIL("'%s' becomes '%s'", cases[i][0], text);
        }
    }
}

static void parameters_are_kept(void)
{
    struct tn_type type = parse("DECIMAL(20, 4) NOT NULL");
    CHECK(type.kind == TN_TYPE_DECIMAL && type.precision == 20 && type.scale == 4);
    CHECK(!type.nullable);
    type = parse("STRING");
    CHECK(type.kind == TN_TYPE_VARCHAR && type.length == TN_LENGTH_MAX && type.nullable);
    type = parse("TIMESTAMP(0)");
    CHECK(type.kind == TN_TYPE_TIMESTAMP && type.precision == 0);
    type = parse("TIMESTAMP_LTZ");
    CHECK(type.kind == TN_TYPE_TIMESTAMP_LTZ && type.precision == 6);
}

static void wrong_types_are_refused_with_the_reason(void)
{
    static const char *const cases[][2] = {
        {"DUOBLE", "type 'DUOBLE' is unknown; did you mean 'DOUBLE'?"},
        {"strng NOT NULL", "type 'strng' is unknown; did you mean 'STRING'?"},
        {"TEXT", "type 'TEXT' is unknown; did you mean 'STRING'?"},
        {"long", "type 'long' is unknown; did you mean 'BIGINT'?"},
        {"GEOMETRY", "type 'GEOMETRY' is unknown"},
        {"", "type '' is unknown"},
        {"<>", "type '<>' is unknown"},
        {"INT(4)", "type 'INT(4)': '(4)' is not understood"},
        {"INT NOT", "type 'INT NOT' lacks NULL behind NOT"},
        {"INT PRIMARY KEY", "type 'INT PRIMARY KEY': 'PRIMARY KEY' is not understood"},
        {"CHAR(0)", "type 'CHAR(0)' needs a length from 1 to 2147483647, like (20)"},
        {"VARCHAR(2147483648)",
         "type 'VARCHAR(2147483648)' needs a length from 1 to 2147483647, like (20)"},
        {"TIME(10)", "type 'TIME(10)' needs a precision from 0 to 9, like (3)"},
        {"TIMESTAMP(3", "type 'TIMESTAMP(3' needs a precision from 0 to 9, like (3)"},
        {"DECIMAL(39, 2)",
         "type 'DECIMAL(39, 2)' needs a precision from 1 to 38 and a scale up to it, like (9, 2)"},
        {"DECIMAL(2, 3)",
         "type 'DECIMAL(2, 3)' needs a precision from 1 to 38 and a scale up to it, like (9, 2)"},
        {"TIMESTAMP WITH TIME ZONE",
         "type 'TIMESTAMP WITH TIME ZONE' is none: a zone is WITH LOCAL TIME ZONE"},
        {"ARRAY<INT", "type 'ARRAY<INT' lacks a '>'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *text = refusal(cases[i][0]);
        if (strcmp(text, cases[i][1]) != 0) {
            FAIL("'%s': %s", cases[i][0], text);
        }
    }
}

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*seed >> 33);
}

static struct tn_type random_type(uint64_t *seed)
{
    struct tn_type type = {.kind = next_random(seed) % TN_TYPE_KIND_COUNT,
                           .nullable = next_random(seed) % 2};
    if (type.kind == TN_TYPE_DECIMAL) {
        type.precision = (uint8_t)(1 + next_random(seed) % TN_DECIMAL_PRECISION_MAX);
        type.scale = (uint8_t)(next_random(seed) % (type.precision + 1U));
    } else if (tn_type_textual(type.kind) || tn_type_binary(type.kind)) {
        type.length =
            next_random(seed) % 4 == 0 ? TN_LENGTH_MAX : 1 + (int32_t)(next_random(seed) % 1000000);
    } else if (type.kind >= TN_TYPE_TIME && type.kind <= TN_TYPE_TIMESTAMP_LTZ) {
        type.precision = (uint8_t)(next_random(seed) % 10);
    }
    return type;
}

static void what_is_written_reads_back(void)
{
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        char text[TN_TYPE_TEXT_SIZE];
        struct tn_type type = random_type(&seed);
        if ((type.kind == TN_TYPE_CHAR || type.kind == TN_TYPE_BINARY) &&
            type.length == TN_LENGTH_MAX) {
            type.length--;
        }
        struct tn_type back = parse(tn_type_format(&type, text));
        CHECK(back.kind == type.kind && back.nullable == type.nullable);
        CHECK(back.precision == type.precision && back.scale == type.scale);
        CHECK(back.length == type.length);
    }
}

/* Bytes from a seed, near valid texts, in blocks of their own so that ASan sees an overrun. */
static void garbage_is_refused_or_is_a_type(void)
{
    static const char *const seeds[] = {"DECIMAL(9, 2) NOT NULL", "MAP<INT, ARRAY<STRING>>",
                                        "TIMESTAMP(3) WITH LOCAL TIME ZONE", "VARCHAR(20)"};
    uint64_t seed = 99;
    for (int i = 0; i < 50000; i++) {
        const char *from = seeds[next_random(&seed) % COUNT(seeds)];
        size_t size = next_random(&seed) % (strlen(from) + 1);
        unsigned char *text = malloc(size + 1);
        memcpy(text, from, size);
        for (uint32_t n = next_random(&seed) % 4; n > 0 && size > 0; n--) {
            uint32_t byte = next_random(&seed) % 300;
            byte = byte < 256 ? byte : (unsigned char)"(),<> 9N"[byte % 8];
            text[next_random(&seed) % size] = (unsigned char)byte;
        }
        unsigned char *exact = malloc(size > 0 ? size : 1);
        memcpy(exact, text, size);
        struct tn_err err = {0};
        struct tn_type type = {0};
        char out[TN_TYPE_TEXT_SIZE];
        tn_rc rc = tn_type_parse((struct tn_bytes){exact, size}, &type, &err);
        CHECK(rc == TN_INVALID || strlen(tn_type_format(&type, out)) > 0);
        free(exact);
        free(text);
    }
}

static void the_nearest_name_is_near(void)
{
    static const char *const names[] = {"bucket", "bucket-key", "sequence.field", "write-only"};
    CHECK(tn_nearest_name(tn_bytes_of("buckte"), names, 4) == names[0]);
    CHECK(tn_nearest_name(tn_bytes_of("Bucket_Key"), names, 4) == names[1]);
    CHECK(tn_nearest_name(tn_bytes_of("sequnce.feild"), names, 4) == names[2]);
    CHECK(tn_nearest_name(tn_bytes_of("compaction"), names, 4) == NULL);
    static const char *const dates[] = {"INT", "DATE", "TIME"};
    CHECK(tn_nearest_name(tn_bytes_of("dtae"), dates, 3) == dates[1]); /* a swap is one edit */
    CHECK(tn_nearest_name(tn_bytes_of(""), names, 4) == NULL);
    CHECK(tn_nearest_name(tn_bytes_of("bucket"), names, 0) == NULL);
    char lengthy[100];
    memset(lengthy, 'b', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = 0;
    CHECK(tn_nearest_name(tn_bytes_of(lengthy), names, 4) == NULL);
}

static const struct test tests[] = {
    TEST(types_are_written_as_java_writes_them),   TEST(parameters_are_kept),
    TEST(wrong_types_are_refused_with_the_reason), TEST(what_is_written_reads_back),
    TEST(garbage_is_refused_or_is_a_type),         TEST(the_nearest_name_is_near),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
