/* delta, from inside: one sync, and what its parts share.
 *
 * delta_find.c  what both sides have, and whether it is the same table
 * delta_send.c  one snapshot: its files, its lists, then its name
 * delta_marks.c hints at the target, the consumer at the source
 * delta.c       the order of it all, and starting over after an expiry
 */
#pragma once

#include "commit/live.h"
#include "commit/set.h"
#include "file/schemas.h"
#include "schema/options.h"
#include "upload/delta.h"

struct tn_delta {
    const struct tn_delta_spec *spec;
    struct tn_worker *worker;
    struct tn_delta_result *result;
    struct tn_target *target;
    const char *root;
    struct tn_set counted; /* names of a dry run */
    struct tn_schemas schemas;
    const struct tn_schema *schema; /* of the snapshot that is being sent */
    struct tn_options options;
    int64_t source_first; /* ids; 0: none */
    int64_t source_last;
    int64_t schema_last;
    int64_t schema_next; /* those below are there */
    int64_t have;        /* newest in the target */
    int64_t at;          /* being sent */
    bool again;          /* expiry took what was being sent */
};

static inline tn_rc tn_delta_no_room(struct tn_err *err)
{
    return tn_err_set(err, TN_AGAIN, 0, "sync: no room for a path");
}

/* Sets source_first, source_last, schema_last and have. */
TN_MUST_USE tn_rc tn_delta_find(struct tn_delta *d, struct tn_err *err);
/* ABSENT: the target lacks the file. */
TN_MUST_USE tn_rc tn_delta_find_at_target(struct tn_delta *d, const char *path, uint64_t *size,
                                          struct tn_err *err);
/* CONFLICT when both sides have the file and it isn't the same. */
TN_MUST_USE tn_rc tn_delta_compare(struct tn_delta *d, const char *dir, const char *prefix,
                                   int64_t id, size_t size_max, struct tn_err *err);
/* Says CONFLICT: `path` has other content there. */
tn_rc tn_delta_diverged(const struct tn_delta *d, const char *path, struct tn_err *err);
/* CONFLICT where the target is another table, or has another history. */
TN_MUST_USE tn_rc tn_delta_check_same(struct tn_delta *d, struct tn_err *err);

/* An id that isn't there (any more) is passed over: what comes behind it is a first one. ABSENT: a
 * file of the source is gone. */
TN_MUST_USE tn_rc tn_delta_send_snapshot(struct tn_delta *d, int64_t id, struct tn_err *err);
/* Versions up to `last`; those that are gone at the source are needed by nothing. */
TN_MUST_USE tn_rc tn_delta_bring_schemas(struct tn_delta *d, int64_t last, struct tn_err *err);

TN_MUST_USE tn_rc tn_delta_write_hints(struct tn_delta *d, struct tn_err *err);
/* The newest snapshot of the target stays at the source, and before the first sync all do. */
TN_MUST_USE tn_rc tn_delta_protect(struct tn_delta *d, struct tn_err *err);
