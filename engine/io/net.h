/* net: the only door to sockets, to names of machines and to the loop's timers. net_uv.h opens it
 * on the system, on a libuv loop; tests/sim/net.c on a network with a seed, whose links are slow,
 * cut and lie. tls.h puts encryption over any of its streams.
 *
 * Everything that waits is a request, in memory of the caller's that is the door's from the call
 * that starts it until it is done:
 *
 *     start -> (waiting) -> bytes moved, failed, timed out or cancelled -> (ready) -> done
 *                                                                          in tn_net_turn
 *
 * Done comes exactly once, whatever happened, and never inside the call that started it: either
 * `done` is called, or the operation `op` is woken, which then has the text of its first failure in
 * op->err. A read moves bytes only while a request waits for them, so who doesn't read slows the
 * other end down; the same holds for accept. A stream has at most one read and one write (or
 * finish) at a time; both may wait at once.
 *
 *     code      connect, accept          read                        write, finish
 *     AGAIN     no stream is free        nothing came in time; the   -
 *                                        stream goes on
 *     CANCELED  cancelled, or closed     the same; no byte is lost   as IO
 *     IO        refused, no such name,   reset, cut                  reset, cut, timed out: no
 *               timed out                                            more bytes can be written
 *
 * A direction that failed fails each request at once; the other one goes on while it can (an answer
 * may have come before the reset). The owner still closes the stream. After the door was opened it
 * takes no memory from the system but for the resolver, whose answers are the C library's (some
 * 24 KB while a name is looked up, by a thread of libuv's; `counts.resolves` says how often).
 *
 * The loop's thread only, but for tn_net_wake.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/op.h"
#include "base/pool.h"
#include "io/clock.h"

struct tn_net;
struct tn_stream;
struct tn_listener;
struct tn_request;

typedef void tn_request_fn(struct tn_request *request);

enum { TN_PEER_SIZE = 72 };

struct tn_request {
    /* The caller's, before each start; a zeroed request with `op` or `done` will do. */
    struct tn_op *op;    /* to wake; it must expect it. Or: */
    tn_request_fn *done; /* to call; it may start the request again */
    void *user;
    uint32_t timeout_ms; /* 0: waits as long as it takes */

    /* The outcome. */
    tn_rc rc;
    struct tn_err err;        /* when rc isn't OK */
    size_t moved;             /* bytes; those of a write are the kernel's, not yet the peer's */
    unsigned char *data;      /* read: where they are */
    struct tn_stream *stream; /* connect, accept: the new stream, or NULL */

    /* The door's, while it is under way. */
    struct tn_net *net;
    const char *what; /* "connect to", for a message */
    void *owner;
    tn_request_fn *stop; /* forgets the request, which ends now */
    tn_rc late;          /* what a time-out is */
    uint8_t state;
    const unsigned char *from; /* write: what is left to move */
    size_t size;               /* bytes at `data` or `from` */
    int64_t deadline_ns;
    struct tn_request *next; /* among those with a deadline, or of the ready ones */
    struct tn_request *previous;
};

/* Where to connect to or listen at. */
struct tn_endpoint {
    const char *host; /* a name, an address in numbers, or "unix:PATH" */
    uint16_t port;    /* 0 with listen: any that is free */
};

/* Reads "host:port", "[::1]:port" or "unix:path" into an endpoint whose host is in `host`. INVALID
 * says what it should be. */
enum { TN_HOST_SIZE = 256 };
TN_MUST_USE tn_rc tn_endpoint_parse(const char *text, char host[TN_HOST_SIZE],
                                    struct tn_endpoint *endpoint, struct tn_err *err);
/* The same of a machine, to connect to, whose port is `port` when none is told. */
TN_MUST_USE tn_rc tn_endpoint_parse_or(const char *text, uint16_t port, char host[TN_HOST_SIZE],
                                       struct tn_endpoint *endpoint, struct tn_err *err);

