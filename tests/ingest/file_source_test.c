/* A file that is followed: real files, a hub of the test, a clock that the test sets. A writer
 * appends numbered lines and rotates in every way, the source is stopped, killed and begun again,
 * the hub has no room, refuses, fails and loses what wasn't durable: each line comes once, in
 * order. SEED=n runs one seed. */
#include "ingest/file_source.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "given.h"
#include "random.h"
#include "sim/clock.h"
#include "temp.h"

enum {
    LINES_MAX = 20000,
    ENTRIES_MAX = 20000,
    DATA_SIZE = 1024,
    MESSAGE_MAX = TN_FILE_HEADER_MAX + DATA_SIZE,
    SEEDS = 60,
    STEPS = 600,
    CALM_STEPS = 20000,
    COPY_MIN = 256, /* bytes that tell a copy from another file */
    TICK_STEPS = 3, /* files that change within them have the same time */
};

struct entry {
    struct tn_file_place behind;
    uint32_t line_count; /* with those before it */
};

static struct {
    struct tn_hub hub; /* first */
    struct entry entries[ENTRIES_MAX];
    uint32_t count;
    uint32_t durable;
    uint32_t lines[LINES_MAX];
    uint32_t line_count;
    char text[4096]; /* of the newest message */
    uint64_t cut_size;
    bool full;
    bool asked; /* while it was full */
    bool troubled;
    bool narrow; /* takes one line at a time */
} hub;

static struct {
    char root[TEMP_SIZE];
    char path[TEMP_SIZE + 16];
    struct sim_clock clock;
    struct tn_exec_inline in_line;
    _Alignas(max_align_t) unsigned char threads[TN_EXEC_THREADS_SIZE];
    struct tn_exec *exec;
    struct tn_file_source source;
    struct tn_log log;
    unsigned char ring[64 * 1024];
    _Alignas(max_align_t) unsigned char memory[MESSAGE_MAX];
    enum tn_input input;
    bool once;
    bool open;
    uint64_t random;
    /* The writer. */
    int file;
    bool dated;
    uint32_t written;
    bool midline;
    bool tied; /* a file is copied in one go with its being cut short */
    uint32_t rotations;
    uint32_t step;
} world;

static struct tn_err err;

static bool chance(uint32_t in)
{
    return random_below(&world.random, in) == 0;
}

/* ---- the hub ---- */

static void take_lines(struct tn_message *message)
{
    const char *at = (const char *)message->bytes.data;
    const char *end = at + message->bytes.size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (*at == '#') {
            CHECK(hub.line_count < LINES_MAX);
            hub.lines[hub.line_count++] = (uint32_t)strtoul(at + 1, NULL, 10);
            message->rows++;
        }
        at = newline ? newline + 1 : end;
    }
}

static tn_rc hub_offer(struct tn_hub *self, struct tn_message *message, struct tn_err *why)
{
    CHECK(self == &hub.hub && message->sender.size > 0 && message->from && message->behind);
    CHECK(message->bytes.size <= MESSAGE_MAX);
    message->rows = 0;
    message->dead = 0;
    if (hub.full) {
        hub.asked = true;
        return tn_err_set(why, TN_AGAIN, 0, "no room");
    }
    if (hub.troubled && message->table) {
        return tn_err_set(why, TN_IO, 0, "the table is shut");
    }
    if (hub.narrow && message->split) {
        CHECK(memchr(message->bytes.data, '\n', message->bytes.size - 1) != NULL);
        return tn_err_set(why, TN_INVALID, 0, "too many rows");
    }
    CHECK(hub.count < ENTRIES_MAX && message->bytes.size < sizeof hub.text);
    if (message->bytes.size > 0) {
        memcpy(hub.text, message->bytes.data, message->bytes.size);
    }
    hub.text[message->bytes.size] = 0;
    hub.cut_size = message->cut_size;
    take_lines(message);
    struct entry *entry = &hub.entries[hub.count++];
    entry->behind = *message->behind;
    entry->line_count = hub.line_count;
    message->place = hub.count;
    return TN_OK;
}

static tn_rc hub_place(struct tn_hub *self, struct tn_bytes name, struct tn_file_place *place)
{
    CHECK(self == &hub.hub && tn_bytes_equal(name, tn_bytes_of("file:log")));
    if (hub.count == 0) {
        return TN_ABSENT;
    }
    *place = hub.entries[hub.count - 1].behind;
    return TN_OK;
}

