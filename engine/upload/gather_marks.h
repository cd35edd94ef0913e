/* gather_marks: which entries of each gateway are in the table, by their ids, so that one that is
 * found again is known, however late: `.tarn/<db>.<table>/gathered/<number>`
 *
 *     tarn-gathered 1 <after> <gateways> <crc32> <uuid>
 *     <gateway> <done> <hash> <intent> <hash>
 *
 * A gather writes the next number before it commits: up to `intent` it is about to commit, up to
 * `done` all is committed, or was put aside. So an entry above `intent` is in no snapshot, ever;
 * one up to `done` needs no commit; and for those between, which a gather that ended in the middle
 * leaves, the snapshots above `after` tell. An entry is removed from the inbox only when it is sure
 * that the table keeps it, and that counts as done only when all earlier ones of its gateway are
 * done: so where none is left up to `intent`, all of them are in.
 *
 * Numbers are made like snapshots: by a name that isn't there, by someone who has the one before.
 * No two texts are the same, by a UUID: so nobody takes another's for its own, of which the answer
 * was lost. Earlier ones have none.
 */
#pragma once

#include "base/hash.h"
#include "file/worker.h"
#include "upload/inbox.h"

enum { TN_GATHER_GATEWAYS_MAX = 1024 };

struct tn_gather_mark {
    char gateway[TN_INBOX_GATEWAY_SIZE];
    int64_t done; /* -1: nothing */
    struct tn_hash_128 done_hash;
    int64_t intent; /* >= done */
    struct tn_hash_128 intent_hash;
};

struct tn_gather_marks {
    int64_t number;               /* of the newest file; 0: none */
    int64_t after;                /* what was begun and isn't done is above it, or nowhere */
    struct tn_gather_mark *marks; /* sorted by gateway */
    uint32_t count;
    bool read;
};

/* Room for TN_GATHER_GATEWAYS_MAX, in the arena: some 128 KiB. AGAIN. */
TN_MUST_USE tn_rc tn_gather_marks_init(struct tn_gather_marks *marks, struct tn_arena *arena,
                                       struct tn_err *err);

/* The newest file. CORRUPT: it can't be read, and so nobody knows what is in the table. */
TN_MUST_USE tn_rc tn_gather_marks_read(struct tn_gather_marks *marks, const char *table,
                                       struct tn_worker *worker, struct tn_err *err);

/* The next one, durable when it returns; older ones go. CONFLICT: another gather wrote, what is
 * here must be read again. */
TN_MUST_USE tn_rc tn_gather_marks_write(struct tn_gather_marks *marks, const char *table,
                                        struct tn_worker *worker, struct tn_err *err);

/* Its mark; a new one has nothing done. NULL: there are too many. */
struct tn_gather_mark *tn_gather_mark_of(struct tn_gather_marks *marks, const char *gateway);
