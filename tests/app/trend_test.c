/* Minutes of a table's compaction, looked at every five seconds of the test's own clock. */
#include "app/trend.h"
#include "check.h"

enum { MINUTE_LOOKS = TN_TREND_MINUTE_MS / TN_TREND_LOOK_MS, NS_PER_MS = 1000000 };

struct table {
    struct tn_trend trend;
    struct tn_trend_look look;
    int64_t now_ms;
};

/* A minute in which the runs over go up from `least` by one a look, and come back with the last. */
static void pass(struct table *t, uint32_t least, uint32_t stalls, uint32_t stopped)
{
    for (uint32_t i = 0; i < MINUTE_LOOKS; i++) {
        CHECK(tn_trend_due(&t->trend, t->now_ms));
        t->look.runs_over = least + (i + 1 < MINUTE_LOOKS ? i : 0);
        t->look.stopped = stopped;
        t->look.stalls += i == 1 ? stalls : 0;
        t->look.compaction_ns += (int64_t)TN_TREND_LOOK_MS / 4 * NS_PER_MS;
        tn_trend_note(&t->trend, &t->look, t->now_ms);
        CHECK(!tn_trend_due(&t->trend, t->now_ms + TN_TREND_LOOK_MS - 1));
        t->now_ms += TN_TREND_LOOK_MS;
    }
}

static struct table begin(void)
{
    struct table t = {.now_ms = 77};
    pass(&t, 0, 0, 0);
    return t;
}

static void a_backlog_that_comes_back_down_converges(void)
{
    struct table t = begin();
    for (int i = 0; i < 20; i++) {
        pass(&t, 0, 0, 0);
        CHECK(tn_trend_converges(&t.trend));
    }
    for (int i = 0; i < 20; i++) {
        pass(&t, 3, 0, 0); /* or to a level of its own */
        CHECK(tn_trend_converges(&t.trend));
    }
}

static void one_whose_least_grows_does_not(void)
{
    struct table t = begin();
    uint32_t minutes = 0;
    for (; tn_trend_converges(&t.trend) && minutes < 100; minutes++) {
        pass(&t, minutes, 0, 0);
    }
    CHECK(minutes > TN_TREND_BAD_MINUTES && minutes < TN_TREND_BAD_MINUTES + 4);
    pass(&t, 1, 0, 0);
    pass(&t, 1, 0, 0);
    CHECK(tn_trend_converges(&t.trend));
}

static void nor_does_one_for_which_flushes_wait(void)
{
    for (int once = 0; once < 2; once++) {
        struct table t = begin();
        for (int i = 0; i < 10; i++) {
            pass(&t, 3, once ? 0 : 1, once ? 1 : 0); /* they come and go, or one waits on */
        }
        CHECK(!tn_trend_converges(&t.trend));
        pass(&t, 3, 0, 0);
        pass(&t, 3, 0, 0);
        CHECK(tn_trend_converges(&t.trend));
    }
}

static void what_is_opened_again_counts_anew(void)
{
    struct table t = begin();
    for (int i = 0; i < 10; i++) {
        pass(&t, 0, 5, 0);
    }
    CHECK(!tn_trend_converges(&t.trend));
    t.look = (struct tn_trend_look){0};
    pass(&t, 0, 0, 0);
    pass(&t, 0, 0, 0);
    CHECK(tn_trend_converges(&t.trend));
}

static void a_quarter_of_the_time_is_25_percent(void)
{
    struct table t = begin();
    pass(&t, 0, 0, 0);
    pass(&t, 0, 0, 0);
    int64_t now = t.now_ms - TN_TREND_LOOK_MS;
    double percent = tn_trend_busy_percent(&t.trend, t.look.compaction_ns, now);
    CHECK(percent > 24.9 && percent < 25.1);
    double later = tn_trend_busy_percent(&t.trend, t.look.compaction_ns, now + 100000000);
    CHECK(later < 1);
    CHECK(tn_trend_busy_percent(&(struct tn_trend){0}, 5, 7) <= 0);
}

static const struct test tests[] = {
    TEST(a_backlog_that_comes_back_down_converges), TEST(one_whose_least_grows_does_not),
    TEST(nor_does_one_for_which_flushes_wait),      TEST(what_is_opened_again_counts_anew),
    TEST(a_quarter_of_the_time_is_25_percent),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
