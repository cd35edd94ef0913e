/* lakes_private: what the files of lakes.h share.
 *
 *     lakes.c          which upload comes next, and what becomes of it
 *     lakes_open.c     as it is at the start
 *     lakes_task.c     an upload, on its lane
 *     lakes_way.c      who gives way on a full disk
 *     lakes_survey.c   what a mirror lacks, counted
 *     lakes_policy.c   what scripts say
 *     lakes_link.c     over what the lakes are reached
 *     lakes_report.c   what is said of them
 */
#pragma once

#include "app/lakes.h"

static inline int64_t tn_lakes_now_ms(const struct tn_lakes *lakes)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    return clock->vtable->monotonic_ns(clock) / 1000000;
}

static inline bool tn_lakes_is_pending(const struct tn_lakes_mirror *m)
{
    return m->seen_id > 0 && (!m->known || m->since_ms > 0);
}

/* ---- lakes_open.c ---- */

/* A shared table isn't held by the name that the lake has as a mirror: under that nobody takes
 * anything. */
TN_MUST_USE tn_rc tn_lakes_forget_mirror(const struct tn_lakes *lakes,
                                         const struct tn_lakes_mirror *m, struct tn_err *err);

/* ---- lakes_task.c ---- */

/* Of a struct tn_lakes_task. */
TN_MUST_USE tn_rc tn_lakes_execute(struct tn_task *task, void *context, struct tn_err *err);
/* CONFLICT: the table is shared with another place than the lake's. */
TN_MUST_USE tn_rc tn_lakes_check_place(const struct tn_lakes_door *door,
                                       const struct tn_lakes_lake *lake, const char *table,
                                       const struct tn_share *share, struct tn_err *err);

/* ---- lakes_way.c ---- */

/* `*wait_ms` is lowered to when it wants the next turn. */
void tn_lakes_way_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms);
/* Nothing of it may begin now. */
static inline bool tn_lakes_way_holds(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    return lakes->way.mirror == m;
}
/* The upload under way is that of a mirror which gives way. */
static inline bool tn_lakes_way_stops(const struct tn_lakes *lakes)
{
    return lakes->way.mirror && lakes->way.mirror == lakes->now.mirror;
}

/* ---- lakes_policy.c ---- */

/* Of the configuration's lake, in its share of the memory of policies. */
TN_MUST_USE tn_rc tn_lakes_policy_open(struct tn_lakes *lakes, struct tn_lakes_lake *lake,
                                       uint32_t index, struct tn_err *err);
void tn_lakes_policy_close(struct tn_lakes_lake *lake);
/* Asks whom it is time to ask. */
void tn_lakes_policy_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms);
/* A script decides of it: by `plan`. */
bool tn_lakes_has_policy(const struct tn_lakes_mirror *m);
/* Nothing of it is to be sent now, a script says; */
bool tn_lakes_policy_holds(const struct tn_lakes_mirror *m);
/* or nobody is to be asked. */
bool tn_lakes_policy_waits(const struct tn_lakes_mirror *m);

/* ---- lakes_link.c ---- */

void tn_lakes_link_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms);

/* ---- lakes_survey.c ---- */

void tn_lakes_survey_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms);

/* ---- lakes_report.c ---- */

/* Why an upload of a shared table failed, beside what the lake says; NULL: it doesn't say. */
const char *tn_lakes_kind_of_share(enum tn_share_why why);
/* `known` is what the door, or the one above, says, or NULL. */
const char *tn_lakes_kind_of(tn_rc rc, const char *known);
