/* rows: a table's rows on standard output, for the verbs that show some: cat, get. */
#pragma once

#include "app/output.h"
#include "read/scan.h"

struct tn_row_printer {
    struct tn_output output;
    const struct tn_projection *projection;
    struct tn_buf text;
    struct tn_cell *cells;
    bool kind; /* each row's kind stands before it */
};

/* `spec` is what `projection` was made of. Memory, 300 KB, is the arena's. */
TN_MUST_USE tn_rc tn_row_printer_open(struct tn_row_printer *printer,
                                      const struct tn_projection *projection,
                                      const struct tn_scan_spec *spec, bool kind,
                                      struct tn_arena *arena, struct tn_err *err);
TN_MUST_USE tn_rc tn_row_printer_put(struct tn_row_printer *printer, const struct tn_kv *kv,
                                     struct tn_err *err);
TN_MUST_USE tn_rc tn_row_printer_flush(struct tn_row_printer *printer, struct tn_err *err);
TN_MUST_USE tn_rc tn_row_printer_close(struct tn_row_printer *printer, struct tn_err *err);
