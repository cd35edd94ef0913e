#include "commit/attempt.h"

#include "file/names.h"

enum { KEEP_SIZE = 32 * 1024 }; /* a name and a path a manifest: some hundred manifests */

static tn_rc no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no room for the names of a commit");
}

tn_rc tn_attempt_begin(struct tn_attempt *attempt, struct tn_err *err)
{
    struct tn_arena *arena = &attempt->worker->arena;
    size_t size = tn_arena_free(arena) / 8;
    size = size > KEEP_SIZE ? KEEP_SIZE : size;
    void *block = tn_arena_take_raw(arena, size);
    if (!block) {
        return no_room(err);
    }
    tn_arena_init(&attempt->keep, block, size);
    tn_clock_uuid(attempt->worker->clock, attempt->manifest_uuid);
    tn_clock_uuid(attempt->worker->clock, attempt->list_uuid);
    attempt->manifest_count = 0;
    attempt->list_count = 0;
    return TN_OK;
}

static const char *manifest_path(const struct tn_attempt *attempt, struct tn_arena *arena,
                                 uint32_t counter)
{
    return tn_arena_format(arena, "%s/" TN_DIR_MANIFEST "manifest-%s-%u", attempt->root,
                           attempt->manifest_uuid, (unsigned)counter);
}

static const char *list_path(const struct tn_attempt *attempt, struct tn_arena *arena,
                             uint32_t counter)
{
    return tn_arena_format(arena, "%s/" TN_DIR_MANIFEST "manifest-list-%s-%u", attempt->root,
                           attempt->list_uuid, (unsigned)counter);
}

typedef const char *path_fn(const struct tn_attempt *attempt, struct tn_arena *arena,
                            uint32_t counter);

static void drop_files(struct tn_attempt *attempt, path_fn *path_of, uint32_t count)
{
    struct tn_io *io = attempt->worker->io;
    struct tn_arena *arena = &attempt->worker->arena;
    for (uint32_t i = 0; i < count; i++) {
        struct tn_err ignored;
        size_t mark = tn_arena_mark(arena);
        const char *path = path_of(attempt, arena, i);
        if (path) {
            (void)io->vtable->unlink(io, path, &ignored);
        }
        tn_arena_reset(arena, mark);
    }
}

void tn_attempt_drop(struct tn_attempt *attempt)
{
    drop_files(attempt, list_path, attempt->list_count);
    drop_files(attempt, manifest_path, attempt->manifest_count);
    attempt->list_count = 0;
    attempt->manifest_count = 0;
}

/* A manifest without entries was removed, but kept its number: only what is there can be synced. */
static bool is_there(const struct tn_attempt *attempt, const char *path)
{
    struct tn_io *io = attempt->worker->io;
    struct tn_err ignored;
    uint64_t size;
    return io->vtable->stat(io, path, &size, &ignored) != TN_ABSENT;
}

tn_rc tn_attempt_paths(struct tn_attempt *attempt, const char *const *more, uint32_t more_count,
                       struct tn_arena *arena, const char *const **paths, uint32_t *count,
                       struct tn_err *err)
{
    size_t most = (size_t)more_count + attempt->manifest_count + attempt->list_count + 1;
    const char **all = tn_arena_take(arena, most * sizeof *all);
    uint32_t used = 0;
    if (!all) {
        return no_room(err);
    }
    for (uint32_t i = 0; i < more_count; i++) {
        all[used++] = more[i];
    }
    for (uint32_t i = 0; i < attempt->manifest_count + attempt->list_count; i++) {
        bool manifest = i < attempt->manifest_count;
        const char *path = manifest ? manifest_path(attempt, arena, i)
                                    : list_path(attempt, arena, i - attempt->manifest_count);
        if (!path) {
            return no_room(err);
        }
        if (!manifest || is_there(attempt, path)) {
            all[used++] = path;
        }
    }
    all[used] = tn_name_in(arena, attempt->root, TN_DIR_MANIFEST, "");
    if (!all[used]) {
        return no_room(err);
    }
    *paths = all;
    *count = used + 1;
    return TN_OK;
}

