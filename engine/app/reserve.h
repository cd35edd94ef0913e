/* reserve: whether the disk still has the room that the configuration wants kept free
 * (`disk_reserve`): below it no row is taken, while commits, compaction and expiry go on, and with
 * them what they free.
 *
 * The disk is asked in a task now and then; in between what was written since counts as gone. It is
 * low until there is an eighth more than the reserve, so that it doesn't go to and fro. A disk that
 * doesn't say how much room it has is never low. The loop's thread only.
 */
#pragma once

#include "base/exec.h"
#include "base/log.h"
#include "io/io.h"

struct tn_reserve {
    struct tn_task task; /* first */
    struct tn_io *io;
    struct tn_exec *exec;
    struct tn_log *log;
    uint64_t bytes; /* to be kept free; 0: none, and nobody asks */
    bool low;       /* no row is taken */
    bool known;
    bool under_way;
    bool said;         /* that it doesn't say */
    uint64_t room;     /* when it was asked */
    uint64_t written;  /* by then */
    uint64_t answer;   /* the task's */
    uint64_t answered; /* what was written when it began */
    int64_t next_ms;   /* when it is asked again; monotonic */
};

/* Asks at once, and waits for the answer. */
void tn_reserve_open(struct tn_reserve *reserve, struct tn_io *io, struct tn_exec *exec,
                     struct tn_log *log, uint64_t bytes);
/* Bytes that the disk has left by now. False: it doesn't say, or nobody asks. */
bool tn_reserve_left(const struct tn_reserve *reserve, uint64_t *left);
/* `*wait_ms` is lowered to when it wants the next turn. True: it was low, and isn't any more. */
bool tn_reserve_turn(struct tn_reserve *reserve, int64_t now_ms, uint32_t *wait_ms);
