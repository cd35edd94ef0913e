/* Positions of more sources than a snapshot carries: those that were noted last are known, after
 * commits of others, and after another start. */
#include "table/bed.h"

enum { SOURCES = 50, CARRIED = 32 };

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;

static const char schema[] = "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"}],\"options\":{"
                             "\"bucket\":\"-1\"}}";

static struct tn_table *open_table(void)
{
    struct tn_table *table;
    struct tn_table_spec spec = {.name = BED_TABLE, .identifier = -1, .compact = true};
    static uint64_t starts;
    bed_engine_start(&engine, &disk.io, ++starts);
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    return table;
}

static void note(struct tn_table *table, uint32_t source, uint32_t place)
{
    char name[16];
    char text[16];
    (void)snprintf(name, sizeof name, "file.%u", source);
    (void)snprintf(text, sizeof text, "%u", place);
    tn_rc rc = tn_table_position(table, name, text, &err);
    CHECK_OK(rc, err);
}

static void commit(struct tn_table *table)
{
    struct tn_value values[] = {{.as.i64 = 1}};
    tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
    CHECK_OK(rc, err);
    rc = tn_table_finish(table, 0, &err);
    CHECK_OK(rc, err);
}

static void check_known(struct tn_table *table, uint32_t source, uint32_t place)
{
    char name[16];
    (void)snprintf(name, sizeof name, "file.%u", source);
    const char *text = tn_table_position_of(table, name);
    if (!text || strtoul(text, NULL, 10) != place) {
        FAIL("source %u is at %s and not %u", source, text ? text : "no place", place);
    }
}

/* Source 0 is noted again and again, as one that is followed. */
static void positions_that_were_noted_last_are_carried(void)
{
    struct tn_table *table;
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_engine_start(&engine, &disk.io, 99);
    bed_make_table(&engine, BED_TABLE, schema);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
    for (uint32_t source = 0; source < SOURCES; source++) {
        table = open_table();
        note(table, source, source);
        note(table, 0, source);
        commit(table);
        commit(table); /* that notes nothing */
        tn_table_close(table);
    }
    table = open_table();
    commit(table);
    tn_table_close(table);
    table = open_table();
    check_known(table, 0, SOURCES - 1);
    for (uint32_t source = SOURCES - CARRIED + 1; source < SOURCES; source++) {
        check_known(table, source, source);
    }
    CHECK(tn_table_position_of(table, "file.1") == NULL);
    tn_table_close(table);
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(positions_that_were_noted_last_are_carried),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
