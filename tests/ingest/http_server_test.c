/* What clients ask and what they hear, over a simulated network: each status, each limit, who is
 * slow, who waits, and how the server stops. http_sender_test.c has what must hold of rows. */
#include "ingest/http_world.h"

#include "counted.h"

enum { HEARD_MAX = 64 * 1024, TURNS_MAX = 100000, PATIENCE_MS = 30000 };

/* ---- a client ---- */

struct call {
    struct tn_request request; /* first */
    bool done;
};

struct client {
    struct tn_stream *stream;
    struct call read;
    bool reads;
    bool ended; /* no more is to come */
    char heard[HEARD_MAX];
    size_t heard_size;
    size_t answered; /* bytes of whole answers */
};

static struct client clients[WORLD_CONNECTIONS + 4];
static struct answer answer;
static bool synced = true; /* the hub gets durable by itself */

static void on_call(struct tn_request *request)
{
    ((struct call *)(void *)request)->done = true;
}

static struct tn_request *prepare(struct call *call)
{
    *call = (struct call){.request = {.done = on_call}};
    return &call->request;
}

static void turn(void)
{
    world_run();
    if (synced) {
        fake_sync(fake.count);
    }
    world_turn();
}

static void wait_for(const struct call *call)
{
    for (int i = 0; !call->done; i++) {
        CHECK(i < TURNS_MAX);
        turn();
    }
}

static struct client *dial(int number)
{
    struct client *client = &clients[number];
    struct call call;
    struct tn_endpoint to = {"gateway", WORLD_PORT};
    memset(client, 0, sizeof *client);
    tn_net_connect(world.far, &to, prepare(&call));
    wait_for(&call);
    CHECK_OK(call.request.rc, call.request.err);
    client->stream = call.request.stream;
    return client;
}

static void hang_up(struct client *client)
{
    tn_stream_close(client->stream, NULL);
    if (client->reads) {
        wait_for(&client->read);
    }
    client->stream = NULL;
}

static void send_bytes(struct client *client, struct tn_bytes bytes)
{
    struct call call;
    tn_stream_write(client->stream, bytes, prepare(&call));
    wait_for(&call);
}

static void send_text(struct client *client, const char *text)
{
    send_bytes(client, tn_bytes_of(text));
}

static void take_bytes(struct client *client)
{
    if (!client->reads) {
        CHECK(client->heard_size < HEARD_MAX - 1);
        tn_stream_read(client->stream, client->heard + client->heard_size,
                       HEARD_MAX - 1 - client->heard_size, prepare(&client->read));
        client->reads = true;
    }
    if (client->read.done) {
        client->reads = false;
        client->heard_size += client->read.request.moved;
        client->ended |= client->read.request.rc != TN_OK || client->read.request.moved == 0;
    }
}

static bool has_answer(struct client *client, bool bodiless)
{
    return answer_read(client->heard + client->answered, client->heard_size - client->answered,
                       bodiless, &answer);
}

/* The next answer's status is that, and its body begins so. */
static void hear_any(struct client *client, bool bodiless)
{
    int64_t began = world_ms();
    while (!has_answer(client, bodiless)) {
        CHECK(!client->ended && world_ms() - began < PATIENCE_MS);
        take_bytes(client);
        turn();
        take_bytes(client);
    }
    client->answered += answer.size;
}

static void hear(struct client *client, int status, const char *part)
{
    hear_any(client, false);
    if (answer.status != status || !strstr(answer.body, part)) {
        FAIL("not %d '%s', but\n%s%s", status, part, answer.head, answer.body);
    }
}

/* Nothing more is said, and the connection is closed. */
static void hear_end(struct client *client)
{
    int64_t began = world_ms();
    while (!client->ended) {
        CHECK(world_ms() - began < PATIENCE_MS);
        take_bytes(client);
        turn();
        take_bytes(client);
    }
    CHECK(client->heard_size == client->answered);
}

static void pass(uint32_t ms)
{
    struct call call;
    tn_net_after(world.far, ms, prepare(&call));
    wait_for(&call);
}

static void begin(const char *token)
{
    world_init(seed_of_test(), 3, token);
    synced = true;
}

