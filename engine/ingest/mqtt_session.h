/* mqtt_session: a subscriber's side of MQTT, as a state machine without a socket.
 *
 * Pure: what happens is told to it (bytes, time, what is durable), and what to do comes out (bytes
 * to send, messages to take, when to open and close). The loop around it is:
 *
 *     tick       time passes                         -> open a connection / it is dead
 *     opened     the stream is there (after TLS)     -> CONNECT is in the output
 *     next       bytes came: one packet at a time    -> an event; a message is offered
 *     admit      the offered message is taken        -> its place
 *     durable    all up to a place will survive      -> acknowledgements are in the output
 *     output     bytes to send
 *     lost       the stream is gone, or didn't come  -> a pause, then open again
 *
 *     WAIT --tick--> OPEN --opened--> CONNACK --accepted--> SUBACK --all answered--> READY
 *      ^                                    \                 ^
 *      |                                     `---> CLEAR -----'
 *      |                          (a new session: that the old ids are forgotten gets durable)
 *      |
 *      `-- lost, from each of them, and from CLOSING, where an error or `stop` leads. After `stop`
 *          it is STOPPED
 *
 * On the wire, after a cut in each state: the broker has what was acknowledged, and sends the rest
 * again. Filters are asked for on each connection, also when the broker remembers the session: that
 * it does may be said of a session which it made a moment ago, when its answer was lost. (5.0 then
 * sends no retained messages again; 3.1.1 does, and `retain` tells them.)
 *
 * **Places.** Each message that is admitted, each id that is released and each session that is
 * forgotten has a place: 1, 2, 3 and so on since `init`. The caller makes them durable in this
 * order, in its own time, and tells how far it is. Nothing is acknowledged before: QoS 1 gets its
 * PUBACK and QoS 2 its PUBREC when the message is durable, and PUBCOMP leaves when it is durable
 * that the id is free. (Earlier would be wrong: the broker may then use the id for another message,
 * and a restart from an older position would take that for a repetition.) So a caller commits also
 * when only places moved, and no rows came.
 *
 * **Exactly once.** With its rows, the caller keeps what `save` says, or, in a journal, the places
 * one by one: an id that came (`recall`), one that was released (`forget`). After a restart
 * `restore`, or these two, give it back, and a message whose id and content are known is
 * acknowledged, not offered. Content counts (a hash of topic and payload), since a repetition never
 * differs: an id that the broker gave up and used again is a new message. So is one that comes
 * without the mark of a repetition, the first time that its id is used on a connection. What was
 * saved belongs to one client id at one broker.
 *
 * **Back-pressure.** A message that isn't admitted is offered again by the next `next`. `in_flight`
 * is announced to a broker of 5.0 (receive maximum). 3.1.1 has no such word: when `known_max` ids
 * are not done with, reading is *held* until one is (`durable` and `output` help). Where only the
 * broker can help, its releases stand behind more messages: those are passed over, unacknowledged,
 * until all that is known is done with; then a new connection has them sent again, at once. That
 * works with any broker, but costs a connection for every `known_max` messages (`overruns` counts
 * them): better is a `known_max` above the broker's own bound.
 *
 * **Too long.** No packet has to fit the caller's buffer: of a message that does not, the begin is
 * offered (`cut`) with the size of all; the rest is passed over. (That is why no maximum packet
 * size is announced: a broker drops what is above it, and says nothing.)
 *
 * The spec, its texts, and the memory of the arena stay the caller's, and stay as they are until
 * the session is no longer used; user name and password may change between connections.
 */
#pragma once

#include "base/arena.h"
#include "ingest/mqtt_packet.h"

enum { TN_MQTT_FILTERS_MAX = 1024, TN_MQTT_INPUT_MIN = 128, TN_MQTT_KNOWN_MAX = 65535 };

struct tn_mqtt_spec {
    enum tn_mqtt_version version; /* TN_MQTT_ANY: 5.0, and 3.1.1 where the broker doesn't know it */
    struct tn_bytes client_id;    /* names the session at the broker: not empty */
    struct tn_bytes user;         /* no data: none */
    struct tn_bytes password;     /* likewise */
    const struct tn_mqtt_wish *filters;
    const struct tn_bytes *leave; /* filters of earlier runs, which the broker may still have */
    uint32_t filter_count;        /* 1 or more */
    uint32_t leave_count;
    uint32_t session_expiry_s; /* 5.0: the broker keeps the session; UINT32_MAX: for ever */
    uint16_t keep_alive_s;     /* 0: no pings, and a dead broker isn't noticed */
    uint16_t in_flight;        /* 1 .. known_max */
    uint32_t known_max;        /* ids at once; 3.1.1: more than the broker has in flight */
    uint32_t answer_ms_max;    /* a broker that takes longer to answer is dead */
    uint32_t wait_ms_min;      /* the first pause after a connection; it doubles, and is drawn */
    uint32_t wait_ms_max;      /* between its half and its whole */
    size_t input_size;         /* bytes of a packet that the caller can hold together */
    uint64_t seed;             /* for the pauses */
};

