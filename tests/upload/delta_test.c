/* A mirror follows its source, whatever happens in between: commits, compactions, expiry, cuts and
 * failures at every call, and a target that isn't ours. */
#include "given.h"
#include "upload/ledger.h"
#include "upload/world.h"

/* A debug build fills what is free of a heap at each call, so it looks at some of the cases, and
 * the other build at all. */
#ifdef TN_DEBUG
enum { STRIDE = 11, HISTORIES = 2 };
#else
enum { STRIDE = 1, HISTORIES = 12 };
#endif

static void some_history(struct world *w, int steps)
{
    for (int i = 0; i < steps; i++) {
        uint64_t what = random_below(&w->random, 6);
        if (what < 2) {
            world_compact(w);
        } else if (what == 2) {
            world_lift(w);
        } else {
            world_append(w);
        }
    }
}

/* Commits, compactions, expiry and syncs in a random order: after each sync the mirror shows every
 * snapshot since the first sync, as it was at the source. */
static void mirror_follows_random_histories(void)
{
    uint64_t first_seed = given_number("SEED", 1);
    for (uint64_t seed = first_seed; seed < first_seed + HISTORIES; seed++) {
        static struct world w;
        world_init(&w, seed);
        int64_t first = 0;
        for (int step = 0; step < 40; step++) {
            some_history(&w, (int)random_below(&w.random, 4));
            if (w.newest > 0 && random_below(&w.random, 3) == 0) {
                world_expire(&w, 1 + (int32_t)random_below(&w.random, 3), &w.source.worker);
            }
            if (random_below(&w.random, 2) == 0) {
                tn_rc rc = world_sync(&w);
                CHECK_OK(rc, w.err);
                first = first > 0 ? first : w.result.first_id;
                CHECK(w.result.last_id == w.newest);
                CHECK(w.newest == 0 || world_check(&w, w.newest) == TN_OK);
                CHECK(w.newest == 0 || world_hint(&w, "LATEST") == w.newest);
                CHECK(w.newest == 0 || world_hint(&w, "EARLIEST") == first);
            }
        }
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        CHECK(world_whole(&w, first, w.newest));
        world_deinit(&w);
    }
}

static void second_sync_sends_nothing_and_dry_run_says_what_the_real_one_does(void)
{
    static struct world w;
    world_init(&w, 5);
    some_history(&w, 12);
    uint64_t calls = w.target.calls;
    tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){.dry_run = true});
    CHECK_OK(rc, w.err);
    for (uint64_t call = calls + 1; call <= w.target.calls; call++) {
        CHECK(!sim_disk_call_changes(&w.target, call));
    }
    struct tn_delta_result said = w.result;
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(said.files == w.result.files && said.bytes == w.result.bytes);
    CHECK(said.first_id == 1 && said.last_id == w.newest && w.result.first_id == 1);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(w.result.files == 0 && w.result.bytes == 0 && w.result.first_id == 0);
    CHECK(w.result.last_id == w.newest);
    world_deinit(&w);
}

/* ---- cuts and failures ---- */

/* A mirror of some snapshots, and more at the source. */
static void prepare(struct world *w, int before, int behind)
{
    world_init(w, given_number("SEED", 3));
    some_history(w, before);
    if (before > 0) {
        tn_rc rc = world_sync(w);
        CHECK_OK(rc, w->err);
        sim_disk_reboot(&w->target, SIM_SEED_NOTHING);
    }
    if (behind > 0) {
        world_append(w);
    }
    some_history(w, behind);
    w->source.options.snapshot_expire_limit = 0;
}

enum cut { CUT_TARGET, CUT_SOURCE, CUT_BOTH, CUTS };

static bool cut_and_resume(struct world *w, const struct world_pair *fresh, enum cut cut,
                           uint64_t call, uint64_t seed, int64_t had)
{
    world_go_back(w, fresh);
    if (cut == CUT_TARGET) {
        sim_disk_cut_at(&w->target, w->target.calls + call);
    } else {
        sim_disk_cut_at(&w->source.disk, w->source.disk.calls + call);
    }
    tn_rc rc = world_sync(w);
    bool done = rc == TN_OK;
    if (cut != CUT_SOURCE) {
        sim_disk_reboot(&w->target, seed);
    }
    if (cut != CUT_TARGET) {
        sim_disk_reboot(&w->source.disk, seed);
    }
    CHECK(world_whole(w, 1, done ? w->newest : had));
    rc = world_sync(w);
    CHECK_OK(rc, w->err);
    CHECK(w->counting.sent_again == 0 && world_asked(w, TN_TARGET_LIST) <= (had == 0));
    sim_disk_reboot(&w->target, SIM_SEED_NOTHING);
    CHECK(world_whole(w, 1, w->newest));
    CHECK(world_hint(w, "LATEST") == w->newest && world_hint(w, "EARLIEST") == 1);
    return done;
}

