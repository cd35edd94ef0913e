/* ledger: what is known of a mirror without asking it, a small file a lake at the source:
 * `.tarn/<db>.<table>.<lake>.ledger`.
 *
 *     {"version": 1, "have": 17, "hash": "<of snapshot-17>", "schema": 2, "sending": 18,
 *      "sinceMs": ..., "checkedMs": ..., "generation": 1, "writer": "...",
 *      "mirror": "...", "ownerSinceMs": ..., "tags": "<hash of all>", "deniedMs": ..., "first": 3,
 *      "firstMs": ..., "overwrite": 0, "overwriteNext": 4}
 *
 * It is written before a sync sends its first file (`sending` is set) and at its end (it is 0). One
 * that says `sending` belongs to a sync that was cut: what it published since is asked for, also
 * when nothing else of it is right any more, since no hint names what stands behind a gap. A lost
 * one costs some questions; and a snapshot behind which a sync was cut before EARLIEST had passed
 * the gap in front of it is seen with the next one only.
 */
#pragma once

#include "base/hash.h"
#include "upload/owner.h"

struct tn_ledger {
    int64_t have;            /* newest snapshot there; 0: none */
    struct tn_hash_128 hash; /* of its text */
    int64_t schema;          /* those up to it are there; -1: none */
    int64_t sending;         /* being sent when a sync was cut; 0: none */
    int64_t since_ms;        /* when its first file went */
    int64_t checked_ms;      /* when the owner was asked for last */
    struct tn_owner owner;   /* as it was then; generation 0: never */
    bool tags_known;
    struct tn_hash_128 tags; /* of the source's, when the last of them were brought or removed */
    int64_t tags_next;       /* those of snapshots from this one on weren't; 0: all were */
    int64_t denied_ms;       /* when tags were to be removed and might not be; 0: there are none */
    int64_t first;           /* oldest snapshot that is kept there; 0: not known */
    int64_t first_ms;        /* when it was committed; 0: not known */
    bool below;              /* older ones are to go */
    int64_t wait_ms;         /* until then nothing can go; 0: who knows */
    bool overwrite_known;
    int64_t overwrite;      /* newest OVERWRITE there; 0: there is none */
    int64_t overwrite_next; /* not known: it is this one or an older one; 0: who knows */
};

/* ABSENT: there is none, or nothing of use is in it. */
TN_MUST_USE tn_rc tn_ledger_read(struct tn_io *io, const char *table, const char *lake,
                                 struct tn_arena *scratch, struct tn_ledger *ledger,
                                 struct tn_err *err);
/* Durable when it returns. */
TN_MUST_USE tn_rc tn_ledger_write(struct tn_io *io, const char *table, const char *lake,
                                  const struct tn_ledger *ledger, struct tn_arena *scratch,
                                  struct tn_err *err);
