#include <string.h>

#include "app/jobs_private.h"
#include "app/round.h"
#include "base/wait.h"
#include "commit/snapshot.h"

enum {
    WINDOW_SIZE = 128 * 1024, /* of the census: some 800 buckets a pass */
    WINDOW_SHARE = 4,         /* or this part of what the worker has */
    FILE_SIZE_GUESS = 400,    /* bytes of the levels heap a file takes, in two versions */
    HEAP_SHARE = 2,           /* of the levels heap, that is for rows */
};

/* ---- which buckets ---- */

static tn_rc keep_found(struct tn_job_look *look, const struct tn_census_bucket *bucket,
                        struct tn_err *err)
{
    size_t size = bucket->partition.size;
    if (size > TN_JOB_PARTITION_SIZE) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "a partition of %zu bytes", size);
    }
    memcpy(look->partition, bucket->partition.data, size);
    look->partition_size = size;
    look->number = bucket->number;
    look->begun = true;
    look->looked++;
    if (!tn_compact_may_be_due(tn_table_options(look->table), look->full, bucket)) {
        return TN_OK;
    }
    unsigned char *bytes = look->bytes + look->bytes_size;
    memcpy(bytes, bucket->partition.data, size);
    look->bytes_size += size;
    look->found[look->count++] =
        (struct tn_job_found){{bytes, size}, bucket->number, bucket->file_count};
    return TN_OK;
}

static bool has_place(const struct tn_job_look *look)
{
    return look->count < TN_JOB_FOUND &&
           sizeof look->bytes - look->bytes_size >= TN_JOB_PARTITION_SIZE;
}

