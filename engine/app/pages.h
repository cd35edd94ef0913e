/* pages: how the daemon is, for those who ask by HTTP.
 *
 *     /health     200 {"status":"ok"}; 200 "degraded" with reasons, for what mends itself or a
 *                 person should look at; 503 "failing": no row is taken
 *     /ready      200 once the tables have what the journal had for them, else 503
 *     /status     all of it (status.h), for `tarn status` and `tarn top`
 *     /reload     POST asks for one (reload.h), with ?look=1 for its check; GET says what became of
 *                 it. Of the daemon's own socket only
 *     /shadow     POST sends messages on from here (tee.h), with ?end=1 no more; says how many.
 *                 GET tells what runs (scripts.h). Of the daemon's own socket only
 *     /job        POST asks for a job, GET says what became of it (job.h). Of the daemon's own
 *                 socket only
 *     /offer      POST hands rows over (offers.h). Of the daemon's own socket only
 *     /metrics    for Prometheus (metrics.h)
 */
#pragma once

#include "app/jobs.h"
#include "app/offers.h"
#include "app/status.h"

enum { TN_PAGES_COUNT = 4, TN_PAGES_OWN = 8 };

struct tn_pages {
    struct tn_status_spec of;
    struct tn_jobs *jobs;
    struct tn_http_page pages[TN_PAGES_COUNT + TN_PAGES_OWN];
    unsigned char text[4096]; /* reasons */
};

void tn_pages_init(struct tn_pages *pages, const struct tn_status_spec *of, struct tn_jobs *jobs);
