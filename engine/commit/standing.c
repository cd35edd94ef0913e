#include "commit/standing.h"

#include <string.h>

#include "file/names.h"

struct search {
    const struct tn_standing_spec *spec;
    bool named;   /* a manifest of its commit is */
    int64_t live; /* ADD entries of its file less DELETE entries */
};

static tn_rc look_for_uuid(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct search *search = user;
    search->named = search->named || strstr(meta->file_name, search->spec->manifest_uuid);
    return TN_OK;
}

static tn_rc look_for_file(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct search *search = user;
    const struct tn_standing_spec *spec = search->spec;
    if (entry->file.level == spec->level && strcmp(entry->file.file_name, spec->file_name) == 0) {
        search->live += entry->kind == TN_ENTRY_ADD ? 1 : -1;
    }
    return TN_OK;
}

bool tn_standing_goes_on_without(const struct tn_standing_spec *spec,
                                 const struct tn_snapshot *next, struct tn_worker *worker)
{
    struct search search = {.spec = spec};
    struct tn_live_filter all = {0};
    struct tn_list lists[TN_LIST_COUNT];
    struct tn_err ignored;
    tn_lists_of(next, lists);
    tn_rc rc = tn_list_each_meta(spec->root, lists[0].name, lists[0].size, worker, look_for_uuid,
                                 &search, &ignored);
    if (rc != TN_OK || search.named || !spec->file_name) {
        return rc == TN_OK && !search.named;
    }
    rc = tn_list_each(spec->root, lists[0].name, lists[0].size, &all, worker, look_for_file,
                      &search, &ignored);
    return rc == TN_OK && (search.live > 0) != spec->given;
}

static bool is_gone(const struct tn_standing_spec *spec, int64_t id, struct tn_worker *worker)
{
    struct tn_err ignored;
    uint64_t size;
    const char *path =
        tn_name_numbered(&worker->arena, spec->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    return path && worker->io->vtable->stat(worker->io, path, &size, &ignored) == TN_ABSENT;
}

/* OK with what the one behind says; ABSENT: there is none. */
static tn_rc ask_next(const struct tn_standing_spec *spec, struct tn_worker *worker,
                      enum tn_standing *where)
{
    struct tn_snapshot next;
    struct tn_err ignored;
    tn_rc rc =
        tn_snapshot_read(worker->io, spec->root, spec->id + 1, &worker->arena, &next, &ignored);
    if (rc == TN_OK) {
        *where = tn_standing_goes_on_without(spec, &next, worker) ? TN_STRAY : TN_STANDS;
    }
    return rc;
}

/* Snapshots expire from the oldest on, and are rolled back from the newest on. While the one before
 * is there, ours has no name that was given before and taken away; where the one behind is gone
 * and a newer one is not, it can't be there, if it was not given later. The one behind is looked
 * for before the newest, and again: it may have come in between, on top of ours. */
enum tn_standing tn_standing(const struct tn_standing_spec *spec, struct tn_worker *worker)
{
    int64_t newest;
    struct tn_err ignored;
    enum tn_standing where = TN_STANDS;
    if (!is_gone(spec, spec->id - 1, worker) || ask_next(spec, worker, &where) != TN_ABSENT) {
        return where;
    }
    bool passed =
        tn_snapshot_latest(worker->io, spec->root, &worker->arena, &newest, &ignored) == TN_OK &&
        newest > spec->id;
    return passed && ask_next(spec, worker, &where) == TN_ABSENT ? TN_STRAY_IF_THERE : where;
}
