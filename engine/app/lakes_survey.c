#include <string.h>

#include "app/lakes_private.h"
#include "base/wait.h"
#include "commit/live.h"
#include "commit/set.h"

enum {
    SNAPSHOTS = 8,        /* a task, so that no commit waits for long */
    RETRY_MS = 30 * 1000, /* after one that can't be read */
};

/* ---- one snapshot ---- */

struct looking {
    struct tn_lakes_tally *tally;
    struct tn_set deleted; /* names; empty where they don't fit: then what moved counts as new */
    uint64_t deleted_count;
    bool shared; /* only files travel, and only those that were appended */
};

static tn_rc add_manifest(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    struct looking *l = user;
    (void)err;
    l->tally->bytes += meta->file_size > 0 && !l->shared ? (uint64_t)meta->file_size : 0;
    l->deleted_count += meta->deleted_count > 0 ? (uint64_t)meta->deleted_count : 0;
    return TN_OK;
}

static tn_rc note_deleted(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct looking *l = user;
    (void)err;
    if (entry->kind == TN_ENTRY_DELETE) {
        bool fits = l->deleted.slot_count > 0 &&
                    tn_set_add(&l->deleted, tn_hash_128(tn_bytes_of(entry->file.file_name)));
        (void)fits;
        l->tally->pinned += (uint64_t)entry->file.file_size;
    }
    return TN_OK;
}

/* What is lifted to another level is deleted and added under one name: it is there, and stays. */
static tn_rc add_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct looking *l = user;
    uint64_t size = (uint64_t)entry->file.file_size;
    (void)err;
    if (entry->kind != TN_ENTRY_ADD) {
        return TN_OK;
    }
    bool moved = l->deleted.slot_count > 0 &&
                 tn_set_has(&l->deleted, tn_hash_128(tn_bytes_of(entry->file.file_name)));
    l->tally->bytes += moved ? 0 : size;
    l->tally->pinned -= moved ? size : 0;
    return TN_OK;
}

static tn_rc add_delta(struct looking *l, const char *root, const struct tn_snapshot *snapshot,
                       struct tn_worker *worker, struct tn_err *err)
{
    const char *list = snapshot->delta_manifest_list;
    int64_t size = tn_manifest_size(snapshot->delta_manifest_list_size);
    l->tally->bytes += size > 0 && !l->shared ? (uint64_t)size : 0;
    tn_rc rc = tn_list_each_meta(root, list, size, worker, add_manifest, l, err);
    if (rc == TN_OK && tn_set_size(l->deleted_count + 1) <= tn_arena_free(&worker->arena) / 2) {
        rc = tn_set_init(&l->deleted, l->deleted_count + 1, &worker->arena, err);
    }
    if (rc == TN_OK) {
        rc = tn_list_each(root, list, size, NULL, worker, note_deleted, l, err);
    }
    return rc == TN_OK ? tn_list_each(root, list, size, NULL, worker, add_file, l, err) : rc;
}

static tn_rc add_changelog(struct looking *l, const char *root, const struct tn_snapshot *snapshot,
                           struct tn_worker *worker, struct tn_err *err)
{
    const char *list = snapshot->changelog_manifest_list;
    int64_t size = tn_manifest_size(snapshot->changelog_manifest_list_size);
    if (!list) {
        return TN_OK;
    }
    uint64_t before = l->tally->bytes;
    tn_rc rc = tn_list_each_meta(root, list, size, worker, add_manifest, l, err);
    if (rc == TN_OK) {
        rc = tn_list_each(root, list, size, NULL, worker, add_file, l, err);
    }
    l->tally->pinned += l->tally->bytes - before;
    return rc;
}

/* One that isn't there (any more) has nothing to be sent. */
static tn_rc add_snapshot(struct tn_lakes_survey *s, int64_t id, struct tn_worker *worker,
                          struct tn_err *err)
{
    struct tn_lakes_tally *tally = &s->tally;
    const char *root = s->mirror->root;
    struct tn_snapshot snapshot;
    struct looking l = {.tally = tally, .shared = s->shared};
    uint64_t before = tally->bytes;
    bool stays = false; /* at home: what is compacted here is none of a shared table's */
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_snapshot_read(worker->io, root, id, &worker->arena, &snapshot, err);
    bool is_there = rc == TN_OK;
    if (is_there) {
        int64_t base = tn_manifest_size(snapshot.base_manifest_list_size);
        bool rows = strcmp(snapshot.commit_kind, "APPEND") == 0;
        stays = s->shared && !rows;
        tally->bytes += base > 0 && !s->shared ? (uint64_t)base : 0;
        tally->rows += rows && snapshot.delta_record_count.value > 0
                           ? (uint64_t)snapshot.delta_record_count.value
                           : 0;
        tally->oldest_ms = tally->oldest_ms > 0 ? tally->oldest_ms : snapshot.time_ms.value;
        rc = add_delta(&l, root, &snapshot, worker, err);
    }
    if (is_there && rc == TN_OK) {
        l.deleted = (struct tn_set){0};
        rc = add_changelog(&l, root, &snapshot, worker, err);
    }
    tally->bytes = stays ? before : tally->bytes;
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* ---- the task ---- */

static tn_rc execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_lakes_survey *s = (struct tn_lakes_survey *)(void *)task;
    tn_rc rc = TN_OK;
    for (int64_t id = s->tally.to + 1; rc == TN_OK && id <= s->to; id++) {
        rc = add_snapshot(s, id, context, err);
    }
    s->tally.to = s->to;
    return rc;
}

/* It may have got some of them meanwhile: then the count begins anew. */
static void complete(struct tn_task *task, tn_rc rc)
{
    struct tn_lakes_survey *s = (struct tn_lakes_survey *)(void *)task;
    struct tn_lakes_mirror *m = s->mirror;
    s->mirror = NULL;
    if (rc == TN_OK && m->tally.from == s->tally.from) {
        m->tally = s->tally;
        m->lake->asks = true;
    } else if (rc != TN_OK) {
        s->retry_ms = tn_lakes_now_ms(s->lakes) + RETRY_MS;
    }
}

static void begin(struct tn_lakes *lakes, struct tn_lakes_mirror *m)
{
    struct tn_lakes_survey *s = &lakes->survey;
    s->task = (struct tn_task){.execute = execute, .complete = complete, .lane = TN_LANE_SHORT};
    s->lakes = lakes;
    s->mirror = m;
    s->tally = m->tally;
    s->shared = m->shared;
    s->to = m->seen_id < m->tally.to + SNAPSHOTS ? m->seen_id : m->tally.to + SNAPSHOTS;
    tn_exec_submit(lakes->spec.env->exec, &s->task);
}

void tn_lakes_survey_turn(struct tn_lakes *lakes, int64_t now_ms, uint32_t *wait_ms)
{
    struct tn_lakes_survey *s = &lakes->survey;
    for (uint32_t i = 0; i < lakes->mirror_count; i++) {
        struct tn_lakes_mirror *m = &lakes->mirrors[i];
        if (m->tally.from != m->have_id + 1) {
            m->tally = (struct tn_lakes_tally){.from = m->have_id + 1, .to = m->have_id};
        }
        bool wants = m->seen_id > m->tally.to && !s->mirror;
        if (wants && now_ms >= s->retry_ms) {
            begin(lakes, m);
        } else if (wants) {
            tn_wait_lower(wait_ms, s->retry_ms - now_ms);
        }
    }
}
