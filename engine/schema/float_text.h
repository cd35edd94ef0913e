/* float_text: what the two forms of a float's text share: Python's (float_text.c) and Java's
 * (float_java.c). */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/* 0.00123, 12300.0, 1.23: `count` digits, the first of them worth 10^exponent. */
void tn_digits_plain(struct tn_buf *buf, const char *digits, int count, int exponent);

/* Appends a sign, and all of NaN, an infinity or zero. False when the digits are still to come. */
bool tn_float_special(struct tn_buf *buf, double value);
