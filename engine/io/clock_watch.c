#include "io/clock_watch.h"

#include <stdlib.h>
#include <string.h>

enum { MS_A_DAY = 24 * 3600 * 1000 };

/* Days since 1970 of a date after 2000, counted from March as leap days end a year then. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    static const int64_t to_epoch = 719468; /* from 0000-03-01 */
    year -= month <= 2;
    int64_t months = month > 2 ? month - 3 : month + 9;
    return year * 365 + year / 4 - year / 100 + year / 400 + (153 * months + 2) / 5 + day - 1 -
           to_epoch;
}

/* __DATE__ is "Nov 30 2026", in the builder's zone; SOURCE_DATE_EPOCH fixes it. */
int64_t tn_clock_built_ms(void)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const char date[] = __DATE__;
    int64_t month = 1;
    for (size_t i = 0; i + 3 < sizeof months; i += 3) {
        if (strncmp(months + i, date, 3) == 0) {
            month = (int64_t)i / 3 + 1;
        }
    }
    int64_t days = days_of(strtol(date + 7, NULL, 10), month, strtol(date + 4, NULL, 10));
    return (days - 1) * MS_A_DAY;
}

static int64_t apart(const struct tn_clock_watch *watch, int64_t now_ms)
{
    return now_ms - tn_clock_monotonic_ms(watch->clock);
}

void tn_clock_watch_init(struct tn_clock_watch *watch, struct tn_clock *clock, int64_t known_ms)
{
    int64_t built = tn_clock_built_ms();
    int64_t known = known_ms > INT64_MIN + TN_CLOCK_STEP_MS ? known_ms - TN_CLOCK_STEP_MS : 0;
    *watch = (struct tn_clock_watch){.clock = clock, .over_ms = known > built ? known : built};
    int64_t now_ms;
    (void)tn_clock_watch_look(watch, &now_ms);
}

const char *tn_clock_watch_look(struct tn_clock_watch *watch, int64_t *now_ms)
{
    *now_ms = watch->clock->vtable->now_ms(watch->clock);
    if (*now_ms < watch->over_ms) {
        return "unset";
    }
    int64_t now_apart = apart(watch, *now_ms);
    if (!watch->right) {
        watch->right = true;
        watch->apart_ms = now_apart;
    }
    int64_t step = now_apart - watch->apart_ms;
    return step > TN_CLOCK_STEP_MS || step < -TN_CLOCK_STEP_MS ? "stepped" : "synced";
}
