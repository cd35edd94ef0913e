/* Entries that are in a snapshot stay in the inbox until that is sure to stay: an official writer,
 * who has found its name free, may still copy another one over it. It is sure when
 *
 *     another one was made above it, and then it is what it was: what is above was made of it
 *     it is the newest, and was what it is for `sure_ms`
 *
 * When it isn't what it was they are forgotten here: as what a gather has left that ended in the
 * middle they are looked for, and what isn't found is gathered again. */
#include "upload/gather_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "file/names.h"

#define MS_NS INT64_C(1000000)

enum { TEXT_SIZE = 512 };

static int64_t now_ns(const struct tn_gather_run *run)
{
    struct tn_clock *clock = run->gather->spec.worker->clock;
    return clock->vtable->monotonic_ns(clock);
}

struct tn_hash_128 tn_gather_trace(const char *user, int64_t identifier, const char *kind)
{
    char text[TEXT_SIZE];
    int size = snprintf(text, sizeof text, "%" PRId64 " %s %s", identifier, kind, user);
    size_t kept = (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
    return tn_hash_128((struct tn_bytes){(const unsigned char *)text, kept});
}

static struct tn_hash_128 trace_of(const struct tn_snapshot *snapshot)
{
    return tn_gather_trace(snapshot->commit_user,
                           snapshot->commit_identifier.present ? snapshot->commit_identifier.value
                                                               : -1,
                           snapshot->commit_kind);
}

bool tn_gather_holds(void *user, const struct tn_inbox_item *item)
{
    const struct tn_gather_hold *hold = user;
    for (uint32_t i = 0; i < hold->count; i++) {
        const struct tn_inbox_item *held = &hold->entries[i].item;
        if (held->id == item->id && strcmp(held->gateway, item->gateway) == 0) {
            return true;
        }
    }
    return false;
}

bool tn_gather_holds_sure(const struct tn_gather_hold *hold)
{
    bool any = false;
    for (uint32_t i = 0; i < hold->count; i++) {
        any = any || hold->entries[i].sure;
    }
    return any;
}

int64_t tn_gather_hold_after(const struct tn_gather *g)
{
    return tn_gather_holds_sure(&g->hold) ? g->marks.after : g->hold.id - 1;
}

/* ---- they go ---- */

/* What is gone must not come back behind the next marks. */
static tn_rc remove_items(struct tn_gather_run *run, const struct tn_inbox_item *const *items,
                          uint32_t count, struct tn_err *err)
{
    const struct tn_gather_spec *spec = &run->gather->spec;
    struct tn_arena *scratch = &spec->worker->arena;
    const char *last = "";
    tn_rc rc = tn_inbox_remove(spec->worker->io, spec->table.name, items, count, scratch, err);
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        const char *gateway = items[i]->gateway;
        if (strcmp(gateway, last) == 0) {
            continue;
        }
        size_t mark = tn_arena_mark(scratch);
        const char *dir = tn_arena_format(scratch, ".tarn/%s/inbox/%s/", spec->table.name, gateway);
        rc = dir ? spec->worker->io->vtable->sync(spec->worker->io, &dir, 1, err)
                 : tn_err_set(err, TN_AGAIN, 0, "no memory for a path");
        tn_arena_reset(scratch, mark);
        last = gateway;
    }
    return rc;
}

/* Marks know one id up to which all is done: so one stays as long as an earlier one does. */
static bool waits_for_earlier(const struct tn_gather_hold *hold, const struct tn_gather_held *held)
{
    for (uint32_t i = 0; i < hold->count; i++) {
        const struct tn_gather_held *other = &hold->entries[i];
        if (!other->sure && other->item.id < held->item.id &&
            strcmp(other->item.gateway, held->item.gateway) == 0) {
            return true;
        }
    }
    return false;
}

static void note_done(struct tn_gather_run *run, const struct tn_gather_held *held)
{
    struct tn_gather_mark *mark = tn_gather_mark_of(&run->gather->marks, held->item.gateway);
    if (!mark || held->item.id <= mark->done) {
        return;
    }
    mark->done = held->item.id;
    mark->done_hash = held->hash;
    if (mark->intent < mark->done) {
        mark->intent = mark->done;
        mark->intent_hash = mark->done_hash;
    }
}

/* Those that are sure, and of which no earlier one stays. */
static tn_rc let_go(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather_hold *hold = &run->gather->hold;
    struct tn_arena *scratch = &run->gather->spec.worker->arena;
    size_t mark = tn_arena_mark(scratch);
    void *memory;
    tn_rc rc = tn_arena_need(scratch, (hold->count + 1) * sizeof(struct tn_inbox_item *),
                             "entries that go", &memory, err);
    const struct tn_inbox_item **items = memory;
    uint32_t going = 0;
    for (uint32_t i = 0; rc == TN_OK && i < hold->count; i++) {
        struct tn_gather_held *held = &hold->entries[i];
        held->goes = held->sure && !waits_for_earlier(hold, held);
        if (held->goes) {
            items[going++] = &held->item;
        }
    }
    if (rc == TN_OK && going > 0) {
        rc = remove_items(run, items, going, err);
    }
    tn_arena_reset(scratch, mark);
    if (rc != TN_OK) {
        return rc;
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < hold->count; i++) {
        if (hold->entries[i].goes) {
            note_done(run, &hold->entries[i]);
        } else {
            hold->entries[left++] = hold->entries[i];
        }
    }
    hold->count = left;
    run->result->gone += going;
    return TN_OK;
}

