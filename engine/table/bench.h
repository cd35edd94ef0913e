/* bench: memory for a few compactions, which many tables take turns at.
 *
 * What a compaction keeps from slice to slice does not shrink with its table, so where there are
 * many small ones a table borrows it from the compaction's beginning to its end. Who has just given
 * a bench back lets the others try once, if some were refused: in a loop over tables it goes round.
 * The loop's thread only.
 */
#pragma once

#include "base/arena.h"

enum { TN_BENCH_MAX = 8 };

struct tn_benches {
    unsigned char *memory;
    size_t size; /* of each */
    uint32_t count;
    const void *owners[TN_BENCH_MAX]; /* NULL: free */
    const void *last;                 /* who gave one back last */
    bool wanted;                      /* somebody was refused since */
};

/* `memory` has count * size bytes and lives as long. */
void tn_benches_init(struct tn_benches *benches, void *memory, size_t size, uint32_t count);

/* False: none is free, or it is others' turn; try again later. `owner` has none yet. */
bool tn_bench_take(struct tn_benches *benches, const void *owner, struct tn_arena *arena);
/* Nothing was begun on it: as if it had not been taken. */
void tn_bench_leave(struct tn_benches *benches, const void *owner);
/* What was begun has ended. */
void tn_bench_give(struct tn_benches *benches, const void *owner);
