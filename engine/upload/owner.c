#include "upload/owner.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "format/json.h"
#include "schema/time_text.h"

enum { OWNER_SIZE_MAX = 4096 };

struct record {
    int64_t version;
    int64_t generation;
    const char *writer;
    const char *mirror;
    int64_t since_ms;
};

static const struct tn_json_field fields[] = {
    {"version", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, version)},
    {"generation", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, generation)},
    {"writer", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, writer)},
    {"mirror", TN_JSON_TEXT, TN_JSON_REQUIRED, offsetof(struct record, mirror)},
    {"sinceMs", TN_JSON_I64, TN_JSON_REQUIRED, offsetof(struct record, since_ms)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static tn_rc path_of(const char *table, struct tn_arena *arena, const char **path,
                     struct tn_err *err)
{
    *path = tn_arena_format(arena, ".tarn/%s/owner", table);
    return *path ? TN_OK : tn_err_set(err, TN_AGAIN, 0, "no memory for the owner's name");
}

static tn_rc take(const struct record *record, struct tn_owner *owner, struct tn_err *err)
{
    if (record->version != 1) {
        return tn_err_set(err, TN_UNSUPPORTED, 0, "$.version: %" PRId64, record->version);
    }
    if (record->generation < 1 || strlen(record->writer) >= TN_OWNER_ID_SIZE ||
        strlen(record->mirror) >= TN_OWNER_ID_SIZE) {
        return tn_err_set(err, TN_CORRUPT, 0, "no generation, or no ids");
    }
    owner->generation = record->generation;
    owner->since_ms = record->since_ms;
    (void)snprintf(owner->writer, sizeof owner->writer, "%s", record->writer);
    (void)snprintf(owner->mirror, sizeof owner->mirror, "%s", record->mirror);
    return TN_OK;
}

static tn_rc decode(struct tn_bytes text, struct tn_arena *arena, struct tn_owner *owner,
                    struct tn_err *err)
{
    struct record record = {0};
    tn_rc rc = tn_json_read_text(text, fields, FIELDS, &record, arena, err);
    return rc == TN_OK ? take(&record, owner, err) : rc;
}

static tn_rc read_text(struct tn_target *target, const char *path, struct tn_arena *arena,
                       struct tn_bytes *text, struct tn_owner *owner, struct tn_err *err)
{
    tn_rc rc = target->vtable->read(target, path, OWNER_SIZE_MAX, arena, text, err);
    if (rc != TN_OK) {
        return rc;
    }
    rc = decode(*text, arena, owner, err);
    return rc == TN_OK ? rc : tn_err_in(err, "%s: %s", target->name, path);
}

tn_rc tn_owner_read(struct tn_target *target, const char *table, struct tn_arena *scratch,
                    struct tn_owner *owner, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path;
    struct tn_bytes text;
    tn_rc rc = path_of(table, scratch, &path, err);
    if (rc == TN_OK) {
        rc = read_text(target, path, scratch, &text, owner, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc write_over(struct tn_target *target, const char *path, struct tn_bytes was,
                        const struct tn_owner *owner, struct tn_err *err)
{
    char memory[512];
    struct tn_buf text;
    struct record record = {1, owner->generation, owner->writer, owner->mirror, owner->since_ms};
    tn_buf_init(&text, memory, sizeof memory);
    tn_json_write(&record, fields, FIELDS, &text);
    return target->vtable->swap(target, path, was, tn_buf_bytes(&text), err);
}

tn_rc tn_owner_make(struct tn_target *target, const char *table, const struct tn_owner *owner,
                    struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path;
    tn_rc rc = path_of(table, scratch, &path, err);
    if (rc == TN_OK) {
        rc = write_over(target, path, (struct tn_bytes){NULL, 0}, owner, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static const char SHARED[] = "shared";

bool tn_owner_is_shared(const struct tn_owner *owner)
{
    return strcmp(owner->writer, SHARED) == 0;
}

tn_rc tn_owner_has_mirror(const struct tn_target *target, const char *table, struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0,
                      "%s: %s is the mirror of a device (.tarn/%s/owner says whose): only one "
                      "writes it",
                      target->name, table, table);
}

tn_rc tn_owner_share(struct tn_target *target, const char *table, int64_t now_ms,
                     struct tn_arena *scratch, struct tn_err *err)
{
    struct tn_owner owner = {.generation = 1, .since_ms = now_ms};
    memcpy(owner.writer, SHARED, sizeof SHARED);
    tn_rc rc = tn_owner_make(target, table, &owner, scratch, err);
    if (rc != TN_CONFLICT) {
        return rc;
    }
    rc = tn_target_if_hidden(tn_owner_read(target, table, scratch, &owner, err), err);
    return rc == TN_OK && !tn_owner_is_shared(&owner) ? tn_owner_has_mirror(target, table, err)
                                                      : rc;
}

tn_rc tn_owner_taken(const struct tn_target *target, const struct tn_owner *owner,
                     struct tn_err *err)
{
    char time[64];
    tn_time_format_utc(owner->since_ms, time, sizeof time);
    if (tn_owner_is_shared(owner)) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s: gateways share this table since %s: no mirror of it can be made; "
                          "nothing is sent",
                          target->name, time);
    }
    return tn_err_set(err, TN_CONFLICT, 0,
                      "%s: writer %s took this mirror over at %s (generation %" PRId64
                      "); nothing is sent",
                      target->name, owner->writer, time, owner->generation);
}

static tn_rc raise_at(struct tn_target *target, const char *path, const struct tn_owner *seen,
                      struct tn_owner *next, struct tn_arena *scratch, struct tn_err *err)
{
    struct tn_bytes text;
    struct tn_owner now = {0};
    tn_rc rc = tn_target_if_hidden(read_text(target, path, scratch, &text, &now, err), err);
    if (rc != TN_OK) {
        return rc;
    }
    if (now.generation != seen->generation || strcmp(now.writer, seen->writer) != 0) {
        return tn_owner_taken(target, &now, err);
    }
    next->generation = now.generation + 1;
    memcpy(next->mirror, now.mirror, sizeof next->mirror);
    return write_over(target, path, text, next, err);
}

tn_rc tn_owner_raise(struct tn_target *target, const char *table, const struct tn_owner *seen,
                     struct tn_owner *next, struct tn_arena *scratch, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    const char *path;
    tn_rc rc = path_of(table, scratch, &path, err);
    if (rc == TN_OK) {
        rc = raise_at(target, path, seen, next, scratch, err);
    }
    tn_arena_reset(scratch, mark);
    return rc == TN_ABSENT
               ? tn_err_set(err, TN_CONFLICT, 0, "%s: its owner's file is gone", target->name)
               : rc;
}
