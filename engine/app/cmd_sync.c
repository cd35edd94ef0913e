/* tarn sync: a mirror in a folder or an object store is brought up to the newest snapshot; of a
 * table that is shared its part is committed there. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/lake_progress.h"
#include "app/place.h"
#include "app/side_folder.h"
#include "app/suggest.h"
#include "commit/snapshot.h"
#include "file/names.h"
#include "upload/share_sync.h"

static struct {
    bool dry_run;
    bool no_consumer;
    bool progress;
    uint64_t rate;
    struct tn_text_list options;
} o = {.options = TN_TEXT_LIST(TN_LIST_MAX)};

static const struct tn_flag flags[] = {
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL,
     "only say which snapshots, how many files, bytes"},
    {"no-consumer", 0, TN_FLAG_SET, &o.no_consumer, NULL,
     "let expiry pass what TARGET lacks (ids may then be missing there)"},
    {"option", 0, TN_FLAG_LIST, &o.options, "K=V",
     "of an object store, like s3.endpoint=...; else the environment's AWS_..."},
    {"rate", 0, TN_FLAG_SIZE, &o.rate, "SIZE", "bytes a second to an object store, like 1M"},
    {"progress", 0, TN_FLAG_SET, &o.progress, NULL,
     "say on stderr how far it is; on a terminal it does"},
};

static void say_tags(const struct tn_delta_result *result, const char *where)
{
    if (result->tags > 0 || result->tags_removed > 0) {
        (void)fprintf(stderr, "synced tags: %" PRIu32 " brought, %" PRIu32 " removed\n",
                      result->tags, result->tags_removed);
    }
    if (result->tags_denied > 0) {
        (void)fprintf(stderr,
                      "tarn: %" PRIu32 " tags stay in %s: permission to remove them was denied\n",
                      result->tags_denied, where);
    }
    if (result->tags_left > 0) {
        (void)fprintf(stderr, "tarn: %" PRIu32 " tags stay here: %s has others of the same names\n",
                      result->tags_left, where);
    }
}

static void say_kept(const struct tn_delta_result *result, const char *where)
{
    if (result->expired > 0) {
        (void)fprintf(stderr, "expired %" PRIu32 " snapshots in %s\n", result->expired, where);
    }
    if (result->keep_denied) {
        (void)fprintf(stderr,
                      "tarn: %s keeps more snapshots than lake.snapshot... of the table say: "
                      "permission to list or to remove was denied\n",
                      where);
    } else if (result->keep_err.code != TN_OK) {
        (void)fprintf(stderr, "tarn: %s keeps more snapshots than it is to: %s\n", where,
                      result->keep_err.text);
    }
}

static void say_synced(const struct tn_delta_result *result, const char *where)
{
    if (tn_common.quiet) {
        return;
    }
    say_tags(result, where);
    say_kept(result, where);
    if (result->first_id == 0 && result->tags == 0 && result->tags_removed == 0) {
        (void)fprintf(stderr, "synced nothing: %s is at snapshot %" PRId64 "\n", where,
                      result->last_id);
        return;
    }
    if (result->first_id == 0) {
        return;
    }
    (void)fprintf(stderr,
                  "synced snapshots %" PRId64 "..%" PRId64 " files=%" PRIu64 " bytes=%" PRIu64 "\n",
                  result->first_id, result->last_id, result->files, result->bytes);
}

struct plan {
    int64_t first_id;
    int64_t last_id;
    uint64_t files;
    uint64_t bytes;
    uint64_t requests;
};

/* Only a store is asked anything. */
static tn_rc print_plan(struct tn_app *app, const struct plan *plan, bool store, struct tn_err *err)
{
    static const char *const columns[] = {"first_snapshot", "last_snapshot", "files", "bytes",
                                          "requests"};
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, store ? 5 : 4, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    if (plan->first_id == 0) {
        tn_cells_text(&cells, NULL);
    } else {
        tn_cells_number(&cells, plan->first_id);
    }
    tn_cells_number(&cells, plan->last_id);
    tn_cells_number(&cells, (int64_t)plan->files);
    tn_cells_number(&cells, (int64_t)plan->bytes);
    if (store) {
        tn_cells_number(&cells, (int64_t)plan->requests);
    }
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

/* What was asked for the plan, a PUT for each file and one for the hint. */
static tn_rc print_mirror(struct tn_app *app, const struct tn_delta_result *result,
                          const struct tn_lake *lake, struct tn_err *err)
{
    struct plan plan = {result->first_id, result->last_id, result->files, result->bytes,
                        result->first_id > 0 ? result->files + 1 : 0};
    plan.requests += lake->is_store ? tn_target_asked(&lake->target->counts) : 0;
    return print_plan(app, &plan, lake->is_store, err);
}

/* Before a folder is made for nothing. */
static tn_rc find_table(struct tn_app *app, const char *table, const char **root,
                        struct tn_err *err)
{
    uint64_t size;
    tn_rc rc = tn_name_table_root(&app->table, table, root, err);
    if (rc == TN_OK) {
        rc = app->posix.io.vtable->stat(&app->posix.io, *root, &size, err);
    }
    return rc == TN_ABSENT ? tn_suggest_table(app, table, err) : rc;
}

/* ---- the sync ---- */

/* For the progress; 0: there is none, or it can't be said. */
static int64_t newest_of(struct tn_app *app, const char *root)
{
    struct tn_arena *scratch = &app->workers[TN_LANE_LONG].arena;
    size_t mark = tn_arena_mark(scratch);
    struct tn_err unsaid = {0};
    int64_t id = 0;
    tn_rc rc = tn_snapshot_latest(&app->posix.io, root, scratch, &id, &unsaid);
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? id : 0;
}

/* Where files go: what says how far it is, or the lake itself. */
static struct tn_target *begin_progress(struct tn_lake_progress *progress, struct tn_app *app,
                                        struct tn_lake *lake, int64_t newest)
{
    bool says =
        lake->target && !o.dry_run && !tn_common.quiet && (o.progress || isatty(STDERR_FILENO));
    if (says) {
        tn_lake_progress_init(progress, lake->target, app->env.clock, newest);
    }
    return says ? &progress->target : lake->target;
}

static void end_progress(struct tn_lake_progress *progress, const struct tn_target *target)
{
    if (target == &progress->target) {
        tn_lake_progress_end(progress);
    }
}

static tn_rc sync_open(struct tn_lake *lake, struct tn_app *app, struct tn_delta_spec *spec,
                       struct tn_delta_result *result, struct tn_err *err)
{
    static struct tn_lake_progress progress;
    spec->consumer = o.no_consumer ? NULL : lake->consumer;
    spec->lake = lake->consumer;
    spec->target = begin_progress(&progress, app, lake, newest_of(app, spec->root));
    tn_rc rc = tn_delta_sync(spec, &app->workers[TN_LANE_LONG], result, err);
    end_progress(&progress, spec->target);
    return rc;
}

/* ---- a table that is shared ---- */

static void let_pass(void *user, uint32_t ms)
{
    (void)user;
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

/* It has one place in one lake: elsewhere there would be a part of it. */
static tn_rc check_shared(struct tn_app *app, const struct tn_text_list *words,
                          const struct tn_share *share, struct tn_err *err)
{
    const char *place;
    tn_rc rc = tn_lake_place(words->items[1], &app->table, &place, err);
    if (rc == TN_OK && !tn_share_same_place(place, share->where)) {
        return tn_err_set(err, TN_INVALID, 0,
                          "table %s is a part of the one at %s and is sent there alone: no mirror "
                          "of it can be made",
                          words->items[0], share->where);
    }
    if (rc == TN_OK && o.no_consumer) {
        return tn_err_set(err, TN_INVALID, 0,
                          "--no-consumer: table %s is shared: all of it is sent", words->items[0]);
    }
    return rc;
}

static void say_handed_in(const struct tn_direct_result *result, const struct tn_lake *lake,
                          const char *where)
{
    if (result->first_id == 0) {
        (void)fprintf(stderr, "handed in nothing: %s has all up to snapshot %" PRId64 "\n", where,
                      result->last_id);
        return;
    }
    (void)fprintf(stderr,
                  "handed in snapshots %" PRId64 "..%" PRId64 " entries=%" PRIu32 " files=%" PRIu64
                  " bytes=%" PRIu64,
                  result->first_id, result->last_id, result->commits, result->files, result->bytes);
    if (lake->is_store) {
        (void)fprintf(stderr, " requests=%" PRIu64, tn_target_asked(&lake->target->counts));
    }
    (void)fputc('\n', stderr);
}

static void say_committed(const struct tn_direct_result *result, const char *where)
{
    if (result->replaced > 0) {
        (void)fprintf(stderr,
                      "tarn: warning: %s: somebody wrote over what this gateway had committed: it "
                      "was sent again; who commits there must not replace snapshots\n",
                      where);
    }
    if (result->first_id == 0) {
        (void)fprintf(stderr, "synced nothing: %s has all up to snapshot %" PRId64 "\n", where,
                      result->last_id);
        return;
    }
    (void)fprintf(stderr,
                  "synced snapshots %" PRId64 "..%" PRId64 " files=%" PRIu64 " bytes=%" PRIu64
                  " commits=%" PRIu32 " lake=%" PRId64 "\n",
                  result->first_id, result->last_id, result->files, result->bytes, result->commits,
                  result->lake_id);
}

static tn_rc send_shared(struct tn_app *app, struct tn_place *place, const char *table,
                         enum tn_share_way way, struct tn_direct_result *result, struct tn_err *err)
{
    static struct tn_lake_progress progress;
    struct tn_worker *worker = &app->workers[TN_LANE_LONG];
    struct tn_direct_spec spec = {.table = table, .wait = let_pass, .dry_run = o.dry_run};
    struct tn_side_folder scratch;
    if (o.dry_run) {
        return tn_share_sync(way, &spec, worker, result, err);
    }
    const char *name = tn_arena_format(&app->table, "%s.sending", table);
    tn_rc rc =
        name ? tn_side_folder_open(&scratch, &app->posix.io, app->warehouse, name, &app->table, err)
             : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    if (rc == TN_OK) {
        spec.target = begin_progress(&progress, app, &place->lake, 0);
        spec.place = place->lake.consumer;
        spec.scratch = tn_side_folder_io(&scratch);
        rc = tn_share_sync(way, &spec, worker, result, err);
        end_progress(&progress, spec.target);
        tn_side_folder_close(&scratch);
    }
    return rc;
}

static tn_rc report_shared(struct tn_app *app, const struct tn_lake *lake, const char *where,
                           enum tn_share_way way, const struct tn_direct_result *result,
                           struct tn_err *err)
{
    if (o.dry_run) {
        const struct plan plan = {result->first_id, result->last_id, result->files, result->bytes,
                                  result->requests};
        return print_plan(app, &plan, lake->is_store, err);
    }
    if (!tn_common.quiet && way == TN_SHARE_GATHER) {
        say_handed_in(result, lake, where);
    } else if (!tn_common.quiet) {
        say_committed(result, where);
    }
    return TN_OK;
}

static tn_rc sync_shared(struct tn_app *app, const struct tn_text_list *words,
                         const struct tn_share *share, struct tn_err *err)
{
    static struct tn_place place;
    struct tn_place_spec where = {.where = share->where,
                                  .table = words->items[0],
                                  .who = "tarn sync",
                                  .options = &o.options,
                                  .rate = o.rate,
                                  .make = !o.dry_run,
                                  .shared = true};
    struct tn_direct_result result = {0};
    tn_rc rc = check_shared(app, words, share, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_place_open(&place, app, &where, err);
    if (rc == TN_OK) {
        rc = send_shared(app, &place, words->items[0], share->way, &result, err);
    }
    if (rc == TN_OK) {
        rc = report_shared(app, &place.lake, share->where, share->way, &result, err);
    }
    tn_place_close(&place);
    return rc;
}

/* ---- a mirror ---- */

static tn_rc sync_mirror(struct tn_app *app, const struct tn_text_list *words, const char *root,
                         struct tn_err *err)
{
    static struct tn_place place;
    struct tn_lake *lake = &place.lake;
    struct tn_place_spec where = {.where = words->items[1],
                                  .table = words->items[0],
                                  .who = "tarn sync",
                                  .options = &o.options,
                                  .rate = o.rate,
                                  .make = !o.dry_run};
    struct tn_delta_result result = {0};
    struct tn_delta_spec spec = {.root = root, .dry_run = o.dry_run};
    tn_rc rc = tn_place_open(&place, app, &where, err);
    if (rc == TN_OK) {
        rc = sync_open(lake, app, &spec, &result, err);
    }
    if (rc == TN_OK && o.dry_run) {
        rc = print_mirror(app, &result, lake, err);
    } else if (rc == TN_OK) {
        say_synced(&result, words->items[1]);
    }
    tn_place_close(&place);
    return rc;
}

static tn_rc sync_to(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    struct tn_share share;
    const char *root;
    tn_rc rc = find_table(app, words->items[0], &root, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_share_read(&app->posix.io, words->items[0], &app->table, &share, err);
    if (rc == TN_ABSENT) {
        return sync_mirror(app, words, root, err);
    }
    return rc == TN_OK ? sync_shared(app, words, &share, err) : rc;
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 2) {
        return tn_say_usage(&tn_cmd_sync);
    }
    return tn_run_verb(sync_to, words);
}

const struct tn_command tn_cmd_sync = {
    "sync",
    "sync D.T TARGET",
    "brings a mirror in a folder or a bucket up to the newest snapshot; it keeps what the table "
    "expires, or as long as lake.snapshot... say",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
