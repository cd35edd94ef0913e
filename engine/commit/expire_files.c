#include "commit/expire_private.h"

#include "file/names.h"

enum {
    READ_RESERVE = 512 * 1024
}; /* what streaming the live files of a snapshot takes beside the sets */

struct tn_hash_128 tn_expire_path_hash(const struct tn_entry *entry)
{
    uint64_t bucket = (uint32_t)entry->bucket;
    struct tn_bytes name = tn_bytes_of(entry->file.file_name);
    return (struct tn_hash_128){tn_hash_64(name, tn_hash_64(entry->partition, bucket)),
                                tn_hash_64(name, tn_hash_64(entry->partition, ~bucket))};
}

tn_rc tn_expire_each_delta_entry(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                                 tn_live_fn *each, struct tn_err *err)
{
    return tn_expire_forgive(tn_list_each(e->spec->root, snapshot->delta_manifest_list,
                                          tn_manifest_size(snapshot->delta_manifest_list_size),
                                          NULL, e->worker, each, e, err));
}

void tn_expire_note_bucket(struct tn_expire_run *e, const struct tn_entry *entry)
{
    e->bucket_min = entry->bucket < e->bucket_min ? entry->bucket : e->bucket_min;
    e->bucket_max = entry->bucket > e->bucket_max ? entry->bucket : e->bucket_max;
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

static tn_rc count_deletes(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                           struct tn_err *err)
{
    struct sum sum = {0};
    e->met = true;
    tn_rc rc = tn_list_each_meta(e->spec->root, snapshot->delta_manifest_list,
                                 tn_manifest_size(snapshot->delta_manifest_list_size), e->worker,
                                 sum_meta, &sum, err);
    e->name_count += sum.count;
    return tn_expire_forgive(rc);
}

static tn_rc sum_added(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct sum *sum = user;
    sum->count += meta->added_count > 0 ? (uint64_t)meta->added_count & INT32_MAX : 0;
    return TN_OK;
}

/* As many are live at the most. */
static tn_rc count_live(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                        struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    struct sum sum = {0};
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT - 1; i++) {
        rc = tn_list_each_meta(e->spec->root, lists[i].name, lists[i].size, e->worker, sum_added,
                               &sum, err);
    }
    e->name_count += sum.count;
    return tn_expire_forgive(rc);
}

/* After a cut the oldest one's delta may name files whose unlink never reached the medium. */
static int64_t first_delta(const struct tn_expire_run *e)
{
    return e->oldest < e->first ? e->oldest : e->oldest + 1;
}

/* What a snapshot had that the next has not, the next one's delta says. Where ids are missing (a
 * mirror that its source has outrun) nobody's does, so all that was live in front of them is looked
 * at. */
static tn_rc with_gap(struct tn_expire_run *e, int64_t id, int64_t *before,
                      tn_expire_snapshot_fn *delta, tn_expire_snapshot_fn *live, struct tn_err *err)
{
    e->met = false;
    tn_rc rc = tn_expire_with_snapshot(e, id, delta, err);
    if (rc == TN_OK && e->met) {
        rc = *before < id - 1 ? tn_expire_with_snapshot(e, *before, live, err) : TN_OK;
        *before = id;
    }
    return rc;
}

static tn_rc each_delta(struct tn_expire_run *e, tn_expire_snapshot_fn *delta,
                        tn_expire_snapshot_fn *live, struct tn_err *err)
{
    int64_t before = e->oldest;
    tn_rc rc = TN_OK;
    for (int64_t id = first_delta(e); rc == TN_OK && id <= e->end; id++) {
        rc = with_gap(e, id, &before, delta, live, err);
    }
    return rc;
}

struct fit {
    int64_t from;
    int64_t to;
    bool records; /* of long-lived changelogs */
};

static tn_rc count(struct tn_expire_run *e, const struct fit *fit, int64_t id, int64_t *before,
                   struct tn_err *err)
{
    return fit->records ? tn_expire_with_record(e, id, count_deletes, err)
                        : with_gap(e, id, before, count_deletes, count_live, err);
}

size_t tn_expire_room(const struct tn_expire_run *e)
{
    size_t room = tn_arena_free(&e->worker->arena);
    return room > READ_RESERVE ? room - READ_RESERVE : room / 4;
}

/* Sizes the set of files, and lets the run end earlier where it doesn't fit: with the one before it
 * that is there, or, of records, with the one that doesn't fit. */
static tn_rc fit(struct tn_expire_run *e, const struct fit *fit, struct tn_err *err)
{
    size_t room = tn_expire_room(e);
    uint64_t fitting = 0;
    int64_t before = e->oldest;
    e->name_count = 0;
    for (int64_t id = fit->from; id <= fit->to; id++) {
        int64_t stays = fit->records ? id : before;
        tn_rc rc = count(e, fit, id, &before, err);
        if (rc != TN_OK) {
            return rc;
        }
        if (tn_set_size(e->name_count) > room && stays > e->oldest) {
            e->end = stays;
            break;
        }
        fitting = e->name_count;
    }
    return tn_set_init(&e->files, fitting, &e->worker->arena, err);
}

/* The delta of the first snapshot that stays says what the last one that goes had. */
tn_rc tn_expire_fit_files(struct tn_expire_run *e, struct tn_err *err)
{
    struct fit all = {first_delta(e), e->end, false};
    return fit(e, &all, err);
}

tn_rc tn_expire_fit_records(struct tn_expire_run *e, struct tn_err *err)
{
    struct fit all = {e->oldest, e->end - 1, true};
    return fit(e, &all, err);
}

