/* What the parts of the decoder share: those that make it (decode_open.c), cut the input into
 * records (decode.c), read one into values (decode_json.c, decode_csv.c, decode_line.c, with
 * decode_name.c and decode_column.c), and make rows of these (decode_row.c, decode_late.c). */
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
    TN_QUICK_EPOCH_US, /* of at least 6, as us */
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

/* How a string stands for a column's value. */
enum tn_decode_text {
    TN_TEXT_PLAIN, /* as tn_value_parse reads it */
    TN_TEXT_BIT,   /* 0 and 1 are booleans, too: MySQL has no others */
    TN_TEXT_ZONED, /* a time, whose zone is UTC where it names none */
    /* From here on by tn_json_read_binary. */
    TN_TEXT_LATIN1,  /* a character is a byte: canal's columns */
    TN_TEXT_BASE64,  /* also with the characters of URLs, and without padding */
    TN_TEXT_BITS,    /* base64 of little-endian bytes */
    TN_TEXT_DECIMAL, /* base64 of an integer, which is to be moved by a scale */
    TN_TEXT_UNCLEAR, /* hex or base64: nobody knows */
};

/* What a source says of a column's values. */
struct tn_decode_meaning {
    enum tn_epoch epoch; /* of bare numbers in time columns */
    bool days;           /* or they are days */
    enum tn_decode_text text;
    int32_t scale; /* of TN_TEXT_DECIMAL */
};

struct tn_decode_column {
    struct tn_type type;
    enum tn_decode_quick quick;
    enum tn_decode_text text;
    enum tn_epoch epoch;
    int32_t scale;
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
enum tn_decode_late_kind {
    TN_LATE_ESCAPED,
    TN_LATE_DOUBLED,
    TN_LATE_HEX,
    TN_LATE_LATIN1,
    TN_LATE_BASE64,
    TN_LATE_LINE,
};

struct tn_decode_late {
    struct tn_bytes raw; /* values whose bytes begin there are meant */
    enum tn_decode_late_kind kind;
};

enum { TN_CONNECT_SCALE_MAX = 200 }; /* digits behind a point; no database has as many */

enum { TN_DECODE_LATE_MAX = 32 }; /* they are long, so a record has few: a guess */

/* Forms that databases' changes come in: a value is as the database writes it, and whether a record
 * has rows at all may be said behind them, so that it is read once more. */
static inline bool tn_decode_is_database(enum tn_input input)
{
    return input == TN_INPUT_DEBEZIUM || input == TN_INPUT_CANAL || input == TN_INPUT_MAXWELL;
}

enum {
    TN_DECODE_PARTS = 6,     /* members of an envelope that count */
    TN_DECODE_ROWS = 2,      /* that are read at once */
    TN_DECODE_KEPT_MAX = 64, /* rows of a record that stay packed, if there is room: a guess */
};

/* A record with an array of rows, whose elements are read one by one. */
struct tn_decode_batch {
    const unsigned char *data; /* the first element; NULL: the record has no array of rows */
    const unsigned char *old;  /* that of the older rows, or NULL */
    uint32_t element;          /* which one the decoder's rows hold */
    const unsigned char *next_data;
    const unsigned char *next_old;
    size_t scratch_size; /* before an element is read */
};

struct tn_decoder {
    struct tn_decode_spec spec;
    uint32_t column_count;
    struct tn_decode_column *columns;
    struct tn_decode_key *keys; /* one a column, and one that stands before the first */
    const char **names;
    struct tn_decode_key parts[TN_DECODE_PARTS];
    size_t connect_size; /* of the schema that the columns are read by; 0: by none */
    uint64_t connect_hash;
    struct tn_value *defaults; /* of columns without one: NULL */
    uint16_t *table;           /* hash of a name -> column + 1 */
    uint32_t table_mask;
    struct tn_decode_row rows[TN_DECODE_ROWS];

