/* A mirror keeps what its table's options say, and no more: over random histories with tags,
 * consumers, gaps and rollbacks, with cuts and failures at any call, and with others who take it
 * over or commit there. */
#include "commit/consumer.h"
#include "commit/orphan.h"
#include "commit/revert.h"
#include "commit/tag.h"
#include "given.h"
#include "upload/ledger.h"
#include "upload/owner.h"
#include "upload/world.h"

#ifdef TN_DEBUG
enum { STRIDE = 29, HISTORIES = 6 };
#else
enum { STRIDE = 9, HISTORIES = 40 };
#endif

#define MINUTE_MS INT64_C(60000)

struct kept {
    struct world w;
    int64_t min;
    int64_t max; /* 0: any number */
    int64_t minutes;
    int64_t time_ms[WORLD_IDS];
    uint64_t live[WORLD_IDS]; /* the sum of each one's live files, by what is here */
    int64_t noted;
    int64_t base;     /* where the mirror began */
    int64_t consumer; /* at the mirror; 0: none */
    bool gaps;        /* no consumer at the source */
    bool leaks;       /* files may be left: names come back when the power goes */
    bool tags_stay;   /* of the source: a cut in a removal leaves files for cleaning */
};

/* A newer schema, with what mirrors keep; a run takes `limit` snapshots, NULL: as many as ever. */
static void set_rules_of(struct kept *k, int64_t id, const char *limit)
{
    static char texts[3][32];
    static struct tn_option options[6] = {{"bucket", "2"}, {"file.format", "avro"}};
    struct tn_schema schema = k->w.source.schema;
    static unsigned char text[4096];
    struct tn_buf buf;
    char path[64];
    uint32_t count = 2;
    (void)snprintf(texts[0], sizeof texts[0], "%d", (int)k->min);
    (void)snprintf(texts[1], sizeof texts[1], "%d", (int)k->max);
    (void)snprintf(texts[2], sizeof texts[2], "%d min", (int)k->minutes);
    options[count++] = (struct tn_option){"lake.snapshot.num-retained.min", texts[0]};
    options[count++] = (struct tn_option){"lake.snapshot.time-retained", texts[2]};
    if (k->max > 0) {
        options[count++] = (struct tn_option){"lake.snapshot.num-retained.max", texts[1]};
    }
    if (limit) {
        options[count++] = (struct tn_option){"snapshot.expire.limit", limit};
    }
    schema.id = id;
    schema.options = options;
    schema.option_count = count;
    tn_buf_init(&buf, text, sizeof text);
    tn_schema_encode(&schema, &buf);
    CHECK(!buf.overflow);
    (void)snprintf(path, sizeof path, ROOT "/schema/schema-%d", (int)id);
    world_write(&k->w.source.disk.io, path, tn_buf_bytes(&buf));
}

static void set_rules(struct kept *k, int64_t id)
{
    set_rules_of(k, id, NULL);
}

static void begin(struct kept *k, uint64_t seed)
{
    memset(k, 0, sizeof *k);
    world_init(&k->w, seed);
    k->min = 1 + (int64_t)random_below(&k->w.random, 3);
    k->max =
        random_below(&k->w.random, 3) == 0 ? 0 : k->min + (int64_t)random_below(&k->w.random, 5);
    k->minutes = 1 + (int64_t)random_below(&k->w.random, 60);
    k->gaps = random_below(&k->w.random, 4) == 0;
    set_rules(k, 1);
}

static struct tn_worker there(struct world *w)
{
    struct tn_worker worker = w->source.worker;
    worker.io = &w->target.io;
    return worker;
}

struct sum {
    struct world *w;
    struct tn_worker *worker;
    uint64_t sum;
};

/* A copy has another name than its bytes say, so sizes must do. */
static tn_rc add_up(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct sum *sum = user;
    struct tn_io *io = sum->worker->io;
    uint64_t size = 0;
    const char *path = world_path(sum->w, entry, &sum->worker->arena);
    tn_rc rc = io->vtable->stat(io, path, &size, err);
    if (rc == TN_OK && size != (uint64_t)entry->file.file_size) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s is not whole", path);
    }
    sum->sum += world_hash(entry);
    return rc;
}

