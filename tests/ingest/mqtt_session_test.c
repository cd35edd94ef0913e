/* mqtt_session, packet by packet. */
#include "mqtt_session_world.h"

enum { PACKET_MAX = 4096 };

/* ---- what is given to it, and what it says ---- */

static void send_to_client(const struct tn_mqtt_packet *packet)
{
    static unsigned char memory[PACKET_MAX];
    struct tn_buf out;
    tn_buf_init(&out, memory, sizeof memory);
    tn_rc rc = tn_mqtt_encode(session.version, packet, &out, &err);
    CHECK_OK(rc, err);
    give(tn_buf_bytes(&out));
}

/* One event; what it doesn't need to see twice is eaten. */
static enum tn_mqtt_event_kind next_event(void)
{
    tn_rc rc = next();
    CHECK_OK(rc, err);
    if (event.kind != TN_MQTT_MESSAGE) {
        eat(event.eaten);
    }
    return event.kind;
}

/* What the session sends now: "CONNECT", "PUBACK 7 PUBREC 8", "". */
static const char *sent(void)
{
    static unsigned char memory[OUT_SIZE];
    static char text[OUT_SIZE];
    struct tn_buf out;
    struct tn_buf said;
    tn_buf_init(&out, memory, sizeof memory);
    tn_buf_init(&said, text, sizeof text - 1);
    bool more = tn_mqtt_session_output(&session, now_ms, &out);
    CHECK(!more);
    for (size_t at = 0; at < out.size;) {
        struct tn_mqtt_packet packet;
        tn_rc rc = tn_mqtt_decode(session.version, (struct tn_bytes){out.data + at, out.size - at},
                                  &packet, &err);
        CHECK_OK(rc, err);
        tn_buf_format(&said, "%s%s", said.size > 0 ? " " : "", tn_mqtt_type_text(packet.type));
        if (packet.id) {
            tn_buf_format(&said, " %u", packet.id);
        }
        if (packet.reason) {
            tn_buf_format(&said, " 0x%02x", packet.reason);
        }
        at += packet.size;
    }
    text[said.size] = 0;
    return text;
}

static bool sent_is(const char *expected)
{
    const char *got = sent();
    if (strcmp(got, expected) != 0) {
        (void)fprintf(stderr, "'%s' and not '%s'\n", got, expected);
    }
    return strcmp(got, expected) == 0;
}

static void open_stream(void)
{
    bool open = false;
    now_ms = tn_mqtt_session_due(&session) > now_ms ? tn_mqtt_session_due(&session) : now_ms;
    tn_rc rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK_OK(rc, err);
    CHECK(open && session.state == TN_MQTT_OPEN);
    input_size = 0;
    tn_mqtt_session_opened(&session, now_ms);
    CHECK(sent_is("CONNECT"));
}

static void connect_to(bool present)
{
    open_stream();
    send_to_client(&(struct tn_mqtt_packet){.type = TN_MQTT_CONNACK, .session_present = present});
    CHECK(next_event() == TN_MQTT_CONNECTED && event.resumed == present);
}

static void become_ready(bool present)
{
    connect_to(present);
    CHECK(sent_is("SUBSCRIBE 1"));
    send_to_client(
        &(struct tn_mqtt_packet){.type = TN_MQTT_SUBACK, .id = 1, .payload = tn_bytes_of("\2")});
    CHECK(next_event() == TN_MQTT_SUBSCRIBED && event.reason == 2);
    CHECK(session.state == TN_MQTT_READY);
}

static void get_ready(void)
{
    become_ready(false);
}

static void publish(unsigned char qos, uint16_t id, const char *payload, bool dup)
{
    send_to_client(&(struct tn_mqtt_packet){.type = TN_MQTT_PUBLISH,
                                            .qos = qos,
                                            .id = id,
                                            .dup = dup,
                                            .topic = tn_bytes_of("plant/1/data"),
                                            .payload = tn_bytes_of(payload)});
}

static void release(uint16_t id)
{
    send_to_client(&(struct tn_mqtt_packet){.type = TN_MQTT_PUBREL, .id = id});
}

/* ---- what is done and heard in one step ---- */

static void begin(enum tn_mqtt_version version)
{
    spec = plain_spec(version);
    start();
    get_ready();
}

static void come_back(void)
{
    tn_mqtt_session_lost(&session, now_ms);
    become_ready(true);
}

static bool takes(unsigned char qos, uint16_t id, const char *payload)
{
    publish(qos, id, payload, false);
    bool is_message = next_event() == TN_MQTT_MESSAGE;
    if (is_message) {
        (void)admit();
    }
    return is_message;
}

static bool passes_over(unsigned char qos, uint16_t id, const char *payload, bool dup)
{
    publish(qos, id, payload, dup);
    return next_event() == TN_MQTT_NOTHING;
}

