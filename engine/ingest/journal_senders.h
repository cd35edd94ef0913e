/* journal_senders: the newest memo of each sender, bounded in number and bytes.
 *
 * In memory as in a file's head (journal_bytes.h): one piece, the sender that is longest unheard of
 * first. When a new one needs room, the first of its own kind goes, or else the first: any number
 * of clients of HTTP makes no broker forgotten. A kind is what stands before the first '/' or ':'
 * of a name. What is kept for good (TN_JOURNAL_KEPT) goes for nobody; its owner knows how much that
 * is, and gives room for it. A look-up walks over all of them.
 */
#pragma once

#include "ingest/journal_bytes.h"

struct tn_journal_senders {
    unsigned char *data;
    size_t size;
    uint32_t count;
    uint32_t count_max;
    uint32_t bytes; /* of names and memos */
    uint32_t bytes_max;
};

/* Bytes at `data` for so many. */
size_t tn_journal_senders_size(uint32_t count_max, uint32_t bytes_max);

/* Name and memo are views that end with the next put. */
TN_MUST_USE bool tn_journal_senders_find(const struct tn_journal_senders *senders,
                                         struct tn_bytes name, struct tn_bytes *memo,
                                         uint64_t *place);

/* Whether it could be put at all. */
bool tn_journal_senders_fits(const struct tn_journal_senders *senders, struct tn_bytes name,
                             struct tn_bytes memo);
/* One that doesn't fit only removes the one before. */
void tn_journal_senders_put(struct tn_journal_senders *senders, struct tn_bytes name,
                            struct tn_bytes memo, uint64_t place);

/* What a memo that `more` is put behind comes to. */
size_t tn_journal_senders_grown(const struct tn_journal_senders *senders, struct tn_bytes name,
                                struct tn_bytes more);
/* Puts `more` behind the sender's memo, which may be none yet, and has it already where its place
 * is no earlier. */
void tn_journal_senders_more(struct tn_journal_senders *senders, struct tn_bytes name,
                             struct tn_bytes more, uint64_t place);

/* What a part of an entry says of a sender, if it does. */
void tn_journal_senders_take(struct tn_journal_senders *senders, const struct tn_journal_part *part,
                             uint64_t place);

/* It is one that is kept for good. */
bool tn_journal_senders_kept(struct tn_bytes name);

/* Puts what a head has, but for what is kept and not `wanted` (NULL: all is). false: it is not what
 * `data` says of itself. */
TN_MUST_USE bool tn_journal_senders_load(struct tn_journal_senders *senders, struct tn_bytes bytes,
                                         bool (*wanted)(void *user, struct tn_bytes name),
                                         void *user);
