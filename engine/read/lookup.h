/* lookup: one key's row, without reading what can't hold it.
 *
 *     key -> predicate -> plan: one bucket, files whose key range holds the key
 *                           -> in each, newest first: seek -> its version -> the newest wins,
 *                              or all are merged as a scan does
 *
 * Manifests are passed over by partition, entries by partition, bucket and key range, so memory is
 * that of the files that may hold the key. Where sequence numbers alone decide, files that are too
 * old to win are not opened. Which version wins is what a scan says (merge/merge.h, merge/fold.h).
 */
#pragma once

#include "read/scan.h"

struct tn_lookup {
    struct tn_projection projection;
    struct tn_kv kv;        /* the row, in the window that tn_lookup was given */
    uint32_t version_count; /* that were compared, or merged */
    uint32_t file_count;    /* that were opened */
};

/* `key` is one value for each of the schema's primary keys, in their order; its bytes are read
 * until the call returns. spec->predicate and keep_deletes don't count. `arena` holds the
 * projection, `window` the row, and meanwhile the plan's files and the row's versions. ABSENT:
 * there is no such row, or it was deleted (the projection is there). INVALID: the table has no
 * primary key. */
TN_MUST_USE tn_rc tn_lookup(const struct tn_scan_spec *spec, const struct tn_value *key,
                            void *window, size_t window_size, struct tn_arena *arena,
                            struct tn_worker *worker, struct tn_lookup *lookup, struct tn_err *err);
