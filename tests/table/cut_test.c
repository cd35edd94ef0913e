/* The power goes before each call that changes the disk, in writing, commits, compaction, expiry
 * and recovery; what is left is opened, read and written on. */
#include <math.h>

#include "bed.h"
#include "given.h"

enum { DEPTH_MAX = 2, ROUNDS_MAX = 7 };

static struct bed_engine engines[DEPTH_MAX + 2];
static struct bed_scenario scenario;

/* ---- one run, all of its cuts ---- */

struct run {
    struct bed_writer writer;
    struct sim_disk disk;
    uint64_t random;
    uint32_t depth;       /* 0: the first program; 1: what goes on after a cut; ... */
    uint32_t seeds;       /* outcomes drawn a cut, beside the two ends */
    uint32_t deeper;      /* one of so many states is gone into */
    uint32_t every;       /* one of so many calls is cut */
    double until;         /* seconds_now(); then no more states are looked at */
    struct bed_told told; /* before this program started */
    uint64_t states;
    const char *problem;
    char text[800];
    char where[600];
};

static void run_program(struct run *run, const struct sim_disk *from);

static void fail(struct run *run, const char *problem, const char *how, uint64_t seed)
{
    (void)snprintf(run->text, sizeof run->text, "%s", problem);
    run->problem = run->text;
    (void)snprintf(run->where, sizeof run->where, "call %" PRIu64 ", %s %" PRIu64,
                   run->disk.calls + 1, how, seed);
}

/* The program that goes on is cut, too. */
static void go_deeper(struct run *run, const struct sim_disk *disk, uint64_t seed, bool killed)
{
    static struct run below[DEPTH_MAX + 1];
    struct run *next = &below[run->depth];
    *next = (struct run){.random = random_next(&run->random),
                         .depth = run->depth + 1,
                         .deeper = 100,
                         .every = 8,
                         .until = run->until,
                         .told = run->writer.told};
    run_program(next, disk);
    run->states += next->states;
    if (next->problem && !run->problem) {
        char how[300];
        (void)snprintf(how, sizeof how, "%s, then in what went on: %.200s; seed",
                       killed ? "kill" : "cut", next->where);
        fail(run, next->problem, how, seed);
    }
}

/* One outcome: "cut" loses what `seed` says, "kill" loses nothing but the process. */
static void look(struct run *run, struct sim_disk *found, const char *how, uint64_t seed)
{
    bool goes_on = random_below(&run->random, run->depth > 0 ? 16 : 4) == 0;
    const char *problem = bed_check(&engines[run->depth + 1], found, &scenario, run->writer.told,
                                    random_next(&run->random), goes_on);
    run->states++;
    if (problem) {
        fail(run, problem, how, seed);
    }
}

static void look_at_cut(struct run *run, const struct sim_disk *disk, uint64_t seed)
{
    struct sim_disk found;
    sim_disk_clone(&found, disk);
    sim_disk_reboot(&found, seed);
    if (run->depth < DEPTH_MAX && run->deeper && random_below(&run->random, run->deeper) == 0) {
        go_deeper(run, &found, seed, false);
    }
    if (!run->problem) {
        look(run, &found, "cut", seed);
    }
    sim_disk_deinit(&found);
}

static void look_at_kill(struct run *run, const struct sim_disk *disk)
{
    struct sim_disk found;
    sim_disk_clone(&found, disk);
    sim_disk_kill(&found);
    if (run->depth < DEPTH_MAX && run->deeper && random_below(&run->random, run->deeper) == 0) {
        go_deeper(run, &found, 0, true);
    }
    if (!run->problem) {
        look(run, &found, "kill", 0);
    }
    sim_disk_deinit(&found);
}

