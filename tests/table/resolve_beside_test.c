/* Another writer, or a compactor, is at a table whose rows are resolved before they are written
 * (resolve_world.h): between any two calls, and also without leaving a snapshot. What he changed
 * voids a round that was resolved beside it, and nothing else does.
 */
#include "commit/expire.h"
#include "resolve_world.h"

/* ---- somebody else is there ---- */

static const char writer_path[] = ".tarn/" BED_TABLE ".writer";

struct beside {
    struct sim_disk disk;
    struct writer writer;
    uint64_t random;
    uint32_t every;
    bool appends; /* else he compacts */
    bool here;
    char his[TN_UUID_SIZE]; /* his id, once he has one */
    uint32_t others;        /* of his rows, that are in */
    uint64_t visits;
    bool untold; /* nobody could tell what he did */
};

static void put_id(struct tn_io *io, const char *id)
{
    struct tn_err err;
    tn_rc rc = io->vtable->unlink(io, writer_path, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    if (id[0]) {
        rc = tn_io_write_new(io, writer_path, tn_bytes_of(id), &err);
        CHECK_OK(rc, err);
    }
}

static void get_id(struct tn_io *io, char id[TN_UUID_SIZE])
{
    struct tn_err err;
    struct tn_bytes text;
    tn_rc rc = tn_io_read_all(io, writer_path, 256, &engines[OTHER].own, &text, &err);
    id[0] = 0;
    if (rc == TN_OK) {
        CHECK(text.size == TN_UUID_SIZE - 1);
        memcpy(id, text.data, text.size);
        id[text.size] = 0;
    }
}

static void compact_as_other(struct beside *b)
{
    struct bed_writer w = {.engine = &engines[OTHER], .scenario = &world.base};
    tn_rc rc = bed_compact(&w, random_below(&b->random, 2) ? BED_COMPACTS_ALL : BED_COMPACTS);
    if (rc != TN_OK) {
        stop(&b->disk, w.err.text);
    }
}

static void append_as_other(struct beside *b)
{
    uint32_t count = 1 + random_below(&b->random, 3);
    struct writer w = {.engine = &engines[OTHER],
                       .letters = &sinks[OTHER],
                       .random = b->random,
                       .rows = world.others,
                       .row_count = b->others + count,
                       .source = "other",
                       .cut_every = 1000};
    if (w.row_count > OTHERS_MAX) {
        return;
    }
    tn_rc rc = write_all(&w);
    if (rc != TN_OK) {
        stop(&b->disk, w.err.text);
    }
    b->others += count;
}

/* He obeys no consumer, as an old writer may: files of our newest snapshot go, too. */
static void forget_consumer(struct tn_io *io, const char *ours)
{
    struct tn_err err;
    char path[200];
    (void)snprintf(path, sizeof path, BED_ROOT "/consumer/consumer-tarn-%s", ours);
    tn_rc rc = io->vtable->unlink(io, path, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

static void visit(struct beside *b)
{
    struct tn_io *io = &b->disk.io;
    char ours[TN_UUID_SIZE];
    b->here = true;
    bed_engine_start(&engines[OTHER], io, random_next(&b->random));
    get_id(io, ours);
    if (ours[0]) { /* else we are not open yet */
        put_id(io, b->his);
        if (b->appends) {
            append_as_other(b);
        } else {
            forget_consumer(io, ours);
            compact_as_other(b);
        }
        get_id(io, b->his);
        put_id(io, ours);
        b->visits++;
    }
    b->here = false;
}

static void before_change(void *user, struct sim_disk *disk)
{
    struct beside *b = user;
    (void)disk;
    if (!b->here && random_below(&b->random, b->every) == 0) {
        visit(b);
    }
}

static __attribute__((noinline)) uint32_t write_beside(struct beside *b, uint64_t random)
{
    uint32_t reopened = 0;
    begin_disk(&b->disk);
    b->writer = our_writer(&engines[OURS], random);
    b->writer.retries = b->appends ? 0 : 20; /* what he expires may be what a commit reads */
    sim_disk_watch(&b->disk, before_change, b);
    tn_rc rc = write_all(&b->writer);
    while (rc == TN_CONFLICT && b->appends && reopened < 200) {
        CHECK(strstr(b->writer.err.text, "another writer"));
        letters_start(b->writer.letters, b->writer.letters->published);
        reopened++;
        bed_engine_start(&engines[OURS], &b->disk.io, random_next(&b->random));
        rc = write_all(&b->writer);
    }
    sim_disk_watch(&b->disk, NULL, NULL);
    /* Who only compacts changes no rows, but of what he did and expired at once nobody can tell. */
    bool untellable = rc == TN_CONFLICT && !b->appends &&
                      strstr(b->writer.err.text, "a snapshot of another writer changed");
    if (rc != TN_OK && !untellable) {
        stop(&b->disk, b->writer.err.text);
    }
    CHECK(untellable || b->writer.told == world.row_count);
    b->untold = untellable;
    look_again(&engines[OURS], &b->disk, &b->writer, b->appends);
    sim_disk_deinit(&b->disk);
    return reopened;
}

static void another_compactor_does_no_harm(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t visits = 0;
    uint64_t untold = 0;
    do {
        static struct beside b;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, 300), random_below(&random, 2) == 0);
        b = (struct beside){.random = random, .every = 30 + random_below(&random, 200)};
        (void)write_beside(&b, random);
        visits += b.visits;
        untold += b.untold;
        seed++;
    } while (seconds_now() < until || visits == 0);
    (void)printf("%" PRIu64 " visits, %" PRIu64 " of them of nobody knew what\n", visits, untold);
}

/* He changes rows: what was resolved beside them before comes again, behind them. */
static void another_writer_s_rows_void_a_round(void)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    uint64_t visits = 0;
    uint64_t voided = 0;
    uint64_t seeds = 0;
    do {
        static struct beside b;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, ROWS_MAX - 20), false);
        b = (struct beside){
            .random = random, .every = 100 + random_below(&random, 400), .appends = true};
        voided += write_beside(&b, random);
        visits += b.visits;
        seed++;
        seeds++;
    } while (seconds_now() < until || seeds < 8);
    (void)printf("%" PRIu64 " visits, %" PRIu64 " rounds were void\n", visits, voided);
    CHECK(voided > 0 && voided < visits);
}

