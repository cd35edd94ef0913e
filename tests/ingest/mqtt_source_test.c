/* mqtt_source: a broker of the test behind a network that is slow, cuts and lies, a hub of the test
 * that has no room, refuses, and loses what isn't durable, and a process that ends. Whatever
 * happens: QoS 1 at least once, QoS 2 exactly once, and no acknowledgement before its time (which
 * mqtt_broker.h checks). */
#include "ingest/mqtt_source.h"

#include <stdalign.h>

#include "check.h"
#include "given.h"
#include "ingest/mqtt_broker.h"
#include "ingest/tls_pair.h"
#include "random.h"
#include "sim/net.h"

enum {
    ENTRIES_MAX = 1 << 13,
    MEMO_MAX = 512,
    MESSAGES = 120,
    NOBODY = UINT32_MAX,
    LINES_MAX = 16,
    LINE_IN = 700,
    LINE_OUT = 3000,
    BLOCK = 512,
    SOURCES_MAX = 8,
    SOURCE_SIZE = 96 * 1024,
    LOG_SIZE = 1 << 16,
    STEPS_MAX = 400000,
};

/* ---- the hub ---- */

enum memo_kind { NO_MEMO, MEMO_OF_IDS, MEMO_OF_FILTERS };

struct entry {
    uint64_t place;
    uint32_t number; /* of the message; NOBODY: a memo alone */
    enum memo_kind has_memo;
    char memo[MEMO_MAX];
};

static struct {
    struct tn_hub hub; /* first */
    struct entry entries[ENTRIES_MAX];
    uint32_t count;
    uint32_t durable_count;
    bool refused[BROKER_MESSAGES_MAX];
    bool full;
    bool troubled;
    bool refuses_none;
    uint32_t cut; /* that were offered as their beginnings */
} hub;

static struct {
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *gateway;
    struct tn_net *far;
    uint64_t random;
    bool calm;
    bool tls;
    struct tls_pair pair; /* if there is TLS */
    struct tn_mqtt_source *source;
    uint32_t opened; /* sources since the process began */
    struct tn_mqtt_spec spec;
    uint32_t wanted; /* filters */
    uint64_t restarts;
    uint64_t stops;
    uint64_t waits;
    uint64_t connections;
    uint64_t overruns;
} world;

static struct broker broker;
static struct tn_err err;
static struct tn_log events;
static struct certificate root;
static struct certificate other_root;
static struct certificate broker_certificate;

static bool chance(uint32_t in)
{
    return random_below(&world.random, in) == 0;
}

static uint32_t number_of(struct tn_bytes payload)
{
    char text[32] = {0};
    CHECK(payload.size > 5 && payload.size < sizeof text &&
          memcmp(payload.data, "{\"n\":", 5) == 0);
    memcpy(text, payload.data, payload.size);
    return (uint32_t)strtoul(text + 5, NULL, 10);
}

/* Some are longer than the hub takes, and some longer than can be read. */
static void write_text(uint32_t n, char topic[BROKER_TEXT_SIZE], char payload[BROKER_TEXT_SIZE])
{
    static const size_t sizes[] = {0, 80, 0, BROKER_TEXT_SIZE - 1};
    (void)topic;
    size_t size = (size_t)snprintf(payload, BROKER_TEXT_SIZE, "{\"n\":%u,\"text\":\"", n);
    for (; size < sizes[n % COUNT(sizes)]; size++) {
        payload[size] = 'x';
    }
    payload[size] = 0;
}

static uint32_t number_of_cut(const struct tn_message *message)
{
    char topic[BROKER_TEXT_SIZE];
    char payload[BROKER_TEXT_SIZE];
    CHECK(message->bytes.size > 5 && message->bytes.size <= hub.hub.size_max);
    uint32_t number = (uint32_t)strtoul((const char *)message->bytes.data + 5, NULL, 10);
    write_text(number, topic, payload);
    CHECK(message->cut_size == strlen(payload) && message->cut_size > message->bytes.size);
    CHECK(memcmp(message->bytes.data, payload, message->bytes.size) == 0);
    hub.cut++;
    return number;
}

