/* Who has committers wait, and who waits: each pause is one of its own, and none outlives its
 * pauser for long. */
#include "commit/bed.h"
#include "given.h"
#include "upload/pausing.h"

enum { PAUSERS = 4 };

static struct bed bed;
static struct sim_clock clocks[PAUSERS + 1]; /* the last is a committer's */
static struct pausing pausers[PAUSERS];
static struct tn_pause_watch watch;
static struct tn_pause seen;
static struct tn_err err;

static void set_up(uint64_t seed)
{
    static const char *const names[] = {"zero", "one", "two", "three"};
    check_seed = seed;
    bed_init(&bed, seed, false);
    watch = (struct tn_pause_watch){.any = false};
    for (uint32_t i = 0; i <= PAUSERS; i++) {
        sim_clock_init(&clocks[i], seed * 10 + i);
        sim_clock_set_ms(&clocks[i], (int64_t)(i + 1) * 1000000007); /* all are wrong */
    }
    for (uint32_t i = 0; i < PAUSERS; i++) {
        pausing_init(&pausers[i], &bed.disk.io, &clocks[i].clock, names[i]);
    }
}

static void pass(int64_t ms)
{
    for (uint32_t i = 0; i <= PAUSERS; i++) {
        sim_clock_advance_ms(&clocks[i], ms);
    }
}

/* What a committer makes of what is there. */
static bool is_paused(void)
{
    tn_rc rc = tn_pause_read(&bed.disk.io, "db.t", &bed.own, &seen, &err);
    CHECK_OK(rc, err);
    return tn_pause_holds(&watch, &seen, &clocks[PAUSERS].clock);
}

static void the_last_that_goes_ends_the_pause(void)
{
    set_up(1);
    CHECK(!is_paused());
    pausing_keep(&pausers[0]);
    CHECK(is_paused() && strcmp(seen.by, "zero") == 0 && !watch.alive);
    pausing_keep(&pausers[1]);
    CHECK(is_paused() && watch.alive);
    pausing_lift(&pausers[1]);
    CHECK(is_paused() && strcmp(seen.by, "zero") == 0);
    pausing_keep(&pausers[1]);
    pausing_lift(&pausers[0]);
    pausing_lift(&pausers[0]);
    CHECK(is_paused() && strcmp(seen.by, "one") == 0);
    pausing_lift(&pausers[1]);
    CHECK(!is_paused() && !seen.set);
    bed_deinit(&bed);
}

static void one_that_died_is_waited_out(void)
{
    set_up(2);
    pausing_keep(&pausers[0]);
    for (int64_t ms = 0; ms < TN_PAUSE_TTL_MS; ms += TN_PAUSE_BEAT_MS) {
        CHECK(is_paused() && !watch.alive);
        pass(TN_PAUSE_BEAT_MS);
    }
    CHECK(!is_paused() && seen.set);
    pausing_keep(&pausers[1]); /* somebody pauses before it is forgotten */

    tn_rc rc = tn_pause_forget(&pausers[0].directory.target, "db.t", &seen, &bed.own, &err);
    CHECK_OK(rc, err);
    CHECK(is_paused());
    pausing_lift(&pausers[1]);
    CHECK(is_paused()); /* the dead one's is as new */
    pass(TN_PAUSE_TTL_MS);
    CHECK(!is_paused());
    rc = tn_pause_forget(&pausers[0].directory.target, "db.t", &seen, &bed.own, &err);
    CHECK_OK(rc, err);
    CHECK(!is_paused() && !seen.set);
    bed_deinit(&bed);
}

/* Whoever goes leaves none behind that nobody holds. */
static void one_that_died_is_left_out_by_others(void)
{
    set_up(3);
    pausing_keep(&pausers[0]);
    for (int64_t ms = 0; ms <= TN_PAUSE_TTL_MS; ms += TN_PAUSE_BEAT_MS) {
        pausing_keep(&pausers[1]);
        CHECK(is_paused());
        pass(TN_PAUSE_BEAT_MS);
    }
    pausing_keep(&pausers[1]);
    pausing_lift(&pausers[1]);
    CHECK(!is_paused() && !seen.set);
    bed_deinit(&bed);
}

