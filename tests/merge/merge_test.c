/* Merge and fold against a sorted list: random sources, every group complete and in order, stopping
 * and going on, sources that go back, and the rules of which version is the newest. */
#include "merge/fold.h"

#include "check.h"
#include "random.h"

enum {
    SOURCES_MAX = 12,
    ROWS_MAX = 400, /* of a source */
    ARENA_SIZE = 8 << 20,
    ID = 0,
    NAME = 1,
    FIRST = 2,
    SECOND = 3,
    COLUMNS = 4,
};

static const char *const names[COLUMNS] = {"id", "name", "first", "second"};
static uint32_t id_key[] = {ID};
static uint32_t name_key[] = {NAME};
static uint32_t both_sequences[] = {FIRST, SECOND};

/* A list of rows as a cursor; each row is copied to a place that the next call overwrites. */
struct list {
    struct tn_iter iter; /* first */
    const struct tn_kv *rows;
    uint32_t count;
    uint32_t at;
    uint32_t fail_at; /* gives IO there once; UINT32_MAX: never */
    unsigned char row[256];
};

static tn_rc list_next(struct tn_iter *iter, struct tn_kv *kv, struct tn_err *err)
{
    struct list *list = (struct list *)iter;
    memset(list->row, 0xEE, sizeof list->row); /* what was given before is gone */
    if (list->at == list->fail_at) {
        list->fail_at = UINT32_MAX;
        return tn_err_set(err, TN_IO, 0, "a broken source");
    }
    if (list->at == list->count) {
        return TN_ABSENT;
    }
    *kv = list->rows[list->at++];
    CHECK(kv->row.size <= sizeof list->row);
    memcpy(list->row, kv->row.data, kv->row.size);
    kv->row.data = list->row;
    return TN_OK;
}

static void list_close(struct tn_iter *iter)
{
    (void)iter;
}

static const struct tn_iter_vtable list_vtable = {list_next, NULL, list_close, NULL};

struct bed {
    struct tn_arena arena;
    struct tn_row_layout layout;
    struct tn_order order;
    struct list lists[SOURCES_MAX];
    struct tn_iter *iters[SOURCES_MAX];
    uint32_t source_count;
    struct tn_kv *all; /* of all sources, in key order */
    uint32_t all_count;
    struct tn_err err;
};

static struct bed *sorted; /* for qsort */

static int compare(const void *a, const void *b)
{
    return tn_kv_compare(&sorted->order, a, b);
}

static void bed_begin(struct bed *bed, bool by_name, bool with_sequence)
{
    *bed = (struct bed){0};
    tn_arena_init(&bed->arena, malloc(ARENA_SIZE), ARENA_SIZE);
    struct tn_type types[COLUMNS];
    static const char *const texts[COLUMNS] = {"INT", "STRING", "INT", "BIGINT"};
    for (int i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(texts[i]), &types[i], &bed->err);
        CHECK_OK(rc, bed->err);
        types[i].nullable = i >= FIRST;
    }
    tn_rc rc = tn_row_layout_init(&bed->layout, names, types, COLUMNS, &bed->arena, &bed->err);
    CHECK_OK(rc, bed->err);
    bed->order = (struct tn_order){.layout = &bed->layout,
                                   .keys = {by_name ? name_key : id_key, 1},
                                   .sequence_fields = {both_sequences, with_sequence ? 2 : 0},
                                   .prefix_decides = !by_name};
    CHECK(tn_row_prefix_decides(&bed->layout, bed->order.keys) == !by_name);
}

static void bed_end(struct bed *bed)
{
    free(bed->arena.base);
}

