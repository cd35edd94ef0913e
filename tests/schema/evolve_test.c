/* evolve: rows of an older schema, as JSON, and what they are in a newer one. */
#include "schema/evolve.h"

#include "check.h"

enum { ARENA_SIZE = 64 * 1024, FIELDS_MAX = 6 };

static _Alignas(16) unsigned char memory[ARENA_SIZE];

struct given_field {
    int32_t id;
    const char *name;
    const char *type;
    const char *default_value;
};

static const struct {
    struct given_field older[FIELDS_MAX];
    struct given_field newer[FIELDS_MAX];
    const char *row;  /* values of the older one, one a line; "": NULL */
    const char *json; /* what it is by now, or what the error says, after a '!' */
} cases[] = {
    {{{0, "id", "BIGINT NOT NULL", NULL}, {1, "n", "INT", NULL}},
     {{0, "id", "BIGINT NOT NULL", NULL}, {1, "n", "INT", NULL}, {2, "new", "STRING", NULL}},
     "7\n8",
     "{\"id\":7,\"n\":8,\"new\":null}"},
    {{{0, "id", "BIGINT NOT NULL", NULL}, {1, "n", "INT", NULL}},
     {{2, "new", "STRING", "'x'"}, {0, "id", "BIGINT NOT NULL", NULL}, {1, "n", "INT", "3"}},
     "7\n",
     "{\"new\":\"x\",\"id\":7,\"n\":null}"},
    {{{0, "a", "STRING", NULL}, {1, "b", "STRING", NULL}, {2, "c", "STRING", NULL}},
     {{2, "a", "STRING", NULL}, {0, "z", "STRING", NULL}},
     "one\ntwo\nthree",
     "{\"a\":\"three\",\"z\":\"one\"}"},
    {{{0, "n", "INT", NULL}, {1, "s", "VARCHAR(5)", NULL}},
     {{0, "n", "BIGINT", NULL}, {1, "s", "CHAR(4)", NULL}},
     "-5\nab",
     "{\"n\":-5,\"s\":\"ab  \"}"},
    {{{0, "n", "INT", NULL}}, {{0, "n", "STRING", NULL}}, "-5", "{\"n\":\"-5\"}"},
    {{{0, "n", "STRING", NULL}}, {{0, "n", "INT", NULL}}, "-5", "{\"n\":-5}"},
    {{{0, "n", "STRING", NULL}},
     {{0, "n", "INT", NULL}},
     "five",
     "!column 'n': \"five\" was taken as STRING, and is no value of INT, which it is by now"},
    {{{0, "n", "BIGINT", NULL}}, {{0, "n", "TINYINT", NULL}}, "300", "!300 was taken as BIGINT"},
    {{{0, "s", "STRING", NULL}}, {{0, "s", "VARCHAR(2)", NULL}}, "abc", "!\"abc\" was taken"},
    {{{0, "s", "STRING", NULL}}, {{0, "s", "VARBINARY(2)", NULL}}, "abc", "!\"abc\" was taken"},
    {{{0, "s", "STRING", NULL}}, {{0, "s", "VARBINARY(3)", NULL}}, "abc", "{\"s\":\"616263\"}"},
    {{{0, "n", "INT", NULL}}, {{0, "n", "VARCHAR(3)", NULL}}, "1234", "!1234 was taken as INT"},
    {{{0, "n", "INT", NULL}}, {{0, "n", "CHAR(3)", NULL}}, "1234", "!1234 was taken as INT"},
    {{{0, "n", "INT", NULL}}, {{0, "n", "CHAR(5)", NULL}}, "1234", "{\"n\":\"1234 \"}"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "INT", NULL}}, "3e9", "!was taken as DOUBLE"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "TINYINT", NULL}}, "200", "!was taken as DOUBLE"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "BIGINT", NULL}}, "1e19", "!was taken as DOUBLE"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "BIGINT", NULL}}, "NaN", "!was taken as DOUBLE"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "TINYINT", NULL}}, "-128.9", "{\"x\":-128}"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "FLOAT", NULL}}, "1e300", "!was taken as DOUBLE"},
    {{{0, "x", "DOUBLE", NULL}}, {{0, "x", "FLOAT", NULL}}, "0.1", "{\"x\":0.1}"},
    {{{0, "d", "DECIMAL(6, 2)", NULL}},
     {{0, "d", "TINYINT", NULL}},
     "300",
     "!\"300.00\" was taken"},
    {{{0, "d", "DECIMAL(6, 2)", NULL}}, {{0, "d", "TINYINT", NULL}}, "-127.5", "{\"d\":-127}"},
    {{{0, "d", "DECIMAL(38, 1)", NULL}},
     {{0, "d", "BIGINT", NULL}},
     "18446744073709551617",
     "!was taken as DECIMAL(38, 1)"},
    {{{0, "d", "DECIMAL(38, 1)", NULL}},
     {{0, "d", "BIGINT", NULL}},
     "9223372036854775807",
     "{\"d\":9223372036854775807}"},
    {{{0, "t", "TIMESTAMP(3)", NULL}},
     {{0, "t", "INT", NULL}},
     "2100-01-01 00:00:00",
     "!was taken as TIMESTAMP(3)"},
    {{{0, "d", "DECIMAL(6, 2)", NULL}}, {{0, "d", "DECIMAL(4, 2)", NULL}}, "100.5", "!was taken"},
    {{{0, "d", "DECIMAL(6, 2)", NULL}},
     {{0, "d", "DECIMAL(6, 1)", NULL}},
     "1.25",
     "{\"d\":\"1.3\"}"},
    {{{0, "b", "BOOLEAN", NULL}}, {{0, "b", "DATE", NULL}}, "true", "!true was taken as BOOLEAN"},
    {{{0, "b", "BOOLEAN", NULL}}, {{0, "b", "DATE", NULL}}, "", "{\"b\":null}"},
    {{{0, "n", "INT", NULL}},
     {{0, "n", "INT NOT NULL", NULL}},
     "",
     "!column 'n' is NOT NULL by now, and has no value"},
    {{{0, "n", "INT", NULL}}, {{1, "m", "INT NOT NULL", "1"}}, "1", "{\"m\":1}"},
    {{{0, "n", "INT", NULL}}, {{1, "m", "INT NOT NULL", NULL}}, "1", "!column 'm' is NOT NULL"},
    {{{0, "s", "STRING", NULL}}, {{0, "s", "CHAR(100000)", NULL}}, "a", "!filled up to 100000"},
};

