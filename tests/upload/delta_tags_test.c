/* Tags of a mirror are those of its source, each whole: made, replaced and removed, over expiry at
 * both sides and cuts at every call; those that others made there stay. */
#include "commit/tag.h"
#include "given.h"
#include "upload/world.h"

#ifdef TN_DEBUG
enum { STRIDE = 13, HISTORIES = 2 };
#else
enum { STRIDE = 1, HISTORIES = 8 };
#endif

enum { NAMES = 4 };
static const char *const names[NAMES] = {"a", "b c", "daily-2026", "v%2F1"};

static const char *path_of(struct world *w, const char *name)
{
    return tn_arena_format(&w->source.own, ROOT "/tag/tag-%s", name);
}

static void make_tag_by(struct world *w, struct tn_worker *worker, const char *name, int64_t id)
{
    struct tn_tag_spec spec = {.root = ROOT, .name = name, .snapshot_id = id};
    int64_t made;
    tn_rc rc = tn_tag_make(&spec, worker, &made, &w->err);
    CHECK_OK(rc, w->err);
}

static void make_tag(struct world *w, const char *name, int64_t id)
{
    make_tag_by(w, &w->source.worker, name, id);
}

static void remove_tag(struct world *w, const char *name)
{
    struct tn_expire_spec spec = {
        .root = ROOT, .schema = &w->source.schema, .options = &w->source.options};
    struct tn_expire_result result = {0};
    tn_rc rc = tn_tag_remove(&spec, name, &w->source.worker, &result, &w->err);
    CHECK_OK(rc, w->err);
}

static bool has_tag(struct world *w, struct tn_io *io, const char *name)
{
    uint64_t size;
    struct tn_err err;
    return io->vtable->stat(io, path_of(w, name), &size, &err) == TN_OK;
}

static struct tn_bytes bytes_of(struct world *w, struct tn_io *io, const char *path)
{
    struct tn_bytes bytes;
    tn_rc rc = tn_io_read_all(io, path, 4096, &w->source.own, &bytes, &w->err);
    CHECK_OK(rc, w->err);
    return bytes;
}

/* OK: it is there, and all that it holds. */
static tn_rc check_tag(struct world *w, const char *name)
{
    struct tn_worker worker = w->source.worker;
    struct world_look look = {w, &worker, 0};
    struct tn_snapshot tagged;
    worker.io = &w->target.io;
    tn_rc rc = tn_snapshot_read_path(worker.io, path_of(w, name), &worker.arena, &tagged, &w->err);
    if (rc == TN_OK) {
        rc = tn_live_each(ROOT, &tagged, &w->source.schema, NULL, &worker, world_look_at, &look,
                          &w->err);
    }
    return rc == TN_OK && look.sum != w->live[tagged.id]
               ? tn_err_set(&w->err, TN_CORRUPT, 0, "tag %s has other files", name)
               : rc;
}

/* Each tag that is there is whole; if the sync is through, they are the source's, byte for byte. */
static void check_tags(struct world *w, bool done)
{
    for (int i = 0; i < NAMES; i++) {
        size_t mark = tn_arena_mark(&w->source.own);
        bool here = has_tag(w, &w->source.disk.io, names[i]);
        bool there = has_tag(w, &w->target.io, names[i]);
        tn_rc rc = there ? check_tag(w, names[i]) : TN_OK;
        CHECK_OK(rc, w->err);
        if (done && here != there) {
            FAIL("tag %s: here %d, there %d", names[i], here, there);
        }
        if (done && here) {
            const char *path = path_of(w, names[i]);
            CHECK(tn_bytes_equal(bytes_of(w, &w->source.disk.io, path),
                                 bytes_of(w, &w->target.io, path)));
        }
        tn_arena_reset(&w->source.own, mark);
    }
}

static void must_sync(struct world *w)
{
    tn_rc rc = world_sync(w);
    CHECK_OK(rc, w->err);
}

