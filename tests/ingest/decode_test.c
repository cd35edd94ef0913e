/* Records as a table of text and rows; then what must hold for any: order of members, escapes, how
 * the input is cut, damage. */
#include "ingest/decode.h"

#include "base/check.h"
#include "check.h"
#include "ingest/decode_scan.h"

enum { RECORD_MAX = 512 };

struct column_spec {
    const char *name;
    const char *type;
    const char *fallback; /* default value */
    enum tn_epoch epoch;
};

static const struct column_spec sensor_columns[] = {
    {"id", "STRING NOT NULL", NULL, TN_EPOCH_NONE},
    {"n", "INT", NULL, TN_EPOCH_NONE},
    {"big", "BIGINT", "7", TN_EPOCH_NONE},
    {"temperature", "DOUBLE", NULL, TN_EPOCH_NONE},
    {"ratio", "FLOAT", NULL, TN_EPOCH_NONE},
    {"ok", "BOOLEAN", NULL, TN_EPOCH_NONE},
    {"ts", "TIMESTAMP(3)", NULL, TN_EPOCH_MS},
    {"raw", "VARBINARY(4)", NULL, TN_EPOCH_NONE},
    {"cost", "DECIMAL(9, 2)", NULL, TN_EPOCH_NONE},
    {"tag", "VARCHAR(3)", "new", TN_EPOCH_NONE},
    {"tiny", "TINYINT", NULL, TN_EPOCH_NONE},
    {"a \"quoted\" name", "INT", NULL, TN_EPOCH_NONE},
    {"must", "INT NOT NULL", "5", TN_EPOCH_NONE},
};
enum { COLUMNS = COUNT(sensor_columns) };

struct fixture {
    struct tn_arena arena;
    struct tn_schema schema;
    struct tn_row_layout layout;
    struct tn_decoder *decoder;
    struct tn_err err;
};

static unsigned char memory[1 << 20];
static struct tn_field fields[COLUMNS];
static const char *names[COLUMNS];
static struct tn_type types[COLUMNS];
static enum tn_epoch epochs[COLUMNS];
static const uint32_t primary_keys[] = {0};

static void open_fixture(struct fixture *f, enum tn_input input, enum tn_unknown unknown)
{
    *f = (struct fixture){0};
    tn_arena_init(&f->arena, memory, sizeof memory);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const struct column_spec *spec = &sensor_columns[i];
        fields[i] = (struct tn_field){.name = spec->name, .default_value = spec->fallback};
        tn_rc rc = tn_type_parse(tn_bytes_of(spec->type), &fields[i].type, &f->err);
        CHECK_OK(rc, f->err);
        names[i] = spec->name;
        types[i] = fields[i].type;
        epochs[i] = spec->epoch;
    }
    tn_rc rc = tn_row_layout_init(&f->layout, names, types, COLUMNS, &f->arena, &f->err);
    CHECK_OK(rc, f->err);
    f->schema = (struct tn_schema){
        .fields = fields, .field_count = COLUMNS, .primary_keys = {primary_keys, 1}};
    struct tn_decode_spec spec = {.input = input,
                                  .unknown = unknown,
                                  .schema = &f->schema,
                                  .layout = &f->layout,
                                  .epochs = epochs,
                                  .record_size_max = RECORD_MAX};
    rc = tn_decoder_open(&f->decoder, &spec, &f->arena, &f->err);
    CHECK_OK(rc, f->err);
}

/* What a record gave, as text: "+I {...}\n" a row, or "dead: reason\n". */
static void describe(const struct fixture *f, struct tn_decoded *decoded, struct tn_buf *buf)
{
    if (decoded->dead) {
        CHECK(decoded->count == 0 && decoded->reason[0] != 0);
        tn_buf_format(buf, "dead %u: %s\n", (unsigned)decoded->line, decoded->reason);
    }
    for (uint32_t i = 0; i < decoded->count; i++) {
        struct tn_row row = tn_decoder_row(f->decoder, decoded, i);
        CHECK(tn_row_valid(&f->layout, row));
        tn_buf_format(buf, "%s ", tn_row_kind_text(tn_decoded_kind(decoded, i)));
        tn_row_format_json(&f->layout, NULL, row, buf);
        tn_buf_text(buf, "\n");
    }
}

