#include "base/check.h"
#include "ingest/http_private.h"

enum { NS_PER_MS = 1000000, BYTES_A_MS = 1, DRAIN_MS_MAX = 2000 };

static struct tn_http_connection *connection_of(struct tn_op *op)
{
    return (struct tn_http_connection *)(void *)op;
}

static const struct tn_http_server_spec *spec_of(const struct tn_http_connection *c)
{
    return &c->server->spec;
}

static int64_t now_ns(const struct tn_http_connection *c)
{
    struct tn_clock *clock = spec_of(c)->net->clock;
    return clock->vtable->monotonic_ns(clock);
}

/* At least one, since 0 waits for ever. */
static uint32_t left_ms(const struct tn_http_connection *c, int64_t deadline_ns)
{
    int64_t left = (deadline_ns - now_ns(c)) / NS_PER_MS;
    return left < 1 ? 1 : left > INT32_MAX ? INT32_MAX : (uint32_t)left;
}

/* The next request, whose end steps the connection again. */
static struct tn_request *wait_for(struct tn_http_connection *c, enum tn_http_await what,
                                   uint32_t timeout_ms)
{
    c->await = what;
    c->request = (struct tn_request){.op = &c->op, .timeout_ms = timeout_ms};
    tn_op_expect(&c->op, 1);
    return &c->request;
}

/* ---- the end ---- */

static void on_done(struct tn_op *op, tn_rc rc)
{
    struct tn_http_connection *c = connection_of(op);
    (void)rc;
    c->open = false;
    c->server->open_count--;
}

/* Nothing of it is under way: the slot is free at once. */
static void end(struct tn_http_connection *c)
{
    if (c->stream) {
        tn_stream_close(c->stream, NULL);
        c->stream = NULL;
    }
    tn_op_finish(&c->op, TN_OK);
}

/* A close with bytes unread would reset the connection, and the answer could be lost with it. */
static void drain(struct tn_http_connection *c)
{
    if (now_ns(c) >= c->deadline_ns) {
        end(c);
        return;
    }
    tn_stream_read(c->stream, c->input, TN_HTTP_INPUT_SIZE,
                   wait_for(c, TN_HTTP_AWAIT_END, left_ms(c, c->deadline_ns)));
}

static void finish(struct tn_http_connection *c)
{
    c->deadline_ns = now_ns(c) + (int64_t)DRAIN_MS_MAX * NS_PER_MS;
    tn_stream_finish(c->stream, wait_for(c, TN_HTTP_AWAIT_FINISHED, DRAIN_MS_MAX));
}

/* ---- answers ---- */

static void write_answer(struct tn_http_connection *c)
{
    c->began = false;
    tn_stream_write(c->stream, c->answer,
                    wait_for(c, TN_HTTP_AWAIT_WRITTEN, spec_of(c)->timeout_ms));
}

/* A number that isn't taken may come again; one behind it must not have come first. */
static void choose_last(struct tn_http_connection *c, int status)
{
    bool marked = c->asked.mark.sequence > 0 || c->asked.mark.key.size > 0;
    c->last |= !c->reader.keep_alive || c->server->stopping || (marked && status != 200);
}

static void refuse(struct tn_http_connection *c, int status, uint64_t line, const char *text)
{
    choose_last(c, status);
    tn_http_answer_error(c, status, line, text);
    write_answer(c);
}

/* In the middle of a request. Behind its body another one could follow, but the body would have to
 * be read for nothing. */
static void refuse_early(struct tn_http_connection *c, int status, const char *text)
{
    struct tn_bytes body;
    struct tn_err err;
    enum tn_http_reader_event event = TN_HTTP_READER_MORE;
    bool whole =
        c->reader.state == TN_HTTP_READER_IN_BODY && !c->reader.has_body &&
        tn_http_reader_next(&c->reader, &(struct tn_bytes){NULL, 0}, &event, &body, &err) == TN_OK;
    c->last |= !whole;
    refuse(c, status, 0, text);
}

static void answer_rows(struct tn_http_connection *c)
{
    struct tn_http_counts *counts = &c->server->counts;
    counts->rows += c->rows;
    counts->repeats += c->repeated;
    choose_last(c, 200);
    tn_http_answer_rows(c);
    write_answer(c);
}

static void answer_page(struct tn_http_connection *c)
{
    choose_last(c, 200);
    tn_http_answer_page(c);
    write_answer(c);
}

/* One that can't go on ends without its last chunk, which tells the client. */
static void answer_part(struct tn_http_connection *c)
{
    if (!tn_http_answer_part(c)) {
        end(c);
    } else if (c->answer.size > 0) {
        write_answer(c);
    } else {
        finish(c); /* to HTTP/1.0 the end is all that is left */
    }
}

/* ---- rows ---- */

/* Waits for the hub to say something, which cancels the timer, or for the deadline. */
static void wait_for_hub(struct tn_http_connection *c, enum tn_http_await what)
{
    tn_net_after(spec_of(c)->net, left_ms(c, c->deadline_ns), wait_for(c, what, 0));
}

