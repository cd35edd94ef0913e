/* Every call of a writing program fails once, before or after it has done its work, and the disk
 * fills up at many sizes. What was acknowledged stays, also through a power cut later; the program
 * goes on where it can, and another one where it can't. */

#include "bed.h"
#include "given.h"

enum { PROGRAM, READER, ENGINES };

static struct bed_engine engines[ENGINES];
static struct bed_scenario scenario;
static struct sim_disk base; /* with the table, before any row */

static void make_base(uint64_t seed, uint32_t rounds)
{
    bed_scenario_init_merging(&scenario, seed, rounds);
    sim_disk_init(&base, BED_DISK_SIZE);
    bed_create(&engines[PROGRAM], &base.io, &scenario);
}

static void stop(const struct sim_disk *disk, const char *what, uint64_t number,
                 const char *problem)
{
    COMPLAIN("%s %" PRIu64 ": %s\n%s", what, number, problem, scenario.schema);
    sim_disk_print_trace(disk);
    abort();
}

/* Another look at the disk, after a cut that loses whatever it may. */
static void expect(const struct sim_disk *disk, struct bed_told told, const char *what,
                   uint64_t number)
{
    struct sim_disk found;
    sim_disk_clone(&found, disk);
    sim_disk_reboot(&found, SIM_SEED_NOTHING);
    sim_disk_capacity(&found, UINT64_MAX); /* a start writes, if only a writer's id */
    const char *problem =
        bed_check(&engines[READER], &found, &scenario, told, scenario.seed ^ number, false);
    if (problem) {
        stop(disk, what, number, problem);
    }
    sim_disk_deinit(&found);
}

static struct bed_writer writer_of(struct sim_disk *disk, uint32_t retries, uint64_t seed)
{
    struct bed_engine *engine = &engines[PROGRAM];
    bed_engine_start(engine, &disk->io, seed);
    return (struct bed_writer){
        .engine = engine, .scenario = &scenario, .who = "a test", .retries = retries};
}

/* The program that failed ends, and is started again on the same disk. */
static void start_again(struct sim_disk *disk, struct bed_told told, const char *what,
                        uint64_t number)
{
    sim_disk_kill(disk);
    struct bed_writer w = writer_of(disk, 0, scenario.seed ^ (number << 20));
    tn_rc rc = bed_write(&w);
    if (rc != TN_OK) {
        stop(disk, what, number, w.err.text);
    }
    if (scenario.lives != BED_NAMES &&
        w.recovered < told.rows) { /* who names them puts them again */
        stop(disk, what, number, "the next program went on too early");
    }
    if (w.told.rows != scenario.row_count) {
        stop(disk, what, number, "the next program did not report all rows");
    }
    expect(disk, w.told, what, number);
}

static uint64_t calls_of_a_run(void)
{
    struct sim_disk disk;
    sim_disk_clone(&disk, &base);
    struct bed_writer w = writer_of(&disk, 0, scenario.seed);
    disk.calls = 0;
    tn_rc rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    uint64_t calls = disk.calls;
    sim_disk_deinit(&disk);
    return calls;
}

struct fault {
    tn_rc rc;
    bool late;
    uint32_t retries; /* errors after which the program tries again */
    const char *what;
};

static const struct fault faults[] = {
    {TN_IO, false, 0, "IO at call"},
    {TN_IO, true, 0, "late IO at call"},
    {TN_FULL, false, 0, "FULL at call"},
    {TN_IO, false, 2, "IO, retried, at call"},
    {TN_IO, true, 2, "late IO, retried, at call"},
    {TN_FULL, false, 2, "FULL, retried, at call"},
    {TN_FULL, true, 2, "late FULL, retried, at call"},
};

static void fail_one(const struct fault *fault, uint64_t call)
{
    struct sim_disk disk;
    sim_disk_clone(&disk, &base);
    disk.calls = 0;
    struct bed_writer w = writer_of(&disk, fault->retries, scenario.seed);
    if (fault->late) {
        sim_disk_fail_call_late(&disk, call, fault->rc);
    } else {
        sim_disk_fail_call(&disk, call, fault->rc);
    }
    tn_rc rc = bed_write(&w);
    if (rc == TN_OK && w.told.rows != scenario.row_count) {
        stop(&disk, fault->what, call, "not all rows were reported");
    }
    expect(&disk, w.told, fault->what, call);
    if (rc != TN_OK) {
        start_again(&disk, w.told, fault->what, call);
    }
    sim_disk_deinit(&disk);
}

