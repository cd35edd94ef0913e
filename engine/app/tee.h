/* tee: what the daemon is sent, sent on to a `tarn reload --shadow` as it comes.
 *
 *     source -- offer --> intake -- taken --> tee -- packet --> shadow
 *
 * The shadow listens at a socket beside the daemon's own; a packet is a message, before its records
 * are read. The system's buffer between them is all there is: what doesn't fit is left out and
 * counted, and nothing waits, is kept, or takes memory of the daemon's. The loop's thread only.
 */
#pragma once

#include "ingest/hub.h"

#define TN_TEE_SOCKET "/.tarn/shadow.sock"

enum { TN_TEE_PACKET_SIZE_MAX = 2 << 20 }; /* more than a socket's buffer ever is, by default */

struct tn_tee {
    bool open;
    int fd;
    uint64_t sent;     /* messages, since it was opened */
    uint64_t left_out; /* messages */
    uint64_t left_out_rows;
};

/* The path of the shadow's socket. INVALID: it is too long. */
TN_MUST_USE tn_rc tn_tee_path(const char *warehouse, struct tn_buf *path, struct tn_err *err);

/* To who listens there; another one hears nothing more. ABSENT: nobody does. */
TN_MUST_USE tn_rc tn_tee_open(struct tn_tee *tee, const char *warehouse, struct tn_err *err);

/* A message that was taken, with its rows. Closed when nobody reads any more. */
void tn_tee_put(struct tn_tee *tee, const struct tn_message *message);
void tn_tee_close(struct tn_tee *tee);

/* For the shadow: the message of a packet, in the packet. CORRUPT: it is of another tarn. */
TN_MUST_USE tn_rc tn_tee_read(struct tn_bytes packet, struct tn_message *message,
                              struct tn_err *err);