/* Values of sequence fields: -1 stands for NULL. */
static struct tn_kv make_row(struct bed *bed, int64_t id, int64_t first, int64_t second,
                             int64_t sequence, enum tn_row_kind kind, int32_t level)
{
    char name[32]; /* all begin alike, so that prefixes are equal */
    (void)snprintf(name, sizeof name, "sensor-name-%08lld", (long long)id);
    struct tn_value values[COLUMNS] = {
        {.as.i64 = id},
        {.as.bytes = tn_bytes_of(name)},
        {.null = first < 0, .as.i64 = first < 0 ? 0 : first},
        {.null = second < 0, .as.i64 = second < 0 ? 0 : second},
    };
    uint32_t size = tn_row_packed_size(&bed->layout, values);
    unsigned char *data = tn_arena_take(&bed->arena, size);
    CHECK(data);
    (void)tn_row_pack(&bed->layout, values, data);
    struct tn_kv kv = {.row = {data, size}, .sequence = sequence, .kind = kind, .level = level};
    kv.prefix = tn_row_prefix(&bed->layout, bed->order.keys, kv.row);
    return kv;
}

/* `sequence` names the version: unique over all sources. */
static void fill_random(struct bed *bed, uint64_t *seed)
{
    bed->source_count = random_below(seed, SOURCES_MAX + 1);
    uint32_t range = 1 + random_below(seed, 600);
    bed->all = tn_arena_take(&bed->arena, SOURCES_MAX * ROWS_MAX * sizeof *bed->all);
    bed->all_count = 0;
    CHECK(bed->all);
    for (uint32_t s = 0; s < bed->source_count; s++) {
        uint32_t count = random_below(seed, 4) == 0 ? 0 : random_below(seed, ROWS_MAX);
        uint32_t from = bed->all_count;
        int64_t id = -50;
        for (uint32_t i = 0; i < count; i++) {
            id += 1 + random_below(seed, 1 + range / (1 + count / 4));
            bed->all[bed->all_count] = make_row(
                bed, id, (int64_t)random_below(seed, 4) - 1, (int64_t)random_below(seed, 3) - 1,
                (int64_t)bed->all_count, (enum tn_row_kind)random_below(seed, 4), (int32_t)s);
            bed->all_count++;
        }
        /* names of negative numbers are in another order than the numbers */
        sorted = bed;
        qsort(bed->all + from, count, sizeof *bed->all, compare);
        struct tn_kv *own = tn_arena_take(&bed->arena, count * sizeof *own + 1);
        CHECK(own);
        memcpy(own, bed->all + from, count * sizeof *own);
        bed->lists[s] = (struct list){
            .iter = {&list_vtable}, .rows = own, .count = count, .fail_at = UINT32_MAX};
        bed->iters[s] = &bed->lists[s].iter;
    }
    sorted = bed;
    qsort(bed->all, bed->all_count, sizeof *bed->all, compare);
}

static bool same(const struct tn_kv *a, const struct tn_kv *b)
{
    return a->sequence == b->sequence && a->kind == b->kind && a->level == b->level &&
           a->prefix == b->prefix && a->row.size == b->row.size &&
           memcmp(a->row.data, b->row.data, a->row.size) == 0;
}

/* The versions of one key in the model, from `at`. */
static uint32_t versions_at(const struct bed *bed, uint32_t at)
{
    uint32_t count = 1;
    while (at + count < bed->all_count &&
           tn_kv_compare(&bed->order, &bed->all[at], &bed->all[at + count]) == 0) {
        count++;
    }
    return count;
}

static void check_group(const struct bed *bed, uint32_t at, const struct tn_kv *const *group,
                        uint32_t count)
{
    CHECK(at < bed->all_count);
    CHECK(count == versions_at(bed, at));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t found = 0;
        for (uint32_t k = 0; k < count; k++) {
            found += same(group[i], &bed->all[at + k]);
        }
        CHECK(found == 1);
    }
}

/* Reads all groups; every `settle_every` groups the merge is settled and a new one goes on with
 * what the sources have left, as a compaction does between slices (0: never). */
