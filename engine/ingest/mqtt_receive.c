#include "base/check.h"
#include "base/hash.h"
#include "ingest/mqtt_session_private.h"

typedef tn_rc packet_fn(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                        struct tn_mqtt_event *event, struct tn_err *err);

/* ---- replies ---- */

static bool reply_room(const struct tn_mqtt_session *s)
{
    return s->reply_count < s->reply_max;
}

/* Behind all that is due already: acknowledgements leave in the order in which messages came. */
static void reply(struct tn_mqtt_session *s, enum tn_mqtt_type type, uint16_t id,
                  unsigned char reason)
{
    TN_CHECK(reply_room(s));
    uint32_t at = (s->reply_first + s->reply_count) % s->reply_max;
    s->replies[at] = (struct tn_mqtt_reply){
        .place = s->place, .id = id, .type = (unsigned char)type, .reason = reason};
    s->reply_count++;
}

/* The id stands for something else now. */
static void cancel_reply(struct tn_mqtt_session *s, struct tn_mqtt_entry *entry)
{
    for (uint32_t i = 0; i < s->reply_count && entry->queued; i++) {
        struct tn_mqtt_reply *due = &s->replies[(s->reply_first + i) % s->reply_max];
        if (due->id == entry->id) {
            due->type = 0;
        }
    }
    entry->queued = false;
}

static void reply_for(struct tn_mqtt_session *s, struct tn_mqtt_entry *entry,
                      enum tn_mqtt_type type)
{
    reply(s, type, entry->id, TN_MQTT_SUCCESS);
    entry->queued = true;
}

static enum tn_mqtt_type receipt_of(unsigned char qos)
{
    return qos == 1 ? TN_MQTT_PUBACK : TN_MQTT_PUBREC;
}

/* ---- the end of a connection ---- */

/* 3.1.1 has no reason to give: there the connection just ends. */
static tn_rc give_up(struct tn_mqtt_session *s, tn_rc rc, unsigned char fault)
{
    s->goodbye_due = s->version == TN_MQTT_V5 && s->state != TN_MQTT_AWAIT_CONNACK;
    s->goodbye = fault;
    s->state = TN_MQTT_CLOSING;
    return rc;
}

static tn_rc unexpected(struct tn_mqtt_session *s, enum tn_mqtt_type type, struct tn_err *err)
{
    return give_up(
        s,
        tn_err_set(err, TN_INVALID, 0, "the broker sent a %s out of turn", tn_mqtt_type_text(type)),
        TN_MQTT_PROTOCOL_ERROR);
}

/* Reasons that stay until somebody changes a setting, here or there. */
static bool is_lasting(unsigned char reason)
{
    static const unsigned char all[] = {0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C, 0x8E,
                                        0x93, 0x95, 0x9B, 0x9C, 0x9D, 0xA2};
    return memchr(all, reason, sizeof all) != NULL;
}

static tn_rc dismissed(struct tn_mqtt_session *s, const char *what,
                       const struct tn_mqtt_packet *packet, struct tn_err *err)
{
    struct tn_bytes text = tn_mqtt_property_text(packet->properties, TN_MQTT_REASON_STRING);
    struct tn_bytes server = tn_mqtt_property_text(packet->properties, TN_MQTT_SERVER_REFERENCE);
    int text_size = text.size < 120 ? (int)text.size : 120;
    int server_size = server.size < 120 ? (int)server.size : 120;
    s->reason = packet->reason;
    s->lasting = is_lasting(packet->reason);
    s->state = TN_MQTT_CLOSING;
    s->goodbye_due = false;
    return tn_err_set(err, TN_IO, 0, "%s: %s (0x%02x)%s%.*s%s%.*s", what,
                      tn_mqtt_reason_text(packet->reason), packet->reason,
                      text_size > 0 ? ": " : "", text_size, (const char *)text.data,
                      server_size > 0 ? "; it names " : "", server_size, (const char *)server.data);
}

/* ---- connecting ---- */

/* Ids mean another session's messages from now on. What is durable still has the old ones: no
 * message may come before that has changed. */
