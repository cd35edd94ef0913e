/* recover: what a table's writer knows after a start: its lock, its id, the round it goes on with,
 * and its sources' positions.
 *
 * Beside the table, outside of it, in `.tarn/`:
 *
 *     <db>.<table>.lock        held while somebody writes; its text says who
 *     <db>.<table>.writer      the writer's id, made when the table was first written here
 *     <db>.<table>.positions   made before the first position is committed: from then on
 *                              positions must be found
 *     <db>.<table>.before      the writer whose table it was until it was restored here
 *
 * Positions stand in the snapshots' properties. Recovery walks back from the newest snapshot, of
 * any user and kind, to the first whose `tarn.writer` is ours, or was before us.
 */
#pragma once

#include "commit/snapshot.h"
#include "io/clock.h"

#define TN_WRITER_PROPERTY   "tarn.writer"
#define TN_ROUND_PROPERTY    "tarn.round"
#define TN_POSITION_PROPERTY "tarn.position."

struct tn_recovered {
    char writer[TN_UUID_SIZE];
    char before[TN_UUID_SIZE];     /* whose table it was; "": nobody's */
    bool writer_new;               /* made just now: the table was never written here */
    bool positioned;               /* a position was committed once */
    bool found;                    /* a snapshot of ours */
    int64_t latest_id;             /* 0: no snapshot at all */
    int64_t latest_ms;             /* when it was committed, or 0 */
    int64_t round;                 /* of our newest snapshot, 0 when there is none */
    struct tn_json_map properties; /* of that snapshot */
};

/* Bytes of a name that is written: files beside the table have longer ones, and few disks take more
 * than 255. */
enum { TN_TABLE_LOCK_MAX = 180 };

/* Takes the lock. EXISTS says who holds it; INVALID: that is no name of a table. */
TN_MUST_USE tn_rc tn_table_lock(struct tn_io *io, const char *table, const char *who,
                                struct tn_arena *scratch, int *lock, struct tn_err *err);

/* Reads or makes the writer's id, then walks back. `scratch` is used for one snapshot at a time;
 * what is found is in `arena`. */
TN_MUST_USE tn_rc tn_table_recover(struct tn_io *io, struct tn_clock *clock, const char *table,
                                   const char *root, struct tn_arena *arena,
                                   struct tn_recovered *recovered, struct tn_err *err);

/* The writer's id, made if there is none; `writer_new` says so. Its name is durable with the next
 * barrier over `.tarn/`. */
TN_MUST_USE tn_rc tn_table_writer(struct tn_io *io, struct tn_clock *clock, const char *table,
                                  struct tn_arena *scratch, struct tn_recovered *recovered,
                                  struct tn_err *err);

/* This device goes on with what `before` wrote, whose positions are its own from now on; so are the
 * rounds. Durable when it returns. */
TN_MUST_USE tn_rc tn_table_inherit(struct tn_io *io, const char *table, const char *before,
                                   bool positioned, struct tn_arena *scratch, struct tn_err *err);

/* Makes the mark that positions are in use; durable when it returns. */
TN_MUST_USE tn_rc tn_table_mark_positioned(struct tn_io *io, const char *table,
                                           struct tn_arena *scratch, struct tn_err *err);
