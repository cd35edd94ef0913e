/* lakes: the daemon's uploads: what is committed of a table travels to each of its lakes.
 *
 *     commit -> due -> its turn -> task on the lane UPLOAD -> the lake has it
 *                ^                         |
 *                '----- a longer pause ----+-- failed
 *                                          '-- diverged: stopped, until a new start
 *
 * A mirror is a table at a lake. One is sent at a time, the one that waits longest first: straight-
 * line code (upload/delta.h) in memory of its own, on a thread of its own, so that rows and commits
 * never wait for a link. It never gives up. What a cut leaves the next try goes on with.
 *
 * A lake is a consumer of its tables, under the name that `tarn sync` gives its place, from the
 * daemon's start: no expiry passes what it has not got. When that fills the disk, its `on_full`
 * says who gives way: sources stop, as below any reserve, or the lake does (lakes_way.c): the
 * consumer moves to the newest snapshot, the others expire as the table's options say, and the lake
 * goes on behind a gap.
 *
 * A table that many gateways share (upload/share.h) is no mirror, but stands among them: what is
 * new goes to the lake's table, in the way in which it was adopted. It never gives way, since
 * nobody else has its rows. What it committed last may be written over by somebody who honours no
 * condition, so it is looked at again some minutes later; what was is sent again, and said. While
 * commits are paused there it comes again later: others have the lane.
 *
 * When and how much is sent a script may say (lakes_policy.c): a lake's `policy`, or for its table
 * alone a table's own script with an `upload`. It is asked when something was committed or an
 * upload has ended, when the link or the disk changes, and when it wants to be; what it says holds
 * until then. A script that fails has its lake wait.
 *
 * What was sent in an hour, a day and a month is kept in `.tarn/lakes/<name>`, as of the last
 * minute. The loop's thread only.
 */
#pragma once

#include <stdatomic.h>

#include "app/jobs.h"
#include "app/link.h"
#include "app/spent.h"
#include "io/clock_watch.h"
#include "script/upload.h"
#include "upload/delta.h"
#include "upload/share_sync.h"

enum {
    TN_LAKES_PATIENCE_MS = 60 * 1000,          /* with a store that is the only lake */
    TN_LAKES_PATIENCE_SHORT_MS = 10 * 1000,    /* with one that others wait for, */
    TN_LAKES_TRIES_SHORT = 8,                  /* and at a name that other gateways want, too */
    TN_LAKES_PAUSE_LOOK_MS = TN_PAUSE_BEAT_MS, /* until it is known whether one is held */
    TN_LAKES_LOOK_MS = TN_DIRECT_SETTLE_MS + 1000,
    TN_LAKES_REPLACED_MS = 60 * 60 * 1000, /* so long it is said that a commit was written over */
    TN_LAKES_CONSUMER_SIZE = 40,
    TN_LAKES_POLICY_SIZE = 128 * 1024, /* the state of a policy, at least */
    TN_LAKES_MEMORY_MIN = 384 * 1024,  /* measured: what a sync of a folder takes, and some */
};

struct tn_lakes_wish {
    const struct tn_config_lake *lake;
    const char *table;
    atomic_bool *stop;      /* from when it is true, calls of the target end soon, with CANCELED */
    struct tn_arena *arena; /* what is taken of it is the target's until `close` */
    uint32_t patience_ms;   /* with a store that doesn't answer */
    uint32_t rate;          /* bytes a second, to a store; 0: as fast as it goes */
    bool shared;            /* other gateways write the table there, too */
};

/* All of it until `close`. */
struct tn_lakes_place {
    struct tn_target *target;
    struct tn_io *scratch; /* of a shared table: a folder that is its own */
};

/* How a target is reached. `open`, `kind` and `close` come on the lane UPLOAD, for one target at a
 * time. */
struct tn_lakes_door {
    /* The consumer that stands for a lake; blocking I/O, before any upload. */
    tn_rc (*name)(void *user, const struct tn_config_lake *lake,
                  char consumer[TN_LAKES_CONSUMER_SIZE], struct tn_err *err);
    tn_rc (*open)(void *user, const struct tn_lakes_wish *wish, struct tn_lakes_place *place,
                  struct tn_err *err);
    /* Lets time pass on the lane, or less when the wish's `stop` says so. */
    void (*wait)(void *user, uint32_t ms);
    /* Of what went wrong last; `target` NULL: `open` did. A word, as "permission", or NULL. */
    const char *(*kind)(void *user, const struct tn_target *target);
    void (*close)(void *user, struct tn_target *target);
    /* It is here, whatever becomes of the link. */
    bool (*near)(void *user, const struct tn_config_lake *lake);
    /* Blocking, on the lane SHORT. */
    void (*link)(void *user, const struct tn_text_list_item *metered, struct tn_link *link);
    void *user;
};

