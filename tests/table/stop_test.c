/* A compaction that is told to stop: wherever that comes, the table is as it was or compacted, and
 * nothing is left of what was not committed. */
#include "format/binrow.h"
#include "table/bed.h"

enum { COMMITS = 6, ROWS = 120, ASKS_MAX = 1000 };

static struct bed_engine engine;
static struct sim_disk disk;
static struct tn_err err;

static void create(void)
{
    sim_disk_init(&disk, BED_DISK_SIZE);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
    bed_engine_start(&engine, &disk.io, 5);
    bed_make_table(&engine, BED_TABLE,
                   "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},"
                   "{\"name\":\"v\",\"type\":\"BIGINT\"}],\"primaryKeys\":[\"k\"],\"options\":{"
                   "\"bucket\":\"1\",\"write-only\":\"true\","
                   "\"changelog-producer\":\"lookup\",\"target-file-size\":\"2 kb\"}}");
}

static void put(struct tn_table *table, int64_t key, int64_t number)
{
    struct tn_value values[] = {{.as.i64 = key}, {.as.i64 = number}};
    tn_rc rc = bed_put_values(table, values, TN_ROW_INSERT, &err);
    CHECK_OK(rc, err);
}

static void write_commits(void)
{
    struct tn_table *table;
    struct tn_table_spec spec = {.name = BED_TABLE, .identifier = -1, .compact = true};
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    for (int64_t commit = 0; commit < COMMITS; commit++) {
        for (int64_t i = 0; i < ROWS; i++) {
            put(table, i * 7 % (ROWS + commit), commit);
        }
        rc = tn_table_finish(table, 0, &err);
        CHECK_OK(rc, err);
    }
    tn_table_close(table);
}

/* ---- what is there ---- */

static tn_rc count_file(void *user, const char *name, bool folder, struct tn_err *e)
{
    (void)name;
    (void)folder;
    (void)e;
    ++*(uint32_t *)user;
    return TN_OK;
}

static uint32_t files_in_bucket(void)
{
    uint32_t count = 0;
    tn_rc rc = disk.io.vtable->list(&disk.io, BED_ROOT "/bucket-0/", count_file, &count, &err);
    CHECK_OK(rc, err);
    return count;
}

static int64_t newest(void)
{
    int64_t id;
    tn_arena_reset(&engine.own, 0);
    tn_rc rc = tn_snapshot_latest(&disk.io, BED_ROOT, &engine.own, &id, &err);
    CHECK_OK(rc, err);
    return id;
}

/* ---- stopping ---- */

static uint32_t asks_left;

static bool stopped(void *user)
{
    (void)user;
    return asks_left == 0 || asks_left-- == 0;
}

/* A dedicated round that is stopped at the ask behind so many. */
static tn_rc compact(uint32_t asks)
{
    struct tn_table *table;
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .identifier = -1,
                                 .compact = true,
                                 .full = true,
                                 .dedicated = true,
                                 .stopped = stopped};
    asks_left = asks;
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    CHECK_OK(rc, err);
    while ((rc = tn_table_touch(table, tn_binrow_empty, 0, &err)) == TN_AGAIN) {
        rc = tn_table_turn(table, true, &err);
        CHECK_OK(rc, err);
    }
    CHECK_OK(rc, err);
    rc = tn_table_finish(table, 0, &err);
    tn_table_close(table);
    return rc;
}

static void a_compaction_that_is_stopped_leaves_nothing(void)
{
    create();
    write_commits();
    uint32_t files = files_in_bucket();
    uint32_t asks = 0;
    tn_rc rc = TN_CANCELED;
    for (; rc != TN_OK && asks < ASKS_MAX; asks++) {
        rc = compact(asks);
        CHECK(rc == TN_OK || rc == TN_CANCELED);
        if (newest() > COMMITS) {
            break; /* it was committed, and then stopped or over */
        }
        CHECK(rc == TN_CANCELED && files_in_bucket() == files);
        const char *problem = bed_fsck(&engine);
        CHECK(!problem);
    }
    CHECK(asks > 3 && asks < ASKS_MAX && newest() == COMMITS + 1);
    rc = compact(ASKS_MAX);
    CHECK_OK(rc, err);
    CHECK(newest() == COMMITS + 1); /* nothing was left to do */
    const char *problem = bed_fsck(&engine);
    CHECK(!problem);
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(a_compaction_that_is_stopped_leaves_nothing),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
