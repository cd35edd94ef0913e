/* Lakes of a daemon: each snapshot that is committed comes to each of them, in order, whatever
 * fails in between; who fails waits longer each time and keeps nobody else; what a lake lacks
 * doesn't expire, but for one that gives way on a full disk. */
#include "lakes_world.h"

/* ---- tests ---- */

static void each_commit_comes_to_each_lake(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 3; round++) {
        begin_lakes(random_next(&random));
        send_some(400);
        settle();
        struct tn_err err;
        CHECK_OK(tn_lakes_check(&s.lakes, &err), err);
        CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
        CHECK(s.tries[0] > 20 && s.tries[1] < s.tries[0] / 2); /* every 200 ms */
        CHECK(s.lakes.lakes[0].failures == 0 && bytes_of(0) > bytes_of(1));
        CHECK(s.lakes.lakes[0].spent.of[TN_SPENT_DAY].bytes == bytes_of(0));
        daemon_close(&world.daemon);
        world.daemon.open = 0;
        world.daemon.intake_open = false;
        check_rows_at(0, 0);
        check_rows_at(0, 1);
        check_rows_at(1, 1);
        bed_engine_start(&engine, &world.disk.io, 1);
        end_lakes();
    }
}

/* Calls of a lake's disk fail, and the whole lake does, for a while. */
static void who_fails_goes_on_where_it_was(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 3; round++) {
        begin_lakes(random_next(&random));
        s.noisy = true;
        for (int i = 0; i < 60; i++) {
            uint32_t lake = random_below(&random, LAKES);
            s.off[lake] = random_below(&random, 4) == 0;
            sim_disk_fail_call(&s.disks[lake], s.disks[lake].calls + 1 + random_below(&random, 200),
                               random_below(&random, 2) ? TN_IO : TN_FULL);
            send_some(10);
        }
        s.off[0] = s.off[1] = s.noisy = false;
        for (int i = 0; i < LAKES; i++) {
            sim_disk_fail_call(&s.disks[i], 0, TN_OK);
        }
        CHECK(s.lakes.lakes[0].failures + s.lakes.lakes[1].failures > 0);
        settle();
        CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
        CHECK(!mirror_of(0, 0)->stopped && !mirror_of(0, 1)->stopped && !mirror_of(1, 1)->stopped);
        end_lakes();
    }
}

/* From half a second to a minute, as within a try; the other lake has all meanwhile. */
static void pauses_grow_and_keep_nobody_else(void)
{
    begin_lakes(4);
    s.off[0] = true;
    send_some(100);
    int64_t last_ms = s.tried_ms[0];
    int64_t longest_ms = 0;
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    for (int i = 0; i < 4000; i++) {
        int64_t retry_ms = m->retry_ms;
        turn_lakes(i < 100);
        sim_clock_advance_ms(&engine.clock, i < 100 ? 0 : 200);
        if (m->retry_ms != retry_ms) {
            int64_t pause_ms = m->retry_ms - s.tried_ms[0];
            CHECK(now_ms() >= retry_ms);
            CHECK(pause_ms >= 250 && pause_ms <= MINUTE_MS + 1000);
            longest_ms = pause_ms > longest_ms ? pause_ms : longest_ms;
            last_ms = now_ms();
        }
    }
    CHECK(longest_ms > MINUTE_MS / 2 && m->tries > 8 && last_ms > 0 && has_all(1, 1) &&
          !has_all(0, 1));
    char text[TN_ERR_TEXT_SIZE];
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, m), "permission") == 0);
    CHECK(strcmp(tn_lakes_trouble(&s.lakes, m, text, sizeof text),
                 "it doesn't let us: all: nobody there") == 0);
    CHECK(tn_lakes_age_ms(&s.lakes, m) > MINUTE_MS && tn_lakes_lag(m) > 0 && m->tally.bytes > 0);
    struct tn_err err;
    settle();
    CHECK(tn_lakes_check(&s.lakes, &err) == TN_CONFLICT && strstr(err.text, "lake all lacks"));
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1));
    CHECK_OK(tn_lakes_check(&s.lakes, &err), err);
    CHECK(!tn_lakes_trouble(&s.lakes, m, text, sizeof text));
    end_lakes();
}

