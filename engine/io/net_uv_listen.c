#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "io/net_uv_private.h"

enum { BACKLOG = 64 };

static void on_ear(uv_poll_t *handle, int status, int events);

static bool can_accept(const struct tn_uv_ear *ear)
{
    return ear->accepting && ear->open < ear->streams_max && ear->door->free;
}

static void watch_ear(struct tn_uv_ear *ear)
{
    if (ear->fd >= 0) {
        tn_uv_watch(&ear->poll, &ear->events, can_accept(ear) ? UV_READABLE : 0, on_ear);
    }
}

void tn_uv_watch_ears(struct tn_uv_door *door)
{
    for (int i = 0; i < TN_UV_LISTENERS_MAX; i++) {
        if (door->ears[i].used) {
            watch_ear(&door->ears[i]);
        }
    }
}

static void end_accept(struct tn_uv_ear *ear, int fd, const struct tn_uv_address *from)
{
    struct tn_uv_door *door = ear->door;
    struct tn_request *request = ear->accepting;
    struct tn_uv_wire *wire = tn_uv_take_wire(door);
    TN_CHECK(wire);
    tn_uv_tune(fd, from->at.any.sa_family);
    if (tn_uv_open_poll(wire, fd) != TN_OK) {
        (void)close(fd);
        tn_uv_free_wire(wire);
        return;
    }
    tn_uv_name_address(wire->stream.peer, from);
    wire->stream.local = tn_uv_is_local(from);
    wire->state = TN_UV_OPEN;
    wire->ear = ear;
    ear->open++;
    ear->accepting = NULL;
    door->net.streams++;
    door->net.counts.accepts++;
    request->stream = &wire->stream;
    tn_request_end(request, TN_OK);
}

/* Who left before it was accepted is nobody's trouble: the next event brings the next one. */
static void on_ear(uv_poll_t *handle, int status, int events)
{
    (void)events;
    struct tn_uv_ear *ear = handle->data;
    if (status < 0) {
        ear->events = 0;
    }
    if (!can_accept(ear)) { /* another one took the last wire in this turn */
        watch_ear(ear);
        return;
    }
    struct tn_uv_address from = {.size = sizeof from.at};
    int fd = accept4(ear->fd, &from.at.any, &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        end_accept(ear, fd, &from);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        struct tn_request *request = ear->accepting;
        ear->accepting = NULL;
        tn_uv_fail(request, TN_AGAIN, errno);
    }
    watch_ear(ear);
}

static void stop_accept(struct tn_request *request)
{
    struct tn_uv_ear *ear = request->owner;
    ear->accepting = NULL;
    watch_ear(ear);
}

void tn_uv_accept(struct tn_listener *listener, struct tn_request *request)
{
    struct tn_uv_ear *ear = tn_uv_ear_of(listener);
    TN_CHECK(ear->fd >= 0);
    TN_CHECK(!ear->accepting);
    request->stream = NULL;
    tn_request_begin(request, listener->net, ear, stop_accept, "accept", TN_AGAIN);
    ear->accepting = request;
    watch_ear(ear);
}

static void on_ear_closed(uv_handle_t *handle)
{
    struct tn_uv_ear *ear = handle->data;
    ear->door->handles--;
    ear->used = false;
}

void tn_uv_close_listener(struct tn_listener *listener)
{
    struct tn_uv_ear *ear = tn_uv_ear_of(listener);
    if (ear->accepting) {
        tn_request_cancel(ear->accepting);
    }
    uv_close((uv_handle_t *)&ear->poll, on_ear_closed);
    (void)close(ear->fd);
    ear->fd = -1;
    if (ear->path[0]) {
        (void)unlink(ear->path);
    }
    for (uint32_t i = 0; i < ear->door->wire_count; i++) {
        if (ear->door->wires[i].ear == ear) {
            ear->door->wires[i].ear = NULL;
        }
    }
}

/* A socket file whose process is gone refuses; nobody else's does. */
static void remove_stale(const struct tn_uv_address *address)
{
    struct stat stat;
    if (lstat(address->at.local.sun_path, &stat) != 0 || !S_ISSOCK(stat.st_mode)) {
        return;
    }
    int os = 0;
    int fd = tn_uv_dial(address, &os);
    if (fd >= 0) {
        (void)close(fd);
    } else if (os == ECONNREFUSED) {
        (void)unlink(address->at.local.sun_path);
    }
}

/* A listening socket, or -1 and errno. A Unix socket is its user's and group's. */
static int open_listening(struct tn_uv_address *address)
{
    int family = address->at.any.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    const int on = 1;
    int rc = 0;
    if (family == AF_UNIX) {
        remove_stale(address);
        rc = fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP);
    } else {
        rc = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (rc == 0 && bind(fd, &address->at.any, address->size) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, &address->at.any, &address->size) == 0) {
        return fd;
    }
    int os = errno;
    (void)close(fd);
    errno = os;
    return -1;
}

static struct tn_uv_ear *free_ear(struct tn_uv_door *door)
{
    for (int i = 0; i < TN_UV_LISTENERS_MAX; i++) {
        if (!door->ears[i].used) {
            return &door->ears[i];
        }
    }
    return NULL;
}

tn_rc tn_uv_listen(struct tn_net *net, const struct tn_endpoint *at, uint32_t streams_max,
                   struct tn_listener **listener, struct tn_err *err)
{
    struct tn_uv_door *door = tn_uv_door_of(net);
    struct tn_uv_ear *ear = free_ear(door);
    struct tn_uv_address address;
    char name[TN_PEER_SIZE];
    tn_uv_name_endpoint(name, at);
    if (!ear) {
        return tn_err_set(err, TN_AGAIN, 0, "listen at %s: at most %d listeners", name,
                          TN_UV_LISTENERS_MAX);
    }
    if (!tn_uv_parse_address(at, &address) || address.size == 0) {
        return tn_err_set(err, TN_INVALID, 0,
                          "listen at %s: needs an address in numbers, or the path of a Unix socket",
                          name);
    }
    int fd = open_listening(&address);
    if (fd < 0) {
        int os = errno;
        return tn_err_set(err, os == EADDRINUSE ? TN_EXISTS : TN_IO, os, "listen at %s: %s", name,
                          os == EADDRINUSE ? "somebody else does" : strerror(os));
    }
    *ear = (struct tn_uv_ear){.listener = {.net = net, .port = tn_uv_port_of(&address)},
                              .door = door,
                              .fd = fd,
                              .streams_max = streams_max};
    if (uv_poll_init(&door->loop, &ear->poll, fd) != 0) {
        (void)close(fd);
        return tn_err_set(err, TN_IO, 0, "listen at %s: libuv can't poll it", name);
    }
    if (address.at.any.sa_family == AF_UNIX) {
        memcpy(ear->path, address.at.local.sun_path, sizeof ear->path);
    }
    ear->poll.data = ear;
    ear->used = true;
    door->handles++;
    *listener = &ear->listener;
    return TN_OK;
}
