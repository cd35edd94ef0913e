/* The journal on a disk that loses power, fails and fills up: what it called durable is there. */
#include "journal_world.h"

/* ---- cuts ---- */

static const char *found_problem; /* by a watcher */
static uint64_t cuts;

/* A second cut may come while the journal is opened. */
static void look_behind_cut(struct world *w, const struct sim_disk *disk, uint64_t seed)
{
    uint32_t count;
    sim_disk_clone(&w->disk, disk);
    world_init(w, seed);
    sim_disk_reboot(&w->disk, seed);
    if (random_below(&w->random, 4) == 0) {
        sim_disk_cut_at(&w->disk, 1 + random_below(&w->random, 24));
    }
    tn_rc rc = open_journal(w);
    if (w->disk.off) {
        sim_disk_reboot(&w->disk, seed + 1);
        rc = open_journal(w);
    }
    const char *problem = rc ? err.text : look_at(w, &count);
    if (problem && !found_problem) {
        static char text[TN_ERR_TEXT_SIZE];
        (void)snprintf(text, sizeof text, "%s", problem);
        found_problem = text;
    }
    sim_disk_deinit(&w->disk);
    cuts++;
}

static void at_each_change(void *user, struct sim_disk *disk)
{
    uint64_t *random = user;
    if (!found_problem) {
        struct tn_err before = err; /* of the call that is interrupted here */
        look_behind_cut(&worlds[1], disk, SIM_SEED_NOTHING);
        look_behind_cut(&worlds[1], disk, SIM_SEED_ALL);
        for (int i = 0; i < 4; i++) {
            look_behind_cut(&worlds[1], disk, random_next(random));
        }
        err = before;
    }
}

/* Before each call that changes the disk, of processes that are killed and cut off, too. */
static void what_was_durable_survives_a_cut_at_any_call(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(2, 8);
    struct world *w = &worlds[0];
    do {
        uint64_t random = seed;
        begin_run(w, seed);
        w->disk.model = seed % 2 ? SIM_STRICT : SIM_ORDERED;
        found_problem = NULL;
        sim_disk_watch(&w->disk, at_each_change, &random);
        run(w, 150, 40);
        sim_disk_watch(&w->disk, NULL, NULL);
        if (found_problem) {
            fail(w, found_problem);
        }
        end_run(w);
        seed++;
    } while (seconds_now() < until);
    (void)printf("%" PRIu64 " cuts\n", cuts);
}

/* A run of many processes, each of which ends by a cut, a kill or a failure. */
static void processes_go_on_where_others_ended(void)
{
    uint64_t seed = given_number("SEED", 1) + 1000;
    double until = given_until(2, 8);
    struct world *w = &worlds[0];
    do {
        begin_run(w, seed);
        start_again(w, false);
        for (int i = 0; i < 20; i++) {
            uint64_t call = w->disk.calls + 1 + random_below(&w->random, 60);
            uint32_t die = random_below(&w->random, 4);
            if (die == 0) {
                sim_disk_cut_at(&w->disk, call);
            } else if (die < 3) {
                sim_disk_fail_call(&w->disk, call, die == 1 ? TN_IO : TN_FULL);
            }
            run(w, 60, 50);
        }
        end_run(w);
        seed++;
    } while (seconds_now() < until);
}

/* ---- failures ---- */

/* Each call of a run fails, also after it has done its work. */
static void every_call_may_fail(void)
{
    uint64_t seed = given_number("SEED", 1);
    struct world *w = &worlds[0];
    begin_run(w, seed);
    run(w, 120, UINT32_MAX);
    uint64_t calls = w->disk.calls;
    end_run(w);
    CHECK(calls > 50);
    for (uint64_t call = 1; call <= calls; call++) {
        for (uint32_t i = 0; i < 4; i++) {
            begin_run(w, seed);
            start_again(w, false);
            uint64_t opened = w->disk.calls;
            if (call <= opened) { /* of open: a process of its own fails */
                w->disk.fail_call = w->disk.calls + call;
                w->disk.fail_rc = i % 2 ? TN_IO : TN_FULL;
                start_again(w, i < 2);
            } else if (i < 2) {
                sim_disk_fail_call(&w->disk, call, i % 2 ? TN_IO : TN_FULL);
            } else {
                sim_disk_fail_call_late(&w->disk, call, i % 2 ? TN_IO : TN_FULL);
            }
            run(w, 120, UINT32_MAX);
            end_run(w);
        }
    }
}

