/* wait: how long the loop may wait for what comes from outside. Everybody who has a turn of it
 * lowers that to when they want the next one. */
#pragma once

#include <stdint.h>

/* `ms` from now on; what is past (negative) is now. */
static inline void tn_wait_lower(uint32_t *wait_ms, int64_t ms)
{
    int64_t in = ms < 0 ? 0 : ms;
    *wait_ms = in < (int64_t)*wait_ms ? (uint32_t)in : *wait_ms;
}
