/* One key's row: random tables, keys and snapshots against the fold of the rows; how many files are
 * opened for it; and a table of 100 million rows, whose manifests name 20,000 files. */
#include "read/lookup.h"

#include "commit/live.h"
#include "given.h"
#include "table/bed.h"

static struct bed_engine engine;
static struct sim_disk disk;
static struct bed_reader reader;
static struct tn_snapshot snapshot;
static struct tn_lookup lookup;
static struct tn_err err;

static void open_at(int64_t id)
{
    tn_arena_reset(&engine.own, 0);
    const char *problem = bed_read_open(&engine, &reader);
    CHECK(!problem);
    tn_rc rc = tn_snapshot_read(engine.env.io, BED_ROOT, id, &engine.own, &snapshot, &err);
    CHECK_OK(rc, err);
}

static tn_rc look_up(const struct bed_scenario *s, int64_t key, int32_t partition)
{
    struct tn_value values[2] = {{.as.i64 = s->partitioned ? partition : key}, {.as.i64 = key}};
    struct tn_scan_spec spec = {.root = BED_ROOT,
                                .snapshot = &snapshot,
                                .schema = reader.schema,
                                .options = &reader.options,
                                .schemas = &reader.schemas};
    size_t used = engine.workers[TN_LANE_LONG].arena.used;
    tn_rc rc = tn_lookup(&spec, values, engine.window, BED_WINDOW_SIZE, &engine.own,
                         &engine.workers[TN_LANE_LONG], &lookup, &err);
    CHECK(engine.workers[TN_LANE_LONG].arena.used == used);
    return rc;
}

static void check_key(const struct bed_scenario *s, struct bed_state *state, int64_t key,
                      int32_t partition)
{
    uint32_t slot = bed_slot(s, key, partition);
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = look_up(s, key, partition);
    if (!state->present[slot]) {
        CHECK(rc == TN_ABSENT);
    } else {
        CHECK_OK(rc, err);
        const char *problem = bed_same_row(s, &lookup.projection.layout, lookup.kv.row, state);
        if (problem) {
            FAIL("key %" PRId64 ": %s", key, problem);
        }
    }
    tn_arena_reset(&engine.own, mark);
}

static void check_snapshots(const struct bed_scenario *s)
{
    static struct bed_state state;
    int64_t first;
    int64_t last;
    tn_rc rc = tn_snapshot_earliest(engine.env.io, BED_ROOT, &engine.own, &first, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_latest(engine.env.io, BED_ROOT, &engine.own, &last, &err);
    CHECK_OK(rc, err);
    for (int64_t id = first; id <= last; id++) {
        uint32_t position;
        open_at(id);
        CHECK(!bed_position_of(&snapshot, s, &position));
        bed_fold(s, position, &state);
        for (int64_t key = 0; key <= BED_KEYS; key++) {
            check_key(s, &state, key, 0);
            if (s->partitioned) {
                check_key(s, &state, key, 1);
            }
        }
    }
}

static void a_lookup_finds_what_a_scan_would_say(void)
{
    uint64_t seed = given_number("SEED", 1);
    uint32_t tables = 0;
    for (uint64_t i = 0; tables < 15; i++) {
        static struct bed_scenario s;
        bed_scenario_init(&s, seed * 1000 + i, 8);
        if (!s.keyed) {
            continue;
        }
        sim_disk_init(&disk, BED_DISK_SIZE);
        bed_create(&engine, &disk.io, &s);
        bed_engine_start(&engine, &disk.io, s.seed);
        struct bed_writer w = {.engine = &engine, .scenario = &s, .who = "a test"};
        tn_rc rc = bed_write(&w);
        CHECK_OK(rc, w.err);
        check_snapshots(&s);
        sim_disk_deinit(&disk);
        tables++;
    }
}

/* ---- how many files ---- */

enum { VERSIONS = 9 };

/* One key, a version a commit, nothing compacted. The later, the smaller the sequence field. */
static void make_versions(struct bed_scenario *s, bool sequenced)
{
    *s = (struct bed_scenario){.seed = 3, .buckets = 1, .keyed = true, .sequenced = sequenced};
    (void)snprintf(s->schema, sizeof s->schema, bed_schema_format, "", "\"k\"", 1, "",
                   sequenced ? "\"sequence.field\":\"s\"," : "", "", "1 mb", 5, 8, 30, 1, 30,
                   "8 mb", "16 mb");
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, s);
    bed_engine_start(&engine, &disk.io, s->seed);
    struct bed_writer w = {.engine = &engine, .scenario = s};
    struct tn_table_spec spec = {.name = BED_TABLE, .who = "a test", .identifier = -1};
    tn_rc rc = tn_table_open(&engine.env, &spec, &w.table, &w.err);
    for (uint32_t i = 0; rc == TN_OK && i < VERSIONS; i++) {
        struct bed_row row = {.key = 7, .sequence = (int32_t)(VERSIONS - i), .value = 4 * i + 1};
        rc = bed_put(&w, &row);
        if (rc == TN_OK) {
            rc = tn_table_finish(w.table, i + 1, &w.err);
        }
    }
    CHECK_OK(rc, w.err);
    bed_close(&w);
    open_at(VERSIONS);
}

