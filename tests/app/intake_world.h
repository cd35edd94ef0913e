/* intake_world: an intake over two tables with letters, on a simulated disk and clock: what is
 * offered to it, processes that end and start, and what the tables have in the end. */
#pragma once

#define BED_SCALE 8
#include "daemon.h"

#include "table/letter_table.h"

enum {
    WORLD_TEXT_SIZE = 256 * 1024,
    WORLD_STEP_MS = 20,
    WORLD_NAMES_MAX = 1024,
    WORLD_NAME_MAX = 128,
};

static const char *world_names[TABLES] = {"db.a", "db.b"};
static const char *const world_letters[TABLES] = {"db.a_dead", "db.b_dead"};

static struct {
    struct sim_disk disk;
    struct daemon daemon;
    uint64_t starts; /* no two draw the same names */
    struct tn_hub_listener ears;
    char text[WORLD_TEXT_SIZE];
} world;

static inline void world_make_table(const char *name, const char *json)
{
    bed_engine_start(&engine, &world.disk.io, 1);
    bed_make_table(&engine, name, json);
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
    bed_engine_start(&engine, &world.disk.io, 10 + world.starts++);
    for (uint32_t i = 0; i < TABLES; i++) {
        world.daemon.configs[i] =
            (struct tn_config_table){.name = world_names[i], .commit = {.ms = commit_ms}};
        world.daemon.dead_letters[i] = world_letters[i];
    }
    world.daemon.config.journal =
        (struct tn_config_journal){.sync_ms = 10, .sync_bytes = 4096, .size_max = 8 << 20};
    CHECK_OK(daemon_open(&world.daemon, &err), err);
    world.ears = (struct tn_hub_listener){.room = world_nothing, .durable = world_durable};
    tn_hub_listen(&world.daemon.intake.hub, &world.ears);
}

/* It ends without a word. */
static inline void world_kill(void)
{
    daemon_close(&world.daemon);
    sim_disk_kill(&world.disk);
}

static inline void world_run(uint32_t ms)
{
    struct tn_err err;
    for (uint32_t past = 0; past < ms; past += WORLD_STEP_MS) {
        for (int i = 0; i < 20; i++) {
            uint32_t wait_ms;
            CHECK_OK(tn_intake_turn(&world.daemon.intake, &wait_ms, &err), err);
        }
        sim_clock_advance_ms(&engine.clock, WORLD_STEP_MS);
    }
}

static inline tn_rc world_offer(const char *table, enum tn_input input, const char *text,
                                struct tn_err *err)
{
    struct tn_message message = {
        .table = table, .input = input, .bytes = tn_bytes_of(text), .source = "test"};
    return tn_hub_offer(&world.daemon.intake.hub, &message, err);
}

static inline void world_take(const char *table, const char *text)
{
    struct tn_err err;
    CHECK_OK(world_offer(table, TN_INPUT_JSON, text, &err), err);
}

/* ---- rm -r ---- */

struct world_list {
    char names[WORLD_NAMES_MAX][WORLD_NAME_MAX];
    bool is_dir[WORLD_NAMES_MAX];
    uint32_t count;
};

static inline tn_rc world_keep_name(void *user, const char *name, bool is_dir, struct tn_err *err)
{
    struct world_list *names = user;
    (void)err;
    CHECK(names->count < WORLD_NAMES_MAX);
    names->is_dir[names->count] = is_dir;
    (void)snprintf(names->names[names->count++], WORLD_NAME_MAX, "%s", name);
    return TN_OK;
}

static inline void world_remove_all(const char *path)
{
    struct tn_err err;
    struct tn_io *io = &world.disk.io;
    struct world_list *names = calloc(1, sizeof *names);
    tn_rc rc = io->vtable->list(io, path, world_keep_name, names, &err);
    CHECK(rc == TN_OK || rc == TN_ABSENT);
    for (uint32_t i = 0; rc == TN_OK && i < names->count; i++) {
        char below[2 * WORLD_NAME_MAX];
        (void)snprintf(below, sizeof below, "%s/%s", path, names->names[i]);
        if (names->is_dir[i]) {
            world_remove_all(below);
        } else {
            CHECK_OK(io->vtable->unlink(io, below, &err), err);
        }
    }
    free(names);
    if (rc == TN_OK) {
        CHECK_OK(io->vtable->remove_dir(io, path, &err), err);
    }
}

/* ---- what is there ---- */

/* The rows of a table, as JSON, a line each; "": it has no snapshot. Of another process: what is
 * asked about must be closed. */
static inline const char *world_rows(const char *name)
{
    struct tn_err err;
    const char *root = NULL;
    struct tn_buf text;
    struct tn_kv kv;
    tn_buf_init(&text, (unsigned char *)world.text, sizeof world.text - 1);
    bed_engine_start(&engine, &world.disk.io, 7);
    CHECK_OK(tn_name_table_root(&engine.own, name, &root, &err), err);
    struct tn_scan *scan = daemon_rows(root);
    while (scan && newest_next(scan, &kv)) {
        tn_row_format_json(&scan->projection.layout, NULL, kv.row, &text);
        tn_buf_text(&text, "\n");
    }
    CHECK(!text.overflow);
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
