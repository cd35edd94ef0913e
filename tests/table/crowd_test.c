/* More partitions than can be open at once, rows in random order, and few pages: buckets are opened
 * and closed within a round, rows wait for them, memtables are flushed when they are tiny. At each
 * end the table holds what the model says, key by key, and fsck finds nothing. */
#include "bed.h"
#include "given.h"
#include "table/state.h"
#include "temp.h"

enum {
    PARTITIONS_MAX = 400,
    KEYS = 3,
    VALUE_MAX = 3000, /* bytes: some rows take more than a page */
    PROGRAMS = 2,
    TURNS_MAX = 100000, /* of one wait */
    MEMORY_MIN = 96 << 10,
    FSCK_MEMORY = 8 << 20,
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    ROWS_MAX = 600,
#else
    ROWS_MAX = 1500,
#endif
};

struct cell {
    bool there;
    uint32_t value;
};

static struct bed_engine engine;
static struct bed_scenario scenario; /* for its schema */
static struct tn_io_posix posix;
static struct cell model[PARTITIONS_MAX][KEYS];
static struct tn_table *table;
static struct tn_err err;
static uint64_t seed;
static void *fsck_memory;

#define MUST(condition, ...)                                \
    do {                                                    \
        if (!(condition)) {                                 \
            COMPLAIN(__VA_ARGS__);                          \
            (void)fprintf(stderr, "%s\n", scenario.schema); \
            abort();                                        \
        }                                                   \
    } while (0)

static struct tn_bytes text_of(uint32_t value, char text[VALUE_MAX])
{
    uint64_t random = value;
    uint32_t size = value % 100 == 0 ? VALUE_MAX : 8 + value % 90;
    for (uint32_t i = 0; i < size; i++) {
        text[i] = (char)('a' + random_below(&random, 26));
    }
    return (struct tn_bytes){(const unsigned char *)text, size};
}

static void turn(void)
{
    tn_rc rc = tn_table_turn(table, true, &err);
    MUST(rc == TN_OK, "turn: %s", err.text);
    MUST(!table->reload, "nobody else writes, and levels are stale");
}

static void cut(uint64_t rows)
{
    tn_rc rc;
    uint32_t turns = 0;
    while ((rc = tn_table_cut(table, rows, &err)) == TN_AGAIN) {
        MUST(turns++ < TURNS_MAX, "cut waits for ever: %s", err.text);
        turn();
    }
    MUST(rc == TN_OK, "cut: %s", err.text);
}

static void put(uint32_t partition, uint32_t key, uint32_t value, bool deletes)
{
    const struct tn_row_layout *layout = tn_table_layout(table);
    static unsigned char packed[VALUE_MAX + 64];
    static char text[VALUE_MAX];
    struct tn_value values[4] = {
        {.as.i64 = partition}, {.as.i64 = key}, {.as.i64 = 0}, {.as.bytes = text_of(value, text)}};
    CHECK(tn_row_packed_size(layout, values) <= sizeof packed);
    struct tn_row row = {packed, tn_row_pack(layout, values, packed)};
    tn_rc rc;
    uint32_t turns = 0;
    while ((rc = tn_table_put(table, row, deletes ? TN_ROW_DELETE : TN_ROW_INSERT, &err)) ==
           TN_AGAIN) {
        MUST(turns++ < TURNS_MAX, "put waits for ever: %s", err.text);
        turn();
    }
    MUST(rc == TN_OK, "put: %s", err.text);
    model[partition][key] = (struct cell){!deletes, value};
}

static void open_table(uint64_t *random)
{
    struct tn_table_spec spec = {
        .name = BED_TABLE, .who = "a test", .identifier = -1, .compact = true};
    bed_engine_start(&engine, &posix.io, random_next(random));
    engine.env.memtable_size =
        MEMORY_MIN + random_below(random, 4) * (BED_MEMTABLE_SIZE - MEMORY_MIN) / 4;
    tn_rc rc = tn_table_open(&engine.env, &spec, &table, &err);
    MUST(rc == TN_OK, "open: %s", err.text);
}

static void write_rows(uint64_t *random, uint32_t partitions, uint32_t count)
{
    uint32_t hot = random_below(random, 3); /* of four rows so many go to few partitions */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t of = random_below(random, 4) < hot ? 1 + partitions / 16 : partitions;
        put(random_below(random, of), random_below(random, KEYS),
            (uint32_t)random_next(random) >> 1, random_below(random, 5) == 0);
        if (tn_table_wants_cut(table) || random_below(random, 700) == 0) {
            cut(i + 1);
        }
        if (random_below(random, 200) == 0) {
            turn();
        }
        if (random_below(random, 20) == 0) { /* as when others need their places */
            tn_table_release(table);
        }
    }
    tn_rc rc = tn_table_finish(table, count, &err);
    MUST(rc == TN_OK, "finish: %s", err.text);
    MUST(table->parking.pages == 0 && table->parking.bucket_count == 0, "rows still wait");
    MUST(table->frozen_slots.used == 0, "a memtable is left");
    MUST(table->pages.used == table->rounds[0].run_pages + table->rounds[1].run_pages,
         "%u pages are left", table->pages.used);
    tn_table_close(table);
}

