/* What a table says of itself: folders in tiny windows give each name once, in order; a census in a
 * tiny window sums up what the manifests say; each view has the rows that the table has. */
#include "table/inspect.h"

#include "bed.h"
#include "commit/live.h"
#include "table/census.h"
#include "table/folder.h"

static struct bed_engine engine;
static struct sim_disk disk;
static struct bed_reader reader;
static struct tn_snapshot snapshot;
static struct tn_err err;

/* ---- folders ---- */

enum { NAMES = 500 };

struct seen {
    char last[64];
    uint32_t count;
    uint32_t stop_at;
};

static tn_rc see(void *user, const char *name, struct tn_err *e)
{
    struct seen *seen = user;
    CHECK(strlen(name) < sizeof seen->last);
    CHECK(seen->count == 0 || strcmp(seen->last, name) < 0);
    memcpy(seen->last, name, strlen(name) + 1);
    seen->count++;
    return seen->count == seen->stop_at ? tn_err_set(e, TN_CANCELED, 0, "enough") : TN_OK;
}

static void make_names(struct tn_io *io, uint64_t seed)
{
    tn_rc rc = io->vtable->make_dir(io, "f/", &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < NAMES; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "f/tag-%" PRIx64 "-%u.x", random_next(&seed), i);
        rc = tn_io_write_new(io, path, tn_bytes_of("1"), &err);
        CHECK_OK(rc, err);
    }
    static const char *const others[] = {"f/tag-", "f/tag-.x", "f/tag-a", "f/tog-a.x", "f/.x"};
    for (size_t i = 0; i < COUNT(others); i++) {
        rc = tn_io_write_new(io, others[i], tn_bytes_of("1"), &err);
        CHECK_OK(rc, err);
    }
    rc = io->vtable->make_dir(io, "f/tag-dir.x/", &err);
    CHECK_OK(rc, err);
}

static void a_folder_gives_each_name_once_in_order(void)
{
    sim_disk_init(&disk, BED_DISK_SIZE);
    make_names(&disk.io, 17);
    struct tn_folder folder = {&disk.io, "f/", "tag-", ".x", false};
    static const size_t windows[] = {2048, 4096, 65536};
    for (size_t i = 0; i < COUNT(windows); i++) {
        struct seen seen = {.count = 0};
        tn_rc rc = tn_folder_each(&folder, engine.window, windows[i], see, &seen, &err);
        CHECK_OK(rc, err);
        CHECK(seen.count == NAMES);
    }
    struct seen seen = {.stop_at = 3};
    tn_rc rc = tn_folder_each(&folder, engine.window, 4096, see, &seen, &err);
    CHECK(rc == TN_CANCELED && seen.count == 3);
    folder.folders = true;
    seen = (struct seen){.count = 0};
    rc = tn_folder_each(&folder, engine.window, 4096, see, &seen, &err);
    CHECK_OK(rc, err);
    CHECK(seen.count == 1 && strcmp(seen.last, "dir") == 0);
    folder.path = "nowhere/";
    seen = (struct seen){.count = 0};
    rc = tn_folder_each(&folder, engine.window, 4096, see, &seen, &err);
    CHECK_OK(rc, err);
    CHECK(seen.count == 0);
    sim_disk_deinit(&disk);
}

/* ---- a table of many buckets ---- */

static void write_table(struct bed_scenario *s, uint64_t seed, int32_t buckets, uint32_t rows)
{
    uint64_t random = seed;
    bed_scenario_init(s, seed, 6);
    s->keyed = true;
    s->partitioned = true;
    s->sequenced = false;
    s->buckets = buckets;
    bed_scenario_options(s, &random);
    s->row_count = rows;
    for (uint32_t i = 0; i < s->cut_count; i++) {
        s->cuts[i] = rows * (i + 1) / s->cut_count;
    }
    for (uint32_t i = 0; i < rows; i++) {
        s->rows[i] = (struct bed_row){.key = (int32_t)random_below(&random, rows),
                                      .partition = (int32_t)random_below(&random, 2),
                                      .value = i};
    }
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, s);
    bed_engine_start(&engine, &disk.io, s->seed);
    struct bed_writer w = {.engine = &engine, .scenario = s, .who = "a test"};
    tn_rc rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    tn_arena_reset(&engine.own, 0);
    const char *problem = bed_read_open(&engine, &reader);
    CHECK(!problem);
    int64_t id;
    rc = tn_snapshot_latest(engine.env.io, BED_ROOT, &engine.own, &id, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_read(engine.env.io, BED_ROOT, id, &engine.own, &snapshot, &err);
    CHECK_OK(rc, err);
}

