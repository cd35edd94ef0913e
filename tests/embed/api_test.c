/* The C API: memory of the caller's, typed rows, errors in words, and a power cut under it. */
#include "check.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "tarn_private.h"

enum { MEMORY_SIZE = 16 << 20, DISK_SIZE = 64 << 20, ROWS = 300, LONG = 512 * 1024 };

static _Alignas(max_align_t) unsigned char memory[MEMORY_SIZE];
static struct sim_disk disk;
static struct sim_clock clock;
static tarn_error error;

static const char schema[] =
    "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"SMALLINT\"},"
    "{\"name\":\"x\",\"type\":\"DOUBLE\"},{\"name\":\"t\",\"type\":\"VARCHAR(5)\"},"
    "{\"name\":\"d\",\"type\":\"DECIMAL(6,2)\"},{\"name\":\"b\",\"type\":\"BINARY(3)\"},"
    "{\"name\":\"w\",\"type\":\"TIMESTAMP(3)\"}],"
    "\"primaryKeys\":[\"k\"],\"options\":{\"bucket\":\"1\"}}";

static tarn_engine *open_engine(void)
{
    tarn_engine_options options = {
        .size = sizeof options, .memory = memory, .memory_size = sizeof memory};
    tarn_engine *engine;
    tarn_rc rc = tarn_open_on(&options, &disk.io, &clock.clock, &engine, &error);
    CHECK_OK((int)rc, error);
    return engine;
}

static tarn_table *open_table(tarn_engine *engine)
{
    tarn_table_options options = {.size = sizeof options, .name = "db.t", .who = "api_test"};
    tarn_table *table;
    tarn_rc rc = tarn_table_open(engine, &options, &table, &error);
    CHECK_OK((int)rc, error);
    return table;
}

static tarn_engine *begin(void)
{
    sim_disk_init(&disk, DISK_SIZE);
    sim_clock_init(&clock, 3);
    tarn_engine *engine = open_engine();
    tarn_rc rc = tarn_create(engine, "db.t", schema, &error);
    CHECK_OK((int)rc, error);
    return engine;
}

static void end(tarn_engine *engine)
{
    tarn_close(engine);
    sim_disk_deinit(&disk);
}

static void put_key(tarn_table *table, int64_t key, tarn_row_kind kind)
{
    tarn_row_begin(table, kind);
    tarn_rc rc = tarn_row_set_i64(table, tarn_table_column(table, "k"), key, &error);
    CHECK_OK((int)rc, error);
    rc = tarn_put(table, &error);
    CHECK_OK((int)rc, error);
}

static tarn_scan *open_scan(tarn_engine *engine, const char *columns, const char *where)
{
    tarn_scan_options options = {
        .size = sizeof options, .table = "db.t", .columns = columns, .where = where};
    tarn_scan *scan;
    tarn_rc rc = tarn_scan_open(engine, &options, &scan, &error);
    CHECK_OK((int)rc, error);
    return scan;
}

static uint32_t count_rows(tarn_engine *engine)
{
    tarn_scan *scan = open_scan(engine, "k", NULL);
    uint32_t count = 0;
    tarn_rc rc;
    while ((rc = tarn_scan_next(scan, &error)) == TARN_OK) {
        count++;
    }
    CHECK(rc == TARN_ABSENT);
    tarn_scan_close(scan);
    return count;
}

