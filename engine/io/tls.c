#include "io/tls.h"

#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl_internal.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "io/tls_memory.h"
#include "io/tls_private.h"

enum {
    BYE_MS = 1000,  /* a peer that is gone can't hold up a close for longer */
    IN_SIZE = 4096, /* our own: a buffer of the door would be held while its reader waits for one */
    STAGE_SIZE = 4096, /* a client's messages, or a server's with two certificates */
};

enum tls_state {
    HANDSHAKE, /* waits for the peer, or for a task */
    OPEN,
    CLOSING, /* waits for our last requests, then for the stream below */
    CLOSED,
};

/* mbed TLS runs on what lies in `came`, and hands out what is to be sent; the loop moves both.
 *
 *     stream below -> in -> came -> f_receive -> mbed TLS -> f_send -> sending -> out -> below
 *
 * What a handshake says between two answers is collected in `stage` and leaves as one: one packet
 * and one task instead of four, and a peer that refuses the first message still hears all of them
 * before it hangs up, so that we hear why.
 */
struct tls {
    struct tn_stream stream; /* first */
    struct tn_task task;     /* a step of the handshake */
    bool in_task;
    int task_code; /* mbed TLS's */
    enum tls_state state;
    struct tn_tls_config *config;
    struct tn_exec *exec; /* or NULL */
    struct tn_stream *below;
    mbedtls_ssl_context ssl;
    struct tn_tls_check check;
    char host[TN_HOST_SIZE];

    struct tn_request *opening; /* of whoever uses the stream */
    struct tn_request *reading;
    struct tn_request *writing;
    struct tn_request *finishing;
    struct tn_request *closing;
    struct tn_hungry hungry;

    struct tn_request in; /* ours, of the stream below */
    struct tn_request out;
    struct tn_request end;
    struct tn_bytes came; /* in in_bytes */
    bool came_all;        /* the peer sends no more */
    bool wants_in;
    const unsigned char *sending; /* in mbed TLS's record buffer, which it keeps until it's sent */
    size_t sending_size;
    size_t sent;          /* bytes that mbed TLS wasn't told of yet */
    unsigned char *stage; /* or NULL: not during a handshake, or no memory for it */
    size_t staged;
    bool shaking; /* until the handshake has ended, also for a worker */

    bool record_begun; /* the one of the write or finish that waits */

    bool ended;             /* the peer has said goodbye */
    bool finished;          /* so have we */
    struct tn_err read_err; /* code OK: can be read */
    struct tn_err write_err;
    unsigned char in_bytes[IN_SIZE];
};

static struct tls *tls_of(struct tn_stream *stream)
{
    return (struct tls *)(void *)stream;
}

static void run(struct tls *tls);

/* ---- what mbed TLS reads and writes; on a worker, too ---- */

static int f_receive(void *user, unsigned char *out, size_t size)
{
    struct tls *tls = user;
    if (tls->came.size > 0) {
        size_t part = size < tls->came.size ? size : tls->came.size;
        memcpy(out, tls->came.data, part);
        tls->came.data += part;
        tls->came.size -= part;
        return (int)part;
    }
    if (tls->read_err.code != TN_OK) {
        return MBEDTLS_ERR_NET_CONN_RESET;
    }
    if (tls->came_all) {
        return 0;
    }
    tls->wants_in = true;
    return MBEDTLS_ERR_SSL_WANT_READ;
}

