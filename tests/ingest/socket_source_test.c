/* socket_source: what clients that talk as the test tells them to hear of it, one thing at a time.
 * What happens to those who just go on is socket_clients_test. */
#include "ingest/socket_source.h"

#include "ingest/socket_world.h"

/* ---- clients ---- */

enum { HEARD_MAX = 4096, SAY_MAX = 8192, TALKERS_MAX = 8 };

struct talker {
    struct tn_stream *stream;
    struct tn_request connect;
    struct tn_request read;
    struct tn_request write;
    bool ended; /* nothing comes any more */
    bool reset;
    size_t heard_size;
    char heard[HEARD_MAX];
    char say[SAY_MAX];
};

static struct talker talkers[TALKERS_MAX];

static void read_talker(struct talker *t)
{
    CHECK(t->heard_size < HEARD_MAX - 1);
    tn_stream_read(t->stream, t->heard + t->heard_size, HEARD_MAX - 1 - t->heard_size, &t->read);
}

static void on_talker_read(struct tn_request *request)
{
    struct talker *t = request->user;
    t->ended = request->rc || request->moved == 0;
    t->reset = request->rc != TN_OK;
    t->heard_size += request->moved;
    t->heard[t->heard_size] = 0;
    if (!t->ended) {
        read_talker(t);
    }
}

static void on_talker_connected(struct tn_request *request)
{
    struct talker *t = request->user;
    CHECK_OK(request->rc, request->err);
    t->stream = request->stream;
    read_talker(t);
}

static void on_talker_written(struct tn_request *request)
{
    (void)request;
}

static struct talker *connect_to(int which, struct tn_net *net, struct tn_endpoint at)
{
    struct talker *t = &talkers[which];
    *t = (struct talker){.connect = {.done = on_talker_connected, .user = t},
                         .read = {.done = on_talker_read, .user = t},
                         .write = {.done = on_talker_written, .user = t}};
    tn_net_connect(net, &at, &t->connect);
    for (uint32_t i = 0; !t->stream; i++) {
        CHECK(i < STEPS_MAX);
        turn_calm();
    }
    return t;
}

static struct talker *connect_talker(int which)
{
    return connect_to(which, world.far, (struct tn_endpoint){"gateway", PORT});
}

static void say(struct talker *t, const char *text)
{
    for (uint32_t i = 0; tn_request_under_way(&t->write); i++) {
        CHECK(i < STEPS_MAX);
        turn_calm();
    }
    CHECK(strlen(text) < SAY_MAX);
    (void)snprintf(t->say, SAY_MAX, "%s", text);
    tn_stream_write(t->stream, tn_bytes_of(t->say), &t->write);
    turns(200);
}

static struct talker *talk(int which, const char *text)
{
    struct talker *t = connect_talker(which);
    say(t, text);
    return t;
}

static bool heard(const struct talker *t, const char *all)
{
    if (strcmp(t->heard, all) != 0) {
        (void)fprintf(stderr, "heard:\n%swanted:\n%s", t->heard, all);
    }
    return strcmp(t->heard, all) == 0;
}

static void hang_up(struct talker *t)
{
    tn_stream_close(t->stream, NULL);
    turns(200);
}

static void close_world(void)
{
    stop_source(turn_calm);
    for (int i = 0; i < TALKERS_MAX; i++) {
        if (talkers[i].stream) {
            tn_stream_close(talkers[i].stream, NULL);
        }
        talkers[i].stream = NULL;
    }
    turns(200);
    close_net();
}

static void all_is_durable(void)
{
    make_durable(hub.count);
    turns(200);
}

/* ---- one thing at a time ---- */

static void lines_are_acknowledged_when_durable(void)
{
    open_world(1);
    open_source();
    struct talker *t = talk(0, "a 1\n\r\na 2\nhalf");
    CHECK(count_rows("a ", false) == 2 && heard(t, ""));
    all_is_durable();
    CHECK(heard(t, "{\"received\":3}\n"));
    say(t, " a line\n");
    CHECK(count_rows("half a line", false) == 1 && heard(t, "{\"received\":3}\n"));
    all_is_durable();
    CHECK(heard(t, "{\"received\":3}\n{\"received\":4}\n"));
    close_world();
}

