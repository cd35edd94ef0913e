/* Who is told of uploads: a broker and a server of the test behind a network that is slow, cuts and
 * lies, a disk that loses what wasn't synced, and a process that ends at any time. Whatever
 * happens, each snapshot that came to a lake is told of, a table's in their order, and no upload
 * waits. */
#include "app/tell.h"

#include "check.h"
#include "commit/publish.h"
#include "given.h"
#include "random.h"
#include "script/given_script.h"
#include "sim/disk.h"
#include "sim/net.h"

enum {
    LAKES = 2,
    TABLES = 2,
    MIRRORS = LAKES * TABLES,
    PEERS = 48,
    PEER_SIZE = 12 * 1024,
    BLOCK = 512,
    ARENA_SIZE = 512 * 1024,
    LOG_SIZE = 1 << 16,
    STEPS = 3000,
    CALM_STEPS = 200000,
    PORT_MQTT = 1883,
    PORT_HTTP = 8080,
};

static const char *const tables[TABLES] = {"plant.a", "plant.b"};

/* ---- the far end ---- */

struct peer {
    struct tn_stream *stream; /* NULL: free */
    struct tn_request read;
    struct tn_request write;
    bool mqtt;
    bool known; /* CONNECT came */
    enum tn_mqtt_version version;
    bool hangs_up; /* behind what is written */
    struct tn_buf in;
    struct tn_buf out;
    unsigned char in_memory[PEER_SIZE];
    unsigned char out_memory[256];
};

enum mood { TAKES, ERRS, REFUSES, CLOSES, SILENT, BABBLES, MOODS };

static struct {
    struct tn_listener *listeners[2];
    struct tn_request accepts[2];
    struct peer peers[PEERS];
    bool old;     /* the broker knows no 5.0 */
    uint8_t door; /* the reason in a CONNACK; 0: by mood */
    bool calm;    /* all is taken */
    uint64_t random;
    int64_t through[LAKES][TABLES]; /* that was heard of */
    uint32_t heard[LAKES];
    uint32_t passed[LAKES]; /* messages that were refused for good */
    char topic[64];
    char last[256];
    char head[1024];
    enum mood only; /* MOODS: drawn */
    bool free;      /* payloads are anything */
    uint32_t patience_ms;
} far;

static struct {
    struct sim_clock clock;
    struct sim_net net;
    struct tn_net *gateway;
    struct tn_net *other;
    struct sim_disk disk;
    uint64_t random;
    struct tn_exec_inline exec;
    struct tn_env env;
    struct tn_worker worker;
    struct tn_config config;
    struct tn_config_lake lakes_config[LAKES];
    struct tn_keeper keepers[TABLES];
    struct tn_lakes lakes;
    struct tn_lakes_lake lake[LAKES];
    struct tn_lakes_mirror mirrors[MIRRORS];
    struct tn_tell tell;
    struct tn_log log;
    struct tn_arena arena;
    struct tn_arena scratch;
    bool open;
} w;

static bool chance(uint32_t in)
{
    return random_below(&far.random, in) == 0;
}

static enum mood mood(void)
{
    if (far.only != MOODS) {
        return far.only;
    }
    return far.calm || chance(2) ? TAKES : (enum mood)random_below(&far.random, MOODS);
}

/* {"lake":"mq","table":"plant.a","first":3,"snapshot":5,... */
static void hear(struct tn_bytes payload, bool taken)
{
    char text[256] = {0};
    char lake[8];
    char table[16];
    int64_t first;
    int64_t snapshot;
    CHECK(payload.size < sizeof text);
    memcpy(text, payload.data, payload.size);
    memcpy(far.last, text, sizeof far.last);
    if (far.free) {
        far.heard[0] += taken;
        far.passed[0] += !taken;
        return;
    }
    int got = sscanf(text,
                     "{\"lake\":\"%7[a-z]\",\"table\":\"%15[a-z.]\",\"first\":%" SCNd64
                     ",\"snapshot\":%" SCNd64,
                     lake, table, &first, &snapshot);
    CHECK(got == 4);
    int l = strcmp(lake, w.lakes_config[1].name) == 0;
    int t = strcmp(table, tables[1]) == 0;
    CHECK(strcmp(lake, w.lakes_config[l].name) == 0 && strcmp(table, tables[t]) == 0);
    CHECK(first <= far.through[l][t] + 1 && snapshot >= first); /* nothing between is left out */
    CHECK(snapshot <= w.mirrors[l * TABLES + t].have_id);
    if (snapshot > far.through[l][t]) {
        far.through[l][t] = snapshot;
    }
    far.heard[l] += taken;
    far.passed[l] += !taken;
}

