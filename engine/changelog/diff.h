/* diff: what is new or other in one snapshot than in an older one, a row a key.
 *
 * Two scans in step, in the order of buckets and keys; files that both snapshots hold are left out
 * on both sides first, so the cost is that of the files that changed. What it says is therefore
 * what those files say, as in Paimon: a row that was written again counts as new when the version
 * before lies in a file of both, and so does a late one, though an older version with a larger
 * sequence field still wins in the table; engines that add up give the part of the files that
 * changed. Tables without keys give the rows of the files that only the newer snapshot has. Source:
 * Paimon, IncrementalDiffSplitRead.
 */
#pragma once

#include "commit/set.h"
#include "read/scan.h"

struct tn_diff_side {
    struct tn_worker worker;      /* the caller's, with half of its arena */
    struct tn_set others;         /* the files of the other side */
    struct tn_plan_filter filter; /* all but those */
    struct tn_scan scan;
    struct tn_kv kv; /* the head */
    bool has;        /* there is a head */
    bool used;       /* it was given out: the next call moves on */
};

struct tn_diff {
    struct tn_scan_spec spec;
    bool with_deletes;
    struct tn_worker *worker;
    size_t mark; /* of the worker's arena */
    struct tn_diff_side before;
    struct tn_diff_side after;
    struct tn_projection projection; /* to show `spec.fields` */
};

struct tn_diff_spec {
    const struct tn_scan_spec *scan; /* less `snapshot`, `keep_deletes` and `filter` */
    const struct tn_snapshot *before;
    const struct tn_snapshot *after;
    bool with_deletes; /* also a -D of each row that is gone, with the values it had */
};

/* Rows are compared as a whole, whatever columns are shown. Half of `window` and of the worker's
 * arena serve each side; 32 bytes a file of both snapshots come from the arena first. */
TN_MUST_USE tn_rc tn_diff_open(struct tn_diff *diff, const struct tn_diff_spec *spec, void *window,
                               size_t window_size, struct tn_arena *arena, struct tn_worker *worker,
                               struct tn_err *err);
/* The next row that matches; it lives until the next call. ABSENT at the end. */
TN_MUST_USE tn_rc tn_diff_next(struct tn_diff *diff, struct tn_kv *kv, struct tn_err *err);
void tn_diff_close(struct tn_diff *diff);
