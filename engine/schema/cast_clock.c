/* Times as texts and texts as times: Paimon's BinaryStringUtils and DateTimeUtils, and behind them
 * java.time's parser. They take more than tn_time_parse, which reads what people send. */
#include "schema/cast_private.h"
#include "schema/decimal.h"
#include "schema/text_scan.h"
#include "schema/time_text.h"

enum {
    MS_PER_SECOND = 1000,
    NANOS_PER_MS = 1000000,
    MS_PER_MINUTE = 60000,
    MS_PER_HOUR = 3600000,
    MS_PER_DAY = 86400000,
    FRACTION_DIGITS = 9,
    NUMBER_DIGITS_MAX = 19, /* what java.time takes for one number at most */
    YEAR_MAX = 999999999,   /* java.time.Year */
    MISSING = -1,
};

/* ---- pieces ---- */

/* Digits only, blanks around them. Java: isInteger and Integer.parseInt */
static bool number_of(struct tn_bytes text, int32_t *number)
{
    text = tn_cast_trimmed(text);
    int64_t wide = 0;
    if (text.size == 0 || !tn_is_digit(text.data[0]) ||
        tn_integer_parse(text, &wide) != TN_INTEGER_OK || wide > INT32_MAX) {
        return false;
    }
    *number = (int32_t)wide;
    return true;
}

/* Splits at the first `byte`; false, and all of it in `head`, when there is none. */
static bool split(struct tn_bytes text, char byte, struct tn_bytes *head, struct tn_bytes *tail)
{
    size_t at = 0;
    while (at < text.size && text.data[at] != (unsigned char)byte) {
        at++;
    }
    *head = (struct tn_bytes){text.data, at};
    *tail = (struct tn_bytes){text.data + at, 0};
    if (at == text.size) {
        return false;
    }
    *tail = (struct tn_bytes){text.data + at + 1, text.size - at - 1};
    return true;
}

/* A number instead of a time: digits, perhaps with a '-'. Java: StringUtils.isNumeric */
static bool is_numeric(struct tn_bytes text)
{
    (void)tn_take_byte(&text, '-');
    return tn_take_digits(&text).size > 0 && text.size == 0;
}

static bool numeric_i32(struct tn_bytes text, struct tn_cast_out *out)
{
    return tn_integer_parse(text, &out->value.as.i64) == TN_INTEGER_OK &&
           out->value.as.i64 == (int32_t)out->value.as.i64;
}

/* ---- dates ---- */

/* 2020, 2020-1, 2020-01-02, with anything behind a blank. Java: DateTimeUtils.parseDate */
static bool parse_date(struct tn_bytes text, struct tn_date *date)
{
    struct tn_bytes head;
    struct tn_bytes rest;
    if (text.size > 0 && text.data[0] != ' ' && split(text, ' ', &head, &rest)) {
        text = head;
    }
    int32_t parts[3] = {0, 1, 1};
    bool more = true;
    for (int i = 0; i < 3 && more; i++) {
        more = i < 2 && split(text, '-', &head, &rest);
        if (!number_of(more ? head : text, &parts[i])) {
            return false;
        }
        text = rest;
    }
    *date = (struct tn_date){parts[0], (uint32_t)parts[1], (uint32_t)parts[2]};
    return parts[0] <= 9999 && parts[1] >= 1 && parts[1] <= 12 && parts[2] >= 1 &&
           date->day <= tn_days_in_month(date->year, date->month);
}

bool tn_cast_text_to_date(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out)
{
    (void)cast;
    if (is_numeric(from->as.bytes)) {
        return numeric_i32(from->as.bytes, out);
    }
    struct tn_date date;
    if (!parse_date(from->as.bytes, &date)) {
        return false;
    }
    out->value.as.i64 = tn_days_of_date(&date);
    return true;
}

static void digits_of(struct tn_buf *buf, int32_t number, uint32_t count)
{
    int32_t power = count == 4 ? 1000 : 10;
    for (; power > 0; power /= 10) { /* a negative one gives what stands before '0', as in Java */
        tn_buf_byte(buf, (unsigned char)('0' + number / power % 10));
    }
}

static void date_text(struct tn_buf *buf, int32_t year, int32_t month, int32_t day)
{
    digits_of(buf, year, 4);
    tn_buf_byte(buf, '-');
    digits_of(buf, month, 2);
    tn_buf_byte(buf, '-');
    digits_of(buf, day, 2);
}