static int32_t bucket_of(int32_t key)
{
    unsigned char packed[ROW_MAX];
    unsigned char bytes[64];
    static const uint32_t keys[] = {0};
    struct tn_buf scratch;
    struct tn_err err;
    int32_t bucket = -1;
    struct input row = {.key = key};
    tn_buf_init(&scratch, bytes, sizeof bytes);
    tn_rc rc = tn_row_bucket(&layout_of_all, (struct tn_columns){keys, 1}, pack_input(&row, packed),
                             world.base.buckets, &scratch, &bucket, &err);
    CHECK_OK(rc, err);
    return bucket;
}

/* A cut after one row of bucket 0; rows of bucket 1 are flushed for want of memory before that
 * round is committed, since it waits for a compaction. False: it was committed before. */
static bool flush_behind_a_cut(struct beside *b)
{
    struct writer *w = &b->writer;
    struct bed_writer touches = {.table = w->table, .scenario = &world.base};
    tn_rc rc = bed_touch(&touches, 0, 1); /* so that no row waits for its files */
    CHECK_OK(rc, touches.err);
    for (uint32_t i = 0; i < 3; i++) { /* the last is compacted with those before */
        rc = put(w, i);
        CHECK_OK(rc, w->err);
        rc = cut(w, i + 1);
        CHECK_OK(rc, w->err);
        while (i < 2 && !tn_table_idle(w->table)) {
            rc = turn(w);
            CHECK_OK(rc, w->err);
        }
    }
    for (uint32_t i = 3; i < ROWS_MAX && !w->table->open->resolved; i++) {
        rc = put(w, i);
        CHECK_OK(rc, w->err);
    }
    return w->table->open->resolved && w->table->closing && w->told == 2;
}

static tn_rc count_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)entry;
    (void)err;
    ++*(uint32_t *)user;
    return TN_OK;
}

/* Whether snapshots behind `id` that are no compactions have files: rows that are all kept as they
 * were, or are letters, make none. */