static void before_call(void *user, struct sim_disk *disk)
{
    struct run *run = user;
    if (run->problem || random_below(&run->random, run->every) != 0 || seconds_now() > run->until) {
        return;
    }
    look_at_cut(run, disk, SIM_SEED_NOTHING);
    for (uint32_t i = 0; !run->problem && i < run->seeds; i++) {
        look_at_cut(run, disk, 2 + random_next(&run->random) % 1000000);
    }
    if (!run->problem && random_below(&run->random, 4) == 0) {
        look_at_cut(run, disk, SIM_SEED_ALL);
    }
    if (!run->problem && random_below(&run->random, 8) == 0) {
        look_at_kill(run, disk);
    }
}

static void report(const struct run *run)
{
    COMPLAIN("%s: %s\n%s\nrepeat: SEED=%" PRIu64 " CUT_SECONDS=0 tests/table/cut_test", run->where,
             run->problem, scenario.schema, scenario.seed);
    sim_disk_print_trace(&run->disk);
    abort();
}

static void run_program(struct run *run, const struct sim_disk *from)
{
    struct bed_engine *engine = &engines[run->depth];
    uint64_t seed = random_next(&run->random);
    sim_disk_clone(&run->disk, from);
    bed_engine_start(engine, &run->disk.io, seed);
    sim_disk_watch(&run->disk, before_call, run);
    run->writer = (struct bed_writer){
        .engine = engine, .scenario = &scenario, .who = "a test", .told = run->told};
    tn_rc rc = bed_write(&run->writer);
    if (!run->problem && rc != TN_OK) {
        fail(run, run->writer.err.text, "without a cut", 0);
    }
    if (!run->problem) { /* everything was reported */
        look_at_cut(run, &run->disk, SIM_SEED_NOTHING);
    }
    if (!run->problem && run->writer.told.rows != scenario.row_count) {
        fail(run, "not all rows were reported", "without a cut", 0);
    }
    if (run->problem && run->depth == 0) {
        report(run);
    }
    sim_disk_deinit(&run->disk);
}

static void make_base(struct sim_disk *disk, uint64_t seed, uint32_t rounds)
{
    bed_scenario_init_merging(&scenario, seed, rounds);
    sim_disk_init(disk, BED_DISK_SIZE);
    bed_create(&engines[0], &disk->io, &scenario);
}

/* Random small tables until the time is over; each run is cut before every call that changes the
 * disk, with several outcomes a cut. */
static void every_cut_leaves_a_table_with_all_that_was_reported(void)
{
    uint64_t seed = given_number("SEED", 1);
    uint64_t time = given_number("CUT_SECONDS", 40);
    double until =
        time > 0 ? seconds_now() + (double)time : (double)INFINITY; /* 0: all of one table */
    uint64_t states = 0;
    uint64_t runs = 0;
    do {
        static struct run run;
        struct sim_disk base;
        make_base(&base, seed + runs, 2 + (uint32_t)((seed + runs) % (ROUNDS_MAX - 1)));
        base.model = (seed + runs) % 3 == 0 ? SIM_ORDERED : SIM_STRICT;
        run = (struct run){.random = seed + runs,
                           .seeds = 2,
                           .deeper = 40,
                           .every = (seed + runs) % 8 == 0 ? 1 : 4,
                           /* the first one should be whole, where sanitizers allow it */
                           .until = runs == 0 ? until + 3 * (double)time : until};
        run_program(&run, &base);
        sim_disk_deinit(&base);
        states += run.states;
        runs++;
    } while (time > 0 && seconds_now() < until);
    (void)printf("%" PRIu64 " tables, %" PRIu64 " states\n", runs, states);
}

/* ---- each sync is needed ---- */

/* One of two names lost, and the other kept, is seen in a quarter of the outcomes, and may show at
 * one call only: a millionth of the tests misses it. */
enum { DRAWS = 48 };

/* A program with one sync less, on the model that keeps least: all cuts behind that sync, until one
 * shows. */
struct mutant {
    struct bed_writer writer;
    struct sim_disk disk;
    uint64_t random;
    uint64_t sync;     /* the first that is left out */
    uint64_t sync_end; /* of those behind which it may show */
    uint64_t draws;    /* outcomes a call; the first loses whatever it may */
    const char *problem;
};