/* OK: the lists of a snapshot are there, and all files. */
static tn_rc sum_of(struct world *w, struct tn_worker *worker, const struct tn_snapshot *snapshot,
                    uint64_t *sum)
{
    struct sum look = {w, worker, 0};
    tn_rc rc =
        tn_live_each(ROOT, snapshot, &w->source.schema, NULL, worker, add_up, &look, &w->err);
    *sum = look.sum;
    return rc;
}

static void note_new(struct kept *k)
{
    struct world *w = &k->w;
    for (; k->noted < w->newest; k->noted++) {
        struct tn_worker worker = w->source.worker;
        struct tn_snapshot snapshot;
        int64_t id = k->noted + 1;
        tn_rc rc = tn_snapshot_read(worker.io, ROOT, id, &worker.arena, &snapshot, &w->err);
        if (rc == TN_ABSENT) { /* it has expired */
            continue;
        }
        CHECK_OK(rc, w->err);
        k->time_ms[id] = snapshot.time_ms.value;
        rc = sum_of(w, &worker, &snapshot, &k->live[id]);
        CHECK_OK(rc, w->err);
    }
}

/* ---- what must hold ---- */

static int64_t first_of(struct kept *k)
{
    return world_hint(&k->w, "EARLIEST");
}

static tn_rc check_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct kept *k = user;
    struct tn_worker worker = there(&k->w);
    struct tn_snapshot tagged;
    uint64_t sum = 0;
    if (is_dir || strncmp(name, "tag-", 4) != 0) {
        return TN_OK;
    }
    const char *path = tn_arena_format(&worker.arena, ROOT "/tag/%s", name);
    tn_rc rc = tn_snapshot_read_path(worker.io, path, &worker.arena, &tagged, err);
    CHECK_OK(rc, *err);
    rc = sum_of(&k->w, &worker, &tagged, &sum);
    CHECK_OK(rc, k->w.err);
    CHECK(sum == k->live[tagged.id]);
    return TN_OK;
}

static void check_snapshot(struct kept *k, int64_t id)
{
    struct world *w = &k->w;
    struct tn_worker worker = there(w);
    struct tn_snapshot snapshot;
    uint64_t sum = 0;
    tn_rc rc = tn_snapshot_read(worker.io, ROOT, id, &worker.arena, &snapshot, &w->err);
    rc = rc == TN_OK ? sum_of(w, &worker, &snapshot, &sum) : rc;
    if (rc != TN_OK || sum != k->live[id]) {
        FAIL("snapshot %d, first is %d: %s", (int)id, (int)world_hint(w, "EARLIEST"),
             rc == TN_OK ? "other files" : w->err.text);
    }
}

