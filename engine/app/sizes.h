/* sizes: what the daemon takes of the part "input", and how long a message may be for it.
 *
 * Of the longest parcel (intake.h) follow all that messages go through, and who sends them. It is
 * chosen as long as there is room for, so that more memory means longer messages.
 */
#pragma once

#include "app/config.h"
#include "app/intake.h"

struct tn_sizes {
    size_t parcel;  /* see tn_intake_spec */
    size_t message; /* the hub's size_max */
    size_t intake;
    size_t sources;
    size_t control; /* the socket beside the data */
    size_t scripts; /* of tables that may have one */
    size_t tables;  /* what stands for them, paths, the rows that `map` makes of a record */
    size_t room;    /* of these, the last */
    size_t lakes;
};

/* The least that will do. */
void tn_sizes_least(const struct tn_config *config, struct tn_sizes *sizes);
size_t tn_sizes_sum(const struct tn_sizes *sizes);
/* All of it fits `available` bytes. INVALID: the least doesn't. */
TN_MUST_USE tn_rc tn_sizes_choose(const struct tn_config *config, size_t available,
                                  struct tn_sizes *sizes, struct tn_err *err);
/* Tables are there, and what they keep is known: messages are so much shorter that the rest fits
 * what is left. */
TN_MUST_USE tn_rc tn_sizes_choose_beside(const struct tn_config *config,
                                         const struct tn_intake_states *states, size_t available,
                                         struct tn_sizes *sizes, struct tn_err *err);
