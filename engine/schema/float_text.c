#include "schema/float_text.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "schema/decimal.h"
#include "schema/text_scan.h"
#include "schema/value.h"

enum {
    EXACT_POWERS = 23,       /* 10^22 is the last that a double holds exactly */
    FLOAT_POWERS_MAX = 10,   /* see shortest_by_scaling */
    DOUBLE_DIGITS_SURE = 15, /* so many digits differ in their double: DBL_DIG */
    FLOAT_DIGITS_SURE = 6,   /* FLT_DIG */
    DOUBLE_DIGITS_MAX = 17,  /* so many always read back */
    FLOAT_DIGITS_MAX = 9,
    MANTISSA_DIGITS = 19,    /* always fit 64 bits */
    SIGNIFICANT_MAX = 768,   /* digits that can decide how a double rounds: 767 */
    EXPONENT_LIMIT = 100000, /* beyond it all is zero or infinite */
};

static const double exact_powers[EXACT_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* ---- parse ---- */

/* digits * 10^exponent; `cut` digits that did not fit `mantissa` are left out of both. */
struct scanned {
    bool negative;
    uint64_t mantissa;
    int64_t exponent;
    bool cut;
};

/* Takes digits from `at` on; returns where they end. Those of a fraction move the exponent. */
static const unsigned char *scan_digits(const unsigned char *at, const unsigned char *end,
                                        bool fraction, struct scanned *s)
{
    const uint64_t limit = UINT64_C(1000000000000000000); /* 10^18: one digit more still fits */
    for (; at < end && tn_is_digit(*at); at++) {
        if (s->mantissa < limit) {
            s->mantissa = s->mantissa * 10 + (uint64_t)(*at - '0');
            s->exponent -= fraction;
        } else {
            s->cut = true;
            s->exponent += !fraction;
        }
    }
    return at;
}

/* From behind the 'e'. NULL when it is no exponent. */
static const unsigned char *scan_exponent(const unsigned char *at, const unsigned char *end,
                                          struct scanned *s)
{
    bool negative = at < end && *at == '-';
    if (negative || (at < end && *at == '+')) {
        at++;
    }
    if (at == end || !tn_is_digit(*at)) {
        return NULL;
    }
    int64_t exponent = 0;
    for (; at < end && tn_is_digit(*at); at++) {
        exponent = exponent < INT32_MAX ? exponent * 10 + (*at - '0') : exponent;
    }
    s->exponent += negative ? -exponent : exponent;
    return at;
}

/* False when the text is no number. */
static bool scan(struct tn_bytes text, struct scanned *s)
{
    const unsigned char *at = text.data;
    const unsigned char *end = text.data + text.size;
    *s = (struct scanned){0};
    if (at < end && (*at == '-' || *at == '+')) {
        s->negative = *at++ == '-';
    }
    const unsigned char *whole = at;
    at = scan_digits(at, end, false, s);
    size_t digits = (size_t)(at - whole);
    if (at < end && *at == '.') {
        const unsigned char *fraction = ++at;
        at = scan_digits(at, end, true, s);
        digits += (size_t)(at - fraction);
    }
    if (digits == 0) {
        return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at = scan_exponent(at + 1, end, s);
    }
    return at == end;
}

/* Clinger: both operands are exact, so one operation rounds once. */
static inline bool combine_exactly(const struct scanned *s, double *value)
{
    if (s->cut || s->mantissa > UINT64_C(1) << DBL_MANT_DIG) {
        return false;
    }
    if (s->exponent >= 0 && s->exponent < EXACT_POWERS) {
        *value = (double)s->mantissa * exact_powers[s->exponent];
        return true;
    }
    if (s->exponent < 0 && s->exponent > -EXACT_POWERS) {
        *value = (double)s->mantissa / exact_powers[-s->exponent];
        return true;
    }
    *value = 0;
    return s->mantissa == 0;
}

/* Digits without a point, since strtod takes the locale's, and an exponent. What is behind
 * SIGNIFICANT_MAX digits can only break a tie: a last 1 stands for it. */
static double combine_by_library(struct tn_bytes text, const struct scanned *s, bool narrow)
{
    char copy[SIGNIFICANT_MAX + 16];
    size_t count = 0;
    bool tail = false;
    int64_t exponent = s->exponent;
    int64_t mantissa_digits = 0; /* of s: what s->exponent counts from */
    for (size_t i = 0; i < text.size && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        unsigned char byte = text.data[i];
        if (!tn_is_digit(byte) || (count == 0 && byte == '0')) {
            continue;
        }
        if (count < SIGNIFICANT_MAX) {
            copy[count++] = (char)byte;
        } else {
            tail = tail || byte != '0';
        }
    }
    mantissa_digits = count < MANTISSA_DIGITS ? (int64_t)count : MANTISSA_DIGITS;
    exponent -= (int64_t)count - mantissa_digits;
    if (tail) {
        copy[count++] = '1';
        exponent--;
    }
    exponent = exponent > EXPONENT_LIMIT ? EXPONENT_LIMIT : exponent;
    exponent = exponent < -EXPONENT_LIMIT ? -EXPONENT_LIMIT : exponent;
    (void)snprintf(copy + count, sizeof copy - count, "e%d", (int)exponent);
    return narrow ? (double)strtof(copy, NULL) : strtod(copy, NULL);
}

bool tn_double_parse(struct tn_bytes text, double *value)
{
    struct scanned s;
    double size = 0;
    if (!scan(text, &s)) {
        return false;
    }
    if (!combine_exactly(&s, &size)) {
        size = combine_by_library(text, &s, false);
    }
    *value = s.negative ? -size : size;
    return true;
}

/* Rounding to a double first changes the float only where that double is half-way between two
 * floats; below FLT_MIN half-way is elsewhere. */
static inline bool narrows_safely(double size)
{
    uint64_t bits = 0;
    memcpy(&bits, &size, sizeof bits);
    return (bits & UINT64_C(0x1fffffff)) != UINT64_C(0x10000000) &&
           (size >= (double)FLT_MIN || size == 0);
}

bool tn_float_parse(struct tn_bytes text, float *value)
{
    struct scanned s;
    double size = 0;
    if (!scan(text, &s)) {
        return false;
    }
    if (!combine_exactly(&s, &size) || !narrows_safely(size)) {
        size = combine_by_library(text, &s, true);
    }
    *value = (float)(s.negative ? -size : size);
    return true;
}

/* ---- the shortest digits ---- */

/* digits (no zeros at the end, `count` of them) * 10^(exponent - count + 1) */
struct shortest {
    uint64_t digits;
    uint32_t count;
    int exponent; /* of the first digit */
};

/* digits * 10^-places, zeros at the end dropped. */
static struct shortest shortest_of(uint64_t digits, int places)
{
    while (digits % 10 == 0) {
        digits /= 10;
        places--;
    }
    struct shortest s = {.digits = digits};
    for (uint64_t rest = digits; rest > 0; rest /= 10) {
        s.count++;
    }
    s.exponent = (int)s.count - 1 - places;
    return s;
}

static bool equals(double a, double b, bool narrow)
{
    return narrow ? (float)a == (float)b : a == b;
}

/* Finds the number with fewest places that reads back, when it has few enough digits that no other
 * such number does. Most measured values are such. Places of a float are limited, so that the
 * quotient is never so near the middle of two floats that its own rounding counts: m / 10^k differs
 * from any 25-bit middle by 2^-49 at least, for m < 10^6 and k <= 10. */
static bool shortest_by_scaling(double value, bool narrow, struct shortest *s)
{
    const double digits_end = narrow ? 1e6 : 1e15;
    const int places_max = narrow ? FLOAT_POWERS_MAX : EXACT_POWERS - 1;
    for (int places = 0; places <= places_max; places++) {
        double scaled = value * exact_powers[places];
        if (scaled >= digits_end - 1) {
            return false;
        }
        uint64_t digits = (uint64_t)(scaled + 0.5);
        if (digits > 0 && equals((double)digits / exact_powers[places], value, narrow)) {
            *s = shortest_of(digits, places);
            return true;
        }
    }
    return false;
}

static bool reads_back(uint64_t digits, int exponent, double value, bool narrow)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%" PRIu64 "e%d", digits, exponent);
    return narrow ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* The nearest number of `count` digits: digits * 10^exponent. */
static void nearest_of(double value, uint32_t count, uint64_t *digits, int *exponent)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.*e", (int)count - 1, value);
    const char *at = text;
    *digits = 0;
    for (; *at && *at != 'e'; at++) {
        if (tn_is_digit((unsigned char)*at)) { /* the point is the locale's */
            *digits = *digits * 10 + (uint64_t)(*at - '0');
        }
    }
    TN_CHECK(*at == 'e');
    *exponent = (int)strtol(at + 1, NULL, 10) - (int)count + 1;
}

