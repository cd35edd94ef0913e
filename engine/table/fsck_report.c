#include <stdarg.h>
#include <stdio.h>

#include "file/names.h"
#include "table/fsck_private.h"

tn_rc tn_fsck_stop(struct tn_fsck *f, tn_rc rc)
{
    f->stopped = f->stopped || rc != TN_OK;
    return rc;
}

tn_rc tn_fsck_no_path(struct tn_fsck *f, struct tn_err *err)
{
    return tn_fsck_stop(f, tn_err_set(err, TN_AGAIN, 0, "fsck: no room for a path"));
}

/* ---- what was seen ---- */

static struct tn_hash_128 hash_of(enum tn_fsck_thing thing, struct tn_hash_128 hash)
{
    static const uint64_t apart[] = {
        [TN_FSCK_IDENTITY] = 0,
        [TN_FSCK_READ] = UINT64_C(0x9e3779b97f4a7c15),
        [TN_FSCK_PATH] = UINT64_C(0xc2b2ae3d27d4eb4f),
        [TN_FSCK_FINDING] = UINT64_C(0x165667b19e3779f9),
        [TN_FSCK_LISTS] = UINT64_C(0xd6e8feb86659fd93),
    };
    return (struct tn_hash_128){hash.high ^ apart[thing], hash.low};
}

tn_rc tn_fsck_see(struct tn_fsck *f, enum tn_fsck_thing thing, struct tn_hash_128 hash,
                  struct tn_hash_128 **slot, bool *is_new, struct tn_err *err)
{
    void *found;
    tn_rc rc = tn_fsck_table_add(&f->seen, hash_of(thing, hash), &found, is_new, err);
    if (rc == TN_OK) {
        *slot = found;
    }
    return tn_fsck_stop(f, rc);
}

struct tn_hash_128 *tn_fsck_seen(const struct tn_fsck *f, enum tn_fsck_thing thing,
                                 struct tn_hash_128 hash)
{
    return tn_fsck_table_find(&f->seen, hash_of(thing, hash));
}

tn_rc tn_fsck_reach(struct tn_fsck *f, const char *path, struct tn_err *err)
{
    struct tn_hash_128 *slot;
    bool is_new;
    return f->spec->orphans
               ? tn_fsck_see(f, TN_FSCK_PATH, tn_hash_128(tn_bytes_of(path)), &slot, &is_new, err)
               : TN_OK;
}

tn_rc tn_fsck_reach_in(struct tn_fsck *f, const char *root, const char *dir, const char *name,
                       struct tn_err *err)
{
    size_t mark = tn_arena_mark(&f->worker->arena);
    const char *path = tn_name_in(&f->worker->arena, root, dir, name);
    tn_rc rc = path ? tn_fsck_reach(f, path, err) : tn_fsck_no_path(f, err);
    tn_arena_reset(&f->worker->arena, mark);
    return rc;
}

/* ---- findings ---- */

/* Bytes of the UTF-8 character at `text`, 0 where there is none. */
static size_t character_size(const unsigned char *text)
{
    size_t size = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : 3;
    size = text[0] < 0xf0 ? size : text[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) { /* its final zero is none, too */
            return 0;
        }
    }
    return size;
}

/* One finding is one line of UTF-8, whatever names a damaged file holds. */
static void clean_line(char *text)
{
    while (*text) {
        size_t size = character_size((const unsigned char *)text);
        if (size == 0 || (unsigned char)*text < ' ' || *text == 0x7f) {
            *text = '?';
            size = 1;
        }
        text += size;
    }
}

static tn_rc give(struct tn_fsck *f, enum tn_fsck_kind kind, const char *file, struct tn_err *err)
{
    struct tn_hash_128 hash = tn_hash_128(tn_bytes_of(file));
    struct tn_hash_128 text = tn_hash_128(tn_bytes_of(f->text));
    struct tn_hash_128 *slot;
    bool is_new;
    hash.high = hash.high * 31 + text.high;
    hash.low = hash.low * 31 + text.low;
    tn_rc rc = tn_fsck_see(f, TN_FSCK_FINDING, hash, &slot, &is_new, err);
    if (rc != TN_OK || !is_new) {
        return rc;
    }
    (void)snprintf(f->clean, sizeof f->clean, "%s", file);
    clean_line(f->clean);
    clean_line(f->text);
    *(kind == TN_FSCK_PROBLEM ? &f->result->problems : &f->result->notes) += 1;
    return tn_fsck_stop(f, f->spec->each(f->spec->user, kind, f->clean, f->text, err));
}

tn_rc tn_fsck_problem(struct tn_fsck *f, struct tn_err *err, const char *file, const char *format,
                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    return give(f, TN_FSCK_PROBLEM, file, err);
}

tn_rc tn_fsck_note(struct tn_fsck *f, struct tn_err *err, const char *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    return give(f, TN_FSCK_NOTE, file, err);
}

tn_rc tn_fsck_told(struct tn_fsck *f, struct tn_err *err, const char *file)
{
    return give(f, TN_FSCK_PROBLEM, file, err);
}

/* The text of an error without the file that stands before it anyway. */
static const char *reason_of(const struct tn_err *err, const char *file)
{
    size_t size = strlen(file);
    bool named = strncmp(err->text, file, size) == 0 && strncmp(err->text + size, ": ", 2) == 0;
    return named ? err->text + size + 2 : err->text;
}

tn_rc tn_fsck_damage(struct tn_fsck *f, const char *file, const char *what, tn_rc rc,
                     struct tn_err *err)
{
    if (f->stopped || rc == TN_OK) {
        return rc;
    }
    const char *separator = what ? ": " : "";
    what = what ? what : "";
    switch (rc) {
    case TN_ABSENT:
        return tn_fsck_missing(f, err, file, "%s%sfile is missing", what, separator);
    case TN_CORRUPT:
    case TN_INVALID:
    case TN_EXISTS:
        return tn_fsck_problem(f, err, file, "%s%s%s", what, separator, reason_of(err, file));
    case TN_UNSUPPORTED:
    case TN_AGAIN: {
        uint32_t before = f->result->notes;
        if (f->result->unchecked == 0) {
            f->unchecked = *err;
        }
        rc = tn_fsck_note(f, err, file, "not checked: %s%s%s", what, separator,
                          reason_of(err, file));
        f->result->unchecked += f->result->notes - before;
        return rc;
    }
    case TN_OK:
    case TN_IO:
    case TN_FULL:
    case TN_CONFLICT:
    case TN_CANCELED:
        break;
    }
    return tn_fsck_stop(f, rc);
}
