/* mqtt_packet: examples of the standard, each rule broken once, random packets there and back, cuts
 * and damage. */
#include "ingest/mqtt_packet.h"

#include "check.h"
#include "given.h"
#include "random.h"

enum { PACKET_MAX = 1024, TEXT_MAX = 2048, ROUNDS = 20000 };

static struct tn_err err;

/* "30 0d 'a/b' 00 0a" as bytes. */
static struct tn_bytes bytes_of(const char *text, unsigned char bytes[PACKET_MAX])
{
    size_t size = 0;
    bool quoted = false;
    for (const char *c = text; *c; c++) {
        CHECK(size < PACKET_MAX);
        if (*c == '\'') {
            quoted = !quoted;
        } else if (quoted) {
            bytes[size++] = (unsigned char)*c;
        } else if (*c != ' ') {
            char digits[3] = {c[0], c[1], 0};
            bytes[size++] = (unsigned char)strtoul(digits, NULL, 16);
            c++;
        }
    }
    return (struct tn_bytes){bytes, size};
}

/* ---- a packet as text ---- */

static void put_view(struct tn_buf *out, const char *name, struct tn_bytes view)
{
    if (view.size == 0) {
        return;
    }
    tn_buf_format(out, " %s=", name);
    for (size_t i = 0; i < view.size; i++) {
        bool plain = view.data[i] > ' ' && view.data[i] < 127;
        tn_buf_format(out, plain ? "%c" : "\\%02x", view.data[i]);
    }
}

static void put_properties(struct tn_buf *out, const char *name, struct tn_bytes rest)
{
    struct tn_mqtt_property property;
    while (tn_mqtt_property_next(&rest, &property)) {
        tn_buf_format(out, " %s%d", name, (int)property.id);
        if (property.number > 0) {
            tn_buf_format(out, "=%u", property.number);
        }
        put_view(out, "text", property.text);
        put_view(out, "value", property.value);
    }
    CHECK(rest.size == 0);
}

static void put_wishes(struct tn_buf *out, const struct tn_mqtt_packet *packet)
{
    struct tn_bytes rest = packet->payload;
    struct tn_mqtt_wish wish;
    while (tn_mqtt_wish_next(packet->type, &rest, &wish)) {
        put_view(out, "filter", wish.filter);
        if (packet->type == TN_MQTT_SUBSCRIBE) {
            tn_buf_format(out, ":%u%s%s%s", wish.qos, wish.no_local ? "n" : "",
                          wish.retain_as_published ? "r" : "",
                          wish.retain_when == 0   ? ""
                          : wish.retain_when == 1 ? "1"
                                                  : "2");
        }
    }
    CHECK(rest.size == 0);
}

static void put_connect(struct tn_buf *out, const struct tn_mqtt_connect *connect)
{
    tn_buf_format(out, " v%d%s alive=%u", (int)connect->version, connect->clean ? " clean" : "",
                  connect->keep_alive_s);
    put_view(out, "client", connect->client_id);
    if (connect->has_will) {
        tn_buf_format(out, " will:%u%s", connect->will_qos, connect->will_retain ? "r" : "");
        put_properties(out, "will", connect->will_properties);
        put_view(out, "topic", connect->will_topic);
        put_view(out, "payload", connect->will_payload);
    }
    if (connect->has_user) {
        put_view(out, "user", connect->user);
    }
    if (connect->has_password) {
        put_view(out, "password", connect->password);
    }
}

static const char *described(const struct tn_mqtt_packet *packet, char text[TEXT_MAX])
{
    struct tn_buf out;
    tn_buf_init(&out, text, TEXT_MAX - 1);
    tn_buf_text(&out, tn_mqtt_type_text(packet->type));
    if (packet->id) {
        tn_buf_format(&out, " id=%u", packet->id);
    }
    if (packet->type == TN_MQTT_PUBLISH) {
        tn_buf_format(&out, " qos=%u%s%s", packet->qos, packet->dup ? " dup" : "",
                      packet->retain ? " retain" : "");
    }
    if (packet->session_present) {
        tn_buf_text(&out, " present");
    }
    if (packet->reason) {
        tn_buf_format(&out, " reason=%02x", packet->reason);
    }
    put_view(&out, "topic", packet->topic);
    put_properties(&out, "p", packet->properties);
    if (packet->type == TN_MQTT_CONNECT) {
        put_connect(&out, &packet->connect);
    }
    if (packet->type == TN_MQTT_SUBSCRIBE || packet->type == TN_MQTT_UNSUBSCRIBE) {
        put_wishes(&out, packet);
    } else {
        put_view(&out, "payload", packet->payload);
    }
    CHECK(!out.overflow);
    text[out.size] = 0;
    return text;
}

