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

static bool made_by(const struct tn_gather *g, const struct tn_snapshot *snapshot)
{
    return strcmp(snapshot->commit_user, g->user) == 0 && snapshot->commit_identifier.present &&
           snapshot->commit_identifier.value == g->made_round;
}

/* Our last one: as long as it is the newest that costs nothing, and behind others one read. */
static tn_rc look_at_made(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_worker *worker = g->spec.worker;
    struct tn_snapshot old;
    const struct tn_snapshot *snapshot = &run->snapshot;
    if (g->made == 0 || run->newest < g->made) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = TN_OK;
    if (run->newest > g->made) {
        snapshot = &old;
        rc = tn_snapshot_read(worker->io, g->spec.table.root, g->made, &worker->arena, &old, err);
    }
    bool ours = rc == TN_OK && made_by(g, snapshot);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_OK && !ours) {
        run->result->written_over = g->made;
    }
    if (rc == TN_ABSENT || (rc == TN_OK && (!ours || run->newest > g->made))) {
        g->made = 0; /* it has expired, or all is known of it */
    }
    return rc == TN_ABSENT ? TN_OK : rc;
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

/* In this order: what another gather commits above S it has marked before, so it is in the marks,
 * or nobody can write the next ones. */
static tn_rc read_all(struct tn_gather_run *run, struct tn_err *err)
{
    struct tn_gather *g = run->gather;
    struct tn_worker *worker = g->spec.worker;
    const char *table = g->spec.table.name;
    tn_rc rc = look_for_pause(run, err);
    if (rc == TN_OK && !run->result->paused) {
        rc = read_newest(run, err);
    }
    if (rc == TN_OK && run->newest > 0) {
        rc = look_at_made(run, err);
    }
    if (rc != TN_OK || run->result->paused || run->result->old_schema) {
        return rc;
    }
    if (!g->marks.read) {
        rc = tn_gather_marks_read(&g->marks, table, worker, err);
    }
    return rc == TN_OK ? tn_inbox_list(worker->io, table, g->turn, g->spec.arena, &run->inbox, err)
                       : rc;
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

/* Whether an entry of the gateway up to its intent may still be in the inbox. */
static bool may_wait(const struct tn_gather_run *run, const struct tn_gather_mark *mark)
{
    for (uint32_t i = 0; i < run->inbox.count; i++) {
        const struct tn_inbox_item *item = &run->inbox.items[i];
        if (strcmp(item->gateway, mark->gateway) == 0) {
            return item->id <= mark->intent;
        }
    }
    return run->inbox.more; /* those that weren't listed */
}

/* What a gather that ended had begun, and of which nothing waits any more, is done. */
static bool end_intents(struct tn_gather_run *run)
{
    struct tn_gather_marks *marks = &run->gather->marks;
    bool open = false;
    for (uint32_t i = 0; i < marks->count; i++) {
        struct tn_gather_mark *mark = &marks->marks[i];
        if (mark->intent > mark->done && !may_wait(run, mark)) {
            mark->done = mark->intent;
            mark->done_hash = mark->intent_hash;
        }
        open = open || mark->intent > mark->done;
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
        bool known = entry->verdict == TN_GATHER_KNOWN;
        any = any || entry->verdict == TN_GATHER_REFUSED;
        if (!known && entry->verdict != TN_GATHER_NEW) {
            continue;
        }
        struct tn_gather_mark *mark = tn_gather_mark_of(marks, entry->item.gateway);
        TN_CHECK(mark != NULL); /* it had one when it was looked at */
        any = any || !known || entry->item.id > mark->done;
        if (known && entry->item.id > mark->done) {
            mark->done = entry->item.id;
            mark->done_hash = entry->hash;
        }
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
    g->marks.after = open ? g->marks.after : run->newest;
    return tn_gather_marks_write(&g->marks, g->spec.table.name, g->spec.worker, err);
}

/* All that was begun is in the table, and gone from the inbox. */
static void note_done(struct tn_gather_run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct tn_gather_entry *entry = &run->entries[i];
        struct tn_gather_mark *mark =
            entry->verdict == TN_GATHER_NEW
                ? tn_gather_mark_of(&run->gather->marks, entry->item.gateway)
                : NULL;
        if (mark && entry->item.id > mark->done) {
            mark->done = entry->item.id;
            mark->done_hash = entry->hash;
        }
    }
}

/* ---- the snapshot ---- */

static tn_rc note_foreign(void *user, const struct tn_foreign *foreign, struct tn_worker *worker,
                          struct tn_err *err)
{
    (void)user;
    (void)worker;
    if (foreign->snapshot && !tn_name_begins(foreign->snapshot->commit_user, TN_GATHER_USER)) {
        return TN_OK;
    }
    return tn_err_set(err, TN_CONFLICT, 0, "another gather made snapshot %" PRId64, foreign->id);
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
                                  .foreign = note_foreign};
    rc = tn_commit(&spec, g->spec.worker, &made, err);
    run->result->snapshot_id = made.append_id;
    if (rc == TN_OK) {
        g->made = made.append_id;
        g->made_round = g->rounds;
    }
    return rc;
}

