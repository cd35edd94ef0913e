#include "commit/rollback.h"

#include <inttypes.h>

#include "commit/consumer.h"
#include "commit/publish.h"
#include "file/names.h"

struct rollback {
    const struct tn_rollback_spec *spec;
    struct tn_worker *worker;
    struct tn_rollback_result *result;
    int64_t oldest; /* smallest id in the folder */
    int64_t first;
    int64_t last;
    int64_t to;
    bool found;
    struct tn_snapshot tagged; /* with made_again */
};

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "rollback: no room for a path");
}

/* ---- where to ---- */

static tn_rc match_tag(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct rollback *r = user;
    struct tn_arena *arena = &r->worker->arena;
    struct tn_snapshot found;
    if (is_dir || r->found || !tn_name_begins(name, "tag-")) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, r->spec->root, TN_DIR_TAG, name);
    tn_rc rc = path ? tn_snapshot_read_path(r->worker->io, path, arena, &found, err) : no_room(err);
    if (rc == TN_OK && found.id == r->to) {
        r->found = true;
        r->tagged = found;
        return TN_OK;
    }
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc each_tag(struct rollback *r, tn_io_name_fn *each, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    const char *dir = tn_name_in(&r->worker->arena, r->spec->root, TN_DIR_TAG, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, each, r, err) : no_room(err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc is_there(struct rollback *r, int64_t id, bool *there, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    uint64_t size;
    const char *path =
        tn_name_numbered(&r->worker->arena, r->spec->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = path ? io->vtable->stat(io, path, &size, err) : no_room(err);
    *there = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc find_named(struct rollback *r, struct tn_err *err)
{
    struct tn_tag tag;
    struct tn_arena *arena = &r->worker->arena;
    tn_rc rc = tn_tag_read(r->worker->io, r->spec->root, r->spec->tag, arena, &tag, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_INVALID, 0, "there is no tag '%s'", r->spec->tag);
    }
    if (rc == TN_OK) {
        r->to = tag.snapshot.id;
        r->tagged = tag.snapshot;
        r->found = true;
    }
    return rc;
}

static tn_rc find(struct rollback *r, struct tn_err *err)
{
    bool there = false;
    tn_rc rc = TN_OK;
    r->to = r->spec->snapshot_id;
    if (r->spec->tag) {
        rc = find_named(r, err);
    }
    if (rc == TN_OK && r->to >= r->first && r->to <= r->last) {
        rc = is_there(r, r->to, &there, err);
    }
    if (rc == TN_OK && !there && !r->found) {
        rc = each_tag(r, match_tag, err);
    }
    r->result->made_again = !there;
    if (rc != TN_OK || there || (r->found && r->to < r->first)) {
        return rc;
    }
    return tn_err_set(err, TN_INVALID, 0,
                      "there is no snapshot %" PRId64 ", nor a tag of it; there are %" PRId64
                      " to %" PRId64,
                      r->to, r->first, r->last);
}

static tn_rc look(struct rollback *r, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    struct tn_arena *arena = &r->worker->arena;
    const char *root = r->spec->root;
    tn_rc rc = tn_snapshot_oldest_name(io, root, arena, &r->oldest, err);
    rc = rc == TN_OK ? tn_snapshot_earliest(io, root, arena, &r->first, err) : rc;
    rc = rc == TN_OK ? tn_snapshot_latest(io, root, arena, &r->last, err) : rc;
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_INVALID, 0, "there is no snapshot");
    }
    return rc == TN_OK ? find(r, err) : rc;
}

/* ---- removing ---- */

static tn_rc settle(struct rollback *r, const char *folder, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    const char *dir = tn_name_in(&r->worker->arena, r->spec->root, folder, "");
    return dir ? io->vtable->sync(io, &dir, 1, err) : no_room(err);
}

/* `*gone`: there was one. */
static tn_rc unlink_path(struct rollback *r, const char *path, bool *gone, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    uint64_t size;
    tn_rc rc = !path              ? no_room(err)
               : r->spec->dry_run ? io->vtable->stat(io, path, &size, err)
                                  : io->vtable->unlink(io, path, err);
    *gone = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* Of what is numbered, from `last` down to `first`, in this order also on the medium. */
static tn_rc remove_down(struct rollback *r, const char *folder, const char *prefix, int64_t first,
                         int64_t last, uint32_t *count, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    tn_rc rc = TN_OK;
    for (int64_t id = last; rc == TN_OK && id >= first; id--) {
        size_t mark = tn_arena_mark(arena);
        bool gone;
        rc = unlink_path(r, tn_name_numbered(arena, r->spec->root, folder, prefix, id), &gone, err);
        if (rc == TN_OK && gone) {
            ++*count;
            rc = r->spec->dry_run ? TN_OK : settle(r, folder, err);
        }
        tn_arena_reset(arena, mark);
    }
    return rc;
}

static tn_rc remove_hint(struct rollback *r, const char *folder, const char *name,
                         struct tn_err *err)
{
    bool gone;
    const char *path = tn_name_in(&r->worker->arena, r->spec->root, folder, name);
    return r->spec->dry_run ? TN_OK : unlink_path(r, path, &gone, err);
}

/* ---- tags ---- */

static tn_rc remove_later(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct rollback *r = user;
    struct tn_arena *arena = &r->worker->arena;
    struct tn_snapshot tag = {0};
    bool gone = false;
    if (is_dir || !tn_name_begins(name, "tag-")) {
        return TN_OK;
    }
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, r->spec->root, TN_DIR_TAG, name);
    tn_rc rc = path ? tn_snapshot_read_path(r->worker->io, path, arena, &tag, err) : no_room(err);
    if (rc == TN_OK && tag.id > r->to) {
        rc = unlink_path(r, path, &gone, err);
    }
    r->result->tags += gone;
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc remove_tags(struct rollback *r, struct tn_err *err)
{
    tn_rc rc = each_tag(r, remove_later, err);
    return rc == TN_OK && r->result->tags > 0 && !r->spec->dry_run ? settle(r, TN_DIR_TAG, err)
                                                                   : rc;
}

/* ---- consumers of tarn's own ---- */

/* A writer's positions go back. */
static tn_rc move_back(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct rollback *r = user;
    struct tn_io *io = r->worker->io;
    struct tn_arena *arena = &r->worker->arena;
    const char *id = tn_consumer_id(name);
    int64_t next = 0;
    if (is_dir || !id || tn_consumer_kind_of(id) != TN_CONSUMER_WRITER) {
        return TN_OK;
    }
    tn_rc rc = tn_consumer_read(io, r->spec->root, id, arena, &next, err);
    if (rc == TN_OK && next > r->to && !r->spec->dry_run) {
        rc = tn_consumer_write(io, r->spec->root, id, r->to, arena, err);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc move_consumers(struct rollback *r, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    const char *dir = tn_name_in(&r->worker->arena, r->spec->root, TN_DIR_CONSUMER, "");
    tn_rc rc = dir ? io->vtable->list(io, dir, move_back, r, err) : no_room(err);
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* ---- long-lived changelogs ---- */

/* Where all that count go, those below EARLIEST, in pieces, must go, too: nothing would tell them
 * any more. */
static tn_rc remove_changelogs(struct rollback *r, struct tn_err *err)
{
    struct tn_changelog_range range;
    struct tn_io *io = r->worker->io;
    struct tn_arena *arena = &r->worker->arena;
    tn_rc rc = tn_changelog_range(io, r->spec->root, arena, &range, err);
    if (rc != TN_OK || range.last <= r->to) {
        return rc == TN_ABSENT ? TN_OK : rc;
    }
    int64_t first = range.first > r->to ? range.oldest : r->to + 1;
    rc = remove_hint(r, TN_DIR_CHANGELOG, "LATEST", err);
    rc = rc == TN_OK ? remove_down(r, TN_DIR_CHANGELOG, "changelog-", first, range.last,
                                   &r->result->changelogs, err)
                     : rc;
    if (rc == TN_OK && first <= range.first) {
        return remove_hint(r, TN_DIR_CHANGELOG, "EARLIEST", err);
    }
    return rc == TN_OK && !r->spec->dry_run
               ? tn_changelog_hint(io, r->spec->root, "LATEST", first - 1, arena, err)
               : rc;
}

/* ---- snapshots ---- */

/* Below EARLIEST: what expiry didn't come to the end with. Its files are orphans now. */
static tn_rc remove_pieces(struct rollback *r, struct tn_err *err)
{
    uint32_t ignored = 0;
    return r->spec->dry_run ? TN_OK
                            : remove_down(r, TN_DIR_SNAPSHOT, "snapshot-", r->oldest, r->first - 1,
                                          &ignored, err);
}

/* A tag keeps rows; the changelog went with the snapshot, or lives on without it. */
static tn_rc leave_lost_changelog(struct rollback *r, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    struct tn_snapshot *tagged = &r->tagged;
    uint64_t size;
    if (!tagged->changelog_manifest_list) {
        return TN_OK;
    }
    const char *path = tn_name_in(&r->worker->arena, r->spec->root, TN_DIR_MANIFEST,
                                  tagged->changelog_manifest_list);
    tn_rc rc = path ? io->vtable->stat(io, path, &size, err) : no_room(err);
    if (rc == TN_ABSENT) {
        tagged->changelog_manifest_list = NULL;
        tagged->changelog_manifest_list_size = (struct tn_json_i64){0};
        tagged->changelog_record_count = (struct tn_json_i64){0, true};
        return TN_OK;
    }
    return rc;
}

static tn_rc make_again(struct rollback *r, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    const char *root = r->spec->root;
    struct tn_bytes text;
    char uuid[TN_UUID_SIZE];
    tn_rc rc = leave_lost_changelog(r, err);
    rc = rc == TN_OK ? tn_snapshot_text(&r->tagged, arena, &text, err) : rc;
    if (rc != TN_OK) {
        return rc;
    }
    tn_clock_uuid(r->worker->clock, uuid);
    struct tn_publish_spec spec = {
        .bytes = text,
        .draft = tn_arena_format(arena, "%s/" TN_DIR_SNAPSHOT ".snapshot-%s.tmp", root, uuid),
        .final = tn_name_numbered(arena, root, TN_DIR_SNAPSHOT, "snapshot-", r->to),
        .dir = tn_name_in(arena, root, TN_DIR_SNAPSHOT, "")};
    return !spec.draft || !spec.final || !spec.dir ? no_room(err)
                                                   : tn_publish(r->worker->io, &spec, err);
}

/* EARLIEST says something else only when the snapshot was made again: then no other is there. */
static tn_rc write_hints(struct rollback *r, struct tn_err *err)
{
    struct tn_io *io = r->worker->io;
    struct tn_arena *arena = &r->worker->arena;
    const char *root = r->spec->root;
    const char *names[] = {"LATEST", "EARLIEST"};
    const char *paths[3] = {tn_name_in(arena, root, TN_DIR_SNAPSHOT, "")};
    uint32_t count = r->result->made_again ? 2 : 1;
    tn_rc rc = paths[0] ? TN_OK : no_room(err);
    for (uint32_t i = 0; rc == TN_OK && i < count; i++) {
        rc = tn_snapshot_hint(io, root, names[i], r->to, arena, err);
        paths[i + 1] = tn_name_in(arena, root, TN_DIR_SNAPSHOT, names[i]);
        rc = rc == TN_OK && !paths[i + 1] ? no_room(err) : rc;
    }
    return rc == TN_OK ? io->vtable->sync(io, paths, count + 1, err) : rc;
}

/* Official readers believe a LATEST that is too high, and fail; without one they look. */
static tn_rc remove_snapshots(struct rollback *r, struct tn_err *err)
{
    bool write = !r->spec->dry_run;
    tn_rc rc = TN_OK;
    int64_t first = r->result->made_again ? r->first : r->to + 1;
    if (write && r->result->made_again) {
        rc = remove_pieces(r, err);
        rc = rc == TN_OK ? make_again(r, err) : rc;
    }
    rc = rc == TN_OK ? remove_hint(r, TN_DIR_SNAPSHOT, "LATEST", err) : rc;
    rc = rc == TN_OK && write ? settle(r, TN_DIR_SNAPSHOT, err) : rc;
    rc = rc == TN_OK ? remove_down(r, TN_DIR_SNAPSHOT, "snapshot-", first, r->last,
                                   &r->result->snapshots, err)
                     : rc;
    return rc == TN_OK && write ? write_hints(r, err) : rc;
}

static tn_rc run(struct rollback *r, struct tn_err *err)
{
    tn_rc rc = look(r, err);
    if (rc != TN_OK) {
        return rc;
    }
    r->result->snapshot_id = r->to;
    r->result->latest_id = r->last;
    rc = remove_tags(r, err);
    rc = rc == TN_OK ? move_consumers(r, err) : rc;
    rc = rc == TN_OK ? remove_changelogs(r, err) : rc;
    return rc == TN_OK ? remove_snapshots(r, err) : rc;
}

tn_rc tn_rollback(const struct tn_rollback_spec *spec, struct tn_worker *worker,
                  struct tn_rollback_result *result, struct tn_err *err)
{
    struct rollback rollback = {.spec = spec, .worker = worker, .result = result};
    size_t mark = tn_arena_mark(&worker->arena);
    *result = (struct tn_rollback_result){0};
    tn_rc rc = run(&rollback, err);
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

tn_rc tn_rollback_target(const struct tn_rollback_spec *spec, struct tn_worker *worker,
                         struct tn_snapshot *target, struct tn_err *err)
{
    struct tn_rollback_result result = {0};
    struct rollback rollback = {.spec = spec, .worker = worker, .result = &result};
    tn_rc rc = look(&rollback, err);
    if (rc == TN_OK && !result.made_again) {
        return tn_snapshot_read(worker->io, spec->root, rollback.to, &worker->arena, target, err);
    }
    if (rc == TN_OK) {
        *target = rollback.tagged;
    }
    return rc;
}
