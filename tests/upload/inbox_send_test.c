/* A gateway hands in, whatever fails in between, and a gather finds everything once. */
#include "given.h"
#include "upload/gather.h"
#include "upload/inbox_send.h"
#include "upload/share_schema.h"
#include "upload/world.h"

#define TABLE "db.t"

#ifdef TN_DEBUG
enum { STRIDE = 7 };
#else
enum { STRIDE = 1 };
#endif

/* The world's source is the gateway, its target the lake. */
static struct world w;
static struct tn_directory directory;
static struct counting counting;
static struct tn_inbox_sent sent;
static struct tn_share_bounds bounds;

static void open_lake(void)
{
    tn_rc rc = tn_directory_init(&directory, &w.target.io, "lake", &w.source.own, &w.err);
    CHECK_OK(rc, w.err);
    counting = (struct counting){.target = {.vtable = &counting_vtable, .name = "lake"},
                                 .inner = &directory.target};
}

static void set_up(uint64_t seed)
{
    static const struct tn_share share = {.where = "s3://bucket/prefix",
                                          .way = TN_SHARE_GATHER,
                                          .gateway = "11111111-2222-4333-8444-555555555555"};
    const struct tn_schema *newest;
    struct tn_bytes schema;
    world_init(&w, seed);
    struct tn_io *io = &w.source.disk.io;
    tn_rc rc = tn_io_read_all(io, ROOT "/schema/schema-0", 4096, &w.source.own, &schema, &w.err);
    CHECK_OK(rc, w.err);
    world_write(&w.target.io, ROOT "/schema/schema-0", schema);
    rc = io->vtable->unlink(io, ROOT "/schema/schema-0", &w.err);
    CHECK_OK(rc, w.err);
    open_lake();
    struct tn_share_place place = {TABLE, ROOT, &counting.target, &w.source.worker};
    size_t mark = tn_arena_mark(&w.source.worker.arena);
    rc = tn_share_adopt(&place, &share, &newest, &w.err);
    CHECK_OK(rc, w.err);
    tn_arena_reset(&w.source.worker.arena, mark);
    sim_disk_reboot(&w.target, SIM_SEED_ALL);
    sim_disk_reboot(&w.source.disk, SIM_SEED_ALL);
}

static tn_rc hand_in(void)
{
    struct tn_inbox_send_spec spec = {.table = TABLE, .target = &counting.target, .bounds = bounds};
    struct tn_arena *arena = &w.source.worker.arena;
    size_t mark = tn_arena_mark(arena);
    size_t own = tn_arena_mark(&w.source.own);
    open_lake();
    (void)tn_arena_take_raw(arena, tn_arena_free(arena) - tn_inbox_send_memory());
    size_t before = tn_arena_mark(arena);
    tn_rc rc = tn_inbox_send(&spec, &w.source.worker, &sent, &w.err);
    CHECK(tn_arena_mark(arena) == before);
    tn_arena_reset(&w.source.own, own);
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- the lake's side ---- */

static uint8_t added[WORLD_FILES];

static tn_rc note_added(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)user;
    (void)err;
    for (uint32_t i = 0; i < w.file_count; i++) {
        const struct tn_file_meta *file = &w.files[i].entry.file;
        if (file->level == entry->file.level &&
            strcmp(file->file_name, entry->file.file_name) == 0) {
            added[i]++;
        }
    }
    return TN_OK;
}

/* All that is handed in becomes a snapshot; then it has each file of an APPEND snapshot once, and
 * none of a compaction. */
