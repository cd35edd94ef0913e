/* Lakes of a daemon, one of whose tables is a part of a table that many gateways share: what is
 * committed here is committed there, each row once, whatever fails, whoever writes over it. */
#include "lakes_world.h"

#include "upload/gather.h"
#include "upload/pausing.h"

static struct tn_lakes_mirror *part(void)
{
    return mirror_of(0, 1);
}

static bool part_has_all(void)
{
    return tn_lakes_lag(part()) == 0 && part()->trouble == TN_OK;
}

/* No process of the daemon's is left, and none may be behind it. */
static void end_and_check_rows(void)
{
    daemon_close(&world.daemon);
    world.daemon.open = 0;
    world.daemon.intake_open = false;
    check_rows_at(0, 1);
    bed_engine_start(&engine, &world.disk.io, 1);
    end_lakes();
}

static struct tn_io *lake_io(void)
{
    return &s.disks[0].io;
}

/* ---- tests ---- */

/* With a mirror beside it, of which nothing is different. */
static void each_commit_is_committed_to_the_lake(void)
{
    uint64_t random = given_number("SEED", 1);
    begin_shared(random_next(&random), TN_SHARE_DIRECT);
    send_some(400);
    settle();
    struct tn_err err;
    CHECK_OK(tn_lakes_check(&s.lakes, &err), err);
    CHECK(part()->shared && part()->way == TN_SHARE_DIRECT && part_has_all());
    CHECK(part()->commits > 10 && part()->commits <= (uint64_t)newest_of(&world.disk.io, 1));
    CHECK(newest_of(lake_io(), 1) == (int64_t)part()->commits && part()->lake_id > 0);
    CHECK(has_all(0, 0) && has_all(1, 0) && !mirror_of(0, 0)->shared);
    CHECK(part()->tally.bytes == 0);
    int64_t next;
    CHECK(tn_consumer_read(&world.disk.io, roots[1], s.lakes.lakes[0].consumer, &engine.own, &next,
                           &err) == TN_ABSENT);
    end_and_check_rows();
}

/* The lake fails at any call, or loses what was not durable; the daemon begins anew now and then,
 * and ends an upload wherever it is. */
static void what_fails_is_committed_once(void)
{
    uint64_t random = given_number("SEED", 1);
    double until = given_until(2, 1);
    for (int round = 0; round < 2 || seconds_now() < until; round++) {
        begin_shared(random_next(&random), TN_SHARE_DIRECT);
        s.noisy = true;
        for (int i = 0; i < 60; i++) {
            struct sim_disk *disk = &s.disks[0];
            bool cut = false;
            uint64_t call = disk->calls + 1 + random_below(&random, 150);
            switch (random_below(&random, 4)) {
            case 0:
                sim_disk_fail_call(disk, call, random_below(&random, 2) ? TN_IO : TN_FULL);
                break;
            case 1:
                sim_disk_fail_call_late(disk, call, TN_IO);
                break;
            case 2:
                sim_disk_cut_at(disk, call);
                cut = true;
                break;
            default:
                s.off[0] = random_below(&random, 3) == 0;
            }
            send_some(8);
            if (random_below(&random, 3) == 0) {
                close_lakes();
                open_lakes();
            }
            if (cut) {
                sim_disk_reboot(disk, random_next(&random));
            }
            sim_disk_fail_call(disk, 0, TN_OK);
            sim_disk_cut_at(disk, 0);
        }
        s.off[0] = s.noisy = false;
        settle();
        CHECK(part_has_all() && has_all(0, 0));
        CHECK(!part()->stopped);
        end_and_check_rows();
    }
}

/* Somebody had read the one before, and copies his own over the newest: with what was there before.
 */