/* From the start on, also before the first upload, and over a restart. */
static void what_a_lake_lacks_stays(void)
{
    begin_lakes(6);
    s.off[0] = true;
    for (int i = 0; i < 4; i++) {
        send_some(200);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS); /* all but ten are too old */
    }
    CHECK(newest_of(&world.disk.io, 0) > 12 && oldest_of(&world.disk.io, 0) == 1);
    close_lakes();
    open_lakes();
    CHECK(mirror_of(0, 0)->have_id == 0);
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && oldest_of(&s.disks[0].io, 0) == 1);
    for (int64_t id = 1; id <= newest_of(&s.disks[0].io, 0); id++) {
        size_t mark = tn_arena_mark(&engine.own);
        CHECK(snapshot_of(&s.disks[0].io, 0, id).size > 0);
        tn_arena_reset(&engine.own, mark);
    }
    for (int i = 0; i < 30; i++) {
        send_some(20);
        sim_clock_advance_ms(&engine.clock, HOUR_MS);
    }
    CHECK(oldest_of(&world.disk.io, 0) > 1); /* what it has got expires */
    end_lakes();
}

/* Who can't be reached has an old commit for ever, and takes long each time; others have their
 * turn.
 */
static void who_fails_and_takes_long_keeps_nobody_else(void)
{
    begin_lakes(given_number("SEED", 13));
    send_some(50);
    settle();
    s.off[0] = true;
    s.slow_ms = 40 * 1000; /* two tables of it: one of them is always due */
    for (int i = 0; i < 50; i++) {
        send_some(4);
        int64_t newest = newest_of(&world.disk.io, 1);
        run_for(6, false, 100);
        CHECK(mirror_of(1, 1)->have_id >= newest);
    }
    CHECK(s.lakes.lakes[0].failures > 5);
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
    end_lakes();
}

static void a_lake_with_another_history_is_sent_nothing(void)
{
    begin_lakes(8);
    send_some(200);
    settle();
    struct tn_err err;
    char path[64];
    const char *const name = path;
    int64_t id = newest_of(&s.disks[0].io, 0) + 1; /* somebody commits there */
    (void)snprintf(path, sizeof path, "%s/snapshot/snapshot-%" PRId64, roots[0], id);
    struct tn_bytes other = snapshot_of(&s.disks[0].io, 0, id - 1);
    CHECK_OK(tn_io_write_new(&s.disks[0].io, path, other, &err), err);
    CHECK_OK(s.disks[0].io.vtable->sync(&s.disks[0].io, &name, 1, &err), err);
    s.shown[0][0] = INT64_MAX; /* it is looked at no more */
    send_some(200);
    settle();
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    uint64_t failures = s.lakes.lakes[0].failures;
    CHECK(m->stopped && m->trouble == TN_CONFLICT && has_all(0, 1) && has_all(1, 1));
    CHECK(newest_of(&s.disks[0].io, 0) == id && failures == 1);
    CHECK(tn_lakes_check(&s.lakes, &err) == TN_CONFLICT);
    send_some(200);
    CHECK(s.lakes.lakes[0].failures == failures);
    end_lakes();
}

static void fill_the_disk(void)
{
    s.off[0] = true;
    for (int i = 0; i < 4; i++) {
        send_some(200);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS);
    }
    sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
    for (int i = 0; i < 600; i++) {
        turn_lakes(false);
        sim_clock_advance_ms(&engine.clock, 50);
    }
}

/* Sources stop, and it is said why, until the lake has got what stays for it. */
static void on_a_full_disk_sources_stop(void)
{
    disk_reserve = RESERVE;
    begin_lakes(9);
    char text[TN_ERR_TEXT_SIZE];
    fill_the_disk();
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    CHECK(world.daemon.intake.reserve.low && oldest_of(&world.disk.io, 0) == 1);
    s.off[0] = false;
    settle();
    CHECK(has_all(0, 0));
    CHECK(!tn_lakes_trouble(&s.lakes, m, text, sizeof text));
    end_lakes();
    disk_reserve = 0;
}

/* It is not said to be in trouble while it waits for that, but for what it then holds. */
static void a_full_disk_does_not_wait_for_every(void)
{
    disk_reserve = RESERVE;
    begin_lakes(10);
    char text[TN_ERR_TEXT_SIZE];
    s.configs[0].every_ms = 24 * HOUR_MS;
    send_some(200);
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    CHECK(m->known && !has_all(0, 0) && !tn_lakes_trouble(&s.lakes, m, text, sizeof text));
    world.daemon.intake.reserve.low = true;
    CHECK(strstr(tn_lakes_trouble(&s.lakes, m, text, sizeof text), "stay on the full disk"));
    world.daemon.intake.reserve.low = false;
    sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
    for (int i = 0; i < 600; i++) {
        turn_lakes(false);
        sim_clock_advance_ms(&engine.clock, 50);
    }
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
    disk_reserve = 0;
}

