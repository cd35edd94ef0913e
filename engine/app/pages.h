/* pages: how the daemon is, for those who ask by HTTP.
 *
 *     /health     200 {"status":"ok"}; 200 "degraded" with reasons, for what mends itself or a
 *                 person should look at; 503 "failing": no row is taken
 *     /ready      200 once the tables have what the journal had for them, else 503
 *     /metrics    for Prometheus. A name is Paimon's where it has the figure, in Prometheus'
 * letters
 */
#pragma once

#include "app/intake.h"
#include "app/sources.h"

enum { TN_PAGES_COUNT = 3 };

struct tn_pages {
    const struct tn_intake *intake;
    const struct tn_sources *sources;
    struct tn_http_page pages[TN_PAGES_COUNT];
    unsigned char text[4096]; /* reasons */
};

void tn_pages_init(struct tn_pages *pages, const struct tn_intake *intake,
                   const struct tn_sources *sources);
