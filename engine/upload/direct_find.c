#include "upload/direct_private.h"

#include <inttypes.h>

#include "commit/live.h"

enum { NAME_SIZE = 256 };

#define CLEANED_MS                                                                \
    (12 * 60 * 60 * INT64_C(1000)) /* half of what any cleaning of orphans leaves \
                                    */

/* The first file of what was tried: all of it came there, or nothing did. */
struct mark {
    struct tn_direct *d;
    const char *path;
    char name[NAME_SIZE];
    struct tn_bytes partition;
    int32_t bucket;
    bool set;
    bool seen;
    bool gap; /* a snapshot of that time can't be read any more */
};

static tn_rc take_mark(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    struct mark *mark = user;
    bool ok = true;
    if (mark->set) {
        return TN_OK;
    }
    if (strlen(entry->file.file_name) >= sizeof mark->name) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: too long a name", entry->file.file_name);
    }
    memcpy(mark->name, entry->file.file_name, strlen(entry->file.file_name) + 1);
    mark->partition = tn_arena_copy(&mark->d->there.arena, entry->partition, &ok);
    mark->bucket = entry->bucket;
    mark->set = ok;
    return ok ? TN_OK : tn_direct_no_room(err);
}

static tn_rc find_mark(struct mark *mark, int64_t first, int64_t last, struct tn_err *err)
{
    struct tn_direct *d = mark->d;
    struct tn_share_limits none = {0};
    struct tn_share_pick pick;
    tn_rc rc = tn_share_pick(d->root, first - 1, last, &none, d->worker, &pick, err);
    if (rc == TN_OK) {
        rc = tn_share_each_data(&pick, take_mark, mark, err);
    }
    if (rc == TN_OK && !mark->set) {
        rc = tn_err_set(err, TN_CORRUPT, 0,
                        "snapshots %" PRId64 "..%" PRId64 " have no data files to know them by",
                        first, last);
    }
    if (rc == TN_OK) {
        struct tn_entry entry = {.partition = mark->partition,
                                 .bucket = mark->bucket,
                                 .file = {.file_name = mark->name}};
        rc = tn_share_path(&pick, &entry, &mark->path, err);
    }
    return rc;
}

static tn_rc look_for_mark(void *user, const struct tn_entry *entry, struct tn_err *err)
{
    (void)err;
    struct mark *mark = user;
    mark->seen = mark->seen || strcmp(entry->file.file_name, mark->name) == 0;
    return TN_OK;
}

/* What the snapshots above `id` gave or took. Ours says nothing: is it the one behind the one
 * before, or a stray under a name that had expired? */
static tn_rc look_at_deltas(struct mark *mark, int64_t id, int64_t identifier, struct tn_err *err)
{
    struct tn_direct *d = mark->d;
    struct tn_arena *arena = &d->worker->arena;
    tn_rc rc = TN_OK;
    for (id++; rc == TN_OK && !mark->seen && id <= d->base.id; id++) {
        struct tn_snapshot snapshot = {.commit_user = ""};
        size_t taken = tn_arena_mark(arena);
        rc = tn_direct_read(d, id, &snapshot, err);
        if (rc == TN_OK && !tn_direct_is_ours(d, &snapshot, identifier)) {
            rc = tn_list_each(d->root, snapshot.delta_manifest_list,
                              tn_manifest_size(snapshot.delta_manifest_list_size), NULL, &d->there,
                              look_for_mark, mark, err);
        }
        tn_arena_reset(arena, taken);
        mark->gap = mark->gap || rc == TN_ABSENT;
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    return rc;
}

static tn_rc look_at_live(struct mark *mark, struct tn_err *err)
{
    struct tn_direct *d = mark->d;
    struct tn_live_filter filter = {
        .has_bucket = true, .partition = mark->partition, .bucket = mark->bucket};
    return tn_live_each(d->root, &d->base, d->schema, &filter, &d->there, look_for_mark, mark, err);
}

/* In none of them: a file that is there came with no commit; one that is gone came with one and was
 * compacted since, or waited so long that it was cleaned away. One that isn't shown may be there.
 */
static tn_rc judge_file(struct mark *mark, int64_t first, int64_t last, enum tn_direct_found *found,
                        struct tn_err *err)
{
    struct tn_direct *d = mark->d;
    struct tn_clock *clock = d->worker->clock;
    uint64_t size;
    tn_rc rc = d->target->vtable->stat(d->target, mark->path, &size, err);
    int64_t age = clock->vtable->now_ms(clock) - d->sent.since_ms;
    if (rc == TN_OK || (rc == TN_ABSENT && !mark->gap)) {
        *found = TN_DIRECT_NOT_THERE;
        return TN_OK;
    }
    rc = tn_target_if_hidden(rc, err);
    if (rc == TN_ABSENT && age >= 0 && age < CLEANED_MS) {
        *found = TN_DIRECT_THERE;
        return TN_OK;
    }
    return rc == TN_ABSENT
               ? tn_err_set(err, TN_CORRUPT, 0,
                            "%s: whether snapshots %" PRId64 "..%" PRId64
                            " came there can't be told: the lake's snapshots of that time have "
                            "expired, and %s is gone; nothing is sent",
                            d->target->name, first, last, mark->path)
               : rc;
}

static tn_rc find_file(struct tn_direct *d, int64_t first, int64_t last, int64_t base,
                       enum tn_direct_found *found, struct tn_err *err)
{
    struct mark mark = {.d = d};
    tn_rc rc = find_mark(&mark, first, last, err);
    if (rc == TN_OK && d->has_base) {
        rc = look_at_live(&mark, err);
    }
    if (rc == TN_OK && d->has_base && !mark.seen) {
        rc = look_at_deltas(&mark, base, last, err);
    }
    *found = TN_DIRECT_THERE;
    return rc == TN_OK && !mark.seen ? judge_file(&mark, first, last, found, err) : rc;
}

/* The hint may lag behind what is there: what it names may be older than what is looked for. */
static tn_rc look_at_newest(struct tn_direct *d, bool *has_ours, struct tn_err *err)
{
    tn_rc rc = tn_direct_look_at_base(d, has_ours, err);
    if (rc != TN_OK || *has_ours || !d->has_base) {
        return rc;
    }
    int64_t id = d->base.id;
    rc = tn_direct_read_base(d, err);
    if (rc == TN_OK && d->has_base && d->base.id > id) {
        rc = tn_direct_look_at_base(d, has_ours, err);
    }
    *has_ours = *has_ours || d->own_id > 0;
    return rc;
}

tn_rc tn_direct_find(struct tn_direct *d, int64_t first, int64_t last, int64_t base,
                     enum tn_direct_found *found, struct tn_err *err)
{
    size_t there = tn_arena_mark(&d->there.arena);
    bool has_ours = false;
    tn_rc rc = look_at_newest(d, &has_ours, err);
    *found = TN_DIRECT_THERE;
    if (rc == TN_OK && !has_ours) {
        rc = find_file(d, first, last, base, found, err);
    }
    tn_arena_reset(&d->there.arena, there);
    return rc;
}