enum tn_mqtt_state {
    TN_MQTT_WAIT,
    TN_MQTT_OPEN,
    TN_MQTT_AWAIT_CONNACK,
    TN_MQTT_CLEAR, /* nothing is subscribed before clear_place is durable */
    TN_MQTT_AWAIT_SUBACK,
    TN_MQTT_READY,
    TN_MQTT_CLOSING, /* send the output, close, call `lost` */
    TN_MQTT_STOPPED,
};

struct tn_mqtt_entry; /* an id that is not done with */
struct tn_mqtt_reply; /* an acknowledgement that is due */

/* Read it, but write it by the functions below only. */
struct tn_mqtt_session {
    const struct tn_mqtt_spec *spec;
    enum tn_mqtt_state state;
    enum tn_mqtt_version version; /* of this connection */
    bool lasting;         /* why the last one ended won't pass by itself: somebody must act */
    unsigned char reason; /* what the broker said at its end; 0: nothing */
    bool held;            /* `next` reads no further until something gets durable or sent */
    uint64_t place;       /* the last one given */
    uint64_t durable;
    uint64_t connections; /* accepted so far */
    uint64_t overruns;    /* that had to end because the broker has more than known_max in flight */

    /* the rest is its own */
    struct tn_mqtt_entry *entries; /* a hash table of slot_count, by id */
    struct tn_mqtt_reply *replies; /* a ring of reply_max, by place */
    unsigned char *answered;       /* a byte a filter: 1 when it was, or need not be */
    unsigned char *ask;            /* room for a filter */
    uint32_t slot_count;
    uint32_t known_count;
    uint32_t reply_max;
    uint32_t reply_first;
    uint32_t reply_count;
    uint32_t ask_next; /* the next filter to ask for: first those to leave */
    uint32_t ask_left; /* answers to come */
    bool remembers;    /* there was a session before */
    bool asked;        /* a filter was asked for */
    bool resumed;      /* the session of this connection is an old one */
    bool connect_due;
    bool ping_due;
    bool stopping;
    bool draining;          /* new messages are passed over */
    bool at_once;           /* no pause before the next connection */
    uint32_t pings_open;    /* without an answer so far */
    uint32_t pings_to_come; /* answers until draining is over */
    bool spoke;             /* the broker said something on this connection */
    bool goodbye_due;
    unsigned char goodbye; /* the reason that DISCONNECT gives */
    uint64_t clear_place;
    size_t skip;                 /* bytes of a long message to pass over */
    size_t seek;                 /* bytes before the id of a message whose topic is too long */
    size_t seek_rest;            /* bytes of it behind those; 0: there is none */
    struct tn_mqtt_frame sought; /* its header */
    size_t seen;                 /* bytes that were too few for a packet */
    uint32_t keep_alive_ms;
    uint32_t tries; /* without success, for the pause */
    int64_t due_ms; /* when WAIT is over */
    int64_t sent_ms;
    int64_t heard_ms;
    int64_t asked_ms;
    int64_t ready_ms;
    uint64_t random;
};

enum tn_mqtt_event_kind {
    TN_MQTT_NOTHING,
    TN_MQTT_MESSAGE,    /* offered: admit it, or leave the bytes where they are and come back */
    TN_MQTT_RELEASED,   /* id is free: `place` is to be made durable */
    TN_MQTT_CONNECTED,  /* resumed or not; `place` is to be made durable where something is
                           forgotten, and `ids_gone` says so */
    TN_MQTT_SUBSCRIBED, /* filter and what the broker granted: a QoS, or a reason above 0x80 */
    TN_MQTT_LEFT,       /* a filter of `leave`, likewise */
};

struct tn_mqtt_message {
    struct tn_bytes topic; /* empty: too long, see `cut` */
    struct tn_bytes payload;
    struct tn_bytes properties; /* 5.0 */
    size_t size;                /* bytes of the whole packet */
    uint32_t hash;              /* of topic and payload, and QoS */
    uint16_t id;                /* 0: QoS 0 */
    unsigned char qos;
    bool dup;
    bool retain;
    bool cut;   /* topic and payload are not all of it */
    bool again; /* some who keep positions have it, see tn_mqtt_session_recall */
};

