#include "upload/delta_private.h"

#include "file/names.h"

/* ---- counting, for the set's size ---- */

struct count {
    uint64_t manifests;
    uint64_t deleted;
};

static tn_rc count_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct count *count = user;
    count->manifests++;
    count->deleted += meta->deleted_count > 0 ? (uint64_t)meta->deleted_count : 0;
    return TN_OK;
}

static tn_rc count_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)entry;
    (void)err;
    ++*(uint64_t *)user;
    return TN_OK;
}

/* Those of `before`, where the snapshot has others: the same manifest stands for all of them. */
static tn_rc each_index(struct tn_delta *d, const struct tn_snapshot *before,
                        const struct tn_snapshot *snapshot, tn_index_fn *each, void *user,
                        struct tn_err *err)
{
    const char *was = before->index_manifest;
    const char *is = snapshot->index_manifest;
    return was && is && strcmp(was, is) != 0
               ? tn_index_each(d->root, was, d->worker, each, user, err)
               : TN_OK;
}

static tn_rc each_list(struct tn_delta *d, const struct tn_snapshot *snapshot,
                       tn_list_meta_fn *each, void *user, struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = 0; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        if (lists[i].name) {
            rc = tn_list_each_meta(d->root, lists[i].name, lists[i].size, d->worker, each, user,
                                   err);
        }
    }
    return rc;
}

static tn_rc count_all(struct tn_delta *d, const struct tn_snapshot *before,
                       const struct tn_snapshot *snapshot, uint64_t *count, struct tn_err *err)
{
    struct count names = {0};
    struct count moved = {0};
    tn_rc rc = each_list(d, before, count_manifest, &names, err);
    if (rc == TN_OK) {
        rc = tn_list_each_meta(d->root, snapshot->delta_manifest_list,
                               tn_manifest_size(snapshot->delta_manifest_list_size), d->worker,
                               count_manifest, &moved, err);
    }
    *count = names.manifests + TN_LIST_COUNT + 2 + moved.deleted;
    return rc == TN_OK ? each_index(d, before, snapshot, count_index, count, err) : rc;
}

/* ---- names ---- */

static void add(struct tn_delta *d, const char *name)
{
    bool added = !name || tn_set_add(&d->there, tn_hash_128(tn_bytes_of(name)));
    d->ask = d->ask || !added; /* statistics that lie: the set is too small */
}

static tn_rc add_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    add(user, meta->file_name);
    return TN_OK;
}

static tn_rc add_index(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    (void)err;
    add(user, entry->file_name);
    return TN_OK;
}

/* What is lifted to another level is deleted and added under one name. */
static tn_rc add_deleted(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    if (entry->kind == TN_ENTRY_DELETE) {
        add(user, entry->file.file_name);
    }
    return TN_OK;
}

static tn_rc add_all(struct tn_delta *d, const struct tn_snapshot *before,
                     const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_list lists[TN_LIST_COUNT];
    tn_lists_of(before, lists);
    for (int i = 0; i < TN_LIST_COUNT; i++) {
        add(d, lists[i].name);
    }
    add(d, before->statistics);
    add(d, before->index_manifest);
    tn_rc rc = each_list(d, before, add_manifest, d, err);
    if (rc == TN_OK) {
        rc = each_index(d, before, snapshot, add_index, d, err);
    }
    if (rc == TN_OK) {
        rc = tn_list_each(d->root, snapshot->delta_manifest_list,
                          tn_manifest_size(snapshot->delta_manifest_list_size), NULL, d->worker,
                          add_deleted, d, err);
    }
    return rc;
}

static tn_rc know(struct tn_delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_snapshot before;
    uint64_t count;
    tn_rc rc = tn_snapshot_read(d->worker->io, d->root, snapshot->id - 1, arena, &before, err);
    if (rc == TN_OK) {
        rc = count_all(d, &before, snapshot, &count, err);
    }
    if (rc == TN_OK) {
        rc = tn_set_init(&d->there, count, arena, err);
    }
    return rc == TN_OK ? add_all(d, &before, snapshot, err) : rc;
}

/* What isn't known is asked for. That the snapshot's own list is gone is found again, and said, by
 * who sends it. */
tn_rc tn_delta_know(struct tn_delta *d, const struct tn_snapshot *snapshot, struct tn_err *err)
{
    d->there = (struct tn_set){0};
    if (d->ledger.have == 0 || d->ledger.have != snapshot->id - 1) {
        return TN_OK;
    }
    tn_rc rc = know(d, snapshot, err);
    if (rc == TN_ABSENT || rc == TN_CORRUPT || rc == TN_AGAIN) {
        d->ask = true;
        rc = TN_OK;
    }
    return rc;
}

bool tn_delta_is_there(const struct tn_delta *d, const char *name)
{
    return d->there.slot_count > 0 && tn_set_has(&d->there, tn_hash_128(tn_bytes_of(name)));
}