/* Up to the end of a pass, when some were found. */
static tn_rc list_some(struct tn_job_look *look, struct tn_census *census, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    while (rc == TN_OK && has_place(look) && (look->count == 0 || census->at < census->count)) {
        const struct tn_census_bucket *bucket;
        rc = tn_census_next(census, &bucket, err);
        if (rc == TN_OK) {
            rc = keep_found(look, bucket, err);
        }
    }
    look->listed = rc == TN_ABSENT;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc open_census(const struct tn_job_look *look, const struct tn_snapshot *snapshot,
                         struct tn_worker *worker, struct tn_census *census, struct tn_err *err)
{
    void *window;
    size_t size = tn_arena_free(&worker->arena) / WINDOW_SHARE;
    size = size < WINDOW_SIZE ? size : WINDOW_SIZE;
    tn_rc rc = tn_arena_need(&worker->arena, size, "a table's buckets", &window, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_census_open(census, tn_table_root(look->table), snapshot, tn_table_schema(look->table),
                   window, size, worker);
    return look->begun
               ? tn_census_skip(census, (struct tn_bytes){look->partition, look->partition_size},
                                look->number, err)
               : TN_OK;
}

static tn_rc look_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_job_look *look = (struct tn_job_look *)(void *)task;
    struct tn_worker *worker = context;
    struct tn_census census;
    struct tn_snapshot snapshot;
    int64_t id;
    const char *root = tn_table_root(look->table);
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_snapshot_latest(worker->io, root, &worker->arena, &id, err);
    look->listed = rc == TN_ABSENT;
    if (rc == TN_OK) {
        rc = tn_snapshot_read(worker->io, root, id, &worker->arena, &snapshot, err);
    }
    if (rc == TN_OK) {
        rc = open_census(look, &snapshot, worker, &census, err);
    }
    if (rc == TN_OK) {
        rc = list_some(look, &census, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return look->listed ? TN_OK : rc;
}

/* A snapshot that is gone meanwhile comes from another writer: the next try sees the newest. */
static void look_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_job_look *look = (struct tn_job_look *)(void *)task;
    struct tn_jobs *jobs = look->jobs;
    jobs->under_way = false;
    if (jobs->now && jobs->now->state == TN_JOB_LOOKS && rc != TN_OK) {
        tn_jobs_end(jobs, jobs->now, rc == TN_AGAIN ? TN_UNSUPPORTED : rc, &task->err);
    } else if (jobs->now && jobs->now->state == TN_JOB_LOOKS) {
        jobs->now->state = TN_JOB_SWEEPS;
    }
}

static void look_on(struct tn_jobs *jobs)
{
    struct tn_job_look *look = &jobs->look;
    look->task =
        (struct tn_task){.execute = look_execute, .complete = look_complete, .lane = TN_LANE_SHORT};
    look->count = 0;
    look->at = 0;
    look->bytes_size = 0;
    jobs->now->state = TN_JOB_LOOKS;
    jobs->under_way = true;
    tn_exec_submit(jobs->spec.env->exec, &look->task);
}

static void begin_look(struct tn_jobs *jobs)
{
    const struct tn_job *job = jobs->now;
    const struct tn_table_counts *counts = tn_table_counts(job->keeper->table);
    struct tn_job_look *look = &jobs->look;
    look->jobs = jobs;
    look->table = job->keeper->table;
    look->full = job->wish.full;
    look->begun = false;
    look->looked = 0;
    jobs->reopened = job->keeper->reopened;
    jobs->reloads = counts->reloads;
    jobs->cut = false;
    look_on(jobs);
}

/* ---- its way ---- */

/* So many as have room, and the first. */
static tn_rc sweep_found(struct tn_jobs *jobs, struct tn_err *err)
{
    struct tn_job_look *look = &jobs->look;
    struct tn_table *table = jobs->now->keeper->table;
    size_t heap = jobs->spec.env->levels->size / HEAP_SHARE;
    int64_t files_max = (int64_t)(heap / FILE_SIZE_GUESS);
    int64_t files = 0;
    while (look->at < look->count) {
        const struct tn_job_found *found = &look->found[look->at];
        files += found->file_count;
        if (files > files_max && files > found->file_count) {
            return TN_OK;
        }
        tn_rc rc = tn_table_sweep(table, found->partition, found->number,
                                  look->full ? TN_SWEEP_FULL : TN_SWEEP_DUE, err);
        if (rc != TN_OK) {
            return rc;
        }
        look->at++;
    }
    return TN_OK;
}

void tn_jobs_sweep(struct tn_jobs *jobs, uint32_t *wait_ms)
{
    struct tn_job_look *look = &jobs->look;
    struct tn_err err = {0};
    if (tn_table_sweeping(jobs->now->keeper->table) > 0) {
        return;
    }
    if (look->at < look->count) {
        tn_rc rc = sweep_found(jobs, &err);
        if (rc != TN_OK && rc != TN_AGAIN) {
            tn_jobs_end(jobs, jobs->now, rc, &err);
        }
    } else if (look->listed) {
        jobs->now->state = TN_JOB_COMMITS;
    } else {
        look_on(jobs);
        return;
    }
    tn_wait_lower(wait_ms, 0);
}

static void report_compaction(const struct tn_jobs *jobs, struct tn_job *job)
{
    const struct tn_keeper *k = job->keeper;
    const struct tn_table_counts *counts = tn_table_counts(k->table);
    uint32_t behind;
    tn_rc behind_rc = tn_table_behind(k->table, &behind);
    job->values[TN_JOB_BUCKETS] = jobs->look.looked;
    job->values[TN_JOB_COMPACTIONS] = (int64_t)(counts->compactions - jobs->compactions);
    job->values[TN_JOB_BYTES] = (int64_t)(counts->compacted_bytes - jobs->bytes);
    job->values[TN_JOB_SNAPSHOT] = k->compact_id != jobs->compact_id ? k->compact_id : 0;
    job->values[TN_JOB_BEHIND] = behind;
    job->values[TN_JOB_BEHIND_RC] = behind_rc;
}

/* Results that were read again, since another writer was there, may be lost. */
void tn_jobs_settle(struct tn_jobs *jobs, uint32_t *wait_ms)
{
    struct tn_job *job = jobs->now;
    struct tn_keeper *k = job->keeper;
    if (k->cutting || k->wants_cut || tn_table_stale(k->table)) {
        return;
    }
    struct tn_err err;
    tn_wait_lower(wait_ms, 0);
    if (tn_table_counts(k->table)->reloads != jobs->reloads && jobs->tries++ < TN_JOBS_TRIES_MAX) {
        begin_look(jobs);
    } else if (tn_table_counts(k->table)->reloads != jobs->reloads) {
        (void)tn_err_set(&err, TN_CONFLICT, 0, "%s has another writer, time and again", k->name);
        tn_jobs_end(jobs, job, TN_CONFLICT, &err);
    } else if (tn_table_uncommitted(k->table) && !jobs->cut) {
        jobs->cut = true;
        k->wants_cut = true;
    } else {
        report_compaction(jobs, job);
        tn_jobs_end(jobs, job, TN_OK, NULL);
    }
}

void tn_jobs_begin_compaction(struct tn_jobs *jobs)
{
    const struct tn_keeper *k = jobs->now->keeper;
    const struct tn_table_counts *counts = tn_table_counts(k->table);
    jobs->compactions = counts->compactions;
    jobs->bytes = counts->compacted_bytes;
    jobs->compact_id = k->compact_id;
    begin_look(jobs);
}
