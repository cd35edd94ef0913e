#include "upload/delta_private.h"

#include <stdio.h>

#include "file/names.h"
#include "upload/share.h"

enum {
    RESTARTS_MAX = 8,   /* expiry would have to win that often, each time over a full list */
    COUNTED_MAX = 4096, /* files of a dry run that are told apart; beyond, some count twice */
};

static tn_rc look(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = tn_delta_find_source(d, err);
    if (rc == TN_OK) {
        rc = tn_delta_meet(d, err);
    }
    if (rc == TN_OK) {
        d->result->last_id = d->ledger.have;
        rc = tn_delta_protect(d, err);
    }
    return rc;
}

/* A commit that is under way has given its snapshot a name which a power cut may still take back
 * here: the mirror would have another history. */
static tn_rc settle_source(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    const char *folders[] = {tn_name_in(arena, d->root, TN_DIR_SCHEMA, ""),
                             tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, "")};
    if (!folders[0] || !folders[1]) {
        return tn_delta_no_room(err);
    }
    struct tn_io *io = d->worker->io;
    return io->vtable->sync(io, folders, d->source_last > 0 ? 2 : 1, err);
}

static tn_rc send_snapshots(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    int64_t have = d->ledger.have;
    int64_t first = have + 1 > d->source_first ? have + 1 : d->source_first;
    bool all = d->spec->through == 0 || d->spec->through > d->source_last;
    int64_t last = all ? d->source_last : d->spec->through;
    tn_rc rc = d->spec->dry_run ? TN_OK : settle_source(d, err);
    for (int64_t id = first; rc == TN_OK && id <= last && !d->result->limited; id++) {
        size_t mark = tn_arena_mark(arena);
        d->at = id;
        rc = tn_delta_send_snapshot(d, id, err);
        tn_arena_reset(arena, mark);
        d->result->limited = d->halved || (id < last && tn_delta_is_spent(d));
    }
    return rc == TN_OK && !d->result->limited ? tn_delta_bring_schemas(d, d->schema_last, err) : rc;
}

/* What was sent of what goes on another time stays. */
static tn_rc end_halved(struct tn_delta *d, tn_rc rc, struct tn_err *err)
{
    bool ends = rc == TN_CANCELED && d->halved;
    d->result->limited = d->result->limited || ends;
    return ends ? d->target->vtable->settle(d->target, err) : rc;
}

/* Tags come behind all that they may name. */
static tn_rc send_all(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = end_halved(d, send_snapshots(d, err), err);
    if (rc == TN_OK && !d->spec->dry_run) {
        rc = tn_delta_end(d, err);
        rc = rc == TN_OK ? tn_delta_protect(d, err) : rc;
    }
    bool all = d->spec->dry_run || (!d->result->limited && d->ledger.have >= d->source_last);
    return rc == TN_OK && all ? end_halved(d, tn_delta_bring_tags(d, err), err) : rc;
}

/* A file of the source is gone: was it expired, or is the table damaged? */
static bool was_expired(struct tn_delta *d)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_io *io = d->worker->io;
    struct tn_err ignored;
    int64_t first;
    uint64_t size;
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", d->at);
    return !path || io->vtable->stat(io, path, &size, &ignored) != TN_OK ||
           tn_snapshot_earliest(io, d->root, arena, &first, &ignored) != TN_OK || first > d->at;
}

static tn_rc run_once(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    d->again = false;
    tn_rc rc = look(d, err);
    if (rc == TN_OK && !d->quiet) {
        rc = send_all(d, err);
        if (rc != TN_OK && !d->spec->dry_run) {
            d->target->vtable->drop(d->target);
        }
        bool missing = rc == TN_ABSENT || rc == TN_CORRUPT;
        d->again = missing && was_expired(d);
        if (missing) {
            err->code = rc = d->again ? TN_AGAIN : TN_CORRUPT;
        }
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* "db.t" for "db.db/t". */
static const char *table_of(const char *root, struct tn_arena *arena)
{
    const char *slash = strrchr(root, '/');
    size_t size = slash ? (size_t)(slash - root) : 0;
    bool is_database = size > 3 && memcmp(slash - 3, ".db", 3) == 0;
    return is_database ? tn_arena_format(arena, "%.*s.%s", (int)(size - 3), root, slash + 1)
                       : tn_arena_format(arena, "%s", slash ? slash + 1 : root);
}

/* As table/recover.h has it. */
static tn_rc read_writer(struct tn_delta *d, struct tn_err *err)
{
    struct tn_bytes text;
    const char *path = tn_arena_format(&d->worker->arena, ".tarn/%s.writer", d->table);
    tn_rc rc = path ? tn_io_read_all(d->worker->io, path, TN_OWNER_ID_SIZE - 1, &d->worker->arena,
                                     &text, err)
                    : tn_delta_no_room(err);
    (void)snprintf(d->writer, sizeof d->writer, "%s",
                   rc == TN_OK ? (const char *)text.data : TN_DELTA_WRITER_UNKNOWN);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* Its snapshots have ids of their own, which are none of the lake's. */
static tn_rc check_not_shared(struct tn_delta *d, struct tn_err *err)
{
    struct tn_share share;
    tn_rc rc = tn_share_read(d->worker->io, d->table, &d->worker->arena, &share, err);
    if (rc == TN_OK) {
        return tn_err_set(
            err, TN_CONFLICT, 0,
            "it is a part of the table at %s: no mirror of it can be made; `tarn sync` "
            "sends it there",
            share.where);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc init(struct tn_delta *d, struct tn_err *err)
{
    d->lake = d->spec->lake ? d->spec->lake : d->spec->consumer;
    d->table = table_of(d->root, &d->worker->arena);
    tn_rc rc = d->table ? check_not_shared(d, err) : tn_delta_no_room(err);
    rc = rc == TN_OK ? read_writer(d, err) : rc;
    return rc == TN_OK && d->spec->dry_run
               ? tn_set_init(&d->counted, COUNTED_MAX, &d->worker->arena, err)
               : rc;
}

static tn_rc run(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = init(d, err);
    if (rc == TN_OK) {
        rc = run_once(d, err);
    }
    while (d->again && d->result->restarts < RESTARTS_MAX) {
        d->result->restarts++;
        rc = run_once(d, err);
    }
    return rc == TN_OK ? tn_delta_keep(d, err) : rc;
}

tn_rc tn_delta_sync(const struct tn_delta_spec *spec, struct tn_worker *worker,
                    struct tn_delta_result *result, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    void *memory;
    *result = (struct tn_delta_result){0};
    tn_rc rc = tn_arena_need(&worker->arena, sizeof(struct tn_delta), "sync", &memory, err);
    if (rc != TN_OK) {
        return rc;
    }
    struct tn_delta *d = memory;
    *d = (struct tn_delta){.spec = spec,
                           .worker = worker,
                           .result = result,
                           .target = spec->target,
                           .root = spec->root};
    rc = run(d, err);
    tn_arena_reset(&worker->arena, mark);
    return rc == TN_OK ? TN_OK : tn_err_in(err, "sync %s", spec->root);
}
