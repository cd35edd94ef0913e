/* trial: real rows through a script, which change no table: what `tarn test --rows` shows, and a
 * shadow (shadow.h) counts.
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

/* What is there of a row's key before the first row of it came, valid until the next call; `was`
 * stays as it is when there is nothing. */
typedef tn_rc tn_trial_find_fn(void *user, struct tn_row row, struct tn_row *was,
                               struct tn_err *err);
/* A dead letter's reason. */
typedef void tn_trial_dead_fn(void *user, const char *reason);

struct tn_trial_spec {
    struct tn_script *script; /* loaded with the layout below */
    const struct tn_schema *schema;
    const struct tn_row_layout *layout;
    struct tn_columns keys;    /* none: nothing is merged */
    struct tn_columns late_by; /* what ctx.late goes by; none: no row is late */
    enum tn_input input;       /* json goes to `map` as it stands, of others each row */
    FILE *to;
    bool quiet; /* only count */
    /* For messages (tn_trial_begin); or nothing. */
    enum tn_unknown unknown;
    const enum tn_epoch *epochs; /* NULL: ms */
    struct tn_arena *decoders;   /* nobody else's */
    tn_trial_find_fn *find;
    tn_trial_dead_fn *dead;
    void *user;
};

/* What the table would have of a key. */
struct tn_trial_key {
    uint64_t hash;
    uint32_t size; /* of the row; 0: deleted */
    uint32_t room; /* of its bytes, which are a row in any case */
    unsigned char row[];
};
enum { TN_TRIAL_PLACES = 1 << 16 };

struct tn_trial {
    struct tn_trial_spec spec;
    struct tn_arena *arena;
    struct tn_decoder *decoder;
    struct tn_trial_key **keys;
    uint32_t key_count;
    unsigned char *line;
    struct tn_bytes rest;       /* of the message */
    struct tn_script_meta meta; /* but its position */
    uint64_t outcome;           /* a hash of all that came of the record at hand */
    unsigned char *buffers[4];  /* what map, merge and announce (before, after) gave */
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

/* Records of a message, one by one: the bytes stay until ABSENT, which is behind the last one;
 * blank ones are nothing. Errors as above. */
TN_MUST_USE tn_rc tn_trial_begin(struct tn_trial *trial, enum tn_input input, struct tn_bytes bytes,
                                 struct tn_err *err);
TN_MUST_USE tn_rc tn_trial_next(struct tn_trial *trial, struct tn_err *err);

/* A line for each handler that was called, behind an indent. */
void tn_trial_say_costs(const struct tn_trial *trial, const char *indent, FILE *to);

/* What is there of the key of `row`; NULL: no row of it came. */
const struct tn_trial_key *tn_trial_key_of(const struct tn_trial *trial, struct tn_row row);
