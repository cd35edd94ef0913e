/* What Paimon 1.3.1 picked for 72 lists of runs (tests/golden/pick), and what must hold for any
 * list. */
#include "levels/pick.h"

#include "check.h"
#include "given.h"
#include "random.h"

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

/* ---- units that would be too large ---- */

static struct tn_pick_rules random_limited_rules(uint64_t *state)
{
    struct tn_pick_rules rules = defaults;
    rules.trigger = 1 + (int32_t)(random_next(state) % 8);
    rules.num_levels = 2 + (int32_t)(random_next(state) % 7);
    rules.size_ratio = (int32_t)(random_next(state) % 100);
    rules.max_size_amplification = (int32_t)(random_next(state) % 300);
    rules.force_level0 = random_next(state) % 4 == 0;
    rules.unit_size_max = 1 + (int64_t)(random_next(state) >> (2 + random_next(state) % 60));
    rules.crowd = 2 + (uint32_t)(random_next(state) % 10);
    return rules;
}

static int64_t size_of(const struct tn_run *runs, uint32_t count)
{
    int64_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        size = __builtin_add_overflow(size, runs[i].size, &size) ? INT64_MAX : size;
    }
    return size;
}

static bool same_pick(struct tn_pick a, struct tn_pick b)
{
    return a.take == b.take && a.output_level == b.output_level && a.full == b.full &&
           a.reason == b.reason;
}

static void a_limit_that_nothing_reaches_changes_no_pick(void)
{
    uint64_t state = given_number("SEED", 7);
    for (int round = 0; round < 100000; round++) {
        struct tn_run runs[RUNS_MAX];
        uint32_t count = random_runs(&state, runs);
        struct tn_pick_rules rules = random_limited_rules(&state);
        rules.unit_size_max = INT64_MAX;
        struct tn_pick limited = tn_pick(runs, count, &rules);
        rules.unit_size_max = 0;
        CHECK(same_pick(limited, tn_pick(runs, count, &rules)));
    }
}

/* Which runs are in the way of a pick of level 0, whatever its size: all of levels 0 and 1. */
static bool must_take(const struct tn_run *runs, uint32_t count, uint32_t take)
{
    return take > 0 && take <= count && runs[take - 1].level <= 1;
}

static void no_unit_is_too_large_but_where_rows_or_changes_would_wait(void)
{
    uint64_t state = given_number("SEED", 8);
    uint32_t seen[TN_PICK_CROWD + 2] = {0};
    for (int round = 0; round < 200000; round++) {
        struct tn_run runs[RUNS_MAX];
        uint32_t count = random_runs(&state, runs);
        struct tn_pick_rules rules = random_limited_rules(&state);
        struct tn_pick pick = tn_pick(runs, count, &rules);
        struct tn_pick_rules any = rules;
        any.unit_size_max = 0;
        CHECK(pick.take <= count);
        seen[pick.reason]++;
        if (pick.take == 0) {
            CHECK(!rules.force_level0 || count == 0 || runs[0].level > 0);
            CHECK(pick.reason != TN_PICK_HELD || tn_pick(runs, count, &any).take > 0);
            CHECK(count < 2 || count < rules.crowd || size_of(runs, count) <= rules.unit_size_max);
            continue;
        }
        CHECK(pick.output_level > 0 && pick.output_level >= runs[pick.take - 1].level);
        CHECK(pick.take == count || runs[pick.take].level > pick.output_level);
        CHECK(pick.full == (pick.take == count));
        if (size_of(runs, pick.take) > rules.unit_size_max) {
            CHECK((pick.reason == TN_PICK_CROWD && count >= rules.crowd && pick.take > 1) ||
                  (pick.reason == TN_PICK_LEVEL0 && must_take(runs, count, pick.take)));
        }
    }
    CHECK(seen[TN_PICK_HELD] > 0 && seen[TN_PICK_CROWD] > 0 && seen[TN_PICK_LEVEL0] > 0 &&
          seen[TN_PICK_RATIO] > 0 && seen[TN_PICK_COUNT] > 0);
}

/* What is left of so many runs when they are merged: all, or only what the largest has. */
static uint32_t merge(uint64_t *state, struct tn_run *runs, uint32_t count, struct tn_pick pick)
{
    int64_t sum = size_of(runs, pick.take);
    int64_t least = 0;
    for (uint32_t i = 0; i < pick.take; i++) {
        least = runs[i].size > least ? runs[i].size : least;
    }
    int64_t size = least + (int64_t)(random_next(state) % (uint64_t)(sum - least + 1));
    runs[0] = (struct tn_run){pick.output_level, size, 1};
    memmove(runs + 1, runs + pick.take, (count - pick.take) * sizeof *runs);
    return count - pick.take + 1;
}

/* Files come, and what is picked is merged, for a long time. */
static void runs_stay_few_however_small_a_unit_is(void)
{
    uint64_t state = given_number("SEED", 9);
    for (int table = 0; table < 300; table++) {
        struct tn_run runs[RUNS_MAX];
        struct tn_pick_rules rules = random_limited_rules(&state);
        rules.unit_size_max = 1 + (int64_t)(random_next(&state) % 20000);
        uint32_t count = 0;
        for (int file = 0; file < 1000; file++) {
            CHECK(count < RUNS_MAX);
            memmove(runs + 1, runs, count * sizeof *runs);
            runs[0] = (struct tn_run){0, 1 + (int64_t)(random_next(&state) % 1000), 1};
            count++;
            struct tn_pick pick = tn_pick(runs, count, &rules);
            for (int picks = 0; pick.take > 0; picks++) {
                CHECK(picks < RUNS_MAX);
                count = merge(&state, runs, count, pick);
                pick = tn_pick(runs, count, &rules);
            }
            uint32_t most =
                rules.crowd > (uint32_t)rules.trigger ? rules.crowd : (uint32_t)rules.trigger;
            CHECK(count <= most);
        }
    }
}

