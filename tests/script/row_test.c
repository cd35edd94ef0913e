/* row: what a script reads is what a row holds, what it writes is checked, and a row that was
 * written is the row that tn_row_pack would make. */
#include "given.h"
#include "given_script.h"
#include "random.h"

static struct given_state s;
static struct given_columns c;
static uint64_t seed;

/* Every kind of column; the key first. */
static const char all_kinds[] =
    "dev STRING NOT NULL; flag BOOLEAN; t TINYINT; s SMALLINT; i INT; l BIGINT; f FLOAT; d DOUBLE; "
    "money DECIMAL(9, 2); huge DECIMAL(38, 10); short VARCHAR(4); code BINARY(2); raw "
    "VARBINARY(3); "
    "day DATE; clock TIME(3); ms TIMESTAMP(3); us TIMESTAMP(6); sec TIMESTAMP(0); "
    "abs TIMESTAMP(3) WITH LOCAL TIME ZONE; note STRING";

static struct tn_script_ctx ctx = {TN_ROW_INSERT, 7, false};
static unsigned char out_memory[4096];
static struct tn_row result;

/* Loads a merge with this body; the row that came is `row`. */
static void load_merge(const char *body)
{
    static char text[4096];
    (void)snprintf(text, sizeof text,
                   "local m = {}\nfunction m.merge(now, row, ctx)\n%s\nreturn row\nend\nreturn m\n",
                   body);
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, &c, text);
    CHECK_OK(rc, s.err);
}

static tn_rc merge(struct tn_row row)
{
    struct tn_buf out;
    enum tn_script_verdict verdict;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    tn_rc rc = tn_script_merge(&s.script, NULL, row, &ctx, &verdict, &out, &s.err);
    result = (struct tn_row){out_memory, (uint32_t)out.size};
    CHECK(rc != TN_OK || tn_row_valid(&c.layout, result));
    return rc;
}

static const char *const values[] = {"boiler",
                                     "true",
                                     "-128",
                                     "32767",
                                     "-2147483648",
                                     "9223372036854775807",
                                     "0.1",
                                     "0.1",
                                     "19.99",
                                     "1234567890123456789012345678.0123456789",
                                     "abcd",
                                     "FF00",
                                     "0A",
                                     "2026-01-31",
                                     "12:34:56.789",
                                     "2026-01-31 12:34:56.789",
                                     "2026-01-31 12:34:56.789012",
                                     "2026-01-31 12:34:56",
                                     "2026-01-31 12:34:56.789Z",
                                     "n"};

static const char *const nothing[] = {"boiler", NULL, NULL, NULL, NULL, NULL, NULL,
                                      NULL,     NULL, NULL, NULL, NULL, NULL, NULL,
                                      NULL,     NULL, NULL, NULL, NULL, NULL};

static void a_script_reads_each_kind_exactly(void)
{
    unsigned char data[512];
    open_columns(&c, all_kinds);
    struct tn_row row = pack_texts(&c, values, data);
    load_merge(
        "assert(row.dev == 'boiler' and row.flag == true and row.t == -128 and row.s == 32767)\n"
        "assert(row.i == -2147483648 and row.l == math.maxinteger)\n"
        "assert(math.type(row.l) == 'integer' and math.type(row.d) == 'float' and row.d == 0.1)\n"
        "assert(row.f == string.unpack('<f', string.pack('<f', 0.1)))\n"
        "assert(tostring(row.money) == '19.99' and row.money == tarn.decimal('19.990'))\n"
        "assert(tostring(row.huge) == '1234567890123456789012345678.0123456789')\n"
        "assert(row.short == 'abcd' and row.code == '\\xff\\x00' and row.raw == '\\x0a')\n"
        "assert(row.day == 20484 and row.clock == 45296789)\n"
        "assert(row.ms == 1769862896789 and row.us == 1769862896789012 and row.sec == "
        "1769862896000)\n"
        "assert(row.abs == row.ms and string.format('%d', row.us) == '1769862896789012')\n"
        "local d = tarn.date(row.ms)\n"
        "assert(d.year == 2026 and d.month == 1 and d.day == 31 and d.hour == 12 and d.weekday == "
        "6)\n"
        "assert(ctx.sequence == 7 and ctx.kind == '+I' and not ctx.late)\n"
        "assert(ctx.table == 'plant.readings')\n"
        "local n = 0 for k, v in pairs(row) do n = n + 1 assert(row[k] == v) end assert(n == 20)\n"
        "local copy = row:copy() copy.i = 1 assert(row.i ~= 1 and copy.l == row.l)\n");
    tn_rc rc = merge(row);
    CHECK_OK(rc, s.err);
    CHECK(result.size == row.size && memcmp(result.data, row.data, row.size) == 0);
}

