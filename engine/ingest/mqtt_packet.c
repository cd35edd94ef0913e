#include "ingest/mqtt_packet.h"

#include <stdarg.h>
#include <stdio.h>

#include "ingest/mqtt_packet_private.h"

enum { FLAGS_ANY = 0xFF, VARINT_SIZE_MAX = 4 };

typedef tn_rc body_fn(struct tn_mqtt_reader *r, unsigned char flags, struct tn_mqtt_packet *packet);

/* ---- bytes ---- */

tn_rc tn_mqtt_fail(struct tn_mqtt_reader *r, unsigned char fault, const char *format, ...)
{
    char text[TN_ERR_TEXT_SIZE / 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->fault = fault;
    return tn_err_set(r->err, TN_INVALID, 0, "%s, byte %zu: %s", tn_mqtt_type_text(r->type), r->at,
                      text);
}

tn_rc tn_mqtt_need(struct tn_mqtt_reader *r, size_t size, const char *what)
{
    if (size > r->end - r->at) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "%s of %zu bytes, and %zu are left", what, size,
                            r->end - r->at);
    }
    return size > r->known_end - r->at ? TN_AGAIN : TN_OK;
}

tn_rc tn_mqtt_read_byte(struct tn_mqtt_reader *r, const char *what, unsigned char *value)
{
    tn_rc rc = tn_mqtt_need(r, 1, what);
    if (rc == TN_OK) {
        *value = r->start[r->at++];
    }
    return rc;
}

tn_rc tn_mqtt_read_u16(struct tn_mqtt_reader *r, const char *what, uint16_t *value)
{
    tn_rc rc = tn_mqtt_need(r, 2, what);
    if (rc == TN_OK) {
        *value = (uint16_t)(r->start[r->at] << 8 | r->start[r->at + 1]);
        r->at += 2;
    }
    return rc;
}

tn_rc tn_mqtt_read_u32(struct tn_mqtt_reader *r, const char *what, uint32_t *value)
{
    tn_rc rc = tn_mqtt_need(r, 4, what);
    if (rc == TN_OK) {
        *value = tn_load_u32_be(r->start + r->at);
        r->at += 4;
    }
    return rc;
}

/* 5.0 demands the shortest form; 3.1.1 does not. */
tn_rc tn_mqtt_read_varint(struct tn_mqtt_reader *r, const char *what, uint32_t *value)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < VARINT_SIZE_MAX; i++) {
        unsigned char byte = 0;
        tn_rc rc = tn_mqtt_read_byte(r, what, &byte);
        if (rc) {
            return rc;
        }
        sum |= (uint32_t)(byte & 0x7F) << 7 * i;
        if (byte == 0 && i > 0 && r->version == TN_MQTT_V5) {
            return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "%s: longer than it has to be", what);
        }
        if ((byte & 0x80) == 0) {
            *value = sum;
            return TN_OK;
        }
    }
    return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "%s: a number of more than four bytes", what);
}

tn_rc tn_mqtt_read_binary(struct tn_mqtt_reader *r, const char *what, struct tn_bytes *value)
{
    uint16_t size = 0;
    tn_rc rc = tn_mqtt_read_u16(r, what, &size);
    if (rc == TN_OK) {
        rc = tn_mqtt_need(r, size, what);
    }
    if (rc == TN_OK) {
        *value = (struct tn_bytes){r->start + r->at, size};
        r->at += size;
    }
    return rc;
}

tn_rc tn_mqtt_read_text(struct tn_mqtt_reader *r, const char *what, struct tn_bytes *value)
{
    struct tn_bytes text = {0};
    tn_rc rc = tn_mqtt_read_binary(r, what, &text);
    if (rc) {
        return rc;
    }
    size_t valid = tn_mqtt_text_valid(text);
    if (valid < text.size) {
        r->at = r->at - text.size + valid;
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "%s: no UTF-8, or a zero", what);
    }
    *value = text;
    return TN_OK;
}

/* ---- parts of packets ---- */

static tn_rc read_id(struct tn_mqtt_reader *r, uint16_t *id)
{
    tn_rc rc = tn_mqtt_read_u16(r, "packet id", id);
    if (rc == TN_OK && *id == 0) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "packet id 0");
    }
    return rc;
}

