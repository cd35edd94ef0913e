/* flush: a frozen memtable becomes level-0 files. Straight-line work for a worker.
 *
 *     memtable -> every version, as it came -> changelog files      (producer input)
 *              -> fold                      -> data files
 *
 *     memtable, state before -> resolve -> data files, changelog files, dead letters
 *
 * Where the memtable keeps every version, those of one key are folded into one, as everywhere
 * (merge/fold.h). With a resolver it says what becomes of a key (write/resolve.h), and both kinds
 * of files are written in one pass; where nothing changed there is none. Usually one file of a
 * kind; more when target-file-size is reached. Files are closed, described and not synced. On
 * failure what was written is removed, the memtable is as it was, and the flush can run again.
 * Costs the sort, the encode, and the compression: about 350 ns a row.
 */
#pragma once

#include "file/data_writer.h"
#include "merge/fold.h"
#include "write/resolve.h"

/* Says what keys were before the flush. `keys` is about how many will be asked. What it takes comes
 * from the worker's arena, of which it leaves some. */
struct tn_flush_before {
    tn_rc (*open)(void *user, struct tn_worker *worker, uint64_t keys, struct tn_state **state,
                  struct tn_err *err);
    void (*close)(void *user);
    void *user;
};

struct tn_flush_spec {
    const struct tn_order *order;
    const struct tn_schema *schema;
    const struct tn_options *options;
    struct tn_memtable *memtable;   /* frozen */
    const struct tn_engine *engine; /* of a memtable that keeps every version */
    bool changelog; /* its versions are a changelog, too; of a resolver: what changed is */
    struct tn_resolver *resolver; /* or NULL; then the next four count for nothing */
    struct tn_letter_sink *letters;
    const struct tn_flush_before *before;
    int64_t sequence_shift;
    struct tn_resolve_counts *counts; /* of a flush that went well */
    const char *dir;                  /* of the bucket */
    const char *uuid;
    uint32_t *counter; /* the next file's number */
    uint32_t block_size;
    uint32_t row_size_max; /* of a row that versions were folded into */
};

struct tn_flush_file {
    bool changelog;
    struct tn_file_meta meta;
    struct tn_flush_file *next;
};

/* CANCELED: the resolver gave up, with its text as it is. `files` (those of the changelog first,
 * each kind in key order) are made in the worker's arena, above its mark: the caller resets it when
 * they are copied. */
TN_MUST_USE tn_rc tn_flush(const struct tn_flush_spec *spec, struct tn_worker *worker,
                           struct tn_flush_file **files, struct tn_err *err);
