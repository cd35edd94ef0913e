/* upload: what a script is told about what is pending, and what it may answer. */
#include "script/upload.h"

#include "given.h"
#include "given_script.h"
#include "random.h"

static uint64_t seed;
static struct given_state s;
static const char *const tables[] = {"plant.alarms", "plant.readings", "plant.weather"};
static const struct tn_upload_plan untouched = {.wait_s = 77, .through = 77};
static struct tn_upload_plan plan;

static void load(const char *text)
{
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, NULL, text);
    CHECK_OK(rc, s.err);
}

static struct tn_upload_state some_state(void)
{
    return (struct tn_upload_state){.pending = {.count = 3, .oldest = 5, .newest = 7},
                                    .link = {.up = true},
                                    .clock = "synced",
                                    .tables = tables,
                                    .table_count = COUNT(tables)};
}

static tn_rc ask(const struct tn_upload_state *state)
{
    plan = untouched;
    return tn_script_upload(&s.script, state, &plan, &s.err);
}

/* A script whose answer is this expression. */
static tn_rc answer(const char *text)
{
    char script[512];
    struct tn_upload_state state = some_state();
    (void)snprintf(script, sizeof script,
                   "local m = {}\nfunction m.upload(state, ctx) return %s end\nreturn m", text);
    load(script);
    return ask(&state);
}

static void right_answers_become_plans(void)
{
    static const struct {
        const char *text;
        struct tn_upload_plan want;
    } answers[] = {
        {"'wait'", {.wait = true, .through = 7}},
        {"'now'", {.through = 7}},
        {"{}", {.through = 7}},
        {"{ wait = 600 }", {.wait = true, .wait_s = 600, .through = 7}},
        {"{ wait = 6e2 }", {.wait = true, .wait_s = 600, .through = 7}},
        {"{ wait = 31 * 24 * 3600 }", {.wait = true, .wait_s = 2678400, .through = 7}},
        {"{ through = 5 }", {.through = 5}},
        {"{ through = state.pending.newest, rate = '64K/s' }", {.through = 7, .rate = 65536}},
        {"{ rate = '64/s' }", {.through = 7, .rate = 64}},
        {"{ rate = '2 mb/s' }", {.through = 7, .rate = 2 << 20}},
        {"{ bytes = 1, requests = 2 }", {.through = 7, .bytes = 1, .requests = 2}},
        {"{ bytes = 5e6 }", {.through = 7, .bytes = 5000000}},
        {"{ tables = {} }", {.through = 7}},
        {"{ tables = { 'plant.weather', 'plant.alarms' } }",
         {.through = 7, .table_count = 2, .tables = {2, 0}}},
        {"{ tables = state.tables }", {.through = 7, .table_count = 3, .tables = {0, 1, 2}}},
        {"{ wait = ctx.table == 'plant.readings' and 1 or 2 }",
         {.wait = true, .wait_s = 1, .through = 7}},
    };
    for (size_t i = 0; i < COUNT(answers); i++) {
        const struct tn_upload_plan *want = &answers[i].want;
        tn_rc rc = answer(answers[i].text);
        CHECK_OK(rc, s.err);
        bool same = plan.wait == want->wait && plan.wait_s == want->wait_s &&
                    plan.through == want->through && plan.rate == want->rate &&
                    plan.bytes == want->bytes && plan.requests == want->requests &&
                    plan.table_count == want->table_count &&
                    memcmp(plan.tables, want->tables, sizeof plan.tables) == 0;
        if (!same) {
            FAIL("%s is another plan", answers[i].text);
        }
    }
}

struct attempt {
    const char *text;
    const char *want;
};