/* ---- good ones ---- */

/* The non-normative examples of both standards, made whole where they show a part, and one of each
 * packet beside. A star: there is a shorter form, which is what is written back. */
static const struct {
    int version;
    const char *bytes;
    const char *text;
} good[] = {
    {4, "10 13 0004 'MQTT' 04 02 000a 0007 'gateway'", "CONNECT v4 clean alive=10 client=gateway"},
    {4, "10 23 0004 'MQTT' 04 ce 000a 0002 'id' 0003 'a/b' 0002 'by' 0004 'user' 0004 'pass'",
     "CONNECT v4 clean alive=10 client=id will:1 topic=a/b payload=by user=user password=pass"},
    {5,
     "10 2a 0004 'MQTT' 05 ce 000a 05 11 0000000a 0002 'id' 00 0003 'a/b' 0002 'by' 0004 'user' "
     "0004 'pass'",
     "CONNECT p17=10 v5 clean alive=10 client=id will:1 topic=a/b payload=by user=user "
     "password=pass"},
    {5,
     "10 2c 0004 'MQTT' 05 6c ffff 00 0000 0f 18 00000005 01 01 02 0000003c 03 0000 0001 't' 0000 "
     "0008 '01234567'",
     "CONNECT v5 alive=65535 will:1r will24=5 will1=1 will2=60 will3 topic=t password=01234567"},
    {5, "10 0d 0004 'MQTT' 05 00 0000 00 0000", "CONNECT v5 alive=0"},
    {4, "20 02 00 00", "CONNACK"},
    {4, "20 02 01 00", "CONNACK present"},
    {4, "20 02 00 05", "CONNACK reason=87"},
    {4, "20 02 00 01", "CONNACK reason=84"},
    {5, "20 03 00 00 00", "CONNACK"},
    {5,
     "20 2d 01 00 2a 11 ffffffff 12 0002 'xy' 13 003c 21 0014 22 000a 24 01 25 00 27 00010000 28 "
     "01 29 00 2a 01 1f 0002 'ok' 1a 0000",
     "CONNACK present p17=4294967295 p18 text=xy p19=60 p33=20 p34=10 p36=1 p37 p39=65536 p40=1 "
     "p41 p42=1 p31 text=ok p26"},
    {5, "20 0f 00 9c 0c 1c 0009 'other:188'", "CONNACK reason=9c p28 text=other:188"},
    {5, "20 02 00 01", "*CONNACK reason=84"},
    {4, "32 07 0003 'a/b' 000a", "PUBLISH id=10 qos=1 topic=a/b"},
    {5, "32 08 0003 'a/b' 000a 00", "PUBLISH id=10 qos=1 topic=a/b"},
    {4, "3d 0a 0003 'a/b' 000a '25.'", "PUBLISH id=10 qos=2 dup retain topic=a/b payload=25."},
    {4, "30 07 0005 'A' f0aa9b94", "PUBLISH qos=0 topic=A\\f0\\aa\\9b\\94"},
    {4, "30 06 0003 'a/b' 00", "PUBLISH qos=0 topic=a/b payload=\\00"},
    {5,
     "34 30 0003 'a/b' ffff 26 01 01 02 0000000a 03 0001 'j' 08 0001 'r' 09 0002 00ff 0b 80 01 0b "
     "01 26 0001 'k' 0001 'v' 26 0001 'k' 0000 '{}'",
     NULL},
    {5, "30 06 0000 03 23 0001", "PUBLISH qos=0 p35=1"},
    {4, "40 02 1234", "PUBACK id=4660"},
    {5, "40 02 1234", "PUBACK id=4660"},
    {5, "40 03 1234 10", "PUBACK id=4660 reason=10"},
    {5, "40 04 1234 00 00", "*PUBACK id=4660"},
    {5, "50 0a 1234 97 06 1f 0003 'low'", "PUBREC id=4660 reason=97 p31 text=low"},
    {4, "62 02 ffff", "PUBREL id=65535"},
    {5, "62 03 ffff 92", "PUBREL id=65535 reason=92"},
    {4, "70 02 0001", "PUBCOMP id=1"},
    {4, "82 0e 000a 0003 'a/b' 01 0003 'c/d' 02", "SUBSCRIBE id=10 filter=a/b:1 filter=c/d:2"},
    {5, "82 12 000a 03 0b ff7f 0003 'a/b' 2e 0003 'c/d' 11",
     "SUBSCRIBE id=10 p11=16383 filter=a/b:2nr2 filter=c/d:11"},
    {4, "90 05 000a 00 02 80", "SUBACK id=10 payload=\\00\\02\\80"},
    {5, "90 06 000a 00 01 a2 87", "SUBACK id=10 payload=\\01\\a2\\87"},
    {4, "a2 0c 000a 0003 'a/b' 0003 'c/d'", "UNSUBSCRIBE id=10 filter=a/b filter=c/d"},
    {5, "a2 08 000a 00 0003 'a/b'", "UNSUBSCRIBE id=10 filter=a/b"},
    {4, "b0 02 000a", "UNSUBACK id=10"},
    {5, "b0 05 000a 00 00 11", "UNSUBACK id=10 payload=\\00\\11"},
    {4, "c0 00", "PINGREQ"},
    {5, "d0 00", "PINGRESP"},
    {4, "e0 00", "DISCONNECT"},
    {5, "e0 00", "DISCONNECT"},
    {5, "e0 01 8e", "DISCONNECT reason=8e"},
    {5, "e0 01 00", "*DISCONNECT"},
    {5, "e0 07 04 05 11 00000001", "DISCONNECT reason=04 p17=1"},
    {5, "f0 00", "AUTH"},
    {5, "f0 0e 18 0c 15 0005 'SCRAM' 16 0001 'x'", "AUTH reason=18 p21 text=SCRAM p22 text=x"},
    {4, "40 82 00 1234", "*PUBACK id=4660"},
};

