#include "changelog/tail.h"

#include <inttypes.h>
#include <strings.h>

#include "base/check.h"
#include "file/names.h"

enum tn_tail_source tn_tail_source_of(const struct tn_options *options)
{
    return options->changelog_producer == TN_CHANGELOG_NONE ? TN_TAIL_DELTA : TN_TAIL_CHANGELOG;
}

bool tn_tail_in_state(const void *user, const struct tn_entry *entry)
{
    const struct tn_options *options = user;
    switch (options->changelog_producer) {
    case TN_CHANGELOG_LOOKUP:
        return entry->file.level > 0;
    case TN_CHANGELOG_FULL_COMPACTION:
        return entry->file.level == options->num_levels - 1;
    case TN_CHANGELOG_NONE:
    case TN_CHANGELOG_INPUT:
        break;
    }
    return true;
}

static bool is_true(const struct tn_schema *schema, const char *option)
{
    const char *value = tn_schema_option(schema, option);
    return value && strcasecmp(value, "true") == 0;
}

/* Source: Paimon, CoreOptions.batchScanSkipLevel0. */
bool tn_tail_skips_level0(const struct tn_schema *schema, const struct tn_options *options)
{
    return schema->primary_keys.count > 0 && (options->merge_engine == TN_MERGE_FIRST_ROW ||
                                              is_true(schema, "deletion-vectors.enabled"));
}

tn_rc tn_tail_open(struct tn_tail *tail, const struct tn_tail_spec *spec, struct tn_arena *arena,
                   struct tn_worker *worker, struct tn_err *err)
{
    *tail = (struct tn_tail){.spec = *spec, .worker = worker};
    return tn_projection_init(&tail->projection, spec->scan, arena, err);
}

/* ---- which snapshots there are ---- */

static tn_rc read_changelog(struct tn_io *io, const char *root, int64_t id, struct tn_arena *arena,
                            struct tn_snapshot *snapshot, struct tn_err *err)
{
    const char *path = tn_name_numbered(arena, root, TN_DIR_CHANGELOG, "changelog-", id);
    return path ? tn_snapshot_read_path(io, path, arena, snapshot, err)
                : tn_err_set(err, TN_AGAIN, 0, "no room for a path");
}

/* Changelogs count when they lead up to the earliest snapshot: others are left from a time before.
 */
