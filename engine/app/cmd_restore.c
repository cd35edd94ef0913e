/* tarn restore: a table is made anew from its mirror, on a device that takes a dead one's place. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/place.h"
#include "app/side_folder.h"
#include "file/names.h"
#include "table/recover.h"
#include "upload/restore.h"

static struct {
    bool dry_run;
    bool progress;
    int64_t snapshot_id;
    struct tn_text_list options;
} o = {.options = TN_TEXT_LIST(TN_LIST_MAX)};

static const struct tn_flag flags[] = {
    {"snapshot", 0, TN_FLAG_I64, &o.snapshot_id, "N",
     "an older one; that table can't be synced to TARGET"},
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL,
     "only say which snapshots, how many files, bytes"},
    {"option", 0, TN_FLAG_LIST, &o.options, "K=V",
     "of an object store, like s3.endpoint=...; else the environment's AWS_..."},
    {"progress", 0, TN_FLAG_SET, &o.progress, NULL,
     "say on stderr how far it is; on a terminal it does"},
};

/* ---- how far it is ---- */

struct progress {
    int64_t next_ns;
    bool terminal;
    bool said;
};

static void say_progress(void *user, const struct tn_restore_result *so_far)
{
    struct progress *progress = user;
    int64_t now_ns = tn_clock_system.vtable->monotonic_ns(&tn_clock_system);
    if (now_ns < progress->next_ns || so_far->files < so_far->files_done) {
        return; /* until its lists are here nobody knows how much it is */
    }
    progress->next_ns = now_ns + (progress->terminal ? 100 : 1000) * INT64_C(1000000);
    progress->said = true;
    (void)fprintf(stderr,
                  "%ssnapshot %" PRId64 ", %" PRIu64 " of %" PRIu64 " files, %.1f of %.1f MB%s",
                  progress->terminal ? "\r" : "", so_far->last_id, so_far->files_done,
                  so_far->files, (double)so_far->bytes_done / 1e6, (double)so_far->bytes / 1e6,
                  progress->terminal ? "" : "\n");
    (void)fflush(stderr);
}

/* ---- what became of it ---- */