static void a_wrong_answer_says_what_is_wrong_and_changes_nothing(void)
{
    static const struct attempt attempts[] = {
        {"", "t.lua:2: upload returned nil; want \"wait\", \"now\" or a plan"},
        {"1", "upload returned a number"},
        {"true", "upload returned a boolean"},
        {"ctx", "upload returned a userdata"},
        {"'nwo'", "there is no answer of upload nwo; did you mean 'now'?"},
        {"'later'", "there is no answer of upload later"},
        {"{ wiat = 600 }", "t.lua:2: there is no plan.wiat; did you mean 'wait'?"},
        {"{ files = {} }", "there is no plan.files"},
        {"{ 600 }", "there is no plan.number"},
        {"{ wait = '600' }", "'wait' is 600; want a whole number, 1 to 2678400"},
        {"{ wait = 0 }", "'wait' is 0; want"},
        {"{ wait = -5 }", "'wait' is -5; want"},
        {"{ wait = 0.5 }", "'wait' is 0.5; want"},
        {"{ wait = 0/0 }", "nan; want"},
        {"{ wait = math.huge }", "'wait' is inf; want"},
        {"{ wait = math.maxinteger }", "'wait' is 9223372036854775807; want"},
        {"{ wait = true }", "'wait' is true; want"},
        {"{ wait = 600, rate = '64K/s' }", "a plan with 'wait' sends nothing"},
        {"{ through = 4 }", "'through' is 4; want a whole number, 5 to 7"},
        {"{ through = 8 }", "'through' is 8; want a whole number, 5 to 7"},
        {"{ through = '7' }", "'through' is 7; want a whole number"},
        {"{ rate = 65536 }", "'rate' is 65536; want a text as \"64K/s\""},
        {"{ rate = '64K' }", "'rate' is 64K; want a text"},
        {"{ rate = '/s' }", "'rate' is /s; want a text"},
        {"{ rate = '64X/s' }", "'rate' is 64X/s; want a text"},
        {"{ rate = '-64K/s' }", "'rate' is -64K/s; want a text"},
        {"{ rate = '8/s' }", "'rate' is 8/s; want 64 to 1099511627776 bytes a second"},
        {"{ rate = '9999999 g/s' }", "'rate' is 9999999 g/s; want"},
        {"{ rate = ('9'):rep(60000) }", "'rate' is 9999"},
        {"{ tables = 'plant.alarms' }", "'tables' is a string; want a list of names"},
        {"{ tables = { 'plant.alrams' } }",
         "there is no table plant.alrams; did you mean 'plant.alarms'?"},
        {"{ tables = { 7 } }", "'tables' has a number; want names of tables"},
        {"{ tables = { 'plant.alarms', 'plant.alarms' } }", "'tables' has plant.alarms twice"},
        {"{ tables = { [2] = 'plant.alarms' } }", "'tables' is no list without holes"},
        {"{ tables = { 'plant.alarms', a = 'plant.weather' } }", "no list without holes"},
        {"{ through = setmetatable({}, { __tostring = function() error('no') end }) }", "no"},
        {"{ wait = state.link.metred and 1 }",
         "there is no state.link.metred; did you mean 'metered'?"},
        {"{ wait = state.pendign.bytes }", "there is no state.pendign; did you mean 'pending'?"},
        {"{ wait = state.spent.hour.byte }", "there is no state.spent.hour.byte"},
        {"{ wait = state[1] }", "there is no state.number"},
        {"{ wait = ctx.late and 1 }", "there is no ctx.late; upload has ctx.table"},
    };
    for (size_t i = 0; i < COUNT(attempts); i++) {
        tn_rc rc = answer(attempts[i].text);
        if (rc != TN_INVALID || !strstr(s.err.text, attempts[i].want)) {
            FAIL("%s\ngave %d: %s", attempts[i].text, rc, s.err.text);
        }
        CHECK(memcmp(&plan, &untouched, sizeof plan) == 0);
    }
}

static int64_t some(void)
{
    return (int64_t)random_below(&seed, 1000000);
}

static void fill(struct tn_upload_state *state)
{
    *state = (struct tn_upload_state){
        .pending = {some(), some(), some(), some(), some(), some()},
        .pinned = {some()},
        .disk = {some(), some()},
        .link = {"sim", random_below(&seed, 2) > 0, random_below(&seed, 2) > 0, some()},
        .spent = {{some(), some()}, {some(), some()}, {some(), some()}},
        .now_ms = some(),
        .local_ms = some(),
        .clock = "stepped",
        .last = random_below(&seed, 2) > 0 ? "done" : NULL,
        .tables = tables,
        .table_count = (uint32_t)random_below(&seed, COUNT(tables) + 1)};
}

/* Each member of random states, as a script reads it. */
static void a_script_reads_the_state_as_it_is(void)
{
    load("local m = {}\nfunction m.upload(s)\n"
         "local p, d, l, x = s.pending, s.disk, s.link, s.spent\n"
         "local all = { p.count, p.bytes, p.rows, p.oldest or 'nil', p.newest or 'nil', p.age_s,\n"
         "s.pinned.bytes, d.free, d.reserve, l.name, tostring(l.up), tostring(l.metered), "
         "l.rtt_ms,\n"
         "x.hour.bytes, x.hour.requests, x.day.bytes, x.day.requests, x.month.bytes, "
         "x.month.requests,\n"
         "s.now_ms, s.local_ms, s.clock, s.last or 'nil', #s.tables }\n"
         "tarn.log('info', table.concat(all, ' '))\n"
         "s.pending.bytes, s.link = nil, nil\nreturn 'wait' end\nreturn m");
    for (int i = 0; i < 200; i++) {
        char want[256];
        struct tn_upload_state st;
        fill(&st);
        tn_rc rc = ask(&st);
        CHECK_OK(rc, s.err);
        (void)snprintf(
            want, sizeof want,
            "info %d %d %d %d %d %d %d %d %d sim %s %s %d %d %d %d %d %d %d %d %d stepped %s %u",
            (int)st.pending.count, (int)st.pending.bytes, (int)st.pending.rows,
            (int)st.pending.oldest, (int)st.pending.newest, (int)st.pending.age_s,
            (int)st.pinned.bytes, (int)st.disk.free, (int)st.disk.reserve,
            st.link.up ? "true" : "false", st.link.metered ? "true" : "false", (int)st.link.rtt_ms,
            (int)st.spent.hour.bytes, (int)st.spent.hour.requests, (int)st.spent.day.bytes,
            (int)st.spent.day.requests, (int)st.spent.month.bytes, (int)st.spent.month.requests,
            (int)st.now_ms, (int)st.local_ms, st.last ? "done" : "nil", st.table_count);
        CHECK(strcmp(s.logged, want) == 0);
    }
}