static tn_rc widen_by_changelogs(struct tn_io *io, const char *root, struct tn_arena *scratch,
                                 int64_t *earliest, struct tn_err *err)
{
    struct tn_changelog_range range = {0};
    uint64_t ignored;
    const char *last =
        tn_name_numbered(scratch, root, TN_DIR_CHANGELOG, "changelog-", *earliest - 1);
    if (!last) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    }
    tn_rc rc = io->vtable->stat(io, last, &ignored, err);
    if (rc == TN_OK) {
        rc = tn_changelog_range(io, root, scratch, &range, err);
    }
    if (rc == TN_OK && range.first < *earliest) {
        *earliest = range.first;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_tail_range(struct tn_io *io, const char *root, struct tn_arena *scratch, int64_t *earliest,
                    int64_t *latest, struct tn_err *err)
{
    int64_t first;
    int64_t last;
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = tn_snapshot_latest(io, root, scratch, &last, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(io, root, scratch, &first, err);
    }
    if (rc == TN_OK) {
        rc = widen_by_changelogs(io, root, scratch, &first, err);
    }
    tn_arena_reset(scratch, mark);
    if (rc == TN_OK) {
        *earliest = first;
        *latest = last;
    }
    return rc;
}

/* ---- a snapshot, or the changelog that stands for it ---- */

static tn_rc read_either(struct tn_tail *tail, int64_t id, struct tn_err *err)
{
    struct tn_io *io = tail->worker->io;
    const char *root = tail->spec.scan->root;
    struct tn_arena *arena = &tail->worker->arena;
    tn_rc rc = tn_snapshot_read(io, root, id, arena, &tail->snapshot, err);
    return rc == TN_ABSENT ? read_changelog(io, root, id, arena, &tail->snapshot, err) : rc;
}

/* A snapshot that isn't there has expired, is the next one, or can't be: the ids stand in a row.
 * One that should be there was made, or expired, while this looked: the caller looks once more. */
static tn_rc say_missing(struct tn_tail *tail, int64_t id, bool *again, struct tn_err *err)
{
    int64_t first = 1;
    int64_t last = 0;
    tn_rc rc = tn_tail_range(tail->worker->io, tail->spec.scan->root, &tail->worker->arena, &first,
                             &last, err);
    if (rc != TN_OK && rc != TN_ABSENT) {
        return rc;
    }
    if (id < first) {
        return tn_err_set(err, TN_INVALID, 0,
                          "snapshot %" PRId64 " has expired; the earliest is %" PRId64, id, first);
    }
    if (id > last + 1) {
        return tn_err_set(err, TN_INVALID, 0,
                          "snapshot %" PRId64 " is beyond the latest, %" PRId64
                          ": rolled back, or another table of that name",
                          id, last);
    }
    *again = id <= last;
    return *again ? tn_err_set(err, TN_CORRUPT, 0, "snapshot %" PRId64 " is missing", id)
                  : tn_err_set(err, TN_ABSENT, 0, "snapshot %" PRId64 " is not there yet", id);
}

static tn_rc find_snapshot(struct tn_tail *tail, int64_t id, struct tn_err *err)
{
    bool again = false;
    tn_rc rc = read_either(tail, id, err);
    if (rc == TN_ABSENT) {
        rc = say_missing(tail, id, &again, err);
    }
    if (again) {
        rc = read_either(tail, id, err);
        rc = rc == TN_ABSENT ? say_missing(tail, id, &again, err) : rc;
    }
    return rc;
}

static struct tn_list list_of(const struct tn_tail *tail)
{
    const struct tn_snapshot *snapshot = &tail->snapshot;
    struct tn_list lists[TN_LIST_COUNT]; /* base, delta, changelog */
    struct tn_list none = {0};
    tn_lists_of(snapshot, lists);
    if (tail->spec.source == TN_TAIL_CHANGELOG) {
        bool over = tail->spec.no_overwrites && strcmp(snapshot->commit_kind, "OVERWRITE") == 0;
        return over ? none : lists[2];
    }
    return strcmp(snapshot->commit_kind, "APPEND") == 0 ? lists[1] : none;
}

/* ---- files that go ---- */

/* True when nobody promises the snapshot's files any longer. */
static bool has_expired(struct tn_tail *tail)
{
    struct tn_err ignored;
    struct tn_arena *arena = &tail->worker->arena;
    size_t mark = tn_arena_mark(arena);
    int64_t id = tail->snapshot.id;
    int64_t first;
    int64_t last;
    uint64_t size;
    const char *root = tail->spec.scan->root;
    struct tn_io *io = tail->worker->io;
    const char *snapshot = tn_name_numbered(arena, root, TN_DIR_SNAPSHOT, "snapshot-", id);
    const char *changelog = tn_name_numbered(arena, root, TN_DIR_CHANGELOG, "changelog-", id);
    bool there = snapshot && changelog &&
                 (io->vtable->stat(io, snapshot, &size, &ignored) == TN_OK ||
                  io->vtable->stat(io, changelog, &size, &ignored) == TN_OK);
    bool below = tn_tail_range(io, root, arena, &first, &last, &ignored) == TN_OK && id < first;
    tn_arena_reset(arena, mark);
    return !there || below;
}

/* What a file that can't be opened means. */
static tn_rc say_file(struct tn_tail *tail, tn_rc rc, struct tn_err *err)
{
    if (rc == TN_ABSENT) {
        int64_t id = tail->snapshot.id;
        if (has_expired(tail)) {
            return tn_err_set(err, TN_IO, 0, "snapshot %" PRId64 " expired while it was read", id);
        }
        err->code = TN_CORRUPT;
        return tn_err_in(err, "snapshot %" PRId64, id);
    }
    return rc;
}

/* ---- readers, one above the other ---- */

static void close_file(struct tn_tail *tail)
{
    if (tail->file_open) {
        tn_iter_close(&tail->file.iter);
        tn_arena_reset(&tail->worker->arena, tail->file_mark);
        tail->file_open = false;
    }
}

static void close_manifest(struct tn_tail *tail)
{
    close_file(tail);
    if (tail->manifest_open) {
        tn_manifest_close(&tail->manifest);
        tn_arena_reset(&tail->worker->arena, tail->manifest_mark);
        tail->manifest_open = false;
    }
}

static tn_rc open_list(struct tn_tail *tail, struct tn_err *err)
{
    struct tn_list list = list_of(tail);
    if (!list.name) {
        return TN_OK;
    }
    const char *path =
        tn_name_in(&tail->worker->arena, tail->spec.scan->root, TN_DIR_MANIFEST, list.name);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    }
    tn_rc rc = tn_manifest_open(&tail->list, path, list.size, true, tail->worker, err);
    tail->list_open = rc == TN_OK;
    return rc == TN_OK ? rc : say_file(tail, rc, err);
}

/* ABSENT behind the list's last manifest. */
static tn_rc open_manifest(struct tn_tail *tail, struct tn_err *err)
{
    struct tn_arena *arena = &tail->worker->arena;
    struct tn_manifest_meta meta;
    tail->manifest_mark = tn_arena_mark(arena);
    tn_rc rc = tn_manifest_next_meta(&tail->list, arena, &meta, err);
    if (rc != TN_OK) {
        return rc;
    }
    const char *path = tn_name_in(arena, tail->spec.scan->root, TN_DIR_MANIFEST, meta.file_name);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    }
    rc = tn_manifest_open(&tail->manifest, path, meta.file_size, false, tail->worker, err);
    tail->manifest_open = rc == TN_OK;
    return rc == TN_OK ? rc : say_file(tail, rc, err);
}

