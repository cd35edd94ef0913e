/* An official writer beside gathers, outside of any pause: it looks whether a snapshot's name is
 * free, and some time later copies its own over whatever is there by then. What it copies over is
 * gathered again: each row of the gateways is in the table once, at the end, and the writer's stay.
 */
#include "upload/gather_world.h"

#ifdef TN_DEBUG
enum { HISTORIES = 3 };
#else
enum { HISTORIES = 16 };
#endif

enum {
    STEPS = 40,
    THEIRS = 200,         /* commits of the writer */
    COPY_MS_MAX = 9000,   /* between its look and its copy */
    PACKED_KEYS = 100000, /* keys of what was compacted: none overlap */
    PATH_SIZE = 160,
};

static struct world w;

/* ---- the official writer ---- */

static struct {
    const struct tn_io_vtable *disk; /* whose calls are its, but for two */
    bool waits;                      /* it has looked, and not copied yet */
    char draft[PATH_SIZE];
    char final[PATH_SIZE];
    int64_t looked_ms;
    int64_t id;
    int number;         /* of the commit that is under way, from 0 */
    bool stays[THEIRS]; /* it was the newest when it came, and nobody was under way */
    uint32_t live[THEIRS];
    uint32_t over; /* that came where another one was */
} theirs;
static uint32_t live[WORLD_GATEWAYS][WORLD_IDS * 4];
static uint32_t packed;
static uint32_t under_way; /* rounds */

static int64_t now_ms(void)
{
    struct tn_clock *clock = &w.bed.clock.clock;
    return clock->vtable->monotonic_ns(clock) / 1000000;
}

static tn_rc their_rename_new(struct tn_io *io, const char *path, const char *path_new,
                              struct tn_err *err)
{
    uint64_t size;
    if (theirs.disk->stat(io, path_new, &size, err) == TN_OK) {
        return tn_err_set(err, TN_EXISTS, 0, "%s is there", path_new);
    }
    (void)snprintf(theirs.draft, sizeof theirs.draft, "%s", path);
    (void)snprintf(theirs.final, sizeof theirs.final, "%s", path_new);
    theirs.id = strtol(strrchr(path_new, '-') + 1, NULL, 10);
    theirs.looked_ms = now_ms();
    theirs.waits = true;
    return TN_OK;
}

/* Its hint comes behind its copy, or never. */
static tn_rc their_replace(struct tn_io *io, const char *path, const char *path_new,
                           struct tn_err *err)
{
    (void)path_new;
    return theirs.disk->unlink(io, path, err);
}

static void commit_theirs(const struct tn_commit_spec *spec)
{
    struct tn_commit_result result;
    struct tn_io_vtable door = *w.bed.disk.io.vtable;
    theirs.disk = w.bed.disk.io.vtable;
    door.rename_new = their_rename_new;
    door.replace = their_replace;
    w.bed.disk.io.vtable = &door;
    tn_rc rc = tn_commit(spec, &w.bed.worker, &result, &w.err); /* or not */
    (void)rc;
    w.bed.disk.io.vtable = theirs.disk;
}

static void look(void)
{
    char name[32];
    struct tn_commit_spec spec = bed_spec(&w.bed, theirs.number + 1);
    size_t mark = tn_arena_mark(&w.bed.own);
    if (theirs.waits || theirs.number + 1 >= THEIRS) {
        return;
    }
    theirs.number++;
    (void)snprintf(name, sizeof name, "theirs.%d", theirs.number);
    struct tn_entry entry = bed_entry(
        &w.bed, name, (struct bed_file){.dt = "official", .first = 0, .last = 5, .rows = 3});
    spec.user = "official";
    spec.added = &entry;
    spec.added_count = 1;
    commit_theirs(&spec);
    tn_arena_reset(&w.bed.own, mark);
}