static void forget_session(struct tn_mqtt_session *s, struct tn_mqtt_event *event)
{
    event->ids_gone = s->known_count > 0 || s->durable < s->place;
    if (event->ids_gone) {
        tn_mqtt_known_clear(s);
        s->clear_place = ++s->place;
        s->state = TN_MQTT_CLEAR;
    } else {
        tn_mqtt_ask_for_filters(s, false);
    }
}

static tn_rc on_connack(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                        struct tn_mqtt_event *event, struct tn_err *err)
{
    if (s->state != TN_MQTT_AWAIT_CONNACK) {
        return unexpected(s, packet->type, err);
    }
    if (packet->reason != TN_MQTT_SUCCESS) {
        bool older = packet->reason == TN_MQTT_VERSION_UNSUPPORTED &&
                     s->spec->version == TN_MQTT_ANY && s->version == TN_MQTT_V5;
        tn_rc rc = dismissed(s, "the broker refuses the connection", packet, err);
        if (older) {
            s->version = TN_MQTT_V3;
            s->lasting = false;
        }
        return rc;
    }
    struct tn_bytes properties = packet->properties;
    uint32_t keep_alive_s =
        tn_mqtt_property_number(properties, TN_MQTT_SERVER_KEEP_ALIVE, s->spec->keep_alive_s);
    s->keep_alive_ms = keep_alive_s * 1000;
    event->kind = TN_MQTT_CONNECTED;
    event->resumed = packet->session_present;
    event->stranger = event->resumed && !s->remembers;
    event->expiry_s =
        tn_mqtt_property_number(properties, TN_MQTT_SESSION_EXPIRY, s->spec->session_expiry_s);
    event->text = tn_mqtt_property_text(properties, TN_MQTT_REASON_STRING);
    s->connections++;
    s->remembers = true;
    s->lasting = false;
    if (event->resumed) {
        tn_mqtt_ask_for_filters(s, true);
    } else {
        forget_session(s, event);
    }
    event->place = s->place;
    return TN_OK;
}

/* Both answers: each asks for one filter, whose number is the id. */
static tn_rc on_answer(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                       struct tn_mqtt_event *event, struct tn_err *err)
{
    uint32_t index = packet->id - 1U;
    bool leave = index < s->spec->leave_count;
    bool asked =
        index < s->ask_next && !s->answered[index] && leave == (packet->type == TN_MQTT_UNSUBACK);
    if (s->state != TN_MQTT_AWAIT_SUBACK || !asked || packet->payload.size > 1) {
        return unexpected(s, packet->type, err);
    }
    event->kind = leave ? TN_MQTT_LEFT : TN_MQTT_SUBSCRIBED;
    event->filter = leave ? index : index - s->spec->leave_count;
    event->reason = packet->payload.size > 0 ? packet->payload.data[0] : TN_MQTT_SUCCESS;
    event->text = tn_mqtt_property_text(packet->properties, TN_MQTT_REASON_STRING);
    s->answered[index] = 1;
    if (--s->ask_left == 0) {
        s->state = TN_MQTT_READY;
        s->ready_ms = s->heard_ms;
    }
    return TN_OK;
}

/* ---- messages ---- */

static tn_rc hold(struct tn_mqtt_session *s)
{
    s->held = true;
    return TN_AGAIN;
}

/* Messages that there is no room for are passed over, with all that follow, so that the releases
 * behind them are read. A ping marks the end of what is on its way; see tn_mqtt_drained. */
static void drain(struct tn_mqtt_session *s)
{
    s->draining = true;
    s->overruns++;
    s->pings_to_come = s->pings_open + s->ping_due + 1;
    s->ping_due = s->pings_open == 0;
}

/* Room for one more id. Ids get free when something gets durable, or when the broker speaks. */
static tn_rc need_room(struct tn_mqtt_session *s)
{
    if (!reply_room(s)) {
        return hold(s);
    }
    if (s->known_count < s->spec->known_max || s->draining) {
        return TN_OK;
    }
    if (s->reply_count > 0) {
        return hold(s);
    }
    drain(s);
    return TN_OK;
}