static void hang_up(struct peer *p)
{
    tn_stream_close(p->stream, NULL);
    p->stream = NULL;
}

static void reply(struct peer *p)
{
    if (p->stream && !tn_request_under_way(&p->write) && p->out.size > 0) {
        tn_stream_write(p->stream, tn_buf_bytes(&p->out), &p->write);
    }
}

static void on_written(struct tn_request *request)
{
    struct peer *p = request->user;
    if (!p->stream || request->rc == TN_CANCELED) {
        return;
    }
    p->out.size = 0;
    if (request->rc || p->hangs_up) {
        hang_up(p);
    }
}

static void send_packet(struct peer *p, const struct tn_mqtt_packet *packet)
{
    struct tn_err err;
    tn_rc rc = tn_mqtt_encode(p->version, packet, &p->out, &err);
    CHECK_OK(rc, err);
}

static void babble(struct peer *p)
{
    for (int i = 0; i < 40; i++) {
        tn_buf_byte(&p->out, (unsigned char)random_below(&far.random, 256));
    }
    p->hangs_up = true;
}

static void take_connect(struct peer *p, const struct tn_mqtt_packet *packet)
{
    enum mood m = mood();
    struct tn_mqtt_packet answer = {.type = TN_MQTT_CONNACK};
    CHECK(packet->connect.clean && packet->connect.client_id.size > 0);
    p->known = true;
    p->version = packet->connect.version;
    if (far.old && p->version == TN_MQTT_V5) {
        hang_up(p);
        return;
    }
    if (m == CLOSES) {
        hang_up(p);
    } else if (m == BABBLES) {
        babble(p);
    } else if (m != SILENT) {
        answer.reason = far.door > 0 ? far.door : m == ERRS ? 0x87 : 0;
        send_packet(p, &answer);
        p->hangs_up = answer.reason > 0;
    }
}

static void take_publish(struct peer *p, const struct tn_mqtt_packet *packet)
{
    enum mood m = mood();
    bool says_why = p->version == TN_MQTT_V5;
    struct tn_mqtt_packet answer = {.type = TN_MQTT_PUBACK, .id = packet->id};
    CHECK(packet->qos == 1);
    (void)snprintf(far.topic, sizeof far.topic, "%.*s", (int)packet->topic.size,
                   (const char *)packet->topic.data);
    if (m == BABBLES) {
        babble(p);
    } else if (m == CLOSES) {
        hear(packet->payload, true); /* it has it, and nobody knows */
        hang_up(p);
    } else if (m == SILENT) {
        return;
    } else if (m == REFUSES && says_why) {
        answer.reason = 0x99;
        hear(packet->payload, false);
        send_packet(p, &answer);
    } else if (m == ERRS && says_why) {
        answer.reason = 0x97;
        send_packet(p, &answer);
    } else {
        hear(packet->payload, true);
        send_packet(p, &answer);
    }
}

static void read_packets(struct peer *p)
{
    struct tn_mqtt_packet packet;
    struct tn_err err;
    struct tn_bytes input = tn_buf_bytes(&p->in);
    while (p->stream &&
           tn_mqtt_decode(p->known ? p->version : TN_MQTT_V5, input, &packet, &err) == TN_OK) {
        if (packet.type == TN_MQTT_CONNECT) {
            take_connect(p, &packet);
        } else if (packet.type == TN_MQTT_PUBLISH) {
            take_publish(p, &packet);
        } else {
            CHECK(packet.type == TN_MQTT_DISCONNECT);
        }
        input.data += packet.size;
        input.size -= packet.size;
    }
    memmove(p->in.data, input.data, input.size);
    p->in.size = input.size;
}

static void answer_post(struct peer *p, struct tn_bytes body)
{
    static const int fails[] = {500, 503, 404, 401, 301};
    static const int refusals[] = {400, 413, 415, 422};
    enum mood m = mood();
    int status = m == ERRS      ? fails[random_below(&far.random, COUNT(fails))]
                 : m == REFUSES ? refusals[random_below(&far.random, COUNT(refusals))]
                                : 204;
    if (m == SILENT) {
        return;
    }
    if (m == BABBLES) {
        babble(p);
        return;
    }
    if (m != ERRS) {
        hear(body, m != REFUSES);
    }
    if (m == CLOSES) {
        hang_up(p);
        return;
    }
    tn_buf_format(&p->out, "HTTP/1.1 %d x\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n", status);
    p->hangs_up = true;
}