static void hub_lose(void)
{
    hub.count = hub.durable;
    hub.line_count = hub.count > 0 ? hub.entries[hub.count - 1].line_count : 0;
}

static void hub_has_room(void)
{
    hub.full = false;
    if (hub.asked) {
        hub.asked = false;
        tn_hub_say_room(&hub.hub);
    }
}

/* ---- the source ---- */

static void notify(void *user)
{
    CHECK(user == &world);
}

static void source_open(void)
{
    struct tn_file_source_spec spec = {.name = "log",
                                       .table = "db.t",
                                       .input = world.input,
                                       .path = world.path,
                                       .hub = &hub.hub,
                                       .exec = world.exec,
                                       .clock = &world.clock.clock,
                                       .log = &world.log,
                                       .memory = world.memory,
                                       .once = world.once,
                                       .notify = notify,
                                       .user = &world};
    hub.hub.listeners = NULL;
    tn_rc rc = tn_file_source_open(&world.source, &spec, &err);
    CHECK_OK(rc, err);
    world.open = true;
}

static void source_close(void)
{
    tn_file_source_stop(&world.source);
    while (world.exec->under_way > 0) {
        (void)tn_exec_turn(world.exec, true);
    }
    CHECK(!world.source.look.open);
    world.open = false;
}

static void turn_and(bool wait)
{
    uint32_t wait_ms = 1000000;
    if (world.open) {
        tn_file_source_turn(&world.source, &wait_ms);
    }
    (void)tn_exec_turn(world.exec, wait);
}

static void turn(void)
{
    turn_and(false);
}

/* Until there is nothing to do but wait for more. */
static void settle(void)
{
    for (int i = 0; i < 200; i++) {
        sim_clock_advance_ms(&world.clock, 100);
        turn_and(true);
    }
}

static bool logged(const char *text)
{
    static unsigned char all[sizeof world.ring + 1];
    struct tn_buf buf;
    tn_buf_init(&buf, all, sizeof all - 1);
    (void)tn_log_read(&world.log, 0, &buf);
    return memmem(all, buf.size, text, strlen(text)) != NULL;
}

/* ---- the writer ---- */

static void set_time(int file)
{
    struct timespec at = {.tv_sec = 1000000 + world.step / TICK_STEPS};
    struct timespec times[] = {at, at};
    CHECK(futimens(file, times) == 0);
}

