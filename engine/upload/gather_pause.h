/* gather_pause: committers of a lake's table are asked to wait, by a small object beside it:
 * `.tarn/<db>.<table>/pause`
 *
 *     {"version": 1, "by": "tarn gather, process 17 on box", "sinceMs": 1790000000000}
 *
 * Official Paimon replaces a snapshot's name in an object store without asking. So before official
 * compaction, expiry or writers run, all committers of tarn pause: each reads this before it makes
 * a snapshot, and again where it read it longer ago than TN_PAUSE_FRESH_MS. When it has stood for
 * TN_PAUSE_QUIET_MS without a new snapshot, nobody is under way any more.
 */
#pragma once

#include "io/io.h"
#include "upload/target.h"

enum {
    TN_PAUSE_TEXT_SIZE = 128,
    TN_PAUSE_FRESH_MS = 5 * 1000,
    /* A request that is under way is given up, or known to have failed, in less. */
    TN_PAUSE_QUIET_MS = 60 * 1000,
};

struct tn_pause {
    bool set;
    int64_t since_ms; /* by the clock of who set it */
    char by[TN_PAUSE_TEXT_SIZE];
};

/* None is no error: `set` is false. A pause that can't be read is one, by nobody known. */
TN_MUST_USE tn_rc tn_pause_read(struct tn_io *io, const char *table, struct tn_arena *scratch,
                                struct tn_pause *pause, struct tn_err *err);
/* The same, in one GET. */
TN_MUST_USE tn_rc tn_pause_read_target(struct tn_target *target, const char *table,
                                       struct tn_arena *scratch, struct tn_pause *pause,
                                       struct tn_err *err);

/* Says AGAIN: who asked committers to wait, and since when. */
tn_rc tn_pause_say(const struct tn_pause *pause, const char *table, struct tn_err *err);

/* Durable when it returns. One that is there already is replaced. */
TN_MUST_USE tn_rc tn_pause_set(struct tn_io *io, const char *table, const char *by, int64_t now_ms,
                               struct tn_arena *scratch, struct tn_err *err);
/* That there is none is no error. */
TN_MUST_USE tn_rc tn_pause_lift(struct tn_io *io, const char *table, struct tn_arena *scratch,
                                struct tn_err *err);