static void nothing_pending_has_no_snapshots(void)
{
    struct tn_upload_state state = {.clock = "unset"};
    load("return {upload = function(state)\n"
         "assert(state.pending.oldest == nil and state.last == nil and state.link.name == nil)\n"
         "return { through = state.pending.newest } end}");
    tn_rc rc = ask(&state);
    CHECK_OK(rc, s.err);
    CHECK(!plan.wait && plan.through == 0);
    load("return {upload = function(state) return { through = 1 } end}");
    rc = ask(&state);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "'through' is 1, but nothing is pending"));
}

static void shuffle(uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint32_t i = count; i > 1; i--) {
        uint32_t at = (uint32_t)random_below(&seed, i);
        uint32_t moved = order[at];
        order[at] = order[i - 1];
        order[i - 1] = moved;
    }
}

/* Any order of any tables, and a snapshot on either side of what is pending. */
static void a_plan_never_names_what_is_not_pending(void)
{
    static char names[TN_UPLOAD_TABLES_MAX][16];
    const char *list[TN_UPLOAD_TABLES_MAX];
    load("return {upload = function(state)\n"
         "local through, names = state.link.name:match('^(%d+);(.*)$')\n"
         "local tables = {}\n"
         "for name in names:gmatch('[^,]+') do tables[#tables + 1] = name end\n"
         "return { through = math.tointeger(tonumber(through)), tables = tables } end}");
    for (int round = 0; round < 300; round++) {
        struct tn_upload_state state = some_state();
        static uint32_t order[TN_UPLOAD_TABLES_MAX];
        uint32_t chosen = (uint32_t)random_below(&seed, TN_UPLOAD_TABLES_MAX + 1);
        static char text[2048];
        int64_t through = 1 + (int64_t)random_below(&seed, 40);
        state.pending.oldest = 10 + (int64_t)random_below(&seed, 10);
        state.pending.newest = state.pending.oldest + (int64_t)random_below(&seed, 10);
        shuffle(order, TN_UPLOAD_TABLES_MAX);
        for (int i = 0; i < TN_UPLOAD_TABLES_MAX; i++) {
            (void)snprintf(names[i], sizeof names[i], "d.t%d", i);
            list[i] = names[i];
        }
        int used = snprintf(text, sizeof text, "%d;", (int)through);
        for (uint32_t i = 0; i < chosen; i++) {
            used += snprintf(text + used, sizeof text - (size_t)used, "d.t%u,", order[i]);
        }
        state.link.name = text;
        state.tables = list;
        state.table_count = TN_UPLOAD_TABLES_MAX;
        tn_rc rc = ask(&state);
        bool pending = through >= state.pending.oldest && through <= state.pending.newest;
        CHECK(rc == (pending ? TN_OK : TN_INVALID));
        if (pending) {
            CHECK(plan.through == through && plan.table_count == chosen);
            CHECK(memcmp(plan.tables, order, chosen * sizeof *order) == 0);
        }
    }
    tn_heap_check(&s.vm.heap);
}

