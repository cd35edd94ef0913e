/* Tags on tables of random commits: they keep what they reach, and let all of it go. */
#include "commit/tag.h"

#include "given.h"
#include "reach.h"

static struct bed bed;
static struct model model;

static tn_rc make_tag(struct bed *at, struct tn_worker *worker, const char *name, int64_t id,
                      int64_t retained_ms, struct tn_err *err)
{
    (void)at;
    int64_t made = 0;
    struct tn_tag_spec spec = {
        .root = ROOT, .name = name, .snapshot_id = id, .retained_ms = retained_ms};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_tag_make(&spec, worker, &made, err);
    CHECK(tn_arena_mark(&worker->arena) == mark);
    CHECK(rc != TN_OK || id == 0 || made == id);
    return rc;
}

static void must_make(struct bed *at, const char *name, int64_t id, int64_t retained_ms)
{
    struct tn_err err;
    tn_rc rc = make_tag(at, &at->worker, name, id, retained_ms, &err);
    CHECK_OK(rc, err);
}

static tn_rc remove_tag(struct bed *at, const char *name, bool dry_run,
                        struct tn_expire_result *result, struct tn_err *err)
{
    struct tn_expire_spec spec = {
        .root = ROOT, .schema = &at->schema, .options = &at->options, .dry_run = dry_run};
    size_t mark = tn_arena_mark(&at->worker.arena);
    *result = (struct tn_expire_result){0};
    tn_rc rc = tn_tag_remove(&spec, name, &at->worker, result, err);
    CHECK(tn_arena_mark(&at->worker.arena) == mark);
    return rc;
}

static struct tn_expire_result must_remove(struct bed *at, const char *name)
{
    struct tn_expire_result result;
    struct tn_expire_result dry;
    struct tn_err err;
    tn_rc rc = remove_tag(at, name, true, &dry, &err);
    CHECK_OK(rc, err);
    rc = remove_tag(at, name, false, &result, &err);
    CHECK_OK(rc, err);
    CHECK(dry.data_files == result.data_files && dry.metadata_files == result.metadata_files);
    return result;
}

static tn_rc expire(struct bed *at, struct tn_expire_result *result, struct tn_err *err)
{
    struct tn_expire_spec spec = {.root = ROOT, .schema = &at->schema, .options = &at->options};
    return tn_expire(&spec, &at->worker, result, err);
}

static struct tn_expire_result must_expire(struct bed *at)
{
    struct tn_expire_result result;
    struct tn_err err;
    tn_rc rc = expire(at, &result, &err);
    CHECK_OK(rc, err);
    return result;
}

static bool has_tag(struct bed *at, const char *name)
{
    struct tn_tag tag;
    struct tn_err err;
    size_t mark = tn_arena_mark(&at->own);
    tn_rc rc = tn_tag_read(&at->disk.io, ROOT, name, &at->own, &tag, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    tn_arena_reset(&at->own, mark);
    return rc == TN_OK;
}

static int64_t latest(struct bed *at)
{
    int64_t id;
    struct tn_err err;
    tn_rc rc = tn_snapshot_latest(&at->disk.io, ROOT, &at->own, &id, &err);
    CHECK_OK(rc, err);
    return id;
}

static void make_table(uint64_t seed, int commits, enum tn_changelog_producer producer)
{
    model = (struct model){.key = 1};
    bed_init(&bed, seed, false);
    bed.options.manifest_merge_min = 3;
    bed.options.changelog_producer = producer;
    for (int i = 0; i < commits; i++) {
        random_commit(&bed, &model, &seed, i);
    }
}

/* ---- */

enum { NAME_COUNT = 6 };

/* Tags come and go at random between commits and expiries, several of one snapshot now and then. */
static void what_only_a_removed_tag_reached_goes(void)
{
    uint32_t removed_files = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        static const char *const names[NAME_COUNT] = {"a", "b", "c", "d e", "f.g", "h"};
        uint64_t random = seed;
        make_table(seed, 6, seed % 2 ? TN_CHANGELOG_NONE : TN_CHANGELOG_INPUT);
        bed.options.snapshot_retained_min = 1 + (int32_t)seed % 3;
        bed.options.changelog_retained_min = seed % 4 < 2 ? 0 : 15;
        for (int step = 0; step < 60; step++) {
            const char *name = names[random_below(&random, NAME_COUNT)];
            if (has_tag(&bed, name)) {
                removed_files += must_remove(&bed, name).data_files;
                CHECK(!has_tag(&bed, name));
            } else {
                uint32_t back = random_below(&random, (uint32_t)bed.options.snapshot_retained_min);
                must_make(&bed, name, latest(&bed) - back, 0);
                CHECK(has_tag(&bed, name));
            }
            (void)check_table(&bed, false);
            if (random_below(&random, 2) == 0) {
                random_commit(&bed, &model, &random, 100 + step);
            }
            (void)must_expire(&bed);
            (void)check_table(&bed, false);
        }
        for (int i = 0; i < NAME_COUNT; i++) {
            removed_files += has_tag(&bed, names[i]) ? must_remove(&bed, names[i]).data_files : 0;
        }
        (void)check_table(&bed, false);
        bed_deinit(&bed);
    }
    CHECK(removed_files > 100);
}