static enum memo_kind kind_of(struct tn_bytes sender)
{
    bool filters = tn_bytes_equal(sender, tn_bytes_of("mqtt-filters:gateway@broker:1883"));
    CHECK(filters || tn_bytes_equal(sender, tn_bytes_of("mqtt:gateway@broker:1883")));
    return filters ? MEMO_OF_FILTERS : MEMO_OF_IDS;
}

static void keep(struct tn_message *message, uint32_t number)
{
    CHECK(hub.count < ENTRIES_MAX);
    struct entry *entry = &hub.entries[hub.count];
    uint64_t last = hub.count > 0 ? entry[-1].place : 0;
    *entry = (struct entry){.place = last + 1 + random_below(&world.random, 3), .number = number};
    if (message->sender.size > 0) {
        CHECK(message->memo.size < MEMO_MAX && message->sender.size <= TN_SENDER_SIZE_MAX);
        entry->has_memo = kind_of(message->sender);
        if (message->memo.size > 0) {
            memcpy(entry->memo, message->memo.data, message->memo.size);
        }
    }
    hub.count++;
    message->place = entry->place;
    message->rows = number != NOBODY;
}

static bool is_refusable(uint32_t number)
{
    return number % 31 == 30;
}

static tn_rc f_offer(struct tn_hub *self, struct tn_message *message, struct tn_err *why)
{
    CHECK(self == &hub.hub && (message->table || message->sender.size > 0));
    CHECK(message->sender.size > 0 || message->memo.size == 0);
    if (hub.full) {
        return tn_err_set(why, TN_AGAIN, 0, "no room");
    }
    if (!message->table) {
        keep(message, NOBODY);
        return TN_OK;
    }
    uint32_t number = message->cut_size > 0 ? number_of_cut(message) : number_of(message->bytes);
    CHECK(strcmp(message->table, "plant.readings") == 0 && message->input == TN_INPUT_JSON);
    CHECK(tn_bytes_equal(message->topic, tn_bytes_of("plant/1/data")));
    if (is_refusable(number) && !hub.refuses_none) {
        hub.refused[number] = true;
        return tn_err_set(why, TN_INVALID, 0, "not that one");
    }
    if (hub.troubled) {
        return tn_err_set(why, TN_FULL, 0, "no space left");
    }
    keep(message, number);
    return TN_OK;
}

static tn_rc f_sender(struct tn_hub *self, struct tn_bytes name, struct tn_bytes *memo,
                      uint64_t *place)
{
    CHECK(self == &hub.hub);
    for (uint32_t i = hub.count; i-- > 0;) {
        if (hub.entries[i].has_memo == kind_of(name)) {
            *memo = tn_bytes_of(hub.entries[i].memo);
            *place = hub.entries[i].place;
            return TN_OK;
        }
    }
    return TN_ABSENT;
}

static const struct tn_hub_vtable hub_vtable = {.offer = f_offer, .sender = f_sender};

static void open_hub(void)
{
    hub.hub = (struct tn_hub){.vtable = &hub_vtable, .size_max = 64};
    hub.count = 0;
    hub.durable_count = 0;
    hub.full = false;
    hub.troubled = false;
    hub.refuses_none = false;
    hub.cut = 0;
    memset(hub.refused, 0, sizeof hub.refused);
}

static void make_durable(uint32_t count)
{
    if (count > hub.durable_count) {
        hub.durable_count = count;
        tn_hub_say_durable(&hub.hub, hub.entries[count - 1].place);
    }
}

static void step_hub(void)
{
    if (chance(world.calm ? 2 : 6)) {
        uint32_t waits = hub.count - hub.durable_count;
        make_durable(hub.durable_count + random_below(&world.random, waits + 1));
    }
    if (hub.full && (world.calm || chance(8))) {
        hub.full = false;
        tn_hub_say_room(&hub.hub);
    } else if (!world.calm && chance(15)) {
        hub.full = true;
    }
    hub.troubled = !world.calm && (hub.troubled ? !chance(20) : chance(60));
}

