#include "commit/commit.h"

#include <inttypes.h>

#include "commit/attempt.h"
#include "commit/base_list.h"
#include "commit/conflict.h"
#include "commit/publish.h"
#include "commit/standing.h"
#include "file/names.h"

enum { FOREIGN_LOOK_MAX = 64 }; /* snapshots read to see whose they are; more are somebody's */

struct commit {
    const struct tn_commit_spec *spec;
    struct tn_worker *worker;
    struct tn_commit_result *result;
    int64_t seen;          /* the newest id that is no news */
    struct tn_trail trail; /* of the caller's newest, or ours */
    bool synced;           /* spec->sync went through a barrier */
};

/* One attempt at one snapshot. It lives in the worker's arena: it is too large for a worker's
 * stack. */
struct draft {
    struct commit *commit;
    bool compact;
    bool merge;
    bool unknown; /* the disk failed while the name was given: nothing may be removed */
    const struct tn_snapshot *previous; /* or NULL */
    struct tn_snapshot next;
    struct tn_attempt files;
    struct tn_manifest_writer list; /* the delta list */
    struct tn_entry_writer entries;
};

/* ---- the snapshot before ---- */

/* The newest snapshot into the arena; NULL when the table has none. */
static tn_rc read_latest(struct commit *commit, const struct tn_snapshot **latest,
                         struct tn_err *err)
{
    struct tn_worker *worker = commit->worker;
    int64_t id;
    void *snapshot;
    tn_rc rc = tn_snapshot_latest(worker->io, commit->spec->root, &worker->arena, &id, err);
    if (rc == TN_ABSENT) {
        *latest = NULL;
        return TN_OK;
    }
    if (rc == TN_OK) {
        rc =
            tn_arena_need(&worker->arena, sizeof(struct tn_snapshot), "a snapshot", &snapshot, err);
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_read(worker->io, commit->spec->root, id, &worker->arena, snapshot, err);
    }
    if (rc == TN_OK) {
        *latest = snapshot;
    }
    return rc;
}

static tn_rc tell(const struct commit *commit, const struct tn_foreign *foreign, struct tn_err *err)
{
    const struct tn_commit_spec *spec = commit->spec;
    struct tn_foreign told = *foreign;
    commit->result->foreign = true;
    told.published = commit->result->append_id != 0;
    return spec->foreign ? spec->foreign(spec->user_data, &told, commit->worker, err) : TN_OK;
}

/* Snapshots that can't be read any more, and aren't known to be ours. */
struct gap {
    struct commit *commit;
    int64_t first; /* 0: there is none */
    int64_t last;
};

static tn_rc tell_gone(void *user, int64_t id, const struct tn_manifest_meta *manifest,
                       struct tn_err *err)
{
    const struct gap *gap = user;
    struct tn_foreign foreign = {.id = id, .manifest = manifest};
    return id >= gap->first ? tell(gap->commit, &foreign, err) : TN_OK; /* else told before */
}

/* `next`: the first one behind it, or NULL. */
static tn_rc close_gap(struct gap *gap, const struct tn_snapshot *next, struct tn_err *err)
{
    const struct commit *commit = gap->commit;
    const struct tn_trail *trail = &commit->trail;
    struct tn_foreign foreign = {.id = gap->last};
    tn_rc rc;
    if (gap->first == 0) {
        return TN_OK;
    }
    if (!commit->spec->foreign || !next ||
        !tn_trail_each(trail, commit->spec->root, next, commit->spec->options->manifest_target_size,
                       commit->worker, tell_gone, gap, &rc, err)) {
        rc = tell(commit, &foreign, err);
    }
    gap->first = 0;
    return rc;
}

