#include "schema/time_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "schema/decimal.h"
#include "schema/text_scan.h"

enum {
    MS_PER_SECOND = 1000,
    NANOS_PER_MS = 1000000,
    MS_PER_MINUTE = 60000,
    MS_PER_HOUR = 3600000,
    MS_PER_DAY = 86400000,
    DAYS_PER_ERA = 146097,   /* 400 years, after which the calendar repeats */
    DAYS_TO_ERA = 719468,    /* from 0000-03-01 to 1970-01-01 */
    FRACTION_DIGITS = 9,     /* nanoseconds */
    YEAR_DIGITS_MAX = 9,     /* what 64 bits of ms can reach */
    TIME_PRECISION_KEPT = 3, /* Paimon keeps a TIME in ms whatever its type says */
};

static const uint32_t powers_of_ten[FRACTION_DIGITS + 1] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

/* a / b rounded down, for b > 0. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* What floor_divide leaves over, 0 .. b - 1. */
static int64_t floor_rest(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest < 0 ? rest + b : rest;
}

/* Years begin in March here, so that the leap day is the last. Source: H. Hinnant,
 * chrono-compatible low-level date algorithms. */
struct tn_date tn_date_of_days(int64_t days)
{
    int64_t shifted = days + DAYS_TO_ERA;
    int64_t era = floor_divide(shifted, DAYS_PER_ERA);
    uint32_t day_of_era = (uint32_t)(shifted - era * DAYS_PER_ERA);
    uint32_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint32_t march_month = (5 * day_of_year + 2) / 153;
    uint32_t month = march_month < 10 ? march_month + 3 : march_month - 9;
    return (struct tn_date){
        .year = (int64_t)year_of_era + era * 400 + (month <= 2),
        .month = month,
        .day = day_of_year - (153 * march_month + 2) / 5 + 1,
    };
}

int64_t tn_days_of_date(const struct tn_date *date)
{
    int64_t year = date->year - (date->month <= 2);
    int64_t era = floor_divide(year, 400);
    int64_t year_of_era = year - era * 400;
    uint32_t march_month = date->month > 2 ? date->month - 3 : date->month + 9;
    int64_t day_of_year = (153 * march_month + 2) / 5 + date->day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_ERA;
}

uint32_t tn_days_in_month(int64_t year, uint32_t month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap ? 1U : 0U);
}

/* ---- format ---- */

static void format_year(struct tn_buf *buf, int64_t year)
{
    if (year < 0 || year > 9999) {
        tn_buf_byte(buf, year < 0 ? '-' : '+');
    }
    int64_t size = year < 0 ? -year : year;
    if (size > 9999) {
        tn_integer_format(buf, size);
    } else {
        tn_digits_format(buf, (uint32_t)size, 4);
    }
}

static void format_date(struct tn_buf *buf, int64_t days)
{
    struct tn_date date = tn_date_of_days(days);
    format_year(buf, date.year);
    tn_buf_byte(buf, '-');
    tn_digits_format(buf, date.month, 2);
    tn_buf_byte(buf, '-');
    tn_digits_format(buf, date.day, 2);
}

/* `digits` 3 or 9: how much of `fraction` is shown behind the point. */
static void format_clock(struct tn_buf *buf, uint32_t ms_of_day, uint32_t fraction, uint32_t digits)
{
    tn_digits_format(buf, ms_of_day / MS_PER_HOUR, 2);
    tn_buf_byte(buf, ':');
    tn_digits_format(buf, ms_of_day / MS_PER_MINUTE % 60, 2);
    tn_buf_byte(buf, ':');
    tn_digits_format(buf, ms_of_day / MS_PER_SECOND % 60, 2);
    tn_buf_byte(buf, '.');
    tn_digits_format(buf, fraction, digits);
}

static void format_timestamp(struct tn_buf *buf, const struct tn_value *value)
{
    int64_t days = floor_divide(value->as.i64, MS_PER_DAY);
    uint32_t ms_of_day = (uint32_t)floor_rest(value->as.i64, MS_PER_DAY);
    format_date(buf, days);
    tn_buf_byte(buf, 'T');
    uint32_t fraction = ms_of_day % MS_PER_SECOND * NANOS_PER_MS + value->nanos;
    format_clock(buf, ms_of_day, fraction, FRACTION_DIGITS);
}