/* Made, removed, or both: then the same name has another snapshot. */
static void change_tag(struct world *w)
{
    const char *name = names[random_below(&w->random, NAMES)];
    bool there = has_tag(w, &w->source.disk.io, name);
    int64_t first;
    tn_rc rc = tn_snapshot_earliest(&w->source.disk.io, ROOT, &w->source.own, &first, &w->err);
    CHECK_OK(rc, w->err);
    if (there) {
        remove_tag(w, name);
    }
    if (!there || random_below(&w->random, 2) == 0) {
        uint32_t count = (uint32_t)(w->newest - first + 1);
        make_tag(w, name, first + (int64_t)random_below(&w->random, count));
    }
}

static void step(struct world *w)
{
    switch (random_below(&w->random, 5)) {
    case 0:
        world_compact(w);
        break;
    case 1:
    case 2:
        world_append(w);
        break;
    default:
        change_tag(w);
        break;
    }
}

static void expire_there(struct world *w, int32_t keep)
{
    struct tn_worker there = w->source.worker;
    there.io = &w->target.io;
    world_expire(w, keep, &there);
}

static void some_steps(struct world *w)
{
    for (uint64_t left = random_below(&w->random, 5); left > 0; left--) {
        step(w);
    }
    if (random_below(&w->random, 3) == 0) {
        world_expire(w, 1 + (int32_t)random_below(&w->random, 3), &w->source.worker);
    }
    if (random_below(&w->random, 4) == 0) {
        world_lose_ledger(w);
    }
}

static void mirror_has_the_tags_of_its_source(void)
{
    uint64_t first = given_number("SEED", 1);
    for (uint64_t seed = first; seed < first + HISTORIES; seed++) {
        static struct world w;
        world_init(&w, seed);
        world_append(&w);
        for (int i = 0; i < 40; i++) {
            some_steps(&w);
            if (random_below(&w.random, 2) == 0) {
                must_sync(&w);
                check_tags(&w, true);
            }
            if (w.result.last_id > 0 && random_below(&w.random, 4) == 0) {
                expire_there(&w, 1 + (int32_t)random_below(&w.random, 3));
                check_tags(&w, false);
            }
        }
        must_sync(&w);
        check_tags(&w, true);
        CHECK(world_check(&w, w.newest) == TN_OK);
        world_deinit(&w);
    }
}

/* Of a snapshot that is only a tag by now: it went before the mirror was made. */
static void tag_of_an_expired_snapshot_brings_its_files(void)
{
    static struct world w;
    world_init(&w, 4);
    world_append(&w);
    world_append(&w);
    make_tag(&w, names[0], 2);
    while (w.newest < 8) {
        world_append(&w);
        world_compact(&w);
    }
    world_expire(&w, 1, &w.source.worker);
    must_sync(&w);
    CHECK(w.result.first_id == w.newest && w.result.tags == 1);
    check_tags(&w, true);
    expire_there(&w, 1);
    check_tags(&w, true);
    world_deinit(&w);
}

struct remover {
    struct world *w;
    struct tn_worker *worker;
    int left; /* questions before it comes */
};

static void remove_before(void *user, enum tn_target_verb verb, const char *path)
{
    struct remover *r = user;
    (void)verb;
    (void)path;
    if (--r->left == 0) {
        struct tn_expire_spec spec = {
            .root = ROOT, .schema = &r->w->source.schema, .options = &r->w->source.options};
        struct tn_expire_result result = {0};
        struct tn_err err;
        tn_rc rc = tn_tag_remove(&spec, names[0], r->worker, &result, &err);
        CHECK_OK(rc, err);
    }
}

/* Before any question of a sync the tag goes, with all that it alone held. */
static void tag_that_goes_while_it_is_brought_is_for_the_next_sync(void)
{
    bool removed = true;
    int asked = 0;
    for (int question = 1; removed; question += STRIDE) {
        static struct world w;
        struct bed other = {0};
        world_init(&w, 4);
        world_append(&w);
        world_append(&w);
        make_tag(&w, names[0], 2);
        while (w.newest < 8) {
            world_append(&w);
            world_compact(&w);
        }
        world_expire(&w, 1, &w.source.worker);
        other.clock = w.source.clock;
        bed_worker(&other, &w.source.disk.io, BED_WORKER_SIZE);
        struct remover remover = {.w = &w, .worker = &other.worker, .left = question};
        w.counting.before = remove_before;
        w.counting.user = &remover;
        must_sync(&w);
        w.counting.before = NULL;
        removed = remover.left <= 0;
        asked += removed;
        must_sync(&w);
        check_tags(&w, true);
        free(other.worker_memory);
        world_deinit(&w);
    }
    CHECK(asked > 20 / STRIDE);
}