static void a_call_that_fails_loses_nothing(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t faults_made = 0;
    do {
        uint64_t random = seed;
        make_base(seed, 4 + (uint32_t)(seed % 4));
        uint64_t calls = calls_of_a_run();
        for (uint64_t call = 1; call <= calls && (faults_made == 0 || seconds_now() < until);
             call += 1 + random_below(&random, 3)) {
            fail_one(&faults[random_below(&random, COUNT(faults))], call);
            faults_made++;
        }
        sim_disk_deinit(&base);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " faults\n", faults_made);
}

/* The disk takes so many bytes: the program says FULL at some time, or goes on to the end since
 * expiry made room. What it reported is there; with room it goes on, or the next one does. */
static void fill_up(uint64_t capacity, bool same_program)
{
    struct sim_disk disk;
    sim_disk_clone(&disk, &base);
    sim_disk_capacity(&disk, capacity);
    struct bed_writer w = writer_of(&disk, 0, scenario.seed);
    w.full_disk = same_program ? &disk : NULL;
    tn_rc rc = bed_write(&w);
    if (rc != TN_OK && rc != TN_FULL) {
        stop(&disk, "capacity", capacity, w.err.text);
    }
    expect(&disk, w.told, "capacity", capacity);
    if (rc != TN_OK) {
        sim_disk_capacity(&disk, UINT64_MAX);
        start_again(&disk, w.told, "capacity", capacity);
    } else {
        expect(&disk, w.told, "capacity", capacity);
    }
    sim_disk_deinit(&disk);
}

static uint64_t bytes_of_a_run(void)
{
    struct sim_disk disk;
    sim_disk_clone(&disk, &base);
    struct bed_writer w = writer_of(&disk, 0, scenario.seed);
    uint64_t before = disk.io.counts.bytes_written;
    tn_rc rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    uint64_t written = disk.io.counts.bytes_written - before;
    sim_disk_deinit(&disk);
    return written;
}

static void a_full_disk_keeps_what_it_has_and_works_again_with_room(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t sizes = 0;
    do {
        uint64_t random = seed;
        make_base(seed, 4 + (uint32_t)(seed % 4));
        uint64_t used = sim_disk_used(&base);
        uint64_t most = used + bytes_of_a_run();
        uint32_t step = 1 + (uint32_t)(most - used) / 50;
        for (uint64_t size = used; size <= most && (sizes == 0 || seconds_now() < until);
             size += 1 + random_below(&random, step)) {
            fill_up(size, random_below(&random, 2) == 0);
            sizes++;
        }
        sim_disk_deinit(&base);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " sizes\n", sizes);
}

/* Buckets are opened together; the error names the one, or else the table. */
static void what_opens_many_buckets_does_not_blame_one(void)
{
    for (int32_t count = 1; count <= 2; count++) {
        struct tn_snapshot snapshot;
        struct bed_writer w;
        make_base(1, 3);
        w = writer_of(&base, 0, 1);
        tn_rc rc = bed_write(&w);
        CHECK_OK(rc, w.err);
        CHECK(scenario.buckets >= 2 && !scenario.partitioned);
        struct tn_arena *own = &engines[PROGRAM].own;
        rc = tn_snapshot_read(&base.io, BED_ROOT, w.told.id, own, &snapshot, &w.err);
        CHECK_OK(rc, w.err);
        const char *path = tn_name_in(own, BED_ROOT, TN_DIR_MANIFEST, snapshot.delta_manifest_list);
        rc = base.io.vtable->unlink(&base.io, path, &w.err);
        CHECK_OK(rc, w.err);
        rc = bed_open_as(&w, BED_COMPACTS);
        for (int32_t bucket = 0; rc == TN_OK && bucket < count; bucket++) {
            rc = bed_touch(&w, 0, bucket);
        }
        CHECK_OK(rc, w.err);
        rc = tn_table_turn(w.table, true, &w.err);
        CHECK(rc != TN_OK && strstr(w.err.text, path));
        bool one = strstr(w.err.text, "open " BED_ROOT "/bucket-0/: ");
        CHECK(count == 1 ? one : !strstr(w.err.text, "/bucket-"));
        bed_close(&w);
        sim_disk_deinit(&base);
    }
}

static const struct test tests[] = {
    TEST(what_opens_many_buckets_does_not_blame_one),
    TEST(a_call_that_fails_loses_nothing),
    TEST(a_full_disk_keeps_what_it_has_and_works_again_with_room),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, ENGINES);
}