static tn_rc read_own_properties(struct tn_mqtt_reader *r, struct tn_mqtt_packet *packet)
{
    return r->version == TN_MQTT_V5 ? tn_mqtt_read_properties(r, r->type, &packet->properties)
                                    : TN_OK;
}

/* A topic or a filter, checked; the message of the check says the byte within. */
static tn_rc read_name(struct tn_mqtt_reader *r, const char *what,
                       tn_rc (*check)(struct tn_bytes text, struct tn_err *err),
                       struct tn_bytes *name)
{
    tn_rc rc = tn_mqtt_read_text(r, what, name);
    if (rc) {
        return rc;
    }
    rc = check(*name, r->err);
    return rc ? tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "%s", r->err->text) : TN_OK;
}

static struct tn_bytes rest_of(struct tn_mqtt_reader *r)
{
    struct tn_bytes rest = {r->start + r->at, r->known_end - r->at};
    r->at = r->known_end;
    return rest;
}

static tn_rc read_reason(struct tn_mqtt_reader *r, unsigned char *reason)
{
    tn_rc rc = tn_mqtt_read_byte(r, "reason code", reason);
    if (rc == TN_OK && !tn_mqtt_reason_fits(r->type, *reason)) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "reason code 0x%02x is none of this packet",
                            *reason);
    }
    return rc;
}

/* What 5.0 lets a sender leave away: properties, then the code, which is then 0. */
static tn_rc read_answer(struct tn_mqtt_reader *r, struct tn_mqtt_packet *packet)
{
    if (r->version != TN_MQTT_V5 || r->at == r->end) {
        return TN_OK;
    }
    tn_rc rc = read_reason(r, &packet->reason);
    return rc || r->at == r->end ? rc : read_own_properties(r, packet);
}

/* ---- bodies ---- */

static tn_rc read_protocol(struct tn_mqtt_reader *r, struct tn_mqtt_connect *connect)
{
    struct tn_bytes name = {0};
    unsigned char level = 0;
    tn_rc rc = tn_mqtt_read_text(r, "protocol name", &name);
    if (rc == TN_OK) {
        rc = tn_mqtt_read_byte(r, "protocol level", &level);
    }
    if (rc) {
        return rc;
    }
    bool known = level == TN_MQTT_V3 || level == TN_MQTT_V5;
    if (!tn_bytes_equal(name, tn_bytes_of("MQTT")) || !known) {
        r->fault = TN_MQTT_VERSION_UNSUPPORTED;
        return tn_err_set(
            r->err, TN_UNSUPPORTED, 0, "CONNECT: protocol level %u of %s, not MQTT 4 (3.1.1) or 5",
            level,
            name.size == 6 && memcmp(name.data, "MQIsdp", 6) == 0 ? "MQIsdp" : "MQTT or another");
    }
    connect->version = (enum tn_mqtt_version)level;
    r->version = connect->version;
    return TN_OK;
}

static tn_rc read_connect_flags(struct tn_mqtt_reader *r, struct tn_mqtt_connect *connect)
{
    unsigned char flags = 0;
    tn_rc rc = tn_mqtt_read_byte(r, "flags", &flags);
    if (rc) {
        return rc;
    }
    connect->clean = (flags & 0x02) != 0;
    connect->has_will = (flags & 0x04) != 0;
    connect->will_qos = flags >> 3 & 3;
    connect->will_retain = (flags & 0x20) != 0;
    connect->has_password = (flags & 0x40) != 0;
    connect->has_user = (flags & 0x80) != 0;
    if ((flags & 0x01) != 0) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "a reserved flag is set");
    }
    if (connect->will_qos == 3 || (!connect->has_will && (flags & 0x38) != 0)) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "flags of the will are 0x%02x", flags & 0x3C);
    }
    if (r->version == TN_MQTT_V3 && connect->has_password && !connect->has_user) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "a password without a user name");
    }
    return tn_mqtt_read_u16(r, "keep alive", &connect->keep_alive_s);
}

static tn_rc read_will(struct tn_mqtt_reader *r, struct tn_mqtt_connect *connect)
{
    tn_rc rc = TN_OK;
    if (r->version == TN_MQTT_V5) {
        rc = tn_mqtt_read_properties(r, 0, &connect->will_properties);
    }
    if (rc == TN_OK) {
        rc = read_name(r, "will topic", tn_mqtt_topic_check, &connect->will_topic);
    }
    return rc ? rc : tn_mqtt_read_binary(r, "will payload", &connect->will_payload);
}

