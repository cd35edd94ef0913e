/* Manifests come back as they were written, with the statistics that a model counts; golden ones of
 * Java and pypaimon are read; damaged ones are refused; live files are those of a model. */
#include "bed.h"
#include "commit/live.h"
#include "commit/manifest.h"

enum { ENTRIES_MAX = 3000 };

static const char *const partitions[] = {NULL, "2024-01-01", "2024-01-02", "a", "", "\xe4\xb8\xad"};

static void make_manifest_folder(struct bed *bed)
{
    struct tn_err err;
    tn_rc rc = bed->disk.io.vtable->make_dir(&bed->disk.io, ROOT "/manifest", &err);
    CHECK_OK(rc, err);
}

static __attribute__((noinline)) struct tn_entry random_entry(struct bed *bed, uint64_t *seed,
                                                              uint32_t number)
{
    char name[40];
    int64_t key = random_below(seed, 1000);
    (void)snprintf(name, sizeof name, "data-%u.avro", (unsigned)number);
    struct bed_file file = {.dt = partitions[random_below(seed, COUNT(partitions))],
                            .bucket = (int32_t)random_below(seed, 5),
                            .level = (int32_t)random_below(seed, 6),
                            .first = key,
                            .last = key + random_below(seed, 100),
                            .rows = random_below(seed, 1000)};
    struct tn_entry entry = bed_entry(bed, name, file);
    entry.kind = random_below(seed, 3) == 0 ? TN_ENTRY_DELETE : TN_ENTRY_ADD;
    entry.file.schema_id = random_below(seed, 4);
    return entry;
}

static __attribute__((noinline)) void check_same(const struct tn_entry *a, const struct tn_entry *b)
{
    CHECK(a->kind == b->kind && a->bucket == b->bucket && a->total_buckets == b->total_buckets);
    CHECK(tn_bytes_equal(a->partition, b->partition));
    CHECK(strcmp(a->file.file_name, b->file.file_name) == 0);
    CHECK(a->file.level == b->file.level && a->file.row_count == b->file.row_count);
    CHECK(tn_bytes_equal(a->file.min_key, b->file.min_key));
    CHECK(tn_bytes_equal(a->file.max_key, b->file.max_key));
    CHECK(a->file.schema_id == b->file.schema_id);
}

/* The order of the test's partitions, as unsigned bytes. */
static int compare_text(const char *a, const char *b)
{
    return tn_bytes_compare(tn_bytes_of(a), tn_bytes_of(b));
}

/* Counts by hand what the writer says of the entries. */
static __attribute__((noinline)) void check_meta(struct bed *bed,
                                                 const struct tn_manifest_meta *meta,
                                                 const struct tn_entry *entries,
                                                 const char *const *dts, uint32_t count)
{
    struct tn_manifest_meta want = {.min_bucket.value = INT32_MAX, .min_level.value = INT32_MAX};
    const char *min = NULL;
    const char *max = NULL;
    int64_t nulls = 0;
    want.max_bucket.value = want.max_level.value = INT32_MIN;
    for (uint32_t i = 0; i < count; i++) {
        const struct tn_entry *e = &entries[i];
        *(e->kind == TN_ENTRY_ADD ? &want.added_count : &want.deleted_count) += 1;
        want.min_bucket.value =
            e->bucket < want.min_bucket.value ? e->bucket : want.min_bucket.value;
        want.max_bucket.value =
            e->bucket > want.max_bucket.value ? e->bucket : want.max_bucket.value;
        want.min_level.value =
            e->file.level < want.min_level.value ? e->file.level : want.min_level.value;
        want.max_level.value =
            e->file.level > want.max_level.value ? e->file.level : want.max_level.value;
        want.schema_id = e->file.schema_id > want.schema_id ? e->file.schema_id : want.schema_id;
        nulls += dts[i] == NULL;
        min = dts[i] && (!min || compare_text(dts[i], min) < 0) ? dts[i] : min;
        max = dts[i] && (!max || compare_text(dts[i], max) > 0) ? dts[i] : max;
    }
    CHECK(meta->added_count == want.added_count && meta->deleted_count == want.deleted_count);
    CHECK(meta->min_bucket.value == want.min_bucket.value);
    CHECK(meta->max_bucket.value == want.max_bucket.value);
    CHECK(meta->min_level.value == want.min_level.value);
    CHECK(meta->max_level.value == want.max_level.value);
    CHECK(meta->schema_id == want.schema_id);
    CHECK(meta->partition_stats.null_count_count == 1);
    CHECK(meta->partition_stats.null_counts[0] == nulls);
    CHECK(tn_bytes_equal(meta->partition_stats.min, bed_partition(bed, min)));
    CHECK(tn_bytes_equal(meta->partition_stats.max, bed_partition(bed, max)));
}