static void check_good(enum tn_mqtt_version version, struct tn_bytes bytes, const char *text)
{
    struct tn_mqtt_packet packet;
    static char got[TEXT_MAX];
    bool shorter = text && *text == '*';
    for (size_t size = 0; size < bytes.size; size++) { /* at the end of its memory, for ASan */
        unsigned char *part = malloc(size + 1);
        CHECK(part != NULL);
        memcpy(part + 1, bytes.data, size);
        tn_rc rc = tn_mqtt_decode(version, (struct tn_bytes){part + 1, size}, &packet, &err);
        free(part);
        if (rc != TN_AGAIN) {
            (void)fprintf(stderr, "%zu bytes of %s: %d %s\n", size, text ? text : "", (int)rc,
                          err.text);
        }
        CHECK(rc == TN_AGAIN);
    }
    tn_rc rc = tn_mqtt_decode(version, bytes, &packet, &err);
    CHECK_OK(rc, err);
    CHECK(packet.size == bytes.size);
    (void)described(&packet, got);
    if (text && strcmp(got, text + shorter) != 0) {
        (void)fprintf(stderr, "%s\nbut\n%s\n", text, got);
    }
    CHECK(!text || strcmp(got, text + shorter) == 0);

    static unsigned char written[PACKET_MAX];
    struct tn_buf out;
    tn_buf_init(&out, written, sizeof written);
    rc = tn_mqtt_encode(version, &packet, &out, &err);
    CHECK_OK(rc, err);
    CHECK(shorter || tn_bytes_equal(tn_buf_bytes(&out), bytes));
}

static void packets_of_the_standard_are_read_and_written(void)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        static unsigned char memory[PACKET_MAX];
        check_good((enum tn_mqtt_version)good[i].version, bytes_of(good[i].bytes, memory),
                   good[i].text);
    }
}

/* ---- bad ones ---- */

