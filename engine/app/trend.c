#include "app/trend.h"

enum { NS_PER_MS = 1000000, PERCENT = 100 };

static void begin_minute(struct tn_trend *t, const struct tn_trend_look *look, int64_t now_ms)
{
    t->minute = (struct tn_trend_begin){now_ms, look->compaction_ns};
    t->least = look->runs_over;
    t->always_stopped = look->stopped > 0;
    t->stalls = look->stalls;
}

static void end_minute(struct tn_trend *t, const struct tn_trend_look *look)
{
    bool grew = t->known_before && t->least > t->least_before;
    bool waited = look->stalls > t->stalls || t->always_stopped;
    t->bad = grew || waited ? t->bad + 1 : 0;
    t->least_before = t->least;
    t->known_before = true;
    t->before = t->minute;
}

void tn_trend_note(struct tn_trend *trend, const struct tn_trend_look *look, int64_t now_ms)
{
    struct tn_trend *t = trend;
    /* A table that was opened again counts anew. */
    bool anew = look->compaction_ns < t->minute.compaction_ns || look->stalls < t->stalls;
    if (!t->begun || anew) {
        *t = (struct tn_trend){.begun = true, .bad = t->bad};
        begin_minute(t, look, now_ms);
    }
    t->next_ms = now_ms + TN_TREND_LOOK_MS;
    t->least = look->runs_over < t->least ? look->runs_over : t->least;
    t->always_stopped = t->always_stopped && look->stopped > 0;
    if (now_ms - t->minute.ms >= TN_TREND_MINUTE_MS) {
        end_minute(t, look);
        begin_minute(t, look, now_ms);
    }
}

double tn_trend_busy_percent(const struct tn_trend *trend, int64_t compaction_ns, int64_t now_ms)
{
    const struct tn_trend_begin *from = trend->known_before ? &trend->before : &trend->minute;
    if (!trend->begun || now_ms <= from->ms || compaction_ns <= from->compaction_ns) {
        return 0;
    }
    return (double)(compaction_ns - from->compaction_ns) * PERCENT / NS_PER_MS /
           (double)(now_ms - from->ms);
}
