#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/lakes_private.h"
#include "base/hash.h"
#include "base/wait.h"

enum {
    LAST_ORDER = TN_UPLOAD_TABLES_MAX,
    LONGEST_MS = 60 * 1000, /* one that waits for something to happen is asked again then, */
    CALM_MS = 30 * 1000,    /* and one that failed not before, or it would be parked soon */
    MS_PER_S = 1000,
};

/* ---- scripts ---- */

static void say_script(void *user, const char *level, struct tn_bytes text)
{
    const struct tn_lakes *lakes = user;
    enum tn_log_level at = strcmp(level, "error") == 0  ? TN_LOG_ERROR
                           : strcmp(level, "warn") == 0 ? TN_LOG_WARN
                                                        : TN_LOG_INFO;
    tn_log_event(lakes->spec.log, at, "policy", "text=\"%.*s\"", (int)text.size,
                 (const char *)text.data);
}

static tn_rc load(struct tn_lakes_policy *policy, const struct tn_vm_spec *vm, const char *name,
                  struct tn_err *err)
{
    const struct tn_script_spec script = {.path = name, .skip_cases = true};
    tn_rc rc = tn_vm_open(&policy->vm, vm, err);
    if (rc == TN_OK) {
        rc = tn_script_load(&policy->script, &policy->vm, &script, err);
    }
    if (rc == TN_OK && !tn_script_has(&policy->script, TN_SCRIPT_UPLOAD)) {
        rc = tn_err_set(err, TN_INVALID, 0, "it has no `upload`");
    }
    policy->vm.spec.io = NULL;
    return rc;
}

/* Its cases were run when the configuration was read. */
static tn_rc open_script(struct tn_lakes *lakes, struct tn_lakes_policy *policy, const char *path,
                         uint32_t index, struct tn_err *err)
{
    struct tn_arena *scratch = &lakes->spec.worker->arena;
    size_t size = lakes->spec.policies_size / lakes->spec.config->policy_count / 16 * 16;
    size_t mark = tn_arena_mark(scratch);
    struct tn_io_posix files;
    const char *slash = strrchr(path, '/');
    const char *folder = tn_arena_format(scratch, "%.*s/", (int)(slash - path), path);
    struct tn_vm_spec vm = {.memory = (unsigned char *)lakes->spec.policies + index * size,
                            .size = size,
                            .io = &files.io,
                            .seed = tn_hash_64(tn_bytes_of(path), 0),
                            .log = say_script,
                            .user = lakes};
    tn_rc rc = folder ? tn_io_posix_open(&files, folder, err)
                      : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
    if (rc == TN_OK) {
        rc = load(policy, &vm, slash + 1, err);
        tn_io_posix_close(&files);
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "policy %s", path);
}