/* Decodes everything from a buffer without a byte to spare, so that ASan sees a look beyond it. */
static const char *decode_all(struct fixture *f, struct tn_bytes input)
{
    static unsigned char out[1 << 16];
    struct tn_buf buf;
    tn_buf_init(&buf, out, sizeof out - 1);
    unsigned char *copy = malloc(input.size + 1);
    CHECK(copy != NULL);
    unsigned char *exact = copy + 1; /* unaligned, too */
    memcpy(exact, input.data, input.size);
    size_t at = 0;
    for (;;) {
        struct tn_decoded decoded;
        size_t eaten = 0;
        struct tn_bytes rest = {exact + at, input.size - at};
        tn_rc rc = tn_decoder_next(f->decoder, rest, true, &decoded, &eaten, &f->err);
        if (rc == TN_AGAIN) {
            CHECK(at == input.size);
            break;
        }
        CHECK_OK(rc, f->err);
        CHECK(eaten > 0 && eaten <= rest.size);
        describe(f, &decoded, &buf);
        at += eaten;
    }
    free(copy);
    CHECK(!buf.overflow);
    out[buf.size] = 0;
    return (const char *)out;
}

struct record_case {
    enum tn_input input;
    const char *text;
    const char *expect; /* all of it, or a part behind '~' */
};

/* A row with only id and must, from `n` on. */
#define REST                                                                              \
    "\"big\":7,\"temperature\":null,\"ratio\":null,\"ok\":null,\"ts\":null,\"raw\":null," \
    "\"cost\":null,\"tag\":\"new\",\"tiny\":null,\"a \\\"quoted\\\" name\":null,\"must\":1}\n"
#define ROW(id, n) "{\"id\":\"" id "\",\"n\":" n "," REST