/* Whatever happened: what is from EARLIEST on is whole, and what a tag holds. */
static void check_whole(struct kept *k)
{
    struct world *w = &k->w;
    int64_t first = first_of(k);
    for (int64_t id = first; id > 0 && id <= w->newest; id++) {
        if (world_has(w, id)) {
            check_snapshot(k, id);
        }
    }
    CHECK(first <= 0 || world_has(w, first));
    tn_rc rc = w->target.io.vtable->list(&w->target.io, ROOT "/tag/", check_tag, k, &w->err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

/* Nothing that should be kept went. */
static void check_rules(struct kept *k)
{
    struct world *w = &k->w;
    int64_t first = first_of(k);
    int64_t now = w->source.clock.clock.vtable->now_ms(&w->source.clock.clock);
    int64_t gone = first - 1;
    if (k->base == 0 || k->gaps) {
        k->base = first;
    }
    if (gone < k->base) {
        return;
    }
    CHECK(gone <= w->newest - k->min);
    CHECK(k->consumer == 0 || gone < k->consumer);
    bool many = k->max > 0 && gone < w->newest - k->max + 1;
    if (!many && now - k->time_ms[gone] <= k->minutes * MINUTE_MS) {
        FAIL("snapshot %d of %d went after %d ms", (int)gone, (int)w->newest,
             (int)(now - k->time_ms[gone]));
    }
}

static void name_it(void *user, const char *path, uint64_t size)
{
    (void)user;
    (void)size;
    (void)fprintf(stderr, "left: %s\n", path);
}

/* Nothing is there that nothing reaches. */
static void check_clean(struct kept *k)
{
    struct world *w = &k->w;
    struct tn_worker worker = there(w);
    struct tn_orphan_spec spec = {.root = ROOT,
                                  .schema = &w->source.schema,
                                  .options = &w->source.options,
                                  .older_than_ms = INT64_MAX,
                                  .dry_run = true,
                                  .each = k->leaks ? NULL : name_it};
    struct tn_orphan_result result;
    tn_rc rc = tn_orphan_clean(&spec, &worker, &result, &w->err);
    CHECK_OK(rc, w->err);
    if (result.files > 0 && !k->leaks) {
        FAIL("%d files are left, first is %d", (int)result.files, (int)first_of(k));
    }
    for (int64_t id = 1; id < first_of(k); id++) {
        CHECK(!world_has(w, id));
    }
}

/* A sync is through: no more is kept than a tenth over what shall be. */
static void check_done(struct kept *k)
{
    struct world *w = &k->w;
    int64_t first = first_of(k);
    check_whole(k);
    check_rules(k);
    check_clean(k);
    CHECK(!w->result.keep_denied);
    if (world_hint(w, "LATEST") != w->newest) {
        FAIL("LATEST is %d of %d", (int)world_hint(w, "LATEST"), (int)w->newest);
    }
    for (int64_t id = first; id <= w->newest; id++) {
        CHECK(world_has(w, id));
    }
    if (k->max > 0 && k->consumer == 0 && w->newest - first + 1 > k->max + k->max / 10) {
        FAIL("%d snapshots are there, of %d at the most", (int)(w->newest - first + 1),
             (int)k->max);
    }
}

static tn_rc sync_it(struct kept *k)
{
    return world_sync_with(&k->w,
                           (struct tn_delta_spec){.consumer = k->gaps ? NULL : "tarn-lake-test",
                                                  .lake = "tarn-lake-test"});
}

static void must_sync(struct kept *k)
{
    note_new(k);
    tn_rc rc = sync_it(k);
    CHECK_OK(rc, k->w.err);
}

/* ---- what happens ---- */

static void make_tag(struct kept *k, bool far)
{
    struct world *w = &k->w;
    struct tn_worker worker = far ? there(w) : w->source.worker;
    static uint32_t number;
    char name[32];
    int64_t first;
    int64_t last;
    int64_t made;
    tn_rc rc = tn_snapshot_earliest(worker.io, ROOT, &worker.arena, &first, &w->err);
    if (rc == TN_ABSENT) {
        return;
    }
    CHECK_OK(rc, w->err);
    rc = tn_snapshot_latest(worker.io, ROOT, &worker.arena, &last, &w->err);
    CHECK_OK(rc, w->err);
    (void)snprintf(name, sizeof name, "%s%" PRIu32, far ? "far" : "near", number++);
    struct tn_tag_spec spec = {.root = ROOT, .name = name};
    spec.snapshot_id = first + (int64_t)random_below(&w->random, (uint32_t)(last - first + 1));
    rc = tn_tag_make(&spec, &worker, &made, &w->err);
    CHECK_OK(rc, w->err);
}

static tn_rc note_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    char *found = user;
    (void)err;
    if (!is_dir && strncmp(name, "tag-", 4) == 0) {
        (void)snprintf(found, 64, "%s", name + 4);
    }
    return TN_OK;
}

static void remove_tag(struct kept *k, bool far)
{
    struct world *w = &k->w;
    struct tn_worker worker = far ? there(w) : w->source.worker;
    struct tn_expire_spec spec = {
        .root = ROOT, .schema = &w->source.schema, .options = &w->source.options};
    struct tn_expire_result result = {0};
    char name[64] = "";
    tn_rc rc = worker.io->vtable->list(worker.io, ROOT "/tag/", note_name, name, &w->err);
    if (rc == TN_OK && name[0] && (!far || strncmp(name, "far", 3) == 0)) {
        rc = tn_tag_remove(&spec, name, &worker, &result, &w->err);
        CHECK_OK(rc, w->err);
    }
}

/* A reader of the mirror comes, goes on, or ends. */
static void consume(struct kept *k)
{
    struct world *w = &k->w;
    struct tn_worker worker = there(w);
    int64_t first = first_of(k);
    if (k->consumer > 0 && random_below(&w->random, 2) == 0) {
        tn_rc rc = worker.io->vtable->unlink(worker.io, ROOT "/consumer/consumer-c", &w->err);
        CHECK_OK(rc, w->err);
        k->consumer = 0;
        sim_clock_advance_ms(&w->source.clock, 61 * MINUTE_MS); /* it may have been in the way */
        return;
    }
    first = k->consumer > 0 ? k->consumer : first;
    if (first > 0) {
        k->consumer = first + (int64_t)random_below(&w->random, 3);
        tn_rc rc = tn_consumer_write(worker.io, ROOT, "c", k->consumer, &worker.arena, &w->err);
        CHECK_OK(rc, w->err);
    }
}

static tn_rc is_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct world *w = user;
    (void)err;
    for (uint32_t i = 0; i < w->file_count; i++) {
        struct world_file *file = &w->files[i];
        file->live =
            file->live || (strcmp(file->entry.file.file_name, entry->file.file_name) == 0 &&
                           file->entry.file.level == entry->file.level);
    }
    return TN_OK;
}