static void clock_text(struct tn_buf *buf, uint32_t ms_of_day)
{
    digits_of(buf, (int32_t)(ms_of_day / MS_PER_HOUR), 2);
    tn_buf_byte(buf, ':');
    digits_of(buf, (int32_t)(ms_of_day / MS_PER_MINUTE % 60), 2);
    tn_buf_byte(buf, ':');
    digits_of(buf, (int32_t)(ms_of_day / MS_PER_SECOND % 60), 2);
}

bool tn_cast_date_to_text(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out)
{
    (void)cast;
    struct tn_buf buf;
    tn_buf_init(&buf, out->text, sizeof out->text);
    struct tn_julian date = tn_cast_julian((int32_t)from->as.i64);
    date_text(&buf, date.year, date.month, date.day);
    out->value.as.bytes = tn_buf_bytes(&buf);
    return true;
}

/* ---- times of day ---- */

/* Milliseconds: three digits, the fourth rounds; what is no digit counts as 0. Java:
 * DateTimeUtils.parseFraction */
static uint32_t fraction_ms(struct tn_bytes text)
{
    uint32_t sum = 0;
    text = tn_cast_trimmed(text);
    for (size_t i = 0, multiplier = 100; i < text.size && multiplier > 0; i++, multiplier /= 10) {
        sum += tn_is_digit(text.data[i]) ? (uint32_t)(multiplier * (text.data[i] - '0')) : 0;
        if (multiplier == 1 && i + 1 < text.size && text.data[i + 1] >= '5') {
            sum++;
        }
    }
    return sum;
}

/* What is behind the second ':': seconds and a fraction. */
static bool parse_second(struct tn_bytes text, int32_t *second, uint32_t *ms)
{
    struct tn_bytes whole;
    struct tn_bytes fraction;
    if (split(text, '.', &whole, &fraction)) {
        *ms = fraction_ms(fraction);
    }
    return number_of(whole, second);
}

struct clock {
    int32_t hour;
    int32_t minute;
    int32_t second;
    uint32_t ms;
};

/* `colons`: there must be both. */
static bool parse_clock(struct tn_bytes text, bool colons, struct clock *clock)
{
    struct tn_bytes head;
    struct tn_bytes rest;
    struct tn_bytes second;
    bool minutes = split(text, ':', &head, &rest);
    if (!number_of(head, &clock->hour)) {
        return false;
    }
    if (!minutes) {
        return !colons;
    }
    bool seconds = split(rest, ':', &head, &second);
    return (seconds || !colons) && number_of(head, &clock->minute) &&
           (!seconds || parse_second(second, &clock->second, &clock->ms));
}

/* 10, 10:30, 10:30:59.5, and an offset behind it, which has minutes only where the time has
 * seconds. Nothing is bounded, and all of it may wrap. Java: DateTimeUtils.parseTime */
static bool parse_time(struct tn_bytes text, int32_t *ms)
{
    struct tn_bytes head;
    struct tn_bytes zone;
    struct clock offset = {0};
    struct clock clock = {0};
    bool negative = split(text, '-', &head, &zone);
    bool zoned = negative || split(text, '+', &head, &zone);
    bool colons = false;
    if (zoned) {
        struct tn_bytes hour;
        struct tn_bytes minute;
        colons = split(zone, ':', &hour, &minute);
        if (!number_of(hour, &offset.hour) || (colons && !number_of(minute, &offset.minute))) {
            return false;
        }
    }
    if (!parse_clock(head, colons, &clock)) {
        return false;
    }
    uint32_t sign = negative ? UINT32_MAX : 1;
    uint32_t hour = (uint32_t)clock.hour + sign * (uint32_t)offset.hour;
    uint32_t minute = (uint32_t)clock.minute + sign * (uint32_t)offset.minute;
    *ms = (int32_t)(hour * MS_PER_HOUR + minute * MS_PER_MINUTE +
                    (uint32_t)clock.second * MS_PER_SECOND + clock.ms);
    return true;
}

bool tn_cast_text_to_time(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out)
{
    (void)cast;
    if (is_numeric(from->as.bytes)) {
        return numeric_i32(from->as.bytes, out);
    }
    int32_t ms = 0;
    bool parsed = parse_time(from->as.bytes, &ms);
    out->value.as.i64 = ms;
    return parsed;
}