#define HOST "Host: gateway\r\n"
#define ROWS "POST /tables/plant.readings/rows HTTP/1.1\r\n" HOST
#define TWO  "Content-Length: 16\r\n\r\n{\"a\":1}\n{\"a\":2}\n"

/* ---- what is answered ---- */

static void a_body_of_rows_is_answered_when_it_is_durable(void)
{
    begin(NULL);
    struct client *client = dial(0);
    synced = false;
    send_text(client, ROWS TWO);
    pass(200);
    take_bytes(client);
    CHECK(fake.count == 1 && client->heard_size == 0);
    synced = true;
    hear(client, 200, "{\"rows\":2,\"place\":");
    CHECK(strstr(answer.head, "Connection: keep-alive\r\n"));
    CHECK(fake.entries[0].rows == 2 && fake.entries[0].input == TN_INPUT_JSON);
    CHECK(strcmp(fake.entries[0].table, "plant.readings") == 0 && !fake.entries[0].sender[0]);
    hang_up(client);
    world_deinit();
}

struct exchange {
    const char *ask;
    int status;
    const char *part; /* of the answer's body */
    const char *head; /* of its head */
};

static void run_exchanges(const struct exchange *exchanges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct client *client = dial(0);
        send_text(client, exchanges[i].ask);
        hear(client, exchanges[i].status, exchanges[i].part);
        CHECK(!exchanges[i].head || strstr(answer.head, exchanges[i].head));
        if (strstr(answer.head, "Connection: close")) {
            hear_end(client);
        }
        hang_up(client);
    }
}

