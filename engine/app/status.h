/* status: how the daemon is, in one page, and the figures that this page and /metrics share.
 *
 *     {
 *     "daemon":
 *     {"daemon":"0.1.0","process":4711,"status":"degraded",...}
 *     ,"journal":
 *     {"journal":"<identity>","bytes":...}
 *     ,"tables":[
 *     {"table":"plant.levels","state":"live",...},
 *     ...
 *     ],"memory":[
 *     {"part":"memtable","kind":"pool",...},
 *     ...
 *     ],"sources":[
 *     {"source":"mqtt","kind":"mqtt",...}
 *     ],"lakes":[
 *     {"lake":"cloud","target":"/mnt/lake",...},
 *     {"mirror":"plant.levels","lake":"cloud",...}
 *     ]
 *     }
 *
 * A whole document; and each line that begins with `{"` is an object of its own, whose first member
 * says what it is about, for who reads line by line (seen.h). "trouble" is a text, or null.
 */
#pragma once

#include "app/intake.h"
#include "app/lakes.h"
#include "app/pulse.h"
#include "app/reload.h"
#include "app/sources.h"

struct tn_status_spec {
    const struct tn_config *config;
    const struct tn_intake *intake;
    const struct tn_sources *sources;
    const struct tn_budget *budget;
    const struct tn_table_share *shares; /* one a keeper */
    const struct tn_lakes *lakes;
    const struct tn_pulse *pulse;
    const struct tn_wear *wear; /* NULL: there is no budget */
    struct tn_reload *reload;
    int64_t begun_ms; /* monotonic */
};

enum tn_health {
    TN_HEALTH_OK,
    TN_HEALTH_DEGRADED, /* it mends itself, or a person should look at it */
    TN_HEALTH_FAILING,  /* no row is taken */
};
enum tn_health tn_status_health(const struct tn_status_spec *spec);
const char *tn_health_text(enum tn_health health);

/* What is wrong with it, or NULL. */
const char *tn_status_table_trouble(const struct tn_keeper *keeper);
const char *tn_status_journal_trouble(const struct tn_intake *intake);
const char *tn_status_reload_trouble(const struct tn_reload *reload);

/* A part of the memory; what of it tables have as shares is summed up. */
struct tn_status_part {
    const char *name;
    const char *kind;
    size_t size;
    size_t used;
    size_t peak;
    bool there; /* false: it lies in another part, and nobody wants it */
};
struct tn_status_part tn_status_part(const struct tn_status_spec *spec, uint32_t index);

/* A tn_http_page's part. */
bool tn_status_page(const struct tn_status_spec *spec, uint32_t index, struct tn_buf *out);
