/* resolve: a frozen memtable of every version becomes finished rows, one a key.
 *
 *     rows of a key, as they came -> now = resolve(now, row) ... -> what became of the key
 *     the state before            -> was                           |
 *                                                                  +-> rows:    +I, +U, -D
 *                                                                  '-> changes: announce(was),
 * announce(now)
 *
 * Rows in the memtable end with where they came from (tn_origin_put). A row that can't be resolved
 * goes to the letters and changes nothing; so does one whose result can't be announced, or written.
 * A key that ends as it was is written to neither side. The rows' sink gets a finished row with the
 * sequence number of the last row that changed the key; the changes' sink gets what followers see
 * differ.
 */
#pragma once

#include "merge/change.h"
#include "merge/resolve.h"
#include "merge/state.h"
#include "write/memtable.h"

enum { TN_ORIGIN_SIZE_MAX = 16 }; /* behind a row in memory; 7 mostly */

/* Writes it at `at`, and says how long it is. */
uint32_t tn_origin_put(unsigned char *at, const struct tn_origin *origin);
struct tn_origin tn_origin_get(const unsigned char *at);

struct tn_resolve_spec {
    const struct tn_order *order;
    const struct tn_memtable *memtable; /* frozen, sorted, of every version */
    struct tn_resolver *resolver;
    struct tn_letter_sink *letters; /* NULL: a row that can't be resolved is an error */
    struct tn_state *before;
    struct tn_change_sink *rows;
    struct tn_change_sink *changes; /* NULL: nobody is told */
    int64_t sequence_shift;         /* added to each: the state has larger ones */
    uint32_t row_size_max;          /* of a result */
};

struct tn_resolve_counts {
    uint64_t rows; /* that were asked for */
    uint64_t letters;
    uint64_t keys;
    uint64_t written; /* finished rows */
};

/* Bytes of arena that it takes. */
size_t tn_resolve_size(uint32_t row_size_max);

/* Straight-line work for a worker. CANCELED comes from the resolver, and its text as it is. */
TN_MUST_USE tn_rc tn_resolve(const struct tn_resolve_spec *spec, struct tn_arena *arena,
                             struct tn_resolve_counts *counts, struct tn_err *err);
