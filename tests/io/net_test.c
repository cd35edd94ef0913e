/* The door on the system's sockets: the same promises as in the simulator, over loopback and Unix
 * sockets, and what only the system has: names, files of sockets, threads, the C library's malloc.
 */
#include "io/net_uv.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "counted.h"
#include "random.h"
#include "sim/call.h"
#include "sim/traffic.h"
#include "temp.h"

enum { BLOCK = 4096, BLOCKS = 6, STREAMS = 20, HEAP_SIZE = 64 * 1024, WAIT_MS = 200 };

static alignas(16) unsigned char heap_memory[HEAP_SIZE];
static alignas(16) unsigned char pool_memory[BLOCKS * (BLOCK + 8)];
static alignas(16) unsigned char arena_memory[64 * 1024];
static struct tn_heap heap;
static struct tn_pool pool;
static struct tn_net *net;

static void open_net(void)
{
    static struct tn_arena arena;
    struct tn_err err;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_pool_init(&pool, pool_memory, sizeof pool_memory, BLOCK);
    tn_arena_init(&arena, arena_memory, sizeof arena_memory);
    struct tn_net_spec spec = {.heap = &heap,
                               .arena = &arena,
                               .buffers = &pool,
                               .clock = &tn_clock_system,
                               .streams_max = STREAMS};
    CHECK_OK(tn_net_uv_open(&spec, &net, &err), err);
}

static uint64_t seed_of_test(void)
{
    const char *text = getenv("SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

/* ---- traffic ---- */

static int turn_net(void *user)
{
    (void)user;
    return tn_net_turn(net, WAIT_MS);
}

static struct traffic traffic_of(uint64_t seed, const char *host)
{
    return (struct traffic){
        .client = net,
        .server = net,
        .turn = turn_net,
        .listen = {.host = host},
        .seed = seed,
        .clients = 1 + (uint32_t)(seed % 6),
        .bytes_max = 300000,
        .write_max = seed % 2 ? 500 : 40000,
        .timeout_ms = 10000,
    };
}

static void all_bytes_come_back_over_loopback(void)
{
    const char *const hosts[] = {"127.0.0.1", "::1", "127.0.0.1"};
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + 12; seed++) {
        struct traffic traffic = traffic_of(seed, hosts[seed % 3]);
        struct tn_listener *listener = NULL;
        struct tn_err err;
        if (tn_net_listen(net, &traffic.listen, 1, &listener, &err) != TN_OK) {
            continue; /* a machine without IPv6 */
        }
        tn_net_close_listener(listener);
        traffic.fine = true;
        traffic.connect_host = seed % 3 == 2 ? "localhost" : NULL;
        traffic_run(&traffic);
        CHECK(traffic.whole == traffic.clients);
    }
}

static void all_bytes_come_back_over_a_unix_socket(void)
{
    char folder[TEMP_SIZE];
    char host[TEMP_SIZE + 16];
    temp_make(folder);
    (void)snprintf(host, sizeof host, "unix:%s/socket", folder);
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + 6; seed++) {
        struct traffic traffic = traffic_of(seed, host);
        traffic.fine = true;
        traffic_run(&traffic);
    }
    temp_remove(folder);
}

static void whoever_cancels_each_request_is_done_once(void)
{
    uint64_t whole = 0;
    for (uint64_t seed = seed_of_test(); seed < seed_of_test() + 40; seed++) {
        struct traffic traffic = traffic_of(seed, "127.0.0.1");
        traffic.cancel_in_a_thousand = 5 + (uint32_t)(seed % 200);
        traffic_run(&traffic);
        whole += traffic.whole;
    }
    CHECK(whole > 0);
}

/* ---- one connection ---- */

static void wait_for(struct call *call)
{
    while (call->done == 0) {
        (void)tn_net_turn(net, WAIT_MS);
    }
    CHECK(call->done == 1);
}