static struct tn_bytes text_of(const char *dir, const char *name)
{
    struct tn_bytes text;
    struct tn_err err;
    tn_rc rc = tn_io_read_all(&bed.disk.io, tn_name_in(&bed.own, ROOT, dir, name), 1 << 16,
                              &bed.own, &text, &err);
    CHECK_OK(rc, err);
    return text;
}

/* Without a retention it is the snapshot's, byte for byte. */
static void a_tag_has_the_text_of_its_snapshot(void)
{
    static const char added[] = "\n  \"tagCreateTime\" : [ ";
    make_table(3, 4, TN_CHANGELOG_NONE);
    must_make(&bed, "newest", 0, 0);
    must_make(&bed, "plain", 2, 0);
    int64_t from = bed.clock.clock.vtable->local_ms(&bed.clock.clock);
    must_make(&bed, "timed", 2, 90 * 1000 + 5);
    int64_t to = bed.clock.clock.vtable->local_ms(&bed.clock.clock);
    struct tn_bytes snapshot = text_of(TN_DIR_SNAPSHOT, "snapshot-2");
    CHECK(tn_bytes_equal(text_of(TN_DIR_TAG, "tag-plain"), snapshot));
    struct tn_bytes timed = text_of(TN_DIR_TAG, "tag-timed");
    CHECK(memcmp(timed.data, snapshot.data, snapshot.size - 2) == 0);
    CHECK(timed.data[snapshot.size - 2] == ',');
    CHECK(memcmp(timed.data + snapshot.size - 1, added, sizeof added - 1) == 0);
    CHECK(strstr((const char *)timed.data, "\"tagTimeRetained\" : 90.005000000\n}") != NULL);
    struct tn_tag tag;
    struct tn_err err;
    tn_rc rc = tn_tag_read(&bed.disk.io, ROOT, "timed", &bed.own, &tag, &err);
    CHECK_OK(rc, err);
    CHECK(tag.expires && tag.snapshot.id == 2);
    CHECK(tag.expires_ms >= from + 90005 && tag.expires_ms <= to + 90005);
    rc = tn_tag_read(&bed.disk.io, ROOT, "newest", &bed.own, &tag, &err);
    CHECK_OK(rc, err);
    CHECK(!tag.expires && tag.snapshot.id == latest(&bed));
    bed_deinit(&bed);
}

