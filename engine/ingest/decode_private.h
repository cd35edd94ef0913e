/* What decode.c (records in, rows out) shares with what reads a record into values: decode_json.c,
 * decode_envelope.c and decode_csv.c. */
#pragma once

#include "ingest/decode.h"
#include "ingest/decode_scan.h"

enum { TN_CSV_DROPPED_MAX = 256 }; /* names in a csv header that are no columns; a guess */

/* How a column's common form is read; all others go through tn_value_parse. */
enum tn_decode_quick {
    TN_QUICK_NONE,
    TN_QUICK_INTEGER,
    TN_QUICK_FLOAT,
    TN_QUICK_DOUBLE,
    TN_QUICK_BOOLEAN,
    TN_QUICK_TEXT,
    TN_QUICK_EPOCH_MS, /* a TIMESTAMP of at least 3 digits, told as ms since 1970 */
};

/* A column's name as it stands in a record, with its closing quote: 8 bytes decide the short ones.
 */
struct tn_decode_key {
    uint64_t head; /* the first 8 bytes of `name"` */
    uint64_t mask; /* which of them count; none of a name that JSON must escape */
    const char *name;
    uint32_t size;
    uint32_t next; /* which column came after this one the last time */
};

struct tn_decode_column {
    struct tn_type type;
    enum tn_decode_quick quick;
    enum tn_epoch epoch;
    bool required; /* NOT NULL, or of the primary key */
    int64_t low;   /* the bounds of quick integers */
    int64_t high;
};

/* One row on its way. */
struct tn_decode_row {
    struct tn_value *values;
    uint64_t *seen; /* bits: which columns the record has named */
    uint32_t seen_count;
    bool any_null;
};

/* Texts for which scratch is too small: their value counts the bytes that they will have, and
 * points to them as they stand in the record; they are rewritten where the row is packed. */
enum tn_decode_late_kind { TN_LATE_ESCAPED, TN_LATE_DOUBLED, TN_LATE_HEX };

struct tn_decode_late {
    const struct tn_value *value;
    struct tn_bytes raw;
    enum tn_decode_late_kind kind;
};

enum { TN_DECODE_LATE_MAX = 32 }; /* they are long, so a record has few: a guess */

enum { TN_DECODE_PARTS = 4 }; /* members of an envelope that count */

struct tn_decoder {
    struct tn_decode_spec spec;
    uint32_t column_count;
    struct tn_decode_column *columns;
    struct tn_decode_key *keys; /* one a column, and one that stands before the first */
    const char **names;
    struct tn_decode_key parts[TN_DECODE_PARTS];
    struct tn_value *defaults; /* of columns without one: NULL */
    uint16_t *table;           /* hash of a name -> column + 1 */
    uint32_t table_mask;
    struct tn_decode_row rows[TN_DECODE_ROWS_MAX];

    unsigned char *row_data; /* the packed rows */
    uint32_t row_data_size;
    uint32_t row_data_used;
    uint32_t row_size_max;
    const struct tn_decode_row *finished[TN_DECODE_ROWS_MAX]; /* what `decoded` counts */
    struct tn_decode_late late[TN_DECODE_LATE_MAX];
    uint32_t late_count;
    struct tn_buf scratch; /* texts without their escapes, bytes of hex, the copy of a record that
                              ends the input */

    const unsigned char *start; /* of the record that is read, which may be the copy */
    const unsigned char *end;   /* its '\n' */
    struct tn_decoded *decoded;

    uint64_t line;       /* of the next record */
    bool skipping;       /* behind a record that was too long */
    bool skipping_quote; /* csv: and in a quoted field */

    bool csv_header_known;
    uint32_t csv_count;
    uint32_t csv_count_max;
    int32_t *csv_columns; /* per field of the header: column, or -1 when it is dropped */
};

/* Makes the record a dead letter; returns NULL. `at` is where in the record, or NULL. */
const unsigned char *tn_decode_fail(struct tn_decoder *decoder, const unsigned char *at,
                                    const char *format, ...) __attribute__((format(printf, 3, 4)));

int32_t tn_decode_find(const struct tn_decoder *decoder, struct tn_bytes name);
void tn_decode_row_begin(struct tn_decoder *decoder, struct tn_decode_row *row);

/* Marks the column; false when it was marked before. */
static inline bool tn_decode_see(struct tn_decode_row *row, uint32_t column)
{
    uint64_t bit = (uint64_t)1 << (column % 64);
    uint64_t *word = &row->seen[column / 64];
    if (*word & bit) {
        return false;
    }
    *word |= bit;
    row->seen_count++;
    return true;
}

/* A value from text, for everything that has no quick form. False: the record is dead. */
bool tn_decode_text_value(struct tn_decoder *decoder, const unsigned char *at, uint32_t column,
                          struct tn_bytes text, struct tn_value *value);

/* A text that becomes `size` bytes when its row is packed. False: the record is dead. */
bool tn_decode_text_late(struct tn_decoder *decoder, uint32_t column, struct tn_bytes raw,
                         size_t size, enum tn_decode_late_kind kind, struct tn_value *value);

/* Writes what a JSON string, without its quotes, stands for; it was measured before. decode_json.c
 */
void tn_json_unescape(struct tn_decoder *decoder, struct tn_bytes raw, unsigned char *out);

/* Defaults, NOT NULL, and the packed row. False: the record is dead. */
bool tn_decode_row_finish(struct tn_decoder *decoder, struct tn_decode_row *row,
                          enum tn_row_kind kind);

void tn_decode_key_init(struct tn_decode_key *key, const char *name);
void tn_decode_parts_init(struct tn_decoder *decoder); /* decode_envelope.c */

static inline bool tn_decode_key_is(const struct tn_decode_key *key, const unsigned char *at,
                                    const unsigned char *end)
{
    if ((tn_load_u64(at) & key->mask) != key->head) {
        return false;
    }
    return key->size < 8 || ((size_t)(end - at) > key->size && at[key->size] == '"' &&
                             memcmp(at + 8, key->name + 8, key->size - 8) == 0);
}

/* The record between start and end becomes rows, or dead. */
void tn_decode_json(struct tn_decoder *decoder);
void tn_decode_changes(struct tn_decoder *decoder);
void tn_decode_debezium(struct tn_decoder *decoder);
void tn_decode_csv(struct tn_decoder *decoder);

/* Behind the line end of the csv record at `at`, or NULL when it goes on; *quoted says whether a
 * quoted field is open at the end, and at `at` when it comes in. */
const unsigned char *tn_csv_record_end(const unsigned char *at, const unsigned char *end,
                                       bool *quoted);
/* The same for the header, whose names become the columns of later records. INVALID. */
TN_MUST_USE tn_rc tn_csv_header(struct tn_decoder *decoder, struct tn_err *err);
