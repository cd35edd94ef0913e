/* Plans of random snapshots: with any window each bucket comes once, in order, with exactly its
 * live files; a predicate leaves out what it may, and never a file that could hold a row. */
#include "read/plan.h"

#include "commit/bed.h"

enum {
    FILES_MAX = 400,
    MANIFEST_ENTRIES = 37,
    WINDOW_MAX = 256 << 10,
    BUCKETS = 5,
    SCRATCH_SIZE = 64 << 10,
};

static struct bed bed;
static struct tn_snapshot snapshot;
static const uint32_t key_column[] = {1};
static struct tn_value key_values[2];
static struct tn_key_types keys = {NULL, 1, &key_values[0], &key_values[1]};

struct file {
    struct tn_entry entry;
    struct bed_file of;
    bool live;
};
static struct file files[FILES_MAX];
static uint32_t file_count;

static const char *const partitions[] = {NULL, "", "2025-12-01", "2025-12-02", "a", "zz"};

/* ---- a snapshot's manifests ---- */

static struct tn_manifest_meta write_manifest(const struct tn_entry *entries, uint32_t count,
                                              const char *name)
{
    struct tn_manifest_writer writer;
    struct tn_manifest_meta meta;
    struct tn_err err;
    int64_t size;
    const char *path = tn_name_in(&bed.own, ROOT, TN_DIR_MANIFEST, name);
    tn_rc rc = tn_manifest_begin(&writer, path, false, &bed.schema, TN_CODEC_ID_ZSTANDARD,
                                 &bed.worker, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < count; i++) {
        rc = tn_manifest_add_entry(&writer, &entries[i], &err);
        CHECK_OK(rc, err);
    }
    rc = tn_manifest_finish(&writer, &bed.own, &meta, &size, &err);
    CHECK_OK(rc, err);
    return meta;
}

static int64_t write_list(const struct tn_manifest_meta *metas, uint32_t count, const char *name)
{
    struct tn_manifest_writer writer;
    struct tn_err err;
    int64_t size;
    const char *path = tn_name_in(&bed.own, ROOT, TN_DIR_MANIFEST, name);
    tn_rc rc = tn_manifest_begin(&writer, path, true, &bed.schema, TN_CODEC_ID_ZSTANDARD,
                                 &bed.worker, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < count; i++) {
        rc = tn_manifest_add_meta(&writer, &metas[i], &err);
        CHECK_OK(rc, err);
    }
    rc = tn_manifest_finish(&writer, &bed.own, NULL, &size, &err);
    CHECK_OK(rc, err);
    return size;
}

static void draw_file(uint32_t i, uint64_t *seed, bool partitioned)
{
    char name[32];
    (void)snprintf(name, sizeof name, "data-%u.avro", i);
    int64_t first = (int64_t)random_below(seed, 1000) - 100;
    files[i].of = (struct bed_file){
        .dt = partitioned ? partitions[random_below(seed, COUNT(partitions))] : NULL,
        .bucket = (int32_t)random_below(seed, BUCKETS),
        .level = (int32_t)random_below(seed, 3),
        .first = first,
        .last = first + random_below(seed, 200),
        .rows = 10,
    };
    files[i].entry = bed_entry(&bed, name, files[i].of);
    files[i].entry.total_buckets = BUCKETS;
    files[i].live = true;
}

/* Files are added in the order of their number; later some are deleted. */
static void make_snapshot(uint64_t *seed, bool partitioned)
{
    static struct tn_entry entries[2 * FILES_MAX];
    static struct tn_manifest_meta metas[2 * FILES_MAX / MANIFEST_ENTRIES + 2];
    bed_init(&bed, 1, partitioned);
    struct tn_err err;
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/manifest", &err);
    CHECK_OK(rc, err);
    bed.options.bucket_key = (struct tn_columns){key_column, 1};
    keys.types = &bed.fields[1].type;
    file_count = random_below(seed, FILES_MAX);
    uint32_t count = 0;
    for (uint32_t i = 0; i < file_count; i++) {
        draw_file(i, seed, partitioned);
        entries[count++] = files[i].entry;
        uint32_t old = random_below(seed, i + 1);
        if (files[old].live && random_below(seed, 3) == 0) {
            files[old].live = false;
            entries[count] = files[old].entry;
            entries[count++].kind = TN_ENTRY_DELETE;
        }
    }
    uint32_t meta_count = 0;
    for (uint32_t at = 0; at < count; at += MANIFEST_ENTRIES) {
        uint32_t size = count - at < MANIFEST_ENTRIES ? count - at : MANIFEST_ENTRIES;
        char name[32];
        (void)snprintf(name, sizeof name, "manifest-%u", meta_count);
        metas[meta_count++] = write_manifest(entries + at, size, name);
    }
    uint32_t base = random_below(seed, meta_count + 1);
    snapshot = (struct tn_snapshot){.base_manifest_list = "list-base",
                                    .delta_manifest_list = "list-delta"};
    snapshot.base_manifest_list_size.value = write_list(metas, base, "list-base");
    snapshot.base_manifest_list_size.present = true;
    snapshot.delta_manifest_list_size.value =
        write_list(metas + base, meta_count - base, "list-delta");
    snapshot.delta_manifest_list_size.present = true;
}

