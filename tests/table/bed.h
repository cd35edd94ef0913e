/* bed: what the tests of table/ stand on: an engine in small memory that is used again and again, a
 * program that writes a scenario's table, and a check of a disk against the scenario's model, row
 * by row (scenario.h) and change by change (follow.h).
 */
#pragma once

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "commit/manifest.h"
#include "file/names.h"
#include "format/avro.h"
#include "format/json.h"
#include "random.h"
#include "read/scan.h"
#include "sim/clock.h"
#include "sim/disk.h"
#include "table/follow.h"
#include "table/fsck.h"
#include "table/make.h"
#include "table/scenario.h"
#include "table/table.h"

#define BED_TABLE  "db.t"
#define BED_ROOT   "db.db/t"
#define BED_SOURCE "src"

#ifndef BED_SCALE
#define BED_SCALE 1 /* a test of larger tables has more memory */
#endif

enum {
    BED_SHORT_SIZE = 1 << 20,
    BED_LONG_SIZE = 2 << 20,
    BED_LEVELS_SIZE = BED_SCALE * (256 << 10),
    BED_TABLE_SIZE = BED_SCALE * (512 << 10),
    BED_MEMTABLE_SIZE = BED_SCALE * (512 << 10),
    BED_WINDOW_SIZE = 256 << 10,
    BED_OWN_SIZE = 512 << 10,
    BED_FSCK_SIZE = 2 << 20, /* a manifest takes some 200 bytes, and a snapshot has three */
    BED_DISK_SIZE = 64 << 20,
    BED_BLOCK_SIZE = 4096,
    BED_MERGE_SIZE = 20 * 4096, /* rows that versions are folded into are as long as others */
    BED_RETRIES = 3,
};

/* ---- an engine ---- */

struct bed_engine {
    struct tn_env env;
    struct tn_worker workers[TN_LANE_COUNT];
    struct tn_exec_inline exec;
    _Alignas(max_align_t) unsigned char threads[TN_EXEC_THREADS_SIZE];
    void *contexts[TN_LANE_COUNT];
    struct tn_heap levels;
    struct tn_arena table;
    struct tn_arena own; /* the test's, for reading */
    struct sim_clock clock;
    size_t marks[TN_LANE_COUNT];
    unsigned char *memory; /* one block for all parts */
    unsigned char *window;
    bool levels_made;
};

static __attribute__((unused, noinline)) void bed_libraries(void)
{
    static struct tn_heap json;
    static struct tn_heap avro;
    static bool done;
    if (!done) {
        tn_heap_init(&json, malloc(4 << 20), 4 << 20, true);
        tn_heap_init(&avro, malloc(4 << 20), 4 << 20, true);
        tn_json_use_heap(&json);
        tn_avro_use_heap(&avro);
        done = true;
    }
}

static __attribute__((unused, noinline)) void bed_engine_make(struct bed_engine *engine)
{
    static const size_t lane_sizes[TN_LANE_COUNT] = {BED_SHORT_SIZE, BED_LONG_SIZE};
    bed_libraries();
    *engine = (struct bed_engine){0};
    unsigned char *at = malloc(BED_SHORT_SIZE + BED_LONG_SIZE + BED_LEVELS_SIZE + BED_TABLE_SIZE +
                               BED_MEMTABLE_SIZE + BED_WINDOW_SIZE + BED_OWN_SIZE);
    CHECK(at != NULL);
    engine->memory = at;
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        struct tn_err err;
        tn_arena_init(&engine->workers[lane].arena, at, lane_sizes[lane]);
        tn_rc rc = tn_codec_init(&engine->workers[lane].codec, 1, BED_BLOCK_SIZE,
                                 &engine->workers[lane].arena, &err);
        CHECK_OK(rc, err);
        rc = tn_plan_cache_make(&engine->workers[lane].arena, &engine->workers[lane].plans, &err);
        CHECK_OK(rc, err);
        engine->marks[lane] = tn_arena_mark(&engine->workers[lane].arena);
        at += lane_sizes[lane];
    }
    engine->env.memtable = at;
    engine->env.memtable_size = BED_MEMTABLE_SIZE;
    at += BED_MEMTABLE_SIZE;
    tn_arena_init(&engine->table, at, BED_TABLE_SIZE);
    at += BED_TABLE_SIZE;
    tn_arena_init(&engine->own, at, BED_OWN_SIZE);
    at += BED_OWN_SIZE;
    engine->window = at;
}

static __attribute__((unused, noinline)) void bed_engine_free(struct bed_engine *engine)
{
    if (engine->levels_made) {
        tn_heap_deinit(&engine->levels);
    }
    free(engine->memory);
}

/* run_tests, with the engines made before and freed behind. */
static __attribute__((unused)) int bed_run_tests(int argc, char **argv, const struct test *tests,
                                                 size_t test_count, struct bed_engine *engines,
                                                 size_t engine_count)
{
    for (size_t i = 0; i < engine_count; i++) {
        bed_engine_make(&engines[i]);
    }
    int code = run_tests(argc, argv, tests, test_count);
    for (size_t i = 0; i < engine_count; i++) {
        bed_engine_free(&engines[i]);
    }
    return code;
}

