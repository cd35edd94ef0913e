/* Expiry on tables of random commits: all that is kept is whole, all else is gone, after any cut.
 */
#include "commit/expire.h"
#include "model.h"

/* ---- what is on the disk, and what should be ---- */

enum { NAMES_MAX = 4096 };
struct names {
    struct bed *bed;
    const char *items[NAMES_MAX];
    uint32_t count;
};

static __attribute__((noinline)) void add_name(struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return;
        }
    }
    CHECK(names->count < NAMES_MAX);
    names->items[names->count] = tn_arena_text(&names->bed->own, tn_bytes_of(name));
    CHECK(names->items[names->count] != NULL);
    names->count++;
}

static bool has_name(const struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static tn_rc add_listed(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    if (!is_dir) {
        add_name(user, name);
    }
    return TN_OK;
}

static void list_names(struct bed *bed, const char *folder, struct names *names)
{
    struct tn_err err;
    names->bed = bed;
    tn_rc rc = bed->disk.io.vtable->list(&bed->disk.io, folder, add_listed, names, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

static tn_rc add_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    add_name(user, entry->file.file_name);
    return TN_OK;
}

static tn_rc add_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    add_name(user, meta->file_name);
    return TN_OK;
}

static __attribute__((noinline)) void add_reached(struct bed *bed, const struct tn_snapshot *s,
                                                  struct names *data, struct names *metadata)
{
    struct tn_err err;
    const char *lists[] = {s->base_manifest_list, s->delta_manifest_list};
    tn_rc rc = tn_live_each(ROOT, s, &bed->schema, NULL, &bed->worker, add_live, data, &err);
    CHECK_OK(rc, err);
    for (int i = 0; i < 2; i++) {
        add_name(metadata, lists[i]);
        rc = tn_list_each_meta(ROOT, lists[i], -1, &bed->worker, add_manifest, metadata, &err);
        CHECK_OK(rc, err);
    }
}

static void check_equal(const struct names *there, const struct names *reached, bool leaks)
{
    for (uint32_t i = 0; i < reached->count; i++) {
        CHECK(has_name(there, reached->items[i]));
    }
    for (uint32_t i = 0; !leaks && i < there->count; i++) {
        CHECK(has_name(reached, there->items[i]));
    }
}

/* Every snapshot from the earliest on and every tag is whole; without `leaks` nothing else is
 * there. */
static __attribute__((noinline)) void check_table(struct bed *bed, const char *const *tags,
                                                  uint32_t tag_count, bool leaks)
{
    static struct names data;
    static struct names metadata;
    static struct names there;
    struct tn_snapshot s;
    struct tn_err err;
    int64_t first;
    int64_t last;
    size_t mark = tn_arena_mark(&bed->own);
    data = metadata = there = (struct names){.bed = bed};
    tn_rc rc = tn_snapshot_earliest(&bed->disk.io, ROOT, &bed->own, &first, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &last, &err);
    CHECK_OK(rc, err);
    for (int64_t id = first; id <= last; id++) {
        s = bed_snapshot(bed, id);
        add_reached(bed, &s, &data, &metadata);
    }
    for (uint32_t i = 0; i < tag_count; i++) {
        rc = tn_snapshot_read_path(&bed->disk.io, tags[i], &bed->own, &s, &err);
        CHECK_OK(rc, err);
        add_reached(bed, &s, &data, &metadata);
    }
    list_names(bed, ROOT "/bucket-0/", &there);
    list_names(bed, ROOT "/bucket-1/", &there);
    check_equal(&there, &data, leaks);
    there.count = 0;
    list_names(bed, ROOT "/manifest/", &there);
    check_equal(&there, &metadata, leaks);
    tn_arena_reset(&bed->own, mark);
}

/* ---- */

static __attribute__((noinline)) struct tn_expire_result must_expire(struct bed *bed, bool dry_run)
{
    struct tn_expire_spec spec = {
        .root = ROOT, .schema = &bed->schema, .options = &bed->options, .dry_run = dry_run};
    struct tn_expire_result result;
    struct tn_err err;
    size_t mark = tn_arena_mark(&bed->worker.arena);
    tn_rc rc = tn_expire(&spec, &bed->worker, &result, &err);
    CHECK_OK(rc, err);
    CHECK(tn_arena_mark(&bed->worker.arena) == mark);
    return result;
}

static void put_file(struct bed *bed, const char *folder, const char *name, struct tn_bytes bytes)
{
    struct tn_io *io = &bed->disk.io;
    struct tn_err err;
    const char *dir = tn_name_in(&bed->own, ROOT, folder, "");
    const char *path = tn_name_in(&bed->own, ROOT, folder, name);
    tn_rc rc = io->vtable->make_dir(io, dir, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, path, bytes, &err);
    CHECK_OK(rc, err);
    const char *paths[] = {path, dir};
    rc = io->vtable->sync(io, paths, 2, &err);
    CHECK_OK(rc, err);
}

static void put_tag(struct bed *bed, const char *name, int64_t id)
{
    struct tn_bytes text;
    struct tn_err err;
    const char *path = tn_name_numbered(&bed->own, ROOT, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = tn_io_read_all(&bed->disk.io, path, 8192, &bed->own, &text, &err);
    CHECK_OK(rc, err);
    put_file(bed, TN_DIR_TAG, name, text);
}

static int64_t make_table(struct bed *bed, struct model *model, uint64_t seed, int commits)
{
    int64_t id;
    struct tn_err err;
    *model = (struct model){.key = 1};
    bed_init(bed, seed, false);
    bed->options.manifest_merge_min = 3;
    for (int i = 0; i < commits; i++) {
        random_commit(bed, model, &seed, i);
    }
    tn_rc rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &id, &err);
    CHECK_OK(rc, err);
    return id;
}

static void kept_snapshots_are_whole_and_nothing_else_is_there(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        static struct bed bed;
        static struct model model;
        int64_t last = make_table(&bed, &model, seed, 25);
        bed.options.snapshot_retained_min = 1 + (int32_t)seed % 4;
        struct tn_expire_result dry = must_expire(&bed, true);
        check_table(&bed, NULL, 0, false);
        struct tn_expire_result result = must_expire(&bed, false);
        CHECK(result.earliest_id == last - bed.options.snapshot_retained_min + 1);
        CHECK(result.snapshots == (uint32_t)result.earliest_id - 1);
        CHECK(dry.snapshots == result.snapshots && dry.data_files == result.data_files);
        CHECK(result.data_files > 0 && result.metadata_files > 0);
        check_table(&bed, NULL, 0, false);
        result = must_expire(&bed, false);
        CHECK(result.snapshots == 0);
        bed_deinit(&bed);
    }
}