static void read_post(struct peer *p)
{
    tn_buf_byte(&p->in, 0);
    const char *text = (const char *)p->in.data;
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strstr(text, "content-length: ");
    p->in.size--;
    if (!end || !length) {
        return;
    }
    size_t head = (size_t)(end - text) + 4;
    size_t size = (size_t)strtoul(length + 16, NULL, 10);
    if (p->in.size >= head + size) {
        CHECK(strncmp(text, "POST /hook?x=1 HTTP/1.1\r\n", 25) == 0 && p->in.size == head + size);
        (void)snprintf(far.head, sizeof far.head, "%.*s", (int)head, text);
        answer_post(p, (struct tn_bytes){p->in.data + head, size});
    }
}

static void read_peer(struct peer *p)
{
    tn_stream_read(p->stream, p->in.data + p->in.size, p->in.capacity - p->in.size - 1, &p->read);
}

static void on_read(struct tn_request *request)
{
    struct peer *p = request->user;
    if (!p->stream || request->rc == TN_CANCELED) {
        return;
    }
    if (request->rc || request->moved == 0) {
        hang_up(p);
        return;
    }
    p->in.size += request->moved;
    if (p->mqtt) {
        read_packets(p);
    } else {
        read_post(p);
    }
    reply(p);
    if (p->stream) {
        read_peer(p);
    }
}

static void accept_one(int i);

static void on_accept(struct tn_request *request)
{
    int i = request == &far.accepts[1];
    struct peer *p = far.peers;
    if (request->rc == TN_OK) {
        while (p->stream || tn_request_under_way(&p->read) || tn_request_under_way(&p->write)) {
            p++;
            CHECK(p < far.peers + PEERS);
        }
        *p = (struct peer){.stream = request->stream, .mqtt = i == 0};
        p->read = (struct tn_request){.done = on_read, .user = p, .timeout_ms = far.patience_ms};
        p->write =
            (struct tn_request){.done = on_written, .user = p, .timeout_ms = far.patience_ms};
        tn_buf_init(&p->in, p->in_memory, sizeof p->in_memory);
        tn_buf_init(&p->out, p->out_memory, sizeof p->out_memory);
        read_peer(p);
    }
    accept_one(i);
}

static void accept_one(int i)
{
    far.accepts[i] = (struct tn_request){.done = on_accept};
    tn_net_accept(far.listeners[i], &far.accepts[i]);
}

static void open_far(void)
{
    struct tn_err err;
    for (int i = 0; i < 2; i++) {
        struct tn_endpoint at = {.host = "far", .port = i ? PORT_HTTP : PORT_MQTT};
        tn_rc rc = tn_net_listen(w.other, &at, PEERS, &far.listeners[i], &err);
        CHECK_OK(rc, err);
        accept_one(i);
    }
}

/* ---- this end ---- */

static void open_lakes(void)
{
    for (int l = 0; l < LAKES; l++) {
        w.lake[l] = (struct tn_lakes_lake){.config = &w.lakes_config[l]};
        (void)snprintf(w.lake[l].consumer, sizeof w.lake[l].consumer, "tarn-lake-%d", l);
        for (int t = 0; t < TABLES; t++) {
            struct tn_lakes_mirror *m = &w.mirrors[l * TABLES + t];
            *m = (struct tn_lakes_mirror){
                .lake = &w.lake[l], .keeper = &w.keepers[t], .have_id = m->have_id};
        }
    }
    w.lakes = (struct tn_lakes){.spec = {.env = &w.env, .worker = &w.worker},
                                .lakes = w.lake,
                                .mirrors = w.mirrors,
                                .lake_count = LAKES,
                                .mirror_count = MIRRORS};
    tn_clock_watch_init(&w.lakes.watch, &w.clock.clock, 0);
}

