/* Rows wait in the journal, and meanwhile their table gets a newer schema, as ALTER TABLE of
 * another program writes it: with the next start each of them is in the table or has a letter, and
 * those behind them are taken as if nothing had been. */
#include "intake_world.h"

#define NEVER_MS (1000 * 1000)

static const char table_a[] =
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"STRING\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\"}}";
static const char table_b[] = "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"}],"
                              "\"options\":{\"bucket\":\"-1\"}}";

static void begin(void)
{
    sim_disk_init(&world.disk, DISK_SIZE);
    world_make_table("db.a", table_a);
    world_make_table("db.b", table_b);
}

/* Newer versions of a table's schema, in the words of its file. */
struct change {
    const char *was;
    const char *is;
};

static void alter(const char *root, int64_t id, struct change change)
{
    struct tn_err err;
    char path[64];
    static char text[4096];
    static _Alignas(16) unsigned char memory[8192];
    struct tn_arena arena;
    struct tn_bytes json;
    struct tn_buf buf;
    (void)snprintf(path, sizeof path, "%s/schema/schema-%" PRId64, root, id - 1);
    tn_arena_init(&arena, memory, sizeof memory);
    CHECK_OK(tn_io_read_all(&world.disk.io, path, sizeof text, &arena, &json, &err), err);
    const char *from = (const char *)json.data;
    char own[32];
    (void)snprintf(own, sizeof own, "\"id\" : %" PRId64 ",", id - 1);
    const char *at = strstr(from, own);
    CHECK(at != NULL);
    tn_buf_init(&buf, (unsigned char *)text, sizeof text);
    tn_buf_append(&buf, from, (size_t)(at - from));
    tn_buf_format(&buf, "\"id\" : %" PRId64 ",", id);
    from = at + strlen(own);
    at = strstr(from, change.was);
    CHECK(at != NULL);
    tn_buf_append(&buf, from, (size_t)(at - from));
    tn_buf_text(&buf, change.is);
    tn_buf_text(&buf, at + strlen(change.was));
    CHECK(!buf.overflow);
    (void)snprintf(path, sizeof path, "%s/schema/schema-%" PRId64, root, id);
    CHECK_OK(tn_io_write_new(&world.disk.io, path, tn_buf_bytes(&buf), &err), err);
}

static const char *const texts[] = {
    "{\"id\":1,\"n\":\"11\"}\n{\"id\":2,\"n\":\"22\"}\n",
    "{\"id\":3,\"n\":\"x\"}\n{\"id\":4,\"n\":null}\nno json\n",
};

/* Taken and durable, and in no table yet. */
static void begin_with_waiting(void)
{
    begin();
    world_start(NEVER_MS);
    world_run(100);
    for (size_t i = 0; i < COUNT(texts); i++) {
        world_take("db.a", texts[i]);
        world_take("db.b", "{\"id\":1}\n");
        world_run(40);
    }
    CHECK(world.daemon.intake.hub.durable + 1 == tn_journal_next(world.daemon.intake.journal));
    world_kill();
    CHECK(strcmp(world_rows("db.a"), "") == 0);
}

/* With the next start, and then this one. */
static void take_what_waits_and(const char *text)
{
    world_start(50);
    world_run(1000);
    CHECK(world.daemon.keepers[0].state == TN_KEEPER_LIVE &&
          world.daemon.keepers[1].state == TN_KEEPER_LIVE);
    world_take("db.a", text);
    world_run(1000);
    world_kill();
}

static void rows_get_the_columns_that_came_since(void)
{
    begin_with_waiting();
    alter("db.db/a", 1, (struct change){"\"highestFieldId\" : 1", "\"highestFieldId\" : 2"});
    alter("db.db/a", 2,
          (struct change){"  } ],", "  }, {\n    \"id\" : 2,\n    \"name\" : \"m\",\n"
                                    "    \"type\" : \"INT\"\n  } ],"});
    take_what_waits_and("{\"id\":5,\"m\":5}\n");
    const char *rows = world_rows("db.a");
    CHECK(strcmp(rows, "{\"id\":1,\"n\":\"11\",\"m\":null}\n{\"id\":2,\"n\":\"22\",\"m\":null}\n"
                       "{\"id\":3,\"n\":\"x\",\"m\":null}\n{\"id\":4,\"n\":null,\"m\":null}\n"
                       "{\"id\":5,\"n\":null,\"m\":5}\n") == 0);
    CHECK(world_count(world_rows("db.b"), "\n") == 2);
    rows = world_rows("db.a_dead");
    CHECK(world_count(rows, "\n") == 1 && strstr(rows, "\"record\":\"no json\""));
    sim_disk_deinit(&world.disk);
}

static void a_row_that_is_none_any_more_is_a_letter(void)
{
    begin_with_waiting();
    alter("db.db/a", 1,
          (struct change){"\"name\" : \"n\",\n    \"type\" : \"STRING\"",
                          "\"name\" : \"number\",\n    \"type\" : \"INT\""});
    take_what_waits_and("{\"id\":5,\"number\":5}\n");
    const char *rows = world_rows("db.a");
    CHECK(strcmp(rows, "{\"id\":1,\"number\":11}\n{\"id\":2,\"number\":22}\n"
                       "{\"id\":4,\"number\":null}\n{\"id\":5,\"number\":5}\n") == 0);
    CHECK(world_count(world_rows("db.b"), "\n") == 2);
    rows = world_rows("db.a_dead");
    CHECK(world_count(rows, "\n") == 2);
    CHECK(strstr(rows, "\"input\":\"row\"") && strstr(rows, "is no value of INT") &&
          strstr(rows, "\"record\":\"{\\\"kind\\\":\\\"+I\\\",\\\"row\\\":{\\\"id\\\":3,"
                       "\\\"n\\\":\\\"x\\\"}}\""));
    sim_disk_deinit(&world.disk);
}

