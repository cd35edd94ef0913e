/* lake_progress: a target that says on stderr how far a sync is, and hands every call on.
 *
 *     snapshot 17 of 34, 120 files, 3.4 MB
 *     120 files, 3.4 MB, the lake's snapshot 812      (of a table that is shared)
 *
 * On a terminal one line, written over; else a line a second.
 */
#pragma once

#include "io/clock.h"
#include "upload/target.h"

struct tn_lake_progress {
    struct tn_target target; /* first */
    struct tn_target *inner;
    struct tn_clock *clock;
    int64_t newest; /* of the table; 0: not known, or its ids are none of the lake's */
    int64_t next_ns;
    int64_t snapshot; /* that was published last */
    uint64_t files;
    bool terminal;
    bool said;
};

/* `inner` is used until nobody calls `progress->target` any more. */
void tn_lake_progress_init(struct tn_lake_progress *progress, struct tn_target *inner,
                           struct tn_clock *clock, int64_t newest);
/* Ends the line. */
void tn_lake_progress_end(struct tn_lake_progress *progress);
