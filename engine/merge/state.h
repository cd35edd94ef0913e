/* state: what a key was before those who merge it came: the question, not who answers it. */
#pragma once

#include "merge/iter.h"

struct tn_state {
    /* Keys are asked in ascending order. ABSENT: it never was. `found` may be a retract, and lives
     * until the next call. */
    tn_rc (*find)(struct tn_state *state, const struct tn_kv *key, struct tn_kv *found,
                  struct tn_err *err);
};