static void replace_newest(void)
{
    static char text[8192];
    static char own[8192];
    char path[64];
    char *at;
    struct tn_err err;
    int64_t id = newest_of(lake_io(), 1);
    size_t mark = tn_arena_mark(&engine.own);
    struct tn_bytes before = snapshot_of(lake_io(), 1, id - 1);
    (void)snprintf(text, sizeof text, "%.*s", (int)before.size, (const char *)before.data);
    CHECK((at = strstr(text, "\"id\"")) != NULL && (at = strchr(at, ':')) != NULL);
    char *end = strchr(at, ',');
    (void)snprintf(own, sizeof own, "%.*s: %" PRId64 "%s", (int)(at - text), text, id, end);
    (void)snprintf(path, sizeof path, "%s/snapshot/snapshot-%" PRId64, roots[1], id);
    const char *const name = path;
    CHECK_OK(lake_io()->vtable->unlink(lake_io(), path, &err), err);
    CHECK_OK(tn_io_write_new(lake_io(), path, tn_bytes_of(own), &err), err);
    CHECK_OK(lake_io()->vtable->sync(lake_io(), &name, 1, &err), err);
    tn_arena_reset(&engine.own, mark);
}

/* It is seen though nothing is committed any more, sent again, and said for an hour. */
static void what_was_written_over_is_sent_again_and_said(void)
{
    char text[TN_ERR_TEXT_SIZE];
    begin_shared(given_number("SEED", 3), TN_SHARE_DIRECT);
    send_some(200);
    settle();
    uint32_t tries = s.tries[0];
    replace_newest();
    run_for(20, false, MINUTE_MS / 4);
    CHECK(part()->replaced == 0 && s.tries[0] == tries); /* nobody is asked sooner */
    run_for(60, false, MINUTE_MS / 4);
    CHECK(part()->replaced == 1 && part_has_all());
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, part()), "replaced") == 0);
    CHECK(strstr(tn_lakes_trouble(&s.lakes, part(), text, sizeof text), "sent again"));
    run_for(240, false, MINUTE_MS / 4);
    CHECK(!tn_lakes_trouble(&s.lakes, part(), text, sizeof text));
    CHECK(part()->look_ms == 0); /* what stays is asked for no more */
    tries = s.tries[0];
    run_for(240, false, MINUTE_MS / 4);
    CHECK(s.tries[0] == tries);
    send_some(20);
    settle();
    end_and_check_rows();
}

static struct pausing pausing;

/* Commits at the lake are paused, by somebody who is there. */
static void begin_pause(void)
{
    pausing_init(&pausing, lake_io(), &engine.clock.clock, "a test");
    tn_pauser_init(&pausing.pauser, &pausing.directory.target, &engine.clock.clock, names[1],
                   "a test");
    pausing_keep(&pausing);
}

static bool is_paused(void)
{
    while (s.lakes.now.mirror == part()) {
        turn_lakes(false);
    }
    return strcmp(tn_lakes_state(&s.lakes, part()), "paused") == 0;
}

/* It waits, says why, and goes on by itself. */
static void a_pause_is_waited_for(void)
{
    char text[TN_ERR_TEXT_SIZE];
    begin_shared(given_number("SEED", 4), TN_SHARE_DIRECT);
    send_some(50);
    settle();
    uint64_t commits = part()->commits;
    uint32_t waited = s.waited;
    begin_pause();
    send_some(100);
    for (int i = 0; i < 100; i++) {
        pausing_keep(&pausing);
        run_for(1, false, 1000);
    }
    CHECK(s.waited == waited && is_paused());
    CHECK(part()->commits == commits && part()->tries > 2 && !part()->stopped);
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, part()), "paused") == 0);
    CHECK(strstr(tn_lakes_trouble(&s.lakes, part(), text, sizeof text), "asked to wait"));
    CHECK(has_all(0, 0) && has_all(1, 0));
    pausing_lift(&pausing);
    run_for(200, false, 1000);
    CHECK(part_has_all() && !tn_lakes_trouble(&s.lakes, part(), text, sizeof text));
    end_and_check_rows();
}

/* Whoever paused was killed: the table comes again until that is known, and meanwhile the lane is
 * free for others. Who hurries waits for it, too. */