static void copy(void)
{
    struct tn_io *disk = &w.bed.disk.io;
    uint64_t size;
    uint64_t fail_call = w.bed.disk.fail_call;
    if (!theirs.waits) {
        return;
    }
    w.bed.disk.fail_call = 0;
    theirs.waits = false;
    theirs.over += disk->vtable->stat(disk, theirs.final, &size, &w.err) == TN_OK;
    tn_rc rc = disk->vtable->replace(disk, theirs.draft, theirs.final, &w.err);
    CHECK_OK(rc, w.err);
    theirs.stays[theirs.number] = under_way == 0 && world_newest(&w) == theirs.id;
    w.bed.disk.fail_call = fail_call;
}

static void copy_of(struct world *world)
{
    (void)world;
    copy();
}

/* Somebody's compaction, who asks for a free name: a file is written anew. */
static void pack(void)
{
    struct world_pick pick;
    size_t mark = tn_arena_mark(&w.bed.own);
    unsigned gateway;
    unsigned file;
    if (world_pick(&w, &pick) &&
        sscanf(pick.entry.file.file_name, "data-%u-%u-", &gateway, &file) == 2) {
        char name[64];
        struct tn_commit_result result;
        struct tn_commit_removal removal = bed_removal(&pick.entry);
        struct tn_commit_spec spec = bed_spec(&w.bed, ++packed);
        struct bed_file shape = {.dt = w.gateways[gateway].name,
                                 .bucket = pick.entry.bucket,
                                 .level = 1,
                                 .first = PACKED_KEYS + 2 * (int64_t)packed,
                                 .last = PACKED_KEYS + 2 * (int64_t)packed + 1,
                                 .rows = pick.entry.file.row_count};
        (void)snprintf(name, sizeof name, "packed-%u-%u-0.avro", gateway, file);
        struct tn_entry entry = bed_entry(&w.bed, name, shape);
        spec.removed = &removal;
        spec.removed_count = 1;
        spec.compacted = &entry;
        spec.compacted_count = 1;
        tn_rc rc = tn_commit(&spec, &w.bed.worker, &result, &w.err); /* or not */
        (void)rc;
    }
    tn_arena_reset(&w.bed.own, mark);
}

static void others(struct world *world)
{
    (void)world;
    switch (random_below(&w.random, 4)) {
    case 0:
        look();
        break;
    case 1:
        pack();
        break;
    default:
        copy();
        break;
    }
}

static void wait_ms(int64_t ms)
{
    if (theirs.waits && now_ms() + ms - theirs.looked_ms > COPY_MS_MAX) {
        copy();
    }
    sim_clock_advance_ms(&w.bed.clock, ms);
}

/* ---- what is there ---- */

static tn_rc note_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    unsigned gateway;
    unsigned file;
    int number;
    const char *name = entry->file.file_name;
    (void)user;
    (void)err;
    if (sscanf(name, "theirs.%d", &number) == 1) {
        theirs.live[number]++;
        return TN_OK;
    }
    CHECK(sscanf(strchr(name, '-'), "-%u-%u-", &gateway, &file) == 2);
    live[gateway][file]++;
    return TN_OK;
}

static void check_live(void)
{
    size_t mark = tn_arena_mark(&w.bed.own);
    struct tn_snapshot snapshot = bed_snapshot(&w.bed, world_newest(&w));
    memset(live, 0, sizeof live);
    memset(theirs.live, 0, sizeof theirs.live);
    tn_rc rc =
        tn_live_each(ROOT, &snapshot, &w.bed.schema, NULL, &w.bed.worker, note_live, NULL, &w.err);
    CHECK_OK(rc, w.err);
    tn_arena_reset(&w.bed.own, mark);
    for (int i = 0; i < WORLD_GATEWAYS; i++) {
        for (int64_t file = 0; file < w.gateways[i].files; file++) {
            if (live[i][file] != w.data[i][file]) {
                FAIL("gateway %d, file %d of %d: it is there %u times", i, (int)file,
                     (int)w.gateways[i].files, (unsigned)live[i][file]);
            }
        }
    }
    for (int i = 1; i <= theirs.number; i++) {
        CHECK(theirs.live[i] <= 1);
        CHECK(theirs.live[i] == 1 || !theirs.stays[i]);
    }
}

