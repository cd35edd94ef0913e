#include "upload/gather.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "commit/commit.h"
#include "file/names.h"
#include "upload/gather_private.h"

/* ---- what stands, before anything is looked at ---- */

static tn_rc read_newest(struct tn_gather_run *run, struct tn_err *err)
{
    const struct tn_gather_spec *spec = &run->gather->spec;
    struct tn_worker *worker = spec->worker;
    tn_rc rc = tn_snapshot_latest(worker->io, spec->table.root, &worker->arena, &run->newest, err);
    if (rc == TN_ABSENT) {
        run->newest = 0;
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_read(worker->io, spec->table.root, run->newest, spec->arena,
                              &run->snapshot, err);
    }
    if (rc == TN_OK && !run->newest_schema && run->snapshot.schema_id > spec->table.schema->id) {
        run->result->old_schema = true;
    }
    return rc == TN_ABSENT ? tn_err_set(err, TN_CONFLICT, 0, "the table went on") : rc;
}

static tn_rc look_for_pause(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_worker *worker = g->spec.worker;
    struct tn_gather_result *result = run->result;
    tn_rc rc = tn_pause_read(worker->io, g->spec.table.name, &worker->arena, &result->pause, err);
    if (rc == TN_OK) {
        bool holds = tn_pause_holds(&g->pause_watch, &result->pause, worker->clock);
        result->pause_over = result->pause.set && !holds;
        result->paused = holds;
        result->pause_alive = holds && g->pause_watch.alive;
    }
    return rc;
}

/* In a pause, too, what is held goes: official compaction and expiry may leave nothing that tells
 * where it is. In this order: what another gather commits above S it has marked before, so it is in
 * the marks, or nobody can write the next ones. */
static tn_rc read_all(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_worker *worker = g->spec.worker;
    const char *table = g->spec.table.name;
    tn_rc rc = look_for_pause(run, err);
    if (rc == TN_OK) {
        rc = read_newest(run, err);
    }
    if (rc != TN_OK || run->result->old_schema) {
        return rc;
    }
    if (!g->marks.read) {
        rc = tn_gather_marks_read(&g->marks, table, worker, err);
    }
    if (rc == TN_OK) {
        rc = tn_gather_look_back(run, err);
    }
    run->listed = rc == TN_OK && !run->result->paused &&
                  g->hold.count + TN_INBOX_ITEMS_MAX <= TN_GATHER_HELD_MAX;
    const struct tn_inbox_spec spec = {
        .table = table, .after = g->turn, .passed = tn_gather_holds, .user = &g->hold};
    return run->listed ? tn_inbox_list(worker->io, &spec, g->spec.arena, &run->inbox, err) : rc;
}

/* ---- each entry ---- */

