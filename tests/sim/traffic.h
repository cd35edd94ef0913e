/* traffic: clients that send and servers that send it back, over any two doors, to see what they
 * make of the bytes.
 *
 * Each client connects, writes what a seed says in writes of any size, reads it back in reads of
 * any size, finishes, and waits for the end. What must hold, whatever the network does:
 *
 *     each request is done exactly once
 *     what was read are the first bytes of what was written
 *     on a fine network without cancelling: all of them, and then the end
 *     at the end no stream is open, no request under way, no buffer taken
 */
#pragma once

#include "io/net.h"
#include "io/tls.h"

enum { TRAFFIC_CLIENTS_MAX = 8 };

struct traffic {
    struct tn_net *client; /* the two may be one door */
    struct tn_net *server;
    int (*turn)(void *user); /* of both doors; negative when nothing can happen any more */
    void *user;
    struct tn_endpoint listen;
    const char *connect_host;         /* NULL: the listener's host */
    struct tn_tls_config *client_tls; /* both, or none */
    struct tn_tls_config *server_tls;
    const char *tls_host;
    struct tn_exec *exec; /* for handshakes, or NULL */

    uint64_t seed;
    uint32_t clients;
    uint32_t bytes_max;            /* that a client sends */
    uint32_t write_max;            /* in one write */
    uint32_t timeout_ms;           /* of each request; 0: none */
    uint32_t cancel_in_a_thousand; /* turns in which somebody cancels or closes */
    bool fine;                     /* all must arrive */

    /* What came of it. */
    uint64_t whole; /* clients that got everything back */
    uint64_t bytes;
};

void traffic_run(struct traffic *traffic);
