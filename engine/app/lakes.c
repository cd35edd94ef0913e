#include "app/lakes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/wait.h"
#include "commit/consumer.h"
#include "commit/snapshot.h"
#include "file/names.h"

enum {
    NS_PER_MS = 1000000,
    PAUSE_MS_MIN = 500,
    PAUSE_MS_MAX = 60 * 1000,
    JITTER_SHARE = 4,         /* so small a part of a pause comes on top of it, at the most */
    SAY_AGAIN_MS = 60 * 1000, /* the same trouble is said once in so long */
    SAVE_MS = 60 * 1000,      /* from one saving of what was spent to the next */
    WAY_MS = 10 * 1000,       /* on a full disk, from one time that a lake gives way to the next */
    ROOT_SIZE = 256,          /* of a table's path, for its share of the arena */
};

static int64_t now_ms(const struct tn_lakes *lakes)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    return clock->vtable->monotonic_ns(clock) / NS_PER_MS;
}

static int64_t local_ms(const struct tn_lakes *lakes)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    return clock->vtable->local_ms(clock);
}

/* ---- open ---- */

size_t tn_lakes_memory(const struct tn_config *config)
{
    return config->lakes ? config->lake_count * sizeof(struct tn_lakes_lake) +
                               config->upload_count * (sizeof(struct tn_lakes_mirror) + ROOT_SIZE)
                         : 0;
}

static struct tn_keeper *find_keeper(const struct tn_lakes_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->keeper_count; i++) {
        if (strcmp(spec->keepers[i].name, name) == 0) {
            return &spec->keepers[i];
        }
    }
    return NULL;
}

/* Where the consumer stands the lake has that snapshot, as delta.h leaves it. A new one keeps all
 * that there is, as if what came before were there. */
static tn_rc protect(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, struct tn_err *err)
{
    struct tn_io *io = lakes->spec.env->io;
    struct tn_arena *scratch = &lakes->spec.worker->arena;
    const char *consumer = m->lake->consumer;
    int64_t first = 1;
    tn_rc rc = tn_consumer_read(io, m->root, consumer, scratch, &m->have_id, err);
    if (rc != TN_ABSENT && rc != TN_CORRUPT) {
        return rc;
    }
    rc = tn_snapshot_earliest(io, m->root, scratch, &first, err);
    if (rc == TN_OK || rc == TN_ABSENT) {
        m->have_id = first - 1;
        rc = tn_consumer_write(io, m->root, consumer, first, scratch, err);
    }
    return rc;
}