/* An OVERWRITE, with copies of what the old state had. */
static void revert(struct kept *k)
{
    struct world *w = &k->w;
    struct tn_worker *worker = &w->source.worker;
    struct tn_revert_result result;
    struct tn_snapshot snapshot;
    int64_t first;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_snapshot_earliest(worker->io, ROOT, &worker->arena, &first, &w->err);
    CHECK_OK(rc, w->err);
    struct tn_revert_spec spec = {
        .target.root = ROOT, .schema = &w->source.schema, .options = &w->source.options};
    spec.target.snapshot_id =
        first + (int64_t)random_below(&w->random, (uint32_t)(w->newest - first + 1));
    rc = tn_revert(&spec, worker, &result, &w->err);
    CHECK_OK(rc, w->err);
    w->newest = result.snapshot_id;
    for (uint32_t i = 0; i < w->file_count; i++) {
        w->files[i].live = false;
    }
    rc = tn_snapshot_read(worker->io, ROOT, w->newest, &worker->arena, &snapshot, &w->err);
    CHECK_OK(rc, w->err);
    rc = tn_live_each(ROOT, &snapshot, &w->source.schema, NULL, worker, is_live, w, &w->err);
    CHECK_OK(rc, w->err);
    tn_arena_reset(&worker->arena, mark);
}

static void step(struct kept *k)
{
    struct world *w = &k->w;
    sim_clock_advance_ms(&w->source.clock, (int64_t)random_below(&w->random, 20) * MINUTE_MS);
    switch (random_below(&w->random, 10)) {
    case 0:
    case 1:
        world_compact(w);
        break;
    case 2:
        world_lift(w);
        break;
    case 3:
        revert(k);
        break;
    case 4:
        make_tag(k, random_below(&w->random, 2) == 0);
        break;
    case 5:
        remove_tag(k, k->tags_stay || random_below(&w->random, 2) == 0);
        break;
    case 6:
        consume(k);
        break;
    default:
        world_append(w);
        break;
    }
    note_new(k);
}

static void some_steps(struct kept *k)
{
    struct world *w = &k->w;
    for (uint64_t left = random_below(&w->random, 6); left > 0; left--) {
        step(k);
    }
    if (random_below(&w->random, 3) == 0) {
        world_expire(w, 1 + (int32_t)random_below(&w->random, 3), &w->source.worker);
    }
    if (random_below(&w->random, 6) == 0) {
        world_lose_ledger(w);
    }
}

static void mirror_keeps_what_it_is_told(void)
{
    double until = given_until(6, 2);
    uint64_t first = given_number("SEED", 1);
    uint32_t expired = 0;
    uint32_t histories = 0;
    for (uint64_t seed = first; histories < HISTORIES && (seed == first || seconds_now() < until);
         seed++) {
        static struct kept k;
        begin(&k, seed);
        world_append(&k.w);
        for (int i = 0; i < 40; i++) {
            some_steps(&k);
            must_sync(&k);
            expired += k.w.result.expired;
            check_done(&k);
        }
        world_deinit(&k.w);
        histories++;
    }
    CHECK(expired > histories * 3);
}

