/* A daemon without sockets: a keyed table and one without keys, their keepers, intake, journal and
 * jobs, on a simulated disk. Rows are numbered; each is to be in its table once.
 */
#pragma once

#define BED_SCALE 2
#include "../table/bed.h"

#include "app/intake.h"
#include "app/jobs.h"
#include "given.h"
#include "table/census.h"
#include "table/make.h"

enum {
    TABLES = 2,
    ROWS = 3000, /* of a table, at the most */
    PARCEL_SIZE = 4096,
    INPUT_SIZE = 1 << 20,
    LOG_SIZE = 4096,
    TURNS_MAX = 100000,
    DISK_SIZE = 32 << 20,
};

static const char *const names[TABLES] = {"db.a", "db.k"};
static const char *const schemas[TABLES] = {
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"options\":{\"bucket\":\"-1\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"3\",\"write-only\":\"",
};
static const char rest_of_schema[] =
    "\",\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"}}";

static struct bed_engine engine;
static unsigned char *input;

struct world {
    struct sim_disk disk;
    uint64_t random;
    struct tn_arena arena;
    struct tn_log log;
    unsigned char log_memory[LOG_SIZE];
    struct tn_share shares[TABLES];
    struct tn_keeper keepers[TABLES];
    struct tn_config config;
    struct tn_config_table configs[TABLES];
    struct tn_intake intake;
    struct tn_jobs jobs;
    int64_t sent[TABLES]; /* rows, numbered from 0 */
    uint32_t turns;
};

static struct world world;
static uint64_t disk_reserve; /* of worlds that begin */

/* ---- a daemon without sockets ---- */

static void make_tables(struct world *w, const char *write_only)
{
    struct tn_err err;
    bed_engine_start(&engine, &w->disk.io, w->random);
    for (uint32_t t = 0; t < TABLES; t++) {
        char text[512];
        struct tn_schema schema;
        struct tn_options options;
        (void)snprintf(text, sizeof text, "%s%s%s", schemas[t], t == 0 ? "" : write_only,
                       t == 0 ? "" : rest_of_schema);
        CHECK_OK(tn_schema_from_user(tn_bytes_of(text), &engine.own, &schema, &err), err);
        CHECK_OK(tn_make_table(&engine.env, names[t], &schema, &options, &err), err);
    }
    tn_arena_reset(&engine.own, 0);
}

static __attribute__((unused)) void begin_world(struct world *w, uint64_t seed,
                                                const char *write_only)
{
    struct tn_err err = {0};
    memset(w, 0, sizeof *w);
    w->random = seed;
    sim_disk_init(&w->disk, DISK_SIZE);
    make_tables(w, write_only);
    bed_engine_start(&engine, &w->disk.io, seed);
    tn_arena_init(&w->arena, input, INPUT_SIZE);
    tn_log_init(&w->log, w->log_memory, sizeof w->log_memory, NULL, NULL);
    CHECK_OK(tn_share_out(&engine.env, w->shares, TABLES, &err), err);
    for (uint32_t t = 0; t < TABLES; t++) {
        w->configs[t] = (struct tn_config_table){.name = names[t], .commit = {.ms = 50, .rows = 9}};
        struct tn_keeper_spec spec = {
            .config = &w->configs[t], .share = &w->shares[t], .who = "a test", .log = &w->log};
        CHECK_OK(tn_keeper_open(&w->keepers[t], &spec, &err), err);
    }
    w->config.disk_reserve = disk_reserve;
    w->config.journal = (struct tn_config_journal){5, 3000, 8 << 20};
    struct tn_intake_spec intake = {.env = &engine.env,
                                    .arena = &w->arena,
                                    .log = &w->log,
                                    .keepers = w->keepers,
                                    .keeper_count = TABLES,
                                    .config = &w->config,
                                    .parcel_size = PARCEL_SIZE};
    CHECK_OK(tn_intake_open(&w->intake, &intake, &err), err);
    struct tn_jobs_spec jobs = {.env = &engine.env,
                                .keepers = w->keepers,
                                .keeper_count = TABLES,
                                .log = &w->log,
                                .intake = &w->intake};
    tn_jobs_init(&w->jobs, &jobs);
}

