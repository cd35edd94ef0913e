#include "upload/restore.h"

#include <inttypes.h>
#include <stdio.h>

#include "commit/consumer.h"
#include "file/names.h"
#include "upload/ledger.h"
#include "upload/restore_private.h"
#include "upload/tag_record.h"

enum {
    COUNTED_MAX = 4096, /* files that are told apart; beyond, some count twice */
    LAKE_FILES = 16,
    ROUNDS_MAX = 64, /* times that the old device publishes meanwhile */
    BACK_MAX = 1000, /* snapshots that are looked at for positions */
};

/* As in table/recover.h. */
static const char WRITER[] = "tarn.writer";
static const char POSITION[] = "tarn.position.";

/* ---- which snapshots ---- */

static tn_rc check_there(struct tn_restore *r, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t mark = tn_arena_mark(arena);
    uint64_t size;
    const char *path = tn_name_numbered(arena, r->spec->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc =
        path ? r->lake.io.vtable->stat(&r->lake.io, path, &size, err) : tn_restore_no_room(err);
    tn_arena_reset(arena, mark);
    return rc == TN_ABSENT ? tn_err_set(err, TN_ABSENT, 0,
                                        "%s has no snapshot %" PRId64 "; the newest is %" PRId64,
                                        r->spec->target->name, id, r->result->newest_id)
                           : rc;
}

static tn_rc find_newest(struct tn_restore *r, struct tn_err *err)
{
    tn_rc rc = tn_snapshot_latest(&r->lake.io, r->spec->root, &r->worker->arena,
                                  &r->result->newest_id, err);
    if (rc == TN_ABSENT) {
        r->result->newest_id = 0;
        rc = TN_OK;
    }
    return rc;
}

/* Sets what is known of the writer; false: nothing of tarn has written it. */
static bool take_writer(struct tn_restore *r, const struct tn_snapshot *snapshot)
{
    const struct tn_json_map *map = &snapshot->properties;
    bool found = false;
    bool positions = false;
    for (uint32_t i = 0; i < map->count; i++) {
        const char *key = map->pairs[i].key;
        positions = positions || tn_name_begins(key, POSITION);
        if (strcmp(key, WRITER) == 0 && strlen(map->pairs[i].value) < TN_UUID_SIZE) {
            (void)snprintf(r->result->writer, TN_OWNER_ID_SIZE, "%s", map->pairs[i].value);
            found = true;
        }
    }
    r->result->positions = found && positions;
    return found;
}

/* From the last downwards to one that says where sources stood. Without one the last is enough. */
static tn_rc find_first(struct tn_restore *r, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    int64_t last = r->result->last_id;
    bool found = false;
    tn_rc rc = TN_OK;
    r->result->first_id = last;
    for (int64_t id = last; rc == TN_OK && !found && id > 0 && last - id < BACK_MAX; id--) {
        struct tn_snapshot snapshot;
        size_t mark = tn_arena_mark(arena);
        rc = tn_snapshot_read(&r->lake.io, r->spec->root, id, arena, &snapshot, err);
        found = rc == TN_OK && take_writer(r, &snapshot);
        r->result->first_id = found ? id : last;
        tn_arena_reset(arena, mark);
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

static tn_rc find_schema(struct tn_restore *r, int64_t *newest_id, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t mark = tn_arena_mark(arena);
    const struct tn_schema *newest = NULL;
    tn_schemas_init(&r->schemas, &r->lake.io, r->spec->root, arena);
    tn_rc rc = tn_schemas_newest(&r->schemas, &newest, err);
    *newest_id = rc == TN_OK ? newest->id : -1;
    tn_arena_reset(arena, mark);
    return rc;
}

/* ---- snapshots: their names come last ---- */

static tn_rc read_text(struct tn_restore *r, const char *path, size_t size_max,
                       struct tn_bytes *text, struct tn_err *err)
{
    return path ? tn_io_read_all(&r->lake.io, path, size_max, &r->worker->arena, text, err)
                : tn_restore_no_room(err);
}

static tn_rc publish(struct tn_restore *r, const char *dir, const char *prefix, int64_t id,
                     size_t size_max, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    struct tn_target *home = &r->directory.target;
    size_t mark = tn_arena_mark(arena);
    struct tn_bytes text;
    const char *path = tn_name_numbered(arena, r->spec->root, dir, prefix, id);
    tn_rc rc = read_text(r, path, size_max, &text, err);
    if (rc == TN_OK) {
        rc = home->vtable->publish(home, path, text, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc write_hint(struct tn_restore *r, const char *name, int64_t id, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    struct tn_target *home = &r->directory.target;
    size_t mark = tn_arena_mark(arena);
    const char *path = tn_name_in(arena, r->spec->root, TN_DIR_SNAPSHOT, name);
    const char *text = tn_arena_format(arena, "%" PRId64, id);
    tn_rc rc = path && text ? home->vtable->replace(home, path, tn_bytes_of(text), err)
                            : tn_restore_no_room(err);
    tn_arena_reset(arena, mark);
    return rc;
}

static tn_rc bring_range(struct tn_restore *r, int64_t first_id, int64_t last_id,
                         struct tn_err *err)
{
    struct tn_target *home = &r->directory.target;
    tn_rc rc = tn_restore_bring_files(r, first_id, last_id, err);
    for (int64_t id = first_id; rc == TN_OK && !r->spec->dry_run && id <= last_id; id++) {
        rc = publish(r, TN_DIR_SNAPSHOT, "snapshot-", id, TN_SNAPSHOT_SIZE_MAX, err);
    }
    if (rc != TN_OK) {
        home->vtable->drop(home);
    }
    return rc;
}

/* ---- whose the mirror is ---- */

static tn_rc read_owner(struct tn_restore *r, struct tn_owner *owner, struct tn_err *err)
{
    *owner = (struct tn_owner){0};
    tn_rc rc = tn_owner_read(r->spec->target, r->spec->table, &r->worker->arena, owner, err);
    r->result->shared = rc == TN_OK && tn_owner_is_shared(owner);
    if (r->result->shared) { /* nobody's */
        *owner = (struct tn_owner){0};
    }
    return rc == TN_ABSENT ? TN_OK : rc;
}

/* Tags don't come, so they are nobody's from now on: else the next sync would remove what isn't
 * here. */
static tn_rc leave_tags(struct tn_restore *r, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_tag_record record;
    tn_rc rc = tn_tag_record_read(r->spec->target, r->spec->table, true, arena, &record, err);
    if (rc == TN_CORRUPT || (rc == TN_OK && record.count > 0)) {
        record = (struct tn_tag_record){0};
        rc = tn_tag_record_write(r->spec->target, r->spec->table, &record, arena, err);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* A try before may have raised it, and not have heard so. */
static tn_rc take_over(struct tn_restore *r, struct tn_restore_mark *mark, struct tn_err *err)
{
    struct tn_owner owner;
    tn_rc rc = read_owner(r, &owner, err);
    if (rc != TN_OK || owner.generation == 0) {
        return rc;
    }
    bool ours = strcmp(owner.writer, r->spec->writer) == 0;
    if (!ours || owner.generation <= mark->generation || mark->generation == 0) {
        struct tn_clock *clock = r->worker->clock;
        struct tn_owner next = {.since_ms = clock->vtable->now_ms(clock)};
        (void)snprintf(next.writer, sizeof next.writer, "%s", r->spec->writer);
        mark->generation = owner.generation;
        rc = tn_restore_write_mark(r, mark, err);
        rc = rc == TN_OK ? tn_owner_raise(r->spec->target, r->spec->table, &owner, &next,
                                          &r->worker->arena, err)
                         : rc;
    }
    rc = rc == TN_OK ? leave_tags(r, err) : rc;
    r->result->owner = rc == TN_OK;
    return rc;
}

/* ---- the order ---- */

static tn_rc check_mark(struct tn_restore *r, struct tn_restore_mark *mark, struct tn_err *err)
{
    tn_rc rc = tn_restore_read_mark(r, mark, err);
    if (rc == TN_ABSENT) {
        *mark = (struct tn_restore_mark){0};
        return tn_restore_check_empty(r, err);
    }
    if (rc == TN_OK && strcmp(mark->from, r->spec->target->name) != 0) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s is half restored from %s: go on with that, or remove it and "
                          ".tarn/%s.restore",
                          r->spec->table, mark->from, r->spec->table);
    }
    return rc;
}

/* What a try before has begun with comes first, as long as the mirror has it: the ids must not have
 * a gap. */
static tn_rc go_on(struct tn_restore *r, int64_t id, struct tn_err *err)
{
    tn_rc rc = check_there(r, id, err);
    r->result->last_id = rc == TN_OK ? id : r->result->newest_id;
    return rc == TN_ABSENT && r->spec->snapshot_id == 0 ? TN_OK : rc;
}

static tn_rc choose(struct tn_restore *r, struct tn_restore_mark *mark, struct tn_err *err)
{
    struct tn_restore_result *result = r->result;
    int64_t wanted = r->spec->snapshot_id;
    if (mark->snapshot_id > 0 && wanted > 0 && wanted != mark->snapshot_id) {
        return tn_err_set(err, TN_CONFLICT, 0,
                          "%s is half restored, with snapshot %" PRId64
                          ": go on with that, or remove it and .tarn/%s.restore",
                          r->spec->table, mark->snapshot_id, r->spec->table);
    }
    result->last_id = wanted > 0 ? wanted : result->newest_id;
    tn_rc rc = mark->snapshot_id > 0 ? go_on(r, mark->snapshot_id, err)
               : result->last_id > 0 ? check_there(r, result->last_id, err)
                                     : TN_OK;
    return rc == TN_OK && result->last_id > 0 ? find_first(r, err) : rc;
}

/* Until then the old device may have published more. */
static tn_rc follow(struct tn_restore *r, struct tn_restore_mark *mark, struct tn_err *err)
{
    struct tn_restore_result *result = r->result;
    tn_rc rc = TN_OK;
    for (int i = 0; rc == TN_OK && i < ROUNDS_MAX; i++) {
        int64_t first = result->first_id;
        int64_t last = result->last_id;
        rc = find_newest(r, err);
        if (rc != TN_OK || result->newest_id <= last) {
            return rc;
        }
        result->last_id = mark->snapshot_id = result->newest_id;
        rc = tn_restore_write_mark(r, mark, err);
        if (rc == TN_OK) {
            rc = find_first(r, err);
        }
        result->first_id = last > 0 ? first : result->first_id;
        if (rc == TN_OK) {
            rc = bring_range(r, last > 0 ? last + 1 : result->first_id, result->last_id, err);
        }
    }
    return rc;
}

static tn_rc bring_all(struct tn_restore *r, struct tn_restore_mark *mark, struct tn_err *err)
{
    struct tn_restore_result *result = r->result;
    bool newest = r->spec->snapshot_id == 0 || r->spec->snapshot_id == result->newest_id;
    tn_rc rc = TN_OK;
    mark->snapshot_id = result->last_id;
    (void)snprintf(mark->from, sizeof mark->from, "%s", r->spec->target->name);
    if (!r->spec->dry_run) {
        rc = tn_restore_write_mark(r, mark, err);
    }
    if (rc == TN_OK && newest && !r->spec->dry_run) {
        rc = take_over(r, mark, err);
    }
    if (rc == TN_OK && result->last_id > 0) {
        rc = bring_range(r, result->first_id, result->last_id, err);
    }
    return rc == TN_OK && newest && !r->spec->dry_run ? follow(r, mark, err) : rc;
}

static tn_rc look_there(struct tn_restore *r, struct tn_err *err)
{
    int64_t schema_id;
    tn_rc rc = find_schema(r, &schema_id, err);
    if (rc == TN_ABSENT) {
        return tn_err_set(err, TN_ABSENT, 0, "%s: there is no table %s", r->spec->target->name,
                          r->spec->table);
    }
    return rc == TN_OK ? find_newest(r, err) : rc;
}

static tn_rc run_bring(struct tn_restore *r, struct tn_err *err)
{
    struct tn_restore_mark mark;
    struct tn_owner owner;
    tn_rc rc = check_mark(r, &mark, err);
    if (rc == TN_OK) {
        rc = look_there(r, err);
    }
    if (rc == TN_OK) {
        rc = choose(r, &mark, err);
    }
    if (rc == TN_OK && r->spec->dry_run) {
        rc = read_owner(r, &owner, err);
        r->result->owner = owner.generation > 0 && r->result->last_id == r->result->newest_id;
    }
    return rc == TN_OK ? bring_all(r, &mark, err) : rc;
}

/* ---- it is a table now ---- */

/* The newest first: who finds a table finds the schema that its snapshots have. Those that are gone
 * are needed by nothing. */
static tn_rc publish_schemas(struct tn_restore *r, int64_t newest_id, struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (int64_t id = newest_id; rc == TN_OK && id >= 0; id--) {
        rc = publish(r, TN_DIR_SCHEMA, "schema-", id, TN_SCHEMA_SIZE_MAX, err);
        rc = rc == TN_ABSENT ? TN_OK : rc;
    }
    return rc;
}

static tn_rc hash_snapshot(struct tn_restore *r, int64_t id, struct tn_hash_128 *hash,
                           struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    size_t mark = tn_arena_mark(arena);
    struct tn_bytes text;
    const char *path = tn_name_numbered(arena, r->spec->root, TN_DIR_SNAPSHOT, "snapshot-", id);
    tn_rc rc = path ? tn_io_read_all(r->home, path, TN_SNAPSHOT_SIZE_MAX, arena, &text, err)
                    : tn_restore_no_room(err);
    if (rc == TN_OK) {
        *hash = tn_hash_128(text);
    }
    tn_arena_reset(arena, mark);
    return rc;
}

/* The next sync knows what is there. */
static tn_rc write_ledger(struct tn_restore *r, int64_t schema_id, struct tn_err *err)
{
    const struct tn_restore_result *result = r->result;
    struct tn_clock *clock = r->worker->clock;
    struct tn_arena *arena = &r->worker->arena;
    struct tn_ledger ledger = {.have = result->last_id, .schema = schema_id, .tags_known = true};
    tn_rc rc = read_owner(r, &ledger.owner, err);
    if (rc != TN_OK || strcmp(ledger.owner.writer, r->spec->writer) != 0) {
        return rc; /* somebody took it over since: the sync says so */
    }
    ledger.checked_ms = clock->vtable->now_ms(clock);
    if (ledger.have > 0) {
        rc = hash_snapshot(r, ledger.have, &ledger.hash, err);
    }
    if (rc == TN_OK) {
        rc = tn_ledger_write(r->home, r->spec->table, r->spec->lake, &ledger, arena, err);
    }
    return rc == TN_OK && ledger.have > 0
               ? tn_consumer_write(r->home, r->spec->root, r->spec->lake, ledger.have, arena, err)
               : rc;
}

static tn_rc run_finish(struct tn_restore *r, struct tn_err *err)
{
    struct tn_target *home = &r->directory.target;
    int64_t schema_id;
    tn_rc rc = TN_OK;
    if (r->result->last_id > 0) {
        rc = write_hint(r, "EARLIEST", r->result->first_id, err);
        rc = rc == TN_OK ? write_hint(r, "LATEST", r->result->last_id, err) : rc;
    }
    if (rc == TN_OK) {
        rc = home->vtable->settle(home, err);
    }
    if (rc == TN_OK) {
        rc = find_schema(r, &schema_id, err);
    }
    if (rc == TN_OK && r->result->owner) {
        rc = write_ledger(r, schema_id, err);
    }
    if (rc == TN_OK) {
        rc = publish_schemas(r, schema_id, err);
    }
    return rc == TN_OK ? tn_restore_remove_mark(r, err) : rc;
}

/* ---- */

static tn_rc open_lake(struct tn_restore *r, struct tn_err *err)
{
    const struct tn_lake_io_spec spec = {.target = r->spec->target,
                                         .scratch = r->spec->scratch,
                                         .arena = &r->worker->arena,
                                         .files = LAKE_FILES};
    return tn_lake_io_open(&r->lake, &spec, err);
}

static tn_rc open_parts(struct tn_restore *r, struct tn_err *err)
{
    struct tn_arena *arena = &r->worker->arena;
    tn_rc rc = tn_set_init(&r->counted, COUNTED_MAX, arena, err);
    if (rc == TN_OK) {
        rc = tn_directory_init(&r->directory, r->home, r->spec->table, arena, err);
    }
    if (rc == TN_OK) {
        r->directory.target.stop = r->spec->target->stop;
        rc = open_lake(r, err);
    }
    return rc;
}

typedef tn_rc run_fn(struct tn_restore *r, struct tn_err *err);

static tn_rc run_with(struct tn_restore *r, run_fn *run, struct tn_err *err)
{
    tn_rc rc = open_parts(r, err);
    if (rc == TN_OK) {
        r->worker->io = r->spec->dry_run ? &r->lake.io : r->home;
        rc = run(r, err);
        r->worker->io = r->home;
        tn_lake_io_close(&r->lake);
    }
    return rc == TN_OK ? rc : tn_err_in(err, "restore %s", r->spec->table);
}

static tn_rc with(const struct tn_restore_spec *spec, struct tn_worker *worker,
                  struct tn_restore_result *result, run_fn *run, struct tn_err *err)
{
    size_t mark = tn_arena_mark(&worker->arena);
    void *memory = NULL;
    tn_rc rc = tn_arena_need(&worker->arena, sizeof(struct tn_restore), "restore", &memory, err);
    if (rc == TN_OK) {
        struct tn_restore *r = memory;
        memset(r, 0, sizeof *r);
        r->spec = spec;
        r->worker = worker;
        r->result = result;
        r->home = worker->io;
        rc = run_with(r, run, err);
    }
    tn_arena_reset(&worker->arena, mark);
    return rc;
}

tn_rc tn_restore_bring(const struct tn_restore_spec *spec, struct tn_worker *worker,
                       struct tn_restore_result *result, struct tn_err *err)
{
    *result = (struct tn_restore_result){0};
    return with(spec, worker, result, run_bring, err);
}

tn_rc tn_restore_finish(const struct tn_restore_spec *spec, struct tn_worker *worker,
                        const struct tn_restore_result *result, struct tn_err *err)
{
    struct tn_restore_result again = *result;
    return with(spec, worker, &again, run_finish, err);
}
