/* cells: rows of a few texts and numbers on standard output, for the verbs that report. */
#pragma once

#include "app/output.h"
#include "table/inspect.h"

enum { TN_CELLS_MAX = 20 };

/* A row is made cell by cell, then ended:
 *
 *     tn_cells_text(&cells, name);
 *     tn_cells_number(&cells, size);
 *     rc = tn_cells_end(&cells, err);
 */
struct tn_cells {
    struct tn_output output;
    struct tn_cell cells[TN_CELLS_MAX];
    uint32_t count;
    struct tn_buf text;
    size_t start;
};

/* `arena` gives 200 KB. */
TN_MUST_USE tn_rc tn_cells_open(struct tn_cells *cells, const char *const *names, uint32_t count,
                                struct tn_arena *arena, struct tn_err *err);
TN_MUST_USE tn_rc tn_cells_close(struct tn_cells *cells, struct tn_err *err);

void tn_cells_text(struct tn_cells *cells, const char *text); /* NULL is NULL */
void tn_cells_number(struct tn_cells *cells, int64_t number);

/* What was appended is JSON, and stays so in JSON lines. */
void tn_cells_json(struct tn_cells *cells);

/* What was appended to cells->text since the last cell becomes one, a text or NULL. */
void tn_cells_put(struct tn_cells *cells, bool null);
TN_MUST_USE tn_rc tn_cells_end(struct tn_cells *cells, struct tn_err *err);

/* A tn_view_fn: one row of a view. */
tn_rc tn_cells_view_row(void *cells, const struct tn_view_cell *row, struct tn_err *err);
