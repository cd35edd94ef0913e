/* jobs_private: what the files of jobs.h have in common.
 *
 *     jobs.c          what is asked for, whose turn it is, expire, commit, pages
 *     jobs_compact.c  compact: LOOKS, SWEEPS, COMMITS
 */
#pragma once

#include "app/jobs.h"

enum { TN_JOBS_TRIES_MAX = 3 }; /* of a table that is opened again, or has another writer */

/* It is over; `err` is not read when `rc` is OK. */
void tn_jobs_end(struct tn_jobs *jobs, struct tn_job *job, tn_rc rc, const struct tn_err *err);

/* The job at hand: LOOKS begins, a turn of SWEEPS, a turn of COMMITS. */
void tn_jobs_begin_compaction(struct tn_jobs *jobs);
void tn_jobs_sweep(struct tn_jobs *jobs, uint32_t *wait_ms);
void tn_jobs_settle(struct tn_jobs *jobs, uint32_t *wait_ms);
