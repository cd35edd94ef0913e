/* boot: the block of memory, its parts, and the doors; what every verb starts with.
 *
 * After tn_boot the program takes no more memory from the system.
 */
#pragma once

#include "app/args.h"
#include "base/budget.h"
#include "table/env.h"

enum tn_format { TN_FORMAT_AUTO, TN_FORMAT_TABLE, TN_FORMAT_JSON, TN_FORMAT_CSV };

/* Options that every verb has. */
struct tn_common {
    const char *program; /* this one's file */
    char *const *argv;   /* as it was started */
    const char *warehouse;
    const char *board;
    uint64_t memory;
    const char *format_name;
    bool quiet;
    bool verbose;
    bool help;
    bool version;
    enum tn_format format;
};
extern const struct tn_flag tn_common_flags[];
extern const uint32_t tn_common_flag_count;
extern struct tn_common tn_common; /* what the flags' targets are: one command line a process */

struct tn_app {
    struct tn_budget budget;
    struct tn_heap json;
    struct tn_heap avro;
    struct tn_heap levels;
    struct tn_arena table;
    struct tn_arena input;
    struct tn_pool memtable; /* for `pools`; a table carves it again by its own page size */
    struct tn_worker workers[TN_LANE_COUNT];
    struct tn_exec_inline exec;
    struct tn_io_posix posix;
    struct tn_arena net; /* these four only after net_boot.h */
    struct tn_heap uv;
    struct tn_pool buffers;
    struct tn_heap tls;
    const char *warehouse; /* its folder, as it was given */
    struct tn_env env;
    bool open;
};

/* The warehouse that the command line means, or the environment. */
const char *tn_warehouse(void);

/* Maps the block, opens the warehouse (made when `make` and missing). */
TN_MUST_USE tn_rc tn_boot(struct tn_app *app, bool make, struct tn_err *err);
void tn_shut(struct tn_app *app);

/* What a part of the memory serves, for people; or NULL. */
const char *tn_part_use(const char *part);

/* The exit code of an outcome. */
int tn_exit_code(tn_rc rc);
