/* Compactions of random files, cut into slices of any size: what is read afterwards is what was
 * there before; each failure leaves the sources as they were and, after abort, no other file. Those
 * that tell changes: rows and changes are what is worked out here from all versions of a key. */
#include "levels/compact.h"

#include "given.h"
#include "levels/bed.h"
#include "read/state.h"
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
static tn_rc run_slices(uint64_t slice_size, uint64_t *seed, uint32_t *slices)
{
    tn_rc rc = TN_OK;
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

static tn_rc run(uint64_t slice_size, uint64_t *seed, uint32_t *slices)
{
    *slices = 0;
    tn_rc rc = begin();
    return rc == TN_OK ? run_slices(slice_size, seed, slices) : rc;
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

/* ---- compactions that tell ---- */

enum {
    TELL_WORKER_SIZE = 6 << 20,
    TELL_ROW_MAX = 4 * TABLE_ROW_SIZE_MAX,
    STATE_SIZE = 512 << 10,
    INDEX_SIZE = 32 << 10
};

static const struct tell_mode {
    enum tn_fold_mode fold;
    enum tn_merge_engine engine;
} tell_modes[] = {
    {TN_FOLD_LOOKUP, TN_MERGE_DEDUPLICATE},  {TN_FOLD_LOOKUP, TN_MERGE_PARTIAL_UPDATE},
    {TN_FOLD_FIRST_ROW, TN_MERGE_FIRST_ROW}, {TN_FOLD_FULL, TN_MERGE_DEDUPLICATE},
    {TN_FOLD_FULL, TN_MERGE_PARTIAL_UPDATE},
};

static struct tell {
    const struct tell_mode *mode;
    struct tn_change change;
    uint32_t compared[TABLE_COLUMNS_MAX];
    bool told; /* changes are written */
    bool in_unit[BED_FILES_MAX];
    struct tn_level_file *unit[BED_FILES_MAX];
    uint32_t unit_count;
    struct tn_levels *deeper; /* files below the output, or NULL */
    struct tn_key_state state;
    struct tn_block_indexes indexes;
    bool indexed;
    uint32_t opened;
} tell;

/* What a key's rows are to be: at most two changes, and one row. */
struct expected {
    struct tn_kv row;
    bool there;
    struct tn_kv changes[2];
    uint32_t change_count;
};

static tn_rc open_before(void *user, struct tn_worker *worker, struct tn_state **state,
                         struct tn_err *err)
{
    (void)user;
    struct tn_key_state_spec before = {.order = &bed.order,
                                       .read = &bed.t.read,
                                       .schemas = &bed.schemas,
                                       .keys = &bed.keys,
                                       .dir = BED_DIR,
                                       .indexes = tell.indexed ? &tell.indexes : NULL};
    struct tn_level_file *const *files = tell.deeper ? tell.deeper->files : NULL;
    tn_rc rc = tn_key_state_open(&tell.state, &before, files, tell.deeper ? tell.deeper->count : 0,
                                 STATE_SIZE, worker, err);
    *state = &tell.state.state;
    tell.opened += rc == TN_OK;
    return rc;
}

static void close_before(void *user)
{
    (void)user;
    tn_key_state_close(&tell.state);
    tell.opened--;
}

static const struct tn_compact_before before = {open_before, close_before, NULL};

/* Partial-update: what is not NULL replaces. */
static void make_engine(void)
{
    struct table *t = &bed.t;
    uint32_t count = t->layout.column_count;
    struct tn_merge_field *fields = tn_arena_take(&bed.s.arena, count * sizeof *fields);
    uint32_t *fields_of = tn_arena_take(&bed.s.arena, count * sizeof *fields_of);
    CHECK(fields && fields_of);
    for (uint32_t i = 0; i < count; i++) {
        fields[i] = (struct tn_merge_field){.group = -1, .delimiter = ","};
        fields_of[i] = i;
    }
    for (uint32_t i = 0; i < t->read.keys.count; i++) {
        fields[t->read.keys.index[i]].aggregate = TN_AGGREGATE_KEY;
    }
    t->options.merge_engine = tell.mode->engine;
    t->options.merge_fields = tell.mode->engine == TN_MERGE_PARTIAL_UPDATE ? fields : NULL;
    tn_rc rc =
        tn_engine_make(&t->options, &bed.order, fields_of, &bed.s.arena, &spec.engine, &bed.s.err);
    CHECK_OK(rc, bed.s.err);
}

/* Levels up to some, with all of level 0, as a compaction picks; or the oldest runs, which go to
 * the last level. */
static void choose_unit(uint64_t *seed)
{
    int32_t up_to = (int32_t)random_below(seed, 6);
    uint32_t newer = 0; /* files of level 0 that stay */
    uint32_t level0 = 0;
    for (uint32_t i = 0; i < bed.file_count; i++) {
        level0 += bed.files[i]->level == 0;
    }
    spec.output_level = up_to == 0 ? 1 : up_to;
    if (tell.mode->fold == TN_FOLD_FULL || random_below(seed, 4) == 0) {
        up_to = 5;
        spec.output_level = 5;
        newer = random_below(seed, 3) == 0 ? random_below(seed, level0 + 1) : 0;
    }
    int32_t behind = -1;
    tell.unit_count = 0;
    for (uint32_t i = 0; i < bed.file_count; i++) { /* the newest are the last */
        int32_t level = bed.files[i]->level;
        tell.in_unit[i] = level > 0 ? level <= up_to : i + newer < bed.file_count;
        if (tell.in_unit[i]) {
            tell.unit[tell.unit_count++] = bed.files[i];
        } else {
            behind = level > behind ? level : behind;
        }
    }
    spec.drop_deletes = spec.output_level >= behind;
    spec.to_last_level = spec.output_level == 5;
}

static void find_deeper(void)
{
    struct tn_level_file *files[BED_FILES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < bed.file_count; i++) {
        if (bed.files[i]->level > spec.output_level) {
            files[count++] = bed.files[i];
        }
    }
    tell.deeper = NULL;
    if (count > 0) {
        tn_rc rc = tn_levels_edit(&bed.heap, NULL, NULL, 0, files, count, &bed.keys, &tell.deeper,
                                  &bed.s.err);
        CHECK_OK(rc, bed.s.err);
    }
}

static void make_telling_spec(uint64_t *seed)
{
    static _Alignas(max_align_t) unsigned char index_memory[INDEX_SIZE];
    struct table *t = &bed.t;
    make_spec(seed);
    t->options.ignore_delete = false;
    t->options.changelog_file_prefix = "changelog-";
    t->options.changelog_codec = t->options.codec;
    make_engine();
    choose_unit(seed);
    find_deeper();
    uint32_t compared = 0;
    for (uint32_t i = 0; i < t->layout.column_count; i++) {
        if (random_below(seed, 3) > 0) {
            tell.compared[compared++] = i;
        }
    }
    tell.change = (struct tn_change){.layout = &t->layout,
                                     .compared = {tell.compared, compared},
                                     .deduplicate = random_below(seed, 2) == 0};
    tell.told = tell.mode->fold == TN_FOLD_FULL || random_below(seed, 5) > 0;
    tell.indexed = random_below(seed, 2) == 0;
    tn_block_indexes_init(&tell.indexes, index_memory, sizeof index_memory);
    spec.fold = tell.mode->fold;
    spec.change = tell.told ? &tell.change : NULL;
    spec.before = tell.mode->fold == TN_FOLD_FULL ? NULL : &before;
    spec.row_size_max = TELL_ROW_MAX;
}

/* ---- what is to come of it ---- */

static const struct tn_kv *retracts_nothing(const struct tn_kv *kv)
{
    return kv && !tn_row_kind_retracts(kv->kind) ? kv : NULL;
}

/* The file that a version is in. */
static uint32_t file_of(const struct tn_kv *kv)
{
    for (uint32_t i = 0; i < bed.file_count; i++) {
        const struct tn_level_file *f = bed.files[i];
        if (f->level == kv->level && kv->sequence >= f->min_sequence &&
            kv->sequence <= f->max_sequence) {
            return i;
        }
    }
    CHECK(false);
    return 0;
}

static bool is_moved_up(const struct tn_level_file *file)
{
    for (uint32_t i = 0; i < compaction.file_count; i++) {
        if (compaction.files[i] == file) {
            return compaction.upgraded[i];
        }
    }
    return false;
}

/* Oldest first. */
static void put_in_order(struct tn_kv *group, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = i; j > 0 && tn_kv_newer(&bed.order, &group[j - 1], &group[j]); j--) {
            struct tn_kv other = group[j];
            group[j] = group[j - 1];
            group[j - 1] = other;
        }
    }
}

