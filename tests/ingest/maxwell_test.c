/* maxwell: a writer of the form in the test, vectors of the producer, what users reported, and
 * damage. */
#include "ingest/model.h"

static struct model m;
static unsigned char text[MODEL_RECORD_MAX];
static struct model_row after;
static struct model_row before;

static const char *const cases[][2] = {
    /* Maxwell's documentation, with this table's columns */
    {"{\"database\":\"test\",\"table\":\"maxwell\",\"type\":\"insert\",\"ts\":1449786310,\"xid\":"
     "940752,"
     "\"commit\":true,\"data\":{\"k\":1,\"note\":\"Stanislaw Lem\"}}",
     "+I {k:1,note:\"Stanislaw Lem\"}\n"},
    {"{\"database\":\"test\",\"table\":\"maxwell\",\"type\":\"update\",\"ts\":1449786341,\"xid\":"
     "940786,"
     "\"commit\":true,\"data\":{\"k\":1,\"note\":\"x\",\"big\":5},\"old\":{\"note\":\"Lem\"}}",
     "-U {k:1,big:5,note:\"Lem\"}\n+U {k:1,big:5,note:\"x\"}\n"},
    {"{\"type\":\"delete\",\"data\":{\"k\":1,\"at_ms\":\"2015-12-10 22:25:10.5\",\"cost\":1.25}}",
     "-D {k:1,cost:\"1.2500\",at_ms:\"2015-12-10T22:25:10.500000000\"}\n"},
    {"{\"database\":\"d\",\"table\":\"t\",\"type\":\"bootstrap-start\",\"ts\":3,\"data\":{}}",
     "skipped\n"},
    {"{\"type\":\"bootstrap-insert\",\"ts\":3,\"data\":{\"k\":1}}", "+I {k:1}\n"},
    {"{\"type\":\"bootstrap-complete\",\"ts\":3,\"data\":{}}", "skipped\n"},
    {"{\"type\":\"table-create\",\"database\":\"test\",\"table\":\"e\",\"def\":{\"database\":"
     "\"test\","
     "\"charset\":\"utf8mb4\",\"columns\":[{\"type\":\"int\",\"name\":\"id\",\"signed\":true}],"
     "\"primary-key\":[\"id\"]},\"ts\":1477053217000,\"sql\":\"create table e\"}",
     "skipped\n"},
    {"{\"old\":{\"database\":\"test\"},\"def\":{},\"data\":{\"x\":1},\"type\":\"table-alter\"}",
     "skipped\n"},
    {"{\"type\":\"database-drop\",\"database\":\"d\"}", "skipped\n"},
    /* read once more, as no row: also where it was a copy, whose escapes were taken out */
    {"{\"data\":{\"k\":1,\"note\":\"a\\\"b\",\"x\":1},\"type\":\"table-alter\"}", "skipped\n"},
    {"{\"data\":{\"k\":1,\"note\":\"a\\\"b\",\"x\":1},\"type\":\"insert\"}",
     "~field 'x' is no column"},
    /* JSON columns and sets, bits, bytes */
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"note\":{\"a\": "
     "[1,\"\\n\"]},\"flag\":1,\"raw\":\"AP8+/w==\"}}",
     "+I {k:1,flag:true,note:\"{\\\"a\\\": [1,\\\"\\\\n\\\"]}\",raw:\"00ff3eff\"}\n"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"note\":[\"a\",\"b\"],\"raw\":\"AP8-_w\"}}",
     "+I {k:1,note:\"[\\\"a\\\",\\\"b\\\"]\",raw:\"00ff3eff\"}\n"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"raw\":\"\"}}", "+I {k:1,raw:\"\"}\n"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"raw\":\"A\"}}",
     "~column 'raw': the text is no base64"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"raw\":\"AP8=AP8=\"}}", "~is no base64"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"raw\":\"AP=\"}}", "~is no base64"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"raw\":\"AP8 \"}}", "~is no base64"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"flag\":2}}", "~column 'flag'"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"note\":[1,}}}", "~no JSON value"},
    {"{\"type\":\"insert\",\"data\":{\"k\":1,\"big\":{}}}", "~has an object"},
    /* what is missing */
    {"{\"type\":\"update\",\"data\":{\"k\":1}}", "+U {k:1}\n"},
    {"{\"type\":\"update\",\"old\":{\"k\":1}}", "~type 'update' needs 'data'"},
    {"{\"type\":\"update\",\"data\":{\"k\":1,\"tiny\":1},\"old\":{\"tiny\":null}}",
     "-U {k:1}\n+U {k:1,tiny:1}\n"},
    {"{\"type\":\"insert\"}", "~type 'insert' needs 'data'"},
    {"{\"type\":\"insert\",\"data\":[]}", "~'data' is no object"},
    {"{\"data\":{\"k\":1,\"x\":1},\"type\":\"insert\"}", "~field 'x' is no column"},
    {"{\"data\":{\"k\":1,\"x\":1},\"type\":\"inserted\"}", "~type 'inserted' is none of insert"},
    {"{\"data\":{\"k\":1}}", "~type '' is none of insert, update, delete"},
    /* pingcap/tiflow#8159: a deleted row in `old` */
    {"{\"type\":\"delete\",\"old\":{\"k\":3}}", "-D {k:3}\n"},
    {"{\"type\":\"delete\",\"data\":{},\"old\":{\"k\":3}}", "-D {k:3}\n"},
    {"{\"type\":\"delete\"}", "~type 'delete' needs 'data'"},
    /* apache/paimon#5092 */
    {"{\"database\":\"d\",\"table\":\"t\",\"type\":\"insert\",\"ts\":1,\"data\":{\"k\":1,\"note\":"
     "\"a\"}}\n"
     "{\"type\":\"table-alter\",\"database\":\"d\",\"table\":\"t\",\"old\":{},\"def\":{},\"ts\":2}"
     "\n"
     "{\"database\":\"d\",\"table\":\"t\",\"type\":\"bootstrap-start\",\"ts\":3,\"data\":{}}\n"
     "{\"database\":\"d\",\"table\":\"t\",\"type\":\"update\",\"ts\":4,\"data\":{\"k\":1,\"note\":"
     "\"b\"},"
     "\"old\":{\"note\":\"a\"}}\n"
     "{\"database\":\"d\",\"table\":\"t\",\"type\":\"delete\",\"ts\":5,\"data\":{\"k\":1,\"note\":"
     "\"b\"}}\n",
     "+I {k:1,note:\"a\"}\nskipped\nskipped\n-U {k:1,note:\"a\"}\n+U {k:1,note:\"b\"}\n"
     "-D {k:1,note:\"b\"}\n"},
};