struct sums {
    int64_t rows;
    int64_t size;
    int64_t files;
};

static tn_rc add_entry(void *user, const struct tn_entry *entry, struct tn_err *e)
{
    (void)e;
    struct sums *sums = user;
    sums->rows += entry->file.row_count;
    sums->size += entry->file.file_size;
    sums->files++;
    return TN_OK;
}

static struct sums sums_of_manifests(void)
{
    struct sums sums = {0};
    tn_rc rc = tn_live_each(BED_ROOT, &snapshot, reader.schema, NULL, &engine.workers[TN_LANE_LONG],
                            add_entry, &sums, &err);
    CHECK_OK(rc, err);
    return sums;
}

/* Buckets ascend; what they hold is summed up. Returns how many there are. */
static uint32_t sums_of_census(size_t window_size, struct sums *sums)
{
    struct tn_census census;
    unsigned char last[64];
    size_t last_size = 0;
    int32_t last_number = 0;
    uint32_t count = 0;
    tn_rc rc;
    const struct tn_census_bucket *bucket;
    *sums = (struct sums){0};
    tn_census_open(&census, BED_ROOT, &snapshot, reader.schema, engine.window, window_size,
                   &engine.workers[TN_LANE_LONG]);
    while ((rc = tn_census_next(&census, &bucket, &err)) == TN_OK) {
        int c = count == 0
                    ? 1
                    : tn_bytes_compare(bucket->partition, (struct tn_bytes){last, last_size});
        CHECK(c > 0 || (c == 0 && bucket->number > last_number));
        CHECK(bucket->partition.size <= sizeof last && bucket->file_count > 0);
        memcpy(last, bucket->partition.data, bucket->partition.size);
        last_size = bucket->partition.size;
        last_number = bucket->number;
        sums->rows += bucket->row_count;
        sums->size += bucket->file_size;
        sums->files += bucket->file_count;
        count++;
    }
    CHECK(rc == TN_ABSENT);
    return count;
}

static void a_census_is_the_same_in_any_window(void)
{
    static struct bed_scenario s;
    write_table(&s, 11, 40, 400);
    struct sums want = sums_of_manifests();
    struct sums sums;
    uint32_t count = sums_of_census(BED_WINDOW_SIZE, &sums);
    CHECK(count > 60 && memcmp(&sums, &want, sizeof sums) == 0);
    for (size_t size = 2048; size < 16384; size += 1536) {
        CHECK(sums_of_census(size, &sums) == count);
        CHECK(memcmp(&sums, &want, sizeof sums) == 0);
    }
    sim_disk_deinit(&disk);
}

/* ---- views ---- */

struct view_rows {
    uint32_t columns;
    uint32_t count;
    int64_t sums[20]; /* of the plain cells of each column */
};

static tn_rc count_row(void *user, const struct tn_view_cell *cells, struct tn_err *e)
{
    (void)e;
    struct view_rows *rows = user;
    for (uint32_t i = 0; i < rows->columns; i++) {
        char text[64];
        CHECK(cells[i].null || cells[i].text.data);
        if (cells[i].plain && !cells[i].null) {
            CHECK(cells[i].text.size < sizeof text);
            memcpy(text, cells[i].text.data, cells[i].text.size);
            text[cells[i].text.size] = 0;
            rows->sums[i] += strtoll(text, NULL, 10);
        }
    }
    rows->count++;
    return TN_OK;
}

