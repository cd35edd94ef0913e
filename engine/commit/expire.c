#include "commit/expire.h"

#include <inttypes.h>

#include "commit/set.h"
#include "file/names.h"
#include "format/json.h"

enum {
    CONSUMER_SIZE_MAX = 4096,
    READ_RESERVE =
        512 * 1024, /* what streaming the live files of a snapshot takes beside the sets */
};

struct expire {
    const struct tn_expire_spec *spec;
    struct tn_worker *worker;
    struct tn_expire_result *result;
    int64_t oldest; /* smallest id in the folder; below `first` only after a cut */
    int64_t first;  /* what EARLIEST says */
    int64_t last;
    int64_t end;       /* oldest .. end-1 go */
    int64_t kept;      /* the first snapshot that stays */
    int64_t tag_floor; /* the newest tag below `oldest`; older ones reach nothing that it doesn't */
    bool overwritten;  /* a kept snapshot may have brought back what one before it deleted */
    int64_t consumer_min;
    struct tn_set files; /* paths with a DELETE entry; marked: reached, or gone by now */
    int32_t bucket_min;  /* of these */
    int32_t bucket_max;
    struct tn_set names; /* of metadata files that are reached, or gone by now */
    uint64_t name_count;
};

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "expire: no room for a path");
}

/* ---- reading ---- */

typedef tn_rc snapshot_fn(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err);

