#include <stdio.h>
#include <string.h>

#include "app/lakes_private.h"

/* ---- a mirror ---- */

static struct tn_share_bounds bounds_of(const struct tn_lakes_task *t)
{
    return (struct tn_share_bounds){
        .through = t->plan.through, .bytes_max = t->plan.bytes, .requests_max = t->plan.requests};
}

static tn_rc sync_mirror(struct tn_lakes_task *t, struct tn_target *target, struct tn_err *err)
{
    const struct tn_lakes_mirror *m = t->mirror;
    struct tn_share_bounds bounds = bounds_of(t);
    struct tn_delta_spec spec = {.root = m->root,
                                 .target = target,
                                 .consumer = m->lake->consumer,
                                 .through = bounds.through,
                                 .bytes_max = bounds.bytes_max,
                                 .requests_max = bounds.requests_max};
    return tn_delta_sync(&spec, t->lakes->spec.worker, &t->result, err);
}

/* ---- a shared table ---- */

tn_rc tn_lakes_check_place(const struct tn_lakes_door *door, const struct tn_lakes_lake *lake,
                           const char *table, const struct tn_share *share, struct tn_err *err)
{
    struct tn_config_lake there = *lake->config;
    char name[TN_LAKES_CONSUMER_SIZE];
    there.target = share->where;
    tn_rc rc = door->name(door->user, &there, name, err);
    return rc == TN_OK && strcmp(name, lake->consumer) != 0
               ? tn_err_set(err, TN_CONFLICT, 0,
                            "table %s is a part of the one at %s, and is sent there alone: give "
                            "that as the target of a lake, and leave the table out of the `tables` "
                            "of this one",
                            table, share->where)
               : rc;
}

/* The part is as large as the tables of the start wanted. */
static tn_rc check_memory(struct tn_lakes_task *t, struct tn_err *err)
{
    const struct tn_worker *worker = t->lakes->spec.worker;
    size_t needed = tn_share_sync_memory(t->share.way);
    bool packs = t->share.way == TN_SHARE_GATHER || worker->codec.block_max > 0;
    if (packs && tn_arena_free(&worker->arena) >= needed) {
        return TN_OK;
    }
    t->kind = "memory";
    return tn_err_set(
        err, TN_AGAIN, 0,
        "%s was shared (%s) after the start, and the part 'upload' is too small for that: "
        "`tarn reload` makes it larger",
        t->mirror->keeper->name, tn_share_way_name(t->share.way));
}

static tn_rc sync_share(struct tn_lakes_task *t, const struct tn_lakes_place *place,
                        struct tn_err *err)
{
    const struct tn_lakes_spec *of = &t->lakes->spec;
    struct tn_direct_spec spec = {.table = t->mirror->keeper->name,
                                  .target = place->target,
                                  .place = t->mirror->lake->consumer,
                                  .watch = &t->mirror->pause,
                                  .scratch = place->scratch,
                                  .wait = of->door.wait,
                                  .user = of->door.user,
                                  .bounds = bounds_of(t),
                                  .tries_max = t->tries_max};
    tn_rc rc = check_memory(t, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_share_sync(t->share.way, &spec, of->worker, &t->part, err);
    t->kind = rc == TN_OK ? NULL : tn_lakes_kind_of_share(t->part.why);
    t->ran = rc == TN_OK || t->part.last_id > 0 || t->part.replaced > 0;
    t->result = (struct tn_delta_result){.first_id = t->part.first_id,
                                         .last_id = t->part.last_id,
                                         .files = t->part.files,
                                         .bytes = t->part.bytes,
                                         .limited = t->part.limited};
    return rc;
}

static tn_rc look_at_share(struct tn_lakes_task *t, struct tn_arena *arena, struct tn_err *err)
{
    const struct tn_lakes_spec *spec = &t->lakes->spec;
    const char *table = t->mirror->keeper->name;
    tn_rc rc = tn_share_read(spec->env->io, table, arena, &t->share, err);
    t->shared = rc == TN_OK;
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    if (!t->mirror->shared) { /* it came after the start */
        rc = tn_lakes_forget_mirror(t->lakes, t->mirror, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_lakes_check_place(&spec->door, t->mirror->lake, table, &t->share, err);
    t->kind = rc == TN_CONFLICT ? "place" : NULL;
    return rc;
}

/* ---- either ---- */

/* The slower one of two. */
static uint32_t rate_of(const struct tn_lakes_task *t)
{
    uint32_t most = t->mirror->lake->config->rate;
    uint32_t now = t->plan.rate;
    return most == 0 || (now > 0 && now < most) ? now : most;
}

static tn_rc sync_at(struct tn_lakes_task *t, struct tn_arena *arena, struct tn_err *err)
{
    struct tn_lakes_spec *spec = &t->lakes->spec;
    struct tn_lakes_place place = {.target = NULL};
    struct tn_lakes_wish wish = {.lake = t->mirror->lake->config,
                                 .table = t->mirror->keeper->name,
                                 .stop = &t->lakes->stop,
                                 .arena = arena,
                                 .patience_ms = t->patience_ms,
                                 .rate = rate_of(t),
                                 .shared = t->shared};
    tn_rc rc = spec->door.open(spec->door.user, &wish, &place, err);
    bool opened = rc == TN_OK;
    if (opened) {
        rc = t->shared ? sync_share(t, &place, err) : sync_mirror(t, place.target, err);
    }
    if (rc != TN_OK && !t->kind) {
        t->kind = spec->door.kind(spec->door.user, place.target);
    }
    if (opened) {
        t->counts = place.target->counts;
        spec->door.close(spec->door.user, place.target);
    }
    return rc;
}

tn_rc tn_lakes_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_lakes_task *t = (struct tn_lakes_task *)(void *)task;
    struct tn_lakes_spec *spec = &t->lakes->spec;
    struct tn_arena *arena = &spec->worker->arena;
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
    tn_rc rc = look_at_share(t, arena, err);
    if (rc == TN_OK) {
        rc = sync_at(t, arena, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}
