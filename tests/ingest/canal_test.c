/* canal: records of many rows. A writer of the form in the test, vectors of the producers, what
 * users reported, and damage. */
#include "ingest/model.h"

enum { ROWS_MAX = 120 };

static struct model m;
static unsigned char text[MODEL_RECORD_MAX];
static struct model_row *rows;   /* what is */
static struct model_row *before; /* what was */

static const char *const cases[][2] = {
    /* Paimon's own test data, less what the table has not */
    {"{\"data\":[{\"k\":\"1\",\"note\":\"one\"}],\"database\":\"d\",\"es\":1683168079000,\"id\":42,"
     "\"isDdl\":false,\"mysqlType\":{\"k\":\"INT\",\"note\":\"VARCHAR(10)\"},\"old\":null,"
     "\"pkNames\":[\"k\"],\"sql\":\"\",\"sqlType\":{\"k\":4,\"note\":12},\"table\":\"t\","
     "\"ts\":1683168079391,\"type\":\"DELETE\"}",
     "-D {k:1,note:\"one\"}\n"},
    {"{\"data\":[{\"k\":\"2\",\"note\":\"second\",\"big\":null}],\"isDdl\":false,"
     "\"old\":[{\"note\":\"two\"}],\"type\":\"UPDATE\"}",
     "-U {k:2,note:\"two\"}\n+U {k:2,note:\"second\"}\n"},
    {"{\"data\":null,\"database\":\"d\",\"id\":15,\"isDdl\":true,\"mysqlType\":null,\"old\":null,"
     "\"pkNames\":null,\"sql\":\"ALTER TABLE t ADD COLUMN v2 INT\",\"sqlType\":null,"
     "\"type\":\"ALTER\"}",
     "skipped\n"},
    {"{\"data\":[{\"k\":\"1\",\"cost\":\"12345.110\",\"a_day\":\"2023-03-23\","
     "\"at_ms\":\"2023-03-23 14:30:05.123\",\"at_us\":\"2023-03-23 14:30:05.123456\","
     "\"clock\":\"10:13:23\",\"flag\":\"1\",\"tiny\":\"-5\",\"a_double\":\"1.000011\"}],"
     "\"type\":\"INSERT\"}",
     "+I {k:1,tiny:-5,a_double:1.000011,flag:true,cost:\"12345.1100\","
     "at_ms:\"2023-03-23T14:30:05.123000000\",at_us:\"2023-03-23T14:30:05.123456000\","
     "a_day:\"2023-03-23\",clock:\"10:13:23.000\"}\n"},
    {"{\"data\":[{\"k\":\"1\",\"raw\":\"\\u0000\u00ff\u00e9A\\n\\u0080\"}],\"type\":\"INSERT\"}",
     "+I {k:1,raw:\"00ffe9410a80\"}\n"},
    {"{\"data\":[{\"k\":\"1\",\"raw\":\"\u0100\"}],\"type\":\"INSERT\"}", "~beyond U+00FF"},
    {"{\"data\":[{\"k\":\"1\",\"raw\":\"\\u20ac\"}],\"type\":\"INSERT\"}", "~beyond U+00FF"},
    /* many rows, and words */
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":\"1\"},{\"k\":\"2\"} , {\"k\":\"3\"}]}",
     "+I {k:1}\n+I {k:2}\n+I {k:3}\n"},
    {"{\"type\":\"ROW\",\"data\":[{\"k\":1}]}", "+I {k:1}\n"},
    {"{\"type\":\"UPDATE\",\"data\":[{\"k\":\"1\",\"note\":\"a\"},{\"k\":\"2\",\"note\":\"b\"}],"
     "\"old\":[{\"note\":null},{\"k\":\"9\"}]}",
     "-U {k:1}\n+U {k:1,note:\"a\"}\n-U {k:9,note:\"b\"}\n+U {k:2,note:\"b\"}\n"},
    {"{\"type\":\"UPDATE\",\"data\":[{\"k\":\"1\"},{\"k\":\"2\"}],\"old\":null}",
     "+U {k:1}\n+U {k:2}\n"},
    {"{\"type\":\"UPDATE\",\"data\":[{\"k\":\"1\"}],\"old\":[]}", "+U {k:1}\n"},
    {"{\"type\":\"UPDATE\",\"data\":[{\"k\":\"1\"},{\"k\":\"2\"}],\"old\":[{}]}",
     "~'data' has 2 rows, and 'old' has 1"},
    {"{\"type\":\"UPDATE\",\"data\":[{\"k\":\"1\"}],\"old\":[{},{}]}", "~and 'old' has 2"},
    {"{\"type\":\"UPDATE\",\"data\":[{\"k\":\"1\"}],\"old\":[null]}", "~an object of 'old'"},
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":\"1\"},{\"k\":null}]}",
     "~dead: column 'k' is NOT NULL"},
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":\"1\"},{\"k\":\"x\"}]}",
     "~dead: at byte 40: column 'k'"},
    {"{\"type\":\"INSERT\",\"data\":[]}", "~needs rows in 'data'"},
    {"{\"type\":\"INSERT\",\"data\":{}}", "~'data' is no array"},
    {"{\"type\":\"INSERT\",\"data\":[1]}", "~an object of 'data' belongs here"},
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":1},]}", "~an object of 'data' belongs here"},
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":1},{]}", "~name in quotes"},
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":1}}", "~',' or ']' belongs here"},
    {"{\"data\":[{\"k\":1,\"nope\":2}],\"type\":\"INSERT\"}", "~field 'nope' is no column"},
    {"{\"data\":[{\"k\":1}]}", "~type '' is none of INSERT, UPDATE, DELETE"},
    {"{\"data\":null,\"type\":\"QUERY\",\"isDdl\":false,\"sql\":\"delete from t\"}",
     "~type 'QUERY' is none of"},
    {"{\"data\":null,\"type\":\"CREATE\"}", "skipped\n"},
    {"{\"data\":[{\"no\":[{}]}],\"old\":[{\"x\":1}],\"type\":\"RENAME\",\"isDdl\":true}",
     "skipped\n"},
    {"{\"type\":\"TRUNCATE\",\"isDdl\":true,\"data\":null}", "~a truncate is no row"},
    {"{\"type\":\"INSERT\",\"data\":[{\"k\":1}],\"type\":\"INSERT\"}",
     "~'type' stands there twice"},
    {"[]", "~an object belongs here"},
    /* apache/paimon#4453: a deleted row in `old` */
    {"{\"old\":[{\"k\":8,\"note\":\"z3\"}],\"data\":null,\"type\":\"DELETE\",\"database\":null,"
     "\"table\":\"s\",\"pkNames\":[\"k\"],\"ts\":0}",
     "-D {k:8,note:\"z3\"}\n"},
    {"{\"data\":[{\"k\":8,\"note\":\"z3\"}],\"old\":null,\"type\":\"DELETE\"}",
     "-D {k:8,note:\"z3\"}\n"},
    {"{\"data\":null,\"old\":null,\"type\":\"DELETE\"}", "~type 'DELETE' needs rows"},
    {"{\"data\":null,\"old\":[{\"k\":1},{\"k\":2}],\"type\":\"DELETE\"}", "-D {k:1}\n-D {k:2}\n"},
};