static tn_rc read_connect(struct tn_mqtt_reader *r, unsigned char flags,
                          struct tn_mqtt_packet *packet)
{
    (void)flags;
    struct tn_mqtt_connect *connect = &packet->connect;
    tn_rc rc = read_protocol(r, connect);
    if (rc == TN_OK) {
        rc = read_connect_flags(r, connect);
    }
    if (rc == TN_OK) {
        rc = read_own_properties(r, packet);
    }
    if (rc == TN_OK) {
        rc = tn_mqtt_read_text(r, "client id", &connect->client_id);
    }
    if (rc == TN_OK && connect->has_will) {
        rc = read_will(r, connect);
    }
    if (rc == TN_OK && connect->has_user) {
        rc = tn_mqtt_read_text(r, "user name", &connect->user);
    }
    if (rc == TN_OK && connect->has_password) {
        rc = tn_mqtt_read_binary(r, "password", &connect->password);
    }
    return rc;
}

static tn_rc read_connack_reason(struct tn_mqtt_reader *r, struct tn_mqtt_packet *packet)
{
    /* A broker of 3.1.1 answers in its own form to a CONNECT of 5.0, which is never this short. */
    if (r->version == TN_MQTT_V5 && r->end - r->at > 1) {
        tn_rc rc = read_reason(r, &packet->reason);
        return rc ? rc : read_own_properties(r, packet);
    }
    unsigned char code = 0;
    tn_rc rc = tn_mqtt_read_byte(r, "return code", &code);
    if (rc) {
        return rc;
    }
    bool known = tn_mqtt_reason_from_v3(code, &packet->reason);
    if (!known || (r->version == TN_MQTT_V5 && code == 0)) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "return code %u", code);
    }
    return TN_OK;
}

static tn_rc read_connack(struct tn_mqtt_reader *r, unsigned char flags,
                          struct tn_mqtt_packet *packet)
{
    (void)flags;
    unsigned char present = 0;
    tn_rc rc = tn_mqtt_read_byte(r, "session present", &present);
    if (rc == TN_OK && present > 1) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "flags are 0x%02x", present);
    }
    if (rc == TN_OK) {
        rc = read_connack_reason(r, packet);
    }
    packet->session_present = present != 0;
    if (rc == TN_OK && packet->session_present && packet->reason != TN_MQTT_SUCCESS) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "refused, and yet a session is present");
    }
    return rc;
}

static tn_rc read_publish(struct tn_mqtt_reader *r, unsigned char flags,
                          struct tn_mqtt_packet *packet)
{
    packet->retain = (flags & 1) != 0;
    packet->qos = flags >> 1 & 3;
    packet->dup = (flags & 8) != 0;
    if (packet->qos == 3 || (packet->qos == 0 && packet->dup)) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "flags are 0x%x", flags);
    }
    tn_rc rc = tn_mqtt_read_text(r, "topic", &packet->topic);
    bool named = rc == TN_OK && packet->topic.size > 0;
    if (named && tn_mqtt_topic_check(packet->topic, r->err)) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "%s", r->err->text);
    }
    if (rc == TN_OK && packet->qos > 0) {
        rc = read_id(r, &packet->id);
    }
    if (rc == TN_OK) {
        rc = read_own_properties(r, packet);
    }
    if (rc) {
        return rc;
    }
    if (!named && tn_mqtt_property_number(packet->properties, TN_MQTT_TOPIC_ALIAS, 0) == 0) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "no topic");
    }
    packet->payload = rest_of(r);
    return TN_OK;
}

static tn_rc read_ack(struct tn_mqtt_reader *r, unsigned char flags, struct tn_mqtt_packet *packet)
{
    (void)flags;
    tn_rc rc = read_id(r, &packet->id);
    return rc ? rc : read_answer(r, packet);
}

static tn_rc check_options(struct tn_mqtt_reader *r, unsigned char options, bool shared)
{
    bool v5 = r->version == TN_MQTT_V5;
    bool reserved = (options & (v5 ? 0xC0 : 0xFC)) != 0;
    if (reserved || (options & 3) == 3 || (options & 0x30) == 0x30) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "options are 0x%02x", options);
    }
    if (shared && (options & 4) != 0) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "no-local on a shared subscription");
    }
    return TN_OK;
}