static tn_rc dial(const char *host, uint16_t port, struct tn_stream **stream, const char *text)
{
    struct call call;
    prepare(&call, 8000);
    tn_net_connect(net, &(struct tn_endpoint){host, port}, &call.request);
    CHECK(call.done == 0);
    wait_for(&call);
    *stream = call.request.stream;
    if (text && !strstr(call.request.err.text, text)) {
        (void)fprintf(stderr, "%s\n", call.request.err.text);
        CHECK(false);
    }
    return call.request.rc;
}

struct pair {
    struct tn_listener *listener;
    struct tn_stream *near;
    struct tn_stream *far;
};

static struct pair open_pair(void)
{
    struct pair pair;
    struct tn_err err;
    struct tn_endpoint at = {"127.0.0.1", 0};
    CHECK_OK(tn_net_listen(net, &at, 8, &pair.listener, &err), err);
    struct call accept;
    prepare(&accept, 0);
    tn_net_accept(pair.listener, &accept.request);
    CHECK(dial("127.0.0.1", pair.listener->port, &pair.near, NULL) == TN_OK);
    wait_for(&accept);
    CHECK_OK(accept.request.rc, accept.request.err);
    pair.far = accept.request.stream;
    CHECK(pair.near->local && pair.far->local);
    CHECK(strncmp(pair.far->peer, "127.0.0.1:", 10) == 0);
    return pair;
}

static void close_stream(struct tn_stream *stream)
{
    struct call call;
    prepare(&call, 0);
    tn_stream_close(stream, &call.request);
    wait_for(&call);
}

static void close_pair(struct pair *pair)
{
    close_stream(pair->near);
    close_stream(pair->far);
    tn_net_close_listener(pair->listener);
    CHECK(net->under_way == 0 && net->streams == 0);
}

static void a_connect_that_fails_says_why(void)
{
    struct tn_stream *stream = NULL;
    struct tn_err err;
    struct tn_listener *listener = NULL;
    struct tn_endpoint at = {"127.0.0.1", 0};
    CHECK_OK(tn_net_listen(net, &at, 1, &listener, &err), err);
    uint16_t port = listener->port;
    CHECK(tn_net_listen(net, &(struct tn_endpoint){"127.0.0.1", port}, 1, &listener, &err) ==
          TN_EXISTS);
    tn_net_close_listener(listener);
    (void)tn_net_turn(net, 0);
    CHECK(dial("127.0.0.1", port, &stream, "connection refused") == TN_IO && !stream);
    CHECK(dial("localhost", port, &stream, "connect to localhost:") == TN_IO && !stream);
    CHECK(dial("no-such-name.invalid", 80, &stream, "name") == TN_IO && !stream);
    CHECK(dial("unix:/nowhere/socket", 0, &stream, "No such file") == TN_IO && !stream);
    char path[300] = "unix:";
    memset(path + 5, 'p', sizeof path - 6);
    path[sizeof path - 1] = 0;
    CHECK(dial(path, 0, &stream, "too long") == TN_INVALID && !stream);
    CHECK(tn_net_listen(net, &(struct tn_endpoint){"a.name", 80}, 1, &listener, &err) ==
          TN_INVALID);
    CHECK(net->under_way == 0 && net->streams == 0);
}

static void a_read_that_times_out_loses_nothing(void)
{
    struct pair pair = open_pair();
    unsigned char data[8];
    struct call read;
    struct call write;
    prepare(&read, 20);
    tn_stream_read(pair.far, data, sizeof data, &read.request);
    wait_for(&read);
    CHECK(read.request.rc == TN_AGAIN && strstr(read.request.err.text, "nothing within 20 ms"));
    prepare(&write, 1000);
    tn_stream_write(pair.near, tn_bytes_of("hello"), &write.request);
    wait_for(&write);
    CHECK(write.request.rc == TN_OK && write.request.moved == 5);
    prepare(&read, 1000);
    tn_stream_read(pair.far, data, sizeof data, &read.request);
    wait_for(&read);
    CHECK(read.request.rc == TN_OK && read.request.moved == 5 && memcmp(data, "hello", 5) == 0);
    close_pair(&pair);
}

