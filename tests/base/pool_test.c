/* A pool beside a model of it: an array that says which block belongs to which run. */
#include "base/pool.h"

#include "base/arena.h"
#include "check.h"
#include "random.h"

enum { MEMORY_SIZE = 16384, BLOCK_SIZE = 256, RUNS = 64 };

static _Alignas(16) unsigned char memory[MEMORY_SIZE];

struct run {
    unsigned char *at;
    uint32_t count;
    unsigned char fill;
};

static void check_fill(const struct run *run)
{
    for (size_t i = 0; i < (size_t)run->count * BLOCK_SIZE; i++) {
        CHECK(run->at[i] == run->fill);
    }
}

/* Whether the model has `count` free neighbours. */
static bool has_room(const struct tn_pool *pool, const struct run *runs, uint32_t count)
{
    bool taken[MEMORY_SIZE / BLOCK_SIZE] = {false};
    for (int i = 0; i < RUNS; i++) {
        for (uint32_t j = 0; runs[i].at && j < runs[i].count; j++) {
            taken[(uint32_t)(runs[i].at - pool->base) / BLOCK_SIZE + j] = true;
        }
    }
    uint32_t row = 0;
    for (uint32_t i = 0; i < pool->block_count; i++) {
        row = taken[i] ? 0 : row + 1;
        if (row == count) {
            return true;
        }
    }
    return false;
}

/* Takes and gives at random; no two runs overlap, since each keeps its own fill. */
static void runs_never_overlap_and_fail_only_when_there_is_no_room(void)
{
    struct tn_pool pool;
    tn_pool_init(&pool, memory + 8, sizeof memory - 8, BLOCK_SIZE);
    CHECK(pool.block_count >= (MEMORY_SIZE - 32) / (BLOCK_SIZE + 5) - 1);
    struct run runs[RUNS] = {{0}};
    uint64_t seed = 1;
    uint32_t used = 0;
    for (int step = 0; step < 20000; step++) {
        struct run *run = &runs[random_below(&seed, RUNS)];
        if (run->at) {
            check_fill(run);
            used -= run->count;
            tn_pool_give(&pool, run->at);
            run->at = NULL;
        } else {
            run->count = 1 + random_below(&seed, 4);
            run->fill = (unsigned char)step;
            bool room = has_room(&pool, runs, run->count);
            run->at = tn_pool_take_run(&pool, run->count);
            CHECK((run->at != NULL) == room);
            if (run->at) {
                CHECK((uintptr_t)run->at % 16 == 0);
                memset(run->at, run->fill, (size_t)run->count * BLOCK_SIZE);
                used += run->count;
            }
        }
        CHECK(pool.used == used);
        CHECK(tn_pool_free(&pool) == pool.block_count - used);
    }
}

static void a_pool_gives_all_its_blocks_and_then_none(void)
{
    struct tn_pool pool;
    tn_pool_init(&pool, memory, sizeof memory, BLOCK_SIZE);
    void *first = tn_pool_take(&pool);
    for (uint32_t i = 1; i < pool.block_count; i++) {
        CHECK(tn_pool_take(&pool) != NULL);
    }
    CHECK(tn_pool_take(&pool) == NULL);
    CHECK(tn_pool_free(&pool) == 0);
    CHECK(pool.peak == pool.block_count);
    tn_pool_give(&pool, first);
    CHECK(tn_pool_take_run(&pool, 2) == NULL);
    CHECK(tn_pool_take(&pool) == first);
}

static void a_pool_without_room_for_one_block_is_empty(void)
{
    struct tn_pool pool;
    tn_pool_init(&pool, memory, BLOCK_SIZE, BLOCK_SIZE);
    CHECK(pool.block_count == 0);
    CHECK(tn_pool_take(&pool) == NULL);
}

static const struct test tests[] = {
    TEST(runs_never_overlap_and_fail_only_when_there_is_no_room),
    TEST(a_pool_gives_all_its_blocks_and_then_none),
    TEST(a_pool_without_room_for_one_block_is_empty),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