static void records_give_rows_nothing_or_a_reason(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        model_open(&m, TN_INPUT_MAXWELL, 0);
        model_check_case(&m, cases[i][0], cases[i][1]);
    }
}

static void put_value(struct tn_buf *buf, uint32_t column, const struct tn_value *value)
{
    bool bare = column <= MODEL_DOUBLE || column == MODEL_COST;
    if (value->null) {
        tn_buf_text(buf, "null");
    } else if (column == MODEL_RAW) {
        model_put_base64(&m, buf, value->as.bytes);
    } else if (column == MODEL_FLAG && random_below(&m.state, 2)) {
        tn_buf_text(buf, value->as.i64 ? "1" : "0");
    } else if (bare || column == MODEL_FLAG) {
        tn_value_format_text(&m.types[column], value, buf);
    } else {
        model_put_text(&m, buf, column, value);
    }
}

static void put_row(struct tn_buf *buf, const struct model_row *row, const struct model_row *other)
{
    const char *comma = "{";
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        const struct tn_value *value = &row->values[i];
        if (!other || tn_value_compare(&m.types[i], value, &other->values[i]) != 0) {
            tn_buf_format(buf, "%s\"%s\":", comma, m.names[i]);
            put_value(buf, i, value);
            comma = ",";
        }
    }
    tn_buf_text(buf, *comma == '{' ? "{}" : "}");
}

static void put_member(struct tn_buf *buf, const char *name, const struct model_row *row,
                       const struct model_row *other)
{
    tn_buf_format(buf, ",\"%s\":", name);
    put_row(buf, row, other);
}

static uint32_t draw_record(struct tn_buf *buf, struct model_expect *expect)
{
    static const char *const words[] = {"insert", NULL, "update", "delete"};
    static const enum tn_row_kind kinds[] = {TN_ROW_INSERT, TN_ROW_UPDATE_AFTER, TN_ROW_DELETE};
    enum tn_row_kind kind = kinds[random_below(&m.state, COUNT(kinds))];
    bool old = kind == TN_ROW_UPDATE_AFTER;
    uint32_t order = random_below(&m.state, 2);
    model_draw(&m, &after, 6000);
    if (old) {
        model_draw_before(&m, &before, &after, 6000);
    }
    tn_buf_init(buf, text, sizeof text);
    tn_buf_text(buf, "{\"database\":\"d\",\"ts\":1");
    if (order > 0) {
        tn_buf_format(buf, ",\"type\":\"%s\"", words[kind]);
        put_member(buf, "data", &after, NULL);
    }
    if (old) {
        put_member(buf, "old", &before, &after);
    }
    if (order == 0) {
        put_member(buf, "data", &after, NULL);
        tn_buf_format(buf, ",\"type\":\"%s\"", words[kind]);
    }
    tn_buf_text(buf, "}");
    expect[0] = (struct model_expect){&before, TN_ROW_UPDATE_BEFORE};
    expect[old] = (struct model_expect){&after, kind};
    return 1 + old;
}

static void what_is_written_comes_back(void)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        uint32_t row_size_max = random_below(&m.state, 2) ? 13000 : 0;
        struct model_expect expect[2];
        struct tn_buf buf;
        model_open(&m, TN_INPUT_MAXWELL, row_size_max);
        uint32_t count = draw_record(&buf, expect);
        model_check_record(&m, &buf, expect, count);
    }
}

static void damage_does_no_harm(void)
{
    model_open(&m, TN_INPUT_MAXWELL, 13000);
    for (uint64_t seed = 0; seed < 10000; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        struct model_expect expect[2];
        struct tn_buf buf;
        (void)draw_record(&buf, expect);
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
    return run_tests(argc, argv, tests, COUNT(tests));
}