static void put(const char *text, size_t size)
{
    if (world.file < 0) {
        world.file = open(world.path, O_WRONLY | O_CREAT | O_APPEND, 0644);
        CHECK(world.file >= 0);
    }
    CHECK(write(world.file, text, size) == (ssize_t)size);
    set_time(world.file);
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

/* All of a line, or in two pieces. */
static void put_line(void)
{
    char text[512];
    if (world.midline) {
        put("...\n", 4);
        world.midline = false;
        return;
    }
    int size = snprintf(text, sizeof text, "#%u %*s|", world.written++,
                        (int)random_below(&world.random, chance(5) ? 400 : 40), "");
    world.midline = chance(4);
    if (!world.midline) {
        text[size++] = '\n';
    }
    put(text, (size_t)size);
}

static void name_old(char name[2 * TEMP_SIZE], uint32_t number)
{
    (void)snprintf(name, (size_t)2 * TEMP_SIZE, world.dated ? "%s-2024%04u" : "%s.%u", world.path,
                   number);
}

/* The name for the newest that was rotated. */
static void shift(char name[2 * TEMP_SIZE])
{
    char to[2 * TEMP_SIZE];
    for (uint32_t i = world.dated ? 0 : world.rotations; i > 0; i--) {
        name_old(name, i);
        name_old(to, i + 1);
        CHECK(rename(name, to) == 0);
    }
    name_old(name, world.dated ? world.rotations + 1 : 1);
    world.rotations++;
}

static void reopen(void)
{
    if (world.file >= 0) {
        CHECK(close(world.file) == 0);
    }
    world.file = -1;
    world.midline = false; /* its line ends with the file */
}

static void rotate(void)
{
    char name[2 * TEMP_SIZE];
    if (access(world.path, F_OK) != 0) {
        return;
    }
    shift(name);
    CHECK(rename(world.path, name) == 0);
    if (chance(2)) { /* the new one is there before anybody writes to it */
        int file = open(world.path, O_WRONLY | O_CREAT | O_APPEND, 0644);
        CHECK(file >= 0);
        set_time(file);
        CHECK(close(file) == 0);
    }
    while (world.file >= 0 && chance(2)) { /* what the writer writes before it is told */
        put_line();
    }
    reopen();
}

/* So few bytes of the file that is written to were read that a copy of it won't be known. */
static bool read_little(const char *identity, uint64_t offset, const struct stat *st)
{
    const char *inode = strchr(identity, '-');
    return inode && strtoull(inode + 1, NULL, 10) == st->st_ino && offset < COPY_MIN;
}

/* By any place that may come to count. */
static bool may_be_lost(const struct stat *st)
{
    const struct tn_file_place *place = &world.source.look.place;
    bool little = world.open && read_little(place->identity, place->offset, st);
    for (uint32_t i = hub.durable - 1; i < hub.count; i++) {
        const struct tn_file_place *at = &hub.entries[i].behind;
        little = little || read_little(at->identity, at->offset, st);
    }
    return little;
}

static void copy_and_cut(void)
{
    char name[2 * TEMP_SIZE];
    static char text[4096];
    struct stat st;
    if (world.file < 0 || world.midline || world.source.under_way) {
        return;
    }
    CHECK(fstat(world.file, &st) == 0);
    if (may_be_lost(&st)) {
        return;
    }
    shift(name);
    int from = open(world.path, O_RDONLY);
    int to = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    CHECK(from >= 0 && to >= 0);
    ssize_t size;
    while ((size = read(from, text, sizeof text)) > 0) {
        CHECK(write(to, text, (size_t)size) == size);
    }
    set_time(to);
    CHECK(close(from) == 0 && close(to) == 0);
    CHECK(ftruncate(world.file, 0) == 0);
    set_time(world.file);
}

static void write_some(void)
{
    uint32_t count = random_below(&world.random, 12);
    for (uint32_t i = 0; i < count && world.written < LINES_MAX / 2; i++) {
        put_line();
    }
    if (hub.durable > 0 && world.rotations < 40 && chance(8)) {
        if (chance(3) && world.tied) {
            copy_and_cut();
        } else {
            rotate();
        }
    }
}

/* ---- a world ---- */

static void world_open(uint64_t seed, bool threads)
{
    void *contexts[TN_LANE_COUNT] = {0};
    static const struct tn_hub_vtable vtable = {.offer = hub_offer, .place = hub_place};
    memset(&world, 0, sizeof world);
    memset(&hub, 0, sizeof hub);
    hub.hub = (struct tn_hub){.vtable = &vtable, .size_max = MESSAGE_MAX};
    world.random = seed;
    check_seed = seed;
    world.file = -1;
    temp_make(world.root);
    (void)snprintf(world.path, sizeof world.path, "%s/log", world.root);
    sim_clock_init(&world.clock, seed);
    tn_log_init(&world.log, world.ring, sizeof world.ring, NULL, NULL);
    if (threads) {
        tn_rc rc = tn_exec_threads_open(world.threads, contexts, &world.exec, &err);
        CHECK_OK(rc, err);
    } else {
        tn_exec_inline_open(&world.in_line, contexts);
        world.exec = &world.in_line.exec;
    }
}

static void world_close(void)
{
    if (world.open) {
        source_close();
    }
    reopen();
    world.exec->vtable->close(world.exec);
    temp_remove(world.root);
}

static void disturb(void)
{
    if (chance(4)) {
        hub.durable = hub.count;
    }
    if (hub.full && chance(3)) {
        hub_has_room();
    } else if (chance(20)) {
        hub.full = true;
    }
    hub.troubled = chance(20) ? !hub.troubled : hub.troubled;
    hub.narrow = chance(20) ? !hub.narrow : hub.narrow;
    if (world.open && chance(25)) {
        hub_lose(); /* the table was closed */
        tn_hub_say_rewound(&hub.hub);
    } else if (world.open && chance(25)) {
        source_close();
        if (chance(2)) {
            hub_lose();
        }
    } else if (!world.open && chance(6)) {
        source_open();
    }
}

static void check_lines(void)
{
    for (uint32_t i = 0; i < hub.line_count; i++) {
        if (hub.lines[i] != i) {
            FAIL("line %u came as %u", hub.lines[i], i);
        }
    }
}

static void run_seed(uint64_t seed, bool threads)
{
    world_open(seed, threads);
    world.dated = chance(2);
    world.tied = !threads;
    source_open();
    for (world.step = 0; world.step < STEPS; world.step++) {
        if (chance(3)) {
            write_some();
        }
        disturb();
        sim_clock_advance_ms(&world.clock, random_below(&world.random, 60));
        turn();
    }
    do { /* a last line without line end waits for what comes behind it */
        put_line();
    } while (world.midline);
    hub.troubled = false;
    hub_has_room();
    if (!world.open) {
        source_open();
    }
    for (int i = 0; i < CALM_STEPS && hub.line_count < world.written; i++) {
        sim_clock_advance_ms(&world.clock, 100);
        turn_and(true);
        check_lines();
    }
    settle();
    check_lines();
    if (hub.line_count != world.written) {
        FAIL("%u lines of %u came", hub.line_count, world.written);
    }
    CHECK(!logged("lost"));
    world_close();
}

static void run_seeds(bool threads)
{
    const char *text = getenv("SEED");
    uint64_t first = text ? strtoull(text, NULL, 10) : 1;
    uint64_t count = text ? 1 : SEEDS;
    for (uint64_t seed = first; seed < first + count; seed++) {
        run_seed(seed, threads);
    }
}

/* ---- files that go unread ---- */

enum { GONE_FILES_MAX = 64 };

static struct {
    uint32_t count;                /* of rotated files, ever; their numbers are from 0 */
    uint32_t ends[GONE_FILES_MAX]; /* line behind the last of each */
    int gone[GONE_FILES_MAX];      /* 0: it is there; else open, so that no other has its inode */
    bool lost[LINES_MAX];          /* gone before it was read */
} rotated;

/* Dated names, or counters, of which the newest is 1. */
static void name_kept(char name[2 * TEMP_SIZE], uint32_t number)
{
    name_old(name, world.dated ? number + 1 : rotated.count - number);
}

static void rotate_kept(void)
{
    char name[2 * TEMP_SIZE];
    char to[2 * TEMP_SIZE];
    rotated.ends[rotated.count++] = world.written;
    for (uint32_t i = 0; !world.dated && i + 1 < rotated.count; i++) {
        name_old(name, rotated.count - 1 - i);
        name_old(to, rotated.count - i);
        CHECK(rotated.gone[i] || rename(name, to) == 0);
    }
    name_kept(to, rotated.count - 1);
    CHECK(rename(world.path, to) == 0);
    reopen();
    world.step += TICK_STEPS; /* or the clock doesn't tell which came later */
}

static void lose(uint32_t number)
{
    char name[2 * TEMP_SIZE];
    if (rotated.gone[number]) {
        return;
    }
    name_kept(name, number);
    rotated.gone[number] = open(name, O_RDONLY);
    CHECK(rotated.gone[number] > 0 && unlink(name) == 0);
    uint32_t from = number > 0 ? rotated.ends[number - 1] : 0;
    uint32_t read = hub.line_count > 0 ? hub.lines[hub.line_count - 1] + 1 : 0;
    for (uint32_t i = from > read ? from : read; i < rotated.ends[number]; i++) {
        rotated.lost[i] = true;
    }
}

static void put_kept(uint32_t count)
{
    char text[32];
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, "#%u\n", world.written++);
        put_text(text);
    }
}

