/* mqtt_broker: a broker for one subscriber, as the standard wants it, that remembers what it sent
 * and checks what it is told. Its faults are drawn by the test: repetitions, forgotten sessions,
 * messages given up. */
#pragma once

#include "check.h"
#include "ingest/mqtt_packet.h"
#include "random.h"

enum {
    BROKER_MESSAGES_MAX = 4096,
    BROKER_PIPE = 1 << 16,
    BROKER_FILTERS_MAX = 8,
    BROKER_FILTER_SIZE = 32,
    BROKER_TEXT_SIZE = 400,
};

enum broker_state { BROKER_QUEUED, BROKER_FLYING, BROKER_RELEASED, BROKER_DONE, BROKER_GONE };

struct broker_message {
    enum broker_state state;
    unsigned char qos;
    uint16_t id;
};

struct broker {
    struct broker_message messages[BROKER_MESSAGES_MAX];
    uint32_t message_count;
    uint32_t sent_count; /* messages before it have been sent once */
    enum tn_mqtt_version version;
    bool connected;
    bool session;
    bool subscribed;
    bool alike;           /* all messages have one payload; a property tells them apart */
    uint32_t window;      /* messages in flight at most */
    uint32_t asked_count; /* SUBSCRIBE packets */
    char filters[BROKER_FILTERS_MAX][BROKER_FILTER_SIZE]; /* of the session; "": none */
    uint64_t random;
    struct tn_buf in; /* bytes from the client */
    struct tn_buf out;
    unsigned char in_memory[BROKER_PIPE];
    unsigned char out_memory[BROKER_PIPE];
    /* Whether message n may be acknowledged, and whether an id may be given back. */
    bool (*durable)(uint32_t n);
    bool (*forgotten)(uint16_t id);
    /* Topic and payload of message n; NULL: the same topic, and the number. */
    void (*text)(uint32_t n, char topic[BROKER_TEXT_SIZE], char payload[BROKER_TEXT_SIZE]);
};

static inline void broker_send(struct broker *b, const struct tn_mqtt_packet *packet)
{
    struct tn_err err;
    tn_rc rc = tn_mqtt_encode(b->version, packet, &b->out, &err);
    CHECK_OK(rc, err);
}

static inline void broker_send_id(struct broker *b, enum tn_mqtt_type type, uint16_t id)
{
    broker_send(b, &(struct tn_mqtt_packet){.type = type, .id = id});
}

static inline bool broker_flies(const struct broker_message *m)
{
    return m->state == BROKER_FLYING || m->state == BROKER_RELEASED;
}

static inline struct broker_message *broker_find(struct broker *b, uint16_t id)
{
    for (uint32_t i = 0; i < b->sent_count; i++) {
        if (b->messages[i].id == id && broker_flies(&b->messages[i])) {
            return &b->messages[i];
        }
    }
    return NULL;
}

static inline void broker_publish(struct broker *b, const struct broker_message *m, bool dup)
{
    unsigned char memory[64];
    char topic[BROKER_TEXT_SIZE] = "plant/1/data";
    char payload[BROKER_TEXT_SIZE];
    char number[16];
    struct tn_buf properties;
    uint32_t n = (uint32_t)(m - b->messages);
    tn_buf_init(&properties, memory, sizeof memory);
    (void)snprintf(number, sizeof number, "%u", n);
    (void)snprintf(payload, sizeof payload, "{\"n\":%u}", b->alike ? 0 : n);
    if (b->text) {
        b->text(n, topic, payload);
    }
    if (b->version == TN_MQTT_V5) {
        tn_mqtt_put_pair(&properties, tn_bytes_of("n"), tn_bytes_of(number));
    }
    broker_send(b, &(struct tn_mqtt_packet){.type = TN_MQTT_PUBLISH,
                                            .qos = m->qos,
                                            .dup = dup,
                                            .id = m->id,
                                            .topic = tn_bytes_of(topic),
                                            .properties = tn_buf_bytes(&properties),
                                            .payload = tn_bytes_of(payload)});
}

/* The lowest id that is free, so that ids are used again as soon as they may be. */
static inline uint16_t broker_free_id(struct broker *b)
{
    uint16_t id = 1;
    while (broker_find(b, id)) {
        id++;
    }
    return id;
}

/* Sends the next message, if the window lets it. */
static inline void broker_send_next(struct broker *b)
{
    uint32_t flying = 0;
    for (uint32_t i = 0; i < b->sent_count; i++) {
        flying += broker_flies(&b->messages[i]);
    }
    if (!b->connected || !b->subscribed || b->sent_count == b->message_count ||
        flying >= b->window || b->out.size > BROKER_PIPE / 2) {
        return;
    }
    struct broker_message *m = &b->messages[b->sent_count];
    if (m->qos > 0) {
        m->id = broker_free_id(b);
        m->state = BROKER_FLYING;
    } else {
        m->state = BROKER_DONE;
    }
    b->sent_count++;
    broker_publish(b, m, false);
}

static inline void broker_repeat(struct broker *b, const struct broker_message *m)
{
    if (m->state == BROKER_FLYING) {
        broker_publish(b, m, true);
    } else if (m->state == BROKER_RELEASED) {
        broker_send_id(b, TN_MQTT_PUBREL, m->id);
    }
}

static inline void broker_forget_session(struct broker *b)
{
    b->session = false;
    b->subscribed = false;
    memset(b->filters, 0, sizeof b->filters);
    for (uint32_t i = 0; i < b->sent_count; i++) {
        if (broker_flies(&b->messages[i])) {
            b->messages[i].state = BROKER_GONE;
        }
    }
}

