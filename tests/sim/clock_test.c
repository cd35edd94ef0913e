/* A seed fixes what time it is and what is random. */
#include "sim/clock.h"

#include "check.h"

static void one_seed_gives_one_run(void)
{
    struct sim_clock first;
    struct sim_clock second;
    struct sim_clock other;
    sim_clock_init(&first, 7);
    sim_clock_init(&second, 7);
    sim_clock_init(&other, 8);
    int differ = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t bits = first.clock.vtable->random(&first.clock);
        CHECK(bits == second.clock.vtable->random(&second.clock));
        differ += bits != other.clock.vtable->random(&other.clock);
        int64_t ms = first.clock.vtable->now_ms(&first.clock);
        CHECK(ms == second.clock.vtable->now_ms(&second.clock));
        CHECK(first.clock.vtable->local_ms(&first.clock) - ms <= first.zone_ms + 2);
        (void)second.clock.vtable->local_ms(&second.clock);
    }
    CHECK(differ == 100);
    char uuid[TN_UUID_SIZE];
    char same[TN_UUID_SIZE];
    tn_clock_uuid(&first.clock, uuid);
    tn_clock_uuid(&second.clock, same);
    CHECK(strcmp(uuid, same) == 0);
}

static void the_wall_clock_may_be_set_back_and_monotonic_time_goes_on(void)
{
    struct sim_clock sim;
    sim_clock_init(&sim, 1);
    struct tn_clock *clock = &sim.clock;
    int64_t before_ns = clock->vtable->monotonic_ns(clock);
    int64_t before_ms = clock->vtable->now_ms(clock);
    sim_clock_advance_ms(&sim, 5000);
    CHECK(clock->vtable->now_ms(clock) >= before_ms + 5000);
    sim_clock_set_ms(&sim, 1000);
    CHECK(clock->vtable->now_ms(clock) < 1010);
    CHECK(clock->vtable->monotonic_ns(clock) >= before_ns + INT64_C(5000000000));
}

static const struct test tests[] = {
    TEST(one_seed_gives_one_run),
    TEST(the_wall_clock_may_be_set_back_and_monotonic_time_goes_on),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