/* A cast of Paimon's may give a TIME before midnight or behind a day's end. */
static void format_time(struct tn_buf *buf, int64_t ms)
{
    if (ms < 0) {
        tn_buf_byte(buf, '-');
    }
    uint32_t size = (uint32_t)(ms < 0 ? -ms : ms);
    if (size / MS_PER_HOUR >= 100) {
        tn_digits_format(buf, size / MS_PER_HOUR / 100, size / MS_PER_HOUR >= 1000 ? 2 : 1);
    }
    format_clock(buf, size, size % MS_PER_SECOND, 3);
}

void tn_time_format(struct tn_buf *buf, const struct tn_type *type, const struct tn_value *value)
{
    if (type->kind == TN_TYPE_DATE) {
        format_date(buf, value->as.i64);
    } else if (type->kind == TN_TYPE_TIME) {
        format_time(buf, value->as.i64);
    } else {
        format_timestamp(buf, value);
        if (type->kind == TN_TYPE_TIMESTAMP_LTZ) {
            tn_buf_byte(buf, 'Z');
        }
    }
}

/* ---- parse ---- */

static size_t digits_at(struct tn_bytes text)
{
    return tn_take_digits(&text).size;
}

/* Exactly `count` (at most 9) digits. */
static bool take_number(struct tn_bytes *rest, uint32_t count, uint32_t *number)
{
    if (rest->size < count) {
        return false;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t digit = (uint32_t)rest->data[i] - '0';
        if (digit > 9) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    tn_skip(rest, count);
    *number = sum;
    return true;
}

/* Two digits below `limit`. */
static bool take_part(struct tn_bytes *rest, uint32_t limit, uint32_t *number)
{
    return take_number(rest, 2, number) && *number < limit;
}

static bool take_year(struct tn_bytes *rest, int64_t *year)
{
    bool negative = tn_take_byte(rest, '-');
    bool has_sign = negative || tn_take_byte(rest, '+');
    size_t digits = has_sign ? digits_at(*rest) : 4;
    uint32_t size = 0;
    if (digits < 4 || digits > YEAR_DIGITS_MAX || !take_number(rest, (uint32_t)digits, &size)) {
        return false;
    }
    *year = negative ? -(int64_t)size : (int64_t)size;
    return true;
}

static bool take_date(struct tn_bytes *rest, int64_t *days)
{
    struct tn_date date;
    bool taken = take_year(rest, &date.year) && tn_take_byte(rest, '-') &&
                 take_part(rest, 13, &date.month) && tn_take_byte(rest, '-') &&
                 take_part(rest, 32, &date.day);
    if (!taken || date.month == 0 || date.day == 0 ||
        date.day > tn_days_in_month(date.year, date.month)) {
        return false;
    }
    *days = tn_days_of_date(&date);
    const int64_t days_max = INT64_MAX / MS_PER_DAY - 2; /* ms with a time and an offset fit */
    return *days <= days_max && *days >= -days_max;
}

/* Digits behind a point, as a number of 10^-places; false when some behind those are not zeros. */
static bool take_fraction(struct tn_bytes *rest, uint32_t places, uint32_t *fraction)
{
    size_t count = digits_at(*rest);
    uint32_t kept = count < places ? (uint32_t)count : places;
    uint32_t size = 0;
    (void)take_number(rest, kept, &size);
    for (size_t i = kept; i < count; i++) {
        if (!tn_take_byte(rest, '0')) {
            return false;
        }
    }
    *fraction = size * powers_of_ten[places - kept];
    return count > 0;
}

/* 12:30, 12:30:59, 12:30:59.5 */
static bool take_clock(struct tn_bytes *rest, uint32_t *ms_of_day, uint32_t *nanos)
{
    uint32_t hour = 0;
    uint32_t minute = 0;
    uint32_t second = 0;
    uint32_t fraction = 0;
    if (!take_part(rest, 24, &hour) || !tn_take_byte(rest, ':') || !take_part(rest, 60, &minute)) {
        return false;
    }
    if (tn_take_byte(rest, ':')) {
        if (!take_part(rest, 60, &second)) {
            return false;
        }
        if (tn_take_byte(rest, '.') && !take_fraction(rest, FRACTION_DIGITS, &fraction)) {
            return false;
        }
    }
    *ms_of_day = hour * MS_PER_HOUR + minute * MS_PER_MINUTE + second * MS_PER_SECOND +
                 fraction / NANOS_PER_MS;
    *nanos = fraction % NANOS_PER_MS;
    return true;
}

/* Z, +02, +0230, +02:30; the whole rest. Java: ZoneOffset, at most 18 hours. */
static bool take_offset(struct tn_bytes *rest, int64_t *offset_ms)
{
    if (tn_take_byte(rest, 'Z') || tn_take_byte(rest, 'z')) {
        *offset_ms = 0;
        return rest->size == 0;
    }
    bool negative = tn_take_byte(rest, '-');
    uint32_t hours = 0;
    uint32_t minutes = 0;
    if ((!negative && !tn_take_byte(rest, '+')) || !take_part(rest, 19, &hours)) {
        return false;
    }
    if (rest->size > 0) {
        (void)tn_take_byte(rest, ':');
        if (!take_part(rest, 60, &minutes)) {
            return false;
        }
    }
    int64_t size = (int64_t)hours * MS_PER_HOUR + (int64_t)minutes * MS_PER_MINUTE;
    *offset_ms = negative ? -size : size;
    return rest->size == 0 && size <= (int64_t)18 * MS_PER_HOUR;
}

static bool parse_timestamp(struct tn_bytes text, bool zoned, struct tn_value *value)
{
    int64_t days = 0;
    int64_t offset_ms = 0;
    uint32_t ms_of_day = 0;
    if (!take_date(&text, &days)) {
        return false;
    }
    if (!tn_take_byte(&text, 'T') && !tn_take_byte(&text, ' ') && !tn_take_byte(&text, 't')) {
        return false;
    }
    if (!take_clock(&text, &ms_of_day, &value->nanos)) {
        return false;
    }
    if (text.size > 0 && (!zoned || !take_offset(&text, &offset_ms))) {
        return false;
    }
    value->as.i64 = days * MS_PER_DAY + ms_of_day - offset_ms;
    return true;
}

/* `per_ms` units make one ms, or one unit is `ms_per` ms. */
struct epoch_unit {
    int64_t per_ms;
    int64_t ms_per;
    uint32_t fraction_digits; /* until nanoseconds */
};

static const struct epoch_unit epoch_units[] = {
    [TN_EPOCH_S] = {1, 1000, 9},
    [TN_EPOCH_MS] = {1, 1, 6},
    [TN_EPOCH_US] = {1000, 1, 3},
    [TN_EPOCH_NS] = {1000000, 1, 0},
};

/* Moves an instant of ms by nanos of any sign. */
static void add_nanos(struct tn_value *value, int64_t nanos)
{
    int64_t sum = (int64_t)value->nanos + nanos;
    value->as.i64 += floor_divide(sum, NANOS_PER_MS); /* |ms| is below its end by a second */
    value->nanos = (uint32_t)floor_rest(sum, NANOS_PER_MS);
}

/* An integer, or one with a fraction: seconds are often told so. */
static bool parse_epoch(struct tn_bytes text, enum tn_epoch epoch, struct tn_value *value)
{
    const struct epoch_unit *unit = &epoch_units[epoch];
    struct tn_bytes whole = {text.data, 0};
    while (whole.size < text.size && text.data[whole.size] != '.') {
        whole.size++;
    }
    int64_t number = 0;
    if (tn_integer_parse(whole, &number) != TN_INTEGER_OK) {
        return false;
    }
    uint32_t fraction = 0;
    if (whole.size < text.size) {
        struct tn_bytes rest = {text.data + whole.size + 1, text.size - whole.size - 1};
        if (!take_fraction(&rest, unit->fraction_digits, &fraction) || rest.size > 0) {
            return false;
        }
    }
    const int64_t number_max = INT64_MAX / unit->ms_per - MS_PER_SECOND;
    bool moves = unit->ms_per > 1 || fraction > 0; /* a bare count of ms may use all 64 bits */
    if (moves && (number > number_max || number < -number_max)) {
        return false;
    }
    int64_t units_left = floor_rest(number, unit->per_ms);
    value->as.i64 = floor_divide(number, unit->per_ms) * unit->ms_per;
    value->nanos = (uint32_t)(units_left * (NANOS_PER_MS / unit->per_ms));
    if (fraction > 0) {
        add_nanos(value, text.data[0] == '-' ? -(int64_t)fraction : (int64_t)fraction);
    }
    return true;
}

static bool parse_time(struct tn_bytes text, struct tn_value *value)
{
    uint32_t ms_of_day = 0;
    if (!take_clock(&text, &ms_of_day, &value->nanos) || text.size > 0) {
        return false;
    }
    value->as.i64 = ms_of_day;
    return true;
}

/* A DATE as the instant of its midnight. */
static bool parse_date(struct tn_bytes text, struct tn_value *value)
{
    int64_t days = 0;
    if (!take_date(&text, &days) || text.size > 0) {
        return false;
    }
    value->as.i64 = days * MS_PER_DAY;
    value->nanos = 0;
    return true;
}

/* All digits, perhaps with a sign or a point: then no date and no time of day. */
static bool is_number(struct tn_bytes text)
{
    if (!tn_take_byte(&text, '-')) {
        (void)tn_take_byte(&text, '+');
    }
    bool digits = tn_take_digits(&text).size > 0;
    return digits && (text.size == 0 || text.data[0] == '.');
}

static tn_rc refuse(const struct tn_type *type, struct tn_bytes text, const char *why,
                    struct tn_err *err)
{
    return tn_err_set(err, TN_INVALID, 0, "'%.*s' %s%s", tn_quote_size(text), text.data, why,
                      tn_type_name(type->kind));
}

static bool parse_text(const struct tn_type *type, struct tn_bytes text, struct tn_value *value)
{
    if (type->kind == TN_TYPE_DATE) {
        return parse_date(text, value);
    }
    if (type->kind == TN_TYPE_TIME) {
        return parse_time(text, value);
    }
    return parse_timestamp(text, type->kind == TN_TYPE_TIMESTAMP_LTZ, value);
}

static tn_rc check_date(const struct tn_type *type, struct tn_bytes text, struct tn_value *value,
                        struct tn_err *err)
{
    if (value->as.i64 % MS_PER_DAY != 0 || value->nanos != 0) {
        return refuse(type, text, "is not midnight, and so no ", err);
    }
    value->as.i64 /= MS_PER_DAY;
    if (value->as.i64 != (int32_t)value->as.i64) {
        return refuse(type, text, "does not fit ", err);
    }
    return TN_OK;
}

/* The column's digits of a second. */
static tn_rc check_precision(const struct tn_type *type, struct tn_bytes text,
                             const struct tn_value *value, struct tn_err *err)
{
    uint32_t precision = type->precision;
    if (type->kind == TN_TYPE_TIME && precision > TIME_PRECISION_KEPT) {
        precision = TIME_PRECISION_KEPT;
    }
    uint32_t ms = (uint32_t)floor_rest(value->as.i64, MS_PER_SECOND);
    uint32_t fraction = ms * NANOS_PER_MS + value->nanos;
    if (precision < FRACTION_DIGITS && fraction % powers_of_ten[FRACTION_DIGITS - precision]) {
        return refuse(type, text, "has more digits of a second than its ", err);
    }
    return TN_OK;
}

tn_rc tn_time_parse(const struct tn_type *type, enum tn_epoch epoch, struct tn_bytes text,
                    struct tn_value *value, struct tn_err *err)
{
    struct tn_value parsed = {0};
    bool number = is_number(text);
    if (number && epoch == TN_EPOCH_NONE) {
        return refuse(type, text, "is a number, and no unit is known for this ", err);
    }
    if (!(number ? parse_epoch(text, epoch, &parsed) : parse_text(type, text, &parsed))) {
        return refuse(type, text, "is no ", err);
    }
    if (type->kind == TN_TYPE_TIME && (parsed.as.i64 < 0 || parsed.as.i64 >= MS_PER_DAY)) {
        return refuse(type, text, "does not fit ", err);
    }
    tn_rc rc = type->kind == TN_TYPE_DATE ? check_date(type, text, &parsed, err)
                                          : check_precision(type, text, &parsed, err);
    if (rc == TN_OK) {
        *value = parsed;
    }
    return rc;
}

void tn_time_format_utc(int64_t ms, char *text, size_t size)
{
    int64_t seconds = ms > 0 ? ms / 1000 : 0;
    struct tn_date date = tn_date_of_days(seconds / 86400);
    int64_t second = seconds % 86400;
    (void)snprintf(text, size, "%" PRId64 "-%02u-%02u %02d:%02d:%02d UTC", (int64_t)date.year,
                   (unsigned)date.month, (unsigned)date.day, (int)(second / 3600),
                   (int)(second / 60 % 60), (int)(second % 60));
}