struct tn_stream_vtable {
    void (*read)(struct tn_stream *stream, struct tn_request *request);
    void (*write)(struct tn_stream *stream, struct tn_request *request);
    void (*finish)(struct tn_stream *stream, struct tn_request *request);
    void (*close)(struct tn_stream *stream, struct tn_request *request);
};

/* One connection. Owned by the door (or by TLS) until close is done. */
struct tn_stream {
    const struct tn_stream_vtable *vtable;
    struct tn_net *net;
    char peer[TN_PEER_SIZE]; /* "broker:8883", "192.0.2.7:51234"; cut when longer; for messages */
    bool local;              /* the peer is on this machine: loopback, or a Unix socket */
};

struct tn_listener {
    struct tn_net *net;
    uint16_t port; /* the one that it has */
};

struct tn_exec;

struct tn_net_vtable {
    void (*connect)(struct tn_net *net, const struct tn_endpoint *to, struct tn_request *request);
    tn_rc (*listen)(struct tn_net *net, const struct tn_endpoint *at, uint32_t streams_max,
                    struct tn_listener **listener, struct tn_err *err);
    void (*accept)(struct tn_listener *listener, struct tn_request *request);
    void (*close_listener)(struct tn_listener *listener);
    int (*turn)(struct tn_net *net, uint32_t wait_ms);
    void (*wake)(struct tn_net *net);
    void (*close)(struct tn_net *net);
};

/* Since the door was opened. */
struct tn_net_counts {
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t connects;
    uint64_t accepts;
    uint64_t resolves;
    uint64_t timeouts;
    uint64_t waited_ns; /* of turns, in which there was nothing to do */
};

/* Somebody who found no buffer: `feed` is called in a turn in which there is one. */
struct tn_hungry {
    void (*feed)(struct tn_hungry *hungry);
    struct tn_hungry *next;
    bool waits;
};

struct tn_net {
    const struct tn_net_vtable *vtable;
    struct tn_clock *clock;
    struct tn_pool *buffers;
    struct tn_request *ready_first; /* ended, not yet done */
    struct tn_request *ready_last;
    struct tn_request *soonest; /* waiting with a deadline, in its order */
    struct tn_request *latest;
    struct tn_hungry *hungry_first;
    struct tn_hungry *hungry_last;
    uint32_t under_way; /* requests started and not done */
    uint32_t streams;   /* that aren't closed */
    struct tn_net_counts counts;
};

/* ---- streams ---- */

/* Makes a stream to the first address of `to` that answers. `to` may be forgotten after the call.
 */
static inline void tn_net_connect(struct tn_net *net, const struct tn_endpoint *to,
                                  struct tn_request *request)
{
    net->vtable->connect(net, to, request);
}

/* Moves 1 to `size` bytes into `data`; 0 bytes and OK are the end of what the peer sends. Without
 * `data` the bytes come in a buffer of the door's, taken when there are some, and `request->data`
 * is the caller's until tn_net_give (NULL at the end). When no buffer is free the stream waits. */
static inline void tn_stream_read(struct tn_stream *stream, void *data, size_t size,
                                  struct tn_request *request)
{
    request->data = data;
    request->size = size;
    stream->vtable->read(stream, request);
}

/* Moves all of `bytes`, which must stay where they are until it is done. */
static inline void tn_stream_write(struct tn_stream *stream, struct tn_bytes bytes,
                                   struct tn_request *request)
{
    request->from = bytes.data;
    request->size = bytes.size;
    stream->vtable->write(stream, request);
}

/* Tells the peer that no more bytes come; reading goes on. */
static inline void tn_stream_finish(struct tn_stream *stream, struct tn_request *request)
{
    stream->vtable->finish(stream, request);
}

/* Ends the stream's requests (CANCELED, unless they have ended) and then the stream, which nobody
 * may use after the call. `request`, done last, may be NULL. Bytes that were written still go out;
 * those unread make it a reset for the peer. */
