/* Messages through a tee, to a reader that is quick, slow, gone, or never was: who sends waits for
 * nobody, what is read is what was sent and in its order, and what is missing is counted, to the
 * row. Behind an intake it hears all that was taken, once, and nothing else. */
#include "app/tee.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "given.h"
#include "intake_world.h"
#include "temp.h"

enum {
    STEPS = 4000,
    BYTES_MAX = 30000,
    BUFFER_MAX = 8 << 20, /* what a system may give */
    FLOOD = 40 << 20,
    ROWS = 300,       /* of a message that fills a good part of the ring */
    SECONDS_MAX = 20, /* of a test that waits for ever */
};

static char root[TEMP_SIZE];
static int listener;
static int reader;
static unsigned char packet[TN_TEE_PACKET_SIZE_MAX];
static unsigned char bytes[BYTES_MAX];

static void open_reader(void)
{
    char folder[TEMP_SIZE + 8];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct tn_buf path;
    struct tn_err err;
    temp_make(root);
    (void)snprintf(folder, sizeof folder, "%s/.tarn", root);
    CHECK(mkdir(folder, 0700) == 0);
    tn_buf_init(&path, address.sun_path, sizeof address.sun_path);
    CHECK_OK(tn_tee_path(root, &path, &err), err);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int rc = bind(listener, (const struct sockaddr *)&address, sizeof address);
    CHECK(rc == 0);
    rc = listen(listener, 1);
    CHECK(rc == 0);
    (void)alarm(SECONDS_MAX);
}

static void connect_tee(struct tn_tee *tee)
{
    struct tn_err err;
    CHECK_OK(tn_tee_open(tee, root, &err), err);
    reader = accept(listener, NULL, NULL);
    CHECK(reader >= 0);
}

static void close_reader(void)
{
    (void)alarm(0);
    (void)close(listener);
    temp_remove(root);
}

/* ---- messages that are made of their number ---- */

static struct tn_message message_of(uint64_t seed, uint32_t number)
{
    static char topic[64];
    static char table[32];
    uint64_t random = seed + number;
    uint32_t most = random_below(&random, 4) == 0 ? BYTES_MAX : 200;
    size_t size = random_below(&random, most);
    size_t topic_size = random_below(&random, sizeof topic);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)random_next(&random);
    }
    for (size_t i = 0; i < topic_size; i++) {
        topic[i] = (char)random_next(&random);
    }
    (void)snprintf(table, sizeof table, "db.t%u", number);
    return (struct tn_message){.table = table,
                               .source = random_below(&random, 3) == 0 ? NULL : "http",
                               .topic = {(const unsigned char *)topic, topic_size},
                               .input = (enum tn_input)random_below(&random, TN_INPUT_COUNT),
                               .rows = random_below(&random, 9),
                               .bytes = {bytes, size}};
}

/* False: nothing is there. */
static bool read_one(struct tn_message *message)
{
    struct tn_err err;
    ssize_t size = recv(reader, packet, sizeof packet, MSG_DONTWAIT);
    CHECK(size > 0 || size == 0 || errno == EAGAIN);
    if (size <= 0) {
        return false;
    }
    CHECK_OK(tn_tee_read((struct tn_bytes){packet, (size_t)size}, message, &err), err);
    return true;
}

static void check_same(const struct tn_message *got, const struct tn_message *want)
{
    CHECK(strcmp(got->table, want->table) == 0 && got->input == want->input);
    CHECK(strcmp(got->source, want->source ? want->source : "") == 0);
    CHECK(tn_bytes_equal(got->topic, want->topic) && tn_bytes_equal(got->bytes, want->bytes));
}

/* ---- tests ---- */

