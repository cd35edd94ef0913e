/* data_key: the key of a packed row, for whoever has to remember a row of a file and not its
 * values.
 */
#pragma once

#include "schema/row.h"

/* Bytes of a key, which manifests hold four times a file: a guess, far above any key. */
enum { TN_DATA_KEY_MAX = 32 * 1024 };

/* Bytes of the key's byte columns. */
uint32_t tn_data_key_size(const struct tn_row_layout *layout, struct tn_columns keys,
                          struct tn_row row);

/* The row with all byte columns empty but for the keys: of tn_data_key_size bytes behind the fixed
 * part. Returns its size. */
uint32_t tn_data_key_copy(const struct tn_row_layout *layout, struct tn_columns keys,
                          struct tn_row row, unsigned char *out);
