/* Standard input: a pipe that is written in pieces of any size, and a hub of the test that has no
 * room, takes one record at a time or fails now and then. Records come whole, in their order, and
 * once; of one that is too long come the beginning and the size. SEED=n runs one seed. */
#include "app/lines.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "given.h"
#include "random.h"
#include "sim/clock.h"

enum {
    BUFFER_SIZE = 512,
    MESSAGE_MAX = TN_LINES_HEADER_MAX + BUFFER_SIZE,
    BEGINNING = BUFFER_SIZE / 2,
    RECORDS = 200,
    TEXT_SIZE = 256 * 1024,
    SEEDS = 20,
    LOG_SIZE = 64 * 1024,
};

struct expected {
    const unsigned char *text;
    size_t size; /* with its line end */
};

static struct {
    struct tn_hub hub; /* first */
    struct expected records[RECORDS];
    uint32_t count;
    uint32_t next; /* that is to come */
    uint32_t cut;
    uint64_t random;
    enum tn_input input;
    const char *header;
    bool rough; /* it has no room, and so on */
    unsigned char text[TEXT_SIZE];
    size_t size;
} given;

static struct {
    struct tn_lines lines;
    struct sim_clock clock;
    struct tn_log log;
    unsigned char ring[LOG_SIZE];
    unsigned char memory[3 * TN_LINES_HEADER_MAX + BUFFER_SIZE];
    int ends[2];
    pthread_t writer;
} world;

/* ---- the hub ---- */

static void take_cut(const struct tn_message *message)
{
    const struct expected *e = &given.records[given.next++];
    CHECK(message->cut_size == e->size && message->bytes.size == BEGINNING && !message->split);
    CHECK(memcmp(message->bytes.data, e->text, BEGINNING) == 0);
    given.cut++;
}

static struct tn_bytes without_header(struct tn_bytes bytes)
{
    size_t size = given.header ? strlen(given.header) : 0;
    CHECK(bytes.size > size && memcmp(bytes.data, given.header ? given.header : "", size) == 0);
    return (struct tn_bytes){bytes.data + size, bytes.size - size};
}

static void take_whole(const struct tn_message *message)
{
    struct tn_bytes rest = without_header(message->bytes);
    uint32_t count = 0;
    while (rest.size > 0) {
        CHECK(given.next < given.count);
        const struct expected *e = &given.records[given.next++];
        CHECK(rest.size >= e->size && memcmp(rest.data, e->text, e->size) == 0);
        rest.data += e->size;
        rest.size -= e->size;
        count++;
    }
    CHECK(message->split == (count > 1));
}

static tn_rc offer(struct tn_hub *hub, struct tn_message *message, struct tn_err *err)
{
    CHECK(message->bytes.size <= hub->size_max && message->input == given.input);
    uint32_t drawn = given.rough ? random_below(&given.random, 8) : 0;
    if (drawn == 1) {
        return tn_err_set(err, TN_AGAIN, 0, "no room");
    }
    if (drawn == 2) {
        return tn_err_set(err, TN_IO, 0, "the table is shut");
    }
    if (drawn == 3 && message->split) {
        return tn_err_set(err, TN_INVALID, 0, "too many rows");
    }
    if (message->cut_size > 0) {
        take_cut(message);
    } else {
        take_whole(message);
    }
    message->rows = 1;
    return TN_OK;
}

/* ---- the pipe ---- */

static void notify(void *user)
{
    (void)user;
}

static void *write_all(void *seed)
{
    uint64_t random = *(const uint64_t *)seed;
    for (size_t at = 0; at < given.size;) {
        size_t most = random_below(&random, 3) == 0 ? 2000 : 40;
        size_t size = 1 + random_below(&random, (uint32_t)most);
        size = size < given.size - at ? size : given.size - at;
        ssize_t wrote = write(world.ends[1], given.text + at, size);
        CHECK(wrote > 0);
        at += (size_t)wrote;
    }
    (void)close(world.ends[1]);
    return NULL;
}

/* All that is given is written, and read to its end. */
static void run(uint64_t seed)
{
    static const struct tn_hub_vtable vtable = {.offer = offer};
    struct tn_err err;
    given.hub = (struct tn_hub){.vtable = &vtable, .size_max = MESSAGE_MAX};
    sim_clock_init(&world.clock, seed);
    tn_log_init(&world.log, world.ring, sizeof world.ring, NULL, NULL);
    CHECK(pipe(world.ends) == 0);
    struct tn_lines_spec spec = {.name = "stdin",
                                 .table = "db.t",
                                 .input = given.input,
                                 .hub = &given.hub,
                                 .log = &world.log,
                                 .clock = &world.clock.clock,
                                 .memory = world.memory,
                                 .fd = world.ends[0],
                                 .notify = notify};
    CHECK(tn_lines_memory(&given.hub) <= sizeof world.memory);
    CHECK_OK(tn_lines_open(&world.lines, &spec, &err), err);
    CHECK(pthread_create(&world.writer, NULL, write_all, &seed) == 0);
    while (!world.lines.ended) {
        uint32_t wait_ms = 100;
        tn_lines_turn(&world.lines, &wait_ms);
        sim_clock_advance_ms(&world.clock, wait_ms);
        (void)sched_yield();
    }
    CHECK(pthread_join(world.writer, NULL) == 0);
    tn_lines_close(&world.lines);
    (void)close(world.ends[0]);
}

/* ---- what is given ---- */