static tn_rc look_at_all(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    void *memory;
    tn_rc rc = tn_arena_need(g->spec.arena, (run->inbox.count + 1) * sizeof *run->entries,
                             "a round", &memory, err);
    run->entries = memory;
    if (rc == TN_OK) {
        rc = tn_set_init(&run->names, TN_GATHER_FILES_MAX, g->spec.arena, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_gather_look(run, err);
    if (rc == TN_AGAIN && run->count > 0) { /* the rest has its turn in the next round */
        run->inbox.more = true;
        return TN_OK;
    }
    return rc;
}

static tn_rc settle_all(struct tn_gather_run *run, struct tn_err *err)
{
    tn_rc rc = tn_gather_settle(run, err);
    return rc == TN_OK ? tn_gather_look_at_files(run, err) : rc;
}

/* Behind the marks: who has written them knows all that was gathered, and so what is refused. */
static tn_rc refuse_all(struct tn_gather_run *run, struct tn_err *err)
{
    const struct tn_gather_spec *spec = &run->gather->spec;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < run->count; i++) {
        const struct tn_gather_entry *entry = &run->entries[i];
        if (entry->verdict != TN_GATHER_REFUSED) {
            continue;
        }
        rc = tn_inbox_refuse(spec->worker->io, spec->table.name, &entry->item, entry->reason,
                             &spec->worker->arena, err);
        if (rc == TN_OK) {
            run->result->refused++;
            if (spec->refused) {
                spec->refused(spec->user, &entry->item, entry->reason);
            }
        }
    }
    return rc;
}

/* ---- marks ---- */

/* The last one that was begun of the gateway is held, and with it all that were. */
static bool is_held(const struct tn_gather *g, const struct tn_gather_mark *mark)
{
    for (uint32_t i = 0; i < g->hold.count; i++) {
        const struct tn_inbox_item *item = &g->hold.entries[i].item;
        if (item->id == mark->intent && strcmp(item->gateway, mark->gateway) == 0) {
            return true;
        }
    }
    return false;
}

/* The first entry of the gateway that may be in the inbox; INT64_MAX: there is none. */
static int64_t first_waiting(const struct tn_gather_run *run, const struct tn_gather_mark *mark)
{
    const struct tn_gather_hold *hold = &run->gather->hold;
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; first == INT64_MAX && i < run->inbox.count; i++) {
        const struct tn_inbox_item *item = &run->inbox.items[i];
        first = strcmp(item->gateway, mark->gateway) == 0 ? item->id : first;
    }
    if (first == INT64_MAX && run->inbox.more) { /* those that weren't listed */
        return mark->done + 1;
    }
    for (uint32_t i = 0; i < hold->count; i++) {
        const struct tn_inbox_item *item = &hold->entries[i].item;
        if (item->id < first && strcmp(item->gateway, mark->gateway) == 0) {
            first = item->id;
        }
    }
    return first;
}

/* What a gather that ended had begun, and what doesn't wait any more, is done: only entries that
 * the table keeps have gone. */
static bool end_intents(struct tn_gather_run *run)
{
    const struct tn_gather *g = run->gather;
    struct tn_gather_marks *marks = &run->gather->marks;
    bool open = false;
    for (uint32_t i = 0; i < marks->count; i++) {
        struct tn_gather_mark *mark = &marks->marks[i];
        int64_t first = mark->intent > mark->done ? first_waiting(run, mark) : 0;
        if (first > mark->intent) {
            mark->done = mark->intent;
            mark->done_hash = mark->intent_hash;
        } else if (first > mark->done + 1) {
            mark->done = first - 1;
            mark->done_hash = (struct tn_hash_128){0}; /* nobody knows */
        }
        open = open || (mark->intent > mark->done && !is_held(g, mark));
    }
    return open;
}

/* True: there is something to be written down. */
static bool mark_entries(struct tn_gather_run *run)
{
    struct tn_gather_marks *marks = &run->gather->marks;
    bool any = false;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct tn_gather_entry *entry = &run->entries[i];
        bool fresh = entry->verdict == TN_GATHER_NEW;
        any = any || fresh || entry->verdict == TN_GATHER_REFUSED;
        if (!fresh) {
            continue;
        }
        struct tn_gather_mark *mark = tn_gather_mark_of(marks, entry->item.gateway);
        TN_CHECK(mark != NULL); /* it had one when it was looked at */
        if (entry->item.id > mark->intent) {
            mark->intent = entry->item.id;
            mark->intent_hash = entry->hash;
        }
    }
    return any;
}

static tn_rc write_marks(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    bool open = end_intents(run);
    if (!mark_entries(run)) {
        return TN_OK;
    }
    if (!open) {
        g->marks.after = g->hold.count > 0 ? tn_gather_hold_after(g) : run->newest;
    }
    return tn_gather_marks_write(&g->marks, g->spec.table.name, g->spec.worker, err);
}

/* ---- the snapshot ---- */

/* What was looked for and not found up to S may be in what was made of a snapshot that somebody has
 * written over since: the next round looks there, too. */
static tn_rc note_foreign(void *user, const struct tn_foreign *foreign, struct tn_worker *worker,
                          struct tn_err *err)
{
    const struct tn_gather_run *run = user;
    (void)worker;
    if (foreign->snapshot && !run->searched &&
        !tn_name_begins(foreign->snapshot->commit_user, TN_GATHER_USER)) {
        return TN_OK;
    }
    return tn_err_set(err, TN_CONFLICT, 0, "somebody else made snapshot %" PRId64, foreign->id);
}