static tn_rc print_plan(struct tn_app *app, const struct tn_restore_result *result,
                        struct tn_err *err)
{
    static const char *const columns[] = {"first_snapshot", "last_snapshot", "files", "bytes"};
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, 4, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_number(&cells, result->first_id);
    tn_cells_number(&cells, result->last_id);
    tn_cells_number(&cells, (int64_t)result->files);
    tn_cells_number(&cells, (int64_t)result->bytes);
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

static void say_restored(const struct tn_restore_result *result, const char *where)
{
    if (tn_common.quiet) {
        return;
    }
    (void)fprintf(
        stderr, "restored snapshots %" PRId64 "..%" PRId64 " files=%" PRIu64 " bytes=%" PRIu64 "\n",
        result->first_id, result->last_id, result->files_done, result->bytes_done);
    if (result->shared) {
        (void)fprintf(stderr,
                      "tarn: gateways share %s: this is a table of its own, that can't be synced "
                      "there\n",
                      where);
    } else if (result->last_id < result->newest_id) {
        (void)fprintf(stderr,
                      "tarn: %s goes on to snapshot %" PRId64
                      ": this is a table of its own, that can't be synced there\n",
                      where, result->newest_id);
    } else if (!result->owner) {
        (void)fprintf(stderr, "tarn: %s is nobody's mirror yet: the first sync makes it one\n",
                      where);
    }
    if (result->last_id > 0 && !result->positions) {
        (void)fprintf(stderr, "tarn: no snapshot there says where sources stood: say --from\n");
    }
}

/* ---- the restore ---- */

/* One that is opened for writing would be made. */
static tn_rc check_folder(const char *where, struct tn_err *err)
{
    struct stat found;
    return tn_lake_is_store(where) || stat(where, &found) == 0
               ? TN_OK
               : tn_err_set(err, TN_ABSENT, 0, "%s: there is no such folder", where);
}

/* What must be there before it is a table: whose positions it goes on with. */
static tn_rc inherit(struct tn_app *app, const char *table, const struct tn_restore_result *result,
                     struct tn_err *err)
{
    return result->writer[0] ? tn_table_inherit(&app->posix.io, table, result->writer,
                                                result->positions, &app->table, err)
                             : TN_OK;
}

static tn_rc restore_with(struct tn_app *app, struct tn_restore_spec spec,
                          struct tn_restore_result *result, struct tn_err *err)
{
    struct tn_worker *worker = &app->workers[TN_LANE_LONG];
    struct tn_recovered writer = {0};
    tn_rc rc = spec.dry_run ? TN_OK
                            : tn_table_writer(&app->posix.io, app->env.clock, spec.table,
                                              &app->table, &writer, err);
    spec.writer = writer.writer;
    if (rc == TN_OK) {
        rc = tn_restore_bring(&spec, worker, result, err);
    }
    if (rc != TN_OK || spec.dry_run) {
        return rc;
    }
    rc = inherit(app, spec.table, result, err);
    return rc == TN_OK ? tn_restore_finish(&spec, worker, result, err) : rc;
}

static tn_rc restore_to(struct tn_app *app, struct tn_place *place, struct tn_restore_spec spec,
                        struct tn_err *err)
{
    static struct tn_restore_result result;
    struct progress progress = {.terminal = isatty(STDERR_FILENO) != 0};
    spec.target = place->lake.target;
    spec.lake = place->lake.consumer;
    if (!o.dry_run && !tn_common.quiet && (o.progress || progress.terminal)) {
        spec.note = say_progress;
        spec.user = &progress;
    }
    tn_rc rc = restore_with(app, spec, &result, err);
    if (progress.said && progress.terminal) {
        (void)fputs("\n", stderr);
    }
    if (rc == TN_OK && o.dry_run) {
        rc = print_plan(app, &result, err);
    } else if (rc == TN_OK) {
        say_restored(&result, spec.target->name);
    }
    return rc;
}

static tn_rc with_scratch(struct tn_app *app, struct tn_place *place, struct tn_restore_spec spec,
                          struct tn_err *err)
{
    struct tn_side_folder scratch;
    const char *name = tn_arena_format(&app->table, "%s.restoring", spec.table);
    tn_rc rc =
        name ? tn_side_folder_open(&scratch, &app->posix.io, app->warehouse, name, &app->table, err)
             : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    if (rc == TN_OK) {
        spec.scratch = tn_side_folder_io(&scratch);
        rc = restore_to(app, place, spec, err);
        tn_side_folder_close(&scratch);
    }
    return rc;
}

static tn_rc restore(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_place place;
    const char *table = words->items[0];
    struct tn_restore_spec spec = {
        .table = table, .snapshot_id = o.snapshot_id, .dry_run = o.dry_run};
    const struct tn_place_spec where = {.where = words->items[1],
                                        .table = table,
                                        .who = "tarn restore",
                                        .options = &o.options,
                                        .make = !o.dry_run};
    place.lake.lock = -1;
    tn_rc rc = tn_name_table_root(&app->table, table, &spec.root, err);
    if (rc == TN_OK) {
        rc = check_folder(where.where, err);
    }
    if (rc == TN_OK) {
        rc = tn_place_open(&place, app, &where, err);
    }
    if (rc == TN_OK) {
        rc = with_scratch(app, &place, spec, err);
    }
    tn_place_close(&place);
    return rc;
}

static int run(const struct tn_text_list *words)
{
    static struct tn_app app;
    struct tn_err err = {0};
    int lock = -1;
    if (words->count != 2) {
        return tn_say_usage(&tn_cmd_restore);
    }
    if (o.snapshot_id < 0) {
        return tn_say_error(tn_err_set(&err, TN_INVALID, 0, "--snapshot: ids begin at 1"), &err);
    }
    tn_rc rc = tn_boot(&app, true, &err);
    if (rc == TN_OK) {
        rc = tn_table_lock(&app.posix.io, words->items[0], "tarn restore", &app.table, &lock, &err);
    }
    if (rc == TN_OK) {
        rc = restore(&app, words, &err);
    }
    int code = rc == TN_OK ? 0 : tn_say_error(rc, &err);
    if (lock >= 0) {
        app.posix.io.vtable->close(&app.posix.io, lock);
    }
    tn_shut(&app);
    return code;
}

const struct tn_command tn_cmd_restore = {
    "restore",
    "restore D.T TARGET",
    "makes a table anew from its mirror, and is the mirror's source from then on",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
