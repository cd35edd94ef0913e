/* http_server: rows by HTTP/1.1, and how the daemon is.
 *
 *     POST /tables/D.T/rows[?input=json|changes|csv|...]     rows: all of the body or nothing
 *     GET, HEAD of a page, or POST                           /health, /ready, /metrics
 *
 *     -> AWAIT_BYTES -> AWAIT_ROOM -> AWAIT_DURABLE -> AWAIT_WRITTEN -> AWAIT_BYTES ...
 *           |   ^            |              |             ^    |
 *           |   '-- 100      '--------------'-- refused --'    `-> FINISHED -> END -> CLOSED
 *           `-------------------- refused, late --------------'
 *
 * **Answers.** 200 {"rows":n,"place":p} only when the place is durable; {"repeated":true,...} when
 * the request is known (http_memo.h), and what it repeats is durable. All others are
 * {"error":"..."}, with "line" when a record is to blame: 400 refused for good, 401 no token, 404
 * no such table or page, 413, 414, 431 too long, 415 a coding or a type that isn't read, 408 too
 * slow, 503 with Retry-After when it may go later. Who is answered otherwise than with 200 to a
 * request with an identity loses the connection: a number behind it must not overtake it.
 *
 * On disk, after a cut in each state: before AWAIT_DURABLE nothing; in it all of the body or
 * nothing, with the memo of its sender; behind it, all.
 *
 * **Bounds.** Connections, each with a head and a body, in memory taken at open; two more only tell
 * that there are too many (with TLS, by closing), and what comes behind those waits in the system's
 * queue. While a request
 * waits for room or for the disk its socket isn't read. Who is slow, idle, or doesn't read its
 * answer, is dropped.
 *
 * **Web pages.** A browser sends its user's requests to any address that a page names, with an
 * Origin: without a token such rows are refused (403), and what a page would do.
 *
 * The loop's thread only; steps run in tn_ops_run, requests in tn_net_turn.
 */
#pragma once

#include "base/arena.h"
#include "base/exec.h"
#include "base/op.h"
#include "ingest/hub.h"
#include "io/tls.h"

enum { TN_HTTP_BODY_MIN = 4096, TN_HTTP_PART_MAX = 3072, TN_HTTP_SPARE_CONNECTIONS = 2 };

/* A page is made anew for each request, into memory of the size of a body; or, when it may be
 * longer, part by part, while it is sent: then it has `part` instead of `fill`, and the status 200.
 * What is told of may change between two parts. */
struct tn_http_page {
    const char *path;                            /* "/health" */
    const char *type;                            /* "application/json" */
    bool open;                                   /* also without a token */
    bool post;                                   /* by POST, and nothing else: it does something */
    int (*fill)(void *user, struct tn_buf *out); /* returns the status */
    void *user;
    /* Instead of `fill`, of a page that goes by what stands behind the question mark, encoded, and
     * by the body, which is there until something is appended. */
    int (*ask)(void *user, struct tn_bytes query, struct tn_bytes body, struct tn_buf *out);
    /* Appends part `index`, of at most TN_HTTP_PART_MAX bytes; false: there is none. */
    bool (*part)(void *user, uint32_t index, struct tn_buf *out);
};

/* Copied; what it points to stays until the server is stopped. */
struct tn_http_server_spec {
    struct tn_net *net;
    struct tn_ops *ops;
    struct tn_hub *hub;
    struct tn_endpoint at;
    struct tn_tls_config *tls; /* or NULL */
    struct tn_exec *exec;      /* for TLS; or NULL */
    const char *token;         /* NULL: none, which only loopback and Unix sockets may do without */
    const char *source;        /* what letters and logs call it; NULL: "http" */
    const struct tn_http_page *pages;
    uint32_t page_count;
    uint32_t connections;   /* at once */
    size_t body_size_max;   /* TN_HTTP_BODY_MIN and more; the hub's size_max counts, too */
    uint32_t timeout_ms;    /* a head, an answer; a body has a second more for each KiB that came.
                               0: 10 s */
    uint32_t idle_ms;       /* between two requests; 0: 60 s */
    uint32_t answer_ms_max; /* for room and disk, then 503; 0: 10 s */
};

struct tn_http_counts {
    uint64_t connections;
    uint64_t connections_over; /* that were one too many */
    uint64_t requests;
    uint64_t rows; /* durable ones */
    uint64_t repeats;
    uint64_t refused; /* status 4xx */
    uint64_t later;   /* status 5xx */
    uint64_t slow;    /* dropped for it */
};

struct tn_http_server;

/* Bytes of arena that open takes. */
size_t tn_http_server_memory(const struct tn_http_server_spec *spec);

/* Listens, and is one of the hub's listeners from here on. The memory is the server's for as long
 * as the hub speaks, since a listener stays one. */
TN_MUST_USE tn_rc tn_http_server_open(struct tn_http_server **server,
                                      const struct tn_http_server_spec *spec,
                                      struct tn_arena *arena, struct tn_err *err);

uint16_t tn_http_server_port(const struct tn_http_server *server);
uint32_t tn_http_server_open_count(const struct tn_http_server *server); /* connections */
const struct tn_http_counts *tn_http_server_counts(const struct tn_http_server *server);

/* Nobody is let in any more. Who waits for an answer gets it, within answer_ms_max; the others are
 * closed. Turns go on until it is stopped. */
void tn_http_server_stop(struct tn_http_server *server);
bool tn_http_server_stopped(const struct tn_http_server *server);