/* What was on its way to the disk may have got there; what is there after a crash is durable. */
static void crash_hub(void)
{
    hub.count = hub.durable_count + random_below(&world.random, hub.count - hub.durable_count + 1);
    hub.durable_count = hub.count;
    hub.hub.durable = hub.count > 0 ? hub.entries[hub.count - 1].place : 0;
    hub.hub.listeners = NULL;
    hub.full = false;
}

/* ---- what the broker may be told ---- */

static bool is_durable(uint32_t number)
{
    for (uint32_t i = 0; i < hub.durable_count; i++) {
        if (hub.entries[i].number == number) {
            return true;
        }
    }
    return hub.refused[number];
}

static bool is_forgotten(uint16_t id)
{
    char text[16];
    int size = snprintf(text, sizeof text, "%u.", id);
    for (uint32_t i = hub.durable_count; i-- > 0;) {
        if (hub.entries[i].has_memo == MEMO_OF_IDS) {
            const char *memo = hub.entries[i].memo;
            const char *at = memo;
            while (at && strncmp(at, text, (size_t)size) != 0) {
                at = strchr(at, ' ');
                at += at != NULL;
            }
            return at == NULL;
        }
    }
    return true;
}

/* ---- the broker's end of the streams ---- */

struct line {
    struct tn_stream *stream;
    struct tn_request secure;
    struct tn_request read;
    struct tn_request write;
    unsigned char in[LINE_IN];
    unsigned char out[LINE_OUT];
};

static struct {
    struct tn_listener *listener;
    struct tn_request accept;
    struct line lines[LINES_MAX];
    uint32_t next;
    struct line *current; /* NULL: nobody is connected */
} far;

static void hang_up(void)
{
    if (far.current) {
        tn_stream_close(far.current->stream, NULL);
        far.current->stream = NULL;
        far.current = NULL;
        broker_cut(&broker);
    }
}

static void read_line(struct line *line)
{
    tn_stream_read(line->stream, line->in, sizeof line->in, &line->read);
}

static void pump(void)
{
    struct line *line = far.current;
    size_t size = broker.out.size < LINE_OUT ? broker.out.size : LINE_OUT;
    if (!line || tn_request_under_way(&line->write) || size == 0) {
        return;
    }
    memcpy(line->out, broker.out.data, size);
    broker.out.size -= size;
    memmove(broker.out.data, broker.out.data + size, broker.out.size);
    tn_stream_write(line->stream, (struct tn_bytes){line->out, size}, &line->write);
}

static void on_line_read(struct tn_request *request)
{
    struct line *line = request->user;
    if (line != far.current) {
        return;
    }
    if (request->rc || request->moved == 0) {
        hang_up();
        return;
    }
    tn_buf_append(&broker.in, request->data, request->moved);
    CHECK(!broker.in.overflow);
    broker_read(&broker);
    pump();
    read_line(line);
}

static void on_line_written(struct tn_request *request)
{
    if (request->user == far.current && request->rc) {
        hang_up();
    }
}

/* A client that comes again has its old connection ended. */
static void answer(struct line *line, struct tn_stream *stream)
{
    hang_up();
    line->stream = stream;
    far.current = line;
    read_line(line);
}

static void on_line_secure(struct tn_request *request)
{
    if (request->rc == TN_OK) {
        answer(request->user, request->stream);
    }
}

static void accept_line(void);

static void on_accept(struct tn_request *request)
{
    if (request->rc == TN_CANCELED) {
        return;
    }
    CHECK_OK(request->rc, request->err);
    struct line *line = &far.lines[far.next++ % LINES_MAX];
    CHECK(line != far.current);
    CHECK(!tn_request_under_way(&line->read) && !tn_request_under_way(&line->write));
    CHECK(!tn_request_under_way(&line->secure));
    line->read = (struct tn_request){.done = on_line_read, .user = line};
    line->write = (struct tn_request){.done = on_line_written, .user = line};
    line->secure = (struct tn_request){.done = on_line_secure, .user = line, .timeout_ms = 2000};
    if (world.tls) {
        tn_tls_open(world.pair.server, NULL, request->stream, NULL, &line->secure);
    } else {
        answer(line, request->stream);
    }
    accept_line();
}