static int send_stage(struct tls *tls)
{
    tls->sending = tls->stage;
    tls->sending_size = tls->staged;
    return MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* Called again with the same bytes once they are sent, as the library promises. */
static int f_send(void *user, const unsigned char *bytes, size_t size)
{
    struct tls *tls = user;
    if (tls->sent > 0) {
        size_t sent = tls->sent;
        TN_CHECK(sent <= size);
        tls->sent = 0;
        return (int)sent;
    }
    if (tls->sending) {
        return MBEDTLS_ERR_SSL_WANT_WRITE; /* one after the other */
    }
    if (tls->write_err.code != TN_OK) {
        return MBEDTLS_ERR_NET_CONN_RESET;
    }
    if (tls->shaking && tls->stage && size <= STAGE_SIZE - tls->staged) {
        memcpy(tls->stage + tls->staged, bytes, size);
        tls->staged += size;
        return (int)size;
    }
    if (tls->staged > 0) {
        return send_stage(tls);
    }
    tls->sending = bytes;
    tls->sending_size = size;
    return MBEDTLS_ERR_SSL_WANT_WRITE;
}

static void explain(const struct tls *tls, int code, struct tn_err *err)
{
    (void)tn_tls_explain(tls->stream.peer, &tls->ssl, &tls->check, code, err);
}

/* ---- the stream below ---- */

static void on_in(struct tn_request *request)
{
    struct tls *tls = request->user;
    if (request->rc != TN_OK) {
        tls->read_err = request->err;
    } else if (request->moved == 0) {
        tls->came_all = true;
    } else {
        tls->came = (struct tn_bytes){tls->in_bytes, request->moved};
    }
    run(tls);
}

static void on_out(struct tn_request *request)
{
    struct tls *tls = request->user;
    bool staged = tls->sending == tls->stage;
    tls->sending = NULL;
    tls->staged = staged ? 0 : tls->staged;
    if (request->rc == TN_OK) {
        tls->sent = staged ? 0 : tls->sending_size;
    } else if (tls->write_err.code == TN_OK) {
        tls->write_err = request->err;
    }
    run(tls);
}

/* Starts what mbed TLS has asked for. */
static void serve(struct tls *tls)
{
    if (tls->staged > 0 && !tls->sending) {
        (void)send_stage(tls);
    }
    if (tls->state != HANDSHAKE && tls->staged == 0) {
        tn_tls_give(tls->stage);
        tls->stage = NULL;
    }
    if (tls->sending && !tn_request_under_way(&tls->out)) {
        tn_stream_write(tls->below, (struct tn_bytes){tls->sending, tls->sending_size}, &tls->out);
    }
    if (tls->wants_in && tls->came.size == 0 && !tn_request_under_way(&tls->in)) {
        tls->wants_in = false;
        tn_stream_read(tls->below, tls->in_bytes, sizeof tls->in_bytes, &tls->in);
    }
}

/* ---- the end ---- */

static void on_closed(struct tn_request *request)
{
    struct tls *tls = request->user;
    struct tn_request *closing = tls->closing;
    mbedtls_ssl_free(&tls->ssl);
    tn_tls_give(tls->stage);
    tn_tls_config_give(tls->config);
    tn_tls_give(tls);
    if (closing) {
        tn_request_end(closing, TN_OK);
    }
}

static void end_if_idle(struct tls *tls)
{
    if (tls->in_task || tn_request_under_way(&tls->in) || tn_request_under_way(&tls->out)) {
        return;
    }
    tls->state = CLOSED;
    tn_stream_close(tls->below, &tls->end);
}

/* Nobody uses the stream any more: it goes as soon as nothing of it is under way. A last word has a
 * time-out, all else that is on its way out is given up. */
static void abandon(struct tls *tls)
{
    tls->state = CLOSING;
    tn_net_forget(tls->stream.net, &tls->hungry);
    tn_request_cancel(&tls->in);
    if (tls->out.timeout_ms == 0) {
        tn_request_cancel(&tls->out);
    }
    end_if_idle(tls);
}

/* ---- handshake ---- */

static void remember_session(struct tls *tls)
{
    struct tn_tls_config *config = tls->config;
    config->done++;
    if (config->server) {
        return;
    }
    config->resumed += !tls->check.seen;
    mbedtls_ssl_session_free(&config->session);
    config->session_host[0] = 0;
    if (mbedtls_ssl_get_session(&tls->ssl, &config->session) == 0) {
        memcpy(config->session_host, tls->host, sizeof config->session_host);
    }
}

/* The request's name of the peer is ours; whoever it is for never sees the stream. */
static void end_handshake(struct tls *tls, const struct tn_err *err)
{
    struct tn_request *request = tls->opening;
    tls->opening = NULL;
    tls->shaking = false;
    if (err) {
        request->stream = NULL;
        tn_request_fail(request, err);
        return;
    }
    tls->state = OPEN;
    remember_session(tls);
    tn_request_end(request, TN_OK);
}

static void fail_handshake(struct tls *tls, int code)
{
    struct tn_err err;
    if (tls->read_err.code != TN_OK && code == MBEDTLS_ERR_NET_CONN_RESET) {
        err = tls->read_err;
    } else if (tls->write_err.code != TN_OK && code == MBEDTLS_ERR_NET_CONN_RESET) {
        err = tls->write_err;
    } else {
        explain(tls, code, &err);
    }
    end_handshake(tls, &err);
    tls->config->session_host[0] = 0; /* it may be what the peer could not stand */
    tls->wants_in = false;
    tls->out.timeout_ms = BYE_MS;
    if (code == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE) { /* of which mbed TLS says nothing */
        (void)mbedtls_ssl_send_alert_message(&tls->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                             MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE);
    }
    serve(tls); /* the alert that tells the peer why, if there is one */
    abandon(tls);
}

static bool waits(int code)
{
    return code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE;
}

static void after_step(struct tls *tls, int code)
{
    if (tls->state != HANDSHAKE) {
        end_if_idle(tls);
    } else if (code == 0) {
        end_handshake(tls, NULL);
        serve(tls);
    } else if (waits(code)) {
        serve(tls);
    } else {
        fail_handshake(tls, code);
    }
}

/* Short of memory mbed TLS may find a good signature bad; who has another try finds it good. */
static int handshake(struct tls *tls)
{
    size_t refused = tn_tls_refused();
    int code = mbedtls_ssl_handshake(&tls->ssl);
    bool failed = code != 0 && !waits(code);
    return failed && tn_tls_refused() != refused ? MBEDTLS_ERR_SSL_ALLOC_FAILED : code;
}

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    (void)context;
    (void)err;
    struct tls *tls = (struct tls *)(void *)((char *)task - offsetof(struct tls, task));
    tls->task_code = handshake(tls);
    return TN_OK;
}

