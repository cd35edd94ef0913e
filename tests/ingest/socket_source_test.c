/* socket_source: clients of the test behind a network that is slow, cuts and lies, a hub of the
 * test that has no room, refuses, and loses what isn't durable, and a process that ends. Whatever
 * happens: lines of a sender with a name are there exactly once and in their order, those of others
 * at least once, and none is acknowledged before it is durable. */
#include "ingest/socket_source.h"

#include "ingest/socket_world.h"
#include "io/tls_memory.h"
#include "sim/certificate.h"

/* ---- clients that talk as the test tells them to ---- */

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

static void turn_calm(void)
{
    (void)sim_net_turn(&world.net);
}

static void turns(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        turn_calm();
    }
}

static struct talker *connect_talker(int which)
{
    struct talker *t = &talkers[which];
    *t = (struct talker){.connect = {.done = on_talker_connected, .user = t},
                         .read = {.done = on_talker_read, .user = t},
                         .write = {.done = on_talker_written, .user = t}};
    tn_net_connect(world.far, &(struct tn_endpoint){"gateway", PORT}, &t->connect);
    for (uint32_t i = 0; !t->stream; i++) {
        CHECK(i < STEPS_MAX);
        turn_calm();
    }
    return t;
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

static void who_does_not_read_answers_is_taken_all_the_same(void)
{
    open_world(9);
    open_source();
    struct talker *t = connect_talker(0);
    tn_request_cancel(&t->read);
    turns(20);
    for (int i = 0; i < 1500; i++) {
        (void)snprintf(t->say, SAY_MAX, "a %d\n", i);
        tn_stream_write(t->stream, tn_bytes_of(t->say), &t->write);
        while (tn_request_under_way(&t->write)) {
            turn_calm();
        }
        make_durable(hub.count);
    }
    for (int i = 0; i < STEPS_MAX && count_rows("a ", false) < 1500; i++) {
        turn_calm();
    }
    CHECK(count_rows("a ", false) == 1500 && status_now().open == 1);
    close_world();
}

static void who_is_done_and_does_not_read_answers_loses_its_place(void)
{
    open_world(9);
    world.spec.connections = 1;
    open_source();
    struct talker *t = connect_talker(0);
    tn_request_cancel(&t->read);
    turns(20);
    for (int i = 0; i < 1500; i++) {
        (void)snprintf(t->say, SAY_MAX, "a %d\n", i);
        tn_stream_write(t->stream, tn_bytes_of(t->say), &t->write);
        for (uint32_t lines = hub.row_count; hub.row_count == lines;) {
            turn_calm();
        }
        make_durable(hub.count); /* and said, if there is room */
        turns(2);
    }
    tn_stream_finish(t->stream, &t->write);
    for (int i = 0; i < STEPS_MAX && count_rows("a ", false) < 1500; i++) {
        turn_calm();
    }
    CHECK(count_rows("a ", false) == 1500 && status_now().open == 1);
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
    struct talker *u = &talkers[1];
    *u = (struct talker){.connect = {.done = on_talker_connected, .user = u},
                         .read = {.done = on_talker_read, .user = u},
                         .write = {.done = on_talker_written, .user = u}};
    tn_net_connect(world.gateway, &(struct tn_endpoint){"unix:/run/tarn", 0}, &u->connect);
    turns(200);
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

/* ---- clients that only want their lines to arrive ---- */

enum {
    CLIENTS = 5,
    LINES = 150,
    LINE_MAX = 3200,
    CHUNK_MAX = 600,
    TLS_FRAGMENT = 40, /* bytes; a handshake has some 2,000 each way */
    PATIENCE_MS = 4000,
};

enum client_state { AWAY, CONNECTING, GREETED, SENDING, LEAVING };

static struct client {
    char key;
    bool named;
    bool certain; /* says `first`, and doesn't wait */
    enum client_state state;
    struct tn_stream *stream;
    struct tn_stream *below; /* of TLS */
    struct tn_request connect;
    struct tn_request read;
    struct tn_request write;
    struct tn_request closing;
    uint32_t acked; /* lines, of all */
    uint32_t base;  /* lines before those that `received` counts */
    uint32_t next;  /* line, from 1 */
    size_t offset;  /* in it */
    int64_t moved_ms;
    size_t heard_size;
    char heard[256];
    unsigned char chunk[CHUNK_MAX];
} clients[CLIENTS];

static struct tn_tls_config *client_tls;
static struct certificate root;
static struct certificate server_certificate;

static bool is_blank(uint32_t number)
{
    return number % 17 == 5;
}

static size_t line_of(const struct client *c, uint32_t number, char line[LINE_MAX])
{
    uint64_t random = number * 977U + (uint64_t)c->key;
    uint32_t pad = random_below(&random, number % 13 == 7 ? 3000 : 60);
    int size = snprintf(line, LINE_MAX, "%c %u ", c->key, number);
    if (is_blank(number)) {
        (void)snprintf(line, LINE_MAX, "\n");
        return 1;
    }
    memset(line + size, 'x', pad);
    line[(size_t)size + pad] = '\n';
    return (size_t)size + pad + 1;
}

static int64_t now_ms(void)
{
    return world.clock.passed_ns / 1000000;
}

/* How often each line of a client is there. */
static void count_lines(const struct client *c, bool durable, uint32_t times[LINES + 1])
{
    memset(times, 0, (LINES + 1) * sizeof times[0]);
    for (uint32_t i = 0; i < hub.row_count; i++) {
        const struct row *row = &hub.rows[i];
        if (row->text[0] == c->key && (!durable || row->entry < hub.durable_count)) {
            unsigned long number = strtoul(row->text + 2, NULL, 10);
            CHECK(number >= 1 && number <= LINES);
            times[number]++;
        }
    }
}

static void check_durable(const struct client *c, uint32_t upto)
{
    uint32_t times[LINES + 1];
    CHECK(upto <= LINES);
    count_lines(c, true, times);
    for (uint32_t n = 1; n <= upto; n++) {
        CHECK(times[n] > 0 || is_blank(n));
    }
}

static void leave(struct client *c)
{
    if (c->stream) {
        c->state = LEAVING;
        tn_stream_close(c->stream, &c->closing);
        c->stream = NULL;
    } else {
        c->state = AWAY;
    }
}

static void on_left(struct tn_request *request)
{
    struct client *c = request->user;
    c->state = AWAY;
}

static void hear(struct client *c, const char *line)
{
    const char *received = strstr(line, "\"received\":");
    if (!received) {
        CHECK(strncmp(line, "{\"error\":\"", 10) == 0);
        leave(c);
        return;
    }
    uint32_t upto = c->base + (uint32_t)strtoul(received + 11, NULL, 10);
    check_durable(c, upto);
    CHECK(upto >= c->acked || (c->certain && c->state == GREETED));
    c->acked = upto > c->acked ? upto : c->acked;
    c->moved_ms = now_ms();
    if (c->state == GREETED) {
        c->state = SENDING;
        c->next = c->certain ? c->next : upto + 1;
    }
}

static void read_client(struct client *c)
{
    CHECK(c->heard_size < sizeof c->heard);
    tn_stream_read(c->stream, c->heard + c->heard_size, sizeof c->heard - c->heard_size, &c->read);
}

static void on_client_read(struct tn_request *request)
{
    struct client *c = request->user;
    if (c->state == LEAVING) {
        return;
    }
    if (request->rc || request->moved == 0) {
        leave(c);
        return;
    }
    c->heard_size += request->moved;
    char *newline = NULL;
    while (c->state != LEAVING && (newline = memchr(c->heard, '\n', c->heard_size))) {
        *newline = 0;
        hear(c, c->heard);
        c->heard_size -= (size_t)(newline + 1 - c->heard);
        memmove(c->heard, newline + 1, c->heard_size);
    }
    if (c->state != LEAVING) {
        read_client(c);
    }
}

static void on_client_written(struct tn_request *request)
{
    struct client *c = request->user;
    if (request->rc && c->state != LEAVING) {
        leave(c);
    }
}

static size_t put_greeting(struct client *c, char *text, size_t size)
{
    c->next = c->acked + 1;
    c->base = c->named ? 0 : c->acked;
    c->state = SENDING;
    if (c->certain) {
        c->next = 1 + random_below(&world.random, c->acked + 1);
        c->state = GREETED;
        return (size_t)snprintf(text, size, "tarn {\"sender\":\"%c\",\"first\":%u}\n", c->key,
                                c->next);
    }
    if (c->named) {
        c->state = GREETED;
        return (size_t)snprintf(text, size, "tarn {\"sender\":\"%c\"}\n", c->key);
    }
    return chance(2) ? (size_t)snprintf(text, size, "tarn {}\n") : 0;
}

static void arrive(struct client *c, struct tn_stream *stream)
{
    c->stream = stream;
    c->heard_size = 0;
    c->offset = 0;
    c->moved_ms = now_ms();
    size_t size = put_greeting(c, (char *)c->chunk, CHUNK_MAX);
    read_client(c);
    if (size > 0) {
        tn_stream_write(c->stream, (struct tn_bytes){c->chunk, size}, &c->write);
    }
}

static void on_client_connected(struct tn_request *request)
{
    struct client *c = request->user;
    if (request->rc) {
        c->below = NULL;
        c->state = AWAY;
    } else if (world.spec.tls && !c->below) {
        c->below = request->stream;
        tn_tls_open(client_tls, NULL, c->below, "gateway", &c->connect);
    } else {
        arrive(c, request->stream);
    }
}

static void connect_client(struct client *c)
{
    c->state = CONNECTING;
    c->stream = NULL;
    c->below = NULL;
    c->connect =
        (struct tn_request){.done = on_client_connected, .user = c, .timeout_ms = PATIENCE_MS};
    c->read = (struct tn_request){.done = on_client_read, .user = c};
    c->write = (struct tn_request){.done = on_client_written, .user = c};
    c->closing = (struct tn_request){.done = on_left, .user = c};
    tn_net_connect(world.far, &(struct tn_endpoint){"gateway", PORT}, &c->connect);
}

/* Lines, cut anywhere. */
static void send_some(struct client *c)
{
    static char line[LINE_MAX];
    size_t size = 0;
    size_t wanted = 1 + random_below(&world.random, CHUNK_MAX);
    while (size < wanted && c->next <= LINES) {
        size_t whole = line_of(c, c->next, line);
        size_t part = whole - c->offset < wanted - size ? whole - c->offset : wanted - size;
        memcpy(c->chunk + size, line + c->offset, part);
        size += part;
        c->offset += part;
        if (c->offset == whole) {
            c->next++;
            c->offset = 0;
        }
    }
    if (size > 0) {
        tn_stream_write(c->stream, (struct tn_bytes){c->chunk, size}, &c->write);
    }
}

static void step_client(struct client *c)
{
    bool may_send = c->state == SENDING || (c->state == GREETED && c->certain);
    if (c->state == AWAY && c->acked < LINES && chance(world.calm ? 1 : 30)) {
        connect_client(c);
    } else if (may_send && !tn_request_under_way(&c->write) && chance(2)) {
        send_some(c);
    }
    bool bored = now_ms() - c->moved_ms > PATIENCE_MS || (!world.calm && chance(300));
    if ((c->state == SENDING || c->state == GREETED) && bored) {
        leave(c);
    }
}

static void step_clients(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        step_client(&clients[i]);
    }
}

static bool all_arrived(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].acked < LINES) {
            return false;
        }
    }
    return true;
}

