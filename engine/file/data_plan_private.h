/* data_plan, from inside: what data_plan_make.c compiles and data_plan.c runs, record by record. */
#pragma once

#include "file/data_plan.h"
#include "schema/cast.h"

enum tn_decode_kind {
    DECODE_BOOLEAN,
    DECODE_I8,
    DECODE_I16,
    DECODE_I32,
    DECODE_I64,
    DECODE_F32,
    DECODE_F64,
    DECODE_DECIMAL64,
    DECODE_DECIMAL128,
    DECODE_MILLIS_TO_96,
    DECODE_MICROS_TO_64,
    DECODE_MICROS_TO_96,
    DECODE_BYTES,
    DECODE_CAST, /* `offset` is the number of the cast */
    DECODE_SEQUENCE,
    DECODE_KIND,
    SKIP_NUMBER,
    SKIP_BYTES,
    SKIP_FIXED, /* `offset` bytes */
    SKIP_OTHER, /* `type` */
    DECODE_NONE,
};

/* Which branch number says that a value is null: none stands before it, or what that one is. */
enum { NULL_FIRST = 0, NO_BRANCH = 1, NULL_LAST = 2 };

struct tn_decode_op {
    uint8_t kind;      /* enum tn_decode_kind */
    uint8_t branch;    /* the number before a value that is null, or NO_BRANCH */
    uint8_t precision; /* DECIMAL */
    uint8_t null_bit;  /* what to set in the byte below, 0 when nobody wants to know */
    uint32_t null_byte;
    uint32_t offset; /* of the slot; byte columns: the number of the view */
    int8_t passed;   /* bytes of a value that is passed over, or enum tn_pass */
    bool key;        /* of a key column */
    const struct tn_avro_type *type;
};

/* How a value is passed over that is not always as long. */
enum tn_pass { PASS_OTHER = -4, PASS_FIXED = -3, PASS_BYTES = -2, PASS_NUMBER = -1 };

/* A column whose type was changed since: its value is decoded as a row of the old type's own, cast,
 * and stored. */
struct tn_cast_op {
    struct tn_cast cast;
    struct tn_row_layout from;
    struct tn_decode_op source; /* a byte column's view is the one behind all others */
    unsigned char *row;
    const struct tn_column *to;
    uint32_t null_byte;
    uint8_t null_bit;
    uint32_t view;             /* of a byte column */
    struct tn_value value;     /* the last that was cast */
    struct tn_cast_out result; /* until the row is completed */
};

/* What an empty view shows: as many bytes as may be read past it. */
extern const unsigned char tn_data_nothing[TN_DATA_SLACK];