tn_rc tn_lakes_policy_open(struct tn_lakes *lakes, struct tn_lakes_lake *lake, uint32_t index,
                           struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(lakes->spec.arena, sizeof *lake->policy, "a policy", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    lake->policy = memory;
    memset(lake->policy, 0, sizeof *lake->policy);
    return open_script(lakes, lake->policy, lake->config->policy, index, err);
}

void tn_lakes_policy_close(struct tn_lakes_lake *lake)
{
    if (lake->policy) {
        tn_vm_close(&lake->policy->vm);
        lake->policy = NULL;
    }
}

/* A table's own script says when that table is sent; it is there while the table is open. */
static struct tn_script *own_of(const struct tn_lakes_mirror *m)
{
    struct tn_scripted *scripted = m->keeper->scripted;
    return scripted && scripted->open ? tn_script_pair_upload(&scripted->pair) : NULL;
}

bool tn_lakes_has_policy(const struct tn_lakes_mirror *m)
{
    return m->lake->policy || own_of(m) || m->plan.own;
}

bool tn_lakes_policy_waits(const struct tn_lakes_mirror *m)
{
    return tn_lakes_has_policy(m) && (!m->plan.there || m->plan.waits || m->plan.failed);
}

bool tn_lakes_policy_holds(const struct tn_lakes_mirror *m)
{
    return tn_lakes_policy_waits(m) || (tn_lakes_has_policy(m) && m->have_id >= m->plan.through);
}

/* ---- what a script is told ---- */

struct asking {
    struct tn_lakes *lakes;
    struct tn_lakes_lake *lake;
    struct tn_lakes_mirror *alone; /* NULL: all of the lake without a script of their own */
    struct tn_script *script;
    struct tn_upload_state state;
    const char *tables[TN_UPLOAD_TABLES_MAX];
};

static bool is_asked_for(const struct asking *a, const struct tn_lakes_mirror *m)
{
    return a->alone ? m == a->alone : m->lake == a->lake && !own_of(m);
}

static void add_mirror(struct asking *a, const struct tn_lakes_mirror *m)
{
    struct tn_upload_state *s = &a->state;
    int64_t oldest = m->have_id + 1;
    int64_t age_s = tn_lakes_age_ms(a->lakes, m) / MS_PER_S;
    if (tn_lakes_lag(m) == 0) {
        return;
    }
    s->pending.count += tn_lakes_lag(m);
    s->pending.bytes += (int64_t)m->tally.bytes;
    s->pending.rows += (int64_t)m->tally.rows;
    s->pending.oldest =
        s->pending.oldest == 0 || oldest < s->pending.oldest ? oldest : s->pending.oldest;
    s->pending.newest = m->seen_id > s->pending.newest ? m->seen_id : s->pending.newest;
    s->pending.age_s = age_s > s->pending.age_s ? age_s : s->pending.age_s;
    s->pinned.bytes += (int64_t)m->tally.pinned;
    if (s->table_count < TN_UPLOAD_TABLES_MAX) {
        a->tables[s->table_count++] = m->keeper->name;
    }
}

static struct tn_upload_spent spent_of(const struct tn_lakes_lake *lake, enum tn_spent_span span)
{
    return (struct tn_upload_spent){.bytes = (int64_t)lake->spent.of[span].bytes,
                                    .requests = (int64_t)lake->spent.of[span].requests};
}

static void fill_link(struct asking *a)
{
    const struct tn_link *link = &a->lakes->link.now;
    a->state.link.up = a->lake->near || link->up;
    if (!a->lake->near) {
        a->state.link.name = link->name[0] ? link->name : NULL;
        a->state.link.metered = link->metered;
        a->state.link.rtt_ms = a->lake->answer_ms;
    }
}

static void fill_disk(struct asking *a)
{
    const struct tn_reserve *reserve = &a->lakes->spec.intake->reserve;
    uint64_t left;
    if (tn_reserve_left(reserve, &left)) {
        a->state.disk.free = left < INT64_MAX ? (int64_t)left : INT64_MAX;
        a->state.disk.reserve = (int64_t)reserve->bytes;
    }
}

static void fill(struct asking *a)
{
    struct tn_lakes *lakes = a->lakes;
    struct tn_clock *clock = lakes->spec.env->clock;
    const struct tn_lakes_mirror *last = a->lake->last;
    a->state = (struct tn_upload_state){.tables = a->tables};
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        if (is_asked_for(a, &lakes->mirrors[i])) {
            add_mirror(a, &lakes->mirrors[i]);
        }
    }
    fill_link(a);
    fill_disk(a);
    a->state.spent.hour = spent_of(a->lake, TN_SPENT_HOUR);
    a->state.spent.day = spent_of(a->lake, TN_SPENT_DAY);
    a->state.spent.month = spent_of(a->lake, TN_SPENT_MONTH);
    a->state.clock = tn_clock_watch_look(&lakes->watch, &a->state.now_ms);
    a->state.local_ms = clock->vtable->local_ms(clock);
    a->state.last = !last ? NULL : last->trouble != TN_OK ? last->trouble_text.text : "done";
}

/* ---- what it says ---- */

static uint32_t order_of(const struct asking *a, const struct tn_upload_plan *plan,
                         const struct tn_lakes_mirror *m)
{
    for (uint32_t i = 0; i < plan->table_count; i++) {
        if (strcmp(a->tables[plan->tables[i]], m->keeper->name) == 0) {
            return i;
        }
    }
    return LAST_ORDER;
}

static void take_plan(const struct asking *a, const struct tn_upload_plan *plan,
                      struct tn_lakes_mirror *m)
{
    m->plan =
        (struct tn_lakes_plan){.there = true,
                               .own = a->alone != NULL,
                               .waits = plan->wait,
                               .through = plan->through,
                               .rate = plan->rate < UINT32_MAX ? (uint32_t)plan->rate : UINT32_MAX,
                               .order = order_of(a, plan, m),
                               .bytes = (uint64_t)plan->bytes,
                               .requests = (uint64_t)plan->requests};
}

