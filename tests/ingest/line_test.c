/* line: InfluxDB's line protocol. A writer in the test, examples of its description, what users
 * reported, cuts and damage. */
#include "ingest/model.h"

static struct model m;
static unsigned char text[MODEL_RECORD_MAX];
static struct model_row row;

/* ---- a small table, whose names need escapes ---- */

struct small {
    struct tn_arena arena;
    struct tn_field fields[7];
    const char *names[7];
    struct tn_type types[7];
    enum tn_epoch epochs[7];
    struct tn_schema schema;
    struct tn_row_layout layout;
    struct tn_decoder *decoder;
    struct tn_err err;
};

static struct small small;

static tn_rc open_small(enum tn_unknown unknown, bool measurement, enum tn_epoch time_unit,
                        enum tn_epoch due_unit)
{
    static unsigned char memory[1 << 18];
    const char *const columns[7][2] = {
        {measurement ? "measurement" : "kind", "STRING"},
        {"time", "TIMESTAMP(9)"},
        {"value", "DOUBLE"},
        {"n", "BIGINT"},
        {"a b", "STRING"},
        {"x,y=z", "INT"},
        {"due", "TIMESTAMP(0)"},
    };
    struct small *s = &small;
    *s = (struct small){.epochs = {[1] = time_unit, [6] = due_unit}};
    tn_arena_init(&s->arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COUNT(columns); i++) {
        s->fields[i] = (struct tn_field){.name = columns[i][0]};
        tn_rc rc = tn_type_parse(tn_bytes_of(columns[i][1]), &s->fields[i].type, &s->err);
        CHECK_OK(rc, s->err);
        s->names[i] = columns[i][0];
        s->types[i] = s->fields[i].type;
    }
    tn_rc rc = tn_row_layout_init(&s->layout, s->names, s->types, 7, &s->arena, &s->err);
    CHECK_OK(rc, s->err);
    s->schema = (struct tn_schema){.fields = s->fields, .field_count = 7};
    struct tn_decode_spec spec = {.input = TN_INPUT_LINE,
                                  .unknown = unknown,
                                  .schema = &s->schema,
                                  .layout = &s->layout,
                                  .epochs = s->epochs,
                                  .record_size_max = 1000};
    return tn_decoder_open(&s->decoder, &spec, &s->arena, &s->err);
}

/* Takes the input in the pieces that `cuts` draws; NULL: at once. */
static const char *decode(struct tn_bytes input, uint64_t *cuts)
{
    static unsigned char out[1 << 14];
    struct tn_buf buf;
    tn_buf_init(&buf, out, sizeof out - 1);
    size_t begin = 0;
    size_t end = cuts ? 0 : input.size;
    for (;;) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        unsigned char *block = malloc(end - begin + 1);
        CHECK(block != NULL);
        memcpy(block + 1, input.data + begin, end - begin);
        tn_rc rc = tn_decoder_next(small.decoder, (struct tn_bytes){block + 1, end - begin},
                                   end == input.size, &decoded, &eaten, &small.err);
        if (rc == TN_OK && decoded.dead) {
            tn_buf_format(&buf, "dead %u: %s\n", (unsigned)decoded.line, decoded.reason);
        }
        for (uint32_t i = 0; rc == TN_OK && i < decoded.count; i++) {
            struct tn_row got = tn_decoder_row(small.decoder, &decoded, i);
            CHECK(tn_row_valid(&small.layout, got));
            tn_row_format_json(&small.layout, NULL, got, &buf);
            tn_buf_text(&buf, "\n");
        }
        free(block);
        if (rc == TN_AGAIN && end == input.size) {
            break;
        }
        if (rc == TN_AGAIN) {
            end += 1 + random_below(cuts, (uint32_t)(input.size - end));
            continue;
        }
        CHECK_OK(rc, small.err);
        begin += eaten;
    }
    CHECK(!buf.overflow);
    out[buf.size] = 0;
    return (const char *)out;
}