static const struct record_case cases[] = {
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1}", "+I " ROW("a", "null")},
    {TN_INPUT_JSON, "  { \"must\" : 1 , \"n\" : -5 , \"id\" : \"a\" } \r\n", "+I " ROW("a", "-5")},
    {TN_INPUT_JSON, "\xEF\xBB\xBF{\"id\":\"a\",\"must\":1}", "+I " ROW("a", "null")},
    {TN_INPUT_JSON, "\n \t\r\n", ""},
    {TN_INPUT_JSON,
     "{\"id\":\"x\",\"n\":1,\"big\":-9223372036854775808,\"temperature\":14.138,\"ratio\":0.1,"
     "\"ok\":true,"
     "\"ts\":1764547200003,\"raw\":\"00ff\",\"cost\":12.5,\"tag\":\"abc\",\"tiny\":-128,"
     "\"a \\\"quoted\\\" name\":3,\"must\":2}",
     "+I {\"id\":\"x\",\"n\":1,\"big\":-9223372036854775808,\"temperature\":14.138,\"ratio\":0.1,"
     "\"ok\":true,\"ts\":\"2025-12-01T00:00:00.003000000\",\"raw\":\"00ff\",\"cost\":\"12.50\","
     "\"tag\":\"abc\",\"tiny\":-128,\"a \\\"quoted\\\" name\":3,\"must\":2}\n"},
    {TN_INPUT_JSON,
     "{\"id\":\"x\",\"n\":1,\"big\":2,\"temperature\":3,\"ratio\":4,\"ok\":true,\"ts\":5,\"raw\":"
     "\"\","
     "\"cost\":6,\"tag\":\"\",\"tiny\":7,\"a \\\"quoted\\\" name\":8,\"must\":null}",
     "~column 'must' is NOT NULL"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"n\":\"17\"}", "+I " ROW("a", "17")},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1.0,\"n\":17.00}", "+I " ROW("a", "17")},
    {TN_INPUT_JSON, "{\"\\u0069d\":\"a\",\"must\":1}", "+I " ROW("a", "null")},
    {TN_INPUT_JSON, "{\"id\":\"\\u00e4\\ud83d\\ude00\\n\\/\",\"must\":1}",
     "+I " ROW("\u00e4\U0001F600\\n/", "null")},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"temperature\":1e400}", "~does not fit"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"n\":1.5}", "~column 'n'"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"n\":2147483648}", "~does not fit"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"tiny\":128}", "~does not fit"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"tag\":\"abcd\"}", "~column 'tag'"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"raw\":\"0001020304\"}", "~column 'raw'"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"tag\":5}",
     "~column 'tag' is VARCHAR, and the record has a number"},
    {TN_INPUT_JSON, "{\"id\":true,\"must\":1}", "~column 'id' is VARCHAR, and the record has true"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":{}}", "~has an object"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":01}",
     "~dead 1: at byte 17: column 'must': no JSON value"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"n\":-}", "~no JSON value"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"temperature\":1.}", "~no JSON value"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"temperature\":.5}", "~no JSON value"},
    {TN_INPUT_JSON, "{\"id\":\"a\"}", "~column 'must' is NOT NULL"},
    {TN_INPUT_JSON, "{\"id\":null,\"must\":1}", "~column 'id' is NOT NULL"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":null}", "~column 'must' is NOT NULL"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"id\":\"b\"}", "~column 'id' stands there twice"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,\"temperatur\":2}", "~did you mean 'temperature'?"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1} x", "~something follows"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1}}", "~something follows"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1,}", "~name in quotes"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"must\":1", "~belongs here"},
    {TN_INPUT_JSON, "{\"id\":\"a", "~string"},
    {TN_INPUT_JSON, "{\"id\":\"a\\", "~escape"},
    {TN_INPUT_JSON, "{\"id\":\"\\ud800x\",\"must\":1}", "~surrogate"},
    {TN_INPUT_JSON, "{\"id\":\"\\ud83d\\ud83d\",\"must\":1}", "~surrogate"},
    {TN_INPUT_JSON, "{\"id\":\"a\",\"n\":1,\"big\":1,\"temperatXXX\":2}", "~is no column"},
    {TN_INPUT_JSON, "{\"id\":\"\\x\",\"must\":1}", "~escape"},
    {TN_INPUT_JSON, "{\"id\":\"a\tb\",\"must\":1}", "~control byte"},
    {TN_INPUT_JSON, "{\"id\":\"\xC3(\",\"must\":1}", "~UTF-8"},
    {TN_INPUT_JSON, "[1]", "~an object belongs here"},
    {TN_INPUT_JSON, "{\"id\":\"a\"\n{\"id\":\"b\",\"must\":1}\n", "~+I {\"id\":\"b\""},

    {TN_INPUT_CHANGES, "{\"kind\":\"-U\",\"row\":{\"id\":\"a\",\"must\":1}}",
     "-U " ROW("a", "null")},
    {TN_INPUT_CHANGES, "{\"row\":{\"id\":\"a\",\"must\":1},\"kind\":\"-D\"}",
     "-D " ROW("a", "null")},
    {TN_INPUT_CHANGES, "{\"row\":{\"id\":\"a\",\"must\":1}}", "~'kind' has to be"},
    {TN_INPUT_CHANGES, "{\"kind\":\"+X\",\"row\":{\"id\":\"a\",\"must\":1}}", "~'kind' has to be"},
    {TN_INPUT_CHANGES, "{\"kind\":\"+I\"}", "~no 'row'"},
    {TN_INPUT_CHANGES, "{\"kind\":\"+I\",\"row\":[]}", "~'row' is no object"},
    {TN_INPUT_CHANGES, "{\"kind\":\"+I\",\"row\":{},\"x\":1}", "~only 'kind' and 'row'"},

    {TN_INPUT_DEBEZIUM, "{\"before\":null,\"after\":{\"id\":\"a\",\"must\":1},\"op\":\"c\"}",
     "+I " ROW("a", "null")},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"r\",\"after\":{\"id\":\"a\",\"must\":1}}",
     "+I " ROW("a", "null")},
    {TN_INPUT_DEBEZIUM,
     "{\"before\":{\"id\":\"a\",\"must\":1,\"n\":1},\"after\":{\"id\":\"a\",\"must\":1,\"n\":2},"
     "\"op\":\"u\"}",
     "-U " ROW("a", "1") "+U " ROW("a", "2")},
    {TN_INPUT_DEBEZIUM, "{\"after\":{\"id\":\"a\",\"must\":1},\"op\":\"u\"}",
     "+U " ROW("a", "null")},
    {TN_INPUT_DEBEZIUM, "{\"before\":{\"id\":\"a\",\"must\":1},\"after\":null,\"op\":\"d\"}",
     "-D " ROW("a", "null")},
    {TN_INPUT_DEBEZIUM,
     "{\"schema\":{\"fields\":[{\"a\":[]},{},[[]],-1.5e+3,\"\\u0041\\n\",true,false,null]},"
     "\"payload\":"
     "{\"after\":{\"id\":\"a\",\"must\":1},\"source\":{\"ts_ms\":1,\"x\":[1,2]},\"op\":\"c\"},"
     "\"z\":0}",
     "+I " ROW("a", "null")},
    {TN_INPUT_DEBEZIUM, "null", ""},
    {TN_INPUT_DEBEZIUM, "{\"schema\":null,\"payload\":null}", ""},
    {TN_INPUT_DEBEZIUM, "{\"payload\":{}}", "~op '' is none"},
    {TN_INPUT_DEBEZIUM, "{}", "~op '' is none"},
    {TN_INPUT_DEBEZIUM, "{\"payload\":{\"payload\":{}}}", "~twice"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"d\",\"after\":{\"id\":\"a\",\"must\":1}}",
     "~op 'd' needs 'before'"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"d\",\"before\":{\"id\":\"a\"}}", "~column 'must' is NOT NULL"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"c\"}", "~op 'c' needs 'after'"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"t\"}", "~truncate"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"m\"}", "~message"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"x\"}", "~op 'x' is none"},
    {TN_INPUT_DEBEZIUM, "{\"op\":1}", "~'op' is no string"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"c\",\"op\":\"d\"}", "~'op' stands there twice"},
    {TN_INPUT_DEBEZIUM, "{\"op\":\"c\"{\"after\":1}}", "~belongs here"},
    {TN_INPUT_DEBEZIUM, "{\"payload\":{\"op\":\"c\"{}}}", "~belongs here"},
    {TN_INPUT_DEBEZIUM, "{\"source\":{\"a\":1]}", "~'}' belongs here"},
    {TN_INPUT_DEBEZIUM, "{\"source\":[1,],\"op\":\"c\"}", "~no JSON value"},
    {TN_INPUT_DEBEZIUM, "{\"source\":{\"a\":tru},\"op\":\"c\"}", "~no JSON value"},
    {TN_INPUT_DEBEZIUM, "{\"source\":{\"a\":01},\"op\":\"c\"}", "~no JSON value"},
    {TN_INPUT_DEBEZIUM,
     "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],\"op\":\"t\"}",
     "~truncate"},
    {TN_INPUT_DEBEZIUM,
     "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],\"op\":\"t\"}",
     "~nested more than 32 deep"},

    {TN_INPUT_CSV, "id,must\na,1\n", "+I " ROW("a", "null")},
    {TN_INPUT_CSV, "\xEF\xBB\xBFmust,\"id\",n\r\n1,a,2\r\n1,b,3",
     "+I " ROW("a", "2") "+I " ROW("b", "3")},
    {TN_INPUT_CSV, "id,must,n\n\"a,\"\"b\"\"\n\",1,\"9\"\n\nc,1,\n",
     "+I " ROW("a,\\\"b\\\"\\n", "9") "+I " ROW("c", "null")},
    {TN_INPUT_CSV, "id,must\n\"\",1\n", "+I " ROW("", "null")},
    {TN_INPUT_CSV, "id,must\n,1\nb,1\n", "~dead 2: column 'id' is NOT NULL"},
    {TN_INPUT_CSV, "id,must\na,1,2\nb,1\n", "~dead 2: at byte 3: more fields"},
    {TN_INPUT_CSV, "id,must\na\nb,1\n", "~dead 2: at byte 1: fewer fields"},
    {TN_INPUT_CSV, "id,must\na\"b,1\nb,1\n", "~a quote inside"},
    {TN_INPUT_CSV, "id,must\na\"\"b\",1\nb,1\n", "~+I {\"id\":\"b\""},
    {TN_INPUT_CSV, "id,must\n\"a\"b,1\nb,1\n", "~behind its quotes"},
    {TN_INPUT_CSV, "id,must\n\"a\nb\n\",x\nb,1\n\"c", "~dead 6: at byte 1: the quote does not end"},
    {TN_INPUT_CSV, "id,must,temperature,ok,ts\na,1,1.5,true,1\n",
     "~\"temperature\":1.5,\"ratio\":null,\"ok\":true,\"ts\":\"1970-01-01T00:00:00.001"},
};

