/* A heap under random calls, checked as a whole all along. */
#include "base/heap.h"

#include <stdint.h>

#include "check.h"
#include "random.h"

enum { HEAP_SIZE = 65536, BLOCKS = 200, STEPS = 50000 };

static _Alignas(16) unsigned char memory[HEAP_SIZE];

struct block {
    unsigned char *at;
    size_t size;
    unsigned char fill;
};

static void check_fill(const struct block *block, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        CHECK(block->at[i] == block->fill);
    }
}

static void resize_one(struct tn_heap *heap, struct block *block, size_t size, unsigned char fill)
{
    unsigned char *moved = tn_heap_resize(heap, block->at, size);
    if (!moved) { /* as with realloc the old block stays */
        return;
    }
    CHECK((uintptr_t)moved % 16 == 0);
    size_t kept = block->size < size ? block->size : size;
    block->at = moved;
    check_fill(block, kept);
    *block = (struct block){.at = moved, .size = size, .fill = fill};
    memset(moved, fill, size);
}

static void run_random(struct tn_heap *heap, uint64_t seed)
{
    static struct block blocks[BLOCKS];
    memset(blocks, 0, sizeof blocks);
    for (int step = 0; step < STEPS; step++) {
        struct block *block = &blocks[random_below(&seed, BLOCKS)];
        if (random_below(&seed, 2) == 0) {
            size_t size = 1 + random_below(&seed, random_below(&seed, 50) == 0 ? 20000 : 600);
            resize_one(heap, block, size, (unsigned char)step);
        } else if (block->at) {
            check_fill(block, block->size);
            tn_heap_give(heap, block->at);
            *block = (struct block){0};
        }
        if (step % 100 == 0) {
            tn_heap_check(heap);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        tn_heap_give(heap, blocks[i].at);
    }
    tn_heap_check(heap);
}

/* Also: after everything came back the heap is one piece again. */
static void blocks_never_overlap_and_free_neighbours_join(void)
{
    for (size_t seed = 1; seed <= 5; seed++) {
        struct tn_heap heap;
        tn_heap_init(&heap, memory + seed, sizeof memory - seed, seed % 2 == 0);
        void *whole = tn_heap_take(&heap, sizeof memory - 100);
        CHECK(whole != NULL);
        tn_heap_give(&heap, whole);
        run_random(&heap, seed);
        CHECK(heap.used == 0);
        CHECK(heap.failed > 0);
        CHECK(heap.peak <= sizeof memory);
        whole = tn_heap_take(&heap, sizeof memory - 100);
        CHECK(whole != NULL);
        tn_heap_deinit(&heap);
    }
}

/* As Lua's tables: a large block moves, and small ones, of which each lives for a while, come in
 * between. Less than half of the memory is taken at any time. */
static void small_blocks_leave_room_for_large_ones(void)
{
    enum { SMALL = 120, LARGE_SIZE = 12000, MOVES = 20000 };
    void *small[SMALL] = {NULL};
    struct tn_heap heap;
    size_t random = 1;
    tn_heap_init(&heap, memory, sizeof memory, false);
    void *large = tn_heap_take(&heap, LARGE_SIZE);
    for (int i = 0; i < MOVES; i++) {
        void *moved = tn_heap_take(&heap, LARGE_SIZE);
        CHECK(moved != NULL);
        tn_heap_give(&heap, large);
        large = moved;
        for (int j = 0; j < 3; j++) {
            random = random * 1103515245 + 12345;
            void **one = &small[(random >> 16) % SMALL];
            tn_heap_give(&heap, *one);
            *one = tn_heap_take(&heap, 16 + (random >> 8) % 32);
            CHECK(*one != NULL);
        }
        CHECK(heap.used < sizeof memory / 2);
    }
    tn_heap_check(&heap);
    tn_heap_deinit(&heap);
}

static void drop_forgets_what_a_library_leaked(void)
{
    struct tn_heap heap;
    tn_heap_init(&heap, memory, sizeof memory, true);
    while (tn_heap_take(&heap, 1000)) {
    }
    CHECK(heap.used > sizeof memory - 1100);
    tn_heap_drop(&heap);
    tn_heap_check(&heap);
    CHECK(heap.used == 0);
    CHECK(heap.peak > sizeof memory - 1100);
    CHECK(tn_heap_take(&heap, sizeof memory - 100) != NULL);
    tn_heap_deinit(&heap);
}

static void resize_follows_realloc(void)
{
    struct tn_heap heap;
    tn_heap_init(&heap, memory, sizeof memory, false);
    char *block = tn_heap_resize(&heap, NULL, 10);
    CHECK(block != NULL);
    memcpy(block, "123456789", 10);
    CHECK(tn_heap_resize(&heap, block, SIZE_MAX) == NULL);
    CHECK(tn_heap_resize(&heap, block, sizeof memory) == NULL);
    CHECK(strcmp(block, "123456789") == 0);
    CHECK(tn_heap_resize(&heap, block, 60000) == block); /* grows where it is */
    CHECK(tn_heap_take(&heap, 10000) == NULL);
    CHECK(tn_heap_resize(&heap, block, 10) == block); /* and shrinks */
    CHECK(strcmp(block, "123456789") == 0);
    CHECK(tn_heap_resize(&heap, block, 0) == NULL);
    tn_heap_give(&heap, NULL);
    CHECK(heap.used == 0);
    CHECK(tn_heap_take(&heap, 0) != NULL);
    tn_heap_check(&heap);
    tn_heap_deinit(&heap);
}

static const struct test tests[] = {
    TEST(blocks_never_overlap_and_free_neighbours_join),
    TEST(small_blocks_leave_room_for_large_ones),
    TEST(drop_forgets_what_a_library_leaked),
    TEST(resize_follows_realloc),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
