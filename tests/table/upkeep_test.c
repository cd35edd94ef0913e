/* Tags and rollback of tables that a writer made: cut before each call that changes the disk, the
 * table opens, is clean, and stands at a snapshot from the newest one down to the target. */
#include "bed.h"
#include "commit/rollback.h"
#include "given.h"

enum { TABLES = 8, ROUNDS = 5, SEEDS = 3 };

static struct bed_engine writer; /* makes the table, and does the upkeep */
static struct bed_engine reader; /* looks at what a cut left */
static struct bed_scenario scenario;

struct upkeep {
    tn_rc (*run)(struct upkeep *u, struct tn_err *err);
    int64_t to; /* the snapshot it goes back to, 0: none */
    int64_t latest;
    uint32_t rows[64]; /* by snapshot */
    uint64_t random;
    uint32_t states;
    const char *problem;
    char text[800];
};

static tn_rc make_tag(struct upkeep *u, struct tn_err *err)
{
    (void)u;
    int64_t id;
    struct tn_tag_spec spec = {.root = BED_ROOT, .name = "new", .retained_ms = 5000};
    return tn_tag_make(&spec, &writer.workers[TN_LANE_LONG], &id, err);
}

static tn_rc roll_back(struct upkeep *u, struct tn_err *err)
{
    struct tn_rollback_result result;
    struct tn_rollback_spec spec = {.root = BED_ROOT, .snapshot_id = u->to};
    return tn_rollback(&spec, &writer.workers[TN_LANE_LONG], &result, err);
}

static tn_rc with_options(struct bed_reader *table, struct tn_err *err)
{
    struct tn_arena *own = &writer.own;
    tn_schemas_init(&table->schemas, writer.env.io, BED_ROOT, own);
    tn_rc rc = tn_schemas_newest(&table->schemas, &table->schema, err);
    return rc == TN_OK ? tn_options_read(table->schema, TN_OPTIONS_WRITE, own, &table->options, err)
                       : rc;
}

static tn_rc expire_and_remove_tag(struct upkeep *u, struct tn_err *err)
{
    (void)u;
    static struct bed_reader table;
    struct tn_expire_result result = {0};
    struct tn_worker *worker = &writer.workers[TN_LANE_LONG];
    tn_rc rc = with_options(&table, err);
    table.options.snapshot_retained_min = table.options.snapshot_retained_max = 1;
    struct tn_expire_spec spec = {
        .root = BED_ROOT, .schema = table.schema, .options = &table.options};
    rc = rc == TN_OK ? tn_expire(&spec, worker, &result, err) : rc;
    return rc == TN_OK ? tn_tag_remove(&spec, "old", worker, &result, err) : rc;
}

static void look(struct upkeep *u, const struct sim_disk *disk, uint64_t seed)
{
    struct sim_disk found;
    sim_disk_clone(&found, disk);
    sim_disk_reboot(&found, seed);
    struct bed_told told = {u->to > 0 ? u->rows[u->to] : u->rows[u->latest],
                            u->to > 0 ? u->to : u->latest, 0};
    bool goes_on = random_below(&u->random, 8) == 0;
    const char *problem =
        bed_check(&reader, &found, &scenario, told, random_next(&u->random), goes_on);
    u->states++;
    if (problem) {
        (void)snprintf(u->text, sizeof u->text, "call %" PRIu64 ", reboot %" PRIu64 ": %s",
                       disk->calls + 1, seed, problem);
        u->problem = u->text;
    }
    sim_disk_deinit(&found);
}

static void before_call(void *user, struct sim_disk *disk)
{
    struct upkeep *u = user;
    for (uint64_t i = 0; !u->problem && i < SEEDS; i++) {
        look(u, disk, i < 2 ? i : 2 + random_next(&u->random) % 1000);
    }
}

