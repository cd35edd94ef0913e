#include "base/check.h"
#include "ingest/mqtt_source_private.h"

enum { RETRY_MS = 5000 };

/* ---- places ---- */

/* All up to the session's last place is durable with the hub's place `last`. When there is no room
 * for one more span, the newest gets longer: what it holds is acknowledged a little later. */
static void add_span(struct tn_mqtt_source *s)
{
    uint32_t at = s->span_first + s->span_count;
    if (s->span_count == TN_MQTT_SPANS_MAX) {
        at--;
    } else {
        s->span_count++;
    }
    s->spans[at % TN_MQTT_SPANS_MAX] = (struct tn_mqtt_span){s->session.place, s->last};
}

void tn_mqtt_source_settle(struct tn_mqtt_source *s)
{
    while (s->span_count > 0 && s->spans[s->span_first].hub <= s->spec.hub->durable) {
        tn_mqtt_session_durable(&s->session, s->spans[s->span_first].session);
        s->span_first = (s->span_first + 1) % TN_MQTT_SPANS_MAX;
        s->span_count--;
    }
}

/* ---- what doesn't get in ---- */

void tn_mqtt_source_block(struct tn_mqtt_source *s, tn_rc rc, struct tn_err *err)
{
    bool known = rc == TN_AGAIN || s->status.err.code == err->code;
    s->block = rc == TN_AGAIN ? TN_MQTT_NO_ROOM : TN_MQTT_NO_ENTRY;
    s->retry_ms = tn_mqtt_source_now(s) + RETRY_MS;
    s->status.waits++;
    if (!known) {
        (void)tn_err_in(err, "%s", s->spec.name);
        tn_log_err(s->spec.log, TN_LOG_WARN, "mqtt", err);
        s->status.err = *err;
    }
}

/* Every one would fill the log: it has the first, the second, the fourth and so on. */
static void log_some(struct tn_mqtt_source *s, uint64_t count, const char *what,
                     struct tn_bytes topic, const char *text)
{
    int size = topic.size < 100 ? (int)topic.size : 100;
    if ((count & (count - 1)) == 0) {
        tn_log_event(s->spec.log, TN_LOG_WARN, "mqtt",
                     "source=%s %s=%llu topic=\"%.*s\" text=\"%s\"", s->spec.name, what,
                     (unsigned long long)count, size, (const char *)topic.data, text);
    }
}

/* Acknowledged when all before it is durable. A restart doesn't have to know it: if it comes once
 * more, it's passed by once more. */
static bool pass_by(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    (void)tn_mqtt_session_admit(&s->session, event);
    if (!s->memo_due) {
        add_span(s);
    }
    return true;
}

/* ---- what does ---- */

static const struct tn_mqtt_route *route_of(const struct tn_mqtt_source *s, struct tn_bytes topic)
{
    const struct tn_mqtt_spec *mqtt = &s->spec.mqtt;
    for (uint32_t i = 0; i < mqtt->filter_count; i++) {
        if (tn_mqtt_topic_matches(mqtt->filters[i].filter, topic)) {
            return &s->spec.routes[i];
        }
    }
    return NULL;
}

static struct tn_bytes memo_of(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    struct tn_buf memo;
    tn_buf_init(&memo, s->memo, TN_MEMO_SIZE_MAX);
    if (event) {
        (void)tn_mqtt_session_save_next(&s->session, event, &memo);
    } else {
        (void)tn_mqtt_session_save(&s->session, &memo);
    }
    TN_CHECK(!memo.overflow); /* known_max is bounded by its size */
    return tn_buf_bytes(&memo);
}

static void kept(struct tn_mqtt_source *s, const struct tn_message *message)
{
    bool memo = message->sender.size > 0;
    s->last = message->place;
    s->memo_due = s->memo_due && !memo;
    s->memo_kept = s->memo_kept || memo;
    s->status.err.code = TN_OK;
    s->status.err.text[0] = 0;
    add_span(s);
}

static void count(struct tn_mqtt_source *s, const struct tn_message *message)
{
    s->status.messages++;
    s->status.rows += message->rows;
    s->status.dead += message->dead;
}

/* A payload that is longer than the hub takes, or than could be read, is a letter with its
 * beginning and its size. */
static void add_payload(const struct tn_mqtt_source *s, const struct tn_mqtt_event *event,
                        struct tn_message *message)
{
    struct tn_bytes payload = event->message.payload;
    size_t most = s->spec.hub->size_max;
    if (event->message.cut || payload.size > most) {
        message->cut_size = (uint64_t)payload.size + event->rest;
        payload.size = payload.size < most ? payload.size : most;
    }
    message->bytes = payload;
}

/* A memo that is due goes with it whatever its QoS: places are durable in their order. */
static bool offer(struct tn_mqtt_source *s, const struct tn_mqtt_event *event,
                  const struct tn_mqtt_route *route)
{
    struct tn_clock *clock = s->spec.net->clock;
    struct tn_err err;
    struct tn_message message = {.table = route->table,
                                 .input = route->input,
                                 .source = s->spec.name,
                                 .topic = event->message.topic,
                                 .received_ms = clock->vtable->now_ms(clock)};
    add_payload(s, event, &message);
    if (event->message.qos == 2 || s->memo_due) {
        message.sender = tn_bytes_of(s->sender);
        message.memo = memo_of(s, event);
    }
    tn_rc rc = tn_hub_offer(s->spec.hub, &message, &err);
    if (rc == TN_INVALID) {
        log_some(s, ++s->status.refused, "refused", event->message.topic, err.text);
        return pass_by(s, event);
    }
    if (rc) {
        tn_mqtt_source_block(s, rc, &err);
        return false;
    }
    if (message.cut_size > 0) {
        log_some(s, ++s->status.too_long, "too_long", message.topic, "a letter has its beginning");
    }
    (void)tn_mqtt_session_admit(&s->session, event);
    kept(s, &message);
    count(s, &message);
    return true;
}