/* A process that starts: on this disk, with nothing in memory. `clock` NULL: the engine's own, with
 * the seed. */
static __attribute__((unused, noinline)) void
bed_engine_begin(struct bed_engine *engine, struct tn_io *io, struct tn_clock *clock, uint64_t seed)
{
    sim_clock_init(&engine->clock, seed);
    clock = clock ? clock : &engine->clock.clock;
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        struct tn_worker *worker = &engine->workers[lane];
        tn_arena_reset(&worker->arena, engine->marks[lane]);
        worker->io = io;
        worker->clock = clock;
        engine->contexts[lane] = worker;
        engine->env.workers[lane] = worker;
    }
    if (engine->levels_made) {
        tn_heap_deinit(&engine->levels);
    }
    tn_heap_init(&engine->levels, engine->window + BED_WINDOW_SIZE, BED_LEVELS_SIZE, true);
    engine->levels_made = true;
    tn_arena_reset(&engine->table, 0);
    tn_arena_reset(&engine->own, 0);
    engine->env.io = io;
    engine->env.clock = clock;
    engine->env.levels = &engine->levels;
    engine->env.arena = &engine->table;
    engine->env.block_size = BED_BLOCK_SIZE;
    engine->env.row_size_max = 4096;
    engine->env.merge_size = BED_MERGE_SIZE;
}

static __attribute__((unused, noinline)) void bed_engine_start(struct bed_engine *engine,
                                                               struct tn_io *io, uint64_t seed)
{
    bed_engine_begin(engine, io, NULL, seed);
    tn_exec_inline_open(&engine->exec, engine->contexts);
    engine->env.exec = &engine->exec.exec;
}

/* The same with a thread a lane, on the system's clock; ends with bed_engine_stop. */
static __attribute__((unused, noinline)) void bed_engine_start_threads(struct bed_engine *engine,
                                                                       struct tn_io *io)
{
    struct tn_err err;
    bed_engine_begin(engine, io, &tn_clock_system, 0);
    tn_rc rc = tn_exec_threads_open(engine->threads, engine->contexts, &engine->env.exec, &err);
    CHECK_OK(rc, err);
}

static __attribute__((unused, noinline)) void bed_engine_stop(struct bed_engine *engine)
{
    engine->env.exec->vtable->close(engine->env.exec);
}

static inline tn_rc bed_no_sync(struct tn_io *io, const char *const *paths, uint32_t count,
                                struct tn_err *err)
{
    (void)io;
    (void)paths;
    (void)count;
    (void)err;
    return TN_OK;
}

/* Real files without barriers: for tests that are about something else and make many commits. */
static __attribute__((unused, noinline)) void bed_open_files(struct tn_io_posix *posix,
                                                             const char *root)
{
    static struct tn_io_vtable vtable;
    struct tn_err err;
    tn_rc rc = tn_io_posix_open(posix, root, &err);
    CHECK_OK(rc, err);
    if (!vtable.sync) {
        vtable = *posix->io.vtable;
        vtable.sync = bed_no_sync;
    }
    posix->io.vtable = &vtable;
}

/* ---- a table ---- */

/* The table's folder with its schema, durable: what `create` leaves. */
static __attribute__((unused, noinline)) void
bed_create(struct bed_engine *engine, struct tn_io *io, const struct bed_scenario *s)
{
    struct tn_err err;
    struct tn_schema schema;
    struct tn_buf text;
    bed_engine_start(engine, io, s->seed);
    tn_rc rc = tn_schema_from_user(tn_bytes_of(s->schema), &engine->own, &schema, &err);
    CHECK_OK(rc, err);
    tn_buf_init(&text, tn_arena_take(&engine->own, 8192), 8192);
    tn_schema_encode(&schema, &text);
    CHECK(text.data != NULL && !text.overflow);
    rc = io->vtable->make_dir(io, BED_ROOT "/schema/", &err);
    CHECK_OK(rc, err);
    rc = tn_io_write_new(io, BED_ROOT "/schema/schema-0", tn_buf_bytes(&text), &err);
    CHECK_OK(rc, err);
    const char *paths[] = {BED_ROOT "/schema/schema-0", BED_ROOT "/schema/"};
    rc = io->vtable->sync(io, paths, 2, &err);
    CHECK_OK(rc, err);
}

/* One that a program makes, with a schema as it is said to it. */
static __attribute__((unused, noinline)) void bed_make_table(struct bed_engine *engine,
                                                             const char *name, const char *json)
{
    struct tn_err err;
    struct tn_schema schema;
    struct tn_options options;
    size_t own = tn_arena_mark(&engine->own);
    size_t table = tn_arena_mark(&engine->table);
    CHECK_OK(tn_schema_from_user(tn_bytes_of(json), &engine->own, &schema, &err), err);
    CHECK_OK(tn_make_table(&engine->env, name, &schema, &options, &err), err);
    tn_arena_reset(&engine->own, own);
    tn_arena_reset(&engine->table, table);
}

