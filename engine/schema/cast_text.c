/* Texts as numbers: Paimon's BinaryStringUtils, and behind it Java's parsers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/cast_private.h"
#include "schema/decimal.h"
#include "schema/text_scan.h"

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
}

static bool is_word_in_any_case(struct tn_bytes text, const char *word)
{
    size_t size = strlen(word);
    bool same = text.size == size;
    for (size_t i = 0; same && i < size; i++) {
        same = lower(text.data[i]) == (unsigned char)word[i];
    }
    return same;
}

bool tn_cast_text_to_boolean(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    static const char *const words[][2] = {
        {"f", "t"}, {"false", "true"}, {"n", "y"}, {"no", "yes"}, {"0", "1"}};
    (void)cast;
    for (size_t i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
        if (is_word_in_any_case(from->as.bytes, words[i / 2][i % 2])) {
            out->value.as.i64 = (int64_t)(i % 2);
            return true;
        }
    }
    return false;
}

/* A sign, digits, and perhaps a fraction that is cut; "." is 0. Java: BinaryStringUtils.toLong */
bool tn_cast_text_to_integer(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    static const int64_t max_of_kind[] = {
        [TN_TYPE_TINYINT] = INT8_MAX,
        [TN_TYPE_SMALLINT] = INT16_MAX,
        [TN_TYPE_INT] = INT32_MAX,
        [TN_TYPE_BIGINT] = INT64_MAX,
    };
    struct tn_bytes rest = from->as.bytes;
    struct tn_bytes whole = rest;
    if (!tn_take_byte(&rest, '-')) {
        (void)tn_take_byte(&rest, '+');
    }
    bool digits = tn_take_digits(&rest).size > 0;
    whole.size -= rest.size;
    bool point = tn_take_byte(&rest, '.');
    if (point) {
        (void)tn_take_digits(&rest);
    }
    int64_t number = 0;
    if (rest.size > 0 || (!digits && !point) ||
        (digits && tn_integer_parse(whole, &number) != TN_INTEGER_OK)) {
        return false;
    }
    out->value.as.i64 = number;
    int64_t max = max_of_kind[cast->to.kind];
    return number <= max && number >= -max - 1;
}

bool tn_cast_text_to_decimal(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out)
{
    enum tn_decimal_rounded rounded =
        tn_decimal_round(&cast->to, from->as.bytes, &out->value.as.i128);
    out->value.null = rounded == TN_DECIMAL_TOO_LARGE;
    return rounded != TN_DECIMAL_NONE;
}

/* ---- Double.parseDouble and Float.parseFloat ---- */

enum { HEX_DIGITS = 16, HEX_EXPONENT_LIMIT = 100000 };

/* The digits of a hexadecimal number: the first of them, and where its point is. */
struct hex_text {
    uint64_t mantissa;
    int64_t exponent; /* of two */
    bool tail;        /* digits other than 0 were left out */
    size_t count;
};

static int hex_digit(unsigned char byte)
{
    byte = lower(byte);
    return tn_is_digit(byte) ? byte - '0' : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static void take_hex(struct tn_bytes *rest, bool fraction, struct hex_text *hex)
{
    while (rest->size > 0 && hex_digit(rest->data[0]) >= 0) {
        uint64_t digit = (uint64_t)hex_digit(rest->data[0]);
        if (hex->mantissa >> (4 * (HEX_DIGITS - 1)) == 0) {
            hex->mantissa = hex->mantissa << 4 | digit;
            hex->exponent -= fraction ? 4 : 0;
        } else {
            hex->tail = hex->tail || digit != 0;
            hex->exponent += fraction ? 0 : 4;
        }
        hex->count++;
        tn_skip(rest, 1);
    }
}

/* From behind the 'p', which a hexadecimal number must have; the whole rest. */
static bool take_binary_exponent(struct tn_bytes rest, struct hex_text *hex)
{
    bool negative = tn_take_byte(&rest, '-');
    if (!negative) {
        (void)tn_take_byte(&rest, '+');
    }
    struct tn_bytes digits = tn_take_digits(&rest);
    int64_t size = 0;
    for (size_t i = 0; i < digits.size; i++) {
        size = size < INT32_MAX ? size * 10 + (digits.data[i] - '0') : size;
    }
    hex->exponent += negative ? -size : size;
    return digits.size > 0 && rest.size == 0;
}

/* 0x1.8p3, from behind the 0x. The C library rounds it. */
static bool parse_hex(struct tn_bytes rest, bool narrow, double *value)
{
    struct hex_text hex = {0};
    take_hex(&rest, false, &hex);
    if (tn_take_byte(&rest, '.')) {
        take_hex(&rest, true, &hex);
    }
    if (hex.count == 0 || (!tn_take_byte(&rest, 'p') && !tn_take_byte(&rest, 'P')) ||
        !take_binary_exponent(rest, &hex)) {
        return false;
    }
    int64_t exponent = hex.exponent < -HEX_EXPONENT_LIMIT ? -HEX_EXPONENT_LIMIT : hex.exponent;
    exponent = exponent > HEX_EXPONENT_LIMIT ? HEX_EXPONENT_LIMIT : exponent;
    char copy[64];
    (void)snprintf(copy, sizeof copy, "0x%" PRIx64 "%cp%d", hex.mantissa, hex.tail ? '1' : '0',
                   (int)exponent - 4);
    *value = narrow ? (double)strtof(copy, NULL) : strtod(copy, NULL);
    return true;
}

/* Of a text without sign and blanks. */
static bool parse_unsigned(struct tn_bytes text, bool narrow, double *value)
{
    static const char nan_text[] = "NaN";
    static const char infinity_text[] = "Infinity";
    if (tn_bytes_equal(text, tn_bytes_of(nan_text))) {
        *value = (double)NAN;
        return true;
    }
    if (tn_bytes_equal(text, tn_bytes_of(infinity_text))) {
        *value = (double)INFINITY;
        return true;
    }
    if (text.size > 0 && strchr("fFdD", text.data[text.size - 1]) && text.data[text.size - 1]) {
        text.size--; /* Java's literals */
    }
    if (text.size > 2 && text.data[0] == '0' && lower(text.data[1]) == 'x') {
        return parse_hex((struct tn_bytes){text.data + 2, text.size - 2}, narrow, value);
    }
    if (text.size == 0 || text.data[0] == '-' || text.data[0] == '+') {
        return false;
    }
    float single = 0;
    bool parsed = narrow ? tn_float_parse(text, &single) : tn_double_parse(text, value);
    *value = narrow ? (double)single : *value;
    return parsed;
}

bool tn_cast_text_to_float(const struct tn_cast *cast, const struct tn_value *from,
                           struct tn_cast_out *out)
{
    struct tn_bytes text = tn_cast_trimmed(from->as.bytes);
    bool negative = tn_take_byte(&text, '-');
    if (!negative) {
        (void)tn_take_byte(&text, '+');
    }
    double size = 0;
    bool parsed = parse_unsigned(text, cast->to.kind == TN_TYPE_FLOAT, &size);
    out->value.as.f64 = negative && size == size ? -size : size;
    return parsed;
}
