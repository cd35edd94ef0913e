/* Sockets that don't block, and libuv to say when one is ready. Its own streams queue writes and
 * can't give one up without the connection, and they read before they are asked; with readiness
 * alone a request that ends early is only forgotten, and an idle connection holds no buffer. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "io/net_uv_private.h"

/* ---- errors in words ---- */

const char *tn_uv_reason(int os)
{
    switch (os) {
    case ECONNREFUSED:
        return "connection refused";
    case ECONNRESET:
    case EPIPE:
        return "the peer cut the connection";
    case ECANCELED:
        return "a write was given up half-way";
    case ETIMEDOUT:
        return "the peer does not answer any more";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "there is no way to it";
    default:
        return strerror(os);
    }
}

void tn_uv_fail(struct tn_request *request, tn_rc rc, int os)
{
    (void)tn_err_set(&request->err, rc, os, "%s %s: %s", request->what,
                     request->stream ? request->stream->peer : "", tn_uv_reason(os));
    tn_request_end(request, rc);
}

/* ---- what is waited for ---- */

static void on_wire(uv_poll_t *handle, int status, int events);

void tn_uv_watch(uv_poll_t *poll, int *events, int wanted, uv_poll_cb call)
{
    if (*events == wanted) {
        return;
    }
    *events = wanted;
    if (wanted) {
        TN_CHECK(uv_poll_start(poll, wanted, call) == 0);
    } else {
        TN_CHECK(uv_poll_stop(poll) == 0);
    }
}

void tn_uv_watch_wire(struct tn_uv_wire *wire)
{
    if (wire->fd < 0) {
        return;
    }
    bool reads = wire->reading && !wire->hungry.waits;
    bool writes = wire->writing || wire->state == TN_UV_CONNECTING;
    tn_uv_watch(&wire->poll, &wire->events, (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0),
                on_wire);
}

/* ---- wires come and go ---- */

struct tn_uv_wire *tn_uv_take_wire(struct tn_uv_door *door)
{
    struct tn_uv_wire *wire = door->free;
    if (wire) {
        door->free = wire->next;
        wire->next = NULL;
        tn_uv_watch_ears(door);
    }
    return wire;
}

void tn_uv_free_wire(struct tn_uv_wire *wire)
{
    struct tn_uv_door *door = wire->door;
    struct tn_request *closing = wire->closing;
    wire->state = TN_UV_FREE;
    wire->closing = NULL;
    wire->read_os = 0;
    wire->write_os = 0;
    wire->next = door->free;
    door->free = wire;
    if (wire->ear) {
        wire->ear->open--;
        wire->ear = NULL;
    }
    tn_uv_watch_ears(door);
    if (closing) {
        tn_request_end(closing, TN_OK);
    }
}

static void on_wire_closed(uv_handle_t *handle)
{
    struct tn_uv_wire *wire = handle->data;
    wire->door->handles--;
    wire->has_poll = false;
    if (wire->state == TN_UV_CONNECTING) {
        wire->address_at++;
        tn_uv_try_addresses(wire);
    } else {
        tn_uv_free_wire(wire);
    }
}

tn_rc tn_uv_open_poll(struct tn_uv_wire *wire, int fd)
{
    if (uv_poll_init(&wire->door->loop, &wire->poll, fd) != 0) {
        return TN_IO;
    }
    wire->poll.data = wire;
    wire->door->handles++;
    wire->has_poll = true;
    wire->fd = fd;
    wire->events = 0;
    return TN_OK;
}

/* libuv says that a descriptor may be closed as soon as its handle is no longer polled. */
void tn_uv_close_poll(struct tn_uv_wire *wire)
{
    uv_close((uv_handle_t *)&wire->poll, on_wire_closed);
    (void)close(wire->fd);
    wire->fd = -1;
}

void tn_uv_drop_wire(struct tn_uv_wire *wire)
{
    wire->state = TN_UV_CLOSING;
    tn_net_forget(&wire->door->net, &wire->hungry);
    if (wire->lookup) {
        wire->lookup->wire = NULL;
        (void)uv_cancel((uv_req_t *)&wire->lookup->request); /* one that runs goes on, unheard */
        wire->lookup = NULL;
    }
    if (wire->fd >= 0) {
        tn_uv_close_poll(wire);
    } else if (!wire->has_poll) {
        tn_uv_free_wire(wire);
    }
}

/* ---- read and write ---- */

/* What moved: bytes, 0 at the end, or -1 when nothing did for now or for good (`*os`). */
static ssize_t receive(int fd, void *data, size_t size, int *os)
{
    ssize_t moved = 0;
    do {
        moved = recv(fd, data, size, 0);
    } while (moved < 0 && errno == EINTR);
    *os = moved < 0 && errno != EAGAIN && errno != EWOULDBLOCK ? errno : 0;
    return moved;
}

static void end_read(struct tn_uv_wire *wire, struct tn_request *request, ssize_t moved)
{
    wire->reading = NULL;
    request->moved = (size_t)moved;
    wire->door->net.counts.bytes_read += (uint64_t)moved;
    tn_request_end(request, TN_OK);
}