/* ---- */

static void make_schema(const struct given_field *given, struct tn_schema *schema,
                        struct tn_field *fields)
{
    struct tn_err err;
    *schema = (struct tn_schema){.fields = fields};
    for (; schema->field_count < FIELDS_MAX && given[schema->field_count].name;
         schema->field_count++) {
        uint32_t i = schema->field_count;
        fields[i] = (struct tn_field){
            .id = given[i].id, .name = given[i].name, .default_value = given[i].default_value};
        CHECK_OK(tn_type_parse(tn_bytes_of(given[i].type), &fields[i].type, &err), err);
    }
}

static struct tn_row make_row(const struct tn_row_layout *layout, const char *text,
                              unsigned char *data)
{
    struct tn_err err;
    struct tn_value values[FIELDS_MAX];
    for (uint32_t i = 0; i < layout->column_count; i++) {
        size_t size = strcspn(text, "\n");
        struct tn_buf none;
        tn_buf_init(&none, NULL, 0);
        struct tn_bytes bytes = {(const unsigned char *)text, size};
        values[i] = (struct tn_value){.null = size == 0};
        if (size > 0) {
            CHECK_OK(tn_value_parse(&layout->columns[i].type, TN_EPOCH_NONE, bytes, &none,
                                    &values[i], &err),
                     err);
        }
        text += size + (text[size] == '\n');
    }
    return (struct tn_row){data, tn_row_pack(layout, values, data)};
}