static void check_asked(struct world *w, uint64_t gets, uint64_t puts, uint64_t deletes)
{
    uint64_t asked[] = {world_asked(w, TN_TARGET_GET), world_asked(w, TN_TARGET_PUT),
                        world_asked(w, TN_TARGET_DELETE)};
    if (asked[0] != gets || asked[1] != puts || asked[2] != deletes) {
        FAIL("GET %d, PUT %d, DELETE %d", (int)asked[0], (int)asked[1], (int)asked[2]);
    }
    CHECK(world_asked(w, TN_TARGET_HEAD) == 0 && world_asked(w, TN_TARGET_LIST) == 0);
}

/* For the newest snapshot's tag, for an older one's, for a removal, for what stands. */
static void tags_cost_their_requests_and_nothing_when_they_stand(void)
{
    static struct world w;
    world_init(&w, 5);
    world_append(&w);
    world_append(&w);
    must_sync(&w);
    CHECK(world_asked(&w, TN_TARGET_GET) == 2); /* owner, LATEST: a new mirror has no record */
    make_tag(&w, names[0], 2);
    must_sync(&w);
    check_asked(&w, 3, 3, 0);
    for (int i = 0; i < 3; i++) {
        must_sync(&w);
        check_asked(&w, 0, 0, 0);
    }
    make_tag(&w, names[1], 1);
    must_sync(&w);
    check_asked(&w, 7, 3, 0);
    remove_tag(&w, names[0]);
    must_sync(&w);
    check_asked(&w, 3, 2, 1);
    CHECK(w.result.tags_removed == 1);
    check_tags(&w, true);
    world_lose_ledger(&w);
    must_sync(&w);
    CHECK(world_asked(&w, TN_TARGET_PUT) == 0 && w.result.tags == 0);
    world_deinit(&w);
}

/* Also when the source has one of that name, and when that goes. */
static void tags_of_others_stay(void)
{
    static struct world w;
    world_init(&w, 6);
    world_append(&w);
    world_append(&w);
    must_sync(&w);
    struct tn_worker there = w.source.worker;
    there.io = &w.target.io;
    make_tag_by(&w, &there, names[0], 1);
    make_tag_by(&w, &there, names[1], 1);
    struct tn_bytes before = bytes_of(&w, &w.target.io, path_of(&w, names[0]));
    make_tag(&w, names[0], 2);
    make_tag(&w, names[2], 2);
    must_sync(&w);
    CHECK(w.result.tags == 1 && w.result.tags_left == 1);
    remove_tag(&w, names[0]);
    must_sync(&w);
    CHECK(w.result.tags_removed == 0 && has_tag(&w, &w.target.io, names[1]));
    CHECK(tn_bytes_equal(before, bytes_of(&w, &w.target.io, path_of(&w, names[0]))));
    CHECK(has_tag(&w, &w.target.io, names[2]));
    world_deinit(&w);
}

static void make_before(void *user, enum tn_target_verb verb, const char *path)
{
    struct world *w = user;
    if (verb == TN_TARGET_PUT && strcmp(path, path_of(w, names[0])) == 0) {
        struct tn_worker there = w->source.worker;
        there.io = &w->target.io;
        w->counting.before = NULL;
        make_tag_by(w, &there, names[0], 1);
    }
}

/* What a tag holds may take long to bring, and its name another's meanwhile. */
static void tag_that_others_make_meanwhile_stays(void)
{
    static struct world w;
    world_init(&w, 11);
    world_append(&w);
    world_append(&w);
    must_sync(&w);
    make_tag(&w, names[0], 2);
    make_tag(&w, names[1], 2);
    w.counting.before = make_before;
    w.counting.user = &w;
    must_sync(&w);
    CHECK(!w.counting.before && w.result.tags == 1 && w.result.tags_left == 1);
    struct tn_bytes before = bytes_of(&w, &w.target.io, path_of(&w, names[0]));
    CHECK(!tn_bytes_equal(before, bytes_of(&w, &w.source.disk.io, path_of(&w, names[0]))));
    remove_tag(&w, names[1]);
    must_sync(&w);
    CHECK(w.result.tags_removed == 1);
    CHECK(tn_bytes_equal(before, bytes_of(&w, &w.target.io, path_of(&w, names[0]))));
    world_deinit(&w);
}

