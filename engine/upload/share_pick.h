/* share_pick: what of a shared table's history travels next: the files that some APPEND snapshots
 * added, as they were, in their order. What its own compaction made stays at home.
 *
 *     snapshots  1 APPEND  2 COMPACT  3 APPEND  4 APPEND  5 COMPACT
 *                '---------- a pick ----------'  (the limit is reached)
 *
 * A pick is some snapshots behind what is done, by their ids alone: its entries are read from the
 * table's manifests as often as they are wanted.
 */
#pragma once

#include "commit/live.h"
#include "upload/share_schema.h"

/* Beyond one snapshot no more than these; 0: no limit. */
struct tn_share_limits {
    uint32_t files;
    uint64_t bytes;
    int64_t through; /* none beyond it */
};

/* How far a sync goes; 0: as far as there is something. */
struct tn_share_bounds {
    int64_t through;       /* the newest local snapshot that is sent */
    uint64_t bytes_max;    /* once so many bytes of files were sent, */
    uint64_t requests_max; /* or so many requests made, no file is begun any more but a first one */
};

/* What a sync has sent. */
struct tn_share_tally {
    struct tn_share_bounds bounds;
    uint64_t files;
    uint64_t bytes;
    bool spent; /* a bound ended it */
};

struct tn_share_pick {
    const char *root;
    struct tn_worker *worker; /* of the table */
    int64_t first;            /* snapshots first .. last; last < first: there is nothing new */
    int64_t last;
    int64_t schema_id;    /* of the last APPEND that has files */
    int64_t data_count;   /* files, */
    int64_t data_rows;    /* rows of them, */
    int64_t change_count; /* and of its changelog */
    int64_t change_rows;
    uint64_t bytes; /* of all files */
    struct tn_json_i64 watermark;
    bool ask; /* false at first: of its files none is there, as far as anybody knows */
};

/* What comes behind snapshot `done`, at most up to `last` (0: the newest). Costs the delta and
 * changelog lists of these snapshots and their manifests. CORRUPT: a snapshot is gone that was not
 * sent; UNSUPPORTED: one that can't be sent as files that are added: the text says which. */
TN_MUST_USE tn_rc tn_share_pick(const char *root, int64_t done, int64_t last,
                                const struct tn_share_limits *limits, struct tn_worker *worker,
                                struct tn_share_pick *pick, struct tn_err *err);

static inline bool tn_share_pick_empty(const struct tn_share_pick *pick)
{
    return pick->data_count + pick->change_count == 0;
}

/* ADD entries, in order; of the data files, or of the changelog's. The entry lives until the call
 * returns. */
TN_MUST_USE tn_rc tn_share_each_data(const struct tn_share_pick *pick, tn_live_fn *each, void *user,
                                     struct tn_err *err);
TN_MUST_USE tn_rc tn_share_each_change(const struct tn_share_pick *pick, tn_live_fn *each,
                                       void *user, struct tn_err *err);

/* INVALID: a file's folder has a longer path. Before anything is sent. */
TN_MUST_USE tn_rc tn_share_check_folders(const struct tn_share_pick *pick, size_t folder_max,
                                         struct tn_err *err);

/* Hands all files to the target, which may only begin it: whole and durable after its `settle`.
 * With pick->ask each is asked for first. Errors as of the target; CANCELED with tally->spent: not
 * all were, and the next sync may go on with `ask`. */
TN_MUST_USE tn_rc tn_share_send(const struct tn_share_pick *pick, struct tn_target *target,
                                struct tn_share_tally *tally, struct tn_err *err);
/* Nothing is to be begun any more. */
bool tn_share_is_spent(const struct tn_share_tally *tally, const struct tn_target *target);

/* The path of an entry's file; it and what it takes is in the worker's arena. */
TN_MUST_USE tn_rc tn_share_path(const struct tn_share_pick *pick, const struct tn_entry *entry,
                                const char **path, struct tn_err *err);
