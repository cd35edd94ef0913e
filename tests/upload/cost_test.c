/* What a sync asks an object store for: counted at a folder, by the verbs that it would take. */
#include "given.h"
#include "upload/world.h"

static void check_asked(const struct world *w, const uint64_t asked[TN_TARGET_VERBS])
{
    static const char *const verbs[] = {"GET", "HEAD", "PUT", "LIST", "DELETE"};
    for (int i = 0; i < TN_TARGET_VERBS; i++) {
        if (w->counting.target.counts.requests[i] != asked[i]) {
            FAIL("%s: %" PRIu64 ", not %" PRIu64, verbs[i], w->counting.target.counts.requests[i],
                 asked[i]);
        }
    }
    CHECK(w->counting.sent_again == 0 && w->counting.replaced == 0);
}

static void change(struct world *w)
{
    static void (*const changes[])(struct world *) = {world_append, world_append, world_compact,
                                                      world_lift};
    changes[random_below(&w->random, COUNT(changes))](w);
}

static void sync_ok(struct world *w)
{
    tn_rc rc = world_sync(w);
    CHECK_OK(rc, w->err);
}

static void sync_asks(struct world *w, const uint64_t asked[TN_TARGET_VERBS])
{
    sync_ok(w);
    check_asked(w, asked);
    CHECK(w->result.last_id == w->newest);
}

/* The first one asks whether there is an owner and a LATEST, and makes the owner and both hints;
 * then one GET for the owner, one HEAD of the newest snapshot, one PUT a file and one for LATEST.
 */
static void sync_asks_for_its_owner_and_sends_files(void)
{
    for (uint64_t seed = given_number("SEED", 1), i = 0; i < 8; i++) {
        static struct world w;
        world_init(&w, seed + i);
        world_append(&w);
        world_compact(&w);
        world_append(&w);
        sync_ok(&w);
        check_asked(&w, (uint64_t[]){2, 0, w.result.files + 3, 0, 0});
        for (int step = 0; step < 30; step++) {
            int64_t before = w.newest;
            for (uint64_t left = random_below(&w.random, 4); left > 0; left--) {
                change(&w);
            }
            if (random_below(&w.random, 3) == 0) {
                world_expire(&w, 1, &w.source.worker);
            }
            sync_ok(&w);
            bool sent = w.newest > before;
            CHECK((w.result.files > 0) == sent);
            check_asked(&w, (uint64_t[]){sent, sent, sent ? w.result.files + 1 : 0, 0, 0});
        }
        CHECK(world_whole(&w, 1, w.newest));
        world_deinit(&w);
    }
}

/* apache/paimon#8261: who may not list gets 403 for what isn't there, and it is in somebody's log.
 * LATEST is asked for; the owner and both hints are put on the condition that they aren't there. */
static void first_sync_is_refused_once_where_names_are_hidden(void)
{
    for (uint64_t seed = given_number("SEED", 1), i = 0; i < 8; i++) {
        static struct world w;
        world_init(&w, seed + i);
        w.counting.hides = true;
        for (uint64_t left = random_below(&w.random, 4); left > 0; left--) {
            world_append(&w);
        }
        world_append(&w);
        sync_ok(&w);
        check_asked(&w, (uint64_t[]){1, 0, w.result.files + 3, 0, 0});
        world_append(&w);
        sync_ok(&w);
        check_asked(&w, (uint64_t[]){1, 1, w.result.files + 1, 0, 0});
        CHECK(world_whole(&w, 1, w.newest));
        world_deinit(&w);
    }
}

/* benbjohnson/litestream#234: a LIST at every sync was most of the bill. An hour of nothing, every
 * ten seconds; then somebody else could have it. */
static void idle_hour_costs_one_request(void)
{
    static struct world w;
    world_init(&w, 3);
    world_append(&w);
    sync_ok(&w);
    uint64_t gets = 0;
    for (int i = 0; i < 360; i++) {
        sim_clock_advance_ms(&w.source.clock, 10 * 1000);
        sync_ok(&w);
        gets += world_asked(&w, TN_TARGET_GET);
        check_asked(&w, (uint64_t[]){world_asked(&w, TN_TARGET_GET), 0, 0, 0, 0});
    }
    CHECK(gets == 1);
    sim_clock_set_ms(&w.source.clock, 0); /* a clock that goes back ends no trust for ever */
    sync_asks(&w, (uint64_t[]){1, 0, 0, 0, 0});
    sync_asks(&w, (uint64_t[]){0, 0, 0, 0, 0});
    world_deinit(&w);
}

