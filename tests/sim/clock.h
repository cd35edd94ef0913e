/* clock: time and randomness that a seed fixes.
 *
 * Each look at the clock moves it on by up to 2 ms, so that nothing can count on two equal or two
 * different times. Tests move it further, or set the wall clock back.
 */
#pragma once

#include <stdint.h>

#include "io/clock.h"

struct sim_clock {
    struct tn_clock clock; /* first: &sim.clock is what the engine gets */
    uint64_t random;
    int64_t wall_ms;
    int64_t passed_ns; /* since init; what monotonic time shows */
    int64_t zone_ms;   /* local time is this much ahead */
};

/* Starts at 2024-01-01 00:00 UTC, in a zone of its own. */
void sim_clock_init(struct sim_clock *clock, uint64_t seed);

void sim_clock_advance_ms(struct sim_clock *clock, int64_t ms);  /* time passes; ms >= 0 */
void sim_clock_set_ms(struct sim_clock *clock, int64_t wall_ms); /* somebody sets the wall clock */
