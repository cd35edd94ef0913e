/* tls_pair: TLS between the two ends of a simulated network: a client that trusts an authority, and
 * a server with a certificate. */
#pragma once

#include <stdalign.h>

#include "check.h"
#include "io/tls_memory.h"
#include "sim/certificate.h"

struct tls_pair {
    struct tn_tls_config *client;
    struct tn_tls_config *server;
};

/* Before the first certificate. */
static void tls_pair_boot(void)
{
    static alignas(16) unsigned char memory[3 << 20];
    static struct tn_heap heap;
    tn_heap_init(&heap, memory, sizeof memory, true);
    tn_tls_boot(&heap);
}

static struct tls_pair tls_pair_make(struct tn_clock *clock, const struct certificate *trusted,
                                     const struct certificate *own)
{
    struct tls_pair pair = {0};
    struct tn_err why;
    struct tn_tls_spec client = {.clock = clock, .ca = certificate_pem(trusted)};
    struct tn_tls_spec server = {.clock = clock,
                                 .certificate = certificate_pem(own),
                                 .key = certificate_key(own),
                                 .server = true};
    CHECK_OK(tn_tls_config_make(&client, &pair.client, &why), why);
    CHECK_OK(tn_tls_config_make(&server, &pair.server, &why), why);
    return pair;
}

static void tls_pair_free(struct tls_pair pair)
{
    tn_tls_config_free(pair.client);
    tn_tls_config_free(pair.server);
}
