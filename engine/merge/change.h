/* change: the one place that turns "was" and "is" into row kinds.
 *
 *     was      is       told
 *     -        row      +I row
 *     row      row      -U was, +U is     (nothing when equal, with row-deduplicate)
 *     row      -        -D was
 *     -        -        nothing
 *
 * "-" is no row, or one whose kind retracts. Source: Paimon, LookupChangelogMergeFunctionWrapper,
 * FullChangelogMergeFunctionWrapper, ValueEqualiserSupplier.
 */
#pragma once

#include "merge/iter.h"

/* Where changes go: a changelog's writer, a test. */
struct tn_change_sink {
    tn_rc (*put)(struct tn_change_sink *sink, const struct tn_kv *kv, struct tn_err *err);
};

struct tn_change {
    const struct tn_row_layout *layout;
    struct tn_columns compared; /* by row-deduplicate: all but the ignored fields */
    bool deduplicate;           /* changelog-producer.row-deduplicate */
    struct tn_change_sink *sink;
};

/* Tells what became of one key. `was`, `is`: NULL for no row. Rows go to the sink with the kind set
 * and their own sequence number. Equal is as Java's == has it: NULLs are equal, NaN is not, and
 * 0.0 is -0.0. */
TN_MUST_USE tn_rc tn_change_tell(const struct tn_change *change, const struct tn_kv *was,
                                 const struct tn_kv *is, struct tn_err *err);
