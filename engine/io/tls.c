#include "io/tls.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "io/tls_memory.h"
#include "io/tls_private.h"

static struct tn_tls *tls_of(struct tn_stream *stream)
{
    return (struct tn_tls *)(void *)stream;
}

/* ---- the end ---- */

static void on_closed(struct tn_request *request)
{
    struct tn_tls *tls = request->user;
    struct tn_request *closing = tls->closing;
    mbedtls_ssl_free(&tls->ssl);
    tn_tls_give(tls->stage);
    tn_tls_config_give(tls->config);
    tn_tls_give(tls);
    if (closing) {
        tn_request_end(closing, TN_OK);
    }
}

void tn_tls_end_if_idle(struct tn_tls *tls)
{
    if (tls->in_task || tn_request_under_way(&tls->in) || tn_request_under_way(&tls->out)) {
        return;
    }
    tls->state = TN_TLS_CLOSED;
    tn_stream_close(tls->below, &tls->end);
}

/* A last word has a time-out, all else that is on its way out is given up. */
void tn_tls_abandon(struct tn_tls *tls)
{
    tls->state = TN_TLS_CLOSING;
    tn_net_forget(tls->stream.net, &tls->hungry);
    tn_request_cancel(&tls->in);
    if (tls->out.timeout_ms == 0) {
        tn_request_cancel(&tls->out);
    }
    tn_tls_end_if_idle(tls);
}

/* ---- turns ---- */

void tn_tls_run(struct tn_tls *tls)
{
    switch (tls->state) {
    case TN_TLS_HANDSHAKE:
        if (!tls->in_task) {
            tn_tls_step_handshake(tls);
        }
        return;
    case TN_TLS_OPEN:
        tn_tls_step_write(tls);
        tn_tls_step_finish(tls);
        tn_tls_step_read(tls);
        tn_tls_serve(tls);
        return;
    case TN_TLS_CLOSING:
        tn_tls_end_if_idle(tls);
        return;
    case TN_TLS_CLOSED:
        return;
    }
}

static void feed(struct tn_hungry *hungry)
{
    tn_tls_run((struct tn_tls *)(void *)((char *)hungry - offsetof(struct tn_tls, hungry)));
}

/* ---- the stream above ---- */

static void stop_read(struct tn_request *request)
{
    struct tn_tls *tls = request->owner;
    tls->reading = NULL;
    tn_net_forget(tls->stream.net, &tls->hungry);
}

static void start_read(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_tls *tls = tls_of(stream);
    TN_CHECK(tls->state == TN_TLS_OPEN);
    TN_CHECK(!tls->reading);
    TN_CHECK(!request->data || request->size > 0);
    request->stream = stream;
    tn_request_begin(request, stream->net, tls, stop_read, "read", TN_AGAIN);
    tls->reading = request;
    tn_tls_run(tls);
}

/* Half of a record can't be taken back. */
static void stop_write(struct tn_request *request)
{
    struct tn_tls *tls = request->owner;
    tls->writing = NULL;
    tls->finishing = NULL;
    if (tls->write_err.code == TN_OK) {
        (void)tn_err_set(&tls->write_err, TN_IO, 0, "write %s: a write was given up half-way",
                         tls->stream.peer);
    }
}

static void start_write(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_tls *tls = tls_of(stream);
    TN_CHECK(tls->state == TN_TLS_OPEN);
    TN_CHECK(!tls->writing && !tls->finished);
    request->stream = stream;
    tn_request_begin(request, stream->net, tls, stop_write, "write", TN_IO);
    tls->writing = request;
    tn_tls_run(tls);
}

static void start_finish(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_tls *tls = tls_of(stream);
    TN_CHECK(tls->state == TN_TLS_OPEN);
    TN_CHECK(!tls->writing && !tls->finished);
    request->stream = stream;
    tn_request_begin(request, stream->net, tls, stop_write, "finish", TN_IO);
    tls->finished = true;
    tls->finishing = request;
    tn_tls_run(tls);
}

static void stop_close(struct tn_request *request)
{
    struct tn_tls *tls = request->owner;
    tls->closing = NULL;
}

static void start_close(struct tn_stream *stream, struct tn_request *request)
{
    struct tn_tls *tls = tls_of(stream);
    TN_CHECK(tls->state == TN_TLS_OPEN);
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
        tls->out.timeout_ms = TN_TLS_BYE_MS;
        (void)tn_tls_say_goodbye(tls);
        tn_tls_serve(tls);
    }
    tn_tls_abandon(tls);
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
    struct tn_tls *tls = request->owner;
    tls->opening = NULL;
    request->stream = NULL;
    tn_tls_abandon(tls);
}

static tn_rc set_up(struct tn_tls *tls, struct tn_err *err)
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
    mbedtls_ssl_set_bio(ssl, tls, tn_tls_send, tn_tls_receive, NULL);
    return TN_OK;
}

static void fill(struct tn_tls *tls, struct tn_tls_config *config, struct tn_exec *exec,
                 struct tn_stream *below, const char *host)
{
    tls->stream = (struct tn_stream){.vtable = &vtable, .net = below->net, .local = below->local};
    memcpy(tls->stream.peer, below->peer, sizeof tls->stream.peer);
    tls->config = config;
    tls->exec = exec;
    tls->below = below;
    tls->hungry.feed = feed;
    tls->in = (struct tn_request){.done = tn_tls_on_in, .user = tls};
    tls->out = (struct tn_request){.done = tn_tls_on_out, .user = tls};
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
    struct tn_tls *tls = tn_tls_take(sizeof *tls);
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
    tls->stage = tn_tls_take(TN_TLS_STAGE_SIZE);
    tls->shaking = true;
    request->stream = &tls->stream;
    tn_request_begin(request, below->net, tls, stop_open, "TLS with", TN_IO);
    tls->opening = request;
    tn_tls_run(tls);
}