/* A row that goes through a script as it is, or column by column, keeps its bytes. */
static void a_row_that_is_copied_column_by_column_keeps_its_bytes(void)
{
    unsigned char data[512];
    open_columns(&c, all_kinds);
    struct tn_row row = pack_texts(&c, values, data);
    load_merge("local all = {} for k, v in pairs(row) do all[k] = v end\n"
               "for k in pairs(all) do if k ~= 'dev' then row[k] = nil end end\n"
               "assert(row.note == nil and row.huge == nil and row.short == nil)\n"
               "for k, v in pairs(all) do row[k] = v end\n"
               "if ctx.sequence == 8 then return all end\n");
    for (ctx.sequence = 7; ctx.sequence <= 8; ctx.sequence++) {
        tn_rc rc = merge(row);
        CHECK_OK(rc, s.err);
        CHECK(result.size == row.size && memcmp(result.data, row.data, row.size) == 0);
    }
    ctx.sequence = 7;
}

static void null_is_nil_both_ways(void)
{
    unsigned char data[512];
    unsigned char empty[512];
    open_columns(&c, all_kinds);
    struct tn_row row = pack_texts(&c, values, data);
    struct tn_row blank = pack_texts(&c, nothing, empty);
    load_merge("for k in pairs(row) do if k ~= 'dev' then row[k] = nil end end\n"
               "assert(row.note == nil) for k in pairs(row) do assert(k == 'dev') end");
    tn_rc rc = merge(row);
    CHECK_OK(rc, s.err);
    CHECK(result.size == blank.size && memcmp(result.data, blank.data, blank.size) == 0);
}

struct attempt {
    const char *body;
    const char *want; /* in the error; NULL: fine */
};

