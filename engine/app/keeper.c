#include "app/keeper_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/wait.h"
#include "file/names.h"

enum {
    PAUSE_MS_MIN = 500,
    PAUSE_MS_MAX = 60 * 1000,
    QUIET_MS_MIN = 60 * 1000,
    WEAR_MS = 60 * 1000,      /* looks at a budget that is spent, */
    HELD_MS = 60 * 1000,      /* and at the hour, where compactions wait for it */
    SAY_AGAIN_MS = 60 * 1000, /* the same trouble is said once in so long */
    LOOK_MS = 10 * 1000,      /* from one look for its folder to the next */
    MOVED_MS = 5 * 60 * 1000, /* a place without rows waits so long for its commit */
};

/* ---- what is said ---- */

static void say_trouble(struct tn_keeper *k, enum tn_log_level level, tn_rc rc, const char *text,
                        int64_t now_ms)
{
    if (k->said == rc && now_ms - k->said_ms < SAY_AGAIN_MS) {
        return;
    }
    k->said = rc;
    k->said_ms = now_ms;
    tn_log_event(k->spec.log, level, "table", "table=%s rc=%d text=\"%s\"", k->name, (int)rc, text);
}

static void committed(void *user_data, const struct tn_committed *done)
{
    struct tn_keeper *k = user_data;
    struct tn_clock *clock = k->spec.share->env.clock;
    bool made = done->append_id > 0 || done->compact_id > 0;
    if (k->cutting) { /* else it is of tn_table_tell */
        k->before = k->committed;
        k->committed = k->cut;
        for (struct tn_track *track = k->tracks; track; track = track->next) {
            track->committed = track->cut;
        }
    }
    k->cutting = false;
    k->commits += made;
    k->latest_id = done->latest_id;
    k->compact_id = done->compact_id > 0 ? done->compact_id : k->compact_id;
    k->earliest_id = done->earliest_id > 0 ? done->earliest_id : k->earliest_id;
    k->untold = done->told == TN_TOLD_NOW     ? 0
                : done->told == TN_TOLD_LATER ? k->untold + 1
                                              : k->untold;
    k->trouble = TN_OK;
    k->said = TN_OK;
    k->pause_ms = 0;
    k->committed_ms = clock->vtable->now_ms(clock);
    if (done->not_expired && !k->expiry_said) {
        tn_log_event(k->spec.log, TN_LOG_WARN, "table", "table=%s text=\"old snapshots stay: %s\"",
                     k->name, done->not_expired);
        k->expiry_said = true;
    }
    int64_t now_ms = tn_clock_monotonic_ms(clock);
    if (made && (k->commits == 1 || now_ms - k->commit_said_ms >= SAY_AGAIN_MS)) {
        k->commit_said_ms = now_ms;
        tn_log_event(k->spec.log, TN_LOG_INFO, "table",
                     "table=%s committed snapshot=%" PRId64 " rows=%" PRIu64, k->name,
                     done->latest_id, done->row_count);
    }
}

static void compaction_failed(void *user_data, const struct tn_compaction_failed *failed)
{
    struct tn_keeper *k = user_data;
    tn_log_event(k->spec.log, TN_LOG_WARN, "table", "table=%s rc=%d text=\"%s\"", k->name,
                 (int)failed->rc, failed->text);
}

static void say_script(void *user, const char *level, struct tn_bytes text)
{
    struct tn_keeper *k = user;
    bool loud = strcmp(level, "error") == 0 || strcmp(level, "warn") == 0;
    tn_log_event(k->spec.log, loud ? TN_LOG_WARN : TN_LOG_INFO, "script", "table=%s text=\"%.*s\"",
                 k->name, (int)text.size, (const char *)text.data);
}

/* ---- what it opens ---- */

static tn_rc publish_letters(void *user_data, struct tn_err *err)
{
    struct tn_keeper *k = user_data;
    return tn_letters_publish(&k->dead.letters, err);
}

