/* Random rows, flushes at any size, commits, compactions, power cuts, errors: what a table holds
 * whose rows are resolved before they are written (resolve_world.h).
 */
#include "base/exec.h"

#include "resolve_world.h"
#include "temp.h"

static void every_snapshot_is_what_the_rows_make(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t runs = 0;
    uint64_t flushes = 0;
    uint64_t letters = 0;
    do {
        struct sim_disk disk;
        uint64_t random = seed;
        make_world(seed, 1 + random_below(&random, ROWS_MAX), random_below(&random, 3) == 0);
        begin_disk(&disk);
        struct writer w = our_writer(&engines[OURS], random);
        tn_rc rc = write_all(&w);
        if (rc != TN_OK) {
            stop(&disk, w.err.text);
        }
        CHECK(w.told == world.row_count);
        flushes += w.counts.flushes;
        letters += w.counts.letters;
        look_again(&engines[OURS], &disk, &w, false);
        sim_disk_deinit(&disk);
        seed++;
        runs++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " flushes, %" PRIu64 " letters\n", runs, flushes,
                 letters);
}

/* ---- the power goes ---- */

struct cuts {
    struct sim_disk disk;
    struct writer writer;
    uint64_t random;
    uint32_t every;
    uint64_t states;
};

/* What is left is opened, looked at, and written on. */
static void look_behind_cut(struct cuts *cuts, const struct sim_disk *disk)
{
    struct sim_disk found;
    struct writer w = our_writer(&engines[AGAIN], random_next(&cuts->random));
    sim_disk_clone(&found, disk);
    sim_disk_reboot(&found, random_below(&cuts->random, 4) ? random_next(&cuts->random) % 100000
                                                           : SIM_SEED_NOTHING);
    letters_start(w.letters, cuts->writer.letters->published);
    w.told = cuts->writer.told;
    look_again(w.engine, &found, &w, false);
    bed_engine_start(w.engine, &found.io, cuts->random);
    tn_rc rc = write_all(&w);
    if (rc != TN_OK) {
        stop(&found, w.err.text);
    }
    CHECK(w.told == world.row_count);
    look_again(w.engine, &found, &w, false);
    sim_disk_deinit(&found);
    cuts->states++;
}

static void before_cut(void *user, struct sim_disk *disk)
{
    struct cuts *cuts = user;
    if (random_below(&cuts->random, cuts->every) == 0) {
        look_behind_cut(cuts, disk);
    }
}

static void a_cut_neither_loses_nor_doubles_a_row(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t states = 0;
    do {
        static struct cuts cuts;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, 200), random_below(&random, 2) == 0);
        cuts = (struct cuts){.random = random, .every = 40};
        begin_disk(&cuts.disk);
        cuts.disk.model = seed % 3 == 0 ? SIM_ORDERED : SIM_STRICT;
        cuts.writer = our_writer(&engines[OURS], random);
        sim_disk_watch(&cuts.disk, before_cut, &cuts);
        tn_rc rc = write_all(&cuts.writer);
        if (rc != TN_OK) {
            stop(&cuts.disk, cuts.writer.err.text);
        }
        sim_disk_deinit(&cuts.disk);
        states += cuts.states;
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " states\n", states);
}

/* ---- calls fail, the script is parked, letters can't be published ---- */

/* As a daemon does it: a table that ended is opened again, and goes on behind what is committed. */
static __attribute__((noinline)) tn_rc write_stubbornly(struct writer *w, uint32_t *reopened)
{
    tn_rc rc = write_all(w);
    for (*reopened = 0; rc != TN_OK && *reopened < 20; (*reopened)++) {
        letters_start(w->letters, w->letters->published);
        rc = write_all(w);
    }
    return rc;
}