static __attribute__((noinline)) void make_entries(struct bed *bed, uint64_t seed,
                                                   struct tn_entry *entries, const char **dts,
                                                   uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = random_entry(bed, &seed, i);
        for (size_t p = 0; p < COUNT(partitions); p++) {
            size_t mark = tn_arena_mark(&bed->own);
            if (tn_bytes_equal(entries[i].partition, bed_partition(bed, partitions[p]))) {
                dts[i] = partitions[p];
            }
            tn_arena_reset(&bed->own, mark);
        }
    }
}

static __attribute__((noinline)) void read_back(struct bed *bed, const char *path, int64_t size,
                                                const struct tn_entry *entries, uint32_t count)
{
    static struct tn_manifest_reader reader;
    struct tn_entry entry;
    struct tn_err err;
    tn_rc rc = tn_manifest_open(&reader, path, size, false, &bed->worker, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < count; i++) {
        size_t record = tn_arena_mark(&bed->worker.arena);
        rc = tn_manifest_next_entry(&reader, &bed->worker.arena, &entry, &err);
        CHECK_OK(rc, err);
        check_same(&entry, &entries[i]);
        tn_arena_reset(&bed->worker.arena, record);
    }
    rc = tn_manifest_next_entry(&reader, &bed->worker.arena, &entry, &err);
    CHECK(rc == TN_ABSENT);
    tn_manifest_close(&reader);
}

static void round_trip(struct bed *bed, uint64_t seed, uint32_t count, enum tn_codec_id codec)
{
    struct tn_entry *entries = tn_arena_take(&bed->own, (count + 1) * sizeof *entries);
    const char **dts = tn_arena_take(&bed->own, (count + 1) * sizeof *dts);
    static struct tn_manifest_writer writer;
    struct tn_manifest_meta meta;
    struct tn_err err;
    int64_t size;
    size_t mark = tn_arena_mark(&bed->worker.arena);
    char path[64];
    CHECK(entries && dts);
    (void)snprintf(path, sizeof path, ROOT "/manifest/manifest-%" PRIu64, seed);
    tn_rc rc = tn_manifest_begin(&writer, path, false, &bed->schema, codec, &bed->worker, &err);
    CHECK_OK(rc, err);
    make_entries(bed, seed, entries, dts, count);
    for (uint32_t i = 0; i < count; i++) {
        rc = tn_manifest_add_entry(&writer, &entries[i], &err);
        CHECK_OK(rc, err);
    }
    rc = tn_manifest_finish(&writer, &bed->own, &meta, &size, &err);
    CHECK_OK(rc, err);
    CHECK(meta.file_size == size && strncmp(meta.file_name, "manifest-", 9) == 0);
    CHECK(tn_arena_mark(&bed->worker.arena) == mark);
    check_meta(bed, &meta, entries, dts, count);

    read_back(bed, path, size, entries, count);
    CHECK(tn_arena_mark(&bed->worker.arena) == mark);
}

static void entries_come_back_and_their_statistics_are_right(void)
{
    static const uint32_t counts[] = {1, 2, 7, 300, ENTRIES_MAX};
    for (uint64_t i = 0; i < COUNT(counts); i++) {
        static struct bed bed;
        bed_init(&bed, i, true);
        make_manifest_folder(&bed);
        round_trip(&bed, 100 + i, counts[i], TN_CODEC_ID_ZSTANDARD);
        round_trip(&bed, 200 + i, counts[i], TN_CODEC_ID_NULL);
        bed_deinit(&bed);
    }
}

