/* keeper_private: what the files of keeper.h have in common.
 *
 *     keeper.c        a table's life: opened, committed, turned, failed, opened again
 *     keeper_place.c  how far it is: positions in its snapshots, and of its letters
 *     keeper_state.c  what its `map` keeps, in the journal
 *     keeper_put.c    what is put into it, and what is buried instead
 */
#pragma once

#include "app/keeper.h"

/* Of a letter whose message is the journal's at `place`: it has more bits than a message has
 * records. */
int64_t tn_keeper_letter_position(uint64_t place, uint32_t record);

/* The stores of its `map` are as the journal has them. */
TN_MUST_USE tn_rc tn_keeper_restore(struct tn_keeper *keeper, const struct tn_journal *journal,
                                    struct tn_err *err);

/* The positions of the commit that comes: all before `at` is in, and before the tracks' places. */
TN_MUST_USE tn_rc tn_keeper_note(const struct tn_keeper *keeper, const char *identity,
                                 struct tn_keeper_place at, struct tn_err *err);
