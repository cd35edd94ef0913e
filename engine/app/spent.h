/* spent: what a lake was sent today and this month, by the local wall clock, in a small file.
 *
 * A clock that goes back keeps what is counted in the day that it left.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"

struct tn_spent {
    int64_t day;   /* since 1970 */
    int64_t month; /* likewise */
    uint64_t day_bytes;
    uint64_t month_bytes;
};

/* Moves on to the day of `local_ms`, and adds. */
void tn_spent_add(struct tn_spent *spent, int64_t local_ms, uint64_t bytes);

/* A file of the warehouse; the folder is made. */
TN_MUST_USE tn_rc tn_spent_save(const struct tn_spent *spent, struct tn_io *io, const char *name,
                                struct tn_arena *scratch, struct tn_err *err);
/* One that isn't there, or says nothing of use, is nothing spent. */
void tn_spent_load(struct tn_spent *spent, struct tn_io *io, const char *name,
                   struct tn_arena *scratch);