static void files_too_old_to_win_are_not_opened(void)
{
    static struct bed_scenario s;
    make_versions(&s, false);
    tn_rc rc = look_up(&s, 7, 0);
    CHECK_OK(rc, err);
    CHECK(lookup.file_count == 1 && lookup.kv.sequence == VERSIONS - 1);
    rc = look_up(&s, 6, 0); /* outside of every file's range */
    CHECK(rc == TN_ABSENT && lookup.file_count == 0);
    sim_disk_deinit(&disk);
}

static void with_a_sequence_field_every_version_is_compared(void)
{
    static struct bed_scenario s;
    make_versions(&s, true);
    tn_rc rc = look_up(&s, 7, 0);
    CHECK_OK(rc, err);
    CHECK(lookup.file_count == VERSIONS && lookup.version_count == VERSIONS);
    CHECK(lookup.kv.sequence == 0); /* the first had the largest */
    sim_disk_deinit(&disk);
}

/* Two writers that began at the same snapshot give the same numbers: the file with the larger ones
 * may hold the older version. */
static void numbers_of_a_file_say_nothing_of_each_of_its_rows(void)
{
    static struct bed_engine other;
    static struct bed_scenario s;
    struct bed_engine *engines[] = {&engine, &other};
    struct bed_writer w[2];
    s = (struct bed_scenario){.seed = 4, .buckets = 1, .keyed = true};
    (void)snprintf(s.schema, sizeof s.schema, bed_schema_format, "", "\"k\"", 1, "", "", "", "1 mb",
                   5, 8, 30, 1, 30, "8 mb", "16 mb");
    bed_engine_make(&other);
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &s);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, ".tarn/", &err);
    CHECK_OK(rc, err);
    for (int i = 0; i < 2; i++) {
        struct tn_table_spec spec = {.name = BED_TABLE, .user = i ? "b" : "a", .identifier = 1};
        bed_engine_start(engines[i], &disk.io, 90 + (uint64_t)i);
        w[i] = (struct bed_writer){.engine = engines[i], .scenario = &s};
        rc = tn_table_open(&engines[i]->env, &spec, &w[i].table, &w[i].err);
        CHECK_OK(rc, w[i].err);
    }
    for (int32_t i = 0; i < 20; i++) { /* key 7: number 7 of the one, 0 of the other */
        struct bed_row first = {.key = i, .value = 1};
        struct bed_row second = {.key = i == 0 ? 7 : 20 + i, .value = 2};
        rc = i < 10 ? bed_put(&w[0], &first) : TN_OK;
        CHECK_OK(rc, w[0].err);
        rc = bed_put(&w[1], &second);
        CHECK_OK(rc, w[1].err);
    }
    for (int i = 0; i < 2; i++) {
        rc = tn_table_finish(w[i].table, 1, &w[i].err);
        CHECK_OK(rc, w[i].err);
        bed_close(&w[i]);
    }
    open_at(2);
    rc = look_up(&s, 7, 0);
    CHECK_OK(rc, err);
    CHECK(lookup.version_count == 2 && lookup.kv.sequence == 7);
    bed_engine_free(&other);
    sim_disk_deinit(&disk);
}

