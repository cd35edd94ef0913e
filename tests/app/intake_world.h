/* intake_world: an intake over two tables with letters, on a simulated disk and clock: what is
 * offered to it, processes that end and start, and what the tables have in the end. */
#pragma once

#define BED_SCALE 8
#include "../table/bed.h"

#include "app/intake.h"
#include "table/letter_table.h"
#include "table/make.h"

enum {
    WORLD_TABLES = 2,
    WORLD_PARCEL_SIZE = 16 * 1024,
    WORLD_INPUT_SIZE = 4 << 20,
    WORLD_LOG_SIZE = 64 * 1024,
    WORLD_DISK_SIZE = 32 << 20,
    WORLD_TEXT_SIZE = 256 * 1024,
    WORLD_STEP_MS = 20,
};

static const char *const world_names[WORLD_TABLES] = {"db.a", "db.b"};
static const char *const world_letters[WORLD_TABLES] = {"db.a_dead", "db.b_dead"};

static struct {
    struct bed_engine engine;
    struct sim_disk disk;
    unsigned char *input;
    struct tn_arena arena;
    struct tn_log log;
    unsigned char log_memory[WORLD_LOG_SIZE];
    struct tn_share shares[WORLD_TABLES];
    struct tn_keeper keepers[WORLD_TABLES];
    struct tn_config config;
    struct tn_config_table configs[WORLD_TABLES];
    struct tn_intake intake;
    struct tn_hub_listener ears;
    unsigned char room[WORLD_PARCEL_SIZE / 2];
    char text[WORLD_TEXT_SIZE];
} world;

static inline void world_make_table(const char *name, const char *json)
{
    struct tn_err err;
    struct tn_schema schema;
    struct tn_options options;
    bed_engine_start(&world.engine, &world.disk.io, 1);
    CHECK_OK(tn_schema_from_user(tn_bytes_of(json), &world.engine.own, &schema, &err), err);
    CHECK_OK(tn_make_table(&world.engine.env, name, &schema, &options, &err), err);
    sim_disk_kill(&world.disk);
}

static inline void world_nothing(struct tn_hub_listener *ears)
{
    (void)ears;
}

static inline void world_durable(struct tn_hub_listener *ears, uint64_t place)
{
    (void)ears;
    (void)place;
}

/* A process starts. A commit is due after so many ms. */
static inline void world_start(uint32_t commit_ms)
{
    struct tn_err err;
    bed_engine_start(&world.engine, &world.disk.io, 1);
    tn_arena_init(&world.arena, world.input, WORLD_INPUT_SIZE);
    tn_log_init(&world.log, world.log_memory, sizeof world.log_memory, NULL, NULL);
    CHECK_OK(tn_share_out(&world.engine.env, world.shares, WORLD_TABLES, &err), err);
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        world.configs[i] =
            (struct tn_config_table){.name = world_names[i], .commit = {.ms = commit_ms}};
        struct tn_keeper_spec spec = {.config = &world.configs[i],
                                      .share = &world.shares[i],
                                      .dead_letters = world_letters[i],
                                      .who = "a test",
                                      .log = &world.log,
                                      .room = world.room,
                                      .room_size = sizeof world.room};
        CHECK_OK(tn_keeper_open(&world.keepers[i], &spec, &err), err);
    }
    world.config.journal =
        (struct tn_config_journal){.sync_ms = 10, .sync_bytes = 4096, .size_max = 8 << 20};
    struct tn_intake_spec spec = {.env = &world.engine.env,
                                  .arena = &world.arena,
                                  .log = &world.log,
                                  .keepers = world.keepers,
                                  .keeper_count = WORLD_TABLES,
                                  .config = &world.config,
                                  .parcel_size = WORLD_PARCEL_SIZE};
    CHECK(tn_intake_memory(&spec) <= tn_arena_free(&world.arena));
    CHECK_OK(tn_intake_open(&world.intake, &spec, &err), err);
    world.ears = (struct tn_hub_listener){.room = world_nothing, .durable = world_durable};
    tn_hub_listen(&world.intake.hub, &world.ears);
}

