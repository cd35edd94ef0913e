/* Gateways that commit to one table: every commit once in the lake's history, whatever is cut, lost
 * or late, and by whomever it is beaten. */
#include "upload/fleet.h"
#include "upload/pausing.h"
#include "upload/probe.h"

static void change(struct world *w)
{
    switch (random_below(&w->random, 5)) {
    case 0:
        world_compact(w);
        return;
    case 1:
        world_lift(w);
        return;
    default:
        world_append(w);
    }
}

static void sync_ok(struct gateway *g)
{
    tn_rc rc = fleet_sync(g);
    CHECK_OK(rc, g->err);
    CHECK(g->result.last_id == g->w.newest);
}

static void expect_requests(const struct gateway *g, const uint64_t expected[TN_TARGET_VERBS])
{
    const uint64_t *asked = g->counting.target.counts.requests;
    for (int verb = 0; verb < TN_TARGET_VERBS; verb++) {
        if (asked[verb] != expected[verb]) {
            FAIL("verb %d: %d requests, not %d", verb, (int)asked[verb], (int)expected[verb]);
        }
    }
}

/* GET HEAD PUT LIST DELETE: a pause that isn't there, LATEST, a snapshot, its two lists; files;
 * a manifest, two lists, the snapshot, LATEST. */
static void commit_costs_its_files_and_ten_requests(void)
{
    static struct fleet f;
    fleet_init(&f, 2, given_number("SEED", 1));
    for (int i = 0; i < 6; i++) {
        struct gateway *g = &f.gateways[i % 2];
        world_append(&g->w);
        sync_ok(g);
        CHECK(g->result.commits == 1 && g->result.lost == 0);
        if (i >= 2) {
            expect_requests(g, (uint64_t[]){5, 0, g->result.files + 5, 0, 0});
        }
        CHECK(g->counting.replaced == 0 && g->counting.sent_again == 0);
        sync_ok(g);
        expect_requests(g, (uint64_t[]){0, 0, 0, 0, 0});
    }
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* Several snapshots of a gateway are one commit, and what compaction made is none. */
static void snapshots_travel_together_and_compaction_stays_at_home(void)
{
    static struct fleet f;
    static struct fleet_look l;
    fleet_init(&f, 1, given_number("SEED", 2));
    struct gateway *g = &f.gateways[0];
    for (int i = 0; i < 3; i++) {
        world_append(&g->w);
        world_compact(&g->w);
    }
    sync_ok(g);
    CHECK(g->result.commits == 1 && g->result.first_id == 1);
    world_append(&g->w);
    sync_ok(g);
    world_compact(&g->w);
    sync_ok(g);
    CHECK(g->result.commits == 0);
    expect_requests(g, (uint64_t[]){0, 0, 0, 0, 0});
    fleet_look(&f, &l);
    CHECK(l.newest == 2);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

static struct pausing pausing;

/* A file that travels slowly, and meanwhile all are asked to wait, by one who is alive. */
static void pause_while_it_sends(void *user, enum tn_target_verb verb, const char *path)
{
    struct gateway *g = user;
    if (verb == TN_TARGET_PUT && strstr(path, "/bucket-")) {
        sim_clock_advance_ms(&g->w.source.clock, TN_PAUSE_FRESH_MS + 1);
        pausing_keep(&pausing);
    }
    if (pausing.pauser.set) {
        pausing_keep(&pausing);
    }
}

/* Whoever paused was killed: a commit waits as long as it must, and no longer. */
static void a_pause_that_was_left_behind_is_waited_out(void)
{
    static struct fleet f;
    fleet_init(&f, 1, given_number("SEED", 6));
    struct gateway *g = &f.gateways[0];
    pausing_init(&pausing, &f.lake.io, &g->w.source.clock.clock, "a test");
    pausing_keep(&pausing);
    pausing.pauser.set = false;
    world_append(&g->w);
    sync_ok(g);
    CHECK(g->result.commits == 1);
    CHECK(g->waited_ms >= TN_PAUSE_TTL_MS && g->waited_ms < TN_PAUSE_TTL_MS + 10 * 1000);
    world_append(&g->w);
    sync_ok(g);
    CHECK(g->result.commits == 1 && g->waited_ms < 1000);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* Who has others to send ends at once, each time, until what it saw has stood for long enough. */
static void a_pause_is_watched_from_sync_to_sync(void)
{
    static struct fleet f;
    struct tn_pause_watch watch = {.any = false};
    fleet_init(&f, 1, given_number("SEED", 7));
    struct gateway *g = &f.gateways[0];
    struct sim_clock *clock = &g->w.source.clock;
    g->watch = &watch;
    pausing_init(&pausing, &f.lake.io, &clock->clock, "a test");
    pausing_keep(&pausing);
    world_append(&g->w);
    int64_t from_ms = tn_clock_monotonic_ms(&clock->clock);
    for (tn_rc rc = fleet_sync(g); rc != TN_OK; rc = fleet_sync(g)) {
        CHECK(rc == TN_AGAIN && g->result.why == TN_SHARE_PAUSED && g->result.commits == 0);
        CHECK(g->waited_ms == 0 && !watch.alive);
        CHECK(tn_clock_monotonic_ms(&clock->clock) - from_ms <= TN_PAUSE_TTL_MS + 10 * 1000);
        sim_clock_advance_ms(clock, 10 * 1000);
    }
    CHECK(tn_clock_monotonic_ms(&clock->clock) - from_ms >= TN_PAUSE_TTL_MS);
    CHECK(g->result.commits == 1);
    pausing_keep(&pausing);
    world_append(&g->w);
    for (int i = 0; i < 3; i++) {
        pausing_keep(&pausing);
        sim_clock_advance_ms(clock, TN_PAUSE_BEAT_MS);
        CHECK(fleet_sync(g) == TN_AGAIN && g->waited_ms == 0);
    }
    CHECK(watch.alive);
    pausing_lift(&pausing);
    sync_ok(g);
    g->watch = NULL;
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* What one store promised another one need not keep. */
static void another_store_is_probed_again(void)
{
    static struct fleet f;
    fleet_init(&f, 1, given_number("SEED", 8));
    struct gateway *g = &f.gateways[0];
    g->place = "one";
    world_append(&g->w);
    sync_ok(g);
    f.careless = true; /* nobody asks the same one */
    world_append(&g->w);
    sync_ok(g);
    g->place = "two";
    world_append(&g->w);
    tn_rc rc = fleet_sync(g);
    CHECK(rc == TN_UNSUPPORTED && g->result.commits == 0);
    f.careless = false;
    sync_ok(g);
    f.careless = true;
    world_append(&g->w);
    sync_ok(g);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

static void a_pause_is_seen_though_files_took_long(void)
{
    static struct fleet f;
    static struct fleet_look l;
    fleet_init(&f, 1, given_number("SEED", 5));
    struct gateway *g = &f.gateways[0];
    f.before = pause_while_it_sends;
    pausing_init(&pausing, &f.lake.io, &g->w.source.clock.clock, "a test");
    world_append(&g->w);
    tn_rc rc = fleet_sync(g);
    CHECK(rc == TN_AGAIN && g->result.commits == 0);
    CHECK(strstr(g->err.text, "paused by a test"));
    fleet_look(&f, &l);
    CHECK(l.newest == 0);
    f.before = fleet_before;
    pausing_lift(&pausing);
    sync_ok(g);
    CHECK(g->result.commits == 1);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* Gateways in each other's way. */
static void every_commit_is_there_once_whoever_is_faster(void)
{
    uint64_t first = given_number("SEED", 3);
    for (uint64_t seed = first; seed < first + 4; seed++) {
        static struct fleet f;
        uint32_t lost = 0;
        fleet_init(&f, FLEET_MAX, seed);
        f.rivals = 60;
        for (int step = 0; step < 60; step++) {
            struct gateway *g = &f.gateways[random_below(&f.random, f.count)];
            change(&g->w);
            tn_rc rc = fleet_sync(g);
            CHECK_OK(rc, g->err);
            lost += g->result.lost;
            CHECK((g->result.lost > 0) >= (g->waited_ms > 0));
        }
        CHECK(lost > 0);
        for (uint32_t i = 0; i < f.count; i++) {
            sync_ok(&f.gateways[i]);
        }
        fleet_check_all(&f);
        fleet_deinit(&f);
    }
}

static void expire_here(struct gateway *g)
{
    world_expire(&g->w, 1, &g->w.source.worker);
}

/* Faults of all kinds at the names, cuts of the gateway at any call, its table expired whenever it
 * may be: in the end each file was given once. */
static void every_commit_is_there_once_whatever_is_cut_or_lost(void)
{
    double until = given_until(8, 2);
    uint64_t seed = given_number("SEED", 4);
    uint32_t failed = 0;
    uint32_t runs = 0;
    for (; runs < 3 || seconds_now() < until; seed++, runs++) {
        static struct fleet f;
        fleet_init(&f, 2 + (uint32_t)(seed % 3), seed);
        f.rivals = 30;
        f.faults = 30;
        for (int step = 0; step < 40; step++) {
            struct gateway *g = &f.gateways[random_below(&f.random, f.count)];
            change(&g->w);
            sim_disk_reboot(&g->w.source.disk, SIM_SEED_ALL);
            bool cut = fleet_chance(&f, 30);
            sim_disk_cut_at(&g->w.source.disk, cut ? 1 + random_below(&f.random, 120) : 0);
            failed += fleet_sync(g) != TN_OK;
            if (cut) {
                sim_disk_reboot(&g->w.source.disk, random_next(&f.random));
            }
            expire_here(g);
        }
        f.faults = 0;
        while (f.late_count > 0) {
            fleet_deliver(&f);
        }
        for (uint32_t i = 0; i < f.count; i++) {
            sync_ok(&f.gateways[i]);
        }
        fleet_check_all(&f);
        fleet_deinit(&f);
    }
    CHECK(failed > 0);
}

enum { LISTS_SIZE = 64 * 1024 }; /* a commit's own files, at the most */

/* However little is allowed at a time it comes there, no file twice, nothing beyond `through`, and
 * of bytes at most one file more. */
static void what_is_allowed_little_by_little_comes_there(void)
{
    uint64_t first = given_number("SEED", 9);
    for (uint64_t seed = first; seed < first + 4; seed++) {
        static struct fleet f;
        uint32_t limited = 0;
        fleet_init(&f, 2, seed);
        struct gateway *g = &f.gateways[0];
        for (int step = 0; step < 120; step++) {
            int64_t done = g->result.last_id;
            if (step < 60) {
                change(&g->w);
                expire_here(g);
            }
            g->bounds = (struct tn_share_bounds){
                .through =
                    random_below(&f.random, 2) ? done + (int64_t)random_below(&f.random, 9) : 0,
                .bytes_max = random_below(&f.random, 2) ? 1 + random_below(&f.random, 3000) : 0,
                .requests_max = random_below(&f.random, 2) ? 1 + random_below(&f.random, 20) : 0};
            tn_rc rc = fleet_sync(g);
            CHECK_OK(rc, g->err);
            int64_t through = g->bounds.through;
            uint64_t most = g->bounds.bytes_max;
            CHECK(through == 0 || g->result.last_id <= (through > done ? through : done));
            CHECK(g->counting.sent_again == 0);
            CHECK(most == 0 || g->directory.target.counts.bytes_sent <=
                                   most + WORLD_BIG + LISTS_SIZE * g->result.commits);
            limited += g->result.limited;
        }
        CHECK(limited > 0);
        g->bounds = (struct tn_share_bounds){0};
        sync_ok(g);
        fleet_check_all(&f);
        fleet_deinit(&f);
    }
}

/* What a plan says is what is asked, when nobody is in the way. */
static void a_plan_says_what_it_takes(void)
{
    static struct fleet f;
    fleet_init(&f, 1, given_number("SEED", 10));
    struct gateway *g = &f.gateways[0];
    world_append(&g->w);
    sync_ok(g); /* the store has been asked what it promises */
    for (int i = 0; i < 8; i++) {
        struct tn_direct_spec spec = {.table = "db.t", .dry_run = true};
        struct tn_direct_result plan;
        for (uint64_t n = random_below(&f.random, 40); n > 0; n--) {
            change(&g->w);
        }
        tn_rc rc = tn_direct_sync(&spec, &g->w.source.worker, &plan, &g->err);
        CHECK_OK(rc, g->err);
        sync_ok(g);
        CHECK(plan.commits == g->result.commits && plan.files == g->result.files);
        CHECK(plan.bytes == g->result.bytes && plan.last_id >= g->result.first_id);
        CHECK(plan.requests >= tn_target_asked(&g->counting.target.counts));
        CHECK(plan.requests <= tn_target_asked(&g->counting.target.counts) + 3 * plan.commits);
    }
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* Somebody who honours no condition had read the one before, and copies his own over the newest. */
static void replace_newest(struct fleet *f, int64_t id)
{
    struct world *w = &f->gateways[1].w;
    struct tn_io *io = &f->lake.io;
    struct tn_worker worker = w->source.worker;
    struct tn_entry added = world_add(w, 0, NULL)->entry;
    struct tn_commit_spec spec = bed_spec(&w->source, 1);
    struct tn_commit_result result;
    struct tn_err err;
    char path[64];
    world_write(io, world_path(w, &added, &w->source.own),
                world_content(added.file.file_name, added.file.file_size));
    (void)snprintf(path, sizeof path, ROOT "/snapshot/snapshot-%d", (int)id);
    tn_rc rc = io->vtable->unlink(io, path, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_hint(io, ROOT, "LATEST", id - 1, &w->source.own, &err);
    CHECK_OK(rc, err);
    spec.user = "official";
    spec.added = &added;
    spec.added_count = 1;
    worker.io = io;
    rc = tn_commit(&spec, &worker, &result, &err);
    CHECK_OK(rc, err);
    CHECK(result.latest_id == id);
}

/* Seen by the next commit, or by a sync with nothing new some time later; and sent again, once. */
static void commit_that_was_replaced_is_sent_again(void)
{
    for (int idle = 0; idle < 2; idle++) {
        static struct fleet f;
        fleet_init(&f, 2, given_number("SEED", 6));
        struct gateway *g = &f.gateways[0];
        world_append(&g->w);
        sync_ok(g);
        world_append(&g->w);
        sync_ok(g);
        replace_newest(&f, g->result.lake_id);
        world_compact(&g->w);
        expire_here(g);
        if (idle) {
            sim_clock_advance_ms(&g->w.source.clock, 11 * 60 * 1000);
        } else {
            world_append(&g->w);
        }
        sync_ok(g);
        CHECK(g->result.replaced == 1 && g->result.commits == 1);
        sync_ok(g);
        CHECK(g->result.replaced == 0 && g->result.commits == 0);
        fleet_check_all(&f);
        fleet_deinit(&f);
    }
}

enum { EXPIRED = 5, SLEEP_MS = 2 * 60 * 60 * 1000 };

static struct {
    struct tn_bytes texts[EXPIRED];
    bool over;
    bool hides; /* nobody may list from then on, until the next sync */
} sleeping;

static const char *snapshot_path(struct world *w, int id)
{
    return tn_arena_format(&w->source.own, ROOT "/snapshot/snapshot-%d", id);
}

/* While one that has read the newest snapshot is at its files the others go on, and what was the
 * newest expires, with the next ones: the name that it wants is free. */
static void sleep_before_the_name(void *user, enum tn_target_verb verb, const char *path)
{
    struct gateway *g = user;
    struct gateway *other = &g->fleet->gateways[1];
    struct tn_io *io = &g->fleet->lake.io;
    if (g == other || verb != TN_TARGET_PUT || !strstr(path, "/snapshot/snapshot-") ||
        sleeping.over) {
        return;
    }
    sleeping.over = true;
    for (int i = 0; i < 6; i++) {
        world_append(&other->w);
        sync_ok(other);
    }
    for (int id = 1; id <= EXPIRED; id++) {
        const char *expired = snapshot_path(&other->w, id);
        tn_rc rc = tn_io_read_all(io, expired, 4096, &other->w.source.own, &sleeping.texts[id - 1],
                                  &g->err);
        CHECK_OK(rc, g->err);
        rc = io->vtable->unlink(io, expired, &g->err);
        CHECK_OK(rc, g->err);
    }
    sim_clock_advance_ms(&g->w.source.clock, SLEEP_MS);
    g->counting.hides = sleeping.hides;
}

/* For who looks at all of the history. */
static void bring_back_expired(struct fleet *f)
{
    struct world *w = &f->gateways[1].w;
    struct tn_err ignored;
    for (int id = 1; id <= EXPIRED; id++) {
        const char *path = snapshot_path(w, id);
        (void)!f->lake.io.vtable->unlink(&f->lake.io, path, &ignored);
        world_write(&f->lake.io, path, sleeping.texts[id - 1]);
    }
}

/* Nobody goes on from a name that was given behind the others' backs, so it is no commit. */
static void name_that_had_expired_is_no_commit(void)
{
    for (int how = 0; how < 4; how++) {
        static struct fleet f;
        fleet_init(&f, 2, given_number("SEED", 8));
        struct gateway *g = &f.gateways[0];
        bool idle = how % 2 == 1;
        sleeping.over = false;
        sleeping.hides = how >= 2;
        for (uint32_t i = 0; i < 2; i++) {
            world_append(&f.gateways[i].w);
            sync_ok(&f.gateways[i]);
        }
        world_append(&g->w);
        f.before = sleep_before_the_name;
        tn_rc rc = fleet_sync(g);
        f.before = fleet_before;
        CHECK(sleeping.over);
        CHECK(rc == TN_IO && g->result.commits == 0);
        if (idle) {
            sim_clock_advance_ms(&g->w.source.clock, 11 * 60 * 1000);
        } else {
            world_append(&g->w);
        }
        sync_ok(g);
        sync_ok(g);
        bring_back_expired(&f);
        fleet_check_all(&f);
        fleet_deinit(&f);
    }
}

static void hide_files(void *user, enum tn_target_verb verb, const char *path)
{
    struct gateway *g = user;
    if (verb == TN_TARGET_HEAD && strstr(path, "/bucket-")) {
        g->counting.denied = path;
    }
}

/* A file that is gone came there with a commit which others have expired since. One that nobody
 * shows for a moment may be there, and no commit came. */
static void file_that_is_hidden_is_not_gone(void)
{
    static struct fleet f;
    fleet_init(&f, 2, given_number("SEED", 9));
    struct gateway *g = &f.gateways[0];
    sleeping.over = false;
    sleeping.hides = false;
    for (uint32_t i = 0; i < 2; i++) {
        world_append(&f.gateways[i].w);
        sync_ok(&f.gateways[i]);
    }
    world_append(&g->w);
    f.before = sleep_before_the_name;
    tn_rc rc = fleet_sync(g);
    CHECK(rc == TN_IO && sleeping.over);
    f.before = hide_files;
    rc = fleet_sync(g);
    CHECK(rc == TN_IO && g->result.commits == 0 && strstr(g->err.text, "denied"));
    f.before = fleet_before;
    sync_ok(g);
    bring_back_expired(&f);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* The store is asked once; one that gives a name twice gets nothing, and leaves nothing behind. */
static void store_that_keeps_no_condition_is_refused(void)
{
    static struct fleet f;
    fleet_init(&f, 1, given_number("SEED", 7));
    struct gateway *g = &f.gateways[0];
    f.careless = true;
    world_append(&g->w);
    for (int i = 0; i < 2; i++) {
        tn_rc rc = fleet_sync(g);
        CHECK(rc == TN_UNSUPPORTED && strstr(g->err.text, "2 were told that it is theirs"));
        CHECK(!fleet_has(&f, 1) && g->counting.target.counts.requests[TN_TARGET_DELETE] == 1);
    }
    f.careless = false;
    sync_ok(g);
    CHECK(g->counting.target.counts.requests[TN_TARGET_DELETE] == 16);
    f.careless = true; /* nobody asks any more */
    world_append(&g->w);
    sync_ok(g);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

/* Nobody was told anything by an answer that is lost: the question is put again, but not for ever.
 */
static void question_is_put_again_when_its_answer_is_lost(void)
{
    static struct fleet f;
    fleet_init(&f, 1, given_number("SEED", 12));
    struct gateway *g = &f.gateways[0];
    world_append(&g->w);
    f.races_lost = 100000;
    tn_rc rc = fleet_sync(g);
    CHECK(rc == TN_IO && strstr(g->err.text, "lost") && !fleet_has(&f, 1) && f.races_lost > 99000);
    f.races_lost = 1 + (uint32_t)random_below(&f.random, TN_PROBE_LOST);
    sync_ok(g);
    CHECK(f.races_lost == 0 && g->result.commits == 1);
    fleet_check_all(&f);
    fleet_deinit(&f);
}

static const struct test tests[] = {
    TEST(commit_costs_its_files_and_ten_requests),
    TEST(snapshots_travel_together_and_compaction_stays_at_home),
    TEST(a_pause_is_seen_though_files_took_long),
    TEST(a_pause_is_watched_from_sync_to_sync),
    TEST(another_store_is_probed_again),
    TEST(a_pause_that_was_left_behind_is_waited_out),
    TEST(every_commit_is_there_once_whoever_is_faster),
    TEST(every_commit_is_there_once_whatever_is_cut_or_lost),
    TEST(what_is_allowed_little_by_little_comes_there),
    TEST(a_plan_says_what_it_takes),
    TEST(commit_that_was_replaced_is_sent_again),
    TEST(name_that_had_expired_is_no_commit),
    TEST(file_that_is_hidden_is_not_gone),
    TEST(store_that_keeps_no_condition_is_refused),
    TEST(question_is_put_again_when_its_answer_is_lost),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
