/* TLS over a network that cuts, delays and reorders, and over one that is only real: bytes come
 * back whole, no certificate that is wrong in any way gets through, its reason is said in words,
 * and no byte of a hostile peer's does more than end its own stream. */
#include "io/tls.h"

#include <stdalign.h>

#include "base/exec.h"
#include "check.h"
#include "counted.h"
#include "io/net_uv.h"
#include "io/tls_memory.h"
#include "random.h"
#include "sim/call.h"
#include "sim/certificate.h"
#include "sim/net.h"
#include "sim/traffic.h"

enum { BLOCK = 4096, BLOCKS = 6, HEAP_SIZE = 1400 * 1024, SEEDS = 5, UV_HEAP_SIZE = 64 * 1024 };

static alignas(16) unsigned char heap_memory[HEAP_SIZE];
static alignas(16) unsigned char uv_heap_memory[UV_HEAP_SIZE];
static alignas(16) unsigned char pool_memory[2][BLOCKS * (BLOCK + 8)];
static alignas(16) unsigned char arena_memory[64 * 1024];
static struct tn_heap heap;

static struct certificate ca;
static struct certificate middle;
static struct certificate broker; /* signed by `middle` */
static struct certificate other_ca;
static struct certificate device;

static struct sim_clock clock_of_sim;
static struct sim_net world;
static struct tn_pool pools[2];
static struct tn_net *gateway;
static struct tn_net *far_host;

static uint64_t seed_of_test(void)
{
    const char *text = getenv("SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static void make_certificates(void)
{
    static const unsigned char ip[] = {10, 0, 0, 7};
    certificate_make(&ca, &(struct certificate_spec){.name = "CN=test root", .authority = true}, 1);
    certificate_make(&other_ca,
                     &(struct certificate_spec){.name = "CN=other root", .authority = true}, 2);
    certificate_make(
        &middle,
        &(struct certificate_spec){.name = "CN=test middle", .issuer = &ca, .authority = true}, 3);
    certificate_make(&broker,
                     &(struct certificate_spec){
                         .name = "CN=broker", .dns = "broker", .ip = ip, .issuer = &middle},
                     4);
    certificate_make(&device, &(struct certificate_spec){.name = "CN=device", .issuer = &ca}, 5);
}

static void open_world(uint64_t seed)
{
    sim_clock_init(&clock_of_sim, seed);
    sim_net_init(&world, &clock_of_sim, seed);
    for (int i = 0; i < 2; i++) {
        size_t blocks = 1 + (size_t)(seed % BLOCKS); /* one must do */
        tn_pool_init(&pools[i], pool_memory[i], blocks * (BLOCK + 8), BLOCK);
    }
    gateway = sim_net_host(&world, "gateway", &pools[0]);
    far_host = sim_net_host(&world, "broker", &pools[1]);
}

static struct tn_tls_config *make(const struct tn_tls_spec *spec)
{
    struct tn_err err;
    struct tn_tls_config *config = NULL;
    struct tn_tls_spec with_clock = *spec;
    with_clock.clock = spec->clock ? spec->clock : &clock_of_sim.clock;
    CHECK_OK(tn_tls_config_make(&with_clock, &config, &err), err);
    return config;
}

static struct tn_tls_config *client_config(void)
{
    return make(&(struct tn_tls_spec){.ca = certificate_pem(&ca)});
}

static struct tn_tls_config *server_config(const struct certificate *own)
{
    return make(&(struct tn_tls_spec){
        .certificate = certificate_pem(own), .key = certificate_key(own), .server = true});
}

static int turn_world(void *user)
{
    (void)user;
    return sim_net_turn(&world);
}

static struct traffic traffic_of(uint64_t seed)
{
    return (struct traffic){
        .client = gateway,
        .server = far_host,
        .turn = turn_world,
        .listen = {.host = "0.0.0.0", .port = 8883},
        .connect_host = "broker",
        .tls_host = "broker",
        .seed = seed,
        .clients = 1 + (uint32_t)(seed % 4),
        .bytes_max = 40000,
        .write_max = seed % 2 ? 500 : 40000,
        .timeout_ms = 60000,
    };
}

static void run_traffic(struct traffic *traffic)
{
    traffic->client_tls = client_config();
    traffic->server_tls = server_config(&broker);
    traffic_run(traffic);
    tn_tls_config_free(traffic->client_tls);
    tn_tls_config_free(traffic->server_tls);
    tn_heap_check(&heap);
    CHECK(heap.used == 0); /* nothing leaks, however it ended */
}

static void all_bytes_come_back_over_a_fine_network(void)
{
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + SEEDS; seed++) {
        open_world(seed);
        world.fragment_max = seed % 3 ? 3000 : 1 + (uint32_t)(seed % 100);
        struct traffic traffic = traffic_of(seed);
        traffic.timeout_ms = 0;
        traffic.fine = true;
        run_traffic(&traffic);
        CHECK(traffic.whole == traffic.clients);
        sim_net_deinit(&world);
    }
}

static void whatever_fails_each_request_is_done_once(void)
{
    uint64_t whole = 0;
    uint64_t clients = 0;
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + 3 * SEEDS; seed++) {
        open_world(seed);
        world.fault_percent = seed % 3 ? 40 : 0;
        world.fault_at_max = seed % 2 ? 3000 : 20000;
        struct traffic traffic = traffic_of(seed);
        traffic.cancel_in_a_thousand = seed % 3 == 1 ? 0 : 30;
        run_traffic(&traffic);
        whole += traffic.whole;
        clients += traffic.clients;
        sim_net_deinit(&world);
    }
    CHECK(whole > 0 && whole < clients);
}