static void records_become_rows_or_dead_letters(void)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct fixture f;
        open_fixture(&f, cases[i].input, TN_UNKNOWN_FAIL);
        const char *got = decode_all(&f, tn_bytes_of(cases[i].text));
        const char *expect = cases[i].expect;
        bool ok = expect[0] == '~' ? strstr(got, expect + 1) != NULL : strcmp(got, expect) == 0;
        if (!ok) {
            (void)fprintf(stderr, "case %zu: %s\n got %s\nwant %s\n", i, cases[i].text, got,
                          expect);
        }
        CHECK(ok);
    }
}

static void unknown_fields_can_be_dropped(void)
{
    static struct fixture f;
    open_fixture(&f, TN_INPUT_JSON, TN_UNKNOWN_DROP);
    const char *got = decode_all(
        &f,
        tn_bytes_of("{\"x\":{\"y\":[1,\"\\u0000\"]},\"id\":\"a\",\"z\":null,\"must\":1,\"w\":-1}"));
    CHECK(strcmp(got, "+I " ROW("a", "null")) == 0);
    got = decode_all(&f, tn_bytes_of("{\"x\":{\"y\":[1,},\"id\":\"a\",\"must\":1}"));
    CHECK(strstr(got, "dead"));

    open_fixture(&f, TN_INPUT_CSV, TN_UNKNOWN_DROP);
    got = decode_all(&f, tn_bytes_of("op,id,x,must\n1,a,\"q\",1\n"));
    CHECK(strcmp(got, "+I " ROW("a", "null")) == 0);
}

