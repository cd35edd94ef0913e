/* decode: text records into packed rows, one pass, no allocation.
 *
 * A decoder is made once for a table and a format; `next` takes what the source has read so far,
 * eats one record, and gives its rows. A record that can't become a row gives a dead letter: the
 * reason, and where the record lies in the input. The rest goes on.
 *
 *     json            one object a line: {"dev":"a","temp":1.5}: +I
 *     changes         {"kind":"+U","row":{...}}: as said; what `tail` and `cat --kind` print
 *     debezium-json   {"before":...,"after":...,"op":"c|u|r|d"}, also as "payload" beside "schema"
 *                     c, r: +I; u: -U before (when there is one) and +U after; d: -D before;
 *                     a null record (tombstone) gives nothing. The schema says what numbers in
 *                     time columns are and which scale a decimal has that is bytes; without one
 *                     a bare number is a DATE's days, and nothing else. Bytes are base64
 *     canal-json      {"data":[{...},...],"old":[{...},...],"type":"INSERT|UPDATE|DELETE"}:
 *                     INSERT: +I each; DELETE: -D each, also where only `old` has them; UPDATE:
 *                     -U (the row with what `old` says put back) and +U each, without `old` only
 *                     +U; isDdl gives nothing, but a TRUNCATE is a dead letter
 *     maxwell-json    {"data":{...},"old":{...},"type":"insert|update|delete"}: the same of one
 *                     row; bootstrap-insert: +I; what tells of tables and bootstraps gives nothing
 *     line-protocol   InfluxDB's measurement,tag=a field=1.5,n=2i 1764547200000000000: +I. Tags and
 *                     fields go to the columns of their names; the measurement to a column
 *                     `measurement`, where there is one; the time to a column `time`, else to the
 *                     one that has a unit in `epochs`; its unit is that, or ns
 *     csv             RFC 4180 with a header line that names the columns; empty = NULL,
 *                     "" = empty text: +I
 *
 * Fields come in any order; a missing field is NULL (then its column's default value applies); an
 * unknown one is a dead letter or dropped; a repeated one is a dead letter. As in Paimon, a NULL in
 * a NOT NULL column is refused whether it has a default or not, for every kind of row. A string
 * with escapes is rewritten into the decoder's scratch, or into the row itself when it is long;
 * others are read where they stand; integers never pass through a double. Lines end in \n or \r\n;
 * blank ones are passed over, and so is a byte order mark. Texts of csv and of the line protocol
 * may hold line ends; booleans of databases may be 0 and 1.
 *
 * What a row of 11 columns costs (measured on the build host): 135 ns as json, 160 as csv, 190 as
 * line protocol, 200 as Debezium's, 480 beside a schema of 1400 bytes, 260 as Maxwell's, 300 as
 * canal's, whose numbers are all text.
 */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "schema/schema.h"

enum tn_input {
    TN_INPUT_JSON,
    TN_INPUT_CHANGES,
    TN_INPUT_DEBEZIUM,
    TN_INPUT_CSV,
    TN_INPUT_CANAL,
    TN_INPUT_MAXWELL,
    TN_INPUT_LINE,
};
enum { TN_INPUT_COUNT = TN_INPUT_LINE + 1 };
enum tn_unknown { TN_UNKNOWN_FAIL, TN_UNKNOWN_DROP };

enum { TN_DECODE_DEPTH_MAX = 32, TN_DECODE_PAD = 16 };

struct tn_decode_spec {
    enum tn_input input;
    enum tn_unknown unknown;
    const struct tn_schema *schema;     /* no nested columns: the layout covers all fields */
    const struct tn_row_layout *layout; /* of the whole schema */
    const enum tn_epoch *epochs; /* per field: what bare numbers in time columns are; or NULL */
    uint32_t record_size_max;    /* bytes with the line end; a longer record is a dead letter */
    uint32_t row_size_max;       /* bytes packed, likewise; 0: what a record can hold */
    bool framed; /* records are only found, for somebody else to read: no rows come of them, and the
                    record of a blank line is empty */
    bool padded; /* TN_DECODE_PAD bytes behind the input can be read, and are line ends */
};

