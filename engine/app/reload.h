/* reload: a new configuration for a daemon that runs.
 *
 *     IDLE --asked--> CHECKS --another process says that it's good--> BEGINS
 *      ^                |                                               sources stopped, all
 *      '--- refused ----'                                               committed, closed; exec
 *
 * All memory is carved when the daemon starts, so a reload is another start in its place: the same
 * process, arguments, environment, and standard streams. What is wrong with a configuration must be
 * known before that, and reading it takes memory and time that the loop doesn't have: `tarn check`
 * does it as a process of its own, whose output is read between turns. A refusal changes nothing.
 *
 * Who asks while a check is under way is answered by the next one; so many become one, and what the
 * file says last counts.
 *
 * The file may be another one by the time of the next start, and bad: that start waits then, with
 * nothing open, until it is written again.
 *
 * What is lost: nothing that was acknowledged, since that is in the journal, also when a table
 * can't commit in time. But of a table that the new configuration has no more nobody would take
 * what the journal has: such a table has to commit first.
 *
 * Between two programs signals are held, not lost: see tn_reload_hold. The loop's thread only.
 */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "app/keeper.h"

enum tn_reload_state { TN_RELOAD_IDLE, TN_RELOAD_CHECKS, TN_RELOAD_BEGINS };

struct tn_reload_spec {
    const struct tn_config *config; /* of now */
    uint64_t memory;                /* of the command line; 0: it names none */
    struct tn_keeper *keepers;      /* the check says which of them stay */
    uint32_t keeper_count;
    struct tn_log *log;
};

/* Of the other process: lines. */
struct tn_reload_pipe {
    int fd; /* -1: it has ended */
    size_t size;
    char line[TN_ERR_TEXT_SIZE];
};

struct tn_reload {
    struct tn_reload_spec spec;
    enum tn_reload_state state;
    pid_t child;                  /* 0: none */
    struct tn_reload_pipe report; /* its standard output: lines of JSON */
    struct tn_reload_pipe words;  /* its standard error */
    int64_t deadline_ms;
    bool late;                      /* killed for it */
    uint64_t asked;                 /* requests */
    uint64_t checking;              /* so many of them are answered by the check under way, */
    uint64_t answered;              /* and by those before it */
    bool wanted;                    /* one of them is no look, */
    bool begins;                    /* nor one that the check under way answers */
    uint32_t more;                  /* tables that the check found, and nobody keeps */
    const char *refusal;            /* of now; or NULL */
    char trouble[TN_ERR_TEXT_SIZE]; /* why the last one was refused; "": it wasn't */
};

void tn_reload_init(struct tn_reload *reload, const struct tn_reload_spec *spec);

/* Returns the request's number: it is answered when `answered` has got there. */
uint64_t tn_reload_ask(struct tn_reload *reload);

/* The same of a check alone: nothing begins, however it ends. */
uint64_t tn_reload_look(struct tn_reload *reload);

/* Begins a check that somebody asked for, and looks after one that is under way. `refusal` is why
 * there can't be any now, or NULL. `*wait_ms` is lowered to when it wants the next turn; the end of
 * a process is a SIGCHLD. */
void tn_reload_turn(struct tn_reload *reload, const char *refusal, int64_t now_ms,
                    uint32_t *wait_ms);

/* A table that goes has something to commit. */
bool tn_reload_waits(const struct tn_reload *reload);

/* Ends what is under way. */
void tn_reload_close(struct tn_reload *reload);

/* SIGHUP, and with `all` what ends a daemon, too, wait from here on, also over an exec. */
void tn_reload_hold(bool all);
void tn_reload_let(void);

/* Whether this start is a reload's; before tn_reload_let. */
bool tn_reload_started(void);

/* Which file it is; all 0: none. Who asked before is answered by reading it now. */
struct stat tn_reload_stamp(const char *path);

/* Waits until the file is another one than it was, or somebody asks for a reload; false: it is to
 * end. */
bool tn_reload_await(const char *path, const struct stat *was);

/* Starts the program once again, with what it was started with. Returns only when that fails. */
void tn_reload_exec(struct tn_err *err);
