#include "upload/delta_private.h"

#include <inttypes.h>

#include "file/names.h"

/* ---- what is there ---- */

struct largest {
    const char *prefix;
    int64_t number; /* -1: none */
};

static tn_rc note_larger(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct largest *largest = user;
    int64_t number = is_dir ? -1 : tn_name_number(name, largest->prefix);
    largest->number = number > largest->number ? number : largest->number;
    return TN_OK;
}

static tn_rc find_schemas(struct tn_delta *d, struct tn_err *err)
{
    struct tn_io *io = d->worker->io;
    struct largest largest = {"schema-", -1};
    const char *dir = tn_name_in(&d->worker->arena, d->root, TN_DIR_SCHEMA, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, note_larger, &largest, err) : tn_delta_no_room(err);
    if (rc == TN_ABSENT || (rc == TN_OK && largest.number < 0)) {
        return tn_err_set(err, TN_ABSENT, 0, "there is no such table");
    }
    d->schema_last = largest.number;
    return rc;
}

static tn_rc find_source(struct tn_delta *d, struct tn_err *err)
{
    struct tn_worker *worker = d->worker;
    tn_rc rc = tn_snapshot_latest(worker->io, d->root, &worker->arena, &d->source_last, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(worker->io, d->root, &worker->arena, &d->source_first, err);
    }
    if (rc == TN_ABSENT) { /* a table without snapshots: its schemas travel */
        d->source_first = 1;
        d->source_last = 0;
        rc = TN_OK;
    }
    return rc;
}

/* The target's hints are for others: the names in its folder count. The newest may have got its
 * name just before a kill; to be asked for puts it under the next barrier. */
static tn_rc find_target(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct largest largest = {"snapshot-", 0};
    const char *dir = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, "");
    tn_rc rc = TN_ABSENT;
    d->have = 0;
    if (!dir) {
        return tn_delta_no_room(err);
    }
    if (d->target) {
        rc = d->target->vtable->list(d->target, dir, note_larger, &largest, err);
    }
    if (rc == TN_OK && largest.number > 0) {
        uint64_t size;
        const char *path =
            tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", largest.number);
        rc = path ? d->target->vtable->stat(d->target, path, &size, err) : tn_delta_no_room(err);
        d->have = rc == TN_OK ? largest.number : 0;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_delta_find_at_target(struct tn_delta *d, const char *path, uint64_t *size,
                              struct tn_err *err)
{
    return d->target ? d->target->vtable->stat(d->target, path, size, err) : TN_ABSENT;
}

/* ---- is it the same table? ---- */

tn_rc tn_delta_diverged(const struct tn_delta *d, const char *path, struct tn_err *err)
{
    return tn_err_set(err, TN_CONFLICT, 0,
                      "%s: %s has other content there: it is another table, or another history of "
                      "this one; nothing is sent",
                      d->target->name, path);
}

tn_rc tn_delta_compare(struct tn_delta *d, const char *dir, const char *prefix, int64_t id,
                       size_t size_max, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes ours;
    struct tn_bytes theirs;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_numbered(arena, d->root, dir, prefix, id);
    tn_rc rc = path ? d->target->vtable->read(d->target, path, size_max, arena, &theirs, err)
                    : tn_delta_no_room(err);
    if (rc == TN_OK) {
        rc = tn_io_read_all(d->worker->io, path, size_max, arena, &ours, err);
    }
    if (rc == TN_OK && !tn_bytes_equal(ours, theirs)) {
        rc = tn_delta_diverged(d, path, err);
    }
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_delta_check_same(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (!d->target) {
        return TN_OK;
    }
    for (int64_t id = 0; rc == TN_OK && id <= d->schema_last; id++) {
        rc = tn_delta_compare(d, TN_DIR_SCHEMA, "schema-", id, TN_SCHEMA_SIZE_MAX, err);
    }
    if (rc == TN_OK && d->have > d->source_last) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s has snapshot %" PRId64 ", the newest here is %" PRId64
                          ": somebody commits there, or this table was made anew; nothing is sent",
                          d->target->name, d->have, d->source_last);
    }
    if (rc == TN_OK && d->have > 0) {
        rc = tn_delta_compare(d, TN_DIR_SNAPSHOT, "snapshot-", d->have, TN_SNAPSHOT_SIZE_MAX, err);
    }
    return rc;
}

tn_rc tn_delta_find(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = find_schemas(d, err);
    if (rc == TN_OK) {
        rc = find_source(d, err);
    }
    return rc == TN_OK ? find_target(d, err) : rc;
}
