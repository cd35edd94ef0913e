/* Cleaning on tables of random commits: what anything reaches stays, all else that is old goes,
 * after any cut, in any memory. */
#include "commit/expire.h"
#include "commit/orphan.h"
#include "model.h"

enum { OLD = 1000, YOUNG = 2000 }; /* when files were changed; older than YOUNG goes */

static struct bed bed;
static struct bed other;
static struct model model;

/* ---- what is on the disk ---- */

enum { NAMES_MAX = 8192, FOLDERS_MAX = 1024 };
struct names {
    struct bed *bed;
    const char *items[NAMES_MAX];
    uint32_t count;
    const char *folders[FOLDERS_MAX];
    uint32_t folder_count;
    const char *at;
};
static struct names before;
static struct names after;

static tn_rc add_listed(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct names *names = user;
    const char *path =
        tn_arena_format(&names->bed->own, is_dir ? "%s%s/" : "%s%s", names->at, name);
    CHECK(path && names->count < NAMES_MAX && names->folder_count < FOLDERS_MAX);
    if (is_dir) {
        names->folders[names->folder_count++] = path;
    } else {
        names->items[names->count++] = path;
    }
    return TN_OK;
}

static void list_all(struct bed *from, struct names *names)
{
    struct tn_err err;
    names->bed = from;
    names->count = 0;
    names->folder_count = 1;
    names->folders[0] = ROOT "/";
    for (uint32_t i = 0; i < names->folder_count; i++) {
        names->at = names->folders[i];
        tn_rc rc = from->disk.io.vtable->list(&from->disk.io, names->at, add_listed, names, &err);
        CHECK_OK(rc, err);
    }
    qsort(names->items, names->count, sizeof names->items[0], bed_by_text);
}

static bool same_names(const struct names *a, const struct names *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++) {
        same = strcmp(a->items[i], b->items[i]) == 0;
    }
    return same;
}

/* ---- tables ---- */

