/* data_schema: the avro schema that a table's data files carry, word for word as Java writes it. */
#pragma once

#include "base/arena.h"
#include "schema/options.h"
#include "schema/row.h"
#include "schema/schema.h"

/* Keys, sequence number and kind stand before the columns where the table has a primary key.
 * UNSUPPORTED when a column's name is none that avro knows, or its type is one that is not written.
 */
TN_MUST_USE tn_rc tn_data_avro_schema(const struct tn_schema *schema,
                                      const struct tn_options *options, struct tn_arena *arena,
                                      struct tn_bytes *text, struct tn_err *err);

/* The most bytes its text can have. */
size_t tn_data_avro_schema_max(const struct tn_row_layout *layout);
