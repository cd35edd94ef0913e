/* The doors to the network in the board's own parts: what they take of the memtable's, that TLS
 * fits, at any size of the block, and that nothing else is taken. */
#include "app/net_boot.h"

#include "check.h"
#include "counted.h"
#include "io/net_uv.h"
#include "sim/certificate.h"
#include "sim/traffic.h"
#include "temp.h"

enum { STREAMS = 16, WAIT_MS = 200 };

static struct tn_app app;
static char folder[TEMP_SIZE];

static void open_app(uint64_t memory)
{
    struct tn_err err;
    temp_make(folder);
    tn_common.warehouse = folder;
    tn_common.memory = memory;
    app = (struct tn_app){0};
    CHECK_OK(tn_boot(&app, true, &err), err);
}

static void close_app(void)
{
    tn_shut(&app);
    temp_remove(folder);
}

static size_t size_of(const char *part)
{
    return tn_budget_part(&app.budget, part)->size;
}

static int turn(void *user)
{
    return tn_net_turn(user, WAIT_MS);
}

static struct traffic traffic_over(struct tn_net *net)
{
    return (struct traffic){.client = net,
                            .server = net,
                            .turn = turn,
                            .user = net,
                            .listen = {.host = "127.0.0.1"},
                            .seed = 5,
                            .clients = 3,
                            .bytes_max = 100000,
                            .write_max = 20000,
                            .timeout_ms = 10000,
                            .fine = true};
}

/* The board's own, nearly its least, and a large one. */
static const uint64_t sizes[] = {0, (uint64_t)6 << 20, (uint64_t)64 << 20};

static void who_opens_no_door_keeps_the_memory(void)
{
    open_app(0);
    size_t whole = size_of("memtable");
    CHECK(app.env.memtable_size == whole);
    CHECK(!tn_budget_part(&app.budget, "net")->base && !tn_budget_part(&app.budget, "tls")->base);
    tn_net_boot_tls(&app);
    CHECK(size_of("memtable") == whole - size_of("tls"));
    CHECK(app.env.memtable_size == size_of("memtable"));
    close_app();
}

static void the_door_lives_in_its_part(void)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct tn_net *net = NULL;
        struct tn_err err;
        open_app(sizes[i]);
        size_t whole = size_of("memtable");
        uint64_t before = malloc_calls_all;
        CHECK_OK(tn_net_boot(&app, STREAMS, &net, &err), err);
        CHECK(app.env.memtable_size == whole - size_of("net"));
        const struct tn_part *part = tn_budget_part(&app.budget, "net");
        CHECK((unsigned char *)net >= part->base && (unsigned char *)net < part->base + part->size);
        CHECK(app.buffers.block_count >= 4);
        struct traffic traffic = traffic_over(net);
        traffic_run(&traffic);
        CHECK(traffic.whole == traffic.clients);
        tn_net_close(net);
        CHECK(app.uv.used == 0 && app.uv.failed == 0);
        CHECK(sizes[i] == 0 || malloc_calls_all == before); /* libuv's threads start once */
        close_app();
    }
}

static void too_many_streams_open_nothing(void)
{
    static const uint32_t counts[] = {400, 5000, UINT32_MAX};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct tn_net *net = NULL;
        struct tn_err err;
        open_app(0);
        size_t whole = size_of("memtable");
        CHECK(tn_net_boot(&app, counts[i], &net, &err) == TN_AGAIN && !net);
        CHECK(strstr(err.text, "of the part 'net' are too few"));
        CHECK(size_of("memtable") == whole && app.env.memtable_size == whole);
        close_app();
    }
}

/* Two ends of one stream, with a CA of one certificate: half of what the board has for TLS. */
static void a_stream_of_tls_fits_its_part(void)
{
    static struct certificate ca;
    static struct certificate server;
    struct tn_net *net = NULL;
    struct tn_err err;
    open_app(0);
    CHECK_OK(tn_net_boot(&app, STREAMS, &net, &err), err);
    tn_net_boot_tls(&app);
    certificate_make(&ca, &(struct certificate_spec){.name = "CN=ca", .authority = true}, 1);
    certificate_make(&server, &(struct certificate_spec){.name = "CN=s", .dns = "s", .issuer = &ca},
                     2);
    struct tn_tls_spec theirs = {.clock = &tn_clock_system,
                                 .certificate = certificate_pem(&server),
                                 .key = certificate_key(&server),
                                 .server = true};
    struct tn_tls_spec ours = {.clock = &tn_clock_system, .ca = certificate_pem(&ca)};
    struct traffic traffic = traffic_over(net);
    uint64_t before = malloc_calls_all;
    CHECK_OK(tn_tls_config_make(&theirs, &traffic.server_tls, &err), err);
    CHECK_OK(tn_tls_config_make(&ours, &traffic.client_tls, &err), err);
    traffic.tls_host = "s";
    traffic.clients = 1;
    traffic_run(&traffic);
    CHECK(traffic.whole == 1);
    CHECK(malloc_calls_all == before);
    tn_tls_config_free(traffic.client_tls);
    tn_tls_config_free(traffic.server_tls);
    CHECK(app.tls.used == 0 && app.tls.failed == 0 && app.tls.peak < app.tls.size * 2 / 3);
    tn_net_close(net);
    close_app();
}

static const struct test tests[] = {
    TEST(the_door_lives_in_its_part),
    TEST(who_opens_no_door_keeps_the_memory),
    TEST(too_many_streams_open_nothing),
    TEST(a_stream_of_tls_fits_its_part),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
