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

static void a_tables_defaults_are_one_row(void)
{
    static const char *const names[] = {"k", "unit", "n", "note"};
    static const char *const kinds[] = {"STRING", "CHAR(3)", "INT", "STRING"};
    static const char *const defaults[] = {NULL, "C", "-7", "''"};
    struct tn_field fields[COUNT(names)] = {0};
    struct tn_type types[COUNT(names)];
    struct tn_schema schema = {.fields = fields, .field_count = COUNT(names)};
    struct tn_row_layout layout;
    struct tn_default_row made;
    struct tn_arena arena;
    struct tn_err err;
    char text[128];
    struct tn_buf buf;
    tn_arena_init(&arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COUNT(names); i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(kinds[i]), &types[i], &err);
        CHECK_OK(rc, err);
        fields[i] = (struct tn_field){.name = names[i], .type = types[i]};
    }
    tn_rc rc = tn_row_layout_init(&layout, names, types, COUNT(names), &arena, &err);
    CHECK_OK(rc, err);
    size_t left = tn_arena_free(&arena);
    rc = tn_default_row_make(&schema, &layout, &arena, &made, &err);
    CHECK_OK(rc, err);
    CHECK(made.columns.count == 0 && tn_arena_free(&arena) == left);
    for (uint32_t i = 0; i < COUNT(names); i++) {
        fields[i].default_value = defaults[i];
    }
    rc = tn_default_row_make(&schema, &layout, &arena, &made, &err);
    CHECK_OK(rc, err);
    CHECK(made.columns.count == 3 && made.columns.index[0] == 1 && made.columns.index[2] == 3);
    tn_buf_init(&buf, (unsigned char *)text, sizeof text);
    tn_row_format_json(&layout, NULL, made.row, &buf);
    tn_buf_byte(&buf, 0);
    CHECK(strcmp(text, "{\"k\":null,\"unit\":\"C  \",\"n\":-7,\"note\":\"\"}") == 0);
}

static const struct test tests[] = {
    TEST(a_default_is_what_paimon_makes_of_its_text),
    TEST(no_default_is_null),
    TEST(a_tables_defaults_are_one_row),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
