/* fsck: everything that can be checked in a table, against everything else it says.
 *
 *     schemas
 *     snapshots, first to last:  base list == what was live before
 *                                delta applied: nothing added twice, nothing deleted that is absent
 *                                counts, levels, buckets; each new data file read once
 *     tags, branches, consumers, and, if asked for, files that nothing reaches
 *     when all that is good and it is asked for: the merged rows of each snapshot and tag:
 *                                keys in order, none twice; as many rows as there may be
 *
 * A problem is reported and the check goes on, so one damaged file hides no other. What is there
 * but can't be checked by this build (a Parquet file, a block larger than the memory) is counted,
 * said as a note, and never passes as clean. Snapshots below EARLIEST are being expired and may be
 * in pieces (commit/expire.h): they are passed over.
 *
 * Beside a writer: the snapshots that there are at the start are checked. A missing file is a
 * problem when its snapshot, tag or changelog is there when that is looked at again; one that went
 * is left out, as a note. `orphans` wants a table that nobody writes: files that wait for their
 * commit are named by nothing yet.
 *
 * Memory: 16 bytes × 1.3 to 2.7 for each live file of any snapshot and as much again once it was
 * read, 56 for each manifest, about 100 and the keys for each live file above level 0; and blocks
 * of one manifest and one data file at a time. Each manifest is read once or twice, whatever the
 * number of snapshots, and each data file once a level; `merged` costs a scan of each snapshot,
 * with what is left of the heap as its window.
 */
#pragma once

#include "base/heap.h"
#include "file/worker.h"

enum tn_fsck_kind { TN_FSCK_PROBLEM, TN_FSCK_NOTE };

/* One finding: a file (its path from the warehouse) and what is wrong with it, both valid during
 * the call. An error stops the check and is returned. */
typedef tn_rc tn_fsck_fn(void *user, enum tn_fsck_kind kind, const char *file, const char *text,
                         struct tn_err *err);

struct tn_fsck_spec {
    const char *root;         /* "db.db/t" */
    struct tn_worker *worker; /* reads with it; its arena is left as it was */
    struct tn_arena *arena;   /* two schemas and their options; left as it was */
    struct tn_heap *heap;     /* what is remembered of files; all is given back */
    bool orphans;             /* files that nothing reaches are problems */
    bool merged;              /* when all else is good, each snapshot is read */
    tn_fsck_fn *each;
    void *user;
};

struct tn_fsck_result {
    uint32_t problems;
    uint32_t notes;
    uint32_t unchecked; /* files that this build can't check */
    uint32_t left_out;  /* snapshots and tags that went while they were checked */
    uint32_t snapshots;
    uint32_t tags;
    uint32_t changelogs; /* that outlive their snapshots */
    uint32_t branches;
    uint64_t data_files;
    uint64_t rows;        /* in them */
    uint32_t merged;      /* snapshots and tags that were read */
    uint64_t merged_rows; /* in them together */
};

/* OK says that the check came to its end; result->problems says what it found. ABSENT: no such
 * table. UNSUPPORTED or AGAIN, without a problem found: something could not be checked, and `err`
 * says what first; or a table of a kind that tarn doesn't read. IO: the device failed; AGAIN also:
 * the heap is too small, with what it would need. `result` is filled on every outcome. */
TN_MUST_USE tn_rc tn_fsck(const struct tn_fsck_spec *spec, struct tn_fsck_result *result,
                          struct tn_err *err);
