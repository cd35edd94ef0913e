/* expiry: what of a table's options `expire` was told to see otherwise. */
#pragma once

#include "schema/options.h"

struct tn_expiry {
    int64_t retain_max; /* -1: as the table's option says; so below */
    int64_t retain_min;
    int64_t older_ms; /* how old a snapshot is that may go */
};

/* A bound that was given moves the other one, when the table's option says otherwise. INVALID: they
 * can't be. */
TN_MUST_USE tn_rc tn_expiry_apply(const struct tn_expiry *expiry, struct tn_options *options,
                                  struct tn_err *err);
