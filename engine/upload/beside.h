/* beside: small files beside a table, outside of it, that say what is known of it:
 * `.tarn/<db>.<table>.<kind>`.
 *
 * Each is replaced whole: at a cut it is the old one or the new one.
 */
#pragma once

#include "base/arena.h"
#include "io/io.h"

enum { TN_BESIDE_SIZE_MAX = 4096 };

/* With a zero byte behind it, in the arena. ABSENT: there is none; INVALID: it is larger than any
 * that was written. */
TN_MUST_USE tn_rc tn_beside_read(struct tn_io *io, const char *table, const char *kind,
                                 struct tn_arena *arena, struct tn_bytes *text, struct tn_err *err);
/* Durable when it returns. */
TN_MUST_USE tn_rc tn_beside_write(struct tn_io *io, const char *table, const char *kind,
                                  struct tn_bytes text, struct tn_arena *scratch,
                                  struct tn_err *err);
