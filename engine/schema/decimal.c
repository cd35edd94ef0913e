#include "schema/decimal.h"

#include "base/check.h"
#include "schema/text_scan.h"

/* Two's complement in two words; also a magnitude, where both words are unsigned. */
struct words {
    uint64_t low;
    uint64_t high;
};

static const struct words powers_of_ten[TN_DECIMAL_PRECISION_MAX + 1] = {
    {UINT64_C(0x1), UINT64_C(0x0)},
    {UINT64_C(0xa), UINT64_C(0x0)},
    {UINT64_C(0x64), UINT64_C(0x0)},
    {UINT64_C(0x3e8), UINT64_C(0x0)},
    {UINT64_C(0x2710), UINT64_C(0x0)},
    {UINT64_C(0x186a0), UINT64_C(0x0)},
    {UINT64_C(0xf4240), UINT64_C(0x0)},
    {UINT64_C(0x989680), UINT64_C(0x0)},
    {UINT64_C(0x5f5e100), UINT64_C(0x0)},
    {UINT64_C(0x3b9aca00), UINT64_C(0x0)},
    {UINT64_C(0x2540be400), UINT64_C(0x0)},
    {UINT64_C(0x174876e800), UINT64_C(0x0)},
    {UINT64_C(0xe8d4a51000), UINT64_C(0x0)},
    {UINT64_C(0x9184e72a000), UINT64_C(0x0)},
    {UINT64_C(0x5af3107a4000), UINT64_C(0x0)},
    {UINT64_C(0x38d7ea4c68000), UINT64_C(0x0)},
    {UINT64_C(0x2386f26fc10000), UINT64_C(0x0)},
    {UINT64_C(0x16345785d8a0000), UINT64_C(0x0)},
    {UINT64_C(0xde0b6b3a7640000), UINT64_C(0x0)},
    {UINT64_C(0x8ac7230489e80000), UINT64_C(0x0)},
    {UINT64_C(0x6bc75e2d63100000), UINT64_C(0x5)},
    {UINT64_C(0x35c9adc5dea00000), UINT64_C(0x36)},
    {UINT64_C(0x19e0c9bab2400000), UINT64_C(0x21e)},
    {UINT64_C(0x2c7e14af6800000), UINT64_C(0x152d)},
    {UINT64_C(0x1bcecceda1000000), UINT64_C(0xd3c2)},
    {UINT64_C(0x161401484a000000), UINT64_C(0x84595)},
    {UINT64_C(0xdcc80cd2e4000000), UINT64_C(0x52b7d2)},
    {UINT64_C(0x9fd0803ce8000000), UINT64_C(0x33b2e3c)},
    {UINT64_C(0x3e25026110000000), UINT64_C(0x204fce5e)},
    {UINT64_C(0x6d7217caa0000000), UINT64_C(0x1431e0fae)},
    {UINT64_C(0x4674edea40000000), UINT64_C(0xc9f2c9cd0)},
    {UINT64_C(0xc0914b2680000000), UINT64_C(0x7e37be2022)},
    {UINT64_C(0x85acef8100000000), UINT64_C(0x4ee2d6d415b)},
    {UINT64_C(0x38c15b0a00000000), UINT64_C(0x314dc6448d93)},
    {UINT64_C(0x378d8e6400000000), UINT64_C(0x1ed09bead87c0)},
    {UINT64_C(0x2b878fe800000000), UINT64_C(0x13426172c74d82)},
    {UINT64_C(0xb34b9f1000000000), UINT64_C(0xc097ce7bc90715)},
    {UINT64_C(0xf436a000000000), UINT64_C(0x785ee10d5da46d9)},
    {UINT64_C(0x98a224000000000), UINT64_C(0x4b3b4ca85a86c47a)},
};

static struct words magnitude(struct tn_i128 value)
{
    uint64_t high = (uint64_t)value.high;
    if (value.high >= 0) {
        return (struct words){value.low, high};
    }
    return (struct words){~value.low + 1, ~high + (value.low == 0)};
}

static struct tn_i128 negated(struct tn_i128 value)
{
    return (struct tn_i128){~value.low + 1, (int64_t)(~(uint64_t)value.high + (value.low == 0))};
}

struct tn_i128 tn_i128_of(int64_t value)
{
    return (struct tn_i128){(uint64_t)value, value < 0 ? -1 : 0};
}

int tn_i128_compare(struct tn_i128 a, struct tn_i128 b)
{
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }
    return (a.low > b.low) - (a.low < b.low);
}