/* What it lacks expires, and it goes on behind a gap. */
static void on_a_full_disk_a_lake_gives_way(void)
{
    disk_reserve = RESERVE;
    begin_lakes(9);
    s.configs[0].gap = true;
    send_some(50);
    settle();
    int64_t had = newest_of(&s.disks[0].io, 0);
    fill_the_disk();
    int64_t oldest = oldest_of(&world.disk.io, 0);
    CHECK(had > 0 && oldest > had + 1);
    sim_disk_capacity(&world.disk, UINT64_MAX);
    s.off[0] = false;
    for (int i = 0; i < 200; i++) {
        turn_lakes(false);
        sim_clock_advance_ms(&engine.clock, 50);
    }
    CHECK(!world.daemon.intake.reserve.low);
    send_some(50);
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && oldest_of(&s.disks[0].io, 0) >= oldest);
    end_lakes();
    disk_reserve = 0;
}

static void settle_tables(void)
{
    struct tn_lakes_mirror *m = mirror_of(0, 1);
    while (!tn_keeper_settled(&world.daemon.keepers[0]) ||
           !tn_keeper_settled(&world.daemon.keepers[1]) || world.daemon.intake.ring.count > 0) {
        turn_lakes(false);
    }
    for (int i = 0; i < 2000 && (m->tally.to < m->seen_id || i < 500); i++) {
        turn_lakes(false);
    }
    CHECK(m->tally.to == m->seen_id && m->tally.from == m->have_id + 1);
}

/* Lets all go that was kept for the lakes. */
static uint64_t freed_by_expiry(void)
{
    struct tn_err err;
    struct tn_job_wish wish = {.verb = TN_JOB_EXPIRE, .table = "db.k", .expiry = {1, 1, 0}};
    const struct tn_job *job;
    for (int i = 0; i < LAKES; i++) {
        CHECK_OK(tn_consumer_remove(&world.disk.io, roots[1], s.lakes.lakes[i].consumer,
                                    &s.worker.arena, &err),
                 err);
    }
    uint64_t used = sim_disk_used(&world.disk);
    CHECK_OK(tn_jobs_ask(&world.jobs, &wish, &job, &err), err);
    for (int i = 0; job->state != TN_JOB_OVER; i++) {
        turn(&world, false);
        CHECK(i < 5000);
    }
    CHECK_OK(job->rc, job->err);
    return used - sim_disk_used(&world.disk);
}

/* What will be sent, and what would be free, but for the texts of snapshots, lists and hints. */
static void what_a_lake_lacks_is_counted(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 4; round++) {
        begin_lakes(random_next(&random));
        s.off[0] = s.off[1] = true;
        send_some(200);
        settle_tables();
        const struct tn_lakes_mirror *m = mirror_of(0, 1);
        struct tn_lakes_tally tally = m->tally;
        uint64_t lists = 8192 * (uint64_t)m->seen_id;
        CHECK(tally.from == 1 && tally.rows >= (uint64_t)world.sent[1] && tally.bytes > 0);
        if (round % 2 == 0) {
            s.off[1] = false;
            settle();
            CHECK(has_all(1, 1) && mirror_of(1, 1)->tally.bytes == 0);
            CHECK(bytes_of(1) >= tally.bytes && bytes_of(1) <= tally.bytes + lists / 4);
        } else {
            uint64_t freed = freed_by_expiry();
            CHECK(freed >= tally.pinned && freed <= tally.pinned + 2 * lists);
        }
        end_lakes();
    }
}

/* Whoever sends while one gives way moves its consumer back, and nothing would expire. So there are
 * no uploads of it until the expiry is over; those of others end in peace. */
static void what_gives_way_is_let_go_whoever_sends(void)
{
    uint64_t random = given_number("SEED", 1);
    for (int round = 0; round < 3; round++) {
        disk_reserve = RESERVE;
        begin_lakes(random_next(&random));
        s.configs[0].gap = true;
        s.noisy = true;
        s.off[0] = s.off[1] = true;
        send_some(400);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS);
        send_some(100);
        int64_t oldest = oldest_of(&world.disk.io, 0);
        s.off[0] = s.off[1] = false;
        sim_disk_capacity(&s.disks[0], sim_disk_used(&s.disks[0]) + 20000); /* no room for all */
        sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
        mirror_of(1, 1)->retry_ms = now_ms() + HOUR_MS;
        for (int i = 0; i < 2000; i++) {
            mirror_of(0, i % 16 < 8 ? 0 : 1)->retry_ms = 0;
            turn_lakes(false);
            mirror_of(1, 1)->retry_ms = s.lakes.way.mirror ? 0 : mirror_of(1, 1)->retry_ms;
            sim_clock_advance_ms(&engine.clock, (int64_t)random_below(&random, 100));
        }
        CHECK(oldest_of(&world.disk.io, 0) > oldest && has_all(1, 1));
        CHECK(s.stopped <= 2);
        end_lakes();
    }
    disk_reserve = 0;
}

