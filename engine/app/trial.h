/* trial: real rows through a script, without a table: what `tarn test --rows` shows.
 *
 * Each record goes through `map` (as in app/mapper.h), each row of it through `merge` or `retract`
 * beside what its key has so far, and the change through `announce`. What a table would keep is
 * kept in memory, by key.
 *
 *     7 +I {"dev":"a","temp":20.5}
 *         table: +U {"dev":"a","temp":20.5,"temp_max":21.0}
 *         told:  nothing
 */
#pragma once

#include <stdio.h>

#include "ingest/decode.h"
#include "script/script.h"

enum { TN_TRIAL_ROW_SIZE_MAX = 64 * 1024 };

/* Of one handler. */
struct tn_trial_cost {
    uint64_t calls;
    uint64_t ns;
    uint64_t bytes; /* allocated in the state */
};

struct tn_trial_spec {
    struct tn_script *script; /* loaded with the layout below */
    const struct tn_schema *schema;
    const struct tn_row_layout *layout;
    struct tn_columns keys;    /* none: nothing is merged */
    struct tn_columns late_by; /* what ctx.late goes by; none: no row is late */
    enum tn_input input;       /* json goes to `map` as it stands, of others each row */
    FILE *to;
    bool quiet; /* only count */
};

struct tn_trial_key; /* trial.c */

struct tn_trial {
    struct tn_trial_spec spec;
    struct tn_arena *arena;
    struct tn_decoder *decoder;
    struct tn_trial_key **keys;
    uint32_t key_count;
    unsigned char *line;
    unsigned char *buffers[4]; /* what map, merge and announce (before, after) gave */
    uint64_t line_number;
    uint64_t records;
    uint64_t dead;
    uint64_t changed; /* rows that changed the table */
    uint64_t told;    /* changes that followers would see */
    struct tn_trial_cost costs[TN_SCRIPT_HANDLER_COUNT];
};

/* The arena gives 900 KB, and what the keys' rows need. */
TN_MUST_USE tn_rc tn_trial_open(struct tn_trial *trial, const struct tn_trial_spec *spec,
                                struct tn_arena *arena, struct tn_err *err);

/* All records of a file. AGAIN: the keys don't fit the memory. */
TN_MUST_USE tn_rc tn_trial_run(struct tn_trial *trial, FILE *from, struct tn_err *err);
