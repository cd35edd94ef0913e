/* A daemon without sockets: a keyed table and one without keys, their keepers, intake, journal and
 * jobs, on a simulated disk. Rows are numbered; each is to be in its table once.
 */
#pragma once

#include "daemon.h"

#include "app/jobs.h"
#include "given.h"
#include "table/census.h"

enum { ROWS = 3000 /* of a table, at the most */, TURNS_MAX = 100000 };

static const char *const names[TABLES] = {"db.a", "db.k"};
static const char *const schemas[TABLES] = {
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"options\":{\"bucket\":\"-1\"}}",
    "{\"fields\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"n\",\"type\":\"BIGINT\"}],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"3\",\"write-only\":\"",
};
static const char rest_of_schema[] =
    "\",\"merge-engine\":\"aggregation\",\"fields.n.aggregate-function\":\"sum\"}}";

struct world {
    struct sim_disk disk;
    uint64_t random;
    struct daemon daemon;
    struct tn_jobs jobs;
    int64_t sent[TABLES]; /* rows, numbered from 0 */
    uint32_t turns;
};

static struct world world;
static uint64_t disk_reserve; /* of worlds that begin */

/* ---- a daemon without sockets ---- */

static void make_tables(struct world *w, const char *write_only)
{
    bed_engine_start(&engine, &w->disk.io, w->random);
    for (uint32_t t = 0; t < TABLES; t++) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s%s%s", schemas[t], t == 0 ? "" : write_only,
                       t == 0 ? "" : rest_of_schema);
        bed_make_table(&engine, names[t], text);
    }
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
    for (uint32_t t = 0; t < TABLES; t++) {
        w->daemon.configs[t] =
            (struct tn_config_table){.name = names[t], .commit = {.ms = 50, .rows = 9}};
    }
    w->daemon.config.disk_reserve = disk_reserve;
    w->daemon.config.journal = (struct tn_config_journal){5, 3000, 8 << 20};
    CHECK_OK(daemon_open(&w->daemon, &err), err);
    struct tn_jobs_spec jobs = {.env = &engine.env,
                                .keepers = w->daemon.keepers,
                                .keeper_count = TABLES,
                                .log = &w->daemon.log,
                                .intake = &w->daemon.intake};
    tn_jobs_init(&w->jobs, &jobs);
}

static __attribute__((unused)) void end_world(struct world *w)
{
    daemon_close(&w->daemon);
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
    if (w->sent[t] < ROWS && tn_hub_offer(&w->daemon.intake.hub, &message, &err) == TN_OK) {
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
    CHECK_OK(tn_intake_turn(&w->daemon.intake, &wait_ms, &err), err);
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
        while (!tn_keeper_settled(&w->daemon.keepers[t]) || w->daemon.intake.ring.count > 0 ||
               w->daemon.keepers[t].state != TN_KEEPER_LIVE) {
            turn(w, false);
        }
    }
}

/* ---- what is there ---- */

static __attribute__((unused)) void check_rows(struct world *w, uint32_t t)
{
    static uint32_t seen[ROWS];
    memset(seen, 0, sizeof seen);
    daemon_sum_rows(tn_table_root(w->daemon.keepers[t].table), seen, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK(seen[i] == (i < w->sent[t]));
    }
}
