/* A gateway dies, and another one takes its place from what lies in the lake: by a seed, devices
 * write, sync, die at any moment and are restored, on a disk that is cut while that happens. In the
 * end each row is there once, sequence numbers and changelogs go on, sources go on where the
 * mirror's snapshot stood, and an old device that wakes is stopped. */
#include "upload/restore.h"

#include "commit/tag.h"
#include "given.h"
#include "table/bed.h"
#include "upload/counting.h"
#include "upload/delta.h"
#include "upload/directory.h"
#include "upload/ledger.h"

#define LAKE "tarn-lake-test"

enum { ROUNDS_MAX = 7 };

static struct bed_engine engines[2];
static struct bed_scenario scenario;

struct device {
    struct sim_disk disk;
    bool there;
};

struct world {
    uint64_t random;
    struct sim_disk lake;
    struct device now;
    struct device old; /* one that has died, and may wake */
    uint32_t synced;   /* rows that are in the lake */
    bool has_synced;
    uint32_t tags; /* that the lake has */
    struct tn_err err;
    uint64_t restores;
    uint64_t cuts;
};

static struct world w;

static void start(struct sim_disk *disk)
{
    bed_engine_start(&engines[0], &disk->io, random_next(&w.random));
}

static struct tn_worker *worker(void)
{
    return &engines[0].workers[TN_LANE_LONG];
}

static void (*before_put)(void); /* once, before a PUT; or NULL */

static void before_request(void *user, enum tn_target_verb verb, const char *path)
{
    void (*once)(void) = before_put;
    (void)user;
    (void)path;
    if (verb == TN_TARGET_PUT && once) {
        before_put = NULL;
        once();
    }
}

static struct tn_target *lake_target(struct sim_disk *lake)
{
    static struct tn_directory directory;
    static struct counting counting;
    struct tn_err err;
    tn_rc rc = tn_directory_init(&directory, &lake->io, "lake", &worker()->arena, &err);
    CHECK_OK(rc, err);
    counting = (struct counting){.target = {.vtable = &counting_vtable, .name = "lake"},
                                 .inner = &directory.target,
                                 .before = before_request};
    return &counting.target;
}

/* ---- syncing ---- */

static tn_rc sync_from(struct sim_disk *disk, struct tn_delta_result *result)
{
    start(disk);
    struct tn_delta_spec spec = {
        .root = BED_ROOT, .target = lake_target(&w.lake), .consumer = LAKE};
    return tn_delta_sync(&spec, worker(), result, &w.err);
}

static void sync_now(void)
{
    struct tn_delta_result result;
    tn_rc rc = sync_from(&w.now.disk, &result);
    CHECK_OK(rc, w.err);
    w.has_synced = true;
}

static bool has(struct sim_disk *disk, const char *path)
{
    uint64_t size;
    struct tn_err err;
    return disk->io.vtable->stat(&disk->io, path, &size, &err) == TN_OK;
}

/* Of the newest snapshot, so that it travels with it. */
static void tag_now(void)
{
    char name[16];
    int64_t id;
    start(&w.now.disk);
    (void)snprintf(name, sizeof name, "keep-%u", w.tags);
    const struct tn_tag_spec spec = {.root = BED_ROOT, .name = name};
    tn_rc rc = tn_tag_make(&spec, worker(), &id, &w.err);
    CHECK_OK(rc, w.err);
    w.tags++;
}

/* Who restores doesn't bring the tags, and doesn't take them away. */
static void check_tags(void)
{
    for (uint32_t i = 0; i < w.tags; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, BED_ROOT "/tag/tag-keep-%u", i);
        CHECK(has(&w.lake, path));
    }
}

static void write_to(uint32_t rows)
{
    start(&w.now.disk);
    struct bed_writer writer = {
        .engine = &engines[0], .scenario = &scenario, .who = "a test", .random = w.random};
    tn_rc rc = bed_write_to(&writer, rows);
    CHECK_OK(rc, writer.err);
    CHECK(writer.recovered <= rows);
}

/* ---- restoring ---- */

/* What `tarn restore` does. */
static tn_rc restore_to(struct sim_disk *disk, struct sim_disk *lake,
                        struct tn_restore_result *result, struct tn_err *err)
{
    struct sim_disk scratch;
    struct tn_recovered writer;
    sim_disk_init(&scratch, BED_DISK_SIZE);
    start(disk);
    tn_rc rc =
        tn_table_writer(&disk->io, worker()->clock, BED_TABLE, &engines[0].table, &writer, err);
    struct tn_restore_spec spec = {.root = BED_ROOT,
                                   .table = BED_TABLE,
                                   .scratch = &scratch.io,
                                   .lake = LAKE,
                                   .writer = writer.writer};
    if (rc == TN_OK) {
        spec.target = lake_target(lake);
        rc = tn_restore_bring(&spec, worker(), result, err);
    }
    if (rc == TN_OK && result->writer[0]) {
        rc = tn_table_inherit(&disk->io, BED_TABLE, result->writer, result->positions,
                              &engines[0].table, err);
    }
    if (rc == TN_OK) {
        rc = tn_restore_finish(&spec, worker(), result, err);
    }
    sim_disk_deinit(&scratch);
    return rc;
}

