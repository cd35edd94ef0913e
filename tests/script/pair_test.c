/* pair, resolver: a script that decides what becomes of rows, in two states. */
#include "given_script.h"
#include "script/pair.h"

static struct given_columns c;
static struct tn_script_pair pair;
static struct tn_err err;
static struct tn_io io = {.vtable = &given_vtable};
static _Alignas(16) unsigned char memory[TN_SCRIPT_PLACES][STATE_SIZE];
static unsigned char out_memory[4096];
static struct tn_buf out;
static enum tn_verdict verdict;

static tn_rc open_pair(const char *text)
{
    static const uint32_t key[] = {0};
    static const uint32_t by[] = {1};
    open_columns(&c, "dev STRING NOT NULL; ts BIGINT; n BIGINT");
    set_file(0, "t.lua", text, strlen(text));
    struct tn_script_pair_spec spec = {
        .io = &io,
        .script = {.path = "t.lua", .layout = &c.layout, .keys = {key, 1}, .table = "d.t"},
        .late_by = {by, 1},
        .memory = {memory[0], memory[1]},
        .size = {STATE_SIZE, STATE_SIZE}};
    tn_script_pair_close(&pair);
    return tn_script_pair_open(&pair, &spec, &err);
}

static void open_good(const char *text)
{
    tn_rc rc = open_pair(text);
    CHECK_OK(rc, err);
}

/* NULL for none. */
static tn_rc resolve(const char *const *now, const char *const *row, enum tn_row_kind kind)
{
    static unsigned char data[2][256];
    struct tn_row was = now ? pack_texts(&c, now, data[0]) : (struct tn_row){0};
    struct tn_row came = pack_texts(&c, row, data[1]);
    struct tn_resolver *r = &pair.resolver.resolver;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    return r->resolve(r, now ? &was : NULL, came, kind, 7, &verdict, &out, &err);
}

static void check_row(const char *want)
{
    CHECK(verdict == TN_VERDICT_ROW);
    const char *got = row_text(&c, (struct tn_row){out.data, (uint32_t)out.size});
    CHECK_TEXT(got, want);
}

/* By the ordering column, in which NULL is older than everything. */
static void a_row_is_late_when_it_is_before_what_is_there(void)
{
    static const struct {
        const char *now;
        const char *row;
        bool late;
    } cases[] = {{"5", "4", true},  {"5", "5", false},  {"5", "6", false},
                 {"5", NULL, true}, {NULL, "1", false}, {NULL, NULL, false}};
    open_good(
        "return {merge = function(now, row, ctx) row.n = ctx.late and 1 or 0 return row end}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const now[] = {"a", cases[i].now, NULL};
        const char *const row[] = {"a", cases[i].row, NULL};
        tn_rc rc = resolve(now, row, TN_ROW_INSERT);
        CHECK_OK(rc, err);
        struct tn_row made = {out.data, (uint32_t)out.size};
        CHECK(verdict == TN_VERDICT_ROW && !tn_row_null(made, 2));
        CHECK(strstr(row_text(&c, made), cases[i].late ? "\"n\":1" : "\"n\":0"));
    }
    static const char *const first[] = {"a", NULL, NULL};
    tn_rc rc = resolve(NULL, first, TN_ROW_INSERT);
    CHECK_OK(rc, err);
    check_row("{\"dev\":\"a\",\"ts\":null,\"n\":0}");
}

static void without_a_merge_the_newest_row_wins(void)
{
    static const char *const now[] = {"a", "9", "1"};
    static const char *const row[] = {"a", "1", "2"};
    open_good("return {map = function(r) return r end}");
    tn_rc rc = resolve(now, row, TN_ROW_UPDATE_AFTER);
    CHECK_OK(rc, err);
    check_row("{\"dev\":\"a\",\"ts\":1,\"n\":2}");
    rc = resolve(now, row, TN_ROW_DELETE);
    CHECK(rc == TN_OK && verdict == TN_VERDICT_DELETE);
    CHECK(!pair.resolver.resolver.announce && tn_script_pair_map(&pair));
}

static void a_delete_does_what_retract_says(void)
{
    static const char *const now[] = {"a", "9", "3"};
    static const char *const row[] = {"a", "1", "2"};
    open_good("local m = {}\nfunction m.merge(now, row) return tarn.KEEP end\n"
              "function m.retract(now, row, ctx)\nassert(ctx.kind == '-D' and ctx.sequence == 7)\n"
              "now.n = now.n - row.n return now end\n"
              "function m.announce(row) if row.n > 1 then return {n = row.n} end end\nreturn m");
    tn_rc rc = resolve(now, row, TN_ROW_DELETE);
    CHECK_OK(rc, err);
    check_row("{\"dev\":\"a\",\"ts\":9,\"n\":1}");
    rc = resolve(now, row, TN_ROW_INSERT);
    CHECK(rc == TN_OK && verdict == TN_VERDICT_KEEP);
    struct tn_resolver *r = &pair.resolver.resolver;
    unsigned char data[256];
    bool shown = false;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    rc = r->announce(r, pack_texts(&c, now, data), &shown, &out, &err);
    CHECK(rc == TN_OK && shown);
    verdict = TN_VERDICT_ROW;
    check_row("{\"dev\":\"a\",\"ts\":null,\"n\":3}");
    CHECK(!tn_script_pair_map(&pair));
}

