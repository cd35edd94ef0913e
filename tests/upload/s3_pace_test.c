/* A rate holds: in any ten seconds a target sends as many bytes as it may, within 5%, from 1 KiB/s
 * to 100 MB/s, in files of any size and in parts, also right after the rate was changed. Where
 * links break and the store fails it may send less, but never more.
 *
 * The pace alone is asked at all rates, the whole target at smaller ones, but for a soak. The store
 * at the far end takes bodies of any size and keeps nothing. */
#include "upload/s3_target_private.h"

#include <stdalign.h>

#include "check.h"
#include "given.h"
#include "random.h"
#include "sim/net.h"

enum {
    MEMORY = 1024 * 1024,
    XML_HEAP = 128 * 1024,
    BLOCK = 512,
    ENDS = 24,
    HEAD_MAX = 8 * 1024,
    PIECE = 16 * 1024,
    RATE_MIN = 1024,
    RATE_MAX = 100 * 1000 * 1000,
    RATE_USUAL = 2 * 1000 * 1000, /* through a simulated network, byte by byte; a soak goes on */
    SOAK_SECONDS = 300,
    SAMPLE_MS = 100,
    WINDOW = 10 * 1000 / SAMPLE_MS, /* samples */
    SAMPLES = WINDOW + 30,
    TURNS_MAX = 20 * 1000 * 1000,
};
#define NS_PER_MS INT64_C(1000000)

/* ---- the far end ---- */

struct end {
    struct tn_stream *stream; /* NULL: free */
    struct tn_request reading;
    struct tn_request writing;
    uint64_t body_left;
    uint64_t body_taken; /* of all requests */
    size_t head_size;
    char head[HEAD_MAX];
    char answer[512];
    unsigned char piece[PIECE];
};

struct world {
    struct sim_clock clock;
    struct tn_clock_vtable still; /* of its clock: it doesn't move by being looked at */
    struct sim_net net;
    struct tn_net *here;
    struct tn_net *there;
    struct tn_net_vtable turning;
    struct tn_pool pools[2];
    struct tn_listener *listener;
    struct tn_request accepting;
    struct end ends[ENDS];
    uint64_t random;
    uint32_t fail_percent; /* of answers */
    int answers;
    struct tn_io source;
    uint64_t file_size;
    struct tn_arena arena;
    struct tn_target *target;
    struct tn_err err;
    uint64_t turns;
    int64_t began_ns;
    uint64_t began_bytes;
    uint64_t samples[SAMPLES]; /* bytes that were sent until then */
    uint32_t sample_count;
    atomic_bool stop;
};

static alignas(16) unsigned char pool_memory[2][16 * (BLOCK + 8)];
static alignas(16) unsigned char memory[MEMORY];
static struct world w;

static void read_more(struct end *end)
{
    tn_stream_read(end->stream, end->piece, sizeof end->piece, &end->reading);
}

static void close_end(struct end *end)
{
    if (end->stream) {
        tn_stream_close(end->stream, NULL);
        end->stream = NULL;
    }
}

static const char *body_of(const char *head)
{
    return strncmp(head, "POST", 4) != 0 ? ""
           : strstr(head, "?uploads= ")  ? "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                                           "</InitiateMultipartUploadResult>"
                                         : "<CompleteMultipartUploadResult><ETag>e</ETag>"
                                           "</CompleteMultipartUploadResult>";
}

/* HEAD: nothing is there. */
static void answer(struct end *end)
{
    bool fails = random_below(&w.random, 100) < w.fail_percent;
    int status = fails ? 503 : strncmp(end->head, "HEAD", 4) == 0 ? 404 : 200;
    const char *body = fails ? "" : body_of(end->head);
    int size =
        snprintf(end->answer, sizeof end->answer,
                 "HTTP/1.1 %d X\r\nx-amz-request-id: %d\r\n%sContent-Length: %zu\r\n\r\n%s", status,
                 ++w.answers, status == 200 ? "ETag: \"e\"\r\n" : "", strlen(body), body);
    CHECK(size > 0 && (size_t)size < sizeof end->answer);
    end->head_size = 0;
    tn_stream_write(end->stream,
                    (struct tn_bytes){(const unsigned char *)end->answer, (size_t)size},
                    &end->writing);
}

