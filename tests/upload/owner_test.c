/* Of two who believe that a mirror is theirs, one brings it up to date. */
#include "given.h"
#include "upload/world.h"

/* Somebody raises the generation, or is another writer. */
static void take_over(struct world *w, int64_t generation, const char *writer)
{
    struct tn_err ignored;
    char text[256];
    (void)!w->target.io.vtable->unlink(&w->target.io, WORLD_OWNER, &ignored);
    (void)snprintf(text, sizeof text,
                   "{\"version\": 1, \"generation\": %" PRId64
                   ", \"writer\": \"%s\", \"mirror\": \"m\", \"sinceMs\": 1704103445000}",
                   generation, writer);
    world_write(&w->target.io, WORLD_OWNER, tn_bytes_of(text));
}

/* With the mirror's own id, as a restore does. */
static void raise_generation(struct world *w, int64_t generation)
{
    static unsigned char memory[4096];
    struct tn_arena arena;
    struct tn_bytes text;
    struct tn_err err;
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_io_read_all(&w->target.io, WORLD_OWNER, 1024, &arena, &text, &err);
    CHECK_OK(rc, err);
    char *digit = strstr((char *)text.data, "\"generation\" : ");
    CHECK(digit != NULL && generation < 10);
    digit[strlen("\"generation\" : ")] = (char)('0' + generation);
    rc = w->target.io.vtable->unlink(&w->target.io, WORLD_OWNER, &err);
    CHECK_OK(rc, err);
    world_write(&w->target.io, WORLD_OWNER, text);
}

/* Without a ledger LATEST is asked for, too. */
static void check_taken(struct world *w, const char *who, uint64_t gets)
{
    uint64_t calls = w->target.calls;
    tn_rc rc = world_sync(w);
    CHECK(rc == TN_CONFLICT);
    CHECK(strstr(w->err.text, "took this mirror over") != NULL);
    CHECK(strstr(w->err.text, who) != NULL && strstr(w->err.text, "nothing is sent") != NULL);
    for (uint64_t call = calls + 1; call <= w->target.calls; call++) {
        CHECK(!sim_disk_call_changes(&w->target, call));
    }
    CHECK(world_asked(w, TN_TARGET_GET) == gets && world_asked(w, TN_TARGET_PUT) == 0);
}

static void who_was_taken_over_sends_nothing(void)
{
    static struct world w;
    for (int i = 0; i < 4; i++) {
        world_init(&w, 3);
        world_append(&w);
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        world_append(&w);
        if (i == 0) {
            raise_generation(&w, 2);
            check_taken(&w, WORLD_WRITER, 1);
        } else {
            take_over(&w, i == 1 ? 1 : 2, "another");
            if (i == 3) {
                world_lose_ledger(&w);
            }
            check_taken(&w, "writer another", i == 3 ? 2 : 1);
            CHECK(strstr(w.err.text, "2024-01-01 10:04:05 UTC") != NULL);
        }
        CHECK(!world_has(&w, 2));
        world_deinit(&w);
    }
}

/* To who may not list a store it doesn't tell what it lacks: that is enough for a mirror. */
static void who_may_not_list_makes_and_keeps_a_mirror(void)
{
    static struct world w;
    world_init(&w, given_number("SEED", 1));
    w.counting.hides = true;
    for (int64_t id = 1; id <= 12; id++) {
        world_append(&w);
        if (id % 4 == 0) {
            world_compact(&w);
        }
        if (id == 6) {
            world_lose_ledger(&w);
        }
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        CHECK(world_asked(&w, TN_TARGET_LIST) == 0 && world_asked(&w, TN_TARGET_DELETE) == 0);
        CHECK(w.counting.replaced == 0);
    }
    CHECK(world_whole(&w, 1, w.newest));
    world_deinit(&w);
}

/* It is there, as the ledger says or as our own try shows: nothing is sent, and nobody is blamed.
 * With the permission it goes on. */
