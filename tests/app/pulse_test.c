/* A clock of the test's own, turned by hand. */
#include "app/pulse.h"
#include "check.h"

enum { MS = 1000000 };

/* From one wait's end to the next wait, and no wait itself. */
static void only_what_is_longer_than_50_ms_is_a_stall(void)
{
    static const int64_t away_ms[] = {1, 50, 51, 49, 700, 20};
    struct tn_pulse pulse = {0};
    int64_t now = 1;
    tn_pulse_rest(&pulse, 900 * (int64_t)MS); /* what came before the first wait isn't known */
    for (int i = 0; i < 6; i++) {
        now += 5000 * (int64_t)MS; /* it waited */
        tn_pulse_wake(&pulse, now);
        now += away_ms[i] * MS;
        tn_pulse_rest(&pulse, now);
    }
    CHECK(pulse.turns == 7);
    CHECK(pulse.stalls == 2);
    CHECK(pulse.longest_ns == 700 * (int64_t)MS);
}

static const struct test tests[] = {
    TEST(only_what_is_longer_than_50_ms_is_a_stall),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
