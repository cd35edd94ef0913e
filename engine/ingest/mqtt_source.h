/* mqtt_source: the messages of one broker, into the hub.
 *
 * An MQTT session (mqtt_session.h) around which this is the loop: a stream of net.h on one side,
 * the hub on the other.
 *
 *     WAIT --due--> CONNECT --> [SECURE] --> OPEN --the session ends--> CLOSE --> WAIT, STOPPED
 *      ^               |           |           |                         ^
 *      '--- failed ----'-----------'           '--- failed, cut ---------'
 *
 * A message goes to the table of the filter that matches its topic, as one offer. Filters must not
 * overlap: of a message that two of them give, brokers send one copy or two, as they like. (Two
 * sources with a client id each get all of it each.) It is acknowledged when its place in the hub
 * is durable, and no sooner. After a cut in any state the broker has what was acknowledged and
 * sends the rest again.
 *
 *     QoS 0, 1    offered as they come, without a memo: once at most, once at least
 *     QoS 2       offered with a memo: the packet ids that are not done with, this one included;
 *                 so a restart knows the message exactly if its rows are durable
 *     released    a memo without the id, with the next offer, or alone before the source waits
 *
 * Memos belong to the sender "mqtt:CLIENT@HOST:PORT". One that the hub has, but not durably yet,
 * is waited for before the first connection, so that nothing is acknowledged for its sake. A second
 * sender, "mqtt-filters:...", remembers the filters: one that is no longer among them is left, so
 * that the broker doesn't go on sending what nobody wants.
 *
 * **No room.** When the hub says AGAIN, the message stays where it is, in the input buffer; when
 * that is full nothing is read, and the broker waits. Pings go on. The same where a table takes
 * nothing for another reason, which is logged once, and tried again every few seconds: one table
 * that takes nothing stops all of its source. What is refused for good is acknowledged all the
 * same, since a broker would repeat it for ever: counted, and logged. What is too long is a letter
 * with its beginning and its size, unless its topic is, too.
 *
 * Nothing here waits or takes memory after open. The loop's thread only. Source and texts of the
 * spec must stay as long as the hub, which has no way to be left.
 */
#pragma once

#include "base/log.h"
#include "ingest/hub.h"
#include "ingest/mqtt_session.h"
#include "io/net.h"
#include "io/tls.h"

/* Where a filter's messages go. */
struct tn_mqtt_route {
    const char *table; /* "db.t" */
    enum tn_input input;
};

enum {
    TN_MQTT_SOURCE_KNOWN_MAX = TN_MEMO_SIZE_MAX / 16, /* packet ids that fit a memo */
    TN_MQTT_SOURCE_HEAD_SIZE = 1024, /* room for a topic and properties, beside the payload */
};

struct tn_mqtt_source_spec {
    const char *name; /* "mqtt.plant": for letters, logs, `map` */
    struct tn_net *net;
    struct tn_hub *hub;
    struct tn_log *log;
    struct tn_endpoint broker;
    struct tn_tls_config *tls; /* NULL: the stream as it is */
    struct tn_exec *exec;      /* for handshakes; NULL: they run on the loop */
    /* 0 in known_max, input_size, answer_ms_max, wait_ms_min, wait_ms_max or seed: as source and
     * hub want it. `leave` is the source's own. */
    struct tn_mqtt_spec mqtt;
    const struct tn_mqtt_route *routes; /* mqtt.filter_count, one a filter */
};

struct tn_mqtt_source_status {
    enum tn_mqtt_state state;
    bool blocked;         /* the hub has no room, or the table takes nothing */
    uint32_t in_flight;   /* packet ids that are not done with */
    uint64_t messages;    /* taken by the hub */
    uint64_t rows;        /* of these */
    uint64_t dead;        /* letters of these */
    uint64_t refused;     /* for good */
    uint64_t too_long;    /* for the hub, or the input buffer */
    uint64_t unrouted;    /* no filter matches their topic: of earlier runs, which weren't left */
    uint64_t waits;       /* times that there was no room */
    uint64_t connections; /* accepted */
    uint64_t failures;    /* that ended, or didn't come, by a failure */
    uint64_t overruns;    /* see tn_mqtt_session */
    struct tn_err err;    /* of the last failure; code OK: messages came since */
};

struct tn_mqtt_source;

/* Bytes of arena that open takes, at most. Of net and hub it asks only for clock and size_max. */
size_t tn_mqtt_source_memory(const struct tn_mqtt_source_spec *spec);

/* Knows again what the hub knows of the sender, listens to the hub, and begins to connect. The spec
 * is copied, but not what it points to. INVALID: what is wrong with the spec, or with the memo.
 * AGAIN: the arena is full. */
TN_MUST_USE tn_rc tn_mqtt_source_open(struct tn_mqtt_source **source,
                                      const struct tn_mqtt_source_spec *spec,
                                      struct tn_arena *arena, struct tn_err *err);

/* Ends it in order: what is durable is acknowledged, and the broker keeps the session. It takes
 * some turns of the loop until it's stopped: then nothing of it is under way. */
void tn_mqtt_source_stop(struct tn_mqtt_source *source);
bool tn_mqtt_source_stopped(const struct tn_mqtt_source *source);

void tn_mqtt_source_status(const struct tn_mqtt_source *source,
                           struct tn_mqtt_source_status *status);
