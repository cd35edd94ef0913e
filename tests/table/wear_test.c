/* The wear budget: what of it is left, and a table that goes by it for a day of the simulator's. */
#include "format/binrow.h"
#include "table/bed.h"

enum { DAY_S = 24 * 3600, MINUTE_MS = 60 * 1000, MINUTES = 24 * 60, KEYS = 500, STOP = 8 };

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;

/* ---- the budget ---- */

static void write_bytes(uint64_t count)
{
    disk.io.counts.bytes_written += count;
}

static void begin_disk(void)
{
    sim_disk_init(&disk, BED_DISK_SIZE);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
}

static void a_byte_comes_in_each_second_of_a_byte_a_second(void)
{
    struct tn_wear wear;
    int64_t now = 5000;
    begin_disk();
    write_bytes(99);
    tn_wear_init(&wear, DAY_S, &disk.io, now);
    CHECK(wear.left == DAY_S && !tn_wear_spent(&wear)); /* what came before doesn't count */
    tn_wear_look(&wear, now + 3600 * 1000);
    CHECK(wear.left == DAY_S); /* a day's worth at the most */
    now += 3600 * 1000;
    write_bytes(DAY_S + 100);
    tn_wear_look(&wear, now);
    CHECK(tn_wear_spent(&wear) && tn_wear_overdraft(&wear) == 100);
    for (int i = 0; i < 1000; i++) { /* a hundred seconds, tenth by tenth: nothing gets lost */
        now += 100;
        tn_wear_look(&wear, now);
    }
    CHECK(wear.left == 0 && tn_wear_spent(&wear) && tn_wear_overdraft(&wear) == 0);
    CHECK(tn_wear_wait_ms(&wear, 60000) >= 1000 && tn_wear_wait_ms(&wear, 60000) <= 1001);
    CHECK(tn_wear_wait_ms(&wear, 7) == 7);
    tn_wear_look(&wear, now + 1000);
    CHECK(wear.left == 1 && !tn_wear_spent(&wear) && tn_wear_wait_ms(&wear, 60000) == 0);
    sim_disk_deinit(&disk);
}

static void of_a_budget_of_0_nothing_is_ever_left(void)
{
    struct tn_wear wear;
    begin_disk();
    tn_wear_init(&wear, 0, &disk.io, 1);
    CHECK(tn_wear_spent(&wear) && tn_wear_overdraft(&wear) == 0);
    write_bytes(7);
    tn_wear_look(&wear, INT64_C(400) * DAY_S * 1000);
    CHECK(tn_wear_spent(&wear) && tn_wear_overdraft(&wear) == 7);
    CHECK(tn_wear_wait_ms(&wear, 60000) == 60000);
    sim_disk_deinit(&disk);
}

static void the_largest_budget_overflows_nothing(void)
{
    struct tn_wear wear;
    const uint64_t most = UINT64_C(1) << 50;
    begin_disk();
    tn_wear_init(&wear, most, &disk.io, 0);
    for (int i = 1; i < 5; i++) {
        write_bytes(3 * most / 2);
        tn_wear_look(&wear, i * INT64_C(1000) * DAY_S);
        CHECK(wear.left == -(int64_t)(most / 2) * i);
    }
    tn_wear_look(&wear, INT64_MAX / 2);
    CHECK(wear.left == (int64_t)most);
    tn_wear_look(&wear, 0); /* and a clock that goes back gives nothing */
    CHECK(wear.left == (int64_t)most);
    sim_disk_deinit(&disk);
}

/* What the next start has of it, when the file says `text`, or what was saved. */
static int64_t left_after_start(const char *text, int64_t saved, int64_t away_ms)
{
    const int64_t wall = INT64_C(1700000000000);
    struct tn_wear wear;
    tn_wear_init(&wear, DAY_S, &disk.io, 0);
    wear.left = saved;
    tn_rc rc = tn_wear_save(&wear, wall, &err);
    CHECK_OK(rc, err);
    if (text) {
        struct tn_err ignored;
        (void)disk.io.vtable->unlink(&disk.io, TN_WEAR_FILE, &ignored);
        rc = tn_io_write_new(&disk.io, TN_WEAR_FILE, tn_bytes_of(text), &err);
        CHECK_OK(rc, err);
    }
    tn_wear_init(&wear, DAY_S, &disk.io, 0);
    tn_wear_load(&wear, wall + away_ms, &engine.own);
    return wear.left;
}

static void a_start_goes_on_with_what_is_left(void)
{
    begin_disk();
    tn_arena_reset(&engine.own, 0);
    CHECK(left_after_start(NULL, -500, 100 * 1000) == -400);
    CHECK(left_after_start(NULL, 17, 0) == 17);
    CHECK(left_after_start(NULL, 17, -INT64_C(30) * DAY_S * 1000) == 17);
    CHECK(left_after_start(NULL, -500, INT64_C(30) * DAY_S * 1000) == DAY_S);
    static const char *const others[] = {"",      "x",     "5",   "99999999 1\n",
                                         "7 0\n", "7 x\n", "7 8", "-9223372036854775808 1\n"};
    for (size_t i = 0; i < COUNT(others); i++) {
        CHECK(left_after_start(others[i], 17, 0) == DAY_S);
    }
    sim_disk_deinit(&disk);
}

/* ---- a table ---- */