/* By hand, or by one that writes on no condition. */
static void a_mark_that_was_taken_away_is_set_again(void)
{
    set_up(4);
    pausing_keep(&pausers[0]);
    tn_rc rc = bed.disk.io.vtable->unlink(&bed.disk.io, ".tarn/db.t/pause", &err);
    CHECK_OK(rc, err);
    pausing_keep(&pausers[0]);
    CHECK(!is_paused() && !pausers[0].lost);
    pass(TN_PAUSE_BEAT_MS);
    pausing_keep(&pausers[0]);
    CHECK(is_paused() && pausers[0].lost);
    pass(TN_PAUSE_BEAT_MS);
    pausing_keep(&pausers[0]);
    CHECK(is_paused() && !pausers[0].lost);
    bed_deinit(&bed);
}

/* What nobody can read is a pause, until it has stood for its time. */
static void what_cannot_be_read_is_a_pause_for_a_while(void)
{
    static char large[TN_PAUSE_TEXT_MAX + 2];
    static const char *const texts[] = {
        "", "{}", "{\"version\": 1}", "tarn-pause 2\n{\"id\"", "tarn-pause 2\n{}\n", large};
    memset(large, 'x', sizeof large - 1);
    for (size_t i = 0; i < COUNT(texts); i++) {
        set_up(5 + i);
        tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ".tarn/db.t/", &err);
        CHECK_OK(rc, err);
        rc = tn_io_write_new(&bed.disk.io, ".tarn/db.t/pause", tn_bytes_of(texts[i]), &err);
        CHECK_OK(rc, err);
        CHECK(is_paused() && strcmp(seen.by, "somebody") == 0);
        pass(TN_PAUSE_TTL_MS);
        CHECK(!is_paused());
        pausing_keep(&pausers[0]);
        CHECK(is_paused() && strcmp(seen.by, "zero") == 0);
        bed_deinit(&bed);
    }
}

/* Pausers come, beat, go and die; one who commits now and then, and may look first at any time,
 * never goes on beside one who is alive, and does when there has been none for long. */
static void a_history(uint64_t seed)
{
    bool alive[PAUSERS] = {false};
    int64_t since_any_ms = 0;
    uint64_t random = seed * 7 + 3;
    set_up(seed);
    for (int step = 0; step < 200; step++) {
        uint32_t who = random_below(&random, PAUSERS);
        uint32_t what = random_below(&random, 8);
        if (what < 2 && !alive[who]) {
            pausing_init(&pausers[who], &bed.disk.io, &clocks[who].clock, "a process");
            struct pausing *p = &pausers[who];
            tn_rc rc = tn_pauser_keep(&p->pauser, &p->scratch, &p->lost, &err);
            CHECK(rc == TN_OK || rc == TN_FULL); /* of those that died */
            alive[who] = rc == TN_OK;
        } else if (what == 2 && alive[who]) {
            pausing_lift(&pausers[who]);
            alive[who] = false;
        } else if (what == 3) {
            alive[who] = false;
        } else if (what == 4) {
            watch = (struct tn_pause_watch){.any = false};
        }
        bool any = false;
        for (uint32_t i = 0; i < PAUSERS; i++) {
            if (alive[i]) {
                pausing_keep(&pausers[i]);
                CHECK(!pausers[i].lost);
                any = true;
            }
        }
        bool paused = is_paused();
        if (any && !paused) {
            FAIL("step %d: it goes on beside one who pauses", step);
        }
        since_any_ms = any || what == 4 ? 0 : since_any_ms;
        if (since_any_ms > TN_PAUSE_TTL_MS + TN_PAUSE_BEAT_MS && paused) {
            FAIL("step %d: it waits for nobody", step);
        }
        int64_t ms = 1 + random_below(&random, 2) * TN_PAUSE_BEAT_MS;
        ms = random_below(&random, 20) == 0 ? TN_PAUSE_TTL_MS + TN_PAUSE_BEAT_MS : ms;
        for (uint32_t i = 0; i < PAUSERS; i++) { /* who is alive beats in time */
            ms = alive[i] && ms > TN_PAUSE_BEAT_MS ? TN_PAUSE_BEAT_MS : ms;
        }
        pass(ms);
        since_any_ms += ms;
    }
    bed_deinit(&bed);
}

static void who_commits_waits_for_the_living_only(void)
{
    double until = given_until(2, 1);
    uint64_t seed = given_number("SEED", 1);
    for (int i = 0; i < 5 || seconds_now() < until; i++, seed++) {
        a_history(seed);
    }
}

static const struct test tests[] = {
    TEST(the_last_that_goes_ends_the_pause),          TEST(one_that_died_is_waited_out),
    TEST(one_that_died_is_left_out_by_others),        TEST(a_mark_that_was_taken_away_is_set_again),
    TEST(what_cannot_be_read_is_a_pause_for_a_while), TEST(who_commits_waits_for_the_living_only),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