/* ---- cuts and failures ---- */

/* A mirror from which something is to go: by number, by age, or in front of a gap. */
static void prepare(struct kept *k, uint64_t seed)
{
    begin(k, seed);
    k->tags_stay = true;
    world_append(&k->w);
    must_sync(k);
    do {
        some_steps(k);
    } while (k->w.newest < 12);
    sim_clock_advance_ms(&k->w.source.clock, 90 * MINUTE_MS);
    world_append(&k->w);
    note_new(k);
    k->w.source.options.snapshot_expire_limit = 0; /* compaction expires nothing */
}

enum harm { CUT_THERE, CUT_HERE, FAIL_THERE, FAIL_LATE_THERE, FAIL_HERE, HARMS };

static bool harm_and_resume(struct kept *k, enum harm harm, uint64_t call, uint64_t seed)
{
    struct world *w = &k->w;
    bool here = harm == CUT_HERE || harm == FAIL_HERE;
    struct sim_disk *disk = here ? &w->source.disk : &w->target;
    uint64_t before = disk->calls;
    bool cut = harm == CUT_THERE || harm == CUT_HERE;
    if (cut) {
        sim_disk_cut_at(disk, before + call);
    } else if (harm == FAIL_LATE_THERE) {
        sim_disk_fail_call_late(disk, before + call, TN_IO);
    } else {
        sim_disk_fail_call(disk, before + call, TN_IO);
    }
    tn_rc rc = sync_it(k);
    bool done = disk->calls - before < call;
    CHECK(rc == TN_OK || !done);
    disk->fail_call = 0;
    if (cut) {
        sim_disk_reboot(disk, seed);
    }
    check_whole(k);
    check_rules(k);
    must_sync(k);
    check_done(k);
    sim_disk_reboot(&w->target, SIM_SEED_NOTHING); /* what was removed may come back */
    check_whole(k);
    check_rules(k);
    return done;
}

/* Before every call of a sync that removes something, at either side: what is kept is whole then,
 * and the next sync has nothing left over. */
static void nothing_is_lost_or_left_whatever_fails(void)
{
    double until = given_until(6, 2);
    uint64_t first = given_number("SEED", 1);
    uint32_t calls = 0;
    for (uint64_t seed = first; seed == first || seconds_now() < until; seed++) {
        static struct kept k;
        static struct kept fresh;
        static struct world_pair pair;
        prepare(&k, seed);
        world_save(&k.w, &pair);
        fresh = k;
        for (int harm = 0; harm < HARMS; harm++) {
            bool done = false;
            for (uint64_t call = 1 + random_below(&k.w.random, STRIDE); !done; call += STRIDE) {
                int64_t consumer = fresh.consumer;
                world_go_back(&k.w, &pair);
                k.w.result = fresh.w.result;
                k.consumer = consumer;
                k.base = fresh.base;
                k.leaks = harm == CUT_THERE;
                done = harm_and_resume(&k, (enum harm)harm, call, call % 3);
                calls++;
            }
        }
        world_forget(&pair);
        world_deinit(&k.w);
    }
    CHECK(calls > 50);
}

/* ---- who may remove ---- */

/* A mirror of `count` snapshots that keeps two. */
static void make_full(struct kept *k, int64_t count)
{
    memset(k, 0, sizeof *k);
    world_init(&k->w, 7);
    k->min = 2;
    k->max = 2;
    k->minutes = 1;
    while (k->w.newest < count) {
        world_append(&k->w);
        world_compact(&k->w);
    }
    must_sync(k);
    CHECK(first_of(k) == 1);
    set_rules(k, 1);
    world_append(&k->w);
    note_new(k);
}