static void an_error_neither_loses_nor_doubles_a_row(void)
{
    static const tn_rc codes[] = {TN_FULL, TN_IO, TN_FULL, TN_FULL};
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t retried = 0;
    uint64_t reopened_all = 0;
    do {
        struct sim_disk disk;
        uint64_t random = seed;
        uint32_t reopened;
        make_world(seed, 20 + random_below(&random, 400), random_below(&random, 2) == 0);
        begin_disk(&disk);
        struct writer w = our_writer(&engines[OURS], random);
        w.retries = 3;
        w.letters->refusal = random_below(&random, 2);
        judge.cancel_at = random_below(&random, 2) * random_below(&random, 400);
        sim_disk_fail_call(&disk, 20 + random_below(&random, 3000), codes[seed % COUNT(codes)]);
        tn_rc rc = write_stubbornly(&w, &reopened);
        if (rc != TN_OK) {
            stop(&disk, w.err.text);
        }
        CHECK(w.told == world.row_count);
        retried += 3 - w.retries;
        reopened_all += reopened;
        sim_disk_fail_call(&disk, 0, TN_OK);
        look_again(&engines[OURS], &disk, &w, false);
        sim_disk_deinit(&disk);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " errors went by, %" PRIu64 " tables opened again\n", retried,
                 reopened_all);
}

static void a_parked_script_keeps_rows_and_its_text(void)
{
    struct sim_disk disk;
    make_world(3, 200, false);
    begin_disk(&disk);
    struct writer w = our_writer(&engines[OURS], 3);
    w.cut_every = UINT32_MAX;
    judge.cancel_at = 60;
    tn_rc rc = open_table(&w);
    CHECK_OK(rc, w.err);
    rc = write_rows(&w);
    CHECK(rc == TN_CANCELED && strcmp(w.err.text, "the script is parked") == 0);
    judge.cancel_at = judge.calls + 1;
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK(rc == TN_CANCELED && strcmp(w.err.text, "the script is parked") == 0);
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK_OK(rc, w.err);
    close_table(&w);
    CHECK(w.told == world.row_count);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
}