static void begin(enum tn_input input, uint64_t seed)
{
    memset(&given, 0, sizeof given);
    given.input = input;
    given.random = seed;
}

static void put(const char *text, size_t size)
{
    CHECK(given.size + size <= TEXT_SIZE);
    memcpy(given.text + given.size, text, size);
    given.size += size;
}

static void put_header(const char *text)
{
    given.header = text;
    put(text, strlen(text));
}

static void end_record(size_t from)
{
    given.records[given.count++] = (struct expected){given.text + from, given.size - from};
}

static void put_record(const char *text)
{
    size_t from = given.size;
    put(text, strlen(text));
    end_record(from);
}

static void put_filler(uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        put("x", 1);
    }
}

static void draw_record(bool long_one)
{
    size_t from = given.size;
    bool quoted = given.input != TN_INPUT_JSON && random_below(&given.random, 2);
    uint32_t size = long_one
                        ? BUFFER_SIZE + random_below(&given.random, 3 * BUFFER_SIZE)
                        : random_below(&given.random, random_below(&given.random, 6) ? 40 : 200);
    put(given.input == TN_INPUT_LINE ? "m t=" : "", given.input == TN_INPUT_LINE ? 4 : 0);
    put("\"", quoted);
    for (uint32_t i = 0; i < size; i++) {
        bool ends = quoted && random_below(&given.random, 10) == 0;
        put(ends ? "\n" : "x", 1);
    }
    put("\"", quoted);
    put("\n", 1);
    end_record(from);
}

static void run_seed(enum tn_input input, uint64_t seed)
{
    uint32_t long_ones = 0;
    begin(input, seed);
    given.rough = seed % 2;
    if (input == TN_INPUT_CSV) {
        put_header("name,text\n");
    }
    while (given.count < RECORDS) {
        bool long_one = random_below(&given.random, 20) == 0;
        long_ones += long_one;
        draw_record(long_one);
    }
    if (given.records[given.count - 1].size > 1 && random_below(&given.random, 2)) {
        /* the end ends the last one */
        given.size--;
        given.records[given.count - 1].size--;
    }
    run(seed);
    if (given.next != given.count) {
        FAIL("seed %llu: %u of %u records", (unsigned long long)seed, given.next, given.count);
    }
    CHECK(given.cut <= long_ones && (given.cut > 0) == (long_ones > 0));
}

static void run_seeds(enum tn_input input)
{
    uint64_t seed = given_number("SEED", 1);
    for (uint64_t i = 0; i < SEEDS; i++) {
        run_seed(input, seed + i);
    }
}

static void each_line_comes_once_and_whole(void)
{
    run_seeds(TN_INPUT_JSON);
}

static void no_text_of_csv_is_cut(void)
{
    run_seeds(TN_INPUT_CSV);
}

static void no_text_of_the_line_protocol_is_cut(void)
{
    run_seeds(TN_INPUT_LINE);
}

static void a_line_that_is_too_long_comes_as_its_beginning_and_its_size(void)
{
    begin(TN_INPUT_CSV, 1);
    put_header("name\n");
    put_record("a\n");
    size_t from = given.size;
    put_filler(100000);
    put("\n", 1);
    end_record(from);
    put_record("b\n");
    from = given.size;
    put_filler(BUFFER_SIZE + 1); /* the end ends it */
    end_record(from);
    run(1);
    CHECK(given.next == 4 && given.cut == 2);
}

/* What such a text quotes would be a row. */
static void a_text_of_many_lines_that_is_too_long_brings_no_rows(void)
{
    begin(TN_INPUT_CSV, 1);
    put_header("name\n");
    put_record("a\n");
    size_t from = given.size;
    put("\"", 1);
    while (given.size - from < (size_t)4 * BUFFER_SIZE) {
        put("drop,\"\"everything\"\"\n", 20);
    }
    put("\"\n", 2);
    end_record(from);
    put_record("\"b\n\"\n");
    run(1);
    CHECK(given.next == 3 && given.cut == 1);
}

/* As much of it is lost as a text may have, and what comes behind is taken. */
static void a_quote_that_does_not_end_holds_up_a_bounded_number_of_bytes(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(TN_INPUT_LINE, seed);
        given.rough = seed % 2;
        put_record("m t=1\n");
        size_t from = given.size;
        put("m t=\"\n", 6);
        while (given.size - from <= (size_t)TN_RECORD_MESSAGES_MAX * BUFFER_SIZE) {
            put("m t=5\n", 6);
        }
        end_record(from);
        put_record("m t=2\n");
        put_record("m t=3\n");
        run(seed);
        CHECK(given.next == given.count && given.cut == 1);
    }
}

static void the_end_ends_a_text_that_does_not(void)
{
    begin(TN_INPUT_LINE, 1);
    put_record("m t=1\n");
    size_t from = given.size;
    put("m t=\"\n", 6);
    put_filler(3 * BUFFER_SIZE);
    put("\nm t=2\n", 7);
    end_record(from);
    run(1);
    CHECK(given.next == 2 && given.cut == 1);
}

static const struct test tests[] = {
    TEST(each_line_comes_once_and_whole),
    TEST(no_text_of_csv_is_cut),
    TEST(no_text_of_the_line_protocol_is_cut),
    TEST(a_line_that_is_too_long_comes_as_its_beginning_and_its_size),
    TEST(a_text_of_many_lines_that_is_too_long_brings_no_rows),
    TEST(a_quote_that_does_not_end_holds_up_a_bounded_number_of_bytes),
    TEST(the_end_ends_a_text_that_does_not),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
