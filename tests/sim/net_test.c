/* The simulated network keeps the contract of net.h while it cuts, delays and reorders, and does so
 * the same way for the same seed. */
#include "sim/net.h"

#include <stdalign.h>

#include "check.h"
#include "random.h"
#include "sim/call.h"
#include "sim/traffic.h"

enum { BLOCK = 512, SEEDS = 150 };

struct bed {
    struct sim_clock clock;
    struct sim_net world;
    struct tn_net *gateway;
    struct tn_net *broker;
    struct tn_pool pools[2];
    uint32_t blocks;
};

static alignas(16) unsigned char memory[2][16 * (BLOCK + 8)];
static struct bed bed;

static void open_bed(uint64_t seed, uint32_t blocks)
{
    bed = (struct bed){.blocks = blocks};
    sim_clock_init(&bed.clock, seed);
    sim_net_init(&bed.world, &bed.clock, seed);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&bed.pools[i], memory[i], blocks * (BLOCK + 8), BLOCK);
    }
    bed.gateway = sim_net_host(&bed.world, "gateway", &bed.pools[0]);
    bed.broker = sim_net_host(&bed.world, "broker", &bed.pools[1]);
}

static void close_bed(void)
{
    sim_net_deinit(&bed.world);
}

static uint64_t seed_of_test(void)
{
    const char *text = getenv("SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static int turn_world(void *user)
{
    return sim_net_turn(user);
}

static struct traffic traffic_of(uint64_t seed)
{
    return (struct traffic){
        .client = bed.gateway,
        .server = bed.broker,
        .turn = turn_world,
        .user = &bed.world,
        .listen = {.host = "0.0.0.0", .port = 1883},
        .connect_host = "broker",
        .seed = seed,
        .clients = 1 + (uint32_t)(seed % 5),
        .bytes_max = seed % 3 ? 5000 : 60000,
        .write_max = seed % 2 ? 500 : 20000,
        .timeout_ms = 20000,
    };
}

static void all_bytes_come_back_over_a_fine_network(void)
{
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + SEEDS; seed++) {
        open_bed(seed, 1 + (uint32_t)(seed % 8)); /* one buffer must do, if slowly */
        bed.world.fragment_max = seed % 4 ? 2000 : 1 + (uint32_t)(seed % 7);
        bed.world.bytes_a_ms = seed % 2 ? 0 : 50;
        struct traffic traffic = traffic_of(seed);
        traffic.bytes_max = bed.world.fragment_max < 10 ? 2000 : traffic.bytes_max;
        traffic.timeout_ms = 0;
        traffic.fine = true;
        traffic_run(&traffic);
        CHECK(traffic.whole == traffic.clients);
        close_bed();
    }
}

static void whatever_fails_each_request_is_done_once(void)
{
    uint64_t whole = 0;
    uint64_t clients = 0;
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + 4 * SEEDS; seed++) {
        open_bed(seed, 1 + (uint32_t)(seed % 8));
        bed.world.fault_percent = seed % 3 ? 50 : 0;
        bed.world.fault_at_max = seed % 5 ? 3000 : 10;
        struct traffic traffic = traffic_of(seed);
        traffic.cancel_in_a_thousand = seed % 3 == 1 ? 0 : 100;
        traffic_run(&traffic);
        whole += traffic.whole;
        clients += traffic.clients;
        close_bed();
    }
    CHECK(whole > 0 && whole < clients);
}

static void the_same_seed_makes_the_same_run(void)
{
    int64_t passed[2];
    uint64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        open_bed(7, 4);
        bed.world.fault_percent = 50;
        struct traffic traffic = traffic_of(7);
        traffic.cancel_in_a_thousand = 50;
        traffic_run(&traffic);
        passed[i] = bed.clock.passed_ns;
        bytes[i] = traffic.bytes;
        close_bed();
    }
    CHECK(passed[0] == passed[1] && bytes[0] == bytes[1]);
}

/* ---- one connection ---- */

