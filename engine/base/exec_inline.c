#include <stddef.h>

#include "base/check.h"
#include "base/exec.h"

static void submit(struct tn_exec *base, struct tn_task *task)
{
    struct tn_exec_inline *exec = (struct tn_exec_inline *)base;
    task->next = NULL;
    if (exec->last[task->lane]) {
        exec->last[task->lane]->next = task;
    } else {
        exec->first[task->lane] = task;
    }
    exec->last[task->lane] = task;
    ++*tn_exec_count(base, task->lane);
}

static struct tn_task *take_first(struct tn_exec_inline *exec)
{
    static const enum tn_lane order[TN_LANES] = {TN_LANE_SYNC, TN_LANE_SHORT, TN_LANE_LONG,
                                                 TN_LANE_UPLOAD};
    for (int i = 0; i < TN_LANES; i++) {
        enum tn_lane lane = order[i];
        struct tn_task *task = exec->first[lane];
        if (task) {
            exec->first[lane] = task->next;
            if (!task->next) {
                exec->last[lane] = NULL;
            }
            return task;
        }
    }
    return NULL;
}

static int turn(struct tn_exec *base, bool wait)
{
    (void)wait;
    struct tn_task *task = take_first((struct tn_exec_inline *)base);
    if (!task) {
        return 0;
    }
    task->rc = task->execute(task, base->contexts[task->lane], &task->err);
    --*tn_exec_count(base, task->lane);
    task->complete(task, task->rc);
    return 1;
}

static void close_inline(struct tn_exec *base)
{
    TN_CHECK(base->under_way == 0 && base->uploads == 0);
}

static const struct tn_exec_vtable vtable = {submit, turn, close_inline};

void tn_exec_inline_open(struct tn_exec_inline *exec, void *const contexts[TN_LANE_COUNT])
{
    *exec = (struct tn_exec_inline){.exec = {.vtable = &vtable}};
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        exec->exec.contexts[lane] = contexts[lane];
    }
}