static void open_tell(void)
{
    struct tn_err err;
    void *const contexts[TN_LANE_COUNT] = {&w.worker, &w.worker};
    static _Alignas(max_align_t) unsigned char memory[ARENA_SIZE];
    tn_exec_inline_open(&w.exec, contexts);
    w.env = (struct tn_env){.io = &w.disk.io, .clock = &w.clock.clock, .exec = &w.exec.exec};
    tn_arena_init(&w.arena, memory, sizeof memory);
    open_lakes();
    struct tn_tell_spec spec = {.config = &w.config,
                                .lakes = &w.lakes,
                                .env = &w.env,
                                .net = w.gateway,
                                .exec = &w.exec.exec,
                                .log = &w.log,
                                .arena = &w.arena,
                                .identity = "0123456789abcdef"};
    CHECK(tn_tell_memory(&w.config) <= sizeof memory);
    tn_rc rc = tn_tell_open(&w.tell, &spec, &err);
    CHECK_OK(rc, err);
    w.open = true;
}

static void begin_world(uint64_t seed)
{
    static unsigned char buffers[2][16 * BLOCK];
    static struct tn_pool pools[2];
    static unsigned char scratch[256 * 1024];
    static unsigned char log[LOG_SIZE];
    static int there;
    memset(&far, 0, sizeof far);
    memset(&w, 0, sizeof w);
    far.random = seed + 1;
    far.only = MOODS;
    far.patience_ms = 70000;
    w.random = seed;
    sim_clock_init(&w.clock, seed);
    sim_net_init(&w.net, &w.clock, seed);
    sim_disk_init(&w.disk, 1 << 22);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&pools[i], buffers[i], sizeof buffers[i], BLOCK);
    }
    w.gateway = sim_net_host(&w.net, "gateway", &pools[0]);
    w.other = sim_net_host(&w.net, "far", &pools[1]);
    tn_arena_init(&w.worker.arena, scratch, sizeof scratch);
    w.worker.io = &w.disk.io;
    tn_log_init(&w.log, log, sizeof log, NULL, NULL);
    for (int t = 0; t < TABLES; t++) {
        w.keepers[t] = (struct tn_keeper){.name = tables[t], .table = (void *)&there};
    }
    w.lakes_config[0] = (struct tn_config_lake){
        .name = "mq", .notify = {.url = "mqtt://far"}, .next = &w.lakes_config[1]};
    w.lakes_config[1] = (struct tn_config_lake){
        .name = "post", .notify = {.url = "http://far:8080/hook?x=1", .token = "longsecret"}};
    w.config = (struct tn_config){.lakes = w.lakes_config,
                                  .lake_count = LAKES,
                                  .notify_count = LAKES,
                                  .upload_count = MIRRORS};
    open_far();
}

/* What the lakes had before anybody was to be told. */
static void had_before(void)
{
    for (int i = 0; i < MIRRORS; i++) {
        w.mirrors[i].have_id = (int64_t)random_below(&w.random, 4);
        far.through[i / TABLES][i % TABLES] = w.mirrors[i].have_id;
    }
}

static void turn(void)
{
    uint32_t wait_ms = 1000;
    tn_tell_turn(&w.tell, &wait_ms);
    (void)tn_exec_turn(&w.exec.exec, false);
    (void)sim_net_wait(&w.net, wait_ms);
}

static void upload_some(void)
{
    struct tn_lakes_mirror *m = &w.mirrors[random_below(&w.random, MIRRORS)];
    m->have_id += 1 + random_below(&w.random, 3);
    m->known = true;
}

/* The process is gone, and of what it wrote only what was synced is sure to be there. What the
 * lakes have is known by an upload that comes after. */
static void die(void)
{
    sim_net_kill(&w.net, w.gateway, random_below(&w.random, 2) > 0);
    if (random_below(&w.random, 2) > 0) {
        sim_disk_reboot(&w.disk, random_next(&w.random));
    }
    open_tell();
    for (int i = 0; i < MIRRORS; i++) {
        w.mirrors[i].known = random_below(&w.random, 2) > 0;
    }
}

static bool all_told(void)
{
    for (int i = 0; i < MIRRORS; i++) {
        if (far.through[i / TABLES][i % TABLES] < w.mirrors[i].have_id ||
            w.tell.places[i / TABLES].marks[i % TABLES].told < w.mirrors[i].have_id) {
            return false;
        }
    }
    return true;
}

static void end_world(void)
{
    tn_tell_stop(&w.tell);
    while (!tn_tell_stopped(&w.tell)) {
        turn();
    }
    while (w.exec.exec.under_way > 0) {
        (void)tn_exec_turn(&w.exec.exec, true);
    }
    tn_tell_close(&w.tell);
    sim_net_deinit(&w.net);
    sim_disk_deinit(&w.disk);
}