static void a_pause_that_was_left_behind_keeps_no_other_table(void)
{
    begin_shared(given_number("SEED", 10), TN_SHARE_DIRECT);
    send_some(50);
    settle();
    uint64_t commits = part()->commits;
    uint64_t failures = s.lakes.lakes[0].failures;
    uint32_t waited = s.waited;
    begin_pause();
    pausing.pauser.set = false; /* and its end isn't heard of */
    int64_t since_ms = now_ms();
    send_some(100);
    run_for(100, false, 100);
    CHECK(is_paused() && part()->commits == commits);
    CHECK(has_all(0, 0) && has_all(1, 0));
    CHECK(now_ms() - since_ms < TN_PAUSE_TTL_MS);
    tn_lakes_hurry(&s.lakes);
    for (int i = 0; i < 600 && !tn_lakes_settled(&s.lakes); i++) {
        run_for(1, false, 1000);
    }
    s.lakes.hurries = false;
    CHECK(part_has_all() && part()->commits > commits && s.waited == waited);
    CHECK(now_ms() - since_ms >= TN_PAUSE_TTL_MS && now_ms() - since_ms < 2 * TN_PAUSE_TTL_MS);
    CHECK(s.lakes.lakes[0].failures == failures);
    end_and_check_rows();
}

/* A part of it elsewhere would be no part of anything: nothing goes there. */
static void it_goes_to_its_own_place_alone(void)
{
    char text[TN_ERR_TEXT_SIZE];
    struct tn_err err;
    int64_t next;
    begin_shared(given_number("SEED", 5), TN_SHARE_DIRECT);
    close_lakes();
    s.items[1][0].text = names[1];
    open_lakes();
    send_some(100);
    settle();
    const struct tn_lakes_mirror *m = mirror_of(1, 1);
    CHECK(part_has_all() && m->stopped && newest_of(&s.disks[1].io, 1) == 0);
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, m), "place") == 0);
    CHECK(strstr(tn_lakes_trouble(&s.lakes, m, text, sizeof text), "is sent there alone"));
    CHECK(tn_consumer_read(&world.disk.io, roots[1], s.lakes.lakes[1].consumer, &engine.own, &next,
                           &err) == TN_ABSENT);
    s.configs[1].tables = NULL;
    close_lakes();
    open_lakes();
    end_and_check_rows();
}

/* What it lacks is told to policies, and what they say is obeyed: how far, how much. */
static void policies_bound_it(void)
{
    uint64_t random = given_number("SEED", 6);
    begin_shared(random_next(&random), TN_SHARE_DIRECT);
    use_policy("return { upload = function(state)\n"
               "    local p = state.pending\n"
               "    if p.count == 0 then return 'wait' end\n"
               "    assert(p.bytes >= 0 and p.rows >= 0 and p.newest >= p.oldest)\n"
               "    local plan = { bytes = math.random(4000), requests = math.random(20) }\n"
               "    if math.random(2) == 1 then plan.through = p.oldest + math.random(3) end\n"
               "    return plan\n"
               "end }");
    uint64_t most = 0;
    for (int i = 0; i < 150; i++) {
        uint64_t bytes = part()->tally.bytes;
        most = bytes > most ? bytes : most;
        run_for(10, i < 60, 0);
        sim_clock_advance_ms(&engine.clock, (int64_t)random_below(&random, 2 * MINUTE_MS));
        if (part()->plan.through > 0 && s.lakes.now.mirror == part()) {
            CHECK(part()->have_id <= part()->seen_id);
        }
    }
    CHECK(most > 0 && s.lakes.lakes[0].failures == 0 && part()->commits > 5);
    use_policy("return { upload = function() return 'now' end }");
    settle();
    CHECK(part_has_all());
    end_and_check_rows();
}

/* Nobody else has its rows: a full disk waits, whatever `on_full` says. */
static void it_never_gives_way_on_a_full_disk(void)
{
    char text[TN_ERR_TEXT_SIZE];
    disk_reserve = RESERVE;
    begin_shared(given_number("SEED", 7), TN_SHARE_DIRECT);
    s.configs[0].gap = true;
    send_some(50);
    settle();
    s.off[0] = true;
    for (int i = 0; i < 4; i++) {
        send_some(100);
        sim_clock_advance_ms(&engine.clock, 2 * HOUR_MS);
    }
    sim_disk_capacity(&world.disk, sim_disk_used(&world.disk) + RESERVE - 1);
    run_for(600, false, 50);
    CHECK(part()->way_id == 0 && part()->tally.pinned > 0);
    CHECK(tn_lakes_trouble(&s.lakes, part(), text, sizeof text) != NULL);
    sim_disk_capacity(&world.disk, UINT64_MAX);
    s.off[0] = false;
    run_for(100, false, 50);
    settle();
    CHECK(part_has_all());
    end_and_check_rows();
    disk_reserve = 0;
}