static void gather_and_check(void)
{
    static unsigned char memory[2 << 20];
    struct tn_arena arena;
    static struct tn_gather gather;
    struct tn_gather_result result;
    struct tn_worker worker = w.source.worker;
    struct tn_snapshot snapshot;
    worker.io = &w.target.io;
    tn_arena_init(&arena, memory, sizeof memory);
    struct tn_gather_spec spec = {.table = {TABLE, ROOT, &w.source.schema, &w.source.options},
                                  .worker = &worker,
                                  .arena = &arena};
    tn_rc rc = tn_gather_open(&gather, &spec, &w.err);
    CHECK_OK(rc, w.err);
    do {
        rc = tn_gather_round(&gather, true, &result, &w.err);
        CHECK_OK(rc, w.err);
        CHECK(result.refused == 0);
    } while (result.entries + result.known > 0);
    int64_t newest;
    rc = tn_snapshot_latest(&w.target.io, ROOT, &worker.arena, &newest, &w.err);
    CHECK_OK(rc, w.err);
    rc = tn_snapshot_read(&w.target.io, ROOT, newest, &worker.arena, &snapshot, &w.err);
    CHECK_OK(rc, w.err);
    memset(added, 0, sizeof added);
    rc = tn_live_each(ROOT, &snapshot, &w.source.schema, NULL, &worker, note_added, NULL, &w.err);
    CHECK_OK(rc, w.err);
    for (uint32_t i = 0; i < w.file_count; i++) {
        if (added[i] != (w.files[i].entry.file.level == 0)) {
            FAIL("file %u of level %d is there %u times", (unsigned)i,
                 (int)w.files[i].entry.file.level, (unsigned)added[i]);
        }
    }
}

static uint64_t asked(enum tn_target_verb verb)
{
    return counting.target.counts.requests[verb];
}

static uint64_t asked_in_all(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < TN_TARGET_VERBS; i++) {
        sum += asked((enum tn_target_verb)i);
    }
    return sum;
}

static void some_commits(int count)
{
    for (int i = 0; i < count; i++) {
        world_append(&w);
        if (random_below(&w.random, 2) == 0) {
            world_compact(&w);
        }
    }
}

/* ---- tests ---- */

static void a_commit_costs_three_requests_and_its_files(void)
{
    set_up(given_number("SEED", 1));
    for (int i = 0; i < 10; i++) {
        world_append(&w);
        tn_rc rc = hand_in();
        CHECK_OK(rc, w.err);
        CHECK(sent.entries == 1 && sent.files >= 1 && sent.last_id == w.newest);
        CHECK(asked_in_all() <= 3 + sent.files);
        CHECK(asked(TN_TARGET_LIST) == 0 && asked(TN_TARGET_DELETE) == 0);
        world_compact(&w);
        rc = hand_in();
        CHECK_OK(rc, w.err);
        CHECK(asked_in_all() == 0 && sent.entries == 0 && sent.last_id == w.newest);
    }
    gather_and_check();
    world_deinit(&w);
}

static void a_dry_run_writes_nothing(void)
{
    set_up(given_number("SEED", 1));
    some_commits(3);
    struct tn_inbox_send_spec spec = {.table = TABLE, .dry_run = true};
    uint64_t used = sim_disk_used(&w.source.disk);
    tn_rc rc = tn_inbox_send(&spec, &w.source.worker, &sent, &w.err);
    CHECK_OK(rc, w.err);
    CHECK(sim_disk_used(&w.source.disk) == used);
    struct tn_inbox_sent said = sent;
    rc = hand_in();
    CHECK_OK(rc, w.err);
    CHECK(said.files == sent.files && said.bytes == sent.bytes && said.last_id == sent.last_id);
    world_deinit(&w);
}

/* The power goes before each call, here or there, or each call fails, before or behind its work;
 * in between a gather may come. Then it is handed in again. */
static bool break_at(const struct world_pair *fresh, int how, uint64_t call)
{
    world_go_back(&w, fresh);
    struct sim_disk *disk = how % 2 == 0 ? &w.source.disk : &w.target;
    uint64_t before = disk->calls;
    if (how < 2) {
        sim_disk_cut_at(disk, disk->calls + call);
    } else if (how < 4) {
        sim_disk_fail_call(disk, disk->calls + call, TN_IO);
    } else {
        sim_disk_fail_call_late(disk, disk->calls + call, TN_IO);
    }
    tn_rc rc = hand_in();
    bool done = rc == TN_OK && disk->calls - before < call;
    disk->fail_call = 0;
    sim_disk_cut_at(disk, 0);
    if (how < 2) {
        sim_disk_reboot(disk, call % 5);
    }
    if (call % 3 == 0 && done) {
        gather_and_check();
    }
    rc = hand_in();
    CHECK_OK(rc, w.err);
    CHECK(sent.last_id == w.newest);
    sim_disk_reboot(&w.target, SIM_SEED_NOTHING);
    gather_and_check();
    return done;
}

