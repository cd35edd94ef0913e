#include "table/recover.h"

#include <stdio.h>
#include <string.h>

#include "commit/publish.h"
#include "file/names.h"

static const char DIR[] = ".tarn/";

tn_rc tn_table_lock(struct tn_io *io, const char *table, const char *who, struct tn_arena *scratch,
                    int *lock, struct tn_err *err)
{
    const char *root;
    tn_rc rc = tn_name_table_root(scratch, table, &root, err); /* a file is made of that name */
    if (rc != TN_OK) {
        return rc;
    }
    if (strlen(table) > TN_TABLE_LOCK_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "table '%s': its name has %zu bytes, %d at the most",
                          table, strlen(table), TN_TABLE_LOCK_MAX);
    }
    const char *path = tn_arena_format(scratch, "%s%s.lock", DIR, table);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the lock's name");
    }
    rc = io->vtable->make_dir(io, DIR, err);
    return rc == TN_OK ? io->vtable->lock(io, path, who, lock, err) : rc;
}

static tn_rc make_writer(struct tn_io *io, struct tn_clock *clock, const char *path,
                         struct tn_arena *arena, struct tn_recovered *recovered, struct tn_err *err)
{
    tn_clock_uuid(clock, recovered->writer);
    recovered->writer_new = true;
    const char *draft = tn_arena_format(arena, "%s.%s.tmp", path, recovered->writer);
    if (!draft) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the writer's name");
    }
    /* its name is made durable with the mark of positions: nobody needs the id before */
    return tn_publish_over(io, draft, path, tn_bytes_of(recovered->writer), err);
}

static tn_rc read_writer(struct tn_io *io, struct tn_clock *clock, const char *table,
                         struct tn_arena *arena, struct tn_recovered *recovered, struct tn_err *err)
{
    const char *path = tn_arena_format(arena, "%s%s.writer", DIR, table);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for the writer's name");
    }
    struct tn_bytes text;
    tn_rc rc = tn_io_read_all(io, path, 256, arena, &text, err);
    if (rc == TN_ABSENT) {
        return make_writer(io, clock, path, arena, recovered, err);
    }
    if (rc == TN_OK && text.size != TN_UUID_SIZE - 1) {
        return tn_err_set(err, TN_CORRUPT, 0, "%s: %zu bytes, a writer's id has %d", path,
                          text.size, TN_UUID_SIZE - 1);
    }
    if (rc == TN_OK) {
        memcpy(recovered->writer, text.data, TN_UUID_SIZE - 1);
        recovered->writer[TN_UUID_SIZE - 1] = 0;
    }
    return rc;
}

static const char *before_path(const char *table, struct tn_arena *arena)
{
    return tn_arena_format(arena, "%s%s.before", DIR, table);
}

static tn_rc read_before(struct tn_io *io, const char *table, struct tn_arena *arena,
                         struct tn_recovered *recovered, struct tn_err *err)
{
    struct tn_bytes text;
    const char *path = before_path(table, arena);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a file's name");
    }
    tn_rc rc = tn_io_read_all(io, path, TN_UUID_SIZE - 1, arena, &text, err);
    if (rc == TN_OK) {
        memcpy(recovered->before, text.data, text.size + 1);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_table_writer(struct tn_io *io, struct tn_clock *clock, const char *table,
                      struct tn_arena *scratch, struct tn_recovered *recovered, struct tn_err *err)
{
    size_t mark = tn_arena_mark(scratch);
    *recovered = (struct tn_recovered){0};
    tn_rc rc = io->vtable->make_dir(io, DIR, err);
    if (rc == TN_OK) {
        rc = read_writer(io, clock, table, scratch, recovered, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static tn_rc write_before(struct tn_io *io, const char *table, const char *before,
                          struct tn_arena *scratch, struct tn_err *err)
{
    const char *path = before_path(table, scratch);
    const char *draft = path ? tn_arena_format(scratch, "%s.tmp", path) : NULL;
    if (!draft) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a file's name");
    }
    return tn_publish_over(io, draft, path, tn_bytes_of(before), err);
}

tn_rc tn_table_inherit(struct tn_io *io, const char *table, const char *before, bool positioned,
                       struct tn_arena *scratch, struct tn_err *err)
{
    static const char *const dirs[] = {DIR};
    size_t mark = tn_arena_mark(scratch);
    tn_rc rc = write_before(io, table, before, scratch, err);
    if (rc == TN_OK) {
        rc = positioned ? tn_table_mark_positioned(io, table, scratch, err)
                        : io->vtable->sync(io, dirs, 1, err);
    }
    tn_arena_reset(scratch, mark);
    return rc;
}

static const char *property(const struct tn_json_map *map, const char *key)
{
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].key, key) == 0) {
            return map->pairs[i].value;
        }
    }
    return NULL;
}