struct tn_decoded {
    uint32_t count;                  /* rows, which tn_decoder_row gives */
    enum tn_row_kind kind_of_two[2]; /* of the even ones, of the odd ones: see tn_decoded_kind */
    bool skipped; /* no rows and not dead: a record that tells of none, as a tombstone or DDL */
    bool dead;    /* no rows; why is in `reason` */
    char reason[TN_ERR_TEXT_SIZE];
    struct tn_bytes record; /* as it stood in the input, without its line end */
    uint64_t line;          /* from 1 */
};

struct tn_decoder; /* decode_private.h */

/* Memory from the arena: some 200 bytes a column, a row, and a bounded part of a record. INVALID
 * where a default value does not parse. The schema and the layout are kept by pointer. */
TN_MUST_USE tn_rc tn_decoder_open(struct tn_decoder **decoder, const struct tn_decode_spec *spec,
                                  struct tn_arena *arena, struct tn_err *err);

/* The longest record whose decoder fits into `size` bytes; that of a padded source with the record
 * itself, which is its owner's. 0: not even a short one. */
uint32_t tn_decode_record_max(const struct tn_row_layout *layout, uint32_t row_size_max,
                              bool padded, size_t size);

/* One record's rows are of one kind, or in turn of two. */
static inline enum tn_row_kind tn_decoded_kind(const struct tn_decoded *decoded, uint32_t i)
{
    return decoded->kind_of_two[i % 2];
}

/* Row i of what the last call gave, in the decoder's memory. The rows of a long record don't fit it
 * at once, and are read again from the record, best in their order: so a row lives until the next
 * one is asked for, or the next call, and `input` has to stay as it was. */
struct tn_row tn_decoder_row(struct tn_decoder *decoder, struct tn_decoded *decoded, uint32_t i);

/* Memory for a row of row_size_max bytes that is nobody's between two calls. */
unsigned char *tn_decoder_room(struct tn_decoder *decoder, uint32_t *size);

/* Eats one record from `input`. OK: `decoded` is filled and *eaten bytes are done with (blank lines
 * give count 0, not dead). AGAIN: the record goes on behind `input` (read more; with `last` the end
 * of input ends it, so AGAIN then means that there is nothing left). INVALID: the csv header. A
 * record above record_size_max is reported dead with what fits, and its rest is eaten by later
 * calls; so a source needs room for record_size_max bytes, and no more. */
TN_MUST_USE tn_rc tn_decoder_next(struct tn_decoder *decoder, struct tn_bytes input, bool last,
                                  struct tn_decoded *decoded, size_t *eaten, struct tn_err *err);

/* For a source that resumes in the middle of a file: the line that comes next, and for csv the
 * header's columns. */
TN_MUST_USE tn_rc tn_decoder_resume(struct tn_decoder *decoder, uint64_t line,
                                    struct tn_bytes csv_header, struct tn_err *err);

/* Where in a record its bytes were cut: its texts may hold line ends. All false: at its beginning.
 */
struct tn_record_place {
    bool within;
    bool text;    /* in quotes */
    bool opens;   /* a quote that comes next opens a text */
    bool fields;  /* line protocol: behind the blank that comes before these */
    bool escaped; /* likewise: behind a backslash, which takes the next byte's meaning */
    bool comment; /* likewise */
};

/* Behind the end of the record in which `from`, which is not empty, begins at `*place`; or NULL: it
 * goes on, and `*place` is where `from` ends. For sources, whose messages are of whole records. */
const unsigned char *tn_record_end(enum tn_input input, struct tn_bytes from,
                                   struct tn_record_place *place);

/* Of the size of a message: a record that goes on for longer has a quote that nobody closed. A
 * guess.
 */
enum { TN_RECORD_MESSAGES_MAX = 16 };
/* The same of a record that is too long, of which at most `left` more bytes are believed. Behind
 * them the next line end is its end, and `*given_up`. */
const unsigned char *tn_record_end_within(enum tn_input input, struct tn_bytes from, uint64_t left,
                                          struct tn_record_place *place, bool *given_up);

/* "json", "changes", "debezium-json", "csv", "canal-json", "maxwell-json", "line-protocol"; INVALID
 * names the nearest. */
TN_MUST_USE tn_rc tn_input_parse(const char *name, enum tn_input *input, struct tn_err *err);
const char *tn_input_name(enum tn_input input);
