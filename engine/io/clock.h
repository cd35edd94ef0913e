/* clock: the only door to time and randomness. clock_system.c opens it on the system; tests/sim/ on
 * a clock and a generator that a seed fixes. */
#pragma once

#include <stdint.h>

struct tn_clock;
struct tn_clock_vtable {
    int64_t (*now_ms)(struct tn_clock *clock);   /* wall clock, ms since 1970, UTC */
    int64_t (*local_ms)(struct tn_clock *clock); /* the same moment's local wall clock, as if UTC */
    int64_t (*monotonic_ns)(struct tn_clock *clock); /* never goes back */
    uint64_t (*random)(struct tn_clock *clock);      /* 64 random bits */
};

struct tn_clock {
    const struct tn_clock_vtable *vtable;
};

extern struct tn_clock tn_clock_system;

static inline int64_t tn_clock_monotonic_ms(struct tn_clock *clock)
{
    return clock->vtable->monotonic_ns(clock) / 1000000;
}

enum { TN_UUID_SIZE = 37 }; /* 36 characters and a zero */

/* A random version-4 UUID in lower-case 8-4-4-4-12 form. */
void tn_clock_uuid(struct tn_clock *clock, char uuid[TN_UUID_SIZE]);