static void who_does_not_read_slows_the_writer_down(void)
{
    struct pair pair = open_pair();
    static unsigned char bytes[64 * 1024 * 1024];
    struct call write;
    prepare(&write, 300);
    tn_stream_write(pair.near, (struct tn_bytes){bytes, sizeof bytes}, &write.request);
    wait_for(&write);
    CHECK(write.request.rc == TN_IO && write.request.moved < sizeof bytes);
    prepare(&write, 300);
    tn_stream_write(pair.near, tn_bytes_of("more"), &write.request);
    wait_for(&write);
    CHECK(write.request.rc == TN_IO && strstr(write.request.err.text, "given up half-way"));
    close_stream(pair.near);
    struct call read;
    size_t got = 0;
    do { /* and the peer can't take the half for the whole */
        prepare(&read, 1000);
        tn_stream_read(pair.far, bytes, sizeof bytes, &read.request);
        wait_for(&read);
        got += read.request.moved;
    } while (read.request.rc == TN_OK && read.request.moved > 0);
    CHECK(read.request.rc == TN_IO && got < sizeof bytes);
    close_stream(pair.far);
    tn_net_close_listener(pair.listener);
}

/* More than sockets hold, so that it leaves in many parts. */
static void a_long_write_arrives_in_order(void)
{
    static unsigned char bytes[16 * 1024 * 1024];
    static unsigned char data[100000];
    uint64_t random = seed_of_test();
    for (size_t i = 0; i + 8 <= sizeof bytes; i += 8) {
        tn_store_u64(bytes + i, random_next(&random));
    }
    struct pair pair = open_pair();
    struct call write;
    struct call read;
    prepare(&write, 0);
    tn_stream_write(pair.near, (struct tn_bytes){bytes, sizeof bytes}, &write.request);
    for (size_t at = 0; at < sizeof bytes; at += read.request.moved) {
        prepare(&read, 10000);
        tn_stream_read(pair.far, data, 1 + random_below(&random, sizeof data), &read.request);
        wait_for(&read);
        CHECK_OK(read.request.rc, read.request.err);
        CHECK(read.request.moved > 0 && memcmp(data, bytes + at, read.request.moved) == 0);
    }
    wait_for(&write);
    CHECK(write.request.rc == TN_OK && write.request.moved == sizeof bytes);
    close_pair(&pair);
}

/* A buffer of the door's is taken when there are bytes, not before; and when there is none left,
 * the read goes on as soon as one is given back. */
static void reads_without_a_place_wait_for_a_buffer(void)
{
    struct pair pair = open_pair();
    struct call read;
    struct call write;
    void *taken[BLOCKS];
    prepare(&read, 0);
    tn_stream_read(pair.far, NULL, 0, &read.request);
    (void)tn_net_turn(net, 10);
    CHECK(pool.used == 0);
    uint32_t count = 0;
    while (tn_pool_free(&pool) > 0) {
        taken[count++] = tn_pool_take(&pool);
    }
    prepare(&write, 0);
    tn_stream_write(pair.near, tn_bytes_of("hello"), &write.request);
    wait_for(&write);
    int64_t before = tn_clock_system.vtable->monotonic_ns(&tn_clock_system);
    for (int i = 0; i < 5; i++) {
        (void)tn_net_turn(net, 10);
    }
    CHECK(tn_clock_system.vtable->monotonic_ns(&tn_clock_system) - before > 40 * 1000000);
    CHECK(read.done == 0); /* and it waited, it didn't spin */
    tn_net_give(net, taken[--count]);
    wait_for(&read);
    CHECK(read.request.rc == TN_OK && read.request.moved == 5);
    tn_net_give(net, read.request.data);
    while (count > 0) {
        tn_net_give(net, taken[--count]);
    }
    close_pair(&pair);
}