/* The power goes before every call of a sync, at the mirror, at the source, or at both: what the
 * mirror shows is whole, and the next sync ends it. Then the power goes again. */
static void mirror_is_whole_after_a_cut_before_every_call(void)
{
    static const struct {
        int before;
        int behind;
    } cases[] = {{0, 3}, {3, 2}};
    for (size_t i = 0; i < COUNT(cases) * CUTS; i++) {
        static struct world w;
        static struct world_pair fresh;
        enum cut cut = (enum cut)(i % CUTS);
        prepare(&w, cases[i / CUTS].before, cases[i / CUTS].behind);
        int64_t had = cases[i / CUTS].before > 0 ? w.result.last_id : 0;
        world_save(&w, &fresh);
        bool done = false;
        for (uint64_t call = 1; !done; call += STRIDE) {
            for (uint64_t seed = 0; seed < 3; seed++) {
                done = cut_and_resume(&w, &fresh, cut, call, seed, had);
            }
            CHECK(!done || call > 50);
        }
        world_forget(&fresh);
        world_deinit(&w);
    }
}

static void fail_call(struct sim_disk *disk, uint64_t call, bool late)
{
    if (late) {
        sim_disk_fail_call_late(disk, disk->calls + call, TN_IO);
    } else {
        sim_disk_fail_call(disk, disk->calls + call, TN_FULL);
    }
}

/* Each call of either side fails once, before or after it did its work; the next sync ends it, and
 * what it then shows survives a cut that loses all that may be lost. */
static void mirror_goes_on_after_a_failure_of_every_call(void)
{
    static struct world w;
    static struct world_pair fresh;
    prepare(&w, 0, 3);
    world_save(&w, &fresh);
    for (int i = 0; i < 4; i++) {
        bool at_source = i >= 2;
        bool done = false;
        for (uint64_t call = 1; !done; call += STRIDE) {
            world_go_back(&w, &fresh);
            struct sim_disk *disk = at_source ? &w.source.disk : &w.target;
            uint64_t before = disk->calls;
            fail_call(disk, call, i % 2 == 1);
            tn_rc rc = world_sync(&w);
            done = rc == TN_OK && disk->calls - before < call;
            disk->fail_call = 0;
            CHECK(rc == TN_OK || rc == TN_FULL || rc == TN_IO);
            CHECK(rc == TN_OK || at_source || strstr(w.err.text, "lake") != NULL);
            CHECK(world_whole(&w, 1, rc == TN_OK ? w.newest : 0));
            rc = world_sync(&w);
            CHECK_OK(rc, w.err);
            sim_disk_reboot(&w.target, SIM_SEED_NOTHING);
            CHECK(world_whole(&w, 1, w.newest));
        }
    }
    world_forget(&fresh);
    world_deinit(&w);
}

/* A sync meets a commit, and a new schema, whose names are not durable yet: what the mirror has got
 * is here after a power cut, too. */
static void what_has_travelled_stands_at_the_source(void)
{
    static struct world w;
    prepare(&w, 1, 0);
    sim_disk_reboot(&w.source.disk, SIM_SEED_ALL);
    sim_disk_ignore_path(&w.source.disk, ROOT "/s");
    world_append(&w);
    world_schema(&w, 1, "newer");
    sim_disk_ignore_path(&w.source.disk, NULL);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    sim_disk_reboot(&w.source.disk, SIM_SEED_NOTHING);
    CHECK(w.result.last_id == w.newest);
    for (int i = 0; i < 2; i++) {
        char name[64];
        uint64_t size;
        struct tn_io *io = &w.source.disk.io;
        (void)snprintf(name, sizeof name,
                       i == 0 ? ROOT "/snapshot/snapshot-%d" : ROOT "/schema/schema-%d",
                       i == 0 ? (int)w.newest : 1);
        CHECK(w.target.io.vtable->stat(&w.target.io, name, &size, &w.err) == TN_OK);
        rc = io->vtable->stat(io, name, &size, &w.err);
        CHECK_OK(rc, w.err);
    }
    world_deinit(&w);
}

/* An owner whose id a power cut takes away would be another's from then on. */
static void writer_that_owns_a_mirror_stands_at_the_source(void)
{
    static struct world w;
    uint64_t size;
    struct tn_io *io = &w.source.disk.io;
    prepare(&w, 0, 1);
    tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){0}); /* keeps nothing there */
    CHECK_OK(rc, w.err);
    sim_disk_reboot(&w.source.disk, SIM_SEED_NOTHING);
    rc = io->vtable->stat(io, ".tarn/db.t.writer", &size, &w.err);
    CHECK_OK(rc, w.err);
    world_deinit(&w);
}

/* A hint may lag, and names nothing that isn't there. */
static bool hint_is_right(struct world *w, const char *name)
{
    int64_t id = world_hint(w, name);
    return id < 0 || world_has(w, id);
}

