/* The inside of inspect: a row in the making, and the views, which are spread over the inspect_*.c.
 */
#pragma once

#include "table/inspect.h"

enum { TN_LINE_CELLS_MAX = 20, TN_LINE_SIZE = 64 * 1024 };

/* One row: each cell's text lies in `text` behind the one before. */
struct tn_line {
    const struct tn_inspect *in;
    const struct tn_view *view;
    struct tn_view_cell cells[TN_LINE_CELLS_MAX];
    uint32_t count;
    struct tn_buf text;
    size_t start; /* of the cell in the making */
    tn_view_fn *each;
    void *user;
};

struct tn_view {
    const char *const *columns;
    uint32_t column_count;
    tn_rc (*run)(struct tn_line *line, struct tn_err *err);
    bool needs_snapshot;
};

extern const struct tn_view tn_view_schema;
extern const struct tn_view tn_view_options;
extern const struct tn_view tn_view_snapshots;
extern const struct tn_view tn_view_schemas;
extern const struct tn_view tn_view_manifests;
extern const struct tn_view tn_view_files;
extern const struct tn_view tn_view_partitions;
extern const struct tn_view tn_view_buckets;
extern const struct tn_view tn_view_tags;
extern const struct tn_view tn_view_branches;
extern const struct tn_view tn_view_consumers;

/* What was appended to line->text since the last cell becomes one. */
void tn_line_cell(struct tn_line *l, bool plain, bool null);

void tn_line_null(struct tn_line *l);
void tn_line_text(struct tn_line *l, const char *text); /* NULL is NULL */
void tn_line_number(struct tn_line *l, int64_t value);
void tn_line_maybe(struct tn_line *l, struct tn_json_i64 value);
/* TN_TYPE_TIMESTAMP_LTZ: a moment in UTC; TN_TYPE_TIMESTAMP: a local wall clock. */
void tn_line_time(struct tn_line *l, enum tn_type_kind kind, int64_t ms);

/* A BinaryRow of some columns of a schema; NULL when it can't be read. */
void tn_line_row(struct tn_line *l, struct tn_bytes binary, const struct tn_schema *schema,
                 struct tn_columns columns, const char *brackets);
void tn_line_partition(struct tn_line *l, struct tn_bytes partition);

/* All columns are there: the row is given. */
TN_MUST_USE tn_rc tn_line_end(struct tn_line *l, struct tn_err *err);

/* One value a type, in `scratch`; NULL when that can't be said. */
struct tn_value *tn_line_values(struct tn_bytes binary, const struct tn_type *types, uint32_t count,
                                struct tn_arena *scratch);
void tn_line_value(struct tn_buf *buf, const struct tn_type *type, const struct tn_value *value);