static tn_rc open_mirror(struct tn_lakes *lakes, struct tn_lakes_lake *lake, const char *table,
                         struct tn_err *err)
{
    struct tn_lakes_mirror *m = &lakes->mirrors[lakes->mirror_count];
    struct tn_err why = {0};
    *m = (struct tn_lakes_mirror){.lake = lake, .keeper = find_keeper(&lakes->spec, table)};
    if (!m->keeper) { /* it comes with a later configuration */
        return TN_OK;
    }
    tn_rc rc = tn_name_table_root(lakes->spec.arena, table, &m->root, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (protect(lakes, m, &why) != TN_OK) {
        (void)tn_err_in(&why, "lake %s", lake->config->name);
        tn_log_err(lakes->spec.log, TN_LOG_WARN, "lake", &why);
    }
    lakes->mirror_count++;
    return TN_OK;
}

/* What is known of a lake is known by this name: one that lies elsewhere now is another. */
static void name_consumer(struct tn_lakes_lake *lake)
{
    uint64_t hash = tn_hash_64(tn_bytes_of(lake->config->target), 0);
    for (const struct tn_text_list_item *o = lake->config->options; o; o = o->next) {
        bool where = strncmp(o->text, "s3.endpoint=", strlen("s3.endpoint=")) == 0;
        hash = where ? tn_hash_64(tn_bytes_of(o->text), hash) : hash;
    }
    (void)snprintf(lake->consumer, sizeof lake->consumer, "tarn-lake-%s-%08" PRIx32,
                   lake->config->name, (uint32_t)hash);
}

static tn_rc open_lake(struct tn_lakes *lakes, const struct tn_config_lake *config,
                       struct tn_err *err)
{
    struct tn_lakes_lake *lake = &lakes->lakes[lakes->lake_count++];
    tn_rc rc = TN_OK;
    *lake = (struct tn_lakes_lake){.config = config};
    name_consumer(lake);
    tn_spent_load(&lake->spent, lakes->spec.env->io, config->name, &lakes->spec.worker->arena);
    for (const struct tn_text_list_item *t = config->tables; rc == TN_OK && t; t = t->next) {
        rc = open_mirror(lakes, lake, t->text, err);
    }
    return rc;
}

tn_rc tn_lakes_open(struct tn_lakes *lakes, const struct tn_lakes_spec *spec, struct tn_err *err)
{
    const struct tn_config *config = spec->config;
    void *memory = NULL;
    *lakes = (struct tn_lakes){.spec = *spec};
    lakes->now.lakes = lakes;
    if (!config->lakes) {
        return TN_OK;
    }
    tn_rc rc = tn_arena_need(spec->arena, config->lake_count * sizeof *lakes->lakes, "lakes",
                             &memory, err);
    lakes->lakes = memory;
    if (rc == TN_OK) {
        rc = tn_arena_need(spec->arena, config->upload_count * sizeof *lakes->mirrors, "lakes",
                           &memory, err);
        lakes->mirrors = memory;
    }
    for (const struct tn_config_lake *l = config->lakes; rc == TN_OK && l; l = l->next) {
        rc = open_lake(lakes, l, err);
    }
    return rc;
}

/* ---- what a mirror lacks ---- */

int64_t tn_lakes_lag(const struct tn_lakes_mirror *mirror)
{
    int64_t lag = mirror->seen_id - mirror->have_id;
    return lag > 0 ? lag : 0;
}

static bool is_pending(const struct tn_lakes_mirror *m)
{
    return m->seen_id > 0 && (!m->known || m->since_ms > 0);
}

/* What flushes and compactions wrote is what there is to send. A table that was opened again counts
 * from 0. */
static uint64_t take_written(struct tn_lakes_mirror *m)
{
    if (!m->keeper->table) {
        return 0;
    }
    const struct tn_table_counts *counts = tn_table_counts(m->keeper->table);
    uint64_t written = counts->flushed_bytes + counts->compacted_bytes;
    uint64_t more = written >= m->written ? written - m->written : written;
    m->written = written;
    return more;
}

static void notice(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    bool under_way = lakes->now.mirror == m;
    int64_t *since = under_way ? &m->after_ms : &m->since_ms;
    *(under_way ? &m->after_bytes : &m->bytes) += take_written(m);
    if (m->keeper->latest_id != m->seen_id) {
        m->seen_id = m->keeper->latest_id;
        *since = *since > 0 ? *since : now;
    }
}

/* ---- how one ends ---- */

static void say_trouble(struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    if (m->said == m->trouble && now - m->said_ms < SAY_AGAIN_MS) {
        return;
    }
    m->said = m->trouble;
    m->said_ms = now;
    tn_log_event(lakes->spec.log, m->stopped ? TN_LOG_ERROR : TN_LOG_WARN, "lake",
                 "lake=%s table=%s rc=%d text=\"%s\"", m->lake->config->name, m->keeper->name,
                 (int)m->trouble, m->trouble_text.text);
}

static void put_off(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    m->pause_ms = m->pause_ms == 0 ? PAUSE_MS_MIN : 2 * m->pause_ms;
    m->pause_ms = m->pause_ms < PAUSE_MS_MAX ? m->pause_ms : PAUSE_MS_MAX;
    uint64_t jitter = clock->vtable->random(clock) % ((uint64_t)m->pause_ms / JITTER_SHARE);
    m->retry_ms = now + m->pause_ms + (int64_t)jitter;
}

/* What came while it was under way is to be sent next, if it didn't come along. */
static void take_over(struct tn_lakes_mirror *m, bool sent)
{
    if (sent) {
        bool all = m->have_id >= m->seen_id;
        m->since_ms = all ? 0 : m->after_ms;
        m->bytes = all ? 0 : m->after_bytes;
    } else {
        m->since_ms = m->since_ms > 0 ? m->since_ms : m->after_ms;
        m->bytes += m->after_bytes;
    }
    m->after_ms = 0;
    m->after_bytes = 0;
}

static void note_sent(struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    if (m->trouble != TN_OK || !m->known) {
        tn_log_event(lakes->spec.log, TN_LOG_INFO, "lake",
                     "lake=%s table=%s snapshot=%" PRId64 " text=\"has it\"", m->lake->config->name,
                     m->keeper->name, lakes->now.result.last_id);
    }
    m->have_id = lakes->now.result.last_id;
    m->known = true;
    m->failed = false;
    m->trouble = TN_OK;
    m->said = TN_OK;
    m->pause_ms = 0;
    m->due_ms = now + m->lake->config->every_ms;
    m->lake->uploads += lakes->now.result.first_id > 0;
}

static void note_failed(struct tn_lakes *lakes, struct tn_lakes_mirror *m, tn_rc rc, int64_t now)
{
    m->trouble = rc;
    m->trouble_text = lakes->now.task.err;
    m->stopped = rc == TN_CONFLICT;
    m->failed = true;
    m->have_id = lakes->now.result.last_id > 0 ? lakes->now.result.last_id : m->have_id;
    m->lake->failures++;
    put_off(lakes, m, now);
    say_trouble(lakes, m, now);
}

static void add_counts(struct tn_target_counts *sum, const struct tn_target_counts *counts)
{
    for (int verb = 0; verb < TN_TARGET_VERBS; verb++) {
        sum->requests[verb] += counts->requests[verb];
    }
    sum->bytes_sent += counts->bytes_sent;
    sum->bytes_received += counts->bytes_received;
}

static void sent(struct tn_task *task, tn_rc rc)
{
    struct tn_lakes_task *t = (struct tn_lakes_task *)(void *)task;
    struct tn_lakes *lakes = t->lakes;
    struct tn_lakes_mirror *m = t->mirror;
    int64_t now = now_ms(lakes);
    notice(lakes, m, now);
    t->mirror = NULL;
    atomic_store(&lakes->stop, lakes->stopping);
    add_counts(&m->lake->counts, &t->counts);
    tn_spent_add(&m->lake->spent, local_ms(lakes), t->counts.bytes_sent);
    if (rc == TN_OK) {
        note_sent(lakes, m, now);
    } else if (rc != TN_CANCELED) {
        note_failed(lakes, m, rc, now);
    }
    take_over(m, rc == TN_OK);
}

/* ---- on the lane ---- */

static tn_rc sync_open(struct tn_lakes_task *t, struct tn_target *target, struct tn_err *err)
{
    const struct tn_lakes_mirror *m = t->mirror;
    struct tn_delta_spec spec = {.root = m->root, .target = target, .consumer = m->lake->consumer};
    return tn_delta_sync(&spec, t->lakes->spec.worker, &t->result, err);
}

static tn_rc execute_sync(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_lakes_task *t = (struct tn_lakes_task *)(void *)task;
    struct tn_lakes_spec *spec = &t->lakes->spec;
    struct tn_arena *arena = &spec->worker->arena;
    struct tn_target *target = NULL;
    struct tn_err ignored = {0};
    size_t mark = tn_arena_mark(arena);
    (void)context;
    if (atomic_load(&t->lakes->stop)) { /* before it had its turn */
        return tn_err_set(err, TN_CANCELED, 0, "the upload is to end");
    }
    if (t->saves) { /* what was sent counts even if this isn't written */
        t->saves = tn_spent_save(&t->spent, spec->env->io, t->mirror->lake->config->name, arena,
                                 &ignored) == TN_OK;
    }
    tn_rc rc = spec->door.open(spec->door.user, t->mirror->lake->config, t->mirror->keeper->name,
                               &t->lakes->stop, arena, &target, err);
    if (rc == TN_OK) {
        rc = sync_open(t, target, err);
        t->counts = target->counts;
        spec->door.close(spec->door.user, target);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static void submit(struct tn_lakes *lakes, struct tn_lakes_mirror *m,
                   tn_rc (*execute)(struct tn_task *task, void *context, struct tn_err *err),
                   void (*complete)(struct tn_task *task, tn_rc rc))
{
    struct tn_lakes_task *t = &lakes->now;
    t->task = (struct tn_task){.execute = execute, .complete = complete, .lane = TN_LANE_UPLOAD};
    t->mirror = m;
    t->result = (struct tn_delta_result){0};
    t->counts = (struct tn_target_counts){0};
    tn_exec_submit(lakes->spec.env->exec, &t->task);
}

static void begin(struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    struct tn_lakes_lake *lake = m->lake;
    lakes->now.saves = now - lake->saved_ms >= SAVE_MS && lake->counts.bytes_sent > 0;
    lakes->now.spent = lake->spent;
    lake->saved_ms = lakes->now.saves ? now : lake->saved_ms;
    submit(lakes, m, execute_sync, sent);
}

/* ---- a full disk ---- */

static tn_rc execute_way(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_lakes_task *t = (struct tn_lakes_task *)(void *)task;
    struct tn_worker *worker = t->lakes->spec.worker;
    int64_t latest;
    (void)context;
    tn_rc rc = tn_snapshot_latest(worker->io, t->mirror->root, &worker->arena, &latest, err);
    return rc == TN_OK ? tn_consumer_write(worker->io, t->mirror->root, t->mirror->lake->consumer,
                                           latest, &worker->arena, err)
                       : rc;
}

static void gave_way(struct tn_task *task, tn_rc rc)
{
    struct tn_lakes_task *t = (struct tn_lakes_task *)(void *)task;
    struct tn_lakes *lakes = t->lakes;
    struct tn_lakes_mirror *m = t->mirror;
    struct tn_job_wish wish = {.verb = TN_JOB_EXPIRE, .expiry = {-1, -1, -1}};
    const struct tn_job *job;
    struct tn_err err = t->task.err;
    t->mirror = NULL;
    atomic_store(&lakes->stop, lakes->stopping);
    take_over(m, false);
    (void)snprintf(wish.table, sizeof wish.table, "%s", m->keeper->name);
    if (rc == TN_OK) {
        tn_log_event(lakes->spec.log, TN_LOG_WARN, "lake",
                     "lake=%s table=%s text=\"gives way on the full disk: what it lacks may "
                     "expire\"",
                     m->lake->config->name, m->keeper->name);
        rc = lakes->spec.jobs ? tn_jobs_ask(lakes->spec.jobs, &wish, &job, &err) : TN_OK;
    }
    if (rc != TN_OK) {
        tn_log_err(lakes->spec.log, TN_LOG_WARN, "lake", &err);
    }
}

/* One that is to give way now, or NULL. */
static struct tn_lakes_mirror *in_the_way(struct tn_lakes *lakes, int64_t now, uint32_t *wait_ms)
{
    for (uint32_t i = 0; i < lakes->mirror_count && lakes->spec.intake->reserve.low; i++) {
        struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (m->lake->config->gap && is_pending(m) && now >= m->way_ms) {
            return m;
        }
        if (m->lake->config->gap && is_pending(m)) {
            tn_wait_lower(wait_ms, m->way_ms - now);
        }
    }
    return NULL;
}

/* ---- turns ---- */

/* What would free a full disk doesn't wait for `every`. */
static bool may_begin(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m, int64_t now,
                      uint32_t *wait_ms)
{
    bool hurries = lakes->hurries || lakes->spec.intake->reserve.low;
    int64_t at = m->due_ms > m->retry_ms && !hurries ? m->due_ms : m->retry_ms;
    if (!is_pending(m) || m->stopped || (lakes->hurries && m->failed)) {
        return false;
    }
    if (now < at) {
        tn_wait_lower(wait_ms, at - now);
    }
    return now >= at;
}

static struct tn_lakes_mirror *longest_waiting(struct tn_lakes *lakes, int64_t now,
                                               uint32_t *wait_ms)
{
    struct tn_lakes_mirror *longest = NULL;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (may_begin(lakes, m, now, wait_ms) && (!longest || m->since_ms < longest->since_ms)) {
            longest = m;
        }
    }
    return longest;
}

void tn_lakes_turn(struct tn_lakes *lakes, uint32_t *wait_ms)
{
    int64_t now = lakes->mirror_count > 0 ? now_ms(lakes) : 0;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        notice(lakes, &lakes->mirrors[i], now);
    }
    if (lakes->mirror_count == 0 || lakes->stopping) {
        return;
    }
    struct tn_lakes_mirror *way = in_the_way(lakes, now, wait_ms);
    if (lakes->now.mirror) {
        atomic_store(&lakes->stop, way != NULL);
        return;
    }
    if (way) {
        way->way_ms = now + WAY_MS;
        submit(lakes, way, execute_way, gave_way);
        return;
    }
    struct tn_lakes_mirror *next = longest_waiting(lakes, now, wait_ms);
    if (next) {
        begin(lakes, next, now);
    }
}

void tn_lakes_hurry(struct tn_lakes *lakes)
{
    lakes->hurries = true;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        lakes->mirrors[i].failed = false;
        lakes->mirrors[i].retry_ms = 0;
    }
}