/* What belongs to a head; returns how many bytes of the piece that is. */
static size_t take_head(struct end *end, const unsigned char *data, size_t size)
{
    static const char field[] = "content-length: ";
    for (size_t i = 0; i < size; i++) {
        CHECK(end->head_size + 1 < HEAD_MAX);
        end->head[end->head_size++] = (char)data[i];
        end->head[end->head_size] = 0;
        if (end->head_size >= 4 && memcmp(end->head + end->head_size - 4, "\r\n\r\n", 4) == 0) {
            const char *at = strstr(end->head, field);
            end->body_left = at ? strtoull(at + sizeof field - 1, NULL, 10) : 0;
            if (end->body_left == 0) {
                answer(end);
            }
            return i + 1;
        }
    }
    return size;
}

static bool in_body(const struct end *end)
{
    return end->body_left > 0;
}

static void on_read(struct tn_request *request)
{
    struct end *end = request->user;
    if (!end->stream) {
        return;
    }
    if (request->rc != TN_OK || request->moved == 0) {
        close_end(end);
        return;
    }
    for (size_t at = 0; at < request->moved;) {
        size_t left = request->moved - at;
        if (!in_body(end)) {
            at += take_head(end, end->piece + at, left);
            continue;
        }
        size_t taken = end->body_left < left ? (size_t)end->body_left : left;
        end->body_left -= taken;
        end->body_taken += taken;
        at += taken;
        if (!in_body(end)) {
            answer(end);
        }
    }
    read_more(end);
}

static void on_written(struct tn_request *request)
{
    struct end *end = request->user;
    if (end->stream && request->rc != TN_OK) {
        close_end(end);
    }
}

static void on_accept(struct tn_request *request)
{
    struct end *end = NULL;
    if (request->rc != TN_OK) {
        return;
    }
    for (int i = 0; i < ENDS && !end; i++) {
        bool busy = w.ends[i].stream || tn_request_under_way(&w.ends[i].reading) ||
                    tn_request_under_way(&w.ends[i].writing);
        end = busy ? NULL : &w.ends[i];
    }
    CHECK(end);
    end->stream = request->stream;
    end->reading = (struct tn_request){.done = on_read, .user = end};
    end->writing = (struct tn_request){.done = on_written, .user = end};
    end->body_left = 0;
    end->head_size = 0;
    read_more(end);
    tn_net_accept(w.listener, request);
}

/* ---- the source: zeroes ---- */

static tn_rc open_zeroes(struct tn_io *io, const char *path, int *file, uint64_t *size,
                         struct tn_err *err)
{
    (void)io;
    (void)path;
    (void)err;
    *file = 1;
    *size = w.file_size;
    return TN_OK;
}

static tn_rc read_zeroes(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                         size_t *got, struct tn_err *err)
{
    (void)io;
    (void)file;
    (void)offset;
    (void)err;
    memset(data, 0, size);
    *got = size;
    return TN_OK;
}

static void close_zeroes(struct tn_io *io, int file)
{
    (void)io;
    (void)file;
}

static const struct tn_io_vtable zeroes = {
    .open = open_zeroes, .read = read_zeroes, .close = close_zeroes};

/* ---- the world ---- */

static int64_t still_ns(struct tn_clock *clock)
{
    (void)clock;
    return w.clock.passed_ns;
}

static int64_t still_ms(struct tn_clock *clock)
{
    (void)clock;
    return w.clock.wall_ms;
}

static uint64_t still_random(struct tn_clock *clock)
{
    (void)clock;
    return random_next(&w.random);
}

