#include <inttypes.h>
#include <stdio.h>

#include "app/lakes_private.h"
#include "base/wait.h"
#include "commit/consumer.h"
#include "commit/snapshot.h"

/* Of one that can't be sent to, from one time that it gives way to the next. */
enum { WAY_MS = 10 * 1000 };

/* Whoever sends to it would move the consumer back: so nothing of it is under way. */
static tn_rc execute_move(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_lakes_way *way = (struct tn_lakes_way *)(void *)task;
    struct tn_worker *worker = context;
    const char *root = way->mirror->root;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_snapshot_latest(worker->io, root, &worker->arena, &way->latest, err);
    if (rc == TN_OK) {
        rc = tn_consumer_write(worker->io, root, way->mirror->lake->consumer, way->latest,
                               &worker->arena, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

static tn_rc ask_expiry(struct tn_lakes_way *way, struct tn_err *err)
{
    struct tn_jobs *jobs = way->lakes->spec.jobs;
    struct tn_job_wish wish = {.verb = TN_JOB_EXPIRE, .expiry = {-1, -1, -1}};
    const struct tn_job *job;
    (void)snprintf(wish.table, sizeof wish.table, "%s", way->mirror->keeper->name);
    tn_rc rc = tn_jobs_ask(jobs, &wish, &job, err);
    if (rc == TN_OK) {
        way->job = job->number;
        way->state = TN_LAKES_WAY_EXPIRES;
    }
    return rc;
}

static void end(struct tn_lakes_way *way)
{
    way->mirror->way_ms = tn_lakes_now_ms(way->lakes) + WAY_MS;
    way->mirror = NULL;
}

static void moved(struct tn_task *task, tn_rc rc)
{
    struct tn_lakes_way *way = (struct tn_lakes_way *)(void *)task;
    struct tn_log *log = way->lakes->spec.log;
    const struct tn_lakes_mirror *m = way->mirror;
    if (rc == TN_OK) {
        way->mirror->way_id = way->latest;
        tn_log_event(log, TN_LOG_WARN, "lake",
                     "lake=%s table=%s text=\"gives way on the full disk: what it lacks may "
                     "expire\"",
                     m->lake->config->name, m->keeper->name);
        rc = ask_expiry(way, &task->err);
    }
    if (rc != TN_OK) {
        tn_log_err(log, TN_LOG_WARN, "lake", &task->err);
        end(way);
    }
}

static void go_on(struct tn_lakes *lakes)
{
    struct tn_lakes_way *way = &lakes->way;
    if (way->state == TN_LAKES_WAY_STOPS && lakes->now.mirror != way->mirror) {
        way->state = TN_LAKES_WAY_MOVES;
        way->task =
            (struct tn_task){.execute = execute_move, .complete = moved, .lane = TN_LANE_SHORT};
        tn_exec_submit(lakes->spec.env->exec, &way->task);
    } else if (way->state == TN_LAKES_WAY_EXPIRES) {
        struct tn_job *job = tn_jobs_find(lakes->spec.jobs, way->job);
        if (job && job->state == TN_JOB_OVER) {
            job->told = true;
        }
        if (!job || job->state == TN_JOB_OVER) {
            end(way);
        }
    }
}

/* Once it has given way an upload of it frees what is still held: it is stopped no more. */
static bool is_in_the_way(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    return m->lake->config->gap && !m->shared && tn_lakes_is_pending(m) && m->seen_id > m->way_id &&
           (m->way_id == 0 || lakes->now.mirror != m);
}

static struct tn_lakes_mirror *find(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        struct tn_lakes_mirror *m = &lakes->mirrors[i];
        bool is = is_in_the_way(lakes, m);
        if (is && now_ms >= m->way_ms) {
            return m;
        }
        if (is) {
            tn_wait_lower(wait_ms, m->way_ms - now_ms);
        }
    }
    return NULL;
}

static void forget(struct tn_lakes *lakes)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        lakes->mirrors[i].way_id = 0;
    }
}

void tn_lakes_way_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_lakes_way *way = &lakes->way;
    bool low = lakes->spec.intake->reserve.low;
    if (way->mirror) {
        go_on(lakes);
    } else if (!low) {
        forget(lakes);
    } else {
        way->lakes = lakes;
        way->mirror = find(lakes, now_ms, wait_ms);
        way->state = TN_LAKES_WAY_STOPS;
        if (way->mirror) {
            tn_wait_lower(wait_ms, 0);
        }
    }
}