static void complete(struct tn_task *task, tn_rc rc)
{
    (void)rc;
    struct tls *tls = (struct tls *)(void *)((char *)task - offsetof(struct tls, task));
    tls->in_task = false;
    after_step(tls, tls->task_code);
}

static void step_handshake(struct tls *tls)
{
    if (tls->sending || tn_request_under_way(&tls->in)) {
        return;
    }
    if (!tls->exec) {
        after_step(tls, handshake(tls));
        return;
    }
    tls->in_task = true;
    tls->task = (struct tn_task){.execute = execute, .complete = complete, .lane = TN_LANE_SHORT};
    tn_exec_submit(tls->exec, &tls->task);
}

/* ---- bytes ---- */

/* Something is wrong with what came or with our state, so neither direction can go on. */
static void break_stream(struct tls *tls, int code)
{
    struct tn_err err;
    explain(tls, code, &err);
    if (tls->read_err.code == TN_OK) {
        tls->read_err = err;
    }
    if (tls->write_err.code == TN_OK) {
        tls->write_err = err;
    }
}

/* The error that a code of mbed TLS's stands for is that of the stream below, when it failed. */
static void fail_read(struct tls *tls, int code)
{
    if (code != MBEDTLS_ERR_NET_CONN_RESET || tls->read_err.code == TN_OK) {
        break_stream(tls, code);
    }
    struct tn_request *request = tls->reading;
    tls->reading = NULL;
    tn_request_fail(request, &tls->read_err);
}

