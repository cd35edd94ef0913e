/* script: handlers as the engine calls them, and what becomes of those that fail. */
#include "given.h"
#include "given_script.h"
#include "random.h"

static uint64_t seed;
static struct given_state s;
static struct given_columns c;
static struct tn_script_ctx ctx = {TN_ROW_UPDATE_AFTER, 7, false};
static unsigned char out_memory[4096];
static struct tn_buf out;
static enum tn_script_verdict verdict;

static const char columns[] =
    "dev STRING NOT NULL; temp DOUBLE; temp_max DOUBLE; n BIGINT; must INT NOT NULL";
static const char *const one[] = {"a", "20.5", NULL, NULL, "1"};
static const char *const two[] = {"a", "19.5", "20.5", "1", "1"};

static void load(const char *text)
{
    open_columns(&c, columns);
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, &c, text);
    CHECK_OK(rc, s.err);
}

static tn_rc merge(struct tn_script *script, bool with_now)
{
    static unsigned char data[2][128];
    struct tn_row now = pack_texts(&c, two, data[0]);
    struct tn_row row = pack_texts(&c, one, data[1]);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    tn_rc rc = tn_script_merge(script, with_now ? &now : NULL, row, &ctx, &verdict, &out, &s.err);
    struct tn_row again = pack_texts(&c, one, (unsigned char[128]){0});
    CHECK(memcmp(row.data, again.data, row.size) == 0); /* what came in is never changed */
    return rc;
}

static void check_out(const char *want)
{
    const char *got = row_text(&c, (struct tn_row){out.data, (uint32_t)out.size});
    CHECK_TEXT(got, want);
}

static void merge_gives_a_row_or_one_of_two_words(void)
{
    load("local m = {}\nfunction m.merge(now, row, ctx)\n"
         "if not now then return tarn.DELETE end\n"
         "if now.n == 1 and ctx.late then return tarn.KEEP end\n"
         "row.temp_max = math.max(row.temp, now.temp_max) now.n = 9\n"
         "return row end\nreturn m");
    tn_rc rc = merge(&s.script, true);
    CHECK_OK(rc, s.err);
    CHECK(verdict == TN_SCRIPT_ROW);
    check_out("{\"dev\":\"a\",\"temp\":20.5,\"temp_max\":20.5,\"n\":null,\"must\":1}");
    rc = merge(&s.script, false);
    CHECK_OK(rc, s.err);
    CHECK(verdict == TN_SCRIPT_DELETE && out.size == 0);
    ctx.late = true;
    rc = merge(&s.script, true);
    ctx.late = false;
    CHECK_OK(rc, s.err);
    CHECK(verdict == TN_SCRIPT_KEEP && out.size == 0);
}

static void a_plain_table_is_a_row_with_the_key_of_the_one_that_came(void)
{
    load("local m = {}\nfunction m.merge(now, row) return {temp = 1, must = 2} end\nreturn m");
    tn_rc rc = merge(&s.script, true);
    CHECK_OK(rc, s.err);
    check_out("{\"dev\":\"a\",\"temp\":1.0,\"temp_max\":null,\"n\":null,\"must\":2}");
}

static void column_functions_see_what_came_and_others_take_the_newest(void)
{
    load("local m = {}\nm.merge = {\n"
         "temp_max = function(now, new, ctx) assert(new == nil and ctx.kind == '+U') return now "
         "end,\n"
         "n = function(now) return (now or 0) + 1 end,\n"
         "}\nreturn m");
    tn_rc rc = merge(&s.script, true);
    CHECK_OK(rc, s.err);
    check_out("{\"dev\":\"a\",\"temp\":20.5,\"temp_max\":20.5,\"n\":2,\"must\":1}");
    rc = merge(&s.script, false);
    CHECK_OK(rc, s.err);
    check_out("{\"dev\":\"a\",\"temp\":20.5,\"temp_max\":null,\"n\":1,\"must\":1}");
}