static tn_rc open_script(struct tn_keeper *k, struct tn_err *err)
{
    struct tn_scripted_spec spec = {.env = &k->spec.share->env,
                                    .budget = &k->spec.share->budget,
                                    .table = k->name,
                                    .warehouse = k->spec.warehouse,
                                    .log = say_script,
                                    .user = k};
    struct tn_arena *arena = k->spec.share->env.arena;
    k->mark = tn_arena_mark(arena);
    k->begun = true;
    k->scripted = k->spec.scripted;
    bool wanted = false;
    tn_rc rc = k->scripted ? TN_OK : tn_scripted_wanted(&spec, &wanted, err);
    if (rc == TN_OK && wanted) {
        void *memory = NULL;
        rc = tn_arena_need(arena, sizeof *k->scripted, "a script", &memory, err);
        k->scripted = memory;
    }
    if (rc == TN_OK && k->scripted) {
        rc = tn_scripted_find(k->scripted, &spec, err);
        tn_share_cap(k->spec.share);
    }
    return rc;
}

static tn_rc open_table(struct tn_keeper *k, struct tn_err *err)
{
    struct tn_env *env = &k->spec.share->env;
    struct tn_table_spec spec = {.name = k->name,
                                 .who = k->who,
                                 .identifier = -1,
                                 .compact = true,
                                 .small = true,
                                 .letters = &k->dead.letters.sink,
                                 .publish_letters = publish_letters,
                                 .committed = committed,
                                 .compaction_failed = compaction_failed,
                                 .user_data = k};
    if (k->scripted) {
        tn_scripted_fill(k->scripted, &spec);
    }
    tn_rc rc = tn_dead_open(&k->dead, env, k->spec.dead_letters, k->name, k->who, err);
    if (rc == TN_OK) {
        tn_share_lend(k->spec.share);
        rc = tn_table_open(env, &spec, &k->table, err);
    }
    if (rc == TN_OK) {
        tn_share_keep(k->spec.share);
    }
    if (rc == TN_OK && k->scripted) {
        rc = tn_scripted_check(k->scripted, k->table, err);
    }
    if (rc == TN_OK && k->scripted && k->scripted->open) {
        tn_letters_layout(&k->dead.letters, tn_table_layout(k->table));
    }
    return rc == TN_OK ? tn_table_tell(k->table, err) : rc;
}

static tn_rc check_positions(const struct tn_keeper *k, struct tn_err *err)
{
    const struct tn_recovered *r = tn_table_recovered(k->table);
    bool gone = !r->found && r->positioned && r->latest_id > 0;
    return !gone || k->spec.anew
               ? TN_OK
               : tn_err_set(err, TN_INVALID, 0,
                            "positions of %s are gone: it is not known which rows of the journal "
                            "it has; --anew takes them all",
                            k->name);
}

static void shut(struct tn_keeper *k)
{
    if (k->table) {
        tn_dead_rest(&k->dead);
        tn_table_close(k->table);
    }
    k->table = NULL;
    struct tn_err err = {0};
    if (tn_dead_end(&k->dead, &err) != TN_OK) {
        tn_log_err(k->spec.log, TN_LOG_ERROR, "letters", &err);
    }
    if (k->scripted) {
        tn_scripted_close(k->scripted);
        k->scripted = NULL;
    }
    if (k->begun) {
        tn_arena_reset(k->spec.share->env.arena, k->mark);
    }
    k->begun = false;
    k->state = TN_KEEPER_SHUT;
    k->cutting = false;
    k->items_cut = k->items;
    k->bytes = 0;
    k->wants_cut = false;
    k->idle_once = false;
    k->moved_ms = 0;
    for (struct tn_track *track = k->tracks; track; track = track->next) {
        track->size = 0;
    }
}

/* ---- whether it is there ---- */

