#include "upload/s3_target_private.h"

enum {
    TURN_MS = 100, /* how soon `stop` is seen */
    PIECES_A_S = 20,
    PIECE_MIN = 256,
    PACE_MS_MAX = 1000,
    MS_PER_S = 1000,
};
#define NS_PER_S INT64_C(1000000000)

/* ---- turns ---- */

static void cancel_all(struct tn_s3_target *target)
{
    for (uint32_t i = 0; i < target->link_count; i++) {
        if (!target->links[i].ended) {
            tn_s3_link_cancel(&target->links[i]);
        }
    }
}

tn_rc tn_s3_target_turn(struct tn_s3_target *target, struct tn_err *err)
{
    bool busy = false;
    if (target->target.stop && atomic_load(target->target.stop)) {
        cancel_all(target);
        return tn_err_set(err, TN_CANCELED, 0, "%s: stopped on request", target->target.name);
    }
    (void)tn_net_turn(target->net, target->busy ? 0 : TURN_MS);
    for (uint32_t i = 0; i < target->link_count; i++) {
        busy = tn_s3_link_step(&target->links[i]) || busy;
    }
    target->busy = busy;
    return TN_OK;
}

/* One whose connection is open, if there is one. */
static struct tn_s3_link *find_free(struct tn_s3_target *target)
{
    struct tn_s3_link *found = NULL;
    for (uint32_t i = 0; i < target->link_count; i++) {
        struct tn_s3_link *link = &target->links[i];
        if (link->state == TN_S3_LINK_FREE && (!found || (link->stream && !found->stream))) {
            found = link;
        }
    }
    return found;
}

tn_rc tn_s3_target_free_link(struct tn_s3_target *target, struct tn_s3_link **link,
                             struct tn_err *err)
{
    tn_rc rc = TN_OK;
    struct tn_s3_link *found = find_free(target);
    while (rc == TN_OK && !found) {
        rc = tn_s3_target_turn(target, err);
        found = find_free(target);
    }
    if (rc == TN_OK) {
        *link = found;
    }
    return rc;
}

static bool is_late(const struct tn_s3_target *target)
{
    return target->deadline_ns > 0 && tn_s3_now_ns(target) >= target->deadline_ns;
}

tn_rc tn_s3_target_ask(struct tn_s3_target *target, const char *key, const struct tn_s3_job *job,
                       struct tn_s3_link **link, struct tn_err *err)
{
    tn_rc rc = tn_s3_target_free_link(target, link, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_s3_link_start(*link, job, key);
    while (rc == TN_OK && !(*link)->ended) {
        rc = tn_s3_target_turn(target, err);
        if (rc == TN_OK && !(*link)->ended && is_late(target)) {
            tn_s3_link_give_up(*link);
        }
    }
    if (rc == TN_OK && (*link)->rc != TN_OK) {
        *err = (*link)->err;
        rc = (*link)->rc;
    }
    target->trouble = (*link)->trouble;
    return rc;
}

static bool has_job(const struct tn_s3_target *target, enum tn_s3_job_kind kind)
{
    for (uint32_t i = 0; i < target->link_count; i++) {
        if (!target->links[i].ended && target->links[i].job.kind == kind) {
            return true;
        }
    }
    return false;
}

tn_rc tn_s3_target_wait(struct tn_s3_target *target, enum tn_s3_job_kind kind, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && has_job(target, kind)) {
        rc = tn_s3_target_turn(target, err);
    }
    return rc;
}

void tn_s3_target_cancel(struct tn_s3_target *target, enum tn_s3_job_kind kind)
{
    for (uint32_t i = 0; i < target->link_count; i++) {
        if (!target->links[i].ended && target->links[i].job.kind == kind) {
            tn_s3_link_cancel(&target->links[i]);
        }
    }
}

uint32_t tn_s3_target_pause(struct tn_s3_target *target, uint32_t tries)
{
    uint64_t random = target->clock->vtable->random(target->clock);
    return tries > 0 ? tn_s3_pause_ms(tries, 0, random) : 0;
}

/* ---- pace: a bucket of bytes that fills by the clock ---- */

/* What goes out at once, and what the bucket holds. */
static int64_t piece_of(uint32_t rate)
{
    return rate / PIECES_A_S > PIECE_MIN ? rate / PIECES_A_S : PIECE_MIN;
}

/* Time that hasn't become a whole byte stays. */
static void refill(struct tn_s3_target *target, uint32_t rate)
{
    int64_t now_ns = tn_s3_now_ns(target);
    int64_t passed_ns = now_ns - target->pace_ns;
    int64_t piece = piece_of(rate);
    if (passed_ns > PACE_MS_MAX * (NS_PER_S / MS_PER_S)) {
        passed_ns = PACE_MS_MAX * (NS_PER_S / MS_PER_S);
        target->pace_ns = now_ns - passed_ns;
    }
    int64_t bytes = passed_ns * rate / NS_PER_S;
    target->credit += bytes;
    target->pace_ns += bytes * NS_PER_S / rate;
    target->credit = target->credit < piece ? target->credit : piece;
}

size_t tn_s3_pace_allows(struct tn_s3_target *target, size_t size)
{
    uint32_t rate = atomic_load(&target->rate);
    if (rate == 0) {
        return size;
    }
    refill(target, rate);
    int64_t least = piece_of(rate) / 2;
    bool enough =
        target->credit >= least || (target->credit > 0 && (uint64_t)target->credit >= size);
    return !enough ? 0 : (uint64_t)target->credit < size ? (size_t)target->credit : size;
}

void tn_s3_pace_took(struct tn_s3_target *target, size_t size)
{
    if (atomic_load(&target->rate) > 0) {
        target->credit -= (int64_t)size;
    }
}

uint32_t tn_s3_pace_wait_ms(struct tn_s3_target *target)
{
    uint32_t rate = atomic_load(&target->rate);
    int64_t missing = rate > 0 ? piece_of(rate) / 2 - target->credit : 0;
    int64_t ms = missing > 0 ? missing * MS_PER_S / rate + 1 : 1;
    return (uint32_t)(ms < PACE_MS_MAX ? ms : PACE_MS_MAX);
}