static void owner_that_may_not_be_read_makes_it_wait(void)
{
    static struct world w;
    for (int i = 0; i < 2; i++) {
        world_init(&w, 5);
        world_append(&w);
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        world_append(&w);
        if (i == 1) {
            world_lose_ledger(&w);
        }
        w.counting.denied = WORLD_OWNER;
        rc = world_sync(&w);
        CHECK(rc == TN_IO && strstr(w.err.text, "permission denied") && !world_has(&w, 2));
        CHECK(w.counting.replaced == 0);
        w.counting.denied = NULL;
        rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        CHECK(world_whole(&w, 1, 2));
        world_deinit(&w);
    }
}

static void hide_once(void *user, enum tn_target_verb verb, const char *path)
{
    struct world *w = user;
    (void)path;
    if (verb == TN_TARGET_PUT) {
        w->counting.denied = NULL;
    }
}

/* ... and just as soon as somebody puts. */
static void owner_that_was_hidden_for_a_moment_is_no_other(void)
{
    static struct world w;
    world_init(&w, 6);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    world_lose_ledger(&w);
    world_append(&w);
    w.counting.denied = WORLD_OWNER;
    w.counting.before = hide_once;
    w.counting.user = &w;
    rc = world_sync(&w);
    CHECK(rc == TN_IO && strstr(w.err.text, "denied for a moment") && !world_has(&w, 2));
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_whole(&w, 1, 2));
    world_deinit(&w);
}

/* The table's writer with nothing else left goes on: what is there says whether it may. */
static void writer_without_a_ledger_goes_on(void)
{
    static struct world w;
    world_init(&w, 4);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    raise_generation(&w, 7);
    world_lose_ledger(&w);
    world_append(&w);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_whole(&w, 1, 2));
    world_append(&w);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_asked(&w, TN_TARGET_GET) == 1);
    world_deinit(&w);
}

/* Writer's id and ledger are gone: the owner has written this table, so its sender goes on, as one
 * of a higher generation; whoever had the ledger is told. */
static void who_lost_all_state_follows_its_own_owner(void)
{
    static struct world w;
    static struct world_pair before;
    world_init(&w, 9);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    world_append(&w);
    world_save(&w, &before);
    world_lose_ledger(&w);
    world_change_writer(&w, "6f2c1d0e-0000-4000-8000-000000000002");
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_whole(&w, 1, 2) && w.counting.sent_again == 0);
    world_append(&w);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_asked(&w, TN_TARGET_GET) == 1 && world_has(&w, 3));
    sim_disk_deinit(&w.source.disk); /* the other one, with the old state */
    sim_disk_clone(&w.source.disk, &before.source);
    check_taken(&w, "6f2c1d0e-0000-4000-8000-000000000002", 1);
    CHECK(strstr(w.err.text, "(generation 2)") != NULL);
    world_forget(&before);
    world_deinit(&w);
}

/* Two mirrors change places under their names: the ledger of one is not believed at the other,
 * which is behind. */
static void ledger_of_another_mirror_is_not_believed(void)
{
    static struct world w;
    static struct sim_disk other;
    world_init(&w, 5);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    sim_disk_clone(&other, &w.target);
    sim_disk_deinit(&w.target);
    sim_disk_init(&w.target, BED_DISK_SIZE);
    world_append(&w);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_whole(&w, 1, 2));
    world_append(&w);
    sim_disk_deinit(&w.target);
    sim_disk_clone(&w.target, &other);
    sim_disk_deinit(&other);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(world_whole(&w, 1, 3));
    world_deinit(&w);
}

struct intruder {
    struct world *w;
    enum tn_target_verb verb;
    const char *part;  /* of the path of the request before which it comes */
    int64_t passed_ms; /* at each request */
    bool done;
};

static void intrude(void *user, enum tn_target_verb verb, const char *path)
{
    struct intruder *i = user;
    sim_clock_advance_ms(&i->w->source.clock, i->passed_ms);
    if (!i->done && verb == i->verb && strstr(path, i->part)) {
        i->done = true;
        take_over(i->w, 1, "another");
    }
}