/* Each line that was there when it was looked for, once and in order. */
static bool check_kept(void)
{
    uint32_t at = 0;
    uint32_t lost = 0;
    for (uint32_t i = 0; i < world.written; i++) {
        if (rotated.lost[i]) {
            lost++;
        } else if (at >= hub.line_count || hub.lines[at++] != i) {
            FAIL("line %u: %u came of %u", i, at < hub.line_count ? hub.lines[at] : 0,
                 hub.line_count);
        }
    }
    CHECK(at == hub.line_count);
    return lost > 0;
}

/* It is away while files are rotated and some go, in order the oldest ones, else any. */
static void run_losses(uint64_t seed)
{
    world_open(seed, false);
    memset(&rotated, 0, sizeof rotated);
    world.dated = chance(2);
    bool in_order = chance(2);
    uint32_t oldest = 0;
    while (rotated.count < GONE_FILES_MAX - 8) {
        put_kept(1 + random_below(&world.random, 100));
        source_open();
        for (uint32_t i = random_below(&world.random, 12); i > 0; i--) {
            sim_clock_advance_ms(&world.clock, 100);
            turn_and(true);
        }
        source_close();
        hub.durable = hub.count;
        for (uint32_t i = random_below(&world.random, 6); hub.count > 0 && i > 0; i--) {
            world.step += TICK_STEPS;
            put_kept(1 + random_below(&world.random, 100));
            rotate_kept();
        }
        while (oldest < rotated.count && chance(2)) {
            lose(in_order ? oldest++ : random_below(&world.random, rotated.count));
        }
        world.step += TICK_STEPS;
    }
    put_kept(1);
    source_open();
    settle();
    bool lost = check_kept();
    CHECK(logged("is lost") || !lost || !in_order); /* files go unseen between others */
    world_close();
    for (uint32_t i = 0; i < rotated.count; i++) {
        CHECK(rotated.gone[i] == 0 || close(rotated.gone[i]) == 0);
    }
}