static bool is_ours(const struct tn_snapshot *snapshot, const struct tn_recovered *recovered)
{
    const char *found = property(&snapshot->properties, TN_WRITER_PROPERTY);
    return found &&
           (strcmp(found, recovered->writer) == 0 || strcmp(found, recovered->before) == 0);
}

static bool parse_round(const char *text, int64_t *round)
{
    int64_t value = 0;
    size_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 18; digits++) {
        value = value * 10 + (text[digits] - '0');
    }
    *round = value;
    return digits > 0 && text[digits] == 0;
}

static tn_rc take(const struct tn_snapshot *snapshot, struct tn_recovered *recovered,
                  struct tn_err *err)
{
    const char *round = property(&snapshot->properties, TN_ROUND_PROPERTY);
    if (!round || !parse_round(round, &recovered->round)) {
        return tn_err_set(err, TN_CORRUPT, 0, "snapshot %lld: property %s is no number",
                          (long long)snapshot->id, TN_ROUND_PROPERTY);
    }
    recovered->found = true;
    recovered->properties = snapshot->properties;
    return TN_OK;
}

/* A hole in the chain is passed over: others may expire. */
static tn_rc walk_back(struct tn_io *io, const char *root, struct tn_arena *arena,
                       struct tn_recovered *recovered, struct tn_err *err)
{
    int64_t earliest;
    tn_rc rc = tn_snapshot_earliest(io, root, arena, &earliest, err);
    for (int64_t id = recovered->latest_id; rc == TN_OK && id >= earliest; id--) {
        size_t mark = tn_arena_mark(arena);
        struct tn_snapshot snapshot;
        rc = tn_snapshot_read(io, root, id, arena, &snapshot, err);
        if (rc == TN_OK && id == recovered->latest_id && snapshot.time_ms.present) {
            recovered->latest_ms = snapshot.time_ms.value;
        }
        if (rc == TN_OK && is_ours(&snapshot, recovered)) {
            return take(&snapshot, recovered, err);
        }
        tn_arena_reset(arena, mark);
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    return rc;
}

static tn_rc look_for_mark(struct tn_io *io, const char *table, struct tn_arena *arena,
                           struct tn_recovered *recovered, struct tn_err *err)
{
    const char *path = tn_arena_format(arena, "%s%s.positions", DIR, table);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a file's name");
    }
    uint64_t size;
    tn_rc rc = io->vtable->stat(io, path, &size, err);
    recovered->positioned = rc == TN_OK;
    return rc == TN_ABSENT ? TN_OK : rc;
}

tn_rc tn_table_mark_positioned(struct tn_io *io, const char *table, struct tn_arena *scratch,
                               struct tn_err *err)
{
    const char *path = tn_arena_format(scratch, "%s%s.positions", DIR, table);
    if (!path) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a file's name");
    }
    tn_rc rc = tn_io_write_new(io, path, (struct tn_bytes){NULL, 0}, err);
    if (rc != TN_OK && rc != TN_EXISTS) {
        return rc;
    }
    const char *dir = DIR;
    return io->vtable->sync(io, &dir, 1, err);
}

/* A process that was killed may have left names that are seen but not on the medium yet. Who goes
 * on from a position tells its source so: the snapshot that says it must survive a power cut first,
 * and before any snapshot the schema that it will name must. */
static tn_rc settle_names(struct tn_io *io, const char *root, struct tn_arena *arena,
                          const struct tn_recovered *recovered, struct tn_err *err)
{
    const char *paths[] = {tn_name_in(arena, root, TN_DIR_SCHEMA, ""), DIR,
                           tn_name_in(arena, root, TN_DIR_SNAPSHOT, "")};
    if (!paths[0] || !paths[2]) {
        return tn_err_set(err, TN_AGAIN, 0, "no memory for a folder's name");
    }
    uint32_t count = recovered->latest_id > 0 ? 3 : recovered->positioned ? 2 : 1;
    return io->vtable->sync(io, paths, count, err);
}

tn_rc tn_table_recover(struct tn_io *io, struct tn_clock *clock, const char *table,
                       const char *root, struct tn_arena *arena, struct tn_recovered *recovered,
                       struct tn_err *err)
{
    *recovered = (struct tn_recovered){0};
    tn_rc rc = read_writer(io, clock, table, arena, recovered, err);
    if (rc == TN_OK) {
        rc = read_before(io, table, arena, recovered, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    rc = look_for_mark(io, table, arena, recovered, err);
    if (rc == TN_OK) {
        rc = tn_snapshot_newest_name(io, root, arena, &recovered->latest_id, err);
    }
    if (rc == TN_ABSENT) {
        recovered->latest_id = 0;
        rc = TN_OK;
    }
    if (rc == TN_OK) {
        rc = settle_names(io, root, arena, recovered, err);
    }
    if (rc == TN_OK) {
        tn_snapshot_heal_hints(io, root, arena);
    }
    return rc == TN_OK && recovered->latest_id > 0 ? walk_back(io, root, arena, recovered, err)
                                                   : rc;
}
