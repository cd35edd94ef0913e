#include "upload/share_pick.h"

#include <inttypes.h>

#include "file/names.h"
#include "file/schemas.h"
#include "schema/options.h"

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
}

/* ---- one snapshot ---- */

static tn_rc read_snapshot(const char *root, int64_t id, struct tn_worker *worker,
                           struct tn_snapshot *snapshot, struct tn_err *err)
{
    tn_rc rc = tn_snapshot_read(worker->io, root, id, &worker->arena, snapshot, err);
    return rc == TN_ABSENT
               ? tn_err_set(err, TN_CORRUPT, 0,
                            "snapshot %" PRId64 " of %s is gone, and was not sent: what it added "
                            "can't be sent any more",
                            id, root)
               : rc;
}

static bool is_kind(const struct tn_snapshot *snapshot, const char *kind)
{
    return strcmp(snapshot->commit_kind, kind) == 0;
}

/* COMPACT and ANALYZE add no rows. */
static tn_rc check_kind(const struct tn_snapshot *snapshot, struct tn_err *err)
{
    if (is_kind(snapshot, "OVERWRITE")) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "snapshot %" PRId64
                          " took rows away (OVERWRITE): a gateway can only add to a shared table",
                          snapshot->id);
    }
    return TN_OK;
}

static tn_rc each_in(const char *root, const char *list, struct tn_json_i64 size,
                     struct tn_worker *worker, tn_live_fn *each, void *user, struct tn_err *err)
{
    return list ? tn_list_each(root, list, tn_manifest_size(size), NULL, worker, each, user, err)
                : TN_OK;
}

/* ---- the pick ---- */

struct sums {
    int64_t count;
    int64_t rows;
    uint64_t bytes;
};

static tn_rc add_up(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct sums *sums = user;
    const struct tn_file_meta *file = &entry->file;
    if (entry->kind != TN_ENTRY_ADD || file->level != 0) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: only new files of level 0 can be sent",
                          file->file_name);
    }
    if (file->external_path) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s lies outside the table, at %s",
                          file->file_name, file->external_path);
    }
    sums->count++;
    sums->rows += file->row_count;
    sums->bytes += (uint64_t)file->file_size;
    return TN_OK;
}

static tn_rc measure(const char *root, const struct tn_snapshot *snapshot, struct tn_worker *worker,
                     struct sums *data, struct sums *changes, struct tn_err *err)
{
    if (snapshot->index_manifest) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "index files can't be sent: %s",
                          snapshot->index_manifest);
    }
    tn_rc rc = each_in(root, snapshot->delta_manifest_list, snapshot->delta_manifest_list_size,
                       worker, add_up, data, err);
    return rc == TN_OK
               ? each_in(root, snapshot->changelog_manifest_list,
                         snapshot->changelog_manifest_list_size, worker, add_up, changes, err)
               : rc;
}

static bool is_full(const struct tn_share_pick *pick, const struct sums *data,
                    const struct sums *changes, const struct tn_share_limits *limits)
{
    uint64_t files =
        (uint64_t)(pick->data_count + pick->change_count + data->count + changes->count);
    uint64_t bytes = pick->bytes + data->bytes + changes->bytes;
    return !tn_share_pick_empty(pick) && ((limits->files > 0 && files > limits->files) ||
                                          (limits->bytes > 0 && bytes > limits->bytes));
}

static struct tn_json_i64 later(struct tn_json_i64 a, struct tn_json_i64 b)
{
    return a.present && (!b.present || a.value > b.value) ? a : b;
}

static void take(struct tn_share_pick *pick, const struct tn_snapshot *snapshot,
                 const struct sums *data, const struct sums *changes)
{
    pick->last = snapshot->id;
    pick->data_count += data->count;
    pick->data_rows += data->rows;
    pick->change_count += changes->count;
    pick->change_rows += changes->rows;
    pick->bytes += data->bytes + changes->bytes;
    pick->watermark = later(pick->watermark, snapshot->watermark);
    pick->schema_id = data->count + changes->count > 0 ? snapshot->schema_id : pick->schema_id;
}

static tn_rc take_snapshot(struct tn_share_pick *pick, int64_t id,
                           const struct tn_share_limits *limits, bool *full, struct tn_err *err)
{
    struct tn_snapshot snapshot;
    struct sums data = {0};
    struct sums changes = {0};
    tn_rc rc = read_snapshot(pick->root, id, pick->worker, &snapshot, err);
    if (rc == TN_OK) {
        rc = check_kind(&snapshot, err);
    }
    if (rc == TN_OK && is_kind(&snapshot, "APPEND")) {
        rc = measure(pick->root, &snapshot, pick->worker, &data, &changes, err);
        rc = rc == TN_OK ? rc : tn_err_in(err, "snapshot %" PRId64, id);
    }
    *full = rc == TN_OK && is_full(pick, &data, &changes, limits);
    if (rc == TN_OK && !*full) {
        take(pick, &snapshot, &data, &changes);
    }
    return rc;
}