static __attribute__((unused)) void end_world(struct world *w)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        tn_keeper_close(&w->keepers[t]);
    }
    while (engine.env.exec->under_way > 0) {
        (void)tn_exec_turn(engine.env.exec, true);
    }
    tn_intake_close(&w->intake);
    sim_disk_deinit(&w->disk);
}

/* A row's number may come again and again: what is refused for now is sent later. */
static void send(struct world *w, uint32_t t)
{
    char text[64];
    struct tn_err err;
    int size = snprintf(text, sizeof text, "{\"id\":%" PRId64 ",\"n\":1}\n", w->sent[t]);
    struct tn_message message = {.table = names[t],
                                 .input = TN_INPUT_JSON,
                                 .bytes = {(const unsigned char *)text, (size_t)size},
                                 .source = "test",
                                 .whole = true};
    if (w->sent[t] < ROWS && tn_hub_offer(&w->intake.hub, &message, &err) == TN_OK) {
        w->sent[t]++;
    }
}

static void turn(struct world *w, bool rows)
{
    struct tn_err err = {0};
    uint32_t wait_ms;
    for (uint32_t i = rows ? random_below(&w->random, 4) : 0; i > 0; i--) {
        send(w, random_below(&w->random, TABLES));
    }
    CHECK_OK(tn_intake_turn(&w->intake, &wait_ms, &err), err);
    tn_jobs_turn(&w->jobs, &wait_ms);
    sim_clock_advance_ms(&engine.clock, wait_ms < 7 ? wait_ms : 7);
    CHECK(w->turns++ < TURNS_MAX);
}

static __attribute__((unused)) void send_for_a_while(struct world *w)
{
    for (uint32_t i = 200 + random_below(&w->random, 300); i > 0; i--) {
        turn(w, true);
    }
}

static __attribute__((unused)) void commit_all(struct world *w)
{
    for (int t = 0; t < TABLES; t++) {
        while (!tn_keeper_settled(&w->keepers[t]) || w->intake.ring.count > 0 ||
               w->keepers[t].state != TN_KEEPER_LIVE) {
            turn(w, false);
        }
    }
}

/* ---- what is there ---- */

static __attribute__((unused)) void check_rows(struct world *w, uint32_t t)
{
    struct tn_err err;
    static struct tn_schemas known;
    static struct tn_scan scan;
    static struct tn_options options;
    static struct tn_snapshot snapshot;
    static uint32_t seen[ROWS];
    const struct tn_schema *schema = NULL;
    const char *root = tn_table_root(w->keepers[t].table);
    int64_t id = 0;
    struct tn_arena *own = &engine.own;
    size_t mark = tn_arena_mark(own);
    memset(seen, 0, sizeof seen);
    tn_schemas_init(&known, &w->disk.io, root, own);
    CHECK_OK(tn_schemas_newest(&known, &schema, &err), err);
    CHECK_OK(tn_options_read(schema, TN_OPTIONS_READ, own, &options, &err), err);
    CHECK_OK(tn_snapshot_latest(&w->disk.io, root, own, &id, &err), err);
    CHECK_OK(tn_snapshot_read(&w->disk.io, root, id, own, &snapshot, &err), err);
    struct tn_scan_spec spec = {.root = root,
                                .snapshot = &snapshot,
                                .schema = schema,
                                .options = &options,
                                .schemas = &known};
    CHECK_OK(tn_scan_open(&scan, &spec, engine.window, BED_WINDOW_SIZE, own,
                          engine.env.workers[TN_LANE_LONG], &err),
             err);
    struct tn_kv kv;
    tn_rc rc;
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        struct tn_value values[2];
        tn_row_get(&scan.projection.layout, kv.row, 0, &values[0]);
        tn_row_get(&scan.projection.layout, kv.row, 1, &values[1]);
        CHECK(values[0].as.i64 >= 0 && values[0].as.i64 < ROWS);
        seen[values[0].as.i64] += (uint32_t)values[1].as.i64;
    }
    CHECK(rc == TN_ABSENT);
    tn_scan_close(&scan);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK(seen[i] == (i < w->sent[t]));
    }
    tn_arena_reset(own, mark);
}
