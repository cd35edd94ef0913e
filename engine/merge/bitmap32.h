/* bitmap32: the union of two sets of 32-bit numbers in their portable bytes (RoaringBitmap):
 *
 *     cookie, container count, {key, cardinality - 1}..., offsets..., containers
 *
 * A container holds the low 16 bits of all numbers that have the same high ones: as an ascending
 * array (up to 4096), a bitmap of 8192 bytes, or runs. What is written has no runs. Source:
 * RoaringFormatSpec; Paimon, RoaringBitmap32.
 */
#pragma once

#include "base/bytes.h"

/* Appends the union to `out` (overflow: it has no room). False where one of them is no bitmap. */
bool tn_bitmap32_union(struct tn_bytes a, struct tn_bytes b, struct tn_buf *out);
