/* direct: a gateway commits to the table that it shares, by itself.
 *
 *     compare schemas -> pick -> data and changelog files
 *                          -> newest snapshot N -> manifests, delta list, base list = N's and its
 *                             delta -> barrier -> (trying) -> snapshot-N+1, which must not be there
 *                               ^                                  |
 *                               '--- wait --- somebody else's -----'-- ours -> (done) -> LATEST
 *
 * Manifests are never merged here. Others who commit do it by the same rule, so of two one loses
 * the name; it writes the base list again and waits 0 .. 2^k x 50 ms, by chance. Beyond some
 * thousand manifests it stops, until somebody merges them: a reader opens each.
 *
 * Each row gets there once. What is tried is written down before (share.h), and an attempt of which
 * nobody knows is looked for before it is made again: by its manifests in the newest snapshot, and
 * where these were merged by a file of it. One that is live, or that some snapshot since gave or
 * took, came there; one that lies there and is in none of them did not.
 *
 * Official Paimon asks for a name and then copies over it: beside it an acknowledged snapshot may
 * be replaced. So the last commit counts as safe only once another has been built on it; until then
 * what it brought stays here, and when it is found to be lost it is sent again.
 *
 * A name may be free since what had it expired. So a commit that took long, as over a slow link,
 * lists whether it is the newest; if not it counts as one of which nobody knows.
 *
 * Needs PUT and GET (HEAD); LIST where the hint LATEST is missing or wrong, or nothing is there. A
 * commit costs its files and ten requests, two more where it has a changelog; with nothing to do it
 * costs none.
 */
#pragma once

#include "file/worker.h"
#include "upload/gather_pause.h"
#include "upload/share_pick.h"
#include "upload/target.h"

enum {
    TN_DIRECT_MANIFESTS_MAX = 2000,
    TN_DIRECT_WAIT_MS = 50,   /* the first is up to twice as long */
    TN_DIRECT_LOOK_MS = 1000, /* at a pause, from one look to the next */
    TN_DIRECT_DOUBLINGS = 8,  /* ... and the longest 2^8 times */
    TN_DIRECT_TRIES_MAX = 64,
    TN_DIRECT_SETTLE_MS = 10 * 60 * 1000, /* a writer's pause between looking and copying */
};

struct tn_direct_spec {
    const char *table;        /* "db.t" */
    struct tn_target *target; /* the lake that it is shared with; NULL: for a dry run */
    struct tn_io *scratch;    /* a folder that is this one's alone (lake_io.h) */
    /* Lets so much time pass, or less when the target is to stop. */
    void (*wait)(void *user, uint32_t ms);
    void *user;
    /* What was seen of a pause, from one sync to the next: then a sync that meets one ends at once,
     * and whether somebody holds it the next ones see. NULL: a sync lets time pass until it knows.
     */
    struct tn_pause_watch *watch;
    const char *place; /* by what name the store is known: each is probed once; NULL: as "" */
    struct tn_share_bounds bounds; /* files that are whole are committed in any case */
    uint32_t tries_max;            /* at one commit; 0: TN_DIRECT_TRIES_MAX */
    bool dry_run;                  /* nothing is written, and nobody is asked */
};

struct tn_direct_result {
    int64_t first_id;  /* of the local snapshots that were sent; 0: none */
    int64_t last_id;   /* up to it all is in the lake */
    int64_t lake_id;   /* its snapshot that has them; 0: not known */
    uint64_t files;    /* sent, or to be sent: data and changelog */
    uint64_t bytes;    /* of them */
    uint32_t commits;  /* made, or to be made */
    uint32_t lost;     /* names that somebody else got first */
    uint32_t replaced; /* commits that somebody wrote over, sent again */
    uint64_t requests; /* of a dry run: what it would take if nobody is in the way */
    bool limited;      /* the bounds ended it */
    bool open; /* the last commit may yet be replaced: who comes in TN_DIRECT_SETTLE_MS sees it */
    enum tn_share_why why; /* of an error */
};

/* Bytes of the worker's arena that a sync takes at the least. */
size_t tn_direct_memory(void);

/* The worker's io is the table's, and its codec compresses blocks of TN_MANIFEST_BLOCK_SIZE. AGAIN:
 * all are asked to wait, or there is too little memory; INVALID: the schemas differ;
 * CONFLICT: the lake or the table went back; IO: too many manifests, or others were always faster;
 * CORRUPT: a snapshot is gone that was not sent, or nobody can tell whether an attempt came there.
 * After an error `result` says what was sent. */
TN_MUST_USE tn_rc tn_direct_sync(const struct tn_direct_spec *spec, struct tn_worker *worker,
                                 struct tn_direct_result *result, struct tn_err *err);