/* Two meet an empty place: the other one was first. */
static void one_of_two_makes_a_mirror(void)
{
    for (int i = 0; i < 2; i++) {
        static struct world w;
        world_init(&w, 6);
        world_append(&w);
        struct intruder intruder = {.w = &w, .verb = TN_TARGET_PUT, .part = "/owner"};
        w.counting.hides = i == 1;
        w.counting.before = intrude;
        w.counting.user = &intruder;
        tn_rc rc = world_sync(&w);
        CHECK(rc == TN_CONFLICT && intruder.done);
        CHECK(strstr(w.err.text, "writer another") != NULL);
        CHECK(world_asked(&w, TN_TARGET_PUT) == 1 && !world_has(&w, 1));
        world_deinit(&w);
    }
}

static void lose_latest(struct world *w)
{
    struct tn_err err;
    tn_rc rc = w->target.io.vtable->unlink(&w->target.io, "db.db/t/snapshot/LATEST", &err);
    CHECK_OK(rc, err);
}

/* As behind a first sync that was cut before LATEST: that it is hidden doesn't make the place
 * empty. Whose it is shows when an owner is made. */
static void place_without_a_latest_is_still_its_owners(void)
{
    for (int i = 0; i < 4; i++) {
        static struct world w;
        bool theirs = i >= 2;
        world_init(&w, 11);
        w.counting.hides = i % 2 == 1;
        world_append(&w);
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        world_lose_ledger(&w);
        lose_latest(&w);
        if (theirs) {
            take_over(&w, 1, "another");
        }
        world_append(&w);
        rc = world_sync(&w);
        CHECK(rc == (theirs ? TN_CONFLICT : TN_OK));
        CHECK(world_has(&w, 2) == !theirs && w.counting.replaced == 0);
        CHECK(theirs ? strstr(w.err.text, "writer another") != NULL : world_whole(&w, 1, 2));
        world_deinit(&w);
    }
}

/* A sync of some minutes asks again: what was published is whole, and nothing more is. */
static void long_sync_hears_of_a_new_owner(void)
{
    static struct world w;
    world_init(&w, 7);
    while (w.newest < 6) {
        world_append(&w);
    }
    struct intruder intruder = {
        .w = &w, .verb = TN_TARGET_PUT, .part = "/snapshot-2", .passed_ms = 20 * 1000};
    w.counting.before = intrude;
    w.counting.user = &intruder;
    tn_rc rc = world_sync(&w);
    CHECK(rc == TN_CONFLICT && intruder.done);
    CHECK(strstr(w.err.text, "writer another") != NULL);
    CHECK(world_whole(&w, 1, 2) && !world_has(&w, 4));
    world_deinit(&w);
}

/* What stands in the owner's place and can't be read is nobody's to pass over. */
static void owner_that_cannot_be_read_stops_a_sync(void)
{
    static const char *const texts[] = {"", "{", "{\"version\": 1}", "{\"version\": 2}", "[]"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        static struct world w;
        world_init(&w, 8);
        w.counting.hides = i % 2 == 1;
        world_append(&w);
        world_write(&w.target.io, WORLD_OWNER, tn_bytes_of(texts[i]));
        tn_rc rc = world_sync(&w);
        CHECK(rc == TN_CORRUPT || rc == TN_UNSUPPORTED);
        CHECK(strstr(w.err.text, WORLD_OWNER) != NULL && !world_has(&w, 1));
        world_deinit(&w);
    }
}

static const struct test tests[] = {
    TEST(who_was_taken_over_sends_nothing),
    TEST(who_may_not_list_makes_and_keeps_a_mirror),
    TEST(owner_that_may_not_be_read_makes_it_wait),
    TEST(owner_that_was_hidden_for_a_moment_is_no_other),
    TEST(writer_without_a_ledger_goes_on),
    TEST(who_lost_all_state_follows_its_own_owner),
    TEST(ledger_of_another_mirror_is_not_believed),
    TEST(one_of_two_makes_a_mirror),
    TEST(place_without_a_latest_is_still_its_owners),
    TEST(long_sync_hears_of_a_new_owner),
    TEST(owner_that_cannot_be_read_stops_a_sync),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
