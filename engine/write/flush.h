/* flush: a frozen memtable becomes level-0 files. Straight-line work for a worker.
 *
 * Usually one file; more when target-file-size is reached. Files are closed, described and not
 * synced. On failure what was written is removed, the memtable is as it was, and the flush can run
 * again. Costs the sort, the encode, and the compression: about 350 ns a row.
 */
#pragma once

#include "file/data_writer.h"
#include "write/memtable.h"

struct tn_flush_spec {
    const struct tn_order *order;
    const struct tn_schema *schema;
    const struct tn_options *options;
    struct tn_memtable *memtable; /* frozen */
    const char *dir;              /* of the bucket */
    const char *uuid;
    uint32_t *counter; /* the next file's number */
    uint32_t block_size;
};

struct tn_flush_file {
    struct tn_file_meta meta;
    struct tn_flush_file *next;
};

/* `files` (in key order) are made in the worker's arena, above its mark: the caller resets it when
 * they are copied. */
TN_MUST_USE tn_rc tn_flush(const struct tn_flush_spec *spec, struct tn_worker *worker,
                           struct tn_flush_file **files, struct tn_err *err);
