/* Reads, writes and the goodbye, once the handshake is done. */
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl_internal.h>

#include "io/tls_private.h"

/* Something is wrong with what came or with our state, so neither direction can go on. */
static void break_stream(struct tn_tls *tls, int code)
{
    struct tn_err err;
    (void)tn_tls_explain(tls, code, &err);
    if (tls->read_err.code == TN_OK) {
        tls->read_err = err;
    }
    if (tls->write_err.code == TN_OK) {
        tls->write_err = err;
    }
}

/* The error that a code of mbed TLS's stands for is that of the stream below, when it failed. */
static void fail_read(struct tn_tls *tls, int code)
{
    if (code != MBEDTLS_ERR_NET_CONN_RESET || tls->read_err.code == TN_OK) {
        break_stream(tls, code);
    }
    struct tn_request *request = tls->reading;
    tls->reading = NULL;
    tn_request_fail(request, &tls->read_err);
}

static void fail_write(struct tn_tls *tls, struct tn_request **request, int code)
{
    if (tls->write_err.code == TN_OK) {
        break_stream(tls, code);
    }
    struct tn_request *ending = *request;
    *request = NULL;
    tn_request_fail(ending, &tls->write_err);
}

static void end_read(struct tn_tls *tls, unsigned char *data, size_t moved)
{
    struct tn_request *request = tls->reading;
    tls->reading = NULL;
    request->data = moved > 0 ? data : NULL;
    request->moved = moved;
    tn_request_end(request, TN_OK);
}

/* A read of no bytes decrypts the next record and leaves it where it is, so a buffer of the door is
 * taken only for bytes that are there. */
static int find_place(struct tn_tls *tls, unsigned char **data, size_t *size)
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

void tn_tls_step_read(struct tn_tls *tls)
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
    } else if (!tn_tls_waits(code)) {
        fail_read(tls, code);
    }
}

/* mbed TLS takes what is left of another record (an alert) for the one that it is asked to write,
 * so that one has to leave first. */
static int flush_other(struct tn_tls *tls)
{
    return tls->record_begun || tls->ssl.out_left == 0 ? 0 : mbedtls_ssl_flush_output(&tls->ssl);
}

static int write_record(struct tn_tls *tls, struct tn_request *request)
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

void tn_tls_step_write(struct tn_tls *tls)
{
    struct tn_request *request = tls->writing;
    if (!request || tls->sending) {
        return;
    }
    int code = 0;
    while (request->size > 0 && tls->write_err.code == TN_OK && code >= 0) {
        code = write_record(tls, request);
    }
    if (tls->write_err.code != TN_OK || (code < 0 && !tn_tls_waits(code))) {
        fail_write(tls, &tls->writing, code);
    } else if (request->size == 0) {
        tls->writing = NULL;
        tn_request_end(request, TN_OK);
    }
}

/* TLS's own goodbye is all that a finish says; the connection below is closed later. */
int tn_tls_say_goodbye(struct tn_tls *tls)
{
    int code = flush_other(tls);
    if (code != 0) {
        return code;
    }
    code = mbedtls_ssl_close_notify(&tls->ssl);
    tls->record_begun = code == MBEDTLS_ERR_SSL_WANT_WRITE;
    return code;
}

void tn_tls_step_finish(struct tn_tls *tls)
{
    struct tn_request *request = tls->finishing;
    if (!request || tls->sending) {
        return;
    }
    int code = tls->write_err.code == TN_OK ? tn_tls_say_goodbye(tls) : MBEDTLS_ERR_NET_CONN_RESET;
    if (code == 0) {
        tls->finishing = NULL;
        tn_request_end(request, TN_OK);
    } else if (!tn_tls_waits(code)) {
        fail_write(tls, &tls->finishing, code);
    }
}
