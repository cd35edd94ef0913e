/* decode_scan: tokens of JSON, without bounds checks.
 *
 * Every function may read the 8 bytes at its cursor, and stops at '\n', which no token holds. So a
 * record must be followed by '\n' and TN_SCAN_PAD readable bytes; the decoder copies the few that
 * are not, which is cheaper than to look at the end before each byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { TN_SCAN_PAD = 16, TN_SCAN_DIGITS_MAX = 18 };

static inline const unsigned char *tn_scan_space(const unsigned char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r') {
        at++;
    }
    return at;
}

static inline bool tn_scan_digit(unsigned char byte)
{
    return (unsigned)byte - '0' < 10;
}

/* Marks the lowest byte of `word` that equals `byte`; marks above it may be wrong, since a borrow
 * only spreads upwards. */
static inline uint64_t tn_scan_equal(uint64_t word, unsigned char byte)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t zeros = word ^ ones * byte;
    return (zeros - ones) & ~zeros & ones << 7;
}

/* The first quote, backslash or control byte. *beyond_ascii gains bits when a byte before it is not
 * ASCII. */
static inline const unsigned char *tn_scan_plain(const unsigned char *at, uint64_t *beyond_ascii)
{
    const uint64_t tops = 0x8080808080808080u;
    for (;;) {
        uint64_t word = tn_load_u64(at);
        uint64_t control = (word - 0x2020202020202020u) & ~word & tops;
        uint64_t special = tn_scan_equal(word, '"') | tn_scan_equal(word, '\\') | control;
        if (special) {
            *beyond_ascii |= word & tops & ((special & -special) - 1);
            return at + (__builtin_ctzll(special) >> 3);
        }
        *beyond_ascii |= word & tops;
        at += 8;
    }
}

/* The first comma, quote or line end: where a csv field without quotes stops. */
static inline const unsigned char *tn_scan_field(const unsigned char *at)
{
    for (;;) {
        uint64_t word = tn_load_u64(at);
        uint64_t special =
            tn_scan_equal(word, ',') | tn_scan_equal(word, '"') | tn_scan_equal(word, '\n');
        if (special) {
            return at + (__builtin_ctzll(special) >> 3);
        }
        at += 8;
    }
}

/* The first comma, equals sign, blank, backslash or line end: where a name or a tag of the line
 * protocol may stop. */
static inline const unsigned char *tn_scan_tag(const unsigned char *at)
{
    for (;;) {
        uint64_t word = tn_load_u64(at);
        uint64_t special = tn_scan_equal(word, ',') | tn_scan_equal(word, '=') |
                           tn_scan_equal(word, ' ') | tn_scan_equal(word, '\\') |
                           tn_scan_equal(word, '\n');
        if (special) {
            return at + (__builtin_ctzll(special) >> 3);
        }
        at += 8;
    }
}

/* How many of 8 bytes, from the lowest, are digits. They come xored with '0', so that a digit is
 * its value. */
static inline unsigned tn_scan_digit_run(uint64_t values)
{
    uint64_t others = ((values + 0x7676767676767676u) | values) & 0x8080808080808080u;
    return others ? (unsigned)__builtin_ctzll(others) >> 3 : 8;
}

static inline uint64_t tn_scan_values(const unsigned char *at)
{
    return tn_load_u64(at) ^ 0x3030303030303030u;
}

/* The number that the lowest `count` (1..8) values spell, without a branch on how many there are,
 * which no predictor guesses: they move to the end of a word of zeros, then pairs, fours and the
 * eight are summed. */