static void a_csv_header_must_name_columns_once(void)
{
    static const struct {
        const char *header;
        const char *text;
    } bad[] = {
        {"id,mast\n", "csv header: 'mast' is no column; did you mean 'must'?"},
        {"id,must,id\n", "csv header: 'id' stands there twice"},
        {"id,mu\"st\n", "csv header: at byte 5: a quote inside"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        static struct fixture f;
        struct tn_decoded decoded;
        size_t eaten = 0;
        open_fixture(&f, TN_INPUT_CSV, TN_UNKNOWN_FAIL);
        tn_rc rc =
            tn_decoder_next(f.decoder, tn_bytes_of(bad[i].header), true, &decoded, &eaten, &f.err);
        CHECK(rc == TN_INVALID && strstr(f.err.text, bad[i].text));
        rc = tn_decoder_resume(f.decoder, 7, tn_bytes_of(bad[i].header), &f.err);
        CHECK(rc == TN_INVALID && strstr(f.err.text, bad[i].text));
    }
}

static void a_source_resumes_in_the_middle(void)
{
    static struct fixture f;
    open_fixture(&f, TN_INPUT_CSV, TN_UNKNOWN_FAIL);
    tn_rc rc = tn_decoder_resume(f.decoder, 41, tn_bytes_of("must,id\r\n"), &f.err);
    CHECK_OK(rc, f.err);
    const char *got = decode_all(&f, tn_bytes_of("1,a\nx,y\n"));
    CHECK(strncmp(got, "+I " ROW("a", "null"), strlen("+I " ROW("a", "null"))) == 0);
    CHECK(strstr(got, "dead 42:"));
}

static void a_long_record_is_dead_once_and_its_rest_is_eaten(void)
{
    static const enum tn_input inputs[] = {TN_INPUT_JSON, TN_INPUT_CSV};
    for (size_t i = 0; i < COUNT(inputs); i++) {
        for (size_t size = RECORD_MAX - 3; size < 3 * RECORD_MAX; size++) {
            static char text[4 * RECORD_MAX];
            static struct fixture f;
            open_fixture(&f, inputs[i], TN_UNKNOWN_FAIL);
            if (inputs[i] == TN_INPUT_CSV) {
                tn_rc rc = tn_decoder_resume(f.decoder, 1, tn_bytes_of("id,must"), &f.err);
                CHECK_OK(rc, f.err);
            }
            memset(text, 'x', size);
            text[0] = '"';
            text[size - 1] = '"'; /* a whole field in csv, bad in json */
            text[size] = '\n';
            (void)strcpy(text + size + 1,
                         inputs[i] == TN_INPUT_CSV ? "a,1\n" : "{\"id\":\"a\",\"must\":1}\n");
            static unsigned char out[4096];
            struct tn_buf buf;
            tn_buf_init(&buf, out, sizeof out - 1);
            size_t at = 0;
            size_t total = strlen(text);
            int dead = 0;
            while (at < total) { /* the source has room for one record */
                size_t room = total - at < RECORD_MAX ? total - at : RECORD_MAX;
                struct tn_decoded decoded;
                size_t eaten = 0;
                tn_rc rc =
                    tn_decoder_next(f.decoder, (struct tn_bytes){(unsigned char *)text + at, room},
                                    at + room == total, &decoded, &eaten, &f.err);
                CHECK_OK(rc, f.err);
                dead += decoded.dead;
                CHECK(!decoded.dead || decoded.record.size <= RECORD_MAX);
                CHECK(!decoded.dead ||
                      (strstr(decoded.reason, "longer than") != NULL) == (size + 1 > RECORD_MAX));
                CHECK(decoded.count == 0 || decoded.line == 2);
                describe(&f, &decoded, &buf);
                at += eaten;
            }
            out[buf.size] = 0;
            CHECK(dead == 1);
            CHECK(strstr((char *)out, "+I " ROW("a", "null")));
        }
    }
}

/* However it is cut. A quote inside a field without quotes hides no line end, one in quotes does.
 */
static void a_long_record_of_csv_ends_where_it_would_have(void)
{
    static const char *const tails[] = {"\",y\n", "\"\n", ",\"\na,2\n\"\n",
                                        ",\"\"\"\na,2\n\"\"\"\n", ",,\"\"\n"};
    for (size_t i = 0; i < COUNT(tails); i++) {
        static struct fixture f;
        static char text[2 * RECORD_MAX];
        memset(text, 'x', RECORD_MAX);
        (void)snprintf(text + RECORD_MAX, RECORD_MAX, "%s", tails[i]);
        size_t size = strlen(text);
        (void)snprintf(text + size, sizeof text - size, "a,1\n");
        for (size_t cut = RECORD_MAX; cut <= size; cut++) {
            struct tn_bytes pieces[] = {{(unsigned char *)text, cut},
                                        {(unsigned char *)text + cut, strlen(text + cut)}};
            struct tn_decoded decoded;
            size_t eaten = 0;
            int dead = 0;
            uint32_t rows = 0;
            open_fixture(&f, TN_INPUT_CSV, TN_UNKNOWN_FAIL);
            tn_rc rc = tn_decoder_resume(f.decoder, 1, tn_bytes_of("id,must"), &f.err);
            CHECK_OK(rc, f.err);
            for (int piece = 0; piece < 2;) {
                struct tn_bytes *rest = &pieces[piece];
                rc = tn_decoder_next(f.decoder, *rest, piece > 0, &decoded, &eaten, &f.err);
                CHECK_OK(rc, f.err);
                rest->data += eaten;
                rest->size -= eaten;
                dead += decoded.dead;
                rows += decoded.count;
                piece += rest->size == 0;
            }
            if (dead != 1 || rows != 1) {
                (void)fprintf(stderr, "tail %zu, cut at %zu\n", i, cut);
            }
            CHECK(dead == 1 && rows == 1);
        }
    }
}

static uint64_t random_state = 88172645463325252;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

/* A JSON string of random code points, each escaped or not; `plain` gets what it stands for. */
static void random_string(struct tn_buf *json, struct tn_buf *plain)
{
    static const char *const points[][2] = {
        {"a", "\\u0061"},      {"\"", "\\\""},
        {"\\", "\\\\"},        {"\n", "\\n"},
        {"/", "\\/"},          {"\u00e4", "\\u00E4"},
        {"\u20ac", "\\u20ac"}, {"\U0001F600", "\\uD83D\\uDE00"},
        {"\t", "\\u0009"},     {"0123456789", "0123456789"},
    };
    uint32_t count = random_below(12);
    tn_buf_text(json, "\"");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = random_below(COUNT(points));
        bool may_stand = (unsigned char)points[k][0][0] >= 0x20 && k != 1 && k != 2;
        tn_buf_text(json, points[k][may_stand && random_below(2) ? 0 : 1]);
        tn_buf_text(plain, points[k][0]);
    }
    tn_buf_text(json, "\"");
}