/* Paimon's own, whose time ends with what is not nought. */
static void times_are_read_as_java_writes_them(void)
{
    static const struct {
        const char *time;
        const char *retained;
        int64_t ms; /* -1: CORRUPT */
    } cases[] = {
        {"[ 2026, 11, 29, 14, 40, 6, 288925430 ]", "86400.000000000", 1796049606288},
        {"[2026,11,29,14,40]", "0.5", 1795963200500},
        {"[2024,2,29,0,0,1]", "1", 1709164802000},
        {"[2026,2,29,0,0]", "1", -1},
        {"[2026,13,1,0,0]", "1", -1},
        {"[2026,1,1]", "1", -1},
        {"[2026,1,1,0,0,0,0,0]", "1", -1},
        {"[2026,1,1,0,0,-1]", "1", -1},
        {"\"2026-01-01\"", "1", -1},
        {"[2026,1,1,0,0]", "\"1\"", -1},
        {"[2026,1,1,0,0]", "-1", -1},
    };
    make_table(3, 1, TN_CHANGELOG_NONE);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_bytes plain = text_of(TN_DIR_SNAPSHOT, "snapshot-1");
        const char *name = tn_arena_format(&bed.own, "tag-%zu", i);
        const char *text = tn_arena_format(
            &bed.own, "%.*s,\n  \"tagCreateTime\" : %s,\n  \"tagTimeRetained\" : %s\n}",
            (int)plain.size - 2, (const char *)plain.data, cases[i].time, cases[i].retained);
        put_file(&bed, TN_DIR_TAG, name, tn_bytes_of(text));
        struct tn_tag tag;
        struct tn_err err;
        tn_rc rc = tn_tag_read(&bed.disk.io, ROOT, name + 4, &bed.own, &tag, &err);
        CHECK(rc == (cases[i].ms < 0 ? TN_CORRUPT : TN_OK));
        CHECK(rc != TN_OK || (tag.expires && tag.expires_ms == cases[i].ms));
    }
    bed_deinit(&bed);
}

static void names_and_snapshots_are_refused(void)
{
    static const struct {
        const char *name;
        int64_t id;
        tn_rc rc;
        const char *text;
    } cases[] = {
        {"", 1, TN_INVALID, "no tag's name"},
        {"   ", 1, TN_INVALID, "no tag's name"},
        {"a/b", 1, TN_INVALID, "no tag's name"},
        {"a\nb", 1, TN_INVALID, "no tag's name"},
        {"17", 1, TN_INVALID, "taken for a snapshot"},
        {"there", 2, TN_EXISTS, "already"},
        {"x", 99, TN_INVALID, "there is no snapshot 99"},
        {"x", 1, TN_INVALID, "there is no snapshot 1"},
        {"again", 2, TN_OK, ""},
    };
    static char longest[TN_TAG_NAME_MAX + 2];
    make_table(3, 8, TN_CHANGELOG_NONE);
    must_make(&bed, "there", 2, 0);
    (void)must_expire(&bed);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_err err = {0};
        tn_rc rc = make_tag(&bed, &bed.worker, cases[i].name, cases[i].id, 0, &err);
        CHECK(rc == cases[i].rc && strstr(err.text, cases[i].text) != NULL);
    }
    memset(longest, 'n', TN_TAG_NAME_MAX + 1);
    struct tn_err err = {0};
    tn_rc rc = make_tag(&bed, &bed.worker, longest, 2, 0, &err);
    CHECK(rc == TN_INVALID);
    must_make(&bed, longest + 1, 2, 0);
    struct tn_expire_result result;
    rc = remove_tag(&bed, "nobody", false, &result, &err);
    CHECK(rc == TN_ABSENT);
    (void)check_table(&bed, false);
    (void)must_remove(&bed, "there");
    (void)must_remove(&bed, longest + 1);
    (void)must_remove(&bed, "again"); /* made of the other one: it was whole until now */
    (void)check_table(&bed, false);
    bed_deinit(&bed);
}

