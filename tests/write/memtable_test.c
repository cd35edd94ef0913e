/* The memtable against a list of what must be in it: random puts into small pools, full pools, rows
 * that grow and shrink, and sorting of orders that make quicksorts slow. */
#include "write/memtable.h"

#include <time.h>

#include "base/poison.h"
#include "check.h"
#include "random.h"

enum {
    ARENA_SIZE = 1 << 20,
    KEYS_MAX = 3000,
    ROW_MAX = 70000,
    ID = 0,
    NAME = 1,
    FIRST = 2,
    TEXT = 3,
    COLUMNS = 4,
};

static const char *const names[COLUMNS] = {"id", "name", "first", "text"};
static uint32_t id_key[] = {ID};
static uint32_t name_key[] = {NAME};
static uint32_t first_field[] = {FIRST};

struct model_row {
    bool there;
    enum tn_row_kind kind;
    int64_t sequence;
    struct tn_row row; /* malloc's */
};

struct bed {
    struct tn_arena arena;
    struct tn_row_layout layout;
    struct tn_order order;
    struct tn_pool pool;
    void *pool_memory;
    struct tn_memtable memtable;
    struct model_row model[KEYS_MAX];
    uint32_t model_count;
    int64_t min_sequence;
    int64_t max_sequence;
    struct tn_err err;
};

static struct bed bed;

static void bed_begin(bool by_name, bool with_sequence, uint32_t page_size, uint32_t pages)
{
    bed = (struct bed){.min_sequence = INT64_MAX, .max_sequence = INT64_MIN};
    tn_arena_init(&bed.arena, malloc(ARENA_SIZE), ARENA_SIZE);
    struct tn_type types[COLUMNS];
    static const char *const texts[COLUMNS] = {"BIGINT", "STRING", "INT", "STRING"};
    for (int i = 0; i < COLUMNS; i++) {
        tn_rc rc = tn_type_parse(tn_bytes_of(texts[i]), &types[i], &bed.err);
        CHECK_OK(rc, bed.err);
        types[i].nullable = i >= FIRST;
    }
    tn_rc rc = tn_row_layout_init(&bed.layout, names, types, COLUMNS, &bed.arena, &bed.err);
    CHECK_OK(rc, bed.err);
    bed.order = (struct tn_order){.layout = &bed.layout,
                                  .keys = {by_name ? name_key : id_key, 1},
                                  .sequence_fields = {first_field, with_sequence ? 1 : 0},
                                  .prefix_decides = !by_name};
    size_t size = ((size_t)page_size + 5) * pages + 32;
    bed.pool_memory = malloc(size);
    tn_pool_init(&bed.pool, bed.pool_memory, size, page_size);
    CHECK(bed.pool.block_count >= pages);
    tn_memtable_init(&bed.memtable, &bed.pool, &bed.order, TN_MEMTABLE_NEWEST);
}

static void model_forget(void)
{
    for (uint32_t i = 0; i < KEYS_MAX; i++) {
        free((void *)bed.model[i].row.data);
    }
    memset(bed.model, 0, sizeof bed.model);
    bed.model_count = 0;
    bed.min_sequence = INT64_MAX;
    bed.max_sequence = INT64_MIN;
}

static void bed_end(void)
{
    tn_memtable_drop(&bed.memtable);
    CHECK(tn_pool_free(&bed.pool) == bed.pool.block_count);
    model_forget();
    tn_unpoison(bed.pool_memory, (size_t)bed.pool.block_count * bed.pool.block_size);
    free(bed.pool_memory);
    free(bed.arena.base);
}

/* Values in scattered order, so that a key's number tells nothing about its place. */
static int64_t id_of(uint32_t key)
{
    return (int64_t)((uint64_t)key * 0x9e3779b97f4a7c15U);
}

static struct tn_row make_row(uint32_t key, int64_t first, uint32_t text_size)
{
    static unsigned char data[ROW_MAX + 200];
    static unsigned char text[ROW_MAX];
    char name[40];
    int length = snprintf(name, sizeof name, "a-common-beginning-%u", key * 2654435761U);
    memset(text, (int)('a' + key % 26), text_size);
    struct tn_value values[COLUMNS] = {
        {.as.i64 = id_of(key)},
        {.as.bytes = {(unsigned char *)name, (size_t)length}},
        {.null = first < 0, .as.i64 = first < 0 ? 0 : first},
        {.null = text_size == 0, .as.bytes = {text, text_size}},
    };
    uint32_t size = tn_row_pack(&bed.layout, values, data);
    CHECK(size <= sizeof data);
    return (struct tn_row){data, size};
}

