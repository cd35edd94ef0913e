/* scan: the rows of a snapshot, merged, filtered, and cut down to some columns.
 *
 *     plan -> bucket -> sections of overlapping files -> cursor (merge, fold) -> predicate -> row
 *
 * Rows of one bucket come in key order; buckets follow each other by partition and number. The
 * layout that rows come in holds what was asked for, and behind it what the merge and the predicate
 * need; `columns` says which are to be shown. Append tables are read file by file, in the order of
 * their sequence numbers. Where memory is short for a section of long rows it is begun again, with
 * some of its files merged before, and what was read of it is passed over. Source: Paimon,
 * MergeFileSplitRead, RawFileSplitRead.
 */
#pragma once

#include "levels/cursor.h"
#include "read/plan.h"
#include "read/scratch.h"

struct tn_scan_spec {
    const char *root;
    const struct tn_snapshot *snapshot;
    const struct tn_schema
        *schema; /* whose columns are read: the snapshot's own when travelling in time */
    const struct tn_options *options; /* of the newest schema */
    struct tn_schemas *schemas;       /* filled as files name versions */
    const uint32_t *fields;           /* to be shown, in this order; NULL: all, in schema order */
    uint32_t field_count;
    const struct tn_predicate *predicate; /* or NULL */
    bool keep_deletes;                    /* also rows whose newest version is a retract */
    const struct tn_plan_filter *filter;  /* or NULL: all files */
};

/* What a layout for reading needs beside the columns that were asked for; shared with lookup. */
struct tn_projection {
    struct tn_row_layout layout;
    struct tn_columns columns; /* of layout, to be shown */
    int32_t *column_of;        /* per field of the schema: column of layout, or -1 */
    int32_t *field_ids;        /* per column */
    struct tn_order order;
    struct tn_read_spec read;
    struct tn_key_types key_types;
    struct tn_fold_spec fold; /* what the table's engine and options make of it */
};

/* UNSUPPORTED when a nested column is asked for by name; all columns means all that are not nested
 * unless `fields` is given, in which case INVALID can't happen. */
TN_MUST_USE tn_rc tn_projection_init(struct tn_projection *projection,
                                     const struct tn_scan_spec *spec, struct tn_arena *arena,
                                     struct tn_err *err);

struct tn_scan {
    struct tn_scan_spec spec;
    struct tn_projection projection;
    struct tn_worker *worker;
    struct tn_plan plan;
    struct tn_plan_bucket *bucket;
    const char *dir;
    size_t base_mark;   /* of the worker's arena, before the folder's name */
    size_t bucket_mark; /* behind it */
    uint32_t file_at;   /* next section, or next file */
    struct tn_cursor cursor;
    struct tn_cursor_spec cursor_spec;
    struct tn_scratch scratch;
    struct tn_run_reader run; /* append tables */
    struct tn_run_file run_file;
    struct tn_iter *rows; /* of the section at hand, or NULL */
    uint64_t rows_read;
    uint32_t section_at;   /* its first file */
    uint64_t section_rows; /* that were read of it */
};

/* `arena` and `window` (for the plan) live as long as the scan; the worker is the scan's own
 * meanwhile. */
TN_MUST_USE tn_rc tn_scan_open(struct tn_scan *scan, const struct tn_scan_spec *spec, void *window,
                               size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                               struct tn_err *err);

/* The next row that matches; it lives until the next call. ABSENT at the end. */
TN_MUST_USE tn_rc tn_scan_next(struct tn_scan *scan, struct tn_kv *kv, struct tn_err *err);
void tn_scan_close(struct tn_scan *scan);
