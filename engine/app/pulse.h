/* pulse: how long the loop is away from its sockets: the time of each turn but what it waited for
 * them. While it is away nobody is served. The daemon measures itself.
 */
#pragma once

#include <stdint.h>

enum {
    TN_PULSE_STALL_MS = 50, /* longer than this is a stall */
    TN_PULSE_BOUNDS = 9,
};

struct tn_pulse {
    int64_t since_ns;  /* of the last turn's end; 0: there was none */
    int64_t waited_ns; /* all of it, then */
    uint64_t turns;
    uint64_t stalls;
    int64_t longest_ns;
    int64_t away_ns;                      /* of all turns */
    uint64_t within[TN_PULSE_BOUNDS + 1]; /* turns by how long it was away; the last: longer */
};

/* Turns are counted by these. */
static const int64_t tn_pulse_bounds_ms[TN_PULSE_BOUNDS] = {1,   5,   10,  20,  TN_PULSE_STALL_MS,
                                                            100, 200, 500, 1000};

/* At the end of a turn. `waited_ns` is all that the loop ever waited for its sockets. */
static inline void tn_pulse_note(struct tn_pulse *pulse, int64_t now_ns, int64_t waited_ns)
{
    const int64_t ms = 1000000;
    int64_t away = now_ns - pulse->since_ns - (waited_ns - pulse->waited_ns);
    if (pulse->since_ns > 0 && away >= 0) {
        int at = 0;
        while (at < TN_PULSE_BOUNDS && away > tn_pulse_bounds_ms[at] * ms) {
            at++;
        }
        pulse->turns++;
        pulse->within[at]++;
        pulse->away_ns += away;
        pulse->stalls += away > TN_PULSE_STALL_MS * ms;
        pulse->longest_ns = away > pulse->longest_ns ? away : pulse->longest_ns;
    }
    pulse->since_ns = now_ns;
    pulse->waited_ns = waited_ns;
}
