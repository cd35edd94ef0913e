/* upload: what a script decides about uploads: now, later, or how.
 *
 *     if (tn_script_has(&script, TN_SCRIPT_UPLOAD)) {
 *         rc = tn_script_upload(&script, &state, &plan, err);
 *     }
 *
 *     return "wait"                        until something happens: a commit, the link, a timer
 *     return "now"                         all that is pending
 *     return { wait = 600 }                asked again after so many seconds at the latest
 *     return { through = 7,                snapshots up to this one
 *              rate = "64K/s",             no faster
 *              bytes = 5000000,            no more of them now, or
 *              requests = 200,             of requests: it ends in front of the next file
 *              tables = { "plant.alarms" } }   these first, in this order; the others behind them
 *
 * An answer counts when all of it is right: members (a wrong name is an error with the nearest),
 * types, numbers within their limits, a snapshot that is pending, tables that are there. It says
 * when and how fast, never which files: a reader of the lake sees whole snapshots only.
 *
 * Failures are as those of the other handlers (script.h); what is to be done then is the caller's:
 * to wait.
 */
#pragma once

#include "script/script.h"

enum {
    TN_UPLOAD_TABLES_MAX = 64,
    TN_UPLOAD_WAIT_S_MAX = 31 * 24 * 3600, /* a budget of a month is full */
    TN_UPLOAD_RATE_MIN = 64,               /* bytes a second: less is a slip of the unit */
};
#define TN_UPLOAD_RATE_MAX (INT64_C(1) << 40)

struct tn_upload_spent {
    int64_t bytes;
    int64_t requests;
};

/* What a script sees; the names are the same. Texts may be NULL, they are nil then. */
struct tn_upload_state {
    struct {
        int64_t count; /* snapshots */
        int64_t bytes;
        int64_t rows;
        int64_t oldest; /* id, here and below; nil when nothing is pending (0) */
        int64_t newest;
        int64_t age_s; /* of the oldest */
    } pending;
    struct {
        int64_t bytes; /* that would be free if nothing were pending */
    } pinned;
    struct {
        int64_t free;
        int64_t reserve;
    } disk;
    struct {
        const char *name;
        bool up;
        bool metered;
        int64_t rtt_ms; /* 0: not known */
    } link;
    struct {
        struct tn_upload_spent hour; /* that runs */
        struct tn_upload_spent day;
        struct tn_upload_spent month;
    } spent;
    int64_t now_ms;   /* since 1970, UTC */
    int64_t local_ms; /* the same moment's local wall clock, as if UTC: tarn.date(state.local_ms) */
    const char *clock; /* "synced", "unset" or "stepped" */
    const char *last;  /* "done", or what went wrong at the last try; nil before the first */
    const char *const *tables; /* with something pending */
    uint32_t table_count;
};

struct tn_upload_plan {
    bool wait;        /* nothing is sent now */
    uint32_t wait_s;  /* ask again after so long at the latest; 0: when something happens */
    int64_t through;  /* the newest snapshot to be sent */
    int64_t rate;     /* bytes a second; 0: no limit */
    int64_t bytes;    /* at most, but for the file that passes it; 0: no limit */
    int64_t requests; /* likewise */
    uint32_t table_count;
    uint32_t tables[TN_UPLOAD_TABLES_MAX]; /* of the state's, these first */
};

/* The script has an `upload`. */
TN_MUST_USE tn_rc tn_script_upload(struct tn_script *script, const struct tn_upload_state *state,
                                   struct tn_upload_plan *plan, struct tn_err *err);
