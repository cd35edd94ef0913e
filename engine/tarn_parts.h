/* tarn_parts: what the parts of the C API share: tarn.c is the engine, tarn_table.c takes rows in,
 * tarn_scan.c gives them out. */
#pragma once

#include "base/budget.h"
#include "base/exec.h"
#include "io/clock.h"
#include "io/io.h"
#include "schema/types.h"
#include "table/env.h"
#include "tarn.h"

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
    struct tn_arena for_table; /* both of the part "input" */
    struct tn_arena for_scan;
    tarn_table *table;  /* that is open, or NULL */
    tarn_scan *scan;    /* likewise */
    size_t worker_mark; /* of the arena that a scan reads with, before it */
};

/* Copies `err` to where the caller wants it, unless all is well. */
tarn_rc tn_api_tell(tn_rc rc, const struct tn_err *err, tarn_error *error);

/* The largest value of a type that a program gives and takes as int64_t; -1 for others. */
int64_t tn_api_i64_max(enum tn_type_kind kind);