static void model_put(uint32_t key, struct tn_row row, enum tn_row_kind kind, int64_t sequence)
{
    struct model_row *m = &bed.model[key];
    bed.min_sequence = sequence < bed.min_sequence ? sequence : bed.min_sequence;
    bed.max_sequence = sequence > bed.max_sequence ? sequence : bed.max_sequence;
    if (m->there && tn_kv_compare_sequence_fields(&bed.order, row, m->row) < 0) {
        return;
    }
    bed.model_count += !m->there;
    free((void *)m->row.data);
    void *copy = malloc(row.size);
    memcpy(copy, row.data, row.size);
    *m = (struct model_row){true, kind, sequence, {copy, row.size}};
}

/* Which key a yielded row has, or KEYS_MAX. */
static uint32_t key_of(struct tn_row row)
{
    for (uint32_t key = 0; key < KEYS_MAX; key++) {
        const struct model_row *m = &bed.model[key];
        if (m->there && m->row.size == row.size && memcmp(m->row.data, row.data, row.size) == 0) {
            return key;
        }
    }
    return KEYS_MAX;
}

/* Freezes and sorts: each row of the model must come once, in key order. */
static void check_against_model(void)
{
    struct tn_memtable *m = &bed.memtable;
    CHECK(m->count == bed.model_count);
    CHECK(m->min_sequence == bed.min_sequence);
    CHECK(m->max_sequence == bed.max_sequence);
    CHECK(m->pages == bed.pool.used);
    tn_memtable_freeze(m);
    CHECK(m->pages == bed.pool.used);
    tn_memtable_sort(m);
    struct tn_memtable_iter iter;
    tn_memtable_iter_init(&iter, m);
    struct tn_kv before = {0};
    uint32_t count = 0;
    for (;; count++) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&iter.iter, &kv, &bed.err);
        if (rc == TN_ABSENT) {
            break;
        }
        CHECK_OK(rc, bed.err);
        uint32_t key = key_of(kv.row);
        CHECK(key < KEYS_MAX);
        CHECK(kv.kind == bed.model[key].kind);
        CHECK(kv.sequence == bed.model[key].sequence);
        CHECK(kv.level == -1);
        CHECK(kv.prefix == tn_row_prefix(&bed.layout, bed.order.keys, kv.row));
        CHECK(kv.row.size <= m->row_size_max);
        CHECK(count == 0 || tn_row_compare(&bed.layout, bed.order.keys, before.row, kv.row) < 0);
        before = kv;
    }
    CHECK(count == bed.model_count);
    tn_iter_close(&iter.iter);
}

static const uint32_t page_sizes[] = {64, 256, 1024, 4096, 65536};

/* Fills until AGAIN (or enough), compares, drops, and fills again. */
static void random_puts_give_what_the_model_has(void)
{
    uint32_t full_times = 0;
    for (uint64_t round = 0; round < 150; round++) {
        uint64_t seed = round;
        uint32_t page_size = page_sizes[random_below(&seed, COUNT(page_sizes))];
        uint32_t pages = 16 + random_below(&seed, (600 << 10) / page_size);
        bed_begin(random_below(&seed, 2) == 1, random_below(&seed, 2) == 1, page_size, pages);
        bed.order.sequence_descending = random_below(&seed, 2) == 1;
        uint32_t keys = 1 + random_below(&seed, random_below(&seed, 2) == 1 ? KEYS_MAX : 20);
        uint32_t puts = random_below(&seed, 4000);
        for (uint32_t i = 0; i < puts; i++) {
            uint32_t key = random_below(&seed, keys);
            uint32_t text = random_below(&seed, 20) == 0
                                ? random_below(&seed, 3 * page_size) % ROW_MAX
                                : random_below(&seed, 60);
            struct tn_row row = make_row(key, (int64_t)random_below(&seed, 5) - 1, text);
            enum tn_row_kind kind = (enum tn_row_kind)random_below(&seed, 4);
            tn_rc rc = tn_memtable_put(&bed.memtable, row, kind, (int64_t)i, &bed.err);
            if (rc == TN_INVALID) {
                CHECK(row.size > (size_t)page_size * bed.pool.block_count / 8);
            } else if (rc == TN_AGAIN) {
                full_times++;
                break;
            } else {
                CHECK_OK(rc, bed.err);
                model_put(key, row, kind, (int64_t)i);
            }
        }
        check_against_model();
        bed_end();
    }
    CHECK(full_times > 20);
}

