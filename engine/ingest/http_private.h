/* http_server, from inside:
 *
 * http_server.c      who comes in, and what the hub says
 * http_connection.c  one connection: requests in, answers out, one after the other
 * http_route.c       what a request is after, and whether it may
 * http_answer.c      what is written
 */
#pragma once

#include "ingest/http_memo.h"
#include "ingest/http_reader.h"
#include "ingest/http_server.h"

enum {
    TN_HTTP_TABLE_SIZE = 256,
    TN_HTTP_INPUT_SIZE = 4096,
    TN_HTTP_ANSWER_HEAD_SIZE = 512,
    TN_HTTP_RETRY_S = 2,
    TN_HTTP_CHUNK_HEAD_SIZE = 10, /* "12345678" CR LF */
    TN_HTTP_CHUNK_TAIL_SIZE = 7,  /* CR LF, and "0" CR LF CR LF */
};

/* What it waits for. */
enum tn_http_await {
    TN_HTTP_AWAIT_TLS,
    TN_HTTP_AWAIT_BYTES,
    TN_HTTP_AWAIT_CONTINUE, /* 100 is being written */
    TN_HTTP_AWAIT_ROOM,
    TN_HTTP_AWAIT_DURABLE,
    TN_HTTP_AWAIT_WRITTEN,
    TN_HTTP_AWAIT_FINISHED,
    TN_HTTP_AWAIT_END, /* of what the client sends, so that its answer isn't lost by a reset */
};

struct tn_http_asked {
    const struct tn_http_page *page; /* NULL: rows */
    const char *allow;               /* methods, for 405 */
    enum tn_input input;
    struct tn_http_mark mark; /* neither: it can't be known again. The key lies in the head */
    char table[TN_HTTP_TABLE_SIZE];
    char sender[TN_HTTP_SENDER_MAX + 8]; /* as the hub knows it */
};

struct tn_http_connection {
    struct tn_op op; /* first */
    struct tn_http_server *server;
    bool open;
    bool spare;    /* it only says that there are too many */
    bool last;     /* no request behind this one */
    bool repeated; /* the rows were there */
    bool began;    /* a request is coming in since began_ns */
    bool parted;   /* there are more parts of the page */
    enum tn_http_await await;
    struct tn_stream *stream;
    struct tn_request request; /* the only one that is under way */
    struct tn_http_reader reader;
    struct tn_http_asked asked;
    unsigned char *input; /* TN_HTTP_INPUT_SIZE */
    struct tn_bytes rest; /* of the input, not read yet */
    struct tn_buf body;   /* of the request, then of the answer */
    size_t body_max;      /* of this request's */
    struct tn_bytes answer;
    uint32_t part; /* of the page, that comes next */
    uint32_t rows;
    uint64_t place;
    int64_t began_ns;
    int64_t deadline_ns; /* of what waits for room or disk, or drains */
};

struct tn_http_server {
    struct tn_http_server_spec spec;
    struct tn_hub_listener ears;
    struct tn_op accept; /* of those who come */
    struct tn_request request;
    struct tn_listener *listener;
    struct tn_http_counts counts;
    bool pausing;
    bool stopping;
    uint32_t open_count;
    uint32_t slot_count;
    struct tn_http_connection *slots;      /* the spare ones are the last */
    unsigned char memo[TN_HTTP_MEMO_SIZE]; /* used within one step */
};

/* ---- http_connection.c ---- */

/* The slot is free; the stream is the connection's. */
void tn_http_connection_open(struct tn_http_connection *c, struct tn_stream *stream);

/* ---- http_route.c ---- */

/* 200, or the status of a refusal, which `err` explains. */
int tn_http_route(const struct tn_http_server *server, const struct tn_http_reader *reader,
                  struct tn_http_asked *asked, struct tn_err *err);

/* ---- http_answer.c: into the connection's body, for c->answer ---- */

void tn_http_answer_rows(struct tn_http_connection *c);
void tn_http_answer_page(struct tn_http_connection *c);
/* What of a page in parts comes behind the answer before; false: it can't go on. */
bool tn_http_answer_part(struct tn_http_connection *c);
/* `line` 0: no record is to blame. */
void tn_http_answer_error(struct tn_http_connection *c, int status, uint64_t line,
                          const char *text);
