/* Somebody removes a table's folder while the daemon runs: the table says so and takes nothing, the
 * others go on, nothing is written to where it was, and what was acknowledged and not committed is
 * put when it is there again. */
#include "given.h"
#include "intake_world.h"

enum { LONG_MS = 60 * 1000, SOON_MS = 15 * 1000, ROUNDS = 40 };

static const char table_a[] =
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\"}}";
static const char table_b[] = "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"}],"
                              "\"options\":{\"bucket\":\"-1\"}}";

static bool is_there(const char *path)
{
    struct tn_err err;
    int64_t ms;
    return world.disk.io.vtable->modified(&world.disk.io, path, &ms, &err) == TN_OK;
}

/* ---- worlds ---- */

static void begin(uint32_t commit_ms)
{
    sim_disk_init(&world.disk, DISK_SIZE);
    world_make_table("db.a", table_a);
    world_make_table("db.b", table_b);
    world_start(commit_ms);
    world_run(100);
}

static void end(void)
{
    world_kill();
    sim_disk_deinit(&world.disk);
}

static void check_gone(void)
{
    const struct tn_keeper *a = &world.daemon.keepers[0];
    CHECK(a->state == TN_KEEPER_SHUT && a->trouble == TN_ABSENT);
    CHECK(strstr(a->trouble_text.text, "db.a") && strstr(a->trouble_text.text, "is gone"));
    CHECK(world.daemon.keepers[1].state == TN_KEEPER_LIVE &&
          world.daemon.keepers[1].trouble == TN_OK);
    CHECK(!is_there("db.db/a"));
}

static bool is_logged(const char *text)
{
    static char lines[LOG_SIZE + 1];
    struct tn_buf out;
    tn_buf_init(&out, (unsigned char *)lines, LOG_SIZE);
    (void)tn_log_read(&world.daemon.log, 0, &out);
    lines[out.size] = 0;
    return strstr(lines, text) != NULL;
}

static void a_quiet_table_that_goes_is_told(void)
{
    struct tn_err err = {0};
    begin(50);
    world_take("db.a", "{\"id\":1,\"n\":1}\n");
    world_run(1000);
    world_remove_all("db.db/a");
    world_run(SOON_MS);
    check_gone();
    CHECK(is_logged("error table table=db.a") && is_logged("is gone"));
    CHECK(world_offer("db.a", TN_INPUT_JSON, "{\"id\":2}\n", &err) == TN_UNSUPPORTED);
    CHECK(strstr(err.text, "is gone"));
    world_take("db.b", "{\"id\":1}\n");
    world_run(LONG_MS);
    check_gone();
    end();
}

/* The commit would make folders, and a snapshot of a table that has no schema. */
static void what_waits_for_a_commit_is_put_when_it_is_there_again(void)
{
    begin(2000);
    world_take("db.a", "{\"id\":1,\"n\":1}\n");
    world_run(4000);
    world_take("db.a", "{\"id\":2,\"n\":1}\n");
    world_run(100);
    world_remove_all("db.db/a");
    world_take("db.a", "{\"id\":3,\"n\":1}\n"); /* nobody knows yet */
    world_take("db.b", "{\"id\":1}\n");
    world_run(SOON_MS);
    check_gone();
    bed_make_table(&engine, "db.a", table_a);
    world_run(2 * LONG_MS);
    CHECK(world.daemon.keepers[0].state == TN_KEEPER_LIVE &&
          world.daemon.keepers[0].trouble == TN_OK);
    world_take("db.a", "{\"id\":4,\"n\":1}\n");
    world_run(4000);
    world_kill();
    const char *rows = world_rows("db.a");
    CHECK(strstr(rows, "\"id\":2,") && strstr(rows, "\"id\":3,") && strstr(rows, "\"id\":4,"));
    CHECK(world_count(world_rows("db.b"), "\n") == 1);
    sim_disk_deinit(&world.disk);
}

/* Whatever is under way. Rows that were committed went with the folder; no others did. */
static void a_table_may_go_at_any_time(void)
{
    uint64_t random = given_number("SEED", 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        begin(200);
        uint32_t committed = 0;
        uint32_t count = 5 + random_below(&random, 60);
        static uint64_t places[100];
        for (uint32_t id = 0; id < count; id++) {
            struct tn_err err;
            char text[32];
            (void)snprintf(text, sizeof text, "{\"id\":%u,\"n\":1}\n", id);
            struct tn_message message = {.table = "db.a", .bytes = tn_bytes_of(text)};
            CHECK_OK(tn_hub_offer(&world.daemon.intake.hub, &message, &err), err);
            places[id] = message.place;
            world_take("db.b", "{\"id\":1}\n");
            for (uint32_t turns = random_below(&random, 40); turns > 0; turns--) {
                uint32_t wait_ms;
                CHECK_OK(tn_intake_turn(&world.daemon.intake, &wait_ms, &err), err);
                sim_clock_advance_ms(&engine.clock, random_below(&random, 20));
            }
        }
        for (uint32_t id = 0; id < count; id++) {
            committed += places[id] < world.daemon.keepers[0].cut.place;
        }
        world_remove_all("db.db/a");
        world_run(SOON_MS);
        check_gone();
        world_kill();
        CHECK(world_count(world_rows("db.b"), "\n") == count);
        world_make_table("db.a", table_a);
        world_start(50);
        world_run(1000);
        world_kill();
        const char *rows = world_rows("db.a");
        for (uint32_t id = committed; id < count; id++) {
            char text[32];
            (void)snprintf(text, sizeof text, "{\"id\":%u,", id);
            CHECK(strstr(rows, text));
        }
        sim_disk_deinit(&world.disk);
    }
}

static const struct test tests[] = {
    TEST(a_quiet_table_that_goes_is_told),
    TEST(what_waits_for_a_commit_is_put_when_it_is_there_again),
    TEST(a_table_may_go_at_any_time),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
