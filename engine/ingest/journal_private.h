/* journal_private: what the parts of journal share.
 *
 *     journal.c           append, turn: the loop's side
 *     journal_open.c      what is found on disk, and how it goes on
 *     journal_tasks.c     write and trim: the worker's side
 *     journal_read.c      entries out again
 *     journal_file.c      names, heads, blocks of one file (journal_file.h)
 *     journal_senders.c   newest memos (journal_senders.h)
 *     journal_bytes.c     encodings (journal_bytes.h)
 *
 * One block is filled, the other is free or frozen: it waits to get durable. When it is frozen, the
 * head of a file that would begin with it is made as well, since memos of later entries must not
 * get durable before their rows. A write that fails leaves its block frozen, and its file with
 * bytes behind the end; so the next try begins a new file.
 */
#pragma once

#include "ingest/journal_file.h"
#include "ingest/journal_senders.h"

struct tn_journal_block {
    unsigned char *data;
    uint32_t size;
    uint32_t count;
    uint64_t first;
    int64_t since_ns; /* when the first entry came */
};

enum tn_journal_state { TN_JOURNAL_IDLE, TN_JOURNAL_WRITE, TN_JOURNAL_TRIM };

/* What a task changes, for the loop to take over. */
struct tn_journal_outcome {
    uint64_t written;
    uint64_t removed;
    uint64_t first;   /* of a trim */
    uint64_t trim_at; /* likewise */
    uint64_t trim_to; /* what it was asked for */
    bool begun;       /* a file that didn't replace the one before */
};

/* The file that is written. Tasks own it while there is one. */
struct tn_journal_output {
    struct tn_io *io;
    int file;            /* -1: the next write begins one */
    uint64_t file_size;  /* bytes of the newest file */
    uint64_t first;      /* its name; UINT64_MAX: there is none */
    uint64_t after;      /* of the frozen block */
    bool names_unsure;   /* what changed in the folder may not be durable */
    unsigned char *head; /* of a file that begins with the frozen block */
    size_t head_size;
    unsigned char *packed;
    size_t packed_max; /* bytes */
    void *lz4;
};

struct tn_journal {
    struct tn_journal_spec spec;
    char identity[TN_JOURNAL_IDENTITY_SIZE];
    int lock;            /* -1: not taken */
    struct tn_task task; /* while it isn't IDLE */
    enum tn_journal_state state;
    struct tn_journal_outcome outcome;
    struct tn_journal_output out;

    struct tn_journal_block blocks[2];
    uint32_t filling; /* index */
    bool frozen;      /* the other one is */
    struct tn_journal_senders senders;

    uint64_t first;
    uint64_t next;
    uint64_t durable;
    uint64_t readable; /* files are whole up to here */
    uint64_t chain;    /* where the last block that is durable ends: `after` of the next */
    uint64_t size;
    uint64_t trim_at; /* a trim to here removes a file; UINT64_MAX: there is but one */
    uint64_t trim_to;
    uint64_t refused_size; /* of the entry that found no room on disk; 0: the last one did */
    uint64_t refused_memos;

    tn_rc failed; /* of the last write: OK, FULL, IO */
    struct tn_err err;
    int64_t retry_ns; /* FULL: when to try again */
    bool trim_failed; /* since the last call of trim */
};

static inline struct tn_journal_block *tn_journal_frozen(struct tn_journal *journal)
{
    return &journal->blocks[1 - journal->filling];
}

/* Bytes of a head with all memos there can be. */
size_t tn_journal_head_size_max(const struct tn_journal_spec *spec);

/* The filling block is frozen, with a head, and the other one is filled. */
void tn_journal_freeze(struct tn_journal *journal);

/* Writes the frozen block: execute and complete of the write, for open also without a task. */
TN_MUST_USE tn_rc tn_journal_write(struct tn_journal *journal, struct tn_err *err);
void tn_journal_written(struct tn_journal *journal, tn_rc rc, const struct tn_err *err);

/* A file with the head that is prepared, and a block or none; durable when it returns OK. */
TN_MUST_USE tn_rc tn_journal_begin_file(struct tn_journal *journal, uint64_t first,
                                        struct tn_bytes block, struct tn_err *err);

/* The head of a file that begins with places from `first` on, into out.head. */
void tn_journal_prepare_head(struct tn_journal *journal, uint64_t first, uint32_t block_count);

/* Starts the task that is due, if there is none. */
void tn_journal_start_write(struct tn_journal *journal);
void tn_journal_start_trim(struct tn_journal *journal);
