/* Numbers that are written as the bytes of an integer: Kafka Connect's Decimal, Debezium's
 * VariableScaleDecimal and Bits. */
#include <string.h>

#include "ingest/decode_json.h"

enum {
    BYTES_MAX = 64, /* MySQL has 65 digits, Oracle 38: some 28 bytes */
    SCALE_MAX = TN_CONNECT_SCALE_MAX,
    DIGITS_MAX = 160, /* of BYTES_MAX bytes */
};

static tn_cursor fail_number(struct tn_decoder *d, tn_cursor at, uint32_t column)
{
    return tn_decode_fail(d, at, "column '%.60s': no number in base64", d->names[column]);
}

/* The magnitude's decimal digits, last one first; returns how many. Eats the bytes. */
static uint32_t digits_of(unsigned char *bytes, size_t size, unsigned char *digits)
{
    uint32_t count = 0;
    size_t first = 0;
    while (first < size) {
        unsigned rest = 0;
        for (size_t i = first; i < size; i++) {
            unsigned wide = rest << 8 | bytes[i];
            bytes[i] = (unsigned char)(wide / 10);
            rest = wide % 10;
        }
        digits[count++] = (unsigned char)('0' + rest);
        first += bytes[first] == 0;
    }
    return count;
}

static void negate(unsigned char *bytes, size_t size)
{
    unsigned carry = 1;
    for (size_t i = size; i-- > 0;) {
        carry += (unsigned char)~bytes[i];
        bytes[i] = (unsigned char)carry;
        carry >>= 8;
    }
}

/* As text, with at least one digit before the point. `bytes` is eaten. */
static void format_scaled(unsigned char *bytes, size_t size, int32_t scale, struct tn_buf *text)
{
    unsigned char digits[DIGITS_MAX];
    bool negative = bytes[0] & 0x80;
    if (negative) {
        negate(bytes, size);
    }
    int32_t count = (int32_t)digits_of(bytes, size, digits);
    if (negative) {
        tn_buf_byte(text, '-');
    }
    for (int32_t i = count > scale ? count - 1 : scale; i >= 0; i--) {
        tn_buf_byte(text, i < count ? digits[i] : '0');
        if (i == scale && i > 0) {
            tn_buf_byte(text, '.');
        }
    }
    for (int32_t i = scale; i < 0; i++) {
        tn_buf_byte(text, '0');
    }
}

/* Its text stays in scratch, where a column of text keeps it. */
static bool set_by_text(struct tn_decoder *d, tn_cursor at, uint32_t column, unsigned char *bytes,
                        size_t size, int32_t scale, struct tn_value *value)
{
    unsigned char room[DIGITS_MAX + SCALE_MAX + 4];
    struct tn_buf text;
    tn_buf_init(&text, room, sizeof room);
    format_scaled(bytes, size, scale, &text);
    if (text.size > d->scratch.capacity - d->scratch.size) {
        (void)tn_decode_fail(d, at, "column '%.60s': the record is too long", d->names[column]);
        return false;
    }
    struct tn_bytes kept = {d->scratch.data + d->scratch.size, text.size};
    tn_buf_append(&d->scratch, text.data, text.size);
    return tn_decode_text_value(d, at, column, kept, value);
}

/* Big-endian, two's complement, at least one byte. */
static bool set_number(struct tn_decoder *d, tn_cursor at, uint32_t column, unsigned char *bytes,
                       size_t size, int32_t scale, struct tn_value *value)
{
    const struct tn_type *type = &d->columns[column].type;
    *value = (struct tn_value){0};
    bool quick = type->kind == TN_TYPE_DECIMAL && type->scale == scale &&
                 tn_i128_from_be((struct tn_bytes){bytes, size}, &value->as.i128) &&
                 tn_i128_fits(value->as.i128, type->precision);
    return quick || set_by_text(d, at, column, bytes, size, scale, value);
}

/* Base64 to bytes, which leave room for one more in front. */
static tn_cursor read_bytes(struct tn_decoder *d, tn_cursor at, uint32_t column,
                            unsigned char bytes[BYTES_MAX + 1], size_t *size)
{
    struct tn_bytes text;
    uint64_t beyond_ascii = 0;
    tn_cursor end = tn_json_read_string(d, at, &text, &beyond_ascii);
    if (!end) {
        return NULL;
    }
    if (!tn_base64_measure(&text, size) || *size == 0 || *size > BYTES_MAX) {
        return fail_number(d, at, column);
    }
    tn_base64_decode(text, bytes + 1);
    return end;
}

tn_cursor tn_json_read_decimal(struct tn_decoder *d, tn_cursor at, uint32_t column,
                               struct tn_value *value)
{
    unsigned char bytes[BYTES_MAX + 1] = {0};
    size_t size = 0;
    bool bits = d->columns[column].text == TN_TEXT_BITS;
    tn_cursor end = read_bytes(d, at, column, bytes, &size);
    if (!end) {
        return NULL;
    }
    if (bits) { /* little-endian, without a sign: the byte in front is 0 */
        tn_decode_turn_bytes(bytes + 1, size);
    }
    bool set = set_number(d, at, column, bits ? bytes : bytes + 1, size + bits,
                          d->columns[column].scale, value);
    return set ? end : NULL;
}

static tn_cursor read_scale(struct tn_decoder *d, tn_cursor at, int64_t *scale)
{
    tn_cursor end = tn_scan_integer(at, scale);
    return end && *scale <= SCALE_MAX && *scale >= -SCALE_MAX
               ? end
               : tn_decode_fail(d, at, "no scale of a number");
}

tn_cursor tn_json_read_scaled(struct tn_decoder *d, tn_cursor at, uint32_t column,
                              struct tn_value *value)
{
    unsigned char bytes[BYTES_MAX + 1] = {0};
    size_t size = 0;
    int64_t scale = 0;
    tn_cursor first = at;
    struct tn_json_walk walk = tn_json_walk_into(at - 1);
    while (tn_json_walk_next(d, &walk)) {
        struct tn_bytes name = {0};
        walk.at = tn_json_read_key(d, walk.at, &name);
        if (walk.at && tn_bytes_equal(name, tn_bytes_of("scale"))) {
            walk.at = read_scale(d, walk.at, &scale);
        } else if (walk.at && tn_bytes_equal(name, tn_bytes_of("value")) && *walk.at == '"') {
            walk.at = read_bytes(d, walk.at + 1, column, bytes, &size);
        } else if (walk.at) {
            return tn_decode_fail(d, walk.at, "column '%.60s' is no object", d->names[column]);
        }
    }
    if (walk.at && size == 0) {
        return tn_decode_fail(d, first, "column '%.60s': an object without 'scale' and 'value'",
                              d->names[column]);
    }
    bool set = walk.at && set_number(d, first, column, bytes + 1, size, (int32_t)scale, value);
    return set ? walk.at : NULL;
}