static struct tn_kv merge_partial(const struct tn_kv *group, uint32_t count)
{
    const struct tn_row_layout *layout = &bed.t.layout;
    struct tn_value values[TABLE_COLUMNS_MAX];
    for (uint32_t c = 0; c < layout->column_count; c++) {
        tn_row_get(layout, group[0].row, c, &values[c]);
        for (uint32_t i = 1; i < count; i++) {
            if (!tn_row_null(group[i].row, c)) {
                tn_row_get(layout, group[i].row, c, &values[c]);
            }
        }
    }
    uint32_t size = tn_row_packed_size(layout, values);
    unsigned char *data = tn_arena_take(&bed.s.arena, size);
    CHECK(data);
    struct tn_kv merged = group[count - 1];
    merged.row = (struct tn_row){data, tn_row_pack(layout, values, data)};
    merged.kind = TN_ROW_INSERT;
    return merged;
}

static struct tn_kv merge_all(const struct tn_kv *group, uint32_t count)
{
    switch (tell.mode->engine) {
    case TN_MERGE_PARTIAL_UPDATE:
        return merge_partial(group, count);
    case TN_MERGE_FIRST_ROW:
        return group[0];
    case TN_MERGE_DEDUPLICATE:
    case TN_MERGE_AGGREGATION:
        break;
    }
    return group[count - 1];
}

