/* data_encode: a packed row becomes a record of an avro file.
 *
 * A plan is made once a file: one op a column, so that a row is one loop over an array. Keys are
 * written twice, as `_KEY_` fields and among the columns, as Paimon's files have them.
 */
#pragma once

#include "base/arena.h"
#include "merge/iter.h"
#include "schema/row.h"

struct tn_encode_plan; /* data_encode.c */

/* The most that a record takes whose byte columns, keys counted twice, have so many bytes. */
size_t tn_encode_max(const struct tn_row_layout *layout, size_t bytes);

/* Bytes that a plan takes. */
size_t tn_encode_plan_size(const struct tn_row_layout *layout);

/* `keys` are written as `_KEY_` fields unless `thin`. */
TN_MUST_USE tn_rc tn_encode_plan_make(const struct tn_row_layout *layout, struct tn_columns keys,
                                      bool thin, struct tn_arena *arena,
                                      const struct tn_encode_plan **plan, struct tn_err *err);

/* Writes the record at `at`, which has room for it, and returns its end; NULL when the row can't be
 * written. */
unsigned char *tn_encode_row(const struct tn_encode_plan *plan, const struct tn_kv *kv,
                             unsigned char *at);

/* INVALID with the column because of which a row can't be written. */
TN_MUST_USE tn_rc tn_encode_refuse(const struct tn_encode_plan *plan, struct tn_row row,
                                   struct tn_err *err);