/* Each setter fills the column that it is for, each getter finds it again. */
static void values_come_back_as_they_went_in(void)
{
    tarn_engine *engine = begin();
    tarn_table *table = open_table(engine);
    tarn_row_begin(table, TARN_INSERT);
    CHECK(tarn_row_set_i64(table, 0, INT64_MIN, &error) == TARN_OK);
    CHECK(tarn_row_set_i64(table, 1, -32768, &error) == TARN_OK);
    CHECK(tarn_row_set_double(table, 2, 0.1, &error) == TARN_OK);
    CHECK(tarn_row_set_text(table, 3, "h\303\244lle", 6, &error) == TARN_OK);
    CHECK(tarn_row_set_text(table, 4, "-12.5", 5, &error) == TARN_OK);
    CHECK(tarn_row_set_bytes(table, 5, "\0\1\2", 3, &error) == TARN_OK);
    CHECK(tarn_row_set_text(table, 6, "2024-05-01 10:00:00.5", 21, &error) == TARN_OK);
    CHECK(tarn_put(table, &error) == TARN_OK);
    int64_t snapshot = 0;
    tarn_rc rc = tarn_commit(table, &snapshot, &error);
    CHECK_OK((int)rc, error);
    CHECK(snapshot == 1);
    tarn_scan *scan = open_scan(engine, NULL, "n = -32768"); /* beside the open table */
    CHECK(tarn_scan_column_count(scan) == 7);
    CHECK(strcmp(tarn_scan_column_name(scan, 6), "w") == 0 && !tarn_scan_column_name(scan, 7));
    CHECK(tarn_scan_next(scan, &error) == TARN_OK);
    int64_t i64;
    double f64;
    const char *text;
    const void *bytes;
    size_t size;
    CHECK(tarn_scan_i64(scan, 0, &i64, &error) == TARN_OK && i64 == INT64_MIN);
    CHECK(tarn_scan_double(scan, 2, &f64, &error) == TARN_OK && f64 >= 0.1 && f64 <= 0.1);
    CHECK(tarn_scan_bytes(scan, 5, &bytes, &size, &error) == TARN_OK);
    CHECK(size == 3 && memcmp(bytes, "\0\1\2", 3) == 0);
    CHECK(tarn_scan_text(scan, 4, &text, &size, &error) == TARN_OK && strcmp(text, "-12.50") == 0);
    CHECK(tarn_scan_i64(scan, 3, &i64, &error) == TARN_INVALID);
    CHECK(tarn_scan_i64(scan, 7, &i64, &error) == TARN_INVALID);
    CHECK(tarn_commit(table, NULL, &error) == TARN_AGAIN); /* the scan is open */
    CHECK(tarn_scan_next(scan, &error) == TARN_ABSENT);
    end(engine);
}

/* Values that a column can't hold, rows without their key, a second table, a second scan. */
static void what_is_wrong_is_said_in_words(void)
{
    tarn_engine *engine = begin();
    tarn_table *table = open_table(engine);
    static const char line[] = "{\"k\":1,\"zz\":2}";
    CHECK(tarn_row_set_i64(table, 1, 40000, &error) == TARN_INVALID);
    CHECK(strstr(error.text, "'n'") && strstr(error.text, "SMALLINT"));
    CHECK(tarn_row_set_i64(table, 2, 1, &error) == TARN_INVALID);
    CHECK(tarn_row_set_i64(table, -1, 1, &error) == TARN_INVALID);
    CHECK(tarn_row_set_text(table, 3, "sixsix", 6, &error) == TARN_INVALID);
    CHECK(tarn_row_set_bytes(table, 5, "abcd", 4, &error) == TARN_INVALID);
    CHECK(tarn_put(table, &error) == TARN_INVALID); /* no key */
    CHECK(strstr(error.text, "'k'"));
    CHECK(tarn_put_json(table, TARN_INSERT, line, strlen(line), &error) == TARN_INVALID);
    CHECK(strstr(error.text, "zz"));
    CHECK(tarn_put_json(table, TARN_INSERT, "{\"k\":1}\n{}", 10, NULL) == TARN_INVALID);
    CHECK(tarn_create(engine, "db.t", schema, &error) == TARN_EXISTS);
    tarn_table_options again = {.size = sizeof again, .name = "db.t"};
    tarn_table *second;
    CHECK(tarn_table_open(engine, &again, &second, &error) == TARN_EXISTS);
    tarn_scan_options options = {.size = sizeof options, .table = "db.none"};
    tarn_scan *scan;
    CHECK(tarn_scan_open(engine, &options, &scan, &error) == TARN_ABSENT);
    options.table = "db.t";
    options.columns = "k,nn";
    CHECK(tarn_scan_open(engine, &options, &scan, &error) == TARN_INVALID);
    CHECK(count_rows(engine) == 0);
    tarn_engine_options small = {.size = sizeof small, .memory = memory, .memory_size = 65536};
    tarn_engine *other;
    CHECK(tarn_open(&small, &other, &error) == TARN_INVALID);
    small.size = 4;
    CHECK(tarn_open(&small, &other, &error) == TARN_INVALID);
    end(engine);
}

