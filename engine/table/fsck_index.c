/* What an index manifest names: whether it is there, as large as it is said to be. */
#include <inttypes.h>

#include "file/names.h"
#include "table/fsck_private.h"

static tn_rc check_size(struct tn_fsck *f, const struct tn_index_entry *entry, const char *path,
                        struct tn_err *err)
{
    uint64_t size = 0;
    tn_rc rc = f->io->vtable->stat(f->io, path, &size, err);
    if (rc == TN_OK && size != (uint64_t)entry->file_size) {
        return tn_fsck_problem(f, err, path, "%" PRIu64 " bytes, not %" PRId64, size,
                               entry->file_size);
    }
    return tn_fsck_damage(f, path, NULL, rc, err);
}

static tn_rc check_file(void *user, const struct tn_index_entry *entry, struct tn_err *err)
{
    struct tn_fsck *f = user;
    struct tn_arena *arena = &f->worker->arena;
    const char *dir;
    if (entry->kind != TN_ENTRY_ADD) {
        return TN_OK;
    }
    if (entry->external_path) {
        tn_rc rc = tn_err_set(err, TN_UNSUPPORTED, 0, "it lies outside of the table");
        return tn_fsck_damage(f, entry->external_path, NULL, rc, err);
    }
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = tn_name_index(arena, f->root, &f->newest, &f->options, entry->partition,
                             entry->bucket, &dir, err);
    const char *path = rc == TN_OK ? tn_arena_format(arena, "%s%s", dir, entry->file_name) : NULL;
    if (rc != TN_OK) {
        rc = tn_fsck_damage(f, entry->file_name, NULL, rc, err);
    } else if (!path) {
        rc = tn_fsck_no_path(f, err);
    } else {
        rc = tn_fsck_reach(f, path, err);
        rc = rc == TN_OK ? check_size(f, entry, path, err) : rc;
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc check_files(struct tn_fsck *f, const char *name, const char *path, struct tn_err *err)
{
    struct tn_hash_128 *slot;
    bool is_new;
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(path));
    if (tn_fsck_seen(f, TN_FSCK_READ, hash)) {
        return TN_OK;
    }
    uint32_t missed = f->missed;
    tn_rc rc = tn_fsck_reach(f, path, err);
    if (rc == TN_OK) {
        rc = tn_index_each(f->root, name, f->worker, check_file, f, err);
        rc = tn_fsck_damage(f, path, NULL, rc, err);
    }
    return rc == TN_OK && f->missed == missed
               ? tn_fsck_see(f, TN_FSCK_READ, hash, &slot, &is_new, err)
               : rc;
}

tn_rc tn_fsck_index(struct tn_fsck *f, const char *index_manifest, struct tn_err *err)
{
    struct tn_arena *arena = &f->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, f->root, TN_DIR_MANIFEST, index_manifest);
    tn_rc rc = path ? check_files(f, index_manifest, path, err) : tn_fsck_no_path(f, err);
    tn_arena_reset(arena, mark);
    return rc;
}