static void what_is_left_behind_a_file_that_is_gone_comes_once(void)
{
    uint64_t first = given_number("SEED", 1);
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        run_losses(seed);
    }
}

/* ---- tests ---- */

/* A world whose source has read this, and ended. */
static void world_open_behind(const char *text)
{
    world_open(1, false);
    put_text(text);
    source_open();
    settle();
    source_close();
}

static void each_line_comes_once_over_rotations_and_restarts(void)
{
    run_seeds(false);
}

static void each_line_comes_once_while_files_move_under_a_worker(void)
{
    run_seeds(true);
}

static void a_file_that_is_not_there_yet_is_waited_for(void)
{
    world_open(1, false);
    source_open();
    settle();
    CHECK(hub.count == 0 && world.source.said == TN_ABSENT);
    put_text("#0\n#1");
    settle();
    CHECK(hub.line_count == 1);
    put_text("\n");
    settle();
    CHECK(hub.line_count == 2 && world.source.said == TN_OK && world.source.idle);
    world_close();
}

static void the_end_is_the_end_when_it_runs_once(void)
{
    world_open(1, false);
    world.once = true;
    put_text("#0\n#1\n#2");
    source_open();
    settle();
    CHECK(hub.line_count == 3 && world.source.ended);
    source_close();
    put_text("\n#3\n");
    source_open();
    settle();
    CHECK(hub.line_count == 4 && world.source.ended && hub.lines[3] == 3);
    world_close();
}

static void rows_of_a_file_that_is_gone_are_said_to_be_lost(void)
{
    world_open_behind("#0\n#1\n");
    put_text("#2\n");
    int other = open(world.path, O_RDONLY); /* so that its inode isn't given again */
    CHECK(other >= 0 && unlink(world.path) == 0);
    reopen();
    source_open();
    settle();
    CHECK(hub.line_count == 2 && !logged("lost"));
    put_text("#2\n#3\n");
    settle();
    CHECK(hub.line_count == 4 && hub.lines[2] == 2 && logged("error source") && logged("lost"));
    CHECK(close(other) == 0);
    world_close();
}

/* As places were before they had one. */
static void a_place_without_a_time_knows_no_older_file(void)
{
    memset(&rotated, 0, sizeof rotated);
    world_open_behind("#0\n");
    hub.entries[0].behind.modified_ns = INT64_MAX;
    put_text("#1\n");
    int other = open(world.path, O_RDONLY);
    rotate_kept();
    put_text("#2\n");
    rotate_kept();
    put_text("#3\n");
    lose(0);
    source_open();
    settle();
    CHECK(hub.line_count == 2 && hub.lines[1] == 3 && logged("lost"));
    CHECK(close(other) == 0 && close(rotated.gone[0]) == 0);
    world_close();
}

/* Too few bytes to know a copy by, unless it is what is left. */
static void a_short_copy_goes_on_where_the_file_was_cut(void)
{
    char name[2 * TEMP_SIZE];
    world_open_behind("#0\n");
    world.step += TICK_STEPS;
    name_old(name, 1);
    int copy = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    CHECK(copy >= 0 && write(copy, "#0\n#1\n", 6) == 6);
    set_time(copy);
    CHECK(close(copy) == 0 && ftruncate(world.file, 0) == 0);
    world.step += TICK_STEPS;
    put_text("#2\n");
    source_open();
    settle();
    CHECK(hub.line_count == 3);
    check_lines();
    world_close();
}

