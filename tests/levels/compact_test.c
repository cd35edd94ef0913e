/* Compactions of random files, cut into slices of any size: what is read afterwards is what was
 * there before; each failure leaves the sources as they were and, after abort, no other file. */
#include "levels/compact.h"

#include "levels/bed.h"
#include "sim/medium.h"

enum { ARENA_SIZE = 4 << 20, SLICES_MAX = 20000 };

static struct bed bed;
static struct tn_compaction compaction;
static struct tn_compact_spec spec;
static struct tn_arena arena; /* of a compaction */
static uint32_t counter;

static void make_spec(uint64_t *seed)
{
    struct table *t = &bed.t;
    t->options.ignore_delete = random_below(seed, 4) == 0;
    t->options.force_rewrite = random_below(seed, 4) == 0;
    /* rolling at small sizes; and sizes at which some sources are large enough to be moved up */
    static const int64_t targets[] = {600, 2000, 6000, INT64_MAX};
    t->options.target_file_size = targets[random_below(seed, COUNT(targets))];
    bool drop = random_below(seed, 2) == 1;
    spec = (struct tn_compact_spec){.order = &bed.order,
                                    .read = &t->read,
                                    .schemas = &bed.schemas,
                                    .schema = &t->schema,
                                    .options = &t->options,
                                    .keys = &bed.keys,
                                    .dir = BED_DIR,
                                    .uuid = "c",
                                    .counter = &counter,
                                    .output_level = 5,
                                    .drop_deletes = drop,
                                    .to_last_level = drop && random_below(seed, 2) == 1,
                                    .block_size = 512,
                                    .row_size_max = TABLE_ROW_SIZE_MAX};
}

static tn_rc begin(void)
{
    tn_arena_reset(&arena, 0);
    return tn_compaction_begin(&compaction, &spec, bed.files, bed.file_count, &arena, &bed.s.err);
}

/* In slices of this size; 0: drawn anew for each. */
static tn_rc run(uint64_t slice_size, uint64_t *seed, uint32_t *slices)
{
    tn_rc rc = begin();
    for (*slices = 0; rc == TN_OK && !compaction.finished; ++*slices) {
        static const uint64_t sizes[] = {0, 1, 50, 1000, 20000, UINT64_MAX};
        uint64_t size = slice_size ? slice_size : sizes[random_below(seed, COUNT(sizes))];
        size_t mark = tn_arena_mark(&bed.s.worker.arena);
        uint64_t moved = compaction.bytes_read + compaction.step_at;
        rc = tn_compaction_slice(&compaction, &bed.s.worker, size, &bed.s.err);
        CHECK(tn_arena_mark(&bed.s.worker.arena) == mark);
        CHECK(rc != TN_OK || compaction.bytes_read + compaction.step_at > moved);
        CHECK(*slices < SLICES_MAX);
    }
    return rc;
}

static uint32_t open_files(void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < bed.s.disk.handle_count; i++) {
        open += bed.s.disk.handles[i].open;
    }
    return open;
}

static tn_rc count_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)name;
    (void)err;
    *(uint32_t *)user += !is_dir;
    return TN_OK;
}

static uint32_t files_on_disk(void)
{
    uint32_t count = 0;
    struct tn_io *io = bed.s.worker.io;
    tn_rc rc = io->vtable->list(io, BED_DIR, count_name, &count, &bed.s.err);
    CHECK_OK(rc, bed.s.err);
    return count;
}

/* Removes what the compactions' names begin with. */
static void remove_strangers(void)
{
    for (uint32_t i = 0; i < counter; i++) {
        char path[128];
        struct tn_err ignored;
        (void)snprintf(path, sizeof path, "%sdata-c-%u.avro", BED_DIR, i);
        (void)bed.s.worker.io->vtable->unlink(bed.s.worker.io, path, &ignored);
    }
}

/* ---- what a finished compaction leaves ---- */

struct outcome {
    struct tn_level_file *files[4 * BED_KEYS_MAX];
    uint32_t count;
    int64_t rows; /* of outputs */
};

static struct outcome outcome;

