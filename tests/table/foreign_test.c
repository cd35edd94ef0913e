/* Somebody else compacts the table while a program writes it, without a lock, as official writers
 * do: before each call that changes the disk, in turn. Compactions of ours whose sources are gone
 * are refused then. Whatever is refused, every change is told once, and no row is lost. */

#include "bed.h"
#include "given.h"

enum { OURS, OTHER, ENGINES };

static struct bed_engine engines[ENGINES];
static struct bed_scenario scenario;
static struct sim_disk base; /* with the table, before any row */

static const char writer_path[] = ".tarn/" BED_TABLE ".writer";

struct run {
    struct bed_writer writer;
    struct sim_disk disk;
    uint64_t call; /* before which the other one comes, counted from 0 */
    uint64_t at;
    bool all; /* he takes everything to the highest level */
    bool here;
    uint64_t commits; /* of his */
};

static void stop(const struct run *run, const char *problem)
{
    COMPLAIN("before change %" PRIu64 "%s: %s\n%s", run->call, run->all ? ", all" : "", problem,
             scenario.schema);
    sim_disk_print_trace(&run->disk);
    abort();
}

/* A writer of his own: ours is put back behind him. */
static void compact_as_other(struct run *run)
{
    struct bed_engine *engine = &engines[OTHER];
    struct tn_io *io = &run->disk.io;
    struct tn_err err;
    struct tn_bytes ours;
    bed_engine_start(engine, io, ~(scenario.seed + (run->call << 32)));
    tn_rc rc = tn_io_read_all(io, writer_path, 256, &engine->own, &ours, &err);
    if (rc == TN_ABSENT) {
        return; /* we are not open yet */
    }
    CHECK_OK(rc, err);
    rc = io->vtable->unlink(io, writer_path, &err);
    CHECK_OK(rc, err);
    struct bed_writer w = {.engine = engine, .scenario = &scenario};
    rc = bed_compact(&w, run->all ? BED_COMPACTS_ALL : BED_COMPACTS);
    if (rc != TN_OK) {
        stop(run, w.err.text);
    }
    run->commits += w.counts.commits;
    rc = io->vtable->unlink(io, writer_path, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, writer_path, ours, &err);
    CHECK_OK(rc, err);
}

static void before_call(void *user, struct sim_disk *disk)
{
    struct run *run = user;
    (void)disk;
    if (!run->here && run->at++ == run->call) {
        run->here = true;
        compact_as_other(run);
        run->here = false;
    }
}

/* What is compacted at last was told, and nothing else. */
static void look(struct run *run)
{
    static struct bed_look at;
    struct bed_writer w = {.engine = &engines[OURS], .scenario = &scenario, .who = "a test"};
    bed_engine_start(w.engine, &run->disk.io, scenario.seed ^ (UINT64_C(3) << 50));
    tn_rc rc = bed_compact(&w, BED_COMPACTS_ALL);
    if (rc != TN_OK) {
        stop(run, w.err.text);
    }
    at.engine = w.engine;
    at.scenario = &scenario;
    at.told = true;
    at.foreign = true;
    const char *problem = bed_look(&at);
    if (!problem && at.position != scenario.row_count) {
        problem = BED_PROBLEM("snapshots %" PRId64 " to %" PRId64 " are at row %u of %u", at.first,
                              at.last, at.position, scenario.row_count);
    }
    problem = problem ? problem : bed_fsck(w.engine);
    if (problem) {
        stop(run, problem);
    }
}

/* How many changes there were. */
static uint64_t write_beside(uint64_t call, bool all)
{
    static struct run run;
    run = (struct run){.call = call, .all = all};
    sim_disk_clone(&run.disk, &base);
    bed_engine_start(&engines[OURS], &run.disk.io, scenario.seed);
    sim_disk_watch(&run.disk, before_call, &run);
    run.writer =
        (struct bed_writer){.engine = &engines[OURS], .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write(&run.writer);
    sim_disk_watch(&run.disk, NULL, NULL);
    if (rc != TN_OK) {
        stop(&run, run.writer.err.text);
    }
    look(&run);
    sim_disk_deinit(&run.disk);
    return run.at;
}

static void make_base(uint64_t seed)
{
    bed_scenario_init_merging(&scenario, seed, 3 + (uint32_t)(seed % 4));
    if (seed % 4 != 0) {
        bed_scenario_keep_snapshots(&scenario);
    }
    sim_disk_init(&base, BED_DISK_SIZE);
    bed_create(&engines[OURS], &base.io, &scenario);
}

static void changes_are_told_once_whoever_compacts(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t runs = 0;
    do {
        uint64_t random = seed;
        make_base(seed);
        if (scenario.keyed) {
            uint64_t calls = write_beside(UINT64_MAX, false);
            for (uint64_t call = 0; call < calls && (runs == 0 || seconds_now() < until);
                 call += 1 + random_below(&random, 3)) {
                (void)write_beside(call, random_below(&random, 2) == 0);
                runs++;
            }
        }
        sim_disk_deinit(&base);
        seed++;
    } while (seconds_now() < until || runs == 0);
    (void)printf("%" PRIu64 " runs\n", runs);
}

static const struct test tests[] = {
    TEST(changes_are_told_once_whoever_compacts),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, ENGINES);
}