struct batch {
    struct tn_entry *added;
    uint32_t added_count;
    struct tn_entry *changelog;
    uint32_t changelog_count;
    struct tn_json_i64 watermark; /* the earliest: what is later isn't complete */
};

static void take_entry(struct batch *batch, const struct tn_committable *c)
{
    memcpy(batch->added + batch->added_count, c->added, c->added_count * sizeof *c->added);
    batch->added_count += c->added_count;
    memcpy(batch->changelog + batch->changelog_count, c->changelog,
           c->changelog_count * sizeof *c->changelog);
    batch->changelog_count += c->changelog_count;
    if (c->watermark.present &&
        (!batch->watermark.present || c->watermark.value < batch->watermark.value)) {
        batch->watermark = c->watermark;
    }
}

static tn_rc make_batch(struct tn_gather_run *run, struct batch *batch, struct tn_err *err)
{
    size_t added = 0;
    size_t changelog = 0;
    void *memory;
    for (uint32_t i = 0; i < run->count; i++) {
        bool fresh = run->entries[i].verdict == TN_GATHER_NEW;
        added += fresh ? run->entries[i].committable.added_count : 0;
        changelog += fresh ? run->entries[i].committable.changelog_count : 0;
    }
    tn_rc rc =
        tn_arena_need(run->gather->spec.arena, (added + changelog + 1) * sizeof(struct tn_entry),
                      "the files of a round", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    *batch = (struct batch){.added = memory, .changelog = (struct tn_entry *)memory + added};
    for (uint32_t i = 0; i < run->count; i++) {
        const struct tn_gather_entry *entry = &run->entries[i];
        if (entry->verdict == TN_GATHER_NEW) {
            take_entry(batch, &entry->committable);
            run->result->entries++;
            run->result->rows += entry->committable.row_count;
        }
    }
    run->result->files = (uint32_t)(added + changelog);
    return TN_OK;
}

static tn_rc commit(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct batch batch;
    struct tn_commit_result made;
    tn_rc rc = make_batch(run, &batch, err);
    if (rc != TN_OK || batch.added_count + batch.changelog_count == 0) {
        return rc;
    }
    struct tn_commit_spec spec = {.root = g->spec.table.root,
                                  .schema = g->spec.table.schema,
                                  .options = g->spec.table.options,
                                  .user = g->user,
                                  .identifier = g->rounds,
                                  .watermark = batch.watermark,
                                  .added = batch.added,
                                  .added_count = batch.added_count,
                                  .changelog = batch.changelog,
                                  .changelog_count = batch.changelog_count,
                                  .append_even_if_empty = true,
                                  .last_seen = run->newest,
                                  .foreign = note_foreign,
                                  .user_data = run};
    rc = tn_commit(&spec, g->spec.worker, &made, err);
    run->result->snapshot_id = made.append_id;
    return rc;
}

/* ---- a round ---- */

static tn_rc work(struct tn_gather_run *run, struct tn_err *err)
{
    tn_rc rc = read_all(run, err);
    if (rc != TN_OK || !run->listed) {
        return rc;
    }
    if (run->inbox.count == 0) {
        (void)end_intents(run);
        return TN_OK;
    }
    rc = look_at_all(run, err);
    if (rc != TN_OK || run->result->old_schema) {
        return rc;
    }
    rc = settle_all(run, err);
    if (rc == TN_OK) {
        rc = write_marks(run, err);
    }
    if (rc == TN_OK) {
        rc = refuse_all(run, err);
    }
    if (rc == TN_OK) { /* what was read when the round began may be old by now */
        rc = look_for_pause(run, err);
    }
    if (rc != TN_OK || run->result->paused) {
        return rc; /* the marks say what was begun */
    }
    rc = commit(run, err);
    return rc == TN_OK ? tn_gather_keep_held(run, err) : rc;
}

/* The next one begins where there was no room any more. */
static void note_turn(struct tn_gather_run *run)
{
    bool more = run->inbox.more && run->count > 0;
    (void)snprintf(run->gather->turn, sizeof run->gather->turn, "%s",
                   more ? run->entries[run->count - 1].item.gateway : "");
}

static void say_lost(struct tn_gather_run *run)
{
    struct tn_gather *g = run->gather;
    run->result->written_over = g->lost;
    run->result->heals = g->lost > 0 && g->lost_waits;
    g->lost = 0;
}

tn_rc tn_gather_round(struct tn_gather *gather, bool newest_schema, struct tn_gather_result *result,
                      struct tn_err *err)
{
    struct tn_arena *arena = gather->spec.arena;
    struct tn_arena *scratch = &gather->spec.worker->arena;
    size_t mark = tn_arena_mark(arena);
    size_t scratch_mark = tn_arena_mark(scratch);
    *result = (struct tn_gather_result){0};
    struct tn_gather_run *run = tn_arena_take(arena, sizeof *run);
    if (!run) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a round");
    }
    run->gather = gather;
    run->result = result;
    run->newest_schema = newest_schema;
    gather->rounds++;
    tn_rc rc = work(run, err);
    note_turn(run);
    result->more = run->inbox.more;
    result->held = gather->hold.count;
    if (rc != TN_OK) { /* nobody knows what of it was done: the marks are not what they say */
        gather->marks.read = false;
    }
    if (!result->old_schema) { /* then another round comes, whose result is seen */
        say_lost(run);
    }
    tn_arena_reset(scratch, scratch_mark);
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "gather %s", gather->spec.table.name);
}