/* Steps of expiry between commits, with tags here and there: as good as one step at the end. */
static void tags_keep_what_they_reach(void)
{
    for (uint64_t seed = 11; seed <= 16; seed++) {
        static struct bed bed;
        static struct model model;
        static const char *const tags[] = {ROOT "/tag/tag-a", ROOT "/tag/tag-b", ROOT "/tag/tag-c"};
        uint64_t random = seed;
        int64_t last = make_table(&bed, &model, seed, 25);
        put_tag(&bed, "tag-a", 2);
        put_tag(&bed, "tag-b", 3 + random_below(&random, 5));
        put_tag(&bed, "tag-c", last - 3);
        bed.options.snapshot_expire_limit = 1 + (int32_t)random_below(&random, 6);
        for (int step = 0; step < 40; step++) {
            (void)must_expire(&bed, false);
            if (step % 8 == 0) {
                check_table(&bed, tags, 3, false);
            }
        }
        check_table(&bed, tags, 3, false);
        bed_deinit(&bed);
    }
}

struct retention {
    int32_t min;
    int32_t max;
    int64_t time_ms;
    int32_t limit;
    int64_t consumer; /* 0: none */
    int64_t earliest; /* of 20 snapshots, one a minute, the last one just now */
};

/* Behaviour 7.1: max is hard unless min, a consumer or the limit says no; time counts only above
 * it. */
