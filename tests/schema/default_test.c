/* default: the values that Paimon 1.3.1 gave rows without the column, as JSON. */
#include "schema/default.h"

#include "check.h"

enum { ARENA_SIZE = 4096 };

static _Alignas(16) unsigned char memory[ARENA_SIZE];

static const struct {
    const char *type;
    const char *text;
    const char *json; /* or what the error says, after a '!' */
} cases[] = {
    {"BINARY(4)", "ab", "\"61620000\""},
    {"BINARY(2)", "abcdef", "\"6162\""},
    {"VARBINARY(4)", "abcdefg", "\"61626364\""},
    {"VARBINARY(4)", "ab", "\"6162\""},
    {"STRING", "'q'", "\"q\""},
    {"STRING", "q'", "\"q'\""},
    {"STRING", "''", "\"\""},
    {"STRING", "'", "!a quote alone"},
    {"CHAR(4)", "ab", "\"ab  \""},
    {"CHAR(3)", "h\303\244lle", "\"h\303\244l\""},
    {"VARCHAR(2)", "\303\244\303\266\303\274", "\"\303\244\303\266\""},
    {"VARCHAR(2)", "\303", "!no UTF-8"},
    {"CHAR(100000)", "a", "!default value"},
    {"INT", "'7'", "7"},
    {"INT", "x", "!'x'"},
};

static void a_default_is_what_paimon_makes_of_its_text(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_arena arena;
        struct tn_err err;
        struct tn_field field = {.name = "f", .default_value = cases[i].text};
        tn_rc rc = tn_type_parse(tn_bytes_of(cases[i].type), &field.type, &err);
        CHECK_OK(rc, err);
        tn_arena_init(&arena, memory, sizeof memory);
        struct tn_value value;
        rc = tn_default_read(&field, &arena, &value, &err);
        if (cases[i].json[0] == '!') {
            CHECK(rc != TN_OK && strstr(err.text, cases[i].json + 1) != NULL);
            continue;
        }
        CHECK_OK(rc, err);
        char text[64];
        struct tn_buf buf;
        tn_buf_init(&buf, (unsigned char *)text, sizeof text);
        tn_value_format_json(&field.type, &value, &buf);
        tn_buf_byte(&buf, 0);
        CHECK(!buf.overflow && strcmp(text, cases[i].json) == 0);
    }
}

static void no_default_is_null(void)
{
    struct tn_arena arena;
    struct tn_err err;
    struct tn_value value;
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_default_read(&(struct tn_field){.name = "f"}, &arena, &value, &err);
    CHECK_OK(rc, err);
    CHECK(value.null && tn_arena_free(&arena) == sizeof memory);
}

static const struct test tests[] = {
    TEST(a_default_is_what_paimon_makes_of_its_text),
    TEST(no_default_is_null),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
