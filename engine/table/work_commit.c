/* The task that makes a round's snapshots. */
#include <inttypes.h>

#include "base/check.h"
#include "commit/consumer.h"
#include "file/names.h"
#include "table/state.h"

enum { PROPERTIES_FIXED = 2 };

static tn_rc properties_of(const struct tn_table *t, const struct tn_round *round,
                           struct tn_arena *arena, struct tn_json_map *map, struct tn_err *err)
{
    uint32_t count = PROPERTIES_FIXED + t->spec.property_count;
    for (const struct tn_round_position *p = round->positions; p; p = p->next) {
        count++;
    }
    struct tn_json_pair *pairs = tn_arena_take(arena, count * sizeof *pairs);
    const char *number = tn_arena_format(arena, "%" PRId64, round->number);
    if (!pairs || !number) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a snapshot's properties");
    }
    pairs[0] = (struct tn_json_pair){TN_WRITER_PROPERTY, t->recovered.writer};
    pairs[1] = (struct tn_json_pair){TN_ROUND_PROPERTY, number};
    uint32_t at = PROPERTIES_FIXED;
    for (uint32_t i = 0; i < t->spec.property_count; i++) {
        const struct tn_property *own = &t->spec.properties[i];
        pairs[at++] = (struct tn_json_pair){own->name, own->value};
    }
    for (const struct tn_round_position *p = round->positions; p; p = p->next) {
        const char *key = tn_arena_format(arena, "%s%s", TN_POSITION_PROPERTY, p->source);
        if (!key) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory for a snapshot's properties");
        }
        pairs[at++] = (struct tn_json_pair){key, p->text};
    }
    *map = (struct tn_json_map){pairs, count};
    return TN_OK;
}

static tn_rc list_entries(const struct tn_round_entry *list, uint32_t count, struct tn_arena *arena,
                          const struct tn_entry **out, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, (count + 1) * sizeof(struct tn_entry), "a commit's files",
                             &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_entry *entries = memory;
    uint32_t at = count; /* the lists are newest first */
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        if (!e->gone) {
            TN_CHECK(at > 0);
            entries[--at] = e->entry;
        }
    }
    TN_CHECK(at == 0);
    *out = entries;
    return TN_OK;
}

static tn_rc list_removals(const struct tn_round *round, struct tn_arena *arena,
                           const struct tn_commit_removal **out, struct tn_err *err)
{
    void *memory;
    tn_rc rc = tn_arena_need(arena, (round->removed_count + 1) * sizeof(struct tn_commit_removal),
                             "a commit's removals", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_commit_removal *removals = memory;
    uint32_t at = 0;
    for (const struct tn_round_removal *r = round->removed; r; r = r->next) {
        removals[at++] = r->removal;
    }
    *out = removals;
    return TN_OK;
}

struct sync_list {
    const char **paths;
    uint32_t count;
    uint32_t max;
};

static bool add_path(struct sync_list *list, const char *path)
{
    for (uint32_t i = list->count; i > 0; i--) { /* a folder comes again and again */
        if (strcmp(list->paths[i - 1], path) == 0) {
            return true;
        }
        if (path[strlen(path) - 1] != '/') {
            break;
        }
    }
    if (list->count == list->max) {
        return false;
    }
    list->paths[list->count++] = path;
    return true;
}

static tn_rc sync_entries(const struct tn_table *t, const struct tn_round_entry *list,
                          struct tn_arena *arena, struct sync_list *sync, struct tn_err *err)
{
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        if (e->gone) {
            continue;
        }
        const char *dir;
        tn_rc rc = tn_name_bucket(arena, t->root, t->schema, &t->options, e->entry.partition,
                                  e->entry.bucket, &dir, err);
        if (rc != TN_OK) {
            return rc;
        }
        const char *path = tn_arena_format(arena, "%s%s", dir, e->entry.file.file_name);
        if (!path || !add_path(sync, dir) || !add_path(sync, path)) {
            return tn_err_set(err, TN_AGAIN, 0, "no memory for a commit's file names");
        }
    }
    return TN_OK;
}

