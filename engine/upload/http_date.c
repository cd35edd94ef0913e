#include "schema/time_text.h"
#include "upload/http_private.h"

enum { YEAR_MIN = 1970, YEAR_MAX = 9999 };

static bool number_at(struct tn_bytes text, size_t at, size_t size, int64_t *value)
{
    uint64_t number = 0;
    if (!tn_http_number((struct tn_bytes){text.data + at, size}, &number)) {
        return false;
    }
    *value = (int64_t)number;
    return true;
}

static uint32_t month_at(const unsigned char *at)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (uint32_t month = 0; month < 12; month++) {
        if (memcmp(at, names + 3 * (size_t)month, 3) == 0) {
            return month + 1;
        }
    }
    return 0;
}

bool tn_http_date(struct tn_bytes text, int64_t *time_ms)
{
    static const char shape[] = "###, ## ### #### ##:##:## GMT";
    if (text.size != sizeof shape - 1) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (shape[i] != '#' && text.data[i] != (unsigned char)shape[i]) {
            return false;
        }
    }
    struct tn_date date = {.month = month_at(text.data + 8)};
    int64_t day = 0;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    if (date.month == 0 || !number_at(text, 5, 2, &day) || !number_at(text, 12, 4, &date.year) ||
        !number_at(text, 17, 2, &hour) || !number_at(text, 20, 2, &minute) ||
        !number_at(text, 23, 2, &second) || date.year < YEAR_MIN || date.year > YEAR_MAX) {
        return false;
    }
    if (day < 1 || day > (int64_t)tn_days_in_month(date.year, date.month) || hour > 23 ||
        minute > 59 || second > 60) {
        return false;
    }
    date.day = (uint32_t)day;
    *time_ms = (((tn_days_of_date(&date) * 24 + hour) * 60 + minute) * 60 + second) * 1000;
    return true;
}
