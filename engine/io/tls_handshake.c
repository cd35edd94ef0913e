/* The handshake, step by step, in tasks or on the loop. */
#include <mbedtls/net_sockets.h>
#include <string.h>

#include "io/tls_memory.h"
#include "io/tls_private.h"

static void remember_session(struct tn_tls *tls)
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
static void end_handshake(struct tn_tls *tls, const struct tn_err *err)
{
    struct tn_request *request = tls->opening;
    tls->opening = NULL;
    tls->shaking = false;
    if (err) {
        request->stream = NULL;
        tn_request_fail(request, err);
        return;
    }
    tls->state = TN_TLS_OPEN;
    remember_session(tls);
    tn_request_end(request, TN_OK);
}

static void fail_handshake(struct tn_tls *tls, int code)
{
    struct tn_err err;
    if (tls->read_err.code != TN_OK && code == MBEDTLS_ERR_NET_CONN_RESET) {
        err = tls->read_err;
    } else if (tls->write_err.code != TN_OK && code == MBEDTLS_ERR_NET_CONN_RESET) {
        err = tls->write_err;
    } else {
        (void)tn_tls_explain(tls, code, &err);
    }
    end_handshake(tls, &err);
    tls->config->session_host[0] = 0; /* it may be what the peer could not stand */
    tls->wants_in = false;
    tls->out.timeout_ms = TN_TLS_BYE_MS;
    if (code == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE) { /* of which mbed TLS says nothing */
        (void)mbedtls_ssl_send_alert_message(&tls->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                             MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE);
    }
    tn_tls_serve(tls); /* the alert that tells the peer why, if there is one */
    tn_tls_abandon(tls);
}

static void after_step(struct tn_tls *tls, int code)
{
    if (tls->state != TN_TLS_HANDSHAKE) {
        tn_tls_end_if_idle(tls);
    } else if (code == 0) {
        end_handshake(tls, NULL);
        tn_tls_serve(tls);
    } else if (tn_tls_waits(code)) {
        tn_tls_serve(tls);
    } else {
        fail_handshake(tls, code);
    }
}

/* Short of memory mbed TLS may find a good signature bad; who has another try finds it good. */
static int handshake(struct tn_tls *tls)
{
    size_t refused = tn_tls_refused();
    int code = mbedtls_ssl_handshake(&tls->ssl);
    bool failed = code != 0 && !tn_tls_waits(code);
    return failed && tn_tls_refused() != refused ? MBEDTLS_ERR_SSL_ALLOC_FAILED : code;
}

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    (void)context;
    (void)err;
    struct tn_tls *tls = (struct tn_tls *)(void *)((char *)task - offsetof(struct tn_tls, task));
    tls->task_code = handshake(tls);
    return TN_OK;
}

static void complete(struct tn_task *task, tn_rc rc)
{
    (void)rc;
    struct tn_tls *tls = (struct tn_tls *)(void *)((char *)task - offsetof(struct tn_tls, task));
    tls->in_task = false;
    after_step(tls, tls->task_code);
}

void tn_tls_step_handshake(struct tn_tls *tls)
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