static tn_rc read_filters(struct tn_mqtt_reader *r, unsigned char flags,
                          struct tn_mqtt_packet *packet)
{
    (void)flags;
    tn_rc rc = read_id(r, &packet->id);
    if (rc == TN_OK) {
        rc = read_own_properties(r, packet);
    }
    if (rc == TN_OK && r->at == r->end) {
        rc = tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "no filter");
    }
    size_t begin = r->at;
    while (rc == TN_OK && r->at < r->end) {
        struct tn_bytes filter = {0};
        unsigned char options = 0;
        rc = read_name(r, "filter", tn_mqtt_filter_check, &filter);
        if (rc == TN_OK && r->type == TN_MQTT_SUBSCRIBE) {
            rc = tn_mqtt_read_byte(r, "options", &options);
        }
        if (rc == TN_OK) {
            bool shared = filter.size > 7 && memcmp(filter.data, "$share/", 7) == 0;
            rc = check_options(r, options, shared);
        }
    }
    packet->payload = (struct tn_bytes){r->start + begin, r->at - begin};
    return rc;
}

static tn_rc read_codes(struct tn_mqtt_reader *r, unsigned char flags,
                        struct tn_mqtt_packet *packet)
{
    (void)flags;
    tn_rc rc = read_id(r, &packet->id);
    if (rc == TN_OK) {
        rc = read_own_properties(r, packet);
    }
    bool none = r->type == TN_MQTT_UNSUBACK && r->version == TN_MQTT_V3;
    if (rc || none) {
        return rc;
    }
    if (r->at == r->end) {
        return tn_mqtt_fail(r, TN_MQTT_PROTOCOL_ERROR, "no reason code");
    }
    size_t begin = r->at;
    while (rc == TN_OK && r->at < r->end) {
        unsigned char code = 0;
        rc = read_reason(r, &code);
        if (rc == TN_OK && r->version == TN_MQTT_V3 && code > 2 && code != TN_MQTT_FAILURE) {
            rc = tn_mqtt_fail(r, TN_MQTT_MALFORMED, "return code 0x%02x", code);
        }
    }
    packet->payload = (struct tn_bytes){r->start + begin, r->at - begin};
    return rc;
}

static tn_rc read_nothing(struct tn_mqtt_reader *r, unsigned char flags,
                          struct tn_mqtt_packet *packet)
{
    (void)r;
    (void)flags;
    (void)packet;
    return TN_OK;
}

static tn_rc read_goodbye(struct tn_mqtt_reader *r, unsigned char flags,
                          struct tn_mqtt_packet *packet)
{
    (void)flags;
    return read_answer(r, packet);
}

/* ---- packets ---- */

static const struct kind {
    const char *name;
    unsigned char flags;
    body_fn *read;
} kinds[16] = {
    [TN_MQTT_CONNECT] = {"CONNECT", 0, read_connect},
    [TN_MQTT_CONNACK] = {"CONNACK", 0, read_connack},
    [TN_MQTT_PUBLISH] = {"PUBLISH", FLAGS_ANY, read_publish},
    [TN_MQTT_PUBACK] = {"PUBACK", 0, read_ack},
    [TN_MQTT_PUBREC] = {"PUBREC", 0, read_ack},
    [TN_MQTT_PUBREL] = {"PUBREL", 2, read_ack},
    [TN_MQTT_PUBCOMP] = {"PUBCOMP", 0, read_ack},
    [TN_MQTT_SUBSCRIBE] = {"SUBSCRIBE", 2, read_filters},
    [TN_MQTT_SUBACK] = {"SUBACK", 0, read_codes},
    [TN_MQTT_UNSUBSCRIBE] = {"UNSUBSCRIBE", 2, read_filters},
    [TN_MQTT_UNSUBACK] = {"UNSUBACK", 0, read_codes},
    [TN_MQTT_PINGREQ] = {"PINGREQ", 0, read_nothing},
    [TN_MQTT_PINGRESP] = {"PINGRESP", 0, read_nothing},
    [TN_MQTT_DISCONNECT] = {"DISCONNECT", 0, read_goodbye},
    [TN_MQTT_AUTH] = {"AUTH", 0, read_goodbye},
};

const char *tn_mqtt_type_text(enum tn_mqtt_type type)
{
    return type > 0 && type <= TN_MQTT_AUTH ? kinds[type].name : "no packet";
}

