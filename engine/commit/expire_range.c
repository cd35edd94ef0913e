#include "commit/expire_private.h"

#include "file/names.h"
#include "format/json.h"

enum { CONSUMER_SIZE_MAX = 4096 };

static tn_rc read_consumer(struct tn_expire_run *e, const char *path, struct tn_err *err)
{
    struct tn_arena *arena = &e->worker->arena;
    struct tn_bytes text;
    struct cJSON *root;
    int64_t next;
    tn_rc rc = tn_io_read_all(e->worker->io, path, CONSUMER_SIZE_MAX, arena, &text, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = tn_json_open(text, arena, &root, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", path);
    }
    bool found = tn_json_i64(tn_json_member(root, "nextSnapshot"), &next);
    tn_json_close(root);
    if (!found) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: $.nextSnapshot: missing", path);
    }
    e->consumer_min = next < e->consumer_min ? next : e->consumer_min;
    return TN_OK;
}

static tn_rc note_consumer(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_expire_run *e = user;
    struct tn_arena *arena = &e->worker->arena;
    if (is_dir || !tn_name_begins(name, "consumer-")) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, e->spec->root, TN_DIR_CONSUMER, name);
    tn_rc rc = path ? read_consumer(e, path, err) : tn_expire_no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first snapshot from `low` on that is too young to go. Source: Paimon 1.3,
 * ExpireSnapshotsImpl. */
static tn_rc stop_at_young(struct tn_expire_run *e, int64_t low, int64_t high, int64_t *stop,
                           struct tn_err *err)
{
    struct tn_worker *worker = e->worker;
    int64_t now = worker->clock->vtable->now_ms(worker->clock);
    int64_t retained = e->spec->options->snapshot_time_retained_ms;
    int64_t older_than = retained < now ? now - retained : 0;
    *stop = high;
    for (int64_t id = low; id < high; id++) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(&worker->arena);
        tn_rc rc = tn_snapshot_read(worker->io, e->spec->root, id, &worker->arena, &snapshot, err);
        int64_t time = rc == TN_OK ? snapshot.time_ms.value : 0;
        tn_arena_reset(&worker->arena, mark);
        if (rc != TN_OK && rc != TN_ABSENT) {
            return rc;
        }
        if (rc == TN_OK && time >= older_than) {
            *stop = id;
            return TN_OK;
        }
    }
    return TN_OK;
}

static tn_rc choose_end(struct tn_expire_run *e, struct tn_err *err)
{
    const struct tn_options *options = e->spec->options;
    int64_t stop;
    int64_t low = larger(e->last - options->snapshot_retained_max + 1, e->first);
    int64_t high = e->last - larger(options->snapshot_retained_min, 1) + 1;
    e->consumer_min = INT64_MAX;
    tn_rc rc = tn_expire_list_folder(e, TN_DIR_CONSUMER, note_consumer, e, err);
    if (rc != TN_OK) {
        return rc;
    }
    high = smaller(high, e->consumer_min);
    high = smaller(high, e->first + options->snapshot_expire_limit);
    rc = stop_at_young(e, low, high, &stop, err);
    e->end = larger(stop, e->first); /* what stands below `first` was decided by a run before */
    return rc;
}

tn_rc tn_expire_choose_range(struct tn_expire_run *e, struct tn_err *err)
{
    struct tn_io *io = e->worker->io;
    struct tn_arena *arena = &e->worker->arena;
    const char *root = e->spec->root;
    tn_rc rc = tn_snapshot_oldest_name(io, root, arena, &e->oldest, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(io, root, arena, &e->first, err);
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(io, root, arena, &e->last, err);
    }
    return rc == TN_OK ? choose_end(e, err) : rc;
}