static bool equal(struct tn_row a, struct tn_row b)
{
    for (uint32_t i = 0; i < tell.change.compared.count; i++) {
        uint32_t c = tell.change.compared.index[i];
        const struct tn_type *type = &bed.t.types[c];
        struct tn_value x;
        struct tn_value y;
        tn_row_get(&bed.t.layout, a, c, &x);
        tn_row_get(&bed.t.layout, b, c, &y);
        bool floats = type->kind == TN_TYPE_FLOAT || type->kind == TN_TYPE_DOUBLE;
        if (x.null != y.null ||
            (!x.null && (floats ? x.as.f64 != y.as.f64 : tn_value_compare(type, &x, &y) != 0))) {
            return false;
        }
    }
    return true;
}

static void add_change(struct expected *e, const struct tn_kv *kv, enum tn_row_kind kind)
{
    if (tell.told) {
        e->changes[e->change_count] = *kv;
        e->changes[e->change_count++].kind = kind;
    }
}

static void expect_change(struct expected *e, const struct tn_kv *was, const struct tn_kv *is)
{
    was = retracts_nothing(was);
    is = retracts_nothing(is);
    if (was && is && !(tell.change.deduplicate && equal(was->row, is->row))) {
        add_change(e, was, TN_ROW_UPDATE_BEFORE);
        add_change(e, is, TN_ROW_UPDATE_AFTER);
    } else if (was && !is) {
        add_change(e, was, TN_ROW_DELETE);
    } else if (is && !was) {
        add_change(e, is, TN_ROW_INSERT);
    }
}

/* The versions of one key that lie in the unit, and what is nearest in other levels. */
struct versions {
    struct tn_kv unit[16];
    uint32_t count;
    const struct tn_kv *upper;  /* of the unit's smallest level above 0 */
    const struct tn_kv *deeper; /* of the smallest level below the output */
    bool level0;
};

static void gather(uint32_t key, struct versions *v)
{
    *v = (struct versions){0};
    for (uint32_t i = 0; i < bed.version_counts[key]; i++) {
        const struct tn_kv *kv = &bed.versions[key][i];
        if (tell.in_unit[file_of(kv)]) {
            v->unit[v->count++] = *kv;
            v->level0 = v->level0 || kv->level == 0;
            v->upper = kv->level > 0 && (!v->upper || kv->level < v->upper->level) ? kv : v->upper;
        } else if (kv->level > spec.output_level) {
            v->deeper = !v->deeper || kv->level < v->deeper->level ? kv : v->deeper;
        }
    }
}

static void expect_lookup(const struct versions *v, struct expected *e)
{
    struct tn_kv group[16];
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->unit[i].level == 0) {
            group[count++] = v->unit[i];
        }
    }
    const struct tn_kv *was = v->upper ? v->upper : v->deeper;
    if (v->upper || (v->level0 && v->deeper)) {
        group[count++] = *was;
    }
    put_in_order(group, count);
    e->row = merge_all(group, count);
    e->there = true;
    if (v->level0) {
        expect_change(e, was, &e->row);
    }
}

