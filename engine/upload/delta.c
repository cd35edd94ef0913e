#include "upload/delta.h"

#include <inttypes.h>

#include "commit/live.h"
#include "commit/set.h"
#include "file/names.h"
#include "file/schemas.h"

enum {
    COPY_SIZE = 64 * 1024,
    RESTARTS_MAX = 8,      /* expiry would have to win that often, each time over a full list */
    COUNTED_MAX = 4096,    /* files of a dry run that are told apart; beyond, some count twice */
    HINT_SIZE_MAX = 64,    /* as in commit/snapshot */
    CONSUMER_SIZE_MAX = 64 /* of the text we write */
};

struct delta {
    const struct tn_delta_spec *spec;
    struct tn_worker *worker;
    struct tn_delta_result *result;
    struct tn_target *target;
    const char *root;
    unsigned char *copy;   /* COPY_SIZE */
    struct tn_set counted; /* names of a dry run */
    struct tn_schemas schemas;
    const struct tn_schema *schema; /* of the snapshot that is being sent */
    struct tn_options options;
    int64_t source_first; /* ids; 0: none */
    int64_t source_last;
    int64_t schema_last;
    int64_t schema_next; /* those below are there */
    int64_t have;        /* newest in the target */
    int64_t at;          /* being sent */
    bool again;          /* expiry took what was being sent */
};

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "sync: no room for a path");
}

static int64_t size_or_unknown(struct tn_json_i64 size)
{
    return size.present ? size.value : -1;
}

/* ---- what is there ---- */

struct largest {
    const char *prefix;
    int64_t number; /* -1: none */
};

static tn_rc note_larger(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct largest *largest = user;
    int64_t number = is_dir ? -1 : tn_name_number(name, largest->prefix);
    largest->number = number > largest->number ? number : largest->number;
    return TN_OK;
}

static tn_rc find_schemas(struct delta *d, struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    struct largest largest = {"schema-", -1};
    const char *dir = tn_name_in(&d->worker->arena, d->root, TN_DIR_SCHEMA, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, note_larger, &largest, err) : no_room(err);
    if (rc == TN_ABSENT || (rc == TN_OK && largest.number < 0)) {
        return tn_err_set(err, TN_ABSENT, 0, "there is no such table");
    }
    d->schema_last = largest.number;
    return rc;
}

static tn_rc find_source(struct delta *d, struct tn_err *err)
{
    struct tn_worker *worker = d->worker;
    tn_rc rc = tn_snapshot_latest(worker->io, d->root, &worker->arena, &d->source_last, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(worker->io, d->root, &worker->arena, &d->source_first, err);
    }
    if (rc == TN_ABSENT) { /* a table without snapshots: its schemas travel */
        d->source_first = 1;
        d->source_last = 0;
        rc = TN_OK;
    }
    return rc;
}

/* The target's hints are for others: the names in its folder count. The newest may have got its
 * name just before a kill; to be asked for puts it under the next barrier. */