/* A store that says for a moment that the record may not be read has one all the same; and where
 * nobody ever says what isn't there, there is none at first. */
static void record_that_is_hidden_is_not_taken_for_none(void)
{
    static struct world w;
    world_init(&w, 12);
    world_append(&w);
    w.counting.hides = true;
    must_sync(&w);
    make_tag(&w, names[0], 1);
    make_tag(&w, names[1], 1);
    must_sync(&w);
    check_tags(&w, true);
    w.counting.denied = ".tarn/db.t/tags";
    remove_tag(&w, names[0]);
    CHECK(world_sync(&w) == TN_IO && strstr(w.err.text, "permission"));
    w.counting.denied = NULL;
    must_sync(&w);
    CHECK(w.result.tags_removed == 1 && w.result.tags_left == 0);
    check_tags(&w, true);
    world_deinit(&w);
}

/* A key that may only read and write: what travels goes on. */
static void tag_that_may_not_be_removed_stays(void)
{
    static struct world w;
    world_init(&w, 10);
    world_append(&w);
    make_tag(&w, names[0], 1);
    must_sync(&w);
    remove_tag(&w, names[0]);
    world_append(&w);
    w.counting.keeps = true;
    must_sync(&w);
    CHECK(w.result.tags_denied == 1 && w.result.tags_removed == 0 && w.result.last_id == 2);
    must_sync(&w);
    check_asked(&w, 0, 0, 0);
    w.counting.keeps = false;
    make_tag(&w, names[1], 2);
    must_sync(&w);
    CHECK(w.result.tags_removed == 1 && w.result.tags == 1);
    check_tags(&w, true);
    world_deinit(&w);
}

static void pass_an_hour(struct world *w)
{
    sim_clock_advance_ms(&w->source.clock, 60 * 60 * 1000);
}

/* What was denied may have been so for a moment: with the question for the owner, once an hour, it
 * is asked for again, and what was written down already isn't written again. */
static void denied_tag_is_removed_an_hour_later(void)
{
    static struct world w;
    world_init(&w, 11);
    world_append(&w);
    make_tag(&w, names[0], 1);
    must_sync(&w);
    remove_tag(&w, names[0]);
    w.counting.keeps = true;
    must_sync(&w);
    CHECK(w.result.tags_denied == 1);
    for (int i = 0; i < 2; i++) {
        must_sync(&w);
        check_asked(&w, 0, 0, 0);
        pass_an_hour(&w);
        must_sync(&w);
        CHECK(w.result.tags_denied == 1);
        check_asked(&w, 4, 0, 0);
    }
    pass_an_hour(&w);
    w.counting.keeps = false;
    must_sync(&w);
    CHECK(w.result.tags_removed == 1 && w.result.tags_denied == 0);
    check_asked(&w, 4, 1, 1);
    check_tags(&w, true);
    pass_an_hour(&w);
    must_sync(&w);
    check_asked(&w, 1, 0, 0);
    world_deinit(&w);
}

/* A commit and its tag come while a sync runs, which found the snapshots before: the tag waits. */
static void tag_of_a_snapshot_to_come_waits(void)
{
    static struct world w;
    static const char path[] = ROOT "/snapshot/snapshot-2";
    world_init(&w, 7);
    world_append(&w);
    must_sync(&w);
    world_append(&w);
    make_tag(&w, names[0], 2);
    struct tn_io *io = &w.source.disk.io;
    struct tn_bytes text = bytes_of(&w, io, path);
    tn_rc rc = io->vtable->unlink(io, path, &w.err);
    CHECK_OK(rc, w.err);
    must_sync(&w);
    CHECK(w.result.tags == 0 && !has_tag(&w, &w.target.io, names[0]));
    must_sync(&w);
    check_asked(&w, 0, 0, 0);
    rc = tn_io_write_new(io, path, text, &w.err);
    CHECK_OK(rc, w.err);
    must_sync(&w);
    CHECK(w.result.tags == 1);
    check_tags(&w, true);
    world_deinit(&w);
}

