/* default: what a column holds where a record says nothing, from the text in the schema.
 *
 * As Paimon casts it (DefaultValueUtils, BinaryStringUtils): quotes around it go; to binary types
 * the bytes of the text are the value; a CHAR or BINARY is filled up with blanks or zeros, and what
 * is too long for its column is cut.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "schema/row.h"
#include "schema/schema.h"
#include "schema/value.h"

/* NULL for a column without one. Bytes live in the arena. INVALID when the text is no value of the
 * type, AGAIN when the arena is full. */
TN_MUST_USE tn_rc tn_default_read(const struct tn_field *field, struct tn_arena *arena,
                                  struct tn_value *value, struct tn_err *err);

/* Of a whole table, which has no nested columns: they are filled in where a row has NULL. */
struct tn_default_row {
    struct tn_columns columns; /* those that have one */
    struct tn_row row;         /* with these */
};

/* All of it lives in the arena; nothing is taken where no column has a default. */
TN_MUST_USE tn_rc tn_default_row_make(const struct tn_schema *schema,
                                      const struct tn_row_layout *layout, struct tn_arena *arena,
                                      struct tn_default_row *made, struct tn_err *err);
