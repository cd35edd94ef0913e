#include "commit/revert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commit/attempt.h"
#include "commit/base_list.h"
#include "commit/live.h"
#include "commit/publish.h"
#include "commit/set.h"
#include "file/names.h"

/* It lives in the worker's arena. */
struct revert {
    const struct tn_revert_spec *spec;
    struct tn_worker *worker;
    struct tn_revert_result *result;
    struct tn_snapshot old;
    struct tn_snapshot last;
    struct tn_snapshot next;
    struct tn_attempt files;
    struct tn_manifest_writer list; /* the delta list */
    struct tn_entry_writer entries;
    struct tn_set live; /* of the old one; marked: is live in the last one, too */
    uint64_t count;
    unsigned char *copy; /* COPY_SIZE */
    uint32_t copies;
    char from[24]; /* the old one's number */
    bool dry_run;
    bool undo;    /* copies are removed, not made */
    bool unknown; /* the disk failed while the name was given */
};

enum { COPY_SIZE = 32 * 1024 };

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "rollback: no room for a path");
}

/* ---- where inputs stood ---- */

static const char *property(const struct tn_snapshot *snapshot, const char *key)
{
    for (uint32_t i = 0; i < snapshot->properties.count; i++) {
        if (strcmp(snapshot->properties.pairs[i].key, key) == 0) {
            return snapshot->properties.pairs[i].value;
        }
    }
    return NULL;
}

static bool has_property(const struct tn_snapshot *snapshot, const char *prefix)
{
    for (uint32_t i = 0; i < snapshot->properties.count; i++) {
        if (tn_name_begins(snapshot->properties.pairs[i].key, prefix)) {
            return true;
        }
    }
    return false;
}

/* Whether a snapshot from `first` to `last` has it; the newest such one stays in the arena. */
static tn_rc find_with(struct revert *r, int64_t first, int64_t last, const char *prefix,
                       struct tn_snapshot *found, bool *any, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    tn_rc rc = TN_OK;
    *any = false;
    for (int64_t id = last; rc == TN_OK && id >= first; id--) {
        size_t mark = tn_arena_mark(arena);
        rc = tn_snapshot_read(r->worker->io, r->spec->target.root, id, arena, found, err);
        if (rc == TN_OK && has_property(found, prefix)) {
            *any = true;
            return TN_OK;
        }
        tn_arena_reset(arena, mark);
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    return rc;
}

/* A writer that starts walks back to the newest snapshot that says where its inputs were: that must
 * be this one, with what was said up to the old one. */
static tn_rc find_positions(struct revert *r, struct tn_err *err)
{
    static const char writer[] = "tarn.writer";
    static const char position[] = "tarn.position.";
    struct tn_snapshot found;
    bool any;
    int64_t first;
    if (has_property(&r->old, writer)) {
        return TN_OK;
    }
    tn_rc rc =
        tn_snapshot_earliest(r->worker->io, r->spec->target.root, &r->worker->arena, &first, err);
    rc = rc == TN_OK ? find_with(r, first, r->old.id - 1, writer, &found, &any, err) : rc;
    if (rc != TN_OK || any) {
        r->next.properties = rc == TN_OK ? found.properties : r->next.properties;
        return rc;
    }
    rc = find_with(r, r->old.id + 1, r->last.id, position, &found, &any, err);
    return rc == TN_OK && any
               ? tn_err_set(err, TN_INVALID, 0,
                            "no snapshot up to %" PRId64
                            " says where inputs stood, and later ones do: they would not be read "
                            "again",
                            r->old.id)
               : rc;
}

/* ---- what comes back, and what goes ---- */

static tn_rc each_live(struct revert *r, const struct tn_snapshot *snapshot, tn_live_fn *each,
                       struct tn_err *err)
{
    return tn_live_each(r->spec->target.root, snapshot, r->spec->schema, NULL, r->worker, each, r,
                        err);
}

static tn_rc count(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)entry;
    (void)err;
    ((struct revert *)user)->count++;
    return TN_OK;
}

static struct tn_hash_128 identity(struct revert *r, const struct tn_entry *entry)
{
    return tn_entry_identity(entry, &r->worker->arena);
}

static tn_rc note_old(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct revert *r = user;
    return tn_set_add(&r->live, identity(r, entry))
               ? TN_OK
               : tn_err_set(err, TN_CORRUPT, 0, "snapshot %" PRId64 " has more files than it had",
                            r->old.id);
}

/* ---- copies ---- */