/* What a sync promises at any cut, and if it is through: ids, hints, and who the owner is. */
static bool kept(struct world *w, bool done)
{
    uint64_t size;
    struct tn_err err;
    return world_whole(w, 1, done ? w->newest : 0) && hint_is_right(w, "EARLIEST") &&
           hint_is_right(w, "LATEST") &&
           (!done || (world_hint(w, "LATEST") == w->newest && world_hint(w, "EARLIEST") == 1 &&
                      w->target.io.vtable->stat(&w->target.io, WORLD_OWNER, &size, &err) == TN_OK &&
                      size > 0));
}

/* Whether the promises are broken when sync number `sync` does nothing, for some cut and seed. */
static bool missed(struct world *w, const struct world_pair *fresh, uint64_t sync)
{
    bool bad = false;
    bool done = false;
    for (uint64_t call = 1; !bad && !done; call++) {
        for (uint64_t seed = 0; !bad && seed < 6; seed++) {
            world_go_back(w, fresh);
            sim_disk_ignore_sync(&w->target, w->target.syncs + sync);
            sim_disk_cut_at(&w->target, w->target.calls + call);
            done = world_sync(w) == TN_OK;
            sim_disk_reboot(&w->target, seed);
            bad = !kept(w, done);
        }
    }
    return bad;
}

static void every_barrier_is_needed(void)
{
    static struct world w;
    static struct world_pair fresh;
    prepare(&w, 0, 0);
    world_append(&w);
    world_append(&w);
    world_save(&w, &fresh);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    uint64_t syncs = w.target.syncs - fresh.target.syncs;
    CHECK(w.newest == 2 && syncs >= 8);
    for (uint64_t sync = 1; sync <= syncs; sync += STRIDE) {
        if (!missed(&w, &fresh, sync)) {
            FAIL("nobody misses sync %" PRIu64 " of %" PRIu64 ": %s", sync, syncs,
                 sim_disk_sync_path(&w.target, sync));
        }
    }
    world_forget(&fresh);
    world_deinit(&w);
}

/* ---- another table, a damaged one ---- */

static void replace_text(struct tn_io *io, const char *path, const char *text)
{
    struct tn_err err;
    tn_rc rc = io->vtable->unlink(io, path, &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, path, tn_bytes_of(text), &err);
    CHECK_OK(rc, err);
}

static void diverged_target_gets_nothing(void)
{
    static const char *const same_id[] = {ROOT "/snapshot/snapshot-3", ROOT "/schema/schema-0"};
    static struct world w;
    for (size_t i = 0; i < 3; i++) {
        world_init(&w, 8);
        while (w.newest < 3) {
            world_append(&w);
        }
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        world_lose_ledger(&w);
        if (i < COUNT(same_id)) {
            replace_text(&w.target.io, same_id[i], "{\"id\":3}");
            world_append(&w);
        } else { /* somebody committed there */
            world_write(&w.target.io, ROOT "/snapshot/snapshot-4", tn_bytes_of("{}"));
        }
        uint64_t calls = w.target.calls;
        rc = world_sync(&w);
        CHECK(rc == TN_CONFLICT);
        CHECK(strstr(w.err.text, "nothing is sent") != NULL);
        for (uint64_t call = calls + 1; call <= w.target.calls; call++) {
            CHECK(!sim_disk_call_changes(&w.target, call));
        }
        world_deinit(&w);
    }
}

/* Who knows the mirror finds out at the publish: what somebody committed there stays. */
static void commit_at_the_mirror_is_met_at_the_publish(void)
{
    static struct world w;
    world_init(&w, 8);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    world_write(&w.target.io, ROOT "/snapshot/snapshot-2", tn_bytes_of("{}"));
    world_append(&w);
    for (int i = 0; i < 2; i++) {
        rc = world_sync(&w);
        CHECK(rc == TN_CONFLICT);
        CHECK(strstr(w.err.text, ROOT "/snapshot/snapshot-2 has other content there") != NULL);
        CHECK(world_hint(&w, "LATEST") == 1);
    }
    world_deinit(&w);
}

/* A data file that is gone or has another size is named, and its snapshot doesn't get there. */
static void damaged_source_is_named_and_not_published(void)
{
    for (int shorter = 0; shorter < 2; shorter++) {
        static struct world w;
        world_init(&w, 9);
        world_append(&w);
        world_append(&w);
        const char *path = world_path(&w, &w.files[w.file_count - 1].entry, &w.source.own);
        struct tn_io *io = &w.source.disk.io;
        if (shorter) {
            replace_text(io, path, "");
        } else {
            tn_rc rc = io->vtable->unlink(io, path, &w.err);
            CHECK_OK(rc, w.err);
        }
        tn_rc rc = world_sync(&w);
        CHECK(rc == TN_CORRUPT);
        CHECK(strstr(w.err.text, "snapshot 2: ") != NULL && strstr(w.err.text, path) != NULL);
        CHECK(world_whole(&w, 1, 1) && !world_has(&w, 2));
        world_deinit(&w);
    }
}

