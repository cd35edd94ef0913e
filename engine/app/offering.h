/* offering: the daemon as a hub, for a verb whose rows are for a table that it holds: each offer is
 * a request on its socket. Sources of the hub run on it as they do in the daemon.
 *
 * Blocking. What was taken is the daemon's; a commit (handing.h) makes it a snapshot. A sender has
 * no identity here: what is sent again is there again.
 */
#pragma once

#include "app/boot.h"
#include "ingest/hub.h"

struct tn_offering {
    struct tn_hub hub; /* first */
    struct tn_app *app;
    uint64_t place; /* of what was taken last */
    uint64_t rows;  /* and dead letters */
    uint64_t dead;
    struct tn_err waits; /* why there was no room the last time */
    tn_rc failed;        /* nothing more is taken, */
    struct tn_err failure;
};

/* ABSENT: no daemon is there, or the table is none of its own. */
TN_MUST_USE tn_rc tn_offering_open(struct tn_offering *offering, struct tn_app *app,
                                   const char *table, struct tn_err *err);
