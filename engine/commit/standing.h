/* standing: whether a snapshot that was just published is the one behind the one before.
 *
 * Its name was free, but may have been another's, who went on and expired it meanwhile: then it is
 * a stray below the newest, and what it holds is in nobody's table. What tells is the base list of
 * the snapshot behind it, which has all files of the one before. Paimon's commit by rename has the
 * same window.
 */
#pragma once

#include "commit/live.h"

/* The snapshot, and what it is known by. */
struct tn_standing_spec {
    const char *root;
    int64_t id;
    const char *manifest_uuid; /* of all manifests that its commit wrote */
    const char *file_name;     /* that it gave or took at a level; NULL: none */
    int32_t level;
    bool given;
};

enum tn_standing {
    TN_STANDS,
    TN_STRAY,         /* others went on without it */
    TN_STRAY_IF_THERE /* if it has not expired; else nobody can tell */
};

/* Costs a look whether the snapshot before is there; where it is not, the base list of the one
 * behind is read, with its manifests. What can't be read counts as TN_STANDS. */
enum tn_standing tn_standing(const struct tn_standing_spec *spec, struct tn_worker *worker);

/* Whether `next`, behind it, was made without it. Where it neither gave nor took a file and its
 * manifests were merged nothing tells: true, since to commit it twice does nothing. */
bool tn_standing_goes_on_without(const struct tn_standing_spec *spec,
                                 const struct tn_snapshot *next, struct tn_worker *worker);
