/* MQTT: any bytes as packets, and as what a broker sends to a session. What decodes is encoded, and
 * decodes to the same; a session reads on or says why not, keeps its bounds, and sends only lawful
 * packets, and no acknowledgement of what isn't durable. What restores is saved as it was.
 *
 * The first byte: 1 = 5.0, 2 = a session, 4 = it's accepted, 8 = a text to restore; the rest of it
 * decides how bytes come, what is taken, and when it gets durable. */
#include "base/check.h"
#include "fuzz/fuzz.h"
#include "ingest/mqtt_session.h"
#include "random.h"

enum { BODY_MAX = 1 << 16, INPUT_SIZE = 160, ARENA_SIZE = 1 << 14, PARTS_MAX = 8 };

static struct tn_err err;
static unsigned char written[2 * BODY_MAX + 64];

/* ---- packets ---- */

static void check_views(struct tn_bytes whole, struct tn_bytes part)
{
    TN_CHECK(part.size == 0 || (part.data >= whole.data && part.size <= whole.size &&
                                part.data + part.size <= whole.data + whole.size));
}

static void check_names(const struct tn_mqtt_packet *packet)
{
    struct tn_bytes parts[PARTS_MAX];
    struct tn_mqtt_wish wish;
    struct tn_bytes rest = packet->payload;
    if (packet->topic.size > 0) {
        TN_CHECK(tn_mqtt_topic_parts(packet->topic, parts, PARTS_MAX) > 0);
        TN_CHECK(tn_mqtt_topic_matches(packet->topic, packet->topic));
    }
    if (packet->type == TN_MQTT_SUBSCRIBE || packet->type == TN_MQTT_UNSUBSCRIBE) {
        while (tn_mqtt_wish_next(packet->type, &rest, &wish)) {
            tn_rc rc = tn_mqtt_filter_check(wish.filter, &err);
            TN_CHECK(rc == TN_OK);
            (void)tn_mqtt_topic_matches(wish.filter, tn_bytes_of("a/b/c"));
        }
        TN_CHECK(rest.size == 0);
    }
}

static void check_properties(struct tn_bytes rest)
{
    struct tn_mqtt_property property;
    while (tn_mqtt_property_next(&rest, &property)) {
        check_views(rest.size > 0 ? rest : property.text, (struct tn_bytes){0});
    }
    TN_CHECK(rest.size == 0);
}

static void check_same(const struct tn_mqtt_packet *a, const struct tn_mqtt_packet *b)
{
    TN_CHECK(a->type == b->type && a->id == b->id && a->reason == b->reason && a->qos == b->qos);
    TN_CHECK(a->dup == b->dup && a->retain == b->retain);
    TN_CHECK(a->session_present == b->session_present);
    TN_CHECK(tn_bytes_equal(a->topic, b->topic));
    TN_CHECK(tn_bytes_equal(a->payload, b->payload));
    TN_CHECK(tn_bytes_equal(a->properties, b->properties));
    TN_CHECK(tn_bytes_equal(a->connect.client_id, b->connect.client_id));
    TN_CHECK(tn_bytes_equal(a->connect.will_topic, b->connect.will_topic));
    TN_CHECK(tn_bytes_equal(a->connect.will_payload, b->connect.will_payload));
    TN_CHECK(tn_bytes_equal(a->connect.password, b->connect.password));
}

static void packets(enum tn_mqtt_version version, struct tn_bytes rest)
{
    while (rest.size > 0) {
        struct tn_mqtt_packet packet = {0};
        struct tn_mqtt_packet again = {0};
        struct tn_buf out;
        tn_rc rc = tn_mqtt_decode_begin(version, rest, &packet, &err);
        TN_CHECK(rc != TN_OK || packet.type == TN_MQTT_PUBLISH || packet.size <= rest.size);
        rc = tn_mqtt_decode(version, rest, &packet, &err);
        if (rc) {
            TN_CHECK(rc == TN_AGAIN || (packet.fault >= TN_MQTT_FAILURE && err.text[0] != 0));
            return;
        }
        TN_CHECK(packet.size >= 2 && packet.size <= rest.size);
        check_views(rest, packet.payload);
        check_views(rest, packet.properties);
        check_names(&packet);
        check_properties(packet.properties);
        tn_buf_init(&out, written, sizeof written);
        enum tn_mqtt_version spoken =
            packet.type == TN_MQTT_CONNECT ? packet.connect.version : version;
        bool refusal = packet.type == TN_MQTT_CONNACK && packet.reason != 0;
        rc = tn_mqtt_encode(spoken, &packet, &out, &err);
        TN_CHECK(rc == TN_OK);
        rc = tn_mqtt_decode(spoken, tn_buf_bytes(&out), &again, &err);
        TN_CHECK(rc == TN_OK && again.size == out.size);
        TN_CHECK(again.size <= packet.size || refusal);
        check_same(&packet, &again);
        rest.data += packet.size;
        rest.size -= packet.size;
    }
}

/* ---- a session ---- */

static const struct tn_mqtt_wish wish = {.filter = {(const unsigned char *)"a/#", 3}, .qos = 2};

static struct tn_mqtt_spec spec_of(enum tn_mqtt_version version)
{
    return (struct tn_mqtt_spec){.version = version,
                                 .client_id = tn_bytes_of("fuzz"),
                                 .filters = &wish,
                                 .filter_count = 1,
                                 .keep_alive_s = 1,
                                 .in_flight = 3,
                                 .known_max = 5,
                                 .answer_ms_max = 1000,
                                 .wait_ms_min = 1,
                                 .wait_ms_max = 10,
                                 .input_size = INPUT_SIZE};
}