static void collect(void)
{
    outcome.count = 0;
    outcome.rows = 0;
    uint32_t upgraded = 0;
    for (uint32_t i = 0; i < compaction.file_count; i++) {
        if (compaction.upgraded[i]) {
            tn_rc rc = tn_level_file_move(&bed.heap, compaction.files[i], spec.output_level,
                                          &outcome.files[outcome.count++], &bed.s.err);
            CHECK_OK(rc, bed.s.err);
            upgraded++;
        }
    }
    CHECK(upgraded == compaction.upgraded_count);
    uint32_t outputs = 0;
    for (struct tn_compact_output *o = compaction.rows.first; o; o = o->next) {
        CHECK(outcome.count < COUNT(outcome.files));
        CHECK(o->meta.level == spec.output_level);
        CHECK(o->meta.file_source.value == 1);
        CHECK(o->meta.row_count > 0);
        CHECK(!spec.drop_deletes || o->meta.delete_row_count.value == 0);
        outcome.rows += o->meta.row_count;
        tn_rc rc = tn_level_file_make(&bed.heap, &o->meta, o->meta.level,
                                      &outcome.files[outcome.count++], &bed.s.err);
        CHECK_OK(rc, bed.s.err);
        outputs++;
    }
    CHECK(outputs == compaction.rows.count);
    CHECK(files_on_disk() == bed.file_count + outputs);
    tn_files_sort(&bed.keys, outcome.files, outcome.count);
}

static void forget(void)
{
    for (uint32_t i = 0; i < outcome.count; i++) {
        tn_level_file_drop(&bed.heap, outcome.files[i]);
    }
}

/* One sorted run whose rows are the newest versions, less the deletes that may go. */
static void check_rows(void)
{
    static struct tn_cursor cursor;
    struct setup *s = &bed.s;
    if (outcome.count > 0) {
        CHECK(tn_files_runs(&bed.keys, outcome.files, outcome.count, NULL) == 1);
        struct tn_cursor_spec read = {.order = &bed.order,
                                      .read = &bed.t.read,
                                      .schemas = &bed.schemas,
                                      .keys = &bed.keys,
                                      .dir = BED_DIR,
                                      .fold = {.drop_deletes = spec.drop_deletes}};
        tn_rc rc =
            tn_cursor_open(&cursor, &read, outcome.files, outcome.count, NULL, &s->worker, &s->err);
        CHECK_OK(rc, s->err);
    }
    for (uint32_t key = 0; key < bed.t.row_count; key++) {
        const struct tn_kv *want = bed_newest(&bed, key, spec.options->ignore_delete);
        if (!want || (spec.drop_deletes && tn_row_kind_retracts(want->kind))) {
            continue;
        }
        struct tn_kv kv;
        CHECK(outcome.count > 0);
        tn_rc rc = tn_iter_next(&cursor.fold.iter, &kv, &s->err);
        CHECK_OK(rc, s->err);
        CHECK(bed_same(&kv, want));
    }
    if (outcome.count > 0) {
        struct tn_kv kv;
        CHECK(tn_iter_next(&cursor.fold.iter, &kv, &s->err) == TN_ABSENT);
        tn_cursor_close(&cursor);
    }
}

/* What may be moved up as it is. Paimon: MergeTreeCompactTask.upgrade. */
static void check_upgrades(void)
{
    for (uint32_t i = 0; i < compaction.file_count; i++) {
        const struct tn_level_file *f = compaction.files[i];
        bool alone = tn_files_section(&bed.keys, compaction.files, compaction.file_count, i) == 1;
        for (uint32_t k = 0; k < i; k++) { /* nothing before reaches into it */
            alone =
                alone && tn_key_compare(&bed.keys, compaction.files[k]->max_key, f->min_key) < 0;
        }
        bool may_stay =
            !spec.options->force_rewrite && !(spec.to_last_level && f->delete_row_count != 0);
        CHECK(!compaction.upgraded[i] || (alone && may_stay));
        bool large = f->size >= spec.options->target_file_size / 100 * 70;
        CHECK(compaction.upgraded[i] || !(alone && may_stay && large));
    }
}

