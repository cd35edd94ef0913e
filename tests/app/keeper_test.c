/* Tables beside each other: what one keeps of the memory that all work in is no other's, whoever is
 * closed and opened again, in whatever order. */
#define BED_SCALE 4
#include "../table/bed.h"

#include "app/keeper.h"
#include "given.h"
#include "table/make.h"

enum { TABLES = 3, DISK_SIZE = 8 << 20, ROUNDS = 200, LOG_SIZE = 4096 };

static const char *const names[TABLES] = {"db.a", "db.b", "db.c"};
static const char *const producers[TABLES] = {"lookup", "none", "lookup"};

static struct bed_engine engine;
static struct tn_share shares[TABLES];
static struct tn_keeper keepers[TABLES];
static struct tn_log log_of_all;
static unsigned char log_memory[LOG_SIZE];

static void make_tables(void)
{
    struct tn_err err;
    for (uint32_t i = 0; i < TABLES; i++) {
        char text[512];
        struct tn_schema schema;
        struct tn_options options;
        size_t mark = tn_arena_mark(&engine.own);
        (void)snprintf(
            text, sizeof text,
            "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":"
            "\"BIGINT\"}],\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\","
            "\"changelog-producer\":\"%s\"}}",
            producers[i]);
        CHECK_OK(tn_schema_from_user(tn_bytes_of(text), &engine.own, &schema, &err), err);
        CHECK_OK(tn_make_table(&engine.env, names[i], &schema, &options, &err), err);
        tn_arena_reset(&engine.own, mark);
    }
}

static void open_keepers(void)
{
    struct tn_err err;
    static struct tn_config_table configs[TABLES];
    tn_log_init(&log_of_all, log_memory, sizeof log_memory, NULL, NULL);
    CHECK_OK(tn_share_out(&engine.env, shares, TABLES, &err), err);
    for (uint32_t i = 0; i < TABLES; i++) {
        configs[i] = (struct tn_config_table){.name = names[i], .commit = {.rows = 20}};
        struct tn_keeper_spec spec = {
            .config = &configs[i], .share = &shares[i], .who = "a test", .log = &log_of_all};
        CHECK_OK(tn_keeper_open(&keepers[i], &spec, &err), err);
    }
}

static void nothing_that_a_table_keeps_is_given_to_tasks(void)
{
    static struct sim_disk disk;
    struct tn_err err = {0};
    uint64_t random = given_number("SEED", 1);
    int64_t now_ms = 1;
    sim_disk_init(&disk, DISK_SIZE);
    bed_engine_start(&engine, &disk.io, random);
    make_tables();
    open_keepers();
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
    for (uint32_t i = 0; i < TABLES; i++) {
        tn_keeper_close(&keepers[i]);
    }
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(nothing_that_a_table_keeps_is_given_to_tasks),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