static inline uint32_t tn_scan_sum(uint64_t values, unsigned count)
{
    uint64_t n = values << (64 - 8 * count);
    n = n * 10 + (n >> 8);
    n = ((n & 0x000000FF000000FFu) * 0x000F424000000064u +
         ((n >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u) >>
        32;
    return (uint32_t)n;
}

/* Adds digits to *value, which wraps when they are more than 19. */
static inline const unsigned char *tn_scan_digits(const unsigned char *at, uint64_t *value)
{
    static const uint32_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    unsigned count;
    do {
        uint64_t values = tn_scan_values(at);
        count = tn_scan_digit_run(values);
        if (count == 0) {
            break;
        }
        *value = *value * powers[count] + tn_scan_sum(values, count);
        at += count;
    } while (count == 8);
    return at;
}

static inline bool tn_scan_fraction_follows(const unsigned char *at)
{
    return *at == '.' || (*at | 0x20) == 'e';
}

/* An integer of at most 18 digits. NULL: it is none, or longer, or goes on as a fraction. */
static inline const unsigned char *tn_scan_integer(const unsigned char *at, int64_t *value)
{
    bool negative = *at == '-';
    const unsigned char *first = at + negative;
    uint64_t n = 0;
    const unsigned char *end = tn_scan_digits(first, &n);
    ptrdiff_t digits = end - first;
    if (digits == 0 || digits > TN_SCAN_DIGITS_MAX || (*first == '0' && digits > 1) ||
        tn_scan_fraction_follows(end)) {
        return NULL;
    }
    *value = negative ? -(int64_t)n : (int64_t)n;
    return end;
}

/* Whole digits, a point and more digits, when all of it and what follows are within 8 bytes: the
 * point is taken out, and one sum does for both parts. *fraction is how many digits stood behind
 * it. NULL: something else. */
static inline const unsigned char *tn_scan_short_decimal(const unsigned char *first, uint64_t *n,
                                                         ptrdiff_t *fraction)
{
    uint64_t values = tn_scan_values(first);
    unsigned whole = tn_scan_digit_run(values);
    if (whole - 1 > 5 || first[whole] != '.') {
        return NULL;
    }
    uint64_t before = ((uint64_t)1 << (8 * whole)) - 1;
    values = (values & before) | (values >> 8 & ~before) | (uint64_t)0xFF << 56;
    unsigned count = tn_scan_digit_run(values);
    if (count == 7 || count == whole) {
        return NULL;
    }
    *n = tn_scan_sum(values, count);
    *fraction = (ptrdiff_t)(count - whole);
    return first + count + 1;
}

/* The same of any length; *digits is how many there are. NULL: no digits where some belong. */
static inline const unsigned char *tn_scan_decimal(const unsigned char *first, uint64_t *n,
                                                   ptrdiff_t *fraction, ptrdiff_t *digits)
{
    const unsigned char *end = tn_scan_digits(first, n);
    *digits = end - first;
    *fraction = 0;
    if (*digits > 0 && *end == '.') {
        const unsigned char *point = end;
        end = tn_scan_digits(point + 1, n);
        *fraction = end - point - 1;
        *digits = *fraction > 0 ? *digits + *fraction : 0;
    }
    return *digits > 0 ? end : NULL;
}

/* A decimal number of at most 15 digits without an exponent: both it and the power of ten are exact
 * doubles, so one division rounds right (Clinger). NULL: something else. */
static inline const unsigned char *tn_scan_double(const unsigned char *at, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool negative = *at == '-';
    const unsigned char *first = at + negative;
    uint64_t n = 0;
    ptrdiff_t fraction = 0;
    ptrdiff_t digits = 0;
    const unsigned char *end = tn_scan_short_decimal(first, &n, &fraction);
    if (!end) {
        end = tn_scan_decimal(first, &n, &fraction, &digits);
    }
    bool leading_zero = *first == '0' && tn_scan_digit(first[1]);
    if (!end || digits > 15 || leading_zero || tn_scan_fraction_follows(end)) {
        return NULL;
    }
    double magnitude = (double)(int64_t)n / powers[fraction];
    *value = negative ? -magnitude : magnitude;
    return end;
}

/* Behind a number by JSON's grammar, or NULL. */
const unsigned char *tn_scan_number(const unsigned char *at);

/* Behind the string that goes on at `at`, maybe with an escape, or NULL: a control byte or a wrong
 * escape. */
const unsigned char *tn_scan_escaped(const unsigned char *at);

/* The four hex digits of a \u escape; false when they are none. */
bool tn_scan_hex4(const unsigned char *at, uint32_t *code);

/* The same for one whose first byte (after the quote) is at `at`; few have escapes. */
static inline const unsigned char *tn_scan_string(const unsigned char *at)
{
    uint64_t beyond_ascii = 0;
    at = tn_scan_plain(at, &beyond_ascii);
    return *at == '"' ? at + 1 : tn_scan_escaped(at);
}
