#include "table/rivals.h"

#include <inttypes.h>
#include <stdio.h>

#include "table/bucket.h"

bool tn_rivals_have_one(const struct tn_rivals *rivals, uint64_t bucket)
{
    bool found = rivals->all;
    for (uint32_t i = 0; !found && i < rivals->count; i++) {
        found = rivals->names[i] == bucket;
    }
    return found;
}

bool tn_rivals_have(const struct tn_rivals *rivals, const struct tn_round_bucket *buckets)
{
    bool found = false;
    for (; !found && buckets; buckets = buckets->next) {
        found = tn_rivals_have_one(rivals, buckets->name);
    }
    return found;
}

static void note_bucket(struct tn_rivals *rivals, uint64_t name)
{
    if (tn_rivals_have_one(rivals, name)) {
        return;
    }
    if (rivals->count == rivals->most) {
        rivals->all = true;
        return;
    }
    rivals->names[rivals->count++] = name;
}

static tn_rc note_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    note_bucket(user, tn_bucket_name(entry->partition, entry->bucket));
    return TN_OK;
}

/* ---- snapshots that are there ---- */

/* Compactions and statistics leave all rows as they are. */
static bool changes_rows(const struct tn_snapshot *snapshot)
{
    return strcmp(snapshot->commit_kind, "COMPACT") != 0 &&
           strcmp(snapshot->commit_kind, "ANALYZE") != 0;
}

/* A delta that is gone, or can't be read, may have changed anything. */
static void note_snapshot(struct tn_rivals *rivals, const struct tn_snapshot *snapshot,
                          struct tn_worker *worker)
{
    struct tn_live_filter filter = {0};
    struct tn_err ignored;
    struct tn_list lists[TN_LIST_COUNT];
    size_t mark = tn_arena_mark(&worker->arena);
    tn_lists_of(snapshot, lists);
    tn_rc rc = lists[1].name ? tn_list_each(rivals->root, lists[1].name, lists[1].size, &filter,
                                            worker, note_entry, rivals, &ignored)
                             : TN_OK;
    rivals->all = rivals->all || rc != TN_OK;
    rivals->id = snapshot->id;
    tn_arena_reset(&worker->arena, mark);
}

/* ---- snapshots of which a manifest is left ---- */

enum { GONE_MAX = 1024, SOURCE_COMPACT = 1 };

struct rival_bucket {
    uint64_t name;
    uint32_t gave; /* files, those that were moved, too */
    bool foul;     /* something that no compaction does */
    int64_t rows;  /* of the files it took, less those that it gave */
    int64_t newest;
};

struct rival_file {
    uint64_t bucket;
    uint64_t name;
};

/* What one snapshot did, bucket by bucket. */
struct rival_work {
    struct tn_rivals *rivals;
    struct rival_bucket *buckets; /* TN_RIVALS_MAX */
    struct rival_file *gone;      /* GONE_MAX */
    uint32_t bucket_count;
    uint32_t gone_count;
};

static struct rival_bucket *bucket_of(struct rival_work *work, uint64_t name)
{
    uint32_t i = 0;
    while (i < work->bucket_count && work->buckets[i].name != name) {
        i++;
    }
    if (i == TN_RIVALS_MAX) {
        return NULL;
    }
    if (i == work->bucket_count) {
        work->buckets[work->bucket_count++] = (struct rival_bucket){.name = name, .newest = -1};
    }
    return &work->buckets[i];
}

static bool is_gone(const struct rival_work *work, uint64_t bucket, uint64_t name)
{
    uint32_t i = 0;
    while (i < work->gone_count && (work->gone[i].bucket != bucket || work->gone[i].name != name)) {
        i++;
    }
    return i < work->gone_count;
}

static bool take(struct rival_work *work, struct rival_bucket *bucket,
                 const struct tn_file_meta *file, uint64_t name)
{
    if (work->gone_count == GONE_MAX) {
        return false;
    }
    work->gone[work->gone_count++] = (struct rival_file){bucket->name, name};
    bool counts = file->row_count <= INT64_MAX - bucket->rows; /* else nobody has them */
    bucket->foul = bucket->foul || !counts;
    bucket->rows += counts ? file->row_count : 0;
    bucket->newest = file->max_sequence > bucket->newest ? file->max_sequence : bucket->newest;
    return true;
}

