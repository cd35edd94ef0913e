/* exec: runs tasks, on threads or inline, and brings them back to the loop.
 *
 * A task is heavy work: a flush, a slice of a compaction, a commit. `execute` is straight-line
 * blocking code and sees only the task and the context of the lane it runs in; then the loop calls
 * `complete` with its outcome. Nothing else of the engine runs on a worker.
 *
 *     submit -> (queued) -> execute -> (finished) -> complete
 *                           on a worker              on the loop, in tn_exec_turn
 *
 * Two lanes, so that a short task never waits for a long one: SHORT for commits and handshakes,
 * LONG for flushes, slices and scans. One worker a lane, so a lane's context belongs to one task at
 * a time, until its `complete` has returned. What a task has in the context's arena is therefore
 * still there in `complete`. A third lane, SYNC, has no context: of what others wait for to be on
 * disk, which no commit may hold up. UPLOAD has none, either: what travels may take hours, and
 * nobody waits for it, so its tasks are counted apart. Workers take no signals (signals.h).
 *
 * Inline, submit only queues, and each turn executes one task: the order is that of submission,
 * LONG after SHORT, SYNC before them and UPLOAD last. The simulator and command-line verbs use
 * this; with threads the same code runs in parallel.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum tn_lane {
    TN_LANE_SHORT,
    TN_LANE_LONG,
    TN_LANE_COUNT, /* that have a context */
    TN_LANE_SYNC = TN_LANE_COUNT,
    TN_LANE_UPLOAD,
    TN_LANES, /* all */
};

struct tn_task {
    tn_rc (*execute)(struct tn_task *task, void *context, struct tn_err *err);
    void (*complete)(struct tn_task *task, tn_rc rc); /* task->err has the text */
    enum tn_lane lane;
    tn_rc rc;
    struct tn_err err;
    struct tn_task *next;
};

struct tn_exec;
struct tn_exec_vtable {
    void (*submit)(struct tn_exec *exec, struct tn_task *task);
    /* Completes what has finished. With `wait` and tasks under way: at least one. Returns how many.
     */
    int (*turn)(struct tn_exec *exec, bool wait);
    void (*close)(struct tn_exec *exec); /* no task may be under way */
};

struct tn_exec {
    const struct tn_exec_vtable *vtable;
    void *contexts[TN_LANES];
    int under_way; /* submitted and not completed, but for uploads */
    int uploads;   /* likewise; with `wait` a turn waits for these, too, where nothing else is */
    /* Or NULL: called on a worker when a task has finished, for a loop that waits elsewhere than in
     * `turn`. Set before the first submit. */
    void (*notify)(void *user);
    void *notify_user;
};

static inline int *tn_exec_count(struct tn_exec *exec, enum tn_lane lane)
{
    return lane == TN_LANE_UPLOAD ? &exec->uploads : &exec->under_way;
}

static inline void tn_exec_submit(struct tn_exec *exec, struct tn_task *task)
{
    exec->vtable->submit(exec, task);
}

static inline int tn_exec_turn(struct tn_exec *exec, bool wait)
{
    return exec->vtable->turn(exec, wait);
}

struct tn_exec_inline {
    struct tn_exec exec; /* first */
    struct tn_task *first[TN_LANES];
    struct tn_task *last[TN_LANES];
};
void tn_exec_inline_open(struct tn_exec_inline *exec, void *const contexts[TN_LANE_COUNT]);

struct tn_exec_threads; /* exec_threads.c */
enum { TN_EXEC_THREADS_SIZE = 1024 };

/* Starts one thread a lane in the memory given (TN_EXEC_THREADS_SIZE bytes, aligned as
 * max_align_t). */
TN_MUST_USE tn_rc tn_exec_threads_open(void *memory, void *const contexts[TN_LANE_COUNT],
                                       struct tn_exec **exec, struct tn_err *err);
