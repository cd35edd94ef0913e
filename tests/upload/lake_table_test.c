/* A table in a lake, written, compacted, expired and checked by the engine through lake_io.h: what
 * scenarios of tests/table/ do on a disk they do on a folder that is a target, with the same
 * outcome; at every instant the folder is a whole table to who reads it as it is; and who was cut
 * goes on, on another machine, too. */
#include "upload/lake_io.h"

#include "given.h"
#include "table/bed.h"
#include "upload/directory.h"

enum { ROUNDS_MAX = 6, CACHE_SIZE = 64 * 1024, FILES = 96 };

static struct bed_engine engines[3];
static struct bed_scenario scenario;

/* A machine: a scratch disk, and a lake that others may see. */
struct machine {
    struct sim_disk scratch;
    struct sim_disk *there;
    struct tn_directory directory;
    struct tn_lake_io lake;
    void *memory;
};

static void start(struct machine *m, struct sim_disk *there, uint64_t cache_size)
{
    struct tn_arena arena;
    struct tn_err err;
    size_t size = tn_lake_io_size(FILES) + 64 * 1024;
    m->there = there;
    m->memory = malloc(size);
    tn_arena_init(&arena, m->memory, size);
    tn_rc rc = tn_directory_init(&m->directory, &there->io, "lake", &arena, &err);
    CHECK_OK(rc, err);
    const struct tn_lake_io_spec spec = {.target = &m->directory.target,
                                         .scratch = &m->scratch.io,
                                         .arena = &arena,
                                         .cache_size = cache_size,
                                         .files = FILES};
    rc = tn_lake_io_open(&m->lake, &spec, &err);
    CHECK_OK(rc, err);
}

static void stop(struct machine *m)
{
    tn_lake_io_close(&m->lake);
    free(m->memory);
}

/* ---- what somebody sees who reads the folder as it is ---- */

static const char *look(struct bed_engine *engine, struct tn_io *io, struct bed_told told,
                        struct bed_told *found)
{
    bed_engine_start(engine, io, scenario.seed);
    const char *problem = bed_read_all(engine, &scenario, found, false);
    if (!problem && (found->rows < told.rows || found->id < told.id)) {
        problem = BED_PROBLEM("told were %u rows and snapshot %" PRId64
                              ", there are %u and snapshot %" PRId64,
                              told.rows, told.id, found->rows, found->id);
    }
    return problem ? problem : bed_fsck(engine);
}

struct run {
    struct machine machine;
    struct bed_writer writer;
    uint64_t random;
    uint64_t states;
    double until;
    const char *problem;
};

/* Another machine, or this one that starts again, writes what isn't there. */
static const char *go_on(struct run *run, struct sim_disk *there, struct bed_told told)
{
    static struct machine machine;
    bool same = random_below(&run->random, 2) == 0;
    sim_disk_clone(&machine.scratch, &run->machine.scratch);
    sim_disk_reboot(&machine.scratch, random_next(&run->random));
    if (!same) {
        sim_disk_deinit(&machine.scratch);
        sim_disk_init(&machine.scratch, BED_DISK_SIZE);
    }
    start(&machine, there, CACHE_SIZE);
    bed_engine_start(&engines[2], &machine.lake.io, random_next(&run->random));
    struct bed_writer w = {.engine = &engines[2], .scenario = &scenario, .who = "a test"};
    struct bed_told found;
    const char *problem = NULL;
    if (same) { /* else the positions are another writer's */
        tn_rc rc = bed_write(&w);
        problem = rc == TN_OK ? NULL : BED_PROBLEM("going on: %s", w.err.text);
    }
    if (!problem) {
        problem = look(&engines[1], same ? &there->io : &machine.lake.io, told, &found);
    }
    if (!problem && same && found.rows != scenario.row_count) {
        problem = BED_PROBLEM("went on to %u of %u rows", found.rows, scenario.row_count);
    }
    stop(&machine);
    sim_disk_deinit(&machine.scratch);
    return problem;
}

static void look_at_cut(struct run *run, struct sim_disk *disk, uint64_t seed)
{
    struct sim_disk there;
    struct bed_told found;
    sim_disk_clone(&there, disk);
    sim_disk_reboot(&there, seed);
    run->states++;
    run->problem = look(&engines[1], &there.io, run->writer.told, &found);
    if (!run->problem && random_below(&run->random, 4) == 0) {
        run->problem = go_on(run, &there, run->writer.told);
    }
    if (run->problem) {
        COMPLAIN("cut at call %" PRIu64 " of the lake, seed %" PRIu64 ": %s\n%s", disk->calls + 1,
                 seed, run->problem, scenario.schema);
        sim_disk_print_trace(disk);
        abort();
    }
    sim_disk_deinit(&there);
}

static void before_call(void *user, struct sim_disk *disk)
{
    struct run *run = user;
    if (seconds_now() < run->until && random_below(&run->random, 6) == 0) {
        look_at_cut(run, disk,
                    random_below(&run->random, 2) == 0 ? SIM_SEED_NOTHING
                                                       : random_next(&run->random));
    }
}

/* A whole history, and its folder at any time. */
static uint64_t run_scenario(uint64_t seed, double until)
{
    static struct run run;
    struct sim_disk there;
    struct bed_told found;
    memset(&run, 0, sizeof run);
    run.random = seed * 3 + 1;
    run.until = until;
    bed_scenario_init_merging(&scenario, seed, 2 + (uint32_t)(seed % (ROUNDS_MAX - 1)));
    sim_disk_init(&there, BED_DISK_SIZE);
    sim_disk_init(&run.machine.scratch, BED_DISK_SIZE);
    start(&run.machine, &there, seed % 2 ? CACHE_SIZE : 0);
    bed_create(&engines[0], &run.machine.lake.io, &scenario);
    bed_engine_start(&engines[0], &run.machine.lake.io, seed);
    run.writer = (struct bed_writer){.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    sim_disk_watch(&there, before_call, &run);
    tn_rc rc = bed_write(&run.writer);
    CHECK_OK(rc, run.writer.err);
    CHECK(run.writer.told.rows == scenario.row_count);
    sim_disk_watch(&there, NULL, NULL);
    const char *problem = look(&engines[1], &there.io, run.writer.told, &found);
    CHECK(!problem && found.rows == scenario.row_count);
    problem = look(&engines[0], &run.machine.lake.io, run.writer.told, &found);
    if (problem) {
        FAIL("%s", problem);
    }
    stop(&run.machine);
    CHECK(sim_disk_used(&run.machine.scratch) < 4096); /* the scratch folder is empty again */
    sim_disk_reboot(&there, SIM_SEED_NOTHING);
    problem = look(&engines[1], &there.io, run.writer.told, &found);
    CHECK(!problem && found.rows == scenario.row_count);
    sim_disk_deinit(&run.machine.scratch);
    sim_disk_deinit(&there);
    return run.states;
}

static void table_in_a_lake_is_whole_whenever_its_writer_is_cut(void)
{
    double until = given_until(6, 1);
    uint64_t seed = given_number("SEED", 1);
    uint64_t states = 0;
    for (uint64_t i = 0; i == 0 || seconds_now() < until; i++) {
        states += run_scenario(seed + i, until);
    }
    CHECK(states > 0);
}

static const struct test tests[] = {
    TEST(table_in_a_lake_is_whole_whenever_its_writer_is_cut),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