static tn_rc count_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    *(int *)user += !is_dir && name[0] != '.';
    return TN_OK;
}

static int waiting(void)
{
    int count = 0;
    struct tn_io *io = &w.bed.disk.io;
    for (int i = 0; i < WORLD_GATEWAYS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, ".tarn/db.t/inbox/%s/", w.gateways[i].name);
        tn_rc rc = io->vtable->list(io, path, count_name, &count, &w.err);
        CHECK(rc == TN_OK || rc == TN_ABSENT);
    }
    return count;
}

/* ---- worlds ---- */

static void begin(uint64_t seed)
{
    world_init(&w, seed);
    memset(&theirs, 0, sizeof theirs);
    packed = 0;
    under_way = 0;
}

static tn_rc round_of(uint32_t who, uint32_t *heals)
{
    under_way++;
    tn_rc rc = world_round(&w, who);
    under_way--;
    *heals += w.gathers[who].result.heals;
    return rc;
}

/* Until all is in, and gone from the inbox, with nobody in between. */
static void drain(uint32_t *heals)
{
    w.chance = 0;
    w.bed.disk.fail_call = 0;
    copy();
    for (uint32_t i = 0; i < WORLD_GATEWAYS; i++) {
        if (w.gateways[i].waits) {
            world_put(&w, i);
        }
    }
    for (int i = 0; waiting() > 0 || i < 2; i++) {
        tn_rc rc = round_of(0, heals);
        CHECK(rc == TN_OK || rc == TN_CONFLICT);
        wait_ms(TN_GATHER_SURE_MS / 3);
        if (i > 200) {
            FAIL("%d entries wait: %s", waiting(), w.err.text);
        }
    }
}

static void end(uint32_t *heals)
{
    drain(heals);
    if (w.refused > 0) {
        FAIL("refused: %s", w.reason);
    }
    check_live();
    world_deinit(&w);
}

/* As a gather's upkeep: what its settling rests on stays. */
static void expire(uint32_t who)
{
    bool settled;
    struct tn_expire_spec spec = {.root = ROOT, .schema = &w.bed.schema, .options = &w.bed.options};
    struct tn_expire_result expired;
    w.bed.options.snapshot_retained_min = 1;
    w.bed.options.snapshot_retained_max = 1;
    tn_rc rc = tn_gather_look_again(&w.gathers[who].gather, &settled, &w.err);
    if (rc == TN_OK && settled) {
        rc = tn_expire(&spec, &w.bed.worker, &expired, &w.err); /* or not */
    }
}

/* Two gathers in turn, as a lease has them, or one that expires, too; they end anywhere, and calls
 * fail. */
static void what_is_written_over_is_gathered_again(void)
{
    double until = given_until(6, 4);
    uint64_t seed = given_number("SEED", 1);
    uint32_t heals = 0;
    uint32_t over = 0;
    for (int history = 0; history < HISTORIES || seconds_now() < until; history++, seed++) {
        check_seed = seed;
        begin(seed);
        w.others = others;
        uint32_t gathers = seed % 3 == 0 ? 1 : WORLD_GATHERS;
        for (int step = 0; step < STEPS; step++) {
            uint32_t who = random_below(&w.random, gathers);
            w.chance = gathers > 1 ? 5 + random_below(&w.random, 200) : 0;
            world_put(&w, random_below(&w.random, WORLD_GATEWAYS));
            if (random_below(&w.random, 4) == 0) {
                uint64_t call = w.bed.disk.calls + 1 + random_below(&w.random, 150);
                sim_disk_fail_call(&w.bed.disk, call, TN_IO);
            }
            tn_rc rc = round_of(who, &heals);
            (void)rc;
            w.bed.disk.fail_call = 0;
            if (random_below(&w.random, 5) == 0) {
                world_start(&w, who);
            }
            others(&w);
            wait_ms(random_below(&w.random, 4) == 0 ? TN_GATHER_SURE_MS
                                                    : random_below(&w.random, 2000));
            if (gathers == 1 && random_below(&w.random, 3) == 0) {
                expire(who);
            }
        }
        over += theirs.over;
        end(&heals);
    }
    CHECK(over > HISTORIES && heals > 0);
}

