/* mqtt_session_private: what the parts of mqtt_session share.
 *
 *     mqtt_session.c    the spec, time, begin and end
 *     mqtt_receive.c    packets in: next, admit
 *     mqtt_send.c       packets out: output
 *     mqtt_known.c      ids that are not done with: save, restore
 *
 * An id comes with a message and goes when its last acknowledgement has been sent. Those of QoS 2
 * that are not released are what a restart has to know again.
 */
#pragma once

#include "ingest/mqtt_session.h"

struct tn_mqtt_entry {
    uint32_t hash;     /* of the message */
    uint16_t id;       /* 0: the slot is free */
    unsigned char qos; /* 1 or 2 */
    bool released;     /* QoS 2: the broker is done with the message, the id is to be given back */
    bool queued;       /* a reply with this id is due */
    bool stale;        /* the broker has not spoken of it on this connection */
    bool partly;       /* see tn_mqtt_session_recall */
};

struct tn_mqtt_reply {
    uint64_t place; /* leaves when that is durable */
    uint16_t id;
    unsigned char type; /* enum tn_mqtt_type; 0: it was called off */
    unsigned char reason;
};

/* Slots for so many ids: a power of two, at most half full. */
uint32_t tn_mqtt_known_slots(uint32_t known_max);

/* NULL: not known. An entry stays where it is until another one is removed. */
struct tn_mqtt_entry *tn_mqtt_known_find(const struct tn_mqtt_session *s, uint16_t id);
struct tn_mqtt_entry *tn_mqtt_known_add(struct tn_mqtt_session *s, uint16_t id);
void tn_mqtt_known_remove(struct tn_mqtt_session *s, struct tn_mqtt_entry *entry);
void tn_mqtt_known_clear(struct tn_mqtt_session *s);

/* Removes one that is stale, and counts as a place where it was saved. false: none is. */
bool tn_mqtt_known_evict(struct tn_mqtt_session *s);

/* Whether draining is over: what was on its way has come, and what can be done with is. */
bool tn_mqtt_drained(const struct tn_mqtt_session *s);

/* A connection ended: nothing is due any more, the broker will say what it still waits for. */
void tn_mqtt_known_disconnect(struct tn_mqtt_session *s);

/* Filters to leave and to subscribe to, and the longest of them with size and options. */
uint32_t tn_mqtt_ask_count(const struct tn_mqtt_spec *spec);
size_t tn_mqtt_ask_size(const struct tn_mqtt_spec *spec);

/* Between `opened` and the end. */
bool tn_mqtt_connected(const struct tn_mqtt_session *s);

/* A new session at the broker has none of the filters that are to be left. */
void tn_mqtt_ask_for_filters(struct tn_mqtt_session *s, bool resumed);
