#include "app/boot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/avro.h"
#include "format/json.h"

struct tn_common tn_common;

const struct tn_flag tn_common_flags[] = {
    {"warehouse", 'w', TN_FLAG_TEXT, &tn_common.warehouse, "DIR",
     "where the tables are; else $TARN_WAREHOUSE, else ./warehouse"},
    {"board", 0, TN_FLAG_TEXT, &tn_common.board, "NAME",
     "the memory profile this program was built for"},
    {"memory", 0, TN_FLAG_SIZE, &tn_common.memory, "SIZE", "all the memory it may use, like 16M"},
    {"format", 0, TN_FLAG_TEXT, &tn_common.format_name, "FORM", "table, json or csv"},
    {"quiet", 'q', TN_FLAG_SET, &tn_common.quiet, NULL, "say less"},
    {"verbose", 'v', TN_FLAG_SET, &tn_common.verbose, NULL, "say more"},
    {"help", 0, TN_FLAG_SET, &tn_common.help, NULL, "this text"},
    {"version", 0, TN_FLAG_SET, &tn_common.version, NULL, "versions of tarn and its libraries"},
};
const uint32_t tn_common_flag_count = sizeof tn_common_flags / sizeof tn_common_flags[0];

static tn_rc check_common(struct tn_err *err)
{
    static const char *const FORMATS[] = {"auto", "table", "json", "csv"};
    if (tn_common.board && strcmp(tn_common.board, tn_board.name) != 0) {
        return tn_err_set(err, TN_INVALID, 0, "--board %s: this program was built for '%s'",
                          tn_common.board, tn_board.name);
    }
    if (!tn_common.format_name) {
        return TN_OK;
    }
    for (int i = TN_FORMAT_TABLE; i <= TN_FORMAT_CSV; i++) {
        if (strcmp(tn_common.format_name, FORMATS[i]) == 0) {
            tn_common.format = (enum tn_format)i;
            return TN_OK;
        }
    }
    return tn_err_set(err, TN_INVALID, 0, "--format %s: table, json or csv", tn_common.format_name);
}

static tn_rc open_warehouse(struct tn_app *app, bool make, struct tn_err *err)
{
    const char *root = tn_common.warehouse ? tn_common.warehouse : getenv("TARN_WAREHOUSE");
    root = root && *root ? root : "warehouse";
    if (make && mkdir(root, 0777) != 0 && errno != EEXIST) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "make folder %s: %s", root, strerror(os));
    }
    tn_rc rc = tn_io_posix_open(&app->posix, root, err);
    return rc == TN_ABSENT ? tn_err_set(err, TN_INVALID, 0, "%s: there is no such warehouse", root)
                           : rc;
}

static tn_rc init_workers(struct tn_app *app, struct tn_err *err)
{
    static const char *const PARTS[TN_LANE_COUNT] = {"short", "long"};
    void *contexts[TN_LANE_COUNT];
    for (int lane = 0; lane < TN_LANE_COUNT; lane++) {
        struct tn_worker *worker = &app->workers[lane];
        *worker = (struct tn_worker){.io = &app->posix.io, .clock = &tn_clock_system};
        tn_budget_arena(&app->budget, PARTS[lane], &worker->arena);
        tn_rc rc = tn_codec_init(&worker->codec, 1, TN_BLOCK_SIZE, &worker->arena, err);
        if (rc != TN_OK) {
            return rc;
        }
        contexts[lane] = worker;
        app->env.workers[lane] = worker;
    }
    tn_exec_inline_open(&app->exec, contexts);
    return TN_OK;
}

static void init_env(struct tn_app *app)
{
    const struct tn_part *memtable = tn_budget_part(&app->budget, "memtable");
    size_t row = app->table.size / 16;
    app->env.io = &app->posix.io;
    app->env.clock = &tn_clock_system;
    app->env.exec = &app->exec.exec;
    app->env.memtable = memtable->base;
    app->env.memtable_size = memtable->size;
    app->env.levels = &app->levels;
    app->env.arena = &app->table;
    app->env.block_size = TN_BLOCK_SIZE;
    app->env.row_size_max = (uint32_t)(row < memtable->size / 8 ? row : memtable->size / 8);
}

tn_rc tn_boot(struct tn_app *app, bool make, struct tn_err *err)
{
    tn_rc rc = check_common(err);
    if (rc == TN_OK) {
        rc = tn_budget_open(&app->budget, &tn_board, tn_common.memory, err);
    }
    if (rc != TN_OK) {
        return rc;
    }
    tn_budget_heap(&app->budget, "json", &app->json, true);
    tn_budget_heap(&app->budget, "avro", &app->avro, true);
    tn_budget_heap(&app->budget, "levels", &app->levels, true);
    tn_budget_arena(&app->budget, "table", &app->table);
    tn_budget_arena(&app->budget, "input", &app->input);
    tn_json_use_heap(&app->json);
    tn_avro_use_heap(&app->avro);
    rc = open_warehouse(app, make, err);
    if (rc == TN_OK) {
        app->open = true;
        rc = init_workers(app, err);
    }
    if (rc == TN_OK) {
        init_env(app);
    } else {
        tn_shut(app);
    }
    return rc;
}

void tn_shut(struct tn_app *app)
{
    if (app->open) {
        tn_io_posix_close(&app->posix);
        app->open = false;
    }
    tn_budget_close(&app->budget);
}

int tn_exit_code(tn_rc rc)
{
    switch (rc) {
    case TN_OK:
        return 0;
    case TN_ABSENT:
    case TN_INVALID:
    case TN_UNSUPPORTED:
    case TN_AGAIN:
        return 2;
    case TN_CORRUPT:
        return 3;
    case TN_IO:
    case TN_FULL:
    case TN_CANCELED:
        return 4;
    case TN_EXISTS:
    case TN_CONFLICT:
        return 5;
    }
    return 4;
}
