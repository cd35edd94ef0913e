/* tarn rollback: a table goes back to a snapshot or a tag; one that has a lake, by a new snapshot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/cells.h"
#include "app/cmd.h"
#include "app/reader.h"
#include "commit/consumer.h"
#include "commit/revert.h"
#include "file/names.h"
#include "table/recover.h"
#include "upload/share.h"

static struct {
    bool dry_run;
} o;

static const struct tn_flag flags[] = {
    {"dry-run", 0, TN_FLAG_SET, &o.dry_run, NULL, "only say what would go"},
};

/* Digits are a snapshot, as for Paimon's rollback_to. */
static tn_rc parse_target(const char *text, struct tn_rollback_spec *spec, struct tn_err *err)
{
    if (text[0] == 0 || strspn(text, "0123456789") != strlen(text)) {
        spec->tag = text;
        return TN_OK;
    }
    errno = 0;
    spec->snapshot_id = strtoll(text, NULL, 10);
    return errno == 0 ? TN_OK : tn_err_set(err, TN_INVALID, 0, "'%s' is no snapshot", text);
}

/* ---- what doesn't go back, and what does ---- */

struct beyond {
    struct tn_reader *reader;
    int64_t snapshot_id;
};

/* Paimon leaves it as it is, too. */
static tn_rc warn_of_consumer(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct beyond *b = user;
    struct tn_app *app = b->reader->app;
    int64_t next;
    (void)err;
    const char *id = tn_consumer_id(name);
    if (is_dir || !id || tn_consumer_kind_of(id) == TN_CONSUMER_WRITER) {
        return TN_OK; /* a writer's goes back with its positions */
    }
    struct tn_err ignored;
    tn_rc rc = tn_consumer_read(&app->posix.io, b->reader->root, id, &app->table, &next, &ignored);
    if (rc == TN_OK && next > b->snapshot_id + 1) {
        (void)fprintf(stderr,
                      "tarn: %s: consumer '%s' goes on at snapshot %" PRId64
                      ": what was read from %" PRId64 " on is not taken back there\n",
                      b->reader->name, id, next, b->snapshot_id + 1);
    }
    return TN_OK;
}

static void warn_of_consumers(struct tn_reader *reader, int64_t snapshot_id)
{
    struct tn_io *io = &reader->app->posix.io;
    struct tn_err ignored;
    struct beyond beyond = {reader, snapshot_id};
    const char *dir = tn_name_in(&reader->app->table, reader->root, TN_DIR_CONSUMER, "");
    if (dir) {
        (void)!io->vtable->list(io, dir, warn_of_consumer, &beyond, &ignored);
    }
}

static bool has_positions(const struct tn_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->properties.count; i++) {
        if (tn_name_begins(snapshot->properties.pairs[i].key, TN_POSITION_PROPERTY)) {
            return true;
        }
    }
    return false;
}

/* `reader` is at the snapshot that was the newest when it was opened. */
static void tell(struct tn_reader *reader, const struct tn_rollback_result *result)
{
    const char *does = o.dry_run ? "would go" : "go";
    if (tn_common.quiet) {
        return;
    }
    if (has_positions(&reader->snapshot) && result->latest_id > result->snapshot_id) {
        (void)fprintf(stderr,
                      "tarn: %s: positions of inputs %s back with snapshot %" PRId64
                      ": what came behind it is read again\n",
                      reader->name, does, result->snapshot_id);
    }
    if (result->snapshots > 0 && !o.dry_run) {
        (void)fprintf(stderr,
                      "tarn: %s: their files stay; `tarn clean` frees them when they are a day old "
                      "(--older-than)\n",
                      reader->name);
    }
    warn_of_consumers(reader, result->snapshot_id);
}

/* ---- lakes ---- */

struct lakes {
    const char *first; /* one that has the table, or NULL */
    struct tn_arena *arena;
};

static tn_rc note_lake(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct lakes *lakes = user;
    const char *id = tn_consumer_id(name);
    if (is_dir || !id || tn_consumer_kind_of(id) != TN_CONSUMER_LAKE || lakes->first) {
        return TN_OK;
    }
    lakes->first = tn_arena_text(lakes->arena, tn_bytes_of(id));
    return lakes->first ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for a lake's name");
}

