/* daemon: what `tarn run` holds, without sockets: two tables with their keepers, their intake and
 * its journal, in the engine of a bed. What they are and how they are turned is the test's. */
#pragma once

#ifndef BED_SCALE
#define BED_SCALE 2
#endif
#include "../table/bed.h"

#include "app/intake.h"
#include "table/newest.h"

enum {
    TABLES = 2,
    PARCEL_SIZE = BED_SCALE * 2048,
    INPUT_SIZE = BED_SCALE * (512 << 10),
    LOG_SIZE = BED_SCALE * 8192,
    DISK_SIZE = 32 << 20,
};

static struct bed_engine engine;
static unsigned char *daemon_input;

/* `config`, and of `configs` name and commit, are filled before it is opened. */
struct daemon {
    struct tn_config config;
    struct tn_config_table configs[TABLES];
    const char *dead_letters[TABLES]; /* tables for them; NULL: files */
    const char *warehouse;            /* the folder beside that of scripts; NULL: there are none */
    struct tn_arena arena;
    struct tn_log log;
    unsigned char log_memory[LOG_SIZE];
    struct tn_table_share shares[TABLES];
    struct tn_keeper keepers[TABLES];
    unsigned char room[PARCEL_SIZE / 2];
    struct tn_intake intake;
    uint32_t open; /* keepers */
    bool intake_open;
};

static tn_rc daemon_open_keepers(struct daemon *d, struct tn_err *err)
{
    for (uint32_t i = 0; i < TABLES; i++) {
        d->shares[i].scripted = d->warehouse != NULL;
    }
    tn_rc rc = tn_share_out(&engine.env, d->shares, TABLES, err);
    while (rc == TN_OK && d->open < TABLES) {
        uint32_t i = d->open;
        struct tn_keeper_spec spec = {.config = &d->configs[i],
                                      .share = &d->shares[i],
                                      .dead_letters = d->dead_letters[i],
                                      .warehouse = d->warehouse,
                                      .who = "a test",
                                      .log = &d->log,
                                      .room = d->room,
                                      .room_size = sizeof d->room};
        rc = tn_keeper_open(&d->keepers[i], &spec, err);
        d->open += rc == TN_OK;
    }
    return rc;
}

/* In the engine, which has started. Whatever comes of it, it is to be closed. */
static tn_rc daemon_open(struct daemon *d, struct tn_err *err)
{
    d->open = 0;
    tn_arena_init(&d->arena, daemon_input, INPUT_SIZE);
    tn_log_init(&d->log, d->log_memory, sizeof d->log_memory, NULL, NULL);
    tn_rc rc = daemon_open_keepers(d, err);
    struct tn_intake_spec spec = {.env = &engine.env,
                                  .arena = &d->arena,
                                  .log = &d->log,
                                  .keepers = d->keepers,
                                  .keeper_count = TABLES,
                                  .config = &d->config,
                                  .parcel_size = PARCEL_SIZE};
    if (rc == TN_OK) {
        spec.states = tn_intake_states(d->keepers, TABLES);
        CHECK(tn_intake_memory(&spec) <= tn_arena_free(&d->arena));
        rc = tn_intake_open(&d->intake, &spec, err);
    }
    d->intake_open = rc == TN_OK;
    return rc;
}

/* What is under way is done; nothing else is. */
static void daemon_close(struct daemon *d)
{
    for (uint32_t i = 0; i < d->open; i++) {
        tn_keeper_close(&d->keepers[i]);
    }
    while (engine.env.exec->under_way > 0) {
        (void)tn_exec_turn(engine.env.exec, true);
    }
    if (d->intake_open) {
        tn_intake_close(&d->intake);
    }
}

/* ---- what is there ---- */

static inline struct tn_scan *daemon_rows(const char *root)
{
    return newest_open(root, engine.env.workers[TN_LANE_LONG], &engine.own, engine.window,
                       BED_WINDOW_SIZE);
}

/* Of a table of ids, from 0, and numbers: adds the numbers of each id. */
static __attribute__((unused)) void daemon_sum_rows(const char *root, uint32_t *sums, int64_t ids)
{
    struct tn_kv kv;
    size_t mark = tn_arena_mark(&engine.own);
    struct tn_scan *scan = daemon_rows(root);
    CHECK(scan != NULL);
    while (newest_next(scan, &kv)) {
        struct tn_value values[2];
        tn_row_get(&scan->projection.layout, kv.row, 0, &values[0]);
        tn_row_get(&scan->projection.layout, kv.row, 1, &values[1]);
        CHECK(values[0].as.i64 >= 0 && values[0].as.i64 < ids);
        sums[values[0].as.i64] += (uint32_t)values[1].as.i64;
    }
    tn_arena_reset(&engine.own, mark);
}

/* run_tests, with the engine and the memory of what comes in. */
static int daemon_run_tests(int argc, char **argv, const struct test *tests, size_t count)
{
    daemon_input = malloc(INPUT_SIZE);
    CHECK(daemon_input != NULL);
    int code = bed_run_tests(argc, argv, tests, count, &engine, 1);
    free(daemon_input);
    return code;
}
