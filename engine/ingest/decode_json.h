/* What a record of JSON is read with: decode_json.c has the texts, values and rows,
 * decode_binary.c the texts of binary columns, decode_envelope.c the objects with rows inside.
 *
 * A function takes the place it begins at and gives the one behind what it read; NULL says that the
 * record is dead, and the reason is written.
 */
#pragma once

#include "ingest/decode_private.h"

typedef const unsigned char *tn_cursor;

static inline bool tn_json_is_word(tn_cursor at, const char *word, size_t size)
{
    return memcmp(at, word, size) == 0;
}

/* `at` is behind the opening quote. The text is a view of the record, or of scratch where it has
 * escapes. */
tn_cursor tn_json_read_string(struct tn_decoder *d, tn_cursor at, struct tn_bytes *text,
                              uint64_t *beyond_ascii);

/* What the backslash at `at` begins, as UTF-8: at most 4 bytes, and *out moves behind them. */
tn_cursor tn_json_read_escape(struct tn_decoder *d, tn_cursor at, unsigned char **out);

/* A key, its colon, and the blanks up to the value. */
tn_cursor tn_json_read_key(struct tn_decoder *d, tn_cursor at, struct tn_bytes *key);

/* Walks over an object or an array. */
struct tn_json_walk {
    tn_cursor at; /* NULL: the record is dead */
    unsigned char end;
    bool inside;
};

static inline struct tn_json_walk tn_json_walk_into(tn_cursor at)
{
    return (struct tn_json_walk){at + 1, *at == '{' ? '}' : ']', false};
}

/* At the next member's key, or the next value; false behind the last. */
bool tn_json_walk_next(struct tn_decoder *d, struct tn_json_walk *walk);

/* Numbers as bytes. decode_decimal.c: a string, from behind its opening quote on; {"scale":2,
 * "value":"..."} from behind its brace on; the bytes of a big-endian integer. */
tn_cursor tn_json_read_decimal(struct tn_decoder *d, tn_cursor at, uint32_t column,
                               struct tn_value *value);
tn_cursor tn_json_read_scaled(struct tn_decoder *d, tn_cursor at, uint32_t column,
                              struct tn_value *value);

/* Base64 text, whose padding goes, and the size of its bytes; false when it is none. */
bool tn_base64_measure(struct tn_bytes *text, size_t *size);

/* Little-endian to big-endian. decode_binary.c */
void tn_decode_turn_bytes(unsigned char *bytes, size_t size);

/* The schema that Kafka Connect's JsonConverter puts beside a payload. decode_connect.c. Returns
 * behind it; from then on columns are read by it. */
tn_cursor tn_connect_read_schema(struct tn_decoder *d, tn_cursor at);
void tn_connect_forget_schema(struct tn_decoder *d);

/* A string of a binary column; `at` is behind its opening quote. decode_binary.c */
tn_cursor tn_json_read_binary(struct tn_decoder *d, tn_cursor at, uint32_t column,
                              struct tn_value *value);

/* Values that nobody needs: passed over, but they have to be JSON. */
tn_cursor tn_json_skip_key(struct tn_decoder *d, tn_cursor at);
tn_cursor tn_json_skip_value(struct tn_decoder *d, tn_cursor at);

/* The members of an object; `at` is behind its brace. */
tn_cursor tn_json_read_row(struct tn_decoder *d, tn_cursor at, struct tn_decode_row *row);

/* Nothing but blanks up to the record's end. */
bool tn_json_at_end(struct tn_decoder *d, tn_cursor at);
