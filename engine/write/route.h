/* route: which partition and bucket a row belongs to. Source: Paimon,
 * RowPartitionKeyExtractor, FixedBucketRowKeyExtractor. */
#pragma once

#include "schema/options.h"
#include "schema/row.h"
#include "schema/schema.h"

struct tn_route_spec {
    const struct tn_row_layout *layout;
    struct tn_columns partition; /* columns of the layout */
    struct tn_columns bucket_key;
    enum tn_bucket_function function;
    int32_t bucket_count; /* -1: everything goes to bucket 0 */
};

struct tn_route {
    struct tn_bytes partition; /* serialized row with arity, in `scratch` */
    int32_t bucket;
};

/* Costs about 20 ns for an unpartitioned table. AGAIN when `scratch` is too small for the key,
 * INVALID when it is for the partition's values. */
TN_MUST_USE tn_rc tn_route(const struct tn_route_spec *spec, struct tn_row row,
                           struct tn_buf *scratch, struct tn_route *route, struct tn_err *err);