/* ---- one connection ---- */

static void wait_for(struct call *call)
{
    while (call->done == 0) {
        CHECK(sim_net_turn(&world) >= 0);
    }
    CHECK(call->done == 1);
}

struct pair {
    struct tn_listener *listener;
    struct tn_stream *near;
    struct tn_stream *far;
    struct call near_call; /* the last */
    struct call far_call;
};

static void open_pair(struct pair *pair)
{
    struct tn_err err;
    *pair = (struct pair){0};
    struct tn_endpoint at = {"0.0.0.0", 1};
    CHECK_OK(tn_net_listen(far_host, &at, 8, &pair->listener, &err), err);
    prepare(&pair->far_call, 0);
    tn_net_accept(pair->listener, &pair->far_call.request);
    prepare(&pair->near_call, 0);
    tn_net_connect(gateway, &(struct tn_endpoint){"broker", 1}, &pair->near_call.request);
    wait_for(&pair->near_call);
    wait_for(&pair->far_call);
    pair->near = pair->near_call.request.stream;
    pair->far = pair->far_call.request.stream;
}

static void secure(struct pair *pair, struct tn_tls_config *client, struct tn_tls_config *server,
                   const char *host)
{
    prepare(&pair->near_call, 30000);
    prepare(&pair->far_call, 30000);
    tn_tls_open(client, NULL, pair->near, host, &pair->near_call.request);
    tn_tls_open(server, NULL, pair->far, NULL, &pair->far_call.request);
    CHECK(pair->near_call.done == 0 && pair->far_call.done == 0);
    wait_for(&pair->near_call);
    wait_for(&pair->far_call);
    pair->near = pair->near_call.request.stream;
    pair->far = pair->far_call.request.stream;
}

static void settle(void)
{
    while (gateway->under_way + far_host->under_way > 0) {
        CHECK(sim_net_turn(&world) >= 0);
    }
    CHECK(gateway->streams + far_host->streams == 0);
    CHECK(pools[0].used + pools[1].used == 0);
}

static void close_pair(struct pair *pair)
{
    if (pair->near) {
        tn_stream_close(pair->near, NULL);
    }
    if (pair->far) {
        tn_stream_close(pair->far, NULL);
    }
    tn_net_close_listener(pair->listener);
    settle();
}

/* The outcome of a handshake for the client. */
static tn_rc handshake(struct tn_tls_config *client, struct tn_tls_config *server, const char *host,
                       struct tn_err *err)
{
    struct pair pair;
    open_pair(&pair);
    secure(&pair, client, server, host);
    tn_rc rc = pair.near_call.request.rc;
    *err = pair.near_call.request.err;
    CHECK((rc == TN_OK) == (pair.near != NULL));
    close_pair(&pair);
    tn_tls_config_free(client);
    tn_tls_config_free(server);
    CHECK(heap.used == 0);
    return rc;
}

static void what(struct tn_err *err, const char *text)
{
    if (!strstr(err->text, text)) {
        (void)fprintf(stderr, "\"%s\" has no \"%s\"\n", err->text, text);
        CHECK(false);
    }
}

