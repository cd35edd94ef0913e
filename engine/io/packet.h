/* packet: whole messages from one process to another on the same machine, over a socket that has a
 * path. A packet comes as it was sent or not at all, and nobody waits for who reads slowly: the
 * system's buffer is all there is between them.
 *
 *     listen -> accept -> wait, receive ... -> close
 *               connect -> send ... -> close
 *
 * For any thread; nothing is kept here.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum {
    TN_PACKET_PATH_SIZE = 108, /* sun_path of a sockaddr_un, with its zero */
    TN_PACKET_PIECES_MAX = 8,
};

/* Only this user may connect. What had that path goes, and who is done removes it. */
TN_MUST_USE tn_rc tn_packet_listen(const char *path, int *listener, struct tn_err *err);
/* Who has connected. IO: nobody has. */
TN_MUST_USE tn_rc tn_packet_accept(int listener, const char *path, int *file, struct tn_err *err);

/* ABSENT: nobody listens there. `buffer_size` is a wish: the system gives what it allows. */
TN_MUST_USE tn_rc tn_packet_connect(const char *path, int buffer_size, int *file,
                                    struct tn_err *err);

/* The pieces are one packet. AGAIN: there is no room for it, now or ever; ABSENT: nobody reads any
 * more. */
TN_MUST_USE tn_rc tn_packet_send(int file, const struct tn_bytes *pieces, uint32_t count);

/* The next packet, in memory for `room` bytes. AGAIN: none has come; FULL: it was longer, and is
 * lost; ABSENT: the other end is gone, and what it sent was read. */
TN_MUST_USE tn_rc tn_packet_receive(int file, void *memory, size_t room, struct tn_bytes *packet);
/* Until there is something to receive, for so long at most, or until a signal comes. */
void tn_packet_wait(int file, int ms);

void tn_packet_close(int file); /* -1 is fine */
