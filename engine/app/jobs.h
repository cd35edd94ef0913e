/* jobs: what the daemon does for verbs in other shells, whose tables it holds: compact, expire,
 * and that what `write` handed over is in a snapshot.
 *
 *     WAITS -> LOOKS <-> SWEEPS -> COMMITS -> OVER        compact
 *        |---> EXPIRES ------------------------^          expire
 *        '-------------------------------------'          commit
 *
 * One job at a time, the others wait in the order in which they came; but commits wait for
 * their table alone, which commits for them as soon as it has their rows. A compaction is the
 * table's own, between its flushes, with its slices and its commits: rows go on. LOOKS finds the
 * next buckets that may be due, a task that goes once through the manifests; SWEEPS waits until
 * they owe nothing more; COMMITS until the results are in a snapshot. A table that was opened again
 * meanwhile, or has another writer, is gone through once more. EXPIRES takes some snapshots at a
 * time, so that no commit waits for long.
 *
 * When the daemon ends, or begins anew, jobs end with an error; what is committed stays. One that
 * is over is remembered until it was told to who asks, or for a while. The loop's thread only.
 */
#pragma once

#include "app/intake.h"
#include "app/job.h"
#include "commit/expire.h"

enum {
    TN_JOBS_MAX = 8,   /* that wait, or are remembered */
    TN_JOB_FOUND = 16, /* buckets that are swept at once */
    TN_JOB_PARTITION_SIZE = 4096,
};

enum tn_job_state {
    TN_JOB_FREE,
    TN_JOB_WAITS,
    TN_JOB_LOOKS,
    TN_JOB_SWEEPS,
    TN_JOB_COMMITS,
    TN_JOB_EXPIRES,
    TN_JOB_OVER,
};

struct tn_job {
    enum tn_job_state state;
    uint64_t number;
    struct tn_job_wish wish;
    struct tn_keeper *keeper;
    tn_rc rc; /* once it is over, as all below */
    struct tn_err err;
    int64_t values[TN_JOB_VALUES];
    int64_t over_ms;
    bool told;
};

struct tn_job_found {
    struct tn_bytes partition;
    int32_t number;
    int64_t file_count;
};

/* Where LOOKS is in a table. */
struct tn_job_look {
    struct tn_task task; /* first */
    struct tn_jobs *jobs;
    const struct tn_table *table;
    bool full;
    bool begun; /* buckets up to `number` of `partition` were looked at */
    unsigned char partition[TN_JOB_PARTITION_SIZE];
    size_t partition_size;
    int32_t number;
    bool listed; /* there are no more */
    int64_t looked;
    struct tn_job_found found[TN_JOB_FOUND];
    uint32_t count;
    uint32_t at; /* those before it are swept */
    unsigned char bytes[2 * TN_JOB_PARTITION_SIZE];
    size_t bytes_size;
};

struct tn_job_expiry {
    struct tn_task task; /* first */
    struct tn_jobs *jobs;
    struct tn_expire_spec spec;
    struct tn_options options;
    struct tn_expire_result result;
};

struct tn_jobs_spec {
    struct tn_env *env;
    struct tn_keeper *keepers;
    uint32_t keeper_count;
    struct tn_log *log;
    struct tn_intake *intake;
    int64_t begun_ms;
};

struct tn_jobs {
    struct tn_jobs_spec spec;
    struct tn_job jobs[TN_JOBS_MAX];
    struct tn_job *now; /* or NULL */
    uint64_t numbers;
    bool stopping;
    bool under_way; /* a task is */
    struct tn_job_look look;
    struct tn_job_expiry expiry;

    /* Of the job at hand. */
    uint64_t reopened; /* of its keeper, and more below, when it began to look */
    uint64_t reloads;
    uint64_t compactions;
    uint64_t bytes;
    int64_t compact_id;
    uint32_t tries;
    bool cut; /* COMMITS has asked for its cut */
};

void tn_jobs_init(struct tn_jobs *jobs, const struct tn_jobs_spec *spec);

/* ABSENT: no such table is kept here. AGAIN: too many wait. IO: the daemon ends. */
TN_MUST_USE tn_rc tn_jobs_ask(struct tn_jobs *jobs, const struct tn_job_wish *wish,
                              const struct tn_job **job, struct tn_err *err);
/* NULL: it is not remembered, or never was. */
struct tn_job *tn_jobs_find(struct tn_jobs *jobs, uint64_t number);

/* After the intake's turn. `*wait_ms` is lowered to when it wants the next one. */
void tn_jobs_turn(struct tn_jobs *jobs, uint32_t *wait_ms);

/* All are over; a task may still be under way. */
void tn_jobs_stop(struct tn_jobs *jobs);

/* Pages: the answer of TN_JOB_PAGE, by POST and by GET. */
int tn_jobs_post(struct tn_jobs *jobs, struct tn_bytes query, struct tn_buf *out);
int tn_jobs_get(struct tn_jobs *jobs, struct tn_bytes query, struct tn_buf *out);