static void expect_first_row(const struct versions *v, struct expected *e)
{
    struct tn_kv group[16];
    memcpy(group, v->unit, sizeof group);
    put_in_order(group, v->count);
    e->row = group[0];
    e->there = v->upper || !v->deeper;
    if (e->there && !v->upper) {
        add_change(e, &e->row, e->row.kind);
    }
}

static void expect_full(const struct versions *v, struct expected *e)
{
    struct tn_kv group[16];
    const struct tn_kv *was = NULL;
    for (uint32_t i = 0; i < v->count; i++) {
        group[i] = v->unit[i];
        was = group[i].level == 5 ? &v->unit[i] : was;
    }
    put_in_order(group, v->count);
    e->row = v->count == 1 ? group[0] : merge_all(group, v->count);
    e->there = true;
    if (v->count > 1 || !was) {
        expect_change(e, was, &e->row);
    }
}

static void expect(uint32_t key, struct expected *e)
{
    struct versions v;
    *e = (struct expected){.there = false};
    gather(key, &v);
    if (v.count == 0) {
        return;
    }
    switch (tell.mode->fold) {
    case TN_FOLD_LOOKUP:
        expect_lookup(&v, e);
        break;
    case TN_FOLD_FIRST_ROW:
        expect_first_row(&v, e);
        break;
    case TN_FOLD_FULL:
        expect_full(&v, e);
        break;
    case TN_FOLD_PLAIN:
    case TN_FOLD_NONE:
        CHECK(false);
    }
    bool drops = spec.drop_deletes && !is_moved_up(bed.files[file_of(&v.unit[0])]);
    e->there = e->there && !(drops && tn_row_kind_retracts(e->row.kind));
}

/* ---- what came of it ---- */

/* Rows of files, one after the other. */
struct files {
    const struct tn_file_meta *metas[4 * BED_KEYS_MAX];
    uint32_t count;
    uint32_t at;
    struct tn_data_reader reader;
    bool open;
    size_t mark;
};

static struct files rows_read;
static struct files changes_read;

static tn_rc next_row(struct files *f, struct tn_kv *kv)
{
    struct setup *s = &bed.s;
    for (;;) {
        if (!f->open && f->at == f->count) {
            return TN_ABSENT;
        }
        if (!f->open) {
            const struct tn_file_meta *m = f->metas[f->at++];
            const char *path = tn_arena_format(&s->arena, "%s%s", BED_DIR, m->file_name);
            f->mark = tn_arena_mark(&s->worker.arena);
            tn_rc rc = tn_data_reader_open(&f->reader, path, m->file_size, spec.output_level,
                                           &bed.t.schema, &bed.t.read, &s->worker, &s->err);
            CHECK_OK(rc, s->err);
            f->open = true;
        }
        tn_rc rc = tn_iter_next(&f->reader.iter, kv, &s->err);
        if (rc != TN_ABSENT) {
            return rc;
        }
        tn_iter_close(&f->reader.iter);
        tn_arena_reset(&s->worker.arena, f->mark);
        f->open = false;
    }
}

static void take_next(struct files *f, const struct tn_kv *want)
{
    struct tn_kv kv;
    tn_rc rc = next_row(f, &kv);
    CHECK_OK(rc, bed.s.err);
    CHECK(kv.sequence == want->sequence && kv.row.size == want->row.size);
    CHECK(memcmp(kv.row.data, want->row.data, kv.row.size) == 0);
    /* A row that is moved up with its file keeps its kind; a merged one is an insert. */
    bool adds = tell.mode->engine == TN_MERGE_PARTIAL_UPDATE && f == &rows_read;
    CHECK(adds ? !tn_row_kind_retracts(kv.kind) : kv.kind == want->kind);
}

static void add_metas(struct files *f, const struct tn_compact_output *outputs)
{
    *f = (struct files){.count = 0};
    for (const struct tn_compact_output *o = outputs; o; o = o->next) {
        CHECK(o->meta.level == spec.output_level && o->meta.file_source.value == 1);
        CHECK(f->count < COUNT(f->metas) && o->meta.row_count > 0);
        f->metas[f->count++] = &o->meta;
    }
}

