/* state: what keys were before, for keys that are asked in ascending order.
 *
 *     key -> runs of the bucket, nearest first -> the first version that is there
 *
 * A compaction asks the levels below its output, a flush that resolves rows asks all of them: each
 * file of level 0 is a run, the newest first, and each level behind. That holds where rows win by
 * arrival: a table with sequence fields may have a newer row in an older file of level 0.
 *
 * Each run is walked once, beside the merge that asks: a file is opened when a key falls into its
 * range, and where its blocks are indexed only those are read that may hold a key that was asked.
 * Of the rows that are passed only the keys are looked at.
 * Keys in no file's range cost two comparisons a run. What a key was is its version in the nearest
 * run, of whatever kind: a retract says that it was gone. Source: Paimon, LookupLevels.
 */
#pragma once

#include "file/block_index.h"
#include "file/run_reader.h"
#include "file/schemas.h"
#include "levels/levels.h"
#include "merge/state.h"

enum { TN_KEY_STATE_RUNS_MAX = 256 }; /* far above any stop trigger: memory is short before */

struct tn_key_state_spec {
    const struct tn_order *order;
    const struct tn_read_spec *read;  /* the layout that rows are asked and given in */
    const struct tn_schemas *schemas; /* with every version that the files name */
    const struct tn_key_types *keys;
    const char *dir;                  /* of the bucket */
    struct tn_block_indexes *indexes; /* or NULL */
    uint64_t asks; /* about how many keys will be asked: of a file of which they touch a third of
                      the blocks no index is made; 0: nobody knows, and one is made */
};

struct tn_state_run; /* state.c */

struct tn_key_state {
    struct tn_state state; /* first */
    struct tn_key_state_spec spec;
    struct tn_state_run *runs;
    uint32_t run_count;
    size_t size; /* that the runs share */
    uint64_t asked;
    uint64_t rows_read; /* whose keys were looked at for it */
};

/* `files` are whole levels, in the order of a levels version. `size` bytes of the worker's arena
 * are taken and shared by the runs; the caller resets it when the state is closed. AGAIN when that
 * is too little, or there are more than TN_KEY_STATE_RUNS_MAX runs. */
TN_MUST_USE tn_rc tn_key_state_open(struct tn_key_state *state,
                                    const struct tn_key_state_spec *spec,
                                    struct tn_level_file *const *files, uint32_t count, size_t size,
                                    struct tn_worker *worker, struct tn_err *err);
void tn_key_state_close(struct tn_key_state *state);