static const struct {
    int version;
    const char *bytes;
    unsigned char fault;
    const char *why;
} bad[] = {
    {4, "00", 0x81, "no packet, byte 0: type 0 is none of MQTT 3.1.1"},
    {4, "f0 00", 0x81, "type 15 is none of MQTT 3.1.1"},
    {5, "01", 0x81, "type 0 is none of MQTT 5.0"},
    {4, "41", 0x81, "PUBACK, byte 0: flags are 0x1, not 0x0"},
    {4, "60 02 0001", 0x81, "PUBREL, byte 0: flags are 0x0, not 0x2"},
    {4, "80", 0x81, "SUBSCRIBE, byte 0: flags are 0x0, not 0x2"},
    {4, "40 ff ff ff ff", 0x81, "PUBACK, byte 5: size: a number of more than four bytes"},
    {5, "40 82 00 1234", 0x81, "size: longer than it has to be"},
    {4, "40 01 00", 0x81, "PUBACK, byte 2: packet id of 2 bytes, and 1 are left"},
    {4, "40 02 0000", 0x82, "PUBACK, byte 4: packet id 0"},
    {4, "40 03 0001 00", 0x81, "PUBACK, byte 4: 1 bytes too many"},
    {5, "40 03 0001 92", 0x82, "reason code 0x92 is none of this packet"},
    {5, "40 03 0001 55", 0x82, "reason code 0x55 is none of this packet"},
    {5, "40 04 0001 00 01", 0x81, "properties of 1 bytes, and 0 are left"},
    {5, "40 06 0001 00 02 23 0001", 0x82, "topic alias has no place here"},
    {5, "40 06 0001 00 02 04 00", 0x81, "property 4 is not defined"},
    {4, "36 07 0003 'a/b' 000a", 0x81, "PUBLISH, byte 2: flags are 0x6"},
    {4, "38 05 0003 'a/b'", 0x81, "PUBLISH, byte 2: flags are 0x8"},
    {4, "30 05 0009 'a/b'", 0x81, "PUBLISH, byte 4: topic of 9 bytes, and 3 are left"},
    {4, "30 02 0000", 0x82, "PUBLISH, byte 4: no topic"},
    {5, "30 03 0000 00", 0x82, "no topic"},
    {4, "30 05 0003 'a/+'", 0x82, "topic: wildcard + at byte 2"},
    {4, "30 05 0003 'a' 00 'b'", 0x81, "PUBLISH, byte 5: topic: no UTF-8, or a zero"},
    {4, "30 05 0003 'a' eda0", 0x81, "PUBLISH, byte 5: topic: no UTF-8, or a zero"},
    {4, "32 05 0003 'a/b'", 0x81, "packet id of 2 bytes, and 0 are left"},
    {4, "32 07 0003 'a/b' 0000", 0x82, "packet id 0"},
    {5, "30 09 0003 'a/b' 03 23 0000", 0x94, "topic alias is 0, not 1 to 65535"},
    {5, "30 0a 0003 'a/b' 04 01 00 01 00", 0x82, "payload format indicator is there twice"},
    {5, "30 08 0003 'a/b' 02 01 02", 0x82, "payload format indicator is 2, not 0 to 1"},
    {5, "30 08 0003 'a/b' 02 0b 00", 0x82, "subscription identifier is 0, not 1 to 268435455"},
    {5, "30 0a 0003 'a/b' 04 08 0001 '#'", 0x82, "response topic: topic: wildcard # at byte 0"},
    {5, "30 08 0003 'a/b' 02 26 00", 0x81, "user property of 2 bytes, and 1 are left"},
    {5, "30 06 0003 'a/b' 80", 0x81, "size of the properties of 1 bytes, and 0 are left"},
    {5, "30 07 0003 'a/b' 80 00", 0x81, "size of the properties: longer than it has to be"},
    {4, "20 02 02 00", 0x81, "CONNACK, byte 3: flags are 0x02"},
    {4, "20 02 00 06", 0x81, "return code 6"},
    {4, "20 02 01 05", 0x82, "refused, and yet a session is present"},
    {5, "20 02 00 00", 0x81, "return code 0"},
    {5, "20 03 00 93 00", 0x82, "reason code 0x93"},
    {5, "20 06 00 00 03 21 0000", 0x82, "receive maximum is 0"},
    {5, "20 05 00 00 02 24 02", 0x82, "maximum QoS is 2"},
    {5, "20 08 00 00 05 16 0002 'xy'", 0x82, "authentication data without a method"},
    {4, "90 03 0001 03", 0x82, "reason code 0x03"},
    {4, "90 03 0001 87", 0x81, "return code 0x87"},
    {4, "90 02 0001", 0x82, "no reason code"},
    {5, "b0 04 0001 00 02", 0x82, "reason code 0x02"},
    {4, "b0 03 0001 00", 0x81, "UNSUBACK, byte 4: 1 bytes too many"},
    {4, "82 02 0001", 0x82, "SUBSCRIBE, byte 4: no filter"},
    {4, "82 08 0001 0003 'a/b' 03", 0x81, "options are 0x03"},
    {4, "82 08 0001 0003 'a/b' 05", 0x81, "options are 0x05"},
    {5, "82 09 0001 00 0003 'a/b' 31", 0x81, "options are 0x31"},
    {5, "82 09 0001 00 0003 'a/b' 41", 0x81, "options are 0x41"},
    {5, "82 0f 0001 00 0009 '$share/g/' 01", 0x82, "GROUP/FILTER"},
    {5, "82 10 0001 00 000a '$share/g/a' 05", 0x82, "no-local on a shared subscription"},
    {4, "82 08 0001 0003 'a#b' 01", 0x82, "filter: # at byte 1"},
    {4, "82 07 0001 0003 'a/b'", 0x81, "options of 1 bytes, and 0 are left"},
    {4, "a2 04 0001 0000", 0x82, "filter of 0 bytes"},
    {5, "82 0d 0001 04 0b 01 0b 02 0003 'a/b' 01", 0x82, "subscription identifier is there twice"},
    {4, "c0 01 00", 0x81, "PINGREQ, byte 2: 1 bytes too many"},
    {4, "e0 01 00", 0x81, "DISCONNECT, byte 2: 1 bytes too many"},
    {5, "e0 01 91", 0x82, "reason code 0x91"},
    {5, "f0 02 18 01", 0x81, "AUTH, byte 4: properties of 1 bytes, and 0 are left"},
    {4, "10 0c 0004 'MQTT' 04 01 000a 0000", 0x81, "a reserved flag is set"},
    {4, "10 0c 0004 'MQTT' 04 1c 000a 0000", 0x81, "flags of the will are 0x1c"},
    {4, "10 0c 0004 'MQTT' 04 08 000a 0000", 0x81, "flags of the will are 0x08"},
    {4, "10 0c 0004 'MQTT' 04 42 000a 0000", 0x81, "a password without a user name"},
    {4, "10 0c 0004 'MQTT' 04 82 000a 0000", 0x81, "user name of 2 bytes, and 0 are left"},
    {4, "10 0c 0004 'MQTT' 03 02 000a 0000", 0x84, "protocol level 3"},
    {4, "10 0e 0006 'MQIsdp' 03 02 000a 0000", 0x84, "protocol level 3 of MQIsdp"},
    {5, "10 13 0004 'MQTT' 05 02 000a 06 21 0001 21 0001 0000", 0x82,
     "receive maximum is there twice"},
    {5, "10 10 0004 'MQTT' 05 02 000a 03 21 0000 0000", 0x82, "receive maximum is 0"},
    {5, "10 0e 0004 'MQTT' 05 02 000a 00 0001 ff", 0x81, "client id: no UTF-8"},
};

