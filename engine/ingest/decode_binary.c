/* Strings that are bytes. */
#include "ingest/decode_json.h"

/* Canal writes binary columns as if their bytes were ISO-8859-1: a character each, up to U+00FF.
 * From behind the opening quote on; returns behind the closing one. NULL for `out`: it is only
 * measured. Source: canal, LogEventConvert. */
static tn_cursor read_latin1(struct tn_decoder *d, tn_cursor at, unsigned char *out, size_t *size)
{
    size_t done = 0;
    while (*at != '"') {
        unsigned char utf8[4] = {at[0], at[1]};
        unsigned char *behind = utf8;
        tn_cursor end = at + (*at < 0x80 ? 1 : 2);
        if (*at < 0x20) {
            return tn_decode_fail(d, at, "a control byte, or the end, in a string");
        }
        if (*at == '\\') {
            end = tn_json_read_escape(d, at, &behind);
        }
        if (!end) {
            return NULL;
        }
        bool two = (utf8[0] == 0xC2 || utf8[0] == 0xC3) && (utf8[1] & 0xC0) == 0x80;
        if (utf8[0] >= 0x80 && !two) {
            return tn_decode_fail(d, at, "a character beyond U+00FF is no byte");
        }
        if (out) {
            unsigned code = two ? ((utf8[0] & 3U) << 6) | (utf8[1] & 0x3FU) : utf8[0];
            out[done] = (unsigned char)code;
        }
        done++;
        at = end;
    }
    *size = done;
    return at + 1;
}

void tn_json_latin1(struct tn_decoder *d, struct tn_bytes raw, unsigned char *out)
{
    size_t size;
    (void)read_latin1(d, raw.data, out, &size);
}

static bool fits(struct tn_decoder *d, tn_cursor at, uint32_t column, size_t size)
{
    const struct tn_type *type = &d->columns[column].type;
    if (size <= (size_t)type->length) {
        return true;
    }
    char name[TN_TYPE_TEXT_SIZE];
    (void)tn_decode_fail(d, at, "column '%.60s': %zu bytes do not fit %s", d->names[column], size,
                         tn_type_format(type, name));
    return false;
}

/* No text has more bytes than it is written with. */
static tn_cursor read_latin1_value(struct tn_decoder *d, tn_cursor at, uint32_t column,
                                   struct tn_value *value)
{
    struct tn_buf *scratch = &d->scratch;
    tn_cursor behind = tn_scan_string(at);
    size_t raw_size = behind ? (size_t)(behind - at - 1) : 0;
    bool late = raw_size > scratch->capacity - scratch->size;
    unsigned char *out = late ? NULL : scratch->data + scratch->size;
    size_t size = 0;
    tn_cursor end = behind
                        ? read_latin1(d, at, out, &size)
                        : tn_decode_fail(d, at, "a control byte, or a wrong escape, in a string");
    if (!end || !fits(d, at, column, size)) {
        return NULL;
    }
    if (late) {
        struct tn_bytes raw = {at, raw_size};
        return tn_decode_text_late(d, column, raw, size, TN_LATE_LATIN1, value) ? end : NULL;
    }
    *value = (struct tn_value){.as.bytes = {out, size}};
    scratch->size += size;
    return end;
}

/* ---- base64 ---- */

/* 0..63, or 64 for what is no digit. RFC 4648, both alphabets. */
static unsigned base64_digit(unsigned char byte)
{
    unsigned lower = byte | 0x20U;
    if (lower - 'a' < 26) {
        return byte - (byte & 0x20U ? 'a' - 26U : (unsigned)'A');
    }
    if (tn_scan_digit(byte)) {
        return byte - (unsigned)'0' + 52;
    }
    return byte == '+' || byte == '-' ? 62 : byte == '/' || byte == '_' ? 63 : 64;
}

/* Text without its padding, and how many bytes it stands for; false when it is no base64. */
bool tn_base64_measure(struct tn_bytes *text, size_t *size)
{
    size_t padded = text->size;
    for (int i = 0; i < 2 && text->size > 0 && text->data[text->size - 1] == '='; i++) {
        text->size--;
    }
    bool fits = padded == text->size || padded % 4 == 0;
    bool good = fits && text->size % 4 != 1;
    for (size_t i = 0; good && i < text->size; i++) {
        good = base64_digit(text->data[i]) < 64;
    }
    *size = text->size / 4 * 3 + (text->size % 4 * 3 / 4);
    return good;
}

void tn_base64_decode(struct tn_bytes text, unsigned char *out)
{
    uint32_t word = 0;
    for (size_t i = 0; i < text.size; i++) {
        word = word << 6 | base64_digit(text.data[i]);
        if (i % 4 > 0) {
            *out++ = (unsigned char)(word >> (6 - i % 4 * 2));
        }
    }
}

void tn_decode_turn_bytes(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        unsigned char byte = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = byte;
    }
}

/* The bytes in scratch. A column of text gets them as text, if they are. */
static bool set_bytes(struct tn_decoder *d, tn_cursor at, uint32_t column, struct tn_bytes bytes,
                      struct tn_value *value)
{
    if (!tn_type_binary(d->columns[column].type.kind)) {
        return tn_decode_text_value(d, at, column, bytes, value);
    }
    *value = (struct tn_value){.as.bytes = bytes};
    return true;
}

static tn_cursor read_base64_value(struct tn_decoder *d, tn_cursor at, uint32_t column,
                                   struct tn_value *value)
{
    struct tn_bytes text;
    uint64_t beyond_ascii = 0;
    size_t size;
    tn_cursor end = tn_json_read_string(d, at, &text, &beyond_ascii);
    if (!end) {
        return NULL;
    }
    if (!tn_base64_measure(&text, &size)) {
        return tn_decode_fail(d, at, "column '%.60s': the text is no base64", d->names[column]);
    }
    if (tn_type_binary(d->columns[column].type.kind) && !fits(d, at, column, size)) {
        return NULL; /* of a text characters count, see set_bytes */
    }
    if (size > d->scratch.capacity - d->scratch.size) {
        return tn_decode_text_late(d, column, text, size, TN_LATE_BASE64, value) ? end : NULL;
    }
    unsigned char *out = d->scratch.data + d->scratch.size;
    tn_base64_decode(text, out);
    d->scratch.size += size;
    if (d->columns[column].text == TN_TEXT_BITS) {
        tn_decode_turn_bytes(out, size);
    }
    return set_bytes(d, at, column, (struct tn_bytes){out, size}, value) ? end : NULL;
}

tn_cursor tn_json_read_binary(struct tn_decoder *d, tn_cursor at, uint32_t column,
                              struct tn_value *value)
{
    const struct tn_decode_column *c = &d->columns[column];
    switch (c->text) {
    case TN_TEXT_LATIN1:
        return read_latin1_value(d, at, column, value);
    case TN_TEXT_BASE64:
        return read_base64_value(d, at, column, value);
    case TN_TEXT_BITS:
        return tn_type_binary(c->type.kind) ? read_base64_value(d, at, column, value)
                                            : tn_json_read_decimal(d, at, column, value);
    case TN_TEXT_DECIMAL:
        return tn_json_read_decimal(d, at, column, value);
    case TN_TEXT_PLAIN:
    case TN_TEXT_BIT:
    case TN_TEXT_ZONED:
    case TN_TEXT_UNCLEAR:
        break;
    }
    return tn_decode_fail(d, at,
                          "column '%.60s': the schema says string, which may be hex or base64: let "
                          "binary.handling.mode be bytes",
                          d->names[column]);
}