static void accepts_wait_while_enough_streams_are_open(void)
{
    struct tn_err err;
    struct tn_listener *listener = NULL;
    struct tn_endpoint at = {"127.0.0.1", 0};
    CHECK_OK(tn_net_listen(net, &at, 1, &listener, &err), err);
    struct tn_stream *near[2];
    struct call accept;
    prepare(&accept, 0);
    tn_net_accept(listener, &accept.request);
    CHECK(dial("127.0.0.1", listener->port, &near[0], NULL) == TN_OK);
    wait_for(&accept);
    struct tn_stream *far = accept.request.stream;
    CHECK(dial("127.0.0.1", listener->port, &near[1], NULL) == TN_OK);
    prepare(&accept, 50);
    tn_net_accept(listener, &accept.request);
    wait_for(&accept);
    CHECK(accept.request.rc == TN_AGAIN && !accept.request.stream);
    prepare(&accept, 0);
    tn_net_accept(listener, &accept.request);
    close_stream(far);
    wait_for(&accept);
    CHECK(accept.request.rc == TN_OK);
    close_stream(accept.request.stream);
    close_stream(near[0]);
    close_stream(near[1]);
    tn_net_close_listener(listener);
}

static void no_more_streams_than_there_are(void)
{
    struct tn_err err;
    struct tn_listener *listener = NULL;
    struct tn_endpoint at = {"127.0.0.1", 0};
    CHECK_OK(tn_net_listen(net, &at, 1, &listener, &err), err);
    struct tn_stream *streams[STREAMS + 1];
    for (int i = 0; i < STREAMS; i++) {
        CHECK(dial("127.0.0.1", listener->port, &streams[i], NULL) == TN_OK);
    }
    CHECK(dial("127.0.0.1", listener->port, &streams[STREAMS], "in use") == TN_AGAIN);
    for (int i = 0; i < STREAMS; i++) {
        close_stream(streams[i]);
    }
    tn_net_close_listener(listener);
}

/* The file of a process that died is replaced, that of one that lives is not. */
static void a_unix_socket_is_replaced_when_nobody_answers(void)
{
    char folder[TEMP_SIZE];
    char host[TEMP_SIZE + 16];
    struct tn_err err;
    temp_make(folder);
    (void)snprintf(host, sizeof host, "unix:%s/socket", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)(void *)&address, sizeof address) == 0);
    CHECK(listen(fd, 1) == 0);
    struct tn_endpoint at = {.host = host};
    struct tn_listener *listener = NULL;
    CHECK(tn_net_listen(net, &at, 1, &listener, &err) == TN_EXISTS);
    CHECK(close(fd) == 0);
    CHECK_OK(tn_net_listen(net, &at, 1, &listener, &err), err);
    tn_net_close_listener(listener);
    CHECK(access(address.sun_path, F_OK) != 0);
    temp_remove(folder);
}

static void *wake_net(void *user)
{
    (void)user;
    tn_net_wake(net);
    return NULL;
}

static void a_wake_from_another_thread_ends_the_wait(void)
{
    pthread_t thread;
    int64_t before = tn_clock_system.vtable->monotonic_ns(&tn_clock_system);
    CHECK(pthread_create(&thread, NULL, wake_net, NULL) == 0);
    CHECK(tn_net_turn(net, 60000) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    int64_t passed = tn_clock_system.vtable->monotonic_ns(&tn_clock_system) - before;
    CHECK(passed < INT64_C(30000) * 1000000);
}

static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    (void)number;
    signalled = 1;
}

/* One that the loop's thread holds is not one of the resolver's threads'. */
static void a_signal_that_is_held_waits(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t set;
    (void)sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    for (int i = 0; i < 10; i++) {
        (void)tn_net_turn(net, 10);
        CHECK(signalled == 0);
    }
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    CHECK(signalled == 1);
}

