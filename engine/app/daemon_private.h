/* daemon_private: what the files of daemon.h have in common.
 *
 *     daemon.c         signals, doors, the loop
 *     daemon_tables.c  tables: made where they aren't, and opened
 */
#pragma once

#include "app/daemon.h"

/* Every table that is configured is there, and its share says what it is to be. `*room` is for the
 * rows of a record: keepers take turns in it. */
TN_MUST_USE tn_rc tn_daemon_make_tables(struct tn_daemon *daemon, void **room, struct tn_err *err);

/* Their keepers, each with its share of the memory. */
TN_MUST_USE tn_rc tn_daemon_open_tables(struct tn_daemon *daemon, void *room, struct tn_err *err);