/* Between two turns no time passes, so a sample is exact. */
static int turn_and_sample(struct tn_net *net, uint32_t wait_ms)
{
    int64_t due_ns = w.began_ns + (int64_t)w.sample_count * SAMPLE_MS * NS_PER_MS;
    CHECK(w.turns++ < TURNS_MAX);
    if (w.sample_count < SAMPLES && w.clock.passed_ns >= due_ns) {
        w.samples[w.sample_count++] = net->counts.bytes_written - w.began_bytes;
        atomic_store(&w.stop, w.sample_count == SAMPLES);
        due_ns += SAMPLE_MS * NS_PER_MS;
    }
    int64_t left_ms = (due_ns - w.clock.passed_ns) / NS_PER_MS;
    bool sooner = w.sample_count < SAMPLES && left_ms < (int64_t)wait_ms;
    return sim_net_wait(&w.net, sooner ? left_ms : (int64_t)wait_ms);
}

static void listen_there(void)
{
    const struct tn_endpoint at = {"store", 80};
    tn_rc rc = tn_net_listen(w.there, &at, ENDS, &w.listener, &w.err);
    CHECK_OK(rc, w.err);
    w.accepting = (struct tn_request){.done = on_accept};
    tn_net_accept(w.listener, &w.accepting);
}

static void open_target(uint32_t rate, uint32_t part_size)
{
    static const struct tn_s3_options options = {
        .endpoint = "http://store", .access_key = "a", .secret_key = "s"};
    const struct tn_s3_target_spec spec = {.net = w.here,
                                           .clock = &w.clock.clock,
                                           .arena = &w.arena,
                                           .where = "s3://bucket/lake",
                                           .options = &options,
                                           .rate = rate,
                                           .part_size = part_size};
    tn_arena_init(&w.arena, memory, sizeof memory);
    tn_rc rc = tn_s3_target_open(&spec, &w.target, &w.err);
    CHECK_OK(rc, w.err);
    w.target->stop = &w.stop;
}

static void open_world(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    check_seed = seed;
    w.random = seed * 91 + 1;
    w.source.vtable = &zeroes;
    sim_clock_init(&w.clock, seed);
    sim_net_init(&w.net, &w.clock, seed);
    for (int i = 0; i < 2; i++) {
        tn_pool_init(&w.pools[i], pool_memory[i], sizeof pool_memory[i], BLOCK);
    }
    w.still = *w.clock.clock.vtable;
    w.still.monotonic_ns = still_ns;
    w.still.now_ms = still_ms;
    w.still.random = still_random;
    w.clock.clock.vtable = &w.still;
    w.here = sim_net_host(&w.net, "device", &w.pools[0]);
    w.there = sim_net_host(&w.net, "store", &w.pools[1]);
    w.turning = *w.here->vtable;
    w.turning.turn = turn_and_sample;
    w.here->vtable = &w.turning;
    listen_there();
}

static void close_world(void)
{
    tn_s3_target_close(w.target);
    sim_net_deinit(&w.net);
    check_seed = 0;
}

/* From now on it is sampled. */
static void begin_samples(void)
{
    w.sample_count = 0;
    w.began_ns = w.clock.passed_ns;
    w.began_bytes = w.here->counts.bytes_written;
    atomic_store(&w.stop, false);
}

/* Files of these sizes, until there are samples of all the time. */
static void send_for_a_while(uint64_t size_min, uint64_t size_max)
{
    begin_samples();
    for (int i = 0; !atomic_load(&w.stop); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "t/data-%d", i);
        w.file_size = size_min + random_next(&w.random) % (size_max - size_min + 1);
        tn_rc rc = w.target->vtable->send(w.target, &w.source, path, w.file_size, &w.err);
        if (rc != TN_OK) { /* stopped, or a store that fails had enough of it */
            w.target->vtable->drop(w.target);
        }
    }
    w.target->vtable->drop(w.target);
}