static void a_certificate_must_be_for_the_name_or_the_address(void)
{
    struct tn_err err;
    open_world(1);
    CHECK(handshake(client_config(), server_config(&broker), "broker", &err) == TN_OK);
    CHECK(handshake(client_config(), server_config(&broker), "10.0.0.7", &err) == TN_OK);
    CHECK(handshake(client_config(), server_config(&broker), "brother", &err) == TN_INVALID);
    what(&err, "its certificate is for broker, not for brother");
    CHECK(handshake(client_config(), server_config(&broker), "10.0.0.8", &err) == TN_INVALID);
    what(&err, "not for 10.0.0.8");
    sim_net_deinit(&world);
}

static void a_certificate_must_be_signed_by_somebody_we_trust(void)
{
    struct tn_err err;
    open_world(2);
    struct tn_tls_config *stranger = make(&(struct tn_tls_spec){.ca = certificate_pem(&other_ca)});
    CHECK(handshake(stranger, server_config(&broker), "broker", &err) == TN_INVALID);
    what(&err, "is not in the CA file");
    /* An authority that one of ours signed for servers only: it may not sign. */
    static struct certificate leaf;
    certificate_make(
        &leaf, &(struct certificate_spec){.name = "CN=broker", .dns = "broker", .issuer = &broker},
        8);
    CHECK(handshake(client_config(), server_config(&leaf), "broker", &err) == TN_INVALID);
    sim_net_deinit(&world);
}

static void a_pinned_certificate_is_the_only_one(void)
{
    struct tn_err err;
    static struct certificate alone;
    static struct certificate leaf;
    open_world(3);
    certificate_make(&alone, &(struct certificate_spec){.name = "CN=alone"}, 6);
    const struct certificate *const own[] = {&alone, &broker};
    for (int i = 0; i < 2; i++) {
        leaf = *own[i];
        char *second = strstr(leaf.pem + 1, "-----BEGIN");
        if (second) {
            *second = 0; /* a pin is one certificate */
        }
        struct tn_tls_spec pin = {.pinned = certificate_pem(&leaf)};
        CHECK(handshake(make(&pin), server_config(own[i]), "any.name", &err) == TN_OK);
        CHECK(handshake(make(&pin), server_config(own[1 - i]), "any.name", &err) == TN_INVALID);
        what(&err, "is not the pinned one");
    }
    sim_net_deinit(&world);
}

