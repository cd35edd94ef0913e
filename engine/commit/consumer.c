#include "commit/consumer.h"

#include <inttypes.h>

#include "commit/publish.h"
#include "file/names.h"
#include "format/json.h"
#include "io/clock.h"

enum { CONSUMER_SIZE_MAX = 4096, TEXT_SIZE = 64 };

/* ---- ids ---- */

static const char *behind(const char *text, const char *prefix)
{
    return tn_name_begins(text, prefix) ? text + strlen(prefix) : NULL;
}

const char *tn_consumer_id(const char *name)
{
    return behind(name, TN_CONSUMER_FILE);
}

enum tn_consumer_kind tn_consumer_kind_of(const char *id)
{
    const char *own = behind(id, "tarn-");
    if (!own) {
        return TN_CONSUMER_READER;
    }
    if (behind(own, "lake-")) {
        return TN_CONSUMER_LAKE;
    }
    return strlen(own) == TN_UUID_SIZE - 1 ? TN_CONSUMER_WRITER : TN_CONSUMER_RESERVED;
}

/* ---- files ---- */

struct paths {
    const char *dir;
    const char *final;
    const char *draft;
};

static tn_rc name_paths(const char *root, const char *id, struct tn_arena *arena,
                        struct paths *paths, struct tn_err *err)
{
    paths->dir = tn_name_in(arena, root, TN_DIR_CONSUMER, "");
    const char *dir = paths->dir ? paths->dir : "";
    paths->final = tn_arena_format(arena, "%s" TN_CONSUMER_FILE "%s", dir, id);
    paths->draft = tn_arena_format(arena, "%s." TN_CONSUMER_FILE "%s.tmp", dir, id);
    return paths->dir && paths->final && paths->draft
               ? TN_OK
               : tn_err_set(err, TN_AGAIN, 0, "no memory for a consumer's name");
}

static tn_rc decode(struct tn_bytes text, const char *path, struct tn_arena *arena, int64_t *next,
                    struct tn_err *err)
{
    struct cJSON *root = NULL;
    tn_rc rc = tn_json_open(text, arena, &root, err);
    if (rc != TN_OK) {
        return tn_err_in(err, "%s", path);
    }
    if (!tn_json_i64(tn_json_member(root, "nextSnapshot"), next)) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "%s: $.nextSnapshot: missing", path);
    }
    tn_json_close(root);
    return rc;
}

tn_rc tn_consumer_read(struct tn_io *io, const char *root, const char *id, struct tn_arena *scratch,
                       int64_t *next, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct paths paths;
    struct tn_bytes text;
    tn_rc rc = name_paths(root, id, scratch, &paths, err);
    if (rc == TN_OK) {
        rc = tn_io_read_all(io, paths.final, CONSUMER_SIZE_MAX, scratch, &text, err);
    }
    if (rc == TN_OK) {
        rc = decode(text, paths.final, scratch, next, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static void format_text(int64_t next, struct tn_buf *text)
{
    tn_buf_format(text, "{\n  \"nextSnapshot\" : %" PRId64 "\n}", next);
}

static bool is_there(struct tn_io *io, const char *path, struct tn_bytes text,
                     struct tn_arena *arena)
{
    struct tn_err ignored;
    struct tn_bytes found;
    return tn_io_read_all(io, path, CONSUMER_SIZE_MAX, arena, &found, &ignored) == TN_OK &&
           tn_bytes_equal(found, text);
}

static tn_rc replace_synced(struct tn_io *io, const struct paths *paths, struct tn_bytes text,
                            struct tn_err *err)
{
    tn_rc rc = tn_publish_over(io, paths->draft, paths->final, text, err);
    return rc == TN_OK ? io->vtable->sync(io, &paths->dir, 1, err) : rc;
}

tn_rc tn_consumer_write(struct tn_io *io, const char *root, const char *id, int64_t next,
                        struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct paths paths;
    char memory[TEXT_SIZE];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    format_text(next, &text);
    tn_rc rc = name_paths(root, id, scratch, &paths, err);
    if (rc == TN_OK && !is_there(io, paths.final, tn_buf_bytes(&text), scratch)) {
        rc = io->vtable->make_dir(io, paths.dir, err);
        rc = rc == TN_OK ? replace_synced(io, &paths, tn_buf_bytes(&text), err) : rc;
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_OK ? rc : tn_err_in(err, "consumer %s", id);
}

tn_rc tn_consumer_remove(struct tn_io *io, const char *root, const char *id,
                         struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct paths paths;
    tn_rc rc = name_paths(root, id, scratch, &paths, err);
    if (rc == TN_OK) {
        rc = io->vtable->unlink(io, paths.final, err);
    }
    if (rc == TN_OK) {
        rc = io->vtable->sync(io, &paths.dir, 1, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

tn_rc tn_consumer_draft(struct tn_io *io, const char *root, const char *id, int64_t next,
                        struct tn_arena *arena, const char **path, struct tn_err *err)
{
    struct tn_err ignored = {0};
    struct paths paths;
    char memory[TEXT_SIZE];
    struct tn_buf text;
    tn_buf_init(&text, memory, sizeof memory);
    format_text(next, &text);
    tn_rc rc = name_paths(root, id, arena, &paths, err);
    if (rc == TN_OK) {
        rc = io->vtable->make_dir(io, paths.dir, err);
    }
    if (rc == TN_OK) {
        (void)io->vtable->unlink(io, paths.draft, &ignored); /* of one that was killed */
        rc = tn_io_write_new(io, paths.draft, tn_buf_bytes(&text), err);
    }
    if (rc == TN_OK) {
        *path = paths.draft;
    }
    return rc;
}

tn_rc tn_consumer_replace(struct tn_io *io, const char *root, const char *id,
                          struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    struct paths paths;
    tn_rc rc = name_paths(root, id, scratch, &paths, err);
    if (rc == TN_OK) {
        rc = io->vtable->replace(io, paths.draft, paths.final, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}