/* Nothing is lost: it waits, and is asked again. */
static void take_failure(const struct asking *a, const struct tn_err *err,
                         struct tn_lakes_mirror *m)
{
    bool known = m->plan.failed;
    m->plan = (struct tn_lakes_plan){
        .there = true, .own = a->alone != NULL, .waits = true, .failed = true};
    m->plan_text = *err;
    if (!known) {
        tn_log_event(a->lakes->spec.log, TN_LOG_WARN, "lake",
                     "lake=%s table=%s kind=policy text=\"%s\"", m->lake->config->name,
                     m->keeper->name, err->text);
    }
}

/* Pace is a store's. */
static tn_rc check_plan(const struct asking *a, const struct tn_upload_plan *plan,
                        struct tn_err *err)
{
    return plan->rate > 0 && !a->lake->store
               ? tn_err_set(err, TN_INVALID, 0,
                            "upload: 'rate' is for s3://..., and the lake is a folder")
               : TN_OK;
}

static void ask(struct asking *a, int64_t now_ms)
{
    struct tn_upload_plan plan;
    struct tn_err err = {0};
    int64_t again_ms = LONGEST_MS;
    fill(a);
    tn_rc rc = tn_script_upload(a->script, &a->state, &plan, &err);
    if (rc == TN_OK) {
        rc = check_plan(a, &plan, &err);
    }
    for (uint32_t i = 0; i < a->lakes->mirror_count; i++) {
        struct tn_lakes_mirror *m = &a->lakes->mirrors[i];
        if (is_asked_for(a, m) && rc == TN_OK) {
            take_plan(a, &plan, m);
        } else if (is_asked_for(a, m)) {
            take_failure(a, &err, m);
        }
    }
    a->lake->calm_ms = rc == TN_OK || a->lakes->hurries ? a->lake->calm_ms : now_ms + CALM_MS;
    if (rc == TN_OK && plan.wait && plan.wait_s > 0) {
        again_ms = (int64_t)plan.wait_s * MS_PER_S;
    }
    a->lake->ask_ms = now_ms + again_ms < a->lake->ask_ms ? now_ms + again_ms : a->lake->ask_ms;
}

static void ask_all(struct tn_lakes *lakes, struct tn_lakes_lake *lake, int64_t now_ms)
{
    struct asking a = {.lakes = lakes, .lake = lake};
    lake->asks = false;
    lake->relinked = false;
    lake->ask_ms = INT64_MAX;
    if (lake->policy) {
        a.script = &lake->policy->script;
        ask(&a, now_ms);
    }
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        struct tn_lakes_mirror *m = &lakes->mirrors[i];
        struct tn_script *own = m->lake == lake ? own_of(m) : NULL;
        if (own) {
            a.alone = m;
            a.script = own;
            ask(&a, now_ms);
        } else if (m->lake == lake) {
            m->plan.own = m->plan.own && !m->keeper->table; /* it had one, and is shut for now */
        }
    }
}

static void note_disk(struct tn_lakes *lakes)
{
    bool low = lakes->spec.intake->reserve.low;
    for (uint32_t i = 0; low != lakes->low && i < lakes->lake_count; i++) {
        lakes->lakes[i].asks = true;
    }
    lakes->low = low;
}

/* Whoever is sent to is asked when that has ended, but for a link that is another one: what is
 * under way ends then. */
void tn_lakes_policy_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms)
{
    const struct tn_lakes_mirror *now = lakes->now.mirror;
    note_disk(lakes);
    for (uint32_t i = 0; i < lakes->lake_count; i++) {
        struct tn_lakes_lake *lake = &lakes->lakes[i];
        bool known = lake->near || lakes->link.known;
        bool due = (lake->asks && now_ms >= lake->calm_ms) || now_ms >= lake->ask_ms;
        bool free = known && (!now || now->lake != lake);
        if (due && free) {
            ask_all(lakes, lake, now_ms);
        }
        if (free && lake->ask_ms < INT64_MAX) {
            tn_wait_lower(wait_ms, lake->ask_ms - now_ms);
        }
    }
}