/* ---- plans ---- */

static unsigned char *window; /* malloc's, for ASan */

/* How many live files of the model are in a bucket. */
static uint32_t files_of(struct tn_bytes partition, int32_t bucket)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < file_count; i++) {
        count += files[i].live && files[i].of.bucket == bucket &&
                 tn_bytes_equal(files[i].entry.partition, partition);
    }
    return count;
}

static uint32_t largest_bucket(void)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < file_count; i++) {
        uint32_t count = files_of(files[i].entry.partition, files[i].of.bucket);
        most = count > most ? count : most;
    }
    return most;
}

static struct file *file_named(const char *name)
{
    uint32_t number = (uint32_t)strtoul(name + strlen("data-"), NULL, 10);
    CHECK(number < file_count);
    return &files[number];
}

struct seen {
    uint32_t buckets;
    uint32_t files;
    uint32_t passes;
    bool has[FILES_MAX];
};

static void check_bucket(const struct tn_plan_bucket *bucket, const struct tn_plan_bucket *before,
                         struct seen *seen)
{
    CHECK(bucket->file_count > 0);
    CHECK(bucket->total_buckets == BUCKETS);
    if (before->file_count > 0) {
        int c = tn_bytes_compare(before->partition, bucket->partition);
        CHECK(c < 0 || (c == 0 && before->number < bucket->number));
    }
    for (uint32_t i = 0; i < bucket->file_count; i++) {
        struct file *file = file_named(bucket->files[i]->name);
        CHECK(file->live && !seen->has[file - files]);
        CHECK(file->of.bucket == bucket->number && file->of.level == bucket->files[i]->level);
        CHECK(tn_bytes_equal(file->entry.partition, bucket->partition));
        seen->has[file - files] = true;
        seen->files++;
    }
    seen->buckets++;
}

static tn_rc run_plan(const struct tn_predicate *predicate, size_t window_size, struct seen *seen,
                      struct tn_err *err)
{
    static struct tn_plan plan;
    static unsigned char scratch[SCRATCH_SIZE];
    struct tn_arena arena;
    tn_arena_init(&arena, scratch, sizeof scratch);
    struct tn_plan_spec spec = {.root = ROOT,
                                .snapshot = &snapshot,
                                .schema = &bed.schema,
                                .options = &bed.options,
                                .predicate = predicate,
                                .keys = &keys};
    *seen = (struct seen){0};
    size_t mark = tn_arena_mark(&bed.worker.arena);
    tn_rc rc = tn_plan_open(&plan, &spec, window, window_size, &arena, &bed.worker, err);
    CHECK_OK(rc, *err);
    struct tn_plan_bucket before = {0};
    unsigned char partition[64];
    for (;;) {
        struct tn_plan_bucket *bucket;
        rc = tn_plan_next(&plan, &bucket, err);
        CHECK(tn_arena_mark(&bed.worker.arena) == mark);
        if (rc != TN_OK) {
            break;
        }
        check_bucket(bucket, &before, seen);
        before = *bucket; /* the bucket itself is gone with the next call */
        CHECK(bucket->partition.size <= sizeof partition);
        memcpy(partition, bucket->partition.data, bucket->partition.size);
        before.partition.data = partition;
    }
    seen->passes = plan.passes;
    struct tn_plan_bucket *none;
    CHECK(rc == TN_AGAIN || tn_plan_next(&plan, &none, err) == rc); /* the end stays the end */
    return rc;
}

