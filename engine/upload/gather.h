/* gather: what gateways have put into the inbox of a lake's table becomes snapshots of that table.
 *
 *     pause? -> newest S -> inbox -> look at each -> marks -> APPEND on S -> entries go
 *                              |                       |          |
 *                              refused: put aside      another gather was there: from the start
 *
 * One round makes one snapshot of all that waits, as far as memory goes. Each entry becomes part of
 * the table once, whatever is cut: which ones are, gather_marks.h remembers. A snapshot that
 * another gather made above S ends a round, since it may hold the same entries; those of others
 * don't.
 *
 * Official Paimon copies over a name that is taken: beside it, outside of a pause, a snapshot that
 * was made may be another's afterwards, and its entries are gone. So the last one is looked at
 * until somebody has gone on with it, and a loss is said.
 *
 * What is wrong with an entry is said and the entry put aside: the others go on. Merging of
 * manifests is the commit's; compaction and expiry are the caller's.
 */
#pragma once

#include "file/worker.h"
#include "upload/committable.h"
#include "upload/gather_marks.h"
#include "upload/gather_pause.h"

enum { TN_GATHER_USER_SIZE = 64, TN_GATHER_FILES_MAX = 2048 /* of one snapshot */ };

#define TN_GATHER_USER "tarn-gather-"

struct tn_gather_spec {
    struct tn_committable_table table; /* may be newer in each round */
    struct tn_worker *worker;          /* its io is the lake's, its clock that of this machine */
    struct tn_arena *arena;            /* 1 MiB serves some hundred entries a round */
    void (*refused)(void *user, const struct tn_inbox_item *item, const char *reason);
    void *user;
};

struct tn_gather {
    struct tn_gather_spec spec;
    char user[TN_GATHER_USER_SIZE]; /* commits as */
    int64_t rounds;
    int64_t made;       /* its newest snapshot, on which nobody was seen to go on; 0: none */
    int64_t made_round; /* in which */
    char turn[TN_INBOX_GATEWAY_SIZE]; /* the gateway behind which a round begins; "": the first */
    struct tn_gather_marks marks;
    struct tn_pause_watch pause_watch;
    struct tn_meta_plan plan;
};

struct tn_gather_result {
    int64_t snapshot_id; /* made; 0: none */
    uint32_t entries;    /* in it, */
    uint32_t files;      /* data and changelog, */
    int64_t rows;
    uint32_t known; /* entries that were in the table before */
    uint32_t refused;
    int64_t written_over; /* a snapshot that this gather had made, and somebody replaced; 0: none */
    bool more;            /* there are entries that did not fit */
    bool old_schema;      /* nothing was done: somebody made a newer one than the spec's */
    struct tn_pause pause; /* that was read, */
    bool paused;           /* and holds: nothing was committed */
    bool pause_alive;      /* somebody was seen to hold it; else it may have been left behind */
    bool pause_over;       /* it was left behind, and is none any more: tn_pause_forget */
};

/* Reads nothing yet. What it takes of the arena is its own as long as it is used. AGAIN. */
TN_MUST_USE tn_rc tn_gather_open(struct tn_gather *gather, const struct tn_gather_spec *spec,
                                 struct tn_err *err);

/* One round; `result` is set on every outcome. `newest_schema`: the spec's schema was read just
 * now; without it a later one that is named is `old_schema`, with it that is a reason to refuse.
 * CONFLICT: another gather was faster, the next round looks again. IO, FULL: likewise. CORRUPT:
 * what was gathered can't be read, or the table. Costs, with nothing to do: 2 reads, 2 looks and a
 * list; entries cost a read (large ones more), a look a file and a removal each, many of which are
 * asked for at once (io/many.h). */
TN_MUST_USE tn_rc tn_gather_round(struct tn_gather *gather, bool newest_schema,
                                  struct tn_gather_result *result, struct tn_err *err);