static void each_broken_rule_is_named_with_its_place(void)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        static unsigned char memory[PACKET_MAX];
        struct tn_mqtt_packet packet = {.id = 77};
        struct tn_bytes bytes = bytes_of(bad[i].bytes, memory);
        tn_rc rc = tn_mqtt_decode((enum tn_mqtt_version)bad[i].version, bytes, &packet, &err);
        bool refused = rc == (bad[i].fault == 0x84 ? TN_UNSUPPORTED : TN_INVALID);
        if (!refused || packet.fault != bad[i].fault || !strstr(err.text, bad[i].why)) {
            (void)fprintf(stderr, "%s: %d 0x%02x %s\n", bad[i].bytes, (int)rc, packet.fault,
                          err.text);
        }
        CHECK(refused);
        CHECK(strstr(err.text, bad[i].why) != NULL);
        CHECK(packet.fault == bad[i].fault);
        CHECK(packet.id == 77);
    }
}

static void sizes_take_one_to_four_bytes(void)
{
    static const struct {
        uint32_t size;
        const char *bytes;
    } cases[] = {
        {0, "00"},
        {127, "7f"},
        {128, "80 01"},
        {16383, "ff 7f"},
        {16384, "80 80 01"},
        {2097151, "ff ff 7f"},
        {2097152, "80 80 80 01"},
        {268435455, "ff ff ff 7f"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static unsigned char memory[PACKET_MAX];
        char text[64];
        struct tn_mqtt_frame frame;
        (void)snprintf(text, sizeof text, "30 %s", cases[i].bytes);
        struct tn_bytes bytes = bytes_of(text, memory);
        tn_rc rc = tn_mqtt_frame(TN_MQTT_V5, bytes, &frame, &err);
        CHECK_OK(rc, err);
        CHECK(frame.type == TN_MQTT_PUBLISH && frame.header_size == bytes.size);
        CHECK(frame.size == bytes.size + cases[i].size);
        bytes.size--;
        rc = tn_mqtt_frame(TN_MQTT_V5, bytes, &frame, &err);
        CHECK(rc == TN_AGAIN);
    }
}

static void a_message_that_is_too_long_shows_its_begin(void)
{
    static unsigned char memory[PACKET_MAX];
    struct tn_mqtt_packet packet = {0};
    struct tn_bytes bytes = bytes_of("34 a08d06 0003 'a/b' 000a 02 0101 'begin'", memory);
    for (size_t size = 0; size < 14; size++) {
        tn_rc rc =
            tn_mqtt_decode_begin(TN_MQTT_V5, (struct tn_bytes){bytes.data, size}, &packet, &err);
        CHECK(rc == TN_AGAIN);
    }
    tn_rc rc = tn_mqtt_decode_begin(TN_MQTT_V5, bytes, &packet, &err);
    CHECK_OK(rc, err);
    CHECK(packet.id == 10 && packet.qos == 2 && packet.size == 4 + 100000);
    CHECK(tn_bytes_equal(packet.payload, tn_bytes_of("begin")));
    CHECK(packet.properties.size == 2);
    rc = tn_mqtt_decode(TN_MQTT_V5, bytes, &packet, &err);
    CHECK(rc == TN_AGAIN);
}

static void refuse(const struct tn_mqtt_packet *packet, const char *why)
{
    static unsigned char memory[PACKET_MAX];
    struct tn_buf out;
    tn_buf_init(&out, memory, sizeof memory);
    tn_buf_text(&out, "before");
    tn_rc rc = tn_mqtt_encode(TN_MQTT_V5, packet, &out, &err);
    if (rc != TN_INVALID || !strstr(err.text, why)) {
        (void)fprintf(stderr, "%s: %d %s\n", why, (int)rc, err.text);
    }
    CHECK(rc == TN_INVALID && strstr(err.text, why) != NULL);
    CHECK(out.size == 6 && !out.overflow);
}

static void what_is_no_packet_is_not_written(void)
{
    static const unsigned char zeros[70000];
    struct tn_mqtt_packet packet = {.type = TN_MQTT_PUBACK};
    refuse(&packet, "packet id 0");
    packet = (struct tn_mqtt_packet){.type = TN_MQTT_PUBLISH, .topic = tn_bytes_of("a/#")};
    refuse(&packet, "wildcard");
    packet.topic = tn_bytes_of("a");
    packet.qos = 3;
    refuse(&packet, "flags");
    packet.qos = 0;
    packet.payload = (struct tn_bytes){zeros, TN_MQTT_BODY_MAX};
    refuse(&packet, "at most 268435455");
    packet.topic = (struct tn_bytes){zeros, sizeof zeros};
    refuse(&packet, "a text of 70000 bytes");
    packet = (struct tn_mqtt_packet){.type = TN_MQTT_SUBSCRIBE, .id = 1};
    refuse(&packet, "no filter");
    packet = (struct tn_mqtt_packet){.type = TN_MQTT_DISCONNECT, .reason = 0x91};
    refuse(&packet, "reason code 0x91");
    packet = (struct tn_mqtt_packet){.type = TN_MQTT_CONNECT, .properties = {zeros, 1}};
    refuse(&packet, "property 0 is not defined");
}

/* ---- random ones ---- */

static struct tn_bytes draw_text(uint64_t *random, uint32_t size_max)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint32_t size = random_below(random, size_max + 1);
    return (struct tn_bytes){(const unsigned char *)letters + random_below(random, 20), size};
}