/* It ends without a word. */
static inline void world_kill(void)
{
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        tn_keeper_close(&world.keepers[i]);
    }
    tn_intake_close(&world.intake);
    sim_disk_kill(&world.disk);
}

static inline void world_run(uint32_t ms)
{
    struct tn_err err;
    for (uint32_t past = 0; past < ms; past += WORLD_STEP_MS) {
        for (int i = 0; i < 20; i++) {
            uint32_t wait_ms;
            CHECK_OK(tn_intake_turn(&world.intake, &wait_ms, &err), err);
        }
        sim_clock_advance_ms(&world.engine.clock, WORLD_STEP_MS);
    }
}

static inline tn_rc world_offer(const char *table, enum tn_input input, const char *text,
                                struct tn_err *err)
{
    struct tn_message message = {
        .table = table, .input = input, .bytes = tn_bytes_of(text), .source = "test"};
    return tn_hub_offer(&world.intake.hub, &message, err);
}

static inline void world_take(const char *table, const char *text)
{
    struct tn_err err;
    CHECK_OK(world_offer(table, TN_INPUT_JSON, text, &err), err);
}

/* ---- what is there ---- */

/* The rows of a table, as JSON, a line each; "": it has no snapshot. Of another process: what is
 * asked about must be closed. */
static inline const char *world_rows(const char *name)
{
    struct tn_err err;
    static struct tn_schemas known;
    static struct tn_scan scan;
    static struct tn_options options;
    static struct tn_snapshot snapshot;
    const struct tn_schema *schema = NULL;
    const char *root = NULL;
    int64_t id = 0;
    struct tn_buf text;
    struct tn_io *io = &world.disk.io;
    struct tn_arena *own = &world.engine.own;
    tn_buf_init(&text, (unsigned char *)world.text, sizeof world.text - 1);
    bed_engine_start(&world.engine, io, 7);
    CHECK_OK(tn_name_table_root(own, name, &root, &err), err);
    tn_schemas_init(&known, io, root, own);
    tn_rc rc = tn_schemas_newest(&known, &schema, &err);
    rc = rc == TN_OK ? tn_snapshot_latest(io, root, own, &id, &err) : rc;
    if (rc == TN_ABSENT || id == 0) {
        return "";
    }
    CHECK_OK(rc, err);
    CHECK_OK(tn_options_read(schema, TN_OPTIONS_READ, own, &options, &err), err);
    CHECK_OK(tn_snapshot_read(io, root, id, own, &snapshot, &err), err);
    struct tn_scan_spec spec = {.root = root,
                                .snapshot = &snapshot,
                                .schema = schema,
                                .options = &options,
                                .schemas = &known};
    CHECK_OK(tn_scan_open(&scan, &spec, world.engine.window, BED_WINDOW_SIZE, own,
                          world.engine.env.workers[TN_LANE_LONG], &err),
             err);
    struct tn_kv kv;
    while ((rc = tn_scan_next(&scan, &kv, &err)) == TN_OK) {
        tn_row_format_json(&scan.projection.layout, NULL, kv.row, &text);
        tn_buf_text(&text, "\n");
    }
    CHECK(rc == TN_ABSENT && !text.overflow);
    tn_scan_close(&scan);
    world.text[text.size] = 0;
    return world.text;
}

static inline uint32_t world_count(const char *text, const char *part)
{
    uint32_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) {
        count++;
    }
    return count;
}

static inline int world_run_tests(int argc, char **argv, const struct test *tests, size_t count)
{
    world.input = malloc(WORLD_INPUT_SIZE);
    CHECK(world.input != NULL);
    int code = bed_run_tests(argc, argv, tests, count, &world.engine, 1);
    free(world.input);
    return code;
}
