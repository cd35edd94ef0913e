/* feed: records into a table: what `write` and `demo` do with each.
 *
 *     decoder -> record -> rows -> put (turn while there is no room) -> cut
 */
#pragma once

#include "ingest/decode.h"
#include "table/table.h"

struct tn_feed {
    struct tn_table *table;
    uint64_t rows;     /* records so far: what `committed` counts */
    uint64_t rows_cut; /* of them at the last cut */
    uint64_t dead;
    void (*bury)(void *user, const struct tn_decoded *decoded, const char *reason);
    void *user;
};

/* The rows of one record; one that can't become rows is counted and buried. */
TN_MUST_USE tn_rc tn_feed_record(struct tn_feed *feed, const struct tn_decoded *decoded,
                                 struct tn_err *err);

/* Cuts the round, as soon as none is closing. */
TN_MUST_USE tn_rc tn_feed_cut(struct tn_feed *feed, struct tn_err *err);