static void await_durable(struct tn_http_connection *c)
{
    if (spec_of(c)->hub->durable >= c->place) {
        answer_rows(c);
    } else if (now_ns(c) < c->deadline_ns) {
        wait_for_hub(c, TN_HTTP_AWAIT_DURABLE);
    } else {
        refuse(c, 503, 0,
               "the rows are taken, but not on disk yet: with X-Sender and X-Sequence, or an "
               "Idempotency-Key, they can be sent again");
    }
}

static void start_deadline(struct tn_http_connection *c)
{
    c->deadline_ns = now_ns(c) + (int64_t)spec_of(c)->answer_ms_max * NS_PER_MS;
}

/* OK: it's new, and the message has its memo; or it's known, and c->repeated. */
static tn_rc meet(struct tn_http_connection *c, struct tn_message *message, struct tn_err *err)
{
    struct tn_bytes known = {NULL, 0};
    struct tn_buf next;
    message->sender = tn_bytes_of(c->asked.sender);
    tn_rc rc = tn_hub_sender(spec_of(c)->hub, message->sender, &known, &c->place);
    if (rc == TN_ABSENT) {
        known.size = 0;
    } else if (rc != TN_OK) {
        return tn_err_set(err, rc, 0, "what is known of the sender can't be told now");
    }
    tn_buf_init(&next, c->server->memo, sizeof c->server->memo);
    rc = tn_http_memo_meet(known, &c->asked.mark, &c->repeated, &next, err);
    message->memo = tn_buf_bytes(&next);
    return rc;
}

static void on_refusal(struct tn_http_connection *c, const struct tn_message *message, tn_rc rc,
                       const struct tn_err *err)
{
    if (rc == TN_ABSENT || rc == TN_INVALID) {
        refuse(c, rc == TN_ABSENT ? 404 : 400, message->line, err->text);
    } else {
        refuse(c, 503, 0, err->text);
    }
}

static void offer(struct tn_http_connection *c)
{
    struct tn_err err = {0};
    struct tn_clock *clock = spec_of(c)->net->clock;
    struct tn_message message = {.table = c->asked.table,
                                 .input = c->asked.input,
                                 .bytes = tn_buf_bytes(&c->body),
                                 .source = spec_of(c)->source,
                                 .received_ms = clock->vtable->now_ms(clock),
                                 .whole = true};
    bool marked = c->asked.mark.sequence > 0 || c->asked.mark.key.size > 0;
    tn_rc rc = marked ? meet(c, &message, &err) : TN_OK;
    if (rc != TN_OK) {
        refuse(c, rc == TN_CORRUPT ? 500 : 503, 0, err.text);
        return;
    }
    if (!c->repeated) {
        rc = tn_hub_offer(spec_of(c)->hub, &message, &err);
    }
    if (rc == TN_AGAIN && now_ns(c) < c->deadline_ns) {
        wait_for_hub(c, TN_HTTP_AWAIT_ROOM);
        return;
    }
    if (rc != TN_OK) {
        on_refusal(c, &message, rc, &err);
        return;
    }
    if (!c->repeated) {
        c->place = message.place;
        c->rows = message.rows;
    }
    start_deadline(c);
    await_durable(c);
}

/* ---- requests ---- */

static void answer_request(struct tn_http_connection *c)
{
    if (c->asked.page) {
        answer_page(c);
    } else {
        start_deadline(c);
        offer(c);
    }
}

static size_t body_max_of(const struct tn_http_server_spec *spec)
{
    return spec->hub->size_max < spec->body_size_max ? spec->hub->size_max : spec->body_size_max;
}

static void refuse_long(struct tn_http_connection *c)
{
    char text[64];
    struct tn_buf buf;
    tn_buf_init(&buf, text, sizeof text - 1);
    tn_buf_format(&buf, "its body is longer than %zu bytes", c->body_max);
    text[buf.size] = 0;
    refuse_early(c, 413, text);
}

static void say_continue(struct tn_http_connection *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    tn_stream_write(c->stream, tn_bytes_of(text),
                    wait_for(c, TN_HTTP_AWAIT_CONTINUE, spec_of(c)->timeout_ms));
}

/* False: the connection waits. */
static bool begin_request(struct tn_http_connection *c)
{
    struct tn_err err;
    c->server->counts.requests++;
    c->body.size = 0;
    c->body.overflow = false;
    c->body_max = body_max_of(spec_of(c));
    c->rows = 0;
    c->repeated = false;
    c->parted = false;
    int status = tn_http_route(c->server, &c->reader, &c->asked, &err);
    if (status != 200) {
        refuse_early(c, status, err.text);
    } else if (c->reader.length > c->body_max) {
        refuse_long(c);
    } else if (c->reader.expects && c->rest.size == 0) {
        say_continue(c);
    } else {
        return true;
    }
    return false;
}

static bool keep_body(struct tn_http_connection *c, struct tn_bytes piece)
{
    if (piece.size > c->body_max - c->body.size) {
        refuse_long(c);
        return false;
    }
    tn_buf_append(&c->body, piece.data, piece.size);
    return true;
}

/* ---- bytes ---- */

