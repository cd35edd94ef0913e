/* clock_watch: a wall clock that was set, is set, or never was, against one that only runs. */
#include "io/clock_watch.h"

#include <string.h>

#include "check.h"
#include "given.h"
#include "random.h"
#include "sim/clock.h"

static uint64_t seed;
static struct sim_clock sim;
static struct tn_clock_watch watch;

enum { HOUR_MS = 3600 * 1000 };

/* A clock that is right: some days behind the build. */
static void open_sim(void)
{
    sim_clock_init(&sim, seed);
    sim_clock_set_ms(&sim, tn_clock_built_ms() + 100 * (int64_t)HOUR_MS);
}

static bool is(const char *want)
{
    int64_t now_ms = 0;
    const char *got = tn_clock_watch_look(&watch, &now_ms);
    CHECK(now_ms <= sim.wall_ms && now_ms >= sim.wall_ms - 10);
    return strcmp(got, want) == 0;
}

static void the_build_was_before_now(void)
{
    int64_t now_ms = tn_clock_system.vtable->now_ms(&tn_clock_system);
    CHECK(tn_clock_built_ms() > INT64_C(1700000000000) && tn_clock_built_ms() <= now_ms);
}

static void time_that_only_passes_is_synced(void)
{
    open_sim();
    tn_clock_watch_init(&watch, &sim.clock, 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(is("synced"));
        sim_clock_advance_ms(&sim, (int64_t)random_below(&seed, HOUR_MS));
    }
}

static void a_moment_that_is_over_is_unset(void)
{
    open_sim();
    int64_t right = sim.wall_ms;
    sim_clock_set_ms(&sim, HOUR_MS);
    tn_clock_watch_init(&watch, &sim.clock, 0);
    CHECK(is("unset"));
    sim_clock_set_ms(&sim, tn_clock_built_ms() - HOUR_MS);
    CHECK(is("unset"));
    sim_clock_set_ms(&sim, right); /* the time came by network */
    CHECK(is("synced"));
    sim_clock_set_ms(&sim, right + HOUR_MS);
    CHECK(is("stepped"));
}

static void what_was_written_is_over(void)
{
    open_sim();
    tn_clock_watch_init(&watch, &sim.clock, sim.wall_ms + HOUR_MS);
    CHECK(is("unset"));
    sim_clock_advance_ms(&sim, HOUR_MS);
    CHECK(is("synced"));
    tn_clock_watch_init(&watch, &sim.clock, sim.wall_ms + 1000); /* another clock, a bit ahead */
    CHECK(is("synced"));
    tn_clock_watch_init(&watch, &sim.clock, INT64_MIN);
    CHECK(is("synced"));
}

/* Any steps, after any time: apart by seconds is stepped, and back again it isn't. */
static void steps_show_until_they_are_taken_back(void)
{
    for (int round = 0; round < 300; round++) {
        open_sim();
        tn_clock_watch_init(&watch, &sim.clock, 0);
        int64_t off = 0;
        for (int i = 0; i < 20; i++) {
            sim_clock_advance_ms(&sim, (int64_t)random_below(&seed, HOUR_MS));
            int64_t step = (int64_t)random_below(&seed, 20000) - 10000;
            step = random_below(&seed, 4) == 0 ? -off : step;
            off += step;
            sim_clock_set_ms(&sim, sim.wall_ms + step);
            int64_t size = off < 0 ? -off : off;
            CHECK(size > TN_CLOCK_STEP_MS - 10 || is("synced"));
            CHECK(size < TN_CLOCK_STEP_MS + 10 || is("stepped"));
        }
    }
}

static const struct test tests[] = {
    TEST(the_build_was_before_now),
    TEST(time_that_only_passes_is_synced),
    TEST(a_moment_that_is_over_is_unset),
    TEST(what_was_written_is_over),
    TEST(steps_show_until_they_are_taken_back),
};

int main(int argc, char **argv)
{
    seed = given_number("SEED", 1);
    return run_tests(argc, argv, tests, COUNT(tests));
}