static enum tn_mqtt_event_kind after_release(uint16_t id)
{
    release(id);
    return next_event();
}

static bool durable_sends(uint64_t place, const char *expected)
{
    tn_mqtt_session_durable(&session, place);
    return sent_is(expected);
}

/* ---- packet by packet ---- */

static const enum tn_mqtt_version versions[] = {TN_MQTT_V3, TN_MQTT_V5};

/* Messages are acknowledged in the order in which they came, and not before they are durable. */
static void acknowledgements_wait_until_it_is_durable(void)
{
    for (size_t v = 0; v < COUNT(versions); v++) {
        begin(versions[v]);
        publish(1, 7, "a", false);
        publish(2, 8, "b", false);
        publish(0, 0, "c", false);
        publish(1, 9, "d", false);
        for (uint64_t place = 1; place <= 4; place++) {
            CHECK(next_event() == TN_MQTT_MESSAGE);
            CHECK(admit() == place);
        }
        CHECK(sent_is(""));
        CHECK(durable_sends(1, "PUBACK 7"));
        CHECK(durable_sends(3, "PUBREC 8"));
        CHECK(durable_sends(4, "PUBACK 9"));
        CHECK(after_release(8) == TN_MQTT_RELEASED && event.id == 8 && event.place == 5);
        CHECK(sent_is(""));
        CHECK(durable_sends(5, "PUBCOMP 8"));
        CHECK(after_release(8) == TN_MQTT_NOTHING);
        CHECK(sent_is(versions[v] == TN_MQTT_V5 ? "PUBCOMP 8 0x92" : "PUBCOMP 8"));
    }
}

static void a_message_that_is_not_taken_is_offered_again(void)
{
    begin(TN_MQTT_V5);
    publish(1, 7, "payload", false);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(next_event() == TN_MQTT_MESSAGE);
        CHECK(tn_bytes_equal(event.message.payload, tn_bytes_of("payload")));
        CHECK(tn_bytes_equal(event.message.topic, tn_bytes_of("plant/1/data")));
    }
    CHECK(admit() == 1 && session.known_count == 1);
    CHECK(durable_sends(1, "PUBACK 7") && session.known_count == 0);
}

static void a_repetition_is_acknowledged_and_not_offered(void)
{
    begin(TN_MQTT_V3);
    CHECK(takes(2, 8, "b"));
    CHECK(passes_over(2, 8, "b", true));
    CHECK(sent_is(""));
    CHECK(durable_sends(1, "PUBREC 8"));
    CHECK(passes_over(2, 8, "b", true));
    CHECK(sent_is("PUBREC 8"));
    tn_mqtt_session_lost(&session, now_ms);
    connect_to(true);
    CHECK(sent_is("SUBSCRIBE 1"));
    CHECK(passes_over(2, 8, "b", true));
    CHECK(sent_is("PUBREC 8"));
    publish(2, 8, "not b", false); /* the broker gave b up */
    CHECK(next_event() == TN_MQTT_MESSAGE);
    CHECK(admit() == 2);
    CHECK(sent_is(""));
    CHECK(durable_sends(2, "PUBREC 8"));
}

static void what_was_saved_is_known_after_a_restart(void)
{
    char text[256];
    struct tn_buf saved;
    begin(TN_MQTT_V5);
    for (uint16_t id = 1; id <= 3; id++) {
        CHECK(takes(2, id, "b"));
    }
    CHECK(durable_sends(3, "PUBREC 1 PUBREC 2 PUBREC 3"));
    CHECK(after_release(2) == TN_MQTT_RELEASED);
    tn_buf_init(&saved, text, sizeof text);
    CHECK(tn_mqtt_session_save(&session, &saved) == 4);
    CHECK(!saved.overflow && saved.size == 2 * 10 + 1);

    start();
    tn_rc rc = tn_mqtt_session_restore(&session, tn_buf_bytes(&saved), &err);
    CHECK_OK(rc, err);
    connect_to(true);
    CHECK(!event.stranger && sent_is("SUBSCRIBE 1"));
    CHECK(passes_over(2, 1, "b", true));
    publish(2, 2, "b", false); /* a new message: the id was free */
    CHECK(next_event() == TN_MQTT_MESSAGE);
    (void)admit();
    CHECK(after_release(3) == TN_MQTT_RELEASED && event.id == 3);
    CHECK(sent_is("PUBREC 1"));
    CHECK(durable_sends(2, "PUBREC 2 PUBCOMP 3"));
}