static void put(struct bed *to, const char *path, const char *text)
{
    char dir[256];
    struct tn_err err;
    struct tn_io *io = &to->disk.io;
    (void)snprintf(dir, sizeof dir, ROOT "/%s", path);
    *(strrchr(dir, '/') + 1) = 0;
    tn_rc rc = io->vtable->make_dir(io, dir, &err);
    CHECK_OK(rc, err);
    char whole[256];
    (void)snprintf(whole, sizeof whole, ROOT "/%s", path);
    rc = tn_io_write_new(io, whole, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
    const char *paths[] = {whole, dir};
    rc = io->vtable->sync(io, paths, 2, &err);
    CHECK_OK(rc, err);
}

static void copy_snapshot(struct bed *in, int64_t id, const char *path)
{
    struct tn_bytes text;
    struct tn_err err;
    const char *from = tn_name_numbered(&in->own, ROOT, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = tn_io_read_all(&in->disk.io, from, 8192, &in->own, &text, &err);
    CHECK_OK(rc, err);
    put(in, path, (const char *)text.data);
}

static void must_unlink(struct bed *in, const char *path)
{
    struct tn_err err;
    tn_rc rc = in->disk.io.vtable->unlink(&in->disk.io, path, &err);
    CHECK_OK(rc, err);
}

static void expire(struct bed *in, int32_t keep)
{
    struct tn_expire_result result;
    struct tn_err err;
    in->options.snapshot_retained_min = keep;
    struct tn_expire_spec spec = {.root = ROOT, .schema = &in->schema, .options = &in->options};
    tn_rc rc = tn_expire(&spec, &in->worker, &result, &err);
    CHECK_OK(rc, err);
}

/* All of its files are old, none is an orphan: some of the newest snapshots are kept, one under a
 * tag, two in a branch. */
static void make_table(uint64_t seed, bool partitioned)
{
    uint64_t random = seed;
    model = (struct model){.key = 1};
    bed_init(&bed, seed, partitioned);
    bed.disk.now_ms = OLD;
    bed.options.manifest_merge_min = 3;
    for (int i = 0; i < 14; i++) {
        random_commit(&bed, &model, &random, i);
    }
    put(&bed, "schema/schema-0", "{}");
    copy_snapshot(&bed, 2, "tag/tag-a");
    put(&bed, "branch/branch-b/schema/schema-0", "{}");
    copy_snapshot(&bed, 4, "branch/branch-b/snapshot/snapshot-4");
    copy_snapshot(&bed, 6, "branch/branch-b/tag/tag-c");
    expire(&bed, 3);
}

static struct tn_orphan_spec spec_of(const struct bed *in, bool dry_run)
{
    return (struct tn_orphan_spec){.root = ROOT,
                                   .schema = &in->schema,
                                   .options = &in->options,
                                   .older_than_ms = YOUNG,
                                   .dry_run = dry_run};
}

static struct tn_orphan_result must_clean(struct bed *in, bool dry_run)
{
    struct tn_orphan_result result;
    struct tn_err err;
    struct tn_orphan_spec spec = spec_of(in, dry_run);
    size_t mark = tn_arena_mark(&in->worker.arena);
    tn_rc rc = tn_orphan_clean(&spec, &in->worker, &result, &err);
    CHECK_OK(rc, err);
    CHECK(tn_arena_mark(&in->worker.arena) == mark);
    return result;
}

static tn_rc must_be_there(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct bed *in = user;
    const char *dir;
    uint64_t size;
    size_t mark = tn_arena_mark(&in->own);
    tn_rc rc = tn_name_bucket(&in->own, ROOT, &in->schema, &in->options, entry->partition,
                              entry->bucket, &dir, err);
    CHECK_OK(rc, *err);
    const char *path = tn_arena_format(&in->own, "%s%s", dir, entry->file.file_name);
    CHECK(path != NULL);
    rc = in->disk.io.vtable->stat(&in->disk.io, path, &size, err);
    CHECK_OK(rc, *err);
    tn_arena_reset(&in->own, mark);
    return TN_OK;
}

/* Whatever snapshot or tag there is, all that it reaches is there. */
static void check_whole(struct bed *in)
{
    static const char *const tags[] = {ROOT "/tag/tag-a", ROOT "/branch/branch-b/tag/tag-c",
                                       ROOT "/branch/branch-b/snapshot/snapshot-4"};
    size_t mark = tn_arena_mark(&in->own);
    struct tn_err err;
    int64_t first;
    tn_rc rc = tn_snapshot_earliest(&in->disk.io, ROOT, &in->own, &first, &err);
    CHECK_OK(rc, err);
    for (int i = 0; i < 40; i++) {
        struct tn_snapshot s;
        const char *path =
            i < 3 ? tags[i]
                  : tn_name_numbered(&in->own, ROOT, TN_DIR_SNAPSHOT, "snapshot-", first + i - 3);
        rc = tn_snapshot_read_path(&in->disk.io, path, &in->own, &s, &err);
        if (rc == TN_OK) {
            rc = tn_live_each(ROOT, &s, &in->schema, NULL, &in->worker, must_be_there, in, &err);
            CHECK_OK(rc, err);
        } else {
            CHECK(rc == TN_ABSENT);
        }
    }
    tn_arena_reset(&in->own, mark);
}

static void copy_bed(void)
{
    other = bed;
    sim_disk_clone(&other.disk, &bed.disk);
    other.disk.calls = 0;
    other.worker.io = &other.disk.io;
}

static const char *const junk[] = {
    "bucket-0/data-x.avro",        "bucket-1/data-x.avro", "bucket-1/.hidden",
    "bucket-7/data-y.avro",        "manifest/manifest-z",  "manifest/manifest-list-z",
    "manifest/index-manifest-z",   "index/index-z",        "statistics/stats-z",
    "snapshot/.snapshot-99.u.tmp", "snapshot/x.tmp",       "changelog/.changelog-1.u.tmp",
    "branch/branch-b/snapshot/x",
};
static const char *const kept[] = {
    "schema/x", "bucketless",      "other/bucket-0/x",   "consumer/x",
    "tag/x",    "snapshot/deep/x", "changelog/EARLIEST",
};

static void put_junk(struct bed *to, bool partitioned)
{
    for (size_t i = 0; i < COUNT(junk); i++) {
        bool bucket = tn_name_begins(junk[i], "bucket-");
        char path[128];
        (void)snprintf(path, sizeof path, "%s%s", bucket && partitioned ? "dt=q/" : "", junk[i]);
        put(to, path, "junk");
    }
}

static void all_that_is_reached_stays(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        make_table(seed, seed % 2 == 0);
        list_all(&bed, &before);
        struct tn_orphan_result result = must_clean(&bed, false);
        list_all(&bed, &after);
        CHECK(result.files == 0 && result.folders == 0 && same_names(&before, &after));
        bed_deinit(&bed);
    }
}

/* Young ones first, then as old as the rest. */
static void what_nothing_reaches_goes_when_it_is_old(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        bool partitioned = seed % 2 == 0;
        make_table(seed, partitioned);
        for (size_t i = 0; i < COUNT(kept); i++) {
            put(&bed, kept[i], "kept");
        }
        list_all(&bed, &before);
        uint32_t folders = before.folder_count;
        bed.disk.now_ms = YOUNG;
        put_junk(&bed, partitioned);
        CHECK(must_clean(&bed, false).files == 0);
        for (size_t i = 0; i < COUNT(junk); i++) {
            char path[128];
            bool bucket = tn_name_begins(junk[i], "bucket-");
            (void)snprintf(path, sizeof path, ROOT "/%s%s", bucket && partitioned ? "dt=q/" : "",
                           junk[i]);
            must_unlink(&bed, path);
        }
        bed.disk.now_ms = OLD;
        put_junk(&bed, partitioned);
        struct tn_orphan_result dry = must_clean(&bed, true);
        CHECK(dry.files == COUNT(junk) && dry.bytes == 4 * COUNT(junk) && dry.folders == 0);
        struct tn_orphan_result result = must_clean(&bed, false);
        CHECK(result.files == dry.files && result.bytes == dry.bytes && result.passes == 1);
        CHECK(result.folders == (partitioned ? 4 : 1));
        list_all(&bed, &after);
        CHECK(same_names(&before, &after) && after.folder_count >= folders);
        bed_deinit(&bed);
    }
}