/* What came by a flush is a changelog, too, which goes later; one that doesn't say what it came by
 * is taken for such. Source: Paimon, SnapshotDeletion.planDeletedInDeltaManifest. */
static bool tells(const struct tn_expire_run *e, const struct tn_entry *entry)
{
    bool appended = !entry->file.file_source.present || entry->file.file_source.value == 0;
    return e->decoupled && e->told_by_deltas && appended;
}

static tn_rc add_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct tn_expire_run *e = user;
    if (entry->file.external_path || tells(e, entry)) {
        return TN_OK;
    }
    if (!tn_set_add(&e->files, tn_expire_path_hash(entry))) {
        return tn_err_set(err, TN_CORRUPT, 0, "more DELETE entries than the manifest lists say");
    }
    tn_expire_note_bucket(e, entry);
    return TN_OK;
}

static tn_rc add_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    return entry->kind == TN_ENTRY_DELETE ? add_live(user, entry, err) : TN_OK;
}

static tn_rc add_files(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                       struct tn_err *err)
{
    e->met = true;
    return tn_expire_each_delta_entry(e, snapshot, add_file, err);
}

static tn_rc each_live(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                       tn_live_fn *each, struct tn_err *err)
{
    return tn_expire_forgive(
        tn_live_each(e->spec->root, snapshot, e->spec->schema, NULL, e->worker, each, e, err));
}

static tn_rc add_all_live(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                          struct tn_err *err)
{
    return each_live(e, snapshot, add_live, err);
}

static tn_rc keep_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct tn_expire_run *e = user;
    bool candidate = tn_set_mark(&e->files, tn_expire_path_hash(entry), true);
    (void)candidate;
    return TN_OK;
}

tn_rc tn_expire_mark_added(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    return entry->kind == TN_ENTRY_ADD ? keep_file(user, entry, err) : TN_OK;
}

static bool may_hold_files(void *user, const struct tn_manifest_meta *meta)
{
    const struct tn_expire_run *e = user;
    return !(meta->max_bucket.present && meta->max_bucket.value < e->bucket_min) &&
           !(meta->min_bucket.present && meta->min_bucket.value > e->bucket_max);
}

tn_rc tn_expire_keep_live(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                          struct tn_err *err)
{
    struct tn_live_filter filter = {.manifest = may_hold_files, .user = e};
    return tn_live_each(e->spec->root, snapshot, e->spec->schema, &filter, e->worker, keep_file, e,
                        err);
}

tn_rc tn_expire_collect_files(struct tn_expire_run *e, struct tn_err *err)
{
    e->bucket_min = INT32_MAX;
    e->bucket_max = INT32_MIN;
    tn_rc rc = each_delta(e, add_files, add_all_live, err);
    if (rc == TN_OK && e->files.count > 0) {
        rc = tn_expire_each_keeper(e, tn_expire_keep_live, err);
    }
    return rc;
}

static void remove_in(struct tn_expire_run *e, const char *dir, const char *name, uint32_t *count)
{
    struct tn_arena *arena = &e->worker->arena;
    size_t mark = tn_arena_mark(arena);
    *count += tn_expire_remove_path(e, tn_arena_format(arena, "%s%s", dir, name)) ? 1 : 0;
    tn_arena_reset(arena, mark);
}

static tn_rc remove_file(struct tn_expire_run *e, const struct tn_entry *entry, struct tn_err *err)
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
    return tn_expire_forgive(rc);
}

tn_rc tn_expire_remove_candidate(struct tn_expire_run *e, const struct tn_entry *entry,
                                 struct tn_err *err)
{
    struct tn_hash_128 hash = tn_expire_path_hash(entry);
    if (!tn_set_has(&e->files, hash) || tn_set_marked(&e->files, hash)) {
        return TN_OK;
    }
    bool known = tn_set_mark(&e->files, hash, true);
    (void)known;
    return remove_file(e, entry, err);
}

tn_rc tn_expire_remove_deleted(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    bool ours = entry->kind == TN_ENTRY_DELETE && !entry->file.external_path;
    return ours ? tn_expire_remove_candidate(user, entry, err) : TN_OK;
}

static tn_rc remove_files(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                          struct tn_err *err)
{
    e->met = true;
    return tn_expire_each_delta_entry(e, snapshot, tn_expire_remove_deleted, err);
}

static tn_rc remove_live(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    return entry->file.external_path ? TN_OK : tn_expire_remove_candidate(user, entry, err);
}

static tn_rc remove_all_live(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                             struct tn_err *err)
{
    return each_live(e, snapshot, remove_live, err);
}

static tn_rc remove_added(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    bool ours = entry->kind == TN_ENTRY_ADD && !entry->file.external_path;
    return ours ? remove_file(user, entry, err) : TN_OK;
}

tn_rc tn_expire_remove_changelog(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                                 struct tn_err *err)
{
    if (!snapshot->changelog_manifest_list) {
        return TN_OK;
    }
    return tn_expire_forgive(tn_list_each(e->spec->root, snapshot->changelog_manifest_list,
                                          tn_manifest_size(snapshot->changelog_manifest_list_size),
                                          NULL, e->worker, remove_added, e, err));
}

tn_rc tn_expire_remove_data(struct tn_expire_run *e, struct tn_err *err)
{
    tn_rc rc = each_delta(e, remove_files, remove_all_live, err);
    for (int64_t id = e->oldest; rc == TN_OK && !e->decoupled && id < e->end; id++) {
        rc = tn_expire_with_snapshot(e, id, tn_expire_remove_changelog, err);
    }
    return rc;
}
