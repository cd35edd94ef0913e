/* consumer: `consumer/consumer-<id>`, which says what somebody reads next: {"nextSnapshot": n}.
 *
 * No expiry, ours or official, takes snapshot n or one behind it, so a reader that comes back finds
 * all that it has not seen. The file is synced before it gets its name, and expiry stops at one
 * that it can't read: at any cut it is the old one, the new one, or (the first time) not there.
 * Source: Paimon, ConsumerManager.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "io/io.h"

/* ABSENT when there is none; CORRUPT when it says nothing of use. */
TN_MUST_USE tn_rc tn_consumer_read(struct tn_io *io, const char *root, const char *id,
                                   struct tn_arena *scratch, int64_t *next, struct tn_err *err);

/* Durable when it returns; one that says the same already is left alone. */
TN_MUST_USE tn_rc tn_consumer_write(struct tn_io *io, const char *root, const char *id,
                                    int64_t next, struct tn_arena *scratch, struct tn_err *err);

/* Durable when it returns. ABSENT when there is none. */
TN_MUST_USE tn_rc tn_consumer_remove(struct tn_io *io, const char *root, const char *id,
                                     struct tn_arena *scratch, struct tn_err *err);