static void table_without_snapshots_brings_its_schemas_and_no_table_is_absent(void)
{
    static struct world w;
    uint64_t size;
    world_init(&w, 10);
    world_schema(&w, 1, "second");
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(w.result.files == 2 && w.result.first_id == 0 && w.result.last_id == 0);
    rc = w.target.io.vtable->stat(&w.target.io, ROOT "/schema/schema-1", &size, &w.err);
    CHECK_OK(rc, w.err);
    struct tn_delta_spec spec = {.root = "db.db/none", .dry_run = true};
    rc = tn_delta_sync(&spec, &w.source.worker, &w.result, &w.err);
    CHECK(rc == TN_ABSENT);
    world_deinit(&w);
}

/* ---- expiry at the source ---- */

/* The consumer keeps the mirror's newest snapshot at the source, so no id is ever missing. */
static void expiry_never_passes_what_the_mirror_has(void)
{
    static struct world w;
    world_init(&w, 11);
    while (w.newest < 3) {
        world_append(&w);
    }
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    while (w.newest < 9) {
        world_append(&w);
    }
    world_expire(&w, 1, &w.source.worker);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(w.result.first_id == 4 && world_whole(&w, 1, 9));
    world_deinit(&w);
}

/* Without one, ids are missing: EARLIEST stands behind them, and what was there goes. */
static void gap_is_left_behind_earliest(void)
{
    static struct world w;
    world_init(&w, 12);
    while (w.newest < 3) {
        world_append(&w);
    }
    tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){0});
    CHECK_OK(rc, w.err);
    while (w.newest < 9) {
        world_append(&w);
        world_compact(&w);
    }
    world_expire(&w, 2, &w.source.worker);
    rc = world_sync_with(&w, (struct tn_delta_spec){0});
    CHECK_OK(rc, w.err);
    CHECK(w.result.first_id == w.newest - 1 && w.result.last_id == w.newest);
    CHECK(world_hint(&w, "EARLIEST") == w.newest - 1 && world_hint(&w, "LATEST") == w.newest);
    for (int64_t id = 1; id <= w.newest; id++) {
        CHECK(world_has(&w, id) == (id >= w.newest - 1));
        CHECK(!world_has(&w, id) || world_check(&w, id) == TN_OK);
    }
    rc = world_sync_with(&w, (struct tn_delta_spec){0});
    CHECK_OK(rc, w.err);
    CHECK(w.result.files == 0);
    world_deinit(&w);
}

/* A sync was cut behind a gap, after EARLIEST and before LATEST, and what it knew is lost. There
 * are 2, 3, 8 and 9; the source has 10, too. */
static void make_latest_lag(struct world *w)
{
    world_init(w, 12);
    w->counting.keeps = true; /* else what is in front of the gap would be gone */
    for (int64_t last = 3; last <= 9; last += 6) {
        while (w->newest < last) {
            world_append(w);
        }
        world_expire(w, 2, &w->source.worker);
        tn_rc rc = world_sync_with(w, (struct tn_delta_spec){0});
        CHECK_OK(rc, w->err);
    }
    CHECK(world_hint(w, "EARLIEST") == 8);
    replace_text(&w->target.io, ROOT "/snapshot/LATEST", "3");
    world_append(w);
}

/* The gap isn't before EARLIEST again. */
static void latest_that_lags_before_a_gap_takes_nothing_back(void)
{
    static struct world w;
    make_latest_lag(&w);
    tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){0});
    CHECK_OK(rc, w.err);
    CHECK(w.result.first_id == 10 && world_asked(&w, TN_TARGET_LIST) == 0);
    CHECK(world_hint(&w, "EARLIEST") == 8 && world_hint(&w, "LATEST") == 10);
    world_deinit(&w);
}

static void check_earliest(void *user, enum tn_target_verb verb, const char *path)
{
    (void)verb;
    (void)path;
    CHECK(world_hint(user, "EARLIEST") == 8);
}

/* Nor when nobody says whether there is an EARLIEST, or what it names. */
static void what_is_hidden_takes_nothing_back_before_a_gap(void)
{
    static const char *const names[] = {ROOT "/snapshot/EARLIEST", ROOT "/snapshot/snapshot-8"};
    for (size_t i = 0; i < COUNT(names); i++) {
        static struct world w;
        make_latest_lag(&w);
        w.counting.denied = names[i];
        w.counting.before = check_earliest;
        w.counting.user = &w;
        tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){0});
        CHECK(i == 1 || (rc == TN_IO && strstr(w.err.text, "denied for a moment")));
        CHECK_OK(i == 1 ? rc : TN_OK, w.err);
        w.counting.denied = NULL;
        rc = world_sync_with(&w, (struct tn_delta_spec){0});
        CHECK_OK(rc, w.err);
        CHECK(world_hint(&w, "EARLIEST") == 8 && world_hint(&w, "LATEST") == 10);
        world_deinit(&w);
    }
}