static void retract_deletes_where_there_is_none(void)
{
    unsigned char data[128];
    struct tn_buf buf;
    load("return {merge = function(now, row) return row end}");
    struct tn_row row = pack_texts(&c, one, data);
    tn_buf_init(&buf, out_memory, sizeof out_memory);
    tn_rc rc = tn_script_retract(&s.script, &row, row, &ctx, &verdict, &buf, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(verdict == TN_SCRIPT_DELETE);
    load("return {retract = function(now, row, ctx) now.n = -1 return now end}");
    row = pack_texts(&c, one, data);
    rc = tn_script_retract(&s.script, &row, row, &ctx, &verdict, &buf, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(verdict == TN_SCRIPT_ROW && buf.size == row.size);
}

static void announce_shows_an_image_or_nothing(void)
{
    unsigned char data[128];
    bool shown;
    load("local m = {}\nfunction m.announce(row)\n"
         "if row.temp and row.temp < 20 then return nil end\n"
         "return {temp = row.temp, must = row.must} end\nreturn m");
    struct tn_row row = pack_texts(&c, one, data);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    tn_rc rc = tn_script_announce(&s.script, row, &shown, &out, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(shown);
    check_out("{\"dev\":\"a\",\"temp\":20.5,\"temp_max\":null,\"n\":null,\"must\":1}");
    row = pack_texts(&c, two, data);
    rc = tn_script_announce(&s.script, row, &shown, &out, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(!shown);
    load("return {}");
    tn_buf_init(&out, out_memory, sizeof out_memory);
    rc = tn_script_announce(&s.script, row, &shown, &out, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(shown && out.size == row.size);
}

static const struct tn_script_meta meta = {"plant/boiler/temp", 1700000000000, "synced", "mqtt",
                                           17};

/* Maps a record and gives its rows as lines. */
static tn_rc map_record(const char *record, char *lines, size_t size)
{
    uint32_t count = 0;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    tn_rc rc = tn_script_map_json(&s.script, tn_bytes_of(record), &meta, &count, &out, &s.err);
    lines[0] = 0;
    struct tn_bytes rows = tn_buf_bytes(&out);
    struct tn_row row;
    size_t used = 0;
    uint32_t seen = 0;
    while (rc == TN_OK && tn_script_next_row(&rows, &row)) {
        used += (size_t)snprintf(lines + used, size - used, "%s\n", row_text(&c, row));
        seen++;
    }
    CHECK(rc != TN_OK || seen == count);
    return rc;
}

static void map_makes_rows_of_a_record(void)
{
    char lines[1024];
    load("local m = {}\nfunction m.map(r, meta)\n"
         "assert(meta.topic[1] == 'plant' and #meta.topic == 3 and meta.received_ms == "
         "1700000000000)\n"
         "assert(meta.clock == 'synced' and meta.source == 'mqtt' and meta.position == 17)\n"
         "if r.drop then return nil end\n"
         "if r.one then return {dev = meta.topic[2], n = r.one, must = 0} end\n"
         "local rows = {}\n"
         "for i, t in ipairs(r.temps) do rows[i] = {dev = 'p' .. i, temp = t, must = i} end\n"
         "return rows end\nreturn m");
    tn_rc rc = map_record("{\"temps\":[1.5, 2e0, -3]}", lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(strcmp(lines,
                 "{\"dev\":\"p1\",\"temp\":1.5,\"temp_max\":null,\"n\":null,\"must\":1}\n"
                 "{\"dev\":\"p2\",\"temp\":2.0,\"temp_max\":null,\"n\":null,\"must\":2}\n"
                 "{\"dev\":\"p3\",\"temp\":-3.0,\"temp_max\":null,\"n\":null,\"must\":3}\n") == 0);
    rc = map_record("{\"one\": 9223372036854775807}", lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(strstr(lines,
                 "{\"dev\":\"boiler\",\"temp\":null,\"temp_max\":null,\"n\":9223372036854775807,"));
    rc = map_record("{\"drop\": true}", lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(lines[0] == 0);
    rc = map_record("{\"temps\": []}", lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(lines[0] == 0);
    rc = map_record("{\"temps\": [1], }", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "JSON, byte 15: "));
    rc = map_record("{\"one\": 1.5}", lines, sizeof lines);
    CHECK(rc == TN_INVALID &&
          strstr(s.err.text, "t.lua:2: column 'n' (BIGINT): 1.5 is no integer"));
    rc = map_record("{\"one\": 9223372036854775808}", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "9223372036854775808 is no integer"));
}

static void map_of_a_packed_row_may_change_the_key(void)
{
    unsigned char data[128];
    uint32_t count = 0;
    load("return {map = function(row, meta) row.dev = meta.topic[2] local b = row:copy() b.dev = "
         "'b' "
         "return {row, b} end}");
    struct tn_row row = pack_texts(&c, one, data);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    tn_rc rc = tn_script_map(&s.script, row, &meta, &count, &out, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(count == 2);
    struct tn_bytes rows = tn_buf_bytes(&out);
    CHECK(tn_script_next_row(&rows, &row));
    CHECK(strncmp(row_text(&c, row), "{\"dev\":\"boiler\"", 15) == 0);
    CHECK(tn_script_next_row(&rows, &row));
    CHECK(strncmp(row_text(&c, row), "{\"dev\":\"b\"", 10) == 0);
    CHECK(!tn_script_next_row(&rows, &row));
}

/* As records without a script; what NOT NULL refuses no default rescues. */
static void what_map_leaves_null_gets_the_columns_default(void)
{
    static const char *const defaults[] = {"nobody", NULL, "1.5", NULL, "7"};
    static const uint32_t index[] = {0, 2, 4};
    unsigned char data[2][128];
    char lines[512];
    uint32_t count = 0;
    load("return {map = function(r)\n"
         "if type(r) == 'userdata' then r.temp_max = nil return r end\n"
         "if r.whole then return {dev = 'a', temp_max = 2, must = 1} end\n"
         "if r.two then return {{dev = 'a', must = 1}, {dev = 'b', temp = 1, must = 2}} end\n"
         "return {temp_max = r.t} end}");
    s.script.spec.defaults =
        (struct tn_default_row){{index, COUNT(index)}, pack_texts(&c, defaults, data[0])};
    tn_rc rc = map_record("{\"two\":1}", lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(strcmp(lines,
                 "{\"dev\":\"a\",\"temp\":null,\"temp_max\":1.5,\"n\":null,\"must\":1}\n"
                 "{\"dev\":\"b\",\"temp\":1.0,\"temp_max\":1.5,\"n\":null,\"must\":2}\n") == 0);
    rc = map_record("{\"whole\":1}", lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(strstr(lines, "\"temp_max\":2.0"));
    rc = map_record("{\"t\":3}", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "column 'dev' is NULL, but it is NOT NULL"));
    struct tn_row row = pack_texts(&c, two, data[1]);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    rc = tn_script_map(&s.script, row, &meta, &count, &out, &s.err);
    CHECK_OK(rc, s.err);
    struct tn_bytes rows = tn_buf_bytes(&out);
    CHECK(tn_script_next_row(&rows, &row));
    CHECK(strstr(row_text(&c, row), "\"temp\":19.5,\"temp_max\":1.5,\"n\":1"));
}

struct attempt {
    const char *text;
    const char *want;
};

/* What has the name of a column is not read as that column's. */
static void map_gets_json_as_it_stands(void)
{
    static const char record[] = "{\"dev\":\"a\",\"raw\":\"cafe\",\"temp\":\"NaN\",\"m\":\"1.50\","
                                 "\"i\":3,\"f\":3.0,\"big\":123456789012345678901}";
    char lines[256];
    open_columns(&c, "dev STRING NOT NULL; raw BYTES; temp DOUBLE; m DECIMAL(9, 2)");
    open_state(&s, NULL);
    tn_rc rc = load_script(
        &s, &c,
        "return {map = function(r)\n"
        "assert(r.raw == 'cafe' and r.temp == 'NaN' and r.m == '1.50')\n"
        "assert(math.type(r.i) == 'integer' and math.type(r.f) == 'float')\n"
        "assert(tostring(r.big) == '123456789012345678901' and type(r.big) ~= 'number')\n"
        "local hex = {dev = 'hex', raw = r.raw:gsub('%x%x', function(h)\n"
        "return string.char(tonumber(h, 16)) end)}\n"
        "return {{dev = 'as is', raw = r.raw, temp = 0/0, m = r.m}, hex} end}");
    CHECK_OK(rc, s.err);
    rc = map_record(record, lines, sizeof lines);
    CHECK_OK(rc, s.err);
    CHECK(strcmp(lines, "{\"dev\":\"as is\",\"raw\":\"63616665\",\"temp\":\"NaN\",\"m\":\"1.50\"}\n"
                        "{\"dev\":\"hex\",\"raw\":\"cafe\",\"temp\":null,\"m\":null}\n") == 0);
    open_state(&s, NULL);
    rc = load_script(&s, &c, "return {map = function(r) return {dev = 'a', temp = r.temp} end}");
    CHECK_OK(rc, s.err);
    rc = map_record(record, lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "column 'temp' (DOUBLE): a string is no number"));
}

static void json_is_read_strictly(void)
{
    static const struct attempt attempts[] = {
        {"{\"a\":1,\"a\":2}", "a key twice"},
        {"{\"a\":01}", "no value"},
        {"{\"a\":1.}", "no value"},
        {"{\"a\":-}", "no value"},
        {"{\"a\":1e}", "no value"},
        {"{\"a\":nul}", "no value"},
        {"{\"a\":\"\\x\"}", "no such escape"},
        {"{\"a\":\"\\ud800\"}", "half a surrogate pair"},
        {"{\"a\":\"\\u12g4\"}", "four hex digits"},
        {"{\"a\":\"b", "the text has no end"},
        {"{\"a\":\"b\\", "the text has no end"},
        {"{\"a\" 1}", "':' is missing"},
        {"{\"a\":1", "'}' is missing"},
        {"[1,2", "']' is missing"},
        {"{a:1}", "'\"' is missing"},
        {"{} x", "something behind the value"},
        {"", "no value"},
        {"\"\n\"", "a control character"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "nested too deep"},
        {"123456789012345678901234567890123456789", "too many digits"},
    };
    char lines[64];
    load("return {map = function(r) if type(r) == 'table' and r.t then\n"
         "assert(r.t == 'a\\u{e4}\\u{1F600}\\n\"' and r.n == nil and r.l[2] == nil and r.l[3] == "
         "1)\n"
         "assert(math.type(r.i) == 'integer' and math.type(r.f) == 'float' and r.b == false)\n"
         "assert(tostring(r.big) == '18446744073709551615')\nend end}");
    tn_rc rc = map_record(
        " {\"t\" : \"a\\u00e4\\ud83d\\ude00\\n\\\"\", \"n\":null, \"l\":[true,null,1], "
        "\"i\":-0, \"f\":1e3, \"b\":false, \"o\":{}, \"e\":[], \"big\":18446744073709551615} ",
        lines, sizeof lines);
    CHECK_OK(rc, s.err);
    for (size_t i = 0; i < COUNT(attempts); i++) {
        rc = map_record(attempts[i].text, lines, sizeof lines);
        if (rc != TN_INVALID || !strstr(s.err.text, attempts[i].want)) {
            FAIL("%s gave %d: %s", attempts[i].text, rc, s.err.text);
        }
    }
}

static void a_wrong_result_is_an_error_at_the_handlers_line(void)
{
    static const struct attempt attempts[] = {
        {"return 1", "t.lua:2: merge returned a number; want a row, tarn.KEEP or tarn.DELETE"},
        {"return 'x'", "merge returned a string"},
        {"return true", "merge returned a boolean"},
        {"", "t.lua:2: merge returned nil"},
        {"return ctx", "merge returned a userdata"},
        {"return tarn.decimal(1)", "merge returned a tarn.decimal"},
        {"return {tmp = 1}", "t.lua:2: there is no column 'tmp'; did you mean 'temp'?"},
        {"return {temp = 'hot', must = 1}", "column 'temp' (DOUBLE): a string is no number"},
        {"return {1, 2}", "there is no column '1'"},
        {"return {temp = 1}",
         "merge returned a row whose column 'must' is NULL, but it is NOT NULL"},
        {"row.must = nil return row", "column 'must' is NULL"},
        {"row.dev = 'b' return row",
         "merge returned a row with another key: column 'dev' has changed"},
        {"return {dev = 'b', must = 1}", "column 'dev' has changed"},
        {"row.dev = nil return row", "column 'dev' is NULL"},
        {"return row, row", NULL},
    };
    for (size_t i = 0; i < COUNT(attempts); i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "local m = {}\nfunction m.merge(now, row, ctx) %s end\nreturn m",
                       attempts[i].text);
        load(text);
        tn_rc rc = merge(&s.script, true);
        const char *want = attempts[i].want;
        if (want ? rc != TN_INVALID || !strstr(s.err.text, want) : rc != TN_OK) {
            FAIL("%s\ngave %d: %s", text, rc, s.err.text);
        }
        CHECK(rc == TN_OK || out.size == 0);
    }
}

/* With the row `two`, and nothing in `out` yet. */
static tn_rc call_with_row(enum tn_script_handler handler)
{
    unsigned char data[128];
    bool shown;
    uint32_t count;
    struct tn_row row = pack_texts(&c, two, data);
    tn_buf_init(&out, out_memory, sizeof out_memory);
    switch ((int)handler) {
    case TN_SCRIPT_MAP:
        return tn_script_map(&s.script, row, &meta, &count, &out, &s.err);
    case TN_SCRIPT_MERGE:
        return tn_script_merge(&s.script, &row, row, &ctx, &verdict, &out, &s.err);
    case TN_SCRIPT_RETRACT:
        return tn_script_retract(&s.script, &row, row, &ctx, &verdict, &out, &s.err);
    default:
        return tn_script_announce(&s.script, row, &shown, &out, &s.err);
    }
}

/* Of whatever handler; a row that `map` returns may have any key. */
static void no_handlers_wrong_result_gets_through(void)
{
    static const struct attempt attempts[] = {
        {"7", "returned a number; want a row"},
        {"'x'", "returned a string; want a row"},
        {"{tmp = 1, must = 1, dev = 'a'}", "there is no column 'tmp'; did you mean 'temp'?"},
        {"{temp = 'hot', must = 1, dev = 'a'}", "column 'temp' (DOUBLE): a string is no number"},
        {"{must = 1 << 31, dev = 'a'}", "column 'must' (INT NOT NULL): 2147483648 doesn't fit"},
        {"{temp = 1, dev = 'a'}", "column 'must' is NULL, but it is NOT NULL"},
        {"{dev = 'b', must = 1}", "returned a row with another key: column 'dev' has changed"},
    };
    for (int handler = TN_SCRIPT_MAP; handler <= TN_SCRIPT_ANNOUNCE; handler++) {
        const char *name = tn_script_handler_name((enum tn_script_handler)handler);
        for (size_t i = 0; i < COUNT(attempts) - (handler == TN_SCRIPT_MAP); i++) {
            char text[256];
            (void)snprintf(text, sizeof text, "return {%s = function(now)\nreturn %s end}", name,
                           attempts[i].text);
            load(text);
            tn_rc rc = call_with_row((enum tn_script_handler)handler);
            if (rc != TN_INVALID || !strstr(s.err.text, attempts[i].want) ||
                strncmp(s.err.text, "t.lua:1: ", 9) != 0) {
                FAIL("%s\ngave %d: %s", text, rc, s.err.text);
            }
            CHECK(out.size == 0 && s.script.failures == 1);
        }
    }
}

/* Each handler fails at its own line, and the next call is as good as ever. */
static void an_error_in_a_handler_concerns_one_row(void)
{
    unsigned char data[128];
    bool shown;
    uint32_t count;
    load("local m = {}\n"
         "function m.map(r) if r.bad then return r.bad.x.y end return nil end\n"
         "function m.merge(now, row) if now then return now.temp + nil end return row end\n"
         "function m.retract(now, row) error('no') end\n"
         "function m.announce(row) return row.temp.x end\n"
         "function m.upload() end\n"
         "return m");
    struct tn_row row = pack_texts(&c, one, data);
    tn_rc rc = merge(&s.script, true);
    CHECK(rc == TN_INVALID &&
          strstr(s.err.text, "t.lua:3: attempt to perform arithmetic on a nil value"));
    rc = merge(&s.script, false);
    CHECK_OK(rc, s.err);
    rc = tn_script_retract(&s.script, &row, row, &ctx, &verdict, &out, &s.err);
    CHECK(rc == TN_INVALID && strcmp(s.err.text, "t.lua:4: no") == 0);
    rc = tn_script_announce(&s.script, row, &shown, &out, &s.err);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "t.lua:5: attempt to index a number value"));
    rc = tn_script_map_json(&s.script, tn_bytes_of("{\"bad\":{}}"), &meta, &count, &out, &s.err);
    CHECK(rc == TN_INVALID &&
          strstr(s.err.text, "t.lua:2: attempt to index a nil value (field 'x')"));
    rc = tn_script_map_json(&s.script, tn_bytes_of("{}"), &meta, &count, &out, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(s.script.failures == 4 && s.script.calls == 6);
    tn_heap_check(&s.vm.heap);
}

static void after_a_hundred_failures_in_a_row_it_is_parked(void)
{
    load("local n = 0\nreturn {merge = function(now, row) if now then error('no') end return row "
         "end}");
    tn_rc rc;
    for (int i = 0; i < TN_SCRIPT_FAILURES_MAX - 1; i++) {
        rc = merge(&s.script, true);
        CHECK(rc == TN_INVALID);
    }
    rc = merge(&s.script, false); /* one that succeeds: the count begins again */
    CHECK_OK(rc, s.err);
    for (int i = 0; i < TN_SCRIPT_FAILURES_MAX; i++) {
        CHECK(!tn_script_parked(&s.script));
        rc = merge(&s.script, true);
        CHECK(rc == TN_INVALID);
    }
    CHECK(tn_script_parked(&s.script));
    rc = merge(&s.script, false);
    CHECK(rc == TN_CANCELED && strstr(s.err.text, "t.lua is parked after 100 failures in a row"));
    tn_script_resume(&s.script);
    rc = merge(&s.script, false);
    CHECK_OK(rc, s.err);
}

static void a_full_buffer_is_no_failure_of_the_script(void)
{
    unsigned char data[128];
    unsigned char small[8];
    load("return {merge = function(now, row) row.n = 1 return row end}");
    struct tn_row row = pack_texts(&c, one, data);
    tn_buf_init(&out, small, sizeof small);
    tn_rc rc = tn_script_merge(&s.script, NULL, row, &ctx, &verdict, &out, &s.err);
    CHECK(rc == TN_AGAIN);
    CHECK(s.script.failures == 0);
}

/* Rows of 60 KB, written and spliced, in a state that is not much larger. */
static void long_rows_fit_a_small_state(void)
{
    static unsigned char data[100000];
    static unsigned char large[2][100000];
    static char text[60001];
    memset(text, 'x', sizeof text - 1);
    open_columns(&c, "dev STRING NOT NULL; a STRING; b STRING");
    open_state(&s, NULL);
    tn_rc rc =
        load_script(&s, &c,
                    "return {merge = function(now, row) row.a = row.b row.b = now and now.dev "
                    "return row end}");
    CHECK_OK(rc, s.err);
    const char *const texts[] = {"k", "y", text};
    struct tn_row row = pack_texts(&c, texts, data);
    for (int i = 0; i < 50; i++) {
        struct tn_buf next;
        tn_buf_init(&next, large[i & 1], sizeof large[0]);
        rc = tn_script_merge(&s.script, i ? &row : NULL, row, &ctx, &verdict, &next, &s.err);
        CHECK_OK(rc, s.err);
        struct tn_row made = {next.data, (uint32_t)next.size};
        CHECK(tn_row_valid(&c.layout, made));
        CHECK(tn_row_bytes(&c.layout, made, 1).size == sizeof text - 1);
        CHECK(tn_row_bytes(&c.layout, made, 2).size == (i ? 1 : 0));
    }
}

static void what_is_wrong_with_a_script_shows_when_it_is_loaded(void)
{
    static const struct attempt attempts[] = {
        {"return 1", "t.lua returns a number; want a table of handlers"},
        {"return {merge = 1}", "merge is a number; want a function or a table of them by column"},
        {"return {mrege = function() end}", "there is no handler 'mrege'; did you mean 'merge'?"},
        {"return {merge = {temp_mx = function() end}}",
         "there is no column 'temp_mx'; did you mean 'temp_max'?"},
        {"return {merge = {temp = 1}}", "merge: column 'temp' has a number, not a function"},
        {"return {merge = {dev = function() end}}", "merge: column 'dev' is of the key"},
        {"return {test = 1}", "table expected"},
        {"\nlocal x = y.z", "t.lua:2: there is no global 'y'"},
        {"return {", "t.lua:1: unexpected symbol near <eof>"},
        {"while true do end", "budget of instructions"},
        {"return {merge = function(now, row) return row end, "
         "test = {{merge = {nil, {temp = 1}}, gives = {temp = 2}, name = 'cold'}}}",
         "t.lua: its case 1 fails (merge: cold): temp: got 1.0, want 2"},
        {"return {merge = function(now, row) return row end, test = {{merge = {nil, {tmp = 1}}}}}",
         "there is no column 'tmp'"},
        {"return {merge = function(now, row) return row end, test = {{merg = {}}}}",
         "a case has no 'merg'"},
        {"return {test = {{merge = {nil, {}}}}}", "the script has no merge"},
        {"return {announce = function(row) return {temp = 1} end, test = {{announce = {{temp = "
         "1}}}}}",
         "column 'must' is NULL, but it is NOT NULL"},
        {"return {merge = function() while true do end end, test = {{merge = {nil, {}}}}}",
         "its case 1 fails (case 1): t.lua:1: its budget of instructions is used up"},
    };
    for (size_t i = 0; i < COUNT(attempts); i++) {
        open_columns(&c, columns);
        open_state(&s, NULL);
        tn_rc rc = load_script(&s, &c, attempts[i].text);
        if (rc != TN_INVALID || !strstr(s.err.text, attempts[i].want)) {
            FAIL("%s\ngave %d: %s", attempts[i].text, rc, s.err.text);
        }
    }
}

static const char cases[] =
    "local m = {}\n"
    "function m.map(r, meta) if r.t then return {dev = meta.topic[1], temp = r.t, must = 0} end "
    "end\n"
    "m.merge = {temp_max = function(now, new) return tarn.fold.max(now, new) end}\n"
    "function m.retract(now, row, ctx) return ctx.late and tarn.KEEP or tarn.DELETE end\n"
    "function m.announce(row) if row.temp then return row end end\n"
    "function m.upload(state) return state.link.metered and {wait = 600} or 'now' end\n"
    "m.test = {\n"
    "  { map = { { t = 3 }, { topic = { 'a' } } }, gives = { { dev = 'a', temp = 3 } } },\n"
    "  { map = { {} } },\n"
    "  { merge = { { temp_max = 3 }, { temp_max = 4 } }, gives = { temp_max = 4 } },\n"
    "  { merge = { nil, { temp_max = 4 } }, gives = function(row) return row.temp == nil end },\n"
    "  { retract = { { temp = 1 }, { temp = 1 } }, gives = tarn.DELETE },\n"
    "  { retract = { { temp = 1 }, { temp = 1 }, { late = true } }, gives = tarn.KEEP },\n"
    "  { announce = { { temp = 1 } }, gives = { temp = 1 } },\n"
    "  { announce = { {} } },\n"
    "  { upload = { { link = { metered = true } } }, gives = { wait = 600 } },\n"
    "  { upload = { {} }, gives = 'now', name = 'free' },\n"
    "  { upload = { { link = 7 } }, raises = 'link is a number' },\n"
    "}\nreturn m";

/* With columns and without: the same cases hold. */
static void a_scripts_cases_run_with_packed_rows_and_with_tables(void)
{
    load(cases);
    CHECK(s.script.case_count == 11);
    struct tn_script_case result;
    tn_rc rc = tn_script_run_case(&s.script, 9, &result, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(result.passed && strcmp(result.name, "upload: free") == 0);
    open_state(&s, NULL);
    rc = load_script(&s, NULL, cases);
    CHECK_OK(rc, s.err);
    CHECK(strlen(s.script.digest) == 64);
}

/* A script's folds over random rows, some without values, against sums made here. */
static void a_fold_over_random_rows_is_what_the_model_says(void)
{
    static const char text[] =
        "local fold = tarn.fold\nlocal m = {}\n"
        "function m.merge(now, row)\n"
        "  if not now then now = row:copy() now.temp, now.temp_max, now.n = nil, nil, nil end\n"
        "  local temp = row.temp\n"
        "  now.temp, now.n = fold.mean(now.temp, temp, now.n)\n"
        "  now.temp_max = fold.max(now.temp_max, temp)\n"
        "  now.must = fold.count(row.must == 0 and now.must or 0)\n"
        "  return now\nend\nreturn m";
    for (int round = 0; round < 20; round++) {
        unsigned char data[2][128];
        struct tn_row now = {NULL, 0};
        double sum = 0;
        double most = 0;
        int64_t values = 0;
        load(text);
        for (int i = 0; i < 200; i++) {
            bool null = random_below(&seed, 4) == 0;
            double temp = (double)random_below(&seed, 10000) / 16 - 300;
            char number[32];
            (void)snprintf(number, sizeof number, "%.4f", temp);
            const char *const texts[] = {"a", null ? NULL : number, "777", "777",
                                         i == 0 ? "1" : "0"};
            struct tn_row row = pack_texts(&c, texts, (unsigned char[128]){0});
            struct tn_buf next;
            tn_buf_init(&next, data[i & 1], sizeof data[0]);
            tn_rc rc = tn_script_merge(&s.script, now.data ? &now : NULL, row, &ctx, &verdict,
                                       &next, &s.err);
            CHECK_OK(rc, s.err);
            now = (struct tn_row){next.data, (uint32_t)next.size};
            most = !null && (values == 0 || temp > most) ? temp : most;
            values += !null;
            sum += null ? 0 : temp;
        }
        struct tn_value got[5];
        for (uint32_t column = 0; column < 5; column++) {
            tn_row_get(&c.layout, now, column, &got[column]);
        }
        CHECK(got[3].as.i64 == values && got[2].as.f64 == most && got[4].as.i64 == 200);
        double off = got[1].as.f64 - sum / (double)values;
        CHECK(off < 1e-9 && off > -1e-9);
    }
}

/* ---- stores ---- */

static const char store_text[] =
    "local seen = tarn.state('seen', { size = 400 })\n"
    "local n = tarn.state('n', { size = 100 })\nlocal m = {}\n"
    "function m.map(r)\n"
    "if r.put then seen[r.put] = r.value end\n"
    "if r.count then n.n = (n.n or 0) + 1 end\n"
    "if r.want ~= nil then assert(seen[r.want] == r.value, tostring(seen[r.want])) end\n"
    "if r.counted then assert(n.n == r.counted, tostring(n.n)) end\n"
    "if r.gone then assert(seen[r.gone] == nil) end\n"
    "if r.fails then error('it fails') end\n"
    "return nil\nend\nreturn m";

static void map_all(const char *const *records, size_t count)
{
    char lines[64];
    for (size_t i = 0; i < count; i++) {
        tn_rc rc = map_record(records[i], lines, sizeof lines);
        CHECK_OK(rc, s.err);
    }
}

static unsigned char pieces[8192];
static struct tn_buf saved;

static bool save(void)
{
    bool all;
    size_t size = saved.size;
    tn_rc rc = tn_script_save(&s.script, saved.size, sizeof pieces, &all, &saved, &s.err);
    CHECK_OK(rc, s.err);
    CHECK(!all || size == 0);
    rc = tn_script_saved(&s.script, &s.err);
    CHECK_OK(rc, s.err);
    return saved.size > size;
}

static void begin_stores(void)
{
    load(store_text);
    CHECK(tn_script_keeps(&s.script));
    tn_buf_init(&saved, pieces, sizeof pieces);
}

static void stores_are_bounded_and_survive_a_restart(void)
{
    static const char *const looks[] = {"{\"want\":\"k199\",\"value\":199}",
                                        "{\"want\":\"k195\",\"value\":195}",
                                        "{\"gone\":\"k180\"}",
                                        "{\"put\":1,\"value\":\"x\"}",
                                        "{\"put\":2,\"value\":true}",
                                        "{\"put\":3,\"value\":1.5}"};
    static const char *const after[] = {
        "{\"want\":\"k199\",\"value\":199}", "{\"want\":1,\"value\":\"x\"}",
        "{\"want\":2,\"value\":true}", "{\"want\":3,\"value\":1.5}"};
    char record[128];
    char lines[64];
    begin_stores();
    for (int i = 0; i < 200; i++) {
        (void)snprintf(record, sizeof record, "{\"put\":\"k%d\",\"value\":%d}", i, i);
        map_all(&(const char *const){record}, 1);
    }
    map_all(looks, COUNT(looks));
    CHECK(save() && !save());
    CHECK(saved.size <= s.script.state_size_max);
    load(store_text);
    tn_rc rc = tn_script_restore(&s.script, tn_buf_bytes(&saved), &s.err);
    CHECK_OK(rc, s.err);
    map_all(after, COUNT(after));
    rc = map_record("{\"put\":\"k\",\"value\":{}}", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "a store's value can't be a table"));
    rc = tn_script_restore(&s.script, (struct tn_bytes){0}, &s.err);
    CHECK_OK(rc, s.err);
    map_all(&(const char *const){"{\"gone\":\"k199\"}"}, 1);
}

/* What is saved does not depend on how often: pieces of changes come to the same as all. */
static void what_changed_is_saved_and_a_call_that_fails_changed_nothing(void)
{
    static const char *const first[] = {"{\"put\":\"a\",\"value\":1,\"count\":1}"};
    static const char *const then[] = {"{\"put\":\"b\",\"value\":2,\"count\":1}",
                                       "{\"put\":\"a\"}"};
    static const char *const look[] = {"{\"want\":\"b\",\"value\":2,\"counted\":2}",
                                       "{\"gone\":\"a\"}", "{\"gone\":\"c\"}"};
    char lines[64];
    begin_stores();
    map_all(first, COUNT(first));
    CHECK(save());
    map_all(then, COUNT(then));
    CHECK(tn_script_changed(&s.script));
    CHECK(save() && !tn_script_changed(&s.script));
    tn_rc rc =
        map_record("{\"put\":\"c\",\"value\":3,\"count\":1,\"fails\":true}", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "it fails"));
    CHECK(!tn_script_changed(&s.script) && !save());
    map_all(look, COUNT(look));
    load(store_text);
    rc = tn_script_restore(&s.script, tn_buf_bytes(&saved), &s.err);
    CHECK_OK(rc, s.err);
    map_all(look, COUNT(look));
}

/* As they lie in journals and files: another form would need another version. */
static void the_saved_form_is_this_one_and_damage_to_any_byte_is_seen(void)
{
    static const char golden[] =
        "7473013d2200000049155ea0" /* ts, version, =, size, checksum */
        "53047365656e50730100000061620153016e5073010000006e690100000000000000"
        "7473012b160000005c8a23ab" /* ts, version, + */
        "53047365656e50690700000000000000730100000078";
    static const char *const records[] = {"{\"put\":\"a\",\"value\":true,\"count\":1}",
                                          "{\"put\":7,\"value\":\"x\"}"};
    char hex[2 * 256 + 1] = "";
    begin_stores();
    map_all(records, 1);
    CHECK(save());
    map_all(records + 1, 1);
    CHECK(save() && saved.size < 256);
    for (size_t i = 0; i < saved.size; i++) {
        (void)sprintf(hex + 2 * i, "%02x", pieces[i]);
    }
    if (strcmp(hex, golden) != 0) {
        FAIL("it is %s", hex);
    }
    size_t first = TN_SCRIPT_PIECE_HEAD_SIZE + tn_load_u32(pieces + 4);
    for (size_t size = 1; size < saved.size; size++) {
        tn_rc rc = tn_script_restore(&s.script, (struct tn_bytes){pieces, size}, &s.err);
        CHECK(size == first ? rc == TN_OK : rc == TN_CORRUPT);
        CHECK(size == first || strstr(s.err.text, size < first ? "byte 0: it ends" : "it ends"));
    }
    for (size_t i = 0; i < 8 * saved.size; i++) {
        pieces[i / 8] ^= (unsigned char)(1u << i % 8);
        tn_rc rc = tn_script_restore(&s.script, tn_buf_bytes(&saved), &s.err);
        pieces[i / 8] ^= (unsigned char)(1u << i % 8);
        CHECK(rc == TN_CORRUPT && strncmp(s.err.text, "byte ", 5) == 0);
        map_all(&(const char *const){"{\"gone\":\"a\"}"}, 1); /* they are empty */
    }
    tn_rc rc = tn_script_restore(&s.script, tn_buf_bytes(&saved), &s.err);
    CHECK_OK(rc, s.err);
}

/* A length near 2^32 is none that comes to a few bytes, where a size has 32 bits. */
static void a_length_that_no_piece_has_is_seen(void)
{
    begin_stores();
    map_all(&(const char *const){"{\"put\":\"a\",\"value\":1}"}, 1);
    CHECK(save());
    for (uint32_t less = 1; less <= 2 * TN_SCRIPT_PIECE_HEAD_SIZE; less++) {
        tn_store_u32(pieces + 4, 0 - less);
        tn_rc rc = tn_script_restore(&s.script, tn_buf_bytes(&saved), &s.err);
        CHECK(rc == TN_CORRUPT && strstr(s.err.text, "byte 0: it ends in a piece"));
    }
}

/* As of a record: in cases, with columns and without, and where a budget stops it. */
static void a_case_of_map_that_fails_changed_nothing(void)
{
    static const char text[] = "local seen = tarn.state('seen', { size = 400 })\nlocal m = {}\n"
                               "function m.map(r)\n"
                               "local was = seen.last\n"
                               "seen.last = r.put\n"
                               "if r.fails then error('it fails') end\n"
                               "while r.loops do end\n"
                               "return {dev = tostring(was), must = 1}\nend\n"
                               "m.test = {\n"
                               "{ map = { { put = 'a' } }, gives = { { dev = 'nil' } } },\n"
                               "{ map = { { put = 'b', fails = true } }, raises = 'it fails' },\n"
                               "{ map = { { put = 'c' } }, gives = { { dev = 'a' } } },\n"
                               "{ map = { { put = 'd', loops = true } } },\n"
                               "{ map = { {} }, gives = { { dev = 'c' } } },\n}\nreturn m";
    for (int typed = 0; typed < 2; typed++) {
        open_columns(&c, columns);
        open_state(&s, NULL);
        set_file(0, "t.lua", text, sizeof text - 1);
        struct tn_script_spec spec = {
            .path = "t.lua", .layout = typed ? &c.layout : NULL, .skip_cases = true};
        tn_rc rc = tn_script_load(&s.script, &s.vm, &spec, &s.err);
        CHECK_OK(rc, s.err);
        for (uint32_t i = 0; i < s.script.case_count; i++) {
            struct tn_script_case result;
            rc = tn_script_run_case(&s.script, i, &result, &s.err);
            CHECK_OK(rc, s.err);
            if (result.passed == (i == 3)) {
                FAIL("case %u of %s: %s", i + 1, typed ? "rows" : "tables", result.reason);
            }
        }
    }
}

static void stores_are_made_while_the_script_loads(void)
{
    char lines[64];
    load("local m = {}\nfunction m.map(r) tarn.state('s').x = 1 end\nreturn m");
    CHECK(!tn_script_keeps(&s.script));
    tn_rc rc = map_record("{}", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "stores are made while the script loads"));
    load("tarn.state('t')\nlocal m = {}\nfunction m.map(r) tarn.state('s').x = 1 end\nreturn m");
    CHECK(tn_script_keeps(&s.script));
    rc = map_record("{}", lines, sizeof lines);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "'s': stores are made while the script loads"));
}

/* Thousands of texts come and go, also where nearly all places of Lua's tables are taken. */
static void a_full_store_goes_on(void)
{
    enum { CALLS = 400 };
    static const int sizes[] = {24576, 40000, 48000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char text[256];
        char lines[64];
        (void)snprintf(text, sizeof text,
                       "local seen, n = tarn.state('seen', { size = %d }), 0\nlocal m = {}\n"
                       "function m.map(r)\nfor _ = 1, 10 do n = n + 1 seen['key' .. n] = n end\n"
                       "return nil\nend\nreturn m",
                       sizes[i]);
        load(text);
        for (int call = 0; call < CALLS; call++) {
            tn_rc rc = map_record("{}", lines, sizeof lines);
            CHECK_OK(rc, s.err);
            rc = tn_script_saved(&s.script, &s.err);
            CHECK_OK(rc, s.err);
        }
        tn_heap_check(&s.vm.heap);
    }
}

/* By name: what there is no store for any more is left out, and so is what a smaller one has no
 * room for, the oldest first. */
static void another_script_gets_what_it_has_stores_for(void)
{
    static const char *const records[] = {
        "{\"put\":\"a\",\"value\":1,\"count\":1}", "{\"put\":\"b\",\"value\":2}",
        "{\"put\":\"long\",\"value\":\"01234567890123456789012345678901234567890123456789\"}",
        "{\"put\":\"c\",\"value\":3}"};
    static const char *const look[] = {"{\"gone\":\"a\"}", "{\"gone\":\"long\"}",
                                       "{\"want\":\"b\",\"value\":2}",
                                       "{\"want\":\"c\",\"value\":3}"};
    static const char smaller[] = "local seen = tarn.state('seen', { size = 85 })\nlocal m = {}\n"
                                  "function m.map(r)\n"
                                  "if r.want then assert(seen[r.want] == r.value) end\n"
                                  "if r.gone then assert(seen[r.gone] == nil) end\nend\nreturn m";
    begin_stores();
    map_all(records, COUNT(records));
    CHECK(save());
    load(smaller);
    tn_rc rc = tn_script_restore(&s.script, tn_buf_bytes(&saved), &s.err);
    CHECK_OK(rc, s.err);
    map_all(look, COUNT(look));
}

/* What could be taken back of a call is nothing of the next one's, whoever is called. */
static void whoever_writes_into_a_store_it_stays_in_its_size(void)
{
    enum { CALLS = 20000 };
    load("local seen = tarn.state('seen', { size = 400 })\nlocal m, n = {}, 0\n"
         "local function write() n = n + 1 seen['k' .. n] = n end\n"
         "function m.merge(now, row) write() return row end\n"
         "function m.retract(now, row) write() return tarn.KEEP end\n"
         "function m.announce(row) write() return row end\nreturn m");
    for (int i = 0; i < CALLS; i++) {
        static unsigned char data[128];
        struct tn_row row = pack_texts(&c, one, data);
        tn_rc rc = merge(&s.script, i % 2);
        CHECK_OK(rc, s.err);
        tn_buf_init(&out, out_memory, sizeof out_memory);
        rc = tn_script_retract(&s.script, NULL, row, &ctx, &verdict, &out, &s.err);
        CHECK_OK(rc, s.err);
        tn_buf_init(&out, out_memory, sizeof out_memory);
        bool shown;
        rc = tn_script_announce(&s.script, row, &shown, &out, &s.err);
        CHECK_OK(rc, s.err);
    }
}

static const struct test tests[] = {
    TEST(merge_gives_a_row_or_one_of_two_words),
    TEST(a_plain_table_is_a_row_with_the_key_of_the_one_that_came),
    TEST(column_functions_see_what_came_and_others_take_the_newest),
    TEST(retract_deletes_where_there_is_none),
    TEST(announce_shows_an_image_or_nothing),
    TEST(map_makes_rows_of_a_record),
    TEST(map_of_a_packed_row_may_change_the_key),
    TEST(what_map_leaves_null_gets_the_columns_default),
    TEST(map_gets_json_as_it_stands),
    TEST(json_is_read_strictly),
    TEST(a_wrong_result_is_an_error_at_the_handlers_line),
    TEST(no_handlers_wrong_result_gets_through),
    TEST(an_error_in_a_handler_concerns_one_row),
    TEST(after_a_hundred_failures_in_a_row_it_is_parked),
    TEST(a_full_buffer_is_no_failure_of_the_script),
    TEST(long_rows_fit_a_small_state),
    TEST(what_is_wrong_with_a_script_shows_when_it_is_loaded),
    TEST(a_scripts_cases_run_with_packed_rows_and_with_tables),
    TEST(a_fold_over_random_rows_is_what_the_model_says),
    TEST(stores_are_bounded_and_survive_a_restart),
    TEST(what_changed_is_saved_and_a_call_that_fails_changed_nothing),
    TEST(the_saved_form_is_this_one_and_damage_to_any_byte_is_seen),
    TEST(a_length_that_no_piece_has_is_seen),
    TEST(a_case_of_map_that_fails_changed_nothing),
    TEST(stores_are_made_while_the_script_loads),
    TEST(a_full_store_goes_on),
    TEST(another_script_gets_what_it_has_stores_for),
    TEST(whoever_writes_into_a_store_it_stays_in_its_size),
};

int main(int argc, char **argv)
{
    seed = given_number("SEED", 1);
    return run_tests(argc, argv, tests, COUNT(tests));
}
