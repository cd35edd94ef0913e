/* Two committers on one table without a lock, each with threads, on real files: as two machines on
 * one disk would be. Every commit of both is there, once. And with the lock: the second one is told
 * who has it. */
#include "base/exec.h"

#include "bed.h"
#include "given.h"
#include "temp.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { COMMITS = 200 };
#else
enum { COMMITS = 1000 };
#endif
enum { COMMITTERS = 2 };

static struct bed_engine engines[COMMITTERS];
static struct bed_scenario scenario;

/* Row i is the committer's that i % 2 says; each row is a commit. */
static void make_scenario(uint64_t seed, uint32_t commits, int32_t retained,
                          enum tn_changelog_producer producer)
{
    bed_scenario_init(&scenario, seed, 1);
    scenario.buckets = 2;
    scenario.partitioned = false;
    scenario.sequenced = false;
    scenario.keyed = seed % 4 != 0;
    scenario.row_count = commits;
    scenario.cuts[0] = commits;
    CHECK(commits <= BED_ROWS_MAX);
    for (uint32_t i = 0; i < commits; i++) {
        scenario.rows[i] =
            (struct bed_row){.key = (int32_t)i, .value = i * 3 + 1 + (i % 8 == 0 ? 400 : 0)};
    }
    (void)snprintf(scenario.schema, sizeof scenario.schema, bed_schema_format, "",
                   scenario.keyed ? "\"k\"" : "", scenario.buckets,
                   scenario.keyed ? "" : "\"bucket-key\":\"k\",", "", "", "1 mb", 3, 6, retained,
                   10, 8, "8 kb", "16 kb");
    if (scenario.keyed && producer == TN_CHANGELOG_LOOKUP) {
        scenario.producer = producer;
        bed_scenario_option(&scenario, ",\"changelog-producer\":\"lookup\"");
        for (uint32_t i = 0; i < commits; i++) { /* a key's rows are all of one committer */
            scenario.rows[i].key = (int32_t)(i % 20);
        }
    }
}

struct committer {
    struct bed_writer writer;
    struct tn_io_posix posix;
    uint32_t next; /* row */
    bool put;      /* it is in, and waits for its cut */
    uint64_t commits;
    uint64_t appends;
    int64_t seen; /* newest snapshot that it was told of */
};

static struct committer committers[COMMITTERS];

static void count_commit(void *user, const struct tn_committed *committed)
{
    struct committer *c = user;
    c->commits++;
    c->appends += committed->append_id > 0;
    CHECK(committed->latest_id >= c->seen);
    c->seen = committed->latest_id;
}

/* The writer's id is set aside, so that the next one to open makes its own. */
static void open_committer(struct committer *c, uint32_t number, const char *root)
{
    *c = (struct committer){.next = number};
    c->writer = (struct bed_writer){
        .engine = &engines[number], .scenario = &scenario, .retries = UINT32_MAX};
    struct tn_err *err = &c->writer.err;
    bed_open_files(&c->posix, root);
    bed_engine_start_threads(&engines[number], &c->posix.io);
    tn_rc rc = c->posix.io.vtable->unlink(&c->posix.io, ".tarn/" BED_TABLE ".writer", err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    rc = c->posix.io.vtable->make_dir(&c->posix.io, ".tarn/", err);
    CHECK_OK(rc, *err);
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .identifier = -1,
                                 .compact = true,
                                 .committed = count_commit,
                                 .user_data = c};
    rc = tn_table_open(&engines[number].env, &spec, &c->writer.table, err);
    CHECK_OK(rc, *err);
}

static void close_committer(struct committer *c)
{
    bed_close(&c->writer);
    CHECK(c->writer.counts.compactions > 0 || !scenario.keyed);
    bed_engine_stop(c->writer.engine);
    tn_io_posix_close(&c->posix);
}

