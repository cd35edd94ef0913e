#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "file/names.h"
#include "format/json.h"
#include "upload/beside.h"
#include "upload/restore_private.h"

static const char DIR[] = ".tarn/";

static const char KIND[] = "restore";

struct record {
    int64_t version;
    const char *from;
    int64_t snapshot;
    int64_t generation;
};

static const struct tn_json_field fields[] = {
    {"version", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, version)},
    {"from", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, from)},
    {"snapshot", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, snapshot)},
    {"generation", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, generation)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static tn_rc decode(struct tn_bytes text, struct tn_arena *arena, struct tn_restore_mark *mark,
                    struct tn_err *err)
{
    struct record record = {0};
    tn_rc rc = tn_json_read_text(text, fields, FIELDS, &record, arena, err);
    if (rc == TN_OK && (record.version != 1 || strlen(record.from) >= sizeof mark->from)) {
        rc = tn_err_set(err, TN_CORRUPT, 0, "it is of another version");
    }
    if (rc == TN_OK) {
        mark->snapshot_id = record.snapshot;
        mark->generation = record.generation;
        (void)snprintf(mark->from, sizeof mark->from, "%s", record.from);
    }
    return rc;
}

tn_rc tn_restore_read_mark(struct tn_restore *r, struct tn_restore_mark *mark, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t before = tn_arena_mark(arena);
    struct tn_bytes text;
    tn_rc rc = tn_beside_read(r->home, r->spec->table, KIND, arena, &text, err);
    if (rc == TN_OK) {
        rc = decode(text, arena, mark, err);
        rc = rc == TN_OK ? rc : tn_err_in(err, "%s%s.%s", DIR, r->spec->table, KIND);
    }
    tn_arena_reset(arena, before);
    return rc;
}

tn_rc tn_restore_write_mark(struct tn_restore *r, const struct tn_restore_mark *mark,
                            struct tn_err *err)
{
    char memory[1024];
    struct tn_buf text;
    struct record record = {1, mark->from, mark->snapshot_id, mark->generation};
    tn_buf_init(&text, memory, sizeof memory);
    tn_json_write(&record, fields, FIELDS, &text);
    return tn_beside_write(r->home, r->spec->table, KIND, tn_buf_bytes(&text), &r->worker->arena,
                           err);
}

tn_rc tn_restore_remove_mark(struct tn_restore *r, struct tn_err *err)
{
    static const char *const dirs[] = {DIR};
    size_t before = tn_arena_mark(&r->worker->arena);
    const char *path = tn_arena_format(&r->worker->arena, "%s%s.%s", DIR, r->spec->table, KIND);
    tn_rc rc = path ? r->home->vtable->unlink(r->home, path, err) : tn_restore_no_room(err);
    tn_arena_reset(&r->worker->arena, before);
    return rc == TN_OK || rc == TN_ABSENT ? r->home->vtable->sync(r->home, dirs, 1, err) : rc;
}

static tn_rc find_numbered(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    bool *found = user;
    (void)err;
    *found = *found || (!is_dir && (tn_name_number(name, "schema-") >= 0 ||
                                    tn_name_number(name, "snapshot-") >= 0));
    return TN_OK;
}

tn_rc tn_restore_check_empty(struct tn_restore *r, struct tn_err *err)
{
    static const char *const dirs[] = {TN_DIR_SCHEMA, TN_DIR_SNAPSHOT};
    struct tn_arena *arena = &r->worker->arena;
    size_t before = tn_arena_mark(arena);
    bool found = false;
    tn_rc rc = TN_OK;
    for (size_t i = 0; rc == TN_OK && i < sizeof dirs / sizeof dirs[0]; i++) {
        const char *dir = tn_name_in(arena, r->spec->root, dirs[i], "");
        rc = dir ? r->home->vtable->list(r->home, dir, find_numbered, &found, err)
                 : tn_restore_no_room(err);
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    tn_arena_reset(arena, before);
    return rc == TN_OK && found
               ? tn_err_set(err, TN_EXISTS, 0,
                            "%s is there already, and restore only makes what isn't: move %s away",
                            r->spec->table, r->spec->root)
               : rc;
}
