/* Changelogs of tables with more buckets than can be open: what a commit brings is told with it. */

#define BED_SCALE 8
#include "bed.h"
#include "given.h"

enum { BUCKETS = 300, KEYS = 900, ROUND = 300, ROUNDS = 3 };

static struct bed_engine engine;
static struct bed_scenario scenario;
static struct sim_disk disk;

static const struct producer {
    const char *options;
    enum tn_merge_engine engine;
    enum tn_changelog_producer producer;
} producers[] = {
    {",\"changelog-producer\":\"lookup\"", TN_MERGE_DEDUPLICATE, TN_CHANGELOG_LOOKUP},
    {",\"changelog-producer\":\"lookup\",\"merge-engine\":\"first-row\"", TN_MERGE_FIRST_ROW,
     TN_CHANGELOG_LOOKUP},
    {",\"changelog-producer\":\"full-compaction\"", TN_MERGE_DEDUPLICATE,
     TN_CHANGELOG_FULL_COMPACTION},
    {",\"changelog-producer\":\"input\"", TN_MERGE_DEDUPLICATE, TN_CHANGELOG_INPUT},
};

static void make_scenario(const struct producer *p, uint64_t seed)
{
    uint64_t random = seed;
    bed_scenario_init(&scenario, seed, 1);
    scenario.buckets = BUCKETS;
    scenario.partitioned = false;
    scenario.sequenced = false;
    scenario.keyed = true;
    scenario.row_count = ROUND * ROUNDS;
    scenario.cut_count = ROUNDS;
    scenario.engine = p->engine;
    scenario.producer = p->producer;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        scenario.cuts[i] = (i + 1) * ROUND;
    }
    for (uint32_t i = 0; i < scenario.row_count; i++) {
        scenario.rows[i] = (struct bed_row){.key = (int32_t)random_below(&random, KEYS),
                                            .value = (uint32_t)random_next(&random)};
    }
    (void)snprintf(scenario.schema, sizeof scenario.schema, bed_schema_format, "", "\"k\"", BUCKETS,
                   "", "", "", "1 mb", 3, 6, 1000, 10, 8, "8 kb", "16 kb");
    bed_scenario_option(&scenario, "%s", p->options);
}

static void check(void)
{
    static struct bed_look look;
    look.engine = &engine;
    look.scenario = &scenario;
    look.told = true;
    const char *problem = bed_look(&look);
    problem = problem ? problem : bed_fsck(&engine);
    if (problem || look.position != scenario.row_count) {
        FAIL("%s\n%s", problem, scenario.schema);
    }
}

static void changes_of_more_buckets_than_are_open_are_told_at_once(void)
{
    for (size_t i = 0; i < COUNT(producers); i++) {
        make_scenario(&producers[i], given_number("SEED", 1));
        sim_disk_init(&disk, BED_DISK_SIZE);
        bed_create(&engine, &disk.io, &scenario);
        bed_engine_start(&engine, &disk.io, 1);
        struct bed_writer w = {.engine = &engine, .scenario = &scenario, .who = "a test"};
        tn_rc rc = bed_write(&w);
        CHECK_OK(rc, w.err);
        check();
        sim_disk_deinit(&disk);
    }
}

static const struct test tests[] = {
    TEST(changes_of_more_buckets_than_are_open_are_told_at_once),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
