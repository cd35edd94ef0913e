/* mqtt_session against a broker of the test, with everything that can happen on the way:
 * connections that break at any byte, repetitions, forgotten sessions, a process that ends and
 * starts from what was durable. */
#include "ingest/mqtt_broker.h"
#include "mqtt_session_world.h"

enum { ROWS_MAX = 1 << 16, CALM_ROUNDS = 200000 };

/* What is on disk, and what a commit under way will put there. */
struct image {
    uint32_t row_count; /* the first so many of `rows` */
    uint64_t place;
    char saved[SAVED_MAX];
};

static struct {
    struct broker broker;
    uint64_t random;
    uint32_t rows[ROWS_MAX]; /* numbers of messages, in the order in which they were taken */
    uint32_t row_count;
    struct image disk;
    struct image commit;
    bool committing;
    bool calm; /* no faults any more */
    uint32_t restarts;
    uint32_t cuts;
    uint32_t forgotten;
    uint32_t held;
    uint32_t overruns;
} world;

static uint32_t rows_of(uint32_t n, uint32_t row_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < row_count; i++) {
        count += world.rows[i] == n;
    }
    return count;
}

static bool is_durable(uint32_t n)
{
    return rows_of(n, world.disk.row_count) > 0;
}

static bool is_forgotten(uint16_t id)
{
    char text[16];
    (void)snprintf(text, sizeof text, " %u.", id);
    return strstr(world.disk.saved, text) == NULL &&
           strstr(world.disk.saved, text + 1) != world.disk.saved;
}

static bool chance(uint32_t in)
{
    return random_below(&world.random, in) == 0;
}

static void begin_commit(void)
{
    struct tn_buf saved;
    if (world.committing) {
        return;
    }
    tn_buf_init(&saved, world.commit.saved, SAVED_MAX - 1);
    world.commit.place = tn_mqtt_session_save(&session, &saved);
    CHECK(!saved.overflow);
    world.commit.saved[saved.size] = 0;
    world.commit.row_count = world.row_count;
    world.committing = true;
}

static void end_commit(void)
{
    if (world.committing) {
        world.disk = world.commit;
        world.committing = false;
        tn_mqtt_session_durable(&session, world.disk.place);
    }
}

/* The process ends; a commit that was under way may have come through. */
static void restart(void)
{
    if (world.committing && chance(2)) {
        world.disk = world.commit;
    }
    world.committing = false;
    world.row_count = world.disk.row_count;
    broker_cut(&world.broker);
    world.overruns += (uint32_t)session.overruns;
    start();
    tn_rc rc = tn_mqtt_session_restore(&session, tn_bytes_of(world.disk.saved), &err);
    CHECK_OK(rc, err);
    world.disk.place = 0;
    world.restarts++;
}

static void lose_stream(void)
{
    broker_cut(&world.broker);
    input_size = 0;
    if (session.state >= TN_MQTT_OPEN && session.state <= TN_MQTT_CLOSING) {
        tn_mqtt_session_lost(&session, now_ms);
        world.cuts++;
    }
}

static void pass_time(void)
{
    bool open = false;
    now_ms += random_below(&world.random, chance(10) ? 5000 : 50);
    tn_rc rc = tn_mqtt_session_tick(&session, now_ms, &open, &err);
    if (open && !world.calm && chance(4)) {
        tn_mqtt_session_lost(&session, now_ms);
    } else if (open) {
        input_size = 0;
        tn_mqtt_session_opened(&session, now_ms);
    } else if (rc) {
        CHECK(rc == TN_IO);
        lose_stream();
    }
}

static void move_to_broker(void)
{
    static unsigned char memory[OUT_SIZE];
    struct tn_buf out;
    size_t room = chance(4) ? tn_mqtt_session_output_size(&spec) : sizeof memory;
    tn_buf_init(&out, memory, room);
    (void)tn_mqtt_session_output(&session, now_ms, &out);
    CHECK(!out.overflow);
    if (out.size > 0 && !world.calm && chance(30)) { /* only some of it arrives */
        tn_buf_append(&world.broker.in, out.data, random_below(&world.random, (uint32_t)out.size));
        broker_read(&world.broker);
        lose_stream();
        return;
    }
    tn_buf_append(&world.broker.in, out.data, out.size);
    CHECK(!world.broker.in.overflow);
    broker_read(&world.broker);
    if (session.state == TN_MQTT_CLOSING && out.size < room) {
        lose_stream(); /* it says so after messages were passed over */
    }
}

/* The number of a message, from where the broker put it. */
static uint32_t number_of(const struct tn_mqtt_message *message)
{
    if (world.broker.alike) {
        struct tn_mqtt_property property = {0};
        struct tn_bytes rest = message->properties;
        CHECK(tn_mqtt_property_next(&rest, &property));
        char text[16] = {0};
        memcpy(text, property.value.data, property.value.size);
        return (uint32_t)strtoul(text, NULL, 10);
    }
    return (uint32_t)strtoul((const char *)message->payload.data + 5, NULL, 10);
}

static void take(void)
{
    if (!world.calm && chance(5)) {
        return; /* no room for its rows now */
    }
    CHECK(world.row_count < ROWS_MAX);
    world.rows[world.row_count++] = number_of(&event.message);
    uint64_t place = admit();
    CHECK(place == session.place && session.known_count <= spec.known_max);
}

