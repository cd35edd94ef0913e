#include "upload/delta_private.h"

#include <inttypes.h>

#include "commit/consumer.h"
#include "file/names.h"

enum { HINT_SIZE_MAX = 64 }; /* as in commit/snapshot */

/* ---- hints ---- */

static tn_rc write_number(struct tn_delta *d, const char *name, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, name);
    const char *text = tn_arena_format(arena, "%" PRId64, id);
    return path && text ? d->target->vtable->replace(d->target, path, tn_bytes_of(text), err)
                        : tn_delta_no_room(err);
}

/* What a hint of the target says; 0 when it says nothing. */
static tn_rc read_number(struct tn_delta *d, const char *name, int64_t *id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, name);
    *id = 0;
    if (!path) {
        return tn_delta_no_room(err);
    }
    tn_rc rc = d->target->vtable->read(d->target, path, HINT_SIZE_MAX, arena, &text, err);
    if (rc == TN_OK) {
        *id = tn_name_number((const char *)text.data, "");
    }
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

/* Where the unbroken row of ids that ends at `have` begins, as far as `floor`. */
static tn_rc find_tail(struct tn_delta *d, int64_t floor, int64_t *first, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = TN_OK;
    for (*first = d->have; rc == TN_OK && *first > floor && *first > 1;) {
        uint64_t size;
        size_t mark = tn_arena_mark(arena);
        const char *path =
            tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", *first - 1);
        rc = path ? tn_delta_find_at_target(d, path, &size, err) : tn_delta_no_room(err);
        tn_arena_reset(arena, mark);
        *first -= rc == TN_OK;
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* EARLIEST stands behind a gap, and is there at all. Ids below a right one are being expired. */
static tn_rc fix_earliest(struct tn_delta *d, struct tn_err *err)
{
    int64_t said = 0;
    int64_t first = 0;
    tn_rc rc = read_number(d, "EARLIEST", &said, err);
    if (rc == TN_OK) {
        said = said > d->have ? 0 : said;
        rc = find_tail(d, said, &first, err);
    }
    return rc == TN_OK && first > said ? write_number(d, "EARLIEST", first, err) : rc;
}

tn_rc tn_delta_write_hints(struct tn_delta *d, struct tn_err *err)
{
    int64_t said = 0;
    if (d->have == 0) {
        return TN_OK;
    }
    tn_rc rc = fix_earliest(d, err);
    if (rc == TN_OK) {
        rc = read_number(d, "LATEST", &said, err);
    }
    return rc == TN_OK && said != d->have ? write_number(d, "LATEST", d->have, err) : rc;
}

/* ---- the mirror as a consumer of the source ---- */

/* The newest snapshot of the target stays at the source, and before the first sync all do. */
tn_rc tn_delta_protect(struct tn_delta *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    if (!d->spec->consumer || d->spec->dry_run || d->source_last == 0) {
        return TN_OK;
    }
    int64_t next = d->have > d->source_first ? d->have : d->source_first;
    return tn_consumer_write(d->worker->io, d->root, d->spec->consumer, next, arena, err);
}