/* ---- policies ---- */

/* Whatever a script says, be it nonsense: what the lake shows is whole, in order, from the first id
 * on, and no answer loses anything. look_at() compares each snapshot that it shows. */
static void no_policy_can_do_harm(void)
{
    static const char policy[] =
        "local m = {}\n"
        "local odd = { 0, 1, -1, 3, 1 << 62, 0.5, '7', true }\n"
        "local names = { 'db.a', 'db.k', 'db.x', '' }\n"
        "function m.upload(state)\n"
        "    local p = state.pending\n"
        "    local function any(list) return list[math.random(#list)] end\n"
        "    local kind = math.random(8)\n"
        "    if kind == 1 then return any({ 'wait', 'now', 'nwo', '' }) end\n"
        "    if kind == 2 then return { wait = any({ 1, 2, 5, 0, -1 }) } end\n"
        "    if kind == 3 then error('no') end\n"
        "    if kind == 4 then while true do end end\n"
        "    if kind == 5 then return { through = any(odd) } end\n"
        "    if kind == 6 then return { tables = { any(names), any(names) } } end\n"
        "    local plan = { bytes = math.random(20000) }\n"
        "    if p.count > 0 then plan.through = math.random(p.oldest, p.newest) end\n"
        "    if kind == 8 then state.pending.newest = 99; plan.through = 98 end\n"
        "    return plan\n"
        "end\n"
        "return m";
    uint64_t random = given_number("SEED", 1);
    begin_lakes(random_next(&random));
    use_policy(policy);
    for (int i = 0; i < 150; i++) {
        run_for(10, true, 0);
        sim_clock_advance_ms(&engine.clock, (int64_t)random_below(&random, 3 * MINUTE_MS));
        tn_script_resume(&s.lakes.lakes[0].policy->script); /* as if it were loaded anew */
        for (uint32_t t = 0; t < TABLES; t++) {
            int64_t newest = newest_of(&s.disks[0].io, t);
            for (int64_t id = newest > 3 ? newest - 3 : 1; id <= newest; id++) {
                size_t mark = tn_arena_mark(&engine.own);
                struct tn_bytes there = snapshot_of(&s.disks[0].io, t, id);
                CHECK(id < oldest_of(&world.disk.io, t) ||
                      tn_bytes_equal(there, snapshot_of(&world.disk.io, t, id)));
                tn_arena_reset(&engine.own, mark);
            }
        }
    }
    CHECK(newest_of(&s.disks[0].io, 0) > 0 && s.lakes.lakes[0].policy->script.failures > 5);
    CHECK(s.lakes.lakes[0].failures == 0 && oldest_of(&s.disks[0].io, 0) == 1);
    use_policy("return { upload = function() return 'now' end }");
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1) && has_all(1, 1));
    end_lakes();
}

/* It waits, is behind, and says so; with a script that works it has all. */
static void a_policy_that_fails_has_its_lake_wait(void)
{
    char text[TN_ERR_TEXT_SIZE];
    begin_lakes(12);
    use_policy("return { upload = function(state) return state.pendng end }");
    send_some(100);
    const struct tn_lakes_mirror *m = mirror_of(0, 0);
    CHECK(newest_of(&s.disks[0].io, 0) == 0 && tn_lakes_lag(m) > 0);
    CHECK(newest_of(&s.disks[1].io, 1) > 0);
    const char *trouble = tn_lakes_trouble(&s.lakes, m, text, sizeof text);
    CHECK(trouble && strstr(trouble, "its policy failed, so it waits: policy.lua:1: "));
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, m), "policy") == 0);
    run_for(9000, false, MINUTE_MS); /* until it is parked */
    CHECK(strstr(tn_lakes_trouble(&s.lakes, m, text, sizeof text), "parked"));
    settle();
    struct tn_err err;
    CHECK(tn_lakes_check(&s.lakes, &err) == TN_CONFLICT && strstr(err.text, "parked"));
    use_policy("return { upload = function() return 'now' end }");
    settle();
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
}