/* Once there is room for it. */
static __attribute__((unused, noinline)) tn_rc
bed_put_row(struct tn_table *table, struct tn_row row, enum tn_row_kind kind, struct tn_err *err)
{
    tn_rc rc;
    while ((rc = tn_table_put(table, row, kind, err)) == TN_AGAIN) {
        rc = tn_table_turn(table, true, err);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_put_values(struct tn_table *table,
                                                              const struct tn_value *values,
                                                              enum tn_row_kind kind,
                                                              struct tn_err *err)
{
    unsigned char packed[2 * BED_VALUE_MAX + 200];
    const struct tn_row_layout *layout = tn_table_layout(table);
    CHECK(tn_row_packed_size(layout, values) <= sizeof packed);
    struct tn_row row = {packed, tn_row_pack(layout, values, packed)};
    return bed_put_row(table, row, kind, err);
}

/* ---- reading: NULL, or what is wrong ---- */

/* What somebody was told. */
struct bed_told {
    uint32_t rows; /* the first so many are durable */
    int64_t id;    /* so is this snapshot */
    int64_t round; /* of it */
};

static __attribute__((unused, noinline)) bool bed_row_is(const struct bed_row *want,
                                                         const struct tn_value *values)
{
    char text[BED_VALUE_MAX];
    return values[0].as.i64 == want->partition && values[2].null == want->sequence_null &&
           (want->sequence_null || values[2].as.i64 == want->sequence) &&
           values[3].null == want->value_null &&
           (want->value_null || tn_bytes_equal(values[3].as.bytes, bed_text(want->value, text)));
}

static __attribute__((unused, noinline)) const char *
bed_same_row(const struct bed_scenario *s, const struct tn_row_layout *layout, struct tn_row row,
             struct bed_state *state)
{
    struct tn_value values[4];
    for (uint32_t i = 0; i < 4; i++) {
        tn_row_get(layout, row, i, &values[i]);
    }
    if (values[1].as.i64 < 0 || values[1].as.i64 >= BED_ROWS_MAX) {
        return BED_PROBLEM("a row of key %" PRId64, values[1].as.i64);
    }
    uint32_t slot = bed_slot(s, values[1].as.i64, (int32_t)values[0].as.i64);
    if (!state->present[slot]) {
        return BED_PROBLEM("key %" PRId64 " is there, once too often or at all", values[1].as.i64);
    }
    if (!bed_row_is(&state->rows[slot], values)) {
        return BED_PROBLEM("key %" PRId64 " has another row", values[1].as.i64);
    }
    state->present[slot] = false; /* seen */
    return NULL;
}

static __attribute__((unused, noinline)) const char *
bed_scan_rows(const struct bed_scenario *s, struct tn_scan *scan, struct bed_state *state)
{
    struct tn_kv kv;
    struct tn_err err;
    tn_rc rc;
    while ((rc = tn_scan_next(scan, &kv, &err)) == TN_OK) {
        const char *problem = bed_same_row(s, &scan->projection.layout, kv.row, state);
        if (problem) {
            return problem;
        }
    }
    if (rc != TN_ABSENT) {
        return BED_PROBLEM("scan: %s", err.text);
    }
    for (uint32_t slot = 0; slot < BED_SLOTS; slot++) {
        if (state->present[slot]) {
            return BED_PROBLEM("key %u of partition %u is lost", slot % BED_ROWS_MAX,
                               slot / BED_ROWS_MAX);
        }
    }
    return NULL;
}

struct bed_reader {
    struct tn_schemas schemas;
    const struct tn_schema *schema;
    struct tn_options options;
};

/* Of first-row a batch read shows only what was compacted; a follower begins with all. */
static inline bool bed_any_file(const void *user, const struct tn_entry *entry)
{
    (void)user;
    (void)entry;
    return true;
}

static __attribute__((unused, noinline)) const char *
bed_read_snapshot(struct bed_engine *engine, struct bed_reader *reader,
                  const struct tn_snapshot *snapshot, const struct bed_scenario *s,
                  uint32_t position)
{
    static struct bed_state state;
    static struct tn_scan scan;
    struct tn_err err;
    struct tn_plan_filter filter = {bed_any_file, NULL, true};
    struct tn_scan_spec spec = {.root = BED_ROOT,
                                .snapshot = snapshot,
                                .schema = reader->schema,
                                .options = &reader->options,
                                .schemas = &reader->schemas,
                                .filter = &filter};
    bed_fold(s, position, &state);
    tn_rc rc = tn_scan_open(&scan, &spec, engine->window, BED_WINDOW_SIZE, &engine->own,
                            &engine->workers[TN_LANE_LONG], &err);
    if (rc != TN_OK) {
        return BED_PROBLEM("scan: %s", err.text);
    }
    const char *problem = bed_scan_rows(s, &scan, &state);
    tn_scan_close(&scan);
    tn_arena_reset(&engine->workers[TN_LANE_LONG].arena, engine->marks[TN_LANE_LONG]);
    return problem;
}

/* 0: not a snapshot of ours. */
static __attribute__((unused, noinline)) int64_t bed_round_of(const struct tn_snapshot *snapshot)
{
    const struct tn_json_map *map = &snapshot->properties;
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].key, TN_ROUND_PROPERTY) == 0) {
            return strtoll(map->pairs[i].value, NULL, 10);
        }
    }
    return 0;
}

