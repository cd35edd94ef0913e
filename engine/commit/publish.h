/* publish: makes a file appear whole under its final name, or not at all.
 *
 * A snapshot exists from the moment its file name does, so this is where a commit happens. The
 * bytes go to a draft, are synced, and get their final name by a rename that refuses to replace: of
 * two writers that want snapshot-7, one gets CONFLICT.
 *
 *     write draft -> sync -> rename (refuses to replace) -> sync directory
 *
 * Cut the power anywhere: the final name is absent, or present with all of its bytes. A draft that
 * is left behind is harmless, and goes when the table is cleaned (orphan.h).
 * (tests/commit/publish_test.c cuts at every call.)
 */
#pragma once

#include "io/io.h"

struct tn_publish_spec {
    struct tn_bytes bytes;
    const char *draft; /* a name nobody else uses, in the same directory as `final` */
    const char *final;
    const char *dir; /* that directory, with its final '/' */
    const char *const
        *before; /* what else the barrier before the rename must cover: files and folders */
    uint32_t before_count;
};

/* Returns OK; CONFLICT when `final` was there first; FULL or IO from the disk. The first barrier
 * covers the draft and `before` in one.
 *
 * A failed barrier is IO, also on a full disk: what it covered must not be synced again and
 * believed. After IO nobody knows whether the name is durable: the caller looks for `final` before
 * it tries again. Source: Paimon, RenamingSnapshotCommit. */
TN_MUST_USE tn_rc tn_publish(struct tn_io *io, const struct tn_publish_spec *spec,
                             struct tn_err *err);

/* For a file that may replace one of its name, where nobody else writes it: `final` is whole, the
 * old one or the new one. The directory is left to the caller to sync. */
TN_MUST_USE tn_rc tn_publish_over(struct tn_io *io, const char *draft, const char *final,
                                  struct tn_bytes bytes, struct tn_err *err);