static void fail_write(struct tls *tls, struct tn_request **request, int code)
{
    if (tls->write_err.code == TN_OK) {
        break_stream(tls, code);
    }
    struct tn_request *ending = *request;
    *request = NULL;
    tn_request_fail(ending, &tls->write_err);
}

static void end_read(struct tls *tls, unsigned char *data, size_t moved)
{
    struct tn_request *request = tls->reading;
    tls->reading = NULL;
    request->data = moved > 0 ? data : NULL;
    request->moved = moved;
    tn_request_end(request, TN_OK);
}

/* A read of no bytes decrypts the next record and leaves it where it is, so a buffer of the door is
 * taken only for bytes that are there. */
static int find_place(struct tls *tls, unsigned char **data, size_t *size)
{
    struct tn_request *request = tls->reading;
    *data = request->data;
    *size = request->size;
    if (*data) {
        return 0;
    }
    unsigned char none;
    int code = 0;
    while (code == 0 && mbedtls_ssl_get_bytes_avail(&tls->ssl) == 0) {
        bool cut = tls->came_all && tls->came.size == 0; /* mbed TLS calls it 0 bytes, too */
        code = cut ? MBEDTLS_ERR_SSL_CONN_EOF : mbedtls_ssl_read(&tls->ssl, &none, 0);
    }
    if (code == 0) {
        *data = tn_net_take(tls->stream.net, &tls->hungry);
        *size = tls->stream.net->buffers->block_size;
    }
    return code;
}

static void step_read(struct tls *tls)
{
    if (!tls->reading || tls->hungry.waits) {
        return;
    }
    if (tls->ended) {
        end_read(tls, NULL, 0);
        return;
    }
    if (tls->read_err.code != TN_OK && mbedtls_ssl_get_bytes_avail(&tls->ssl) == 0) {
        fail_read(tls, MBEDTLS_ERR_NET_CONN_RESET); /* nothing is read past what was wrong */
        return;
    }
    unsigned char *data = NULL;
    size_t size = 0;
    int code = find_place(tls, &data, &size);
    if (code == 0 && !data) {
        return; /* fed later */
    }
    if (code == 0) {
        code = mbedtls_ssl_read(&tls->ssl, data, size);
        code = code == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : code;
    }
    if (data && code <= 0 && !tls->reading->data) {
        tn_net_give(tls->stream.net, data);
    }
    if (code > 0) {
        end_read(tls, data, (size_t)code);
    } else if (code == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) {
        tls->ended = true;
        end_read(tls, NULL, 0);
    } else if (!waits(code)) {
        fail_read(tls, code);
    }
}

/* mbed TLS takes what is left of another record (an alert) for the one that it is asked to write,
 * so that one has to leave first. */
static int flush_other(struct tls *tls)
{
    return tls->record_begun || tls->ssl.out_left == 0 ? 0 : mbedtls_ssl_flush_output(&tls->ssl);
}

static int write_record(struct tls *tls, struct tn_request *request)
{
    int code = flush_other(tls);
    if (code != 0) {
        return code;
    }
    code = mbedtls_ssl_write(&tls->ssl, request->from, request->size);
    tls->record_begun = code == MBEDTLS_ERR_SSL_WANT_WRITE;
    if (code > 0) {
        request->from += code;
        request->size -= (size_t)code;
        request->moved += (size_t)code;
    }
    return code;
}

static void step_write(struct tls *tls)
{
    struct tn_request *request = tls->writing;
    if (!request || tls->sending) {
        return;
    }
    int code = 0;
    while (request->size > 0 && tls->write_err.code == TN_OK && code >= 0) {
        code = write_record(tls, request);
    }
    if (tls->write_err.code != TN_OK || (code < 0 && !waits(code))) {
        fail_write(tls, &tls->writing, code);
    } else if (request->size == 0) {
        tls->writing = NULL;
        tn_request_end(request, TN_OK);
    }
}