static __attribute__((unused, noinline)) bool bed_has_position(const struct tn_snapshot *snapshot)
{
    const struct tn_json_map *map = &snapshot->properties;
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].key, TN_POSITION_PROPERTY BED_SOURCE) == 0) {
            return true;
        }
    }
    return false;
}

static __attribute__((unused, noinline)) const char *
bed_position_of(const struct tn_snapshot *snapshot, const struct bed_scenario *s,
                uint32_t *position)
{
    const struct tn_json_map *map = &snapshot->properties;
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].key, TN_POSITION_PROPERTY BED_SOURCE) == 0) {
            *position = (uint32_t)strtoul(map->pairs[i].value, NULL, 10);
            return bed_is_cut(s, *position)
                       ? NULL
                       : BED_PROBLEM("snapshot %" PRId64 ": position %u is no cut", snapshot->id,
                                     *position);
        }
    }
    return BED_PROBLEM("snapshot %" PRId64 " has no position", snapshot->id);
}

static __attribute__((unused, noinline)) const char *bed_read_open(struct bed_engine *engine,
                                                                   struct bed_reader *reader)
{
    struct tn_err err;
    tn_schemas_init(&reader->schemas, engine->env.io, BED_ROOT, &engine->own);
    tn_rc rc = tn_schemas_newest(&reader->schemas, &reader->schema, &err);
    if (rc == TN_OK) {
        rc = tn_options_read(reader->schema, TN_OPTIONS_READ, &engine->own, &reader->options, &err);
    }
    return rc == TN_OK ? NULL : BED_PROBLEM("schema: %s", err.text);
}

/* A table that is looked at: whether each snapshot reads as its position says, and each changelog.
 */
struct bed_look {
    struct bed_engine *engine;
    const struct bed_scenario *scenario;
    struct bed_reader reader;
    struct bed_follower follower;
    int64_t first;
    int64_t last;
    bool told;    /* nothing is untold behind the last snapshot */
    bool due;     /* a round was compacted that tells all, and no rows came since */
    bool foreign; /* snapshots of others, without positions, lie between */
    uint32_t position;
    bool placed; /* the position is known: not behind one of others that expired */
    int64_t round;
    size_t mark; /* of engine->own, before what a snapshot takes */
};

static __attribute__((unused, noinline)) void bed_look_begin(struct bed_look *look)
{
    struct bed_engine *engine = look->engine;
    struct bed_follower *f = &look->follower;
    bed_follow_begin(f, look->scenario);
    f->scan = (struct tn_scan_spec){.root = BED_ROOT,
                                    .schema = look->reader.schema,
                                    .options = &look->reader.options,
                                    .schemas = &look->reader.schemas};
    f->worker = &engine->workers[TN_LANE_LONG];
    f->own = &engine->own;
    f->window = engine->window;
    f->window_size = BED_WINDOW_SIZE;
    look->position = 0;
    look->placed = false;
    look->due = false;
    look->mark = tn_arena_mark(&engine->own);
}

/* Whether rows come next. Where memory is short, what a round tells comes in some snapshots. */
static __attribute__((unused, noinline)) bool bed_rows_follow(const struct bed_look *look,
                                                              int64_t id)
{
    struct bed_engine *engine = look->engine;
    struct tn_snapshot snapshot;
    struct tn_err err;
    return id < look->last &&
           tn_snapshot_read(engine->env.io, BED_ROOT, id + 1, &engine->own, &snapshot, &err) ==
               TN_OK &&
           strcmp(snapshot.commit_kind, "APPEND") == 0;
}

