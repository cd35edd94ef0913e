/* A man in the middle of a client and a server. The bytes are his edits, five bytes each: where in
 * which direction, and what he changes, drops, puts in or cuts. Whatever he does, each request is
 * done once, nothing he made is read, and all memory comes back. */
#include <stdalign.h>

#include "check.h"
#include "fuzz/fuzz.h"
#include "fuzz/tls_certificates.h"
#include "io/tls.h"
#include "io/tls_memory.h"
#include "random.h"

enum { EDIT_SIZE = 5, IN_MAX = 16 * 1024, STEPS_MAX = 4000, BLOCK = 1024, HEAP_SIZE = 1 << 20 };

struct end {
    struct tn_stream stream; /* first */
    struct end *other;
    struct tn_request *reading;
    struct tn_request *writing;
    uint64_t seen; /* bytes that were sent to it, before edits */
    unsigned char in[IN_MAX];
    size_t in_size;
    bool ended;
};

static struct tn_net net;
static struct tn_heap heap;
static struct tn_pool pool;
static struct end ends[2];
static struct tn_clock fuzz_clock;
static uint64_t random_state;
static const uint8_t *edits;
static size_t edit_count;
static struct tn_tls_config *client;
static struct tn_tls_config *server;

/* ---- a clock that stands still ---- */

static int64_t now_ms(struct tn_clock *clock)
{
    (void)clock;
    return INT64_C(1893456000000); /* 2030 */
}

static int64_t monotonic_ns(struct tn_clock *clock)
{
    (void)clock;
    return 1;
}

static uint64_t random_bits(struct tn_clock *clock)
{
    (void)clock;
    return random_next(&random_state);
}

static const struct tn_clock_vtable clock_vtable = {now_ms, now_ms, monotonic_ns, random_bits};

/* ---- streams in memory ---- */

static struct end *end_of(struct tn_stream *stream)
{
    return (struct end *)(void *)stream;
}

static void stop_read(struct tn_request *request)
{
    ((struct end *)request->owner)->reading = NULL;
}

static void stop_write(struct tn_request *request)
{
    ((struct end *)request->owner)->writing = NULL;
}

static void start_read(struct tn_stream *stream, struct tn_request *request)
{
    tn_request_begin(request, &net, stream, stop_read, "read", TN_AGAIN);
    end_of(stream)->reading = request;
}

static void start_write(struct tn_stream *stream, struct tn_request *request)
{
    tn_request_begin(request, &net, stream, stop_write, "write", TN_IO);
    end_of(stream)->writing = request;
}

static void start_close(struct tn_stream *stream, struct tn_request *request)
{
    struct end *end = end_of(stream);
    CHECK(!end->reading && !end->writing);
    end->other->ended = true;
    if (request) {
        tn_request_begin(request, &net, stream, stop_read, "close", TN_IO);
        tn_request_end(request, TN_OK);
    }
}

static const struct tn_stream_vtable stream_vtable = {start_read, start_write, start_write,
                                                      start_close};

/* ---- the man ---- */

static void put(struct end *to, unsigned char byte)
{
    if (to->in_size < IN_MAX) {
        to->in[to->in_size++] = byte;
    }
}

/* One byte on its way, and what he makes of it. */
static void pass(struct end *to, unsigned char byte)
{
    bool dropped = false;
    for (size_t i = 0; i < edit_count; i++) {
        const uint8_t *edit = edits + i * EDIT_SIZE;
        uint64_t at = (uint64_t)(edit[1] | edit[2] << 8) % 2048;
        if (at != to->seen || (edit[0] & 1) != (to == &ends[1])) {
            continue;
        }
        switch (edit[0] >> 1 & 3) {
        case 0:
            byte ^= edit[3];
            break;
        case 1:
            dropped = true;
            break;
        case 2:
            for (int n = 0; n <= edit[4]; n++) {
                put(to, edit[3]);
            }
            break;
        default:
            to->ended = true;
            break;
        }
    }
    to->seen++;
    if (!dropped && !to->ended) {
        put(to, byte);
    }
}

static bool step_end(struct end *end)
{
    bool moved = false;
    struct tn_request *request = end->writing;
    if (request) {
        for (size_t i = 0; i < request->size; i++) {
            pass(end->other, request->from[i]);
        }
        request->moved = request->size;
        end->writing = NULL;
        tn_request_end(request, TN_OK);
        moved = true;
    }
    request = end->reading;
    if (request && (end->in_size > 0 || end->ended)) {
        size_t size = end->in_size < request->size ? end->in_size : request->size;
        memcpy(request->data, end->in, size);
        memmove(end->in, end->in + size, end->in_size - size);
        end->in_size -= size;
        request->moved = size;
        end->reading = NULL;
        tn_request_end(request, TN_OK);
        moved = true;
    }
    return moved;
}

