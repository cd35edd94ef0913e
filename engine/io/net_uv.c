#include "io/net_uv.h"

#include <string.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/signals.h"
#include "io/net_uv_private.h"

enum { RESOLVER_STACK = 256 * 1024 };

/* ---- libuv's memory: process-wide, as its hook is ---- */

static struct tn_heap *uv_heap;

static void *uv_take(size_t size)
{
    return tn_heap_take(uv_heap, size);
}

static void *uv_resize(void *block, size_t size)
{
    return tn_heap_resize(uv_heap, block, size);
}

static void *uv_take_zeroed(size_t count, size_t size)
{
    size_t whole = 0;
    if (__builtin_mul_overflow(count, size, &whole)) {
        return NULL;
    }
    void *block = tn_heap_take(uv_heap, whole);
    if (block) {
        memset(block, 0, whole);
    }
    return block;
}

static void uv_give(void *block)
{
    tn_heap_give(uv_heap, block);
}

/* ---- turns ---- */

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it only ends the wait */
}

static void on_async(uv_async_t *async)
{
    (void)async;
}

/* The timer repeats, because uv_run may fire it before it waits, and would then wait for ever. */
static int turn(struct tn_net *net, uint32_t wait_ms)
{
    struct tn_uv_door *door = tn_uv_door_of(net);
    tn_net_expire(net);
    tn_net_feed(net);
    uint32_t patience_ms = tn_net_patience(net, wait_ms);
    if (patience_ms == 0) {
        (void)uv_run(&door->loop, UV_RUN_NOWAIT);
    } else {
        uv_update_time(&door->loop);
        (void)uv_timer_start(&door->timer, on_timer, patience_ms, patience_ms);
        (void)uv_run(&door->loop, UV_RUN_ONCE);
        (void)uv_timer_stop(&door->timer);
    }
    net->counts.waited_ns = uv_metrics_idle_time(&door->loop);
    tn_net_expire(net);
    return tn_net_deliver(net);
}

static void wake(struct tn_net *net)
{
    (void)uv_async_send(&tn_uv_door_of(net)->async);
}

static bool looks_up(const struct tn_uv_door *door)
{
    for (int i = 0; i < TN_UV_LOOKUPS_MAX; i++) {
        if (door->lookups[i].busy) {
            return true;
        }
    }
    return false;
}

static void close_door(struct tn_net *net)
{
    struct tn_uv_door *door = tn_uv_door_of(net);
    while (door->handles > 0 || looks_up(door)) {
        (void)uv_run(&door->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&door->async, NULL);
    uv_close((uv_handle_t *)&door->timer, NULL);
    (void)uv_run(&door->loop, UV_RUN_DEFAULT);
    TN_CHECK(uv_loop_close(&door->loop) == 0);
}

static const struct tn_net_vtable vtable = {
    .connect = tn_uv_connect,
    .listen = tn_uv_listen,
    .accept = tn_uv_accept,
    .close_listener = tn_uv_close_listener,
    .turn = turn,
    .wake = wake,
    .close = close_door,
};

/* ---- opening ---- */

size_t tn_net_uv_size(uint32_t streams_max)
{
    return sizeof(struct tn_uv_door) + (size_t)streams_max * sizeof(struct tn_uv_wire);
}

static void no_work(uv_work_t *work)
{
    (void)work;
}

static void after_no_work(uv_work_t *work, int status)
{
    (void)status;
    *(bool *)work->data = true;
}

/* libuv starts its threads with the first work. */
static int do_no_work(struct tn_uv_door *door)
{
    sigset_t before;
    bool done = false;
    uv_work_t work = {.data = &done};
    tn_signals_hold(&before);
    int os = uv_queue_work(&door->loop, &work, no_work, after_no_work);
    tn_signals_restore(&before);
    while (os == 0 && !done) {
        (void)uv_run(&door->loop, UV_RUN_ONCE);
    }
    return os;
}

/* Their stacks are as large as the limit of the process. Two threads: a name that can't be looked
 * up holds its own for half a minute. */
static tn_rc start_threads(struct tn_uv_door *door, struct tn_err *err)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_STACK, &limit) == 0;
    if (limited) {
        struct rlimit small = limit;
        small.rlim_cur = RESOLVER_STACK;
        (void)setrlimit(RLIMIT_STACK, &small);
    }
    (void)uv_os_setenv("UV_THREADPOOL_SIZE", "2");
    int os = do_no_work(door);
    if (limited) {
        (void)setrlimit(RLIMIT_STACK, &limit);
    }
    return os == 0 ? TN_OK : tn_err_set(err, TN_IO, os, "start the resolver: error %d", os);
}

static tn_rc open_loop(struct tn_uv_door *door, struct tn_err *err)
{
    int os = uv_loop_init(&door->loop);
    if (os != 0) {
        return tn_err_set(err, TN_IO, os, "open the network loop: error %d", os);
    }
    TN_CHECK(uv_loop_configure(&door->loop, UV_METRICS_IDLE_TIME) == 0);
    TN_CHECK(uv_timer_init(&door->loop, &door->timer) == 0);
    os = uv_async_init(&door->loop, &door->async, on_async);
    if (os != 0) {
        return tn_err_set(err, TN_IO, os, "open the network loop: error %d", os);
    }
    return start_threads(door, err);
}

tn_rc tn_net_uv_open(const struct tn_net_spec *spec, struct tn_net **net, struct tn_err *err)
{
    TN_CHECK(spec->heap->lock);
    void *memory = NULL;
    tn_rc rc =
        tn_arena_need(spec->arena, tn_net_uv_size(spec->streams_max), "the network", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    uv_heap = spec->heap;
    (void)uv_replace_allocator(uv_take, uv_resize, uv_take_zeroed, uv_give);
    struct tn_uv_door *door = memory;
    tn_net_init(&door->net, &vtable, spec->clock, spec->buffers);
    door->wire_count = spec->streams_max;
    for (uint32_t i = spec->streams_max; i-- > 0;) {
        door->wires[i] = (struct tn_uv_wire){
            .stream = {.vtable = &tn_uv_stream_vtable, .net = &door->net},
            .door = door,
            .fd = -1,
            .hungry = {.feed = tn_uv_feed_wire},
            .next = door->free,
        };
        door->free = &door->wires[i];
    }
    for (int i = 0; i < TN_UV_LISTENERS_MAX; i++) {
        door->ears[i].fd = -1;
    }
    rc = open_loop(door, err);
    if (rc == TN_OK) {
        *net = &door->net;
    }
    return rc;
}