static void check_client(const struct client *c)
{
    static char line[LINE_MAX];
    uint32_t times[LINES + 1];
    uint32_t last = 0;
    size_t half = TN_SOCKET_INPUT_MIN / 2;
    size_t beginning = world.spec.line_size_max < half ? world.spec.line_size_max : half;
    count_lines(c, false, times);
    for (uint32_t n = 1; n <= LINES; n++) {
        CHECK(is_blank(n) ? times[n] == 0 : times[n] >= 1);
        CHECK(!c->named || times[n] <= 1);
    }
    for (uint32_t i = 0; i < hub.row_count; i++) {
        const struct row *row = &hub.rows[i];
        if (row->text[0] == c->key) {
            uint32_t number = (uint32_t)strtoul(row->text + 2, NULL, 10);
            size_t size = line_of(c, number, line);
            CHECK(!c->named || number > last);
            CHECK(row->cut_size == (size > world.spec.line_size_max ? size : 0));
            CHECK(row->size == (row->cut_size == 0 ? size - 1 : beginning));
            last = number;
        }
    }
}

static uint64_t restarts;

static void crash(void)
{
    count_source();
    sim_net_kill(&world.net, world.gateway, chance(2));
    crash_hub();
    world.opened = 0;
    open_source();
    restarts++;
}

