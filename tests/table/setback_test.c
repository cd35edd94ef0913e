/* A compaction that fails, for memory or since a file is damaged: rows go on without it, it is said
 * once and tried again more and more seldom; at the stop trigger rows are refused, and those that
 * were taken are committed. */
#include "bed.h"
#include "table/state.h"

enum {
    TRIGGER = 3,
    STOP = 9,
    ROUNDS = BED_ROUNDS_MAX,
    ROWS_A_ROUND = 5,
    TURNS_MAX = 5000,
    COMMIT_BYTES_MAX = 64 << 10
};

static struct bed_engine engine;
static struct bed_scenario scenario;
static struct sim_disk disk;

struct said {
    uint32_t count;
    tn_rc rc;
};

static struct said said;
static uint64_t seed;

static void note_failure(void *user_data, const struct tn_compaction_failed *failed)
{
    (void)user_data;
    CHECK(strstr(failed->dir, "bucket-0") && failed->text[0]);
    said.count++;
    said.rc = failed->rc;
}

/* One bucket, so many runs a compaction, and so many rows a commit. */
static void make_table(int trigger, int stop)
{
    scenario = (struct bed_scenario){.seed = 1, .buckets = 1, .keyed = true, .sequenced = false};
    (void)snprintf(scenario.schema, sizeof scenario.schema,
                   "{\"fields\":[{\"name\":\"p\",\"type\":\"INT\"},{\"name\":\"k\",\"type\":"
                   "\"BIGINT\"},{\"name\":\"s\",\"type\":\"INT\"},{\"name\":\"v\",\"type\":"
                   "\"STRING\"}],\"partitionKeys\":[],\"primaryKeys\":[\"k\"],\"options\":{"
                   "\"file.format\":\"avro\",\"bucket\":\"1\",\"num-sorted-run.compaction-trigger\""
                   ":\"%d\",\"num-sorted-run.stop-trigger\":\"%d\"}}",
                   trigger, stop);
    scenario.row_count = ROUNDS * ROWS_A_ROUND;
    uint64_t random = 5;
    for (uint32_t i = 0; i < scenario.row_count; i++) {
        scenario.rows[i] = (struct bed_row){.key = (int32_t)random_below(&random, BED_KEYS),
                                            .value = (uint32_t)random_next(&random)};
    }
    said = (struct said){0};
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &scenario);
}

static void open_writer(struct bed_writer *w)
{
    *w = (struct bed_writer){.engine = &engine, .scenario = &scenario, .who = "a test"};
    bed_engine_start(&engine, &disk.io, ++seed); /* names are never used twice */
    tn_rc rc = bed_open(w);
    CHECK_OK(rc, w->err);
    w->table->spec.compaction_failed = note_failure;
}

/* The rows of one commit, from `first` on. How many were taken; `*rc` says why not all. */
static uint32_t write_round(struct bed_writer *w, uint32_t first, tn_rc *rc)
{
    uint32_t taken = 0;
    *rc = TN_OK;
    while (taken < ROWS_A_ROUND && *rc == TN_OK) {
        *rc = bed_put(w, &scenario.rows[first + taken]);
        taken += *rc == TN_OK;
    }
    struct tn_err kept = w->err;
    tn_rc finished = bed_cut(w, first + taken);
    if (finished == TN_OK) {
        finished = tn_table_finish(w->table, first + taken, &w->err);
    }
    CHECK_OK(finished, w->err);
    scenario.cuts[scenario.cut_count++] = first + taken;
    CHECK(w->told.rows == first + taken);
    w->err = kept;
    return taken;
}

static void check_rows(uint32_t rows)
{
    struct bed_told found;
    bed_engine_start(&engine, &disk.io, 1);
    const char *problem = bed_read_all(&engine, &scenario, &found, false);
    if (problem) {
        FAIL("%s", problem);
    }
    CHECK(found.rows == rows);
}

