/* trend: whether a table's compaction keeps up, and how busy it is. The runs that are more than the
 * compaction trigger come and go; what says something is the least of a minute. A minute is a bad
 * one when its least is above that of the minute before it, or when flushes waited in it at the
 * stop trigger; after some bad ones on end compaction doesn't converge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_TREND_LOOK_MS = 5000,
    TN_TREND_MINUTE_MS = 60 * 1000,
    TN_TREND_BAD_MINUTES = 3, /* a guess */
};

/* What is seen in a look. */
struct tn_trend_look {
    uint32_t runs_over; /* tn_backlog's */
    uint32_t stopped;   /* likewise */
    uint64_t stalls;    /* tn_table_counts', as the next one */
    int64_t compaction_ns;
};

struct tn_trend_begin { /* of a minute */
    int64_t ms;
    int64_t compaction_ns;
};

struct tn_trend {
    bool begun;
    bool known_before;   /* there was a minute before this one */
    bool always_stopped; /* in each look of this one */
    uint32_t bad;        /* minutes on end */
    uint32_t least;      /* runs over, in this one */
    uint32_t least_before;
    int64_t next_ms; /* when to look again */
    uint64_t stalls; /* at its begin */
    struct tn_trend_begin minute;
    struct tn_trend_begin before;
};

static inline bool tn_trend_due(const struct tn_trend *trend, int64_t now_ms)
{
    return !trend->begun || now_ms >= trend->next_ms;
}

void tn_trend_note(struct tn_trend *trend, const struct tn_trend_look *look, int64_t now_ms);

static inline bool tn_trend_converges(const struct tn_trend *trend)
{
    return trend->bad < TN_TREND_BAD_MINUTES;
}

/* Of this minute and the one before, as far as they are known: percent. `compaction_ns` is now's.
 */
double tn_trend_busy_percent(const struct tn_trend *trend, int64_t compaction_ns, int64_t now_ms);