/* Of every verb that it takes: all but that goes on, and it is said; nothing is half gone. */
static void without_the_right_all_stays(void)
{
    static struct kept k;
    make_full(&k, 6);
    k.w.counting.keeps = true;
    must_sync(&k);
    CHECK(k.w.result.keep_denied && k.w.result.expired == 0);
    CHECK(first_of(&k) == 1 && world_hint(&k.w, "LATEST") == k.w.newest);
    for (int64_t id = 1; id <= k.w.newest; id++) {
        CHECK(world_has(&k.w, id));
    }
    world_append(&k.w);
    must_sync(&k); /* not asked again at once */
    CHECK(!k.w.result.keep_denied && world_asked(&k.w, TN_TARGET_LIST) == 0);
    sim_clock_advance_ms(&k.w.source.clock, 61 * MINUTE_MS);
    k.w.counting.keeps = false;
    k.w.counting.hides = true; /* nobody may list */
    world_append(&k.w);
    must_sync(&k);
    CHECK(k.w.result.keep_denied && first_of(&k) == 1);
    k.w.counting.hides = false;
    sim_clock_advance_ms(&k.w.source.clock, 61 * MINUTE_MS);
    world_append(&k.w);
    must_sync(&k);
    CHECK(!k.w.result.keep_denied && k.w.result.expired > 0);
    check_done(&k);
    world_deinit(&k.w);
}

/* A reader's file that says nothing: what it holds can't be known, so nothing goes; rows do. */
static void what_can_not_be_read_there_ends_no_sync(void)
{
    static struct kept k;
    make_full(&k, 6);
    world_write(&k.w.target.io, ROOT "/consumer/consumer-c", tn_bytes_of("{"));
    must_sync(&k);
    CHECK(k.w.result.keep_err.code != TN_OK && strstr(k.w.result.keep_err.text, "consumer-c"));
    CHECK(!k.w.result.keep_denied && k.w.result.expired == 0);
    CHECK(first_of(&k) == 1 && world_hint(&k.w, "LATEST") == k.w.newest);
    CHECK(world_has(&k.w, 1));
    world_append(&k.w);
    must_sync(&k); /* not asked again at once */
    CHECK(k.w.result.keep_err.code == TN_OK && world_asked(&k.w, TN_TARGET_LIST) == 0);
    CHECK(world_hint(&k.w, "LATEST") == k.w.newest);
    sim_clock_advance_ms(&k.w.source.clock, 61 * MINUTE_MS);
    must_sync(&k);
    CHECK(k.w.result.keep_err.code != TN_OK && first_of(&k) == 1);
    tn_rc rc = k.w.target.io.vtable->unlink(&k.w.target.io, ROOT "/consumer/consumer-c", &k.w.err);
    CHECK_OK(rc, k.w.err);
    sim_clock_advance_ms(&k.w.source.clock, 61 * MINUTE_MS);
    must_sync(&k);
    CHECK(k.w.result.keep_err.code == TN_OK && k.w.result.expired > 0);
    check_done(&k);
    world_deinit(&k.w);
}

/* A limit is next to nothing, so one that has sent removes nothing, and one that hasn't is a run of
 * it: two snapshots. */
static void limits_end_it_and_the_next_sync_goes_on(void)
{
    static const struct tn_delta_spec limits[] = {{.bytes_max = 1}, {.requests_max = 1}};
    for (size_t i = 0; i < COUNT(limits); i++) {
        static struct kept k;
        struct tn_delta_spec spec = limits[i];
        uint32_t syncs = 0;
        make_full(&k, 8);
        set_rules_of(&k, 2, "2");
        spec.consumer = spec.lake = "tarn-lake-test";
        do {
            int64_t first = first_of(&k);
            bool all = world_hint(&k.w, "LATEST") == k.w.newest;
            note_new(&k);
            tn_rc rc = world_sync_with(&k.w, spec);
            CHECK_OK(rc, k.w.err);
            CHECK(all ? !k.w.result.limited || first_of(&k) > first
                      : k.w.result.limited && k.w.result.expired == 0);
            CHECK(spec.requests_max == 0 || k.w.result.expired <= 2);
            check_whole(&k);
            check_rules(&k);
            CHECK(++syncs < 50);
        } while (k.w.result.limited);
        CHECK(syncs > 2);
        check_done(&k);
        world_deinit(&k.w);
    }
}

struct taker {
    struct kept *k;
    bool came;
};

/* Behind the snapshots, before anything is asked for them. */
static void expire_before(void *user, enum tn_target_verb verb, const char *path)
{
    struct taker *taker = user;
    struct world *w = &taker->k->w;
    if (verb == TN_TARGET_PUT && !taker->came && strcmp(path, ROOT "/snapshot/LATEST") == 0) {
        struct tn_worker here = w->source.worker;
        here.io = &w->source.disk.io;
        taker->came = true;
        world_expire(w, 1, &here);
    }
}

