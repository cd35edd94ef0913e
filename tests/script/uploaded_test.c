/* uploaded: what a script is told once snapshots are at a lake, and what it may have told of them.
 */
#include "script/uploaded.h"

#include "given_script.h"
#include "random.h"

static struct given_state s;
static unsigned char room_memory[TN_UPLOADED_ROOM];
static struct tn_buf room;
static const struct tn_uploaded_message untouched = {.none = true, .retain = true};
static struct tn_uploaded_message message;
static const struct tn_uploaded_event event = {.lake = "cloud",
                                               .table = "plant.readings",
                                               .first = 5,
                                               .snapshot = 7,
                                               .now_ms = 1700000000000,
                                               .clock = "synced"};

static tn_rc ask(void)
{
    message = untouched;
    tn_buf_init(&room, room_memory, sizeof room_memory);
    return tn_script_uploaded(&s.script, &event, &message, &room, &s.err);
}

/* Of a script whose answer is this expression. */
static tn_rc answer(const char *text)
{
    char script[512];
    (void)snprintf(script, sizeof script,
                   "local m = {}\nfunction m.uploaded(event, ctx) return %s end\nreturn m", text);
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, NULL, script);
    CHECK_OK(rc, s.err);
    return ask();
}

static bool is(struct tn_bytes bytes, const char *want)
{
    return want ? bytes.data && tn_bytes_equal(bytes, tn_bytes_of(want)) : !bytes.data;
}

static void right_answers_become_messages(void)
{
    static const struct {
        const char *text;
        const char *payload; /* NULL: nothing is told */
        const char *topic;
        const char *type;
        bool retain;
    } answers[] = {
        {"nil", NULL, NULL, NULL, false},
        {"", NULL, NULL, NULL, false},
        {"''", "", NULL, NULL, false},
        {"'there'", "there", NULL, NULL, false},
        {"{ payload = 'a\\0b' }", NULL, NULL, NULL, false},
        {"{ payload = '' }", "", NULL, NULL, false},
        {"{ payload = 'x', topic = 'plant/lake', retain = true }", "x", "plant/lake", NULL, true},
        {"{ payload = 'x', type = 'application/json' }", "x", NULL, "application/json", false},
        {"{ payload = 'x', topic = 'é', retain = false }", "x", "é", NULL, false},
        {"event.lake .. ' ' .. event.table .. ' ' .. event.first .. '-' .. event.snapshot",
         "cloud plant.readings 5-7", NULL, NULL, false},
        {"('%d %s %s'):format(event.now_ms, event.clock, ctx.table)",
         "1700000000000 synced plant.readings", NULL, NULL, false},
    };
    for (size_t i = 0; i < COUNT(answers); i++) {
        tn_rc rc = answer(answers[i].text);
        CHECK_OK(rc, s.err);
        bool zero = strstr(answers[i].text, "\\0");
        bool same =
            zero ? message.payload.size == 3
                 : message.none == !answers[i].payload && is(message.payload, answers[i].payload);
        same = same && is(message.topic, answers[i].topic) &&
               (answers[i].type ? message.type && strcmp(message.type, answers[i].type) == 0
                                : !message.type) &&
               message.retain == answers[i].retain;
        if (!same) {
            FAIL("%s is another message", answers[i].text);
        }
    }
}

static void the_largest_message_fits_and_no_larger_one(void)
{
    tn_rc rc =
        answer("{ payload = ('x'):rep(8192), topic = ('t'):rep(512), type = ('y'):rep(100) }");
    CHECK_OK(rc, s.err);
    CHECK(!room.overflow && message.payload.size == TN_UPLOADED_PAYLOAD_MAX &&
          message.topic.size == TN_UPLOADED_TOPIC_MAX &&
          strlen(message.type) == TN_UPLOADED_TYPE_MAX);
    rc = answer("('x'):rep(8193)");
    CHECK(rc == TN_INVALID && strstr(s.err.text, "'payload' has 8193 bytes, at most 8192"));
}

struct attempt {
    const char *text;
    const char *want;
};

