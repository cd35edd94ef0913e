/* tarn_parts: what the parts of the C API share: tarn.c is the engine, tarn_table.c takes rows in,
 * tarn_scan.c gives them out, tarn_script.c is what a script has to do with it. */
#pragma once

#include "base/budget.h"
#include "base/exec.h"
#include "io/clock_watch.h"
#include "io/io.h"
#include "schema/types.h"
#include "script/scripted.h"
#include "table/env.h"
#include "tarn.h"

/* What a script needs of an open table. */
struct tn_api_script {
    struct tn_letter_sink sink; /* first */
    struct tn_script *map;      /* or NULL */
    struct tn_buf made;         /* rows of one put */
    uint32_t part;              /* of them, where a put stopped that is to be called again */
    struct tn_buf text;         /* of a letter */
    struct tn_clock_watch watch;
    const struct tn_row_layout *layout;
    void (*dead_letter)(void *user, const tarn_dead_letter *letter);
    void *user;
};

struct tarn_engine {
    struct tn_budget budget;
    struct tn_heap json;
    struct tn_heap avro;
    struct tn_heap levels;
    struct tn_arena arena;
    struct tn_worker workers[TN_LANE_COUNT];
    struct tn_exec_inline exec;
    struct tn_io_posix posix;
    bool posix_open;
    struct tn_env env;
    const char *warehouse;       /* or NULL: files are the caller's */
    struct tn_scripted scripted; /* of the table that is open */
    struct tn_arena for_table;   /* both of the part "input" */
    struct tn_arena for_scan;
    tarn_table *table;  /* that is open, or NULL */
    tarn_scan *scan;    /* likewise */
    size_t worker_mark; /* of the arena that a scan reads with, before it */
};

/* Copies `err` to where the caller wants it, unless all is well. */
tarn_rc tn_api_tell(tn_rc rc, const struct tn_err *err, tarn_error *error);

/* The largest value of a type that a program gives and takes as int64_t; -1 for others. */
int64_t tn_api_i64_max(enum tn_type_kind kind);

/* ---- tarn_script.c ---- */

/* Loads the script of a table that is there; of one that is to be created. OK: there may be none.
 */
TN_MUST_USE tn_rc tn_api_script_find(tarn_engine *engine, const char *table, struct tn_err *err);
TN_MUST_USE tn_rc tn_api_script_try(tarn_engine *engine, const char *table,
                                    const struct tn_schema *schema, struct tn_err *err);

/* For the table that is opened; memory for rows and texts comes from the arena. */
TN_MUST_USE tn_rc tn_api_script_open(struct tn_api_script *script, tarn_engine *engine,
                                     const tarn_table_options *options, struct tn_arena *arena,
                                     struct tn_err *err);

/* The rows that `map` makes of a put: of its JSON, or of its row. */
TN_MUST_USE tn_rc tn_api_script_map(struct tn_api_script *script, int64_t put,
                                    const struct tn_bytes *json, const struct tn_row *row,
                                    struct tn_bytes *rows, struct tn_err *err);