static void accept_line(void)
{
    far.accept = (struct tn_request){.done = on_accept};
    tn_net_accept(far.listener, &far.accept);
}

static void step_broker(void)
{
    for (uint32_t i = random_below(&world.random, 3); i > 0; i--) {
        broker_send_next(&broker);
    }
    pump();
    if (!world.calm && chance(400)) {
        hang_up();
        if (chance(3)) {
            broker_forget_session(&broker);
        }
    }
}

/* ---- the process ---- */

/* What a configuration may ask for; what comes is all "plant/1/data". */
enum { FILTERS = 3 };
static const char *const all_filters[][FILTERS] = {
    {"plant/+/alarm", "plant/+/data", NULL},
    {"plant/+/data", "other/#", "new"},
    {"plant/#", NULL, NULL},
    {"plant/+/data", NULL, NULL},
};
static struct tn_mqtt_wish filters[FILTERS];
static struct tn_mqtt_route routes[FILTERS];

static void want_filters(uint32_t i)
{
    uint32_t count = 0;
    for (; count < FILTERS && all_filters[i][count]; count++) {
        const char *filter = all_filters[i][count];
        bool data = strcmp(filter, "plant/+/data") == 0 || strcmp(filter, "plant/#") == 0;
        filters[count] = (struct tn_mqtt_wish){.filter = tn_bytes_of(filter), .qos = 2};
        routes[count] = (struct tn_mqtt_route){.table = data ? "plant.readings" : "plant.other",
                                               .input = data ? TN_INPUT_JSON : TN_INPUT_LINE};
    }
    world.spec.filters = filters;
    world.spec.filter_count = count;
    world.wanted = i;
}

/* The broker has these filters and no others. */
static void check_filters(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world.spec.filter_count; i++) {
        const char *filter = all_filters[world.wanted][i];
        CHECK(strcmp(broker_filter(&broker, filter), filter) == 0);
    }
    for (int i = 0; i < BROKER_FILTERS_MAX; i++) {
        count += broker.filters[i][0] != 0;
    }
    CHECK(count == world.spec.filter_count);
}

static struct tn_mqtt_source_spec source_spec(void)
{
    return (struct tn_mqtt_source_spec){.name = "mqtt.plant",
                                        .net = world.gateway,
                                        .hub = &hub.hub,
                                        .log = &events,
                                        .broker = {"broker", 1883},
                                        .tls = world.tls ? world.pair.client : NULL,
                                        .mqtt = world.spec,
                                        .routes = routes};
}

static void open_source(void)
{
    static alignas(16) unsigned char memory[SOURCES_MAX][SOURCE_SIZE];
    struct tn_arena arena;
    struct tn_mqtt_source_spec spec = source_spec();
    size_t size = tn_mqtt_source_memory(&spec);
    CHECK(size <= SOURCE_SIZE);
    tn_arena_init(&arena, memory[world.opened++ % SOURCES_MAX], size);
    tn_rc rc = tn_mqtt_source_open(&world.source, &spec, &arena, &err);
    CHECK_OK(rc, err);
}

static void count_source(void)
{
    struct tn_mqtt_source_status status;
    tn_mqtt_source_status(world.source, &status);
    world.waits += status.waits;
    world.connections += status.connections;
    world.overruns += status.overruns;
}

/* Somebody edits the configuration. */
static void maybe_want_others(void)
{
    if (chance(3)) {
        want_filters(random_below(&world.random, COUNT(all_filters)));
    }
}

static void crash(void)
{
    count_source();
    sim_net_kill(&world.net, world.gateway, chance(2));
    crash_hub();
    world.opened = 0;
    maybe_want_others();
    open_source();
    world.restarts++;
}

static bool is_listed(const char *filter)
{
    size_t size = strlen(filter);
    for (uint32_t i = hub.durable_count; i-- > 0;) {
        const char *line = hub.entries[i].memo;
        if (hub.entries[i].has_memo != MEMO_OF_FILTERS) {
            continue;
        }
        while (line && !(strncmp(line, filter, size) == 0 && line[size] == '\n')) {
            line = strchr(line, '\n');
            line += line != NULL;
        }
        return line != NULL;
    }
    return false;
}

