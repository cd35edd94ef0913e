#include "app/reserve.h"

#include <inttypes.h>

#include "base/wait.h"

enum { ASK_MS = 1000, SPARE = 8 /* so small a part of the reserve more, and it is low no more */ };

static uint64_t written(const struct tn_reserve *r)
{
    return __atomic_load_n(&r->io->counts.bytes_written, __ATOMIC_RELAXED);
}

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_reserve *r = (struct tn_reserve *)(void *)task;
    (void)context;
    return r->io->vtable->room(r->io, &r->answer, err);
}

static void take(struct tn_reserve *r, tn_rc rc, const struct tn_err *err)
{
    r->known = rc == TN_OK;
    r->room = r->answer;
    r->written = r->answered;
    if (rc != TN_OK && !r->said) {
        r->said = true;
        tn_log_err(r->log, TN_LOG_WARN, "disk", err);
    }
}

static void complete(struct tn_task *task, tn_rc rc)
{
    struct tn_reserve *r = (struct tn_reserve *)(void *)task;
    r->under_way = false;
    take(r, rc, &task->err);
}

static void ask(struct tn_reserve *r)
{
    r->task = (struct tn_task){.execute = execute, .complete = complete, .lane = TN_LANE_SHORT};
    r->answered = written(r);
    r->under_way = true;
    tn_exec_submit(r->exec, &r->task);
}

bool tn_reserve_left(const struct tn_reserve *reserve, uint64_t *left)
{
    uint64_t gone = written(reserve) - reserve->written;
    *left = gone < reserve->room ? reserve->room - gone : 0;
    return reserve->known;
}

static void judge(struct tn_reserve *r)
{
    uint64_t left;
    bool known = tn_reserve_left(r, &left);
    bool was = r->low;
    uint64_t least = r->low ? r->bytes + r->bytes / SPARE : r->bytes;
    r->low = known && left < least;
    if (r->low != was) {
        tn_log_event(r->log, r->low ? TN_LOG_WARN : TN_LOG_INFO, "disk",
                     "room=%" PRIu64 " reserve=%" PRIu64 " text=\"%s\"", left, r->bytes,
                     r->low ? "no row is taken any more" : "rows are taken again");
    }
}

void tn_reserve_open(struct tn_reserve *reserve, struct tn_io *io, struct tn_exec *exec,
                     struct tn_log *log, uint64_t bytes)
{
    struct tn_err err = {0};
    *reserve = (struct tn_reserve){.io = io, .exec = exec, .log = log, .bytes = bytes};
    if (bytes > 0) {
        reserve->answered = written(reserve);
        take(reserve, execute(&reserve->task, NULL, &err), &err);
        judge(reserve);
    }
}

/* What looks low by what was written since may have been files that took another's place. */
bool tn_reserve_turn(struct tn_reserve *reserve, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_reserve *r = reserve;
    if (r->bytes == 0) {
        return false;
    }
    bool was = r->low;
    judge(r);
    if (!r->under_way && (now_ms >= r->next_ms || (r->low && !was))) {
        r->next_ms = now_ms + ASK_MS;
        ask(r);
    }
    if (!r->under_way) {
        tn_wait_lower(wait_ms, r->next_ms - now_ms);
    }
    return was && !r->low;
}
