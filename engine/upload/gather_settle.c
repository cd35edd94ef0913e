/* Whether entries that were found again are in the table: by their first file, live or added. */
#include "upload/gather_private.h"

#include "commit/live.h"

struct search {
    struct tn_gather_run *run;
    bool newer; /* what is looked through is what the newest snapshot adds */
    bool gap;   /* a snapshot that may hold them is gone */
};

static bool is_open(const struct tn_gather_entry *entry)
{
    return entry->verdict == TN_GATHER_MAYBE || entry->verdict == TN_GATHER_LATE;
}

/* What was taken out again was in, also where somebody wrote over the snapshot that brought it. */
static tn_rc note_found(void *user, const struct tn_entry *file, struct tn_err *err)
{
    const struct search *search = user;
    struct tn_gather_run *run = search->run;
    (void)err;
    for (uint32_t i = 0; i < run->count; i++) {
        struct tn_gather_entry *entry = &run->entries[i];
        /* data files and changelog files are one array */
        bool better = entry->verdict == TN_GATHER_FOUND && !search->newer;
        if ((is_open(entry) || better) &&
            strcmp(entry->committable.added[0].file.file_name, file->file.file_name) == 0) {
            entry->verdict = search->newer ? TN_GATHER_FOUND : TN_GATHER_KNOWN;
        }
    }
    return TN_OK;
}

static tn_rc search_lists(struct search *search, const struct tn_snapshot *snapshot, bool base,
                          struct tn_err *err)
{
    const struct tn_gather_spec *spec = &search->run->gather->spec;
    struct tn_list lists[TN_LIST_COUNT];
    tn_rc rc = TN_OK;
    tn_lists_of(snapshot, lists);
    for (int i = base ? 0 : 1; rc == TN_OK && i < TN_LIST_COUNT; i++) {
        search->newer = base && i > 0;
        if (lists[i].name) {
            rc = tn_list_each(spec->table.root, lists[i].name, lists[i].size, NULL, spec->worker,
                              note_found, search, err);
        }
    }
    return rc;
}

static tn_rc search_snapshot(struct search *search, int64_t id, struct tn_err *err)
{
    struct tn_worker *worker = search->run->gather->spec.worker;
    struct tn_snapshot snapshot;
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = tn_snapshot_read(worker->io, search->run->gather->spec.table.root, id,
                                &worker->arena, &snapshot, err);
    if (rc == TN_OK) {
        rc = search_lists(search, &snapshot, id == search->run->newest, err);
    }
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_ABSENT) { /* it has expired, or is going to */
        search->gap = true;
        return id == search->run->newest ? tn_err_set(err, TN_CONFLICT, 0, "the table went on")
                                         : TN_OK;
    }
    return rc;
}

static void say_unknown(struct tn_gather_run *run, struct tn_gather_entry *entry)
{
    struct tn_err err;
    (void)tn_err_set(&err, TN_INVALID, 0, "%s",
                     entry->verdict == TN_GATHER_LATE
                         ? "an entry of this id, or a later one of this gateway, was gathered "
                           "before; whether these files were, too, can't be told"
                         : "a gather that was to commit it ended, and the snapshots that would "
                           "tell whether it did have expired");
    tn_gather_refuse(run, entry, &err);
}

tn_rc tn_gather_settle(struct tn_gather_run *run, struct tn_err *err)
{
    struct search search = {.run = run};
    uint32_t open = 0;
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; i < run->count; i++) {
        open += is_open(&run->entries[i]);
    }
    if (open == 0) {
        return TN_OK;
    }
    int64_t first = run->gather->marks.after + 1;
    for (int64_t id = run->newest; rc == TN_OK && id > 0 && (id >= first || id == run->newest);
         id--) {
        rc = search_snapshot(&search, id, err);
    }
    for (uint32_t i = 0; rc == TN_OK && i < run->count; i++) {
        struct tn_gather_entry *entry = &run->entries[i];
        if (entry->verdict == TN_GATHER_LATE || (is_open(entry) && search.gap)) {
            say_unknown(run, entry);
        } else if (is_open(entry)) {
            entry->verdict = TN_GATHER_NEW;
            run->searched = true;
        }
    }
    return rc;
}
