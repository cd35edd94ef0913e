/* decode_scan: tokens of JSON, without bounds checks.
 *
 * Every function may read the 8 bytes at its cursor, and stops at '\n', which no token holds. So a
 * record must be followed by
 * '\n' and TN_SCAN_PAD readable bytes; the decoder copies the few that are not, which is cheaper
 * than to look at the end before each byte.
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

/* How many of the 8 bytes in `word`, from the lowest, are digits; *digits gets their values. */
static inline unsigned tn_scan_digit_run(uint64_t word, uint64_t *digits)
{
    uint64_t values = word ^ 0x3030303030303030u;
    uint64_t others = ((values + 0x7676767676767676u) | values) & 0x8080808080808080u;
    *digits = values;
    return others ? (unsigned)__builtin_ctzll(others) >> 3 : 8;
}

/* Adds digits to *value, which wraps when they are more than 19. Eight at a time and without a
 * branch on their number, which no predictor guesses: the digits move to the end of a word of
 * zeros, then pairs, fours and the eight are summed. */
static inline const unsigned char *tn_scan_digits(const unsigned char *at, uint64_t *value)
{
    static const uint32_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    unsigned count;
    do {
        uint64_t n;
        count = tn_scan_digit_run(tn_load_u64(at), &n);
        if (count == 0) {
            break;
        }
        n <<= 64 - 8 * count;
        n = n * 10 + (n >> 8);
        n = ((n & 0x000000FF000000FFu) * 0x000F424000000064u +
             ((n >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u) >>
            32;
        *value = *value * powers[count] + (uint32_t)n;
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

/* A decimal number of at most 15 digits without an exponent: both it and the power of ten are exact
 * doubles, so one division rounds right (Clinger). NULL: something else. */
static inline const unsigned char *tn_scan_double(const unsigned char *at, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool negative = *at == '-';
    const unsigned char *first = at + negative;
    uint64_t n = 0;
    const unsigned char *end = tn_scan_digits(first, &n);
    ptrdiff_t whole = end - first;
    ptrdiff_t fraction = 0;
    if (whole == 0 || (*first == '0' && whole > 1)) {
        return NULL;
    }
    if (*end == '.') {
        const unsigned char *point = end;
        end = tn_scan_digits(point + 1, &n);
        fraction = end - point - 1;
        if (fraction == 0) {
            return NULL;
        }
    }
    if (whole + fraction > 15 || tn_scan_fraction_follows(end)) {
        return NULL;
    }
    double magnitude = (double)(int64_t)n / powers[fraction];
    *value = negative ? -magnitude : magnitude;
    return end;
}

/* Behind a number by JSON's grammar, or NULL. */
const unsigned char *tn_scan_number(const unsigned char *at);

/* Behind the string whose first byte (after the quote) is at `at`, or NULL: a control byte or a
 * wrong escape. */
const unsigned char *tn_scan_string(const unsigned char *at);

/* The four hex digits of a \u escape; false when they are none. */
bool tn_scan_hex4(const unsigned char *at, uint32_t *code);