static void records_give_rows_nothing_or_a_reason(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        model_open(&m, TN_INPUT_CANAL, 0);
        model_check_case(&m, cases[i][0], cases[i][1]);
    }
}

/* ---- a writer ---- */

static void put_latin1(struct tn_buf *buf, struct tn_bytes bytes)
{
    tn_buf_byte(buf, '"');
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char byte = bytes.data[i];
        if (byte < 0x20 || byte == '"' || byte == '\\' || random_below(&m.state, 9) == 0) {
            tn_buf_format(buf, "\\u%04X", byte);
        } else if (byte < 0x80) {
            tn_buf_byte(buf, byte);
        } else {
            tn_buf_byte(buf, (unsigned char)(0xC0 | byte >> 6));
            tn_buf_byte(buf, (unsigned char)(0x80 | (byte & 0x3F)));
        }
    }
    tn_buf_byte(buf, '"');
}

static void put_value(struct tn_buf *buf, uint32_t column, const struct tn_value *value)
{
    if (value->null) {
        tn_buf_text(buf, "null");
    } else if (column == MODEL_RAW) {
        put_latin1(buf, value->as.bytes);
    } else if (column == MODEL_FLAG && random_below(&m.state, 2)) {
        tn_buf_text(buf, value->as.i64 ? "\"1\"" : "\"0\"");
    } else {
        model_put_text(&m, buf, column, value);
    }
}