/* "data-<uuid>-<n>" and what was behind the number of the one that is copied. */
static const char *name_of_copy(struct revert *r, const struct tn_entry *entry)
{
    const char *dash = strrchr(entry->file.file_name, '-');
    const char *suffix = strchr(dash ? dash : entry->file.file_name, '.');
    return tn_arena_format(&r->worker->arena, "%s%s-%u%s", r->spec->options->data_file_prefix,
                           r->files.manifest_uuid, (unsigned)r->copies, suffix ? suffix : "");
}

static tn_rc copy_bytes(struct revert *r, int from, uint64_t size, int to, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    tn_rc rc = TN_OK;
    for (uint64_t at = 0; rc == TN_OK && at < size;) {
        size_t got;
        size_t want = size - at < COPY_SIZE ? (size_t)(size - at) : COPY_SIZE;
        rc = io->vtable->read(io, from, at, r->copy, want, &got, err);
        if (rc == TN_OK && got == 0) {
            rc = tn_err_set(err, TN_CORRUPT, 0, "it ends at byte %" PRIu64, at);
        }
        rc = rc == TN_OK ? io->vtable->append(io, to, (struct tn_bytes){r->copy, got}, err) : rc;
        at += got;
    }
    return rc;
}

static tn_rc copy_file(struct revert *r, const char *from, const char *to, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    uint64_t size;
    int in;
    int out;
    tn_rc rc = io->vtable->open(io, from, &in, &size, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = io->vtable->create(io, to, &out, err);
    if (rc == TN_OK) {
        rc = copy_bytes(r, in, size, out, err);
        io->vtable->close(io, out);
    }
    io->vtable->close(io, in);
    return rc == TN_OK ? rc : tn_err_in(err, "copy %s", from);
}

/* Whole and durable, with its name. */
static tn_rc make_copy(struct revert *r, const struct tn_entry *entry, const char *name,
                       struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    struct tn_arena *arena = &r->worker->arena;
    const char *dir;
    tn_rc rc = tn_name_bucket(arena, r->spec->target.root, r->spec->schema, r->spec->options,
                              entry->partition, entry->bucket, &dir, err);
    if (rc != TN_OK) {
        return rc;
    }
    const char *from = tn_arena_format(arena, "%s%s", dir, entry->file.file_name);
    const char *to = tn_arena_format(arena, "%s%s", dir, name);
    if (!from || !to) {
        return no_room(err);
    }
    if (r->undo) {
        struct tn_err ignored;
        (void)!io->vtable->unlink(io, to, &ignored);
        return TN_OK;
    }
    const char *const paths[] = {to, dir};
    rc = copy_file(r, from, to, err);
    return rc == TN_OK ? io->vtable->sync(io, paths, 2, err) : rc;
}

static tn_rc check_copyable(const struct tn_entry *entry, struct tn_err *err)
{
    const struct tn_file_meta *file = &entry->file;
    return file->external_path || file->extra_files.count > 0
               ? tn_err_set(err, TN_UNSUPPORTED, 0,
                            "%s %s: it can't be brought back by a new snapshot", file->file_name,
                            file->external_path ? "lies outside the table" : "has files beside it")
               : TN_OK;
}

/* ---- entries ---- */

static tn_rc remove_entry(struct revert *r, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_entry gone = *entry;
    gone.kind = TN_ENTRY_DELETE;
    r->result->removed++;
    return r->dry_run ? TN_OK : tn_entry_writer_add(&r->entries, &gone, err);
}

static tn_rc add_copy(struct revert *r, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_entry copy = *entry;
    tn_rc rc = check_copyable(entry, err);
    r->result->added++;
    if (rc != TN_OK || r->dry_run) {
        return rc;
    }
    copy.file.file_name = name_of_copy(r, entry);
    r->copies++;
    rc = copy.file.file_name ? make_copy(r, entry, copy.file.file_name, err) : no_room(err);
    return rc == TN_OK && !r->undo ? tn_entry_writer_add(&r->entries, &copy, err) : rc;
}

/* The files that stay are marked on the way. */
static tn_rc take_away(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct revert *r = user;
    return tn_set_mark(&r->live, identity(r, entry), true) ? TN_OK : remove_entry(r, entry, err);
}

static tn_rc give_back(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct revert *r = user;
    return tn_set_marked(&r->live, identity(r, entry)) ? TN_OK : add_copy(r, entry, err);
}

static tn_rc collect(struct revert *r, struct tn_err *err)
{
    r->count = 0;
    tn_rc rc = each_live(r, &r->old, count, err);
    if (rc == TN_OK) {
        rc = tn_set_init(&r->live, r->count, &r->worker->arena, err);
    }
    return rc == TN_OK ? each_live(r, &r->old, note_old, err) : rc;
}

/* DELETE entries stand before all ADDs (commit.c says why). */
static tn_rc write_changes(struct revert *r, struct tn_err *err)
{
    tn_rc rc = each_live(r, &r->last, take_away, err);
    return rc == TN_OK ? each_live(r, &r->old, give_back, err) : rc;
}

/* ---- the lists ---- */

static tn_rc write_base(struct revert *r, struct tn_err *err)
{
    int64_t size = 0;
    tn_rc rc =
        tn_base_list_write(&r->files, &r->last, false, &r->next.base_manifest_list, &size, err);
    r->next.base_manifest_list_size = (struct tn_json_i64){size, true};
    return rc;
}

static tn_rc write_manifests(struct revert *r, struct tn_err *err)
{
    tn_rc rc = tn_entry_writer_begin(&r->entries, &r->files, &r->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_changes(r, err);
    if (rc != TN_OK) {
        tn_entry_writer_abort(&r->entries);
        return rc;
    }
    r->next.delta_record_count = (struct tn_json_i64){r->entries.row_count, true};
    return tn_entry_writer_finish(&r->entries, err);
}

static tn_rc write_delta(struct revert *r, struct tn_err *err)
{
    int64_t size = 0;
    tn_rc rc = tn_attempt_begin_list(&r->files, &r->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_manifests(r, err);
    if (rc != TN_OK) {
        tn_manifest_abort(&r->list);
        return rc;
    }
    rc = tn_attempt_finish_list(&r->files, &r->list, &r->next.delta_manifest_list, &size, err);
    r->next.delta_manifest_list_size = (struct tn_json_i64){size, true};
    return rc;
}

/* ---- the snapshot ---- */

static void fill_next(struct revert *r)
{
    struct tn_clock *clock = r->worker->clock;
    struct tn_snapshot *next = &r->next;
    int64_t now = clock->vtable->now_ms(clock);
    next->version = (struct tn_json_i64){3, true};
    next->id = r->last.id + 1;
    next->schema_id = r->spec->schema->id;
    next->commit_user = r->old.commit_user;
    next->commit_identifier = r->old.commit_identifier;
    next->commit_kind = "OVERWRITE";
    next->time_ms =
        (struct tn_json_i64){now > r->last.time_ms.value ? now : r->last.time_ms.value, true};
    next->total_record_count = r->old.total_record_count;
    next->changelog_record_count = (struct tn_json_i64){0, true};
    next->watermark = r->last.watermark;
    next->statistics = next->schema_id == r->old.schema_id ? r->old.statistics : NULL;
    next->next_row_id = r->last.next_row_id;
}

/* Whether the name stands there with our bytes, after an error that doesn't say so. */
static bool is_there(struct revert *r, const struct tn_publish_spec *publish)
{
    struct tn_bytes there;
    struct tn_err ignored;
    return tn_io_read_all(r->worker->io, publish->final, publish->bytes.size, &r->worker->arena,
                          &there, &ignored) == TN_OK &&
           tn_bytes_equal(there, publish->bytes);
}

static tn_rc publish(struct revert *r, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    struct tn_arena *arena = &r->worker->arena;
    const char *root = r->spec->target.root;
    struct tn_publish_spec spec = {
        .draft = tn_arena_format(arena, "%s/" TN_DIR_SNAPSHOT ".snapshot-%" PRId64 ".%s.tmp", root,
                                 r->next.id, r->files.list_uuid),
        .final = tn_name_numbered(arena, root, TN_DIR_SNAPSHOT, "snapshot-", r->next.id),
        .dir = tn_name_in(arena, root, TN_DIR_SNAPSHOT, "")};
    if (!spec.draft || !spec.final || !spec.dir) {
        return no_room(err);
    }
    tn_rc rc = tn_attempt_paths(&r->files, NULL, 0, arena, &spec.before, &spec.before_count, err);
    rc = rc == TN_OK ? tn_snapshot_text(&r->next, arena, &spec.bytes, err) : rc;
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_publish(io, &spec, err);
    r->unknown = rc == TN_IO;
    return rc == TN_IO && is_there(r, &spec) ? io->vtable->sync(io, &spec.dir, 1, err) : rc;
}

/* They would be orphans, on a disk that may be full. */
static void remove_copies(struct revert *r)
{
    struct tn_err ignored;
    uint32_t made = r->copies;
    r->undo = made > 0;
    r->copies = 0;
    (void)!(made > 0 ? each_live(r, &r->old, give_back, &ignored) : TN_OK);
}

static tn_rc commit(struct revert *r, struct tn_err *err)
{
    r->files = (struct tn_attempt){.root = r->spec->target.root,
                                   .schema = r->spec->schema,
                                   .options = r->spec->options,
                                   .worker = r->worker};
    fill_next(r);
    tn_rc rc = tn_attempt_begin(&r->files, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_base(r, err);
    rc = rc == TN_OK ? write_delta(r, err) : rc;
    rc = rc == TN_OK ? publish(r, err) : rc;
    if (rc != TN_OK && !r->unknown) {
        tn_attempt_drop(&r->files);
        remove_copies(r);
    }
    if (rc == TN_OK) {
        struct tn_err ignored; /* readers heal a hint that lags */
        (void)!tn_snapshot_hint(r->worker->io, r->files.root, "LATEST", r->next.id,
                                &r->worker->arena, &ignored);
    }
    return rc;
}

/* ---- */

/* Nothing would change, or it is what a call before this one has made. */
static bool stands_there(const struct revert *r)
{
    const char *from = property(&r->last, TN_REVERT_PROPERTY);
    return r->last.id == r->old.id || (from && strcmp(from, r->from) == 0);
}

/* Those of the old one, less where that came from itself, and where this one does. */
static tn_rc fill_properties(struct revert *r, struct tn_err *err)
{
    const struct tn_json_map *old = &r->next.properties;
    void *memory;
    tn_rc rc = tn_arena_need(&r->worker->arena, (old->count + 1) * sizeof *old->pairs, "properties",
                             &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_json_map map = {memory, 0};
    for (uint32_t i = 0; i < old->count; i++) {
        if (strcmp(old->pairs[i].key, TN_REVERT_PROPERTY) != 0) {
            map.pairs[map.count++] = old->pairs[i];
        }
    }
    map.pairs[map.count++] = (struct tn_json_pair){TN_REVERT_PROPERTY, r->from};
    r->next.properties = map;
    return TN_OK;
}

static tn_rc read_both(struct revert *r, struct tn_err *err)
{
    struct tn_worker *worker = r->worker;
    const char *root = r->spec->target.root;
    int64_t last;
    tn_rc rc = tn_rollback_target(&r->spec->target, worker, &r->old, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(worker->io, root, &worker->arena, &last, err);
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_read(worker->io, root, last, &worker->arena, &r->last, err);
    }
    return rc == TN_OK && (r->old.index_manifest || r->last.index_manifest)
               ? tn_err_set(err, TN_UNSUPPORTED, 0,
                            "the table has index files: it can't be taken back by a new snapshot")
               : rc;
}

/* How much would change is counted first, by the passes that write it later. */
static tn_rc look(struct revert *r, struct tn_err *err)
{
    void *memory;
    tn_rc rc = read_both(r, err);
    if (rc == TN_OK) {
        rc = collect(r, err);
    }
    if (rc == TN_OK) {
        rc = tn_arena_need(&r->worker->arena, COPY_SIZE, "copying", &memory, err);
    }
    if (rc == TN_OK) {
        r->copy = memory;
        r->dry_run = true;
        rc = write_changes(r, err);
        r->dry_run = false;
    }
    return rc;
}

static tn_rc run(struct revert *r, struct tn_err *err)
{
    tn_rc rc = look(r, err);
    if (rc != TN_OK) {
        return rc;
    }
    r->result->from_id = r->old.id;
    r->result->snapshot_id = r->last.id;
    (void)snprintf(r->from, sizeof r->from, "%" PRId64, r->old.id);
    if (stands_there(r)) {
        r->result->removed = r->result->added = 0;
        return TN_OK;
    }
    r->next.properties = r->old.properties;
    rc = find_positions(r, err);
    rc = rc == TN_OK ? fill_properties(r, err) : rc;
    if (rc == TN_OK && !r->spec->target.dry_run) {
        r->result->removed = r->result->added = 0;
        rc = commit(r, err);
    }
    r->result->snapshot_id += rc == TN_OK;
    return rc;
}

tn_rc tn_revert(const struct tn_revert_spec *spec, struct tn_worker *worker,
                struct tn_revert_result *result, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    void *memory;
    *result = (struct tn_revert_result){0};
    tn_rc rc = tn_arena_need(&worker->arena, sizeof(struct revert), "a rollback", &memory, err);
    if (rc == TN_OK) {
        struct revert *r = memory;
        *r = (struct revert){.spec = spec, .worker = worker, .result = result};
        rc = run(r, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "rollback");
}
