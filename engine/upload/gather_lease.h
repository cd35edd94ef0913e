/* gather_lease: one gather of a table at a time: `.tarn/<db>.<table>/lease`
 *
 *     {"version": 1, "holder": "<uuid>", "who": "tarn gather, process 17", "generation": 3,
 *      "beat": 41}
 *
 * Who has it counts `beat` on. Nobody's clock is compared with another's: whoever wants the lease
 * watches it, and takes it over, with the next generation, when it stayed as it was for
 * TN_LEASE_TTL_MS of the watcher's own monotonic time. One that is given back is gone at once.
 *
 *     no file ---------------------------> made: held
 *     a beat that comes, or other's -----> EXISTS, look again
 *     the same for TTL ------------------> written over: held
 *     held, but another's is there ------> lost: EXISTS
 *
 * Of two that take over at once both may believe that they have it, until the next beat. That does
 * no harm, but for work done twice: what keeps a table right is that a snapshot's name is given
 * once.
 */
#pragma once

#include "io/clock.h"
#include "io/io.h"

enum {
    TN_LEASE_BEAT_MS = 5 * 1000,
    TN_LEASE_TTL_MS = 20 * 1000,
    TN_LEASE_WHO_SIZE = 128,
};

struct tn_lease_seen {
    char holder[TN_UUID_SIZE];
    char who[TN_LEASE_WHO_SIZE];
    int64_t generation;
    int64_t beat;
};

struct tn_lease {
    struct tn_io *io;
    struct tn_clock *clock;
    const char *table; /* "db.t" */
    struct tn_lease_seen own;
    bool held;
    bool alive;                /* another's was seen to beat */
    struct tn_lease_seen seen; /* another's; generation 0: none */
    int64_t since_ns;          /* when ours was written last, or another's was first seen so */
};

/* `who` says to people who has it. */
void tn_lease_init(struct tn_lease *lease, struct tn_io *io, struct tn_clock *clock,
                   const char *table, const char *who);

/* To be called at least once in TN_LEASE_BEAT_MS: takes it, or keeps it. EXISTS: another has it, or
 * may have; who. Costs nothing where a beat isn't due, else a read and a write. */
TN_MUST_USE tn_rc tn_lease_keep(struct tn_lease *lease, struct tn_arena *scratch,
                                struct tn_err *err);

/* Gives it back. What fails lets the next one wait. */
void tn_lease_give(struct tn_lease *lease, struct tn_arena *scratch);
