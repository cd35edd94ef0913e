#include "upload/delta_private.h"

#include "file/names.h"

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

static tn_rc find_snapshots(struct tn_delta *d, struct tn_err *err)
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

tn_rc tn_delta_find_source(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = find_schemas(d, err);
    if (rc == TN_OK) {
        rc = find_snapshots(d, err);
    }
    return rc == TN_OK ? tn_delta_find_tags(d, err) : rc;
}
