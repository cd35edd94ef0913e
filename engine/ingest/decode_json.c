#include "ingest/decode_json.h"

#include <string.h>

/* ---- strings ---- */

static unsigned char *put_utf8(unsigned char *out, uint32_t code)
{
    if (code < 0x80) {
        *out++ = (unsigned char)code;
    } else if (code < 0x800) {
        *out++ = (unsigned char)(0xC0 | code >> 6);
        *out++ = (unsigned char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (unsigned char)(0xE0 | code >> 12);
        *out++ = (unsigned char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (unsigned char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (unsigned char)(0xF0 | code >> 18);
        *out++ = (unsigned char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (unsigned char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (unsigned char)(0x80 | (code & 0x3F));
    }
    return out;
}

/* The code point of an escape whose `\u` is at `at`; half a surrogate pair is none. */
static tn_cursor read_unicode(struct tn_decoder *d, tn_cursor at, uint32_t *code)
{
    uint32_t low;
    if (!tn_scan_hex4(at + 2, code)) {
        return tn_decode_fail(d, at, "\\u without four hex digits");
    }
    if (*code < 0xD800 || *code > 0xDFFF) {
        return at + 6;
    }
    bool pair = *code < 0xDC00 && at[6] == '\\' && at[7] == 'u' && tn_scan_hex4(at + 8, &low) &&
                low >= 0xDC00 && low <= 0xDFFF;
    if (!pair) {
        return tn_decode_fail(d, at, "half a surrogate pair");
    }
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return at + 12;
}

tn_cursor tn_json_read_escape(struct tn_decoder *d, tn_cursor at, unsigned char **out)
{
    static const char names[] = "\"\\/bfnrt";
    static const char bytes[] = "\"\\/\b\f\n\r\t";
    if (at[1] == 'u') {
        uint32_t code = 0;
        tn_cursor end = read_unicode(d, at, &code);
        if (end) {
            *out = put_utf8(*out, code);
        }
        return end;
    }
    const char *name = memchr(names, at[1], sizeof names - 1);
    if (!name) {
        return tn_decode_fail(d, at, "there is no such escape");
    }
    *(*out)++ = (unsigned char)bytes[name - names];
    return at + 2;
}

static bool in_place(const struct tn_decoder *d)
{
    return d->start == d->scratch.data && !d->read_again;
}

/* Where a text without its escapes goes, at most `size` bytes. A record that was copied makes room
 * for itself: no escape is shorter than what it stands for. */
static unsigned char *room_for(struct tn_decoder *d, tn_cursor at, size_t size)
{
    struct tn_buf *scratch = &d->scratch;
    if (in_place(d)) {
        return scratch->data + (at - d->start);
    }
    return size <= scratch->capacity - scratch->size ? scratch->data + scratch->size : NULL;
}

/* What a string stands for, from behind its opening quote on; returns behind the closing one. `out`
 * may be `at`; NULL: it is only measured. */
static tn_cursor unescape(struct tn_decoder *d, tn_cursor at, unsigned char *out, size_t *size)
{
    uint64_t beyond_ascii = 0;
    size_t done = 0;
    while (*at != '"') {
        bool escape = *at == '\\'; /* ask before `out`, which may be here, is written */
        unsigned char bytes[4];
        unsigned char *first = out ? out + done : bytes;
        unsigned char *last = first;
        tn_cursor end =
            escape ? tn_json_read_escape(d, at, &last) : tn_scan_plain(at, &beyond_ascii);
        if (!end) {
            return NULL;
        }
        if (end == at) {
            return tn_decode_fail(d, at, "a control byte, or the end, in a string");
        }
        if (!escape && out) {
            memmove(first, at, (size_t)(end - at));
        }
        done += (size_t)(escape ? last - first : end - at);
        at = end;
    }
    *size = done;
    return at + 1;
}

void tn_json_unescape(struct tn_decoder *d, struct tn_bytes raw, unsigned char *out)
{
    size_t size;
    (void)unescape(d, raw.data, out, &size);
}

/* A text that finds no room has its size, but no data. */
static tn_cursor read_escaped(struct tn_decoder *d, tn_cursor at, struct tn_bytes *text)
{
    size_t size = 0;
    unsigned char *out = room_for(d, at, (size_t)(d->end - at));
    if (!out) { /* the record's rest has none; does the string? */
        tn_cursor end = unescape(d, at, NULL, &size);
        out = end ? room_for(d, at, size) : NULL;
        if (!out) {
            *text = (struct tn_bytes){NULL, size};
            return end;
        }
    }
    at = unescape(d, at, out, &size);
    *text = (struct tn_bytes){out, size};
    if (!in_place(d)) {
        d->scratch.size += size;
    }
    return at;
}

/* `at` is behind the opening quote. The text is a view of the record, or of scratch where it has
 * escapes. */
static inline tn_cursor read_string(struct tn_decoder *d, tn_cursor at, struct tn_bytes *text,
                                    uint64_t *beyond_ascii)
{
    tn_cursor end = tn_scan_plain(at, beyond_ascii);
    if (*end == '"') {
        *text = (struct tn_bytes){at, (size_t)(end - at)};
        return end + 1;
    }
    *beyond_ascii = 1;
    return read_escaped(d, at, text);
}

tn_cursor tn_json_read_string(struct tn_decoder *d, tn_cursor at, struct tn_bytes *text,
                              uint64_t *beyond_ascii)
{
    tn_cursor end = read_string(d, at, text, beyond_ascii);
    return !end || text->data ? end : tn_decode_fail(d, at, "no room for texts with escapes");
}

tn_cursor tn_json_read_key(struct tn_decoder *d, tn_cursor at, struct tn_bytes *key)
{
    uint64_t beyond_ascii = 0;
    if (*at != '"') {
        return tn_decode_fail(d, at, "a name in quotes belongs here");
    }
    at = tn_json_read_string(d, at + 1, key, &beyond_ascii);
    if (!at) {
        return NULL;
    }
    at = tn_scan_space(at);
    return *at == ':' ? tn_scan_space(at + 1) : tn_decode_fail(d, at, "':' belongs here");
}

bool tn_json_walk_next(struct tn_decoder *d, struct tn_json_walk *walk)
{
    if (!walk->at) {
        return false;
    }
    walk->at = tn_scan_space(walk->at);
    if (*walk->at == walk->end) {
        walk->at++;
        return false;
    }
    if (walk->inside) {
        walk->at = *walk->at == ','
                       ? tn_scan_space(walk->at + 1)
                       : tn_decode_fail(d, walk->at, "',' or '%c' belongs here", walk->end);
    }
    walk->inside = true;
    return walk->at != NULL;
}

/* ---- values that nobody needs: passed over, but they have to be JSON ---- */

struct nest {
    uint32_t objects; /* a bit a level, the innermost lowest: 1 = object, 0 = array */
    uint32_t depth;
};
_Static_assert(TN_DECODE_DEPTH_MAX <= 32, "one bit a level");

static tn_cursor skip_scalar(struct tn_decoder *d, tn_cursor at)
{
    tn_cursor end = NULL;
    if (*at == '"') {
        end = tn_scan_string(at + 1);
    } else if (tn_scan_digit(*at) || *at == '-') {
        end = tn_scan_number(at);
    } else if (tn_json_is_word(at, "true", 4) || tn_json_is_word(at, "null", 4)) {
        end = at + 4;
    } else if (tn_json_is_word(at, "false", 5)) {
        end = at + 5;
    }
    return end ? end : tn_decode_fail(d, at, "no JSON value");
}

tn_cursor tn_json_skip_key(struct tn_decoder *d, tn_cursor at)
{
    tn_cursor end = *at == '"' ? tn_scan_string(at + 1) : NULL;
    if (!end) {
        return tn_decode_fail(d, at, "a name in quotes belongs here");
    }
    at = tn_scan_space(end);
    return *at == ':' ? at + 1 : tn_decode_fail(d, at, "':' belongs here");
}

/* Into an object or array, up to its first value; an empty one is left at its closing bracket with
 * *empty. */
static tn_cursor skip_open(struct tn_decoder *d, tn_cursor at, struct nest *nest, bool *empty)
{
    bool object = *at == '{';
    if (nest->depth == TN_DECODE_DEPTH_MAX) {
        return tn_decode_fail(d, at, "nested more than %d deep", TN_DECODE_DEPTH_MAX);
    }
    nest->objects = nest->objects << 1 | object;
    nest->depth++;
    at = tn_scan_space(at + 1);
    *empty = *at == (object ? '}' : ']');
    return object && !*empty ? tn_json_skip_key(d, at) : at;
}

/* Behind a value: out of all that ends here, up to the next value or, with depth 0, the end. */
static tn_cursor skip_close(struct tn_decoder *d, tn_cursor at, struct nest *nest)
{
    while (nest->depth > 0) {
        bool object = nest->objects & 1;
        at = tn_scan_space(at);
        if (*at == ',') {
            at = tn_scan_space(at + 1);
            return object ? tn_json_skip_key(d, at) : at;
        }
        if (*at != (object ? '}' : ']')) {
            return tn_decode_fail(d, at, "',' or '%c' belongs here", object ? '}' : ']');
        }
        at++;
        nest->objects >>= 1;
        nest->depth--;
    }
    return at;
}

tn_cursor tn_json_skip_value(struct tn_decoder *d, tn_cursor at)
{
    struct nest nest = {0};
    do {
        bool empty = true;
        at = tn_scan_space(at);
        at = *at == '{' || *at == '[' ? skip_open(d, at, &nest, &empty) : skip_scalar(d, at);
        if (at && empty) {
            at = skip_close(d, at, &nest);
        }
    } while (at && nest.depth > 0);
    return at;
}

/* ---- values of columns ---- */

static tn_cursor fail_type(struct tn_decoder *d, tn_cursor at, uint32_t column, const char *found)
{
    return tn_decode_fail(d, at, "column '%.60s' is %s, and the record has %s", d->names[column],
                          tn_type_name(d->columns[column].type.kind), found);
}

static tn_cursor read_number_slow(struct tn_decoder *d, tn_cursor at, uint32_t column,
                                  struct tn_value *value)
{
    const struct tn_decode_column *c = &d->columns[column];
    tn_cursor end = tn_scan_number(at);
    if (!end) {
        return tn_decode_fail(d, at, "column '%.60s': no JSON value", d->names[column]);
    }
    bool boolean = c->type.kind == TN_TYPE_BOOLEAN && c->text != TN_TEXT_BIT;
    if (tn_type_textual(c->type.kind) || tn_type_binary(c->type.kind) || boolean) {
        return fail_type(d, at, column, "a number");
    }
    struct tn_bytes token = {at, (size_t)(end - at)};
    return tn_decode_text_value(d, at, column, token, value) ? end : NULL;
}

/* Maxwell writes JSON columns as what they hold, and sets as arrays: in a column of text that stays
 * as it stands. Debezium has numbers that bring their scale. */
static tn_cursor read_nested(struct tn_decoder *d, tn_cursor at, uint32_t column,
                             struct tn_value *value)
{
    bool kept = d->spec.input == TN_INPUT_MAXWELL && tn_type_textual(d->columns[column].type.kind);
    if (d->spec.input == TN_INPUT_DEBEZIUM && *at == '{') {
        return tn_json_read_scaled(d, at + 1, column, value);
    }
    if (!kept) {
        return fail_type(d, at, column, *at == '{' ? "an object" : "an array");
    }
    tn_cursor end = tn_json_skip_value(d, at);
    struct tn_bytes text = {at, end ? (size_t)(end - at) : 0};
    return end && tn_decode_text_value(d, at, column, text, value) ? end : NULL;
}

/* What is not a string, and not what the column's type is usually written as. */
static tn_cursor read_value_slow(struct tn_decoder *d, tn_cursor at, uint32_t column,
                                 struct tn_value *value)
{
    const struct tn_decode_column *c = &d->columns[column];
    bool yes = tn_json_is_word(at, "true", 4);
    if (yes || tn_json_is_word(at, "false", 5)) {
        if (c->type.kind != TN_TYPE_BOOLEAN) {
            return fail_type(d, at, column, yes ? "true" : "false");
        }
        *value = (struct tn_value){.as.i64 = yes};
        return at + (yes ? 4 : 5);
    }
    if (*at == '{' || *at == '[') {
        return read_nested(d, at, column, value);
    }
    return read_number_slow(d, at, column, value);
}

static tn_cursor read_string_value(struct tn_decoder *d, tn_cursor at, uint32_t column,
                                   struct tn_value *value)
{
    const struct tn_decode_column *c = &d->columns[column];
    struct tn_bytes text = {0};
    uint64_t beyond_ascii = 0;
    if (c->text >= TN_TEXT_LATIN1) {
        return tn_json_read_binary(d, at + 1, column, value);
    }
    tn_cursor number = tn_decode_quick_number(c, at + 1, value);
    if (number && *number == '"') {
        value->null = false;
        return number + 1;
    }
    tn_cursor end = read_string(d, at + 1, &text, &beyond_ascii);
    if (!end) {
        return NULL;
    }
    if (!text.data) {
        struct tn_bytes raw = {at + 1, (size_t)(end - at - 2)};
        return tn_decode_text_late(d, column, raw, text.size, TN_LATE_ESCAPED, value) ? end : NULL;
    }
    if (c->quick == TN_QUICK_TEXT && !beyond_ascii && text.size <= (size_t)c->type.length) {
        value->null = false;
        value->as.bytes = text;
        return end;
    }
    return tn_decode_text_value(d, at, column, text, value) ? end : NULL;
}

static inline tn_cursor read_value(struct tn_decoder *d, tn_cursor at, uint32_t column,
                                   struct tn_decode_row *row)
{
    struct tn_value *value = &row->values[column];
    if (*at == '"') {
        return read_string_value(d, at, column, value);
    }
    tn_cursor end = tn_decode_quick_number(&d->columns[column], at, value);
    if (end) {
        value->null = false;
        return end;
    }
    if (tn_json_is_word(at, "null", 4)) {
        *value = (struct tn_value){.null = true};
        row->any_null = true;
        return at + 4;
    }
    return read_value_slow(d, at, column, value);
}

/* ---- rows ---- */

/* A key that is not the one which came here the last time. *column is -1 for one to be dropped. */
static tn_cursor find_key(struct tn_decoder *d, tn_cursor at, int32_t *column)
{
    struct tn_bytes name = {0};
    tn_cursor value = tn_json_read_key(d, at, &name);
    if (!value) {
        return NULL;
    }
    *column = tn_decode_find(d, name);
    if (*column < 0 && d->spec.unknown == TN_UNKNOWN_FAIL) {
        return tn_decode_fail_unknown(d, at, name);
    }
    return value;
}

/* One member. `last` is the column before it: producers keep their order, so what followed it the
 * last time is the guess, whatever the order of the schema. */
static inline tn_cursor read_member(struct tn_decoder *d, tn_cursor at, struct tn_decode_row *row,
                                    uint32_t *last)
{
    uint32_t guess = d->keys[*last].next;
    const struct tn_decode_key *key = &d->keys[guess];
    tn_cursor value;
    if (*at == '"' && tn_decode_key_is(key, at + 1, d->end) && at[key->size + 2] == ':') {
        value = tn_scan_space(at + key->size + 3);
    } else {
        int32_t column = -1;
        value = find_key(d, at, &column);
        if (!value || column < 0) {
            return value ? tn_json_skip_value(d, value) : NULL;
        }
        guess = (uint32_t)column;
        d->keys[*last].next = guess;
    }
    if (!tn_decode_see(row, guess)) {
        return tn_decode_fail(d, at, "column '%.60s' stands there twice", d->names[guess]);
    }
    *last = guess;
    return read_value(d, value, guess, row);
}

tn_cursor tn_json_read_row(struct tn_decoder *d, tn_cursor at, struct tn_decode_row *row)
{
    uint32_t last = d->column_count;
    tn_decode_row_begin(d, row);
    at = tn_scan_space(at);
    if (*at == '}') {
        return at + 1;
    }
    for (;;) {
        at = read_member(d, at, row, &last);
        if (!at) {
            return NULL;
        }
        at = tn_scan_space(at);
        if (*at != ',') {
            break;
        }
        at = tn_scan_space(at + 1);
    }
    return *at == '}' ? at + 1 : tn_decode_fail(d, at, "',' or '}' belongs here");
}

bool tn_json_at_end(struct tn_decoder *d, tn_cursor at)
{
    at = tn_scan_space(at);
    if (at >= d->end && *at == '\n') {
        return true;
    }
    (void)tn_decode_fail(d, at, "something follows the record");
    return false;
}

void tn_decode_json(struct tn_decoder *d)
{
    tn_cursor at = tn_scan_space(d->start);
    if (*at != '{') {
        (void)tn_decode_fail(d, at, "an object belongs here");
        return;
    }
    at = tn_json_read_row(d, at + 1, &d->rows[0]);
    if (at && tn_json_at_end(d, at)) {
        (void)tn_decode_row_finish(d, &d->rows[0], TN_ROW_INSERT);
    }
}
