/* Snapshot files of real writers are read, and Java's are written back to the byte. Hints are
 * hints. */
#include "bed.h"

static struct tn_bytes golden(struct tn_arena *arena, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "tests/golden/snapshot/%s", name);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    unsigned char *data = tn_arena_take(arena, 8192);
    CHECK(data != NULL);
    size_t size = fread(data, 1, 8192, file);
    CHECK(size > 0 && size < 8192);
    (void)fclose(file);
    return (struct tn_bytes){data, size};
}

static struct tn_snapshot decode(struct bed *bed, struct tn_bytes json)
{
    struct tn_snapshot snapshot;
    struct tn_err err;
    tn_rc rc = tn_snapshot_decode(json, &bed->own, &snapshot, &err);
    CHECK_OK(rc, err);
    return snapshot;
}

static struct tn_bytes encode(struct bed *bed, const struct tn_snapshot *snapshot)
{
    struct tn_buf buf;
    tn_buf_init(&buf, tn_arena_take(&bed->own, 8192), 8192);
    tn_snapshot_encode(snapshot, &buf);
    CHECK(!buf.overflow);
    return tn_buf_bytes(&buf);
}

static void java_snapshots_come_back_to_the_byte(void)
{
    static const char *const names[] = {"java-append",      "java-last",       "java-changelog",
                                        "java-properties",  "java-statistics", "java-index",
                                        "java-row-tracking"};
    static struct bed bed;
    bed_init(&bed, 1, false);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct tn_bytes json = golden(&bed.own, names[i]);
        struct tn_snapshot snapshot = decode(&bed, json);
        CHECK(tn_bytes_equal(encode(&bed, &snapshot), json));
    }
    bed_deinit(&bed);
}

static void members_of_real_snapshots_are_read(void)
{
    static struct bed bed;
    bed_init(&bed, 1, false);
    struct tn_snapshot s = decode(&bed, golden(&bed.own, "java-changelog"));
    CHECK(s.id == 12 && strcmp(s.commit_kind, "COMPACT") == 0);
    CHECK(s.delta_record_count.value == -25 && s.changelog_manifest_list != NULL);
    s = decode(&bed, golden(&bed.own, "java-properties"));
    CHECK(s.watermark.present && s.watermark.value == 1700000000000);
    CHECK(s.properties.count == 1 && strcmp(s.properties.pairs[0].value, "first") == 0);
    s = decode(&bed, golden(&bed.own, "pypaimon"));
    CHECK(s.commit_identifier.value == INT64_MAX);
    CHECK(!s.next_row_id.present && !s.changelog_manifest_list);
    bed_deinit(&bed);
}

/* A tag has two members more; later versions have others. */
static void unknown_members_are_ignored(void)
{
    static const char json[] =
        "{\"id\":7,\"schemaId\":2,\"baseManifestList\":\"a\",\"deltaManifestList\":\"b\","
        "\"commitUser\":\"u\",\"commitKind\":\"APPEND\",\"uuid\":\"x\","
        "\"tagCreateTime\":[2026,11,29,14,40],\"tagTimeRetained\":86400.000000000}";
    static struct bed bed;
    bed_init(&bed, 1, false);
    struct tn_snapshot s = decode(&bed, tn_bytes_of(json));
    CHECK(s.id == 7 && s.schema_id == 2 && !s.total_record_count.present);
    bed_deinit(&bed);
}

/* Each required member left out is named; a list's name that leaves its folder is refused; each
 * prefix of a real file is an error and nothing worse. */
static void damaged_snapshots_are_corrupt(void)
{
    static const char *const keys[] = {
        "id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser", "commitKind"};
    static struct bed bed;
    struct tn_snapshot snapshot;
    struct tn_err err;
    bed_init(&bed, 1, false);
    struct tn_bytes json = golden(&bed.own, "java-append");
    for (size_t i = 0; i < COUNT(keys); i++) {
        char quoted[40];
        (void)snprintf(quoted, sizeof quoted, "\"%s\"", keys[i]);
        char *copy = tn_arena_text(&bed.own, json);
        char *at = strstr(copy, quoted);
        CHECK(at != NULL);
        at[1] = '#';
        tn_rc rc = tn_snapshot_decode(tn_bytes_of(copy), &bed.own, &snapshot, &err);
        CHECK(rc == TN_CORRUPT);
        CHECK(strstr(err.text, keys[i]) != NULL);
    }
    char *copy = tn_arena_text(&bed.own, json);
    memcpy(strstr(copy, "manifest-list-"), "../../../../ab", 14);
    tn_rc rc = tn_snapshot_decode(tn_bytes_of(copy), &bed.own, &snapshot, &err);
    CHECK(rc == TN_CORRUPT && strstr(err.text, "no file name") != NULL);
    for (size_t size = 0; size < json.size; size++) {
        rc = tn_snapshot_decode((struct tn_bytes){json.data, size}, &bed.own, &snapshot, &err);
        CHECK(rc == TN_CORRUPT);
    }
    bed_deinit(&bed);
}