static void a_window_of_any_size_yields_each_bucket_once(void)
{
    uint32_t many_passes = 0;
    uint32_t refused = 0;
    for (uint64_t round = 0; round < 12; round++) {
        uint64_t seed = round;
        make_snapshot(&seed, random_below(&seed, 4) > 0);
        uint32_t live = 0;
        for (uint32_t i = 0; i < file_count; i++) {
            live += files[i].live;
        }
        static const size_t sizes[] = {1024, 2048, 4096, 6000, 10000, 16384, 40000, WINDOW_MAX};
        for (uint32_t i = 0; i < COUNT(sizes); i++) {
            static struct seen seen;
            struct tn_err err = {0};
            tn_rc rc = run_plan(NULL, sizes[i], &seen, &err);
            if (rc == TN_AGAIN) { /* only where the largest bucket is at fault */
                CHECK(sizes[i] < 2048 + 500 * largest_bucket());
                refused++;
                continue;
            }
            CHECK(rc == TN_ABSENT);
            CHECK(seen.files == live);
            many_passes += seen.passes > 3;
            CHECK(i < COUNT(sizes) - 1 || seen.passes == 1);
        }
        bed_deinit(&bed);
    }
    CHECK(many_passes > 6);
    CHECK(refused > 1);
}

/* Two buckets of equal files: a window that one fits is enough, whatever it ends at when the other
 * one comes. */
static void a_window_for_one_bucket_is_enough(void)
{
    enum { FILES = 30 };
    bed_init(&bed, 1, false);
    keys.types = &bed.fields[1].type;
    struct tn_err err = {0};
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/manifest", &err);
    CHECK_OK(rc, err);
    static struct tn_entry entries[FILES];
    for (file_count = 0; file_count < FILES; file_count++) {
        char name[32];
        struct file *file = &files[file_count];
        (void)snprintf(name, sizeof name, "data-%u.avro", file_count);
        *file = (struct file){.of = {.bucket = (int32_t)file_count / (FILES / 2), .rows = 1},
                              .live = true};
        file->entry = bed_entry(&bed, name, file->of);
        file->entry.total_buckets = BUCKETS;
        entries[file_count] = file->entry;
    }
    struct tn_manifest_meta meta = write_manifest(entries, FILES, "manifest-0");
    snapshot = (struct tn_snapshot){.base_manifest_list = "list-base",
                                    .delta_manifest_list = "list-delta"};
    (void)write_list(&meta, 1, "list-base");
    (void)write_list(NULL, 0, "list-delta");
    bool fits = false;
    uint32_t two_passes = 0;
    for (size_t size = 1024; size < 16384; size += 16) {
        static struct seen seen;
        rc = run_plan(NULL, size, &seen, &err);
        CHECK(rc == TN_ABSENT || (rc == TN_AGAIN && !fits));
        CHECK(rc == TN_AGAIN || seen.files == FILES);
        fits = rc == TN_ABSENT;
        two_passes += seen.passes == 2;
    }
    CHECK(fits && two_passes > 100);
    bed_deinit(&bed);
}

/* ---- predicates ---- */

static const char *const predicates[] = {
    "k = 77",
    "k >= 500",
    "k < 0 and v = 'x'",
    "dt = '2025-12-01'",
    "dt is null",
    "dt is not null and k = 5",
    "dt in ('a', 'zz') and k between 10 and 20",
    "v = 'nothing prunes by this'",
    "k = 3 or dt = 'a'",
    "not (k > 100)",
};

/* Whether a row of this file, with this key, may match: v is anything. */
static bool key_may_match(const struct tn_predicate *predicate, const struct file *file, int64_t k)
{
    struct tn_bounds bounds[3] = {{.known = true}, {.known = true}, {.known = false}};
    bounds[0].has_range = file->of.dt != NULL;
    bounds[0].null_count = file->of.dt ? 0 : 1;
    if (file->of.dt) {
        bounds[0].min.as.bytes = tn_bytes_of(file->of.dt);
        bounds[0].max = bounds[0].min;
    }
    bounds[1].has_range = true;
    bounds[1].min.as.i64 = k;
    bounds[1].max.as.i64 = k;
    return tn_predicate_may_match(predicate, bounds, 1);
}