/* Calls `each` for one snapshot, if it is there. */
static tn_rc with_snapshot(struct expire *e, int64_t id, snapshot_fn *each, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    struct tn_snapshot snapshot;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_snapshot_read(e->worker->io, e->spec->root, id, arena, &snapshot, err);
    if (rc == TN_OK) {
        rc = each(e, &snapshot, err);
    } else if (rc == TN_ABSENT) {
        rc = TN_OK;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* What can't be read any more (a cut, a damaged file) names nothing: its files leak. */
static tn_rc forgive(tn_rc rc)
{
    return rc == TN_ABSENT || rc == TN_CORRUPT ? TN_OK : rc;
}

static int64_t size_or_unknown(struct tn_json_i64 size)
{
    return size.present ? size.value : -1;
}

static tn_rc list_folder(struct expire *e, const char *folder, tn_io_name_fn *each, void *user,
                         struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, folder, "");
    tn_rc rc = path ? io->vtable->list(io, path, each, user, err) : no_room(err);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc; /* no such folder */
}

/* ---- what must stay: kept snapshot, those that bring back, tags, branches ---- */

struct keepers {
    struct expire *e;
    snapshot_fn *each;
    const char *folder; /* of the names that come, as in "branch/branch-b/tag/" */
    bool all;           /* a branch: every snapshot of it counts */
};

static bool starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static tn_rc keep_path(const struct keepers *k, const char *path, struct tn_err *err)
{
    struct expire *e = k->e;
    struct tn_snapshot snapshot;
    tn_rc rc = tn_snapshot_read_path(e->worker->io, path, &e->worker->arena, &snapshot, err);
    if (rc != TN_OK || (!k->all && (snapshot.id < e->tag_floor || snapshot.id >= e->kept))) {
        return rc;
    }
    return k->each(e, &snapshot, err);
}

static tn_rc keep_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct keepers *k = user;
    struct tn_arena *arena = &k->e->worker->arena;
    if (is_dir || (!starts_with(name, "tag-") && tn_name_number(name, "snapshot-") < 0)) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, k->e->spec->root, k->folder, name);
    tn_rc rc = path ? keep_path(k, path, err) : no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc keep_branch(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct keepers *k = user;
    struct tn_arena *arena = &k->e->worker->arena;
    static const char *const folders[] = {TN_DIR_TAG, TN_DIR_SNAPSHOT};
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = TN_OK;
    for (size_t i = 0; is_dir && rc == TN_OK && i < sizeof folders / sizeof folders[0]; i++) {
        struct keepers inner = {k->e, k->each, NULL, true};
        inner.folder = tn_arena_format(arena, TN_DIR_BRANCH "%s/%s", name, folders[i]);
        rc = inner.folder ? list_folder(k->e, inner.folder, keep_name, &inner, err) : no_room(err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc each_keeper(struct expire *e, snapshot_fn *each, struct tn_err *err)
{
    struct keepers keepers = {e, each, TN_DIR_TAG, false};
    tn_rc rc = with_snapshot(e, e->kept, each, err);
    if (rc == TN_OK) {
        rc = list_folder(e, TN_DIR_TAG, keep_name, &keepers, err);
    }
    if (rc == TN_OK) {
        rc = list_folder(e, TN_DIR_BRANCH, keep_branch, &keepers, err);
    }
    return rc;
}

/* A rollback "as latest" is an OVERWRITE whose lists name files that a delta before it deleted. */
static tn_rc each_overwrite(struct expire *e, snapshot_fn *each, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int64_t id = e->kept + 1; e->overwritten && rc == TN_OK && id <= e->last; id++) {
        rc = with_snapshot(e, id, each, err);
    }
    return rc;
}

static bool is_overwrite(const struct tn_snapshot *snapshot)
{
    return strcmp(snapshot->commit_kind, "OVERWRITE") == 0;
}

static tn_rc note_overwrite(struct expire *e, const struct tn_snapshot *snapshot,
                            struct tn_err *err)
{
    (void)err;
    e->overwritten = e->overwritten || is_overwrite(snapshot);
    return TN_OK;
}

static tn_rc look_for_overwrite(struct expire *e, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int64_t id = e->kept + 1; rc == TN_OK && !e->overwritten && id <= e->last; id++) {
        rc = with_snapshot(e, id, note_overwrite, err);
    }
    return rc;
}

static tn_rc note_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct expire *e = user;
    struct tn_arena *arena = &e->worker->arena;
    struct tn_snapshot tag;
    if (is_dir || !starts_with(name, "tag-")) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, TN_DIR_TAG, name);
    tn_rc rc = path ? tn_snapshot_read_path(e->worker->io, path, arena, &tag, err) : no_room(err);
    if (rc == TN_OK && tag.id < e->oldest && tag.id > e->tag_floor) {
        e->tag_floor = tag.id;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- how far ---- */

static tn_rc read_consumer(struct expire *e, const char *path, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    struct tn_bytes text;
    struct cJSON *root;
    int64_t next;
    tn_rc rc = tn_io_read_all(e->worker->io, path, CONSUMER_SIZE_MAX, arena, &text, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_json_open(text, arena, &root, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", path);
    }
    bool found = tn_json_i64(tn_json_member(root, "nextSnapshot"), &next);
    tn_json_close(root);
    if (!found) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: $.nextSnapshot: missing", path);
    }
    e->consumer_min = next < e->consumer_min ? next : e->consumer_min;
    return TN_OK;
}

static tn_rc note_consumer(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct expire *e = user;
    struct tn_arena *arena = &e->worker->arena;
    if (is_dir || !starts_with(name, "consumer-")) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, TN_DIR_CONSUMER, name);
    tn_rc rc = path ? read_consumer(e, path, err) : no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first snapshot from `low` on that is too young to go. Source: Paimon 1.3,
 * ExpireSnapshotsImpl. */
static tn_rc stop_at_young(struct expire *e, int64_t low, int64_t high, int64_t *stop,
                           struct tn_err *err)
{
    struct tn_worker *worker = e->worker;
    int64_t now = worker->clock->vtable->now_ms(worker->clock);
    int64_t retained = e->spec->options->snapshot_time_retained_ms;
    int64_t older_than = retained < now ? now - retained : 0;
    *stop = high;
    for (int64_t id = low; id < high; id++) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(&worker->arena);
        tn_rc rc = tn_snapshot_read(worker->io, e->spec->root, id, &worker->arena, &snapshot, err);
        int64_t time = rc == TN_OK ? snapshot.time_ms.value : 0;
        tn_arena_reset(&worker->arena, mark);
        if (rc != TN_OK && rc != TN_ABSENT) {
            return rc;
        }
        if (rc == TN_OK && time >= older_than) {
            *stop = id;
            return TN_OK;
        }
    }
    return TN_OK;
}

