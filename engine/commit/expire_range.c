#include "commit/expire_private.h"

#include "commit/consumer.h"
#include "file/names.h"

static tn_rc note_consumer(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    static const char prefix[] = "consumer-";
    struct tn_expire_run *e = user;
    int64_t next;
    if (is_dir || !tn_name_begins(name, prefix)) {
        return TN_OK;
    }
    tn_rc rc = tn_consumer_read(e->worker->io, e->spec->root, name + sizeof prefix - 1,
                                &e->worker->arena, &next, err);
    if (rc == TN_OK) {
        e->consumer_min = next < e->consumer_min ? next : e->consumer_min;
    }
    return rc == TN_ABSENT ? TN_OK : rc; /* removed while this looked */
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