static void put(struct bed *bed, const char *name, const char *text)
{
    struct tn_err err;
    char path[64];
    (void)snprintf(path, sizeof path, ROOT "/snapshot/%s", name);
    (void)bed->disk.io.vtable->unlink(&bed->disk.io, path, &err);
    tn_rc rc = tn_io_write_new(&bed->disk.io, path, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static int64_t latest(struct bed *bed)
{
    int64_t id = -1;
    struct tn_err err;
    tn_rc rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &id, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return id;
}

static int64_t earliest(struct bed *bed)
{
    int64_t id = -1;
    struct tn_err err;
    tn_rc rc = tn_snapshot_earliest(&bed->disk.io, ROOT, &bed->own, &id, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return id;
}

/* Behaviour 6.6: too low heals itself, too high is not believed, junk is no hint. */
static void hints_are_only_hints(void)
{
    static const char *const hints[] = {
        "1", "4", "5", "6", "99", "5\n", "", "x", "-5", "5x", "99999999999999999999"};
    static struct bed bed;
    struct tn_err err;
    bed_init(&bed, 1, false);
    CHECK(latest(&bed) == -1 && earliest(&bed) == -1);
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/snapshot", &err);
    CHECK_OK(rc, err);
    CHECK(latest(&bed) == -1 && earliest(&bed) == -1);
    put(&bed, "snapshot-2", "{}");
    put(&bed, "snapshot-4", "{}");
    put(&bed, "snapshot-5", "{}");
    put(&bed, ".snapshot-9.x.tmp", "{}");
    put(&bed, "snapshot-x", "{}");
    CHECK(latest(&bed) == 5 && earliest(&bed) == 2);
    for (size_t i = 0; i < COUNT(hints); i++) {
        put(&bed, "LATEST", hints[i]);
        CHECK(latest(&bed) == 5);
        put(&bed, "EARLIEST", hints[i]);
        int64_t named = strcmp(hints[i], "4") == 0                 ? 4
                        : hints[i][0] == '5' && hints[i][1] != 'x' ? 5
                                                                   : 2;
        CHECK(earliest(&bed) == named);
    }
    bed_deinit(&bed);
}

/* Of "12" a cut left "1"; of the snapshots that had expired the first came back. */
static void a_start_goes_by_names_where_a_torn_hint_seems_right(void)
{
    static struct bed bed;
    struct tn_err err;
    int64_t id = 0;
    bed_init(&bed, 1, false);
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/snapshot", &err);
    CHECK_OK(rc, err);
    put(&bed, "snapshot-1", "{}");
    put(&bed, "snapshot-11", "{}");
    put(&bed, "snapshot-12", "{}");
    put(&bed, "LATEST", "1");
    CHECK(latest(&bed) == 1);
    rc = tn_snapshot_newest_name(&bed.disk.io, ROOT, &bed.own, &id, &err);
    CHECK(rc == TN_OK && id == 12);
    put(&bed, "EARLIEST", "11"); /* as it is where the first was being expired */
    CHECK(latest(&bed) == 12);
    tn_snapshot_heal_hints(&bed.disk.io, ROOT, &bed.own);
    CHECK(latest(&bed) == 12);
    bed_deinit(&bed);
}

static void a_written_hint_is_the_number_and_nothing_else(void)
{
    static struct bed bed;
    struct tn_err err;
    struct tn_bytes text;
    bed_init(&bed, 1, false);
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/snapshot", &err);
    CHECK_OK(rc, err);
    for (int64_t id = 9; id < 12; id++) {
        rc = tn_snapshot_hint(&bed.disk.io, ROOT, "LATEST", id, &bed.own, &err);
        CHECK_OK(rc, err);
    }
    rc = tn_io_read_all(&bed.disk.io, ROOT "/snapshot/LATEST", 10, &bed.own, &text, &err);
    CHECK_OK(rc, err);
    CHECK(tn_bytes_equal(text, tn_bytes_of("11")));
    bed_deinit(&bed);
}

static void a_snapshot_that_says_another_id_is_corrupt(void)
{
    static struct bed bed;
    struct tn_err err;
    struct tn_snapshot snapshot;
    bed_init(&bed, 1, false);
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ROOT "/snapshot", &err);
    CHECK_OK(rc, err);
    put(&bed, "snapshot-3", tn_arena_text(&bed.own, golden(&bed.own, "java-append")));
    rc = tn_snapshot_read(&bed.disk.io, ROOT, 3, &bed.own, &snapshot, &err);
    CHECK(rc == TN_CORRUPT);
    rc = tn_snapshot_read(&bed.disk.io, ROOT, 4, &bed.own, &snapshot, &err);
    CHECK(rc == TN_ABSENT);
    bed_deinit(&bed);
}

static const struct test tests[] = {
    TEST(java_snapshots_come_back_to_the_byte),
    TEST(members_of_real_snapshots_are_read),
    TEST(unknown_members_are_ignored),
    TEST(damaged_snapshots_are_corrupt),
    TEST(hints_are_only_hints),
    TEST(a_start_goes_by_names_where_a_torn_hint_seems_right),
    TEST(a_written_hint_is_the_number_and_nothing_else),
    TEST(a_snapshot_that_says_another_id_is_corrupt),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
