/* told: up to which snapshot of each table it was told that a lake has it, in a small file a lake:
 * `.tarn/lakes/<name>.told`, a line a table:
 *
 *     17 plant.readings
 *
 * It is written after it was told, so that after a cut a snapshot is told of again and none is left
 * out. Whoever finds it unreadable tells all again.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"

enum { TN_TOLD_UNKNOWN = -1, TN_TOLD_SIZE_MAX = 1 << 20 };

struct tn_told_entry {
    const char *table;
    int64_t id; /* UNKNOWN: nothing is said of the table */
};

/* Fills in the ids. ABSENT: there is no file, and nothing is known; CORRUPT: it is none, and each
 * id is 0. */
TN_MUST_USE tn_rc tn_told_load(struct tn_told_entry *entries, uint32_t count, struct tn_io *io,
                               const char *lake, struct tn_arena *scratch, struct tn_err *err);
/* Ids that are known; tables that aren't among the entries are forgotten. Durable when it returns.
 */
TN_MUST_USE tn_rc tn_told_save(const struct tn_told_entry *entries, uint32_t count,
                               struct tn_io *io, const char *lake, struct tn_arena *scratch,
                               struct tn_err *err);