/* By our clock, which a test sets; a clock that is wrong is the first thing that is said. */
static void dates_are_those_of_our_clock(void)
{
    static const struct {
        int64_t now_ms;
        tn_rc rc;
        const char *text;
    } cases[] = {
        {INT64_C(1704067200000), TN_OK, NULL},
        {0, TN_INVALID, "is valid from 2023-01-01, and here it is 1970-01-01: is the clock wrong?"},
        {INT64_C(1672531100000), TN_INVALID, "here it is 2022-12-31: is the clock wrong?"},
        {INT64_C(1988150500000), TN_INVALID, "expired on 2033-01-01, and here it is 2033-01-01"},
        {INT64_C(4107542400000), TN_INVALID, "here it is 2100-03-01"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_err err;
        open_world(i);
        sim_clock_set_ms(&clock_of_sim, cases[i].now_ms);
        CHECK(handshake(client_config(), server_config(&broker), "broker", &err) == cases[i].rc);
        if (cases[i].text) {
            what(&err, cases[i].text);
        }
        struct tn_tls_config *stranger =
            make(&(struct tn_tls_spec){.ca = certificate_pem(&other_ca)});
        CHECK(handshake(stranger, server_config(&broker), "elsewhere", &err) == TN_INVALID);
        what(&err, cases[i].text ? cases[i].text : "elsewhere");
        sim_net_deinit(&world);
    }
}

static void a_server_with_a_ca_lets_nobody_in_without_a_certificate(void)
{
    struct tn_err err;
    open_world(4);
    struct tn_tls_spec server = {.ca = certificate_pem(&ca),
                                 .certificate = certificate_pem(&broker),
                                 .key = certificate_key(&broker),
                                 .server = true};
    struct tn_tls_spec client = {.ca = certificate_pem(&ca),
                                 .certificate = certificate_pem(&device),
                                 .key = certificate_key(&device)};
    CHECK(handshake(make(&client), make(&server), "broker", &err) == TN_OK);
    CHECK(handshake(client_config(), make(&server), "broker", &err) == TN_IO);
    what(&err, "it refused: nothing in common to encrypt with, or it wants a certificate of ours");
    client.certificate = certificate_pem(&other_ca);
    client.key = certificate_key(&other_ca);
    CHECK(handshake(make(&client), make(&server), "broker", &err) == TN_IO);
    what(&err, "it refused");
    sim_net_deinit(&world);
}

static void a_config_that_is_wrong_is_refused_in_words(void)
{
    struct tn_bytes good = certificate_pem(&broker);
    struct tn_bytes key = certificate_key(&broker);
    struct tn_bytes junk = tn_bytes_of("junk");
    const struct {
        struct tn_tls_spec spec;
        const char *text;
    } cases[] = {
        {{.ca = {0}}, "needs a CA file or a pinned certificate"},
        {{.ca = good, .pinned = good}, "one of the two"},
        {{.ca = junk}, "the CA file: not in PEM form"},
        {{.ca = tn_bytes_of("")}, "the CA file: not in PEM form"},
        {{.pinned = good}, "more than one"},
        {{.server = true}, "both a certificate and its key"},
        {{.server = true, .certificate = good}, "both a certificate and its key"},
        {{.server = true, .certificate = good, .key = junk}, "the key file: not in PEM form"},
        {{.server = true, .certificate = good, .key = certificate_key(&ca)},
         "not the key of the certificate"},
        {{.server = true, .certificate = junk, .key = key}, "the certificate: not in PEM form"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_err err;
        struct tn_tls_spec spec = cases[i].spec;
        struct tn_tls_config *config = NULL;
        spec.clock = &tn_clock_system;
        CHECK(tn_tls_config_make(&spec, &config, &err) == TN_INVALID && !config);
        what(&err, cases[i].text);
        CHECK(heap.used == 0);
    }
}

/* ---- sessions, ends, memory ---- */

static void a_client_resumes_its_session(void)
{
    open_world(5);
    struct tn_tls_config *client = client_config();
    struct tn_tls_config *server = server_config(&broker);
    for (uint64_t i = 0; i < 3; i++) {
        struct pair pair;
        open_pair(&pair);
        secure(&pair, client, server, "broker");
        CHECK_OK(pair.near_call.request.rc, pair.near_call.request.err);
        uint64_t done = 0;
        uint64_t resumed = 0;
        tn_tls_config_counts(client, &done, &resumed);
        CHECK(done == i + 1 && resumed == i);
        close_pair(&pair);
    }
    tn_tls_config_free(client);
    tn_tls_config_free(server);
    CHECK(heap.used == 0);
    sim_net_deinit(&world);
}

static void an_end_without_goodbye_is_a_cut(void)
{
    for (int polite = 0; polite < 2; polite++) {
        open_world(6);
        struct tn_tls_config *client = client_config();
        struct tn_tls_config *server = server_config(&broker);
        struct pair pair;
        open_pair(&pair);
        struct tn_stream *plain = pair.far;
        secure(&pair, client, server, "broker");
        prepare(&pair.far_call, 0);
        if (polite) {
            tn_stream_finish(pair.far, &pair.far_call.request);
        } else {
            tn_stream_finish(plain,
                             &pair.far_call.request); /* below TLS: what a middlebox can do */
        }
        wait_for(&pair.far_call);
        prepare(&pair.near_call, 0);
        tn_stream_read(pair.near, NULL, 0, &pair.near_call.request);
        wait_for(&pair.near_call);
        CHECK(pair.near_call.request.rc == (polite ? TN_OK : TN_IO));
        CHECK(pair.near_call.request.moved == 0);
        if (!polite) {
            what(&pair.near_call.request.err, "the peer cut the connection");
        }
        close_pair(&pair);
        tn_tls_config_free(client);
        tn_tls_config_free(server);
        sim_net_deinit(&world);
    }
}

/* However little memory there is: a handshake works or says AGAIN, and gives back what it took. */
static void a_full_heap_is_try_again(void)
{
    open_world(7);
    struct tn_tls_config *client = client_config();
    struct tn_tls_config *server = server_config(&broker);
    int worked = 0;
    int failed = 0;
    for (size_t left = 1000; left < 150 * 1024; left += 3777) {
        size_t used = heap.used;
        void *rest[64];
        size_t count = 0;
        void *room = tn_heap_take(&heap, left);
        for (size_t size = HEAP_SIZE; size >= 64; size /= 2) {
            while (count < COUNT(rest) && (rest[count] = tn_heap_take(&heap, size))) {
                count++;
            }
        }
        tn_heap_give(&heap, room);
        struct pair pair;
        open_pair(&pair);
        secure(&pair, client, server, "broker");
        const struct tn_request *near = &pair.near_call.request;
        worked += near->rc == TN_OK;
        failed += near->rc == TN_AGAIN;
        if (near->rc != TN_OK && near->rc != TN_AGAIN && near->rc != TN_IO) {
            CHECK_OK(near->rc, near->err);
        }
        close_pair(&pair);
        while (count > 0) {
            tn_heap_give(&heap, rest[--count]);
        }
        tn_heap_check(&heap);
        CHECK(heap.used < used + 8192); /* the session that was kept */
    }
    CHECK(worked > 0 && failed > 0);
    tn_tls_config_free(client);
    tn_tls_config_free(server);
    CHECK(heap.used == 0);
    sim_net_deinit(&world);
}

/* ---- hostile peers ---- */

static void send_all(struct pair *pair, const unsigned char *bytes, size_t size)
{
    prepare(&pair->far_call, 5000);
    tn_stream_write(pair->far, (struct tn_bytes){bytes, size}, &pair->far_call.request);
    wait_for(&pair->far_call);
}

static void a_peer_that_speaks_something_else_is_told_apart(void)
{
    static const char *const words[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                        "SSH-2.0-OpenSSH_9.2\r\n"};
    for (size_t i = 0; i < COUNT(words); i++) {
        open_world(i);
        struct tn_tls_config *client = client_config();
        struct pair pair;
        open_pair(&pair);
        prepare(&pair.near_call, 5000);
        tn_tls_open(client, NULL, pair.near, "broker", &pair.near_call.request);
        send_all(&pair, (const unsigned char *)words[i], strlen(words[i]));
        wait_for(&pair.near_call);
        CHECK(pair.near_call.request.rc == TN_IO && !pair.near_call.request.stream);
        what(&pair.near_call.request.err, "does not speak TLS");
        pair.near = NULL;
        close_pair(&pair);
        tn_tls_config_free(client);
        CHECK(heap.used == 0);
        sim_net_deinit(&world);
    }
}

/* Random records, with headers that look right, to a client and to a server. */
static void junk_ends_only_its_own_stream(void)
{
    uint64_t random = seed_of_test();
    for (uint32_t round = 0; round < 300; round++) {
        open_world(round);
        struct tn_tls_config *config = round % 2 ? client_config() : server_config(&broker);
        struct pair pair;
        open_pair(&pair);
        prepare(&pair.near_call, 3000);
        tn_tls_open(config, NULL, pair.near, round % 2 ? "broker" : NULL, &pair.near_call.request);
        unsigned char bytes[600];
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (unsigned char)random_next(&random);
        }
        size_t size = 1 + random_below(&random, sizeof bytes);
        const unsigned char head[] = {22, 3, 3, (unsigned char)((size - 1) >> 8),
                                      (unsigned char)(size - 1)};
        if (random_below(&random, 4) > 0 && size > 16) {
            memcpy(bytes, head, sizeof head);
            bytes[5] = (unsigned char)random_below(&random, 21); /* a message, and its length */
            bytes[6] = 0;
            bytes[7] = (unsigned char)((size - 9) >> 8);
            bytes[8] = (unsigned char)(size - 9);
        }
        send_all(&pair, bytes, size);
        wait_for(&pair.near_call);
        CHECK(pair.near_call.request.rc != TN_OK && !pair.near_call.request.stream);
        pair.near = NULL;
        close_pair(&pair);
        tn_tls_config_free(config);
        CHECK(heap.used == 0);
        sim_net_deinit(&world);
    }
}

/* ---- a man in the middle who changes a byte ---- */

struct relay {
    struct tn_stream *from;
    struct tn_stream *to;
    struct call call;
    uint64_t passed;
    uint64_t change_at;
    unsigned char data[BLOCK];
    bool over;
};

/* Moves what has come one step further; without end. */
static void step_relay(struct relay *relay)
{
    if (relay->over || tn_request_under_way(&relay->call.request)) {
        return;
    }
    bool was_read = relay->call.done == 1 && relay->call.request.data == relay->data;
    if (was_read && (relay->call.request.rc != TN_OK || relay->call.request.moved == 0)) {
        relay->over = true;
        return;
    }
    size_t size = relay->call.request.moved;
    prepare(&relay->call, 0);
    if (!was_read) {
        tn_stream_read(relay->from, relay->data, sizeof relay->data, &relay->call.request);
        return;
    }
    if (relay->change_at >= relay->passed && relay->change_at < relay->passed + size) {
        relay->data[relay->change_at - relay->passed] ^= 1;
    }
    relay->passed += size;
    tn_stream_write(relay->to, (struct tn_bytes){relay->data, size}, &relay->call.request);
}

struct middle_run {
    struct pair near; /* the client, and the relay's side of it */
    struct pair far;
    struct relay relays[2];
    struct call write;
    struct call read;
    bool wrote;
    unsigned char data[64];
};

static void open_middle(struct middle_run *run, struct tn_tls_config *client,
                        struct tn_tls_config *server, uint64_t change_at)
{
    *run = (struct middle_run){0};
    open_pair(&run->near);
    tn_net_close_listener(run->near.listener);
    open_pair(&run->far);
    struct tn_stream *left = run->near.far;
    struct tn_stream *right = run->far.near;
    run->relays[0] = (struct relay){.from = left, .to = right, .change_at = UINT64_MAX};
    run->relays[1] = (struct relay){.from = right, .to = left, .change_at = change_at};
    prepare(&run->near.near_call, 5000);
    prepare(&run->far.far_call, 5000);
    prepare(&run->write, 5000);
    prepare(&run->read, 5000);
    tn_tls_open(client, NULL, run->near.near, "broker", &run->near.near_call.request);
    tn_tls_open(server, NULL, run->far.far, NULL, &run->far.far_call.request);
}

/* Once both ends believe in it, ten bytes come from the server. */
static void write_ten(struct middle_run *run)
{
    const struct call *near = &run->near.near_call;
    const struct call *far = &run->far.far_call;
    if (!run->wrote && near->done && far->done && near->request.stream && far->request.stream) {
        run->wrote = true;
        tn_stream_write(far->request.stream, tn_bytes_of("0123456789"), &run->write.request);
        tn_stream_read(near->request.stream, run->data, sizeof run->data, &run->read.request);
    }
}

/* The next record is whole, but one before it is missing: it must not be read either. */
static void read_on(struct middle_run *run)
{
    struct tn_stream *near = run->near.near_call.request.stream;
    struct tn_stream *far = run->far.far_call.request.stream;
    while (run->write.done == 0) {
        CHECK(sim_net_turn(&world) >= 0);
    }
    prepare(&run->write, 5000);
    tn_stream_write(far, tn_bytes_of("abcdefghij"), &run->write.request);
    prepare(&run->read, 5000);
    tn_stream_read(near, run->data, sizeof run->data, &run->read.request);
    while (run->read.done == 0 || run->write.done == 0) {
        step_relay(&run->relays[0]);
        step_relay(&run->relays[1]);
        CHECK(sim_net_turn(&world) >= 0);
    }
    CHECK(run->read.request.rc != TN_OK);
}

static void close_middle(struct middle_run *run)
{
    struct tn_stream *const streams[] = {run->near.far, run->far.near,
                                         run->near.near_call.request.stream,
                                         run->far.far_call.request.stream};
    for (size_t i = 0; i < COUNT(streams); i++) {
        if (streams[i]) {
            tn_stream_close(streams[i], NULL);
        }
    }
    tn_net_close_listener(run->far.listener);
    settle();
}

/* In the handshake, and in what follows it: nothing that was changed is ever read. */
static void a_byte_changed_on_the_way_is_never_read(void)
{
    static struct middle_run run;
    int broken = 0;
    int unread = 0;
    for (uint64_t at = 0; at < 1800; at += 23) {
        open_world(at);
        struct tn_tls_config *client = client_config();
        struct tn_tls_config *server = server_config(&broker);
        open_middle(&run, client, server, at);
        while (run.near.near_call.done == 0 || run.far.far_call.done == 0 ||
               (run.wrote && run.read.done == 0)) {
            step_relay(&run.relays[0]);
            step_relay(&run.relays[1]);
            CHECK(sim_net_turn(&world) >= 0);
            write_ten(&run);
        }
        bool whole = run.wrote && run.read.request.rc == TN_OK;
        CHECK(!whole || run.read.request.moved == 10); /* a header's byte may not matter */
        CHECK(!whole || memcmp(run.data, "0123456789", 10) == 0);
        broken += !whole;
        if (run.wrote && !whole) {
            read_on(&run);
            unread++;
        }
        close_middle(&run);
        tn_tls_config_free(client);
        tn_tls_config_free(server);
        CHECK(heap.used == 0);
        sim_net_deinit(&world);
    }
    CHECK(broken > 10 && unread > 0);
}

/* ---- on the system, with the handshakes on a worker ---- */

static struct tn_exec *exec;
static struct tn_net *uv_net;

static void wake_uv(void *user)
{
    tn_net_wake(user);
}

static int turn_uv(void *user)
{
    (void)user;
    int done = tn_exec_turn(exec, false);
    return done + tn_net_turn(uv_net, 1000);
}

static void handshakes_run_on_a_worker(void)
{
    static struct tn_arena arena;
    static struct tn_heap uv_heap;
    static alignas(max_align_t) unsigned char exec_memory[TN_EXEC_THREADS_SIZE];
    void *const contexts[TN_LANE_COUNT] = {NULL, NULL};
    struct tn_err err;
    tn_heap_init(&uv_heap, uv_heap_memory, sizeof uv_heap_memory, true);
    tn_pool_init(&pools[0], pool_memory[0], sizeof pool_memory[0], BLOCK);
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    struct tn_net_spec spec = {.heap = &uv_heap,
                               .arena = &arena,
                               .buffers = &pools[0],
                               .clock = &tn_clock_system,
                               .streams_max = 20};
    CHECK_OK(tn_net_uv_open(&spec, &uv_net, &err), err);
    CHECK_OK(tn_exec_threads_open(exec_memory, contexts, &exec, &err), err);
    exec->notify = wake_uv;
    exec->notify_user = uv_net;
    uint64_t before = malloc_calls_all;
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + SEEDS; seed++) {
        struct traffic traffic = traffic_of(seed);
        traffic.client = uv_net;
        traffic.server = uv_net;
        traffic.turn = turn_uv;
        traffic.listen = (struct tn_endpoint){"127.0.0.1", 0};
        traffic.connect_host = NULL;
        traffic.exec = exec;
        traffic.fine = seed % 2 == 0;
        traffic.cancel_in_a_thousand = traffic.fine ? 0 : 50;
        traffic.client_tls =
            make(&(struct tn_tls_spec){.ca = certificate_pem(&ca), .clock = &tn_clock_system});
        traffic.server_tls = make(&(struct tn_tls_spec){.certificate = certificate_pem(&broker),
                                                        .key = certificate_key(&broker),
                                                        .server = true,
                                                        .clock = &tn_clock_system});
        traffic_run(&traffic);
        tn_tls_config_free(traffic.client_tls);
        tn_tls_config_free(traffic.server_tls);
        CHECK(heap.used == 0);
    }
    CHECK(malloc_calls_all == before);
    CHECK(!COUNTS_MALLOC || before > 0);
    exec->vtable->close(exec);
    tn_net_close(uv_net);
}

static const struct test tests[] = {
    TEST(all_bytes_come_back_over_a_fine_network),
    TEST(whatever_fails_each_request_is_done_once),
    TEST(a_certificate_must_be_for_the_name_or_the_address),
    TEST(a_certificate_must_be_signed_by_somebody_we_trust),
    TEST(a_pinned_certificate_is_the_only_one),
    TEST(dates_are_those_of_our_clock),
    TEST(a_server_with_a_ca_lets_nobody_in_without_a_certificate),
    TEST(a_config_that_is_wrong_is_refused_in_words),
    TEST(a_client_resumes_its_session),
    TEST(an_end_without_goodbye_is_a_cut),
    TEST(a_full_heap_is_try_again),
    TEST(a_peer_that_speaks_something_else_is_told_apart),
    TEST(junk_ends_only_its_own_stream),
    TEST(a_byte_changed_on_the_way_is_never_read),
    TEST(handshakes_run_on_a_worker),
};

int main(int argc, char **argv)
{
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_tls_boot(&heap);
    make_certificates();
    CHECK(heap.used == 0);
    return run_tests(argc, argv, tests, COUNT(tests));
}