static void cut_or_look(void *user, enum tn_target_verb verb, const char *path)
{
    struct world *w = user;
    if (verb != TN_TARGET_PUT) {
        return;
    }
    if (w->newest == 5 && strcmp(path, ROOT "/snapshot/EARLIEST") == 0) {
        sim_disk_cut_at(&w->target, w->target.calls + 1);
    } else if (strcmp(path, ROOT "/snapshot/snapshot-6") == 0) {
        CHECK(world_hint(w, "EARLIEST") == (w->counting.denied ? 1 : 5));
    }
}

/* 1 to 3 are there, and 5, behind which a sync was cut; by the next one both 3 and 5 have expired
 * at the source. EARLIEST passes the gap before anything follows 5, or with what does, if nobody
 * said whether 5 is there. */
static void gap_is_passed_where_the_source_has_neither_side(void)
{
    for (int i = 0; i < 4; i++) {
        static struct world w;
        world_init(&w, given_number("SEED", 16));
        int64_t first = i % 2 == 0 ? 5 : 6;
        for (int64_t last = 3; last <= 7; last += 2) {
            while (w.newest < last) {
                world_append(&w);
            }
            if (last > 3) {
                world_expire(&w, last == 5 ? 1 : 2, &w.source.worker);
            }
            w.counting.denied = last == 7 && first == 6 ? ROOT "/snapshot/snapshot-5" : NULL;
            w.counting.keeps = last < 7 || i > 1;
            w.counting.before = last > 3 ? cut_or_look : NULL;
            w.counting.user = &w;
            tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){.lake = "gap"});
            CHECK(rc == (last == 5 ? TN_IO : TN_OK));
            if (last == 5) {
                sim_disk_reboot(&w.target, SIM_SEED_ALL);
                CHECK(world_has(&w, 5) && world_hint(&w, "EARLIEST") == 1);
            }
        }
        CHECK(world_hint(&w, "EARLIEST") == first && world_hint(&w, "LATEST") == 7);
        CHECK(world_whole(&w, first, 7) && w.result.keep_denied == (i > 1));
        for (int64_t id = 1; id <= 5; id++) {
            CHECK(world_has(&w, id) == (id >= first || (i > 1 && id != 4)));
        }
        world_deinit(&w);
    }
}

/* A PUT of snapshot-4 that is under way when its process is killed. */
struct late_put {
    struct world *w;
    const char *moment; /* it comes before this is put; NULL: it hasn't been sent */
    unsigned char memory[8192];
    struct tn_bytes text;
};

static void be_killed_or_late(void *user, enum tn_target_verb verb, const char *path)
{
    static const char late[] = ROOT "/snapshot/snapshot-4";
    struct late_put *put = user;
    struct world *w = put->w;
    if (verb != TN_TARGET_PUT) {
        return;
    }
    if (!put->text.data && strcmp(path, late) == 0) {
        struct tn_arena arena;
        tn_arena_init(&arena, put->memory, sizeof put->memory);
        tn_rc rc = tn_io_read_all(&w->source.disk.io, late, 4096, &arena, &put->text, &w->err);
        CHECK_OK(rc, w->err);
        sim_disk_cut_at(&w->target, w->target.calls + 1);
    } else if (put->moment && strcmp(path, put->moment) == 0) {
        put->moment = NULL;
        world_write(&w->target.io, late, put->text);
        CHECK(world_check(w, 4) == TN_OK);
    }
}

/* 1 to 3 are there, a process was killed while it sent 4, and the next one meets 8 and 9. */
static void sync_behind_a_killed_one(struct world *w, struct late_put *put, const char *moment,
                                     bool keeps)
{
    *put = (struct late_put){.w = w};
    world_init(w, given_number("SEED", 14));
    w->counting.keeps = keeps;
    for (int64_t last = 3; last <= 9; last = last == 3 ? 4 : last + 5) {
        while (w->newest < last) {
            if (last == 9 && w->newest % 2 == 0) {
                world_compact(w);
            } else {
                world_append(w);
            }
        }
        if (last == 9) {
            world_expire(w, 2, &w->source.worker);
            put->moment = moment;
        }
        w->counting.before = last == 3 ? NULL : be_killed_or_late;
        w->counting.user = put;
        tn_rc rc = world_sync_with(w, (struct tn_delta_spec){.lake = "late"});
        CHECK(rc == (last == 4 ? TN_IO : TN_OK));
        if (last == 4) {
            sim_disk_reboot(&w->target, SIM_SEED_ALL);
            CHECK(!world_has(w, 4) && put->text.data);
        }
    }
    CHECK(!put->moment && w->result.keep_denied == keeps);
    CHECK(world_hint(w, "EARLIEST") == 8 && world_hint(w, "LATEST") == 9);
    CHECK(world_whole(w, 8, 9));
}

