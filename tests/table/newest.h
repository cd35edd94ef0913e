/* newest: the rows of a table's newest snapshot, as a batch read shows them.
 *
 *     struct tn_scan *scan = newest_open(root, worker, own, window, window_size);
 *     while (newest_next(scan, &kv)) { ... }
 */
#pragma once

#include "check.h"
#include "commit/snapshot.h"
#include "read/scan.h"

/* NULL: it has no snapshot. One at a time: the memory is the same again. `own` and the window are
 * the scan's until its end. */
static __attribute__((unused, noinline)) struct tn_scan *
newest_open(const char *root, struct tn_worker *worker, struct tn_arena *own, unsigned char *window,
            size_t window_size)
{
    static struct tn_schemas known;
    static struct tn_options options;
    static struct tn_snapshot snapshot;
    static struct tn_scan scan;
    struct tn_err err;
    const struct tn_schema *schema = NULL;
    int64_t id = 0;
    tn_rc rc = tn_snapshot_latest(worker->io, root, own, &id, &err);
    if (rc == TN_ABSENT) {
        return NULL;
    }
    CHECK_OK(rc, err);
    CHECK_OK(tn_snapshot_read(worker->io, root, id, own, &snapshot, &err), err);
    tn_schemas_init(&known, worker->io, root, own);
    CHECK_OK(tn_schemas_newest(&known, &schema, &err), err);
    CHECK_OK(tn_options_read(schema, TN_OPTIONS_READ, own, &options, &err), err);
    struct tn_scan_spec spec = {.root = root,
                                .snapshot = &snapshot,
                                .schema = schema,
                                .options = &options,
                                .schemas = &known};
    CHECK_OK(tn_scan_open(&scan, &spec, window, window_size, own, worker, &err), err);
    return &scan;
}

/* False, once: there are no more, and the scan is closed. */
static inline bool newest_next(struct tn_scan *scan, struct tn_kv *kv)
{
    struct tn_err err;
    tn_rc rc = tn_scan_next(scan, kv, &err);
    if (rc == TN_ABSENT) {
        tn_scan_close(scan);
        return false;
    }
    CHECK_OK(rc, err);
    return true;
}
