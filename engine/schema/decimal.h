/* decimal: text of DECIMAL values, and of the integers. For value.c and cast.h. */
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "schema/types.h"
#include "schema/value.h"

/* Exactly `scale` digits after the point, no point when it is 0. */
void tn_decimal_format(struct tn_buf *buf, struct tn_i128 value, uint32_t scale);

/* INVALID when it is no number, has more than type->scale digits behind the point that are not
 * zeros, or does not fit type->precision. An exponent is taken when the value is exact. */
TN_MUST_USE tn_rc tn_decimal_parse(const struct tn_type *type, struct tn_bytes text,
                                   struct tn_i128 *value, struct tn_err *err);

enum tn_decimal_rounded { TN_DECIMAL_OK, TN_DECIMAL_NONE, TN_DECIMAL_TOO_LARGE };

/* The same, but digits behind the scale round, half of the last one away from zero. Java:
 * BigDecimal's constructor and setScale(HALF_UP). */
enum tn_decimal_rounded tn_decimal_round(const struct tn_type *type, struct tn_bytes text,
                                         struct tn_i128 *value);

void tn_integer_format(struct tn_buf *buf, int64_t value);

/* `digits` digits, zeros in front. */
void tn_digits_format(struct tn_buf *buf, uint32_t value, uint32_t digits);

enum tn_integer_parsed { TN_INTEGER_OK, TN_INTEGER_NONE, TN_INTEGER_TOO_LARGE };

/* An optional sign and digits. */
enum tn_integer_parsed tn_integer_parse(struct tn_bytes text, int64_t *value);
