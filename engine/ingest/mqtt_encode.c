#include "base/check.h"
#include "ingest/mqtt_packet_private.h"

/* ---- bytes ---- */

void tn_mqtt_put_varint(struct tn_buf *out, uint32_t value)
{
    do {
        unsigned char more = value > 0x7F ? 0x80 : 0;
        tn_buf_byte(out, (unsigned char)((value & 0x7F) | more));
        value >>= 7;
    } while (value > 0);
}

void tn_mqtt_put_u16(struct tn_buf *out, uint32_t value)
{
    tn_buf_byte(out, (unsigned char)(value >> 8));
    tn_buf_byte(out, (unsigned char)value);
}

void tn_mqtt_put_sized(struct tn_buf *out, struct tn_bytes text)
{
    if (text.size > TN_MQTT_TEXT_MAX) {
        out->overflow = true;
        return;
    }
    tn_mqtt_put_u16(out, (uint32_t)text.size);
    tn_buf_append(out, text.data, text.size);
}

void tn_mqtt_put_wish(enum tn_mqtt_type type, struct tn_buf *payload,
                      const struct tn_mqtt_wish *wish)
{
    tn_mqtt_put_sized(payload, wish->filter);
    if (type == TN_MQTT_SUBSCRIBE) {
        tn_buf_byte(payload,
                    (unsigned char)(wish->qos | wish->no_local << 2 |
                                    wish->retain_as_published << 3 | wish->retain_when << 4));
    }
}

/* ---- bodies ---- */

static void put_properties(struct tn_buf *out, struct tn_bytes properties)
{
    tn_mqtt_put_varint(out, (uint32_t)properties.size);
    tn_buf_append(out, properties.data, properties.size);
}

static void put_connect(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                        struct tn_buf *out)
{
    const struct tn_mqtt_connect *connect = &packet->connect;
    tn_mqtt_put_sized(out, tn_bytes_of("MQTT"));
    tn_buf_byte(out, (unsigned char)version);
    tn_buf_byte(out, (unsigned char)(connect->clean << 1 | connect->has_will << 2 |
                                     connect->will_qos << 3 | connect->will_retain << 5 |
                                     connect->has_password << 6 | connect->has_user << 7));
    tn_mqtt_put_u16(out, connect->keep_alive_s);
    if (version == TN_MQTT_V5) {
        put_properties(out, packet->properties);
    }
    tn_mqtt_put_sized(out, connect->client_id);
    if (connect->has_will) {
        if (version == TN_MQTT_V5) {
            put_properties(out, connect->will_properties);
        }
        tn_mqtt_put_sized(out, connect->will_topic);
        tn_mqtt_put_sized(out, connect->will_payload);
    }
    if (connect->has_user) {
        tn_mqtt_put_sized(out, connect->user);
    }
    if (connect->has_password) {
        tn_mqtt_put_sized(out, connect->password);
    }
}

static void put_connack(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                        struct tn_buf *out)
{
    unsigned char code = packet->reason;
    tn_buf_byte(out, packet->session_present);
    if (version == TN_MQTT_V5) {
        tn_buf_byte(out, code);
        put_properties(out, packet->properties);
        return;
    }
    if (!tn_mqtt_reason_to_v3(packet->reason, &code)) {
        code = 3; /* unavailable: of the codes there are, the one that says least */
    }
    tn_buf_byte(out, code);
}

static void put_publish(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                        struct tn_buf *out)
{
    tn_mqtt_put_sized(out, packet->topic);
    if (packet->qos > 0) {
        tn_mqtt_put_u16(out, packet->id);
    }
    if (version == TN_MQTT_V5) {
        put_properties(out, packet->properties);
    }
    tn_buf_append(out, packet->payload.data, packet->payload.size);
}

/* Code and properties of an answer, as short as may be. */
static void put_answer(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                       struct tn_buf *out)
{
    bool shortest = packet->reason == TN_MQTT_SUCCESS && packet->properties.size == 0;
    if (version != TN_MQTT_V5 || shortest) {
        return;
    }
    tn_buf_byte(out, packet->reason);
    if (packet->properties.size > 0) {
        put_properties(out, packet->properties);
    }
}

static void put_list(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                     struct tn_buf *out)
{
    tn_mqtt_put_u16(out, packet->id);
    if (version == TN_MQTT_V5) {
        put_properties(out, packet->properties);
    }
    if (version == TN_MQTT_V5 || packet->type != TN_MQTT_UNSUBACK) {
        tn_buf_append(out, packet->payload.data, packet->payload.size);
    }
}

