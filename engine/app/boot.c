#include "app/boot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

const char *tn_warehouse(void)
{
    const char *root = tn_common.warehouse ? tn_common.warehouse : getenv("TARN_WAREHOUSE");
    return root && *root ? root : "warehouse";
}

static tn_rc open_warehouse(struct tn_app *app, bool make, struct tn_err *err)
{
    const char *root = tn_warehouse();
    app->warehouse = root;
    if (make && mkdir(root, 0777) != 0 && errno != EEXIST) {
        int os = errno;
        return tn_err_set(err, TN_IO, os, "make folder %s: %s", root, strerror(os));
    }
    tn_rc rc = tn_io_posix_open(&app->posix, root, err);
    return rc == TN_ABSENT ? tn_err_set(err, TN_INVALID, 0, "%s: there is no such warehouse", root)
                           : rc;
}

static tn_rc open_env(struct tn_app *app, struct tn_err *err)
{
    struct tn_env_spec spec = {.budget = &app->budget,
                               .json = &app->json,
                               .avro = &app->avro,
                               .levels = &app->levels,
                               .table = &app->table,
                               .workers = app->workers,
                               .exec = &app->exec,
                               .io = &app->posix.io,
                               .clock = &tn_clock_system};
    return tn_env_open(&app->env, &spec, err);
}

static const struct {
    const char *part;
    const char *use;
} uses[] = {
    {"memtable", "rows not yet in files; reading: lists of files"},
    {"long", "flush, compaction, scan: their buffers and zstd contexts"},
    {"short", "commit, expiry: their buffers and zstd contexts"},
    {"levels", "lists of the files of open buckets"},
    {"json", "cJSON: schemas, snapshots"},
    {"avro", "avro-c, jansson: schemas of files"},
    {"table", "the open table: schemas, open rounds"},
    {"input", "input and output buffers"},
    {"lua_map", "a script's map, of the memtable's part"},
    {"lua_merge", "a script's merge, retract and announce, likewise"},
    {"net", "sockets: libuv, streams, buffers; of the memtable's part when they are used"},
    {"tls", "TLS: connections, certificates, likewise"},
    {"upload", "what `lakes` are sent: lists of files, copies, connections; likewise"},
    {"policy", "scripts of `lakes`, which say when to send; likewise"},
};

const char *tn_part_use(const char *part)
{
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (strcmp(uses[i].part, part) == 0) {
            return uses[i].use;
        }
    }
    return NULL;
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
    tn_budget_arena(&app->budget, "input", &app->input);
    rc = open_warehouse(app, make, err);
    if (rc == TN_OK) {
        app->open = true;
        rc = open_env(app, err);
    }
    if (rc != TN_OK) {
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