static tn_rc list_syncs(const struct tn_table *t, const struct tn_round *round,
                        struct tn_arena *arena, struct sync_list *sync, struct tn_err *err)
{
    sync->max = 2 * (round->added_count + round->compacted_count + round->changelog_count +
                     round->compact_changelog_count);
    void *memory;
    tn_rc rc = tn_arena_need(arena, (sync->max + 2) * sizeof(char *), "a commit's file names",
                             &memory, err);
    sync->paths = memory;
    const struct tn_round_entry *lists[] = {round->added, round->compacted, round->changelog,
                                            round->compact_changelog};
    for (size_t i = 0; rc == TN_OK && i < sizeof lists / sizeof lists[0]; i++) {
        rc = sync_entries(t, lists[i], arena, sync, err);
    }
    return rc;
}

void tn_work_remove_garbage(const struct tn_table *table, const struct tn_round *round)
{
    struct tn_io *io = table->env->io;
    for (const struct tn_round_garbage *g = round->garbage; g; g = g->next) {
        struct tn_err ignored = {0};
        (void)io->vtable->unlink(io, g->path, &ignored);
    }
}

void tn_work_remove_entries(const struct tn_table *table, const struct tn_round_entry *list,
                            struct tn_arena *scratch)
{
    struct tn_io *io = table->env->io;
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        size_t mark = tn_arena_mark(scratch);
        struct tn_err ignored = {0};
        const char *dir;
        if (tn_name_bucket(scratch, table->root, table->schema, &table->options, e->entry.partition,
                           e->entry.bucket, &dir, &ignored) == TN_OK) {
            const char *path = tn_arena_format(scratch, "%s%s", dir, e->entry.file.file_name);
            if (path) {
                (void)io->vtable->unlink(io, path, &ignored);
            }
        }
        tn_arena_reset(scratch, mark);
    }
}

static void remove_compacted(const struct tn_table *t, const struct tn_round *round,
                             struct tn_arena *scratch)
{
    tn_work_remove_entries(t, round->compacted, scratch);
    tn_work_remove_entries(t, round->compact_changelog, scratch);
}

/* ---- the consumer that keeps our positions from being expired by others ---- */

/* Where there is no consumer yet, others may expire the first snapshot that has positions before
 * the draft is moved: it stands before that snapshot does. */
static void place_consumer(const struct tn_table *t, struct tn_worker *worker)
{
    struct tn_err ignored = {0};
    int64_t next;
    if (tn_consumer_read(worker->io, t->root, t->user, &worker->arena, &next, &ignored) ==
        TN_ABSENT) {
        (void)!tn_consumer_write(worker->io, t->root, t->user, t->last_seen + 1, &worker->arena,
                                 &ignored);
    }
}

/* A draft, which the commit's own barrier covers, so that the file that replaces the old one is
 * never torn. It names the last snapshot that this commit will make, or an older one when others
 * come between: then a little more is kept. 0: there is no draft, and the consumer stands where it
 * stood. */
static int64_t draft_consumer(const struct tn_table *t, const struct tn_round *round,
                              struct tn_worker *worker, struct sync_list *sync)
{
    struct tn_err ignored = {0};
    const char *path;
    int64_t next = t->last_seen + (round->removed_count > 0 ? 2 : 1);
    if (tn_consumer_draft(worker->io, t->root, t->user, next, &worker->arena, &path, &ignored) !=
        TN_OK) {
        return 0;
    }
    sync->paths[sync->count++] = path;
    return next;
}

/* Where the compaction was refused the snapshot that has our positions is older than the draft
 * says, and nothing would keep it: the draft is written again. */
static void move_consumer(const struct tn_commit_task *commit, struct tn_worker *worker)
{
    const struct tn_table *t = commit->table;
    const struct tn_commit_result *result = &commit->result;
    struct tn_err ignored = {0};
    struct tn_io *io = worker->io;
    const char *path;
    int64_t made = result->compact_id > 0 ? result->compact_id : result->append_id;
    if (commit->consumer_next == 0 || made == 0) {
        return;
    }
    tn_rc rc = TN_OK;
    if (made < commit->consumer_next) {
        rc = tn_consumer_draft(io, t->root, t->user, made, &worker->arena, &path, &ignored);
        rc = rc == TN_OK ? io->vtable->sync(io, &path, 1, &ignored) : rc;
    }
    if (rc == TN_OK) { /* else a little more is kept */
        (void)!tn_consumer_replace(io, t->root, t->user, &worker->arena, &ignored);
    }
}