struct tn_lakes_spec {
    const struct tn_config *config;
    struct tn_env *env;
    struct tn_keeper *keepers; /* open, until the lakes are closed */
    uint32_t keeper_count;
    const struct tn_intake *intake; /* whose reserve is gone by */
    struct tn_jobs *jobs;           /* for what expires once a lake gave way */
    struct tn_log *log;
    struct tn_arena *arena;
    struct tn_worker *worker; /* the lane's */
    struct tn_lakes_door door;
    void *policies; /* memory of the states of policies, which share it */
    size_t policies_size;
};

struct tn_lakes_policy {
    struct tn_vm vm;
    struct tn_script script;
};

struct tn_tell_place; /* tell.h */

struct tn_lakes_lake {
    const struct tn_config_lake *config;
    char consumer[TN_LAKES_CONSUMER_SIZE];
    struct tn_target_counts counts; /* since the start */
    uint64_t uploads;
    uint64_t failures;
    struct tn_spent spent;
    int64_t saved_ms;
    bool near;          /* whatever becomes of the link */
    bool store;         /* s3://... */
    bool relinked;      /* the link is another one than when it was asked last */
    uint32_t answer_ms; /* that a store took for an answer last; 0: not known */

    const struct tn_tell_place *tell;   /* who is told of what comes; NULL: nobody is */
    struct tn_lakes_policy *policy;     /* NULL: everything goes at once, or by `every` */
    bool asks;                          /* something happened that may change its answer */
    int64_t ask_ms;                     /* it is asked then at the latest */
    int64_t calm_ms;                    /* and not before */
    const struct tn_lakes_mirror *last; /* that was sent to; NULL: none yet */
};

/* What a policy said of a mirror. */
struct tn_lakes_plan {
    bool there; /* one decides, and was asked */
    bool own;   /* it is the table's own script's */
    bool waits;
    bool failed;
    int64_t through;
    uint32_t rate;
    uint32_t order; /* among those of its lake */
    uint64_t bytes;
    uint64_t requests;
};

/* What a mirror lacks, as the table's snapshots from `from` to `to` say. */
struct tn_lakes_tally {
    int64_t from;
    int64_t to; /* less than `from`: nothing is counted yet */
    uint64_t bytes;
    uint64_t rows;
    uint64_t pinned;   /* bytes of files that are held for it alone, and that others need no more */
    int64_t oldest_ms; /* when `from` was committed, by the wall clock; 0: not known */
};

struct tn_lakes_mirror {
    struct tn_lakes_lake *lake;
    const struct tn_keeper *keeper;
    const char *root;
    bool known;       /* an upload has ended well */
    bool stopped;     /* diverged */
    bool failed;      /* the last try, since the last hurry */
    int64_t have_id;  /* the newest that it has; before it is known by what the consumer says */
    int64_t seen_id;  /* the table's newest */
    int64_t begun_id; /* the same when the last upload began */

    /* Monotonic. Of the oldest commit that no upload was begun with; 0: there is none. */
    int64_t since_ms;
    int64_t after_ms; /* the same while one is under way */
    struct tn_lakes_tally tally;
    struct tn_lakes_plan plan;
    struct tn_err plan_text; /* of one that failed */

    /* of a shared table */
    bool shared;
    enum tn_share_way way;
    int64_t lake_id; /* the lake's snapshot that has `have_id`; 0: not known */
    int64_t look_ms; /* its last commit is looked at then; 0: that is known to stay */
    int64_t replaced_ms;
    uint64_t commits;
    uint64_t lost;               /* names that others got first */
    uint64_t replaced;           /* commits that somebody wrote over, sent again */
    struct tn_pause_watch pause; /* the lane's, while an upload is under way */

    /* of a mirror, when its tags were looked at last, since the start */
    uint32_t tags_left;
    uint32_t tags_denied;

    int64_t tried_ms; /* when its last upload ended; 0: none did */
    int64_t due_ms;   /* by `every` */
    int64_t retry_ms; /* after a failure */
    uint32_t tries;   /* that failed in a row */
    int64_t way_id;   /* while the disk is full: it gave way up to this one; 0: not yet */
    int64_t way_ms;   /* when it may do so again */
    tn_rc trouble;
    const char *kind; /* of it: "permission" */
    struct tn_err trouble_text;
    tn_rc said; /* of the trouble that was logged last */
    int64_t said_ms;
};