static tn_rc find_lakes(struct tn_reader *reader, struct lakes *lakes, struct tn_err *err)
{
    struct tn_io *io = &reader->app->posix.io;
    lakes->arena = &reader->app->table;
    const char *dir = tn_name_in(lakes->arena, reader->root, TN_DIR_CONSUMER, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, note_lake, lakes, err)
                   : tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* What a lake has, or is getting now, stays: its readers have seen it, and another snapshot by that
 * id would never get there. */
static void tell_reverted(const struct tn_reader *reader, const struct tn_revert_result *result,
                          const char *lake)
{
    if (tn_common.quiet) {
        return;
    }
    (void)fprintf(stderr,
                  "tarn: %s: it has a lake, %s, so snapshot %" PRId64 " %s the state of %" PRId64
                  ", and none is removed\n",
                  reader->name, lake, result->snapshot_id, o.dry_run ? "would have" : "has",
                  result->from_id);
}

/* No snapshot, tag or changelog goes. */
static tn_rc revert(struct tn_reader *reader, const struct tn_rollback_spec *target,
                    const char *lake, struct tn_rollback_result *result, struct tn_err *err)
{
    struct tn_revert_spec spec = {
        .target = *target, .schema = reader->newest, .options = &reader->options};
    struct tn_revert_result reverted;
    tn_rc rc = tn_revert(&spec, &reader->app->workers[TN_LANE_LONG], &reverted, err);
    if (rc == TN_OK) {
        tell_reverted(reader, &reverted, lake);
        *result = (struct tn_rollback_result){.snapshot_id = reverted.snapshot_id};
    }
    return rc;
}

/* ---- */

static tn_rc report(struct tn_app *app, const struct tn_rollback_result *result, struct tn_err *err)
{
    static const char *const columns[] = {"snapshot", "snapshots", "tags", "changelogs"};
    static struct tn_cells cells;
    tn_rc rc = tn_cells_open(&cells, columns, 4, &app->input, err);
    if (rc != TN_OK) {
        return rc;
    }
    tn_cells_number(&cells, result->snapshot_id);
    tn_cells_number(&cells, result->snapshots);
    tn_cells_number(&cells, result->tags);
    tn_cells_number(&cells, result->changelogs);
    rc = tn_cells_end(&cells, err);
    return rc == TN_OK ? tn_cells_close(&cells, err) : rc;
}

/* The lake would keep what is taken back here. */
static tn_rc check_not_shared(struct tn_reader *reader, struct tn_err *err)
{
    struct tn_app *app = reader->app;
    struct tn_share share;
    tn_rc rc = tn_share_read(&app->posix.io, reader->name, &app->table, &share, err);
    if (rc == TN_OK) {
        return tn_err_set(err, TN_UNSUPPORTED, 0,
                          "table %s is a part of the one at %s: it doesn't go back", reader->name,
                          share.where);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc rollback_locked(struct tn_reader *reader, const char *target, struct tn_err *err)
{
    struct tn_app *app = reader->app;
    struct tn_rollback_spec spec = {.root = reader->root, .dry_run = o.dry_run};
    struct tn_rollback_result result;
    struct lakes lakes = {NULL, NULL};
    tn_rc rc = parse_target(target, &spec, err);
    if (rc == TN_OK) {
        rc = check_not_shared(reader, err);
    }
    if (rc == TN_OK) {
        rc = find_lakes(reader, &lakes, err);
    }
    if (rc == TN_OK && lakes.first) {
        rc = revert(reader, &spec, lakes.first, &result, err);
        return rc == TN_OK ? report(app, &result, err) : rc;
    }
    if (rc == TN_OK) {
        rc = tn_rollback(&spec, &app->workers[TN_LANE_LONG], &result, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    tell(reader, &result);
    return report(app, &result, err);
}

static tn_rc rollback(struct tn_app *app, const struct tn_text_list *words, struct tn_err *err)
{
    static struct tn_reader reader;
    const char *name = words->items[0];
    struct tn_io *io = &app->posix.io;
    char who[96];
    int lock;
    (void)snprintf(who, sizeof who, "tarn rollback, process %ld", (long)getpid());
    tn_rc rc = tn_reader_open(&reader, app, name, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_table_lock(io, name, who, &app->table, &lock, err);
    if (rc == TN_OK) {
        rc = rollback_locked(&reader, words->items[1], err);
        io->vtable->close(io, lock);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "%s", name);
}

static int run(const struct tn_text_list *words)
{
    if (words->count != 2) {
        return tn_say_usage(&tn_cmd_rollback);
    }
    return tn_run_verb(rollback, words);
}

const struct tn_command tn_cmd_rollback = {
    "rollback",
    "rollback D.T N|TAG",
    "takes the table back to a snapshot or a tag; what came behind it is gone, or where a lake has "
    "it, "
    "replaced by a new snapshot",
    flags,
    sizeof flags / sizeof flags[0],
    run,
};
