/* value: one column's value outside a row: what a decoder found, a literal, a bound.
 *
 * Which member counts follows from the column's type:
 *
 *     BOOLEAN TINYINT..BIGINT DATE TIME   i64   (TIME: ms of day; DATE: days since 1970)
 *     FLOAT DOUBLE                        f64   (a FLOAT is exactly a float)
 *     DECIMAL                             i128  unscaled
 *     CHAR VARCHAR BINARY VARBINARY       bytes
 *     TIMESTAMP TIMESTAMP_LTZ             i64 = ms since 1970, floored; nanos in that ms
 *
 * 128-bit integers are two words, since armhf has no __int128.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "schema/types.h"

struct tn_i128 {
    uint64_t low;
    int64_t high;
};

struct tn_value {
    bool null;
    uint32_t nanos; /* 0..999999 */
    union {
        int64_t i64;
        double f64;
        struct tn_i128 i128;
        struct tn_bytes bytes;
    } as;
};

struct tn_i128 tn_i128_of(int64_t value);
int tn_i128_compare(struct tn_i128 a, struct tn_i128 b);
/* value * 10 + digit, for digit 0..9 of the value's sign; false when it leaves 38 digits. */
bool tn_i128_push_digit(struct tn_i128 *value, unsigned digit, bool negative);
/* Minimal big-endian two's complement; returns its size, 1..16. */
uint32_t tn_i128_to_be(struct tn_i128 value, unsigned char bytes[16]);
/* Any length; false when it does not fit 128 bits. */
bool tn_i128_from_be(struct tn_bytes bytes, struct tn_i128 *value);
/* True when |value| < 10^precision. */
bool tn_i128_fits(struct tn_i128 value, uint32_t precision);

/* The order of Paimon's keys and statistics: NULL first; numbers by value; NaN above all else, -0.0
 * below +0.0 (Java's Double.compare); bytes unsigned. */
int tn_value_compare(const struct tn_type *type, const struct tn_value *a,
                     const struct tn_value *b);

/* ---- canonical JSON of a value: what cat, get and write use ---- */

/* Appends the JSON. `buf` overflows when it is too small. */
void tn_value_format_json(const struct tn_type *type, const struct tn_value *value,
                          struct tn_buf *buf);

/* Appends the text without quotes or escapes: csv, partition names of non-legacy kind, tables for
 * people. NULL appends nothing. */
void tn_value_format_text(const struct tn_type *type, const struct tn_value *value,
                          struct tn_buf *buf);

/* Appends a JSON string with Paimon's canonical escapes, quotes included. */
void tn_json_string(struct tn_buf *buf, struct tn_bytes text);

/* How epoch numbers in text are meant for a time column; TN_EPOCH_NONE refuses bare numbers. */
enum tn_epoch { TN_EPOCH_NONE, TN_EPOCH_S, TN_EPOCH_MS, TN_EPOCH_US, TN_EPOCH_NS };

/* How many bytes at the beginning are whole sequences of UTF-8. */
size_t tn_utf8_span(struct tn_bytes text);

static inline bool tn_is_utf8(struct tn_bytes text)
{
    return tn_utf8_span(text) == text.size;
}

/* Reads text (no quotes, escapes resolved) as a value of `type`, strictly: what does not fit, loses
 * digits or bytes is INVALID with the reason. CHAR(n) and VARCHAR(n): at most n code points;
 * BINARY(n): exactly n bytes, VARBINARY(n): at most n. DECIMAL: more digits behind the point than
 * the scale are INVALID unless they are zeros. Bytes values point into `text` or, for hex, into
 * `scratch`. */
TN_MUST_USE tn_rc tn_value_parse(const struct tn_type *type, enum tn_epoch epoch,
                                 struct tn_bytes text, struct tn_buf *scratch,
                                 struct tn_value *value, struct tn_err *err);

/* Shortest digits that read back. Appends "0.1", "1e+22", "NaN" without quotes. */
void tn_double_format(struct tn_buf *buf, double value);
void tn_float_format(struct tn_buf *buf, float value);
/* Java's Double.toString / Float.toString form ("1.0E10"): partition names. */
void tn_double_format_java(struct tn_buf *buf, double value);
void tn_float_format_java(struct tn_buf *buf, float value);
/* The nearest double of a decimal text that is a whole number token; false when it is none. Fast
 * for up to 15 digits and small exponents, strtod elsewhere. */
bool tn_double_parse(struct tn_bytes text, double *value);
/* The nearest float, which is not always the one nearest to the nearest double. */
bool tn_float_parse(struct tn_bytes text, float *value);