/* The next process has asked for it, and the source has expired it: whenever it comes, it is whole,
 * it lies below EARLIEST in the end, and EARLIEST never stands behind what follows it. It goes with
 * what else lies there, if that may go. */
static void late_snapshot_of_a_killed_process_lies_below_earliest(void)
{
    static const char *const moments[] = {ROOT "/snapshot/snapshot-8", ROOT "/snapshot/EARLIEST",
                                          ROOT "/snapshot/snapshot-9", ROOT "/snapshot/LATEST"};
    for (size_t i = 0; i < 2 * COUNT(moments); i++) {
        static struct world w;
        static struct late_put put;
        bool keeps = i % 2 == 1;
        sync_behind_a_killed_one(&w, &put, moments[i / 2], keeps);
        for (int64_t id = 1; id < 8; id++) {
            CHECK(world_has(&w, id) == (keeps && id <= 4));
        }
        CHECK(!keeps || world_check(&w, 4) == TN_OK);
        world_deinit(&w);
    }
}

/* Where older ones have gone it may lack files, and a later gap's expiry takes it. */
static void late_snapshot_behind_all_else_is_in_no_syncs_way(void)
{
    for (int i = 0; i < 2; i++) {
        static struct world w;
        static struct late_put put;
        bool keeps = i == 1;
        sync_behind_a_killed_one(&w, &put, NULL, keeps);
        world_write(&w.target.io, ROOT "/snapshot/snapshot-4", put.text);
        CHECK((world_check(&w, 4) == TN_OK) == keeps);
        for (int64_t last = 10; last <= 15; last += 5) {
            while (w.newest < last) {
                world_append(&w);
            }
            world_expire(&w, 2, &w.source.worker);
            tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){.lake = "late"});
            CHECK_OK(rc, w.err);
            CHECK(world_has(&w, 4) == (keeps || last == 10));
            CHECK(world_hint(&w, "EARLIEST") == (last == 10 ? 8 : 14));
            for (int64_t id = last == 10 ? 8 : 14; id <= last; id++) {
                CHECK(world_check(&w, id) == TN_OK);
            }
        }
        world_deinit(&w);
    }
}

/* A table by the same name, whose ledger is that of the old one, and whose snapshots have gone past
 * what the mirror has: there is none to compare, but schemas are. */
static void table_made_anew_is_told_from_the_old_one_behind_a_gap(void)
{
    static struct world old;
    static struct world w;
    struct tn_bytes ledger;
    world_init(&old, 21);
    while (old.newest < 3) {
        world_append(&old);
    }
    tn_rc rc = world_sync(&old);
    CHECK_OK(rc, old.err);
    rc = tn_io_read_all(&old.source.disk.io, WORLD_LEDGER, 4096, &old.source.own, &ledger, &w.err);
    CHECK_OK(rc, w.err);
    world_init(&w, 22);
    rc = w.source.disk.io.vtable->unlink(&w.source.disk.io, ROOT "/schema/schema-0", &w.err);
    CHECK_OK(rc, w.err);
    world_schema(&w, 0, "made anew");
    world_write(&w.source.disk.io, WORLD_LEDGER, ledger);
    while (w.newest < 9) {
        world_append(&w);
    }
    world_expire(&w, 2, &w.source.worker);
    sim_disk_deinit(&w.target);
    sim_disk_clone(&w.target, &old.target);
    rc = world_sync(&w);
    CHECK(rc == TN_CONFLICT && strstr(w.err.text, "schema-0 has other content there") != NULL);
    CHECK(world_asked(&w, TN_TARGET_PUT) == 0);
    world_deinit(&w);
    world_deinit(&old);
}

/* A sync was killed after it had brought many, and the mirror is expired before the next one: what
 * the ledger says is there no longer is. */
static void mirror_that_expires_after_a_cut_is_met_anew(void)
{
    static struct world w;
    struct tn_ledger ledger;
    world_init(&w, 31);
    while (w.newest < 3) {
        world_append(&w);
    }
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    struct tn_io *io = &w.source.disk.io;
    rc = tn_ledger_read(io, "db.t", "tarn-lake-test", &w.source.own, &ledger, &w.err);
    CHECK_OK(rc, w.err);
    while (w.newest < 9) {
        world_append(&w);
        world_compact(&w);
    }
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    ledger.sending = 4; /* as it was while all that was sent */
    rc = tn_ledger_write(io, "db.t", "tarn-lake-test", &ledger, &w.source.own, &w.err);
    CHECK_OK(rc, w.err);
    struct tn_worker there = w.source.worker;
    there.io = &w.target.io;
    world_expire(&w, 1, &there);
    CHECK(!world_has(&w, 8) && world_has(&w, 9));
    world_append(&w);
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(!world_has(&w, 4) && w.result.first_id == w.newest);
    CHECK(world_whole(&w, w.newest - 1, w.newest));
    world_deinit(&w);
}