static tn_rc choose_end(struct expire *e, struct tn_err *err)
{
    const struct tn_options *options = e->spec->options;
    int64_t stop;
    int64_t low = larger(e->last - options->snapshot_retained_max + 1, e->first);
    int64_t high = e->last - larger(options->snapshot_retained_min, 1) + 1;
    e->consumer_min = INT64_MAX;
    tn_rc rc = list_folder(e, TN_DIR_CONSUMER, note_consumer, e, err);
    if (rc != TN_OK) {
        return rc;
    }
    high = smaller(high, e->consumer_min);
    high = smaller(high, e->first + options->snapshot_expire_limit);
    rc = stop_at_young(e, low, high, &stop, err);
    e->end = larger(stop, e->first); /* what stands below `first` was decided by a run before */
    return rc;
}

static tn_rc choose_range(struct expire *e, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    const char *root = e->spec->root;
    tn_rc rc = tn_snapshot_oldest_name(io, root, arena, &e->oldest, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(io, root, arena, &e->first, err);
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(io, root, arena, &e->last, err);
    }
    return rc == TN_OK ? choose_end(e, err) : rc;
}

/* ---- data files ---- */

static struct tn_hash_128 path_hash(const struct tn_entry *entry)
{
    uint64_t bucket = (uint32_t)entry->bucket;
    struct tn_bytes name = tn_bytes_of(entry->file.file_name);
    return (struct tn_hash_128){tn_hash_64(name, tn_hash_64(entry->partition, bucket)),
                                tn_hash_64(name, tn_hash_64(entry->partition, ~bucket))};
}

static tn_rc each_delta_entry(struct expire *e, const struct tn_snapshot *snapshot,
                              tn_live_fn *each, struct tn_err *err)
{
    return tn_list_each(e->spec->root, snapshot->delta_manifest_list,
                        size_or_unknown(snapshot->delta_manifest_list_size), NULL, e->worker, each,
                        e, err);
}

struct sum {
    uint64_t count;
};

static tn_rc sum_meta(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct sum *sum = user;
    sum->count += meta->deleted_count > 0 ? (uint64_t)meta->deleted_count & INT32_MAX : 0;
    return TN_OK;
}

static tn_rc count_deletes(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct sum sum = {0};
    tn_rc rc = tn_list_each_meta(e->spec->root, snapshot->delta_manifest_list,
                                 size_or_unknown(snapshot->delta_manifest_list_size), e->worker,
                                 sum_meta, &sum, err);
    e->name_count += sum.count;
    return forgive(rc);
}

/* After a cut the oldest one's delta may name files whose unlink never reached the medium. */
static int64_t first_delta(const struct expire *e)
{
    return e->oldest < e->first ? e->oldest : e->oldest + 1;
}

/* Sizes the set of files, and lets the run end earlier where it doesn't fit. */
static tn_rc fit_files(struct expire *e, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    size_t room = tn_arena_free(arena);
    uint64_t count = 0;
    room = room > READ_RESERVE ? room - READ_RESERVE : room / 4;
    e->name_count = 0;
    for (int64_t id = first_delta(e); id <= e->end; id++) {
        tn_rc rc = with_snapshot(e, id, count_deletes, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (tn_set_size(e->name_count) > room && id - 1 > e->oldest) {
            e->end = id - 1;
            break;
        }
        count = e->name_count;
    }
    return tn_set_init(&e->files, count, arena, err);
}

static tn_rc add_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct expire *e = user;
    if (entry->kind != TN_ENTRY_DELETE || entry->file.external_path) {
        return TN_OK;
    }
    if (!tn_set_add(&e->files, path_hash(entry))) {
        return tn_err_set(err, TN_CORRUPT, 0, "more DELETE entries than the manifest lists say");
    }
    e->bucket_min = entry->bucket < e->bucket_min ? entry->bucket : e->bucket_min;
    e->bucket_max = entry->bucket > e->bucket_max ? entry->bucket : e->bucket_max;
    return TN_OK;
}

static tn_rc add_files(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    return forgive(each_delta_entry(e, snapshot, add_file, err));
}

static tn_rc keep_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct expire *e = user;
    bool candidate = tn_set_mark(&e->files, path_hash(entry), true);
    (void)candidate;
    return TN_OK;
}

