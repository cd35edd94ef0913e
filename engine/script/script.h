/* script: what a person's script decides: its handlers, called with packed rows.
 *
 *     rc = tn_vm_open(&vm, &vm_spec, err);             one for each script and worker
 *     rc = tn_script_load(&script, &vm, &spec, err);   runs its m.test, too
 *     if (tn_script_has(&script, TN_SCRIPT_MERGE)) {
 *         rc = tn_script_merge(&script, &now, row, &ctx, &verdict, &out, err);
 *     }
 *
 * Vm and script stay where they are from then on. Threads may take turns with them.
 *
 * A handler is a decision: values in, a value out. What it returns is checked against the columns
 * before it counts (names, types, NOT NULL, the key), and the row is written into the caller's
 * buffer; the rows that came in are never changed.
 *
 * INVALID: the script failed on this row (an error, a wrong result, a budget), `err` says
 * "fold.lua:12: why", and nothing else happened: the row is a dead letter, the next call is as good
 * as ever. AGAIN: `out` is too small. CANCELED: the script is parked, after TN_SCRIPT_FAILURES_MAX
 * failures in a row; nothing is called until tn_script_resume.
 *
 * The same rows in the same order give the same answers, as long as a script does not walk over its
 * own tables with pairs(): Lua's order of text keys differs from run to run. pairs(row) has the
 * order of the columns.
 */
#pragma once

#include "schema/default.h"
#include "schema/row.h"
#include "script/row.h"
#include "script/vm.h"

enum tn_script_handler {
    TN_SCRIPT_MAP,
    TN_SCRIPT_MERGE,
    TN_SCRIPT_RETRACT,
    TN_SCRIPT_ANNOUNCE,
    TN_SCRIPT_UPLOAD,
    TN_SCRIPT_UPLOADED,
    TN_SCRIPT_HANDLER_COUNT,
};
const char *tn_script_handler_name(enum tn_script_handler handler); /* "merge" */

enum {
    TN_SCRIPT_FAILURES_MAX = 100,
    TN_SCRIPT_DIGEST_SIZE = 65, /* SHA-256 in hex, with a zero */
    TN_SCRIPT_CASES_MAX = 1000,
};

struct tn_script_spec {
    const char *path; /* in the folder of the vm's io; the name in errors */
    /* Columns of the rows; kept by pointer. NULL: rows are plain tables, and only the script's own
     * cases can be run. */
    const struct tn_row_layout *layout;
    struct tn_columns keys;         /* columns that no handler may change */
    struct tn_default_row defaults; /* what `map` leaves NULL gets; kept by pointer */
    const char *table;              /* ctx.table */
    uint32_t row_size_max;          /* bytes packed; 0: no limit of its own */
    bool skip_cases; /* m.test is not run at load: `tarn test` does that case by case */
};

/* What `merge` and `retract` are told besides the rows. */
struct tn_script_ctx {
    enum tn_row_kind kind; /* of the row that came: never -U */
    int64_t sequence;
    bool late; /* older than what is there, by tarn.sequence.field */
};

/* Where a record came from. */
struct tn_script_meta {
    const char *topic; /* "plant/boiler/temp", or NULL */
    int64_t received_ms;
    const char *clock;  /* "synced", "unset" or "stepped" */
    const char *source; /* or NULL */
    int64_t position;   /* of the record in its source */
};

enum tn_script_verdict { TN_SCRIPT_KEEP, TN_SCRIPT_DELETE, TN_SCRIPT_ROW };

struct tn_script_fold; /* script.c: a column's own merge function */

struct tn_script {
    struct tn_vm *vm;
    struct tn_script_spec spec;
    char digest[TN_SCRIPT_DIGEST_SIZE];
    uint32_t case_count;
    uint64_t calls;
    uint64_t failures;
    uint32_t failures_in_row;
    char failure[TN_ERR_TEXT_SIZE]; /* the newest one's text */
    /* private: what lies in the state */
    int handlers[TN_SCRIPT_HANDLER_COUNT]; /* references; 0: there is none */
    char places[TN_SCRIPT_HANDLER_COUNT][TN_VM_PLACE_SIZE];
    int cases;
    const struct tn_script_fold *folds; /* where m.merge is a table of columns */
    uint32_t fold_count;
    struct tn_script_shape *shape;
    struct tn_script_row *now; /* handles, used again for each call */
    struct tn_script_row *row;
    struct tn_script_row *made; /* of a result that is a plain table */
    int now_at, row_at, made_at, ctx_at;
    int state_at, undo_at;   /* the module tarn.state, and what can be taken back */
    uint32_t state_size_max; /* bytes of a piece that is all; 0: it has no stores */
    const void *keep;
    const void *remove;
    struct tn_script_ctx ctx;       /* of the call that runs */
    enum tn_script_handler calling; /* of those that get a ctx */
};

/* Loads the file, takes its handlers, and (unless skip_cases) runs its cases. INVALID: the file, a
 * handler's type, a column that isn't there, or the case that failed. The vm must be fresh, and is
 * of no use after a failure. */
