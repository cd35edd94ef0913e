/* packer: a message becomes a parcel: decoded, through the table's `map`, with a letter for each
 * record or row that can't be taken.
 *
 * One decoder for all tables, the one of the message before: to make another takes little time next
 * to what one for each table would take of memory.
 */
#pragma once

#include "app/keeper.h"
#include "ingest/hub.h"

struct tn_packer {
    size_t parcel_size; /* of the longest */
    size_t record_size_max;
    struct tn_arena arena;         /* the decoder's */
    struct tn_decoder *decoder;    /* or NULL */
    const struct tn_keeper *whose; /* it is, */
    uint64_t opened;               /* opened for the time that this is, */
    enum tn_input input;           /* and for this */
    char topic[1024];
};

/* Bytes that the longest parcel needs. */
size_t tn_packer_memory(size_t parcel_size);
void tn_packer_init(struct tn_packer *packer, void *memory, size_t size, size_t parcel_size,
                    size_t record_size_max);

/* Makes the message's parcel in `room`, which has bytes for the longest, and counts its rows and
 * letters; the keeper takes rows. An empty one: nothing came of it. INVALID: a record that refuses
 * it, or too many rows; CANCELED: the table's script is parked; UNSUPPORTED: memory. */
TN_MUST_USE tn_rc tn_packer_pack(struct tn_packer *packer, struct tn_keeper *keeper,
                                 struct tn_message *message, void *room, struct tn_bytes *parcel,
                                 struct tn_err *err);

/* The decoder's memory, until the next message; the decoder is none any more. */
struct tn_arena *tn_packer_lend(struct tn_packer *packer);