static bool may_hold_files(void *user, const struct tn_manifest_meta *meta)
{
    const struct expire *e = user;
    return !(meta->max_bucket.present && meta->max_bucket.value < e->bucket_min) &&
           !(meta->min_bucket.present && meta->min_bucket.value > e->bucket_max);
}

static tn_rc keep_live(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_live_filter filter = {.manifest = may_hold_files, .user = e};
    return tn_live_each(e->spec->root, snapshot, e->spec->schema, &filter, e->worker, keep_file, e,
                        err);
}

static tn_rc keep_overwrite(struct expire *e, const struct tn_snapshot *snapshot,
                            struct tn_err *err)
{
    return is_overwrite(snapshot) ? keep_live(e, snapshot, err) : TN_OK;
}

static tn_rc collect_files(struct expire *e, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    e->bucket_min = INT32_MAX;
    e->bucket_max = INT32_MIN;
    for (int64_t id = first_delta(e); rc == TN_OK && id <= e->end; id++) {
        rc = with_snapshot(e, id, add_files, err);
    }
    if (rc == TN_OK && e->files.count > 0) {
        rc = each_keeper(e, keep_live, err);
    }
    if (rc == TN_OK && e->files.count > 0) {
        rc = each_overwrite(e, keep_overwrite, err);
    }
    return rc;
}

/* ---- removing ---- */

/* True when there was such a file. One that can't be removed leaks. */
static bool remove_path(struct expire *e, const char *path)
{
    struct tn_io *io = e->worker->io;
    struct tn_err ignored;
    uint64_t size;
    if (!path) {
        return false;
    }
    if (e->spec->dry_run) {
        return io->vtable->stat(io, path, &size, &ignored) == TN_OK;
    }
    return io->vtable->unlink(io, path, &ignored) == TN_OK;
}

static void remove_in(struct expire *e, const char *dir, const char *name, uint32_t *count)
{
    struct tn_arena *arena = &e->worker->arena;
    size_t mark = tn_arena_mark(arena);
    *count += remove_path(e, tn_arena_format(arena, "%s%s", dir, name)) ? 1 : 0;
    tn_arena_reset(arena, mark);
}

/* The data file, then what lies beside it. */
static tn_rc remove_data_file(struct expire *e, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    uint32_t extra_count = 0;
    const char *dir;
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_bucket(arena, e->spec->root, e->spec->schema, e->spec->options,
                              entry->partition, entry->bucket, &dir, err);
    if (rc == TN_OK) {
        remove_in(e, dir, entry->file.file_name, &e->result->data_files);
        for (uint32_t i = 0; i < entry->file.extra_files.count; i++) {
            remove_in(e, dir, entry->file.extra_files.items[i], &extra_count);
        }
    }
    tn_arena_reset(arena, mark);
    return forgive(rc);
}

static tn_rc remove_deleted(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct expire *e = user;
    struct tn_hash_128 hash = path_hash(entry);
    if (entry->kind != TN_ENTRY_DELETE || entry->file.external_path ||
        !tn_set_has(&e->files, hash) || tn_set_marked(&e->files, hash)) {
        return TN_OK;
    }
    bool known = tn_set_mark(&e->files, hash, true);
    (void)known;
    return remove_data_file(e, entry, err);
}

static tn_rc remove_files(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    return forgive(each_delta_entry(e, snapshot, remove_deleted, err));
}

static tn_rc remove_added(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct expire *e = user;
    bool ours = entry->kind == TN_ENTRY_ADD && !entry->file.external_path;
    return ours ? remove_data_file(e, entry, err) : TN_OK;
}

static tn_rc remove_changelog(struct expire *e, const struct tn_snapshot *snapshot,
                              struct tn_err *err)
{
    if (!snapshot->changelog_manifest_list) {
        return TN_OK;
    }
    return forgive(tn_list_each(e->spec->root, snapshot->changelog_manifest_list,
                                size_or_unknown(snapshot->changelog_manifest_list_size), NULL,
                                e->worker, remove_added, e, err));
}

static tn_rc remove_data(struct expire *e, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int64_t id = first_delta(e); rc == TN_OK && id <= e->end; id++) {
        rc = with_snapshot(e, id, remove_files, err);
    }
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = with_snapshot(e, id, remove_changelog, err);
    }
    return rc;
}