/* The nearest number of `count` digits that reads back. Above a power of two the room is twice that
 * below it, so the nearest may miss where its farther neighbour above hits. */
static bool shortest_of_count(double value, bool narrow, uint32_t count, struct shortest *s)
{
    uint64_t nearest = 0;
    int exponent = 0;
    nearest_of(value, count, &nearest, &exponent);
    for (uint64_t digits = nearest; digits <= nearest + 1; digits++) {
        if (reads_back(digits, exponent, value, narrow)) {
            *s = shortest_of(digits, -exponent);
            return true;
        }
    }
    return false;
}

/* Of a finite value above 0. */
static struct shortest shortest(double value, bool narrow)
{
    struct shortest s = {0};
    if (shortest_by_scaling(value, narrow, &s)) {
        return s;
    }
    bool subnormal = value < (narrow ? (double)FLT_MIN : DBL_MIN);
    uint32_t sure = narrow ? FLOAT_DIGITS_SURE : DOUBLE_DIGITS_SURE;
    uint32_t last = narrow ? FLOAT_DIGITS_MAX : DOUBLE_DIGITS_MAX;
    for (uint32_t count = subnormal ? 1 : sure; count <= last; count++) {
        if (shortest_of_count(value, narrow, count, &s)) {
            return s;
        }
    }
    TN_CHECK(false); /* the last count always reads back */
    return s;
}

