/* cast: a value of a column's older type as one of its newer type.
 *
 * ALTER TABLE changes a column's type without touching files; whoever reads an older file casts.
 * The pairs are those of Paimon's CastExecutors, and so are the values, to the last digit: what
 * wraps there wraps here, what becomes NULL there (a DECIMAL that doesn't fit) is NULL here, and
 * what throws there fails here.
 *
 * Paimon casts between local and absolute times in the zone of its JVM. tarn has no zone: it reads
 * what a JVM in UTC reads.
 *
 * Nothing is allocated. A text is a part of the value that was cast, or stands in the caller's
 * `tn_cast_out`; what CHAR(n) and BINARY(n) pad is only counted, since n may be anything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "schema/types.h"
#include "schema/value.h"

enum { TN_CAST_TEXT_SIZE = 64 }; /* any number or time as text; the longest is a DECIMAL(38, 38) */

struct tn_cast_out {
    struct tn_value value; /* bytes: of the value that was cast, or of `text` */
    uint32_t pad_size;     /* so many bytes follow value.as.bytes: blanks of a CHAR, else zeros */
    unsigned char text[TN_CAST_TEXT_SIZE];
};

struct tn_cast {
    bool (*apply)(const struct tn_cast *cast, const struct tn_value *from, struct tn_cast_out *out);
    struct tn_type from;
    struct tn_type to;
};

/* False for the same type, whether or not it may be NULL. */
bool tn_cast_needed(const struct tn_type *from, const struct tn_type *to);

/* False when Paimon has no such cast. */
bool tn_cast_find(const struct tn_type *from, const struct tn_type *to, struct tn_cast *cast);

/* Casts a value that is not NULL. False when it is none of the new type, as 'abc' is no INT; `out`
 * is garbage then. */
static inline bool tn_cast_apply(const struct tn_cast *cast, const struct tn_value *from,
                                 struct tn_cast_out *out)
{
    out->value = (struct tn_value){0};
    out->pad_size = 0;
    return cast->apply(cast, from, out);
}
