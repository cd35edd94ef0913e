/* time_text: text of DATE, TIME and TIMESTAMP values. For value.c and cast.h.
 *
 * The calendar is the proleptic Gregorian one, year 0 is 1 BC, no leap seconds: java.time's.
 */
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "schema/types.h"
#include "schema/value.h"

struct tn_date {
    int64_t year;
    uint32_t month; /* 1..12 */
    uint32_t day;   /* 1..31 */
};

/* Days count from 1970-01-01. */
struct tn_date tn_date_of_days(int64_t days);
int64_t tn_days_of_date(const struct tn_date *date);
uint32_t tn_days_in_month(int64_t year, uint32_t month);

/* Appends a value of a time type, no quotes. */
void tn_time_format(struct tn_buf *buf, const struct tn_type *type, const struct tn_value *value);

/* Reads a value of a time type; see tn_value_parse. A TIMESTAMP_LTZ without an offset is UTC.
 * Numbers are seconds and so on since 1970 (TIME: since midnight), and for a DATE they are whole
 * days. */
TN_MUST_USE tn_rc tn_time_parse(const struct tn_type *type, enum tn_epoch epoch,
                                struct tn_bytes text, struct tn_value *value, struct tn_err *err);

/* ms since 1970, for a message: "2026-11-30 15:04:05 UTC". */
void tn_time_format_utc(int64_t ms, char *text, size_t size);
