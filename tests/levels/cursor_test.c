/* Sections and runs against brute force, and a cursor over random files against what was written:
 * whole, and stopped after any row. */
#include "levels/cursor.h"

#include "levels/bed.h"
#include "sim/medium.h"

static struct bed bed;

/* ---- sections and runs, of files that are only key ranges ---- */

enum { RANGES_MAX = 90 };

struct ranges {
    struct tn_arena arena;
    struct tn_key_types keys;
    struct tn_value values[2];
    struct tn_level_file files[RANGES_MAX];
    struct tn_level_file *sorted[RANGES_MAX];
    int64_t first[RANGES_MAX];
    int64_t last[RANGES_MAX];
    uint32_t count;
};

static const struct tn_type number = {.kind = TN_TYPE_INT};

static struct tn_bytes key_of(struct ranges *r, int64_t value)
{
    struct tn_buf buf;
    tn_buf_init(&buf, tn_arena_take(&r->arena, 64), 64);
    struct tn_value v = {.as.i64 = value};
    tn_values_to_binary(&number, &v, 1, &buf);
    CHECK(!buf.overflow);
    return tn_buf_bytes(&buf);
}

static int64_t value_of(struct ranges *r, struct tn_bytes key)
{
    struct tn_err err;
    struct tn_value value;
    tn_rc rc = tn_binary_to_values(key, r->keys.types, 1, &value, &err);
    CHECK_OK(rc, err);
    return value.as.i64;
}

static void make_ranges(struct ranges *r, uint64_t *seed)
{
    static unsigned char memory[RANGES_MAX * 2 * 64 + 64];
    *r = (struct ranges){.count = 1 + random_below(seed, RANGES_MAX)};
    tn_arena_init(&r->arena, memory, sizeof memory);
    r->keys = (struct tn_key_types){&number, 1, &r->values[0], &r->values[1]};
    uint32_t spread = 1 + random_below(seed, 1000);
    uint32_t length = 1 + random_below(seed, 60);
    for (uint32_t i = 0; i < r->count; i++) {
        int64_t first = (int64_t)random_below(seed, spread) - 300;
        r->files[i].min_key = key_of(r, first);
        r->files[i].max_key = key_of(r, first + random_below(seed, length));
        r->sorted[i] = &r->files[i];
    }
    tn_files_sort(&r->keys, r->sorted, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        r->first[i] = value_of(r, r->sorted[i]->min_key);
        r->last[i] = value_of(r, r->sorted[i]->max_key);
        CHECK(i == 0 || r->first[i - 1] < r->first[i] ||
              (r->first[i - 1] == r->first[i] && r->last[i - 1] <= r->last[i]));
    }
}

/* Two files are in one section when a chain of touching ranges leads from one to the other. */
static void check_sections(struct ranges *r)
{
    for (uint32_t at = 0; at < r->count;) {
        uint32_t count = tn_files_section(&r->keys, r->sorted, r->count, at);
        CHECK(count > 0 && count <= r->count - at);
        int64_t end = r->last[at];
        for (uint32_t i = at; i < at + count; i++) {
            CHECK(r->first[i] <= end);
            end = r->last[i] > end ? r->last[i] : end;
        }
        CHECK(at + count == r->count || r->first[at + count] > end);
        at += count;
    }
}

/* The fewest runs are the most files that hold one key; and no run may overlap itself. */
static void check_runs(struct ranges *r)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t at_once = 0;
        for (uint32_t k = 0; k < r->count; k++) {
            at_once += r->first[k] <= r->first[i] && r->first[i] <= r->last[k];
        }
        most = at_once > most ? at_once : most;
    }
    uint32_t run_of[RANGES_MAX];
    uint32_t runs = tn_files_runs(&r->keys, r->sorted, r->count, run_of);
    CHECK(runs == (most > TN_CURSOR_RUNS_MAX ? TN_CURSOR_RUNS_MAX + 1 : most));
    CHECK(tn_files_runs(&r->keys, r->sorted, r->count, NULL) == runs);
    for (uint32_t i = 0; runs <= TN_CURSOR_RUNS_MAX && i < r->count; i++) {
        CHECK(run_of[i] < runs);
        for (uint32_t k = 0; k < i; k++) {
            CHECK(run_of[k] != run_of[i] || r->last[k] < r->first[i]);
        }
    }
}

static void sections_and_runs_are_the_smallest(void)
{
    static struct ranges ranges;
    uint32_t too_many = 0;
    for (uint64_t round = 0; round < 600; round++) {
        uint64_t seed = round;
        make_ranges(&ranges, &seed);
        check_sections(&ranges);
        check_runs(&ranges);
        too_many +=
            tn_files_runs(&ranges.keys, ranges.sorted, ranges.count, NULL) > TN_CURSOR_RUNS_MAX;
    }
    CHECK(too_many > 0);
}

/* ---- cursors ---- */

static struct tn_cursor_spec cursor_spec(bool ignore_delete, bool drop_deletes)
{
    return (struct tn_cursor_spec){
        .order = &bed.order,
        .read = &bed.t.read,
        .schemas = &bed.schemas,
        .keys = &bed.keys,
        .dir = BED_DIR,
        .fold = {.ignore_delete = ignore_delete, .drop_deletes = drop_deletes}};
}

/* The next base row that the cursor must yield, from `key` on. */
static const struct tn_kv *next_of_model(uint32_t *key, const struct tn_cursor_spec *spec)
{
    while (*key < bed.t.row_count) {
        const struct tn_kv *kv = bed_newest(&bed, (*key)++, spec->fold.ignore_delete);
        if (kv && !(spec->fold.drop_deletes && tn_row_kind_retracts(kv->kind))) {
            return kv;
        }
    }
    return NULL;
}

