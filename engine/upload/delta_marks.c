#include "upload/delta_private.h"

#include <errno.h>
#include <inttypes.h>

#include "commit/consumer.h"
#include "file/names.h"

enum { HINT_SIZE_MAX = 64 }; /* as in commit/snapshot */

#define HOUR_MS (60 * 60 * INT64_C(1000))

/* ---- hints ---- */

typedef tn_rc put_fn(struct tn_target *target, const char *path, struct tn_bytes bytes,
                     struct tn_err *err);

static tn_rc put_hint(struct tn_delta *d, const char *name, int64_t id, put_fn *put,
                      struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, name);
    const char *text = tn_arena_format(arena, "%" PRId64, id);
    return path && text ? put(d->target, path, tn_bytes_of(text), err) : tn_delta_no_room(err);
}

tn_rc tn_delta_write_hint(struct tn_delta *d, const char *name, int64_t id, struct tn_err *err)
{
    return put_hint(d, name, id, d->target->vtable->replace, err);
}

tn_rc tn_delta_make_hint(struct tn_delta *d, const char *name, int64_t id, struct tn_err *err)
{
    tn_rc rc = put_hint(d, name, id, d->target->vtable->publish, err);
    return rc == TN_CONFLICT ? tn_delta_shown_late(d, name, err) : rc;
}

tn_rc tn_delta_shown_late(const struct tn_delta *d, const char *what, struct tn_err *err)
{
    return tn_err_set(err, TN_IO, EACCES, "%s: permission to read %s was denied for a moment",
                      d->target->name, what);
}

tn_rc tn_delta_read_hint(struct tn_delta *d, const char *name, struct tn_delta_hint *hint,
                         struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, name);
    *hint = (struct tn_delta_hint){0};
    if (!path) {
        return tn_delta_no_room(err);
    }
    tn_rc rc = d->target->vtable->read(d->target, path, HINT_SIZE_MAX, arena, &text, err);
    if (rc == TN_OK) {
        int64_t number = tn_name_number((const char *)text.data, "");
        hint->id = number > 0 ? number : 0;
    }
    hint->hidden = tn_target_is_hidden(rc, err);
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

/* ---- the ledger ---- */

bool tn_delta_is_hour_over(const struct tn_delta *d, int64_t since_ms)
{
    struct tn_clock *clock = d->worker->clock;
    int64_t age_ms = clock->vtable->now_ms(clock) - since_ms;
    return age_ms < 0 || age_ms >= HOUR_MS;
}

tn_rc tn_delta_write_ledger(struct tn_delta *d, struct tn_err *err)
{
    return d->lake ? tn_ledger_write(d->worker->io, d->table, d->lake, &d->ledger,
                                     &d->worker->arena, err)
                   : TN_OK;
}

/* Once a sync, and in a long one once a minute: a cut costs a question for each snapshot since. But
 * on the other side of a gap nobody would ask. */
tn_rc tn_delta_mark(struct tn_delta *d, int64_t id, struct tn_err *err)
{
    struct tn_clock *clock = d->worker->clock;
    int64_t now_ns = clock->vtable->monotonic_ns(clock);
    bool follows = d->ledger.sending == id;
    d->ledger.sending = id;
    if (!d->resume) {
        d->ledger.since_ms = clock->vtable->now_ms(clock);
    }
    if (d->spec->dry_run || (d->marked && follows && now_ns - d->marked_ns < TN_DELTA_MINUTE_NS)) {
        return TN_OK;
    }
    tn_rc rc = tn_delta_write_ledger(d, err);
    d->marked = rc == TN_OK;
    d->marked_ns = now_ns;
    return rc;
}

/* What was being sent when a sync was cut is here no longer, and nothing came since: of its files
 * some are there, and what comes next may have them, too. */
static bool is_still_cut(const struct tn_delta *d)
{
    return d->resume && d->ledger.sending > d->ledger.have;
}

tn_rc tn_delta_end(struct tn_delta *d, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (d->latest_due && d->ledger.have > 0) {
        rc = tn_delta_write_hint(d, "LATEST", d->ledger.have, err);
    }
    if (rc == TN_OK) {
        rc = d->target->vtable->settle(d->target, err);
    }
    if (rc == TN_OK && d->dirty) {
        d->ledger.sending = d->halved || is_still_cut(d) ? d->ledger.sending : 0;
        rc = tn_delta_write_ledger(d, err);
    }
    return rc;
}

/* ---- the mirror as a consumer of the source ---- */

tn_rc tn_delta_protect(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    if (!d->spec->consumer || d->spec->dry_run || d->source_last == 0) {
        return TN_OK;
    }
    int64_t next = d->ledger.have > d->source_first ? d->ledger.have : d->source_first;
    return tn_consumer_write(d->worker->io, d->root, d->spec->consumer, next, arena, err);
}