static struct tn_owner owner_there(struct sim_disk *lake)
{
    struct tn_owner owner;
    start(lake);
    tn_rc rc = tn_owner_read(lake_target(lake), BED_TABLE, &engines[0].own, &owner, &w.err);
    CHECK_OK(rc, w.err);
    return owner;
}

/* What has its schema is a table, whole, that goes on where the lake stood. */
static void check_restored(struct sim_disk *disk)
{
    struct bed_told told = {.rows = w.synced};
    const char *problem =
        bed_check(&engines[1], disk, &scenario, told, random_next(&w.random), false);
    if (problem) {
        COMPLAIN("restored: %s\n%s", problem, scenario.schema);
        sim_disk_print_trace(disk);
        abort();
    }
}

/* What is there needs not be asked for. */
static void check_ledger(struct sim_disk *disk, const struct tn_owner *owner)
{
    struct tn_ledger ledger;
    start(disk);
    tn_rc rc = tn_ledger_read(&disk->io, BED_TABLE, LAKE, &engines[0].own, &ledger, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(ledger.sending == 0 && ledger.owner.generation == owner->generation);
    CHECK(strcmp(ledger.owner.writer, owner->writer) == 0 && ledger.schema == 0);
    CHECK(has(disk, BED_ROOT "/consumer/consumer-" LAKE));
}

/* Nobody else makes a table of what is half there. */
static void check_not_made(struct sim_disk *disk)
{
    struct tn_schema schema;
    struct tn_options options;
    start(disk);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(scenario.schema), &engines[0].own, &schema, &w.err);
    CHECK_OK(rc, w.err);
    rc = tn_make_table(&engines[0].env, BED_TABLE, &schema, &options, &w.err);
    CHECK(rc == TN_INVALID && strstr(w.err.text, "half restored"));
}

/* From a cut at `call` on, to the end: on the disk as `seed` leaves it. False: it was over before.
 */
static bool restore_with_a_cut(struct sim_disk *disk, uint64_t call, int64_t generation)
{
    struct tn_restore_result result;
    struct tn_err err;
    sim_disk_init(disk, BED_DISK_SIZE);
    sim_disk_cut_at(disk, call);
    tn_rc rc = restore_to(disk, &w.lake, &result, &err);
    bool cut = disk->off;
    CHECK(cut || rc == TN_OK);
    sim_disk_reboot(disk,
                    random_next(&w.random) % 3 == 0 ? SIM_SEED_NOTHING : random_next(&w.random));
    CHECK(cut || has(disk, BED_ROOT "/schema/schema-0")); /* it was durable */
    if (has(disk, BED_ROOT "/schema/schema-0")) {
        check_restored(disk);
    } else if (has(disk, ".tarn/db.t.restore")) {
        check_not_made(disk);
    }
    if (cut) {
        w.cuts++;
        rc = restore_to(disk, &w.lake, &result, &err);
        bool done = rc == TN_EXISTS && has(disk, BED_ROOT "/schema/schema-0");
        if (!done && rc != TN_OK) {
            FAIL("call %" PRIu64 ": %s", call, err.text);
        }
    }
    check_restored(disk);
    struct tn_owner owner = owner_there(&w.lake);
    CHECK(owner.generation == generation + 1);
    check_ledger(disk, &owner);
    return cut;
}

/* The device dies: what it hasn't sent is lost, and asked for again. */
static void die_and_restore(void)
{
    int64_t generation = owner_there(&w.lake).generation;
    if (w.old.there) {
        sim_disk_deinit(&w.old.disk);
    }
    w.old = w.now;
    w.old.there = true;
    restore_with_a_cut(&w.now.disk, 1 + random_below(&w.random, 150), generation);
    w.restores++;
}

/* It has commits that the lake lacks, or believes so. */
static void wake_the_old_one(void)
{
    struct tn_delta_result result;
    struct sim_disk before;
    uint32_t more = w.synced < scenario.row_count ? w.synced + 1 : w.synced;
    sim_disk_clone(&before, &w.lake);
    start(&w.old.disk);
    struct bed_writer writer = {
        .engine = &engines[0], .scenario = &scenario, .who = "the old one", .random = w.random};
    (void)!bed_write_to(&writer, more);
    tn_rc rc = sync_from(&w.old.disk, &result);
    CHECK(rc == TN_CONFLICT || (rc == TN_OK && result.files == 0));
    CHECK(rc == TN_OK || strstr(w.err.text, "took this mirror over"));
    CHECK(sim_disk_used(&w.lake) == sim_disk_used(&before));
    sim_disk_deinit(&before);
}