static tn_rc look(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_keeper_look *look = (struct tn_keeper_look *)(void *)task;
    int64_t ignored;
    (void)context;
    return look->io->vtable->modified(look->io, look->path, &ignored, err);
}

static void looked(struct tn_task *task, tn_rc rc)
{
    struct tn_keeper_look *look = (struct tn_keeper_look *)(void *)task;
    look->under_way = false;
    look->gone = rc == TN_ABSENT; /* what else is wrong, its own work will say */
}

static tn_rc name_look(struct tn_keeper *k, struct tn_err *err)
{
    const char *root = NULL;
    struct tn_env *env = &k->spec.share->env;
    size_t mark = tn_arena_mark(env->arena);
    tn_rc rc = tn_name_table_root(env->arena, k->name, &root, err);
    k->look.io = env->io;
    k->look.task = (struct tn_task){.execute = look, .complete = looked, .lane = TN_LANE_SHORT};
    if (rc == TN_OK && (size_t)snprintf(k->look.path, sizeof k->look.path, "%s/%s", root,
                                        TN_DIR_SCHEMA) >= sizeof k->look.path) {
        rc = tn_err_set(err, TN_INVALID, 0, "%s: its name is too long", k->name);
    }
    tn_arena_reset(env->arena, mark);
    return rc;
}

static void say_gone(struct tn_keeper *k, struct tn_err *err)
{
    (void)tn_err_set(err, TN_ABSENT, 0,
                     "%s is gone: there is no folder %s; rows that were taken and not committed "
                     "wait in the journal until there is",
                     k->name, k->look.path);
}

static bool is_gone(struct tn_keeper *k)
{
    int64_t ms;
    struct tn_err ignored;
    return k->look.io->vtable->modified(k->look.io, k->look.path, &ms, &ignored) == TN_ABSENT;
}

static void look_again(struct tn_keeper *k, int64_t now_ms)
{
    if (!k->look.under_way && now_ms >= k->look.due_ms) {
        k->look.due_ms = now_ms + LOOK_MS;
        k->look.under_way = true;
        tn_exec_submit(k->spec.share->env.exec, &k->look.task);
    }
}

/* ---- start, end ---- */

static tn_rc start(struct tn_keeper *k, struct tn_err *err)
{
    k->look.gone = false;
    tn_rc rc = open_script(k, err);
    if (rc == TN_OK) {
        rc = open_table(k, err);
    }
    if (rc == TN_OK) {
        rc = check_positions(k, err);
    }
    if (rc != TN_OK) {
        shut(k);
        return rc;
    }
    struct tn_script *map = k->scripted ? tn_scripted_map(k->scripted) : NULL;
    k->mapper = (struct tn_mapper){0};
    if (map) {
        tn_mapper_init_on(&k->mapper, map, k->spec.share->env.clock,
                          tn_table_recovered(k->table)->latest_ms, k->spec.room, k->spec.room_size);
    }
    k->keeps = map && tn_script_keeps(map);
    k->latest_id = tn_table_recovered(k->table)->latest_id;
    k->state = TN_KEEPER_BEHIND;
    struct tn_clock *clock = k->spec.share->env.clock;
    k->quiet_ms = tn_clock_monotonic_ms(clock);
    return TN_OK;
}

tn_rc tn_keeper_open(struct tn_keeper *keeper, const struct tn_keeper_spec *spec,
                     struct tn_err *err)
{
    *keeper = (struct tn_keeper){.spec = *spec, .name = spec->config->name};
    (void)snprintf(keeper->who, sizeof keeper->who, "%s", spec->who);
    tn_rc rc = name_look(keeper, err);
    int size =
        snprintf(keeper->state_name, sizeof keeper->state_name, TN_JOURNAL_KEPT "%s", keeper->name);
    TN_CHECK(size > 0 && (size_t)size < sizeof keeper->state_name); /* it is less than look.path */
    return rc == TN_OK ? start(keeper, err) : rc;
}

