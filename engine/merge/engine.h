/* engine: a merge engine, compiled for a layout: what is to be done with each column. Private to
 * the reducer (reduce.h makes and uses it).
 */
#pragma once

#include "merge/aggregate.h"
#include "merge/reduce.h"

struct tn_engine_column {
    const struct tn_aggregate_function *function; /* NULL: TN_AGGREGATE_NONE */
    const char *function_name;
    struct tn_bytes delimiter;
    int32_t group; /* of tn_engine.groups, or -1 */
    bool orders;   /* one of its group's ordering columns */
    bool key;
    bool ignore_retract;
};

struct tn_engine_group {
    struct tn_columns order; /* of the layout */
    bool removes;            /* a -D that it takes removes the row */
};

struct tn_engine {
    enum tn_merge_engine kind;
    const struct tn_row_layout *layout;
    struct tn_engine_column *columns;
    struct tn_engine_group *groups;
    uint32_t group_count; /* of the table */
    bool groups_shown;    /* the layout has columns of some group */
    bool ignore_delete;
    bool removes; /* a -D removes the row */
};