/* Each handler that is there names the file. */
static void properties_name_the_file_that_has_the_handler(void)
{
    open_good("return {merge = function(now, row) return row end, upload = function() end}");
    CHECK(pair.property_count == 2);
    CHECK(strcmp(pair.properties[0].name, "tarn.script.merge") == 0);
    CHECK(strcmp(pair.properties[1].name, "tarn.script.upload") == 0);
    CHECK(tn_script_pair_upload(&pair) == &pair.scripts[TN_SCRIPT_LOOP]);
    CHECK(strlen(pair.properties[0].value) == 64);
    CHECK(strcmp(pair.properties[0].value, pair.properties[1].value) == 0);
}

static void a_script_that_gave_up_cancels_with_its_last_reason(void)
{
    static const char *const row[] = {"a", "1", "2"};
    open_good("return {merge = function(now, row)\n row.n = row.m\n return row end}");
    for (int i = 0; i < TN_SCRIPT_FAILURES_MAX; i++) {
        tn_rc rc = resolve(NULL, row, TN_ROW_INSERT);
        CHECK(rc == TN_INVALID && strncmp(err.text, "t.lua:2: ", 9) == 0);
    }
    tn_rc rc = resolve(NULL, row, TN_ROW_INSERT);
    CHECK(rc == TN_CANCELED);
    CHECK(strstr(err.text, "t.lua is parked after 100 failures in a row: t.lua:2: "));
    rc = resolve(NULL, row, TN_ROW_DELETE);
    CHECK(rc == TN_CANCELED);
}

/* What `merge` hoards is its own: its state fills up, and the loop's has what it had. */
static void a_state_that_is_full_leaves_the_other_alone(void)
{
    static const char *const row[] = {"a", "1", "2"};
    open_good("local all = {}\nlocal m = {}\n"
              "function m.merge(now, row) for i = 1, 100 do all[#all + 1] = ('x'):rep(500) .. #all "
              "end return row end\n"
              "function m.map(r) return r end\nreturn m");
    tn_rc rc = TN_OK;
    for (int i = 0; rc == TN_OK && i < 100; i++) {
        rc = resolve(NULL, row, TN_ROW_INSERT);
    }
    CHECK(rc == TN_INVALID && strstr(err.text, "t.lua:3: not enough memory: a state has"));
    const struct tn_heap *full = &pair.vms[TN_SCRIPT_WORKER].heap;
    CHECK(full->peak > STATE_SIZE / 2 && full->peak <= STATE_SIZE);
    CHECK(pair.vms[TN_SCRIPT_LOOP].heap.peak < STATE_SIZE / 2);
    struct tn_script_meta meta = {.clock = "synced"};
    uint32_t count = 0;
    tn_buf_init(&out, out_memory, sizeof out_memory);
    rc = tn_script_map_json(tn_script_pair_map(&pair), tn_bytes_of("{\"dev\":\"a\"}"), &meta,
                            &count, &out, &err);
    CHECK(rc == TN_OK && count == 1);
}

static void a_script_that_cannot_be_loaded_says_why(void)
{
    tn_rc rc = open_pair("return {merge = function(now, row) return row end, test = {\n"
                         "{merge = {nil, {n = 1}}, gives = {n = 2}}}}");
    CHECK(rc == TN_INVALID && strstr(err.text, "t.lua: its case 1 fails"));
    rc = open_pair("return 1");
    CHECK(rc == TN_INVALID);
}

static const struct test tests[] = {
    TEST(a_row_is_late_when_it_is_before_what_is_there),
    TEST(without_a_merge_the_newest_row_wins),
    TEST(a_delete_does_what_retract_says),
    TEST(properties_name_the_file_that_has_the_handler),
    TEST(a_script_that_gave_up_cancels_with_its_last_reason),
    TEST(a_state_that_is_full_leaves_the_other_alone),
    TEST(a_script_that_cannot_be_loaded_says_why),
};

int main(int argc, char **argv)
{
    int code = run_tests(argc, argv, tests, COUNT(tests));
    tn_script_pair_close(&pair);
    return code;
}