/* A commit's race that was lost too often is tried again; nothing else may fail. */
static void turn(struct committer *c, bool wait)
{
    tn_rc rc = tn_table_turn(c->writer.table, wait, &c->writer.err);
    if (rc != TN_OK && rc != TN_CONFLICT) {
        CHECK_OK(rc, c->writer.err);
    }
}

static void step(struct committer *c)
{
    bool waits = false; /* until its round is through */
    if (c->next < scenario.row_count) {
        if (!c->put) {
            tn_rc rc = bed_put(&c->writer, &scenario.rows[c->next]);
            CHECK_OK(rc, c->writer.err);
            c->put = true;
        }
        tn_rc rc = tn_table_cut(c->writer.table, c->next, &c->writer.err);
        if (rc == TN_OK) {
            c->next += COMMITTERS;
            c->put = false;
        } else {
            waits = rc == TN_AGAIN;
            CHECK(waits);
        }
    }
    turn(c, waits);
}

static void finish(struct committer *c)
{
    tn_rc rc;
    do {
        rc = tn_table_finish(c->writer.table, scenario.row_count, &c->writer.err);
    } while (rc == TN_CONFLICT);
    CHECK_OK(rc, c->writer.err);
}

/* ---- what is there ---- */

static void read_rows(struct bed_engine *engine, struct bed_reader *reader, int64_t id)
{
    struct tn_snapshot snapshot;
    struct tn_err err;
    tn_rc rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, &engine->own, &snapshot, &err);
    CHECK_OK(rc, err);
    const char *problem =
        bed_read_snapshot(engine, reader, &snapshot, &scenario, scenario.row_count);
    if (problem) {
        FAIL("snapshot %" PRId64 ": %s\n%s", id, problem, scenario.schema);
    }
}

/* From the earliest to the newest without a gap. */
static int64_t check_chain(struct bed_engine *engine, int64_t *appends)
{
    struct tn_arena *own = &engine->own;
    struct tn_err err;
    int64_t first;
    int64_t last;
    tn_rc rc = tn_snapshot_earliest(engine->env.io, BED_ROOT, own, &first, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_latest(engine->env.io, BED_ROOT, own, &last, &err);
    CHECK_OK(rc, err);
    *appends = 0;
    for (int64_t id = first; id <= last; id++) {
        size_t mark = tn_arena_mark(own);
        struct tn_snapshot snapshot;
        rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, own, &snapshot, &err);
        CHECK_OK(rc, err);
        CHECK(snapshot.id == id);
        *appends += strcmp(snapshot.commit_kind, "APPEND") == 0;
        tn_arena_reset(own, mark);
    }
    return last;
}

/* What is left at level 0 is told first. */
static void check_changes(void)
{
    static struct bed_look look;
    struct bed_engine *engine = &engines[0];
    struct bed_writer w = {.engine = engine, .scenario = &scenario};
    tn_rc rc = bed_compact(&w, BED_COMPACTS_ALL);
    CHECK_OK(rc, w.err);
    look.engine = engine;
    look.scenario = &scenario;
    const char *problem = bed_look_range(&look);
    bed_look_begin(&look);
    for (int64_t id = look.first; !problem && id <= look.last; id++) {
        struct tn_snapshot snapshot;
        tn_arena_reset(&engine->own, look.mark);
        rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, &engine->own, &snapshot, &w.err);
        CHECK_OK(rc, w.err);
        problem = bed_follow(&look.follower, &snapshot, 0, 0);
    }
    problem = problem ? problem : bed_follow_end(&look.follower, scenario.row_count);
    if (problem) {
        FAIL("%s\n%s", problem, scenario.schema);
    }
}