/* A list without records is 884 bytes without compression. */
static void an_empty_list_is_as_long_as_java_s(void)
{
    static struct bed bed;
    static struct tn_manifest_writer writer;
    struct tn_err err;
    int64_t size;
    bed_init(&bed, 1, false);
    make_manifest_folder(&bed);
    tn_rc rc = tn_manifest_begin(&writer, ROOT "/manifest/l", true, &bed.schema,
                                 TN_CODEC_ID_ZSTANDARD, &bed.worker, &err);
    CHECK_OK(rc, err);
    rc = tn_manifest_finish(&writer, NULL, NULL, &size, &err);
    CHECK_OK(rc, err);
    CHECK(size == 884);
    CHECK(strcmp(bed_list(&bed, "l", (struct tn_json_i64){size, true}), "") == 0);
    bed_deinit(&bed);
}

/* ---- real files ---- */

static void manifests_of_real_writers_are_read(void)
{
    static const char *const writers[] = {"java", "pypaimon"};
    for (size_t i = 0; i < COUNT(writers); i++) {
        static struct bed bed;
        static struct tn_manifest_reader reader;
        struct tn_entry entry;
        struct tn_err err;
        char path[64];
        bed_init(&bed, 1, false);
        make_manifest_folder(&bed);
        (void)snprintf(path, sizeof path, "%s-manifest-list", writers[i]);
        (void)put_golden(&bed, "avro", path);
        const char *list = bed_list(&bed, path, (struct tn_json_i64){-1, false});
        CHECK(strstr(list, "1/0") != NULL);
        (void)snprintf(path, sizeof path, "%s-manifest", writers[i]);
        (void)put_golden(&bed, "avro", path);
        (void)snprintf(path, sizeof path, ROOT "/manifest/%s-manifest", writers[i]);
        tn_rc rc = tn_manifest_open(&reader, path, -1, false, &bed.worker, &err);
        CHECK_OK(rc, err);
        rc = tn_manifest_next_entry(&reader, &bed.own, &entry, &err);
        CHECK_OK(rc, err);
        CHECK(entry.kind == TN_ENTRY_ADD && entry.file.row_count > 0);
        tn_manifest_close(&reader);
        bed_deinit(&bed);
    }
}

static tn_rc add_index_line(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)err;
    struct tn_buf *buf = user;
    tn_buf_format(buf, "kind=%d partition=", (int)entry->kind);
    for (size_t i = 0; i < entry->partition.size; i++) {
        tn_buf_format(buf, "%02x", entry->partition.data[i]);
    }
    tn_buf_format(buf, " bucket=%" PRId32 " type=%s name=%s size=%" PRId64 " external=%s\n",
                  entry->bucket, entry->index_type, entry->file_name, entry->file_size,
                  entry->external_path ? entry->external_path : "null");
    return TN_OK;
}

/* As another reader describes them; and one that is cut says so. */
static void index_manifests_are_read(void)
{
    static const char *const names[] = {"java-index-vectors", "java-index-keys"};
    for (size_t i = 0; i < COUNT(names); i++) {
        static struct bed bed;
        static char text[8192];
        struct tn_buf buf;
        struct tn_err err;
        bed_init(&bed, 1, false);
        make_manifest_folder(&bed);
        struct tn_bytes whole = put_golden(&bed, "manifest", names[i]);
        tn_buf_init(&buf, text, sizeof text);
        tn_rc rc = tn_index_each(ROOT, names[i], &bed.worker, add_index_line, &buf, &err);
        CHECK_OK(rc, err);
        const char *wanted = tn_arena_format(&bed.own, "%s.txt", names[i]);
        CHECK(tn_bytes_equal(tn_buf_bytes(&buf), read_golden("manifest", wanted)));
        rc = tn_io_write_new(&bed.disk.io, ROOT "/manifest/cut",
                             (struct tn_bytes){whole.data, whole.size - 3}, &err);
        CHECK_OK(rc, err);
        rc = tn_index_each(ROOT, "cut", &bed.worker, add_index_line, &buf, &err);
        CHECK(rc == TN_CORRUPT);
        rc = tn_index_each(ROOT, "none", &bed.worker, add_index_line, &buf, &err);
        CHECK(rc == TN_ABSENT);
        bed_deinit(&bed);
    }
}

/* ---- hostile bytes ---- */