static void turn_random(void)
{
    step_hub();
    step_clients();
    if (sim_net_turn(&world.net) < 0) { /* only patience ends, some day */
        sim_clock_advance_ms(&world.clock, 100);
    }
}

/* The hub goes on: what it has may not be durable yet. */
static void stop_and_open(void)
{
    if (world.opened < SOURCES_MAX) {
        stop_source(turn_random);
        open_source();
    }
}

static void open_clients(uint64_t seed)
{
    memset(clients, 0, sizeof clients);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].key = (char)('a' + i);
        clients[i].named = i < 3;
        clients[i].certain = i == 2;
    }
    world.calm = false;
    world.spec.idle_ms = 3000;
    world.spec.connections = seed % 2 ? CLIENTS : 3;
    world.spec.line_size_max = seed % 3 ? 100 : 2500;
    world.net.fault_percent = seed % 4 ? 40 : 0;
    world.net.fault_at_max = seed % 7 ? 6000 : 100;
    world.net.fragment_max = seed % 3 ? 200 : 9;
}

static void run_world(void)
{
    bool tls = world.spec.tls != NULL;
    open_source();
    for (uint32_t i = 0; !all_arrived(); i++) {
        CHECK(i < STEPS_MAX);
        turn_random();
        if (i == 5000) {
            world.calm = true;
            world.net.fault_percent = 0;
        }
        if (!world.calm && !tls && chance(400)) {
            crash();
        } else if (!world.calm && chance(400)) {
            stop_and_open();
        }
    }
    world.calm = true;
    stop_source(turn_random);
    for (int i = 0; i < CLIENTS; i++) {
        check_client(&clients[i]);
        if (clients[i].stream) {
            leave(&clients[i]);
        }
    }
    turns(500);
    close_net();
}