#define ROW(kind, time, value, n, ab, xyz)                                                    \
    "{\"measurement\":" kind ",\"time\":" time ",\"value\":" value ",\"n\":" n ",\"a b\":" ab \
    ",\"x,y=z\":" xyz ",\"due\":null}\n"
#define EPOCH "\"1970-01-01T00:00:00.000000000\""

static const char *const cases[][2] = {
    {"m value=1 0\n", ROW("\"m\"", EPOCH, "1.0", "null", "null", "null")},
    {"m value=1\n", ROW("\"m\"", "null", "1.0", "null", "null", "null")},
    {"  m   value=-1.5e+2   1556813561098000123  \r\n",
     ROW("\"m\"", "\"2019-05-02T16:12:41.098000123\"", "-150.0", "null", "null", "null")},
    {"m value=1 -1",
     ROW("\"m\"", "\"1969-12-31T23:59:59.999999999\"", "1.0", "null", "null", "null")},
    {"my\\ Meas\\,ure=ment,a\\ b=string\\ v\\,al\\=ue value=1i",
     ROW("\"my Meas,ure=ment\"", "null", "1.0", "null", "\"string v,al=ue\"", "null")},
    {"m,x\\,y\\=z=5 n=3u", ROW("\"m\"", "null", "null", "3", "null", "5")},
    {"m a\\ b=\"Launch, \\\"x\\\" \\\\ a=b\\n \xF0\x9F\x9A\x80\",n=5i,value=2",
     ROW("\"m\"", "null", "2.0", "5", "\"Launch, \\\"x\\\" \\\\ a=b\\\\n \xF0\x9F\x9A\x80\"",
         "null")},
    {"m a\\ b=\"two\nlines\n\",n=1i 0\nm n=2i\n",
     ROW("\"m\"", EPOCH, "null", "1", "\"two\\nlines\\n\"", "null")
         ROW("\"m\"", "null", "null", "2", "null", "null")},
    {"m,a\\ b=\"x n=1i\nm,a\\ b=q\"=\" n=1i\nm n=2i\n",
     "~\"a b\":\"\\\"x\",\"x,y=z\":null,\"due\":null}\ndead 2: at byte 9: an '=' in a tag"},
    {"m,a\\ b=C:\\path\\ x\\y n=1i",
     ROW("\"m\"", "null", "null", "1", "\"C:\\\\path x\\\\y\"", "null")},
    {"# it's \"a comment\n\n   # m n=1i\nm n=1i\n",
     ROW("\"m\"", "null", "null", "1", "null", "null")},
    {"m a\\ b=\"\"", ROW("\"m\"", "null", "null", "null", "\"\"", "null")},
    {"m n=9223372036854775807i",
     ROW("\"m\"", "null", "null", "9223372036854775807", "null", "null")},
    {"m n=9223372036854775808u", "~does not fit"},
    {"m n=-1u", "~'-1u' is no value"},
    {"m n=1.5i", "~'1.5i' is no value"},
    {"m value=1.5i", "~'1.5i' is no value"},
    {"m value=NaN", "~'NaN' is no value"},
    {"m value=-", "~'-' is no value"},
    {"m value=t", "~column 'value' is DOUBLE, and the record has a boolean"},
    {"m a\\ b=5", "~column 'a b' is VARCHAR, and the record has a number"},
    {"m n=1i,n=2i", "~'n' stands there twice"},
    {"m,n=1 n=2i", "~'n' stands there twice"},
    {"m,measurement=x n=2i", "~'measurement' stands there twice"},
    {"m", "~a name with '=' belongs here"},
    {"m,a\\ b=x", "~a name with '=' belongs here"},
    {"m 1556813561098000000", "~a name with '=' belongs here"},
    {"m n=", "~a field without a value"},
    {"m n=,value=1", "~a field without a value"},
    {"m,a\\ b= n=1i", "~a tag without a value"},
    {"m,=x n=1i", "~a name with '='"},
    {",a\\ b=x n=1i", "~a measurement belongs here"},
    {"m n=1i 1.5", "~the time is no integer"},
    {"m n=1i 1i", "~the time is no integer"},
    {"m n=1i 1 2", "~something follows"},
    {"m n=1i,value=\"x", "~the text does not end"},
    {"m a\\ b=\"x\\", "~the text does not end"},
    {"m a\\ b=\"x\"y", "~',' or a blank belongs here"},
    {"m vaule=1", "~field 'vaule' is no column; did you mean 'value'?"},
    {"m value=1 99999999999999999999", "~column 'time'"},
};

