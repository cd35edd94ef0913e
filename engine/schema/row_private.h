/* row_private: what the parts of row.h share.
 *
 *     row.c          layouts, values in and out
 *     row_key.c      order, prefixes and hashes of some columns
 *     row_binary.c   to and from BinaryRow, and the bucket that is taken of it
 */
#pragma once

#include "schema/row.h"

/* Of a type that is not nested. */
enum tn_slot tn_row_slot_of(const struct tn_type *type);

extern const uint8_t tn_row_slot_widths[]; /* by enum tn_slot, bytes */

/* 1, 2, 4 or 8 bytes. */
static inline uint64_t tn_row_load_fixed(const unsigned char *at, uint32_t width)
{
    switch (width) {
    case 1:
        return at[0];
    case 2:
        return tn_load_u16(at);
    case 4:
        return tn_load_u32(at);
    default:
        return tn_load_u64(at);
    }
}