/* ---- 100 million rows ---- */

enum {
    FILES = 20000,
    FILE_ROWS = 5000,
    MANIFESTS = 200,
    GONE = 100,  /* manifests of files that came and went, as many as live ones have */
    REAL = 7777, /* the file that is really there */
    REAL_ROWS = 50,
};

static struct tn_entry real;

static tn_rc take_real(void *user, const struct tn_entry *entry, struct tn_err *e)
{
    (void)user;
    bool copied;
    real = *entry;
    real.partition = tn_arena_copy(&engine.own, entry->partition, &copied);
    CHECK(copied);
    return tn_file_meta_copy(&entry->file, &engine.own, &real.file, e);
}

static void write_real_file(const struct bed_scenario *s)
{
    struct bed_writer w = {.engine = &engine, .scenario = s};
    struct tn_table_spec spec = {.name = BED_TABLE, .who = "a test", .identifier = -1};
    tn_rc rc = tn_table_open(&engine.env, &spec, &w.table, &w.err);
    for (int32_t i = 0; rc == TN_OK && i < REAL_ROWS; i++) {
        struct bed_row row = {.key = REAL * FILE_ROWS + i * (FILE_ROWS / REAL_ROWS), .value = 1};
        rc = bed_put(&w, &row);
    }
    if (rc == TN_OK) {
        rc = tn_table_finish(w.table, REAL_ROWS, &w.err);
    }
    CHECK_OK(rc, w.err);
    bed_close(&w);
    open_at(1);
    rc = tn_live_each(BED_ROOT, &snapshot, reader.schema, NULL, &engine.workers[TN_LANE_LONG],
                      take_real, NULL, &err);
    CHECK_OK(rc, err);
}

static struct tn_bytes key_of(int64_t key, unsigned char memory[64])
{
    const struct tn_type type = {.kind = TN_TYPE_BIGINT};
    struct tn_value value = {.as.i64 = key};
    struct tn_buf buf;
    tn_buf_init(&buf, memory, 64);
    tn_values_to_binary(&type, &value, 1, &buf);
    return tn_buf_bytes(&buf);
}

static void add_entry(struct tn_manifest_writer *w, uint32_t file, enum tn_entry_kind kind,
                      const char *prefix)
{
    unsigned char min[64];
    unsigned char max[64];
    char name[64];
    struct tn_entry entry = real;
    bool is_real = file == REAL && kind == TN_ENTRY_ADD && prefix[0] == 'd';
    entry.kind = kind;
    if (!is_real) {
        (void)snprintf(name, sizeof name, "%s-%u.avro", prefix, file);
        entry.file.file_name = name;
        entry.file.row_count = FILE_ROWS;
        entry.file.min_key = key_of((int64_t)file * FILE_ROWS, min);
        entry.file.max_key = key_of((int64_t)file * FILE_ROWS + FILE_ROWS - 1, max);
        entry.file.key_stats.min = entry.file.min_key;
        entry.file.key_stats.max = entry.file.max_key;
    }
    tn_rc rc = tn_manifest_add_entry(w, &entry, &err);
    CHECK_OK(rc, err);
}