/* In any ten seconds. */
static void check_rate(uint32_t rate, bool also_least)
{
    for (uint32_t i = 0; i + WINDOW < SAMPLES; i++) {
        double bytes = (double)(w.samples[i + WINDOW] - w.samples[i]);
        double share = bytes / 10 / rate;
        if (share > 1.05 || (also_least && share < 0.95)) {
            FAIL("%u bytes a second: %.4f of it from %u ms on", (unsigned)rate, share,
                 (unsigned)(i * SAMPLE_MS));
        }
    }
}

/* ---- tests ---- */

/* As many small ones as large ones; the first two are the ends. */
static uint32_t draw_rate(uint64_t number, uint32_t most)
{
    uint32_t octaves = 0;
    for (; (uint64_t)RATE_MIN << octaves <= most; octaves++) {
    }
    uint32_t low = RATE_MIN << random_below(&w.random, octaves);
    uint32_t rate = low + random_below(&w.random, low);
    return number == 1 ? RATE_MIN : number == 2 || rate > most ? most : rate;
}

/* The pace alone: somebody always wants to send, pieces of any size, and looks at any time. */
static void pace_in_a_world(uint64_t number)
{
    static struct tn_s3_target target;
    w.random = given_number("SEED", 1) * 77 + number;
    check_seed = number;
    w.clock = (struct sim_clock){.wall_ms = 0};
    w.still = (struct tn_clock_vtable){.monotonic_ns = still_ns};
    w.clock.clock.vtable = &w.still;
    uint32_t rate = draw_rate(number, RATE_MAX);
    memset(&target, 0, sizeof target);
    target.clock = &w.clock.clock;
    atomic_init(&target.rate, rate);
    uint64_t bytes = 0;
    for (w.sample_count = 0; w.sample_count < SAMPLES;) {
        size_t size = 1 + random_below(&w.random, TN_S3_OUT_SIZE);
        size_t allowed = tn_s3_pace_allows(&target, size);
        CHECK(allowed <= size);
        tn_s3_pace_took(&target, allowed);
        bytes += allowed;
        if (allowed == 0) { /* as the timer wakes it, or something else does */
            uint32_t wait_ms = tn_s3_pace_wait_ms(&target);
            CHECK(wait_ms >= 1 && wait_ms <= 1000);
            bool early = random_below(&w.random, 3) == 0;
            w.clock.passed_ns += (early ? random_below(&w.random, wait_ms) : wait_ms) * NS_PER_MS;
        }
        w.clock.passed_ns += random_below(&w.random, 1000) * 10; /* up to 10 us a look */
        for (; w.sample_count < SAMPLES &&
               w.clock.passed_ns >= (int64_t)w.sample_count * SAMPLE_MS * NS_PER_MS;
             w.sample_count++) {
            w.samples[w.sample_count] = bytes;
        }
    }
    check_rate(rate, true);
    check_seed = 0;
}

static void pace_holds_from_a_kilobyte_to_a_hundred_megabytes(void)
{
    double until = given_until(4, 4);
    uint64_t number = 0;
    do {
        pace_in_a_world(++number);
    } while (seconds_now() < until || number < 50);
}

/* A file that is sent in a moment, or takes the whole time, or goes in parts. */
static uint64_t draw_size(uint32_t rate)
{
    uint64_t tenths = 1 + random_below(&w.random, 150);
    return (uint64_t)rate * tenths / 10 + 1;
}