static void a_sender_goes_on_where_it_was(void)
{
    open_world(2);
    open_source();
    struct talker *t = talk(0, "tarn {\"sender\":\"gw-7\"}\n");
    CHECK(heard(t, "{\"sender\":\"gw-7\",\"received\":0}\n"));
    say(t, "a 1\na 2\na 3\n");
    make_durable(1);
    hang_up(t);
    talkers[0].stream = NULL;
    world.opened = 0;
    sim_net_kill(&world.net, world.gateway, false);
    crash_hub();
    open_source();
    t = talk(1, "tarn {\"sender\":\"gw-7\"}\r\n");
    CHECK(heard(t, "{\"sender\":\"gw-7\",\"received\":3}\n"));
    t = talk(2, "tarn {\"sender\":\"gw-8\"}\n");
    CHECK(heard(t, "{\"sender\":\"gw-8\",\"received\":0}\n"));
    close_world();
}

/* What the hub has of a sender, but not durably, is not told. */
static void a_greeting_is_answered_when_its_count_is_durable(void)
{
    open_world(3);
    open_source();
    struct talker *t = talk(0, "tarn {\"sender\":\"gw-7\"}\n");
    say(t, "a 1\na 2\n");
    t = talk(1, "tarn {\"sender\":\"gw-7\"}\n");
    CHECK(heard(t, ""));
    CHECK(strstr(talkers[0].heard, "{\"error\":\"a newer connection is this sender now\"}\n"));
    CHECK(talkers[0].ended && !talkers[0].reset && status_now().replaced == 1);
    all_is_durable();
    CHECK(heard(t, "{\"sender\":\"gw-7\",\"received\":2}\n"));
    say(t, "a 3\n");
    all_is_durable();
    CHECK(count_rows("a ", true) == 3);
    close_world();
}

static void a_file_may_be_sent_again(void)
{
    open_world(4);
    open_source();
    struct talker *t = talk(0, "tarn {\"first\":1,\"sender\":\"f\"}\na 1\na 2\na 3\n");
    all_is_durable();
    CHECK(count_rows("a ", true) == 3);
    hang_up(t);
    talkers[0].stream = NULL;
    t = talk(1, "tarn {\"sender\":\"f\",\"first\":1}\na 1\na 2\na 3\na 4\n");
    all_is_durable();
    CHECK(count_rows("a ", true) == 4 && status_now().repeated == 3);
    CHECK(heard(t, "{\"sender\":\"f\",\"received\":3}\n{\"received\":4}\n"));
    t = talk(2, "tarn {\"sender\":\"new\",\"first\":1001}\nb 1001\n");
    all_is_durable();
    CHECK(heard(t, "{\"sender\":\"new\",\"received\":1000}\n{\"received\":1001}\n"));
    close_world();
}

static void the_end_is_answered_and_half_a_line_is_none(void)
{
    open_world(5);
    open_source();
    struct talker *t = talk(0, "a 1\na 2");
    struct tn_request finish = {.done = on_talker_written};
    tn_stream_finish(t->stream, &finish);
    turns(300);
    CHECK(!t->ended && count_rows("a ", false) == 1);
    all_is_durable();
    CHECK(heard(t, "{\"received\":1}\n") && t->ended && !t->reset);
    CHECK(status_now().unfinished == 1 && status_now().open == 0);
    close_world();
}

static void a_line_too_long_is_a_letter(void)
{
    static char text[SAY_MAX];
    for (uint32_t size = 90; size < 7000; size += size < 110 ? 1 : 977) {
        open_world(size);
        world.net.fragment_max = size % 2 ? 7 : 5000;
        open_source();
        memset(text, 'x', size);
        (void)snprintf(text + size, SAY_MAX - size, "\na 2\n");
        struct talker *t = talk(0, text);
        for (uint32_t i = 0; i < STEPS_MAX && count_rows("a ", false) == 0; i++) {
            turn_calm();
        }
        CHECK(hub.row_count == 2 && count_rows("a 2", false) == 1);
        bool cut = size + 1 > 100;
        CHECK(hub.rows[0].cut_size == (cut ? size + 1 : 0));
        CHECK(hub.rows[0].size == (cut ? 100 : size));
        CHECK(status_now().too_long == cut && status_now().dead == cut);
        all_is_durable();
        CHECK(strstr(t->heard, "{\"received\":2}\n"));
        close_world();
    }
}

/* A text of the line protocol may hold line ends, so one that is not closed would take all lines of
 * the message with it. */
static void a_text_left_open_ends_its_message(void)
{
    uint32_t together = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        open_world(seed);
        world.spec.input = TN_INPUT_LINE;
        open_source();
        (void)talk(0, "m a=\"x\",b=1\nm a=\"x\nm b=2\nm b=3\n");
        CHECK(hub.row_count == 4 && hub.rows[1].entry < hub.rows[2].entry);
        together +=
            hub.rows[0].entry == hub.rows[1].entry && hub.rows[2].entry == hub.rows[3].entry;
        close_world();
    }
    CHECK(together > 0);
}

