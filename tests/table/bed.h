/* bed: what the tests of table/ stand on: an engine in small memory that is used again and again, a
 * tiny random table (a scenario, fixed by its seed), a program that writes it, a model of what must
 * be there, and a check of a disk against the model.
 *
 *     scenario: rows 0..row_count-1, cuts at some of them; the position "r" says that rows 0..r-1
 *               are in. So a snapshot at position r must hold exactly the fold of rows 0..r-1.
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
#include "table/fsck.h"
#include "table/table.h"

#define BED_TABLE  "db.t"
#define BED_ROOT   "db.db/t"
#define BED_SOURCE "src"

enum {
    BED_SHORT_SIZE = 1 << 20,
    BED_LONG_SIZE = 2 << 20,
    BED_LEVELS_SIZE = 256 << 10,
    BED_TABLE_SIZE = 512 << 10,
    BED_MEMTABLE_SIZE = 512 << 10,
    BED_WINDOW_SIZE = 256 << 10,
    BED_OWN_SIZE = 512 << 10,
    BED_DISK_SIZE = 64 << 20,
    BED_BLOCK_SIZE = 4096,
    BED_MERGE_SIZE = 20 * 4096, /* rows that versions are folded into are as long as others */
    BED_KEYS = 12,
    BED_ROWS_MAX = 1024,
    BED_ROUNDS_MAX = 16,
    BED_VALUE_MAX = 400, /* bytes of a text */
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

/* ---- a scenario ---- */

struct bed_row {
    int32_t key;
    int32_t partition;
    int32_t sequence;
    uint32_t value;
    bool deletes;
};

struct bed_scenario {
    uint64_t seed;
    int32_t buckets;
    bool partitioned;
    bool sequenced;
    bool keyed; /* false: an append table */
    uint32_t row_count;
    uint32_t cut_count;
    uint32_t cuts[BED_ROUNDS_MAX]; /* rows before each; the last is row_count */
    char schema[1536];             /* what the user said */
    struct bed_row rows[BED_ROWS_MAX];
};

static const char bed_schema_format[] =
    "{\"fields\":[{\"name\":\"p\",\"type\":\"INT\"},{\"name\":\"k\",\"type\":\"BIGINT\"},"
    "{\"name\":\"s\",\"type\":\"INT\"},{\"name\":\"v\",\"type\":\"STRING\"}],"
    "\"partitionKeys\":[%s],\"primaryKeys\":[%s],\"options\":{\"file.format\":\"avro\",\"bucket\":"
    "\"%d\",%s%s%s"
    "\"target-file-size\":\"%s\",\"num-sorted-run.compaction-trigger\":\"%d\","
    "\"num-sorted-run.stop-trigger\":\"%d\",\"snapshot.num-retained.min\":\"1\","
    "\"snapshot.num-retained.max\":\"%d\",\"snapshot.expire.limit\":\"%d\","
    "\"manifest.merge-min-count\":\"%d\",\"manifest.target-file-size\":\"%s\","
    "\"manifest.full-compaction-threshold-size\":\"%s\"}}";

static __attribute__((unused, noinline)) void bed_scenario_options(struct bed_scenario *s,
                                                                   uint64_t *random)
{
    const char *keys = s->partitioned ? "\"p\",\"k\"" : "\"k\"";
    int trigger = 1 + (int)random_below(random, 3);
    (void)snprintf(s->schema, sizeof s->schema, bed_schema_format, s->partitioned ? "\"p\"" : "",
                   s->keyed ? keys : "", s->buckets, s->keyed ? "" : "\"bucket-key\":\"k\",",
                   s->sequenced ? "\"sequence.field\":\"s\"," : "",
                   random_below(random, 5) == 0 && s->keyed ? "\"commit.force-compact\":\"true\","
                                                            : "",
                   random_below(random, 2) == 0 ? "2 kb" : "1 mb", trigger,
                   trigger + (int)random_below(random, 3), 1 + (int)random_below(random, 3),
                   1 + (int)random_below(random, 4), 2 + (int)random_below(random, 3),
                   random_below(random, 2) == 0 ? "1 kb" : "8 mb",
                   random_below(random, 2) == 0 ? "1 kb" : "16 mb");
}