static void records_give_rows_or_a_reason(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        tn_rc rc = open_small(TN_UNKNOWN_FAIL, true, TN_EPOCH_NONE, TN_EPOCH_NONE);
        CHECK_OK(rc, small.err);
        const char *got = decode(tn_bytes_of(cases[i][0]), NULL);
        const char *want = cases[i][1];
        bool ok = want[0] == '~' ? strstr(got, want + 1) != NULL : strcmp(got, want) == 0;
        if (!ok) {
            (void)fprintf(stderr, "%s\n got %s\nwant %s\n", cases[i][0], got, want);
        }
        CHECK(ok);
    }
}

static void what_has_no_column_is_refused_or_dropped(void)
{
    tn_rc rc = open_small(TN_UNKNOWN_DROP, false, TN_EPOCH_NONE, TN_EPOCH_NONE);
    CHECK_OK(rc, small.err);
    const char *got = decode(
        tn_bytes_of("m,host=a q=1,b=t,s=\"x, y\",n=1i,z=2u 0\nm q=x,n=2i\nm n=3i,q=\"\n"), NULL);
    CHECK(strstr(got, "{\"kind\":null,\"time\":" EPOCH ",\"value\":null,\"n\":1,") == got);
    CHECK(strstr(got, "dead 2: at byte 4: no value") &&
          strstr(got, "dead 3: at byte 10: the text"));
    rc = open_small(TN_UNKNOWN_FAIL, false, TN_EPOCH_NONE, TN_EPOCH_NONE);
    CHECK_OK(rc, small.err);
    CHECK(strstr(decode(tn_bytes_of("m,host=a n=1i"), NULL), "field 'host' is no column"));
}

/* `time`, in ns or as told; two columns of units are a question. */
static void the_time_goes_to_its_column_in_its_unit(void)
{
    static const struct {
        enum tn_epoch time;
        enum tn_epoch due;
        const char *record;
        const char *part;
    } units[] = {
        {TN_EPOCH_S, TN_EPOCH_NONE, "m n=1i 5", "\"time\":\"1970-01-01T00:00:05.000000000\""},
        {TN_EPOCH_MS, TN_EPOCH_NONE, "m n=1i 5", "\"time\":\"1970-01-01T00:00:00.005000000\""},
        {TN_EPOCH_US, TN_EPOCH_NONE, "m n=1i 5", "\"time\":\"1970-01-01T00:00:00.000005000\""},
        {TN_EPOCH_NONE, TN_EPOCH_S, "m n=1i,due=7i 5",
         "\"time\":\"1970-01-01T00:00:00.000000005\""},
        {TN_EPOCH_MS, TN_EPOCH_S, "m n=1i,due=7i 5", "\"due\":\"1970-01-01T00:00:07"},
    };
    for (size_t i = 0; i < COUNT(units); i++) {
        tn_rc rc = open_small(TN_UNKNOWN_FAIL, true, units[i].time, units[i].due);
        CHECK_OK(rc, small.err);
        const char *got = decode(tn_bytes_of(units[i].record), NULL);
        CHECK(strstr(got, units[i].part));
    }
    m.epochs[MODEL_MS] = TN_EPOCH_MS;
    model_open(&m, TN_INPUT_LINE, 0);
    /* influxdata/telegraf#2245: one mistyped point */
    model_check_case(&m,
                     "test k=1i,a_double=1 1000\ntest k=1i,a_double=1i 2000\n"
                     "test k=1i,a_double=\"x\" 3000\ntest k=1i,a_double=2 4000\n"
                     "test k=1i,big=1i 1000\ntest k=1i,big=1.5 2000\ntest k=1i,big=2 3000\n",
                     "+I {k:1,a_double:1.0,at_ms:\"1970-01-01T00:00:01.000000000\"}\n"
                     "+I {k:1,a_double:1.0,at_ms:\"1970-01-01T00:00:02.000000000\"}\n"
                     "dead: at byte 20: column 'a_double': 'x' is no DOUBLE\n"
                     "+I {k:1,a_double:2.0,at_ms:\"1970-01-01T00:00:04.000000000\"}\n"
                     "+I {k:1,big:1,at_ms:\"1970-01-01T00:00:01.000000000\"}\n"
                     "dead: at byte 14: column 'big': '1.5' is no BIGINT\n"
                     "+I {k:1,big:2,at_ms:\"1970-01-01T00:00:03.000000000\"}\n");
    m.epochs[MODEL_MS] = TN_EPOCH_NONE;
    model_open(&m, TN_INPUT_LINE, 0);
    model_check_case(&m, "m k=1i 5", "~a time, and no column `time`");
    m.epochs[MODEL_MS] = TN_EPOCH_NS;
    model_open(&m, TN_INPUT_LINE, 0);
    model_check_case(&m, "m k=1i 5000001", "~column 'at_ms'");
    m.epochs[MODEL_MS] = TN_EPOCH_NONE;
}