/* Files that came with rows say so, in all levels, and an overwrite's do. Compactions give files of
 * their own, of rows that they took, or move one. */
static void give(const struct rival_work *work, struct rival_bucket *bucket,
                 const struct tn_file_meta *file, uint64_t name)
{
    bool made = file->file_source.present && file->file_source.value == SOURCE_COMPACT;
    bool known = file->row_count >= 0 && file->row_count <= bucket->rows &&
                 file->max_sequence <= bucket->newest;
    bucket->foul = bucket->foul || !known || !(made || is_gone(work, bucket->name, name));
    bucket->rows -= known ? file->row_count : 0;
    bucket->gave++;
}

/* In a manifest of a compaction what it takes stands before what it gives. */
static tn_rc judge_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct rival_work *work = user;
    uint64_t file = tn_hash_64(tn_bytes_of(entry->file.file_name), 0);
    struct rival_bucket *bucket = bucket_of(work, tn_bucket_name(entry->partition, entry->bucket));
    if (bucket && entry->kind == TN_ENTRY_ADD) {
        give(work, bucket, &entry->file, file);
    } else if (!bucket || !take(work, bucket, &entry->file, file)) {
        work->rivals->all = true;
    }
    return TN_OK;
}

/* That takes alone may be a compaction whose rows are all gone, or a partition was dropped. */
static void note_work(const struct rival_work *work)
{
    for (uint32_t i = 0; i < work->bucket_count; i++) {
        const struct rival_bucket *bucket = &work->buckets[i];
        if (bucket->foul || bucket->gave == 0) {
            note_bucket(work->rivals, bucket->name);
        }
    }
}

static void note_manifest(struct tn_rivals *rivals, const struct tn_foreign *foreign,
                          struct tn_worker *worker)
{
    struct tn_err ignored;
    struct tn_arena *arena = &worker->arena;
    size_t mark = tn_arena_mark(arena);
    uint32_t known = rivals->count;
    struct rival_work work = {
        .rivals = rivals,
        .buckets = tn_arena_take(arena, TN_RIVALS_MAX * sizeof *work.buckets),
        .gone = tn_arena_take(arena, GONE_MAX * sizeof *work.gone),
    };
    tn_rc rc = TN_AGAIN;
    if (work.buckets && work.gone) {
        rc =
            tn_manifest_each(rivals->root, foreign->manifest, worker, judge_entry, &work, &ignored);
        note_work(&work);
    }
    rivals->all = rivals->all || rc != TN_OK;
    rivals->id = rivals->count > known ? foreign->id : rivals->id;
    tn_arena_reset(arena, mark);
}

/* ---- */

tn_rc tn_rivals_refuse(const struct tn_rivals *rivals, struct tn_err *err)
{
    char who[64] = "a snapshot of another writer";
    if (!rivals->all) { /* else it need not be the last one that was looked at */
        (void)snprintf(who, sizeof who, "snapshot %" PRId64 " of another writer", rivals->id);
    }
    return tn_err_set(err, TN_CONFLICT, 0,
                      "%s changed rows of a bucket whose rows were resolved beside what was there "
                      "before; nothing after the last committed position was kept: open the table "
                      "again, and put the rows after it again",
                      who);
}

tn_rc tn_rivals_see(void *user, const struct tn_foreign *foreign, struct tn_worker *worker,
                    struct tn_err *err)
{
    struct tn_rivals *rivals = user;
    if (foreign->snapshot) {
        if (changes_rows(foreign->snapshot)) {
            note_snapshot(rivals, foreign->snapshot, worker);
        }
    } else if (foreign->manifest) {
        note_manifest(rivals, foreign, worker);
    } else {
        rivals->all = true;
    }
    if (foreign->published || !tn_rivals_have(rivals, rivals->resolved)) {
        return TN_OK;
    }
    return tn_rivals_refuse(rivals, err);
}