static void run_merge(struct bed *bed, uint32_t settle_every)
{
    struct tn_merge merge;
    size_t mark = tn_arena_mark(&bed->arena);
    tn_rc rc = tn_merge_init(&merge, &bed->order, TN_MERGE_GROUPS, bed->iters, bed->source_count,
                             &bed->arena, &bed->err);
    CHECK_OK(rc, bed->err);
    CHECK(tn_arena_mark(&bed->arena) - mark <= tn_merge_size(bed->source_count));
    uint32_t at = 0;
    for (uint32_t groups = 1;; groups++) {
        const struct tn_kv *const *group;
        uint32_t count;
        rc = tn_merge_next(&merge, &group, &count, &bed->err);
        if (rc == TN_ABSENT) {
            break;
        }
        CHECK_OK(rc, bed->err);
        check_group(bed, at, group, count);
        at += count;
        if (settle_every > 0 && groups % settle_every == 0) {
            rc = tn_merge_settle(&merge, &bed->err);
            CHECK_OK(rc, bed->err);
            rc = tn_merge_settle(&merge, &bed->err); /* settled already: nothing moves */
            CHECK_OK(rc, bed->err);
            for (uint32_t s = 0; s < bed->source_count; s++) {
                /* each source has given one row that the merge holds as a head, or has ended */
                struct list *list = &bed->lists[s];
                bool holds = false;
                for (uint32_t h = 0; h < merge.heap_count; h++) {
                    holds = holds || merge.heap[h] == s;
                }
                CHECK(holds || list->at == list->count);
                list->at -= holds;
            }
            tn_arena_reset(&bed->arena, mark);
            rc = tn_merge_init(&merge, &bed->order, TN_MERGE_GROUPS, bed->iters, bed->source_count,
                               &bed->arena, &bed->err);
            CHECK_OK(rc, bed->err);
        }
    }
    CHECK(at == bed->all_count);
    const struct tn_kv *const *group;
    uint32_t count;
    rc = tn_merge_next(&merge, &group, &count, &bed->err); /* stays at the end */
    CHECK(rc == TN_ABSENT);
    tn_arena_reset(&bed->arena, mark);
}

static void groups_are_complete_and_in_order(void)
{
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t seed = round;
        static struct bed bed;
        bed_begin(&bed, random_below(&seed, 2) == 1, false);
        fill_random(&bed, &seed);
        run_merge(&bed, 0);
        bed_end(&bed);
    }
}

static void a_settled_merge_goes_on_with_the_unread_rows(void)
{
    for (uint64_t round = 0; round < 100; round++) {
        uint64_t seed = round + 1000;
        static struct bed bed;
        bed_begin(&bed, random_below(&seed, 2) == 1, false);
        fill_random(&bed, &seed);
        run_merge(&bed, 1 + random_below(&seed, 7));
        bed_end(&bed);
    }
}

static void a_source_that_goes_back_is_corrupt(void)
{
    static struct bed bed;
    bed_begin(&bed, false, false);
    static const int64_t ids[2][4] = {{1, 5, 4, 9}, {2, 3, 5, 6}};
    struct tn_kv rows[2][4];
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < 4; i++) {
            rows[s][i] = make_row(&bed, ids[s][i], -1, -1, i, TN_ROW_INSERT, s);
        }
        bed.lists[s] = (struct list){
            .iter = {&list_vtable}, .rows = rows[s], .count = 4, .fail_at = UINT32_MAX};
        bed.iters[s] = &bed.lists[s].iter;
    }
    struct tn_merge merge;
    tn_rc rc =
        tn_merge_init(&merge, &bed.order, TN_MERGE_GROUPS, bed.iters, 2, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    const struct tn_kv *const *group;
    uint32_t count;
    uint32_t groups = 0;
    while ((rc = tn_merge_next(&merge, &group, &count, &bed.err)) == TN_OK) {
        groups++;
    }
    CHECK(rc == TN_CORRUPT);
    CHECK(groups == 4); /* 1, 2, 3, 5 */
    bed_end(&bed);
}

static void an_error_of_a_source_is_passed_on(void)
{
    for (uint64_t round = 0; round < 60; round++) {
        uint64_t seed = round + 2000;
        static struct bed bed;
        bed_begin(&bed, false, false);
        fill_random(&bed, &seed);
        if (bed.source_count > 0) {
            struct list *list = &bed.lists[random_below(&seed, bed.source_count)];
            list->fail_at = random_below(&seed, list->count + 1);
            struct tn_merge merge;
            const struct tn_kv *const *group;
            uint32_t count;
            tn_rc rc = tn_merge_init(&merge, &bed.order, TN_MERGE_GROUPS, bed.iters,
                                     bed.source_count, &bed.arena, &bed.err);
            while (rc == TN_OK) {
                rc = tn_merge_next(&merge, &group, &count, &bed.err);
            }
            CHECK(rc == TN_IO);
        }
        bed_end(&bed);
    }
}

