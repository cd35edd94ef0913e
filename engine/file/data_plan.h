/* data_plan: how the records of one avro data file become packed rows.
 *
 *     file's avro schema  +  schema-N it was written with  +  what the reader wants
 *                                    |
 *               one op a field of the file, in the file's order: skip it, or store it in a slot
 *
 * Numbers go straight into the slots. Bytes are noted where they lie and copied at the end, in the
 * layout's order, so that the order of the file's fields doesn't matter and the row's size is known
 * before anything is copied. A column whose type was changed since the file was written is decoded
 * in its old type and cast (schema/cast.h).
 */
#pragma once

#include "base/arena.h"
#include "format/avro.h"
#include "schema/schema.h"

/* What a reader wants: columns by field id. */
struct tn_read_spec {
    const struct tn_row_layout *layout; /* what rows come in */
    const int32_t *field_ids;           /* per column of `layout` */
    struct tn_columns keys;             /* into layout; count 0 for append tables */
};

enum {
    /* Views and blocks may be read, and rows written, this far past their ends: short texts are
     * copied whole. */
    TN_DATA_SLACK = 16,
};

struct tn_cast_op; /* data_plan_private.h */

/* What follows a byte column's view in the row. */
struct tn_data_pad {
    uint32_t size;
    unsigned char byte;
};

struct tn_data_plan {
    struct tn_decode_op *ops; /* data_plan_private.h */
    uint32_t op_count;
    uint32_t key_end;     /* the ops before are all that a key takes */
    bool keyed;           /* _SEQUENCE_NUMBER and _VALUE_KIND are there */
    bool key_lies;        /* in the file as in the layout's order of keys: see pass_below */
    unsigned char *blank; /* the fixed part of a row: what the file lacks is NULL, the rest zero */
    uint32_t fixed_size;  /* bytes at `blank` */
    struct tn_bytes *views; /* per byte column of the layout, of the record at hand; one more */
    uint32_t *view_offsets; /* likewise: its slot */
    uint32_t view_count;
    struct tn_cast_op *casts; /* of the columns whose type was changed */
    uint32_t cast_count;
    struct tn_data_pad *pads; /* one a view, or NULL when no cast pads */
};

/* What stands beside a row in its record. */
struct tn_data_record {
    int64_t sequence;                  /* of keyed files */
    int64_t kind;                      /* 0..3 */
    const struct tn_cast_op *bad_cast; /* of a value that is NULL in the row for want of a cast */
};

/* CORRUPT: a field has a type that doesn't fit its column, or a key column lacks. UNSUPPORTED: a
 * column's type was changed to one that there is no cast to. */
TN_MUST_USE tn_rc tn_data_plan_make(struct tn_bytes avro_schema, const struct tn_schema *schema,
                                    const struct tn_read_spec *read, struct tn_arena *arena,
                                    struct tn_data_plan *plan, struct tn_err *err);

/* Reads one record: slots into `row`, which holds fixed_size bytes, byte columns into plan->views.
 * cursor->failed when it is broken. Returns the size of the row. */
uint64_t tn_data_plan_decode(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor,
                             unsigned char *row, struct tn_data_record *record);

/* Reads of a record no more than its key, as decode reads all of it; other byte columns are empty,
 * other slots as it happens. The cursor stands behind plan->key_end, and pass takes it to the
 * record's end: what lies there is not looked at, only how long it is. */
uint64_t tn_data_plan_decode_key(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor,
                                 unsigned char *row, struct tn_data_record *record);
void tn_data_plan_pass(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor);

/* How the record's key compares with `key`'s, a row of the layout: <0, 0, >0. Below 0 the cursor
 * then stands behind the record, else it stays. Neither key nor record are decoded: only where
 * plan->key_lies. */
int tn_data_plan_pass_below(const struct tn_data_plan *plan, struct tn_avro_cursor *cursor,
                            struct tn_row key);

/* CORRUPT with the column, the value and the types of record->bad_cast. Before the next decode. */
tn_rc tn_data_plan_refuse(const struct tn_data_record *record, struct tn_err *err);

/* Completes the row: what plan->views show goes behind the fixed part. `row` holds the size that
 * decode gave and TN_DATA_SLACK bytes. */
void tn_data_plan_append(const struct tn_data_plan *plan, unsigned char *row);