/* One that was adopted while the daemon ran, which had no memory for it: said, until it begins
 * anew; and the name that a mirror of it would have had holds nothing. */
static void one_that_comes_later_and_does_not_fit_is_refused(void)
{
    char text[TN_ERR_TEXT_SIZE];
    struct tn_err err;
    int64_t next;
    begin_lakes(given_number("SEED", 8));
    close_lakes();
    s.items[1][0].text = names[0];
    s.plain_worker = true;
    open_lakes();
    s.shared = true;
    share_table(TN_SHARE_DIRECT);
    send_some(60);
    run_for(50, false, 1000);
    CHECK(part()->shared && !part()->stopped && newest_of(lake_io(), 1) == 0);
    CHECK(strcmp(tn_lakes_trouble_kind(&s.lakes, part()), "memory") == 0);
    CHECK(strstr(tn_lakes_trouble(&s.lakes, part(), text, sizeof text), "`tarn reload`"));
    CHECK(tn_consumer_read(&world.disk.io, roots[1], s.lakes.lakes[0].consumer, &engine.own, &next,
                           &err) == TN_ABSENT);
    CHECK(has_all(0, 0) && has_all(1, 0));
    s.plain_worker = false;
    close_lakes();
    open_lakes();
    settle();
    CHECK(part_has_all());
    end_and_check_rows();
}

/* A gather takes what was handed in, each once. */
static void what_is_handed_in_is_gathered_once(void)
{
    static unsigned char memory[BED_SCALE * (2 << 20)];
    static struct tn_gather gather;
    struct tn_arena arena;
    struct tn_gather_result result;
    struct tn_err err;
    begin_shared(given_number("SEED", 9), TN_SHARE_GATHER);
    send_some(200);
    settle();
    CHECK(part()->way == TN_SHARE_GATHER && part_has_all() && part()->commits > 5);
    CHECK(newest_of(lake_io(), 1) == 0 && part()->look_ms == 0);
    daemon_close(&world.daemon);
    world.daemon.open = 0;
    world.daemon.intake_open = false;
    close_lakes();
    struct tn_worker worker = s.worker;
    worker.io = lake_io();
    tn_arena_init(&arena, memory, sizeof memory);
    static struct tn_schemas versions;
    const struct tn_schema *schema;
    struct tn_options options;
    tn_schemas_init(&versions, lake_io(), roots[1], &arena);
    CHECK_OK(tn_schemas_newest(&versions, &schema, &err), err);
    CHECK_OK(tn_options_read(schema, TN_OPTIONS_WRITE, &arena, &options, &err), err);
    struct tn_gather_spec spec = {
        .table = {names[1], roots[1], schema, &options}, .worker = &worker, .arena = &arena};
    CHECK_OK(tn_gather_open(&gather, &spec, &err), err);
    do {
        CHECK_OK(tn_gather_round(&gather, true, &result, &err), err);
        CHECK(result.refused == 0);
    } while (result.entries + result.known > 0);
    check_rows_at(0, 1);
    bed_engine_start(&engine, &world.disk.io, 1);
    open_lakes();
    end_lakes();
}

static const struct test tests[] = {
    TEST(each_commit_is_committed_to_the_lake),
    TEST(what_fails_is_committed_once),
    TEST(what_was_written_over_is_sent_again_and_said),
    TEST(a_pause_is_waited_for),
    TEST(a_pause_that_was_left_behind_keeps_no_other_table),
    TEST(it_goes_to_its_own_place_alone),
    TEST(policies_bound_it),
    TEST(it_never_gives_way_on_a_full_disk),
    TEST(one_that_comes_later_and_does_not_fit_is_refused),
    TEST(what_is_handed_in_is_gathered_once),
};

int main(int argc, char **argv)
{
    return daemon_run_tests(argc, argv, tests, COUNT(tests));
}