static void check_row(const struct tn_row_layout *layout, struct tn_row row,
                      struct cell left[PARTITIONS_MAX][KEYS])
{
    struct tn_value values[4];
    static char text[VALUE_MAX];
    for (uint32_t i = 0; i < 4; i++) {
        tn_row_get(layout, row, i, &values[i]);
    }
    MUST(values[0].as.i64 >= 0 && values[0].as.i64 < PARTITIONS_MAX && values[1].as.i64 >= 0 &&
             values[1].as.i64 < KEYS,
         "a row that nobody wrote");
    struct cell *cell = &left[values[0].as.i64][values[1].as.i64];
    MUST(cell->there, "partition %d, key %d is there, once too often or at all",
         (int)values[0].as.i64, (int)values[1].as.i64);
    MUST(tn_bytes_equal(values[3].as.bytes, text_of(cell->value, text)),
         "partition %d, key %d has another row", (int)values[0].as.i64, (int)values[1].as.i64);
    cell->there = false;
}

static void check_table(void)
{
    static struct cell left[PARTITIONS_MAX][KEYS];
    static struct bed_reader reader;
    static struct tn_scan scan;
    struct tn_snapshot snapshot;
    struct tn_kv kv;
    int64_t id;
    memcpy(left, model, sizeof left);
    bed_engine_start(&engine, &posix.io, 0);
    const char *problem = bed_read_open(&engine, &reader);
    MUST(!problem, "%s", problem);
    tn_rc rc = tn_snapshot_latest(&posix.io, BED_ROOT, &engine.own, &id, &err);
    MUST(rc == TN_OK, "latest: %s", err.text);
    rc = tn_snapshot_read(&posix.io, BED_ROOT, id, &engine.own, &snapshot, &err);
    MUST(rc == TN_OK, "snapshot: %s", err.text);
    struct tn_scan_spec spec = {.root = BED_ROOT,
                                .snapshot = &snapshot,
                                .schema = reader.schema,
                                .options = &reader.options,
                                .schemas = &reader.schemas};
    rc = tn_scan_open(&scan, &spec, engine.window, BED_WINDOW_SIZE, &engine.own,
                      &engine.workers[TN_LANE_LONG], &err);
    MUST(rc == TN_OK, "scan: %s", err.text);
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        check_row(&scan.projection.layout, kv.row, left);
    }
    MUST(rc == TN_ABSENT, "scan: %s", err.text);
    tn_scan_close(&scan);
    for (uint32_t i = 0; i < PARTITIONS_MAX * KEYS; i++) {
        MUST(!left[i / KEYS][i % KEYS].there, "partition %u, key %u is lost", i / KEYS, i % KEYS);
    }
    void *memtable = engine.env.memtable; /* fsck knows all manifests by name */
    engine.env.memtable = fsck_memory;
    engine.env.memtable_size = FSCK_MEMORY;
    problem = bed_fsck(&engine);
    engine.env.memtable = memtable;
    MUST(!problem, "%s", problem);
}

static void one_crowd(void)
{
    char root[TEMP_SIZE];
    uint64_t random = seed;
    temp_make(root);
    bed_open_files(&posix, root);
    memset(model, 0, sizeof model);
    check_seed = seed;
    scenario = (struct bed_scenario){.seed = seed, .partitioned = true, .keyed = true};
    scenario.buckets = 1 + (int32_t)random_below(&random, 3);
    do { /* thousands of tiny manifests are another test's */
        bed_scenario_options(&scenario, &random);
    } while (strstr(scenario.schema, "\"manifest.target-file-size\":\"1 kb\""));
    bed_create(&engine, &posix.io, &scenario);
    uint32_t partitions = 2 + random_below(&random, PARTITIONS_MAX - 2);
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        open_table(&random);
        write_rows(&random, partitions, 1 + random_below(&random, ROWS_MAX));
        check_table();
    }
    tn_io_posix_close(&posix);
    temp_remove(root);
}

static void many_partitions_and_few_pages_hold_what_was_written(void)
{
    double until = given_until(40, 4);
    uint32_t count = 0;
    seed = given_number("SEED", 1);
    do {
        one_crowd();
        seed++;
        count++;
    } while (seconds_now() < until);
    (void)printf("%u tables\n", count);
}

static const struct test tests[] = {
    TEST(many_partitions_and_few_pages_hold_what_was_written),
};

int main(int argc, char **argv)
{
    bed_engine_make(&engine);
    fsck_memory = malloc(FSCK_MEMORY);
    int code = run_tests(argc, argv, tests, COUNT(tests));
    free(fsck_memory);
    bed_engine_free(&engine);
    return code;
}