/* A commit that is under way has given its snapshot a name which a power cut may still take back.
 */
static tn_rc settle(const char *root, struct tn_worker *worker, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    const char *dir = tn_name_in(&worker->arena, root, TN_DIR_SNAPSHOT, "");
    tn_rc rc = dir ? worker->io->vtable->sync(worker->io, &dir, 1, err) : no_room(err);
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

tn_rc tn_share_pick(const char *root, int64_t done, int64_t last,
                    const struct tn_share_limits *limits, struct tn_worker *worker,
                    struct tn_share_pick *pick, struct tn_err *err)
{
    int64_t newest = 0;
    bool full = false;
    *pick = (struct tn_share_pick){
        .root = root, .worker = worker, .first = done + 1, .last = done, .schema_id = -1};
    tn_rc rc = tn_snapshot_latest(worker->io, root, &worker->arena, &newest, err);
    rc = rc == TN_ABSENT ? TN_OK : rc;
    if (rc == TN_OK && newest < (last > done ? last : done)) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s is at snapshot %" PRId64 ", and %" PRId64
                          " was sent: it was made anew, or went back",
                          root, newest, last > done ? last : done);
    }
    bool ends = last == 0 && limits->through > 0 && limits->through < newest;
    newest = last > 0 ? last : ends ? limits->through : newest;
    if (rc == TN_OK && newest > done) {
        rc = settle(root, worker, err);
    }
    for (int64_t id = done + 1; rc == TN_OK && !full && id <= newest; id++) {
        size_t mark = tn_arena_mark(&worker->arena);
        rc = take_snapshot(pick, id, limits, &full, err);
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

/* ---- its entries ---- */

static tn_rc each_of(const struct tn_share_pick *pick, bool changes, tn_live_fn *each, void *user,
                     struct tn_err *err)
{
    struct tn_worker *worker = pick->worker;
    tn_rc rc = TN_OK;
    for (int64_t id = pick->first; rc == TN_OK && id <= pick->last; id++) {
        struct tn_snapshot s;
        size_t mark = tn_arena_mark(&worker->arena);
        rc = read_snapshot(pick->root, id, worker, &s, err);
        if (rc == TN_OK && is_kind(&s, "APPEND")) {
            rc = changes ? each_in(pick->root, s.changelog_manifest_list,
                                   s.changelog_manifest_list_size, worker, each, user, err)
                         : each_in(pick->root, s.delta_manifest_list, s.delta_manifest_list_size,
                                   worker, each, user, err);
        }
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

tn_rc tn_share_each_data(const struct tn_share_pick *pick, tn_live_fn *each, void *user,
                         struct tn_err *err)
{
    return each_of(pick, false, each, user, err);
}

tn_rc tn_share_each_change(const struct tn_share_pick *pick, tn_live_fn *each, void *user,
                           struct tn_err *err)
{
    return each_of(pick, true, each, user, err);
}

/* ---- its files ---- */

/* In the worker's arena: it is too large for a stack. */
struct sending {
    const struct tn_share_pick *pick;
    struct tn_target *target;
    struct tn_share_tally *tally;
    size_t folder_max; /* bytes */
    struct tn_schemas schemas;
    const struct tn_schema *schema;
    struct tn_options options;
};

/* The folders of buckets depend on the partition's columns, which never change. */
static tn_rc open_sending(const struct tn_share_pick *pick, struct sending **sending,
                          struct tn_err *err)
{
    struct tn_arena *arena = &pick->worker->arena;
    void *memory;
    tn_rc rc = tn_arena_need(arena, sizeof(struct sending), "files to send", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct sending *s = memory;
    s->pick = pick;
    tn_schemas_init(&s->schemas, pick->worker->io, pick->root, arena);
    rc = tn_err_named(err, tn_schemas_load(&s->schemas, pick->schema_id, &s->schema, err));
    *sending = s;
    return rc == TN_OK ? tn_options_read(s->schema, TN_OPTIONS_READ, arena, &s->options, err) : rc;
}

static tn_rc folder_of(const struct sending *s, const struct tn_entry *entry,
                       struct tn_arena *arena, const char **dir, struct tn_err *err)
{
    return tn_name_bucket(arena, s->pick->root, s->schema, &s->options, entry->partition,
                          entry->bucket, dir, err);
}

bool tn_share_is_spent(const struct tn_share_tally *tally, const struct tn_target *target)
{
    const struct tn_share_bounds *bounds = &tally->bounds;
    return tally->files > 0 &&
           ((bounds->bytes_max > 0 && tally->bytes >= bounds->bytes_max) ||
            (bounds->requests_max > 0 && tn_target_asked(&target->counts) >= bounds->requests_max));
}

static tn_rc bring_file(const struct sending *s, const char *path, uint64_t size,
                        struct tn_err *err)
{
    struct tn_target *target = s->target;
    if (tn_share_is_spent(s->tally, target)) {
        s->tally->spent = true;
        return tn_err_set(err, TN_CANCELED, 0, "as much as was allowed is sent");
    }
    tn_rc rc = target->vtable->send(target, s->pick->worker->io, path, size, err);
    s->tally->files += rc == TN_OK;
    s->tally->bytes += rc == TN_OK ? size : 0;
    return rc;
}

static tn_rc send_file(const struct sending *s, const char *path, uint64_t size, struct tn_err *err)
{
    struct tn_target *target = s->target;
    uint64_t there;
    if (!path) {
        return no_room(err);
    }
    tn_rc rc = s->pick->ask ? target->vtable->stat(target, path, &there, err) : TN_ABSENT;
    if (rc == TN_OK && there == size) {
        return TN_OK;
    }
    return rc == TN_OK || rc == TN_ABSENT ? bring_file(s, path, size, err) : rc;
}

static tn_rc send_extra(const struct sending *s, const char *path, struct tn_err *err)
{
    struct tn_io *io = s->pick->worker->io;
    uint64_t size;
    tn_rc rc = path ? io->vtable->stat(io, path, &size, err) : no_room(err);
    return rc == TN_OK ? send_file(s, path, size, err) : rc;
}

static tn_rc send_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct sending *s = user;
    struct tn_arena *arena = &s->pick->worker->arena;
    const struct tn_file_meta *file = &entry->file;
    size_t mark = tn_arena_mark(arena);
    const char *dir;
    tn_rc rc = folder_of(s, entry, arena, &dir, err);
    if (rc == TN_OK) {
        rc = send_file(s, tn_arena_format(arena, "%s%s", dir, file->file_name),
                       (uint64_t)file->file_size, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < file->extra_files.count; i++) {
        rc = send_extra(s, tn_arena_format(arena, "%s%s", dir, file->extra_files.items[i]), err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* A file that a snapshot adds can't be gone as long as the lake is a consumer. */
tn_rc tn_share_send(const struct tn_share_pick *pick, struct tn_target *target,
                    struct tn_share_tally *tally, struct tn_err *err)
{
    struct tn_arena *arena = &pick->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct sending *s;
    if (tn_share_pick_empty(pick)) {
        return TN_OK;
    }
    tn_rc rc = open_sending(pick, &s, err);
    if (rc == TN_OK) {
        s->target = target;
        s->tally = tally;
        rc = tn_share_each_data(pick, send_entry, s, err);
    }
    if (rc == TN_OK) {
        rc = tn_share_each_change(pick, send_entry, s, err);
    }
    tn_arena_reset(arena, mark);
    return tn_err_named(err, rc);
}

static tn_rc check_folder(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct sending *s = user;
    struct tn_arena *arena = &s->pick->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *dir;
    tn_rc rc = folder_of(s, entry, arena, &dir, err);
    if (rc == TN_OK && strlen(dir) > s->folder_max) {
        rc = tn_err_set(err, TN_INVALID, 0,
                        "%.60s...: a folder of %zu bytes, which no gather takes: %zu at the most",
                        dir, strlen(dir), s->folder_max);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_share_check_folders(const struct tn_share_pick *pick, size_t folder_max,
                             struct tn_err *err)
{
    struct tn_arena *arena = &pick->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct sending *s;
    tn_rc rc = open_sending(pick, &s, err);
    if (rc == TN_OK) {
        s->folder_max = folder_max;
        rc = tn_share_each_data(pick, check_folder, s, err);
    }
    if (rc == TN_OK) {
        rc = tn_share_each_change(pick, check_folder, s, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

tn_rc tn_share_path(const struct tn_share_pick *pick, const struct tn_entry *entry,
                    const char **path, struct tn_err *err)
{
    struct tn_arena *arena = &pick->worker->arena;
    struct sending *s;
    const char *dir;
    tn_rc rc = open_sending(pick, &s, err);
    if (rc == TN_OK) {
        rc = folder_of(s, entry, arena, &dir, err);
    }
    if (rc == TN_OK) {
        *path = tn_arena_format(arena, "%s%s", dir, entry->file.file_name);
        rc = *path ? TN_OK : no_room(err);
    }
    return rc;
}
