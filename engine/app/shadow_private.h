/* shadow_private: what the files of shadow.h have in common.
 *
 *     shadow.c         the daemon, and its messages
 *     shadow_load.c    a table with its two scripts, and what is there of a key
 *     shadow_report.c  what is said
 */
#pragma once

#include "app/shadow.h"

/* Of the shadow's memory, for good. */
TN_MUST_USE tn_rc tn_shadow_need(struct tn_shadow *shadow, size_t size, const char *what,
                                 void **memory, struct tn_err *err);

/* Those of the daemon's tables whose script is another one now. */
TN_MUST_USE tn_rc tn_shadow_open_tables(struct tn_shadow *shadow, struct tn_err *err);
void tn_shadow_close_table(struct tn_shadow_table *table);