/* ---- metadata ---- */

static struct tn_hash_128 name_hash(const char *name)
{
    return tn_hash_128(tn_bytes_of(name));
}

/* The three lists of a snapshot. */
enum { LIST_COUNT = 3 };
struct list {
    const char *name;
    int64_t size;
};

static void lists_of(const struct tn_snapshot *snapshot, struct list lists[LIST_COUNT])
{
    lists[0] = (struct list){snapshot->base_manifest_list,
                             size_or_unknown(snapshot->base_manifest_list_size)};
    lists[1] = (struct list){snapshot->delta_manifest_list,
                             size_or_unknown(snapshot->delta_manifest_list_size)};
    lists[2] = (struct list){snapshot->changelog_manifest_list,
                             size_or_unknown(snapshot->changelog_manifest_list_size)};
}

static tn_rc each_list_meta(struct expire *e, const struct list *list, tn_list_meta_fn *each,
                            struct tn_err *err)
{
    return list->name
               ? tn_list_each_meta(e->spec->root, list->name, list->size, e->worker, each, e, err)
               : TN_OK;
}

static tn_rc count_meta(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)meta;
    (void)err;
    ((struct expire *)user)->name_count++;
    return TN_OK;
}

static tn_rc count_names(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct list lists[LIST_COUNT];
    tn_rc rc = TN_OK;
    lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < LIST_COUNT; i++) {
        rc = each_list_meta(e, &lists[i], count_meta, err);
    }
    e->name_count += LIST_COUNT + 2;
    return rc;
}

static tn_rc keep_metadata(struct expire *e, const char *name, struct tn_err *err)
{
    if (name && !tn_set_add(&e->names, name_hash(name))) {
        return tn_err_set(err, TN_AGAIN, 0, "expire: a tag or branch was made meanwhile");
    }
    return TN_OK;
}

static tn_rc keep_meta(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    return keep_metadata(user, meta->file_name, err);
}

static tn_rc keep_names(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct list lists[LIST_COUNT];
    tn_rc rc = keep_metadata(e, snapshot->index_manifest, err);
    if (rc == TN_OK) {
        rc = keep_metadata(e, snapshot->statistics, err);
    }
    lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < LIST_COUNT; i++) {
        rc = keep_metadata(e, lists[i].name, err);
        if (rc == TN_OK) {
            rc = each_list_meta(e, &lists[i], keep_meta, err);
        }
    }
    return rc;
}

static tn_rc count_overwrite(struct expire *e, const struct tn_snapshot *snapshot,
                             struct tn_err *err)
{
    return is_overwrite(snapshot) ? count_names(e, snapshot, err) : TN_OK;
}

static tn_rc keep_overwrite_names(struct expire *e, const struct tn_snapshot *snapshot,
                                  struct tn_err *err)
{
    return is_overwrite(snapshot) ? keep_names(e, snapshot, err) : TN_OK;
}

static tn_rc collect_names(struct expire *e, struct tn_err *err)
{
    e->name_count = 0;
    tn_rc rc = each_keeper(e, count_names, err);
    if (rc == TN_OK) {
        rc = each_overwrite(e, count_overwrite, err);
    }
    if (rc == TN_OK) {
        rc = tn_set_init(&e->names, e->name_count, &e->worker->arena, err);
    }
    if (rc == TN_OK) {
        rc = each_keeper(e, keep_names, err);
    }
    if (rc == TN_OK) {
        rc = each_overwrite(e, keep_overwrite_names, err);
    }
    return rc;
}

/* A name that is gone joins the set while there is room, to be asked for once. */
static void remove_metadata(struct expire *e, const char *dir, const char *name)
{
    struct tn_arena *arena = &e->worker->arena;
    if (!name || tn_set_has(&e->names, name_hash(name))) {
        return;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, dir, name);
    e->result->metadata_files += remove_path(e, path) ? 1 : 0;
    tn_arena_reset(arena, mark);
    bool noted = tn_set_add(&e->names, name_hash(name));
    (void)noted;
}

static tn_rc remove_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    remove_metadata(user, TN_DIR_MANIFEST, meta->file_name);
    return TN_OK;
}