/* ---- both sides ---- */

struct call {
    struct tn_request request; /* first */
    int done;
};

static struct call calls[4]; /* open, open, write, read */

static void on_call(struct tn_request *request)
{
    ((struct call *)(void *)request)->done++;
}

static void run(void)
{
    for (int steps = 0;; steps++) {
        CHECK(steps < STEPS_MAX);
        bool moved = step_end(&ends[0]);
        moved |= step_end(&ends[1]);
        tn_net_feed(&net);
        if (tn_net_deliver(&net) == 0 && !moved) {
            return;
        }
    }
}

static void set_up(void)
{
    static alignas(16) unsigned char heap_memory[HEAP_SIZE];
    static alignas(16) unsigned char pool_memory[4 * (BLOCK + 8)];
    if (heap.base) {
        return;
    }
    fuzz_clock.vtable = &clock_vtable;
    tn_heap_init(&heap, heap_memory, sizeof heap_memory, true);
    tn_tls_boot(&heap);
    tn_pool_init(&pool, pool_memory, sizeof pool_memory, BLOCK);
    tn_net_init(&net, NULL, &fuzz_clock, &pool);
    for (int i = 0; i < 2; i++) {
        ends[i].stream = (struct tn_stream){.vtable = &stream_vtable, .net = &net, .peer = "peer"};
        ends[i].other = &ends[1 - i];
    }
}

static void make_configs(void)
{
    struct tn_err err;
    struct tn_tls_spec of_client = {.clock = &fuzz_clock, .ca = tn_bytes_of(tls_ca)};
    struct tn_tls_spec of_server = {.clock = &fuzz_clock,
                                    .certificate = tn_bytes_of(tls_certificate),
                                    .key = tn_bytes_of(tls_key),
                                    .server = true};
    CHECK_OK(tn_tls_config_make(&of_client, &client, &err), err);
    CHECK_OK(tn_tls_config_make(&of_server, &server, &err), err);
}

static void start(void)
{
    for (size_t i = 0; i < COUNT(calls); i++) {
        calls[i] = (struct call){.request = {.done = on_call}};
    }
    for (int i = 0; i < 2; i++) {
        ends[i].seen = 0;
        ends[i].in_size = 0;
        ends[i].ended = false;
    }
    tn_tls_open(client, NULL, &ends[0].stream, "broker", &calls[0].request);
    tn_tls_open(server, NULL, &ends[1].stream, NULL, &calls[1].request);
    run();
}

/* What waits for ever is given up, as by a time-out. */
static void end(void)
{
    for (size_t i = 0; i < COUNT(calls); i++) {
        tn_request_cancel(&calls[i].request);
    }
    run();
    for (int i = 0; i < 2; i++) {
        CHECK(calls[i].done == 1);
        CHECK((calls[i].request.rc == TN_OK) == (calls[i].request.stream != NULL));
        if (calls[i].request.stream) {
            tn_stream_close(calls[i].request.stream, NULL);
        }
    }
    run();
    tn_tls_config_free(client);
    tn_tls_config_free(server);
    CHECK(net.under_way == 0 && pool.used == 0 && heap.used == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    random_state = 1;
    edits = data;
    edit_count = size / EDIT_SIZE < 16 ? size / EDIT_SIZE : 16;
    make_configs();
    start();
    struct tn_stream *near = calls[0].done ? calls[0].request.stream : NULL;
    struct tn_stream *far = calls[1].done ? calls[1].request.stream : NULL;
    if (near && far) {
        tn_stream_write(far, tn_bytes_of("0123456789"), &calls[2].request);
        tn_stream_read(near, NULL, 0, &calls[3].request);
        run();
        if (calls[3].done && calls[3].request.rc == TN_OK && calls[3].request.moved > 0) {
            CHECK(calls[3].request.moved == 10);
            CHECK(memcmp(calls[3].request.data, "0123456789", 10) == 0);
            tn_net_give(&net, calls[3].request.data);
        }
        CHECK(edit_count > 0 || calls[3].request.moved == 10);
    }
    CHECK(edit_count > 0 || (near && far));
    end();
    return 0;
}
