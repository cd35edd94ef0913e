/* hand_in: `sync` of a table that the lake has once, where a gather commits for all its gateways:
 * files and an entry of the inbox (upload/inbox_send.h) go to the place that it is shared with. */
#pragma once

#include "app/place.h"
#include "upload/inbox_send.h"

struct tn_hand_in_spec {
    const char *table;
    const char *where; /* the place that it is shared with */
    const struct tn_text_list *options;
    uint64_t rate;
    bool dry_run;
};

/* Says what went, but of a dry run. Errors as of the place, and of tn_inbox_send. */
TN_MUST_USE tn_rc tn_hand_in(struct tn_app *app, const struct tn_hand_in_spec *spec,
                             struct tn_inbox_sent *sent, struct tn_err *err);
