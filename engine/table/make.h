/* make: a new table's schema-0, checked and published: what `create`, `demo` and the C API do. */
#pragma once

#include "schema/options.h"
#include "table/env.h"

/* `file.format` is set where it is missing. The table lock is the caller's. `options` is what the
 * schema's options mean. EXISTS: there is such a table, which is left alone; INVALID, too: it is
 * half restored. */
TN_MUST_USE tn_rc tn_make_table(struct tn_env *env, const char *table, struct tn_schema *schema,
                                struct tn_options *options, struct tn_err *err);