/* Reads everything; after each `stop_every` rows (0: never) a new cursor goes on. */
static void read_all(const struct tn_cursor_spec *spec, uint32_t stop_every)
{
    static struct tn_cursor cursor;
    static struct tn_run_position positions[TN_CURSOR_RUNS_MAX];
    struct setup *s = &bed.s;
    size_t mark = tn_arena_mark(&s->worker.arena);
    uint64_t calls_open = 0;
    tn_rc rc = tn_cursor_open(&cursor, spec, bed.files, bed.file_count, NULL, &s->worker, &s->err);
    CHECK_OK(rc, s->err);
    uint32_t key = 0;
    for (uint32_t rows = 1;; rows++) {
        struct tn_kv kv;
        const struct tn_kv *want = next_of_model(&key, spec);
        rc = tn_iter_next(&cursor.fold.iter, &kv, &s->err);
        CHECK((rc == TN_ABSENT) == (want == NULL));
        if (rc == TN_ABSENT) {
            break;
        }
        CHECK_OK(rc, s->err);
        CHECK(bed_same(&kv, want));
        CHECK(kv.level == want->level);
        if (stop_every > 0 && rows % stop_every == 0) {
            rc = tn_cursor_rest(&cursor, positions, &s->err);
            CHECK_OK(rc, s->err);
            tn_cursor_close(&cursor);
            CHECK(tn_arena_mark(&s->worker.arena) == mark);
            rc = tn_cursor_open(&cursor, spec, bed.files, bed.file_count, positions, &s->worker,
                                &s->err);
            CHECK_OK(rc, s->err);
            calls_open++;
        }
    }
    tn_cursor_close(&cursor);
    CHECK(tn_arena_mark(&s->worker.arena) == mark);
}

static void a_cursor_yields_the_newest_version_of_each_key(void)
{
    for (uint64_t round = 0; round < 20; round++) {
        uint64_t seed = round;
        bed_make(&bed, 1, &seed);
        tn_files_sort(&bed.keys, bed.files, bed.file_count);
        struct tn_cursor_spec spec =
            cursor_spec(random_below(&seed, 2) == 1, random_below(&seed, 2) == 1);
        read_all(&spec, 0);
        if (round % 8 == 0) {
            read_all(&spec, 1);
        }
        read_all(&spec, 1 + random_below(&seed, 50));
        bed_end(&bed);
    }
}

static uint32_t open_files(void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < bed.s.disk.handle_count; i++) {
        open += bed.s.disk.handles[i].open;
    }
    return open;
}

/* Each call of the disk fails once: the error comes through, all files are closed, and the next
 * attempt reads everything. */
static void a_failing_disk_leaves_nothing_open(void)
{
    static struct tn_cursor cursor;
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t seed = round + 50;
        bed_make(&bed, 2, &seed);
        tn_files_sort(&bed.keys, bed.files, bed.file_count);
        struct tn_cursor_spec spec = cursor_spec(false, false);
        size_t mark = tn_arena_mark(&bed.s.worker.arena);
        tn_rc rc = TN_IO;
        uint32_t failures = 0;
        for (uint64_t call = 1; rc != TN_ABSENT; call++) {
            sim_disk_fail_call(&bed.s.disk, bed.s.disk.calls + call, TN_IO);
            rc = tn_cursor_open(&cursor, &spec, bed.files, bed.file_count, NULL, &bed.s.worker,
                                &bed.s.err);
            if (rc == TN_OK) {
                struct tn_kv kv;
                while ((rc = tn_iter_next(&cursor.fold.iter, &kv, &bed.s.err)) == TN_OK) {
                }
                tn_cursor_close(&cursor);
            }
            CHECK(rc == TN_IO || rc == TN_ABSENT);
            CHECK(tn_arena_mark(&bed.s.worker.arena) == mark);
            CHECK(open_files() == 0);
            failures += rc == TN_IO;
        }
        sim_disk_fail_call(&bed.s.disk, 0, TN_IO);
        CHECK(failures >= bed.file_count);
        read_all(&spec, 0);
        bed_end(&bed);
    }
}

/* A worker with too little memory is refused with what is needed, and left as it was. */
static void too_little_memory_is_refused(void)
{
    static struct tn_cursor cursor;
    uint64_t seed = 77;
    bed_make(&bed, 4, &seed);
    tn_files_sort(&bed.keys, bed.files, bed.file_count);
    struct tn_cursor_spec spec = cursor_spec(false, false);
    struct tn_worker small = bed.s.worker;
    uint32_t refused = 0;
    for (size_t size = 0; size < (1 << 20); size += 7001) {
        void *memory = malloc(size + 1);
        tn_arena_init(&small.arena, memory, size);
        tn_rc rc =
            tn_cursor_open(&cursor, &spec, bed.files, bed.file_count, NULL, &small, &bed.s.err);
        if (rc == TN_OK) {
            tn_cursor_close(&cursor);
        }
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        CHECK(tn_arena_mark(&small.arena) == 0);
        CHECK(open_files() == 0);
        refused += rc == TN_AGAIN;
        free(memory);
    }
    CHECK(refused > 10);
    bed_end(&bed);
}

static const struct test tests[] = {
    TEST(sections_and_runs_are_the_smallest),
    TEST(a_cursor_yields_the_newest_version_of_each_key),
    TEST(a_failing_disk_leaves_nothing_open),
    TEST(too_little_memory_is_refused),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
