/* handover: `write` where the daemon holds the table: records go to it as they are, by standard
 * input's own way (lines.h), and it commits them when that is due here.
 */
#pragma once

#include "app/args.h"
#include "app/offering.h"
#include "app/writing.h"

/* `spec` as for tn_writing_open; what can't be obeyed through a daemon is an error that names it.
 * `code`: 1 when there were dead letters. */
TN_MUST_USE tn_rc tn_handover(struct tn_offering *offering, const struct tn_writing_spec *spec,
                              const char *const *paths, uint32_t count, int *code,
                              struct tn_err *err);
