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

/* A file is named by this and an id. */
#define TN_CONSUMER_FILE "consumer-"

/* Ids that begin with "tarn-" are tarn's own: nobody chooses one. */
enum tn_consumer_kind {
    TN_CONSUMER_READER,
    TN_CONSUMER_WRITER,   /* tarn-<writer>, as its commit user: the snapshot with its positions */
    TN_CONSUMER_LAKE,     /* tarn-lake-...: what a lake's copy of the table goes on with */
    TN_CONSUMER_RESERVED, /* tarn-..., and neither of these */
};

/* Of a file's name, behind the prefix; NULL: it is none of a consumer. */
const char *tn_consumer_id(const char *name);
enum tn_consumer_kind tn_consumer_kind_of(const char *id);

/* ABSENT when there is none; CORRUPT when it says nothing of use. */
TN_MUST_USE tn_rc tn_consumer_read(struct tn_io *io, const char *root, const char *id,
                                   struct tn_arena *scratch, int64_t *next, struct tn_err *err);

/* Durable when it returns; one that says the same already is left alone. */
TN_MUST_USE tn_rc tn_consumer_write(struct tn_io *io, const char *root, const char *id,
                                    int64_t next, struct tn_arena *scratch, struct tn_err *err);

/* Durable when it returns. ABSENT when there is none. */
TN_MUST_USE tn_rc tn_consumer_remove(struct tn_io *io, const char *root, const char *id,
                                     struct tn_arena *scratch, struct tn_err *err);

/* Write in two steps, for a commit whose own barrier covers the draft: `*path` is to be synced
 * before the draft replaces what was there. That is durable with a later barrier, or never: then
 * the consumer stands where it stood. */
TN_MUST_USE tn_rc tn_consumer_draft(struct tn_io *io, const char *root, const char *id,
                                    int64_t next, struct tn_arena *arena, const char **path,
                                    struct tn_err *err);
TN_MUST_USE tn_rc tn_consumer_replace(struct tn_io *io, const char *root, const char *id,
                                      struct tn_arena *scratch, struct tn_err *err);
