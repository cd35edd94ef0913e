#include "upload/direct_private.h"

#include <inttypes.h>

#include "commit/live.h"
#include "file/names.h"

enum {
    HINT_SIZE_MAX = 64, /* as in commit/snapshot */
    WALK_SIZE = 128 * 1024,
};

bool tn_direct_is_ours(const struct tn_direct *d, const struct tn_snapshot *snapshot,
                       int64_t identifier)
{
    return strcmp(snapshot->commit_user, d->user) == 0 && snapshot->commit_identifier.present &&
           snapshot->commit_identifier.value == identifier;
}

tn_rc tn_direct_read(struct tn_direct *d, int64_t id, struct tn_snapshot *snapshot,
                     struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_numbered(arena, d->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc =
        path ? d->target->vtable->read(d->target, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err)
             : tn_direct_no_room(err);
    if (rc == TN_OK) {
        rc = tn_snapshot_decode(text, arena, snapshot, err);
    }
    if (rc == TN_OK && snapshot->id != id) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "it says that it is snapshot %" PRId64, snapshot->id);
    }
    return rc == TN_OK || rc == TN_ABSENT
               ? rc
               : tn_err_in(err, "%s: snapshot-%" PRId64, d->target->name, id);
}

/* 0: it says nothing. */
static tn_rc read_hint(struct tn_direct *d, int64_t *id, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    struct tn_bytes text;
    const char *path = tn_name_in(arena, d->root, TN_DIR_SNAPSHOT, "LATEST");
    tn_rc rc = path ? d->target->vtable->read(d->target, path, HINT_SIZE_MAX, arena, &text, err)
                    : tn_direct_no_room(err);
    int64_t said = rc == TN_OK ? tn_name_number((const char *)text.data, "") : 0;
    *id = said > 0 ? said : 0;
    return rc == TN_ABSENT || rc == TN_INVALID ? TN_OK : rc;
}

struct largest {
    int64_t number;
};

static tn_rc note_larger(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    (void)err;
    struct largest *largest = user;
    int64_t number = is_dir ? 0 : tn_name_number(name, "snapshot-");
    largest->number = number > largest->number ? number : largest->number;
    return TN_OK;
}

tn_rc tn_direct_list_newest(struct tn_direct *d, int64_t *id, struct tn_err *err)
{
    struct largest largest = {0};
    const char *dir = tn_name_in(&d->worker->arena, d->root, TN_DIR_SNAPSHOT, "");
    tn_rc rc = dir ? d->target->vtable->list(d->target, dir, note_larger, &largest, err)
                   : tn_direct_no_room(err);
    *id = largest.number;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* What a snapshot that isn't there says about the lake: it has expired, or never was. */
static tn_rc read_listed(struct tn_direct *d, struct tn_err *err)
{
    int64_t id;
    tn_rc rc = tn_direct_list_newest(d, &id, err);
    if (rc == TN_OK && id < d->sent.lake_id) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s is at snapshot %" PRId64 ", and %" PRId64
                          " was ours: the table went back there, or was made anew; nothing is sent",
                          d->target->name, id, d->sent.lake_id);
    }
    d->has_base = rc == TN_OK && id > 0;
    if (d->has_base) {
        rc = tn_err_named(err, tn_direct_read(d, id, &d->base, err));
    }
    return rc;
}

static tn_rc read_first(struct tn_direct *d, struct tn_err *err)
{
    int64_t id;
    tn_rc rc = read_hint(d, &id, err);
    id = id > d->sent.lake_id ? id : d->sent.lake_id;
    if (rc == TN_OK && id > 0) {
        rc = tn_direct_read(d, id, &d->base, err);
        d->has_base = rc == TN_OK;
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    return rc == TN_OK && !d->has_base ? read_listed(d, err) : rc;
}

/* What was known has expired: of those between nobody saw whose they were. */
static tn_rc jump_up(struct tn_direct *d, struct tn_err *err)
{
    tn_rc rc = read_listed(d, err);
    return rc == TN_OK && d->has_base && d->sent.trying > 0
               ? tn_err_set(err, TN_IO, 0,
                            "%s: snapshot %" PRId64 " and its next ones have expired meanwhile",
                            d->target->name, d->newest)
               : rc;
}

/* The last one that was read is kept; what those before took is given back now and then, and with
 * it the last one, which is read again at the end. */
static tn_rc walk_up(struct tn_direct *d, struct tn_err *err)
{
    struct tn_arena *arena = &d->worker->arena;
    size_t mark = tn_arena_mark(arena);
    int64_t id = d->newest;
    bool kept = false;
    tn_rc rc = TN_OK;
    while (rc == TN_OK) {
        struct tn_snapshot next = {.commit_user = ""};
        if (tn_arena_mark(arena) - mark > WALK_SIZE) {
            tn_arena_reset(arena, mark);
            kept = false;
        }
        rc = tn_direct_read(d, id + 1, &next, err);
        if (rc == TN_OK) {
            id++;
            kept = true;
            d->base = next;
            d->own_id = tn_direct_is_ours(d, &next, d->sent.trying) ? id : d->own_id;
        }
    }
    if (rc == TN_ABSENT) {
        rc = kept ? TN_OK : id > 0 ? tn_direct_read(d, id, &d->base, err) : TN_ABSENT;
    }
    d->has_base = rc == TN_OK;
    return rc == TN_ABSENT ? jump_up(d, err) : rc;
}

tn_rc tn_direct_read_base(struct tn_direct *d, struct tn_err *err)
{
    d->has_base = false;
    tn_rc rc = d->newest >= 0 ? walk_up(d, err) : read_first(d, err);
    if (rc == TN_OK) {
        d->newest = d->has_base ? d->base.id : 0;
    }
    return rc;
}

struct look {
    const char *ours; /* "": it isn't looked for */
    uint32_t count;
    bool found;
};

static tn_rc look_at(void *user, const struct tn_manifest_meta *meta, struct tn_err *err)
{
    (void)err;
    struct look *look = user;
    look->count++;
    look->found = look->found || (look->ours[0] && strstr(meta->file_name, look->ours));
    return TN_OK;
}

tn_rc tn_direct_look_at_base(struct tn_direct *d, bool *has_ours, struct tn_err *err)
{
    struct look look = {.ours = d->sent.manifest};
    tn_rc rc = TN_OK;
    if (d->has_base) {
        rc = tn_live_each_meta(d->root, &d->base, &d->there, look_at, &look, err);
    }
    *has_ours = look.found;
    if (rc == TN_OK && look.count > TN_DIRECT_MANIFESTS_MAX) {
        d->result->why = TN_SHARE_UNMERGED;
        return tn_err_set(
            err, TN_IO, 0,
            "%s: the table has %" PRIu32
            " manifests, and nobody merges them: nothing is committed until it has %d "
            "or fewer (a compaction there does it)",
            d->target->name, look.count, TN_DIRECT_MANIFESTS_MAX);
    }
    return rc;
}