static void a_letter_behind_it_keeps_its_header(void)
{
    struct tn_err err;
    begin();
    world_start(NEVER_MS);
    world_run(100);
    CHECK_OK(world_offer("db.a", TN_INPUT_CSV, "id,n\n3,x\ny,7\n", &err), err);
    world_run(40);
    world_kill();
    alter("db.db/a", 1,
          (struct change){"\"name\" : \"n\",\n    \"type\" : \"STRING\"",
                          "\"name\" : \"n\",\n    \"type\" : \"INT\""});
    take_what_waits_and("{\"id\":5,\"n\":5}\n");
    CHECK(strcmp(world_rows("db.a"), "{\"id\":5,\"n\":5}\n") == 0);
    const char *rows = world_rows("db.a_dead");
    CHECK(world_count(rows, "\n") == 2 && world_count(rows, "\"input\":\"row\"") == 1);
    CHECK(world_count(rows, "\"header\":\"id,n\"") == 1 && strstr(rows, "\"record\":\"y,7\""));
    sim_disk_deinit(&world.disk);
}

/* Nobody can read them: but their bytes are not lost, and what is behind them is taken. */
static void rows_of_a_schema_that_went_are_letters(void)
{
    struct tn_err err;
    begin_with_waiting();
    alter("db.db/a", 1, (struct change){"\"name\" : \"n\"", "\"name\" : \"m\""});
    CHECK_OK(world.disk.io.vtable->unlink(&world.disk.io, "db.db/a/schema/schema-0", &err), err);
    take_what_waits_and("{\"id\":5,\"m\":\"5\"}\n");
    CHECK(strcmp(world_rows("db.a"), "{\"id\":5,\"m\":\"5\"}\n") == 0);
    const char *rows = world_rows("db.a_dead");
    CHECK(world_count(rows, "\n") == 5 && world_count(rows, "a row of schema 0, which the") == 4);
    CHECK(world_count(world_rows("db.b"), "\n") == 2);
    sim_disk_deinit(&world.disk);
}

/* Another table was put in its place, and has a schema of the same number. */
static void rows_of_another_table_are_letters(void)
{
    begin_with_waiting();
    const char *paths[] = {"db.db/a/schema/schema-0"};
    struct tn_err err;
    CHECK_OK(world.disk.io.vtable->unlink(&world.disk.io, paths[0], &err), err);
    world_make_table("db.a", "{\"fields\":[{\"name\":\"a\",\"type\":\"STRING\"},{\"name\":\"b\","
                             "\"type\":\"STRING\"},{\"name\":\"c\",\"type\":\"STRING\"}],"
                             "\"options\":{\"bucket\":\"-1\"}}");
    take_what_waits_and("{\"a\":\"5\"}\n");
    CHECK(strcmp(world_rows("db.a"), "{\"a\":\"5\",\"b\":null,\"c\":null}\n") == 0);
    CHECK(world_count(world_rows("db.a_dead"), "another one was there before") == 4);
    sim_disk_deinit(&world.disk);
}

/* Neither what waits nor what comes can be read for it until somebody mends that: letters. */
static void a_default_that_is_no_value_loses_nothing(void)
{
    begin_with_waiting();
    alter("db.db/a", 1,
          (struct change){"  } ],",
                          "  }, {\n    \"id\" : 2,\n    \"name\" : \"m\",\n"
                          "    \"type\" : \"INT\",\n    \"defaultValue\" : \"x\"\n  } ],"});
    take_what_waits_and("{\"id\":5}\n");
    CHECK(strcmp(world_rows("db.a"), "") == 0);
    const char *rows = world_rows("db.a_dead");
    CHECK(world_count(rows, "\n") == 6 && world_count(rows, "default value") == 5);
    CHECK(strstr(rows, "\\\"row\\\":{\\\"id\\\":3,"));
    CHECK(strstr(rows, "\"record\":\"{\\\"id\\\":5}"));
    sim_disk_deinit(&world.disk);
}

/* A table that is opened again in the same memory is read for with its newest schema. */
static void a_table_that_is_opened_again_takes_its_new_column(void)
{
    struct tn_err err = {0};
    begin();
    world_start(50);
    world_run(100);
    world_take("db.a", "{\"id\":1,\"n\":\"1\"}\n");
    world_run(1000);
    alter("db.db/a", 1, (struct change){"\"name\" : \"n\"", "\"name\" : \"m\""});
    tn_keeper_fail(&world.daemon.keepers[0], TN_CONFLICT, &err,
                   engine.clock.clock.vtable->monotonic_ns(&engine.clock.clock) / 1000000);
    world_run(1000);
    CHECK(world.daemon.keepers[0].state == TN_KEEPER_LIVE);
    world_take("db.a", "{\"id\":2,\"m\":\"2\"}\n{\"id\":3,\"n\":\"3\"}\n");
    world_run(1000);
    world_kill();
    CHECK(strcmp(world_rows("db.a"), "{\"id\":1,\"m\":\"1\"}\n{\"id\":2,\"m\":\"2\"}\n") == 0);
    CHECK(world_count(world_rows("db.a_dead"), "\n") == 1);
    sim_disk_deinit(&world.disk);
}

static const struct test tests[] = {
    TEST(rows_get_the_columns_that_came_since),
    TEST(a_row_that_is_none_any_more_is_a_letter),
    TEST(a_letter_behind_it_keeps_its_header),
    TEST(rows_of_a_schema_that_went_are_letters),
    TEST(rows_of_another_table_are_letters),
    TEST(a_default_that_is_no_value_loses_nothing),
    TEST(a_table_that_is_opened_again_takes_its_new_column),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