static void a_lookup_that_is_cancelled_is_done_once(void)
{
    struct call call;
    for (int i = 0; i < 10; i++) {
        prepare(&call, 0);
        tn_net_connect(net, &(struct tn_endpoint){"no-such-name.invalid", 80}, &call.request);
        tn_request_cancel(&call.request);
        wait_for(&call);
        CHECK(call.request.rc == TN_CANCELED || call.request.rc == TN_AGAIN);
    }
}

/* ---- timers ---- */

enum { NS_IN_MS = 1000000, SECOND_MS = 1000 };

/* A clock that goes on when it is told to: nobody waits for it. */
struct told_clock {
    struct tn_clock clock; /* first */
    int64_t ns;
};

static int64_t told_ns(struct tn_clock *clock)
{
    return ((struct told_clock *)(void *)clock)->ns;
}

static const struct tn_clock_vtable told_vtable = {.monotonic_ns = told_ns};
static struct told_clock told;

static void use_told_clock(void)
{
    told = (struct told_clock){.clock = {&told_vtable}, .ns = SECOND_MS * (int64_t)NS_IN_MS};
    net->clock = &told.clock;
}

static void pass_ms(int64_t ms)
{
    told.ns += ms * NS_IN_MS;
    (void)tn_net_turn(net, 0);
}

static int64_t system_ns(void)
{
    return tn_clock_system.vtable->monotonic_ns(&tn_clock_system);
}

struct busy {
    struct tn_request request; /* first */
    struct tn_request *then;
    int64_t began_ns; /* when it armed the other one */
};

static void work_long(struct tn_request *request)
{
    struct busy *busy = (struct busy *)(void *)request;
    told.ns += INT64_C(500) * NS_IN_MS;
    tn_net_after(net, 500, busy->then);
}

/* libuv/libuv#1068: a timer counts from the call that arms it, however long the callback took in
 * which that is. */
static void a_timer_that_a_long_callback_arms_takes_its_time(void)
{
    struct call late;
    struct busy busy = {.request = {.done = work_long}, .then = &late.request};
    prepare(&late, 0);
    use_told_clock();
    tn_net_after(net, 10, &busy.request);
    pass_ms(10);
    CHECK(tn_request_under_way(&late.request) && late.done == 0);
    pass_ms(499);
    CHECK(late.done == 0);
    pass_ms(1);
    CHECK(late.done == 1 && late.request.rc == TN_OK);
    net->clock = &tn_clock_system;
}

static void work_for_real(struct tn_request *request)
{
    struct busy *busy = (struct busy *)(void *)request;
    int64_t start = system_ns();
    while (system_ns() - start < INT64_C(40) * NS_IN_MS) {
    }
    busy->began_ns = system_ns();
    tn_net_after(net, 20, busy->then);
}

/* libuv/libuv#1068, where libuv waits: its own time is as old as the callback is long. */
static void a_long_callback_makes_no_wait_shorter(void)
{
    struct call late;
    struct busy busy = {.request = {.done = work_for_real}, .then = &late.request};
    prepare(&late, 0);
    tn_net_after(net, 1, &busy.request);
    int turns = 0;
    for (; late.done == 0; turns++) {
        (void)tn_net_turn(net, WAIT_MS);
    }
    CHECK(system_ns() - busy.began_ns >= INT64_C(20) * NS_IN_MS);
    CHECK(turns < 10); /* it waits in them */
}

/* libuv/libuv#922: one that is long, on a machine of 32 bits too, is waited for, and not lost. */
static void a_long_timer_is_neither_spun_nor_lost(void)
{
    const uint32_t longs[] = {45 * 60 * SECOND_MS, INT32_MAX, UINT32_MAX};
    use_told_clock();
    for (size_t i = 0; i < COUNT(longs); i++) {
        struct call late;
        prepare(&late, 0);
        tn_net_after(net, longs[i], &late.request);
        CHECK(tn_net_patience(net, UINT32_MAX) == longs[i] && late.done == 0);
        pass_ms((int64_t)longs[i] - 1);
        CHECK(tn_net_patience(net, UINT32_MAX) == 1 && late.done == 0);
        pass_ms(1);
        CHECK(late.done == 1);
    }
    net->clock = &tn_clock_system;
}