static uint32_t hash_of(const struct tn_mqtt_message *message)
{
    uint64_t hash = tn_hash_64(message->topic, message->size * 4 + message->qos);
    if (!message->cut) { /* the size of a packet differs by its properties, that of a payload not */
        hash = tn_hash_64(message->topic, message->qos);
    }
    hash = tn_hash_64(message->payload, hash);
    return (uint32_t)(hash ^ hash >> 32);
}

/* What the event didn't eat of a long message. */
static void pass_over(struct tn_mqtt_session *s, const struct tn_mqtt_event *event)
{
    s->skip = event->rest;
    s->seek_rest = 0;
}

/* The broker repeats what is known: it is acknowledged when that is durable, and not offered. */
static tn_rc on_repetition(struct tn_mqtt_session *s, struct tn_mqtt_entry *entry)
{
    if (!entry->queued && !reply_room(s)) {
        return hold(s);
    }
    entry->stale = false;
    if (!entry->queued) {
        reply_for(s, entry, receipt_of(entry->qos));
    }
    return TN_OK;
}

/* Whether this is the message that is known by the id. A repetition never differs, and what the
 * broker sent before this connection it repeats with its mark. A message that isn't marked, with an
 * id of which the broker has not spoken yet, is another one: of a new session, when the answer that
 * it is new was lost on the way. */
static bool is_repetition(const struct tn_mqtt_entry *entry, const struct tn_mqtt_message *message)
{
    return entry && entry->hash == message->hash && entry->qos == message->qos &&
           (message->dup || !entry->stale);
}

/* event->message is what came, but for its hash. */
static tn_rc offer(struct tn_mqtt_session *s, struct tn_mqtt_event *event)
{
    struct tn_mqtt_message *message = &event->message;
    if (s->state == TN_MQTT_CLEAR) {
        return hold(s);
    }
    message->hash = hash_of(message);
    struct tn_mqtt_entry *entry = message->qos > 0 ? tn_mqtt_known_find(s, message->id) : NULL;
    bool same = is_repetition(entry, message);
    if (same && !entry->partly) {
        tn_rc rc = on_repetition(s, entry);
        if (rc == TN_OK) {
            pass_over(s, event);
        }
        return rc;
    }
    if (entry && !reply_room(s)) {
        return hold(s);
    }
    if (message->qos > 0 && !entry) {
        tn_rc rc = need_room(s);
        if (rc) {
            return rc;
        }
        if (s->draining) {
            pass_over(s, event);
            return TN_OK;
        }
    }
    message->again = same;
    event->kind = TN_MQTT_MESSAGE;
    return TN_OK;
}

static void describe(const struct tn_mqtt_packet *packet, struct tn_mqtt_message *message)
{
    *message = (struct tn_mqtt_message){.topic = packet->topic,
                                        .payload = packet->payload,
                                        .properties = packet->properties,
                                        .size = packet->size,
                                        .id = packet->id,
                                        .qos = packet->qos,
                                        .dup = packet->dup,
                                        .retain = packet->retain};
}

static tn_rc on_publish(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                        struct tn_mqtt_event *event, struct tn_err *err)
{
    if (tn_mqtt_property_number(packet->properties, TN_MQTT_TOPIC_ALIAS, 0) != 0) {
        return give_up(
            s,
            tn_err_set(err, TN_INVALID, 0, "the broker sent a topic alias, and none was allowed"),
            TN_MQTT_ALIAS_INVALID);
    }
    describe(packet, &event->message);
    return offer(s, event);
}

static tn_rc on_pubrel(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                       struct tn_mqtt_event *event, struct tn_err *err)
{
    (void)err;
    struct tn_mqtt_entry *entry = tn_mqtt_known_find(s, packet->id);
    if (!reply_room(s)) {
        return hold(s);
    }
    if (!entry || entry->qos != 2) {
        reply(s, TN_MQTT_PUBCOMP, packet->id, TN_MQTT_ID_UNKNOWN);
        return TN_OK;
    }
    entry->stale = false;
    cancel_reply(s, entry); /* of a repetition: PUBREC, which it doesn't wait for any more */
    if (!entry->released) {
        entry->released = true;
        event->kind = TN_MQTT_RELEASED;
        event->id = packet->id;
        event->place = ++s->place;
    }
    reply_for(s, entry, TN_MQTT_PUBCOMP);
    return TN_OK;
}