static void what_is_refused_for_good_has_been_received(void)
{
    open_world(7);
    hub.refuses = true;
    open_source();
    struct talker *t = talk(0, "tarn {\"sender\":\"s\"}\n");
    say(t, "a 1\n");
    say(t, "refuse 2\n");
    say(t, "a 3\n");
    struct talker *nobody = talk(1, "refuse 1\n");
    CHECK(heard(nobody, "{\"received\":1}\n"));
    all_is_durable();
    CHECK(strstr(t->heard, "{\"received\":3}\n") && status_now().refused == 2);
    CHECK(count_rows("", true) == 2);
    close_world();
}

static void without_room_nothing_is_read(void)
{
    static char text[SAY_MAX];
    open_world(8);
    open_source();
    struct talker *t = talk(0, "a 1\n");
    hub.full = true;
    memset(text, '\n', SAY_MAX - 1);
    for (int i = 0; i < 4; i++) { /* more than buffer and window hold */
        (void)snprintf(t->say, SAY_MAX, "%s", text);
        if (!tn_request_under_way(&t->write)) {
            tn_stream_write(t->stream, tn_bytes_of(t->say), &t->write);
        }
        turns(200);
    }
    CHECK(tn_request_under_way(&t->write) && status_now().blocked);
    uint64_t bytes = world.gateway->counts.bytes_read;
    turns(500);
    CHECK(world.gateway->counts.bytes_read == bytes && hub.count == 1);
    hub.full = false;
    tn_hub_say_room(&hub.hub);
    turns(500);
    CHECK(!status_now().blocked && world.gateway->counts.bytes_read > bytes && hub.count > 1);
    close_world();
}

/* ---- who does not read answers ---- */

enum { UNREAD = 1500 };

static struct talker *connect_unreading(void)
{
    open_source();
    struct talker *t = connect_talker(0);
    tn_request_cancel(&t->read);
    turns(20);
    return t;
}

static void begin_line(struct talker *t, int i)
{
    (void)snprintf(t->say, SAY_MAX, "a %d\n", i);
    tn_stream_write(t->stream, tn_bytes_of(t->say), &t->write);
}

static void check_all_taken(void)
{
    for (int i = 0; i < STEPS_MAX && count_rows("a ", false) < UNREAD; i++) {
        turn_calm();
    }
    CHECK(count_rows("a ", false) == UNREAD && status_now().open == 1);
}

static void who_does_not_read_answers_is_taken_all_the_same(void)
{
    open_world(9);
    struct talker *t = connect_unreading();
    for (int i = 0; i < UNREAD; i++) {
        begin_line(t, i);
        while (tn_request_under_way(&t->write)) {
            turn_calm();
        }
        make_durable(hub.count);
    }
    check_all_taken();
    close_world();
}

static void who_is_done_and_does_not_read_answers_loses_its_place(void)
{
    open_world(9);
    world.spec.connections = 1;
    struct talker *t = connect_unreading();
    for (int i = 0; i < UNREAD; i++) {
        begin_line(t, i);
        for (uint32_t lines = hub.row_count; hub.row_count == lines;) {
            turn_calm();
        }
        make_durable(hub.count); /* and said, if there is room */
        turns(2);
    }
    tn_stream_finish(t->stream, &t->write);
    check_all_taken();
    make_durable(hub.count);
    int64_t began = world.clock.passed_ns;
    for (int i = 0; status_now().open > 0; i++) {
        CHECK(i < STEPS_MAX);
        turn_calm();
    }
    int64_t ms = (world.clock.passed_ns - began) / 1000000;
    CHECK(ms > 5000 && ms < 15000); /* it may be slow */
    close_world();
}

/* ---- who may talk ---- */

