/* tarn.compaction.unit-size-max: what a table merges of its own accord, and what waits. */
#include "given.h"
#include "table/bed.h"
#include "table/state.h"

enum {
    MINUTE_MS = 60 * 1000,
    HOUR_MINUTES = 60,
    BASE_ROWS = 3000,
    STOP = 8,
    LEVEL_MAX = 5,
};

#define LIMIT "\"tarn.compaction.unit-size-max\":\"20 kb\""

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;
static uint64_t random_state;

static void put(struct tn_table *table, int64_t key, int64_t number)
{
    struct tn_value values[] = {{.as.i64 = key}, {.as.i64 = number}};
    tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
    CHECK_OK(rc, err);
}

static struct tn_table *open(bool full)
{
    struct tn_table *table;
    struct tn_table_spec spec = {
        .name = BED_TABLE, .identifier = -1, .compact = true, .full = full};
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    return table;
}

static void commit(struct tn_table *table)
{
    tn_rc rc = tn_table_finish(table, 0, &err);
    CHECK_OK(rc, err);
}

static void begin_disk(void)
{
    sim_disk_init(&disk, BED_DISK_SIZE);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
}

/* A table whose rows lie in one run of the highest level, by which a unit is too large. */
static struct tn_table *open_with_base(const char *options)
{
    char schema[512];
    (void)snprintf(schema, sizeof schema,
                   "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},"
                   "{\"name\":\"v\",\"type\":\"BIGINT\"}],\"primaryKeys\":[\"k\"],\"options\":{"
                   "\"bucket\":\"1\",\"snapshot.num-retained.min\":\"1\","
                   "\"snapshot.time-retained\":\"1 min\"%s%s}}",
                   *options ? "," : "", options);
    random_state = given_number("SEED", 1);
    begin_disk();
    bed_engine_start(&engine, &disk.io, 5);
    engine.clock.zone_ms = 0; /* the clock shows 00:00 */
    bed_make_table(&engine, BED_TABLE, schema);
    struct tn_table *table = open(true);
    for (int64_t key = 0; key < BASE_ROWS; key++) {
        put(table, key, (int64_t)random_next(&random_state));
    }
    commit(table);
    tn_table_close(table);
    return open(false);
}

/* Minutes with a commit of some rows each. */
static void pass_minutes(struct tn_table *table, int minutes)
{
    for (int minute = 0; minute < minutes; minute++) {
        for (int i = 0; i < 30; i++) {
            put(table, random_below(&random_state, BASE_ROWS), (int64_t)random_next(&random_state));
        }
        commit(table);
        sim_clock_advance_ms(&engine.clock, MINUTE_MS);
    }
}

static const struct tn_level_file *base_of(const struct tn_table *table)
{
    const struct tn_levels *levels = table->buckets[0].levels;
    CHECK(levels && levels->count > 0);
    const struct tn_level_file *file = levels->files[levels->count - 1];
    CHECK(file->level == LEVEL_MAX);
    return file;
}

static struct tn_backlog backlog_of(const struct tn_table *table)
{
    struct tn_backlog backlog;
    tn_table_backlog(table, &backlog);
    return backlog;
}

static void close_and_check(struct tn_table *table)
{
    tn_table_close(table);
    engine.env.unit_size_max = 0;
    const char *problem = bed_fsck(&engine);
    if (problem) {
        (void)fprintf(stderr, "%s\n", problem);
    }
    CHECK(!problem);
    sim_disk_deinit(&disk);
}

/* Compactions that wrote the base anew in an hour with a commit a minute. */
static int rewrites(const char *options, int64_t of_engine)
{
    struct tn_table *table = open_with_base(options);
    char base[256];
    int count = 0;
    engine.env.unit_size_max = of_engine;
    pass_minutes(table, 1);
    (void)snprintf(base, sizeof base, "%s", base_of(table)->name);
    for (int minute = 0; minute < HOUR_MINUTES; minute++) {
        pass_minutes(table, 1);
        struct tn_backlog backlog = backlog_of(table);
        CHECK(backlog.runs_max <= STOP && backlog.stopped == 0);
        count += strcmp(base, base_of(table)->name) != 0;
        (void)snprintf(base, sizeof base, "%s", base_of(table)->name);
    }
    CHECK(tn_table_counts(table)->compactions > 0 && tn_table_counts(table)->stalls == 0);
    close_and_check(table);
    return count;
}

static void a_base_that_is_too_large_is_left_alone(void)
{
    static const char early[] = "\"compaction.max-size-amplification-percent\":\"10\"";
    CHECK(rewrites(early, 0) > 1);
    CHECK(rewrites(early, 20 * 1024) == 0);
    CHECK(rewrites(LIMIT ",\"compaction.max-size-amplification-percent\":\"10\"", 0) == 0);
    CHECK(rewrites(LIMIT ",\"compaction.max-size-amplification-percent\":\"10\"", 1 << 30) == 0);
    CHECK(rewrites("\"tarn.compaction.unit-size-max\":\"1 gb\","
                   "\"compaction.max-size-amplification-percent\":\"10\"",
                   20 * 1024) > 1);
}

/* Whoever asks for a full compaction gets it: by name, by an option, by a changelog that tells by
 * it. */
static void a_full_compaction_waits_for_nothing(void)
{
    struct tn_table *table = open_with_base(LIMIT);
    pass_minutes(table, 7);
    CHECK(backlog_of(table).runs_max > 1);
    tn_table_close(table);
    table = open(true);
    put(table, 1, 1);
    commit(table);
    CHECK(backlog_of(table).runs_max == 1);
    close_and_check(table);

    static const char *const options[] = {"\"changelog-producer\":\"full-compaction\"",
                                          "\"compaction.optimization-interval\":\"1 min\"",
                                          "\"compaction.total-size-threshold\":\"1 gb\""};
    for (size_t i = 0; i < COUNT(options); i++) {
        char both[256];
        (void)snprintf(both, sizeof both, LIMIT ",%s", options[i]);
        table = open_with_base(both);
        pass_minutes(table, 7);
        CHECK(backlog_of(table).runs_max == 1);
        close_and_check(table);
    }
}