static void move_to_client(void)
{
    struct tn_buf *from = &world.broker.out;
    size_t room = INPUT_SIZE - input_size;
    size_t size = from->size < room ? from->size : room;
    size = size > 0 ? 1 + random_below(&world.random, (uint32_t)size) : 0;
    give((struct tn_bytes){from->data, size});
    memmove(from->data, from->data + size, from->size - size);
    from->size -= size;
    for (uint32_t i = 0; i < 8; i++) {
        tn_rc rc = next();
        if (rc == TN_AGAIN) {
            world.held += session.held;
            return;
        }
        CHECK_OK(rc, err);
        if (event.kind == TN_MQTT_MESSAGE) {
            take();
        } else {
            eat(event.eaten);
        }
    }
}

static void do_harm(void)
{
    struct broker *b = &world.broker;
    switch (random_below(&world.random, 40)) {
    case 0:
        restart();
        return;
    case 1:
    case 2:
        lose_stream();
        return;
    case 3:
        if (!b->alike && chance(4)) {
            lose_stream();
            broker_forget_session(b);
            world.forgotten++;
        }
        return;
    case 4:
        if (!b->alike && !b->connected) { /* an id used again looks like a repetition */
            broker_drop_one(b);
        }
        return;
    default:
        return;
    }
}

static void one_turn(void)
{
    switch (random_below(&world.random, 8)) {
    case 0:
        pass_time();
        return;
    case 1:
    case 2:
        move_to_broker();
        return;
    case 3:
    case 4:
        move_to_client();
        return;
    case 5:
        broker_send_next(&world.broker);
        return;
    case 6:
        if (chance(2)) {
            begin_commit();
        } else {
            end_commit();
        }
        return;
    default:
        if (!world.calm) {
            do_harm();
        }
        return;
    }
}

static bool all_done(void)
{
    const struct broker *b = &world.broker;
    for (uint32_t i = 0; i < b->message_count; i++) {
        if (b->messages[i].state != BROKER_DONE && b->messages[i].state != BROKER_GONE) {
            return false;
        }
    }
    return b->out.size == 0 && input_size == 0;
}

static void check_deliveries(void)
{
    const struct broker *b = &world.broker;
    for (uint32_t n = 0; n < b->message_count; n++) {
        uint32_t count = rows_of(n, world.disk.row_count);
        bool gone = b->messages[n].state == BROKER_GONE;
        bool right = b->messages[n].qos == 0   ? count <= 1
                     : b->messages[n].qos == 1 ? gone || count >= 1
                                               : count <= 1 && (gone || count == 1);
        if (!right) {
            FAIL("message %u of QoS %u%s: %u rows", n, b->messages[n].qos, gone ? ", given up" : "",
                 count);
        }
    }
}

static void run_world(uint64_t seed)
{
    struct broker *b = &world.broker;
    memset(&world, 0, sizeof world);
    check_seed = seed;
    world.random = seed;
    spec = plain_spec(chance(2) ? TN_MQTT_V5 : TN_MQTT_V3);
    spec.in_flight = (uint16_t)(1 + random_below(&world.random, 12));
    spec.known_max = spec.in_flight + random_below(&world.random, 8);
    bool narrow = seed % 8 == 0; /* the broker has more in flight than there is room for */
    if (narrow) {
        spec.version = TN_MQTT_V3;
        spec.in_flight = (uint16_t)(1 + random_below(&world.random, 3));
        spec.known_max = spec.in_flight;
    }
    spec.keep_alive_s = 2;
    spec.answer_ms_max = 3000;
    spec.wait_ms_min = 10;
    spec.wait_ms_max = 1000;
    start();
    now_ms = 0;
    broker_init(b, 30 + random_below(&world.random, 150), random_next(&world.random));
    b->alike = spec.version == TN_MQTT_V5 && chance(2);
    b->durable = is_durable;
    b->forgotten = is_forgotten;
    b->window = narrow ? 12 : 1 + random_below(&world.random, 12);
    for (uint32_t turns = random_below(&world.random, 20000); turns > 0; turns--) {
        one_turn();
    }
    world.calm = true;
    uint32_t turns = 0;
    while (!all_done() && turns < CALM_ROUNDS) {
        one_turn();
        turns++;
    }
    CHECK(all_done());
    begin_commit();
    end_commit();
    begin_commit();
    end_commit();
    world.overruns += (uint32_t)session.overruns;
    check_deliveries();
}

static void messages_arrive_as_often_as_their_qos_says(void)
{
    uint64_t seed = given_number("SEED", 1);
    double end = given_until(4, 4);
    uint32_t worlds = 0;
    uint32_t restarts = 0;
    uint32_t cuts = 0;
    uint32_t forgotten = 0;
    uint32_t held = 0;
    uint32_t overruns = 0;
    for (; worlds < 60 || seconds_now() < end; worlds++) {
        run_world(seed + worlds);
        restarts += world.restarts;
        cuts += world.cuts;
        forgotten += world.forgotten;
        held += world.held;
        overruns += world.overruns;
    }
    CHECK(restarts > worlds && cuts > worlds && forgotten > 0 && held > 0);
    CHECK(overruns > worlds / 8); /* each narrow one has some */
    (void)printf("%u brokers, %u restarts, %u cuts, %u sessions forgotten, held %u times, "
                 "%u overruns\n",
                 worlds, restarts, cuts, forgotten, held, overruns);
}

static const struct test tests[] = {
    TEST(messages_arrive_as_often_as_their_qos_says),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
