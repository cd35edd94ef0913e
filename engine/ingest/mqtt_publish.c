#include "ingest/mqtt_publish.h"

#include "base/check.h"

enum {
    KEEP_ALIVE_S = 60, /* longer than any such conversation */
    ID = 1,
    /* Of 5.0: what is wrong with the message itself. */
    TOPIC_INVALID = 0x90,
    PAYLOAD_INVALID = 0x99,
};

static tn_rc send_packet(const struct tn_mqtt_publish *p, const struct tn_mqtt_packet *packet,
                         struct tn_buf *out, struct tn_err *err)
{
    out->size = 0;
    return tn_mqtt_encode(p->version, packet, out, err);
}

tn_rc tn_mqtt_publish_begin(struct tn_mqtt_publish *p, const struct tn_mqtt_publish_spec *spec,
                            enum tn_mqtt_version version, struct tn_buf *out, struct tn_err *err)
{
    *p = (struct tn_mqtt_publish){
        .spec = spec, .version = version, .state = TN_MQTT_PUBLISH_CONNACK};
    struct tn_mqtt_packet packet = {.type = TN_MQTT_CONNECT,
                                    .connect = {.version = version,
                                                .clean = true,
                                                .keep_alive_s = KEEP_ALIVE_S,
                                                .client_id = spec->client_id,
                                                .has_user = spec->user.data,
                                                .has_password = spec->password.data,
                                                .user = spec->user,
                                                .password = spec->password}};
    return send_packet(p, &packet, out, err);
}

static tn_rc refuse(struct tn_mqtt_publish *p, const struct tn_mqtt_packet *packet,
                    const char *what, struct tn_err *err)
{
    struct tn_bytes why = tn_mqtt_property_text(packet->properties, TN_MQTT_REASON_STRING);
    bool of_message = packet->reason == TOPIC_INVALID || packet->reason == PAYLOAD_INVALID ||
                      packet->reason == TN_MQTT_TOO_LARGE;
    p->refused = of_message && p->state == TN_MQTT_PUBLISH_PUBACK; /* else it has not seen it */
    return tn_err_set(err, TN_IO, 0, "the broker %s: %s%s%.*s", what,
                      tn_mqtt_reason_text(packet->reason), why.size > 0 ? ": " : "",
                      (int)(why.size < 100 ? why.size : 100), (const char *)why.data);
}

/* With what the broker says that it can't take. */
static tn_rc publish(struct tn_mqtt_publish *p, const struct tn_mqtt_packet *connack,
                     struct tn_buf *out, struct tn_err *err)
{
    const struct tn_mqtt_publish_spec *spec = p->spec;
    struct tn_mqtt_packet packet = {.type = TN_MQTT_PUBLISH,
                                    .id = ID,
                                    .qos = 1,
                                    .retain = spec->retain,
                                    .topic = spec->topic,
                                    .payload = spec->payload};
    struct tn_bytes said = connack->properties;
    if (tn_mqtt_property_number(said, TN_MQTT_QOS_MAX, 1) < 1) {
        return tn_err_set(err, TN_IO, 0,
                          "the broker takes QoS 0 alone, of which nobody knows whether it came");
    }
    if (spec->retain && tn_mqtt_property_number(said, TN_MQTT_RETAIN_AVAILABLE, 1) == 0) {
        p->refused = true;
        return tn_err_set(err, TN_IO, 0, "the broker keeps no messages: `retain` is in vain");
    }
    tn_rc rc = send_packet(p, &packet, out, err);
    if (rc == TN_OK &&
        out->size > tn_mqtt_property_number(said, TN_MQTT_PACKET_SIZE_MAX, TN_MQTT_BODY_MAX)) {
        p->refused = true;
        return tn_err_set(err, TN_IO, 0, "the broker takes no packet of %zu bytes", out->size);
    }
    p->state = TN_MQTT_PUBLISH_PUBACK;
    return rc;
}

static tn_rc say_goodbye(struct tn_mqtt_publish *p, struct tn_buf *out, struct tn_err *err)
{
    p->state = TN_MQTT_PUBLISH_DONE;
    return send_packet(p, &(struct tn_mqtt_packet){.type = TN_MQTT_DISCONNECT}, out, err);
}

static tn_rc take(struct tn_mqtt_publish *p, const struct tn_mqtt_packet *packet,
                  struct tn_buf *out, struct tn_err *err)
{
    bool failed = packet->reason >= TN_MQTT_FAILURE;
    if (packet->type == TN_MQTT_DISCONNECT) {
        return refuse(p, packet, "says goodbye", err);
    }
    if (p->state == TN_MQTT_PUBLISH_CONNACK && packet->type == TN_MQTT_CONNACK) {
        if (failed && packet->reason == TN_MQTT_VERSION_UNSUPPORTED) {
            return tn_err_set(err, TN_UNSUPPORTED, 0, "the broker wants another version of MQTT");
        }
        return failed                ? refuse(p, packet, "lets us not in", err)
               : p->spec->topic.data ? publish(p, packet, out, err)
                                     : say_goodbye(p, out, err);
    }
    if (p->state == TN_MQTT_PUBLISH_PUBACK && packet->type == TN_MQTT_PUBACK && packet->id == ID) {
        if (failed) {
            return refuse(p, packet, "doesn't take the message", err);
        }
        return say_goodbye(p, out, err);
    }
    return tn_err_set(err, TN_INVALID, 0, "the broker sent %s where nobody asked for it",
                      tn_mqtt_type_text(packet->type));
}

tn_rc tn_mqtt_publish_next(struct tn_mqtt_publish *p, struct tn_bytes *input, struct tn_buf *out,
                           struct tn_err *err)
{
    struct tn_mqtt_packet packet;
    TN_CHECK(p->state != TN_MQTT_PUBLISH_DONE);
    out->size = 0;
    tn_rc rc = tn_mqtt_decode(p->version, *input, &packet, err);
    if (rc == TN_AGAIN && input->size >= TN_MQTT_PUBLISH_INPUT) {
        return tn_err_set(err, TN_INVALID, 0, "an answer of the broker's has more than %d bytes",
                          TN_MQTT_PUBLISH_INPUT);
    }
    if (rc != TN_OK) {
        return rc;
    }
    input->data += packet.size;
    input->size -= packet.size;
    return take(p, &packet, out, err);
}

enum tn_mqtt_version tn_mqtt_publish_other(const struct tn_mqtt_publish *p)
{
    bool silent = p->state == TN_MQTT_PUBLISH_CONNACK;
    return !silent ? p->version : p->version == TN_MQTT_V5 ? TN_MQTT_V3 : TN_MQTT_V5;
}
