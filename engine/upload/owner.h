/* owner: who brings a mirror up to date. `.tarn/<db>.<table>/owner` at the target, beside the
 * table:
 *
 *     {"version": 1, "generation": 3, "writer": "<the table's writer>",
 *      "mirror": "<made with the mirror>", "sinceMs": 1790000000000}
 *
 * Two devices that both believe they are the source of one mirror would each publish what the other
 * doesn't have. So who makes a mirror writes itself down, and whoever takes it over (a device that
 * was restored from it) raises the generation. A sync reads it before it publishes, and stops at a
 * generation that isn't the one it knows.
 *
 * A table that many gateways share has the writer "shared": nobody's mirror can be made of it.
 */
#pragma once

#include "upload/target.h"

enum { TN_OWNER_ID_SIZE = 40 };

struct tn_owner {
    int64_t generation; /* from 1 */
    int64_t since_ms;   /* 1970, by the owner's clock */
    char writer[TN_OWNER_ID_SIZE];
    char mirror[TN_OWNER_ID_SIZE]; /* tells this mirror from another one, for a ledger */
};

/* `table` is "db.t". ABSENT: nobody has written itself down; CORRUPT: nothing of use is there. */
TN_MUST_USE tn_rc tn_owner_read(struct tn_target *target, const char *table,
                                struct tn_arena *scratch, struct tn_owner *owner,
                                struct tn_err *err);

/* Writes down the first owner. CONFLICT: somebody else did. */
TN_MUST_USE tn_rc tn_owner_make(struct tn_target *target, const char *table,
                                const struct tn_owner *owner, struct tn_arena *scratch,
                                struct tn_err *err);

/* Writes down that many share the table, or sees that it is. INVALID: it is the mirror of a device.
 * A PUT; a GET where somebody was first. */
TN_MUST_USE tn_rc tn_owner_share(struct tn_target *target, const char *table, int64_t now_ms,
                                 struct tn_arena *scratch, struct tn_err *err);

bool tn_owner_is_shared(const struct tn_owner *owner);

/* INVALID: it is the mirror of a device, which alone writes it. */
tn_rc tn_owner_has_mirror(const struct tn_target *target, const char *table, struct tn_err *err);

/* The owner that was `seen` is followed by `next`: its generation and mirror are set. CONFLICT: it
 * is another one by now. */
TN_MUST_USE tn_rc tn_owner_raise(struct tn_target *target, const char *table,
                                 const struct tn_owner *seen, struct tn_owner *next,
                                 struct tn_arena *scratch, struct tn_err *err);

/* Says CONFLICT: who has it, and since when. */
tn_rc tn_owner_taken(const struct tn_target *target, const struct tn_owner *owner,
                     struct tn_err *err);
