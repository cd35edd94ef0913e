#include "upload/delta_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "file/names.h"

static int64_t now_ms(struct tn_delta *d)
{
    return d->worker->clock->vtable->now_ms(d->worker->clock);
}

static int64_t now_ns(struct tn_delta *d)
{
    return d->worker->clock->vtable->monotonic_ns(d->worker->clock);
}

/* ---- is it the same table? ---- */

tn_rc tn_delta_diverged(const struct tn_delta *d, const char *path, struct tn_err *err)
{
    return tn_err_set(err, TN_CONFLICT, 0,
                      "%s: %s has other content there: it is another table, or another history of "
                      "this one; nothing is sent",
                      d->target->name, path);
}

struct met {
    bool there;
    bool hidden;             /* nobody says whether it is */
    struct tn_hash_128 hash; /* of the target's bytes */
};

/* CONFLICT when both sides have the file and it isn't the same. */
static tn_rc compare(struct tn_delta *d, const char *path, size_t size_max, struct met *met,
                     struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes ours;
    struct tn_bytes theirs;
    *met = (struct met){0};
    if (!path) {
        return tn_delta_no_room(err);
    }
    tn_rc rc = d->target->vtable->read(d->target, path, size_max, arena, &theirs, err);
    if (rc != TN_OK) {
        met->hidden = tn_target_is_hidden(rc, err);
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    met->there = true;
    met->hash = tn_hash_128(theirs);
    rc = tn_io_read_all(d->worker->io, path, size_max, arena, &ours, err);
    if (rc == TN_OK && !tn_bytes_equal(ours, theirs)) {
        rc = tn_delta_diverged(d, path, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc compare_numbered(struct tn_delta *d, const char *dir, const char *prefix, int64_t id,
                              size_t size_max, struct met *met, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = compare(d, tn_name_numbered(arena, d->root, dir, prefix, id), size_max, met, err);
    tn_arena_reset(arena, mark);
    return rc;
}

/* One that is there is the newest so far. */
static tn_rc meet_snapshot(struct tn_delta *d, int64_t id, struct met *met, struct tn_err *err)
{
    tn_rc rc =
        compare_numbered(d, TN_DIR_SNAPSHOT, "snapshot-", id, TN_SNAPSHOT_SIZE_MAX, met, err);
    met->there = rc == TN_OK && met->there;
    if (met->there) {
        d->ledger.have = id;
        d->ledger.hash = met->hash;
    }
    return rc;
}

/* From `id` to the first that isn't there. */
static tn_rc walk_up(struct tn_delta *d, int64_t id, struct tn_err *err)
{
    struct met met = {.there = true};
    tn_rc rc = TN_OK;
    for (; rc == TN_OK && met.there && id <= d->source_last + 1; id++) {
        rc = meet_snapshot(d, id, &met, err);
    }
    return rc;
}

static tn_rc check_ahead(struct tn_delta *d, struct tn_err *err)
{
    return d->ledger.have <= d->source_last
               ? TN_OK
               : tn_err_set(err, TN_CONFLICT, 0,
                            "%s has snapshot %" PRId64 ", the newest here is %" PRId64
                            ": somebody commits there, or this table was made anew; nothing is "
                            "sent",
                            d->target->name, d->ledger.have, d->source_last);
}

/* Whether the newest snapshot there is the one that is here. One that has expired here says
 * nothing: the table may have been made anew. */
static bool same_history(struct tn_delta *d)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_bytes text;
    struct tn_err ignored;
    if (d->ledger.have == 0 || d->ledger.have > d->source_last) {
        return d->ledger.have == 0;
    }
    const char *path =
        tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", d->ledger.have);
    tn_rc rc =
        path ? tn_io_read_all(d->worker->io, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, &ignored)
             : TN_AGAIN;
    struct tn_hash_128 hash = {0};
    if (rc == TN_OK) {
        hash = tn_hash_128(text);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_OK && tn_hash_128_equal(hash, d->ledger.hash);
}

/* ---- without a ledger ---- */

struct largest {
    int64_t number;
};

static tn_rc note_larger(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct largest *largest = user;
    int64_t number = is_dir ? 0 : tn_name_number(name, "snapshot-");
    largest->number = number > largest->number ? number : largest->number;
    return TN_OK;
}

/* Who may not list looks where the mirror begins, or would begin: a sync was cut before its first
 * LATEST, or somebody has removed that. */
static tn_rc look_for_first(struct tn_delta *d, struct tn_err *err)
{
    struct tn_delta_hint earliest;
    tn_rc rc = tn_delta_read_hint(d, "EARLIEST", &earliest, err);
    return rc == TN_OK ? walk_up(d, earliest.id > 0 ? earliest.id : d->source_first, err) : rc;
}

static tn_rc list_newest(struct tn_delta *d, struct tn_err *err)
{
    struct largest largest = {0};
    struct met met;
    const char *dir = tn_name_in(&d->worker->arena, d->root, TN_DIR_SNAPSHOT, "");
    tn_rc rc = dir ? d->target->vtable->list(d->target, dir, note_larger, &largest, err)
                   : tn_delta_no_room(err);
    if (rc == TN_OK && largest.number > 0) {
        rc = meet_snapshot(d, largest.number, &met, err);
    }
    if (rc == TN_IO && err->os == EACCES) {
        return look_for_first(d, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* A hint may lag, so names behind it count; one that names nothing is wrong. */
static tn_rc find_newest(struct tn_delta *d, int64_t said, struct tn_err *err)
{
    struct met met = {0};
    tn_rc rc = said > 0 ? meet_snapshot(d, said, &met, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    return met.there ? walk_up(d, said + 1, err) : list_newest(d, err);
}

/* They go in the order of their ids, so those below one that is there are. */
static tn_rc meet_schemas(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int64_t id = 0; rc == TN_OK && id <= d->schema_last; id++) {
        struct met met;
        rc = compare_numbered(d, TN_DIR_SCHEMA, "schema-", id, TN_SCHEMA_SIZE_MAX, &met, err);
        d->ledger.schema = rc == TN_OK && met.there ? id : d->ledger.schema;
    }
    return rc;
}

static tn_rc is_at_target(struct tn_delta *d, int64_t id, bool *there, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    uint64_t size;
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = path ? d->target->vtable->stat(d->target, path, &size, err) : tn_delta_no_room(err);
    tn_arena_reset(arena, mark);
    *there = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* LATEST may lag on the other side of a gap, where EARLIEST says what is newer. */
static tn_rc look_behind_gap(struct tn_delta *d, const struct tn_delta_hint *earliest,
                             struct met *met, struct tn_err *err)
{
    tn_rc rc = earliest->id > d->ledger.have ? meet_snapshot(d, earliest->id, met, err) : TN_OK;
    return rc == TN_OK && met->there ? walk_up(d, earliest->id + 1, err) : rc;
}

/* EARLIEST is written right behind a snapshot that follows a gap, so it lags only when that one is
 * the newest. Without a hint it stands where the unbroken row of ids begins. */
static tn_rc set_earliest(struct tn_delta *d, const struct tn_delta_hint *said, struct tn_err *err)
{
    int64_t first = d->ledger.have;
    bool there = true;
    tn_rc rc = TN_OK;
    if (said->id == d->ledger.have) {
        return rc;
    }
    bool right = said->id > 0 && said->id < d->ledger.have;
    while (rc == TN_OK && there && first > 1) {
        rc = is_at_target(d, first - 1, &there, err);
        if (right && there) {
            return rc;
        }
        first -= there;
    }
    d->first_due = first;
    d->first_hidden = said->hidden;
    if (right) {
        tn_delta_note_first(d, first, said->id);
    }
    return rc;
}

/* One that names what may be there, and is hidden, stays: it may stand behind a gap. */
static tn_rc meet_earliest(struct tn_delta *d, struct tn_err *err)
{
    struct tn_delta_hint said;
    struct met met = {0};
    tn_rc rc = tn_delta_read_hint(d, "EARLIEST", &said, err);
    if (rc == TN_OK) {
        rc = look_behind_gap(d, &said, &met, err);
    }
    return rc == TN_OK && !met.hidden ? set_earliest(d, &said, err) : rc;
}

/* What there is of snapshots and hints. What was `sending` when a sync was cut may stand behind a
 * gap that no hint has passed. */
static tn_rc discover_snapshots(struct tn_delta *d, int64_t sending, struct tn_err *err)
{
    struct tn_delta_hint latest = d->latest;
    tn_rc rc = d->latest_asked ? TN_OK : tn_delta_read_hint(d, "LATEST", &latest, err);
    d->latest_asked = false; /* it is true once */
    d->resume = latest.id > 0 || !d->unowned;
    if (rc == TN_OK && d->resume) {
        rc = find_newest(d, latest.id, err);
    }
    if (rc == TN_OK && d->resume && sending > d->ledger.have) {
        rc = walk_up(d, sending, err);
    }
    if (rc == TN_OK && d->ledger.have > 0) {
        rc = meet_earliest(d, err);
    }
    d->latest_due = d->ledger.have > 0 && latest.id != d->ledger.have;
    return rc;
}

/* Before any of it is written down: who was cut behind a publish or a swap, or got an error from
 * it, may have left a name that a power cut there still takes back. */
static tn_rc make_sure(struct tn_delta *d, struct tn_err *err)
{
    return d->spec->dry_run ? TN_OK : d->target->vtable->settle(d->target, err);
}

/* Of a ledger that isn't right any more it remains what was being sent, and that something is to go
 * there. */
static tn_rc discover(struct tn_delta *d, struct tn_err *err)
{
    int64_t sending = d->ledger.sending;
    d->ledger.have = 0;
    d->ledger.schema = -1;
    d->ledger.sending = 0;
    d->ledger.tags_known = false;
    d->ledger.first = 0;
    d->ledger.wait_ms = 0;
    d->ledger.overwrite_known = false;
    d->ledger.overwrite_next = 0;
    d->marked = false;
    d->dirty = true;
    tn_rc rc = discover_snapshots(d, sending, err);
    if (rc == TN_OK) {
        rc = check_ahead(d, err);
    }
    if (rc == TN_OK && d->ledger.have > 0) {
        rc = meet_schemas(d, err);
    }
    return rc == TN_OK ? make_sure(d, err) : rc;
}

/* ---- with one ---- */

/* A sync was cut: what it published since the ledger was written. Where there is nothing of that it
 * may have expired there, together with what the ledger says. */
static tn_rc catch_up(struct tn_delta *d, struct tn_err *err)
{
    int64_t had = d->ledger.have;
    int64_t sending = d->ledger.sending;
    bool there = true;
    tn_rc rc = walk_up(d, sending, err);
    if (rc == TN_OK && had > 0 && d->ledger.have == had) {
        rc = is_at_target(d, had, &there, err);
    }
    if (rc == TN_OK && !there) {
        return discover(d, err);
    }
    if (rc == TN_OK) {
        rc = check_ahead(d, err);
    }
    if (d->ledger.have != had) { /* what they are isn't known here */
        d->ledger.overwrite_known = false;
        d->ledger.overwrite_next = 0;
    }
    if (d->ledger.have >= sending && (had == 0 || had != sending - 1)) {
        tn_delta_note_first(d, sending, had);
        d->first_due = sending;
        d->first_hidden = false;
    }
    d->resume = true;
    d->dirty = true;
    d->latest_due = true;
    return rc;
}

/* Who else has a ledger of this mirror (a daemon, and who calls `sync` by hand) may be further, and
 * what this one says is there may have expired since. */
static tn_rc go_on(struct tn_delta *d, struct tn_err *err)
{
    bool there = true;
    bool news = d->ledger.have > 0 && d->source_last > d->ledger.have;
    tn_rc rc = news ? is_at_target(d, d->ledger.have, &there, err) : TN_OK;
    return rc == TN_OK && !there ? discover(d, err) : rc;
}

static tn_rc load(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = d->lake ? tn_ledger_read(d->worker->io, d->table, d->lake, &d->worker->arena,
                                        &d->ledger, err)
                       : TN_ABSENT;
    d->known = rc == TN_OK;
    if (d->known && d->ledger.sending > 0) {
        d->marked = true;
        d->marked_ns = now_ns(d);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* Somebody may have taken the mirror over: with nothing to send that is no hurry. */
static bool nothing_to_do(struct tn_delta *d)
{
    return d->ledger.sending == 0 && d->ledger.have == d->source_last &&
           d->ledger.schema >= d->schema_last && tn_delta_tags_stand(d) &&
           !tn_delta_is_hour_over(d, d->ledger.checked_ms) && same_history(d) &&
           !tn_delta_keep_is_due(d);
}

/* ---- whose it is ---- */

static bool is_ours(const struct tn_delta *d, const struct tn_owner *owner)
{
    if (d->known) {
        return owner->generation == d->ledger.owner.generation &&
               strcmp(owner->writer, d->ledger.owner.writer) == 0;
    }
    return strcmp(owner->writer, d->writer) == 0;
}

static bool is_by(const struct tn_snapshot *snapshot, const char *writer)
{
    const struct tn_json_map *map = &snapshot->properties;
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].key, "tarn.writer") == 0) {
            return strcmp(map->pairs[i].value, writer) == 0;
        }
    }
    return false;
}

/* The writer's id is lost with the ledger when somebody removes what lies beside the table. That
 * the owner has written this table tells it from one that was brought back elsewhere, which writes
 * by an id of its own. */
static bool wrote_this(struct tn_delta *d, const char *writer)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_err ignored;
    bool found = strcmp(writer, TN_DELTA_WRITER_UNKNOWN) == 0;
    for (int64_t id = d->source_last; !found && id > 0 && id >= d->source_first; id--) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(arena);
        found = tn_snapshot_read(d->worker->io, d->root, id, arena, &snapshot, &ignored) == TN_OK &&
                is_by(&snapshot, writer);
        tn_arena_reset(arena, mark);
    }
    return found;
}

static tn_rc ask_owner(struct tn_delta *d, struct tn_err *err)
{
    struct tn_owner owner;
    tn_rc rc = tn_owner_read(d->target, d->table, &d->worker->arena, &owner, err);
    d->unowned = rc == TN_ABSENT;
    d->hidden = tn_target_is_hidden(rc, err);
    if (d->known || d->owner_asked) { /* it was there */
        rc = tn_target_if_hidden(rc, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    /* another mirror where this one was: whoever named it so has mixed up two */
    d->known = d->known && strcmp(owner.mirror, d->ledger.owner.mirror) == 0;
    d->heir = !is_ours(d, &owner);
    if (d->heir && (d->known || !wrote_this(d, owner.writer))) {
        return tn_owner_taken(d->target, &owner, err);
    }
    d->ledger.owner = owner;
    d->ledger.checked_ms = now_ms(d);
    d->owner_ns = now_ns(d);
    d->owner_asked = true;
    d->dirty = true;
    return TN_OK;
}

tn_rc tn_delta_still_ours(struct tn_delta *d, struct tn_err *err)
{
    if (d->owner_asked && now_ns(d) - d->owner_ns < TN_DELTA_MINUTE_NS) {
        return TN_OK;
    }
    tn_rc rc = ask_owner(d, err);
    return rc == TN_ABSENT
               ? tn_err_set(err, TN_CONFLICT, 0,
                            "%s: its owner's file is gone: somebody empties it", d->target->name)
               : rc;
}

/* Of two who meet an empty place one gets CONFLICT, and says whose it is now. */
static tn_rc make_owner(struct tn_delta *d, struct tn_err *err)
{
    bool hidden = d->hidden;
    struct tn_owner *owner = &d->ledger.owner;
    owner->generation = owner->generation > 0 ? owner->generation : 1;
    owner->since_ms = now_ms(d);
    (void)snprintf(owner->writer, sizeof owner->writer, "%s", d->writer);
    tn_clock_uuid(d->worker->clock, owner->mirror);
    tn_rc rc = tn_owner_make(d->target, d->table, owner, &d->worker->arena, err);
    if (rc == TN_CONFLICT && d->supposed) { /* it is asked for now */
        return rc;
    }
    if (rc == TN_CONFLICT) {
        rc = tn_target_if_hidden(ask_owner(d, err), err);
        return rc != TN_OK ? rc
               : hidden    ? tn_delta_shown_late(d, "its owner's file", err)
                           : tn_owner_taken(d->target, owner, err);
    }
    d->unowned = false;
    d->supposed = false;
    d->ledger.tags_known = true; /* nobody's tags came from here */
    d->ledger.tags = (struct tn_hash_128){0};
    d->ledger.tags_next = 0;
    d->ledger.denied_ms = 0;
    d->ledger.overwrite_known = d->ledger.have == 0;
    d->ledger.overwrite = 0;
    d->ledger.overwrite_next = 0;
    d->owner_asked = rc == TN_OK;
    d->owner_ns = now_ns(d);
    d->ledger.checked_ms = owner->since_ms;
    return rc;
}

/* Who else believes that it is the owner hears of it. */
static tn_rc follow_owner(struct tn_delta *d, struct tn_err *err)
{
    struct tn_owner next = {.since_ms = now_ms(d)};
    memcpy(next.writer, d->writer, sizeof next.writer);
    tn_rc rc = tn_owner_raise(d->target, d->table, &d->ledger.owner, &next, &d->worker->arena, err);
    if (rc == TN_OK) {
        d->ledger.owner = next;
        d->heir = false;
    }
    return rc;
}

/* ---- */

/* The name of the writer's id is durable with its first commit, and a sync beside may be earlier:
 * behind a power cut another id would not be the owner. */
static tn_rc settle_writer(struct tn_delta *d, struct tn_err *err)
{
    static const char *const folders[] = {".tarn/"};
    struct tn_io *io = d->worker->io;
    return strcmp(d->writer, TN_DELTA_WRITER_UNKNOWN) == 0 ? TN_OK
                                                           : io->vtable->sync(io, folders, 1, err);
}

static tn_rc own(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = settle_writer(d, err);
    if (rc == TN_OK) {
        rc = d->unowned ? make_owner(d, err) : follow_owner(d, err);
    }
    return rc;
}

/* Nothing of it belongs to another now. */
static tn_rc put_right(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = d->unowned || d->heir ? own(d, err) : TN_OK;
    d->known = rc == TN_OK;
    if (rc == TN_OK && d->first_due > 0) {
        rc = d->first_hidden ? tn_delta_make_hint(d, "EARLIEST", d->first_due, err)
                             : tn_delta_write_hint(d, "EARLIEST", d->first_due, err);
        d->first_due = rc == TN_OK ? 0 : d->first_due;
    }
    return rc;
}

/* Of a place that nothing is known of LATEST is asked for first. One that is hidden is none yet, or
 * a first sync was cut; who makes the owner, on the condition that there is none, is told which. So
 * a new mirror costs one refusal where the store hides what it lacks. A store that says what it
 * lacks is asked for the owner, too: there the condition guards against a race only, as not every
 * such store keeps to it. */
static tn_rc ask_whose(struct tn_delta *d, struct tn_err *err)
{
    if (d->owner_asked) {
        return tn_delta_still_ours(d, err);
    }
    d->supposed = d->latest_asked = false;
    if (d->known || d->spec->dry_run) {
        return ask_owner(d, err);
    }
    d->target->hidden_will_do = true;
    tn_rc rc = tn_delta_read_hint(d, "LATEST", &d->latest, err);
    d->target->hidden_will_do = false;
    d->latest_asked = rc == TN_OK;
    if (rc != TN_OK || !d->latest.hidden) {
        return rc == TN_OK ? ask_owner(d, err) : rc;
    }
    d->unowned = d->hidden = d->supposed = true;
    return TN_OK;
}

static tn_rc discover_and_own(struct tn_delta *d, struct tn_err *err)
{
    d->known = false;
    tn_rc rc = discover(d, err);
    return rc == TN_OK && !d->spec->dry_run ? put_right(d, err) : rc;
}

static tn_rc meet_unknown(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = discover_and_own(d, err);
    if (rc != TN_CONFLICT || !d->supposed) {
        return rc;
    }
    d->supposed = false;
    rc = tn_target_if_hidden(ask_owner(d, err), err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_IO, 0, "%s: its owner's file comes and goes", d->target->name);
    }
    return rc == TN_OK ? discover_and_own(d, err) : rc;
}

static tn_rc meet(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = ask_whose(d, err);
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    if (!d->known || d->unowned || !same_history(d)) {
        return meet_unknown(d, err);
    }
    rc = d->ledger.sending > 0 ? catch_up(d, err) : go_on(d, err);
    return rc == TN_OK && !d->spec->dry_run ? put_right(d, err) : rc;
}

tn_rc tn_delta_meet(struct tn_delta *d, struct tn_err *err)
{
    if (!d->target) {
        d->ledger = (struct tn_ledger){.schema = -1};
        return TN_OK;
    }
    tn_rc rc = d->known ? TN_OK : load(d, err);
    d->quiet = rc == TN_OK && d->known && nothing_to_do(d);
    return rc == TN_OK && !d->quiet ? meet(d, err) : rc;
}
