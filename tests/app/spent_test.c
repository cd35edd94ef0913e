/* What a lake was sent: by hour, day and month, whatever the clock does, and over a restart. */
#include "app/spent.h"

#include "check.h"
#include "given.h"
#include "random.h"
#include "sim/disk.h"

#define HOUR (INT64_C(3600) * 1000)
#define DAY  (24 * HOUR)
#define NOV  (INT64_C(20787) * DAY) /* 2026-11-30, a Monday */

static uint64_t bytes_of(const struct tn_spent *spent, enum tn_spent_span span)
{
    return spent->of[span].bytes;
}

static void each_span_begins_anew_by_itself(void)
{
    struct tn_spent spent = {0};
    tn_spent_look(&spent, NOV + 22 * HOUR);
    tn_spent_add(&spent, 100, 3);
    CHECK(bytes_of(&spent, TN_SPENT_HOUR) == 100 && spent.of[TN_SPENT_MONTH].requests == 3);
    tn_spent_look(&spent, NOV + 23 * HOUR - 1);
    CHECK(bytes_of(&spent, TN_SPENT_HOUR) == 100);
    tn_spent_look(&spent, NOV + 23 * HOUR);
    tn_spent_add(&spent, 10, 1);
    CHECK(bytes_of(&spent, TN_SPENT_HOUR) == 10 && bytes_of(&spent, TN_SPENT_DAY) == 110);
    tn_spent_look(&spent, NOV + DAY); /* without anything that is sent */
    CHECK(bytes_of(&spent, TN_SPENT_DAY) == 0 && bytes_of(&spent, TN_SPENT_MONTH) == 0);
    tn_spent_look(&spent, -1); /* before 1970 */
    CHECK(spent.of[TN_SPENT_DAY].at == -1 && spent.of[TN_SPENT_MONTH].at == -1);
}

/* The budget of the day that it comes back to counts what was sent; the next one is a fresh one. */
static void a_clock_that_was_ahead_freezes_nothing(void)
{
    struct tn_spent spent = {0};
    tn_spent_look(&spent, NOV);
    tn_spent_look(&spent, NOV + 4000 * DAY);
    tn_spent_add(&spent, 500, 5);
    tn_spent_look(&spent, NOV + HOUR);
    CHECK(bytes_of(&spent, TN_SPENT_DAY) == 500 && bytes_of(&spent, TN_SPENT_MONTH) == 500);
    tn_spent_add(&spent, 1, 1);
    CHECK(bytes_of(&spent, TN_SPENT_DAY) == 501);
    tn_spent_look(&spent, NOV + DAY);
    for (int i = 0; i < TN_SPENT_SPANS; i++) {
        CHECK(spent.of[i].bytes == 0 && spent.of[i].requests == 0);
    }
}

static void what_was_written_is_read(void)
{
    static unsigned char memory[65536];
    uint64_t random = given_number("SEED", 1);
    struct sim_disk disk;
    struct tn_arena arena;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    sim_disk_init(&disk, 1 << 20);
    for (int round = 0; round < 50; round++) {
        struct tn_spent spent = {0};
        struct tn_spent again;
        tn_spent_look(&spent, (int64_t)(random_next(&random) >> 22));
        tn_spent_add(&spent, random_next(&random) >> 1, random_next(&random) >> 1);
        CHECK_OK(tn_spent_save(&spent, &disk.io, "cloud", &arena, &err), err);
        tn_spent_load(&again, &disk.io, "cloud", &arena);
        CHECK(memcmp(&spent, &again, sizeof spent) == 0);
    }
    tn_arena_reset(&arena, 0);
    sim_disk_deinit(&disk);
}

static void what_says_nothing_of_use_is_nothing_spent(void)
{
    static const char *const texts[] = {"", "1 2 3\n", "1 2 3\n4 5 6\n7 8\n",
                                        "1 2 3\n4 5 6\n7 8 -9\n", "x 2 3\n4 5 6\n7 8 9\n"};
    static unsigned char memory[8192];
    const struct tn_spent none = {0};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct sim_disk disk;
        struct tn_arena arena;
        struct tn_spent spent;
        struct tn_err err;
        tn_arena_init(&arena, memory, sizeof memory);
        sim_disk_init(&disk, 1 << 16);
        CHECK_OK(disk.io.vtable->make_dir(&disk.io, ".tarn/lakes/", &err), err);
        CHECK_OK(tn_io_write_new(&disk.io, ".tarn/lakes/a", tn_bytes_of(texts[i]), &err), err);
        tn_spent_load(&spent, &disk.io, "a", &arena);
        CHECK(memcmp(&spent, &none, sizeof spent) == 0);
        tn_arena_reset(&arena, 0);
        sim_disk_deinit(&disk);
    }
}

static const struct test tests[] = {
    TEST(each_span_begins_anew_by_itself),
    TEST(a_clock_that_was_ahead_freezes_nothing),
    TEST(what_was_written_is_read),
    TEST(what_says_nothing_of_use_is_nothing_spent),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