void tn_keeper_close(struct tn_keeper *keeper)
{
    shut(keeper);
}

/* ---- commits ---- */

/* There is no row, but a place is another one. */
static bool moved_is_due(const struct tn_keeper *k, int64_t now_ms, bool *aged, uint32_t *wait_ms)
{
    if (k->moved_ms == 0) {
        return false;
    }
    int64_t left = k->moved_ms + MOVED_MS - now_ms;
    *aged = left <= 0;
    if (!*aged) {
        tn_wait_lower(wait_ms, left);
    }
    return *aged;
}

/* Something is there to be committed, and it is time to; `*aged`: by age alone. */
static bool due(const struct tn_keeper *k, int64_t now_ms, bool *aged, uint32_t *wait_ms)
{
    const struct tn_commit_rule *rule = &k->spec.config->commit;
    if (k->wants_cut || tn_table_wants_cut(k->table)) {
        return true;
    }
    if (k->items == k->items_cut) {
        return moved_is_due(k, now_ms, aged, wait_ms);
    }
    if ((rule->rows > 0 && k->items - k->items_cut >= rule->rows) ||
        (rule->bytes > 0 && k->bytes >= rule->bytes)) {
        return true;
    }
    if (rule->ms > 0) {
        int64_t left = k->since_ms + rule->ms - now_ms;
        *aged = left <= 0;
        if (!*aged) {
            tn_wait_lower(wait_ms, left);
        }
        return *aged;
    }
    return false;
}

static tn_rc cut(struct tn_keeper *k, const char *identity, struct tn_keeper_place at,
                 struct tn_err *err)
{
    tn_rc rc = tn_letters_publish(&k->dead.letters, err);
    if (rc == TN_OK) {
        rc = tn_keeper_note(k, identity, at, err);
    }
    return rc == TN_OK ? tn_table_cut(k->table, k->items, err) : rc;
}

bool tn_keeper_commit(struct tn_keeper *keeper, const char *identity, struct tn_keeper_place at,
                      bool may, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_keeper *k = keeper;
    struct tn_err err = {0};
    bool aged = false;
    if (!k->table || k->cutting || !due(k, now_ms, &aged, wait_ms) || (aged && !may)) {
        return false;
    }
    tn_rc rc = cut(k, identity, at, &err);
    if (rc == TN_AGAIN) { /* the next turn tries again */
        return false;
    }
    if (rc != TN_OK) {
        tn_keeper_fail(k, rc, &err, now_ms);
        return false;
    }
    k->cut = at;
    for (struct tn_track *track = k->tracks; track; track = track->next) {
        track->cut = track->at;
    }
    k->moved_ms = 0;
    k->cutting = true;
    k->wants_cut = false;
    k->items_cut = k->items;
    k->bytes = 0;
    tn_wait_lower(wait_ms, 0); /* a turn begins what is to be done now */
    return aged;
}

uint64_t tn_keeper_done(const struct tn_keeper *keeper, struct tn_keeper_place at, int64_t now_ms,
                        bool pressed)
{
    const struct tn_keeper *k = keeper;
    int64_t quiet = k->spec.config->commit.ms;
    quiet = quiet > QUIET_MS_MIN ? quiet : QUIET_MS_MIN;
    bool has_all = k->state == TN_KEEPER_LIVE && tn_keeper_settled(k) && at.items == 0;
    if (has_all && (pressed || now_ms - k->quiet_ms >= quiet)) {
        return at.place;
    }
    return pressed ? k->committed.place : k->before.place;
}

/* ---- turns ---- */

static void put_off(struct tn_keeper *k, int64_t now_ms)
{
    k->pause_ms = k->pause_ms == 0 ? PAUSE_MS_MIN : 2 * k->pause_ms;
    k->pause_ms = k->pause_ms < PAUSE_MS_MAX ? k->pause_ms : PAUSE_MS_MAX;
    k->retry_ms = now_ms + k->pause_ms;
}