static tn_rc read_all(struct bed *bed, const char *path)
{
    static struct tn_manifest_reader reader;
    struct tn_entry entry;
    struct tn_err err = {0};
    size_t mark = tn_arena_mark(&bed->worker.arena);
    tn_rc rc = tn_manifest_open(&reader, path, -1, false, &bed->worker, &err);
    if (rc == TN_OK) {
        while (rc == TN_OK) {
            size_t record = tn_arena_mark(&bed->worker.arena);
            rc = tn_manifest_next_entry(&reader, &bed->worker.arena, &entry, &err);
            tn_arena_reset(&bed->worker.arena, record);
        }
        tn_manifest_close(&reader);
    }
    CHECK(tn_arena_mark(&bed->worker.arena) == mark);
    CHECK(rc == TN_ABSENT || err.code == rc);
    return rc;
}

static tn_rc read_bytes(struct bed *bed, struct tn_bytes bytes)
{
    struct tn_err err;
    tn_rc rc = tn_io_write_new(&bed->disk.io, "damaged", bytes, &err);
    CHECK_OK(rc, err);
    tn_rc read = read_all(bed, "damaged");
    rc = bed->disk.io.vtable->unlink(&bed->disk.io, "damaged", &err);
    CHECK_OK(rc, err);
    return read;
}

/* Bits of a small manifest are turned over, and the file is cut: an error or other entries, never
 * worse; a file that ends inside a block is always an error. */
static uint32_t count_entries(struct bed *bed, struct tn_manifest_reader *reader)
{
    struct tn_entry entry;
    struct tn_err err;
    uint32_t count = 0;
    tn_rc rc;
    while ((rc = tn_manifest_next_entry(reader, &bed->own, &entry, &err)) == TN_OK) {
        count++;
    }
    CHECK(rc == TN_ABSENT);
    return count;
}

/* A manifest that is open keeps its plan when one of another schema is opened, and the plan that is
 * kept for the next one is the right one. */
