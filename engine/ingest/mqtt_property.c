#include "ingest/mqtt_packet_private.h"

#define IN(type) (1U << TN_MQTT_##type)

enum {
    WILL = 1U << 0,
    ANSWERS = IN(CONNACK) | IN(PUBACK) | IN(PUBREC) | IN(PUBREL) | IN(PUBCOMP) | IN(SUBACK) |
              IN(UNSUBACK) | IN(DISCONNECT) | IN(AUTH),
    ALL = WILL | ANSWERS | IN(CONNECT) | IN(PUBLISH) | IN(SUBSCRIBE) | IN(UNSUBSCRIBE),
};

enum form { BYTE, U16, U32, VARINT, TEXT, TOPIC, BINARY, PAIR };

/* Source: MQTT 5.0, 2.2.2.2, and the section of each packet. */
static const struct kind {
    const char *name;
    uint32_t packets; /* which may have it */
    uint32_t repeats; /* which may have it more than once */
    uint32_t min;
    uint32_t max;
    unsigned char id;
    unsigned char form;
    unsigned char fault; /* of a number outside */
} kinds[] = {
    {"payload format indicator", IN(PUBLISH) | WILL, 0, 0, 1, 1, BYTE, 0x82},
    {"message expiry interval", IN(PUBLISH) | WILL, 0, 0, UINT32_MAX, 2, U32, 0},
    {"content type", IN(PUBLISH) | WILL, 0, 0, 0, 3, TEXT, 0},
    {"response topic", IN(PUBLISH) | WILL, 0, 0, 0, 8, TOPIC, 0},
    {"correlation data", IN(PUBLISH) | WILL, 0, 0, 0, 9, BINARY, 0},
    {"subscription identifier", IN(PUBLISH) | IN(SUBSCRIBE), IN(PUBLISH), 1, TN_MQTT_BODY_MAX, 11,
     VARINT, 0x82},
    {"session expiry interval", IN(CONNECT) | IN(CONNACK) | IN(DISCONNECT), 0, 0, UINT32_MAX, 17,
     U32, 0},
    {"assigned client identifier", IN(CONNACK), 0, 0, 0, 18, TEXT, 0},
    {"server keep alive", IN(CONNACK), 0, 0, UINT16_MAX, 19, U16, 0},
    {"authentication method", IN(CONNECT) | IN(CONNACK) | IN(AUTH), 0, 0, 0, 21, TEXT, 0},
    {"authentication data", IN(CONNECT) | IN(CONNACK) | IN(AUTH), 0, 0, 0, 22, BINARY, 0},
    {"request problem information", IN(CONNECT), 0, 0, 1, 23, BYTE, 0x82},
    {"will delay interval", WILL, 0, 0, UINT32_MAX, 24, U32, 0},
    {"request response information", IN(CONNECT), 0, 0, 1, 25, BYTE, 0x82},
    {"response information", IN(CONNACK), 0, 0, 0, 26, TEXT, 0},
    {"server reference", IN(CONNACK) | IN(DISCONNECT), 0, 0, 0, 28, TEXT, 0},
    {"reason string", ANSWERS, 0, 0, 0, 31, TEXT, 0},
    {"receive maximum", IN(CONNECT) | IN(CONNACK), 0, 1, UINT16_MAX, 33, U16, 0x82},
    {"topic alias maximum", IN(CONNECT) | IN(CONNACK), 0, 0, UINT16_MAX, 34, U16, 0},
    {"topic alias", IN(PUBLISH), 0, 1, UINT16_MAX, 35, U16, 0x94},
    {"maximum QoS", IN(CONNACK), 0, 0, 1, 36, BYTE, 0x82},
    {"retain available", IN(CONNACK), 0, 0, 1, 37, BYTE, 0x82},
    {"user property", ALL, ALL, 0, 0, 38, PAIR, 0},
    {"maximum packet size", IN(CONNECT) | IN(CONNACK), 0, 1, UINT32_MAX, 39, U32, 0x82},
    {"wildcard subscription available", IN(CONNACK), 0, 0, 1, 40, BYTE, 0x82},
    {"subscription identifiers available", IN(CONNACK), 0, 0, 1, 41, BYTE, 0x82},
    {"shared subscription available", IN(CONNACK), 0, 0, 1, 42, BYTE, 0x82},
};

static const struct kind *find(unsigned char id)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].id == id) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* ---- reading ---- */

static tn_rc read_number(struct tn_mqtt_reader *r, const struct kind *kind, uint32_t *number)
{
    unsigned char byte = 0;
    uint16_t two = 0;
    tn_rc rc = TN_OK;
    switch (kind->form) {
    case BYTE:
        rc = tn_mqtt_read_byte(r, kind->name, &byte);
        *number = byte;
        break;
    case U16:
        rc = tn_mqtt_read_u16(r, kind->name, &two);
        *number = two;
        break;
    case U32:
        rc = tn_mqtt_read_u32(r, kind->name, number);
        break;
    default:
        rc = tn_mqtt_read_varint(r, kind->name, number);
        break;
    }
    if (rc == TN_OK && (*number < kind->min || *number > kind->max)) {
        return tn_mqtt_fail(r, kind->fault, "%s is %u, not %u to %u", kind->name, *number,
                            kind->min, kind->max);
    }
    return rc;
}