static void what_fails_is_handed_in_again(void)
{
    static struct world_pair fresh;
    set_up(given_number("SEED", 1));
    some_commits(2);
    tn_rc rc = hand_in();
    CHECK_OK(rc, w.err);
    some_commits(2);
    world_save(&w, &fresh);
    for (int how = 0; how < 6; how++) {
        bool done = false;
        for (uint64_t call = 1; !done; call += STRIDE) {
            done = break_at(&fresh, how, call);
            CHECK(!done || call > 5);
        }
    }
    world_forget(&fresh);
    world_deinit(&w);
}

/* However little is allowed at a time. */
static void what_is_allowed_little_by_little_comes_there(void)
{
    uint32_t limited = 0;
    sent.last_id = 0;
    set_up(given_number("SEED", 1));
    for (int step = 0; step < 80; step++) {
        int64_t done = sent.last_id;
        if (step < 40) {
            some_commits(1);
        }
        bounds.through =
            random_below(&w.random, 2) ? done + (int64_t)random_below(&w.random, 9) : 0;
        bounds.bytes_max = random_below(&w.random, 2) ? 1 + random_below(&w.random, 3000) : 0;
        bounds.requests_max = random_below(&w.random, 2) ? 1 + random_below(&w.random, 9) : 0;
        tn_rc rc = hand_in();
        CHECK_OK(rc, w.err);
        CHECK(bounds.through == 0 ||
              sent.last_id <= (bounds.through > done ? bounds.through : done));
        CHECK(bounds.bytes_max == 0 || directory.target.counts.bytes_sent <=
                                           bounds.bytes_max + WORLD_BIG + TN_COMMITTABLE_SIZE_MAX);
        CHECK(sent.last_id >= done && counting.sent_again == 0);
        limited += sent.limited;
    }
    CHECK(limited > 0);
    bounds = (struct tn_share_bounds){0};
    tn_rc rc = hand_in();
    CHECK_OK(rc, w.err);
    CHECK(sent.last_id == w.newest);
    gather_and_check();
    world_deinit(&w);
}

/* An answer that was lost: the entry is there, was gathered, and is put again. */
static void an_entry_that_was_taken_may_be_put_again(void)
{
    set_up(given_number("SEED", 1));
    some_commits(1);
    sim_disk_reboot(&w.source.disk, SIM_SEED_ALL);
    struct sim_disk before;
    sim_disk_clone(&before, &w.source.disk);
    tn_rc rc = hand_in();
    CHECK_OK(rc, w.err);
    gather_and_check();
    sim_disk_deinit(&w.source.disk); /* it knows nothing of it */
    sim_disk_clone(&w.source.disk, &before);
    sim_disk_deinit(&before);
    rc = hand_in();
    CHECK_OK(rc, w.err);
    CHECK(sent.entries == 1);
    gather_and_check();
    world_deinit(&w);
}

/* A table of many columns, whose gateway was away for long: its files together say more of
 * themselves than one entry takes, and no snapshot does. */
static void what_is_too_much_for_an_entry_takes_several(void)
{
    static unsigned char said[3000];
    set_up(given_number("SEED", 1));
    for (int i = 0; i < 60; i++) {
        struct tn_commit_spec spec = world_spec(&w);
        struct tn_entry wide = world_add(&w, 0, NULL)->entry;
        wide.file.value_stats.min = (struct tn_bytes){said, sizeof said};
        wide.file.value_stats.max = (struct tn_bytes){said, sizeof said};
        spec.last_seen = w.newest;
        spec.added = &wide;
        spec.added_count = 1;
        world_commit(&w, &spec);
    }
    tn_rc rc = hand_in();
    CHECK_OK(rc, w.err);
    CHECK(sent.entries >= 2 && sent.entries <= 4 && sent.files == 60 && sent.last_id == w.newest);
    gather_and_check();
    world_deinit(&w);
}

static const struct test tests[] = {
    TEST(a_commit_costs_three_requests_and_its_files),
    TEST(a_dry_run_writes_nothing),
    TEST(what_fails_is_handed_in_again),
    TEST(what_is_allowed_little_by_little_comes_there),
    TEST(an_entry_that_was_taken_may_be_put_again),
    TEST(what_is_too_much_for_an_entry_takes_several),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