static tn_rc find_target(struct delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct largest largest = {"snapshot-", 0};
    const char *dir = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, "");
    tn_rc rc = TN_ABSENT;
    d->have = 0;
    if (!dir) {
        return no_room(err);
    }
    if (d->target) {
        rc = d->target->vtable->list(d->target, dir, note_larger, &largest, err);
    }
    if (rc == TN_OK && largest.number > 0) {
        uint64_t size;
        const char *path =
            tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", largest.number);
        rc = path ? d->target->vtable->stat(d->target, path, &size, err) : no_room(err);
        d->have = rc == TN_OK ? largest.number : 0;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc find_at_target(struct delta *d, const char *path, uint64_t *size, struct tn_err *err)
{
    return d->target ? d->target->vtable->stat(d->target, path, size, err) : TN_ABSENT;
}

/* ---- copying: ABSENT means that a file of the source is gone ---- */

static tn_rc copy_bytes(struct delta *d, int file, const char *path, uint64_t size,
                        struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    struct tn_target *target = d->target;
    uint64_t at = 0;
    tn_rc rc = TN_OK;
    while (rc == TN_OK && at < size) {
        size_t want = size - at < COPY_SIZE ? (size_t)(size - at) : COPY_SIZE;
        size_t got;
        rc = io->vtable->read(io, file, at, d->copy, want, &got, err);
        if (rc == TN_OK && got < want) {
            rc = tn_err_set(err, TN_CORRUPT, 0, "%s: %" PRIu64 " bytes, it had %" PRIu64, path,
                            at + got, size);
        }
        if (rc == TN_OK) {
            rc = target->vtable->append(target, (struct tn_bytes){d->copy, got}, err);
        }
        at += want;
    }
    return rc;
}

static tn_rc send_file(struct delta *d, const char *path, struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    struct tn_target *target = d->target;
    int file;
    uint64_t size;
    tn_rc rc = io->vtable->open(io, path, &file, &size, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = target->vtable->begin(target, path, size, err);
    if (rc == TN_OK) {
        rc = copy_bytes(d, file, path, size, err);
        if (rc == TN_OK) {
            rc = target->vtable->finish(target, err);
        } else {
            target->vtable->abort(target);
        }
    }
    io->vtable->close(io, file);
    return rc;
}

/* A dry run comes across what it didn't send again. */
static bool counted_before(struct delta *d, const char *path)
{
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(path));
    if (tn_set_has(&d->counted, hash)) {
        return true;
    }
    bool noted = tn_set_add(&d->counted, hash);
    (void)noted;
    return false;
}

static tn_rc count_or_send(struct delta *d, const char *path, uint64_t size, struct tn_err *err)
{
    if (d->spec->dry_run && counted_before(d, path)) {
        return TN_OK;
    }
    tn_rc rc = d->spec->dry_run ? TN_OK : send_file(d, path, err);
    if (rc == TN_OK) {
        d->result->files++;
        d->result->bytes += size;
    }
    return rc;
}

/* Sends a file that the target lacks. `expected` is what a list says of its size, or -1. */
static tn_rc bring(struct delta *d, const char *path, int64_t expected, struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    uint64_t size;
    uint64_t there;
    if (!path) {
        return no_room(err);
    }
    tn_rc rc = io->vtable->stat(io, path, &size, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (expected >= 0 && size != (uint64_t)expected) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: %" PRIu64 " bytes, not %" PRId64, path, size,
                          expected);
    }
    rc = find_at_target(d, path, &there, err);
    if (rc == TN_OK && there == size) {
        return TN_OK;
    }
    return rc == TN_OK || rc == TN_ABSENT ? count_or_send(d, path, size, err) : rc;
}

static tn_rc bring_in(struct delta *d, const char *dir, const char *name, int64_t expected,
                      struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    if (!name) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = bring(d, tn_name_in(arena, d->root, dir, name), expected, err);
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- data files ---- */

static tn_rc bring_data(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct delta *d = user;
    struct tn_arena *arena = &d->worker->arena;
    const struct tn_file_meta *meta = &entry->file;
    const char *dir;
    if (meta->external_path) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s lies outside the table, at %s",
                          meta->file_name, meta->external_path);
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
    return entry->kind == TN_ENTRY_ADD ? bring_data(user, entry, err) : TN_OK;
}

/* An OVERWRITE may bring back files of long ago (a rollback does). */
static tn_rc bring_files(struct delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    bool all = d->have != snapshot->id - 1 || strcmp(snapshot->commit_kind, "OVERWRITE") == 0;
    tn_rc rc = all ? tn_live_each(d->root, snapshot, d->schema, NULL, d->worker, bring_data, d, err)
                   : tn_list_each(d->root, snapshot->delta_manifest_list,
                                  size_or_unknown(snapshot->delta_manifest_list_size), NULL,
                                  d->worker, bring_added, d, err);
    if (rc == TN_OK && snapshot->changelog_manifest_list) {
        rc = tn_list_each(d->root, snapshot->changelog_manifest_list,
                          size_or_unknown(snapshot->changelog_manifest_list_size), NULL, d->worker,
                          bring_added, d, err);
    }
    return rc;
}

/* ---- metadata ---- */

struct list {
    const char *name;
    int64_t size;
};
enum { LIST_COUNT = 3 };

static void lists_of(const struct tn_snapshot *snapshot, struct list lists[LIST_COUNT])
{
    lists[0] = (struct list){snapshot->base_manifest_list,
                             size_or_unknown(snapshot->base_manifest_list_size)};
    lists[1] = (struct list){snapshot->delta_manifest_list,
                             size_or_unknown(snapshot->delta_manifest_list_size)};
    lists[2] = (struct list){snapshot->changelog_manifest_list,
                             size_or_unknown(snapshot->changelog_manifest_list_size)};
}

static tn_rc bring_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    return bring_in(user, TN_DIR_MANIFEST, meta->file_name, meta->file_size, err);
}