/* A tag, then a branch's snapshot go; files go with the last that reaches them. */
static void what_was_reached_by_a_tag_goes_after_it(void)
{
    make_table(5, true);
    must_unlink(&bed, ROOT "/tag/tag-a");
    CHECK(must_clean(&bed, false).files > 0);
    CHECK(must_clean(&bed, false).files == 0);
    must_unlink(&bed, ROOT "/branch/branch-b/snapshot/snapshot-4");
    must_unlink(&bed, ROOT "/branch/branch-b/tag/tag-c");
    CHECK(must_clean(&bed, false).files > 0);
    check_whole(&bed);
    bed_deinit(&bed);
}

/* A worker with little memory, and thousands of names. */
static void names_that_do_not_fit_take_more_passes(void)
{
    static unsigned char memory[300 << 10];
    make_table(6, true);
    list_all(&bed, &before);
    for (int i = 0; i < 2500; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "dt=%d/bucket-%d/data-%d", i % 150, i % 2, i);
        put(&bed, path, "junk");
    }
    struct tn_worker small = bed.worker;
    tn_arena_init(&small.arena, memory, sizeof memory);
    struct tn_orphan_spec spec = spec_of(&bed, false);
    struct tn_orphan_result result;
    struct tn_err err;
    tn_rc rc = tn_orphan_clean(&spec, &small, &result, &err);
    CHECK_OK(rc, err);
    list_all(&bed, &after);
    CHECK(result.files == 2500 && result.passes > 1 && same_names(&before, &after));
    CHECK(result.folders >= 148);
    bed_deinit(&bed);
}

/* Each list and manifest that something reaches is missed; a branch has no schema. */
static void what_cannot_be_read_ends_it(void)
{
    make_table(7, false);
    put_junk(&bed, false);
    list_all(&bed, &before);
    for (uint32_t i = 0; i < before.count; i++) {
        bool manifest = strstr(before.items[i], "/manifest/") && !strstr(before.items[i], "-z");
        bool schema = strstr(before.items[i], "branch-b/schema/");
        if (!manifest && !schema) {
            continue;
        }
        copy_bed();
        must_unlink(&other, before.items[i]);
        struct tn_orphan_spec spec = spec_of(&other, false);
        struct tn_orphan_result result;
        struct tn_err err;
        tn_rc rc = tn_orphan_clean(&spec, &other.worker, &result, &err);
        CHECK(rc == TN_CORRUPT);
        CHECK(result.files <= 4); /* drafts */
        sim_disk_deinit(&other.disk);
    }
    bed_deinit(&bed);
}