static void wait_for(struct call *call)
{
    while (call->done == 0) {
        CHECK(sim_net_turn(&bed.world) >= 0);
    }
    CHECK(call->done == 1);
}

struct pair {
    struct tn_listener *listener;
    struct tn_stream *near;
    struct tn_stream *far;
};

static tn_rc dial(const char *host, uint16_t port, struct tn_stream **stream, const char *text)
{
    struct call call;
    prepare(&call, 1000);
    tn_net_connect(bed.gateway, &(struct tn_endpoint){host, port}, &call.request);
    wait_for(&call);
    *stream = call.request.stream;
    CHECK(!text || strstr(call.request.err.text, text));
    return call.request.rc;
}

static struct pair open_pair(void)
{
    struct pair pair;
    struct tn_err err;
    CHECK_OK(
        tn_net_listen(bed.broker, &(struct tn_endpoint){"0.0.0.0", 1}, 8, &pair.listener, &err),
        err);
    struct call accept;
    prepare(&accept, 0);
    tn_net_accept(pair.listener, &accept.request);
    CHECK(dial("broker", 1, &pair.near, NULL) == TN_OK);
    wait_for(&accept);
    pair.far = accept.request.stream;
    return pair;
}

static void a_connect_that_fails_says_why(void)
{
    open_bed(1, 2);
    struct tn_stream *stream = NULL;
    CHECK(dial("broker", 9, &stream, "connect to broker:9: connection refused") == TN_IO &&
          !stream);
    CHECK(dial("nobody", 9, &stream, "no such name") == TN_IO && !stream);
    sim_net_fault(&bed.world, 3, SIM_LINK_LOST, 0);
    CHECK(dial("broker", 9, &stream, "connect to broker:9: nothing within 1000 ms") == TN_IO);
    CHECK(bed.gateway->under_way == 0 && bed.gateway->streams == 0);
    close_bed();
}

/* At every byte of ten: at most those before it arrive, and often all; then both ends see it. */
static void a_link_is_cut_at_its_byte(void)
{
    uint32_t all = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint64_t at = seed % 10;
        open_bed(seed, 2);
        sim_net_fault(&bed.world, 1, SIM_LINK_CUT, at);
        struct pair pair = open_pair();
        struct call write;
        prepare(&write, 0);
        tn_stream_write(pair.near, tn_bytes_of("0123456789"), &write.request);
        wait_for(&write);
        CHECK(write.request.moved >= at);
        CHECK(write.request.rc == (write.request.moved == 10 ? TN_OK : TN_IO));
        uint64_t got = 0;
        struct call read;
        do {
            unsigned char data[4];
            prepare(&read, 0);
            tn_stream_read(pair.far, data, sizeof data, &read.request);
            wait_for(&read);
            got += read.request.moved;
        } while (read.request.rc == TN_OK);
        CHECK(read.request.rc == TN_IO && got <= at);
        all += got == at;
        prepare(&read, 0);
        tn_stream_read(pair.near, NULL, 0, &read.request);
        wait_for(&read);
        CHECK(read.request.rc == TN_IO);
        close_bed();
    }
    CHECK(all > 10 && all < 50);
}

/* Of a half-open link neither end learns anything; only time-outs end it. */
static void a_link_that_is_gone_is_noticed_by_time_outs_only(void)
{
    open_bed(3, 2);
    sim_net_fault(&bed.world, 1, SIM_LINK_GONE, 4);
    struct pair pair = open_pair();
    struct call write;
    struct call read;
    prepare(&write, 0);
    tn_stream_write(pair.near, tn_bytes_of("0123456789"), &write.request);
    wait_for(&write);
    CHECK(write.request.rc == TN_OK);
    unsigned char data[16];
    size_t got = 0;
    do {
        prepare(&read, 500);
        tn_stream_read(pair.far, data, sizeof data, &read.request);
        wait_for(&read);
        got += read.request.moved;
    } while (read.request.rc == TN_OK);
    CHECK(read.request.rc == TN_AGAIN && got == 4);
    tn_stream_close(pair.near, NULL);
    prepare(&read, 500);
    tn_stream_read(pair.far, data, sizeof data, &read.request);
    wait_for(&read);
    CHECK(read.request.rc == TN_AGAIN);
    close_bed();
}