/* Below the snapshot of the next round, at any call of that round: what was held isn't in it. */
static void copies_below_the_next_snapshot_are_seen(void)
{
    uint32_t heals = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) { /* near and far */
        bool copied = true;
        for (uint32_t call = 1; copied; call++) {
            check_seed = call;
            begin(seed);
            world_put(&w, 0);
            look();
            CHECK_OK(round_of(0, &heals), w.err);
            CHECK(theirs.id == 1 && w.gathers[0].result.snapshot_id == 1);
            world_put(&w, 1);
            w.others = copy_of;
            w.others_at = call;
            tn_rc rc = round_of(0, &heals);
            CHECK(rc == TN_OK || rc == TN_CONFLICT);
            copied = !theirs.waits;
            w.others_at = 0;
            theirs.waits = false; /* or it never came */
            end(&heals);
        }
    }
    CHECK(heals > 20);
}

/* Its entries had left the inbox: that they are gathered again is not said. */
static void what_is_lost_for_good_is_said_to_be(void)
{
    uint32_t heals = 0;
    uint32_t said = 0;
    bool copied = true;
    for (uint32_t call = 1; copied; call++) {
        check_seed = call;
        begin(1);
        world_put(&w, 0);
        look();
        CHECK_OK(round_of(0, &heals), w.err);
        sim_clock_advance_ms(&w.bed.clock, TN_GATHER_SURE_MS); /* its writer stands still */
        CHECK_OK(round_of(0, &heals), w.err);
        CHECK(waiting() == 0);
        world_put(&w, 1);
        w.others = copy_of;
        w.others_at = call;
        for (int i = 0; i < 2; i++) {
            tn_rc rc = round_of(0, &heals);
            CHECK(rc == TN_OK || rc == TN_CONFLICT);
            said += w.gathers[0].result.written_over == 1;
        }
        copied = !theirs.waits;
        world_deinit(&w);
    }
    CHECK(heals == 0 && said > 10);
}

/* Another writer, who gives a name once, and has looked at what the first one copies over. */
static char late_draft[PATH_SIZE];
static char late_final[PATH_SIZE];

static void look_late(void)
{
    char draft[PATH_SIZE];
    char final[PATH_SIZE];
    memcpy(draft, theirs.draft, sizeof draft);
    memcpy(final, theirs.final, sizeof final);
    theirs.waits = false;
    look();
    memcpy(late_draft, theirs.draft, sizeof late_draft);
    memcpy(late_final, theirs.final, sizeof late_final);
    memcpy(theirs.draft, draft, sizeof draft);
    memcpy(theirs.final, final, sizeof final);
    theirs.waits = true;
}

static void publish_late(struct world *world)
{
    struct tn_io *disk = &world->bed.disk.io;
    tn_rc rc = disk->vtable->rename_new(disk, late_draft, late_final, &w.err);
    CHECK(rc == TN_OK || rc == TN_EXISTS);
    late_draft[0] = '\0';
}

/* At any call of the round that looks for what was copied over. */
static void what_stands_on_what_was_written_over_is_looked_at(void)
{
    uint32_t heals = 0;
    bool published = true;
    for (uint32_t call = 1; published; call++) {
        check_seed = call;
        begin(1);
        world_put(&w, 0);
        look();
        CHECK_OK(round_of(0, &heals), w.err);
        CHECK(theirs.id == 1 && w.gathers[0].result.snapshot_id == 1);
        look_late();
        copy();
        w.others = publish_late;
        w.others_at = call;
        tn_rc rc = round_of(0, &heals);
        CHECK(rc == TN_OK || rc == TN_CONFLICT);
        published = late_draft[0] == '\0';
        w.others_at = 0;
        end(&heals);
    }
    CHECK(heals > 10);
}

