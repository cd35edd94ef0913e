/* Long texts, which are rewritten in the row itself. */
#include "ingest/decode_private.h"

static bool all_hex(struct tn_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char lower = text.data[i] | 0x20;
        if (!tn_scan_digit(text.data[i]) && (lower < 'a' || lower > 'f')) {
            return false;
        }
    }
    return true;
}

/* Whether it may be the column's, as far as that can be told of a text that isn't rewritten yet. */
static tn_rc check_late(struct tn_decoder *decoder, const struct tn_decode_column *c,
                        struct tn_bytes raw, enum tn_decode_late_kind kind, struct tn_err *err)
{
    struct tn_value ignored;
    if (decoder->late_count == TN_DECODE_LATE_MAX) {
        return tn_err_set(err, TN_INVALID, 0, "too many long texts");
    }
    if (kind == TN_LATE_LATIN1 || kind == TN_LATE_BASE64) { /* looked at before */
        bool bytes = tn_type_binary(c->type.kind) && c->text != TN_TEXT_BITS;
        return bytes ? TN_OK : tn_err_set(err, TN_INVALID, 0, "the text is too long to be decoded");
    }
    if (kind == TN_LATE_HEX) {
        return all_hex(raw) ? TN_OK : tn_err_set(err, TN_INVALID, 0, "a long text is no hex");
    }
    if (!tn_type_textual(c->type.kind)) {
        return tn_err_set(err, TN_INVALID, 0, "the text is too long to be unescaped");
    }
    /* An escape counts as the characters that it is written with: one refused more, at the limit.
     */
    return tn_value_parse(&c->type, c->epoch, raw, &decoder->scratch, &ignored, err);
}

bool tn_decode_text_late(struct tn_decoder *decoder, uint32_t column, struct tn_bytes raw,
                         size_t size, enum tn_decode_late_kind kind, struct tn_value *value)
{
    struct tn_err err;
    if (check_late(decoder, &decoder->columns[column], raw, kind, &err) != TN_OK) {
        (void)tn_decode_fail(decoder, raw.data, "column '%.60s': %s", decoder->names[column],
                             err.text);
        return false;
    }
    *value = (struct tn_value){.as.bytes = {raw.data, size}};
    decoder->late[decoder->late_count++] = (struct tn_decode_late){raw, kind};
    return true;
}

static unsigned hex_digit(unsigned char byte)
{
    return tn_scan_digit(byte) ? byte - (unsigned)'0' : (byte | 0x20U) - 'a' + 10U;
}

void tn_decode_late_write(struct tn_decoder *decoder, const struct tn_decode_late *late,
                          unsigned char *out)
{
    struct tn_bytes raw = late->raw;
    switch (late->kind) {
    case TN_LATE_ESCAPED:
        tn_json_unescape(decoder, raw, out);
        break;
    case TN_LATE_LATIN1:
        tn_json_latin1(decoder, raw, out);
        break;
    case TN_LATE_LINE:
        tn_line_unescape(raw, out);
        break;
    case TN_LATE_BASE64:
        tn_base64_decode(raw, out);
        break;
    case TN_LATE_DOUBLED:
        for (size_t i = 0; i < raw.size; i += raw.data[i] == '"' ? 2 : 1) {
            *out++ = raw.data[i];
        }
        break;
    case TN_LATE_HEX:
        for (size_t i = 0; i + 1 < raw.size; i += 2) {
            *out++ = (unsigned char)(hex_digit(raw.data[i]) << 4 | hex_digit(raw.data[i + 1]));
        }
        break;
    }
}
