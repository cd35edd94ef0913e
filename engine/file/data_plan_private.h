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

enum { NO_BRANCH, NULL_FIRST, NULL_LAST };

struct tn_decode_op {
    uint8_t kind;      /* enum tn_decode_kind */
    uint8_t branch;    /* whether a branch number stands before, and which one is null */
    uint8_t precision; /* DECIMAL */
    uint8_t null_bit;  /* what to set in the byte below, 0 when nobody wants to know */
    uint32_t null_byte;
    uint32_t offset; /* of the slot; byte columns: the number of the view */
    bool key;        /* of a key column */
    const struct tn_avro_type *type;
};

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
