/* random: numbers for property tests, fixed by a seed. SplitMix64: any seed will do, 0 too. */
#pragma once

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

/* 0 .. count - 1 */
static inline uint32_t random_below(uint64_t *state, uint32_t count)
{
    return (uint32_t)((random_next(state) >> 32) * count >> 32);
}
