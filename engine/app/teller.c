#include "app/teller.h"

#include <string.h>

#include "base/check.h"

enum {
    STEP_MS = 20 * 1000, /* that a connection, a handshake or an answer may take */
    HEADERS = 6,
    RETRY_AFTER_S_MAX = 3600,
    STATUS_REQUEST_BAD = 400,
    STATUS_TOO_LARGE = 413,
    STATUS_TYPE_BAD = 415,
    STATUS_CONTENT_BAD = 422,
};

static int64_t now_ms(const struct tn_teller *t)
{
    return tn_clock_monotonic_ms(t->spec.net->clock);
}

static struct tn_bytes text_or_none(const char *text)
{
    return text ? tn_bytes_of(text) : (struct tn_bytes){0};
}

tn_rc tn_teller_open(struct tn_teller *teller, const struct tn_teller_spec *spec,
                     struct tn_err *err)
{
    struct tn_teller *t = teller;
    memset(t, 0, sizeof *t);
    t->spec = *spec;
    t->version = TN_MQTT_V5;
    tn_buf_init(&t->out, t->out_memory, sizeof t->out_memory);
    tn_buf_init(&t->in, t->in_memory, sizeof t->in_memory);
    return tn_config_notify_parse(spec->config->url, t->host, &t->url, err);
}

/* ---- what is waited for ---- */

/* One request at a time, which ends when the message's time does. */
static void expect(struct tn_teller *t, enum tn_teller_state state)
{
    int64_t left = t->until_ms - now_ms(t);
    t->state = state;
    t->request = (struct tn_request){.op = &t->op,
                                     .timeout_ms = left < 1         ? 1
                                                   : left < STEP_MS ? (uint32_t)left
                                                                    : STEP_MS};
    tn_op_expect(&t->op, 1);
}

static void close_stream(struct tn_teller *t)
{
    t->state = TN_TELLER_CLOSE;
    t->request = (struct tn_request){.op = &t->op};
    tn_op_expect(&t->op, 1);
    tn_stream_close(t->stream, &t->request);
    t->stream = NULL;
}

static void end(struct tn_teller *t)
{
    if (t->stream) {
        close_stream(t);
    } else {
        tn_op_finish(&t->op, t->rc);
    }
}

static void fail(struct tn_teller *t, tn_rc rc, const struct tn_err *err)
{
    bool talked = t->url.mqtt && t->talks && !t->told;
    t->rc = rc;
    t->err = *err;
    if (talked) {
        t->version = tn_mqtt_publish_other(&t->publish);
        t->refused = t->publish.refused;
    }
    end(t);
}

static void write_out(struct tn_teller *t)
{
    expect(t, TN_TELLER_WRITE);
    tn_stream_write(t->stream, tn_buf_bytes(&t->out), &t->request);
}

static void read_more(struct tn_teller *t)
{
    expect(t, TN_TELLER_READ);
    tn_stream_read(t->stream, t->in.data + t->in.size, t->in.capacity - t->in.size, &t->request);
}

/* ---- HTTP ---- */

/* Made where the answer's head will be, which is not there yet. */
static const char *bearer_of(struct tn_teller *t)
{
    struct tn_buf value;
    tn_buf_init(&value, t->head_memory, sizeof t->head_memory);
    tn_buf_text(&value, "Bearer ");
    tn_buf_text(&value, t->spec.config->token);
    tn_buf_byte(&value, 0);
    TN_CHECK(!value.overflow); /* the configuration has bounded it */
    return (const char *)value.data;
}

static tn_rc begin_post(struct tn_teller *t, struct tn_err *err)
{
    struct tn_http_header headers[HEADERS] = {{"Host", t->url.authority},
                                              {"User-Agent", "tarn"},
                                              {"Connection", "close"},
                                              {"Content-Type", t->message.type}};
    struct tn_http_request request = {.method = "POST",
                                      .path = t->url.path,
                                      .query = t->url.query,
                                      .headers = headers,
                                      .header_count = 4,
                                      .has_body = true,
                                      .body_size = t->message.payload.size};
    if (t->spec.config->token) {
        headers[request.header_count++] = (struct tn_http_header){"Authorization", bearer_of(t)};
    }
    tn_http_init(&t->http, t->head_memory, sizeof t->head_memory);
    tn_rc rc = tn_http_request(&t->http, &request, &t->out, err);
    if (rc == TN_OK) {
        tn_buf_append(&t->out, t->message.payload.data, t->message.payload.size);
        TN_CHECK(!t->out.overflow);
    }
    return rc;
}