/* Files that are moved up lie between those that were written. */
static void add_moved(struct files *f)
{
    for (uint32_t i = 0; i < compaction.file_count; i++) {
        for (uint32_t k = 0; compaction.upgraded[i] && k < bed.file_count; k++) {
            if (bed.files[k] == compaction.files[i]) {
                CHECK(f->count < COUNT(f->metas));
                f->metas[f->count++] = &bed.metas[k];
            }
        }
    }
    for (uint32_t i = 1; i < f->count; i++) {
        for (uint32_t j = i;
             j > 0 && tn_key_compare(&bed.keys, f->metas[j]->min_key, f->metas[j - 1]->min_key) < 0;
             j--) {
            const struct tn_file_meta *other = f->metas[j - 1];
            f->metas[j - 1] = f->metas[j];
            f->metas[j] = other;
        }
    }
}

static uint32_t check_told(void)
{
    uint32_t told = 0;
    struct tn_kv kv;
    add_metas(&rows_read, compaction.rows.first);
    add_metas(&changes_read, compaction.changes.first);
    add_moved(&rows_read);
    CHECK(tell.opened == 0);
    CHECK(files_on_disk() == bed.file_count + compaction.rows.count + compaction.changes.count);
    for (int pass = 0; pass < 2; pass++) { /* one file is open at a time */
        for (uint32_t key = 0; key < bed.t.row_count; key++) {
            size_t mark = tn_arena_mark(&bed.s.arena);
            struct expected e;
            expect(key, &e);
            if (pass == 0 && e.there) {
                take_next(&rows_read, &e.row);
            }
            for (uint32_t i = 0; pass == 1 && i < e.change_count; i++) {
                take_next(&changes_read, &e.changes[i]);
                told++;
            }
            tn_arena_reset(&bed.s.arena, mark);
        }
        CHECK(next_row(pass == 0 ? &rows_read : &changes_read, &kv) == TN_ABSENT);
    }
    return told;
}

static void begin_telling(uint64_t *seed)
{
    bed_begin(&bed, seed);
    bed.s.worker.arena.size = bed.s.worker.arena.used + TELL_WORKER_SIZE;
    bed.adds_only = tell.mode->engine != TN_MERGE_DEDUPLICATE;
    if (tell.mode->engine == TN_MERGE_FIRST_ROW) {
        bed.order.sequence_fields.count = 0;
    }
    bed_fill(&bed, seed);
    make_telling_spec(seed);
}

static tn_rc run_telling(uint64_t slice_size, uint64_t *seed, uint32_t *slices)
{
    tn_arena_reset(&arena, 0);
    tn_rc rc =
        tn_compaction_begin(&compaction, &spec, tell.unit, tell.unit_count, &arena, &bed.s.err);
    CHECK_OK(rc, bed.s.err);
    return run_slices(slice_size, seed, slices);
}

static void changes_are_what_became_of_each_key(void)
{
    uint64_t seed = given_number("SEED", 1);
    uint32_t told[COUNT(tell_modes)] = {0};
    uint32_t moved = 0;
    uint32_t most_slices = 0;
    for (uint32_t round = 0; round < 300; round++) {
        tell.mode = &tell_modes[round % COUNT(tell_modes)];
        begin_telling(&seed);
        if (tell.unit_count > 0) {
            static const uint64_t sizes[] = {UINT64_MAX, 0, 700};
            uint32_t slices;
            tn_rc rc = run_telling(sizes[round / COUNT(tell_modes) % COUNT(sizes)], &seed, &slices);
            CHECK_OK(rc, bed.s.err);
            told[round % COUNT(tell_modes)] += check_told();
            moved += compaction.upgraded_count;
            most_slices = slices > most_slices ? slices : most_slices;
            tn_compaction_abort(&compaction, bed.s.worker.io);
            CHECK(files_on_disk() == bed.file_count && open_files() == 0);
        }
        tn_levels_drop(&bed.heap, tell.deeper);
        bed_end(&bed);
    }
    for (uint32_t i = 0; i < COUNT(tell_modes); i++) {
        CHECK(told[i] > 100);
    }
    CHECK(moved > 0 && most_slices > 10);
}

static const struct test tests[] = {
    TEST(any_slices_give_what_was_there),
    TEST(a_failed_compaction_leaves_nothing_and_can_be_tried_again),
    TEST(too_little_memory_is_refused),
    TEST(changes_are_what_became_of_each_key),
};

int main(int argc, char **argv)
{
    tn_arena_init(&arena, malloc(ARENA_SIZE), ARENA_SIZE);
    return run_tests(argc, argv, tests, COUNT(tests));
}
