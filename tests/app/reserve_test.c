/* A disk that fills up to what is to be kept of it: no row is taken then, what was taken is
 * committed, and what frees room brings rows back. */
#include "daemon_world.h"

enum { RESERVE = 400 * 1024, ROOM = 1200 * 1024 };

static uint64_t room_left(const struct world *w)
{
    uint64_t used = sim_disk_used(&w->disk);
    return used < w->disk.capacity ? w->disk.capacity - used : 0;
}

/* Sends until nothing is taken any more. */
static void fill(struct world *w)
{
    while (!w->daemon.intake.reserve.low) {
        turn(w, true);
        CHECK(w->sent[0] < ROWS && w->sent[1] < ROWS);
    }
}

/* No row is taken, but each that was is in a snapshot, and the journal is trimmed. */
static void check_rest(struct world *w)
{
    int64_t sent[TABLES] = {w->sent[0], w->sent[1]};
    uint64_t waits = w->daemon.intake.counts.waits;
    for (int i = 0; i < 2000; i++) {
        turn(w, true);
    }
    CHECK(w->daemon.intake.reserve.low && w->daemon.intake.counts.waits > waits &&
          w->daemon.intake.room_owed);
    for (uint32_t t = 0; t < TABLES; t++) {
        CHECK(w->sent[t] == sent[t]);
        CHECK(tn_keeper_settled(&w->daemon.keepers[t]) && w->daemon.keepers[t].trouble == TN_OK);
        check_rows(w, t);
    }
    CHECK(room_left(w) > RESERVE / 2);
}

static void check_goes_on(struct world *w)
{
    int64_t sent = w->sent[0];
    for (int i = 0; i < 2000 && w->sent[0] == sent; i++) {
        turn(w, true);
    }
    CHECK(!w->daemon.intake.reserve.low && w->sent[0] > sent);
}

static void begin(struct world *w, uint64_t seed)
{
    disk_reserve = RESERVE;
    begin_world(w, seed, "false");
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk) + ROOM);
}

static void rows_wait_until_there_is_room_again(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int i = 0; i < 3; i++) {
        struct world *w = &world;
        begin(w, random_next(&random));
        fill(w);
        check_rest(w);
        sim_disk_capacity(&w->disk, w->disk.capacity + RESERVE);
        check_goes_on(w);
        commit_all(w);
        check_rows(w, 0);
        check_rows(w, 1);
        end_world(w);
    }
}

/* A little more than the reserve is not enough: it would go to and fro. */
static void a_little_room_is_none(void)
{
    struct world *w = &world;
    begin(w, 7);
    fill(w);
    check_rest(w);
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk) + RESERVE + RESERVE / 16);
    check_rest(w);
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk) + RESERVE + RESERVE / 4);
    check_goes_on(w);
    end_world(w);
}

static void what_a_compaction_and_an_expiry_free_brings_rows_back(void)
{
    struct world *w = &world;
    begin(w, 3);
    fill(w);
    check_rest(w);
    for (uint32_t t = 0; t < TABLES; t++) {
        struct tn_err err = {0};
        struct tn_job_wish wishes[] = {{.verb = TN_JOB_COMPACT, .full = true},
                                       {.verb = TN_JOB_EXPIRE, .expiry = {1, 1, 0}}};
        for (size_t i = 0; i < COUNT(wishes); i++) {
            const struct tn_job *job = NULL;
            (void)snprintf(wishes[i].table, sizeof wishes[i].table, "%s", names[t]);
            CHECK_OK(tn_jobs_ask(&w->jobs, &wishes[i], &job, &err), err);
            while (job->state != TN_JOB_OVER) {
                turn(w, false);
            }
            CHECK_OK(job->rc, job->err);
        }
    }
    CHECK(room_left(w) > RESERVE + RESERVE / 4);
    check_goes_on(w);
    commit_all(w);
    check_rows(w, 0);
    check_rows(w, 1);
    end_world(w);
}

/* benbjohnson/litestream#1310: what a full disk stopped stayed so with room again. Here its pause
 * is the longest by then. */
static void what_had_no_room_is_committed_once_there_is_some(void)
{
    struct world *w = &world;
    begin(w, 11);
    while (tn_keeper_settled(&w->daemon.keepers[0]) || tn_keeper_settled(&w->daemon.keepers[1])) {
        turn(w, true);
    }
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk));
    for (int i = 0; i < 200; i++) {
        turn(w, true);
        sim_clock_advance_ms(&engine.clock, 1000);
    }
    CHECK(w->daemon.intake.reserve.low && w->daemon.keepers[0].trouble == TN_FULL &&
          w->daemon.keepers[1].trouble == TN_FULL);
    sim_disk_capacity(&w->disk, w->disk.capacity + 2 * ROOM);
    for (int i = 0; i < 400; i++) {
        turn(w, false);
    }
    for (uint32_t t = 0; t < TABLES; t++) {
        CHECK(tn_keeper_settled(&w->daemon.keepers[t]) && w->daemon.keepers[t].trouble == TN_OK);
        check_rows(w, t);
    }
    end_world(w);
}

/* Nothing is taken by a start, either; and a disk that doesn't say what it has is taken for large.
 */
static void it_is_asked_before_the_first_row(void)
{
    struct world *w = &world;
    begin(w, 5);
    CHECK(!w->daemon.intake.reserve.low);
    sim_disk_capacity(&w->disk, sim_disk_used(&w->disk) + RESERVE - 1);
    tn_reserve_open(&w->daemon.intake.reserve, &w->disk.io, engine.env.exec, &w->daemon.log,
                    RESERVE);
    uint64_t left = 0;
    CHECK(w->daemon.intake.reserve.low && tn_reserve_left(&w->daemon.intake.reserve, &left));
    CHECK(left == RESERVE - 1);
    sim_disk_fail_call(&w->disk, w->disk.calls + 1, TN_IO);
    tn_reserve_open(&w->daemon.intake.reserve, &w->disk.io, engine.env.exec, &w->daemon.log,
                    RESERVE);
    CHECK(!w->daemon.intake.reserve.low && w->daemon.intake.reserve.said);
    CHECK(!tn_reserve_left(&w->daemon.intake.reserve, &left));
    tn_reserve_open(&w->daemon.intake.reserve, &w->disk.io, engine.env.exec, &w->daemon.log, 0);
    CHECK(!w->daemon.intake.reserve.low);
    end_world(w);
}

static const struct test tests[] = {
    TEST(rows_wait_until_there_is_room_again),
    TEST(a_little_room_is_none),
    TEST(what_a_compaction_and_an_expiry_free_brings_rows_back),
    TEST(what_had_no_room_is_committed_once_there_is_some),
    TEST(it_is_asked_before_the_first_row),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