static void rate_in_a_world(uint64_t number, bool calm)
{
    open_world(given_number("SEED", 1) * 1000 + number);
    uint32_t most = given_number("CUT_SECONDS", 4) < SOAK_SECONDS ? RATE_USUAL : RATE_MAX;
    uint32_t rate = draw_rate(number, most);
    uint64_t size = draw_size(rate);
    uint32_t part = (uint32_t)(size / (1 + random_below(&w.random, 8)) + 1);
    /* A link's window is 8 KiB, and a file in parts begins and ends with nothing else under way:
     * with a delay less fits through. */
    bool slow = rate <= 30 * 1000 && size >= (uint64_t)4 * rate;
    w.net.delay_ms_max = slow ? 20 : 0;
    if (!calm) {
        w.fail_percent = random_below(&w.random, 40);
        w.net.fault_percent = random_below(&w.random, 60);
        w.net.fault_at_max = 1 + random_below(&w.random, 4 * rate);
    }
    open_target(rate, part);
    send_for_a_while(size / 2, size);
    check_rate(rate, calm);
    if (random_below(&w.random, 2) == 0) {
        uint32_t next = draw_rate(0, RATE_USUAL);
        w.net.delay_ms_max = 0;
        tn_s3_target_set_rate(w.target, next);
        send_for_a_while(next / 20 + 1, (uint64_t)next * 2);
        check_rate(next, calm);
    }
    close_world();
}

static void each_world(bool calm)
{
    double until = given_until(4, 4);
    uint64_t number = 0;
    do {
        rate_in_a_world(++number, calm);
    } while (seconds_now() < until);
}

static void rate_holds_within_a_twentieth(void)
{
    each_world(true);
}

static void rate_is_never_exceeded_where_things_fail(void)
{
    each_world(false);
}

/* A body that stands still for long is refused by a store, so none waits for another's end. */
static void all_connections_go_on_at_a_rate(void)
{
    enum { LINKS = TN_S3_TARGET_LINKS, RATE = 4000, SIZE = 40 * 1000 };
    open_world(given_number("SEED", 1));
    open_target(RATE, 0);
    begin_samples();
    w.file_size = SIZE;
    for (int i = 0; i < LINKS; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "t/data-%d", i);
        CHECK(w.target->vtable->send(w.target, &w.source, path, SIZE, &w.err) == TN_OK);
    }
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_CANCELED);
    uint64_t all = 0;
    for (int i = 0; i < LINKS; i++) {
        all += w.ends[i].body_taken;
    }
    CHECK(all > 12 * RATE * 9 / 10);
    for (int i = 0; i < LINKS; i++) {
        CHECK(w.ends[i].body_taken > all / LINKS / 2);
    }
    w.target->vtable->drop(w.target);
    close_world();
}

/* From as fast as it goes to a rate, and back. */
static void rate_may_come_and_go(void)
{
    open_world(given_number("SEED", 1));
    w.net.delay_ms_max = 0;
    open_target(0, 0);
    begin_samples();
    w.file_size = 3 * 1000 * 1000;
    CHECK(w.target->vtable->send(w.target, &w.source, "t/first", w.file_size, &w.err) == TN_OK);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_OK);
    CHECK(w.clock.passed_ns - w.began_ns < 1000 * NS_PER_MS);
    tn_s3_target_set_rate(w.target, 50 * 1000);
    send_for_a_while(10 * 1000, 100 * 1000);
    check_rate(50 * 1000, true);
    tn_s3_target_set_rate(w.target, 0);
    begin_samples();
    w.file_size = 3 * 1000 * 1000;
    CHECK(w.target->vtable->send(w.target, &w.source, "t/last", w.file_size, &w.err) == TN_OK);
    CHECK(w.target->vtable->settle(w.target, &w.err) == TN_OK);
    CHECK(w.clock.passed_ns - w.began_ns < 1000 * NS_PER_MS);
    close_world();
}

static const struct test tests[] = {
    TEST(pace_holds_from_a_kilobyte_to_a_hundred_megabytes),
    TEST(rate_holds_within_a_twentieth),
    TEST(rate_is_never_exceeded_where_things_fail),
    TEST(all_connections_go_on_at_a_rate),
    TEST(rate_may_come_and_go),
};

int main(int argc, char **argv)
{
    static alignas(16) unsigned char xml_memory[XML_HEAP];
    static struct tn_heap xml;
    tn_heap_init(&xml, xml_memory, sizeof xml_memory, true);
    tn_xml_use_heap(&xml);
    return run_tests(argc, argv, tests, COUNT(tests));
}