static void changes_and_rows_that_compaction_brings_wait_for_nothing(void)
{
    static const char *const options[] = {"\"changelog-producer\":\"lookup\"",
                                          "\"merge-engine\":\"first-row\"",
                                          "\"compaction.force-up-level-0\":\"true\""};
    static const char *const limits[] = {"20 kb", "1 b"};
    for (size_t i = 0; i < COUNT(options) * COUNT(limits); i++) {
        char both[256];
        (void)snprintf(both, sizeof both, "\"tarn.compaction.unit-size-max\":\"%s\",%s",
                       limits[i / COUNT(options)], options[i % COUNT(options)]);
        struct tn_table *table = open_with_base(both);
        for (int minute = 0; minute < 40; minute++) {
            pass_minutes(table, 1);
            CHECK(backlog_of(table).level0_files == 0 && backlog_of(table).runs_max <= LEVEL_MAX);
        }
        close_and_check(table);
    }
}

/* What is due in the bucket now is too large: what was may be needless since, by smaller ones. */
static bool something_waits(const struct tn_table *table)
{
    struct tn_run runs[STOP + 1];
    struct tn_pick_rules rules = tn_table_pick_rules(&table->options, &engine.env);
    uint32_t count = tn_levels_runs(table->buckets[0].levels, runs, COUNT(runs));
    CHECK(count <= COUNT(runs));
    return tn_pick(runs, count, &rules).reason == TN_PICK_HELD;
}

/* From 2 to 4 by the clock on the wall; no row comes then. */
static void wait_for_the_hours(const char *options)
{
    struct tn_table *table = open_with_base(options);
    pass_minutes(table, HOUR_MINUTES / 2);
    for (int i = 0; i < HOUR_MINUTES && !something_waits(table); i++) {
        pass_minutes(table, 1);
    }
    CHECK(something_waits(table));
    CHECK(tn_table_held(table) && tn_table_idle(table) && backlog_of(table).runs_max > 1);
    for (int minute = 0; minute < 3 * HOUR_MINUTES; minute++) {
        int64_t left_ms = engine.clock.wall_ms / MINUTE_MS % (24 * HOUR_MINUTES);
        bool before = left_ms < 2 * HOUR_MINUTES - 1;
        for (int i = 0; i < 20; i++) {
            tn_rc rc = tn_table_turn(table, false, &err);
            CHECK_OK(rc, err);
        }
        CHECK(tn_table_held(table) == before || left_ms == 2 * HOUR_MINUTES - 1);
        CHECK((backlog_of(table).runs_max > 1) == tn_table_held(table));
        sim_clock_advance_ms(&engine.clock, MINUTE_MS);
    }
    CHECK(!tn_table_held(table));
    commit(table);
    close_and_check(table);
}

#define HOURS "\"compaction.offpeak.start.hour\":\"2\",\"compaction.offpeak.end.hour\":\"4\""

/* Also where what is in level 0 waits for nothing. */
static void what_waited_is_done_in_the_off_peak_hours(void)
{
    wait_for_the_hours(LIMIT "," HOURS ",\"compaction.max-size-amplification-percent\":\"1\"");
    wait_for_the_hours(LIMIT "," HOURS ",\"compaction.max-size-amplification-percent\":\"1\","
                             "\"changelog-producer\":\"lookup\"");
}

/* Each run takes memory at every flush of a table with a script. */
static void of_a_table_with_a_script_few_runs_are_held(void)
{
    begin_disk();
    bed_engine_start(&engine, &disk.io, 5);
    struct tn_options options = {
        .compaction_trigger = 4, .stop_trigger = 7, .num_levels = 5, .off_peak_start = -1};
    CHECK(tn_table_pick_rules(&options, &engine.env).crowd == 7);
    options.script = "fold.lua";
    CHECK(tn_table_pick_rules(&options, &engine.env).crowd == 5);
    sim_disk_deinit(&disk);
}

static void append_files_beyond_a_unit_stay(void)
{
    static const char *const limits[] = {"1 b", "1 gb"};
    for (size_t i = 0; i < COUNT(limits); i++) {
        char schema[512];
        (void)snprintf(
            schema, sizeof schema,
            "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},"
            "{\"name\":\"v\",\"type\":\"BIGINT\"}],\"primaryKeys\":[],\"options\":{"
            "\"bucket\":\"1\",\"bucket-key\":\"k\",\"compaction.min.file-num\":\"3\"," HOURS
            ",\"tarn.compaction.unit-size-max\":\"%s\"}}",
            limits[i]);
        begin_disk();
        bed_engine_start(&engine, &disk.io, 5);
        engine.clock.zone_ms = 0; /* the clock shows 00:00 */
        bed_make_table(&engine, BED_TABLE, schema);
        struct tn_table *table = open(false);
        pass_minutes(table, 10);
        CHECK((tn_table_counts(table)->compactions > 0) == (i == 1));
        CHECK(tn_table_held(table) == (i == 0));
        close_and_check(table);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_base_that_is_too_large_is_left_alone),
        TEST(a_full_compaction_waits_for_nothing),
        TEST(changes_and_rows_that_compaction_brings_wait_for_nothing),
        TEST(what_waited_is_done_in_the_off_peak_hours),
        TEST(of_a_table_with_a_script_few_runs_are_held),
        TEST(append_files_beyond_a_unit_stay),
    };
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