enum { KEYS = 100000, COMMITS = 100 };

/* Of runs whose keys were drawn from all, each by itself: one with what has any of them. */
static uint32_t merge_drawn(struct tn_run *runs, uint32_t count, struct tn_pick pick)
{
    double missing = 1;
    for (uint32_t i = 0; i < pick.take; i++) {
        missing *= 1 - (double)runs[i].size / KEYS;
    }
    runs[0] = (struct tn_run){pick.output_level, (int64_t)(KEYS * (1 - missing)), 1};
    memmove(runs + 1, runs + pick.take, (count - pick.take) * sizeof *runs);
    return count - pick.take + 1;
}

/* Commits of a hundredth of the keys each, above a table; as parts of what they brought. */
static double written_above(struct tn_run *runs, uint32_t count, int64_t unit_size_max)
{
    struct tn_pick_rules rules = defaults;
    rules.unit_size_max = unit_size_max;
    rules.crowd = 8;
    int64_t written = 0;
    for (int commit = 0; commit < COMMITS; commit++) {
        memmove(runs + 1, runs, count * sizeof *runs);
        runs[0] = (struct tn_run){0, KEYS / COMMITS, 1};
        count++;
        written += runs[0].size;
        for (struct tn_pick pick = tn_pick(runs, count, &rules); pick.take > 0;
             pick = tn_pick(runs, count, &rules)) {
            count = merge_drawn(runs, count, pick);
            written += runs[0].size;
        }
        CHECK(count <= rules.crowd);
    }
    return (double)written / KEYS;
}

/* Be it one run, or still in several; a limit that leaves its oldest run alone saves writing, and
 * one that is smaller than that does, too. */
static void a_table_that_is_changed_bit_by_bit_is_written_five_times_at_most(void)
{
    static const struct tn_run tables[][RUNS_MAX] = {
        {{5, KEYS, 1}},
        {{0, 4300, 1}, {0, 4700, 1}, {4, 19000, 1}, {5, 72000, 1}},
        {{3, 10000, 1}, {4, 20000, 1}, {5, 70000, 1}},
    };
    static const uint32_t counts[] = {1, 4, 3};
    static const int64_t limits[] = {64000, 16000, 8000};
    double all[COUNT(limits) + 1] = {0};
    for (size_t i = 0; i < COUNT(tables) * COUNT(all); i++) {
        struct tn_run runs[RUNS_MAX];
        memcpy(runs, tables[i / COUNT(all)], sizeof runs);
        size_t limit = i % COUNT(all);
        double times =
            written_above(runs, counts[i / COUNT(all)], limit > 0 ? limits[limit - 1] : 0);
        CHECK(limit == 0 || times <= 5);
        all[limit] += times;
    }
    CHECK(all[1] < all[0] && all[2] < all[0] && all[3] < all[0]);
}

static void append_windows_are_as_small_as_a_unit(void)
{
    uint64_t state = given_number("SEED", 11);
    for (int round = 0; round < 100000; round++) {
        int64_t sizes[RUNS_MAX];
        uint32_t count = (uint32_t)(random_next(&state) % RUNS_MAX);
        for (uint32_t i = 0; i < count; i++) {
            sizes[i] = 1 + (int64_t)(random_next(&state) % 1000);
        }
        int64_t target = 1 + (int64_t)(random_next(&state) % 3000);
        int64_t most = 1 + (int64_t)(random_next(&state) % 3000);
        uint32_t least = 1 + (uint32_t)(random_next(&state) % 6);
        struct tn_append_pick pick = tn_pick_append(sizes, count, target, most, least, false);
        struct tn_append_pick any = tn_pick_append(sizes, count, target, 0, least, false);
        int64_t size = 0;
        for (uint32_t i = 0; i < pick.count; i++) {
            size += sizes[pick.first + i];
        }
        CHECK(pick.count == 0 || (pick.count >= least && size <= most && size < 2 * target));
        CHECK(pick.first + pick.count <= count);
        CHECK(most < 2 * target || (any.first == pick.first && any.count == pick.count));
        pick = tn_pick_append(sizes, count, target, most, least, true);
        any = tn_pick_append(sizes, count, target, 0, least, true);
        CHECK(any.first == pick.first && any.count == pick.count);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pick_agrees_with_paimon_1_3),
        TEST(a_pick_keeps_the_order_of_levels),
        TEST(early_full_compaction_follows_its_three_options),
        TEST(full_takes_all_unless_all_is_done),
        TEST(a_limit_that_nothing_reaches_changes_no_pick),
        TEST(no_unit_is_too_large_but_where_rows_or_changes_would_wait),
        TEST(runs_stay_few_however_small_a_unit_is),
        TEST(a_table_that_is_changed_bit_by_bit_is_written_five_times_at_most),
        TEST(append_windows_are_as_small_as_a_unit),
    };
    return run_tests(argc, argv, tests, COUNT(tests));
}