/* 100 commits of an hour, a sync a minute. */
static void hour_of_commits_costs_its_files_and_three_a_sync(void)
{
    static struct world w;
    uint64_t lists = 0;
    uint64_t heads = 0;
    uint64_t puts = 0;
    uint64_t files = 0;
    uint64_t syncs = 0;
    world_init(&w, 4);
    world_append(&w);
    sync_ok(&w);
    for (int commit = 0; commit < 100; commit++) {
        world_append(&w);
        sim_clock_advance_ms(&w.source.clock, 36 * 1000);
        if (commit % 5 == 4) {
            sync_ok(&w);
            lists += world_asked(&w, TN_TARGET_LIST);
            heads += world_asked(&w, TN_TARGET_HEAD);
            puts += world_asked(&w, TN_TARGET_PUT);
            files += w.result.files;
            syncs++;
            CHECK(world_asked(&w, TN_TARGET_GET) == 1);
        }
    }
    CHECK(lists == 0 && heads == syncs && puts == files + syncs && syncs == 20);
    CHECK(world_whole(&w, 1, w.newest));
    world_deinit(&w);
}

static void schema_alone_is_one_file(void)
{
    static struct world w;
    world_init(&w, 5);
    world_append(&w);
    sync_ok(&w);
    world_schema(&w, 1, "second");
    sync_asks(&w, (uint64_t[]){1, 0, 1, 0, 0});
    sync_asks(&w, (uint64_t[]){0, 0, 0, 0, 0});
    world_deinit(&w);
}

static void dry_run_only_asks(void)
{
    static struct world w;
    struct tn_delta_spec dry = {.consumer = "tarn-lake-test", .dry_run = true};
    world_init(&w, 6);
    world_append(&w);
    sync_ok(&w);
    world_append(&w);
    world_lift(&w);
    world_compact(&w);
    tn_rc rc = world_sync_with(&w, dry);
    CHECK_OK(rc, w.err);
    check_asked(&w, (uint64_t[]){1, 1, 0, 0, 0});
    uint64_t files = w.result.files;
    sync_asks(&w, (uint64_t[]){1, 1, files + 1, 0, 0});
    CHECK(w.result.files == files);
    world_deinit(&w);
}

/* ---- lost state ---- */

/* The ledger is gone, or cut to each of its lengths: what is there is found by asking, nothing is
 * listed, sent twice or replaced. */
static void lost_ledger_costs_questions_only(void)
{
    static struct world w;
    static struct world_pair saved;
    unsigned char text[1024];
    size_t size = 0;
    world_init(&w, given_number("SEED", 7));
    for (int i = 0; i < 6; i++) {
        i % 3 == 2 ? world_compact(&w) : world_append(&w);
        world_expire(&w, 3, &w.source.worker);
        sync_ok(&w);
    }
    world_append(&w);
    world_save(&w, &saved);
    for (size_t length = 0; length == 0 || length < size; length++) {
        world_go_back(&w, &saved);
        struct tn_io *io = &w.source.disk.io;
        struct tn_bytes ledger;
        tn_rc rc = tn_io_read_all(io, WORLD_LEDGER, sizeof text, &w.source.own, &ledger, &w.err);
        CHECK_OK(rc, w.err);
        size = ledger.size;
        world_lose_ledger(&w);
        if (length > 0) {
            world_write(io, WORLD_LEDGER, (struct tn_bytes){ledger.data, length});
        }
        sync_ok(&w);
        CHECK(w.result.first_id == w.newest && world_whole(&w, 1, w.newest));
        CHECK(world_asked(&w, TN_TARGET_LIST) == 0);
        CHECK(w.counting.sent_again == 0 && w.counting.replaced == 0);
        CHECK(world_asked(&w, TN_TARGET_PUT) == w.result.files + 1);
        sync_asks(&w, (uint64_t[]){0, 0, 0, 0, 0});
    }
    CHECK(size > 200);
    world_forget(&saved);
    world_deinit(&w);
}