static tn_rc bring_metadata(struct delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct list lists[LIST_COUNT];
    tn_rc rc = TN_OK;
    lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < LIST_COUNT; i++) {
        if (lists[i].name) {
            rc = tn_list_each_meta(d->root, lists[i].name, lists[i].size, d->worker, bring_manifest,
                                   d, err);
        }
    }
    for (int i = 0; rc == TN_OK && i < LIST_COUNT; i++) {
        rc = bring_in(d, TN_DIR_MANIFEST, lists[i].name, lists[i].size, err);
    }
    return rc == TN_OK ? bring_in(d, TN_DIR_STATISTICS, snapshot->statistics, -1, err) : rc;
}

/* Versions that are gone at the source are needed by nothing. */
static tn_rc bring_schemas(struct delta *d, int64_t last, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_io *io = d->worker->io;
    tn_rc rc = TN_OK;
    for (int64_t id = d->schema_next; rc == TN_OK && id <= last; id++) {
        uint64_t size;
        size_t mark = tn_arena_mark(arena);
        const char *path = tn_name_numbered(arena, d->root, TN_DIR_SCHEMA, "schema-", id);
        rc = path ? io->vtable->stat(io, path, &size, err) : no_room(err);
        rc = rc == TN_OK ? bring(d, path, -1, err) : rc == TN_ABSENT ? TN_OK : rc;
        tn_arena_reset(arena, mark);
        d->schema_next = id + 1;
    }
    return rc;
}

/* ---- is it the same table? ---- */

static tn_rc diverged(const struct delta *d, const char *path, struct tn_err *err)
{
    return tn_err_set(err, TN_CONFLICT, 0,
                      "%s: %s has other content there: it is another table, or another history of "
                      "this one; nothing is sent",
                      d->target->name, path);
}

/* CONFLICT when both sides have the file and it isn't the same. */
static tn_rc compare(struct delta *d, const char *dir, const char *prefix, int64_t id,
                     size_t size_max, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes ours;
    struct tn_bytes theirs;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_numbered(arena, d->root, dir, prefix, id);
    tn_rc rc = path ? d->target->vtable->read(d->target, path, size_max, arena, &theirs, err)
                    : no_room(err);
    if (rc == TN_OK) {
        rc = tn_io_read_all(d->worker->io, path, size_max, arena, &ours, err);
    }
    if (rc == TN_OK && !tn_bytes_equal(ours, theirs)) {
        rc = diverged(d, path, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc check_same(struct delta *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (!d->target) {
        return TN_OK;
    }
    for (int64_t id = 0; rc == TN_OK && id <= d->schema_last; id++) {
        rc = compare(d, TN_DIR_SCHEMA, "schema-", id, TN_SCHEMA_SIZE_MAX, err);
    }
    if (rc == TN_OK && d->have > d->source_last) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s has snapshot %" PRId64 ", the newest here is %" PRId64
                          ": somebody commits there, or this table was made anew; nothing is sent",
                          d->target->name, d->have, d->source_last);
    }
    if (rc == TN_OK && d->have > 0) {
        rc = compare(d, TN_DIR_SNAPSHOT, "snapshot-", d->have, TN_SNAPSHOT_SIZE_MAX, err);
    }
    return rc;
}

/* ---- one snapshot ---- */

static tn_rc read_schema(struct delta *d, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    tn_schemas_init(&d->schemas, d->worker->io, d->root, arena);
    tn_rc rc = tn_schemas_load(&d->schemas, id, &d->schema, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_CORRUPT, 0, "schema-%" PRId64 " is missing", id);
    }
    return rc == TN_OK ? tn_options_read(d->schema, TN_OPTIONS_READ, arena, &d->options, err) : rc;
}

/* The name may be there although nobody said so: the outcome of a try before. */
static tn_rc publish(struct delta *d, int64_t id, const char *path, struct tn_bytes text,
                     struct tn_err *err)
{
    struct tn_target *target = d->target;
    tn_rc rc = target->vtable->publish(target, path, text, err);
    if (rc != TN_CONFLICT) {
        return rc;
    }
    rc = compare(d, TN_DIR_SNAPSHOT, "snapshot-", id, TN_SNAPSHOT_SIZE_MAX, err);
    return rc == TN_OK ? target->vtable->settle(target, err) : rc;
}

static tn_rc bring_reached(struct delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    if (snapshot->index_manifest) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "index files can't be sent yet: %s",
                          snapshot->index_manifest);
    }
    tn_rc rc = read_schema(d, snapshot->schema_id, err);
    if (rc == TN_OK) {
        rc = bring_files(d, snapshot, err);
    }
    if (rc == TN_OK) {
        rc = bring_metadata(d, snapshot, err);
    }
    return rc == TN_OK ? bring_schemas(d, snapshot->schema_id, err) : rc;
}