static struct tn_bytes draw_name(uint64_t *random)
{
    struct tn_bytes name = draw_text(random, 29);
    name.size++;
    return name;
}

static struct tn_bytes draw_properties(uint64_t *random, enum tn_mqtt_version version,
                                       unsigned char memory[256])
{
    struct tn_buf out;
    tn_buf_init(&out, memory, 256);
    uint32_t count = version == TN_MQTT_V5 ? random_below(random, 4) : 0;
    for (uint32_t i = 0; i < count; i++) {
        tn_mqtt_put_pair(&out, draw_text(random, 20), draw_text(random, 20));
    }
    return tn_buf_bytes(&out);
}

static void draw_payload(uint64_t *random, struct tn_mqtt_packet *packet, unsigned char memory[512])
{
    struct tn_buf out;
    tn_buf_init(&out, memory, 512);
    uint32_t count = 1 + random_below(random, 3);
    for (uint32_t i = 0; i < count; i++) {
        struct tn_mqtt_wish wish = {.filter = draw_name(random),
                                    .qos = (unsigned char)random_below(random, 3)};
        if (packet->type == TN_MQTT_SUBSCRIBE || packet->type == TN_MQTT_UNSUBSCRIBE) {
            tn_mqtt_put_wish(packet->type, &out, &wish);
        } else if (packet->type == TN_MQTT_PUBLISH) {
            tn_buf_append(&out, wish.filter.data, wish.filter.size);
        } else {
            tn_buf_byte(&out, random_below(random, 2) ? 0x80 : 0);
        }
    }
    packet->payload = tn_buf_bytes(&out);
}