/* Gives one message up, as when it expires. */
static inline void broker_drop_one(struct broker *b)
{
    for (uint32_t i = 0; i < b->sent_count; i++) {
        if (b->messages[i].state == BROKER_FLYING) {
            b->messages[i].state = BROKER_GONE;
            return;
        }
    }
}

static inline void broker_on_connect(struct broker *b, const struct tn_mqtt_packet *packet)
{
    CHECK(!b->connected);
    b->version = packet->connect.version;
    b->connected = true;
    CHECK(!packet->connect.clean);
    if (b->version == TN_MQTT_V5) {
        b->window = tn_mqtt_property_number(packet->properties, TN_MQTT_RECEIVE_MAX, 65535);
    }
    broker_send(b,
                &(struct tn_mqtt_packet){.type = TN_MQTT_CONNACK, .session_present = b->session});
    for (uint32_t i = 0; i < b->sent_count && b->session; i++) {
        broker_repeat(b, &b->messages[i]);
    }
    b->session = true;
}

static inline void broker_on_ack(struct broker *b, const struct tn_mqtt_packet *packet)
{
    struct broker_message *m = broker_find(b, packet->id);
    CHECK(m != NULL);
    uint32_t n = (uint32_t)(m - b->messages);
    switch ((int)packet->type) {
    case TN_MQTT_PUBACK:
        CHECK(m->qos == 1 && m->state == BROKER_FLYING);
        CHECK(b->durable(n));
        m->state = BROKER_DONE;
        return;
    case TN_MQTT_PUBREC:
        CHECK(m->qos == 2);
        CHECK(b->durable(n));
        m->state = BROKER_RELEASED;
        broker_send_id(b, TN_MQTT_PUBREL, m->id);
        return;
    default:
        CHECK(packet->type == TN_MQTT_PUBCOMP && m->state == BROKER_RELEASED);
        CHECK(b->forgotten(m->id));
        m->state = BROKER_DONE;
        return;
    }
}

/* The place of a filter, or a free one. */
static inline char *broker_filter(struct broker *b, const char *filter)
{
    char *free_one = NULL;
    for (int i = 0; i < BROKER_FILTERS_MAX; i++) {
        if (strcmp(b->filters[i], filter) == 0) {
            return b->filters[i];
        }
        free_one = b->filters[i][0] == 0 && !free_one ? b->filters[i] : free_one;
    }
    CHECK(free_one != NULL);
    return free_one;
}

/* SUBSCRIBE and UNSUBSCRIBE, of one filter each. */
static inline void broker_on_ask(struct broker *b, const struct tn_mqtt_packet *packet)
{
    char filter[BROKER_FILTER_SIZE] = {0};
    struct tn_mqtt_wish wish = {0};
    struct tn_bytes rest = packet->payload;
    bool leave = packet->type == TN_MQTT_UNSUBSCRIBE;
    CHECK(tn_mqtt_wish_next(packet->type, &rest, &wish) && rest.size == 0);
    CHECK(wish.filter.size < sizeof filter);
    memcpy(filter, wish.filter.data, wish.filter.size);
    (void)snprintf(broker_filter(b, filter), BROKER_FILTER_SIZE, "%s", leave ? "" : filter);
    b->subscribed = b->subscribed || !leave;
    b->asked_count += !leave;
    bool code = !leave || b->version == TN_MQTT_V5;
    broker_send(b, &(struct tn_mqtt_packet){
                       .type = leave ? TN_MQTT_UNSUBACK : TN_MQTT_SUBACK,
                       .id = packet->id,
                       .payload = {(const unsigned char *)(leave ? "\0" : "\2"), code}});
}

static inline void broker_on_packet(struct broker *b, const struct tn_mqtt_packet *packet)
{
    CHECK(b->connected || packet->type == TN_MQTT_CONNECT);
    switch ((int)packet->type) {
    case TN_MQTT_CONNECT:
        broker_on_connect(b, packet);
        return;
    case TN_MQTT_SUBSCRIBE:
    case TN_MQTT_UNSUBSCRIBE:
        broker_on_ask(b, packet);
        return;
    case TN_MQTT_PINGREQ:
        broker_send(b, &(struct tn_mqtt_packet){.type = TN_MQTT_PINGRESP});
        return;
    case TN_MQTT_DISCONNECT:
        CHECK(packet->reason == TN_MQTT_SUCCESS);
        b->connected = false;
        return;
    default:
        broker_on_ack(b, packet);
        return;
    }
}

/* Reads whole packets of what came. */
static inline void broker_read(struct broker *b)
{
    size_t at = 0;
    for (;;) {
        struct tn_mqtt_packet packet = {0};
        struct tn_err err;
        struct tn_bytes rest = {b->in.data + at, b->in.size - at};
        enum tn_mqtt_version version = b->version ? b->version : TN_MQTT_V5;
        tn_rc rc = tn_mqtt_decode(version, rest, &packet, &err);
        if (rc == TN_AGAIN) {
            break;
        }
        CHECK_OK(rc, err);
        broker_on_packet(b, &packet);
        at += packet.size;
    }
    memmove(b->in.data, b->in.data + at, b->in.size - at);
    b->in.size -= at;
}

static inline void broker_cut(struct broker *b)
{
    b->connected = false;
    b->in.size = 0;
    b->out.size = 0;
}

static inline void broker_init(struct broker *b, uint32_t message_count, uint64_t seed)
{
    memset(b, 0, sizeof *b);
    b->random = seed;
    b->window = 10;
    b->message_count = message_count;
    for (uint32_t i = 0; i < message_count; i++) {
        b->messages[i].qos =
            (unsigned char)(random_below(&b->random, 8) == 0 ? 0 : 1 + random_below(&b->random, 2));
    }
    tn_buf_init(&b->in, b->in_memory, BROKER_PIPE);
    tn_buf_init(&b->out, b->out_memory, BROKER_PIPE);
}
