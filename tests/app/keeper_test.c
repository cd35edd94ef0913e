/* Tables beside each other: what one keeps of the memory that all work in is no other's, whoever is
 * closed and opened again, in whatever order. What one doesn't have room for is said. */
#define BED_SCALE 4
#include "../table/bed.h"

#include "app/keeper.h"
#include "given.h"
#include "table/state.h"

enum { TABLES = 3, DISK_SIZE = 8 << 20, ROUNDS = 200, LOG_SIZE = 4096 };

static const char *const names[TABLES] = {"db.a", "db.b", "db.c"};
static const char *const producers[TABLES] = {"lookup", "none", "lookup"};

static struct bed_engine engine;
static struct tn_table_share shares[TABLES];
static struct tn_keeper keepers[TABLES];
static struct tn_log log_of_all;
static unsigned char log_memory[LOG_SIZE];

static void make_table(const char *name, const char *option, const char *value)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":"
                   "\"BIGINT\"}],\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\",\"%s\":"
                   "\"%s\"}}",
                   option, value);
    bed_make_table(&engine, name, text);
}

static void open_keepers(struct sim_disk *disk, uint64_t seed, struct tn_wear *wear)
{
    struct tn_err err;
    static struct tn_config_table configs[TABLES];
    bed_engine_start(&engine, &disk->io, seed);
    for (uint32_t i = 0; i < TABLES; i++) {
        make_table(names[i], "changelog-producer", producers[i]);
    }
    engine.env.wear = wear;
    tn_log_init(&log_of_all, log_memory, sizeof log_memory, NULL, NULL);
    CHECK_OK(tn_share_out(&engine.env, shares, TABLES, &err), err);
    for (uint32_t i = 0; i < TABLES; i++) {
        configs[i] = (struct tn_config_table){.name = names[i], .commit = {.rows = 20}};
        struct tn_keeper_spec spec = {
            .config = &configs[i], .share = &shares[i], .who = "a test", .log = &log_of_all};
        CHECK_OK(tn_keeper_open(&keepers[i], &spec, &err), err);
    }
}

static void close_keepers(struct sim_disk *disk)
{
    for (uint32_t i = 0; i < TABLES; i++) {
        tn_keeper_close(&keepers[i]);
    }
    engine.env.wear = NULL;
    sim_disk_deinit(disk);
}

static void nothing_that_a_table_keeps_is_given_to_tasks(void)
{
    static struct sim_disk disk;
    struct tn_err err = {0};
    uint64_t random = given_number("SEED", 1);
    int64_t now_ms = 1;
    sim_disk_init(&disk, DISK_SIZE);
    open_keepers(&disk, random, NULL);
    size_t held = tn_arena_mark(&engine.workers[TN_LANE_LONG].arena);
    size_t arenas[TABLES];
    for (uint32_t i = 0; i < TABLES; i++) {
        arenas[i] = tn_arena_mark(&shares[i].arena);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t i = random_below(&random, TABLES);
        uint32_t wait_ms = 0;
        tn_keeper_fail(&keepers[i], TN_CONFLICT, &err, now_ms);
        CHECK(keepers[i].state == TN_KEEPER_SHUT);
        CHECK(tn_arena_mark(&engine.workers[TN_LANE_LONG].arena) == held);
        bool again = random_below(&random, 4) > 0;
        if (again) {
            CHECK(tn_keeper_turn(&keepers[i], now_ms, &wait_ms));
            CHECK(tn_arena_mark(&shares[i].arena) <= arenas[i]);
            CHECK(keepers[i].state == TN_KEEPER_BEHIND);
            CHECK(tn_arena_mark(&engine.workers[TN_LANE_LONG].arena) == held);
        }
    }
    close_keepers(&disk);
}

/* The budget is there again, and a flush is under way: nothing can be begun before its end. */
static void a_compaction_that_is_spared_is_no_reason_to_turn_at_once(void)
{
    static struct sim_disk disk;
    struct tn_wear wear;
    uint32_t wait_ms = 1000;
    sim_disk_init(&disk, DISK_SIZE);
    tn_wear_init(&wear, 1 << 30, &disk.io, 0);
    open_keepers(&disk, 1, &wear);
    struct tn_table *table = keepers[1].table;
    table->spared = true;
    table->flush.under_way = true;
    CHECK(!tn_keeper_turn(&keepers[1], 1, &wait_ms));
    CHECK(table->spared && wait_ms > 0);
    table->flush.under_way = false;
    CHECK(!tn_keeper_turn(&keepers[1], 2, &wait_ms));
    CHECK(!table->spared);
    close_keepers(&disk);
}

/* There is no file of that name, which is what the last try says. */
static void a_script_that_came_since_and_has_no_room_is_said(void)
{
    static struct sim_disk disk;
    struct tn_err err = {0};
    uint32_t tries = 0;
    tn_rc rc = TN_AGAIN;
    sim_disk_init(&disk, DISK_SIZE);
    bed_engine_start(&engine, &disk.io, 1);
    make_table("db.s", "tarn.script", "/none.lua");
    tn_log_init(&log_of_all, log_memory, sizeof log_memory, NULL, NULL);
    CHECK_OK(tn_share_out(&engine.env, shares, 1, &err), err);
    struct tn_config_table config = {.name = "db.s"};
    struct tn_keeper_spec spec = {
        .config = &config, .share = &shares[0], .who = "a test", .log = &log_of_all};
    struct tn_arena *arena = shares[0].env.arena;
    size_t most = arena->size;
    size_t mark = tn_arena_mark(arena);
    for (arena->size = mark; rc == TN_AGAIN && arena->size < most; arena->size += 16) {
        rc = tn_keeper_open(&keepers[0], &spec, &err);
        CHECK(tn_arena_mark(arena) == mark);
        tries++;
    }
    CHECK(rc == TN_INVALID && strstr(err.text, "/none.lua") && tries > 100);
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(nothing_that_a_table_keeps_is_given_to_tasks),
    TEST(a_compaction_that_is_spared_is_no_reason_to_turn_at_once),
    TEST(a_script_that_came_since_and_has_no_room_is_said),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