static tn_rc look_at_one(struct gap *gap, int64_t id, struct tn_err *err)
{
    struct commit *commit = gap->commit;
    struct tn_worker *worker = commit->worker;
    struct tn_snapshot snapshot;
    struct tn_err ignored;
    struct tn_foreign foreign = {.id = id, .snapshot = &snapshot};
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc =
        tn_snapshot_read(worker->io, commit->spec->root, id, &worker->arena, &snapshot, &ignored);
    if (rc != TN_OK) {
        gap->first = gap->first > 0 ? gap->first : id;
        gap->last = id;
        rc = TN_OK;
    } else {
        rc = close_gap(gap, &snapshot, err);
        if (rc == TN_OK && strcmp(snapshot.commit_user, commit->spec->user) != 0) {
            rc = tell(commit, &foreign, err);
        }
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

/* Of too many it is enough to know that they are somebody's. */
static tn_rc note_foreign(struct commit *commit, int64_t latest, struct tn_err *err)
{
    struct gap gap = {.commit = commit};
    int64_t id = commit->seen + 1;
    bool all = commit->spec->foreign; /* else one is enough */
    tn_rc rc = TN_OK;
    if (latest - commit->seen > FOREIGN_LOOK_MAX) {
        gap.first = gap.last = latest;
        id = latest + 1;
    }
    for (; rc == TN_OK && id <= latest && (all || !commit->result->foreign); id++) {
        rc = look_at_one(&gap, id, err);
    }
    if (rc == TN_OK) {
        rc = close_gap(&gap, NULL, err);
    }
    if (rc == TN_OK) {
        commit->seen = latest > commit->seen ? latest : commit->seen;
    }
    return rc;
}

/* ---- an attempt: lists ---- */

static tn_rc add_all(struct tn_entry_writer *writer, const struct tn_entry *entries, uint32_t count,
                     struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        struct tn_entry added = entries[i];
        added.kind = TN_ENTRY_ADD;
        rc = tn_entry_writer_add(writer, &added, err);
    }
    return rc;
}

/* DELETE entries stand before all ADDs: official expiry takes the path of an ADD that comes first
 * for deleted, and removes a live file. Source: Paimon,
 * FileDeletionBase.getDataFileToDelete. */
static tn_rc write_entries(struct draft *draft, struct tn_entry_writer *writer, struct tn_err *err)
{
    const struct tn_commit_spec *spec = draft->commit->spec;
    if (!draft->compact) {
        return add_all(writer, spec->added, spec->added_count, err);
    }
    tn_rc rc = tn_conflict_check(spec, draft->previous, draft->commit->worker, writer, err);
    return rc == TN_OK ? add_all(writer, spec->compacted, spec->compacted_count, err) : rc;
}

static tn_rc write_manifests(struct draft *draft, struct tn_err *err)
{
    struct tn_entry_writer *writer = &draft->entries;
    if (!draft->compact && draft->commit->spec->added_count == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_entry_writer_begin(writer, &draft->files, &draft->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_entries(draft, writer, err);
    if (rc != TN_OK) {
        tn_entry_writer_abort(writer);
        return rc;
    }
    draft->next.delta_record_count.value = writer->row_count;
    return tn_entry_writer_finish(writer, err);
}

static tn_rc write_delta(struct draft *draft, struct tn_err *err)
{
    int64_t size = 0;
    draft->next.delta_record_count = (struct tn_json_i64){0, true};
    tn_rc rc = tn_attempt_begin_list(&draft->files, &draft->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_manifests(draft, err);
    if (rc != TN_OK) {
        tn_manifest_abort(&draft->list);
        return rc;
    }
    rc = tn_attempt_finish_list(&draft->files, &draft->list, &draft->next.delta_manifest_list,
                                &size, err);
    draft->next.delta_manifest_list_size = (struct tn_json_i64){size, true};
    return rc;
}

static tn_rc write_told(struct draft *draft, const struct tn_entry *entries, uint32_t count,
                        struct tn_err *err)
{
    struct tn_entry_writer *writer = &draft->entries;
    tn_rc rc = tn_entry_writer_begin(writer, &draft->files, &draft->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = add_all(writer, entries, count, err);
    if (rc != TN_OK) {
        tn_entry_writer_abort(writer);
        return rc;
    }
    draft->next.changelog_record_count.value = writer->row_count;
    return tn_entry_writer_finish(writer, err);
}

/* Snapshots without a changelog have no list for it. */
static tn_rc write_changelog(struct draft *draft, struct tn_err *err)
{
    const struct tn_commit_spec *spec = draft->commit->spec;
    uint32_t count = draft->compact ? spec->compact_changelog_count : spec->changelog_count;
    int64_t size = 0;
    draft->next.changelog_record_count = (struct tn_json_i64){0, true};
    if (count == 0) {
        return TN_OK;
    }
    tn_rc rc = tn_attempt_begin_list(&draft->files, &draft->list, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = write_told(draft, draft->compact ? spec->compact_changelog : spec->changelog, count, err);
    if (rc != TN_OK) {
        tn_manifest_abort(&draft->list);
        return rc;
    }
    rc = tn_attempt_finish_list(&draft->files, &draft->list, &draft->next.changelog_manifest_list,
                                &size, err);
    draft->next.changelog_manifest_list_size = (struct tn_json_i64){size, true};
    return rc;
}

static tn_rc write_base(struct draft *draft, struct tn_err *err)
{
    int64_t size = 0;
    tn_rc rc = tn_base_list_write(&draft->files, draft->previous, draft->merge,
                                  &draft->next.base_manifest_list, &size, err);
    draft->next.base_manifest_list_size = (struct tn_json_i64){size, true};
    return rc;
}

/* ---- an attempt: the snapshot ---- */

static struct tn_json_i64 or_zero(struct tn_json_i64 value)
{
    return (struct tn_json_i64){value.present ? value.value : 0, true};
}

static void fill_next(struct draft *draft)
{
    const struct tn_commit_spec *spec = draft->commit->spec;
    struct tn_clock *clock = draft->commit->worker->clock;
    struct tn_snapshot *next = &draft->next;
    next->schema_id = spec->schema->id;
    next->commit_user = spec->user;
    next->commit_identifier = (struct tn_json_i64){spec->identifier, true};
    next->commit_kind = draft->compact ? "COMPACT" : "APPEND";
    next->watermark = spec->watermark;
    next->properties = spec->properties;
    tn_snapshot_follow(next, draft->previous, clock->vtable->now_ms(clock));
}

/* After a failed publish: OK when the name stands there with our bytes, CONFLICT with others,
 * ABSENT when nobody has it. */
static tn_rc look_up(struct draft *draft, const char *final, struct tn_bytes text,
                     struct tn_err *err)
{
    struct tn_worker *worker = draft->commit->worker;
    size_t mark = tn_arena_mark(&worker->arena);
    struct tn_bytes there;
    tn_rc rc = tn_io_read_all(worker->io, final, text.size, &worker->arena, &there, err);
    if (rc == TN_INVALID || (rc == TN_OK && !tn_bytes_equal(there, text))) {
        rc = TN_CONFLICT;
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

/* Turns what publish said into what happened. Our bytes under our name: the commit is there, and
 * the barrier that failed is tried once more. */
static tn_rc resolve(struct draft *draft, const struct tn_publish_spec *publish, tn_rc rc,
                     struct tn_err *err)
{
    struct tn_io *io = draft->commit->worker->io;
    struct tn_err look_err;
    tn_rc found = look_up(draft, publish->final, publish->bytes, &look_err);
    draft->unknown = rc == TN_IO && found != TN_CONFLICT;
    if (found == TN_OK) {
        draft->unknown = true;
        *(draft->compact ? &draft->commit->result->compact_id : &draft->commit->result->append_id) =
            draft->next.id;
        tn_rc settled = io->vtable->sync(io, &publish->dir, 1, err);
        return settled == TN_OK ? TN_OK : tn_err_set(err, TN_IO, err->os, "%s", err->text);
    }
    return found == TN_CONFLICT ? TN_CONFLICT : rc;
}

/* ---- whether it is the one behind the one before ---- */

/* By a file that it gave, else by one that it only took. */
static struct tn_standing_spec standing_of(const struct draft *draft)
{
    const struct tn_commit_spec *spec = draft->commit->spec;
    const struct tn_entry *given = draft->compact ? spec->compacted : spec->added;
    uint32_t count = draft->compact ? spec->compacted_count : spec->added_count;
    struct tn_standing_spec mark = {.root = spec->root,
                                    .id = draft->next.id,
                                    .manifest_uuid = draft->files.manifest_uuid,
                                    .given = count > 0};
    if (mark.given) {
        mark.file_name = given->file.file_name;
        mark.level = given->file.level;
    }
    for (uint32_t i = 0; draft->compact && !mark.given && i < spec->removed_count; i++) {
        const struct tn_commit_removal *removal = &spec->removed[i];
        mark.given = removal->upgrade_level >= 0;
        mark.file_name = removal->file_name;
        mark.level = mark.given ? removal->upgrade_level : removal->level;
    }
    return mark;
}

/* Ours has expired, and who did that removed what only it named. Whose name it was is known while a
 * list still names what we gave. CONFLICT: that is nothing. */
static tn_rc look_behind(struct draft *draft, struct tn_err *err)
{
    const struct tn_snapshot *newest = NULL;
    struct tn_standing_spec mark = standing_of(draft);
    draft->files.manifest_count = 0;
    draft->files.list_count = 0;
    tn_rc rc = read_latest(draft->commit, &newest, err);
    if (rc == TN_OK &&
        (!newest || !tn_standing_goes_on_without(&mark, newest, draft->commit->worker))) {
        return TN_OK;
    }
    if (rc == TN_OK && !mark.file_name) {
        return TN_CONFLICT;
    }
    draft->unknown = true;
    return tn_err_set(err, TN_IO, 0,
                      "snapshot %" PRId64
                      " has expired as soon as it was made, and others went on; "
                      "whether with what it added can't be told",
                      draft->next.id);
}

/* CONFLICT: others went on without it, and the name is given back. */
static tn_rc make_sure(struct draft *draft, const struct tn_publish_spec *publish,
                       struct tn_err *err)
{
    struct tn_io *io = draft->commit->worker->io;
    struct tn_standing_spec mark = standing_of(draft);
    enum tn_standing where = tn_standing(&mark, draft->commit->worker);
    if (where == TN_STANDS) {
        return TN_OK;
    }
    tn_rc rc = io->vtable->unlink(io, publish->final, err);
    if (rc == TN_ABSENT && where == TN_STRAY_IF_THERE) {
        return look_behind(draft, err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &publish->dir, 1, err);
    }
    draft->unknown = rc != TN_OK && rc != TN_ABSENT;
    return draft->unknown ? tn_err_set(err, TN_IO, err->os, "%s", err->text) : TN_CONFLICT;
}

static tn_rc publish_next(struct draft *draft, struct tn_err *err)
{
    struct commit *commit = draft->commit;
    struct tn_arena *arena = &commit->worker->arena;
    const char *root = commit->spec->root;
    struct tn_publish_spec publish = {
        .draft = tn_arena_format(arena, "%s/" TN_DIR_SNAPSHOT ".snapshot-%" PRId64 ".%s.tmp", root,
                                 draft->next.id, draft->files.list_uuid),
        .final = tn_name_numbered(arena, root, TN_DIR_SNAPSHOT, "snapshot-", draft->next.id),
        .dir = tn_name_in(arena, root, TN_DIR_SNAPSHOT, ""),
    };
    if (!publish.draft || !publish.final || !publish.dir) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for the names of a snapshot");
    }
    tn_rc rc = tn_attempt_paths(&draft->files, commit->spec->sync,
                                commit->synced ? 0 : commit->spec->sync_count, arena,
                                &publish.before, &publish.before_count, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_text(&draft->next, &draft->commit->worker->arena, &publish.bytes, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_publish(commit->worker->io, &publish, err);
    if (rc == TN_OK || rc == TN_CONFLICT) {
        commit->synced = true; /* the barrier stands before the name */
    }
    return rc == TN_OK ? make_sure(draft, &publish, err) : resolve(draft, &publish, rc, err);
}

/* ---- one snapshot ---- */

static tn_rc write_files(struct draft *draft, struct tn_err *err)
{
    tn_rc rc = tn_attempt_begin(&draft->files, err);
    if (rc == TN_OK) {
        rc = write_base(draft, err);
    }
    if (rc == TN_OK) {
        rc = write_delta(draft, err);
    }
    return rc == TN_OK ? write_changelog(draft, err) : rc;
}

enum outcome { DONE, LOST, REFUSED, UNMERGED, FAILED };

/* A merge that can't be done (memory, somebody's damaged manifest) is none that must be done. */
static bool may_go_unmerged(const struct draft *draft, tn_rc rc)
{
    bool merging = draft->merge && draft->previous && draft->files.list_count <= 1;
    return merging && rc != TN_IO && rc != TN_FULL;
}

static enum outcome try_once(struct draft *draft, tn_rc *rc, struct tn_err *err)
{
    struct commit *commit = draft->commit;
    *rc = read_latest(commit, &draft->previous, err);
    if (*rc != TN_OK) {
        return FAILED;
    }
    if (draft->previous) {
        *rc = note_foreign(commit, draft->previous->id, err);
        if (*rc != TN_OK) {
            return FAILED;
        }
        commit->result->latest_id = draft->previous->id;
    }
    *rc = write_files(draft, err);
    if (*rc != TN_OK) {
        enum outcome outcome = may_go_unmerged(draft, *rc)            ? UNMERGED
                               : draft->compact && *rc == TN_CONFLICT ? REFUSED
                                                                      : FAILED;
        tn_attempt_drop(&draft->files);
        return outcome;
    }
    fill_next(draft);
    *rc = publish_next(draft, err);
    if (*rc != TN_OK && !draft->unknown) {
        tn_attempt_drop(&draft->files);
    }
    return *rc == TN_OK ? DONE : *rc == TN_CONFLICT ? LOST : FAILED;
}

static void note_done(struct commit *commit, const struct draft *draft)
{
    struct tn_worker *worker = commit->worker;
    struct tn_err ignored;
    int64_t id = draft->next.id;
    *(draft->compact ? &commit->result->compact_id : &commit->result->append_id) = id;
    commit->result->latest_id = id;
    commit->seen = id;
    if (commit->spec->foreign) {
        tn_trail_read(&commit->trail, commit->spec->root, &draft->next, worker);
        commit->result->trail = commit->trail;
    }
    tn_rc hint =
        tn_snapshot_hint(worker->io, commit->spec->root, "LATEST", id, &worker->arena, &ignored);
    (void)hint; /* readers heal a hint that lags */
}

static tn_rc make_draft(struct commit *commit, bool compact, bool merge, struct draft **draft,
                        struct tn_err *err)
{
    const struct tn_commit_spec *spec = commit->spec;
    void *block;
    tn_rc rc = tn_arena_need(&commit->worker->arena, sizeof(struct draft), "a commit", &block, err);
    if (rc == TN_OK) {
        *draft = block;
        (*draft)->commit = commit;
        (*draft)->compact = compact;
        (*draft)->merge = merge;
        (*draft)->files.root = spec->root;
        (*draft)->files.schema = spec->schema;
        (*draft)->files.options = spec->options;
        (*draft)->files.worker = commit->worker;
    }
    return rc;
}

/* One attempt from an arena that it leaves as it was. */
static enum outcome attempt(struct commit *commit, bool compact, bool merge, tn_rc *rc,
                            struct tn_err *err)
{
    struct tn_arena *arena = &commit->worker->arena;
    struct draft *draft;
    enum outcome outcome = FAILED;
    size_t mark = tn_arena_mark(arena);
    commit->result->attempts++;
    *rc = make_draft(commit, compact, merge, &draft, err);
    if (*rc == TN_OK) {
        outcome = try_once(draft, rc, err);
        if (outcome == DONE) {
            note_done(commit, draft);
        }
    }
    tn_arena_reset(arena, mark);
    return outcome;
}

static tn_rc commit_kind(struct commit *commit, bool compact, struct tn_err *err)
{
    const struct tn_commit_spec *spec = commit->spec;
    int32_t lost = 0;
    bool merge = true;
    while (lost <= spec->options->commit_max_retries) {
        tn_rc rc;
        switch (attempt(commit, compact, merge, &rc, err)) {
        case DONE:
            return TN_OK;
        case REFUSED:
            commit->result->compact_refused = true;
            return TN_OK;
        case LOST:
            lost++;
            break;
        case UNMERGED:
            merge = false;
            break;
        case FAILED:
            return tn_err_in(err, "commit %s", spec->root);
        }
    }
    return tn_err_set(err, TN_CONFLICT, 0, "commit %s: others took %" PRId32 " names before us",
                      spec->root, lost);
}

/* ---- the call ---- */

/* From the newest of all backwards, for those before the user's newest may have expired. Source:
 * Paimon, FileStoreCommitImpl.filterCommitted.
 */
tn_rc tn_commit_find(struct tn_worker *worker, const char *root, const char *user,
                     int64_t identifier, struct tn_commit_found *found, struct tn_err *err)
{
    int64_t id = 0;
    *found = (struct tn_commit_found){0};
    tn_rc rc = tn_snapshot_latest(worker->io, root, &worker->arena, &id, err);
    for (bool go_on = true; rc == TN_OK && go_on && id > 0; id--) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(&worker->arena);
        rc = tn_snapshot_read(worker->io, root, id, &worker->arena, &snapshot, err);
        bool ours = rc == TN_OK && strcmp(snapshot.commit_user, user) == 0;
        int64_t has = ours ? or_zero(snapshot.commit_identifier).value : 0;
        if (ours && has == identifier) {
            bool compact = strcmp(snapshot.commit_kind, "COMPACT") == 0;
            *(compact ? &found->compact_id : &found->append_id) = id;
        }
        if (ours && !found->any) {
            found->any = true;
            found->newest = has;
            found->done = has >= identifier;
        }
        go_on = !found->any || (ours && has == identifier); /* both kinds are neighbours */
        tn_arena_reset(&worker->arena, mark);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc make_folders(struct commit *commit, struct tn_err *err)
{
    struct tn_worker *worker = commit->worker;
    struct tn_io *io = worker->io;
    const char *manifest = tn_name_in(&worker->arena, commit->spec->root, TN_DIR_MANIFEST, "");
    const char *snapshot = tn_name_in(&worker->arena, commit->spec->root, TN_DIR_SNAPSHOT, "");
    if (!manifest || !snapshot) {
        return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    }
    tn_rc rc = io->vtable->make_dir(io, manifest, err);
    return rc == TN_OK ? io->vtable->make_dir(io, snapshot, err) : rc;
}

static tn_rc find_done(struct commit *commit, bool *done, struct tn_err *err)
{
    const struct tn_commit_spec *spec = commit->spec;
    struct tn_commit_found found;
    tn_rc rc =
        tn_commit_find(commit->worker, spec->root, spec->user, spec->identifier, &found, err);
    *done = found.done;
    commit->result->append_id = found.append_id;
    commit->result->compact_id = found.compact_id;
    return rc;
}

/* Only a table without snapshots can lack the folders. */
static tn_rc prepare(struct commit *commit, struct tn_err *err)
{
    struct tn_worker *worker = commit->worker;
    int64_t id;
    bool done = false;
    tn_rc rc = TN_OK;
    if (commit->spec->skip_if_done) {
        rc = find_done(commit, &done, err);
    }
    if (rc == TN_OK && done) {
        return tn_err_set(err, TN_EXISTS, 0, "commit %s: %s %" PRId64 " or a later one is there",
                          commit->spec->root, commit->spec->user, commit->spec->identifier);
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(worker->io, commit->spec->root, &worker->arena, &id, err);
    }
    return rc == TN_ABSENT ? make_folders(commit, err) : rc;
}

tn_rc tn_commit(const struct tn_commit_spec *spec, struct tn_worker *worker,
                struct tn_commit_result *result, struct tn_err *err)
{
    struct commit commit = {.spec = spec,
                            .worker = worker,
                            .result = result,
                            .seen = spec->last_seen,
                            .trail = spec->trail};
    const size_t mark = tn_arena_mark(&worker->arena);
    *result = (struct tn_commit_result){.trail = spec->trail};
    tn_rc rc = prepare(&commit, err);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_OK &&
        (spec->added_count + spec->changelog_count > 0 || spec->append_even_if_empty)) {
        rc = commit_kind(&commit, false, err);
    }
    if (rc == TN_OK && spec->removed_count + spec->compacted_count > 0) {
        rc = commit_kind(&commit, true, err);
    }
    return rc;
}