uint64_t tn_mqtt_session_admit(struct tn_mqtt_session *s, const struct tn_mqtt_event *event)
{
    TN_CHECK(event->kind == TN_MQTT_MESSAGE && tn_mqtt_connected(s));
    const struct tn_mqtt_message *message = &event->message;
    s->place++;
    if (message->qos > 0) {
        struct tn_mqtt_entry *entry = tn_mqtt_known_find(s, message->id);
        if (entry) {
            cancel_reply(s, entry);
        } else {
            entry = tn_mqtt_known_add(s, message->id);
        }
        *entry =
            (struct tn_mqtt_entry){.hash = message->hash, .id = message->id, .qos = message->qos};
        reply_for(s, entry, receipt_of(message->qos));
    }
    pass_over(s, event);
    return s->place;
}

/* ---- messages that are too long ---- */

static tn_rc too_long(struct tn_mqtt_session *s, struct tn_err *err)
{
    return give_up(s,
                   tn_err_set(err, TN_INVALID, 0,
                              "the broker sent a packet that is no message, and too large here"),
                   TN_MQTT_TOO_LARGE);
}

/* Not even its begin fits. Ids stand behind topics: the bytes up to there are passed over, and what
 * is left to tell is how long it was. */
static tn_rc seek_id(struct tn_mqtt_session *s, struct tn_bytes input,
                     const struct tn_mqtt_frame *frame, struct tn_mqtt_event *event,
                     struct tn_err *err)
{
    size_t topic = frame->header_size + 2;
    size_t id = topic + ((size_t)input.data[topic - 2] << 8 | input.data[topic - 1]);
    if (id + 2 > frame->size) {
        return give_up(s,
                       tn_err_set(err, TN_INVALID, 0, "PUBLISH: its topic is longer than itself"),
                       TN_MQTT_MALFORMED);
    }
    size_t passed = id < input.size ? id : input.size;
    s->sought = *frame;
    s->seek = id - passed;
    s->seek_rest = frame->size - id;
    event->eaten = passed;
    return TN_OK;
}

static tn_rc sought(struct tn_mqtt_session *s, struct tn_bytes input, struct tn_mqtt_event *event,
                    struct tn_err *err)
{
    if (s->seek > 0) {
        event->eaten = s->seek < input.size ? s->seek : input.size;
        s->seek -= event->eaten;
        return TN_OK;
    }
    struct tn_mqtt_message *message = &event->message;
    *message = (struct tn_mqtt_message){.size = s->sought.size,
                                        .qos = s->sought.flags >> 1 & 3,
                                        .dup = (s->sought.flags & 8) != 0,
                                        .retain = (s->sought.flags & 1) != 0,
                                        .cut = true};
    if (message->qos > 0) {
        if (input.size < 2) {
            return TN_AGAIN;
        }
        message->id = (uint16_t)(input.data[0] << 8 | input.data[1]);
        event->eaten = 2;
    }
    event->rest = s->seek_rest - event->eaten;
    if (message->qos == 3 || (message->qos > 0 && message->id == 0)) {
        return give_up(s, tn_err_set(err, TN_INVALID, 0, "PUBLISH: QoS 3, or packet id 0"),
                       TN_MQTT_MALFORMED);
    }
    return offer(s, event);
}

/* Waits until as much of it is there as the caller can hold, no more and no less: what is offered,
 * and its hash, then don't depend on how the bytes came. */
static tn_rc on_long(struct tn_mqtt_session *s, struct tn_bytes input,
                     const struct tn_mqtt_frame *frame, struct tn_mqtt_event *event,
                     struct tn_err *err)
{
    struct tn_mqtt_packet packet = {0};
    if (frame->type != TN_MQTT_PUBLISH || s->state == TN_MQTT_AWAIT_CONNACK) {
        return too_long(s, err);
    }
    if (input.size < s->spec->input_size) {
        return TN_AGAIN;
    }
    input.size = s->spec->input_size;
    tn_rc rc = tn_mqtt_decode_begin(s->version, input, &packet, err);
    if (rc == TN_AGAIN) {
        return seek_id(s, input, frame, event, err);
    }
    if (rc) {
        return give_up(s, rc, packet.fault);
    }
    event->eaten = input.size;
    event->rest = frame->size - input.size;
    describe(&packet, &event->message);
    event->message.cut = true;
    return offer(s, event);
}