struct tn_mqtt_event {
    enum tn_mqtt_event_kind kind;
    size_t eaten; /* bytes of the input that are done with; of a message: once it's admitted */
    size_t rest;  /* bytes behind those that later calls will pass over */
    uint64_t place;
    struct tn_mqtt_message message;
    struct tn_bytes text; /* what the broker says in words; may be empty */
    uint32_t filter;      /* index in the spec */
    uint32_t expiry_s;    /* CONNECTED, 5.0: how long the broker keeps the session */
    uint16_t id;
    unsigned char reason;
    bool resumed;
    bool stranger; /* resumed, but this side knows of no session: another data folder, another
                      user of the client id, or a first run after the positions were lost */
    bool ids_gone;
};

/* Bytes of arena for a spec, and of the largest packet that `output` writes in one piece. */
size_t tn_mqtt_session_memory(const struct tn_mqtt_spec *spec);
size_t tn_mqtt_session_output_size(const struct tn_mqtt_spec *spec);

/* INVALID: what is wrong with the spec. AGAIN: the arena is full. */
TN_MUST_USE tn_rc tn_mqtt_session_init(struct tn_mqtt_session *s, const struct tn_mqtt_spec *spec,
                                       struct tn_arena *arena, struct tn_err *err);

/* What is to be kept with the rows: appends "17.0badcafe 18.00c0ffee", at most 16 * known_max
 * bytes, or nothing. It stands for everything up to the place that is returned. */
uint64_t tn_mqtt_session_save(const struct tn_mqtt_session *s, struct tn_buf *text);

/* The same, as it will be once the message that the last `next` offered is admitted: for a caller
 * who keeps it together with that message. Returns the message's place to come. */
uint64_t tn_mqtt_session_save_next(const struct tn_mqtt_session *s,
                                   const struct tn_mqtt_event *event, struct tn_buf *text);

/* Before the first `tick`. INVALID: the text is none of save's, or has too many ids. */
TN_MUST_USE tn_rc tn_mqtt_session_restore(struct tn_mqtt_session *s, struct tn_bytes text,
                                          struct tn_err *err);

/* The same id by id, in the order of their places, from a journal. `partly`: not all who keep
 * positions of this session know the message; it is offered once more, as `again`, and each of them
 * looks whether it has it. AGAIN: there are known_max. */
TN_MUST_USE tn_rc tn_mqtt_session_recall(struct tn_mqtt_session *s, uint16_t id, uint32_t hash,
                                         bool partly, struct tn_err *err);
void tn_mqtt_session_forget(struct tn_mqtt_session *s, uint16_t id);
void tn_mqtt_session_forget_all(struct tn_mqtt_session *s);

/* Times are of a monotonic clock and never go back. `*open`: open a connection, then call `opened`
 * or `lost`. IO: the broker is silent; the session is CLOSING. */
TN_MUST_USE tn_rc tn_mqtt_session_tick(struct tn_mqtt_session *s, int64_t now_ms, bool *open,
                                       struct tn_err *err);

/* When `tick` is next of use; INT64_MAX: not before something else happens. */
int64_t tn_mqtt_session_due(const struct tn_mqtt_session *s);

void tn_mqtt_session_opened(struct tn_mqtt_session *s, int64_t now_ms);
void tn_mqtt_session_lost(struct tn_mqtt_session *s, int64_t now_ms);

/* Reads one packet from the front of `input`, whose size is input_size at least unless there are no
 * more bytes yet. OK: an event; drop event->eaten bytes (those of a message only after `admit`).
 * AGAIN: more bytes are needed or, where s->held, it would be more than can be kept. INVALID: the
 * broker broke the protocol. IO: it refused or said goodbye. After both the session is CLOSING. */
TN_MUST_USE tn_rc tn_mqtt_session_next(struct tn_mqtt_session *s, struct tn_bytes input,
                                       int64_t now_ms, struct tn_mqtt_event *event,
                                       struct tn_err *err);

/* Takes the message that the last `next` offered. Returns its place. */
uint64_t tn_mqtt_session_admit(struct tn_mqtt_session *s, const struct tn_mqtt_event *event);

/* All places up to this one are durable. */
void tn_mqtt_session_durable(struct tn_mqtt_session *s, uint64_t place);

/* Appends whole packets while there is room; they count as sent. To be called after each of the
 * others. Returns whether there is more. Then look at the state: it is CLOSING also when another
 * connection is wanted, see Back-pressure. */
bool tn_mqtt_session_output(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out);

/* Ends it in order: what is durable is acknowledged, DISCONNECT, then CLOSING. The broker keeps the
 * session. */
void tn_mqtt_session_stop(struct tn_mqtt_session *s);
