/* gather: what gateways have put into the inbox of a lake's table becomes snapshots of that table.
 *
 *     pause? -> newest S -> inbox -> look at each -> marks -> APPEND on S -> entries are held
 *                              |                       |          |
 *                              refused: put aside      another gather was there: from the start
 *
 * One round makes one snapshot of all that waits, as far as memory goes. Each entry becomes part of
 * the table once, whatever is cut: which ones are, gather_marks.h remembers. A snapshot that
 * another gather made above S ends a round, since it may hold the same entries; those of others
 * don't.
 *
 * Official Paimon copies over a name that is taken: beside it, outside of a pause, a snapshot that
 * was made may be another's afterwards. So entries stay in the inbox until theirs is sure to stay:
 *
 *     held -- made of it is another one, as the next round's, and it is still the same --> gone
 *       |  -- the newest, and the same for `sure_ms` ------------------------------------> gone
 *       '---- another one has its name: looked for, like what a gather left that ended in the
 *             middle; what isn't in the table is gathered again, above what the writer brought
 *
 * That is for one gather at a time (gather_lease.h): of two at once one may commit above a copy
 * what the other has healed.
 *
 * What is held is remembered in memory only: who comes next finds it in the inbox and the table.
 * The last snapshot is looked at until somebody has gone on with it: what is lost so late is said.
 *
 * What is wrong with an entry is said and the entry put aside: the others go on. Merging of
 * manifests is the commit's; compaction and expiry are the caller's.
 */
#pragma once

#include "file/worker.h"
#include "upload/committable.h"
#include "upload/gather_marks.h"
#include "upload/gather_pause.h"

enum {
    TN_GATHER_USER_SIZE = 64,
    TN_GATHER_FILES_MAX = 2048, /* of one snapshot */
    TN_GATHER_HELD_MAX = 2 * TN_INBOX_ITEMS_MAX,
    /* Longer than a writer is between its look at a name and its copy there: two requests, one
     * behind the other. A guess; later ones are said. */
    TN_GATHER_SURE_MS = 10 * 1000,
};

#define TN_GATHER_USER "tarn-gather-"

struct tn_gather_spec {
    struct tn_committable_table table; /* may be newer in each round */
    struct tn_worker *worker;          /* its io is the lake's, its clock that of this machine */
    struct tn_arena *arena;            /* 1 MiB serves some hundred entries a round */
    int64_t sure_ms; /* TN_GATHER_SURE_MS; 0 where no official writer ever works beside */
    void (*refused)(void *user, const struct tn_inbox_item *item, const char *reason);
    void *user;
};

/* An entry that is in a snapshot, and still in the inbox. */
struct tn_gather_held {
    struct tn_inbox_item item;
    struct tn_hash_128 hash; /* of its bytes */
    bool found;              /* in the round that is under way */
    bool sure;               /* that the table keeps it */
    bool goes;
};

/* The snapshot in which entries were seen last, on which nobody was seen to go on. */
struct tn_gather_hold {
    int64_t id;               /* 0: none */
    struct tn_hash_128 trace; /* who made it, and which of theirs it is */
    bool ours;
    int64_t since_ns; /* monotonic: when it was first seen */
    struct tn_gather_held *entries;
    uint32_t count;
};

struct tn_gather {
    struct tn_gather_spec spec;
    char user[TN_GATHER_USER_SIZE]; /* commits as */
    int64_t rounds;
    struct tn_gather_hold hold;
    int64_t lost;    /* a snapshot of ours that another one replaced; 0: none, or it was said */
    bool lost_waits; /* its entries are still in the inbox */
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
    uint32_t gone;  /* entries that left the inbox, since the table keeps them for sure, */
    uint32_t held;  /* and that are there still, though the table has them */
    uint32_t refused;
    int64_t written_over; /* a snapshot that this gather had made, and somebody replaced; 0: none */
    bool heals;           /* what it had is gathered again; else it may be lost */
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
 * list; a commit costs a read more; entries cost a read (large ones more), a look a file and a
 * removal each, many of which are asked for at once (io/many.h). */
TN_MUST_USE tn_rc tn_gather_round(struct tn_gather *gather, bool newest_schema,
                                  struct tn_gather_result *result, struct tn_err *err);

/* Looks at what is held, as a round begins, and commits nothing. `settled`: where what was begun
 * is, is known, and the marks rest on no snapshot but the newest, so that all others may expire;
 * else those tell. CONFLICT: another gather writes marks. Costs 1 read and a look, or 2, and
 * perhaps marks. */
TN_MUST_USE tn_rc tn_gather_look_again(struct tn_gather *gather, bool *settled, struct tn_err *err);
