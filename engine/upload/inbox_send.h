/* inbox_send: a gateway's commit to a table that it shares, where a gather commits for all.
 *
 *     compare schemas -> pick -> (trying) -> data and changelog files -> barrier
 *                          ^                                                |
 *                          '------ (done) <------ committable, if absent <--'
 *
 * An entry's id is the last of the local snapshots that are in it, so it is the same however often
 * it is tried: who doesn't know whether it is there puts it again, and the gather knows it also
 * when it was taken meanwhile (gather_marks.h). What was handed in is the lake's: the table here
 * may let go of it.
 *
 * Needs PUT and GET (HEAD). A commit costs its files and two requests; with nothing to do it costs
 * none.
 */
#pragma once

#include "file/worker.h"
#include "upload/share_pick.h"
#include "upload/target.h"

struct tn_inbox_send_spec {
    const char *table;             /* "db.t" */
    struct tn_target *target;      /* the lake that it is shared with; NULL: for a dry run */
    bool dry_run;                  /* nothing is written, and nobody is asked */
    struct tn_share_bounds bounds; /* files that are whole are handed in in any case */
};

struct tn_inbox_sent {
    int64_t first_id;      /* of the local snapshots that were handed in; 0: none */
    int64_t last_id;       /* up to it all was */
    uint64_t files;        /* data and changelog, */
    uint64_t bytes;        /* of them */
    uint32_t entries;      /* put, or to be put */
    uint64_t requests;     /* of a dry run: what it would take */
    bool limited;          /* the bounds ended it */
    enum tn_share_why why; /* of an error */
};

/* Bytes of the worker's arena that it takes at the least. */
size_t tn_inbox_send_memory(void);

/* The worker's io is the table's. AGAIN: there is too little memory; INVALID: the schemas differ,
 * one snapshot has more files than an entry takes, or a folder's path is too long for a gather;
 * CONFLICT: there is another history of this gateway; CORRUPT: a snapshot is gone that was not
 * sent. After an error `result` says what was handed in. */
TN_MUST_USE tn_rc tn_inbox_send(const struct tn_inbox_send_spec *spec, struct tn_worker *worker,
                                struct tn_inbox_sent *result, struct tn_err *err);