static void a_wrong_answer_says_what_is_wrong_and_changes_nothing(void)
{
    static const struct attempt attempts[] = {
        {"7", "t.lua:2: uploaded returned a number; want nil, a text or a message"},
        {"true", "uploaded returned a boolean"},
        {"event", "there is no message."},
        {"{}", "a message without 'payload'"},
        {"{ payload = 7 }", "'payload' is a number; want a text"},
        {"{ paylaod = 'x' }", "there is no message.paylaod; did you mean 'payload'?"},
        {"{ 'x' }", "there is no message.number"},
        {"{ payload = 'x', host = 'evil' }", "there is no message.host"},
        {"{ payload = 'x', url = 'http://evil/' }", "there is no message.url"},
        {"{ payload = 'x', topic = 'a/+' }", "'topic' is none"},
        {"{ payload = 'x', topic = '#' }", "'topic' is none"},
        {"{ payload = 'x', topic = 'a\\0' }", "'topic' is none"},
        {"{ payload = 'x', topic = '' }", "'topic' is none"},
        {"{ payload = 'x', topic = ('t'):rep(513) }", "'topic' has 513 bytes, at most 512"},
        {"{ payload = 'x', type = 'a\\r\\nX-Evil: 1' }", "'type' is none"},
        {"{ payload = 'x', type = '' }", "'type' is none"},
        {"{ payload = 'x', retain = 1 }", "'retain' is a number; want true or false"},
        {"event.snapshto", "there is no event.snapshto; did you mean 'snapshot'?"},
        {"event[1]", "there is no event.number"},
        {"ctx.late", "there is no ctx.late; uploaded has ctx.table"},
        {"error('no')", "t.lua:2: no"},
        {"(function() while true do end end)()", "t.lua:2: its budget of instructions is used up"},
        {"pcall(function() while true do end end) and 'x'", "its budget of instructions"},
        {"(function() local a = {} for i = 1, 1 << 20 do a[i] = { i } end end)()",
         "t.lua:2: not enough memory"},
        {"io.open('/etc/passwd')", "io"},
    };
    for (size_t i = 0; i < COUNT(attempts); i++) {
        tn_rc rc = answer(attempts[i].text);
        if (rc != TN_INVALID || !strstr(s.err.text, attempts[i].want)) {
            FAIL("%s\ngave %d: %s", attempts[i].text, rc, s.err.text);
        }
        CHECK(memcmp(&message, &untouched, sizeof message) == 0);
        tn_heap_check(&s.vm.heap);
    }
}

/* Rows and uploads go on, however often it fails; and when they have parked the script it rests. */
static void failures_of_it_never_park_the_script(void)
{
    open_state(&s, NULL);
    tn_rc rc = load_script(&s, NULL, "return {uploaded = function(e) error('no') end}");
    CHECK_OK(rc, s.err);
    for (int i = 0; i < 2 * TN_SCRIPT_FAILURES_MAX; i++) {
        rc = ask();
        CHECK(rc == TN_INVALID && strstr(s.err.text, "t.lua:1: no"));
    }
    CHECK(!tn_script_parked(&s.script));
    s.script.failures_in_row = TN_SCRIPT_FAILURES_MAX;
    rc = ask();
    CHECK(rc == TN_CANCELED);
}

static const char handler[] = "local m = {}\nfunction m.uploaded(e)\n"
                              "if e.table == 'a.quiet' then return nil end\n"
                              "return { payload = e.lake .. ' ' .. e.first .. '-' .. e.snapshot,"
                              " topic = 't/' .. e.table } end\n";

static void cases_give_the_part_of_an_event_that_counts(void)
{
    static const struct attempt attempts[] = {
        {"{ uploaded = { { lake = 'sky', first = 2, snapshot = 3 } }, "
         "gives = { payload = 'sky 2-3' } }",
         NULL},
        {"{ uploaded = { { snapshot = 9 } }, gives = { payload = 'lake 9-9' } }", NULL},
        {"{ uploaded = {}, gives = { topic = 't/plant.readings' } }", NULL},
        {"{ uploaded = { { table = 'a.quiet' } }, gives = nil }", NULL},
        {"{ uploaded = { { snapshot = 9 } }, gives = { payload = 'lake 8-9' } }",
         "(uploaded): payload: got \"lake 9-9\", want \"lake 8-9\""},
        {"{ uploaded = { { tabel = 'x' } } }", "there is no event.tabel; did you mean 'table'?"},
        {"{ uploaded = { { table = 7 } } }", "event.table is a number; want a text"},
        {"{ uploaded = { { snapshot = -1 } } }", "event.snapshot is no whole number from 0 on"},
        {"{ uploaded = { 7 } }", "table expected, got number"},
        {"{ uploaded = { {}, { table = 'x' } } }", "a case of uploaded has an event and no ctx"},
        {"{ uploaded = { { table = 'a/#' } } }", "'topic' is none"},
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

static const struct test tests[] = {
    TEST(right_answers_become_messages),
    TEST(the_largest_message_fits_and_no_larger_one),
    TEST(a_wrong_answer_says_what_is_wrong_and_changes_nothing),
    TEST(failures_of_it_never_park_the_script),
    TEST(cases_give_the_part_of_an_event_that_counts),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
