/* What a tail tells: a follower of random tables ends with what the model says, from every snapshot
 * on; and what it says of snapshots that are not there, that go, or that live on as changelogs. */
#include "changelog/tail.h"

#include "follower.h"

static struct table t;
static struct tn_tail tail;
static struct follower follower;

static uint64_t seed_of(uint64_t number)
{
    const char *seed = getenv("SEED");
    return (seed ? strtoull(seed, NULL, 10) : 1) * 1000 + number;
}

static void open_tail(enum tn_tail_source source)
{
    struct tn_tail_spec spec = {.scan = &t.spec, .source = source};
    tn_rc rc = tn_tail_open(&tail, &spec, &t.engine.own, table_worker(&t), &t.err);
    CHECK_OK(rc, t.err);
}

/* One snapshot's changes to the follower; the worker is left as it was. */
static tn_rc tell(int64_t id)
{
    size_t used = table_worker(&t)->arena.used;
    tn_rc rc = tn_tail_begin(&tail, id, &t.err);
    while (rc == TN_OK) {
        struct tn_kv kv;
        rc = tn_tail_next(&tail, &kv, &t.err);
        if (rc == TN_OK) {
            follower_apply(&follower, &tail.projection.layout, &kv);
        }
    }
    bool whole = tail.begun && rc == TN_ABSENT;
    tn_tail_end(&tail);
    CHECK(table_worker(&t)->arena.used == used);
    return whole ? TN_OK : rc;
}

static void follow_from(int64_t first)
{
    follower_begin(&follower, &t.scenario, table_position(&t, first));
    for (int64_t id = first + 1; id <= t.last; id++) {
        tn_rc rc = tell(id);
        CHECK_OK(rc, t.err);
        follower_check(&follower, table_position(&t, id));
    }
}

static void a_follower_from_any_snapshot_has_what_the_table_has(void)
{
    uint64_t told = 0;
    for (uint64_t i = 0; i < 100; i++) {
        table_open(&t, seed_of(i));
        open_tail(TN_TAIL_DELTA);
        for (int64_t id = t.first; id <= t.last; id++) {
            follow_from(id);
            told += follower.told;
        }
        table_close(&t);
    }
    CHECK(told > 100);
}

static void what_is_not_there_is_said(void)
{
    for (uint64_t i = 0; i < 5; i++) {
        table_open(&t, seed_of(i));
        open_tail(TN_TAIL_DELTA);
        CHECK(tell(t.last + 1) == TN_ABSENT);
        CHECK(tell(t.last + 2) == TN_INVALID && strstr(t.err.text, "beyond the latest"));
        CHECK(t.first == 1 || (tell(t.first - 1) == TN_INVALID &&
                               strstr(t.err.text, "has expired; the earliest is")));
        table_close(&t);
    }
}

static void a_table_without_snapshots_waits_for_the_first(void)
{
    static struct bed_scenario s;
    struct tn_err err = {0};
    int64_t first;
    int64_t last;
    bed_scenario_init(&s, 1, 1);
    sim_disk_init(&t.disk, BED_DISK_SIZE);
    bed_create(&t.engine, &t.disk.io, &s);
    table_read(&t);
    open_tail(TN_TAIL_DELTA);
    CHECK(tn_tail_range(&t.disk.io, BED_ROOT, &t.engine.own, &first, &last, &err) == TN_ABSENT);
    CHECK(tell(1) == TN_ABSENT);
    CHECK(tell(2) == TN_INVALID);
    sim_disk_deinit(&t.disk);
}

/* ---- changelogs that outlive their snapshots ---- */