TN_MUST_USE tn_rc tn_script_load(struct tn_script *script, struct tn_vm *vm,
                                 const struct tn_script_spec *spec, struct tn_err *err);

static inline bool tn_script_has(const struct tn_script *script, enum tn_script_handler handler)
{
    return script->handlers[handler] != 0;
}

/* What is true of a key when `row` (+I, +U) comes. `now` is NULL when there is nothing. ROW:
 * appended to `out`, which must not hold `now` or `row`; it may be a row equal to `now`. */
TN_MUST_USE tn_rc tn_script_merge(struct tn_script *script, const struct tn_row *now,
                                  struct tn_row row, const struct tn_script_ctx *ctx,
                                  enum tn_script_verdict *verdict, struct tn_buf *out,
                                  struct tn_err *err);

/* The same when a delete (-D) comes; DELETE where the script has no `retract`. */
TN_MUST_USE tn_rc tn_script_retract(struct tn_script *script, const struct tn_row *now,
                                    struct tn_row row, const struct tn_script_ctx *ctx,
                                    enum tn_script_verdict *verdict, struct tn_buf *out,
                                    struct tn_err *err);

/* The image of a row that followers may see, appended to `out`; *shown false: none. Where the
 * script has no `announce` it is the row itself. */
TN_MUST_USE tn_rc tn_script_announce(struct tn_script *script, struct tn_row row, bool *shown,
                                     struct tn_buf *out, struct tn_err *err);

/* The rows that `map` makes of a row, appended to `out` as tn_script_next_row reads them: `*count`
 * of them, maybe none. They are as rows of a record: a column with a default is not NULL in them.
 * Without a `map`: the row itself. */
TN_MUST_USE tn_rc tn_script_map(struct tn_script *script, struct tn_row row,
                                const struct tn_script_meta *meta, uint32_t *count,
                                struct tn_buf *out, struct tn_err *err);
/* The same of a record of JSON, which may have any members: `map` gets it as a table. The script
 * must have a `map`. */
TN_MUST_USE tn_rc tn_script_map_json(struct tn_script *script, struct tn_bytes record,
                                     const struct tn_script_meta *meta, uint32_t *count,
                                     struct tn_buf *out, struct tn_err *err);
/* Takes the first row off; false when there is none. */
bool tn_script_next_row(struct tn_bytes *rows, struct tn_row *row);

bool tn_script_parked(const struct tn_script *script);
void tn_script_resume(struct tn_script *script);

/* ---- what `map` keeps in its stores (tarn.state) ----
 *
 * It is saved as pieces of bytes, each of them all that there is, or what changed since the piece
 * before. A `map` that fails changes nothing; what was mapped and is not taken after all goes by
 * restoring what was saved. What another handler writes is there until its Lua state ends, also
 * when it fails; it is none of what is saved for a position. */

enum { TN_SCRIPT_PIECE_HEAD_SIZE = 12 };

/* It has stores: those that it made while it was loaded. */
static inline bool tn_script_keeps(const struct tn_script *script)
{
    return script->state_size_max > 0;
}

/* Bytes of pieces that there should be room for: twice as many as all comes to, so that what
 * changes is written no more than some three times. */
size_t tn_script_state_room(const struct tn_script *script);

/* What changed since tn_script_saved or restore, appended to `out`; nothing: nothing did. `saved`
 * is how many bytes of pieces there are since the last that was all, with it; 0: all is wanted. The
 * piece is `*all` when there would be more than `most`, or much more than all. Costs a walk over
 * the stores where it is all, else what changed. */
TN_MUST_USE tn_rc tn_script_save(struct tn_script *script, size_t saved, size_t most, bool *all,
                                 struct tn_buf *out, struct tn_err *err);
/* Something did. */
bool tn_script_changed(struct tn_script *script);
/* That piece is kept. */
TN_MUST_USE tn_rc tn_script_saved(struct tn_script *script, struct tn_err *err);

/* The stores are as they were when the last of these pieces was made; empty without any. CORRUPT:
 * "byte 12: why", and they are empty. What is not there today, or has less room, loses what it
 * can't take, the oldest first. */
TN_MUST_USE tn_rc tn_script_restore(struct tn_script *script, struct tn_bytes pieces,
                                    struct tn_err *err);

/* ---- the script's own cases ---- */

enum { TN_SCRIPT_CASE_TEXT_SIZE = 240 };

struct tn_script_case {
    char name[TN_SCRIPT_CASE_TEXT_SIZE]; /* "merge: the first row opens the window" */
    bool passed;
    char reason[TN_SCRIPT_CASE_TEXT_SIZE]; /* "temp_max: got 3.0, want 4" */
    uint64_t instructions;                 /* that it took, to the next thousand */
};

/* Runs case `index`, from 0. A case that fails is OK and not passed; INVALID: it is no case. */
TN_MUST_USE tn_rc tn_script_run_case(struct tn_script *script, uint32_t index,
                                     struct tn_script_case *result, struct tn_err *err);