/* A file that a tag needs is gone at the source: the snapshots travel all the same. */
static void damaged_tag_is_named(void)
{
    static struct world w;
    world_init(&w, 9);
    world_append(&w);
    make_tag(&w, names[0], 1);
    while (w.newest < 6 || w.files[0].live) {
        world_append(&w);
        world_compact(&w);
    }
    world_expire(&w, 1, &w.source.worker);
    const char *path = world_path(&w, &w.files[0].entry, &w.source.own);
    tn_rc rc = w.source.disk.io.vtable->unlink(&w.source.disk.io, path, &w.err);
    CHECK_OK(rc, w.err);
    rc = world_sync(&w);
    CHECK(rc == TN_CORRUPT && strstr(w.err.text, "tag a: ") && strstr(w.err.text, path));
    CHECK(world_check(&w, w.newest) == TN_OK && world_hint(&w, "LATEST") == w.newest);
    CHECK(!has_tag(&w, &w.target.io, names[0]));
    rc = world_sync(&w); /* with no snapshot to send */
    CHECK(rc == TN_CORRUPT && w.result.restarts == 0);
    world_deinit(&w);
}

/* ---- cuts ---- */

/* One tag stays, one is made of what expired there, one is replaced, one is removed. */
static void prepare(struct world *w)
{
    world_init(w, given_number("SEED", 3));
    while (w->newest < 4) {
        world_append(w);
        world_compact(w);
    }
    make_tag(w, names[0], w->newest);
    make_tag(w, names[1], w->newest - 1);
    make_tag(w, names[2], w->newest);
    must_sync(w);
    world_append(w);
    make_tag(w, names[3], w->newest - 2);
    remove_tag(w, names[0]);
    remove_tag(w, names[2]);
    make_tag(w, names[2], w->newest);
    expire_there(w, 1);
}

static bool cut_and_resume(struct world *w, const struct world_pair *fresh, int way, uint64_t call)
{
    world_go_back(w, fresh);
    struct sim_disk *disk = way % 2 ? &w->source.disk : &w->target;
    uint64_t before = disk->calls;
    if (way < 2) {
        sim_disk_cut_at(disk, before + call);
    } else {
        sim_disk_fail_call_late(disk, before + call, TN_IO);
    }
    tn_rc rc = world_sync(w);
    bool done = rc == TN_OK && disk->calls - before < call;
    disk->fail_call = 0;
    if (way < 2) {
        sim_disk_reboot(disk, call);
    }
    check_tags(w, rc == TN_OK);
    if (call % 3 == 0) { /* what it was about has gone meanwhile */
        remove_tag(w, names[3]);
    }
    must_sync(w);
    sim_disk_reboot(&w->target, SIM_SEED_NOTHING);
    check_tags(w, true);
    return done;
}

static void tags_are_whole_after_a_cut_at_any_call(void)
{
    static struct world w;
    static struct world_pair fresh;
    prepare(&w);
    world_save(&w, &fresh);
    for (int way = 0; way < 4; way++) {
        uint64_t call = 1;
        while (!cut_and_resume(&w, &fresh, way, call)) {
            call += STRIDE;
        }
        CHECK(call > 20);
    }
    world_forget(&fresh);
    world_deinit(&w);
}

/* Made, cut, removed: for the source nothing has changed since the last sync. */
static void tag_that_goes_after_a_cut_goes_there_too(void)
{
    static struct world w;
    static struct world_pair fresh;
    bool done = false;
    world_init(&w, given_number("SEED", 3));
    world_append(&w);
    must_sync(&w);
    make_tag(&w, names[0], 1);
    world_save(&w, &fresh);
    for (uint64_t call = 1; !done; call++) {
        world_go_back(&w, &fresh);
        sim_disk_cut_at(&w.target, w.target.calls + call);
        done = world_sync(&w) == TN_OK;
        sim_disk_reboot(&w.target, call);
        check_tags(&w, done);
        remove_tag(&w, names[0]);
        must_sync(&w);
        check_tags(&w, true);
    }
    world_forget(&fresh);
    world_deinit(&w);
}

