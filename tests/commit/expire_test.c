/* Expiry on tables of random commits: all that is kept is whole, all else is gone, after any cut.
 */
#include "commit/expire.h"
#include "commit/tag.h"
#include "given.h"
#include "reach.h"

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

static int64_t make_table_of(struct bed *bed, struct model *model, uint64_t seed, int commits,
                             enum tn_changelog_producer producer)
{
    int64_t id;
    struct tn_err err;
    *model = (struct model){.key = 1};
    bed_init(bed, seed, false);
    bed->options.manifest_merge_min = 3;
    bed->options.changelog_producer = producer;
    for (int i = 0; i < commits; i++) {
        random_commit(bed, model, &seed, i);
    }
    tn_rc rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &id, &err);
    CHECK_OK(rc, err);
    return id;
}

static int64_t make_table(struct bed *bed, struct model *model, uint64_t seed, int commits)
{
    return make_table_of(bed, model, seed, commits, TN_CHANGELOG_NONE);
}

static void kept_snapshots_are_whole_and_nothing_else_is_there(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        static struct bed bed;
        static struct model model;
        int64_t last = make_table(&bed, &model, seed, 25);
        bed.options.snapshot_retained_min = 1 + (int32_t)seed % 4;
        struct tn_expire_result dry = must_expire(&bed, true);
        check_table(&bed, false);
        struct tn_expire_result result = must_expire(&bed, false);
        CHECK(result.earliest_id == last - bed.options.snapshot_retained_min + 1);
        CHECK(result.snapshots == (uint32_t)result.earliest_id - 1);
        CHECK(dry.snapshots == result.snapshots && dry.data_files == result.data_files);
        CHECK(result.data_files > 0 && result.metadata_files > 0);
        check_table(&bed, false);
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
        uint64_t random = seed;
        int64_t last = make_table(&bed, &model, seed, 25);
        put_tag(&bed, "tag-a", 2);
        put_tag(&bed, "tag-b", 3 + random_below(&random, 5));
        put_tag(&bed, "tag-c", last - 3);
        bed.options.snapshot_expire_limit = 1 + (int32_t)random_below(&random, 6);
        for (int step = 0; step < 40; step++) {
            (void)must_expire(&bed, false);
            if (step % 8 == 0) {
                check_table(&bed, false);
            }
        }
        check_table(&bed, false);
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
        check_table(&bed, false);
        bed_deinit(&bed);
    }
}

/* As in a mirror that its source has outrun. Wherever retention or the limit would end, it ends at
 * a snapshot, and all from it on is whole. */
static void ids_may_be_missing(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 12; round++) {
        static struct bed bed;
        static struct model model;
        struct tn_err err;
        int64_t last = make_table(&bed, &model, random_next(&random), 25);
        int64_t first = 3 + (int64_t)random_below(&random, 5);
        int64_t end = last - 1 - (int64_t)random_below(&random, 4);
        for (int64_t id = first; id < end; id++) {
            const char *path = tn_name_numbered(&bed.own, ROOT, TN_DIR_SNAPSHOT, "snapshot-", id);
            tn_rc rc = bed.disk.io.vtable->unlink(&bed.disk.io, path, &err);
            CHECK_OK(rc, err);
        }
        int64_t at = first + (int64_t)random_below(&random, (uint32_t)(end - first));
        bool limited = random_below(&random, 2) == 0;
        bed.options.snapshot_retained_min = limited ? 1 : (int32_t)(last - at + 1);
        bed.options.snapshot_expire_limit = limited ? (int32_t)at - 1 : 50;
        CHECK(must_expire(&bed, false).earliest_id == end);
        check_table(&bed, true);
        bed_deinit(&bed);
    }
}

static void make_indexed(struct bed *bed, struct model *model, uint64_t seed, int first, int second)
{
    struct tn_err err;
    *model = (struct model){.key = 1};
    bed_init(bed, seed, false);
    for (int i = 0; i < 25; i++) {
        int64_t id;
        random_commit(bed, model, &seed, i);
        tn_rc rc = tn_snapshot_latest(&bed->disk.io, ROOT, &bed->own, &id, &err);
        CHECK_OK(rc, err);
        if (i == first || i == second) {
            begin_index(bed, id, i == first ? "java-index-vectors" : "java-index-keys");
        }
        if (i == first + 1) {
            put_tag(bed, "tag-v", id);
        }
    }
}

