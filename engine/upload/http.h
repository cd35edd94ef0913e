/* http: one connection's HTTP/1.1 messages, as a client sends and reads them. Bytes in, bytes and
 * events out; whoever owns the socket drives it.
 *
 *     request -> head bytes; then the body, in any pieces (sent)
 *     bytes   -> HEAD -> BODY* -> END                  then the next request, if `reusable`
 *
 * An answer may come before the body was sent to its end; such a connection isn't used again. What
 * a server may not say is refused rather than guessed at: bare line feeds, folded lines, two
 * lengths, a length beside chunks, any coding but `chunked`, and whatever goes beyond a limit.
 * Interim answers (100 Continue and the like) and trailers are read and dropped.
 */
#pragma once

#include "base/err.h"
#include "format/http.h"

enum {
    TN_HTTP_HEAD_SIZE = 8192, /* what is usually given for a head; S3's stay below 2 KiB */
    TN_HTTP_INTERIM_MAX = 16, /* answers of status 1xx before the real one */
};

struct tn_http_header {
    const char *name;
    const char *value;
};

struct tn_http_request {
    const char *method;
    const char *path;                     /* encoded */
    const char *query;                    /* encoded; "" for none */
    const struct tn_http_header *headers; /* Host is one of them */
    uint32_t header_count;
    bool has_body; /* Content-Length is written, also for 0 */
    uint64_t body_size;
};

enum tn_http_event {
    TN_HTTP_MORE, /* the input is used up */
    TN_HTTP_HEAD, /* status and headers are there */
    TN_HTTP_BODY, /* a piece of the body, inside the input */
    TN_HTTP_END,  /* the answer is whole */
};

enum tn_http_state {
    TN_HTTP_IDLE, /* no request is open: a byte is one too many */
    TN_HTTP_IN_HEAD,
    TN_HTTP_IN_BODY,       /* in its frame */
    TN_HTTP_IN_BODY_CLOSE, /* as long as the connection lasts */
    TN_HTTP_AT_END,
    TN_HTTP_BROKEN,
};

struct tn_http {
    struct tn_buf head; /* of the answer: memory that was given */
    enum tn_http_state state;
    int status;
    bool keep_alive;
    bool headless;   /* the request was a HEAD: its answer has a length and no body */
    bool has_length; /* of the answer */
    uint64_t length;
    struct tn_http_frame frame;
    uint64_t send_left; /* bytes of the request's body */
    uint32_t interim;
};

/* A new connection. The memory holds the head of one answer, and is the connection's. */
void tn_http_init(struct tn_http *http, void *memory, size_t size);

/* Appends the request's head. INVALID: a line break or the like in a header, which is named;
 * AGAIN: `out` is full. The connection must be new, or `reusable`. */
TN_MUST_USE tn_rc tn_http_request(struct tn_http *http, const struct tn_http_request *request,
                                  struct tn_buf *out, struct tn_err *err);

/* So many bytes of the body went to the connection. */
void tn_http_sent(struct tn_http *http, uint64_t size);

/* Takes from `input` up to the next event. To be called until MORE or END: an answer's end needs no
 * byte of its own. CORRUPT: that isn't HTTP, or beyond a limit; the
 * connection is to be closed then. */
TN_MUST_USE tn_rc tn_http_read(struct tn_http *http, struct tn_bytes *input,
                               enum tn_http_event *event, struct tn_bytes *body,
                               struct tn_err *err);

/* The other side has closed: OK when that is how the answer ends. IO: in the middle of it. */
TN_MUST_USE tn_rc tn_http_closed(struct tn_http *http, struct tn_err *err);

/* Whether the next request may go over the same connection. */
bool tn_http_reusable(const struct tn_http *http);

/* A header of the answer, from HEAD until the next request; the first one of that name. The value
 * lies in the connection's memory. */
bool tn_http_header(const struct tn_http *http, const char *name, struct tn_bytes *value);

/* "Fri, 24 May 2013 00:00:00 GMT", in milliseconds since 1970. */
bool tn_http_date(struct tn_bytes text, int64_t *time_ms);
