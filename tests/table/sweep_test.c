/* A sweep: whatever is under way when it comes, what a bucket has by then goes into the highest
 * level. */
#include "bed.h"
#include "given.h"
#include "table/state.h"

enum { SCENARIOS = 200 };

static struct bed_engine engine;
static struct bed_scenario scenario;

static bool has(const struct tn_levels *levels, const struct tn_level_file *file)
{
    for (uint32_t i = 0; i < levels->count; i++) {
        if (strcmp(levels->files[i]->name, file->name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_swept(const struct tn_table *table, const struct tn_levels *then)
{
    for (uint32_t i = 0; i < table->places.buckets; i++) {
        const struct tn_levels *now = table->buckets[i].levels;
        for (uint32_t f = 0; now && f < now->count; f++) {
            bool left = now->files[f]->level < table->options.num_levels - 1;
            if (left && has(then, now->files[f])) {
                FAIL("%s was there, and is on level %d", now->files[f]->name, now->files[f]->level);
            }
        }
    }
}

struct sweep {
    struct tn_levels *then; /* what the bucket had when it came; NULL: none is under way */
    uint32_t asked;
    uint32_t asked_between;
};

/* Now and then, and whenever files came while the bucket is compacted. */
static void ask(struct sweep *sweep, struct tn_table *table, uint64_t *random)
{
    struct tn_err err;
    const struct tn_bucket *bucket = &table->buckets[0];
    bool between = bucket->compacting && table->slice.held != bucket->levels;
    bool asks = random_below(random, 16) == 0 || between;
    if (!asks || sweep->then || bucket->state != TN_BUCKET_READY || !bucket->levels) {
        return;
    }
    tn_rc rc = tn_table_sweep(table, bucket->partition, bucket->number, TN_SWEEP_FULL, &err);
    CHECK_OK(rc, err);
    sweep->then = bucket->levels;
    sweep->then->refs++;
    sweep->asked++;
    sweep->asked_between += between;
}

static void look(struct sweep *sweep, struct tn_table *table)
{
    if (sweep->then && tn_table_sweeping(table) == 0) {
        check_swept(table, sweep->then);
        tn_levels_drop(engine.env.levels, sweep->then);
        sweep->then = NULL;
        tn_table_sweep_end(table);
    }
}

static void write_and_sweep(struct sweep *sweep, uint64_t seed)
{
    struct sim_disk disk;
    struct bed_writer w = {.engine = &engine, .scenario = &scenario, .who = "a test"};
    uint64_t random = seed;
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &scenario);
    bed_engine_start(&engine, &disk.io, seed);
    tn_rc rc = bed_open(&w);
    CHECK_OK(rc, w.err);
    for (uint32_t i = 0; i < scenario.row_count; i++) {
        rc = bed_put(&w, &scenario.rows[i]);
        CHECK_OK(rc, w.err);
        rc = bed_is_cut(&scenario, i + 1) ? bed_cut(&w, i + 1) : TN_OK;
        CHECK_OK(rc, w.err);
        for (uint32_t turns = random_below(&random, 3); turns > 0; turns--) {
            rc = bed_turn(&w, true);
            CHECK_OK(rc, w.err);
            look(sweep, w.table);
            ask(sweep, w.table, &random);
        }
    }
    rc = bed_finish(&w, scenario.row_count);
    CHECK_OK(rc, w.err);
    look(sweep, w.table);
    CHECK(!sweep->then);
    bed_close(&w);
    sim_disk_deinit(&disk);
}

static void what_is_there_goes_into_the_highest_level(void)
{
    uint64_t first = given_number("SEED", 1);
    struct sweep sweep = {0};
    for (uint64_t seed = first; seed < first + SCENARIOS; seed++) {
        bed_scenario_init(&scenario, seed, BED_ROUNDS_MAX);
        if (scenario.keyed) { /* the files of others have no levels */
            write_and_sweep(&sweep, seed);
        }
    }
    CHECK(sweep.asked > SCENARIOS && sweep.asked_between > 0);
}

static const struct test tests[] = {
    TEST(what_is_there_goes_into_the_highest_level),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