/* The broker made a new session, its answer was lost, and the next one says that there is one. */
static void a_message_without_the_mark_of_a_repetition_is_a_new_one(void)
{
    begin(TN_MQTT_V3);
    CHECK(takes(2, 1, "b"));
    publish(2, 1, "b", false); /* on one connection the id decides */
    CHECK(next_event() == TN_MQTT_NOTHING);
    CHECK(durable_sends(1, "PUBREC 1"));
    tn_mqtt_session_lost(&session, now_ms);
    connect_to(true);
    CHECK(sent_is("SUBSCRIBE 1"));
    publish(2, 1, "b", false);
    CHECK(next_event() == TN_MQTT_MESSAGE);
    CHECK(admit() == 2);
    CHECK(passes_over(2, 1, "b", true));
    CHECK(sent_is(""));
    CHECK(durable_sends(2, "PUBREC 1"));
}

static void an_id_that_only_some_know_is_offered_once_more(void)
{
    begin(TN_MQTT_V5);
    publish(2, 5, "b", false);
    CHECK(next_event() == TN_MQTT_MESSAGE && !event.message.again);
    uint32_t hash = event.message.hash;
    start();
    tn_rc rc = tn_mqtt_session_recall(&session, 5, hash, true, &err);
    CHECK_OK(rc, err);
    connect_to(true);
    (void)sent();
    publish(2, 5, "b", true);
    CHECK(next_event() == TN_MQTT_MESSAGE && event.message.again);
    (void)admit();
    CHECK(passes_over(2, 5, "b", true));
}

static void what_was_not_saved_is_refused(void)
{
    static const char *const texts[] = {
        " ",
        "5",
        "5.",
        "5.1234567",
        " 5.12345678",
        "0.12345678",
        "5.123456789",
        "5.12345678 ",
        "5.A2345678",
        "65536.12345678",
        "5.12345678,6.12345678",
        "x",
        "5.12345678  6.12345678",
        "5.1234567x",
        "000005.12345678",
    };
    spec = plain_spec(TN_MQTT_V5);
    for (size_t i = 0; i < COUNT(texts); i++) {
        start();
        tn_rc rc = tn_mqtt_session_restore(&session, tn_bytes_of(texts[i]), &err);
        CHECK(rc == TN_INVALID && strstr(err.text, "MQTT session: from byte") != NULL);
    }
    start();
    tn_rc rc = tn_mqtt_session_restore(
        &session, tn_bytes_of("1.00000000 2.00000000 3.00000000 4.00000000 5.00000000"), &err);
    CHECK(rc == TN_AGAIN);
    start();
    rc = tn_mqtt_session_restore(&session, tn_bytes_of(""), &err);
    CHECK(rc == TN_OK && session.known_count == 0);
}

/* The broker lost the session: nothing is subscribed before it's durable that ids mean nothing. */
static void a_forgotten_session_is_cleared_before_messages_come(void)
{
    begin(TN_MQTT_V5);
    CHECK(takes(2, 1, "b"));
    tn_mqtt_session_lost(&session, now_ms);
    connect_to(false);
    CHECK(event.ids_gone && event.place == 2 && session.state == TN_MQTT_CLEAR);
    CHECK(sent_is(""));
    publish(2, 1, "b", false); /* of a broker that subscribes by itself */
    tn_rc rc = next();
    CHECK(rc == TN_AGAIN && session.held);
    CHECK(durable_sends(1, "") && session.state == TN_MQTT_CLEAR);
    CHECK(durable_sends(2, "SUBSCRIBE 1"));
    CHECK(next_event() == TN_MQTT_MESSAGE);
    CHECK(admit() == 3);
}

static void reading_is_held_when_too_much_is_in_flight(void)
{
    begin(TN_MQTT_V3);
    for (uint16_t id = 1; id <= 5; id++) {
        publish(id % 2 ? 2 : 1, id, "b", false);
    }
    for (uint16_t id = 1; id <= 4; id++) {
        CHECK(next_event() == TN_MQTT_MESSAGE);
        (void)admit();
    }
    tn_rc rc = next();
    CHECK(rc == TN_AGAIN && session.held);
    CHECK(durable_sends(1, "PUBREC 1"));
    rc = next();
    CHECK(rc == TN_AGAIN && session.held);
    now_ms += 1000000; /* who doesn't read can't tell whether the other lives */
    bool open = false;
    session.pings_open = 1;
    rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK_OK(rc, err);
    session.pings_open = 0;
    CHECK(durable_sends(2, "PUBACK 2 PINGREQ"));
    CHECK(next_event() == TN_MQTT_MESSAGE);
    (void)admit();
    CHECK(!session.held);
}

static void pong(void)
{
    send_to_client(&(struct tn_mqtt_packet){.type = TN_MQTT_PINGRESP});
    CHECK(next_event() == TN_MQTT_NOTHING);
}