/* AGAIN for a new key, and for a version that needs a larger place: all is as before, and smaller
 * rows still go in where there is room. */
static void a_full_pool_leaves_the_memtable_intact(void)
{
    for (uint32_t p = 0; p < COUNT(page_sizes); p++) {
        bed_begin(true, false, page_sizes[p], 24);
        tn_rc rc;
        uint32_t key = 0;
        int64_t sequence = 0;
        do {
            struct tn_row row = make_row(key, 1, 1);
            rc = tn_memtable_put(&bed.memtable, row, TN_ROW_INSERT, sequence, &bed.err);
            if (rc == TN_OK) {
                model_put(key++, row, TN_ROW_INSERT, sequence++);
            }
        } while (rc == TN_OK && key < KEYS_MAX);
        CHECK(key > 0);
        for (uint32_t i = 0; i < key && rc == TN_AGAIN; i++) {
            struct tn_row row = make_row(i, 2, 9 + i % 40);
            tn_rc again = tn_memtable_put(&bed.memtable, row, TN_ROW_DELETE, sequence, &bed.err);
            CHECK(again == TN_OK || again == TN_AGAIN || again == TN_INVALID);
            if (again == TN_OK) {
                model_put(i, row, TN_ROW_DELETE, sequence++);
            }
        }
        check_against_model();
        bed_end();
    }
}

/* A key whose row is long, short, long, ... takes as many pages as if it were always long. */
static void a_hot_key_that_grows_and_shrinks_takes_no_more_pages(void)
{
    bed_begin(false, false, 4096, 64);
    for (int64_t i = 0; i < 5000; i++) {
        struct tn_row row = make_row(7, 1, i % 2 == 0 ? 900 : 10);
        tn_rc rc = tn_memtable_put(&bed.memtable, row, TN_ROW_INSERT, i, &bed.err);
        CHECK_OK(rc, bed.err);
        model_put(7, row, TN_ROW_INSERT, i);
    }
    CHECK(bed.memtable.pages <= 3);
    check_against_model();
    bed_end();
}

static void a_row_that_can_never_fit_is_invalid(void)
{
    bed_begin(false, false, 1024, 64);
    struct tn_row row = make_row(1, 1, 64 * 1024 / 8 + 1);
    tn_rc rc = tn_memtable_put(&bed.memtable, row, TN_ROW_INSERT, 1, &bed.err);
    CHECK(rc == TN_INVALID);
    CHECK(bed.memtable.pages == 0);
    row = make_row(1, 1, 7000); /* a run of pages, and the largest row twice more */
    for (uint32_t key = 1; key <= 3; key++) {
        row = make_row(key, 1, 7000);
        rc = tn_memtable_put(&bed.memtable, row, TN_ROW_INSERT, key, &bed.err);
        CHECK_OK(rc, bed.err);
        model_put(key, row, TN_ROW_INSERT, key);
    }
    check_against_model();
    bed_end();
}

static void rows_without_keys_stay_in_order_of_arrival(void)
{
    bed_begin(false, false, 1024, 200);
    bed.order.keys.count = 0;
    bed.order.prefix_decides = false;
    uint32_t count = 0;
    for (; count < 1000; count++) {
        struct tn_row row = make_row(count % 10, 1, count % 50);
        tn_rc rc = tn_memtable_put(&bed.memtable, row, TN_ROW_INSERT, (int64_t)count, &bed.err);
        CHECK_OK(rc, bed.err);
    }
    tn_memtable_freeze(&bed.memtable);
    tn_memtable_sort(&bed.memtable);
    struct tn_memtable_iter iter;
    tn_memtable_iter_init(&iter, &bed.memtable);
    for (uint32_t i = 0; i < count; i++) {
        struct tn_kv kv;
        tn_rc rc = tn_iter_next(&iter.iter, &kv, &bed.err);
        CHECK_OK(rc, bed.err);
        struct tn_row row = make_row(i % 10, 1, i % 50);
        CHECK(kv.sequence == (int64_t)i && kv.row.size == row.size);
        CHECK(memcmp(kv.row.data, row.data, row.size) == 0);
    }
    bed_end();
}