static __attribute__((unused, noinline)) const char *bed_look_at(struct bed_look *look, int64_t id)
{
    const struct bed_scenario *s = look->scenario;
    struct bed_engine *engine = look->engine;
    struct tn_err err;
    struct tn_snapshot snapshot;
    uint32_t before = look->position;
    const char *problem = NULL;
    tn_arena_reset(&engine->own, look->mark);
    tn_rc rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, &engine->own, &snapshot, &err);
    if (rc != TN_OK) {
        return BED_PROBLEM("%s", err.text);
    }
    if (!look->foreign || bed_has_position(&snapshot)) {
        problem = bed_position_of(&snapshot, s, &look->position);
        look->placed = true;
    }
    if (!look->placed) {
        return NULL;
    }
    if (!problem && look->position < before) {
        problem = BED_PROBLEM("position %u after %u", look->position, before);
    }
    if (!problem) {
        problem = bed_read_snapshot(engine, &look->reader, &snapshot, s, look->position);
    }
    if (!problem && s->producer != TN_CHANGELOG_NONE) {
        problem = bed_follow(&look->follower, &snapshot, before, look->position);
    }
    look->round = bed_round_of(&snapshot);
    look->due = s->full_every > 0 && strcmp(snapshot.commit_kind, "COMPACT") == 0 &&
                (look->due || bed_tells(s, look->round));
    bool told = (look->due && bed_rows_follow(look, id)) || (look->told && id == look->last);
    if (!problem && told && s->producer >= TN_CHANGELOG_FULL_COMPACTION) {
        problem = bed_follow_end(&look->follower, look->position);
    }
    return problem;
}

static __attribute__((unused, noinline)) const char *bed_look_range(struct bed_look *look)
{
    struct bed_engine *engine = look->engine;
    struct tn_arena *own = &engine->own;
    struct tn_err err;
    tn_arena_reset(own, 0);
    look->first = 1;
    look->last = 0;
    const char *problem = bed_read_open(engine, &look->reader);
    if (problem) {
        return problem;
    }
    tn_rc rc = tn_snapshot_latest(engine->env.io, BED_ROOT, own, &look->last, &err);
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(engine->env.io, BED_ROOT, own, &look->first, &err);
    }
    uint64_t size;
    if (rc == TN_OK && look->first > 1 &&
        engine->env.io->vtable->stat(engine->env.io, BED_ROOT "/snapshot/EARLIEST", &size, &err) !=
            TN_OK) {
        return BED_PROBLEM("snapshots before %" PRId64 " are lost: who expires them notes it first",
                           look->first);
    }
    return rc == TN_OK || rc == TN_ABSENT ? NULL : BED_PROBLEM("snapshots: %s", err.text);
}

/* Every snapshot from the earliest to the newest. */
static __attribute__((unused, noinline)) const char *bed_look(struct bed_look *look)
{
    const char *problem = bed_look_range(look);
    if (problem) {
        return problem;
    }
    bed_look_begin(look);
    for (int64_t id = look->first; !problem && id <= look->last; id++) {
        problem = bed_look_at(look, id);
        if (problem) {
            static char text[700];
            (void)snprintf(text, sizeof text,
                           "snapshot %" PRId64 " of %" PRId64 "..%" PRId64 ": %s", id, look->first,
                           look->last, problem);
            problem = text;
        }
    }
    return problem;
}

static __attribute__((unused, noinline)) const char *bed_read_all(struct bed_engine *engine,
                                                                  const struct bed_scenario *s,
                                                                  struct bed_told *found, bool told)
{
    static struct bed_look look;
    look.engine = engine;
    look.scenario = s;
    look.told = told;
    look.round = 0;
    const char *problem = bed_look(&look);
    *found = (struct bed_told){look.position, look.last, look.round};
    return problem;
}

/* ---- writing ---- */

struct bed_writer {
    struct bed_engine *engine;
    const struct bed_scenario *scenario;
    uint64_t random;
    struct bed_told told;
    uint32_t recovered; /* rows that were there at the start */
    uint32_t stop;      /* rows that are there when it ends; 0: all */
    int64_t commit_id;  /* of the one commit that it names; 0: it names none */
    uint32_t retries;   /* errors that are followed by another turn */
    uint32_t errors;
    struct tn_err err; /* the last */
    struct tn_table *table;
    struct tn_table_counts counts;
    const char *who; /* of the lock; NULL: none */
    struct sim_disk
        *full_disk; /* gets room after the first FULL, and the program goes on; or NULL */
};

static __attribute__((unused, noinline)) void bed_tell(struct bed_writer *w, uint64_t rows,
                                                       int64_t id)
{
    w->told.rows = rows > w->told.rows ? (uint32_t)rows : w->told.rows;
    w->told.id = id > w->told.id ? id : w->told.id;
}

static __attribute__((unused, noinline)) void bed_committed(void *user,
                                                            const struct tn_committed *committed)
{
    bed_tell(user, committed->row_count, committed->latest_id);
}