static tn_rc open_file(struct tn_tail *tail, const struct tn_entry *entry, struct tn_err *err)
{
    const struct tn_scan_spec *scan = tail->spec.scan;
    const struct tn_file_meta *file = &entry->file;
    struct tn_arena *arena = &tail->worker->arena;
    const struct tn_schema *schema;
    const char *dir;
    tn_rc rc = tn_name_check_format(file->file_name, err);
    if (rc == TN_OK && file->external_path) {
        rc = tn_err_set(err, TN_UNSUPPORTED, 0, "%s lies outside the table", file->file_name);
    }
    if (rc == TN_OK) {
        rc = tn_err_named(err, tn_schemas_load(scan->schemas, file->schema_id, &schema, err));
    }
    if (rc == TN_OK) {
        rc = tn_name_bucket(arena, scan->root, scan->schema, scan->options, entry->partition,
                            entry->bucket, &dir, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    const char *path = tn_arena_format(arena, "%s%s", dir, file->file_name);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    }
    rc = tn_data_reader_open(&tail->file, path, file->file_size, file->level, schema,
                             &tail->projection.read, tail->worker, err);
    tail->file_open = rc == TN_OK;
    return rc == TN_OK ? rc : say_file(tail, rc, err);
}

static bool wanted(const struct tn_tail *tail, const struct tn_entry *entry)
{
    return entry->kind == TN_ENTRY_ADD && (!tail->spec.upper_only || entry->file.level > 0);
}

/* ABSENT behind the snapshot's last file. */
static tn_rc next_file(struct tn_tail *tail, struct tn_err *err)
{
    struct tn_arena *arena = &tail->worker->arena;
    while (!tail->file_open) {
        if (!tail->manifest_open) {
            tn_rc rc = tail->list_open ? open_manifest(tail, err) : TN_ABSENT;
            if (rc != TN_OK) {
                return rc;
            }
        }
        struct tn_entry entry;
        tail->file_mark = tn_arena_mark(arena);
        tn_rc rc = tn_manifest_next_entry(&tail->manifest, arena, &entry, err);
        if (rc == TN_ABSENT) {
            close_manifest(tail);
            continue;
        }
        if (rc == TN_OK && wanted(tail, &entry)) {
            rc = open_file(tail, &entry, err);
        }
        if (!tail->file_open) {
            tn_arena_reset(arena, tail->file_mark);
        }
        if (rc != TN_OK) {
            return rc;
        }
    }
    return TN_OK;
}

/* ---- rows ---- */

/* Followers that were promised overwrites must not miss them. Source: Paimon,
 * DataTableStreamScan.handleOverwriteSnapshot. */
static tn_rc check_overwrite(const struct tn_tail *tail, struct tn_err *err)
{
    const struct tn_schema *schema = tail->spec.scan->schema;
    const char *key = schema->primary_keys.count > 0 ? "streaming-read-overwrite"
                                                     : "streaming-read-append-overwrite";
    if (strcmp(tail->snapshot.commit_kind, "OVERWRITE") != 0 || tail->spec.no_overwrites ||
        !is_true(schema, key)) {
        return TN_OK;
    }
    return tn_err_set(err, TN_UNSUPPORTED, 0, "snapshot %" PRId64 ": %s is not supported yet",
                      tail->snapshot.id, key);
}

tn_rc tn_tail_begin(struct tn_tail *tail, int64_t id, struct tn_err *err)
{
    TN_CHECK(!tail->begun);
    tail->mark = tn_arena_mark(&tail->worker->arena);
    tail->begun = true;
    tn_rc rc = find_snapshot(tail, id, err);
    if (rc == TN_OK) {
        rc = check_overwrite(tail, err);
    }
    if (rc == TN_OK) {
        rc = open_list(tail, err);
    }
    if (rc != TN_OK) {
        tn_tail_end(tail);
    }
    return rc;
}

tn_rc tn_tail_next(struct tn_tail *tail, struct tn_kv *kv, struct tn_err *err)
{
    const struct tn_scan_spec *scan = tail->spec.scan;
    TN_CHECK(tail->begun);
    for (;;) {
        tn_rc rc = next_file(tail, err);
        if (rc != TN_OK) {
            return rc;
        }
        rc = tn_iter_next(&tail->file.iter, kv, err);
        if (rc == TN_ABSENT) {
            close_file(tail);
        } else if (rc != TN_OK) {
            return rc;
        } else {
            tail->rows_read++;
            if (!scan->predicate || tn_predicate_match(scan->predicate, &tail->projection.layout,
                                                       tail->projection.column_of, kv->row)) {
                return TN_OK;
            }
        }
    }
}

void tn_tail_end(struct tn_tail *tail)
{
    close_manifest(tail);
    if (tail->list_open) {
        tn_manifest_close(&tail->list);
        tail->list_open = false;
    }
    if (tail->begun) {
        tn_arena_reset(&tail->worker->arena, tail->mark);
        tail->begun = false;
    }
}