static void become_calm(void)
{
    far.calm = true;
    w.net.fault_percent = 0;
    for (int i = 0; i < MIRRORS; i++) {
        w.mirrors[i].known = true;
    }
    for (int i = 0; i < CALM_STEPS && !all_told(); i++) {
        turn();
    }
    CHECK(all_told());
}

/* ---- tests ---- */

/* Faults of all kinds, and deaths at any time. In the end everything was told of. */
static void each_snapshot_is_told_of_in_order(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(2, 6);
    do {
        begin_world(seed++);
        w.net.fault_percent = random_below(&w.random, 40);
        w.net.fault_at_max = 600;
        far.patience_ms = 3000;
        w.net.fragment_max = 1 + random_below(&w.random, 300);
        far.old = random_below(&w.random, 3) == 0;
        had_before();
        open_tell();
        uint32_t deadly = 20 + random_below(&w.random, 400);
        for (int i = 0; i < STEPS; i++) {
            if (random_below(&w.random, 10) == 0) {
                upload_some();
            }
            if (random_below(&w.random, deadly) == 0) {
                die();
            }
            turn();
        }
        become_calm();
        end_world();
    } while (seconds_now() < until);
}

static void turn_for(int64_t ms)
{
    int64_t end = tn_clock_monotonic_ms(&w.clock.clock) + ms;
    while (tn_clock_monotonic_ms(&w.clock.clock) < end) {
        turn();
    }
}

static void begin_fine(void)
{
    begin_world(given_number("SEED", 1));
    w.net.delay_ms_max = 5;
    far.calm = true;
    w.net.fragment_max = 4096;
    open_tell();
}

static struct tn_tell_place *upload_to(int lake)
{
    struct tn_lakes_mirror *m = &w.mirrors[lake * TABLES];
    m->have_id++;
    m->known = true;
    return &w.tell.places[lake];
}

/* What is answered decides whether it was told, is told again, or never was worth it. */
static void answers_are_understood(void)
{
    static const struct {
        enum mood mood;
        uint32_t messages;
        uint32_t refused;
        bool fails;
        const char *text;
    } cases[] = {
        {TAKES, 1, 0, false, ""},
        {ERRS, 0, 0, true, ""},
        {REFUSES, 0, 1, false, "refused for good"},
        {CLOSES, 0, 0, true, ""},
        {SILENT, 0, 0, true, "no answer in time"},
    };
    for (int lake = 0; lake < LAKES; lake++) {
        for (size_t i = 0; i < COUNT(cases); i++) {
            begin_fine();
            far.only = cases[i].mood;
            const struct tn_tell_place *place = upload_to(lake);
            while (place->messages + place->refused + place->failures == 0) {
                turn();
            }
            bool told = place->marks[0].told == 1;
            if (place->messages != cases[i].messages || place->refused != cases[i].refused ||
                (place->failures > 0) != cases[i].fails || told == cases[i].fails ||
                !strstr(place->trouble_text.text, cases[i].text)) {
                FAIL("lake %d, case %zu: %s", lake, i, place->trouble_text.text);
            }
            CHECK(!strstr(place->trouble_text.text, "secret"));
            CHECK(!strstr(place->trouble_text.text, "hook")); /* a path may be one, too */
            end_world();
        }
    }
}

/* Nobody has seen the message: a reason that would be of one is none. */
static void who_is_not_let_in_has_been_refused_nothing(void)
{
    begin_fine();
    far.door = 0x99;
    const struct tn_tell_place *place = upload_to(0);
    while (place->failures == 0) {
        turn();
        CHECK(place->refused == 0);
    }
    CHECK(place->marks[0].told == 0);
    end_world();
}

static void a_post_says_who_it_is_and_what_comes(void)
{
    begin_fine();
    const struct tn_tell_place *place = upload_to(1);
    turn_for(1000);
    CHECK(place->messages == 1 && far.heard[1] == 1);
    CHECK(strstr(far.head, "\r\nHost: far:8080\r\n"));
    CHECK(strstr(far.head, "\r\nContent-Type: application/json\r\n"));
    CHECK(strstr(far.head, "\r\nAuthorization: Bearer longsecret\r\n"));
    end_world();
}