tn_rc tn_attempt_begin_list(struct tn_attempt *attempt, struct tn_manifest_writer *list,
                            struct tn_err *err)
{
    const char *path = list_path(attempt, &attempt->keep, attempt->list_count);
    if (!path) {
        return no_room(err);
    }
    attempt->list_count++;
    return tn_manifest_begin(list, path, true, attempt->schema, attempt->options->manifest_codec,
                             attempt->worker, err);
}

tn_rc tn_attempt_finish_list(struct tn_attempt *attempt, struct tn_manifest_writer *list,
                             const char **name, int64_t *size, struct tn_err *err)
{
    const char *path = list->path;
    tn_rc rc = tn_manifest_finish(list, NULL, NULL, size, err);
    if (rc == TN_OK) {
        const char *slash = strrchr(path, '/');
        *name = tn_arena_text(&attempt->keep, tn_bytes_of(slash ? slash + 1 : path));
        rc = *name ? TN_OK : no_room(err);
    }
    return rc;
}

/* ---- entries ---- */

static tn_rc next_path(struct tn_attempt *attempt, const char **path, struct tn_err *err)
{
    *path = manifest_path(attempt, &attempt->keep, attempt->manifest_count);
    if (!*path) {
        return no_room(err);
    }
    attempt->manifest_count++;
    return TN_OK;
}

tn_rc tn_entry_writer_begin(struct tn_entry_writer *writer, struct tn_attempt *attempt,
                            struct tn_manifest_writer *list, struct tn_err *err)
{
    const char *path;
    *writer = (struct tn_entry_writer){.attempt = attempt, .list = list};
    writer->manifest.file = -1;
    tn_rc rc = next_path(attempt, &path, err);
    if (rc == TN_OK) {
        rc = tn_manifest_begin(&writer->manifest, path, false, attempt->schema,
                               attempt->options->manifest_codec, attempt->worker, err);
    }
    return rc;
}

static tn_rc roll(struct tn_entry_writer *writer, struct tn_err *err)
{
    struct tn_manifest_meta meta;
    const char *path;
    struct tn_arena *keep = &writer->attempt->keep;
    tn_rc rc = next_path(writer->attempt, &path, err);
    size_t mark = tn_arena_mark(keep);
    if (rc == TN_OK) {
        rc = tn_manifest_roll(&writer->manifest, path, keep, &meta, err);
    }
    if (rc == TN_OK) {
        rc = tn_manifest_add_meta(writer->list, &meta, err);
    }
    tn_arena_reset(keep, mark);
    return rc;
}

tn_rc tn_entry_writer_add(struct tn_entry_writer *writer, const struct tn_entry *entry,
                          struct tn_err *err)
{
    tn_rc rc = TN_OK;
    if (writer->manifest.file_size >= writer->attempt->options->manifest_target_size &&
        writer->manifest.meta.added_count + writer->manifest.meta.deleted_count > 0) {
        rc = roll(writer, err);
    }
    if (rc == TN_OK) {
        rc = tn_manifest_add_entry(&writer->manifest, entry, err);
    }
    if (rc == TN_OK) {
        /* unsigned: counts of foreign manifests may be anything */
        uint64_t rows = (uint64_t)entry->file.row_count;
        uint64_t sum = (uint64_t)writer->row_count;
        writer->row_count = (int64_t)(entry->kind == TN_ENTRY_ADD ? sum + rows : sum - rows);
    }
    return rc;
}

tn_rc tn_entry_writer_finish(struct tn_entry_writer *writer, struct tn_err *err)
{
    struct tn_manifest_meta meta;
    struct tn_arena *keep = &writer->attempt->keep;
    if (writer->manifest.meta.added_count + writer->manifest.meta.deleted_count == 0) {
        tn_manifest_abort(&writer->manifest);
        return TN_OK;
    }
    size_t mark = tn_arena_mark(keep);
    tn_rc rc = tn_manifest_finish(&writer->manifest, keep, &meta, NULL, err);
    if (rc == TN_OK) {
        rc = tn_manifest_add_meta(writer->list, &meta, err);
    }
    tn_arena_reset(keep, mark);
    return rc;
}

void tn_entry_writer_abort(struct tn_entry_writer *writer)
{
    tn_manifest_abort(&writer->manifest);
}
