#include "app/state_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define SOURCE "state"
static const char DIR[] = ".tarn/";

enum { PATH_SIZE = 320 + TN_STATE_FILE_HASH_SIZE };

static void hash_of(struct tn_bytes pieces, char hash[TN_STATE_FILE_HASH_SIZE])
{
    (void)snprintf(hash, TN_STATE_FILE_HASH_SIZE, "%016" PRIx64, tn_hash_64(pieces, 0));
}

static void path_of(const struct tn_state_file *f, const char *hash, char path[PATH_SIZE])
{
    (void)snprintf(path, PATH_SIZE, "%s%s", f->prefix, hash);
}

static void remove_one(const struct tn_state_file *f, const char *hash)
{
    char path[PATH_SIZE];
    struct tn_err ignored;
    path_of(f, hash, path);
    (void)(f->io->vtable->unlink(f->io, path, &ignored) == TN_OK); /* the next open tries again */
}

/* ---- open ---- */

static tn_rc read_pieces(struct tn_state_file *f, const char *name, struct tn_arena *scratch,
                         struct tn_err *err)
{
    char path[PATH_SIZE];
    char hash[TN_STATE_FILE_HASH_SIZE];
    struct tn_bytes found;
    if (strlen(name) != TN_STATE_FILE_HASH_SIZE - 1) {
        return tn_err_set(err, TN_CORRUPT, 0, "position of %s: '%s'", SOURCE, name);
    }
    path_of(f, name, path);
    tn_rc rc = tn_io_read_all(f->io, path, f->pieces.capacity, scratch, &found, err);
    if (rc != TN_OK) {
        return rc == TN_ABSENT ? tn_err_set(err, rc, 0, "%s: there is no such file", path) : rc;
    }
    hash_of(found, hash);
    if (strcmp(hash, name) != 0) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: it has %zu bytes of hash %s", path, found.size,
                          hash);
    }
    rc = tn_script_restore(f->script, found, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", path);
    }
    tn_buf_append(&f->pieces, found.data, found.size);
    return TN_OK;
}

struct leftovers {
    const struct tn_state_file *file;
    const char *prefix; /* of names in the folder */
    const char *kept;   /* or NULL */
};

static tn_rc remove_leftover(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    const struct leftovers *left = user;
    size_t size = strlen(left->prefix);
    (void)err;
    if (!is_dir && strncmp(name, left->prefix, size) == 0 &&
        strlen(name + size) == TN_STATE_FILE_HASH_SIZE - 1 &&
        (!left->kept || strcmp(name + size, left->kept) != 0)) {
        remove_one(left->file, name + size);
    }
    return TN_OK;
}

static tn_rc restore(struct tn_state_file *f, void (*say)(const char *why), struct tn_arena *arena,
                     struct tn_err *err)
{
    const char *name = tn_table_position_of(f->table, SOURCE);
    struct leftovers left = {f, f->prefix + sizeof DIR - 1, name};
    size_t mark = tn_arena_mark(arena);
    tn_rc rc = name ? read_pieces(f, name, arena, err) : TN_OK;
    tn_arena_reset(arena, mark);
    if (rc == TN_ABSENT || rc == TN_CORRUPT || rc == TN_INVALID) {
        say(err->text);
        rc = TN_OK;
    } else if (rc == TN_OK && name) {
        memcpy(f->hashes[f->count++], name, TN_STATE_FILE_HASH_SIZE);
    }
    return rc == TN_OK ? f->io->vtable->list(f->io, DIR, remove_leftover, &left, err) : rc;
}

