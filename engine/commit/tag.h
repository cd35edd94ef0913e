/* tag: `tag/tag-<name>`, the text of a snapshot under a name, which keeps its files when the
 * snapshot expires.
 *
 *     make:    look for the snapshot -> publish the tag -> look again
 *     remove:  read all that is reached without it -> unlink, barrier -> files of its own
 *
 * Making one needs no lock. Expiry moves EARLIEST, then looks for tags that were not there when it
 * listed what stays (expire.h); whoever makes a tag looks at EARLIEST behind publishing it. So of
 * the two at least one sees the other, and steps back. Removing files needs the table's lock.
 *
 * Cut the power anywhere: a tag is there and whole, or gone; files that it alone reached may be
 * left over, for orphan.h. Source: Paimon, TagManager, TagDeletion, TagTimeExpire.
 */
#pragma once

#include "commit/expire.h"
#include "commit/snapshot.h"

enum { TN_TAG_NAME_MAX = 200 }; /* bytes; some room for what others put around it */

struct tn_tag {
    struct tn_snapshot snapshot;
    bool expires;
    int64_t expires_ms; /* by the local wall clock, as Paimon counts */
};

/* INVALID for what can't be part of a file's name, or had better not be. */
TN_MUST_USE tn_rc tn_tag_check_name(const char *name, struct tn_err *err);

/* ABSENT when there is none. */
TN_MUST_USE tn_rc tn_tag_read(struct tn_io *io, const char *root, const char *name,
                              struct tn_arena *arena, struct tn_tag *tag, struct tn_err *err);

struct tn_tag_spec {
    const char *root;
    const char *name;
    int64_t snapshot_id; /* 0: the newest */
    int64_t retained_ms; /* 0: for good; else it expires with a later commit */
    bool dry_run;
};

/* Durable when it returns. EXISTS: there is a tag of that name. INVALID: the name is none (a
 * number is a snapshot's), or there is no such snapshot, nor a tag of it. AGAIN: the snapshot
 * expired meanwhile. */
TN_MUST_USE tn_rc tn_tag_make(const struct tn_tag_spec *spec, struct tn_worker *worker,
                              int64_t *snapshot_id, struct tn_err *err);

/* ABSENT when there is none. Files go when the tag's snapshot has expired and nothing else reaches
 * them: no other tag, no snapshot, branch or long-lived changelog. Bounded memory: 32 bytes a live
 * file of the tag, in several passes where that doesn't fit. `result` counts files; its other
 * members are not touched. */
TN_MUST_USE tn_rc tn_tag_remove(const struct tn_expire_spec *spec, const char *name,
                                struct tn_worker *worker, struct tn_expire_result *result,
                                struct tn_err *err);

/* The first name behind `after` of a tag whose time is over; "" when there is none. */
struct tn_tag_over {
    char name[256];
};
TN_MUST_USE tn_rc tn_tag_find_over(const char *root, struct tn_worker *worker,
                                   const struct tn_tag_over *after, struct tn_tag_over *over,
                                   struct tn_err *err);
