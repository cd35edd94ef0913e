/* data_schema: the avro schema that a table's data files carry, word for word as Java writes it. */
#pragma once

#include "base/arena.h"
#include "format/avro.h"
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

/* The tree of such a text, without a parser: most files that are opened carry just this schema, and
 * one of many columns takes megabytes to parse. Names live as long as the schema's; keys have
 * none, unless fields `_KEY_...` behind the columns are theirs. ABSENT: the text is another one.
 * AGAIN: the arena is full. */
TN_MUST_USE tn_rc tn_data_avro_known(struct tn_bytes text, const struct tn_schema *schema,
                                     struct tn_arena *arena, struct tn_avro_type *record,
                                     struct tn_err *err);
