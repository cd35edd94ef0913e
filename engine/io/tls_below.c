/* What mbed TLS reads and writes, and the stream below, from which and to which the loop moves it.
 */
#include <mbedtls/net_sockets.h>
#include <string.h>

#include "base/check.h"
#include "io/tls_memory.h"
#include "io/tls_private.h"

/* ---- what mbed TLS reads and writes; on a worker, too ---- */

int tn_tls_receive(void *user, unsigned char *out, size_t size)
{
    struct tn_tls *tls = user;
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

static int send_stage(struct tn_tls *tls)
{
    tls->sending = tls->stage;
    tls->sending_size = tls->staged;
    return MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* Called again with the same bytes once they are sent, as the library promises. */
int tn_tls_send(void *user, const unsigned char *bytes, size_t size)
{
    struct tn_tls *tls = user;
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
    if (tls->shaking && tls->stage && size <= TN_TLS_STAGE_SIZE - tls->staged) {
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

/* ---- the stream below ---- */

void tn_tls_on_in(struct tn_request *request)
{
    struct tn_tls *tls = request->user;
    if (request->rc != TN_OK) {
        tls->read_err = request->err;
    } else if (request->moved == 0) {
        tls->came_all = true;
    } else {
        tls->came = (struct tn_bytes){tls->in_bytes, request->moved};
    }
    tn_tls_run(tls);
}

void tn_tls_on_out(struct tn_request *request)
{
    struct tn_tls *tls = request->user;
    bool staged = tls->sending == tls->stage;
    tls->sending = NULL;
    tls->staged = staged ? 0 : tls->staged;
    if (request->rc == TN_OK) {
        tls->sent = staged ? 0 : tls->sending_size;
    } else if (tls->write_err.code == TN_OK) {
        tls->write_err = request->err;
    }
    tn_tls_run(tls);
}

/* Starts what mbed TLS has asked for. */
void tn_tls_serve(struct tn_tls *tls)
{
    if (tls->staged > 0 && !tls->sending) {
        (void)send_stage(tls);
    }
    if (tls->state != TN_TLS_HANDSHAKE && tls->staged == 0) {
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
