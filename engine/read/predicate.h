/* predicate: `--where` as text, as a tree, and as three questions: does this row match, can this
 * file hold a match, which bucket and partition can hold one.
 *
 *     temp > 80 and unit = "C" or not (dev in ('a', 'b') or ts is null)
 *
 * SQL's three-valued logic: a comparison with NULL is unknown, and only rows for which the whole is
 * true match. Operators =, ==, !=, <>, <, <=, >, >=, is [not] null, [not] in (...), [not] between
 * ... and ..., and, or, not, parentheses; a BOOLEAN column may stand alone; names may stand in
 * `backticks`. Strings in ' or ", doubled to escape. Keywords in any case.
 *
 * Literals are read by the column's type (times and decimals as in the JSON of each type), and none
 * is rounded into it: for an INT column `n < 1.5` holds for 1 and `n < 1e30` for all, `n = 1.5` for
 * none. Only FLOAT and DOUBLE take the nearest value, so that `ratio = 0.1` finds 0.1; their two
 * zeros are equal, and NaN is above all else and equals itself.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "file/meta.h"
#include "schema/schema.h"

enum { TN_PREDICATE_DEPTH_MAX = 32, TN_PREDICATE_NODES_MAX = 1024 };

struct tn_predicate; /* predicate.c */

/* Columns are those of `schema`, which is kept by pointer (nested ones are refused). INVALID with
 * the byte, the word and the nearest name. Nothing points into `text` afterwards. */
TN_MUST_USE tn_rc tn_predicate_parse(const char *text, const struct tn_schema *schema,
                                     struct tn_arena *arena, struct tn_predicate **predicate,
                                     struct tn_err *err);

/* The rows in which each of `columns` (of the schema) equals its value: `a = 1 and b = 2`. The
 * values are not NULL, and their bytes are kept by pointer. INVALID without a column, or with more
 * than TN_PREDICATE_NODES_MAX / 2. */
TN_MUST_USE tn_rc tn_predicate_equals(const struct tn_schema *schema, struct tn_columns columns,
                                      const struct tn_value *values, struct tn_arena *arena,
                                      struct tn_predicate **predicate, struct tn_err *err);

/* Which fields it names: sets used[field] for each. */
void tn_predicate_fields(const struct tn_predicate *predicate, bool *used);

/* `column_of[field]` is the row's column for a field, -1 when the layout lacks it (never for a used
 * one). */
bool tn_predicate_match(const struct tn_predicate *predicate, const struct tn_row_layout *layout,
                        const int32_t *column_of, struct tn_row row);

/* Bounds of some columns: what statistics or a partition say, in the order of tn_value_compare (in
 * which a NaN is the greatest). They may be wider than the values; ones that contradict themselves
 * are not used. */
struct tn_bounds {
    bool known;     /* false: nothing is known of this column */
    bool has_range; /* min and max are known */
    struct tn_value min;
    struct tn_value max;
    int64_t null_count; /* -1: unknown */
};

/* False only when no row within the bounds can match. `bounds` is one a field of the schema;
 * row_count for "all are NULL" (-1: unknown). */
bool tn_predicate_may_match(const struct tn_predicate *predicate, const struct tn_bounds *bounds,
                            int64_t row_count);

/* The part of it (a conjunction's members) that names only these fields, or NULL: what may prune
 * when versions of a key overlap. NULL also when the arena is full: then nothing is pruned. */
const struct tn_predicate *tn_predicate_only(const struct tn_predicate *predicate,
                                             const bool *fields, struct tn_arena *arena);

/* When it fixes every one of `columns` (of the schema) to one value (k = 1 and ...), those values:
 * which bucket to look in. Their bytes live as long as the predicate. */
bool tn_predicate_point(const struct tn_predicate *predicate, struct tn_columns columns,
                        struct tn_value *values);