/* They stay as long as a snapshot or a tag has them. */
static void index_files_go_with_the_last_that_has_them(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 6; round++) {
        static struct bed bed;
        static struct model model;
        struct tn_err err;
        struct tn_expire_result result = {0};
        int first = (int)random_below(&random, 8);
        make_indexed(&bed, &model, random_next(&random), first,
                     first + 3 + (int)random_below(&random, 8));
        check_table(&bed, false);
        bed.options.snapshot_expire_limit = 3;
        for (int step = 0; step < 12; step++) {
            struct tn_expire_result dry = must_expire(&bed, true);
            result = must_expire(&bed, false);
            CHECK(dry.metadata_files == result.metadata_files);
            check_table(&bed, false);
        }
        struct names *indexes = &reach.indexes;
        CHECK(indexes->count == 7);
        struct tn_expire_spec spec = {.root = ROOT, .schema = &bed.schema, .options = &bed.options};
        tn_rc rc = tn_tag_remove(&spec, "v", &bed.worker, &result, &err);
        CHECK_OK(rc, err);
        check_table(&bed, false);
        CHECK(indexes->count == 4);
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
        rc = bed.disk.io.vtable->unlink(&bed.disk.io,
                                        tn_name_in(&bed.own, ROOT, folders[i], names[i]), &err);
        CHECK_OK(rc, err);
        check_table(&bed, false);
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

/* ---- changelogs that outlive their snapshots ---- */

static const enum tn_changelog_producer producers[] = {TN_CHANGELOG_NONE, TN_CHANGELOG_INPUT};

static void outlive(struct bed *bed, int32_t min, int32_t max)
{
    bed->options.changelog_retained_min = min;
    bed->options.changelog_retained_max = max;
}

static struct tn_changelog_range records(struct bed *bed)
{
    struct tn_changelog_range range = {0};
    struct tn_err err;
    tn_rc rc = tn_changelog_range(&bed->disk.io, ROOT, &bed->own, &range, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return range;
}

/* In steps between commits, with tags and, at the end, a shorter life: what changed can be told
 * from the first record on, and nothing else stays. */
static void changelogs_outlive_their_snapshots(void)
{
    for (uint64_t seed = 31; seed <= 38; seed++) {
        static struct bed bed;
        static struct model model;
        uint64_t random = seed;
        int64_t last = make_table_of(&bed, &model, seed, 20, producers[seed % 2]);
        put_tag(&bed, "tag-a", 3);
        put_tag(&bed, "tag-b", last - 4);
        outlive(&bed, 1 + (int32_t)random_below(&random, 5), 7);
        bed.options.snapshot_retained_max = 3;
        bed.options.snapshot_expire_limit = 1 + (int32_t)random_below(&random, 6);
        for (int step = 0; step < 30; step++) {
            struct tn_expire_result dry = must_expire(&bed, true);
            struct tn_expire_result result = must_expire(&bed, false);
            CHECK(dry.snapshots == result.snapshots);
            if (step % 5 == 0) {
                random_commit(&bed, &model, &random, 100 + step);
            }
            (void)check_table(&bed, false);
        }
        last = check_table(&bed, false);
        bed.options.snapshot_expire_limit = 50;
        (void)must_expire(&bed, false);
        CHECK(records(&bed).last == last - 1);
        CHECK(records(&bed).first == last - bed.options.changelog_retained_min + 1 ||
              (bed.options.changelog_retained_min == 1 && records(&bed).first == last - 1));
        CHECK(records(&bed).oldest == records(&bed).first);
        (void)check_table(&bed, false);
        bed_deinit(&bed);
    }
}

struct record_retention {
    int32_t min;
    int32_t max;
    int64_t time_ms;
    int64_t consumer;
    int64_t first; /* record that stays; 0: there is none */
};

/* Of 20 snapshots, one a minute, the last one just now, one stays. Counted from the newest
 * snapshot; the newest record stays in any case. Source: ExpireChangelogImpl. */
static void retention_of_changelogs_is_paimon_s(void)
{
    static const struct record_retention cases[] = {
        {0, 0, -1, 0, 0},
        {5, 0, 0, 0, 16},
        {0, 0, 5 * 60 * 1000 + 30000, 0, 15},
        {2, 7, 3600 * 1000, 0, 14},
        {2, 0, 0, 0, 19},
        {5, 0, 0, 7, 6}, /* the snapshots go up to 7 */
        {25, 0, 0, 0, 1},
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
                     tn_bytes_of("{\n  \"nextSnapshot\" : 7\n}"));
        }
        outlive(&bed, cases[i].min, cases[i].max);
        bed.options.changelog_time_retained_ms = cases[i].time_ms;
        (void)must_expire(&bed, false);
        (void)must_expire(&bed, false);
        CHECK(records(&bed).first == cases[i].first);
        (void)check_table(&bed, false);
        bed_deinit(&bed);
    }
}

/* ---- cuts ---- */

/* Cut before each call that changes something, with any of the unlinks on the medium: what EARLIEST
 * says is whole, and the next run removes the rest. */
