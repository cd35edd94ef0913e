/* data_reader: one avro data file as a cursor.
 *
 * Rows come packed in the layout that the caller reads in, which may be part of the table's
 * columns; columns are matched by field id through the schema the file was written with, then by
 * that schema's name in the file (a column that the file lacks is NULL, one whose type was changed
 * since is cast; a value that can't be is CORRUPT, by file, column and value, when its row comes
 * out of next). The `_KEY_` columns are never used: keys are taken from the values.
 *
 * Memory, all from the worker's arena: the plan, and above it three buffers in this order:
 *
 *     compressed block | raw block | packed row
 *
 * Sizes come from the file's own block heads, bounded first. A buffer that has to grow drops those
 * behind it, which hold nothing any more; where the row finds no room the raw block moves over the
 * compressed one. So twice the largest block is enough, and blocks that grow waste nothing, as long
 * as nobody else takes memory above; then a larger buffer takes new memory. Close gives nothing
 * back: who opened resets the arena. Deflate and bzip2 need room while a block is decompressed.
 *
 * `tell` names the row that `next` will give; a reader that is opened later with that position goes
 * on there.
 */
#pragma once

#include "base/arena.h"
#include "file/data_plan.h"
#include "file/worker.h"
#include "format/avro.h"
#include "merge/iter.h"
#include "schema/schema.h"

struct tn_data_position {
    uint64_t block_offset; /* of the block's head in the file; 0: the first block */
    uint64_t row;          /* in that block */
};

struct tn_data_blocks; /* data_reader.c: where some blocks start */

struct tn_data_reader {
    struct tn_iter iter; /* first */
    struct tn_worker *worker;
    const struct tn_read_spec *read;
    const char *path;
    int file;
    bool keyed; /* the file has _SEQUENCE_NUMBER and _VALUE_KIND */
    int32_t level;
    uint64_t file_size;
    struct tn_avro_header header; /* without its schema */
    struct tn_data_plan plan;
    struct tn_buf
        packed; /* a window on the file: compressed block, sync, and the next block's head */
    uint64_t packed_offset;           /* of its first byte in the file */
    struct tn_buf raw;                /* decompressed block */
    struct tn_bytes block;            /* raw, or in files without compression a part of packed */
    struct tn_avro_cursor cursor;     /* in block */
    struct tn_avro_cursor behind_key; /* of the row whose key was looked at */
    int64_t rows_left;                /* in the block at hand */
    struct tn_data_position position;
    uint64_t next_block; /* offset */
    unsigned char *row;
    uint32_t row_capacity;
    unsigned char *row_small; /* beside the plan: short rows need no other */
    uint32_t row_small_capacity;
    /* Marks of the arena. */
    size_t base;       /* behind the plan */
    size_t packed_end; /* base when the window is the first, which lies below it */
    size_t raw_end;
    size_t top;           /* where the arena ends, unless somebody else took of it */
    int64_t row_sequence; /* append files: counts rows */
    bool keep_bad;        /* a value that can't be cast is told in tn_kv.bad: set after open */
    char *bad;            /* that text, in files that have casts */
    struct tn_data_blocks *blocks; /* made by the first seek */
};

/* `file_schema` is schema-<_SCHEMA_ID of the file>. `file_size` from the manifest bounds what is
 * read (blocks that start behind it are not). All pointers live until close. CORRUPT names file and
 * byte. */
TN_MUST_USE tn_rc tn_data_reader_open(struct tn_data_reader *reader, const char *path,
                                      int64_t file_size, int32_t level,
                                      const struct tn_schema *file_schema,
                                      const struct tn_read_spec *read, struct tn_worker *worker,
                                      struct tn_err *err);

/* Moves to a position that tell gave for this file. */
TN_MUST_USE tn_rc tn_data_reader_resume(struct tn_data_reader *reader,
                                        struct tn_data_position position, struct tn_err *err);
static inline struct tn_data_position tn_data_reader_tell(const struct tn_data_reader *reader)
{
    return reader->position;
}

/* The key of the row that next will give, in a row whose other columns are empty; it lives until
 * the next call. ABSENT at the end. Only in files with keys. */
TN_MUST_USE tn_rc tn_data_reader_key(struct tn_data_reader *reader, struct tn_row *key,
                                     struct tn_err *err);
/* Passes over the rows whose keys are below that of `key`, a row of the layout, and adds their
 * number to `*passed`. ABSENT: no other is left. */
TN_MUST_USE tn_rc tn_data_reader_pass_below(struct tn_data_reader *reader, struct tn_row key,
                                            uint64_t *passed, struct tn_err *err);
/* Goes on behind the row whose key was looked at last, without decoding the rest of it. */
TN_MUST_USE tn_rc tn_data_reader_pass(struct tn_data_reader *reader, struct tn_err *err);

/* The iter's seek hops over block heads once and bisects from then on: one small read a block, then
 * log2(blocks) decoded. Only in files with keys. */