/* The next sync sends nothing that is there. */
static void sync_of_a_restored_one_sends_nothing(void)
{
    struct tn_delta_result result;
    tn_rc rc = sync_from(&w.now.disk, &result);
    CHECK_OK(rc, w.err);
    CHECK(result.files == 0 && result.bytes == 0);
    check_tags();
}

static void run(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.random = seed * 7 + 3;
    bed_scenario_init_merging(&scenario, seed, 2 + (uint32_t)(seed % (ROUNDS_MAX - 1)));
    sim_disk_init(&w.lake, BED_DISK_SIZE);
    sim_disk_init(&w.now.disk, BED_DISK_SIZE);
    bed_create(&engines[0], &w.now.disk.io, &scenario);
    for (uint32_t cut = 0; cut < scenario.cut_count; cut++) {
        write_to(scenario.cuts[cut]);
        if (random_below(&w.random, 3) > 0) {
            if (random_below(&w.random, 3) == 0) {
                tag_now();
            }
            sync_now();
            w.synced = scenario.cuts[cut];
        }
        if (w.has_synced && random_below(&w.random, 2) == 0) {
            die_and_restore();
            if (random_below(&w.random, 2) == 0) {
                sync_of_a_restored_one_sends_nothing();
            }
            if (random_below(&w.random, 2) == 0) {
                wake_the_old_one();
            }
        }
    }
    write_to(scenario.row_count);
    sync_now();
    check_tags();
    w.synced = scenario.row_count;
    check_restored(&w.now.disk);
    if (w.old.there) {
        wake_the_old_one();
        sim_disk_deinit(&w.old.disk);
    }
    sim_disk_deinit(&w.now.disk);
    sim_disk_deinit(&w.lake);
}

static void devices_follow_one_another_and_no_row_is_lost_or_twice(void)
{
    double until = given_until(6, 2);
    uint64_t seed = given_number("SEED", 1);
    uint64_t restores = 0;
    uint64_t cuts = 0;
    for (uint64_t i = 0; i < 8 || seconds_now() < until; i++) {
        run(seed + i);
        restores += w.restores;
        cuts += w.cuts;
    }
    CHECK(restores > 0 && cuts > 0);
}

/* ---- an old device that is alive ---- */

/* With an engine of its own, in the middle of what the other one does. */
static void publish_meanwhile(void)
{
    static struct tn_directory directory;
    struct tn_delta_result result;
    struct tn_err err;
    bed_engine_start(&engines[1], &w.old.disk.io, 1);
    struct tn_worker *other = &engines[1].workers[TN_LANE_LONG];
    tn_rc rc = tn_directory_init(&directory, &w.lake.io, "lake", &other->arena, &err);
    CHECK_OK(rc, err);
    struct tn_delta_spec spec = {.root = BED_ROOT, .target = &directory.target, .consumer = LAKE};
    rc = tn_delta_sync(&spec, other, &result, &err);
    CHECK_OK(rc, err);
    CHECK(result.files > 0);
}

static void what_the_old_device_publishes_until_it_is_stopped_comes_too(void)
{
    struct tn_restore_result result;
    memset(&w, 0, sizeof w);
    w.random = given_number("SEED", 1);
    bed_scenario_init(&scenario, w.random, 4);
    bed_scenario_keep_snapshots(&scenario);
    sim_disk_init(&w.lake, BED_DISK_SIZE);
    sim_disk_init(&w.now.disk, BED_DISK_SIZE);
    bed_create(&engines[0], &w.now.disk.io, &scenario);
    write_to(scenario.cuts[1]);
    sync_now();
    write_to(scenario.cuts[3]);
    w.old = w.now;
    sim_disk_init(&w.now.disk, BED_DISK_SIZE);
    before_put = publish_meanwhile; /* just before the owner is raised */
    tn_rc rc = restore_to(&w.now.disk, &w.lake, &result, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(!before_put && result.last_id == result.newest_id);
    w.synced = scenario.row_count;
    check_restored(&w.now.disk);
    rc = restore_to(&w.now.disk, &w.lake, &result, &w.err);
    CHECK(rc == TN_EXISTS && strstr(w.err.text, "db.t is there already"));
    sim_disk_deinit(&w.old.disk);
    sim_disk_deinit(&w.now.disk);
    sim_disk_deinit(&w.lake);
}

static const struct test tests[] = {
    TEST(what_the_old_device_publishes_until_it_is_stopped_comes_too),
    TEST(devices_follow_one_another_and_no_row_is_lost_or_twice),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, COUNT(engines));
}
