/* cast_private: the casts by what they begin with, for the table in cast.c. Each takes a value that
 * is not NULL and an `out` whose value is zero, and returns false where Java throws. */
#pragma once

#include "base/bytes.h"
#include "schema/cast.h"

/* Without blanks and control characters at both ends. Java: String.trim */
static inline struct tn_bytes tn_cast_trimmed(struct tn_bytes text)
{
    while (text.size > 0 && text.data[text.size - 1] <= ' ') {
        text.size--;
    }
    while (text.size > 0 && text.data[0] <= ' ') {
        text.data++;
        text.size--;
    }
    return text;
}

/* cast_text.c: out of a CHAR or VARCHAR */
bool tn_cast_text_to_boolean(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out);
bool tn_cast_text_to_integer(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out);
bool tn_cast_text_to_float(const struct tn_cast *cast, const struct tn_value *from,
                           struct tn_cast_out *out);
bool tn_cast_text_to_decimal(const struct tn_cast *cast, const struct tn_value *from,
                             struct tn_cast_out *out);

/* cast_clock.c: between texts and times */
bool tn_cast_text_to_date(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out);
bool tn_cast_text_to_time(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out);
bool tn_cast_text_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out);
bool tn_cast_date_to_text(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out);
bool tn_cast_time_to_text(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out);
bool tn_cast_timestamp_to_text(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out);

/* cast_time.c: between times, and times and numbers */
bool tn_cast_seconds_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                                  struct tn_cast_out *out);
bool tn_cast_timestamp_to_seconds(const struct tn_cast *cast, const struct tn_value *from,
                                  struct tn_cast_out *out);
bool tn_cast_timestamp_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                                    struct tn_cast_out *out);
bool tn_cast_timestamp_to_date(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out);
bool tn_cast_timestamp_to_time(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out);
bool tn_cast_date_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out);
bool tn_cast_time_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out);

/* Days and ms of the day of an instant, as Paimon's Timestamp.toLocalDateTime: the days are cut to
 * 32 bits. */
int32_t tn_cast_local_day(int64_t ms, uint32_t *ms_of_day);

/* A day that counts from 1970 as Paimon's DateTimeUtils takes it apart: in 32 bits, with Java's
 * divisions; far from our days the parts are none of a date. */
struct tn_julian {
    int32_t year;
    int32_t month;
    int32_t day;
};
struct tn_julian tn_cast_julian(int32_t days);