static bool has_rows_behind(struct beside *b, int64_t id)
{
    struct bed_engine *engine = &engines[AGAIN];
    struct tn_live_filter every = {0};
    struct tn_snapshot snapshot;
    struct tn_list lists[TN_LIST_COUNT];
    struct tn_err err;
    uint32_t count = 0;
    bed_engine_start(engine, &b->disk.io, 1);
    while (tn_snapshot_read(&b->disk.io, BED_ROOT, ++id, &engine->own, &snapshot, &err) == TN_OK) {
        tn_lists_of(&snapshot, lists);
        if (strcmp(snapshot.commit_kind, "COMPACT") != 0) {
            tn_rc rc = tn_list_each(BED_ROOT, lists[1].name, lists[1].size, &every,
                                    &engine->workers[TN_LANE_LONG], count_entry, &count, &err);
            CHECK_OK(rc, err);
        }
    }
    return count > 0;
}

/* One whose rounds wait for compactions. */
static uint64_t make_waiting_world(uint64_t seed)
{
    do {
        make_world(++seed, ROWS_MAX, false);
    } while (world.base.buckets != 2 || !strstr(world.base.schema, "force-compact\":\"true") ||
             !strstr(world.base.schema, "compaction-trigger\":\"1\""));
    return seed;
}

/* His rows, and all of ours but three, in bucket 1. */
static void place_rows(void)
{
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        if (i < 3) {
            world.rows[i] = (struct input){0, 1 + (int32_t)i, i, TN_ROW_INSERT};
        }
        while (bucket_of(world.rows[i].key) != (i > 2)) {
            world.rows[i].key = (world.rows[i].key + 1) % KEYS;
        }
    }
    for (uint32_t i = 0; i < OTHERS_MAX; i++) {
        world.others[i].key = world.rows[3].key;
    }
}

enum next_fate { NEXT_LATE, NEXT_KEPT, NEXT_VOID, NEXT_FATES };

/* The next round's rows were resolved, and not committed, when he came: they are void exactly when
 * he changed rows. */
static __attribute__((noinline)) enum next_fate resolve_next(struct beside *b, uint64_t random)
{
    enum next_fate fate = NEXT_LATE;
    *b = (struct beside){.appends = true, .random = random};
    begin_disk(&b->disk);
    b->writer = our_writer(&engines[OURS], random);
    engines[OURS].env.memtable_size = 64 * 1024;
    tn_rc rc = open_table(&b->writer);
    CHECK_OK(rc, b->writer.err);
    place_rows();
    if (flush_behind_a_cut(b)) {
        int64_t seen = b->writer.table->last_seen;
        visit(b);
        fate = has_rows_behind(b, seen) ? NEXT_VOID : NEXT_KEPT;
        rc = turn(&b->writer);
        while (rc == TN_OK && !tn_table_idle(b->writer.table)) {
            rc = turn(&b->writer);
        }
        if (rc != (fate == NEXT_VOID ? TN_CONFLICT : TN_OK) || b->writer.told != 3) {
            stop(&b->disk, fate == NEXT_VOID ? "nobody minds his rows" : b->writer.err.text);
        }
        rc = turn(&b->writer);
        CHECK(rc == (fate == NEXT_VOID ? TN_CONFLICT : TN_OK));
    }
    close_table(&b->writer);
    look_again(&engines[OURS], &b->disk, &b->writer, true);
    letters_start(b->writer.letters, b->writer.letters->published);
    bed_engine_start(&engines[OURS], &b->disk.io, 99);
    rc = write_all(&b->writer);
    CHECK_OK(rc, b->writer.err);
    look_again(&engines[OURS], &b->disk, &b->writer, true);
    sim_disk_deinit(&b->disk);
    return fate;
}

static void rows_of_the_next_round_are_void_too(void)
{
    static struct beside b;
    uint64_t seed = given_number("SEED", 1) * 1000;
    double until = given_until(40, 16);
    uint64_t fates[NEXT_FATES] = {0};
    while (fates[NEXT_VOID] < 3 || seconds_now() < until) {
        seed = make_waiting_world(seed);
        fates[resolve_next(&b, seed)]++;
    }
    (void)printf("the next round: %" PRIu64 " void, %" PRIu64 " kept, %" PRIu64 " came late\n",
                 fates[NEXT_VOID], fates[NEXT_KEPT], fates[NEXT_LATE]);
}

