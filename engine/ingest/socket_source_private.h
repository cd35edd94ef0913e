/* socket_source_private: what the parts of socket_source share.
 *
 *     socket_source.c    the spec, who comes, the hub, begin and end
 *     socket_link.c      one connection: greeting, answers, its end
 *     socket_take.c      lines into the hub, and what of them is durable
 */
#pragma once

#include "ingest/socket_greeting.h"
#include "ingest/socket_source.h"

enum {
    TN_SOCKET_SPANS_MAX = 32,
    TN_SOCKET_OUT_SIZE = 512,
    TN_SOCKET_WHY_SIZE = 256,
    TN_SOCKET_SENDER_SIZE = TN_SENDER_SIZE_MAX + 1,
};

enum tn_socket_state {
    TN_SOCKET_FREE,
    TN_SOCKET_SECURE, /* TLS's handshake */
    TN_SOCKET_GREET,  /* what the first line is */
    TN_SOCKET_KNOWN,  /* what is known of the sender gets durable */
    TN_SOCKET_OPEN,
    TN_SOCKET_LAST, /* the client sends no more; answers go on */
    TN_SOCKET_BYE,  /* it is told why, and what it sends is not used */
    TN_SOCKET_CLOSE,
};

/* The connection's lines up to `count` are durable when the hub is up to `place`. */
struct tn_socket_span {
    uint64_t count;
    uint64_t place;
};

struct tn_socket_link {
    struct tn_socket_source *source;
    enum tn_socket_state state;
    bool spare;    /* one too many, until it replaces another one */
    bool mute;     /* nothing can be written any more */
    bool eof;      /* nothing comes any more */
    bool answered; /* the greeting's answer is out, or there was no greeting */
    bool greeted;
    bool said;     /* BYE: the error is being written, or was */
    bool finished; /* BYE: so is the end */
    struct tn_stream *stream;
    struct tn_request opening; /* TLS */
    struct tn_request reading;
    struct tn_request writing;
    struct tn_request closing;
    int64_t until_ms; /* GREET with a token, LAST, BYE: no longer than that */

    unsigned char *input; /* source->input_size */
    size_t first;         /* bytes from here to `end` are there */
    size_t end;
    size_t seen;        /* no line ends before it */
    size_t offered;     /* of lines that there was no room for: they come again as they were */
    uint64_t long_size; /* > 0: of a line too long so far; its beginning is what is there */

    char sender[TN_SOCKET_SENDER_SIZE];               /* as the hub knows it; "": nobody */
    size_t prefix_size;                               /* of it, before the name */
    uint64_t since;                                   /* the place of what the hub knew of it */
    uint64_t last;                                    /* the newest place of ours, or since */
    uint64_t skip;                                    /* lines that were received before */
    uint64_t count;                                   /* lines taken */
    uint64_t durable;                                 /* of these */
    uint64_t told;                                    /* of these */
    struct tn_socket_span spans[TN_SOCKET_SPANS_MAX]; /* a ring, both members growing */
    uint32_t span_first;
    uint32_t span_count;

    unsigned char out[TN_SOCKET_OUT_SIZE]; /* the write's, while one is under way */
    char why[TN_SOCKET_WHY_SIZE];          /* BYE */
};

struct tn_socket_source {
    struct tn_socket_source_spec spec;
    struct tn_socket_source_status status;
    struct tn_socket_greeter greeter;
    struct tn_hub_listener ears;
    struct tn_listener *listener; /* NULL: stopping */
    uint16_t port;
    struct tn_request accepting;
    struct tn_request timer;
    int64_t timer_ms; /* when it ends, while it's under way */
    int64_t due_ms;   /* when it should */
    size_t line_size_max;
    size_t input_size;
    bool no_room;      /* in the hub */
    bool no_entry;     /* into the table, for the reason in status.err */
    int64_t retry_ms;  /* when one of them holds */
    int64_t accept_ms; /* no accept before */
    uint32_t turn;     /* who begins when there is room */
    uint32_t link_count;
    struct tn_socket_link *links;
};

static inline bool tn_socket_is_blocked(const struct tn_socket_source *source)
{
    return source->no_room || source->no_entry;
}

int64_t tn_socket_now(const struct tn_socket_source *source);

/* Logs the first, the second, the fourth and so on: all would fill the log. */
void tn_socket_log_some(struct tn_socket_source *source, uint64_t count, const char *what,
                        const struct tn_socket_link *link, const char *text);

/* Asks for a turn at that time at the latest. */
void tn_socket_wake_at(struct tn_socket_source *source, int64_t due_ms);

/* The link is free again. */
void tn_socket_link_is_free(struct tn_socket_source *source);

/* ---- socket_link.c ---- */

void tn_socket_link_init(struct tn_socket_link *link, struct tn_socket_source *source,
                         unsigned char *input);

/* The link is free; the stream is its own. */
void tn_socket_link_open(struct tn_socket_link *link, struct tn_stream *stream, bool spare);

/* Does what it can do now. */
void tn_socket_link_run(struct tn_socket_link *link);

/* Tells the client why, and closes. */
void tn_socket_link_bye(struct tn_socket_link *link, const char *why);

/* For the end of the source. */
void tn_socket_link_stop(struct tn_socket_link *link);

/* ---- socket_take.c ---- */

void tn_socket_settle(struct tn_socket_link *link);

/* Gives the hub the lines that are there, as far as it takes them. */
void tn_socket_take(struct tn_socket_link *link);

/* Fills since, last and count from what the hub knows of the sender. */
TN_MUST_USE tn_rc tn_socket_remember(struct tn_socket_link *link, struct tn_err *err);