static void draw_connect(uint64_t *random, enum tn_mqtt_version version,
                         struct tn_mqtt_connect *connect, unsigned char memory[256])
{
    *connect = (struct tn_mqtt_connect){.version = version,
                                        .clean = random_below(random, 2) == 0,
                                        .keep_alive_s = (uint16_t)random_below(random, 65536),
                                        .client_id = draw_text(random, 20),
                                        .has_will = random_below(random, 2) == 0,
                                        .has_user = random_below(random, 2) == 0};
    if (connect->has_will) {
        connect->will_qos = (unsigned char)random_below(random, 3);
        connect->will_retain = random_below(random, 2) == 0;
        connect->will_topic = draw_name(random);
        connect->will_payload = draw_text(random, 20);
        connect->will_properties = draw_properties(random, version, memory);
    }
    if (connect->has_user) {
        connect->user = draw_text(random, 10);
        connect->has_password = random_below(random, 2) == 0;
        connect->password = connect->has_password ? draw_text(random, 10) : connect->password;
    }
}

static bool has_list(enum tn_mqtt_type type)
{
    return type == TN_MQTT_PUBLISH || (type >= TN_MQTT_SUBSCRIBE && type <= TN_MQTT_UNSUBACK);
}

struct drawn {
    struct tn_mqtt_packet packet;
    unsigned char properties[256];
    unsigned char will[256];
    unsigned char payload[512];
};

static void draw_packet(uint64_t *random, enum tn_mqtt_version version, struct drawn *drawn)
{
    struct tn_mqtt_packet *packet = &drawn->packet;
    uint32_t types = version == TN_MQTT_V5 ? TN_MQTT_AUTH : TN_MQTT_DISCONNECT;
    *packet = (struct tn_mqtt_packet){.type = (enum tn_mqtt_type)(1 + random_below(random, types))};
    bool has_id = packet->type >= TN_MQTT_PUBACK && packet->type <= TN_MQTT_UNSUBACK;
    if (packet->type == TN_MQTT_PUBLISH) {
        packet->qos = (unsigned char)random_below(random, 3);
        packet->dup = packet->qos > 0 && random_below(random, 2) == 0;
        packet->retain = random_below(random, 2) == 0;
        packet->topic = draw_name(random);
        has_id = packet->qos > 0;
    }
    if (has_id) {
        packet->id = (uint16_t)(1 + random_below(random, 65535));
    }
    if (packet->type != TN_MQTT_PINGREQ && packet->type != TN_MQTT_PINGRESP) {
        packet->properties = draw_properties(random, version, drawn->properties);
    }
    if (packet->type == TN_MQTT_CONNECT) {
        draw_connect(random, version, &packet->connect, drawn->will);
    }
    if (packet->type == TN_MQTT_CONNACK) {
        packet->session_present = random_below(random, 2) == 0;
    }
    if (has_list(packet->type) && !(version == TN_MQTT_V3 && packet->type == TN_MQTT_UNSUBACK)) {
        draw_payload(random, packet, drawn->payload);
    }
}