/* Those that the manifest names, in the folder of indexes or in a bucket. */
static void index_files_stay_as_long_as_something_names_them(void)
{
    static const char *const named[] = {"index/index-6f025538-47be-4719-a9fd-631c1545c676-0",
                                        "bucket-0/index-6ef82b39-5515-4c4d-81c2-1be1b35ca00e-0"};
    static char text[8192];
    struct tn_bytes json;
    struct tn_err err;
    make_table(8, false);
    put_junk(&bed, false);
    for (size_t i = 0; i < COUNT(named); i++) {
        put(&bed, named[i], "an index");
    }
    (void)put_golden(&bed, "manifest", "java-index-keys");
    tn_rc rc = tn_io_read_all(&bed.disk.io, ROOT "/tag/tag-a", sizeof text, &bed.own, &json, &err);
    CHECK_OK(rc, err);
    (void)snprintf(text, sizeof text, "{\"indexManifest\":\"java-index-keys\",%s",
                   strchr((const char *)json.data, '{') + 1);
    put(&bed, "tag/tag-d", text);
    struct tn_orphan_result result = must_clean(&bed, false);
    CHECK(result.files == COUNT(junk));
    must_unlink(&bed, ROOT "/tag/tag-d");
    result = must_clean(&bed, false);
    CHECK(result.files == COUNT(named) + 1);
    bed_deinit(&bed);
}

/* A tag was dropped, and nobody synced that. The power goes before each call: where the tag is
 * back, its files are there. */
static void a_cut_leaves_all_that_is_reached(void)
{
    uint64_t calls = 1;
    uint64_t random = 9;
    make_table(9, true);
    put_junk(&bed, true);
    must_unlink(&bed, ROOT "/tag/tag-a");
    for (uint64_t cut = 1; cut <= calls; cut++) {
        struct tn_orphan_result result;
        struct tn_err err;
        struct tn_orphan_spec spec = spec_of(&bed, false);
        for (uint64_t seed = 0; seed < 6; seed++) {
            copy_bed();
            sim_disk_cut_at(&other.disk, cut);
            tn_rc rc = tn_orphan_clean(&spec, &other.worker, &result, &err);
            calls = rc == TN_OK ? other.disk.calls : cut + 1;
            sim_disk_reboot(&other.disk, seed < 2 ? seed : 2 + random_next(&random) % 1000000);
            check_whole(&other);
            sim_disk_deinit(&other.disk);
        }
    }
    CHECK(calls > 100);
    bed_deinit(&bed);
}

/* Each call fails once: the next run does the rest. */
static void a_failure_is_made_up_for_by_the_next_run(void)
{
    uint64_t calls = 1;
    make_table(10, false);
    list_all(&bed, &before);
    put_junk(&bed, false);
    for (uint64_t call = 1; call <= calls; call++) {
        struct tn_orphan_result result;
        struct tn_err err;
        struct tn_orphan_spec spec = spec_of(&bed, false);
        size_t mark = tn_arena_mark(&bed.own);
        copy_bed();
        sim_disk_fail_call(&other.disk, call, TN_IO);
        tn_rc rc = tn_orphan_clean(&spec, &other.worker, &result, &err);
        CHECK(rc == TN_OK || rc == TN_IO);
        calls = call == 1 ? 100 : other.disk.calls > calls ? other.disk.calls : calls;
        (void)must_clean(&other, false);
        list_all(&other, &after);
        CHECK(same_names(&before, &after));
        sim_disk_deinit(&other.disk);
        tn_arena_reset(&bed.own, mark);
    }
    bed_deinit(&bed);
}

static const struct test tests[] = {
    TEST(all_that_is_reached_stays),
    TEST(what_nothing_reaches_goes_when_it_is_old),
    TEST(what_was_reached_by_a_tag_goes_after_it),
    TEST(names_that_do_not_fit_take_more_passes),
    TEST(what_cannot_be_read_ends_it),
    TEST(index_files_stay_as_long_as_something_names_them),
    TEST(a_cut_leaves_all_that_is_reached),
    TEST(a_failure_is_made_up_for_by_the_next_run),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
