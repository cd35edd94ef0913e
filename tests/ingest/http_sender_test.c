/* Senders that number their requests, that give them keys, and that do neither, over a network that
 * is slow, cuts and loses, to a server whose process ends now and then and whose hub has no room
 * now and then. Whatever happens: each 200 is durable when it is heard, a number and a key are in
 * exactly once, numbers in their order, and a row of nobody is in at least once. */
#include "ingest/http_world.h"

enum {
    SENDERS = 4,
    REQUESTS = 40,
    WINDOW = 3, /* requests under way: fewer than the keys that a memo holds */
    OUT_SIZE = 4096,
    HEARD_MAX = 8192,
    TURNS_MAX = 400000,
    TIMEOUT_MS = 4000,
    WORLDS = 60,
};

enum identity { NUMBERS, KEYS, NOBODY };

struct sender {
    uint32_t id;
    enum identity identity;
    struct tn_stream *stream;
    struct tn_request connect;
    struct tn_request read;
    struct tn_request write;
    bool connects;
    bool reads;
    bool writes;
    uint32_t answered; /* requests 1 .. answered had their 200 */
    uint32_t asked;    /* on this connection, the last one */
    char heard[HEARD_MAX];
    size_t heard_size;
    char out[OUT_SIZE];
};

static struct sender senders[SENDERS];
static uint64_t repeated;
static uint64_t restarts;
static uint64_t later; /* 503 and other answers that aren't 200 */
static uint64_t cuts;

/* ---- what must hold ---- */

static uint32_t copies_of(const struct sender *sender, uint32_t number, bool durable)
{
    char wanted[48];
    uint32_t count = 0;
    (void)snprintf(wanted, sizeof wanted, "{\"s\":%u,\"n\":%u}\n", sender->id, number);
    for (uint32_t i = 0; i < fake.count; i++) {
        const struct hub_entry *entry = &fake.entries[i];
        if (strncmp(entry->begin, wanted, strlen(wanted)) == 0 &&
            (!durable || fake_is_durable(entry))) {
            CHECK(entry->rows == 1 + number % 3); /* all of the body */
            count++;
        }
    }
    return count;
}

static void check_sender(const struct sender *sender)
{
    for (uint32_t n = 1; n <= REQUESTS; n++) {
        uint32_t count = copies_of(sender, n, true);
        CHECK(count >= 1 && (sender->identity == NOBODY || count == 1));
    }
}

static void check_order(const struct sender *sender)
{
    char begin[32];
    unsigned long last = 0;
    (void)snprintf(begin, sizeof begin, "{\"s\":%u,\"n\":", sender->id);
    for (uint32_t i = 0; i < fake.count; i++) {
        if (strncmp(fake.entries[i].begin, begin, strlen(begin)) == 0) {
            unsigned long number = strtoul(fake.entries[i].begin + strlen(begin), NULL, 10);
            CHECK(number == last + 1);
            last = number;
        }
    }
}

/* ---- a sender ---- */

static void go_on(struct sender *sender);

static void give_up(struct sender *sender)
{
    if (sender->stream) {
        struct tn_stream *stream = sender->stream;
        sender->stream = NULL;
        cuts++;
        tn_stream_close(stream, NULL);
    }
}

static void put_body(struct tn_buf *out, const struct sender *sender, uint32_t number)
{
    for (uint32_t i = 0; i < 1 + number % 3; i++) {
        tn_buf_format(out, "{\"s\":%u,\"n\":%u}\n", sender->id, number);
    }
}