/* With pauses that grow; and then of all that came meanwhile, in one message. */
static void who_is_away_hears_of_all_of_it_later(void)
{
    begin_fine();
    far.only = CLOSES;
    far.free = true;
    struct tn_tell_place *place = upload_to(0);
    turn_for(10 * 60 * 1000);
    CHECK(place->failures > 5 && place->failures < 60 && place->messages == 0);
    for (int i = 0; i < 4; i++) {
        (void)upload_to(0);
    }
    far.only = TAKES;
    turn_for(10 * 60 * 1000);
    CHECK(place->messages == 1 && strstr(far.last, "\"first\":1,\"snapshot\":5"));
    end_world();
}

/* Another lake's place doesn't wait for one that says nothing. */
static void places_do_not_wait_for_each_other(void)
{
    begin_fine();
    sim_net_fault(&w.net, 1, SIM_LINK_LOST, 0);
    const struct tn_tell_place *dead = upload_to(0);
    while (w.net.links_asked == 0) {
        turn();
    }
    const struct tn_tell_place *alive = upload_to(1);
    turn_for(1000);
    CHECK(alive->messages == 1 && dead->messages == 0 && dead->now);
    end_world();
}

/* What is believed of a lake, but was not written down, is not told of. */
static void only_what_a_lake_is_known_to_have_is_told(void)
{
    begin_fine();
    struct tn_tell_place *place = upload_to(0);
    turn_for(1000);
    CHECK(place->messages == 1);
    w.mirrors[0].have_id = 4; /* as by the consumer, after the ledger was lost */
    die();
    w.mirrors[0].known = false;
    turn_for(1000);
    CHECK(far.heard[0] == 1);
    w.mirrors[0].known = true;
    turn_for(1000);
    CHECK(far.heard[0] == 2 && far.through[0][0] == 4);
    end_world();
}

/* Whether it would take something: no message comes to anybody. */
static void a_knock_sends_nothing(void)
{
    for (int lake = 0; lake < LAKES; lake++) {
        for (int refuses = 0; refuses < 2; refuses++) {
            struct tn_ops ops = {NULL, NULL};
            begin_fine();
            far.only = refuses ? ERRS : TAKES;
            struct tn_teller *teller = &w.tell.places[lake].teller;
            tn_teller_knock(teller, &ops);
            while (tn_teller_busy(teller)) {
                (void)tn_ops_run(&ops, 1);
                (void)sim_net_wait(&w.net, 100);
            }
            bool works = lake == 1 || !refuses; /* of a POST nobody is asked anything */
            CHECK((teller->rc == TN_OK) == works && far.head[0] == 0);
            CHECK(far.heard[0] + far.heard[1] + far.passed[0] == 0);
            teller->ended = false;
            end_world();
        }
    }
}

/* ---- scripts ---- */

static struct given_state script;
static struct tn_lakes_policy policy;

static struct tn_tell_place *begin_script(int lake, const char *body)
{
    char text[512];
    struct tn_vm_spec spec = {
        .memory = given_memory, .size = sizeof given_memory, .io = &script.io, .seed = 42};
    struct tn_script_spec of = {.path = "t.lua"};
    struct tn_err err;
    begin_fine();
    far.free = true;
    (void)snprintf(text, sizeof text, "return { uploaded = function(e) %s end }", body);
    script = (struct given_state){.io = {.vtable = &given_vtable}};
    given_files[0] = (struct given_file){"t.lua", text, strlen(text)};
    tn_rc rc = tn_vm_open(&policy.vm, &spec, &err);
    CHECK_OK(rc, err);
    rc = tn_script_load(&policy.script, &policy.vm, &of, &err);
    CHECK_OK(rc, err);
    w.lake[lake].policy = &policy;
    return upload_to(lake);
}

static void a_script_says_what_is_told(void)
{
    const struct tn_tell_place *place =
        begin_script(0, "return { payload = e.table .. '@' .. e.snapshot, topic = 'own/topic' }");
    turn_for(1000);
    CHECK(place->messages == 1 && strcmp(far.last, "plant.a@1") == 0);
    CHECK(strcmp(far.topic, "own/topic") == 0);
    end_world();
    place = begin_script(0, "return 'x'");
    turn_for(1000);
    CHECK(place->messages == 1 && strcmp(far.topic, "tarn/lakes/mq") == 0);
    end_world();
    place = begin_script(1, "return { payload = '<x/>', type = 'text/xml' }");
    turn_for(1000);
    CHECK(place->messages == 1 && strstr(far.head, "\r\nContent-Type: text/xml\r\n"));
    end_world();
    place = begin_script(0, "return nil");
    turn_for(1000);
    CHECK(place->messages == 0 && place->marks[0].told == 1 && far.heard[0] == 0);
    end_world();
}