/* TLS's own goodbye is all that a finish says; the connection below is closed later. */
static int say_goodbye(struct tls *tls)
{
    int code = flush_other(tls);
    if (code != 0) {
        return code;
    }
    code = mbedtls_ssl_close_notify(&tls->ssl);
    tls->record_begun = code == MBEDTLS_ERR_SSL_WANT_WRITE;
    return code;
}

static void step_finish(struct tls *tls)
{
    struct tn_request *request = tls->finishing;
    if (!request || tls->sending) {
        return;
    }
    int code = tls->write_err.code == TN_OK ? say_goodbye(tls) : MBEDTLS_ERR_NET_CONN_RESET;
    if (code == 0) {
        tls->finishing = NULL;
        tn_request_end(request, TN_OK);
    } else if (!waits(code)) {
        fail_write(tls, &tls->finishing, code);
    }
}

/* Whatever happened, each direction goes as far as it can. */
static void run(struct tls *tls)
{
    switch (tls->state) {
    case HANDSHAKE:
        if (!tls->in_task) {
            step_handshake(tls);
        }
        return;
    case OPEN:
        step_write(tls);
        step_finish(tls);
        step_read(tls);
        serve(tls);
        return;
    case CLOSING:
        end_if_idle(tls);
        return;
    case CLOSED:
        return;
    }
}

static void feed(struct tn_hungry *hungry)
{
    run((struct tls *)(void *)((char *)hungry - offsetof(struct tls, hungry)));
}

/* ---- the stream above ---- */

static void stop_read(struct tn_request *request)
{
    struct tls *tls = request->owner;
    tls->reading = NULL;
    tn_net_forget(tls->stream.net, &tls->hungry);
}

static void start_read(struct tn_stream *stream, struct tn_request *request)
{
    struct tls *tls = tls_of(stream);
    TN_CHECK(tls->state == OPEN);
    TN_CHECK(!tls->reading);
    TN_CHECK(!request->data || request->size > 0);
    request->stream = stream;
    tn_request_begin(request, stream->net, tls, stop_read, "read", TN_AGAIN);
    tls->reading = request;
    run(tls);
}

/* Half of a record can't be taken back. */
static void stop_write(struct tn_request *request)
{
    struct tls *tls = request->owner;
    tls->writing = NULL;
    tls->finishing = NULL;
    if (tls->write_err.code == TN_OK) {
        (void)tn_err_set(&tls->write_err, TN_IO, 0, "write %s: a write was given up half-way",
                         tls->stream.peer);
    }
}

static void start_write(struct tn_stream *stream, struct tn_request *request)
{
    struct tls *tls = tls_of(stream);
    TN_CHECK(tls->state == OPEN);
    TN_CHECK(!tls->writing && !tls->finished);
    request->stream = stream;
    tn_request_begin(request, stream->net, tls, stop_write, "write", TN_IO);
    tls->writing = request;
    run(tls);
}

static void start_finish(struct tn_stream *stream, struct tn_request *request)
{
    struct tls *tls = tls_of(stream);
    TN_CHECK(tls->state == OPEN);
    TN_CHECK(!tls->writing && !tls->finished);
    request->stream = stream;
    tn_request_begin(request, stream->net, tls, stop_write, "finish", TN_IO);
    tls->finished = true;
    tls->finishing = request;
    run(tls);
}

static void stop_close(struct tn_request *request)
{
    struct tls *tls = request->owner;
    tls->closing = NULL;
}

static void start_close(struct tn_stream *stream, struct tn_request *request)
{
    struct tls *tls = tls_of(stream);
    TN_CHECK(tls->state == OPEN);
    struct tn_request *const pending[] = {tls->reading, tls->writing, tls->finishing};
    for (size_t i = 0; i < sizeof pending / sizeof pending[0]; i++) {
        if (pending[i]) {
            tn_request_cancel(pending[i]);
        }
    }
    if (request) {
        request->stream = stream;
        tn_request_begin(request, stream->net, tls, stop_close, "close", TN_IO);
        tls->closing = request;
    }
    tls->wants_in = false;
    if (tls->write_err.code == TN_OK && !tls->sending && !tls->finished) {
        tls->out.timeout_ms = BYE_MS;
        (void)say_goodbye(tls);
        serve(tls);
    }
    abandon(tls);
}