static void two_columns_of_units_are_a_question(void)
{
    static struct tn_field fields[] = {{.name = "a"}, {.name = "b"}};
    static const enum tn_epoch epochs[] = {TN_EPOCH_S, TN_EPOCH_MS};
    static unsigned char memory[1 << 16];
    struct tn_schema schema = {.fields = fields, .field_count = 2};
    const char *names[] = {"a", "b"};
    struct tn_type types[2];
    struct tn_row_layout layout;
    struct tn_arena arena;
    struct tn_decoder *decoder = NULL;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    for (int i = 0; i < 2; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of("TIMESTAMP(3)"), &types[i], &err);
        CHECK_OK(rc, err);
        fields[i].type = types[i];
    }
    tn_rc rc = tn_row_layout_init(&layout, names, types, 2, &arena, &err);
    CHECK_OK(rc, err);
    struct tn_decode_spec spec = {.input = TN_INPUT_LINE,
                                  .schema = &schema,
                                  .layout = &layout,
                                  .epochs = epochs,
                                  .record_size_max = 100};
    rc = tn_decoder_open(&decoder, &spec, &arena, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "is the time to go to 'a' or to 'b'?"));
}

static void cuts_in_the_input_change_nothing(void)
{
    static const char stream[] =
        "m value=1 0\nm,a\\ b=x\\ \"y n=1i\r\n# \"\n\nm a\\ b=\"two\n\\\"li\\\\\","
        "n=2i 5\nbad\nm a\\ b=\"\",n=3i\nm a\\ b=\"open n=1i\n m n=4i";
    static char whole[1 << 14];
    tn_rc rc = open_small(TN_UNKNOWN_FAIL, true, TN_EPOCH_NONE, TN_EPOCH_NONE);
    CHECK_OK(rc, small.err);
    (void)snprintf(whole, sizeof whole, "%s", decode(tn_bytes_of(stream), NULL));
    CHECK(strstr(whole, "two\\n\\\"li\\\\") && strstr(whole, "dead 7: at byte 3"));
    for (uint64_t seed = 0; seed < 3000; seed++) {
        uint64_t state = seed;
        rc = open_small(TN_UNKNOWN_FAIL, true, TN_EPOCH_NONE, TN_EPOCH_NONE);
        CHECK_OK(rc, small.err);
        CHECK(strcmp(decode(tn_bytes_of(stream), &state), whole) == 0);
    }
}

/* One that is dead for its length ends where it would have, however it is cut: what stands in its
 * texts never becomes a record. */