/* ---- somebody who leaves no snapshot ---- */

enum { HE_COMPACTS, HE_APPENDS, HE_WIPES, HE_DOES };

/* The properties of somebody's newest snapshot. */
struct kept {
    struct tn_json_pair pairs[16];
    uint32_t count;
    char text[2000];
    size_t size;
};

/* What is in is known by what was seen of each snapshot when it was the newest. */
struct unseen {
    struct beside beside;
    uint32_t may; /* what he does: 1 << HE_COMPACTS ... */
    struct look live;
    int64_t last;
    struct kept ours;
    struct kept his;
    uint64_t gone;   /* snapshots of his that nobody can read */
    uint64_t hidden; /* of them, that changed rows */
};

static const char *keep_text(struct kept *kept, const char *text)
{
    size_t size = strlen(text) + 1;
    CHECK(size <= sizeof kept->text - kept->size);
    char *at = memcpy(kept->text + kept->size, text, size);
    kept->size += size;
    return at;
}

static void keep_properties(struct kept *kept, const struct tn_snapshot *snapshot,
                            const char *source)
{
    uint32_t position = 0;
    if (position_in(snapshot, source, &position) || position == 0) {
        return;
    }
    CHECK(snapshot->properties.count <= COUNT(kept->pairs));
    kept->size = 0;
    kept->count = snapshot->properties.count;
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->pairs[i].key = keep_text(kept, snapshot->properties.pairs[i].key);
        kept->pairs[i].value = keep_text(kept, snapshot->properties.pairs[i].value);
    }
}

static void see_newest(struct unseen *u)
{
    struct bed_engine *engine = &engines[AGAIN];
    struct tn_io *io = &u->beside.disk.io;
    static struct tn_snapshot snapshot;
    struct tn_err err;
    int64_t id = 0;
    tn_arena_reset(&engine->own, 0);
    tn_rc rc = tn_snapshot_latest(io, BED_ROOT, &engine->own, &id, &err);
    if (rc == TN_OK && id > u->last) {
        rc = tn_snapshot_read(io, BED_ROOT, id, &engine->own, &snapshot, &err);
        const char *problem = rc == TN_OK ? advance(&u->live, &snapshot) : err.text;
        if (problem) {
            stop(&u->beside.disk, problem);
        }
        keep_properties(&u->ours, &snapshot, BED_SOURCE);
        keep_properties(&u->his, &snapshot, "other");
        u->last = id;
    }
    CHECK(rc == TN_OK || rc == TN_ABSENT);
}

enum { WIPED_MAX = 400 };

struct wipe {
    struct tn_commit_removal files[WIPED_MAX];
    uint32_t count;
    int32_t bucket;
};

static tn_rc wipe_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct wipe *wipe = user;
    bool fits = true;
    struct tn_arena *arena = &engines[OTHER].own;
    if (entry->bucket == wipe->bucket) {
        CHECK(wipe->count < WIPED_MAX);
        wipe->files[wipe->count++] = (struct tn_commit_removal){
            .partition = tn_arena_copy(arena, entry->partition, &fits),
            .bucket = entry->bucket,
            .level = entry->file.level,
            .file_name = tn_arena_text(arena, tn_bytes_of(entry->file.file_name)),
            .upgrade_level = -1};
    }
    CHECK(fits);
    return TN_OK;
}

static void commit_as_other(struct unseen *u, const struct tn_commit_spec *given)
{
    struct bed_engine *engine = &engines[OTHER];
    static struct bed_reader reader;
    struct tn_commit_spec spec = *given;
    struct tn_commit_result result;
    struct tn_err err;
    CHECK(!bed_read_open(engine, &reader));
    spec.root = BED_ROOT;
    spec.schema = reader.schema;
    spec.options = &reader.options;
    spec.user = "another";
    tn_rc rc = tn_commit(&spec, &engine->workers[TN_LANE_LONG], &result, &err);
    if (rc != TN_OK) {
        stop(&u->beside.disk, err.text);
    }
}