static void a_value_that_does_not_fit_its_column_is_an_error(void)
{
    static const struct attempt attempts[] = {
        {"row.i = 2.5", "t.lua:3: column 'i' (INT): 2.5 is no integer"},
        {"row.i = 2.0", NULL},
        {"row.i = 1e3", NULL},
        {"row.i = '1'", "column 'i' (INT): a string is no integer"},
        {"row.i = 2^53", "column 'i' (INT): 9.007199254741e+15 doesn't fit"},
        {"row.l = 2^53", NULL},
        {"row.l = 2^63", "is no integer"},
        {"row.i = 2147483648", "doesn't fit"},
        {"row.t = 128", "column 't' (TINYINT): 128 doesn't fit"},
        {"row.s = -32769", "doesn't fit"},
        {"row.flag = 1", "column 'flag' (BOOLEAN): 1 is no boolean"},
        {"row.d = true", "column 'd' (DOUBLE): true is no number"},
        {"row.d = math.maxinteger", "is not exact as a float"},
        {"row.f = 16777217", "is not exact as a float"},
        {"row.f = 1e39", "doesn't fit"},
        {"row.f = math.huge", NULL},
        {"row.d = 0/0", NULL},
        {"row.money = 1.5", NULL},
        {"row.money = 1.555", "column 'money'"},
        {"row.money = tarn.decimal('1.5550')",
         "column 'money' (DECIMAL(9, 2)): 1.5550 doesn't fit"},
        {"row.money = tarn.decimal('1.5500')", NULL},
        {"row.money = 10000000", "doesn't fit"},
        {"row.money = '12.34'", NULL},
        {"row.money = {}", "a table is no number"},
        {"row.short = 'abcde'", "column 'short'"},
        {"row.short = '\\u{e4}\\u{e4}\\u{e4}\\u{e4}'", NULL},
        {"row.short = 1", "is no text"},
        {"row.code = 'abc'", "column 'code': 3 bytes; it takes 2"},
        {"row.raw = 'abcd'", "column 'raw': 4 bytes; at most 3"},
        {"row.sec = 1769862896001", "has more digits than the column"},
        {"row.sec = 1769862896000", NULL},
        {"row.us = 1769862896789012", NULL},
        {"row.us = -1", NULL},
        {"row.ms = '2026-01-31 12:00:00'", NULL},
        {"row.ms = 'yesterday'", "column 'ms'"},
        {"row.day = 1.5", "is no integer"},
        {"row.clock = 86400000", "doesn't fit"},
        {"row.nte = 1", "t.lua:3: there is no column 'nte'; did you mean 'note'?"},
        {"local x = row.nte", "there is no column 'nte'; did you mean 'note'?"},
        {"row[1] = 1", "there is no column '1'"},
        {"local x = row[{}]", "there is no column 'table"},
        {"row.note = ('x'):rep(60000)", "the rows need more than"},
        {"rawset(row, 'i', 1)", "table expected"},
        {"getmetatable(row).__index = nil", "attempt to index a boolean"},
    };
    unsigned char data[512];
    open_columns(&c, all_kinds);
    struct tn_row row = pack_texts(&c, values, data);
    for (size_t i = 0; i < COUNT(attempts); i++) {
        load_merge(attempts[i].body);
        tn_rc rc = merge(row);
        const char *want = attempts[i].want;
        if (want ? rc == TN_OK || !strstr(s.err.text, want) : rc != TN_OK) {
            FAIL("%s\ngave %d: %s", attempts[i].body, rc, s.err.text);
        }
    }
}

static void times_before_1970_keep_their_digits(void)
{
    unsigned char data[512];
    open_columns(&c, "dev STRING NOT NULL; us TIMESTAMP(6); ns TIMESTAMP(9)");
    const char *const texts[] = {"a", "1969-12-31 23:59:59.999999",
                                 "2020-09-01 01:41:43.057155568"};
    struct tn_row row = pack_texts(&c, texts, data);
    load_merge(
        "assert(row.us == -1 and row.ns == 1598924503057155568) row.us = row.us row.ns = row.ns");
    tn_rc rc = merge(row);
    CHECK_OK(rc, s.err);
    CHECK(result.size == row.size && memcmp(result.data, row.data, row.size) == 0);
    const char *const far[] = {"a", NULL, "2300-01-01 00:00:00"};
    row = pack_texts(&c, far, data);
    load_merge("local x = row.ns");
    rc = merge(row);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "too far from 1970"));
}

