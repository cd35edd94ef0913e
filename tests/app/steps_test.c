/* Somebody sets the clock while the daemon runs (influxdata/telegraf#5335): commits go on in time,
 * none in a burst, and snapshots are in the order of their times, so that each can be found. */
#include "daemon_world.h"

enum { DUE_MS = 50 /* the world's rule */, LATE_MS = 500 };

static const int64_t hour_ms = 3600 * 1000;

static int64_t passed_ms(void)
{
    return engine.clock.passed_ns / 1000000;
}

/* How long its rows wait for a commit, in time that no clock's hand shows. */
static int64_t commit_one(struct world *w, uint32_t t)
{
    int64_t before_ms = passed_ms();
    uint64_t commits = w->daemon.keepers[t].commits;
    int64_t sent = w->sent[t];
    while (w->sent[t] == sent) {
        send(w, t);
        turn(w, false);
    }
    while (w->daemon.keepers[t].commits == commits) {
        turn(w, false);
    }
    return passed_ms() - before_ms;
}

static void check_quiet(struct world *w)
{
    uint64_t commits[] = {w->daemon.keepers[0].commits, w->daemon.keepers[1].commits};
    for (int i = 0; i < 300; i++) {
        turn(w, false);
    }
    CHECK(commits[0] == w->daemon.keepers[0].commits && commits[1] == w->daemon.keepers[1].commits);
}

/* Each is no older than the one before. */
static int64_t check_order(struct world *w, uint32_t t)
{
    struct tn_err err;
    const char *root = tn_table_root(w->daemon.keepers[t].table);
    struct tn_arena *own = &engine.own;
    size_t mark = tn_arena_mark(own);
    int64_t id = 0;
    int64_t latest = 0;
    int64_t time_ms = INT64_MIN;
    CHECK_OK(tn_snapshot_earliest(&w->disk.io, root, own, &id, &err), err);
    CHECK_OK(tn_snapshot_latest(&w->disk.io, root, own, &latest, &err), err);
    for (int64_t first = id; id <= latest; id++) {
        struct tn_snapshot snapshot;
        CHECK_OK(tn_snapshot_read(&w->disk.io, root, id, own, &snapshot, &err), err);
        CHECK(snapshot.time_ms.present && snapshot.time_ms.value >= time_ms);
        CHECK(id > first || latest - first >= 5);
        time_ms = snapshot.time_ms.value;
    }
    tn_arena_reset(own, mark);
    return time_ms;
}

static void commits_go_on_in_time_and_in_order(void)
{
    const int64_t steps_ms[] = {3611 * 1000, -3611 * 1000, 30 * 24 * hour_ms, -60 * 24 * hour_ms};
    uint64_t random = given_number("SEED", 1);
    for (int i = 0; i < 3; i++) {
        struct world *w = &world;
        begin_world(w, random_next(&random), "false");
        send_for_a_while(w);
        commit_all(w);
        for (size_t s = 0; s < COUNT(steps_ms); s++) {
            sim_clock_set_ms(&engine.clock, engine.clock.wall_ms + steps_ms[s]);
            check_quiet(w);
            for (uint32_t t = 0; t < TABLES; t++) {
                CHECK(commit_one(w, t) <= DUE_MS + LATE_MS);
                CHECK(check_order(w, t) >= engine.clock.wall_ms - hour_ms);
                check_rows(w, t);
            }
        }
        end_world(w);
    }
}

/* A clock that was set while a row waited: it waits no longer for that. */
static void what_waits_is_committed_in_time(void)
{
    const int64_t steps_ms[] = {3611 * 1000, -3611 * 1000, -20 * 365 * 24 * hour_ms};
    for (size_t s = 0; s < COUNT(steps_ms); s++) {
        struct world *w = &world;
        begin_world(w, 7 + s, "false");
        while (w->sent[0] == 0) {
            turn(w, false);
            send(w, 0);
        }
        while (tn_keeper_settled(&w->daemon.keepers[0])) { /* it is on its way to the table */
            turn(w, false);
        }
        sim_clock_set_ms(&engine.clock, engine.clock.wall_ms + steps_ms[s]);
        int64_t from_ms = passed_ms();
        commit_all(w);
        CHECK(w->daemon.keepers[0].commits == 1 && passed_ms() - from_ms <= DUE_MS + LATE_MS);
        end_world(w);
    }
}

static const struct test tests[] = {
    TEST(commits_go_on_in_time_and_in_order),
    TEST(what_waits_is_committed_in_time),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