static const struct tn_stream_vtable vtable = {
    .read = start_read,
    .write = start_write,
    .finish = start_finish,
    .close = start_close,
};

/* ---- opening ---- */

static void stop_open(struct tn_request *request)
{
    struct tls *tls = request->owner;
    tls->opening = NULL;
    request->stream = NULL;
    abandon(tls);
}

static tn_rc set_up(struct tls *tls, struct tn_err *err)
{
    mbedtls_ssl_context *ssl = &tls->ssl;
    struct tn_tls_config *config = tls->config;
    mbedtls_ssl_init(ssl);
    int code = mbedtls_ssl_setup(ssl, &config->conf);
    if (code == 0 && tls->check.host && tls->check.ip_size == 0 && !config->pins) {
        code = mbedtls_ssl_set_hostname(ssl, tls->host);
    }
    if (code == 0 && config->session_host[0] && strcmp(config->session_host, tls->host) == 0) {
        code = mbedtls_ssl_set_session(ssl, &config->session);
    }
    if (code != 0) {
        return tn_err_set(err, TN_AGAIN, code, "TLS with %s: the memory for TLS is full",
                          tls->stream.peer);
    }
    mbedtls_ssl_set_verify(ssl, tn_tls_check_certificate, &tls->check);
    mbedtls_ssl_set_bio(ssl, tls, f_send, f_receive, NULL);
    return TN_OK;
}

static void fill(struct tls *tls, struct tn_tls_config *config, struct tn_exec *exec,
                 struct tn_stream *below, const char *host)
{
    tls->stream = (struct tn_stream){.vtable = &vtable, .net = below->net, .local = below->local};
    memcpy(tls->stream.peer, below->peer, sizeof tls->stream.peer);
    tls->config = config;
    tls->exec = exec;
    tls->below = below;
    tls->hungry.feed = feed;
    tls->in = (struct tn_request){.done = on_in, .user = tls};
    tls->out = (struct tn_request){.done = on_out, .user = tls};
    tls->end = (struct tn_request){.done = on_closed, .user = tls};
    if (host) {
        (void)snprintf(tls->host, sizeof tls->host, "%s", host);
    }
    tn_tls_check_init(&tls->check, config, host ? tls->host : NULL);
    config->streams++;
}

static void refuse(struct tn_stream *below, struct tn_request *request, const struct tn_err *err)
{
    request->stream = NULL;
    tn_request_refuse(request, below->net, err);
    tn_stream_close(below, NULL);
}

void tn_tls_open(struct tn_tls_config *config, struct tn_exec *exec, struct tn_stream *below,
                 const char *host, struct tn_request *request)
{
    TN_CHECK(!config->released);
    TN_CHECK(config->server == !host);
    struct tn_err err;
    struct tls *tls = tn_tls_take(sizeof *tls);
    if (!tls) {
        (void)tn_err_set(&err, TN_AGAIN, 0, "TLS with %s: the memory for TLS is full", below->peer);
        refuse(below, request, &err);
        return;
    }
    fill(tls, config, exec, below, host);
    if (set_up(tls, &err) != TN_OK) {
        mbedtls_ssl_free(&tls->ssl);
        tn_tls_config_give(config);
        tn_tls_give(tls);
        refuse(below, request, &err);
        return;
    }
    tls->stage = tn_tls_take(STAGE_SIZE);
    tls->shaking = true;
    request->stream = &tls->stream;
    tn_request_begin(request, below->net, tls, stop_open, "TLS with", TN_IO);
    tls->opening = request;
    run(tls);
}