static void decimals_are_exact(void)
{
    static const struct attempt attempts[] = {
        {"assert(tarn.decimal('0.1') + tarn.decimal('0.2') == tarn.decimal('0.3'))", NULL},
        {"assert(tostring(tarn.decimal('19.99') * 3) == '59.97')", NULL},
        {"assert(tostring(tarn.decimal('1.5') * tarn.decimal('1.5')) == '2.25')", NULL},
        {"assert(tostring(1 - tarn.decimal('0.01')) == '0.99')", NULL},
        {"assert(tostring(-tarn.decimal('5')) == '-5')", NULL},
        {"assert(tarn.decimal('1.10') == tarn.decimal('1.1'))", NULL},
        {"assert(tarn.decimal('1.10') < 2 and 2 > tarn.decimal('1.10') and tarn.decimal('2') <= 2)",
         NULL},
        {"assert(tarn.decimal('-99999999999999999999999999999999999999') < tarn.decimal('0.01'))",
         NULL},
        {"assert(tarn.decimal('99999999999999999999999999999999999999') > tarn.decimal('0.01'))",
         NULL},
        {"assert(tarn.decimal('2.5'):number() == 2.5)", NULL},
        {"local x = tarn.decimal('9e9')", "is no number of at most 38 digits"},
        {"local x = tarn.decimal(1.5)", "don't mix"},
        {"local x = tarn.decimal('1') + 1.5", "a tarn.decimal and a float don't mix"},
        {"local x = tarn.decimal('1') + 'a'", "don't mix"},
        {"local x = tarn.decimal('1') / 2",
         "attempt to perform arithmetic on a tarn.decimal value"},
        {"local d = tarn.decimal('99999999999999999999999999999999999999') local x = d + 1",
         "more than 38 digits"},
        {"local d = tarn.decimal('9999999999999999999999') local x = d * d", "more than 38 digits"},
        {"local d = tarn.decimal('0.00000000000000000001') local x = d * d", "more than 38 digits"},
    };
    unsigned char data[512];
    open_columns(&c, all_kinds);
    struct tn_row row = pack_texts(&c, values, data);
    for (size_t i = 0; i < COUNT(attempts); i++) {
        load_merge(attempts[i].body);
        tn_rc rc = merge(row);
        const char *want = attempts[i].want;
        if (want ? rc != TN_INVALID || !strstr(s.err.text, want) : rc != TN_OK) {
            FAIL("%s\ngave %d: %s", attempts[i].body, rc, s.err.text);
        }
    }
}

/* Random assignments of bytes and numbers, against a row packed of the same values. */
static void written_rows_are_the_rows_that_packing_makes(void)
{
    static const char *const columns[] = {"a", "b", "c", "n", "d"};
    open_columns(&c,
                 "dev STRING NOT NULL; a STRING; b STRING; n BIGINT; c BYTES; d DOUBLE; z STRING");
    for (int round = 0; round < 300; round++) {
        static char body[2048];
        body[0] = 0;
        const char *want[7] = {"k", NULL, NULL, NULL, NULL, NULL, "tail"};
        static char texts[8][32];
        static char hex[64];
        for (uint32_t i = random_below(&seed, 8); i > 0; i--) {
            uint32_t which = random_below(&seed, COUNT(columns));
            uint32_t size = random_below(&seed, 20);
            char *text = texts[i];
            int column = tn_row_layout_find(&c.layout, tn_bytes_of(columns[which]));
            char line[128];
            bool null = random_below(&seed, 4) == 0;
            if (which >= 3) {
                (void)snprintf(text, sizeof texts[0], "%u", size);
            } else {
                memset(text, 'a' + (int)i, size);
                text[size] = 0;
            }
            (void)snprintf(line, sizeof line, which >= 3 ? "row.%s = %s\n" : "row.%s = '%s'\n",
                           columns[which], text);
            if (null) {
                (void)snprintf(line, sizeof line, "row.%s = nil\n", columns[which]);
            } else if (which == 2) {
                for (uint32_t at = 0; at < size; at++) {
                    (void)snprintf(hex + 2 * at, 3, "%02X", text[at]);
                }
                hex[2 * size] = 0;
                text = hex;
            }
            want[column] = null ? NULL : text;
            (void)strcat(body, line);
        }
        static unsigned char data[512];
        static unsigned char data_want[512];
        const char *const blank[7] = {"k", NULL, NULL, NULL, NULL, NULL, "tail"};
        struct tn_row row = pack_texts(&c, blank, data);
        struct tn_row packed = pack_texts(&c, want, data_want);
        load_merge(body);
        tn_rc rc = merge(row);
        CHECK_OK(rc, s.err);
        CHECK(result.size == packed.size && memcmp(result.data, packed.data, packed.size) == 0);
    }
}