static void move_to_changelog(int64_t id)
{
    char from[80];
    char to[80];
    struct tn_bytes text;
    struct tn_io *io = &t.disk.io;
    (void)snprintf(from, sizeof from, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
    (void)snprintf(to, sizeof to, BED_ROOT "/changelog/changelog-%" PRId64, id);
    tn_rc rc = io->vtable->make_dir(io, BED_ROOT "/changelog", &t.err);
    CHECK_OK(rc, t.err);
    rc = tn_io_read_all(io, from, 1 << 16, &t.engine.own, &text, &t.err);
    CHECK_OK(rc, t.err);
    rc = tn_io_write_new(io, to, text, &t.err);
    CHECK_OK(rc, t.err);
    rc = io->vtable->unlink(io, from, &t.err);
    CHECK_OK(rc, t.err);
}

static void move_earliest(int64_t id)
{
    tn_rc rc = tn_snapshot_hint(&t.disk.io, BED_ROOT, "EARLIEST", id, &t.engine.own, &t.err);
    CHECK_OK(rc, t.err);
}

static void changelogs_stand_for_snapshots_that_expired(void)
{
    uint64_t tables = 0;
    for (uint64_t i = 0; tables < 5; i++) {
        int64_t first;
        int64_t last;
        table_open(&t, seed_of(i));
        if (t.last - t.first >= 2) {
            uint32_t position = table_position(&t, t.first);
            int64_t middle = t.first + 2;
            for (int64_t id = t.first; id < middle; id++) {
                move_to_changelog(id);
            }
            move_earliest(middle);
            tn_rc rc = tn_tail_range(&t.disk.io, BED_ROOT, &t.engine.own, &first, &last, &t.err);
            CHECK_OK(rc, t.err);
            CHECK(first == t.first && last == t.last);
            open_tail(TN_TAIL_DELTA);
            follower_begin(&follower, &t.scenario, position);
            for (int64_t id = t.first + 1; id <= t.last; id++) {
                rc = tell(id);
                CHECK_OK(rc, t.err);
            }
            follower_check(&follower, table_position(&t, t.last));
            tables++;
        }
        table_close(&t);
    }
}

/* Left from a time before: there is a gap behind them. */
static void changelogs_that_lead_nowhere_do_not_count(void)
{
    uint64_t tables = 0;
    for (uint64_t i = 0; tables < 3; i++) {
        int64_t first;
        int64_t last;
        table_open(&t, seed_of(i));
        if (t.last - t.first >= 2) {
            char path[80];
            (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, t.first + 1);
            move_to_changelog(t.first);
            tn_rc rc = t.disk.io.vtable->unlink(&t.disk.io, path, &t.err);
            CHECK_OK(rc, t.err);
            move_earliest(t.first + 2);
            rc = tn_tail_range(&t.disk.io, BED_ROOT, &t.engine.own, &first, &last, &t.err);
            CHECK_OK(rc, t.err);
            CHECK(first == t.first + 2);
            tables++;
        }
        table_close(&t);
    }
}

/* ---- changelog files ---- */

/* The snapshot as a compaction's whose changelog is what it had added. */
static void turn_into_changelog(int64_t id)
{
    char path[80];
    struct tn_snapshot snapshot;
    struct tn_buf text;
    struct tn_io *io = &t.disk.io;
    table_snapshot(&t, id, &snapshot);
    snapshot.changelog_manifest_list = snapshot.delta_manifest_list;
    snapshot.changelog_manifest_list_size = snapshot.delta_manifest_list_size;
    snapshot.commit_kind = "COMPACT";
    tn_buf_init(&text, tn_arena_take(&t.engine.own, 8192), 8192);
    tn_snapshot_encode(&snapshot, &text);
    CHECK(!text.overflow);
    (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
    tn_rc rc = io->vtable->unlink(io, path, &t.err);
    CHECK_OK(rc, t.err);
    rc = tn_io_write_new(io, path, tn_buf_bytes(&text), &t.err);
    CHECK_OK(rc, t.err);
}

static void a_changelog_is_read_whatever_the_snapshots_kind(void)
{
    for (uint64_t i = 0; i < 5; i++) {
        uint64_t told[2];
        table_open(&t, seed_of(i));
        follower_begin(&follower, &t.scenario, 0);
        open_tail(TN_TAIL_CHANGELOG);
        tn_rc rc = tell(t.last); /* has none yet */
        CHECK(rc == TN_OK && follower.told == 0);
        open_tail(TN_TAIL_DELTA);
        for (int64_t id = t.first; id <= t.last; id++) {
            follower.told = 0;
            open_tail(TN_TAIL_DELTA);
            rc = tell(id);
            CHECK_OK(rc, t.err);
            told[0] = follower.told;
            struct tn_snapshot snapshot;
            table_snapshot(&t, id, &snapshot);
            if (strcmp(snapshot.commit_kind, "APPEND") != 0) {
                continue;
            }
            turn_into_changelog(id);
            rc = tell(id); /* no APPEND any more */
            CHECK(rc == TN_OK && follower.told == told[0]);
            open_tail(TN_TAIL_CHANGELOG);
            follower.told = 0;
            rc = tell(id);
            told[1] = follower.told;
            CHECK(rc == TN_OK && told[0] == told[1]);
        }
        table_close(&t);
    }
}

static void the_state_leaves_out_what_changelogs_will_tell(void)
{
    static const struct {
        enum tn_changelog_producer producer;
        int32_t lowest;
    } cases[] = {{TN_CHANGELOG_NONE, 0},
                 {TN_CHANGELOG_INPUT, 0},
                 {TN_CHANGELOG_LOOKUP, 1},
                 {TN_CHANGELOG_FULL_COMPACTION, 5}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_options options = {.changelog_producer = cases[i].producer, .num_levels = 6};
        for (int32_t level = 0; level < 6; level++) {
            struct tn_entry entry = {.file = {.level = level}};
            CHECK(tn_tail_in_state(&options, &entry) == (level >= cases[i].lowest));
        }
        CHECK((tn_tail_source_of(&options) == TN_TAIL_DELTA) == (i == 0));
    }
}

/* ---- files that go ---- */

struct first_file {
    char path[200];
};

static tn_rc note_first(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct first_file *file = user;
    const char *dir;
    tn_rc rc = tn_name_bucket(&t.engine.own, BED_ROOT, t.reader.schema, &t.reader.options,
                              entry->partition, entry->bucket, &dir, err);
    if (rc == TN_OK && entry->kind == TN_ENTRY_ADD && !file->path[0]) {
        (void)snprintf(file->path, sizeof file->path, "%s%s", dir, entry->file.file_name);
    }
    return rc;
}

/* Takes a data file of snapshot t.first + 1 away, and with `all` the snapshot, too. */
static bool take_away(bool all)
{
    char path[80];
    struct tn_snapshot snapshot;
    struct first_file file = {""};
    int64_t id = t.first + 1;
    table_snapshot(&t, id, &snapshot);
    if (strcmp(snapshot.commit_kind, "APPEND") != 0) {
        return false;
    }
    tn_rc rc = tn_list_each(BED_ROOT, snapshot.delta_manifest_list, -1, NULL, table_worker(&t),
                            note_first, &file, &t.err);
    CHECK_OK(rc, t.err);
    rc = t.disk.io.vtable->unlink(&t.disk.io, file.path, &t.err);
    CHECK(rc == TN_OK || rc == TN_ABSENT); /* a compaction and an expiry may have come before */
    (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
    if (all) {
        rc = t.disk.io.vtable->unlink(&t.disk.io, path, &t.err);
        CHECK_OK(rc, t.err);
    }
    return true;
}

static void a_snapshot_that_goes_meanwhile_is_no_damage(void)
{
    int seen = 0;
    for (uint64_t i = 0; seen < 6; i++) {
        bool all = seen % 2;
        table_open(&t, seed_of(i));
        open_tail(TN_TAIL_DELTA);
        tn_rc rc = t.last > t.first ? tn_tail_begin(&tail, t.first + 1, &t.err) : TN_ABSENT;
        if (rc == TN_OK && take_away(all)) {
            struct tn_kv kv;
            rc = tn_tail_next(&tail, &kv, &t.err);
            CHECK(rc == (all ? TN_IO : TN_CORRUPT));
            CHECK(strstr(t.err.text, all ? "expired while it was read" : ".avro"));
            seen++;
        }
        tn_tail_end(&tail);
        table_close(&t);
    }
}

/* Each call fails once: an error comes out, and everything is given back. */
static void every_call_may_fail(void)
{
    uint64_t failed = 0;
    for (uint64_t i = 0; i < 6; i++) {
        bool reached = true;
        table_open(&t, seed_of(i));
        open_tail(TN_TAIL_DELTA);
        for (uint64_t call = 1; reached; call++) {
            uint64_t before = t.disk.calls;
            tn_rc rc = TN_OK;
            follower_begin(&follower, &t.scenario, 0);
            sim_disk_fail_call(&t.disk, before + call, TN_IO);
            for (int64_t id = t.first; rc == TN_OK && id <= t.last; id++) {
                rc = tell(id);
            }
            CHECK(rc == TN_OK || rc == TN_IO);
            failed += rc != TN_OK;
            reached = t.disk.calls >= before + call;
        }
        table_close(&t);
    }
    CHECK(failed > 20);
}

static const struct test tests[] = {
    TEST(a_follower_from_any_snapshot_has_what_the_table_has),
    TEST(what_is_not_there_is_said),
    TEST(a_table_without_snapshots_waits_for_the_first),
    TEST(changelogs_stand_for_snapshots_that_expired),
    TEST(changelogs_that_lead_nowhere_do_not_count),
    TEST(a_changelog_is_read_whatever_the_snapshots_kind),
    TEST(the_state_leaves_out_what_changelogs_will_tell),
    TEST(a_snapshot_that_goes_meanwhile_is_no_damage),
    TEST(every_call_may_fail),
};

int main(int argc, char **argv)
{
    bed_engine_make(&t.engine);
    return run_tests(argc, argv, tests, COUNT(tests));
}