static void strangers_are_turned_away(void)
{
    static const struct {
        const char *said;
        const char *error;
    } cases[] = {
        {"a 1\n", "the first line must be: tarn {'token':'...'}"},
        {"tarn {\"token\":\"secre\"}\na 1\n", "the greeting doesn't have the token"},
        {"tarn {\"sender\":\"x\"}\na 1\n", "the greeting doesn't have the token"},
        {"tarn {\"token\":\"secret\",\"sender\":\"a b\"}\n",
         "a sender's name is 1 to 128 visible characters of ASCII, no quotes"},
        {"tarn {\"token\":\"secret\",\"sender\":\"\"}\n",
         "a sender's name is 1 to 128 visible characters of ASCII, no quotes"},
        {"tarn {\"token\":\"secret\",\"first\":5}\n",
         "`first` is a number from 1, of a sender's line"},
        {"tarn {\"token\":\"secret\",\"sender\":\"s\",\"first\":0}\n",
         "`first` is a number from 1, of a sender's line"},
        {"tarn {\"token\":\"secret\",\"sender\":\"s\",\"first\":9223372036854775807}\n",
         "`first` is a number from 1, of a sender's line"},
        {"tarn {\"tokken\":\"secret\"}\n", NULL},
        {"tarn {\"token\":\"secret\"} x\n", NULL},
        {"tarn {\n", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[256];
        open_world(i);
        world.spec.token = "secret";
        world.spec.at.host = "0.0.0.0";
        open_source();
        struct talker *t = talk(0, cases[i].said);
        (void)snprintf(line, sizeof line, "{\"error\":\"%s\"}\n", cases[i].error);
        CHECK(cases[i].error ? heard(t, line) : strncmp(t->heard, line, 10) == 0);
        CHECK(t->ended && !t->reset && hub.count == 0 && status_now().turned_away == 1);
        close_world();
    }
    open_world(5);
    world.spec.token = "secret";
    open_source();
    struct talker *t = talk(0, "tarn {\"token\":\"sec\\u0072et\"}\na 1\n");
    all_is_durable();
    CHECK(heard(t, "{\"received\":0}\n{\"received\":1}\n") && count_rows("a ", true) == 1);
    (void)connect_talker(1); /* says nothing */
    sim_clock_advance_ms(&world.clock, 11000);
    turns(200);
    CHECK(heard(&talkers[1], "{\"error\":\"no greeting came\"}\n"));
    close_world();
}

static void a_greeting_without_an_end_is_turned_away(void)
{
    static char text[SAY_MAX];
    open_world(3);
    open_source();
    (void)snprintf(text, SAY_MAX, "tarn {\"sender\":\"%2000d", 1);
    struct talker *t = talk(0, text);
    turns(200);
    CHECK(heard(t, "{\"error\":\"the greeting is too long\"}\n"));
    close_world();
}

static void one_too_many_stays_only_in_place_of_itself(void)
{
    open_world(10);
    world.spec.connections = 2;
    open_source();
    (void)talk(0, "tarn {\"sender\":\"a\"}\n");
    (void)talk(1, "tarn {\"sender\":\"b\"}\n");
    struct talker *t = talk(2, "x 1\n");
    CHECK(heard(t, "{\"error\":\"there are too many connections\"}\n") && t->ended);
    hang_up(t);
    t->stream = NULL;
    t = talk(3, "tarn {\"sender\":\"c\"}\n");
    CHECK(heard(t, "{\"error\":\"there are too many connections\"}\n") && t->ended);
    hang_up(t);
    t->stream = NULL;
    t = talk(4, "tarn {\"sender\":\"b\"}\n");
    CHECK(heard(t, "{\"sender\":\"b\",\"received\":0}\n") && !t->ended);
    CHECK(talkers[1].ended && !talkers[0].ended && count_rows("x", false) == 0);
    close_world();
}

static void who_is_idle_is_closed(void)
{
    open_world(11);
    world.spec.idle_ms = 5000;
    open_source();
    struct talker *t = talk(0, "a 1\n");
    for (int i = 0; i < 10; i++) { /* what isn't durable is waited for */
        sim_clock_advance_ms(&world.clock, 3000);
        turns(20);
    }
    CHECK(!t->ended);
    all_is_durable();
    for (int i = 0; i < 3; i++) {
        sim_clock_advance_ms(&world.clock, 3000);
        turns(50);
    }
    CHECK(heard(t, "{\"received\":1}\n{\"error\":\"nothing came for too long\"}\n") && t->ended);
    close_world();
}

/* Whatever bytes come, the source lives, and others are served. */
static void any_bytes_do_no_harm(void)
{
    static const char *const parts[] = {
        "tarn ", "tarn {",  "\"sender\":", "\"x\"", "}",   "\n", "\r", "\"first\":", "7",
        ",",     "\\u0000", "\xff",        "{",     "a 1", "\t", "\"", "[",          "null"};
    static char text[SAY_MAX];
    for (uint64_t seed = 0; seed < 300; seed++) {
        open_world(seed);
        world.spec.input = chance(2) ? TN_INPUT_LINE : TN_INPUT_JSON;
        open_source();
        struct tn_buf buf;
        tn_buf_init(&buf, text, SAY_MAX - 1);
        for (uint32_t i = 1 + random_below(&world.random, 60); i > 0; i--) {
            tn_buf_text(&buf, parts[random_below(&world.random, COUNT(parts))]);
            for (uint32_t k = chance(20) ? random_below(&world.random, 90) : 0; k > 0; k--) {
                tn_buf_text(&buf, "                ");
            }
        }
        CHECK(!buf.overflow || buf.size < SAY_MAX);
        text[buf.size] = 0;
        (void)talk(0, text);
        struct talker *other = talk(1, "b 1\n");
        all_is_durable();
        CHECK(heard(other, "{\"received\":1}\n"));
        close_world();
    }
}

/* The old one finds in the hub that it is the sender no longer. */
static void a_sender_moves_to_another_source(void)
{
    open_world(12);
    open_source();
    struct tn_socket_source *older = world.source;
    struct talker *t = talk(0, "tarn {\"sender\":\"s\"}\n");
    say(t, "a 1\n");
    all_is_durable();
    static alignas(16) unsigned char memory[SOURCE_SIZE];
    struct tn_arena arena;
    struct tn_socket_source_spec spec = world.spec;
    spec.at.host = "unix:/run/tarn";
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_socket_source_open(&world.source, &spec, &arena, &err);
    CHECK_OK(rc, err);
    struct talker *u = connect_to(1, world.gateway, (struct tn_endpoint){"unix:/run/tarn", 0});
    say(u, "tarn {\"sender\":\"s\"}\n");
    say(u, "a 2\n");
    say(t, "a 2\n");
    all_is_durable();
    CHECK(heard(u, "{\"sender\":\"s\",\"received\":1}\n{\"received\":2}\n"));
    CHECK(strstr(t->heard, "{\"error\":\"another connection is this sender now\"}\n"));
    CHECK(count_rows("a 2", true) == 1);
    hang_up(u);
    u->stream = NULL;
    stop_source(turn_calm);
    world.source = older;
    close_world();
}

static void a_spec_that_cannot_work_is_refused(void)
{
    static alignas(16) unsigned char memory[SOURCE_SIZE];
    struct tn_arena arena;
    struct tn_socket_source *source = NULL;
    open_world(1);
    const struct tn_socket_source_spec good = world.spec;
    struct tn_socket_source_spec bad[5] = {good, good, good, good, good};
    bad[0].input = TN_INPUT_CSV;
    bad[1].at.host = "0.0.0.0";
    bad[2].line_size_max = 4097;
    bad[3].line_size_max = 63;
    bad[4].connections = 0;
    tn_arena_init(&arena, memory, sizeof memory);
    for (size_t i = 0; i < COUNT(bad); i++) {
        tn_rc rc = tn_socket_source_open(&source, &bad[i], &arena, &err);
        CHECK(rc == TN_INVALID && arena.used == 0 && strstr(err.text, "socket.plant: "));
    }
    size_t need = 0;
    for (tn_rc rc = TN_AGAIN; rc; need += 512) {
        tn_arena_init(&arena, memory, need);
        rc = tn_socket_source_open(&source, &good, &arena, &err);
        CHECK(rc == TN_OK || (rc == TN_AGAIN && arena.used == 0));
    }
    CHECK(arena.used + 2048 < tn_socket_source_memory(&good)); /* room for 32 and 64 bits */
    world.source = source;
    close_world();
}

static const struct test tests[] = {
    TEST(a_spec_that_cannot_work_is_refused),
    TEST(lines_are_acknowledged_when_durable),
    TEST(a_sender_goes_on_where_it_was),
    TEST(a_greeting_is_answered_when_its_count_is_durable),
    TEST(a_file_may_be_sent_again),
    TEST(the_end_is_answered_and_half_a_line_is_none),
    TEST(a_line_too_long_is_a_letter),
    TEST(a_text_left_open_ends_its_message),
    TEST(what_is_refused_for_good_has_been_received),
    TEST(without_room_nothing_is_read),
    TEST(who_does_not_read_answers_is_taken_all_the_same),
    TEST(who_is_done_and_does_not_read_answers_loses_its_place),
    TEST(strangers_are_turned_away),
    TEST(a_greeting_without_an_end_is_turned_away),
    TEST(one_too_many_stays_only_in_place_of_itself),
    TEST(who_is_idle_is_closed),
    TEST(a_sender_moves_to_another_source),
    TEST(any_bytes_do_no_harm),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
