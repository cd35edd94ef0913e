/* A table gets an older state back by a snapshot more: the files are those of then, as copies, and
 * no id, tag or file of before is touched, whatever expires later and wherever it is cut. */
#include "commit/revert.h"

#include "given.h"
#include "reach.h"

static struct bed bed;
static struct model model;
static uint64_t seeds;

#ifdef TN_DEBUG
enum { STRIDE = 7 };
#else
enum { STRIDE = 1 };
#endif

static int64_t latest(struct bed *at)
{
    int64_t id;
    struct tn_err err;
    tn_rc rc = tn_snapshot_latest(&at->disk.io, ROOT, &at->own, &id, &err);
    CHECK_OK(rc, err);
    return id;
}

static int64_t make_table(uint64_t seed, int commits)
{
    seeds = seed;
    model = (struct model){.key = 1};
    bed_init(&bed, seed, false);
    bed.options.manifest_merge_min = 3;
    for (int i = 0; i < commits; i++) {
        random_commit(&bed, &model, &seeds, 100 + i);
    }
    return latest(&bed);
}

static tn_rc revert(struct bed *at, int64_t id, bool dry_run, struct tn_revert_result *result,
                    struct tn_err *err)
{
    struct tn_revert_spec spec = {.target = {.root = ROOT, .snapshot_id = id, .dry_run = dry_run},
                                  .schema = &at->schema,
                                  .options = &at->options};
    size_t mark = tn_arena_mark(&at->worker.arena);
    tn_rc rc = tn_revert(&spec, &at->worker, result, err);
    CHECK(tn_arena_mark(&at->worker.arena) == mark);
    return rc;
}

/* Of each live file: its shape, without its name, which a copy has another of; and that it is
 * there. */
struct shapes {
    struct bed *bed;
    uint64_t sum;
};

static tn_rc add_shape(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct shapes *shapes = user;
    struct bed *at = shapes->bed;
    const char *dir;
    struct tn_bytes bytes;
    size_t mark = tn_arena_mark(&at->own);
    tn_rc rc = tn_name_bucket(&at->own, ROOT, &at->schema, &at->options, entry->partition,
                              entry->bucket, &dir, err);
    CHECK(rc == TN_OK);
    const char *path = tn_arena_format(&at->own, "%s%s", dir, entry->file.file_name);
    rc = tn_io_read_all(&at->disk.io, path, 4096, &at->own, &bytes, err);
    CHECK_OK(rc, *err);
    shapes->sum +=
        tn_hash_64(bytes, 5) + tn_hash_64(entry->file.min_key, (uint64_t)entry->file.level + 1) *
                                   (uint64_t)(entry->bucket + 3) * (uint64_t)entry->file.row_count;
    tn_arena_reset(&at->own, mark);
    return TN_OK;
}

static uint64_t shapes_at(struct bed *at, int64_t id)
{
    struct shapes shapes = {at, 0};
    struct tn_err err;
    struct tn_snapshot snapshot = bed_snapshot(at, id);
    tn_rc rc =
        tn_live_each(ROOT, &snapshot, &at->schema, NULL, &at->worker, add_shape, &shapes, &err);
    CHECK_OK(rc, err);
    return shapes.sum;
}

static void must_expire(struct bed *at)
{
    struct tn_expire_spec spec = {.root = ROOT, .schema = &at->schema, .options = &at->options};
    struct tn_expire_result result;
    struct tn_err err;
    at->options.snapshot_retained_min = at->options.snapshot_retained_max = 1;
    tn_rc rc = tn_expire(&spec, &at->worker, &result, &err);
    CHECK_OK(rc, err);
}

static void table_has_the_state_of_then_and_goes_on(void)
{
    uint64_t seed = given_number("SEED", 1);
    int64_t last = make_table(seed, 8);
    for (int64_t id = 1; id < last; id++) {
        static struct bed at;
        struct tn_revert_result dry;
        struct tn_revert_result result;
        struct tn_err err;
        clone_bed(&at, &bed);
        uint64_t before = at.disk.calls;
        tn_rc rc = revert(&at, id, true, &dry, &err);
        CHECK_OK(rc, err);
        for (uint64_t call = before + 1; call <= at.disk.calls; call++) {
            CHECK(!sim_disk_call_changes(&at.disk, call));
        }
        rc = revert(&at, id, false, &result, &err);
        CHECK_OK(rc, err);
        CHECK(memcmp(&dry, &result, sizeof dry) == 0);
        CHECK(result.from_id == id && result.snapshot_id == last + 1);
        CHECK(check_table(&at, false) == last + 1);
        CHECK(shapes_at(&at, last + 1) == shapes_at(&at, id));
        struct tn_snapshot made = bed_snapshot(&at, last + 1);
        CHECK(strcmp(made.commit_kind, "OVERWRITE") == 0 && !made.changelog_manifest_list);
        rc = revert(&at, id, false, &result, &err); /* is there */
        CHECK_OK(rc, err);
        CHECK(result.snapshot_id == last + 1 && result.added == 0 && latest(&at) == last + 1);
        rc = revert(&at, last, false, &result, &err); /* and back */
        CHECK_OK(rc, err);
        CHECK(shapes_at(&at, last + 2) == shapes_at(&bed, last));
        must_expire(&at);
        CHECK(check_table(&at, false) == last + 2);
        CHECK(shapes_at(&at, last + 2) == shapes_at(&bed, last));
        sim_disk_deinit(&at.disk);
    }
    bed_deinit(&bed);
}