static void create(const char *options)
{
    char schema[512];
    (void)snprintf(schema, sizeof schema,
                   "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},"
                   "{\"name\":\"v\",\"type\":\"BIGINT\"}],\"primaryKeys\":[%s],\"options\":{"
                   "\"snapshot.num-retained.min\":\"1\","
                   "\"snapshot.time-retained\":\"1 min\",%s}}",
                   strstr(options, "bucket-key") ? "" : "\"k\"", options);
    begin_disk();
    bed_engine_start(&engine, &disk.io, 5);
    bed_make_table(&engine, BED_TABLE, schema);
}

static void put(struct tn_table *table, int64_t key, int64_t number)
{
    struct tn_value values[] = {{.as.i64 = key}, {.as.i64 = number}};
    tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
    CHECK_OK(rc, err);
}

static struct tn_table *open(struct tn_wear *wear, uint64_t budget)
{
    struct tn_table *table;
    struct tn_table_spec spec = {.name = BED_TABLE, .identifier = -1, .compact = true};
    struct tn_clock *clock = engine.env.clock;
    tn_wear_init(wear, budget, &disk.io, clock->vtable->monotonic_ns(clock) / 1000000);
    engine.env.wear = wear;
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    return table;
}

/* A minute with a commit of some rows. */
static void pass_minute(struct tn_table *table, int64_t minute)
{
    for (int64_t i = 0; i < 5; i++) {
        put(table, (minute * 5 + i) % KEYS, minute);
    }
    tn_rc rc = tn_table_finish(table, 0, &err);
    CHECK_OK(rc, err);
    sim_clock_advance_ms(&engine.clock, MINUTE_MS);
}

static void close_and_check(struct tn_table *table)
{
    tn_table_close(table);
    engine.env.wear = NULL;
    const char *problem = bed_fsck(&engine);
    if (problem) {
        (void)fprintf(stderr, "%s\n", problem);
    }
    CHECK(!problem);
    sim_disk_deinit(&disk);
}

static uint64_t compactions_of_a_day(uint64_t budget, struct tn_wear *wear)
{
    create("\"bucket\":\"1\",\"num-sorted-run.stop-trigger\":\"8\"");
    struct tn_table *table = open(wear, budget);
    bool spared = false;
    for (int64_t minute = 0; minute < MINUTES; minute++) {
        struct tn_backlog backlog;
        pass_minute(table, minute);
        tn_table_backlog(table, &backlog);
        CHECK(backlog.runs_max <= STOP + 1);
        spared = spared || tn_table_spared(table);
        CHECK(!tn_table_spared(table) || tn_wear_spent(wear));
    }
    uint64_t compactions = tn_table_counts(table)->compactions;
    CHECK(tn_table_counts(table)->commits >= MINUTES && spared == (budget == 0));
    close_and_check(table);
    return compactions;
}

static void rows_go_on_for_a_day_without_a_budget_and_the_overdraft_is_known(void)
{
    struct tn_wear none;
    struct tn_wear plenty;
    uint64_t few = compactions_of_a_day(0, &none);
    uint64_t all = compactions_of_a_day(UINT64_C(1) << 40, &plenty);
    CHECK(few > 0 && 10 * few < 8 * all);
    CHECK(tn_wear_overdraft(&none) > 0 && tn_wear_overdraft(&plenty) == 0);
}

static void what_waited_is_done_when_some_of_the_budget_is_there(void)
{
    struct tn_wear wear;
    create("\"bucket\":\"1\",\"num-sorted-run.stop-trigger\":\"20\"");
    struct tn_table *table = open(&wear, DAY_S);
    write_bytes(2 * DAY_S);
    for (int64_t minute = 0; minute < 10; minute++) {
        pass_minute(table, minute);
    }
    CHECK(tn_table_spared(table) && tn_table_idle(table));
    CHECK(tn_table_counts(table)->compactions == 0);
    sim_clock_advance_ms(&engine.clock, INT64_C(3) * DAY_S * 1000);
    for (int i = 0; i < 10; i++) { /* no row comes */
        tn_rc rc = tn_table_turn(table, true, &err);
        CHECK_OK(rc, err);
    }
    CHECK(!tn_table_spared(table) && tn_table_counts(table)->compactions > 0);
    close_and_check(table);
}

/* Without them changes are late, or a file more is there for each commit, for ever. */
static void some_compactions_wait_for_no_budget(void)
{
    static const struct {
        const char *options;
        uint64_t least;
    } cases[] = {
        {"\"bucket\":\"1\",\"changelog-producer\":\"lookup\"", 40},
        {"\"bucket\":\"1\",\"changelog-producer\":\"full-compaction\"", 40},
        {"\"bucket\":\"1\",\"merge-engine\":\"first-row\"", 40},
        {"\"bucket\":\"1\",\"bucket-key\":\"k\",\"compaction.min.file-num\":\"3\"", 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_wear wear;
        struct tn_backlog backlog;
        create(cases[i].options);
        struct tn_table *table = open(&wear, 0);
        for (int64_t minute = 0; minute < 40; minute++) {
            pass_minute(table, minute);
        }
        tn_table_backlog(table, &backlog);
        CHECK(tn_table_counts(table)->compactions >= cases[i].least);
        CHECK(backlog.files_max <= 30);
        close_and_check(table);
    }
}

static const struct test tests[] = {
    TEST(a_byte_comes_in_each_second_of_a_byte_a_second),
    TEST(of_a_budget_of_0_nothing_is_ever_left),
    TEST(the_largest_budget_overflows_nothing),
    TEST(a_start_goes_on_with_what_is_left),
    TEST(rows_go_on_for_a_day_without_a_budget_and_the_overdraft_is_known),
    TEST(what_waited_is_done_when_some_of_the_budget_is_there),
    TEST(some_compactions_wait_for_no_budget),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
