/* Rollback on tables of random commits: the chain ends at the target, at any cut at one of those
 * between. */
#include "commit/rollback.h"

#include "reach.h"

static struct bed bed;
static struct model model;

static tn_rc rollback(struct bed *at, const char *tag, int64_t id, bool dry_run,
                      struct tn_rollback_result *result, struct tn_err *err)
{
    struct tn_rollback_spec spec = {
        .root = ROOT, .tag = tag, .snapshot_id = id, .dry_run = dry_run};
    size_t mark = tn_arena_mark(&at->worker.arena);
    tn_rc rc = tn_rollback(&spec, &at->worker, result, err);
    CHECK(tn_arena_mark(&at->worker.arena) == mark);
    return rc;
}

static struct tn_rollback_result must_rollback(struct bed *at, const char *tag, int64_t id)
{
    struct tn_rollback_result dry;
    struct tn_rollback_result result;
    struct tn_err err;
    tn_rc rc = rollback(at, tag, id, true, &dry, &err);
    CHECK_OK(rc, err);
    rc = rollback(at, tag, id, false, &result, &err);
    CHECK_OK(rc, err);
    CHECK(memcmp(&dry, &result, sizeof dry) == 0);
    return result;
}

static void must_make(const char *name, int64_t id)
{
    int64_t made;
    struct tn_err err;
    struct tn_tag_spec spec = {.root = ROOT, .name = name, .snapshot_id = id};
    tn_rc rc = tn_tag_make(&spec, &bed.worker, &made, &err);
    CHECK_OK(rc, err);
}

static void must_expire(struct bed *at)
{
    struct tn_expire_spec spec = {.root = ROOT, .schema = &at->schema, .options = &at->options};
    struct tn_expire_result result;
    struct tn_err err;
    tn_rc rc = tn_expire(&spec, &at->worker, &result, &err);
    CHECK_OK(rc, err);
}