/* The positions of all snapshots, and where the table stands. */
static void note_rows(struct upkeep *u)
{
    struct tn_err err;
    tn_rc rc = tn_snapshot_latest(writer.env.io, BED_ROOT, &writer.own, &u->latest, &err);
    CHECK_OK(rc, err);
    CHECK(u->latest < 64);
    for (int64_t id = 1; id <= u->latest; id++) {
        struct tn_snapshot snapshot;
        rc = tn_snapshot_read(writer.env.io, BED_ROOT, id, &writer.own, &snapshot, &err);
        u->rows[id] = 0;
        if (rc == TN_OK) {
            const char *problem = bed_position_of(&snapshot, &scenario, &u->rows[id]);
            CHECK(problem == NULL);
        }
    }
}

static void cut(struct upkeep *u, const struct sim_disk *base)
{
    struct sim_disk disk;
    struct tn_err err = {0};
    sim_disk_clone(&disk, base);
    bed_engine_start(&writer, &disk.io, u->random);
    note_rows(u);
    sim_disk_watch(&disk, before_call, u);
    tn_rc rc = u->run(u, &err);
    CHECK_OK(rc, err);
    for (uint64_t seed = 0; !u->problem && seed < SEEDS; seed++) {
        look(u, &disk, seed);
    }
    if (u->problem) {
        COMPLAIN("%s\n%s", u->problem, scenario.schema);
        sim_disk_print_trace(&disk);
        abort();
    }
    sim_disk_deinit(&disk);
}

/* All snapshots are kept, so that there is somewhere to go back to. */
static void make_base(struct sim_disk *disk, uint64_t seed)
{
    struct tn_err err;
    int64_t id;
    bed_scenario_init_merging(&scenario, seed, ROUNDS);
    sim_disk_init(disk, BED_DISK_SIZE);
    bed_create(&writer, &disk->io, &scenario);
    bed_engine_start(&writer, &disk->io, seed);
    struct bed_writer w = {.engine = &writer, .scenario = &scenario, .who = "a test"};
    tn_rc rc = bed_write(&w);
    CHECK_OK(rc, w.err);
    struct tn_tag_spec spec = {.root = BED_ROOT, .name = "old"};
    rc = tn_snapshot_earliest(&disk->io, BED_ROOT, &writer.own, &spec.snapshot_id, &err);
    CHECK_OK(rc, err);
    rc = tn_tag_make(&spec, &writer.workers[TN_LANE_LONG], &id, &err);
    CHECK_OK(rc, err);
}

static void every_cut_leaves_a_clean_table(void)
{
    uint64_t first = given_number("SEED", 1);
    uint32_t states = 0;
    for (uint64_t seed = first; seed < first + TABLES; seed++) {
        static struct upkeep u;
        struct sim_disk base;
        int64_t earliest;
        struct tn_err err;
        make_base(&base, seed);
        tn_rc rc = tn_snapshot_earliest(&base.io, BED_ROOT, &writer.own, &earliest, &err);
        CHECK_OK(rc, err);
        u = (struct upkeep){.run = make_tag, .random = seed};
        cut(&u, &base);
        states += u.states;
        u = (struct upkeep){.run = expire_and_remove_tag, .random = seed};
        cut(&u, &base);
        states += u.states;
        int64_t latest = u.latest;
        u = (struct upkeep){.run = roll_back, .random = seed};
        u.to = earliest + (int64_t)(seed % (uint64_t)(latest - earliest + 1));
        cut(&u, &base);
        states += u.states;
        sim_disk_deinit(&base);
    }
    (void)printf("%" PRIu32 " states\n", states);
}

static const struct test tests[] = {
    TEST(every_cut_leaves_a_clean_table),
};

int main(int argc, char **argv)
{
    bed_engine_make(&writer);
    bed_engine_make(&reader);
    int code = run_tests(argc, argv, tests, COUNT(tests));
    bed_engine_free(&writer);
    bed_engine_free(&reader);
    return code;
}