/* As a partition is dropped: its files are taken, and none is given. */
static void wipe_as_other(struct unseen *u)
{
    static struct wipe wipe;
    struct bed_engine *engine = &engines[OTHER];
    static struct bed_reader reader;
    static struct tn_snapshot snapshot;
    struct tn_live_filter all = {0};
    struct tn_err err;
    wipe = (struct wipe){
        .bucket = (int32_t)random_below(&u->beside.random, (uint32_t)world.base.buckets)};
    CHECK(!bed_read_open(engine, &reader));
    if (tn_snapshot_read(engine->env.io, BED_ROOT, u->last, &engine->own, &snapshot, &err) !=
        TN_OK) {
        return; /* there is none yet */
    }
    tn_rc rc = tn_live_each(BED_ROOT, &snapshot, reader.schema, &all,
                            &engine->workers[TN_LANE_LONG], wipe_file, &wipe, &err);
    CHECK_OK(rc, err);
    if (wipe.count > 0) {
        commit_as_other(
            u, &(struct tn_commit_spec){.removed = wipe.files, .removed_count = wipe.count});
        see_newest(u);
        for (int32_t key = 0; key < KEYS; key++) {
            if (bucket_of(key) == wipe.bucket) {
                u->live.facts[key] = (struct fact){0};
            }
        }
    }
}

static void act_as_other(struct unseen *u)
{
    struct beside *b = &u->beside;
    uint32_t what = random_below(&b->random, HE_DOES);
    while (!(u->may & 1u << what)) {
        what = (what + 1) % HE_DOES;
    }
    int64_t last = u->last;
    if (what == HE_COMPACTS) {
        compact_as_other(b);
    } else if (what == HE_APPENDS) {
        append_as_other(b);
    } else {
        wipe_as_other(u);
    }
    see_newest(u);
    u->hidden += what != HE_COMPACTS && u->last > last;
}

/* For either writer one is left, which has no files of its own: it finds its positions. */
static void leave_positions(struct unseen *u, struct kept *kept)
{
    commit_as_other(u, &(struct tn_commit_spec){.append_even_if_empty = true,
                                                .properties = {kept->pairs, kept->count}});
    see_newest(u);
}

static void expire_as_other(struct unseen *u)
{
    struct bed_engine *engine = &engines[OTHER];
    static struct bed_reader reader;
    struct tn_expire_result result;
    struct tn_err err;
    int64_t first;
    leave_positions(u, &u->ours);
    leave_positions(u, &u->his);
    CHECK(!bed_read_open(engine, &reader));
    reader.options.snapshot_retained_min = 2;
    reader.options.snapshot_retained_max = 2;
    reader.options.snapshot_expire_limit = 10000;
    struct tn_expire_spec spec = {
        .root = BED_ROOT, .schema = reader.schema, .options = &reader.options};
    tn_rc rc = tn_expire(&spec, &engine->workers[TN_LANE_LONG], &result, &err);
    CHECK_OK(rc, err);
    rc = tn_snapshot_earliest(engine->env.io, BED_ROOT, &engine->own, &first, &err);
    CHECK(rc == TN_OK && first == u->last - 1);
}

static void visit_unseen(struct unseen *u)
{
    struct beside *b = &u->beside;
    struct tn_io *io = &b->disk.io;
    char ours[TN_UUID_SIZE];
    int64_t last = u->last;
    b->here = true;
    bed_engine_start(&engines[OTHER], io, random_next(&b->random));
    get_id(io, ours);
    if (ours[0] && u->last > 0) {
        put_id(io, b->his);
        for (uint32_t acts = 1 + random_below(&b->random, 3); acts > 0; acts--) {
            act_as_other(u);
        }
        get_id(io, b->his);
        put_id(io, ours);
        u->gone += (uint64_t)(u->last - last);
        if (u->last > last) {
            forget_consumer(io, ours);
            forget_consumer(io, b->his);
            expire_as_other(u);
        }
        b->visits++;
    }
    b->here = false;
}

static void before_unseen(void *user, struct sim_disk *disk)
{
    struct unseen *u = user;
    struct beside *b = &u->beside;
    (void)disk;
    if (!b->here) {
        b->here = true;
        see_newest(u);
        b->here = false;
        if (random_below(&b->random, b->every) == 0) {
            visit_unseen(u);
        }
    }
}