/* The columns of `row`, but for those that `other`, if given, has alike. */
static void put_row(struct tn_buf *buf, const struct model_row *row, const struct model_row *other)
{
    const char *comma = "{";
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        uint32_t column = (i + row->used) % MODEL_COLUMNS;
        const struct tn_value *value = &row->values[column];
        bool same = other && tn_value_compare(&m.types[column], value, &other->values[column]) == 0;
        if (!same && !(value->null && !other && random_below(&m.state, 3) == 0)) {
            tn_buf_format(buf, "%s\"%s\":", comma, m.names[column]);
            put_value(buf, column, value);
            comma = ",";
        }
    }
    tn_buf_text(buf, *comma == '{' ? "{}" : "}");
}

static void put_rows(struct tn_buf *buf, const char *name, uint32_t count, bool old)
{
    tn_buf_format(buf, "\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        tn_buf_text(buf, i > 0 ? "," : "");
        put_row(buf, old ? &before[i] : &rows[i], old ? &rows[i] : NULL);
    }
    tn_buf_text(buf, "]");
}

static void put_record(struct tn_buf *buf, enum tn_row_kind kind, uint32_t count, bool old)
{
    static const char *const words[] = {"INSERT", NULL, "UPDATE", "DELETE"};
    bool type_first = random_below(&m.state, 2);
    bool old_first = old && random_below(&m.state, 2);
    tn_buf_text(buf, "{");
    if (type_first) {
        tn_buf_format(buf, "\"type\":\"%s\",", words[kind]);
    }
    if (old_first) {
        put_rows(buf, "old", count, true);
        tn_buf_text(buf, ",");
    }
    put_rows(buf, "data", count, false);
    tn_buf_text(buf, ",\"mysqlType\":{\"k\":\"int\"},\"isDdl\":false");
    if (!old_first) {
        tn_buf_text(buf, ",");
        if (old) {
            put_rows(buf, "old", count, true);
        } else {
            tn_buf_text(buf, "\"old\":null");
        }
    }
    if (!type_first) {
        tn_buf_format(buf, ",\"type\":\"%s\"", words[kind]);
    }
    tn_buf_text(buf, "}");
}

static void draw_record(struct tn_buf *buf, struct model_expect *expect, uint32_t *count)
{
    static const enum tn_row_kind kinds[] = {TN_ROW_INSERT, TN_ROW_UPDATE_AFTER, TN_ROW_DELETE};
    enum tn_row_kind kind = kinds[random_below(&m.state, COUNT(kinds))];
    bool old = kind == TN_ROW_UPDATE_AFTER && random_below(&m.state, 4) > 0;
    uint32_t size = random_below(&m.state, 6);
    size = size == 0 ? 1 + random_below(&m.state, ROWS_MAX) : size;
    uint32_t size_max = size > 5 ? 60 : 6000;
    *count = 0;
    for (uint32_t i = 0; i < size; i++) {
        model_draw(&m, &rows[i], size_max);
        if (old) {
            model_draw_before(&m, &before[i], &rows[i], size_max);
            expect[(*count)++] = (struct model_expect){&before[i], TN_ROW_UPDATE_BEFORE};
        }
        expect[(*count)++] = (struct model_expect){&rows[i], kind};
    }
    tn_buf_init(buf, text, sizeof text);
    put_record(buf, kind, size, old);
}

static void what_is_written_comes_back(void)
{
    static struct model_expect expect[2 * ROWS_MAX];
    for (uint64_t seed = 0; seed < 1500; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        uint32_t row_size_max = random_below(&m.state, 2) ? 13000 : 0; /* then rows don't fit beside
                                                                          each other */
        struct tn_buf buf;
        uint32_t count;
        model_open(&m, TN_INPUT_CANAL, row_size_max);
        draw_record(&buf, expect, &count);
        model_check_record(&m, &buf, expect, count);
    }
}

static void damage_does_no_harm(void)
{
    static struct model_expect expect[2 * ROWS_MAX];
    model_open(&m, TN_INPUT_CANAL, 13000);
    for (uint64_t seed = 0; seed < 3000; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        struct tn_buf buf;
        uint32_t count;
        draw_record(&buf, expect, &count);
        model_damage(&m, &buf);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(records_give_rows_nothing_or_a_reason),
        TEST(what_is_written_comes_back),
        TEST(damage_does_no_harm),
    };
    rows = malloc(ROWS_MAX * sizeof *rows);
    before = malloc(ROWS_MAX * sizeof *before);
    CHECK(rows && before);
    int code = run_tests(argc, argv, tests, COUNT(tests));
    free(rows);
    free(before);
    return code;
}