static void put_request(struct tn_buf *out, const struct sender *sender, uint32_t number)
{
    unsigned char memory[128];
    struct tn_buf body;
    tn_buf_init(&body, memory, sizeof memory);
    put_body(&body, sender, number);
    tn_buf_text(out, "POST /tables/plant.readings/rows HTTP/1.1\r\nHost: gateway\r\n");
    if (sender->identity == NUMBERS) {
        tn_buf_format(out, "X-Sender: s%u\r\nX-Sequence: %u\r\n", sender->id, number);
    } else if (sender->identity == KEYS) {
        tn_buf_format(out, "Idempotency-Key: %u-%u\r\n", sender->id, number);
    }
    if (chance(2)) {
        tn_buf_format(out, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", body.size);
        tn_buf_append(out, body.data, body.size);
        tn_buf_text(out, "\r\n0\r\n\r\n");
    } else {
        tn_buf_format(out, "Content-Length: %zu\r\n\r\n", body.size);
        tn_buf_append(out, body.data, body.size);
    }
}

static void on_written(struct tn_request *request)
{
    struct sender *sender = request->user;
    sender->writes = false;
    if (request->rc != TN_OK) {
        give_up(sender);
    }
}

static void ask(struct sender *sender)
{
    struct tn_buf out;
    tn_buf_init(&out, sender->out, sizeof sender->out);
    while (sender->asked < REQUESTS && sender->asked < sender->answered + WINDOW) {
        put_request(&out, sender, ++sender->asked);
    }
    CHECK(!out.overflow);
    if (out.size > 0) {
        sender->writes = true;
        sender->write =
            (struct tn_request){.done = on_written, .user = sender, .timeout_ms = TIMEOUT_MS};
        tn_stream_write(sender->stream, tn_buf_bytes(&out), &sender->write);
    }
}

/* False: the connection is of no more use. */
static bool on_answer(struct sender *sender, const struct answer *answer)
{
    if (answer->status != 200) {
        later++;
        return false; /* and all that was asked is asked again */
    }
    uint32_t number = ++sender->answered;
    CHECK(number <= sender->asked);
    CHECK(copies_of(sender, number, true) >= 1);
    repeated += strstr(answer->body, "repeated") != NULL;
    return strstr(answer->head, "close") == NULL;
}

static void hear(struct sender *sender)
{
    static struct answer answer;
    while (answer_read(sender->heard, sender->heard_size, false, &answer)) {
        sender->heard_size -= answer.size;
        memmove(sender->heard, sender->heard + answer.size, sender->heard_size);
        if (!on_answer(sender, &answer)) {
            give_up(sender);
            return;
        }
    }
}

static void on_read(struct tn_request *request)
{
    struct sender *sender = request->user;
    sender->reads = false;
    if (request->rc != TN_OK || request->moved == 0) {
        give_up(sender);
        return;
    }
    sender->heard_size += request->moved;
    hear(sender);
}

static void on_connected(struct tn_request *request)
{
    struct sender *sender = request->user;
    sender->connects = false;
    sender->stream = request->stream;
    sender->asked = sender->answered;
    sender->heard_size = 0;
}

static void go_on(struct sender *sender)
{
    bool over = sender->answered == REQUESTS;
    if (over || (sender->stream && chance(400))) {
        give_up(sender);
    }
    if (over || sender->connects || (!sender->stream && (sender->reads || sender->writes))) {
        return;
    }
    struct tn_request request = {.user = sender, .timeout_ms = TIMEOUT_MS};
    if (!sender->stream) {
        struct tn_endpoint to = {"gateway", WORLD_PORT};
        sender->connects = true;
        sender->connect = request;
        sender->connect.done = on_connected;
        tn_net_connect(world.far, &to, &sender->connect);
        return;
    }
    if (!sender->reads) {
        sender->reads = true;
        sender->read = request;
        sender->read.done = on_read;
        tn_stream_read(sender->stream, sender->heard + sender->heard_size,
                       HEARD_MAX - sender->heard_size, &sender->read);
    }
    if (!sender->writes) {
        ask(sender);
    }
}

/* ---- worlds ---- */

static void trouble(void)
{
    if (chance(50)) {
        fake.full = true;
    }
    if (fake.full && chance(40)) {
        fake_make_room();
    }
    fake.troubled = chance(300);
    if (chance(8)) {
        uint32_t behind = random_below(&world.random, 4);
        fake_sync(fake.count > behind ? fake.count - behind : 0);
    }
    if (chance(2000)) {
        restarts++;
        world_restart();
    }
}

static bool is_over(void)
{
    for (uint32_t i = 0; i < SENDERS; i++) {
        const struct sender *s = &senders[i];
        if (s->answered < REQUESTS || s->stream || s->reads || s->writes || s->connects) {
            return false;
        }
    }
    return true;
}

static void run_world(uint64_t seed)
{
    world_init(seed, (uint32_t)(seed % 3) * 20, NULL);
    world.net.fault_percent = (uint32_t)(seed % 4) * 15;
    world.net.fault_at_max = 3000;
    memset(senders, 0, sizeof senders);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i].id = i + 1;
        senders[i].identity = (enum identity)(i % 3);
    }
    for (int turns = 0; !is_over(); turns++) {
        CHECK(turns < TURNS_MAX);
        for (uint32_t i = 0; i < SENDERS; i++) {
            go_on(&senders[i]);
        }
        world_run();
        trouble();
        world_turn();
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        check_sender(&senders[i]);
        if (senders[i].identity == NUMBERS) {
            check_order(&senders[i]);
        }
    }
    world_deinit();
}

static void every_200_is_durable_and_numbers_and_keys_are_in_once(void)
{
    uint64_t seed = seed_of_test();
    for (uint64_t i = 0; i < WORLDS; i++) {
        run_world(seed + i);
    }
    CHECK(repeated > 0 && restarts > 0 && later > 0 && cuts > 0);
}

static const struct test tests[] = {
    TEST(every_200_is_durable_and_numbers_and_keys_are_in_once),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