/* Zeros behind the first digit of the fraction are left out. Java:
 * DateTimeUtils.formatTimestampMillis */
bool tn_cast_time_to_text(const struct tn_cast *cast, const struct tn_value *from,
                          struct tn_cast_out *out)
{
    struct tn_buf buf;
    tn_buf_init(&buf, out->text, sizeof out->text);
    int64_t time = from->as.i64;
    if (time < 0) {
        time = time % MS_PER_DAY + (time % MS_PER_DAY < 0 ? MS_PER_DAY : 0);
    }
    clock_text(&buf, (uint32_t)time);
    if (cast->from.precision > 0) {
        tn_buf_byte(&buf, '.');
    }
    uint32_t ms = (uint32_t)(time % MS_PER_SECOND);
    for (uint32_t i = 0; i < cast->from.precision && (i == 0 || ms > 0); i++) {
        tn_buf_byte(&buf, (unsigned char)('0' + ms / 100));
        ms = ms % 100 * 10;
    }
    out->value.as.bytes = tn_buf_bytes(&buf);
    return true;
}

/* ---- timestamps ---- */

/* java.time's [XX][X]: two digits or one. More digits are taken when they mean the same number
 * again ("0505" is 5), and where there are none `part` stays as it is. */
static bool take_part(struct tn_bytes *rest, int64_t *part)
{
    struct tn_bytes digits = tn_take_digits(rest);
    if (digits.size > 2) {
        struct tn_bytes again = {digits.data + 2, digits.size - 2};
        int64_t same = 0;
        digits.size = 2;
        if (again.size > NUMBER_DIGITS_MAX || tn_integer_parse(again, &same) != TN_INTEGER_OK ||
            tn_integer_parse(digits, part) != TN_INTEGER_OK || same != *part) {
            return false;
        }
    }
    return digits.size == 0 || tn_integer_parse(digits, part) == TN_INTEGER_OK;
}

/* Four digits, or a '+' and more. */
static bool take_year(struct tn_bytes *rest, int64_t *year)
{
    bool sign = tn_take_byte(rest, '+');
    struct tn_bytes digits = tn_take_digits(rest);
    bool width = sign ? digits.size > 4 && digits.size <= NUMBER_DIGITS_MAX : digits.size == 4;
    return width && tn_integer_parse(digits, year) == TN_INTEGER_OK && *year >= 1 &&
           *year <= YEAR_MAX;
}

/* `part` where it lacks. */
static int64_t part_or(int64_t part, int64_t otherwise)
{
    return part == MISSING ? otherwise : part;
}

/* A part that lacks is 1 (then it is not `whole`), and a day behind the month's end is the last. */
static bool take_date(struct tn_bytes *rest, struct tn_date *date, bool *whole)
{
    int64_t month = MISSING;
    int64_t day = MISSING;
    if (!take_year(rest, &date->year) || !tn_take_byte(rest, '-') || !take_part(rest, &month) ||
        !tn_take_byte(rest, '-')) {
        return false;
    }
    bool sign = month == MISSING && rest->size > 0 && tn_is_digit(rest->data[0]);
    if (sign || !take_part(rest, &day)) { /* the second '-' was the month's */
        return false;
    }
    *whole = month != MISSING && day != MISSING;
    month = part_or(month, 1);
    day = part_or(day, 1);
    if (month < 1 || month > 12 || day < 1 || day > 31) {
        return false;
    }
    date->month = (uint32_t)month;
    uint32_t last = tn_days_in_month(date->year, date->month);
    date->day = (uint32_t)day < last ? (uint32_t)day : last;
    return true;
}

/* Nanoseconds; further digits are left in `rest`. */
static uint32_t take_nanos(struct tn_bytes *rest)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < FRACTION_DIGITS; i++) {
        sum *= 10;
        if (rest->size > 0 && tn_is_digit(rest->data[0])) {
            sum += (uint32_t)(rest->data[0] - '0');
            tn_skip(rest, 1);
        }
    }
    return sum;
}

/* The whole rest: a blank, three parts and a fraction. A part that lacks is 0. 24:00:00 is taken as
 * `midnight`, unless a part lacks before one that doesn't. */