static void who_does_not_read_slows_the_writer_down(void)
{
    open_bed(4, 2);
    struct pair pair = open_pair();
    static unsigned char bytes[3 * SIM_WINDOW];
    struct call write;
    prepare(&write, 5000);
    tn_stream_write(pair.near, (struct tn_bytes){bytes, sizeof bytes}, &write.request);
    wait_for(&write);
    CHECK(write.request.rc == TN_IO && write.request.moved == SIM_WINDOW);
    close_bed();
}

static void a_killed_host_forgets_its_requests_and_its_peer_sees_a_reset(void)
{
    for (int silent = 0; silent < 2; silent++) {
        open_bed(5, 2);
        struct pair pair = open_pair();
        unsigned char data[4];
        struct call near;
        struct call far;
        prepare(&near, 0);
        prepare(&far, 3000);
        tn_stream_read(pair.near, data, sizeof data, &near.request);
        tn_stream_read(pair.far, data, sizeof data, &far.request);
        sim_net_kill(&bed.world, bed.gateway, silent);
        wait_for(&far);
        CHECK(near.done == 0);
        CHECK(far.request.rc == (silent ? TN_AGAIN : TN_IO));
        struct tn_stream *stream = NULL;
        CHECK(dial("broker", 1, &stream, NULL) == TN_OK); /* the next process */
        close_bed();
    }
}

/* ---- operations ---- */

struct sleeper {
    struct tn_op op; /* first */
    struct tn_request timers[2];
    int steps;
};

static void step_sleeper(struct tn_op *op)
{
    struct sleeper *sleeper = (struct sleeper *)(void *)op;
    if (sleeper->steps++ > 0) {
        tn_op_finish(op, op->rc);
        return;
    }
    tn_op_expect(op, 2);
    for (int i = 0; i < 2; i++) {
        sleeper->timers[i] = (struct tn_request){.op = op};
        tn_net_after(bed.gateway, 10 + 1000 * (uint32_t)i, &sleeper->timers[i]);
    }
}

static void sleeper_done(struct tn_op *op, tn_rc rc)
{
    CHECK(rc == TN_CANCELED && strstr(op->err.text, "cancelled"));
}

static void an_operation_is_woken_once_for_each_request_it_expects(void)
{
    open_bed(6, 2);
    struct tn_ops ops = {0};
    struct sleeper sleeper = {0};
    tn_op_start(&sleeper.op, &ops, step_sleeper, sleeper_done);
    CHECK(tn_ops_run(&ops, 5) == 1);
    while (tn_request_under_way(&sleeper.timers[0])) {
        CHECK(sim_net_turn(&bed.world) >= 0);
    }
    CHECK(tn_ops_run(&ops, 5) == 0);
    tn_request_cancel(&sleeper.timers[1]);
    tn_request_cancel(&sleeper.timers[1]);
    CHECK(sim_net_turn(&bed.world) == 1);
    CHECK(tn_ops_run(&ops, 5) == 1 && sleeper.op.finished);
    CHECK(sim_net_turn(&bed.world) == -1);
    close_bed();
}

static const struct test tests[] = {
    TEST(all_bytes_come_back_over_a_fine_network),
    TEST(whatever_fails_each_request_is_done_once),
    TEST(the_same_seed_makes_the_same_run),
    TEST(a_connect_that_fails_says_why),
    TEST(a_link_is_cut_at_its_byte),
    TEST(a_link_that_is_gone_is_noticed_by_time_outs_only),
    TEST(who_does_not_read_slows_the_writer_down),
    TEST(a_killed_host_forgets_its_requests_and_its_peer_sees_a_reset),
    TEST(an_operation_is_woken_once_for_each_request_it_expects),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
