#include "sim/clock.h"

#include "check.h"
#include "random.h"

enum { NS_PER_MS = 1000000, HOUR_MS = 3600 * 1000 };

static struct sim_clock *sim_of(struct tn_clock *clock)
{
    return (struct sim_clock *)(void *)clock;
}

static void look(struct sim_clock *sim)
{
    sim_clock_advance_ms(sim, random_below(&sim->random, 3));
}

static int64_t now_ms(struct tn_clock *clock)
{
    look(sim_of(clock));
    return sim_of(clock)->wall_ms;
}

static int64_t local_ms(struct tn_clock *clock)
{
    look(sim_of(clock));
    return sim_of(clock)->wall_ms + sim_of(clock)->zone_ms;
}

static int64_t monotonic_ns(struct tn_clock *clock)
{
    look(sim_of(clock));
    return sim_of(clock)->passed_ns;
}

static uint64_t random_bits(struct tn_clock *clock)
{
    return random_next(&sim_of(clock)->random);
}

static const struct tn_clock_vtable vtable = {
    .now_ms = now_ms,
    .local_ms = local_ms,
    .monotonic_ns = monotonic_ns,
    .random = random_bits,
};

void sim_clock_init(struct sim_clock *clock, uint64_t seed)
{
    *clock = (struct sim_clock){
        .clock = {.vtable = &vtable},
        .random = seed,
        .wall_ms = INT64_C(1704067200000),
    };
    clock->zone_ms = (int64_t)random_below(&clock->random, 27) * HOUR_MS - 12 * (int64_t)HOUR_MS;
}

void sim_clock_advance_ms(struct sim_clock *clock, int64_t ms)
{
    CHECK(ms >= 0);
    clock->wall_ms += ms;
    clock->passed_ns += ms * NS_PER_MS;
}

void sim_clock_set_ms(struct sim_clock *clock, int64_t wall_ms)
{
    clock->wall_ms = wall_ms;
}
