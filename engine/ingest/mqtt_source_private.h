/* mqtt_source_private: what the parts of mqtt_source share.
 *
 *     mqtt_source.c    the spec, the stream, time
 *     mqtt_take.c      messages and memos into the hub, and what of them is durable
 *     mqtt_leave.c     filters of earlier runs
 */
#pragma once

#include "ingest/mqtt_source.h"

enum {
    TN_MQTT_SPANS_MAX = 64,
    TN_MQTT_SENDER_MAX = TN_SENDER_SIZE_MAX + 1,
};

enum tn_mqtt_step {
    TN_MQTT_STEP_WAIT, /* nothing is open or under way */
    TN_MQTT_STEP_CONNECT,
    TN_MQTT_STEP_SECURE,
    TN_MQTT_STEP_OPEN,
    TN_MQTT_STEP_CLOSE,
};

enum tn_mqtt_block {
    TN_MQTT_FREE,
    TN_MQTT_NO_ROOM, /* in the hub */
    TN_MQTT_NO_ENTRY /* into the table, for the reason in status.err */
};

/* All of the session up to `session` is durable when the hub is up to `hub`. */
struct tn_mqtt_span {
    uint64_t session;
    uint64_t hub;
};

struct tn_mqtt_source {
    struct tn_mqtt_source_spec spec;
    struct tn_mqtt_session session;
    struct tn_mqtt_source_status status;
    struct tn_hub_listener listener;
    enum tn_mqtt_step step;

    struct tn_stream *stream;
    struct tn_request opening;
    struct tn_request reading;
    struct tn_request writing;
    struct tn_request closing;
    struct tn_request timer;
    int64_t timer_ms; /* when it ends, while it's under way */
    unsigned char *input;
    size_t
        input_first; /* bytes from here to input_end are there; behind them a read may put more */
    size_t input_end;
    struct tn_buf out; /* the write's, while one is under way */

    enum tn_mqtt_block block;
    int64_t retry_ms; /* when blocked: ask again, if nobody said that there is room */
    bool memo_due;    /* what the hub has is not what the session knows */
    bool memo_kept;   /* the hub has one */
    uint64_t since;   /* nothing is connected before this place is durable */
    uint64_t last;    /* the hub's last place for us */
    struct tn_mqtt_span spans[TN_MQTT_SPANS_MAX]; /* a ring, both members growing */
    uint32_t span_first;
    uint32_t span_count;
    bool filters_due; /* the hub's list of them is not what it should be */
    bool all_left;
    uint32_t left_count; /* on this connection */
    char *memo;          /* TN_MEMO_SIZE_MAX */
    char sender[TN_MQTT_SENDER_MAX];
};

int64_t tn_mqtt_source_now(const struct tn_mqtt_source *source);

/* "KIND:CLIENT@HOST:PORT" */
void tn_mqtt_source_sender(const struct tn_mqtt_source_spec *spec, const char *kind,
                           char sender[TN_MQTT_SENDER_MAX]);

/* Logs it, as the source's. */
void tn_mqtt_source_failed(struct tn_mqtt_source *source, struct tn_err *err, bool lasting);

/* The hub takes nothing now, for this reason. */
void tn_mqtt_source_block(struct tn_mqtt_source *source, tn_rc rc, struct tn_err *err);

/* Gives the session what is durable in the hub. */
void tn_mqtt_source_settle(struct tn_mqtt_source *source);

/* Takes what is in the input, as far as it goes. */
void tn_mqtt_source_take(struct tn_mqtt_source *source);

/* Offers a memo alone where one is due. */
void tn_mqtt_source_keep_memo(struct tn_mqtt_source *source);

/* Bytes of arena that `find` takes, and the session for what it finds. */
size_t tn_mqtt_leave_memory(void);
TN_MUST_USE tn_rc tn_mqtt_leave_find(struct tn_mqtt_source *source, struct tn_arena *arena,
                                     struct tn_err *err);
void tn_mqtt_leave_connected(struct tn_mqtt_source *source, bool resumed);
void tn_mqtt_leave_answered(struct tn_mqtt_source *source, unsigned char reason);

/* Offers the list where it is due. */
void tn_mqtt_leave_keep(struct tn_mqtt_source *source);