/* What only a file's end tells: the manifests were merged, and what brought it was written over. */
static void what_was_taken_out_again_was_in(void)
{
    uint32_t heals = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        check_seed = seed;
        begin(seed);
        world_put(&w, 0);
        look();
        CHECK_OK(round_of(0, &heals), w.err);
        CHECK(theirs.id == 1 && w.gathers[0].result.snapshot_id == 1);
        int64_t newest = 1;
        for (pack(); world_newest(&w) > newest; pack()) {
            newest = world_newest(&w);
        }
        copy();
        CHECK(newest > 1 && theirs.over == 1);
        w.bed.options.manifest_full_threshold = 1;
        look();
        copy();
        CHECK(world_newest(&w) == newest + 1 && theirs.over == 1);
        world_start(&w, 0);
        CHECK_OK(round_of(0, &heals), w.err);
        CHECK(w.gathers[0].result.known == 1 && w.gathers[0].result.entries == 0);
        end(&heals);
    }
    CHECK(heals == 0);
}

/* ---- requests ---- */

struct asked {
    uint64_t of[TN_TARGET_VERBS];
    uint32_t files;
};

/* Hands in, and gathers until the entries are gone. */
static uint32_t gather_all(int entries)
{
    const struct tn_gather_result *r = &w.gathers[0].result;
    uint32_t heals = 0;
    for (int i = 0; i < entries; i++) {
        world_put(&w, (uint32_t)i % WORLD_GATEWAYS);
    }
    CHECK_OK(round_of(0, &heals), w.err);
    CHECK(r->snapshot_id > 0 && r->entries == (uint32_t)entries);
    uint32_t files = r->files;
    sim_clock_advance_ms(&w.bed.clock, TN_GATHER_SURE_MS);
    CHECK_OK(round_of(0, &heals), w.err);
    CHECK(r->gone == (uint32_t)entries && heals == 0);
    return files;
}

/* Of a commit above another one. */
static struct asked cost_of(int entries)
{
    const struct tn_target_counts *counts = &w.gathers[0].counting.target.counts;
    struct asked asked;
    begin(2); /* a far one */
    (void)gather_all(WORLD_GATEWAYS);
    struct tn_target_counts before = *counts;
    asked.files = gather_all(entries);
    for (int verb = 0; verb < TN_TARGET_VERBS; verb++) {
        asked.of[verb] = counts->requests[verb] - before.requests[verb];
    }
    world_check(&w);
    world_deinit(&w);
    return asked;
}

/* That entries are held, and snapshots are looked at again, costs by the commit, not by the entry.
 */
static void an_entry_costs_a_read_a_removal_and_a_look_a_file(void)
{
    enum { FEW = WORLD_GATEWAYS, MANY = 10 * FEW };
    struct asked few = cost_of(FEW);
    struct asked many = cost_of(MANY);
    uint64_t more[TN_TARGET_VERBS] = {[TN_TARGET_GET] = MANY - FEW,
                                      [TN_TARGET_DELETE] = MANY - FEW,
                                      [TN_TARGET_HEAD] = many.files - few.files};
    for (int verb = 0; verb < TN_TARGET_VERBS; verb++) {
        if (many.of[verb] != few.of[verb] + more[verb]) {
            FAIL("verb %d: %u times for %d entries, %u for %d with %u files more", verb,
                 (unsigned)few.of[verb], FEW, (unsigned)many.of[verb], MANY,
                 (unsigned)more[TN_TARGET_HEAD]);
        }
    }
    CHECK(few.of[TN_TARGET_DELETE] <= FEW + 1); /* and marks */
}

static const struct test tests[] = {
    TEST(copies_below_the_next_snapshot_are_seen),
    TEST(what_is_lost_for_good_is_said_to_be),
    TEST(what_stands_on_what_was_written_over_is_looked_at),
    TEST(what_was_taken_out_again_was_in),
    TEST(an_entry_costs_a_read_a_removal_and_a_look_a_file),
    TEST(what_is_written_over_is_gathered_again),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
