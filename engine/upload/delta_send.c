#include "upload/delta_private.h"

#include <inttypes.h>

#include "file/names.h"

/* ---- one file: ABSENT means that it is gone at the source ---- */

/* A dry run comes across what it didn't send again. */
static bool counted_before(struct tn_delta *d, const char *path)
{
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(path));
    if (tn_set_has(&d->counted, hash)) {
        return true;
    }
    bool noted = tn_set_add(&d->counted, hash);
    (void)noted;
    return false;
}

bool tn_delta_is_over(const struct tn_delta *d)
{
    const struct tn_delta_spec *spec = d->spec;
    uint64_t asked = d->target ? tn_target_asked(&d->target->counts) : 0;
    return (spec->bytes_max > 0 && d->result->bytes >= spec->bytes_max) ||
           (spec->requests_max > 0 && asked >= spec->requests_max);
}

bool tn_delta_is_spent(const struct tn_delta *d)
{
    return d->result->files > 0 && tn_delta_is_over(d);
}

static tn_rc count_or_send(struct tn_delta *d, const char *path, uint64_t size, struct tn_err *err)
{
    if (d->spec->dry_run && counted_before(d, path)) {
        return TN_OK;
    }
    if (tn_delta_is_spent(d)) {
        d->halved = true;
        return tn_err_set(err, TN_CANCELED, 0, "as much as was allowed is sent");
    }
    tn_rc rc = d->spec->dry_run
                   ? TN_OK
                   : d->target->vtable->send(d->target, d->worker->io, path, size, err);
    if (rc == TN_OK) {
        d->sent++;
        d->result->files++;
        d->result->bytes += size;
    }
    return rc;
}

static tn_rc find_at_target(struct tn_delta *d, const char *path, uint64_t *size,
                            struct tn_err *err)
{
    return d->target ? d->target->vtable->stat(d->target, path, size, err) : TN_ABSENT;
}

/* Sends a file that the target lacks. `expected` is what a list says of its size, or -1. */
static tn_rc bring(struct tn_delta *d, const char *path, int64_t expected, struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    uint64_t size = (uint64_t)expected;
    uint64_t there;
    if (!path) {
        return tn_delta_no_room(err);
    }
    tn_rc rc = expected < 0 ? io->vtable->stat(io, path, &size, err) : TN_OK;
    if (rc != TN_OK) {
        return rc;
    }
    rc = d->ask ? find_at_target(d, path, &there, err) : TN_ABSENT;
    if (rc == TN_OK && there == size) {
        return TN_OK;
    }
    return rc == TN_OK || rc == TN_ABSENT ? count_or_send(d, path, size, err) : rc;
}