/* It is asked again, once a minute, and nothing else waits for it. */
static void a_script_that_fails_is_asked_again(void)
{
    static const struct {
        int lake;
        const char *body;
        const char *want;
    } cases[] = {
        {0, "error('no')", "t.lua:1: no"},
        {0, "while true do end", "t.lua:1: its budget of instructions is used up"},
        {0, "return ('x'):rep(9000)", "'payload' has 9000 bytes"},
        {0, "return { payload = 'x', type = 'text/xml' }", "'type' is of a POST"},
        {0, "return { payload = 'x', topic = 'a\\xff' }", "'topic' is no UTF-8"},
        {1, "return { payload = 'x', topic = 't' }", "'topic' is MQTT's"},
        {1, "return { payload = 'x', retain = true }", "'retain' is MQTT's"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_tell_place *place = begin_script(cases[i].lake, cases[i].body);
        turn_for(5 * 60 * 1000 + 1000);
        CHECK(place->script_failures >= 5 && place->script_failures <= 6);
        CHECK(place->marks[0].told == 0 && far.heard[0] == 0);
        if (!strstr(place->trouble_text.text, cases[i].want)) {
            FAIL("case %zu: %s", i, place->trouble_text.text);
        }
        CHECK(!tn_script_parked(&policy.script));
        w.lake[cases[i].lake].policy = NULL; /* a reload brought a better one */
        turn_for(61 * 1000);
        CHECK(place->messages == 1 && place->marks[0].told == 1);
        end_world();
    }
}

/* ---- the file ---- */

static void put_file(const char *text, size_t size)
{
    struct tn_err err;
    struct tn_io *io = &w.disk.io;
    tn_rc rc = io->vtable->make_dir(io, ".tarn/lakes/", &err);
    CHECK_OK(rc, err);
    rc = tn_publish_over(io, ".tarn/lakes/x.draft", ".tarn/lakes/x.told",
                         (struct tn_bytes){(const unsigned char *)text, size}, &err);
    CHECK_OK(rc, err);
}

/* Any bytes: what is read is what was written, or all is told again. */
static void a_file_that_is_none_has_all_told_again(void)
{
    static const char good[] = "17 plant.a\n3 gone.t\n922337203685477580 plant.b\n";
    uint64_t seed = given_number("SEED", 1);
    begin_fine();
    for (int round = 0; round < 2000; round++) {
        struct tn_told_entry entries[TABLES] = {{tables[0], 7}, {tables[1], 7}};
        struct tn_err err;
        char text[sizeof good];
        size_t size = round == 0 ? sizeof good - 1 : random_below(&seed, sizeof good);
        memcpy(text, good, sizeof good);
        for (uint32_t i = random_below(&seed, 3); round > 0 && i > 0; i--) {
            text[random_below(&seed, sizeof good - 1)] = (char)random_next(&seed);
        }
        put_file(text, size);
        tn_rc rc = tn_told_load(entries, TABLES, &w.disk.io, "x", &w.worker.arena, &err);
        CHECK(rc == TN_OK || rc == TN_CORRUPT);
        CHECK(round > 0 || (entries[0].id == 17 && entries[1].id == INT64_C(922337203685477580)));
        for (int i = 0; i < TABLES; i++) {
            CHECK(rc == TN_OK ? entries[i].id >= TN_TOLD_UNKNOWN : entries[i].id == 0);
        }
    }
    end_world();
}

static const struct test tests[] = {
    TEST(each_snapshot_is_told_of_in_order),
    TEST(answers_are_understood),
    TEST(who_is_not_let_in_has_been_refused_nothing),
    TEST(a_post_says_who_it_is_and_what_comes),
    TEST(who_is_away_hears_of_all_of_it_later),
    TEST(places_do_not_wait_for_each_other),
    TEST(only_what_a_lake_is_known_to_have_is_told),
    TEST(a_knock_sends_nothing),
    TEST(a_script_says_what_is_told),
    TEST(a_script_that_fails_is_asked_again),
    TEST(a_file_that_is_none_has_all_told_again),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
