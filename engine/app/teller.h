/* teller: tells one message at a time to one place: a broker of MQTT, or who takes a POST.
 *
 *     IDLE --tell--> BEGIN --> CONNECT --> [SECURE] --> WRITE <--> READ --> CLOSE --> IDLE, ended
 *                                 |           |           |          |        ^
 *                                 '-- failed -'           '- failed -'--------'
 *
 * Each message has a connection of its own, and a minute from its begin to its answer. A broker has
 * taken it when it acknowledged QoS 1, and who takes a POST by any status of 2xx. After a cut in
 * any state it may be there or not: who must know that it is tells it again. A status that speaks
 * of the message (400, 413, 415, 422), and the like of MQTT, refuses it for good; everything else
 * may pass.
 *
 * Nothing is allocated; the loop's thread only.
 */
#pragma once

#include "app/config.h"
#include "base/op.h"
#include "ingest/mqtt_publish.h"
#include "io/tls.h"
#include "upload/http.h"

enum {
    TN_TELLER_OUT_SIZE = 16 * 1024, /* a head, or a packet, with a body of script/uploaded.h */
    TN_TELLER_IN_SIZE = 1024,
    TN_TELLER_HEAD_SIZE = 4096 + 64, /* of an answer; before that, of a token */
    TN_TELLER_PATIENCE_MS = 60 * 1000,
};

struct tn_teller_message {
    struct tn_bytes payload;
    struct tn_bytes topic; /* MQTT */
    const char *type;      /* POST: Content-Type */
    bool retain;           /* MQTT */
};

struct tn_teller_spec {
    struct tn_net *net;
    struct tn_exec *exec;      /* for handshakes; NULL: on the loop */
    struct tn_tls_config *tls; /* NULL: as it is */
    const struct tn_config_notify *config;
    const char *client_id; /* MQTT */
};

enum tn_teller_state {
    TN_TELLER_IDLE,
    TN_TELLER_BEGIN, /* its turn has not come */
    TN_TELLER_CONNECT,
    TN_TELLER_SECURE,
    TN_TELLER_WRITE,
    TN_TELLER_READ,
    TN_TELLER_CLOSE,
};

struct tn_teller {
    struct tn_op op; /* first */
    struct tn_teller_spec spec;
    enum tn_teller_state state;
    char host[TN_HOST_SIZE];
    struct tn_config_notify_url url;
    struct tn_teller_message message; /* its bytes are the caller's until it has ended */
    struct tn_mqtt_publish_spec publish_spec;
    struct tn_mqtt_publish publish;
    enum tn_mqtt_version version;
    struct tn_http http;
    struct tn_stream *stream;
    struct tn_request request; /* that is under way */
    int64_t until_ms;
    bool knocks;   /* there is no message */
    bool talks;    /* the connection is there */
    bool told;     /* it has been taken */
    bool stopping; /* what is under way is to end */
    struct tn_buf out;
    struct tn_buf in;

    /* The outcome, once it has ended. */
    bool ended;
    tn_rc rc;
    bool refused;            /* for good */
    uint32_t retry_after_ms; /* that it was asked to wait; 0: not */
    struct tn_err err;

    unsigned char out_memory[TN_TELLER_OUT_SIZE];
    unsigned char in_memory[TN_TELLER_IN_SIZE];
    unsigned char head_memory[TN_TELLER_HEAD_SIZE];
};

/* INVALID: the configuration's url is none. */
TN_MUST_USE tn_rc tn_teller_open(struct tn_teller *teller, const struct tn_teller_spec *spec,
                                 struct tn_err *err);
/* Idle. It begins, and ends in turns of `ops` and of the net. */
void tn_teller_tell(struct tn_teller *teller, const struct tn_teller_message *message,
                    struct tn_ops *ops);
/* The same without a message: OK when a broker lets us in, or who takes a POST is there, and TLS
 * with it. */
void tn_teller_knock(struct tn_teller *teller, struct tn_ops *ops);
static inline bool tn_teller_busy(const struct tn_teller *teller)
{
    return teller->state != TN_TELLER_IDLE;
}
/* What is under way ends soon, with CANCELED. */
void tn_teller_stop(struct tn_teller *teller);
