/* resolve: who decides what is true of a key when another row comes.
 *
 * Rows of a table with a script are resolved before they are written: at flush, row by row in their
 * order of arrival, beside what the key was before. Readers elsewhere find finished rows and need
 * no script. This is the contract between the flush, which asks, and the script, which answers
 * (script/resolver.h); a test may answer, too.
 *
 *     was      rows of the key, oldest first          is
 *     now  ->  resolve(now, row) -> now -> ... ->     now
 *
 * A row that can't be resolved is a dead letter: it changes nothing, and the letters' sink gets it
 * with the reason. A resolver and a sink are used by one worker at a time.
 */
#pragma once

#include "merge/merge.h"

enum { TN_ORIGIN_NONE = UINT16_MAX };

/* Where a row came from, as a dead letter names it; packed behind the row in memory. */
struct tn_origin {
    int64_t position; /* of the record in its source */
    uint32_t part;    /* of the rows that were made of one record, from 0 */
    uint16_t source;  /* the caller's number; TN_ORIGIN_NONE: nobody said */
};

enum tn_verdict { TN_VERDICT_KEEP, TN_VERDICT_DELETE, TN_VERDICT_ROW };

struct tn_resolver {
    /* What is true when `row` comes (of kind +I, +U or -D; -U never is asked). `now` is NULL when
     * there is nothing. ROW: the row is appended to `out`, which holds neither `now` nor `row`; it
     * has the key of `row` and is checked against the columns. INVALID: a dead letter, the text
     * says why. CANCELED: the resolver gave up for good (a script is parked): the flush fails. */
    tn_rc (*resolve)(struct tn_resolver *resolver, const struct tn_row *now, struct tn_row row,
                     enum tn_row_kind kind, int64_t sequence, enum tn_verdict *verdict,
                     struct tn_buf *out, struct tn_err *err);
    /* What followers may see of a row, appended to `out`; `*shown` false: nothing. A pure function
     * of the row. NULL: the row itself. INVALID, CANCELED as above. */
    tn_rc (*announce)(struct tn_resolver *resolver, struct tn_row row, bool *shown,
                      struct tn_buf *out, struct tn_err *err);
};

struct tn_letter {
    struct tn_origin origin;
    enum tn_row_kind kind;
    struct tn_row row; /* until the call ends, as the reason */
    const char *reason;
};

/* Where dead letters go. `begin` and `end` frame a flush: what was put between is forgotten when it
 * did not succeed, for the same rows come again. An error of any of them fails the flush: no row is
 * dropped without its letter. */
struct tn_letter_sink {
    tn_rc (*begin)(struct tn_letter_sink *sink, struct tn_err *err);
    tn_rc (*put)(struct tn_letter_sink *sink, const struct tn_letter *letter, struct tn_err *err);
    tn_rc (*end)(struct tn_letter_sink *sink, bool success, struct tn_err *err);
};
