/* mapper: a script's `map` between the decoder and the table.
 *
 *     json          the record as it stands, with whatever members it has
 *     other inputs  each row of it (-U aside), which keeps its kind
 *
 * What it makes of one record are the record's parts, 0 to n - 1, maybe none.
 */
#pragma once

#include "ingest/decode.h"
#include "io/clock_watch.h"
#include "script/script.h"

struct tn_mapper {
    struct tn_script *script; /* with a `map` */
    struct tn_clock_watch watch;
    bool records;       /* it takes records; the decoder only finds them (tn_decode_spec.framed) */
    const char *source; /* the owner's name for where they come from */
    const char *topic;  /* likewise; NULL: none */
    struct tn_buf made; /* rows of the record at hand */
    struct tn_bytes rest; /* of them */
    enum tn_row_kind kind;
    uint32_t row;     /* of the decoded ones, the next to be mapped */
    uint64_t dropped; /* records of which it made no row */
};

/* Takes an eighth of what the arena has left. `known_ms` is for the watch. */
TN_MUST_USE tn_rc tn_mapper_init(struct tn_mapper *mapper, struct tn_script *script,
                                 struct tn_clock *clock, int64_t known_ms, struct tn_arena *arena,
                                 struct tn_err *err);

/* The same with memory of the caller's, which mappers that take turns may share. */
void tn_mapper_init_on(struct tn_mapper *mapper, struct tn_script *script, struct tn_clock *clock,
                       int64_t known_ms, void *memory, size_t size);

/* A record comes: what the calls of `next` are about. */
void tn_mapper_begin(struct tn_mapper *mapper);

/* The record's next row, which lives until the next call. ABSENT: that were all. INVALID: the
 * script failed on it, and the text says why; there are no more. CANCELED: it is parked. */
TN_MUST_USE tn_rc tn_mapper_next(struct tn_mapper *mapper, struct tn_decoder *decoder,
                                 struct tn_decoded *decoded, uint64_t position, struct tn_row *row,
                                 enum tn_row_kind *kind, struct tn_err *err);