static int cut_everywhere(const struct bed *table)
{
    static struct bed whole;
    int cuts = 0;
    clone_bed(&whole, table);
    tn_rc rc = expire_on(&whole);
    CHECK(rc == TN_OK);
    for (uint64_t call = 1; call <= whole.disk.calls; call++) {
        bool changes = sim_disk_call_changes(&whole.disk, call);
        for (uint64_t seed = 0; changes && seed < 4; seed++) {
            static struct bed bed;
            clone_bed(&bed, table);
            sim_disk_cut_at(&bed.disk, call);
            rc = expire_on(&bed);
            CHECK(bed.disk.off);
            sim_disk_reboot(&bed.disk, seed);
            (void)check_table(&bed, true);
            (void)must_expire(&bed, false);
            (void)check_table(&bed, seed != SIM_SEED_ALL);
            sim_disk_deinit(&bed.disk);
            cuts++;
        }
    }
    sim_disk_deinit(&whole.disk);
    return cuts;
}

static void a_cut_at_any_call_is_finished_by_the_next_run(void)
{
    static struct bed table;
    static struct model model;
    (void)make_table(&table, &model, 21, 6);
    put_tag(&table, "tag-a", 2);
    int cuts = cut_everywhere(&table);
    CHECK(cuts > 30);
    bed_deinit(&table);
}

/* Snapshots become records while others expire. */
static void a_cut_leaves_changelogs_whole(void)
{
    for (uint64_t seed = 41; seed <= 44; seed++) {
        static struct bed table;
        static struct model model;
        (void)make_table_of(&table, &model, seed, 8, producers[seed % 2]);
        put_tag(&table, "tag-a", 2);
        table.options.snapshot_retained_min = 5;
        outlive(&table, 7, 20);
        (void)must_expire(&table, false);
        (void)check_table(&table, false);
        table.options.snapshot_retained_min = 2;
        outlive(&table, 4, 20);
        int cuts = cut_everywhere(&table);
        CHECK(cuts > 30);
        bed_deinit(&table);
    }
}

/* ---- failing calls ---- */

static void open_table(struct bed *bed)
{
    tn_snapshot_heal_hints(&bed->disk.io, ROOT, &bed->own);
}

static void expire_table(struct bed *bed)
{
    (void)expire_on(bed);
}

/* Each call of what is done to `table` fails, without or with its work done. */
static void fail_everywhere(const struct bed *table, void (*act)(struct bed *bed))
{
    static struct bed whole;
    clone_bed(&whole, table);
    act(&whole);
    for (uint64_t call = 1; call <= 2 * whole.disk.calls; call++) {
        static struct bed bed;
        clone_bed(&bed, table);
        (call % 2 == 0 ? sim_disk_fail_call : sim_disk_fail_call_late)(&bed.disk, (call + 1) / 2,
                                                                       TN_IO);
        act(&bed);
        (void)check_table(&bed, true);
        (void)must_expire(&bed, false);
        (void)check_table(&bed, true);
        sim_disk_deinit(&bed.disk);
    }
    sim_disk_deinit(&whole.disk);
}

/* What was being expired when the power went, some of it gone, never counts again. */
static void what_was_being_expired_stays_below_whatever_fails(void)
{
    static struct bed table;
    static struct bed bed;
    static struct model model;
    uint64_t first = given_number("SEED", 1);
    (void)make_table(&table, &model, first + 50, 8);
    table.options.snapshot_retained_min = 3;
    clone_bed(&bed, &table);
    tn_rc rc = expire_on(&bed);
    CHECK(rc == TN_OK);
    uint64_t calls = bed.disk.calls;
    sim_disk_deinit(&bed.disk);
    for (uint64_t seed = first; seed < first + 3; seed++) {
        clone_bed(&bed, &table);
        sim_disk_cut_at(&bed.disk, calls - seed % 3);
        (void)expire_on(&bed);
        sim_disk_reboot(&bed.disk, 2 + seed);
        fail_everywhere(&bed, open_table);
        fail_everywhere(&bed, expire_table);
        sim_disk_deinit(&bed.disk);
    }
    bed_deinit(&table);
}

static const struct test tests[] = {
    TEST(kept_snapshots_are_whole_and_nothing_else_is_there),
    TEST(tags_keep_what_they_reach),
    TEST(retention_is_paimon_s),
    TEST(ids_may_be_missing),
    TEST(index_files_go_with_the_last_that_has_them),
    TEST(what_cannot_be_read_keeps_everything),
    TEST(an_empty_table_is_fine),
    TEST(changelogs_outlive_their_snapshots),
    TEST(retention_of_changelogs_is_paimon_s),
    TEST(a_cut_at_any_call_is_finished_by_the_next_run),
    TEST(a_cut_leaves_changelogs_whole),
    TEST(what_was_being_expired_stays_below_whatever_fails),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
