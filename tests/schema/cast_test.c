/* cast: every pair of types, against what official Paimon's casts gave for edge values
 * (golden/casts), and the bytes that CHAR and BINARY are padded with. */
#include "schema/cast.h"

#include <inttypes.h>

#include "check.h"

enum { LINE_SIZE_MAX = 4096, COLUMNS_MAX = 3 };

static char line[LINE_SIZE_MAX];
static unsigned char text_memory[LINE_SIZE_MAX];
static unsigned char hex_memory[LINE_SIZE_MAX];
static unsigned char padded_memory[LINE_SIZE_MAX];
static unsigned char json_memory[LINE_SIZE_MAX];

static struct tn_type type_of(const char *text)
{
    struct tn_type type = {0};
    struct tn_err err = {0};
    tn_rc rc = tn_type_parse(tn_bytes_of(text), &type, &err);
    CHECK_OK(rc, err);
    return type;
}

static bool is_time(const struct tn_type *type)
{
    return type->kind == TN_TYPE_TIMESTAMP || type->kind == TN_TYPE_TIMESTAMP_LTZ;
}

/* ---- the values of the golden file: JSON, days and ms as numbers, instants as "ms/nanos" ---- */

/* Escapes resolved, quotes dropped. */
static struct tn_bytes plain(const char *json)
{
    static const char letters[] = "n\nr\rt\tb\bf\f";
    struct tn_buf buf;
    tn_buf_init(&buf, text_memory, sizeof text_memory);
    size_t size = strlen(json);
    if (json[0] != '"') {
        tn_buf_append(&buf, json, size);
        return tn_buf_bytes(&buf);
    }
    for (const char *at = json + 1; at < json + size - 1; at++) {
        if (*at != '\\') {
            tn_buf_byte(&buf, (unsigned char)*at);
        } else if (*++at == 'u') {
            const char digits[] = {at[3], at[4], 0};
            tn_buf_byte(&buf, (unsigned char)strtol(digits, NULL, 16));
            at += 4;
        } else {
            const char *letter = strchr(letters, *at);
            tn_buf_byte(&buf, (unsigned char)(letter ? letter[1] : *at));
        }
    }
    CHECK(!buf.overflow);
    return tn_buf_bytes(&buf);
}

static struct tn_value value_of(const struct tn_type *type, const char *json)
{
    struct tn_value value = {0};
    struct tn_bytes text = plain(json);
    if (is_time(type)) {
        CHECK(sscanf(json, "\"%" SCNd64 "/%" SCNu32 "\"", &value.as.i64, &value.nanos) == 2);
    } else if (type->kind == TN_TYPE_DATE || type->kind == TN_TYPE_TIME) {
        value.as.i64 = strtoll(json, NULL, 10);
    } else if (tn_type_textual(type->kind)) {
        value.as.bytes = text;
    } else {
        struct tn_type any = *type;
        any.length = TN_LENGTH_MAX; /* not what is asked here */
        any.kind = type->kind == TN_TYPE_BINARY ? TN_TYPE_VARBINARY : type->kind;
        struct tn_buf hex;
        struct tn_err err = {0};
        tn_buf_init(&hex, hex_memory, sizeof hex_memory);
        tn_rc rc = tn_value_parse(&any, TN_EPOCH_NONE, text, &hex, &value, &err);
        CHECK_OK(rc, err);
    }
    return value;
}

static void pad(const struct tn_type *type, struct tn_cast_out *out)
{
    struct tn_bytes bytes = out->value.as.bytes;
    CHECK(bytes.size + out->pad_size <= sizeof padded_memory);
    if (bytes.size > 0) {
        memcpy(padded_memory, bytes.data, bytes.size);
    }
    memset(padded_memory + bytes.size, type->kind == TN_TYPE_CHAR ? ' ' : 0, out->pad_size);
    out->value.as.bytes = (struct tn_bytes){padded_memory, bytes.size + out->pad_size};
}

