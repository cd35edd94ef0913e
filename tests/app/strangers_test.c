/* A table leaves the configuration, and the journal still has its rows: those that are committed
 * matter to nobody, others aren't forgotten without a word. */
#include "given.h"
#include "intake_world.h"

static const char schema[] =
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"}],\"options\":{\"bucket\":\"-1\"}}";

/* As long as the file system lets one be, with all that is named after it. */
static const char *long_name(void)
{
    static char name[180];
    memset(name, 'n', sizeof name - 1);
    memcpy(name, "db.", 3);
    return name;
}

/* Rows of `name` and of db.b; what is committed of them is so within the ms. */
static void begin(const char *name, uint32_t commit_ms)
{
    sim_disk_init(&world.disk, DISK_SIZE);
    world_make_table("db.a", schema);
    world_make_table("db.b", schema);
    world_make_table(name, schema);
    world_names[0] = name;
    world_start(commit_ms);
    world_run(100);
    for (int i = 0; i < 3; i++) {
        world_take(name, "{\"id\":1}\n");
        world_take("db.b", "{\"id\":1}\n");
    }
    world_run(1000);
    world_kill();
    world_names[0] = "db.a";
}

/* What a process says that doesn't know the table; "": it runs. */
static const char *start_without(void)
{
    static struct tn_err err;
    uint32_t wait_ms;
    tn_rc rc = TN_OK;
    world_start(50);
    for (int i = 0; i < 200 && rc == TN_OK; i++) {
        rc = tn_intake_turn(&world.daemon.intake, &wait_ms, &err);
        sim_clock_advance_ms(&engine.clock, WORLD_STEP_MS);
    }
    if (rc != TN_OK && rc != TN_INVALID) {
        FAIL("%s", err.text);
    }
    return rc == TN_OK ? "" : err.text;
}

static void end(void)
{
    world_kill();
    sim_disk_deinit(&world.disk);
}

static void what_was_committed_is_no_concern(void)
{
    const char *const tables[] = {"db.c", long_name()};
    for (size_t i = 0; i < COUNT(tables); i++) {
        begin(tables[i], 50);
        const char *text = start_without();
        if (text[0]) {
            FAIL("%s", text);
        }
        CHECK(world.daemon.intake.strangers.count == 1);
        end();
    }
}

static void rows_that_are_not_committed_are_said(void)
{
    const char *const tables[] = {"db.c", long_name()};
    for (size_t i = 0; i < COUNT(tables); i++) {
        begin(tables[i], 3600 * 1000);
        const char *text = start_without();
        CHECK(strstr(text, tables[i]) && strstr(text, "not committed"));
        end();
    }
}

/* Nor can they be, now; what is to be done about it is said, too. */
static void rows_of_a_folder_that_is_gone_are_said(void)
{
    begin("db.c", 3600 * 1000);
    world_remove_all("db.db/c");
    const char *text = start_without();
    CHECK(strstr(text, "db.c") && strstr(text, "--drop"));
    end();
}

/* It counts as seen only once it was. */
static void what_could_not_be_looked_at_is_looked_at_again(void)
{
    static const char table[] = "db.c";
    struct tn_strangers strangers = {.count = 0};
    struct tn_err err;
    begin(table, 3600 * 1000);
    bed_engine_start(&engine, &world.disk.io, 1);
    for (int i = 0; i < 2; i++) {
        sim_disk_fail_call(&world.disk, world.disk.calls + 1, TN_IO);
        tn_rc rc = tn_strangers_see(&strangers, &engine.env, "id", tn_bytes_of(table), 5, &err);
        CHECK(rc == TN_IO);
    }
    size_t mark = tn_arena_mark(engine.env.arena);
    void *all = tn_arena_take(engine.env.arena, tn_arena_free(engine.env.arena));
    CHECK(all != NULL);
    tn_rc full = tn_strangers_see(&strangers, &engine.env, "id", tn_bytes_of(table), 5, &err);
    CHECK(full == TN_FULL);
    tn_arena_reset(engine.env.arena, mark);
    for (int i = 0; i < 2; i++) {
        tn_rc rc = tn_strangers_see(&strangers, &engine.env, "id", tn_bytes_of(table), 5, &err);
        CHECK(rc == TN_INVALID);
    }
    sim_disk_deinit(&world.disk);
}

static const struct test tests[] = {
    TEST(what_was_committed_is_no_concern),
    TEST(rows_that_are_not_committed_are_said),
    TEST(rows_of_a_folder_that_is_gone_are_said),
    TEST(what_could_not_be_looked_at_is_looked_at_again),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
