/* increment: the rows of `cat --incremental A,B`: what changed behind snapshot A, up to B.
 *
 *     delta      rows of the files that APPEND snapshots added, as they came
 *     changelog  rows of the changelog files
 *     diff       rows that are new in B or other than in A, a row a key
 *
 * Two names of tags are compared. Source: Paimon, `incremental-between`.
 */
#pragma once

#include "app/reader.h"
#include "changelog/diff.h"
#include "changelog/tail.h"

struct tn_increment {
    const struct tn_projection *projection; /* of the rows */
    bool compares;
    int64_t next; /* snapshot */
    int64_t to;
    struct tn_tail tail;
    struct tn_diff diff;
};

/* `mode` NULL: what the table has. `spec` lives as long as the increment; the memtable part and the
 * long worker are its own meanwhile. INVALID for a range that isn't kept. */
TN_MUST_USE tn_rc tn_increment_open(struct tn_increment *increment, struct tn_reader *reader,
                                    const struct tn_scan_spec *spec, const char *range,
                                    const char *mode, bool with_deletes, struct tn_err *err);
/* The next row that matches; it lives until the next call. ABSENT at the end. */
TN_MUST_USE tn_rc tn_increment_next(struct tn_increment *increment, struct tn_kv *kv,
                                    struct tn_err *err);
void tn_increment_close(struct tn_increment *increment);
