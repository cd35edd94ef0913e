/* socket_source: clients of the test behind a network that is slow, cuts and lies, a hub of the
 * test that has no room, refuses, and loses what isn't durable, and a process that ends. Whatever
 * happens: lines of a sender with a name are there exactly once and in their order, those of others
 * at least once, and none is acknowledged before it is durable. */
#include "ingest/socket_source.h"

#include "ingest/socket_world.h"
#include "ingest/tls_pair.h"

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

static struct tls_pair pair;
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
        tn_tls_open(pair.client, NULL, c->below, "gateway", &c->connect);
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
    double end = given_until(10, 4);
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

static void the_same_holds_over_tls(void)
{
    uint64_t seed = given_number("SEED", 1);
    double end = given_until(10, 8);
    for (uint32_t i = 0; i < 2 || seconds_now() < end; i++) {
        open_world(seed + i);
        open_clients(seed + i);
        if (world.net.fragment_max < TLS_FRAGMENT) { /* nobody is patient enough for that */
            world.net.fragment_max = TLS_FRAGMENT;
        }
        pair = tls_pair_make(&world.clock.clock, &root, &server_certificate);
        world.spec.tls = pair.server;
        run_world();
        tls_pair_free(pair);
    }
}

static void set_up(void)
{
    tls_pair_boot();
    certificate_make(&root, &(struct certificate_spec){.name = "CN=root", .authority = true}, 1);
    certificate_make(
        &server_certificate,
        &(struct certificate_spec){.name = "CN=gateway", .dns = "gateway", .issuer = &root}, 3);
}

static const struct test tests[] = {
    TEST(each_line_arrives_as_often_as_it_should),
    TEST(the_same_holds_over_tls),
};

int main(int argc, char **argv)
{
    set_up();
    return run_tests(argc, argv, tests, COUNT(tests));
}