/* Whatever the broker is subscribed to is known after a crash. */
static void check_lists(void)
{
    for (int i = 0; i < BROKER_FILTERS_MAX; i++) {
        CHECK(broker.filters[i][0] == 0 || is_listed(broker.filters[i]));
    }
}

/* Without the hub: nothing gets durable, and no room comes. */
static void turn_broker(void)
{
    step_broker();
    (void)sim_net_turn(&world.net);
}

static void turn(void)
{
    step_hub();
    turn_broker();
    check_lists();
}

static void stop_source(void)
{
    tn_mqtt_source_stop(world.source);
    for (uint32_t i = 0; !tn_mqtt_source_stopped(world.source); i++) {
        CHECK(i < STEPS_MAX);
        turn();
    }
}

/* The hub goes on: what it has may not be durable yet. */
static void stop_and_open(void)
{
    if (world.opened < SOURCES_MAX) {
        stop_source();
        count_source();
        maybe_want_others();
        open_source();
        world.stops++;
    }
}

static struct tn_mqtt_spec session_spec(uint64_t seed)
{
    static const enum tn_mqtt_version versions[] = {TN_MQTT_ANY, TN_MQTT_V3, TN_MQTT_V5};
    return (struct tn_mqtt_spec){.version = versions[seed % 3],
                                 .client_id = tn_bytes_of("gateway"),
                                 .session_expiry_s = UINT32_MAX,
                                 .keep_alive_s = 4,
                                 .in_flight = 4,
                                 .known_max = seed % 2 ? 6 : 20,
                                 .answer_ms_max = 2500,
                                 .wait_ms_min = 10,
                                 .wait_ms_max = 300,
                                 .input_size = seed % 5 ? 0 : TN_MQTT_INPUT_MIN};
}

static void open_world(uint64_t seed, bool tls)
{
    static alignas(16) unsigned char pool_memory[2][4 * (BLOCK + 8)];
    static struct tn_pool pools[2];
    memset(&world, 0, sizeof world);
    memset(&far, 0, sizeof far);
    world.random = seed;
    world.tls = tls;
    world.spec = session_spec(seed);
    want_filters(0);
    check_seed = seed;
    sim_clock_init(&world.clock, seed);
    sim_net_init(&world.net, &world.clock, seed);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&pools[i], pool_memory[i], sizeof pool_memory[i], BLOCK);
    }
    world.gateway = sim_net_host(&world.net, "gateway", &pools[0]);
    world.far = sim_net_host(&world.net, "broker", &pools[1]);
    open_hub();
    broker_init(&broker, MESSAGES, seed);
    broker.durable = is_durable;
    broker.forgotten = is_forgotten;
    tn_rc rc = tn_net_listen(world.far, &(struct tn_endpoint){"0.0.0.0", 1883}, LINES_MAX,
                             &far.listener, &err);
    CHECK_OK(rc, err);
    accept_line();
}

static void calm_down(void)
{
    world.calm = true;
    world.net.fault_percent = 0;
}

static void close_world(void)
{
    count_source();
    hang_up();
    tn_net_close_listener(far.listener);
    CHECK(world.gateway->streams == 0);
    while (world.gateway->under_way + world.far->under_way > 0) {
        CHECK(sim_net_turn(&world.net) >= 0);
    }
    sim_net_deinit(&world.net);
}

/* ---- what must hold ---- */

static bool all_done(void)
{
    for (uint32_t i = 0; i < broker.message_count; i++) {
        enum broker_state state = broker.messages[i].state;
        if (i >= broker.sent_count || (state != BROKER_DONE && state != BROKER_GONE)) {
            return false;
        }
    }
    return true;
}

static uint32_t times_kept(uint32_t number)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < hub.count; i++) {
        times += hub.entries[i].number == number;
    }
    return times;
}

