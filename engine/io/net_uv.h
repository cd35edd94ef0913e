/* net_uv: the door of net.h on the system's sockets, with libuv's loop to say when one is ready.
 *
 * libuv's allocator is process-wide and can be set only once, before its first use: one heap for
 * all doors of a process, and one loop is enough for anybody.
 */
#pragma once

#include "base/arena.h"
#include "base/heap.h"
#include "io/net.h"

enum { TN_UV_LISTENERS_MAX = 8 }; /* of a door */

struct tn_net_spec {
    struct tn_heap *heap;    /* libuv's, with a lock, until the process ends; full, it stops the
                                process: 32 KiB serve a thousand descriptors */
    struct tn_arena *arena;  /* for the door: tn_net_uv_size(streams_max) bytes */
    struct tn_pool *buffers; /* for reads without a place; one a stream that reads so is plenty */
    struct tn_clock *clock;  /* the system's: libuv waits by the same time */
    uint32_t streams_max;    /* both ways together */
};

size_t tn_net_uv_size(uint32_t streams_max);

/* Starts the resolver's threads, too, so that nothing is left to be taken later. tn_net_close waits
 * for lookups that were given up, as long as the resolver takes. */
TN_MUST_USE tn_rc tn_net_uv_open(const struct tn_net_spec *spec, struct tn_net **net,
                                 struct tn_err *err);
