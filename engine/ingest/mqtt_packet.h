/* mqtt_packet: the packets of MQTT 3.1.1 and 5.0, bytes in and structs out, and back.
 *
 * Pure: no I/O, no memory. A decoded packet is views into the input and lives as long as that does.
 * What comes out of `decode` is whole and lawful: texts are UTF-8, ids are not 0, properties belong
 * to the packet and occur once, reason codes are ones that the packet may carry. What isn't, is
 * INVALID, and the text says which packet, at which byte, and why; `fault` is the code to tell the
 * broker. What `encode` writes has passed `decode`.
 *
 *     header    type, flags, size in 1 to 4 bytes    tn_mqtt_frame
 *     body      by type; in 5.0 with properties      tn_mqtt_decode
 *
 * Reason codes are those of 5.0. The few of 3.1.1 (CONNACK 1 to 5, SUBACK 0x80) are translated on
 * the way in and out, so that nobody above has to know two lists.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "ingest/mqtt_topic.h"

enum tn_mqtt_version { TN_MQTT_ANY = 0, TN_MQTT_V3 = 4, TN_MQTT_V5 = 5 }; /* protocol level */

enum tn_mqtt_type {
    TN_MQTT_CONNECT = 1,
    TN_MQTT_CONNACK,
    TN_MQTT_PUBLISH,
    TN_MQTT_PUBACK,
    TN_MQTT_PUBREC,
    TN_MQTT_PUBREL,
    TN_MQTT_PUBCOMP,
    TN_MQTT_SUBSCRIBE,
    TN_MQTT_SUBACK,
    TN_MQTT_UNSUBSCRIBE,
    TN_MQTT_UNSUBACK,
    TN_MQTT_PINGREQ,
    TN_MQTT_PINGRESP,
    TN_MQTT_DISCONNECT,
    TN_MQTT_AUTH, /* 5.0 only */
};

/* The reasons that tarn itself names; all others are numbers with a text. */
enum {
    TN_MQTT_SUCCESS = 0x00,
    TN_MQTT_FAILURE = 0x80, /* and above: it failed */
    TN_MQTT_MALFORMED = 0x81,
    TN_MQTT_PROTOCOL_ERROR = 0x82,
    TN_MQTT_VERSION_UNSUPPORTED = 0x84,
    TN_MQTT_ID_UNKNOWN = 0x92,
    TN_MQTT_ALIAS_INVALID = 0x94,
    TN_MQTT_TOO_LARGE = 0x95,
};

/* Source: MQTT 5.0, 2.2.2.2 */
enum tn_mqtt_property_id {
    TN_MQTT_PAYLOAD_FORMAT = 1,
    TN_MQTT_MESSAGE_EXPIRY = 2, /* seconds */
    TN_MQTT_CONTENT_TYPE = 3,
    TN_MQTT_RESPONSE_TOPIC = 8,
    TN_MQTT_CORRELATION_DATA = 9,
    TN_MQTT_SUBSCRIPTION_ID = 11,
    TN_MQTT_SESSION_EXPIRY = 17, /* seconds */
    TN_MQTT_ASSIGNED_CLIENT_ID = 18,
    TN_MQTT_SERVER_KEEP_ALIVE = 19, /* seconds */
    TN_MQTT_AUTH_METHOD = 21,
    TN_MQTT_AUTH_DATA = 22,
    TN_MQTT_REQUEST_PROBLEM_INFO = 23,
    TN_MQTT_WILL_DELAY = 24, /* seconds */
    TN_MQTT_REQUEST_RESPONSE_INFO = 25,
    TN_MQTT_RESPONSE_INFO = 26,
    TN_MQTT_SERVER_REFERENCE = 28,
    TN_MQTT_REASON_STRING = 31,
    TN_MQTT_RECEIVE_MAX = 33,
    TN_MQTT_TOPIC_ALIAS_MAX = 34,
    TN_MQTT_TOPIC_ALIAS = 35,
    TN_MQTT_QOS_MAX = 36,
    TN_MQTT_RETAIN_AVAILABLE = 37,
    TN_MQTT_USER_PROPERTY = 38,
    TN_MQTT_PACKET_SIZE_MAX = 39,
    TN_MQTT_WILDCARDS_AVAILABLE = 40,
    TN_MQTT_SUBSCRIPTION_IDS_AVAILABLE = 41,
    TN_MQTT_SHARED_AVAILABLE = 42,
};

enum {
    TN_MQTT_HEADER_MAX = 5,       /* bytes */
    TN_MQTT_BODY_MAX = 268435455, /* bytes behind the header */
};

/* The header of a packet. */
struct tn_mqtt_frame {
    enum tn_mqtt_type type;
    unsigned char flags;
    size_t header_size;
    size_t size; /* bytes of the whole packet */
};