/* Who waits for a net at its end waits as long as it said, and no longer. */
static void a_net_is_waited_for_until_it_rests(void)
{
    struct call call;
    prepare(&call, 0);
    CHECK(tn_net_rest(net, NULL, 0)); /* nothing is under way */
    tn_net_after(net, 60 * 60 * SECOND_MS, &call.request);
    int64_t start_ns = system_ns();
    CHECK(!tn_net_rest(net, NULL, 30) && call.done == 0);
    CHECK(system_ns() - start_ns >= INT64_C(30) * NS_IN_MS);
    tn_request_cancel(&call.request);
    CHECK(tn_net_rest(net, NULL, 60 * SECOND_MS) && call.done == 1);
    prepare(&call, 0);
    tn_net_after(net, 50, &call.request);
    CHECK(tn_net_rest(net, NULL, 60 * SECOND_MS) && call.done == 1 && call.request.rc == TN_OK);
}

struct regular {
    struct tn_request request; /* first */
    int64_t busy_ms;
    int64_t due_ns;
    int done;
};

enum { PERIOD_MS = 50, PERIODS = 200 };

static void arm_regular(struct regular *regular)
{
    regular->due_ns += PERIOD_MS * (int64_t)NS_IN_MS;
    int64_t left_ms = (regular->due_ns - told.ns) / NS_IN_MS;
    tn_net_after(net, left_ms > 0 ? (uint32_t)left_ms : 0, &regular->request);
}

static void on_forgotten(struct tn_request *request)
{
    CHECK(request->rc == TN_CANCELED);
}

static void on_regular(struct tn_request *request)
{
    struct regular *regular = (struct regular *)(void *)request;
    told.ns += regular->busy_ms * NS_IN_MS;
    regular->done++;
    arm_regular(regular);
}

/* libuv/libuv#1068: who arms for what is left of a period keeps it, whatever callbacks take. */
static void timers_that_repeat_keep_their_period(void)
{
    struct regular all[] = {{.busy_ms = 14}, {.busy_ms = 1}};
    use_told_clock();
    int64_t end_ns = told.ns + (int64_t)PERIODS * PERIOD_MS * NS_IN_MS;
    for (size_t i = 0; i < COUNT(all); i++) {
        all[i].request.done = on_regular;
        all[i].due_ns = told.ns;
        arm_regular(&all[i]);
    }
    while (told.ns < end_ns) {
        pass_ms(1);
    }
    for (size_t i = 0; i < COUNT(all); i++) {
        CHECK(all[i].done >= PERIODS - 1 && all[i].done <= PERIODS);
        tn_request_cancel(&all[i].request);
        all[i].request.done = on_forgotten;
    }
    (void)tn_net_turn(net, 0);
    net->clock = &tn_clock_system;
}

static void endpoints_are_read_as_people_write_them(void)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        uint16_t port;
    } cases[] = {
        {"broker:1883", "broker", 1883},
        {"[::1]:80", "::1", 80},
        {"unix:/run/a:b", "unix:/run/a:b", 0},
        {"10.0.0.1:65535", "10.0.0.1", 65535},
        {"broker", NULL, 0},
        {"broker:", NULL, 0},
        {"broker:65536", NULL, 0},
        {"broker:99999999999", NULL, 0},
        {":80", NULL, 0},
        {"[]:80", NULL, 0},
        {"::1:80", NULL, 0},
        {"a:b:80", NULL, 0},
        {"[broker]:80", NULL, 0},
        {"[::1]", NULL, 0},
        {"[::1]80", NULL, 0},
        {"[::1:80", NULL, 0},
        {"broker:8x", NULL, 0},
        {"broker:+8", NULL, 0},
        {"unix:", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char host[TN_HOST_SIZE];
        struct tn_endpoint endpoint = {0};
        struct tn_err err;
        tn_rc rc = tn_endpoint_parse(cases[i].text, host, &endpoint, &err);
        CHECK((rc == TN_OK) == (cases[i].host != NULL));
        CHECK(rc != TN_OK
                  ? rc == TN_INVALID && strstr(err.text, "expected host:port")
                  : strcmp(endpoint.host, cases[i].host) == 0 && endpoint.port == cases[i].port);
    }
}