static bool goes(const struct tn_gather_entry *entry)
{
    return entry->verdict == TN_GATHER_KNOWN || entry->verdict == TN_GATHER_NEW;
}

/* What is gone must not come back behind the next marks. */
static tn_rc sync_gateways(struct tn_gather_run *run, struct tn_err *err)
{
    const struct tn_gather_spec *spec = &run->gather->spec;
    struct tn_arena *scratch = &spec->worker->arena;
    const char *last = "";
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < run->count; i++) {
        const char *gateway = run->entries[i].item.gateway;
        if (!goes(&run->entries[i]) || strcmp(gateway, last) == 0) {
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

static tn_rc remove_all(struct tn_gather_run *run, struct tn_err *err)
{
    const struct tn_gather_spec *spec = &run->gather->spec;
    struct tn_arena *scratch = &spec->worker->arena;
    size_t mark = tn_arena_mark(scratch);
    uint32_t count = 0;
    uint32_t known = 0;
    void *memory;
    tn_rc rc = tn_arena_need(scratch, (run->count + 1) * sizeof(struct tn_inbox_item *),
                             "entries that go", &memory, err);
    const struct tn_inbox_item **items = memory;
    for (uint32_t i = 0; rc == TN_OK && i < run->count; i++) {
        if (goes(&run->entries[i])) {
            items[count++] = &run->entries[i].item;
            known += run->entries[i].verdict == TN_GATHER_KNOWN;
        }
    }
    if (rc == TN_OK) {
        rc = tn_inbox_remove(spec->worker->io, spec->table.name, items, count, scratch, err);
    }
    tn_arena_reset(scratch, mark);
    run->result->known = rc == TN_OK ? known : 0;
    return rc == TN_OK ? sync_gateways(run, err) : rc;
}

/* ---- a round ---- */

static tn_rc work(struct tn_gather_run *run, struct tn_err *err)
{
    tn_rc rc = read_all(run, err);
    if (rc != TN_OK || run->inbox.count == 0) {
        return rc;
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
    if (rc == TN_OK) {
        rc = remove_all(run, err);
    }
    if (rc == TN_OK) {
        note_done(run);
    }
    return rc;
}

/* The next one begins where there was no room any more. */
static void note_turn(struct tn_gather_run *run)
{
    bool more = run->inbox.more && run->count > 0;
    (void)snprintf(run->gather->turn, sizeof run->gather->turn, "%s",
                   more ? run->entries[run->count - 1].item.gateway : "");
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
    if (rc != TN_OK) { /* nobody knows what of it was done: the marks are not what they say */
        gather->marks.read = false;
    }
    tn_arena_reset(scratch, scratch_mark);
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
    tn_rc rc = tn_gather_marks_init(&gather->marks, spec->arena, err);
    return rc == TN_OK
               ? tn_entry_plan(tn_bytes_of(tn_entry_avro_schema), spec->arena, &gather->plan, err)
               : rc;
}
