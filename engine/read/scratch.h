/* scratch: too many overlapping files become fewer, so that a section can be merged in the memory
 * there is.
 *
 * A section of more runs than can be merged at once is reduced first: some of its files are merged
 * into one scratch file that holds only the columns the scan needs, with sequence numbers, kinds
 * and deletes; the scratch file then stands for them. Of a key it holds the newest version where
 * nothing else counts, else every version unfolded. Any files may be put together, since the order
 * of a key's versions does not depend on the file they are in; but where the level of a version
 * counts (TN_FOLD_LOOKUP) only files of level 0 are, whose level a scratch file has. Scratch files
 * lie in `.tarn/scratch/`, are not synced, count as bytes written, and are removed by
 * tn_scratch_close.
 */
#pragma once

#include "file/data_writer.h"
#include "levels/cursor.h"

enum { TN_SCRATCH_RUNS_MAX = 24 }; /* merged at once: 120 KB each on the host board */

struct tn_scratch_file {
    const char *path;
    struct tn_scratch_file *next;
};

struct tn_scratch {
    const struct tn_cursor_spec *cursor;
    struct tn_schemas *schemas;
    struct tn_heap *heap;   /* the files' entries */
    struct tn_arena *arena; /* names, and the scratch schema */
    struct tn_worker *worker;
    uint32_t runs_limit;      /* merged at once; fewer where rows turned out to be long */
    struct tn_schema *schema; /* of scratch files: made at the first */
    struct tn_options options;
    char uuid[TN_UUID_SIZE];
    uint32_t counter;
    struct tn_scratch_file *files;
};

void tn_scratch_init(struct tn_scratch *scratch, const struct tn_cursor_spec *cursor,
                     struct tn_schemas *schemas, struct tn_heap *heap, struct tn_arena *arena,
                     struct tn_worker *worker);

/* Reduces files[0..*count) (in key order) until they are as few runs as the worker's memory can
 * merge, and at most TN_SCRATCH_RUNS_MAX; or more where the deeper levels alone have more. Entries
 * that were merged are dropped from the heap; `files` stays in key order. AGAIN: not even two fit.
 */
TN_MUST_USE tn_rc tn_scratch_reduce(struct tn_scratch *scratch, struct tn_level_file **files,
                                    uint32_t *count, struct tn_err *err);
/* For a merge of so many runs memory was short: half of them from now on. False: they are but two,
 * or that was tried. */
bool tn_scratch_fewer(struct tn_scratch *scratch, uint32_t runs);
void tn_scratch_close(struct tn_scratch *scratch);