/* A handle that a script hides is of no use to it later, and harms nobody. */
static void a_handle_that_was_kept_shows_no_other_rows_memory(void)
{
    open_columns(&c, "dev STRING NOT NULL; n BIGINT; a STRING");
    open_state(&s, NULL);
    tn_rc rc = load_script(
        &s, &c,
        "local kept\nlocal m = {}\n"
        "function m.merge(now, row) if kept and not now then assert(kept.dev == nil) end\n"
        "kept = now return row end\nreturn m");
    CHECK_OK(rc, s.err);
    unsigned char *data = malloc(64);
    const char *const texts[] = {"k", "1", "x"};
    struct tn_row row = pack_texts(&c, texts, data);
    struct tn_buf out;
    enum tn_script_verdict verdict;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    rc = tn_script_merge(&s.script, &row, row, &ctx, &verdict, &out, &s.err);
    CHECK_OK(rc, s.err);
    free(data);
    unsigned char other[64];
    row = pack_texts(&c, texts, other);
    rc = tn_script_merge(&s.script, NULL, row, &ctx, &verdict, &out, &s.err);
    CHECK_OK(rc, s.err);
}

/* 100,000 merges of integers and floats leave the Lua heap as it was, to the byte. */
static void merging_numbers_makes_no_garbage(void)
{
    open_columns(
        &c, "dev STRING NOT NULL; temp DOUBLE; temp_max DOUBLE; samples BIGINT; f FLOAT; i INT");
    open_state(&s, NULL);
    tn_rc rc = load_script(
        &s, &c,
        "local m = {}\n"
        "function m.merge(now, row, ctx)\n"
        "  local was = now and now.temp_max\n"
        "  if was and was > row.temp then row.temp_max = was else row.temp_max = row.temp end\n"
        "  row.samples = (now and now.samples or 0) + 1\n"
        "  row.f = row.temp / 2 row.i = row.samples // 2\n"
        "  if ctx.late then return tarn.KEEP end\n"
        "  return row\n"
        "end\nreturn m");
    CHECK_OK(rc, s.err);
    unsigned char data[2][128];
    unsigned char folded[2][128];
    const char *const texts[] = {"k", "20.5", NULL, NULL, NULL, NULL};
    struct tn_row row = pack_texts(&c, texts, data[0]);
    struct tn_row now = row;
    size_t used = 0;
    for (int i = 0; i < 100000; i++) {
        struct tn_buf out;
        enum tn_script_verdict verdict;
        tn_buf_init(&out, folded[i & 1], sizeof folded[0]);
        rc = tn_script_merge(&s.script, &now, row, &ctx, &verdict, &out, &s.err);
        CHECK_OK(rc, s.err);
        now = (struct tn_row){out.data, (uint32_t)out.size};
        used = i == 10 ? s.vm.heap.used : used;
    }
    CHECK(s.vm.heap.used == used);
    struct tn_value samples;
    tn_row_get(&c.layout, now, 3, &samples);
    CHECK(samples.as.i64 == 100000);
}

static const struct test tests[] = {
    TEST(a_script_reads_each_kind_exactly),
    TEST(a_row_that_is_copied_column_by_column_keeps_its_bytes),
    TEST(null_is_nil_both_ways),
    TEST(a_value_that_does_not_fit_its_column_is_an_error),
    TEST(times_before_1970_keep_their_digits),
    TEST(decimals_are_exact),
    TEST(written_rows_are_the_rows_that_packing_makes),
    TEST(a_handle_that_was_kept_shows_no_other_rows_memory),
    TEST(merging_numbers_makes_no_garbage),
};

int main(int argc, char **argv)
{
    seed = given_number("SEED", 1);
    return run_tests(argc, argv, tests, COUNT(tests));
}