static void members_in_any_order_with_any_escapes_give_the_same_row(void)
{
    static struct fixture f;
    open_fixture(&f, TN_INPUT_JSON, TN_UNKNOWN_DROP);
    for (int round = 0; round < 20000; round++) {
        unsigned char id_json[200];
        unsigned char id_plain[200];
        static unsigned char text[RECORD_MAX];
        struct tn_buf json;
        struct tn_buf plain;
        struct tn_buf record;
        tn_buf_init(&json, id_json, sizeof id_json);
        tn_buf_init(&plain, id_plain, sizeof id_plain);
        tn_buf_init(&record, text, sizeof text);
        random_string(&json, &plain);
        const char *members[] = {NULL, "\"must\":3", "\"n\":-7", "\"temperature\":2.5",
                                 "\"zz\":[{}]"};
        uint32_t shift = random_below(COUNT(members));
        bool has_n = random_below(2);
        members[2] = has_n ? members[2] : "\"zzz\":7";
        for (uint32_t i = 0; i < COUNT(members); i++) {
            uint32_t k = (i * 2 + shift) % COUNT(members);
            tn_buf_text(&record, i ? "," : "{");
            if (k == 0) {
                tn_buf_text(&record, "\"id\":");
                tn_buf_append(&record, id_json, json.size);
            } else {
                tn_buf_text(&record, members[k]);
            }
        }
        tn_buf_text(&record, "}");
        if (random_below(2)) {
            tn_buf_text(&record, "\n                     "); /* with room behind: not copied */
        }
        struct tn_decoded decoded;
        size_t eaten = 0;
        tn_rc rc =
            tn_decoder_next(f.decoder, tn_buf_bytes(&record), true, &decoded, &eaten, &f.err);
        CHECK_OK(rc, f.err);
        CHECK(decoded.count == 1);
        struct tn_value value;
        CHECK(tn_bytes_equal(tn_row_bytes(&f.layout, tn_decoder_row(f.decoder, &decoded, 0), 0),
                             tn_buf_bytes(&plain)));
        tn_row_get(&f.layout, tn_decoder_row(f.decoder, &decoded, 0), 3, &value);
        CHECK(!(value.as.f64 < 2.5) && !(value.as.f64 > 2.5));
        tn_row_get(&f.layout, tn_decoder_row(f.decoder, &decoded, 0), 1, &value);
        CHECK(value.null == !has_n && (value.null || value.as.i64 == -7));
        tn_row_get(&f.layout, tn_decoder_row(f.decoder, &decoded, 0), 12, &value);
        CHECK(value.as.i64 == 3);
    }
}