static void a_merge_without_memory_is_refused(void)
{
    static struct bed bed;
    bed_begin(&bed, false, false);
    unsigned char memory[64];
    struct tn_arena small;
    tn_arena_init(&small, memory, sizeof memory);
    uint64_t seed = 5;
    do {
        fill_random(&bed, &seed);
    } while (bed.source_count < 2);
    struct tn_merge merge;
    tn_rc rc = tn_merge_init(&merge, &bed.order, TN_MERGE_GROUPS, bed.iters, bed.source_count,
                             &small, &bed.err);
    CHECK(rc == TN_AGAIN);
    bed_end(&bed);
}

/* ---- version by version ---- */

static int compare_full(const void *a, const void *b)
{
    int c = compare(a, b);
    return c != 0 ? c : tn_kv_newer(&sorted->order, b, a) ? -1 : 1;
}

/* Sources of level 0 hold a key any number of times, deeper ones once; sequence numbers repeat
 * nowhere. */
static void fill_repeated(struct bed *bed, uint64_t *seed)
{
    bed->source_count = random_below(seed, SOURCES_MAX + 1);
    bed->all = tn_arena_take(&bed->arena, SOURCES_MAX * ROWS_MAX * sizeof *bed->all);
    bed->all_count = 0;
    CHECK(bed->all);
    uint32_t step = 1 + random_below(seed, 5);
    for (uint32_t s = 0; s < bed->source_count; s++) {
        uint32_t count = random_below(seed, ROWS_MAX / 4);
        uint32_t from = bed->all_count;
        int32_t level = s < 4 ? (int32_t)s : 0;
        int64_t id = 0;
        for (uint32_t i = 0; i < count; i++) {
            id += (level > 0) + random_below(seed, step);
            bed->all[bed->all_count] = make_row(bed, id, (int64_t)random_below(seed, 4) - 1,
                                                (int64_t)random_below(seed, 3) - 1,
                                                (int64_t)(bed->all_count * 7919 % 4801),
                                                (enum tn_row_kind)random_below(seed, 4), level);
            bed->all_count++;
        }
        sorted = bed;
        qsort(bed->all + from, count, sizeof *bed->all, compare_full);
        struct tn_kv *own = tn_arena_take(&bed->arena, count * sizeof *own + 1);
        CHECK(own);
        memcpy(own, bed->all + from, count * sizeof *own);
        bed->lists[s] = (struct list){
            .iter = {&list_vtable}, .rows = own, .count = count, .fail_at = UINT32_MAX};
        bed->iters[s] = &bed->lists[s].iter;
    }
    sorted = bed;
    qsort(bed->all, bed->all_count, sizeof *bed->all, compare_full);
}

static int32_t model_level(const struct bed *bed, uint32_t at)
{
    int32_t level = INT32_MAX;
    for (uint32_t i = at; i < at + versions_at(bed, at); i++) {
        int32_t own = bed->all[i].level;
        level = own > 0 && own < level ? own : level;
    }
    return level;
}

/* All versions in full order, and at the first of each key the smallest level above 0. */
static void versions_come_oldest_first(void)
{
    uint32_t deep = 0;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t seed = round + 4000;
        static struct bed bed;
        bed_begin(&bed, random_below(&seed, 2) == 1, random_below(&seed, 2) == 1);
        bed.order.sequence_descending = random_below(&seed, 2) == 1;
        fill_repeated(&bed, &seed);
        struct tn_merge merge;
        tn_rc rc = tn_merge_init(&merge, &bed.order, TN_MERGE_VERSIONS, bed.iters, bed.source_count,
                                 &bed.arena, &bed.err);
        CHECK_OK(rc, bed.err);
        uint32_t next_key = 0;
        for (uint32_t at = 0; at < bed.all_count; at++) {
            if (at == next_key) {
                int32_t level = tn_merge_level(&merge);
                CHECK(level == model_level(&bed, at));
                deep += level != INT32_MAX;
                next_key += versions_at(&bed, at);
            }
            const struct tn_kv *head = tn_merge_head(&merge);
            CHECK(head && same(head, &bed.all[at]));
            rc = tn_merge_step(&merge, &bed.err);
            CHECK_OK(rc, bed.err);
        }
        CHECK(!tn_merge_head(&merge));
        bed_end(&bed);
    }
    CHECK(deep > 1000);
}