static tn_rc send_parts(struct delta *d, int64_t id, const char *path, struct tn_bytes text,
                        struct tn_err *err)
{
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_decode(text, &d->worker->arena, &snapshot, err);
    if (rc == TN_OK && snapshot.id != id) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "$.id: it says %" PRId64, snapshot.id);
    }
    if (rc == TN_OK) {
        rc = bring_reached(d, &snapshot, err);
    }
    if (rc == TN_OK && !d->spec->dry_run) {
        rc = d->target->vtable->settle(d->target, err);
        rc = rc == TN_OK ? publish(d, id, path, text, err) : rc;
    }
    return rc == TN_OK ? rc : tn_err_in(err, "snapshot %" PRId64, id);
}

/* An id that isn't there (any more) is passed over: what comes behind it is a first one. */
static tn_rc send_snapshot(struct delta *d, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = path ? tn_io_read_all(d->worker->io, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err)
                    : no_room(err);
    if (rc == TN_ABSENT) {
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc = send_parts(d, id, path, text, err);
    }
    if (rc == TN_OK) {
        d->have = id;
        d->result->files++;
        d->result->bytes += text.size;
        d->result->first_id = d->result->first_id > 0 ? d->result->first_id : id;
        d->result->last_id = id;
    }
    return rc;
}

/* ---- hints ---- */

static tn_rc write_number(struct delta *d, const char *name, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, name);
    const char *text = tn_arena_format(arena, "%" PRId64, id);
    return path && text ? d->target->vtable->replace(d->target, path, tn_bytes_of(text), err)
                        : no_room(err);
}

/* What a hint of the target says; 0 when it says nothing. */
static tn_rc read_number(struct delta *d, const char *name, int64_t *id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, name);
    *id = 0;
    if (!path) {
        return no_room(err);
    }
    tn_rc rc = d->target->vtable->read(d->target, path, HINT_SIZE_MAX, arena, &text, err);
    if (rc == TN_OK) {
        *id = tn_name_number((const char *)text.data, "");
    }
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

/* Where the unbroken row of ids that ends at `have` begins, as far as `floor`. */
static tn_rc find_tail(struct delta *d, int64_t floor, int64_t *first, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = TN_OK;
    for (*first = d->have; rc == TN_OK && *first > floor && *first > 1;) {
        uint64_t size;
        size_t mark = tn_arena_mark(arena);
        const char *path =
            tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", *first - 1);
        rc = path ? find_at_target(d, path, &size, err) : no_room(err);
        tn_arena_reset(arena, mark);
        *first -= rc == TN_OK;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* EARLIEST stands behind a gap, and is there at all. Ids below a right one are being expired. */
static tn_rc fix_earliest(struct delta *d, struct tn_err *err)
{
    int64_t said = 0;
    int64_t first = 0;
    tn_rc rc = read_number(d, "EARLIEST", &said, err);
    if (rc == TN_OK) {
        said = said > d->have ? 0 : said;
        rc = find_tail(d, said, &first, err);
    }
    return rc == TN_OK && first > said ? write_number(d, "EARLIEST", first, err) : rc;
}

static tn_rc write_hints(struct delta *d, struct tn_err *err)
{
    int64_t said = 0;
    if (d->have == 0) {
        return TN_OK;
    }
    tn_rc rc = fix_earliest(d, err);
    if (rc == TN_OK) {
        rc = read_number(d, "LATEST", &said, err);
    }
    return rc == TN_OK && said != d->have ? write_number(d, "LATEST", d->have, err) : rc;
}

/* ---- the mirror as a consumer of the source ---- */

static bool is_there(struct tn_io *io, const char *path, struct tn_bytes text,
                     struct tn_arena *arena)
{
    struct tn_err ignored;
    struct tn_bytes found;
    return tn_io_read_all(io, path, CONSUMER_SIZE_MAX, arena, &found, &ignored) == TN_OK &&
           tn_bytes_equal(found, text);
}

/* Synced before it gets its name: expiry stops at a consumer that it can't read. */
static tn_rc replace_synced(struct tn_io *io, const char *draft, const char *path,
                            struct tn_bytes text, struct tn_err *err)
{
    struct tn_err ignored;
    (void)io->vtable->unlink(io, draft, &ignored);
    tn_rc rc = tn_io_write_new(io, draft, text, err);
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &draft, 1, err);
    }
    return rc == TN_OK ? io->vtable->replace(io, draft, path, err) : rc;
}

