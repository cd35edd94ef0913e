/* rollback: a table goes back to a snapshot or a tag; all behind it is gone.
 *
 *     tags and long-lived changelogs behind it, barrier -> LATEST, barrier
 *     -> snapshots, newest first, a barrier each -> hints
 *
 * Cut the power anywhere: the table stands at one of the snapshots from the newest down to the
 * target, with every one before it, and without tags of later ones; the same call goes on. Tags go
 * first (in Paimon last), since a tag of a snapshot whose number is given anew is not looked after
 * by expiry. Data files become orphans (orphan.h), as in Paimon; schemas stay.
 *
 * A tag that is older than the earliest snapshot: its snapshot's file is made again, below
 * EARLIEST, where it counts for nobody (expire.h) until all others are gone. Where its changelog
 * went with it, the new file names none (Paimon's does, and readers of changes fail at it).
 *
 * Positions of inputs stand in the snapshots, so they go back, too. A consumer, or a copy
 * elsewhere, that is further on is not touched: it finds its snapshot missing, and says so. Source:
 * Paimon, RollbackHelper.
 */
#pragma once

#include "commit/tag.h"

struct tn_rollback_spec {
    const char *root;
    const char *tag;     /* or NULL: */
    int64_t snapshot_id; /* if it has expired, a tag of it does */
    bool dry_run;
};

struct tn_rollback_result {
    int64_t snapshot_id; /* where the table stands now */
    int64_t latest_id;   /* where it stood */
    uint32_t snapshots;  /* that went */
    uint32_t tags;
    uint32_t changelogs; /* long-lived ones */
    bool made_again;     /* the snapshot's file, from a tag */
};

/* The snapshot that a rollback would go to, or its tag's text, in the worker's arena. INVALID: no
 * such snapshot or tag. */
TN_MUST_USE tn_rc tn_rollback_target(const struct tn_rollback_spec *spec, struct tn_worker *worker,
                                     struct tn_snapshot *target, struct tn_err *err);

/* INVALID: no such snapshot or tag; nothing was done. The caller has the table's lock. */
TN_MUST_USE tn_rc tn_rollback(const struct tn_rollback_spec *spec, struct tn_worker *worker,
                              struct tn_rollback_result *result, struct tn_err *err);