static bool is_idle(const struct tn_http_connection *c)
{
    return c->reader.state == TN_HTTP_READER_AT_END || !c->reader.began;
}

/* Each byte of a body gives a bit more time, so that no long one is late by its length alone. */
static uint32_t patience_ms(struct tn_http_connection *c)
{
    if (is_idle(c)) {
        return spec_of(c)->idle_ms;
    }
    if (!c->began) {
        c->began = true;
        c->began_ns = now_ns(c);
    }
    int64_t ms = (int64_t)spec_of(c)->timeout_ms + (int64_t)c->body.size / BYTES_A_MS;
    return left_ms(c, c->began_ns + ms * NS_PER_MS);
}

static void read_more(struct tn_http_connection *c)
{
    if (c->server->stopping) {
        end(c);
        return;
    }
    tn_stream_read(c->stream, c->input, TN_HTTP_INPUT_SIZE,
                   wait_for(c, TN_HTTP_AWAIT_BYTES, patience_ms(c)));
}

/* Reads what is there, up to the next thing to wait for. */
static void go_on(struct tn_http_connection *c)
{
    bool goes = true;
    while (goes) {
        struct tn_err err;
        struct tn_bytes body;
        enum tn_http_reader_event event = TN_HTTP_READER_MORE;
        if (tn_http_reader_next(&c->reader, &c->rest, &event, &body, &err) != TN_OK) {
            refuse_early(c, c->reader.status, err.text);
            return;
        }
        switch (event) {
        case TN_HTTP_READER_HEAD:
            goes = begin_request(c);
            break;
        case TN_HTTP_READER_BODY:
            goes = keep_body(c, body);
            break;
        case TN_HTTP_READER_END:
            answer_request(c);
            return;
        case TN_HTTP_READER_MORE:
            read_more(c);
            return;
        }
    }
}

static void after_read(struct tn_http_connection *c)
{
    if (c->op.rc == TN_AGAIN && !is_idle(c)) {
        c->server->counts.slow++;
        refuse_early(c, 408, "it comes too slowly");
    } else if (c->op.rc != TN_OK || c->request.moved == 0) {
        end(c);
    } else {
        c->rest = (struct tn_bytes){c->input, c->request.moved};
        go_on(c);
    }
}

static void after_written(struct tn_http_connection *c)
{
    if (c->op.rc != TN_OK) {
        end(c);
    } else if (c->parted) {
        answer_part(c);
    } else if (c->last) {
        finish(c);
    } else {
        go_on(c);
    }
}

/* ---- steps ---- */

static void start(struct tn_http_connection *c)
{
    if (c->spare) {
        c->last = true;
        refuse(c, 503, 0, "there are too many connections");
    } else {
        read_more(c);
    }
}

static void after_tls(struct tn_http_connection *c)
{
    c->stream = c->op.rc == TN_OK ? c->request.stream : NULL;
    if (!c->stream) {
        end(c);
    } else {
        start(c);
    }
}

static void step(struct tn_op *op)
{
    struct tn_http_connection *c = connection_of(op);
    switch (c->await) {
    case TN_HTTP_AWAIT_TLS:
        after_tls(c);
        return;
    case TN_HTTP_AWAIT_BYTES:
        after_read(c);
        return;
    case TN_HTTP_AWAIT_CONTINUE:
        if (c->op.rc != TN_OK) {
            end(c);
        } else {
            go_on(c);
        }
        return;
    case TN_HTTP_AWAIT_ROOM:
        offer(c);
        return;
    case TN_HTTP_AWAIT_DURABLE:
        await_durable(c);
        return;
    case TN_HTTP_AWAIT_WRITTEN:
        after_written(c);
        return;
    case TN_HTTP_AWAIT_FINISHED:
    case TN_HTTP_AWAIT_END:
        if (c->op.rc != TN_OK || (c->await == TN_HTTP_AWAIT_END && c->request.moved == 0)) {
            end(c);
        } else {
            drain(c);
        }
        return;
    }
}

static void step_first(struct tn_op *op)
{
    struct tn_http_connection *c = connection_of(op);
    op->step = step;
    if (!spec_of(c)->tls) {
        start(c);
    } else if (c->spare) {
        end(c); /* a handshake for nothing is what there is too much of */
    } else {
        struct tn_stream *below = c->stream;
        c->stream = NULL;
        tn_tls_open(spec_of(c)->tls, spec_of(c)->exec, below, NULL,
                    wait_for(c, TN_HTTP_AWAIT_TLS, spec_of(c)->timeout_ms));
    }
}

void tn_http_connection_open(struct tn_http_connection *c, struct tn_stream *stream)
{
    TN_CHECK(!c->open);
    c->open = true;
    c->last = false;
    c->began = false;
    c->stream = stream;
    c->rest = (struct tn_bytes){NULL, 0};
    memset(&c->asked, 0, sizeof c->asked);
    tn_http_reader_init(&c->reader, c->reader.head.data, c->reader.head.capacity);
    c->server->open_count++;
    tn_op_start(&c->op, spec_of(c)->ops, step_first, on_done);
}
