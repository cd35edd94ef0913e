/* Gathers and gateways at once, with cuts, kills and failures: what was handed in is in the table,
 * once, and every snapshot is whole. */
#include "upload/gather_world.h"

#ifdef TN_DEBUG
enum { HISTORIES = 2 };
#else
enum { HISTORIES = 8 };
#endif

static struct world w;

/* Till nobody else was faster. */
static void round_of(uint32_t who)
{
    tn_rc rc = world_round(&w, who);
    for (int i = 0; rc == TN_CONFLICT && i < 3; i++) {
        rc = world_round(&w, who);
    }
    CHECK_OK(rc, w.err);
}

/* Until nothing waits, with nobody in between. */
static void drain(void)
{
    w.chance = 0;
    w.bed.disk.fail_call = 0;
    for (uint32_t i = 0; i < WORLD_GATEWAYS; i++) {
        if (w.gateways[i].waits) {
            world_put(&w, i);
        }
    }
    for (int i = 0;; i++) {
        tn_rc rc = world_round(&w, 0);
        CHECK(rc == TN_OK || rc == TN_CONFLICT);
        struct tn_gather_result *r = &w.gathers[0].result;
        if (rc == TN_OK && r->entries + r->known + r->refused == 0 && !r->more) {
            return;
        }
        if (i >= 100) {
            FAIL("it doesn't end: %s: %s", tn_rc_text(rc), w.err.text);
        }
    }
}

static void what_is_handed_in_is_committed_once(void)
{
    world_init(&w, 1);
    for (uint32_t i = 0; i < 10; i++) {
        world_put(&w, i % WORLD_GATEWAYS);
    }
    tn_rc rc = world_round(&w, 0);
    CHECK_OK(rc, w.err);
    struct tn_gather_result *r = &w.gathers[0].result;
    CHECK(r->snapshot_id == 1 && r->entries == 10 && r->rows > 0 && !r->more && r->refused == 0);
    struct tn_snapshot s = bed_snapshot(&w.bed, 1);
    CHECK(strcmp(s.commit_kind, "APPEND") == 0 && s.total_record_count.value == r->rows);
    rc = world_round(&w, 0);
    CHECK_OK(rc, w.err);
    CHECK(r->snapshot_id == 0 && r->entries == 0 && world_newest(&w) == 1);
    world_check(&w);
    world_deinit(&w);
}

/* Calls of two gathers and of gateways between each other, and nothing fails. */
static void two_gathers_are_harmless(void)
{
    uint64_t first_seed = given_number("SEED", 1);
    for (uint64_t seed = first_seed; seed < first_seed + HISTORIES; seed++) {
        world_init(&w, seed);
        for (int step = 0; step < 30; step++) {
            w.chance = 1 + random_below(&w.random, 60);
            world_put(&w, random_below(&w.random, WORLD_GATEWAYS));
            tn_rc rc = world_round(&w, random_below(&w.random, WORLD_GATHERS));
            bool gone = w.far && rc == TN_IO; /* what was in the way of a name is no more */
            if (rc != TN_OK && rc != TN_CONFLICT && !gone) {
                FAIL("%s: %s", tn_rc_text(rc), w.err.text);
            }
        }
        drain();
        if (w.refused > 0) {
            FAIL("refused: %s", w.reason);
        }
        world_check(&w);
        world_deinit(&w);
    }
}

/* Each call may fail, before or behind its work, and processes end anywhere. */
static void failures_and_kills_do_no_harm(void)
{
    uint64_t first_seed = given_number("SEED", 1);
    for (uint64_t seed = first_seed; seed < first_seed + HISTORIES; seed++) {
        world_init(&w, seed);
        for (int step = 0; step < 60; step++) {
            uint32_t who = random_below(&w.random, WORLD_GATHERS);
            w.chance = 20 + random_below(&w.random, 100);
            world_put(&w, random_below(&w.random, WORLD_GATEWAYS));
            uint64_t call = w.bed.disk.calls + 1 + random_below(&w.random, 120);
            if (random_below(&w.random, 2) == 0) {
                sim_disk_fail_call(&w.bed.disk, call, TN_IO);
            } else {
                sim_disk_fail_call_late(&w.bed.disk, call, TN_IO);
            }
            tn_rc rc = world_round(&w, who);
            (void)rc;
            w.bed.disk.fail_call = 0;
            if (random_below(&w.random, 3) == 0) {
                world_start(&w, who);
            }
        }
        drain();
        if (w.refused > 0) {
            FAIL("refused: %s", w.reason);
        }
        world_check(&w);
        world_deinit(&w);
    }
}

