#include <sys/random.h>
#include <time.h>

#include "base/check.h"
#include "io/clock.h"

static struct timespec now(clockid_t which)
{
    struct timespec at;
    TN_CHECK(clock_gettime(which, &at) == 0);
    return at;
}

static int64_t now_ms(struct tn_clock *clock)
{
    (void)clock;
    struct timespec at = now(CLOCK_REALTIME);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static int64_t local_ms(struct tn_clock *clock)
{
    (void)clock;
    struct timespec at = now(CLOCK_REALTIME);
    struct tm local;
    int64_t offset_s = localtime_r(&at.tv_sec, &local) ? local.tm_gmtoff : 0;
    return ((int64_t)at.tv_sec + offset_s) * 1000 + at.tv_nsec / 1000000;
}

static int64_t monotonic_ns(struct tn_clock *clock)
{
    (void)clock;
    struct timespec at = now(CLOCK_MONOTONIC);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* Up to 256 bytes getrandom neither stops half-way nor is interrupted. */
static uint64_t random_bits(struct tn_clock *clock)
{
    (void)clock;
    uint64_t bits;
    TN_CHECK(getrandom(&bits, sizeof bits, 0) == (ssize_t)sizeof bits);
    return bits;
}

static const struct tn_clock_vtable vtable = {
    .now_ms = now_ms,
    .local_ms = local_ms,
    .monotonic_ns = monotonic_ns,
    .random = random_bits,
};

struct tn_clock tn_clock_system = {.vtable = &vtable};
