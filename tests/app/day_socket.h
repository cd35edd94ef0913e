/* day_socket: senders of lines: one with a name that goes on behind what was received, one with a
 * name that says which line comes first, and begins anywhere before, one without a name. */
#pragma once

#include "day_world.h"

enum {
    DAY_SOCKET_PATIENCE_MS = 12 * DAY_SECOND,
    DAY_SOCKET_CHUNK = 200,
    DAY_SOCKET_COUNT = DAY_SOCKET_NOBODY - DAY_SOCKET_NAMED + 1,
};

enum day_socket_state {
    DAY_SOCKET_AWAY,
    DAY_SOCKET_CONNECTS,
    DAY_SOCKET_GREETED,
    DAY_SOCKET_SENDS,
    DAY_SOCKET_LEAVES,
};

struct day_socket {
    uint32_t id;
    enum day_socket_state state;
    struct tn_stream *stream;
    struct tn_request connect;
    struct tn_request read;
    struct tn_request write;
    struct tn_request closing;
    uint32_t base; /* received on this connection counts from here */
    uint32_t next; /* to be sent */
    size_t offset; /* of its line */
    int64_t heard_ms;
    size_t heard_size;
    char heard[512];
    unsigned char out[DAY_SOCKET_CHUNK + DAY_TEXT];
};

static struct day_socket day_sockets[DAY_SOCKET_COUNT];

static struct day_client *day_socket_client(const struct day_socket *s)
{
    return &day.clients[s->id];
}

static void day_socket_leave(struct day_socket *s)
{
    struct tn_stream *stream = s->stream;
    s->stream = NULL;
    s->state = stream ? DAY_SOCKET_LEAVES : DAY_SOCKET_AWAY;
    if (stream) {
        tn_stream_close(stream, &s->closing);
    }
}

static void day_socket_left(struct tn_request *request)
{
    struct day_socket *s = request->user;
    s->state = DAY_SOCKET_AWAY;
    if (day_now() >= day_socket_client(s)->away_ms) {
        day_socket_client(s)->away_ms = day_now() + day_below(5 * DAY_SECOND);
    }
}

static void day_socket_hear_line(struct day_socket *s)
{
    struct day_client *client = day_socket_client(s);
    const char *received = strstr(s->heard, "\"received\":");
    if (!received) {
        day_say("socket %u: %s", s->id, s->heard);
        CHECK(strncmp(s->heard, "{\"error\":\"", 10) == 0);
        day_socket_leave(s);
        return;
    }
    uint32_t upto = s->base + (uint32_t)strtoul(received + 11, NULL, 10);
    if (s->state == DAY_SOCKET_GREETED) {
        s->next = s->id == DAY_SOCKET_CERTAIN ? s->next : upto + 1;
        s->state = DAY_SOCKET_SENDS;
        /* What was received once is never unknown again, but where the sender was sure. */
        if (upto < client->acked && s->id == DAY_SOCKET_NAMED) {
            DAY_BAD("socket %u was told that %u lines were received, now %u", s->id, client->acked,
                    upto);
        }
    }
    day_say("socket %u: %u received", s->id, upto);
    client->acked = upto > client->acked ? upto : client->acked;
    CHECK(client->acked <= client->wanted);
    s->heard_ms = day_now();
}

static void day_socket_listen(struct day_socket *s)
{
    CHECK(s->heard_size < sizeof s->heard);
    tn_stream_read(s->stream, s->heard + s->heard_size, sizeof s->heard - s->heard_size, &s->read);
}

static void day_socket_read(struct tn_request *request)
{
    struct day_socket *s = request->user;
    char *newline;
    if (s->state == DAY_SOCKET_LEAVES) {
        return;
    }
    if (request->rc != TN_OK || request->moved == 0) {
        day_socket_leave(s);
        return;
    }
    s->heard_size += request->moved;
    while (s->stream && (newline = memchr(s->heard, '\n', s->heard_size)) != NULL) {
        *newline = 0;
        day_socket_hear_line(s);
        s->heard_size -= (size_t)(newline + 1 - s->heard);
        memmove(s->heard, newline + 1, s->heard_size);
    }
    if (s->stream) {
        day_socket_listen(s);
    }
}

static void day_socket_written(struct tn_request *request)
{
    struct day_socket *s = request->user;
    if (request->rc != TN_OK && s->stream) {
        day_socket_leave(s);
    }
}