static tn_rc bring_in(struct tn_delta *d, const char *dir, const char *name, int64_t expected,
                      struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    if (!name || tn_delta_is_there(d, name)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = bring(d, tn_name_in(arena, d->root, dir, name), expected, err);
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- data files ---- */

static tn_rc lies_outside(const char *name, const char *where, struct tn_err *err)
{
    return tn_err_set(err, TN_UNSUPPORTED, 0, "%s lies outside the table, at %s", name, where);
}

static tn_rc bring_data(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_delta *d = user;
    struct tn_arena *arena = &d->worker->arena;
    const struct tn_file_meta *meta = &entry->file;
    const char *dir;
    if (meta->external_path) {
        return lies_outside(meta->file_name, meta->external_path, err);
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_bucket(arena, d->root, d->schema, &d->options, entry->partition,
                              entry->bucket, &dir, err);
    if (rc == TN_OK) {
        rc = bring(d, tn_arena_format(arena, "%s%s", dir, meta->file_name), meta->file_size, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < meta->extra_files.count; i++) {
        rc = bring(d, tn_arena_format(arena, "%s%s", dir, meta->extra_files.items[i]), -1, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc bring_added(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    return entry->kind == TN_ENTRY_ADD && !tn_delta_is_there(user, entry->file.file_name)
               ? bring_data(user, entry, err)
               : TN_OK;
}

static bool is_overwrite(const struct tn_snapshot *snapshot)
{
    return strcmp(snapshot->commit_kind, "OVERWRITE") == 0;
}

/* An OVERWRITE may bring back files of long ago (a rollback does). */
static tn_rc bring_files(struct tn_delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    bool all = d->ledger.have != snapshot->id - 1 || is_overwrite(snapshot);
    tn_rc rc = all ? tn_live_each(d->root, snapshot, d->schema, NULL, d->worker, bring_data, d, err)
                   : tn_list_each(d->root, snapshot->delta_manifest_list,
                                  tn_manifest_size(snapshot->delta_manifest_list_size), NULL,
                                  d->worker, bring_added, d, err);
    if (rc == TN_OK && snapshot->changelog_manifest_list) {
        rc = tn_list_each(d->root, snapshot->changelog_manifest_list,
                          tn_manifest_size(snapshot->changelog_manifest_list_size), NULL, d->worker,
                          bring_added, d, err);
    }
    return rc;
}

/* ---- index files: deletion vectors, and which keys a bucket has ---- */

static tn_rc bring_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    struct tn_delta *d = user;
    struct tn_arena *arena = &d->worker->arena;
    const char *dir;
    if (entry->kind != TN_ENTRY_ADD || tn_delta_is_there(d, entry->file_name)) {
        return TN_OK;
    }
    if (entry->external_path) {
        return lies_outside(entry->file_name, entry->external_path, err);
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_index(arena, d->root, d->schema, &d->options, entry->partition,
                             entry->bucket, &dir, err);
    if (rc == TN_OK) {
        rc = bring(d, tn_arena_format(arena, "%s%s", dir, entry->file_name), entry->file_size, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* An index manifest lists all that is live. One that the snapshot before has is there with all of
 * it. */
static tn_rc bring_indexes(struct tn_delta *d, const struct tn_snapshot *snapshot,
                           struct tn_err *err)
{
    const char *name = snapshot->index_manifest;
    if (!name || tn_delta_is_there(d, name)) {
        return TN_OK;
    }
    tn_rc rc = tn_index_each(d->root, name, d->worker, bring_index, d, err);
    return rc == TN_OK ? bring_in(d, TN_DIR_MANIFEST, name, -1, err) : rc;
}

/* ---- metadata ---- */

static tn_rc bring_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    return bring_in(user, TN_DIR_MANIFEST, meta->file_name, meta->file_size, err);
}

static tn_rc bring_metadata(struct tn_delta *d, const struct tn_snapshot *snapshot,
                            struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        if (lists[i].name) {
            rc = tn_list_each_meta(d->root, lists[i].name, lists[i].size, d->worker, bring_manifest,
                                   d, err);
        }
    }
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        rc = bring_in(d, TN_DIR_MANIFEST, lists[i].name, lists[i].size, err);
    }
    return rc == TN_OK ? bring_in(d, TN_DIR_STATISTICS, snapshot->statistics, -1, err) : rc;
}

static tn_rc publish_schema(struct tn_delta *d, const char *path, struct tn_err *err)
{
    struct tn_bytes text;
    if (!path) {
        return tn_delta_no_room(err);
    }
    tn_rc rc =
        tn_io_read_all(d->worker->io, path, TN_SCHEMA_SIZE_MAX, &d->worker->arena, &text, err);
    if (rc == TN_OK && !d->spec->dry_run) {
        rc = d->target->vtable->publish(d->target, path, text, err);
        rc = rc == TN_CONFLICT ? tn_delta_diverged(d, path, err) : rc;
    }
    if (rc == TN_OK) {
        d->result->files++;
        d->result->bytes += text.size;
    }
    return rc == TN_ABSENT ? TN_OK : rc; /* gone at the source: nothing needs it */
}

tn_rc tn_delta_bring_schemas(struct tn_delta *d, int64_t last, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = TN_OK;
    for (int64_t id = d->ledger.schema + 1; rc == TN_OK && id <= last; id++) {
        size_t mark = tn_arena_mark(arena);
        rc = publish_schema(d, tn_name_numbered(arena, d->root, TN_DIR_SCHEMA, "schema-", id), err);
        tn_arena_reset(arena, mark);
        d->ledger.schema = rc == TN_OK ? id : d->ledger.schema;
        d->dirty = true;
    }
    return rc;
}

/* ---- one snapshot ---- */

/* Cleaning of orphans takes what is a day old. */
#define AGE_MAX_MS (12 * 60 * 60 * INT64_C(1000))

enum { PASSES_MAX = 4 };

static tn_rc read_schema(struct tn_delta *d, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    tn_schemas_init(&d->schemas, d->worker->io, d->root, arena);
    tn_rc rc = tn_schemas_load(&d->schemas, id, &d->schema, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_CORRUPT, 0, "schema-%" PRId64 " is missing", id);
    }
    return rc == TN_OK ? tn_options_read_places(d->schema, arena, &d->options, err) : rc;
}

static tn_rc bring_reached(struct tn_delta *d, const struct tn_snapshot *snapshot,
                           struct tn_err *err)
{
    tn_rc rc = read_schema(d, snapshot->schema_id, err);
    if (rc == TN_OK) {
        rc = tn_delta_know(d, snapshot, err);
    }
    if (rc == TN_OK) {
        rc = bring_files(d, snapshot, err);
    }
    if (rc == TN_OK) {
        rc = bring_indexes(d, snapshot, err);
    }
    if (rc == TN_OK) {
        rc = bring_metadata(d, snapshot, err);
    }
    return rc == TN_OK ? tn_delta_bring_schemas(d, snapshot->schema_id, err) : rc;
}

/* Brings what is missing, up to the barrier. */
static tn_rc pass(struct tn_delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&d->worker->arena);
    d->sent = 0;
    tn_rc rc = bring_reached(d, snapshot, err);
    tn_arena_reset(&d->worker->arena, mark);
    return rc == TN_OK && !d->spec->dry_run ? d->target->vtable->settle(d->target, err) : rc;
}

tn_rc tn_delta_bring_tagged(struct tn_delta *d, const struct tn_snapshot *tagged,
                            struct tn_err *err)
{
    struct tn_snapshot rows = *tagged;
    rows.changelog_manifest_list = NULL; /* it went with the snapshot */
    d->ask = true;
    return pass(d, &rows, err);
}

static bool is_old(const struct tn_delta *d)
{
    int64_t age = d->worker->clock->vtable->now_ms(d->worker->clock) - d->ledger.since_ms;
    return age < 0 || age >= AGE_MAX_MS;
}

/* A link that is slow, or a sync that was cut long ago: what went first may be cleaned away by now.
 * A pass that finds all of it has just asked. */
static tn_rc bring_all(struct tn_delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    bool followed = d->ledger.have == snapshot->id - 1;
    d->ask = d->resume || (d->ledger.have > 0 && (!followed || is_overwrite(snapshot)));
    tn_rc rc = pass(d, snapshot, err);
    for (int i = 1; rc == TN_OK && !d->spec->dry_run && i < PASSES_MAX && is_old(d) &&
                    (!d->ask || d->sent > 0);
         i++) {
        d->ask = true;
        rc = pass(d, snapshot, err);
    }
    return rc;
}

/* Another one there with this id is another history. */
static tn_rc publish(struct tn_delta *d, const char *path, struct tn_bytes text, struct tn_err *err)
{
    tn_rc rc = tn_delta_still_ours(d, err);
    if (rc == TN_OK) {
        rc = d->target->vtable->publish(d->target, path, text, err);
        rc = rc == TN_CONFLICT ? tn_delta_diverged(d, path, err) : rc;
    }
    return rc;
}

static tn_rc send_parts(struct tn_delta *d, int64_t id, const char *path, struct tn_bytes text,
                        struct tn_err *err)
{
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_decode(text, &d->worker->arena, &snapshot, err);
    if (rc == TN_OK && snapshot.id != id) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "$.id: it says %" PRId64, snapshot.id);
    }
    if (rc == TN_OK) {
        rc = tn_delta_mark(d, id, err);
    }
    if (rc == TN_OK) {
        rc = bring_all(d, &snapshot, err);
    }
    if (rc == TN_OK && !d->spec->dry_run) {
        rc = publish(d, path, text, err);
    }
    if (rc == TN_OK && is_overwrite(&snapshot)) {
        d->ledger.overwrite = id;
        d->ledger.overwrite_known = true;
    }
    return rc == TN_OK ? rc : tn_err_in(err, "snapshot %" PRId64, id);
}

/* A streaming reader would wait for ever in front of a gap, so EARLIEST passes it at once. */
static tn_rc note_sent(struct tn_delta *d, int64_t id, struct tn_bytes text, struct tn_err *err)
{
    bool first = d->ledger.have == 0 || d->ledger.have != id - 1;
    if (first) {
        tn_delta_note_first(d, id, d->ledger.have);
    }
    d->ledger.have = id;
    d->ledger.hash = tn_hash_128(text);
    d->ledger.sending = id + 1;
    d->resume = false;
    d->dirty = true;
    d->latest_due = true;
    d->result->files++;
    d->result->bytes += text.size;
    d->result->first_id = d->result->first_id > 0 ? d->result->first_id : id;
    d->result->last_id = id;
    return first && !d->spec->dry_run ? tn_delta_write_hint(d, "EARLIEST", id, err) : TN_OK;
}

/* An id that isn't there (any more) is passed over: what comes behind it is a first one. */
tn_rc tn_delta_send_snapshot(struct tn_delta *d, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = path ? tn_io_read_all(d->worker->io, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err)
                    : tn_delta_no_room(err);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc = send_parts(d, id, path, text, err);
    }
    return rc == TN_OK ? note_sent(d, id, text, err) : rc;
}
