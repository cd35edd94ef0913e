/* drift: what a configuration wants of a table, and the table that is there has not.
 *
 * A table is made once; what the configuration says of it later changes nothing. Whoever changes it
 * is told.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "schema/schema.h"

/* The first difference, as a text; false: none. Columns and options that the table has besides are
 * none. */
bool tn_drift_find(const struct tn_schema *want, const struct tn_schema *has, char *text,
                   size_t size);