static void start(struct tn_mqtt_session *s, const struct tn_mqtt_spec *spec)
{
    static _Alignas(16) unsigned char memory[ARENA_SIZE];
    struct tn_arena arena;
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_mqtt_session_init(s, spec, &arena, &err);
    TN_CHECK(rc == TN_OK);
}

static void send_all(struct tn_mqtt_session *s, int64_t now_ms)
{
    struct tn_buf out;
    tn_buf_init(&out, written, sizeof written);
    bool more = tn_mqtt_session_output(s, now_ms, &out);
    TN_CHECK(!more && !out.overflow);
    size_t at = 0;
    while (at < out.size) {
        struct tn_mqtt_packet packet = {0};
        tn_rc rc = tn_mqtt_decode(s->version, (struct tn_bytes){out.data + at, out.size - at},
                                  &packet, &err);
        TN_CHECK(rc == TN_OK);
        bool receipt = packet.type == TN_MQTT_PUBACK || packet.type == TN_MQTT_PUBREC;
        TN_CHECK(!receipt || s->durable > 0);
        at += packet.size;
    }
}

static void connect(struct tn_mqtt_session *s, bool accepted, int64_t now_ms)
{
    static const unsigned char yes[2][5] = {{0x20, 2, 0, 0}, {0x20, 3, 0, 0, 0}};
    struct tn_mqtt_event event;
    bool open = false;
    bool five = s->version == TN_MQTT_V5;
    tn_rc rc = tn_mqtt_session_tick(s, now_ms, &open, &err);
    TN_CHECK(rc == TN_OK && open);
    tn_mqtt_session_opened(s, now_ms);
    send_all(s, now_ms);
    if (accepted) {
        rc = tn_mqtt_session_next(s, (struct tn_bytes){yes[five], five ? 5 : 4}, now_ms, &event,
                                  &err);
        TN_CHECK(rc == TN_OK && event.kind == TN_MQTT_CONNECTED);
        send_all(s, now_ms);
    }
}

static void events(struct tn_mqtt_session *s, struct tn_bytes body, uint64_t random)
{
    size_t begin = 0;
    size_t end = 0;
    int64_t now_ms = 0;
    while (end < body.size || begin < end) {
        struct tn_mqtt_event event;
        bool open = false;
        size_t room = INPUT_SIZE - (end - begin);
        size_t left = body.size - end;
        uint32_t part = (uint32_t)(left < room ? left : room);
        end += part > 0 ? 1 + random_below(&random, part) : 0;
        tn_rc rc = tn_mqtt_session_next(s, (struct tn_bytes){body.data + begin, end - begin},
                                        now_ms, &event, &err);
        if (rc == TN_OK && event.kind == TN_MQTT_MESSAGE && random_below(&random, 3) > 0) {
            uint64_t place = s->place;
            TN_CHECK(tn_mqtt_session_admit(s, &event) == place + 1);
            begin += event.eaten;
        } else if (rc == TN_OK && event.kind != TN_MQTT_MESSAGE) {
            TN_CHECK(event.eaten > 0);
            begin += event.eaten;
        } else if (rc == TN_AGAIN && !s->held && part == 0) {
            TN_CHECK(end == body.size); /* it must not want more than its buffer */
            return;
        } else if (rc != TN_AGAIN && rc != TN_OK) {
            TN_CHECK(s->state == TN_MQTT_CLOSING && err.text[0] != 0);
        }
        TN_CHECK(begin <= end && s->known_count <= s->spec->known_max);
        if (random_below(&random, 4) == 0 || s->held) {
            tn_mqtt_session_durable(s, s->place);
        }
        send_all(s, now_ms);
        now_ms += random_below(&random, 400);
        rc = tn_mqtt_session_tick(s, now_ms, &open, &err);
        if (s->state == TN_MQTT_CLOSING || rc) {
            begin = end; /* what came on a connection ends with it */
            tn_mqtt_session_lost(s, now_ms);
            now_ms += 20;
            connect(s, false, now_ms);
        }
    }
}

static void restore(struct tn_mqtt_session *s, const struct tn_mqtt_spec *spec,
                    struct tn_bytes text)
{
    static char texts[2][256];
    struct tn_buf saved[2];
    tn_rc rc = tn_mqtt_session_restore(s, text, &err);
    if (rc) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        tn_buf_init(&saved[i], texts[i], sizeof texts[i]);
        (void)tn_mqtt_session_save(s, &saved[i]);
        TN_CHECK(!saved[i].overflow && saved[i].size <= text.size);
        start(s, spec);
        rc = tn_mqtt_session_restore(s, tn_buf_bytes(&saved[i]), &err);
        TN_CHECK(rc == TN_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > BODY_MAX) {
        return 0;
    }
    struct tn_bytes body = {data + 1, size - 1};
    enum tn_mqtt_version version = data[0] & 1 ? TN_MQTT_V5 : TN_MQTT_V3;
    struct tn_mqtt_spec spec = spec_of(version);
    struct tn_mqtt_session session;
    if ((data[0] & 10) == 0) {
        packets(version, body);
        return 0;
    }
    start(&session, &spec);
    if (data[0] & 8) {
        restore(&session, &spec, body);
    } else {
        connect(&session, (data[0] & 4) != 0, 0);
        events(&session, body, data[0] >> 4);
    }
    return 0;
}