/* Where --user names a commit, compactions around it have the user's newest identifier, or this
 * process's own while the user has none: they use no identifier up, and the user's newest snapshot,
 * by which a repeat is known, doesn't expire behind them. */
static tn_rc say_whose(const struct tn_commit_task *commit, struct tn_worker *worker,
                       struct tn_commit_spec *spec, struct tn_err *err)
{
    const struct tn_table *t = commit->table;
    struct tn_commit_found found = {0};
    tn_rc rc = TN_OK;
    if (t->spec.user && !commit->named) {
        rc = tn_commit_find(worker, t->root, t->spec.user, t->spec.identifier, &found, err);
    }
    bool users = commit->named || found.any;
    spec->user = users ? t->spec.user : t->user;
    spec->identifier = commit->named ? t->spec.identifier : commit->round->number;
    if (found.any) {
        spec->identifier = found.newest;
    }
    return rc;
}

/* The round's files, as lists of the commit. */
static tn_rc list_files(const struct tn_round *round, struct tn_arena *arena,
                        struct tn_commit_spec *spec, struct tn_err *err)
{
    const struct {
        const struct tn_round_entry *list;
        uint32_t count;
        const struct tn_entry **out;
    } lists[] = {
        {round->added, round->added_count, &spec->added},
        {round->compacted, round->compacted_count, &spec->compacted},
        {round->changelog, round->changelog_count, &spec->changelog},
        {round->compact_changelog, round->compact_changelog_count, &spec->compact_changelog},
    };
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof lists / sizeof lists[0]; i++) {
        rc = list_entries(lists[i].list, lists[i].count, arena, lists[i].out, err);
    }
    return rc == TN_OK ? list_removals(round, arena, &spec->removed, err) : rc;
}

/* Before a commit that says positions: the mark that there are some, and the consumer that keeps
 * them. */
static tn_rc prepare_positions(struct tn_commit_task *commit, struct tn_worker *worker,
                               struct sync_list *sync, struct tn_err *err)
{
    const struct tn_table *t = commit->table;
    tn_rc rc = TN_OK;
    if (!commit->round->positions) {
        return TN_OK;
    }
    if (!t->recovered.positioned) {
        rc = tn_table_mark_positioned(worker->io, t->spec.name, &worker->arena, err);
    }
    if (rc == TN_OK) {
        place_consumer(t, worker);
        commit->consumer_next = draft_consumer(t, commit->round, worker, sync);
    }
    return rc;
}

static tn_rc commit_round(struct tn_commit_task *commit, struct tn_worker *worker,
                          struct tn_err *err)
{
    const struct tn_table *t = commit->table;
    const struct tn_round *round = commit->round;
    struct tn_arena *arena = &worker->arena;
    struct tn_commit_spec spec = {.root = t->root,
                                  .schema = t->schema,
                                  .options = &t->options,
                                  .added_count = round->added_count,
                                  .removed_count = round->removed_count,
                                  .compacted_count = round->compacted_count,
                                  .changelog_count = round->changelog_count,
                                  .compact_changelog_count = round->compact_changelog_count,
                                  .append_even_if_empty =
                                      round->positions_moved && round->added_count == 0,
                                  .skip_if_done = commit->named,
                                  .last_seen = t->last_seen,
                                  .trail = t->trail,
                                  .foreign = t->spec.resolver ? tn_rivals_see : NULL,
                                  .user_data = &commit->rivals};
    struct sync_list sync = {0};
    tn_rc rc = tn_work_check_there(t, err);
    if (rc == TN_OK) {
        rc = say_whose(commit, worker, &spec, err);
    }
    if (rc == TN_OK) {
        rc = properties_of(t, round, arena, &spec.properties, err);
    }
    if (rc == TN_OK) {
        rc = list_files(round, arena, &spec, err);
    }
    if (rc == TN_OK) {
        rc = list_syncs(t, round, arena, &sync, err);
    }
    if (rc == TN_OK) {
        rc = prepare_positions(commit, worker, &sync, err);
    }
    spec.sync = sync.paths;
    spec.sync_count = sync.count;
    return rc == TN_OK ? tn_commit(&spec, worker, &commit->result, err) : rc;
}