/* Four ids wait for their release, which stands behind two more messages: those come again. */
static void messages_of_a_wider_window_come_on_another_connection(void)
{
    for (size_t v = 0; v < COUNT(versions); v++) {
        begin(versions[v]);
        for (uint16_t id = 1; id <= 4; id++) {
            CHECK(takes(2, id, "b"));
        }
        tn_mqtt_session_durable(&session, 4);
        publish(2, 5, "b", false);
        publish(1, 6, "b", false);
        tn_rc rc = next();
        CHECK(rc == TN_AGAIN && session.held);
        CHECK(sent_is("PUBREC 1 PUBREC 2 PUBREC 3 PUBREC 4"));
        CHECK(next_event() == TN_MQTT_NOTHING && session.overruns == 1);
        CHECK(sent_is("PINGREQ"));
        CHECK(after_release(1) == TN_MQTT_NOTHING); /* 6: room or not, it keeps its place */
        CHECK(next_event() == TN_MQTT_RELEASED);
        pong();
        for (uint16_t id = 2; id <= 4; id++) {
            CHECK(after_release(id) == TN_MQTT_RELEASED);
        }
        CHECK(durable_sends(7, "PUBCOMP 1 PUBCOMP 2 PUBCOMP 3") && session.state == TN_MQTT_READY);
        CHECK(durable_sends(8, "PUBCOMP 4 DISCONNECT") && session.state == TN_MQTT_CLOSING);
        tn_mqtt_session_lost(&session, now_ms);
        CHECK(tn_mqtt_session_due(&session) == now_ms);
        become_ready(true);
        publish(2, 5, "b", true);
        CHECK(next_event() == TN_MQTT_MESSAGE);
    }
}

/* Ids of which the broker doesn't speak any more don't block those that come, and what was saved
 * of them is cleared with a session that is forgotten. */
static void ids_that_the_broker_gave_up_make_room(void)
{
    begin(TN_MQTT_V3);
    for (uint16_t id = 1; id <= 4; id++) {
        CHECK(takes(2, id, "b"));
    }
    tn_mqtt_session_durable(&session, 4);
    come_back();
    CHECK(passes_over(1, 9, "c", true) && session.overruns == 1);
    CHECK(passes_over(2, 4, "b", true));
    CHECK(sent_is("PUBREC 4 PINGREQ"));
    CHECK(after_release(4) == TN_MQTT_RELEASED);
    CHECK(session.known_count == 4);
    CHECK(durable_sends(5, "PUBCOMP 4") && session.known_count == 3);
    pong();
    CHECK(sent_is("DISCONNECT") && session.known_count == 0);
    tn_mqtt_session_lost(&session, now_ms);
    connect_to(false);
    CHECK(event.ids_gone && session.state == TN_MQTT_CLEAR);
}

static void an_answer_is_for_the_message_that_it_was_made_for(void)
{
    begin(TN_MQTT_V5);
    CHECK(takes(2, 8, "b"));
    CHECK(takes(2, 8, "another"));
    CHECK(durable_sends(1, ""));
    CHECK(after_release(9) == TN_MQTT_NOTHING);
    CHECK(takes(2, 9, "c"));
    CHECK(durable_sends(3, "PUBREC 8 PUBCOMP 9 0x92 PUBREC 9"));
    CHECK(passes_over(2, 9, "c", true));
}

/* mosquitto 2.0.11 does so after a restart: it has forgotten that it sent the release. */
static void a_repetition_after_the_release_is_no_new_message(void)
{
    begin(TN_MQTT_V5);
    CHECK(takes(2, 8, "b"));
    CHECK(durable_sends(1, "PUBREC 8"));
    CHECK(after_release(8) == TN_MQTT_RELEASED);
    come_back();
    CHECK(passes_over(2, 8, "b", true));
    CHECK(after_release(8) == TN_MQTT_NOTHING);
    CHECK(durable_sends(2, "PUBCOMP 8") && session.known_count == 0);
}

static void filters_are_asked_for_and_left_one_by_one(void)
{
    spec = plain_spec(TN_MQTT_V5);
    spec.filter_count = 2;
    spec.leave = left;
    spec.leave_count = 1;
    start();
    connect_to(true);
    CHECK(event.stranger && session.state == TN_MQTT_AWAIT_SUBACK);
    CHECK(sent_is("UNSUBSCRIBE 1 SUBSCRIBE 2 SUBSCRIBE 3"));
    send_to_client(
        &(struct tn_mqtt_packet){.type = TN_MQTT_SUBACK, .id = 3, .payload = tn_bytes_of("\x87")});
    CHECK(next_event() == TN_MQTT_SUBSCRIBED && event.filter == 1 && event.reason == 0x87);
    send_to_client(&(struct tn_mqtt_packet){
        .type = TN_MQTT_UNSUBACK, .id = 1, .payload = {(const unsigned char *)"\x11", 1}});
    CHECK(next_event() == TN_MQTT_LEFT && event.filter == 0 && event.reason == 0x11);
    send_to_client(
        &(struct tn_mqtt_packet){.type = TN_MQTT_SUBACK, .id = 2, .payload = tn_bytes_of("\1")});
    CHECK(next_event() == TN_MQTT_SUBSCRIBED && event.filter == 0 && event.reason == 1);
    CHECK(session.state == TN_MQTT_READY);
    tn_mqtt_session_lost(&session, now_ms);
    connect_to(true);
    CHECK(!event.stranger);
    CHECK(sent_is("UNSUBSCRIBE 1 SUBSCRIBE 2 SUBSCRIBE 3"));
    send_to_client(
        &(struct tn_mqtt_packet){.type = TN_MQTT_SUBACK, .id = 1, .payload = tn_bytes_of("\1")});
    tn_rc rc = next();
    CHECK(rc == TN_INVALID && strstr(err.text, "SUBACK out of turn") != NULL);
    CHECK(sent_is("DISCONNECT 0x82"));
}