/* With a sequence field nothing is deleted: what a late row finds after a delete depends on when it
 * was compacted, in Paimon, too. */
static __attribute__((unused, noinline)) void bed_scenario_init(struct bed_scenario *s,
                                                                uint64_t seed, uint32_t rounds)
{
    uint64_t random = seed;
    *s = (struct bed_scenario){.seed = seed, .cut_count = rounds};
    s->buckets = 1 + (int32_t)random_below(&random, 3);
    s->partitioned = random_below(&random, 3) == 0;
    s->keyed = random_below(&random, 6) != 0;
    s->sequenced = s->keyed && random_below(&random, 3) == 0;
    bed_scenario_options(s, &random);
    uint32_t rows_max = 1 + random_below(&random, 12);
    for (uint32_t r = 0; r < rounds; r++) {
        s->row_count += 1 + random_below(&random, rows_max);
        s->cuts[r] = s->row_count;
    }
    CHECK(rounds <= BED_ROUNDS_MAX && s->row_count <= BED_ROWS_MAX);
    for (uint32_t i = 0; i < s->row_count; i++) {
        struct bed_row *row = &s->rows[i];
        row->key = s->keyed ? (int32_t)random_below(&random, BED_KEYS) : (int32_t)i;
        row->partition = (int32_t)random_below(&random, 2);
        row->sequence = (int32_t)random_below(&random, 50);
        row->value = (uint32_t)random_next(&random);
        row->deletes = s->keyed && !s->sequenced && random_below(&random, 4) == 0;
    }
}

/* The text of a row: its number decides content and length. */
static __attribute__((unused, noinline)) struct tn_bytes bed_text(uint32_t value,
                                                                  char text[BED_VALUE_MAX])
{
    uint64_t random = value;
    uint32_t size = 12 + (value % 4 == 0 ? value / 4 % (BED_VALUE_MAX - 12) : 0);
    for (uint32_t i = 0; i < size; i++) {
        text[i] = (char)('a' + random_below(&random, 26));
    }
    return (struct tn_bytes){(const unsigned char *)text, size};
}

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

/* ---- the model ---- */

enum { BED_SLOTS = 2 * BED_ROWS_MAX };

/* Append tables have a key a row, too: its number. */
struct bed_state {
    bool present[BED_SLOTS];
    struct bed_row rows[BED_SLOTS];
};

static __attribute__((unused, noinline)) uint32_t bed_slot(const struct bed_scenario *s,
                                                           int64_t key, int32_t partition)
{
    CHECK(key >= 0 && key < BED_ROWS_MAX);
    return (uint32_t)key + (s->partitioned && partition ? BED_ROWS_MAX : 0);
}

static __attribute__((unused, noinline)) void bed_fold(const struct bed_scenario *s, uint32_t count,
                                                       struct bed_state *state)
{
    memset(state->present, 0, sizeof state->present);
    for (uint32_t i = 0; i < count; i++) {
        const struct bed_row *row = &s->rows[i];
        uint32_t slot = bed_slot(s, row->key, row->partition);
        bool late =
            s->sequenced && state->present[slot] && row->sequence < state->rows[slot].sequence;
        if (!late) {
            state->present[slot] = !row->deletes;
            state->rows[slot] = *row;
        }
    }
}

static __attribute__((unused, noinline)) bool bed_is_cut(const struct bed_scenario *s, uint32_t row)
{
    for (uint32_t i = 0; i < s->cut_count; i++) {
        if (s->cuts[i] == row) {
            return true;
        }
    }
    return row == 0;
}

/* ---- reading: NULL, or what is wrong ---- */

/* What somebody was told. */
struct bed_told {
    uint32_t rows; /* the first so many are durable */
    int64_t id;    /* so is this snapshot */
};