static tn_rc write_consumer(struct delta *d, const char *name, int64_t next, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_io *io = d->worker->io;
    const char *dir = tn_name_in(arena, d->root, TN_DIR_CONSUMER, "");
    const char *path = tn_arena_format(arena, "%sconsumer-%s", dir ? dir : "", name);
    const char *draft = tn_arena_format(arena, "%s.consumer-%s.tmp", dir ? dir : "", name);
    const char *text = tn_arena_format(arena, "{\n  \"nextSnapshot\" : %" PRId64 "\n}", next);
    if (!dir || !path || !draft || !text) {
        return no_room(err);
    }
    if (is_there(io, path, tn_bytes_of(text), arena)) {
        return TN_OK;
    }
    tn_rc rc = io->vtable->make_dir(io, dir, err);
    return rc == TN_OK ? replace_synced(io, draft, path, tn_bytes_of(text), err) : rc;
}

/* The newest snapshot of the target stays at the source, and before the first sync all do. */
static tn_rc protect(struct delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    if (!d->spec->consumer || d->spec->dry_run || d->source_last == 0) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    int64_t next = d->have > d->source_first ? d->have : d->source_first;
    tn_rc rc = write_consumer(d, d->spec->consumer, next, err);
    tn_arena_reset(arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "consumer %s", d->spec->consumer);
}

/* ---- all of it ---- */

static tn_rc look(struct delta *d, struct tn_err *err)
{
    tn_rc rc = find_schemas(d, err);
    if (rc == TN_OK) {
        rc = find_source(d, err);
    }
    if (rc == TN_OK) {
        rc = find_target(d, err);
    }
    if (rc == TN_OK) {
        rc = check_same(d, err);
    }
    if (rc == TN_OK) {
        d->result->last_id = d->have;
    }
    return rc == TN_OK ? protect(d, err) : rc;
}

static tn_rc send_all(struct delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    int64_t first = d->have + 1 > d->source_first ? d->have + 1 : d->source_first;
    tn_rc rc = TN_OK;
    for (int64_t id = first; rc == TN_OK && id <= d->source_last; id++) {
        size_t mark = tn_arena_mark(arena);
        d->at = id;
        rc = send_snapshot(d, id, err);
        tn_arena_reset(arena, mark);
    }
    if (rc == TN_OK) {
        rc = bring_schemas(d, d->schema_last, err);
    }
    if (rc == TN_OK && !d->spec->dry_run) {
        rc = d->target->vtable->settle(d->target, err);
        rc = rc == TN_OK ? write_hints(d, err) : rc;
        rc = rc == TN_OK ? protect(d, err) : rc;
    }
    return rc;
}

/* A file of the source is gone: was it expired, or is the table damaged? */
static bool was_expired(struct delta *d)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_io *io = d->worker->io;
    struct tn_err ignored;
    int64_t first;
    uint64_t size;
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", d->at);
    return !path || io->vtable->stat(io, path, &size, &ignored) != TN_OK ||
           tn_snapshot_earliest(io, d->root, arena, &first, &ignored) != TN_OK || first > d->at;
}

static tn_rc run_once(struct delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    d->schema_next = 0;
    d->again = false;
    tn_rc rc = look(d, err);
    if (rc == TN_OK) {
        rc = send_all(d, err);
        d->again = rc == TN_ABSENT && was_expired(d);
        if (rc == TN_ABSENT && !d->again) {
            err->code = rc = TN_CORRUPT;
        }
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc init(struct delta *d, struct tn_err *err)
{
    void *memory;
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = tn_arena_need(arena, COPY_SIZE, "sync", &memory, err);
    d->copy = memory;
    if (rc == TN_OK && d->spec->dry_run) {
        rc = tn_set_init(&d->counted, COUNTED_MAX, arena, err);
    }
    return rc;
}

static tn_rc run(struct delta *d, struct tn_err *err)
{
    tn_rc rc = init(d, err);
    if (rc == TN_OK) {
        rc = run_once(d, err);
    }
    while (rc == TN_ABSENT && d->again && d->result->restarts < RESTARTS_MAX) {
        d->result->restarts++;
        rc = run_once(d, err);
    }
    return rc;
}

tn_rc tn_delta_sync(const struct tn_delta_spec *spec, struct tn_worker *worker,
                    struct tn_delta_result *result, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    void *memory;
    *result = (struct tn_delta_result){0};
    tn_rc rc = tn_arena_need(&worker->arena, sizeof(struct delta), "sync", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct delta *d = memory;
    *d = (struct delta){.spec = spec,
                        .worker = worker,
                        .result = result,
                        .target = spec->target,
                        .root = spec->root};
    rc = run(d, err);
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "sync %s", spec->root);
}
