#include "base/check.h"
#include "ingest/mqtt_session_private.h"

enum { PROPERTIES_MAX = 16 };

/* Sends what is next, if there is room. */
typedef bool send_fn(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out);

/* Whether it went; a packet that is not lawful ends the connection (a user name that was changed to
 * one that can't be sent). */
static bool send_packet(struct tn_mqtt_session *s, const struct tn_mqtt_packet *packet,
                        int64_t now_ms, struct tn_buf *out)
{
    struct tn_err err;
    tn_rc rc = tn_mqtt_encode(s->version, packet, out, &err);
    if (rc == TN_INVALID || rc == TN_UNSUPPORTED) {
        s->state = TN_MQTT_CLOSING;
        s->lasting = true;
        s->goodbye_due = false;
    }
    if (rc == TN_OK) {
        s->sent_ms = now_ms;
    }
    return rc == TN_OK;
}

static bool send_connect(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out)
{
    const struct tn_mqtt_spec *spec = s->spec;
    unsigned char memory[PROPERTIES_MAX];
    struct tn_buf properties;
    tn_buf_init(&properties, memory, sizeof memory);
    if (s->version == TN_MQTT_V5) {
        tn_mqtt_put_number(&properties, TN_MQTT_SESSION_EXPIRY, spec->session_expiry_s);
        tn_mqtt_put_number(&properties, TN_MQTT_RECEIVE_MAX, spec->in_flight);
    }
    struct tn_mqtt_packet packet = {.type = TN_MQTT_CONNECT,
                                    .properties = tn_buf_bytes(&properties),
                                    .connect = {.version = s->version,
                                                .keep_alive_s = spec->keep_alive_s,
                                                .client_id = spec->client_id,
                                                .has_user = spec->user.data != NULL,
                                                .has_password = spec->password.data != NULL,
                                                .user = spec->user,
                                                .password = spec->password}};
    s->connect_due = !send_packet(s, &packet, now_ms, out);
    return !s->connect_due;
}

/* One filter a packet: each has its answer, and none is larger than its filter. */
static bool send_ask(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out)
{
    bool leave = s->ask_next < s->spec->leave_count;
    struct tn_mqtt_packet packet = {.type = leave ? TN_MQTT_UNSUBSCRIBE : TN_MQTT_SUBSCRIBE,
                                    .id = (uint16_t)(s->ask_next + 1)};
    struct tn_mqtt_wish wish = {0};
    if (leave) {
        wish.filter = s->spec->leave[s->ask_next];
    } else {
        wish = s->spec->filters[s->ask_next - s->spec->leave_count];
    }
    if (s->resumed && wish.retain_when == 0) {
        wish.retain_when = 1; /* not what came when it was a new subscription */
    }
    if (s->version == TN_MQTT_V3) { /* it has no bits for these */
        wish.no_local = false;
        wish.retain_as_published = false;
        wish.retain_when = 0;
    }
    struct tn_buf list;
    tn_buf_init(&list, s->ask, tn_mqtt_ask_size(s->spec));
    tn_mqtt_put_wish(packet.type, &list, &wish);
    TN_CHECK(!list.overflow);
    packet.payload = tn_buf_bytes(&list);
    bool sent = send_packet(s, &packet, now_ms, out);
    if (sent) {
        s->ask_next++;
        s->asked = true;
        s->asked_ms = now_ms;
    }
    return sent;
}

/* What the id was kept for is over once its last acknowledgement is on its way; if that is lost,
 * the broker asks again, and QoS 1 repeats, or the release of an id that is unknown is answered. */
static void replied(struct tn_mqtt_session *s, const struct tn_mqtt_reply *due)
{
    struct tn_mqtt_entry *entry = tn_mqtt_known_find(s, due->id);
    bool mine = entry && entry->queued &&
                (due->type == TN_MQTT_PUBCOMP ? entry->released : !entry->released);
    if (!mine) { /* the reply is to something that wasn't known */
        return;
    }
    entry->queued = false;
    if (due->type != TN_MQTT_PUBREC) {
        tn_mqtt_known_remove(s, entry);
    }
}

/* Sends the oldest acknowledgement, if it is due. */
static bool send_reply(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out)
{
    const struct tn_mqtt_reply due = s->replies[s->reply_first];
    if (due.type != 0) {
        struct tn_mqtt_packet packet = {.type = (enum tn_mqtt_type)due.type,
                                        .id = due.id,
                                        .reason = s->version == TN_MQTT_V5 ? due.reason : 0};
        if (!send_packet(s, &packet, now_ms, out)) {
            return false;
        }
        replied(s, &due);
    }
    s->reply_first = (s->reply_first + 1) % s->reply_max;
    s->reply_count--;
    return true;
}

/* A message that is still arriving is not answered before its end. */
static bool reply_is_due(const struct tn_mqtt_session *s)
{
    return s->reply_count > 0 && s->skip == 0 && s->seek_rest == 0 &&
           s->replies[s->reply_first].place <= s->durable;
}

static bool send_small(struct tn_mqtt_session *s, enum tn_mqtt_type type, unsigned char reason,
                       int64_t now_ms, struct tn_buf *out)
{
    struct tn_mqtt_packet packet = {.type = type, .reason = s->version == TN_MQTT_V5 ? reason : 0};
    return send_packet(s, &packet, now_ms, out);
}

static bool send_ping(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out)
{
    bool sent = send_small(s, TN_MQTT_PINGREQ, 0, now_ms, out);
    if (sent) {
        s->ping_due = false;
        s->asked_ms = s->pings_open == 0 ? now_ms : s->asked_ms;
        s->pings_open++;
    }
    return sent;
}

static bool send_goodbye(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out)
{
    bool sent = send_small(s, TN_MQTT_DISCONNECT, s->goodbye, now_ms, out);
    s->goodbye_due = s->goodbye_due && !sent;
    return sent;
}

/* What is to be sent next, if anything. */
static send_fn *next_to_send(const struct tn_mqtt_session *s)
{
    if (s->state == TN_MQTT_AWAIT_CONNACK) {
        return s->connect_due ? send_connect : NULL;
    }
    bool closing = s->state == TN_MQTT_CLOSING;
    if (!tn_mqtt_connected(s) && !(closing && s->goodbye_due)) {
        return NULL;
    }
    if (reply_is_due(s)) {
        return send_reply;
    }
    if (closing) {
        return send_goodbye;
    }
    if (s->state == TN_MQTT_AWAIT_SUBACK && s->ask_next < tn_mqtt_ask_count(s->spec)) {
        return send_ask;
    }
    return s->ping_due ? send_ping : NULL;
}

/* What the broker has in flight was passed over, or is done: it sends the rest on another
 * connection, at once. Of ids that it never spoke of it knows nothing any more. */
static void end_drain(struct tn_mqtt_session *s)
{
    while (tn_mqtt_known_evict(s)) {
    }
    s->at_once = true;
    s->goodbye = TN_MQTT_SUCCESS;
    s->goodbye_due = true;
    s->state = TN_MQTT_CLOSING;
}

bool tn_mqtt_session_output(struct tn_mqtt_session *s, int64_t now_ms, struct tn_buf *out)
{
    send_fn *next = NULL;
    do {
        if (tn_mqtt_drained(s)) {
            end_drain(s);
        }
        next = next_to_send(s);
    } while (next && next(s, now_ms, out));
    return next_to_send(s) != NULL;
}