static char bed_problem[600];

#define BED_PROBLEM(...) \
    ((void)snprintf(bed_problem, sizeof bed_problem, __VA_ARGS__), (const char *)bed_problem)

static __attribute__((unused, noinline)) const char *
bed_same_row(const struct bed_scenario *s, const struct tn_row_layout *layout, struct tn_row row,
             struct bed_state *state)
{
    struct tn_value values[4];
    char text[BED_VALUE_MAX];
    for (uint32_t i = 0; i < 4; i++) {
        tn_row_get(layout, row, i, &values[i]);
    }
    if (values[1].as.i64 < 0 || values[1].as.i64 >= BED_ROWS_MAX) {
        return BED_PROBLEM("a row of key %" PRId64, values[1].as.i64);
    }
    uint32_t slot = bed_slot(s, values[1].as.i64, (int32_t)values[0].as.i64);
    const struct bed_row *want = &state->rows[slot];
    if (!state->present[slot]) {
        return BED_PROBLEM("key %" PRId64 " is there, once too often or at all", values[1].as.i64);
    }
    if (values[0].as.i64 != want->partition || values[2].as.i64 != want->sequence ||
        !tn_bytes_equal(values[3].as.bytes, bed_text(want->value, text))) {
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

static __attribute__((unused, noinline)) const char *
bed_read_snapshot(struct bed_engine *engine, struct bed_reader *reader,
                  const struct tn_snapshot *snapshot, const struct bed_scenario *s,
                  uint32_t position)
{
    static struct bed_state state;
    static struct tn_scan scan;
    struct tn_err err;
    struct tn_scan_spec spec = {.root = BED_ROOT,
                                .snapshot = snapshot,
                                .schema = reader->schema,
                                .options = &reader->options,
                                .schemas = &reader->schemas};
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

/* Every snapshot from the earliest to the newest reads as its position says. */
static __attribute__((unused, noinline)) const char *
bed_read_all(struct bed_engine *engine, const struct bed_scenario *s, struct bed_told *found)
{
    uint32_t *position = &found->rows;
    static struct bed_reader reader;
    struct tn_err err;
    struct tn_arena *own = &engine->own;
    int64_t first;
    int64_t last;
    *found = (struct bed_told){0};
    tn_arena_reset(own, 0);
    const char *problem = bed_read_open(engine, &reader);
    if (problem) {
        return problem;
    }
    tn_rc rc = tn_snapshot_latest(engine->env.io, BED_ROOT, own, &last, &err);
    if (rc == TN_ABSENT) {
        return NULL;
    }
    if (rc == TN_OK) {
        rc = tn_snapshot_earliest(engine->env.io, BED_ROOT, own, &first, &err);
    }
    if (rc != TN_OK) {
        return BED_PROBLEM("snapshots: %s", err.text);
    }
    found->id = last;
    size_t mark = tn_arena_mark(own);
    for (int64_t id = first; id <= last; id++) {
        struct tn_snapshot snapshot;
        uint32_t before = *position;
        tn_arena_reset(own, mark);
        rc = tn_snapshot_read(engine->env.io, BED_ROOT, id, own, &snapshot, &err);
        problem = rc == TN_OK ? bed_position_of(&snapshot, s, position)
                              : BED_PROBLEM("snapshot %" PRId64 ": %s", id, err.text);
        if (!problem && *position < before) {
            problem =
                BED_PROBLEM("snapshot %" PRId64 ": position %u after %u", id, *position, before);
        }
        if (!problem) {
            problem = bed_read_snapshot(engine, &reader, &snapshot, s, *position);
        }
        if (problem) {
            static char text[700];
            (void)snprintf(text, sizeof text,
                           "snapshot %" PRId64 " of %" PRId64 "..%" PRId64 ": %s", id, first, last,
                           problem);
            return text;
        }
    }
    return NULL;
}

/* ---- writing ---- */

struct bed_writer {
    struct bed_engine *engine;
    const struct bed_scenario *scenario;
    uint64_t random;
    struct bed_told told;
    uint32_t recovered; /* rows that were there at the start */
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
                                 {.as.i64 = row->sequence},
                                 {.as.bytes = bed_text(row->value, text)}};
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

static __attribute__((unused, noinline)) tn_rc bed_finish(struct bed_writer *w)
{
    tn_rc rc;
    do {
        rc = tn_table_finish(w->table, w->scenario->row_count, &w->err);
    } while (rc != TN_OK && bed_note(w, rc) == TN_OK);
    return rc;
}

/* Rows from `recovered` on. Between two of them there may be turns, so that commits and compactions
 * meet rows that came later. */
static __attribute__((unused, noinline)) tn_rc bed_write_rows(struct bed_writer *w)
{
    const struct bed_scenario *s = w->scenario;
    tn_rc rc = TN_OK;
    for (uint32_t i = w->recovered; rc == TN_OK && i < s->row_count; i++) {
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
    return rc == TN_OK ? bed_finish(w) : rc;
}

static __attribute__((unused, noinline)) tn_rc bed_open(struct bed_writer *w)
{
    struct tn_table_spec spec = {.name = BED_TABLE,
                                 .who = w->who,
                                 .identifier = -1,
                                 .compact = true,
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

/* What the last call said stays in `err`. */
static __attribute__((unused, noinline)) void bed_close(struct bed_writer *w)
{
    struct tn_err kept = w->err;
    w->counts = *tn_table_counts(w->table);
    tn_table_close(w->table);
    w->err = kept;
}

/* A program: opens, writes all rows that aren't there, closes. */
static __attribute__((unused, noinline)) tn_rc bed_write(struct bed_writer *w)
{
    w->random = w->scenario->seed ^ 77;
    tn_rc rc;
    do {
        rc = bed_open(w);
    } while (rc != TN_OK && bed_note(w, rc) == TN_OK);
    if (rc == TN_OK) {
        rc = bed_write_rows(w);
        bed_close(w);
    }
    return rc;
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

static __attribute__((unused, noinline)) const char *bed_go_on(struct bed_engine *engine,
                                                               const struct bed_scenario *s)
{
    struct bed_writer w = {.engine = engine, .scenario = s, .who = "a test"};
    struct bed_told found;
    tn_rc rc = bed_write(&w);
    if (rc != TN_OK) {
        return BED_PROBLEM("going on: %s", w.err.text);
    }
    const char *problem = bed_read_all(engine, s, &found);
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
static __attribute__((unused, noinline)) const char *bed_fsck(struct bed_engine *engine)
{
    struct tn_heap heap;
    struct tn_err err;
    struct tn_fsck_result result;
    const char *problem = NULL;
    struct tn_fsck_spec spec = {.root = BED_ROOT,
                                .worker = &engine->workers[TN_LANE_LONG],
                                .arena = &engine->own,
                                .heap = &heap,
                                .each = bed_note_finding,
                                .user = &problem};
    tn_arena_reset(&engine->own, 0);
    tn_heap_init(&heap, engine->env.memtable, engine->env.memtable_size, false);
    tn_rc rc = tn_fsck(&spec, &result, &err);
    tn_heap_deinit(&heap);
    if (problem) {
        return problem;
    }
    return rc == TN_OK && result.problems == 0 && result.unchecked == 0
               ? NULL
               : BED_PROBLEM("fsck: %s", rc == TN_OK ? "something wasn't checked" : err.text);
}

/* What is on `disk` after a start: whole, with at least what was told; and, if asked for, the rest
 * of the rows can be written on top. */
static __attribute__((unused, noinline)) const char *
bed_check(struct bed_engine *engine, struct sim_disk *disk, const struct bed_scenario *s,
          struct bed_told told, uint64_t seed, bool goes_on)
{
    struct bed_told found;
    bed_engine_start(engine, &disk->io, seed);
    const char *problem = bed_read_all(engine, s, &found);
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
    return problem || !goes_on ? problem : bed_go_on(engine, s);
}