static void what_is_read_is_what_was_sent_and_the_rest_is_counted(void)
{
    struct tn_tee tee = {.open = false};
    uint64_t random = given_number("SEED", 1);
    uint64_t seed = random;
    static bool sent[STEPS];
    uint64_t missing = 0;
    uint64_t missing_rows = 0;
    uint32_t read_next = 0;
    open_reader();
    connect_tee(&tee);
    uint32_t pace = 1 + random_below(&random, 30); /* so many are sent for one that is read */
    for (uint32_t number = 0; number < STEPS; number++) {
        struct tn_message message = message_of(seed, number);
        uint64_t before = tee.sent;
        tn_tee_put(&tee, &message);
        sent[number] = tee.sent > before;
        missing += !sent[number];
        missing_rows += sent[number] ? 0 : message.rows;
        struct tn_message got;
        while (random_below(&random, pace) == 0 && read_one(&got)) {
            while (!sent[read_next]) {
                read_next++;
            }
            struct tn_message want = message_of(seed, read_next++);
            check_same(&got, &want);
        }
    }
    CHECK(tee.sent + tee.left_out == STEPS);
    CHECK(tee.left_out == missing && tee.left_out_rows == missing_rows);
    tn_tee_close(&tee);
    for (struct tn_message got; read_one(&got);) { /* what is on its way comes, also now */
        while (!sent[read_next]) {
            read_next++;
        }
        struct tn_message want = message_of(seed, read_next++);
        check_same(&got, &want);
    }
    while (read_next < STEPS && !sent[read_next]) {
        read_next++;
    }
    CHECK(read_next == STEPS);
    (void)close(reader);
    close_reader();
}

static void who_reads_nothing_is_not_waited_for_and_takes_a_bounded_part(void)
{
    struct tn_tee tee = {.open = false};
    uint64_t taken = 0;
    uint64_t offered = 0;
    open_reader();
    connect_tee(&tee);
    for (uint32_t number = 0; offered < FLOOD; number++) {
        struct tn_message message = message_of(7, number);
        uint64_t before = tee.sent;
        tn_tee_put(&tee, &message);
        offered += message.bytes.size;
        taken += tee.sent > before ? message.bytes.size : 0;
    }
    CHECK(tee.open && tee.left_out > 0 && tee.left_out_rows > 0 && taken < BUFFER_MAX);
    (void)close(reader);
    struct tn_message message = message_of(7, 1);
    uint64_t before = tee.sent + tee.left_out;
    tn_tee_put(&tee, &message);
    CHECK(!tee.open && tee.sent + tee.left_out == before);
    tn_tee_put(&tee, &message);
    CHECK(tee.sent + tee.left_out == before);
    close_reader();
}

static void the_next_one_is_heard_by_who_comes_next(void)
{
    struct tn_tee tee = {.open = false};
    struct tn_message got;
    open_reader();
    connect_tee(&tee);
    int first = reader;
    struct tn_message message = message_of(3, 1);
    tn_tee_put(&tee, &message);
    connect_tee(&tee);
    CHECK(tee.sent == 0);
    message = message_of(3, 2);
    tn_tee_put(&tee, &message);
    CHECK(read_one(&got));
    check_same(&got, &message);
    (void)close(reader);
    reader = first;
    message = message_of(3, 1);
    CHECK(read_one(&got));
    check_same(&got, &message);
    CHECK(!read_one(&got));
    (void)close(reader);
    tn_tee_close(&tee);
    close_reader();
}

static void nobody_listens(void)
{
    struct tn_tee tee = {.open = false};
    struct tn_err err;
    char text[200];
    open_reader();
    (void)close(listener);
    CHECK(tn_tee_open(&tee, root, &err) == TN_ABSENT && !tee.open);
    CHECK(tn_tee_open(&tee, "/nowhere", &err) == TN_ABSENT);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK(tn_tee_open(&tee, text, &err) == TN_INVALID);
    struct tn_message message = message_of(3, 1);
    tn_tee_put(&tee, &message);
    close_reader();
}

static void a_memo_and_the_beginning_of_a_record_are_no_rows(void)
{
    struct tn_tee tee = {.open = false};
    open_reader();
    connect_tee(&tee);
    struct tn_message message = message_of(3, 1);
    message.cut_size = 5;
    tn_tee_put(&tee, &message);
    message.cut_size = 0;
    message.table = NULL;
    tn_tee_put(&tee, &message);
    CHECK(tee.sent == 0 && tee.left_out == 0);
    tn_tee_close(&tee);
    (void)close(reader);
    close_reader();
}

