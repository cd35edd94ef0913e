#include "base/bytes.h"
#include "ingest/mqtt_packet_private.h"

#define IN(type) (1U << TN_MQTT_##type)

enum {
    ACKS = IN(PUBACK) | IN(PUBREC),
    DONE = IN(PUBREL) | IN(PUBCOMP),
    SUBS = IN(SUBACK) | IN(UNSUBACK),
    GONE = IN(DISCONNECT),
    CAME = IN(CONNACK),
};

/* Source: MQTT 5.0, 2.4, and the section of each packet. */
static const struct reason {
    unsigned char code;
    uint32_t packets;
    const char *text;
} reasons[] = {
    {0x00, CAME | ACKS | DONE | SUBS | GONE | IN(AUTH), "success"},
    {0x01, IN(SUBACK), "granted, at QoS 1"},
    {0x02, IN(SUBACK), "granted, at QoS 2"},
    {0x04, GONE, "the client goes and wants its will to be published"},
    {0x10, ACKS, "nobody has subscribed to this topic"},
    {0x11, IN(UNSUBACK), "there was no such subscription"},
    {0x18, IN(AUTH), "authentication goes on"},
    {0x19, IN(AUTH), "authenticate again"},
    {0x80, CAME | ACKS | SUBS | GONE, "it failed, and no reason is given"},
    {0x81, CAME | GONE, "a packet was malformed"},
    {0x82, CAME | GONE, "a packet broke the protocol"},
    {0x83, CAME | ACKS | SUBS | GONE, "the broker has a reason of its own"},
    {0x84, CAME, "the broker does not speak this version of MQTT"},
    {0x85, CAME, "the broker does not take this client id"},
    {0x86, CAME, "user name or password is wrong"},
    {0x87, CAME | ACKS | SUBS | GONE, "not authorized"},
    {0x88, CAME, "the broker is not available"},
    {0x89, CAME | GONE, "the broker is busy"},
    {0x8A, CAME, "this client is banned"},
    {0x8B, GONE, "the broker shuts down"},
    {0x8C, CAME | GONE,
     "the broker does not know this way to authenticate, or it is not the first"},
    {0x8D, GONE, "the broker heard nothing for one and a half times the keep-alive"},
    {0x8E, GONE, "another client connected with this client id"},
    {0x8F, SUBS | GONE, "the topic filter is not valid"},
    {0x90, CAME | ACKS | GONE, "the topic name is not valid"},
    {0x91, ACKS | SUBS, "the packet id is in use"},
    {0x92, DONE, "the packet id is not known"},
    {0x93, GONE, "more messages in flight than were allowed"},
    {0x94, GONE, "the topic alias is not valid"},
    {0x95, CAME | GONE, "the packet is too large"},
    {0x96, GONE, "messages come too fast"},
    {0x97, CAME | ACKS | IN(SUBACK) | GONE, "a quota is used up"},
    {0x98, GONE, "the connection was closed by an administrator"},
    {0x99, CAME | ACKS | GONE, "the payload is not what its format says"},
    {0x9A, CAME | GONE, "the broker keeps no retained messages"},
    {0x9B, CAME | GONE, "the broker does not support this QoS"},
    {0x9C, CAME | GONE, "use another server, for now"},
    {0x9D, CAME | GONE, "the server has moved: use another one"},
    {0x9E, IN(SUBACK) | GONE, "the broker has no shared subscriptions"},
    {0x9F, CAME | GONE, "too many connections at once"},
    {0xA0, GONE, "the connection lasted as long as it may"},
    {0xA1, IN(SUBACK) | GONE, "the broker has no subscription ids"},
    {0xA2, IN(SUBACK) | GONE, "the broker has no wildcard subscriptions"},
};

/* Source: MQTT 3.1.1, 3.2.2.3; the index is the code. */
static const unsigned char v3_connack[] = {0x00, 0x84, 0x85, 0x88, 0x86, 0x87};

static const struct reason *find(unsigned char code)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].code == code) {
            return &reasons[i];
        }
    }
    return NULL;
}

bool tn_mqtt_reason_fits(enum tn_mqtt_type type, unsigned char reason)
{
    const struct reason *found = find(reason);
    return found && (found->packets & 1U << type) != 0;
}

const char *tn_mqtt_reason_text(unsigned char reason)
{
    const struct reason *found = find(reason);
    return found ? found->text : "a reason code that MQTT does not define";
}

bool tn_mqtt_reason_from_v3(unsigned char code, unsigned char *reason)
{
    if (code >= sizeof v3_connack) {
        return false;
    }
    *reason = v3_connack[code];
    return true;
}

bool tn_mqtt_reason_to_v3(unsigned char reason, unsigned char *code)
{
    for (size_t i = 0; i < sizeof v3_connack; i++) {
        if (v3_connack[i] == reason) {
            *code = (unsigned char)i;
            return true;
        }
    }
    return false;
}
