/* How a board's table becomes parts, at its own size and at others. */
#include "base/budget.h"

#include <sys/mman.h>

#include "check.h"

static const struct tn_part_spec specs[] = {
    {.name = "pages", .kind = TN_PART_POOL, .kib = 600, .kib_min = 100},
    {.name = "work", .kind = TN_PART_ARENA, .kib = 300, .kib_min = 200},
    {.name = "text", .kind = TN_PART_HEAP, .kib = 100, .kib_min = 80},
};
static const struct tn_board board = {
    .name = "test", .other_kib = 24, .part_count = COUNT(specs), .parts = specs};

static void open_at(struct tn_budget *budget, uint64_t kib)
{
    struct tn_err err;
    tn_rc rc = tn_budget_open(budget, &board, kib * 1024, &err);
    CHECK_OK(rc, err);
}

/* Each line is one --memory, and the KiB that the parts get of it. */
static void parts_scale_but_keep_their_minimum(void)
{
    static const struct {
        uint64_t memory;
        size_t kib[COUNT(specs)];
    } cases[] = {
        {0, {600, 300, 100}},  {1024, {600, 300, 100}}, {2024, {1200, 600, 200}},
        {724, {412, 204, 80}}, /* 620 of 700 for the first two, in whole pages */
        {524, {220, 200, 80}}, {404, {100, 200, 80}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_budget budget;
        open_at(&budget, cases[i].memory);
        size_t sum = 0;
        for (uint32_t j = 0; j < budget.part_count; j++) {
            size_t kib = budget.parts[j].size / 1024;
            CHECK(kib == cases[i].kib[j]);
            CHECK(budget.parts[j].base == budget.block + sum);
            sum += budget.parts[j].size;
        }
        CHECK(cases[i].memory == 0 || sum / 1024 + board.other_kib <= cases[i].memory);
        tn_budget_close(&budget);
    }
}

static void too_little_memory_names_the_size_that_would_do(void)
{
    struct tn_budget budget;
    struct tn_err err;
    tn_rc rc = tn_budget_open(&budget, &board, 403 * 1024, &err);
    CHECK(rc == TN_INVALID);
    CHECK(strcmp(err.text, "board test needs at least 404 KiB of memory, not 403") == 0);
    rc = tn_budget_open(&budget, &board, UINT64_MAX, &err);
    CHECK(rc == TN_INVALID);
}

static void a_part_knows_what_its_allocator_uses(void)
{
    struct tn_budget budget;
    open_at(&budget, 0);
    struct tn_pool pool;
    struct tn_arena arena;
    struct tn_heap heap;
    tn_budget_pool(&budget, "pages", &pool, 4096);
    tn_budget_arena(&budget, "work", &arena);
    tn_budget_heap(&budget, "text", &heap, false);

    void *page = tn_pool_take_run(&pool, 3);
    tn_pool_give(&pool, page);
    CHECK(tn_pool_take(&pool) != NULL);
    CHECK(tn_arena_take(&arena, 48) != NULL);
    void *text = tn_heap_take(&heap, 1000);
    CHECK(text != NULL);
    tn_heap_give(&heap, text);

    static const size_t expected[][2] = {{4096, 3 * 4096}, {48, 48}, {0, 1024}};
    for (uint32_t i = 0; i < budget.part_count; i++) {
        size_t used;
        size_t peak;
        tn_part_usage(&budget.parts[i], &used, &peak);
        CHECK(used == expected[i][0] && peak == expected[i][1]);
    }
    CHECK(tn_budget_part(&budget, "pages") == &budget.parts[0]);
    CHECK(tn_budget_part(&budget, "none") == NULL);
    tn_heap_deinit(&heap);
    tn_budget_close(&budget);
}

/* A part of another one takes its share of it, its minimum at least, and gives it back. */
static void a_part_of_another_is_carved_when_wanted(void)
{
    static const struct tn_part_spec nested[] = {
        {.name = "pages", .kind = TN_PART_POOL, .kib = 800, .kib_min = 100},
        {.name = "first", .kind = TN_PART_HEAP, .kib = 100, .kib_min = 40, .of = "pages"},
        {.name = "work", .kind = TN_PART_ARENA, .kib = 200, .kib_min = 200},
        {.name = "second", .kind = TN_PART_HEAP, .kib = 200, .kib_min = 40, .of = "pages"},
    };
    static const struct tn_board with = {
        .name = "test", .other_kib = 24, .part_count = COUNT(nested), .parts = nested};
    static const size_t cases[][4] = {
        {1024, 800, 100, 200}, {2024, 1600, 200, 400}, {424, 200, 40, 48}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tn_budget budget;
        struct tn_err err;
        tn_rc rc = tn_budget_open(&budget, &with, cases[i][0] * 1024, &err);
        CHECK_OK(rc, err);
        struct tn_part *pages = tn_budget_part(&budget, "pages");
        CHECK(pages->size == cases[i][1] * 1024);
        CHECK(tn_budget_part(&budget, "work")->base == pages->base + pages->size);
        struct tn_part *first = tn_budget_carve(&budget, "first");
        struct tn_part *second = tn_budget_carve(&budget, "second");
        CHECK(first->size == cases[i][2] * 1024 && second->size == cases[i][3] * 1024);
        CHECK(second->base == pages->base + pages->size);
        CHECK(first->base == second->base + second->size);
        struct tn_heap heap;
        tn_budget_heap(&budget, "first", &heap, false);
        memset(second->base, 1, second->size);
        tn_heap_check(&heap);
        tn_heap_deinit(&heap);
        tn_budget_join(&budget, "second");
        tn_budget_join(&budget, "first");
        CHECK(pages->size == cases[i][1] * 1024 && first->base == NULL);
        tn_budget_close(&budget);
    }
}

/* Every byte of every part, through its allocator. */
static void use_all(struct tn_budget *budget)
{
    struct tn_pool pool;
    struct tn_arena arena;
    struct tn_heap heap;
    void *block = NULL;
    tn_budget_pool(budget, "pages", &pool, 4096);
    tn_budget_arena(budget, "work", &arena);
    tn_budget_heap(budget, "text", &heap, false);
    CHECK(tn_pool_free(&pool) >= 24);
    while ((block = tn_pool_take(&pool)) != NULL) {
        CHECK((uintptr_t)block % 16 == 0);
        memset(block, 1, 4096);
    }
    size_t room = tn_arena_free(&arena) / 16 * 16;
    block = tn_arena_take(&arena, room);
    CHECK(block && room > 190 * 1024);
    memset(block, 2, room);
    for (size_t size = 64 * 1024; size >= 64; size /= 2) {
        while ((block = tn_heap_take(&heap, size)) != NULL) {
            memset(block, 3, size);
        }
    }
    tn_heap_check(&heap);
}

/* fluent/fluent-bit#9730: a system whose pages have 16 or 64 KB. Nothing in the block begins or
 * ends with a page, and nothing is touched beside it: there are pages that nobody may touch. */
static void parts_lie_well_on_pages_of_any_size(void)
{
    static const size_t pages[] = {4096, 16384, 65536};
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct tn_budget budget;
        struct tn_err err;
        size_t size = 1000 * (size_t)1024 / pages[i] * pages[i];
        size_t whole = size + 3 * pages[i];
        unsigned char *map =
            mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(map != MAP_FAILED);
        unsigned char *block = map + 2 * pages[i] - (uintptr_t)map % pages[i];
        CHECK(mprotect(block, size, PROT_READ | PROT_WRITE) == 0);
        CHECK_OK(tn_budget_open_on(&budget, &board, block, size, &err), err);
        use_all(&budget);
        tn_budget_close(&budget);
        CHECK(munmap(map, whole) == 0);
    }
}

static void the_board_of_this_build_fits_its_own_size(void)
{
    struct tn_budget budget;
    struct tn_err err;
    tn_rc rc = tn_budget_open(&budget, &tn_board, 0, &err);
    CHECK_OK(rc, err);
    for (uint32_t i = 0; i < budget.part_count; i++) {
        CHECK(budget.parts[i].size == (size_t)tn_board.parts[i].kib * 1024);
    }
    tn_budget_close(&budget);
}

static const struct test tests[] = {
    TEST(parts_scale_but_keep_their_minimum),
    TEST(too_little_memory_names_the_size_that_would_do),
    TEST(a_part_knows_what_its_allocator_uses),
    TEST(a_part_of_another_is_carved_when_wanted),
    TEST(parts_lie_well_on_pages_of_any_size),
    TEST(the_board_of_this_build_fits_its_own_size),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