static tn_rc read_value(struct tn_mqtt_reader *r, const struct kind *kind,
                        struct tn_mqtt_property *property)
{
    tn_rc rc = TN_OK;
    switch (kind->form) {
    case TEXT:
        return tn_mqtt_read_text(r, kind->name, &property->text);
    case TOPIC:
        rc = tn_mqtt_read_text(r, kind->name, &property->text);
        if (rc == TN_OK && tn_mqtt_topic_check(property->text, r->err)) {
            return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "%s: %s", kind->name, r->err->text);
        }
        return rc;
    case BINARY:
        return tn_mqtt_read_binary(r, kind->name, &property->text);
    case PAIR:
        rc = tn_mqtt_read_text(r, kind->name, &property->text);
        return rc ? rc : tn_mqtt_read_text(r, kind->name, &property->value);
    default:
        return read_number(r, kind, &property->number);
    }
}

static tn_rc read_one(struct tn_mqtt_reader *r, enum tn_mqtt_type type, uint64_t *seen)
{
    struct tn_mqtt_property property = {0};
    unsigned char id = 0;
    tn_rc rc = tn_mqtt_read_byte(r, "property", &id);
    if (rc) {
        return rc;
    }
    const struct kind *kind = find(id);
    if (!kind) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "property %u is not defined", id);
    }
    if ((kind->packets & 1U << type) == 0) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "%s has no place here", kind->name);
    }
    bool again = (*seen & (uint64_t)1 << id) != 0;
    if (again && (kind->repeats & 1U << type) == 0) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "%s is there twice", kind->name);
    }
    *seen |= (uint64_t)1 << id;
    return read_value(r, kind, &property);
}

tn_rc tn_mqtt_read_properties(struct tn_mqtt_reader *r, enum tn_mqtt_type type,
                              struct tn_bytes *properties)
{
    uint32_t size = 0;
    tn_rc rc = tn_mqtt_read_varint(r, "size of the properties", &size);
    if (rc == TN_OK) {
        rc = tn_mqtt_need(r, size, "properties");
    }
    size_t end = r->end;
    size_t known_end = r->known_end;
    size_t begin = r->at;
    uint64_t seen = 0;
    if (rc == TN_OK) {
        r->end = r->at + size;
        r->known_end = r->end;
    }
    while (rc == TN_OK && r->at < r->end) {
        rc = read_one(r, type, &seen);
    }
    bool data_alone = (seen & (uint64_t)1 << TN_MQTT_AUTH_DATA) != 0 &&
                      (seen & (uint64_t)1 << TN_MQTT_AUTH_METHOD) == 0;
    if (rc == TN_OK && data_alone) {
        rc = tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "authentication data without a method");
    }
    r->end = end;
    r->known_end = known_end;
    if (rc == TN_OK) {
        *properties = (struct tn_bytes){r->start + begin, size};
    }
    return rc;
}

bool tn_mqtt_property_next(struct tn_bytes *rest, struct tn_mqtt_property *property)
{
    struct tn_err err;
    struct tn_mqtt_reader r = {.start = rest->data,
                               .end = rest->size,
                               .known_end = rest->size,
                               .version = TN_MQTT_V5,
                               .err = &err};
    unsigned char id = 0;
    if (rest->size == 0 || tn_mqtt_read_byte(&r, "property", &id)) {
        return false;
    }
    const struct kind *kind = find(id);
    *property = (struct tn_mqtt_property){.id = (enum tn_mqtt_property_id)id};
    if (!kind || read_value(&r, kind, property)) {
        return false;
    }
    *rest = (struct tn_bytes){rest->data + r.at, rest->size - r.at};
    return true;
}

uint32_t tn_mqtt_property_number(struct tn_bytes properties, enum tn_mqtt_property_id id,
                                 uint32_t otherwise)
{
    struct tn_mqtt_property property;
    while (tn_mqtt_property_next(&properties, &property)) {
        if (property.id == id) {
            return property.number;
        }
    }
    return otherwise;
}

struct tn_bytes tn_mqtt_property_text(struct tn_bytes properties, enum tn_mqtt_property_id id)
{
    struct tn_mqtt_property property;
    while (tn_mqtt_property_next(&properties, &property)) {
        if (property.id == id) {
            return property.text;
        }
    }
    return (struct tn_bytes){0};
}

/* ---- writing ---- */

void tn_mqtt_put_number(struct tn_buf *properties, enum tn_mqtt_property_id id, uint32_t number)
{
    const struct kind *kind = find((unsigned char)id);
    unsigned char bytes[4];
    tn_buf_byte(properties, (unsigned char)id);
    switch (kind ? kind->form : U32) {
    case BYTE:
        tn_buf_byte(properties, (unsigned char)number);
        return;
    case U16:
        tn_mqtt_put_u16(properties, number);
        return;
    case VARINT:
        tn_mqtt_put_varint(properties, number);
        return;
    default:
        tn_store_u32_be(bytes, number);
        tn_buf_append(properties, bytes, sizeof bytes);
        return;
    }
}

void tn_mqtt_put_text(struct tn_buf *properties, enum tn_mqtt_property_id id, struct tn_bytes text)
{
    tn_buf_byte(properties, (unsigned char)id);
    tn_mqtt_put_sized(properties, text);
}

void tn_mqtt_put_pair(struct tn_buf *properties, struct tn_bytes name, struct tn_bytes value)
{
    tn_mqtt_put_text(properties, TN_MQTT_USER_PROPERTY, name);
    tn_mqtt_put_sized(properties, value);
}
