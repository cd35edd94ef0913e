/* intake_private: what the files of intake.h have in common.
 *
 *     intake.c        open, the way from the ring into the tables, turns
 *     intake_offer.c  the hub: what sources offer, into the journal and the ring
 *     intake_walk.c   what tables that are behind read from the journal
 */
#pragma once

#include "app/intake.h"

extern const struct tn_hub_vtable tn_intake_hub;

/* Monotonic. */
int64_t tn_intake_now_ms(const struct tn_intake *in);

/* NULL: no keeper's table has this name. */
struct tn_keeper *tn_intake_find(const struct tn_intake *in, struct tn_bytes name);

/* How many keepers are BEHIND, and the first place that one of them wants. */
uint32_t tn_intake_behind(const struct tn_intake *in, uint64_t *from);

/* Brings those that are behind nearer to what the journal has, a bounded part of it in a turn. */
TN_MUST_USE tn_rc tn_intake_walk(struct tn_intake *in, int64_t now_ms, uint32_t *wait_ms,
                                 struct tn_err *err);
