/* Times as other times and as numbers: Paimon's DateTimeUtils and Timestamp in a JVM whose zone is
 * UTC. Where Java's numbers wrap, so do these. */
#include "schema/cast_private.h"
#include "schema/time_text.h"

enum {
    MS_PER_SECOND = 1000,
    MS_PER_DAY = 86400000,
    EPOCH_JULIAN = 2440588, /* 1970-01-01 */
    DATE_SHIFT = 32044,     /* to a year 4801 BC that begins in March */
};

static int64_t multiply(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

int32_t tn_cast_local_day(int64_t ms, uint32_t *ms_of_day)
{
    int32_t rest = (int32_t)(ms % MS_PER_DAY);
    uint32_t day = (uint32_t)(ms / MS_PER_DAY) - (rest < 0);
    *ms_of_day = (uint32_t)(rest < 0 ? rest + MS_PER_DAY : rest);
    return (int32_t)day;
}

/* Timestamp.toLocalDateTime and back. */
static int64_t local_ms(int64_t ms)
{
    uint32_t ms_of_day = 0;
    int64_t day = tn_cast_local_day(ms, &ms_of_day);
    return day * MS_PER_DAY + ms_of_day;
}

struct tn_julian tn_cast_julian(int32_t days)
{
    int32_t j = (int32_t)((uint32_t)days + EPOCH_JULIAN + DATE_SHIFT);
    int32_t g = j / 146097;
    int32_t dg = j % 146097;
    int32_t c = (dg / 36524 + 1) * 3 / 4;
    int32_t dc = dg - c * 36524;
    int32_t b = dc / 1461;
    int32_t db = dc % 1461;
    int32_t a = (db / 365 + 1) * 3 / 4;
    int32_t da = db - a * 365;
    int32_t y = g * 400 + c * 100 + b * 4 + a;
    int32_t m = (da * 5 + 308) / 153 - 2;
    int32_t d = da - (m + 4) * 153 / 5 + 122;
    return (struct tn_julian){y - 4800 + (m + 2) / 12, (m + 2) % 12 + 1, d + 1};
}

/* DateTimeUtils.ymdToUnixDate; before the year -4800 it is some days beside the calendar. */
static int32_t unix_date(const struct tn_date *date)
{
    int64_t a = (14 - (int64_t)date->month) / 12;
    int64_t y = date->year + 4800 - a;
    int64_t m = (int64_t)date->month + 12 * a - 3;
    int64_t julian =
        (int64_t)date->day + (153 * m + 2) / 5 + 365 * y + y / 4 - y / 100 + y / 400 - 32045;
    return (int32_t)(julian - EPOCH_JULIAN);
}

/* ---- numbers ---- */

bool tn_cast_seconds_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                                  struct tn_cast_out *out)
{
    (void)cast;
    out->value.as.i64 = multiply(from->as.i64, MS_PER_SECOND);
    return true;
}

/* Towards zero. */
bool tn_cast_timestamp_to_seconds(const struct tn_cast *cast, const struct tn_value *from,
                                  struct tn_cast_out *out)
{
    bool zoned = cast->from.kind == TN_TYPE_TIMESTAMP_LTZ;
    int64_t seconds = (zoned ? local_ms(from->as.i64) : from->as.i64) / MS_PER_SECOND;
    out->value.as.i64 = cast->to.kind == TN_TYPE_INT ? (int32_t)seconds : seconds;
    return true;
}

/* ---- times ---- */

static uint32_t digit_count(uint32_t number)
{
    uint32_t count = 1;
    for (; number >= 10; number /= 10) {
        count++;
    }
    return count;
}

static int64_t zero_last_digits(int64_t number, uint32_t count)
{
    int64_t power = 1;
    for (uint32_t i = 0; i < count; i++) {
        power *= 10;
    }
    return number / power * power;
}

/* DateTimeUtils.truncate: few nanoseconds pass for few digits, and ms are cut towards zero. */
static void cut_digits(struct tn_value *value, uint32_t precision)
{
    uint32_t ms_of_day = 0;
    (void)tn_cast_local_day(value->as.i64, &ms_of_day);
    if (digit_count(ms_of_day % MS_PER_SECOND * 1000000 + value->nanos) <= precision) {
        return;
    }
    if (precision <= 3) {
        value->as.i64 = zero_last_digits(value->as.i64, 3 - precision);
        value->nanos = 0;
    } else {
        value->nanos = (uint32_t)zero_last_digits(value->nanos, 9 - precision);
    }
}

bool tn_cast_timestamp_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                                    struct tn_cast_out *out)
{
    out->value = *from;
    if (cast->from.kind == TN_TYPE_TIMESTAMP && cast->to.kind == TN_TYPE_TIMESTAMP_LTZ) {
        out->value.as.i64 = local_ms(from->as.i64);
    }
    if (cast->from.precision > cast->to.precision) {
        cut_digits(&out->value, cast->to.precision);
    }
    return true;
}

/* A local one towards zero: before 1970 a day late. */
bool tn_cast_timestamp_to_date(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    int64_t days = from->as.i64 / MS_PER_DAY;
    if (cast->from.kind == TN_TYPE_TIMESTAMP_LTZ) {
        days -= from->as.i64 % MS_PER_DAY < 0;
        struct tn_date date = tn_date_of_days(days);
        days = unix_date(&date);
    }
    out->value.as.i64 = (int32_t)days;
    return true;
}

/* A local one before 1970 gives a negative time of day. */
bool tn_cast_timestamp_to_time(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    int64_t rest = from->as.i64 % MS_PER_DAY;
    bool zoned = cast->from.kind == TN_TYPE_TIMESTAMP_LTZ;
    out->value.as.i64 = zoned && rest < 0 ? rest + MS_PER_DAY : rest;
    return true;
}

static bool valid_date(const struct tn_julian *date)
{
    return date->month >= 1 && date->month <= 12 && date->day >= 1 &&
           date->day <= (int32_t)tn_days_in_month(date->year, (uint32_t)date->month);
}

bool tn_cast_date_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    out->value.as.i64 = from->as.i64 * MS_PER_DAY;
    if (cast->to.kind == TN_TYPE_TIMESTAMP) {
        return true;
    }
    struct tn_julian julian = tn_cast_julian((int32_t)from->as.i64);
    if (!valid_date(&julian)) {
        return false;
    }
    const struct tn_date date = {julian.year, (uint32_t)julian.month, (uint32_t)julian.day};
    out->value.as.i64 = tn_days_of_date(&date) * MS_PER_DAY;
    return true;
}

bool tn_cast_time_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    (void)cast;
    out->value.as.i64 = from->as.i64;
    return true;
}
