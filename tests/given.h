/* given: what a test is told from outside (SEED, CUT_SECONDS), and the time since. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t given_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static inline double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* When this part of the program's seconds is over, of which there are `otherwise` if nobody says.
 */
static inline double given_until(uint64_t otherwise, uint32_t part)
{
    return seconds_now() + (double)given_number("CUT_SECONDS", otherwise) / part;
}