/* By the local wall clock, and with what they alone kept. */
static void tags_go_when_their_time_is_over(void)
{
    make_table(5, 3, TN_CHANGELOG_NONE);
    must_make(&bed, "long", 1, 3600 * 1000);
    must_make(&bed, "short", 2, 60 * 1000);
    must_make(&bed, "shorter", 2, 1000);
    must_make(&bed, "stays", 1, 0);
    for (int i = 0; i < 8; i++) {
        uint64_t random = (uint64_t)i;
        random_commit(&bed, &model, &random, 100 + i);
    }
    CHECK(must_expire(&bed).tags == 0);
    sim_clock_advance_ms(&bed.clock, 30 * 1000);
    CHECK(must_expire(&bed).tags == 1 && has_tag(&bed, "short") && !has_tag(&bed, "shorter"));
    sim_clock_advance_ms(&bed.clock, 31 * 1000);
    CHECK(must_expire(&bed).tags == 1 && !has_tag(&bed, "short") && has_tag(&bed, "long"));
    (void)check_table(&bed, false);
    sim_clock_advance_ms(&bed.clock, 3600 * 1000);
    CHECK(must_expire(&bed).tags == 1 && has_tag(&bed, "stays"));
    (void)check_table(&bed, false);
    bed_deinit(&bed);
}

/* More than a small set takes: added, tagged, compacted away. */
static void replace_many_files(void)
{
    enum { MANY = 1200 };
    static struct tn_entry added[MANY];
    static struct tn_commit_removal removed[MANY];
    uint64_t random = 1;
    struct tn_commit_spec spec = bed_spec(&bed, 50);
    spec.added = added;
    spec.added_count = MANY;
    for (int i = 0; i < MANY; i++) {
        added[i] = new_file(&bed, &model, &random, 0);
        removed[i] = bed_removal(&added[i]);
    }
    (void)must_commit(&bed, &spec);
    must_make(&bed, "t", 0, 0);
    spec = bed_spec(&bed, 51);
    spec.append_even_if_empty = true;
    spec.removed = removed;
    spec.removed_count = MANY;
    (void)must_commit(&bed, &spec);
}

/* In one pass or several, or not at all: then the tag is as it was. */
static void any_memory_will_do(void)
{
    int done = 0;
    int refused = 0;
    make_table(7, 2, TN_CHANGELOG_NONE);
    replace_many_files();
    (void)must_expire(&bed);
    for (size_t size = 4 << 10; size < 1 << 20; size += size / 16) {
        static struct bed small;
        struct tn_expire_result result;
        struct tn_err err;
        clone_bed(&small, &bed);
        tn_arena_init(&small.worker.arena, malloc(size), size);
        small.worker.plans = NULL;
        tn_rc rc = remove_tag(&small, "t", false, &result, &err);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        CHECK(has_tag(&small, "t") == (rc != TN_OK));
        done += rc == TN_OK;
        refused += rc != TN_OK;
        free(small.worker.arena.base);
        small.worker = bed.worker;
        small.worker.io = &small.disk.io;
        (void)check_table(&small, false);
        sim_disk_deinit(&small.disk);
    }
    CHECK(done > 5 && refused > 5);
    bed_deinit(&bed);
}

/* ---- at the same time ---- */

struct meanwhile {
    struct bed *other; /* its worker, on the same disk */
    int64_t id;
    int wait; /* calls */
    tn_rc rc;
    bool done;
};

static void tag_meanwhile(void *user, struct sim_disk *disk)
{
    struct meanwhile *m = user;
    struct tn_err err;
    if (m->done || m->wait-- > 0) {
        return;
    }
    m->done = true;
    sim_disk_watch(disk, NULL, NULL);
    m->rc = make_tag(m->other, &m->other->worker, "new", m->id, 0, &err);
    CHECK(m->rc == TN_OK || m->rc == TN_AGAIN || m->rc == TN_INVALID);
}