/* The lake's disk loses power before any call, with whatever wasn't synced. */
static void cuts_do_no_harm(void)
{
    double until = given_until(6, 2);
    uint64_t seed = given_number("SEED", 1);
    for (int history = 0; history < 2 || seconds_now() < until; history++, seed++) {
        world_init(&w, seed);
        w.bed.disk.model = random_below(&w.random, 2) ? SIM_STRICT : SIM_ORDERED;
        for (int step = 0; step < 25; step++) {
            w.chance = 20 + random_below(&w.random, 200);
            world_put(&w, random_below(&w.random, WORLD_GATEWAYS));
            sim_disk_cut_at(&w.bed.disk, w.bed.disk.calls + 1 + random_below(&w.random, 150));
            tn_rc rc = world_round(&w, random_below(&w.random, WORLD_GATHERS));
            (void)rc;
            if (w.bed.disk.off || random_below(&w.random, 4) == 0) {
                sim_disk_reboot(&w.bed.disk, random_below(&w.random, 8));
                for (uint32_t i = 0; i < WORLD_GATHERS; i++) {
                    world_start(&w, i);
                }
            }
            sim_disk_cut_at(&w.bed.disk, 0);
        }
        drain();
        if (w.refused > 0) {
            FAIL("refused: %s", w.reason);
        }
        world_check(&w);
        world_deinit(&w);
    }
}

/* An entry that was gathered comes again, at once or much later: the last of its gateway is known
 * for ever, older ones are put aside when nothing tells any more. Never are they added twice. */
static void an_entry_that_comes_again_is_known(void)
{
    uint64_t first_seed = given_number("SEED", 1);
    for (uint64_t seed = first_seed; seed < first_seed + HISTORIES; seed++) {
        world_init(&w, seed);
        w.bed.options.snapshot_retained_min = 1;
        w.bed.options.snapshot_retained_max = 1;
        for (int step = 0; step < 40; step++) {
            uint32_t gateway = random_below(&w.random, WORLD_GATEWAYS);
            world_put(&w, random_below(&w.random, WORLD_GATEWAYS));
            uint32_t who = random_below(&w.random, WORLD_GATHERS);
            round_of(who);
            world_count(&w);
            bool settled;
            tn_rc look = tn_gather_look_again(&w.gathers[who].gather, &settled, &w.err);
            CHECK(look == TN_OK || look == TN_CONFLICT);
            if (settled && random_below(&w.random, 3) == 0) {
                struct tn_expire_spec expire = {
                    .root = ROOT, .schema = &w.bed.schema, .options = &w.bed.options};
                struct tn_expire_result expired;
                world_compact(&w);
                world_count(&w);
                tn_rc rc = tn_expire(&expire, &w.bed.worker, &expired, &w.err);
                CHECK_OK(rc, w.err);
            }
            int64_t put = w.gateways[gateway].put;
            uint32_t refused = w.refused;
            world_put_again(&w, gateway, put);
            if (random_below(&w.random, 2) == 0) {
                world_start(&w, 0);
            }
            round_of(0);
            if (w.refused > refused) {
                FAIL("refused: %s", w.reason);
            }
            world_put_again(&w, gateway, put > 1 ? 1 + random_below(&w.random, (uint32_t)put) : 0);
        }
        drain();
        world_check(&w);
        world_deinit(&w);
    }
}

/* ---- what is wrong stays with who sent it ---- */

static bool refused_is_there(const char *name, const char *reason)
{
    char path[128];
    struct tn_bytes text;
    size_t mark = tn_arena_mark(&w.bed.own);
    (void)snprintf(path, sizeof path, ".tarn/db.t/refused/%s.reason", name);
    tn_rc rc = tn_io_read_all(&w.bed.disk.io, path, 4096, &w.bed.own, &text, &w.err);
    bool there = rc == TN_OK && strstr((const char *)text.data, reason) != NULL;
    tn_arena_reset(&w.bed.own, mark);
    return there;
}