/* fluent/fluent-bit#11987: names were used again after a restart, and earlier uploads overwritten.
 * Runs that end, are killed, and lose what they know: no name is ever given to other bytes. */
static void restarts_replace_nothing(void)
{
    for (uint64_t seed = given_number("SEED", 20), i = 0; i < 10; i++) {
        static struct world w;
        world_init(&w, seed + i);
        for (int step = 0; step < 20; step++) {
            change(&w);
            if (random_below(&w.random, 3) == 0) {
                world_lose_ledger(&w);
            }
            bool killed = random_below(&w.random, 2) == 0;
            sim_disk_reboot(&w.source.disk, SIM_SEED_ALL);
            if (killed) {
                sim_disk_cut_at(&w.source.disk, 1 + random_below(&w.random, 90));
            }
            tn_rc rc = world_sync(&w);
            CHECK(killed || rc == TN_OK);
            CHECK(w.counting.replaced == 0 && w.counting.sent_again == 0);
            sim_disk_reboot(&w.source.disk, SIM_SEED_ALL);
            CHECK(world_whole(&w, 1, 0));
        }
        sync_ok(&w);
        CHECK(world_whole(&w, 1, w.newest) && world_hint(&w, "LATEST") == w.newest);
        world_deinit(&w);
    }
}

/* What was a mirror is empty now: all is sent again. */
static void emptied_mirror_is_made_anew(void)
{
    static struct world w;
    world_init(&w, 8);
    world_append(&w);
    world_append(&w);
    sync_ok(&w);
    sim_disk_deinit(&w.target);
    sim_disk_init(&w.target, BED_DISK_SIZE);
    world_append(&w);
    sync_ok(&w);
    CHECK(world_whole(&w, 1, w.newest) && w.result.first_id == 1);
    world_deinit(&w);
}

/* ---- cleaning of orphans ---- */

struct cleaner {
    struct world *w;
    uint32_t first; /* file that no snapshot of the mirror reaches */
    int64_t hours;
    bool waited;
    uint32_t removed;
};

/* Behind the data files hours pass; by the next question the cleaning has run. */
static void clean_late(void *user, enum tn_target_verb verb, const char *path)
{
    struct cleaner *c = user;
    struct world *w = c->w;
    if (verb == TN_TARGET_PUT && strstr(path, "/manifest/") && !c->waited) {
        c->waited = true;
        sim_clock_advance_ms(&w->source.clock, c->hours * 60 * 60 * 1000);
    }
    for (; verb == TN_TARGET_HEAD && c->waited && c->first < w->file_count; c->first++) {
        struct tn_err err;
        const char *file = world_path(w, &w->files[c->first].entry, &w->source.own);
        tn_rc rc = w->target.io.vtable->unlink(&w->target.io, file, &err);
        CHECK_OK(rc, err);
        c->removed++;
    }
}

/* Files that went more than twelve hours before their snapshot are asked for, and sent again. */
static void files_that_wait_too_long_are_asked_for(void)
{
    static const int64_t hours[] = {1, 11, 13, 30};
    for (size_t i = 0; i < COUNT(hours); i++) {
        static struct world w;
        world_init(&w, given_number("SEED", 9));
        world_append(&w);
        sync_ok(&w);
        struct cleaner cleaner = {.w = &w, .first = w.file_count, .hours = hours[i]};
        world_append(&w);
        w.counting.before = clean_late;
        w.counting.user = &cleaner;
        sync_ok(&w);
        w.counting.before = NULL;
        CHECK((world_asked(&w, TN_TARGET_HEAD) > 1) == (hours[i] >= 12));
        CHECK((cleaner.removed > 0) == (hours[i] >= 12));
        CHECK(world_whole(&w, 1, w.newest));
        world_deinit(&w);
    }
}

static const struct test tests[] = {
    TEST(sync_asks_for_its_owner_and_sends_files),
    TEST(first_sync_is_refused_once_where_names_are_hidden),
    TEST(idle_hour_costs_one_request),
    TEST(hour_of_commits_costs_its_files_and_three_a_sync),
    TEST(schema_alone_is_one_file),
    TEST(dry_run_only_asks),
    TEST(lost_ledger_costs_questions_only),
    TEST(restarts_replace_nothing),
    TEST(emptied_mirror_is_made_anew),
    TEST(files_that_wait_too_long_are_asked_for),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