/* A copy of its own size, so that a byte too many is seen. */
static void a_packet_that_is_none_is_refused(void)
{
    struct tn_tee tee = {.open = false};
    struct tn_err err;
    struct tn_message got;
    uint64_t random = given_number("SEED", 1);
    open_reader();
    connect_tee(&tee);
    struct tn_message message = message_of(5, 4);
    message.bytes.size = 20;
    tn_tee_put(&tee, &message);
    ssize_t whole = recv(reader, packet, sizeof packet, 0);
    CHECK(whole > 20);
    for (int i = 0; i < STEPS; i++) {
        size_t size = random_below(&random, (uint32_t)whole + 1);
        unsigned char *copy = malloc(size + 1);
        memcpy(copy, packet, size);
        for (uint32_t n = random_below(&random, 3); size > 0 && n > 0; n--) {
            uint32_t most = random_below(&random, 2) ? 16 : (uint32_t)size;
            copy[random_below(&random, most < size ? most : (uint32_t)size)] =
                (unsigned char)random_next(&random);
        }
        tn_rc rc = tn_tee_read((struct tn_bytes){copy, size}, &got, &err);
        CHECK(rc == TN_CORRUPT ||
              (rc == TN_OK && got.bytes.data + got.bytes.size == copy + size &&
               strlen(got.table) + strlen(got.source) < size && got.topic.size < size));
        free(copy);
    }
    tn_tee_close(&tee);
    (void)close(reader);
    close_reader();
}

/* While nothing turns there is soon no room: those that hear AGAIN come again. */
static void behind_an_intake_it_hears_once_what_was_taken(void)
{
    static const char table[] =
        "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
        "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\"}}";
    static char long_text[8000];
    uint32_t again = 0;
    uint32_t refused = 0;
    open_reader();
    sim_disk_init(&world.disk, DISK_SIZE);
    world_make_table("db.a", table);
    world_make_table("db.b", table);
    world_start(1000);
    world_run(100);
    connect_tee(&world.daemon.intake.tee);
    for (uint32_t i = 0; i < 200;) {
        struct tn_err err;
        for (int n = 0, at = 0; n < ROWS; n++) {
            at += snprintf(long_text + at, sizeof long_text - (size_t)at, "{\"id\":%u,\"n\":%d}\n",
                           i, n);
        }
        struct tn_message message = {.table = world_names[i % 2],
                                     .bytes = tn_bytes_of(i % 7 == 6 ? "{\"no\":1}" : long_text),
                                     .source = "test",
                                     .whole = true};
        tn_rc rc = tn_hub_offer(&world.daemon.intake.hub, &message, &err);
        if (rc == TN_AGAIN) {
            again++;
            world_run(40);
            continue;
        }
        CHECK(rc == (i % 7 == 6 ? TN_INVALID : TN_OK));
        refused += rc == TN_INVALID;
        struct tn_message got;
        if (rc == TN_OK) {
            CHECK(read_one(&got));
            check_same(&got, &message);
        }
        CHECK(!read_one(&got));
        i++;
    }
    CHECK(refused > 0 && world.daemon.intake.tee.sent == 200 - refused &&
          world.daemon.intake.tee.left_out == 0);
    CHECK(again > 0);
    (void)close(reader);
    world_kill();
    sim_disk_deinit(&world.disk);
    close_reader();
}

static const struct test tests[] = {
    TEST(what_is_read_is_what_was_sent_and_the_rest_is_counted),
    TEST(who_reads_nothing_is_not_waited_for_and_takes_a_bounded_part),
    TEST(the_next_one_is_heard_by_who_comes_next),
    TEST(nobody_listens),
    TEST(a_memo_and_the_beginning_of_a_record_are_no_rows),
    TEST(a_packet_that_is_none_is_refused),
    TEST(behind_an_intake_it_hears_once_what_was_taken),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
