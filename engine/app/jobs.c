#include "app/jobs_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "commit/snapshot.h"

enum {
    SNAPSHOTS_A_TASK = 8,
    TURN_MS = 20,        /* while there is a job */
    REMEMBER_MS = 10000, /* one that is over, where nobody comes to hear of it */
    NUMBER_SIZE = 24,
};

/* ---- how one ends ---- */

static void say(const struct tn_jobs *jobs, const struct tn_job *job)
{
    const char *verb = tn_job_verb_name(job->wish.verb);
    if (job->rc == TN_OK && job->wish.verb == TN_JOB_COMMIT) {
        return; /* the table says so */
    }
    if (job->rc == TN_OK) {
        tn_log_event(jobs->spec.log, TN_LOG_INFO, "job", "table=%s %s=done", job->wish.table, verb);
    } else {
        tn_log_event(jobs->spec.log, TN_LOG_WARN, "job", "table=%s %s=failed rc=%d text=\"%s\"",
                     job->wish.table, verb, (int)job->rc, job->err.text);
    }
}

static int64_t now_ms(const struct tn_jobs *jobs)
{
    struct tn_clock *clock = jobs->spec.env->clock;
    return tn_clock_monotonic_ms(clock);
}

void tn_jobs_end(struct tn_jobs *jobs, struct tn_job *job, tn_rc rc, const struct tn_err *err)
{
    bool began = job->state != TN_JOB_WAITS;
    if (began && job->wish.verb == TN_JOB_COMPACT && job->keeper->table) {
        tn_table_sweep_end(job->keeper->table);
    }
    job->state = TN_JOB_OVER;
    job->over_ms = now_ms(jobs);
    job->rc = rc == TN_AGAIN ? TN_IO : rc; /* who asks is not to ask for the same answer again */
    if (rc != TN_OK) {
        job->err = *err;
    }
    jobs->now = jobs->now == job ? NULL : jobs->now;
    say(jobs, job);
}

/* What the table says of itself while it is shut. */
static void end_by_trouble(struct tn_jobs *jobs, struct tn_job *job)
{
    const struct tn_keeper *k = job->keeper;
    tn_rc rc = k->trouble == TN_OK || k->trouble == TN_AGAIN ? TN_IO : k->trouble;
    struct tn_err err;
    (void)tn_err_set(&err, rc, 0, "%s is shut: %s", k->name,
                     k->trouble == TN_OK ? "it will be opened again" : k->trouble_text.text);
    tn_jobs_end(jobs, job, rc, &err);
}

/* ---- expire ---- */

static void add_expired(struct tn_job *job, const struct tn_expire_result *result)
{
    job->values[TN_JOB_SNAPSHOTS] += result->snapshots;
    job->values[TN_JOB_DATA_FILES] += result->data_files;
    job->values[TN_JOB_METADATA_FILES] += result->metadata_files;
    job->values[TN_JOB_TAGS] += result->tags;
    job->values[TN_JOB_CHANGELOGS] += result->changelogs;
    job->values[TN_JOB_EARLIEST] = result->earliest_id;
}

static tn_rc expiry_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_job_expiry *expiry = (struct tn_job_expiry *)(void *)task;
    struct tn_worker *worker = context;
    size_t mark = tn_arena_mark(&worker->arena);
    int64_t id;
    tn_rc rc = tn_snapshot_latest(worker->io, expiry->spec.root, &worker->arena, &id, err);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_OK) {
        rc = tn_expire(&expiry->spec, worker, &expiry->result, err);
        tn_arena_reset(&worker->arena, mark);
    }
    return rc == TN_ABSENT ? TN_OK : rc; /* an empty table */
}

static void expiry_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_job_expiry *expiry = (struct tn_job_expiry *)(void *)task;
    struct tn_jobs *jobs = expiry->jobs;
    struct tn_job *job = jobs->now;
    jobs->under_way = false;
    if (!job || job->state != TN_JOB_EXPIRES) {
        return;
    }
    if (rc != TN_OK) {
        tn_jobs_end(jobs, job, rc, &task->err);
        return;
    }
    const struct tn_expire_result *result = &expiry->result;
    add_expired(job, result);
    if (expiry->spec.dry_run || (result->snapshots == 0 && result->changelogs == 0)) {
        job->keeper->earliest_id =
            result->earliest_id > 0 ? result->earliest_id : job->keeper->earliest_id;
        tn_jobs_end(jobs, job, TN_OK, NULL);
    }
}

static void expire_on(struct tn_jobs *jobs)
{
    struct tn_job_expiry *expiry = &jobs->expiry;
    expiry->task = (struct tn_task){
        .execute = expiry_execute, .complete = expiry_complete, .lane = TN_LANE_SHORT};
    expiry->result = (struct tn_expire_result){0};
    jobs->under_way = true;
    tn_exec_submit(jobs->spec.env->exec, &expiry->task);
}