static bool take_clock(struct tn_bytes rest, int64_t *second_of_day, uint32_t *nanos,
                       bool *midnight)
{
    int64_t hour = MISSING;
    int64_t minute = MISSING;
    int64_t second = MISSING;
    if (!tn_take_byte(&rest, ' ') || !take_part(&rest, &hour) || !tn_take_byte(&rest, ':') ||
        !take_part(&rest, &minute) || !tn_take_byte(&rest, ':') || !take_part(&rest, &second)) {
        return false;
    }
    bool point = tn_take_byte(&rest, '.');
    *nanos = point ? take_nanos(&rest) : 0;
    bool in_order =
        (second != MISSING || !point) && (minute != MISSING || (second == MISSING && !point));
    minute = part_or(minute, 0);
    second = part_or(second, 0);
    *midnight = hour == 24 && minute == 0 && second == 0 && *nanos == 0 && in_order;
    hour = *midnight ? 0 : part_or(hour, 0);
    *second_of_day = hour * 3600 + minute * 60 + second;
    return rest.size == 0 && hour < 24 && minute < 60 && second < 60;
}

static uint32_t power_of_ten(uint32_t exponent)
{
    uint32_t power = 1;
    for (uint32_t i = 0; i < exponent; i++) {
        power *= 10;
    }
    return power;
}

/* Java: DateTimeUtils.parseTimestampData */
static bool parse_timestamp(struct tn_bytes text, uint32_t precision, struct tn_value *value)
{
    struct tn_date date;
    int64_t second = 0;
    uint32_t nanos = 0;
    bool whole = false;
    bool midnight = false;
    if (!take_date(&text, &date, &whole) ||
        (text.size > 0 && !take_clock(text, &second, &nanos, &midnight))) {
        return false;
    }
    nanos -= nanos % power_of_ten(FRACTION_DIGITS - precision);
    uint64_t days = (uint64_t)tn_days_of_date(&date); /* a late year wraps */
    days += midnight && whole;                        /* of the next day */
    value->as.i64 =
        (int64_t)(days * MS_PER_DAY + (uint64_t)second * MS_PER_SECOND + nanos / NANOS_PER_MS);
    value->nanos = nanos % NANOS_PER_MS;
    return true;
}

/* A count of the precision's units since 1970; other precisions have none. Java:
 * BinaryStringUtils.fromMillisToTimestamp */
static bool epoch_of(int64_t count, uint32_t precision, struct tn_value *value)
{
    if (precision % 3 != 0) {
        return false;
    }
    if (precision == 0) {
        value->as.i64 = (int64_t)((uint64_t)count * MS_PER_SECOND);
        return true;
    }
    int64_t per_ms = power_of_ten(precision - 3);
    int64_t rest = count % per_ms;
    value->as.i64 = count / per_ms - (rest < 0);
    value->nanos = (uint32_t)(rest * (NANOS_PER_MS / per_ms) + (rest < 0 ? NANOS_PER_MS : 0));
    return true;
}

bool tn_cast_text_to_timestamp(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    if (cast->to.kind == TN_TYPE_TIMESTAMP && is_numeric(from->as.bytes)) {
        int64_t count = 0;
        return tn_integer_parse(from->as.bytes, &count) == TN_INTEGER_OK &&
               epoch_of(count, cast->to.precision, &out->value);
    }
    return parse_timestamp(from->as.bytes, cast->to.precision, &out->value);
}

/* At least the precision's digits of a second, more when they are not zeros. Java:
 * DateTimeUtils.formatTimestamp */
bool tn_cast_timestamp_to_text(const struct tn_cast *cast, const struct tn_value *from,
                               struct tn_cast_out *out)
{
    struct tn_buf buf;
    tn_buf_init(&buf, out->text, sizeof out->text);
    uint32_t ms_of_day = 0;
    struct tn_date date = tn_date_of_days(tn_cast_local_day(from->as.i64, &ms_of_day));
    date_text(&buf, (int32_t)date.year, (int32_t)date.month, (int32_t)date.day);
    tn_buf_byte(&buf, ' ');
    clock_text(&buf, ms_of_day);
    uint32_t fraction = ms_of_day % MS_PER_SECOND * NANOS_PER_MS + from->nanos;
    uint32_t digits = FRACTION_DIGITS;
    for (; digits > cast->from.precision && fraction % 10 == 0; digits--) {
        fraction /= 10;
    }
    if (digits > 0) {
        tn_buf_byte(&buf, '.');
        tn_digits_format(&buf, fraction, digits);
    }
    out->value.as.bytes = tn_buf_bytes(&buf);
    return true;
}
