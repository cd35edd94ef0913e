#include "app/hand_in.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t requests_of(const struct tn_target *target)
{
    uint64_t sum = 0;
    for (int i = 0; i < TN_TARGET_VERBS; i++) {
        sum += target->counts.requests[i];
    }
    return sum;
}

static void say(const struct tn_hand_in_spec *spec, const struct tn_inbox_sent *sent,
                const struct tn_target *store)
{
    if (tn_common.quiet) {
        return;
    }
    if (sent->first_id == 0) {
        (void)fprintf(stderr, "handed in nothing: %s has all up to snapshot %" PRId64 "\n",
                      spec->where, sent->last_id);
        return;
    }
    (void)fprintf(stderr,
                  "handed in snapshots %" PRId64 "..%" PRId64 " entries=%" PRIu32 " files=%" PRIu64
                  " bytes=%" PRIu64,
                  sent->first_id, sent->last_id, sent->entries, sent->files, sent->bytes);
    if (store) {
        (void)fprintf(stderr, " requests=%" PRIu64, requests_of(store));
    }
    (void)fputc('\n', stderr);
}

tn_rc tn_hand_in(struct tn_app *app, const struct tn_hand_in_spec *spec, struct tn_inbox_sent *sent,
                 struct tn_err *err)
{
    static struct tn_place place;
    struct tn_inbox_send_spec send = {.table = spec->table, .dry_run = spec->dry_run};
    struct tn_place_spec where = {.where = spec->where,
                                  .table = spec->table,
                                  .who = "tarn sync",
                                  .options = spec->options,
                                  .rate = spec->rate,
                                  .make = !spec->dry_run,
                                  .shared = true};
    tn_rc rc = tn_place_open(&place, app, &where, err);
    if (rc == TN_OK) {
        send.target = place.lake.target;
        rc = tn_inbox_send(&send, &app->workers[TN_LANE_LONG], sent, err);
    }
    if (rc == TN_OK && !spec->dry_run) {
        say(spec, sent, place.lake.is_store ? place.lake.target : NULL);
    }
    tn_place_close(&place);
    return rc;
}