/* ---- which version is the newest ---- */

struct version {
    int64_t first, second, sequence;
    enum tn_row_kind kind;
    int32_t level;
};

/* Each line: the left one is newer than the right one. */
static const struct {
    bool with_sequence;
    bool descending;
    struct version newer, older;
} pairs[] = {
    {false, false, {1, 1, 9, TN_ROW_INSERT, 0}, {9, 9, 8, TN_ROW_INSERT, 0}},
    {true, false, {2, 1, 1, TN_ROW_INSERT, 5}, {1, 9, 9, TN_ROW_INSERT, 0}},
    {true, true, {1, 1, 1, TN_ROW_INSERT, 5}, {2, 9, 9, TN_ROW_INSERT, 0}},
    {true, false, {2, 2, 1, TN_ROW_INSERT, 5}, {2, 1, 9, TN_ROW_INSERT, 0}},
    {true, true, {2, 1, 1, TN_ROW_INSERT, 5}, {2, 2, 9, TN_ROW_INSERT, 0}},
    /* NULL is older both ways; two NULLs decide nothing */
    {true, false, {0, 1, 1, TN_ROW_INSERT, 5}, {-1, 9, 9, TN_ROW_INSERT, 0}},
    {true, true, {0, 1, 1, TN_ROW_INSERT, 5}, {-1, 9, 9, TN_ROW_INSERT, 0}},
    {true, false, {-1, 2, 1, TN_ROW_INSERT, 5}, {-1, 1, 9, TN_ROW_INSERT, 0}},
    {true, true, {-1, 1, 1, TN_ROW_INSERT, 5}, {-1, -1, 9, TN_ROW_INSERT, 0}},
    /* a tie of the fields: by number; of the numbers: an add behind a retract; then by level */
    {true, false, {3, 3, 9, TN_ROW_DELETE, 5}, {3, 3, 8, TN_ROW_INSERT, 0}},
    {true, true, {-1, -1, 9, TN_ROW_INSERT, 5}, {-1, -1, 8, TN_ROW_INSERT, 0}},
    {true, false, {3, 3, 8, TN_ROW_INSERT, 5}, {3, 3, 8, TN_ROW_DELETE, 0}},
    {false, false, {1, 1, 8, TN_ROW_UPDATE_AFTER, 5}, {1, 1, 8, TN_ROW_UPDATE_BEFORE, 0}},
    {false, false, {1, 1, 8, TN_ROW_INSERT, -1}, {1, 1, 8, TN_ROW_INSERT, 0}},
    {false, false, {1, 1, 8, TN_ROW_DELETE, 1}, {1, 1, 8, TN_ROW_UPDATE_BEFORE, 4}},
};

static void the_newest_version_wins_by_the_rules(void)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        static struct bed bed;
        bed_begin(&bed, i % 2 == 1, pairs[i].with_sequence);
        bed.order.sequence_descending = pairs[i].descending;
        const struct version *v[2] = {&pairs[i].newer, &pairs[i].older};
        struct tn_kv kv[2];
        for (int k = 0; k < 2; k++) {
            kv[k] = make_row(&bed, 7, v[k]->first, v[k]->second, v[k]->sequence, v[k]->kind,
                             v[k]->level);
        }
        CHECK(tn_kv_newer(&bed.order, &kv[0], &kv[1]));
        CHECK(!tn_kv_newer(&bed.order, &kv[1], &kv[0]));
        CHECK(tn_kv_compare(&bed.order, &kv[0], &kv[1]) == 0);
        bed_end(&bed);
    }
}

/* ---- fold ---- */

