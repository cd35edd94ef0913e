/* gathering: a lake's table, opened for `gather`: the place, its files behind a door, its newest
 * schema, the lease; and what is done to it, piece by piece. One a process, process-wide.
 *
 * From open to close the app's workers and its env work on the lake: all else of the engine does,
 * too. What is at hand of a bucket lies in the warehouse's `.tarn/gather/<db>.<table>/`.
 */
#pragma once

#include "app/place.h"
#include "file/schemas.h"
#include "upload/gather.h"
#include "upload/gather_lease.h"
#include "upload/lake_io.h"

struct tn_gathering_spec {
    const char *table; /* "db.t" */
    const char *where; /* a folder, or s3://bucket/prefix */
    const struct tn_text_list *options;
    uint64_t rate;
    int64_t sure_ms; /* upload/gather.h */
};

struct tn_gathering {
    struct tn_app *app;
    const char *table;
    const char *root;
    struct tn_place place;
    struct tn_io *io; /* the lake's */
    struct tn_io_posix scratch;
    struct tn_lake_io lake;
    bool has_scratch;
    bool has_lake;
    size_t schema_mark;
    struct tn_schemas schemas;
    const struct tn_schema *schema;
    struct tn_options options;
    struct tn_arena arena;
    struct tn_gather gather;
    struct tn_lease lease;
    int64_t paused_look_ns; /* when the pause was looked for last, in upkeep */
    bool stopped;           /* upkeep ended since others want it so */
};

/* A bucket is probed (upload/probe.h) once a warehouse and store. ABSENT: no such table there;
 * errors else as of the place and of options that a writer obeys. After an error tn_gathering_close
 * is to be called, too. */
TN_MUST_USE tn_rc tn_gathering_open(struct tn_gathering *gathering, struct tn_app *app,
                                    const struct tn_gathering_spec *spec, struct tn_err *err);
/* Gives the lease back. */
void tn_gathering_close(struct tn_gathering *gathering);

/* One round, with the newest schema. */
TN_MUST_USE tn_rc tn_gathering_round(struct tn_gathering *gathering,
                                     struct tn_gather_result *result, struct tn_err *err);

/* Compacts what is due by the table's options, and expires what is over. Ends early, and without an
 * error, when a signal came, commits are paused, or the lease is lost. */
TN_MUST_USE tn_rc tn_gathering_upkeep(struct tn_gathering *gathering, struct tn_err *err);