static void write_manifest(uint32_t number, struct tn_manifest_writer *list)
{
    static struct tn_manifest_writer w;
    struct tn_manifest_meta meta;
    int64_t size;
    char path[96];
    (void)snprintf(path, sizeof path, BED_ROOT "/manifest/manifest-test-%u", number);
    tn_rc rc = tn_manifest_begin(&w, path, false, reader.schema, TN_CODEC_ID_ZSTANDARD,
                                 &engine.workers[TN_LANE_LONG], &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < FILES / MANIFESTS; i++) {
        uint32_t file = number % MANIFESTS * (FILES / MANIFESTS) + i;
        if (number < MANIFESTS) {
            add_entry(&w, file, TN_ENTRY_ADD, "data");
        } else {
            add_entry(&w, file, TN_ENTRY_ADD, "gone");
            add_entry(&w, file, TN_ENTRY_DELETE, "gone");
        }
    }
    size_t mark = tn_arena_mark(&engine.own);
    rc = tn_manifest_finish(&w, &engine.own, &meta, &size, &err);
    CHECK_OK(rc, err);
    rc = tn_manifest_add_meta(list, &meta, &err);
    CHECK_OK(rc, err);
    tn_arena_reset(&engine.own, mark);
}

static int64_t write_list(const char *name, uint32_t manifests)
{
    static struct tn_manifest_writer list;
    char path[96];
    int64_t size;
    (void)snprintf(path, sizeof path, BED_ROOT "/manifest/%s", name);
    tn_rc rc = tn_manifest_begin(&list, path, true, reader.schema, TN_CODEC_ID_ZSTANDARD,
                                 &engine.workers[TN_LANE_LONG], &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < manifests; i++) {
        write_manifest(i, &list);
    }
    rc = tn_manifest_finish(&list, &engine.own, NULL, &size, &err);
    CHECK_OK(rc, err);
    return size;
}

static void write_large_snapshot(void)
{
    static char text[8192];
    struct tn_buf buf;
    snapshot.id = 2;
    snapshot.base_manifest_list = "manifest-list-test-base";
    snapshot.base_manifest_list_size.value =
        write_list("manifest-list-test-base", MANIFESTS + GONE);
    snapshot.delta_manifest_list = "manifest-list-test-delta";
    snapshot.delta_manifest_list_size.value = write_list("manifest-list-test-delta", 0);
    tn_buf_init(&buf, text, sizeof text);
    tn_snapshot_encode(&snapshot, &buf);
    CHECK(!buf.overflow);
    tn_rc rc =
        tn_io_write_new(engine.env.io, BED_ROOT "/snapshot/snapshot-2", tn_buf_bytes(&buf), &err);
    CHECK_OK(rc, err);
}

static void a_hundred_million_rows_fit_small_memory(void)
{
    static struct bed_scenario s;
    s = (struct bed_scenario){.seed = 5, .buckets = 1, .keyed = true};
    (void)snprintf(s.schema, sizeof s.schema, bed_schema_format, "", "\"k\"", 1, "", "", "", "1 mb",
                   5, 8, 30, 1, 30, "8 mb", "16 mb");
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &s);
    bed_engine_start(&engine, &disk.io, s.seed);
    write_real_file(&s);
    write_large_snapshot();
    open_at(2);
    tn_rc rc = look_up(&s, (int64_t)REAL * FILE_ROWS + FILE_ROWS / REAL_ROWS, 0);
    CHECK_OK(rc, err);
    CHECK(lookup.file_count == 1);
    rc = look_up(&s, (int64_t)REAL * FILE_ROWS + 1, 0);
    CHECK(rc == TN_ABSENT && lookup.file_count == 1);
    rc = look_up(&s, (int64_t)FILES * FILE_ROWS, 0);
    CHECK(rc == TN_ABSENT && lookup.file_count == 0);
    rc = look_up(&s, 12345, 0); /* of all files only its own is looked for, which isn't there */
    CHECK(rc != TN_OK && strstr(err.text, "data-2.avro"));
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(a_lookup_finds_what_a_scan_would_say),
    TEST(files_too_old_to_win_are_not_opened),
    TEST(with_a_sequence_field_every_version_is_compared),
    TEST(numbers_of_a_file_say_nothing_of_each_of_its_rows),
    TEST(a_hundred_million_rows_fit_small_memory),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
