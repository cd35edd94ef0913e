#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "io/net_uv_private.h"

static void end_connect(struct tn_uv_wire *wire, tn_rc rc, int os, const char *text)
{
    struct tn_request *request = wire->connecting;
    wire->connecting = NULL;
    (void)tn_err_set(&request->err, rc, os, "connect to %s: %s", wire->stream.peer, text);
    request->stream = NULL;
    tn_request_end(request, rc);
    tn_uv_drop_wire(wire);
}

static void stop_connect(struct tn_request *request)
{
    struct tn_uv_wire *wire = request->owner;
    wire->connecting = NULL;
    request->stream = NULL;
    tn_uv_drop_wire(wire);
}

void tn_uv_try_addresses(struct tn_uv_wire *wire)
{
    wire->state = TN_UV_CONNECTING;
    for (; wire->address_at < wire->address_count; wire->address_at++) {
        int fd = tn_uv_dial(&wire->addresses[wire->address_at], &wire->write_os);
        if (fd < 0) {
            continue;
        }
        if (tn_uv_open_poll(wire, fd) != TN_OK) {
            (void)close(fd);
            wire->write_os = EMFILE;
            continue;
        }
        tn_uv_watch_wire(wire);
        return;
    }
    end_connect(wire, TN_IO, wire->write_os, tn_uv_reason(wire->write_os));
}

void tn_uv_on_connected(struct tn_uv_wire *wire)
{
    int os = 0;
    socklen_t size = sizeof os;
    if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &os, &size) != 0) {
        os = errno;
    }
    if (os != 0) { /* the next address, when the handle is free again */
        wire->write_os = os;
        tn_uv_close_poll(wire);
        return;
    }
    struct tn_request *request = wire->connecting;
    wire->connecting = NULL;
    wire->write_os = 0;
    wire->state = TN_UV_OPEN;
    wire->stream.local = tn_uv_is_local(&wire->addresses[wire->address_at]);
    wire->door->net.streams++;
    wire->door->net.counts.connects++;
    tn_request_end(request, TN_OK);
    tn_uv_watch_wire(wire);
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct tn_uv_lookup *lookup = request->data;
    struct tn_uv_wire *wire = lookup->wire;
    *lookup = (struct tn_uv_lookup){0};
    if (wire) {
        wire->lookup = NULL;
        for (struct addrinfo *at = found; at && wire->address_count < TN_UV_ADDRESSES_MAX;
             at = at->ai_next) {
            struct tn_uv_address *address = &wire->addresses[wire->address_count];
            if (at->ai_addrlen <= sizeof address->at) {
                memcpy(&address->at, at->ai_addr, at->ai_addrlen);
                address->size = at->ai_addrlen;
                wire->address_count++;
            }
        }
        if (wire->address_count > 0) {
            tn_uv_try_addresses(wire);
        } else {
            bool unknown = status == UV_EAI_NONAME || status == UV_EAI_NODATA;
            end_connect(wire, TN_IO, status,
                        unknown ? "there is no such name" : "its name can't be looked up now");
        }
    }
    uv_freeaddrinfo(found);
}

static bool look_up(struct tn_uv_wire *wire, const struct tn_endpoint *to)
{
    struct tn_uv_door *door = wire->door;
    struct tn_uv_lookup *lookup = door->lookups;
    while (lookup < door->lookups + TN_UV_LOOKUPS_MAX && lookup->busy) {
        lookup++;
    }
    if (lookup == door->lookups + TN_UV_LOOKUPS_MAX) {
        return false;
    }
    char port[8];
    (void)snprintf(port, sizeof port, "%u", to->port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    lookup->request.data = lookup;
    if (uv_getaddrinfo(&door->loop, &lookup->request, on_looked_up, to->host, port, &hints) != 0) {
        return false;
    }
    lookup->busy = true;
    lookup->wire = wire;
    wire->lookup = lookup;
    wire->state = TN_UV_LOOKING_UP;
    door->net.counts.resolves++;
    return true;
}

void tn_uv_connect(struct tn_net *net, const struct tn_endpoint *to, struct tn_request *request)
{
    struct tn_uv_door *door = tn_uv_door_of(net);
    struct tn_uv_wire *wire = tn_uv_take_wire(door);
    if (!wire) {
        struct tn_err err;
        (void)tn_err_set(&err, TN_AGAIN, 0, "connect to %s: all %u streams are in use", to->host,
                         door->wire_count);
        request->stream = NULL;
        tn_request_refuse(request, net, &err);
        return;
    }
    tn_uv_name_endpoint(wire->stream.peer, to);
    request->stream = &wire->stream;
    tn_request_begin(request, net, wire, stop_connect, "connect to", TN_IO);
    wire->connecting = request;
    wire->address_at = 0;
    wire->address_count = 0;
    if (tn_uv_parse_address(to, &wire->addresses[0])) {
        wire->address_count = 1;
        if (wire->addresses[0].size == 0) {
            end_connect(wire, TN_INVALID, 0, "the path is too long for a Unix socket");
        } else {
            tn_uv_try_addresses(wire);
        }
    } else if (!look_up(wire, to)) {
        end_connect(wire, TN_AGAIN, 0, "too many names are being looked up");
    }
}
