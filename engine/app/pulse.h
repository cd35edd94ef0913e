/* pulse: how long the loop is away from its sockets, between one wait of theirs and the next: while
 * it is, nobody is served. The daemon measures itself.
 */
#pragma once

#include <stdint.h>

enum { TN_PULSE_STALL_MS = 50 }; /* longer than this is a stall */

struct tn_pulse {
    int64_t since_ns; /* of the last wait's end; 0: there was none */
    uint64_t turns;
    uint64_t stalls;
    int64_t longest_ns;
};

/* Before the loop waits. */
static inline void tn_pulse_rest(struct tn_pulse *pulse, int64_t now_ns)
{
    int64_t away = pulse->since_ns > 0 ? now_ns - pulse->since_ns : 0;
    pulse->turns++;
    pulse->stalls += away > (int64_t)TN_PULSE_STALL_MS * 1000000;
    pulse->longest_ns = away > pulse->longest_ns ? away : pulse->longest_ns;
}

/* After it. */
static inline void tn_pulse_wake(struct tn_pulse *pulse, int64_t now_ns)
{
    pulse->since_ns = now_ns;
}
