#include "write/route.h"

#include "format/binrow.h"

/* Paimon: ModBucketFunction: floorMod of one INT or BIGINT. */
static int32_t mod_bucket(const struct tn_route_spec *spec, struct tn_row row)
{
    struct tn_value value;
    tn_row_get(spec->layout, row, spec->bucket_key.index[0], &value);
    int64_t bucket = (value.null ? 0 : value.as.i64) % spec->bucket_count;
    return (int32_t)(bucket < 0 ? bucket + spec->bucket_count : bucket);
}

tn_rc tn_route(const struct tn_route_spec *spec, struct tn_row row, struct tn_buf *scratch,
               struct tn_route *route, struct tn_err *err)
{
    route->bucket = 0;
    if (spec->bucket_count > 0 && spec->function == TN_BUCKET_MOD) {
        route->bucket = mod_bucket(spec, row);
    } else if (spec->bucket_count > 1) {
        tn_rc rc = tn_row_bucket(spec->layout, spec->bucket_key, row, spec->bucket_count, scratch,
                                 &route->bucket, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    if (spec->partition.count == 0) {
        route->partition = tn_binrow_empty;
        return TN_OK;
    }
    scratch->size = 0;
    scratch->overflow = false;
    tn_row_to_binary(spec->layout, spec->partition, row, true, scratch);
    if (scratch->overflow) {
        return tn_err_set(err, TN_INVALID, 0, "the partition's values take more than %zu bytes",
                          scratch->capacity);
    }
    route->partition = tn_buf_bytes(scratch);
    return TN_OK;
}