static uint32_t retry_after_ms(const struct tn_http *http)
{
    struct tn_bytes text;
    uint64_t seconds;
    if (!tn_http_header(http, "Retry-After", &text) || !tn_http_number(text, &seconds)) {
        return 0;
    }
    return (uint32_t)(seconds < RETRY_AFTER_S_MAX ? seconds : RETRY_AFTER_S_MAX) * 1000;
}

static void judge_answer(struct tn_teller *t)
{
    int status = t->http.status;
    t->told = status >= 200 && status < 300;
    t->refused = status == STATUS_REQUEST_BAD || status == STATUS_TOO_LARGE ||
                 status == STATUS_TYPE_BAD || status == STATUS_CONTENT_BAD;
    t->retry_after_ms = retry_after_ms(&t->http);
    t->rc = t->told ? TN_OK
                    : tn_err_set(&t->err, TN_IO, 0, "it answered with status %d%s", status,
                                 status >= 300 && status < 400 ? ", and nobody goes elsewhere: "
                                                                 "give the url where it leads"
                                                               : "");
    end(t);
}

/* What is read is used up; more of an answer's body than this nobody waits for. */
static void take_answer(struct tn_teller *t)
{
    struct tn_bytes input = tn_buf_bytes(&t->in);
    struct tn_bytes body;
    struct tn_err err;
    enum tn_http_event event = TN_HTTP_HEAD;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && event != TN_HTTP_MORE && event != TN_HTTP_END) {
        rc = tn_http_read(&t->http, &input, &event, &body, &err);
        if (rc == TN_OK && event == TN_HTTP_HEAD) { /* it says all that counts */
            judge_answer(t);
            return;
        }
    }
    t->in.size = 0;
    if (rc != TN_OK) {
        fail(t, rc, &err);
    } else {
        read_more(t);
    }
}

/* ---- MQTT ---- */

static tn_rc begin_publish(struct tn_teller *t, struct tn_err *err)
{
    const struct tn_config_notify *config = t->spec.config;
    t->publish_spec = (struct tn_mqtt_publish_spec){.client_id = tn_bytes_of(t->spec.client_id),
                                                    .user = text_or_none(config->user),
                                                    .password = text_or_none(config->password),
                                                    .topic = t->message.topic,
                                                    .payload = t->message.payload,
                                                    .retain = t->message.retain};
    return tn_mqtt_publish_begin(&t->publish, &t->publish_spec, t->version, &t->out, err);
}

static void take_packet(struct tn_teller *t)
{
    struct tn_bytes input = tn_buf_bytes(&t->in);
    struct tn_err err;
    tn_rc rc = tn_mqtt_publish_next(&t->publish, &input, &t->out, &err);
    if (rc == TN_AGAIN) {
        read_more(t);
        return;
    }
    if (rc != TN_OK) {
        fail(t, rc, &err);
        return;
    }
    memmove(t->in.data, input.data, input.size);
    t->in.size = input.size;
    t->told = t->publish.state == TN_MQTT_PUBLISH_DONE;
    t->rc = TN_OK;
    write_out(t);
}

/* ---- steps ---- */

static void begin_talk(struct tn_teller *t)
{
    struct tn_err err;
    if (t->knocks && !t->url.mqtt) {
        t->told = true;
        end(t);
        return;
    }
    t->talks = true;
    t->in.size = 0;
    t->out.size = 0;
    tn_rc rc = t->url.mqtt ? begin_publish(t, &err) : begin_post(t, &err);
    if (rc != TN_OK) {
        t->talks = false; /* nothing was said of versions */
        t->refused = true;
        fail(t, rc, &err);
    } else {
        write_out(t);
    }
}

