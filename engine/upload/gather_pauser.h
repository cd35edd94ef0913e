/* gather_pauser: who has the committers of a lake's table wait (gather_pause.h).
 *
 *     set -> beat ... -> lift
 *
 * Several may at once, each by a mark of its own; the last that goes ends the pause. Each beat
 * reads all marks, counts its own on, puts it back where it is missing, and leaves out those of
 * others that stood still for TN_PAUSE_TTL_MS. It is written on the condition that nobody else has
 * written meanwhile; where a target can't promise that (a folder of several machines) a mark may
 * be lost, until the next beat.
 */
#pragma once

#include "upload/gather_pause.h"

struct tn_pauser {
    struct tn_target *target;
    struct tn_clock *clock;
    const char *table; /* "db.t" */
    struct tn_pause_mark own;
    bool set;
    int64_t beat_ns; /* monotonic: when it was written last */
    /* Marks of others as they were seen last, and since when. */
    struct tn_pause_marks others;
    int64_t since_ns[TN_PAUSE_MARKS_MAX];
};

/* Writes nothing yet; `by` says to people who pauses. */
void tn_pauser_init(struct tn_pauser *pauser, struct tn_target *target, struct tn_clock *clock,
                    const char *table, const char *by);

/* Sets the mark, or beats where TN_PAUSE_BEAT_MS have passed; durable when it returns. `lost`: it
 * was set, and is no more: now it is again. FULL: TN_PAUSE_MARKS_MAX others pause. IO: nobody knows
 * whether it is written. Costs nothing where no beat is due, else a GET, and a swap. */
TN_MUST_USE tn_rc tn_pauser_keep(struct tn_pauser *pauser, struct tn_arena *scratch, bool *lost,
                                 struct tn_err *err);

/* How long ago the mark was written, ms. */
int64_t tn_pauser_age_ms(const struct tn_pauser *pauser);

/* Takes the mark away. That it isn't there is no error. */
TN_MUST_USE tn_rc tn_pauser_lift(struct tn_pauser *pauser, struct tn_arena *scratch,
                                 struct tn_err *err);

/* Marks that have run out go, if they are still what was read. */
TN_MUST_USE tn_rc tn_pause_forget(struct tn_target *target, const char *table,
                                  const struct tn_pause *pause, struct tn_arena *scratch,
                                  struct tn_err *err);
