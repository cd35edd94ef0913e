/* tls_private: what the parts of TLS share. Only tls*.c look in here.
 *
 * On 32-bit ARM our time_t is longer than that of Debian's mbed TLS. The one struct with a time in
 * it, mbedtls_ssl_session, is only handed on, never looked into; ours is the larger one.
 */
#pragma once

#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/x509_crt.h>

#include "io/tls.h"

enum { TN_TLS_REASON_SIZE = 256 };

struct tn_tls_config {
    mbedtls_ssl_config conf;
    mbedtls_x509_crt ca; /* or the pinned one */
    mbedtls_x509_crt own;
    mbedtls_pk_context key;
    mbedtls_ssl_ticket_context tickets; /* server */
    struct tn_clock *clock;
    bool server;
    bool pins;
    bool released;
    uint32_t streams;
    uint64_t done;
    uint64_t resumed;
    mbedtls_ssl_session session; /* client: of the last handshake, with ... */
    char session_host[TN_HOST_SIZE];
};

/* What the peer's certificates were checked for, and what was found. */
struct tn_tls_check {
    const struct tn_tls_config *config;
    const char *host; /* NULL: anybody */
    unsigned char ip[16];
    size_t ip_size; /* 0: host is a name */
    bool seen;      /* the peer showed something: the handshake was a full one */
    int rank;       /* of the reason that was found, the higher one stays */
    char reason[TN_TLS_REASON_SIZE];
};

void tn_tls_check_init(struct tn_tls_check *check, const struct tn_tls_config *config,
                       const char *host);
/* mbed TLS's verify callback; `user` is the check. */
int tn_tls_check_certificate(void *user, mbedtls_x509_crt *crt, int depth, uint32_t *flags);

/* What a code of mbed TLS's means, in words; returns the error's own. */
tn_rc tn_tls_explain(const char *peer, const mbedtls_ssl_context *ssl,
                     const struct tn_tls_check *check, int code, struct tn_err *err);

/* A stream of it is gone. */
void tn_tls_config_give(struct tn_tls_config *config);