/* What is known here of the newest OVERWRITE there. */
static void check_overwrite(struct kept *k, int64_t id)
{
    struct world *w = &k->w;
    struct tn_ledger ledger;
    tn_rc rc = tn_ledger_read(&w->source.disk.io, "db.t", "tarn-lake-test", &w->source.own, &ledger,
                              &w->err);
    CHECK_OK(rc, w->err);
    CHECK(ledger.overwrite_known && ledger.overwrite == id);
}

/* Its id. */
static int64_t must_revert(struct kept *k)
{
    int64_t newest;
    do {
        world_append(&k->w);
        newest = k->w.newest;
        revert(k);
    } while (k->w.newest == newest);
    return k->w.newest;
}

/* All is at the mirror, that keeps four from now on; returns the newest OVERWRITE. */
static int64_t make_reverted(struct kept *k, uint64_t seed)
{
    int64_t overwrite = 0;
    memset(k, 0, sizeof *k);
    world_init(&k->w, seed);
    k->min = k->max = 4;
    k->minutes = 1;
    k->gaps = true;
    for (int i = 0; i < 4; i++) {
        overwrite = must_revert(k);
    }
    world_append(&k->w);
    must_sync(k);
    CHECK(first_of(k) == 1);
    set_rules(k, 1);
    world_append(&k->w);
    note_new(k);
    return overwrite;
}

/* What was found here at the start is gone when it is asked for, and with the ledger all that was
 * known of an OVERWRITE. */
static void overwrite_that_expires_here_is_seen_there(void)
{
    double until = given_until(1, 1);
    uint64_t seed_first = given_number("SEED", 1);
    for (uint64_t seed = seed_first; seed < seed_first + 3 || seconds_now() < until; seed++) {
        static struct kept k;
        int64_t overwrite = make_reverted(&k, seed);
        struct taker taker = {.k = &k};
        world_lose_ledger(&k.w);
        k.w.counting.before = expire_before;
        k.w.counting.user = &taker;
        must_sync(&k);
        CHECK(taker.came && k.w.result.expired > 0);
        check_done(&k);
        check_overwrite(&k, overwrite);
        world_deinit(&k.w);
    }
}

/* A history of which nothing is known here any more; returns its only OVERWRITE. */
static int64_t make_long(struct kept *k)
{
    memset(k, 0, sizeof *k);
    world_init(&k->w, 8);
    k->min = k->max = 2;
    k->minutes = 1;
    k->gaps = true;
    world_append(&k->w);
    int64_t overwrite = must_revert(k);
    while (k->w.newest < 230) {
        world_append(&k->w);
    }
    tn_rc rc = sync_it(k);
    CHECK_OK(rc, k->w.err);
    set_rules(k, 1);
    world_append(&k->w);
    k->noted = k->w.newest - 3;
    note_new(k);
    for (int i = 0; i < 6; i++) { /* each run takes some */
        world_expire(&k->w, 1, &k->w.source.worker);
    }
    world_lose_ledger(&k->w);
    return overwrite;
}

/* It is not read in one go; and what is sent meanwhile is newer than all that may be found. */
static void overwrite_is_looked_for_in_several_syncs(void)
{
    for (int meanwhile = 0; meanwhile < 2; meanwhile++) {
        static struct kept k;
        int64_t overwrite = make_long(&k);
        must_sync(&k);
        CHECK(k.w.result.expired == 0 && !k.w.result.limited && first_of(&k) == 1);
        uint64_t asked = world_asked(&k.w, TN_TARGET_GET);
        CHECK(asked > 150 && asked < 250);
        overwrite = meanwhile ? must_revert(&k) : overwrite;
        must_sync(&k);
        CHECK(k.w.result.expired > 200);
        check_done(&k);
        check_overwrite(&k, overwrite);
        world_deinit(&k.w);
    }
}

struct usurper {
    struct kept *k;
    int left; /* removals before it comes */
    bool commits;
    uint32_t removed; /* since */
    bool came;
};

