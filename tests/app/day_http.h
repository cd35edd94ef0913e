/* day_http: senders of HTTP that repeat a request until it is answered with 200: one that numbers
 * them, one that gives them keys, one that does neither. */
#pragma once

#include "day_world.h"

enum {
    DAY_HTTP_WINDOW = 3,
    DAY_HTTP_OUT = 4096,
    DAY_HTTP_HEARD = 8192,
    DAY_HTTP_PATIENCE_MS = 12 * DAY_SECOND,
};

struct day_http {
    uint32_t id;
    struct tn_stream *stream;
    struct tn_request connect;
    struct tn_request read;
    struct tn_request write;
    bool connects;
    bool reads;
    bool writes;
    uint32_t asked; /* on this connection, the last one */
    char heard[DAY_HTTP_HEARD];
    size_t heard_size;
    char out[DAY_HTTP_OUT];
};

static struct day_http day_https[DAY_HTTP_NOBODY + 1];

static struct day_client *day_http_client(const struct day_http *http)
{
    return &day.clients[http->id];
}

static void day_http_give_up(struct day_http *http)
{
    if (http->stream) {
        struct tn_stream *stream = http->stream;
        http->stream = NULL;
        tn_stream_close(stream, NULL);
    }
}

static void day_http_put(struct tn_buf *out, const struct day_http *http, uint32_t number)
{
    unsigned char memory[DAY_TEXT];
    struct tn_buf body;
    tn_buf_init(&body, memory, sizeof memory);
    day_put_rows(&body, http->id, number);
    tn_buf_format(out, "POST /tables/%s/rows HTTP/1.1\r\nHost: gateway\r\n",
                  day_names[day_table_of(http->id, number)]);
    if (http->id == DAY_HTTP_NUMBERS) {
        tn_buf_format(out, "X-Sender: meter\r\nX-Sequence: %u\r\n", number);
    } else if (http->id == DAY_HTTP_KEYS) {
        tn_buf_format(out, "Idempotency-Key: key-%u\r\n", number);
    }
    tn_buf_format(out, "Content-Length: %zu\r\n\r\n", body.size);
    tn_buf_append(out, body.data, body.size);
}

static void day_http_written(struct tn_request *request)
{
    struct day_http *http = request->user;
    http->writes = false;
    if (request->rc != TN_OK) {
        day_http_give_up(http);
    }
}

static void day_http_ask(struct day_http *http)
{
    struct tn_buf out;
    const struct day_client *client = day_http_client(http);
    tn_buf_init(&out, http->out, sizeof http->out);
    while (http->asked < client->wanted && http->asked < client->acked + DAY_HTTP_WINDOW) {
        day_http_put(&out, http, ++http->asked);
    }
    CHECK(!out.overflow);
    if (out.size > 0) {
        http->writes = true;
        http->write = (struct tn_request){
            .done = day_http_written, .user = http, .timeout_ms = DAY_HTTP_PATIENCE_MS};
        tn_stream_write(http->stream, tn_buf_bytes(&out), &http->write);
    }
}

/* Where the first answer ends; NULL: not yet. */
static const char *day_http_end(const struct day_http *http, int *status)
{
    const char *end = memmem(http->heard, http->heard_size, "\r\n\r\n", 4);
    const char *length = end ? strstr(http->heard, "Content-Length: ") : NULL;
    if (!end) {
        return NULL;
    }
    CHECK(memcmp(http->heard, "HTTP/1.1 ", 9) == 0 && length && length < end);
    *status = (int)strtol(http->heard + 9, NULL, 10);
    end += 4 + strtoul(length + 16, NULL, 10);
    return end <= http->heard + http->heard_size ? end : NULL;
}

static void day_http_hear(struct day_http *http)
{
    int status;
    const char *end;
    while (http->stream && (end = day_http_end(http, &status)) != NULL) {
        if (status == 200) {
            day_http_client(http)->acked++;
            CHECK(day_http_client(http)->acked <= http->asked);
            day_say("http %u: %u is answered", http->id, day_http_client(http)->acked);
        } else if (status == 404) { /* a table that comes with a reload */
            CHECK(day_table_of(http->id, day_http_client(http)->acked + 1) == DAY_SPARE);
        } else if (status != 408 && status < 500) {
            DAY_BAD("HTTP: %s", http->heard);
        }
        http->heard_size -= (size_t)(end - http->heard);
        memmove(http->heard, end, http->heard_size + 1);
        if (status != 200) { /* all that was asked is asked again */
            day_say("http %u: %d for %u", http->id, status, day_http_client(http)->acked + 1);
            bool waits = status == 404 && !day.calm; /* else it would be most of the day */
            day_http_client(http)->away_ms =
                day_now() + day_below(waits ? 10 * DAY_MINUTE : 5 * DAY_SECOND);
            day_http_give_up(http);
        }
    }
}

static void day_http_read(struct tn_request *request)
{
    struct day_http *http = request->user;
    http->reads = false;
    if (request->rc != TN_OK || request->moved == 0) {
        day_http_give_up(http);
        return;
    }
    http->heard_size += request->moved;
    http->heard[http->heard_size] = 0;
    day_http_hear(http);
}

static void day_http_connected(struct tn_request *request)
{
    struct day_http *http = request->user;
    http->connects = false;
    http->stream = request->rc == TN_OK ? request->stream : NULL;
    http->asked = day_http_client(http)->acked;
    http->heard_size = 0;
    if (!http->stream) {
        day_http_client(http)->away_ms = day_now() + day_below(5 * DAY_SECOND);
    }
}

static void day_http_connect(struct day_http *http)
{
    struct tn_endpoint to = {"gateway", DAY_PORT_HTTP};
    http->connects = true;
    http->connect = (struct tn_request){
        .done = day_http_connected, .user = http, .timeout_ms = DAY_HTTP_PATIENCE_MS};
    tn_net_connect(day.far, &to, &http->connect);
}

static void day_http_step(struct day_http *http)
{
    const struct day_client *client = day_http_client(http);
    bool over = client->acked == client->wanted;
    if (http->stream && (day_now() < client->away_ms || (!day.calm && day_chance(400)))) {
        day_http_give_up(http);
    }
    if (over || day_now() < client->away_ms || http->connects ||
        (!http->stream && (http->reads || http->writes))) {
        return;
    }
    if (!http->stream) {
        day_http_connect(http);
        return;
    }
    if (!http->reads) {
        http->reads = true;
        http->read = (struct tn_request){
            .done = day_http_read, .user = http, .timeout_ms = DAY_HTTP_PATIENCE_MS};
        tn_stream_read(http->stream, http->heard + http->heard_size,
                       DAY_HTTP_HEARD - 1 - http->heard_size, &http->read);
    }
    if (!http->writes) {
        day_http_ask(http);
    }
}

static void day_http_open(void)
{
    memset(day_https, 0, sizeof day_https);
    for (uint32_t i = 0; i < COUNT(day_https); i++) {
        day_https[i].id = i;
    }
}

static void day_http_steps(void)
{
    for (uint32_t i = 0; i < COUNT(day_https); i++) {
        day_http_step(&day_https[i]);
    }
}