static void a_file_that_is_written_anew_begins_at_its_beginning(void)
{
    world_open(1, false);
    put_text("#0 and some more\n");
    source_open();
    settle();
    CHECK(ftruncate(world.file, 0) == 0);
    put_text("#1 and some more\n"); /* as long as before */
    world.step = TICK_STEPS;
    put_text("#2\n");
    settle();
    CHECK(hub.line_count == 3 && hub.lines[1] == 1 && hub.lines[2] == 2);
    CHECK(logged("warn source") && logged("written anew"));
    world_close();
}

static void a_file_that_grows_keeps_its_place(void)
{
    world_open(1, false);
    source_open();
    for (uint32_t i = 0; i < 2000; i++) { /* beyond what is hashed */
        char text[80];
        (void)snprintf(text, sizeof text, "#%u %050u\n", i, i);
        put_text(text);
        if (i % 100 == 0) {
            settle();
            source_close();
            source_open();
        }
    }
    settle();
    CHECK(hub.line_count == 2000);
    check_lines();
    CHECK(strstr(hub.entries[hub.count - 1].behind.identity, "-65536-") != NULL);
    world_close();
}

static void a_line_that_is_too_long_is_a_letter_and_the_next_is_read(void)
{
    world_open(1, false);
    source_open();
    put_text("#0\n#1");
    for (int i = 0; i < 4 * DATA_SIZE; i++) {
        put_text("x");
    }
    settle();
    CHECK(hub.line_count == 1);
    source_close(); /* it is begun again */
    source_open();
    put_text("\n");
    settle();
    CHECK(hub.line_count == 2 && hub.cut_size == 4 * DATA_SIZE + 3);
    put_text("#2\n");
    settle();
    CHECK(hub.line_count == 3 && hub.lines[2] == 2 && hub.cut_size == 0);
    world_close();
}

/* What such a text quotes would be a row; and its end ends it, not a line end. */
static void a_text_of_many_lines_that_is_too_long_brings_no_rows(void)
{
    world_open(1, false);
    world.input = TN_INPUT_CSV;
    source_open();
    put_text("name\n#0\n\"");
    for (int i = 0; i < DATA_SIZE; i++) {
        put_text("x9,\"\"\n");
        if (i % 100 == 0) {
            settle();
        }
    }
    settle();
    CHECK(hub.line_count == 1);
    source_close(); /* it is begun again */
    source_open();
    settle();
    put_text("\"\n");
    settle();
    CHECK(hub.cut_size == 6 * DATA_SIZE + 3 && hub.count == 2);
    put_text("\"#1\n\"\n#2\n");
    settle();
    CHECK(strcmp(hub.text, "name\n\"#1\n\"\n#2\n") == 0 && hub.cut_size == 0);
    CHECK(world.source.look.place.line == DATA_SIZE + 6 && logged("a record of 6147 bytes"));
    world_close();
}

static void a_quote_that_does_not_end_holds_up_a_bounded_number_of_bytes(void)
{
    size_t size = 6;
    world_open(1, false);
    world.input = TN_INPUT_LINE;
    source_open();
    put_text("m t=\"\n");
    while (size <= (size_t)TN_RECORD_MESSAGES_MAX * DATA_SIZE) {
        put_text("m t=5\n");
        size += 6;
        if (random_below(&world.random, 100) == 0) {
            settle();
        }
        CHECK(hub.count == 0);
    }
    put_text("m t=6\n");
    settle();
    CHECK(hub.count == 2 && strcmp(hub.text, "m t=6\n") == 0);
    CHECK(world.source.look.place.line == size / 6 + 1 && logged("has no end"));
    world_close();
}

static void a_csv_header_stands_before_each_batch(void)
{
    world_open(1, false);
    world.input = TN_INPUT_CSV;
    source_open();
    put_text("\nname,");
    settle();
    CHECK(hub.count == 0);
    put_text("text\na,b\n");
    settle();
    CHECK(strcmp(hub.text, "\nname,text\na,b\n") == 0);
    source_close();
    source_open();
    put_text("c,\"d\n");
    settle();
    CHECK(hub.count == 1); /* the quote goes on */
    put_text("#e\"\"\n\"\n");
    settle();
    CHECK(strcmp(hub.text, "\nname,text\nc,\"d\n#e\"\"\n\"\n") == 0);
    rotate();
    put_text("other\n1\n");
    settle();
    CHECK(strcmp(hub.text, "other\n1\n") == 0);
    world_close();
}