/* A tag is made before each call of an expiry (which takes no lock): it is whole, or refused. */
static void a_tag_that_is_made_during_expiry_is_whole(void)
{
    static struct bed table;
    static struct bed other;
    int outcomes[2] = {0};
    bed_init(&other, 9, false);
    make_table(13, 10, TN_CHANGELOG_NONE);
    for (int wait = 0;; wait++) {
        clone_bed(&table, &bed);
        other.worker.io = &table.disk.io;
        struct meanwhile m = {&other, latest(&bed) - 2, wait, TN_OK, false};
        sim_disk_watch(&table.disk, tag_meanwhile, &m);
        struct tn_expire_result result;
        struct tn_err err;
        tn_rc rc = expire(&table, &result, &err);
        sim_disk_watch(&table.disk, NULL, NULL);
        CHECK(rc == TN_OK || (rc == TN_AGAIN && m.done));
        CHECK(has_tag(&table, "new") == (m.done && m.rc == TN_OK));
        (void)check_table(&table, true);
        (void)must_expire(&table);
        (void)check_table(&table, false);
        sim_disk_deinit(&table.disk);
        if (!m.done) {
            break;
        }
        outcomes[m.rc == TN_OK]++;
    }
    CHECK(outcomes[0] > 5 && outcomes[1] > 0);
    bed_deinit(&other);
    bed_deinit(&bed);
}

static void expire_meanwhile(void *user, struct sim_disk *disk)
{
    struct meanwhile *m = user;
    struct tn_err err;
    struct tn_expire_result result;
    if (m->done || m->wait-- > 0) {
        return;
    }
    m->done = true;
    sim_disk_watch(disk, NULL, NULL);
    m->rc = expire(m->other, &result, &err);
    CHECK(m->rc == TN_OK);
}

/* The other way round: all of an expiry before each call of whoever makes a tag. */
static void an_expiry_while_a_tag_is_made_leaves_it_whole(void)
{
    static struct bed table;
    static struct bed other;
    int outcomes[2] = {0};
    bed_init(&other, 9, false);
    make_table(13, 10, TN_CHANGELOG_NONE);
    for (int wait = 0;; wait++) {
        struct tn_err err;
        clone_bed(&table, &bed);
        other.worker.io = &table.disk.io;
        struct meanwhile m = {&other, 0, wait, TN_OK, false};
        sim_disk_watch(&table.disk, expire_meanwhile, &m);
        tn_rc rc = make_tag(&table, &table.worker, "new", latest(&bed) - 2, 0, &err);
        sim_disk_watch(&table.disk, NULL, NULL);
        CHECK(rc == TN_OK || (rc == TN_AGAIN && m.done));
        CHECK(has_tag(&table, "new") == (rc == TN_OK));
        (void)must_expire(&table);
        (void)check_table(&table, rc != TN_OK); /* what it kept for a moment is an orphan now */
        sim_disk_deinit(&table.disk);
        if (!m.done) {
            break;
        }
        outcomes[rc == TN_OK]++;
    }
    CHECK(outcomes[0] > 0 && outcomes[1] > 0);
    bed_deinit(&other);
    bed_deinit(&bed);
}

/* ---- cuts ---- */

typedef tn_rc act_fn(struct bed *at, struct tn_err *err);

static tn_rc act_make(struct bed *at, struct tn_err *err)
{
    return make_tag(at, &at->worker, "new", latest(at), 5000, err);
}

static tn_rc act_remove(struct bed *at, struct tn_err *err)
{
    struct tn_expire_result result;
    return remove_tag(at, "old", false, &result, err);
}

/* Before each call that changes something: the tag is there and whole, or it isn't there. */
static void cut_everywhere(act_fn *act, const char *name)
{
    static struct bed whole;
    struct tn_err err;
    int cuts = 0;
    int there = 0;
    clone_bed(&whole, &bed);
    tn_rc rc = act(&whole, &err);
    CHECK_OK(rc, err);
    for (uint64_t call = 1; call <= whole.disk.calls; call++) {
        for (uint64_t seed = 0; sim_disk_call_changes(&whole.disk, call) && seed < 4; seed++) {
            static struct bed cut;
            clone_bed(&cut, &bed);
            sim_disk_cut_at(&cut.disk, call);
            rc = act(&cut, &err);
            CHECK(rc != TN_OK || cut.disk.off);
            sim_disk_reboot(&cut.disk, seed);
            there += has_tag(&cut, name);
            (void)check_table(&cut, true);
            sim_disk_deinit(&cut.disk);
            cuts++;
        }
    }
    CHECK(cuts > 8 && there > 0 && there < cuts);
    sim_disk_deinit(&whole.disk);
}

