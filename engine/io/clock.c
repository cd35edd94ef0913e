#include "io/clock.h"

#include <stdio.h>

void tn_clock_uuid(struct tn_clock *clock, char uuid[TN_UUID_SIZE])
{
    uint64_t high = clock->vtable->random(clock);
    uint64_t low = clock->vtable->random(clock);
    high = (high & ~(uint64_t)0xf000) | 0x4000;          /* version 4 */
    low = (low & (UINT64_MAX >> 2)) | (uint64_t)1 << 63; /* variant 1 */
    (void)snprintf(uuid, TN_UUID_SIZE, "%08x-%04x-%04x-%04x-%04x%08x", (unsigned)(high >> 32),
                   (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff),
                   (unsigned)(low >> 48), (unsigned)(low >> 32 & 0xffff),
                   (unsigned)(low & 0xffffffff));
}