/* An error is noted; OK as long as another try is wanted. */
static __attribute__((unused, noinline)) tn_rc bed_note(struct bed_writer *w, tn_rc rc)
{
    if (rc != TN_OK) {
        w->errors++;
        if (rc == TN_FULL && w->full_disk) {
            sim_disk_capacity(w->full_disk, UINT64_MAX);
            w->full_disk = NULL;
            return TN_OK;
        }
        if (w->retries > 0) {
            w->retries--;
            return TN_OK;
        }
    }
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_turn(struct bed_writer *w, bool wait)
{
    return bed_note(w, tn_table_turn(w->table, wait, &w->err));
}

static __attribute__((unused, noinline)) tn_rc bed_put(struct bed_writer *w,
                                                       const struct bed_row *row)
{
    const struct tn_row_layout *layout = tn_table_layout(w->table);
    char text[BED_VALUE_MAX];
    unsigned char packed[BED_VALUE_MAX + 64];
    struct tn_value values[4] = {{.as.i64 = row->partition},
                                 {.as.i64 = row->key},
                                 {.null = row->sequence_null, .as.i64 = row->sequence},
                                 {.null = row->value_null, .as.bytes = bed_text(row->value, text)}};
    CHECK(tn_row_packed_size(layout, values) <= sizeof packed);
    struct tn_row packed_row = {packed, tn_row_pack(layout, values, packed)};
    enum tn_row_kind kind = row->deletes ? TN_ROW_DELETE : TN_ROW_INSERT;
    tn_rc rc;
    while ((rc = tn_table_put(w->table, packed_row, kind, &w->err)) == TN_AGAIN) {
        rc = bed_turn(w, true);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_cut(struct bed_writer *w, uint32_t rows)
{
    char position[16];
    (void)snprintf(position, sizeof position, "%u", rows);
    tn_rc rc = tn_table_position(w->table, BED_SOURCE, position, &w->err);
    while (rc == TN_OK && (rc = tn_table_cut(w->table, rows, &w->err)) == TN_AGAIN) {
        rc = bed_turn(w, true);
    }
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_finish(struct bed_writer *w, uint32_t rows)
{
    tn_rc rc;
    do {
        rc = tn_table_finish(w->table, rows, &w->err);
    } while (rc != TN_OK && bed_note(w, rc) == TN_OK);
    return rc;
}

/* Rows from `recovered` on. Between two of them there may be turns, so that commits and compactions
 * meet rows that came later. */
static __attribute__((unused, noinline)) tn_rc bed_write_rows(struct bed_writer *w)
{
    const struct bed_scenario *s = w->scenario;
    uint32_t count = w->stop > 0 ? w->stop : s->row_count;
    tn_rc rc = TN_OK;
    for (uint32_t i = w->recovered; rc == TN_OK && i < count; i++) {
        rc = bed_put(w, &s->rows[i]);
        for (uint32_t turns = random_below(&w->random, 4); rc == TN_OK && turns > 2; turns--) {
            rc = bed_turn(w, true);
        }
        if (rc == TN_OK && bed_is_cut(s, i + 1)) {
            rc = bed_cut(w, i + 1);
            for (uint32_t turns = random_below(&w->random, 12); rc == TN_OK && turns > 0; turns--) {
                rc = bed_turn(w, true);
            }
        }
    }
    return rc == TN_OK ? bed_finish(w, count > w->recovered ? count : w->recovered) : rc;
}

enum bed_how { BED_WRITES, BED_COMPACTS, BED_COMPACTS_ALL };

static __attribute__((unused, noinline)) tn_rc bed_open_as(struct bed_writer *w, enum bed_how how)
{
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .who = w->who,
                                 .user = w->commit_id > 0 ? "job" : NULL,
                                 .identifier = w->commit_id > 0 ? w->commit_id : -1,
                                 .compact = true,
                                 .dedicated = how != BED_WRITES,
                                 .full = how == BED_COMPACTS_ALL,
                                 .committed = bed_committed,
                                 .user_data = w};
    tn_rc rc = tn_table_open(&w->engine->env, &spec, &w->table, &w->err);
    if (rc == TN_OK) {
        const char *position = tn_table_position_of(w->table, BED_SOURCE);
        w->recovered = position ? (uint32_t)strtoul(position, NULL, 10) : 0;
        bed_tell(w, w->recovered, tn_table_recovered(w->table)->latest_id);
    }
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_open(struct bed_writer *w)
{
    return bed_open_as(w, BED_WRITES);
}

/* A writer that starts: what one before it left untold comes first. */
static __attribute__((unused, noinline)) tn_rc bed_tell_untold(struct bed_writer *w)
{
    tn_rc rc;
    do {
        rc = tn_table_tell(w->table, &w->err);
    } while (rc != TN_OK && bed_note(w, rc) == TN_OK);
    return rc;
}

/* What the last call said stays in `err`. */
static __attribute__((unused, noinline)) void bed_close(struct bed_writer *w)
{
    struct tn_err kept = w->err;
    w->counts = *tn_table_counts(w->table);
    tn_table_close(w->table);
    w->err = kept;
}

static __attribute__((unused, noinline)) tn_rc bed_open_again(struct bed_writer *w,
                                                              enum bed_how how)
{
    tn_rc rc;
    do {
        rc = bed_open_as(w, how);
    } while (rc != TN_OK && bed_note(w, rc) == TN_OK);
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_write_to(struct bed_writer *w, uint32_t stop)
{
    w->stop = stop;
    tn_rc rc = bed_open_again(w, BED_WRITES);
    if (rc == TN_OK) {
        rc = bed_tell_untold(w);
        rc = rc == TN_OK ? bed_write_rows(w) : rc;
        bed_close(w);
    }
    return rc;
}

/* Rows that may have been committed with this id: then they are put again, and nothing changes. */
static __attribute__((unused, noinline)) tn_rc bed_write_named(struct bed_writer *w, uint32_t cut)
{
    const struct bed_scenario *s = w->scenario;
    w->commit_id = (int64_t)cut + 1;
    w->stop = s->cuts[cut];
    tn_rc open = bed_open_again(w, BED_WRITES);
    tn_rc rc = open;
    if (rc == TN_OK && w->recovered <= w->stop) {
        w->recovered = cut > 0 ? s->cuts[cut - 1] : 0;
        rc = bed_tell_untold(w);
        rc = rc == TN_OK ? bed_write_rows(w) : rc;
    }
    if (open == TN_OK) {
        bed_close(w);
    }
    w->commit_id = 0;
    return rc;
}

/* A process a commit. */
static __attribute__((unused, noinline)) tn_rc bed_write_by_starts(struct bed_writer *w)
{
    const struct bed_scenario *s = w->scenario;
    tn_rc rc = TN_OK;
    for (uint32_t cut = 0; rc == TN_OK && cut < s->cut_count; cut++) {
        rc = s->lives == BED_NAMES ? bed_write_named(w, cut) : bed_write_to(w, s->cuts[cut]);
    }
    return rc;
}

static __attribute__((unused, noinline)) tn_rc bed_touch(struct bed_writer *w, int32_t partition,
                                                         int32_t bucket)
{
    unsigned char bytes[64];
    struct tn_buf buf;
    struct tn_type type = {.kind = TN_TYPE_INT};
    struct tn_value value = {.as.i64 = partition};
    tn_buf_init(&buf, bytes, sizeof bytes);
    tn_values_to_binary(&type, &value, w->scenario->partitioned ? 1 : 0, &buf);
    tn_rc rc;
    while ((rc = tn_table_touch(w->table, tn_buf_bytes(&buf), bucket, &w->err)) == TN_AGAIN) {
        rc = bed_turn(w, true);
        if (rc != TN_OK) {
            return rc;
        }
    }
    return rc;
}

/* A program that compacts every bucket that the scenario could have, and writes nothing. */
static __attribute__((unused, noinline)) tn_rc bed_compact(struct bed_writer *w, enum bed_how how)
{
    const struct bed_scenario *s = w->scenario;
    tn_rc rc = bed_open_again(w, how);
    if (rc != TN_OK) {
        return rc;
    }
    for (int32_t p = 0; rc == TN_OK && p < (s->partitioned ? 2 : 1); p++) {
        for (int32_t bucket = 0; rc == TN_OK && bucket < s->buckets; bucket++) {
            rc = bed_touch(w, p, bucket);
        }
    }
    if (rc == TN_OK) {
        rc = bed_finish(w, w->recovered);
    }
    bed_close(w);
    return rc;
}

/* A program: opens, writes all rows that aren't there, closes. Where writers don't compact, others
 * do, in the middle and at the end. */
static __attribute__((unused, noinline)) tn_rc bed_write(struct bed_writer *w)
{
    const struct bed_scenario *s = w->scenario;
    w->random = s->seed ^ 77;
    if (!s->write_only && s->lives != BED_LIVES_ON) {
        return bed_write_by_starts(w);
    }
    if (!s->write_only) {
        return bed_write_to(w, 0);
    }
    tn_rc rc = bed_write_to(w, s->cuts[s->cut_count / 2]);
    if (rc == TN_OK) {
        rc = bed_compact(w, BED_COMPACTS);
    }
    if (rc == TN_OK) {
        rc = bed_write_to(w, 0);
    }
    return rc == TN_OK ? bed_compact(w, BED_COMPACTS) : rc;
}

/* A start finds the positions of the newest snapshot, and the mark that there are some. */
static __attribute__((unused, noinline)) const char *
bed_check_start(struct bed_engine *engine, const struct bed_scenario *s, uint32_t position)
{
    struct bed_writer w = {.engine = engine, .scenario = s, .who = "a test"};
    tn_rc rc = bed_open(&w);
    if (rc != TN_OK) {
        return BED_PROBLEM("open: %s", w.err.text);
    }
    bool marked = tn_table_recovered(w.table)->positioned;
    bed_close(&w);
    if (w.recovered != position) {
        return BED_PROBLEM("recovered position %u, the newest snapshot says %u", w.recovered,
                           position);
    }
    return marked || position == 0 ? NULL
                                   : BED_PROBLEM("positions are in use, and it is forgotten");
}

/* Of the commit behind so many rows. */
static __attribute__((unused, noinline)) int64_t bed_next_id(const struct bed_scenario *s,
                                                             uint32_t rows)
{
    int64_t id = 1;
    for (uint32_t cut = 0; cut < s->cut_count && s->cuts[cut] <= rows; cut++) {
        id++;
    }
    return id;
}

/* A writer that has no row starts where `left` was the newest: it tells what was left. The commit
 * that it names isn't made by that. */
static __attribute__((unused, noinline)) const char *
bed_check_tells(struct bed_engine *engine, const struct bed_scenario *s, struct bed_told left)
{
    struct bed_writer w = {.engine = engine, .scenario = s, .who = "a test"};
    struct bed_told found;
    w.commit_id = s->lives == BED_NAMES ? bed_next_id(s, left.rows) : 0;
    tn_rc rc = bed_open_again(&w, BED_WRITES);
    if (rc != TN_OK) {
        return BED_PROBLEM("open: %s", w.err.text);
    }
    rc = bed_tell_untold(&w);
    bed_close(&w);
    if (rc != TN_OK) {
        return BED_PROBLEM("tell: %s", w.err.text);
    }
    const char *problem = bed_read_all(engine, s, &found, bed_tells(s, left.round));
    return problem || found.rows == left.rows ? problem : BED_PROBLEM("a start took rows away");
}

static __attribute__((unused, noinline)) const char *
bed_go_on(struct bed_engine *engine, const struct bed_scenario *s, struct bed_told left)
{
    struct bed_writer w = {.engine = engine, .scenario = s, .who = "a test"};
    struct bed_told found;
    const char *problem = bed_check_tells(engine, s, left);
    if (problem) {
        return problem;
    }
    tn_rc rc = bed_write(&w);
    if (rc == TN_OK) {
        problem = bed_read_all(engine, s, &found, s->full_every == 0 && bed_tells(s, 0));
    }
    if (rc == TN_OK && !problem && s->keyed) {
        rc = bed_compact(&w, BED_COMPACTS_ALL);
    }
    if (problem || rc != TN_OK) {
        return problem ? problem : BED_PROBLEM("going on: %s", w.err.text);
    }
    problem = bed_read_all(engine, s, &found, s->keyed);
    return problem || found.rows == s->row_count
               ? problem
               : BED_PROBLEM("went on to %u of %u rows", found.rows, s->row_count);
}

static __attribute__((unused, noinline)) tn_rc bed_note_finding(void *user, enum tn_fsck_kind kind,
                                                                const char *file, const char *text,
                                                                struct tn_err *err)
{
    const char **problem = user;
    (void)err;
    if (kind == TN_FSCK_PROBLEM && !*problem) {
        *problem = BED_PROBLEM("fsck: %s: %s", file, text);
    }
    return TN_OK;
}

/* Everything else that a table says of itself. */
static __attribute__((unused, noinline)) const char *bed_fsck_of(struct bed_engine *engine,
                                                                 const char *root)
{
    static _Alignas(max_align_t) unsigned char memory[BED_FSCK_SIZE];
    struct tn_heap heap;
    struct tn_err err;
    struct tn_fsck_result result;
    const char *problem = NULL;
    struct tn_fsck_spec spec = {.root = root,
                                .worker = &engine->workers[TN_LANE_LONG],
                                .arena = &engine->own,
                                .heap = &heap,
                                .each = bed_note_finding,
                                .user = &problem};
    tn_arena_reset(&engine->own, 0);
    tn_heap_init(&heap, memory, sizeof memory, false);
    tn_rc rc = tn_fsck(&spec, &result, &err);
    tn_heap_deinit(&heap);
    if (problem) {
        return problem;
    }
    return rc == TN_OK && result.problems == 0 && result.unchecked == 0
               ? NULL
               : BED_PROBLEM("fsck: %s", rc == TN_OK ? "something wasn't checked" : err.text);
}

static __attribute__((unused, noinline)) const char *bed_fsck(struct bed_engine *engine)
{
    return bed_fsck_of(engine, BED_ROOT);
}

/* What is on `disk` after a start: whole, with at least what was told; and, if asked for, the rest
 * of the rows can be written on top. */
static __attribute__((unused, noinline)) const char *
bed_check(struct bed_engine *engine, struct sim_disk *disk, const struct bed_scenario *s,
          struct bed_told told, uint64_t seed, bool goes_on)
{
    struct bed_told found;
    bed_engine_start(engine, &disk->io, seed);
    const char *problem = bed_read_all(engine, s, &found, false);
    if (!problem && (found.rows < told.rows || found.id < told.id)) {
        problem = BED_PROBLEM("told were %u rows and snapshot %" PRId64
                              ", there are %u and snapshot %" PRId64,
                              told.rows, told.id, found.rows, found.id);
    }
    if (!problem) {
        problem = bed_check_start(engine, s, found.rows);
    }
    if (!problem) {
        problem = bed_fsck(engine);
    }
    return problem || !goes_on ? problem : bed_go_on(engine, s, found);
}