static void check_rows(void)
{
    for (uint32_t i = 0; i < broker.message_count; i++) {
        const struct broker_message *message = &broker.messages[i];
        uint32_t times = times_kept(i);
        if (is_refusable(i)) {
            CHECK(times == 0);
        } else if (message->state == BROKER_DONE && message->qos == 1) {
            CHECK(times >= 1);
        } else if (message->state == BROKER_DONE && message->qos == 2) {
            CHECK(times == 1);
        } else {
            CHECK(times <= 1 || message->qos == 1);
        }
    }
}

static struct tn_mqtt_source_status status_now(void)
{
    struct tn_mqtt_source_status status;
    tn_mqtt_source_status(world.source, &status);
    return status;
}

/* All filters are asked for and left. */
static bool is_ready(void)
{
    return status_now().state == TN_MQTT_READY && broker.connected;
}

static void run_until(bool (*condition)(void))
{
    for (uint32_t i = 0; !condition(); i++) {
        CHECK(i < STEPS_MAX);
        turn();
    }
}

/* What may happen besides: one in so many turns, 0: it doesn't. */
struct troubles {
    uint32_t steps; /* until it is calm */
    uint32_t crashes;
    uint32_t stops;
};

static void run_troubled(struct troubles of)
{
    for (uint32_t i = 0; !all_done(); i++) {
        CHECK(i < STEPS_MAX);
        turn();
        if (i == of.steps) {
            calm_down();
        } else if (!world.calm && of.crashes > 0 && chance(of.crashes)) {
            crash();
        } else if (!world.calm && of.stops > 0 && chance(of.stops)) {
            stop_and_open();
        }
    }
    calm_down();
}

static void run_world(uint64_t seed)
{
    open_world(seed, false);
    world.net.fault_percent = seed % 4 ? 50 : 0;
    world.net.fault_at_max = seed % 7 ? 1500 : 50;
    world.net.fragment_max = seed % 3 ? 100 : 3;
    world.net.bytes_a_ms = seed % 2 ? 0 : 5;
    open_source();
    run_troubled((struct troubles){.steps = 4000, .crashes = 300, .stops = 300});
    run_until(is_ready);
    check_filters();
    stop_source();
    check_rows();
    close_world();
}

static void each_message_arrives_as_often_as_its_qos_says(void)
{
    uint64_t seed = given_number("SEED", 1);
    double end = given_until(10, 4);
    uint64_t sums[5] = {0};
    uint32_t worlds = 0;
    for (; worlds < 20 || seconds_now() < end; worlds++) {
        run_world(seed + worlds);
        const uint64_t of[5] = {world.restarts, world.stops, world.waits, world.connections,
                                world.overruns};
        for (size_t i = 0; i < COUNT(sums); i++) {
            sums[i] += of[i];
        }
    }
    (void)printf("%u brokers, %llu crashes, %llu stops, %llu waits, %llu connections, %llu "
                 "overruns\n",
                 worlds, (unsigned long long)sums[0], (unsigned long long)sums[1],
                 (unsigned long long)sums[2], (unsigned long long)sums[3],
                 (unsigned long long)sums[4]);
    CHECK(sums[0] > 0 && sums[1] > 0 && sums[2] > 0 && sums[3] > worlds);
}

static void the_same_holds_over_tls(void)
{
    uint64_t seed = given_number("SEED", 1);
    double end = given_until(10, 8);
    for (uint32_t i = 0; i < 3 || seconds_now() < end; i++) {
        open_world(seed + i, true);
        world.pair = tls_pair_make(&world.clock.clock, &root, &broker_certificate);
        open_source();
        world.net.fault_percent = 20;
        world.net.fault_at_max = 6000;
        run_troubled((struct troubles){.steps = 3000, .stops = 700});
        stop_source();
        check_rows();
        close_world();
        tls_pair_free(world.pair);
    }
}

/* ---- one thing at a time ---- */

static bool logged(const char *text)
{
    static char lines[LOG_SIZE + 1];
    struct tn_buf out;
    tn_buf_init(&out, lines, LOG_SIZE);
    (void)tn_log_read(&events, 0, &out);
    lines[out.size] = 0;
    return strstr(lines, text) != NULL;
}

static bool has_failed(void)
{
    return status_now().failures > 0;
}

