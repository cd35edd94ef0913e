#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/lakes_private.h"
#include "base/wait.h"
#include "upload/s3.h"

enum {
    SAY_AGAIN_MS = 60 * 1000, /* the same trouble is said once in so long */
    SAVE_MS = 60 * 1000,      /* from one saving of what was spent to the next */
};

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

/* ---- a shared table ---- */

static void say_replaced(struct tn_lakes *lakes, struct tn_lakes_mirror *m, uint32_t count)
{
    tn_log_event(lakes->spec.log, TN_LOG_WARN, "lake",
                 "lake=%s table=%s kind=replaced count=%" PRIu32
                 " text=\"somebody wrote over what was committed there: it is sent again\"",
                 m->lake->config->name, m->keeper->name, count);
}

static void note_shared(struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    const struct tn_lakes_task *t = &lakes->now;
    const struct tn_direct_result *part = &t->part;
    m->shared = true;
    m->way = t->share.way;
    m->commits += part->commits;
    m->lost += part->lost;
    m->replaced += part->replaced;
    m->lake_id = part->lake_id > 0 ? part->lake_id : m->lake_id;
    if (t->ran) {
        m->look_ms = part->open ? now + TN_LAKES_LOOK_MS : 0;
    }
    if (part->replaced > 0) {
        m->replaced_ms = now;
        say_replaced(lakes, m, part->replaced);
    }
}

static void note_tags(struct tn_lakes_mirror *m, const struct tn_delta_result *result)
{
    if (result->tags_looked) {
        m->tags_left = result->tags_left;
        m->tags_denied = result->tags_denied;
    }
}

/* It is tried once an hour. */
static void say_kept(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    const struct tn_err *why = &lakes->now.result.keep_err;
    if (why->code != TN_OK) {
        tn_log_event(lakes->spec.log, TN_LOG_WARN, "lake",
                     "lake=%s table=%s kind=expiry text=\"more snapshots are kept there than are "
                     "to be: %s\"",
                     m->lake->config->name, m->keeper->name, why->text);
    }
}

/* Of a shared table it may be less than before, or nothing. */
static int64_t have_of(const struct tn_lakes_task *t)
{
    return t->result.last_id > 0 || (t->shared && t->ran) ? t->result.last_id : t->mirror->have_id;
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
    if (m->since_ms == 0 && m->have_id < m->seen_id) { /* what it had is lost there */
        m->since_ms = m->tried_ms;
    }
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

/* Commits are paused there, and it isn't known yet whether somebody holds that, or left it behind:
 * nothing has failed. */
static bool watches_pause(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    return lakes->now.shared && lakes->now.part.why == TN_SHARE_PAUSED && !m->pause.alive;
}

static void note_failed(struct tn_lakes *lakes, struct tn_lakes_mirror *m, tn_rc rc, int64_t now)
{
    bool watches = watches_pause(lakes, m);
    m->trouble = rc;
    m->kind = tn_lakes_kind_of(rc, lakes->now.kind);
    m->trouble_text = lakes->now.task.err;
    m->stopped = rc == TN_CONFLICT;
    m->failed = !watches;
    m->have_id = have_of(&lakes->now);
    m->lake->failures += !watches;
    if (watches) {
        m->retry_ms = now + TN_LAKES_PAUSE_LOOK_MS;
        m->look_ms = m->look_ms > 0 ? m->retry_ms : 0;
    } else {
        put_off(lakes, m, now);
    }
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
    int64_t now = tn_lakes_now_ms(lakes);
    notice(lakes, m, now);
    m->tried_ms = now;
    atomic_store(&lakes->stop, lakes->stopping);
    m->lake->asks = true;
    m->lake->last = m;
    m->lake->answer_ms = t->counts.answer_ms > 0 ? t->counts.answer_ms : m->lake->answer_ms;
    add_counts(&m->lake->counts, &t->counts);
    tn_spent_add(&m->lake->spent, t->counts.bytes_sent, tn_target_asked(&t->counts));
    note_tags(m, &t->result);
    say_kept(lakes, m);
    if (t->shared) {
        note_shared(lakes, m, now);
    }
    if (rc == TN_OK) {
        note_sent(lakes, m, now);
    } else if (rc != TN_CANCELED) {
        note_failed(lakes, m, rc, now);
    } else {
        m->have_id = have_of(t);
    }
    take_over(m, rc == TN_OK);
    t->mirror = NULL;
}

/* ---- how one begins ---- */

static void begin(struct tn_lakes *lakes, struct tn_lakes_mirror *m, int64_t now)
{
    struct tn_lakes_lake *lake = m->lake;
    struct tn_lakes_task *t = &lakes->now;
    *t = (struct tn_lakes_task){
        .task = {.execute = tn_lakes_execute, .complete = sent, .lane = TN_LANE_UPLOAD},
        .lakes = lakes,
        .mirror = m,
        .patience_ms = lakes->lake_count > 1 ? TN_LAKES_PATIENCE_SHORT_MS : TN_LAKES_PATIENCE_MS,
        .tries_max = lakes->mirror_count > 1 ? TN_LAKES_TRIES_SHORT : 0,
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

/* Nothing is to be sent, but what was is to be looked at. */
static bool looks(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m)
{
    return m->look_ms > 0 && !tn_lakes_is_pending(m) && !lakes->hurries;
}

/* What would free a full disk doesn't wait for `every`. */
static bool may_begin(const struct tn_lakes *lakes, const struct tn_lakes_mirror *m, int64_t now,
                      uint32_t *wait_ms)
{
    bool hurries = lakes->hurries || lakes->spec.intake->reserve.low || tn_lakes_has_policy(m);
    int64_t at = m->due_ms > m->retry_ms && !hurries ? m->due_ms : m->retry_ms;
    bool look = looks(lakes, m);
    bool held = look ? tn_lakes_policy_waits(m) : tn_lakes_policy_holds(m);
    if (!(tn_lakes_is_pending(m) || look) || m->stopped || tn_lakes_way_holds(lakes, m) || held ||
        (lakes->hurries && m->failed)) {
        return false;
    }
    at = look ? (m->look_ms > m->retry_ms ? m->look_ms : m->retry_ms) : at;
    if (now < at) {
        tn_wait_lower(wait_ms, at - now);
    }
    return now >= at;
}

/* Who fails has an old commit for ever; but it had its turn, and others have not. */
static int64_t waits_since(const struct tn_lakes_mirror *m)
{
    return m->tried_ms > m->since_ms ? m->tried_ms : m->since_ms;
}

static struct tn_lakes_mirror *older(struct tn_lakes_mirror *a, struct tn_lakes_mirror *b)
{
    return !b || (a && waits_since(a) <= waits_since(b)) ? a : b;
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
