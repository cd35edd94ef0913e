/* state_file: what the `map` of a table that `write` holds keeps (tarn.state), from one call to the
 * next.
 *
 *     record taken --> pieces -- note --> .tarn/<db>.<table>.state-<hash> <-- position "state"
 *
 * The file is durable before the commit whose positions name it, so rows and stores are there
 * together, or neither is; its name is the hash of what it has. A commit may come in the middle of
 * a record, which is mapped again then: what is saved is as it was before that record. Older ones
 * go once they are named by no snapshot that may still be the newest; what a kill leaves, at the
 * next open.
 *
 * The daemon has its own in its journal (keeper.h).
 */
#pragma once

#include "script/script.h"
#include "table/table.h"

enum { TN_STATE_FILE_HASH_SIZE = 17, TN_STATE_FILES = 3 };

struct tn_state_file {
    struct tn_script *script; /* NULL: it keeps nothing, and all below does nothing */
    struct tn_table *table;
    struct tn_io *io;
    char prefix[320];     /* of paths */
    struct tn_buf pieces; /* of the stores, as they were behind the last whole record */
    size_t room;          /* that they have */
    uint32_t count;
    char hashes[TN_STATE_FILES][TN_STATE_FILE_HASH_SIZE]; /* that were noted, the newest last */
    uint64_t cuts;                                        /* when that one was */
};

/* The stores of `script`, which may be NULL, are as the table's newest snapshot knows them. Where
 * that can't be read they are empty, and `say` is told why. The memory is the arena's. */
TN_MUST_USE tn_rc tn_state_file_open(struct tn_state_file *file, struct tn_script *script,
                                     struct tn_table *table, const struct tn_env *env,
                                     const char *name, void (*say)(const char *why),
                                     struct tn_arena *arena, struct tn_err *err);

/* A record was taken, with all its rows. No I/O. */
TN_MUST_USE tn_rc tn_state_file_take(struct tn_state_file *file, struct tn_err *err);

/* A cut comes: the file is written, when something changed, and named in the open round. `cuts` is
 * how many there were before. */
TN_MUST_USE tn_rc tn_state_file_note(struct tn_state_file *file, uint64_t cuts, struct tn_err *err);

/* All that was noted is committed: older ones go. */
void tn_state_file_close(struct tn_state_file *file);