static void an_untrusted_certificate_is_said(void)
{
    open_world(3, true);
    calm_down();
    world.pair = tls_pair_make(&world.clock.clock, &other_root, &broker_certificate);
    open_source();
    run_until(has_failed);
    struct tn_mqtt_source_status status = status_now();
    CHECK(status.err.code == TN_INVALID && strstr(status.err.text, "mqtt.plant: ") != NULL);
    CHECK(status.connections == 0 && logged("error mqtt"));
    stop_source();
    close_world();
    tls_pair_free(world.pair);
}

static bool some_kept(void)
{
    return hub.count > 3;
}

/* An hour without room: the broker hears pings, and sends nothing twice. */
static void a_full_hub_keeps_the_connection(void)
{
    open_world(5, false);
    world.calm = true;
    open_source();
    run_until(some_kept);
    int64_t end = world.clock.passed_ns + 3600LL * 1000000000;
    hub.full = true;
    make_durable(hub.count); /* so the broker sends more */
    uint32_t kept = hub.count;
    int64_t heard = world.clock.passed_ns;
    uint64_t bytes = world.gateway->counts.bytes_written;
    while (world.clock.passed_ns < end) {
        hub.full = true;
        turn_broker();
        CHECK(hub.count == kept);
        if (world.gateway->counts.bytes_written > bytes) {
            bytes = world.gateway->counts.bytes_written;
            heard = world.clock.passed_ns;
        }
        CHECK(world.clock.passed_ns - heard < 6 * 1000000000LL); /* 1.5 keep-alives */
    }
    CHECK(status_now().connections == 1 && status_now().failures == 0 && status_now().blocked);
    hub.full = false;
    tn_hub_say_room(&hub.hub);
    CHECK(hub.count > kept);
    run_until(all_done);
    CHECK(status_now().connections == 1);
    stop_source();
    check_rows();
    close_world();
}

static bool has_many_undurable(void)
{
    return hub.count - hub.durable_count >= 3;
}

/* A world in which messages came, and only the filters are durable. */
static void open_undurable(void)
{
    open_world(9, false);
    world.calm = true;
    open_source();
    make_durable(hub.count);
    for (uint32_t i = 0; !has_many_undurable(); i++) {
        CHECK(i < STEPS_MAX);
        turn_broker();
    }
}

static void nothing_is_acknowledged_before_it_is_durable(void)
{
    open_undurable();
    for (uint32_t i = 0; i < 2000; i++) {
        turn_broker();
    }
    for (uint32_t i = 0; i < broker.sent_count; i++) {
        CHECK(broker.messages[i].qos == 0 || broker.messages[i].state == BROKER_FLYING);
    }
    run_until(all_done);
    stop_source();
    check_rows();
    close_world();
}

/* More places than the source can tell apart: they are acknowledged together, and none is left. */
static void many_places_at_once_are_acknowledged(void)
{
    enum { COUNT_OF_ALL = 100 };
    open_world(4, false);
    world.calm = true;
    for (uint32_t i = 0; i < COUNT_OF_ALL; i++) {
        broker.messages[i].qos = i == COUNT_OF_ALL - 1;
    }
    broker.message_count = COUNT_OF_ALL;
    hub.refuses_none = true;
    open_source();
    make_durable(hub.count); /* the filters */
    for (uint32_t i = 0; times_kept(COUNT_OF_ALL - 1) == 0; i++) {
        CHECK(i < STEPS_MAX);
        turn_broker();
    }
    make_durable(hub.count - 1);
    CHECK(!all_done());
    make_durable(hub.count);
    for (uint32_t i = 0; !all_done(); i++) {
        CHECK(i < STEPS_MAX && hub.durable_count == hub.count);
        (void)sim_net_turn(&world.net);
    }
    stop_source();
    close_world();
}