bool tn_i128_fits(struct tn_i128 value, uint32_t precision)
{
    TN_CHECK(precision <= TN_DECIMAL_PRECISION_MAX);
    struct words size = magnitude(value);
    struct words limit = powers_of_ten[precision];
    return size.high < limit.high || (size.high == limit.high && size.low < limit.low);
}

bool tn_i128_push_digit(struct tn_i128 *value, unsigned digit, bool negative)
{
    if (!tn_i128_fits(*value, TN_DECIMAL_PRECISION_MAX - 1)) {
        return false;
    }
    uint64_t lower = (value->low & UINT32_MAX) * 10;
    uint64_t upper = (value->low >> 32) * 10 + (lower >> 32);
    uint64_t low = value->low * 10;
    uint64_t high = (uint64_t)value->high * 10 + (upper >> 32);
    uint64_t sum = negative ? low - digit : low + digit;
    high += negative ? (uint64_t)0 - (sum > low) : (uint64_t)(sum < low);
    *value = (struct tn_i128){sum, (int64_t)high};
    return true;
}

uint32_t tn_i128_to_be(struct tn_i128 value, unsigned char bytes[16])
{
    unsigned char all[16];
    for (uint32_t i = 0; i < 8; i++) {
        all[i] = (unsigned char)((uint64_t)value.high >> (56 - 8 * i));
        all[8 + i] = (unsigned char)(value.low >> (56 - 8 * i));
    }
    unsigned char fill = value.high < 0 ? 0xff : 0;
    uint32_t first = 0; /* a leading byte goes when the next one still shows the sign */
    while (first < 15 && all[first] == fill && (all[first + 1] & 0x80) == (fill & 0x80)) {
        first++;
    }
    memcpy(bytes, all + first, 16 - first);
    return 16 - first;
}

bool tn_i128_from_be(struct tn_bytes bytes, struct tn_i128 *value)
{
    if (bytes.size == 0) {
        return false;
    }
    uint64_t fill = bytes.data[0] & 0x80 ? UINT64_MAX : 0;
    struct words words = {fill, fill};
    size_t extra = bytes.size > 16 ? bytes.size - 16 : 0; /* bytes that may only repeat the sign */
    for (size_t i = 0; i < extra; i++) {
        if (bytes.data[i] != (unsigned char)fill) {
            return false;
        }
    }
    if (extra > 0 && ((bytes.data[extra] ^ fill) & 0x80)) {
        return false;
    }
    for (size_t i = extra; i < bytes.size; i++) {
        words.high = words.high << 8 | words.low >> 56;
        words.low = words.low << 8 | bytes.data[i];
    }
    *value = (struct tn_i128){words.low, (int64_t)words.high};
    return true;
}

/* ---- integers as text ---- */

/* Writes the digits so that they end before `end`; returns where they start. */
static char *write_digits(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}

void tn_integer_format(struct tn_buf *buf, int64_t value)
{
    char text[20]; /* a sign and 19 digits */
    char *end = text + sizeof text;
    char *start = write_digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0) {
        *--start = '-';
    }
    tn_buf_append(buf, start, (size_t)(end - start));
}