static void it_can_neither_run_on_nor_take_more_than_it_may(void)
{
    static const struct attempt attempts[] = {
        {"(function() while true do end end)()", "t.lua:2: its budget of instructions is used up"},
        {"pcall(function() while true do end end) and 'now'", "its budget of instructions"},
        {"('x'):rep(1 << 30)", "t.lua:2: string.rep would make"},
        {"(function() local a = {} for i = 1, 1 << 20 do a[i] = { i } end end)()",
         "t.lua:2: not enough memory"},
        {"error('no')", "t.lua:2: no"},
        {"{ wait = setmetatable({}, { __tostring = function() while true do end end }) }",
         "its budget of instructions"},
    };
    struct tn_upload_state state = some_state();
    for (size_t i = 0; i < COUNT(attempts); i++) {
        tn_rc rc = answer(attempts[i].text);
        if (rc != TN_INVALID || !strstr(s.err.text, attempts[i].want)) {
            FAIL("%s\ngave %d: %s", attempts[i].text, rc, s.err.text);
        }
        CHECK(s.script.failures == 1 && s.script.calls == 1);
    }
    load("return {upload = function(s) return s.link.up and 'now' or 7 end}");
    state.link.up = false;
    for (int i = 0; i < TN_SCRIPT_FAILURES_MAX; i++) {
        CHECK(!tn_script_parked(&s.script));
        tn_rc rc = ask(&state);
        CHECK(rc == TN_INVALID);
    }
    state.link.up = true;
    tn_rc rc = ask(&state);
    CHECK(rc == TN_CANCELED && strstr(s.err.text, "t.lua is parked after 100 failures in a row"));
    tn_script_resume(&s.script);
    rc = ask(&state);
    CHECK_OK(rc, s.err);
    CHECK(!plan.wait);
}

static const char handler[] =
    "local m = {}\nfunction m.upload(state)\n"
    "if state.link.metered and state.pending.bytes < 5e6 then return { wait = 600 } end\n"
    "return { through = state.pending.newest, tables = state.tables } end\n";

static void cases_give_the_part_of_a_state_that_counts(void)
{
    static const struct attempt attempts[] = {
        {"{ upload = { { link = { metered = true } } }, gives = { wait = 600 } }", NULL},
        {"{ upload = { { pending = { count = 1, newest = 3, oldest = 3 } } }, gives = { through = "
         "3 } }",
         NULL},
        {"{ upload = {}, gives = function(plan) return plan.tables[1] == 'plant.readings' end }",
         NULL},
        {"{ upload = { { tables = { 'a.b', 'c.d' } } }, gives = { tables = { 'a.b', 'c.d' } } }",
         NULL},
        {"{ upload = { { link = { metered = true } } }, gives = { wait = 60 } }",
         "(upload): wait: got 600, want 60"},
        {"{ upload = { { link = { metred = true } } } }",
         "there is no state.link.metred; did you mean 'metered'?"},
        {"{ upload = { { lnik = {} } } }", "there is no state.lnik; did you mean 'link'?"},
        {"{ upload = { { link = true } } }", "link is a boolean; want a table"},
        {"{ upload = { 7 } }", "state is a number; want a table"},
        {"{ upload = { { spent = { day = { bytes = '5' } } } } }",
         "state.spent.day.bytes is 5; want a whole number from 0 on"},
        {"{ upload = { { pending = { rows = -1 } } } }", "state.pending.rows is -1; want"},
        {"{ upload = { { link = { up = 1 } } } }", "state.link.up is 1; want true or false"},
        {"{ upload = { { clock = 1 } } }", "state.clock is 1; want a text"},
        {"{ upload = { { tables = { 1 } } } }", "state.tables is 1; want a list of names"},
        {"{ upload = { {}, { table = 'x' } } }", "a case of upload has a state and no ctx"},
        {"{ upload = { { pending = { newest = 3 } } } }", "'through' is 3, but nothing is pending"},
    };
    for (size_t i = 0; i < COUNT(attempts); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "%sm.test = { %s }\nreturn m", handler, attempts[i].text);
        open_state(&s, NULL);
        tn_rc rc = load_script(&s, NULL, text);
        const char *want = attempts[i].want;
        if (want ? rc != TN_INVALID || !strstr(s.err.text, want) : rc != TN_OK) {
            FAIL("%s\ngave %d: %s", attempts[i].text, rc, s.err.text);
        }
    }
}

/* Only handlers that something calls can be given. */
static void there_is_no_handler_behind_an_upload(void)
{
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, NULL, "return {uploadde = function() end}");
    CHECK(rc == TN_INVALID && strstr(s.err.text, "there is no handler 'uploadde'; did you mean"));
}

static const struct test tests[] = {
    TEST(right_answers_become_plans),
    TEST(a_wrong_answer_says_what_is_wrong_and_changes_nothing),
    TEST(a_script_reads_the_state_as_it_is),
    TEST(nothing_pending_has_no_snapshots),
    TEST(a_plan_never_names_what_is_not_pending),
    TEST(it_can_neither_run_on_nor_take_more_than_it_may),
    TEST(cases_give_the_part_of_a_state_that_counts),
    TEST(there_is_no_handler_behind_an_upload),
};

int main(int argc, char **argv)
{
    seed = given_number("SEED", 1);
    return run_tests(argc, argv, tests, COUNT(tests));
}