static void each_line_arrives_as_often_as_it_should(void)
{
    uint64_t seed = given_number("SEED", 1);
    double end = seconds_now() + (double)given_number("CUT_SECONDS", 10) / 4;
    struct tn_socket_source_status sum = {0};
    uint32_t worlds = 0;
    restarts = 0;
    for (; worlds < 12 || seconds_now() < end; worlds++) {
        open_world(seed + worlds);
        open_clients(seed + worlds);
        run_world();
        sum.connections += world.sum.connections;
        sum.replaced += world.sum.replaced;
        sum.repeated += world.sum.repeated;
        sum.too_long += world.sum.too_long;
        sum.waits += world.sum.waits;
    }
    (void)printf("%u worlds, %llu crashes, %llu connections, %llu replaced, %llu lines repeated, "
                 "%llu too long, %llu waits\n",
                 worlds, (unsigned long long)restarts, (unsigned long long)sum.connections,
                 (unsigned long long)sum.replaced, (unsigned long long)sum.repeated,
                 (unsigned long long)sum.too_long, (unsigned long long)sum.waits);
    CHECK(restarts > 0 && sum.replaced > 0 && sum.repeated > 0 && sum.too_long > 0 &&
          sum.waits > 0);
}

static struct tn_tls_config *make_config(const struct tn_tls_spec *spec)
{
    struct tn_tls_config *config = NULL;
    tn_rc rc = tn_tls_config_make(spec, &config, &err);
    CHECK_OK(rc, err);
    return config;
}

static void the_same_holds_over_tls(void)
{
    uint64_t seed = given_number("SEED", 1);
    double end = seconds_now() + (double)given_number("CUT_SECONDS", 10) / 8;
    for (uint32_t i = 0; i < 2 || seconds_now() < end; i++) {
        open_world(seed + i);
        open_clients(seed + i);
        if (world.net.fragment_max < TLS_FRAGMENT) { /* nobody is patient enough for that */
            world.net.fragment_max = TLS_FRAGMENT;
        }
        client_tls = make_config(
            &(struct tn_tls_spec){.clock = &world.clock.clock, .ca = certificate_pem(&root)});
        world.spec.tls =
            make_config(&(struct tn_tls_spec){.clock = &world.clock.clock,
                                              .certificate = certificate_pem(&server_certificate),
                                              .key = certificate_key(&server_certificate),
                                              .server = true});
        struct tn_tls_config *server_tls = world.spec.tls;
        run_world();
        tn_tls_config_free(client_tls);
        tn_tls_config_free(server_tls);
    }
}

static void set_up(void)
{
    enum { HEAP_SIZE = 3 << 20 };
    static alignas(16) unsigned char heap_memory[HEAP_SIZE];
    static unsigned char log_memory[LOG_SIZE];
    static struct tn_heap heap;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_tls_boot(&heap);
    tn_log_init(&events, log_memory, sizeof log_memory, NULL, NULL);
    certificate_make(&root, &(struct certificate_spec){.name = "CN=root", .authority = true}, 1);
    certificate_make(
        &server_certificate,
        &(struct certificate_spec){.name = "CN=gateway", .dns = "gateway", .issuer = &root}, 3);
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
    TEST(each_line_arrives_as_often_as_it_should),
    TEST(the_same_holds_over_tls),
};

int main(int argc, char **argv)
{
    set_up();
    return run_tests(argc, argv, tests, COUNT(tests));
}