static void check_long(const char *head, const char *tail, uint64_t lines)
{
    enum { SIZE_MAX_OF_RECORD = 1000 };
    static const char good[] = "m n=1i\n";
    static unsigned char record[4096];
    struct tn_buf buf;
    tn_buf_init(&buf, record, sizeof record);
    tn_buf_text(&buf, head);
    for (int i = 0; i < SIZE_MAX_OF_RECORD; i++) {
        tn_buf_byte(&buf, 'x');
    }
    tn_buf_text(&buf, tail);
    size_t size = buf.size;
    tn_buf_text(&buf, good);
    for (size_t cut = SIZE_MAX_OF_RECORD; cut <= size; cut++) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        uint32_t rows = 0;
        tn_rc rc = open_small(TN_UNKNOWN_FAIL, true, TN_EPOCH_NONE, TN_EPOCH_NONE);
        CHECK_OK(rc, small.err);
        rc = tn_decoder_next(small.decoder, (struct tn_bytes){record, cut}, false, &decoded, &eaten,
                             &small.err);
        CHECK(rc == TN_OK && decoded.dead && eaten == cut);
        for (size_t at = cut; at < buf.size; at += eaten) {
            rc = tn_decoder_next(small.decoder, (struct tn_bytes){record + at, buf.size - at}, true,
                                 &decoded, &eaten, &small.err);
            CHECK_OK(rc, small.err);
            if (decoded.dead || (decoded.count > 0 && decoded.line != lines)) {
                (void)fprintf(stderr, "cut at %zu of \"%s\": line %llu\n", cut, tail,
                              (unsigned long long)decoded.line);
            }
            CHECK(!decoded.dead);
            CHECK(decoded.count == 0 || decoded.line == lines);
            rows += decoded.count;
        }
        CHECK(rows == 1);
    }
}

static void a_long_record_ends_where_it_would_have(void)
{
    check_long("m a\\ b=\"", "\\\"\nm n=9i\n\\\\\",b=\"\nm n=8i\n\\\\\\\"\" 5\n", 6);
    check_long("m a=1i,", "b=2i,c=\"\nm n=9i\n\",d=\"\"\n", 4);
    check_long("m,t=\"", "\\ \\,u=\" a=\"\n\"\n", 3);
    check_long("# ", "a=\"\n", 2);
    check_long("m a=b", "\\\n", 2);
}

/* ---- a writer ---- */

static void put_tag(struct tn_buf *buf, struct tn_bytes plain)
{
    for (size_t i = 0; i < plain.size; i++) {
        if (plain.data[i] == ',' || plain.data[i] == '=' || plain.data[i] == ' ') {
            tn_buf_byte(buf, '\\');
        }
        tn_buf_byte(buf, plain.data[i]);
    }
}

static void put_quoted(struct tn_buf *buf, struct tn_bytes plain)
{
    tn_buf_byte(buf, '"');
    for (size_t i = 0; i < plain.size; i++) {
        if (plain.data[i] == '"' || plain.data[i] == '\\') {
            tn_buf_byte(buf, '\\');
        }
        tn_buf_byte(buf, plain.data[i]);
    }
    tn_buf_byte(buf, '"');
}

static void put_boolean(struct tn_buf *buf, bool yes)
{
    static const char *const words[2][5] = {{"f", "F", "false", "False", "FALSE"},
                                            {"t", "T", "true", "True", "TRUE"}};
    tn_buf_text(buf, words[yes][random_below(&m.state, 5)]);
}

static void put_field(struct tn_buf *buf, uint32_t column, struct tn_bytes plain)
{
    const struct tn_value *value = &row.values[column];
    if (column == MODEL_FLAG) {
        put_boolean(buf, value->as.i64);
    } else if (column <= MODEL_BIG) {
        bool unsign = value->as.i64 >= 0 && random_below(&m.state, 2);
        tn_buf_append(buf, plain.data, plain.size);
        tn_buf_text(buf, unsign ? "u" : "i");
    } else if (column <= MODEL_DOUBLE || column == MODEL_COST) {
        tn_buf_append(buf, plain.data, plain.size);
    } else {
        put_quoted(buf, plain);
    }
}

/* A tag can't be empty, nor hold a line end, nor a backslash before what would be escaped. */
static bool may_be_tag(struct tn_bytes plain)
{
    return plain.size > 0 && !memchr(plain.data, '\\', plain.size) &&
           !memchr(plain.data, '\n', plain.size) && plain.data[plain.size - 1] != '\r';
}

