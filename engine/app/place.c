#include "app/place.h"

#include <string.h>

static tn_rc take_options(struct tn_lake_options *options, const struct tn_text_list *given,
                          struct tn_err *err)
{
    tn_rc rc = TN_OK;
    for (uint32_t i = 0; rc == TN_OK && i < given->count; i++) {
        rc = tn_lake_option(options, given->items[i], err);
    }
    tn_lake_options_environment(options);
    return rc;
}

static tn_rc check_folder(const struct tn_place_spec *spec, struct tn_err *err)
{
    if (spec->options->count > 0 || spec->rate > 0) {
        return tn_err_set(err, TN_INVALID, 0, "%s is a folder: %s is for s3://...", spec->where,
                          spec->rate > 0 ? "--rate" : "--option");
    }
    return TN_OK;
}

static tn_rc open_store(struct tn_place *place, struct tn_app *app,
                        const struct tn_place_spec *spec, struct tn_lake_spec *lake,
                        struct tn_err *err)
{
    uint64_t hash;
    tn_rc rc = take_options(&place->options, spec->options, err);
    if (rc == TN_OK) { /* is it one that we speak to? */
        rc = tn_lake_store_hash(spec->where, &place->options, &hash, err);
    }
    if (rc == TN_OK) {
        rc = tn_lake_doors_open(&place->doors, app, &place->options, err);
    }
    lake->options = &place->options;
    lake->doors = &place->doors;
    return rc == TN_OK ? tn_lake_open_by(&place->lake, lake, err) : rc;
}

tn_rc tn_place_open(struct tn_place *place, struct tn_app *app, const struct tn_place_spec *spec,
                    struct tn_err *err)
{
    struct tn_lake_spec lake = {.where = spec->where,
                                .table = spec->table,
                                .who = spec->who,
                                .warehouse = app->posix.root,
                                .make = spec->make,
                                .shared = spec->shared,
                                .arena = &app->input,
                                .io = &app->posix.io,
                                .rate =
                                    spec->rate < UINT32_MAX ? (uint32_t)spec->rate : UINT32_MAX};
    memset(place, 0, sizeof *place); /* too large for a literal on the stack */
    place->lake.lock = -1;
    if (tn_lake_is_store(spec->where)) {
        return open_store(place, app, spec, &lake, err);
    }
    tn_rc rc = check_folder(spec, err);
    return rc == TN_OK ? tn_lake_open_by(&place->lake, &lake, err) : rc;
}

void tn_place_close(struct tn_place *place)
{
    tn_lake_close(&place->lake);
    tn_lake_doors_close(&place->doors);
}