static void begin_expiry(struct tn_jobs *jobs)
{
    struct tn_job *job = jobs->now;
    const struct tn_table *table = job->keeper->table;
    struct tn_job_expiry *expiry = &jobs->expiry;
    struct tn_err err;
    jobs->reopened = job->keeper->reopened;
    expiry->jobs = jobs;
    expiry->options = *tn_table_options(table);
    expiry->options.snapshot_expire_limit = job->wish.dry_run ? INT32_MAX : SNAPSHOTS_A_TASK;
    expiry->spec = (struct tn_expire_spec){.root = tn_table_root(table),
                                           .schema = tn_table_schema(table),
                                           .options = &expiry->options,
                                           .dry_run = job->wish.dry_run};
    tn_rc rc = tn_expiry_apply(&job->wish.expiry, &expiry->options, &err);
    if (rc != TN_OK) {
        tn_jobs_end(jobs, job, rc, &err);
        return;
    }
    job->state = TN_JOB_EXPIRES;
    expire_on(jobs);
}

/* ---- turns ---- */

/* False: it is shut, or was. */
static bool is_as_it_was(struct tn_jobs *jobs)
{
    struct tn_job *job = jobs->now;
    struct tn_keeper *k = job->keeper;
    if (!k->table) {
        if (k->trouble != TN_CONFLICT || jobs->tries++ >= TN_JOBS_TRIES_MAX) {
            end_by_trouble(jobs, job);
        } else {
            job->state = TN_JOB_WAITS; /* it opens at once */
        }
        return false;
    }
    if (job->state != TN_JOB_WAITS && k->reopened != jobs->reopened) {
        job->state = TN_JOB_WAITS;
    }
    return true;
}

static struct tn_job *next_job(struct tn_jobs *jobs)
{
    struct tn_job *next = NULL;
    for (uint32_t i = 0; i < TN_JOBS_MAX; i++) {
        struct tn_job *job = &jobs->jobs[i];
        bool may = job->state == TN_JOB_WAITS && job->wish.verb != TN_JOB_COMMIT;
        if (may && (!next || job->number < next->number)) {
            next = job;
        }
    }
    return next;
}

static void begin(struct tn_jobs *jobs)
{
    struct tn_job *job = jobs->now;
    if (job->keeper->state != TN_KEEPER_LIVE) { /* it reads what the journal has */
        return;
    }
    if (job->wish.verb == TN_JOB_COMPACT) {
        tn_jobs_begin_compaction(jobs);
    } else {
        begin_expiry(jobs);
    }
}

static void go_on(struct tn_jobs *jobs, uint32_t *wait_ms)
{
    switch (jobs->now->state) {
    case TN_JOB_WAITS:
        begin(jobs);
        return;
    case TN_JOB_SWEEPS:
        tn_jobs_sweep(jobs, wait_ms);
        return;
    case TN_JOB_COMMITS:
        tn_jobs_settle(jobs, wait_ms);
        return;
    case TN_JOB_EXPIRES:
        expire_on(jobs);
        return;
    case TN_JOB_LOOKS:
    case TN_JOB_OVER:
    case TN_JOB_FREE:
        return;
    }
}

/* ---- commit ---- */

/* Rows are on their way until the table is behind their place; then a cut that comes has them. */
static void follow(struct tn_jobs *jobs, struct tn_job *job)
{
    struct tn_keeper *k = job->keeper;
    uint64_t place = job->wish.place;
    if (!k->table) {
        if (k->trouble != TN_OK && k->trouble != TN_CONFLICT) {
            end_by_trouble(jobs, job);
        }
        return;
    }
    bool there = tn_intake_place(jobs->spec.intake, k).place > place;
    if (k->committed.place > place || (there && tn_keeper_settled(k))) {
        job->values[TN_JOB_COMMITTED] = k->latest_id;
        tn_jobs_end(jobs, job, TN_OK, NULL);
    } else if (there && !k->cutting && k->items != k->items_cut) {
        k->wants_cut = true;
    }
}

static void follow_all(struct tn_jobs *jobs, uint32_t *wait_ms)
{
    for (uint32_t i = 0; i < TN_JOBS_MAX; i++) {
        struct tn_job *job = &jobs->jobs[i];
        if (job->state == TN_JOB_WAITS && job->wish.verb == TN_JOB_COMMIT) {
            follow(jobs, job);
            tn_wait_lower(wait_ms, job->keeper->wants_cut ? 0 : TURN_MS);
        }
    }
}

void tn_jobs_turn(struct tn_jobs *jobs, uint32_t *wait_ms)
{
    follow_all(jobs, wait_ms);
    if (jobs->under_way) {
        return;
    }
    if (!jobs->now) {
        jobs->now = next_job(jobs);
        jobs->tries = 0;
    }
    if (jobs->now && is_as_it_was(jobs)) {
        go_on(jobs, wait_ms);
    }
    if (jobs->now || next_job(jobs)) {
        tn_wait_lower(wait_ms, TURN_MS);
    }
}

/* ---- what is asked for ---- */

static struct tn_keeper *find_keeper(const struct tn_jobs *jobs, const char *table)
{
    for (uint32_t i = 0; i < jobs->spec.keeper_count; i++) {
        if (strcmp(jobs->spec.keepers[i].name, table) == 0) {
            return &jobs->spec.keepers[i];
        }
    }
    return NULL;
}