/* None is acknowledged and nowhere, whatever its QoS. */
static void a_payload_that_is_too_long_is_a_letter_with_its_size(void)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        open_world(seed + 5 * given_number("SEED", 1), false);
        broker.text = write_text;
        hub.refuses_none = true;
        world.net.fragment_max = seed % 2 ? 100 : 3;
        open_source();
        run_troubled((struct troubles){.steps = 4000, .crashes = 300});
        stop_source();
        for (uint32_t i = 0; i < broker.message_count; i++) {
            uint32_t times = times_kept(i);
            bool done = broker.messages[i].state == BROKER_DONE;
            CHECK(!done || broker.messages[i].qos == 0 || times >= 1);
            CHECK(broker.messages[i].qos != 2 || times <= 1);
        }
        CHECK(hub.cut > 10);
        close_world();
    }
}

static void a_memo_that_is_not_durable_is_waited_for(void)
{
    open_undurable();
    tn_mqtt_source_stop(world.source);
    while (!tn_mqtt_source_stopped(world.source)) {
        (void)sim_net_turn(&world.net);
    }
    open_source();
    for (uint32_t i = 0; i < 1000; i++) {
        (void)sim_net_turn(&world.net);
    }
    CHECK(world.gateway->streams == 0 && world.gateway->under_way == 0);
    run_until(all_done);
    stop_source();
    check_rows();
    close_world();
}

static void a_spec_that_cannot_work_is_refused(void)
{
    static alignas(16) unsigned char memory[SOURCE_SIZE];
    static char long_id[TN_SENDER_SIZE_MAX + 1];
    struct tn_arena arena;
    struct tn_mqtt_source *source = NULL;
    open_world(1, false);
    struct tn_mqtt_source_spec spec = source_spec();
    spec.mqtt.known_max = TN_MQTT_SOURCE_KNOWN_MAX + 1;
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_mqtt_source_open(&source, &spec, &arena, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "mqtt.plant: known_max 513") != NULL);
    spec = source_spec();
    memset(long_id, 'x', TN_SENDER_SIZE_MAX);
    spec.mqtt.client_id = tn_bytes_of(long_id);
    rc = tn_mqtt_source_open(&source, &spec, &arena, &err);
    CHECK(rc == TN_INVALID && arena.used == 0);
    spec = source_spec();
    const struct tn_mqtt_wish both[] = {filters[0], {.filter = tn_bytes_of("plant/1/#")}};
    spec.mqtt.filters = both;
    spec.mqtt.filter_count = COUNT(both);
    rc = tn_mqtt_source_open(&source, &spec, &arena, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "'plant/+/alarm' and 'plant/1/#' overlap") != NULL);
    spec = source_spec();
    for (size_t size = 0; size < tn_mqtt_source_memory(&spec) * 3 / 4; size += 997) {
        tn_arena_init(&arena, memory, size);
        rc = tn_mqtt_source_open(&source, &spec, &arena, &err);
        CHECK(rc == TN_AGAIN && arena.used == 0);
    }
    CHECK(hub.hub.listeners == NULL);
    sim_net_kill(&world.net, world.far, true);
    sim_net_deinit(&world.net);
}

static void set_up(void)
{
    static unsigned char log_memory[LOG_SIZE];
    tls_pair_boot();
    tn_log_init(&events, log_memory, sizeof log_memory, NULL, NULL);
    certificate_make(&root, &(struct certificate_spec){.name = "CN=root", .authority = true}, 1);
    certificate_make(&other_root, &(struct certificate_spec){.name = "CN=other", .authority = true},
                     2);
    certificate_make(
        &broker_certificate,
        &(struct certificate_spec){.name = "CN=broker", .dns = "broker", .issuer = &root}, 3);
}

static const struct test tests[] = {
    TEST(a_spec_that_cannot_work_is_refused),
    TEST(nothing_is_acknowledged_before_it_is_durable),
    TEST(many_places_at_once_are_acknowledged),
    TEST(a_payload_that_is_too_long_is_a_letter_with_its_size),
    TEST(a_memo_that_is_not_durable_is_waited_for),
    TEST(a_full_hub_keeps_the_connection),
    TEST(an_untrusted_certificate_is_said),
    TEST(each_message_arrives_as_often_as_its_qos_says),
    TEST(the_same_holds_over_tls),
};

int main(int argc, char **argv)
{
    set_up();
    return run_tests(argc, argv, tests, COUNT(tests));
}