static void wrong_entries_are_put_aside_and_the_others_go_on(void)
{
    static unsigned char large[TN_COMMITTABLE_SIZE_MAX + 1];
    world_init(&w, 7);
    world_put(&w, 0);
    tn_rc rc = world_put_text(&w, 1, 1, tn_bytes_of("no committable"));
    CHECK_OK(rc, w.err);
    rc = world_put_text(&w, 1, 2, (struct tn_bytes){large, sizeof large});
    CHECK_OK(rc, w.err);
    world_put(&w, 2);
    rc = world_put_text(&w, 3, 9, tn_buf_bytes(&w.gateways[2].texts[1])); /* another's files */
    CHECK_OK(rc, w.err);
    rc = world_round(&w, 0);
    CHECK_OK(rc, w.err);
    CHECK(w.gathers[0].result.refused == 3 && w.gathers[0].result.entries == 2);
    CHECK(refused_is_there("gw-1/1", "no committable"));
    CHECK(refused_is_there("gw-1/2", "at most"));
    CHECK(refused_is_there("gw-3/9", "another entry"));
    drain();
    world_check(&w);
    world_deinit(&w);
}

/* Between here and the store stands something that answers in its place: that is no entry's fault.
 */
static void what_a_store_says_puts_no_entry_aside(void)
{
    static const tn_rc answers[] = {TN_UNSUPPORTED, TN_CORRUPT, TN_IO};
    for (size_t i = 0; i < COUNT(answers); i++) {
        world_init(&w, 13 + i);
        world_put(&w, 0);
        world_put(&w, 1);
        w.answer = answers[i];
        struct tn_gather_result *result = &w.gathers[0].result;
        tn_rc rc = tn_gather_round(&w.gathers[0].gather, true, result, &w.err);
        CHECK(rc != TN_OK && result->refused == 0 && w.refused == 0 && world_newest(&w) == 0);
        drain();
        CHECK(w.refused == 0);
        world_check(&w);
        world_deinit(&w);
    }
}

static void an_entry_whose_file_is_missing_is_put_aside(void)
{
    world_init(&w, 8);
    world_put(&w, 0);
    struct tn_committable c;
    tn_rc rc = tn_committable_decode(tn_buf_bytes(&w.gateways[0].texts[1]), &w.plan, &w.bed.own, &c,
                                     &w.err);
    CHECK_OK(rc, w.err);
    const char *dir;
    rc = tn_name_bucket(&w.bed.own, ROOT, &w.bed.schema, &w.bed.options, c.added[0].partition,
                        c.added[0].bucket, &dir, &w.err);
    CHECK_OK(rc, w.err);
    const char *path = tn_arena_format(&w.bed.own, "%s%s", dir, c.added[0].file.file_name);
    rc = w.bed.disk.io.vtable->unlink(&w.bed.disk.io, path, &w.err);
    CHECK_OK(rc, w.err);
    world_put(&w, 1);
    rc = world_round(&w, 0);
    CHECK_OK(rc, w.err);
    CHECK(w.gathers[0].result.refused == 1 && w.gathers[0].result.entries == 1);
    CHECK(refused_is_there("gw-0/1", "is not there"));
    world_deinit(&w);
}

/* A later schema than the one that the gather has read: it is told to read again, and only then it
 * is a reason. */