static void look_behind(struct mutant *m, const struct sim_disk *disk, uint64_t seed)
{
    struct sim_disk found;
    sim_disk_clone(&found, disk);
    sim_disk_reboot(&found, seed);
    m->problem =
        bed_check(&engines[1], &found, &scenario, m->writer.told, random_next(&m->random), false);
    sim_disk_deinit(&found);
}

static void behind_sync(void *user, struct sim_disk *disk)
{
    struct mutant *m = user;
    if (disk->syncs < m->sync || disk->syncs >= m->sync_end) {
        return;
    }
    for (uint64_t i = 0; i < m->draws && !m->problem; i++) {
        look_behind(m, disk, i == 0 ? SIM_SEED_NOTHING : 2 + random_next(&m->random) % 1000000);
    }
}

/* Behind a COMPACT snapshot may come expiry: it syncs the same folder before anybody is told of the
 * snapshot and before a file goes, so there this one sync isn't missed. Whether something expires
 * is known behind it only; where nothing does it is needed, which the test without expiry shows. */
static bool covered_by_next(const struct sim_disk *disk, uint64_t sync)
{
    const char *path = sim_disk_sync_path(disk, sync);
    const char *next = sim_disk_sync_path(disk, sync + 1);
    return path && next && strcmp(path, BED_ROOT "/snapshot/") == 0 &&
           strcmp(next, BED_ROOT "/snapshot/EARLIEST") == 0;
}

/* Of a creator that was not killed: a_schema_of_a_killed_creator_stays misses this one. */
static bool of_schema(const struct sim_disk *disk, uint64_t sync)
{
    const char *path = sim_disk_sync_path(disk, sync);
    return path && strcmp(path, BED_ROOT "/schema/") == 0;
}

/* The first consumer, which counts for other programs only; consumer_test misses these. */
static bool of_consumer(const struct sim_disk *disk, uint64_t sync)
{
    static const char folder[] = BED_ROOT "/consumer/";
    const char *path = sim_disk_sync_path(disk, sync);
    return path && strncmp(path, folder, sizeof folder - 1) == 0;
}

/* Whether leaving out sync number `sync` was noticed, or, as `excused` says, covered by another;
 * `*syncs` is how many there were. */
static bool notices(const struct sim_disk *base, uint64_t sync, uint64_t seed, uint64_t *syncs,
                    bool *excused)
{
    static struct mutant m;
    m = (struct mutant){.random = seed ^ 5,
                        .sync = sync,
                        .sync_end = sync + 4, /* by then it is made up for */
                        .draws = DRAWS};
    sim_disk_clone(&m.disk, base);
    m.disk.model = SIM_STRICT;
    m.disk.syncs = 0;
    bed_engine_start(&engines[0], &m.disk.io, seed);
    sim_disk_watch(&m.disk, sync > 0 ? behind_sync : NULL, &m);
    sim_disk_ignore_sync(&m.disk, sync);
    m.writer = (struct bed_writer){.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write(&m.writer);
    CHECK_OK(rc, m.writer.err);
    *syncs = m.disk.syncs;
    for (uint64_t i = 0; sync > 0 && i < 8 && !m.problem; i++) {
        look_behind(&m, &m.disk, i == 0 ? SIM_SEED_NOTHING : 2 + i);
    }
    bool covered = covered_by_next(&m.disk, sync);
    bool noticed = m.problem || covered || of_schema(&m.disk, sync) || of_consumer(&m.disk, sync);
    *excused = sync > 0 && covered && !m.problem;
    if (sync > 0 && !noticed) {
        COMPLAIN("nobody misses sync %" PRIu64, sync);
        sim_disk_print_trace(&m.disk);
    }
    sim_disk_deinit(&m.disk);
    return noticed;
}

/* A table that one program writes: another one that starts behind it syncs names that a killed one
 * might have left, and there is none. */
static uint64_t make_base_of_one(struct sim_disk *disk, uint64_t seed, uint32_t rounds)
{
    for (;; seed++) {
        make_base(disk, seed, rounds);
        if (!scenario.write_only && scenario.lives == BED_LIVES_ON) {
            return seed;
        }
        sim_disk_deinit(disk);
    }
}

/* Leaves out each sync of some runs in turn: each time some cut must show that it is missing. */
static void a_missing_sync_is_noticed(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 4);
    uint64_t count = 0;
    do {
        struct sim_disk base;
        uint64_t syncs;
        bool excused;
        seed = make_base_of_one(&base, seed, 5);
        (void)notices(&base, 0, seed, &syncs, &excused);
        CHECK(syncs > 5);
        for (uint64_t sync = 1; sync <= syncs && (count == 0 || seconds_now() < until); sync++) {
            uint64_t ignored;
            bool noticed = notices(&base, sync, seed, &ignored, &excused);
            CHECK(noticed);
            count++;
        }
        sim_disk_deinit(&base);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " syncs left out\n", count);
}

