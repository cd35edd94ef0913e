/* net_uv_private: what the parts of the door on the system share. Only net_uv*.c look in here.
 *
 * A wire is a stream and its socket, an ear a listener and its own. Both are asked for readiness
 * only while a request waits for them.
 *
 *     free -> looking up -> connecting -> open -> closing -> free
 *     free -------------- accepted ------> open
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include "io/net_uv.h"

enum {
    TN_UV_ADDRESSES_MAX = 4, /* of a name, that are tried */
    TN_UV_LOOKUPS_MAX = 16,  /* given up ones, too, until the resolver has answered */
};

struct tn_uv_door;
struct tn_uv_wire;

struct tn_uv_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at;
    socklen_t size;
};

struct tn_uv_ear {
    struct tn_listener listener; /* first */
    struct tn_uv_door *door;
    uv_poll_t poll;
    int fd;
    int events; /* that are waited for */
    bool used;
    uint32_t open; /* streams */
    uint32_t streams_max;
    struct tn_request *accepting;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a Unix socket, or "" */
};

struct tn_uv_lookup {
    uv_getaddrinfo_t request;
    bool busy;
    struct tn_uv_wire *wire; /* NULL: given up */
};

enum tn_uv_wire_state { TN_UV_FREE, TN_UV_LOOKING_UP, TN_UV_CONNECTING, TN_UV_OPEN, TN_UV_CLOSING };

struct tn_uv_wire {
    struct tn_stream stream; /* first */
    struct tn_uv_door *door;
    enum tn_uv_wire_state state;
    uv_poll_t poll;
    int fd;        /* -1: none */
    bool has_poll; /* the handle is libuv's, until it was closed */
    int events;    /* that are waited for */
    int read_os;   /* why nothing can be read any more; 0: it can */
    int write_os;
    struct tn_request *connecting;
    struct tn_request *reading;
    struct tn_request *writing;
    struct tn_request *closing;
    struct tn_hungry hungry;
    struct tn_uv_ear *ear;       /* that it came through, or NULL */
    struct tn_uv_lookup *lookup; /* or NULL */
    struct tn_uv_wire *next;     /* free */
    uint32_t address_count;
    uint32_t address_at;
    struct tn_uv_address addresses[TN_UV_ADDRESSES_MAX];
};

struct tn_uv_door {
    struct tn_net net; /* first */
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t timer;
    uint32_t handles; /* of ears and wires, that are libuv's */
    uint32_t wire_count;
    struct tn_uv_wire *free;
    struct tn_uv_ear ears[TN_UV_LISTENERS_MAX];
    struct tn_uv_lookup lookups[TN_UV_LOOKUPS_MAX];
    struct tn_uv_wire wires[];
};

static inline struct tn_uv_door *tn_uv_door_of(struct tn_net *net)
{
    return (struct tn_uv_door *)(void *)net;
}

static inline struct tn_uv_wire *tn_uv_wire_of(struct tn_stream *stream)
{
    return (struct tn_uv_wire *)(void *)stream;
}

static inline struct tn_uv_ear *tn_uv_ear_of(struct tn_listener *listener)
{
    return (struct tn_uv_ear *)(void *)listener;
}

/* ---- net_uv_address.c ---- */

/* An address in numbers or a path: true, and nothing needs to be looked up. Of size 0: a path that
 * is too long. */
bool tn_uv_parse_address(const struct tn_endpoint *endpoint, struct tn_uv_address *address);
void tn_uv_name_endpoint(char peer[TN_PEER_SIZE], const struct tn_endpoint *endpoint);
void tn_uv_name_address(char peer[TN_PEER_SIZE], const struct tn_uv_address *address);
bool tn_uv_is_local(const struct tn_uv_address *address);
uint16_t tn_uv_port_of(const struct tn_uv_address *address);
/* Sets the options of a new connection. */
void tn_uv_tune(int fd, int family);
/* A socket on its way to the address, or -1 and why not. */
int tn_uv_dial(const struct tn_uv_address *address, int *os);

/* ---- net_uv_wire.c ---- */

extern const struct tn_stream_vtable tn_uv_stream_vtable;
const char *tn_uv_reason(int os); /* in words */
void tn_uv_fail(struct tn_request *request, tn_rc rc, int os);
/* Polls for what is wanted now, 0 for nothing. */
void tn_uv_watch(uv_poll_t *poll, int *events, int wanted, uv_poll_cb call);
void tn_uv_watch_wire(struct tn_uv_wire *wire);
struct tn_uv_wire *tn_uv_take_wire(struct tn_uv_door *door); /* or NULL */
void tn_uv_free_wire(struct tn_uv_wire *wire);
/* The wire is free as soon as libuv has let go of it. */
void tn_uv_drop_wire(struct tn_uv_wire *wire);
TN_MUST_USE tn_rc tn_uv_open_poll(struct tn_uv_wire *wire, int fd);
void tn_uv_close_poll(struct tn_uv_wire *wire);
void tn_uv_feed_wire(struct tn_hungry *hungry);

/* ---- net_uv_connect.c ---- */

void tn_uv_connect(struct tn_net *net, const struct tn_endpoint *to, struct tn_request *request);
void tn_uv_try_addresses(struct tn_uv_wire *wire); /* from address_at */
void tn_uv_on_connected(struct tn_uv_wire *wire);  /* or not: it can be written to */

/* ---- net_uv_listen.c ---- */

tn_rc tn_uv_listen(struct tn_net *net, const struct tn_endpoint *at, uint32_t streams_max,
                   struct tn_listener **listener, struct tn_err *err);
void tn_uv_accept(struct tn_listener *listener, struct tn_request *request);
void tn_uv_close_listener(struct tn_listener *listener);
void tn_uv_watch_ears(struct tn_uv_door *door); /* the number of free wires has changed */