/* With a new session the broker has nothing that is to be left, and says nothing of it. */
static void an_answer_to_what_was_not_asked_is_out_of_turn(void)
{
    spec = plain_spec(TN_MQTT_V5);
    spec.leave = left;
    spec.leave_count = 1;
    start();
    connect_to(false);
    CHECK(sent_is("SUBSCRIBE 2"));
    send_to_client(&(struct tn_mqtt_packet){
        .type = TN_MQTT_UNSUBACK, .id = 1, .payload = {(const unsigned char *)"\0", 1}});
    tn_rc rc = next();
    CHECK(rc == TN_INVALID && strstr(err.text, "UNSUBACK out of turn") != NULL);
    CHECK(sent_is("DISCONNECT 0x82"));
}

static void pings_go_when_nothing_else_does_and_must_be_answered(void)
{
    bool open = false;
    begin(TN_MQTT_V3);
    int64_t begin = now_ms;
    CHECK(tn_mqtt_session_due(&session) == begin + 45000);
    now_ms = begin + 44999;
    tn_rc rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK(rc == TN_OK && sent_is(""));
    now_ms++;
    rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK(rc == TN_OK && sent_is("PINGREQ"));
    CHECK(tn_mqtt_session_due(&session) == now_ms + 10000);
    now_ms += 9000;
    send_to_client(&(struct tn_mqtt_packet){.type = TN_MQTT_PINGRESP});
    CHECK(next_event() == TN_MQTT_NOTHING);
    CHECK(tn_mqtt_session_due(&session) == now_ms - 9000 + 45000);
    now_ms += 36000;
    rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK(rc == TN_OK && sent_is("PINGREQ"));
    now_ms += 9999;
    rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK_OK(rc, err);
    now_ms++;
    rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    CHECK(rc == TN_IO && strstr(err.text, "no answer for 10000 ms") != NULL);
    CHECK(session.state == TN_MQTT_CLOSING && sent_is(""));
}

/* A message that nobody takes stands before the broker's answers. */
static void pings_go_while_nobody_takes_messages(void)
{
    bool open = false;
    begin(TN_MQTT_V5);
    send_to_client(&(struct tn_mqtt_packet){
        .type = TN_MQTT_PUBLISH, .qos = 1, .id = 1, .topic = tn_bytes_of("plant/1/data")});
    for (int i = 0; i < 50; i++) {
        CHECK(next_event() == TN_MQTT_MESSAGE);
        int64_t due = tn_mqtt_session_due(&session);
        CHECK(due <= now_ms + 45000);
        now_ms = due - 1;
        CHECK(next_event() == TN_MQTT_MESSAGE); /* it lives: its bytes are there */
        now_ms++;
        tn_rc rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
        CHECK_OK(rc, err);
        (void)sent();
        CHECK(now_ms - session.sent_ms < 60000);
    }
    CHECK(session.pings_open > 5);
}

static void the_broker_decides_about_the_keep_alive(void)
{
    unsigned char memory[16];
    struct tn_buf properties;
    spec = plain_spec(TN_MQTT_V5);
    start();
    open_stream();
    tn_buf_init(&properties, memory, sizeof memory);
    tn_mqtt_put_number(&properties, TN_MQTT_SERVER_KEEP_ALIVE, 8);
    tn_mqtt_put_number(&properties, TN_MQTT_SESSION_EXPIRY, 3600);
    send_to_client(
        &(struct tn_mqtt_packet){.type = TN_MQTT_CONNACK, .properties = tn_buf_bytes(&properties)});
    CHECK(next_event() == TN_MQTT_CONNECTED && event.expiry_s == 3600);
    CHECK(tn_mqtt_session_due(&session) == now_ms + 6000);
}

