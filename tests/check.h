/* check: what every C test is made of.
 *
 *     static void publish_reports_conflict(void) { ... CHECK(rc == TN_CONFLICT); }
 *     static const struct test tests[] = {TEST(publish_reports_conflict), ...};
 *     int main(int argc, char **argv) { return run_tests(argc, argv, tests, COUNT(tests)); }
 *
 * A test's name is a sentence about behaviour. CHECK ends the process with file, line, test,
 * seed of the world and condition, on one line; whatever else helps comes behind it: who reads a
 * clipped log sees the reason. `argv[1]` runs one test by name. The last line of each program is "N
 * passed, 0 failed".
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* clang-format off */
#define TEST(name) {#name, name}
/* clang-format on */

/* Of the world that was made last; what makes one sets it. 0: nobody has. Weak, so that all files
 * of a program have the same one. */
extern uint64_t check_seed;
__attribute__((weak)) uint64_t check_seed;

/* Of the test that runs. */
extern const char *check_test;
__attribute__((weak)) const char *check_test;

static __attribute__((noinline, unused, format(printf, 3, 4))) void
check_say(const char *file, int line, const char *format, ...)
{
    va_list args;
    (void)fprintf(stderr, "%s:%d: %s%s", file, line, check_test ? check_test : "",
                  check_test ? ": " : "");
    if (check_seed > 0) {
        (void)fprintf(stderr, "seed %" PRIu64 ": ", check_seed);
    }
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

/* The first line of what a failing test says, like printf without a line's end. */
#define COMPLAIN(...) check_say(__FILE__, __LINE__, __VA_ARGS__)

#define FAIL(...)              \
    do {                       \
        COMPLAIN(__VA_ARGS__); \
        abort();               \
    } while (0)

#define CHECK(condition)            \
    do {                            \
        if (!(condition)) {         \
            FAIL("%s", #condition); \
        }                           \
    } while (0)

/* The text of `err` beside the condition. */
#define CHECK_OK(rc, err)                    \
    do {                                     \
        if ((rc) != TN_OK) {                 \
            FAIL("%s: %s", #rc, (err).text); \
        }                                    \
    } while (0)

/* Both beside each other. */
#define CHECK_TEXT(found, wanted)                                      \
    do {                                                               \
        const char *check_found = (found);                             \
        const char *check_wanted = (wanted);                           \
        if (strcmp(check_found, check_wanted) != 0) {                  \
            FAIL("found:  %s\nwanted: %s", check_found, check_wanted); \
        }                                                              \
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
            check_test = tests[i].name;
            tests[i].run();
            check_test = NULL;
            passed++;
        }
    }
    (void)printf("%d passed, 0 failed\n", passed);
    return passed > 0 ? 0 : 1;
}