static void after_commit(struct tn_commit_task *commit, struct tn_worker *worker)
{
    struct tn_table *t = commit->table;
    tn_work_remove_garbage(commit->table, commit->round);
    move_consumer(commit, worker);
    if (commit->expires) {
        struct tn_expire_spec spec = {
            .root = t->root, .schema = t->schema, .options = &t->options, .settled = true};
        tn_rc rc = tn_expire(&spec, worker, &commit->expired, &commit->not_expired);
        if (rc == TN_OK) { /* else the next round tries again */
            commit->not_expired.text[0] = 0;
        }
    }
}

static tn_rc commit_and_clean(struct tn_commit_task *commit, struct tn_worker *worker,
                              struct tn_err *err)
{
    if (tn_round_empty(commit->round) && !commit->round->positions_moved) {
        commit->skipped = true;
        tn_work_remove_garbage(commit->table, commit->round);
        return TN_OK;
    }
    size_t mark = tn_arena_mark(&worker->arena);
    tn_rc rc = commit_round(commit, worker, err);
    tn_arena_reset(&worker->arena, mark);
    if (rc == TN_EXISTS && commit->named) { /* made before: these files go */
        tn_work_remove_entries(commit->table, commit->round->added, &worker->arena);
        tn_work_remove_entries(commit->table, commit->round->changelog, &worker->arena);
        remove_compacted(commit->table, commit->round, &worker->arena);
        tn_work_remove_garbage(commit->table, commit->round);
        commit->repeated = true;
        return TN_OK;
    }
    bool only = commit->round->added_count == 0 && commit->round->removed_count > 1;
    commit->too_much = rc == TN_AGAIN && (only || commit->result.append_id != 0);
    if (rc != TN_OK && rc != TN_IO && (commit->too_much || commit->result.append_id != 0)) {
        commit->result.compact_refused = true; /* the rows stand; they must not be added twice */
        rc = TN_OK;
    }
    if (rc == TN_OK) {
        if (commit->result.compact_refused) {
            remove_compacted(commit->table, commit->round, &worker->arena);
        }
        after_commit(commit, worker);
        tn_arena_reset(&worker->arena, mark);
    }
    return rc;
}

static tn_rc commit_execute(struct tn_task *task, void *context, struct tn_err *err)
{
    struct tn_commit_task *commit = (struct tn_commit_task *)(void *)task;
    struct tn_clock *clock = commit->table->env->clock;
    int64_t begin = clock->vtable->monotonic_ns(clock);
    tn_rc rc = commit_and_clean(commit, context, err);
    commit->ns = clock->vtable->monotonic_ns(clock) - begin;
    return rc;
}

/* The round's files are in a snapshot now: its entries let go of them. */
static void settle_entries(struct tn_table *t, struct tn_round_entry *list, int64_t number)
{
    for (struct tn_round_entry *e = list; e; e = e->next) {
        if (e->file->round == number) {
            e->file->round = 0;
            e->file->compacted = false;
        }
        tn_level_file_drop(t->env->levels, e->file);
    }
}

/* Files that were moved up have no entry of their own. */
static void settle_moved(struct tn_table *t, int64_t number)
{
    for (uint32_t i = 0; i < t->places.buckets; i++) {
        const struct tn_levels *levels = t->buckets[i].levels;
        for (uint32_t f = 0; f < (levels ? levels->count : 0); f++) {
            if (levels->files[f]->round == number) {
                levels->files[f]->round = 0;
                levels->files[f]->compacted = false;
            }
        }
    }
}