static void a_cut_leaves_a_tag_whole_or_none(void)
{
    make_table(17, 5, TN_CHANGELOG_NONE);
    must_make(&bed, "old", 3, 0);
    for (int i = 0; i < 8; i++) {
        uint64_t random = 70 + (uint64_t)i;
        random_commit(&bed, &model, &random, 100 + i);
    }
    (void)must_expire(&bed);
    cut_everywhere(act_make, "new");
    cut_everywhere(act_remove, "old");
    bed_deinit(&bed);
}

static tn_rc act_expire(struct bed *at, struct tn_err *err)
{
    struct tn_expire_result result;
    return expire(at, &result, err);
}

/* Its retention is another one than that of whoever was killed. */
static tn_rc act_keep(struct bed *at, struct tn_err *err)
{
    at->options.snapshot_retained_min = 6;
    return act_expire(at, err);
}

static tn_rc act_remove_other(struct bed *at, struct tn_err *err)
{
    struct tn_expire_result result;
    return remove_tag(at, "other", false, &result, err);
}

/* One process is killed before call number `call`, the next one is through, and the power goes. */
static void kill_and_cut(act_fn *killed, act_fn *next, uint64_t call, uint64_t seed)
{
    static struct bed at;
    struct tn_err err;
    clone_bed(&at, &bed);
    sim_disk_cut_at(&at.disk, call);
    (void)killed(&at, &err);
    CHECK(at.disk.off);
    at.disk.off = false; /* what it did is there, and may not last */
    sim_disk_kill(&at.disk);
    tn_rc rc = next(&at, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    sim_disk_reboot(&at.disk, seed);
    (void)check_table(&at, true);
    sim_disk_deinit(&at.disk);
}

/* Each of the calls that change something, and a power cut of another seed for each. */
static void kill_everywhere(act_fn *killed, act_fn *next)
{
    static struct bed whole;
    struct tn_err err;
    uint64_t seed = given_number("SEED", 0);
    clone_bed(&whole, &bed);
    tn_rc rc = killed(&whole, &err);
    CHECK_OK(rc, err);
    for (uint64_t call = 1; call <= whole.disk.calls; call++) {
        if (sim_disk_call_changes(&whole.disk, call)) {
            kill_and_cut(killed, next, call, seed++);
        }
    }
    sim_disk_deinit(&whole.disk);
}

/* What somebody took away who was killed before he had made that durable comes back: then its files
 * must be there, whoever came between. */
static void what_comes_back_with_the_power_is_whole(void)
{
    static act_fn *const acts[] = {act_expire, act_keep, act_remove, act_remove_other};
    make_table(given_number("SEED", 1) + 18, 10, TN_CHANGELOG_NONE);
    must_make(&bed, "old", latest(&bed) - 7, 0);
    must_make(&bed, "other", latest(&bed) - 5, 0);
    sim_disk_reboot(&bed.disk, SIM_SEED_ALL);
    for (size_t i = 0; i < COUNT(acts) * COUNT(acts); i++) {
        kill_everywhere(acts[i / COUNT(acts)], acts[i % COUNT(acts)]);
    }
    bed_deinit(&bed);
}

static const struct test tests[] = {
    TEST(what_only_a_removed_tag_reached_goes),
    TEST(a_tag_has_the_text_of_its_snapshot),
    TEST(times_are_read_as_java_writes_them),
    TEST(names_and_snapshots_are_refused),
    TEST(tags_go_when_their_time_is_over),
    TEST(any_memory_will_do),
    TEST(a_tag_that_is_made_during_expiry_is_whole),
    TEST(an_expiry_while_a_tag_is_made_leaves_it_whole),
    TEST(a_cut_leaves_a_tag_whole_or_none),
    TEST(what_comes_back_with_the_power_is_whole),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
