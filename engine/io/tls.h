/* tls: TLS 1.2 as a stream over a stream, for clients and servers (mbed TLS).
 *
 *     net:  connect -> stream        TLS:  tn_tls_open(config, stream) -> stream
 *           accept  -> stream
 *
 * A TLS stream keeps all that net.h says of streams. What the peer shows is always verified:
 * against a CA file and the name, or as the one certificate that was pinned. There is no way to
 * turn that off. A peer that ends without saying so has cut the connection: a read then fails, so
 * an end is an end.
 *
 * The expensive part, the handshake, runs as tasks in the executor's short lane, some milliseconds
 * each on a PC, twenty times that on a small ARM; nothing else leaves the loop's thread. A client's
 * session is kept in its config and resumed by the next stream to the same host, which costs a
 * tenth.
 *
 * All memory is of the heap of tls_memory.h. A stream takes some 48 KB of it while it is open, most
 * of it for a record in and one out, and a third more during its handshake; trust takes its CA
 * file's size twice, the bundle of a Linux system 430 KB.
 */
#pragma once

#include "base/exec.h"
#include "io/net.h"

enum { TN_TLS_STREAM_SIZE = 64 * 1024 }; /* bytes of the heap that a stream may take at its peak */

struct tn_tls_config;

/* Whom to trust and who we are. The bytes are copied; a zero byte stands behind each, as behind
 * those of tn_io_read_all. */
struct tn_tls_spec {
    struct tn_clock *clock; /* dates of certificates are by its wall clock, keys by its random */
    struct tn_bytes ca;     /* PEM, who may sign the peer's certificate; of a server: of those who
                               come, who then must have one */
    struct tn_bytes pinned; /* PEM, instead of `ca`: the only certificate that the peer may have,
                               for any name */
    struct tn_bytes certificate; /* PEM, ours and who signed it; a server must have one */
    struct tn_bytes key;         /* PEM, of `certificate` */
    bool server;
};

/* INVALID: a text that isn't what it should be, a key of another certificate, nobody to trust.
 * AGAIN: the heap is too small. Parsing a large bundle takes a tenth of a second: at boot, or in a
 * task. */
TN_MUST_USE tn_rc tn_tls_config_make(const struct tn_tls_spec *spec, struct tn_tls_config **config,
                                     struct tn_err *err);

/* Nobody may open a stream with it any more; it goes with the last one. */
void tn_tls_config_free(struct tn_tls_config *config);

/* Handshakes that were done, and how many of them resumed a session. */
void tn_tls_config_counts(const struct tn_tls_config *config, uint64_t *done, uint64_t *resumed);

/* Speaks TLS over `below`, which is the new stream's in every outcome: when the handshake fails
 * it's closed. `host` is the name or the address in numbers that a server's certificate must be
 * for, as it was given to tn_net_connect; NULL on the server's side. `exec` NULL: the handshake
 * runs where it is, on the loop; one config has one `exec`, or none. The request is done with
 * `stream`. INVALID: the certificate is not to be trusted, and the text says whether the clock, the
 * name, the date or the signer is why. AGAIN: no memory now. IO: the peer cut, refused, or doesn't
 * speak TLS. */
void tn_tls_open(struct tn_tls_config *config, struct tn_exec *exec, struct tn_stream *below,
                 const char *host, struct tn_request *request);
