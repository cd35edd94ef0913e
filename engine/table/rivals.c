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

static tn_rc note_entry(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct tn_rivals *rivals = user;
    uint64_t name = tn_bucket_name(entry->partition, entry->bucket);
    if (tn_rivals_have_one(rivals, name)) {
        return TN_OK;
    }
    if (rivals->count == TN_RIVALS_MAX) {
        rivals->all = true;
        return TN_OK;
    }
    rivals->names[rivals->count++] = name;
    return TN_OK;
}

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

tn_rc tn_rivals_see(void *user, const struct tn_snapshot *snapshot, bool published,
                    struct tn_worker *worker, struct tn_err *err)
{
    struct tn_rivals *rivals = user;
    if (!snapshot) {
        rivals->all = true;
    } else if (changes_rows(snapshot)) {
        note_snapshot(rivals, snapshot, worker);
    }
    if (published || !tn_rivals_have(rivals, rivals->resolved)) {
        return TN_OK;
    }
    return tn_rivals_refuse(rivals, err);
}
