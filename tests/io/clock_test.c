/* The system's clock goes forward; a UUID is of version 4, and no other's. */
#include "io/clock.h"

#include <stdbool.h>

#include "check.h"

static void uuids_have_the_shape_of_version_4_and_differ(void)
{
    char seen[40][TN_UUID_SIZE];
    for (size_t i = 0; i < COUNT(seen); i++) {
        tn_clock_uuid(&tn_clock_system, seen[i]);
        CHECK(strlen(seen[i]) == 36);
        for (size_t j = 0; j < 36; j++) {
            bool dash = j == 8 || j == 13 || j == 18 || j == 23;
            CHECK(dash ? seen[i][j] == '-' : strchr("0123456789abcdef", seen[i][j]) != NULL);
        }
        CHECK(seen[i][14] == '4');
        CHECK(strchr("89ab", seen[i][19]) != NULL);
        for (size_t j = 0; j < i; j++) {
            CHECK(strcmp(seen[i], seen[j]) != 0);
        }
    }
}

static void time_is_plausible_and_monotonic_time_never_goes_back(void)
{
    struct tn_clock *clock = &tn_clock_system;
    int64_t now_ms = clock->vtable->now_ms(clock);
    CHECK(now_ms > INT64_C(1700000000000));
    int64_t off_ms = clock->vtable->local_ms(clock) - now_ms;
    CHECK(off_ms > -INT64_C(50) * 3600 * 1000 && off_ms < INT64_C(50) * 3600 * 1000);
    int64_t last = clock->vtable->monotonic_ns(clock);
    for (int i = 0; i < 1000; i++) {
        int64_t next = clock->vtable->monotonic_ns(clock);
        CHECK(next >= last);
        last = next;
    }
}

static const struct test tests[] = {
    TEST(uuids_have_the_shape_of_version_4_and_differ),
    TEST(time_is_plausible_and_monotonic_time_never_goes_back),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