/* A free one, or of those that are over, and need not be remembered, the oldest. */
static struct tn_job *take_place(struct tn_jobs *jobs)
{
    struct tn_job *place = NULL;
    int64_t old_ms = now_ms(jobs) - REMEMBER_MS;
    for (uint32_t i = 0; i < TN_JOBS_MAX; i++) {
        struct tn_job *job = &jobs->jobs[i];
        bool heard = job->state == TN_JOB_OVER && (job->told || job->over_ms <= old_ms);
        bool may = job->state == TN_JOB_FREE || heard;
        if (may && (!place || job->number < place->number)) {
            place = job;
        }
    }
    return place;
}

tn_rc tn_jobs_ask(struct tn_jobs *jobs, const struct tn_job_wish *wish, const struct tn_job **job,
                  struct tn_err *err)
{
    struct tn_keeper *keeper = find_keeper(jobs, wish->table);
    if (jobs->stopping) {
        return tn_err_set(err, TN_IO, 0, "tarn run ends, or begins anew");
    }
    if (!keeper) {
        return tn_err_set(err, TN_ABSENT, 0, "%s is none of tarn run's tables", wish->table);
    }
    struct tn_job *place = take_place(jobs);
    if (!place) {
        return tn_err_set(err, TN_AGAIN, 0, "%d jobs wait, or who asked for them does",
                          TN_JOBS_MAX);
    }
    *place = (struct tn_job){
        .state = TN_JOB_WAITS, .number = ++jobs->numbers, .wish = *wish, .keeper = keeper};
    *job = place;
    return TN_OK;
}

struct tn_job *tn_jobs_find(struct tn_jobs *jobs, uint64_t number)
{
    for (uint32_t i = 0; i < TN_JOBS_MAX; i++) {
        if (jobs->jobs[i].state != TN_JOB_FREE && jobs->jobs[i].number == number) {
            return &jobs->jobs[i];
        }
    }
    return NULL;
}

void tn_jobs_stop(struct tn_jobs *jobs)
{
    struct tn_err err;
    (void)tn_err_set(&err, TN_IO, 0,
                     "tarn run ends, or begins anew: what is committed stays, try again for the "
                     "rest");
    jobs->stopping = true;
    for (uint32_t i = 0; i < TN_JOBS_MAX; i++) {
        struct tn_job *job = &jobs->jobs[i];
        if (job->state != TN_JOB_FREE && job->state != TN_JOB_OVER) {
            tn_jobs_end(jobs, job, TN_IO, &err);
        }
    }
}

void tn_jobs_init(struct tn_jobs *jobs, const struct tn_jobs_spec *spec)
{
    memset(jobs, 0, sizeof *jobs);
    jobs->spec = *spec;
}

/* ---- pages ---- */

static void put_begin(const struct tn_jobs *jobs, struct tn_buf *out)
{
    tn_buf_format(out, "{\"begun_ms\":%" PRId64, jobs->spec.begun_ms);
}

static void put_end(struct tn_buf *out, tn_rc rc, const struct tn_err *err)
{
    tn_buf_format(out, ",\"rc\":%d", (int)rc);
    tn_job_put_end(out, rc, err);
}

static void put_job(const struct tn_job *job, struct tn_buf *out)
{
    bool over = job->state == TN_JOB_OVER;
    tn_buf_format(out, ",\"job\":%" PRIu64 ",\"over\":%d", job->number, over);
    for (int i = 0;
         over && job->rc == TN_OK && i < TN_JOB_VALUES && tn_job_values[job->wish.verb][i]; i++) {
        tn_buf_format(out, ",\"%s\":%" PRId64, tn_job_values[job->wish.verb][i], job->values[i]);
    }
}

int tn_jobs_post(struct tn_jobs *jobs, struct tn_bytes query, struct tn_buf *out)
{
    struct tn_job_wish wish;
    struct tn_err err = {0};
    const struct tn_job *job = NULL;
    tn_rc rc = tn_job_wish_read(query, &wish, &err);
    if (rc == TN_OK) {
        rc = tn_jobs_ask(jobs, &wish, &job, &err);
    }
    put_begin(jobs, out);
    if (job) {
        put_job(job, out);
    }
    put_end(out, rc, &err);
    return 200;
}

int tn_jobs_get(struct tn_jobs *jobs, struct tn_bytes query, struct tn_buf *out)
{
    char number[NUMBER_SIZE];
    bool said = tn_job_member(query, "job", number, sizeof number);
    struct tn_job *job = said ? tn_jobs_find(jobs, strtoull(number, NULL, 10)) : NULL;
    put_begin(jobs, out);
    if (job) {
        put_job(job, out);
        put_end(out, job->rc, &job->err);
        job->told = job->state == TN_JOB_OVER;
    } else {
        struct tn_err err;
        put_end(out, tn_err_set(&err, TN_ABSENT, 0, "there is no such job any more"), &err);
    }
    return 200;
}
