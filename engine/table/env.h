/* env: what a table works in: the doors, the memory parts, the executor. Made once at boot by the
 * app, the C API or a test. */
#pragma once

#include "base/budget.h"
#include "base/exec.h"
#include "base/heap.h"
#include "base/pool.h"
#include "file/worker.h"
#include "table/bench.h"
#include "table/wear.h"

struct tn_env {
    struct tn_io *io;
    struct tn_clock *clock;
    struct tn_exec *exec;
    struct tn_worker *workers[TN_LANE_COUNT];
    void *memtable; /* the memtable part: pages, carved when a table is opened */
    size_t memtable_size;
    struct tn_heap *levels;
    struct tn_arena *arena; /* the table part */
    /* What a table keeps of the part "long" as long as it is open; NULL: it is that worker's arena,
     * of which the table is the only one. Where others are open, too, it is the table's own. */
    struct tn_arena *lasting;
    /* Where compactions lie, which other tables take turns at; NULL: each table has room for one.
     */
    struct tn_benches *benches;
    struct tn_wear *wear;  /* what may be written; NULL: anything */
    int64_t unit_size_max; /* bytes of files that a compaction takes, where the table doesn't say
                              it; 0: any */
    uint32_t sharers;      /* tables that are open at once; 0: one */
    size_t worker_room;    /* bytes that the part "long" has for a task, beside its contexts */
    uint32_t block_size;   /* raw bytes of a data block */
    uint32_t row_size_max; /* bytes of a packed row; a larger one is refused */
    size_t merge_size;     /* bytes that the rows of a merge may take at once */
};

enum { TN_BLOCK_SIZE = 64 * 1024 }; /* measured: 64 KiB blocks, windows of 2^16: 2.91x at 300 KB */

/* What an env is made of; all of it outlives the env. */
struct tn_env_spec {
    struct tn_budget *budget; /* its parts but "input" are put to use */
    struct tn_heap *json;
    struct tn_heap *avro;
    struct tn_heap *levels;
    struct tn_arena *table;
    struct tn_worker *workers; /* TN_LANE_COUNT */
    struct tn_exec_inline *exec;
    struct tn_io *io;
    struct tn_clock *clock;
};

/* Puts allocators on the parts, gives JSON and avro theirs (for the whole process), makes the
 * workers. INVALID when a part is too small. */
TN_MUST_USE tn_rc tn_env_open(struct tn_env *env, const struct tn_env_spec *spec,
                              struct tn_err *err);

static inline struct tn_arena *tn_env_lasting(const struct tn_env *env)
{
    return env->lasting ? env->lasting : &env->workers[TN_LANE_LONG]->arena;
}

/* Reads the size of the part "memtable" again, of which parts were carved or that were joined; no
 * table is open. */
void tn_env_measure(struct tn_env *env, struct tn_budget *budget);
