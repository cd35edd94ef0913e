/* data_writer: rows in key order into one avro data file, with everything its metadata must say.
 *
 *     begin -> add* -> finish              the file is closed and described, not synced
 *              add* -> rest -> wake -> add*    between slices of a compaction: the block is
 *                                          ended, the file closed; the struct and `state` remain
 *              abort                       the file is removed
 *
 * A block ends when its raw bytes reach block_size, or where a long row finds no room behind
 * others: a row larger than block_size has a block of its own. Of the rows nothing is kept but the
 * first and the last key, so a writer that rests needs little memory whatever the rows' size. The
 * order of rows (ascending keys, each once unless `repeated`) is checked on every add.
 */
#pragma once

#include "base/arena.h"
#include "file/data_encode.h"
#include "file/data_key.h"
#include "file/meta.h"
#include "file/stats.h"
#include "file/worker.h"
#include "merge/iter.h"
#include "schema/options.h"
#include "schema/schema.h"

enum {
    TN_DATA_PATH_MAX = 1024, /* bytes of dir and name */
    /* Rows from one look at the file's size to the next. Paimon: RollingFileWriter */
    TN_DATA_ROLL_ROWS = 1000,
};

struct tn_data_writer_spec {
    const struct tn_schema *schema;
    const struct tn_options *options;
    const struct tn_row_layout *layout; /* of the whole schema: packed rows come in this */
    struct tn_columns keys;             /* trimmed primary key; count 0 for append tables */
    const char *dir;  /* the bucket's folder, final '/'; lives as long as the writer */
    const char *name; /* bare file name, likewise */
    int32_t level;
    int32_t source;      /* 0 APPEND, 1 COMPACT */
    bool repeated;       /* a key may come more than once: changelogs */
    uint32_t block_size; /* raw bytes a block aims at */
};

struct tn_data_writer {
    struct tn_data_writer_spec spec;
    struct tn_stats_collector stats;
    struct tn_io *io;
    const char *path;                  /* dir and name, in `state` memory */
    const struct tn_encode_plan *plan; /* likewise */
    struct tn_worker *worker;          /* NULL while resting */
    struct tn_buf block;               /* raw rows, in the worker's arena */
    struct tn_buf packed;              /* one compressed block with its head and sync */
    size_t buffers_size;               /* of both; at finish they are scratch memory */
    struct tn_buf min_key;             /* BinaryRow, in `state` memory */
    unsigned char sync[16];
    int file;
    int64_t file_size;
    int64_t row_count;
    int64_t block_row_count;
    int64_t delete_row_count;
    int64_t min_sequence;
    int64_t max_sequence;
    uint32_t row_size_max;
    uint32_t key_size_max;
    size_t record_fixed; /* the most a record takes beside the bytes of its byte columns */
    /* A copy, for the order check and the last key: of long rows without other bytes than keys'. */
    unsigned char *last_row;
    uint32_t last_row_size;
    uint32_t last_row_room;
    uint64_t last_prefix;
};

/* The largest raw block that a writer may make: what the worker's codec must be made for. */
size_t tn_data_writer_block_max(const struct tn_row_layout *layout, uint32_t block_size,
                                uint32_t row_size_max);

/* Bytes of worker arena a writer takes at begin and at wake. It gives nothing back: once the writer
 * has rested, finished or aborted, whoever began or woke it resets the arena to where it was.
 * Deflate's state, 270 KB for the time of a call, is in it where the options ask for that codec. */
size_t tn_data_writer_size(const struct tn_row_layout *layout, const struct tn_options *options,
                           uint32_t block_size, uint32_t row_size_max);

/* Bytes of `state`. */
size_t tn_data_writer_state_size(const struct tn_row_layout *layout,
                                 const struct tn_options *options, uint32_t row_size_max);

/* Creates the file, and its folder when there is none, and writes its head. `state` lives until
 * finish or abort; after an error there is no file and nothing to abort. UNSUPPORTED when a
 * column's name is none that avro knows, or a type is one that is not written. */
TN_MUST_USE tn_rc tn_data_writer_begin(struct tn_data_writer *writer,
                                       const struct tn_data_writer_spec *spec,
                                       struct tn_worker *worker, uint32_t row_size_max,
                                       struct tn_arena *state, struct tn_err *err);

/* Adds one row. Costs the encode and, once a block, compression and one append. INVALID (nothing
 * was added) when the row is larger than row_size_max, its key than TN_DATA_KEY_MAX, or a timestamp
 * has no microseconds of 64 bits; after any other error the writer can only be aborted. */
TN_MUST_USE tn_rc tn_data_writer_add(struct tn_data_writer *writer, const struct tn_kv *kv,
                                     struct tn_err *err);

/* Whether the file is to be finished and another begun. */
static inline bool tn_data_writer_full(const struct tn_data_writer *writer)
{
    return writer->row_count % TN_DATA_ROLL_ROWS == 0 && writer->row_count > 0 &&
           writer->file_size >= writer->spec.options->target_file_size;
}

TN_MUST_USE tn_rc tn_data_writer_rest(struct tn_data_writer *writer, struct tn_err *err);
TN_MUST_USE tn_rc tn_data_writer_wake(struct tn_data_writer *writer, struct tn_worker *worker,
                                      struct tn_err *err);

/* Ends the file, which must have rows: no rows have no keys. `meta` is made in `arena`. After an
 * error the writer is to be aborted. */
TN_MUST_USE tn_rc tn_data_writer_finish(struct tn_data_writer *writer, struct tn_arena *arena,
                                        struct tn_file_meta *meta, struct tn_err *err);
void tn_data_writer_abort(struct tn_data_writer *writer);