struct plan {
    bool tag[MODEL_COLUMNS];
    struct tn_bytes plain[MODEL_COLUMNS];
};

static void plan_row(struct plan *plan, struct tn_buf *texts, uint32_t time)
{
    uint32_t fields = 0;
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        size_t begin = texts->size;
        tn_value_format_text(&m.types[i], &row.values[i], texts);
        plan->plain[i] = (struct tn_bytes){texts->data + begin, texts->size - begin};
        bool present = !row.values[i].null && i != time;
        plan->tag[i] = present && may_be_tag(plan->plain[i]) && i > 0 && random_below(&m.state, 2);
        fields += present && !plan->tag[i];
    }
    CHECK(!texts->overflow && fields > 0);
}

static void put_time(struct tn_buf *buf, uint32_t time)
{
    const struct tn_value *value = &row.values[time];
    int64_t ms = value->as.i64;
    int64_t nanos = value->nanos;
    tn_buf_format(buf, " %lld",
                  (long long)(time == MODEL_MS   ? ms
                              : time == MODEL_US ? ms * 1000 + nanos / 1000
                                                 : ms * 1000000 + nanos));
}

static void put_record(struct tn_buf *buf, uint32_t time)
{
    static unsigned char room[4 * MODEL_TEXTS_MAX];
    struct plan plan;
    struct tn_buf texts;
    tn_buf_init(&texts, room, sizeof room);
    plan_row(&plan, &texts, time);
    tn_buf_text(buf, "a\\ measure=ment");
    for (uint32_t i = 0; i < MODEL_COLUMNS; i++) {
        if (plan.tag[i]) {
            tn_buf_format(buf, ",%s=", m.names[i]);
            put_tag(buf, plan.plain[i]);
        }
    }
    const char *separator = " ";
    for (uint32_t n = 0; n < MODEL_COLUMNS; n++) {
        uint32_t i = (n + row.used) % MODEL_COLUMNS;
        if (!plan.tag[i] && !row.values[i].null && i != time) {
            tn_buf_format(buf, "%s%s=", separator, m.names[i]);
            put_field(buf, i, plan.plain[i]);
            separator = ",";
        }
    }
    if (!row.values[time].null) {
        put_time(buf, time);
    }
}

static void draw_record(struct tn_buf *buf, uint32_t time)
{
    model_draw(&m, &row, 6000);
    tn_buf_init(buf, text, sizeof text);
    put_record(buf, time);
}

static uint32_t open_with_time(uint32_t row_size_max)
{
    static const uint32_t columns[] = {MODEL_MS, MODEL_US, MODEL_ZONED};
    static const enum tn_epoch units[] = {TN_EPOCH_MS, TN_EPOCH_US, TN_EPOCH_NS};
    uint32_t which = random_below(&m.state, 3);
    memset(m.epochs, 0, sizeof m.epochs);
    m.epochs[columns[which]] = units[which];
    model_open(&m, TN_INPUT_LINE, row_size_max);
    return columns[which];
}

static void what_is_written_comes_back(void)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        uint32_t time = open_with_time(0);
        for (int i = 0; i < 3; i++) {
            struct model_expect expect = {&row, TN_ROW_INSERT};
            struct tn_buf buf;
            draw_record(&buf, time);
            model_check_record(&m, &buf, &expect, 1);
        }
    }
}

static void damage_does_no_harm(void)
{
    uint32_t time = open_with_time(13000);
    for (uint64_t seed = 0; seed < 10000; seed++) {
        m.state = seed + 100000 * given_number("SEED", 1);
        struct tn_buf buf;
        draw_record(&buf, time);
        model_damage(&m, &buf);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(records_give_rows_or_a_reason),
        TEST(what_has_no_column_is_refused_or_dropped),
        TEST(the_time_goes_to_its_column_in_its_unit),
        TEST(two_columns_of_units_are_a_question),
        TEST(cuts_in_the_input_change_nothing),
        TEST(a_long_record_ends_where_it_would_have),
        TEST(what_is_written_comes_back),
        TEST(damage_does_no_harm),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