/* It says FULL, keeps the block, opens on the full disk, and goes on once there is room. */
static void a_full_disk_is_waited_for(void)
{
    struct world *w = &worlds[0];
    uint32_t wait_ms;
    begin_run(w, given_number("SEED", 1));
    run(w, 30, UINT32_MAX);
    tn_rc rc = drain(w);
    CHECK_OK(rc, err);
    uint64_t durable = model.durable;
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk) + 30);
    rc = append(w);
    CHECK_OK(rc, err);
    rc = tn_journal_turn(w->journal, true, &wait_ms, &err);
    CHECK_OK(rc, err);
    (void)tn_exec_turn(&w->exec.exec, false);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK(rc == TN_FULL);
    CHECK(wait_ms > 500 && wait_ms <= 1000);
    CHECK(tn_journal_durable(w->journal) == durable);
    rc = append(w); /* the other block takes it */
    CHECK_OK(rc, err);
    start_again(w, true);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK(rc == TN_FULL);
    sim_disk_capacity(&w->disk, UINT64_MAX);
    rc = append(w);
    CHECK_OK(rc, err);
    sim_clock_advance_ms(&w->clock, 1000);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err); /* of the try before */
    CHECK(rc == TN_FULL);
    (void)tn_exec_turn(&w->exec.exec, false);
    rc = tn_journal_turn(w->journal, false, &wait_ms, &err);
    CHECK_OK(rc, err);
    learn_durable(w);
    end_run(w);
}

/* ---- mutations ---- */

/* The run of a seed without sync number `sync`: whether a cut shows it. */
static bool misses(uint64_t seed, uint64_t sync, uint64_t *syncs, const char **path, bool *named)
{
    static char text[128];
    struct world *w = &worlds[0];
    uint64_t random = seed ^ 77;
    begin_run(w, seed);
    found_problem = NULL;
    start_again(w, false);
    w->disk.syncs = 0;
    sim_disk_ignore_sync(&w->disk, sync);
    sim_disk_watch(&w->disk, sync > 0 ? at_each_change : NULL, &random);
    for (int i = 0; i < 100; i++) {
        tn_rc rc = one_step(w);
        CHECK_OK(rc, err);
    }
    tn_rc rc = drain(w);
    CHECK_OK(rc, err);
    if (sync > 0) {
        at_each_change(&random, &w->disk);
    }
    *syncs = w->disk.syncs;
    if (sync > 0) {
        uint64_t open_syncs = 2;
        const char *before = sim_disk_sync_path(&w->disk, sync + open_syncs - 1);
        const char *behind = sim_disk_sync_path(&w->disk, sync + open_syncs + 1);
        bool covered = behind && strcmp(behind, ".tarn/journal/") == 0;
        *named = before && strcmp(before, ".tarn/journal/new") == 0 && !covered;
        before = sim_disk_sync_path(&w->disk, sync + open_syncs);
        (void)snprintf(text, sizeof text, "%s", before ? before : "");
        *path = text;
    }
    sim_disk_deinit(&w->disk);
    return found_problem != NULL;
}

/* All of what is appended, and of a file's name, where names that are removed don't sync the folder
 * before anything is told; that of names removed only where a hole shows. */
static void a_sync_that_is_left_out_is_missed(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(2, 8);
    uint64_t holes = 0;
    uint64_t count = 0;
    do {
        uint64_t syncs;
        const char *path = "";
        bool named;
        (void)misses(seed, 0, &syncs, &path, &named);
        CHECK(syncs > 5);
        for (uint64_t sync = 1; sync <= syncs; sync++) {
            uint64_t ignored;
            bool missed = misses(seed, sync, &ignored, &path, &named);
            bool of_folder = path[0] != 0 && path[strlen(path) - 1] == '/';
            if (!missed && (!of_folder || named)) {
                FAIL("nobody misses sync %" PRIu64 " of %s", sync, path);
            }
            holes += missed && of_folder && !named;
            count++;
        }
        seed++;
    } while (seconds_now() < until || (holes == 0 && seconds_now() < until + 60));
    CHECK(holes > 0);
    (void)printf("%" PRIu64 " syncs left out\n", count);
}

static const struct test tests[] = {
    TEST(a_full_disk_is_waited_for),
    TEST(every_call_may_fail),
    TEST(what_was_durable_survives_a_cut_at_any_call),
    TEST(processes_go_on_where_others_ended),
    TEST(a_sync_that_is_left_out_is_missed),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
