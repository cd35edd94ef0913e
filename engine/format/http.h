/* http: what messages of HTTP/1.1 are made of, for who asks and for who answers: words, the lines
 * of a head, and the frames that a body comes in. Bytes in, and nothing is kept but in the caller's
 * memory.
 *
 *     head   CR LF ends each line, an empty line ends the head; no other control byte but a tab
 *     frame  a length, or chunks and a trailer, which is read and dropped
 *
 * How bytes are cut on their way makes no difference: each is looked at alone. Nothing is guessed:
 * a text that two programs could read in two ways is wrong here (RFC 9112, 11.2).
 */
#pragma once

#include "base/bytes.h"

enum {
    TN_HTTP_FIELDS_MAX = 100,
    TN_HTTP_CHUNK_LINE_MAX = 256, /* size and extensions of a chunk */
    TN_HTTP_TRAILER_MAX = 4096,
};

/* ---- words ---- */

bool tn_http_is_token(unsigned char byte); /* of a name or a method */
bool tn_http_is_value(unsigned char byte); /* of a field's value */
bool tn_http_is_visible(unsigned char byte);
bool tn_http_all(struct tn_bytes text, bool (*is)(unsigned char));

/* Without blanks and tabs around it. */
struct tn_bytes tn_http_trim(struct tn_bytes text);

/* Whether a text is one of HTTP's words, whatever its case. */
bool tn_http_same(struct tn_bytes text, const char *word);

/* Whether a list such as "keep-alive, Upgrade" names a word. */
bool tn_http_names(struct tn_bytes list, const char *word);

/* Decimal digits and nothing else; false also for what is above INT64_MAX. */
bool tn_http_number(struct tn_bytes text, uint64_t *value);

/* 0 .. 15, or -1 */
int tn_http_hex(unsigned char byte);

/* ---- a head ---- */

enum tn_http_taken {
    TN_HTTP_TAKEN_PART,
    TN_HTTP_TAKEN_WHOLE, /* up to its empty line */
    TN_HTTP_TAKEN_FULL,  /* it's longer than its memory */
    TN_HTTP_TAKEN_WRONG, /* a bare line feed, or a control byte */
};

/* Moves bytes of a head from `input` to `head`. */
enum tn_http_taken tn_http_head_take(struct tn_buf *head, struct tn_bytes *input);

/* Takes a line from a head, without its end. */
struct tn_bytes tn_http_line(struct tn_bytes *rest);

/* False for what isn't "name: value". Folded lines have no name. */
bool tn_http_split(struct tn_bytes line, struct tn_bytes *name, struct tn_bytes *value);

/* How many fields stand behind the first line, when each is one; or -1. */
int tn_http_field_count(struct tn_bytes fields);

/* The value of that name's field, at its `nth` appearance, from 0. */
bool tn_http_field(struct tn_bytes fields, const char *name, uint32_t nth, struct tn_bytes *value);

/* ---- a body ---- */

enum tn_http_frame_state {
    TN_HTTP_FRAME_END,
    TN_HTTP_FRAME_LENGTH, /* left bytes */
    TN_HTTP_FRAME_SIZE,   /* of a chunk */
    TN_HTTP_FRAME_BLANK,  /* behind it */
    TN_HTTP_FRAME_NOTE,
    TN_HTTP_FRAME_SIZE_LF,
    TN_HTTP_FRAME_CHUNK, /* left bytes */
    TN_HTTP_FRAME_CHUNK_CR,
    TN_HTTP_FRAME_CHUNK_LF,
    TN_HTTP_FRAME_TRAILER,
    TN_HTTP_FRAME_TRAILER_LF,
};

struct tn_http_frame {
    enum tn_http_frame_state state;
    uint64_t left;
    uint32_t line_size; /* of a chunk's line, or of the trailer's */
    uint32_t trailer_size;
};

void tn_http_frame_length(struct tn_http_frame *frame, uint64_t length);
void tn_http_frame_chunks(struct tn_http_frame *frame);

/* Takes from `input` up to the end of the next piece of the body, which lies in the input. To be
 * called until the input is used up or the state is END. NULL, or what is wrong. */
const char *tn_http_frame_take(struct tn_http_frame *frame, struct tn_bytes *input,
                               struct tn_bytes *piece);
