/* Tables that take turns at benches: none has one of another, and each gets one after the other,
 * however greedy they are. */
#include "table/bench.h"

#include "check.h"
#include "given.h"
#include "random.h"

enum { OWNERS = 7, BENCHES = 2, SIZE = 256, ROUNDS = 2000 };

static void each_gets_its_turn(void)
{
    static unsigned char memory[BENCHES * SIZE];
    static int owners[OWNERS];
    uint64_t random = given_number("SEED", 1);
    struct tn_benches benches;
    struct tn_arena arenas[OWNERS] = {0};
    uint32_t turns[OWNERS] = {0};
    bool has[OWNERS] = {0};
    tn_benches_init(&benches, memory, SIZE, BENCHES);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < OWNERS; i++) {
            if (has[i] && random_below(&random, 3) == 0) {
                tn_bench_give(&benches, &owners[i]);
                has[i] = false;
            }
            if (!has[i]) { /* the same one at once again */
                has[i] = tn_bench_take(&benches, &owners[i], &arenas[i]);
                turns[i] += has[i];
                if (has[i] && random_below(&random, 8) == 0) {
                    tn_bench_leave(&benches, &owners[i]);
                    has[i] = false;
                }
            }
            for (uint32_t j = 0; j < i; j++) {
                CHECK(!has[i] || !has[j] || arenas[i].base != arenas[j].base);
            }
        }
    }
    for (uint32_t i = 0; i < OWNERS; i++) {
        CHECK(turns[i] > ROUNDS * BENCHES / OWNERS / 8);
    }
}

static void one_alone_need_not_wait(void)
{
    static unsigned char memory[SIZE];
    static int owners[2];
    struct tn_benches benches;
    struct tn_arena arena;
    tn_benches_init(&benches, memory, SIZE, 1);
    CHECK(tn_bench_take(&benches, &owners[0], &arena));
    CHECK(arena.size == SIZE);
    CHECK(!tn_bench_take(&benches, &owners[1], &arena)); /* and is never seen again */
    tn_bench_give(&benches, &owners[0]);
    CHECK(!tn_bench_take(&benches, &owners[0], &arena));
    for (int i = 0; i < 3; i++) {
        CHECK(tn_bench_take(&benches, &owners[0], &arena));
        tn_bench_give(&benches, &owners[0]);
    }
}

static const struct test tests[] = {
    TEST(each_gets_its_turn),
    TEST(one_alone_need_not_wait),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
