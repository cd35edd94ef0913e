/* One gather at a time, whatever the clocks say. */
#include "commit/bed.h"
#include "given.h"
#include "upload/gather_lease.h"

static struct bed bed;
static struct sim_clock clocks[3];
static struct tn_lease leases[3];
static struct tn_err err;

static void set_up(uint64_t seed)
{
    bed_init(&bed, seed, false);
    for (uint32_t i = 0; i < COUNT(leases); i++) {
        sim_clock_init(&clocks[i], seed * 10 + i);
        sim_clock_set_ms(&clocks[i], (int64_t)i * 1000000007); /* all are wrong */
        tn_lease_init(&leases[i], &bed.disk.io, &clocks[i].clock, "db.t",
                      i == 0   ? "zero"
                      : i == 1 ? "one"
                               : "two");
    }
}

static tn_rc keep(uint32_t who)
{
    return tn_lease_keep(&leases[who], &bed.own, &err);
}

static void pass(int64_t ms)
{
    for (uint32_t i = 0; i < COUNT(clocks); i++) {
        sim_clock_advance_ms(&clocks[i], ms);
    }
}

static void one_has_it_until_it_gives_it_back(void)
{
    set_up(1);
    tn_rc rc = keep(0);
    CHECK_OK(rc, err);
    for (int i = 0; i < 20; i++) {
        pass(TN_LEASE_BEAT_MS);
        rc = keep(0);
        CHECK_OK(rc, err);
        CHECK(keep(1) == TN_EXISTS && strstr(err.text, "zero") != NULL);
        CHECK(leases[1].alive == (i > 0));
    }
    tn_lease_give(&leases[0], &bed.own);
    rc = keep(1);
    CHECK_OK(rc, err);
    CHECK(keep(0) == TN_EXISTS && strstr(err.text, "one") != NULL);
    bed_deinit(&bed);
}

static void one_that_died_is_followed_after_its_time(void)
{
    set_up(2);
    tn_rc rc = keep(0);
    CHECK_OK(rc, err);
    CHECK(keep(1) == TN_EXISTS);
    pass(TN_LEASE_TTL_MS - 1000);
    CHECK(keep(1) == TN_EXISTS && !leases[1].alive);
    pass(1000);
    rc = keep(1);
    CHECK_OK(rc, err);
    CHECK(leases[1].own.generation == 2);
    /* it wasn't dead */
    CHECK(keep(0) == TN_EXISTS && !leases[0].held && strstr(err.text, "one") != NULL);
    tn_lease_give(&leases[0], &bed.own); /* takes nothing away */
    pass(TN_LEASE_BEAT_MS);
    rc = keep(1);
    CHECK_OK(rc, err);
    bed_deinit(&bed);
}

/* A lease that is torn or somebody's garbage is taken over, too. */
static void what_is_no_lease_is_followed(void)
{
    set_up(3);
    tn_rc rc = bed.disk.io.vtable->make_dir(&bed.disk.io, ".tarn/db.t/", &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(&bed.disk.io, ".tarn/db.t/lease", tn_bytes_of("{\"version\": 1"), &err);
    CHECK_OK(rc, err);
    CHECK(keep(0) == TN_EXISTS);
    pass(TN_LEASE_TTL_MS);
    rc = keep(0);
    CHECK_OK(rc, err);
    bed_deinit(&bed);
}

/* Anybody may stop for any time; from when each has looked after that, one has it. */
static void in_the_end_one_has_it(void)
{
    uint64_t first_seed = given_number("SEED", 1);
    for (uint64_t seed = first_seed; seed < first_seed + 20; seed++) {
        uint64_t random = seed;
        set_up(seed);
        for (int step = 0; step < 200; step++) {
            uint32_t who = random_below(&random, COUNT(leases));
            pass(random_below(&random, 10) == 0 ? 30000 : random_below(&random, 3000));
            tn_rc rc = keep(who);
            CHECK(rc == TN_OK || rc == TN_EXISTS);
            if (random_below(&random, 20) == 0) {
                tn_lease_give(&leases[who], &bed.own);
            }
        }
        for (int i = 0; i < 20; i++) {
            pass(TN_LEASE_BEAT_MS);
            for (uint32_t who = 0; who < COUNT(leases); who++) {
                tn_rc rc = keep(who);
                CHECK(rc == TN_OK || rc == TN_EXISTS);
            }
        }
        CHECK(leases[0].held + leases[1].held + leases[2].held == 1);
        bed_deinit(&bed);
    }
}

static void a_failure_loses_nothing(void)
{
    for (int late = 0; late < 2; late++) {
        for (uint64_t call = 1; call < 12; call++) {
            set_up(4);
            if (late) {
                sim_disk_fail_call_late(&bed.disk, bed.disk.calls + call, TN_IO);
            } else {
                sim_disk_fail_call(&bed.disk, bed.disk.calls + call, TN_IO);
            }
            tn_rc rc = keep(0);
            CHECK(rc == TN_OK || rc == TN_IO);
            bed.disk.fail_call = 0;
            pass(TN_LEASE_BEAT_MS);
            rc = keep(0);
            CHECK_OK(rc, err);
            CHECK(keep(1) == TN_EXISTS);
            bed_deinit(&bed);
        }
    }
}

static const struct test tests[] = {
    TEST(one_has_it_until_it_gives_it_back), TEST(one_that_died_is_followed_after_its_time),
    TEST(what_is_no_lease_is_followed),      TEST(in_the_end_one_has_it),
    TEST(a_failure_loses_nothing),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
