#include "app/expiry.h"

#include <inttypes.h>

static tn_rc set_count(const char *flag, int64_t given, int32_t *option, struct tn_err *err)
{
    if (given == -1) {
        return TN_OK;
    }
    if (given < 1 || given > INT32_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "--%s %" PRId64 ": at least 1", flag, given);
    }
    *option = (int32_t)given;
    return TN_OK;
}

tn_rc tn_expiry_apply(const struct tn_expiry *expiry, struct tn_options *options,
                      struct tn_err *err)
{
    tn_rc rc = set_count("retain-max", expiry->retain_max, &options->snapshot_retained_max, err);
    if (rc == TN_OK) {
        rc = set_count("retain-min", expiry->retain_min, &options->snapshot_retained_min, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    if (options->snapshot_retained_min > options->snapshot_retained_max) {
        if (expiry->retain_min != -1 && expiry->retain_max != -1) {
            return tn_err_set(err, TN_INVALID, 0, "--retain-min is above --retain-max");
        }
        if (expiry->retain_min != -1) {
            options->snapshot_retained_max = options->snapshot_retained_min;
        } else {
            options->snapshot_retained_min = options->snapshot_retained_max;
        }
    }
    if (expiry->older_ms >= 0) {
        options->snapshot_time_retained_ms = expiry->older_ms;
    }
    return TN_OK;
}
