/* letter_resend: the letters that a table has in a table of letters, sent again, each of them once.
 *
 *     begin:   letters are numbered, in the order of their keys          (commit of the letters)
 *     next*:   a letter's rows are put; what fails has its letter anew   (published at each cut)
 *              up to which number all was done is a position of theirs   (commit of the rows)
 *     finish:  letters up to that number go                              (commit of the letters)
 *
 * The number stands in the column `retry`; who writes a letter anew leaves it NULL. A process that
 * is killed between the last two commits leaves numbers behind that the position covers: the next
 * begin removes those letters first, so no row is put twice. One that is killed before leaves
 * numbers that mean nothing.
 *
 * The letter of a record from row p on is one of part -1 - p while it is numbered, so that a letter
 * that row p itself gets is beside it. When a cut came between its rows it is left with those that
 * were not put. It covers letters of its rows that an attempt made that came to nothing: those go.
 */
#pragma once

#include "table/letter_table.h"

struct tn_resend {
    struct tn_letter_table *letters;
    const char *table;
    struct tn_row_layout layout; /* of TN_LETTER_COLUMNS */
    struct tn_spool spool;       /* letters: size, covered, packed row */
    uint64_t at;
    int64_t number; /* of the letter that next gave; before the first, the one before it */
    uint64_t count;
    unsigned char covering[TN_LETTER_SOURCE_SIZE]; /* the record whose first letter came last */
    size_t covering_size;
    int64_t covering_position;
    int64_t covering_part;
};

/* Up to where letters were sent: a position of the table's, or {0}. */
struct tn_resend_place {
    int64_t number; /* this letter and those before it are done */
    uint32_t part;  /* of the next one, rows before this are in */
};

/* The letters' table is there, and the other one is open. */
TN_MUST_USE tn_rc tn_resend_begin(struct tn_resend *resend, struct tn_letter_table *letters,
                                  const char *table, struct tn_resend_place place,
                                  struct tn_err *err);
/* The next letter: its values live until anything is published. ABSENT: that were all. */
TN_MUST_USE tn_rc tn_resend_next(struct tn_resend *resend, struct tn_value *values,
                                 struct tn_err *err);
/* After the rows are committed with the place; says how many letters are left. */
TN_MUST_USE tn_rc tn_resend_finish(struct tn_resend *resend, struct tn_resend_place place,
                                   uint64_t *left, struct tn_err *err);
void tn_resend_close(struct tn_resend *resend); /* also one that failed to begin */