static tn_rc remove_lists(struct expire *e, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct list lists[LIST_COUNT];
    tn_rc rc = TN_OK;
    lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < LIST_COUNT; i++) {
        rc = forgive(each_list_meta(e, &lists[i], remove_manifest, err));
    }
    for (int i = 0; rc == TN_OK && i < LIST_COUNT; i++) {
        remove_metadata(e, TN_DIR_MANIFEST, lists[i].name);
    }
    remove_metadata(e, TN_DIR_MANIFEST, snapshot->index_manifest);
    remove_metadata(e, TN_DIR_STATISTICS, snapshot->statistics);
    return rc;
}

static tn_rc remove_snapshots(struct expire *e, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    for (int64_t id = e->oldest; id < e->end; id++) {
        size_t mark = tn_arena_mark(arena);
        const char *path = tn_name_numbered(arena, e->spec->root, TN_DIR_SNAPSHOT, "snapshot-", id);
        if (!path) {
            return no_room(err);
        }
        e->result->snapshots += remove_path(e, path) ? 1 : 0;
        tn_arena_reset(arena, mark);
    }
    return TN_OK;
}

/* ---- */

/* EARLIEST is durable before the first file goes. */
static tn_rc move_earliest(struct expire *e, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    if (e->spec->dry_run) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_snapshot_hint(io, e->spec->root, "EARLIEST", e->kept, arena, err);
    if (rc == TN_OK) {
        const char *paths[] = {tn_name_in(arena, e->spec->root, TN_DIR_SNAPSHOT, "EARLIEST"),
                               tn_name_in(arena, e->spec->root, TN_DIR_SNAPSHOT, "")};
        rc = paths[0] && paths[1] ? io->vtable->sync(io, paths, 2, err) : no_room(err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc remove_all(struct expire *e, struct tn_err *err)
{
    tn_rc rc = move_earliest(e, err);
    if (rc == TN_OK) {
        e->result->earliest_id = e->kept;
        rc = remove_data(e, err);
    }
    for (int64_t id = e->oldest; rc == TN_OK && id < e->end; id++) {
        rc = with_snapshot(e, id, remove_lists, err);
    }
    return rc == TN_OK ? remove_snapshots(e, err) : rc;
}

/* All that can fail for good reason comes before the first removal. */
static tn_rc look(struct expire *e, struct tn_err *err)
{
    tn_rc rc = fit_files(e, err);
    e->kept = larger(e->end, e->first);
    if (rc == TN_OK) {
        rc = list_folder(e, TN_DIR_TAG, note_tag, e, err);
    }
    if (rc == TN_OK) {
        rc = look_for_overwrite(e, err);
    }
    if (rc == TN_OK) {
        rc = collect_files(e, err);
    }
    return rc == TN_OK ? collect_names(e, err) : rc;
}

static tn_rc check_supported(const struct tn_schema *schema, struct tn_err *err)
{
    static const char *const keys[] = {"changelog.num-retained.min", "changelog.num-retained.max",
                                       "changelog.time-retained"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (tn_schema_option(schema, keys[i])) {
            return tn_err_set(err, TN_UNSUPPORTED, 0, "changelogs kept longer than snapshots: %s",
                              keys[i]);
        }
    }
    return TN_OK;
}

static tn_rc run(struct expire *e, struct tn_err *err)
{
    tn_rc rc = check_supported(e->spec->schema, err);
    if (rc == TN_OK) {
        rc = choose_range(e, err);
    }
    if (rc == TN_ABSENT) {
        return TN_OK; /* no snapshot */
    }
    if (rc != TN_OK) {
        return rc;
    }
    e->result->earliest_id = e->first;
    if (e->end <= e->oldest) {
        return TN_OK;
    }
    rc = look(e, err);
    return rc == TN_OK ? remove_all(e, err) : rc;
}

tn_rc tn_expire(const struct tn_expire_spec *spec, struct tn_worker *worker,
                struct tn_expire_result *result, struct tn_err *err)
{
    struct expire expire = {.spec = spec, .worker = worker, .result = result};
    size_t mark = tn_arena_mark(&worker->arena);
    *result = (struct tn_expire_result){0};
    tn_rc rc = run(&expire, err);
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "expire %s", spec->root);
}