/* ---- every version ---- */

enum { VERSIONS_MAX = 3000 };

struct version {
    uint32_t key;
    int64_t sequence;
    enum tn_row_kind kind;
    struct tn_row row; /* malloc's */
};

static struct version versions[VERSIONS_MAX];

/* The order said once more: key, sequence field (NULL first, whatever the direction), number. */
static int compare_versions(const void *a, const void *b)
{
    const struct version *x = a;
    const struct version *y = b;
    int c = tn_row_compare(&bed.layout, bed.order.keys, x->row, y->row);
    if (c == 0 && bed.order.sequence_fields.count > 0) {
        bool x_null = tn_row_null(x->row, FIRST);
        bool y_null = tn_row_null(y->row, FIRST);
        if (x_null || y_null) {
            c = (int)y_null - (int)x_null;
        } else {
            c = tn_row_compare(&bed.layout, bed.order.sequence_fields, x->row, y->row);
            c = bed.order.sequence_descending ? -c : c;
        }
    }
    return c != 0 ? c : x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void check_versions(uint32_t count)
{
    qsort(versions, count, sizeof *versions, compare_versions);
    tn_memtable_freeze(&bed.memtable);
    tn_memtable_sort(&bed.memtable);
    struct tn_memtable_iter iter;
    tn_memtable_iter_init(&iter, &bed.memtable);
    struct tn_kv kv;
    for (uint32_t i = 0; i < count; i++) {
        tn_rc rc = tn_iter_next(&iter.iter, &kv, &bed.err);
        CHECK_OK(rc, bed.err);
        CHECK(kv.sequence == versions[i].sequence && kv.kind == versions[i].kind);
        CHECK(kv.prefix == tn_row_prefix(&bed.layout, bed.order.keys, kv.row));
        CHECK(kv.row.size == versions[i].row.size);
        CHECK(memcmp(kv.row.data, versions[i].row.data, kv.row.size) == 0);
        free((void *)versions[i].row.data);
    }
    CHECK(tn_iter_next(&iter.iter, &kv, &bed.err) == TN_ABSENT);
}

/* Random puts of few and many keys; each version comes out once, a key's oldest first. */
static void every_version_is_kept_and_comes_oldest_first(void)
{
    for (uint64_t round = 0; round < 60; round++) {
        uint64_t seed = round + 500;
        bed_begin(random_below(&seed, 2) == 1, random_below(&seed, 2) == 1, 4096, 200);
        bed.order.sequence_descending = random_below(&seed, 2) == 1;
        tn_memtable_init(&bed.memtable, &bed.pool, &bed.order, TN_MEMTABLE_ALL);
        uint32_t keys = 1 + random_below(&seed, random_below(&seed, 2) == 1 ? 600 : 5);
        uint32_t puts = random_below(&seed, VERSIONS_MAX);
        for (uint32_t i = 0; i < puts; i++) {
            struct version *v = &versions[i];
            v->key = random_below(&seed, keys);
            v->sequence = i;
            v->kind = (enum tn_row_kind)random_below(&seed, 4);
            struct tn_row row =
                make_row(v->key, (int64_t)random_below(&seed, 5) - 1, random_below(&seed, 40));
            void *copy = malloc(row.size);
            memcpy(copy, row.data, row.size);
            v->row = (struct tn_row){copy, row.size};
            tn_rc rc = tn_memtable_put(&bed.memtable, row, v->kind, i, &bed.err);
            CHECK_OK(rc, bed.err);
        }
        CHECK(bed.memtable.count == puts && bed.memtable.hash_page_count == 0);
        check_versions(puts);
        bed_end();
    }
}

/* ---- sorting ---- */

enum { SORTED = 100000 };

/* Keys of eight digits: a number, a name that differs from its start, behind 8 bytes, or behind
 * more than the sort looks at before it compares rows. */
static const char *const beginnings[] = {
    NULL,
    "",
    "sensors-",
    "all these names begin alike, for more than forty bytes: ",
};

static void put_number(uint32_t number, const char *beginning)
{
    char name[80];
    int length = snprintf(name, sizeof name, "%s%08u-name", beginning ? beginning : "", number);
    struct tn_value values[COLUMNS] = {
        {.as.i64 = number},
        {.as.bytes = {(unsigned char *)name, (size_t)length}},
        {.null = true},
        {.null = true},
    };
    unsigned char data[128];
    struct tn_row row = {data, tn_row_pack(&bed.layout, values, data)};
    tn_rc rc = tn_memtable_put(&bed.memtable, row, TN_ROW_INSERT, 1, &bed.err);
    CHECK_OK(rc, bed.err);
}

static uint32_t in_order(uint32_t i)
{
    return i;
}

static uint32_t reversed(uint32_t i)
{
    return SORTED - 1 - i;
}

static uint32_t organ_pipe(uint32_t i)
{
    return i < SORTED / 2 ? 2 * i : 2 * (SORTED - 1 - i) + 1;
}

static uint32_t saw(uint32_t i)
{
    return i % 2 == 0 ? i / 2 : SORTED / 2 + i / 2;
}

/* Musser's order: the median of first, middle and last is always the second smallest. */
static uint32_t median_killer(uint32_t i)
{
    uint32_t half = SORTED / 2;
    if (i >= half) {
        return 2 * (i - half) + 1;
    }
    return i % 2 == 0 ? i : half + i - 1 + (half + i) % 2;
}

/* A permutation: odd multiplier, range a multiple of nothing in it. */
static uint32_t scattered(uint32_t i)
{
    return (uint32_t)((uint64_t)i * 7919 % SORTED);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double time_sort(uint32_t (*order)(uint32_t), const char *beginning)
{
    bed_begin(beginning != NULL, false, 65536, 900);
    for (uint32_t i = 0; i < SORTED; i++) {
        put_number(order(i), beginning);
    }
    tn_memtable_freeze(&bed.memtable);
    double begin = seconds();
    tn_memtable_sort(&bed.memtable);
    double taken = seconds() - begin;
    struct tn_memtable_iter iter;
    tn_memtable_iter_init(&iter, &bed.memtable);
    struct tn_kv kv;
    struct tn_kv before = {0};
    for (uint32_t i = 0; tn_iter_next(&iter.iter, &kv, &bed.err) == TN_OK; i++) {
        CHECK(i == 0 || tn_kv_compare(&bed.order, &before, &kv) < 0);
        CHECK(kv.prefix == tn_row_prefix(&bed.layout, bed.order.keys, kv.row));
        before = kv;
    }
    bed_end();
    return taken;
}

/* Orders that cost a plain quicksort n * n steps (at least 30 times what scattered rows cost). */
static void no_order_of_arrival_makes_the_sort_slow(void)
{
    static uint32_t (*const orders[])(uint32_t) = {in_order, reversed, organ_pipe, saw,
                                                   median_killer};
    for (size_t kind = 0; kind < COUNT(beginnings); kind++) {
        double usual = time_sort(scattered, beginnings[kind]);
        for (size_t i = 0; i < COUNT(orders); i++) {
            double taken = time_sort(orders[i], beginnings[kind]);
            if (taken > 10 * usual + 0.05) {
                FAIL("order %zu of kind %zu: %.3f s, %.3f s scattered", i, kind, taken, usual);
            }
        }
    }
}

static const struct test tests[] = {
    TEST(random_puts_give_what_the_model_has),
    TEST(a_full_pool_leaves_the_memtable_intact),
    TEST(a_hot_key_that_grows_and_shrinks_takes_no_more_pages),
    TEST(a_row_that_can_never_fit_is_invalid),
    TEST(rows_without_keys_stay_in_order_of_arrival),
    TEST(every_version_is_kept_and_comes_oldest_first),
    TEST(no_order_of_arrival_makes_the_sort_slow),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
