/* What stands around a row in a record that tells of a change: which kind it has, what was before.
 *
 * decode_envelope.c reads it, and the rows with it; decode_changes.c knows what it means in each
 * form. Members come in any order, so a row may be read before it is known whether it is one.
 */
#pragma once

#include "ingest/decode_json.h"

enum tn_part {
    TN_PART_BEFORE, /* the row of d->rows[0] */
    TN_PART_AFTER,  /* that of d->rows[1] */
    TN_PART_WORD,   /* which change it is */
    TN_PART_PAYLOAD,
    TN_PART_DDL,    /* true: no rows changed */
    TN_PART_SCHEMA, /* how to read the columns */
    TN_PART_COUNT,
};

enum tn_change {
    TN_CHANGE_UNKNOWN,
    TN_CHANGE_INSERT,
    TN_CHANGE_UPDATE,
    TN_CHANGE_DELETE,
    TN_CHANGE_TRUNCATE,
    TN_CHANGE_MESSAGE, /* of an application */
    TN_CHANGE_NONE,    /* a record without rows, which is in order */
};

struct tn_envelope {
    bool seen[TN_PART_COUNT];
    bool has[TN_PART_COUNT]; /* and it is not null */
    struct tn_bytes word;    /* op, type or kind */
    enum tn_change change;   /* what it means */
    bool inside;             /* the payload */
    bool schema_late;        /* rows were read before it */
    bool schema_known;       /* for it was read before */
    bool ddl;
    bool failed;           /* a row, which is an error if the record has to have one */
    tn_cursor first[2];    /* of canal's arrays: the first element */
    uint32_t row_count[2]; /* before, after */
};

/* `at` is at the record's brace. False: the record is dead. */
bool tn_json_read_envelope(struct tn_decoder *d, tn_cursor at, struct tn_envelope *e);

/* A record whose word stands for no row: skipped, or dead. */
void tn_envelope_finish_without_rows(struct tn_decoder *d, const struct tn_envelope *e);

/* What `before` does not name is as it is after. */
void tn_envelope_fill_before(struct tn_decoder *d);
