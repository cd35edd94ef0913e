/* data_reader_private: what the files of data_reader.h have in common.
 *
 *     data_block.c    the three buffers, what of the file is in them, and the block at hand
 *     data_reader.c   its rows and keys, seeking, opening
 */
#pragma once

#include "file/data_reader.h"

/* CORRUPT, with the file and the byte. */
TN_MUST_USE tn_rc tn_data_corrupt(const struct tn_data_reader *reader, uint64_t offset,
                                  const char *what, struct tn_err *err);

/* ---- the buffers ---- */

/* From here on they lie above all that the reader took so far. */
void tn_data_buffers_begin(struct tn_data_reader *reader);

/* Drops those above `mark`. Where others' memory lies above them they stay, as buffers that are no
 * part of the stack, which begins anew. */
void tn_data_buffers_drop(struct tn_data_reader *reader, size_t mark);

/* A row of `size` bytes; the block may move, and the cursor with it. */
TN_MUST_USE tn_rc tn_data_buffers_row(struct tn_data_reader *reader, uint64_t size,
                                      struct tn_err *err);

/* Makes bytes of the file visible: at least `size`, which lie inside the file, and up to `ahead`
 * more. */
TN_MUST_USE tn_rc tn_data_look(struct tn_data_reader *reader, uint64_t offset, size_t size,
                               size_t ahead, struct tn_bytes *bytes, struct tn_err *err);

/* ---- blocks ---- */

struct tn_data_block_head {
    int64_t row_count;
    size_t size;     /* bytes, as they are in the file */
    uint64_t offset; /* of the bytes */
    uint64_t next;   /* of the next block's head */
};

/* ABSENT behind the last block. */
TN_MUST_USE tn_rc tn_data_block_head(struct tn_data_reader *reader, uint64_t offset,
                                     struct tn_data_block_head *head, struct tn_err *err);

/* Makes the block at `offset` the one at hand, at its first row. ABSENT behind the last. */
TN_MUST_USE tn_rc tn_data_block_load(struct tn_data_reader *reader, uint64_t offset,
                                     struct tn_err *err);