/* A compaction in which the lookup found that nothing changed has told, without a file. */
static enum tn_told told(const struct tn_table *t, const struct tn_commit_task *commit)
{
    const struct tn_round *round = commit->round;
    bool compacted = commit->result.compact_id > 0;
    bool looked = compacted && t->options.changelog_producer == TN_CHANGELOG_LOOKUP;
    if (t->options.changelog_producer == TN_CHANGELOG_NONE || commit->skipped) {
        return TN_TOLD_NOTHING;
    }
    if (round->changelog_count > 0 || looked || (compacted && round->compact_changelog_count > 0)) {
        return TN_TOLD_NOW;
    }
    return round->added_count > 0 ? TN_TOLD_LATER : TN_TOLD_NOTHING;
}

static int64_t rows_in(const struct tn_round_entry *list)
{
    int64_t rows = 0;
    for (const struct tn_round_entry *e = list; e; e = e->next) {
        rows += e->gone ? 0 : e->entry.file.row_count;
    }
    return rows;
}

/* The compactions' part, where it was committed. */
static void count_compactions(const struct tn_round *round, struct tn_commit_figures *f)
{
    uint32_t moved = 0;
    for (const struct tn_round_entry *e = round->compacted; e; e = e->next) {
        f->output_bytes += e->gone ? 0 : e->entry.file.file_size;
    }
    f->rows_compacted = rows_in(round->compacted);
    for (const struct tn_round_removal *r = round->removed; r; r = r->next) {
        bool moves = r->removal.upgrade_level >= 0;
        moved += moves;
        f->input_bytes += r->size;
        f->output_bytes += moves ? r->size : 0;
        f->rows_compacted += moves ? 2 * r->row_count : r->row_count;
    }
    f->files_deleted = round->removed_count;
    f->files_added += round->compacted_count + moved;
    f->files_compacted = round->removed_count + round->compacted_count + moved;
    f->changelogs_compacted = round->compact_changelog_count;
    f->changelog_rows_compacted = rows_in(round->compact_changelog);
}

static void note_figures(struct tn_table *t, const struct tn_commit_task *commit)
{
    const struct tn_round *round = commit->round;
    const struct tn_commit_result *result = &commit->result;
    struct tn_commit_figures *f = &t->last_commit;
    if (commit->skipped || commit->repeated) {
        return;
    }
    *f = (struct tn_commit_figures){.ns = commit->ns,
                                    .attempts = result->attempts,
                                    .snapshots =
                                        result->append_id > 0 && result->compact_id > 0 ? 2 : 1,
                                    .files_added = round->added_count,
                                    .files_appended = round->added_count,
                                    .changelogs_appended = round->changelog_count,
                                    .rows_appended = rows_in(round->added),
                                    .changelog_rows_appended = rows_in(round->changelog)};
    if (result->compact_id > 0) {
        count_compactions(round, f);
    }
    t->counts.commit_ns += commit->ns;
}

static void report(struct tn_table *t, const struct tn_commit_task *commit)
{
    struct tn_committed committed = {
        .append_id = commit->result.append_id,
        .compact_id = commit->result.compact_id,
        .latest_id = t->last_seen,
        .row_count = commit->round->row_count,
        .expired = commit->expired.snapshots,
        .earliest_id = commit->expired.earliest_id,
        .told = told(t, commit),
        .not_expired = commit->not_expired.text[0] ? commit->not_expired.text : NULL};
    t->counts.commits += !commit->skipped && !commit->repeated;
    note_figures(t, commit);
    if (t->spec.committed) {
        t->spec.committed(t->spec.user_data, &committed);
    }
}

/* Rows of the open round that were resolved already, or are now, beside what another writer has
 * changed since. The round that was committed stands. */
static void check_next(const struct tn_commit_task *commit)
{
    struct tn_table *t = commit->table;
    const struct tn_rivals *rivals = &commit->rivals;
    const struct tn_bucket *flushing = t->flush.under_way ? t->flush.bucket : NULL;
    struct tn_err err = {0};
    if (tn_rivals_have(rivals, t->open->resolved) ||
        (flushing && t->spec.resolver &&
         tn_rivals_have_one(rivals, tn_bucket_name(flushing->partition, flushing->number)))) {
        t->voided = true;
        tn_rc rc = tn_rivals_refuse(rivals, &err);
        tn_table_break(t, rc, &err);
    }
}