static void try_read(struct tn_uv_wire *wire)
{
    struct tn_net *net = &wire->door->net;
    struct tn_request *request = wire->reading;
    unsigned char *buffer = request->data ? NULL : tn_net_take(net, &wire->hungry);
    unsigned char *data = request->data ? request->data : buffer;
    if (!data) {
        return; /* fed later */
    }
    ssize_t moved =
        receive(wire->fd, data, buffer ? net->buffers->block_size : request->size, &wire->read_os);
    if (buffer && moved <= 0) {
        tn_net_give(net, buffer);
    }
    if (moved >= 0) {
        request->data = moved > 0 ? data : NULL;
        end_read(wire, request, moved);
    } else if (wire->read_os != 0) {
        wire->reading = NULL;
        tn_uv_fail(request, TN_IO, wire->read_os);
    }
}

static void try_write(struct tn_uv_wire *wire)
{
    struct tn_request *request = wire->writing;
    ssize_t moved = 0;
    if (request->size > 0) {
        do {
            moved = send(wire->fd, request->from, request->size, MSG_NOSIGNAL);
        } while (moved < 0 && errno == EINTR);
    }
    if (moved < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            wire->write_os = errno;
            wire->writing = NULL;
            tn_uv_fail(request, TN_IO, wire->write_os);
        }
        return;
    }
    request->moved += (size_t)moved;
    request->from += moved;
    request->size -= (size_t)moved;
    wire->door->net.counts.bytes_written += (uint64_t)moved;
    if (request->size == 0) {
        wire->writing = NULL;
        tn_request_end(request, TN_OK);
    }
}

/* An error is found by the call that meets it, so what came with it doesn't matter. */
static void on_wire(uv_poll_t *handle, int status, int events)
{
    struct tn_uv_wire *wire = handle->data;
    if (status < 0) {
        wire->events = 0; /* libuv has stopped polling */
    }
    if (wire->state == TN_UV_CONNECTING) {
        tn_uv_on_connected(wire);
        return;
    }
    if (wire->reading && (status < 0 || (events & UV_READABLE))) {
        try_read(wire);
    }
    if (wire->writing && (status < 0 || (events & UV_WRITABLE))) {
        try_write(wire);
    }
    tn_uv_watch_wire(wire);
}

void tn_uv_feed_wire(struct tn_hungry *hungry)
{
    struct tn_uv_wire *wire =
        (struct tn_uv_wire *)(void *)((char *)hungry - offsetof(struct tn_uv_wire, hungry));
    tn_uv_watch_wire(wire);
}

static void stop_read(struct tn_request *request)
{
    struct tn_uv_wire *wire = request->owner;
    wire->reading = NULL;
    tn_net_forget(&wire->door->net, &wire->hungry);
    tn_uv_watch_wire(wire);
}

static void start_read(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_uv_wire *wire = tn_uv_wire_of(stream);
    TN_CHECK(wire->state == TN_UV_OPEN);
    TN_CHECK(!wire->reading);
    TN_CHECK(!request->data || request->size > 0);
    request->stream = stream;
    tn_request_begin(request, stream->net, wire, stop_read, "read", TN_AGAIN);
    if (wire->read_os != 0) {
        tn_uv_fail(request, TN_IO, wire->read_os);
        return;
    }
    wire->reading = request;
    if (request->data) {
        try_read(wire);
    }
    tn_uv_watch_wire(wire);
}

/* Part of it may have left, so nothing can follow it. */
static void stop_write(struct tn_request *request)
{
    struct tn_uv_wire *wire = request->owner;
    wire->writing = NULL;
    wire->write_os = ECANCELED;
    tn_uv_watch_wire(wire);
}

static void start_write(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_uv_wire *wire = tn_uv_wire_of(stream);
    TN_CHECK(wire->state == TN_UV_OPEN);
    TN_CHECK(!wire->writing);
    request->stream = stream;
    tn_request_begin(request, stream->net, wire, stop_write, "write", TN_IO);
    if (wire->write_os != 0) {
        tn_uv_fail(request, TN_IO, wire->write_os);
        return;
    }
    wire->writing = request;
    try_write(wire);
    tn_uv_watch_wire(wire);
}

static void start_finish(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_uv_wire *wire = tn_uv_wire_of(stream);
    TN_CHECK(wire->state == TN_UV_OPEN);
    TN_CHECK(!wire->writing);
    request->stream = stream;
    tn_request_begin(request, stream->net, wire, stop_write, "finish", TN_IO);
    if (wire->write_os == 0 && shutdown(wire->fd, SHUT_WR) != 0) {
        wire->write_os = errno;
    }
    if (wire->write_os != 0) {
        tn_uv_fail(request, TN_IO, wire->write_os);
    } else {
        tn_request_end(request, TN_OK);
    }
}

static void stop_close(struct tn_request *request)
{
    struct tn_uv_wire *wire = request->owner;
    wire->closing = NULL;
}

static void start_close(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_uv_wire *wire = tn_uv_wire_of(stream);
    TN_CHECK(wire->state == TN_UV_OPEN);
    if (wire->reading) {
        tn_request_cancel(wire->reading);
    }
    if (wire->writing) {
        tn_request_cancel(wire->writing);
    }
    if (request) {
        request->stream = stream;
        tn_request_begin(request, stream->net, wire, stop_close, "close", TN_IO);
        wire->closing = request;
    }
    if (wire->write_os == ECANCELED) { /* a reset, so that the peer doesn't take half for all */
        const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    stream->net->streams--;
    tn_uv_drop_wire(wire);
}

const struct tn_stream_vtable tn_uv_stream_vtable = {
    .read = start_read,
    .write = start_write,
    .finish = start_finish,
    .close = start_close,
};