static void day_socket_greet(struct day_socket *s)
{
    int size = 0;
    char *text = (char *)s->out;
    uint32_t acked = day_socket_client(s)->acked;
    s->state = DAY_SOCKET_GREETED;
    s->next = acked + 1;
    s->base = 0;
    s->offset = 0;
    s->heard_size = 0;
    s->heard_ms = day_now();
    if (s->id == DAY_SOCKET_CERTAIN) {
        s->next = 1 + day_below(acked + 1);
        size =
            snprintf(text, DAY_SOCKET_CHUNK, "tarn {\"sender\":\"log\",\"first\":%u}\n", s->next);
    } else if (s->id == DAY_SOCKET_NAMED) {
        size = snprintf(text, DAY_SOCKET_CHUNK, "tarn {\"sender\":\"gw-7\"}\n");
    } else {
        s->base = acked;
        s->state = DAY_SOCKET_SENDS;
    }
    day_socket_listen(s);
    if (size > 0) {
        tn_stream_write(s->stream, (struct tn_bytes){s->out, (size_t)size}, &s->write);
    }
}

static void day_socket_connected(struct tn_request *request)
{
    struct day_socket *s = request->user;
    s->stream = request->rc == TN_OK ? request->stream : NULL;
    if (s->stream) {
        day_socket_greet(s);
    } else {
        s->state = DAY_SOCKET_AWAY;
        day_socket_client(s)->away_ms = day_now() + day_below(5 * DAY_SECOND);
    }
}

static void day_socket_connect(struct day_socket *s)
{
    s->state = DAY_SOCKET_CONNECTS;
    s->connect = (struct tn_request){
        .done = day_socket_connected, .user = s, .timeout_ms = DAY_SOCKET_PATIENCE_MS};
    s->read = (struct tn_request){.done = day_socket_read, .user = s};
    s->write = (struct tn_request){.done = day_socket_written, .user = s};
    s->closing = (struct tn_request){.done = day_socket_left, .user = s};
    tn_net_connect(day.far, &(struct tn_endpoint){"gateway", DAY_PORT_SOCKET}, &s->connect);
}

/* Lines, cut anywhere. */
static void day_socket_send(struct day_socket *s)
{
    struct tn_buf out;
    size_t wanted = 1 + day_below(DAY_SOCKET_CHUNK);
    tn_buf_init(&out, s->out, sizeof s->out);
    while (out.size < wanted && s->next <= day_socket_client(s)->wanted) {
        unsigned char memory[DAY_TEXT];
        struct tn_buf line;
        tn_buf_init(&line, memory, sizeof memory);
        day_put_rows(&line, s->id, s->next);
        size_t part = line.size - s->offset;
        part = part < wanted - out.size ? part : wanted - out.size;
        tn_buf_append(&out, memory + s->offset, part);
        s->offset += part;
        if (s->offset == line.size) {
            s->next++;
            s->offset = 0;
        }
    }
    if (out.size > 0) {
        tn_stream_write(s->stream, tn_buf_bytes(&out), &s->write);
    }
}

static void day_socket_step(struct day_socket *s)
{
    const struct day_client *client = day_socket_client(s);
    bool over = client->acked == client->wanted;
    bool is_there = s->state == DAY_SOCKET_GREETED || s->state == DAY_SOCKET_SENDS;
    bool may_send = s->state == DAY_SOCKET_SENDS || (is_there && s->id == DAY_SOCKET_CERTAIN);
    if (s->state == DAY_SOCKET_AWAY && !over && day_now() >= client->away_ms) {
        day_socket_connect(s);
    } else if (may_send && !tn_request_under_way(&s->write)) {
        day_socket_send(s);
    }
    bool bored = !over && day_now() - s->heard_ms > DAY_SOCKET_PATIENCE_MS;
    if (is_there && (bored || day_now() < client->away_ms || (!day.calm && day_chance(400)))) {
        day_socket_leave(s);
    }
}

static void day_socket_open(void)
{
    memset(day_sockets, 0, sizeof day_sockets);
    for (uint32_t i = 0; i < DAY_SOCKET_COUNT; i++) {
        day_sockets[i].id = DAY_SOCKET_NAMED + i;
    }
}

static void day_socket_steps(void)
{
    for (uint32_t i = 0; i < DAY_SOCKET_COUNT; i++) {
        day_socket_step(&day_sockets[i]);
    }
}
