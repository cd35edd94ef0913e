/* hub: where the daemon's sources hand in messages, and what they hear of them.
 *
 *     source -- offer --> decode -> [map] -> rows -> journal -> table
 *       ^                                               |
 *       '------------- durable(place) <----- synced ----'
 *
 * A broker, a client of HTTP, a socket can't be rewound: what they sent is in the journal
 * (journal.h) before they are told that it is theirs no longer. A file can, and goes past it: its
 * place is durable with its rows, in the table's commit, and where those are lost, since the table
 * was closed before, it is read again from there. (Through the journal it goes, too, where `map`
 * has stores.) Rows of a message are taken all or none of them, and in the order of the offers.
 * Nothing here waits: who hears AGAIN keeps the message and stops reading.
 *
 * A sender with an identity sends nothing twice: with its rows goes a memo, which the hub gives
 * back after a restart. Memo and rows are durable together, or neither is.
 *
 * A script's `map` may keep what it has seen (tarn.state), so it is asked about a record once: what
 * it made of a message for which there is no room in the journal is kept until that is offered
 * again. What its stores became is durable with the rows, and where a message is refused they are
 * as they were before.
 *
 * Sources and tests program against this; app/ makes the real one. The loop's thread only.
 */
#pragma once

#include "ingest/decode.h"
#include "ingest/file_place.h"

enum {
    TN_SENDER_SIZE_MAX = 256, /* bytes of a name */
    TN_MEMO_SIZE_MAX = 8192,
};

struct tn_message {
    const char *table; /* "db.t"; NULL: a memo alone */
    enum tn_input input;
    struct tn_bytes bytes; /* one record or many, until offer returns */
    uint64_t cut_size;     /* > 0: `bytes` is the beginning of one record of that size, a letter */
    const char *source;    /* for letters, logs and `map`: "mqtt.plant", "http" */
    struct tn_bytes topic; /* for `map`; empty: none */
    int64_t received_ms;   /* wall clock */
    bool whole;            /* a record that can't be taken refuses all of it; else it is a letter */
    bool split; /* where its rows are too many at once its first records are taken, or it is
                   refused: the rest is to come in pieces; else all of it is one letter */
    struct tn_bytes sender; /* UTF-8; empty: nobody */
    struct tn_bytes memo;   /* what is to be known of the sender from here on */
    /* Of a file, which has no memo: where it begins, behind a header that was put before it, and
     * the place behind it. NULL: it can't be rewound. */
    const struct tn_file_place *from;
    const struct tn_file_place *behind;
    size_t header_size;
    bool kept; /* its place is kept beside its rows, in the journal: the hub's */

    /* What became of it. */
    uint64_t place; /* grows from offer to offer, over restarts, too */
    uint32_t rows;
    uint32_t dead;
    uint64_t line; /* of the record that refused it, from 1 */
    size_t left;   /* bytes at its end that were not taken: the next message begins with them, and
                      `behind` is before them */
};

static inline struct tn_bytes tn_message_left(const struct tn_message *message)
{
    size_t taken = message->bytes.size - message->left;
    return (struct tn_bytes){message->bytes.data + taken, message->left};
}

/* Somebody who waits. Both are called in a turn of the loop, never inside offer. */
struct tn_hub_listener {
    void (*room)(struct tn_hub_listener *listener); /* an offer that was AGAIN may go now */
    void (*durable)(struct tn_hub_listener *listener, uint64_t place); /* and all before it */
    /* A table was closed, and is there again: a file's place may be one before. NULL: no file. */
    void (*rewound)(struct tn_hub_listener *listener);
    struct tn_hub_listener *next;
};

struct tn_hub;
struct tn_hub_vtable {
    tn_rc (*offer)(struct tn_hub *hub, struct tn_message *message, struct tn_err *err);
    tn_rc (*sender)(struct tn_hub *hub, struct tn_bytes name, struct tn_bytes *memo,
                    uint64_t *place);
    tn_rc (*place)(struct tn_hub *hub, struct tn_bytes name, struct tn_file_place *place);
    uint64_t (*committed)(const struct tn_hub *hub, struct tn_bytes name);
};

struct tn_hub {
    const struct tn_hub_vtable *vtable;
    struct tn_hub_listener *listeners;
    uint64_t durable; /* the newest place that is */
    size_t size_max;  /* bytes of a message; a longer one is INVALID */
};

/* OK: taken; acknowledge it once its place is durable. AGAIN: no room now. ABSENT: there is no such
 * table. INVALID: it is refused for good; with `whole`, message->line says which record did.
 * Others: the table takes nothing at present, for the reason given; the sender may try later. */
TN_MUST_USE static inline tn_rc tn_hub_offer(struct tn_hub *hub, struct tn_message *message,
                                             struct tn_err *err)
{
    return hub->vtable->offer(hub, message, err);
}

/* The sender's newest memo, until the next offer, and its place, which may not be durable yet.
 * ABSENT: there is none. */
TN_MUST_USE static inline tn_rc tn_hub_sender(struct tn_hub *hub, struct tn_bytes name,
                                              struct tn_bytes *memo, uint64_t *place)
{
    return hub->vtable->sender(hub, name, memo, place);
}

/* Where the file of this sender is to be read next. ABSENT: at its beginning. */
TN_MUST_USE static inline tn_rc tn_hub_place(struct tn_hub *hub, struct tn_bytes name,
                                             struct tn_file_place *place)
{
    return hub->vtable->place(hub, name, place);
}

/* How many bytes of the file, and of those before it, a snapshot has. */
static inline uint64_t tn_hub_committed(const struct tn_hub *hub, struct tn_bytes name)
{
    return hub->vtable->committed(hub, name);
}

static inline void tn_hub_listen(struct tn_hub *hub, struct tn_hub_listener *listener)
{
    listener->next = hub->listeners;
    hub->listeners = listener;
}

/* ---- for the one who makes the hub ---- */

static inline void tn_hub_say_durable(struct tn_hub *hub, uint64_t place)
{
    hub->durable = place;
    for (struct tn_hub_listener *l = hub->listeners; l; l = l->next) {
        l->durable(l, place);
    }
}

static inline void tn_hub_say_room(struct tn_hub *hub)
{
    for (struct tn_hub_listener *l = hub->listeners; l; l = l->next) {
        l->room(l);
    }
}

static inline void tn_hub_say_rewound(struct tn_hub *hub)
{
    for (struct tn_hub_listener *l = hub->listeners; l; l = l->next) {
        if (l->rewound) {
            l->rewound(l);
        }
    }
}
