/* direct, from inside: one sync.
 *
 * direct.c        the order of it all
 * direct_base.c   the newest snapshot of the lake, and what it is made of
 * direct_find.c   whether an attempt came there
 * direct_try.c    manifests, lists, the snapshot, its name
 */
#pragma once

#include "commit/attempt.h"
#include "commit/snapshot.h"
#include "file/schemas.h"
#include "schema/options.h"
#include "upload/direct.h"
#include "upload/lake_io.h"
#include "upload/share_pick.h"

enum { TN_DIRECT_USER_SIZE = TN_UUID_SIZE + 8 };

struct tn_direct {
    const struct tn_direct_spec *spec;
    struct tn_direct_result *result;
    struct tn_worker *worker; /* of the table */
    struct tn_worker there;   /* of the lake, by `lake` */
    struct tn_lake_io lake;
    struct tn_target *target;
    struct tn_share_place place;
    const char *root;
    char user[TN_DIRECT_USER_SIZE]; /* of our commits */
    struct tn_sent sent;
    struct tn_share_tally tally;
    struct tn_schemas schemas;
    const struct tn_schema *schema; /* the newest */
    struct tn_options options;
    int64_t looked_ms; /* monotonic, for a pause; 0: not yet */

    /* the newest snapshot of the lake, in the worker's arena */
    int64_t newest; /* known to be there; 0: there was none; -1: nothing is known */
    struct tn_snapshot base;
    bool has_base;
    int64_t own_id; /* above what was known: what is tried, whoever brought it there; 0: not seen */
};

static inline tn_rc tn_direct_no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "no room for a path");
}

/* Into the worker's arena. ABSENT. */
TN_MUST_USE tn_rc tn_direct_read(struct tn_direct *d, int64_t id, struct tn_snapshot *snapshot,
                                 struct tn_err *err);
/* Sets d->base. From one that is known to be there it walks up, and sees whose those are. CONFLICT:
 * the lake went back. */
TN_MUST_USE tn_rc tn_direct_read_base(struct tn_direct *d, struct tn_err *err);
/* By a list; 0: there is none. */
TN_MUST_USE tn_rc tn_direct_list_newest(struct tn_direct *d, int64_t *id, struct tn_err *err);
/* Counts its manifests, and looks for those of our last commit. IO: too many. */
TN_MUST_USE tn_rc tn_direct_look_at_base(struct tn_direct *d, bool *has_ours, struct tn_err *err);

bool tn_direct_is_ours(const struct tn_direct *d, const struct tn_snapshot *snapshot,
                       int64_t identifier);

enum tn_direct_found {
    TN_DIRECT_THERE,
    TN_DIRECT_NOT_THERE,
};
/* Whether the snapshots first .. last came there as one commit, behind the lake's snapshot `base`.
 * d->base is set. CORRUPT: nobody can tell. */
TN_MUST_USE tn_rc tn_direct_find(struct tn_direct *d, int64_t first, int64_t last, int64_t base,
                                 enum tn_direct_found *found, struct tn_err *err);

/* What was found there stays: before any of it is written down as done or safe. */
TN_MUST_USE tn_rc tn_direct_make_sure(struct tn_direct *d, struct tn_err *err);

/* Makes the pick a commit: its files are there. d->base is set. OK also when `replaced`: our last
 * commit isn't there any more, and is to be sent first. */
TN_MUST_USE tn_rc tn_direct_commit(struct tn_direct *d, const struct tn_share_pick *pick,
                                   bool *replaced, struct tn_err *err);
/* The commit before, which is in what the newest snapshot goes on with, or was replaced. d->base is
 * set; what is safe, or tried, is none. */
TN_MUST_USE tn_rc tn_direct_check_last(struct tn_direct *d, bool *replaced, struct tn_err *err);

/* Before anything goes, and before a snapshot does: AGAIN, when all are asked to wait. */
TN_MUST_USE tn_rc tn_direct_look_for_pause(struct tn_direct *d, struct tn_err *err);

TN_MUST_USE tn_rc tn_direct_save(struct tn_direct *d, struct tn_err *err);