/* Until they are, nothing is committed; an error comes out, and it is tried again. */
static void letters_are_published_before_their_round(void)
{
    struct sim_disk disk;
    make_world(4, 100, false);
    begin_disk(&disk);
    struct writer w = our_writer(&engines[OURS], 4);
    w.cut_every = UINT32_MAX;
    world.rows[3].value = 13;
    tn_rc rc = open_table(&w);
    CHECK_OK(rc, w.err);
    w.letters->refusal = 2;
    w.letters->delays = 5;
    rc = write_rows(&w);
    CHECK(rc == TN_FULL && strcmp(w.err.text, "no room for letters") == 0 && w.told == 0);
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK(rc == TN_FULL && w.told == 0);
    rc = tn_table_finish(w.table, world.row_count, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(w.told == world.row_count && w.letters->publishings == 1 && w.letters->published[3]);
    rc = tn_table_finish(w.table, world.row_count, &w.err); /* a round without letters */
    CHECK_OK(rc, w.err);
    CHECK(w.letters->publishings == 1);
    close_table(&w);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
}

/* The resolver and the sink are asked on a thread of their own, and letters published while none
 * is. */
static void a_worker_s_thread_resolves_as_well(void)
{
    uint64_t seed = given_number("SEED", 1);
    for (uint64_t end = seed + 6; seed < end; seed++) {
        static struct look look;
        char root[TEMP_SIZE];
        struct tn_io_posix posix;
        temp_make(root);
        bed_open_files(&posix, root);
        make_world(seed, ROWS_MAX / 2, true);
        bed_create(&engines[OURS], &posix.io, &world.base);
        struct writer w = our_writer(&engines[OURS], seed);
        bed_engine_start_threads(&engines[OURS], &posix.io);
        tn_rc rc = write_all(&w);
        bed_engine_stop(&engines[OURS]);
        CHECK_OK(rc, w.err);
        bed_engine_start(&engines[OURS], &posix.io, seed);
        memset(&look, 0, sizeof look);
        look.engine = &engines[OURS];
        const char *problem = look_at_all(&look, w.letters->published);
        if (problem) {
            stop(NULL, problem);
        }
        CHECK(look.position == world.row_count);
        tn_io_posix_close(&posix);
        temp_remove(root);
    }
}

/* With `size` bytes for flushes and compactions. */
static uint64_t write_many_runs(uint32_t size)
{
    struct sim_disk disk;
    runs_min = 400;
    make_world(7, 900, true);
    runs_min = 0;
    world.announce = HIDDEN_NONE; /* so that no row is a letter */
    judge.resolver.announce = NULL;
    for (uint32_t i = 0; i < world.row_count; i++) { /* each is a row, of any key */
        world.rows[i] = (struct input){world.rows[i].key, 1 + (int32_t)(i % 3), i, TN_ROW_INSERT};
    }
    begin_disk(&disk);
    struct tn_arena *arena = &engines[OURS].workers[TN_LANE_LONG].arena;
    CHECK(tn_arena_free(arena) > size);
    (void)tn_arena_take(arena, tn_arena_free(arena) - size);
    struct writer w = our_writer(&engines[OURS], 7);
    w.cut_every = 1;
    tn_rc rc = write_all(&w);
    if (rc != TN_OK) {
        stop(&disk, w.err.text);
    }
    CHECK(w.counts.flushes > 400 && w.counts.letters == 0);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
    return w.counts.compactions;
}

/* Memory for a lookup in fewer runs than there may be: a compaction comes first then. */
static void runs_that_are_too_many_are_compacted_first(void)
{
    uint64_t compactions = 0;
    for (uint32_t size = 600 << 10; compactions == 0; size -= 50 << 10) {
        compactions = write_many_runs(size);
    }
}

/* Many flushes between two cuts, memory for a lookup in few runs, and of a round's files
 * compactions may take few: results wait for the next cut, and flushes that lack memory don't. */
static void a_flush_lacks_no_memory_while_a_result_waits_for_a_cut(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t runs = 0;
    uint64_t waited = 0;
    uint64_t crowded = 0;
    do {
        struct sim_disk disk;
        uint64_t random = seed;
        runs_min = 8 + random_below(&random, 60);
        make_world(seed, 100 + random_below(&random, 300), random_below(&random, 3) == 0);
        runs_min = 0;
        begin_disk(&disk);
        struct tn_arena *arena = &engines[OURS].workers[TN_LANE_LONG].arena;
        uint32_t size = (360 + random_below(&random, 200)) << 10;
        (void)tn_arena_take(arena, tn_arena_free(arena) - size);
        struct writer w = our_writer(&engines[OURS], random);
        w.freeze_every = 1 + random_below(&random, 4);
        w.removals_max = 1 + random_below(&random, 12);
        w.cut_every = 20 + random_below(&random, 200);
        tn_rc rc = write_all(&w);
        if (rc != TN_OK) {
            stop(&disk, w.err.text);
        }
        CHECK(w.told == world.row_count);
        waited += w.waited;
        crowded += w.crowded;
        look_again(&engines[OURS], &disk, &w, false);
        sim_disk_deinit(&disk);
        seed++;
        runs++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " turns with too many runs, %" PRIu64
                 " with a result that waited\n",
                 runs, crowded, waited);
}

static void without_a_resolver_no_row_is_taken(void)
{
    struct sim_disk disk;
    make_world(5, 100, false);
    begin_disk(&disk);
    struct writer w = our_writer(&engines[OURS], 5);
    tn_rc rc = write_all(&w);
    CHECK_OK(rc, w.err);
    struct bed_writer plain = {.engine = &engines[OURS], .scenario = &world.base, .who = "a test"};
    rc = bed_open(&plain);
    CHECK_OK(rc, plain.err);
    unsigned char packed[ROW_MAX];
    rc = tn_table_put(plain.table, pack_input(&world.rows[0], packed), TN_ROW_INSERT, &plain.err);
    CHECK(rc == TN_UNSUPPORTED && strstr(plain.err.text, "'tarn.script' = 't.lua'"));
    bed_close(&plain);
    rc = bed_compact(&plain, BED_COMPACTS_ALL);
    CHECK_OK(rc, plain.err);
    look_again(&engines[OURS], &disk, &w, false);
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(every_snapshot_is_what_the_rows_make),
    TEST(without_a_resolver_no_row_is_taken),
    TEST(letters_are_published_before_their_round),
    TEST(a_parked_script_keeps_rows_and_its_text),
    TEST(an_error_neither_loses_nor_doubles_a_row),
    TEST(a_worker_s_thread_resolves_as_well),
    TEST(runs_that_are_too_many_are_compacted_first),
    TEST(a_flush_lacks_no_memory_while_a_result_waits_for_a_cut),
    TEST(a_cut_neither_loses_nor_doubles_a_row),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, ENGINES);
}