static bool has(struct bed *at, const char *folder, const char *name)
{
    struct tn_err err;
    uint64_t size;
    const char *path = tn_name_in(&at->own, ROOT, folder, name);
    tn_rc rc = at->disk.io.vtable->stat(&at->disk.io, path, &size, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    return rc == TN_OK;
}

static const char *live_at(struct bed *at, int64_t id)
{
    struct tn_snapshot s = bed_snapshot(at, id);
    return tn_arena_text(&at->own, tn_bytes_of(bed_live(at, &s)));
}

static void commit(struct bed *at, uint64_t seed, int commits)
{
    for (int i = 0; i < commits; i++) {
        random_commit(at, &model, &seed, 100 + i);
    }
}

static int64_t make_telling_table(uint64_t seed, int commits, enum tn_changelog_producer producer)
{
    int64_t id;
    struct tn_err err;
    model = (struct model){.key = 1};
    bed_init(&bed, seed, false);
    bed.options.changelog_producer = producer;
    bed.options.manifest_merge_min = 3;
    commit(&bed, seed, commits);
    tn_rc rc = tn_snapshot_latest(&bed.disk.io, ROOT, &bed.own, &id, &err);
    CHECK_OK(rc, err);
    return id;
}

static int64_t make_table(uint64_t seed, int commits)
{
    return make_telling_table(seed, commits, TN_CHANGELOG_NONE);
}

/* Hints say what the folder says; `first` 0: there never was an EARLIEST. */
static void check_hints(struct bed *at, int64_t first, int64_t last)
{
    static const char *const names[] = {"LATEST", "EARLIEST"};
    const int64_t ids[] = {last, first};
    for (int i = 0; i < (first > 0 ? 2 : 1); i++) {
        struct tn_bytes text;
        struct tn_err err;
        const char *path = tn_name_in(&at->own, ROOT, TN_DIR_SNAPSHOT, names[i]);
        tn_rc rc = tn_io_read_all(&at->disk.io, path, 64, &at->own, &text, &err);
        CHECK_OK(rc, err);
        CHECK(strcmp((const char *)text.data, tn_arena_format(&at->own, "%" PRId64, ids[i])) == 0);
    }
}

/* ---- */

/* To each snapshot in turn; then the table goes on, and expires. */
static void the_chain_ends_at_the_target(void)
{
    int64_t last = make_table(3, 12);
    must_make("early", 2);
    must_make("late", last);
    for (int64_t id = 1; id <= last; id++) {
        static struct bed at;
        clone_bed(&at, &bed);
        const char *live = live_at(&at, id);
        struct tn_rollback_result result = must_rollback(&at, NULL, id);
        CHECK(result.snapshot_id == id && result.latest_id == last && !result.made_again);
        CHECK(result.snapshots == (uint32_t)(last - id));
        CHECK((int)result.tags == (id < 2) + (id < last));
        CHECK(check_table(&at, true) == id);
        CHECK(strcmp(live_at(&at, id), live) == 0);
        CHECK(has(&at, TN_DIR_TAG, "tag-early") == (id >= 2));
        check_hints(&at, 0, id);
        struct tn_commit_spec spec = bed_spec(&at, 500);
        spec.append_even_if_empty = true;
        CHECK(must_commit(&at, &spec).append_id == id + 1);
        must_expire(&at);
        CHECK(check_table(&at, true) == id + 1);
        sim_disk_deinit(&at.disk);
    }
    bed_deinit(&bed);
}

/* By the tag's name, or by the number of its snapshot; its changelog is gone. */
static void a_tag_brings_an_expired_snapshot_back(void)
{
    int told = 0;
    for (int way = 0; way < 2 + 2 * 8; way++) {
        bool by_number = way % 2 != 0;
        (void)make_telling_table(5 + (uint64_t)way / 2, 5,
                                 way < 2 ? TN_CHANGELOG_NONE : TN_CHANGELOG_INPUT);
        told += bed_snapshot(&bed, 3).changelog_manifest_list != NULL;
        must_make("old", 3);
        must_make("older", 2);
        const char *live = live_at(&bed, 3);
        commit(&bed, 6, 4);
        bed.options.snapshot_retained_min = 3;
        must_expire(&bed);
        struct tn_rollback_result result = must_rollback(&bed, by_number ? NULL : "old", 3);
        CHECK(result.made_again && result.snapshots == 3 && result.tags == 0);
        CHECK(check_table(&bed, true) == 3);
        CHECK(strcmp(live_at(&bed, 3), live) == 0);
        CHECK(has(&bed, TN_DIR_TAG, "tag-old") && has(&bed, TN_DIR_TAG, "tag-older"));
        check_hints(&bed, 3, 3);
        struct tn_commit_spec spec = bed_spec(&bed, 500);
        spec.append_even_if_empty = true;
        for (int64_t id = 4; id < 12; id++) {
            CHECK(must_commit(&bed, &spec).append_id == id);
            must_expire(&bed);
            CHECK(check_table(&bed, true) == id);
        }
        bed_deinit(&bed);
    }
    CHECK(told > 0);
}

/* With positions of many inputs; they go into a second tag of it, too. */
static void a_tag_brings_a_long_snapshot_back(void)
{
    enum { SIZE = 36 * 1024 };
    int64_t long_id = make_table(8, 3) + 1;
    char *value = tn_arena_take(&bed.own, SIZE + 1);
    CHECK(value != NULL);
    memset(value, 'x', SIZE);
    value[SIZE] = 0;
    struct tn_json_pair pair = {"long", value};
    struct tn_commit_spec spec = bed_spec(&bed, 500);
    spec.append_even_if_empty = true;
    spec.properties = (struct tn_json_map){&pair, 1};
    CHECK(must_commit(&bed, &spec).append_id == long_id);
    must_make("long", long_id);
    commit(&bed, 9, 4);
    must_expire(&bed);
    must_make("again", long_id);
    struct tn_rollback_result result = must_rollback(&bed, "again", 0);
    CHECK(result.made_again && result.snapshot_id == long_id);
    struct tn_snapshot snapshot = bed_snapshot(&bed, long_id);
    CHECK(snapshot.properties.count == 1 && strcmp(snapshot.properties.pairs[0].value, value) == 0);
    bed_deinit(&bed);
}

static void what_is_not_there_is_no_target(void)
{
    struct tn_rollback_result result;
    struct tn_err err;
    bed_init(&bed, 5, false);
    tn_rc rc = rollback(&bed, NULL, 1, false, &result, &err);
    CHECK(rc == TN_INVALID);
    bed_deinit(&bed);
    int64_t last = make_table(5, 8);
    must_make("newest", last);
    must_expire(&bed);
    rc = rollback(&bed, NULL, 1, false, &result, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "there is no snapshot 1, nor a tag of it") != NULL);
    rc = rollback(&bed, NULL, last + 1, false, &result, &err);
    CHECK(rc == TN_INVALID);
    rc = rollback(&bed, "x", 0, false, &result, &err);
    CHECK(rc == TN_INVALID && strstr(err.text, "there is no tag 'x'") != NULL);
    CHECK(has(&bed, TN_DIR_TAG, "tag-newest") && check_table(&bed, false) == last);
    bed_deinit(&bed);
}

