/* text_scan: the smallest steps of reading a value's text. For value.c, decimal.c, float_text.c and
 * time_text.c. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

enum { TN_QUOTE_SIZE_MAX = 60 }; /* bytes of a value that an error shows */

/* For "%.*s" in an error. */
static inline int tn_quote_size(struct tn_bytes text)
{
    return text.size < TN_QUOTE_SIZE_MAX ? (int)text.size : TN_QUOTE_SIZE_MAX;
}

static inline bool tn_is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

static inline void tn_skip(struct tn_bytes *rest, size_t size)
{
    rest->data += size;
    rest->size -= size;
}

static inline bool tn_take_byte(struct tn_bytes *rest, char byte)
{
    if (rest->size == 0 || rest->data[0] != (unsigned char)byte) {
        return false;
    }
    tn_skip(rest, 1);
    return true;
}

static inline struct tn_bytes tn_take_digits(struct tn_bytes *rest)
{
    struct tn_bytes digits = {rest->data, 0};
    while (digits.size < rest->size && tn_is_digit(rest->data[digits.size])) {
        digits.size++;
    }
    tn_skip(rest, digits.size);
    return digits;
}
