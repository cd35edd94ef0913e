/* shadow: for a while, what comes to the daemon goes through the scripts that it runs and through
 * those that lie on the disk by now; nothing changes, and what would is told.
 *
 *     daemon -- texts it runs (scripts.h) --> old script --> trial --.
 *            -- messages (tee.h) ----------->                        |-- per record: the same?
 *     disk   -- the files -----------------> new script --> trial --'   per key: which row, now?
 *
 * It is a process with memory of its own; the daemon is asked at the beginning and at the end, and
 * only sends. What is there of a key is read from the newest snapshot at the beginning, and goes on
 * from there by what comes, once with the old script and once with the new one (trial.h): rows that
 * the daemon had, and had not committed then, are missing in both.
 */
#pragma once

#include <stdio.h>

#include "app/reader.h"
#include "app/scripts.h"
#include "app/trial.h"

enum { TN_SHADOW_WHYS = 8 };

/* A reason for dead letters, and how many. */
struct tn_shadow_why {
    uint64_t count;
    char text[TN_ERR_TEXT_SIZE];
};

enum { TN_SHADOW_OLD, TN_SHADOW_NEW, TN_SHADOW_SIDES };

struct tn_shadow_side {
    struct tn_vm vm;
    struct tn_script script;
    struct tn_trial trial;
    struct tn_shadow_why whys[TN_SHADOW_WHYS]; /* the first that there were */
    uint64_t other_whys;
    bool parked; /* it failed so often that the table would be closed */
};

/* A table whose script is another one now. */
struct tn_shadow_table {
    const struct tn_scripts_table *of;
    struct tn_reader reader;
    struct tn_scan_spec scan;
    struct tn_row_layout layout;
    struct tn_columns late_by;
    struct tn_clock_watch watch;
    struct tn_io_posix files; /* the script's folder */
    struct tn_shadow_side sides[TN_SHADOW_SIDES];
    uint64_t differ; /* records of which something else came */
    uint64_t missed; /* messages after the trouble */
    tn_rc trouble;   /* no more of it goes through */
    struct tn_err trouble_text;
    struct tn_shadow *shadow;
    struct tn_shadow_table *next;
};

struct tn_shadow {
    struct tn_app *app;
    struct tn_scripts scripts;
    struct tn_shadow_table *tables;
    struct tn_arena arena;
    unsigned char *window; /* of look-ups */
    size_t window_size;
    unsigned char *packet;
    int lock;
    int listener; /* -1: none; and so */
    int fd;
    int64_t begun_ms;
    int64_t ended_ms;
    bool stopped; /* by a signal */
    bool cut;     /* the daemon hung up */
    uint64_t left_out;
    uint64_t left_out_rows;
};

/* Asks the daemon, and loads what is to be compared. INVALID: a new script can't be loaded, or a
 * table is another one than the daemon has; EXISTS: another shadow is there; ABSENT: no daemon. */
TN_MUST_USE tn_rc tn_shadow_open(struct tn_shadow *shadow, struct tn_app *app, struct tn_err *err);
void tn_shadow_close(struct tn_shadow *shadow);

/* So long, or until a signal comes or the daemon ends. */
TN_MUST_USE tn_rc tn_shadow_run(struct tn_shadow *shadow, int64_t ms, struct tn_err *err);

/* The row that a key has now with one of the scripts; none: `row` has no data. It lives until the
 * next call. `key` is any row of it. */
TN_MUST_USE tn_rc tn_shadow_now(struct tn_shadow_table *table, int side, struct tn_row key,
                                struct tn_row *row, struct tn_err *err);

/* What there is to say, with so many keys of each table whose rows would be others. */
TN_MUST_USE tn_rc tn_shadow_report(struct tn_shadow *shadow, uint32_t examples, FILE *to,
                                   struct tn_err *err);

/* Why the new ones had better not be activated, or NULL. */
const char *tn_shadow_objection(const struct tn_shadow *shadow);

/* The files are still those that ran. INVALID: which one is not. */
TN_MUST_USE tn_rc tn_shadow_check_files(struct tn_shadow *shadow, struct tn_err *err);