/* Killed before it synced the schema's name, which the next process sees and builds on. */
static void a_schema_of_a_killed_creator_stays(void)
{
    static struct sim_disk disk;
    uint64_t seed = given_number("SEED", 1);
    bed_scenario_init(&scenario, seed, 5);
    sim_disk_init(&disk, BED_DISK_SIZE);
    sim_disk_ignore_path(&disk, BED_ROOT "/schema/");
    bed_create(&engines[0], &disk.io, &scenario);
    tn_rc rc;
    struct tn_err err;
    rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
    sim_disk_ignore_path(&disk, NULL);
    const char *schema = BED_ROOT "/schema/schema-0";
    rc = disk.io.vtable->sync(&disk.io, &schema, 1, &err); /* its text, not its name */
    CHECK_OK(rc, err);
    sim_disk_kill(&disk);
    bed_engine_start(&engines[0], &disk.io, seed);
    struct bed_writer w = {.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    sim_disk_reboot(&disk, SIM_SEED_NOTHING);
    struct bed_told found;
    bed_engine_start(&engines[1], &disk.io, seed);
    const char *problem = bed_read_all(&engines[1], &scenario, &found, false);
    if (problem) {
        FAIL("%s", problem);
    }
    CHECK(found.rows == scenario.row_count);
    sim_disk_deinit(&disk);
}

/* How many snapshots with compacted files a program makes that is never cut. */
static uint32_t count_compacted(const struct sim_disk *base, uint64_t seed)
{
    struct sim_disk disk;
    sim_disk_clone(&disk, base);
    bed_engine_start(&engines[0], &disk.io, seed);
    struct bed_writer w = {.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    uint32_t count = 0;
    struct tn_snapshot snapshot;
    for (int64_t id = 1; rc == TN_OK; id++) {
        rc = tn_snapshot_read(&disk.io, BED_ROOT, id, &engines[0].own, &snapshot, &w.err);
        count += rc == TN_OK && strcmp(snapshot.commit_kind, "COMPACT") == 0;
    }
    sim_disk_deinit(&disk);
    return count;
}

/* As who alters a table and is killed before its schema's name is synced leaves it. */
static void alter_and_be_killed(struct sim_disk *disk)
{
    static struct bed_reader reader;
    struct bed_engine *engine = &engines[1];
    const char *path = BED_ROOT "/schema/schema-1";
    struct tn_err err;
    struct tn_buf text;
    bed_engine_start(engine, &disk->io, 1);
    CHECK(bed_read_open(engine, &reader) == NULL);
    struct tn_schema next = *reader.schema;
    next.id++;
    next.comment = "altered";
    tn_buf_init(&text, tn_arena_take(&engine->own, 8192), 8192);
    tn_schema_encode(&next, &text);
    CHECK(text.data != NULL && !text.overflow);
    tn_rc rc = tn_io_write_new(&disk->io, path, tn_buf_bytes(&text), &err);
    CHECK_OK(rc, err);
    rc = disk->io.vtable->sync(&disk->io, &path, 1, &err); /* its text, not its name */
    CHECK_OK(rc, err);
    sim_disk_kill(disk);
}

/* The same of a table that has snapshots. */
static void a_schema_of_a_killed_alterer_stays(void)
{
    static struct sim_disk disk;
    uint64_t seed = given_number("SEED", 1);
    bed_scenario_init(&scenario, seed, 5);
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engines[0], &disk.io, &scenario);
    bed_engine_start(&engines[0], &disk.io, seed);
    struct bed_writer w = {.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write_to(&w, scenario.cuts[0]);
    CHECK_OK(rc, w.err);
    alter_and_be_killed(&disk);
    bed_engine_start(&engines[0], &disk.io, seed + 1); /* whose names are others */
    w = (struct bed_writer){.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    sim_disk_reboot(&disk, SIM_SEED_NOTHING);
    struct bed_told found;
    bed_engine_start(&engines[1], &disk.io, seed);
    const char *problem = bed_read_all(&engines[1], &scenario, &found, false);
    if (problem) {
        FAIL("%s", problem);
    }
    CHECK(found.rows == scenario.row_count);
    sim_disk_deinit(&disk);
}

/* Where nothing expires each sync is missed, that of a COMPACT snapshot's name, too. */
static void a_missing_sync_is_noticed_where_nothing_expires(void)
{
    uint64_t seed = given_number("SEED", 1);
    uint32_t compacted = 0;
    while (compacted == 0) {
        struct sim_disk base;
        uint64_t syncs = 0;
        bool excused;
        seed = make_base_of_one(&base, seed, 3);
        sim_disk_deinit(&base);
        bed_scenario_keep_snapshots(&scenario);
        sim_disk_init(&base, BED_DISK_SIZE);
        bed_create(&engines[0], &base.io, &scenario);
        compacted = count_compacted(&base, seed);
        (void)notices(&base, 0, seed, &syncs, &excused);
        for (uint64_t sync = 1; compacted > 0 && sync <= syncs; sync++) {
            uint64_t ignored;
            bool noticed = notices(&base, sync, seed, &ignored, &excused);
            CHECK(noticed && !excused);
        }
        sim_disk_deinit(&base);
        seed++;
    }
}

/* Whether it shows when no barrier covers changelog files; `*made`: there were some. */
static bool misses_changelogs(const struct sim_disk *base, uint64_t seed, bool *made)
{
    static struct mutant m;
    m = (struct mutant){.random = seed ^ 6, .sync = 1, .sync_end = UINT64_MAX, .draws = 1};
    sim_disk_clone(&m.disk, base);
    bed_engine_start(&engines[0], &m.disk.io, seed);
    sim_disk_watch(&m.disk, behind_sync, &m);
    sim_disk_ignore_path(&m.disk, "/changelog-");
    m.writer = (struct bed_writer){.engine = &engines[0], .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write(&m.writer);
    CHECK_OK(rc, m.writer.err);
    *made = m.disk.paths_ignored > 0;
    sim_disk_deinit(&m.disk);
    return m.problem != NULL;
}

/* They have the same barrier as data files; here it leaves them out. */
static void changelog_files_that_are_not_synced_are_missed(void)
{
    uint64_t seed = given_number("SEED", 1);
    bool seen[TN_CHANGELOG_LOOKUP + 1] = {[TN_CHANGELOG_NONE] = true};
    for (uint32_t left = TN_CHANGELOG_LOOKUP; left > 0; seed++) {
        struct sim_disk base;
        bool made;
        make_base(&base, seed, 4);
        if (!seen[scenario.producer]) {
            bool noticed = misses_changelogs(&base, seed, &made);
            if (noticed != made) {
                FAIL("nobody misses changelogs\n%s", scenario.schema);
            }
            seen[scenario.producer] = made;
            left -= made;
        }
        sim_disk_deinit(&base);
    }
}

static const struct test tests[] = {
    TEST(a_schema_of_a_killed_creator_stays),
    TEST(a_schema_of_a_killed_alterer_stays),
    TEST(a_missing_sync_is_noticed),
    TEST(a_missing_sync_is_noticed_where_nothing_expires),
    TEST(changelog_files_that_are_not_synced_are_missed),
    TEST(every_cut_leaves_a_table_with_all_that_was_reported),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