/* Bytes come as the writer's buffer has them, and a text may hold line ends. */
static void a_text_of_the_line_protocol_is_never_cut(void)
{
    world_open(1, false);
    world.input = TN_INPUT_LINE;
    source_open();
    put_text("m t=1\nlog,a=\"b text=\"one\n");
    settle();
    CHECK(hub.count == 1 && strcmp(hub.text, "m t=1\n") == 0);
    put_text("two \\\" m t=2\n");
    settle();
    CHECK(hub.count == 1);
    put_text("three\",n=\"\" 1\n# a \"comment\nm t=3\n");
    settle();
    CHECK(strcmp(hub.text, "log,a=\"b text=\"one\ntwo \\\" m t=2\nthree\",n=\"\" 1\n"
                           "# a \"comment\nm t=3\n") == 0);
    source_close();
    source_open();
    hub.narrow = true; /* less at once: also then */
    put_text("m t=4\nm s=\"5\n\"\nm t=6\n");
    world.source.look.limit = 8;
    settle();
    CHECK(strcmp(hub.text, "m t=6\n") == 0);
    put_text("m s=\"no end\nm t=7\n");
    settle();
    CHECK(strcmp(hub.text, "m t=6\n") == 0);
    rotate(); /* nothing comes of it any more */
    put_text("m t=8\n");
    settle();
    CHECK(hub.count > 5 && strcmp(hub.text, "m t=8\n") == 0);
    world_close();
}

static void a_header_that_is_too_long_is_said_once(void)
{
    world_open(1, false);
    world.input = TN_INPUT_CSV;
    for (int i = 0; i <= TN_FILE_HEADER_MAX; i++) {
        put_text("x");
    }
    put_text("\n1\n");
    source_open();
    settle();
    CHECK(hub.count == 0 && world.source.said == TN_INVALID && logged("names the columns") &&
          strstr(world.source.trouble.text, "names the columns") != NULL);
    reopen();
    char name[2 * TEMP_SIZE];
    shift(name);
    CHECK(rename(world.path, name) == 0);
    put_text("x\n1\n");
    settle();
    CHECK(strcmp(hub.text, "x\n1\n") == 0);
    world_close();
}

static void a_compressed_file_that_was_not_read_is_told(void)
{
    char name[2 * TEMP_SIZE];
    world_open_behind("#0\n");
    rotate();
    world.step = 10 * TICK_STEPS;
    put_text("#1\n");
    (void)snprintf(name, sizeof name, "%s.0.gz", world.path);
    CHECK(rename(world.path, name) == 0);
    reopen();
    put_text("#2\n");
    source_open();
    settle();
    CHECK(hub.line_count == 2 && hub.lines[1] == 2 && logged("compressed"));
    world_close();
}

static void other_files_beside_it_are_left_alone(void)
{
    char name[2 * TEMP_SIZE];
    world_open(1, false);
    put_text("#0\n");
    source_open();
    settle();
    char *real = strdup(world.path);
    for (int i = 0; i < 3; i++) {
        static const char *const suffixes[] = {".bak", ".swp", "-x"};
        (void)snprintf(name, sizeof name, "%s%s", real, suffixes[i]);
        int file = open(name, O_WRONLY | O_CREAT, 0644);
        CHECK(file >= 0 && write(file, "#9\n", 3) == 3 && close(file) == 0);
    }
    free(real);
    rotate();
    put_text("#1\n");
    settle();
    CHECK(hub.line_count == 2 && hub.lines[1] == 1);
    world_close();
}

/* Over a rotation, and where it rests at its end. */
static void a_source_goes_back_when_rows_are_lost_with_their_table(void)
{
    world_open(1, false);
    put_text("#0\n#1\n");
    source_open();
    settle();
    hub.durable = hub.count;
    put_text("#2\n");
    settle();
    rotate();
    put_text("#3\n");
    settle();
    CHECK(hub.line_count == 4 && world.source.look.place.passed > 0);
    uint64_t before = world.source.look.place.passed + world.source.look.place.offset;
    hub_lose();
    CHECK(hub.line_count == 2);
    tn_hub_say_rewound(&hub.hub);
    settle();
    check_lines();
    CHECK(hub.line_count == 4 && hub.lines[3] == 3);
    CHECK(before == world.source.look.place.passed + world.source.look.place.offset);
    world_close();
}

