#include "upload/direct_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "commit/base_list.h"
#include "file/names.h"

/* One pick on its way: the manifests and lists of it are written once, the base list for each try.
 */
struct commit {
    struct tn_direct *d;
    const struct tn_share_pick *pick;
    struct tn_attempt attempt;
    struct tn_manifest_writer list;
    struct tn_entry_writer entries;
    struct tn_snapshot next; /* without what depends on the one before */
    const char *path;        /* of its name */
    uint32_t lost;
};

/* ---- what doesn't depend on the one before ---- */

static tn_rc add_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct commit *c = user;
    return tn_entry_writer_add(&c->entries, entry, err);
}

typedef tn_rc each_fn(const struct tn_share_pick *pick, tn_live_fn *each, void *user,
                      struct tn_err *err);

static tn_rc write_entries(struct commit *c, each_fn *each_of, struct tn_err *err)
{
    tn_rc rc = tn_entry_writer_begin(&c->entries, &c->attempt, &c->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = each_of(c->pick, add_entry, c, err);
    if (rc != TN_OK) {
        tn_entry_writer_abort(&c->entries);
        return rc;
    }
    return tn_entry_writer_finish(&c->entries, err);
}

static tn_rc write_list(struct commit *c, each_fn *each_of, const char **name,
                        struct tn_json_i64 *size, struct tn_err *err)
{
    tn_rc rc = tn_attempt_begin_list(&c->attempt, &c->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_entries(c, each_of, err);
    if (rc != TN_OK) {
        tn_manifest_abort(&c->list);
        return rc;
    }
    size->present = true;
    return tn_attempt_finish_list(&c->attempt, &c->list, name, &size->value, err);
}

static tn_rc write_own(struct commit *c, struct tn_err *err)
{
    struct tn_direct *d = c->d;
    const struct tn_share_pick *pick = c->pick;
    struct tn_snapshot *next = &c->next;
    c->attempt = (struct tn_attempt){
        .root = d->root, .schema = d->schema, .options = &d->options, .worker = &d->there};
    *next = (struct tn_snapshot){
        .schema_id = d->schema->id,
        .commit_user = d->user,
        .commit_identifier = {pick->last, true},
        .commit_kind = "APPEND",
        .delta_record_count = {pick->data_rows, true},
        .changelog_record_count = {pick->change_rows, true},
        .watermark = pick->watermark,
    };
    tn_rc rc = tn_attempt_begin(&c->attempt, err);
    if (rc == TN_OK) {
        rc = write_list(c, tn_share_each_data, &next->delta_manifest_list,
                        &next->delta_manifest_list_size, err);
    }
    if (rc == TN_OK && pick->change_count > 0) {
        rc = write_list(c, tn_share_each_change, &next->changelog_manifest_list,
                        &next->changelog_manifest_list_size, err);
    }
    return rc;
}

/* ---- time ---- */

#define LONG_MS (10 * INT64_C(1000))

/* By both clocks: one stands still while the machine sleeps, the other may be set. */
struct moment {
    int64_t ms;
    int64_t ns;
};

static struct moment now_of(const struct tn_direct *d)
{
    struct tn_clock *clock = d->worker->clock;
    return (struct moment){clock->vtable->now_ms(clock), clock->vtable->monotonic_ns(clock)};
}

static bool is_long_ago(const struct tn_direct *d, const struct moment *moment)
{
    struct moment now = now_of(d);
    int64_t age_ms = now.ms - moment->ms;
    return age_ms < 0 || age_ms >= LONG_MS || now.ns - moment->ns >= LONG_MS * 1000000;
}

/* ---- what does ---- */

static tn_rc write_base(struct commit *c, struct tn_snapshot *next, struct tn_err *err)
{
    next->base_manifest_list_size.present = true;
    return tn_base_list_write(&c->attempt, c->d->has_base ? &c->d->base : NULL, false,
                              &next->base_manifest_list, &next->base_manifest_list_size.value, err);
}

/* With it go the data files. */
static tn_rc bring(struct commit *c, struct tn_err *err)
{
    struct tn_worker *there = &c->d->there;
    size_t mark = tn_arena_mark(&there->arena);
    const char *const *paths;
    uint32_t count;
    tn_rc rc = tn_attempt_paths(&c->attempt, NULL, 0, &there->arena, &paths, &count, err);
    if (rc == TN_OK) {
        rc = there->io->vtable->sync(there->io, paths, count, err);
    }
    tn_arena_reset(&there->arena, mark);
    return rc;
}

/* From here on nobody knows whether it is there, until somebody looks. What was committed before is
 * in the history that this one goes on with. */
static tn_rc mark_trying(struct commit *c, struct tn_err *err)
{
    struct tn_direct *d = c->d;
    struct tn_sent *sent = &d->sent;
    if (sent->trying != c->pick->last || strcmp(sent->manifest, c->attempt.manifest_uuid) != 0) {
        sent->base = sent->trying == 0 ? (d->has_base ? d->base.id : 0) : sent->base;
        sent->safe = sent->done;
        sent->trying = c->pick->last;
        memcpy(sent->manifest, c->attempt.manifest_uuid, sizeof sent->manifest);
        return tn_direct_save(d, err);
    }
    return TN_OK;
}

static tn_rc publish(struct commit *c, struct tn_snapshot *next, struct tn_err *err)
{
    struct tn_direct *d = c->d;
    struct tn_arena *arena = &d->worker->arena;
    struct tn_clock *clock = d->worker->clock;
    struct tn_bytes text;
    if (d->has_base && d->base.schema_id > next->schema_id) { /* adopted by the next sync */
        next->schema_id = d->base.schema_id;
        d->sent.asked = 0;
    }
    tn_snapshot_follow(next, d->has_base ? &d->base : NULL, clock->vtable->now_ms(clock));
    c->path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", next->id);
    tn_rc rc = c->path ? tn_snapshot_text(next, arena, &text, err) : tn_direct_no_room(err);
    if (rc == TN_OK) {
        rc = mark_trying(c, err);
    }
    return rc == TN_OK ? d->target->vtable->publish(d->target, c->path, text, err) : rc;
}

/* Readers heal a hint that lags. */
static void write_hint(struct tn_direct *d, int64_t id)
{
    struct tn_err ignored;
    char text[24];
    const char *path = tn_name_in(&d->worker->arena, d->root, TN_DIR_SNAPSHOT, "LATEST");
    (void)snprintf(text, sizeof text, "%" PRId64, id);
    if (path) {
        (void)!d->target->vtable->replace(d->target, path, tn_bytes_of(text), &ignored);
        (void)!d->target->vtable->settle(d->target, &ignored);
    }
}

static tn_rc note_done(struct commit *c, int64_t id, struct tn_err *err)
{
    struct tn_direct *d = c->d;
    struct tn_clock *clock = d->worker->clock;
    write_hint(d, id);
    d->newest = d->has_base && d->base.id > id ? d->base.id : id;
    d->own_id = 0;
    d->sent.done = c->pick->last;
    d->sent.trying = 0;
    d->sent.sending = d->sent.sending > d->sent.done ? d->sent.sending : 0;
    d->sent.lake_id = id;
    d->sent.since_ms = clock->vtable->now_ms(clock);
    d->result->commits++;
    d->result->lake_id = id;
    return tn_direct_save(d, err);
}

/* Who may not list asks for the one before, which goes first. */
static tn_rc find_before(struct tn_direct *d, int64_t id, struct tn_err *err)
{
    uint64_t size;
    const char *path =
        tn_name_numbered(&d->worker->arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", id - 1);
    return path ? d->target->vtable->stat(d->target, path, &size, err) : tn_direct_no_room(err);
}

/* What a name was given behind may have expired meanwhile, and the next ones, too: then it was
 * free, and nobody goes on from it. The newest is none of these; of others the next sync finds out.
 */
static tn_rc check_not_stray(struct tn_direct *d, const struct moment *since, int64_t id,
                             struct tn_err *err)
{
    int64_t newest = id;
    tn_rc rc = is_long_ago(d, since) ? tn_direct_list_newest(d, &newest, err) : TN_OK;
    if (rc == TN_IO && err->os == EACCES) {
        rc = find_before(d, id, err);
        newest = rc == TN_ABSENT ? 0 : id;
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    return rc == TN_OK && newest != id
               ? tn_err_set(err, TN_IO, 0,
                            "%s: snapshot %" PRId64
                            " was made long behind what it goes on with: whether others go on from "
                            "it is seen next time",
                            d->target->name, id)
               : rc;
}

/* CONFLICT: somebody else has the name. */
static tn_rc try_once(struct commit *c, bool *replaced, struct tn_err *err)
{
    struct tn_direct *d = c->d;
    struct tn_snapshot next = c->next;
    bool has_ours = false;
    struct moment since = now_of(d);
    tn_rc rc = tn_direct_read_base(d, err);
    if (rc == TN_OK) {
        rc = tn_direct_look_at_base(d, &has_ours, err);
    }
    if (rc == TN_OK && d->sent.trying > 0 && (has_ours || d->own_id > 0)) {
        /* an attempt of which we heard nothing came there late */
        rc = tn_direct_make_sure(d, err);
        return rc == TN_OK ? note_done(c, d->own_id > 0 ? d->own_id : d->base.id, err) : rc;
    }
    if (rc == TN_OK && !has_ours) {
        rc = tn_direct_check_last(d, replaced, err);
    }
    if (rc != TN_OK || *replaced) {
        return rc;
    }
    rc = write_base(c, &next, err);
    if (rc == TN_OK) {
        rc = bring(c, err);
    }
    if (rc == TN_OK) {
        rc = tn_direct_look_for_pause(d, err);
    }
    if (rc == TN_OK) {
        rc = publish(c, &next, err);
    }
    if (rc == TN_OK) {
        rc = check_not_stray(d, &since, next.id, err);
    }
    return rc == TN_OK ? note_done(c, next.id, err) : rc;
}

static void wait_some(struct commit *c)
{
    struct tn_direct *d = c->d;
    struct tn_clock *clock = d->worker->clock;
    uint32_t doublings = c->lost < TN_DIRECT_DOUBLINGS ? c->lost : TN_DIRECT_DOUBLINGS;
    uint64_t most = (uint64_t)TN_DIRECT_WAIT_MS << doublings;
    d->spec->wait(d->spec->user, (uint32_t)(clock->vtable->random(clock) % (most + 1)));
}

static tn_rc try_until(struct commit *c, bool *replaced, struct tn_err *err)
{
    struct tn_direct *d = c->d;
    struct tn_arena *arena = &d->worker->arena;
    uint32_t tries = d->spec->tries_max > 0 ? d->spec->tries_max : TN_DIRECT_TRIES_MAX;
    while (c->lost < tries) {
        size_t mark = tn_arena_mark(arena);
        tn_rc rc = try_once(c, replaced, err);
        bool published = rc == TN_CONFLICT && d->sent.trying == c->pick->last && c->path;
        tn_arena_reset(arena, mark);
        if (!published) {
            return rc;
        }
        c->path = NULL;
        c->lost++;
        d->result->lost++;
        wait_some(c);
    }
    d->result->why = TN_SHARE_RACED;
    return tn_err_set(err, TN_IO, 0, "%s: others were faster %" PRIu32 " times", d->target->name,
                      c->lost);
}

tn_rc tn_direct_commit(struct tn_direct *d, const struct tn_share_pick *pick, bool *replaced,
                       struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t here = tn_arena_mark(arena);
    size_t there = tn_arena_mark(&d->there.arena);
    void *memory;
    *replaced = false;
    tn_rc rc = tn_arena_need(arena, sizeof(struct commit), "a commit", &memory, err);
    if (rc == TN_OK) {
        struct commit *c = memory;
        c->d = d;
        c->pick = pick;
        rc = write_own(c, err);
        rc = rc == TN_OK ? try_until(c, replaced, err) : rc;
    }
    tn_arena_reset(&d->there.arena, there);
    tn_arena_reset(arena, here);
    return rc;
}