/* ---- layout ---- */

static void append_zeros(struct tn_buf *buf, int count)
{
    for (int i = 0; i < count; i++) {
        tn_buf_byte(buf, '0');
    }
}

void tn_digits_plain(struct tn_buf *buf, const char *digits, int count, int exponent)
{
    if (exponent < 0) {
        tn_buf_text(buf, "0.");
        append_zeros(buf, -exponent - 1);
        tn_buf_append(buf, digits, (size_t)count);
        return;
    }
    int whole = exponent + 1 < count ? exponent + 1 : count;
    tn_buf_append(buf, digits, (size_t)whole);
    append_zeros(buf, exponent + 1 - whole);
    tn_buf_byte(buf, '.');
    tn_buf_append(buf, digits + whole, (size_t)(count - whole));
    append_zeros(buf, count == whole);
}

static int write_digits(char *text, const struct shortest *s)
{
    uint64_t rest = s->digits;
    for (uint32_t i = s->count; i > 0; i--) {
        text[i - 1] = (char)('0' + rest % 10);
        rest /= 10;
    }
    return (int)s->count;
}

/* Python's repr. */
static void append_python(struct tn_buf *buf, const struct shortest *s)
{
    char digits[20] = {0};
    int count = write_digits(digits, s);
    if (s->exponent >= -4 && s->exponent < 16) {
        tn_digits_plain(buf, digits, count, s->exponent);
        return;
    }
    tn_buf_byte(buf, (unsigned char)digits[0]);
    if (count > 1) {
        tn_buf_byte(buf, '.');
        tn_buf_append(buf, digits + 1, (size_t)(count - 1));
    }
    tn_buf_byte(buf, 'e');
    tn_buf_byte(buf, s->exponent < 0 ? '-' : '+');
    uint32_t size = (uint32_t)abs(s->exponent);
    tn_digits_format(buf, size, size < 100 ? 2 : 3);
}

bool tn_float_special(struct tn_buf *buf, double value)
{
    if (isnan(value)) {
        tn_buf_text(buf, "NaN");
        return true;
    }
    if (signbit(value)) {
        tn_buf_byte(buf, '-');
    }
    if (isinf(value)) {
        tn_buf_text(buf, "Infinity");
        return true;
    }
    if (value == 0) {
        tn_buf_text(buf, "0.0");
        return true;
    }
    return false;
}

void tn_double_format(struct tn_buf *buf, double value)
{
    if (!tn_float_special(buf, value)) {
        struct shortest s = shortest(fabs(value), false);
        append_python(buf, &s);
    }
}

void tn_float_format(struct tn_buf *buf, float value)
{
    if (!tn_float_special(buf, (double)value)) {
        struct shortest s = shortest(fabs((double)value), true);
        append_python(buf, &s);
    }
}