bool tn_lakes_settled(const struct tn_lakes *lakes)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        const struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (m->keeper->latest_id != m->seen_id || (is_pending(m) && !m->stopped && !m->failed)) {
            return false;
        }
    }
    return !lakes->now.mirror;
}

tn_rc tn_lakes_check(const struct tn_lakes *lakes, struct tn_err *err)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        const struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (is_pending(m) && m->trouble != TN_OK) {
            return tn_err_set(err, TN_CONFLICT, 0, "lake %s lacks snapshots of %s: %s",
                              m->lake->config->name, m->keeper->name, m->trouble_text.text);
        }
    }
    return TN_OK;
}

void tn_lakes_stop(struct tn_lakes *lakes)
{
    lakes->stopping = true;
    atomic_store(&lakes->stop, true);
}

void tn_lakes_close(struct tn_lakes *lakes)
{
    struct tn_err err = {0};
    for (uint32_t i = 0; i < lakes->lake_count; i++) {
        struct tn_lakes_lake *lake = &lakes->lakes[i];
        if (lake->counts.bytes_sent > 0 &&
            tn_spent_save(&lake->spent, lakes->spec.env->io, lake->config->name,
                          &lakes->spec.worker->arena, &err) != TN_OK) {
            tn_log_err(lakes->spec.log, TN_LOG_WARN, "lake", &err);
        }
    }
    lakes->lake_count = 0;
    lakes->mirror_count = 0;
}

/* ---- for reports ---- */

int64_t tn_lakes_age_ms(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror)
{
    int64_t since = mirror->since_ms > 0 ? mirror->since_ms : mirror->after_ms;
    return since > 0 && tn_lakes_lag(mirror) > 0 ? now_ms(lakes) - since : 0;
}

const char *tn_lakes_trouble(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror,
                             char *text, size_t size)
{
    const struct tn_lakes_mirror *m = mirror;
    if (m->trouble != TN_OK) {
        return m->trouble_text.text;
    }
    if (!lakes->spec.intake->reserve.low || !is_pending(m) || m->lake->config->gap) {
        return NULL;
    }
    (void)snprintf(text, size,
                   "%" PRId64 " snapshots, about %" PRIu64
                   " bytes, wait to be sent, and stay on the full disk until then",
                   tn_lakes_lag(m), m->bytes + m->after_bytes);
    return text;
}

const char *tn_lakes_state(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror)
{
    return mirror->stopped               ? "stopped"
           : lakes->now.mirror == mirror ? "sends"
           : !is_pending(mirror)         ? "has all"
           : mirror->trouble != TN_OK    ? "tries again"
                                         : "waits";
}
