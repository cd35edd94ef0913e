/* journal_file: files of the journal, on the side of those who read them, and their names.
 *
 * A walk goes over the blocks of one file. Where no whole block is it stops; whether that is the
 * end, or what a power cut left, or damage, it can tell from what is behind.
 */
#pragma once

#include "ingest/journal_bytes.h"

#define TN_JOURNAL_FOLDER ".tarn/journal/"
#define TN_JOURNAL_NEW    TN_JOURNAL_FOLDER "new" /* before it has a name */
#define TN_JOURNAL_LOCK   TN_JOURNAL_FOLDER "lock"

enum { TN_JOURNAL_PATH_SIZE = 64 };

void tn_journal_path(char path[TN_JOURNAL_PATH_SIZE], uint64_t first);

/* The file with the least name from `from` on. ABSENT: there is none. */
TN_MUST_USE tn_rc tn_journal_find(struct tn_io *io, uint64_t from, uint64_t *first,
                                  struct tn_err *err);

/* The head of a file that `find` found; *size may be NULL. CORRUPT also where it is another's. */
TN_MUST_USE tn_rc tn_journal_head_read(struct tn_io *io, uint64_t first,
                                       struct tn_journal_head *head, uint64_t *size,
                                       struct tn_err *err);

struct tn_journal_walk {
    struct tn_io *io;
    struct tn_journal_head head;
    uint64_t size;                      /* bytes of the file */
    uint64_t at;                        /* byte of the next block */
    uint64_t chain;                     /* the place at which what was read so far ends */
    struct tn_journal_block_head block; /* the last one read */
    struct tn_bytes raw;                /* its entries, until the next call */
    unsigned char *stored_memory;
    unsigned char *raw_memory;
    int file; /* -1: closed */
    char path[TN_JOURNAL_PATH_SIZE];
};

/* Takes two of the file's blocks from the arena. */
TN_MUST_USE tn_rc tn_journal_walk_open(struct tn_journal_walk *walk, struct tn_io *io,
                                       uint64_t first, struct tn_arena *arena, struct tn_err *err);
void tn_journal_walk_close(struct tn_journal_walk *walk);

/* The memos of the head, in memory from the arena. */
TN_MUST_USE tn_rc tn_journal_walk_memos(struct tn_journal_walk *walk, struct tn_arena *arena,
                                        struct tn_bytes *memos, struct tn_err *err);

/* Of a block that ends at or before `from` only the head is read, and `raw` is empty. ABSENT: no
 * whole block is here. CORRUPT: it is whole, and can't be what was written. */
TN_MUST_USE tn_rc tn_journal_walk_next(struct tn_journal_walk *walk, uint64_t from,
                                       struct tn_err *err);

/* After ABSENT, in a file with none behind it: OK: what is here, if anything, was never durable.
 * CORRUPT: it was, for a later block is there. */
TN_MUST_USE tn_rc tn_journal_walk_end(struct tn_journal_walk *walk, struct tn_err *err);

/* CORRUPT, with the file and byte where the walk is. */
TN_MUST_USE tn_rc tn_journal_walk_damage(const struct tn_journal_walk *walk, const char *what,
                                         struct tn_err *err);
