/* day_broker: the broker of mqtt_broker.h at an end of the network, with messages of QoS 0, 1 and 2
 * in topics of all tables. */
#pragma once

#include "day_world.h"
#include "ingest/mqtt_broker.h"

enum { DAY_LINES = 16, DAY_LINE_IN = 700, DAY_LINE_OUT = 3000 };

struct day_line {
    struct tn_stream *stream;
    struct tn_request read;
    struct tn_request write;
    unsigned char in[DAY_LINE_IN];
    unsigned char out[DAY_LINE_OUT];
};

static struct broker day_mqtt;

static struct {
    struct tn_listener *listener;
    struct tn_request accept;
    struct day_line lines[DAY_LINES];
    uint32_t next;
    struct day_line *current; /* NULL: nobody is connected */
} day_far;

static const char *const day_topics[DAY_SPARE] = {"plant/append/1", "plant/sum/1", "plant/last/1",
                                                  "plant/count/1"};

/* The tables tell in the end. */
static bool day_broker_durable(uint32_t n)
{
    (void)n;
    return true;
}

static bool day_broker_forgotten(uint16_t id)
{
    (void)id;
    return true;
}

static void day_broker_text(uint32_t n, char topic[BROKER_TEXT_SIZE],
                            char payload[BROKER_TEXT_SIZE])
{
    struct tn_buf out;
    (void)snprintf(topic, BROKER_TEXT_SIZE, "%s", day_topics[day_table_of(DAY_MQTT, n + 1)]);
    tn_buf_init(&out, payload, BROKER_TEXT_SIZE - 1);
    day_put_rows(&out, DAY_MQTT, n + 1);
    CHECK(!out.overflow);
    payload[out.size - 1] = 0; /* without the line's end */
}

static enum day_promise day_broker_promise(uint32_t number)
{
    static const enum day_promise of_qos[] = {DAY_MAYBE, DAY_AT_LEAST, DAY_ONCE};
    return of_qos[day_mqtt.messages[number - 1].qos];
}

static bool day_broker_is_done(uint32_t number)
{
    enum broker_state state = day_mqtt.messages[number - 1].state;
    return state == BROKER_DONE || state == BROKER_RELEASED;
}

static bool day_broker_is_over(void)
{
    for (uint32_t i = 0; i < day_mqtt.message_count; i++) {
        if (day_mqtt.messages[i].state != BROKER_DONE) {
            return false;
        }
    }
    return true;
}

static void day_hang_up(void)
{
    if (day_far.current) {
        tn_stream_close(day_far.current->stream, NULL);
        day_far.current->stream = NULL;
        day_far.current = NULL;
        broker_cut(&day_mqtt);
    }
}

static void day_broker_pump(void)
{
    struct day_line *line = day_far.current;
    size_t size = day_mqtt.out.size < DAY_LINE_OUT ? day_mqtt.out.size : DAY_LINE_OUT;
    if (!line || tn_request_under_way(&line->write) || size == 0) {
        return;
    }
    memcpy(line->out, day_mqtt.out.data, size);
    day_mqtt.out.size -= size;
    memmove(day_mqtt.out.data, day_mqtt.out.data + size, day_mqtt.out.size);
    tn_stream_write(line->stream, (struct tn_bytes){line->out, size}, &line->write);
}

static void day_line_read(struct tn_request *request)
{
    struct day_line *line = request->user;
    if (line != day_far.current) {
        return;
    }
    if (request->rc != TN_OK || request->moved == 0) {
        day_hang_up();
        return;
    }
    tn_buf_append(&day_mqtt.in, request->data, request->moved);
    CHECK(!day_mqtt.in.overflow);
    broker_read(&day_mqtt);
    day_broker_pump();
    tn_stream_read(line->stream, line->in, sizeof line->in, &line->read);
}

static void day_line_written(struct tn_request *request)
{
    if (request->user == day_far.current && request->rc != TN_OK) {
        day_hang_up();
    }
}

static void day_accept(void);

static void day_accepted(struct tn_request *request)
{
    if (request->rc == TN_CANCELED) {
        return;
    }
    CHECK_OK(request->rc, request->err);
    struct day_line *line = &day_far.lines[day_far.next++ % DAY_LINES];
    CHECK(line != day_far.current);
    line->read = (struct tn_request){.done = day_line_read, .user = line};
    line->write = (struct tn_request){.done = day_line_written, .user = line};
    if (day_now() < day.clients[DAY_MQTT].away_ms) {
        tn_stream_close(request->stream, NULL);
    } else {
        day_hang_up(); /* a client that comes again has its old connection ended */
        line->stream = request->stream;
        day_far.current = line;
        tn_stream_read(line->stream, line->in, sizeof line->in, &line->read);
    }
    day_accept();
}

static void day_accept(void)
{
    day_far.accept = (struct tn_request){.done = day_accepted};
    tn_net_accept(day_far.listener, &day_far.accept);
}

static void day_broker_step(void)
{
    day_mqtt.message_count = day.clients[DAY_MQTT].wanted;
    if (day_far.current &&
        (day_now() < day.clients[DAY_MQTT].away_ms || (!day.calm && day_chance(800)))) {
        day_hang_up();
    }
    for (uint32_t i = day_below(3); i > 0; i--) {
        broker_send_next(&day_mqtt);
    }
    day_broker_pump();
}

static void day_broker_open(void)
{
    struct tn_err err;
    memset(&day_far, 0, sizeof day_far);
    broker_init(&day_mqtt, DAY_NUMBERS, day.seed);
    day_mqtt.message_count = 0;
    day_mqtt.durable = day_broker_durable;
    day_mqtt.forgotten = day_broker_forgotten;
    day_mqtt.text = day_broker_text;
    tn_rc rc = tn_net_listen(day.broker, &(struct tn_endpoint){"0.0.0.0", DAY_PORT_BROKER},
                             DAY_LINES, &day_far.listener, &err);
    CHECK_OK(rc, err);
    day_accept();
}