static uint32_t behind(const struct bed_writer *w, tn_rc *rc)
{
    uint32_t count;
    *rc = tn_table_behind(w->table, &count);
    return count;
}

static void without_memory_for_compaction_rows_go_on_until_there_is_some(void)
{
    make_table(TRIGGER, 100);
    struct bed_writer w;
    open_writer(&w);
    size_t size = w.table->slice.arena.size;
    uint32_t rows = 0;
    tn_rc rc;
    w.table->slice.arena.size = 64;
    for (int i = 0; i < 8; i++) {
        rows += write_round(&w, rows, &rc);
        CHECK_OK(rc, w.err);
    }
    const struct tn_table_counts *counts = tn_table_counts(w.table);
    CHECK(said.count == 1 && said.rc == TN_AGAIN);
    CHECK(behind(&w, &rc) == 1 && rc == TN_UNSUPPORTED);
    CHECK(counts->compactions == 0);
    CHECK(counts->compactions_failed >= 2 && counts->compactions_failed <= 4);
    w.table->slice.arena.size = size;
    for (int i = 0; i < 8; i++) {
        rows += write_round(&w, rows, &rc);
        CHECK_OK(rc, w.err);
    }
    CHECK(counts->compactions > 0);
    CHECK(behind(&w, &rc) == 0 && rc == TN_OK);
    CHECK(said.count == 1);
    bed_close(&w);
    check_rows(rows);
    sim_disk_deinit(&disk);
}

/* Until the bucket takes no more; all that it took is there, and never more runs than one flush
 * adds to what stopped it. */
static uint32_t write_until_refused(struct bed_writer *w, tn_rc *rc)
{
    uint32_t rows = 0;
    do {
        CHECK(rows + ROWS_A_ROUND <= scenario.row_count);
        rows += write_round(w, rows, rc);
    } while (*rc == TN_OK);
    CHECK(strstr(w->err.text, "stop-trigger"));
    CHECK(tn_levels_runs(w->table->buckets[0].levels, NULL, 0) <= STOP + 2);
    return rows;
}

static void at_the_stop_trigger_rows_are_refused_and_those_before_committed(void)
{
    tn_rc rc;
    make_table(TRIGGER, STOP);
    struct bed_writer w;
    open_writer(&w);
    w.table->slice.arena.size = 64;
    uint32_t rows = write_until_refused(&w, &rc);
    CHECK(rc == TN_FULL && said.count == 1);
    bed_close(&w);
    check_rows(rows);
    open_writer(&w); /* a program that starts again and again must not add a run each time */
    w.table->slice.arena.size = 64;
    CHECK(write_round(&w, rows, &rc) == 0 && rc == TN_FULL);
    struct tn_err other = {0};
    rc = tn_err_set(&other, TN_CORRUPT, 0, "damage elsewhere");
    (void)tn_setback_note(&w.table->setbacks, tn_bytes_of("p"), 9, 0, true, rc, &other);
    CHECK(write_round(&w, rows, &rc) == 0 && rc == TN_FULL && !strstr(w.err.text, other.text));
    bed_close(&w);
    open_writer(&w); /* with memory */
    CHECK(w.recovered == rows);
    rows += write_round(&w, rows, &rc);
    CHECK_OK(rc, w.err);
    CHECK(tn_table_counts(w.table)->compactions > 0);
    bed_close(&w);
    check_rows(rows);
    sim_disk_deinit(&disk);
}

