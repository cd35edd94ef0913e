/* http_reader: what clients ask by HTTP/1.1 (and 1.0), as bytes come in. Pure: no socket, no clock,
 * and no memory but what it is given for one head.
 *
 *     bytes -> HEAD -> BODY* -> END -> HEAD -> ...      as long as keep_alive
 *                 \        \
 *                  `--------`-> refused: `status` is what to answer; nothing more is read
 *
 * How the bytes are cut makes no difference. What a proxy in front could read in another way is
 * refused: bare line feeds, folded lines, two lengths, a length beside chunks, names that aren't
 * any, two hosts. One empty line before a request is passed over, as old clients send it.
 */
#pragma once

#include "base/err.h"
#include "format/http.h"

enum { TN_HTTP_READER_HEAD_SIZE = 8192 }; /* of a head, with the line that asks */

enum tn_http_reader_event {
    TN_HTTP_READER_MORE, /* the input is used up */
    TN_HTTP_READER_HEAD,
    TN_HTTP_READER_BODY, /* a piece of it, inside the input */
    TN_HTTP_READER_END,
};

enum tn_http_reader_state {
    TN_HTTP_READER_IN_HEAD,
    TN_HTTP_READER_IN_BODY,
    TN_HTTP_READER_AT_END, /* the next call begins a head */
    TN_HTTP_READER_OVER,   /* no request may follow: bytes are dropped */
};

struct tn_http_reader {
    struct tn_buf head; /* memory that was given */
    enum tn_http_reader_state state;
    int status; /* once it is refused; 0 before */
    bool began; /* bytes of the request came */
    bool blank; /* the empty line before it */

    /* From HEAD until the call behind END; views on the head. */
    struct tn_bytes method;
    struct tn_bytes path;  /* encoded, begins with a slash */
    struct tn_bytes query; /* encoded; empty: none */
    struct tn_bytes fields;
    bool old; /* 1.0 */
    bool keep_alive;
    bool expects; /* 100 Continue, before it sends the body */
    bool has_body;
    bool has_length;
    uint64_t length;
    struct tn_http_frame frame;
};

void tn_http_reader_init(struct tn_http_reader *reader, void *memory, size_t size);

/* Takes from `input` up to the next event. To be called until MORE. INVALID: the client is to hear
 * reader->status, and the connection to be closed. */
TN_MUST_USE tn_rc tn_http_reader_next(struct tn_http_reader *reader, struct tn_bytes *input,
                                      enum tn_http_reader_event *event, struct tn_bytes *body,
                                      struct tn_err *err);

/* A field that may be there once. False: it's there more often. Not there: *value is empty, with
 * NULL for its data. */
bool tn_http_reader_field(const struct tn_http_reader *reader, const char *name,
                          struct tn_bytes *value);