/* Commits, a delete, rows that were never committed; the power goes, and the next program goes on
 * where the positions say. */
static void a_program_goes_on_after_a_power_cut(void)
{
    tarn_engine *engine = begin();
    tarn_table *table = open_table(engine);
    for (int64_t key = 0; key < ROWS; key++) {
        put_key(table, key, TARN_INSERT);
    }
    put_key(table, 7, TARN_DELETE);
    CHECK(tarn_set_position(table, "src", "300", &error) == TARN_OK);
    int64_t snapshot = 0;
    CHECK(tarn_commit(table, &snapshot, &error) == TARN_OK && snapshot > 0);
    put_key(table, ROWS, TARN_INSERT);
    sim_disk_reboot(&disk, SIM_SEED_NOTHING);
    tarn_close(engine); /* what is left of the old program */
    engine = open_engine();
    CHECK(count_rows(engine) == ROWS - 1);
    table = open_table(engine);
    CHECK(strcmp(tarn_position(table, "src"), "300") == 0 && !tarn_position(table, "other"));
    put_key(table, ROWS, TARN_INSERT);
    CHECK(tarn_commit(table, NULL, &error) == TARN_OK);
    tarn_table_close(table);
    CHECK(count_rows(engine) == ROWS);
    end(engine);
}

static bool has_snapshot(struct sim_disk *of, const char *id)
{
    char path[64];
    uint64_t size;
    struct tn_err ignored;
    (void)snprintf(path, sizeof path, "db.db/t/snapshot/snapshot-%s", id);
    return of->io.vtable->stat(&of->io, path, &size, &ignored) == TN_OK;
}

/* The disk as it is between the commit of rows and the compaction that tells of them. */
static void keep_between(void *user, struct sim_disk *now)
{
    struct sim_disk *kept = user;
    if (!kept->io.vtable && has_snapshot(now, "1") && !has_snapshot(now, "2")) {
        sim_disk_clone(kept, now);
        sim_disk_kill(kept);
    }
}

/* Without a row, and once only. */
static void opening_a_table_tells_what_a_killed_program_did_not(void)
{
    static const char told_schema[] =
        "{\"fields\":[{\"name\":\"k\",\"type\":\"BIGINT\"}],\"primaryKeys\":[\"k\"],"
        "\"options\":{\"bucket\":\"2\",\"changelog-producer\":\"lookup\"}}";
    static struct sim_disk kept;
    sim_disk_init(&disk, DISK_SIZE);
    sim_clock_init(&clock, 3);
    tarn_engine *engine = open_engine();
    tarn_rc rc = tarn_create(engine, "db.t", told_schema, &error);
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine);
    put_key(table, 1, TARN_INSERT);
    put_key(table, 2, TARN_INSERT);
    sim_disk_watch(&disk, keep_between, &kept);
    CHECK(tarn_commit(table, NULL, &error) == TARN_OK);
    CHECK(has_snapshot(&disk, "2") && kept.io.vtable);
    sim_disk_watch(&disk, NULL, NULL);
    end(engine);
    sim_disk_clone(&disk, &kept);
    sim_disk_deinit(&kept);
    engine = open_engine();
    for (int again = 0; again < 2; again++) {
        table = open_table(engine);
        CHECK(has_snapshot(&disk, "2") && !has_snapshot(&disk, "3"));
        tarn_table_close(table);
    }
    CHECK(count_rows(engine) == 2);
    end(engine);
}