tn_rc tn_state_file_open(struct tn_state_file *file, struct tn_script *script,
                         struct tn_table *table, const struct tn_env *env, const char *name,
                         void (*say)(const char *why), struct tn_arena *arena, struct tn_err *err)
{
    struct tn_state_file *f = file;
    *f = (struct tn_state_file){.table = table, .io = env->io};
    if (!script || !tn_script_keeps(script)) {
        return TN_OK;
    }
    f->script = script;
    f->room = tn_script_state_room(script);
    size_t size = f->room + script->state_size_max; /* a piece that is all comes behind others */
    void *memory;
    if ((size_t)snprintf(f->prefix, sizeof f->prefix, "%s%s.state-", DIR, name) >=
        sizeof f->prefix) {
        return tn_err_set(err, TN_INVALID, 0, "%s: its name is too long", name);
    }
    tn_rc rc = tn_arena_need(arena, size, "what a script keeps", &memory, err);
    if (rc == TN_OK) {
        tn_buf_init(&f->pieces, memory, size);
        rc = restore(f, say, arena, err);
    }
    return rc;
}

/* ---- records, cuts ---- */

tn_rc tn_state_file_take(struct tn_state_file *file, struct tn_err *err)
{
    struct tn_state_file *f = file;
    bool all = false;
    size_t before = f->pieces.size;
    if (!f->script || !tn_script_changed(f->script)) {
        return TN_OK;
    }
    tn_rc rc = tn_script_save(f->script, before, f->room, &all, &f->pieces, err);
    if (rc == TN_OK && all) {
        f->pieces.size -= before;
        memmove(f->pieces.data, f->pieces.data + before, f->pieces.size);
    }
    return rc == TN_OK ? tn_script_saved(f->script, err) : rc;
}

/* One of the name may be what a kill left of it. */
static tn_rc write_file(const struct tn_state_file *f, const char *hash, struct tn_err *err)
{
    char path[PATH_SIZE];
    const char *paths[] = {path, DIR};
    path_of(f, hash, path);
    tn_rc rc = tn_io_write_new(f->io, path, tn_buf_bytes(&f->pieces), err);
    if (rc == TN_EXISTS) {
        rc = f->io->vtable->unlink(f->io, path, err);
        rc = rc == TN_OK ? tn_io_write_new(f->io, path, tn_buf_bytes(&f->pieces), err) : rc;
    }
    return rc == TN_OK ? f->io->vtable->sync(f->io, paths, 2, err) : rc;
}

static void forget(struct tn_state_file *f, uint32_t index)
{
    uint32_t behind = --f->count - index;
    memmove(f->hashes[index], f->hashes[index + 1], behind * sizeof f->hashes[0]);
}

/* Stores may come back to what they were: then there is the file, and it is the newest. */
static bool take_known(struct tn_state_file *f, const char *hash)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (strcmp(f->hashes[i], hash) == 0) {
            forget(f, i);
            return true;
        }
    }
    return false;
}

/* The newest, the one of the round that closes, and the one of the snapshot before are needed. A
 * newest that no cut came behind is named by nothing any more. */
static void make_room(struct tn_state_file *f, uint64_t cuts)
{
    if (f->count > 0 && f->cuts > 0 && f->cuts == cuts + 1) {
        remove_one(f, f->hashes[f->count - 1]);
        f->count--;
    }
    if (f->count == TN_STATE_FILES) {
        remove_one(f, f->hashes[0]);
        forget(f, 0);
    }
}

tn_rc tn_state_file_note(struct tn_state_file *file, uint64_t cuts, struct tn_err *err)
{
    struct tn_state_file *f = file;
    char hash[TN_STATE_FILE_HASH_SIZE];
    if (!f->script || f->pieces.size == 0) {
        return TN_OK;
    }
    hash_of(tn_buf_bytes(&f->pieces), hash);
    if (f->count > 0 && strcmp(f->hashes[f->count - 1], hash) == 0) {
        return TN_OK;
    }
    bool known = take_known(f, hash);
    make_room(f, cuts);
    tn_rc rc = known ? TN_OK : write_file(f, hash, err);
    if (rc == TN_OK) {
        rc = tn_table_position(f->table, SOURCE, hash, err);
    }
    if (rc == TN_OK) {
        memcpy(f->hashes[f->count++], hash, sizeof hash);
        f->cuts = cuts + 1;
    }
    return rc;
}

void tn_state_file_close(struct tn_state_file *file)
{
    for (uint32_t i = 0; i + 1 < file->count; i++) {
        remove_one(file, file->hashes[i]);
    }
    file->count = 0;
}
