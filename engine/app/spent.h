/* spent: what a lake was sent this hour, today and this month, by the local wall clock, in a small
 * file.
 *
 * A clock that goes on begins the next hour, day and month; one that goes back takes along what is
 * counted, since it was sent all the same. So a clock that was years ahead costs no budget for
 * longer than the day that it comes back to. One that isn't set yet moves nothing.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"

enum tn_spent_span { TN_SPENT_HOUR, TN_SPENT_DAY, TN_SPENT_MONTH, TN_SPENT_SPANS };

struct tn_spent_sum {
    int64_t at; /* which hour, day or month; since 1970 */
    uint64_t bytes;
    uint64_t requests;
};

struct tn_spent {
    struct tn_spent_sum of[TN_SPENT_SPANS];
};

/* Moves on to the hour, day and month of `local_ms`. */
void tn_spent_look(struct tn_spent *spent, int64_t local_ms);
void tn_spent_add(struct tn_spent *spent, uint64_t bytes, uint64_t requests);

/* A file of the warehouse; the folder is made. */
TN_MUST_USE tn_rc tn_spent_save(const struct tn_spent *spent, struct tn_io *io, const char *name,
                                struct tn_arena *scratch, struct tn_err *err);
/* One that isn't there, or says nothing of use, is nothing spent. */
void tn_spent_load(struct tn_spent *spent, struct tn_io *io, const char *name,
                   struct tn_arena *scratch);