static const char *json_of(const struct tn_type *type, struct tn_cast_out *out)
{
    struct tn_buf buf;
    tn_buf_init(&buf, json_memory, sizeof json_memory);
    if (out->value.null) {
        tn_buf_text(&buf, "null");
    } else if (is_time(type)) {
        tn_buf_format(&buf, "\"%" PRId64 "/%" PRIu32 "\"", out->value.as.i64, out->value.nanos);
    } else if (type->kind == TN_TYPE_DATE || type->kind == TN_TYPE_TIME) {
        tn_buf_format(&buf, "%" PRId64, out->value.as.i64);
    } else {
        if (tn_type_textual(type->kind) || tn_type_binary(type->kind)) {
            pad(type, out);
        }
        tn_value_format_json(type, &out->value, &buf);
    }
    tn_buf_byte(&buf, 0);
    CHECK(!buf.overflow);
    return (const char *)json_memory;
}

/* ---- the golden file ---- */

static uint32_t split(char *text, char **columns)
{
    uint32_t count = 0;
    for (char *at = text; at && count < COLUMNS_MAX;) {
        columns[count++] = at;
        at = strchr(at, '\t');
        if (at) {
            *at++ = 0;
        }
    }
    return count;
}

/* Java shows what is no UTF-8 as U+FFFD; the bytes stay what they are. */
static bool same_text(const char *got, const char *want)
{
    while (*got && *want) {
        if (strncmp(want, "\xef\xbf\xbd", 3) == 0 && strncmp(got, want, 3) != 0) {
            want += 3;
            for (got++; (*got & 0xc0) == 0x80; got++) {
            }
        } else if (*got++ != *want++) {
            return false;
        }
    }
    return *got == *want;
}

static void check_value(const struct tn_cast *cast, const char *in, const char *want)
{
    struct tn_cast_out out;
    struct tn_value value = value_of(&cast->from, in);
    const char *got = "!";
    if (tn_cast_apply(cast, &value, &out)) {
        got = json_of(&cast->to, &out);
    }
    if (!same_text(got, want)) {
        char names[2][TN_TYPE_TEXT_SIZE];
        FAIL("%s of %s to %s: %s, Java has %s", in, tn_type_format(&cast->from, names[0]),
             tn_type_format(&cast->to, names[1]), got, want);
    }
}

static uint32_t check_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file);
    struct tn_cast cast = {0};
    uint32_t values = 0;
    while (fgets(line, sizeof line, file)) {
        char *columns[COLUMNS_MAX];
        line[strcspn(line, "\n")] = 0;
        if (split(line, columns) == COLUMNS_MAX) {
            struct tn_type from = type_of(columns[0]);
            struct tn_type to = type_of(columns[1]);
            CHECK(tn_cast_needed(&from, &to));
            CHECK(tn_cast_find(&from, &to, &cast) == (strcmp(columns[2], "none") != 0));
        } else {
            check_value(&cast, columns[0], columns[1]);
            values++;
        }
    }
    (void)fclose(file);
    return values;
}

static void every_pair_of_types_gives_what_java_gives(void)
{
    CHECK(check_file("tests/golden/casts/casts.txt") > 10000);
    const char *more = getenv("CASTS"); /* another answer of `oracle cast` */
    CHECK(!more || check_file(more) > 0);
}

static void a_type_that_differs_in_not_null_needs_no_cast(void)
{
    struct tn_type from = type_of("DECIMAL(9, 2)");
    struct tn_type to = type_of("DECIMAL(9, 2) NOT NULL");
    CHECK(!tn_cast_needed(&from, &to));
}

/* The widest paddings there are: only counted. */
static void padding_takes_no_memory(void)
{
    struct tn_type from = type_of("STRING");
    struct tn_value value = {.as.bytes = tn_bytes_of("\xc3\xa9")};
    const char *wide[] = {"CHAR(2147483647)", "BINARY(2147483647)"};
    for (uint32_t i = 0; i < COUNT(wide); i++) {
        struct tn_cast cast;
        struct tn_cast_out out;
        struct tn_type to = type_of(wide[i]);
        CHECK(tn_cast_find(&from, &to, &cast));
        CHECK(tn_cast_apply(&cast, &value, &out));
        CHECK(out.value.as.bytes.size == 2);
        CHECK(out.pad_size == (uint32_t)INT32_MAX - 1 - i);
    }
}

static const struct test tests[] = {
    TEST(every_pair_of_types_gives_what_java_gives),
    TEST(a_type_that_differs_in_not_null_needs_no_cast),
    TEST(padding_takes_no_memory),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