static void each_request_gets_its_status(void)
{
    static const struct exchange exchanges[] = {
        {"GET /health HTTP/1.1\r\n" HOST "\r\n", 200, "{\"health\":\"well\"}", "keep-alive"},
        {"GET /ready HTTP/1.1\r\n" HOST "\r\n", 503, "ill", "Retry-After: "},
        {"GET /metrics?x HTTP/1.1\r\n" HOST "\r\n", 200, "tarn_rows 5", "version=0.0.4"},
        {"GET / HTTP/1.1\r\n" HOST "\r\n", 404, "no such page", NULL},
        {"POST /health HTTP/1.1\r\n" HOST "\r\n", 405, "error", "Allow: GET, HEAD"},
        {"POST /deed HTTP/1.1\r\n" HOST "\r\n", 200, "done", "keep-alive"},
        {"GET /deed HTTP/1.1\r\n" HOST "\r\n", 200, "told", "keep-alive"},
        {"PUT /deed HTTP/1.1\r\n" HOST "\r\n", 405, "error", NULL},
        {"POST /deed HTTP/1.1\r\n" HOST "Origin: http://a\r\n\r\n", 403, "web page", NULL},
        {"GET /deed HTTP/1.1\r\n" HOST "Origin: http://a\r\n\r\n", 200, "told", NULL},
        {"GET /tables/plant.readings/rows HTTP/1.1\r\n" HOST "\r\n", 405, "", "Allow: POST"},
        {"POST /tables/a/b/rows HTTP/1.1\r\n" HOST TWO, 404, "no such page", "close"},
        {"POST /tables//rows HTTP/1.1\r\n" HOST TWO, 404, "no such page", NULL},
        {"POST /tables/a%0ab/rows HTTP/1.1\r\n" HOST TWO, 404, "no such page", NULL},
        {"POST /tables/a%2/rows HTTP/1.1\r\n" HOST TWO, 404, "no such page", NULL},
        {"POST /tables/plant.raedings/rows HTTP/1.1\r\n" HOST TWO, 404, "nearest is plant.readings",
         "keep-alive"},
        {"POST /tables/plant%2ereading%73/rows HTTP/1.1\r\n" HOST TWO, 200, "\"rows\":2", NULL},
        {ROWS "Content-Length: 10\r\n\r\ngood\nbad\n\n", 400, "bad?\\\" is no number\",\"line\":2",
         "keep-alive"},
        {ROWS "Content-Type: text/csv; charset=utf-8\r\n" TWO, 200, "rows", NULL},
        {ROWS "Content-Type: application/x-ndjson\r\n" TWO, 200, "rows", NULL},
        {ROWS "Content-Type: text/plain\r\n" TWO, 415, "?input=", "close"},
        {ROWS "Content-Encoding: gzip\r\n" TWO, 415, "Content-Encoding", NULL},
        {ROWS "Content-Encoding: identity\r\n" TWO, 200, "rows", NULL},
        {"POST /tables/plant.readings/rows?input=changes HTTP/1.1\r\n" HOST
         "Content-Type: text/plain\r\n" TWO,
         200, "rows", NULL},
        {"POST /tables/plant.readings/rows?input=cvs HTTP/1.1\r\n" HOST TWO, 400, "csv", NULL},
        {"POST /tables/plant.readings/rows?output=csv HTTP/1.1\r\n" HOST TWO, 400, "input=", NULL},
        {ROWS "Origin: http://evil\r\n" TWO, 403, "web page", NULL},
        {ROWS "X-Sequence: 1\r\n" TWO, 400, "X-Sequence", NULL},
        {ROWS "X-Sender: a\r\n" TWO, 400, "neither an X-Sequence nor", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence:\r\n" TWO, 400, "X-Sequence", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence: 1x\r\n" TWO, 400, "X-Sequence", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence: -1\r\n" TWO, 400, "X-Sequence", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence: 18446744073709551616\r\n" TWO, 400, "X-Sequence", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence: 1\r\nX-Sequence: 2\r\n" TWO, 400, "more than one", NULL},
        {ROWS "X-Sender: a\r\nX-Sender: b\r\nX-Sequence: 1\r\n" TWO, 400, "X-Sender", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence: 0\r\n" TWO, 400, "X-Sequence", NULL},
        {ROWS "X-Sender: a\r\nX-Sequence: 1\r\nIdempotency-Key: 1\r\n" TWO, 400, "one of", NULL},
        {ROWS "X-Sender: a b\r\nX-Sequence: 1\r\n" TWO, 400, "X-Sender", NULL},
        {ROWS "Idempotency-Key:\r\n" TWO, 400, "Idempotency-Key", NULL},
        {ROWS "Content-Length: 4097\r\n\r\n", 413, "4096 bytes", "close"},
        {ROWS "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"a\":1}\n\r\n0\r\n\r\n", 200, "\"rows\":1",
         NULL},
        {ROWS "Content-Length: 1\r\nContent-Length: 1\r\n\r\n1", 400, "two lengths", "close"},
        {"nonsense\r\n\r\n", 400, "first line", "close"},
        {"GET /health HTTP/3.0\r\n\r\n", 505, "HTTP/1.1", "close"},
        {"GET /health HTTP/1.0\r\n\r\n", 200, "well", "close"},
        {"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, "well", "keep-alive"},
    };
    begin(NULL);
    run_exchanges(exchanges, COUNT(exchanges));
    CHECK(fake.count == 6);
    CHECK(fake.entries[1].input == TN_INPUT_CSV && fake.entries[4].input == TN_INPUT_CHANGES);
    world_deinit();
}

static void a_token_is_asked_for(void)
{
    static const struct exchange exchanges[] = {
        {ROWS TWO, 401, "Bearer TOKEN", "WWW-Authenticate: Bearer"},
        {ROWS "Authorization: Bearer secre\r\n" TWO, 401, "", NULL},
        {ROWS "Authorization: Bearer secret2\r\n" TWO, 401, "", NULL},
        {ROWS "Authorization: Basic secret\r\n" TWO, 401, "", NULL},
        {ROWS "Authorization: Bearer secret\r\nAuthorization: Bearer x\r\n" TWO, 401, "", NULL},
        {ROWS "Authorization: bearer  secret \r\n" TWO, 200, "rows", NULL},
        {ROWS "Origin: http://a\r\nAuthorization: Bearer secret\r\n" TWO, 200, "rows", NULL},
        {"GET /metrics HTTP/1.1\r\n" HOST "\r\n", 401, "", NULL},
        {"POST /deed HTTP/1.1\r\n" HOST "\r\n", 401, "", NULL},
        {"GET /metrics HTTP/1.1\r\n" HOST "Authorization: Bearer secret\r\n\r\n", 200, "", NULL},
        {"GET /health HTTP/1.1\r\n" HOST "\r\n", 200, "well", NULL},
    };
    begin("secret");
    run_exchanges(exchanges, COUNT(exchanges));
    world_deinit();
    struct tn_http_server_spec spec = world.spec;
    struct tn_err err;
    struct tn_arena arena = {0};
    spec.token = NULL;
    spec.at.host = "0.0.0.0";
    tn_rc rc = tn_http_server_open(&world.server, &spec, &arena, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "token"));
}

static void pipelined_requests_are_answered_in_order(void)
{
    begin(NULL);
    struct client *client = dial(0);
    send_text(client, ROWS TWO
              "GET /health HTTP/1.1\r\n" HOST "\r\n" ROWS "Content-Length: 3\r\n\r\nbad" ROWS TWO
              "HEAD /metrics HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" ROWS TWO);
    hear(client, 200, "\"rows\":2");
    hear(client, 200, "well");
    hear(client, 400, "\"line\":1");
    hear(client, 200, "\"rows\":2");
    hear_any(client, true);
    CHECK(answer.status == 200 && strstr(answer.head, "Content-Length: 12\r\n"));
    hear_end(client);
    CHECK(fake.count == 2); /* what came behind the close was no request */
    hang_up(client);
    world_deinit();
}

static void whoever_expects_100_hears_it_or_the_reason(void)
{
    begin(NULL);
    struct client *client = dial(0);
    send_text(client, ROWS "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    hear(client, 100, "");
    send_text(client, "{}");
    hear(client, 200, "\"rows\":1");
    send_text(client, ROWS "Expect: 100-continue\r\nContent-Length: 20000\r\n\r\n");
    hear(client, 413, "4096");
    hear_end(client);
    hang_up(client);
    world_deinit();
}

/* An answer comes before the body has, and must not be lost with what is still under way. */
static void a_long_body_is_refused_and_the_reason_is_heard(void)
{
    static char filler[40000];
    memset(filler, 'x', sizeof filler);
    for (uint64_t seed = 0; seed < 40; seed++) {
        world_init(seed_of_test() + seed, 3, NULL);
        struct client *client = dial(0);
        send_text(client, seed % 2 ? ROWS "Content-Length: 40000\r\n\r\n"
                                   : ROWS "Transfer-Encoding: chunked\r\n\r\n9c40\r\n");
        send_bytes(client, (struct tn_bytes){(unsigned char *)filler, sizeof filler});
        hear(client, 413, "4096");
        CHECK(fake.offers == 0);
        hang_up(client);
        world_deinit();
    }
}

/* ---- who waits ---- */

static void no_room_is_waited_for_and_then_told(void)
{
    begin(NULL);
    struct client *client = dial(0);
    fake.full = true;
    send_text(client, ROWS TWO ROWS TWO);
    pass(WORLD_ANSWER_MS / 2);
    take_bytes(client);
    CHECK(client->heard_size == 0 && fake.count == 0 && fake.offers == 1);
    fake_make_room();
    fake.full = false;
    hear(client, 200, "rows");
    hear(client, 200, "rows");
    fake.full = true;
    send_text(client, ROWS TWO);
    hear(client, 503, "no room");
    CHECK(strstr(answer.head, "Retry-After: ") && strstr(answer.head, "keep-alive"));
    fake.full = false;
    fake.troubled = true;
    send_text(client, ROWS TWO);
    hear(client, 503, "no space left");
    hang_up(client);
    world_deinit();
}

static void what_does_not_get_durable_is_no_success(void)
{
    begin(NULL);
    struct client *client = dial(0);
    synced = false;
    send_text(client, ROWS "X-Sender: s\r\nX-Sequence: 1\r\n" TWO);
    hear(client, 503, "can be sent again");
    hear_end(client); /* a number behind it must not come first */
    hang_up(client);
    client = dial(0);
    send_text(client, ROWS "X-Sender: s\r\nX-Sequence: 1\r\n" TWO);
    pass(100);
    take_bytes(client);
    CHECK(fake.count == 1 && client->heard_size == 0);
    synced = true;
    hear(client, 200, "{\"repeated\":true,\"place\":");
    hang_up(client);
    world_deinit();
}

static void slow_and_idle_clients_are_dropped(void)
{
    begin(NULL);
    struct client *idle = dial(0);
    hear_end(idle); /* without a word */
    hang_up(idle);
    struct client *slow = dial(0);
    send_text(slow, "POST /tab");
    hear(slow, 408, "slowly");
    hear_end(slow);
    hang_up(slow);
    /* One byte now and then is no way to stay. */
    slow = dial(0);
    int64_t began = world_ms();
    send_text(slow, ROWS "Content-Length: 1000\r\n\r\n");
    while (tn_http_server_counts(world.server)->slow < 2) {
        send_text(slow, "x");
        pass(WORLD_TIMEOUT_MS / 4);
    }
    CHECK(world_ms() - began < 2 * WORLD_TIMEOUT_MS);
    hear(slow, 408, "slowly");
    hang_up(slow);
    CHECK(fake.offers == 0);
    world_deinit();
}

/* A connection that is kept alive has its time from each answer on. */
static void who_has_nothing_more_to_ask_is_dropped(void)
{
    begin(NULL);
    struct client *client = dial(0);
    for (int i = 0; i < 3; i++) {
        pass(WORLD_IDLE_MS - 200);
        send_text(client, "GET /health HTTP/1.1\r\n" HOST "\r\n");
        hear(client, 200, "well");
    }
    int64_t began = world_ms();
    hear_end(client);
    int64_t ms = world_ms() - began;
    CHECK(ms > WORLD_IDLE_MS - 200 && ms < WORLD_IDLE_MS + 200);
    hang_up(client);
    CHECK(tn_http_server_counts(world.server)->slow == 0);
    world_deinit();
}

/* A link that takes a byte a millisecond is slow, and nobody's fault. */
static void a_body_may_take_a_second_for_each_kilobyte(void)
{
    static char piece[512];
    memset(piece, ' ', sizeof piece - 1);
    piece[sizeof piece - 1] = '\n';
    for (uint32_t ms = 300; ms <= 900; ms += 600) {
        begin(NULL);
        struct client *client = dial(0);
        int64_t began = world_ms();
        send_text(client, ROWS "Content-Length: 4096\r\n\r\n");
        for (int i = 0; i < 8 && tn_http_server_counts(world.server)->slow == 0; i++) {
            send_bytes(client, (struct tn_bytes){(const unsigned char *)piece, sizeof piece});
            pass(ms);
        }
        hear(client, ms == 300 ? 200 : 408, "");
        CHECK(world_ms() - began > WORLD_TIMEOUT_MS);
        CHECK(world_ms() - began < WORLD_TIMEOUT_MS + WORLD_BODY_MAX);
        hang_up(client);
        world_deinit();
    }
}

/* Connections are few: neither heads nor bodies that drip keep others out. */
static void slow_ones_make_room_for_others(void)
{
    static const char *const begins[WORLD_CONNECTIONS] = {
        "P", "POST /tables/plant.readings/rows HTTP/1.1\r\nX-Filler: ",
        ROWS "Transfer-Encoding: chunked\r\n\r\n1;"};
    begin(NULL);
    for (int i = 0; i < WORLD_CONNECTIONS; i++) {
        send_text(dial(i), begins[i]);
    }
    int64_t began = world_ms();
    while (tn_http_server_counts(world.server)->slow < WORLD_CONNECTIONS) {
        for (int i = 0; i < WORLD_CONNECTIONS; i++) {
            send_text(&clients[i], "x");
        }
        pass(WORLD_TIMEOUT_MS / 10);
        CHECK(world_ms() - began < 2 * WORLD_TIMEOUT_MS);
    }
    for (int i = 0; i < WORLD_CONNECTIONS; i++) {
        hear(&clients[i], 408, "slowly");
        hang_up(&clients[i]);
    }
    pass(50);
    struct client *next = dial(0);
    send_text(next, ROWS TWO);
    hear(next, 200, "rows");
    hang_up(next);
    world_deinit();
}

static void too_many_connections_are_told(void)
{
    begin(NULL);
    for (int i = 0; i < WORLD_CONNECTIONS; i++) {
        struct client *client = dial(i);
        send_text(client, "GET /health HTTP/1.1\r\n" HOST "\r\n");
        hear(client, 200, "well");
    }
    struct client *one_more = dial(WORLD_CONNECTIONS);
    hear(one_more, 503, "too many");
    CHECK(strstr(answer.head, "Retry-After: "));
    hear_end(one_more);
    hang_up(one_more);
    hang_up(&clients[0]);
    pass(50);
    struct client *next = dial(0);
    send_text(next, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    hear(next, 200, "well");
    CHECK(tn_http_server_counts(world.server)->connections_over == 1);
    for (int i = 0; i < WORLD_CONNECTIONS; i++) {
        hang_up(&clients[i]);
    }
    world_deinit();
}

static void a_stop_answers_those_who_wait_and_closes_the_others(void)
{
    begin(NULL);
    struct client *waits = dial(0);
    struct client *idle = dial(1);
    struct client *half = dial(2);
    synced = false;
    send_text(waits, ROWS TWO ROWS TWO);
    send_text(half, ROWS "Content-Length: 10\r\n\r\n123");
    pass(100);
    CHECK(fake.count == 1);
    tn_http_server_stop(world.server);
    pass(100);
    CHECK(!tn_http_server_stopped(world.server) && tn_http_server_open_count(world.server) == 1);
    hear_end(idle);
    hear_end(half);
    synced = true;
    hear(waits, 200, "\"rows\":2");
    CHECK(strstr(answer.head, "Connection: close"));
    hear_end(waits);
    hang_up(waits);
    hang_up(idle);
    hang_up(half);
    pass(100);
    CHECK(tn_http_server_stopped(world.server) && fake.count == 1);
    CHECK(world.near->streams == 0 && world.near->under_way == 0);
    world_deinit();
}

/* A request cut after each of its bytes: all of its rows or none, and the server serves on. */
static void a_cut_at_any_byte_leaves_all_or_nothing(void)
{
    static const char text[] = ROWS "X-Sender: s\r\nX-Sequence: 1\r\n" TWO;
    for (size_t at = 0; at < sizeof text; at++) {
        world_init(seed_of_test() + at, 3, NULL);
        struct client *client = dial(0);
        send_bytes(client, (struct tn_bytes){(const unsigned char *)text, at});
        hang_up(client);
        pass(500);
        CHECK(fake.count == (at == sizeof text - 1));
        client = dial(1);
        send_text(client, text);
        hear(client, 200, at == sizeof text - 1 ? "repeated" : "\"rows\":2");
        CHECK(fake.count == 1);
        hang_up(client);
        pass(500);
        CHECK(tn_http_server_open_count(world.server) == 0 && world.near->streams == 0);
        world_deinit();
    }
}

static void nothing_is_taken_from_the_system(void)
{
    begin(NULL);
    struct client *client = dial(0);
    send_text(client, ROWS TWO);
    hear(client, 200, "rows");
    uint64_t before = malloc_calls;
    for (int i = 0; i < 20; i++) {
        send_text(client,
                  ROWS "Idempotency-Key: k\r\n" TWO "GET /metrics HTTP/1.1\r\n" HOST "\r\n");
        hear(client, 200, i == 0 ? "rows" : "repeated");
        hear(client, 200, "tarn_rows");
    }
    CHECK(malloc_calls == before);
    hang_up(client);
    world_deinit();
}

static const struct test tests[] = {
    TEST(a_body_of_rows_is_answered_when_it_is_durable),
    TEST(each_request_gets_its_status),
    TEST(a_token_is_asked_for),
    TEST(pipelined_requests_are_answered_in_order),
    TEST(whoever_expects_100_hears_it_or_the_reason),
    TEST(a_long_body_is_refused_and_the_reason_is_heard),
    TEST(no_room_is_waited_for_and_then_told),
    TEST(what_does_not_get_durable_is_no_success),
    TEST(slow_and_idle_clients_are_dropped),
    TEST(who_has_nothing_more_to_ask_is_dropped),
    TEST(a_body_may_take_a_second_for_each_kilobyte),
    TEST(slow_ones_make_room_for_others),
    TEST(too_many_connections_are_told),
    TEST(a_stop_answers_those_who_wait_and_closes_the_others),
    TEST(a_cut_at_any_byte_leaves_all_or_nothing),
    TEST(nothing_is_taken_from_the_system),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
