/* mqtt_publish: one message to a broker, with QoS 1, as a conversation without a socket.
 *
 *     begin -> CONNECT out -> CONNACK in -> PUBLISH out -> PUBACK in -> DISCONNECT out, done
 *
 * Without a topic nothing is published, and it is done with the CONNACK: for finding out whether
 * the broker lets us in.
 *
 * Whoever owns the connection sends what is in `out` and gives what comes. The session is a clean
 * one: the broker has nothing of it afterwards. After a cut in any state the message may be there
 * or not, and is sent again: it comes once at least.
 *
 * 5.0 is spoken first, since only that says why something isn't taken; a broker that doesn't know
 * it may refuse, or just close: the next try is by 3.1.1 then (`version` is kept by the caller).
 */
#pragma once

#include "ingest/mqtt_packet.h"

enum { TN_MQTT_PUBLISH_INPUT = 1024 }; /* bytes that an answer of the broker's may have */

struct tn_mqtt_publish_spec {
    struct tn_bytes client_id; /* not empty */
    struct tn_bytes user;      /* no data: none */
    struct tn_bytes password;  /* likewise */
    struct tn_bytes topic;     /* no data: none */
    struct tn_bytes payload;
    bool retain;
};

enum tn_mqtt_publish_state {
    TN_MQTT_PUBLISH_CONNACK,
    TN_MQTT_PUBLISH_PUBACK,
    TN_MQTT_PUBLISH_DONE
};

struct tn_mqtt_publish {
    const struct tn_mqtt_publish_spec *spec; /* stays until it is done */
    enum tn_mqtt_version version;
    enum tn_mqtt_publish_state state;
    bool refused; /* after a failure: this message will never be taken */
};

/* CONNECT is in `out`, begun anew. INVALID: a name or the topic is none. */
TN_MUST_USE tn_rc tn_mqtt_publish_begin(struct tn_mqtt_publish *p,
                                        const struct tn_mqtt_publish_spec *spec,
                                        enum tn_mqtt_version version, struct tn_buf *out,
                                        struct tn_err *err);

/* Takes packets from the front of `input`, and leaves what is to be sent in `out`, begun anew.
 * AGAIN: more bytes are needed, and nothing is to be sent. OK: send `out`; the state says whether
 * that is the end. IO: the broker refused, and the text says why; INVALID: it broke the protocol;
 * UNSUPPORTED: it wants the other version. */
TN_MUST_USE tn_rc tn_mqtt_publish_next(struct tn_mqtt_publish *p, struct tn_bytes *input,
                                       struct tn_buf *out, struct tn_err *err);

/* After a connection that was lost: the version for the next one. */
enum tn_mqtt_version tn_mqtt_publish_other(const struct tn_mqtt_publish *p);
