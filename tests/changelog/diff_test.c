/* What differs between two snapshots of random tables: applied to the older one it makes the newer.
 */
#include "changelog/diff.h"

#include "follower.h"

static struct table t;
static struct tn_diff diff;
static struct follower follower;

static void open_diff(const struct tn_snapshot *before, const struct tn_snapshot *after,
                      bool with_deletes)
{
    struct tn_diff_spec spec = {
        .scan = &t.spec, .before = before, .after = after, .with_deletes = with_deletes};
    tn_rc rc = tn_diff_open(&diff, &spec, t.engine.window, BED_WINDOW_SIZE, &t.engine.own,
                            table_worker(&t), &t.err);
    CHECK_OK(rc, t.err);
}

static void apply(bool retracts)
{
    struct tn_kv kv;
    tn_rc rc;
    while ((rc = tn_diff_next(&diff, &kv, &t.err)) == TN_OK) {
        CHECK(retracts || !tn_row_kind_retracts(kv.kind));
        follower_apply(&follower, &diff.projection.layout, &kv);
    }
    if (rc != TN_ABSENT) {
        (void)fprintf(stderr, "%s\n", t.err.text);
    }
    CHECK(rc == TN_ABSENT);
    tn_diff_close(&diff);
}

static void check_pair(int64_t a, int64_t b)
{
    struct tn_snapshot before;
    struct tn_snapshot after;
    size_t mark = tn_arena_mark(&t.engine.own);
    size_t used = table_worker(&t)->arena.used;
    table_snapshot(&t, a, &before);
    table_snapshot(&t, b, &after);
    follower_begin(&follower, &t.scenario, table_position(&t, a));
    open_diff(&before, &after, true);
    apply(true);
    if (!t.scenario.sequenced) { /* else late rows are said, too: diff.h */
        follower_check(&follower, table_position(&t, b));
    }
    CHECK(a != b || follower.told == 0);
    open_diff(&before, &after, false);
    apply(false);
    CHECK(table_worker(&t)->arena.used == used);
    tn_arena_reset(&t.engine.own, mark);
}

static void a_diff_makes_the_newer_snapshot_of_the_older(void)
{
    const char *seed = getenv("SEED");
    uint64_t start = (seed ? strtoull(seed, NULL, 10) : 1) * 1000;
    for (uint64_t i = 0; i < 40; i++) {
        table_open(&t, start + i);
        for (int64_t a = t.first; a <= t.last; a++) {
            for (int64_t b = a; b <= t.last; b++) {
                check_pair(a, b);
            }
        }
        table_close(&t);
    }
}

/* A row that differs in a column that isn't shown is shown. */
static void rows_are_compared_as_a_whole(void)
{
    static const uint32_t fields[] = {1};
    uint64_t whole = 0;
    uint64_t keys = 0;
    for (uint64_t i = 0; i < 10; i++) {
        struct tn_snapshot before;
        struct tn_snapshot after;
        table_open(&t, i);
        table_snapshot(&t, t.first, &before);
        table_snapshot(&t, t.last, &after);
        for (int shown = 0; shown < 2; shown++) {
            struct tn_kv kv;
            t.spec.fields = shown ? fields : NULL;
            t.spec.field_count = (uint32_t)shown;
            open_diff(&before, &after, false);
            CHECK(diff.projection.columns.count == (shown ? 1U : 4U));
            while (tn_diff_next(&diff, &kv, &t.err) == TN_OK) {
                ++*(shown ? &keys : &whole);
            }
            tn_diff_close(&diff);
        }
        table_close(&t);
    }
    CHECK(whole > 0 && whole == keys);
}

static const struct test tests[] = {
    TEST(a_diff_makes_the_newer_snapshot_of_the_older),
    TEST(rows_are_compared_as_a_whole),
};

int main(int argc, char **argv)
{
    bed_engine_make(&t.engine);
    return run_tests(argc, argv, tests, COUNT(tests));
}