/* ---- what comes in ---- */

static tn_rc on_pingresp(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                         struct tn_mqtt_event *event, struct tn_err *err)
{
    (void)packet;
    (void)event;
    (void)err;
    s->pings_open -= s->pings_open > 0;
    if (s->pings_to_come > 0) {
        s->pings_to_come--;
        s->ping_due = s->pings_to_come > 0 && s->pings_open == 0;
    }
    return TN_OK;
}

static tn_rc on_disconnect(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                           struct tn_mqtt_event *event, struct tn_err *err)
{
    (void)event;
    if (s->version == TN_MQTT_V3) {
        return unexpected(s, packet->type, err);
    }
    return dismissed(s, "the broker ends the connection", packet, err);
}

static packet_fn *const handlers[TN_MQTT_AUTH + 1] = {
    [TN_MQTT_CONNACK] = on_connack,       [TN_MQTT_PUBLISH] = on_publish,
    [TN_MQTT_PUBREL] = on_pubrel,         [TN_MQTT_SUBACK] = on_answer,
    [TN_MQTT_UNSUBACK] = on_answer,       [TN_MQTT_PINGRESP] = on_pingresp,
    [TN_MQTT_DISCONNECT] = on_disconnect,
};

static tn_rc on_packet(struct tn_mqtt_session *s, struct tn_bytes input,
                       struct tn_mqtt_event *event, struct tn_err *err)
{
    struct tn_mqtt_packet packet = {0};
    tn_rc rc = tn_mqtt_decode(s->version, input, &packet, err);
    if (rc) { /* a CONNECT of another version is wrong here in any */
        return give_up(s, rc,
                       packet.fault == TN_MQTT_VERSION_UNSUPPORTED ? TN_MQTT_PROTOCOL_ERROR
                                                                   : packet.fault);
    }
    bool early = s->state == TN_MQTT_AWAIT_CONNACK && packet.type != TN_MQTT_CONNACK;
    if (early || !handlers[packet.type]) {
        return unexpected(s, packet.type, err);
    }
    event->eaten = packet.size;
    return handlers[packet.type](s, &packet, event, err);
}

static tn_rc read_one(struct tn_mqtt_session *s, struct tn_bytes input, struct tn_mqtt_event *event,
                      struct tn_err *err)
{
    struct tn_mqtt_frame frame = {0};
    if (s->skip > 0) {
        event->eaten = s->skip < input.size ? s->skip : input.size;
        s->skip -= event->eaten;
        return TN_OK;
    }
    if (s->seek_rest > 0) {
        return sought(s, input, event, err);
    }
    tn_rc rc = tn_mqtt_frame(s->version, input, &frame, err);
    if (rc == TN_INVALID) {
        return give_up(s, rc, TN_MQTT_MALFORMED);
    }
    if (rc == TN_OK && frame.size > s->spec->input_size) {
        return on_long(s, input, &frame, event, err);
    }
    if (rc == TN_OK && frame.size > input.size) {
        rc = TN_AGAIN;
    }
    return rc ? rc : on_packet(s, input, event, err);
}

tn_rc tn_mqtt_session_next(struct tn_mqtt_session *s, struct tn_bytes input, int64_t now_ms,
                           struct tn_mqtt_event *event, struct tn_err *err)
{
    *event = (struct tn_mqtt_event){.kind = TN_MQTT_NOTHING};
    s->held = false;
    if (input.size == 0) {
        return TN_AGAIN;
    }
    if (!tn_mqtt_connected(s)) { /* what still comes after the end means nothing any more */
        event->eaten = input.size;
        return TN_OK;
    }
    s->spoke = true;
    if (input.size != s->seen) {
        s->heard_ms = now_ms;
    }
    tn_rc rc = read_one(s, input, event, err);
    s->heard_ms = rc == TN_OK ? now_ms : s->heard_ms;
    s->seen = rc == TN_AGAIN ? input.size : 0;
    if (rc) {
        event->eaten = 0;
        event->kind = TN_MQTT_NOTHING;
    }
    return rc;
}
