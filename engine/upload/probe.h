/* probe: does a store keep to the condition that a name must not be there? Where many commit to one
 * table all rests on it: a store that takes it for a wish loses commits which it has acknowledged.
 *
 *     16 rounds: 8 PUTs of one name at once -> one is told that it made it -> its bytes lie there
 *                -> another PUT, later, is refused -> DELETE
 *
 * With fewer connections than 8 there are more rounds. A race is tried once, since a PUT that comes
 * twice would beat itself; where an answer is lost it counts for nothing, and another one is begun
 * when the store answers again. Names are `.tarn/<db>.<table>/probe-...`;
 * where DELETE isn't allowed they stay, of some bytes each.
 */
#pragma once

#include "io/clock.h"
#include "upload/target.h"

enum {
    TN_PROBE_ROUNDS = 16,
    TN_PROBE_RACERS = 8,
    TN_PROBE_LOST = 64, /* races whose outcome nobody knows; behind these it gives up */
};

/* UNSUPPORTED: it doesn't, and how that was seen; others as of the target. IO: the store answers no
 * more, or too many races were lost. */
TN_MUST_USE tn_rc tn_probe(struct tn_target *target, const char *table, struct tn_clock *clock,
                           struct tn_arena *scratch, struct tn_err *err);
