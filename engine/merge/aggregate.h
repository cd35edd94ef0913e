/* aggregate: the functions that make one value of two: Paimon's FieldAggregators, as data.
 *
 * A function is two steps, `add` for what comes with +I and +U, `retract` for -U and -D. A late
 * value (older than what is there, in a sequence group) is added the other way round: what was
 * there is added to it. Source: Paimon, FieldAggregator and those that extend it.
 */
#pragma once

#include "schema/options.h"

/* What a step knows beside the two values. */
struct tn_aggregation {
    const struct tn_column *column;
    struct tn_bytes delimiter;
    bool *begun;         /* first_value, first_non_null_value: the value is there */
    struct tn_buf *text; /* new bytes are made here */
    struct tn_err *err;
};

/* `out` may be `old` or `in`. INVALID says why, without the column. */
typedef tn_rc tn_aggregate_step(const struct tn_aggregation *a, const struct tn_value *old,
                                const struct tn_value *in, struct tn_value *out);

struct tn_aggregate_function {
    tn_aggregate_step *add;
    tn_aggregate_step *retract; /* NULL: not known */
};

/* By enum tn_aggregate; of TN_AGGREGATE_NONE both steps are NULL. */
extern const struct tn_aggregate_function tn_aggregate_functions[TN_AGGREGATE_COUNT];