/* Half of what is pending, again and again: `through` and the order hold. */
static void a_plan_is_obeyed(void)
{
    begin_lakes(given_number("SEED", 1));
    use_policy("return { upload = function(state)\n"
               "    local p = state.pending\n"
               "    if p.count < 8 then return 'wait' end\n"
               "    return { through = p.oldest + 2, tables = { 'db.k' } }\n"
               "end }");
    int64_t had = 0;
    for (int i = 0; i < 300; i++) {
        turn_lakes(true);
        const struct tn_lakes_mirror *a = mirror_of(0, 0);
        const struct tn_lakes_mirror *k = mirror_of(0, 1);
        if (k->plan.there && !k->plan.waits && s.lakes.now.mirror == a) {
            CHECK(k->have_id >= k->plan.through);
        }
        int64_t has = newest_of(&s.disks[0].io, 1);
        CHECK(has - had <= 8);
        had = has;
    }
    CHECK(had > 0 && tn_lakes_lag(mirror_of(0, 0)) + tn_lakes_lag(mirror_of(0, 1)) <= 16);
    settle(); /* what a policy holds is settled */
    CHECK(!has_all(0, 0) || !has_all(0, 1));
    end_lakes();
}

/* A day has so many bytes, whatever waits; the next day goes on. */
static void a_budget_of_a_day_holds(void)
{
    enum { BUDGET = 60000, FILE_MAX = 64 * 1024 };
    begin_lakes(given_number("SEED", 1));
    sim_clock_set_ms(&engine.clock, INT64_C(2000000000000)); /* it is set */
    use_policy("return { upload = function(state)\n"
               "    local left = 60000 - state.spent.day.bytes\n"
               "    if left <= 0 then return { wait = 900 } end\n"
               "    return { bytes = left }\n"
               "end }");
    uint64_t before = 0;
    uint32_t spent_days = 0;
    int64_t day = 0;
    for (int i = 0; i < 72; i++) {
        run_for(30, i < 48, 0);
        sim_clock_advance_ms(&engine.clock, HOUR_MS);
        run_for(30, false, 0);
        const struct tn_spent_sum *sum = &s.lakes.lakes[0].spent.of[TN_SPENT_DAY];
        CHECK(sum->bytes <= BUDGET + FILE_MAX);
        spent_days += day != sum->at && before >= BUDGET;
        day = sum->at;
        before = sum->bytes;
    }
    CHECK(spent_days > 0);
    for (int i = 0; i < 1000 && !(has_all(0, 0) && has_all(0, 1)); i++) {
        sim_clock_advance_ms(&engine.clock, 24 * HOUR_MS);
        run_for(30, false, 0);
    }
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
}

/* On a metered link nothing goes, and what is under way ends when the link becomes one. */
static void a_policy_goes_by_the_link(void)
{
    begin_lakes(given_number("SEED", 1));
    s.link = (struct tn_link){.name = "wwan0", .up = true, .metered = true};
    use_policy("return { upload = function(state)\n"
               "    return state.link.up and not state.link.metered and 'now' or 'wait'\n"
               "end }");
    run_for(200, true, 100);
    CHECK(newest_of(&s.disks[0].io, 0) == 0 && newest_of(&s.disks[1].io, 1) > 0);
    s.link = (struct tn_link){.name = "eth0", .up = true};
    run_for(200, true, 100);
    int64_t had = newest_of(&s.disks[0].io, 0);
    CHECK(had > 0);
    s.link.up = false;
    run_for(100, false, 100);
    int64_t has = newest_of(&s.disks[0].io, 0);
    run_for(200, true, 100);
    CHECK(newest_of(&s.disks[0].io, 0) == has && tn_lakes_lag(mirror_of(0, 0)) > 0);
    s.link.up = true;
    run_for(200, false, 100);
    CHECK(has_all(0, 0) && has_all(0, 1));
    end_lakes();
}

static const struct test tests[] = {
    TEST(each_commit_comes_to_each_lake),
    TEST(who_fails_goes_on_where_it_was),
    TEST(pauses_grow_and_keep_nobody_else),
    TEST(what_a_lake_lacks_stays),
    TEST(who_fails_and_takes_long_keeps_nobody_else),
    TEST(a_lake_with_another_history_is_sent_nothing),
    TEST(on_a_full_disk_sources_stop),
    TEST(a_full_disk_does_not_wait_for_every),
    TEST(on_a_full_disk_a_lake_gives_way),
    TEST(what_gives_way_is_let_go_whoever_sends),
    TEST(what_a_lake_lacks_is_counted),
    TEST(no_policy_can_do_harm),
    TEST(a_policy_that_fails_has_its_lake_wait),
    TEST(a_plan_is_obeyed),
    TEST(a_budget_of_a_day_holds),
    TEST(a_policy_goes_by_the_link),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
