/* restore: a table is made anew from its mirror, for a device that takes a dead one's place.
 *
 *     bring:   whose it is -> lists, manifests -> data and changelog files -> barrier -> snapshots
 *     finish:  schemas, the newest first: now it is a table -> hints, ledger, consumer
 *
 * What comes is the newest snapshot, and with it those below, down to the newest that says where
 * its writer's sources stood (`tarn.writer`), each whole. Older ones, tags and consumers stay where
 * they are. The mirror's owner is raised before the newest snapshot is looked for, so that the old
 * device, if it wakes, is stopped by its next sync; what it has published until then comes, too.
 *
 * Without its schemas nobody takes for a table what is there, so it is one in the end only. A cut
 * leaves files that the next try finds: `.tarn/<db>.<table>.restore` says that it is ours, from
 * where, and which snapshot. Nothing is ever written at the target but the owner, and that the tags
 * which travelled there are nobody's now.
 *
 * An older snapshot than the newest makes a table of its own, that isn't the mirror's source.
 */
#pragma once

#include "file/worker.h"
#include "upload/owner.h"

struct tn_restore_result {
    int64_t first_id; /* of the snapshots; 0: it has none */
    int64_t last_id;
    int64_t newest_id; /* of the mirror */
    uint64_t files;    /* that were missing when it began, and their bytes */
    uint64_t bytes;
    uint64_t files_done;
    uint64_t bytes_done;
    bool owner;  /* this device is the mirror's owner now; in a dry run: will be */
    bool shared; /* it is no mirror: gateways share it */
    bool positions;
    char writer[TN_OWNER_ID_SIZE]; /* who wrote the first of the snapshots; "": nobody of tarn */
};

struct tn_restore_spec {
    const char *root;  /* "db.db/t", on both sides */
    const char *table; /* "db.t" */
    struct tn_target *target;
    struct tn_io *scratch; /* a folder of its own (lake_io.h) */
    const char *lake;      /* name of the ledger, and of the consumer that a mirror is */
    const char *writer;    /* this device's id for the table */
    int64_t snapshot_id;   /* 0: the newest */
    bool dry_run;          /* nothing is written but to `scratch` */
    void (*note)(void *user,
                 const struct tn_restore_result *so_far); /* behind each file; or NULL */
    void *user;
};

/* Writes through the worker's io; the table's lock is the caller's. Between the two calls goes what
 * must be there before it is a table. EXISTS: it is there already; ABSENT: the mirror has no such
 * table or snapshot; CONFLICT: another device takes it over, too; FULL: there is no room, and how
 * much it needs; CORRUPT: the mirror lacks a file; UNSUPPORTED: files outside the table. Asks with
 * GET, HEAD and LIST, and puts the owner and the record of tags. */
TN_MUST_USE tn_rc tn_restore_bring(const struct tn_restore_spec *spec, struct tn_worker *worker,
                                   struct tn_restore_result *result, struct tn_err *err);
TN_MUST_USE tn_rc tn_restore_finish(const struct tn_restore_spec *spec, struct tn_worker *worker,
                                    const struct tn_restore_result *result, struct tn_err *err);
