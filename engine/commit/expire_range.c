#include "commit/expire_private.h"

#include "commit/consumer.h"
#include "file/names.h"

static tn_rc note_consumer(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct tn_expire_run *e = user;
    const char *id = tn_consumer_id(name);
    int64_t next;
    if (is_dir || !id) {
        return TN_OK;
    }
    tn_rc rc = tn_consumer_read(e->worker->io, e->spec->root, id, &e->worker->arena, &next, err);
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

struct retention {
    int64_t min;
    int64_t max;
    int64_t time_ms;
    int64_t high; /* nothing from it on goes, whatever else is said */
    tn_rc (*with)(struct tn_expire_run *e, int64_t id, tn_expire_snapshot_fn *each,
                  struct tn_err *err);
};

static tn_rc note_time(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                       struct tn_err *err)
{
    (void)err;
    e->time_ms = snapshot->time_ms.value;
    return TN_OK;
}

/* The first snapshot from `low` on that is too young to go. Source: Paimon 1.3,
 * ExpireSnapshotsImpl. */
static tn_rc stop_at_young(struct tn_expire_run *e, const struct retention *retention, int64_t low,
                           int64_t high, int64_t *stop, struct tn_err *err)
{
    struct tn_clock *clock = e->worker->clock;
    int64_t now = clock->vtable->now_ms(clock);
    int64_t older_than = retention->time_ms < now ? now - retention->time_ms : 0;
    tn_rc rc = TN_OK;
    *stop = high;
    for (int64_t id = low; rc == TN_OK && id < high; id++) {
        e->time_ms = -1; /* stays where there is none */
        rc = retention->with(e, id, note_time, err);
        if (rc == TN_OK && e->time_ms >= older_than) {
            *stop = id;
            break;
        }
    }
    return rc;
}

static tn_rc note_met(struct tn_expire_run *e, const struct tn_snapshot *snapshot,
                      struct tn_err *err)
{
    (void)snapshot;
    (void)err;
    e->met = true;
    return TN_OK;
}

/* What EARLIEST will name is there, and all that stays is read from it on: where ids are missing it
 * is the next one. The same ones go. */
static tn_rc end_at_one(struct tn_expire_run *e, const struct retention *retention,
                        struct tn_err *err)
{
    int64_t most = smaller(retention->high, e->last);
    tn_rc rc = TN_OK;
    e->met = e->end <= e->first;
    while (rc == TN_OK && !e->met && e->end < most) {
        rc = retention->with(e, e->end, note_met, err);
        e->end += rc == TN_OK && !e->met;
    }
    return rc;
}

static tn_rc choose_end(struct tn_expire_run *e, const struct retention *retention,
                        struct tn_err *err)
{
    int64_t stop;
    int64_t low = larger(e->last - retention->max + 1, e->first);
    int64_t high = e->last - larger(retention->min, 1) + 1;
    e->consumer_min = INT64_MAX;
    tn_rc rc = tn_expire_list_folder(e, TN_DIR_CONSUMER, note_consumer, e, err);
    if (rc != TN_OK) {
        return rc;
    }
    high = smaller(smaller(high, retention->high), e->consumer_min);
    high = smaller(high, e->first + e->spec->options->snapshot_expire_limit);
    rc = stop_at_young(e, retention, low, high, &stop, err);
    e->end = larger(stop, e->first); /* what stands below `first` was decided by a run before */
    return rc == TN_OK ? end_at_one(e, retention, err) : rc;
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
    const struct tn_options *options = e->spec->options;
    struct retention retention = {options->snapshot_retained_min, options->snapshot_retained_max,
                                  options->snapshot_time_retained_ms, INT64_MAX,
                                  tn_expire_with_snapshot};
    return rc == TN_OK ? choose_end(e, &retention, err) : rc;
}

/* Counted from the newest snapshot; the newest record stays, so that it can be told where they end.
 * Source: Paimon, ExpireChangelogImpl. */
tn_rc tn_expire_choose_records(struct tn_expire_run *e, struct tn_err *err)
{
    struct tn_changelog_range range;
    struct tn_retention kept = tn_options_changelog_retention(e->spec->options);
    struct tn_arena *arena = &e->worker->arena;
    tn_rc rc = tn_changelog_range(e->worker->io, e->spec->root, arena, &range, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_latest(e->worker->io, e->spec->root, arena, &e->last, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    e->oldest = range.oldest;
    e->first = range.first;
    struct retention retention = {kept.count_min, kept.count_max, kept.time_ms, range.last,
                                  tn_expire_with_record};
    return choose_end(e, &retention, err);
}