static void pauses_double_up_to_the_longest_and_differ(void)
{
    spec = plain_spec(TN_MQTT_V5);
    start();
    CHECK(tn_mqtt_session_due(&session) == INT64_MIN);
    int64_t whole = spec.wait_ms_min;
    for (uint32_t i = 0; i < 40; i++) {
        open_stream();
        tn_mqtt_session_lost(&session, now_ms);
        int64_t pause = tn_mqtt_session_due(&session) - now_ms;
        CHECK(pause >= whole / 2 && pause <= whole);
        whole = whole * 2 < spec.wait_ms_max ? whole * 2 : spec.wait_ms_max;
    }
    get_ready();
    now_ms += spec.wait_ms_max - 1; /* not long enough for a good one */
    tn_mqtt_session_lost(&session, now_ms);
    CHECK(tn_mqtt_session_due(&session) - now_ms >= spec.wait_ms_max / 2);
    become_ready(true);
    now_ms += spec.wait_ms_max;
    tn_mqtt_session_lost(&session, now_ms);
    CHECK(tn_mqtt_session_due(&session) - now_ms <= spec.wait_ms_min);
}

static void a_refusal_is_told_in_words(void)
{
    static const struct {
        enum tn_mqtt_version version;
        unsigned char reason;
        bool lasting;
        const char *why;
    } cases[] = {
        {TN_MQTT_V3, 0x86, true, "refuses the connection: user name or password is wrong (0x86)"},
        {TN_MQTT_V5, 0x87, true, "not authorized (0x87)"},
        {TN_MQTT_V5, 0x88, false, "the broker is not available (0x88)"},
        {TN_MQTT_V5, 0x9D, true, "the server has moved"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        spec = plain_spec(cases[i].version);
        start();
        open_stream();
        send_to_client(
            &(struct tn_mqtt_packet){.type = TN_MQTT_CONNACK, .reason = cases[i].reason});
        tn_rc rc = next();
        CHECK(rc == TN_IO && strstr(err.text, cases[i].why) != NULL);
        CHECK(session.lasting == cases[i].lasting && session.reason == cases[i].reason);
        CHECK(session.state == TN_MQTT_CLOSING && sent_is(""));
    }
    unsigned char memory[32];
    struct tn_buf properties;
    begin(TN_MQTT_V5);
    tn_buf_init(&properties, memory, sizeof memory);
    tn_mqtt_put_text(&properties, TN_MQTT_REASON_STRING, tn_bytes_of("bye"));
    send_to_client(&(struct tn_mqtt_packet){
        .type = TN_MQTT_DISCONNECT, .reason = 0x8E, .properties = tn_buf_bytes(&properties)});
    tn_rc rc = next();
    CHECK(rc == TN_IO);
    CHECK(strstr(err.text, "another client connected with this client id (0x8e): bye") != NULL);
}

static void an_older_broker_is_spoken_to_in_its_version(void)
{
    spec = plain_spec(TN_MQTT_ANY);
    start();
    open_stream();
    CHECK(session.version == TN_MQTT_V5);
    give((struct tn_bytes){(const unsigned char *)"\x20\x02\x00\x01", 4}); /* as 3.1.1 says no */
    tn_rc rc = next();
    CHECK(rc == TN_IO && !session.lasting);
    tn_mqtt_session_lost(&session, now_ms);
    get_ready();
    CHECK(session.version == TN_MQTT_V3);

    start();
    open_stream();
    tn_mqtt_session_lost(&session, now_ms); /* or says nothing at all */
    CHECK(session.version == TN_MQTT_V3);
    open_stream();
    tn_mqtt_session_lost(&session, now_ms);
    CHECK(session.version == TN_MQTT_V5);
}

static void a_stop_says_what_is_durable_and_goodbye(void)
{
    begin(TN_MQTT_V5);
    CHECK(takes(1, 1, "a"));
    CHECK(takes(1, 2, "b"));
    tn_mqtt_session_durable(&session, 1);
    tn_mqtt_session_stop(&session);
    CHECK(sent_is("PUBACK 1 DISCONNECT"));
    CHECK(passes_over(1, 3, "c", false) && input_size == 0);
    tn_mqtt_session_lost(&session, now_ms);
    CHECK(session.state == TN_MQTT_STOPPED && tn_mqtt_session_due(&session) == INT64_MAX);
}

static void packets_out_of_turn_end_the_connection(void)
{
    static const struct tn_mqtt_packet packets[] = {
        {.type = TN_MQTT_PUBACK, .id = 1},
        {.type = TN_MQTT_CONNACK},
        {.type = TN_MQTT_PINGREQ},
        {.type = TN_MQTT_CONNECT, .connect = {.version = TN_MQTT_V5}},
        {.type = TN_MQTT_AUTH, .reason = 0x18},
        {.type = TN_MQTT_UNSUBACK, .id = 1, .payload = {(const unsigned char *)"\0", 1}},
    };
    for (size_t i = 0; i < COUNT(packets); i++) {
        begin(TN_MQTT_V5);
        send_to_client(&packets[i]);
        tn_rc rc = next();
        CHECK(rc == TN_INVALID && strstr(err.text, "out of turn") != NULL);
        CHECK(sent_is("DISCONNECT 0x82"));
    }
    begin(TN_MQTT_V5);
    give((struct tn_bytes){(const unsigned char *)"\x41\x02", 2});
    tn_rc rc = next();
    CHECK(rc == TN_INVALID && strstr(err.text, "PUBACK, byte 0: flags are 0x1") != NULL);
    CHECK(sent_is("DISCONNECT 0x81"));
    start();
    open_stream();
    publish(0, 0, "early", false);
    rc = next();
    CHECK(rc == TN_INVALID && sent_is(""));
}

/* ---- long messages ---- */

/* Feeds a packet whose bytes come in pieces through a buffer of INPUT_SIZE, as a source does. */
static uint32_t feed(struct tn_bytes bytes, uint64_t *random, struct tn_mqtt_event *seen)
{
    uint32_t offered = 0;
    size_t given = 0;
    for (;;) {
        size_t room = INPUT_SIZE - input_size;
        size_t rest = bytes.size - given;
        size_t part = rest < room ? rest : room;
        part = part > 0 ? 1 + random_below(random, (uint32_t)part) : 0;
        give((struct tn_bytes){bytes.data + given, part});
        given += part;
        tn_rc rc = next();
        CHECK(rc == TN_OK || (rc == TN_AGAIN && input_size < INPUT_SIZE));
        if (rc == TN_AGAIN) {
            if (given == bytes.size) {
                return offered;
            }
            continue;
        }
        if (event.kind == TN_MQTT_MESSAGE) {
            offered++;
            *seen = event;
            if (random_below(random, 3) == 0) {
                continue; /* it wasn't taken: once more */
            }
            (void)tn_mqtt_session_admit(&session, &event);
            offered = 1;
            seen->message.topic.data = NULL;
        }
        eat(event.eaten);
    }
}

static struct tn_bytes long_publish(size_t topic_size, size_t property_size, size_t payload_size,
                                    unsigned char qos)
{
    static unsigned char memory[1 << 17];
    static unsigned char letters[1 << 16];
    static unsigned char properties_memory[1 << 12];
    struct tn_buf properties;
    struct tn_buf out;
    memset(letters, 'x', sizeof letters);
    tn_buf_init(&out, memory, sizeof memory);
    tn_buf_init(&properties, properties_memory, sizeof properties_memory);
    if (property_size > 0) {
        tn_mqtt_put_pair(&properties, tn_bytes_of("p"), (struct tn_bytes){letters, property_size});
    }
    tn_rc rc = tn_mqtt_encode(session.version,
                              &(struct tn_mqtt_packet){.type = TN_MQTT_PUBLISH,
                                                       .qos = qos,
                                                       .id = qos ? 77 : 0,
                                                       .topic = {letters, topic_size},
                                                       .properties = tn_buf_bytes(&properties),
                                                       .payload = {letters, payload_size}},
                              &out, &err);
    CHECK_OK(rc, err);
    return tn_buf_bytes(&out);
}

static void a_message_that_is_too_long_is_offered_with_its_begin(void)
{
    static const struct {
        size_t topic, property, payload;
        size_t payload_seen; /* of INPUT_SIZE bytes, QoS 2 */
        bool topic_seen;
        bool cut;
    } cases[] = {
        {10, 0, 200, 200, true, false},    {10, 0, 238, 238, true, false},
        {10, 0, 239, 238, true, true},     {10, 0, 60000, 237, true, true},
        {10, 200, 60000, 30, true, true},  {10, 3000, 100, 0, false, true},
        {300, 0, 10, 0, false, true},      {60000, 0, 10, 0, false, true},
        {60000, 0, 60000, 0, false, true}, {251, 0, 100, 0, false, true},
        {250, 0, 100, 0, false, true},     {249, 0, 100, 0, false, true},
        {248, 0, 100, 0, true, true},      {247, 0, 100, 1, true, true},
        {252, 0, 100, 0, false, true},     {253, 0, 100, 0, false, true},
    };
    uint64_t random = given_number("SEED", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (unsigned char qos = 0; qos <= 2; qos++) {
            struct tn_mqtt_event seen = {0};
            begin(TN_MQTT_V5);
            struct tn_bytes bytes =
                long_publish(cases[i].topic, cases[i].property, cases[i].payload, qos);
            uint32_t offered = feed(bytes, &random, &seen);
            CHECK(offered == 1 && session.place == 1 && input_size == 0);
            CHECK(seen.message.size == bytes.size && seen.message.id == (qos ? 77 : 0));
            if (qos == 2) {
                bool right = seen.message.cut == cases[i].cut &&
                             (seen.message.topic.size > 0) == cases[i].topic_seen &&
                             seen.message.payload.size == cases[i].payload_seen;
                if (!right) {
                    (void)fprintf(stderr, "%zu: cut %d, topic %zu, payload %zu\n", i,
                                  seen.message.cut, seen.message.topic.size,
                                  seen.message.payload.size);
                }
                CHECK(right);
            }
            offered = feed(bytes, &random, &seen); /* the same, and then something else */
            CHECK(offered == (qos == 0));
            publish(1, 5, "next", false);
            CHECK(next_event() == TN_MQTT_MESSAGE);
            CHECK(tn_bytes_equal(event.message.payload, tn_bytes_of("next")));
            CHECK(durable_sends(session.place, qos == 0   ? ""
                                               : qos == 1 ? "PUBACK 77"
                                                          : "PUBREC 77"));
        }
    }
}

static void a_long_message_is_not_answered_before_its_end(void)
{
    begin(TN_MQTT_V5);
    struct tn_bytes bytes = long_publish(10, 0, 1000, 1);
    give((struct tn_bytes){bytes.data, 300});
    CHECK(next_event() == TN_MQTT_MESSAGE);
    (void)admit();
    CHECK(durable_sends(1, ""));
    give((struct tn_bytes){bytes.data + 300, bytes.size - 300});
    CHECK(next_event() == TN_MQTT_NOTHING && input_size == 0);
    CHECK(sent_is("PUBACK 77"));
}

static void a_spec_that_makes_no_sense_is_refused(void)
{
    static unsigned char memory[ARENA_SIZE];
    static const struct tn_mqtt_wish wrong = {.filter = {(const unsigned char *)"a#", 2}};
    static const struct tn_mqtt_wish qos3 = {.filter = {(const unsigned char *)"a", 1}, .qos = 3};
    for (uint32_t i = 0; i < 9; i++) {
        struct tn_arena arena;
        tn_arena_init(&arena, memory, sizeof memory);
        spec = plain_spec(TN_MQTT_V3);
        spec.client_id = i == 0 ? (struct tn_bytes){0} : spec.client_id;
        spec.filters = i == 1 ? &wrong : i == 2 ? &qos3 : spec.filters;
        spec.known_max = i == 3 ? 3 : spec.known_max;
        spec.filter_count = i == 4 ? 0 : spec.filter_count;
        spec.input_size = i == 5 ? 100 : spec.input_size;
        spec.wait_ms_max = i == 6 ? 999 : spec.wait_ms_max;
        spec.password = i == 7 ? tn_bytes_of("secret") : spec.password;
        spec.user = i == 8 ? tn_bytes_of("\xff") : spec.user;
        tn_rc rc = tn_mqtt_session_init(&session, &spec, &arena, &err);
        CHECK(rc == TN_INVALID);
    }
    struct tn_arena arena;
    tn_arena_init(&arena, memory, 64);
    spec = plain_spec(TN_MQTT_V3);
    tn_rc rc = tn_mqtt_session_init(&session, &spec, &arena, &err);
    CHECK(rc == TN_AGAIN);
}

static const struct test tests[] = {
    TEST(acknowledgements_wait_until_it_is_durable),
    TEST(a_message_that_is_not_taken_is_offered_again),
    TEST(a_repetition_is_acknowledged_and_not_offered),
    TEST(what_was_saved_is_known_after_a_restart),
    TEST(a_message_without_the_mark_of_a_repetition_is_a_new_one),
    TEST(an_id_that_only_some_know_is_offered_once_more),
    TEST(what_was_not_saved_is_refused),
    TEST(a_forgotten_session_is_cleared_before_messages_come),
    TEST(reading_is_held_when_too_much_is_in_flight),
    TEST(messages_of_a_wider_window_come_on_another_connection),
    TEST(ids_that_the_broker_gave_up_make_room),
    TEST(an_answer_is_for_the_message_that_it_was_made_for),
    TEST(a_repetition_after_the_release_is_no_new_message),
    TEST(filters_are_asked_for_and_left_one_by_one),
    TEST(an_answer_to_what_was_not_asked_is_out_of_turn),
    TEST(pings_go_when_nothing_else_does_and_must_be_answered),
    TEST(pings_go_while_nobody_takes_messages),
    TEST(the_broker_decides_about_the_keep_alive),
    TEST(pauses_double_up_to_the_longest_and_differ),
    TEST(a_refusal_is_told_in_words),
    TEST(an_older_broker_is_spoken_to_in_its_version),
    TEST(a_stop_says_what_is_durable_and_goodbye),
    TEST(packets_out_of_turn_end_the_connection),
    TEST(a_message_that_is_too_long_is_offered_with_its_begin),
    TEST(a_long_message_is_not_answered_before_its_end),
    TEST(a_spec_that_makes_no_sense_is_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
