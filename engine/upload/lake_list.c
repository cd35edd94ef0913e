#include "upload/lake_io_private.h"

/* Who lists a folder may ask for files meanwhile, and a target that is being listed can't answer.
 * So names go to a file in the scratch folder first: a byte 'd' or 'f', the name, and a zero. */

enum { PIECE_SIZE = 4096 };

struct listing {
    struct tn_lake_io *lake;
    const char *dir; /* with its final '/', but for the root */
    int below;       /* the scratch file */
    struct tn_buf buf;
    bool any;
};

static tn_rc flush(struct listing *l, struct tn_err *err)
{
    struct tn_io *scratch = l->lake->scratch;
    tn_rc rc = l->buf.size > 0
                   ? scratch->vtable->append(scratch, l->below, tn_buf_bytes(&l->buf), err)
                   : TN_OK;
    l->buf.size = 0;
    return rc;
}

static tn_rc note(struct listing *l, const char *name, bool is_dir, struct tn_err *err)
{
    size_t size = strlen(name) + 1;
    tn_rc rc = TN_OK;
    if (size + 1 > PIECE_SIZE) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "%s: a name of %zu bytes", l->dir, size - 1);
    }
    if (l->buf.capacity - l->buf.size < size + 1) {
        rc = flush(l, err);
    }
    tn_buf_byte(&l->buf, is_dir ? 'd' : 'f');
    tn_buf_append(&l->buf, name, size);
    l->any = true;
    return rc;
}

/* The name of a file that is in the folder itself; NULL: it isn't. */
static const char *name_in(const struct listing *l, const struct tn_lake_file *file)
{
    size_t size = strlen(l->dir);
    bool below = strncmp(file->path, l->dir, size) == 0;
    return below && file->path[size] && !strchr(file->path + size, '/') ? file->path + size : NULL;
}

static bool is_here(const struct tn_lake_file *file)
{
    return !file->nameless && (file->state == TN_LAKE_WRITTEN || file->state == TN_LAKE_SENT);
}

static tn_rc note_there(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct listing *l = user;
    if (name[0] == '.') {
        return TN_OK;
    }
    for (uint32_t i = 0; !is_dir && i < l->lake->file_count; i++) {
        struct tn_lake_file *file = &l->lake->files[i];
        const char *own = is_here(file) ? name_in(l, file) : NULL;
        file->told = file->told || (own && strcmp(own, name) == 0);
    }
    return note(l, name, is_dir, err);
}

static tn_rc note_here(struct listing *l, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < l->lake->file_count; i++) {
        struct tn_lake_file *file = &l->lake->files[i];
        const char *own = is_here(file) && !file->told ? name_in(l, file) : NULL;
        rc = own ? note(l, own, false, err) : TN_OK;
    }
    return rc;
}

static tn_rc note_all(struct listing *l, struct tn_err *err)
{
    struct tn_target *target = l->lake->target;
    struct tn_err absent = {0};
    for (uint32_t i = 0; i < l->lake->file_count; i++) {
        l->lake->files[i].told = false;
    }
    tn_rc rc = target->vtable->list(target, l->dir, note_there, l, err);
    if (rc == TN_ABSENT) {
        absent = *err;
        rc = TN_OK;
    }
    if (rc == TN_OK) {
        rc = note_here(l, err);
    }
    if (rc == TN_OK && absent.code == TN_ABSENT && !l->any) {
        *err = absent;
        return TN_ABSENT;
    }
    return rc == TN_OK ? flush(l, err) : rc;
}

/* Whole names in a piece of the file; `size` becomes what they take. */
static tn_rc tell_piece(const char *piece, size_t *size, tn_io_name_fn *each, void *user,
                        struct tn_err *err)
{
    tn_rc rc = TN_OK;
    size_t at = 0;
    const char *end = memchr(piece, 0, *size);
    while (rc == TN_OK && end) {
        rc = each(user, piece + at + 1, piece[at] == 'd', err);
        at = (size_t)(end - piece) + 1;
        end = memchr(piece + at, 0, *size - at);
    }
    *size = at;
    return rc;
}

static tn_rc tell(struct listing *l, const char *name, tn_io_name_fn *each, void *user,
                  struct tn_err *err)
{
    struct tn_io *scratch = l->lake->scratch;
    uint64_t whole = 0;
    int file = -1;
    tn_rc rc = scratch->vtable->open(scratch, name, &file, &whole, err);
    if (rc != TN_OK) {
        return rc;
    }
    for (uint64_t at = 0; rc == TN_OK && at < whole;) {
        size_t size = 0;
        rc = scratch->vtable->read(scratch, file, at, l->buf.data, PIECE_SIZE, &size, err);
        if (rc == TN_OK) {
            rc = tell_piece((const char *)l->buf.data, &size, each, user, err);
        }
        if (rc == TN_OK && size == 0) {
            rc = tn_err_set(err, TN_IO, 0, "%s: it was cut", name);
        }
        at += size;
    }
    scratch->vtable->close(scratch, file);
    return rc;
}

static tn_rc list_by(struct listing *l, const char *name, tn_io_name_fn *each, void *user,
                     struct tn_err *err)
{
    struct tn_io *scratch = l->lake->scratch;
    struct tn_err ignored;
    tn_rc rc = scratch->vtable->create(scratch, name, &l->below, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = note_all(l, err);
    scratch->vtable->close(scratch, l->below);
    if (rc == TN_OK && l->any) {
        rc = tell(l, name, each, user, err);
    }
    (void)scratch->vtable->unlink(scratch, name, &ignored);
    return rc;
}

tn_rc tn_lake_list(struct tn_lake_io *lake, const char *path, tn_io_name_fn *each, void *user,
                   struct tn_err *err)
{
    struct tn_arena *arena = &lake->arena;
    size_t mark = tn_arena_mark(arena);
    size_t size = strlen(path);
    bool root = size == 0 || (size == 1 && path[0] == '/');
    char name[TN_LAKE_NUMBER_SIZE];
    void *piece = NULL;
    tn_rc rc = tn_arena_need(arena, PIECE_SIZE, "names of a folder", &piece, err);
    const char *dir = root                    ? ""
                      : path[size - 1] == '/' ? path
                                              : tn_arena_format(arena, "%s/", path);
    if (rc == TN_OK && !dir) {
        rc = tn_err_set(err, TN_AGAIN, 0, "no room for a path");
    }
    if (rc == TN_OK) {
        struct listing l = {.lake = lake, .dir = dir};
        tn_buf_init(&l.buf, piece, PIECE_SIZE);
        tn_lake_number(lake->names++, name);
        rc = list_by(&l, name, each, user, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}
