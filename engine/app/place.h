/* place: where a verb sends to or takes from, as its command line says: a lake (lake.h), its
 * options, its doors. One a process. */
#pragma once

#include "app/lake.h"

struct tn_place {
    struct tn_lake lake;
    struct tn_lake_options options;
    struct tn_lake_doors doors;
};

struct tn_place_spec {
    const char *where;
    const char *table;
    const char *who;                    /* for the lock: "tarn sync" */
    const struct tn_text_list *options; /* "s3.endpoint=..."; a store's */
    uint64_t rate;                      /* likewise; 0: as fast as it goes */
    bool make;                          /* a folder that is missing; and the lock */
    bool shared;                        /* others write the table there, too */
};

/* Errors as of tn_lake_open_by; INVALID: options for a folder. After an error there is nothing to
 * close, but tn_place_close is harmless. */
TN_MUST_USE tn_rc tn_place_open(struct tn_place *place, struct tn_app *app,
                                const struct tn_place_spec *spec, struct tn_err *err);
void tn_place_close(struct tn_place *place);