    unsigned char *row_data; /* the packed rows */
    uint32_t row_data_size;
    uint32_t row_data_used;
    uint32_t row_size_max;
    struct tn_row kept[TN_DECODE_KEPT_MAX]; /* the first rows of the record */
    uint32_t kept_count;
    const struct tn_decode_row *finished[TN_DECODE_ROWS]; /* what `decoded` counts */
    struct tn_decode_batch batch;
    struct tn_decode_late late[TN_DECODE_LATE_MAX];
    uint32_t late_count;
    struct tn_buf scratch; /* texts without their escapes, bytes of hex, the copy of a record that
                              ends the input */

    const unsigned char *start; /* of the record that is read, which may be the copy */
    const unsigned char *end;   /* its '\n' */
    bool read_again;            /* it may be: so it stays as it is, also where it is a copy */
    struct tn_decoded *decoded;

    uint64_t line;                /* of the next record */
    bool skipping;                /* within a record that was too long, */
    struct tn_record_place place; /* and where */

    int32_t measurement; /* line protocol: the columns of what has no name there, or -1 */
    int32_t time;

    bool csv_header_known;
    uint32_t csv_count;
    uint32_t csv_count_max;
    int32_t *csv_columns; /* per field of the header: column, or -1 when it is dropped */
};

/* Makes the record a dead letter; returns NULL. `at` is where in the record, or NULL. decode.c */
const unsigned char *tn_decode_fail(struct tn_decoder *decoder, const unsigned char *at,
                                    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- decode_name.c: the columns' names ---- */

void tn_decode_key_init(struct tn_decode_key *key, const char *name);
/* From now on the name of `keys[column]` is found. */
void tn_decode_name_add(struct tn_decoder *decoder, uint32_t column);
/* Of the column of that name, or -1. */
int32_t tn_decode_find(const struct tn_decoder *decoder, struct tn_bytes name);

/* tn_decode_fail for a name that is no column, with the nearest that is. */
const unsigned char *tn_decode_fail_unknown(struct tn_decoder *decoder, const unsigned char *at,
                                            struct tn_bytes name);

static inline bool tn_decode_key_is(const struct tn_decode_key *key, const unsigned char *at,
                                    const unsigned char *end)
{
    if ((tn_load_u64(at) & key->mask) != key->head) {
        return false;
    }
    return key->size < 8 || ((size_t)(end - at) > key->size && at[key->size] == '"' &&
                             memcmp(at + 8, key->name + 8, key->size - 8) == 0);
}

/* ---- decode_row.c: values become rows ---- */

void tn_decode_row_begin(struct tn_decoder *decoder, struct tn_decode_row *row);

/* Defaults and NOT NULL. False: the record is dead. */
bool tn_decode_row_settle(struct tn_decoder *decoder, struct tn_decode_row *row);

/* The same, and the row counts among the record's. */
bool tn_decode_row_finish(struct tn_decoder *decoder, struct tn_decode_row *row,
                          enum tn_row_kind kind);

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

/* ---- decode_column.c: how a column is read ---- */

/* When the source says nothing of it, and when it does. */
struct tn_decode_meaning tn_decode_meaning_of(const struct tn_decoder *decoder, uint32_t column);
void tn_decode_column_init(struct tn_decoder *decoder, uint32_t column,
                           struct tn_decode_meaning meaning);

/* A value from text, for everything that has no quick form. False: the record is dead. */
bool tn_decode_text_value(struct tn_decoder *decoder, const unsigned char *at, uint32_t column,
                          struct tn_bytes text, struct tn_value *value);

/* A double rounds to the float that the decimal would round to, unless it lies just between two
 * floats. */
static inline bool tn_decode_float_of(double wide, double *value)
{
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    bool halfway = (bits & 0x1FFFFFFF) == 0x10000000;
    bool normal = wide == 0 || (wide > 1e-37 && wide < 3e38) || (wide < -1e-37 && wide > -3e38);
    *value = (double)(float)wide;
    return normal && !halfway;
}

static inline const unsigned char *tn_decode_quick_number(const struct tn_decode_column *c,
                                                          const unsigned char *at,
                                                          struct tn_value *value)
{
    const unsigned char *end = NULL;
    int64_t whole = 0;
    double wide = 0;
    switch (c->quick) {
    case TN_QUICK_INTEGER:
    case TN_QUICK_EPOCH_MS:
        end = tn_scan_integer(at, &whole);
        value->as.i64 = whole;
        value->nanos = 0;
        return end && whole >= c->low && whole <= c->high ? end : NULL;
    case TN_QUICK_EPOCH_US:
        end = tn_scan_integer(at, &whole);
        value->as.i64 = (whole - (whole % 1000 + 1000) % 1000) / 1000;
        value->nanos = (uint32_t)((whole % 1000 + 1000) % 1000 * 1000);
        return end;
    case TN_QUICK_DOUBLE:
        end = tn_scan_double(at, &wide);
        value->as.f64 = wide;
        return end;
    case TN_QUICK_FLOAT:
        end = tn_scan_double(at, &wide);
        return end && tn_decode_float_of(wide, &value->as.f64) ? end : NULL;
    case TN_QUICK_BOOLEAN:
    case TN_QUICK_TEXT:
    case TN_QUICK_NONE:
        break;
    }
    return NULL;
}

/* ---- decode_late.c: long texts ---- */

/* A text that becomes `size` bytes when its row is packed. False: the record is dead. */
bool tn_decode_text_late(struct tn_decoder *decoder, uint32_t column, struct tn_bytes raw,
                         size_t size, enum tn_decode_late_kind kind, struct tn_value *value);

/* Writes it into the row. */
void tn_decode_late_write(struct tn_decoder *decoder, const struct tn_decode_late *late,
                          unsigned char *out);

/* What a JSON string, without its quotes, stands for; it was measured before. decode_json.c,
 * decode_binary.c, decode_line.c */
void tn_json_unescape(struct tn_decoder *decoder, struct tn_bytes raw, unsigned char *out);
void tn_json_latin1(struct tn_decoder *decoder, struct tn_bytes raw, unsigned char *out);
void tn_line_unescape(struct tn_bytes raw, unsigned char *out);
void tn_base64_decode(struct tn_bytes text, unsigned char *out);

/* ---- records of each form ---- */

void tn_decode_parts_init(struct tn_decoder *decoder); /* decode_envelope.c */

/* Reads row i of a record with an array again. decode_canal.c */
const struct tn_decode_row *tn_decode_batch_row(struct tn_decoder *decoder, uint32_t i);

/* The record between start and end becomes rows, or dead. */
void tn_decode_json(struct tn_decoder *decoder);
void tn_decode_changes(struct tn_decoder *decoder);
void tn_decode_debezium(struct tn_decoder *decoder);
void tn_decode_canal(struct tn_decoder *decoder);
void tn_decode_maxwell(struct tn_decoder *decoder);
void tn_decode_csv(struct tn_decoder *decoder);
void tn_decode_line(struct tn_decoder *decoder);

/* tn_record_end of csv. */
const unsigned char *tn_csv_record_end(const unsigned char *at, const unsigned char *end,
                                       struct tn_record_place *place);
/* The same for the header, whose names become the columns of later records. INVALID. */
TN_MUST_USE tn_rc tn_csv_header(struct tn_decoder *decoder, struct tn_err *err);

/* tn_record_end of the line protocol. */
const unsigned char *tn_line_record_end(const unsigned char *at, const unsigned char *end,
                                        struct tn_record_place *place);
/* Finds the columns of measurement and time. INVALID. */
TN_MUST_USE tn_rc tn_line_open(struct tn_decoder *decoder, struct tn_err *err);