/* ---- cuts ---- */

/* One of `between`, or the newest one of before, is the last; the same call again comes to the end.
 */
static void cut_everywhere(const char *tag, int64_t id)
{
    static struct bed whole;
    struct tn_rollback_result result;
    struct tn_err err;
    int cuts = 0;
    int stands[64] = {0};
    int64_t before = check_table(&bed, true);
    clone_bed(&whole, &bed);
    tn_rc rc = rollback(&whole, tag, id, false, &result, &err);
    CHECK_OK(rc, err);
    CHECK(before < 64);
    for (uint64_t call = 1; call <= whole.disk.calls; call++) {
        for (uint64_t seed = 0; sim_disk_call_changes(&whole.disk, call) && seed < 5; seed++) {
            static struct bed at;
            clone_bed(&at, &bed);
            sim_disk_cut_at(&at.disk, call);
            rc = rollback(&at, tag, id, false, &result, &err);
            CHECK(rc != TN_OK && at.disk.off);
            sim_disk_reboot(&at.disk, seed);
            int64_t stood = check_table(&at, true); /* whole, without a hole */
            CHECK(stood >= id && stood <= before);
            stands[stood]++;
            rc = rollback(&at, tag, id, false, &result, &err);
            CHECK_OK(rc, err);
            CHECK(check_table(&at, true) == id);
            sim_disk_deinit(&at.disk);
            cuts++;
        }
    }
    CHECK(cuts > 20 && stands[before] > 0 && stands[id] > 0);
    sim_disk_deinit(&whole.disk);
}

static void a_cut_leaves_a_chain_without_a_hole(void)
{
    int64_t last = make_table(9, 6);
    must_make("a", 3);
    must_make("b", last - 1);
    cut_everywhere(NULL, 3);
    bed.options.snapshot_retained_min = 3;
    must_expire(&bed);
    cut_everywhere(NULL, last - 2);
    bed_deinit(&bed);
}

/* The first cut of an expiry that leaves what expired below EARLIEST. */
static void expire_in_part(void)
{
    static struct bed at;
    for (uint64_t call = 1;; call++) {
        struct tn_expire_spec spec = {.root = ROOT, .schema = &bed.schema, .options = &bed.options};
        struct tn_expire_result result;
        struct tn_err err;
        int64_t first;
        clone_bed(&at, &bed);
        sim_disk_cut_at(&at.disk, call);
        tn_rc rc = tn_expire(&spec, &at.worker, &result, &err);
        CHECK(rc != TN_OK);
        sim_disk_reboot(&at.disk, SIM_SEED_ALL);
        rc = tn_snapshot_earliest(&at.disk.io, ROOT, &at.own, &first, &err);
        CHECK_OK(rc, err);
        if (first > 1) {
            break;
        }
        sim_disk_deinit(&at.disk);
    }
    sim_disk_deinit(&bed.disk);
    bed = at;
    bed.worker.io = &bed.disk.io;
}

/* Also when an expiry was cut off before, and with changelogs that outlive their snapshots. */
static void a_cut_while_a_tag_comes_back_leaves_a_table(void)
{
    reach_may_end_early = true; /* the newest goes first */
    for (int pieces = 0; pieces < 3; pieces++) {
        int64_t last = make_table(11, 6);
        must_make("a", 3);
        must_make("b", last);
        bed.options.snapshot_retained_min = 2;
        bed.options.changelog_retained_min = pieces == 2 ? 30 : 0;
        if (pieces == 1) {
            expire_in_part();
        } else {
            must_expire(&bed);
        }
        cut_everywhere("a", 3);
        struct tn_rollback_result result = must_rollback(&bed, "a", 0);
        CHECK(result.made_again && result.tags == 1);
        CHECK(result.changelogs == (pieces == 2 ? (uint32_t)last - 2 - 3 : 0));
        CHECK(check_table(&bed, true) == 3);
        bed_deinit(&bed);
    }
}

static const struct test tests[] = {
    TEST(the_chain_ends_at_the_target),        TEST(a_tag_brings_an_expired_snapshot_back),
    TEST(a_tag_brings_a_long_snapshot_back),   TEST(what_is_not_there_is_no_target),
    TEST(a_cut_leaves_a_chain_without_a_hole), TEST(a_cut_while_a_tag_comes_back_leaves_a_table),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