static void note_trouble(struct tn_keeper *k, tn_rc rc, const struct tn_err *err, int64_t now_ms)
{
    say_trouble(k, rc == TN_CONFLICT ? TN_LOG_WARN : TN_LOG_ERROR, rc, err->text, now_ms);
    k->trouble = rc;
    k->trouble_text = *err;
    k->trouble_text.code = rc;
}

void tn_keeper_fail(struct tn_keeper *keeper, tn_rc rc, const struct tn_err *err, int64_t now_ms)
{
    note_trouble(keeper, rc, err, now_ms);
    shut(keeper);
    put_off(keeper, now_ms);
    if (rc == TN_CONFLICT) { /* what was void is not when it is done again */
        keeper->retry_ms = now_ms;
    }
}

void tn_keeper_hurry(struct tn_keeper *keeper, int64_t now_ms)
{
    if (keeper->trouble == TN_FULL) {
        keeper->retry_ms = now_ms;
        keeper->pause_ms = 0;
    }
}

static bool try_open(struct tn_keeper *k, int64_t now_ms)
{
    struct tn_err err = {0};
    tn_rc rc = start(k, &err);
    k->reopened += rc == TN_OK;
    if (rc != TN_OK) {
        if (rc == TN_ABSENT && is_gone(k)) {
            say_gone(k, &err);
        }
        note_trouble(k, rc, &err, now_ms);
        put_off(k, now_ms);
    }
    return rc == TN_OK;
}

/* While compaction doesn't keep up it is looked at again, rows or not. */
static void watch(struct tn_keeper *k, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_backlog backlog;
    if (k->table && tn_trend_due(&k->trend, now_ms)) {
        const struct tn_table_counts *counts = tn_table_counts(k->table);
        tn_table_backlog(k->table, &backlog);
        tn_trend_note(&k->trend,
                      &(struct tn_trend_look){backlog.runs_over, backlog.stopped, counts->stalls,
                                              counts->compaction_ns},
                      now_ms);
    }
    if (k->trend.bad > 0) {
        tn_wait_lower(wait_ms, k->trend.next_ms - now_ms);
    }
    if (k->table && tn_table_spared(k->table)) {
        uint32_t ms = tn_wear_wait_ms(k->spec.share->env.wear, WEAR_MS);
        tn_wait_lower(wait_ms, ms > 0 ? ms : 1); /* 0: it begins when nothing else is under way */
    }
    if (k->table && tn_table_held(k->table)) {
        tn_wait_lower(wait_ms, HELD_MS);
    }
}

bool tn_keeper_turn(struct tn_keeper *keeper, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_keeper *k = keeper;
    struct tn_err err = {0};
    if (now_ms < k->retry_ms) {
        tn_wait_lower(wait_ms, k->retry_ms - now_ms);
        return false;
    }
    if (k->state == TN_KEEPER_SHUT) {
        return try_open(k, now_ms);
    }
    look_again(k, now_ms);
    bool cutting = k->cutting;
    tn_rc rc = k->look.gone ? TN_ABSENT : tn_table_turn(k->table, false, &err);
    if (cutting && !k->cutting) { /* who waits for the commit looks at once */
        tn_wait_lower(wait_ms, 0);
    }
    if (k->look.gone) {
        say_gone(k, &err);
    }
    if (rc == TN_FULL) { /* rows and round are as they were; there may be room by then */
        note_trouble(k, rc, &err, now_ms);
        put_off(k, now_ms);
    } else if (rc != TN_OK) {
        tn_keeper_fail(k, rc, &err, now_ms);
    }
    if (k->table && k->spec.share->env.exec->under_way == 0 && !tn_table_idle(k->table) &&
        now_ms >= k->retry_ms) {
        tn_wait_lower(wait_ms, 1); /* its next piece of work begins with the next turn */
    }
    watch(k, now_ms, wait_ms);
    return false;
}
