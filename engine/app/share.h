/* share: what one of several tables in a process has of its memory.
 *
 *     memtable | table            of the process
 *     [a][b][c]  [a][b]           a share each: rows, and an arena for the table's own things;
 *        `- [arena | rows]        that lies in front of the rows where the part "table" is used up
 *
 * Where there are too many for shares that any table does with, those that are `plain` get little
 * ones, and compact on benches that they take turns at (table/bench.h), in front of all shares.
 * Their arenas may lie in the part "long", too, where it has more than work needs.
 *
 * Workers, executor and the heap of the levels are everybody's. A share is a budget of its own, so
 * that a script's states are carved out of its rows as they are where there is one table.
 */
#pragma once

#include "table/env.h"

enum { TN_SHARE_PARTS = 4 };

struct tn_table_share {
    struct tn_part_spec parts[TN_SHARE_PARTS];
    struct tn_board board;
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_arena lasting; /* of the part "long": what its table took of it, for good */
    bool lasts;
    bool plain; /* one bucket, no partitions, script, table of letters; set before tn_share_out */
    bool scripted;     /* it has a script; likewise */
    struct tn_env env; /* of the share */
};

/* What shares are made of. */
struct tn_share_sizes {
    size_t table;    /* the part "table" */
    size_t memtable; /* the part "memtable" */
    size_t work;     /* the part "long" */
    uint32_t count;  /* tables */
    uint32_t plain;  /* of them */
    uint32_t scripted;
};

/* Bytes of the part "memtable" that they need at the least, so that each but small ones has `rows`
 * bytes for its rows. */
uint64_t tn_share_needed(const struct tn_share_sizes *sizes, uint64_t rows);

/* Splits the env's parts into `count` shares, which begin where they are in memory; of what they
 * have, `plain` and `scripted` alone are read. INVALID: they are too small; the text says what is
 * missing. The env's memtable is nobody else's from then on, nor what is taken of its arena. */
TN_MUST_USE tn_rc tn_share_out(struct tn_env *env, struct tn_table_share *shares, uint32_t count,
                               struct tn_err *err);

/* Around the first open of the share's table, and every later one; no task is under way at the
 * first, and no other share's table is opened in between. What the table keeps of the part "long"
 * is the share's from then on, whether it is open or not: tasks of others never lie in it. */
void tn_share_lend(struct tn_table_share *share);
void tn_share_keep(struct tn_table_share *share);

/* A row of the share is no longer than its arena has room for: after tn_env_measure, which asks the
 * rows' part alone. */
void tn_share_cap(struct tn_table_share *share);