static struct view_rows view(const char *name, bool empty)
{
    struct tn_inspect inspect = {.root = BED_ROOT,
                                 .snapshot = empty ? NULL : &snapshot,
                                 .schema = reader.schema,
                                 .options = &reader.options,
                                 .schemas = &reader.schemas,
                                 .worker = &engine.workers[TN_LANE_LONG],
                                 .arena = &engine.own,
                                 .window = engine.window,
                                 .window_size = 4096};
    struct view_rows rows = {0};
    const struct tn_view *found = tn_view_find(name);
    CHECK(found);
    (void)tn_view_columns(found, &rows.columns);
    size_t mark = tn_arena_mark(&engine.own);
    tn_rc rc = tn_view_each(found, &inspect, count_row, &rows, &err);
    if (rc != TN_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, err.text);
    }
    CHECK_OK(rc, err);
    tn_arena_reset(&engine.own, mark);
    return rows;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", dir, name);
    tn_rc rc = disk.io.vtable->make_dir(&disk.io, dir, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(&disk.io, path, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static void views_say_what_is_there(void)
{
    static struct bed_scenario s;
    write_table(&s, 12, 3, 300);
    struct sums want = sums_of_manifests();
    struct view_rows files = view("files", false);
    CHECK(files.count == want.files && files.sums[6] == want.rows && files.sums[7] == want.size);
    struct view_rows buckets = view("buckets", false);
    CHECK(buckets.count == 6 && buckets.sums[2] == want.rows && buckets.sums[4] == want.files);
    struct view_rows partitions = view("partitions", false);
    CHECK(partitions.count == 2 && partitions.sums[1] == want.rows);
    CHECK(partitions.sums[2] == want.size && partitions.sums[3] == want.files);
    CHECK(view("schema", false).count == 4 && view("schemas", false).count == 1);
    CHECK(view("options", false).count == reader.schema->option_count);
    CHECK(view("manifests", false).count > 0);
    int64_t first;
    tn_rc rc = tn_snapshot_earliest(&disk.io, BED_ROOT, &engine.own, &first, &err);
    CHECK_OK(rc, err);
    CHECK(view("snapshots", false).count == snapshot.id - first + 1);
    sim_disk_deinit(&disk);
}

static const char tag_text[] =
    "{\"version\":3,\"id\":%d,\"schemaId\":0,\"baseManifestList\":\"b\",\"deltaManifestList\":"
    "\"d\","
    "\"commitUser\":\"u\",\"commitIdentifier\":1,\"commitKind\":\"APPEND\",\"timeMillis\":1,"
    "\"tagCreateTime\":[ 2026, 11, 29, 14, 40 ],\"tagTimeRetained\":86400.000000000}";

static void tags_branches_and_consumers_are_listed_by_name(void)
{
    static struct bed_scenario s;
    write_table(&s, 13, 1, 20);
    for (int i = 0; i < 100; i++) {
        char name[32];
        char text[512];
        (void)snprintf(name, sizeof name, "tag-t%03d", i);
        (void)snprintf(text, sizeof text, tag_text, i);
        put_file(BED_ROOT "/tag/", name, text);
    }
    put_file(BED_ROOT "/consumer/", "consumer-c", "{\"nextSnapshot\":12}");
    put_file(BED_ROOT "/branch/branch-b/schema/", "schema-0", "{}");
    struct view_rows tags = view("tags", false);
    CHECK(tags.count == 100 && tags.sums[1] == 4950);
    struct view_rows consumers = view("consumers", true);
    CHECK(consumers.count >= 1 && consumers.sums[1] >= 12);
    CHECK(view("branches", true).count == 1);
    sim_disk_deinit(&disk);
}

static void a_table_without_a_snapshot_has_views_too(void)
{
    static struct bed_scenario s;
    bed_scenario_init(&s, 14, 1);
    sim_disk_init(&disk, BED_DISK_SIZE);
    bed_create(&engine, &disk.io, &s);
    bed_engine_start(&engine, &disk.io, s.seed);
    const char *problem = bed_read_open(&engine, &reader);
    CHECK(!problem);
    for (uint32_t i = 0; i < tn_view_count; i++) {
        struct view_rows rows = view(tn_view_names[i], true);
        bool said = strcmp(tn_view_names[i], "schema") == 0 ||
                    strcmp(tn_view_names[i], "schemas") == 0 ||
                    strcmp(tn_view_names[i], "options") == 0;
        CHECK(said == (rows.count > 0));
    }
    CHECK(!tn_view_find("file"));
    sim_disk_deinit(&disk);
}

static const struct test tests[] = {
    TEST(a_folder_gives_each_name_once_in_order),
    TEST(a_census_is_the_same_in_any_window),
    TEST(views_say_what_is_there),
    TEST(tags_branches_and_consumers_are_listed_by_name),
    TEST(a_table_without_a_snapshot_has_views_too),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), &engine, 1);
}