static void retention_is_paimon_s(void)
{
    static const struct retention cases[] = {
        {1, INT32_MAX, 0, 50, 0, 20},
        {2, 4, 3600 * 1000, 50, 0, 17},
        {10, INT32_MAX, 3600 * 1000, 50, 0, 1},
        {1, INT32_MAX, 5 * 60 * 1000 + 30000, 50, 0, 15},
        {1, INT32_MAX, 0, 2, 0, 3},
        {1, INT32_MAX, 0, 50, 7, 7},
        {30, 5, 0, 50, 0, 1},
        {1, 1, 3600 * 1000, 50, 0, 20},
        {1, 4, 0, 50, 1, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct bed bed;
        bed_init(&bed, 9, false);
        for (int64_t id = 1; id <= 20; id++) {
            struct tn_commit_spec spec = bed_spec(&bed, id);
            spec.append_even_if_empty = true;
            (void)must_commit(&bed, &spec);
            sim_clock_advance_ms(&bed.clock, id < 20 ? 60000 : 0);
        }
        if (cases[i].consumer > 0) {
            put_file(&bed, TN_DIR_CONSUMER, "consumer-c",
                     tn_bytes_of(cases[i].consumer == 7 ? "{\n  \"nextSnapshot\" : 7\n}"
                                                        : "{\"nextSnapshot\":1}"));
        }
        bed.options.snapshot_retained_min = cases[i].min;
        bed.options.snapshot_retained_max = cases[i].max;
        bed.options.snapshot_time_retained_ms = cases[i].time_ms;
        bed.options.snapshot_expire_limit = cases[i].limit;
        CHECK(must_expire(&bed, false).earliest_id == cases[i].earliest);
        check_table(&bed, NULL, 0, false);
        bed_deinit(&bed);
    }
}

static void what_cannot_be_read_keeps_everything(void)
{
    static const char *const folders[] = {TN_DIR_CONSUMER, TN_DIR_TAG};
    static const char *const names[] = {"consumer-x", "tag-x"};
    for (int i = 0; i < 2; i++) {
        static struct bed bed;
        static struct model model;
        struct tn_expire_result result;
        struct tn_err err;
        (void)make_table(&bed, &model, 5, 10);
        put_file(&bed, folders[i], names[i], tn_bytes_of("{\"nextSnapshot\":"));
        struct tn_expire_spec spec = {.root = ROOT, .schema = &bed.schema, .options = &bed.options};
        tn_rc rc = tn_expire(&spec, &bed.worker, &result, &err);
        CHECK(rc == TN_CORRUPT && result.snapshots == 0 && strstr(err.text, names[i]) != NULL);
        check_table(&bed, NULL, 0, false);
        bed_deinit(&bed);
    }
}

/* A table without a snapshot has nothing to expire. */
static void an_empty_table_is_fine(void)
{
    static struct bed bed;
    bed_init(&bed, 5, false);
    CHECK(must_expire(&bed, false).earliest_id == 0);
    bed_deinit(&bed);
}

static __attribute__((noinline)) tn_rc expire_on(struct bed *bed)
{
    struct tn_expire_spec spec = {.root = ROOT, .schema = &bed->schema, .options = &bed->options};
    struct tn_expire_result result;
    struct tn_err err;
    return tn_expire(&spec, &bed->worker, &result, &err);
}

static void clone_bed(struct bed *to, const struct bed *from)
{
    *to = *from;
    sim_disk_clone(&to->disk, &from->disk);
    sim_disk_reboot(&to->disk, SIM_SEED_ALL); /* calls count from 1 */
    to->worker.io = &to->disk.io;
}

/* Cut before each call that changes something, with any of the unlinks on the medium: what EARLIEST
 * says is whole, and the next run removes the rest. */
static void a_cut_at_any_call_is_finished_by_the_next_run(void)
{
    static struct bed table;
    static struct bed whole;
    static struct model model;
    static const char *const tags[] = {ROOT "/tag/tag-a"};
    int cuts = 0;
    (void)make_table(&table, &model, 21, 6);
    put_tag(&table, "tag-a", 2);
    clone_bed(&whole, &table);
    tn_rc rc = expire_on(&whole);
    CHECK(rc == TN_OK);
    for (uint64_t call = 1; call <= whole.disk.calls; call++) {
        bool changes = sim_disk_call_changes(&whole.disk, call);
        for (uint64_t seed = 0; changes && seed < 3; seed++) {
            static struct bed bed;
            clone_bed(&bed, &table);
            sim_disk_cut_at(&bed.disk, call);
            rc = expire_on(&bed);
            CHECK(bed.disk.off);
            sim_disk_reboot(&bed.disk, seed);
            check_table(&bed, tags, 1, true);
            (void)must_expire(&bed, false);
            check_table(&bed, tags, 1, seed != SIM_SEED_ALL);
            sim_disk_deinit(&bed.disk);
            cuts++;
        }
    }
    CHECK(cuts > 30);
    sim_disk_deinit(&whole.disk);
    bed_deinit(&table);
}

static const struct test tests[] = {
    TEST(kept_snapshots_are_whole_and_nothing_else_is_there),
    TEST(tags_keep_what_they_reach),
    TEST(retention_is_paimon_s),
    TEST(what_cannot_be_read_keeps_everything),
    TEST(an_empty_table_is_fine),
    TEST(a_cut_at_any_call_is_finished_by_the_next_run),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
