/* daemon: what `tarn run` is: one loop around sources, intake and tables.
 *
 *     boot -> tables -> journal -> what it has, into the tables -> sources -> loop
 *                                                                     | SIGTERM, SIGINT, --once
 *     exit <- close <- all committed <- sources stopped <-------------'
 *              '-> exec, on SIGHUP (reload.h)
 *
 * What is committed travels to lakes (lakes.h) beside all that; the end doesn't wait for it, but
 * for
 * --once.
 *
 * The loop sleeps in the network's door, which a worker that has finished, the thread that reads
 * standard input, and a signal wake; it measures how long it is away from it. All memory is taken
 * before the sources are opened. Signals are process-wide, and so is who they go to: one daemon
 * runs at a time.
 */
#pragma once

#include "app/control.h"
#include "app/intake.h"
#include "app/jobs.h"
#include "app/lakes_boot.h"
#include "app/notify.h"
#include "app/pages.h"
#include "app/reload.h"
#include "app/sizes.h"
#include "app/sources.h"
#include "app/tell.h"

enum { TN_DAEMON_LOG_SIZE = 16 * 1024 };

struct tn_daemon_spec {
    struct tn_app *app;
    const struct tn_config *config;
    bool once; /* ends when its sources have */
    bool anew; /* see tn_keeper_spec */
    bool drop; /* see tn_intake_spec */
    bool log_json;
    uint64_t memory; /* that the command line says; 0: none */
};

struct tn_daemon {
    struct tn_daemon_spec spec;
    struct tn_log log;
    unsigned char log_text[6 * TN_LOG_LINE_SIZE + 2]; /* of a line, as JSON */
    struct tn_net *net;
    struct tn_exec *exec;
    _Alignas(max_align_t) unsigned char threads[TN_EXEC_THREADS_SIZE];
    struct tn_table_share *shares;
    struct tn_keeper *keepers;
    struct tn_scripted *scripted; /* room for the next one */
    uint32_t keeper_count;        /* open */
    struct tn_intake intake;
    struct tn_jobs jobs;
    struct tn_lakes_boot uploads;
    struct tn_lakes lakes;
    struct tn_tell tell;
    struct tn_pages pages;
    struct tn_control control;
    struct tn_sources sources;
    struct tn_sizes sizes;
    struct tn_pulse pulse;
    struct tn_notify notify;
    struct tn_reload reload;
    struct tn_wear wear;
    bool wears; /* there is a budget */
    bool overdrawn;
    int64_t overdrawn_said_ms;
    bool signals; /* are ours */
    bool again;   /* after close comes tn_reload_exec */
};

/* Everything but the sources. Also after a failure `close` comes. */
TN_MUST_USE tn_rc tn_daemon_open(struct tn_daemon *daemon, const struct tn_daemon_spec *spec,
                                 struct tn_err *err);
/* Until a signal, an error that only a new start mends, or with `once` the end of the input. */
TN_MUST_USE tn_rc tn_daemon_run(struct tn_daemon *daemon, struct tn_err *err);
void tn_daemon_close(struct tn_daemon *daemon);