/* Whether the message is done with. */
static bool take_message(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    const struct tn_mqtt_message *message = &event->message;
    if (message->cut && message->topic.size == 0) { /* nobody knows where it belongs */
        log_some(s, ++s->status.too_long, "too_long", message->topic, "its topic is");
        return pass_by(s, event);
    }
    const struct tn_mqtt_route *route = route_of(s, message->topic);
    if (!route) {
        log_some(s, ++s->status.unrouted, "unrouted", message->topic, "no filter matches");
        return pass_by(s, event);
    }
    return s->block == TN_MQTT_FREE && offer(s, event, route);
}

void tn_mqtt_source_keep_memo(struct tn_mqtt_source *s)
{
    struct tn_err err;
    if (!s->memo_due || s->block == TN_MQTT_NO_ROOM) {
        return;
    }
    struct tn_message message = {
        .source = s->spec.name, .sender = tn_bytes_of(s->sender), .memo = memo_of(s, NULL)};
    tn_rc rc = tn_hub_offer(s->spec.hub, &message, &err);
    if (rc) {
        tn_mqtt_source_block(s, rc, &err);
        return;
    }
    kept(s, &message);
}

/* ---- events ---- */

static void on_connected(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    s->memo_due = s->memo_due || event->ids_gone || !s->memo_kept;
    tn_mqtt_leave_connected(s, event->resumed);
    s->status.connections = s->session.connections;
    s->status.err.code = TN_OK;
    s->status.err.text[0] = 0;
    tn_log_event(s->spec.log, TN_LOG_INFO, "mqtt", "source=%s connected=%s version=%d session=%s",
                 s->spec.name, s->stream->peer, s->session.version == TN_MQTT_V5 ? 5 : 3,
                 event->resumed ? "old" : "new");
    if (event->stranger) {
        tn_log_event(s->spec.log, TN_LOG_WARN, "mqtt",
                     "source=%s text=\"the broker has a session of client id '%.*s' of which "
                     "nothing is known here: messages that somebody took may come again\"",
                     s->spec.name, (int)s->spec.mqtt.client_id.size,
                     (const char *)s->spec.mqtt.client_id.data);
    }
}

static void on_subscribed(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    const struct tn_mqtt_wish *wish = &s->spec.mqtt.filters[event->filter];
    bool refused = event->reason >= TN_MQTT_FAILURE;
    if (!refused && event->reason >= wish->qos) {
        return;
    }
    tn_log_event(s->spec.log, refused ? TN_LOG_ERROR : TN_LOG_WARN, "mqtt",
                 "source=%s filter=\"%.*s\" qos=%u text=\"the broker %s: %s\"", s->spec.name,
                 (int)wish->filter.size, (const char *)wish->filter.data, wish->qos,
                 refused ? "refuses it" : "grants less", tn_mqtt_reason_text(event->reason));
}

static void on_left(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    struct tn_bytes filter = s->spec.mqtt.leave[event->filter];
    bool again = s->all_left;
    tn_mqtt_leave_answered(s, event->reason);
    if (again) {
        return;
    }
    tn_log_event(s->spec.log, TN_LOG_INFO, "mqtt", "source=%s left=\"%.*s\" text=\"%s\"",
                 s->spec.name, (int)filter.size, (const char *)filter.data,
                 tn_mqtt_reason_text(event->reason));
}

/* Whether it is done with. */
static bool on_event(struct tn_mqtt_source *s, const struct tn_mqtt_event *event)
{
    switch (event->kind) {
    case TN_MQTT_MESSAGE:
        return take_message(s, event);
    case TN_MQTT_RELEASED:
        s->memo_due = true;
        return true;
    case TN_MQTT_CONNECTED:
        on_connected(s, event);
        return true;
    case TN_MQTT_SUBSCRIBED:
        on_subscribed(s, event);
        return true;
    case TN_MQTT_LEFT:
        on_left(s, event);
        return true;
    case TN_MQTT_NOTHING:
        return true;
    }
    return true;
}

/* The session is asked also when the hub has no room: that bytes are there says that the broker
 * lives. */
void tn_mqtt_source_take(struct tn_mqtt_source *s)
{
    struct tn_err err;
    struct tn_mqtt_event event;
    for (;;) {
        struct tn_bytes rest = {s->input + s->input_first, s->input_end - s->input_first};
        tn_rc rc = tn_mqtt_session_next(&s->session, rest, tn_mqtt_source_now(s), &event, &err);
        if (rc == TN_AGAIN) {
            return;
        }
        if (rc) {
            tn_mqtt_source_failed(s, &err, s->session.lasting);
            return;
        }
        if (!on_event(s, &event)) {
            return;
        }
        s->input_first += event.eaten;
    }
}