static void digits_are_scanned_as_a_loop_would(void)
{
    for (int round = 0; round < 1000000; round++) {
        unsigned char text[40];
        size_t size = random_below(19);
        uint64_t expect = 0;
        uint64_t value = 0;
        for (size_t i = 0; i < sizeof text; i++) {
            text[i] = (unsigned char)(i < size ? '0' + random_below(10) : random_below(256));
        }
        text[size] = (unsigned char)(random_below(2) ? '/' : ':'); /* the neighbours of 0 and 9 */
        for (size_t i = 0; i < size; i++) {
            expect = expect * 10 + (uint64_t)(text[i] - '0');
        }
        const unsigned char *end = tn_scan_digits(text, &value);
        CHECK(end == text + size);
        CHECK(value == expect);
    }
}

/* Half of them are the 15 digits next to the middle of two floats, which a double may hit. */
static void random_digits(char *digits, size_t size)
{
    const char *sign = random_below(2) ? "-" : "";
    uint32_t whole = random_below(1u << random_below(31));
    uint32_t fraction = random_below(1000000000) >> random_below(30);
    if (random_below(2)) {
        double middle = 1.0 + ((double)random_below(0x800000) + 0.5) / (1 << 23);
        (void)snprintf(digits, size, "%s%.14f", sign, middle);
        return;
    }
    (void)snprintf(digits, size, random_below(4) ? "%s%u.%0*u" : "%s%u.%0*ue-3", sign, whole,
                   1 + (int)random_below(9), fraction);
}

/* Floats and doubles with few digits take a short cut; strtod and strtof do not. */
static void numbers_are_read_as_strtod_and_strtof_read_them(void)
{
    static struct fixture f;
    open_fixture(&f, TN_INPUT_JSON, TN_UNKNOWN_FAIL);
    for (int round = 0; round < 100000; round++) {
        char digits[40];
        static char text[RECORD_MAX];
        random_digits(digits, sizeof digits);
        (void)snprintf(text, sizeof text,
                       "{\"id\":\"\",\"must\":1,\"ratio\":%s,\"temperature\":%s}", digits, digits);
        struct tn_decoded decoded;
        struct tn_value value;
        size_t eaten = 0;
        tn_rc rc = tn_decoder_next(f.decoder, tn_bytes_of(text), true, &decoded, &eaten, &f.err);
        CHECK_OK(rc, f.err);
        CHECK(decoded.count == 1);
        double wide = strtod(digits, NULL);
        double narrow = (double)strtof(digits, NULL);
        tn_row_get(&f.layout, tn_decoder_row(f.decoder, &decoded, 0), 3, &value);
        CHECK(memcmp(&value.as.f64, &wide, sizeof wide) == 0);
        tn_row_get(&f.layout, tn_decoder_row(f.decoder, &decoded, 0), 4, &value);
        CHECK(memcmp(&value.as.f64, &narrow, sizeof narrow) == 0);
    }
}

