/* block_index: with which key each block of a data file begins, so that rows far apart are found
 * without decompressing what lies between.
 *
 *     entry   the first 32 bytes of the order-preserving encoding of the block's first key,
 *             and where the block starts                                          40 bytes
 *
 * An index is made by going through a file once (each block is decompressed, one row of it decoded)
 * and kept by the file's path, since files never change. All indexes lie in one part of fixed size:
 * a file with too many blocks for a quarter of it gets every second one, and so on; when the part
 * fills up everything is forgotten at the next trim. It belongs to one worker.
 */
#pragma once

#include "file/data_reader.h"

enum { TN_BLOCK_INDEX_WORDS = 4 };

struct tn_block_index_entry {
    uint64_t words[TN_BLOCK_INDEX_WORDS]; /* of tn_row_key_word */
    uint64_t offset;                      /* of the block's head in the file */
};

struct tn_block_index {
    struct tn_block_index *next;
    const char *path;
    uint32_t count;
    struct tn_block_index_entry entries[]; /* in key order */
};

struct tn_block_indexes {
    struct tn_arena arena;
    struct tn_block_index *first;
    uint64_t built; /* indexes made so far */
};

void tn_block_indexes_init(struct tn_block_indexes *indexes, void *memory, size_t size);

/* Forgets all when the part is more than half full. Whoever holds an index must have let go. */
void tn_block_indexes_trim(struct tn_block_indexes *indexes);

/* The index of the file that `reader` has open, made if need be (the reader is anywhere then). NULL
 * where the part has no room for it. It lives until the next trim. */
TN_MUST_USE tn_rc tn_block_index_of(struct tn_block_indexes *indexes, struct tn_data_reader *reader,
                                    const struct tn_block_index **index, struct tn_err *err);

/* Where to begin when rows with this key, and all above, are looked for: the last block that surely
 * begins below it, or the first. */
uint64_t tn_block_index_find(const struct tn_block_index *index,
                             const uint64_t words[TN_BLOCK_INDEX_WORDS]);

/* The key's words, as entries have them. */
void tn_block_index_words(const struct tn_read_spec *read, struct tn_row row,
                          uint64_t words[TN_BLOCK_INDEX_WORDS]);