/* The state for which most files must be copied; 0: none must for any. */
static int64_t farthest(int64_t last)
{
    uint64_t most = 0;
    int64_t found = 0;
    for (int64_t id = 1; id < last; id++) {
        struct tn_revert_result result;
        struct tn_err err;
        tn_rc rc = revert(&bed, id, true, &result, &err);
        CHECK_OK(rc, err);
        found = result.added > most ? id : found;
        most = result.added > most ? result.added : most;
    }
    return found;
}

/* The first history from `seed` on in which files must be copied. */
static int64_t make_far_table(uint64_t seed, int64_t *last)
{
    *last = make_table(seed, 12);
    int64_t target = farthest(*last);
    while (target == 0) {
        bed_deinit(&bed);
        *last = make_table(++seed, 12);
        target = farthest(*last);
    }
    return target;
}

/* Before or after, nothing between; the same call again comes to the end, once. */
static void a_cut_leaves_the_table_before_or_after(void)
{
    int64_t last;
    int64_t target = make_far_table(given_number("SEED", 9), &last);
    uint64_t was = shapes_at(&bed, target);
    bool done = false;
    int stands[2] = {0};
    for (uint64_t call = 1; !done; call += STRIDE) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            static struct bed at;
            struct tn_revert_result result;
            struct tn_err err;
            clone_bed(&at, &bed);
            sim_disk_cut_at(&at.disk, at.disk.calls + call);
            tn_rc rc = revert(&at, target, false, &result, &err);
            done = rc == TN_OK;
            sim_disk_reboot(&at.disk, seed);
            int64_t stood = check_table(&at, true);
            CHECK(stood == last + 1 || (stood == last && !done));
            stands[stood - last]++;
            CHECK(shapes_at(&at, stood) == (stood == last ? shapes_at(&bed, last) : was));
            rc = revert(&at, target, false, &result, &err);
            CHECK_OK(rc, err);
            CHECK(latest(&at) == last + 1 && shapes_at(&at, last + 1) == was);
            sim_disk_deinit(&at.disk);
        }
    }
    CHECK(stands[0] > 20 / STRIDE && stands[1] > 0);
    bed_deinit(&bed);
}

/* Each call fails once: then it is as before, without a file more, or done. */
static void a_failure_leaves_nothing_behind(void)
{
    int64_t last;
    int64_t target = make_far_table(given_number("SEED", 4), &last);
    bool done = false;
    for (uint64_t call = 1; !done; call += STRIDE) {
        static struct bed at;
        struct tn_revert_result result;
        struct tn_err err;
        clone_bed(&at, &bed);
        uint64_t before = sim_disk_used(&at.disk);
        uint64_t calls = at.disk.calls;
        sim_disk_fail_call(&at.disk, calls + call, TN_FULL);
        tn_rc rc = revert(&at, target, false, &result, &err);
        done = rc == TN_OK && at.disk.calls - calls < call;
        at.disk.fail_call = 0;
        CHECK(rc == TN_OK || rc == TN_FULL || rc == TN_IO);
        CHECK(latest(&at) == last + (rc == TN_OK) || rc == TN_IO);
        CHECK(rc != TN_FULL || sim_disk_used(&at.disk) == before);
        sim_disk_deinit(&at.disk);
    }
    bed_deinit(&bed);
}

static void what_is_not_there_is_no_target(void)
{
    struct tn_revert_result result;
    struct tn_err err;
    int64_t last = make_table(5, 4);
    tn_rc rc = revert(&bed, last + 1, false, &result, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "there is no snapshot") != NULL);
    rc = revert(&bed, last, false, &result, &err);
    CHECK_OK(rc, err);
    CHECK(result.snapshot_id == last && latest(&bed) == last);
    bed_deinit(&bed);
}

static const struct test tests[] = {
    TEST(table_has_the_state_of_then_and_goes_on),
    TEST(a_cut_leaves_the_table_before_or_after),
    TEST(a_failure_leaves_nothing_behind),
    TEST(what_is_not_there_is_no_target),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