static void manifests_of_several_writers_are_open_at_once(void)
{
    static struct bed bed;
    static struct tn_manifest_reader readers[4];
    static const char *const names[] = {"java-manifest", "pypaimon-manifest", "java-manifest",
                                        "pypaimon-manifest"};
    static struct tn_err err;
    uint32_t counts[2];
    bed_init(&bed, 1, false);
    make_manifest_folder(&bed);
    for (uint32_t i = 0; i < 2; i++) {
        char path[64];
        (void)put_golden(&bed, "avro", names[i]);
        (void)snprintf(path, sizeof path, ROOT "/manifest/%s", names[i]);
        tn_rc rc = tn_manifest_open(&readers[i], path, -1, false, &bed.worker, &err);
        CHECK_OK(rc, err);
        counts[i] = count_entries(&bed, &readers[i]);
        CHECK(counts[i] > 0);
        tn_manifest_close(&readers[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        char *path = tn_arena_format(&bed.own, ROOT "/manifest/%s", names[i]);
        tn_rc rc = tn_manifest_open(&readers[i], path, -1, false, &bed.worker, &err);
        CHECK_OK(rc, err);
    }
    for (uint32_t i = 4; i-- > 0;) {
        CHECK(count_entries(&bed, &readers[i]) == counts[i % 2]);
        tn_manifest_close(&readers[i]);
    }
    bed_deinit(&bed);
}

static void damaged_manifests_are_refused(void)
{
    enum { BODY_SIZE = 300 }; /* less than the one block has */
    static struct bed bed;
    struct tn_bytes whole;
    struct tn_err err;
    bed_init(&bed, 1, true);
    make_manifest_folder(&bed);
    round_trip(&bed, 77, 5, TN_CODEC_ID_NULL);
    tn_rc rc =
        tn_io_read_all(&bed.disk.io, ROOT "/manifest/manifest-77", 1 << 16, &bed.own, &whole, &err);
    CHECK_OK(rc, err);
    unsigned char *copy = tn_arena_take(&bed.own, whole.size);
    for (size_t i = 0; i < whole.size; i += i < whole.size - 2 * BODY_SIZE ? 13 : 1) {
        memcpy(copy, whole.data, whole.size);
        copy[i] ^= (unsigned char)(1u << i % 8);
        (void)read_bytes(&bed, (struct tn_bytes){copy, whole.size});
        rc = read_bytes(&bed, (struct tn_bytes){whole.data, i});
        CHECK(i < whole.size - BODY_SIZE || rc == TN_CORRUPT);
    }
    bed_deinit(&bed);
}

static void check_mutant(struct bed *bed, struct tn_bytes bytes, size_t json, size_t avro)
{
    (void)read_bytes(bed, bytes); /* its arena is as it was */
    for (size_t i = 0; i < COUNT(bed->worker.plans->slots); i++) {
        CHECK(bed->worker.plans->slots[i].readers == 0);
    }
    CHECK(bed_json.used == json && bed_avro.used == avro);
}

/* apache/avro#3732: what was decoded up to a wrong byte is given back. Each byte is another one,
 * and each is the last. */
static void no_mutant_of_a_manifest_keeps_memory(void)
{
    static const char *const names[] = {"java-manifest", "pypaimon-manifest"};
    for (size_t n = 0; n < COUNT(names); n++) {
        static struct bed bed;
        struct tn_bytes whole;
        struct tn_err err;
        bed_init(&bed, 1, false);
        make_manifest_folder(&bed);
        (void)put_golden(&bed, "avro", names[n]);
        char *path = tn_arena_format(&bed.own, ROOT "/manifest/%s", names[n]);
        CHECK(read_all(&bed, path) == TN_ABSENT);
        tn_rc rc = tn_io_read_all(&bed.disk.io, path, 1 << 16, &bed.own, &whole, &err);
        CHECK_OK(rc, err);
        unsigned char *copy = tn_arena_take(&bed.own, whole.size);
        size_t json = bed_json.used;
        size_t avro = bed_avro.used;
        for (size_t i = 0; i < whole.size; i++) {
            const unsigned char flips[] = {(unsigned char)(1U << i % 8), 0xff};
            check_mutant(&bed, (struct tn_bytes){whole.data, i}, json, avro);
            for (size_t f = 0; f < COUNT(flips); f++) {
                memcpy(copy, whole.data, whole.size);
                copy[i] ^= flips[f];
                check_mutant(&bed, (struct tn_bytes){copy, whole.size}, json, avro);
            }
        }
        bed_deinit(&bed);
    }
}

/* Little memory is AGAIN with a number, whatever the amount, and leaves the arena as it was. */
static void a_full_arena_is_again(void)
{
    static struct bed bed;
    bed_init(&bed, 1, true);
    make_manifest_folder(&bed);
    round_trip(&bed, 78, 400, TN_CODEC_ID_ZSTANDARD);
    size_t size = bed.worker.arena.size;
    bool again = false;
    bool enough = false;
    for (size_t room = 0; room < 400000 && !enough; room += 1000) {
        bed.worker.arena.size = bed.worker.arena.used + room;
        tn_rc rc = read_all(&bed, ROOT "/manifest/manifest-78");
        CHECK(rc == TN_AGAIN || rc == TN_ABSENT);
        again = again || rc == TN_AGAIN;
        enough = rc == TN_ABSENT;
    }
    CHECK(again && enough);
    bed.worker.arena.size = size;
    bed_deinit(&bed);
}

static void a_file_of_another_size_is_corrupt(void)
{
    static struct bed bed;
    static struct tn_manifest_reader reader;
    struct tn_err err;
    bed_init(&bed, 1, true);
    make_manifest_folder(&bed);
    round_trip(&bed, 79, 3, TN_CODEC_ID_ZSTANDARD);
    tn_rc rc =
        tn_manifest_open(&reader, ROOT "/manifest/manifest-79", 17, false, &bed.worker, &err);
    CHECK(rc == TN_CORRUPT && strstr(err.text, "should have 17") != NULL);
    bed_deinit(&bed);
}

static const struct test tests[] = {
    TEST(entries_come_back_and_their_statistics_are_right),
    TEST(an_empty_list_is_as_long_as_java_s),
    TEST(manifests_of_real_writers_are_read),
    TEST(index_manifests_are_read),
    TEST(manifests_of_several_writers_are_open_at_once),
    TEST(damaged_manifests_are_refused),
    TEST(no_mutant_of_a_manifest_keeps_memory),
    TEST(a_full_arena_is_again),
    TEST(a_file_of_another_size_is_corrupt),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