struct tn_mqtt_connect {
    enum tn_mqtt_version version;
    bool clean; /* the broker forgets what it has of this client */
    uint16_t keep_alive_s;
    struct tn_bytes client_id;
    bool has_will;
    bool has_user;
    bool has_password;
    bool will_retain;
    unsigned char will_qos;
    struct tn_bytes will_properties;
    struct tn_bytes will_topic;
    struct tn_bytes will_payload;
    struct tn_bytes user;
    struct tn_bytes password;
};

/* Members that a type has no use for are zero. */
struct tn_mqtt_packet {
    enum tn_mqtt_type type;
    unsigned char fault;  /* of a decode that failed: the reason code to tell the other side */
    unsigned char reason; /* CONNACK, PUBACK to PUBCOMP, DISCONNECT, AUTH */
    unsigned char qos;    /* PUBLISH */
    bool dup;
    bool retain;
    bool session_present; /* CONNACK */
    uint16_t id;
    size_t size; /* bytes of the whole packet */
    struct tn_bytes topic;
    struct tn_bytes payload;    /* PUBLISH; SUBSCRIBE, UNSUBSCRIBE: filters; SUBACK, UNSUBACK: a
                                   reason code each */
    struct tn_bytes properties; /* without their size: tn_mqtt_property_next reads them */
    struct tn_mqtt_connect connect;
};

struct tn_mqtt_property {
    enum tn_mqtt_property_id id;
    uint32_t number;
    struct tn_bytes text;  /* or bytes; the name of a user property */
    struct tn_bytes value; /* of a user property */
};

/* What a subscription asks for. */
struct tn_mqtt_wish {
    struct tn_bytes filter;
    unsigned char qos;
    bool no_local;            /* 5.0: not what this client published */
    bool retain_as_published; /* 5.0 */
    unsigned char
        retain_when; /* 5.0: retained messages 0 always, 1 for a new subscription, 2 not */
};

/* AGAIN: more bytes are needed. INVALID as soon as the bytes that are there show it. */
TN_MUST_USE tn_rc tn_mqtt_frame(enum tn_mqtt_version version, struct tn_bytes input,
                                struct tn_mqtt_frame *frame, struct tn_err *err);

/* The packet at the begin of `input`, which may go on behind it. AGAIN: it isn't whole yet.
 * INVALID: err says what and where, packet->fault is the code for the other side, the rest is
 * untouched. UNSUPPORTED: a CONNECT of another protocol. A CONNECT is read by the version that it
 * names. */
TN_MUST_USE tn_rc tn_mqtt_decode(enum tn_mqtt_version version, struct tn_bytes input,
                                 struct tn_mqtt_packet *packet, struct tn_err *err);

/* The same, but of a PUBLISH that isn't whole: what stands before the payload has to be there,
 * `payload` is what there is of it, `size` that of the whole packet. AGAIN: not even that. */
TN_MUST_USE tn_rc tn_mqtt_decode_begin(enum tn_mqtt_version version, struct tn_bytes input,
                                       struct tn_mqtt_packet *packet, struct tn_err *err);

/* Appends. AGAIN: no room, and `out` is as it was. INVALID: no lawful packet, likewise. */
TN_MUST_USE tn_rc tn_mqtt_encode(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                                 struct tn_buf *out, struct tn_err *err);

/* Reads one property from the front of decoded ones; false at their end. */
bool tn_mqtt_property_next(struct tn_bytes *rest, struct tn_mqtt_property *property);
uint32_t tn_mqtt_property_number(struct tn_bytes properties, enum tn_mqtt_property_id id,
                                 uint32_t otherwise);
struct tn_bytes tn_mqtt_property_text(struct tn_bytes properties, enum tn_mqtt_property_id id);

/* Makes the properties of a packet to encode. */
void tn_mqtt_put_number(struct tn_buf *properties, enum tn_mqtt_property_id id, uint32_t number);
void tn_mqtt_put_text(struct tn_buf *properties, enum tn_mqtt_property_id id, struct tn_bytes text);
void tn_mqtt_put_pair(struct tn_buf *properties, struct tn_bytes name, struct tn_bytes value);

/* The payload of SUBSCRIBE and UNSUBSCRIBE (which has only filters). */
bool tn_mqtt_wish_next(enum tn_mqtt_type type, struct tn_bytes *rest, struct tn_mqtt_wish *wish);
void tn_mqtt_put_wish(enum tn_mqtt_type type, struct tn_buf *payload,
                      const struct tn_mqtt_wish *wish);

const char *tn_mqtt_type_text(enum tn_mqtt_type type);

/* What a reason code says, in words for a person; a code that there isn't has a text, too. */
const char *tn_mqtt_reason_text(unsigned char reason);
