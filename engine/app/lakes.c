#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/lake_store.h"
#include "app/lakes_private.h"
#include "base/wait.h"
#include "commit/consumer.h"
#include "commit/snapshot.h"
#include "file/names.h"
#include "upload/ledger.h"
#include "upload/s3.h"

enum {
    SAY_AGAIN_MS = 60 * 1000, /* the same trouble is said once in so long */
    SAVE_MS = 60 * 1000,      /* from one saving of what was spent to the next */
    ROOT_SIZE = 256,          /* of a table's path, for its share of the arena */
};

/* ---- open ---- */

size_t tn_lakes_memory(const struct tn_config *config)
{
    return config->lakes ? config->lake_count * sizeof(struct tn_lakes_lake) +
                               config->policy_count * sizeof(struct tn_lakes_policy) +
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

/* What the lake has by its ledger. Without one nothing is known of it, but that the consumer keeps
 * what it may lack. */
static tn_rc look_up(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t kept,
                     struct tn_err *err)
{
    struct tn_ledger ledger;
    tn_rc rc = tn_ledger_read(lakes->spec.env->io, m->keeper->name, m->lake->consumer,
                              &lakes->spec.worker->arena, &ledger, err);
    m->have_id = rc == TN_OK ? ledger.have : kept - 1;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* A new consumer keeps all that there is. */
static tn_rc protect(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, struct tn_err *err)
{
    struct tn_io *io = lakes->spec.env->io;
    struct tn_arena *scratch = &lakes->spec.worker->arena;
    const char *consumer = m->lake->consumer;
    int64_t first = 1;
    tn_rc rc = tn_consumer_read(io, m->root, consumer, scratch, &first, err);
    if (rc == TN_ABSENT || rc == TN_CORRUPT) {
        rc = tn_snapshot_earliest(io, m->root, scratch, &first, err);
        if (rc == TN_OK || rc == TN_ABSENT) {
            rc = tn_consumer_write(io, m->root, consumer, first, scratch, err);
        }
    }
    return rc == TN_OK ? look_up(lakes, m, first, err) : rc;
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

static tn_rc open_lake(struct tn_lakes *lakes, const struct tn_config_lake *config,
                       uint32_t *policies, struct tn_err *err)
{
    struct tn_lakes_lake *lake = &lakes->lakes[lakes->lake_count++];
    const struct tn_lakes_door *door = &lakes->spec.door;
    *lake = (struct tn_lakes_lake){.config = config,
                                   .store = tn_lake_is_store(config->target),
                                   .near = door->near(door->user, config),
                                   .asks = true};
    tn_rc rc = door->name(door->user, config, lake->consumer, err);
    if (rc == TN_OK && config->policy) {
        rc = tn_lakes_policy_open(lakes, lake, *policies, err);
        (*policies)++;
    }
    tn_spent_load(&lake->spent, lakes->spec.env->io, config->name, &lakes->spec.worker->arena);
    for (const struct tn_text_list_item *t = config->tables; rc == TN_OK && t; t = t->next) {
        rc = open_mirror(lakes, lake, t->text, err);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "lakes.%s", config->name);
}

tn_rc tn_lakes_open(struct tn_lakes *lakes, const struct tn_lakes_spec *spec, struct tn_err *err)
{
    const struct tn_config *config = spec->config;
    uint32_t policies = 0;
    void *memory = NULL;
    *lakes = (struct tn_lakes){.spec = *spec};
    lakes->now.lakes = lakes;
    if (!config->lakes) {
        return TN_OK;
    }
    tn_clock_watch_init(&lakes->watch, spec->env->clock, 0);
    tn_rc rc = tn_arena_need(spec->arena, config->lake_count * sizeof *lakes->lakes, "lakes",
                             &memory, err);
    lakes->lakes = memory;
    if (rc == TN_OK) {
        rc = tn_arena_need(spec->arena, config->upload_count * sizeof *lakes->mirrors, "lakes",
                           &memory, err);
        lakes->mirrors = memory;
    }
    for (const struct tn_config_lake *l = config->lakes; rc == TN_OK && l; l = l->next) {
        rc = open_lake(lakes, l, &policies, err);
    }
    return rc;
}

/* ---- what a mirror lacks ---- */

static void notice(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    int64_t *since = lakes->now.mirror == m ? &m->after_ms : &m->since_ms;
    if (m->keeper->latest_id != m->seen_id) {
        m->seen_id = m->keeper->latest_id;
        *since = *since > 0 ? *since : now;
        m->lake->asks = true;
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
                 "lake=%s table=%s kind=%s text=\"%s\"", m->lake->config->name, m->keeper->name,
                 m->kind, m->trouble_text.text);
}

static void put_off(const struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    m->tries++;
    m->retry_ms = now + tn_s3_pause_ms(m->tries, 0, clock->vtable->random(clock));
}

/* What came while it was under way is to be sent next, if it didn't come along. */
static void take_over(struct tn_lakes_mirror *m, bool sent)
{
    int64_t since = m->since_ms > 0 ? m->since_ms : m->after_ms;
    m->since_ms = sent && m->have_id >= m->seen_id    ? 0
                  : sent && m->have_id >= m->begun_id ? m->after_ms
                                                      : since;
    m->after_ms = 0;
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
    m->tries = 0;
    m->kind = NULL;
    m->due_ms = now + m->lake->config->every_ms;
    m->lake->uploads += lakes->now.result.first_id > 0;
}

static void note_failed(struct tn_lakes *lakes, struct tn_lakes_mirror *m, tn_rc rc, int64_t now)
{
    m->trouble = rc;
    m->kind = tn_lakes_kind_of(rc, lakes->now.kind);
    m->trouble_text = lakes->now.task.err;
    m->stopped = rc == TN_CONFLICT;
    m->failed = true;
    m->have_id = lakes->now.result.last_id > 0 ? lakes->now.result.last_id : m->have_id;
    m->lake->failures++;
    put_off(lakes, m, now);
    say_trouble(lakes, m, now);
}

static uint64_t requests_of(const struct tn_target_counts *counts)
{
    uint64_t sum = 0;
    for (int verb = 0; verb < TN_TARGET_VERBS; verb++) {
        sum += counts->requests[verb];
    }
    return sum;
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
    int64_t now = tn_lakes_now_ms(lakes);
    notice(lakes, m, now);
    t->mirror = NULL;
    atomic_store(&lakes->stop, lakes->stopping);
    m->lake->asks = true;
    m->lake->last = m;
    m->lake->answer_ms = t->counts.answer_ms > 0 ? t->counts.answer_ms : m->lake->answer_ms;
    add_counts(&m->lake->counts, &t->counts);
    tn_spent_add(&m->lake->spent, t->counts.bytes_sent, requests_of(&t->counts));
    if (rc == TN_OK) {
        note_sent(lakes, m, now);
    } else if (rc != TN_CANCELED) {
        note_failed(lakes, m, rc, now);
    } else if (t->result.last_id > 0) {
        m->have_id = t->result.last_id;
    }
    take_over(m, rc == TN_OK);
}

/* ---- on the lane ---- */

static tn_rc sync_open(struct tn_lakes_task *t, struct tn_target *target, struct tn_err *err)
{
    const struct tn_lakes_mirror *m = t->mirror;
    struct tn_delta_spec spec = {.root = m->root,
                                 .target = target,
                                 .consumer = m->lake->consumer,
                                 .through = t->plan.through,
                                 .bytes_max = t->plan.bytes,
                                 .requests_max = t->plan.requests};
    return tn_delta_sync(&spec, t->lakes->spec.worker, &t->result, err);
}

/* The slower one of two. */
static uint32_t rate_of(const struct tn_lakes_task *t)
{
    uint32_t most = t->mirror->lake->config->rate;
    uint32_t now = t->plan.rate;
    return most == 0 || (now > 0 && now < most) ? now : most;
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
    struct tn_lakes_wish wish = {.lake = t->mirror->lake->config,
                                 .table = t->mirror->keeper->name,
                                 .stop = &t->lakes->stop,
                                 .arena = arena,
                                 .patience_ms = t->patience_ms,
                                 .rate = rate_of(t)};
    tn_rc rc = spec->door.open(spec->door.user, &wish, &target, err);
    bool opened = rc == TN_OK;
    if (opened) {
        rc = sync_open(t, target, err);
    }
    t->kind = rc == TN_OK ? NULL : spec->door.kind(spec->door.user, target);
    if (opened) {
        t->counts = target->counts;
        spec->door.close(spec->door.user, target);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static void begin(struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    struct tn_lakes_lake *lake = m->lake;
    struct tn_lakes_task *t = &lakes->now;
    *t = (struct tn_lakes_task){
        .task = {.execute = execute_sync, .complete = sent, .lane = TN_LANE_UPLOAD},
        .lakes = lakes,
        .mirror = m,
        .patience_ms = lakes->lake_count > 1 ? TN_LAKES_PATIENCE_SHORT_MS : TN_LAKES_PATIENCE_MS,
        .saves = now - lake->saved_ms >= SAVE_MS && lake->counts.bytes_sent > 0,
        .spent = lake->spent};
    if (tn_lakes_has_policy(m)) {
        t->plan = m->plan;
    }
    m->begun_id = m->seen_id;
    lake->saved_ms = t->saves ? now : lake->saved_ms;
    atomic_store(&lakes->stop, false);
    tn_exec_submit(lakes->spec.env->exec, &t->task);
}

/* ---- turns ---- */

/* What would free a full disk doesn't wait for `every`. */
static bool may_begin(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m, int64_t now,
                      uint32_t *wait_ms)
{
    bool hurries = lakes->hurries || lakes->spec.intake->reserve.low || tn_lakes_has_policy(m);
    int64_t at = m->due_ms > m->retry_ms && !hurries ? m->due_ms : m->retry_ms;
    if (!tn_lakes_is_pending(m) || m->stopped || tn_lakes_way_holds(lakes, m) ||
        tn_lakes_policy_holds(m) || (lakes->hurries && m->failed)) {
        return false;
    }
    if (now < at) {
        tn_wait_lower(wait_ms, at - now);
    }
    return now >= at;
}

static struct tn_lakes_mirror *older(struct tn_lakes_mirror *a, struct tn_lakes_mirror *b)
{
    return !b || (a && a->since_ms <= b->since_ms) ? a : b;
}

/* Of one lake: as its policy orders them. */
static struct tn_lakes_mirror *first_of(struct tn_lakes_mirror *a, struct tn_lakes_mirror *b)
{
    return a->plan.order == b->plan.order ? older(a, b) : a->plan.order < b->plan.order ? a : b;
}

/* Mirrors of a lake stand together. */
static struct tn_lakes_mirror *longest_waiting(struct tn_lakes *lakes, int64_t now,
                                               uint32_t *wait_ms)
{
    struct tn_lakes_mirror *longest = NULL;
    struct tn_lakes_mirror *first = NULL;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (!may_begin(lakes, m, now, wait_ms)) {
            continue;
        }
        if (first && first->lake == m->lake) {
            first = first_of(first, m);
        } else {
            longest = older(longest, first);
            first = m;
        }
    }
    return older(longest, first);
}

/* What was spent in the hour, the day and the month that run. */
static void look_at_clock(struct tn_lakes *lakes)
{
    struct tn_clock *clock = lakes->spec.env->clock;
    int64_t wall_ms;
    if (strcmp(tn_clock_watch_look(&lakes->watch, &wall_ms), "unset") != 0) {
        int64_t local_ms = clock->vtable->local_ms(clock);
        for (uint32_t i = 0; i < lakes->lake_count; i++) {
            tn_spent_look(&lakes->lakes[i].spent, local_ms);
        }
    }
}

void tn_lakes_turn(struct tn_lakes *lakes, uint32_t *wait_ms)
{
    int64_t now = lakes->mirror_count > 0 ? tn_lakes_now_ms(lakes) : 0;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        notice(lakes, &lakes->mirrors[i], now);
    }
    if (lakes->mirror_count == 0 || lakes->stopping) {
        return;
    }
    look_at_clock(lakes);
    tn_lakes_survey_turn(lakes, now, wait_ms);
    tn_lakes_way_turn(lakes, now, wait_ms);
    tn_lakes_link_turn(lakes, now, wait_ms);
    tn_lakes_policy_turn(lakes, now, wait_ms);
    if (lakes->now.mirror) {
        const struct tn_lakes_mirror *m = lakes->now.mirror;
        bool relinked = m->lake->relinked && tn_lakes_has_policy(m);
        atomic_store(&lakes->stop, tn_lakes_way_stops(lakes) || relinked);
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
        lakes->mirrors[i].lake->asks = true;
        lakes->mirrors[i].lake->calm_ms = 0;
    }
}

/* It has all, or failed to get it, or is not to get it now. */
static bool is_settled(const struct tn_lakes_mirror *m)
{
    bool waits = tn_lakes_policy_holds(m) && !m->lake->asks && m->tally.to >= m->seen_id;
    return m->keeper->latest_id == m->seen_id &&
           (!tn_lakes_is_pending(m) || m->stopped || m->failed || waits);
}

bool tn_lakes_settled(const struct tn_lakes *lakes)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        if (!is_settled(&lakes->mirrors[i])) {
            return false;
        }
    }
    return !lakes->now.mirror;
}

tn_rc tn_lakes_check(const struct tn_lakes *lakes, struct tn_err *err)
{
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        const struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (tn_lakes_is_pending(m) && (m->trouble != TN_OK || m->plan.failed)) {
            return tn_err_set(err, TN_CONFLICT, 0, "lake %s lacks snapshots of %s: %s",
                              m->lake->config->name, m->keeper->name,
                              m->plan.failed ? m->plan_text.text : m->trouble_text.text);
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
        tn_lakes_policy_close(lake);
    }
    lakes->lake_count = 0;
    lakes->mirror_count = 0;
}
