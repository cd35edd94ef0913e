/* letter_table: dead letters kept in a table: where they can be read by everybody, and sent again.
 *
 *     source STRING, position BIGINT, part INT   the key: where the record, or row of it, is from
 *     table STRING                               that could not take it
 *     line BIGINT                                of the source; NULL: not known
 *     input STRING, header STRING                how to read the record; see letters.h
 *     reason STRING
 *     record STRING, bytes BYTES                 one of them: bytes, where it is no UTF-8
 *     retry BIGINT                               see app/cmd_retry.c
 *
 * The table is made with the first letter when it isn't there. It lives in the memory of the table
 * whose letters it takes, and is open only while there is something to publish. Its lock is held
 * all the time.
 */
#pragma once

#include "read/scan.h"
#include "table/letters.h"
#include "table/table.h"

enum tn_letter_column {
    TN_LETTER_SOURCE,
    TN_LETTER_POSITION,
    TN_LETTER_PART,
    TN_LETTER_TABLE,
    TN_LETTER_LINE,
    TN_LETTER_INPUT,
    TN_LETTER_HEADER,
    TN_LETTER_REASON,
    TN_LETTER_RECORD,
    TN_LETTER_BYTES,
    TN_LETTER_RETRY,
    TN_LETTER_COLUMNS,
};

struct tn_letter_table {
    struct tn_letter_box box; /* first */
    struct tn_env *owner;     /* which gets the share back */
    struct tn_env owner_was;  /* before it gave it */
    struct tn_env env;        /* the share */
    struct tn_arena arena;
    const char *name;
    const char *root;
    int lock;
    unsigned char *text; /* a record; row_size_max bytes, as the row's */
    unsigned char *row;
    bool absent;                         /* it is made when there is a first letter */
    struct tn_table *table;              /* or NULL */
    uint32_t columns[TN_LETTER_COLUMNS]; /* of its layout */
    uint64_t row_count;
    struct tn_spool found; /* letters to be taken back */
    struct tn_scan scan;
};

struct tn_letter_table_spec {
    const char *name;  /* "db.t"; lives as long as the letter table */
    const char *who;   /* what its lock says */
    const char *table; /* whose letters these are */
};

/* Takes its share of `env`, so it comes before the table whose letters these are is opened. EXISTS:
 * somebody holds it. INVALID: there is a table of that name with other columns or keys. */
TN_MUST_USE tn_rc tn_letter_table_open(struct tn_letter_table *letters, struct tn_env *env,
                                       const struct tn_letter_table_spec *spec, struct tn_err *err);
/* No more letters: before the table whose letters these are is closed, which comes first of the
 * worker's memory. */
void tn_letter_table_rest(struct tn_letter_table *letters);
void tn_letter_table_close(struct tn_letter_table *letters);

/* The schema of such a table, as it is made. */
TN_MUST_USE tn_rc tn_letter_table_schema(struct tn_arena *arena, struct tn_schema *schema,
                                         struct tn_err *err);

/* A letter that is there: its values by tn_letter_column, until the call ends. */
typedef tn_rc tn_letter_fn(void *user, const struct tn_value *values, struct tn_err *err);

/* Appends a text as a predicate has it. */
void tn_letter_table_quote(struct tn_buf *where, const char *text);

/* All letters that `where` (a predicate; NULL: all) holds for, in the order of their keys. */
TN_MUST_USE tn_rc tn_letter_table_each(struct tn_letter_table *letters, const char *where,
                                       tn_letter_fn *each, void *user, struct tn_err *err);

/* One row of it, which tn_letter_box.commit makes last; of many some are there for good before. */
TN_MUST_USE tn_rc tn_letter_table_put(struct tn_letter_table *letters,
                                      const struct tn_value *values, enum tn_row_kind kind,
                                      struct tn_err *err);