static int32_t bucket_of(int64_t k)
{
    static unsigned char memory[4096];
    struct tn_arena arena;
    struct tn_row_layout layout;
    struct tn_err err;
    const char *name = "k";
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_row_layout_init(&layout, &name, &bed.fields[1].type, 1, &arena, &err);
    CHECK_OK(rc, err);
    unsigned char data[64];
    unsigned char binary[64];
    struct tn_value value = {.as.i64 = k};
    struct tn_row row = {data, tn_row_pack(&layout, &value, data)};
    struct tn_buf buf;
    tn_buf_init(&buf, binary, sizeof binary);
    static const uint32_t first[] = {0};
    int32_t bucket;
    rc = tn_row_bucket(&layout, (struct tn_columns){first, 1}, row, BUCKETS, &buf, &bucket, &err);
    CHECK_OK(rc, err);
    return bucket;
}

static void a_predicate_prunes_and_loses_nothing(void)
{
    uint32_t pruned = 0;
    for (uint64_t round = 0; round < 6; round++) {
        uint64_t seed = round + 100;
        make_snapshot(&seed, true);
        for (uint32_t p = 0; p < COUNT(predicates); p++) {
            struct tn_predicate *predicate;
            struct tn_err err = {0};
            tn_rc rc = tn_predicate_parse(predicates[p], &bed.schema, &bed.own, &predicate, &err);
            CHECK_OK(rc, err);
            static struct seen seen;
            rc = run_plan(predicate, p % 2 == 0 ? 20000 : WINDOW_MAX, &seen, &err);
            if (rc == TN_AGAIN) {
                continue;
            }
            CHECK(rc == TN_ABSENT);
            for (uint32_t i = 0; i < file_count; i++) {
                const struct file *file = &files[i];
                bool must = false;
                for (int64_t k = file->of.first; file->live && k <= file->of.last; k++) {
                    must = must ||
                           (bucket_of(k) == file->of.bucket && key_may_match(predicate, file, k));
                }
                CHECK(seen.has[i] || !must);
                pruned += file->live && !seen.has[i];
            }
        }
        bed_deinit(&bed);
    }
    CHECK(pruned > 300);
}

/* An error in the middle of a pass must not be followed by half a bucket. */
static void an_error_is_not_followed_by_part_of_a_bucket(void)
{
    for (uint64_t round = 0; round < 10; round++) {
        uint64_t seed = round + 200;
        while (make_snapshot(&seed, true), file_count < 2 * MANIFEST_ENTRIES) {
            bed_deinit(&bed);
        }
        struct tn_err err = {0};
        tn_rc rc = bed.disk.io.vtable->unlink(&bed.disk.io, ROOT "/manifest/manifest-1", &err);
        CHECK_OK(rc, err);
        static struct seen seen;
        rc = run_plan(NULL, WINDOW_MAX, &seen, &err);
        CHECK(rc != TN_OK && rc != TN_ABSENT);
        CHECK(seen.files == 0);
        bed_deinit(&bed);
    }
}

static void a_key_that_is_none_is_corrupt(void)
{
    uint64_t seed = 9;
    make_snapshot(&seed, true);
    struct tn_entry entry = bed_entry(&bed, "data-0.avro", (struct bed_file){.dt = "a"});
    entry.total_buckets = BUCKETS;
    entry.file.min_key = tn_bytes_of("none");
    struct tn_manifest_meta meta = write_manifest(&entry, 1, "manifest-bad");
    snapshot.base_manifest_list = "list-bad";
    snapshot.base_manifest_list_size.value = write_list(&meta, 1, "list-bad");
    static struct seen seen;
    struct tn_err err = {0};
    tn_rc rc = run_plan(NULL, WINDOW_MAX, &seen, &err);
    CHECK(rc == TN_CORRUPT);
    CHECK(strstr(err.text, "data-0.avro") != NULL);
    bed_deinit(&bed);
}

static const struct test tests[] = {
    TEST(a_window_of_any_size_yields_each_bucket_once),
    TEST(a_window_for_one_bucket_is_enough),
    TEST(a_predicate_prunes_and_loses_nothing),
    TEST(an_error_is_not_followed_by_part_of_a_bucket),
    TEST(a_key_that_is_none_is_corrupt),
};

int main(int argc, char **argv)
{
    window = malloc(WINDOW_MAX);
    return run_tests(argc, argv, tests, COUNT(tests));
}