static bool is_settled(const struct tn_gather *g)
{
    bool settled = g->marks.read && !tn_gather_holds_sure(&g->hold);
    for (uint32_t i = 0; i < g->marks.count; i++) {
        const struct tn_gather_mark *mark = &g->marks.marks[i];
        settled = settled && (mark->intent <= mark->done || is_held(g, mark));
    }
    return settled;
}

tn_rc tn_gather_look_again(struct tn_gather *gather, bool *settled, struct tn_err *err)
{
    struct tn_arena *arena = gather->spec.arena;
    size_t mark = tn_arena_mark(arena);
    size_t scratch_mark = tn_arena_mark(&gather->spec.worker->arena);
    struct tn_gather_result result = {0};
    struct tn_gather_run run = {.gather = gather, .result = &result, .newest_schema = true};
    tn_rc rc = read_newest(&run, err);
    if (rc == TN_OK && gather->marks.read) {
        rc = tn_gather_look_back(&run, err);
    }
    *settled = rc == TN_OK && is_settled(gather);
    int64_t after = gather->hold.count > 0 ? tn_gather_hold_after(gather) : 0;
    if (*settled && gather->marks.after < after) {
        gather->marks.after = after;
        rc = tn_gather_marks_write(&gather->marks, gather->spec.table.name, gather->spec.worker,
                                   err);
        *settled = rc == TN_OK;
    }
    tn_arena_reset(&gather->spec.worker->arena, scratch_mark);
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "gather %s", gather->spec.table.name);
}

tn_rc tn_gather_open(struct tn_gather *gather, const struct tn_gather_spec *spec,
                     struct tn_err *err)
{
    char uuid[TN_UUID_SIZE];
    *gather = (struct tn_gather){.spec = *spec};
    tn_clock_uuid(spec->worker->clock, uuid);
    (void)snprintf(gather->user, sizeof gather->user, TN_GATHER_USER "%s", uuid);
    void *memory;
    tn_rc rc = tn_gather_marks_init(&gather->marks, spec->arena, err);
    if (rc == TN_OK) {
        rc = tn_arena_need(spec->arena, TN_GATHER_HELD_MAX * sizeof *gather->hold.entries,
                           "entries that are held", &memory, err);
    }
    if (rc == TN_OK) {
        gather->hold.entries = memory;
    }
    return rc == TN_OK
               ? tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), spec->arena, &gather->plan, err)
               : rc;
}