static void damaged_files_are_said_and_rows_go_on(void)
{
    tn_rc rc;
    make_table(TRIGGER, STOP);
    struct bed_writer w;
    open_writer(&w);
    uint32_t rows = write_round(&w, 0, &rc);
    const struct tn_level_file *file = w.table->buckets[0].levels->files[0];
    char path[200];
    (void)snprintf(path, sizeof path, "%s%s", w.table->buckets[0].dir, file->name);
    rc = disk.io.vtable->unlink(&disk.io, path, &w.err);
    CHECK_OK(rc, w.err);
    do {
        CHECK(rows + ROWS_A_ROUND <= scenario.row_count);
        rows += write_round(&w, rows, &rc);
    } while (rc == TN_OK);
    CHECK(rc == TN_CORRUPT && strstr(w.err.text, path));
    CHECK(said.count == 1 && said.rc == TN_CORRUPT);
    CHECK(behind(&w, &rc) == 1 && rc == TN_CORRUPT);
    CHECK(w.told.rows == rows);
    bed_close(&w);
    sim_disk_deinit(&disk);
}

/* More buckets fail than are kept in mind: no one is lost from the count. */
static void the_list_of_setbacks_is_bounded(void)
{
    static struct tn_setbacks setbacks;
    struct tn_err err = {0};
    setbacks = (struct tn_setbacks){0};
    for (int32_t i = 0; i < 3 * TN_SETBACKS_MAX; i++) {
        tn_rc rc = i == 0 ? TN_CORRUPT : TN_AGAIN;
        CHECK(tn_setback_note(&setbacks, tn_bytes_of("p"), i, i, false, rc, &err));
        CHECK(!tn_setback_note(&setbacks, tn_bytes_of("p"), i, i, false, rc, &err));
    }
    CHECK(setbacks.count == TN_SETBACKS_MAX);
    CHECK(setbacks.forgotten == 2 * TN_SETBACKS_MAX && setbacks.damage);
    CHECK(tn_setback_of(&setbacks, tn_bytes_of("p"), 3 * TN_SETBACKS_MAX - 1));
    CHECK(!tn_setback_of(&setbacks, tn_bytes_of("q"), 3 * TN_SETBACKS_MAX - 1));
}

static uint32_t asked;

static bool asked_too_often(void *user_data)
{
    (void)user_data;
    return ++asked > TURNS_MAX;
}

/* Rounds until one fails; with so many bytes for commits. */
static tn_rc write_with_commits_of(size_t bytes)
{
    struct bed_writer w;
    make_table(TRIGGER, 100);
    open_writer(&w);
    struct tn_arena *arena = &engine.workers[TN_LANE_SHORT].arena;
    size_t size = arena->size;
    arena->size = arena->used + bytes;
    w.table->spec.stopped = asked_too_often;
    asked = 0;
    tn_rc rc = TN_OK;
    for (uint32_t round = 0; rc == TN_OK && round < 8; round++) {
        for (uint32_t i = 0; i < ROWS_A_ROUND; i++) {
            rc = bed_put(&w, &scenario.rows[round * ROWS_A_ROUND + i]);
            CHECK_OK(rc, w.err);
        }
        rc = tn_table_finish(w.table, (round + 1) * ROWS_A_ROUND, &w.err);
    }
    tn_table_close(w.table);
    arena->size = size;
    sim_disk_deinit(&disk);
    return rc;
}

static void whatever_memory_a_commit_has_the_writer_ends(void)
{
    uint32_t set_back = 0;
    uint32_t failed = 0;
    for (size_t bytes = 1024; bytes < COMMIT_BYTES_MAX; bytes += 256) {
        tn_rc rc = write_with_commits_of(bytes);
        if (rc == TN_CANCELED) {
            FAIL("with %zu bytes for commits a writer goes on for ever", bytes);
        }
        set_back += rc == TN_OK && said.count > 0;
        failed += rc != TN_OK;
    }
    CHECK(set_back > 0 && failed > 0 && write_with_commits_of(COMMIT_BYTES_MAX) == TN_OK);
}

static const struct test tests[] = {
    TEST(whatever_memory_a_commit_has_the_writer_ends),
    TEST(without_memory_for_compaction_rows_go_on_until_there_is_some),
    TEST(at_the_stop_trigger_rows_are_refused_and_those_before_committed),
    TEST(damaged_files_are_said_and_rows_go_on),
    TEST(the_list_of_setbacks_is_bounded),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
