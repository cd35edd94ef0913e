/* check: what every C test is made of.
 *
 *     static void publish_reports_conflict(void) { ... CHECK(rc == TN_CONFLICT); }
 *     static const struct test tests[] = {TEST(publish_reports_conflict), ...};
 *     int main(int argc, char **argv) { return run_tests(argc, argv, tests, COUNT(tests)); }
 *
 * A test's name is a sentence about behaviour. CHECK ends the process with file, line and
 * condition. `argv[1]` runs one test by name. The last line of each program is "N passed, 0
 * failed".
 */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* clang-format off */
#define TEST(name) {#name, name}
/* clang-format on */

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                              \
        }                                                                         \
    } while (0)

/* The text of `err` beside the condition. */
#define CHECK_OK(rc, err)                                                                  \
    do {                                                                                   \
        if ((rc) != TN_OK) {                                                               \
            (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #rc, (err).text); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

struct test {
    const char *name;
    void (*run)(void);
};

static inline int run_tests(int argc, char **argv, const struct test *tests, size_t count)
{
    int passed = 0;
    for (size_t i = 0; i < count; i++) {
        if (argc < 2 || strcmp(argv[1], tests[i].name) == 0) {
            tests[i].run();
            passed++;
        }
    }
    (void)printf("%d passed, 0 failed\n", passed);
    return passed > 0 ? 0 : 1;
}
