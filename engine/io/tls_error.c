#include <mbedtls/bignum.h>
#include <mbedtls/ecp.h>
#include <mbedtls/ssl.h>

#include "io/tls_private.h"

static const char *alert_text(unsigned char alert)
{
    switch (alert) {
    case MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE:
        return "nothing in common to encrypt with, or it wants a certificate of ours";
    case MBEDTLS_SSL_ALERT_MSG_NO_CERT:
    case MBEDTLS_SSL_ALERT_MSG_BAD_CERT:
    case MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT:
    case MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN:
        return "it does not take our certificate";
    case MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED:
        return "our certificate was revoked";
    case MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED:
        return "our certificate has expired";
    case MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA:
        return "it does not know who signed our certificate";
    case MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED:
        return "access denied";
    case MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION:
        return "it wants another version than TLS 1.2";
    case MBEDTLS_SSL_ALERT_MSG_UNRECOGNIZED_NAME:
        return "it does not go by this name";
    default:
        return "for a reason of its own";
    }
}

tn_rc tn_tls_explain(const struct tn_tls *tls, int code, struct tn_err *err)
{
    const char *peer = tls->stream.peer;
    unsigned char alert = 0;
    switch (code) {
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
    case MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE:
        return tn_err_set(err, TN_INVALID, code, "TLS with %s: %s", peer,
                          tls->check.rank > 0 ? tls->check.reason : "its certificate is malformed");
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
        return tn_err_set(err, TN_INVALID, code, "TLS with %s: it has no certificate", peer);
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        alert = tls->ssl.in_msg[1];
        return tn_err_set(err, TN_IO, code, "TLS with %s: it refused: %s (alert %d)", peer,
                          alert_text(alert), alert);
    case MBEDTLS_ERR_SSL_CONN_EOF:
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
        return tn_err_set(err, TN_IO, code, "TLS with %s: the peer cut the connection", peer);
    case MBEDTLS_ERR_SSL_INVALID_RECORD:
    case MBEDTLS_ERR_SSL_UNEXPECTED_RECORD:
        return tn_err_set(err, TN_IO, code, "TLS with %s: it does not speak TLS 1.2", peer);
    case MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION:
        return tn_err_set(err, TN_IO, code, "TLS with %s: it has no version in common", peer);
    case MBEDTLS_ERR_SSL_NO_CIPHER_CHOSEN:
        return tn_err_set(err, TN_IO, code, "TLS with %s: nothing in common to encrypt with", peer);
    case MBEDTLS_ERR_SSL_INVALID_MAC:
        return tn_err_set(err, TN_IO, code, "TLS with %s: bytes were changed on the way", peer);
    case MBEDTLS_ERR_SSL_ALLOC_FAILED:
    case MBEDTLS_ERR_MPI_ALLOC_FAILED:
    case MBEDTLS_ERR_ECP_ALLOC_FAILED:
        return tn_err_set(err, TN_AGAIN, code, "TLS with %s: the memory for TLS is full", peer);
    default:
        return tn_err_set(err, TN_IO, code, "TLS with %s: broken (-0x%x)", peer, (unsigned)-code);
    }
}