static void put_body(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                     struct tn_buf *out)
{
    switch (packet->type) {
    case TN_MQTT_CONNECT:
        put_connect(version, packet, out);
        return;
    case TN_MQTT_CONNACK:
        put_connack(version, packet, out);
        return;
    case TN_MQTT_PUBLISH:
        put_publish(version, packet, out);
        return;
    case TN_MQTT_PUBACK:
    case TN_MQTT_PUBREC:
    case TN_MQTT_PUBREL:
    case TN_MQTT_PUBCOMP:
        tn_mqtt_put_u16(out, packet->id);
        put_answer(version, packet, out);
        return;
    case TN_MQTT_SUBSCRIBE:
    case TN_MQTT_SUBACK:
    case TN_MQTT_UNSUBSCRIBE:
    case TN_MQTT_UNSUBACK:
        put_list(version, packet, out);
        return;
    case TN_MQTT_DISCONNECT:
    case TN_MQTT_AUTH:
        put_answer(version, packet, out);
        return;
    case TN_MQTT_PINGREQ:
    case TN_MQTT_PINGRESP:
        return;
    }
}

/* ---- packets ---- */

static unsigned char first_byte(const struct tn_mqtt_packet *packet)
{
    unsigned flags = 0;
    if (packet->type == TN_MQTT_PUBLISH) {
        flags = (unsigned)packet->dup << 3 | (unsigned)packet->qos << 1 | packet->retain;
    } else if (packet->type == TN_MQTT_PUBREL || packet->type == TN_MQTT_SUBSCRIBE ||
               packet->type == TN_MQTT_UNSUBSCRIBE) {
        flags = 2;
    }
    return (unsigned char)((unsigned)packet->type << 4 | flags);
}

/* A member that no two bytes can size, or a sum that no header can: no room would help. */
static tn_rc check_sizes(const struct tn_mqtt_packet *packet, struct tn_err *err)
{
    const struct tn_mqtt_connect *connect = &packet->connect;
    const struct tn_bytes texts[] = {packet->topic,         connect->client_id, connect->will_topic,
                                     connect->will_payload, connect->user,      connect->password};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].size > TN_MQTT_TEXT_MAX) {
            return tn_err_set(err, TN_INVALID, 0, "%s: a text of %zu bytes, at most %d",
                              tn_mqtt_type_text(packet->type), texts[i].size, TN_MQTT_TEXT_MAX);
        }
    }
    const size_t sizes[] = {packet->payload.size, packet->properties.size,
                            connect->will_properties.size};
    size_t room = TN_MQTT_BODY_MAX - 8 * (size_t)TN_MQTT_TEXT_MAX;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] > room) {
            return tn_err_set(err, TN_INVALID, 0, "%s of %zu bytes and more, at most %d",
                              tn_mqtt_type_text(packet->type), sizes[i], TN_MQTT_BODY_MAX);
        }
        room -= sizes[i];
    }
    return TN_OK;
}

/* Writes the body behind the longest header, then moves it to behind its own. */
static void put_packet(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                       struct tn_buf *out)
{
    static const unsigned char blank[TN_MQTT_HEADER_MAX];
    size_t start = out->size;
    tn_buf_append(out, blank, sizeof blank);
    put_body(version, packet, out);
    if (out->overflow) {
        return;
    }
    size_t body_size = out->size - start - sizeof blank;
    unsigned char *body = out->data + start + sizeof blank;
    out->size = start;
    tn_buf_byte(out, first_byte(packet));
    tn_mqtt_put_varint(out, (uint32_t)body_size);
    memmove(out->data + out->size, body, body_size);
    out->size += body_size;
}

tn_rc tn_mqtt_encode(enum tn_mqtt_version version, const struct tn_mqtt_packet *packet,
                     struct tn_buf *out, struct tn_err *err)
{
    TN_CHECK(version == TN_MQTT_V3 || version == TN_MQTT_V5);
    TN_CHECK(!out->overflow);
    tn_rc rc = check_sizes(packet, err);
    if (rc) {
        return rc;
    }
    size_t start = out->size;
    struct tn_mqtt_packet again = {0};
    put_packet(version, packet, out);
    if (out->overflow) {
        rc = tn_err_set(err, TN_AGAIN, 0, "no room for a %s", tn_mqtt_type_text(packet->type));
    } else {
        struct tn_bytes written = {out->data + start, out->size - start};
        rc = tn_mqtt_decode(version, written, &again, err);
    }
    if (rc) {
        out->size = start;
        out->overflow = false;
    }
    return rc;
}
