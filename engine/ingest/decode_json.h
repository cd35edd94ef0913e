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