static void any_slices_give_what_was_there(void)
{
    uint32_t most_slices = 0;
    uint32_t upgrades = 0;
    uint32_t rolled = 0;
    for (uint64_t round = 0; round < 20; round++) {
        uint64_t seed = round;
        bed_make(&bed, 1, &seed);
        make_spec(&seed);
        int64_t rows = -1;
        static const uint64_t sizes[] = {UINT64_MAX, 0, 700, 1};
        for (uint32_t i = 0; i < (round % 6 == 0 ? 4 : 3); i++) {
            uint32_t slices;
            tn_rc rc = run(sizes[i], &seed, &slices);
            CHECK_OK(rc, bed.s.err);
            collect();
            check_rows();
            check_upgrades();
            CHECK(rows < 0 || rows == outcome.rows);
            rows = outcome.rows;
            CHECK(i > 0 || slices <= 1);
            most_slices = slices > most_slices ? slices : most_slices;
            upgrades += compaction.upgraded_count;
            rolled += compaction.rows.count > 3;
            forget();
            tn_compaction_abort(&compaction, bed.s.worker.io);
            CHECK(files_on_disk() == bed.file_count);
            CHECK(open_files() == 0);
        }
        bed_end(&bed);
    }
    CHECK(most_slices > 30);
    CHECK(upgrades > 5);
    CHECK(rolled > 0);
}

/* Each call of the disk fails once, early or late: abort removes all but the sources, and the next
 * attempt succeeds. (A create that fails late has made a file that can't be known for ours.) */
static void a_failed_compaction_leaves_nothing_and_can_be_tried_again(void)
{
    uint32_t failures = 0;
    for (uint64_t round = 0; round < 4; round++) {
        uint64_t seed = round + 100;
        bed_make(&bed, 2, &seed);
        make_spec(&seed);
        bool late = round % 2 == 1;
        uint32_t files = bed.file_count;
        tn_rc rc = TN_IO;
        for (uint64_t call = 1; rc != TN_OK; call += 1 + random_below(&seed, 2)) {
            (late ? sim_disk_fail_call_late : sim_disk_fail_call)(&bed.s.disk,
                                                                  bed.s.disk.calls + call, TN_IO);
            uint32_t slices;
            rc = run(2000, &seed, &slices);
            CHECK(rc == TN_OK || rc == TN_IO);
            failures += rc != TN_OK;
            sim_disk_fail_call(&bed.s.disk, 0, TN_IO);
            tn_compaction_abort(&compaction, bed.s.worker.io);
            CHECK(open_files() == 0);
            uint32_t left = files_on_disk();
            CHECK(left == files || (late && left == files + 1));
            files = left;
        }
        remove_strangers();
        uint32_t slices;
        rc = run(3000, &seed, &slices);
        CHECK_OK(rc, bed.s.err);
        collect();
        check_rows();
        forget();
        tn_compaction_abort(&compaction, bed.s.worker.io);
        bed_end(&bed);
    }
    CHECK(failures > 50);
}

/* A plan or a slice without memory says so, takes nothing, and leaves no file. */
static void too_little_memory_is_refused(void)
{
    uint64_t seed = 7;
    bed_make(&bed, 6, &seed);
    make_spec(&seed);
    spec.options = &bed.t.options;
    bed.t.options.force_rewrite = true;
    struct tn_arena whole = arena;
    uint32_t refused = 0;
    tn_rc rc = TN_AGAIN;
    for (size_t size = 0; rc == TN_AGAIN; size += 6007) {
        arena.size = size;
        arena.used = 0;
        uint32_t slices;
        rc = run(500, &seed, &slices);
        CHECK(rc == TN_AGAIN || rc == TN_OK);
        if (compaction.steps) {
            tn_compaction_abort(&compaction, bed.s.worker.io);
        }
        CHECK(open_files() == 0);
        CHECK(files_on_disk() == bed.file_count);
        refused += rc == TN_AGAIN;
    }
    CHECK(refused > 2);
    arena = whole;
    struct tn_arena worker = bed.s.worker.arena;
    rc = TN_AGAIN;
    for (size_t size = worker.used; rc == TN_AGAIN; size += 60013) {
        bed.s.worker.arena.size = size;
        uint32_t slices;
        rc = run(500, &seed, &slices);
        CHECK(rc == TN_AGAIN || rc == TN_OK);
        CHECK(bed.s.worker.arena.used == worker.used);
        tn_compaction_abort(&compaction, bed.s.worker.io);
        CHECK(open_files() == 0);
        CHECK(files_on_disk() == bed.file_count);
    }
    bed_end(&bed);
}

static const struct test tests[] = {
    TEST(any_slices_give_what_was_there),
    TEST(a_failed_compaction_leaves_nothing_and_can_be_tried_again),
    TEST(too_little_memory_is_refused),
};

int main(int argc, char **argv)
{
    tn_arena_init(&arena, malloc(ARENA_SIZE), ARENA_SIZE);
    return run_tests(argc, argv, tests, COUNT(tests));
}