/* The file that it had left would be gone. */
static void a_source_stays_where_it_is_when_it_lost_nothing(void)
{
    char name[2 * TEMP_SIZE];
    memset(&rotated, 0, sizeof rotated);
    world_open(1, false);
    put_text("#0\n");
    source_open();
    settle();
    rotate_kept();
    put_text("#1");
    settle();
    CHECK(hub.line_count == 1 && world.source.look.place.passed == 3);
    name_kept(name, 0);
    CHECK(unlink(name) == 0);
    tn_hub_say_rewound(&hub.hub);
    settle();
    put_text("\n");
    settle();
    check_lines();
    CHECK(hub.line_count == 2 && !logged("lost") && !logged("goes on"));
    world_close();
}

static void a_source_that_ended_goes_back_too(void)
{
    world_open(1, false);
    world.once = true;
    put_text("#0\n#1");
    source_open();
    settle();
    CHECK(hub.line_count == 2 && world.source.ended);
    hub_lose();
    tn_hub_say_rewound(&hub.hub);
    turn();
    CHECK(!world.source.ended);
    settle();
    check_lines();
    CHECK(hub.line_count == 2 && world.source.ended);
    world_close();
}

static void a_place_is_read_as_it_was_written(void)
{
    static const char *const wrong[] = {"",
                                        ":",
                                        "x",
                                        "1-2-3-4:x:y",
                                        "1-2-3-4:5",
                                        "1-2-3-4:5:6:x",
                                        "1-2-3-4:5:6:-",
                                        "1-2-3-4:5:6:7:8:9:10",
                                        "1-2-3-4:5:",
                                        ":5:6",
                                        "1-2-3-4:5:6 ",
                                        "1-2-3-4 5:6",
                                        "1-2-3-4:5:6:7:8:"};
    char text[TN_FILE_PLACE_SIZE];
    struct tn_file_place again;
    struct tn_file_place place = {
        .offset = UINT64_MAX, .line = 7, .modified_ns = -5, .part = 3, .passed = 1};
    (void)snprintf(place.identity, sizeof place.identity, "1-2-3-4");
    tn_file_place_format(&place, text);
    CHECK(tn_file_place_parse(tn_bytes_of(text), &again) && tn_file_place_equal(&place, &again));
    CHECK(again.line == 7 && again.modified_ns == -5);
    CHECK(tn_file_place_parse(tn_bytes_of("1-2-3-4:5:6"), &again));
    CHECK(again.offset == 5 && again.line == 6 && again.part == 0 && again.passed == 0);
    CHECK(again.modified_ns == INT64_MAX);
    CHECK(tn_file_place_parse(tn_bytes_of("1-2-3-4:5:6:7"), &again) && again.modified_ns == 7);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        CHECK(!tn_file_place_parse(tn_bytes_of(wrong[i]), &again));
    }
}

static const struct test tests[] = {
    TEST(each_line_comes_once_over_rotations_and_restarts),
    TEST(each_line_comes_once_while_files_move_under_a_worker),
    TEST(what_is_left_behind_a_file_that_is_gone_comes_once),
    TEST(a_place_without_a_time_knows_no_older_file),
    TEST(a_short_copy_goes_on_where_the_file_was_cut),
    TEST(a_file_that_is_not_there_yet_is_waited_for),
    TEST(the_end_is_the_end_when_it_runs_once),
    TEST(rows_of_a_file_that_is_gone_are_said_to_be_lost),
    TEST(a_file_that_is_written_anew_begins_at_its_beginning),
    TEST(a_file_that_grows_keeps_its_place),
    TEST(a_line_that_is_too_long_is_a_letter_and_the_next_is_read),
    TEST(a_text_of_many_lines_that_is_too_long_brings_no_rows),
    TEST(a_quote_that_does_not_end_holds_up_a_bounded_number_of_bytes),
    TEST(a_csv_header_stands_before_each_batch),
    TEST(a_text_of_the_line_protocol_is_never_cut),
    TEST(a_header_that_is_too_long_is_said_once),
    TEST(a_compressed_file_that_was_not_read_is_told),
    TEST(other_files_beside_it_are_left_alone),
    TEST(a_source_goes_back_when_rows_are_lost_with_their_table),
    TEST(a_source_stays_where_it_is_when_it_lost_nothing),
    TEST(a_source_that_ended_goes_back_too),
    TEST(a_place_is_read_as_it_was_written),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