static tn_rc read_header(struct tn_mqtt_reader *r, struct tn_mqtt_frame *frame)
{
    unsigned char first = 0;
    uint32_t body_size = 0;
    tn_rc rc = tn_mqtt_read_byte(r, "header", &first);
    if (rc) {
        return rc;
    }
    r->at--;
    r->type = (enum tn_mqtt_type)(first >> 4);
    unsigned char flags = first & 0xF;
    if (r->type == 0 || (r->type == TN_MQTT_AUTH && r->version == TN_MQTT_V3)) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "type %u is none of MQTT %s", first >> 4,
                            r->version == TN_MQTT_V3 ? "3.1.1" : "5.0");
    }
    if (kinds[r->type].flags != FLAGS_ANY && kinds[r->type].flags != flags) {
        return tn_mqtt_fail(r, TN_MQTT_MALFORMED, "flags are 0x%x, not 0x%x", flags,
                            kinds[r->type].flags);
    }
    r->at++;
    rc = tn_mqtt_read_varint(r, "size", &body_size);
    if (rc == TN_OK) {
        size_t header_size = r->at;
        *frame = (struct tn_mqtt_frame){r->type, flags, header_size, header_size + body_size};
    }
    return rc;
}

/* The end of the header isn't known before it is read: no byte is missing, only not there yet. */
static struct tn_mqtt_reader reader_of(enum tn_mqtt_version version, struct tn_bytes input,
                                       struct tn_err *err)
{
    return (struct tn_mqtt_reader){.start = input.data,
                                   .end = SIZE_MAX,
                                   .known_end = input.size,
                                   .version = version,
                                   .err = err};
}

tn_rc tn_mqtt_frame(enum tn_mqtt_version version, struct tn_bytes input,
                    struct tn_mqtt_frame *frame, struct tn_err *err)
{
    struct tn_mqtt_reader r = reader_of(version, input, err);
    return read_header(&r, frame);
}

static tn_rc decode(enum tn_mqtt_version version, struct tn_bytes input, bool begin,
                    struct tn_mqtt_packet *packet, struct tn_err *err)
{
    struct tn_mqtt_frame frame = {0};
    struct tn_mqtt_packet read = {0};
    struct tn_mqtt_reader r = reader_of(version, input, err);
    tn_rc rc = read_header(&r, &frame);
    bool partly = begin && frame.type == TN_MQTT_PUBLISH;
    if (rc == TN_OK && !partly && frame.size > input.size) {
        rc = TN_AGAIN;
    }
    if (rc == TN_OK) {
        bool whole = frame.size <= input.size;
        r.end = frame.size;
        r.known_end = whole ? r.end : input.size;
        read.type = frame.type;
        read.size = frame.size;
        rc = kinds[frame.type].read(&r, frame.flags, &read);
        if (rc == TN_OK && whole && r.at < r.end) {
            rc = tn_mqtt_fail(&r, TN_MQTT_MALFORMED, "%zu bytes too many", r.end - r.at);
        }
    }
    if (rc == TN_OK) {
        *packet = read;
    } else if (rc != TN_AGAIN) {
        packet->fault = r.fault;
    }
    return rc;
}

tn_rc tn_mqtt_decode(enum tn_mqtt_version version, struct tn_bytes input,
                     struct tn_mqtt_packet *packet, struct tn_err *err)
{
    return decode(version, input, false, packet, err);
}

tn_rc tn_mqtt_decode_begin(enum tn_mqtt_version version, struct tn_bytes input,
                           struct tn_mqtt_packet *packet, struct tn_err *err)
{
    return decode(version, input, true, packet, err);
}

bool tn_mqtt_wish_next(enum tn_mqtt_type type, struct tn_bytes *rest, struct tn_mqtt_wish *wish)
{
    size_t options_size = type == TN_MQTT_SUBSCRIBE;
    if (rest->size < 2) {
        return false;
    }
    size_t size = (size_t)rest->data[0] << 8 | rest->data[1];
    if (size + 2 + options_size > rest->size) {
        return false;
    }
    unsigned options = options_size ? rest->data[2 + size] : 0;
    *wish = (struct tn_mqtt_wish){.filter = {rest->data + 2, size},
                                  .qos = options & 3,
                                  .no_local = (options & 4) != 0,
                                  .retain_as_published = (options & 8) != 0,
                                  .retain_when = options >> 4 & 3};
    rest->data += 2 + size + options_size;
    rest->size -= 2 + size + options_size;
    return true;
}
