/* Writers that are killed, or lose their power, before each call that changes the disk, so also
 * between a commit and the compaction that tells its changes: the next one tells them, be it one
 * that writes on, one process a commit, or one that names its commits and repeats them. */
#include "bed.h"
#include "given.h"

enum { WRITES, LOOKS };

static struct bed_engine engines[2];
static struct bed_scenario scenario;

/* Between how many calls a life is looked at once. */
#ifdef TN_DEBUG
enum { OFTEN = 12 };
#else
enum { OFTEN = 3 };
#endif

struct run {
    struct bed_writer writer;
    struct sim_disk disk;
    uint64_t random;
    uint64_t states;
    const char *problem;
    char where[100];
};

/* What is left is looked at, and written on. */
static void look(struct run *run, const struct sim_disk *disk, bool killed, uint64_t seed)
{
    struct sim_disk found;
    sim_disk_clone(&found, disk);
    if (killed) {
        sim_disk_kill(&found);
    } else {
        sim_disk_reboot(&found, seed);
    }
    run->problem = bed_check(&engines[LOOKS], &found, &scenario, run->writer.told,
                             random_next(&run->random), true);
    run->states++;
    if (run->problem) {
        (void)snprintf(run->where, sizeof run->where, "call %" PRIu64 ", %s %" PRIu64,
                       disk->calls + 1, killed ? "kill" : "cut", seed);
    }
    sim_disk_deinit(&found);
}

static void before_call(void *user, struct sim_disk *disk)
{
    struct run *run = user;
    if (!run->problem && random_below(&run->random, OFTEN) == 0) {
        look(run, disk, true, 0);
    }
    if (!run->problem && random_below(&run->random, 2 * OFTEN) == 0) {
        look(run, disk, false, SIM_SEED_ALL);
    }
}

static void make_base(struct sim_disk *base, uint64_t *seed, enum tn_changelog_producer producer)
{
    do {
        bed_scenario_init_merging(&scenario, *seed, 4);
        ++*seed;
    } while (scenario.write_only || scenario.producer != producer || scenario.gentle);
    bed_scenario_keep_snapshots(&scenario);
    sim_disk_init(base, BED_DISK_SIZE);
    bed_create(&engines[WRITES], &base->io, &scenario);
}

static void stop(const struct run *run)
{
    FAIL("lives %d, %s: %s\n%s", scenario.lives, run->where, run->problem, scenario.schema);
}

static uint64_t run_program(const struct sim_disk *base, uint64_t seed)
{
    static struct run run;
    run = (struct run){.random = seed};
    sim_disk_clone(&run.disk, base);
    bed_engine_start(&engines[WRITES], &run.disk.io, seed);
    sim_disk_watch(&run.disk, before_call, &run);
    run.writer =
        (struct bed_writer){.engine = &engines[WRITES], .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write(&run.writer);
    sim_disk_watch(&run.disk, NULL, NULL);
    if (rc != TN_OK && !run.problem) {
        run.problem = run.writer.err.text;
    }
    if (!run.problem) {
        look(&run, &run.disk, true, 0);
    }
    if (run.problem) {
        stop(&run);
    }
    sim_disk_deinit(&run.disk);
    return run.states;
}

static void kill_writers(enum tn_changelog_producer producer)
{
    static const enum bed_lives lives[] = {BED_STARTS, BED_NAMES, BED_LIVES_ON};
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t states = 0;
    uint64_t runs = 0;
    do {
        struct sim_disk base;
        make_base(&base, &seed, producer);
        for (size_t i = 0; i < COUNT(lives); i++) {
            scenario.lives = lives[i];
            states += run_program(&base, seed);
        }
        sim_disk_deinit(&base);
        runs++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " states\n", runs, states);
}

static void changes_that_are_looked_up_are_told_by_the_next_writer(void)
{
    kill_writers(TN_CHANGELOG_LOOKUP);
}

static void full_compactions_tell_all_since_the_last_one_that_was_due(void)
{
    kill_writers(TN_CHANGELOG_FULL_COMPACTION);
}

static const struct test tests[] = {
    TEST(changes_that_are_looked_up_are_told_by_the_next_writer),
    TEST(full_compactions_tell_all_since_the_last_one_that_was_due),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
