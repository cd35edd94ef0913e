#include "table/bench.h"

#include "base/check.h"

void tn_benches_init(struct tn_benches *benches, void *memory, size_t size, uint32_t count)
{
    TN_CHECK(count > 0 && count <= TN_BENCH_MAX);
    *benches = (struct tn_benches){.memory = memory, .size = size, .count = count};
}

/* Its number, or `count`. */
static uint32_t find(const struct tn_benches *benches, const void *owner)
{
    uint32_t i = 0;
    while (i < benches->count && benches->owners[i] != owner) {
        i++;
    }
    return i;
}

bool tn_bench_take(struct tn_benches *benches, const void *owner, struct tn_arena *arena)
{
    uint32_t i = find(benches, NULL);
    if (i == benches->count) {
        benches->wanted = benches->wanted || owner != benches->last;
        return false;
    }
    if (benches->wanted && owner == benches->last) { /* once: they may want it no more */
        benches->last = NULL;
        benches->wanted = false;
        return false;
    }
    benches->owners[i] = owner;
    tn_arena_init(arena, benches->memory + i * benches->size, benches->size);
    return true;
}

void tn_bench_leave(struct tn_benches *benches, const void *owner)
{
    uint32_t i = find(benches, owner);
    TN_CHECK(i < benches->count);
    benches->owners[i] = NULL;
}

void tn_bench_give(struct tn_benches *benches, const void *owner)
{
    tn_bench_leave(benches, owner);
    benches->last = owner;
}
