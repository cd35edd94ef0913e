/* tls_private: what the parts of TLS share. Only tls*.c look in here.
 *
 *     tls.c              a stream: open, its requests, its end
 *     tls_below.c        bytes to and from the stream below
 *     tls_handshake.c    until it is open
 *     tls_bytes.c        reads, writes, the goodbye
 *     tls_config.c       whom to trust and who we are: certificates, keys, tickets
 *     tls_verify.c       what the peer shows
 *     tls_error.c        errors in words
 *     tls_chacha.c       mbed TLS's ChaCha20, faster
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

/* A stream of it is gone. */
void tn_tls_config_give(struct tn_tls_config *config);

/* ---- a stream ---- */

enum {
    TN_TLS_BYE_MS = 1000,     /* a peer that is gone can't hold up a close for longer */
    TN_TLS_IN_SIZE = 4096,    /* see in_bytes */
    TN_TLS_STAGE_SIZE = 4096, /* a client's messages, or a server's with two certificates */
};

enum tn_tls_state {
    TN_TLS_HANDSHAKE, /* waits for the peer, or for a task */
    TN_TLS_OPEN,
    TN_TLS_CLOSING, /* waits for our last requests, then for the stream below */
    TN_TLS_CLOSED,
};

/* mbed TLS runs on what lies in `came`, and hands out what is to be sent; the loop moves both.
 *
 *     stream below -> in -> came -> receive -> mbed TLS -> send -> sending -> out -> stream below
 *
 * What a handshake says between two answers is collected in `stage` and leaves as one: one packet
 * and one task instead of four, and a peer that refuses the first message still hears all of them
 * before it hangs up, so that we hear why.
 */
struct tn_tls {
    struct tn_stream stream; /* first */
    struct tn_task task;     /* a step of the handshake */
    bool in_task;
    int task_code; /* mbed TLS's */
    enum tn_tls_state state;
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
    /* Our own: a buffer of the door would be held while its reader waits for one. */
    unsigned char in_bytes[TN_TLS_IN_SIZE];
};

/* Whether mbed TLS goes on once bytes came or went. */
static inline bool tn_tls_waits(int code)
{
    return code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* What a code of mbed TLS's means, in words; returns the error's own. tls_error.c */
tn_rc tn_tls_explain(const struct tn_tls *tls, int code, struct tn_err *err);

/* ---- tls.c ---- */

/* Whatever happened, each direction goes as far as it can. */
void tn_tls_run(struct tn_tls *tls);
/* Nobody uses the stream any more: it goes as soon as nothing of it is under way. */
void tn_tls_abandon(struct tn_tls *tls);
void tn_tls_end_if_idle(struct tn_tls *tls);

/* ---- tls_below.c ---- */

/* mbed TLS's callbacks, on a worker, too; `user` is the stream. */
int tn_tls_receive(void *user, unsigned char *out, size_t size);
int tn_tls_send(void *user, const unsigned char *bytes, size_t size);
tn_request_fn tn_tls_on_in;
tn_request_fn tn_tls_on_out;
/* Starts what mbed TLS has asked for. */
void tn_tls_serve(struct tn_tls *tls);

/* ---- tls_handshake.c ---- */

void tn_tls_step_handshake(struct tn_tls *tls);

/* ---- tls_bytes.c ---- */

void tn_tls_step_read(struct tn_tls *tls);
void tn_tls_step_write(struct tn_tls *tls);
void tn_tls_step_finish(struct tn_tls *tls);
/* mbed TLS's code. */
int tn_tls_say_goodbye(struct tn_tls *tls);

/* ---- tls_chacha.c ---- */

/* Whether ChaCha20 gives what RFC 8439 says. */
bool tn_tls_chacha_is_right(void);