static void usurp(struct usurper *u)
{
    struct world *w = &u->k->w;
    struct tn_err err;
    u->came = true;
    if (u->commits) {
        char path[64];
        (void)snprintf(path, sizeof path, ROOT "/snapshot/snapshot-%d", (int)w->newest + 1);
        world_write(&w->target.io, path, tn_bytes_of("{}"));
        return;
    }
    static struct tn_directory directory;
    static unsigned char memory[64 * 1024];
    struct tn_arena arena;
    struct tn_owner seen;
    struct tn_owner next = {.writer = "another"};
    tn_arena_init(&arena, memory, sizeof memory);
    tn_rc rc = tn_directory_init(&directory, &w->target.io, "lake", &arena, &err);
    CHECK_OK(rc, err);
    rc = tn_owner_read(&directory.target, "db.t", &arena, &seen, &err);
    CHECK_OK(rc, err);
    rc = tn_owner_raise(&directory.target, "db.t", &seen, &next, &arena, &err);
    CHECK_OK(rc, err);
}

static void usurp_before(void *user, enum tn_target_verb verb, const char *path)
{
    struct usurper *u = user;
    (void)path;
    u->removed += u->came && verb == TN_TARGET_DELETE;
    if (verb == TN_TARGET_LIST && !u->came) {
        usurp(u);
    }
}

/* A device that was restored from it, or somebody who commits there, comes when it is being looked
 * at: nothing goes. */
static void mirror_of_another_loses_nothing(void)
{
    for (int commits = 0; commits < 2; commits++) {
        static struct kept k;
        make_full(&k, 6);
        struct usurper usurper = {.k = &k, .commits = commits == 1};
        k.w.counting.before = usurp_before;
        k.w.counting.user = &usurper;
        tn_rc rc = sync_it(&k);
        CHECK(rc == TN_CONFLICT && usurper.came && usurper.removed == 0);
        CHECK(first_of(&k) == 1);
        for (int64_t id = 1; id <= 6; id++) {
            CHECK(world_has(&k.w, id));
        }
        world_deinit(&k.w);
    }
}

/* ---- what it costs ---- */

static void without_rules_nothing_goes_and_nothing_is_asked(void)
{
    static struct world w;
    world_init(&w, 9);
    for (int i = 0; i < 30; i++) {
        world_append(&w);
        world_compact(&w);
        sim_clock_advance_ms(&w.source.clock, 120 * MINUTE_MS);
        tn_rc rc = world_sync(&w);
        CHECK_OK(rc, w.err);
        CHECK(world_asked(&w, TN_TARGET_LIST) == 0 && world_asked(&w, TN_TARGET_DELETE) == 0);
    }
    CHECK(world_whole(&w, 1, w.newest));
    world_deinit(&w);
}

/* A reader that has stopped holds all: it is looked at once an hour. */
static void what_can_not_go_is_not_asked_for_at_each_sync(void)
{
    static struct kept k;
    make_full(&k, 6);
    struct tn_worker worker = there(&k.w);
    tn_rc rc = tn_consumer_write(worker.io, ROOT, "c", 1, &worker.arena, &k.w.err);
    CHECK_OK(rc, k.w.err);
    uint64_t looks = 0;
    for (int i = 0; i < 24; i++) {
        world_append(&k.w);
        must_sync(&k);
        looks += world_asked(&k.w, TN_TARGET_LIST) > 0;
        sim_clock_advance_ms(&k.w.source.clock, 5 * MINUTE_MS);
    }
    if (looks != 2) {
        FAIL("%d looks in two hours", (int)looks);
    }
    CHECK(first_of(&k) == 1);
    world_deinit(&k.w);
}

static const struct test tests[] = {
    TEST(mirror_keeps_what_it_is_told),
    TEST(nothing_is_lost_or_left_whatever_fails),
    TEST(without_the_right_all_stays),
    TEST(what_can_not_be_read_there_ends_no_sync),
    TEST(limits_end_it_and_the_next_sync_goes_on),
    TEST(overwrite_that_expires_here_is_seen_there),
    TEST(overwrite_is_looked_for_in_several_syncs),
    TEST(mirror_of_another_loses_nothing),
    TEST(without_rules_nothing_goes_and_nothing_is_asked),
    TEST(what_can_not_go_is_not_asked_for_at_each_sync),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
