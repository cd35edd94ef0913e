/* compact: one unit of a bucket's files becomes one sorted run of a higher level, in slices.
 *
 * Planning is pure: the unit's files are cut into sections of overlapping key ranges; neighbours
 * that must be merged, or are small enough to be merged for free, make a rewrite step; a large file
 * alone in its section is moved up as it is (an upgrade: no byte is written). A slice runs steps
 * until it has moved `bytes_max` of rows; between slices nothing is held but this struct and its
 * arena: for each run the file, block and row to go on with, for the output the statistics so far.
 *
 *     begin (plan) -> slice* -> finished: outputs, changelog and upgrades are there
 *                           \-> abort: output files are removed
 *
 * A compaction that tells changes writes them beside its rows into files of their own: under
 * producer lookup (and engine first-row) where a step takes level 0 in, with what keys were below
 * the output; under full-compaction where it goes into the last level. A file that is moved up may
 * have to be read for that, and where a deeper version counts in the result it is rewritten.
 *
 * After a cut in any state the sources are live and the outputs are files that nobody names.
 * Deletes are dropped when nothing older can exist behind the unit. Source: Paimon,
 * MergeTreeCompactTask, IntervalPartition, LookupMergeTreeCompactRewriter,
 * FullChangelogMergeTreeCompactRewriter.
 */
#pragma once

#include "file/data_writer.h"
#include "levels/cursor.h"

/* Says what keys were below the output: opened and closed once a step and slice. */
struct tn_compact_before {
    /* What it takes comes from the worker's arena. */
    tn_rc (*open)(void *user, struct tn_worker *worker, struct tn_state **state,
                  struct tn_err *err);
    void (*close)(void *user);
    void *user;
};

struct tn_compact_spec {
    const struct tn_order *order;     /* over the layout of the whole schema */
    const struct tn_read_spec *read;  /* all columns */
    const struct tn_schemas *schemas; /* with every version that the files name */
    const struct tn_schema *schema;   /* the newest: outputs are written with it */
    const struct tn_options *options;
    const struct tn_key_types *keys;
    const struct tn_engine *engine; /* NULL: deduplicate */
    enum tn_fold_mode fold;         /* PLAIN, LOOKUP, FIRST_ROW, FULL */
    const struct tn_change *change; /* how changes are told (the sink is its own); or NULL */
    const struct tn_compact_before *before; /* or NULL: nothing lies below the output */
    const char *dir;                        /* the bucket's folder; lives until finish or abort */
    const char *uuid;                       /* of output names */
    uint32_t *counter; /* the next output's number; shared with the bucket's flushes */
    int32_t output_level;
    bool drop_deletes;
    bool to_last_level; /* output is the highest level: files that may hold deletes are rewritten */
    uint32_t block_size;
    uint32_t row_size_max;
};

struct tn_compact_step; /* compact.c */

struct tn_compact_output {
    struct tn_file_meta meta;
    struct tn_compact_output *next;
};

/* Files of one kind that are written one after the other. */
struct tn_compact_stream {
    const struct tn_options *options;
    bool changelog;
    bool writing; /* a writer rests, or works */
    struct tn_data_writer writer;
    struct tn_arena state;           /* the writer's */
    struct tn_compact_output *first; /* in key order */
    struct tn_compact_output **end;
    uint32_t count;
};

struct tn_compaction {
    struct tn_compact_spec spec;
    struct tn_arena *arena;
    struct tn_level_file **files; /* sources, in key order; held by the caller */
    uint32_t file_count;
    struct tn_compact_step *steps;
    uint32_t step_count;
    uint32_t step_at;
    struct tn_run_position *positions; /* of the current step's runs */
    bool step_started;
    struct tn_compact_stream rows;
    struct tn_compact_stream changes;
    struct tn_options changes_options; /* the table's, with the changelog's codec */
    bool *upgraded;                    /* per file: only its level changes */
    uint32_t upgraded_count;
    int64_t next_sequence; /* append tables: rows are counted again, from the first file's first */
    uint64_t bytes_read;   /* of rows */
    bool finished;
};

/* Plans. `files` are copied by pointer; those of a table without keys are put behind each other as
 * they are given. AGAIN when the arena is too small; UNSUPPORTED when a section has more than
 * TN_CURSOR_RUNS_MAX runs. */
TN_MUST_USE tn_rc tn_compaction_begin(struct tn_compaction *compaction,
                                      const struct tn_compact_spec *spec,
                                      struct tn_level_file *const *files, uint32_t file_count,
                                      struct tn_arena *arena, struct tn_err *err);

/* Works until about `bytes_max` of rows were read, or all is done; at least one row. On a worker.
 * After an error nothing is left but abort. */
TN_MUST_USE tn_rc tn_compaction_slice(struct tn_compaction *compaction, struct tn_worker *worker,
                                      uint64_t bytes_max, struct tn_err *err);

/* Removes what was written. */
void tn_compaction_abort(struct tn_compaction *compaction, struct tn_io *io);