static inline void tn_stream_close(struct tn_stream *stream, struct tn_request *request)
{
    stream->vtable->close(stream, request);
}

/* A buffer that came with a read is given back. */
void tn_net_give(struct tn_net *net, void *buffer);

/* ---- those who come ---- */

/* Listens at an address in numbers or a Unix socket (whose file is replaced when nobody answers
 * there). Accepts wait while `streams_max` streams of it are open. */
TN_MUST_USE static inline tn_rc tn_net_listen(struct tn_net *net, const struct tn_endpoint *at,
                                              uint32_t streams_max, struct tn_listener **listener,
                                              struct tn_err *err)
{
    return net->vtable->listen(net, at, streams_max, listener, err);
}

/* One at a time for each listener. AGAIN: no descriptor was left; try later. */
static inline void tn_net_accept(struct tn_listener *listener, struct tn_request *request)
{
    listener->net->vtable->accept(listener, request);
}

/* Its streams stay. Nobody may use it after the call. */
static inline void tn_net_close_listener(struct tn_listener *listener)
{
    listener->net->vtable->close_listener(listener);
}

/* ---- time and turns ---- */

/* Is done, OK, after `ms`; sooner, CANCELED, when it's cancelled. */
void tn_net_after(struct tn_net *net, uint32_t ms, struct tn_request *request);

/* Ends a request that waits; one that has ended, or is not under way, stays as it is. */
void tn_request_cancel(struct tn_request *request);
bool tn_request_under_way(const struct tn_request *request);

/* Waits up to `wait_ms` for something to be done or for a wake, and calls everybody who has
 * something done. Returns how many. */
static inline int tn_net_turn(struct tn_net *net, uint32_t wait_ms)
{
    return net->vtable->turn(net, wait_ms);
}

/* Ends the wait of the turn that is under way, or of the next one. From any thread. */
static inline void tn_net_wake(struct tn_net *net)
{
    net->vtable->wake(net);
}

/* A stream of TLS that was closed without a request, or given up, ends by itself, when its
 * handshake's task is back (from `exec`; NULL when there is none) and its last bytes are out.
 * Turns both until all have; false when some have not after `ms`: their peers read nothing. */
bool tn_net_rest(struct tn_net *net, struct tn_exec *exec, uint32_t ms);

/* Listeners must be closed, and the net must rest. */
void tn_net_close(struct tn_net *net);

/* ---- for those who make doors and streams ---- */

void tn_net_init(struct tn_net *net, const struct tn_net_vtable *vtable, struct tn_clock *clock,
                 struct tn_pool *buffers);

/* The request waits for `owner`. `stop` must make it forget the request; `late` and `what` are what
 * a time-out says. */
void tn_request_begin(struct tn_request *request, struct tn_net *net, void *owner,
                      tn_request_fn *stop, const char *what, tn_rc late);

/* It has ended. With an error code request->err must have its text. */
void tn_request_end(struct tn_request *request, tn_rc rc);

/* The same with an error that somebody else has. */
void tn_request_fail(struct tn_request *request, const struct tn_err *err);

/* Begins and ends a request that has nothing to wait for, with rc and text of `err`. */
void tn_request_refuse(struct tn_request *request, struct tn_net *net, const struct tn_err *err);

/* A buffer, or NULL: then `hungry` is fed later, unless it's forgotten. */
void *tn_net_take(struct tn_net *net, struct tn_hungry *hungry);
void tn_net_forget(struct tn_net *net, struct tn_hungry *hungry);

/* Ends what is late; feeds the hungry while there are buffers. */
void tn_net_expire(struct tn_net *net);
void tn_net_feed(struct tn_net *net);
/* How long a turn may wait: at most `wait_ms`, and not past the next deadline. */
uint32_t tn_net_patience(struct tn_net *net, uint32_t wait_ms);
/* Calls and wakes for those that are ready now; returns how many. */
int tn_net_deliver(struct tn_net *net);
