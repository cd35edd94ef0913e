#include <pthread.h>
#include <stddef.h>

#include "base/check.h"
#include "base/exec.h"
#include "base/signals.h"

/* One thread a lane. A lane is `busy` from the moment its worker takes a task until the loop has
 * completed that task, so the worker doesn't touch its context before. */
struct lane {
    struct tn_exec_threads *exec;
    void *context;
    pthread_t thread;
    struct tn_task *first;
    struct tn_task *last;
    bool busy;
};

struct tn_exec_threads {
    struct tn_exec exec; /* first */
    pthread_mutex_t mutex;
    pthread_cond_t work;     /* a task was queued, a lane is free again, or the end */
    pthread_cond_t finished; /* a task has finished */
    struct lane lanes[TN_LANES];
    struct tn_task *done_first;
    struct tn_task *done_last;
    bool closing;
};
_Static_assert(sizeof(struct tn_exec_threads) <= TN_EXEC_THREADS_SIZE, "fits what callers give");

static void push(struct tn_task **first, struct tn_task **last, struct tn_task *task)
{
    task->next = NULL;
    if (*last) {
        (*last)->next = task;
    } else {
        *first = task;
    }
    *last = task;
}

static struct tn_task *pop(struct tn_task **first, struct tn_task **last)
{
    struct tn_task *task = *first;
    if (task) {
        *first = task->next;
        if (!*first) {
            *last = NULL;
        }
    }
    return task;
}

static void *work(void *argument)
{
    struct lane *lane = argument;
    struct tn_exec_threads *exec = lane->exec;
    (void)pthread_mutex_lock(&exec->mutex);
    for (;;) {
        while (!exec->closing && (lane->busy || !lane->first)) {
            (void)pthread_cond_wait(&exec->work, &exec->mutex);
        }
        if (exec->closing) {
            break;
        }
        struct tn_task *task = pop(&lane->first, &lane->last);
        lane->busy = true;
        (void)pthread_mutex_unlock(&exec->mutex);
        task->rc = task->execute(task, lane->context, &task->err);
        (void)pthread_mutex_lock(&exec->mutex);
        push(&exec->done_first, &exec->done_last, task);
        (void)pthread_cond_signal(&exec->finished);
        if (exec->exec.notify) {
            exec->exec.notify(exec->exec.notify_user);
        }
    }
    (void)pthread_mutex_unlock(&exec->mutex);
    return NULL;
}

static void submit(struct tn_exec *base, struct tn_task *task)
{
    struct tn_exec_threads *exec = (struct tn_exec_threads *)(void *)base;
    struct lane *lane = &exec->lanes[task->lane];
    ++*tn_exec_count(base, task->lane);
    (void)pthread_mutex_lock(&exec->mutex);
    push(&lane->first, &lane->last, task);
    (void)pthread_cond_broadcast(&exec->work);
    (void)pthread_mutex_unlock(&exec->mutex);
}

static struct tn_task *take_done(struct tn_exec_threads *exec, bool wait)
{
    (void)pthread_mutex_lock(&exec->mutex);
    while (wait && !exec->done_first) {
        (void)pthread_cond_wait(&exec->finished, &exec->mutex);
    }
    struct tn_task *task = pop(&exec->done_first, &exec->done_last);
    (void)pthread_mutex_unlock(&exec->mutex);
    return task;
}

static void free_lane(struct tn_exec_threads *exec, enum tn_lane lane)
{
    (void)pthread_mutex_lock(&exec->mutex);
    exec->lanes[lane].busy = false;
    (void)pthread_cond_broadcast(&exec->work);
    (void)pthread_mutex_unlock(&exec->mutex);
}

static bool any(const struct tn_exec *exec)
{
    return exec->under_way > 0 || exec->uploads > 0;
}

static int turn(struct tn_exec *base, bool wait)
{
    struct tn_exec_threads *exec = (struct tn_exec_threads *)(void *)base;
    int count = 0;
    for (;;) {
        struct tn_task *task = take_done(exec, wait && count == 0 && any(base));
        if (!task) {
            return count;
        }
        enum tn_lane lane = task->lane;
        --*tn_exec_count(base, lane);
        count++;
        task->complete(task, task->rc); /* may submit the same task again */
        free_lane(exec, lane);
    }
}

static void stop(struct tn_exec_threads *exec, int lanes)
{
    (void)pthread_mutex_lock(&exec->mutex);
    exec->closing = true;
    (void)pthread_cond_broadcast(&exec->work);
    (void)pthread_mutex_unlock(&exec->mutex);
    for (int lane = 0; lane < lanes; lane++) {
        (void)pthread_join(exec->lanes[lane].thread, NULL);
    }
    (void)pthread_cond_destroy(&exec->work);
    (void)pthread_cond_destroy(&exec->finished);
    (void)pthread_mutex_destroy(&exec->mutex);
}

static void close_threads(struct tn_exec *base)
{
    TN_CHECK(!any(base));
    stop((struct tn_exec_threads *)(void *)base, TN_LANES);
}

static int start(struct lane *lane)
{
    sigset_t before;
    tn_signals_hold(&before);
    int rc = pthread_create(&lane->thread, NULL, work, lane);
    tn_signals_restore(&before);
    return rc;
}

static const struct tn_exec_vtable vtable = {submit, turn, close_threads};

tn_rc tn_exec_threads_open(void *memory, void *const contexts[TN_LANE_COUNT], struct tn_exec **out,
                           struct tn_err *err)
{
    struct tn_exec_threads *exec = memory;
    *exec = (struct tn_exec_threads){.exec = {.vtable = &vtable}};
    (void)pthread_mutex_init(&exec->mutex, NULL);
    (void)pthread_cond_init(&exec->work, NULL);
    (void)pthread_cond_init(&exec->finished, NULL);
    for (int i = 0; i < TN_LANES; i++) {
        struct lane *lane = &exec->lanes[i];
        exec->exec.contexts[i] = i < TN_LANE_COUNT ? contexts[i] : NULL;
        *lane = (struct lane){.exec = exec, .context = exec->exec.contexts[i]};
        int rc = start(lane);
        if (rc != 0) {
            stop(exec, i);
            return tn_err_set(err, TN_IO, rc, "start a worker thread: error %d", rc);
        }
    }
    *out = &exec->exec;
    return TN_OK;
}