/* One is to be made there and one to go, by bytes of ours. */
static void prepare_for_others(struct world *w)
{
    world_init(w, given_number("SEED", 3));
    world_append(w);
    world_append(w);
    make_tag(w, names[1], 2);
    make_tag(w, names[2], 1);
    must_sync(w);
    make_tag(w, names[0], 2);
    remove_tag(w, names[1]);
    remove_tag(w, names[2]);
    make_tag(w, names[2], 2);
}

/* Where the name is free after the cut; or `bytes` is NULL. */
static void tag_as_another(struct world *w, const char *name, struct tn_bytes *bytes)
{
    struct tn_worker there = w->source.worker;
    there.io = &w->target.io;
    *bytes = (struct tn_bytes){NULL, 0};
    if (!has_tag(w, &w->target.io, name)) {
        make_tag_by(w, &there, name, 1);
        *bytes = bytes_of(w, &w->target.io, path_of(w, name));
    }
}

static void check_after_others(struct world *w, const char *name, struct tn_bytes bytes)
{
    bool here = has_tag(w, &w->source.disk.io, name);
    if (bytes.data) {
        CHECK(tn_bytes_equal(bytes, bytes_of(w, &w->target.io, path_of(w, name))));
    } else {
        CHECK(has_tag(w, &w->target.io, name) == here);
    }
}

static bool cut_and_let_others(struct world *w, const struct world_pair *fresh, int way,
                               uint64_t call, uint32_t *made)
{
    struct tn_bytes others[2];
    world_go_back(w, fresh);
    size_t mark = tn_arena_mark(&w->source.own);
    struct sim_disk *disk = way == 0 ? &w->source.disk : &w->target;
    uint64_t before = disk->calls;
    if (way < 2) {
        sim_disk_cut_at(disk, before + call);
    } else {
        sim_disk_fail_call_late(disk, before + call, TN_IO);
    }
    tn_rc rc = world_sync(w);
    bool done = rc == TN_OK && disk->calls - before < call;
    disk->fail_call = 0;
    if (way < 2) {
        sim_disk_reboot(disk, call);
    }
    for (int i = 0; !done && i < 2; i++) {
        tag_as_another(w, names[i], &others[i]);
        *made += others[i].data != NULL;
    }
    if (call % 3 == 0) {
        remove_tag(w, names[0]);
        remove_tag(w, names[2]);
    } else if (call % 3 == 1) {
        make_tag(w, names[1], 2);
    }
    must_sync(w);
    must_sync(w);
    for (int i = 0; !done && i < 2; i++) {
        check_after_others(w, names[i], others[i]);
    }
    check_after_others(w, names[2], (struct tn_bytes){NULL, 0});
    tn_arena_reset(&w->source.own, mark);
    return done;
}

/* What a cut sync was about to make, or has removed, others make before the next one. */
static void tag_that_others_make_after_a_cut_stays(void)
{
    static struct world w;
    static struct world_pair fresh;
    prepare_for_others(&w);
    world_save(&w, &fresh);
    for (int way = 0; way < 3; way++) {
        uint32_t made = 0;
        uint64_t call = 1;
        while (!cut_and_let_others(&w, &fresh, way, call, &made)) {
            call++;
        }
        CHECK(call > 10 && made > 5);
    }
    world_forget(&fresh);
    world_deinit(&w);
}

static const struct test tests[] = {
    TEST(mirror_has_the_tags_of_its_source),
    TEST(tag_of_an_expired_snapshot_brings_its_files),
    TEST(tag_that_goes_while_it_is_brought_is_for_the_next_sync),
    TEST(tags_cost_their_requests_and_nothing_when_they_stand),
    TEST(tags_of_others_stay),
    TEST(tag_that_others_make_meanwhile_stays),
    TEST(record_that_is_hidden_is_not_taken_for_none),
    TEST(tag_that_may_not_be_removed_stays),
    TEST(denied_tag_is_removed_an_hour_later),
    TEST(tag_of_a_snapshot_to_come_waits),
    TEST(damaged_tag_is_named),
    TEST(tags_are_whole_after_a_cut_at_any_call),
    TEST(tag_that_goes_after_a_cut_goes_there_too),
    TEST(tag_that_others_make_after_a_cut_stays),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
