/* What Paimon 1.3.1 picked for 72 lists of runs (tests/golden/pick), and what must hold for any
 * list. */
#include "levels/pick.h"

#include "check.h"

enum { RUNS_MAX = 24 };

static const struct tn_pick_rules defaults = {
    .max_size_amplification = 200,
    .size_ratio = 1,
    .trigger = 5,
    .num_levels = 6,
    .optimization_interval_ms = -1,
    .since_full_ms = -1,
    .total_size_threshold = -1,
    .incremental_size_threshold = -1,
};

static int32_t number_after(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    CHECK(at != NULL);
    return (int32_t)strtol(at + strlen(key), NULL, 10);
}

static uint32_t read_runs(const char *line, struct tn_run *runs)
{
    uint32_t count = 0;
    const char *at = strstr(line, "\"runs\": [") + strlen("\"runs\": [");
    while (*at == '[') {
        char *end;
        CHECK(count < RUNS_MAX);
        runs[count].level = (int32_t)strtol(at + 1, &end, 10);
        runs[count].size = strtoll(end + 2, &end, 10);
        runs[count].file_count = 1;
        count++;
        at = end + strspn(end, "], ");
    }
    return count;
}

static void pick_agrees_with_paimon_1_3(void)
{
    FILE *file = fopen("tests/golden/pick/cases.jsonl", "r");
    CHECK(file != NULL);
    char line[512];
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        struct tn_run runs[RUNS_MAX];
        uint32_t count = read_runs(line, runs);
        struct tn_pick_rules rules = defaults;
        rules.max_size_amplification = number_after(line, "\"max_amp\": ");
        rules.size_ratio = number_after(line, "\"ratio\": ");
        rules.trigger = number_after(line, "\"trigger\": ");
        rules.num_levels = number_after(line, "\"num_levels\": ");
        rules.force_level0 = strstr(line, "\"force_l0\": true") != NULL;
        const char *expect = strstr(line, "\"expect_1_3\": ");
        CHECK(expect != NULL);

        struct tn_pick pick = tn_pick(runs, count, &rules);
        if (strncmp(expect, "\"expect_1_3\": null", 18) == 0) {
            CHECK(pick.take == 0);
        } else {
            CHECK(pick.take == (uint32_t)number_after(expect, "\"take\": "));
            CHECK(pick.output_level == number_after(expect, "\"output_level\": "));
        }
        cases++;
    }
    CHECK(fclose(file) == 0);
    CHECK(cases == 72);
}

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint32_t random_runs(uint64_t *state, struct tn_run *runs)
{
    uint32_t count = 0;
    uint32_t level0 = (uint32_t)(random_next(state) % 9);
    for (; count < level0; count++) {
        runs[count] =
            (struct tn_run){0, (int64_t)(random_next(state) >> (random_next(state) % 64)), 1};
        runs[count].size &= INT64_MAX;
    }
    for (int32_t level = 1; level < 8; level++) {
        if (random_next(state) % 3 == 0) {
            int64_t size = (int64_t)(random_next(state) >> (1 + random_next(state) % 62));
            runs[count++] = (struct tn_run){level, size, 1 + (uint32_t)(random_next(state) % 3)};
        }
    }
    return count;
}

/* The files that stay are all above the output, the output overwrites no run that stays, and never
 * is level 0. */
static void a_pick_keeps_the_order_of_levels(void)
{
    uint64_t state = 42;
    for (int round = 0; round < 200000; round++) {
        struct tn_run runs[RUNS_MAX];
        uint32_t count = random_runs(&state, runs);
        struct tn_pick_rules rules = defaults;
        rules.trigger = (int32_t)(random_next(&state) % 8);
        rules.size_ratio = (int32_t)(random_next(&state) % 100);
        rules.force_level0 = random_next(&state) % 2;
        struct tn_pick pick = tn_pick(runs, count, &rules);
        CHECK(pick.take <= count);
        if (pick.take == 0) {
            CHECK(!rules.force_level0 || count == 0 || runs[0].level > 0);
            continue;
        }
        CHECK(pick.output_level > 0);
        CHECK(pick.output_level >= runs[pick.take - 1].level);
        CHECK(pick.take == count || runs[pick.take].level > pick.output_level);
        CHECK(pick.full == (pick.take == count));
        CHECK(!pick.full || pick.output_level == tn_pick_level_max(runs, count, &rules));
    }
}

static void early_full_compaction_follows_its_three_options(void)
{
    const struct tn_run runs[] = {{0, 10, 1}, {5, 1000, 1}};
    struct tn_pick_rules rules = defaults;
    CHECK(tn_pick(runs, 2, &rules).take == 0);

    rules.optimization_interval_ms = 1000;
    CHECK(tn_pick(runs, 2, &rules).full);
    rules.since_full_ms = 1000;
    CHECK(tn_pick(runs, 2, &rules).take == 0);
    rules.since_full_ms = 1001;
    CHECK(tn_pick(runs, 2, &rules).full);
    CHECK(tn_pick(runs + 1, 1, &rules).take == 0);

    rules = defaults;
    rules.total_size_threshold = 1010;
    CHECK(tn_pick(runs, 2, &rules).take == 0);
    rules.total_size_threshold = 1011;
    CHECK(tn_pick(runs, 2, &rules).full);

    rules = defaults;
    rules.incremental_size_threshold = 10;
    CHECK(tn_pick(runs, 2, &rules).take == 0);
    rules.incremental_size_threshold = 9;
    CHECK(tn_pick(runs, 2, &rules).full);
}

static void full_takes_all_unless_all_is_done(void)
{
    const struct tn_run runs[] = {{0, 1, 1}, {3, 10, 2}, {5, 100, 1}, {7, 100, 1}};
    CHECK(tn_pick_full(runs, 0, &defaults).take == 0);
    struct tn_pick pick = tn_pick_full(runs, 3, &defaults);
    CHECK(pick.take == 3 && pick.output_level == 5 && pick.full);
    pick = tn_pick_full(runs, 1, &defaults);
    CHECK(pick.take == 1 && pick.output_level == 5);
    CHECK(tn_pick_full(runs + 2, 1, &defaults).take == 0);
    pick = tn_pick_full(runs, 4, &defaults); /* found above num-levels */
    CHECK(pick.take == 4 && pick.output_level == 7);
    CHECK(tn_pick_full(runs + 3, 1, &defaults).take == 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pick_agrees_with_paimon_1_3),
        TEST(a_pick_keeps_the_order_of_levels),
        TEST(early_full_compaction_follows_its_three_options),
        TEST(full_takes_all_unless_all_is_done),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