static void connected(struct tn_teller *t)
{
    if (t->state == TN_TELLER_CONNECT && t->spec.tls) {
        struct tn_stream *below = t->stream;
        t->stream = NULL; /* it is TLS's from now on */
        expect(t, TN_TELLER_SECURE);
        tn_tls_open(t->spec.tls, t->spec.exec, below, t->host, &t->request);
    } else {
        begin_talk(t);
    }
}

static void was_read(struct tn_teller *t)
{
    struct tn_err err;
    if (t->request.moved == 0) {
        (void)tn_err_set(&err, TN_IO, 0, "it closed the connection without an answer");
        fail(t, TN_IO, &err);
        return;
    }
    t->in.size += t->request.moved;
    if (t->url.mqtt) {
        take_packet(t);
    } else {
        take_answer(t);
    }
}

static void connect_stream(struct tn_teller *t)
{
    expect(t, TN_TELLER_CONNECT);
    tn_net_connect(t->spec.net, &t->url.at, &t->request);
}

static void failed(struct tn_teller *t)
{
    struct tn_err err = t->op.err;
    tn_rc rc = t->stopping ? TN_CANCELED : t->op.rc;
    if (t->stopping) {
        (void)tn_err_set(&err, rc, 0, "it is to end");
    } else if (rc == TN_AGAIN && t->state == TN_TELLER_READ) {
        rc = tn_err_set(&err, TN_IO, 0, "it gave no answer in time");
    }
    fail(t, rc, &err);
}

static void written(struct tn_teller *t)
{
    if (t->told) {
        end(t);
    } else if (t->url.mqtt && t->in.size > 0) {
        take_packet(t);
    } else {
        read_more(t);
    }
}

/* Where the goodbye doesn't get through, it was told all the same. */
static void step(struct tn_op *op)
{
    struct tn_teller *t = (struct tn_teller *)(void *)op;
    bool opens = t->state == TN_TELLER_CONNECT || t->state == TN_TELLER_SECURE;
    if (opens && op->rc == TN_OK) {
        t->stream = t->request.stream;
    }
    if (t->state != TN_TELLER_CLOSE && !t->told && (op->rc != TN_OK || t->stopping)) {
        failed(t);
        return;
    }
    switch (t->state) {
    case TN_TELLER_BEGIN:
        connect_stream(t);
        return;
    case TN_TELLER_CONNECT:
    case TN_TELLER_SECURE:
        connected(t);
        return;
    case TN_TELLER_WRITE:
        written(t);
        return;
    case TN_TELLER_READ:
        was_read(t);
        return;
    case TN_TELLER_CLOSE:
        tn_op_finish(op, t->rc);
        return;
    case TN_TELLER_IDLE:
        break;
    }
    TN_CHECK(t->state != TN_TELLER_IDLE);
}

static void done(struct tn_op *op, tn_rc rc)
{
    struct tn_teller *t = (struct tn_teller *)(void *)op;
    (void)rc;
    t->state = TN_TELLER_IDLE;
    t->ended = true;
}

static void begin(struct tn_teller *t, struct tn_ops *ops)
{
    TN_CHECK(!tn_teller_busy(t) && !t->stopping);
    t->until_ms = now_ms(t) + TN_TELLER_PATIENCE_MS;
    t->talks = false;
    t->told = false;
    t->ended = false;
    t->refused = false;
    t->retry_after_ms = 0;
    t->rc = TN_OK;
    t->stream = NULL;
    t->state = TN_TELLER_BEGIN;
    tn_op_start(&t->op, ops, step, done);
}

void tn_teller_tell(struct tn_teller *teller, const struct tn_teller_message *message,
                    struct tn_ops *ops)
{
    teller->message = *message;
    teller->knocks = false;
    begin(teller, ops);
}

void tn_teller_knock(struct tn_teller *teller, struct tn_ops *ops)
{
    teller->message = (struct tn_teller_message){.type = NULL};
    teller->knocks = true;
    begin(teller, ops);
}

void tn_teller_stop(struct tn_teller *teller)
{
    teller->stopping = true;
    bool waits = teller->state != TN_TELLER_IDLE && teller->state != TN_TELLER_BEGIN;
    if (waits && teller->state != TN_TELLER_CLOSE) {
        tn_request_cancel(&teller->request);
    }
}