static void check_long(tarn_scan *scan, int64_t key, const char *value, bool hex)
{
    int64_t i64;
    const void *bytes;
    const char *text;
    size_t size;
    CHECK(tarn_scan_next(scan, &error) == TARN_OK);
    CHECK(tarn_scan_i64(scan, 0, &i64, &error) == TARN_OK && i64 == key);
    CHECK(tarn_scan_bytes(scan, hex ? 2 : 1, &bytes, &size, &error) == TARN_OK);
    CHECK(size == LONG && memcmp(bytes, value, LONG) == 0);
    tarn_rc rc = tarn_scan_text(scan, hex ? 2 : 1, &text, &size, &error);
    CHECK_OK((int)rc, error);
    CHECK(size == (hex ? 2 * LONG : LONG) && (hex || memcmp(text, value, LONG) == 0));
    rc = tarn_scan_json(scan, &text, &size, &error);
    CHECK_OK((int)rc, error);
    CHECK(size == strlen(text) && size > LONG && text[size - 1] == '}');
}

/* Values of 512 KiB, by each way in and out; and one that is too long, beside which others land. */
static void long_values_go_in_and_out(void)
{
    static char value[2 * LONG + 64];
    static const char long_schema[] =
        "{\"fields\":[{\"name\":\"k\",\"type\":\"INT\"},{\"name\":\"s\",\"type\":\"STRING\"},"
        "{\"name\":\"b\",\"type\":\"BYTES\"}],\"primaryKeys\":[\"k\"],\"options\":{\"bucket\":"
        "\"1\"}}";
    sim_disk_init(&disk, DISK_SIZE);
    sim_clock_init(&clock, 3);
    tarn_engine *engine = open_engine();
    tarn_rc rc = tarn_create(engine, "db.t", long_schema, &error);
    CHECK_OK((int)rc, error);
    tarn_table *table = open_table(engine);
    memset(value, 'v', sizeof value);
    CHECK(tarn_row_set_i64(table, 0, 1, &error) == TARN_OK);
    CHECK(tarn_row_set_text(table, 1, value, LONG, &error) == TARN_OK);
    rc = tarn_put(table, &error);
    CHECK_OK((int)rc, error);
    tarn_row_begin(table, TARN_INSERT);
    CHECK(tarn_row_set_i64(table, 0, 2, &error) == TARN_OK);
    CHECK(tarn_row_set_bytes(table, 2, value, LONG, &error) == TARN_OK);
    rc = tarn_put(table, &error);
    CHECK_OK((int)rc, error);
    CHECK(tarn_row_set_bytes(table, 2, value, 2 * LONG, &error) == TARN_OK);
    CHECK(tarn_put(table, &error) == TARN_INVALID);
    CHECK(strstr(error.text, "a row of 1048576 bytes, at most"));
    static const char head[] = "{\"k\":3,\"s\":\"\\u0076";
    memcpy(value, head, sizeof head - 1);
    size_t size = sizeof head - 1 + LONG - 1;
    value[size++] = '"';
    value[size++] = '}';
    rc = tarn_put_json(table, TARN_INSERT, value, size, &error);
    CHECK_OK((int)rc, error);
    rc = tarn_commit(table, NULL, &error);
    CHECK_OK((int)rc, error);
    tarn_table_close(table);
    memset(value, 'v', sizeof value);
    tarn_scan *scan = open_scan(engine, NULL, NULL);
    check_long(scan, 1, value, false);
    check_long(scan, 2, value, true);
    check_long(scan, 3, value, false);
    CHECK(tarn_scan_next(scan, &error) == TARN_ABSENT);
    end(engine);
}

static const struct test tests[] = {
    TEST(long_values_go_in_and_out),
    TEST(values_come_back_as_they_went_in),
    TEST(what_is_wrong_is_said_in_words),
    TEST(a_program_goes_on_after_a_power_cut),
    TEST(opening_a_table_tells_what_a_killed_program_did_not),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
