/* output: rows of named cells on standard output, as a table for people, JSON lines or csv.
 *
 * Without --format it is a table on a terminal and JSON lines into a pipe. A table's widths come
 * from the first rows that fit its buffer; longer cells later on push their line out.
 */
#pragma once

#include "app/boot.h"

struct tn_cell {
    struct tn_bytes text; /* for csv and tables */
    struct tn_bytes json; /* for JSON: a whole JSON value; data NULL: `text` as a string */
    bool null;
    bool hex; /* the text is the hex digits of `text` */
};

struct tn_output {
    enum tn_format format;
    const char *const *names;
    uint32_t count;
    struct tn_buf line;
    struct tn_buf held; /* a table's first rows: lengths and texts */
    uint32_t held_rows;
    uint32_t *widths; /* code points */
    bool heading_done;
    int failure; /* of standard output: the system's number, or 0 */
    uint64_t rows;
};

/* `arena` gives 96 KiB for lines and 64 KiB for a table's first rows. A cell may be longer. */
TN_MUST_USE tn_rc tn_output_open(struct tn_output *output, const char *const *names, uint32_t count,
                                 struct tn_arena *arena, struct tn_err *err);
/* One row of `count` cells. FULL or IO when standard output takes no more. */
TN_MUST_USE tn_rc tn_output_row(struct tn_output *output, const struct tn_cell *cells,
                                struct tn_err *err);
/* A row that is JSON already, for TN_FORMAT_JSON: its next part, or with `ends` its last. */
TN_MUST_USE tn_rc tn_output_json(struct tn_output *output, struct tn_bytes json, bool ends,
                                 struct tn_err *err);
/* What came so far is out; a table's widths stay what they are. */
TN_MUST_USE tn_rc tn_output_flush(struct tn_output *output, struct tn_err *err);
TN_MUST_USE tn_rc tn_output_close(struct tn_output *output, struct tn_err *err);

/* What the write to standard output that just failed died of. */
tn_rc tn_output_failed(struct tn_err *err);
