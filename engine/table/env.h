/* env: what a table works in: the doors, the memory parts, the executor. Made once at boot by the
 * app, the C API or a test. */
#pragma once

#include "base/exec.h"
#include "base/heap.h"
#include "base/pool.h"
#include "file/worker.h"

struct tn_env {
    struct tn_io *io;
    struct tn_clock *clock;
    struct tn_exec *exec;
    struct tn_worker *workers[TN_LANE_COUNT];
    void *memtable; /* the memtable part: pages, carved when a table is opened */
    size_t memtable_size;
    struct tn_heap *levels;
    struct tn_arena *arena; /* the table part */
    uint32_t block_size;    /* raw bytes of a data block */
    uint32_t row_size_max;  /* bytes of a packed row; a larger one is refused */
};