/* The rules, said once more and slowly: among versions that count, the one nobody is newer than. */
static const struct tn_kv *model_newest(const struct bed *bed, uint32_t at, uint32_t count,
                                        bool ignore_delete)
{
    const struct tn_kv *best = NULL;
    for (int pass = 0; pass < 2 && !best; pass++) { /* only retracts: the newest of them */
        for (uint32_t i = at; i < at + count; i++) {
            bool skip = pass == 0 && ignore_delete && tn_row_kind_retracts(bed->all[i].kind);
            if (!skip && (!best || tn_kv_newer(&bed->order, &bed->all[i], best))) {
                best = &bed->all[i];
            }
        }
    }
    return best;
}

static void a_fold_yields_the_newest_version_of_each_key(void)
{
    uint32_t rows = 0;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t seed = round + 3000;
        static struct bed bed;
        bed_begin(&bed, random_below(&seed, 2) == 1, random_below(&seed, 2) == 1);
        bed.order.sequence_descending = random_below(&seed, 2) == 1;
        fill_random(&bed, &seed);
        bool ignore_delete = random_below(&seed, 2) == 1;
        bool drop_deletes = random_below(&seed, 2) == 1;
        struct tn_merge merge;
        struct tn_fold fold;
        tn_rc rc = tn_merge_init(&merge, &bed.order, TN_MERGE_GROUPS, bed.iters, bed.source_count,
                                 &bed.arena, &bed.err);
        CHECK_OK(rc, bed.err);
        struct tn_fold_spec spec = {.ignore_delete = ignore_delete, .drop_deletes = drop_deletes};
        rc = tn_fold_init(&fold, &merge, &spec, &bed.arena, &bed.err);
        CHECK_OK(rc, bed.err);
        for (uint32_t at = 0; at < bed.all_count;) {
            uint32_t count = versions_at(&bed, at);
            const struct tn_kv *want = model_newest(&bed, at, count, ignore_delete);
            at += count;
            if (drop_deletes && tn_row_kind_retracts(want->kind)) {
                continue;
            }
            struct tn_kv kv;
            rc = tn_iter_next(&fold.iter, &kv, &bed.err);
            CHECK_OK(rc, bed.err);
            CHECK(same(&kv, want));
            rows++;
        }
        struct tn_kv kv;
        rc = tn_iter_next(&fold.iter, &kv, &bed.err);
        CHECK(rc == TN_ABSENT);
        tn_iter_close(&fold.iter);
        bed_end(&bed);
    }
    CHECK(rows > 10000);
}

/* A delete that is alone goes through as it is, ignore-delete or not. */
static void a_lone_retract_passes_the_fold(void)
{
    static struct bed bed;
    bed_begin(&bed, false, false);
    struct tn_kv rows[] = {make_row(&bed, 1, -1, -1, 5, TN_ROW_DELETE, 0),
                           make_row(&bed, 2, -1, -1, 6, TN_ROW_UPDATE_BEFORE, 0)};
    bed.lists[0] =
        (struct list){.iter = {&list_vtable}, .rows = rows, .count = 2, .fail_at = UINT32_MAX};
    bed.iters[0] = &bed.lists[0].iter;
    struct tn_merge merge;
    struct tn_fold fold;
    tn_rc rc =
        tn_merge_init(&merge, &bed.order, TN_MERGE_GROUPS, bed.iters, 1, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    struct tn_fold_spec spec = {.ignore_delete = true};
    rc = tn_fold_init(&fold, &merge, &spec, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tn_kv kv;
        rc = tn_iter_next(&fold.iter, &kv, &bed.err);
        CHECK_OK(rc, bed.err);
        CHECK(same(&kv, &rows[i]));
    }
    bed_end(&bed);
}

static const struct test tests[] = {
    TEST(groups_are_complete_and_in_order),     TEST(a_settled_merge_goes_on_with_the_unread_rows),
    TEST(versions_come_oldest_first),           TEST(a_source_that_goes_back_is_corrupt),
    TEST(an_error_of_a_source_is_passed_on),    TEST(a_merge_without_memory_is_refused),
    TEST(the_newest_version_wins_by_the_rules), TEST(a_fold_yields_the_newest_version_of_each_key),
    TEST(a_lone_retract_passes_the_fold),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