/* The input comes in pieces: whatever the cuts, the same rows. */
static void cuts_in_the_input_change_nothing(void)
{
    static const struct {
        enum tn_input input;
        const char *text;
    } streams[] = {
        {TN_INPUT_JSON, "{\"id\":\"a\\n\",\"must\":1}\r\n\n{\"id\":\"b\",\"must\":1,\"raw\":"
                        "\"00ff\"}\nbad\n{\"id\":\"\\u0041\",\"must\":2}"},
        {TN_INPUT_CSV, "must,id\n1,\"a\n\"\"b\"\"\"\n\n2,c\r\n3,\"d\""},
    };
    for (size_t s = 0; s < COUNT(streams); s++) {
        static struct fixture f;
        struct tn_bytes input = tn_bytes_of(streams[s].text);
        open_fixture(&f, streams[s].input, TN_UNKNOWN_FAIL);
        static char whole[1 << 14];
        (void)snprintf(whole, sizeof whole, "%s", decode_all(&f, input));
        for (int round = 0; round < 2000; round++) {
            static unsigned char out[1 << 14];
            struct tn_buf buf;
            tn_buf_init(&buf, out, sizeof out - 1);
            open_fixture(&f, streams[s].input, TN_UNKNOWN_FAIL);
            size_t begin = 0;
            size_t end = 0;
            for (;;) {
                struct tn_decoded decoded;
                size_t eaten = 0;
                tn_rc rc =
                    tn_decoder_next(f.decoder, (struct tn_bytes){input.data + begin, end - begin},
                                    end == input.size, &decoded, &eaten, &f.err);
                if (rc == TN_AGAIN && end == input.size) {
                    break;
                }
                if (rc == TN_AGAIN) {
                    end += 1 + random_below((uint32_t)(input.size - end));
                    continue;
                }
                CHECK_OK(rc, f.err);
                describe(&f, &decoded, &buf);
                begin += eaten;
            }
            out[buf.size] = 0;
            CHECK(strcmp((char *)out, whole) == 0);
        }
    }
}

/* Damaged records never crash, never give an invalid row (describe looks), and never stop the
 * decoder. */
static void damaged_records_do_no_harm(void)
{
    for (int round = 0; round < 60000; round++) {
        const struct record_case *c = &cases[random_below(COUNT(cases))];
        static unsigned char text[2 * RECORD_MAX];
        size_t size = strlen(c->text);
        CHECK(size <= RECORD_MAX);
        memcpy(text, c->text, size);
        for (uint32_t i = random_below(4); i > 0 && size > 1; i--) {
            static const char spice[] = "\"\\{}[],:\n\r\t 019-+.eEuntfx\x80\xC3\xFF";
            size_t at = (random_below((uint32_t)size));
            if (random_below(3) == 0) {
                memmove(text + at, text + at + 1, size - at - 1);
                size--;
            } else {
                text[at] = (unsigned char)spice[random_below(sizeof spice)];
            }
        }
        static struct fixture f;
        open_fixture(&f, c->input, random_below(2) ? TN_UNKNOWN_DROP : TN_UNKNOWN_FAIL);
        if (c->input == TN_INPUT_CSV) { /* a damaged header is an error, not a dead letter */
            tn_rc rc = tn_decoder_resume(f.decoder, 1, tn_bytes_of("id,must,n"), &f.err);
            CHECK_OK(rc, f.err);
        }
        (void)decode_all(&f, (struct tn_bytes){text, size});
    }
}

static void input_names_are_known_and_guessed(void)
{
    enum tn_input input;
    struct tn_err err;
    tn_rc rc = tn_input_parse("debezium-json", &input, &err);
    CHECK(rc == TN_OK && input == TN_INPUT_DEBEZIUM);
    rc = tn_input_parse("debezum-json", &input, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "did you mean 'debezium-json'?"));
    rc = tn_input_parse("protobuf", &input, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "there are json"));
}

static void a_small_arena_is_an_answer(void)
{
    static struct fixture f;
    open_fixture(&f, TN_INPUT_JSON, TN_UNKNOWN_FAIL);
    struct tn_decode_spec spec = {
        .schema = &f.schema, .layout = &f.layout, .record_size_max = RECORD_MAX};
    for (size_t size = 0; size < 4096; size += 64) {
        struct tn_arena small;
        struct tn_decoder *decoder;
        tn_arena_init(&small, memory + sizeof memory / 2, size);
        tn_rc rc = tn_decoder_open(&decoder, &spec, &small, &f.err);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(records_become_rows_or_dead_letters),
        TEST(unknown_fields_can_be_dropped),
        TEST(a_csv_header_must_name_columns_once),
        TEST(a_source_resumes_in_the_middle),
        TEST(a_long_record_is_dead_once_and_its_rest_is_eaten),
        TEST(a_long_record_of_csv_ends_where_it_would_have),
        TEST(members_in_any_order_with_any_escapes_give_the_same_row),
        TEST(digits_are_scanned_as_a_loop_would),
        TEST(numbers_are_read_as_strtod_and_strtof_read_them),
        TEST(cuts_in_the_input_change_nothing),
        TEST(damaged_records_do_no_harm),
        TEST(input_names_are_known_and_guessed),
        TEST(a_small_arena_is_an_answer),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