/* Two ledgers of one mirror (a daemon's, and that of who calls sync by hand), and it is expired
 * between: what one of them says is there no longer is. */
static void ledger_that_lags_behind_its_mirror_is_not_believed(void)
{
    static struct world w;
    world_init(&w, 31);
    while (w.newest < 3) {
        world_append(&w);
    }
    tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){.consumer = "tarn-lake-one"});
    CHECK_OK(rc, w.err);
    while (w.newest < 9) {
        world_append(&w);
        world_compact(&w);
    }
    rc = world_sync_with(&w, (struct tn_delta_spec){.consumer = "tarn-lake-two"});
    CHECK_OK(rc, w.err);
    struct tn_worker there = w.source.worker;
    there.io = &w.target.io;
    world_expire(&w, 1, &there);
    rc = world_sync_with(&w, (struct tn_delta_spec){.consumer = "tarn-lake-one"});
    CHECK_OK(rc, w.err);
    for (int64_t id = 1; id <= w.newest; id++) {
        CHECK(!world_has(&w, id) || world_check(&w, id) == TN_OK);
    }
    world_deinit(&w);
}

/* A source on which expiry runs just before the sync opens a file for the n-th time. */
struct racing {
    struct tn_io io;
    struct tn_io *inner;
    struct world *w;
    struct tn_worker *expirer;
    int opens_left;
};

static struct tn_io *inner_of(struct tn_io *io)
{
    return ((struct racing *)io)->inner;
}

static tn_rc racing_open(struct tn_io *io, const char *path, int *file, uint64_t *size,
                         struct tn_err *err)
{
    struct racing *racing = (struct racing *)io;
    if (--racing->opens_left == 0) {
        world_expire(racing->w, 1, racing->expirer);
    }
    return racing->inner->vtable->open(racing->inner, path, file, size, err);
}

static tn_rc racing_read(struct tn_io *io, int file, uint64_t offset, void *data, size_t size,
                         size_t *got, struct tn_err *err)
{
    return inner_of(io)->vtable->read(inner_of(io), file, offset, data, size, got, err);
}

static void racing_close(struct tn_io *io, int file)
{
    inner_of(io)->vtable->close(inner_of(io), file);
}

static tn_rc racing_list(struct tn_io *io, const char *path, tn_io_name_fn *each, void *user,
                         struct tn_err *err)
{
    return inner_of(io)->vtable->list(inner_of(io), path, each, user, err);
}

static tn_rc racing_stat(struct tn_io *io, const char *path, uint64_t *size, struct tn_err *err)
{
    return inner_of(io)->vtable->stat(inner_of(io), path, size, err);
}

static tn_rc racing_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                         struct tn_err *err)
{
    return inner_of(io)->vtable->sync(inner_of(io), paths, count, err);
}

/* What it takes to remove what is in front of a gap. */
static tn_rc racing_create(struct tn_io *io, const char *path, int *file, struct tn_err *err)
{
    return inner_of(io)->vtable->create(inner_of(io), path, file, err);
}

static tn_rc racing_append(struct tn_io *io, int file, struct tn_bytes bytes, struct tn_err *err)
{
    return inner_of(io)->vtable->append(inner_of(io), file, bytes, err);
}

static tn_rc racing_unlink(struct tn_io *io, const char *path, struct tn_err *err)
{
    return inner_of(io)->vtable->unlink(inner_of(io), path, err);
}

static tn_rc racing_make_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    return inner_of(io)->vtable->make_dir(inner_of(io), path, err);
}

static tn_rc racing_remove_dir(struct tn_io *io, const char *path, struct tn_err *err)
{
    return inner_of(io)->vtable->remove_dir(inner_of(io), path, err);
}

static tn_rc racing_lock(struct tn_io *io, const char *path, const char *who, int *file,
                         struct tn_err *err)
{
    return inner_of(io)->vtable->lock(inner_of(io), path, who, file, err);
}

static const struct tn_io_vtable racing_vtable = {
    .open = racing_open,
    .read = racing_read,
    .close = racing_close,
    .list = racing_list,
    .stat = racing_stat,
    .sync = racing_sync,
    .create = racing_create,
    .append = racing_append,
    .unlink = racing_unlink,
    .make_dir = racing_make_dir,
    .remove_dir = racing_remove_dir,
    .lock = racing_lock,
};

/* At every open of a sync all snapshots but the newest are expired, with files and all: it begins
 * again, and the newest gets there. Without `first` some have expired before, so that all is sent
 * that the first one here reaches. */