static tn_rc let_all_go(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather_hold *hold = &run->gather->hold;
    for (uint32_t i = 0; i < hold->count; i++) {
        hold->entries[i].sure = true;
    }
    return hold->count > 0 ? let_go(run, err) : TN_OK;
}

/* ---- the second look ---- */

static void forget(struct tn_gather_hold *hold)
{
    hold->count = 0;
    hold->id = 0;
}

static void note_lost(struct tn_gather *g)
{
    struct tn_gather_hold *hold = &g->hold;
    if (hold->ours) {
        g->lost = hold->id;
        g->lost_waits = hold->count > 0;
    }
    forget(hold);
}

tn_rc tn_gather_look_back(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_gather_hold *hold = &g->hold;
    struct tn_worker *worker = g->spec.worker;
    struct tn_snapshot old;
    const struct tn_snapshot *snapshot = &run->snapshot;
    if (hold->id == 0 || run->newest < hold->id) { /* the table was rolled back */
        forget(hold);
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = TN_OK;
    if (run->newest > hold->id) {
        snapshot = &old;
        rc = tn_snapshot_read(worker->io, g->spec.table.root, hold->id, &worker->arena, &old, err);
    }
    bool same = rc == TN_OK && tn_hash_128_equal(trace_of(snapshot), hold->trace);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_ABSENT) { /* it has expired: nobody knows */
        forget(hold);
        return TN_OK;
    }
    if (rc == TN_OK && !same) {
        note_lost(g);
    }
    bool sure = run->newest > hold->id || (now_ns(run) - hold->since_ns) / MS_NS >= g->spec.sure_ms;
    if (rc != TN_OK || !same || !sure) {
        return rc;
    }
    rc = let_all_go(run, err);
    if (rc == TN_OK && run->newest > hold->id) {
        hold->id = 0; /* all is known of it */
    }
    return rc;
}

/* ---- behind a round ---- */

static void hold_entries(struct tn_gather_run *run)
{
    struct tn_gather_hold *hold = &run->gather->hold;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct tn_gather_entry *entry = &run->entries[i];
        bool known = entry->verdict == TN_GATHER_KNOWN;
        bool found = entry->verdict == TN_GATHER_FOUND;
        if (!known && !found && entry->verdict != TN_GATHER_NEW) {
            continue;
        }
        TN_CHECK(hold->count < TN_GATHER_HELD_MAX);
        hold->entries[hold->count++] = (struct tn_gather_held){
            .item = entry->item, .hash = entry->hash, .sure = known, .found = found};
        run->result->known += known || found;
    }
}

/* The one that ours was made of: what it has is in ours when it is what it was. */
static tn_rc look_below(struct tn_gather_run *run, bool *same, struct tn_err *err)
{
    struct tn_worker *worker = run->gather->spec.worker;
    struct tn_snapshot below;
    size_t mark = tn_arena_mark(&worker->arena);
    *same = true;
    if (run->newest == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_snapshot_read(worker->io, run->gather->spec.table.root, run->newest,
                                &worker->arena, &below, err);
    *same = rc == TN_OK && tn_hash_128_equal(trace_of(&below), trace_of(&run->snapshot));
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static void move_to(struct tn_gather_run *run, int64_t id, struct tn_hash_128 trace, bool ours)
{
    struct tn_gather_hold *hold = &run->gather->hold;
    hold->id = id;
    hold->trace = trace;
    hold->ours = ours;
    hold->since_ns = now_ns(run);
}

static tn_rc hold_on_ours(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_gather_hold *hold = &g->hold;
    uint32_t old = hold->count;
    bool same;
    tn_rc rc = look_below(run, &same, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (!same && hold->id == run->newest) {
        note_lost(g);
    }
    hold_entries(run);
    for (uint32_t i = 0; i < hold->count; i++) {
        struct tn_gather_held *held = &hold->entries[i];
        held->sure = held->sure || (same && (i < old || held->found));
    }
    if (!same) { /* nobody knows of what ours was made */
        hold->count = 0;
    }
    move_to(run, run->result->snapshot_id, tn_gather_trace(g->user, g->rounds, "APPEND"), true);
    return let_go(run, err);
}

tn_rc tn_gather_keep_held(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    if (run->result->snapshot_id > 0) {
        return hold_on_ours(run, err);
    }
    struct tn_gather_hold *hold = &g->hold;
    hold_entries(run);
    tn_rc rc = hold->count > 0 ? let_go(run, err) : TN_OK;
    if (rc == TN_OK && hold->count > 0 && hold->id == 0 && run->newest > 0) {
        bool ours = strcmp(run->snapshot.commit_user, g->user) == 0;
        move_to(run, run->newest, trace_of(&run->snapshot), ours);
    }
    return rc;
}
