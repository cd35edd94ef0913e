/* clock_watch: whether the wall clock can be trusted.
 *
 *     unset     it shows a moment that is over for certain: before this program was built, or
 *               before something that was written already. A board without a battery begins so
 *     stepped   somebody set it: since the watch began (or since it was no longer unset), wall and
 *               monotonic time are some seconds apart
 *     synced    neither
 */
#pragma once

#include <stdbool.h>

#include "io/clock.h"

enum { TN_CLOCK_STEP_MS = 5000 }; /* what others' clocks may be ahead, too; a guess */

struct tn_clock_watch {
    struct tn_clock *clock;
    int64_t over_ms;  /* a moment that is over */
    int64_t apart_ms; /* wall less monotonic time, when it was last known to be right */
    bool right;       /* it was */
};

/* `known_ms` is when something was written already, or 0. */
void tn_clock_watch_init(struct tn_clock_watch *watch, struct tn_clock *clock, int64_t known_ms);

/* "synced", "unset" or "stepped"; `now_ms` is the wall clock's, as ever. */
const char *tn_clock_watch_look(struct tn_clock_watch *watch, int64_t *now_ms);

/* The day on which this program was built, as a moment that was over then wherever that was. */
int64_t tn_clock_built_ms(void);
