/* The whole way of a snapshot: the engine commits it, delta finds it, the target sends it, a store
 * that fails takes it, and somebody looks at the lake at every change. Processes are killed, and
 * the power goes, before any call of theirs (lake_world.h). Whatever happens: what the lake shows
 * is whole (lake_reader.h), and when nothing fails any more it is the table. */
#include "given.h"
#include "lake_world.h"

enum { ROUNDS_MIN = 3, STEPS = 24, HOUR_MS = 60 * 60 * 1000 };

struct totals {
    uint64_t worlds;
    uint64_t kills;
    uint64_t power_cuts;
    uint64_t faults;
    uint64_t changes;
    uint64_t snapshots;
    uint64_t in_parts;
    uint64_t part_bytes;
};

static void report(const char *problem)
{
    COMPLAIN("%s\n%s\nrepeat: SEED=%" PRIu64 " CUT_SECONDS=0 tests/upload/lake_world_test", problem,
             lake.scenario.schema, lake.scenario.seed);
    lake_print_lines();
    sim_disk_print_trace(&lake.disk);
    abort();
}

/* A condition of the world, with what led to it. */
#define HOLDS(condition)        \
    do {                        \
        if (!(condition)) {     \
            report(#condition); \
        }                       \
    } while (0)

static void check_reader(void)
{
    if (lake.reader.problem) {
        report(lake.reader.problem);
    }
}

/* What stands in front of a gap goes, and with a tag what it alone held, unless all is there from
 * the first snapshot on. */
static bool may_remove(void)
{
    return lake.reader.below || (lake.reader.earliest > 1 && lake.asked.tags > 0);
}

static void check_removed(void)
{
    const char *problem =
        lake.asked.deletes > 0 ? lake_reader_again(&lake.reader, lake_tags, LAKE_TAGS) : NULL;
    if (problem) {
        report(problem);
    }
}

/* However it ended, a process doesn't send what was there when it began; unless it was forbidden to
 * look, which is how stores that show no list say that something isn't there, or a power cut
 * brought back here what had expired. */
static void check_asked(void)
{
    HOLDS(lake.asked.deletes == 0 || may_remove());
    HOLDS(lake.asked.known == 0 || lake.store.forbade > lake.forbade || lake.power_cuts > 0);
    check_removed();
}

/* ---- faults ---- */

static void draw_faults(void)
{
    uint64_t *random = &lake.random;
    lake.store.mood_percent = random_below(random, 3) == 0 ? 0 : random_below(random, 40);
    lake.net.fault_percent = random_below(random, 3) == 0 ? 0 : random_below(random, 50);
    lake.net.fault_at_max = 1 + random_below(random, 60000);
    lake.net.fragment_max =
        random_below(random, 3) == 0 ? 200 + random_below(random, 2000) : SIM_WINDOW;
}

/* Most processes end early, and some calls into what they do. In some worlds there is power. */
static enum lake_end draw_end(uint64_t *calls)
{
    *calls = random_below(&lake.random, 1U << (3 + random_below(&lake.random, 9)));
    return (enum lake_end)random_below(&lake.random, lake.scenario.seed % 3 == 0 ? 2 : 3);
}

/* ---- the end ---- */

static __attribute__((noinline)) tn_rc read_file(struct tn_io *io, const char *path,
                                                 struct tn_bytes *bytes)
{
    struct tn_err err;
    *bytes = (struct tn_bytes){NULL, 0};
    tn_rc rc = tn_io_read_all(io, path, MODEL_BODY, &lake_engines[LAKE_SYNC].own, bytes, &err);
    HOLDS(rc == TN_OK || rc == TN_ABSENT);
    return rc;
}

static __attribute__((noinline)) void check_same(int64_t id)
{
    char path[64];
    struct tn_bytes ours;
    struct tn_bytes theirs;
    tn_arena_reset(&lake_engines[LAKE_SYNC].own, 0);
    (void)snprintf(path, sizeof path, BED_ROOT "/snapshot/snapshot-%" PRId64, id);
    HOLDS(read_file(&lake.disk.io, path, &ours) == TN_OK);
    HOLDS(read_file(&lake.reader.io.io, path, &theirs) == TN_OK);
    HOLDS(tn_bytes_equal(ours, theirs));
}

static __attribute__((noinline)) void check_tags(void)
{
    for (uint32_t i = 0; i < LAKE_TAGS; i++) {
        char path[64];
        struct tn_bytes ours;
        struct tn_bytes theirs;
        (void)snprintf(path, sizeof path, BED_ROOT "/tag/tag-%s", lake_tags[i]);
        bool here = read_file(&lake.disk.io, path, &ours) == TN_OK;
        bool there = read_file(&lake.reader.io.io, path, &theirs) == TN_OK;
        HOLDS(there || !here);
        HOLDS(here ? tn_bytes_equal(ours, theirs) : !there || lake.store.model.denied);
    }
}

/* The lake is the table. */
static void check_end(void)
{
    int64_t first;
    int64_t last;
    struct tn_err err;
    struct tn_arena *own = &lake_engines[LAKE_SYNC].own;
    HOLDS(lake_is_written());
    tn_rc rc = tn_snapshot_latest(&lake.disk.io, BED_ROOT, own, &last, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_earliest(&lake.disk.io, BED_ROOT, own, &first, &err);
    CHECK_OK(rc, err);
    HOLDS(lake.reader.newest == last && lake.reader.latest == last && lake.reader.gap == 0);
    HOLDS(lake.reader.earliest > 0 && lake.reader.earliest <= last);
    /* What is right below it came late; or nobody knew, in a store that hides what it lacks. */
    int64_t below = lake.reader.earliest - 1;
    bool unseen = lake.store.model.denied && lake.store.forbade > 0;
    HOLDS(unseen || lake.reader.late == below || !lake_reader_has(&lake.reader, below));
    for (int64_t id = first > lake.reader.first ? first : lake.reader.first; id <= last; id++) {
        check_same(id);
    }
    check_tags();
    const char *problem = lake_reader_follow(&lake.reader, lake.scenario.keyed);
    problem = problem ? problem : bed_fsck(&lake_engines[LAKE_READER]);
    if (problem || lake.reader.look.position != lake.scenario.row_count) {
        report(problem ? problem : "it lacks rows");
    }
}

/* Nothing fails, and nobody is in between. */
static void sync_calmly(uint64_t requests_max)
{
    bool met = lake.reader.latest > 0;
    lake_calm();
    lake.beside = 0;
    HOLDS(lake_run(lake_sync, LAKE_LIVES, 0));
    check_reader();
    if (lake.rc != TN_OK) {
        report(lake.err.text);
    }
    const struct lake_asked *asked = &lake.asked;
    HOLDS(asked->requests <= requests_max);
    HOLDS(asked->lists == 0 || !met || may_remove());
    HOLDS(asked->deletes == 0 || may_remove());
    /* A power cut may bring back here what had expired, before what was being sent. */
    HOLDS(asked->twice == 0 || lake.power_cuts > 0);
    HOLDS(asked->bytes - asked->twice == asked->new_bytes - asked->part_bytes);
}

static void end_world(struct totals *totals)
{
    lake.beside = 0;
    lake_calm();
    CHECK(lake_run(lake_write_all, LAKE_LIVES, 0));
    sim_clock_advance_ms(&lake.clock, HOUR_MS); /* a DELETE that was forbidden is asked for again */
    sync_calmly(UINT64_MAX);
    check_end();
    sync_calmly(1);
    totals->worlds++;
    totals->kills += lake.kills;
    totals->power_cuts += lake.power_cuts;
    totals->faults += lake.store.moody;
    totals->changes += lake.reader.changes;
    totals->snapshots += lake.reader.snapshots;
    totals->in_parts += lake.in_parts;
    totals->part_bytes += lake.part_bytes;
    lake_close();
}

/* ---- tests ---- */

static bool may_be(tn_rc rc)
{
    return rc == TN_OK || rc == TN_IO || (rc == TN_AGAIN && lake.result.restarts > 0);
}

static void step(void)
{
    uint64_t calls;
    enum lake_end end = draw_end(&calls);
    bool syncs = random_below(&lake.random, 2) == 0;
    lake.beside = syncs ? random_below(&lake.random, 3) : 0;
    bool through = lake_run(syncs ? lake_sync : lake_write, end, calls);
    check_reader();
    if (syncs) {
        check_asked();
    }
    if (syncs && through && !may_be(lake.rc)) {
        report(lake.err.text);
    }
}

static void run_world(uint64_t seed, struct totals *totals)
{
    lake_open(seed, ROUNDS_MIN + (uint32_t)(seed % 8));
    bool calm = seed % 4 == 0; /* processes end, nothing else fails */
    uint32_t steps = 3 + random_below(&lake.random, STEPS);
    for (uint32_t i = 0; i < steps; i++) {
        if (!calm) {
            draw_faults();
        }
        step();
    }
    end_world(totals);
}

static void lake_is_whole_at_every_change_and_reaches_the_table(void)
{
    struct totals totals = {0};
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(6, 1);
    do {
        run_world(seed++, &totals);
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " worlds: %" PRIu64 " kills, %" PRIu64 " power cuts, %" PRIu64
                 " faults of the store; %" PRIu64 " changes, %" PRIu64 " snapshots; %" PRIu64
                 " files in parts, %" PRIu64 " bytes of them not sent again\n",
                 totals.worlds, totals.kills, totals.power_cuts, totals.faults, totals.changes,
                 totals.snapshots, totals.in_parts, totals.part_bytes);
}

/* ---- what the reader would see ---- */

/* A target that doesn't do what it says. */
enum lie { NEVER_SETTLES, LEAVES_SCHEMAS, LEAVES_A_FILE, GIVES_OTHER_BYTES, LIES };

struct liar {
    struct tn_target target; /* first */
    struct tn_target *inner;
    enum lie lie;
    uint32_t files;
    char last[200]; /* path that was sent */
};
static struct liar liar;

static tn_rc lie_stat(struct tn_target *target, const char *path, uint64_t *size,
                      struct tn_err *err)
{
    (void)target;
    return liar.inner->vtable->stat(liar.inner, path, size, err);
}

static tn_rc lie_read(struct tn_target *target, const char *path, size_t size_max,
                      struct tn_arena *arena, struct tn_bytes *bytes, struct tn_err *err)
{
    (void)target;
    return liar.inner->vtable->read(liar.inner, path, size_max, arena, bytes, err);
}

static tn_rc lie_send(struct tn_target *target, struct tn_io *from, const char *path, uint64_t size,
                      struct tn_err *err)
{
    (void)target;
    (void)snprintf(liar.last, sizeof liar.last, "%s", path);
    return liar.lie == LEAVES_A_FILE && ++liar.files == 6
               ? TN_OK
               : liar.inner->vtable->send(liar.inner, from, path, size, err);
}

static tn_rc lie_settle(struct tn_target *target, struct tn_err *err)
{
    (void)target;
    if (liar.lie == NEVER_SETTLES) {
        return TN_OK;
    }
    tn_rc rc = liar.inner->vtable->settle(liar.inner, err);
    return rc == TN_OK && liar.lie == GIVES_OTHER_BYTES && liar.last[0]
               ? liar.inner->vtable->replace(liar.inner, liar.last, tn_bytes_of("other"), err)
               : rc;
}

static void lie_drop(struct tn_target *target)
{
    (void)target;
    liar.inner->vtable->drop(liar.inner);
}

static tn_rc lie_publish(struct tn_target *target, const char *path, struct tn_bytes bytes,
                         struct tn_err *err)
{
    (void)target;
    return liar.lie == LEAVES_SCHEMAS && strstr(path, "/schema/")
               ? TN_OK
               : liar.inner->vtable->publish(liar.inner, path, bytes, err);
}

static tn_rc lie_replace(struct tn_target *target, const char *path, struct tn_bytes bytes,
                         struct tn_err *err)
{
    (void)target;
    return liar.inner->vtable->replace(liar.inner, path, bytes, err);
}

static tn_rc lie_swap(struct tn_target *target, const char *path, struct tn_bytes was,
                      struct tn_bytes bytes, struct tn_err *err)
{
    (void)target;
    return liar.inner->vtable->swap(liar.inner, path, was, bytes, err);
}

static const struct tn_target_vtable lies = {.stat = lie_stat,
                                             .read = lie_read,
                                             .send = lie_send,
                                             .settle = lie_settle,
                                             .drop = lie_drop,
                                             .publish = lie_publish,
                                             .replace = lie_replace,
                                             .swap = lie_swap};

static struct tn_target *instead(struct tn_target *target)
{
    liar.target = (struct tn_target){.vtable = &lies, .name = target->name};
    liar.inner = target;
    liar.files = 0;
    liar.last[0] = 0;
    return &liar.target;
}

/* Nothing fails, but each kind of lie is seen in the first worlds. */
static void reader_sees_what_may_not_be(void)
{
    for (liar.lie = 0; liar.lie < LIES; liar.lie++) {
        bool seen = false;
        for (uint64_t seed = 1; !seen && seed < 9; seed++) {
            lake_open(seed, ROUNDS_MIN);
            lake.instead = instead;
            CHECK(lake_run(lake_write_all, LAKE_LIVES, 0));
            CHECK(lake_run(lake_sync, LAKE_LIVES, 0));
            seen = lake.reader.problem != NULL;
            lake_close();
        }
        if (!seen) {
            FAIL("lie %d is not seen", (int)liar.lie);
        }
    }
}

/* What was put by a process that is dead by then may come below EARLIEST, and nothing else. */
static void reader_knows_what_came_late(void)
{
    for (int dead = 0; dead < 2; dead++) {
        char key[64];
        lake_open(3, ROUNDS_MIN + 3);
        CHECK(lake_run(lake_write_all, LAKE_LIVES, 0));
        CHECK(lake_run(lake_sync, LAKE_LIVES, 0));
        check_reader();
        struct lake_reader *r = &lake.reader;
        int64_t first = r->earliest;
        (void)snprintf(key, sizeof key, "lake/" BED_ROOT "/snapshot/snapshot-%" PRId64, first);
        struct model_object *object = model_find(&lake.store.model, key);
        CHECK(object != NULL && first < r->newest);
        r->dead = true;
        lake_reader_changed(&lake.store.model, object);
        CHECK(r->problem && strstr(r->problem, "it comes behind"));
        r->problem = NULL;
        r->dead = dead == 1;
        lake_reader_earliest(r, first + 1);
        lake_reader_changed(&lake.store.model, object);
        CHECK((r->problem != NULL) == (dead == 0) && r->late == (dead == 1 ? first : 0));
        lake_close();
    }
}

static const struct test tests[] = {
    TEST(reader_sees_what_may_not_be),
    TEST(reader_knows_what_came_late),
    TEST(lake_is_whole_at_every_change_and_reaches_the_table),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), lake_engines, LAKE_ENGINES);
}