static void expire_at_every_open(bool first)
{
    uint32_t restarts = 0;
    bool raced = true;
    for (int open = 1; raced; open += STRIDE) {
        static struct world w;
        struct bed other = {0};
        world_init(&w, 13);
        some_history(&w, 10);
        if (!first) {
            world_expire(&w, 4, &w.source.worker);
        }
        other.clock = w.source.clock;
        bed_worker(&other, &w.source.disk.io, BED_WORKER_SIZE);
        struct racing racing = {.io = {.vtable = &racing_vtable},
                                .inner = &w.source.disk.io,
                                .w = &w,
                                .expirer = &other.worker,
                                .opens_left = open};
        w.source.worker.io = &racing.io;
        tn_rc rc = world_sync_with(&w, (struct tn_delta_spec){0});
        CHECK_OK(rc, w.err);
        CHECK(world_check(&w, w.newest) == TN_OK);
        for (int64_t id = 1; id < w.newest; id++) {
            CHECK(!world_has(&w, id) || world_check(&w, id) == TN_OK);
        }
        CHECK(world_hint(&w, "LATEST") == w.newest);
        raced = racing.opens_left <= 0;
        restarts += w.result.restarts;
        free(other.worker_memory);
        world_deinit(&w);
    }
    CHECK(restarts > 10 / STRIDE);
}

static void sync_begins_again_when_expiry_is_faster(void)
{
    expire_at_every_open(true);
    expire_at_every_open(false);
}

/* An altered schema that no snapshot names yet. */
static void newer_schemas_travel_behind_the_snapshots(void)
{
    static struct world w;
    uint64_t size;
    world_init(&w, 14);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    world_schema(&w, 1, "second");
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    CHECK(w.result.files == 1 && w.result.first_id == 0);
    rc = w.target.io.vtable->stat(&w.target.io, ROOT "/schema/schema-1", &size, &w.err);
    CHECK_OK(rc, w.err);
    world_deinit(&w);
}

static void be_cut(void *user, enum tn_target_verb verb, const char *path)
{
    struct world *w = user;
    (void)path;
    if (verb == TN_TARGET_PUT) {
        sim_disk_cut_at(&w->target, w->target.calls + 1);
    }
}

/* A schema that got its name just before its sender was cut, and is met without a ledger: then the
 * target's power goes. */
static void what_is_met_stays_before_it_is_written_down(void)
{
    static const char name[] = ROOT "/schema/schema-1";
    static struct world w;
    struct tn_bytes text;
    uint64_t size;
    world_init(&w, 15);
    world_append(&w);
    tn_rc rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    world_schema(&w, 1, "second");
    rc = tn_io_read_all(&w.source.disk.io, name, 4096, &w.source.own, &text, &w.err);
    CHECK_OK(rc, w.err);
    world_write(&w.target.io, name, text);
    world_lose_ledger(&w);
    world_append(&w);
    w.counting.before = be_cut;
    w.counting.user = &w;
    CHECK(world_sync(&w) == TN_IO);
    sim_disk_reboot(&w.target, SIM_SEED_NOTHING);
    w.counting.before = NULL;
    rc = world_sync(&w);
    CHECK_OK(rc, w.err);
    rc = w.target.io.vtable->stat(&w.target.io, name, &size, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(world_check(&w, 2) == TN_OK);
    world_deinit(&w);
}

static const struct test tests[] = {
    TEST(mirror_follows_random_histories),
    TEST(second_sync_sends_nothing_and_dry_run_says_what_the_real_one_does),
    TEST(mirror_is_whole_after_a_cut_before_every_call),
    TEST(what_has_travelled_stands_at_the_source),
    TEST(writer_that_owns_a_mirror_stands_at_the_source),
    TEST(mirror_goes_on_after_a_failure_of_every_call),
    TEST(every_barrier_is_needed),
    TEST(diverged_target_gets_nothing),
    TEST(commit_at_the_mirror_is_met_at_the_publish),
    TEST(damaged_source_is_named_and_not_published),
    TEST(table_without_snapshots_brings_its_schemas_and_no_table_is_absent),
    TEST(expiry_never_passes_what_the_mirror_has),
    TEST(gap_is_left_behind_earliest),
    TEST(latest_that_lags_before_a_gap_takes_nothing_back),
    TEST(what_is_hidden_takes_nothing_back_before_a_gap),
    TEST(gap_is_passed_where_the_source_has_neither_side),
    TEST(late_snapshot_of_a_killed_process_lies_below_earliest),
    TEST(late_snapshot_behind_all_else_is_in_no_syncs_way),
    TEST(mirror_that_expires_after_a_cut_is_met_anew),
    TEST(ledger_that_lags_behind_its_mirror_is_not_believed),
    TEST(table_made_anew_is_told_from_the_old_one_behind_a_gap),
    TEST(sync_begins_again_when_expiry_is_faster),
    TEST(newer_schemas_travel_behind_the_snapshots),
    TEST(what_is_met_stays_before_it_is_written_down),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
