/* time_text: text of DATE, TIME and TIMESTAMP values. For value.c.
 *
 * The calendar is the proleptic Gregorian one, year 0 is 1 BC, no leap seconds: java.time's.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "schema/types.h"
#include "schema/value.h"

/* Appends a value of a time type, no quotes. */
void tn_time_format(struct tn_buf *buf, const struct tn_type *type, const struct tn_value *value);

/* Reads a value of a time type; see tn_value_parse. A TIMESTAMP_LTZ without an offset is UTC.
 * Numbers are seconds and so on since 1970 (TIME: since midnight), and for a DATE they are whole
 * days. */
TN_MUST_USE tn_rc tn_time_parse(const struct tn_type *type, enum tn_epoch epoch,
                                struct tn_bytes text, struct tn_value *value, struct tn_err *err);