void tn_digits_format(struct tn_buf *buf, uint32_t value, uint32_t digits)
{
    char text[10]; /* all digits of a uint32_t */
    TN_CHECK(digits <= sizeof text);
    for (uint32_t i = digits; i > 0; i--) {
        text[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    tn_buf_append(buf, text, digits);
}

/* The magnitude, in words that may be too large for the sign; false when it leaves 64 bits. */
static inline bool push_u64(uint64_t *value, unsigned digit)
{
    if (*value > (UINT64_MAX - digit) / 10) {
        return false;
    }
    *value = *value * 10 + digit;
    return true;
}

enum tn_integer_parsed tn_integer_parse(struct tn_bytes text, int64_t *value)
{
    size_t at = 0;
    bool negative = text.size > 0 && text.data[0] == '-';
    if (negative || (text.size > 0 && text.data[0] == '+')) {
        at = 1;
    }
    if (at == text.size) {
        return TN_INTEGER_NONE;
    }
    uint64_t size = 0;
    bool fits = true;
    size_t safe_end = at + 19; /* 19 digits always fit 64 bits */
    for (; at < text.size; at++) {
        if (!tn_is_digit(text.data[at])) {
            return TN_INTEGER_NONE;
        }
        unsigned digit = text.data[at] - '0';
        if (at < safe_end) {
            size = size * 10 + digit;
        } else {
            fits = fits && push_u64(&size, digit);
        }
    }
    if (!fits || size > (uint64_t)INT64_MAX + negative) {
        return TN_INTEGER_TOO_LARGE;
    }
    *value = (int64_t)(negative ? 0 - size : size);
    return TN_INTEGER_OK;
}

/* ---- decimals as text ---- */

static const uint32_t billion = 1000000000;

/* value / 10^9 in place, by 32 bits at a time; returns the rest. */
static uint32_t divide_by_billion(struct words *value)
{
    uint64_t rest = value->high % billion;
    uint64_t upper = rest << 32 | value->low >> 32;
    uint64_t lower = (upper % billion) << 32 | (value->low & UINT32_MAX);
    value->high /= billion;
    value->low = (upper / billion) << 32 | lower / billion;
    return (uint32_t)(lower % billion);
}

enum { DECIMAL_DIGITS_SIZE = 48 }; /* 39 digits of 128 bits, in groups of 9 */

/* Writes at least `digits_min` digits that end before `end`; returns where they start. */
static char *write_decimal(char *end, struct words value, uint32_t digits_min)
{
    char *start = end;
    while (value.high > 0) {
        uint32_t group = divide_by_billion(&value);
        for (int i = 0; i < 9; i++) {
            *--start = (char)('0' + group % 10);
            group /= 10;
        }
    }
    start = write_digits(start, value.low);
    while ((size_t)(end - start) < digits_min) {
        *--start = '0';
    }
    return start;
}

void tn_decimal_format(struct tn_buf *buf, struct tn_i128 value, uint32_t scale)
{
    TN_CHECK(scale <= TN_DECIMAL_PRECISION_MAX);
    char digits[DECIMAL_DIGITS_SIZE];
    char *end = digits + sizeof digits;
    char *start = write_decimal(end, magnitude(value), scale + 1);
    if (value.high < 0) {
        tn_buf_byte(buf, '-');
    }
    size_t whole = (size_t)(end - start) - scale;
    tn_buf_append(buf, start, whole);
    if (scale > 0) {
        tn_buf_byte(buf, '.');
        tn_buf_append(buf, start + whole, scale);
    }
}

/* A number's text taken apart: digits in two places, worth digits * 10^exponent. */
struct number_text {
    bool negative;
    struct tn_bytes whole;
    struct tn_bytes fraction;
    int64_t exponent; /* as written, cut to what no number here can reach */
};

enum { EXPONENT_LIMIT = 1000000000 }; /* larger ones change nothing: only zero survives them */

static bool scan_exponent(struct tn_bytes *rest, int64_t *exponent)
{
    bool negative = tn_take_byte(rest, '-');
    if (!negative) {
        (void)tn_take_byte(rest, '+');
    }
    struct tn_bytes digits = tn_take_digits(rest);
    int64_t size = 0;
    for (size_t i = 0; i < digits.size; i++) {
        size = size < EXPONENT_LIMIT ? size * 10 + (digits.data[i] - '0') : EXPONENT_LIMIT;
    }
    *exponent = negative ? -size : size;
    return digits.size > 0;
}

static bool scan_number(struct tn_bytes text, struct number_text *number)
{
    *number = (struct number_text){.negative = tn_take_byte(&text, '-')};
    if (!number->negative) {
        (void)tn_take_byte(&text, '+');
    }
    number->whole = tn_take_digits(&text);
    if (tn_take_byte(&text, '.')) {
        number->fraction = tn_take_digits(&text);
    }
    if (number->whole.size + number->fraction.size == 0) {
        return false;
    }
    if ((tn_take_byte(&text, 'e') || tn_take_byte(&text, 'E')) &&
        !scan_exponent(&text, &number->exponent)) {
        return false;
    }
    return text.size == 0;
}

/* Adds a digit to a magnitude; in one word as long as that holds it. */
static bool push_magnitude(struct tn_i128 *size, unsigned digit)
{
    if (size->high == 0 && size->low < powers_of_ten[18].low) {
        size->low = size->low * 10 + digit;
        return true;
    }
    return tn_i128_push_digit(size, digit, false);
}

enum digits_pushed { DIGITS_OK, DIGITS_LOST, DIGITS_TOO_MANY };

/* Of `digits`, those that stand before place `kept` count; the others must be zeros. */
static enum digits_pushed push_digits(struct tn_i128 *size, struct tn_bytes digits, int64_t kept)
{
    for (size_t i = 0; i < digits.size; i++) {
        unsigned digit = digits.data[i] - '0';
        if ((int64_t)i >= kept) {
            if (digit != 0) {
                return DIGITS_LOST;
            }
        } else if (!push_magnitude(size, digit)) {
            return DIGITS_TOO_MANY;
        }
    }
    return DIGITS_OK;
}

static enum digits_pushed push_number(struct tn_i128 *size, const struct number_text *number,
                                      uint32_t scale)
{
    int64_t kept = (int64_t)number->whole.size + number->exponent + scale;
    enum digits_pushed pushed = push_digits(size, number->whole, kept);
    kept -= (int64_t)number->whole.size;
    if (pushed == DIGITS_OK) {
        pushed = push_digits(size, number->fraction, kept);
    }
    kept -= (int64_t)number->fraction.size; /* so many zeros stand behind the digits */
    bool zero = size->low == 0 && size->high == 0;
    for (; pushed == DIGITS_OK && !zero && kept > 0; kept--) {
        pushed = push_magnitude(size, 0) ? DIGITS_OK : DIGITS_TOO_MANY;
    }
    return pushed;
}

tn_rc tn_decimal_parse(const struct tn_type *type, struct tn_bytes text, struct tn_i128 *value,
                       struct tn_err *err)
{
    struct number_text number;
    if (!scan_number(text, &number)) {
        return tn_err_set(err, TN_INVALID, 0, "'%.*s' is no DECIMAL", tn_quote_size(text),
                          text.data);
    }
    struct tn_i128 size = {0, 0};
    enum digits_pushed pushed = push_number(&size, &number, type->scale);
    if (pushed == DIGITS_LOST) {
        return tn_err_set(err, TN_INVALID, 0, "%.*s has more than %d digits behind the point",
                          tn_quote_size(text), text.data, type->scale);
    }
    if (pushed == DIGITS_TOO_MANY || !tn_i128_fits(size, type->precision)) {
        return tn_err_set(err, TN_INVALID, 0, "%.*s does not fit DECIMAL(%d, %d)",
                          tn_quote_size(text), text.data, type->precision, type->scale);
    }
    *value = number.negative ? negated(size) : size;
    return TN_OK;
}

/* ---- rounding ---- */

/* Pushes the digits in front of place `kept`; the one there decides whether to round up. False when
 * they are too many. */
static bool push_rounded(struct tn_i128 *size, struct tn_bytes digits, int64_t kept, bool *up)
{
    for (size_t i = 0; i < digits.size && (int64_t)i <= kept; i++) {
        unsigned digit = digits.data[i] - '0';
        if ((int64_t)i == kept) {
            *up = digit >= 5;
        } else if (!push_magnitude(size, digit)) {
            return false;
        }
    }
    return true;
}

/* The magnitude; false when it has more than 38 digits. */
static bool round_number(const struct number_text *number, uint32_t scale, struct tn_i128 *size)
{
    bool up = false;
    int64_t kept = (int64_t)number->whole.size + number->exponent + scale;
    if (!push_rounded(size, number->whole, kept, &up)) {
        return false;
    }
    kept -= (int64_t)number->whole.size;
    if (!push_rounded(size, number->fraction, kept, &up)) {
        return false;
    }
    kept -= (int64_t)number->fraction.size; /* so many zeros stand behind the digits */
    bool zero = size->low == 0 && size->high == 0;
    for (; !zero && kept > 0; kept--) {
        if (!push_magnitude(size, 0)) {
            return false;
        }
    }
    size->low += up;
    size->high += up && size->low == 0;
    return true;
}

enum tn_decimal_rounded tn_decimal_round(const struct tn_type *type, struct tn_bytes text,
                                         struct tn_i128 *value)
{
    struct number_text number;
    if (!scan_number(text, &number) || number.exponent >= EXPONENT_LIMIT ||
        number.exponent <= -EXPONENT_LIMIT) { /* there, a scale no int holds throws, too */
        return TN_DECIMAL_NONE;
    }
    struct tn_i128 size = {0, 0};
    if (!round_number(&number, type->scale, &size) || !tn_i128_fits(size, type->precision)) {
        return TN_DECIMAL_TOO_LARGE;
    }
    *value = number.negative ? negated(size) : size;
    return TN_DECIMAL_OK;
}
