/* handing: what a verb can't do since `tarn run` holds the table is handed to it.
 *
 * Waits until the daemon has done it; without an end, for compactions take long. Who is stopped
 * meanwhile stops only the waiting.
 */
#pragma once

#include "app/boot.h"
#include "app/job.h"

struct tn_handed {
    int64_t values[TN_JOB_VALUES];
};

/* ABSENT: no daemon is there, or the table is none of its own: `err` is as it was. All others are
 * the daemon's, or of the way to it. CANCELED: `stopped`, which may be NULL, said so. */
TN_MUST_USE tn_rc tn_hand(struct tn_app *app, const struct tn_job_wish *wish, bool (*stopped)(void),
                          struct tn_handed *handed, struct tn_err *err);