static void check_table(const char *root, bool all_kept)
{
    static struct bed_reader reader;
    struct tn_io_posix posix;
    bed_open_files(&posix, root);
    bed_engine_start(&engines[0], &posix.io, 1);
    int64_t appends;
    int64_t last = check_chain(&engines[0], &appends);
    const char *problem = bed_read_open(&engines[0], &reader);
    CHECK(problem == NULL);
    read_rows(&engines[0], &reader, last);
    CHECK(!all_kept || appends == scenario.row_count);
    CHECK(committers[0].appends + committers[1].appends == scenario.row_count);
    if (scenario.producer == TN_CHANGELOG_LOOKUP) {
        check_changes();
    }
    tn_io_posix_close(&posix);
}

static void race(uint64_t seed, uint32_t commits, int32_t retained,
                 enum tn_changelog_producer producer)
{
    char root[TEMP_SIZE];
    struct tn_io_posix posix;
    uint64_t random = seed;
    temp_make(root);
    make_scenario(seed, commits, retained, producer);
    bed_open_files(&posix, root);
    bed_create(&engines[0], &posix.io, &scenario);
    for (uint32_t i = 0; i < COMMITTERS; i++) {
        open_committer(&committers[i], i, root);
    }
    while (committers[0].next < commits || committers[1].next < commits) {
        step(&committers[random_below(&random, COMMITTERS)]);
    }
    for (uint32_t i = 0; i < COMMITTERS; i++) {
        finish(&committers[i]);
    }
    for (uint32_t i = 0; i < COMMITTERS; i++) {
        close_committer(&committers[i]);
    }
    tn_io_posix_close(&posix);
    check_table(root, retained > (int32_t)commits);
    temp_remove(root);
}

static void a_thousand_commits_of_two_committers_are_there_once(void)
{
    race(given_number("SEED", 1) * 4 + 1, COMMITS, 1000000, TN_CHANGELOG_NONE);
}

/* Both expire what the other may be looking at. */
static void two_committers_that_expire_leave_a_whole_table(void)
{
    race(given_number("SEED", 1), COMMITS / 5, 5, TN_CHANGELOG_NONE);
}

/* Each looks up what the other may have told meanwhile. */
static void changes_of_two_committers_are_told_once(void)
{
    uint64_t seed = given_number("SEED", 1) * 4 + 3;
    race(seed, COMMITS / 10, 1000000, TN_CHANGELOG_LOOKUP);
    race(seed, COMMITS / 10, 5, TN_CHANGELOG_LOOKUP);
}

static void the_second_one_is_told_who_has_the_table(void)
{
    char root[TEMP_SIZE];
    struct tn_io_posix posix[COMMITTERS];
    struct bed_writer writers[COMMITTERS];
    temp_make(root);
    make_scenario(1, 2, 5, TN_CHANGELOG_NONE);
    for (uint32_t i = 0; i < COMMITTERS; i++) {
        bed_open_files(&posix[i], root);
    }
    bed_create(&engines[0], &posix[0].io, &scenario);
    for (uint32_t i = 0; i < COMMITTERS; i++) {
        bed_engine_start(&engines[i], &posix[i].io, i);
        writers[i] = (struct bed_writer){
            .engine = &engines[i], .scenario = &scenario, .who = i == 0 ? "the first" : "another"};
    }
    tn_rc rc = bed_open(&writers[0]);
    CHECK_OK(rc, writers[0].err);
    rc = bed_open(&writers[1]);
    CHECK(rc == TN_EXISTS);
    CHECK(strstr(writers[1].err.text, "the first") != NULL);
    bed_close(&writers[0]);
    rc = bed_open(&writers[1]);
    CHECK_OK(rc, writers[1].err);
    bed_close(&writers[1]);
    for (uint32_t i = 0; i < COMMITTERS; i++) {
        tn_io_posix_close(&posix[i]);
    }
    temp_remove(root);
}

static const struct test tests[] = {
    TEST(the_second_one_is_told_who_has_the_table),
    TEST(two_committers_that_expire_leave_a_whole_table),
    TEST(changes_of_two_committers_are_told_once),
    TEST(a_thousand_commits_of_two_committers_are_there_once),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
