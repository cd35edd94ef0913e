/* resolver: a script as the one who decides what is true of a key (merge/resolve.h).
 *
 *     merge       what +I and +U do; a script without it: the row that came replaces
 *     retract     what -D does; without it: the key is gone
 *     announce    what followers see; without it: the row
 *
 * What the script says when it fails goes on as it is, "fold.lua:12: why": the row is a dead
 * letter. Once it is parked every answer is CANCELED.
 */
#pragma once

#include "merge/resolve.h"
#include "script/script.h"

struct tn_script_resolver {
    struct tn_resolver resolver; /* first */
    struct tn_script *script;    /* loaded with the layout of the rows */
    struct tn_columns late_by;   /* tarn.sequence.field: a row is late when it is before `now` by
                                    these columns, NULL being the oldest; none: never */
};

/* All three are kept by pointer until the last row is resolved. */
void tn_script_resolver_init(struct tn_script_resolver *resolver, struct tn_script *script,
                             struct tn_columns late_by);

/* A row that came has less in these columns than what is true now: ctx.late. */
bool tn_script_is_late(const struct tn_row_layout *layout, struct tn_columns late_by,
                       const struct tn_row *now, struct tn_row row);