static void random_packets_come_back_as_they_went(void)
{
    uint64_t random = given_number("SEED", 1);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        static struct drawn drawn;
        struct tn_mqtt_packet again;
        static unsigned char memory[PACKET_MAX];
        static char texts[2][TEXT_MAX];
        struct tn_buf out;
        enum tn_mqtt_version version = random_below(&random, 2) ? TN_MQTT_V5 : TN_MQTT_V3;
        draw_packet(&random, version, &drawn);
        tn_buf_init(&out, memory, random_below(&random, sizeof memory));
        tn_rc rc = tn_mqtt_encode(version, &drawn.packet, &out, &err);
        if (rc == TN_AGAIN) {
            CHECK(out.size == 0 && !out.overflow && out.capacity < 900);
            continue;
        }
        CHECK_OK(rc, err);
        rc = tn_mqtt_decode(version, tn_buf_bytes(&out), &again, &err);
        CHECK_OK(rc, err);
        CHECK(again.size == out.size);
        CHECK(strcmp(described(&drawn.packet, texts[0]), described(&again, texts[1])) == 0);
    }
}

/* What damage leaves readable is written as something that reads the same. */
static void damaged_packets_are_refused_or_make_sense(void)
{
    uint64_t random = given_number("SEED", 1) + 1;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        static unsigned char memory[PACKET_MAX];
        static unsigned char written[PACKET_MAX];
        static char texts[2][TEXT_MAX];
        struct tn_mqtt_packet packet;
        struct tn_buf out;
        size_t which = random_below(&random, COUNT(good));
        enum tn_mqtt_version version =
            random_below(&random, 4) ? (enum tn_mqtt_version)good[which].version : TN_MQTT_V5;
        struct tn_bytes bytes = bytes_of(good[which].bytes, memory);
        for (uint32_t n = random_below(&random, 3); n > 0; n--) {
            memory[random_below(&random, (uint32_t)bytes.size)] =
                (unsigned char)random_below(&random, 256);
        }
        tn_rc rc = tn_mqtt_decode(version, bytes, &packet, &err);
        refused += rc != TN_OK;
        if (rc) {
            continue;
        }
        tn_buf_init(&out, written, sizeof written);
        enum tn_mqtt_version spoken =
            packet.type == TN_MQTT_CONNECT ? packet.connect.version : version;
        rc = tn_mqtt_encode(spoken, &packet, &out, &err);
        CHECK_OK(rc, err);
        (void)described(&packet, texts[0]);
        rc = tn_mqtt_decode(spoken, tn_buf_bytes(&out), &packet, &err);
        CHECK_OK(rc, err);
        CHECK(strcmp(texts[0], described(&packet, texts[1])) == 0);
    }
    CHECK(refused > ROUNDS / 10 && refused < ROUNDS);
}

static void every_reason_has_words(void)
{
    uint32_t known = 0;
    for (unsigned code = 0; code < 256; code++) {
        const char *text = tn_mqtt_reason_text((unsigned char)code);
        CHECK(text != NULL && strlen(text) > 3);
        known += strstr(text, "does not define") == NULL;
    }
    CHECK(known == 43); /* MQTT 5.0, 2.4: those with a packet of their own share the code 0 */
    CHECK(strstr(tn_mqtt_reason_text(0x8E), "another client") != NULL);
}

static const struct test tests[] = {
    TEST(packets_of_the_standard_are_read_and_written),
    TEST(each_broken_rule_is_named_with_its_place),
    TEST(sizes_take_one_to_four_bytes),
    TEST(a_message_that_is_too_long_shows_its_begin),
    TEST(what_is_no_packet_is_not_written),
    TEST(random_packets_come_back_as_they_went),
    TEST(damaged_packets_are_refused_or_make_sense),
    TEST(every_reason_has_words),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