static void an_endpoint_without_a_port_has_the_usual_one(void)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        uint16_t port;
    } cases[] = {
        {"broker", "broker", 7},   {"broker:80", "broker", 80},
        {"[::1]", "::1", 7},       {"[::1]:65535", "::1", 65535},
        {"broker:0", NULL, 0},     {"broker:", NULL, 0},
        {"broker:65536", NULL, 0}, {"::1", NULL, 0},
        {"[broker]", NULL, 0},     {"[::1]x", NULL, 0},
        {":80", NULL, 0},          {"", NULL, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char host[TN_HOST_SIZE];
        struct tn_endpoint endpoint = {0};
        struct tn_err err;
        tn_rc rc = tn_endpoint_parse_or(cases[i].text, 7, host, &endpoint, &err);
        CHECK((rc == TN_OK) == (cases[i].host != NULL));
        CHECK(rc != TN_OK
                  ? rc == TN_INVALID && strstr(err.text, "expected a host")
                  : strcmp(endpoint.host, cases[i].host) == 0 && endpoint.port == cases[i].port);
    }
}

/* But for names: the resolver's threads are its own. */
static void a_steady_run_takes_nothing_from_the_system(void)
{
    uint64_t before = malloc_calls_all;
    struct traffic traffic = traffic_of(3, "127.0.0.1");
    traffic.fine = true;
    traffic_run(&traffic);
    CHECK(malloc_calls_all == before);
    before = malloc_calls;
    struct tn_stream *stream = NULL;
    CHECK(dial("localhost", 1, &stream, NULL) == TN_IO);
    CHECK(malloc_calls == before);
    void *volatile block = malloc(1);
    free(block);
    CHECK(!COUNTS_MALLOC || malloc_calls == before + 1);
}

static const struct test tests[] = {
    TEST(endpoints_are_read_as_people_write_them),
    TEST(an_endpoint_without_a_port_has_the_usual_one),
    TEST(a_steady_run_takes_nothing_from_the_system), /* before names are looked up */
    TEST(all_bytes_come_back_over_loopback),
    TEST(all_bytes_come_back_over_a_unix_socket),
    TEST(whoever_cancels_each_request_is_done_once),
    TEST(a_connect_that_fails_says_why),
    TEST(a_read_that_times_out_loses_nothing),
    TEST(who_does_not_read_slows_the_writer_down),
    TEST(a_long_write_arrives_in_order),
    TEST(reads_without_a_place_wait_for_a_buffer),
    TEST(accepts_wait_while_enough_streams_are_open),
    TEST(no_more_streams_than_there_are),
    TEST(a_unix_socket_is_replaced_when_nobody_answers),
    TEST(a_wake_from_another_thread_ends_the_wait),
    TEST(a_signal_that_is_held_waits),
    TEST(a_timer_that_a_long_callback_arms_takes_its_time),
    TEST(a_long_callback_makes_no_wait_shorter),
    TEST(a_long_timer_is_neither_spun_nor_lost),
    TEST(a_net_is_waited_for_until_it_rests),
    TEST(timers_that_repeat_keep_their_period),
    TEST(a_lookup_that_is_cancelled_is_done_once),
};

int main(int argc, char **argv)
{
    open_net();
    int rc = run_tests(argc, argv, tests, COUNT(tests));
    tn_net_close(net);
    tn_heap_check(&heap);
    return rc;
}
