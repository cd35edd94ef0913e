/* A clock of the test's own, turned by hand. */
#include "app/pulse.h"
#include "check.h"

enum { MS = 1000000 };

/* A turn is what it waited, and what it was away. */
static void only_what_is_longer_than_50_ms_is_a_stall(void)
{
    static const int64_t away_ms[] = {1, 50, 51, 49, 700, 20, 2000};
    static const uint64_t within[TN_PULSE_BOUNDS + 1] = {1, 0, 0, 1, 2, 1, 0, 0, 1, 1};
    struct tn_pulse pulse = {0};
    int64_t now = 900 * (int64_t)MS;
    int64_t waited = 0;
    int64_t sum = 0;
    tn_pulse_note(&pulse, now, waited); /* what came before the first turn's end isn't known */
    for (size_t i = 0; i < COUNT(away_ms); i++) {
        waited += 5000 * (int64_t)MS;
        now += 5000 * (int64_t)MS + away_ms[i] * MS;
        sum += away_ms[i] * MS;
        tn_pulse_note(&pulse, now, waited);
    }
    CHECK(pulse.turns == COUNT(away_ms));
    CHECK(pulse.stalls == 3);
    CHECK(pulse.longest_ns == 2000 * (int64_t)MS);
    CHECK(pulse.away_ns == sum);
    CHECK(memcmp(pulse.within, within, sizeof within) == 0);
}

static const struct test tests[] = {
    TEST(only_what_is_longer_than_50_ms_is_a_stall),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