static void a_later_schema_is_read_first(void)
{
    world_init(&w, 9);
    w.bed.schema.id = 1;
    world_put(&w, 0); /* of schema 0 */
    struct tn_entry entry = world_entry(&w, 1, 0, "data");
    entry.file.schema_id = 1;
    tn_rc rc = world_file(&w, &entry);
    CHECK_OK(rc, w.err);
    w.gateways[1].files = 1;
    struct tn_committable c = {.table = "db.t",
                               .schema_id = 1,
                               .user = "u",
                               .added = &entry,
                               .added_count = 1,
                               .row_count = entry.file.row_count};
    static unsigned char memory[4096];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    c.changelog = &entry;
    tn_committable_encode(&c, &text);
    rc = world_put_text(&w, 1, 1, tn_buf_bytes(&text));
    CHECK_OK(rc, w.err);
    struct tn_gather *g = &w.gathers[0].gather;
    w.bed.schema.id = 0;
    rc = tn_gather_round(g, false, &w.gathers[0].result, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(w.gathers[0].result.old_schema && world_newest(&w) == 0 && w.refused == 0);
    w.bed.schema.id = 1;
    rc = tn_gather_round(g, true, &w.gathers[0].result, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(!w.gathers[0].result.old_schema && w.gathers[0].result.entries == 2 && w.refused == 0);
    world_check(&w);
    world_deinit(&w);
}

static void nothing_is_gathered_while_commits_are_paused(void)
{
    world_init(&w, 10);
    world_put(&w, 0);
    w.pausing.pauser.own.since_ms = 1790000000000;
    pausing_keep(&w.pausing);
    sim_disk_reboot(&w.bed.disk, SIM_SEED_NOTHING);
    const struct tn_gather_result *result = &w.gathers[0].result;
    for (int beat = 0; beat < 100; beat++) {
        tn_rc rc = world_round(&w, 0);
        CHECK_OK(rc, w.err);
        CHECK(result->paused && result->pause_alive == (beat > 0) && world_newest(&w) == 0);
        sim_clock_advance_ms(&w.bed.clock, TN_PAUSE_BEAT_MS);
        pausing_keep(&w.pausing);
    }
    CHECK(tn_pause_say(&result->pause, "db.t", &w.err) == TN_AGAIN);
    CHECK(strcmp(w.err.text,
                 "db.t: commits are paused by a \"test\" since 2026-09-21 14:13:20 UTC") == 0);
    pausing_lift(&w.pausing);
    drain();
    world_check(&w);
    world_deinit(&w);
}

/* Whoever paused was killed: its mark is waited out. */
static void a_pause_that_was_left_behind_runs_out(void)
{
    world_init(&w, 12);
    world_put(&w, 0);
    pausing_keep(&w.pausing);
    const struct tn_gather_result *result = &w.gathers[0].result;
    for (int64_t ms = 0; ms < TN_PAUSE_TTL_MS; ms += TN_PAUSE_BEAT_MS) {
        tn_rc rc = world_round(&w, 0);
        CHECK_OK(rc, w.err);
        CHECK(result->paused && !result->pause_alive && !result->pause_over);
        sim_clock_advance_ms(&w.bed.clock, TN_PAUSE_BEAT_MS);
    }
    tn_rc rc = world_round(&w, 0);
    CHECK_OK(rc, w.err);
    CHECK(!result->paused && result->pause_over && world_newest(&w) == 1);
    world_check(&w);
    world_deinit(&w);
}

/* An official writer's, who doesn't ask whether the name is free. */
static void write_over(int64_t id)
{
    struct tn_bytes text;
    struct tn_io *io = &w.bed.disk.io;
    size_t mark = tn_arena_mark(&w.bed.own);
    char path[64];
    (void)snprintf(path, sizeof path, "db.db/t/snapshot/snapshot-%d", (int)id);
    tn_rc rc = tn_io_read_all(io, path, TN_SNAPSHOT_SIZE_MAX, &w.bed.own, &text, &w.err);
    CHECK_OK(rc, w.err);
    char *user = memmem(text.data, text.size, TN_GATHER_USER, strlen(TN_GATHER_USER));
    CHECK(user != NULL);
    memcpy(user, "official", strlen("official"));
    rc = io->vtable->unlink(io, path, &w.err);
    CHECK_OK(rc, w.err);
    rc = tn_io_write_new(io, path, text, &w.err);
    CHECK_OK(rc, w.err);
    tn_arena_reset(&w.bed.own, mark);
}

/* Whether the next round finds it as the newest, or behind another one, or so late that its entries
 * are gone: it is said once. */
static void a_snapshot_that_was_written_over_is_said(void)
{
    enum { NEWEST, BEHIND, LATE, WHENS };
    const struct tn_gather_result *r = &w.gathers[0].result;
    for (int when = NEWEST; when < WHENS; when++) {
        world_init(&w, 18);
        world_put(&w, 0);
        round_of(0);
        CHECK(r->snapshot_id == 1 && r->written_over == 0);
        round_of(0);
        CHECK(r->written_over == 0);
        world_put(&w, 1);
        round_of(0);
        CHECK(r->snapshot_id == 2);
        if (when == BEHIND) {
            world_put(&w, 2);
            round_of(1);
        } else if (when == LATE) {
            sim_clock_advance_ms(&w.bed.clock, TN_GATHER_SURE_MS);
            round_of(0);
            CHECK(r->gone == 1 && r->known == 0);
        }
        write_over(2);
        tn_rc rc = world_round(&w, 0); /* or the other one was faster */
        CHECK(rc == (when == BEHIND ? TN_CONFLICT : TN_OK));
        CHECK(r->written_over == 2 && r->heals == (when != LATE));
        round_of(0);
        CHECK(r->written_over == 0);
        world_deinit(&w);
    }
}

/* Entries of a snapshot go when another one was made above it, or after a while. */
static void entries_stay_until_their_snapshot_is_sure(void)
{
    const struct tn_gather_result *r = &w.gathers[0].result;
    world_init(&w, 20);
    world_put(&w, 0);
    world_put(&w, 0);
    round_of(0);
    CHECK(r->entries == 2 && r->gone == 0);
    world_put(&w, 0);
    world_put(&w, 1);
    round_of(0);
    CHECK(r->entries == 2 && r->gone == 2);
    sim_clock_advance_ms(&w.bed.clock, TN_GATHER_SURE_MS - 1000);
    round_of(0);
    CHECK(r->entries == 0 && r->gone == 0);
    world_start(&w, 0); /* another one finds them, and waits as long */
    round_of(0);
    CHECK(r->entries == 0 && r->known == 2 && r->gone == 0);
    sim_clock_advance_ms(&w.bed.clock, TN_GATHER_SURE_MS - 1000);
    round_of(0);
    CHECK(r->known == 0 && r->gone == 0);
    sim_clock_advance_ms(&w.bed.clock, 1000);
    round_of(0);
    CHECK(r->known == 0 && r->gone == 2 && world_newest(&w) == 2);
    world_check(&w);
    world_deinit(&w);
}

/* What is held takes no entry's place, of a gateway or of all. */
static void what_is_held_is_in_nobodys_way(void)
{
    const struct tn_gather_result *r = &w.gathers[0].result;
    world_init(&w, 22);
    for (int i = 0; i < TN_INBOX_SHARE_MAX; i++) {
        world_put(&w, 0);
    }
    round_of(0);
    CHECK(r->entries == TN_INBOX_SHARE_MAX);
    world_put(&w, 0);
    round_of(0);
    CHECK(r->entries == 1 && r->gone == TN_INBOX_SHARE_MAX);
    world_check(&w);
    world_deinit(&w);
}

/* Of those that stood still while another went on none writes marks, also not with the help of what
 * one before it has left. */
static void marks_of_who_stood_still_are_refused(void)
{
    static struct tn_gather_marks marks[3];
    struct tn_worker *worker = &w.bed.worker;
    world_init(&w, 17);
    for (size_t i = 0; i < COUNT(marks); i++) {
        tn_rc rc = tn_gather_marks_init(&marks[i], &w.bed.own, &w.err);
        CHECK_OK(rc, w.err);
    }
    for (int number = 1; number <= 8; number++) {
        for (int still = 1; still <= 2; still++) { /* at 1 and 2 */
            tn_rc rc = number == still + 1
                           ? tn_gather_marks_read(&marks[still], "db.t", worker, &w.err)
                           : TN_OK;
            CHECK_OK(rc, w.err);
        }
        tn_rc rc = tn_gather_marks_read(&marks[0], "db.t", worker, &w.err);
        CHECK_OK(rc, w.err);
        marks[0].after = number;
        rc = tn_gather_marks_write(&marks[0], "db.t", worker, &w.err);
        CHECK_OK(rc, w.err);
    }
    CHECK(marks[1].number == 1 && marks[2].number == 2);
    CHECK(tn_gather_marks_write(&marks[1], "db.t", worker, &w.err) == TN_CONFLICT);
    CHECK(tn_gather_marks_write(&marks[2], "db.t", worker, &w.err) == TN_CONFLICT);
    world_deinit(&w);
}

static tn_rc count_numbers(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    *(int *)user += !is_dir && name[0] != '.';
    return TN_OK;
}

static int marks_there(void)
{
    int count = 0;
    struct tn_io *io = &w.bed.disk.io;
    tn_rc rc = io->vtable->list(io, ".tarn/db.t/gathered/", count_numbers, &count, &w.err);
    CHECK_OK(rc, w.err);
    return count;
}

/* A gather that stood still gives a number that others have left, and is killed before it sees
 * that: what it leaves tells another one, that stood still behind it, nothing. */
static void marks_that_were_left_help_nobody(void)
{
    static struct tn_gather_marks marks[3];
    struct tn_worker *worker = &w.bed.worker;
    bool killed = true;
    for (uint64_t call = 1; killed; call++) {
        world_init(&w, 19);
        for (size_t i = 0; i < COUNT(marks); i++) {
            tn_rc rc = tn_gather_marks_init(&marks[i], &w.bed.own, &w.err);
            CHECK_OK(rc, w.err);
        }
        for (int number = 1; number <= 8; number++) {
            tn_rc rc = tn_gather_marks_read(&marks[0], "db.t", worker, &w.err);
            CHECK_OK(rc, w.err);
            marks[0].after = number;
            rc = tn_gather_marks_write(&marks[0], "db.t", worker, &w.err);
            CHECK_OK(rc, w.err);
            if (number <= 2) { /* two stand still, at 1 and 2 */
                rc = tn_gather_marks_read(&marks[number], "db.t", worker, &w.err);
                CHECK_OK(rc, w.err);
            }
        }
        sim_disk_cut_at(&w.bed.disk, w.bed.disk.calls + call);
        CHECK(tn_gather_marks_write(&marks[1], "db.t", worker, &w.err) != TN_OK);
        killed = w.bed.disk.off;
        sim_disk_cut_at(&w.bed.disk, 0);
        if (killed) {
            sim_disk_reboot(&w.bed.disk, SIM_SEED_ALL);
        }
        CHECK(marks[2].number == 2);
        CHECK(tn_gather_marks_write(&marks[2], "db.t", worker, &w.err) == TN_CONFLICT);
        for (int i = 0; i < 4; i++) { /* and what was left goes */
            tn_rc rc = tn_gather_marks_read(&marks[0], "db.t", worker, &w.err);
            CHECK_OK(rc, w.err);
            CHECK(marks[0].number == 8 && marks[0].after == 8);
        }
        CHECK(marks_there() == 2);
        world_deinit(&w);
    }
}

/* It comes while a round is under way: at any call before the snapshot's files are written. */
static void a_pause_in_the_middle_is_seen(void)
{
    uint32_t held = 0;
    bool paused = true;
    for (uint32_t call = 1; paused; call++) {
        world_init(&w, 11);
        world_put(&w, 0);
        world_put(&w, 1);
        w.pause_at = call;
        tn_rc rc = world_round(&w, 0);
        CHECK_OK(rc, w.err);
        paused = w.gathers[0].result.paused;
        held += paused;
        CHECK((world_newest(&w) == 0) == paused);
        w.pause_at = 0;
        pausing_lift(&w.pausing);
        drain();
        CHECK(w.refused == 0);
        world_check(&w);
        world_deinit(&w);
    }
    CHECK(held > 20);
}

static const struct test tests[] = {
    TEST(what_is_handed_in_is_committed_once),
    TEST(two_gathers_are_harmless),
    TEST(failures_and_kills_do_no_harm),
    TEST(cuts_do_no_harm),
    TEST(an_entry_that_comes_again_is_known),
    TEST(wrong_entries_are_put_aside_and_the_others_go_on),
    TEST(what_a_store_says_puts_no_entry_aside),
    TEST(an_entry_whose_file_is_missing_is_put_aside),
    TEST(a_later_schema_is_read_first),
    TEST(marks_of_who_stood_still_are_refused),
    TEST(marks_that_were_left_help_nobody),
    TEST(nothing_is_gathered_while_commits_are_paused),
    TEST(a_pause_that_was_left_behind_runs_out),
    TEST(a_pause_in_the_middle_is_seen),
    TEST(a_snapshot_that_was_written_over_is_said),
    TEST(entries_stay_until_their_snapshot_is_sure),
    TEST(what_is_held_is_in_nobodys_way),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