static void look_at_newest(struct unseen *u)
{
    struct look *look = &u->live;
    static struct tn_snapshot snapshot;
    struct tn_err err;
    see_newest(u);
    look->engine = &engines[AGAIN];
    bed_engine_start(look->engine, &u->beside.disk.io, 5);
    const char *problem = bed_read_open(look->engine, &look->reader);
    if (!problem) {
        tn_rc rc = tn_snapshot_read(&u->beside.disk.io, BED_ROOT, u->last, &look->engine->own,
                                    &snapshot, &err);
        problem = rc == TN_OK ? read_rows(look, &snapshot) : err.text;
    }
    if (!problem && (look->position != world.row_count || look->others != u->beside.others)) {
        problem = BED_PROBLEM("%u rows are in, of others %u", look->position, look->others);
    }
    if (problem) {
        stop(&u->beside.disk, problem);
    }
}

static __attribute__((noinline)) uint32_t write_unseen(struct unseen *u, uint64_t random)
{
    struct beside *b = &u->beside;
    struct writer *w = &b->writer;
    uint32_t reopened = 0;
    begin_disk(&b->disk);
    bed_engine_start(&engines[AGAIN], &b->disk.io, random);
    *w = our_writer(&engines[OURS], random);
    w->retries = 20; /* what he expires may be what we read */
    sim_disk_watch(&b->disk, before_unseen, u);
    tn_rc rc;
    while ((rc = write_all(w)) != TN_OK && reopened < 200) {
        reopened += rc == TN_CONFLICT && strstr(w->err.text, "another writer changed rows");
        letters_start(w->letters, w->letters->published);
        bed_engine_start(&engines[OURS], &b->disk.io, random_next(&b->random));
    }
    sim_disk_watch(&b->disk, NULL, NULL);
    if (rc != TN_OK) {
        stop(&b->disk, w->err.text);
    }
    look_at_newest(u);
    sim_disk_deinit(&b->disk);
    return reopened;
}

struct unseen_count {
    uint64_t visits;
    uint64_t gone;
    uint64_t hidden;
    uint64_t voided;
};

static struct unseen_count visit_worlds_unseen(uint32_t may)
{
    uint64_t seed = given_number("SEED", 1);
    double until = given_until(40, 8);
    struct unseen_count count = {0};
    for (uint64_t end = seed + 8; seed < end || seconds_now() < until; seed++) {
        static struct unseen u;
        uint64_t random = seed;
        make_world(seed, 20 + random_below(&random, ROWS_MAX - 20), false);
        u = (struct unseen){.beside = {.random = random, .every = 100 + random_below(&random, 400)},
                            .may = may};
        count.voided += write_unseen(&u, random);
        count.visits += u.beside.visits;
        count.gone += u.gone;
        count.hidden += u.hidden;
    }
    (void)printf("%" PRIu64 " visits, %" PRIu64 " snapshots were gone, %" PRIu64
                 " of them had changed rows, %" PRIu64 " rounds were void\n",
                 count.visits, count.gone, count.hidden, count.voided);
    return count;
}

/* Lists of manifests that were merged tell nothing more, and a compaction that leaves no row looks
 * like rows that were dropped: some rounds are void for that. Without a trail it is most. */
static void a_compaction_that_is_gone_voids_no_round(void)
{
    struct unseen_count count = visit_worlds_unseen(1 << HE_COMPACTS);
    CHECK(count.voided * 5 < count.gone * 2);
}

static void rows_that_changed_unseen_void_a_round(void)
{
    struct unseen_count count =
        visit_worlds_unseen(1 << HE_COMPACTS | 1 << HE_APPENDS | 1 << HE_WIPES);
    CHECK(count.hidden > 0 && count.voided > 0);
}

static const struct test tests[] = {
    TEST(another_compactor_does_no_harm),        TEST(another_writer_s_rows_void_a_round),
    TEST(rows_of_the_next_round_are_void_too),   TEST(a_compaction_that_is_gone_voids_no_round),
    TEST(rows_that_changed_unseen_void_a_round),
};

int main(int argc, char **argv)
{
    return bed_run_tests(argc, argv, tests, COUNT(tests), engines, ENGINES);
}
