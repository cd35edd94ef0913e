/* cursor: some files of one bucket as one cursor: cut into the fewest runs, merged, folded.
 *
 *     files -> runs -> merge -> fold -> rows
 *
 * What compaction, scan and export read through. Each run has its own part of the worker's arena;
 * where the runs are too many for it, AGAIN says how much they would need. The positions of the
 * runs can be kept, and a cursor over the same files can go on from them.
 */
#pragma once

#include "file/run_reader.h"
#include "file/schemas.h"
#include "levels/levels.h"
#include "merge/fold.h"

enum { TN_CURSOR_RUNS_MAX = 64 };

/* Files in the order of (min key, max key). */
void tn_files_sort(const struct tn_key_types *keys, struct tn_level_file **files, uint32_t count);

/* How many files from `first` on overlap or touch each other: one section. They are sorted. */
uint32_t tn_files_section(const struct tn_key_types *keys, struct tn_level_file *const *files,
                          uint32_t count, uint32_t first);

/* The fewest runs that hold sorted files: each file goes behind the run that ends first, if that
 * ends before it begins. `run_of[i]` (may be NULL) gets the run of each. Returns their number, or
 * TN_CURSOR_RUNS_MAX + 1. Source: Paimon, IntervalPartition. */
uint32_t tn_files_runs(const struct tn_key_types *keys, struct tn_level_file *const *files,
                       uint32_t count, uint32_t *run_of);

struct tn_cursor_spec {
    const struct tn_order *order;
    const struct tn_read_spec *read;
    const struct tn_schemas *schemas; /* with every version that the files name */
    const struct tn_key_types *keys;
    const char *dir;          /* of the bucket */
    struct tn_fold_spec fold; /* row_size_max 0: what a part of the memory holds */
};

struct tn_cursor {
    struct tn_cursor_spec spec;
    struct tn_worker *worker;
    size_t mark; /* of the worker's arena */
    struct tn_run_reader *runs;
    uint32_t run_count;
    struct tn_merge merge;
    struct tn_fold fold; /* rows: tn_iter_next(&cursor->fold.iter, ...) */
};

/* How many runs a cursor over `file_count` files can merge in so much memory. */
uint32_t tn_cursor_fits(const struct tn_cursor_spec *spec, uint32_t file_count, size_t size);

/* `files` are sorted and outlive the cursor; those of a table without keys are read one after the
 * other. `positions` (TN_CURSOR_RUNS_MAX) or NULL: from the start. Everything that is left of the
 * worker's arena is the cursor's until close. */
TN_MUST_USE tn_rc tn_cursor_open(struct tn_cursor *cursor, const struct tn_cursor_spec *spec,
                                 struct tn_level_file *const *files, uint32_t count,
                                 const struct tn_run_position *positions, struct tn_worker *worker,
                                 struct tn_err *err);

/* Notes for each run where it goes on behind the last row that was yielded. */
TN_MUST_USE tn_rc tn_cursor_rest(struct tn_cursor *cursor, struct tn_run_position *positions,
                                 struct tn_err *err);
void tn_cursor_close(struct tn_cursor *cursor);