static void check_case(size_t i, size_t arena_size, uint32_t size_max, bool *filled)
{
    struct tn_err err = {0};
    struct tn_schema older;
    struct tn_schema newer;
    static struct tn_field fields[2][FIELDS_MAX];
    struct tn_row_layout layout;
    struct tn_evolve evolve;
    struct tn_arena own;
    struct tn_arena arena;
    struct tn_row row;
    unsigned char data[256];
    static _Alignas(16) unsigned char own_memory[8192];
    tn_arena_init(&own, own_memory, sizeof own_memory);
    tn_arena_init(&arena, memory, arena_size);
    make_schema(cases[i].older, &older, fields[0]);
    make_schema(cases[i].newer, &newer, fields[1]);
    CHECK_OK(tn_schema_layout(&newer, &layout, NULL, NULL, &own, &err), err);
    tn_rc rc = tn_evolve_open(&evolve, &older, &newer, &layout, &arena, &err);
    size_t mark = tn_arena_mark(&arena);
    for (int times = 0; rc == TN_OK && times < 2; times++) {
        tn_arena_reset(&arena, mark);
        rc = tn_evolve_row(&evolve, make_row(evolve.from, cases[i].row, data), size_max, &arena,
                           &row, &err);
    }
    *filled = rc == TN_AGAIN;
    if (*filled) {
        return;
    }
    static char text[512];
    struct tn_buf buf;
    tn_buf_init(&buf, (unsigned char *)text, sizeof text);
    if (rc == TN_OK) {
        CHECK(tn_row_valid(&layout, row));
        tn_row_format_json(&layout, NULL, row, &buf);
    } else {
        CHECK(rc == TN_INVALID);
        tn_buf_format(&buf, "!%s", err.text);
    }
    tn_buf_byte(&buf, 0);
    bool same = cases[i].json[0] == '!'
                    ? text[0] == '!' && strstr(text + 1, cases[i].json + 1) != NULL
                    : strcmp(text, cases[i].json) == 0;
    if (!same) {
        FAIL("case %zu: %s\nnot %s", i, text, cases[i].json);
    }
}

static void a_row_is_one_of_the_newer_schema_or_says_why_not(void)
{
    bool filled;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_case(i, sizeof memory, 4096, &filled);
        CHECK(!filled);
    }
}

static void a_full_arena_is_said(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t times = 0;
        bool filled = true;
        for (size_t size = 0; filled; size += 16) {
            check_case(i, size, 4096, &filled);
            times += filled;
        }
        CHECK(times > 10);
    }
}

static void a_row_that_grows_too_long_is_refused(void)
{
    struct tn_err err;
    struct tn_schema older;
    struct tn_schema newer;
    static struct tn_field fields[2][FIELDS_MAX];
    struct tn_row_layout layout;
    struct tn_evolve evolve;
    struct tn_arena arena;
    struct tn_row row;
    unsigned char data[256];
    tn_arena_init(&arena, memory, sizeof memory);
    make_schema(cases[0].older, &older, fields[0]);
    make_schema(cases[0].newer, &newer, fields[1]);
    CHECK_OK(tn_schema_layout(&newer, &layout, NULL, NULL, &arena, &err), err);
    CHECK_OK(tn_evolve_open(&evolve, &older, &newer, &layout, &arena, &err), err);
    struct tn_row was = make_row(evolve.from, cases[0].row, data);
    CHECK(tn_evolve_row(&evolve, was, was.size, &arena, &row, &err) == TN_INVALID);
    CHECK(strstr(err.text, "bytes by now"));
    CHECK_OK(tn_evolve_row(&evolve, was, was.size + 4, &arena, &row, &err), err);
}

static const struct test tests[] = {
    TEST(a_row_is_one_of_the_newer_schema_or_says_why_not),
    TEST(a_full_arena_is_said),
    TEST(a_row_that_grows_too_long_is_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