/* What is under way. */
struct tn_lakes_task {
    struct tn_task task; /* first */
    struct tn_lakes *lakes;
    struct tn_lakes_mirror *mirror; /* NULL: nothing is */
    struct tn_delta_result result;
    struct tn_share share;        /* as it was found */
    struct tn_direct_result part; /* of a shared table: its ids are those of `result`, too */
    struct tn_target_counts counts;
    const char *kind;
    bool shared;
    bool ran; /* it has a result */
    uint32_t patience_ms;
    uint32_t tries_max;
    struct tn_lakes_plan plan;
    struct tn_spent spent; /* to be saved */
    bool saves;
};

/* What was committed is counted, some snapshots at a time. */
struct tn_lakes_survey {
    struct tn_task task; /* first */
    struct tn_lakes *lakes;
    struct tn_lakes_mirror *mirror; /* NULL: nothing is under way */
    struct tn_lakes_tally tally;
    bool shared; /* the mirror's, when it began */
    int64_t to;
    int64_t retry_ms;
};

/* Over what the lakes are reached, for policies; looked at now and then. */
struct tn_lakes_link {
    struct tn_task task; /* first */
    struct tn_lakes *lakes;
    struct tn_link now;
    struct tn_link answer;
    bool known;
    bool under_way;
    int64_t next_ms;
};

/* A mirror that gives way on a full disk: its upload has ended, the consumer moves, what that lets
 * go expires. */
enum tn_lakes_way_state { TN_LAKES_WAY_STOPS, TN_LAKES_WAY_MOVES, TN_LAKES_WAY_EXPIRES };

struct tn_lakes_way {
    struct tn_task task; /* first */
    struct tn_lakes *lakes;
    struct tn_lakes_mirror *mirror; /* NULL: none does */
    enum tn_lakes_way_state state;
    int64_t latest;
    uint64_t job; /* the expiry's number */
};

struct tn_lakes {
    struct tn_lakes_spec spec;
    struct tn_lakes_lake *lakes;
    struct tn_lakes_mirror *mirrors; /* by lake, then in the order of its tables */
    uint32_t lake_count;
    uint32_t mirror_count;
    struct tn_lakes_task now;
    struct tn_lakes_way way;
    struct tn_lakes_survey survey;
    struct tn_lakes_link link;
    struct tn_clock_watch watch;
    atomic_bool stop; /* the upload under way is to end */
    bool stopping;
    bool low;     /* the disk was, when it was looked at */
    bool hurries; /* nothing waits for `every` any more */
};

/* Bytes of arena that open takes. */
size_t tn_lakes_memory(const struct tn_config *config);

/* Makes each lake a consumer of its tables: blocking I/O. Without lakes it does nothing, and so do
 * the others. A disk that can't write is said, and no error. */
TN_MUST_USE tn_rc tn_lakes_open(struct tn_lakes *lakes, const struct tn_lakes_spec *spec,
                                struct tn_err *err);
/* After the intake's turn. `*wait_ms` is lowered to when it wants the next one. */
void tn_lakes_turn(struct tn_lakes *lakes, uint32_t *wait_ms);

/* All that is pending is tried now, and counts as failed if that does. */
void tn_lakes_hurry(struct tn_lakes *lakes);
/* After hurry: each lake has the newest snapshot of its tables, or failed to get it, or its policy
 * says wait. */
bool tn_lakes_settled(const struct tn_lakes *lakes);
/* CONFLICT: what failed first. */
TN_MUST_USE tn_rc tn_lakes_check(const struct tn_lakes *lakes, struct tn_err *err);

/* Nothing is begun any more, and what is under way ends soon. */
void tn_lakes_stop(struct tn_lakes *lakes);
/* Nothing is under way. */
void tn_lakes_close(struct tn_lakes *lakes);

/* ---- for reports ---- */

/* Snapshots that a mirror has not got. */
int64_t tn_lakes_lag(const struct tn_lakes_mirror *mirror);
/* How long the oldest of them has been there. */
int64_t tn_lakes_age_ms(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror);
/* Why it is behind, or pins the disk, in plain words; NULL: nothing is wrong. The buffer is for it.
 */
const char *tn_lakes_trouble(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror,
                             char *text, size_t size);
/* Of what kind that is: one of tn_lakes_kind, or NULL. */
const char *tn_lakes_trouble_kind(const struct tn_lakes *lakes,
                                  const struct tn_lakes_mirror *mirror);
/* All kinds, from 0; NULL: there are no more. */
const char *tn_lakes_kind(uint32_t index);
const char *tn_lakes_state(const struct tn_lakes *lakes, const struct tn_lakes_mirror *mirror);
