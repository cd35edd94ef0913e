/* journal_bytes: what stands in a file of the journal. Little-endian; memory to memory.
 *
 *     head     "tarnjrnl", checksum, version; places; identity; size and checksum of the memos
 *     memos    place, sizes, name, memo; the sender that is longest unheard of first
 *     block    magic, checksum of head and identity, sizes, checksum of what follows, places; lz4
 *     ...      or, where that is no shorter, the entries as they are
 *
 * A chain of places holds files and blocks together: each says the place at which what stands
 * before it ends (`after`), which is also its own first one but where places were passed over. So a
 * block or file that is missing is noticed, wherever it was.
 */
#pragma once

#include "ingest/journal.h"

enum {
    TN_JOURNAL_HEAD_SIZE = 88,
    TN_JOURNAL_BLOCK_HEAD_SIZE = 40,
    TN_JOURNAL_MEMO_HEAD_SIZE = 14,
    TN_JOURNAL_BLOCK_MAX = 16 << 20, /* bytes of entries */
    TN_JOURNAL_NAME_MAX = 65535,
};
#define TN_JOURNAL_PLACE_MAX ((uint64_t)1 << 62) /* so that no sum of places overflows */

struct tn_journal_head {
    uint64_t first;       /* also the file's name */
    uint64_t after;       /* files before it are of use up to here */
    uint32_t block_size;  /* of its blocks at most */
    uint32_t block_count; /* those that were there when it got its name: 0 or 1 */
    uint32_t memos_size;
    uint32_t memos_crc;
    char identity[TN_JOURNAL_IDENTITY_SIZE];
};

struct tn_journal_block_head {
    uint64_t after;
    uint64_t first;
    uint32_t count; /* entries, whose places follow each other */
    uint32_t raw_size;
    uint32_t stored_size; /* as large as raw_size: not compressed */
    uint32_t crc;
};

void tn_journal_head_encode(const struct tn_journal_head *head,
                            unsigned char bytes[TN_JOURNAL_HEAD_SIZE]);
/* CORRUPT and UNSUPPORTED say why, but not in which file. */
TN_MUST_USE tn_rc tn_journal_head_decode(const unsigned char bytes[TN_JOURNAL_HEAD_SIZE],
                                         struct tn_journal_head *head, struct tn_err *err);

/* The identity is part of the checksum: nobody who only sends data can write what looks like a
 * head, and no head of another journal counts. */
void tn_journal_block_head_encode(const struct tn_journal_block_head *block, const char *identity,
                                  unsigned char bytes[TN_JOURNAL_BLOCK_HEAD_SIZE]);
/* false: there is no head of a block here. */
bool tn_journal_block_head_decode(const unsigned char bytes[TN_JOURNAL_BLOCK_HEAD_SIZE],
                                  const char *identity, struct tn_journal_block_head *block);

/* Bytes of an entry; UINT64_MAX: one of its parts is longer than any may be. */
uint64_t tn_journal_entry_size(const struct tn_journal_part *parts, uint32_t count);
/* `to` has so many bytes. */
void tn_journal_entry_encode(const struct tn_journal_part *parts, uint32_t count,
                             unsigned char *to);
/* Takes the first entry of `rest`, which is not empty; the parts are views into it. false: it is
 * none. */
bool tn_journal_entry_next(struct tn_bytes *rest,
                           struct tn_journal_part parts[TN_JOURNAL_PARTS_MAX], uint32_t *count);