/* A commit had no memory for what its compactions took and gave. The next round takes fewer
 * results; when it was one compaction alone, its bucket merges fewer runs, and in the end is set
 * back: the same result would be made for ever. */
static void take_fewer(struct tn_table *t, const struct tn_round *round, const struct tn_err *err)
{
    bool one = round->removed_count > t->removals_max;
    uint32_t most = one ? t->removals_max : round->removed_count;
    t->removals_max = most > 1 ? most / 2 : 1;
    if (!one) {
        return;
    }
    const struct tn_commit_removal *gone = &round->removed->removal;
    struct tn_bucket *bucket = tn_buckets_open(t, gone->partition, gone->bucket);
    if (!bucket) {
        tn_table_fail(t, TN_AGAIN, err);
    } else if (!tn_work_take_fewer(bucket)) {
        tn_work_compaction_failed(t, bucket, TN_AGAIN, err);
    }
}

/* After a failed barrier a later one may say OK and have kept nothing (Linux gives up on the
 * pages), and after a failed rename nobody knows. Only a new start can tell. */
static void commit_failed(struct tn_commit_task *commit, tn_rc rc)
{
    struct tn_table *t = commit->table;
    struct tn_round *round = commit->round;
    round->state = TN_ROUND_DRAINING;
    round->unknown = rc == TN_IO;
    t->closed_untold = t->closed_untold || commit->untold; /* the next try must know */
    t->voided = rc == TN_CONFLICT && tn_rivals_have(&commit->rivals, round->resolved);
    if (rc == TN_IO || t->voided) {
        tn_table_break(t, rc, &commit->task.err);
    }
    tn_table_fail(t, rc, &commit->task.err);
}

static void commit_complete(struct tn_task *task, tn_rc rc)
{
    struct tn_commit_task *commit = (struct tn_commit_task *)(void *)task;
    struct tn_table *t = commit->table;
    struct tn_round *round = commit->round;
    commit->under_way = false;
    if (rc != TN_OK) {
        commit_failed(commit, rc);
        return;
    }
    settle_entries(t, round->added, round->number);
    settle_entries(t, round->compacted, round->number);
    settle_moved(t, round->number);
    t->named_done = t->named_done || (commit->named && !commit->skipped);
    if (commit->repeated) {
        t->reload = true;
    } else if (!commit->skipped) {
        t->reload = t->reload || commit->result.compact_refused || commit->result.foreign;
        t->last_seen = commit->result.latest_id;
        t->trail = commit->result.trail;
    }
    round->state = TN_ROUND_DONE;
    t->recovered.positioned = t->recovered.positioned || round->positions;
    if (commit->too_much) {
        take_fewer(t, round, &task->err);
    }
    if (commit->result.compact_refused || commit->untold) {
        tn_work_gather_again(t, round->number);
    }
    t->closing = NULL;
    t->compact_due = true;
    report(t, commit);
    tn_round_done(round);
    check_next(commit);
}

void tn_work_commit(struct tn_table *table)
{
    struct tn_commit_task *commit = &table->commit;
    *commit = (struct tn_commit_task){
        .task = {.execute = commit_execute, .complete = commit_complete, .lane = TN_LANE_SHORT},
        .table = table,
        .round = table->closing,
        .rivals = {.root = table->root,
                   .resolved = table->closing->resolved,
                   .names = commit->rivals.names,
                   .most = table->places.rivals},
        /* Compactions alone are our own. */
        .named = table->spec.user && !table->named_done &&
                 (table->closing->added_count > 0 || table->closing->positions_moved),
        .untold = table->result_waits || table->closed_untold,
        .expires = !table->options.write_only || table->spec.dedicated || table->sweeps,
        .under_way = true};
    table->closed_untold = false;
    table->closing->state = TN_ROUND_COMMITTING;
    tn_exec_submit(table->env->exec, &commit->task);
}
