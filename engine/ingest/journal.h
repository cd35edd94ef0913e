/* journal: what came from sources that can't be rewound, on disk until tables have it.
 *
 *     append -> block in memory -- turn: lz4, write, sync (a task) --> durable
 *                                                    trim <-- committed by all, a round ago
 *
 * A file of it, `.tarn/journal/<first place>`, begins with the journal's identity and the memos of
 * all senders, so that files before it can go; then blocks: lz4, with their length and checksum,
 * of entries. An entry is what one message brought: parts that count together or not at all. Its
 * place is a number that grows by what is appended, in this process and those after it; a place
 * under another identity means nothing.
 *
 * Cut the power anywhere: everything up to the durable place is there; what is behind it is there
 * in whole entries, from the front, or not at all. A block that is torn ends the journal; one that
 * is damaged in the middle, with others behind it, is CORRUPT and named, for rows would be lost.
 * (Of the very last block nobody can tell the two apart.)
 *
 * A file gets its name once its head and first block are on disk, so a head that is not whole is
 * damage, too. Each process begins a file of its own, with a copy of the last block that it found:
 * nothing is appended behind what may be torn, and nothing is called durable because an earlier
 * process wrote it, whose sync may have failed.
 *
 * Rows may be in a table before their block is durable. So whoever commits waits until
 * tn_journal_durable is above the places that the snapshot is to name; and, should it ever not, the
 * spec's `floor` keeps places that a table knows from being given to other entries.
 *
 * Memory is two blocks and their bound, the context of lz4, and the senders' table twice, from the
 * arena that open is given; disk is bounded by size_max. When either is used up append says AGAIN.
 * The loop's thread only.
 */
#pragma once

#include "base/arena.h"
#include "base/exec.h"
#include "io/clock.h"
#include "io/io.h"

enum { TN_JOURNAL_IDENTITY_SIZE = 40, TN_JOURNAL_PARTS_MAX = 4 };

enum tn_journal_kind {
    TN_JOURNAL_ROWS = 1, /* name: the table; data: its rows, as the hub packs them */
    TN_JOURNAL_MEMO = 2, /* name: the sender; data: its memo, which replaces the one before */
    TN_JOURNAL_MORE = 3, /* likewise, but its memo is the one before with this behind it */
};

/* Memos of names that begin so are kept for good: no sender's makes one go. */
#define TN_JOURNAL_KEPT "keep:"

struct tn_journal_part {
    enum tn_journal_kind kind;
    struct tn_bytes name; /* at most 64 KiB */
    struct tn_bytes data;
};

struct tn_journal_spec {
    struct tn_io *io;
    struct tn_clock *clock;
    struct tn_exec *exec; /* the SYNC lane */
    const char *who;      /* what the lock says, to another process; NULL: "tarn" */
    uint64_t floor;       /* no new entry gets a place below: one above the largest that a table
                             names, under whichever identity; 0: none does */
    uint32_t block_size;  /* bytes of a block; the longest entry fits one */
    uint64_t file_size;   /* a new file is begun at about this size */
    uint64_t size_max;    /* of all files together: file_size, 3 blocks and 3 times all memos, or
                             more */
    uint32_t sync_ms;     /* what was appended is synced after as long, */
    uint32_t sync_bytes;  /* or once it is so much */
    uint32_t sender_max;  /* memos; when there are more, one of the same kind goes, that which is
                             longest unheard of (journal_senders.h) */
    uint32_t memo_bytes;  /* of all memos and names together, likewise */
    /* Whether somebody wants what is kept for good under this name; it goes where nobody does.
     * NULL: all is wanted. */
    bool (*wanted)(void *user, struct tn_bytes name);
    void *user;
};

struct tn_journal;

/* Bytes of arena that open takes; those of two blocks and of all memos are given back at its end.
 * Files that were written under a larger block_size or memo_bytes need more. */
size_t tn_journal_memory(const struct tn_journal_spec *spec);

/* Finds the files, or makes the first. Reads memos and the last file's blocks; rows are read by
 * tn_journal_read. Blocking I/O. CORRUPT: damage in the middle: the text says the file and byte.
 * INVALID: what is wrong with the spec. EXISTS: another process has it open. FULL: there is no room
 * for a first file; where there are files, the journal opens on a full disk, too, and says FULL at
 * its turns. */
TN_MUST_USE tn_rc tn_journal_open(struct tn_journal **journal, const struct tn_journal_spec *spec,
                                  struct tn_arena *arena, struct tn_err *err);
/* No task may be under way. What is not durable is lost. */
void tn_journal_close(struct tn_journal *journal);

const char *tn_journal_identity(const struct tn_journal *journal);
/* All entries at or above this place are kept; those of its file may be older than wanted. */
uint64_t tn_journal_first(const struct tn_journal *journal);
uint64_t tn_journal_next(const struct tn_journal *journal); /* of the entry that comes next */
/* All entries before this place are durable. */
uint64_t tn_journal_durable(const struct tn_journal *journal);
uint64_t tn_journal_size(const struct tn_journal *journal); /* bytes on disk */

/* `*place` is the entry's; it is durable once tn_journal_durable is above. AGAIN: a sync is under
 * way and the block full, or the disk's share is used up: see tn_journal_full. INVALID: longer than
 * a block, or a memo that is larger than all may be. IO: see turn. No allocation, no I/O; a full
 * block's task is started. */
TN_MUST_USE tn_rc tn_journal_append(struct tn_journal *journal, const struct tn_journal_part *parts,
                                    uint32_t count, uint64_t *place, struct tn_err *err);
/* The last append found no room, and only a trim makes some. */
bool tn_journal_full(const struct tn_journal *journal);

/* Starts the write and sync that is due; with `now` also one that isn't. The error is that of the
 * last one that failed: FULL: it is tried again by later turns; IO: nothing can be appended any
 * more, since what a failed sync covered may never get there. `*wait_ms`: when to turn again;
 * UINT32_MAX: not before something is appended or a task ends. */
TN_MUST_USE tn_rc tn_journal_turn(struct tn_journal *journal, bool now, uint32_t *wait_ms,
                                  struct tn_err *err);

/* The newest memo of a sender, until the next append, and the place of its entry. ABSENT: none. */
TN_MUST_USE tn_rc tn_journal_memo(const struct tn_journal *journal, struct tn_bytes sender,
                                  struct tn_bytes *memo, uint64_t *place);

/* Nobody wants what is before `place`: whole files go, in a task. One that fails is tried again by
 * the next trim. */
void tn_journal_trim(struct tn_journal *journal, uint64_t place);

/* Walks entries that are on disk, from the first at or above `from` on, those not durable yet
 * aside; of the block that open found last it needs no second sync. `each` may say AGAIN: the walk
 * ends with it, and begins at *next later. Other errors of `each` end it, too. Blocking I/O, two
 * blocks of memory from the arena, given back. No task may be under way. ABSENT: `from` is before
 * the oldest that is kept. */
typedef tn_rc tn_journal_each(void *user, uint64_t place, const struct tn_journal_part *parts,
                              uint32_t count, struct tn_err *err);
TN_MUST_USE tn_rc tn_journal_read(struct tn_journal *journal, uint64_t from, uint64_t *next,
                                  tn_journal_each *each, void *user, struct tn_arena *arena,
                                  struct tn_err *err);
